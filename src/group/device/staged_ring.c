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
	return peers && peers[a].node == peers[b].node && (peers[a].info.flags & HK__RANK_GPU) &&
	       (peers[b].info.flags & HK__RANK_GPU);
}

#define RANK_BITS 24u
_Static_assert(HK_RANKS_MAX <= 1u << RANK_BITS && HK_CONTEXT_CLOCK_BITS + RANK_BITS < 64,
	       "a clock and a rank fit a word");

/* A context in two words, the clock with the sender and who read it; neither is 0. */
struct ring_key {
	uint64_t when, who;
};

/* Whether the word is that one, now or already: it never changes again. */
static bool word_claim(uint64_t *at, uint64_t word)
{
	uint64_t found = 0;

	return __atomic_compare_exchange_n(at, &found, word, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE) ||
	       found == word;
}

struct hk__ring *hk__ring_find(struct hk_group *group, uint32_t from, uint32_t to)
{
	uint32_t sender = hk__chans_rank(&group->chans, from);
	uint64_t context = group->chans.context;
	struct ring_key key = { (hk__context_clock(context) + 1) << RANK_BITS | sender,
				(context >> HK_CONTEXT_CLOCK_BITS) + 1 };
	size_t bytes;
	char *area =
		ranks_share(group, from, to)
			? hk__world_rings(group->world, hk__chans_rank(&group->chans, to), &bytes)
			: NULL;

	if (!area)
		return NULL;
	struct ring_key *keys = (struct ring_key *)(void *)area;
	size_t rings = (bytes - DIRECTORY_BYTES) / HK__RING_BYTES;
	hk_assert(rings * sizeof(*keys) <= DIRECTORY_BYTES);
	for (size_t i = 0; i < rings; i++) {
		/* The other rank does the same; one of both writes, and the other finds it. */
		if (word_claim(&keys[i].when, key.when) && word_claim(&keys[i].who, key.who))
			return (struct hk__ring *)(void *)(area + DIRECTORY_BYTES +
							   i * HK__RING_BYTES);
	}
	return NULL;
}

void hk__ring_drop(struct hk__ring *ring)
{
	(void)madvise(ring, HK__RING_BYTES, MADV_REMOVE); /* or they stay until the world ends */
}
