/* SPDX-License-Identifier: Apache-2.0 */
/*
 * element.h - the arithmetic of type.h, one element at a time, for the device
 * and for the host: the same bits as exec/reduce.
 *
 * For every type NAME of HK_TYPE_MAP: NAME_t is how it is stored, NAME_a what it
 * is computed in, and NAME_decode, NAME_encode, NAME_fold, NAME_finish (divided
 * by the number of ranks) and NAME_scale (times a factor, rounded).
 */
#ifndef HK_EXEC_DEVICE_ELEMENT_H
#define HK_EXEC_DEVICE_ELEMENT_H

#include <hocket/type.h>

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define DEV static __device__ __forceinline__
#define DEV_APART static __device__ __noinline__	/* once, however often it is called */
#else
#define DEV static inline __attribute__((unused))
#define DEV_APART static __attribute__((unused))
#endif

/* ---- bits of floats ---- */

DEV uint32_t fp32_bits(float value)
{
#ifdef __CUDA_ARCH__
	return __float_as_uint(value);
#else
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
#endif
}

DEV float fp32_of(uint32_t bits)
{
#ifdef __CUDA_ARCH__
	return __uint_as_float(bits);
#else
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
#endif
}

DEV uint64_t fp64_bits(double value)
{
#ifdef __CUDA_ARCH__
	return (uint64_t)__double_as_longlong(value);
#else
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
#endif
}

DEV double fp64_of(uint64_t bits)
{
#ifdef __CUDA_ARCH__
	return __longlong_as_double((long long)bits);
#else
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
#endif
}

/* ---- fp32 and fp64 ---- */

/* The one NaN there is; min and max as in reduce/kernels.inc. */
#define FLOAT_ELEMENT(fp, c_type, bits_type, nan, sign) \
	typedef c_type fp##_a; \
	DEV c_type fp##_quiet(c_type x) \
	{ \
		return x != x ? fp##_of(nan) : x; \
	} \
	DEV c_type fp##_min(c_type a, c_type b) \
	{ \
		return a < b ? a : a > b ? b : fp##_quiet(fp##_of(fp##_bits(a) | fp##_bits(b))); \
	} \
	DEV c_type fp##_max(c_type a, c_type b) \
	{ \
		bits_type x = fp##_bits(a), y = fp##_bits(b); \
		return a > b ? a : a < b ? b : fp##_quiet(fp##_of((x | y) & ((x & y) | ~sign))); \
	} \
	DEV c_type fp##_fold(uint32_t op, c_type a, c_type b) \
	{ \
		return op == HK_REDOP_SUM    ? fp##_quiet(a + b) \
		       : op == HK_REDOP_PROD ? fp##_quiet(a * b) \
		       : op == HK_REDOP_MIN  ? fp##_min(a, b) \
					     : fp##_max(a, b); \
	} \
	DEV c_type fp##_finish(c_type a, uint32_t n) \
	{ \
		return fp##_quiet(a / (c_type)n); \
	}

FLOAT_ELEMENT(fp32, float, uint32_t, 0x7fc00000u, 0x80000000u)
FLOAT_ELEMENT(fp64, double, uint64_t, UINT64_C(0x7ff8000000000000), UINT64_C(0x8000000000000000))

typedef uint32_t fp32_t;
typedef uint64_t fp64_t;
#define fp32_decode fp32_of
#define fp32_encode fp32_bits
#define fp64_decode fp64_of
#define fp64_encode fp64_bits

DEV float fp32_scale(float a, uint64_t factor)
{
	return fp32_quiet(a * fp32_of((uint32_t)factor));
}

DEV double fp64_scale(double a, uint64_t factor)
{
	return fp64_quiet(a * fp64_of(factor));
}

/* ---- small floats; see reduce/small.h ---- */

DEV uint32_t small_encode(uint32_t magnitude, uint32_t bias, uint32_t fraction, uint32_t most)
{
	uint32_t shift = 23 - fraction, least = (127 - bias + 1) << 23;
	uint32_t capped = magnitude < most ? magnitude : most;
	uint32_t exponent = (capped > least ? capped : least) & 0x7f800000u;
	uint32_t ruler = exponent + (shift << 23);
	uint32_t sum = fp32_bits(fp32_of(capped) + fp32_of(ruler));

	return sum - ruler + (exponent >> shift) - (least >> shift);
}

DEV float half_decode(uint32_t bits)
{
#ifdef __CUDA_ARCH__
	float value;
	asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
	return value;
#else
	uint32_t moved = (bits & 0x7fffu) << 13, rebias = (127u - 15) << 23, one = 1u << 23;
	uint32_t number = moved < one ? fp32_bits(fp32_of(moved + rebias + one) -
						  fp32_of(rebias + one))
				      : moved + rebias;
	uint32_t special = moved >= 31u << 23 ? 0x7f800000u : 0;

	return fp32_of(number | special | (bits & 0x8000u) << 16);
#endif
}

