/* SPDX-License-Identifier: Apache-2.0 */
/* sse2.c - the kernels for every x86-64. */
#if defined(__x86_64__) /* tools look at every file, on every machine */
#define VEC_BYTES 16
#define SOFT_HALF
#define REDUCE_TABLE hk__reduce_sse2
#include "exec/reduce/vector.h"

#include <emmintrin.h>

static inline vh16 load_bytes(const void *from)
{
	int32_t four;

	memcpy(&four, from, sizeof(four));
	__m128i bytes = _mm_cvtsi32_si128(four);
	return (vh16)_mm_cvtsi128_si64(_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8));
}

static inline void store_bytes(void *to, vu32 lanes)
{
	__m128i words = _mm_packs_epi32((__m128i)lanes, (__m128i)lanes);
	int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));

	memcpy(to, &four, sizeof(four));
}

static inline vu32 widen(vh16 words)
{
	__m128i low = _mm_cvtsi64_si128((int64_t)words);

	return (vu32)_mm_unpacklo_epi16(low, _mm_setzero_si128());
}

static inline vh16 narrow(vu32 lanes)
{
	/* There is only a signed pack, so lanes become signed words first. */
	vi32 words = (vi32)(lanes << 16) >> 16;

	return (vh16)_mm_cvtsi128_si64(_mm_packs_epi32((__m128i)words, (__m128i)words));
}

static inline vi32 min_i32(vi32 a, vi32 b)
{
	return (vi32)SELECT((vu32)(a < b), (vu32)a, (vu32)b);
}

static inline vi32 max_i32(vi32 a, vi32 b)
{
	return (vi32)SELECT((vu32)(a > b), (vu32)a, (vu32)b);
}

#include "exec/reduce/kernels.inc"
#endif
