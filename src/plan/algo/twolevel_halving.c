/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twolevel_halving.c - two levels for very many nodes: N nodes of g devices as
 * in twolevel.c, but with butterflies on the rails. A ring on N nodes takes
 * N - 1 messages in a row, a butterfly log2 N; it sends as much, in messages that
 * halve from level to level.
 *
 * The stages are the sums in the node, the levels of the butterfly and the gather
 * in the node. Each has two lanes, one that sends and one that receives. So the
 * slices of a large operation follow each other through the stages, and a slice is
 * sent while the one before is still awaited, as far as slots go. In one lane, a
 * stage has one slice on its way at most; then a link is idle whenever all stages
 * that cross it happen to wait, and how often they do is a matter of how their
 * periods fall together: times that jump by several percent with size and delays.
 *
 * A node adds each part at one rank only, so the order of its sums is free: each
 * rank begins with its own and goes on with the devices before it. All devices
 * do the same, seen from where they stand, and sums need no place but their own.
 *
 * Costs (steps / sent / reduced), g > 1, N = 2^k; nodes left over add up to
 * 2 steps, and V/g sent and reduced (the formulas say exactly):
 *   allreduce      2 + 2 log2 N / 2(g-1)/g + 2(N-1)/n / (g-1)/g + (N-1)/n
 *   reducescatter  1 + log2 N   / (g-1)/g + (N-1)/n   / (g-1)/g + (N-1)/n
 *   allgather      1 + log2 N   / (N-1)/n + (g-1)/g   / 0
 */
#include "plan/algo/algo.h"

static uint32_t devices(const struct hk_plan *plan)
{
	return plan->n / plan->nodes;
}

/* ---- stages: the node adds (unless it gathers only), the rail, the node gathers ---- */

static uint32_t rail_first(const struct hk_plan *plan)
{
	return plan->coll != HK_COLL_ALLGATHER;
}

/* The stage past the rail's. One node has no rail; an allgather's copies. */
static uint32_t rail_end(const struct hk_plan *plan)
{
	if (plan->nodes == 1 && plan->coll != HK_COLL_ALLGATHER)
		return rail_first(plan);
	return rail_first(plan) + hk__exchange_stages(plan->coll, plan->nodes);
}

static uint32_t stages(const struct hk_plan *plan)
{
	return rail_end(plan) + (plan->coll != HK_COLL_REDUCESCATTER);
}

static struct stage rail_stage(const struct hk_plan *plan, uint32_t rank, uint32_t stage)
{
	return hk__exchange_stage(plan->coll, plan->nodes, rank / devices(plan),
				  stage - rail_first(plan));
}

static uint32_t stage_steps(const struct hk_plan *plan, uint32_t rank, uint32_t stage)
{
	uint32_t others = devices(plan) - 1;

	if (stage < rail_first(plan))
		return hk__max(2 * others, 1);
	if (stage < rail_end(plan))
		return rail_stage(plan, rank, stage).count;
	return 2 * others;
}

/*
 * ---- where things lie. Parts of a vector: device * pow2(N) and on are summed on
 * the device's rail. Blocks are of ranks, and a device's lie g apart; scratch slot
 * k of a reducescatter is the sum of the node for node k's rank ----
 */

static uint32_t rail_parts(const struct hk_plan *plan)
{
	return 1u << hk__flog2(plan->nodes);
}

static uint32_t parts(const struct hk_plan *plan)
{
	return devices(plan) * rail_parts(plan);
}

static uint32_t scratch(const struct hk_plan *plan, uint32_t rank)
{
	(void)rank;
	return plan->nodes > 1 ? plan->nodes : 0;
}

static struct columns columns_of(const struct hk_plan *plan)
{
	if (plan->coll == HK_COLL_ALLREDUCE)
		return (struct columns){ rail_parts(plan), 1, rail_parts(plan) };
	return (struct columns){ 1, devices(plan), plan->nodes };
}

static uint32_t widest(const struct hk_plan *plan)
{
	return devices(plan) > 1 ? columns_of(plan).count
				 : hk__exchange_widest(plan->coll, plan->nodes);
}

/* ---- steps ---- */

/* Everybody's column of in is added up, at its owner's dst. */
static void reduce_step(const struct team *node, const struct columns *columns, struct hk_span dst,
			uint32_t i, struct hk_step *step)
{
	uint32_t others = node->n - 1, count = columns->count;
	struct hk_span own = columns_span(columns, HK_BUF_IN, node->me);

	if (others == 0) {
		step_copy(step, own, dst, count);
	} else if (i < others) {
		uint32_t peer = team_next(node, i + 1);

		step_send(step, team_port(node, peer), columns_span(columns, HK_BUF_IN, peer),
			  count);
	} else {
		uint32_t peer = team_prev(node, i - others + 1);

		step_recv_reduce(step, team_port(node, peer), i == others ? own : dst, dst, count);
	}
}

static void rail_step(const struct hk_plan *plan, uint32_t rank, uint32_t stage, uint32_t i,
		      struct hk_step *step)
{
	struct exchange rail = { .coll = plan->coll,
				 .team = team_rail(plan, rank, 0),
				 .blocks = { 0, 1, 1 },
				 .src = HK_BUF_SCRATCH };
	uint32_t g = devices(plan);

