/* SPDX-License-Identifier: Apache-2.0 */
/* where_test.c - which ranks share a host, duplicates of groups, and ranks of one in another. */
#include "group/world.h"
#include "harness.h"

#include <hocket/hocket.h>

/* ---- hosts ---- */

static const uint32_t hosts[] = { 2, 3, 1 };
#define RANKS 6u

/* In the order in which ranks first name them, whichever that is in other groups. */
static void hosts_rank(struct world_seat *seat)
{
	static const uint32_t host[RANKS] = { 0, 0, 1, 1, 1, 2 };
	static const uint32_t local[RANKS] = { 0, 1, 0, 1, 2, 0 };
	struct hk_group *back;

	CHECK_EQ(hk_group_hosts(seat->group), 3);
	CHECK_EQ(hk_group_local_rank(seat->group), local[seat->rank]);
	CHECK_EQ(hk_group_local_size(seat->group), hosts[host[seat->rank]]);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_EQ(hk_group_host(seat->group, r), host[r]);
	CHECK_EQ(hk_group_host(seat->group, RANKS), HK_NONE);
	/* Ranks 5, 3, 1 and 4, 2, 0: hosts of one are not side by side. */
	CHECK_EQ(hk_group_split(seat->group, seat->rank % 2, RANKS - seat->rank, &back), HK_OK);
	bool odd = seat->rank % 2;
	CHECK_EQ(hk_group_hosts(back), odd ? 3 : 2);
	CHECK_EQ(hk_group_host(back, 0), 0);
	CHECK_EQ(hk_group_host(back, 1), odd ? 1 : 0);
	CHECK_EQ(hk_group_host(back, 2), odd ? 2 : 1);
	CHECK_EQ(hk_group_local_rank(back), seat->rank == 2);
	CHECK_EQ(hk_group_local_size(back), seat->rank == 2 || seat->rank == 4 ? 2 : 1);
	hk_group_free(back);
}

TEST(ranks_of_three_hosts)
{
	static const enum world_kind kinds[] = { WORLD_MIXED_THREADS, WORLD_MIXED_PROCESSES };

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct world_spec spec = {
			.kind = kinds[k], .n = RANKS, .hosts = hosts, .nhosts = 3
		};

		world_run(&spec, hosts_rank, NULL);
	}
}

static void one_host_rank(struct world_seat *seat)
{
	CHECK_EQ(hk_group_hosts(seat->group), 1);
	CHECK_EQ(hk_group_local_rank(seat->group), seat->rank);
	CHECK_EQ(hk_group_local_size(seat->group), seat->n);
	for (uint32_t r = 0; r < seat->n; r++)
		CHECK_EQ(hk_group_host(seat->group, r), 0);
}

TEST(ranks_of_one_host)
{
	struct world_spec threads = { .kind = WORLD_THREADS_SHM, .n = 3 };
	struct world_spec processes = { .kind = WORLD_PROCESSES_TCP, .n = 3 };

	world_run(&threads, one_host_rank, NULL);
	world_run(&processes, one_host_rank, NULL);
}
