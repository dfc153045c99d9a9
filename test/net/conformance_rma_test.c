/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_rma_test.c - one-sided operations by messages, on every transport: order,
 * completion, refusals, and what is left when memory is taken away. All ranks are moved
 * by one thread.
 */
#include "harness.h"
#include "net/fixture.h"
#include "net/rma/rma.h"

#include <string.h>

#define RANKS 2u
#define BYTES (400000u)
#define ROUNDS 2000000 /* until what must happen has not */

static struct hk_net *nets[FIXTURE_RANKS_MAX];
static struct hk__rma *rmas[RANKS];
static struct hk_chan *chans[RANKS][2][2]; /* by rank, sends, replies */
static unsigned char *memory[RANKS];
static struct hk_remote remote; /* rank 1's memory, as rank 0 reaches it */
static struct hk_queue *queue;
static uint32_t region_id;

static enum hk_status open_chan(void *ctx, uint32_t peer, bool sends, bool replies,
				struct hk_chan **chan_out)
{
	uint32_t rank = (uint32_t)(uintptr_t)ctx;
	struct hk_chan_spec spec = { { peer, 7, 8 + replies, 9 }, HK_RMA_SLOTS, HK_RMA_SLOT_BYTES };
	struct hk_chan **chan = &chans[rank][sends][replies];
	enum hk_status status = sends ? hk__chan_open_send(nets[rank], &spec, chan)
				      : hk__chan_open_recv(nets[rank], &spec, chan);

	*chan_out = *chan;
	return status;
}

static void open_all(void)
{
	struct hk_region_key key;

	fixture_open(RANKS, nets);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct hk__rma_spec spec = { .n = RANKS,
					     .open = open_chan,
					     .ctx = (void *)(uintptr_t)r,
					     .alloc = &hk__alloc_default };

		memory[r] = calloc(1, BYTES);
		CHECK(memory[r]);
		CHECK_EQ(hk__rma_create(&spec, &rmas[r]), HK_OK);
		CHECK_EQ(hk__rma_meet(rmas[r], 1 - r), HK_OK);
	}
	CHECK_EQ(hk__rma_region_add(rmas[1], memory[1], BYTES, &region_id, &key), HK_OK);
	remote = (struct hk_remote){ .ops = &hk__remote_messages,
				     .bytes = BYTES,
				     .rma = rmas[0],
				     .peer = 1,
				     .id = region_id,
				     .key = key };
	CHECK_EQ(hk__queue_create(&hk__alloc_default, RANKS, &queue), HK_OK);
}

static void close_all(void)
{
	hk__queue_destroy(queue);
	for (uint32_t r = 0; r < RANKS; r++) {
		for (unsigned i = 0; i < 4; i++)
			hk__chan_close(chans[r][i / 2][i % 2]);
		hk__rma_destroy(rmas[r]);
		free(memory[r]);
	}
	fixture_close(RANKS, nets);
}

/* What an engine says; HK_OK: nothing is wrong. */
static enum hk_status poll_rank(uint32_t r, struct hk_why *why)
{
	uint32_t peer = HK_NONE;
	bool moved = false;

	CHECK_EQ(hk__net_poll(nets[r]), HK_OK);
	enum hk_status status = hk__rma_poll(rmas[r], &moved, why, &peer);
	if (status != HK_OK)
		CHECK_EQ(peer, 1 - r);
	return status;
}

static void poll_both(void)
{
	struct hk_why why;

	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_EQ(poll_rank(r, &why), HK_OK);
}

/* The other end of a channel may not be open yet. */
static void start(struct hk_rma_op *op)
{
	enum hk_status status = HK_INPROGRESS;

	for (int i = 0; i < ROUNDS && status == HK_INPROGRESS; i++) {
		status = hk__remote_start(&remote, queue, op);
		if (status == HK_INPROGRESS)
			poll_both();
	}
	CHECK_EQ(status, HK_OK);
}

static void quiet(void)
{
	uint32_t late;

	for (int i = 0; i < ROUNDS; i++) {
		if (hk__queue_landed(rmas[0], queue, HK_NONE, &late))
			return;
		CHECK_EQ(late, 1);
		poll_both();
	}
	CHECK(!"quiet");
}

static void put(uint64_t offset, const void *src, uint64_t len, bool later)
{
	struct hk_rma_op op = {
		.what = HK_RMA_PUT, .offset = offset, .src = src, .len = len, .later = later
	};

	start(&op);
}

static unsigned char byte_of(uint64_t i, unsigned seed)
{
	return (unsigned char)(i * 13 + i / 251 + seed);
}

static void fill(unsigned char *at, uint64_t len, unsigned seed)
{
	for (uint64_t i = 0; i < len; i++)
		at[i] = byte_of(i, seed);
}

TEST(puts_and_gets_of_every_length_land)
{
	static const uint64_t lens[] = { 1,    8,      9,      511,    512,   513,
					 4096, 131007, 131008, 131009, 399999 };

	open_all();
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		unsigned char *seen = calloc(1, BYTES);
		bool done = false;

		fill(memory[0], lens[i], i);
		memset(memory[1], 0xcc, BYTES);
		put(1, memory[0], lens[i], i % 2);
		memset(memory[0], 0, lens[i]);
		struct hk_rma_op get = {
			.what = HK_RMA_GET, .offset = 1, .dst = seen, .len = lens[i], .done = &done
		};
		start(&get);
		quiet();
		CHECK(done);
		CHECK_EQ(memory[1][0], 0xcc);
		for (uint64_t b = 0; b < lens[i]; b++) {
			CHECK_EQ(memory[1][1 + b], byte_of(b, i));
			CHECK_EQ(seen[b], byte_of(b, i));
		}
		free(seen);
	}
	close_all();
}