	if (plan->coll == HK_COLL_ALLREDUCE) {
		rail.blocks.first = rank % g * rail_parts(plan);
		rail.src = HK_BUF_OUT;
	} else if (plan->coll == HK_COLL_ALLGATHER) {
		rail.blocks = (struct blocks){ rank % g, 1, g };
		rail.src = HK_BUF_IN;
	}
	hk__exchange_step(&rail, rail_stage(plan, rank, stage).first + i, step);
}

static void stage_step(const struct hk_plan *plan, uint32_t rank, uint32_t stage, uint32_t i,
		       struct hk_step *step)
{
	struct team node = team_node(plan, rank, 0);
	struct columns columns = columns_of(plan);
	struct hk_span sums = columns_span(&columns, HK_BUF_OUT, node.me);

	if (plan->coll == HK_COLL_REDUCESCATTER)
		sums = span(plan->nodes > 1 ? HK_BUF_SCRATCH : HK_BUF_OUT, 0);
	if (stage < rail_first(plan))
		reduce_step(&node, &columns, sums, i, step);
	else if (stage < rail_end(plan))
		rail_step(plan, rank, stage, i, step);
	else
		hk__columns_gather_step(&node, &columns, i, step);
}

/* ---- lanes: of stage s, 2s has the sends that it begins with, 2s + 1 the rest ---- */

static uint32_t lanes(const struct hk_plan *plan)
{
	return 2 * stages(plan);
}

static uint32_t stage_sends(const struct hk_plan *plan, uint32_t rank, uint32_t stage)
{
	struct hk_step step = { .op = HK_OP_NOP };

	if (stage < rail_first(plan) || stage >= rail_end(plan))
		return devices(plan) - 1;
	/* A member has one partner at each level. */
	if (rail_stage(plan, rank, stage).count > 0)
		rail_step(plan, rank, stage, 0, &step);
	return step.op == HK_OP_SEND;
}

static uint32_t steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t sends = stage_sends(plan, rank, lane / 2);

	return lane % 2 ? stage_steps(plan, rank, lane / 2) - sends : sends;
}

/*
 * The last step of the nearest earlier lane that has steps: sends wait for what was
 * received before, and receives for the sends of their stage, which may read in
 * place what a later stage receives.
 */
static struct hk_after after_lane(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	while (lane-- > 0) {
		uint32_t count = steps(plan, rank, lane);

		if (count > 0)
			return (struct hk_after){ lane, count - 1 };
	}
	return (struct hk_after){ HK_NONE, 0 };
}

static void step_of(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
		    struct hk_step *step)
{
	uint32_t stage = lane / 2;

	stage_step(plan, rank, stage, lane % 2 ? stage_sends(plan, rank, stage) + i : i, step);
	if (step->to.rank != HK_NONE)
		step->to.lane = 2 * stage + 1;
	if (step->from.rank != HK_NONE)
		step->from.lane = 2 * stage;
	if (i == 0)
		step->after = after_lane(plan, rank, lane);
}

#define LIMITS "n = N nodes of g; very many nodes"
#define LEFT HALVING_LEFT("N")
#define DETOUR HALVING_DETOUR("N")
#define DOUBLED HALVING_DOUBLED("N")

const struct hk_algo hk__algo_twolevel_halving[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_NODES_XOR_TURN,
	  .flags = HK_ALGO_NODES,
	  .info = { "two-level-halving", NULL, "direct in the node, halving-doubling on each rail",
		    "2*(g > 1) + 2*flog2(N) + 2*" LEFT,
		    "2*(g-1)/g + (2*(pow2(N)-1)/pow2(N) + " LEFT ")/g",
		    "(g-1)/g + ((pow2(N)-1)/pow2(N) + " LEFT ")/g", "0", LIMITS },
	  .parts = parts,
	  .lanes = lanes,
	  .widest = widest,
	  .steps = steps,
	  .step = step_of },
	{ .coll = HK_COLL_REDUCESCATTER,
	  .moves = HK_MOVES_NODES_XOR_TURN,
	  .flags = HK_ALGO_NODES,
	  .info = { "two-level-halving", NULL, "direct in the node, then halving on each rail",
		    "(g > 1) + flog2(N) + " DETOUR, "(g-1)/g + (N-1 + " LEFT ")/n",
		    "(g-1)/g + (" DOUBLED " + " LEFT "*N)/n", "N > 1 ? 1/g : 0", LIMITS },
	  .lanes = lanes,
	  .scratch = scratch,
	  .widest = widest,
	  .steps = steps,
	  .step = step_of },
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_NODES_XOR_TURN,
	  .flags = HK_ALGO_NODES,
	  .info = { "two-level-doubling", NULL, "doubling on each rail, then direct in the node",
		    "(g > 1) + flog2(N) + " DETOUR, "(" DOUBLED " + " LEFT "*(N-1))/n + (g-1)/g",
		    "0", "0", LIMITS },
	  .lanes = lanes,
	  .widest = widest,
	  .steps = steps,
	  .step = step_of },
	{ .info = { .name = NULL } },
};
