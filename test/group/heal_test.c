/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heal_test.c - groups that fail and go on: agree, shrink, revoke and who is
 * lost, in every kind of world. What happens when ranks die at any moment is
 * tested in virtual time and on real processes elsewhere.
 */
#include "group/world.h"
#include "harness.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* An eighth of it is how late one may be on a busy machine, and still be counted. */
#define QUICK_NS UINT64_C(8000000000)

static void each_kind(uint32_t n, bool progress, world_fn *fn)
{
	for (unsigned kind = 0; kind < WORLD_KINDS; kind++) {
		struct world_spec spec = { .kind = (enum world_kind)kind,
					   .n = n,
					   .progress = progress };

		world_run(&spec, fn, NULL);
	}
}

static void sum_is(struct hk_group *group, int64_t expected)
{
	int64_t one = 1 + (int64_t)hk_group_rank(group), sum = 0;

	CHECK_EQ(hk_allreduce(group, &one, &sum, 1, HK_TYPE_INT64, HK_REDOP_SUM, NULL), HK_OK);
	CHECK_EQ(sum, expected);
}

/* ---- a healthy group ---- */

static void agrees(struct world_seat *seat)
{
	for (uint64_t round = 0; round < 20; round++) {
		uint64_t value = 1000 * round + (seat->rank + round) % seat->n;

		CHECK_EQ(hk_group_agree(seat->group, &value, NULL), HK_OK);
		CHECK_EQ(value, 1000 * round);
		CHECK_EQ(hk_group_lost(seat->group, NULL, 0), 0);
	}
	sum_is(seat->group, seat->n * (seat->n + 1) / 2);
}

TEST(all_agree_on_the_least)
{
	each_kind(5, false, agrees);
	each_kind(2, false, agrees);
	each_kind(1, false, agrees);
}

TEST(all_agree_with_a_progress_thread)
{
	each_kind(4, true, agrees);
}

static void shrinks_to_all(struct world_seat *seat)
{
	struct hk_group *rest;

	CHECK_EQ(hk_group_shrink(seat->group, NULL, &rest), HK_OK);
	CHECK_EQ(hk_group_size(rest), seat->n);
	CHECK_EQ(hk_group_rank(rest), seat->rank);
	sum_is(rest, seat->n * (seat->n + 1) / 2);
	sum_is(seat->group, seat->n * (seat->n + 1) / 2); /* which has not failed */
	hk_group_free(rest);
}

TEST(a_healthy_group_shrinks_to_itself)
{
	each_kind(4, false, shrinks_to_all);
}

/* ---- one that does not take part ---- */

static void silent_is_out(struct world_seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *rest;
	uint32_t silent = seat->n - 2, lost[4];

	opts.timeout_ns = QUICK_NS;
	if (seat->rank != silent) {
		CHECK_EQ(hk_group_shrink(seat->group, &opts, &rest), HK_OK);
		CHECK_EQ(hk_group_size(rest), seat->n - 1);
		CHECK_EQ(hk_group_rank(rest), seat->rank - (seat->rank > silent));
		CHECK_EQ(hk_group_lost(seat->group, lost, 4), 1);
		CHECK_EQ(lost[0], silent);
		sum_is(rest, (seat->n - 1) * seat->n / 2);
		hk_group_free(rest);
	}
	world_meet(seat);
	if (seat->rank == silent) {
		uint64_t value = 7;

		/* The others have gone on; nobody answers. */
		opts.timeout_ns = QUICK_NS / 16;
		CHECK(hk_group_agree(seat->group, &value, &opts) != HK_OK);
		CHECK(hk_group_why(seat->group)[0]);
	}
	world_meet(seat);
}

TEST(who_does_not_answer_is_left_out)
{
	each_kind(5, false, silent_is_out);
}

static void minority(struct world_seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	uint64_t value = 0;

	opts.timeout_ns = QUICK_NS / 2;
	if (seat->rank >= 3) {
		enum hk_status status = hk_group_agree(seat->group, &value, &opts);

		/* Busy machines may not get through three silent coordinators in time. */
		CHECK(status == HK_EPEER || status == HK_ETIMEDOUT);
		CHECK(status == HK_ETIMEDOUT ||
		      strstr(hk_group_why(seat->group),
			     seat->rank == 3 ? "only 2 of 5" : "too few ranks can be reached"));
	}
	world_meet(seat);
}

TEST(a_minority_does_not_go_on)
{
	struct world_spec spec = { .kind = WORLD_THREADS_SHM, .n = 5 };

	world_run(&spec, minority, NULL);
}

/* ---- giving up ---- */

