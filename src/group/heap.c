/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - first fit over a short list. Blocks are few and large: buffers of
 * collectives, not objects. What is given back is given to the system.
 */
#include "group/heap.h"

#include <hocket/group.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAP_PAGE ((size_t)4096)
/* Blocks that could use huge pages begin where one may. */
#define HEAP_HUGE ((size_t)2 << 20)

void hk__heap_init(struct hk__heap *heap, const struct hk_alloc *alloc, void *at, size_t bytes)
{
	*heap = (struct hk__heap){ .at = at, .bytes = bytes };
	hk__array_init(&heap->blocks, alloc, sizeof(struct hk__heap_block));
}

void hk__heap_fini(struct hk__heap *heap)
{
	hk__array_fini(&heap->blocks);
}

static size_t round_up(size_t x, size_t to)
{
	return (x + to - 1) / to * to;
}

enum hk_status hk__heap_get(struct hk__heap *heap, size_t bytes, void **at_out)
{
	struct hk__heap_block *blocks = heap->blocks.items;
	size_t count = heap->blocks.count, at = 0, i = 0;

	if (bytes == 0)
		return HK_EINVAL;
	if (bytes > heap->bytes)
		return HK_ELIMIT;
	bytes = round_up(bytes, HEAP_PAGE);
	size_t align = bytes >= HEAP_HUGE ? HEAP_HUGE : HEAP_PAGE;
	for (; i < count; i++) {
		if (blocks[i].at >= at && blocks[i].at - at >= bytes)
			break;
		at = round_up(blocks[i].at + blocks[i].bytes, align);
	}
	if (at > heap->bytes || bytes > heap->bytes - at)
		return HK_ELIMIT;
	if (!hk__array_push(&heap->blocks))
		return HK_ENOMEM;
	blocks = heap->blocks.items;
	memmove(&blocks[i + 1], &blocks[i], (count - i) * sizeof(blocks[0]));
	blocks[i] = (struct hk__heap_block){ at, bytes };
	*at_out = heap->at + at;
	return HK_OK;
}

enum hk_status hk__heap_plain(size_t bytes, void **at_out)
{
	if (bytes == 0)
		return HK_EINVAL;
	if (bytes > HK_MEM_MAX)
		return HK_ELIMIT;
	*at_out = aligned_alloc(HEAP_PAGE, round_up(bytes, HEAP_PAGE));
	if (!*at_out)
		return HK_ENOMEM;
	memset(*at_out, 0, bytes);
	return HK_OK;
}

bool hk__heap_put(struct hk__heap *heap, void *mem)
{
	struct hk__heap_block *blocks = heap->blocks.items;
	size_t at = (size_t)((char *)mem - heap->at);

	for (size_t i = 0; i < heap->blocks.count; i++) {
		if (blocks[i].at != at)
			continue;
		/* Zeroes for the next one; and if the system will not, by hand. */
		if (madvise(mem, blocks[i].bytes, MADV_REMOVE) != 0)
			memset(mem, 0, blocks[i].bytes);
		heap->blocks.count--;
		memmove(&blocks[i], &blocks[i + 1], (heap->blocks.count - i) * sizeof(blocks[0]));
		return true;
	}
	return false;
}
