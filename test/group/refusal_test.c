/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal_test.c - what cannot be meant is refused in one line and leaves the
 * group as it was; memory, splits, groups of one, plans of the caller's own.
 */
#include "group/op.h"
#include "harness.h"

static void run_one(world_fn *fn, enum world_kind kind, uint32_t n)
{
	struct world_spec spec = { .kind = kind, .n = n, .check = true };

	world_run(&spec, fn, NULL);
}

/* ---- refusals ---- */

static void refused(struct hk_group *group, enum hk_status expected, enum hk_status status,
		    const char *says)
{
	int32_t in = 1, out = 0;

	if (status != expected)
		test_fail(__FILE__, __LINE__, "%s, not %s, for \"%s\"", hk_status_name(status),
			  hk_status_name(expected), says);
	CHECK_HAS(hk_group_why(group), says);
	CHECK(!strchr(hk_group_why(group), '\n'));
	/* As if nothing had been. */
	CHECK_EQ(hk_allreduce(group, &in, &out, 1, HK_TYPE_INT32, HK_REDOP_SUM, NULL), HK_OK);
	CHECK_EQ(out, hk_group_size(group));
}

static void refuse_buffers(struct hk_group *group)
{
	int32_t room[64] = { 0 }, other[64];
	uint64_t counts[WORLD_RANKS_MAX] = { 1, 1, 1, 1 }, huge[WORLD_RANKS_MAX];

	for (uint32_t r = 0; r < WORLD_RANKS_MAX; r++)
		huge[r] = UINT64_C(1) << 63;
	refused(group, HK_EINVAL,
		hk_allreduce(group, NULL, room, 4, HK_TYPE_INT32, HK_REDOP_SUM, NULL), "`in`");
	refused(group, HK_EINVAL,
		hk_allreduce(group, room, NULL, 4, HK_TYPE_INT32, HK_REDOP_SUM, NULL), "`out`");
	refused(group, HK_EINVAL,
		hk_allreduce(group, room, room + 1, 4, HK_TYPE_INT32, HK_REDOP_SUM, NULL),
		"overlap");
	refused(group, HK_EINVAL, hk_allgather(group, room + 9, room, 8, HK_TYPE_INT32, NULL),
		"overlap");
	refused(group, HK_EINVAL, hk_alltoall(group, room, room, 2, HK_TYPE_INT32, NULL),
		"no in-place form");
	refused(group, HK_EINVAL,
		hk_alltoallv(group, room, counts, room, counts, HK_TYPE_INT32, NULL),
		"no in-place form");
	refused(group, HK_EINVAL, hk_allgatherv(group, room, other, NULL, HK_TYPE_INT32, NULL),
		"`counts`");
	refused(group, HK_EINVAL,
		hk_alltoallv(group, room, NULL, other, counts, HK_TYPE_INT32, NULL), "counts");
	refused(group, HK_ELIMIT, hk_allgatherv(group, room, other, huge, HK_TYPE_INT32, NULL),
		"more elements");
	refused(group, HK_ELIMIT,
		hk_alltoall(group, room, other, UINT64_C(1) << 63, HK_TYPE_INT32, NULL),
		"more elements");
	refused(group, HK_EINVAL, hk_send(group, NULL, 1, HK_TYPE_INT32, 0, NULL), "NULL");
	refused(group, HK_EINVAL, hk_recv(group, room, 1, HK_TYPE_INT32, 99, NULL), "no such rank");
	refused(group, HK_EINVAL, hk_recv(group, room, 1, (enum hk_type)99, 0, NULL),
		"no such type");
}

static void refuse_options(struct hk_group *group)
{
	int32_t in[64] = { 0 }, out[64];
	uint32_t n = hk_group_size(group);
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_opts unknown = { .size = 3 };

	refused(group, HK_EINVAL, hk_broadcast(group, in, out, 1, HK_TYPE_INT32, n, NULL), "root");
	refused(group, HK_EINVAL,
		hk_allreduce(group, in, out, 1, HK_TYPE_FP16, HK_REDOP_BXOR, NULL), "bxor");
	refused(group, HK_EINVAL,
		hk_allreduce(group, in, out, 1, (enum hk_type)77, HK_REDOP_SUM, NULL), "77");
	refused(group, HK_EINVAL,
		hk_allreduce(group, in, out, 1, HK_TYPE_FP32, (enum hk_redop)42, NULL),
		"operation");
	refused(group, HK_EINVAL,
		hk_allreduce(group, in, out, 1, HK_TYPE_FP32, HK_REDOP_PREMULSUM, &opts), "factor");
	refused(group, HK_EINVAL,
		hk_allreduce(group, in, out, 1, HK_TYPE_FP32, HK_REDOP_SUM, &unknown),
		"HK_OPTS_INIT");
	opts.algo = "telepathy";
	refused(group, HK_EINVAL, hk_allgather(group, in, out, 1, HK_TYPE_FP32, &opts),
		"telepathy");
	opts.algo = "put-eager";
	refused(group, HK_EINVAL, hk_allgather(group, in, out, 1, HK_TYPE_FP32, &opts),
		"\"put-eager\" of allgather puts and signals, which groups do not perform yet");
	opts.algo = "ring";
	refused(group, HK_EINVAL, hk_send(group, in, 1, HK_TYPE_FP32, 0, &opts), "algorithm");
}

