/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.h - the arithmetic of collectives: rows of elements folded into one.
 *
 * Owns the kernels for every type, operation and instruction set, and finds
 * them; knows nothing of plans or messages. type.h states what a result is;
 * here every instruction set gives it, bit for bit.
 *
 * The caller finds a row of functions once per operation and then calls it on
 * chunks. A chunk that one rank adds to k times is rounded once if the sum
 * stays wide in between:
 *
 *	fold         T  = T op T	once: the message and the own chunk
 *	widen_fold   W  = T op T	first of several
 *	wide_fold    W  = W op T	in the middle
 *	narrow_fold  T  = W op T	last of several
 *	narrow       T  = W		where the last cannot be known in time
 *
 * W, the accumulator, is fp32 for fp16, bf16 and fp8. For all other types it is
 * T itself: the same calls work, and gain nothing.
 */
#ifndef HK_EXEC_REDUCE_REDUCE_H
#define HK_EXEC_REDUCE_REDUCE_H

#include <hocket/type.h>

#include <stdint.h>

/*
 * Row by row, over count (0 too) elements. Buffers are aligned to an element
 * of theirs. dst may be exactly an operand of the same element type; buffers
 * that overlap in any other way are an error of the caller.
 */
typedef void hk__reduce_fold(void *dst, const void *a, const void *b, size_t count);

struct hk__reduce {
	size_t size;		/* bytes of an element, T */
	size_t acc_size;	/* bytes of an element of an accumulator, W */
	hk__reduce_fold *fold;
	hk__reduce_fold *widen_fold;
	hk__reduce_fold *wide_fold;
	hk__reduce_fold *narrow_fold;
	void (*narrow)(void *dst, const void *acc, size_t count);
	/* premulsum, before: dst = a * *factor, all T, but the factor is a W. */
	void (*scale)(void *dst, const void *a, const void *factor, size_t count);
	/*
	 * avg, in the end: dst = dst / n of T, or of W before it is narrowed;
	 * 0 < n <= HK_RANKS_MAX, which is exact in fp32.
	 */
	void (*finish)(void *dst, uint32_t n, size_t count);
	void (*wide_finish)(void *acc, uint32_t n, size_t count);
};

/* For this machine; NULL where hk_redop_valid says no. Thread-safe, as all here. */
const struct hk__reduce *hk__reduce_find(enum hk_type type, enum hk_redop op);

/*
 * Floats are computed in the thread's floating-point environment. Callers that
 * do not own the thread enter before the first call and leave after the last,
 * because programs change rounding and flush subnormals (-ffast-math does);
 * integers do not care. Cheap where the environment is the default one.
 */
uint64_t hk__reduce_enter(void);
void hk__reduce_leave(uint64_t entered);

/* ---- for tests and measurements ---- */

/*	enum      name */
#define HK__ISA_MAP(X) \
	X(SCALAR, "scalar")	/* anything */ \
	X(NEON,   "neon")	/* aarch64 */ \
	X(SSE2,   "sse2")	/* x86-64 */ \
	X(AVX2,   "avx2")	/* with f16c */ \
	X(AVX512, "avx512")	/* f, bw, dq, vl */

enum hk__isa {
#define HK__ISA_ENUM(id, name) HK__ISA_##id,
	HK__ISA_MAP(HK__ISA_ENUM)
#undef HK__ISA_ENUM
	HK__ISA_COUNT
};

const char *hk__isa_name(enum hk__isa isa);

/* NULL also where this machine, or this build, lacks the instructions. */
const struct hk__reduce *hk__reduce_find_isa(enum hk_type type, enum hk_redop op,
					     enum hk__isa isa);

#endif
