/* SPDX-License-Identifier: Apache-2.0 */
/* word.c - hk_word_add; and hk_heap_run, of the tests of heaps, compiled for the host. */
#include <sched.h>
#define hk__dev_pause() ((void)sched_yield())
#include "gpu/driver/kernels.h"
#include "gpu/heap_ops.h"

#include <string.h>

static bool word_has(const char *name)
{
	return strcmp(name, "hk_word_add") == 0;
}

static void word_run(const char *name, const struct kernel_grid *grid, void *const *params)
{
	uint64_t *at, value;

	(void)name;
	(void)grid;
	memcpy(&at, params[0], sizeof(at));
	memcpy(&value, params[1], sizeof(value));
	__atomic_fetch_add(at, value, __ATOMIC_RELEASE);
}

static bool heap_has(const char *name)
{
	return strcmp(name, "hk_heap_run") == 0;
}

static void heap_block_run(const char *name, const struct kernel_grid *grid, void *const *params)
{
	(void)name;
	heap_run(params[0], grid->block, 0, 1);
}

static const size_t word_params[] = { sizeof(uint64_t *), sizeof(uint64_t), 0 };
static const size_t heap_params[] = { sizeof(struct heap_call), 0 };
const struct kernel_family kernels_word = { word_has, word_params, word_run };
const struct kernel_family kernels_heap = { heap_has, heap_params, heap_block_run };
