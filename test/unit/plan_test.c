/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_test.c - making plans and asking them: arguments, names, lengths, and
 * that a step costs nothing however many ranks there are.
 */
#include "harness.h"

#include "plan/plan.h"

#include <hocket/hocket.h>

#include <sys/resource.h>
#include <time.h>

static struct hk_plan *create(enum hk_coll coll, uint32_t n, const char *algo)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_why why = { "" };
	struct hk_plan *plan;

	opts.algo = algo;
	if (hk_plan_create(coll, n, &opts, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return plan;
}

static void expect_wrong(enum hk_coll coll, uint32_t n, const struct hk_plan_opts *opts,
			 enum hk_status expected, const char *says)
{
	struct hk_why why = { "" };
	struct hk_plan *plan = NULL;

	CHECK_EQ(hk_plan_create(coll, n, opts, &why, &plan), expected);
	CHECK_HAS(why.text, says);
	CHECK(plan == NULL);
}

TEST(wrong_arguments)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	const struct hk_msg msgs[] = { { 0, 1 }, { 1, 4 } };

	expect_wrong(HK_COLL_ALLREDUCE, 0, NULL, HK_ELIMIT, "0 ranks: a plan has 1 to 16777216");
	expect_wrong(HK_COLL_ALLREDUCE, HK_RANKS_MAX + 1, NULL, HK_ELIMIT, "a plan has 1 to");
	opts.algo = "rings";
	expect_wrong(HK_COLL_ALLREDUCE, 4, &opts, HK_EINVAL,
		     "allreduce has no algorithm 'rings'; it has one-shot, two-shot, ring,");
	opts = (struct hk_plan_opts)HK_PLAN_OPTS_INIT;
	opts.root = 4;
	expect_wrong(HK_COLL_BROADCAST, 4, &opts, HK_EINVAL,
		     "root 4 is not one of the 4 ranks (0 to 3)");
	opts.root = 1;
	expect_wrong(HK_COLL_ALLREDUCE, 4, &opts, HK_EINVAL, "allreduce has no root");
	opts = (struct hk_plan_opts)HK_PLAN_OPTS_INIT;
	opts.nodes = 2;
	opts.algo = "ring";
	expect_wrong(HK_COLL_ALLREDUCE, 4, &opts, HK_EINVAL, "is flat and takes no nodes");
	opts.algo = "two-level";
	opts.nodes = 3;
	expect_wrong(HK_COLL_ALLREDUCE, 4, &opts, HK_EINVAL,
		     "3 nodes do not divide 4 ranks evenly");
	opts = (struct hk_plan_opts)HK_PLAN_OPTS_INIT;
	opts.msgs = msgs;
	opts.nmsgs = 2;
	expect_wrong(HK_COLL_SENDRECV, 4, &opts, HK_EINVAL,
		     "message 1 goes from rank 1 to 4, but there are 4 ranks");
	expect_wrong(HK_COLL_BARRIER, 4, &opts, HK_EINVAL, "barrier takes no list of messages");
	opts.msgs = NULL;
	expect_wrong(HK_COLL_SENDRECV, 4, &opts, HK_EINVAL, "2 messages, but no list of them");
}

TEST(wrong_nodes)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	const uint32_t sizes[] = { 3, 1, 4 }, hole[] = { 3, 0, 5 };
	const uint32_t huge[] = { UINT32_MAX, UINT32_MAX, 10 };

	opts.algo = "two-level";
	opts.node_sizes = sizes;
	expect_wrong(HK_COLL_ALLREDUCE, 8, &opts, HK_EINVAL,
		     "sizes of nodes, but no number of them");
	opts.nodes = 3;
	expect_wrong(HK_COLL_ALLREDUCE, 8, &opts, HK_EINVAL,
		     "allreduce two-level takes nodes of equal sizes; its leader form takes any");
	expect_wrong(HK_COLL_ALLREDUCE, 9, &opts, HK_EINVAL,
		     "nodes of 8 ranks in all, but there are 9");
	expect_wrong(HK_COLL_ALLREDUCE, 2, &opts, HK_EINVAL, "3 nodes are more than 2 ranks");
	opts.node_sizes = hole;
	expect_wrong(HK_COLL_ALLREDUCE, 8, &opts, HK_EINVAL, "node 1 has no rank; leave it out");
	opts.node_sizes = huge;
	expect_wrong(HK_COLL_ALLREDUCE, 8, &opts, HK_EINVAL,
		     "nodes of 8589934600 ranks in all, but there are 8");
	opts.algo = "leader";
	opts.node_sizes = NULL;
	opts.nodes = 1;
	expect_wrong(HK_COLL_ALLTOALL, 1 << 16, &opts, HK_ELIMIT,
		     "alltoall leader: too many ranks in a node; take more nodes");
	opts.nodes = 3;
	opts.node_sizes = sizes;
	opts.algo = "ring";
	expect_wrong(HK_COLL_ALLREDUCE, 8, &opts, HK_EINVAL, "is flat and takes no nodes");
	opts.nodes = 0;
	expect_wrong(HK_COLL_ALLREDUCE, 8, &opts, HK_EINVAL, "is flat and takes no nodes");
}

