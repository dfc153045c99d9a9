/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_test.c - every built-in plan, performed on real arrays under several
 * interleavings, gives what the definition of its collective gives.
 *
 * Up to 16 ranks; every root up to 8; every number of nodes; counts around n,
 * none and many; uneven blocks; in place where it is claimed; sums of doubles
 * and floats to the same bits under every interleaving.
 */
#include "harness.h"
#include "naive/each.h"
#include "naive/naive.h"

#include <hocket/check.h>

struct bench {
	struct naive *naive;
	uint64_t seed; /* moves on with every run */
	uint32_t runs;
	uint32_t turn;
};

static const enum elem_type types[] = { ELEM_INT64, ELEM_DOUBLE, ELEM_FLOAT };
static const char *const type_names[] = { "int64", "double", "float" };

static struct defn_spec spec_of(const struct hk_plan *plan, enum elem_type type,
				const struct hk_sizes *sizes)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	return (struct defn_spec){ .coll = info.coll,
				   .type = type,
				   .n = info.nranks,
				   .root = info.root,
				   .sizes = *sizes,
				   .msgs = info.msgs,
				   .nmsgs = info.nmsgs };
}

static void fail_run(const struct hk_plan *plan, const struct defn *data,
		     const struct naive_opts *opts, const struct naive_report *report)
{
	const struct hk_sizes *sizes = &data->spec.sizes;

	printf("sizes:");
	if (!sizes->counts)
		printf(" %" PRIu64 " each", sizes->count);
	for (uint64_t k = 0; sizes->counts && k < hk_plan_counts(plan); k++)
		printf(" %" PRIu64, sizes->counts[k]);
	test_fail(__FILE__, __LINE__,
		  "%s%s, %s, order %d, seed %" PRIu64 ", %u slots: rank %d lane %d step %d "
		  "element %" PRIu64 ": %s",
		  each_name(plan), opts->inplace ? " in place" : "", type_names[data->spec.type],
		  (int)opts->order, opts->seed, opts->slots, (int)report->rank, (int)report->lane,
		  (int)report->step, report->index, naive_fault_text(report->fault));
}

static void run_once(struct bench *bench, const struct hk_plan *plan, const struct defn *data,
		     struct naive_opts opts)
{
	struct naive_report report;

	opts.seed = bench->seed++;
	bench->runs++;
	if (naive_run(bench->naive, data, &opts, &report) != NAIVE_OK)
		fail_run(plan, data, &opts, &report);
}

/* One size: in place or not, the plan's own slots and more, every order. */
static void run_sizes(struct bench *bench, const struct hk_plan *plan, const struct hk_sizes *sizes)
{
	struct hk_plan_info info = { .size = sizeof(info) };
	struct defn_spec spec = spec_of(plan, types[bench->turn++ % 3], sizes);
	struct defn *data = defn_create(&spec, ELEM_EXACT, bench->seed);

	hk_plan_describe(plan, &info);
	for (int variant = 0; variant < 4 * NAIVE_ORDER_COUNT; variant++) {
		struct naive_opts opts = { .order = (enum naive_order)(variant / 4),
					   .inplace = variant & 1,
					   .slots = info.slots,
					   .hold = variant % 3 != 0 };

		if (opts.inplace && !info.inplace)
			continue;
		if (variant & 2)
			opts.slots += 1 + (uint32_t)(bench->seed % HK_SLOTS_MAX);
		run_once(bench, plan, data, opts);
	}
	defn_destroy(data);
}

/* Values that round: every interleaving gives the same bits. */
static void run_bits(struct bench *bench, const struct hk_plan *plan, uint64_t count)
{
	struct hk_sizes sizes = { count, NULL };
	enum elem_type type = bench->turn++ % 2 ? ELEM_DOUBLE : ELEM_FLOAT;
	struct defn_spec spec = spec_of(plan, type, &sizes);
	struct defn *data = defn_create(&spec, ELEM_ROUNDING, bench->seed);
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	for (int order = 0; order < NAIVE_ORDER_COUNT; order++) {
		struct naive_opts opts = { .order = (enum naive_order)order,
					   .slots = info.slots + (unsigned)order % 2,
					   .inplace = info.inplace && order >= 2 };

		run_once(bench, plan, data, opts);
		/* What the first gave is from now on what is promised. */
		for (uint32_t r = 0; order == 0 && r < info.nranks; r++)
			for (uint64_t i = 0; i < data->out[r].len; i++)
				data->out[r].at[i] = naive_out(bench->naive, r)[i];
		data->values = ELEM_EXACT;
	}
	defn_destroy(data);
}

