/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leader_blocks.c - blocks through one rank of each node, as leader.c does
 * with vectors: across, a node's blocks travel together, in one message.
 *
 * Costs (steps / sent / reduced) with N > 1 nodes of g > 2:
 *   allgather      1 + N-1 + g-1  / 1 + (N-1)/N  / 0
 *   reducescatter  g-1 + N-1 + 1  / 1            / 1 + (N-1)/N
 *   gather         2              / 1/N          / 0
 *   scatter        2              / (n-1)/n      / 0
 * Blocks of each to each: leader_alltoall.c.
 */
#include "plan/algo/algo.h"

/* The blocks of a node, as slots of a buffer that has one for every rank. */
static struct hk_span node_span(const struct hk_plan *plan, enum hk_buf buf, uint32_t node)
{
	return span(buf, hk__node_first(plan, node));
}

static uint32_t all_widest(const struct hk_plan *plan)
{
	return hk__node_max(plan, HK_NONE);
}

static struct ring ring_of(const struct hk_plan *plan, const struct leader_view *at)
{
	uint32_t g = plan->n / plan->nodes;

	return (struct ring){ .team = at->leaders,
			      .blocks = { 0, g, g },
			      .table = plan->node_first };
}

/*
 * ---- allgather: into the leader, round the ring, and each node's blocks down
 * a chain as they come ----
 */

static uint32_t allgather_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	bool leads = at.mates.me == 0, alone = at.mates.n == 1;
	if (lane == LEADER_UP)
		return alone ? 0 : leads ? at.mates.n : 1;
	if (lane == LEADER_DOWN)
		return alone ? 0 : plan->nodes;
	/* Blocks that came up lie in their place; a rank alone copies its own. */
	if (alone)
		return hk__ring_allgather_steps(plan->nodes);
	return leads && plan->nodes > 1 ? hk__ring_allgather_steps(plan->nodes) - 1 : 0;
}

static void allgather_up_step(const struct leader_view *at, uint32_t rank, uint32_t i,
			      struct hk_step *step)
{
	struct hk_span own = span(HK_BUF_IN, 0);
	struct hk_port mate = team_port(&at->mates, i);

	if (at->mates.me)
		step_send(step, mate, own, 1);
	else if (i == 0)
		step_copy(step, own, span(HK_BUF_OUT, rank), 1);
	else
		step_recv(step, mate, span(HK_BUF_OUT, mate.rank), 1);
}

static void allgather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	at.mates.lane = at.leaders.lane = lane;
	bool leads = at.mates.me == 0, alone = at.mates.n == 1;
	struct hk_after up = { LEADER_UP, leads ? at.mates.n - 1 : 0 };
	if (lane == LEADER_UP) {
		allgather_up_step(&at, rank, i, step);
	} else if (lane == LEADER_ACROSS) {
		struct ring ring = ring_of(plan, &at);

		ring.dst = HK_BUF_OUT;
		if (alone) {
			hk__ring_allgather_step(&ring, span(HK_BUF_IN, 0), i, step);
			return;
		}
		hk__ring_allgather_step(&ring, node_span(plan, HK_BUF_OUT, at.node),
					i == 0 ? 0 : i + 1, step);
		if (i == 0)
			step->after = up;
	} else {
		uint32_t node = hk__mod_sub(at.node, i, plan->nodes);

		hk__chain_down_step(&at.mates, node_span(plan, HK_BUF_OUT, node),
				    hk__node_size(plan, node), step);
		if (i == 0)
			step->after = up;
		else if (leads)
			step->after = (struct hk_after){ LEADER_ACROSS, i };
	}
}

/*
 * ---- reducescatter: the way back. A leader adds in scratch, where slot k is
 * the block of rank k ----
 */

static uint32_t reducescatter_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	return at.mates.me == 0 && at.mates.n > 1 ? plan->n : 0;
}

static uint32_t reducescatter_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	bool leads = at.mates.me == 0, alone = at.mates.n == 1;
	if (lane == LEADER_UP)
		return alone ? 0 : plan->nodes;
	if (lane == LEADER_DOWN)
		return alone ? 0 : leads ? at.mates.n : 1;
	return alone || (leads && plan->nodes > 1) ? hk__ring_reducescatter_steps(plan->nodes) : 0;
}

static void reducescatter_down_step(const struct leader_view *at, uint32_t i, struct hk_step *step)
{
	struct hk_span own = span(HK_BUF_OUT, 0);
	struct hk_port mate = team_port(&at->mates, i + 1);

	if (at->mates.me)
		step_recv(step, team_port(&at->mates, 0), own, 1);
	else if (i < at->mates.n - 1)
		step_send(step, mate, span(HK_BUF_SCRATCH, mate.rank), 1);
	else
		step_copy(step, span(HK_BUF_SCRATCH, at->first), own, 1);
}

static void reducescatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			       struct hk_step *step)
{
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	at.mates.lane = at.leaders.lane = lane;
	bool leads = at.mates.me == 0, alone = at.mates.n == 1;
	if (lane == LEADER_UP) {
		uint32_t node = hk__mod_sub(at.node, i + 1, plan->nodes);

		hk__chain_up_step(&at.mates, node_span(plan, HK_BUF_IN, node),
				  node_span(plan, HK_BUF_SCRATCH, node), hk__node_size(plan, node),
				  step);
	} else if (lane == LEADER_ACROSS) {
		struct ring ring = ring_of(plan, &at);

		ring.src = alone ? HK_BUF_IN : HK_BUF_SCRATCH;
		hk__ring_reducescatter_step(&ring,
					    alone ? span(HK_BUF_OUT, 0)
						  : node_span(plan, HK_BUF_SCRATCH, at.node),
					    i, step);
		if (!alone)
			step->after = (struct hk_after){ LEADER_UP, i };
	} else {
		reducescatter_down_step(&at, i, step);
		if (i == 0)
			step->after = (struct hk_after){ leads && plan->nodes > 1 ? LEADER_ACROSS
										  : LEADER_UP,
							 plan->nodes - 1 };
	}
}

