/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tags_test.c - any number of tags between two ranks, in any order, in memory
 * that does not grow with them.
 */
#include "group/group.h"
#include "harness.h"
#include "world.h"

#include <stdlib.h>

#define TAGS 20000u	       /* of a plain run; HK_TEST_TAGS asks for more */
#define WINDOW 200u	       /* of them at once */
#define MANY 300u	       /* requests at once */
#define LARGE ((size_t)700001) /* bytes: some slots, and a part of one */

static uint32_t tags_wanted(void)
{
	const char *given = getenv("HK_TEST_TAGS");

	return given ? (uint32_t)strtoul(given, NULL, 10) : TAGS;
}

static struct hk_opts opts_of(uint32_t tag)
{
	struct hk_opts opts = HK_OPTS_INIT;

	opts.tag = tag;
	return opts;
}

static void send_tag(struct hk_group *group, uint32_t tag)
{
	struct hk_opts opts = opts_of(tag);
	uint32_t value = tag * 2654435761u;

	CHECK_EQ(hk_send(group, &value, 1, HK_TYPE_UINT32, 1, &opts), HK_OK);
}

static void recv_tag(struct hk_group *group, uint32_t tag)
{
	struct hk_opts opts = opts_of(tag);
	uint32_t value = 0;

	CHECK_EQ(hk_recv(group, &value, 1, HK_TYPE_UINT32, 0, &opts), HK_OK);
	CHECK_EQ(value, tag * 2654435761u);
}

/* ---- many at once ---- */

struct load {
	struct hk_request *request;
	uint32_t tag;
	uint32_t *at;
	uint32_t count;
};

static void loads_start(struct hk_group *group, struct load *loads, uint32_t n, bool sends)
{
	for (uint32_t i = 0; i < n; i++) {
		struct hk_opts opts = opts_of(loads[i].tag);

		opts.request = &loads[i].request;
		CHECK_EQ(sends ? hk_send(group, loads[i].at, loads[i].count, HK_TYPE_UINT32, 1,
					 &opts)
			       : hk_recv(group, loads[i].at, loads[i].count, HK_TYPE_UINT32, 0,
					 &opts),
			 HK_OK);
	}
}

static void loads_end(struct load *loads, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		CHECK_EQ(hk_request_wait(loads[i].request, 0), HK_OK);
		hk_request_free(loads[i].request);
	}
}

/* What a rank holds for its peer is bounded, however many tags there were. */
static void check_held(const struct hk_group *group)
{
	CHECK(group->chans.open.count < 64);
	CHECK(group->chans.index.room <= 128);
	CHECK(group->p2p.ready.room <= 8 * WINDOW);
	CHECK(group->p2p.index.room <= 64);
}

static void run_kinds(world_fn *fn, enum world_kind first, enum world_kind last, void *ctx)
{
	for (enum world_kind kind = first; kind <= last; kind++) {
		struct world_spec spec = { .kind = kind, .n = 2 };

		world_run(&spec, fn, ctx);
	}
}

/* ---- a tag for every message ---- */

static void tags_window(struct world_seat *seat, uint32_t first)
{
	uint32_t values[WINDOW];
	struct load loads[WINDOW];

	for (uint32_t i = 0; i < WINDOW; i++) {
		loads[i] = (struct load){ NULL, first + i, &values[i], 1 };
		values[i] = seat->rank == 0 ? (first + i) * 2654435761u : 0;
	}
	loads_start(seat->group, loads, WINDOW, seat->rank == 0);
	loads_end(loads, WINDOW);
	for (uint32_t i = 0; i < WINDOW; i++)
		CHECK_EQ(values[i], (first + i) * 2654435761u);
}

static void many_tags_rank(struct world_seat *seat)
{
	uint32_t tags = tags_wanted();

	for (uint32_t tag = 0; tag < 200; tag++)
		(seat->rank == 0 ? send_tag : recv_tag)(seat->group, tag);
	for (uint32_t tag = 200; tag < tags; tag += WINDOW)
		tags_window(seat, tag);
	check_held(seat->group);
}

