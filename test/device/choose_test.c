/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose_test.c - what the model makes of programs, and what is chosen by it: what
 * is cheaper, up to where the costs cross.
 */
#include "exec/device/unit.h"
#include "exec/device/load.h"
#include "harness.h"
#include "naive/each.h"

#include <math.h>

/* A device whose prices a reader can add up. */
static const struct hk__device_prices plain = { .name = "plain",
						.launch_ns = 1000,
						.peer_ns = 10,
						.flag_ns = 500,
						.line_ns = 300,
						.move_ns = 200,
						.move_lines_ns = 100,
						.bw_block = 10,
						.bw_device = 100 };

static struct gpu_choosing choosing_of(uint32_t n, const struct hk__device_prices *prices)
{
	return (struct gpu_choosing){ .n = n,
				      .limits = { .blocks = 16,
						  .slice_min = 4 << 10,
						  .slice_max = 2 << 20,
						  .lines_bytes = 256 << 10,
						  .bufs_bytes = 1 << 20 },
				      .prices = prices,
				      .alloc = &hk__alloc_default };
}

static struct hk_plan *plan_of(enum hk_coll coll, uint32_t n, const char *algo)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan *plan;
	struct hk_why why;

	opts.algo = algo;
	CHECK_EQ(hk_plan_create(coll, n, &opts, &why, &plan), HK_OK);
	return plan;
}

/* ---- prices ---- */

TEST(a_price_is_a_sum)
{
	struct hk__device_load load = {
		.blocks = 2, .peers = 7, .hops = 2, .moves = 3, .block_bytes = 1000, .bytes = 2000
	};
	char line[256];
	struct hk__text text;

	CHECK_EQ(hk__device_price(&plain, &load), 1000 + 70 + 2 * 500 + 3 * 200 + 1000 / 10);
	load.lines = true;
	CHECK_EQ(hk__device_price(&plain, &load), 1000 + 70 + 2 * 300 + 3 * 100 + 2000 / 100);
	load.bytes = 100000;
	hk__text_init(&text, line, sizeof(line));
	hk__device_explain(&plain, &load, &text);
	CHECK_STR(line, "2.97 us on plain by lines, 2 blocks of a rank: launch 1.00, 7 peers 0.07, "
			"2 hops 0.60, 3 moves 0.30, 100000 bytes of all blocks 1.00");
	load.lines = false; /* more than the device's memory can do meanwhile */
	CHECK_EQ(hk__device_price(&plain, &load), 1000 + 70 + 2 * 500 + 3 * 200 + 100000 / 100);
	load.bytes = 2000;
	hk__text_init(&text, line, sizeof(line));
	hk__device_explain(&plain, &load, &text);
	CHECK_HAS(line, "by flags");
	CHECK_HAS(line, "1000 bytes of a block 0.10");
}

/* ---- what programs have a device do ---- */

static void check_profile(enum hk_coll coll, const char *algo, bool lines, uint32_t peers,
			  uint32_t hops, uint32_t moves, double all)
{
	struct hk_plan *plan = plan_of(coll, 8, algo);
	struct hk__flat_spec spec = { .plan = plan, .lines = lines };
	struct hk__flat_profile profile;
	struct hk__flat *flat;
	struct hk_why why;

	CHECK_EQ(hk__flat_create(&spec, &why, &flat), HK_OK);
	CHECK_EQ(hk__flat_profile(flat, lines, &profile), HK_OK);
	const struct hk__flat_operands *sum = &profile.all;
	if (profile.hops != hops || profile.moves != moves || sum->plain + sum->line != all)
		test_fail(__FILE__, __LINE__, "%s%s: %u hops, %u moves, %.0f operands", algo,
			  lines ? " by lines" : "", profile.hops, profile.moves,
			  sum->plain + sum->line);
	CHECK(lines ? sum->line > 0 : sum->line == 0);
	CHECK_EQ(profile.peers, peers);
	hk__flat_destroy(flat);
	hk_plan_free(plan);
}

TEST(what_programs_do)
{
	/* All have begun, a sum of 8 blocks, to 8 places, and all have ended. */
	check_profile(HK_COLL_ALLREDUCE, "two-shot", false, 7, 2, 1, 8 * 16);
	/* Blocks go out, sums come back: 7 sent each way, all read, and the own ones. */
	check_profile(HK_COLL_ALLREDUCE, "two-shot", true, 7, 2, 2, 8 * (7 * 2 + 8 + 8 + 7 * 2));
	check_profile(HK_COLL_ALLREDUCE, "one-shot", true, 7, 1, 2, 8 * (1 + 7 + 8 + 1));
	check_profile(HK_COLL_ALLGATHER, "direct", false, 7, 2, 1, 8 * 9);
	/* The root tells three. */
	check_profile(HK_COLL_BROADCAST, "binomial", true, 3, 3, 1, 7 * 2 + 8 + 1);
}

