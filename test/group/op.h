/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - one operation of a rank: buffers with guards around them, the call,
 * and the comparison of all of it with the definition.
 */
#ifndef HK_TEST_GROUP_OP_H
#define HK_TEST_GROUP_OP_H

#include "group/oracle.h"
#include "group/world.h"

struct op {
	struct want want;
	const char *algo;	/* NULL: the group chooses */
	bool inplace;		/* where the collective has such a form */
	bool heap;		/* buffers of hk_mem_alloc */
};

/* One that is on its way. */
struct op_run {
	struct op op;
	struct hk_group *group;
	struct hk_request *request;	/* NULL: it was waited for */
	char *space;
	size_t bytes;
	char *in, *out;			/* NULL: the rank has none */
	uint64_t factor;
	uint64_t counts[WORLD_RANKS_MAX];
	uint64_t in_counts[WORLD_RANKS_MAX], out_counts[WORLD_RANKS_MAX];
};

/* Makes buffers and calls; the status of the call is HK_OK, or the test ends. */
void op_start(struct op_run *run, struct hk_group *group, const struct op *op, bool request);
/* Compares, and frees buffers and request; the operation is over. */
void op_end(struct op_run *run);
/* The two, and what is between them. */
void op_do(struct hk_group *group, const struct op *op);

/* The call alone, on buffers as they are. */
enum hk_status op_call(struct hk_group *group, const struct op_run *run,
		       const struct hk_opts *opts);

#endif
