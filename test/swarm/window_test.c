/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_test.c - one-sided operations in virtual time: each rank is killed at each thing
 * it does that others can see, or stopped, or cut off. Calls end by their deadlines, say
 * who is gone, and the survivors make a group and a window that work.
 */
#include "swarm/heal.h"

#include <hocket/win.h>

#define BYTES 1500u
#define TURNS 3u

/* What came of a rank. */
struct rank_seen {
	enum hk_status status;
	char why[HK_WHY_MAX];
	bool over;
};

struct story {
	struct rank_seen seen[BED_RANKS_MAX];
};

/* Keeps the first failure; true: goes on. */
static bool went(struct bed_seat *seat, struct rank_seen *seen, struct hk_group *group,
		 const char *name, enum hk_status status)
{
	bed_called(seat, name, seat->bed->spec.timeout_ns);
	if (status == HK_OK)
		return true;
	if (seen->status == HK_OK) {
		seen->status = status;
		snprintf(seen->why, sizeof(seen->why), "%s", hk_group_why(group));
		bed_say(seat->bed, seat->rank, "%s: %s: %s", name, hk_status_name(status),
			seen->why);
	}
	return false;
}

#define CALL(name, call) (bed_call(seat), went(seat, seen, group, name, call))

static void bytes_fill(unsigned char *at, uint32_t rank, uint32_t turn)
{
	for (uint32_t i = 0; i < BYTES; i++)
		at[i] = (unsigned char)(rank * 31 + turn * 7 + i);
}

/* Data and a signal to the next rank, a number of rank 0's, and what the next rank has. */
static bool turn_once(struct bed_seat *seat, struct rank_seen *seen, struct hk_group *group,
		      struct hk_win *win, uint32_t turn)
{
	uint32_t n = hk_group_size(group), rank = hk_group_rank(group), next = (rank + 1) % n;
	struct hk_amo_args add = { HK_AMO_ADD, 8, 1, 0 };
	struct hk_signal signal = { win, 0, 1, HK_AMO_ADD };
	unsigned char mine[BYTES], right[BYTES];
	uint64_t old = 0;

	bytes_fill(mine, rank, turn);
	bytes_fill(right, (rank + n - 1) % n, turn);
	if (!CALL("put_signal", hk_put_signal(win, next, 64, mine, BYTES, &signal, NULL)) ||
	    !CALL("signal_wait", hk_signal_wait(win, 0, HK_CMP_GE, turn, 0, NULL)))
		return false;
	BED_CHECK(seat, memcmp((char *)hk_win_base(win) + 64, right, BYTES) == 0,
		  "the signal came before its data");
	if (!CALL("amo", hk_amo(win, 0, 8, &add, &old, NULL)))
		return false;
	BED_CHECK(seat, old < (uint64_t)n * turn, "%llu is more than all have added",
		  (unsigned long long)old);
	memset(right, 0, BYTES);
	if (!CALL("get", hk_get(win, next, 64, right, BYTES, NULL)))
		return false;
	BED_CHECK(seat, memcmp(mine, right, BYTES) == 0, "what was put is not what is got");
	return CALL("quiet", hk_quiet(hk_group_ctx(group))) &&
	       CALL("barrier", hk_barrier(group, NULL));
}

static bool use_window(struct bed_seat *seat, struct rank_seen *seen, struct hk_group *group)
{
	struct hk_win *win = NULL;
	bool well = CALL("win_create", hk_win_create(group, NULL, 64 + BYTES, NULL, &win));

	for (uint32_t turn = 1; turn <= TURNS && well; turn++)
		well = turn_once(seat, seen, group, win, turn);
	bed_call(seat);
	hk_win_free(win);
	bed_called(seat, "win_free", seat->bed->spec.timeout_ns);
	return well;
}

/* Until all that are left have had a window that works. */
static void story_main(struct bed_seat *seat, void *ctx)
{
	struct rank_seen *seen = &((struct story *)ctx)->seen[seat->rank];
	struct hk_group *groups[HEAL_ROUNDS_MAX + 1] = { seat->group };
	struct rank_seen later = { .status = HK_OK };
	uint64_t well = use_window(seat, seen, seat->group);
	uint32_t made = 1;

	while (made <= HEAL_ROUNDS_MAX) {
		bed_call(seat);
		enum hk_status status = hk_group_agree(groups[made - 1], &well, NULL);
		bed_called(seat, "agree", seat->bed->spec.timeout_ns);
		if (status == HK_OK && well)
			break;
		bed_call(seat);
		status = hk_group_shrink(groups[made - 1], NULL, &groups[made]);
		bed_called(seat, "shrink", seat->bed->spec.timeout_ns);
		BED_CHECK(seat, status == HK_OK, "shrink: %s", hk_group_why(groups[made - 1]));
		well = use_window(seat, &later, groups[made]);
		made++;
	}
	seen->over = well;
	while (made > 0) {
		bed_call(seat);
		hk_group_free(groups[--made]);
		bed_called(seat, "free", seat->bed->spec.timeout_ns);
	}
}

