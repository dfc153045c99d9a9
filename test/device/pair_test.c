/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair_test.c - sends and receives as a GPU performs them, on the host: ranks are
 * threads that launch one list after the other, blocks are threads too.
 */
#include "device/host_pair.h"
#include "harness.h"

#include <hocket/status.h>

#include <pthread.h>

#define RANKS_MAX 8u
#define LAUNCHES_MAX 8u
#define ORDERS_MAX 320u
#define BLOCKS_MAX 16u
#define GUARD 32u
#define TIMEOUT_NS UINT64_C(20000000000)

/* ---- ranks ---- */

struct launch {
	struct hk__pair_order orders[ORDERS_MAX];
	uint32_t count;
};

struct rank {
	const struct bed *bed;
	uint32_t number;
	struct launch launches[LAUNCHES_MAX];
	struct hk__flat_report report;
	pthread_t thread;
};

struct bed {
	uint32_t n, mode, blocks, launches;
	uint64_t timeout_ns;
	char *segments[RANKS_MAX];
	struct rank *ranks;
};

static void bed_open(struct bed *bed, uint32_t n, bool direct)
{
	*bed = (struct bed){ .n = n,
			     .mode = direct ? HK__PAIR_DIRECT : 0,
			     .blocks = 4,
			     .timeout_ns = TIMEOUT_NS,
			     .ranks = calloc(n, sizeof(struct rank)) };
	CHECK(bed->ranks);
	for (uint32_t r = 0; r < n; r++) {
		bed->segments[r] = calloc(1, hk__pair_segment_bytes(n, direct));
		CHECK(bed->segments[r]);
		bed->ranks[r].bed = bed;
		bed->ranks[r].number = r;
	}
}

static void bed_close(struct bed *bed)
{
	for (uint32_t r = 0; r < bed->n; r++)
		free(bed->segments[r]);
	free(bed->ranks);
}

struct block {
	const struct hk__pair_many *args;
	uint32_t number;
	pthread_t thread;
};

static void *block_run(void *arg)
{
	const struct block *block = arg;

	host_pair_block(&block->args->call, block->args->ops, block->args->index, block->number);
	return NULL;
}

static void launch_run(struct rank *rank, const struct launch *launch)
{
	const struct bed *bed = rank->bed;
	struct hk__pair_many *args = calloc(1, sizeof(*args));
	struct block blocks[BLOCKS_MAX];

	CHECK(args);
	args->call = (struct hk__pair_call){ .rank = rank->number,
					     .n = bed->n,
					     .mode = bed->mode,
					     .timeout_ns = bed->timeout_ns,
					     .report = &rank->report };
	memcpy(args->call.segments, bed->segments, sizeof(bed->segments));
	hk__pair_shape(launch->orders, launch->count, bed->blocks,
		       (struct hk__pair_lists){ &args->call, args->ops, args->index });
	uint32_t count = args->call.nblocks;
	CHECK(count <= bed->blocks);
	for (uint32_t b = 0; b < count; b++) {
		blocks[b] = (struct block){ args, b, 0 };
		CHECK_EQ(pthread_create(&blocks[b].thread, NULL, block_run, &blocks[b]), 0);
	}
	for (uint32_t b = 0; b < count; b++)
		pthread_join(blocks[b].thread, NULL);
	free(args);
}

static void *rank_run(void *arg)
{
	struct rank *rank = arg;

	for (uint32_t i = 0; i < rank->bed->launches; i++) {
		if (rank->launches[i].count)
			launch_run(rank, &rank->launches[i]);
	}
	return NULL;
}

/* Launches of all ranks, which go on by themselves; then they are forgotten. */
static void bed_run(struct bed *bed)
{
	for (uint32_t r = 0; r < bed->n; r++)
		CHECK_EQ(pthread_create(&bed->ranks[r].thread, NULL, rank_run, &bed->ranks[r]), 0);
	for (uint32_t r = 0; r < bed->n; r++)
		pthread_join(bed->ranks[r].thread, NULL);
	for (uint32_t r = 0; r < bed->n; r++)
		memset(bed->ranks[r].launches, 0, sizeof(bed->ranks[r].launches));
}

static void bed_check(const struct bed *bed)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		const struct hk__flat_report *report = &bed->ranks[r].report;

		if (report->failed)
			test_fail(__FILE__, __LINE__, "rank %u gave up: %s rank %u, differs %u", r,
				  report->pair == HK__FLAT_SEND ? "send to" : "recv from",
				  report->peer, report->differs);
	}
}

