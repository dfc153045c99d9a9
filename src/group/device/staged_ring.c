/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staged_ring.c - where the slots of two ranks are.
 *
 * They lie in the receiver's segment, behind a directory in which whoever comes first
 * writes the pair's key. Entries stay, also those of groups that are gone: so who
 * finds no room for a key knows that the other finds none either.
 */
#include "group/device/staged.h"

#include <sys/mman.h>

#define DIRECTORY_BYTES ((size_t)64 << 10)

/* Both ranks have a GPU, as far as they know, and share memory. */
static bool ranks_share(const struct hk_group *group, uint32_t from, uint32_t to)
{
	const struct hk__world *world = group->world;
	const struct hk__boot_peer *peers = world->boot.peers;
	uint32_t a = hk__chans_rank(&group->chans, from), b = hk__chans_rank(&group->chans, to);

	if (!world->shm || world->commons)
		return world->shm;
	return peers && peers[a].node == peers[b].node && (peers[a].card.flags & HK__CARD_GPU) &&
	       (peers[b].card.flags & HK__CARD_GPU);
}

struct hk__ring *hk__ring_find(struct hk_group *group, uint32_t from, uint32_t to)
{
	uint32_t sender = hk__chans_rank(&group->chans, from);
	uint64_t key = ((uint64_t)group->chans.context + 1) << 32 | sender;
	size_t bytes;
	char *area =
		ranks_share(group, from, to)
			? hk__world_rings(group->world, hk__chans_rank(&group->chans, to), &bytes)
			: NULL;

	if (!area)
		return NULL;
	uint64_t *keys = (uint64_t *)(void *)area;
	size_t rings = (bytes - DIRECTORY_BYTES) / HK__RING_BYTES;
	hk_assert(rings * sizeof(*keys) <= DIRECTORY_BYTES);
	for (size_t i = 0; i < rings; i++) {
		uint64_t found = 0;

		/* The other rank does the same; one of both writes, and the other finds it. */
		if (__atomic_compare_exchange_n(&keys[i], &found, key, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) ||
		    found == key)
			return (struct hk__ring *)(void *)(area + DIRECTORY_BYTES +
							   i * HK__RING_BYTES);
	}
	return NULL;
}

void hk__ring_drop(struct hk__ring *ring)
{
	(void)madvise(ring, HK__RING_BYTES, MADV_REMOVE); /* or they stay until the world ends */
}
