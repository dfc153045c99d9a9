/* SPDX-License-Identifier: Apache-2.0 */
/* scalar.c - the kernels one element at a time: what runs on any machine. */
#define VEC_BYTES 1
#define SOFT_HALF
#define REDUCE_TABLE hk__reduce_scalar
#include "exec/reduce/vector.h"

static inline vh16 load_bytes(const void *from)
{
	return (vh16){ (uint16_t) * (const int8_t *)from };
}

static inline void store_bytes(void *to, vu32 lanes)
{
	*(uint8_t *)to = (uint8_t)lanes[0];
}

static inline vu32 widen(vh16 words)
{
	return (vu32){ words[0] };
}

static inline vh16 narrow(vu32 lanes)
{
	return (vh16){ (uint16_t)lanes[0] };
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
