/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/reduce_rows.h"

#include "harness.h"
#include "unit/reduce_oracle.h"

void rows_init(struct rows *rows, enum hk_type type, size_t count)
{
	*rows = (struct rows){
		.type = type,
		.size = hk_type_size(type),
		.acc_size = hk_type_size(oracle_acc(type)),
		.count = count,
	};
	rows->a = calloc(count, rows->size);
	rows->b = calloc(count, rows->size);
	rows->acc = calloc(count, rows->acc_size);
	CHECK(rows->a && rows->b && rows->acc);
}

void rows_fini(struct rows *rows)
{
	free(rows->a);
	free(rows->b);
	free(rows->acc);
}

static float float_of(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

/*
 * An accumulator that is hard to round: halfway between a number of the type
 * and the next, or beside that, or anything, or the number itself.
 */
static uint64_t acc_from(enum hk_type type, uint64_t bits, uint64_t *seed)
{
	if (!oracle_is_small(type))
		return bits;
	uint64_t next = (bits + 1) & (((uint64_t)1 << 8 * hk_type_size(type)) - 1);
	float here = float_of(oracle_widen(type, bits)), there = float_of(oracle_widen(type, next));
	float middle = 0.5f * here + 0.5f * there;
	uint32_t halfway;
	uint64_t random = test_random(seed);

	memcpy(&halfway, &middle, sizeof(halfway));
	switch (random >> 60) {
	case 0:
		return oracle_widen(type, bits);
	case 1:
		return (uint32_t)random;
	case 2:
	case 3:
	case 4:
		return halfway - 1;
	case 5:
	case 6:
	case 7:
		return halfway + 1;
	default:
		return halfway;
	}
}

void rows_set(struct rows *rows, size_t i, uint64_t a, uint64_t b, uint64_t *seed)
{
	oracle_put(rows->a, rows->size, i, a);
	oracle_put(rows->b, rows->size, i, b);
	a = oracle_get(rows->a, rows->size, i); /* as much of it as there is room for */
	oracle_put(rows->acc, rows->acc_size, i, acc_from(rows->type, a, seed));
}

/* Both zeros, ones, subnormals, the largest, infinities, NaNs of both kinds; ties. */
static size_t specials(enum hk_type type, uint64_t *to)
{
	static const uint64_t fp16[] = { 0,	 1,	 0x3ff,	 0x400,	 0x1400, 0x3bff, 0x3c00,
					 0x3c01, 0x4000, 0x6801, 0x7bff, 0x7c00, 0x7c01, 0x7e01 };
	static const uint64_t bf16[] = { 0,	 1,	 0x7f,	 0x80,	 0x3b80, 0x3f7f, 0x3f80,
					 0x3f81, 0x4000, 0x4381, 0x7f7f, 0x7f80, 0x7f81, 0x7fc1 };
	static const uint64_t fp32[] = {
		0,	    1,		0x400000,   0x7fffff,	0x800000,   0x800001,	0x1fffffff,
		0x33800000, 0x33800001, 0x34000000, 0x3f000000, 0x3f7fffff, 0x3f800000, 0x3f800001,
		0x3fffffff, 0x40000000, 0x4b800000, 0x5f7fffff, 0x7e800000, 0x7f7ffffe, 0x7f7fffff,
		0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00001
	};
	static const uint64_t fp64[] = {
		0,
		1,
		0x8000000000000,
		0xfffffffffffff,
		0x10000000000000,
		0x10000000000001,
		0x3ca0000000000000,
		0x3ca0000000000001,
		0x3fe0000000000000,
		0x3fefffffffffffff,
		0x3ff0000000000000,
		0x3ff0000000000001,
		0x4000000000000000,
		0x4340000000000000,
		0x7fe0000000000000,
		0x7feffffffffffffe,
		0x7fefffffffffffff,
		0x7ff0000000000000,
		0x7ff0000000000001,
		0x7ff8000000000001,
	};
	unsigned bits = 8 * (unsigned)hk_type_size(type);
	const uint64_t *from = bits == 16 ? fp16 : bits == 32 ? fp32 : fp64;
	size_t count = bits == 16 ? sizeof(fp16) : bits == 32 ? sizeof(fp32) : sizeof(fp64), n = 0;

	if (type == HK_TYPE_BF16)
		from = bf16;
	for (size_t i = 0; i < count / sizeof(uint64_t); i++) {
		to[n++] = from[i];
		to[n++] = from[i] | (uint64_t)1 << (bits - 1); /* the same, negative */
	}
	for (unsigned i = 0; i < bits; i++) { /* what integers find special */
		to[n++] = (uint64_t)1 << i;
		to[n++] = ((uint64_t)2 << i) - 1;
	}
	return n;
}

void rows_make(struct rows *rows, enum hk_type type, uint64_t *seed)
{
	enum {
		RANDOM = 40000
	};
	uint64_t special[256];
	size_t n = hk_type_size(type) == 1 ? 256 : specials(type, special);
	size_t m = hk_type_size(type) == 1 ? 256 : hk_type_size(type) == 2 ? 65536 : n;

	CHECK(n <= 256);
	rows_init(rows, type, n * m + RANDOM);
	for (size_t i = 0; i < n * m; i++)
		rows_set(rows, i, hk_type_size(type) <= 2 ? i % m : special[i % m],
			 hk_type_size(type) == 1 ? i / m : special[i / m], seed);
	for (size_t i = n * m; i < rows->count; i++) {
		uint64_t a = test_random(seed), b = test_random(seed);

		if (i % 2) /* exponents that are near, so that something is rounded */
			b = (a ^ (b >> 12)) + ((b & 15) << (8 * rows->size - 12) % 64);
		rows_set(rows, i, a, b, seed);
	}
}
