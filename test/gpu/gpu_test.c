/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_test.c - collectives on device memory: ranks of one process on one GPU.
 * `make test-gpu`; where there is no GPU, on a stand-in for one, with less of what is
 * large. HK_TEST_GPU=small: few and small ones, for compute-sanitizer.
 */
#include "gpu/bed.h"
#include "harness.h"

#include <pthread.h>

static const uint32_t ranks[] = { 1, 2, 4, 8 };

static bool is_small(void)
{
	const char *text = getenv("HK_TEST_GPU");

	return text && strcmp(text, "small") == 0;
}

/* ---- everything ---- */

/* In and out of place, aligned and not, some sizes. */
static void op_sizes(struct bed *bed, struct bed_op op)
{
	static const uint64_t counts[] = { 2, 1, 7, 1000, 4099, 33001 };
	size_t ncounts = is_small() ? 4 : bed_is_standin() ? 5 : sizeof(counts) / sizeof(counts[0]);

	for (size_t i = 0; i < ncounts; i++) {
		op.want.count = counts[i];
		op.want.seed++;
		op.inplace = i % 2 && op.want.coll != HK_COLL_ALLTOALL;
		op.skew = i % 3;
		op.want.v = i == 3 && want_has_v(op.want.coll) && op.want.coll != HK_COLL_ALLTOALL;
		bed_try(bed, &op);
	}
}

static void coll_types(struct bed *bed, enum hk_coll coll, uint32_t root)
{
	for (unsigned t = 0; t < HK_TYPE_COUNT; t++) {
		for (unsigned o = 0; o < (want_reduces(coll) ? HK_REDOP_COUNT : 1); o++) {
			struct bed_op op = { .want = { .coll = coll,
						       .type = (enum hk_type)t,
						       .op = (enum hk_redop)o,
						       .n = bed->n,
						       .root = root,
						       .seed = t * 100 + o } };

			if (hk_redop_valid(op.want.type, op.want.op))
				op_sizes(bed, op);
		}
	}
}

static void coll_all(enum hk_coll coll)
{
	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		struct bed bed;

		if (is_small() && ranks[i] != 4)
			continue;
		bed_open(&bed, ranks[i], (size_t)16 << 20);
		coll_types(&bed, coll, want_rooted(coll) ? ranks[i] / 2 : 0);
		bed_close(&bed);
	}
}

TEST(allreduce)
{
	coll_all(HK_COLL_ALLREDUCE);
}

TEST(allgather)
{
	coll_all(HK_COLL_ALLGATHER);
}

TEST(reducescatter)
{
	coll_all(HK_COLL_REDUCESCATTER);
}

TEST(alltoall)
{
	coll_all(HK_COLL_ALLTOALL);
}

TEST(broadcast)
{
	coll_all(HK_COLL_BROADCAST);
}

TEST(reduce)
{
	coll_all(HK_COLL_REDUCE);
}

TEST(gather)
{
	coll_all(HK_COLL_GATHER);
}

TEST(scatter)
{
	coll_all(HK_COLL_SCATTER);
}

/* ---- every algorithm, with buffers and with lines ---- */

TEST(every_algorithm)
{
	static const uint64_t counts[] = { 100, 5000, 20001, 100003 };
	struct hk_algo_info algo = { .size = sizeof(algo) };
	struct bed bed;

	bed_open(&bed, is_small() ? 4 : 8, (size_t)32 << 20);
	size_t ncounts = is_small() ? 2 : bed_is_standin() ? 3 : sizeof(counts) / sizeof(counts[0]);
	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		struct bed_op op = { .want = { .coll = algo.coll,
					       .type = i % 2 ? HK_TYPE_FP32 : HK_TYPE_BF16,
					       .n = bed.n,
					       .seed = i },
				     .algo = algo.name };

		if (algo.coll == HK_COLL_BARRIER || algo.coll == HK_COLL_SENDRECV || algo.onesided)
			continue;
		for (size_t k = 0; k < ncounts; k++) {
			op.want.count = counts[k];
			op.inplace = algo.inplace && k % 2;
			bed_try(&bed, &op);
		}
	}
	bed_close(&bed);
}