/* The sizes are copied, the plan's own, and what its steps go by. */
TEST(uneven_nodes)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	uint32_t sizes[] = { 3, 1, 4 };
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_plan *plan;
	struct hk_step step;

	opts.algo = "leader";
	opts.nodes = 3;
	opts.node_sizes = sizes;
	CHECK_EQ(hk_plan_create(HK_COLL_BARRIER, 8, &opts, NULL, &plan), HK_OK);
	memset(sizes, 0, sizeof(sizes));
	hk_plan_describe(plan, &info);
	CHECK_EQ(info.nodes, 3);
	CHECK(info.node_sizes && info.node_sizes != sizes);
	CHECK_EQ(info.node_sizes[0], 3);
	CHECK_EQ(info.node_sizes[1], 1);
	CHECK_EQ(info.node_sizes[2], 4);
	/* Every rank but 0, 3 and 4 tells the leader of its node first. */
	for (uint32_t r = 0; r < 8; r++) {
		uint32_t leader = r < 3 ? 0 : r == 3 ? 3 : 4;

		if (r == leader)
			continue;
		hk_plan_step(plan, r, 0, 0, &step);
		CHECK_EQ(step.op, HK_OP_SEND);
		CHECK_EQ(step.to.rank, leader);
	}
	hk_plan_free(plan);
}

static void *resize_some(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	uint32_t *left = ctx;

	(void)size_old;
	if (size_new == 0) {
		free(ptr);
		return NULL;
	}
	return (*left)-- == 0 ? NULL : realloc(ptr, size_new);
}

/* Whichever allocation fails: a status, and (under ASan) no leak. */
TEST(uneven_nodes_without_memory)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	const uint32_t sizes[] = { 1, 2 };
	uint32_t left, failed = 0;
	struct hk_alloc alloc = { resize_some, &left };
	struct hk_plan *plan = NULL;

	opts.algo = "leader";
	opts.nodes = 2;
	opts.node_sizes = sizes;
	opts.alloc = &alloc;
	for (left = failed; !plan; left = ++failed) {
		struct hk_why why = { "" };
		enum hk_status status = hk_plan_create(HK_COLL_ALLREDUCE, 3, &opts, &why, &plan);

		CHECK(status == (plan ? HK_OK : HK_ENOMEM));
		CHECK(plan || why.text[0]);
	}
	CHECK_EQ(failed, 4); /* the plan and two tables, and then none */
	hk_plan_free(plan);
}

/* Sizes that are all the same are a number of nodes. */
TEST(equal_node_sizes)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	uint32_t sizes[] = { 2, 2, 2 };
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_plan *plan;

	opts.algo = "two-level";
	opts.nodes = 3;
	opts.node_sizes = sizes;
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 6, &opts, NULL, &plan), HK_OK);
	hk_plan_describe(plan, &info);
	CHECK_EQ(info.nodes, 3);
	CHECK(!info.node_sizes);
	hk_plan_free(plan);
}

/* A number that is no collective is refused, not looked up. */
TEST(no_such_collective)
{
	struct hk_algo_info info = { .size = sizeof(info) };

	expect_wrong((enum hk_coll)77, 4, NULL, HK_EINVAL, "77 is not a collective");
	CHECK_EQ(hk_algo_find(HK_COLL_ALLREDUCE, "Rabenseifner", &info), HK_OK);
	CHECK_STR(info.name, "halving-doubling");
	CHECK_EQ(hk_algo_find(HK_COLL_ALLREDUCE, NULL, &info), HK_OK);
	CHECK_STR(info.name, "one-shot");
	CHECK_EQ(hk_algo_find(HK_COLL_ALLREDUCE, "bruck", &info), HK_EINVAL);
}

