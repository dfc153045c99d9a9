/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - what goes over a connection, byte by byte; numbers are little-endian.
 *
 * First the greeting, in pieces of fixed size:
 *
 *	accepts  -> hello    magic, version, flags, nonce
 *	connects -> claim    magic, version, own rank, wanted rank, connection
 *	                     (none: only to see who is there), connections of a
 *	                     pair, flags, nonce, proof
 *	accepts  -> answer   proof
 *
 * then, encrypted (net/seal.h) if the flags say so, frames both ways: a line of 64 bytes, and behind DATA the message. A line
 * is more than is needed, but keeps messages aligned to lines in the buffers of
 * the system, which copies them a fifth faster then.
 *
 *	UP      the first of each side: who connected says that the answer holds;
 *	        who accepted, that it has heard so. A connection that ends before
 *	        has carried nothing, and is made again.
 *	OPEN    receiver to sender: the channel of this key is `id`; its geometry
 *	DATA    sender to receiver: a message of `len` bytes
 *	CREDIT  receiver to sender: `len` messages were released
 *	CLOSE   receiver to sender: the channel is closed; what comes is dropped
 *	CLOSED  sender to receiver: nothing comes any more, `id` may be used again
 *	NOTE    a note of `len` bytes, in the line itself
 *	BYE     this side has sent its last message: the end is no accident
 */
#ifndef HK_NET_TCP_WIRE_H
#define HK_NET_TCP_WIRE_H

#include "net/auth.h"
#include "net/net.h"

#include <string.h>

#define WIRE_MAGIC 0x686b7463u	/* "hktc" */
#define WIRE_VERSION 3u

#define WIRE_ABOUT_BYTES 28u	/* what a proof is about: the numbers of a claim */
#define WIRE_HELLO_BYTES (12u + HK__NONCE_BYTES)
#define WIRE_CLAIM_BYTES (WIRE_ABOUT_BYTES + HK__NONCE_BYTES + HK__PROOF_BYTES)
#define WIRE_ANSWER_BYTES ((unsigned)HK__PROOF_BYTES)

/* Flags: of a hello, what its rank wants and can; of a claim, what it is to be. */
#define WIRE_ENCRYPT 1u
#define WIRE_AES 2u

#define WIRE_FRAME_BYTES 64u
#define WIRE_OPEN_AT 12u	/* where in a frame the rest of an OPEN is */
#define WIRE_NOTE_AT 12u	/* and the bytes of a NOTE */

enum wire_type {
	WIRE_UP = 1,
	WIRE_OPEN,
	WIRE_DATA,
	WIRE_CREDIT,
	WIRE_CLOSE,
	WIRE_CLOSED,
	WIRE_NOTE,
	WIRE_BYE
};

struct wire_frame {
	uint32_t type;
	uint32_t kind;		/* of a message */
	uint32_t id;		/* of a channel */
	uint32_t len;		/* of a message or a note; of CREDIT: how many */
};

/* The rest of an OPEN. */
struct wire_open {
	uint32_t from_lane, to_lane;
	uint64_t context;
	uint32_t slots, slot_bytes;
};

struct wire_claim {
	uint32_t rank;
	uint32_t wants;
	uint32_t index;		/* HK_NONE: a probe */
	uint32_t conns;
	uint32_t flags;		/* WIRE_ENCRYPT, WIRE_AES */
};

static inline void wire_put(unsigned char *at, uint32_t x)
{
	at[0] = (unsigned char)x;
	at[1] = (unsigned char)(x >> 8);
	at[2] = (unsigned char)(x >> 16);
	at[3] = (unsigned char)(x >> 24);
}

static inline uint32_t wire_get(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static inline void wire_put_frame(unsigned char at[WIRE_FRAME_BYTES],
				  const struct wire_frame *frame)
{
	wire_put(at, frame->type | frame->kind << 8);
	wire_put(at + 4, frame->id);
	wire_put(at + 8, frame->len);
}

static inline struct wire_frame wire_get_frame(const unsigned char at[WIRE_FRAME_BYTES])
{
	uint32_t what = wire_get(at);

	return (struct wire_frame){ what & 0xff, what >> 8, wire_get(at + 4), wire_get(at + 8) };
}

static inline void wire_put_open(unsigned char frame[WIRE_FRAME_BYTES],
				 const struct wire_open *open)
{
	unsigned char *at = frame + WIRE_OPEN_AT;

	wire_put(at, open->from_lane);
	wire_put(at + 4, open->to_lane);
	wire_put(at + 8, (uint32_t)open->context);
	wire_put(at + 12, (uint32_t)(open->context >> 32));
	wire_put(at + 16, open->slots);
	wire_put(at + 20, open->slot_bytes);
}

static inline struct wire_open wire_get_open(const unsigned char frame[WIRE_FRAME_BYTES])
{
	const unsigned char *at = frame + WIRE_OPEN_AT;

	return (struct wire_open){ wire_get(at), wire_get(at + 4),
				   wire_get(at + 8) | (uint64_t)wire_get(at + 12) << 32,
				   wire_get(at + 16), wire_get(at + 20) };
}

_Static_assert(WIRE_OPEN_AT + 6 * 4 <= WIRE_FRAME_BYTES, "an OPEN fits a frame");
_Static_assert(WIRE_NOTE_AT + HK_NOTE_MAX <= WIRE_FRAME_BYTES, "a NOTE fits a frame");

/* Magic and version, at the head of hello and claim; in a hello, flags and nonce follow. */
static inline void wire_put_magic(unsigned char at[8])
{
	wire_put(at, WIRE_MAGIC);
	wire_put(at + 4, WIRE_VERSION);
}

static inline bool wire_is_ours(const unsigned char at[8])
{
	return wire_get(at) == WIRE_MAGIC && wire_get(at + 4) == WIRE_VERSION;
}

static inline void wire_put_hello(unsigned char at[WIRE_HELLO_BYTES], uint32_t flags,
				  const unsigned char nonce[HK__NONCE_BYTES])
{
	wire_put_magic(at);
	wire_put(at + 8, flags);
	memcpy(at + 12, nonce, HK__NONCE_BYTES);
}

static inline void wire_put_about(unsigned char at[WIRE_ABOUT_BYTES],
				  const struct wire_claim *claim)
{
	wire_put_magic(at);
	wire_put(at + 8, claim->rank);
	wire_put(at + 12, claim->wants);
	wire_put(at + 16, claim->index);
	wire_put(at + 20, claim->conns);
	wire_put(at + 24, claim->flags);
}

static inline struct wire_claim wire_get_about(const unsigned char at[WIRE_ABOUT_BYTES])
{
	return (struct wire_claim){ wire_get(at + 8), wire_get(at + 12), wire_get(at + 16),
				    wire_get(at + 20), wire_get(at + 24) };
}

#endif