/* ---- bit by bit as on the host ---- */

struct host_rank {
	struct hk_group *group;
	char *in, *out;
	uint64_t count;
	enum hk_type type;
	enum hk_redop op;
	const char *algo;
	uint64_t factor;
};

static void *host_rank_run(void *arg)
{
	struct host_rank *rank = arg;
	struct hk_opts opts = HK_OPTS_INIT;

	opts.algo = rank->algo;
	opts.factor = &rank->factor;
	CHECK_EQ(hk_allreduce(rank->group, rank->in, rank->out, rank->count, rank->type, rank->op,
			      &opts),
		 HK_OK);
	return NULL;
}

/* Any bits at all: infinities, NaNs, subnormals, and sums that round. */
static void bits_try(struct bed *bed, struct hk_group **hosts, enum hk_type type, enum hk_redop op,
		     const char *algo, uint64_t count)
{
	struct host_rank on_host[BED_RANKS_MAX];
	pthread_t threads[BED_RANKS_MAX];
	size_t bytes = count * hk_type_size(type);
	uint64_t seed = (uint64_t)type * 1000 + op + count;

	for (uint32_t r = 0; r < bed->n; r++) {
		struct hk_opts opts = HK_OPTS_INIT;
		struct host_rank *rank = &on_host[r];

		*rank = (struct host_rank){ hosts[r], malloc(bytes), malloc(bytes), count, type,
					    op,	      algo,	     0x3fc00000 };
		CHECK(rank->in && rank->out);
		for (size_t i = 0; i < bytes; i++)
			rank->in[i] = (char)test_random(&seed);
		bed_to_device(bed->memory[r], rank->in, bytes);
		opts.algo = algo;
		opts.stream = bed->streams[r];
		opts.factor = &rank->factor;
		char *base = (char *)(uintptr_t)bed->memory[r];
		CHECK_EQ(hk_allreduce(bed->groups[r], base, base + bed->bytes / 2, count, type, op,
				      &opts),
			 HK_OK);
	}
	for (uint32_t r = 0; r < bed->n; r++)
		CHECK_EQ(pthread_create(&threads[r], NULL, host_rank_run, &on_host[r]), 0);
	for (uint32_t r = 0; r < bed->n; r++)
		pthread_join(threads[r], NULL);
	bed_wait(bed);
	for (uint32_t r = 0; r < bed->n; r++) {
		bed_to_host(on_host[r].in, bed->memory[r] + bed->bytes / 2, bytes);
		for (size_t i = 0; i < bytes; i++) {
			if (on_host[r].in[i] != on_host[r].out[i])
				test_fail(__FILE__, __LINE__,
					  "%s %s by %s, %zu elements: rank %u: byte %zu",
					  hk_type_name(type), hk_redop_name(op), algo,
					  (size_t)count, r, i);
		}
		free(on_host[r].in);
		free(on_host[r].out);
	}
}

static void *free_group(void *group)
{
	hk_group_free(group);
	return NULL;
}

static void bits_of(uint32_t n)
{
	static const char *const algos[] = { "one-shot", "two-shot", "ring", "halving-doubling",
					     "double-tree" };
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *hosts[BED_RANKS_MAX];
	pthread_t threads[BED_RANKS_MAX];
	struct hk_why why;
	struct bed bed;

	bed_open(&bed, n, (size_t)8 << 20);
	CHECK_EQ(hk_group_threads(n, &opts, &why, hosts), HK_OK);
	for (unsigned t = 0; t < HK_TYPE_COUNT; t++) {
		for (unsigned o = 0; o < HK_REDOP_COUNT; o++) {
			const char *algo = algos[(t + o) % (sizeof(algos) / sizeof(algos[0]))];

			if (!hk_redop_valid((enum hk_type)t, (enum hk_redop)o))
				continue;
			bits_try(&bed, hosts, (enum hk_type)t, (enum hk_redop)o, algo, 1003);
			bits_try(&bed, hosts, (enum hk_type)t, (enum hk_redop)o, algo,
				 is_small()	    ? 300
				 : bed_is_standin() ? 9001
						    : 70001);
		}
	}
	for (uint32_t r = 0; r < n; r++)
		CHECK_EQ(pthread_create(&threads[r], NULL, free_group, hosts[r]), 0);
	for (uint32_t r = 0; r < n; r++)
		pthread_join(threads[r], NULL);
	bed_close(&bed);
}

