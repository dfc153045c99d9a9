/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - plans whose steps are stored. */
#include "plan/store.h"

#include <string.h>

#define STORE_STATE_MAX (1u << 24) /* slots of all ranks, times their lanes */
#define STORE_WORK_MAX (1u << 24)  /* chunks that all steps move */

enum hk_status hk__store_create(const struct hk_alloc *alloc, const struct hk__store_spec *spec,
				struct hk_plan **plan_out)
{
	struct hk_plan *plan = hk__mem_zalloc(alloc, 1, sizeof(*plan));

	if (!plan)
		return HK_ENOMEM;
	*plan = (struct hk_plan){ .alloc = alloc,
				  .coll = spec->coll,
				  .n = spec->n,
				  .root = spec->root,
				  .parts = spec->parts,
				  .slots = spec->slots,
				  .inplace = spec->inplace,
				  .signals = (uint8_t)spec->signals };
	plan->store = hk__mem_zalloc(alloc, 1, sizeof(*plan->store));
	if (!plan->store)
		goto err_destroy;
	strncpy(plan->store->algo, spec->algo, sizeof(plan->store->algo) - 1);
	plan->store->ranks = hk__mem_zalloc(alloc, spec->n, sizeof(*plan->store->ranks));
	if (!plan->store->ranks)
		goto err_destroy;
	for (uint32_t r = 0; r < spec->n; r++)
		hk__array_init(&plan->store->ranks[r].lanes, alloc, sizeof(struct hk__store_lane));
	if (hk__nodes_store(plan, spec->nodes, spec->node_sizes) != HK_OK)
		goto err_destroy;
	if (spec->coll == HK_COLL_SENDRECV &&
	    hk__batch_create(alloc, spec->n, spec->msgs, spec->nmsgs, &plan->batch) != HK_OK)
		goto err_destroy;
	*plan_out = plan;
	return HK_OK;

err_destroy:
	hk_plan_free(plan);
	return HK_ENOMEM;
}

void hk__store_destroy(struct hk_plan *plan)
{
	struct hk__store *store = plan->store;

	for (uint32_t r = 0; store->ranks && r < plan->n; r++) {
		struct hk__array *lanes = &store->ranks[r].lanes;

		for (size_t l = 0; l < lanes->count; l++) {
			struct hk__store_lane *lane = hk__array_at(lanes, l);

			hk__array_fini(&lane->steps);
		}
		hk__array_fini(lanes);
	}
	hk__mem_free(plan->alloc, store->ranks, plan->n, sizeof(*store->ranks));
	hk__mem_free(plan->alloc, store, 1, sizeof(*store));
}

struct hk__store_lane *hk__store_add_lane(struct hk_plan *plan, uint32_t rank)
{
	struct hk__store_lane *lane = hk__array_push(&plan->store->ranks[rank].lanes);

	if (lane)
		hk__array_init(&lane->steps, plan->alloc, sizeof(struct hk_step));
	return lane;
}

struct hk_step *hk__store_add_step(struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct hk__store_lane *stored = hk__array_at(&plan->store->ranks[rank].lanes, lane);
	struct hk_step *step = hk__array_push(&stored->steps);

	if (step)
		*step = hk__step_none;
	return step;
}

struct hk_step *hk__store_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i)
{
	hk_assert(rank < plan->n);
	struct hk__store_lane *stored = hk__array_at(&plan->store->ranks[rank].lanes, lane);

	return hk__array_at(&stored->steps, i);
}

static enum hk_status store_copy_rank(struct hk_plan *to, const struct hk_plan *from, uint32_t rank)
{
	struct hk__store_rank *stored = &to->store->ranks[rank];

	stored->present = true;
	stored->scratch = hk_plan_slots(from, rank, HK_BUF_SCRATCH);
	for (uint32_t l = 0; l < hk_plan_lanes(from, rank); l++) {
		if (!hk__store_add_lane(to, rank))
			return HK_ENOMEM;
		for (uint32_t i = 0; i < hk_plan_steps(from, rank, l); i++) {
			struct hk_step *step = hk__store_add_step(to, rank, l);

			if (!step)
				return HK_ENOMEM;
			hk_plan_step(from, rank, l, i, step);
		}
	}
	return HK_OK;
}

enum hk_status hk__store_copy(const struct hk_alloc *alloc, const struct hk_plan *plan,
			      struct hk_plan **plan_out)
{
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_plan *copy;

	hk_plan_describe(plan, &info);
	struct hk__store_spec spec = { .coll = info.coll,
				       .algo = info.algo,
				       .n = info.nranks,
				       .root = info.root,
				       .nodes = info.nodes,
				       .node_sizes = info.node_sizes,
				       .parts = info.parts,
				       .slots = info.slots,
				       .inplace = info.inplace,
				       .signals = info.signals,
				       .msgs = info.msgs,
				       .nmsgs = info.nmsgs };
	enum hk_status status = hk__store_create(alloc, &spec, &copy);
	for (uint32_t r = 0; status == HK_OK && r < info.nranks; r++) {
		status = store_copy_rank(copy, plan, r);
		if (status != HK_OK)
			hk_plan_free(copy);
	}
	if (status == HK_OK)
		*plan_out = copy;
	return status;
}

enum hk_status hk__store_check_size(const struct hk_plan *plan, struct hk_why *why)
{
	uint64_t nslots = 0, nmoved = 0;

	for (uint32_t r = 0; r < plan->n; r++) {
		uint64_t nlanes = hk_plan_lanes(plan, r);

		for (enum hk_buf buf = HK_BUF_IN; buf <= HK_BUF_SCRATCH; buf++)
			nslots += hk_plan_slots(plan, r, buf) * (nlanes ? nlanes : 1);
		for (uint32_t l = 0; l < nlanes; l++)
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++) {
				const struct hk_step *step = hk__store_step(plan, r, l, i);

				nmoved += step->op == HK_OP_WAIT ? 1 : step->count;
			}
	}
	if (nslots > STORE_STATE_MAX)
		return hk__why(why, HK_ELIMIT,
			       "%llu slots in all buffers of all ranks, counted once per lane; at "
			       "most %u can be read",
			       (unsigned long long)nslots, STORE_STATE_MAX);
	if (nmoved > STORE_WORK_MAX)
		return hk__why(why, HK_ELIMIT, "moves more than %u chunks in all", STORE_WORK_MAX);
	return HK_OK;
}
