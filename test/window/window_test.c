/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_test.c - windows on every kind of group: what one rank writes another reads,
 * in the order that was asked for, and nothing else.
 */
#include "group/world.h"
#include "harness.h"

#include <hocket/win.h>

#include <string.h>

#define OK(call) CHECK_EQ(call, HK_OK)

/* With a helper, where one is needed, and with a progress thread instead. */
static void on_every_world(uint32_t n, world_fn *fn)
{
	for (unsigned kind = 0; kind < 2 * WORLD_KINDS; kind++) {
		struct world_spec spec = { .kind = (enum world_kind)(kind / 2),
					   .n = n,
					   .progress = kind % 2 };

		world_run(&spec, fn, NULL);
	}
}

static void meet(struct world_seat *seat)
{
	OK(hk_barrier(seat->group, NULL));
}

static unsigned char byte_of(uint32_t rank, size_t i)
{
	return (unsigned char)(rank * 41 + i * 7 + i / 256);
}

static void fill(unsigned char *at, size_t len, uint32_t rank)
{
	for (size_t i = 0; i < len; i++)
		at[i] = byte_of(rank, i);
}

static void check_fill(const unsigned char *at, size_t len, uint32_t rank)
{
	for (size_t i = 0; i < len; i++)
		CHECK_EQ(at[i], byte_of(rank, i));
}

/* ---- data ---- */

/* To the next rank, from the one before, of every awkward length. */
static void put_get_rank(struct world_seat *seat)
{
	static const size_t lens[] = { 0, 1, 4, 7, 8, 63, 513, 4096, 131007, 131008, 400001 };
	uint32_t next = (seat->rank + 1) % seat->n, before = (seat->rank + seat->n - 1) % seat->n;
	size_t bytes = 1 << 20;
	unsigned char *mine = malloc(bytes), *seen = malloc(bytes), *base;
	struct hk_win *win;

	OK(hk_win_create(seat->group, NULL, bytes, NULL, &win));
	base = hk_win_base(win);
	CHECK_EQ(hk_win_bytes(win, next), bytes);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		fill(mine, lens[i], seat->rank);
		memset(base, 0xee, bytes);
		meet(seat);
		OK(hk_put(win, next, 5, mine, lens[i], NULL));
		memset(mine, 0, lens[i]); /* it is the caller's again */
		OK(hk_quiet(hk_group_ctx(seat->group)));
		OK(hk_get(win, next, 5, seen, lens[i], NULL));
		check_fill(seen, lens[i], seat->rank);
		meet(seat);
		check_fill(base + 5, lens[i], before);
		CHECK_EQ(base[4], 0xee);
		CHECK_EQ(base[5 + lens[i]], 0xee);
		meet(seat);
	}
	hk_win_free(win);
	free(mine);
	free(seen);
}

TEST(what_is_put_is_there_and_can_be_got)
{
	on_every_world(3, put_get_rank);
}

/* Memory of the caller, of another length on every rank, 0 on the last. */
static void given_rank(struct world_seat *seat)
{
	size_t bytes = seat->rank + 1 < seat->n ? 64 * (seat->rank + 1) : 0;
	unsigned char *base = malloc(bytes + 1);
	uint64_t value = 77 + seat->rank, seen = 0;
	struct hk_win *win;

	memset(base, 0, bytes + 1);
	OK(hk_win_create(seat->group, base, bytes, NULL, &win));
	for (uint32_t r = 0; r + 1 < seat->n; r++)
		CHECK_EQ(hk_win_bytes(win, r), 64 * (r + 1));
	OK(hk_put(win, 0, 8 * seat->rank, &value, 8, NULL));
	OK(hk_quiet(hk_group_ctx(seat->group)));
	meet(seat);
	for (uint32_t r = 0; r < seat->n; r++) {
		OK(hk_get(win, 0, 8 * r, &seen, 8, NULL));
		CHECK_EQ(seen, 77 + r);
	}
	CHECK_EQ(hk_put(win, seat->n - 1, 0, &value, 1, NULL), HK_EINVAL);
	CHECK_EQ(hk_put(win, 0, 57, &value, 8, NULL), HK_EINVAL);
	CHECK_EQ(hk_get(win, seat->n, 0, &seen, 0, NULL), HK_EINVAL);
	CHECK(strstr(hk_group_why(seat->group), "no such rank"));
	OK(hk_group_state(seat->group));
	hk_win_free(win);
	free(base);
}

TEST(windows_take_memory_of_the_caller)
{
	on_every_world(4, given_rank);
}

/* Static memory, whose pages become shared. */
static _Alignas(4096) unsigned char pages[8192];