typedef uint16_t fp16_t;
typedef uint16_t bf16_t;
typedef uint8_t fp8e4m3_t;
typedef uint8_t fp8e5m2_t;

DEV float fp16_decode(uint32_t bits)
{
	return half_decode(bits);
}

DEV uint16_t fp16_encode(float value)
{
	uint32_t bits = fp32_bits(value), magnitude = bits & 0x7fffffffu;
	uint32_t nan = magnitude > 0x7f800000u ? 0x7e00u : 0;

	return (uint16_t)(small_encode(magnitude, 15, 10, 0x47800000u) | nan |
			  (bits >> 16 & 0x8000u));
}

DEV float bf16_decode(uint32_t bits)
{
	return fp32_of(bits << 16);
}

DEV uint16_t bf16_encode(float value)
{
	uint32_t bits = fp32_bits(value);

	return (uint16_t)((bits + (0x7fffu + (bits >> 16 & 1u))) >> 16);
}

DEV float fp8e5m2_decode(uint32_t bits)
{
	return half_decode(bits << 8);
}

DEV float fp8e4m3_decode(uint32_t bits)
{
	uint32_t moved = (bits & 0x80u) << 8 | (bits & 0x7fu) << 7;
	uint32_t nan = (moved + 0x80u) & 0x4000u;

	return half_decode(moved | nan) * 256.0f;
}

/* NaN was encoded as whatever is too large, as the `last` number. */
DEV uint8_t fp8_encode(float value, uint32_t encoded, uint32_t last, uint32_t nan)
{
	uint32_t bits = fp32_bits(value);
	uint32_t is_nan = (bits & 0x7fffffffu) > 0x7f800000u;

	return (uint8_t)((encoded + (is_nan ? nan - last : 0)) | (bits >> 24 & 0x80u));
}

DEV uint8_t fp8e5m2_encode(float value)
{
	uint32_t encoded = small_encode(fp32_bits(value) & 0x7fffffffu, 15, 2, 0x47600000u);

	return fp8_encode(value, encoded, 0x7b, 0x7e);
}

DEV uint8_t fp8e4m3_encode(float value)
{
	uint32_t encoded = small_encode(fp32_bits(value) & 0x7fffffffu, 7, 3, 0x43e00000u);

	return fp8_encode(value, encoded, 0x7e, 0x7f);
}

#define SMALL_ELEMENT(t) \
	typedef float t##_a; \
	DEV float t##_fold(uint32_t op, float a, float b) \
	{ \
		return fp32_fold(op, a, b); \
	} \
	DEV float t##_finish(float a, uint32_t n) \
	{ \
		return fp32_finish(a, n); \
	} \
	DEV float t##_scale(float a, uint64_t factor) \
	{ \
		return t##_decode(t##_encode(fp32_scale(a, factor))); \
	}

SMALL_ELEMENT(fp16)
SMALL_ELEMENT(bf16)
SMALL_ELEMENT(fp8e4m3)
SMALL_ELEMENT(fp8e5m2)

/* ---- integers: they wrap ---- */

#define INTEGER_ELEMENT(t, c_type, wrap, wide) \
	typedef c_type t##_a; \
	DEV c_type t##_decode(c_type a) \
	{ \
		return a; \
	} \
	DEV c_type t##_encode(c_type a) \
	{ \
		return a; \
	} \
	DEV c_type t##_fold(uint32_t op, c_type a, c_type b) \
	{ \
		switch (op) { \
		case HK_REDOP_SUM: \
			return (c_type)((wrap)a + (wrap)b); \
		case HK_REDOP_PROD: \
			return (c_type)((wrap)a * (wrap)b); \
		case HK_REDOP_MIN: \
			return a < b ? a : b; \
		case HK_REDOP_MAX: \
			return a > b ? a : b; \
		case HK_REDOP_BAND: \
			return (c_type)(a & b); \
		case HK_REDOP_BOR: \
			return (c_type)(a | b); \
		default: \
			return (c_type)(a ^ b); \
		} \
	} \
	DEV c_type t##_finish(c_type a, uint32_t n) \
	{ \
		return (c_type)((wide)a / (wide)n); \
	} \
	DEV c_type t##_scale(c_type a, uint64_t factor) \
	{ \
		return (c_type)((wrap)a * (wrap)factor); \
	}

/* int8_t and so on are both how they are stored and what they are computed in. */
INTEGER_ELEMENT(int8, int8_t, uint32_t, int64_t)
INTEGER_ELEMENT(uint8, uint8_t, uint32_t, uint32_t)
INTEGER_ELEMENT(int16, int16_t, uint32_t, int64_t)
INTEGER_ELEMENT(uint16, uint16_t, uint32_t, uint32_t)
INTEGER_ELEMENT(int32, int32_t, uint32_t, int64_t)
INTEGER_ELEMENT(uint32, uint32_t, uint32_t, uint32_t)
INTEGER_ELEMENT(int64, int64_t, uint64_t, int64_t)
INTEGER_ELEMENT(uint64, uint64_t, uint64_t, uint64_t)

#endif
