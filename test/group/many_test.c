/* SPDX-License-Identifier: Apache-2.0 */
/* many_test.c - one wait for several requests: any of them, or all. */
#include "group/world.h"
#include "harness.h"

#include <hocket/hocket.h>

#include <pthread.h>
#include <time.h>

#define SHORT_NS UINT64_C(80000000)
#define MANY 6u

static const enum world_kind kinds[] = { WORLD_THREADS_SHM, WORLD_THREADS_TCP, WORLD_PROCESSES_SHM,
					 WORLD_MIXED_PROCESSES };

/* On every transport, with a progress thread and without. */
static void run_all(world_fn *fn, uint32_t n)
{
	for (size_t k = 0; k < 2 * sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct world_spec spec = { .kind = kinds[k / 2], .n = n, .progress = k % 2 };

		world_run(&spec, fn, NULL);
	}
}

static void groups_open(struct world_seat *seat, struct hk_group *groups[2])
{
	groups[0] = seat->group;
	CHECK_EQ(hk_group_split(seat->group, 0, seat->n - seat->rank, &groups[1]), HK_OK);
}

/* The other rank of two, which has another number in the second group. */
static uint32_t other_of(const struct hk_group *group)
{
	return 1 - hk_group_rank(group);
}

/* ---- any ---- */

static const uint32_t any_order[MANY - 1] = { 4, 1, 5, 0, 2 }; /* 3 is NULL */

static void any_receive(struct world_seat *seat, struct hk_group *groups[2])
{
	struct hk_request *requests[MANY] = { NULL };
	uint32_t got[MANY] = { 0 }, index = 7;

	for (uint32_t i = 0; i < MANY; i++) {
		struct hk_opts opts = HK_OPTS_INIT;

		opts.tag = i;
		opts.request = &requests[i];
		if (i != 3)
			CHECK_EQ(hk_recv(groups[i % 2], &got[i], 1, HK_TYPE_UINT32,
					 other_of(groups[i % 2]), &opts),
				 HK_OK);
	}
	CHECK_EQ(hk_request_wait_any(requests, MANY, 1000000, &index), HK_INPROGRESS);
	CHECK_EQ(index, HK_NONE);
	CHECK_EQ(hk_request_wait_all(requests, MANY, 1000000), HK_INPROGRESS);
	for (uint32_t i = 0; i < MANY - 1; i++) {
		world_meet(seat); /* one more is sent */
		CHECK_EQ(hk_request_wait_any(requests, MANY, i % 2 ? 0 : UINT64_MAX, &index),
			 HK_OK);
		CHECK_EQ(index, any_order[i]);
		CHECK_EQ(got[index], 100 + index);
		hk_request_free(requests[index]);
		requests[index] = NULL;
	}
	CHECK_EQ(hk_request_wait_any(requests, MANY, 0, &index), HK_OK);
	CHECK_EQ(index, HK_NONE);
	CHECK_EQ(hk_request_wait_all(requests, MANY, 0), HK_OK);
}

static void any_rank(struct world_seat *seat)
{
	struct hk_group *groups[2];

	groups_open(seat, groups);
	if (seat->rank == 0)
		any_receive(seat, groups);
	for (uint32_t i = 0; seat->rank == 1 && i < MANY - 1; i++) {
		struct hk_group *group = groups[any_order[i] % 2];
		struct hk_opts opts = HK_OPTS_INIT;
		uint32_t value = 100 + any_order[i];

		opts.tag = any_order[i];
		world_meet(seat);
		CHECK_EQ(hk_send(group, &value, 1, HK_TYPE_UINT32, other_of(group), &opts), HK_OK);
	}
	hk_group_free(groups[1]);
}

TEST(any_is_the_one_that_is_over)
{
	run_all(any_rank, 2);
}

/* ---- all ---- */

