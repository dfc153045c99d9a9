/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_test.c - requests, batches, deadlines, refusals, memory and splits:
 * what groups do beside computing the right thing.
 */
#include "group/op.h"
#include "harness.h"

#include <poll.h>
#include <time.h>

static const enum world_kind kinds_most[] = { WORLD_THREADS_SHM, WORLD_THREADS_TCP,
					      WORLD_PROCESSES_SHM, WORLD_MIXED_PROCESSES };
#define KINDS_MOST (sizeof(kinds_most) / sizeof(kinds_most[0]))

static void run_kinds(world_fn *fn, uint32_t n, bool progress)
{
	for (size_t k = 0; k < KINDS_MOST; k++) {
		struct world_spec spec = {
			.kind = kinds_most[k], .n = n, .check = k % 2, .progress = progress
		};

		world_run(&spec, fn, NULL);
	}
}

static void run_threads(world_fn *fn, uint32_t n, bool check)
{
	struct world_spec spec = { .kind = WORLD_THREADS_SHM, .n = n, .check = check };

	world_run(&spec, fn, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- many at once ---- */

#define GROUPS 4u
#define EACH 16u
#define FLIGHT (GROUPS * EACH)

static struct op flight_op(uint32_t i, uint32_t n)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_REDUCESCATTER, HK_COLL_ALLTOALL,
					      HK_COLL_BROADCAST };

	return (struct op){ .want = { .coll = colls[i % 5],
				      .type = (enum hk_type)(i % HK_TYPE_COUNT),
				      .op = HK_REDOP_SUM,
				      .n = n,
				      .root = colls[i % 5] == HK_COLL_BROADCAST ? i % n : 0,
				      .count = i % 7 == 0 ? 40000 : i * 3,
				      .seed = i },
			    .heap = i % 4 == 1 };
}

/* Waits in an order of its own, some by test(), some in short turns. */
static void flight_land(struct op_run *runs, uint32_t rank)
{
	uint64_t seed = rank + 1;
	uint32_t order[FLIGHT];

	for (uint32_t i = 0; i < FLIGHT; i++) {
		uint32_t j = (uint32_t)(test_random(&seed) % (i + 1));

		order[i] = order[j];
		order[j] = i;
	}
	for (uint32_t i = 0; i < FLIGHT; i++) {
		struct hk_request *request = runs[order[i]].request;
		enum hk_status status = HK_INPROGRESS;

		while (status == HK_INPROGRESS)
			status = i % 3 == 0   ? hk_request_test(request)
				 : i % 3 == 1 ? hk_request_wait(request, 1000000)
					      : hk_request_wait(request, 0);
		CHECK_EQ(status, HK_OK);
	}
}

static void flight_rank(struct world_seat *seat)
{
	struct hk_group *groups[GROUPS] = { seat->group };
	static _Thread_local struct op_run runs[FLIGHT];

	for (uint32_t g = 1; g < GROUPS; g++)
		CHECK_EQ(hk_group_split(seat->group, 0, g % 2 ? seat->rank : seat->n - seat->rank,
					&groups[g]),
			 HK_OK);
	for (uint32_t i = 0; i < FLIGHT; i++) {
		struct op op = flight_op(i, seat->n);

		op_start(&runs[i], groups[i % GROUPS], &op, true);
	}
	flight_land(runs, seat->rank);
	for (uint32_t i = 0; i < FLIGHT; i++)
		op_end(&runs[i]);
	for (uint32_t g = 1; g < GROUPS; g++)
		hk_group_free(groups[g]);
}

TEST(sixty_four_requests_on_four_groups)
{
	run_kinds(flight_rank, 4, false);
}

TEST(sixty_four_requests_with_a_progress_thread)
{
	run_kinds(flight_rank, 3, true);
}

/* ---- descriptors ---- */

