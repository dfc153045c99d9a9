/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_test.c - links that go wrong at every message: calls end by their deadlines,
 * with a status, and what succeeds is right. A byte that is changed on its way, or a
 * message of the right length in another's place, cannot be known without checksums:
 * there it is only held that nothing crashes, hangs or leaks.
 */
#include "swarm/heal.h"

static struct bed bed;
static struct heal heal;
static uint64_t messages[BED_RANKS_MAX][BED_RANKS_MAX];
static uint64_t failures[32]; /* operations by their status */

struct wrong {
	enum hk__hook_what what;
	enum hk_coll coll;
	const char *algo;
	uint32_t n;
};

/* Counts messages, as long as the net is there. */
static void hook_main(struct bed_seat *seat, void *ctx)
{
	struct heal_seen *seen = &heal.seen[seat->rank];

	(void)ctx;
	seen->status = heal_do(seat, seat->group, &heal.op, NULL);
	if (seen->status != HK_OK)
		snprintf(seen->why, sizeof(seen->why), "%s", hk_group_why(seat->group));
	for (uint32_t r = 0; r < seat->bed->spec.n; r++)
		messages[seat->rank][r] = hk__hook_messages(seat->net, r);
	heal_shrink(seat, &heal);
}

static void wrong_run(const struct wrong *wrong, uint32_t rank, uint32_t peer, uint64_t at)
{
	static const char *const names[] = { "drop",	"delay",    "stall",
					     "corrupt", "truncate", "duplicate" };
	struct bed_spec spec = {
		.n = wrong->n,
		.seed = at,
		.hooked = true,
		.hook_rank = rank,
		.hook = { .what = wrong->what, .peer = peer, .at = at, .delay_ns = 300 * BED_MS }
	};

	heal = (struct heal){ .shrink_timeout_ns = 100 * BED_S,
			      .op = { .want = { .coll = wrong->coll,
						.type = HK_TYPE_INT32,
						.op = HK_REDOP_SUM,
						.count = 400,
						.seed = 3 },
				      .algo = wrong->algo,
				      .unsure = wrong->what == HK__HOOK_CORRUPT ||
						wrong->what == HK__HOOK_DUPLICATE } };
	bed_open(&bed, &spec, "%s by %s, n=%u: %s at message %llu of ranks %u and %u",
		 hk_coll_name(wrong->coll), wrong->algo, wrong->n,
		 rank == HK_NONE ? "nothing" : names[wrong->what], (unsigned long long)at, rank,
		 peer);
	bed_figures.faults += rank != HK_NONE;
	bed_run(&bed, hook_main, NULL, 4000 * BED_S);
	if (wrong->what != HK__HOOK_CORRUPT)
		heal_check_safe(&bed, &heal);
	for (uint32_t r = 0; r < wrong->n; r++) {
		const struct heal_seen *seen = &heal.seen[r];

		if ((rank == HK_NONE || wrong->what == HK__HOOK_DELAY) && seen->status != HK_OK)
			bed_fail(&bed, r, "failed of nothing: %s", seen->why);
		if (wrong->what <= HK__HOOK_STALL && !seen->well)
			bed_fail(&bed, r, "did not go on: %s", seen->why);
		failures[seen->status == HK_OK ? 0 : -seen->status]++;
	}
	bed_close(&bed);
}

/* At every message of every link. */
static void wrong_everywhere(enum hk__hook_what what, uint32_t n)
{
	static const struct wrong all[] = {
		{ 0, HK_COLL_ALLREDUCE, "ring", 0 },
		{ 0, HK_COLL_ALLREDUCE, "recursive-doubling", 0 },
		{ 0, HK_COLL_ALLGATHER, "bruck", 0 },
		{ 0, HK_COLL_ALLTOALL, "pairwise", 0 },
		{ 0, HK_COLL_BROADCAST, "binomial", 0 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct wrong wrong = all[i];
		uint64_t counted[BED_RANKS_MAX][BED_RANKS_MAX];

		wrong.what = what;
		wrong.n = n;
		wrong_run(&wrong, HK_NONE, 0, 0);
		memcpy(counted, messages, sizeof(counted));
		for (uint32_t r = 0; r < n; r++)
			for (uint32_t peer = 0; peer < n; peer++)
				for (uint64_t k = 0; k < counted[r][peer]; k++)
					wrong_run(&wrong, r, peer, k);
	}
	bed_figures_print("links that go wrong");
	for (int i = 0; i < 32; i++)
		if (failures[i])
			printf("%s %llu\n", hk_status_name((enum hk_status) - i),
			       (unsigned long long)failures[i]);
}

TEST(drop)
{
	wrong_everywhere(HK__HOOK_DROP, 4);
	CHECK(failures[-HK_EPEER]);
}

TEST(delay)
{
	wrong_everywhere(HK__HOOK_DELAY, 4);
}

TEST(stall)
{
	wrong_everywhere(HK__HOOK_STALL, 4);
	CHECK(failures[-HK_ETIMEDOUT]);
}

TEST(corrupt)
{
	wrong_everywhere(HK__HOOK_CORRUPT, 4);
}

TEST(truncate)
{
	wrong_everywhere(HK__HOOK_TRUNCATE, 4);
	CHECK(failures[-HK_EIO]);
}

TEST(duplicate)
{
	wrong_everywhere(HK__HOOK_DUPLICATE, 4);
}
