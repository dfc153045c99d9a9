/* SPDX-License-Identifier: Apache-2.0 */
/* p2p.c - point to point: channels of tags, and rendezvous on a shared one. */
#include "group/p2p.h"

#include "group/group.h"

#include <string.h>

/* Lanes that no plan has; those of tags end in HK_NONE. */
#define LANE_SHARED (HK_NONE - 1)
#define LANE_CONTROL (HK_NONE - 2)

#define SHARED_SLOTS 32u     /* for 16 small messages, that wait for one look */
#define NOTICES 32u	     /* in a message */
#define READY_MAX (1u << 24) /* recvs of all peers, ahead of sends */
#define RECENT 64u

enum {
	NOTICE_READY,
	NOTICE_OWN
};

struct p2p_notice {
	uint32_t what;
	uint32_t tag;
};

/* What goes ahead of a message on the shared channel. */
struct p2p_head {
	uint32_t tag;
	uint32_t unused;
	uint64_t bytes;
};

struct hk__p2p_peer {
	uint32_t rank;
	uint32_t pass; /* of the group, when it was last served */
	/* as who receives from it */
	struct hk_chan *says, *in; /* control to it, shared from it; NULL: not yet */
	struct hk__array notices;  /* struct p2p_notice: for it, in order */
	size_t said;		   /* of them */
	uint32_t own;		   /* tags with a channel of their own */
	uint64_t recent[RECENT];   /* tag + 1 of some that had none */
	bool headed;		   /* `head` came, and nobody has taken it */
	bool taken;		   /* a recv takes the message of the last head */
	struct p2p_head head;
	/* as who sends to it */
	struct hk_chan *hears, *out;
	uint32_t owned;	 /* tags it has announced */
	uint64_t turns;	 /* given to sends so far, */
	uint64_t served; /* and over */
};

void hk__p2p_init(struct hk__p2p *p2p, const struct hk_alloc *alloc)
{
	*p2p = (struct hk__p2p){ 0 };
	hk__array_init(&p2p->peers, alloc, sizeof(struct hk__p2p_peer *));
	hk__hash_init(&p2p->index, alloc);
	hk__hash_init(&p2p->ready, alloc);
}

void hk__p2p_fini(struct hk__p2p *p2p)
{
	struct hk__p2p_peer **peers = p2p->peers.items;

	for (size_t i = 0; i < p2p->peers.count; i++) {
		hk__array_fini(&peers[i]->notices);
		hk__mem_free(p2p->peers.alloc, peers[i], 1, sizeof(*peers[i]));
	}
	hk__array_fini(&p2p->peers);
	hk__hash_fini(&p2p->index);
	hk__hash_fini(&p2p->ready);
}

/* NULL: nothing was shared with it yet. */
static struct hk__p2p_peer *peer_find(const struct hk__p2p *p2p, uint32_t rank)
{
	const struct hk__hash_entry *entry = hk__hash_find(&p2p->index, rank, 0);

	return entry ? *(struct hk__p2p_peer **)hk__array_at(&p2p->peers, entry->value) : NULL;
}

/* NULL: no memory. */
static struct hk__p2p_peer *peer_get(struct hk_group *group, uint32_t rank)
{
	struct hk__p2p *p2p = &group->p2p;
	struct hk__p2p_peer *found = peer_find(p2p, rank);

	if (found)
		return found;
	struct hk__p2p_peer *peer = hk__mem_zalloc(group->alloc, 1, sizeof(*peer));
	struct hk__p2p_peer **place = peer ? hk__array_push(&p2p->peers) : NULL;
	struct hk__hash_entry *entry = place ? hk__hash_get(&p2p->index, rank, 0) : NULL;
	if (!entry) {
		p2p->peers.count -= place != NULL;
		hk__mem_free(group->alloc, peer, 1, sizeof(*peer));
		return NULL;
	}
	*place = peer;
	entry->value = (uint32_t)(p2p->peers.count - 1);
	peer->rank = rank;
	peer->pass = group->pass - 1;
	hk__array_init(&peer->notices, group->alloc, sizeof(struct p2p_notice));
	return peer;
}

