/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_write.h - what the writers of a flight recorder share: recorder.c tells
 * it of groups and calls, record_now.c of where things stand and of failures.
 */
#ifndef HK_GROUP_RECORD_RECORD_WRITE_H
#define HK_GROUP_RECORD_RECORD_WRITE_H

#include "group/record/recorder.h"

#include <string.h>

#define HK__RING 64u		/* entries of a row */

struct hk__recorder {
	const struct hk_alloc *alloc;
	struct hk_record *at;
	size_t bytes;
	int fd;
	bool files; /* written when a group fails */
	bool wrote; /* one has been */
	char dir[256];
	uint32_t looks;
};

/* ---- words that others read ---- */

static inline void seq_begin(uint32_t *seq)
{
	__atomic_store_n(seq, *seq | 1u, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* pairs with piece_copy in record.c */
}

static inline void seq_end(uint32_t *seq)
{
	__atomic_store_n(seq, (*seq | 1u) + 1u, __ATOMIC_RELEASE);
}

static inline void number_set(uint64_t *number, uint64_t value)
{
	__atomic_store_n(number, value, __ATOMIC_RELAXED);
}

static inline void text_set(char *to, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memcpy(to, text, len);
	to[len] = '\0';
}

static inline struct hk_record_op *entry_newest(struct hk_record_group *row)
{
	return row->entries ? &hk__record_ring(row)[(row->entries - 1) % HK__RING] : NULL;
}

#endif