static void all_rank(struct world_seat *seat)
{
	struct hk_request *requests[MANY] = { NULL };
	struct hk_group *groups[2];
	static _Thread_local uint32_t vectors[MANY][5000];

	groups_open(seat, groups);
	if (seat->rank == 1)
		world_meet(seat);
	for (uint32_t i = 1; i < MANY; i++) {
		struct hk_opts opts = HK_OPTS_INIT;

		opts.request = &requests[i];
		vectors[i][4999] = i;
		CHECK_EQ(hk_allreduce(groups[i % 2], vectors[i], vectors[i], 5000, HK_TYPE_UINT32,
				      HK_REDOP_SUM, &opts),
			 HK_OK);
	}
	if (seat->rank == 0) {
		/* Rank 1 has not come. */
		CHECK_EQ(hk_request_wait_all(requests, MANY, 1000000), HK_INPROGRESS);
		world_meet(seat);
	} else if (seat->rank != 1) {
		world_meet(seat);
	}
	CHECK_EQ(hk_request_wait_all(requests, MANY, 0), HK_OK);
	for (uint32_t i = 1; i < MANY; i++) {
		CHECK_EQ(hk_request_test(requests[i]), HK_OK);
		CHECK_EQ(vectors[i][4999], seat->n * i);
		hk_request_free(requests[i]);
	}
	hk_group_free(groups[1]);
}

TEST(all_are_waited_for)
{
	run_all(all_rank, 3);
}

/* ---- woken ---- */

#define LONG_NS UINT64_C(60000000000) /* more than a test may take */

static void *wake_later(void *ctx)
{
	const struct timespec soon = { 0, 20000000 };

	nanosleep(&soon, NULL);
	hk_request_wake(ctx);
	return NULL;
}

static void woken_receive(struct world_seat *seat)
{
	struct hk_request *request;
	struct hk_opts opts = HK_OPTS_INIT;
	uint32_t got = 0, index;
	pthread_t thread;

	opts.request = &request;
	CHECK_EQ(hk_recv(seat->group, &got, 1, HK_TYPE_UINT32, 1, &opts), HK_OK);
	CHECK_EQ(pthread_create(&thread, NULL, wake_later, seat->group), 0);
	CHECK_EQ(hk_request_wait(request, LONG_NS), HK_INPROGRESS);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, wake_later, seat->group), 0);
	CHECK_EQ(hk_request_wait_any(&request, 1, LONG_NS, &index), HK_INPROGRESS);
	CHECK_EQ(index, HK_NONE);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	/* Before the wait, and once only. */
	hk_request_wake(seat->group);
	CHECK_EQ(hk_request_wait_all(&request, 1, LONG_NS), HK_INPROGRESS);
	hk_request_wake(NULL);
	hk_request_wake(seat->group);
	world_meet(seat); /* it is sent; the wait until the deadline does not end early */
	CHECK_EQ(hk_request_wait(request, 0), HK_OK);
	CHECK_EQ(got, 9);
	hk_request_free(request);
}

static void woken_rank(struct world_seat *seat)
{
	uint32_t value = 9;

	if (seat->rank == 0) {
		woken_receive(seat);
		return;
	}
	world_meet(seat);
	CHECK_EQ(hk_send(seat->group, &value, 1, HK_TYPE_UINT32, 0, NULL), HK_OK);
}

TEST(a_wait_is_ended_by_another_thread)
{
	run_all(woken_rank, 2);
}

/* ---- deadlines ---- */

