/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_test.c - src/exec/reduce: every kernel of every instruction set this
 * machine has, against the oracle, bit for bit. What is equal to the oracle on
 * all of them is equal among them.
 */
#include "exec/reduce/reduce.h"
#include "harness.h"
#include "unit/reduce_each.h"
#include "unit/reduce_oracle.h"
#include "unit/reduce_rows.h"

#include <hocket/hocket.h>

/* ---- what is expected ---- */

enum form {
	FOLD,
	WIDEN_FOLD,
	WIDE_FOLD,
	NARROW_FOLD,
	NARROW,
	FORMS
};
static const char *const form_names[FORMS] = { "fold", "widen_fold", "wide_fold", "narrow_fold",
					       "narrow" };

static bool form_is_wide(enum form form)
{
	return form == WIDEN_FOLD || form == WIDE_FOLD;
}

static uint64_t form_expect(enum form form, const struct rows *rows, enum hk_redop op, size_t i)
{
	enum hk_type type = rows->type, wide = oracle_acc(type);
	uint64_t acc = oracle_get(rows->acc, rows->acc_size, i);
	uint64_t a = oracle_get(rows->a, rows->size, i);
	uint64_t b = oracle_get(rows->b, rows->size, i);

	switch (form) {
	case FOLD:
		return oracle_narrow(type, oracle_fold(type, op, a, b));
	case WIDEN_FOLD:
		return oracle_fold(type, op, a, b);
	case WIDE_FOLD:
		return oracle_op(wide, op, acc, oracle_widen(type, b));
	case NARROW_FOLD:
		return oracle_narrow(type, oracle_op(wide, op, acc, oracle_widen(type, b)));
	default:
		return oracle_narrow(type, acc);
	}
}

static void form_run(enum form form, const struct hk__reduce *reduce, const struct rows *rows,
		     void *dst)
{
	switch (form) {
	case FOLD:
		reduce->fold(dst, rows->a, rows->b, rows->count);
		break;
	case WIDEN_FOLD:
		reduce->widen_fold(dst, rows->a, rows->b, rows->count);
		break;
	case WIDE_FOLD:
		reduce->wide_fold(dst, rows->acc, rows->b, rows->count);
		break;
	case NARROW_FOLD:
		reduce->narrow_fold(dst, rows->acc, rows->b, rows->count);
		break;
	default:
		reduce->narrow(dst, rows->acc, rows->count);
	}
}

/* dst is what an instruction set made of rows; says which element is not. */
static void check_equal(const struct rows *rows, const char *what, enum hk_redop op,
			enum hk__isa isa, size_t size, const void *dst, const void *expected)
{
	for (size_t i = 0; memcmp(dst, expected, rows->count * size) != 0; i++) {
		uint64_t is = oracle_get(dst, size, i), should = oracle_get(expected, size, i);

		if (is != should)
			test_fail(__FILE__, __LINE__,
				  "%s %s %s %s: [%zu] a %#" PRIx64 " b %#" PRIx64 " acc %#" PRIx64
				  " gives %#" PRIx64 ", not %#" PRIx64,
				  hk_type_name(rows->type), hk_redop_name(op), hk__isa_name(isa),
				  what, i, oracle_get(rows->a, rows->size, i),
				  oracle_get(rows->b, rows->size, i),
				  oracle_get(rows->acc, rows->acc_size, i), is, should);
	}
}

static void check_pairs(const struct rows *rows, enum hk_redop op, enum form form)
{
	size_t size = form_is_wide(form) ? rows->acc_size : rows->size;
	void *expected = calloc(rows->count, size), *dst = calloc(rows->count, size);

	CHECK(expected && dst);
	for (size_t i = 0; i < rows->count; i++)
		oracle_put(expected, size, i, form_expect(form, rows, op, i));
	for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
		memset(dst, 0xa5, rows->count * size);
		form_run(form, hk__reduce_find_isa(rows->type, op, isa), rows, dst);
		check_equal(rows, form_names[form], op, isa, size, dst, expected);
	}
	free(expected);
	free(dst);
}

static void check_type(enum hk_type type)
{
	struct rows rows;
	uint64_t seed = test_seed(20);

	rows_make(&rows, type, &seed);
	for (enum hk_redop op = 0; each_op(type, &op); op++) {
		if (op == HK_REDOP_AVG || op == HK_REDOP_PREMULSUM)
			continue; /* folded by sum's very functions, see reduce_find_test.c */
		for (enum form form = FOLD; form < NARROW; form++)
			check_pairs(&rows, op, form);
	}
	check_pairs(&rows, HK_REDOP_SUM, NARROW);
	rows_fini(&rows);
}

/* ---- values ---- */

TEST(int8)
{
	check_type(HK_TYPE_INT8);
	check_type(HK_TYPE_UINT8);
}

TEST(int16)
{
	check_type(HK_TYPE_INT16);
	check_type(HK_TYPE_UINT16);
}