/* Who lives got through; who failed of a death names it. */
static void story_check(const struct bed *bed, const struct story *story)
{
	for (uint32_t r = 0; r < bed->spec.n; r++) {
		const struct rank_seen *seen = &story->seen[r];
		bool named = false;
		char name[32];

		if (bed_killed(bed, r))
			continue;
		if (!seen->over)
			bed_fail(bed, r, "did not get through: %s", seen->why);
		if (seen->status == HK_OK)
			continue;
		for (uint32_t k = 0; k < bed->spec.n; k++) {
			snprintf(name, sizeof(name), "rank %u (", k);
			named |= bed_killed(bed, k) && strstr(seen->why, name);
		}
		if (seen->status != HK_EPEER || !named)
			bed_fail(bed, r, "%s: %s", hk_status_name(seen->status), seen->why);
	}
}

struct sweep {
	uint32_t n;
	const uint32_t *hosts;
	uint64_t seed;
};

static void run_one(const struct sweep *sweep, uint32_t rank, uint64_t act, uint64_t *acts_out)
{
	static struct bed bed;
	static struct story story;
	struct bed_spec spec = { .n = sweep->n, .seed = sweep->seed + act, .hosts = sweep->hosts };

	story = (struct story){ 0 };
	bed_open(&bed, &spec, "windows, n=%u, %s, rank %d killed at act %llu", sweep->n,
		 sweep->hosts ? "several hosts" : "one host", (int)rank, (unsigned long long)act);
	if (rank != HK_NONE) {
		hk__simnet_kill_at_act(bed.simnet, rank, act);
		bed_figures.faults++;
	}
	bed_run(&bed, story_main, &story, 1000 * BED_S);
	story_check(&bed, &story);
	for (uint32_t r = 0; acts_out && r < sweep->n; r++)
		acts_out[r] = hk__simnet_acts(bed.simnet, r);
	bed_close(&bed);
}

static void sweep_run(const struct sweep *sweep, uint64_t every)
{
	uint64_t acts[BED_RANKS_MAX], turn = sweep->seed % every;

	run_one(sweep, HK_NONE, 0, acts);
	for (uint32_t r = 0; r < sweep->n; r++)
		for (uint64_t k = 0; k < acts[r]; k++)
			if (++turn % every == 0)
				run_one(sweep, r, k, NULL);
}

static void sweep_all(uint32_t n, uint64_t every)
{
	static const uint32_t apart[] = { 0, 1, 2, 3, 4 }, halves[] = { 0, 0, 1, 1, 1 };
	const char *given = getenv("HK_SWARM_EVERY");
	uint64_t seed = test_seed(1);

	every = given ? strtoull(given, NULL, 0) : every;
	sweep_run(&(struct sweep){ n, NULL, seed }, every);
	sweep_run(&(struct sweep){ n, apart, seed + 1 }, every);
	sweep_run(&(struct sweep){ n, halves, seed + 2 }, every);
	bed_figures_print("windows, each rank killed at each act");
}

#ifdef HK_SANITIZED
#define SPARE 8u
#else
#define SPARE 1u
#endif

TEST(killed_at_each_act_of_two)
{
	sweep_all(2, SPARE);
}

TEST(killed_at_each_act_of_three)
{
	sweep_all(3, 2 * SPARE);
}

TEST(killed_at_each_act_of_five)
{
	sweep_all(5, 8 * SPARE);
}

/* ---- stopped, and cut off ---- */

static void fault_main(struct bed_seat *seat, void *ctx)
{
	struct rank_seen *seen = &((struct story *)ctx)->seen[seat->rank];

	seen->over = use_window(seat, seen, seat->group);
	bed_call(seat);
	hk_group_free(seat->group);
	bed_called(seat, "free", seat->bed->spec.timeout_ns);
}

/* A rank that is stopped for longer than the deadline is named by who waits for it. */
TEST(a_stopped_rank_is_named)
{
	static struct bed bed;
	static struct story story;
	uint64_t seed = test_seed(1);
	uint32_t named = 0;

	for (uint64_t i = 0; i < 40; i++) {
		static const uint32_t hosts[] = { 0, 1, 2 };
		struct bed_spec spec = { .n = 3,
					 .seed = seed + i,
					 .hosts = i % 2 ? hosts : NULL,
					 .timeout_ns = 2 * BED_S };

		story = (struct story){ 0 };
		bed_open(&bed, &spec, "windows, rank 2 stopped");
		bed_fault(&bed, &(struct hk__simnet_fault){ .what = HK__SIMNET_STOP,
							    .at = 1000 + i * 3000,
							    .until = 8 * BED_S,
							    .rank = 2 });
		bed_run(&bed, fault_main, &story, 1000 * BED_S);
		for (uint32_t r = 0; r < 2; r++) {
			const struct rank_seen *seen = &story.seen[r];

			if (seen->status == HK_OK)
				continue;
			BED_CHECK(&bed.seats[r],
				  seen->status == HK_ETIMEDOUT || seen->status == HK_EREVOKED ||
					  seen->status == HK_EPEER,
				  "%s", hk_status_name(seen->status));
			named += strstr(seen->why, "rank 2") != NULL;
		}
		bed_close(&bed);
	}
	CHECK(named >= 40);
}
