/* SPDX-License-Identifier: Apache-2.0 */
/* each.h - every built-in plan of a range, one after the other. */
#ifndef HK_TEST_NAIVE_EACH_H
#define HK_TEST_NAIVE_EACH_H

#include <hocket/plan.h>

enum each_roots {
	EACH_ROOT_ALL,
	EACH_ROOT_ENDS,		/* the first and the last rank */
	EACH_ROOT_MANY		/* all up to 8 ranks; then the first, the middle, the last */
};

/*
 * Every number of nodes that divides is taken where an algorithm takes nodes,
 * and some uneven ones where it takes these.
 */
struct each_opts {
	uint32_t n_min, n_max;
	enum each_roots roots;
	uint32_t batches;	/* sendrecv: random ones, beside the default */
	uint64_t seed;		/* of the batches */
	const char *algo;	/* NULL: all of the collective's */
	bool messages;		/* none that puts and signals */
};

/*
 * Calls fn with each plan, which ends with the call. A plan that cannot be
 * made ends the test. Returns how many there were.
 */
uint32_t each_plan(enum hk_coll coll, const struct each_opts *opts,
		   void (*fn)(const struct hk_plan *plan, void *ctx), void *ctx);

/* "allreduce leader n=8 root=0 nodes=3=3+1+4", in memory of its own, valid until the next call. */
const char *each_name(const struct hk_plan *plan);

#endif
