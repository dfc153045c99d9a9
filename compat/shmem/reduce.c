/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - reductions and scans. Those of types that Hocket has are its allreduce; long
 * double, complex numbers, scans and active sets are folded here, by every PE alike.
 */
#include "sma.h"

#include <limits.h>

/* ---- folds ---- */

#define FOLD(NAME, TYPE, OP, EXPR) \
	static void NAME##_##OP(void *acc, const void *in, size_t count) \
	{ \
		TYPE *to = acc; \
		const TYPE *from = in; \
\
		for (size_t i = 0; i < count; i++) { \
			const TYPE a = to[i], b = from[i]; \
\
			to[i] = (TYPE)(EXPR); \
		} \
	}
#define FOLD_BIT_T(F, NAME, TYPE) \
	FOLD(NAME, TYPE, and, a &b) FOLD(NAME, TYPE, or, a | b) FOLD(NAME, TYPE, xor, a ^ b)
#define FOLD_MAX_T(F, NAME, TYPE) \
	FOLD(NAME, TYPE, max, a > b ? a : b) FOLD(NAME, TYPE, min, a < b ? a : b)
#define FOLD_SUM_T(F, NAME, TYPE) FOLD(NAME, TYPE, sum, a + b) FOLD(NAME, TYPE, prod, a *b)
SHMEMX_RMA_TYPES(FOLD_MAX_T, )
SHMEMX_REDUCE_SUM_TYPES(FOLD_SUM_T, )
SHMEMX_TO_ALL_BIT_TYPES(FOLD_BIT_T, )

/* ---- types that Hocket has ---- */

static enum hk_type integer_of(size_t size, bool is_signed)
{
	switch (size) {
	case 1:
		return is_signed ? HK_TYPE_INT8 : HK_TYPE_UINT8;
	case 2:
		return is_signed ? HK_TYPE_INT16 : HK_TYPE_UINT16;
	case 4:
		return is_signed ? HK_TYPE_INT32 : HK_TYPE_UINT32;
	default:
		return is_signed ? HK_TYPE_INT64 : HK_TYPE_UINT64;
	}
}

/* HK_TYPE_COUNT: Hocket has no such type. */
#define TYPE_OF(TYPE) \
	_Generic((TYPE)0, float \
		 : HK_TYPE_FP32, double \
		 : HK_TYPE_FP64, long double \
		 : HK_TYPE_COUNT, shmemx_complexd \
		 : HK_TYPE_COUNT, shmemx_complexf \
		 : HK_TYPE_COUNT, default \
		 : integer_of(sizeof(TYPE), IS_SIGNED(TYPE)))
/* Not of complex numbers, which do not compare. */
#define IS_SIGNED(TYPE) \
	_Generic((TYPE)0, shmemx_complexd \
		 : true, shmemx_complexf \
		 : true, char \
		 : CHAR_MIN < 0, signed char \
		 : true, short \
		 : true, int \
		 : true, long \
		 : true, long long \
		 : true, default \
		 : false)

struct reduce {
	void *dest;
	const void *source;
	size_t count;
	size_t size;
	enum hk_type type;
	enum hk_redop op;
	hk__sma_fold *fold; /* where the type is none of Hocket's */
};

static void check(struct shmemx_team *team, const struct reduce *reduce, const char *call)
{
	const struct hk__sma_space *dest = hk__sma_space_of(reduce->dest, 1);
	const struct hk__sma_space *source = hk__sma_space_of(reduce->source, 1);
	uint64_t words[3] = { 0, 0, reduce->count };
	size_t bytes = reduce->count * reduce->size;

	if (!hk__sma.check || bytes == 0)
		return;
	if (!dest || !source)
		hk__sma_die(call, "dest (%p) and source (%p) must be symmetric", reduce->dest,
			    reduce->source);
	words[0] = (uintptr_t)reduce->dest - dest->start;
	words[1] = (uintptr_t)reduce->source - source->start;
	hk__sma_check_equal(team, call, words, 3);
	if (reduce->dest != reduce->source)
		hk__sma_check_overlap(reduce->dest, reduce->source, bytes, call);
	if (dest == &hk__sma.heap)
		hk__sma_check_block(reduce->dest, bytes, call);
	if (source == &hk__sma.heap)
		hk__sma_check_block(reduce->source, bytes, call);
}

static int team_reduce(shmem_team_t handle, const struct reduce *reduce, const char *call)
{
	struct shmemx_team *team = hk__sma_team(handle);
	struct hk__sma_set set;
	enum hk_status status;

	hk__sma_must_run(call);
	if (!team)
		return 1;
	check(team, reduce, call);
	if (reduce->count == 0)
		return 0;
	if (reduce->type != HK_TYPE_COUNT) {
		status = hk_allreduce(team->group, reduce->source, reduce->dest, reduce->count,
				      reduce->type, reduce->op, NULL);
		if (status != HK_OK)
			hk__sma_fail(call, team->group, status);
		return 0;
	}
	set = hk__sma_set_of_team(team);
	hk__sma_set_fold(&set, reduce->dest, reduce->source, reduce->count, reduce->size, set.n,
			 reduce->fold, call);
	return 0;
}

