/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vector.h - vectors of VEC_BYTES bytes, and what a source that is compiled for
 * an instruction set has to say about it.
 *
 * The compiler's own vectors do nearly all: arithmetic, comparison and bits are
 * written once and become the instructions of whatever the including source is
 * compiled for. What compilers do badly each source brings itself:
 *
 *	vh16 load_bytes(const void *)		bytes to words, with their sign
 *	void store_bytes(void *, vu32)		the low bytes of lanes below 256
 *	vu32 widen(vh16)			words to lanes
 *	vh16 narrow(vu32)			lanes below 65536 to words
 *	vi32 min_i32(vi32, vi32), max_i32
 *	vf32 half_decode(vh16)			fp16 to fp32, and back to nearest
 *	vh16 half_encode(vf32)			even; or SOFT_HALF, and small.h does it
 *
 * With VEC_BYTES 1 every vector has one lane, and this is scalar code.
 */
#ifndef HK_EXEC_REDUCE_VECTOR_H
#define HK_EXEC_REDUCE_VECTOR_H

#include <float.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "fp32 has to be computed as fp32");

#define LANES(type) (VEC_BYTES > sizeof(type) ? VEC_BYTES / sizeof(type) : 1)
#define VEC(type) __attribute__((vector_size(sizeof(type) * LANES(type)))) type

typedef VEC(int8_t) vi8;
typedef VEC(int16_t) vi16;
typedef VEC(int32_t) vi32;
typedef VEC(int64_t) vi64;
typedef VEC(uint8_t) vu8;
typedef VEC(uint16_t) vu16;
typedef VEC(uint32_t) vu32;
typedef VEC(uint64_t) vu64;
typedef VEC(float) vf32;
typedef VEC(double) vf64;
/* As many words as there are lanes in a vu32: half a vector. */
typedef __attribute__((vector_size(2 * LANES(uint32_t)))) uint16_t vh16;

/*
 * Hides where a value comes from: clang would compare what was converted from
 * fp16 before the conversion, and for want of instructions one by one.
 */
#if defined(__aarch64__)
#define OPAQUE(value) __asm__("" : "+w"(value))
#else
#define OPAQUE(value) __asm__("" : "+x"(value))
#endif

/* Lane by lane, of unsigned vectors; a lane of the mask is all ones or zero. */
#define SELECT(mask, yes, no) (((mask) & (yes)) | (~(mask) & (no)))

/* load_NAME, store_NAME: whole vectors of an element that is computed as it is. */
#define VECTOR_MEMORY(name, vector) \
	static inline vector load_##name(const void *from) \
	{ \
		vector to; \
		memcpy(&to, from, sizeof(to)); \
		return to; \
	} \
	static inline void store_##name(void *to, vector from) \
	{ \
		memcpy(to, &from, sizeof(from)); \
	}

VECTOR_MEMORY(int8, vi8)
VECTOR_MEMORY(int16, vi16)
VECTOR_MEMORY(int32, vi32)
VECTOR_MEMORY(int64, vi64)
VECTOR_MEMORY(uint8, vu8)
VECTOR_MEMORY(uint16, vu16)
VECTOR_MEMORY(uint32, vu32)
VECTOR_MEMORY(uint64, vu64)
VECTOR_MEMORY(fp32, vf32)
VECTOR_MEMORY(fp64, vf64)
VECTOR_MEMORY(words, vh16)

#define FP32_BIAS 127u
#define FP32_FRACTION 23u /* bits */
#define FP32_INF 0x7f800000u
#define FP32_NAN 0x7fc00000u
#define FP64_NAN 0x7ff8000000000000u

#endif