enum uneven {
	UNEVEN_SOME_ZERO,
	UNEVEN_RANDOM,
	UNEVEN_ALL_ZERO,
	UNEVEN_ONE_HUGE,
	UNEVEN_COUNT
};

static void run_uneven(struct bench *bench, const struct hk_plan *plan, enum uneven uneven)
{
	uint64_t symbols = hk_plan_counts(plan);
	uint64_t *counts = calloc(symbols + 1, sizeof(*counts));
	struct hk_sizes sizes = { 0, counts };

	CHECK(counts);
	for (uint64_t k = 0; k < symbols; k++) {
		uint64_t random = test_random(&bench->seed);

		if (uneven == UNEVEN_SOME_ZERO)
			counts[k] = random % 2 ? random / 2 % 9 : 0;
		else if (uneven == UNEVEN_RANDOM)
			counts[k] = 1 + random % 40;
		else if (uneven == UNEVEN_ONE_HUGE)
			counts[k] = random % 3;
	}
	if (uneven == UNEVEN_ONE_HUGE && symbols)
		counts[test_random(&bench->seed) % symbols] = 5000;
	run_sizes(bench, plan, &sizes);
	free(counts);
}

static void run_plan(const struct hk_plan *plan, void *ctx)
{
	struct bench *bench = ctx;
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	naive_load(bench->naive, plan);
	const uint64_t counts[] = { 0, 1, info.nranks - 1, info.nranks, info.nranks + 1, 1000 };
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct hk_sizes sizes = { counts[c], NULL };

		run_sizes(bench, plan, &sizes);
	}
	for (int uneven = 0; uneven < UNEVEN_COUNT; uneven++)
		run_uneven(bench, plan, (enum uneven)uneven);
	run_bits(bench, plan, 2 * info.nranks + 1);
}

static void run_coll(enum hk_coll coll)
{
	struct each_opts opts = { .n_min = 1,
				  .n_max = 16,
				  .roots = EACH_ROOT_MANY,
				  .batches = 12,
				  .seed = test_seed(1) };
	struct bench bench = { .naive = naive_create(), .seed = opts.seed };
	uint32_t plans = each_plan(coll, &opts, run_plan, &bench);

	CHECK(plans > 0);
	printf("%s: %u plans, %u runs\n", hk_coll_name(coll), plans, bench.runs);
	naive_destroy(bench.naive);
}

TEST(allreduce)
{
	run_coll(HK_COLL_ALLREDUCE);
}

TEST(allgather)
{
	run_coll(HK_COLL_ALLGATHER);
}

TEST(reducescatter)
{
	run_coll(HK_COLL_REDUCESCATTER);
}

TEST(alltoall)
{
	run_coll(HK_COLL_ALLTOALL);
}

TEST(broadcast)
{
	run_coll(HK_COLL_BROADCAST);
}

TEST(reduce)
{
	run_coll(HK_COLL_REDUCE);
}

TEST(gather)
{
	run_coll(HK_COLL_GATHER);
}

TEST(scatter)
{
	run_coll(HK_COLL_SCATTER);
}

TEST(barrier)
{
	run_coll(HK_COLL_BARRIER);
}

TEST(sendrecv)
{
	run_coll(HK_COLL_SENDRECV);
}

/* A plan the checker calls consistent gives all ranks the same bits. */
static void run_consistent(const struct hk_plan *plan, void *ctx)
{
	struct bench *bench = ctx;
	struct hk_sizes sizes = { 50, NULL };
	struct defn_spec spec = spec_of(plan, ELEM_FLOAT, &sizes);
	struct hk_check_report report = { .size = sizeof(report) };

	CHECK_EQ(hk_check(plan, NULL, &report), HK_OK);
	if (!report.consistent)
		return;
	struct defn *data = defn_create(&spec, ELEM_ROUNDING, bench->seed);
	naive_load(bench->naive, plan);
	run_once(bench, plan, data, (struct naive_opts){ .slots = HK_SLOTS_MIN });
	for (uint32_t r = 1; r < spec.n; r++)
		if (memcmp(naive_out(bench->naive, 0), naive_out(bench->naive, r),
			   sizes.count * sizeof(union elem)) != 0)
			test_fail(__FILE__, __LINE__, "%s: ranks 0 and %u have other bits",
				  each_name(plan), r);
	defn_destroy(data);
}

TEST(allreduce_consistent)
{
	struct each_opts opts = { .n_min = 1, .n_max = 16 };
	struct bench bench = { .naive = naive_create(), .seed = 1 };
	uint32_t plans = each_plan(HK_COLL_ALLREDUCE, &opts, run_consistent, &bench);

	printf("%u plans, %u of them consistent\n", plans, bench.runs);
	CHECK(bench.runs > 0);
	naive_destroy(bench.naive);
}
