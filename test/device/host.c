/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - see host.h. */
#include "device/host.h"

#include "exec/device/interp.h"

#include <stdlib.h>

#define ELEMENT int8
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT uint8
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT int16
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT uint16
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT int32
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT uint32
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT int64
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT uint64
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT fp16
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT bf16
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT fp8e4m3
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT fp8e5m2
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT fp32
#include "exec/device/interp.inc"
#undef ELEMENT
#define ELEMENT fp64
#include "exec/device/interp.inc"
#undef ELEMENT

#define BOTH(id, name) [HK_TYPE_##id] = { name##_program, name##_lines }
static void (*const programs[HK_TYPE_COUNT][2])(struct flat_self *) = {
	BOTH(INT8, int8),	BOTH(UINT8, uint8),	BOTH(INT16, int16), BOTH(UINT16, uint16),
	BOTH(INT32, int32),	BOTH(UINT32, uint32),	BOTH(INT64, int64), BOTH(UINT64, uint64),
	BOTH(FP16, fp16),	BOTH(BF16, bf16),	BOTH(FP32, fp32),   BOTH(FP64, fp64),
	BOTH(FP8E4M3, fp8e4m3), BOTH(FP8E5M2, fp8e5m2),
};

void host_block(const struct hk__flat_call *call, uint32_t number)
{
	const struct hk__flat_program *program = (const void *)call->program;
	bool lines = call->mode & HK__FLAT_LINES;
	struct flat_operand *operands = calloc(program->nrefs + 1, sizeof(*operands));
	struct flat_block block = { 0 };
	struct flat_self self = { .call = call,
				  .program = program,
				  .block = &block,
				  .operands = operands,
				  .nthreads = 1,
				  .number = number };

	hk_assert(operands);
	self.lot = flat_lot(&self, call->rank);
	flat_look(&self);
	programs[call->type][lines](&self);
	free(operands);
}
