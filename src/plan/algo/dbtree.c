/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dbtree.c - allreduce over two binary trees at once, half the vector each.
 *
 * The trees are in-order binary trees under a root with one child; the second
 * is the first mirrored (n even) or shifted by one (n odd), so that a rank
 * which is inner in one is a leaf in the other and both directions of every
 * link are used. Lane 2t goes up tree t (reduce), lane 2t + 1 down (broadcast),
 * so that slices overlap; a rank's way down starts after its way up.
 *
 * Costs (steps / sent / reduced): 2 ceil(log2 n) / min(n, 4)/2 / 1 (n = 2: 1/2)
 */
#include "plan/algo/algo.h"

/*
 * The tree of labels: 0 is the root, its child the largest power of two below
 * n; label x with lowest bit b has its children b/2 away on both sides, the
 * right one coming nearer until it is a label. Parents follow from that.
 */
static uint32_t label_parent(uint32_t n, uint32_t x)
{
	uint32_t bit = x & -x;
	uint32_t up = (x ^ bit) | bit << 1;

	/* Right of all inner labels: climb on the left side instead. */
	return up < n ? up : x ^ bit;
}

static uint32_t label_kids(uint32_t n, uint32_t x, uint32_t kids[2])
{
	uint32_t count = 0;

	if (x == 0) {
		if (n > 1)
			kids[count++] = 1u << hk__flog2(n - 1);
		return count;
	}
	uint32_t half = (x & -x) >> 1;
	if (half)
		kids[count++] = x - half;
	if (half && x + 1 < n)
		kids[count++] = x + hk__min(half, 1u << hk__flog2(n - 1 - x));
	return count;
}

/* Label and rank in tree t; either map is its own inverse or a shift. */
static uint32_t dbtree_label(uint32_t n, uint32_t t, uint32_t rank)
{
	if (t == 0)
		return rank;
	return n % 2 ? hk__mod_sub(rank, 1, n) : n - 1 - rank;
}

static uint32_t dbtree_rank(uint32_t n, uint32_t t, uint32_t label)
{
	if (t == 0)
		return label;
	return n % 2 ? hk__mod_add(label, 1, n) : n - 1 - label;
}

static void dbtree_node(const struct hk_plan *plan, uint32_t rank, uint32_t lane,
			struct tree_node *node)
{
	uint32_t n = plan->n, t = lane / 2, label = dbtree_label(n, t, rank), kids[2];

	*node = (struct tree_node){ .has_parent = label != 0 };
	if (node->has_parent)
		node->parent = (struct hk_port){ dbtree_rank(n, t, label_parent(n, label)), lane };
	node->nkids = node->nlisted = label_kids(n, label, kids);
	for (uint32_t k = 0; k < node->nkids; k++)
		node->listed[k] = (struct hk_port){ dbtree_rank(n, t, kids[k]), lane };
}

static uint32_t allreduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct tree_node node;

	dbtree_node(plan, rank, lane, &node);
	if (lane % 2 == 0)
		return hk__tree_fanin_steps(&node);
	/* The root has its result in place already: no copy. */
	return hk__tree_fanout_steps(&node) - !node.has_parent;
}

static void allreduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct tree_node node;
	struct hk_span in = span(HK_BUF_IN, lane / 2), out = span(HK_BUF_OUT, lane / 2);

	dbtree_node(plan, rank, lane, &node);
	if (lane % 2 == 0) {
		hk__tree_fanin_step(&node, in, out, out, i, step);
		return;
	}
	hk__tree_fanout_step(&node, out, out, 1, i, step);
	if (i == 0)
		step->after = (struct hk_after){ lane - 1, hk__tree_fanin_steps(&node) - 1 };
}

static uint32_t dbtree_parts(const struct hk_plan *plan)
{
	(void)plan;
	return 2;
}

const struct hk_algo hk__algo_dbtree[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .nlanes = 4,
	  .info = { "double-tree", "double-binary-tree", "two binary trees, half the vector each",
		    "2*clog2(n)", "min(n, 4)/2", "n > 2 ? 1 : 1/2", "0", "any n; many nodes" },
	  .parts = dbtree_parts,
	  .steps = allreduce_steps,
	  .step = allreduce_step },
	{ .info = { .name = NULL } },
};
