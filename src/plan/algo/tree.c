/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - one tree: broadcast, reduce, gather and scatter over a binomial
 * tree; broadcast and reduce also along a chain (a tree of one branch, which
 * slices turn into a pipeline) and over a tree of two levels (binomial across
 * N nodes, then in each node of g).
 *
 * Member 0 of the team is the root. In a binomial tree the parent of v is v
 * without its lowest set bit, so the subtree of v is v, v+1, ... and a
 * subtree's blocks lie side by side.
 *
 * Costs (steps / sent / reduced):
 *   broadcast binomial  floor(log2 n) / ceil(log2 n)   / 0
 *   reduce binomial     floor(log2 n) / 1              / ceil(log2 n)
 *   broadcast chain     n-1           / 1              / 0
 *   reduce chain        n-1           / 1              / 1
 *   broadcast two-level floor(log2 N) + floor(log2 g) / the same, ceil / 0
 *   reduce two-level    floor(log2 N) + floor(log2 g) / 1 / the same, ceil
 *   gather binomial     floor(log2 n) / about 1/2      / 0
 *   scatter binomial    floor(log2 n) / (n-1)/n        / 0
 * (A path down the tree has as many messages as its member number has bits;
 * that a rank sends to its children one after the other is not counted.)
 */
#include "plan/algo/algo.h"

/* ---- binomial arithmetic ---- */

uint32_t hk__binomial_nkids(uint32_t n, uint32_t v)
{
	/* v + 2^b is a child while 2^b is below v's lowest bit and v + 2^b < n. */
	uint32_t by_size = n - 1 - v ? hk__flog2(n - 1 - v) + 1 : 0;

	return v ? hk__min(by_size, (uint32_t)__builtin_ctz(v)) : by_size;
}

uint32_t hk__binomial_kid(uint32_t n, uint32_t v, uint32_t k)
{
	uint32_t nkids = hk__binomial_nkids(n, v);

	hk_assert(k < nkids);
	return v + (1u << (nkids - 1 - k));
}

uint32_t hk__binomial_parent(uint32_t v)
{
	return v & (v - 1);
}

uint32_t hk__binomial_size(uint32_t n, uint32_t v)
{
	return v ? hk__min(v & -v, n - v) : n;
}

uint32_t hk__binomial_widest(uint32_t n)
{
	if (n == 1)
		return 1;
	/* The last child of the root may lack members; the one before it does not. */
	uint32_t last = 1u << hk__flog2(n - 1);
	return hk__max(n - last, last / 2);
}

void hk__tree_binomial(const struct team *team, struct tree_node *node)
{
	*node = (struct tree_node){ .has_parent = team->me != 0, .teams = { *team } };
	if (node->has_parent)
		node->parent = team_port(team, hk__binomial_parent(team->me));
	node->nkids = hk__binomial_nkids(team->n, team->me);
}

static struct hk_port tree_kid(const struct tree_node *node, uint32_t k)
{
	const struct team *team = &node->teams[0];

	hk_assert(k < node->nkids);
	if (k < node->nlisted)
		return node->listed[k];
	k -= node->nlisted;
	uint32_t first = node->star ? team->n - 1 : hk__binomial_nkids(team->n, team->me);
	if (node->star && k < first)
		return team_port(team, k + 1);
	if (k >= first) {
		k -= first;
		team = &node->teams[1];
	}
	hk_assert(team->n > 0);
	return team_port(team, hk__binomial_kid(team->n, team->me, k));
}

static void tree_chain(const struct team *team, struct tree_node *node)
{
	*node = (struct tree_node){ .has_parent = team->me != 0 };
	if (node->has_parent)
		node->parent = team_port(team, team->me - 1);
	if (team->me + 1 < team->n)
		node->listed[0] = team_port(team, team->me + 1);
	node->nkids = node->nlisted = team->me + 1 < team->n;
}

/* ---- down and up any tree ---- */

uint32_t hk__tree_fanout_steps(const struct tree_node *node)
{
	/* The root sends and copies; others receive with the first send. */
	if (!node->has_parent)
		return node->nkids + 1;
	return node->nkids ? node->nkids : 1;
}

void hk__tree_fanout_step(const struct tree_node *node, struct hk_span src, struct hk_span dst,
			  uint32_t count, uint32_t i, struct hk_step *step)
{
	if (!node->has_parent && i == node->nkids) {
		step_copy(step, src, dst, count);
		return;
	}
	if (!node->has_parent)
		step_send(step, tree_kid(node, i), src, count);
	else if (i > 0)
		step_send(step, tree_kid(node, i), dst, count);
	else if (node->nkids)
		step_recv_send(step, node->parent, tree_kid(node, 0), dst, count);
	else
		step_recv(step, node->parent, dst, count);
}

