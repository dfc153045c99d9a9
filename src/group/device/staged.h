/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staged.h - calls on device memory where ranks do not reach each other's: by memory
 * of the hosts, and their nets.
 *
 * A call enqueues, on its stream: a copy to the host, a function that tells the
 * progress thread, a wait for a word that this thread writes, and a copy back. In
 * between it is a request like any other, in the group's order of calls, but held
 * until the stream has come to it: ranks with buffers of the host take part by
 * ordinary calls. A collective is one such request, whatever its size, so all ranks
 * cut alike.
 *
 * Messages go in chunks, so that both ways of a device and the net are busy at once
 * (staged_move.c): between processes of a host that both have a GPU through slots
 * that both map (staged_ring.c), otherwise through channels, as the host's own do.
 */
#ifndef HK_GROUP_DEVICE_STAGED_H
#define HK_GROUP_DEVICE_STAGED_H

#include "group/group.h"

#include "gpu/streams.h"

#define HK__STAGED_CHUNK ((size_t)4 << 20)

/* One call, from its API call until both its stream and its request are past it. */
struct hk__staged {
	struct hk_request request;
	struct hk__staged *next;	/* of those that fly, or are free */
	struct hk__staging *staging;
	uint32_t *mark;			/* a word that the stream waits for, */
	hk__cu_ptr mark_at;
	uint32_t turn;			/* until it is this */
	_Atomic bool begun;		/* the stream has come to it, */
	_Atomic bool told;		/* and has done with it */
	bool over;
	uint64_t *counts;		/* 2 n; copies of the caller's */
	uint64_t factor;

	/* A message. */
	char *at;
	uint64_t bytes;
	struct hk__pipe *pipe;		/* NULL: not begun */
	uint64_t chunks;
	uint64_t copied;		/* chunks that a copy was enqueued for */
	uint64_t moved;			/* channel: chunks that went through it */
	bool noted;			/* ring: the note of it is written, or read */
	bool moving;			/* channel: a chunk is on its way */
	uint32_t last;			/* its last chunk's number */
};

/* What a batch's streams have to wait for. */
struct hk__staged_wait {
	hk__cu_stream stream;
	hk__cu_ptr at;
	uint32_t turn;
};

/* Of a rank in a group. */
struct hk__staging {
	struct hk_group *group;
	struct hk_net *net;		/* the world's */
	struct hk__streams *streams;
	struct hk__array slabs;		/* struct hk__staged_slab */
	struct hk__staged *free, *flying, *flying_tail;
	struct hk__array waits;		/* struct hk__staged_wait: of the batch */
	struct hk__array bufs;		/* struct hk__staged_buf: the last one is used */
	struct hk__pipe *pipes;		/* staged_move.c's */
};

/* ---- staged.c: calls ---- */

enum hk_status hk__staged_call(struct hk_group *group, const struct hk_request *request,
			       const struct hk_opts *opts);
/* A send or a receive; of a batch: its stream waits for it at the end of the batch alone. */
enum hk_status hk__staged_transfer(struct hk_group *group, const struct hk_request *request,
				   const struct hk_opts *opts, bool batched);
/* The batch's streams wait for what it began. */
enum hk_status hk__staged_batch_end(struct hk_group *group);
/* Waits until nothing is under way; what is not over in time fails the group. */
void hk__staged_settle(struct hk_group *group);
void hk__staged_free(struct hk_group *group);

/*
 * For tests: calls and messages of this rank have so many turns, chunks and notes behind
 * them. Ranks of all pipes are told the same, while nothing is under way.
 */
void hk__staged_set_numbers(struct hk_group *group, uint32_t number);
/* staged_move.c's part of it. */
void hk__pipes_set_numbers(struct hk__staging *staging, uint32_t number);

/* ---- for progress.c ---- */

/* Whether its stream has come to it; then it is held no longer. */
bool hk__staged_begun(struct hk_request *request);
/* The stream goes on. */
void hk__staged_over(struct hk_request *request);
/* staged_move.c: moves a message on. */
enum hk_status hk__staged_poll(struct hk_request *request, bool *moved);
void hk__staged_close(struct hk__staging *staging);

/* ---- staged_ring.c: slots in memory that two ranks map ---- */

#define HK__RING_SLOTS 16u
#define HK__RING_NOTES 64u

/* The number of the chunk, from 1 on, that a device has copied last. */
struct hk__ring_word {
	_Alignas(64) uint32_t chunk;
};

struct hk__ring {
	struct hk__ring_word ready[HK__RING_SLOTS]; /* into the slot: by the sender's */
	struct hk__ring_word free[HK__RING_SLOTS];  /* out of it: by the receiver's */
	_Alignas(64) uint32_t posted;	/* messages so far: by the sender */
	_Alignas(64) uint32_t taken;	/* by the receiver */
	struct hk__ring_note {
		uint64_t bytes;
		uint32_t tag;
	} notes[HK__RING_NOTES];
};

#define HK__RING_HEAD ((size_t)64 << 10)
#define HK__RING_BYTES (HK__RING_HEAD + HK__RING_SLOTS * HK__STAGED_CHUNK)

/*
 * The ring from one rank of the group to another, of which one is this; the same
 * for both. NULL: there is none, for both.
 */
struct hk__ring *hk__ring_find(struct hk_group *group, uint32_t from, uint32_t to);
static inline char *hk__ring_slot(struct hk__ring *ring, uint32_t number)
{
	return (char *)ring + HK__RING_HEAD + number % HK__RING_SLOTS * HK__STAGED_CHUNK;
}
/* Its pages go back; nobody uses it any more, and nobody will. */
void hk__ring_drop(struct hk__ring *ring);

#endif
