/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/reduce_oracle.h"

#include "harness.h"

#include <math.h>

/* ---- the small floats, by definition ---- */

struct format {
	int exponent_bits;
	int fraction_bits;
	bool infinity; /* all ones in the exponent is infinity or NaN */
	bool saturates;
	uint64_t nan;
};

static const struct format *format_of(enum hk_type type)
{
	static const struct format formats[HK_TYPE_COUNT] = {
		[HK_TYPE_FP16] = { 5, 10, true, false, 0x7e00 },
		[HK_TYPE_BF16] = { 8, 7, true, false, 0x7fc0 },
		[HK_TYPE_FP8E4M3] = { 4, 3, false, true, 0x7f },
		[HK_TYPE_FP8E5M2] = { 5, 2, true, true, 0x7e },
	};

	return formats[type].exponent_bits ? &formats[type] : NULL;
}

bool oracle_is_small(enum hk_type type)
{
	return format_of(type) != NULL;
}

enum hk_type oracle_acc(enum hk_type type)
{
	return oracle_is_small(type) ? HK_TYPE_FP32 : type;
}

static uint64_t float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return isnan(value) ? 0x7fc00000 : bits;
}

static float float_of(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

static uint64_t double_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return isnan(value) ? 0x7ff8000000000000 : bits;
}

static double double_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static double small_value(const struct format *format, uint64_t bits)
{
	int bias = (1 << (format->exponent_bits - 1)) - 1;
	uint64_t ones = (1u << format->exponent_bits) - 1;
	uint64_t unit = 1u << format->fraction_bits;
	uint64_t exponent = bits / unit & ones, fraction = bits % unit;
	bool negative = bits >> (format->exponent_bits + format->fraction_bits);
	double value;

	if (exponent == ones && format->infinity)
		value = fraction ? (double)NAN : (double)INFINITY;
	else if (exponent == ones && fraction == unit - 1)
		value = (double)NAN;
	else if (exponent == 0)
		value = ldexp((double)fraction, 1 - bias - format->fraction_bits);
	else
		value = ldexp((double)(unit + fraction),
			      (int)exponent - bias - format->fraction_bits);
	return negative ? -value : value;
}

/* All values of a format, made when first asked for. */
static const double *small_values(enum hk_type type)
{
	static double values[HK_TYPE_COUNT][1 << 16];
	static bool made[HK_TYPE_COUNT];

	for (uint64_t i = 0; !made[type] && i < 1u << 8 * hk_type_size(type); i++)
		values[type][i] = small_value(format_of(type), i);
	if (!made[type]) /* threads read at once what was made before them */
		made[type] = true;
	return values[type];
}

uint64_t oracle_widen(enum hk_type type, uint64_t bits)
{
	return oracle_is_small(type) ? float_bits((float)small_values(type)[bits]) : bits;
}

/*
 * The numbers of one sign are in the order of their bits. Between neighbours
 * the nearer one wins, and of two equally near the one whose bits are even. One
 * past the largest there would be `next`, were there room; it counts as even.
 */
uint64_t oracle_narrow(enum hk_type type, uint64_t acc)
{
	const struct format *format = format_of(type);

	if (!format)
		return acc;
	const double *values = small_values(type);
	double value = fabs((double)float_of(acc));
	int bits = format->exponent_bits + format->fraction_bits;
	uint64_t sign = signbit(float_of(acc)) ? (uint64_t)1 << bits : 0;
	uint64_t ones = (1u << format->exponent_bits) - 1;
	uint64_t largest =
		format->infinity ? (ones << format->fraction_bits) - 1 : ((uint64_t)1 << bits) - 2;
	double next = 2 * values[largest] - values[largest - 1];
	uint64_t low = 0, high = largest + 1;

	if (isnan(value))
		return format->nan;
	while (high - low > 1) { /* value of low <= value < value of high */
		uint64_t middle = (low + high) / 2;

		if (values[middle] <= value)
			low = middle;
		else
			high = middle;
	}
	double twice = 2 * value, both = values[low] + (low == largest ? next : values[high]);
	bool up = twice > both || (twice == both && low % 2);
	if (low == largest)
		return sign | (up && !format->saturates ? largest + 1 : largest);
	return sign | (up ? high : low);
}

/* ---- operations ---- */

