/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - what HOCKET_CHECK=1 adds: every access is of one allocated block, arguments do
 * not overlap, and PEs pass equal arguments where they must. The heap is symmetric, so this
 * PE's own blocks tell whether an address is allocated on any other.
 */
#include "sma.h"

#include <stdlib.h>

struct block {
	uintptr_t start;
	size_t bytes;
	bool freed;
};

static struct block *blocks;
static size_t count;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

bool hk__sma_block_add(void *at, size_t len)
{
	const uintptr_t start = (uintptr_t)at;
	struct block *grown;
	size_t kept = 0;

	pthread_rwlock_wrlock(&lock);
	grown = realloc(blocks, (count + 1) * sizeof(*blocks));
	if (grown) {
		blocks = grown;
		/* What was freed there is forgotten. */
		for (size_t i = 0; i < count; i++) {
			if (blocks[i].start >= start + len ||
			    blocks[i].start + blocks[i].bytes <= start)
				blocks[kept++] = blocks[i];
		}
		blocks[kept++] = (struct block){ start, len, false };
		count = kept;
	}
	pthread_rwlock_unlock(&lock);
	return grown != NULL;
}

void hk__sma_block_remove(void *at)
{
	pthread_rwlock_wrlock(&lock);
	for (size_t i = 0; i < count; i++) {
		if (blocks[i].start == (uintptr_t)at)
			blocks[i].freed = true;
	}
	pthread_rwlock_unlock(&lock);
}

void hk__sma_blocks_drop(void)
{
	pthread_rwlock_wrlock(&lock);
	free(blocks);
	blocks = NULL;
	count = 0;
	pthread_rwlock_unlock(&lock);
}

void hk__sma_check_block(const void *addr, size_t len, const char *call)
{
	const uintptr_t start = (uintptr_t)addr;
	struct block found = { 0 };

	pthread_rwlock_rdlock(&lock);
	for (size_t i = 0; i < count; i++) {
		if (start - blocks[i].start < blocks[i].bytes)
			found = blocks[i];
	}
	pthread_rwlock_unlock(&lock);
	if (found.bytes == 0)
		hk__sma_die(call, "%p lies in no allocated block of the symmetric heap", addr);
	if (found.freed)
		hk__sma_die(call, "%p lies in a block of %zu bytes that was freed", addr,
			    found.bytes);
	if (len > found.bytes - (start - found.start))
		hk__sma_die(call, "%zu bytes from %p on go %zu bytes past the end of their block",
			    len, addr, len - (found.bytes - (start - found.start)));
}

void hk__sma_check_overlap(const void *a, const void *b, size_t len, const char *call)
{
	if ((uintptr_t)a - (uintptr_t)b < len || (uintptr_t)b - (uintptr_t)a < len)
		hk__sma_die(call, "dest (%p) and source (%p), of %zu bytes, overlap", a, b, len);
}

void hk__sma_check_equal(struct shmemx_team *team, const char *call, const uint64_t *words,
			 uint32_t n)
{
	enum {
		MAX = 8
	};
	uint64_t mine[MAX] = { 0 };
	uint64_t *all = calloc(team->n, sizeof(mine));
	enum hk_status status;

	if (!all)
		hk__sma_die(call, "no memory to compare arguments with");
	/* The call's name, as a number, is the first of them. */
	for (const char *at = call; *at; at++)
		mine[0] = mine[0] * 31 + (unsigned char)*at;
	memcpy(mine + 1, words, n * sizeof(*words));
	status = hk_allgather(team->group, mine, all, MAX, HK_TYPE_UINT64, NULL);
	if (status != HK_OK)
		hk__sma_fail(call, team->group, status);
	for (uint32_t pe = 0; pe < team->n; pe++) {
		const uint64_t *theirs = all + (size_t)pe * MAX;

		if (theirs[0] != mine[0])
			hk__sma_die(call, "PE %u is in another call", team->pes[pe]);
		for (uint32_t i = 1; i <= n; i++) {
			if (theirs[i] != mine[i])
				hk__sma_die(call,
					    "PE %u passes another argument: %llu where this one "
					    "passes %llu (addresses count from their space's "
					    "start)",
					    team->pes[pe], (unsigned long long)theirs[i],
					    (unsigned long long)mine[i]);
		}
	}
	free(all);
}
