/* SPDX-License-Identifier: Apache-2.0 */
/* heap_ops.cu - the kernel of the tests of heaps, for a GPU. */
#include "gpu/heap_ops.h"

extern "C" __global__ void hk_heap_run(const __grid_constant__ struct heap_call call)
{
	uint32_t of = call.scope == HEAP_THREAD ? 1 : call.scope == HEAP_WARP ? 32 : blockDim.x;

	if (threadIdx.x < of)
		heap_run(&call, blockIdx.x, threadIdx.x, of);
}