static void revokes(struct world_seat *seat)
{
	struct hk_group *rest;

	world_meet(seat); /* else it is given up before all have joined */
	if (seat->rank == 1) {
		CHECK_EQ(hk_group_revoke(seat->group), HK_OK);
		CHECK_EQ(hk_barrier(seat->group, NULL), HK_EREVOKED);
		CHECK(strstr(hk_group_why(seat->group), "hk_group_revoke"));
	} else {
		CHECK_EQ(hk_barrier(seat->group, NULL), HK_EREVOKED);
		CHECK(strstr(hk_group_why(seat->group), "rank 1 revoked the group"));
	}
	CHECK_EQ(hk_group_shrink(seat->group, NULL, &rest), HK_OK);
	CHECK_EQ(hk_group_size(rest), seat->n);
	sum_is(rest, seat->n * (seat->n + 1) / 2);
	hk_group_free(rest);
}

TEST(a_revoked_group_ends_calls_everywhere)
{
	each_kind(4, false, revokes);
	each_kind(3, true, revokes);
}

static void times_out(struct world_seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status status;

	opts.timeout_ns = QUICK_NS / 40;
	if (seat->rank == 0) {
		CHECK_EQ(hk_barrier(seat->group, &opts), HK_ETIMEDOUT);
		CHECK(strstr(hk_group_why(seat->group), "barrier number 1"));
	} else if (seat->rank == 1) {
		/* Its own time is long, but rank 0 has given up. */
		status = hk_barrier(seat->group, NULL);
		CHECK_EQ(status, HK_EREVOKED);
		CHECK(strstr(hk_group_why(seat->group), "rank 0 revoked the group"));
	}
	world_meet(seat);
}

TEST(a_deadline_ends_the_call_on_all_ranks)
{
	each_kind(3, false, times_out);
}

/* The deadline comes amid a long message; then its sender calls nothing any more. */
static void late_amid_a_message(struct world_seat *seat)
{
	const size_t bytes = (size_t)1 << 28;
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status status = HK_OK;
	char *at = calloc(1, bytes);

	CHECK(at);
	sum_is(seat->group, 3);
	opts.timeout_ns = seat->rank == 0 ? UINT64_C(10000000) : QUICK_NS;
	/* Now and then one is sent in time. */
	while (status == HK_OK)
		status = seat->rank == 0 ? hk_send(seat->group, at, bytes, HK_TYPE_UINT8, 1, &opts)
					 : hk_recv(seat->group, at, bytes, HK_TYPE_UINT8, 0, &opts);
	if (seat->rank == 0)
		CHECK_EQ(status, HK_ETIMEDOUT);
	else if (status == HK_EREVOKED)
		atomic_store((_Atomic bool *)seat->ctx, true);
	world_meet(seat);
	free(at);
}

TEST(a_deadline_amid_a_message_ends_the_call_of_its_receiver)
{
	static const enum world_kind kinds[] = { WORLD_THREADS_TCP, WORLD_PROCESSES_TCP,
						 WORLD_MIXED_PROCESSES };

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct world_spec spec = { .kind = kinds[k], .n = 2 };
		_Atomic bool *told = world_shared(sizeof(*told));

		/* On a busy machine the receiver may not run while it is told. */
		for (int i = 0; i < 3 && !atomic_load(told); i++)
			world_run(&spec, late_amid_a_message, told);
		CHECK(atomic_load(told));
	}
}

/* ---- a group beside the one that failed ---- */

static void beside(struct world_seat *seat)
{
	struct hk_group *half;

	CHECK_EQ(hk_group_split(seat->group, seat->rank % 2, 0, &half), HK_OK);
	if (seat->rank % 2 == 0) {
		if (seat->rank == 0)
			CHECK_EQ(hk_group_revoke(half), HK_OK);
		CHECK_EQ(hk_barrier(half, NULL), HK_EREVOKED);
	} else {
		sum_is(half, hk_group_size(half) * (hk_group_size(half) + 1) / 2);
	}
	sum_is(seat->group, seat->n * (seat->n + 1) / 2);
	hk_group_free(half);
}

TEST(groups_of_other_ranks_go_on)
{
	each_kind(4, false, beside);
}

/* Who is in the middle of a batch when its group fails goes on like everybody. */
static void fails_in_a_batch(struct world_seat *seat)
{
	struct hk_group *rest;
	int64_t in = 1;

	CHECK_EQ(hk_batch_begin(seat->group), HK_OK);
	CHECK_EQ(hk_send(seat->group, &in, 1, HK_TYPE_INT64, (seat->rank + 1) % seat->n, NULL),
		 HK_OK);
	CHECK_EQ(hk_group_agree(seat->group, NULL, NULL), HK_EINVAL);
	CHECK_HAS(hk_group_why(seat->group), "inside a batch");
	world_meet(seat);
	if (seat->rank == 0)
		CHECK_EQ(hk_group_revoke(seat->group), HK_OK);
	world_meet(seat);
	enum hk_status status;
	do /* until it has heard of it */
		status = hk_send(seat->group, &in, 1, HK_TYPE_INT64, 0, NULL);
	while (status == HK_OK && seat->rank != 0);
	CHECK_EQ(hk_group_shrink(seat->group, NULL, &rest), HK_OK);
	sum_is(rest, seat->n * (seat->n + 1) / 2);
	hk_group_free(rest);
}