static void fd_rank(struct world_seat *seat)
{
	int32_t in[3] = { 1, 2, 3 }, out[3];
	struct hk_request *request;
	struct hk_opts opts = HK_OPTS_INIT;
	int fd, again;

	opts.request = &request;
	if (seat->rank > 0)
		world_meet(seat);
	CHECK_EQ(hk_allreduce(seat->group, in, out, 3, HK_TYPE_INT32, HK_REDOP_SUM, &opts), HK_OK);
	CHECK_EQ(hk_request_fd(request, &fd), HK_OK);
	CHECK_EQ(hk_request_fd(request, &again), HK_OK);
	CHECK_EQ(fd, again);
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	if (seat->rank == 0) {
		/* Nobody else has come. */
		CHECK_EQ(poll(&poller, 1, 20), 0);
		CHECK_EQ(hk_request_test(request), HK_INPROGRESS);
		world_meet(seat);
	}
	CHECK_EQ(poll(&poller, 1, 30000), 1);
	CHECK_EQ(hk_request_test(request), HK_OK);
	CHECK_EQ(out[2], 3 * seat->n);
	hk_request_free(request);
	/* One that is over already is readable at once. */
	CHECK_EQ(hk_allreduce(seat->group, in, out, 3, HK_TYPE_INT32, HK_REDOP_MAX, &opts), HK_OK);
	CHECK_EQ(hk_request_wait(request, 0), HK_OK);
	CHECK_EQ(hk_request_fd(request, &poller.fd), HK_OK);
	CHECK_EQ(poll(&poller, 1, 0), 1);
	hk_request_free(request);
}

TEST(poll_finds_a_request_that_is_over)
{
	run_kinds(fd_rank, 3, false);
}

/* ---- deadlines ---- */

#define SHORT_NS UINT64_C(80000000)

/* A group that has timed out, in an allreduce: all that is left is to free it. */
static void check_timed_out(struct hk_group *group)
{
	int32_t in = 1, out;
	char why[HK_WHY_MAX];

	snprintf(why, sizeof(why), "%s", hk_group_why(group));
	CHECK_HAS(why, "allreduce number 1 (5 x int32)");
	CHECK_HAS(why, "not finished in 0.08 s");
	CHECK_HAS(why, "step");
	CHECK_HAS(why, "rank 1");
	CHECK_EQ(hk_allreduce(group, &in, &out, 1, HK_TYPE_INT32, HK_REDOP_SUM, NULL),
		 HK_ETIMEDOUT);
	CHECK_EQ(hk_send(group, &in, 1, HK_TYPE_INT32, 1, NULL), HK_ETIMEDOUT);
	CHECK_STR(hk_group_why(group), why);
}

static void absent_rank(struct world_seat *seat)
{
	int32_t in[5] = { 0 }, out[5];
	struct hk_group *group;
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request = NULL;

	CHECK_EQ(hk_group_split(seat->group, 0, 0, &group), HK_OK);
	opts.timeout_ns = SHORT_NS;
	for (int way = 0; seat->rank != 1 && way == 0; way++) {
		uint64_t began = now_ns();

		CHECK_EQ(hk_allreduce(group, in, out, 5, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
			 HK_ETIMEDOUT);
		CHECK(now_ns() - began >= SHORT_NS);
		check_timed_out(group);
		opts.request = &request;
		CHECK_EQ(hk_barrier(group, &opts), HK_ETIMEDOUT);
		CHECK(!request);
	}
	world_meet(seat);
	if (seat->rank != 1)
		hk_group_free(group); /* does not wait */
	/* The group it was made of lives on. */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hk_allreduce(seat->group, in, out, 5, HK_TYPE_INT32, HK_REDOP_SUM, NULL),
			 HK_OK);
	if (seat->rank == 1) {
		/* The others have given it up, and said so. */
		opts.request = NULL;
		CHECK_EQ(hk_barrier(group, &opts), HK_EREVOKED);
		CHECK_HAS(hk_group_why(group), "rank 0 revoked the group");
		hk_group_free(group);
	}
}

TEST(a_rank_that_never_comes)
{
	for (size_t k = 0; k < KINDS_MOST; k++) {
		for (int progress = 0; progress < 2; progress++) {
			struct world_spec spec = { .kind = kinds_most[k],
						   .n = 2,
						   .progress = progress };

			world_run(&spec, absent_rank, NULL);
		}
	}
}

