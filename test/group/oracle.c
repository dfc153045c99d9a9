/* SPDX-License-Identifier: Apache-2.0 */
/* oracle.c - what every rank gives, and what it has to get. */
#include "group/oracle.h"

#include "harness.h"
#include "unit/reduce_oracle.h"

#include <math.h>

#define WHOLE_MAX 2048

/* Whole numbers as small floats, from -WHOLE_MAX on: rounding by search takes long. */
static uint64_t whole[HK_TYPE_COUNT][2 * WHOLE_MAX + 1];

/* All tables are made here, before there are threads. */
__attribute__((constructor)) static void oracle_warm(void)
{
	for (unsigned type = 0; type < HK_TYPE_COUNT; type++) {
		for (int i = -WHOLE_MAX; oracle_is_small((enum hk_type)type) && i <= WHOLE_MAX;
		     i++) {
			float value = (float)i;
			uint32_t bits;

			memcpy(&bits, &value, sizeof(bits));
			whole[type][i + WHOLE_MAX] = oracle_narrow((enum hk_type)type, bits);
		}
	}
}

bool want_reduces(enum hk_coll coll)
{
	return coll == HK_COLL_ALLREDUCE || coll == HK_COLL_REDUCE || coll == HK_COLL_REDUCESCATTER;
}

bool want_rooted(enum hk_coll coll)
{
	return coll == HK_COLL_BROADCAST || coll == HK_COLL_REDUCE || coll == HK_COLL_GATHER ||
	       coll == HK_COLL_SCATTER;
}

bool want_has_v(enum hk_coll coll)
{
	return coll == HK_COLL_ALLGATHER || coll == HK_COLL_REDUCESCATTER ||
	       coll == HK_COLL_GATHER || coll == HK_COLL_SCATTER || coll == HK_COLL_ALLTOALL;
}

/* ---- lengths ---- */

static uint64_t hash(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t seed = a * UINT64_C(0x9e3779b97f4a7c15) ^ b * UINT64_C(0xc2b2ae3d27d4eb4f) ^
			c * UINT64_C(0x165667b19e3779f9);

	return test_random(&seed);
}

/* A quarter of all blocks are empty, the others up to twice the count. */
static uint64_t want_uneven(const struct want *want, uint64_t block)
{
	uint64_t random = hash(want->seed, block, 77);

	return random % 4 ? (random >> 8) % (2 * want->count + 1) : 0;
}

uint64_t want_count(const struct want *want, uint32_t r)
{
	return want->v ? want_uneven(want, r) : want->count;
}

uint64_t want_count_between(const struct want *want, uint32_t s, uint32_t d)
{
	return want->v ? want_uneven(want, (uint64_t)s * want->n + d) : want->count;
}

static uint64_t want_all(const struct want *want)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; r < want->n; r++)
		sum += want_count(want, r);
	return sum;
}

uint64_t want_in_len(const struct want *want, uint32_t rank)
{
	bool away = want_rooted(want->coll) && rank != want->root;
	uint64_t sum = 0;

	switch (want->coll) {
	case HK_COLL_BARRIER:
		return 0;
	case HK_COLL_REDUCESCATTER:
		return want_all(want);
	case HK_COLL_SCATTER:
		return away ? 0 : want_all(want);
	case HK_COLL_BROADCAST:
		return away ? 0 : want->count;
	case HK_COLL_ALLTOALL:
		for (uint32_t d = 0; d < want->n; d++)
			sum += want_count_between(want, rank, d);
		return sum;
	default:
		return want_count(want, rank);
	}
}

uint64_t want_out_len(const struct want *want, uint32_t rank)
{
	bool away = want_rooted(want->coll) && rank != want->root;
	uint64_t sum = 0;

	switch (want->coll) {
	case HK_COLL_BARRIER:
		return 0;
	case HK_COLL_ALLGATHER:
		return want_all(want);
	case HK_COLL_GATHER:
		return away ? 0 : want_all(want);
	case HK_COLL_REDUCE:
		return away ? 0 : want->count;
	case HK_COLL_ALLTOALL:
		for (uint32_t s = 0; s < want->n; s++)
			sum += want_count_between(want, s, rank);
		return sum;
	default:
		return want_count(want, rank);
	}
}

