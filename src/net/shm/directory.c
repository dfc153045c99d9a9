/* SPDX-License-Identifier: Apache-2.0 */
/* directory.c - where in a segment a channel lies, by its key: an open hash. */
#include "net/shm/segment.h"

static uint32_t entry_hash(uint32_t from, const struct hk_chan_key *key)
{
	uint32_t x = from * 0x9e3779b1u ^ key->from_lane * 0x85ebca77u ^
		     key->to_lane * 0xc2b2ae3du ^ hk_chan_context_hash(key);

	return (x ^ x >> 15) % SHM_ENTRIES;
}

/* Whether an entry is of that key, and what it says; it may change meanwhile. */
static bool entry_read(const struct shm_entry *entry, uint32_t from, const struct hk_chan_key *key,
		       uint32_t use, struct shm_place *place_out)
{
	bool is = atomic_load_explicit(&entry->from, memory_order_relaxed) == from &&
		  atomic_load_explicit(&entry->from_lane, memory_order_relaxed) == key->from_lane &&
		  atomic_load_explicit(&entry->to_lane, memory_order_relaxed) == key->to_lane &&
		  atomic_load_explicit(&entry->context, memory_order_relaxed) == key->context;

	place_out->slots = atomic_load_explicit(&entry->slots, memory_order_relaxed);
	place_out->slot_bytes = atomic_load_explicit(&entry->slot_bytes, memory_order_relaxed);
	/* Pairs with the releases in hk__shm_entry_write: a new place shows a new use. */
	place_out->at = atomic_load_explicit(&entry->at, memory_order_acquire);
	return is && atomic_load_explicit(&entry->use, memory_order_relaxed) == use;
}

struct shm_entry *hk__shm_entry_find(struct shm_header *header, uint32_t from,
				     const struct hk_chan_key *key, struct shm_place *place_out,
				     struct shm_entry **free_out)
{
	struct shm_entry *unused = NULL, *found = NULL;
	uint32_t first = entry_hash(from, key);

	for (uint32_t i = 0; i < SHM_ENTRIES && !found; i++) {
		struct shm_entry *entry = &header->entries[(first + i) % SHM_ENTRIES];
		/* Pairs with the release in hk__shm_entry_write. */
		uint32_t use = atomic_load_explicit(&entry->use, memory_order_acquire);

		if (use % 2 && entry_read(entry, from, key, use, place_out))
			found = entry;
		else if (use % 2 == 0 && !unused)
			unused = entry;
		if (use == 0)
			break;
	}
	if (free_out)
		*free_out = unused;
	return found;
}

void hk__shm_entry_write(struct shm_entry *entry, const struct hk_chan_spec *spec, uint64_t at)
{
	uint32_t use = atomic_load_explicit(&entry->use, memory_order_relaxed);

	atomic_store_explicit(&entry->from, spec->key.peer, memory_order_relaxed);
	atomic_store_explicit(&entry->from_lane, spec->key.from_lane, memory_order_relaxed);
	atomic_store_explicit(&entry->to_lane, spec->key.to_lane, memory_order_relaxed);
	atomic_store_explicit(&entry->context, spec->key.context, memory_order_relaxed);
	atomic_store_explicit(&entry->slots, spec->slots, memory_order_relaxed);
	atomic_store_explicit(&entry->slot_bytes, spec->slot_bytes, memory_order_relaxed);
	/* Pair with the acquires in entry_read and hk__shm_entry_find. */
	atomic_store_explicit(&entry->at, at, memory_order_release);
	atomic_store_explicit(&entry->use, use + 1, memory_order_release);
}

/* Where it comes round it skips 0: a search ends at an entry that never was. */
void hk__shm_entry_clear(struct shm_entry *entry)
{
	uint32_t use = atomic_load_explicit(&entry->use, memory_order_relaxed) + 1;

	atomic_store_explicit(&entry->use, use ? use : 2, memory_order_release);
}