static void refuse_rank(struct world_seat *seat)
{
	CHECK_STR(hk_group_why(seat->group), "");
	refuse_buffers(seat->group);
	refuse_options(seat->group);
	struct hk_choice choice = { .size = sizeof(choice) };
	CHECK_EQ(hk_group_choice(seat->group, HK_COLL_COUNT, 1, HK_TYPE_INT8, &choice), HK_EINVAL);
	CHECK_EQ(hk_group_choice(seat->group, HK_COLL_ALLREDUCE, 1, HK_TYPE_INT8, &choice), HK_OK);
	CHECK(choice.algo && choice.net);
	CHECK_EQ(hk_allreduce(NULL, NULL, NULL, 0, HK_TYPE_INT8, HK_REDOP_SUM, NULL), HK_EINVAL);
	CHECK_EQ(hk_request_wait(NULL, 0), HK_EINVAL);
	CHECK_EQ(hk_request_test(NULL), HK_EINVAL);
	hk_request_free(NULL);
	hk_group_free(NULL);
	hk_mem_free(seat->group, NULL);
}

TEST(what_cannot_be_meant)
{
	run_one(refuse_rank, WORLD_THREADS_SHM, 3);
	run_one(refuse_rank, WORLD_PROCESSES_TCP, 2);
}

/* ---- plans of the caller's ---- */

static struct hk_plan *plan_load(const char *name)
{
	char path[512];
	struct hk_why why = { "" };
	struct hk_plan *plan;