uint32_t hk__tree_fanin_steps(const struct tree_node *node)
{
	/* A leaf sends, and a root alone copies; others take from each child. */
	return node->nkids ? node->nkids : 1;
}

void hk__tree_fanin_step(const struct tree_node *node, struct hk_span src, struct hk_span acc,
			 struct hk_span dst, uint32_t i, struct hk_step *step)
{
	if (node->nkids == 0) {
		if (node->has_parent)
			step_send(step, node->parent, src, 1);
		else
			step_copy(step, src, dst, 1);
		return;
	}
	/* The smallest subtree is ready first. */
	struct hk_port kid = tree_kid(node, node->nkids - 1 - i);
	struct hk_span sum = node->has_parent ? acc : dst;
	step_recv_reduce(step, kid, i == 0 ? src : sum, sum, 1);
	if (node->has_parent && i == node->nkids - 1) {
		step->op = HK_OP_RECV_REDUCE_SEND;
		step->to = node->parent;
		step->dst = span_none;
	}
}

/* ---- broadcast and reduce, on three kinds of trees ---- */

enum {
	TREE_BINOMIAL,
	TREE_CHAIN,
	TREE_TWOLEVEL
};

/* Binomial across nodes on the root's rail, and in each node below that rail. */
static void tree_twolevel(const struct hk_plan *plan, uint32_t rank, struct tree_node *tree)
{
	uint32_t g = plan->n / plan->nodes;
	struct team node = team_node(plan, rank, plan->root % g);
	struct tree_node inner;

	hk__tree_binomial(&node, &inner);
	if (inner.has_parent) {
		*tree = inner;
		return;
	}
	struct team rail = team_rail(plan, rank, plan->root / g);
	hk__tree_binomial(&rail, tree);
	tree->teams[1] = node;
	tree->nkids += inner.nkids;
}

static void tree_of(const struct hk_plan *plan, uint32_t rank, struct tree_node *node)
{
	struct team team = team_all(plan, rank, plan->root);

	if (plan->algo->variant == TREE_TWOLEVEL)
		tree_twolevel(plan, rank, node);
	else if (plan->algo->variant == TREE_CHAIN)
		tree_chain(&team, node);
	else
		hk__tree_binomial(&team, node);
}

static uint32_t broadcast_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct tree_node node;

	(void)lane;
	tree_of(plan, rank, &node);
	return hk__tree_fanout_steps(&node);
}

static void broadcast_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct tree_node node;

	(void)lane;
	tree_of(plan, rank, &node);
	hk__tree_fanout_step(&node, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), 1, i, step);
}

/* Partial sums need a place where a rank that is not the root adds twice. */
static uint32_t reduce_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct tree_node node;

	tree_of(plan, rank, &node);
	return node.has_parent && node.nkids > 1;
}

static uint32_t reduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct tree_node node;

	(void)lane;
	tree_of(plan, rank, &node);
	return hk__tree_fanin_steps(&node);
}

static void reduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct tree_node node;

	(void)lane;
	tree_of(plan, rank, &node);
	hk__tree_fanin_step(&node, span(HK_BUF_IN, 0), span(HK_BUF_SCRATCH, 0), span(HK_BUF_OUT, 0),
			    i, step);
}

/* ---- gather and scatter: member v's scratch slot k is the block of v + k ---- */

static uint32_t blocks_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct team team = team_all(plan, rank, plan->root);
	uint32_t size = hk__binomial_size(plan->n, team.me);

	return team.me && size > 1 ? size : 0;
}

static uint32_t blocks_widest(const struct hk_plan *plan)
{
	return hk__binomial_widest(plan->n);
}

static uint32_t blocks_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct team team = team_all(plan, rank, plan->root);
	uint32_t nkids = hk__binomial_nkids(plan->n, team.me);

	(void)lane;
	if (team.me == 0)
		return nkids + 1;
	return nkids ? nkids + 2 : 1;
}

/* The subtree of member kid, as slots of the root's buffer or of scratch. */
static struct hk_span blocks_of(const struct team *team, enum hk_buf root_buf, uint32_t kid)
{
	if (team->me == 0)
		return span(root_buf, team_port(team, kid).rank);
	return span(HK_BUF_SCRATCH, kid - team->me);
}

static void gather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct team team = team_all(plan, rank, plan->root);
	uint32_t n = plan->n, v = team.me, nkids = hk__binomial_nkids(n, v);
	struct hk_span in = span(HK_BUF_IN, 0);

	(void)lane;
	if (v && nkids == 0) {
		step_send(step, team_port(&team, hk__binomial_parent(v)), in, 1);
	} else if (i == 0) {
		step_copy(step, in, blocks_of(&team, HK_BUF_OUT, v), 1);
	} else if (i <= nkids) {
		/* The smallest subtree is ready first. */
		uint32_t kid = hk__binomial_kid(n, v, nkids - i);

		step_recv(step, team_port(&team, kid), blocks_of(&team, HK_BUF_OUT, kid),
			  hk__binomial_size(n, kid));
	} else {
		step_send(step, team_port(&team, hk__binomial_parent(v)), span(HK_BUF_SCRATCH, 0),
			  hk__binomial_size(n, v));
	}
}

