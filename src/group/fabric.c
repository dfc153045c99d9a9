/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.c - what a group runs on, as a fabric, and the algorithm that the
 * simulator finds fastest there.
 *
 * The constants are those of the fabric that was named (HOCKET_FABRIC, as written
 * by hocket probe), or the library's own. All ranks have to have the same, so that
 * all choose alike; group_agree sees to that. How operations are cut does not follow
 * from them (hk_fabric_hosts), as ranks have to cut alike before they agree.
 */
#include "group/group.h"

#include "sim/choose.h"

/* More is estimated, not simulated: nobody waits seconds for a choice. */
#define MESSAGES_MAX 200000u
/* And more ranks on shared cores: nothing is folded then, and all of them choose in turn. */
#define CROWDED_RANKS_MAX 16u

/* Where memory is not shared every rank is as far as on a host of its own. */
static enum hk_status fabric_of_ranks(struct hk_group *group, struct hk_why *why)
{
	uint32_t *sizes = hk__mem_zalloc(group->alloc, group->n, sizeof(*sizes));

	if (!sizes)
		return HK_ENOMEM;
	for (uint32_t r = 0; r < group->n; r++)
		sizes[r] = 1;
	enum hk_status status = hk_fabric_hosts(group->world->like, sizes, group->n, group->alloc,
						why, &group->fabric);
	hk__mem_free(group->alloc, sizes, group->n, sizeof(*sizes));
	return status;
}

/* Hosts of many different sizes are priced as if they were alike. */
static enum hk_status fabric_of_hosts(struct hk_group *group, struct hk_why *why)
{
	const struct hk_fabric *like = group->world->like;
	enum hk_status status = HK_ELIMIT;

	if (group->node_sizes)
		status = hk_fabric_hosts(like, group->node_sizes, group->nodes, group->alloc, why,
					 &group->fabric);
	if (status != HK_ELIMIT)
		return status;
	uint32_t each = (group->n + group->nodes - 1) / group->nodes;
	uint32_t *sizes = hk__mem_zalloc(group->alloc, group->nodes, sizeof(*sizes));
	if (!sizes)
		return HK_ENOMEM;
	for (uint32_t i = 0; i < group->nodes; i++)
		sizes[i] = each;
	status = hk_fabric_hosts(like, sizes, group->nodes, group->alloc, why, &group->fabric);
	hk__mem_free(group->alloc, sizes, group->nodes, sizeof(*sizes));
	return status;
}

enum hk_status hk__group_fabric(struct hk_group *group, struct hk_why *why)
{
	hk_fabric_free(group->fabric);
	group->fabric = NULL;
	enum hk_status status = group->world->shm || group->n == 1 ? fabric_of_hosts(group, why)
								   : fabric_of_ranks(group, why);
	if (status != HK_OK)
		return status;
	for (uint32_t i = 0; group->world->given && i < group->fabric->nwires; i++)
		group->fabric->wires[i].cut = group->world->cut;
	hk__fabric_cut(group->fabric, group->n, NULL, &group->chans.cut);
	hk__fabric_crowd(group->fabric, group->world->crowd);
	hk__fabric_view_init(&group->view, group->fabric, group->n, group->nodes,
			     group->node_sizes);
	return HK_OK;
}

enum hk_status hk__group_select(const struct hk_group *group, enum hk_coll coll, double bytes,
				struct hk_algo_info *algo_out)
{
	struct hk_sim_candidate candidates[HK_SIM_CANDIDATES_MAX];
	struct hk_sim_choice what = { .coll = coll, .ranks = group->n, .bytes = bytes };
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	uint32_t count = 0;

	if (group->n > CROWDED_RANKS_MAX && hk__fabric_cores_shared(group->fabric)) {
		hk__select(&group->view, coll, bytes, algo_out);
		return HK_OK;
	}
	opts.alloc = group->alloc;
	opts.messages_max = MESSAGES_MAX;
	enum hk_status status =
		hk__candidates(group->fabric, &group->view, &what, &opts, NULL, candidates, &count);
	if (status == HK_ENOMEM)
		return status;
	hk_assert(count > 0);
	/* What cannot be simulated, on any rank, is estimated: the first by that. */
	if (status != HK_OK || hk_algo_find(coll, candidates[0].algo, algo_out) != HK_OK)
		hk__select(&group->view, coll, bytes, algo_out);
	return HK_OK;
}