static void remap_rank(struct world_seat *seat)
{
	struct hk_win_opts opts = HK_WIN_OPTS_INIT;
	uint32_t next = (seat->rank + 1) % seat->n, before = (seat->rank + seat->n - 1) % seat->n;
	unsigned char mine[100];
	struct hk_win *win;

	if (seat->kind == WORLD_THREADS_SHM || seat->kind == WORLD_THREADS_TCP ||
	    seat->kind == WORLD_MIXED_THREADS)
		return; /* they have one copy of it */
	fill(pages, sizeof(pages), seat->rank);
	opts.remap = true;
	OK(hk_win_create(seat->group, pages, sizeof(pages), &opts, &win));
	check_fill(pages, sizeof(pages), seat->rank);
	if (seat->kind == WORLD_PROCESSES_SHM)
		CHECK(hk_win_ptr(win, next, 0) != NULL);
	meet(seat);
	fill(mine, sizeof(mine), seat->rank);
	OK(hk_put(win, next, 4000, mine, sizeof(mine), NULL));
	OK(hk_quiet(hk_group_ctx(seat->group)));
	meet(seat);
	check_fill(pages + 4000, sizeof(mine), before);
	hk_win_free(win);
	check_fill(pages + 4000, sizeof(mine), before);
}

TEST(pages_of_the_caller_become_shared)
{
	on_every_world(2, remap_rank);
}

/* ---- many at once ---- */

#define MANY 2000u

static void nbi_rank(struct world_seat *seat)
{
	uint64_t *mine = malloc(MANY * 8), *seen = malloc(MANY * 8);
	uint32_t next = (seat->rank + 1) % seat->n, before = (seat->rank + seat->n - 1) % seat->n;
	struct hk_win *win;
	struct hk_ctx *ctx;

	OK(hk_win_create(seat->group, NULL, MANY * 8, NULL, &win));
	OK(hk_ctx_create(seat->group, &ctx));
	meet(seat);
	for (size_t i = 0; i < MANY; i++) {
		mine[i] = seat->rank * UINT64_C(1000003) + i;
		OK(hk_put_nbi(win, next, i * 8, &mine[i], 8, ctx));
	}
	OK(hk_fence(ctx));
	for (size_t i = 0; i < MANY; i++)
		OK(hk_get_nbi(win, next, i * 8, &seen[i], 8, ctx));
	OK(hk_quiet(ctx));
	for (size_t i = 0; i < MANY; i++)
		CHECK_EQ(seen[i], mine[i]);
	OK(hk_quiet_ranks(ctx, &next, 1));
	meet(seat);
	for (size_t i = 0; i < MANY; i++)
		CHECK_EQ(((uint64_t *)hk_win_base(win))[i], before * UINT64_C(1000003) + i);
	hk_ctx_free(ctx);
	hk_win_free(win);
	free(mine);
	free(seen);
}

TEST(many_that_only_begin_are_complete_after_quiet)
{
	on_every_world(3, nbi_rank);
}

/* ---- atomics ---- */

static uint64_t update(struct hk_win *win, uint32_t rank, size_t at, enum hk_amo op, uint32_t width,
		       uint64_t value, uint64_t compare)
{
	struct hk_amo_args args = { op, width, value, compare };
	uint64_t old = 12345;

	OK(hk_amo(win, rank, at, &args, &old, NULL));
	return old;
}

static void amo_rank(struct world_seat *seat)
{
	struct hk_win *win;

	OK(hk_win_create(seat->group, NULL, 64, NULL, &win));
	if (seat->rank == 0) {
		for (uint32_t r = 0; r < seat->n; r++) {
			for (uint32_t width = 4; width <= 8; width += 4) {
				uint64_t all = width == 8 ? UINT64_MAX : UINT32_MAX;

				CHECK_EQ(update(win, r, 8, HK_AMO_SET, width, 5, 0), 0);
				CHECK_EQ(update(win, r, 8, HK_AMO_ADD, width, all, 0), 5);
				CHECK_EQ(update(win, r, 8, HK_AMO_OR, width, 3, 0), 4);
				CHECK_EQ(update(win, r, 8, HK_AMO_AND, width, 6, 0), 7);
				CHECK_EQ(update(win, r, 8, HK_AMO_XOR, width, 12, 0), 6);
				CHECK_EQ(update(win, r, 8, HK_AMO_CAS, width, 99, 9), 10);
				CHECK_EQ(update(win, r, 8, HK_AMO_CAS, width, 99, 10), 10);
				CHECK_EQ(update(win, r, 8, HK_AMO_FETCH, width, 0, 0), 99);
				CHECK_EQ(update(win, r, 8, HK_AMO_SET, width, 0, 0), 99);
				CHECK_EQ(update(win, r, 12, HK_AMO_FETCH, 4, 0, 0), 0);
			}
		}
		struct hk_amo_args odd = { HK_AMO_ADD, 8, 1, 0 }, wide = { HK_AMO_ADD, 16, 1, 0 };
		CHECK_EQ(hk_amo(win, 1, 12, &odd, NULL, NULL), HK_EINVAL);
		CHECK_EQ(hk_amo(win, 1, 0, &wide, NULL, NULL), HK_EINVAL);
	}
	meet(seat);
	hk_win_free(win);
}

