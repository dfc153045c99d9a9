/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - memory, the array and the hash. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static void *mem_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	(void)ctx;
	(void)size_old;
	if (size_new == 0) {
		free(ptr);
		return NULL;
	}
	return realloc(ptr, size_new);
}

const struct hk_alloc hk__alloc_default = { .resize = mem_resize, .ctx = NULL };

void *hk__mem_zalloc(const struct hk_alloc *alloc, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	/* A buffer of nothing is still a buffer: NULL means failure alone. */
	if (bytes == 0)
		bytes = 1;
	void *ptr = alloc->resize(alloc->ctx, NULL, 0, bytes);
	if (ptr)
		memset(ptr, 0, bytes);
	return ptr;
}

void hk__mem_free(const struct hk_alloc *alloc, void *ptr, size_t count, size_t size)
{
	size_t bytes = count * size;

	if (ptr)
		alloc->resize(alloc->ctx, ptr, bytes ? bytes : 1, 0);
}

void hk__array_init(struct hk__array *array, const struct hk_alloc *alloc, size_t item_size)
{
	hk_assert(item_size > 0);
	*array = (struct hk__array){ .alloc = alloc, .item_size = item_size };
}

void hk__array_fini(struct hk__array *array)
{
	hk__mem_free(array->alloc, array->items, array->room, array->item_size);
	array->items = NULL;
	array->count = array->room = 0;
}

void *hk__array_push(struct hk__array *array)
{
	if (array->count == array->room) {
		size_t room = array->room ? array->room * 2 : 8;
		size_t bytes;

		if (__builtin_mul_overflow(room, array->item_size, &bytes))
			return NULL;
		void *items = array->alloc->resize(array->alloc->ctx, array->items,
						   array->room * array->item_size, bytes);
		if (!items)
			return NULL;
		array->items = items;
		array->room = room;
	}
	void *item = (char *)array->items + array->count++ * array->item_size;
	memset(item, 0, array->item_size);
	return item;
}

void *hk__array_at(const struct hk__array *array, size_t index)
{
	hk_assert(index < array->count);
	return (char *)array->items + index * array->item_size;
}

void hk__hash_init(struct hk__hash *hash, const struct hk_alloc *alloc)
{
	*hash = (struct hk__hash){ .alloc = alloc };
}

void hk__hash_fini(struct hk__hash *hash)
{
	hk__mem_free(hash->alloc, hash->entries, hash->room, sizeof(*hash->entries));
	hash->entries = NULL;
	hash->room = hash->count = 0;
}

static uint64_t hash_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) ^ b;

	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 29;
	return x;
}

static struct hk__hash_entry *hash_find(const struct hk__hash *hash, uint64_t key0, uint64_t key1)
{
	size_t mask = hash->room - 1;
	size_t at = (size_t)hash_mix(key0, key1) & mask;

	while (hash->entries[at].used &&
	       (hash->entries[at].key[0] != key0 || hash->entries[at].key[1] != key1))
		at = (at + 1) & mask;
	return &hash->entries[at];
}

static bool hash_grow(struct hk__hash *hash)
{
	size_t room = hash->room ? hash->room * 2 : 64;
	struct hk__hash old = *hash;

	hash->entries = hk__mem_zalloc(hash->alloc, room, sizeof(*hash->entries));
	if (!hash->entries) {
		hash->entries = old.entries;
		return false;
	}
	hash->room = room;
	for (size_t i = 0; i < old.room; i++)
		if (old.entries[i].used)
			*hash_find(hash, old.entries[i].key[0], old.entries[i].key[1]) =
				old.entries[i];
	hk__mem_free(old.alloc, old.entries, old.room, sizeof(*old.entries));
	return true;
}

struct hk__hash_entry *hk__hash_get(struct hk__hash *hash, uint64_t key0, uint64_t key1)
{
	/* At most three quarters full: linear probing stays short. */
	if (hash->count + 1 > hash->room / 4 * 3 && !hash_grow(hash))
		return NULL;
	struct hk__hash_entry *entry = hash_find(hash, key0, key1);
	if (!entry->used) {
		*entry = (struct hk__hash_entry){ { key0, key1 }, HK_NONE, 1 };
		hash->count++;
	}
	return entry;
}

struct hk__hash_entry *hk__hash_find(const struct hk__hash *hash, uint64_t key0, uint64_t key1)
{
	struct hk__hash_entry *entry = hash->count ? hash_find(hash, key0, key1) : NULL;

	return entry && entry->used ? entry : NULL;
}

void hk__hash_remove(struct hk__hash *hash, struct hk__hash_entry *entry)
{
	size_t mask = hash->room - 1, hole = (size_t)(entry - hash->entries);

	hk_assert(hole <= mask && entry->used);
	/* Who stands behind it, and was pushed on by it, moves up. */
	for (size_t at = (hole + 1) & mask; hash->entries[at].used; at = (at + 1) & mask) {
		const uint64_t *key = hash->entries[at].key;
		size_t home = (size_t)hash_mix(key[0], key[1]) & mask;

		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		hash->entries[hole] = hash->entries[at];
		hole = at;
	}
	hash->entries[hole].used = 0;
	hash->count--;
}