TEST(bits_as_on_the_host)
{
	bits_of(is_small() ? 4 : 8);
}

TEST(bits_of_two_ranks)
{
	bits_of(2);
}

/* ---- graphs ---- */

TEST(graphs)
{
	static const uint64_t counts[] = { 2, 3000, 20001, 200001 };
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_REDUCESCATTER, HK_COLL_ALLTOALL,
					      HK_COLL_BROADCAST };
	struct bed bed;

	bed_open(&bed, 8, (size_t)32 << 20);
	size_t ncounts = is_small() ? 2 : bed_is_standin() ? 3 : sizeof(counts) / sizeof(counts[0]);
	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
		for (size_t i = 0; i < ncounts; i++) {
			struct bed_op op = { .want = { .coll = colls[c],
						       .type = HK_TYPE_FP32,
						       .n = 8,
						       .count = counts[i] } };

			bed_try(&bed, &op);
			bed_capture_begin(&bed);
			bed_call(&bed, &op);
			void *graph = bed_capture_end(&bed);
			for (uint32_t turn = 0; turn < 3; turn++) {
				op.want.seed++;
				bed_fill(&bed, &op);
				bed_replay(&bed, graph);
				bed_check(&bed, &op);
			}
			/* And what is not in it goes on after it. */
			bed_try(&bed, &op);
			bed_graph_free(graph);
		}
	}
	bed_close(&bed);
}

/* ---- counters that come round ---- */

/* By lines, by flags, and again; a graph as well. */
static void round_try(struct bed *bed, const char *algo)
{
	static const uint64_t counts[] = { 2, 60000, 300, 60000, 2 };
	struct bed_op op = {
		.want = { .coll = HK_COLL_ALLREDUCE, .type = HK_TYPE_INT32, .n = bed->n },
		.algo = algo
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		op.want.count = counts[i];
		op.want.seed++;
		bed_try(bed, &op);
	}
}

TEST(epochs_come_round)
{
	static const uint64_t rounds[] = { UINT64_C(1) << 32, UINT64_C(3) << 32, UINT64_C(1) << 31,
					   UINT64_C(1) << 30 };
	struct bed bed;

	bed_open(&bed, 4, (size_t)16 << 20);
	round_try(&bed, NULL);
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		for (uint32_t before = 1; before <= 4; before++) {
			bed_set_epoch(&bed, rounds[i] - before);
			round_try(&bed, before % 2 ? "one-shot" : "two-shot");
		}
	}
	bed_close(&bed);
}

TEST(a_graph_goes_on_as_epochs_come_round)
{
	struct bed_op op = {
		.want = { .coll = HK_COLL_ALLREDUCE, .type = HK_TYPE_INT32, .n = 4, .count = 300 }
	};
	struct bed bed;

	bed_open(&bed, 4, (size_t)16 << 20);
	bed_try(&bed, &op);
	bed_capture_begin(&bed);
	bed_call(&bed, &op);
	void *graph = bed_capture_end(&bed);
	bed_set_epoch(&bed, (UINT64_C(1) << 32) - 4);
	for (uint32_t turn = 0; turn < 8; turn++) {
		op.want.seed++;
		bed_fill(&bed, &op);
		bed_replay(&bed, graph);
		bed_check(&bed, &op);
	}
	bed_graph_free(graph);
	bed_close(&bed);
}

/* ---- ranks as threads that do not wait for each other ---- */

struct runner {
	struct bed *bed;
	uint32_t rank;
};

#define RUNS 400u

