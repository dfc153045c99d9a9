/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_test.c - ten thousand operations of all kinds, mixed, from one seed:
 * collectives, blocking and not, batches of messages, splits and frees. All
 * ranks draw the same numbers; a group knows what to do from them and from its
 * own size. Who waits for what, and when, every rank decides for itself.
 */
#include "group/op.h"
#include "harness.h"

#define OPERATIONS 10000u
#define DEPTH 4u   /* groups, each split from the one before */
#define FLIGHT 12u /* requests of a rank at once */

struct mix {
	struct world_seat *seat;
	uint64_t shared; /* the same on all ranks */
	uint64_t own;
	struct hk_group *groups[DEPTH]; /* NULL: this rank is in none */
	uint32_t depth;
	struct op_run *flight[FLIGHT];
};

static uint32_t below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(test_random(seed) >> 16) % n;
}

/* ---- requests ---- */

static void mix_land(struct mix *mix, uint32_t i)
{
	struct op_run *run = mix->flight[i];

	if (!run)
		return;
	enum hk_status status = HK_INPROGRESS;
	if (below(&mix->own, 2))
		status = hk_request_test(run->request);
	if (status == HK_INPROGRESS)
		status = hk_request_wait(run->request, 0);
	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "rank %u: %s: %s", mix->seat->rank,
			  hk_status_name(status), hk_group_why(run->group));
	op_end(run);
	free(run);
	mix->flight[i] = NULL;
}

static void mix_land_all(struct mix *mix)
{
	for (uint32_t i = 0; i < FLIGHT; i++)
		mix_land(mix, i);
}

/* ---- operations ---- */

static const char *mix_algo(uint64_t *seed, enum hk_coll coll, bool nodes)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };
	uint32_t first = 0, count = 0;

	while (hk_algo_get(first, &algo) && algo.coll != coll)
		first++;
	while (hk_algo_get(first + count, &algo) && algo.coll == coll)
		count++;
	uint32_t which = below(seed, 2 * count);
	if (which >= count)
		return NULL;
	CHECK(hk_algo_get(first + which, &algo));
	return algo.onesided || (algo.nodes && !nodes) ? NULL : algo.name;
}

static struct op mix_choose(struct mix *mix, uint32_t n)
{
	static const uint64_t sizes[] = { 0, 1, 2, 7, 33, 100, 500, 5000 };
	uint64_t *seed = &mix->shared;
	struct op op = { .want = { .coll = (enum hk_coll)below(seed, HK_COLL_BARRIER + 1),
				   .type = (enum hk_type)below(seed, HK_TYPE_COUNT),
				   .op = (enum hk_redop)below(seed, HK_REDOP_COUNT),
				   .n = n,
				   .count = sizes[below(seed, 8)],
				   .v = below(seed, 3) == 0,
				   .seed = test_random(seed) } };
	uint32_t root = below(seed, UINT32_MAX);

	if (below(seed, 60) == 0)
		op.want.count = 30000;
	op.algo = mix_algo(seed, op.want.coll, mix->seat->kind != WORLD_MIXED_PROCESSES);
	op.want.root = want_rooted(op.want.coll) ? root % n : 0;
	op.want.v = op.want.v && want_has_v(op.want.coll);
	if (!want_reduces(op.want.coll) || !hk_redop_valid(op.want.type, op.want.op))
		op.want.op = HK_REDOP_SUM;
	op.inplace = op.want.coll != HK_COLL_ALLTOALL && below(seed, 2);
	op.heap = below(seed, 4) == 0;
	return op;
}

static void mix_collective(struct mix *mix, struct hk_group *group)
{
	/* Those who are in no such group draw all the same. */
	struct op op = mix_choose(mix, group ? hk_group_size(group) : 1);
	bool request = below(&mix->shared, 2);

	if (!group)
		return;
	if (!request) {
		op_do(group, &op);
		return;
	}
	uint32_t place = below(&mix->own, FLIGHT);
	mix_land(mix, place);
	mix->flight[place] = calloc(1, sizeof(struct op_run));
	CHECK(mix->flight[place]);
	op_start(mix->flight[place], group, &op, true);
}

#define BATCH 6u
#define MESSAGE_MAX 700u