TEST(atomics_do_what_they_say)
{
	on_every_world(2, amo_rank);
}

#define COUNTS 500u

/* All add to one word of rank 0, by memory and by messages, and so does its owner. */
static void count_rank(struct world_seat *seat)
{
	struct hk_amo_args add = { HK_AMO_ADD, 8, 1, 0 };
	uint64_t old, last = 0;
	struct hk_win *win;

	OK(hk_win_create(seat->group, NULL, 8, NULL, &win));
	for (uint32_t i = 0; i < COUNTS; i++) {
		OK(hk_amo(win, 0, 0, &add, i % 3 ? &old : NULL, NULL));
		if (i % 3) {
			CHECK(i == 1 || old > last); /* nobody gets a number twice */
			last = old;
		}
	}
	OK(hk_quiet(hk_group_ctx(seat->group)));
	meet(seat);
	CHECK_EQ(update(win, 0, 0, HK_AMO_FETCH, 8, 0, 0), COUNTS * seat->n);
	hk_win_free(win);
}

TEST(atomics_of_all_are_atomic_to_each_other)
{
	on_every_world(4, count_rank);
}

/* ---- signals ---- */

#define ROUNDS 100u

/* Data go around the ring; each rank only looks when its signal says so. */
static void signal_rank(struct world_seat *seat)
{
	uint32_t next = (seat->rank + 1) % seat->n, before = (seat->rank + seat->n - 1) % seat->n;
	size_t bytes = 20000;
	unsigned char *mine = malloc(bytes), *base;
	struct hk_win *win, *words;
	uint64_t seen;

	OK(hk_win_create(seat->group, NULL, bytes, NULL, &win));
	OK(hk_win_create(seat->group, NULL, 16, NULL, &words));
	base = hk_win_base(win);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		struct hk_signal data = { words, 0, i % 2 ? 1 : i,
					  i % 2 ? HK_AMO_ADD : HK_AMO_SET };
		struct hk_signal room = { words, 8, 1, HK_AMO_ADD };
		size_t len = i % 5 ? 8 * i : bytes;

		fill(mine, len, seat->rank + i);
		OK(hk_put_signal(win, next, 0, mine, len, &data, NULL));
		OK(hk_signal_wait(words, 0, HK_CMP_GE, i, 0, &seen));
		CHECK_EQ(seen, i);
		check_fill(base, len, before + i);
		/* It may write again. */
		OK(hk_signal(before, &room, NULL));
		OK(hk_signal_wait(words, 8, HK_CMP_GE, i, 0, NULL));
	}
	meet(seat);
	hk_win_free(words);
	hk_win_free(win);
	free(mine);
}

TEST(a_signal_is_seen_after_its_data)
{
	on_every_world(3, signal_rank);
}

static void wait_rank(struct world_seat *seat)
{
	struct hk_win *win;
	uint64_t seen;

	OK(hk_win_create(seat->group, NULL, 64, NULL, &win));
	int32_t *at = hk_win_base(win);
	struct hk_until until = { .size = sizeof(until),
				  .at = at,
				  .width = 4,
				  .is_signed = true,
				  .cmp = HK_CMP_LT,
				  .value = 0,
				  .timeout_ns = 20000000,
				  .rank = 1 };
	CHECK_EQ(hk_wait_until(seat->group, &until, &seen), HK_ETIMEDOUT);
	CHECK(strstr(hk_group_why(seat->group), "that rank 1 is to write"));
	CHECK(!hk_test_until(seat->group, &until, &seen));
	OK(hk_group_state(seat->group)); /* only that wait is over */
	at[1] = 99;			 /* beside it, and no part of it */
	at[0] = -3;
	OK(hk_wait_until(seat->group, &until, &seen));
	CHECK_EQ((int32_t)seen, -3);
	until.is_signed = false;
	CHECK(!hk_test_until(seat->group, &until, NULL));
	until.cmp = HK_CMP_GT;
	CHECK(hk_test_until(seat->group, &until, NULL));
	until.width = 3;
	CHECK_EQ(hk_wait_until(seat->group, &until, NULL), HK_EINVAL);
	meet(seat);
	hk_win_free(win);
}

TEST(waits_compare_as_wide_as_the_word_and_end)
{
	on_every_world(2, wait_rank);
}

/* ---- a rank that computes ---- */

