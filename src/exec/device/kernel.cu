/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.cu - flat programs on the device: two kernels for each type of elements,
 * hk_flat_NAME and hk_lines_NAME; and sends and receives, hk_pair_small,
 * hk_pair_few and hk_pair_many. A grid is one rank; its blocks must all run at the
 * same time, with those of all other ranks.
 */
#include "exec/device/interp.h"
#include "exec/device/pair_run.h"

/* Programs are read from here if they fit; operands of programs by lines are behind. */
extern __shared__ uint64_t hk_flat_shared[];

/* The first of its input is wanted soon: all of it, if the call is tiny. */
DEV void flat_prefetch(const struct flat_self *self)
{
	if (self->call->in && self->id == 0 && self->number == 0)
		asm volatile("prefetch.global.L1 [%0];" ::"l"(self->call->in));
}

DEV void flat_open(struct flat_self *self, const struct hk__flat_call *call, struct flat_block *block)
{
	const struct hk__flat_program *program = (const struct hk__flat_program *)call->program;
	uint32_t bytes = call->shared;

	self->call = call;
	self->program = bytes ? (const struct hk__flat_program *)hk_flat_shared : program;
	self->block = block;
	self->operands = (struct flat_operand *)((char *)hk_flat_shared + bytes);
	self->id = threadIdx.x;
	self->nthreads = blockDim.x;
	self->number = blockIdx.x;
	self->turn = self->flip = 0;
	self->lane = self->step = 0;
	self->lot = flat_lot(self, call->rank);
	flat_look(self);
	flat_prefetch(self);
	for (uint32_t i = threadIdx.x; i < bytes / 8; i += blockDim.x)
		hk_flat_shared[i] = ((const uint64_t *)program)[i];
	__syncthreads();
}

#define KERNEL(name) \
	extern "C" __global__ void __launch_bounds__(512, 1) \
		hk_flat_##name(const __grid_constant__ struct hk__flat_call call) \
	{ \
		__shared__ struct flat_block block; \
		struct flat_self self; \
		flat_open(&self, &call, &block); \
		name##_program(&self); \
	} \
	extern "C" __global__ void __launch_bounds__(512, 1) \
		hk_lines_##name(const __grid_constant__ struct hk__flat_call call) \
	{ \
		struct flat_self self; \
		flat_open(&self, &call, NULL); \
		name##_lines(&self); \
	}

#define ELEMENT int8
#include "exec/device/interp.inc"
KERNEL(int8)
#undef ELEMENT
#define ELEMENT uint8
#include "exec/device/interp.inc"
KERNEL(uint8)
#undef ELEMENT
#define ELEMENT int16
#include "exec/device/interp.inc"
KERNEL(int16)
#undef ELEMENT
#define ELEMENT uint16
#include "exec/device/interp.inc"
KERNEL(uint16)
#undef ELEMENT
#define ELEMENT int32
#include "exec/device/interp.inc"
KERNEL(int32)
#undef ELEMENT
#define ELEMENT uint32
#include "exec/device/interp.inc"
KERNEL(uint32)
#undef ELEMENT
#define ELEMENT int64
#include "exec/device/interp.inc"
KERNEL(int64)
#undef ELEMENT
#define ELEMENT uint64
#include "exec/device/interp.inc"
KERNEL(uint64)
#undef ELEMENT
#define ELEMENT fp16
#include "exec/device/interp.inc"
KERNEL(fp16)
#undef ELEMENT
#define ELEMENT bf16
#include "exec/device/interp.inc"
KERNEL(bf16)
#undef ELEMENT
#define ELEMENT fp8e4m3
#include "exec/device/interp.inc"
KERNEL(fp8e4m3)
#undef ELEMENT
#define ELEMENT fp8e5m2
#include "exec/device/interp.inc"
KERNEL(fp8e5m2)
#undef ELEMENT
#define ELEMENT fp32
#include "exec/device/interp.inc"
KERNEL(fp32)
#undef ELEMENT
#define ELEMENT fp64
#include "exec/device/interp.inc"
KERNEL(fp64)
#undef ELEMENT

extern "C" __global__ void __launch_bounds__(512, 1)
	hk_pair_small(const __grid_constant__ struct hk__pair_few args)
{
	__shared__ struct small_block small;
	struct pair_lists lists = { &args.call, args.ops, args.index };
	struct pair_thread thread = { NULL, &small, blockIdx.x, threadIdx.x, blockDim.x };

	small_run(lists, thread);
}

DEV void pair_start(struct pair_lists lists)
{
	__shared__ struct pair_block block;
	__shared__ struct small_block small;
	struct pair_thread thread = { &block, &small, blockIdx.x, threadIdx.x, blockDim.x };

	pair_run(lists, thread);
}

extern "C" __global__ void __launch_bounds__(512, 1)
	hk_pair_few(const __grid_constant__ struct hk__pair_few args)
{
	struct pair_lists lists = { &args.call, args.ops, args.index };

	pair_start(lists);
}

extern "C" __global__ void __launch_bounds__(512, 1)
	hk_pair_many(const __grid_constant__ struct hk__pair_many args)
{
	struct pair_lists lists = { &args.call, args.ops, args.index };

	pair_start(lists);
}

/* A signal of a stream (group/device/heap_stream.c): after what the stream wrote before. */
extern "C" __global__ void hk_word_add(uint64_t *at, uint64_t value)
{
	asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