TEST(operations_of_a_queue_land_in_their_order)
{
	uint64_t olds[600], last = 0;

	open_all();
	for (uint64_t i = 1; i <= 600; i++) {
		struct hk_rma_op add = { .what = HK_RMA_AMO,
					 .offset = 8,
					 .amo = HK_AMO_CAS,
					 .width = 8,
					 .compare = i - 1,
					 .value = i,
					 .old_out = &olds[i - 1],
					 .later = i % 3 };

		put(0, &i, 8, i % 2);
		start(&add);
	}
	quiet();
	for (uint64_t i = 0; i < 600; i++)
		CHECK_EQ(olds[i], i); /* each found what the one before had left */
	memcpy(&last, memory[1], 8);
	CHECK_EQ(last, 600);
	close_all();
}

/* Until rank 0 is told; rank 1 does not fail of it. */
static void check_refused(struct hk_rma_op *op, const char *text)
{
	enum hk_status status = HK_OK;
	struct hk_why why;

	start(op);
	for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
		CHECK_EQ(poll_rank(1, &why), HK_OK);
		status = poll_rank(0, &why);
	}
	CHECK_EQ(status, HK_EINVAL);
	CHECK(strstr(why.text, text));
}

TEST(a_wrong_key_reaches_nothing)
{
	uint64_t value = 1, zero = 0;
	struct hk_rma_op op = { .what = HK_RMA_PUT, .src = &value, .len = 8 };

	open_all();
	remote.key.words[1] ^= 1;
	check_refused(&op, "no such window");
	CHECK_EQ(memcmp(memory[1], &zero, 8), 0);
	close_all();
}

TEST(nothing_beyond_the_end_is_touched)
{
	uint64_t value = UINT64_MAX;
	struct hk_rma_op op = { .what = HK_RMA_PUT, .offset = BYTES - 7, .src = &value, .len = 8 };

	open_all();
	check_refused(&op, "not in its window");
	CHECK_EQ(memory[1][BYTES - 1], 0);
	close_all();
	struct hk_rma_op far = {
		.what = HK_RMA_GET, .offset = UINT64_MAX, .dst = &value, .len = UINT64_MAX
	};
	open_all();
	check_refused(&far, "not in its window");
	close_all();
	struct hk_rma_op odd = {
		.what = HK_RMA_AMO, .offset = 4, .amo = HK_AMO_ADD, .width = 8, .value = 1
	};
	open_all();
	check_refused(&odd, "not in its window");
	CHECK_EQ(memory[1][4], 0);
	close_all();
}

TEST(a_region_that_was_removed_is_not_touched)
{
	uint64_t value = 7;
	struct hk_rma_op op = { .what = HK_RMA_PUT, .src = &value, .len = 8 };
	struct hk_region_key key, before = { { 0, 0 } };
	uint32_t id;

	open_all();
	before = remote.key;
	hk__rma_region_remove(rmas[1], region_id);
	free(memory[1]); /* a sanitizer would tell */
	memory[1] = NULL;
	check_refused(&op, "no such window");
	/* Its place is used again, by another key. */
	memory[1] = calloc(1, BYTES);
	CHECK_EQ(hk__rma_region_add(rmas[1], memory[1], BYTES, &id, &key), HK_OK);
	CHECK_EQ(id, region_id);
	CHECK(memcmp(&key, &before, sizeof(key)) != 0);
	close_all();
}

/* Both ask as much as they can, and poll in turn: replies never wait for each other. */
TEST(both_sides_may_ask_at_once)
{
	struct hk_queue *other;
	struct hk_remote back = { .ops = &hk__remote_messages, .bytes = BYTES, .rma = rmas[1] };
	bool done[2] = { false, false };
	uint32_t id;

	open_all();
	CHECK_EQ(hk__queue_create(&hk__alloc_default, RANKS, &other), HK_OK);
	back.rma = rmas[1];
	back.peer = 0;
	CHECK_EQ(hk__rma_region_add(rmas[0], memory[0], BYTES, &id, &back.key), HK_OK);
	back.id = id;
	unsigned char *seen[2] = { calloc(1, BYTES), calloc(1, BYTES) };
	fill(memory[0], BYTES, 3);
	fill(memory[1], BYTES, 4);
	struct hk_rma_op there = {
		.what = HK_RMA_GET, .dst = seen[0], .len = BYTES, .done = &done[0]
	};
	struct hk_rma_op here = {
		.what = HK_RMA_GET, .dst = seen[1], .len = BYTES, .done = &done[1]
	};
	CHECK_EQ(hk__remote_start(&remote, queue, &there), HK_OK);
	CHECK_EQ(hk__remote_start(&back, other, &here), HK_OK);
	for (int i = 0; i < ROUNDS && !(done[0] && done[1]); i++)
		poll_both();
	CHECK(done[0] && done[1]);
	CHECK_EQ(memcmp(seen[0], memory[1], BYTES), 0);
	CHECK_EQ(memcmp(seen[1], memory[0], BYTES), 0);
	free(seen[0]);
	free(seen[1]);
	hk__queue_destroy(other);
	close_all();
}

TEST(what_was_cancelled_writes_nothing)
{
	unsigned char *seen = calloc(1, BYTES);
	bool done = false;

	open_all();
	memset(memory[1], 1, BYTES);
	struct hk_rma_op get = { .what = HK_RMA_GET, .dst = seen, .len = BYTES, .done = &done };
	start(&get);
	hk__rma_cancel(rmas[0]);
	free(seen); /* a sanitizer would tell */
	for (int i = 0; i < 1000; i++)
		poll_both();
	CHECK(!done);
	close_all();
}
