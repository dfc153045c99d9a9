/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leader.c - through one rank of each node, its leader, so that nodes may have
 * any sizes: the first rank of a node leads it, or the root where there is
 * one. Leaders alone talk across, where a message costs many in the node.
 *
 * Large vectors go along chains in the node, each rank adding or passing on
 * what it receives, and round a ring of leaders, part by part: a leader sends
 * a part across as soon as its node has added it up, and down its node as soon
 * as it is whole. Slices keep chains and ring busy at once, as each has a lane.
 * Small ones take few messages after each other: a leader takes from all of its
 * node, tells all leaders, and tells all of its node; one message across.
 *
 * Costs (steps / sent / reduced) with N > 1 nodes of g > 2:
 *   allreduce leader         2(g-1) + 2(N-1)      / 1 + 2(N-1)/N     / 1 + (N-1)/N
 *   allreduce leader-direct  3                    / g-1 + N-1        / g-1 + N-1
 *   broadcast leader         1 + floor(log2 g)    / N-1 + ceil(log2 g) / 0
 *   reduce leader            1 + floor(log2 g)    / 1 / N-1 + ceil(log2 g)
 *   broadcast leader-chain   N-1 + g-1            / 2 / 0
 *   reduce leader-chain      N-1 + g-1            / 1 / 2
 * Blocks instead of vectors: leader_blocks.c. Nothing but a word: barrier.c.
 */
#include "plan/algo/algo.h"

void hk__leader_view(const struct hk_plan *plan, uint32_t rank, uint32_t head,
		     struct leader_view *view)
{
	uint32_t head_node = hk__node_of(plan, head), node = hk__node_of(plan, rank);
	uint32_t first = hk__node_first(plan, node), size = hk__node_size(plan, node);
	uint32_t turn = node == head_node ? head - first : 0;

	*view = (struct leader_view){
		.node = node,
		.first = first,
		.mates = { .n = size,
			   .me = hk__mod_sub(rank - first, turn, size),
			   .base = first,
			   .stride = 1,
			   .turn = turn },
		.leaders = { .n = plan->nodes,
			     .me = hk__mod_sub(node, head_node, plan->nodes),
			     .stride = plan->n / plan->nodes,
			     .turn = head_node,
			     .table = plan->node_first,
			     .headed = true,
			     .head = head },
	};
}

/* ---- chains ---- */

void hk__chain_up_step(const struct team *team, struct hk_span src, struct hk_span dst,
		       uint32_t count, struct hk_step *step)
{
	uint32_t me = team->me;

	hk_assert(team->n > 1);
	if (me == team->n - 1) {
		step_send(step, team_port(team, me - 1), src, count);
		return;
	}
	step_recv_reduce(step, team_port(team, me + 1), src, me ? span_none : dst, count);
	if (me) {
		step->op = HK_OP_RECV_REDUCE_SEND;
		step->to = team_port(team, me - 1);
	}
}

void hk__chain_down_step(const struct team *team, struct hk_span at, uint32_t count,
			 struct hk_step *step)
{
	uint32_t me = team->me;

	hk_assert(team->n > 1);
	if (me == 0)
		step_send(step, team_port(team, 1), at, count);
	else if (me < team->n - 1)
		step_recv_send(step, team_port(team, me - 1), team_port(team, me + 1), at, count);
	else
		step_recv(step, team_port(team, me - 1), at, count);
}

/* ---- allreduce "leader": part k is whole at the leader of node k first ---- */

static uint32_t allreduce_parts(const struct hk_plan *plan)
{
	return plan->nodes;
}

static uint32_t allreduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	if (lane != LEADER_ACROSS)
		return at.mates.n > 1 ? plan->nodes : 0;
	/* A node alone has its sum, but a rank alone has to copy it. */
	return at.mates.me == 0 && (plan->nodes > 1 || plan->n == 1)
		       ? hk__ring_allreduce_steps(plan->nodes)
		       : 0;
}

/*
 * The ring takes parts node - 1, node - 2, ..., node; from step N - 1 on it
 * has node, node - 1, ... whole. Chains go up and down in these orders.
 */