/* Rank 0 calls nothing until the others have what they asked it for. */
static void busy_rank(struct world_seat *seat)
{
	volatile uint64_t *done = seat->ctx;
	unsigned char mine[1000], seen[1000];
	struct hk_win *win;

	OK(hk_win_create(seat->group, NULL, 4096, NULL, &win));
	fill(hk_win_base(win), 1000, seat->rank);
	meet(seat);
	if (seat->rank == 0) {
		while (__atomic_load_n(done, __ATOMIC_ACQUIRE) < seat->n - 1)
			;
	} else {
		OK(hk_get(win, 0, 0, seen, sizeof(seen), NULL));
		check_fill(seen, sizeof(seen), 0);
		fill(mine, sizeof(mine), seat->rank);
		OK(hk_put(win, 0, 1000 * seat->rank, mine, sizeof(mine), NULL));
		OK(hk_quiet(hk_group_ctx(seat->group)));
		OK(hk_get(win, 0, 1000 * seat->rank, seen, sizeof(seen), NULL));
		check_fill(seen, sizeof(seen), seat->rank);
		__atomic_add_fetch(done, 1, __ATOMIC_RELEASE);
	}
	meet(seat);
	hk_win_free(win);
}

TEST(a_rank_that_computes_is_read_and_written)
{
	for (unsigned kind = 0; kind < WORLD_KINDS; kind++) {
		struct world_spec spec = { .kind = (enum world_kind)kind, .n = 3 };

		world_run(&spec, busy_rank, world_shared(sizeof(uint64_t)));
	}
}

/* ---- the heap ---- */

static void heap_rank(struct world_seat *seat)
{
	struct hk_heap *heap;
	void *at[40], *again;
	size_t offset[40], other;

	OK(hk_heap_create(seat->group, 1 << 20, NULL, &heap));
	CHECK_EQ(hk_heap_alloc(heap, 0, 0, &again), HK_EINVAL);
	CHECK_EQ(hk_heap_alloc(heap, 8, 48, &again), HK_EINVAL);
	CHECK_EQ(hk_heap_alloc(heap, 2 << 20, 0, &again), HK_ELIMIT);
	for (unsigned i = 0; i < 40; i++) {
		OK(hk_heap_alloc(heap, 100 * (i + 1), i % 4 ? 0 : 4096, &at[i]));
		CHECK(hk_heap_offset(heap, at[i], &offset[i]));
		CHECK_EQ(offset[i] % (i % 4 ? 64 : 4096), 0);
		CHECK_EQ(hk_heap_block(heap, at[i]), 100 * (i + 1));
		memset(at[i], (int)i, 100 * (i + 1));
	}
	for (unsigned i = 0; i < 40; i++)
		for (size_t b = 0; b < 100 * (i + 1); b++)
			CHECK_EQ(((unsigned char *)at[i])[b], i);
	for (unsigned i = 0; i < 40; i += 2)
		CHECK(hk_heap_release(heap, at[i]));
	CHECK(!hk_heap_release(heap, at[0]));
	CHECK(!hk_heap_offset(heap, seat, &other));
	OK(hk_heap_alloc(heap, 100, 4096, &again));
	CHECK(again == at[0]); /* as on every rank */
	/* The same offset names the same block everywhere. */
	meet(seat);
	uint64_t value = 1000 + seat->rank;
	uint32_t next = (seat->rank + 1) % seat->n;
	OK(hk_put(hk_heap_win(heap), next, offset[1], &value, 8, NULL));
	OK(hk_quiet(hk_group_ctx(seat->group)));
	meet(seat);
	CHECK_EQ(*(uint64_t *)at[1], 1000 + (seat->rank + seat->n - 1) % seat->n);
	meet(seat);
	hk_heap_free(heap);
}

TEST(a_heap_gives_the_same_offsets_everywhere)
{
	on_every_world(3, heap_rank);
}

/* ---- windows that end ---- */

/* One after the other, some at once, and of groups that were split. */
static void often_rank(struct world_seat *seat)
{
	struct hk_group *half;

	OK(hk_group_split(seat->group, seat->rank % 2, 0, &half));
	for (unsigned i = 0; i < 20; i++) {
		struct hk_win *a, *b;
		uint64_t value = i, seen;

		OK(hk_win_create(seat->group, NULL, 100, NULL, &a));
		OK(hk_win_create(half, NULL, 8, NULL, &b));
		CHECK_EQ(*(uint64_t *)hk_win_base(a), 0); /* of nobody before */
		meet(seat);
		OK(hk_put(b, 0, 0, &value, 8, NULL));
		OK(hk_quiet(hk_group_ctx(half)));
		OK(hk_get(b, 0, 0, &seen, 8, NULL));
		CHECK_EQ(seen, i);
		OK(hk_put(a, (seat->rank + 1) % seat->n, 8 * seat->rank, &value, 8, NULL));
		hk_win_free(a);
		hk_win_free(b);
	}
	hk_group_free(half);
}

TEST(windows_come_and_go)
{
	on_every_world(4, often_rank);
}
