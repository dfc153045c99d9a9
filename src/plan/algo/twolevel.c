/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twolevel.c - N nodes of g devices: rank = node * g + device. A node's ranks
 * talk directly; across nodes every rank talks only on its rail, to ranks
 * with the same device number, so each NIC carries 1/g of the traffic.
 *
 * The stages of a collective are lanes of their own, each waiting for the one
 * before: over slices, the rails work on one slice while the node works on
 * the next. Costs (steps / sent / reduced), g > 1 and N > 1:
 *
 *   allreduce  2 + 2(N-1)  / 2(g-1)/g + 2(N-1)/n      / (g-1)/g + (N-1)/n
 *   allgather  1 + N-1     / (N-1)/n + (g-1)/g        / 0
 *   alltoall   2           / (g-1)/g + (N-1)/N        / 0
 * Two-level broadcast and reduce are trees: tree.c. For very many nodes, with
 * butterflies in place of rings: twolevel_halving.c.
 */
#include "plan/algo/algo.h"

/* Where this rank is. */
struct place {
	uint32_t nodes;
	uint32_t g;
	uint32_t node;
	uint32_t device;
};

static struct place place_of(const struct hk_plan *plan, uint32_t rank)
{
	uint32_t g = plan->n / plan->nodes;

	return (struct place){ plan->nodes, g, rank / g, rank % g };
}

/* In the node, what is of a rank is a chunk for each node. */
static uint32_t node_widest(const struct hk_plan *plan)
{
	return plan->n > plan->nodes ? plan->nodes : 1;
}

void hk__columns_gather_step(const struct team *team, const struct columns *columns, uint32_t i,
			     struct hk_step *step)
{
	uint32_t others = team->n - 1;

	if (i < others) {
		step_send(step, team_port(team, team_next(team, i + 1)),
			  columns_span(columns, HK_BUF_OUT, team->me), columns->count);
	} else {
		uint32_t peer = team_prev(team, i - others + 1);

		step_recv(step, team_port(team, peer), columns_span(columns, HK_BUF_OUT, peer),
			  columns->count);
	}
}

/* ---- allreduce "split-rail": part device * N + node is whole at that rank ---- */

enum {
	ALLREDUCE_REDUCE,
	ALLREDUCE_RAIL,
	ALLREDUCE_GATHER,
	ALLREDUCE_LANES
};

static uint32_t allreduce_parts(const struct hk_plan *plan)
{
	return plan->n;
}

static uint32_t allreduce_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct place at = place_of(plan, rank);

	return at.g > 2 && at.device >= 2 ? at.nodes : 0;
}

static uint32_t allreduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct place at = place_of(plan, rank);

	if (lane == ALLREDUCE_REDUCE)
		return at.g - 1 + hk__accumulate_steps(at.g, at.device);
	if (lane == ALLREDUCE_RAIL)
		return at.nodes > 1 ? hk__ring_allreduce_steps(at.nodes) : 0;
	return 2 * (at.g - 1);
}

/* The last step of the nearest earlier lane that has steps. */
static struct hk_after allreduce_after(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t steps;

	do {
		lane--;
		steps = allreduce_steps(plan, rank, lane);
	} while (steps == 0);
	return (struct hk_after){ lane, steps - 1 };
}

static void allreduce_reduce_step(const struct place *at, const struct team *node, uint32_t i,
				  struct hk_step *step)
{
	if (i < at->g - 1) {
		uint32_t peer = team_next(node, i + 1);

		step_send(step, team_port(node, peer), span(HK_BUF_IN, peer * at->nodes),
			  at->nodes);
		return;
	}
	uint32_t own = at->device * at->nodes;
	struct accumulate acc = { .team = *node,
				  .in = span(HK_BUF_IN, own),
				  .out = span(HK_BUF_OUT, own),
				  .scratch = span(HK_BUF_SCRATCH, 0),
				  .count = at->nodes };
	hk__accumulate_step(&acc, i - (at->g - 1), step);
}

static void allreduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct place at = place_of(plan, rank);
	struct team node = team_node(plan, rank, 0);
	struct ring rail = { .team = team_rail(plan, rank, 0),
			     .blocks = { at.device * at.nodes, 1, 1 },
			     .src = HK_BUF_OUT,
			     .dst = HK_BUF_OUT };

	node.lane = rail.team.lane = lane;
	if (lane == ALLREDUCE_REDUCE)
		allreduce_reduce_step(&at, &node, i, step);
	else if (lane == ALLREDUCE_RAIL)
		hk__ring_allreduce_step(&rail, i, step);
	else
		hk__columns_gather_step(&node, &(struct columns){ at.nodes, 1, at.nodes }, i, step);
	if (lane != ALLREDUCE_REDUCE && i == 0)
		step->after = allreduce_after(plan, rank, lane);
}

/* ---- allgather: round the rail, then column by column inside the node ---- */

static uint32_t allgather_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct place at = place_of(plan, rank);

	return lane == 0 ? hk__ring_allgather_steps(at.nodes) : 2 * (at.g - 1);
}

