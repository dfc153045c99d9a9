/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symmetry.c - which ranks of a plan do the same, seen from where each stands.
 *
 * What an algorithm allows stands on its row (enum algo_moves); here it becomes
 * a group. Sums in rank order, roots, leaders and left-over ranks break it.
 */
#include "plan/plan.h"

static bool is_pow2(uint32_t x)
{
	return x && !(x & (x - 1));
}

static bool batch_is_ring(const struct hk__batch *batch, uint32_t n)
{
	if (batch->nmsgs != n)
		return false;
	for (uint32_t r = 0; r < n; r++)
		if (batch->msgs[r].src != r || batch->msgs[r].dst != (r + 1) % n)
			return false;
	return true;
}

/* Ranks that shift together; 0: none do. */
static uint32_t shift_unit(const struct hk_plan *plan)
{
	switch (plan->algo->moves) {
	case HK_MOVES_SHIFT:
		return 1;
	case HK_MOVES_SHIFT_EVEN:
		return is_pow2(plan->n) && plan->n > 1 ? 2 : 0;
	case HK_MOVES_NODES:
	case HK_MOVES_NODES_TURN:
		return plan->node_sizes ? 0 : plan->n / plan->nodes;
	case HK_MOVES_BATCH:
		return batch_is_ring(plan->batch, plan->n) ? 1 : 0;
	case HK_MOVES_NONE:
	case HK_MOVES_XOR:
	case HK_MOVES_NODES_XOR_TURN:
		break;
	}
	return 0;
}

/* The same by exclusive or: of ranks, or of nodes. */
static uint32_t xor_unit(const struct hk_plan *plan)
{
	if (plan->algo->moves == HK_MOVES_XOR)
		return is_pow2(plan->n) ? 1 : 0;
	if (plan->algo->moves == HK_MOVES_NODES_XOR_TURN)
		return is_pow2(plan->nodes) ? plan->n / plan->nodes : 0;
	return 0;
}

static bool nodes_turn(const struct hk_plan *plan)
{
	return plan->algo->moves == HK_MOVES_NODES_TURN ||
	       plan->algo->moves == HK_MOVES_NODES_XOR_TURN;
}

void hk__plan_symmetry(const struct hk_plan *plan, enum hk__outer outer,
		       struct hk__symmetry *symmetry_out)
{
	struct hk__symmetry symmetry = { .n = plan->n, .unit = plan->n, .node = 1 };
	uint32_t unit = 0;

	if (!plan->store && outer == HK__OUTER_SHIFT)
		unit = shift_unit(plan);
	if (!plan->store && outer == HK__OUTER_XOR)
		unit = xor_unit(plan);
	if (unit) {
		symmetry.outer = outer;
		symmetry.unit = unit;
		symmetry.inner = nodes_turn(plan) && unit > 1;
		symmetry.node = symmetry.inner ? unit : 1;
	}
	*symmetry_out = symmetry;
}

/* ---- elements ---- */

uint32_t hk__symmetry_apply(const struct hk__symmetry *symmetry, struct hk__element element,
			    uint32_t rank)
{
	uint32_t unit = rank / symmetry->unit, at = rank % symmetry->unit, node = symmetry->node;

	if (symmetry->outer == HK__OUTER_SHIFT)
		unit = (unit + element.units) % (symmetry->n / symmetry->unit);
	else if (symmetry->outer == HK__OUTER_XOR)
		unit ^= element.units;
	if (symmetry->inner)
		at += (at % node + element.turn) % node - at % node;
	return unit * symmetry->unit + at;
}

struct hk__element hk__symmetry_of(const struct hk__symmetry *symmetry, uint32_t rank)
{
	return (struct hk__element){ .units = rank / symmetry->unit,
				     .turn = symmetry->inner ? rank % symmetry->node : 0 };
}

struct hk__element hk__symmetry_inverse(const struct hk__symmetry *symmetry,
					struct hk__element element)
{
	uint32_t units = symmetry->n / symmetry->unit;

	if (symmetry->outer != HK__OUTER_XOR)
		element.units = (units - element.units) % units;
	element.turn = (symmetry->node - element.turn) % symmetry->node;
	return element;
}
