/* SPDX-License-Identifier: Apache-2.0 */
/* where_test.c - which ranks share a host, duplicates of groups, and ranks of one in another. */
#include "group/group.h"
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

/* ---- duplicates ---- */

static void dup_rank(struct world_seat *seat)
{
	struct hk_group *dup, *part;
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request;
	uint32_t sums[2] = { 1, 1 }, never;

	CHECK_EQ(hk_group_dup(seat->group, NULL), HK_EINVAL);
	CHECK_EQ(hk_group_dup(NULL, &dup), HK_EINVAL);
	CHECK_EQ(hk_group_split(seat->group, seat->rank == 0, seat->n - seat->rank, &part), HK_OK);
	CHECK_EQ(hk_group_dup(part, &dup), HK_OK);
	CHECK_EQ(hk_group_rank(dup), hk_group_rank(part));
	CHECK_EQ(hk_group_size(dup), hk_group_size(part));
	hk_group_free(dup);
	hk_group_free(part);
	/* What waits in one does not hold up the other, nor match its messages. */
	CHECK_EQ(hk_group_dup(seat->group, &dup), HK_OK);
	CHECK_EQ(hk_group_rank(dup), seat->rank);
	uint32_t left = (seat->rank + seat->n - 1) % seat->n;
	opts.request = &request;
	CHECK_EQ(hk_recv(seat->group, &never, 1, HK_TYPE_UINT32, left, &opts), HK_OK);
	CHECK_EQ(hk_allreduce(dup, &sums[0], &sums[1], 1, HK_TYPE_UINT32, HK_REDOP_SUM, NULL),
		 HK_OK);
	CHECK_EQ(sums[1], seat->n);
	/* Nor does a failure of one fail the other. */
	CHECK_EQ(hk_barrier(dup, NULL), HK_OK);
	if (seat->rank == 0)
		CHECK_EQ(hk_group_revoke(dup), HK_OK);
	CHECK_EQ(hk_recv(dup, &sums[0], 1, HK_TYPE_UINT32, left, NULL), HK_EREVOKED);
	CHECK_EQ(hk_send(seat->group, &seat->rank, 1, HK_TYPE_UINT32, (seat->rank + 1) % seat->n,
			 NULL),
		 HK_OK);
	CHECK_EQ(hk_request_wait(request, 0), HK_OK);
	CHECK_EQ(never, left);
	hk_request_free(request);
	CHECK_EQ(hk_group_state(seat->group), HK_OK);
	hk_group_free(dup);
}

TEST(a_duplicate_has_channels_of_its_own)
{
	static const enum world_kind kinds[] = { WORLD_THREADS_SHM, WORLD_PROCESSES_TCP,
						 WORLD_MIXED_PROCESSES };

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct world_spec spec = { .kind = kinds[k], .n = 3, .progress = k % 2 };

		world_run(&spec, dup_rank, NULL);
	}
}

/* ---- ranks of one group in another ---- */

static void translate_rank(struct world_seat *seat)
{
	static const uint32_t asked[] = { 0, 2, 1, 0 };
	struct hk_group *odd = NULL, *all = seat->group, *back;
	uint32_t out[4] = { 9, 9, 9, 9 }, same[2] = { 1, 0 };

	CHECK_EQ(hk_group_split(all, 0, seat->n - seat->rank, &back), HK_OK);
	CHECK_EQ(hk_group_translate(all, asked, 4, back, out), HK_OK);
	CHECK(out[0] == 4 && out[1] == 2 && out[2] == 3 && out[3] == 4);
	CHECK_EQ(hk_group_split(all, seat->rank % 2 ? 0 : HK_NONE, 0, &odd), HK_OK);
	if (odd) {
		/* Ranks 1 and 3 of all. */
		CHECK_EQ(hk_group_translate(odd, same, 2, back, same), HK_OK);
		CHECK(same[0] == 1 && same[1] == 3);
		CHECK_EQ(hk_group_translate(back, asked, 4, odd, out), HK_OK);
		CHECK(out[0] == HK_NONE && out[1] == HK_NONE && out[2] == 1 && out[3] == HK_NONE);
		CHECK_EQ(hk_group_translate(back, NULL, 0, odd, NULL), HK_OK);
		out[0] = 7;
		CHECK_EQ(hk_group_translate(odd, asked, 2, back, out), HK_EINVAL);
		CHECK_STR(hk_group_why(odd), "ranks[1] is 2: the group has 2 ranks, from 0");
		CHECK_EQ(out[0], 7);
	}
	CHECK_EQ(hk_group_translate(all, NULL, 1, back, out), HK_EINVAL);
	CHECK_EQ(hk_group_translate(all, asked, 1, NULL, out), HK_EINVAL);
	hk_group_free(odd);
	hk_group_free(back);
}

TEST(ranks_in_another_group)
{
	struct world_spec threads = { .kind = WORLD_THREADS_SHM, .n = 5 };
	struct world_spec processes = { .kind = WORLD_PROCESSES_SHM, .n = 5 };

	world_run(&threads, translate_rank, NULL);
	world_run(&processes, translate_rank, NULL);
}

/* The first of n ranks of a world of n, in an order of their own. */
static uint32_t *ranks_shuffled(uint32_t n, uint64_t seed)
{
	uint32_t *ranks = malloc(n * sizeof(uint32_t));

	CHECK(ranks);
	for (uint32_t r = 0; r < n; r++)
		ranks[r] = r;
	for (uint32_t r = n - 1; r > 0; r--) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		uint32_t other = (uint32_t)((seed >> 33) % (r + 1)), rank = ranks[r];

		ranks[r] = ranks[other];
		ranks[other] = rank;
	}
	return ranks;
}

/* As many that to search for each among all would take longer than a test may. */
TEST(many_ranks_in_another_group)
{
	const uint32_t n = 1u << 20, half = n / 2;
	struct hk__world world = { .n = n };
	struct hk_group from = { .world = &world, .alloc = &hk__alloc_default, .n = n };
	struct hk_group to = { .world = &world, .alloc = &hk__alloc_default, .n = half };
	uint32_t *asked = ranks_shuffled(n, 1), *out = malloc(n * sizeof(uint32_t)), found = 0;

	CHECK(out);
	from.chans.ranks = from.ranks = ranks_shuffled(n, 2);
	to.chans.ranks = to.ranks = ranks_shuffled(n, 3);
	CHECK_EQ(hk_group_translate(&from, asked, n, &to, out), HK_OK);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t rank = from.ranks[asked[i]], one;

		if (out[i] != HK_NONE) {
			CHECK(out[i] < half);
			CHECK_EQ(to.ranks[out[i]], rank);
			found++;
		}
		if (i % (1u << 13) == 0) {
			CHECK_EQ(out[i], hk__group_rank_of(&to, rank));
			CHECK_EQ(hk_group_translate(&from, &asked[i], 1, &to, &one), HK_OK);
			CHECK_EQ(one, out[i]);
		}
	}
	CHECK_EQ(found, half);
	free(to.ranks);
	free(from.ranks);
	free(out);
	free(asked);
}

TEST(ranks_of_groups_apart)
{
	struct hk_group *group, *apart;
	uint32_t zero = 0, out = 7;

	CHECK_EQ(hk_group_create(NULL, NULL, &group), HK_OK);
	CHECK_EQ(hk_group_create(NULL, NULL, &apart), HK_OK);
	CHECK_EQ(hk_group_translate(group, &zero, 1, apart, &out), HK_EINVAL);
	CHECK_HAS(hk_group_why(group), "created apart");
	CHECK_EQ(out, 7);
	hk_group_free(group);
	hk_group_free(apart);
}
