/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_test.c - every collective by every algorithm among 2 to 8 ranks: each rank
 * is killed at each thing it does that others can see, from the operation through
 * shrinking to the end. A clean run counts these first.
 */
#include "swarm/heal.h"

struct sweep {
	struct heal_op op;
	uint32_t n;
	const uint32_t *hosts;
	uint64_t seed;
};

/* rank HK_NONE: nobody is killed; how many acts each rank had. */
static void run_one(const struct sweep *sweep, uint32_t rank, uint64_t act, uint64_t *acts_out)
{
	static struct bed bed;
	static struct heal heal;
	struct bed_spec spec = { .n = sweep->n, .seed = sweep->seed + act, .hosts = sweep->hosts };

	heal = (struct heal){ .op = sweep->op };
	bed_open(&bed, &spec, "%s by %s, n=%u, %s, rank %d killed at act %llu",
		 hk_coll_name(sweep->op.want.coll), sweep->op.algo, sweep->n,
		 sweep->hosts ? "several hosts" : "one host", (int)rank, (unsigned long long)act);
	if (rank != HK_NONE) {
		hk__simnet_kill_at_act(bed.simnet, rank, act);
		bed_figures.faults++;
	}
	bed_run(&bed, heal_main, &heal, 1000 * BED_S);
	heal_check(&bed, &heal);
	for (uint32_t r = 0; acts_out && r < sweep->n; r++)
		acts_out[r] = hk__simnet_acts(bed.simnet, r);
	bed_close(&bed);
}

static void sweep_run(const struct sweep *sweep, uint64_t every, uint64_t *turn)
{
	uint64_t acts[BED_RANKS_MAX];

	run_one(sweep, HK_NONE, 0, acts);
	for (uint32_t r = 0; r < sweep->n; r++)
		for (uint64_t k = 0; k < acts[r]; k++)
			if (++*turn % every == 0)
				run_one(sweep, r, k, NULL);
}

/* Every algorithm of every collective, among n; of several hosts, halves or each its own. */
static void sweep_algos(uint32_t n, const uint32_t *hosts, uint64_t seed, uint64_t every)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };
	uint64_t turn = seed % every;

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		struct sweep sweep = { .op = { .want = { .coll = algo.coll,
							 .type = HK_TYPE_INT32,
							 .op = HK_REDOP_SUM,
							 .count = 2 * n + 1,
							 .seed = 5 },
					       .algo = algo.name },
				       .n = n,
				       .hosts = hosts,
				       .seed = seed + 1000003 * i };

		if (algo.coll == HK_COLL_SENDRECV || algo.onesided ||
		    (algo.nodes && !algo.uneven && hosts && n % 2))
			continue;
		sweep.op.want.root = want_rooted(algo.coll) ? n - 1 : 0;
		sweep_run(&sweep, every, &turn);
	}
}

/* One of so many is run, from a seed; the whole product is `make soak`. */
static void sweep_all(uint32_t from, uint32_t to, uint64_t every)
{
	uint64_t seed = test_seed(1);
	const char *given = getenv("HK_SWARM_EVERY");

	every = given ? strtoull(given, NULL, 0) : every;
	for (uint32_t n = from; n <= to; n++) {
		uint32_t halves[BED_RANKS_MAX], apart[BED_RANKS_MAX];

		for (uint32_t r = 0; r < n; r++) {
			halves[r] = r >= (n + 1) / 2;
			apart[r] = r;
		}
		sweep_algos(n, NULL, seed, every);
		sweep_algos(n, halves, seed + 1, every);
		sweep_algos(n, apart, seed + 2, every);
	}
	bed_figures_print("each rank killed at each act");
}

#ifdef HK_SANITIZED
#define SPARE 8u
#else
#define SPARE 1u
#endif

TEST(two_ranks)
{
	sweep_all(2, 2, SPARE);
}

TEST(three_ranks)
{
	sweep_all(3, 3, 4 * SPARE);
}

TEST(four_ranks)
{
	sweep_all(4, 4, 16 * SPARE);
}

TEST(five_ranks)
{
	sweep_all(5, 5, 32 * SPARE);
}

TEST(six_to_eight_ranks)
{
	sweep_all(6, 8, 256 * SPARE);
}
