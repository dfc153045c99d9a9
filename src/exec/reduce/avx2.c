/* SPDX-License-Identifier: Apache-2.0 */
/* avx2.c - the kernels for x86-64 with AVX2 and F16C. */
#if defined(__x86_64__) /* tools look at every file, on every machine */
#define VEC_BYTES 32
#define REDUCE_TABLE hk__reduce_avx2
#include "exec/reduce/vector.h"

#include <immintrin.h>

static inline vh16 load_bytes(const void *from)
{
	return (vh16)_mm_cvtepi8_epi16(_mm_loadl_epi64(from));
}

static inline vu32 widen(vh16 words)
{
	return (vu32)_mm256_cvtepu16_epi32((__m128i)words);
}

static inline vh16 narrow(vu32 lanes)
{
	__m128i low = _mm256_castsi256_si128((__m256i)lanes);

	return (vh16)_mm_packus_epi32(low, _mm256_extracti128_si256((__m256i)lanes, 1));
}

static inline void store_bytes(void *to, vu32 lanes)
{
	__m128i words = (__m128i)narrow(lanes);

	_mm_storel_epi64(to, _mm_packus_epi16(words, words));
}

static inline vi32 min_i32(vi32 a, vi32 b)
{
	return (vi32)_mm256_min_epi32((__m256i)a, (__m256i)b);
}

static inline vi32 max_i32(vi32 a, vi32 b)
{
	return (vi32)_mm256_max_epi32((__m256i)a, (__m256i)b);
}

static inline vf32 half_decode(vh16 words)
{
	vf32 value = (vf32)_mm256_cvtph_ps((__m128i)words);

	OPAQUE(value);
	return value;
}

static inline vh16 half_encode(vf32 value)
{
	return (vh16)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT);
}

#include "exec/reduce/kernels.inc"
#endif
