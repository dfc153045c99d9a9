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

/* ---- agreements ---- */

/* More at once than a world keeps of those that are over. */
static void agrees_at_once(struct hand *hand)
{
	for (uint64_t round = 0; round < 8; round++) {
		uint64_t value = 1000 * hand->number + 10 * round + hk_group_rank(hand->group);

		if (round % 4 == 0)
			hand_meet(hand);
		CHECK_EQ(hk_group_agree(hand->group, &value, NULL), HK_OK);
		CHECK_EQ(value, 1000 * hand->number + 10 * round);
		CHECK_EQ(hk_group_lost(hand->group, NULL, 0), 0);
	}
}

static void many_threads_agree(struct world_seat *seat)
{
	crew_run(seat, THREADS_MAX, agrees_at_once);
}

TEST(many_threads_agree_at_once)
{
	world_run(&(struct world_spec){ .kind = WORLD_THREADS_SHM, .n = 3, .progress = true },
		  many_threads_agree, NULL);
}

static uint32_t consents_count(const struct hk__world *world)
{
	uint32_t count = 0;

	for (const struct hk__consent *at = world->consents; at; at = hk__consent_next(at))
		count++;
	return count;
}

TEST(what_a_caller_has_agreed_on_stays_until_it_has_read_it)
{
	struct hk__consent *consents[THREADS_MAX];
	struct hk_group *group;
	bool moved;

	CHECK_EQ(hk_group_threads(1, NULL, NULL, &group), HK_OK);
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		struct hk__consent_spec spec = { .world = group->world,
						 .id = hk__group_id(group),
						 .n = 1,
						 .number = i,
						 .value = 100 + i,
						 .timeout_ns = UINT64_C(60000000000) };

		CHECK_EQ(hk__consent_start(&spec, &consents[i]), HK_OK);
		CHECK_EQ(hk__consent_poll(consents[i], &moved), HK_OK);
	}
	hk__consents_serve(group->world);
	CHECK_EQ(consents_count(group->world), THREADS_MAX);
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		CHECK_EQ(hk__consent_value(consents[i]), 100 + i);
		hk__consent_release(consents[i]);
	}
	hk__consents_serve(group->world);
	CHECK_EQ(consents_count(group->world), 8);
	hk_group_free(group);
}

/* ---- how to copy ---- */

#define LONG_COUNT 2048u /* 16 KiB: long enough for copy methods to be compared */

/* What was decided is to be tried again with the next call, on all ranks alike. */
static void tuners_age(struct hk_group *group)
{
	hk__world_lock(group->world);
	for (uint32_t class = 0; class < HK__CLASSES; class ++)
		group->tuners[HK_COLL_ALLREDUCE][class].keeps = 1;
	hk__world_unlock(group->world);
}

/* Calls follow each other, so that one is filled in while another is moved on. */
static void tries_and_sends(struct hand *hand)
{
	struct hk_request *requests[4];
	struct hk_opts opts = HK_OPTS_INIT;
	int64_t *in = calloc(LONG_COUNT, sizeof(*in)), *out = calloc(4 * LONG_COUNT, sizeof(*out));
	uint32_t n = hk_group_size(hand->group), rank = hk_group_rank(hand->group);

	CHECK(in && out);
	for (uint32_t round = 0; round < 400; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			opts.request = &requests[i];
			CHECK_EQ(hk_allreduce(hand->group, in, out + i * LONG_COUNT, LONG_COUNT,
					      HK_TYPE_INT64, HK_REDOP_SUM, &opts),
				 HK_OK);
		}
		opts.request = &requests[3];
		CHECK_EQ(hk_send(hand->group, in, LONG_COUNT, HK_TYPE_INT64, (rank + 1) % n, &opts),
			 HK_OK);
		CHECK_EQ(hk_recv(hand->group, out + 3 * LONG_COUNT, LONG_COUNT, HK_TYPE_INT64,
				 (rank + n - 1) % n, NULL),
			 HK_OK);
		for (uint32_t i = 0; i < 4; i++) {
			CHECK_EQ(hk_request_wait(requests[i], 0), HK_OK);
			hk_request_free(requests[i]);
		}
		tuners_age(hand->group);
	}
	free(in);
	free(out);
}

static void two_threads_try(struct world_seat *seat)
{
	crew_run(seat, 2, tries_and_sends);
}

TEST(ranks_try_ways_to_copy_alike)
{
	world_run(&(struct world_spec){ .kind = WORLD_THREADS_SHM, .n = 2, .progress = true },
		  two_threads_try, NULL);
}

/* ---- all of it at once ---- */

static uint32_t hand_draw(struct hand *hand, uint32_t below)
{
	return (uint32_t)(test_random(&hand->seed) % below);
}

