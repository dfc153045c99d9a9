/* SPDX-License-Identifier: Apache-2.0 */
/* neon.c - the kernels for every aarch64. */
#if defined(__aarch64__) /* tools look at every file, on every machine */
#define VEC_BYTES 16
#define REDUCE_TABLE hk__reduce_neon
#include "exec/reduce/vector.h"

#include <arm_neon.h>

static inline vh16 load_bytes(const void *from)
{
	uint32_t four;

	memcpy(&four, from, sizeof(four));
	return (vh16)vget_low_s16(vmovl_s8(vcreate_s8(four)));
}

static inline vu32 widen(vh16 words)
{
	return (vu32)vmovl_u16((uint16x4_t)words);
}

static inline vh16 narrow(vu32 lanes)
{
	return (vh16)vmovn_u32((uint32x4_t)lanes);
}

static inline void store_bytes(void *to, vu32 lanes)
{
	uint16x4_t words = (uint16x4_t)narrow(lanes);
	uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
	uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);

	memcpy(to, &four, sizeof(four));
}

static inline vi32 min_i32(vi32 a, vi32 b)
{
	return (vi32)vminq_s32((int32x4_t)a, (int32x4_t)b);
}

static inline vi32 max_i32(vi32 a, vi32 b)
{
	return (vi32)vmaxq_s32((int32x4_t)a, (int32x4_t)b);
}

static inline vf32 half_decode(vh16 words)
{
	vf32 value = (vf32)vcvt_f32_f16((float16x4_t)words);

	OPAQUE(value);
	return value;
}

static inline vh16 half_encode(vf32 value)
{
	return (vh16)vcvt_f16_f32((float32x4_t)value);
}

#include "exec/reduce/kernels.inc"
#endif
