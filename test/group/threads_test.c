/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads_test.c - several threads of an application use one world at once, each
 * groups of its own, while a progress thread moves requests on.
 */
#include "group/group.h"
#include "group/world.h"
#include "harness.h"

#include <pthread.h>

#define THREADS_MAX 12u

/* ---- threads of a rank ---- */

struct crew;

/* One application thread of a rank. Threads of one number work together on all ranks. */
struct hand {
	struct crew *crew;
	uint32_t number;
	struct hk_group *group; /* of all ranks, and this number's own */
	uint64_t context;	/* of the group it made last */
	uint64_t seed;
};

struct crew {
	struct world_seat *seat;
	uint32_t count;
	void (*work)(struct hand *hand);
	pthread_barrier_t meeting; /* of the threads of this rank */
	struct hand hands[THREADS_MAX];
};

/* Waits for the other threads of this rank. */
static void hand_meet(struct hand *hand)
{
	int met = pthread_barrier_wait(&hand->crew->meeting);

	CHECK(met == 0 || met == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void *hand_run(void *ctx)
{
	struct hand *hand = ctx;

	hand->crew->work(hand);
	return NULL;
}

static void crew_run(struct world_seat *seat, uint32_t count, void (*work)(struct hand *hand))
{
	struct crew crew = { .seat = seat, .count = count, .work = work };
	uint64_t seed = seat->ctx ? *(const uint64_t *)seat->ctx : 0;
	pthread_t threads[THREADS_MAX];

	CHECK(count <= THREADS_MAX);
	CHECK_EQ(pthread_barrier_init(&crew.meeting, NULL, count), 0);
	for (uint32_t t = 0; t < count; t++) {
		crew.hands[t] = (struct hand){ &crew, t, NULL, 0, seed + t };
		CHECK_EQ(hk_group_split(seat->group, 0, 0, &crew.hands[t].group), HK_OK);
	}
	for (uint32_t t = 0; t < count; t++)
		CHECK_EQ(pthread_create(&threads[t], NULL, hand_run, &crew.hands[t]), 0);
	for (uint32_t t = 0; t < count; t++)
		CHECK_EQ(pthread_join(threads[t], NULL), 0);
	for (uint32_t t = 0; t < count; t++)
		hk_group_free(crew.hands[t].group);
	CHECK_EQ(pthread_barrier_destroy(&crew.meeting), 0);
}

/* What no other number's group could have summed up. */
static void sum_is_own(const struct hand *hand, struct hk_group *group)
{
	int64_t n = hk_group_size(group), own = 1000 * ((int64_t)hand->number + 1), sum = 0;

	own += hk_group_rank(group);
	CHECK_EQ(hk_allreduce(group, &own, &sum, 1, HK_TYPE_INT64, HK_REDOP_SUM, NULL), HK_OK);
	CHECK_EQ(sum, n * 1000 * ((int64_t)hand->number + 1) + n * (n - 1) / 2);
}

/* ---- contexts ---- */

/* A new group is no other thread's. */
static void context_is_own(struct hand *hand, const struct hk_group *made)
{
	const struct crew *crew = hand->crew;

	hand->context = made->chans.context;
	hand_meet(hand);
	for (uint32_t t = 0; t < crew->count; t++)
		if (t != hand->number)
			CHECK(crew->hands[t].context != hand->context);
	hand_meet(hand);
}

static void splits_at_once(struct hand *hand)
{
	for (uint32_t round = 0; round < 20; round++) {
		struct hk_group *made, *again;

		hand_meet(hand);
		CHECK_EQ(hk_group_split(hand->group, round % 2, 0, &made), HK_OK);
		context_is_own(hand, made);
		CHECK_EQ(hk_group_split(made, 0, 0, &again), HK_OK);
		context_is_own(hand, again);
		sum_is_own(hand, made);
		sum_is_own(hand, again);
		hk_group_free(again);
		hk_group_free(made);
	}
}

static void three_threads_split(struct world_seat *seat)
{
	crew_run(seat, 3, splits_at_once);
}

TEST(threads_that_split_at_once_get_groups_of_their_own)
{
	world_run(&(struct world_spec){ .kind = WORLD_THREADS_SHM, .n = 3, .progress = true },
		  three_threads_split, NULL);
}

static void shrinks_at_once(struct hand *hand)
{
	for (uint32_t round = 0; round < 6; round++) {
		struct hk_group *made;

		hand_meet(hand);
		CHECK_EQ(hk_group_shrink(hand->group, NULL, &made), HK_OK);
		CHECK_EQ(hk_group_size(made), hk_group_size(hand->group));
		context_is_own(hand, made);
		sum_is_own(hand, made);
		hk_group_free(made);
	}
}

static void three_threads_shrink(struct world_seat *seat)
{
	crew_run(seat, 3, shrinks_at_once);
}

TEST(threads_that_shrink_at_once_get_groups_of_their_own)
{
	world_run(&(struct world_spec){ .kind = WORLD_THREADS_TCP, .n = 3, .progress = true },
		  three_threads_shrink, NULL);
}