TEST(a_tag_for_every_message)
{
	run_kinds(many_tags_rank, WORLD_THREADS_SHM, WORLD_MIXED_THREADS, NULL);
}

/* Tags that come again have a channel of their own, though others came first. */
static void repeated_rank(struct world_seat *seat)
{
	for (uint32_t i = 0; i < 400; i++) {
		uint32_t tag = i < 200 ? i : 70000 + i % 2;

		if (seat->rank == 0)
			send_tag(seat->group, tag);
		else
			recv_tag(seat->group, tag);
	}
	CHECK(hk__chans_find(&seat->group->chans, seat->rank == 0, 1 - seat->rank, 70001, HK_NONE));
	CHECK(!hk__chans_find(&seat->group->chans, seat->rank == 0, 1 - seat->rank, 199, HK_NONE));
}

TEST(a_tag_that_comes_again_has_a_channel)
{
	run_kinds(repeated_rank, WORLD_THREADS_SHM, WORLD_THREADS_TCP, NULL);
}

/* ---- any order ---- */

/* The last tag that was sent is received first, while all others wait. */
static void backwards_rank(struct world_seat *seat)
{
	uint32_t *values = calloc(MANY, sizeof(*values));
	struct load *loads = calloc(MANY, sizeof(*loads));

	CHECK(values && loads);
	for (uint32_t i = 0; i < MANY; i++) {
		loads[i] = (struct load){ NULL, i, &values[i], 1 };
		values[i] = seat->rank == 0 ? i * 2654435761u : 0;
	}
	if (seat->rank == 0) {
		loads_start(seat->group, loads, MANY, true);
		loads_end(loads, MANY);
	} else {
		for (uint32_t i = MANY; i-- > 0;)
			recv_tag(seat->group, i);
	}
	/* All recvs are posted, and the sends come from the end. */
	if (seat->rank == 1) {
		loads_start(seat->group, loads, MANY, false);
		loads_end(loads, MANY);
		for (uint32_t i = 0; i < MANY; i++)
			CHECK_EQ(values[i], i * 2654435761u);
	} else {
		for (uint32_t i = MANY; i-- > 0;)
			send_tag(seat->group, i);
	}
	free(values);
	free(loads);
}

TEST(the_last_is_received_first)
{
	run_kinds(backwards_rank, WORLD_THREADS_SHM, WORLD_MIXED_THREADS, NULL);
}

#define MIXED 120u

static uint32_t mixed_count(uint32_t i)
{
	return i % 7 == 0 ? (uint32_t)(LARGE / 4) : i % 5 == 0 ? 5000 : i % 4;
}

/* Few tags, each often, small and large: those of one tag come in order. */
static void mixed_rank(struct world_seat *seat)
{
	struct load loads[MIXED];
	uint64_t seed = test_seed(3) + seat->rank;
	uint32_t order[MIXED], next[40] = { 0 };

	for (uint32_t round = 0; round < 6; round++) {
		/* Any order of tags, another on each rank; of one tag, as they are counted. */
		for (uint32_t i = 0; i < MIXED; i++)
			order[i] = i % 40;
		for (uint32_t i = MIXED; i-- > 1;) {
			uint32_t j = (uint32_t)(test_random(&seed) % (i + 1)), other = order[i];

			order[i] = order[j];
			order[j] = other;
		}
		memset(next, 0, sizeof(next));
		for (uint32_t i = 0; i < MIXED; i++) {
			uint32_t tag = order[i], k = tag + 40 * next[tag]++;

			loads[i] = (struct load){ NULL, tag * 3, NULL, mixed_count(k) };
			loads[i].at = malloc(loads[i].count * 4 + 4);
			CHECK(loads[i].at);
			for (uint32_t w = 0; w < loads[i].count; w++)
				loads[i].at[w] = seat->rank == 0 ? k * 1000003 + w : 0;
			order[i] = k;
		}
		loads_start(seat->group, loads, MIXED, seat->rank == 0);
		loads_end(loads, MIXED);
		for (uint32_t i = 0; i < MIXED; i++) {
			for (uint32_t w = 0; w < loads[i].count; w++)
				CHECK_EQ(loads[i].at[w], order[i] * 1000003 + w);
			free(loads[i].at);
		}
	}
}

