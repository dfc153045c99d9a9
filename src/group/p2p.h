/* SPDX-License-Identifier: Apache-2.0 */
/*
 * p2p.h - point to point: which channel a send or recv goes by.
 *
 * Tags are without number, and channels are not. Who receives decides, when a
 * recv is posted. A few tags of each peer have a channel of their own, by which
 * a sender may run ahead. All others share one channel from rank to rank, by
 * rendezvous: a message enters it when its recv is posted, and not before. So
 * no message stands before another that is waited for, and none is stored.
 *
 *	receiver to sender, in the order of recvs (control channel):
 *		OWN tag		messages of this tag have a channel, from now on
 *		READY tag	one recv of this tag is posted
 *	sender to receiver (shared channel), one message after the other:
 *		tag, bytes, then the bytes themselves, slot by slot
 *
 * A sender matches READY with its sends of the tag, in order; those after them
 * wait for the next READY, or go by the channel that OWN announced. What is kept
 * for a tag without a channel is one number for each recv that waits for a send.
 */
#ifndef HK_GROUP_P2P_H
#define HK_GROUP_P2P_H

#include "exec/chans.h"

struct hk_request;

#define HK__P2P_OWN_SOON 8u	/* tags of a peer that have a channel at their first recv, */
#define HK__P2P_OWN_MAX 16u	/* and with those that come again soon */
#define HK__P2P_OWN_ALL 1024u	/* of all peers of a group */

struct hk__p2p {
	struct hk__array peers;		/* struct hk__p2p_peer * */
	struct hk__hash index;		/* of them, by rank */
	struct hk__hash ready;		/* by rank and tag: recvs of a peer without a send yet */
	uint32_t own;			/* tags that this rank receives by a channel of their own */
	uint32_t unsaid;		/* to any peer */
};

/* Of a request. */
struct hk__p2p_place {
	bool posted;			/* a recv: its peer knows, or will */
	bool matched;			/* a send: with a recv, that waits for it */
	bool shared;			/* the shared channel is this request's now */
	uint64_t turn;			/* of a send that is matched */
};

void hk__p2p_init(struct hk__p2p *p2p, const struct hk_alloc *alloc);
void hk__p2p_fini(struct hk__p2p *p2p);
/* Says what could not be said before; first in each pass. */
enum hk_status hk__p2p_say(struct hk__p2p *p2p, bool *moved);
/*
 * HK_OK: request->transfer.chan takes its messages now. HK_INPROGRESS: call again.
 * HK_ELIMIT: there is no channel for it, and nothing was begun.
 */
enum hk_status hk__p2p_begin(struct hk_request *request, bool *moved);
/* All its messages are through; may be called twice. */
void hk__p2p_end(struct hk_request *request);

#endif
