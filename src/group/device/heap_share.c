/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_share.c - what ranks of one process share of a heap: one range of addresses.
 *
 * Each comes here before it meets the others, so whatever becomes of their meeting, the
 * last to leave knows that it is the last.
 */
#include "group/device/heap.h"

#include <string.h>

struct hk__heap_share {
	struct hk__heap_share *next;
	const struct hk_alloc *alloc;
	struct hk__region *region; /* NULL: not mapped */
	uint32_t refs;		   /* ranks */
	/* Which heap: no two that share a rank have all of these. */
	unsigned char run[HK__KEY_BYTES];
	uint64_t context, number;
	uint32_t first;
};

/* Of this process; taken when heaps are made, and when they end. */
static struct hk__heap_share *shares;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool share_is(const struct hk__heap_share *share, const struct hk_group *group)
{
	return memcmp(share->run, group->world->boot.key, sizeof(share->run)) == 0 &&
	       share->context == group->chans.context &&
	       share->first == hk__chans_rank(&group->chans, 0) &&
	       share->number == group->heap_number;
}

static struct hk__heap_share *share_make(const struct hk_group *group)
{
	struct hk__heap_share *share = hk__mem_zalloc(group->alloc, 1, sizeof(*share));

	if (!share)
		return NULL;
	share->alloc = group->alloc;
	memcpy(share->run, group->world->boot.key, sizeof(share->run));
	share->context = group->chans.context;
	share->first = hk__chans_rank(&group->chans, 0);
	share->number = group->heap_number;
	share->next = shares;
	shares = share;
	return share;
}

struct hk__heap_share *hk__heap_share_get(struct hk_group *group)
{
	group->heap_number++;
	pthread_mutex_lock(&lock);
	struct hk__heap_share *share = shares;
	while (share && !share_is(share, group))
		share = share->next;
	if (!share)
		share = share_make(group);
	if (share)
		share->refs++;
	pthread_mutex_unlock(&lock);
	return share;
}

void hk__heap_share_set(struct hk__heap_share *share, struct hk__region *region)
{
	pthread_mutex_lock(&lock);
	struct hk__region *before = share->region;
	share->region = region;
	pthread_mutex_unlock(&lock);
	hk__region_free(before);
}

struct hk__region *hk__heap_share_region(struct hk__heap_share *share)
{
	pthread_mutex_lock(&lock);
	struct hk__region *region = share->region;
	pthread_mutex_unlock(&lock);
	return region;
}

void hk__heap_share_put(struct hk__heap_share *share)
{
	struct hk__heap_share **link = &shares;

	if (!share)
		return;
	pthread_mutex_lock(&lock);
	bool last = --share->refs == 0;
	if (last) {
		while (*link != share)
			link = &(*link)->next;
		*link = share->next;
	}
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	hk__region_free(share->region);
	hk__mem_free(share->alloc, share, 1, sizeof(*share));
}
