/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amo.c - atomics, and signals. To a PE that is near an atomic is one instruction of the
 * width of its type; hk_amo() uses the same, so both ways are atomic to each other. Floats
 * travel as the integers of their bits: they are set, swapped and fetched, never added.
 */
#include "sma.h"

uint64_t hk__sma_amo_far(const struct hk__sma_at *at, enum hk_amo op, uint32_t width,
			 uint64_t value, uint64_t compare, bool want, const char *call)
{
	const struct hk_amo_args args = {
		.op = op,
		.width = width,
		.value = value,
		.compare = compare,
	};
	uint64_t old = 0;

	hk__sma_must(call, hk_amo(at->space->win, at->pe, at->offset, &args, want ? &old : NULL,
				  at->ctx));
	return old;
}

/* The bits of a value of 4 or 8 bytes, and back. */
#define BITS_OF(TYPE, value) \
	({ \
		TYPE value_ = (value); \
		uint32_t low_ = 0; \
		uint64_t bits_ = 0; \
\
		if (sizeof(TYPE) == 4) { \
			memcpy(&low_, &value_, 4); \
			bits_ = low_; \
		} else { \
			memcpy(&bits_, &value_, sizeof(TYPE)); \
		} \
		bits_; \
	})
#define FROM_BITS(TYPE, bits) \
	({ \
		uint64_t word_ = (bits); \
		uint32_t half_ = (uint32_t)word_; \
		TYPE out_; \
\
		if (sizeof(TYPE) == 4) \
			memcpy(&out_, &half_, 4); \
		else \
			memcpy(&out_, &word_, sizeof(TYPE)); \
		out_; \
	})
#define AMO(TYPE, OP, VALUE, COMPARE, OLD) \
	hk__sma_amo(ctx, dest, pe, HK_AMO_##OP, sizeof(TYPE), BITS_OF(TYPE, VALUE), \
		    BITS_OF(TYPE, COMPARE), OLD, call)

