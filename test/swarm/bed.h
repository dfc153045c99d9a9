/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bed.h - ranks in virtual time, each with memory of its own, and what must hold
 * of every run: calls end by their deadlines, and who lives gives all memory back.
 */
#ifndef HK_TEST_SWARM_BED_H
#define HK_TEST_SWARM_BED_H

#include "group/group.h"
#include "harness.h"
#include "net/hook/hook.h"
#include "net/sim/sim.h"

#define BED_RANKS_MAX 16u
#define BED_MS UINT64_C(1000000)
#define BED_S UINT64_C(1000000000)

struct bed_spec {
	uint32_t n;
	uint64_t seed;
	const uint32_t *hosts;		/* NULL: all ranks of one */
	uint64_t timeout_ns;		/* of groups; 0: 10 s */
	uint64_t silence_ns;		/* 0: 1 s */
	uint64_t delay_ns;		/* of messages; 0: 2 us */
	uint32_t slots, slot_bytes;	/* 0: 2 of 512 */
	bool hooked;			/* nets have hooks; what goes wrong with one rank's: */
	uint32_t hook_rank;
	struct hk__hook_fault hook;
};

struct bed;

/* One rank. */
struct bed_seat {
	struct bed *bed;
	uint32_t rank;
	struct hk_group *group;		/* of all; the function frees it */
	struct hk_net *net;		/* of it */
	struct hk_alloc alloc;
	struct bed_block *blocks;	/* allocated and not freed */
	size_t live;
	uint64_t called;		/* when the current call began */
	uint64_t slack_ns;		/* it is stopped for that long, or so slow */
};

typedef void bed_fn(struct bed_seat *seat, void *ctx);

struct bed {
	struct bed_spec spec;
	struct hk__simnet *simnet;
	struct bed_seat seats[BED_RANKS_MAX];
	bed_fn *fn;
	void *ctx;
	char what[240];			/* for messages of failure */
};

/* What all runs of a program have seen. */
struct bed_figures {
	uint64_t runs, faults, calls, survivors, killed, leaks;
	uint64_t overdue_ns;		/* the longest, past a deadline */
};
extern struct bed_figures bed_figures;
void bed_figures_print(const char *what);

/* Makes it: then faults can be given. */
void bed_open(struct bed *bed, const struct bed_spec *spec, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void bed_fault(struct bed *bed, const struct hk__simnet_fault *fault);
/* Runs fn on every rank; returns when each has ended, or fails after `limit_ns`. */
void bed_run(struct bed *bed, bed_fn *fn, void *ctx, uint64_t limit_ns);
/* Counts what was not given back by survivors, and drops the rest. */
void bed_close(struct bed *bed);

bool bed_killed(const struct bed *bed, uint32_t rank);
void bed_fail(const struct bed *bed, uint32_t rank, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));

/* Around every call of the library: it ends by timeout_ns, or the test fails. */
void bed_call(struct bed_seat *seat);
void bed_called(struct bed_seat *seat, const char *name, uint64_t timeout_ns);

/* With HK_SWARM_VERBOSE: what happens, and when. */
void bed_say(const struct bed *bed, uint32_t rank, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define BED_CHECK(seat, cond, ...) \
	((cond) ? (void)0 : bed_fail((seat)->bed, (seat)->rank, __VA_ARGS__))

#endif