uint64_t want_offset(const struct want *want, uint32_t rank)
{
	uint64_t before = 0;

	if (!want_has_v(want->coll))
		return 0;
	for (uint32_t r = 0; r < rank; r++)
		before += want_count(want, r);
	return before;
}

/* ---- values ---- */

static bool type_is_integer(enum hk_type type)
{
	return type <= HK_TYPE_UINT64;
}

static uint64_t bits_of_float(enum hk_type type, float value)
{
	double wide = (double)value;
	uint64_t bits = 0;
	uint32_t low;

	if (type == HK_TYPE_FP64) {
		memcpy(&bits, &wide, sizeof(bits));
		return bits;
	}
	if (oracle_is_small(type) && value == truncf(value) && value != 0 &&
	    fabsf(value) <= WHOLE_MAX)
		return whole[type][(int)value + WHOLE_MAX];
	memcpy(&low, &value, sizeof(low));
	return oracle_narrow(type, low);
}

/* Whole numbers up to here are exact, and so are sums that stay below. */
static int64_t type_exact(enum hk_type type)
{
	switch (type) {
	case HK_TYPE_FP16:
		return 1 << 11;
	case HK_TYPE_BF16:
		return 1 << 8;
	case HK_TYPE_FP8E4M3:
		return 1 << 4;
	case HK_TYPE_FP8E5M2:
		return 1 << 3;
	default:
		return 1 << 24;
	}
}

/* Ranks share what is exact; where it is less than there are ranks, some give 0. */
static float summand(const struct want *want, uint32_t rank, uint64_t i, uint64_t random)
{
	int64_t exact = type_exact(want->type);

	if (want->op == HK_REDOP_PREMULSUM)
		exact /= 2; /* factors are up to 2 */
	int64_t most = exact / want->n ? exact / want->n : 1;
	if ((rank + i) % want->n >= (uint64_t)exact)
		return 0;
	return (float)((int64_t)(random % (uint64_t)(2 * most + 1)) - most);
}

/* Of at most 8 ranks another one than 1: every product is exact. */
static float multiplicand(const struct want *want, uint32_t rank, uint64_t i, uint64_t random)
{
	static const float values[] = { 2, -2, 0.5f, -0.5f, -1, 1 };

	return (rank + i) % want->n < 8 ? values[random % 6] : 1;
}

static float comparand(uint64_t random)
{
	static const float special[] = { 0.0f, -0.0f, __builtin_nanf(""), 2.0f };

	if (random % 16 == 0)
		return special[random / 16 % 4];
	return (float)((int64_t)(random / 16 % 15) - 7);
}

static uint64_t value_of(const struct want *want, uint32_t rank, uint64_t i)
{
	uint64_t random = hash(want->seed, rank + 1, i);
	unsigned unused = 64 - 8 * (unsigned)hk_type_size(want->type);

	/* What only travels may be any bits. */
	if (type_is_integer(want->type) || !want_reduces(want->coll))
		return random << unused >> unused;
	switch (want->op) {
	case HK_REDOP_PROD:
		return bits_of_float(want->type, multiplicand(want, rank, i, random));
	case HK_REDOP_MIN:
	case HK_REDOP_MAX:
		return bits_of_float(want->type, comparand(random));
	default:
		return bits_of_float(want->type, summand(want, rank, i, random));
	}
}

uint64_t want_factor(const struct want *want, uint32_t rank)
{
	static const float values[] = { 1, 2, -1, -2 };
	uint64_t random = hash(want->seed, rank + 1, UINT64_MAX);
	unsigned unused = 64 - 8 * (unsigned)hk_type_size(want->type);

	if (type_is_integer(want->type))
		return random << unused >> unused;
	return bits_of_float(oracle_acc(want->type), values[random % 4]);
}

