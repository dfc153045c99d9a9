/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bits_test.c - the device's interpreter makes the same bits as the executor of a
 * group, of any bits: infinities, NaNs, subnormals, sums that round.
 */
#include "device/bed.h"
#include "harness.h"

#include <hocket/group.h>

#include <pthread.h>

#define COUNT 203u

struct rank_run {
	struct hk_group *group;
	char *in, *out, *seen;
	enum hk_type type;
	enum hk_redop op;
	const char *algo;
	uint64_t factor;
	bool ends; /* frees the group instead */
	pthread_t thread;
};

static void *rank_run(void *arg)
{
	struct rank_run *run = arg;
	struct hk_opts opts = HK_OPTS_INIT;

	if (run->ends) {
		hk_group_free(run->group);
		return NULL;
	}
	opts.algo = run->algo;
	opts.factor = &run->factor;
	CHECK_EQ(hk_allreduce(run->group, run->in, run->out, COUNT, run->type, run->op, &opts),
		 HK_OK);
	return NULL;
}

static void ranks_run(struct rank_run *runs, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		CHECK_EQ(pthread_create(&runs[r].thread, NULL, rank_run, &runs[r]), 0);
	for (uint32_t r = 0; r < n; r++)
		pthread_join(runs[r].thread, NULL);
}

/* The same by moves, into `seen`. */
static void moves_run(struct bed *bed, struct rank_run *runs, const struct hk_plan *plan,
		      bool lines, bool apart)
{
	struct want want = { .coll = HK_COLL_ALLREDUCE,
			     .type = runs->type,
			     .op = runs->op,
			     .n = bed->n,
			     .count = COUNT };
	struct hk_sizes sizes = { COUNT, NULL };
	struct hk__flat_call calls[1][RANKS_MAX];
	uint32_t mode = mode_of(&want, lines);
	struct hk__flat *flat = flatten(plan, mode, apart);

	for (uint32_t r = 0; r < bed->n; r++) {
		call_fill(bed, flat, &want, mode, r, &calls[0][r]);
		calls[0][r].in = (uint64_t)(uintptr_t)runs[r].in;
		calls[0][r].out = (uint64_t)(uintptr_t)runs[r].seen;
		calls[0][r].factor = runs[r].factor;
		CHECK_EQ(hk__flat_shape(flat, plan, &sizes, &bed->limits, &calls[0][r]), HK_OK);
	}
	calls_run(bed, calls, 1, HK_NONE);
	hk__flat_destroy(flat);
}

static void bits_try(struct bed *bed, struct rank_run *runs, enum hk_type type, enum hk_redop op,
		     const char *algo)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	uint64_t seed = (uint64_t)type * 1000 + op * 10 + bed->n;
	size_t bytes = COUNT * hk_type_size(type);
	struct hk_plan *plan;
	struct hk_why why;

	opts.algo = algo;
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, bed->n, &opts, &why, &plan), HK_OK);
	for (uint32_t r = 0; r < bed->n; r++) {
		runs[r].type = type;
		runs[r].op = op;
		runs[r].algo = algo;
		runs[r].factor = type == HK_TYPE_FP64 ? UINT64_C(0x3ff8000000000000) : 0x3fc00000;
		for (size_t i = 0; i < bytes; i++)
			runs[r].in[i] = (char)test_random(&seed);
	}
	ranks_run(runs, bed->n);
	for (int way = 0; way < 3; way++) {
		bool lines = way == 1, apart = way == 2;

		moves_run(bed, runs, plan, lines, apart);
		for (uint32_t r = 0; r < bed->n; r++) {
			for (size_t i = 0; i < bytes; i++) {
				if (runs[r].seen[i] != runs[r].out[i])
					test_fail(__FILE__, __LINE__,
						  "%s %s by %s%s, n=%u: rank %u: byte %zu",
						  hk_type_name(type), hk_redop_name(op), algo,
						  lines	  ? " and lines"
						  : apart ? " and buffers"
							  : "",
						  bed->n, r, i);
			}
		}
	}
	hk_plan_free(plan);
}

static void bits_of(uint32_t n)
{
	static const char *const algos[] = { "one-shot", "two-shot", "ring", "recursive-doubling",
					     "double-tree" };
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *groups[RANKS_MAX];
	struct rank_run runs[RANKS_MAX] = { 0 };
	struct hk_why why;
	struct bed bed;

	bed_open(&bed, n, 2);
	CHECK_EQ(hk_group_threads(n, &opts, &why, groups), HK_OK);
	for (uint32_t r = 0; r < n; r++) {
		runs[r] = (struct rank_run){ .group = groups[r],
					     .in = malloc(COUNT * 8),
					     .out = malloc(COUNT * 8),
					     .seen = malloc(COUNT * 8) };
		CHECK(runs[r].in && runs[r].out && runs[r].seen);
	}
	for (unsigned t = 0; t < HK_TYPE_COUNT; t++) {
		for (unsigned o = 0; o < HK_REDOP_COUNT; o++) {
			if (hk_redop_valid((enum hk_type)t, (enum hk_redop)o))
				bits_try(&bed, runs, (enum hk_type)t, (enum hk_redop)o,
					 algos[(t + o) % (sizeof(algos) / sizeof(algos[0]))]);
		}
	}
	for (uint32_t r = 0; r < n; r++) {
		runs[r].ends = true;
		free(runs[r].in);
		free(runs[r].out);
		free(runs[r].seen);
	}
	ranks_run(runs, n);
	bed_close(&bed);
}

TEST(two_ranks)
{
	bits_of(2);
}

TEST(three_ranks)
{
	bits_of(3);
}

TEST(eight_ranks)
{
	bits_of(8);
}