TEST(int32)
{
	check_type(HK_TYPE_INT32);
	check_type(HK_TYPE_UINT32);
}

TEST(int64)
{
	check_type(HK_TYPE_INT64);
	check_type(HK_TYPE_UINT64);
}

TEST(fp16)
{
	check_type(HK_TYPE_FP16);
}

TEST(bf16)
{
	check_type(HK_TYPE_BF16);
}

TEST(fp8)
{
	check_type(HK_TYPE_FP8E4M3);
	check_type(HK_TYPE_FP8E5M2);
}

TEST(fp32)
{
	check_type(HK_TYPE_FP32);
}

TEST(fp64)
{
	check_type(HK_TYPE_FP64);
}

/* Every element, or many, by factors of all kinds. */
static void check_scale(const struct rows *rows, uint64_t factor)
{
	void *expected = calloc(rows->count, rows->size), *dst = calloc(rows->count, rows->size);
	enum hk_type wide = oracle_acc(rows->type);
	unsigned char by[8];

	CHECK(expected && dst);
	oracle_put(by, rows->acc_size, 0, factor);
	for (size_t i = 0; i < rows->count; i++) {
		uint64_t a = oracle_widen(rows->type, oracle_get(rows->a, rows->size, i));
		uint64_t product = oracle_op(wide, HK_REDOP_PROD, a, factor);

		oracle_put(expected, rows->size, i, oracle_narrow(rows->type, product));
	}
	for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
		const struct hk__reduce *reduce =
			hk__reduce_find_isa(rows->type, HK_REDOP_PREMULSUM, isa);

		reduce->scale(dst, rows->a, by, rows->count);
		check_equal(rows, "scale", HK_REDOP_PREMULSUM, isa, rows->size, dst, expected);
		memcpy(dst, rows->a, rows->count * rows->size);
		reduce->scale(dst, dst, by, rows->count);
		check_equal(rows, "scale", HK_REDOP_PREMULSUM, isa, rows->size, dst, expected);
	}
	free(expected);
	free(dst);
}

/* Enough of rows_make for what has one operand. */
static void check_each(void (*check)(const struct rows *, uint64_t), const uint64_t *by, size_t n)
{
	for (enum hk_type type = 0; type < HK_TYPE_COUNT; type++) {
		struct rows rows;
		uint64_t seed = test_seed(21);

		rows_make(&rows, type, &seed);
		rows.count = rows.count < 70001 ? rows.count : 70001;
		for (size_t i = 0; i < n; i++)
			check(&rows, by[i]);
		rows_fini(&rows);
	}
}

TEST(scale)
{
	static const uint64_t factors[] = {
		0x3f800000, 0x3f000000, 0x3eaaaaab, 0xbdcccccd, 0, 0x80000000,
		0x7f800000, 0x7fa00000, 0x00000003, 0x60000000, 7, 0x3fe5555555555555,
	};

	check_each(check_scale, factors, sizeof(factors) / sizeof(factors[0]));
}

/* Of elements, and of accumulators. */
static void check_finish(const struct rows *rows, uint64_t n)
{
	enum hk_type wide = oracle_acc(rows->type);
	void *expected = calloc(rows->count, rows->size);
	void *expected_acc = calloc(rows->count, rows->acc_size);
	void *dst = calloc(rows->count, rows->acc_size);

	CHECK(expected && expected_acc && dst);
	for (size_t i = 0; i < rows->count; i++) {
		uint64_t a = oracle_widen(rows->type, oracle_get(rows->a, rows->size, i));
		uint64_t acc = oracle_get(rows->acc, rows->acc_size, i);

		oracle_put(expected, rows->size, i,
			   oracle_narrow(rows->type, oracle_quot(wide, a, (uint32_t)n)));
		oracle_put(expected_acc, rows->acc_size, i, oracle_quot(wide, acc, (uint32_t)n));
	}
	for (enum hk__isa isa = 0; each_isa(&isa); isa++) {
		const struct hk__reduce *reduce =
			hk__reduce_find_isa(rows->type, HK_REDOP_AVG, isa);

		memcpy(dst, rows->a, rows->count * rows->size);
		reduce->finish(dst, (uint32_t)n, rows->count);
		check_equal(rows, "finish", HK_REDOP_AVG, isa, rows->size, dst, expected);
		memcpy(dst, rows->acc, rows->count * rows->acc_size);
		reduce->wide_finish(dst, (uint32_t)n, rows->count);
		check_equal(rows, "wide_finish", HK_REDOP_AVG, isa, rows->acc_size, dst,
			    expected_acc);
	}
	free(expected);
	free(expected_acc);
	free(dst);
}

TEST(finish)
{
	static const uint64_t ranks[] = { 1, 2, 3, 7, 64, 255, 256, 1000, 65537, HK_RANKS_MAX };

	check_each(check_finish, ranks, sizeof(ranks) / sizeof(ranks[0]));
}