static float float_op(enum hk_redop op, float a, float b)
{
	switch (op) {
	case HK_REDOP_PROD:
		return a * b;
	case HK_REDOP_MIN:
	case HK_REDOP_MAX:
		if (isnan(a) || isnan(b))
			return NAN;
		if (a == b) /* zeros, perhaps of two signs */
			return !signbit(a) == (op == HK_REDOP_MAX) ? a : b;
		return (a < b) == (op == HK_REDOP_MIN) ? a : b;
	default:
		return a + b;
	}
}

static double double_op(enum hk_redop op, double a, double b)
{
	switch (op) {
	case HK_REDOP_PROD:
		return a * b;
	case HK_REDOP_MIN:
	case HK_REDOP_MAX:
		if (isnan(a) || isnan(b))
			return (double)NAN;
		if (a == b)
			return !signbit(a) == (op == HK_REDOP_MAX) ? a : b;
		return (a < b) == (op == HK_REDOP_MIN) ? a : b;
	default:
		return a + b;
	}
}

static bool type_is_signed(enum hk_type type)
{
	return type == HK_TYPE_INT8 || type == HK_TYPE_INT16 || type == HK_TYPE_INT32 ||
	       type == HK_TYPE_INT64;
}

/* As a number of 64 bits, and cut off again. */
static int64_t integer_extend(enum hk_type type, uint64_t bits)
{
	unsigned unused = 64 - 8 * (unsigned)hk_type_size(type);

	return (int64_t)(bits << unused) >> unused;
}

static uint64_t integer_cut(enum hk_type type, uint64_t bits)
{
	unsigned unused = 64 - 8 * (unsigned)hk_type_size(type);

	return bits << unused >> unused;
}

static uint64_t integer_op(enum hk_type type, enum hk_redop op, uint64_t a, uint64_t b)
{
	bool less =
		type_is_signed(type) ? integer_extend(type, a) < integer_extend(type, b) : a < b;

	switch (op) {
	case HK_REDOP_PROD:
		return integer_cut(type, a * b);
	case HK_REDOP_MIN:
		return less ? a : b;
	case HK_REDOP_MAX:
		return less ? b : a;
	case HK_REDOP_BAND:
		return a & b;
	case HK_REDOP_BOR:
		return a | b;
	case HK_REDOP_BXOR:
		return a ^ b;
	default:
		return integer_cut(type, a + b);
	}
}

uint64_t oracle_op(enum hk_type acc, enum hk_redop op, uint64_t a, uint64_t b)
{
	if (acc == HK_TYPE_FP32)
		return float_bits(float_op(op, float_of(a), float_of(b)));
	if (acc == HK_TYPE_FP64)
		return double_bits(double_op(op, double_of(a), double_of(b)));
	return integer_op(acc, op, a, b);
}

uint64_t oracle_fold(enum hk_type type, enum hk_redop op, uint64_t a, uint64_t b)
{
	return oracle_op(oracle_acc(type), op, oracle_widen(type, a), oracle_widen(type, b));
}

uint64_t oracle_quot(enum hk_type acc, uint64_t a, uint32_t n)
{
	if (acc == HK_TYPE_FP32)
		return float_bits(float_of(a) / (float)n);
	if (acc == HK_TYPE_FP64)
		return double_bits(double_of(a) / n);
	if (type_is_signed(acc))
		return integer_cut(acc, (uint64_t)(integer_extend(acc, a) / (int64_t)n));
	return a / n;
}

/* ---- rows ---- */

uint64_t oracle_get(const void *row, size_t size, size_t i)
{
	const unsigned char *at = (const unsigned char *)row + i * size;
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	switch (size) {
	case 1:
		memcpy(&u8, at, 1);
		return u8;
	case 2:
		memcpy(&u16, at, 2);
		return u16;
	case 4:
		memcpy(&u32, at, 4);
		return u32;
	default:
		memcpy(&u64, at, 8);
		return u64;
	}
}

void oracle_put(void *row, size_t size, size_t i, uint64_t bits)
{
	unsigned char *at = (unsigned char *)row + i * size;
	uint8_t u8 = (uint8_t)bits;
	uint16_t u16 = (uint16_t)bits;
	uint32_t u32 = (uint32_t)bits;

	memcpy(at,
	       size == 1   ? (const void *)&u8
	       : size == 2 ? (const void *)&u16
	       : size == 4 ? (const void *)&u32
			   : (const void *)&bits,
	       size);
}