/* Plain and with a context: the names, then the parameters that follow. */
#define AMO_OLD(TYPE, NAME, OP, FN_OP, ONE, ...) \
	FN(TYPE, shmem_##NAME##_##FN_OP, (TYPE * dest __VA_ARGS__, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_" #FN_OP; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		return FROM_BITS(TYPE, AMO(TYPE, OP, ONE, 0, true)); \
	} \
	FN(TYPE, shmem_ctx_##NAME##_##FN_OP, (shmem_ctx_t ctx, TYPE * dest __VA_ARGS__, int pe)) \
	{ \
		static const char call[] = "shmem_ctx_" #NAME "_" #FN_OP; \
\
		return FROM_BITS(TYPE, AMO(TYPE, OP, ONE, 0, true)); \
	}
#define AMO_ONLY(TYPE, NAME, OP, FN_OP, ONE, ...) \
	FN(void, shmem_##NAME##_##FN_OP, (TYPE * dest __VA_ARGS__, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_" #FN_OP; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		(void)AMO(TYPE, OP, ONE, 0, false); \
	} \
	FN(void, shmem_ctx_##NAME##_##FN_OP, (shmem_ctx_t ctx, TYPE * dest __VA_ARGS__, int pe)) \
	{ \
		static const char call[] = "shmem_ctx_" #NAME "_" #FN_OP; \
\
		(void)AMO(TYPE, OP, ONE, 0, false); \
	}
/*
 * Those that only begin. A result of 4 bytes may not be written as the 8 that hk_amo_nbi()
 * writes, so they finish at once.
 */
#define AMO_NBI(TYPE, NAME, OP, FN_OP, ONE, ...) \
	FN(void, shmem_##NAME##_##FN_OP##_nbi, (TYPE * fetch, TYPE * dest __VA_ARGS__, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_" #FN_OP "_nbi"; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		*fetch = FROM_BITS(TYPE, AMO(TYPE, OP, ONE, 0, true)); \
	} \
	FN(void, shmem_ctx_##NAME##_##FN_OP##_nbi, \
	   (shmem_ctx_t ctx, TYPE * fetch, TYPE * dest __VA_ARGS__, int pe)) \
	{ \
		static const char call[] = "shmem_ctx_" #NAME "_" #FN_OP "_nbi"; \
\
		*fetch = FROM_BITS(TYPE, AMO(TYPE, OP, ONE, 0, true)); \
	}

#define PLAIN_T(F, NAME, TYPE) \
	FN(TYPE, shmem_##NAME##_atomic_compare_swap, (TYPE * dest, TYPE cond, TYPE value, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_atomic_compare_swap"; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		return FROM_BITS(TYPE, AMO(TYPE, CAS, value, cond, true)); \
	} \
	FN(TYPE, shmem_ctx_##NAME##_atomic_compare_swap, \
	   (shmem_ctx_t ctx, TYPE * dest, TYPE cond, TYPE value, int pe)) \
	{ \
		static const char call[] = "shmem_ctx_" #NAME "_atomic_compare_swap"; \
\
		return FROM_BITS(TYPE, AMO(TYPE, CAS, value, cond, true)); \
	} \
	FN(void, shmem_##NAME##_atomic_compare_swap_nbi, \
	   (TYPE * fetch, TYPE * dest, TYPE cond, TYPE value, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_atomic_compare_swap_nbi"; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		*fetch = FROM_BITS(TYPE, AMO(TYPE, CAS, value, cond, true)); \
	} \
	FN(void, shmem_ctx_##NAME##_atomic_compare_swap_nbi, \
	   (shmem_ctx_t ctx, TYPE * fetch, TYPE * dest, TYPE cond, TYPE value, int pe)) \
	{ \
		static const char call[] = "shmem_ctx_" #NAME "_atomic_compare_swap_nbi"; \
\
		*fetch = FROM_BITS(TYPE, AMO(TYPE, CAS, value, cond, true)); \
	} \
	AMO_OLD(TYPE, NAME, ADD, atomic_fetch_inc, 1) \
	AMO_NBI(TYPE, NAME, ADD, atomic_fetch_inc, 1) \
	AMO_ONLY(TYPE, NAME, ADD, atomic_inc, 1) \
	AMO_OLD(TYPE, NAME, ADD, atomic_fetch_add, value, , TYPE value) \
	AMO_NBI(TYPE, NAME, ADD, atomic_fetch_add, value, , TYPE value) \
	AMO_ONLY(TYPE, NAME, ADD, atomic_add, value, , TYPE value)
#define EXT_T(F, NAME, TYPE) \
	FN(TYPE, shmem_##NAME##_atomic_fetch, (const TYPE *dest, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_atomic_fetch"; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		return FROM_BITS(TYPE, AMO(TYPE, FETCH, 0, 0, true)); \
	} \
	FN(TYPE, shmem_ctx_##NAME##_atomic_fetch, (shmem_ctx_t ctx, const TYPE *dest, int pe)) \
	{ \
		static const char call[] = "shmem_ctx_" #NAME "_atomic_fetch"; \
\
		return FROM_BITS(TYPE, AMO(TYPE, FETCH, 0, 0, true)); \
	} \
	FN(void, shmem_##NAME##_atomic_fetch_nbi, (TYPE * fetch, const TYPE *dest, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_atomic_fetch_nbi"; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		*fetch = FROM_BITS(TYPE, AMO(TYPE, FETCH, 0, 0, true)); \
	} \
	FN(void, shmem_ctx_##NAME##_atomic_fetch_nbi, \
	   (shmem_ctx_t ctx, TYPE * fetch, const TYPE *dest, int pe)) \
	{ \
		static const char call[] = "shmem_ctx_" #NAME "_atomic_fetch_nbi"; \
\
		*fetch = FROM_BITS(TYPE, AMO(TYPE, FETCH, 0, 0, true)); \
	} \
	AMO_ONLY(TYPE, NAME, SET, atomic_set, value, , TYPE value) \
	AMO_OLD(TYPE, NAME, SET, atomic_swap, value, , TYPE value) \
	AMO_NBI(TYPE, NAME, SET, atomic_swap, value, , TYPE value)
#define BIT_T(F, NAME, TYPE) \
	AMO_OLD(TYPE, NAME, AND, atomic_fetch_and, value, , TYPE value) \
	AMO_OLD(TYPE, NAME, OR, atomic_fetch_or, value, , TYPE value) \
	AMO_OLD(TYPE, NAME, XOR, atomic_fetch_xor, value, , TYPE value) \
	AMO_NBI(TYPE, NAME, AND, atomic_fetch_and, value, , TYPE value) \
	AMO_NBI(TYPE, NAME, OR, atomic_fetch_or, value, , TYPE value) \
	AMO_NBI(TYPE, NAME, XOR, atomic_fetch_xor, value, , TYPE value) \
	AMO_ONLY(TYPE, NAME, AND, atomic_and, value, , TYPE value) \
	AMO_ONLY(TYPE, NAME, OR, atomic_or, value, , TYPE value) \
	AMO_ONLY(TYPE, NAME, XOR, atomic_xor, value, , TYPE value)
SHMEMX_AMO_TYPES(PLAIN_T, )
SHMEMX_AMO_EXT_TYPES(EXT_T, )
SHMEMX_AMO_BIT_TYPES(BIT_T, )

/* Deprecated: the same without "_atomic" and contexts. */
#define OLD_AMO(TYPE, NAME, OP, FN_OP, ONE, ...) \
	FN(TYPE, shmem_##NAME##_##FN_OP, (TYPE * dest __VA_ARGS__, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_" #FN_OP; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		return FROM_BITS(TYPE, AMO(TYPE, OP, ONE, 0, true)); \
	}
#define OLD_AMO_ONLY(TYPE, NAME, OP, FN_OP, ONE, ...) \
	FN(void, shmem_##NAME##_##FN_OP, (TYPE * dest __VA_ARGS__, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_" #FN_OP; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		(void)AMO(TYPE, OP, ONE, 0, false); \
	}
#define OLD_T(F, NAME, TYPE) \
	FN(TYPE, shmem_##NAME##_cswap, (TYPE * dest, TYPE cond, TYPE value, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_cswap"; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		return FROM_BITS(TYPE, AMO(TYPE, CAS, value, cond, true)); \
	} \
	OLD_AMO(TYPE, NAME, ADD, fadd, value, , TYPE value) \
	OLD_AMO(TYPE, NAME, ADD, finc, 1) \
	OLD_AMO_ONLY(TYPE, NAME, ADD, add, value, , TYPE value) \
	OLD_AMO_ONLY(TYPE, NAME, ADD, inc, 1)
#define OLD_EXT_T(F, NAME, TYPE) \
	FN(TYPE, shmem_##NAME##_fetch, (const TYPE *dest, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_fetch"; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		return FROM_BITS(TYPE, AMO(TYPE, FETCH, 0, 0, true)); \
	} \
	OLD_AMO_ONLY(TYPE, NAME, SET, set, value, , TYPE value) \
	OLD_AMO(TYPE, NAME, SET, swap, value, , TYPE value)
SHMEMX_OLD_AMO_TYPES(OLD_T, )
SHMEMX_OLD_AMO_EXT_TYPES(OLD_EXT_T, )
