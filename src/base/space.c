/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - first fit over a list that is sorted by place: nothing but the calls decides. */
#include "base/space.h"

#include <string.h>

void hk__space_init(struct hk__space *space, const struct hk_alloc *alloc, size_t first, size_t end)
{
	hk_assert(first <= end);
	*space = (struct hk__space){ .first = first, .end = end };
	hk__array_init(&space->blocks, alloc, sizeof(struct hk__space_block));
}

void hk__space_fini(struct hk__space *space)
{
	hk__array_fini(&space->blocks);
}

/* The first multiple of align from there on; false: beyond all numbers. */
static bool align_up(size_t at, size_t align, size_t *up_out)
{
	return !__builtin_add_overflow(at, -at & (align - 1), up_out);
}

enum hk_status hk__space_get(struct hk__space *space, size_t bytes, size_t align, size_t *at_out)
{
	struct hk__space_block *blocks = space->blocks.items;
	size_t count = space->blocks.count, at, i = 0;

	if (!bytes || !align || align & (align - 1))
		return HK_EINVAL;
	bool found = align_up(space->first, align, &at);
	for (; found && i < count; i++) {
		if (blocks[i].at >= at && blocks[i].at - at >= bytes)
			break;
		/* A hole that is too small may lie before it, but not behind its end. */
		if (blocks[i].at + blocks[i].bytes > at)
			found = align_up(blocks[i].at + blocks[i].bytes, align, &at);
	}
	if (!found || at > space->end || bytes > space->end - at)
		return HK_ELIMIT;
	if (!hk__array_push(&space->blocks))
		return HK_ENOMEM;
	blocks = space->blocks.items;
	memmove(&blocks[i + 1], &blocks[i], (count - i) * sizeof(blocks[0]));
	blocks[i] = (struct hk__space_block){ at, bytes };
	*at_out = at;
	return HK_OK;
}

/* Its index; the count of all: no block begins there. */
static size_t block_find(const struct hk__space *space, size_t at)
{
	const struct hk__space_block *blocks = space->blocks.items;
	size_t low = 0, high = space->blocks.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (blocks[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < space->blocks.count && blocks[low].at == at ? low : space->blocks.count;
}

bool hk__space_put(struct hk__space *space, size_t at)
{
	struct hk__space_block *blocks = space->blocks.items;
	size_t i = block_find(space, at);

	if (i == space->blocks.count)
		return false;
	space->blocks.count--;
	memmove(&blocks[i], &blocks[i + 1], (space->blocks.count - i) * sizeof(blocks[0]));
	return true;
}

size_t hk__space_block(const struct hk__space *space, size_t at)
{
	size_t i = block_find(space, at);

	return i == space->blocks.count
		       ? 0
		       : ((const struct hk__space_block *)space->blocks.items)[i].bytes;
}