static void scatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	struct team team = team_all(plan, rank, plan->root);
	uint32_t n = plan->n, v = team.me, nkids = hk__binomial_nkids(n, v);
	struct hk_span out = span(HK_BUF_OUT, 0);

	(void)lane;
	if (v && i == 0) {
		step_recv(step, team_port(&team, hk__binomial_parent(v)),
			  nkids ? span(HK_BUF_SCRATCH, 0) : out, hk__binomial_size(n, v));
		return;
	}
	i -= v != 0;
	if (i < nkids) {
		uint32_t kid = hk__binomial_kid(n, v, i);

		step_send(step, team_port(&team, kid), blocks_of(&team, HK_BUF_IN, kid),
			  hk__binomial_size(n, kid));
	} else {
		step_copy(step, blocks_of(&team, HK_BUF_IN, v), out, 1);
	}
}

const struct hk_algo hk__algo_tree[] = {
	{ .coll = HK_COLL_BROADCAST,
	  .variant = TREE_BINOMIAL,
	  .info = { "binomial", "tree", "down a binomial tree, the largest subtree first",
		    "flog2(n)", "clog2(n)", "0", "0", "any n; small vectors" },
	  .steps = broadcast_steps,
	  .step = broadcast_step },
	{ .coll = HK_COLL_BROADCAST,
	  .variant = TREE_CHAIN,
	  .info = { "chain", "pipeline", "from rank to rank; slices make it a pipeline", "n-1", "1",
		    "0", "0", "any n; large vectors" },
	  .steps = broadcast_steps,
	  .step = broadcast_step },
	{ .coll = HK_COLL_REDUCE,
	  .variant = TREE_BINOMIAL,
	  .info = { "binomial", "tree", "up a binomial tree, the smallest subtree first",
		    "flog2(n)", "1", "clog2(n)", "n > 6 ? 1 : 0", "any n; small vectors" },
	  .scratch = reduce_scratch,
	  .steps = reduce_steps,
	  .step = reduce_step },
	{ .coll = HK_COLL_REDUCE,
	  .variant = TREE_CHAIN,
	  .info = { "chain", "pipeline", "from rank to rank; slices make it a pipeline", "n-1", "1",
		    "1", "0", "any n; large vectors" },
	  .steps = reduce_steps,
	  .step = reduce_step },
	{ .coll = HK_COLL_BROADCAST,
	  .flags = HK_ALGO_NODES,
	  .variant = TREE_TWOLEVEL,
	  .info = { "two-level", NULL, "binomial across nodes, then in every node",
		    "flog2(N) + flog2(g)", "clog2(N) + clog2(g)", "0", "0", "n = N nodes of g" },
	  .steps = broadcast_steps,
	  .step = broadcast_step },
	{ .coll = HK_COLL_REDUCE,
	  .flags = HK_ALGO_NODES,
	  .variant = TREE_TWOLEVEL,
	  .info = { "two-level", NULL, "binomial in every node, then across nodes",
		    "flog2(N) + flog2(g)", "1", "clog2(N) + clog2(g)",
		    "min(1, (N > 1)*(g > 2) + (N > 3)*(g > 1) + (N > 6) + (g > 6))",
		    "n = N nodes of g" },
	  .scratch = reduce_scratch,
	  .steps = reduce_steps,
	  .step = reduce_step },
	{ .coll = HK_COLL_GATHER,
	  .info = { "binomial", "tree", "subtrees are gathered on the way to the root", "flog2(n)",
		    "max(n - pow2(n-1), pow2(n-1)/2)/n", "0",
		    "n > 3 ? max(n - pow2(n-1), pow2(n-1)/2)/n : 0",
		    "any n; v: inner ranks know the counts below them" },
	  .scratch = blocks_scratch,
	  .widest = blocks_widest,
	  .steps = blocks_steps,
	  .step = gather_step },
	{ .coll = HK_COLL_SCATTER,
	  .info = { "binomial", "tree", "subtrees are split on the way from the root", "flog2(n)",
		    "(n-1)/n", "0", "n > 3 ? max(n - pow2(n-1), pow2(n-1)/2)/n : 0",
		    "any n; v: inner ranks know the counts below them" },
	  .scratch = blocks_scratch,
	  .widest = blocks_widest,
	  .steps = blocks_steps,
	  .step = scatter_step },
	{ .info = { .name = NULL } },
};
