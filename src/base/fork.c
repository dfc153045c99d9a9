/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.c - descriptors of the library, as bits. The child's handler runs where only
 * async-signal-safe functions may: it loads, closes and stores, and unlocks what
 * its own thread locked in prepare.
 */
#include "base/fork.h"

#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#define CHUNK_WORDS 512u
#define CHUNK_FDS (CHUNK_WORDS * 64u)
#define CHUNKS 1024u /* 2^25 descriptors; systems allow 2^20 unless told otherwise */

uint32_t hk__fork_depth;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t *chunks[CHUNKS]; /* NULL: none of these is noted */

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void fork_child(void)
{
	hk__fork_depth++;
	for (uint32_t c = 0; c < CHUNKS; c++) {
		for (uint32_t w = 0; chunks[c] && w < CHUNK_WORDS; w++) {
			uint64_t word = chunks[c][w];

			for (; word; word &= word - 1)
				(void)close((int)(c * CHUNK_FDS + w * 64 +
						  (uint32_t)__builtin_ctzll(word)));
			chunks[c][w] = 0;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void fork_register(void)
{
	/* Without memory a child keeps descriptors, as it would without all this. */
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void hk__fork_watch(void)
{
	(void)pthread_once(&once, fork_register);
}

void hk__fork_hold(void)
{
	hk__fork_watch();
	pthread_mutex_lock(&lock);
}

void hk__fork_release(void)
{
	pthread_mutex_unlock(&lock);
}

/* The word that has its bit; NULL: there is none. */
static uint64_t *fd_word(int fd)
{
	uint32_t chunk = (uint32_t)fd / CHUNK_FDS;

	if (chunk >= CHUNKS || !chunks[chunk])
		return NULL;
	return &chunks[chunk][(uint32_t)fd % CHUNK_FDS / 64];
}

int hk__fd_note(int fd)
{
	uint32_t chunk = (uint32_t)fd / CHUNK_FDS;

	if (fd < 0)
		return fd;
	if (chunk < CHUNKS && !chunks[chunk])
		chunks[chunk] = hk__mem_zalloc(&hk__alloc_default, CHUNK_WORDS, sizeof(uint64_t));
	uint64_t *word = fd_word(fd);
	if (!word) {
		(void)close(fd);
		errno = ENOMEM;
		return -1;
	}
	*word |= UINT64_C(1) << (uint32_t)fd % 64;
	return fd;
}

int hk__fd_opened(int fd)
{
	fd = hk__fd_note(fd);
	hk__fork_release();
	return fd;
}

void hk__fd_close(int fd)
{
	if (fd < 0)
		return;
	hk__fork_hold();
	uint64_t *word = fd_word(fd);
	if (word)
		*word &= ~(UINT64_C(1) << (uint32_t)fd % 64);
	(void)close(fd);
	hk__fork_release();
}
