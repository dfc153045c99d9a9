/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rma.h - the one-sided part of the transport contract: ranks write, read and
 * update memory of each other.
 *
 *   region  memory of a rank that others may reach, and the key they need
 *   remote  a region of a peer, as this rank reaches it
 *   queue   operations that are ordered, and known to have landed, together: a
 *           context of the user's
 *
 * A remote has a table of operations, by how its memory is reached:
 *
 *   MEMORY    by loads and stores: memory.c. Nothing is asked of the peer.
 *   MESSAGES  by messages on channels of any net, which the peer applies when it
 *             polls: message.c and apply.c. This is the one place where what a
 *             transport cannot do by itself is emulated.
 *
 * start     begins an operation. HK_OK: it is on its way, and what it reads from this
 *           rank's memory was read. HK_INPROGRESS: there is no slot for it now; poll,
 *           and call again with the same operation, which remembers how far it came.
 *
 * Operations of a queue to one peer by messages land in the order of their calls, and
 * those by memory do before start returns, so a fence is only needed between the two.
 * An atomic is one instruction of a processor of the target's host by either way, so all
 * of them are atomic to each other.
 *
 * A region that was removed is not touched any more when remove returns. A request that
 * names no region, has a wrong key or goes beyond its end changes nothing and is refused:
 * its sender learns why (hk__rma_poll). No value of a request or reply is used unchecked.
 *
 * One thread at a time uses an engine; what is reached by memory needs none.
 */
#ifndef HK_NET_RMA_RMA_H
#define HK_NET_RMA_RMA_H

#include "net/net.h"

#include <hocket/type.h>

#include <string.h>

enum hk_reach {
	HK_REACH_NONE,
	HK_REACH_MEMORY,
	HK_REACH_MESSAGES
};

/* What a peer needs to reach a region; made of random numbers. */
struct hk_region_key {
	uint64_t words[2];
};

enum hk_rma_what {
	HK_RMA_PUT,
	HK_RMA_GET,
	HK_RMA_AMO
};

/* One operation; `at`, `left`, `got` and `begun` are the engine's, and begin as zero. */
struct hk_rma_op {
	enum hk_rma_what what;
	uint64_t offset;
	union {
		const void *src;	/* PUT */
		void *dst;		/* GET */
	};
	uint64_t len;
	enum hk_amo amo;
	uint32_t width;			/* 4 or 8 */
	uint64_t value, compare;
	uint64_t *old_out;		/* NULL: the old value is not wanted */
	/* Set once what was fetched is here; NULL: nobody asks. */
	bool *done;
	bool later;			/* may wait for company before it is sent */
	uint64_t at;			/* bytes that were sent, or asked for */
};

struct hk_remote;
struct hk_queue;

struct hk_remote_ops {
	size_t size;			/* sizeof the table */
	const char *name;
	enum hk_reach reach;
	uint32_t widths;		/* of atomics, added up: 4 and 8 */
	enum hk_status (*start)(struct hk_remote *remote, struct hk_queue *queue,
				struct hk_rma_op *op);
};

struct hk_remote {
	const struct hk_remote_ops *ops;
	uint64_t bytes;
	char *at;			/* MEMORY: where it is in this process; else NULL */
	struct hk__rma *rma;		/* MESSAGES: of the engine, */
	uint32_t peer;			/* whose region it is, */
	uint32_t id;			/* which of that peer's, */
	struct hk_region_key key;	/* and its key */
};

/* ---- by loads and stores (memory.c) ---- */

extern const struct hk_remote_ops hk__remote_memory;

/* The old value. */
uint64_t hk__word_update(void *at, const struct hk_rma_op *op);
/* Whether a word of 1, 2, 4 or 8 bytes compares so, and its value. */
struct hk_word {
	const void *at;
	uint32_t width;
	bool is_signed;
	enum hk_cmp cmp;
	uint64_t value;
};
bool hk__word_compares(const struct hk_word *word, uint64_t *seen_out);

/* A word is stored whole, as who polls it expects. */
static inline void hk__bytes_store(char *to, const void *from, size_t len)
{
	if (len == 8 && (uintptr_t)to % 8 == 0) {
		uint64_t word;

		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
	} else if (len == 4 && (uintptr_t)to % 4 == 0) {
		uint32_t word;

		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint32_t *)(void *)to, word, __ATOMIC_RELEASE);
	} else if (len) {
		memcpy(to, from, len);
	}
}

/* Likewise. */
static inline void hk__bytes_load(void *to, const char *from, size_t len)
{
	if (len == 8 && (uintptr_t)from % 8 == 0) {
		uint64_t word =
			__atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);

		memcpy(to, &word, sizeof(word));
	} else if (len == 4 && (uintptr_t)from % 4 == 0) {
		uint32_t word =
			__atomic_load_n((const uint32_t *)(const void *)from, __ATOMIC_ACQUIRE);

		memcpy(to, &word, sizeof(word));
	} else if (len) {
		memcpy(to, from, len);
	}
}

static inline enum hk_status hk__remote_start(struct hk_remote *remote, struct hk_queue *queue,
					      struct hk_rma_op *op)
{
	return remote->ops->start(remote, queue, op);
}

/* ---- by messages (message.c, apply.c) ---- */

struct hk__rma_spec {
	uint32_t n;			/* ranks, as users count them */
	/*
	 * The channel to (sends) or from a peer, for requests or for replies; borrowed, and
	 * closed by its owner after the engine was destroyed.
	 */
	enum hk_status (*open)(void *ctx, uint32_t peer, bool sends, bool replies,
			       struct hk_chan **chan_out);
	void *ctx;
	const struct hk_alloc *alloc;
};

#define HK_RMA_SLOTS 8u
#define HK_RMA_SLOT_BYTES (128u << 10)

extern const struct hk_remote_ops hk__remote_messages;

enum hk_status hk__rma_create(const struct hk__rma_spec *spec, struct hk__rma **rma_out);
void hk__rma_destroy(struct hk__rma *rma);	/* accepts NULL */
/* From now on requests of the peer `at` are served, and may be sent to it. */
enum hk_status hk__rma_meet(struct hk__rma *rma, uint32_t at);

/* Memory that peers may reach from now on. HK_ENOMEM, HK_EIO (no random numbers). */
enum hk_status hk__rma_region_add(struct hk__rma *rma, void *at, uint64_t bytes, uint32_t *id_out,
				  struct hk_region_key *key_out);
void hk__rma_region_remove(struct hk__rma *rma, uint32_t id);

/*
 * Moves everything on. The status of a channel, with its net's line; HK_EIO: a peer sent
 * what is no request or reply; HK_EINVAL: a peer refused a request. The last two say why,
 * and name the peer.
 */
enum hk_status hk__rma_poll(struct hk__rma *rma, bool *moved, struct hk_why *why,
			    uint32_t *peer_out);
/* What waits for replies is given up: no memory of callers is written any more. */
void hk__rma_cancel(struct hk__rma *rma);

enum hk_status hk__queue_create(const struct hk_alloc *alloc, uint32_t n,
				struct hk_queue **queue_out);
void hk__queue_destroy(struct hk_queue *queue);	/* accepts NULL; nothing of it is on its way */
/* Whether all of it has landed, at that peer or (HK_NONE) at all; the first where not. */
bool hk__queue_landed(const struct hk__rma *rma, const struct hk_queue *queue, uint32_t peer,
		      uint32_t *late_out);
/* Whether it ever sent to that peer by messages. */
bool hk__queue_used(const struct hk_queue *queue);

#endif