void want_input(const struct want *want, uint32_t rank, void *in_out)
{
	size_t size = hk_type_size(want->type);
	uint64_t len = want_in_len(want, rank);

	for (uint64_t i = 0; i < len; i++)
		oracle_put(in_out, size, i, value_of(want, rank, i));
}

/* ---- results ---- */

static uint64_t term(const struct want *want, uint32_t rank, uint64_t i)
{
	enum hk_type acc = oracle_acc(want->type);
	uint64_t value = value_of(want, rank, i);

	if (want->op != HK_REDOP_PREMULSUM)
		return value;
	value = oracle_op(acc, HK_REDOP_PROD, oracle_widen(want->type, value),
			  want_factor(want, rank));
	return oracle_narrow(want->type, value);
}

/* Element i over all ranks; exact, so the order of ranks is as good as any. */
static uint64_t reduced(const struct want *want, uint64_t i)
{
	enum hk_redop op = want->op == HK_REDOP_PREMULSUM ? HK_REDOP_SUM : want->op;
	enum hk_type acc = oracle_acc(want->type);
	uint64_t sum = oracle_widen(want->type, term(want, 0, i));

	for (uint32_t r = 1; r < want->n; r++)
		sum = oracle_op(acc, op, sum, oracle_widen(want->type, term(want, r, i)));
	if (op == HK_REDOP_AVG)
		sum = oracle_quot(acc, sum, want->n);
	return oracle_narrow(want->type, sum);
}

/* len elements of a rank's input, from `from` on, to place `at` of out. */
static void copied(const struct want *want, uint32_t rank, uint64_t from, uint64_t len,
		   void *out_out, uint64_t at)
{
	for (uint64_t i = 0; i < len; i++)
		oracle_put(out_out, hk_type_size(want->type), at + i,
			   value_of(want, rank, from + i));
}

static void want_alltoall(const struct want *want, uint32_t rank, void *out_out)
{
	uint64_t at = 0;

	for (uint32_t s = 0; s < want->n; s++) {
		uint64_t from = 0, len = want_count_between(want, s, rank);

		for (uint32_t d = 0; d < rank; d++)
			from += want_count_between(want, s, d);
		copied(want, s, from, len, out_out, at);
		at += len;
	}
}

void want_output(const struct want *want, uint32_t rank, void *out_out)
{
	uint64_t len = want_out_len(want, rank), at = 0;
	uint64_t first = want->coll == HK_COLL_REDUCESCATTER ? want_offset(want, rank) : 0;

	switch (want->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_REDUCE:
	case HK_COLL_REDUCESCATTER:
		for (uint64_t i = 0; i < len; i++)
			oracle_put(out_out, hk_type_size(want->type), i, reduced(want, first + i));
		break;
	case HK_COLL_BROADCAST:
		copied(want, want->root, 0, len, out_out, 0);
		break;
	case HK_COLL_SCATTER:
		copied(want, want->root, want_offset(want, rank), len, out_out, 0);
		break;
	case HK_COLL_ALLGATHER:
	case HK_COLL_GATHER:
		for (uint32_t r = 0; len && r < want->n; at += want_count(want, r++))
			copied(want, r, 0, want_count(want, r), out_out, at);
		break;
	case HK_COLL_ALLTOALL:
		want_alltoall(want, rank, out_out);
		break;
	default:
		break;
	}
}

void want_describe(const struct want *want, char *text_out, size_t size)
{
	snprintf(text_out, size, "%s%s(%" PRIu64 " x %s, %s) n=%u root=%u seed=%" PRIu64,
		 hk_coll_name(want->coll), want->v ? "v" : "", want->count,
		 hk_type_name(want->type), hk_redop_name(want->op), want->n, want->root,
		 want->seed);
}
