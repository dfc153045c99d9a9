/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consent_test.c - orders of messages, and ages of news, that faults at random
 * hardly ever make: agreements and notes of a few ranks, moved on by hand.
 */
#include "group/group.h"
#include "harness.h"

#define RANKS 3u

static void ranks_make(struct hk_group **groups)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_why why = { "" };

	opts.net = "shm";
	if (hk_group_threads(RANKS, &opts, &why, groups) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
}

static void ranks_free(struct hk_group **groups)
{
	for (uint32_t r = 0; r < RANKS; r++)
		hk__group_destroy(groups[r]);
}

/* ---- promises ---- */

static struct hk__consent *consent_of(struct hk_group *group, uint64_t value)
{
	struct hk__consent_spec spec = { .world = group->world,
					 .id = hk__group_id(group),
					 .rank = hk_group_rank(group),
					 .n = RANKS,
					 .value = value,
					 .timeout_ns = UINT64_C(600000000000),
					 .silence_ns = UINT64_C(600000000000) };
	struct hk__consent *consent;

	CHECK_EQ(hk__consent_start(&spec, &consent), HK_OK);
	return consent;
}

static enum hk_status consent_step(struct hk_group *group, struct hk__consent *consent)
{
	bool moved;

	CHECK_EQ(hk__net_poll(group->world->net), HK_OK);
	return hk__consent_poll(consent, &moved);
}

static void takes_for_dead(struct hk_group *group, uint32_t rank)
{
	group->world->health.states[rank] = HK__PEER_DEAD;
}

/*
 * Rank 2 states itself to rank 1, and only then hears what rank 0 proposed before. If
 * it accepted that, rank 0 would decide, and so would rank 1, something else: rank 2
 * told it that it has accepted nothing.
 */
TEST(who_stated_itself_accepts_nothing_older)
{
	struct hk_group *groups[RANKS];
	struct hk__consent *at[RANKS];

	ranks_make(groups);
	for (uint32_t r = 0; r < RANKS; r++)
		at[r] = consent_of(groups[r], r == 1 ? 5 : 10 + r);
	takes_for_dead(groups[0], 1);
	takes_for_dead(groups[1], 0);
	CHECK_EQ(consent_step(groups[0], at[0]), HK_INPROGRESS); /* their channels are there */
	CHECK_EQ(consent_step(groups[1], at[1]), HK_INPROGRESS);
	CHECK_EQ(consent_step(groups[2], at[2]), HK_INPROGRESS); /* states itself to 0 */
	CHECK_EQ(consent_step(groups[0], at[0]), HK_INPROGRESS); /* proposes 10, without 1 */
	takes_for_dead(groups[2], 0);
	CHECK_EQ(consent_step(groups[2], at[2]), HK_INPROGRESS); /* to 1; hears of 10 */
	CHECK_EQ(consent_step(groups[1], at[1]), HK_INPROGRESS); /* proposes 5, without 0 */
	CHECK_EQ(consent_step(groups[2], at[2]), HK_INPROGRESS); /* accepts it */
	CHECK_EQ(consent_step(groups[1], at[1]), HK_OK);
	CHECK_EQ(hk__consent_value(at[1]), 5);
	CHECK(!hk__consent_has(at[1], 0));
	for (uint32_t i = 0; i < 10; i++)
		CHECK_EQ(consent_step(groups[0], at[0]), HK_INPROGRESS);
	CHECK_EQ(consent_step(groups[2], at[2]), HK_OK);
	CHECK_EQ(hk__consent_value(at[2]), 5);
	ranks_free(groups);
}

/* ---- ages ---- */

/* As rank 2 would tell it: a rank was lost, in that era. */
static void hear_lost(struct hk_group *group, uint32_t rank, uint64_t era)
{
	uint32_t words[11] = { 1, HK__PEER_LOST, rank, 2, (uint32_t)era, (uint32_t)(era >> 32) };
	struct hk_net_event event = {
		.what = HK_NET_TOLD, .rank = 2, .note = words, .len = sizeof(words)
	};

	hk__health_event(group->world, &event);
}

TEST(news_from_before_a_rank_was_taken_back_is_old)
{
	const uint64_t era = (UINT64_C(1) << 33) + 5;
	struct hk_group *groups[RANKS];

	ranks_make(groups);
	hear_lost(groups[0], 1, 0);
	CHECK_EQ(hk__health_of(groups[0], 1), HK__PEER_LOST);
	hk__health_readmit(groups[0]->world, 1, era);
	CHECK_EQ(hk__health_of(groups[0], 1), HK__PEER_OK);
	hear_lost(groups[0], 1, 0);
	hear_lost(groups[0], 1, era - 1);
	CHECK_EQ(hk__health_of(groups[0], 1), HK__PEER_OK);
	hear_lost(groups[0], 1, era);
	CHECK_EQ(hk__health_of(groups[0], 1), HK__PEER_LOST);
	ranks_free(groups);
}