static int scan(shmem_team_t handle, const struct reduce *reduce, bool with_own, const char *call)
{
	struct shmemx_team *team = hk__sma_team(handle);
	struct hk__sma_set set;

	hk__sma_must_run(call);
	if (!team)
		return 1;
	check(team, reduce, call);
	set = hk__sma_set_of_team(team);
	hk__sma_set_fold(&set, reduce->dest, reduce->source, reduce->count, reduce->size,
			 set.me + with_own, reduce->fold, call);
	return 0;
}

/* ---- the functions ---- */

#define REDUCE(NAME, TYPE, OP, HK_OP, FOLD_FN) \
	FN(int, shmem_##NAME##_##OP##_reduce, \
	   (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nreduce)) \
	{ \
		return team_reduce(team, \
				   &(struct reduce){ dest, source, nreduce, sizeof(TYPE), \
						     TYPE_OF(TYPE), HK_REDOP_##HK_OP, FOLD_FN }, \
				   "shmem_" #NAME "_" #OP "_reduce"); \
	}
#define REDUCE_BIT_T(F, NAME, TYPE) \
	REDUCE(NAME, TYPE, and, BAND, NULL) \
	REDUCE(NAME, TYPE, or, BOR, NULL) REDUCE(NAME, TYPE, xor, BXOR, NULL)
#define REDUCE_MAX_T(F, NAME, TYPE) \
	REDUCE(NAME, TYPE, max, MAX, NAME##_max) REDUCE(NAME, TYPE, min, MIN, NAME##_min)
#define REDUCE_SUM_T(F, NAME, TYPE) \
	REDUCE(NAME, TYPE, sum, SUM, NAME##_sum) REDUCE(NAME, TYPE, prod, PROD, NAME##_prod)
SHMEMX_REDUCE_BIT_TYPES(REDUCE_BIT_T, )
SHMEMX_RMA_TYPES(REDUCE_MAX_T, )
SHMEMX_REDUCE_SUM_TYPES(REDUCE_SUM_T, )

#define SCAN(NAME, TYPE, VERB, WITH_OWN) \
	FN(int, shmem_##NAME##_sum_##VERB, \
	   (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems)) \
	{ \
		return scan(team, \
			    &(struct reduce){ .dest = dest, \
					      .source = source, \
					      .count = nelems, \
					      .size = sizeof(TYPE), \
					      .fold = NAME##_sum }, \
			    WITH_OWN, "shmem_" #NAME "_sum_" #VERB); \
	}
#define SCAN_T(F, NAME, TYPE) SCAN(NAME, TYPE, inscan, true) SCAN(NAME, TYPE, exscan, false)
SHMEMX_REDUCE_SUM_TYPES(SCAN_T, )

/* ---- deprecated: over active sets ---- */

#define TO_ALL(NAME, TYPE, OP) \
	FN(void, shmem_##NAME##_##OP##_to_all, \
	   (TYPE * dest, const TYPE *source, int nreduce, int PE_start, int logPE_stride, \
	    int PE_size, TYPE *pWrk, long *pSync)) \
	{ \
		static const char call[] = "shmem_" #NAME "_" #OP "_to_all"; \
		struct hk__sma_set set = \
			hk__sma_set_active(PE_start, logPE_stride, PE_size, pSync, call); \
\
		(void)pWrk; \
		if (nreduce > 0) \
			hk__sma_set_fold(&set, dest, source, (size_t)nreduce, sizeof(TYPE), set.n, \
					 NAME##_##OP, call); \
	}
#define TO_ALL_BIT_T(F, NAME, TYPE) \
	TO_ALL(NAME, TYPE, and) TO_ALL(NAME, TYPE, or) TO_ALL(NAME, TYPE, xor)
#define TO_ALL_MAX_T(F, NAME, TYPE) TO_ALL(NAME, TYPE, max) TO_ALL(NAME, TYPE, min)
#define TO_ALL_SUM_T(F, NAME, TYPE) TO_ALL(NAME, TYPE, sum) TO_ALL(NAME, TYPE, prod)
SHMEMX_TO_ALL_BIT_TYPES(TO_ALL_BIT_T, )
SHMEMX_TO_ALL_TYPES(TO_ALL_MAX_T, )
SHMEMX_TO_ALL_SUM_TYPES(TO_ALL_SUM_T, )
