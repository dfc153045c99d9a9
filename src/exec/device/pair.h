/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair.h - sends and receives of a rank, as a GPU performs them: one launch for a
 * list of them, which move on together and wait for nobody's order.
 *
 * Messages of one rank to another are numbered; message k of the one is message k
 * of the other. How a message goes depends on its length alone:
 *
 *	small		through places in the receiver's segment, by turns; every
 *			word carries its own flag, so nothing is waited for but the
 *			data. Parts of all messages of a launch go at once, each by a
 *			warp of its own (pair_small.h)
 *	by buffers	pieces of the message lie in the buffers of slots, piece j of
 *			message k in channel (k + j) % CHANNELS; the receiver copies
 *			them out
 *	in place	where ranks reach each other's buffers: the receiver says
 *			where it wants it (a mail to the sender), all blocks of the
 *			sender copy a part, and a slot without a buffer says that all
 *			of it is there
 *
 * Channels are rings of slots in the receiver's segment; every block of a launch sends
 * and receives by turns, and looks after some channels of all peers. All is counted on
 * the device, so that a graph can be replayed. Read by the host and by the device.
 */
#ifndef HK_EXEC_DEVICE_PAIR_H
#define HK_EXEC_DEVICE_PAIR_H

#include "exec/device/flat.h"

#include <stdbool.h>

#define HK__PAIR_CHANNELS 8u
#define HK__PAIR_SLOTS 4u	/* of a channel */
#define HK__PAIR_BLOCKS 64u	/* of a rank */
#define HK__PAIR_FEW 96u	/* operations of a launch whose arguments are 4 KiB */
#define HK__PAIR_MANY 1024u	/* and of one with 32 KiB: CUDA 12.1 */
#define HK__PAIR_END 0xffffu

/* A slot holds a buffer of this, and of what is needed to lie like the message. */
#define HK__PAIR_SLACK 16u

#define HK__PAIR_PLACES 8u	/* of a pair, for small messages */
#define HK__PAIR_PART 1024u	/* bytes of a small message that a warp moves */
#define HK__PAIR_PARTS 16u	/* of the longest small message */
#define HK__PAIR_HEAD 8u	/* words of a place, before those of the message */

enum hk__pair_kind {
	HK__PAIR_PLAIN,		/* hk_send and hk_recv */
	HK__PAIR_ALLTOALLV
};

struct hk__pair_op {
	uint64_t at;
	uint64_t bytes;
	uint32_t tag;
	uint8_t peer;
	uint8_t kind;		/* enum hk__pair_kind */
	uint16_t next;		/* operation of the same peer and direction; HK__PAIR_END */
};

/* Of an operation: those before it of the same peer and direction, and its direction. */
struct hk__pair_index {
	uint16_t before;
	uint16_t small : 15;	/* of them, small ones */
	uint16_t sends : 1;
};

/* ---- segments: a row of these, one for each peer; then the buffers of each ---- */

/* From the receiver, to the sender. */
struct hk__pair_mail {
	uint64_t at;
	uint64_t bytes, what;
	uint64_t flag;		/* message + 1 */
};

/* From the sender, to the receiver. */
struct hk__pair_slot {
	uint64_t bytes, what;	/* of all of the message */
	uint64_t skew;		/* of the piece in its buffer */
	uint64_t flag;		/* slots of the channel so far */
};

struct hk__pair_peer {
	uint64_t messages[2];			/* sent, and received */
	uint64_t small[2];			/* of them, small ones */
	uint64_t freed[HK__PAIR_PLACES];	/* by the peer: small ones sent, until this was free */
	uint32_t came[HK__PAIR_PLACES];		/* parts of a small message that came */
	/* Long messages that the peer sends: how long, by words with flags as small ones have. */
	uint64_t heads[HK__PAIR_CHANNELS][HK__PAIR_HEAD];
	uint64_t slots[2][HK__PAIR_CHANNELS];	/* the same of each channel */
	uint32_t parts[HK__PAIR_CHANNELS][HK__PAIR_SLOTS]; /* of a message: sent in place */
	uint64_t taken[HK__PAIR_CHANNELS];	/* by the peer: slots of what is sent */
	struct hk__pair_mail mail[HK__PAIR_CHANNELS][HK__PAIR_SLOTS];
	struct hk__pair_slot slot[HK__PAIR_CHANNELS][HK__PAIR_SLOTS];
};

struct hk__pair_head {
	uint32_t broken;	/* a call has failed: nothing is begun any more */
	uint32_t reported;	/* some block has said so */
	uint32_t out;		/* blocks that have ended */
	uint32_t pad[29];
};

/* ---- a call ---- */

enum hk__pair_mode {
	HK__PAIR_FAR = 1 << 0,		/* ranks on several devices */
	HK__PAIR_DIRECT = 1 << 1	/* ranks reach each other's buffers */
};

struct hk__pair_call {
	uint32_t rank, n;
	uint32_t mode;			/* enum hk__pair_mode */
	uint32_t nblocks;
	uint32_t nrecv, nsend;		/* of them, from the first: that receive, and that send */
	uint32_t nops;
	uint32_t parts;			/* of the longest small message; 0: there is none */
	uint32_t small_bytes;		/* that a small message has at most */
	uint64_t places;		/* where they begin in a segment */
	uint64_t buf_bytes;		/* of a slot, without slack */
	uint64_t part_bytes;		/* least worth a block, in place */
	uint64_t timeout_ns;		/* without anything moving */
	struct hk__flat_report *report;
	uint16_t first[2][HK__FLAT_RANKS]; /* operations: sends, and receives, by peer */
	char *segments[HK__FLAT_RANKS];
};

/* What kernels take by value. */
struct hk__pair_few {
	struct hk__pair_call call;
	struct hk__pair_op ops[HK__PAIR_FEW];
	struct hk__pair_index index[HK__PAIR_FEW];
};

struct hk__pair_many {
	struct hk__pair_call call;
	struct hk__pair_op ops[HK__PAIR_MANY];
	struct hk__pair_index index[HK__PAIR_MANY];
};

/* ---- from the host (pair.c) ---- */

struct hk__pair_order {
	bool sends;
	enum hk__pair_kind kind;
	uint32_t peer, tag;
	uint64_t at, bytes;
};

/* Of a rank's segment among so many ranks; all of it 0 at first. */
uint64_t hk__pair_segment_bytes(uint32_t n, bool direct);
/* For tests: what is kept of a peer, as so many messages each way leave it, all small. */
void hk__pair_peer_after(uint64_t messages, struct hk__pair_peer *peer_out);

/* A launch; index_out and ops_out have room for all orders. */
struct hk__pair_lists {
	struct hk__pair_call *call;
	struct hk__pair_op *ops;
	struct hk__pair_index *index;
};

/*
 * The orders of a rank as a launch: rank, n, mode, and whose they are, are given.
 * blocks: of a rank that run at the same time.
 */
void hk__pair_shape(const struct hk__pair_order *orders, uint32_t count, uint32_t blocks,
		    struct hk__pair_lists lists);
/* Whether it has small messages alone; and threads of a block of it. */
bool hk__pair_all_small(const struct hk__pair_call *call);
uint32_t hk__pair_threads(const struct hk__pair_call *call);

#endif