static void allgather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct place at = place_of(plan, rank);

	if (lane == 0) {
		struct ring rail = { .team = team_rail(plan, rank, 0),
				     .blocks = { at.device, 1, at.g },
				     .dst = HK_BUF_OUT };

		hk__ring_allgather_step(&rail, span(HK_BUF_IN, 0), i, step);
		return;
	}
	struct team node = team_node(plan, rank, 0);
	node.lane = 1;
	hk__columns_gather_step(&node, &(struct columns){ 1, at.g, at.nodes }, i, step);
	if (i == 0)
		step->after = (struct hk_after){ 0, allgather_steps(plan, rank, 0) - 1 };
}

/*
 * ---- alltoall: scratch slot d * N + m is what device d of this node has for
 * the rank of this rail on node m ----
 */

static uint32_t alltoall_scratch(const struct hk_plan *plan, uint32_t rank)
{
	(void)rank;
	return plan->n;
}

static uint32_t alltoall_widest(const struct hk_plan *plan)
{
	uint32_t g = plan->n / plan->nodes;

	return hk__max(node_widest(plan), plan->nodes > 1 ? g : 1);
}

static uint32_t alltoall_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct place at = place_of(plan, rank);

	/* Sends, a copy, receives. */
	return lane == 0 ? 2 * at.g - 1 : 2 * at.nodes - 1;
}

static void alltoall_node_step(const struct place *at, const struct team *node, uint32_t i,
			       struct hk_step *step)
{
	if (i < at->g - 1) {
		uint32_t peer = team_next(node, i + 1);

		step_send(step, team_port(node, peer), span_strided(HK_BUF_IN, peer, at->g),
			  at->nodes);
	} else if (i == at->g - 1) {
		step_copy(step, span_strided(HK_BUF_IN, at->device, at->g),
			  span(HK_BUF_SCRATCH, at->device * at->nodes), at->nodes);
	} else {
		uint32_t peer = team_prev(node, i - (at->g - 1));

		step_recv(step, team_port(node, peer), span(HK_BUF_SCRATCH, peer * at->nodes),
			  at->nodes);
	}
}

static void alltoall_rail_step(const struct place *at, const struct team *rail, uint32_t i,
			       struct hk_step *step)
{
	if (i < at->nodes - 1) {
		uint32_t peer = team_next(rail, i + 1);

		step_send(step, team_port(rail, peer),
			  span_strided(HK_BUF_SCRATCH, peer, at->nodes), at->g);
	} else if (i == at->nodes - 1) {
		step_copy(step, span_strided(HK_BUF_SCRATCH, at->node, at->nodes),
			  span(HK_BUF_OUT, at->node * at->g), at->g);
	} else {
		uint32_t peer = team_prev(rail, i - (at->nodes - 1));

		step_recv(step, team_port(rail, peer), span(HK_BUF_OUT, peer * at->g), at->g);
	}
}

static void alltoall_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			  struct hk_step *step)
{
	struct place at = place_of(plan, rank);

	if (lane == 0) {
		struct team node = team_node(plan, rank, 0);

		alltoall_node_step(&at, &node, i, step);
		return;
	}
	struct team rail = team_rail(plan, rank, 0);
	rail.lane = 1;
	alltoall_rail_step(&at, &rail, i, step);
	if (i == 0)
		step->after = (struct hk_after){ 0, alltoall_steps(plan, rank, 0) - 1 };
}

#define GRID "n = N nodes of g"

const struct hk_algo hk__algo_twolevel[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_NODES,
	  .flags = HK_ALGO_NODES,
	  .slots = RING_SLOTS,
	  .nlanes = ALLREDUCE_LANES,
	  .info = { "two-level", "split-rail", "direct in the node, ring on each rail",
		    "2*(g > 1) + 2*(N-1)", "2*(g-1)/g + 2*(N-1)/n", "(g-1)/g + (N-1)/n",
		    "g > 2 ? 1/g : 0", GRID },
	  .parts = allreduce_parts,
	  .scratch = allreduce_scratch,
	  .widest = node_widest,
	  .steps = allreduce_steps,
	  .step = allreduce_step },
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_NODES_TURN,
	  .flags = HK_ALGO_NODES,
	  .slots = RING_SLOTS,
	  .nlanes = 2,
	  .info = { "two-level", NULL, "ring on each rail, then direct in the node",
		    "(g > 1) + N-1", "(N-1)/n + (g-1)/g", "0", "0", GRID },
	  .widest = node_widest,
	  .steps = allgather_steps,
	  .step = allgather_step },
	{ .coll = HK_COLL_ALLTOALL,
	  .moves = HK_MOVES_NODES_TURN,
	  .flags = HK_ALGO_NODES | HK_ALGO_NOT_INPLACE,
	  .nlanes = 2,
	  .info = { "two-level", NULL, "gathered by rail in the node, then across on each rail",
		    "(g > 1) + (N > 1)", "(g-1)/g + (N-1)/N", "0", "1",
		    GRID "; v: every rank knows all counts" },
	  .scratch = alltoall_scratch,
	  .widest = alltoall_widest,
	  .steps = alltoall_steps,
	  .step = alltoall_step },
	{ .info = { .name = NULL } },
};
