/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lockstep.c - the symmetric heap: a window, and an allocator that every rank runs for
 * itself. The same calls in the same order give the same offsets, as nothing but the
 * calls decides: first fit over a list that is sorted by place.
 */
#include "group/window/window.h"

#include <string.h>

struct lockstep_block {
	size_t at;
	size_t bytes; /* as asked for */
	size_t room;  /* as taken */
};

struct hk_heap {
	struct hk_win *win;
	const struct hk_alloc *alloc;
	size_t bytes;
	struct hk__array blocks; /* struct lockstep_block, by place */
};

#define LOCKSTEP_ALIGN ((size_t)64)

enum hk_status hk_heap_create(struct hk_group *group, size_t bytes, const struct hk_win_opts *opts,
			      struct hk_heap **heap_out)
{
	enum hk_status status = hk__win_usable(group);

	if (status != HK_OK || !heap_out)
		return heap_out ? status : HK_EINVAL;
	struct hk_heap *heap = hk__mem_zalloc(group->alloc, 1, sizeof(*heap));
	if (!heap)
		return hk__group_refuse(group, HK_ENOMEM, "hk_heap_create: no memory");
	*heap = (struct hk_heap){ .alloc = group->alloc, .bytes = bytes };
	hk__array_init(&heap->blocks, heap->alloc, sizeof(struct lockstep_block));
	status = hk_win_create(group, NULL, bytes, opts, &heap->win);
	if (status != HK_OK) {
		hk__mem_free(heap->alloc, heap, 1, sizeof(*heap));
		return status;
	}
	*heap_out = heap;
	return HK_OK;
}

void hk_heap_free(struct hk_heap *heap)
{
	if (!heap)
		return;
	hk_win_free(heap->win);
	hk__array_fini(&heap->blocks);
	hk__mem_free(heap->alloc, heap, 1, sizeof(*heap));
}

struct hk_win *hk_heap_win(struct hk_heap *heap)
{
	return heap ? heap->win : NULL;
}

static size_t round_up(size_t x, size_t to)
{
	return (x + to - 1) / to * to;
}

/* The first place for it, and behind which block; false: there is none. */
static bool place_find(const struct hk_heap *heap, size_t room, size_t align, size_t *at_out,
		       size_t *index_out)
{
	const struct lockstep_block *blocks = heap->blocks.items;
	size_t at = 0, i = 0;

	for (; i < heap->blocks.count; i++) {
		if (blocks[i].at >= at && blocks[i].at - at >= room)
			break;
		at = round_up(blocks[i].at + blocks[i].room, align);
	}
	*at_out = at;
	*index_out = i;
	return at <= heap->bytes && room <= heap->bytes - at;
}

enum hk_status hk_heap_alloc(struct hk_heap *heap, size_t bytes, size_t align, void **at_out)
{
	size_t at, index;

	if (!heap || !at_out)
		return HK_EINVAL;
	struct hk_group *group = heap->win->group;
	if (align < LOCKSTEP_ALIGN)
		align = align & (align - 1) ? 3 : LOCKSTEP_ALIGN;
	if (!bytes || align & (align - 1))
		return hk__group_refuse(group, HK_EINVAL,
					"hk_heap_alloc: %zu bytes: takes 1 or more, aligned to a "
					"power of two",
					bytes);
	if (bytes > heap->bytes || align > heap->bytes ||
	    !place_find(heap, round_up(bytes, LOCKSTEP_ALIGN), align, &at, &index))
		return hk__group_refuse(group, HK_ELIMIT,
					"hk_heap_alloc: no %zu bytes are left in one piece of a "
					"heap of %zu",
					bytes, heap->bytes);
	if (!hk__array_push(&heap->blocks))
		return hk__group_refuse(group, HK_ENOMEM, "hk_heap_alloc: no memory");
	struct lockstep_block *blocks = heap->blocks.items;
	memmove(&blocks[index + 1], &blocks[index],
		(heap->blocks.count - 1 - index) * sizeof(*blocks));
	blocks[index] = (struct lockstep_block){ at, bytes, round_up(bytes, LOCKSTEP_ALIGN) };
	*at_out = heap->win->base + at;
	return HK_OK;
}

/* The block that begins there; count: none. */
static size_t block_find(const struct hk_heap *heap, const void *at)
{
	const struct lockstep_block *blocks = heap->blocks.items;
	size_t low = 0, high = heap->blocks.count, offset;

	if (!hk_heap_offset(heap, at, &offset))
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (blocks[middle].at < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < heap->blocks.count && blocks[low].at == offset ? low : heap->blocks.count;
}

bool hk_heap_release(struct hk_heap *heap, void *at)
{
	size_t index = heap ? block_find(heap, at) : 0;

	if (!heap || index == heap->blocks.count)
		return false;
	struct lockstep_block *blocks = heap->blocks.items;
	heap->blocks.count--;
	memmove(&blocks[index], &blocks[index + 1], (heap->blocks.count - index) * sizeof(*blocks));
	return true;
}

size_t hk_heap_block(const struct hk_heap *heap, const void *at)
{
	size_t index = heap ? block_find(heap, at) : 0;

	if (!heap || index == heap->blocks.count)
		return 0;
	return ((const struct lockstep_block *)heap->blocks.items)[index].bytes;
}

bool hk_heap_offset(const struct hk_heap *heap, const void *at, size_t *offset_out)
{
	if (!heap || !heap->bytes)
		return false;
	uintptr_t offset = (uintptr_t)at - (uintptr_t)heap->win->base;
	if (offset >= heap->bytes)
		return false;
	*offset_out = offset;
	return true;
}
