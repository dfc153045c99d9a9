/* SPDX-License-Identifier: Apache-2.0 */
/* where.c - where ranks of a group are: on which hosts, and which ranks of other groups. */
#include "group/group.h"

/* ---- hosts ---- */

static uint32_t node_of(const struct hk_group *group, uint32_t rank)
{
	return group->world->node[hk__chans_rank(&group->chans, rank)];
}

/* Of the ranks below `end`, how many are on the host of `rank`. */
static uint32_t ranks_beside(const struct hk_group *group, uint32_t rank, uint32_t end)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < end; r++)
		count += node_of(group, r) == node_of(group, rank);
	return count;
}

uint32_t hk_group_local_rank(const struct hk_group *group)
{
	return ranks_beside(group, group->rank, group->rank);
}

uint32_t hk_group_local_size(const struct hk_group *group)
{
	return ranks_beside(group, group->rank, group->n);
}

uint32_t hk_group_hosts(const struct hk_group *group)
{
	return group->nodes;
}

uint32_t hk_group_host(const struct hk_group *group, uint32_t rank)
{
	if (rank >= group->n)
		return HK_NONE;
	return group->hosts ? group->hosts[rank] : 0;
}

/* Where the node of a rank is among `count` that are sorted. */
static uint32_t node_find(const uint32_t *sorted, uint32_t count, uint32_t node)
{
	uint32_t low = 0, high = count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (sorted[middle] <= node)
			low = middle;
		else
			high = middle;
	}
	return low;
}

enum hk_status hk__group_number_hosts(struct hk_group *group, uint32_t *sorted)
{
	uint32_t *number = hk__mem_zalloc(group->alloc, group->nodes, sizeof(uint32_t));
	uint32_t distinct = 0, numbered = 0;

	group->hosts = hk__mem_zalloc(group->alloc, group->n, sizeof(uint32_t));
	for (uint32_t r = 0; r < group->n; r++) {
		if (r == 0 || sorted[r] != sorted[distinct - 1])
			sorted[distinct++] = sorted[r];
	}
	for (uint32_t r = 0; number && group->hosts && r < group->n; r++) {
		uint32_t *at = &number[node_find(sorted, distinct, node_of(group, r))];

		if (*at == 0)
			*at = ++numbered; /* 0: none of its ranks was met */
		group->hosts[r] = *at - 1;
	}
	enum hk_status status = number && group->hosts ? HK_OK : HK_ENOMEM;
	hk__mem_free(group->alloc, number, group->nodes, sizeof(uint32_t));
	return status;
}

/* ---- ranks of other groups ---- */

_Static_assert(0u - 1 == HK_NONE, "one less than no rank is none");

/* Of each rank of the world, which one of the group it is, and one more; 0: none. */
static uint32_t *ranks_invert(const struct hk_group *group)
{
	uint32_t *inverse = hk__mem_zalloc(group->alloc, group->world->n, sizeof(uint32_t));

	for (uint32_t r = 0; inverse && r < group->n; r++)
		inverse[hk__chans_rank(&group->chans, r)] = r + 1;
	return inverse;
}

enum hk_status hk_group_translate(struct hk_group *from, const uint32_t *ranks, uint32_t n,
				  const struct hk_group *to, uint32_t *ranks_out)
{
	if (!from || !to || (n > 0 && (!ranks || !ranks_out)) || hk__world_inherited(from->world) ||
	    hk__world_inherited(to->world))
		return HK_EINVAL;
	if (from->world != to->world)
		return hk__group_refuse(from, HK_EINVAL,
					"the groups were created apart: ranks of one have no rank "
					"in the other");
	for (uint32_t i = 0; i < n; i++) {
		if (ranks[i] >= from->n)
			return hk__group_refuse(from, HK_EINVAL,
						"ranks[%u] is %u: the group has %u ranks, from 0",
						i, ranks[i], from->n);
	}
	uint32_t *inverse = n > 1 ? ranks_invert(to) : NULL;
	if (n > 1 && !inverse)
		return hk__group_refuse(from, HK_ENOMEM, "no memory to translate %u ranks", n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t rank = hk__chans_rank(&from->chans, ranks[i]);

		ranks_out[i] = inverse ? inverse[rank] - 1 : hk__group_rank_of(to, rank);
	}
	hk__mem_free(to->alloc, inverse, to->world->n, sizeof(uint32_t));
	return HK_OK;
}
