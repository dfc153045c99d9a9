/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_find_test.c - src/exec/reduce: what is found, the floating-point
 * environment, and what wide sums are for.
 */
#include "exec/reduce/reduce.h"
#include "harness.h"
#include "unit/reduce_each.h"
#include "unit/reduce_oracle.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* ---- the table ---- */

TEST(table)
{
	for (enum hk_type type = 0; type < HK_TYPE_COUNT; type++)
		for (enum hk_redop op = 0; op < HK_REDOP_COUNT; op++)
			for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
				const struct hk__reduce *row = hk__reduce_find_isa(type, op, isa);

				CHECK_EQ(row != NULL, hk_redop_valid(type, op));
				if (!row)
					continue;
				CHECK_EQ(row->size, hk_type_size(type));
				CHECK_EQ(row->acc_size, hk_type_size(oracle_acc(type)));
				CHECK(row->fold && row->widen_fold && row->wide_fold);
				CHECK(row->narrow_fold && row->narrow && row->scale);
				CHECK(row->finish && row->wide_finish);
			}
}

static void check_same_folds(const struct hk__reduce *x, const struct hk__reduce *y)
{
	CHECK(x->fold == y->fold);
	CHECK(x->widen_fold == y->widen_fold);
	CHECK(x->wide_fold == y->wide_fold);
	CHECK(x->narrow_fold == y->narrow_fold);
	CHECK(x->narrow == y->narrow);
}

/* avg and premulsum fold as sum does; the value tests rely on it. */
TEST(sums)
{
	for (enum hk_type type = 0; type < HK_TYPE_COUNT; type++)
		for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
			const struct hk__reduce *sum = hk__reduce_find_isa(type, HK_REDOP_SUM, isa);

			check_same_folds(sum, hk__reduce_find_isa(type, HK_REDOP_AVG, isa));
			check_same_folds(sum, hk__reduce_find_isa(type, HK_REDOP_PREMULSUM, isa));
		}
}

TEST(finds_the_best)
{
	enum hk__isa best = HK__ISA_SCALAR;

	for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
		printf("%s\n", hk__isa_name(isa));
		best = isa;
	}
#if defined(__x86_64__)
	CHECK(best >= HK__ISA_SSE2);
#endif
	for (enum hk_type type = 0; type < HK_TYPE_COUNT; type++)
		for (enum hk_redop op = 0; each_op(type, &op); op++)
			CHECK(hk__reduce_find(type, op) == hk__reduce_find_isa(type, op, best));
	CHECK(!hk__reduce_find(HK_TYPE_FP32, HK_REDOP_BAND));
	CHECK(!hk__reduce_find(HK_TYPE_COUNT, HK_REDOP_SUM));
	CHECK(!hk__reduce_find_isa(HK_TYPE_FP32, HK_REDOP_SUM, HK__ISA_COUNT));
	CHECK_STR(hk__isa_name(HK__ISA_COUNT), "?");
}

/* ---- what a caller relies on ---- */

/* 256 + 1 + 1 + 1: in bf16, each 1 is lost to a tie; wide, none is. */
TEST(rounded_once)
{
	const uint16_t large = 0x4380, one = 0x3f80, sum = 0x4382; /* 260: 259 is a tie */

	for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
		const struct hk__reduce *reduce =
			hk__reduce_find_isa(HK_TYPE_BF16, HK_REDOP_SUM, isa);
		uint16_t element = large;
		float acc;

		for (int i = 0; i < 3; i++)
			reduce->fold(&element, &element, &one, 1);
		CHECK_EQ(element, large);
		reduce->widen_fold(&acc, &large, &one, 1);
		reduce->wide_fold(&acc, &acc, &one, 1);
		CHECK(acc == 258.0f);
		reduce->narrow_fold(&element, &acc, &one, 1);
		CHECK_EQ(element, sum);
	}
}

/* A program that flushes subnormals and rounds upward; on x86-64 it also traps. */
#if defined(__x86_64__)
#define ENV_RUDE (0x8000u | 0x4000u | 0x40u)
#define ENV_NICE 0x1f80u

static uint64_t env_swap(uint64_t env)
{
	uint64_t old = _mm_getcsr() & ~0x3fu;

	_mm_setcsr((unsigned)env);
	return old;
}
#elif defined(__aarch64__)
#define ENV_RUDE (1u << 24 | 1u << 22)
#define ENV_NICE 0u

static uint64_t env_swap(uint64_t env)
{
	uint64_t old;

	__asm__ volatile("mrs %0, fpcr\n\tmsr fpcr, %1" : "=&r"(old) : "r"(env));
	return old;
}
#else
#define ENV_RUDE 0u
#define ENV_NICE 0u

static uint64_t env_swap(uint64_t env)
{
	return env;
}
#endif

TEST(environment)
{
	const uint32_t subnormal = 1;
	const float one = 1.0f, tiny = 0x1p-30f;

	for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
		const struct hk__reduce *reduce =
			hk__reduce_find_isa(HK_TYPE_FP32, HK_REDOP_SUM, isa);
		uint32_t kept;
		float nearest;

		env_swap(ENV_RUDE);
		uint64_t entered = hk__reduce_enter();
		reduce->fold(&kept, &subnormal, &subnormal, 1);
		reduce->fold(&nearest, &one, &tiny, 1);
		hk__reduce_leave(entered);
		CHECK_EQ(env_swap(ENV_NICE), ENV_RUDE);
		CHECK_EQ(kept, 2);
		CHECK(nearest == one);
	}
	hk__reduce_leave(hk__reduce_enter());
	CHECK_EQ(env_swap(ENV_NICE), ENV_NICE);
}