TEST(names)
{
	enum hk_coll coll;
	struct hk_plan *plan = create(HK_COLL_ALLREDUCE, 4, "Double_Binary-tree");
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	CHECK_STR(info.algo, "double-tree");
	hk_plan_free(plan);
	hk_plan_free(NULL);
	CHECK_EQ(hk_coll_parse("Reduce-ScatterV", &coll), HK_OK);
	CHECK_EQ(coll, HK_COLL_REDUCESCATTER);
	CHECK_EQ(hk_coll_parse("alltoallv", &coll), HK_OK);
	CHECK_EQ(hk_coll_parse("allreducev", &coll), HK_EINVAL);
	CHECK_EQ(hk_coll_parse("", &coll), HK_EINVAL);
	for (unsigned c = 0; c < HK_COLL_COUNT; c++) {
		CHECK_EQ(hk_coll_parse(hk_coll_name((enum hk_coll)c), &coll), HK_OK);
		CHECK_EQ(coll, c);
	}
}

/* No two algorithms of a collective answer to one name, and none to nothing. */
TEST(algo_infos)
{
	struct hk_algo_info a = { .size = sizeof(a) }, b = { .size = sizeof(b) };

	for (uint32_t i = 0; hk_algo_get(i, &a); i++) {
		CHECK(a.name[0] && a.about[0] && a.limits[0]);
		for (uint32_t j = 0; hk_algo_get(j, &b); j++) {
			if (i == j || a.coll != b.coll)
				continue;
			CHECK(strcmp(a.name, b.name) != 0);
			CHECK(!a.alias || strcmp(a.alias, b.name) != 0);
			CHECK(!a.alias || !b.alias || strcmp(a.alias, b.alias) != 0);
		}
	}
	CHECK(!hk_algo_get(1000, &a));
}

TEST(lengths_share_a_vector_evenly)
{
	for (uint32_t n = 1; n < 20; n++) {
		struct hk_plan *plan = create(HK_COLL_ALLREDUCE, n, "ring");

		CHECK_EQ(hk_plan_counts(plan), 1);
		for (uint64_t count = 0; count < 50; count++) {
			struct hk_sizes sizes = { count, NULL };
			uint64_t sum = 0, least = UINT64_MAX, most = 0;

			for (uint32_t k = 0; k < n; k++) {
				uint64_t len =
					hk_plan_length(plan, &sizes,
						       hk_plan_symbol(plan, 0, HK_BUF_IN, k));

				sum += len;
				least = len < least ? len : least;
				most = len > most ? len : most;
			}
			CHECK_EQ(sum, count);
			CHECK(most - least <= 1);
		}
		hk_plan_free(plan);
	}
}

static uint64_t slots_length(const struct hk_plan *plan, uint32_t rank, enum hk_buf buf,
			     const struct hk_sizes *sizes)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < hk_plan_slots(plan, rank, buf); k++)
		sum += hk_plan_length(plan, sizes, hk_plan_symbol(plan, rank, buf, k));
	return sum;
}

/* What a call's buffers are checked and staged by is what the plan's slots hold. */
TEST(lengths_of_calls_are_those_of_slots)
{
	static const uint64_t uneven[] = { 3, 0, 7, 1, 5 };
	const uint32_t n = 5;

	for (unsigned coll = 0; coll < HK_COLL_SENDRECV; coll++) {
		struct hk_plan *plan = create((enum hk_coll)coll, n, NULL);
		bool counts = !hk__coll_vector((enum hk_coll)coll) && coll != HK_COLL_ALLTOALL &&
			      coll != HK_COLL_BARRIER;

		for (uint32_t rank = 0; rank < n; rank++) {
			for (unsigned v = 0; v <= counts; v++) {
				struct hk__coll_lengths call = { .coll = (enum hk_coll)coll,
								 .rank = rank,
								 .n = n,
								 .sizes = { v ? 0 : 13,
									    v ? uneven : NULL } };
				uint64_t in, out;

				hk__coll_lengths(&call, &in, &out);
				CHECK_EQ(in, slots_length(plan, rank, HK_BUF_IN, &call.sizes));
				CHECK_EQ(out, slots_length(plan, rank, HK_BUF_OUT, &call.sizes));
			}
		}
		hk_plan_free(plan);
	}
}