static void allreduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	uint32_t nodes = plan->nodes;
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	at.mates.lane = at.leaders.lane = lane;
	bool leads = at.mates.me == 0, alone = at.mates.n == 1;
	if (lane == LEADER_UP) {
		uint32_t part = hk__mod_sub(at.node, i + 1, nodes);

		hk__chain_up_step(&at.mates, span(HK_BUF_IN, part), span(HK_BUF_OUT, part), 1,
				  step);
	} else if (lane == LEADER_ACROSS) {
		struct ring ring = { .team = at.leaders,
				     .blocks = { 0, 1, 1 },
				     .src = alone ? HK_BUF_IN : HK_BUF_OUT,
				     .dst = HK_BUF_OUT };

		hk__ring_allreduce_step(&ring, i, step);
		if (!alone && i < nodes)
			step->after = (struct hk_after){ LEADER_UP, i };
	} else {
		uint32_t part = hk__mod_sub(at.node, i, nodes);

		hk__chain_down_step(&at.mates, span(HK_BUF_OUT, part), 1, step);
		/* In place, what comes down lies where a chain upwards has read. */
		if (leads && nodes > 1)
			step->after = (struct hk_after){ LEADER_ACROSS, nodes - 1 + i };
		else if (i == 0)
			step->after = (struct hk_after){ LEADER_UP, nodes - 1 };
	}
}

/* ---- allreduce "leader-direct": to the leader, among leaders, back ---- */

/* Steps of a leader before and after it talks across. */
static uint32_t direct_mates(const struct leader_view *at)
{
	return at->mates.n - 1;
}

static uint32_t direct_across_steps(const struct hk_plan *plan, const struct leader_view *at)
{
	if (plan->nodes == 1)
		return plan->n == 1;
	return plan->nodes - 1 + hk__accumulate_steps(plan->nodes, at->leaders.me);
}

static uint32_t direct_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	return at.mates.me == 0 && at.leaders.me >= 2;
}

static uint32_t direct_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, 0, &at);
	return at.mates.me ? 2 : 2 * direct_mates(&at) + direct_across_steps(plan, &at);
}

static void direct_across_step(const struct leader_view *at, uint32_t i, struct hk_step *step)
{
	struct hk_span sum = span(at->mates.n > 1 ? HK_BUF_OUT : HK_BUF_IN, 0);
	const struct team *team = &at->leaders;

	if (i < team->n - 1) {
		step_send(step, team_port(team, team_next(team, i + 1)), sum, 1);
		return;
	}
	struct accumulate acc = { .team = *team,
				  .in = sum,
				  .out = span(HK_BUF_OUT, 0),
				  .scratch = span(HK_BUF_SCRATCH, 0),
				  .count = 1 };
	hk__accumulate_step(&acc, i - (team->n - 1), step);
}

static void direct_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct hk_span in = span(HK_BUF_IN, 0), out = span(HK_BUF_OUT, 0);
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, 0, &at);
	if (at.mates.me) {
		if (i == 0)
			step_send(step, team_port(&at.mates, 0), in, 1);
		else
			step_recv(step, team_port(&at.mates, 0), out, 1);
		return;
	}
	uint32_t mates = direct_mates(&at), across = direct_across_steps(plan, &at);
	if (i < mates)
		step_recv_reduce(step, team_port(&at.mates, i + 1), i ? out : in, out, 1);
	else if (i < mates + across)
		direct_across_step(&at, i - mates, step);
	else
		step_send(step, team_port(&at.mates, i - mates - across + 1), out, 1);
}

/* ---- broadcast and reduce: the root leads its node ---- */

enum {
	LEADER_STAR,
	LEADER_CHAIN
};

static void tree_add_next(struct tree_node *tree, const struct team *team)
{
	if (team->me + 1 < team->n)
		tree->listed[tree->nlisted++] = team_port(team, team->me + 1);
}

/* Star: the root over all leaders, a binomial tree in every node. */
static void tree_star(const struct leader_view *at, struct tree_node *tree)
{
	hk__tree_binomial(&at->mates, tree);
	if (at->mates.me)
		return;
	if (at->leaders.me) {
		tree->has_parent = true;
		tree->parent = team_port(&at->leaders, 0);
		return;
	}
	tree->star = true;
	tree->teams[0] = at->leaders;
	tree->teams[1] = at->mates;
	tree->nkids += at->leaders.n - 1;
}