static void *runner_run(void *arg)
{
	const struct runner *runner = arg;

	for (uint32_t i = 0; i < RUNS; i++) {
		/* In place: the sum of ones becomes n, n^2, ... modulo 2^32. */
		struct bed_op op = { .want = { .coll = HK_COLL_ALLREDUCE,
					       .type = HK_TYPE_UINT32,
					       .n = runner->bed->n,
					       .count = i % 3 == 0   ? 50000
							: i % 3 == 1 ? 50
								     : 3000 },
				     .inplace = true };
		struct hk_opts opts = HK_OPTS_INIT;
		char *at = (char *)(uintptr_t)runner->bed->memory[runner->rank];

		opts.stream = runner->bed->streams[runner->rank];
		CHECK_EQ(hk_allreduce(runner->bed->groups[runner->rank], at, at, op.want.count,
				      HK_TYPE_UINT32, HK_REDOP_SUM, &opts),
			 HK_OK);
	}
	return NULL;
}

TEST(threads_run_ahead)
{
	struct runner runners[7];
	pthread_t threads[7];
	struct bed bed;
	uint32_t *ones = malloc(50000 * sizeof(*ones)), want = 1;

	CHECK(ones);
	bed_open(&bed, 7, (size_t)1 << 20);
	for (uint32_t i = 0; i < 50000; i++)
		ones[i] = 1;
	for (uint32_t r = 0; r < 7; r++)
		bed_to_device(bed.memory[r], ones, 50000 * sizeof(*ones));
	for (uint32_t r = 0; r < 7; r++) {
		runners[r] = (struct runner){ &bed, r };
		CHECK_EQ(pthread_create(&threads[r], NULL, runner_run, &runners[r]), 0);
	}
	for (uint32_t r = 0; r < 7; r++)
		pthread_join(threads[r], NULL);
	bed_wait(&bed);
	/* Element 0 is in all of them; of seven ranks, no power is 0 modulo 2^32. */
	for (uint32_t i = 0; i < RUNS; i++)
		want *= 7;
	for (uint32_t r = 0; r < 7; r++) {
		bed_to_host(ones, bed.memory[r], 50000 * sizeof(*ones));
		CHECK_EQ(ones[0], want);
	}
	free(ones);
	bed_close(&bed);
}

/* ---- large ---- */

TEST(large)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_REDUCESCATTER, HK_COLL_ALLTOALL };
	struct bed bed;

	bed_open(&bed, 1, 1); /* says what it is */
	bed_close(&bed);
	size_t bytes = is_small() || bed_is_standin() ? (size_t)1 << 20 : (size_t)256 << 20;
	uint32_t *words = malloc(bytes);
	CHECK(words);
	bed_open(&bed, 8, 2 * bytes);
	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
		uint64_t count = bytes / 4 / (colls[c] == HK_COLL_ALLREDUCE ? 1 : 8);

		for (uint32_t r = 0; r < 8; r++) {
			struct hk_opts opts = HK_OPTS_INIT;
			char *in = (char *)(uintptr_t)bed.memory[r], *out = in + bytes;

			for (size_t i = 0; i < bytes / 4; i++)
				words[i] = (uint32_t)(i * 2654435761u + r);
			bed_to_device(bed.memory[r], words, bytes);
			opts.stream = bed.streams[r];
			CHECK_EQ(colls[c] == HK_COLL_ALLREDUCE
					 ? hk_allreduce(bed.groups[r], in, out, count,
							HK_TYPE_UINT32, HK_REDOP_SUM, &opts)
				 : colls[c] == HK_COLL_ALLGATHER
					 ? hk_allgather(bed.groups[r], in, out, count,
							HK_TYPE_UINT32, &opts)
				 : colls[c] == HK_COLL_REDUCESCATTER
					 ? hk_reducescatter(bed.groups[r], in, out, count,
							    HK_TYPE_UINT32, HK_REDOP_SUM, &opts)
					 : hk_alltoall(bed.groups[r], in, out, count,
						       HK_TYPE_UINT32, &opts),
				 HK_OK);
		}
		bed_wait(&bed);
		for (uint32_t r = 0; r < 8; r += 7) {
			bool reduces = want_reduces(colls[c]);
			size_t len = colls[c] == HK_COLL_REDUCESCATTER ? count : bytes / 4;

			bed_to_host(words, bed.memory[r] + bytes, len * 4);
			for (size_t i = 0; i < len; i++) {
				uint32_t from = (uint32_t)(i / count);
				size_t at = colls[c] == HK_COLL_ALLREDUCE   ? i
					    : colls[c] == HK_COLL_ALLGATHER ? i % count
					    : colls[c] == HK_COLL_REDUCESCATTER
						    ? r * count + i
						    : r * count + i % count;
				uint32_t one = (uint32_t)(at * 2654435761u);

				if (words[i] != (reduces ? 8 * one + 28 : one + from))
					test_fail(__FILE__, __LINE__, "%s: rank %u: element %zu",
						  hk_coll_name(colls[c]), r, i);
			}
		}
	}
	free(words);
	bed_close(&bed);
}