/* One of the two channels with a peer, each way, that no tag owns. */
static enum hk_status side_open(struct hk_group *group, uint32_t rank, bool sends, uint32_t lane,
				struct hk_chan **chan)
{
	struct hk__chans_want want = { .sends = sends, .peer = rank, .to_lane = lane };

	if (lane == LANE_CONTROL)
		want.slot_bytes = NOTICES * (uint32_t)sizeof(struct p2p_notice);
	else
		want.slots = SHARED_SLOTS;
	return *chan ? HK_OK : hk__chans_open(&group->chans, &want, chan);
}

static enum hk_status peer_lies(const struct hk_group *group, const struct hk__p2p_peer *peer)
{
	return hk__why(&group->chans.net->why, HK_EIO, "rank %u sent an invalid message",
		       hk__chans_rank(&group->chans, peer->rank));
}

/* ---- notices ---- */

static enum hk_status notices_say(struct hk__p2p *p2p, struct hk__p2p_peer *peer, bool *moved)
{
	while (peer->said < peer->notices.count) {
		size_t left = peer->notices.count - peer->said;
		uint32_t count = left < NOTICES ? (uint32_t)left : NOTICES;
		uint32_t len = count * (uint32_t)sizeof(struct p2p_notice);
		void *slot;
		enum hk_status status = hk__chan_reserve(peer->says, len, &slot);

		if (status != HK_OK || !slot)
			return status;
		memcpy(slot, hk__array_at(&peer->notices, peer->said), len);
		hk__chan_post(peer->says, len, 0);
		peer->said += count;
		p2p->unsaid -= count;
		*moved = true;
	}
	peer->said = peer->notices.count = 0;
	return HK_OK;
}

enum hk_status hk__p2p_say(struct hk__p2p *p2p, bool *moved)
{
	struct hk__p2p_peer **peers = p2p->peers.items;
	enum hk_status status = HK_OK;

	for (size_t i = 0; p2p->unsaid && status == HK_OK && i < p2p->peers.count; i++)
		status = notices_say(p2p, peers[i], moved);
	return status;
}

static enum hk_status notice_add(struct hk_group *group, struct hk__p2p_peer *peer, uint32_t what,
				 uint32_t tag, bool *moved)
{
	struct p2p_notice *notices = peer->notices.items;

	/* What was said makes way: a peer that is slow does not make it grow. */
	if (peer->said > peer->notices.count / 2) {
		peer->notices.count -= peer->said;
		memmove(notices, notices + peer->said, peer->notices.count * sizeof(*notices));
		peer->said = 0;
	}
	struct p2p_notice *notice = hk__array_push(&peer->notices);
	if (!notice)
		return HK_ENOMEM;
	*notice = (struct p2p_notice){ what, tag };
	group->p2p.unsaid++;
	return notices_say(&group->p2p, peer, moved);
}

static enum hk_status notice_hear(struct hk_group *group, struct hk__p2p_peer *peer,
				  const struct p2p_notice *notice)
{
	struct hk__hash *ready = &group->p2p.ready;
	struct hk_chan *chan;

	if (notice->what == NOTICE_OWN && peer->owned < HK__P2P_OWN_MAX) {
		peer->owned++;
		return hk__chans_get(&group->chans, true, peer->rank, notice->tag, HK_NONE, &chan);
	}
	if (notice->what != NOTICE_READY || ready->count >= READY_MAX)
		return peer_lies(group, peer);
	struct hk__hash_entry *entry = hk__hash_get(ready, peer->rank, notice->tag);
	if (!entry)
		return HK_ENOMEM;
	entry->value = entry->value == HK_NONE ? 1 : entry->value + 1;
	return HK_OK;
}