TEST(symbols_agree_at_both_ends)
{
	struct hk_plan *plan = create(HK_COLL_ALLTOALL, 5, NULL);
	uint64_t counts[25];
	struct hk_sizes sizes = { 0, counts };

	for (uint64_t i = 0; i < 25; i++)
		counts[i] = i * i;
	CHECK_EQ(hk_plan_counts(plan), 25);
	for (uint32_t s = 0; s < 5; s++)
		for (uint32_t d = 0; d < 5; d++) {
			uint64_t symbol = hk_plan_symbol(plan, s, HK_BUF_IN, d);

			CHECK_EQ(symbol, hk_plan_symbol(plan, d, HK_BUF_OUT, s));
			CHECK_EQ(hk_plan_length(plan, &sizes, symbol), counts[s * 5 + d]);
		}
	hk_plan_free(plan);
}

/* Slots keep the order given; steps go by distance, on every rank. */
TEST(batch_order)
{
	const struct hk_msg msgs[] = { { 2, 2 }, { 0, 2 }, { 0, 1 }, { 1, 2 }, { 0, 1 } };
	const uint32_t sent_by_0[] = { 1, 2, 0 };     /* slots: 0:1, 0:1, then 0:2 */
	const uint32_t received_by_2[] = { 0, 2, 1 }; /* 2:2, 1:2, then 0:2 */
	struct hk_step step;
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_plan *plan;

	opts.msgs = msgs;
	opts.nmsgs = 5;
	CHECK_EQ(hk_plan_create(HK_COLL_SENDRECV, 3, &opts, NULL, &plan), HK_OK);
	hk_plan_describe(plan, &info);
	CHECK_EQ(info.nmsgs, 5);
	CHECK(memcmp(info.msgs, msgs, sizeof(msgs)) == 0);
	for (uint32_t i = 0; i < 3; i++) {
		hk_plan_step(plan, 0, 0, i, &step);
		CHECK_EQ(step.src.first, sent_by_0[i]);
		hk_plan_step(plan, 2, 1, i, &step);
		CHECK_EQ(step.dst.first, received_by_2[i]);
	}
	CHECK_EQ(hk_plan_symbol(plan, 0, HK_BUF_IN, 0), 1);
	CHECK_EQ(hk_plan_symbol(plan, 2, HK_BUF_OUT, 1), 1);
	CHECK_EQ(hk_plan_slots(plan, 0, HK_BUF_IN), 3);
	CHECK_EQ(hk_plan_slots(plan, 2, HK_BUF_OUT), 3);
	hk_plan_free(plan);
}

TEST(spans)
{
	struct hk_span wrap = { HK_BUF_OUT, 4, 0, 0 }, bits = { HK_BUF_OUT, 2, 2, 4 };
	const uint32_t wrapped[] = { 4, 5, 0, 1 }, with_bit_1[] = { 2, 3, 6, 7 };

	for (uint32_t j = 0; j < 4; j++) {
		CHECK_EQ(hk_span_at(&wrap, j, 6), wrapped[j]);
		CHECK_EQ(hk_span_at(&bits, j, 8), with_bit_1[j]);
	}
}

/*
 * A plan of 16 million ranks is a few hundred bytes, and its steps are there
 * at once: a million steps of random ranks of every algorithm, in a process
 * that may not use 256 MiB.
 */
TEST(steps_of_the_largest_plans)
{
	struct rlimit limit = { 256u << 20, 256u << 20 };
	struct hk_algo_info info = { .size = sizeof(info) };
	uint64_t seed = test_seed(1), steps = 0;

#ifndef HK_SANITIZED /* whose shadow memory alone is more */
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
#else
	(void)limit;
#endif
	for (uint32_t i = 0; hk_algo_get(i, &info); i++) {
		/* A batch of messages is its user's data: one per rank here. */
		uint32_t n = info.coll == HK_COLL_SENDRECV ? 1u << 20 : HK_RANKS_MAX;
		struct hk_plan *plan = create(info.coll, n, info.name);

		for (int k = 0; k < 30000; k++) {
			uint32_t rank = (uint32_t)(test_random(&seed) % n);
			uint32_t lane = (uint32_t)(test_random(&seed) % hk_plan_lanes(plan, rank));
			uint32_t nsteps = hk_plan_steps(plan, rank, lane);
			struct hk_step step;

			if (nsteps == 0)
				continue;
			hk_plan_step(plan, rank, lane, (uint32_t)(test_random(&seed) % nsteps),
				     &step);
			CHECK(step.op < HK_OP_MULTICAST);
			CHECK(step.to.rank == HK_NONE || step.to.rank < n);
			CHECK(step.from.rank == HK_NONE || step.from.rank < n);
			steps++;
		}
		hk_plan_free(plan);
	}
	printf("%" PRIu64 " steps\n", steps);
	CHECK(steps > 500000);
}
