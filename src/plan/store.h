/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - a plan whose steps are stored, not computed: what a file is read
 * into, and what a test edits to break a plan. O(steps) memory, by nature.
 */
#ifndef HK_PLAN_STORE_H
#define HK_PLAN_STORE_H

#include "plan/plan.h"

struct hk__store_lane {
	struct hk__array steps;		/* struct hk_step */
};

struct hk__store_rank {
	bool present;			/* its program was given */
	uint32_t scratch;
	struct hk__array lanes;		/* struct hk__store_lane */
};

struct hk__store {
	char algo[64];
	struct hk__store_rank *ranks;	/* plan->n of them */
};

/* What a stored plan starts from. msgs and node_sizes are copied. */
struct hk__store_spec {
	enum hk_coll coll;
	const char *algo;
	uint32_t n;
	uint32_t root;
	uint32_t nodes;
	const uint32_t *node_sizes;	/* NULL: equal */
	uint32_t parts;
	uint32_t slots;
	bool inplace;
	enum hk_signals signals;
	const struct hk_msg *msgs;
	size_t nmsgs;
};

/* An empty stored plan: no rank has a lane. */
enum hk_status hk__store_create(const struct hk_alloc *alloc, const struct hk__store_spec *spec,
				struct hk_plan **plan_out);
/* A stored plan with the steps of any plan. */
enum hk_status hk__store_copy(const struct hk_alloc *alloc, const struct hk_plan *plan,
			      struct hk_plan **plan_out);

/* Frees what hk_plan_free finds stored. */
void hk__store_destroy(struct hk_plan *plan);

/* A new last lane of a rank, and a new last step of a lane; NULL: no memory. */
struct hk__store_lane *hk__store_add_lane(struct hk_plan *plan, uint32_t rank);
struct hk_step *hk__store_add_step(struct hk_plan *plan, uint32_t rank, uint32_t lane);

/* HK_ELIMIT, and why, where a proof of it would hold or do too much: a short text may say much. */
enum hk_status hk__store_check_size(const struct hk_plan *plan, struct hk_why *why);

/* The stored step itself, to edit. */
struct hk_step *hk__store_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane,
			       uint32_t i);

#endif
