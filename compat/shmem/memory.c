/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the symmetric heap: allocators in lockstep, with the barriers that OpenSHMEM
 * asks for. Blocks are at the same offset on all PEs, as all make the same calls.
 */
#include "sma.h"

static void *block_new(size_t size, size_t align, const char *call)
{
	uint64_t words[2] = { size, align };
	enum hk_status status;
	void *at;

	hk__sma_must_run(call);
	if (hk__sma.check)
		hk__sma_check_equal(&hk__sma.world, call, words, 2);
	status = hk_heap_alloc(hk__sma.blocks, size, align, &at);
	if (status == HK_ELIMIT || status == HK_ENOMEM)
		return NULL;
	hk__sma_must(call, status);
	if (hk__sma.check && !hk__sma_block_add(at, size))
		hk__sma_die(call, "no memory to check blocks with");
	return at;
}

static void block_end(void *at, const char *call)
{
	uint64_t word = (uintptr_t)at - hk__sma.heap.start;

	if (hk__sma.check)
		hk__sma_check_equal(&hk__sma.world, call, &word, 1);
	if (hk__sma.check)
		hk__sma_block_remove(at);
	if (!hk_heap_release(hk__sma.blocks, at))
		hk__sma_die(call, "%p is no block of the symmetric heap, or was freed before", at);
}

static void *alloc(size_t size, size_t align, const char *call)
{
	void *at;

	hk__sma_must_run(call);
	if (size == 0)
		return NULL;
	at = block_new(size, align, call);
	hk__sma_barrier(call);
	return at;
}

FN(void *, shmem_malloc, (size_t size))
{
	return alloc(size, 0, "shmem_malloc");
}

FN(void *, shmem_malloc_with_hints, (size_t size, long hints))
{
	(void)hints;
	return alloc(size, 0, "shmem_malloc_with_hints");
}

/* The heap begins at a page, another one on each PE: more than that is not symmetric. */
#define ALIGN_MAX 4096

FN(void *, shmem_align, (size_t alignment, size_t size))
{
	if (alignment == 0 || (alignment & (alignment - 1)) || alignment % sizeof(void *) ||
	    alignment > ALIGN_MAX)
		return NULL;
	return alloc(size, alignment, "shmem_align");
}

FN(void *, shmem_calloc, (size_t count, size_t size))
{
	size_t bytes;
	void *at;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes == 0)
		return NULL;
	at = block_new(bytes, 0, "shmem_calloc");
	/* Zero before the barrier: who leaves it may write here. */
	if (at)
		memset(at, 0, bytes);
	hk__sma_barrier("shmem_calloc");
	return at;
}

FN(void, shmem_free, (void *ptr))
{
	if (!ptr)
		return;
	hk__sma_barrier("shmem_free");
	block_end(ptr, "shmem_free");
}

FN(void *, shmem_realloc, (void *ptr, size_t size))
{
	size_t before;
	void *at;

	if (!ptr)
		return alloc(size, 0, "shmem_realloc");
	if (size == 0) {
		pshmem_free(ptr);
		return NULL;
	}
	hk__sma_barrier("shmem_realloc");
	before = hk_heap_block(hk__sma.blocks, ptr);
	if (before == 0)
		hk__sma_die("shmem_realloc", "%p is no block of the symmetric heap", ptr);
	at = block_new(size, 0, "shmem_realloc");
	if (at) {
		memcpy(at, ptr, before < size ? before : size);
		block_end(ptr, "shmem_realloc");
	}
	hk__sma_barrier("shmem_realloc");
	return at;
}

/* ---- deprecated ---- */

FN(void *, shmalloc, (size_t size))
{
	return pshmem_malloc(size);
}

FN(void, shfree, (void *ptr))
{
	pshmem_free(ptr);
}

FN(void *, shrealloc, (void *ptr, size_t size))
{
	return pshmem_realloc(ptr, size);
}

FN(void *, shmemalign, (size_t alignment, size_t size))
{
	return pshmem_align(alignment, size);
}