	snprintf(path, sizeof(path), PLANS_DIR "/%s", name);
	if (hk_plan_read(path, NULL, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return plan;
}

static void plans_rank(struct world_seat *seat)
{
	int32_t in[2] = { 10 + (int32_t)seat->rank, 20 }, out[4] = { 0 };
	struct hk_plan **plans = seat->ctx;
	struct hk_opts opts = HK_OPTS_INIT;

	for (int i = 0; i < 3; i++) {
		opts.plan = plans[0];
		memset(out, 0, sizeof(out));
		CHECK_EQ(hk_allgather(seat->group, in, out, 2, HK_TYPE_INT32, &opts), HK_OK);
		CHECK_EQ(out[0], 10);
		CHECK_EQ(out[2], 11);
		CHECK_EQ(out[3], 20);
		/* Refused every time, before anything is begun, and with the reason. */
		opts.plan = plans[1];
		refused(seat->group, HK_EREFUSED,
			hk_allgather(seat->group, in, out, 2, HK_TYPE_INT32, &opts), "rank 0");
		opts.plan = plans[0];
		refused(seat->group, HK_EINVAL,
			hk_allreduce(seat->group, in, out, 2, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
			"the plan is for allgather");
		opts.plan = plans[2];
		refused(seat->group, HK_EINVAL,
			hk_allgather(seat->group, in, out, 2, HK_TYPE_INT32, &opts),
			"the plan \"put\" of allgather puts and signals, which groups do not");
	}
}

TEST(plans_of_the_callers_own)
{
	struct hk_plan *plans[] = { plan_load("allgather2-right.json"),
				    plan_load("allgather2-wrong-slot.json"), NULL };
	struct hk_plan_opts puts = HK_PLAN_OPTS_INIT;
	static const enum world_kind kinds[] = { WORLD_THREADS_SHM, WORLD_PROCESSES_TCP };

	puts.algo = "put";
	CHECK_EQ(hk_plan_create(HK_COLL_ALLGATHER, 2, &puts, NULL, &plans[2]), HK_OK);
	for (size_t k = 0; k < 2; k++) {
		for (int progress = 0; progress < 2; progress++) {
			struct world_spec spec = {
				.kind = kinds[k], .n = 2, .check = k == 0, .progress = progress
			};

			world_run(&spec, plans_rank, plans);
		}
	}
	for (int i = 0; i < 3; i++)
		hk_plan_free(plans[i]);
}

/* A plan that does not claim to work in place, on buffers that are. */
static void not_inplace_rank(struct world_seat *seat)
{
	int32_t room[4] = { 10, 10, 20, 20 };
	struct hk_opts opts = HK_OPTS_INIT;

	opts.plan = seat->ctx;
	refused(seat->group, HK_EINVAL,
		hk_allgather(seat->group, room + 2 * seat->rank, room, 2, HK_TYPE_INT32, &opts),
		"in place");
}

TEST(a_plan_that_is_not_in_place)
{
	static const char text[] =
		"{\"hocket_plan\": 1, \"collective\": \"allgather\", \"algorithm\": \"apart\","
		"\"ranks\": 2, \"slots\": 1, \"inplace\": false, \"programs\": ["
		"{\"rank\": 0, \"scratch\": 0, \"lanes\": [["
		"{\"op\": \"copy\", \"src\": [\"in\", 0], \"dst\": [\"out\", 0]},"
		"{\"op\": \"send\", \"to\": [1, 0], \"src\": [\"in\", 0]},"
		"{\"op\": \"recv\", \"from\": [1, 0], \"dst\": [\"out\", 1]}]]},"
		"{\"rank\": 1, \"scratch\": 0, \"lanes\": [["
		"{\"op\": \"copy\", \"src\": [\"in\", 0], \"dst\": [\"out\", 1]},"
		"{\"op\": \"send\", \"to\": [0, 0], \"src\": [\"in\", 0]},"
		"{\"op\": \"recv\", \"from\": [0, 0], \"dst\": [\"out\", 0]}]]}]}";
	struct world_spec spec = { .kind = WORLD_THREADS_SHM, .n = 2 };
	struct hk_why why = { "" };
	struct hk_plan *plan;

	if (hk_plan_parse(text, strlen(text), "text", NULL, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	world_run(&spec, not_inplace_rank, plan);
	hk_plan_free(plan);
}

static void uneven_rank(struct world_seat *seat)
{
	int32_t in = 1, out;
	struct hk_opts opts = HK_OPTS_INIT;

	opts.algo = "two-level";
	refused(seat->group, HK_EINVAL,
		hk_allreduce(seat->group, &in, &out, 1, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
		"nodes");
}

TEST(two_levels_of_uneven_machines)
{
	run_one(uneven_rank, WORLD_MIXED_THREADS, 3);
}

/* ---- memory ---- */

static void memory_rank(struct world_seat *seat)
{
	void *a, *b, *c, *before;

	CHECK_EQ(hk_mem_alloc(seat->group, 0, &a), HK_EINVAL);
	CHECK_EQ(hk_mem_alloc(seat->group, HK_MEM_MAX + 1, &a), HK_ELIMIT);
	CHECK(!a);
	CHECK_HAS(hk_group_why(seat->group), "shared memory");
	CHECK_EQ(hk_mem_alloc(seat->group, 1, &a), HK_OK);
	CHECK_EQ(hk_mem_alloc(seat->group, 5000, &b), HK_OK);
	CHECK_EQ(hk_mem_alloc(seat->group, (size_t)3 << 20, &c), HK_OK);
	CHECK_EQ((uintptr_t)a % 4096, 0);
	CHECK_EQ((uintptr_t)b % 4096, 0);
	CHECK((char *)b >= (char *)a + 4096 || (char *)a >= (char *)b + 5000);
	for (int i = 0; i < 50; i++) {
		before = b;
		for (size_t k = 0; k < 5000; k++)
			CHECK_EQ(((char *)b)[k], 0);
		memset(b, 0xff, 5000);
		hk_mem_free(seat->group, b);
		CHECK_EQ(hk_mem_alloc(seat->group, 5000, &b), HK_OK);
		if (seat->kind == WORLD_THREADS_SHM)
			CHECK(b == before); /* the same pages, zeroed */
	}
	for (size_t k = 0; k < (size_t)3 << 20; k += 4096)
		CHECK_EQ(((char *)c)[k], 0);
	hk_mem_free(seat->group, a);
	hk_mem_free(seat->group, c);
	hk_mem_free(seat->group, b);
}

TEST(memory)
{
	run_one(memory_rank, WORLD_THREADS_SHM, 2);
	run_one(memory_rank, WORLD_THREADS_TCP, 2);
	run_one(memory_rank, WORLD_MIXED_PROCESSES, 3);
}

/* ---- splits ---- */

static void sum_of_one(struct hk_group *group)
{
	int64_t in = 1, out = 0;

	CHECK_EQ(hk_allreduce(group, &in, &out, 1, HK_TYPE_INT64, HK_REDOP_SUM, NULL), HK_OK);
	CHECK_EQ(out, hk_group_size(group));
}

static void split_rank(struct world_seat *seat)
{
	struct hk_group *half, *rest, *quarter, *reversed;
	uint32_t rank = seat->rank, n = seat->n;

	CHECK_EQ(hk_group_split(seat->group, rank % 2, 0, &half), HK_OK);
	CHECK_EQ(hk_group_rank(half), rank / 2);
	CHECK_EQ(hk_group_size(half), (n + 1 - rank % 2) / 2);
	sum_of_one(half);
	/* All but rank 0, backwards. */
	CHECK_EQ(hk_group_split(seat->group, rank ? 5 : HK_NONE, n - rank, &rest), HK_OK);
	CHECK(!rest == !rank);
	if (rest) {
		CHECK_EQ(hk_group_rank(rest), n - 1 - rank);
		CHECK_EQ(hk_group_size(rest), n - 1);
		sum_of_one(rest);
	}
	CHECK_EQ(hk_group_split(half, hk_group_rank(half) / 2, 0, &quarter), HK_OK);
	sum_of_one(quarter);
	CHECK_EQ(hk_group_split(seat->group, 0, UINT32_MAX - rank, &reversed), HK_OK);
	CHECK_EQ(hk_group_rank(reversed), n - 1 - rank);
	/* Each has its own messages. */
	uint32_t at = hk_group_rank(reversed), from = UINT32_MAX;
	CHECK_EQ(hk_broadcast(reversed, &at, &from, 1, HK_TYPE_UINT32, n - 1, NULL), HK_OK);
	CHECK_EQ(from, n - 1);
	sum_of_one(seat->group);
	hk_group_free(reversed);
	hk_group_free(quarter);
	hk_group_free(rest);
	hk_group_free(half);
	CHECK_EQ(hk_group_split(seat->group, HK_NONE, 0, &half), HK_OK);
	CHECK(!half);
	CHECK_EQ(hk_batch_begin(seat->group), HK_OK);
	CHECK_EQ(hk_group_split(seat->group, 0, 0, &half), HK_EINVAL);
	CHECK_EQ(hk_batch_end(seat->group), HK_OK);
}

TEST(splits)
{
	run_one(split_rank, WORLD_THREADS_SHM, 5);
	run_one(split_rank, WORLD_THREADS_TCP, 4);
	run_one(split_rank, WORLD_MIXED_PROCESSES, 6);
}

/* Channels are given back: two hundred pairs of groups need no more than a few. */
static void splits_rank(struct world_seat *seat)
{
	uint32_t splits = seat->kind == WORLD_THREADS_SHM ? 200 : 40;

	for (uint32_t i = 0; i < splits; i++) {
		struct hk_group *group, *nested;

		CHECK_EQ(hk_group_split(seat->group, i % 3 == 0 ? seat->rank % 2 : 0, i, &group),
			 HK_OK);
		sum_of_one(group);
		CHECK_EQ(hk_group_split(group, 0, 0, &nested), HK_OK);
		sum_of_one(nested);
		hk_group_free(nested);
		hk_group_free(group);
	}
}

TEST(two_hundred_splits)
{
	run_one(splits_rank, WORLD_THREADS_SHM, 4);
	run_one(splits_rank, WORLD_PROCESSES_TCP, 3);
	run_one(splits_rank, WORLD_MIXED_THREADS, 3);
}

/* ---- one ---- */

static void one_rank(struct world_seat *seat)
{
	int32_t in = 7, out = 0;
	struct hk_group *group;

	CHECK_EQ(hk_batch_begin(seat->group), HK_OK);
	CHECK_EQ(hk_recv(seat->group, &out, 1, HK_TYPE_INT32, 0, NULL), HK_OK);
	CHECK_EQ(hk_send(seat->group, &in, 1, HK_TYPE_INT32, 0, NULL), HK_OK);
	CHECK_EQ(hk_batch_end(seat->group), HK_OK);
	CHECK_EQ(out, 7);
	CHECK_EQ(hk_barrier(seat->group, NULL), HK_OK);
	sum_of_one(seat->group);
	CHECK_EQ(hk_group_split(seat->group, 3, 0, &group), HK_OK);
	sum_of_one(group);
	hk_group_free(group);
}

TEST(groups_of_one)
{
	run_one(one_rank, WORLD_THREADS_SHM, 1);
	run_one(one_rank, WORLD_THREADS_TCP, 1);
	run_one(one_rank, WORLD_PROCESSES_SHM, 1);
	run_one(one_rank, WORLD_PROCESSES_TCP, 1);
	run_one(one_rank, WORLD_MIXED_PROCESSES, 1);
}
