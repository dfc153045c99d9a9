/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair_test.c - sends, receives, alltoallv and batches on device memory: ranks of one
 * process. HK_TEST_GPU=small: few and small ones, for compute-sanitizer.
 */
#include "exec/device/pair.h"
#include "gpu/exchange.h"
#include "harness.h"

#include <stdint.h>

static bool is_small(void)
{
	const char *text = getenv("HK_TEST_GPU");

	return bed_is_standin() || (text && strcmp(text, "small") == 0);
}

/* ---- everybody to everybody ---- */

static const uint64_t sizes[] = { 1000, 0, 1, 20, 4096, 16384, 16385, 70001, 2000003, 9000000 };

#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Once a bed is open. */
static size_t nsizes(void)
{
	return is_small() ? NSIZES - 2 : NSIZES;
}

TEST(batches_of_sends_and_receives)
{
	static const uint32_t ranks[] = { 4, 1, 2, 8 };

	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		struct bed bed;

		bed_open(&bed, ranks[i], exchange_memory(ranks[i], sizes[NSIZES - 1]));
		for (size_t k = 0; k < nsizes(); k++) {
			struct exchange exchange = { .bytes = sizes[k],
						     .seed = k,
						     .skew = (uint32_t)k % 4,
						     .uneven = k % 2 };

			exchange_fill(&bed, &exchange);
			exchange_batches(&bed, &exchange);
			exchange_check(&bed, &exchange);
		}
		bed_close(&bed);
	}
}

/* ---- alltoallv ---- */

TEST(alltoallv)
{
	static const uint32_t ranks[] = { 8, 3, 1 };

	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		struct bed bed;

		bed_open(&bed, ranks[i], exchange_memory(ranks[i], sizes[NSIZES - 1]));
		for (size_t k = 0; k < nsizes(); k++) {
			struct exchange exchange = {
				.bytes = sizes[k] / 4 * 4, .seed = k, .packed = true, .uneven = true
			};

			exchange_fill(&bed, &exchange);
			exchange_alltoallv(&bed, &exchange);
			exchange_check(&bed, &exchange);
		}
		bed_close(&bed);
	}
}

/* ---- graphs ---- */

TEST(graphs)
{
	static const uint64_t some[] = { 64, 16384, 300000 };
	struct bed bed;

	bed_open(&bed, 4, exchange_memory(4, 300000));
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		struct exchange exchange = { .bytes = some[i], .uneven = true, .packed = i % 2 };

		exchange_fill(&bed, &exchange);
		exchange_batches(&bed, &exchange);
		exchange_check(&bed, &exchange);
		bed_capture_begin(&bed);
		exchange_batches(&bed, &exchange);
		void *graph = bed_capture_end(&bed);
		for (uint32_t turn = 0; turn < 3; turn++) {
			exchange.seed++;
			exchange_fill(&bed, &exchange);
			bed_replay(&bed, graph);
			exchange_check(&bed, &exchange);
		}
		exchange.seed++;
		exchange_fill(&bed, &exchange);
		exchange_batches(&bed, &exchange);
		exchange_check(&bed, &exchange);
		bed_graph_free(graph);
	}
	bed_close(&bed);
}

/* ---- numbers that come round ---- */

TEST(numbers_come_round)
{
	static const uint64_t some[] = { 64, 16000, 40000, 2000 };
	struct bed bed;

	bed_open(&bed, 4, exchange_memory(4, 40000));
	for (uint32_t before = 1; before <= 9; before += 2) {
		/* Far enough: what is left of one round is not of the next one's numbers. */
		for (uint32_t i = 0; i < 32; i++) {
			struct exchange exchange = { .bytes = some[i % 4],
						     .seed = i,
						     .uneven = true };

			exchange_fill(&bed, &exchange);
			exchange_batches(&bed, &exchange);
			exchange_check(&bed, &exchange);
		}
		/* Every place is used once more in the old round, and holds words of this one. */
		bed_set_messages(&bed, (UINT64_C(1) << (before % 4 == 1 ? 31 : 32)) -
					       HK__PAIR_PLACES - before);
	}
	bed_close(&bed);
}

/* ---- one at a time ---- */