static enum hk_status notices_hear(struct hk_group *group, struct hk__p2p_peer *peer, bool *moved)
{
	for (;;) {
		struct p2p_notice notices[NOTICES];
		struct hk_message message;
		enum hk_status status = hk__chan_peek(peer->hears, &message);

		if (status != HK_OK || !message.data)
			return status;
		uint32_t count = message.len / (uint32_t)sizeof(*notices);
		if (message.len > sizeof(notices) || message.len % sizeof(*notices)) {
			hk__chan_unpeek(peer->hears);
			return peer_lies(group, peer);
		}
		memcpy(notices, message.data, message.len);
		status = hk__chan_release(peer->hears);
		for (uint32_t i = 0; i < count && status == HK_OK; i++)
			status = notice_hear(group, peer, &notices[i]);
		if (status != HK_OK)
			return status;
		*moved = true;
	}
}

/* ---- what is shared ---- */

static enum hk_status head_read(struct hk_group *group, struct hk__p2p_peer *peer, bool *moved)
{
	struct hk_message message;
	enum hk_status status = hk__chan_peek(peer->in, &message);

	if (status != HK_OK || !message.data)
		return status;
	if (message.len != sizeof(peer->head)) {
		hk__chan_unpeek(peer->in);
		return peer_lies(group, peer);
	}
	memcpy(&peer->head, message.data, sizeof(peer->head));
	peer->headed = *moved = true;
	return hk__chan_release(peer->in);
}

/*
 * Once in a pass, by the first request that asks: all requests of the peer see
 * the same, so none overtakes another of its tag.
 */
static enum hk_status peer_serve(struct hk_group *group, struct hk__p2p_peer *peer, bool *moved)
{
	enum hk_status status = HK_OK;

	if (peer->pass == group->pass)
		return HK_OK;
	peer->pass = group->pass;
	if (peer->hears)
		status = notices_hear(group, peer, moved);
	if (status == HK_OK && peer->in && !peer->headed && !peer->taken)
		status = head_read(group, peer, moved);
	return status;
}

/* ---- who receives ---- */

/* Whether a tag that has no channel should have one. */
static bool own_wanted(const struct hk__p2p *p2p, struct hk__p2p_peer *peer, uint32_t tag)
{
	uint64_t *recent = &peer->recent[(tag ^ tag >> 6 ^ tag >> 12) % RECENT];
	bool again = *recent == (uint64_t)tag + 1;

	*recent = (uint64_t)tag + 1;
	return p2p->own < HK__P2P_OWN_ALL &&
	       peer->own < (again ? HK__P2P_OWN_MAX : HK__P2P_OWN_SOON);
}

/* A recv is posted: by a channel of its tag from now on, or by the shared one. */
static enum hk_status recv_post(struct hk_request *request, struct hk__p2p_peer *peer, bool *moved)
{
	struct hk_group *group = request->group;
	uint32_t tag = request->sig.tag;
	enum hk_status status = side_open(group, peer->rank, true, LANE_CONTROL, &peer->says);

	if (status != HK_OK)
		return status;
	if (own_wanted(&group->p2p, peer, tag)) {
		status = hk__chans_get(&group->chans, false, peer->rank, tag, HK_NONE,
				       &request->transfer.chan);
		if (status == HK_OK) {
			peer->own++;
			group->p2p.own++;
			return notice_add(group, peer, NOTICE_OWN, tag, moved);
		}
	}
	if (status == HK_OK || status == HK_ELIMIT)
		status = side_open(group, peer->rank, false, LANE_SHARED, &peer->in);
	if (status == HK_OK)
		status = notice_add(group, peer, NOTICE_READY, tag, moved);
	request->p2p.posted = status == HK_OK;
	return status;
}

static enum hk_status recv_take(struct hk_request *request, struct hk__p2p_peer *peer)
{
	const struct hk_group *group = request->group;

	if (peer->head.bytes != request->sig.count)
		return hk__why(
			&group->chans.net->why, HK_EIO,
			"rank %u sent %llu bytes with tag %u where %llu were expected: do both "
			"ends give the same count and type?",
			hk__chans_rank(&group->chans, peer->rank),
			(unsigned long long)peer->head.bytes, peer->head.tag,
			(unsigned long long)request->sig.count);
	peer->headed = false;
	peer->taken = true;
	request->p2p.shared = true;
	request->transfer.chan = peer->in;
	return HK_OK;
}

