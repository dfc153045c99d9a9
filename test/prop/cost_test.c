/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_test.c - the algorithms' formulas, evaluated, are what is
 * counted on the plans.
 */
#include "harness.h"
#include "naive/each.h"
#include "model/formula.h"
#include "naive/naive.h"

#include <hocket/check.h>

#include <math.h>

/* ---- formulas ---- */

static void check_formula(const char *text, double expected)
{
	double value = hk__formula(text, 12, 4);

	if (!(fabs(value - expected) < 1e-12))
		test_fail(__FILE__, __LINE__, "%s is %g, not %g", text, value, expected);
}

TEST(evaluator)
{
	check_formula("2*(n-1)/n", 22.0 / 12);
	check_formula("flog2(n) + clog2(n) + pow2(n)", 3 + 4 + 8);
	check_formula("clog2(1) + flog2(1) + pow2(1) + clog2(8) + flog2(8) + pow2(8)", 15);
	check_formula("popsum(4)", 4);
	check_formula("ceil(n/5)", 3);
	check_formula("halvings(n)", 4 + 2 + 1);
	check_formula("halvings(9)", 3);
	check_formula("n > 2 ? 1/n : 0", 1.0 / 12);
	check_formula("N != 4 ? 7 : g == 3 ? 5 : 6", 5);
	check_formula("(n <= 12)*(n >= 12) + (n < 12)", 1);
	check_formula("min(n, max(N, g)) - -1", 5);
	check_formula("8 - 2 - 1", 5);
	CHECK(isnan(hk__formula("", 2, 1)));
	CHECK(isnan(hk__formula("n-", 2, 1)));
	CHECK(isnan(hk__formula("n n", 2, 1)));
	CHECK(isnan(hk__formula("halve(n)", 2, 1)));
	CHECK(isnan(hk__formula("max(n)", 2, 1)));
	CHECK(isnan(hk__formula("n > 2 ? 1", 2, 1)));
	CHECK(isnan(hk__formula("(n", 2, 1)));
}

/* ---- the formulas ---- */

struct tally {
	struct naive *naive;
	uint32_t plans;
	uint32_t wrong;
};

static const struct hk_algo_info *algo_of(const struct hk_plan_info *info)
{
	static struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++)
		if (algo.coll == info->coll && strcmp(algo.name, info->algo) == 0)
			return &algo;
	test_fail(__FILE__, __LINE__, "no formulas for %s", info->algo);
}

static void compare(struct tally *tally, const struct hk_plan *plan, const char *what,
		    const char *text, double counted)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	double formula = hk__formula(text, info.nranks, info.nodes);
	/* Cards speak of equal nodes. */
	if (fabs(formula - counted) <= 1e-9 || info.node_sizes)
		return;
	if (isnan(formula))
		printf("%s: %s: cannot be read: %s\n", each_name(plan), what, text);
	else
		printf("%s: %s: %s is %g, counted %g\n", each_name(plan), what, text, formula,
		       counted);
	tally->wrong++;
}

static void same(struct tally *tally, const struct hk_plan *plan, const char *what,
		 uint64_t of_ranks, uint64_t of_plan)
{
	if (of_ranks == of_plan)
		return;
	printf("%s: %s: %" PRIu64 " by asking the ranks, %" PRIu64 " in the report\n",
	       each_name(plan), what, of_ranks, of_plan);
	tally->wrong++;
}

/* The report's busiest rank is the busiest of the ranks asked one by one. */
static void compare_ranks(struct tally *tally, const struct hk_plan *plan,
			  const struct hk_check_cost *cost)
{
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_rank_cost most = { 0 };
	uint64_t sent = 0, steps = 0;

	hk_plan_describe(plan, &info);
	for (uint32_t r = 0; r < info.nranks; r++) {
		struct hk_rank_cost rank = { .size = sizeof(rank) };

		hk_check_rank_cost(plan, r, &rank);
		sent += rank.sent;
		steps += rank.steps;
		most.sent = rank.sent > most.sent ? rank.sent : most.sent;
		most.received = rank.received > most.received ? rank.received : most.received;
		most.reduced = rank.reduced > most.reduced ? rank.reduced : most.reduced;
		most.copied = rank.copied > most.copied ? rank.copied : most.copied;
		most.scratch = rank.scratch > most.scratch ? rank.scratch : most.scratch;
	}
	same(tally, plan, "sent by the busiest", most.sent, cost->busiest_sent);
	same(tally, plan, "received by the busiest", most.received, cost->busiest_received);
	same(tally, plan, "reduced by the busiest", most.reduced, cost->busiest_reduced);
	same(tally, plan, "copied by the busiest", most.copied, cost->busiest_copied);
	same(tally, plan, "scratch of a rank", most.scratch, cost->scratch_max);
	same(tally, plan, "scratch that is used", cost->scratch_used, cost->scratch_max);
	same(tally, plan, "sent by all", sent, cost->sent);
	same(tally, plan, "steps of all", steps, cost->steps_total);
}