/* What is forwarded takes as long as all who do it take together. */
TEST(chains_are_longer_than_ranks)
{
	static const char *const algos[] = { "binomial", "chain" };
	struct hk__flat_profile profile[2];
	struct hk_why why;

	for (uint32_t i = 0; i < 2; i++) {
		struct hk_plan *plan = plan_of(HK_COLL_BROADCAST, 8, algos[i]);
		struct hk__flat_spec spec = { .plan = plan };
		struct hk__flat *flat;

		CHECK_EQ(hk__flat_create(&spec, &why, &flat), HK_OK);
		CHECK_EQ(hk__flat_profile(flat, false, &profile[i]), HK_OK);
		CHECK(profile[i].longest > profile[i].most.plain);
		hk__flat_destroy(flat);
		hk_plan_free(plan);
	}
	CHECK(profile[1].hops > profile[0].hops);
	CHECK(profile[1].longest > profile[0].longest);
}

/* Every plan can be priced, both ways, and hops end. */
static void plan_profile(const struct hk_plan *plan, void *ctx)
{
	uint32_t *plans = ctx;

	for (uint32_t k = 0; k < 4; k++) {
		struct hk__flat_spec spec = { .plan = plan, .lines = k % 2, .apart = k / 2 };
		struct hk__flat_profile profile;
		struct hk__flat *flat;
		struct hk_why why;

		CHECK_EQ(hk__flat_create(&spec, &why, &flat), HK_OK);
		CHECK_EQ(hk__flat_profile(flat, k % 2, &profile), HK_OK);
		CHECK((plan->n > 1) == (profile.hops > 0));
		CHECK(profile.hops <= plan->n * plan->n + 2);
		hk__flat_destroy(flat);
	}
	++*plans;
}

TEST(every_plan_has_a_profile)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_REDUCESCATTER, HK_COLL_BROADCAST };
	struct each_opts opts = {
		.n_min = 1, .n_max = 8, .roots = EACH_ROOT_ENDS, .messages = true
	};
	uint32_t plans = 0;

	for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++)
		each_plan(colls[i], &opts, plan_profile, &plans);
	CHECK(plans > 100);
}

/* ---- what is chosen ---- */

/* By one candidate alone, one way. */
static void table_of(struct gpu_choosing choosing, const char *algo, enum hk__gpu_protocol protocol,
		     struct gpu_table *table)
{
	struct hk__gpu_ask ask = {
		.coll = HK_COLL_ALLREDUCE, .algo = algo, .type = HK_TYPE_FP32, .op = HK_REDOP_SUM
	};
	struct hk_why why;

	choosing.protocol = protocol;
	CHECK_EQ(hk__gpu_table(&choosing, &ask, &why, table), HK_OK);
}

/* In every class nothing else is cheaper, and what was chosen is what it costs. */
static void check_cheapest(const struct gpu_choosing *choosing)
{
	const char *const *names = hk__gpu_candidates(HK_COLL_ALLREDUCE);
	struct gpu_table chosen, flags, both;

	table_of(*choosing, NULL, HK__GPU_ANY, &chosen);
	for (uint32_t k = 0; names[k]; k++) {
		table_of(*choosing, names[k], HK__GPU_FLAGS, &flags);
		table_of(*choosing, names[k], HK__GPU_ANY, &both);
		for (uint32_t i = 0; i < GPU_CLASSES; i++) {
			CHECK(!flags.lines[i]);
			CHECK(both.ns[i] <= flags.ns[i]);
			CHECK(chosen.ns[i] <= both.ns[i]);
			if (chosen.candidate[i] == k)
				CHECK(chosen.ns[i] == both.ns[i] &&
				      chosen.lines[i] == both.lines[i]);
		}
	}
}

TEST(the_cheapest_is_chosen)
{
	for (uint32_t n = 2; n <= 8; n++) {
		struct gpu_choosing choosing = choosing_of(n, &plain);

		check_cheapest(&choosing);
		choosing.prices = &hk__device_h200;
		check_cheapest(&choosing);
		choosing.apart = true;
		check_cheapest(&choosing);
	}
}

/* The first class in which the candidate is another than that of the smallest. */
static uint32_t crossing(const struct gpu_table *table)
{
	uint32_t i = 0;

	while (i < GPU_CLASSES && table->candidate[i] == table->candidate[0])
		i++;
	return i;
}