/* ---- messages ---- */

struct message {
	char *from, *to; /* with guards */
	uint64_t bytes;
	uint32_t skews[2];
	uint64_t seed;
};

static void message_open(struct message *message, uint64_t bytes, uint64_t seed)
{
	uint64_t random = seed + 1;

	message->bytes = bytes;
	message->seed = seed;
	message->skews[0] = seed % 3 ? (uint32_t)(test_random(&random) % 16) : 0;
	message->skews[1] = seed % 2 ? (uint32_t)(test_random(&random) % 16) : message->skews[0];
	size_t room = (bytes + 2 * GUARD + 15) / 16 * 16;
	CHECK_EQ(posix_memalign((void **)&message->from, 16, room), 0);
	CHECK_EQ(posix_memalign((void **)&message->to, 16, room), 0);
	memset(message->to, 0xa5, room);
	for (size_t i = 0; i < room; i++)
		message->from[i] = (char)test_random(&random);
}

static uint64_t message_at(const struct message *message, bool sends)
{
	return (uint64_t)(uintptr_t)(sends ? message->from + message->skews[0]
					   : message->to + message->skews[1]);
}

static void message_check(struct message *message)
{
	size_t room = (message->bytes + 2 * GUARD + 15) / 16 * 16;
	uint32_t skew = message->skews[1];

	for (size_t i = 0; i < room; i++) {
		bool inside = i >= skew && i < skew + message->bytes;
		char want = inside ? message->from[i - skew + message->skews[0]] : (char)0xa5;

		if (message->to[i] != want)
			test_fail(__FILE__, __LINE__,
				  "message of %zu bytes (seed %zu): byte %zu is wrong",
				  (size_t)message->bytes, (size_t)message->seed, i - skew);
	}
	free(message->from);
	free(message->to);
}

static void order_add(struct bed *bed, uint32_t rank, uint32_t launch, struct hk__pair_order order)
{
	struct launch *at = &bed->ranks[rank].launches[launch];

	CHECK(at->count < ORDERS_MAX && launch < LAUNCHES_MAX);
	bed->launches = bed->launches > launch ? bed->launches : launch + 1;
	at->orders[at->count++] = order;
}

/* A message from `a` in its launch, to `b` in its own. */
struct route {
	uint32_t a, a_launch, b, b_launch;
	uint32_t tag;
};

static void message_add(struct bed *bed, struct route route, const struct message *message)
{
	order_add(bed, route.a, route.a_launch,
		  (struct hk__pair_order){ .sends = true,
					   .peer = route.b,
					   .tag = route.tag,
					   .at = message_at(message, true),
					   .bytes = message->bytes });
	order_add(bed, route.b, route.b_launch,
		  (struct hk__pair_order){ .peer = route.a,
					   .tag = route.tag,
					   .at = message_at(message, false),
					   .bytes = message->bytes });
}

/* ---- everybody to everybody ---- */

static const uint64_t sizes[] = { 0, 1, 15, 16, 1000, 16384, 16385, 100003, 700001 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static void all_to_all(struct bed *bed, uint64_t bytes, uint32_t launches)
{
	struct message *messages = calloc((size_t)launches * bed->n * bed->n, sizeof(*messages));
	uint32_t count = 0;

	CHECK(messages);
	for (uint32_t i = 0; i < launches; i++) {
		for (uint32_t a = 0; a < bed->n; a++) {
			for (uint32_t b = 0; b < bed->n; b++) {
				struct message *message = &messages[count++];

				message_open(message, bytes + (bytes > 1000 ? a + b : 0), count);
				message_add(bed, (struct route){ a, i, b, i, 0 }, message);
			}
		}
	}
	bed_run(bed);
	bed_check(bed);
	for (uint32_t i = 0; i < count; i++)
		message_check(&messages[i]);
	free(messages);
}

static void all_sizes(bool direct)
{
	static const uint32_t ranks[] = { 1, 2, 3, 8 };

	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		struct bed bed;

		bed_open(&bed, ranks[i], direct);
		for (size_t k = 0; k < NSIZES; k++) {
			if (ranks[i] == 8 && sizes[k] > 200000)
				continue;
			bed.blocks = 1 + (uint32_t)k % 3 * 4;
			all_to_all(&bed, sizes[k], 3);
		}
		bed_close(&bed);
	}
}

TEST(all_to_all_in_place)
{
	all_sizes(true);
}

