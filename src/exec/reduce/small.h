/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small.h - the small floats: from memory to fp32 lanes, and rounded once on
 * the way back. Made of the functions that the including source brings, see
 * vector.h. What is stored has no NaN but FP32_NAN, see fp32_quiet.
 *
 * Nothing here multiplies a subnormal, which some processors do a hundred times
 * slower than anything else.
 */
#ifndef HK_EXEC_REDUCE_SMALL_H
#define HK_EXEC_REDUCE_SMALL_H

/*
 * The magnitude of an fp32 as that of a smaller float, to nearest even; what
 * is above `most`, an fp32, becomes that (NaN too). Adding 2^(exponent + 23 -
 * fraction) makes the addition itself round at the place where the small float
 * ends, which for small numbers is where subnormals end. Then the significand
 * stands in the low bits of the sum, leading one included, and carries by
 * itself into the exponent that it is added to.
 */
static inline vu32 small_encode(vu32 magnitude, unsigned bias, unsigned fraction, uint32_t most)
{
	unsigned shift = FP32_FRACTION - fraction;
	uint32_t least = (FP32_BIAS - bias + 1) << FP32_FRACTION; /* normal number */
	vi32 capped = min_i32((vi32)magnitude, (vi32)((vu32){ 0 } + most));
	vu32 exponent = (vu32)max_i32(capped, (vi32)((vu32){ 0 } + least)) & FP32_INF;
	vu32 ruler = exponent + (shift << FP32_FRACTION);
	vu32 sum = (vu32)((vf32)capped + (vf32)ruler);

	return sum - ruler + (exponent >> shift) - (least >> shift);
}

/* ---- fp16 ---- */

#ifdef SOFT_HALF
/*
 * The magnitude moved up to fp32's places is right but for the bias; a
 * subnormal has no leading one, which an addition supplies and takes away.
 */
static inline vf32 half_decode(vh16 words)
{
	vu32 bits = widen(words), moved = (bits & 0x7fffu) << 13;
	uint32_t rebias = (FP32_BIAS - 15) << FP32_FRACTION, one = 1u << FP32_FRACTION;
	vf32 least = (vf32)((vu32){ 0 } + (rebias + one)); /* normal number */
	vu32 subnormal = (vu32)((vf32)(moved + (rebias + one)) - least);
	vu32 number = SELECT((vu32)((vi32)moved < (int32_t)one), subnormal, moved + rebias);
	vu32 special = (vu32)((vi32)moved >= 31 << FP32_FRACTION) & FP32_INF;

	return (vf32)(number | special | (bits & 0x8000u) << 16);
}

static inline vh16 half_encode(vf32 value)
{
	vu32 bits = (vu32)value, magnitude = bits & 0x7fffffffu;
	vu32 nan = (vu32)((vi32)magnitude > (int32_t)FP32_INF) & 0x7e00u;

	/* 2^16 is where infinity is in fp16, and what rounds up to it is one. */
	return narrow(small_encode(magnitude, 15, 10, 0x47800000) | nan | (bits >> 16 & 0x8000u));
}
#endif

static inline vf32 load_fp16(const void *from)
{
	return half_decode(load_words(from));
}

static inline void store_fp16(void *to, vf32 value)
{
	store_words(to, half_encode(value));
}

/* ---- bf16 ---- */

/* The upper half is the result. Adds half of its last place, less if even. */
static inline vu32 bf16_round(vf32 value)
{
	vu32 bits = (vu32)value;

	return bits + (0x7fffu + (bits >> 16 & 1u));
}

static inline vf32 load_bf16(const void *from)
{
	return (vf32)(widen(load_words(from)) << 16);
}

static inline void store_bf16(void *to, vf32 value)
{
	store_words(to, narrow(bf16_round(value) >> 16));
}

/* ---- fp8 ---- */

static inline vf32 load_fp8e5m2(const void *from)
{
	return half_decode(load_bytes(from) << 8);
}

/*
 * Moved into fp16's places, all is right but the bias, by 8. NaN is all ones,
 * and the only one to carry into the bit that makes it fp16's NaN, too.
 */
static inline vf32 load_fp8e4m3(const void *from)
{
	vh16 moved = load_bytes(from) << 7 & 0xbf80;
	vh16 nan = (moved + 0x80) & 0x4000;

	return half_decode(moved | nan) * 256.0f;
}

/* NaN was encoded as whatever is too large, as the `last` number. */
static inline void fp8_store(void *to, vf32 value, vu32 encoded, uint32_t last, uint32_t nan)
{
	vu32 bits = (vu32)value;
	vu32 is_nan = (vu32)((vi32)(bits & 0x7fffffffu) > (int32_t)FP32_INF);

	store_bytes(to, (encoded + (is_nan & (nan - last))) | (bits >> 24 & 0x80u));
}

static inline void store_fp8e5m2(void *to, vf32 value)
{
	vu32 encoded = small_encode((vu32)value & 0x7fffffffu, 15, 2, 0x47600000); /* 57344 */

	fp8_store(to, value, encoded, 0x7b, 0x7e);
}

static inline void store_fp8e4m3(void *to, vf32 value)
{
	vu32 encoded = small_encode((vu32)value & 0x7fffffffu, 7, 3, 0x43e00000); /* 448 */

	fp8_store(to, value, encoded, 0x7e, 0x7f);
}

#endif