TEST(choices_cross_where_costs_do)
{
	struct hk__device_prices dear = plain;
	struct gpu_table table, later;
	struct gpu_choosing choosing = choosing_of(8, &plain);

	/* Small: one hop by lines. Large: each byte is read and written once, by flags. */
	table_of(choosing, NULL, HK__GPU_ANY, &table);
	CHECK_STR(hk__gpu_candidates(HK_COLL_ALLREDUCE)[table.candidate[3]], "one-shot");
	CHECK(table.lines[3]);
	CHECK_STR(hk__gpu_candidates(HK_COLL_ALLREDUCE)[table.candidate[28]], "two-shot");
	CHECK(!table.lines[28]);
	/* If hops are ten times as dear, few of them are worth it for longer. */
	dear.flag_ns *= 10;
	dear.line_ns *= 10;
	choosing.prices = &dear;
	table_of(choosing, NULL, HK__GPU_ANY, &later);
	CHECK(crossing(&table) > 3);
	CHECK(crossing(&later) > crossing(&table));
	CHECK(crossing(&later) < GPU_CLASSES);
}

TEST(who_asks_for_lines_has_them)
{
	struct gpu_choosing choosing = choosing_of(4, &plain);
	struct hk__device_prices dear = plain;
	struct gpu_table table;

	dear.line_ns = 1e6;
	choosing.prices = &dear;
	table_of(choosing, NULL, HK__GPU_ANY, &table);
	CHECK(!table.lines[6]);
	table_of(choosing, NULL, HK__GPU_LINES, &table);
	CHECK(table.lines[6]);
	CHECK(!table.lines[30]); /* they do not fit */
	CHECK(table.ns[30] < INFINITY);
}

TEST(one_rank_chooses_too)
{
	struct gpu_choosing choosing = choosing_of(1, &plain);
	struct gpu_table table;

	table_of(choosing, NULL, HK__GPU_ANY, &table);
	for (uint32_t i = 0; i < GPU_CLASSES; i++)
		CHECK(table.ns[i] < INFINITY);
}

/* What was fastest on an H200 by some way, and how long it took (bench/gpu-tune). */
TEST(as_measured)
{
	static const struct {
		enum hk_coll coll;
		uint32_t n, class;
		const char *algo; /* NULL: there is one */
		bool lines;
		double us;
	} rows[] = {
		{ HK_COLL_ALLREDUCE, 2, 3, "one-shot", true, 4.29 },
		{ HK_COLL_ALLREDUCE, 4, 13, "one-shot", true, 5.74 },
		{ HK_COLL_ALLREDUCE, 8, 3, "one-shot", true, 5.63 },
		{ HK_COLL_ALLREDUCE, 8, 19, "two-shot", false, 11.13 },
		{ HK_COLL_ALLREDUCE, 8, 25, "two-shot", false, 151.49 },
		{ HK_COLL_BROADCAST, 8, 15, "binomial", true, 4.40 },
		{ HK_COLL_BROADCAST, 8, 25, "two-shot", false, 145.15 },
		{ HK_COLL_REDUCE, 8, 11, "binomial", true, 4.94 },
		{ HK_COLL_REDUCE, 8, 23, "two-shot", false, 35.44 },
		{ HK_COLL_ALLGATHER, 8, 13, NULL, true, 6.95 },
		{ HK_COLL_ALLGATHER, 8, 17, NULL, false, 11.09 },
		{ HK_COLL_ALLTOALL, 4, 15, NULL, true, 6.56 },
		{ HK_COLL_ALLTOALL, 4, 23, NULL, false, 80.57 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpu_choosing choosing = choosing_of(rows[i].n, &hk__device_h200);
		struct hk__gpu_ask ask = { .coll = rows[i].coll, .type = HK_TYPE_FP32 };
		struct gpu_table table;
		struct hk_why why;

		choosing.limits.blocks = hk__min(132 / rows[i].n, 64);
		CHECK_EQ(hk__gpu_table(&choosing, &ask, &why, &table), HK_OK);
		uint32_t class = rows[i].class;
		const char *algo = hk__gpu_candidates(ask.coll)[table.candidate[class]];
		double off = table.ns[class] / 1e3 / rows[i].us;
		if ((rows[i].algo && strcmp(rows[i].algo, algo) != 0) ||
		    table.lines[class] != rows[i].lines || off < 0.6 || off > 1.6)
			test_fail(__FILE__, __LINE__, "row %zu: %s by %s in %.2f us", i,
				  algo ? algo : "", table.lines[class] ? "lines" : "flags",
				  table.ns[class] / 1e3);
	}
}
