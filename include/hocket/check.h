/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - the proof that a plan does what its collective promises.
 *
 * A plan is a Kahn process network with bounded channels, so one symbolic run
 * covers every interleaving, every size and every number of slices. The run
 * tracks the sum of inputs that each slot holds as an expression, and proves
 *   result    every output slot holds exactly what is promised
 *   progress  no lane waits forever, given the slots the plan declares, up to
 *             what every transport offers (HK_SLOTS_MIN)
 *   race      no two unordered steps of a rank touch a slot one of them writes
 *   form      every step is meaningful and every message is received
 * Where ranks put into each other's memory, the order is one across ranks, and holds
 * however puts and signals land (hocket-plan(5)).
 */
#ifndef HOCKET_CHECK_H
#define HOCKET_CHECK_H

#include <hocket/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hk_refusal {
	HK_REFUSAL_NONE,	/* proved */
	HK_REFUSAL_FORM,
	HK_REFUSAL_PROGRESS,
	HK_REFUSAL_RACE,
	HK_REFUSAL_RESULT
};

#define HK_CHECK_TEXT_MAX 256

struct hk_check_opts {
	size_t size;
	bool inplace;		/* prove it with `in` inside `out` */
	bool set_slots;		/* use `slots` below, to find out what a plan needs */
	uint32_t slots;		/* 0: a send waits for its receive (rendezvous) */
	const struct hk_alloc *alloc;
	/* Called occasionally, in the calling thread, with steps done and in total. */
	void (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};
#define HK_CHECK_OPTS_INIT { sizeof(struct hk_check_opts), false, false, 0, NULL, NULL, NULL }

/*
 * The cost of a plan, counted step by step. The collective divides its data into
 * chunks: hk_check_cost.chunks of them make V (see hk_algo_info), so
 * busiest_sent / chunks is the traffic in V.
 */
struct hk_check_cost {
	uint64_t steps_total;	/* of all lanes of all ranks */
	uint64_t messages;	/* sent in total; puts and signals, too */
	uint32_t critical;	/* messages (or signals) on the longest chain */
	uint32_t chunks;	/* chunks of V */
	uint64_t busiest_sent;	/* chunks that the busiest sender sends */
	uint64_t busiest_received; /* puts are received by nobody */
	uint64_t busiest_reduced;
	uint64_t busiest_copied;
	uint64_t sent;		/* chunks that all ranks send together */
	uint32_t scratch_max;	/* largest number of scratch slots of a rank */
	uint32_t scratch_used;	/* largest number that a rank writes */
	uint32_t lanes_max;
};

struct hk_check_report {
	size_t size;		/* sizeof(struct hk_check_report), set by the caller */
	bool proved;
	enum hk_refusal refusal;
	uint32_t invariant;	/* the violated one: 2 for I2; 0 if proved */
	uint32_t rank;		/* where; HK_NONE if no single step is at fault */
	uint32_t lane;
	uint32_t step;
	char expected[HK_CHECK_TEXT_MAX];
	char found[HK_CHECK_TEXT_MAX];
	struct hk_why why;	/* the refusal as one line */
	bool consistent;	/* allreduce: all ranks add in one order and get the same bits */
	struct hk_check_cost cost; /* valid if proved */
};

/*
 * Proves or refuses a plan. HK_OK: proved. HK_EREFUSED: refused, the report says why.
 * HK_ENOMEM, HK_EINVAL (in place, if the collective has no such form), HK_ELIMIT
 * (too much state): the plan is neither proved nor refused.
 */
HK_API HK_NODISCARD enum hk_status hk_check(const struct hk_plan *plan,
					    const struct hk_check_opts *opts,
					    struct hk_check_report *report_out);

/*
 * The cost of one rank, without a proof: the chunks it sends, receives, reduces
 * and copies, and its scratch slots. Works at any scale.
 */
struct hk_rank_cost {
	size_t size;		/* sizeof(struct hk_rank_cost), set by the caller */
	uint64_t steps;
	uint64_t sent;
	uint64_t received;
	uint64_t reduced;
	uint64_t copied;
	uint32_t scratch;
};
HK_API void hk_check_rank_cost(const struct hk_plan *plan, uint32_t rank,
			       struct hk_rank_cost *cost_out);

/* "form", "progress", "race", "result", "none". Thread-safe. */
HK_API const char *hk_refusal_name(enum hk_refusal refusal);

#ifdef __cplusplus
}
#endif
#endif
