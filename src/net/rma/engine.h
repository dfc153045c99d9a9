/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - one-sided operations by messages: what message.c (who asks) and
 * apply.c (who is asked) share, and what they say to each other.
 *
 * Two channels each way: requests and replies. A message holds one or more records,
 * each of a multiple of 8 bytes:
 *
 *	requests   | request | data of a PUT | request | ...
 *	replies    | reply | data of a GET | reply | ...
 *
 * Requests of a rank are served in their order. Serving may need a slot for a reply, and
 * waits while there is none; taking replies never needs a slot, so nobody waits in a
 * circle. How many requests were applied is said once for all that were served in one
 * go: by the time that a rank asks for it, it has mostly been told.
 */
#ifndef HK_NET_RMA_ENGINE_H
#define HK_NET_RMA_ENGINE_H

#include "net/rma/rma.h"

#include <string.h>

/* Hosts of one byte order: x86-64. */
struct rma_request {
	uint8_t what;			/* enum hk_rma_what */
	uint8_t amo;
	uint8_t width;
	uint8_t fetches;		/* AMO: the old value is wanted */
	uint32_t id;			/* of the region */
	struct hk_region_key key;
	uint64_t offset, len;
	uint64_t value, compare;
	uint64_t tag;			/* of what waits for the reply */
};
_Static_assert(sizeof(struct rma_request) == 64, "a request is a line");

enum rma_says {
	RMA_APPLIED = 1,		/* value: so many requests so far */
	RMA_VALUE,			/* value: what an atomic found */
	RMA_DATA,			/* value: offset in what was asked for; len bytes follow */
	RMA_REFUSED			/* value: enum rma_refusal, of a request that counts as applied */
};

struct rma_reply {
	uint32_t says;
	uint32_t len;
	uint64_t tag;
	uint64_t value;
};
_Static_assert(sizeof(struct rma_reply) % 8 == 0, "records are aligned");

enum rma_refusal {
	RMA_NO_REGION = 1,		/* never there, removed, or the key is wrong */
	RMA_BEYOND,			/* its end, or an atomic that is not aligned */
};

/* Records that wait for company, or for a slot. */
#define RMA_STAGE_BYTES 4096u
/* Data of that many bytes are sent at once. */
#define RMA_STAGE_DATA 512u

struct rma_box {
	struct hk_chan *chan;
	char *stage;			/* NULL: nothing was staged yet */
	uint32_t len;
};

struct rma_peer {
	bool met;
	struct rma_box requests, replies; /* to it */
	struct hk_chan *asks, *answers;	  /* its requests and replies */
	uint64_t sent;			/* requests to it, */
	uint64_t landed;		/* and how many it has applied */
	uint64_t applied, told;		/* of its own requests */
	uint32_t served;		/* bytes of its oldest message of requests, */
	uint64_t answered;		/* and of the GET that is next */
};

/* A fetch on its way. */
struct rma_fetch {
	struct hk_queue *queue;		/* NULL: free */
	uint32_t peer;
	uint32_t turn;			/* how often the place was used: part of its tag */
	char *dst;			/* GET */
	uint64_t at, len;		/* bytes that came, of how many */
	uint64_t *old_out;		/* AMO */
	bool *done;
};

struct rma_region {
	char *at;			/* NULL: free */
	uint64_t bytes;
	struct hk_region_key key;
};

struct hk__rma {
	struct hk__rma_spec spec;
	const struct hk_alloc *alloc;
	struct rma_peer *peers;
	struct hk__array regions;	/* struct rma_region, by id */
	struct hk__array fetches;	/* struct rma_fetch */
	struct hk__array unused;	/* uint32_t: free places of fetches */
};

/* By peer: its requests up to that number are of the queue, or of others before it. */
struct hk_queue {
	const struct hk_alloc *alloc;
	uint32_t n;
	uint64_t *last;			/* NULL: nothing was sent by messages */
	uint64_t *fetches;		/* by peer: on their way */
};

static inline uint64_t rma_round(uint64_t len)
{
	return (len + 7) / 8 * 8;
}

/* Room for a record that is staged; NULL, with HK_OK: for now there is none. */
enum hk_status hk__rma_stage(struct hk__rma *rma, struct rma_box *box, uint32_t len,
			     void **record_out);
/* Sends what is staged; *sent_out false: there is no slot. */
enum hk_status hk__rma_post(struct rma_box *box, bool *sent_out);
/* A message of its own, behind what is staged; NULL: there is no slot. Then: posted. */
enum hk_status hk__rma_reserve(struct rma_box *box, uint32_t len, void **record_out);

/* apply.c: requests of the peer `at`. message.c: its replies. */
enum hk_status hk__rma_serve(struct hk__rma *rma, uint32_t at, bool *moved, struct hk_why *why);
enum hk_status hk__rma_hear(struct hk__rma *rma, uint32_t at, bool *moved, struct hk_why *why);

/* For fuzzers and tests: the records of one message. *used_out: bytes that are done with. */
enum hk_status hk__rma_apply(struct hk__rma *rma, uint32_t at, const void *data, uint32_t len,
			     uint32_t *used_out, struct hk_why *why);
enum hk_status hk__rma_take(struct hk__rma *rma, uint32_t peer, const void *data, uint32_t len,
			    struct hk_why *why);

#endif