/* A refusal leaves the group as it was; an operation that fails does not. */
static void state_is(struct world_seat *seat)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *part, *rest;
	int64_t in = 1, out = 0;

	CHECK_EQ(hk_group_split(seat->group, 0, 0, &part), HK_OK);
	CHECK_EQ(hk_group_state(part), HK_OK);
	CHECK_EQ(hk_allreduce(part, &in, NULL, 1, HK_TYPE_INT64, HK_REDOP_SUM, NULL), HK_EINVAL);
	CHECK_EQ(hk_group_state(part), HK_OK);
	sum_is(part, seat->n * (seat->n + 1) / 2);
	opts.timeout_ns = UINT64_C(50000000);
	if (seat->rank == 0) {
		CHECK_EQ(hk_recv(part, &in, 1, HK_TYPE_INT64, 1, &opts), HK_ETIMEDOUT);
		CHECK_EQ(hk_group_state(part), HK_ETIMEDOUT);
	}
	enum hk_status status = hk_allreduce(part, &in, &out, 1, HK_TYPE_INT64, HK_REDOP_SUM, NULL);
	CHECK_EQ(status, seat->rank == 0 ? HK_ETIMEDOUT : HK_EREVOKED);
	CHECK_EQ(hk_group_state(part), status);
	CHECK_EQ(hk_group_state(seat->group), HK_OK);
	CHECK_EQ(hk_group_shrink(part, NULL, &rest), HK_OK);
	CHECK_EQ(hk_group_state(rest), HK_OK);
	hk_group_free(rest);
	hk_group_free(part);
	CHECK_EQ(hk_group_state(NULL), HK_EINVAL);
}

TEST(the_state_tells_a_refusal_from_a_failure)
{
	each_kind(2, false, state_is);
	each_kind(2, true, state_is);
}

static void begins_no_batch(struct world_seat *seat)
{
	CHECK_EQ(hk_group_revoke(seat->group), HK_OK);
	CHECK_EQ(hk_batch_begin(seat->group), HK_EREVOKED);
	CHECK_EQ(hk_batch_end(seat->group), HK_EINVAL); /* none has begun */
	CHECK_EQ(hk_batch_begin(seat->group), HK_EREVOKED);
	CHECK_EQ(hk_group_agree(seat->group, NULL, NULL), HK_OK);
}

TEST(a_group_that_has_failed_begins_no_batch)
{
	each_kind(2, false, begins_no_batch);
}

TEST(a_group_that_fails_in_a_batch_can_be_shrunk)
{
	struct world_spec spec = { .kind = WORLD_THREADS_SHM, .n = 3, .progress = true };

	world_run(&spec, fails_in_a_batch, NULL);
	spec.kind = WORLD_PROCESSES_SHM;
	world_run(&spec, fails_in_a_batch, NULL);
}

/* ---- for as long as a program runs ---- */

/*
 * Of this process: one rank. Without what is large: buffers of messages, as many as
 * were wanted at once.
 */
static size_t heap_bytes;

static size_t heap_counts(size_t size)
{
	return size < 65536 ? size : 0;
}

static void *heap_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	(void)ctx;
	__atomic_fetch_add(&heap_bytes, heap_counts(size_new) - heap_counts(size_old),
			   __ATOMIC_RELAXED);
	if (size_new)
		return realloc(ptr, size_new);
	free(ptr);
	return NULL;
}

static const struct hk_alloc heap_alloc = { heap_resize, NULL };

#define FORGET_ROUNDS 1400u

static void revokes_again_and_again(struct world_seat *seat)
{
	size_t halfway = 0;

	for (uint32_t round = 0; round < FORGET_ROUNDS; round++) {
		struct hk_group *group, *rest;

		if (round == FORGET_ROUNDS / 2)
			halfway = heap_bytes;
		CHECK_EQ(hk_group_dup(seat->group, &group), HK_OK);
		if (round % seat->n == seat->rank)
			CHECK_EQ(hk_group_revoke(group), HK_OK);
		CHECK_EQ(hk_barrier(group, NULL), HK_EREVOKED);
		CHECK_EQ(hk_group_shrink(group, NULL, &rest), HK_OK);
		hk_group_free(rest);
		hk_group_free(group);
		CHECK_EQ(hk_barrier(seat->group, NULL), HK_OK);
	}
	/* A row for each would be 40 KiB by now. */
	CHECK(heap_bytes <= halfway + 8192);
}

TEST(memory_of_old_failures_is_bounded)
{
	struct world_spec spec = { .kind = WORLD_PROCESSES_SHM, .n = 3, .alloc = &heap_alloc };

	world_run(&spec, revokes_again_and_again, NULL);
	spec.kind = WORLD_PROCESSES_TCP;
	world_run(&spec, revokes_again_and_again, NULL);
}
