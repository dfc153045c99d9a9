/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_fail_test.c - real processes that die or stop while others use their windows:
 * calls and waits end, and say who it was.
 */
#include "group/cast.h"
#include "harness.h"

#include <hocket/win.h>

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define RANKS 3u
#define VICTIM (RANKS - 1)

enum how {
	GETS,
	PUTS,
	WAITS,
	TESTS,
	ADDS,
	HOWS
};

struct shared {
	_Atomic uint32_t ready;
	enum how how;
};

/* Until it fails; the failure's status. */
static enum hk_status use(struct hk_group *group, struct hk_win *win, enum how how, uint32_t victim)
{
	static unsigned char bytes[300000];
	struct hk_amo_args add = { HK_AMO_ADD, 8, 1, 0 };
	struct hk_until until = { .size = sizeof(until),
				  .at = hk_win_base(win),
				  .width = 8,
				  .cmp = HK_CMP_EQ,
				  .value = UINT64_MAX,
				  .rank = victim };
	enum hk_status status = HK_OK;
	uint64_t old;

	while (status == HK_OK) {
		switch (how) {
		case GETS:
			status = hk_get(win, victim, 64, bytes, sizeof(bytes), NULL);
			break;
		case PUTS:
			status = hk_put_nbi(win, victim, 64, bytes, sizeof(bytes), NULL);
			if (status == HK_OK)
				status = hk_quiet(hk_group_ctx(group));
			break;
		case ADDS:
			status = hk_amo(win, victim, 0, &add, &old, NULL);
			break;
		case WAITS:
			status = hk_wait_until(group, &until, NULL);
			break;
		default:
			CHECK(!hk_test_until(group, &until, NULL));
			status = hk_group_state(group);
		}
		/* What needs nobody goes on until somebody looks. */
		if (status == HK_OK && how != WAITS && how != TESTS)
			(void)hk_test_until(group, &until, NULL);
	}
	return status;
}

static void part_play(uint32_t rank, void *ctx)
{
	struct shared *shared = ctx;
	struct hk_group *group = cast_join(rank, RANKS);
	struct hk_win *win;

	CHECK_EQ(hk_win_create(group, NULL, 400000, NULL, &win), HK_OK);
	CHECK_EQ(hk_barrier(group, NULL), HK_OK);
	atomic_fetch_add(&shared->ready, 1);
	while (rank == VICTIM)
		pause();
	enum hk_status status = use(group, win, shared->how, VICTIM);
	CHECK_EQ(status, HK_EPEER);
	if (!strstr(hk_group_why(group), "rank 2 ("))
		test_fail(__FILE__, __LINE__, "%s", hk_group_why(group));
	hk_win_free(win);
	/* The survivors go on, with new windows. */
	struct hk_group *left;
	uint64_t one = 1, seen = 0;
	CHECK_EQ(hk_group_shrink(group, NULL, &left), HK_OK);
	hk_group_free(group);
	CHECK_EQ(hk_win_create(left, NULL, 64, NULL, &win), HK_OK);
	CHECK_EQ(hk_put(win, 1 - rank, 0, &one, 8, NULL), HK_OK);
	CHECK_EQ(hk_signal_wait(win, 0, HK_CMP_EQ, 1, 0, &seen), HK_OK);
	hk_win_free(win);
	hk_group_free(left);
}

static void kill_one(const struct cast_scene *scene, enum how how)
{
	struct shared *shared = cast_begin(scene, sizeof(*shared));
	uint32_t who[RANKS];

	shared->how = how;
	for (uint32_t r = 0; r < RANKS; r++)
		who[r] = cast_play(part_play, r);
	cast_await(&shared->ready, RANKS);
	cast_kill(who[VICTIM]);
	cast_wait(who[VICTIM], true);
	cast_end();
}

TEST(a_dead_rank_ends_what_waits_for_it)
{
	for (uint32_t scene = 0; scene < cast_scenes_count; scene++)
		for (unsigned how = 0; how < HOWS; how++)
			kill_one(&cast_scenes[scene], (enum how)how);
}
