/* SPDX-License-Identifier: Apache-2.0 */
/*
 * widest_test.c - how wide an algorithm says its messages are is how wide the
 * widest of them is: of every rank, of every plan of up to 33 ranks, whatever
 * its root and its nodes, built in, copied, or written and read again.
 */
#include "harness.h"
#include "naive/each.h"
#include "plan/store.h"

static uint32_t scan(const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };
	uint32_t widest = 1;

	hk_plan_describe(plan, &info);
	for (uint32_t r = 0; r < info.nranks; r++) {
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++) {
				struct hk_step step;

				hk_plan_step(plan, r, l, i, &step);
				if ((step.op == HK_OP_SEND || step.op == HK_OP_RECV_SEND ||
				     step.op == HK_OP_RECV_REDUCE_SEND) &&
				    step.count > widest)
					widest = step.count;
			}
		}
	}
	return widest;
}

static void compare(const struct hk_plan *plan, void *ctx)
{
	uint32_t *wrong = ctx, scanned = scan(plan), said = hk__plan_widest(plan);

	if (said == scanned)
		return;
	printf("%s: said to be %u, is %u\n", each_name(plan), said, scanned);
	++*wrong;
}

TEST(built_in)
{
	struct each_opts opts = {
		.n_min = 1, .n_max = 33, .roots = EACH_ROOT_ALL, .batches = 2, .seed = 1
	};
	uint32_t wrong = 0;

	for (int coll = 0; coll < HK_COLL_COUNT; coll++) {
		uint32_t plans = each_plan((enum hk_coll)coll, &opts, compare, &wrong);

		printf("%s: %u plans\n", hk_coll_name((enum hk_coll)coll), plans);
		CHECK(plans > 0);
	}
	CHECK_EQ(wrong, 0);
}

/* A plan whose steps are stored says the same, and goes with its steps. */
static void compare_stored(const struct hk_plan *plan, void *ctx)
{
	struct hk_plan *copy, *read;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	CHECK(file);
	CHECK_EQ(hk_plan_print_json(plan, NULL, file, NULL), HK_OK);
	CHECK(fclose(file) == 0);
	CHECK_EQ(hk_plan_parse(text, len, "text", NULL, NULL, &read), HK_OK);
	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &copy), HK_OK);
	compare(read, ctx);
	compare(copy, ctx);
	CHECK_EQ(hk__plan_widest(read), hk__plan_widest(plan));
	struct hk_step *step = hk__store_add_step(copy, 0, 0);
	CHECK(step);
	step->op = HK_OP_SEND;
	step->count = 1000;
	CHECK_EQ(hk__plan_widest(copy), 1000);
	hk_plan_free(copy);
	hk_plan_free(read);
	free(text);
}

TEST(stored)
{
	struct each_opts opts = { .n_min = 2, .n_max = 7, .roots = EACH_ROOT_ENDS };
	uint32_t wrong = 0;

	for (int coll = 0; coll < HK_COLL_COUNT; coll++)
		CHECK(each_plan((enum hk_coll)coll, &opts, compare_stored, &wrong) > 0);
	CHECK_EQ(wrong, 0);
}

/* It is known without a walk: a plan of all ranks there can be answers at once. */
TEST(large)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
		struct hk_plan *plan;

		opts.algo = algo.name;
		if (algo.coll == HK_COLL_SENDRECV)
			continue; /* holds its messages */
		CHECK_EQ(hk_plan_create(algo.coll, HK_RANKS_MAX, &opts, NULL, &plan), HK_OK);
		for (uint32_t k = 0; k < 1000; k++)
			CHECK(hk__plan_widest(plan) > 0);
		CHECK(hk__plan_widest(plan) <= hk__plan_chunks(plan));
		hk_plan_free(plan);
	}
}
