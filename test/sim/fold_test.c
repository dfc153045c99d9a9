/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_test.c - what is folded, jumped over or averaged gives the times of what
 * is not: every algorithm, on fabrics with one switch, with nodes and leaves,
 * and on a torus.
 */
#include "bed.h"

#include <math.h>

struct tally {
	uint32_t runs, folded, jumped;
};

/* Full, folded, and folded without jumps. */
static void check_one(const struct hk_fabric *fabric, const struct hk_plan *plan, double bytes,
		      struct tally *tally)
{
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct sim_tuning exact = { .budget = 1e18 }, still = { .budget = 1e18, .no_jump = true };
	struct hk_plan_info info = { .size = sizeof(info) };
	char what[160];

	hk_plan_describe(plan, &info);
	snprintf(what, sizeof(what), "%s %s of %u ranks on %s, %g bytes", hk_coll_name(info.coll),
		 info.algo, info.nranks, fabric->name, bytes);
	opts.full = true;
	struct hk_sim_result full = bed_run(fabric, plan, bytes, &opts, NULL);
	opts.full = false;
	struct hk_sim_result folded = bed_run(fabric, plan, bytes, &opts, &exact);
	struct hk_sim_result slow = bed_run(fabric, plan, bytes, &opts, &still);
	CHECK(!full.folded && !folded.smeared);
	CHECK_EQ(full.messages, folded.messages);
	CHECK_EQ(full.messages, full.simulated);
	bed_near(what, folded.time_ns, full.time_ns, 1e-3);
	bed_near(what, folded.time_ns, slow.time_ns, 1e-9);
	bed_near(what, folded.busy, slow.busy, 1e-6);
	bed_near(what, folded.busy, full.busy, 1e-3);
	tally->runs++;
	tally->folded += folded.folded;
}

/* Algorithms through leaders, and those whose messages grow as n squared, are left out of large ones. */
static bool algo_fits(const struct hk_algo_info *algo, uint32_t n)
{
	bool direct =
		strcmp(algo->name, "direct") == 0 || strstr(algo->name, "-shot") || algo->onesided;

	return n <= 128 || (!direct && strcmp(algo->name, "leader") != 0);
}

static struct tally check_fabric(const char *spec, uint32_t n, const double *sizes, uint32_t nsizes)
{
	struct hk_fabric *fabric = bed_fabric(spec);
	struct tally tally = { 0 };
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		if (!algo_fits(&algo, n))
			continue;
		struct hk_plan *plan = bed_plan(fabric, algo.coll, algo.name, n);

		for (uint32_t k = 0; k < nsizes; k++)
			check_one(fabric, plan, sizes[k], &tally);
		hk_plan_free(plan);
	}
	printf("%s, %u ranks: %u runs, %u folded\n", spec, n, tally.runs, tally.folded);
	CHECK(tally.folded > 0);
	hk_fabric_free(fabric);
	return tally;
}

static const double sizes[] = { 0, 8, 4096, 1 << 20, 64 << 20 };

TEST(one_switch)
{
	check_fabric("switch:2", 2, sizes, 5);
	check_fabric("switch:7", 7, sizes, 5);
	check_fabric("switch:16", 16, sizes, 5);
	check_fabric("switch:60", 60, sizes, 4);
}

TEST(one_node)
{
	check_fabric("dgx-h100:1", 8, sizes, 5);
	check_fabric("dgx-h100:1", 5, sizes, 5);
}

TEST(nodes)
{
	check_fabric("dgx-h100:2", 16, sizes, 5);
	check_fabric("dgx-h100:3", 24, sizes, 4);
	check_fabric("dgx-a100:4", 32, sizes, 4);
}

TEST(leaves)
{
	check_fabric("dgx-h100:8,leaf=2", 64, sizes, 4);
	check_fabric("dgx-h100:12,leaf=4,oversubscription=4", 96, sizes + 2, 2);
}

TEST(others)
{
	check_fabric("torus:4x4", 16, sizes + 2, 2);
	check_fabric("torus:3x3x3", 27, sizes + 2, 2);
	check_fabric("slingshot-a100:8", 32, sizes + 2, 2);
	check_fabric("tcp-cluster:6", 6, sizes + 2, 2);
	check_fabric("gb200-nvl72:1", 72, sizes + 2, 2);
}

/* Up to 1,024 ranks: what takes minutes, in a target of its own. */
TEST(large_switch)
{
	static const double some[] = { 65536, 16 << 20 };

	if (!getenv("HK_TEST_SLOW"))
		SKIP("takes minutes: HK_TEST_SLOW=1, or make test-sim");
	check_fabric("switch:256", 256, some, 2);
	check_fabric("switch:1024", 1024, some, 2);
}

