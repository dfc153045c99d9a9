/* SPDX-License-Identifier: Apache-2.0 */
/* avx512.c - the kernels for x86-64 with AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__) /* tools look at every file, on every machine */
#define VEC_BYTES 64
#define REDUCE_TABLE hk__reduce_avx512
#include "exec/reduce/vector.h"

#include <immintrin.h>

static inline vh16 load_bytes(const void *from)
{
	return (vh16)_mm256_cvtepi8_epi16(_mm_loadu_si128(from));
}

static inline void store_bytes(void *to, vu32 lanes)
{
	_mm_storeu_si128(to, _mm512_cvtepi32_epi8((__m512i)lanes));
}

static inline vu32 widen(vh16 words)
{
	return (vu32)_mm512_cvtepu16_epi32((__m256i)words);
}

static inline vh16 narrow(vu32 lanes)
{
	return (vh16)_mm512_cvtepi32_epi16((__m512i)lanes);
}

static inline vi32 min_i32(vi32 a, vi32 b)
{
	return (vi32)_mm512_min_epi32((__m512i)a, (__m512i)b);
}

static inline vi32 max_i32(vi32 a, vi32 b)
{
	return (vi32)_mm512_max_epi32((__m512i)a, (__m512i)b);
}

static inline vf32 half_decode(vh16 words)
{
	vf32 value = (vf32)_mm512_cvtph_ps((__m256i)words);

	OPAQUE(value);
	return value;
}

static inline vh16 half_encode(vf32 value)
{
	return (vh16)_mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT);
}

#include "exec/reduce/kernels.inc"
#endif