static void late_request_rank(struct world_seat *seat)
{
	int32_t in[5] = { 0 }, out[5];
	struct hk_request *first, *second;
	struct hk_group *group;
	struct hk_opts opts = HK_OPTS_INIT;

	CHECK_EQ(hk_group_split(seat->group, 0, 0, &group), HK_OK);
	if (seat->rank == 0) {
		opts.timeout_ns = SHORT_NS;
		opts.request = &first;
		CHECK_EQ(hk_allreduce(group, in, out, 5, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
			 HK_OK);
		opts.request = &second;
		opts.timeout_ns = 0;
		CHECK_EQ(hk_recv(group, out, 5, HK_TYPE_INT32, 1, &opts), HK_OK);
		CHECK_EQ(hk_request_wait(first, 1000000), HK_INPROGRESS);
		while (hk_request_test(first) == HK_INPROGRESS)
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		CHECK_EQ(hk_request_test(first), HK_ETIMEDOUT);
		CHECK_EQ(hk_request_wait(second, 0), HK_ETIMEDOUT);
		check_timed_out(group);
		hk_request_free(first);
		hk_request_free(second);
	}
	world_meet(seat);
	if (seat->rank == 0)
		hk_group_free(group);
	CHECK_EQ(hk_allreduce(seat->group, in, out, 5, HK_TYPE_INT32, HK_REDOP_SUM, NULL), HK_OK);
	opts.timeout_ns = SHORT_NS;
	opts.request = NULL;
	if (seat->rank == 1) {
		CHECK_EQ(hk_recv(group, out, 1, HK_TYPE_INT32, 0, &opts), HK_EREVOKED);
		CHECK_HAS(hk_group_why(group), "rank 0 revoked the group");
		hk_group_free(group);
	}
}

TEST(requests_that_are_late)
{
	for (int progress = 0; progress < 2; progress++) {
		struct world_spec spec = { .kind = WORLD_THREADS_SHM,
					   .n = 2,
					   .progress = progress };

		world_run(&spec, late_request_rank, NULL);
	}
}

/* Nobody waits for it but poll(2). */
static void late_fd_rank(struct world_seat *seat)
{
	int32_t in[5] = { 0 }, out[5];
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request;
	struct pollfd poller = { .events = POLLIN };

	if (seat->rank == 0) {
		opts.timeout_ns = SHORT_NS;
		opts.request = &request;
		CHECK_EQ(hk_allreduce(seat->group, in, out, 5, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
			 HK_OK);
		CHECK_EQ(hk_request_fd(request, &poller.fd), HK_OK);
		CHECK_EQ(poll(&poller, 1, 30000), 1);
		CHECK_EQ(hk_request_test(request), HK_ETIMEDOUT);
		check_timed_out(seat->group);
		hk_request_free(request);
	}
	world_meet(seat);
	opts.timeout_ns = SHORT_NS;
	opts.request = NULL;
	if (seat->rank == 1)
		CHECK_EQ(hk_recv(seat->group, out, 1, HK_TYPE_INT32, 0, &opts), HK_EREVOKED);
}

TEST(a_late_request_that_is_polled_for)
{
	run_threads(late_fd_rank, 2, false);
}

/* For ever is a time, too. */
static void for_ever_rank(struct world_seat *seat)
{
	int32_t in = 1, out;
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request;

	opts.timeout_ns = UINT64_MAX;
	CHECK_EQ(hk_allreduce(seat->group, &in, &out, 1, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
		 HK_OK);
	opts.request = &request;
	CHECK_EQ(hk_allreduce(seat->group, &in, &out, 1, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
		 HK_OK);
	CHECK_EQ(hk_request_wait(request, UINT64_MAX), HK_OK);
	hk_request_free(request);
}

TEST(for_ever)
{
	for (int progress = 0; progress < 2; progress++) {
		struct world_spec spec = { .kind = WORLD_THREADS_SHM,
					   .n = 2,
					   .progress = progress };

		world_run(&spec, for_ever_rank, NULL);
	}
}

/* ---- batches ---- */

#define TAGS 3u
#define LONG 200000u

/* Everybody to everybody, long ones too, receives last: no order matters. */
static void batch_rank(struct world_seat *seat)
{
	uint32_t n = seat->n, rank = seat->rank;
	int32_t *out = calloc((size_t)n * TAGS * LONG, sizeof(*out));
	int32_t *in = calloc((size_t)n * TAGS * LONG, sizeof(*in));
	struct hk_request *request = NULL;
	int32_t sum_in = 1, sum_out = 0;
	struct hk_opts opts = HK_OPTS_INIT;

	CHECK(in && out);
	CHECK_EQ(hk_batch_begin(seat->group), HK_OK);
	for (uint32_t i = 0; i < n * TAGS; i++) {
		opts.tag = i % TAGS;
		for (uint32_t k = 0; k < LONG; k++)
			in[(size_t)i * LONG + k] = (int32_t)(rank * 1000000 + i * 1000 + k % 997);
		CHECK_EQ(hk_send(seat->group, in + (size_t)i * LONG, LONG, HK_TYPE_INT32, i / TAGS,
				 &opts),
			 HK_OK);
	}
	opts.tag = 0;
	opts.request = &request;
	CHECK_EQ(hk_allreduce(seat->group, &sum_in, &sum_out, 1, HK_TYPE_INT32, HK_REDOP_SUM,
			      &opts),
		 HK_OK);
	CHECK_EQ(hk_request_wait(request, 0), HK_EINVAL);
	CHECK_HAS(hk_group_why(seat->group), "batch");
	opts.request = NULL;
	for (uint32_t i = n * TAGS; i-- > 0;) {
		opts.tag = i % TAGS;
		CHECK_EQ(hk_recv(seat->group, out + (size_t)i * LONG, LONG, HK_TYPE_INT32, i / TAGS,
				 &opts),
			 HK_OK);
	}
	CHECK_EQ(hk_batch_begin(seat->group), HK_EINVAL);
	CHECK_EQ(hk_batch_end(seat->group), HK_OK);
	CHECK_EQ(hk_batch_end(seat->group), HK_EINVAL);
	CHECK_EQ(hk_request_wait(request, 0), HK_OK);
	CHECK_EQ(sum_out, n);
	hk_request_free(request);
	for (uint32_t i = 0; i < n * TAGS; i++) {
		uint32_t sent = rank * TAGS + i % TAGS; /* its place at the sender */

		for (uint32_t k = 0; k < LONG; k++)
			CHECK_EQ(out[(size_t)i * LONG + k],
				 i / TAGS * 1000000 + sent * 1000 + k % 997);
	}
	free(in);
	free(out);
}

TEST(batches)
{
	run_kinds(batch_rank, 3, false);
	run_kinds(batch_rank, 2, true);
}

/* Messages of one tag come in order; of others, whenever they are asked for. */
static void tags_rank(struct world_seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *requests[40];
	uint16_t values[20], value;

	for (uint16_t i = 0; i < 20; i++)
		values[i] = i;
	for (uint32_t i = 0; i < 40 && seat->rank == 0; i++) {
		opts.tag = i / 2 % 2 ? UINT32_MAX : 7;
		opts.request = &requests[i];
		CHECK_EQ(hk_send(seat->group, i % 2 ? NULL : &values[i / 2], i % 2 ? 0 : 1,
				 HK_TYPE_UINT16, 1, &opts),
			 HK_OK);
	}
	for (uint32_t i = 40; i-- > 0 && seat->rank == 0; hk_request_free(requests[i]))
		CHECK_EQ(hk_request_wait(requests[i], 0), HK_OK);
	for (uint32_t i = 0; i < 20 && seat->rank == 1; i++) {
		uint32_t expected = i < 10 ? 2 * i + 1 : 2 * (i - 10);

		opts.tag = i < 10 ? UINT32_MAX : 7;
		CHECK_EQ(hk_recv(seat->group, &value, 1, HK_TYPE_UINT16, 0, &opts), HK_OK);
		CHECK_EQ(hk_recv(seat->group, NULL, 0, HK_TYPE_UINT16, 0, &opts), HK_OK);
		CHECK_EQ(value, expected);
	}
}

TEST(messages_by_tag)
{
	run_kinds(tags_rank, 2, false);
}

/* A request that is freed, and a batch that is dropped, before anything was begun. */
static void dropped_rank(struct world_seat *seat)
{
	int32_t in[2] = { 3, 4 }, out[2] = { 0, 0 };
	struct hk_request *dropped, *kept;
	struct hk_opts opts = HK_OPTS_INIT;

	CHECK_EQ(hk_batch_begin(seat->group), HK_OK);
	opts.request = &dropped;
	CHECK_EQ(hk_allreduce(seat->group, in, out, 1, HK_TYPE_INT32, HK_REDOP_PROD, &opts), HK_OK);
	opts.request = &kept;
	CHECK_EQ(hk_allreduce(seat->group, in, out, 2, HK_TYPE_INT32, HK_REDOP_SUM, &opts), HK_OK);
	hk_request_free(dropped);
	CHECK_EQ(hk_batch_end(seat->group), HK_OK);
	CHECK_EQ(hk_request_wait(kept, 0), HK_OK);
	CHECK_EQ(out[0], 3 * seat->n);
	CHECK_EQ(out[1], 4 * seat->n);
	hk_request_free(kept);
}

static void dropped_group_rank(struct world_seat *seat)
{
	int32_t in = 3, out = 5;
	struct hk_group *group;

	CHECK_EQ(hk_group_split(seat->group, 0, 0, &group), HK_OK);
	CHECK_EQ(hk_batch_begin(group), HK_OK);
	CHECK_EQ(hk_allreduce(group, &in, &out, 1, HK_TYPE_INT32, HK_REDOP_PROD, NULL), HK_OK);
	hk_group_free(group);
	CHECK_EQ(out, 5);
}

TEST(batches_that_never_end)
{
	run_threads(dropped_group_rank, 2, true);
}

TEST(requests_freed_in_a_batch)
{
	run_threads(dropped_rank, 2, true);
}