static enum hk_status recv_begin(struct hk_request *request, bool *moved)
{
	struct hk_group *group = request->group;
	enum hk_status status = HK_OK;

	if (!request->p2p.posted)
		request->transfer.chan = hk__chans_find(&group->chans, false, request->peer,
							request->sig.tag, HK_NONE);
	if (request->transfer.chan)
		return HK_OK;
	struct hk__p2p_peer *peer = peer_get(group, request->peer);
	if (!peer)
		return HK_ENOMEM;
	if (!request->p2p.posted) {
		status = recv_post(request, peer, moved);
		if (status != HK_OK || request->transfer.chan)
			return status;
	}
	status = peer_serve(group, peer, moved);
	if (status != HK_OK)
		return status;
	return peer->headed && peer->head.tag == request->sig.tag ? recv_take(request, peer)
								  : HK_INPROGRESS;
}

/* ---- who sends ---- */

/* A recv of the peer that waits for this send, or a channel of its tag. */
static void send_match(struct hk_request *request, struct hk__p2p_peer *peer)
{
	struct hk_group *group = request->group;
	struct hk__hash *ready = &group->p2p.ready;
	uint32_t tag = request->sig.tag;
	struct hk__hash_entry *entry = hk__hash_find(ready, peer->rank, tag);

	if (!entry) {
		request->transfer.chan =
			hk__chans_find(&group->chans, true, peer->rank, tag, HK_NONE);
		return;
	}
	if (!--entry->value)
		hk__hash_remove(ready, entry);
	request->p2p.matched = true;
	request->p2p.turn = peer->turns++;
}

/* Its message is the next one on the shared channel. */
static enum hk_status send_head(struct hk_request *request, struct hk__p2p_peer *peer, bool *moved)
{
	struct p2p_head head = { .tag = request->sig.tag, .bytes = request->sig.count };
	enum hk_status status =
		side_open(request->group, peer->rank, true, LANE_SHARED, &peer->out);
	void *slot = NULL;

	if (status == HK_OK)
		status = hk__chan_reserve(peer->out, sizeof(head), &slot);
	if (status != HK_OK || !slot)
		return status == HK_OK ? HK_INPROGRESS : status;
	memcpy(slot, &head, sizeof(head));
	hk__chan_post(peer->out, sizeof(head), 0);
	*moved = request->p2p.shared = true;
	request->transfer.chan = peer->out;
	return HK_OK;
}

static enum hk_status send_begin(struct hk_request *request, bool *moved)
{
	struct hk_group *group = request->group;

	/* What has a channel, and no recv before that, needs no more. */
	if (!group->p2p.ready.count && !request->p2p.matched)
		request->transfer.chan = hk__chans_find(&group->chans, true, request->peer,
							request->sig.tag, HK_NONE);
	if (request->transfer.chan)
		return HK_OK;
	struct hk__p2p_peer *peer = peer_get(group, request->peer);
	if (!peer)
		return HK_ENOMEM;
	if (!request->p2p.matched) {
		enum hk_status status =
			side_open(group, peer->rank, false, LANE_CONTROL, &peer->hears);

		if (status == HK_OK)
			status = peer_serve(group, peer, moved);
		if (status != HK_OK)
			return status;
		send_match(request, peer);
		if (request->transfer.chan)
			return HK_OK;
	}
	if (!request->p2p.matched || peer->served != request->p2p.turn)
		return HK_INPROGRESS;
	return send_head(request, peer, moved);
}

/* ---- both ---- */

enum hk_status hk__p2p_begin(struct hk_request *request, bool *moved)
{
	if (request->transfer.chan)
		return HK_OK;
	request->transfer.tag = request->sig.tag;
	return request->transfer.sends ? send_begin(request, moved) : recv_begin(request, moved);
}

void hk__p2p_end(struct hk_request *request)
{
	if (!request->p2p.shared)
		return;
	request->p2p.shared = false;
	struct hk__p2p_peer *peer = peer_find(&request->group->p2p, request->peer);
	hk_assert(peer);
	if (request->transfer.sends)
		peer->served++;
	else
		peer->taken = false;
}