/* A sum of many elements, at once or by a request. */
static void step_sum(struct hand *hand, struct hk_group *group)
{
	static const uint32_t counts[] = { 1, 100, 3000, 20000 };
	uint32_t count = counts[hand_draw(hand, 4)], n = hk_group_size(group);
	bool later = hand_draw(hand, 2);
	int64_t *in = calloc(count, sizeof(*in)), *out = calloc(count, sizeof(*out));
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request = NULL;

	CHECK(in && out);
	for (uint32_t i = 0; i < count; i++)
		in[i] = hand->number + i + hk_group_rank(group);
	opts.request = later ? &request : NULL;
	CHECK_EQ(hk_allreduce(group, in, out, count, HK_TYPE_INT64, HK_REDOP_SUM, &opts), HK_OK);
	if (later)
		CHECK_EQ(hk_request_wait(request, 0), HK_OK);
	hk_request_free(request);
	for (uint32_t i = 0; i < count; i++)
		CHECK_EQ(out[i], (int64_t)n * (hand->number + i) + n * (n - 1) / 2);
	free(in);
	free(out);
}

/* Around the ring, as a batch; each thread by tags of its own. */
static void step_pass(struct hand *hand, struct hk_group *group)
{
	uint32_t n = hk_group_size(group), rank = hk_group_rank(group);
	uint64_t in = 100 * hand->number + rank, out = 0;
	struct hk_opts opts = HK_OPTS_INIT;

	opts.tag = hand_draw(hand, 3);
	CHECK_EQ(hk_batch_begin(group), HK_OK);
	CHECK_EQ(hk_send(group, &in, 1, HK_TYPE_UINT64, (rank + 1) % n, &opts), HK_OK);
	CHECK_EQ(hk_recv(group, &out, 1, HK_TYPE_UINT64, (rank + n - 1) % n, &opts), HK_OK);
	CHECK_EQ(hk_batch_end(group), HK_OK);
	CHECK_EQ(out, 100 * hand->number + (rank + n - 1) % n);
}

static void step_agree(struct hand *hand, struct hk_group *group)
{
	uint64_t least = hand_draw(hand, 1000), value = least + hk_group_rank(group);

	CHECK_EQ(hk_group_agree(group, &value, NULL), HK_OK);
	CHECK_EQ(value, least);
}

/* One rank revokes a group while the others use it; all shrink it and go on. */
static void step_revoke(struct hand *hand, struct hk_group *group)
{
	uint32_t n = hk_group_size(group), by = hand_draw(hand, n), i = 0;
	enum hk_status status = HK_OK;
	struct hk_group *made, *rest;

	CHECK_EQ(hk_group_split(group, 0, n - hk_group_rank(group), &made), HK_OK);
	if (hk_group_rank(group) == by)
		CHECK_EQ(hk_group_revoke(made), HK_OK);
	for (; status == HK_OK && i < 10000; i++)
		status = hk_barrier(made, NULL);
	CHECK_EQ(status, HK_EREVOKED);
	CHECK_EQ(hk_group_shrink(made, NULL, &rest), HK_OK);
	CHECK_EQ(hk_group_size(rest), n);
	sum_is_own(hand, rest);
	hk_group_free(rest);
	hk_group_free(made);
}

static void step_split(struct hand *hand, struct hk_group *group)
{
	uint32_t color = hand_draw(hand, 2) ? 0 : hk_group_rank(group) % 2;
	struct hk_group *made;

	CHECK_EQ(hk_group_split(group, color, 0, &made), HK_OK);
	step_sum(hand, made);
	step_pass(hand, made);
	hk_group_free(made);
}

static void does_anything(struct hand *hand)
{
	static void (*const steps[])(struct hand *, struct hk_group *) = {
		step_sum, step_pass, step_agree, step_split, step_revoke,
	};

	for (uint32_t round = 0; round < 24; round++)
		steps[hand_draw(hand, 5)](hand, hand->group);
}

static void threads_do_anything(struct world_seat *seat)
{
	crew_run(seat, 4, does_anything);
}

static void all_at_once(enum world_kind kind, uint32_t n)
{
	uint64_t seed = test_seed(20260 + kind);

	world_run(&(struct world_spec){ .kind = kind, .n = n, .progress = true },
		  threads_do_anything, &seed);
}

TEST(threads_do_anything_over_shared_memory)
{
	all_at_once(WORLD_THREADS_SHM, 3);
}

TEST(threads_do_anything_over_tcp)
{
	all_at_once(WORLD_THREADS_TCP, 3);
}

TEST(threads_do_anything_in_processes)
{
	all_at_once(WORLD_MIXED_PROCESSES, 4);
}