TEST(all_to_all_by_rooms)
{
	all_sizes(false);
}

/* ---- any number, in any order among peers ---- */

static void shuffle(struct launch *launch, uint64_t *random)
{
	/* Neighbours change places unless they are of one peer and direction. */
	for (uint32_t i = 0; i < 8 * launch->count; i++) {
		uint32_t k = (uint32_t)(test_random(random) % launch->count);
		struct hk__pair_order *two = &launch->orders[k], one = two[0];

		if (k + 1 == launch->count ||
		    (two[0].peer == two[1].peer && two[0].sends == two[1].sends))
			continue;
		two[0] = two[1];
		two[1] = one;
	}
}

static void many_random(bool direct, uint64_t seed)
{
	static const uint64_t some[] = { 0, 3, 128, 5000, 16384, 20000, 70000, 140000 };
	struct message messages[140];
	uint64_t random = seed;
	struct bed bed;

	bed_open(&bed, 2 + seed % 3, direct);
	for (uint32_t turn = 0; turn < 3; turn++) {
		bed.blocks = 1 + (uint32_t)(test_random(&random) % 10);
		for (uint32_t i = 0; i < 140; i++) {
			uint32_t a = (uint32_t)(test_random(&random) % bed.n);
			uint32_t b = (uint32_t)(test_random(&random) % bed.n);
			uint32_t launch = i < 100 ? 0 : i < 120 ? 1 : 2;

			message_open(&messages[i], some[test_random(&random) % 8], seed + i);
			message_add(&bed, (struct route){ a, launch, b, launch, i }, &messages[i]);
		}
		for (uint32_t r = 0; r < bed.n; r++) {
			for (uint32_t i = 0; i < bed.launches; i++) {
				if (bed.ranks[r].launches[i].count)
					shuffle(&bed.ranks[r].launches[i], &random);
			}
		}
		bed_run(&bed);
		bed_check(&bed);
		for (uint32_t i = 0; i < 140; i++)
			message_check(&messages[i]);
	}
	bed_close(&bed);
}

TEST(many_in_place)
{
	for (uint64_t seed = 1; seed <= 6; seed++)
		many_random(true, seed);
}

TEST(many_by_rooms)
{
	for (uint64_t seed = 1; seed <= 6; seed++)
		many_random(false, seed);
}

/* ---- no operation keeps another from going on ---- */

static void crossed(bool direct, uint64_t bytes)
{
	struct message messages[42];
	struct bed bed;

	bed_open(&bed, 3, direct);
	bed.blocks = 1;
	for (uint32_t i = 0; i < 42; i++)
		message_open(&messages[i], bytes, i);
	/* Rank 1 wants what comes first from 0 last: after what rank 2 had from 0. */
	for (uint32_t i = 0; i < 40; i++)
		message_add(&bed, (struct route){ 0, 0, 1, 1, 0 }, &messages[i]);
	message_add(&bed, (struct route){ 0, 0, 2, 0, 0 }, &messages[40]);
	message_add(&bed, (struct route){ 2, 1, 1, 0, 0 }, &messages[41]);
	bed_run(&bed);
	bed_check(&bed);
	for (uint32_t i = 0; i < 42; i++)
		message_check(&messages[i]);
	bed_close(&bed);
}

TEST(crossed)
{
	for (uint32_t direct = 0; direct < 2; direct++) {
		crossed(direct, 10);
		crossed(direct, 50000);
	}
}

/* ---- numbers that come round ---- */

#define ROUND (UINT64_C(1) << 31)

/* So many messages lie behind all pairs; the words are of the first ones of a round. */
static void bed_set_messages(struct bed *bed, uint64_t messages)
{
	uint64_t bytes = hk__pair_segment_bytes(bed->n, bed->mode & HK__PAIR_DIRECT);

	for (uint32_t r = 0; r < bed->n; r++) {
		struct hk__pair_head *head = (void *)bed->segments[r];
		struct hk__pair_peer *peers = (void *)(head + 1);
		uint64_t *words = (uint64_t *)(void *)bed->segments[r];
		struct hk__pair_order order = { .sends = true };
		struct hk__pair_call call = { .n = bed->n, .mode = bed->mode };
		struct hk__pair_index index;
		struct hk__pair_op op;

		hk__pair_shape(&order, 1, 1, (struct hk__pair_lists){ &call, &op, &index });
		uint64_t place = HK__PAIR_HEAD + call.small_bytes / 4;
		for (uint64_t i = call.places / 8; i < bytes / 8; i++) {
			uint64_t number = (i - call.places / 8) / place % HK__PAIR_PLACES;

			words[i] = (UINT64_C(0x80000000) | number) << 32 | 0xdeadbeef;
		}
		for (uint32_t p = 0; p < bed->n; p++)
			hk__pair_peer_after(messages, &peers[p]);
	}
}