TEST(round_a_ring)
{
	static const uint64_t some[] = { 8, 100000 };
	struct bed bed;

	bed_open(&bed, 4, (size_t)1 << 20);
	for (size_t i = 0; i < 2 * sizeof(some) / sizeof(some[0]); i++) {
		uint64_t bytes = some[i % 2];
		char *words = malloc(bytes), *seen = malloc(bytes);

		CHECK(words && seen);
		for (uint64_t k = 0; k < bytes; k++)
			words[k] = (char)(k * 7 + i);
		bed_to_device(bed.memory[0], words, bytes);
		/* From rank 0 round to rank 0; the last receive is called for first. */
		for (uint32_t k = 0; k < 2 * bed.n; k++) {
			uint32_t r = k / 2 % bed.n;
			struct hk_opts opts = HK_OPTS_INIT;

			opts.stream = bed.streams[r];
			opts.tag = 5;
			if (k % 2 == (r == 0))
				bed_must(&bed, r,
					 hk_recv(bed.groups[r],
						 bed_at(&bed, r, r ? 0 : (size_t)1 << 19),
						 bytes / 8, HK_TYPE_UINT64, (r + bed.n - 1) % bed.n,
						 &opts));
			else
				bed_must(&bed, r,
					 hk_send(bed.groups[r], bed_at(&bed, r, 0), bytes / 8,
						 HK_TYPE_UINT64, (r + 1) % bed.n, &opts));
		}
		bed_wait(&bed);
		bed_to_host(seen, bed.memory[0] + ((size_t)1 << 19), bytes);
		CHECK(memcmp(seen, words, bytes) == 0);
		free(words);
		free(seen);
	}
	bed_close(&bed);
}

/* ---- all kinds together ---- */

TEST(batches_of_everything)
{
	struct bed_op op = {
		.want = { .coll = HK_COLL_ALLREDUCE, .type = HK_TYPE_FP32, .n = 4, .count = 5000 }
	};
	struct exchange exchange = { .bytes = 40000, .uneven = true };
	struct bed bed, more;

	bed_open(&bed, 4, exchange_memory(4, 40000));
	bed_open(&more, 4, (size_t)1 << 20); /* its memory and streams alone are used */
	for (uint32_t turn = 0; turn < 3; turn++) {
		exchange.seed = op.want.seed = turn;
		exchange_fill(&bed, &exchange);
		bed_fill(&more, &op);
		for (uint32_t r = 0; r < 4; r++) {
			struct hk_opts opts = HK_OPTS_INIT;
			struct bed_place place;

			bed_lay_out(&op, r, &place);
			bed_must(&bed, r, hk_batch_begin(bed.groups[r]));
			/* On one stream and on another, which goes on after all of it. */
			opts.stream = turn % 2 ? more.streams[r] : bed.streams[r];
			exchange_rank(&bed, &exchange, r, &opts);
			opts.stream = turn == 2 ? more.streams[r] : bed.streams[r];
			bed_must(&bed, r,
				 hk_allreduce(bed.groups[r], bed_at(&more, r, place.in),
					      bed_at(&more, r, place.out), op.want.count,
					      HK_TYPE_FP32, HK_REDOP_SUM, &opts));
			bed_must(&bed, r,
				 hk_send(bed.groups[r], NULL, 0, HK_TYPE_FP32, (r + 1) % 4, &opts));
			bed_must(&bed, r,
				 hk_recv(bed.groups[r], NULL, 0, HK_TYPE_FP32, (r + 3) % 4, &opts));
			bed_must(&bed, r, hk_batch_end(bed.groups[r]));
		}
		bed_wait(&more);
		exchange_check(&bed, &exchange);
		bed_check(&more, &op);
	}
	bed_close(&more);
	bed_close(&bed);
}

/* More than fit into the arguments of one kind of launch. */
TEST(many_messages)
{
	uint32_t words[600], seen[600];
	struct bed bed;

	bed_open(&bed, 2, (size_t)1 << 20);
	for (uint32_t i = 0; i < 600; i++)
		words[i] = i * 2654435761u;
	bed_to_device(bed.memory[0], words, sizeof(words));
	for (uint32_t r = 0; r < 2; r++) {
		struct hk_opts opts = HK_OPTS_INIT;

		opts.stream = bed.streams[r];
		bed_must(&bed, r, hk_batch_begin(bed.groups[r]));
		for (uint32_t i = 0; i < 600; i++)
			bed_must(&bed, r,
				 r ? hk_recv(bed.groups[r], bed_at(&bed, r, i * 4), 1,
					     HK_TYPE_UINT32, 0, &opts)
				   : hk_send(bed.groups[r], bed_at(&bed, r, i * 4), 1,
					     HK_TYPE_UINT32, 1, &opts));
		bed_must(&bed, r, hk_batch_end(bed.groups[r]));
	}
	bed_wait(&bed);
	bed_to_host(seen, bed.memory[1], sizeof(seen));
	CHECK(memcmp(seen, words, sizeof(seen)) == 0);
	bed_close(&bed);
}