/* Every rank sends to ranks at given distances, under given tags. */
static void mix_messages(struct mix *mix, struct hk_group *group)
{
	static _Thread_local uint32_t in[BATCH][MESSAGE_MAX], out[BATCH][MESSAGE_MAX];
	uint32_t n = group ? hk_group_size(group) : 1, rank = group ? hk_group_rank(group) : 0;
	uint32_t nmessages = 1 + below(&mix->shared, BATCH), lens[BATCH], far[BATCH];
	struct hk_opts opts = HK_OPTS_INIT;

	if (group)
		CHECK_EQ(hk_batch_begin(group), HK_OK);
	for (uint32_t i = 0; i < nmessages; i++) {
		opts.tag = below(&mix->shared, 3);
		lens[i] = below(&mix->shared, MESSAGE_MAX);
		far[i] = below(&mix->shared, UINT32_MAX) % n;
		bool recv_first = below(&mix->own, 2);

		for (uint32_t k = 0; k < lens[i]; k++)
			in[i][k] = rank * 100000 + i * 1000 + k;
		for (int way = 0; way < 2 && group; way++) {
			enum hk_status status =
				recv_first == (way == 0)
					? hk_recv(group, out[i], lens[i], HK_TYPE_UINT32,
						  (rank + n - far[i]) % n, &opts)
					: hk_send(group, in[i], lens[i], HK_TYPE_UINT32,
						  (rank + far[i]) % n, &opts);
			CHECK_EQ(status, HK_OK);
		}
	}
	if (!group)
		return;
	CHECK_EQ(hk_batch_end(group), HK_OK);
	for (uint32_t i = 0; i < nmessages; i++) {
		for (uint32_t k = 0; k < lens[i]; k++)
			CHECK_EQ(out[i][k], (rank + n - far[i]) % n * 100000 + i * 1000 + k);
	}
}

static void mix_split(struct mix *mix, struct hk_group *group)
{
	uint32_t colors = 1 + below(&mix->shared, 2);
	uint64_t order = test_random(&mix->shared);
	bool leaves = below(&mix->shared, 4) == 0;

	if (group) {
		uint32_t rank = hk_group_rank(group);
		uint64_t seed = order + rank;
		uint32_t color = leaves && rank == 0 ? HK_NONE : rank % colors;

		CHECK_EQ(hk_group_split(group, color, below(&seed, 100), &mix->groups[mix->depth]),
			 HK_OK);
	} else {
		mix->groups[mix->depth] = NULL;
	}
	mix->depth++;
}

static void mix_free(struct mix *mix)
{
	mix_land_all(mix);
	mix->depth--;
	hk_group_free(mix->groups[mix->depth]);
	mix->groups[mix->depth] = NULL;
}

static void mix_rank(struct world_seat *seat)
{
	uint64_t seed = *(uint64_t *)seat->ctx;
	struct mix mix = { .seat = seat,
			   .shared = seed + seat->n,
			   .own = seed * 31 + seat->rank,
			   .groups = { seat->group },
			   .depth = 1 };
	uint32_t operations = OPERATIONS / 10;

	for (uint32_t i = 0; i < operations; i++) {
		uint32_t what = below(&mix.shared, 100);
		/* Only the last group is split: the others are freed after it. */
		struct hk_group *group = mix.groups[below(&mix.shared, mix.depth)];

		if (what < 75)
			mix_collective(&mix, group);
		else if (what < 90)
			mix_messages(&mix, group);
		else if (what < 95 && mix.depth < DEPTH)
			mix_split(&mix, mix.groups[mix.depth - 1]);
		else if (what >= 95 && mix.depth > 1)
			mix_free(&mix);
		else
			mix_land(&mix, below(&mix.own, FLIGHT));
	}
	mix_land_all(&mix);
	while (mix.depth > 1)
		mix_free(&mix);
}

/* A tenth of all. */
static void mix_run(enum world_kind kind, uint32_t n, bool check, bool progress)
{
	struct world_spec spec = { .kind = kind, .n = n, .check = check, .progress = progress };
	uint64_t seed = test_seed(20240229);

	printf("%s, %u ranks: %u operations\n", world_name(kind), n, OPERATIONS / 10);
	world_run(&spec, mix_rank, &seed);
}

TEST(mixed_operations_by_threads)
{
	mix_run(WORLD_THREADS_SHM, 2, true, false);
	mix_run(WORLD_THREADS_SHM, 3, false, false);
	mix_run(WORLD_THREADS_SHM, 4, true, true);
	mix_run(WORLD_THREADS_SHM, 5, false, true);
}

TEST(mixed_operations_by_processes)
{
	mix_run(WORLD_PROCESSES_SHM, 3, true, false);
	mix_run(WORLD_PROCESSES_SHM, 6, false, false);
}

TEST(mixed_operations_over_tcp)
{
	mix_run(WORLD_THREADS_TCP, 3, true, false);
	mix_run(WORLD_PROCESSES_TCP, 4, false, true);
}

TEST(mixed_operations_across_hosts)
{
	mix_run(WORLD_MIXED_PROCESSES, 4, true, false);
	mix_run(WORLD_MIXED_PROCESSES, 6, false, false);
}
