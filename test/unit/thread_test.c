/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_test.c - what the headers call thread-safe, by several threads at
 * once: one plan is asked, printed and proved by all. For ThreadSanitizer.
 */
#include "harness.h"

#include <hocket/hocket.h>

#include <pthread.h>

#define THREADS 4

static void *share_plan(void *ctx)
{
	const struct hk_plan *plan = ctx;
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_algo_info info = { .size = sizeof(info) };
	struct hk_step step;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	CHECK(file);
	for (uint32_t r = 0; r < 12; r++)
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++)
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++)
				hk_plan_step(plan, r, l, i, &step);
	CHECK_EQ(hk_plan_print_json(plan, NULL, file, NULL), HK_OK);
	CHECK_EQ(hk_plan_print_picture(plan, NULL, file, NULL), HK_OK);
	CHECK_EQ(hk_check(plan, NULL, &report), HK_OK);
	CHECK(report.proved);
	CHECK_EQ(hk_algo_find(HK_COLL_ALLREDUCE, "swing", &info), HK_OK);
	fclose(file);
	free(text);
	return NULL;
}

TEST(one_plan_for_all_threads)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	pthread_t threads[THREADS];
	struct hk_plan *plan;

	opts.algo = "two-level";
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 12, &opts, NULL, &plan), HK_OK);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, share_plan, plan), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	hk_plan_free(plan);
}