/* ---- failing ---- */

static void differ(uint64_t sent, uint64_t wanted, uint32_t tag, const char *said)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct bed bed;

	bed_open(&bed, 2, (size_t)1 << 20);
	opts.stream = bed.streams[0];
	bed_must(&bed, 0,
		 hk_send(bed.groups[0], bed_at(&bed, 0, 0), sent, HK_TYPE_UINT8, 1, &opts));
	opts.stream = bed.streams[1];
	opts.tag = tag;
	bed_must(&bed, 1,
		 hk_recv(bed.groups[1], bed_at(&bed, 1, 0), wanted, HK_TYPE_UINT8, 0, &opts));
	bed_wait(&bed);
	CHECK_EQ(hk_recv(bed.groups[1], bed_at(&bed, 1, 0), 1, HK_TYPE_UINT8, 0, &opts),
		 HK_EMISMATCH);
	CHECK_HAS(hk_group_why(bed.groups[1]), said);
	/* Who sends little does not wait for what becomes of it. */
	if (sent > 50000)
		CHECK_EQ(hk_send(bed.groups[0], bed_at(&bed, 0, 0), 1, HK_TYPE_UINT8, 1, NULL),
			 HK_EMISMATCH);
	bed_close(&bed);
}

TEST(messages_that_differ)
{
	differ(100, 200, 0,
	       "rank 1: recv from rank 0 on the device: 200 bytes, but rank 0 sends 100 bytes");
	differ(100000, 200000, 0, "200000 bytes, but rank 0 sends 100000 bytes");
	differ(100, 100, 7, "100 bytes with tag 7, but rank 0 sends 100 bytes");
}

TEST(a_missing_rank_is_named)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct bed bed;

	bed_open(&bed, 3, (size_t)1 << 20);
	opts.timeout_ns = 100 * 1000 * 1000;
	opts.stream = bed.streams[0];
	bed_must(&bed, 0,
		 hk_send(bed.groups[0], bed_at(&bed, 0, 0), 500000, HK_TYPE_UINT8, 2, &opts));
	bed_wait(&bed);
	CHECK_EQ(hk_send(bed.groups[0], bed_at(&bed, 0, 0), 1, HK_TYPE_UINT8, 1, &opts),
		 HK_ETIMEDOUT);
	CHECK_HAS(hk_group_why(bed.groups[0]),
		  "rank 0: send to rank 2 on the device: 500000 bytes, not finished in time");
	bed_close(&bed);
}

TEST(refusals)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request;
	struct exchange exchange = { .bytes = 100 };
	char host[8] = { 0 };
	struct bed bed;

	bed_open(&bed, 2, exchange_memory(2, 1000));
	opts.stream = bed.streams[0];
	CHECK_EQ(hk_send(bed.groups[0], host, 8, HK_TYPE_UINT8, 1, &opts), HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]),
		  "send: a stream is given, but the buffer is not device");
	opts.request = &request;
	CHECK_EQ(hk_recv(bed.groups[0], bed_at(&bed, 0, 0), 8, HK_TYPE_UINT8, 1, &opts), HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]), "recv: calls on device memory complete on");
	opts.request = NULL;
	bed_must(&bed, 0, hk_batch_begin(bed.groups[0]));
	for (uint32_t i = 0; i < 1025; i++)
		bed_must(&bed, 0,
			 hk_send(bed.groups[0], bed_at(&bed, 0, 0), 1, HK_TYPE_UINT8, 1, &opts));
	CHECK_EQ(hk_batch_end(bed.groups[0]), HK_ELIMIT);
	CHECK_HAS(hk_group_why(bed.groups[0]), "1025 sends and receives");
	/* Nothing was begun. */
	exchange_fill(&bed, &exchange);
	exchange_batches(&bed, &exchange);
	exchange_check(&bed, &exchange);
	bed_close(&bed);
}
