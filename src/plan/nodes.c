/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.c - which ranks share a node. Ranks of a node lie side by side; nodes
 * of equal sizes are arithmetic, others a table of first ranks in which a
 * rank's node is searched for.
 */
#include "plan/plan.h"

#include <string.h>

enum hk_status hk__nodes_check(uint32_t n, uint32_t nodes, const uint32_t *sizes,
			       struct hk_why *why)
{
	uint64_t sum = 0;

	if (nodes == 0)
		return hk__why(why, HK_EINVAL, "sizes of nodes, but no number of them");
	if (nodes > n)
		return hk__why(why, HK_EINVAL, "%u nodes are more than %u ranks", nodes, n);
	for (uint32_t k = 0; k < nodes; k++) {
		if (sizes[k] == 0)
			return hk__why(why, HK_EINVAL, "node %u has no rank; leave it out", k);
		sum += sizes[k];
	}
	if (sum != n)
		return hk__why(why, HK_EINVAL, "nodes of %llu ranks in all, but there are %u",
			       (unsigned long long)sum, n);
	return HK_OK;
}

bool hk__nodes_equal(uint32_t nodes, const uint32_t *sizes)
{
	for (uint32_t k = 1; sizes && k < nodes; k++)
		if (sizes[k] != sizes[0])
			return false;
	return true;
}

enum hk_status hk__nodes_store(struct hk_plan *plan, uint32_t nodes, const uint32_t *sizes)
{
	plan->nodes = nodes;
	if (hk__nodes_equal(nodes, sizes))
		return HK_OK;
	plan->node_sizes = hk__mem_zalloc(plan->alloc, nodes, sizeof(*plan->node_sizes));
	plan->node_first =
		hk__mem_zalloc(plan->alloc, (size_t)nodes + 1, sizeof(*plan->node_first));
	if (!plan->node_sizes || !plan->node_first)
		return HK_ENOMEM;
	memcpy(plan->node_sizes, sizes, nodes * sizeof(*sizes));
	for (uint32_t k = 0; k < nodes; k++)
		plan->node_first[k + 1] = plan->node_first[k] + sizes[k];
	return HK_OK;
}

void hk__nodes_free(struct hk_plan *plan)
{
	hk__mem_free(plan->alloc, plan->node_sizes, plan->nodes, sizeof(*plan->node_sizes));
	hk__mem_free(plan->alloc, plan->node_first, (size_t)plan->nodes + 1,
		     sizeof(*plan->node_first));
}

uint32_t hk__node_max(const struct hk_plan *plan, uint32_t but)
{
	uint32_t size = 1;

	if (!plan->node_sizes)
		return but == HK_NONE || plan->nodes > 1 ? plan->n / plan->nodes : 1;
	for (uint32_t k = 0; k < plan->nodes; k++)
		if (k != but)
			size = hk__max(size, plan->node_sizes[k]);
	return size;
}

uint32_t hk__node_of(const struct hk_plan *plan, uint32_t rank)
{
	uint32_t low = 0, end = plan->nodes;

	if (!plan->node_first)
		return rank / (plan->n / plan->nodes);
	/* node_first[low] <= rank < node_first[end] */
	while (end - low > 1) {
		uint32_t middle = low + (end - low) / 2;

		if (plan->node_first[middle] <= rank)
			low = middle;
		else
			end = middle;
	}
	return low;
}