TEST(large_nodes)
{
	static const double some[] = { 65536, 16 << 20 };

	if (!getenv("HK_TEST_SLOW"))
		SKIP("takes minutes: HK_TEST_SLOW=1, or make test-sim");
	check_fabric("dgx-h100:64", 512, some, 2);
	check_fabric("dgx-h100:128", 1024, some, 2);
}

/* The state of a long ring repeats, and that is found: less is done than there is. */
TEST(rings_are_jumped_over)
{
	struct hk_fabric *fabric = bed_fabric("switch:4096");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLREDUCE, "ring", 4096);
	struct bed_alloc counted;
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct sim_tuning still = { .no_jump = true };

	bed_alloc_init(&counted, 0);
	opts.alloc = &counted.alloc;
	struct hk_sim_result jumped = bed_run(fabric, plan, 64 << 20, &opts, NULL);
	struct hk_sim_result slow = bed_run(fabric, plan, 64 << 20, &opts, &still);
	CHECK_EQ(counted.held, 0);
	bed_near("a ring of 4096", jumped.time_ns, slow.time_ns, 1e-9);
	CHECK_EQ(jumped.messages, slow.messages);
	CHECK_EQ(jumped.messages, UINT64_C(4096) * 2 * 4095);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

/* Ranks that upper tiers tell apart, taken as alike: near, and said. */
static void check_smeared(const char *spec, enum hk_coll coll, const char *algo, double bytes,
			  double near)
{
	struct hk_fabric *fabric = bed_fabric(spec);
	struct hk_plan *plan = bed_plan(fabric, coll, algo, fabric->ranks);
	struct sim_tuning exact = { .budget = 1e18 }, coarse = { .budget = 1e18, .unit = 8 };
	struct hk_sim_result a = bed_run(fabric, plan, bytes, NULL, &exact);
	struct hk_sim_result b = bed_run(fabric, plan, bytes, NULL, &coarse);

	CHECK(!a.smeared && b.smeared && b.classes < a.classes);
	CHECK_EQ(a.messages, b.messages);
	printf("%s %s on %s, %g bytes: %g of exact\n", hk_coll_name(coll), algo, spec, bytes,
	       b.time_ns / a.time_ns);
	bed_near(algo, b.time_ns, a.time_ns, near);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

TEST(averaged_paths)
{
	check_smeared("dgx-h100:64,leaf=8", HK_COLL_ALLREDUCE, "two-level", 1 << 20, 0.01);
	check_smeared("dgx-h100:64,leaf=8", HK_COLL_ALLREDUCE, "two-level", 64 << 20, 0.01);
	check_smeared("dgx-h100:64,leaf=8", HK_COLL_ALLREDUCE, "ring", 1 << 20, 0.01);
	check_smeared("dgx-h100:64,leaf=8", HK_COLL_ALLTOALL, "two-level", 16 << 20, 0.01);
	check_smeared("dgx-h100:64,leaf=8", HK_COLL_ALLGATHER, "pat", 1 << 16, 0.02);
	check_smeared("dgx-h100:64,leaf=8", HK_COLL_ALLTOALL, "pairwise", 1 << 20, 0.02);
	check_smeared("dgx-h100:64,leaf=8,oversubscription=4", HK_COLL_ALLTOALL, "two-level",
		      16 << 20, 0.02);
}

/* A hundred thousand ranks by a few, without much memory. */
static void check_scale(enum hk_coll coll, const char *algo, int64_t most)
{
	struct hk_fabric *fabric = bed_fabric("dgx-h100:16384");
	struct hk_plan *plan = bed_plan(fabric, coll, algo, fabric->ranks);
	struct bed_alloc counted;
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;

	bed_alloc_init(&counted, 0);
	opts.alloc = &counted.alloc;
	opts.slice_bytes = 1e18;
	struct hk_sim_result result = bed_run(fabric, plan, 64 << 20, &opts, NULL);
	CHECK(result.folded);
	CHECK(result.classes <= 1024);
	CHECK_EQ(counted.held, 0);
	/* One step of all ranks would be more than this. */
	CHECK((int64_t)counted.asked < most);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

TEST(scale)
{
	check_scale(HK_COLL_ALLREDUCE, "two-level", 131072);
	check_scale(HK_COLL_ALLTOALL, "two-level", 131072);
	check_scale(HK_COLL_ALLGATHER, "pat", 131072);
}
