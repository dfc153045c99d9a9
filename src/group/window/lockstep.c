/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lockstep.c - the symmetric heap: a window, and an allocator that every rank runs for
 * itself (base/space.h). The same calls in the same order give the same offsets.
 */
#include "base/space.h"
#include "group/window/window.h"

struct hk_heap {
	struct hk_win *win;
	const struct hk_alloc *alloc;
	size_t bytes;
	struct hk__space space;
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
	hk__space_init(&heap->space, heap->alloc, 0, bytes);
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
	hk__space_fini(&heap->space);
	hk__mem_free(heap->alloc, heap, 1, sizeof(*heap));
}

struct hk_win *hk_heap_win(struct hk_heap *heap)
{
	return heap ? heap->win : NULL;
}

enum hk_status hk_heap_alloc(struct hk_heap *heap, size_t bytes, size_t align, void **at_out)
{
	size_t at;

	if (!heap || !at_out)
		return HK_EINVAL;
	struct hk_group *group = heap->win->group;
	if (align < LOCKSTEP_ALIGN)
		align = align & (align - 1) ? 3 : LOCKSTEP_ALIGN;
	switch (hk__space_get(&heap->space, bytes, align, &at)) {
	case HK_OK:
		*at_out = heap->win->base + at;
		return HK_OK;
	case HK_EINVAL:
		return hk__group_refuse(group, HK_EINVAL,
					"hk_heap_alloc: %zu bytes: takes 1 or more, aligned to a "
					"power of two",
					bytes);
	case HK_ELIMIT:
		return hk__group_refuse(group, HK_ELIMIT,
					"hk_heap_alloc: no %zu bytes are left in one piece of a "
					"heap of %zu",
					bytes, heap->bytes);
	default:
		return hk__group_refuse(group, HK_ENOMEM, "hk_heap_alloc: no memory");
	}
}

bool hk_heap_release(struct hk_heap *heap, void *at)
{
	size_t offset;

	return hk_heap_offset(heap, at, &offset) && hk__space_put(&heap->space, offset);
}

size_t hk_heap_block(const struct hk_heap *heap, const void *at)
{
	size_t offset;

	return hk_heap_offset(heap, at, &offset) ? hk__space_block(&heap->space, offset) : 0;
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
