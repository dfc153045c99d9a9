/* SPDX-License-Identifier: Apache-2.0 */
/* algos.c - the table of all algorithms, in the order people see them. */
#include "plan/algo/algo.h"

static const struct hk_algo *const families[] = {
	hk__algo_direct,
	hk__algo_ring,
	hk__algo_butterfly,
	hk__algo_bruck,
	hk__algo_pat,
	hk__algo_pairwise,
	hk__algo_tree,
	hk__algo_dbtree,
	hk__algo_compose,
	hk__algo_direct_rooted,
	hk__algo_twolevel,
	hk__algo_twolevel_halving,
	hk__algo_barrier,
	hk__algo_sendrecv,
	hk__algo_leader,
	hk__algo_leader_blocks,
	hk__algo_leader_alltoall,
	hk__algo_put,
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* By collective first, then by family: a walk, as there are a few dozen. */
const struct hk_algo *hk__algo_at(uint32_t i)
{
	for (unsigned coll = 0; coll < HK_COLL_COUNT; coll++)
		for (unsigned f = 0; f < FAMILIES; f++)
			for (const struct hk_algo *algo = families[f]; algo->info.name; algo++)
				if (algo->coll == coll && i-- == 0)
					return algo;
	return NULL;
}
