/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - which kernels the stand-in driver has: functions of the host by the
 * names that a module has them by. One more family: a file, and a line in families[]
 * (kernel.c).
 */
#ifndef HK_TEST_GPU_DRIVER_KERNELS_H
#define HK_TEST_GPU_DRIVER_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_grid {
	uint32_t nblocks, nthreads;	/* nthreads: of a block, as launched */
	uint32_t block;			/* which one this is */
};

struct kernel_family {
	/* Whether it has a kernel of that name. */
	bool (*has)(const char *name);
	/* Sizes of a kernel's parameters, ended by 0. */
	const size_t *params;
	/* Performs one block, alone on a thread; params as for cuLaunchKernel. */
	void (*run)(const char *name, const struct kernel_grid *grid, void *const *params);
};

/* flat.c: plans, as in exec/device/kernel.cu. */
extern const struct kernel_family kernels_flat;
/* pair.c: sends and receives. */
extern const struct kernel_family kernels_pair_few, kernels_pair_many;
/* word.c: words of signals; and the kernel of the tests of heaps (gpu/heap_ops.h). */
extern const struct kernel_family kernels_word, kernels_heap;

#endif
