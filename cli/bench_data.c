/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_data.c - what ranks put in, and what has to come out of it.
 *
 * Integers are any bits: their arithmetic wraps, whatever the order. Floats are
 * numbers whose sums and products are exact in their type, whatever the order,
 * so that one result is right and every other is wrong.
 */
#include "bench.h"

#include <math.h>
#include <string.h>

/* ---- types ---- */

struct float_form {
	int fraction; /* bits; 0: not a float */
	int bias;
};

static struct float_form type_form(enum hk_type type)
{
	switch (type) {
	case HK_TYPE_FP64:
		return (struct float_form){ 52, 1023 };
	case HK_TYPE_FP32:
		return (struct float_form){ 23, 127 };
	case HK_TYPE_FP16:
		return (struct float_form){ 10, 15 };
	case HK_TYPE_BF16:
		return (struct float_form){ 7, 127 };
	case HK_TYPE_FP8E4M3:
		return (struct float_form){ 3, 7 };
	case HK_TYPE_FP8E5M2:
		return (struct float_form){ 2, 15 };
	default:
		return (struct float_form){ 0, 0 };
	}
}

static bool type_is_float(enum hk_type type)
{
	return type_form(type).fraction > 0;
}

static bool type_is_signed(enum hk_type type)
{
	return type == HK_TYPE_INT8 || type == HK_TYPE_INT16 || type == HK_TYPE_INT32 ||
	       type == HK_TYPE_INT64;
}

/* The low bits of a word, as an element. */
static void element_store(unsigned char *to, size_t size, uint64_t bits)
{
	uint8_t one = (uint8_t)bits;
	uint16_t two = (uint16_t)bits;
	uint32_t four = (uint32_t)bits;
	const void *from = size == 1   ? (const void *)&one
			   : size == 2 ? (const void *)&two
			   : size == 4 ? (const void *)&four
				       : (const void *)&bits;

	memcpy(to, from, size);
}

/* Rounded to nearest, ties to even. The values here are far from any overflow. */
static uint64_t float_bits(enum hk_type type, double value)
{
	struct float_form form = type_form(type);
	int exponent;

	if (value == 0)
		return 0;
	(void)frexp(value, &exponent);
	exponent--;
	if (exponent < 1 - form.bias)
		exponent = 1 - form.bias;
	/* With the bit that is not stored, which the exponent is one short for. */
	uint64_t bits = (uint64_t)nearbyint(ldexp(fabs(value), form.fraction - exponent));
	bits += (uint64_t)(exponent + form.bias - 1) << form.fraction;
	if (value < 0)
		bits |= UINT64_C(1) << (8 * hk_type_size(type) - 1);
	return bits;
}

/* ---- values ---- */

