/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onesided_test.c - every built-in plan that puts and signals is proved for up to 64
 * ranks, in and out of place; weak ones as well if their signals are taken as strong,
 * since those say more; and too many ranks are a limit, not a crash.
 */
#include "harness.h"
#include "naive/each.h"
#include "plan/store.h"

#include <hocket/check.h>

struct tally {
	uint32_t plans, proofs;
	uint64_t steps;
};

static void prove(struct tally *tally, const struct hk_plan *plan, bool inplace)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };

	opts.inplace = inplace;
	if (hk_check(plan, &opts, &report) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s%s: %s", each_name(plan),
			  inplace ? " in place" : "", report.why.text);
	CHECK(report.consistent);
	tally->proofs++;
	tally->steps += report.cost.steps_total;
}

static void prove_plan(const struct hk_plan *plan, void *ctx)
{
	struct tally *tally = ctx;
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_plan *strong;

	hk_plan_describe(plan, &info);
	tally->plans++;
	for (int inplace = 0; inplace <= info.inplace; inplace++)
		prove(tally, plan, inplace);
	if (info.signals == HK_SIGNALS_STRONG || info.nranks > 16)
		return;
	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &strong), HK_OK);
	strong->signals = HK_SIGNALS_STRONG;
	prove(tally, strong, false);
	hk_plan_free(strong);
}

TEST(proved_up_to_64_ranks)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };
	struct tally tally = { 0 };
	uint32_t algos = 0;

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		struct each_opts opts = {
			.n_min = 1, .n_max = 64, .roots = EACH_ROOT_ENDS, .algo = algo.name
		};

		if (!algo.onesided)
			continue;
		algos++;
		each_plan(algo.coll, &opts, prove_plan, &tally);
	}
	printf("%u algorithms, %u plans, %u proofs, %" PRIu64 " steps\n", algos, tally.plans,
	       tally.proofs, tally.steps);
	CHECK(algos >= 13);
	CHECK(tally.proofs > 64 * 13);
}

/* Clocks grow with the square of the ranks. */
TEST(too_many_ranks)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_plan *plan;

	opts.algo = "signal-dissemination";
	CHECK_EQ(hk_plan_create(HK_COLL_BARRIER, 256, &opts, NULL, &plan), HK_OK);
	CHECK_EQ(hk_check(plan, NULL, &report), HK_OK);
	hk_plan_free(plan);
	CHECK_EQ(hk_plan_create(HK_COLL_BARRIER, 100000, &opts, NULL, &plan), HK_OK);
	CHECK_EQ(hk_check(plan, NULL, &report), HK_ELIMIT);
	CHECK_HAS(report.why.text, "the one-sided steps of 100000 lanes take more memory than a "
				   "proof can take; check it with fewer ranks");
	hk_plan_free(plan);
}