static void comes_round(bool direct, uint64_t round, uint32_t before)
{
	static const uint64_t some[] = { 100, 0, 3, 2000, 16000, 40000, 8 };
	struct bed bed;

	bed_open(&bed, 3, direct);
	bed_set_messages(&bed, round - HK__PAIR_PLACES - before);
	for (uint32_t i = 0; i < 7; i++) {
		bed.blocks = 1 + i;
		all_to_all(&bed, some[i], 4);
	}
	bed_close(&bed);
}

TEST(numbers_come_round)
{
	for (uint32_t before = 0; before < 10; before += 3) {
		for (uint32_t direct = 0; direct < 2; direct++) {
			comes_round(direct, ROUND, before);
			comes_round(direct, 2 * ROUND, before);
			comes_round(direct, 9 * ROUND, before);
		}
	}
}

/* ---- failing ---- */

struct differing {
	uint64_t sent, wanted;
	uint32_t sent_tag, wanted_tag;
};

/* Both ends name the other one, and what both have called. */
static void differ(bool direct, struct differing how)
{
	struct message message;
	struct bed bed;

	bed_open(&bed, 3, direct);
	bed.timeout_ns = UINT64_C(3000000000);
	message_open(&message, 200000, 0);
	order_add(&bed, 0, 0,
		  (struct hk__pair_order){ .sends = true,
					   .peer = 2,
					   .tag = how.sent_tag,
					   .at = message_at(&message, true),
					   .bytes = how.sent });
	order_add(&bed, 2, 0,
		  (struct hk__pair_order){ .peer = 0,
					   .tag = how.wanted_tag,
					   .at = message_at(&message, false),
					   .bytes = how.wanted });
	bed_run(&bed);
	const struct hk__flat_report *report = &bed.ranks[2].report;
	CHECK(report->failed && report->differs);
	CHECK_EQ(report->pair, HK__FLAT_RECV);
	CHECK_EQ(report->peer, 0);
	CHECK_EQ(report->bytes[0], how.wanted);
	CHECK_EQ(report->bytes[1], how.sent);
	CHECK_EQ(report->whats[0], how.wanted_tag);
	CHECK_EQ(report->whats[1], how.sent_tag);
	/* Nothing more is begun. */
	order_add(&bed, 2, 0, (struct hk__pair_order){ .peer = 1, .at = 0, .bytes = 0 });
	bed_run(&bed);
	free(message.from);
	free(message.to);
	bed_close(&bed);
}

TEST(messages_that_differ)
{
	static const struct differing hows[] = {
		{ 10, 20, 0, 0 },	  { 10, 200000, 0, 0 },	    { 200000, 10, 0, 0 },
		{ 100000, 200000, 0, 0 }, { 200000, 150000, 0, 0 }, { 64, 64, 5, 6 },
		{ 200000, 200000, 5, 6 }, { 0, 1, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
		differ(true, hows[i]);
		differ(false, hows[i]);
	}
}

static void missing(bool direct, bool sends, bool aborts)
{
	struct message message;
	struct bed bed;

	bed_open(&bed, 4, direct);
	bed.timeout_ns = aborts ? TIMEOUT_NS : 20000000;
	bed.ranks[1].report.abort = aborts;
	message_open(&message, 6000000, 0);
	order_add(&bed, 1, 0,
		  (struct hk__pair_order){ .sends = sends,
					   .peer = 3,
					   .at = message_at(&message, sends),
					   .bytes = 6000000 });
	bed_run(&bed);
	const struct hk__flat_report *report = &bed.ranks[1].report;
	CHECK(report->failed && !report->differs);
	CHECK_EQ(report->aborted, aborts);
	CHECK_EQ(report->pair, sends ? HK__FLAT_SEND : HK__FLAT_RECV);
	CHECK_EQ(report->peer, 3);
	free(message.from);
	free(message.to);
	bed_close(&bed);
}

TEST(a_missing_rank_is_named)
{
	for (uint32_t i = 0; i < 8; i++)
		missing(i & 1, i & 2, i & 4);
}