/* Chain: from leader to leader, and along every node. */
static void tree_chain(const struct leader_view *at, struct tree_node *tree)
{
	const struct team *above = at->mates.me ? &at->mates : &at->leaders;

	*tree = (struct tree_node){ .has_parent = above->me != 0 };
	if (tree->has_parent)
		tree->parent = team_port(above, above->me - 1);
	if (!at->mates.me)
		tree_add_next(tree, &at->leaders);
	tree_add_next(tree, &at->mates);
	tree->nkids = tree->nlisted;
}

static void tree_of(const struct hk_plan *plan, uint32_t rank, struct tree_node *tree)
{
	struct leader_view at;

	hk__leader_view(plan, rank, plan->root, &at);
	if (plan->algo->variant == LEADER_CHAIN)
		tree_chain(&at, tree);
	else
		tree_star(&at, tree);
}

static uint32_t broadcast_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct tree_node tree;

	(void)lane;
	tree_of(plan, rank, &tree);
	return hk__tree_fanout_steps(&tree);
}

static void broadcast_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct tree_node tree;

	(void)lane;
	tree_of(plan, rank, &tree);
	hk__tree_fanout_step(&tree, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), 1, i, step);
}

static uint32_t reduce_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct tree_node tree;

	tree_of(plan, rank, &tree);
	return tree.has_parent && tree.nkids > 1;
}

static uint32_t reduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct tree_node tree;

	(void)lane;
	tree_of(plan, rank, &tree);
	return hk__tree_fanin_steps(&tree);
}

static void reduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct tree_node tree;

	(void)lane;
	tree_of(plan, rank, &tree);
	hk__tree_fanin_step(&tree, span(HK_BUF_IN, 0), span(HK_BUF_SCRATCH, 0), span(HK_BUF_OUT, 0),
			    i, step);
}

const struct hk_algo hk__algo_leader[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .slots = RING_SLOTS,
	  .nlanes = LEADER_LANES,
	  .info = { "leader", NULL, "through one rank of each node: chains in it, a ring across",
		    "2*(g-1) + 2*(N-1)", "max((g > 1) + 2*(N-1)/N, 2*(g > 2))", "(g > 1) + (N-1)/N",
		    "0", LEADER_LIMITS "; large vectors" },
	  .parts = allreduce_parts,
	  .steps = allreduce_steps,
	  .step = allreduce_step },
	{ .coll = HK_COLL_ALLREDUCE,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .info = { "leader-direct", NULL,
		    "through one rank of each node, which tells all the others",
		    "2*(g > 1) + (N > 1)", "g-1 + N-1", "g-1 + N-1", "N > 2 ? 1 : 0",
		    LEADER_LIMITS "; small vectors, few nodes" },
	  .scratch = direct_scratch,
	  .steps = direct_steps,
	  .step = direct_step },
	{ .coll = HK_COLL_BROADCAST,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .variant = LEADER_STAR,
	  .info = { "leader", NULL, "to one rank of each node, then down a tree in the node",
		    "(N > 1) + flog2(g)", "N-1 + clog2(g)", "0", "0",
		    LEADER_LIMITS "; small vectors, few nodes" },
	  .steps = broadcast_steps,
	  .step = broadcast_step },
	{ .coll = HK_COLL_BROADCAST,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .variant = LEADER_CHAIN,
	  .info = { "leader-chain", NULL, "along one rank of each node, and along every node",
		    "N-1 + g-1", "(N > 1) + (g > 1)", "0", "0", LEADER_LIMITS "; large vectors" },
	  .steps = broadcast_steps,
	  .step = broadcast_step },
	{ .coll = HK_COLL_REDUCE,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .variant = LEADER_STAR,
	  .info = { "leader", NULL, "up a tree to one rank of each node, then to the root",
		    "(N > 1) + flog2(g)", "1", "N-1 + clog2(g)",
		    "min(1, (N > 1)*(g > 2) + (g > 6))",
		    LEADER_LIMITS "; small vectors, few nodes" },
	  .scratch = reduce_scratch,
	  .steps = reduce_steps,
	  .step = reduce_step },
	{ .coll = HK_COLL_REDUCE,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN,
	  .variant = LEADER_CHAIN,
	  .info = { "leader-chain", NULL, "along every node, then along one rank of each",
		    "N-1 + g-1", "1", "(N > 1) + (g > 1)", "(N > 2)*(g > 1)",
		    LEADER_LIMITS "; large vectors" },
	  .scratch = reduce_scratch,
	  .steps = reduce_steps,
	  .step = reduce_step },
	{ .info = { .name = NULL } },
};