TEST(small_and_large_in_any_order)
{
	for (int progress = 0; progress < 2; progress++) {
		for (enum world_kind kind = 0; kind < WORLD_KINDS; kind++) {
			struct world_spec spec = { .kind = kind, .n = 2, .progress = progress };

			world_run(&spec, mixed_rank, NULL);
		}
	}
}

/* To itself, in one go. */
static void self_rank(struct world_seat *seat)
{
	uint32_t in[100], out[100];

	CHECK_EQ(hk_batch_begin(seat->group), HK_OK);
	for (uint32_t i = 0; i < 100; i++) {
		struct hk_opts opts = opts_of(i);

		in[i] = i;
		CHECK_EQ(hk_send(seat->group, &in[i], 1, HK_TYPE_UINT32, seat->rank, &opts), HK_OK);
	}
	for (uint32_t i = 100; i-- > 0;) {
		struct hk_opts opts = opts_of(i);

		CHECK_EQ(hk_recv(seat->group, &out[i], 1, HK_TYPE_UINT32, seat->rank, &opts),
			 HK_OK);
	}
	CHECK_EQ(hk_batch_end(seat->group), HK_OK);
	CHECK(!memcmp(in, out, sizeof(in)));
}

TEST(many_tags_to_itself)
{
	run_kinds(self_rank, WORLD_THREADS_SHM, WORLD_THREADS_TCP, NULL);
}

/* ---- failure ---- */

/* Rank 0 sends a tag that nobody receives; its line says which. */
static void unmatched_rank(struct world_seat *seat)
{
	struct hk_opts opts = opts_of(0);
	uint32_t word = 1;

	for (uint32_t tag = 0; tag < 100; tag++)
		(seat->rank == 0 ? send_tag : recv_tag)(seat->group, tag);
	if (seat->rank == 0) {
		opts.tag = 777;
		opts.timeout_ns = 100000000;
		CHECK_EQ(hk_send(seat->group, &word, 1, HK_TYPE_UINT32, 1, &opts), HK_ETIMEDOUT);
		CHECK_HAS(hk_group_why(seat->group), "send to rank 1 with tag 777");
	}
	world_meet(seat);
	if (seat->rank == 1) {
		opts.tag = 778;
		CHECK_EQ(hk_recv(seat->group, &word, 1, HK_TYPE_UINT32, 0, &opts), HK_EREVOKED);
	}
}

TEST(a_tag_that_nobody_receives)
{
	run_kinds(unmatched_rank, WORLD_THREADS_SHM, WORLD_PROCESSES_TCP, NULL);
}

/* Counts that differ, by a tag without a channel. */
static void unequal_rank(struct world_seat *seat)
{
	struct hk_opts opts = opts_of(5000);
	uint32_t words[3] = { 0 };
	enum hk_status status;

	for (uint32_t tag = 0; tag < 100; tag++)
		(seat->rank == 0 ? send_tag : recv_tag)(seat->group, tag);
	if (seat->rank == 0) {
		status = hk_send(seat->group, words, 2, HK_TYPE_UINT32, 1, &opts);
		CHECK(status == HK_OK || status == HK_EREVOKED);
	} else {
		CHECK_EQ(hk_recv(seat->group, words, 3, HK_TYPE_UINT32, 0, &opts), HK_EIO);
		CHECK_HAS(hk_group_why(seat->group), "rank 0 sent 8 bytes with tag 5000 where 12");
	}
	world_meet(seat);
}

TEST(counts_that_differ)
{
	run_kinds(unequal_rank, WORLD_THREADS_SHM, WORLD_THREADS_TCP, NULL);
}