/*
 * ---- gather and scatter: the root leads its node. Another leader's scratch
 * slot k is the block of its node's k-th rank ----
 */

static bool rooted_passes(const struct leader_view *at)
{
	return at->mates.me == 0 && at->leaders.me != 0 && at->mates.n > 1;
}

static uint32_t rooted_widest(const struct hk_plan *plan)
{
	return hk__node_max(plan, hk__node_of(plan, plan->root));
}

static uint32_t rooted_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct leader_view at;

	hk__leader_view(plan, rank, plan->root, &at);
	return rooted_passes(&at) ? at.mates.n : 0;
}

static uint32_t rooted_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, plan->root, &at);
	if (at.mates.me)
		return 1;
	if (at.leaders.me == 0)
		return at.mates.n + plan->nodes - 1;
	return at.mates.n > 1 ? at.mates.n + 1 : 1;
}

/* A rank's block at its leader, the root being one. */
static struct hk_span rooted_block(const struct leader_view *at, enum hk_buf root_buf,
				   uint32_t rank)
{
	return at->leaders.me ? span(HK_BUF_SCRATCH, rank - at->first) : span(root_buf, rank);
}

static void gather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct hk_span own = span(HK_BUF_IN, 0);
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, plan->root, &at);
	uint32_t size = at.mates.n;
	struct hk_port root = team_port(&at.leaders, 0);
	if (at.mates.me) {
		step_send(step, team_port(&at.mates, 0), own, 1);
	} else if (at.leaders.me && size == 1) {
		step_send(step, root, own, 1);
	} else if (i == 0) {
		step_copy(step, own, rooted_block(&at, HK_BUF_OUT, rank), 1);
	} else if (i < size) {
		struct hk_port mate = team_port(&at.mates, i);

		step_recv(step, mate, rooted_block(&at, HK_BUF_OUT, mate.rank), 1);
	} else if (at.leaders.me) {
		step_send(step, root, span(HK_BUF_SCRATCH, 0), size);
	} else {
		struct hk_port leader = team_port(&at.leaders, i - size + 1);

		step_recv(step, leader, span(HK_BUF_OUT, leader.rank),
			  hk__node_size(plan, hk__node_of(plan, leader.rank)));
	}
}

static void scatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	struct hk_span own = span(HK_BUF_OUT, 0);
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, plan->root, &at);
	uint32_t size = at.mates.n, before = at.leaders.me ? 1 : plan->nodes - 1;
	struct hk_port root = team_port(&at.leaders, 0);
	if (at.mates.me) {
		step_recv(step, team_port(&at.mates, 0), own, 1);
	} else if (at.leaders.me && i == 0) {
		step_recv(step, root, size > 1 ? span(HK_BUF_SCRATCH, 0) : own, size);
	} else if (i < before) {
		struct hk_port leader = team_port(&at.leaders, i + 1);

		step_send(step, leader, span(HK_BUF_IN, leader.rank),
			  hk__node_size(plan, hk__node_of(plan, leader.rank)));
	} else if (i < before + size - 1) {
		struct hk_port mate = team_port(&at.mates, i - before + 1);

		step_send(step, mate, rooted_block(&at, HK_BUF_IN, mate.rank), 1);
	} else {
		step_copy(step, rooted_block(&at, HK_BUF_IN, rank), own, 1);
	}
}

#define KNOWS "; v: leaders know the counts of their node"

const struct hk_algo hk__algo_leader_blocks[] = {
	{ .coll = HK_COLL_ALLGATHER,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .slots = RING_SLOTS,
	  .nlanes = LEADER_LANES,
	  .info = { "leader", NULL, "through one rank of each node: a ring across, chains in it",
		    "(g > 1) + N-1 + g-1", "max((N-1)/N + (g > 1), (g > 2)*(1 + 1/n))", "0", "0",
		    LEADER_LIMITS },
	  .widest = all_widest,
	  .steps = allgather_steps,
	  .step = allgather_step },
	{ .coll = HK_COLL_REDUCESCATTER,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .slots = RING_SLOTS,
	  .nlanes = LEADER_LANES,
	  .info = { "leader", NULL, "through one rank of each node: chains in it, a ring across",
		    "g-1 + N-1 + (g > 1)", "g > 1 ? 1 : (n-1)/n", "(g > 1) + (N-1)/N", "g > 1",
		    LEADER_LIMITS },
	  .scratch = reducescatter_scratch,
	  .widest = all_widest,
	  .steps = reducescatter_steps,
	  .step = reducescatter_step },
	{ .coll = HK_COLL_GATHER,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .info = { "leader", NULL, "through one rank of each node, which sends its node's blocks",
		    "(g > 1) + (N > 1)", "(N > 1 ? g : 1)/n", "0", "(N > 1)*(g > 1)*g/n",
		    LEADER_LIMITS KNOWS },
	  .scratch = rooted_scratch,
	  .widest = rooted_widest,
	  .steps = rooted_steps,
	  .step = gather_step },
	{ .coll = HK_COLL_SCATTER,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .info = { "leader", NULL, "through one rank of each node, which takes its node's blocks",
		    "(g > 1) + (N > 1)", "(n-1)/n", "0", "(N > 1)*(g > 1)*g/n",
		    LEADER_LIMITS KNOWS },
	  .scratch = rooted_scratch,
	  .widest = rooted_widest,
	  .steps = rooted_steps,
	  .step = scatter_step },
	{ .info = { .name = NULL } },
};