/* The second of the requests is late, long before the first ends, which it does well. */
static void late_receive(struct world_seat *seat, struct hk_group *late, bool all)
{
	struct hk_group *group = seat->group;
	struct hk_request *requests[2];
	struct hk_opts opts = HK_OPTS_INIT;
	uint32_t got[2], index;

	opts.request = &requests[0];
	CHECK_EQ(hk_recv(group, &got[0], 1, HK_TYPE_UINT32, 1, &opts), HK_OK);
	opts.request = &requests[1];
	opts.timeout_ns = SHORT_NS;
	CHECK_EQ(hk_recv(late, &got[1], 1, HK_TYPE_UINT32, 1, &opts), HK_OK);
	if (!all) {
		CHECK_EQ(hk_request_wait_any(requests, 2, 0, &index), HK_ETIMEDOUT);
		CHECK_EQ(index, 1);
		world_meet(seat); /* the first is sent */
	}
	CHECK_EQ(hk_request_wait_all(requests, 2, 0), HK_ETIMEDOUT);
	CHECK_EQ(hk_request_test(requests[0]), HK_OK);
	CHECK_EQ(hk_request_test(requests[1]), HK_ETIMEDOUT);
	CHECK_EQ(got[0], 5);
	CHECK_HAS(hk_group_why(late), "not finished in 0.08 s");
	CHECK_EQ(hk_group_state(group), HK_OK);
	hk_request_free(requests[0]);
	hk_request_free(requests[1]);
}

static void late_rank(struct world_seat *seat)
{
	for (int all = 0; all < 2; all++) {
		struct hk_group *late;
		uint32_t five = 5, never;

		CHECK_EQ(hk_group_split(seat->group, 0, 0, &late), HK_OK);
		if (seat->rank == 0) {
			late_receive(seat, late, all);
		} else {
			/* Rank 0 gives that group up in time, or this takes a minute and fails. */
			CHECK_EQ(hk_recv(late, &never, 1, HK_TYPE_UINT32, 0, NULL), HK_EREVOKED);
			if (!all)
				world_meet(seat);
			CHECK_EQ(hk_send(seat->group, &five, 1, HK_TYPE_UINT32, 0, NULL), HK_OK);
		}
		hk_group_free(late);
	}
}

TEST(deadlines_hold_while_others_are_waited_for)
{
	run_all(late_rank, 2);
}

/* ---- refusals ---- */

static struct hk_request *request_on(struct hk_group *group, uint32_t *x)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request;

	opts.request = &request;
	CHECK_EQ(hk_allreduce(group, x, x, 1, HK_TYPE_UINT32, HK_REDOP_SUM, &opts), HK_OK);
	return request;
}

TEST(refusals)
{
	struct hk_group *group, *apart;
	struct hk_request *requests[2];
	uint32_t x = 1, y = 1, index;

	CHECK_EQ(hk_group_create(NULL, NULL, &group), HK_OK);
	CHECK_EQ(hk_group_create(NULL, NULL, &apart), HK_OK);
	requests[0] = request_on(group, &x);
	requests[1] = request_on(apart, &y);
	CHECK_EQ(hk_request_wait_any(requests, 2, 0, &index), HK_EINVAL);
	CHECK_EQ(index, HK_NONE);
	CHECK_HAS(hk_group_why(apart), "request 1 of 2 belongs to a group that was created apart");
	CHECK_EQ(hk_request_wait_all(requests, 2, 0), HK_EINVAL);
	CHECK_EQ(hk_request_wait_any(requests, 1, 0, NULL), HK_EINVAL);
	CHECK_EQ(hk_request_wait_any(NULL, 1, 0, &index), HK_EINVAL);
	CHECK_EQ(hk_request_wait_all(NULL, 0, 0), HK_OK);
	CHECK_EQ(hk_request_wait_all(requests, 1, 0), HK_OK);
	hk_request_free(requests[0]);
	CHECK_EQ(hk_batch_begin(group), HK_OK);
	requests[0] = request_on(group, &x);
	CHECK_EQ(hk_request_wait_all(requests, 1, 0), HK_EINVAL);
	CHECK_STR(hk_group_why(group), "the batch of request 0 of 1 is still open");
	CHECK_EQ(hk_batch_end(group), HK_OK);
	CHECK_EQ(hk_request_wait_any(requests, 1, 0, &index), HK_OK);
	CHECK_EQ(index, 0);
	hk_request_free(requests[0]);
	hk_request_free(requests[1]);
	hk_group_free(group);
	hk_group_free(apart);
}