static uint64_t hash(uint32_t rank, uint32_t i)
{
	uint64_t x = ((uint64_t)rank << 32 | i) + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Up to here every whole number is exact. */
static uint32_t type_whole(enum hk_type type)
{
	int fraction = type_form(type).fraction;

	return UINT32_C(1) << (fraction < 20 ? fraction + 1 : 20);
}

/*
 * What a rank contributes to element i. Terms of a sum are whole, not negative,
 * and so few or small that all of them together are exact; those of a product
 * are signs, and a two at two of the ranks.
 */
static double float_term(const struct bench_data *data, uint32_t rank, uint32_t i)
{
	uint32_t whole = type_whole(data->type), turn = (rank + i) % data->n;
	uint64_t random = hash(rank, i);

	if (data->op == HK_REDOP_PROD)
		return (random & 1 ? 1.0 : -1.0) * (turn < 2 ? 2.0 : 1.0);
	if (data->op == HK_REDOP_MIN || data->op == HK_REDOP_MAX) {
		int64_t span = whole < 1000 ? whole : 1000;

		return (double)((int64_t)(random % (uint64_t)(2 * span + 1)) - span);
	}
	if (turn >= whole)
		return 0;
	return (double)(random % (whole / (data->n < whole ? data->n : whole) + 1));
}

static uint64_t rank_factor(const struct bench_data *data, uint32_t rank)
{
	/* Floats are divided by it first, which has to be exact. */
	return type_is_float(data->type) ? UINT64_C(2) << (rank & 1) : rank % 5 + 2;
}

void bench_data_input(const struct bench_data *data, uint32_t rank, unsigned char *table_out)
{
	size_t size = hk_type_size(data->type);
	bool premul = data->op == HK_REDOP_PREMULSUM;

	for (uint32_t i = 0; i < BENCH_PERIOD; i++) {
		uint64_t bits = hash(rank, i);

		if (data->reduces && type_is_float(data->type)) {
			double value = float_term(data, rank, i);

			if (premul)
				value /= (double)rank_factor(data, rank);
			bits = float_bits(data->type, value);
		}
		element_store(table_out + i * size, size, bits);
	}
}

void bench_data_factor(const struct bench_data *data, uint32_t rank, unsigned char *factor_out)
{
	uint64_t factor = rank_factor(data, rank);

	if (data->type == HK_TYPE_FP64)
		element_store(factor_out, 8, float_bits(HK_TYPE_FP64, (double)factor));
	else if (type_is_float(data->type))
		element_store(factor_out, 4, float_bits(HK_TYPE_FP32, (double)factor));
	else
		element_store(factor_out, hk_type_size(data->type), factor);
}

/* ---- what has to come out ---- */

/* An element of an integer type as a number: cut to its bits, with its sign. */
static int64_t int_value(enum hk_type type, uint64_t bits)
{
	unsigned spare = 64 - 8 * (unsigned)hk_type_size(type);
	uint64_t high = bits << spare;

	return type_is_signed(type) ? (int64_t)high >> spare : (int64_t)(high >> spare);
}

static bool int_less(enum hk_type type, uint64_t a, uint64_t b)
{
	int64_t x = int_value(type, a), y = int_value(type, b);

	return type_is_signed(type) ? x < y : (uint64_t)x < (uint64_t)y;
}

static uint64_t int_join(const struct bench_data *data, uint64_t a, uint64_t b)
{
	switch (data->op) {
	case HK_REDOP_PROD:
		return a * b;
	case HK_REDOP_MIN:
		return int_less(data->type, b, a) ? b : a;
	case HK_REDOP_MAX:
		return int_less(data->type, a, b) ? b : a;
	case HK_REDOP_BAND:
		return a & b;
	case HK_REDOP_BOR:
		return a | b;
	case HK_REDOP_BXOR:
		return a ^ b;
	default:
		return a + b;
	}
}

static uint64_t int_term(const struct bench_data *data, uint32_t rank, uint32_t i)
{
	uint64_t factor = data->op == HK_REDOP_PREMULSUM ? rank_factor(data, rank) : 1;

	return hash(rank, i) * factor;
}

static uint64_t int_reduced(const struct bench_data *data, uint32_t i)
{
	uint64_t sum = int_term(data, 0, i);

	for (uint32_t r = 1; r < data->n; r++)
		sum = int_join(data, sum, int_term(data, r, i));
	if (data->op != HK_REDOP_AVG)
		return sum;
	int64_t value = int_value(data->type, sum);
	return type_is_signed(data->type) ? (uint64_t)(value / (int64_t)data->n)
					  : (uint64_t)value / data->n;
}

static double float_join(enum hk_redop op, double a, double b)
{
	switch (op) {
	case HK_REDOP_PROD:
		return a * b;
	case HK_REDOP_MIN:
		return b < a ? b : a;
	case HK_REDOP_MAX:
		return a < b ? b : a;
	default:
		return a + b;
	}
}

static uint64_t float_reduced(const struct bench_data *data, uint32_t i)
{
	double sum = float_term(data, 0, i);

	for (uint32_t r = 1; r < data->n; r++)
		sum = float_join(data->op, sum, float_term(data, r, i));
	if (data->op == HK_REDOP_AVG)
		sum = data->type == HK_TYPE_FP64 ? sum / data->n
						 : (double)((float)sum / (float)data->n);
	return float_bits(data->type, sum);
}

void bench_data_reduced(const struct bench_data *data, unsigned char *table_out)
{
	size_t size = hk_type_size(data->type);

	for (uint32_t i = 0; i < BENCH_PERIOD; i++)
		element_store(table_out + i * size, size,
			      type_is_float(data->type) ? float_reduced(data, i)
							: int_reduced(data, i));
}

/* ---- runs of elements ---- */

/* How many go to the end of the table, or of the run; `from` is where they are. */
static uint64_t run_piece(const struct bench_run *run, uint64_t done, const unsigned char **from)
{
	uint64_t at = (run->first + done) % BENCH_PERIOD;
	uint64_t left = run->count - done;

	*from = run->table + at * run->size;
	return left < BENCH_PERIOD - at ? left : BENCH_PERIOD - at;
}

void bench_run_fill(const struct bench_run *run, unsigned char *mem)
{
	const unsigned char *from;

	for (uint64_t done = 0, piece; done < run->count; done += piece) {
		piece = run_piece(run, done, &from);
		memcpy(mem + done * run->size, from, piece * run->size);
	}
}

static uint64_t piece_wrong(const unsigned char *found, const unsigned char *wanted, size_t size,
			    uint64_t count)
{
	uint64_t wrong = 0;

	if (memcmp(found, wanted, count * size) == 0)
		return 0;
	for (uint64_t i = 0; i < count; i++)
		wrong += memcmp(found + i * size, wanted + i * size, size) != 0;
	return wrong;
}

uint64_t bench_run_wrong(const struct bench_run *run, const unsigned char *mem)
{
	const unsigned char *from;
	uint64_t wrong = 0;

	for (uint64_t done = 0, piece; done < run->count; done += piece) {
		piece = run_piece(run, done, &from);
		wrong += piece_wrong(mem + done * run->size, from, run->size, piece);
	}
	return wrong;
}