/* The longest chain of messages is the one that a run sees. */
static void compare_chain(struct tally *tally, const struct hk_plan *plan, uint32_t critical)
{
	struct hk_plan_info info = { .size = sizeof(info) };
	struct naive_report report;

	hk_plan_describe(plan, &info);
	struct defn_spec spec = { .coll = info.coll,
				  .n = info.nranks,
				  .root = info.root,
				  .sizes = { 1, NULL },
				  .msgs = info.msgs,
				  .nmsgs = info.nmsgs };
	struct defn *data = defn_create(&spec, ELEM_EXACT, 1);
	struct naive_opts opts = { .slots = info.slots };
	naive_load(tally->naive, plan);
	CHECK_EQ(naive_run(tally->naive, data, &opts, &report), NAIVE_OK);
	if (report.longest != critical) {
		printf("%s: critical: %u in a run, %u in the report\n", each_name(plan),
		       report.longest, critical);
		tally->wrong++;
	}
	defn_destroy(data);
}

static void compare_plan(const struct hk_plan *plan, void *ctx)
{
	struct tally *tally = ctx;
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_check_report report = { .size = sizeof(report) };
	enum hk_status status = hk_check(plan, NULL, &report);

	hk_plan_describe(plan, &info);
	if (status != HK_OK) {
		printf("%s: %s: %s\n", each_name(plan), hk_status_name(status), report.why.text);
		tally->wrong++;
		return;
	}
	const struct hk_algo_info *algo = algo_of(&info);
	const struct hk_check_cost *cost = &report.cost;
	double chunks = cost->chunks;
	tally->plans++;
	compare(tally, plan, "steps", algo->steps, cost->critical);
	compare(tally, plan, "sent", algo->sent, (double)cost->busiest_sent / chunks);
	compare(tally, plan, "reduced", algo->reduced, (double)cost->busiest_reduced / chunks);
	compare(tally, plan, "scratch", algo->scratch, cost->scratch_max / chunks);
	compare_ranks(tally, plan, cost);
	compare_chain(tally, plan, cost->critical);
}

static void compare_coll(enum hk_coll coll)
{
	struct each_opts opts = { .n_min = 2, .n_max = 40, .roots = EACH_ROOT_ENDS };
	struct tally tally = { .naive = naive_create() };

	(void)each_plan(coll, &opts, compare_plan, &tally);
	printf("%s: %u plans, %u differences\n", hk_coll_name(coll), tally.plans, tally.wrong);
	naive_destroy(tally.naive);
	CHECK(tally.plans > 0);
	CHECK_EQ(tally.wrong, 0);
}

TEST(allreduce)
{
	compare_coll(HK_COLL_ALLREDUCE);
}

TEST(allgather)
{
	compare_coll(HK_COLL_ALLGATHER);
}

TEST(reducescatter)
{
	compare_coll(HK_COLL_REDUCESCATTER);
}

TEST(alltoall)
{
	compare_coll(HK_COLL_ALLTOALL);
}

TEST(broadcast)
{
	compare_coll(HK_COLL_BROADCAST);
}

TEST(reduce)
{
	compare_coll(HK_COLL_REDUCE);
}

TEST(gather)
{
	compare_coll(HK_COLL_GATHER);
}

TEST(scatter)
{
	compare_coll(HK_COLL_SCATTER);
}

TEST(barrier)
{
	compare_coll(HK_COLL_BARRIER);
}

TEST(sendrecv)
{
	compare_coll(HK_COLL_SENDRECV);
}