/* ---- failing ---- */

static void missing_try(uint64_t count)
{
	struct bed_op op = {
		.want = { .coll = HK_COLL_ALLREDUCE, .type = HK_TYPE_FP32, .n = 4, .count = count }
	};
	struct bed bed;

	bed_open(&bed, 4, (size_t)4 << 20);
	bed_try(&bed, &op);
	for (uint32_t r = 0; r < 3; r++)
		CHECK_EQ(bed_call_rank(&bed, &op, r, 100 * 1000 * 1000), HK_OK);
	bed_wait(&bed);
	CHECK_EQ(bed_call_rank(&bed, &op, 0, 0), HK_ETIMEDOUT);
	CHECK_HAS(hk_group_why(bed.groups[0]), "waited for rank 3");
	/* The others learn of it by the group, or by themselves. */
	CHECK(bed_call_rank(&bed, &op, 1, 0) != HK_OK);
	bed_close(&bed);
}

/* By flags, and by lines. */
TEST(a_missing_rank_is_named)
{
	missing_try(100000);
	missing_try(2);
}

TEST(refusals)
{
	struct bed_op op = {
		.want = { .coll = HK_COLL_ALLREDUCE, .type = HK_TYPE_FP32, .n = 2, .count = 8 }
	};
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request;
	float host[8];
	struct bed bed;

	bed_open(&bed, 2, (size_t)1 << 20);
	char *at = (char *)(uintptr_t)bed.memory[0];
	CHECK_EQ(hk_allreduce(bed.groups[0], at, host, 8, HK_TYPE_FP32, HK_REDOP_SUM, NULL),
		 HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]), "`in` is device memory, but `out` is not");
	opts.request = &request;
	CHECK_EQ(hk_allreduce(bed.groups[0], at, at, 8, HK_TYPE_FP32, HK_REDOP_SUM, &opts),
		 HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]), "complete on their stream: no request");
	CHECK_EQ(hk_allreduce(bed.groups[0], at + 2, at + 2, 8, HK_TYPE_FP32, HK_REDOP_SUM, NULL),
		 HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]), "not aligned");
	bed_try(&bed, &op); /* nothing was begun */
	bed_close(&bed);
}

/* Of two multiprocessors with two blocks each: four ranks have one each, five do not. */
TEST(ranks_have_room_or_are_refused)
{
	struct bed_op op = {
		.want = { .coll = HK_COLL_ALLREDUCE, .type = HK_TYPE_FP32, .n = 4, .count = 50001 }
	};
	struct bed bed;

	setenv("HK_STANDIN_SMS", "2", 1);
	bed_open(&bed, 4, (size_t)1 << 20);
	if (!bed_is_standin())
		SKIP("a GPU has more");
	for (uint32_t i = 0; i < 20; i++) {
		op.want.seed++;
		bed_try(&bed, &op);
	}
	bed_close(&bed);
	bed_open(&bed, 5, (size_t)1 << 20);
	op.want.n = 5;
	for (uint32_t r = 0; r < 5; r++) {
		CHECK_EQ(bed_call_rank(&bed, &op, r, 0), HK_ELIMIT);
		CHECK_HAS(hk_group_why(bed.groups[r]), "5 ranks on one GPU, but only 4 blocks");
	}
	bed_close(&bed);
}
