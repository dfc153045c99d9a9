/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover_test.c - while survivors agree and shrink: two ranks killed, at every pair
 * of acts; hosts cut off, in every way to divide them; ranks that are stopped and
 * come back. Never do two parts go on, and who should go on does.
 */
#include "swarm/heal.h"

static struct bed bed;
static struct heal heal;

/* Only the recovery: nobody has failed yet. */
static void recover_main(struct bed_seat *seat, void *ctx)
{
	heal_shrink(seat, ctx);
}

static uint64_t every(uint64_t otherwise)
{
	const char *given = getenv("HK_SWARM_EVERY");

	return given ? strtoull(given, NULL, 0) : otherwise;
}

/* ---- two are killed ---- */

struct pair {
	uint32_t a, b;
	uint64_t i, j;
};

static void pair_run(uint32_t n, const uint32_t *hosts, const struct pair *pair, uint64_t seed,
		     uint64_t *acts_out)
{
	struct bed_spec spec = { .n = n, .seed = seed, .hosts = hosts };

	heal = (struct heal){ 0 };
	bed_open(&bed, &spec, "n=%u, %s, rank %u killed at act %llu, rank %u at %llu", n,
		 hosts ? "each its own host" : "one host", pair->a, (unsigned long long)pair->i,
		 pair->b, (unsigned long long)pair->j);
	if (!acts_out) {
		hk__simnet_kill_at_act(bed.simnet, pair->a, pair->i);
		hk__simnet_kill_at_act(bed.simnet, pair->b, pair->j);
		bed_figures.faults += 2;
	}
	bed_run(&bed, recover_main, &heal, 1000 * BED_S);
	heal_check(&bed, &heal);
	for (uint32_t r = 0; acts_out && r < n; r++)
		acts_out[r] = hk__simnet_acts(bed.simnet, r);
	bed_close(&bed);
}

static void pairs_run(uint32_t n, const uint32_t *hosts, uint64_t step)
{
	uint64_t acts[BED_RANKS_MAX], seed = test_seed(3), turn = seed % step;
	struct pair pair = { 0 };

	pair_run(n, hosts, &pair, seed, acts);
	for (pair.a = 0; pair.a < n; pair.a++)
		for (pair.b = pair.a + 1; pair.b < n; pair.b++)
			for (pair.i = 0; pair.i < acts[pair.a]; pair.i++)
				for (pair.j = 0; pair.j < acts[pair.b]; pair.j++)
					if (++turn % step == 0)
						pair_run(n, hosts, &pair, seed + turn, NULL);
	bed_figures_print("two killed while they agree");
}

static const uint32_t apart[BED_RANKS_MAX] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
};

#ifdef HK_SANITIZED
#define SPARE 10u
#else
#define SPARE 1u
#endif

TEST(two_killed_of_three)
{
	pairs_run(3, NULL, every(5 * SPARE));
	pairs_run(3, apart, every(5 * SPARE));
}

TEST(two_killed_of_four)
{
	pairs_run(4, NULL, every(40 * SPARE));
	pairs_run(4, apart, every(40 * SPARE));
}

TEST(two_killed_of_five)
{
	pairs_run(5, NULL, every(200 * SPARE));
	pairs_run(5, apart, every(200 * SPARE));
}

/* ---- hosts are cut off ---- */

static void cut_run(uint32_t n, uint64_t mask, uint64_t at, uint64_t until, uint64_t seed)
{
	struct bed_spec spec = { .n = n, .seed = seed, .hosts = apart };

	heal = (struct heal){ .op = { .want = { .coll = HK_COLL_ALLREDUCE,
						.type = HK_TYPE_INT32,
						.op = HK_REDOP_SUM,
						.count = 100,
						.seed = 9 },
				      .algo = "ring" } };
	bed_open(&bed, &spec, "n=%u, hosts 0x%llx cut off from %.9f to %.9f s", n,
		 (unsigned long long)mask, (double)at / 1e9, (double)until / 1e9);
	bed_fault(&bed, &(struct hk__simnet_fault){
				.what = HK__SIMNET_CUT, .at = at, .until = until, .mask = mask });
	bed_run(&bed, heal_main, &heal, 4000 * BED_S);
	heal_check_safe(&bed, &heal);
}

