/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_test.c - printing when something is in the way: a stream that fails, no
 * memory, a plan too large, a rank that is none. What the text looks like is
 * compared in golden_test.c.
 */
#include "harness.h"

#include <hocket/hocket.h>

static struct hk_plan *print_create(enum hk_coll coll, const char *algo, uint32_t n)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_why why = { "" };
	struct hk_plan *plan;

	opts.algo = algo;
	if (hk_plan_create(coll, n, &opts, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return plan;
}

/* Counts what is held, and fails when it is told to. */
struct counted {
	struct hk_alloc alloc;
	size_t calls;
	size_t fail_at; /* this call fails, and all after it; 0: none */
	size_t bytes;
};

static void *counted_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct counted *counted = ctx;

	CHECK((ptr == NULL) == (size_old == 0));
	if (size_new && ++counted->calls >= counted->fail_at && counted->fail_at)
		return NULL;
	CHECK(counted->bytes >= size_old);
	counted->bytes += size_new - size_old;
	if (size_new)
		return realloc(ptr, size_new);
	free(ptr);
	return NULL;
}

/* The picture and the graph hold something; the others nothing at all. */
TEST(print_without_memory)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	FILE *file = fopen("/dev/null", "w");
	struct hk_why why = { "" };
	struct counted counted;
	struct hk_plan *plan;

	CHECK(file);
	counted = (struct counted){ .alloc = { counted_resize, &counted } };
	opts.algo = "double-tree";
	opts.alloc = &counted.alloc;
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 7, &opts, &why, &plan), HK_OK);
	size_t held = counted.bytes, calls = counted.calls;
	CHECK_EQ(hk_plan_print_table(plan, NULL, file, NULL), HK_OK);
	CHECK_EQ(hk_plan_print_json(plan, NULL, file, NULL), HK_OK);
	CHECK_EQ(counted.calls, calls);
	for (int picture = 0; picture < 2; picture++) {
		enum hk_status status = HK_ENOMEM;

		for (size_t fail_at = 1; status != HK_OK; fail_at++) {
			counted.calls = 0;
			counted.fail_at = fail_at;
			status = picture ? hk_plan_print_picture(plan, NULL, file, &why)
					 : hk_plan_print_dot(plan, NULL, file, NULL);
			CHECK(status == HK_OK || status == HK_ENOMEM);
			CHECK_EQ(counted.bytes, held);
		}
	}
	hk_plan_free(plan);
	CHECK_EQ(counted.bytes, 0);
	fclose(file);
}

/* A full disk is noticed, even where everything fitted into the buffer. */
TEST(full_stream)
{
	struct hk_plan *small = print_create(HK_COLL_ALLREDUCE, "ring", 2);
	struct hk_plan *large = print_create(HK_COLL_ALLREDUCE, "ring", 16);
	FILE *file = fopen("/dev/full", "w");

	if (!file)
		SKIP("no /dev/full");
	for (int i = 0; i < 2; i++) {
		const struct hk_plan *plan = i ? large : small;

		CHECK_EQ(hk_plan_print_json(plan, NULL, file, NULL), HK_EIO);
		clearerr(file);
		CHECK_EQ(hk_plan_print_table(plan, NULL, file, NULL), HK_EIO);
		clearerr(file);
		CHECK_EQ(hk_plan_print_dot(plan, NULL, file, NULL), HK_EIO);
		clearerr(file);
		CHECK_EQ(hk_plan_print_picture(plan, NULL, file, NULL), HK_EIO);
		clearerr(file);
	}
	fclose(file);
	hk_plan_free(small);
	hk_plan_free(large);
}

TEST(print_options)
{
	struct hk_plan *plan = print_create(HK_COLL_ALLREDUCE, "ring", 3);
	struct hk_print_opts opts = HK_PRINT_OPTS_INIT;
	FILE *file = fopen("/dev/null", "w");

	CHECK(file);
	opts.one_rank = true;
	opts.rank = 3;
	CHECK_EQ(hk_plan_print_json(plan, &opts, file, NULL), HK_EINVAL);
	CHECK_EQ(hk_plan_print_table(plan, &opts, file, NULL), HK_EINVAL);
	CHECK_EQ(hk_plan_print_dot(plan, &opts, file, NULL), HK_EINVAL);
	opts.one_rank = true;
	opts.rank = 2;
	CHECK_EQ(hk_plan_print_json(plan, &opts, file, NULL), HK_OK);
	opts.size = 0;
	CHECK_EQ(hk_plan_print_json(plan, &opts, file, NULL), HK_EINVAL);
	fclose(file);
	hk_plan_free(plan);
}

TEST(large_plans)
{
	struct hk_plan *plan = print_create(HK_COLL_ALLREDUCE, "ring", 131072);
	struct hk_print_opts opts = HK_PRINT_OPTS_INIT;
	FILE *file = fopen("/dev/null", "w");
	struct hk_why why = { "" };

	CHECK(file);
	opts.one_rank = true;
	opts.rank = 77;
	CHECK_EQ(hk_plan_print_json(plan, &opts, file, NULL), HK_OK);
	CHECK_EQ(hk_plan_print_table(plan, &opts, file, NULL), HK_OK);
	CHECK_EQ(hk_plan_print_dot(plan, &opts, file, NULL), HK_OK);
	CHECK_EQ(hk_plan_print_dot(plan, NULL, file, NULL), HK_ELIMIT);
	CHECK_EQ(hk_plan_print_picture(plan, NULL, file, &why), HK_ELIMIT);
	CHECK_HAS(why.text, "131072 ranks: a picture shows at most 16");
	fclose(file);
	hk_plan_free(plan);
}