static uint32_t count_of(uint64_t mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

/* Of a cut for good: the larger part goes on, or of halves the one with rank 0. */
static void parts_check(uint32_t n, uint64_t mask)
{
	uint32_t in = count_of(mask);
	uint64_t winner = 2 * in > n || (2 * in == n && (mask & 1)) ? mask : ~mask;

	for (uint32_t r = 0; r < n; r++) {
		const struct heal_seen *seen = &heal.seen[r];
		bool wins = winner >> r & 1;

		/* It may all have been over before. */
		if (seen->rounds == 1 && seen->members[0] == (1u << n) - 1)
			continue;
		if (seen->well != wins)
			bed_fail(&bed, r,
				 wins ? "is of the larger part, and stopped: %s"
				      : "is of the smaller part, and went on%s",
				 wins ? seen->why : "");
	}
}

TEST(cut_in_two_for_good)
{
	uint64_t seed = test_seed(1), random = seed;

	for (uint32_t n = 2; n <= 7; n++) {
		for (uint64_t mask = 1; mask < (1u << n) - 1; mask++) {
			for (uint32_t i = 0; i < (SPARE > 1 ? 2 : 8); i++) {
				uint64_t at = test_random(&random) % 60000;

				cut_run(n, mask, at, UINT64_MAX, seed + at);
				parts_check(n, mask);
				bed_close(&bed);
			}
		}
	}
	bed_figures_print("cut in two for good");
}

TEST(cut_in_two_for_a_while)
{
	uint64_t seed = test_seed(2), random = seed;

	for (uint32_t i = 0; i < 2000 / SPARE; i++) {
		uint32_t n = 2 + (uint32_t)(test_random(&random) % 6);
		uint64_t mask = 1 + test_random(&random) % ((1u << n) - 2);
		uint64_t at = test_random(&random) % 60000;
		/* Silence of a second is loss; shorter than half of it is nothing. */
		uint64_t took = test_random(&random) % (i % 2 ? BED_S / 2 : 12 * BED_S);

		cut_run(n, mask, at, at + took, seed + i);
		for (uint32_t r = 0; i % 2 && r < n; r++)
			if (!heal.seen[r].well)
				bed_fail(&bed, r, "a short cut was its end: %s", heal.seen[r].why);
		bed_close(&bed);
	}
	bed_figures_print("cut in two for a while");
}

/* ---- ranks are stopped ---- */

static void stop_run(uint32_t n, uint32_t rank, uint64_t at, uint64_t took, uint64_t seed)
{
	struct bed_spec spec = { .n = n, .seed = seed, .hosts = seed % 2 ? apart : NULL };

	/* Who is through agrees already while others wait for an operation: an eighth of it. */
	heal = (struct heal){ .shrink_timeout_ns = 100 * BED_S,
			      .op = { .want = { .coll = HK_COLL_ALLREDUCE,
						.type = HK_TYPE_INT32,
						.op = HK_REDOP_SUM,
						.count = 100,
						.seed = 9 },
				      .algo = seed % 3 ? "ring" : "recursive-doubling" } };
	bed_open(&bed, &spec, "n=%u, rank %u stopped from %.9f for %.9f s", n, rank,
		 (double)at / 1e9, (double)took / 1e9);
	bed_fault(&bed,
		  &(struct hk__simnet_fault){
			  .what = HK__SIMNET_STOP, .at = at, .until = at + took, .rank = rank });
	bed_run(&bed, heal_main, &heal, 4000 * BED_S);
	heal_check_safe(&bed, &heal);
}

/* One that comes back in time is missed by nobody. */
TEST(stopped_and_back_in_time)
{
	uint64_t seed = test_seed(4), random = seed;

	for (uint32_t i = 0; i < 1500 / SPARE; i++) {
		uint32_t n = 2 + (uint32_t)(test_random(&random) % 7);
		uint32_t rank = (uint32_t)(test_random(&random) % n);

		stop_run(n, rank, test_random(&random) % 60000, test_random(&random) % BED_S,
			 seed + i);
		for (uint32_t r = 0; r < n; r++)
			if (!heal.seen[r].well || heal.seen[r].status != HK_OK ||
			    heal.seen[r].rounds != 1)
				bed_fail(&bed, r, "was disturbed: %s", heal.seen[r].why);
		bed_close(&bed);
	}
	bed_figures_print("stopped and back in time");
}

/* One that does not: the others say that it is slow, not dead, and go on if they may. */
TEST(stopped_for_too_long)
{
	uint64_t seed = test_seed(5), random = seed;

	for (uint32_t i = 0; i < 1500 / SPARE; i++) {
		uint32_t n = 3 + (uint32_t)(test_random(&random) % 6);
		uint32_t rank = (uint32_t)(test_random(&random) % n);

		stop_run(n, rank, test_random(&random) % 60000,
			 (400 + test_random(&random) % 60) * BED_S, seed + i);
		for (uint32_t r = 0; r < n; r++) {
			const struct heal_seen *seen = &heal.seen[r];

			if (r != rank && !seen->well)
				bed_fail(&bed, r, "did not go on: %s", seen->why);
			if (r != rank && seen->status != HK_OK && seen->status != HK_ETIMEDOUT &&
			    seen->status != HK_EREVOKED)
				bed_fail(&bed, r, "%s: %s", hk_status_name(seen->status),
					 seen->why);
			if (strstr(seen->why, "is dead"))
				bed_fail(&bed, r, "takes a living one for dead: %s", seen->why);
		}
		bed_close(&bed);
	}
	bed_figures_print("stopped for too long");
}

/* ---- all of it, late ---- */

/* One is killed, stopped or cut off, sooner or later. */
static void late_fault(uint64_t *random, uint32_t n, uint64_t until)
{
	uint64_t any = test_random(random);
	struct hk__simnet_fault fault = { .rank = (uint32_t)(any % n),
					  .at = any / 64 % 2 ? test_random(random) % 40000
							     : test_random(random) % until };

	switch (any / 256 % 4) {
	case 0:
		fault.what = HK__SIMNET_KILL;
		break;
	case 1:
		if (any / 1024 % 2) {
			fault.what = HK__SIMNET_DROP;
			fault.peer = (fault.rank + 1) % n;
			break;
		}
		fault.what = HK__SIMNET_CUT;
		fault.mask = 1 + test_random(random) % ((1u << n) - 2);
		fault.until = fault.at + test_random(random) % until;
		break;
	default:
		fault.what = HK__SIMNET_STOP;
		fault.until = fault.at + test_random(random) % until;
		break;
	}
	bed_fault(&bed, &fault);
}

/*
 * Coordinators are passed over and come back; those who agreed die one after the
 * other, or are silent, while others still ask what was agreed on.
 */
TEST(coordinators_come_and_go)
{
	static const uint64_t delays[] = { 2000, 100000, BED_MS, 40 * BED_MS };
	uint64_t seed = test_seed(6), random = seed;

	for (uint64_t i = 0; i < (getenv("HK_SWARM_EVERY") ? 200000 : 6000 / SPARE); i++) {
		uint32_t n = 2 + (uint32_t)(test_random(&random) % 5);
		struct bed_spec spec = { .n = n,
					 .seed = seed + i,
					 .timeout_ns = 10 * BED_S,
					 .silence_ns = BED_S / (1 + test_random(&random) % 10),
					 .hosts = test_random(&random) % 4 ? apart : NULL,
					 .delay_ns = delays[test_random(&random) % 4] };

		heal = (struct heal){ .linger_ns = test_random(&random) % (30 * BED_S) };
		bed_open(&bed, &spec, "n=%u, number %llu", n, (unsigned long long)i);
		for (uint64_t faults = 1 + test_random(&random) % 4; faults > 0; faults--)
			late_fault(&random, n, 20 * BED_S);
		bed_run(&bed, recover_main, &heal, 4000 * BED_S);
		heal_check_safe(&bed, &heal);
		bed_close(&bed);
	}
	bed_figures_print("coordinators come and go");
}
