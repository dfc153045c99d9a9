/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chan.c - channels: opening and closing them, and which end belongs to which.
 *
 * The receiving end gives its channel a small number, its id, and announces
 * both (OPEN) as soon as there is a connection. The sending end is bound to it
 * once, whichever was first; an announcement that nobody waits for is kept. An
 * id is used again when the sender has said that nothing comes under it any
 * more (CLOSED), so that what was under way is never taken for something else.
 *
 * A channel from a rank to itself needs no connection: its ends know each other.
 */
#include "net/tcp/link.h"

#include <string.h>

/* ---- places for messages ---- */

static struct tcp_pool *pool_get(struct tcp *tcp, uint32_t bytes)
{
	struct tcp_pool *pool = tcp->pools;

	while (pool && pool->bytes != bytes)
		pool = pool->next;
	if (pool)
		return pool;
	pool = hk__mem_zalloc(tcp->alloc, 1, sizeof(*pool));
	if (!pool)
		return NULL;
	*pool = (struct tcp_pool){ tcp->pools, bytes, NULL };
	tcp->pools = pool;
	return pool;
}

struct tcp_buf *hk__tcp_buf_get(struct tcp *tcp, struct tcp_pool *pool)
{
	struct tcp_buf *buf = pool->free;

	if (buf) {
		pool->free = buf->next;
		return buf;
	}
	buf = hk__mem_zalloc(tcp->alloc, 1, TCP_BUF_BYTES(pool->bytes));
	if (!buf)
		return NULL;
	buf->data = (unsigned char *)(buf + 1);
	buf->data += -(uintptr_t)buf->data % 64;
	return buf;
}

void hk__tcp_buf_put(struct tcp_pool *pool, struct tcp_buf *buf)
{
	buf->next = pool->free;
	pool->free = buf;
}

void hk__tcp_pool_trim(struct tcp *tcp, struct tcp_pool *pool)
{
	while (pool->free) {
		struct tcp_buf *buf = pool->free;

		pool->free = buf->next;
		hk__mem_free(tcp->alloc, buf, 1, TCP_BUF_BYTES(pool->bytes));
	}
}

/* ---- both ends ---- */

static bool key_equal(const struct wire_open *open, const struct hk_chan_key *key)
{
	return open->from_lane == key->from_lane && open->to_lane == key->to_lane &&
	       open->context == key->context;
}

static bool spec_equal(const struct hk_chan_spec *a, const struct hk_chan_spec *b)
{
	return a->key.from_lane == b->key.from_lane && a->key.to_lane == b->key.to_lane &&
	       a->key.context == b->key.context;
}

static enum hk_status chan_create(struct tcp *tcp, const struct hk_chan_spec *spec, bool sends,
				  struct tcp_chan **chan_out)
{
	struct tcp_chan *chan = hk__mem_zalloc(tcp->alloc, 1, sizeof(*chan));

	if (!chan)
		return HK_ENOMEM;
	*chan = (struct tcp_chan){
		.base = { .ops = &hk__tcp_chan_ops, .net = &tcp->base, .spec = *spec },
		.id = HK_NONE,
		.sends = sends
	};
	chan->pool = pool_get(tcp, spec->slot_bytes);
	if (sends)
		chan->outs = hk__mem_zalloc(tcp->alloc, spec->slots, sizeof(*chan->outs));
	else
		chan->ready = hk__mem_zalloc(tcp->alloc, spec->slots, sizeof(*chan->ready));
	enum hk_status status = chan->pool && (chan->outs || chan->ready) ? HK_OK : HK_ENOMEM;
	if (status == HK_OK && spec->key.peer != tcp->base.rank)
		status = hk__tcp_link_get(tcp, &spec->key, &chan->link);
	if (chan->link)
		chan->link->chans++;
	if (status != HK_OK) {
		hk__tcp_chan_free(chan);
		return status;
	}
	*chan_out = chan;
	return HK_OK;
}

void hk__tcp_chan_free(struct tcp_chan *chan)
{
	const struct hk_alloc *alloc = tcp_of(chan->base.net)->alloc;
	uint32_t slots = chan->base.spec.slots;

	if (chan->link)
		chan->link->chans--;
	if (chan->reserved)
		hk__tcp_buf_put(chan->pool, chan->reserved);
	for (uint32_t i = 0; i < chan->nready; i++)
		hk__tcp_buf_put(chan->pool, chan->ready[(chan->released + i) % slots].buf);
	/* What the most that were ever open at once have needed is not kept for good. */
	if (chan->pool)
		hk__tcp_pool_trim(tcp_of(chan->base.net), chan->pool);
	hk__mem_free(alloc, chan->outs, slots, sizeof(*chan->outs));
	hk__mem_free(alloc, chan->ready, slots, sizeof(*chan->ready));
	hk__mem_free(alloc, chan, 1, sizeof(*chan));
}

static void list_remove(struct tcp_chan **at, const struct tcp_chan *chan)
{
	while (*at && *at != chan)
		at = &(*at)->next;
	if (*at)
		*at = chan->next;
}

/* ---- to itself ---- */

/* The other end, if it is there and was never bound. */
static void self_bind(struct tcp *tcp, struct tcp_chan *chan)
{
	for (struct tcp_chan *other = tcp->selves; other; other = other->next) {
		const struct hk_chan_spec *a = &chan->base.spec, *b = &other->base.spec;

		if (other->sends == chan->sends || other->id != HK_NONE || !spec_equal(a, b))
			continue;
		if (a->slots != b->slots || a->slot_bytes != b->slot_bytes) {
			(chan->sends ? chan : other)->status = HK_EIO;
			continue;
		}
		chan->twin = other;
		other->twin = chan;
		chan->id = other->id = 0;
		break;
	}
	chan->next = tcp->selves;
	tcp->selves = chan;
}

static bool self_is_open(const struct tcp *tcp, const struct hk_chan_spec *spec)
{
	for (const struct tcp_chan *other = tcp->selves; other; other = other->next)
		if (!other->sends && spec_equal(&other->base.spec, spec))
			return true;
	return false;
}

static void self_close(struct tcp *tcp, struct tcp_chan *chan)
{
	list_remove(&tcp->selves, chan);
	if (chan->twin)
		chan->twin->twin = NULL;
	hk__tcp_chan_free(chan);
}

/* ---- who sends ---- */

static void end_bind(struct tcp_out_end *end, uint32_t id, struct tcp_chan *chan)
{
	const struct hk_chan_spec *spec = &chan->base.spec;

	if (end->open.slots != spec->slots || end->open.slot_bytes != spec->slot_bytes) {
		chan->status = HK_EIO;
		return;
	}
	end->state = END_BOUND;
	end->chan = chan;
	chan->id = id;
}

void hk__tcp_chan_offered(struct tcp_link *link, uint32_t id, struct tcp_out_end *end)
{
	struct tcp_chan **at = &link->waiting;

	while (*at && !key_equal(&end->open, &(*at)->base.spec.key))
		at = &(*at)->next;
	if (!*at)
		return;
	struct tcp_chan *chan = *at;
	*at = chan->next;
	end_bind(end, id, chan);
}

enum hk_status hk__tcp_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out)
{
	struct tcp *tcp = tcp_of(net);
	struct tcp_chan *chan;
	enum hk_status status = chan_create(tcp, spec, true, &chan);

	if (status != HK_OK)
		return status;
	*chan_out = &chan->base;
	if (!chan->link) {
		self_bind(tcp, chan);
		return HK_OK;
	}
	struct tcp_out_end *ends = chan->link->out_ends.items;
	for (uint32_t id = 0; id < chan->link->out_ends.count; id++) {
		if (ends[id].state == END_OFFERED && key_equal(&ends[id].open, &spec->key)) {
			end_bind(&ends[id], id, chan);
			return HK_OK;
		}
	}
	chan->next = chan->link->waiting;
	chan->link->waiting = chan;
	return HK_OK;
}

/* Nothing is queued any more: the end is free, or left behind. */
static void sender_leave(struct tcp_chan *chan)
{
	struct tcp_link *link = chan->link;
	struct wire_frame closed = { .type = WIRE_CLOSED, .id = chan->id };

	if (chan->id == HK_NONE)
		return;
	struct tcp_out_end *end = hk__array_at(&link->out_ends, chan->id);
	if (end->closing) {
		*end = (struct tcp_out_end){ 0 };
		hk__tcp_link_say(link, &closed, NULL);
	} else if (chan->closed) {
		end->state = END_LEFT;
		end->chan = NULL;
	} else {
		return;
	}
	chan->id = HK_NONE;
}

void hk__tcp_chan_written(struct tcp_chan *chan, struct tcp_out *out)
{
	if (out->buf)
		hk__tcp_buf_put(chan->pool, out->buf);
	out->buf = NULL;
	if (--chan->queued)
		return;
	sender_leave(chan);
	if (chan->closed)
		hk__tcp_chan_free(chan);
}

/* The caller's memory is the caller's again: what was lent is copied. */
static bool sender_own(struct tcp_chan *chan)
{
	for (struct tcp_out *out = chan->link->first; out; out = out->next) {
		if (out->chan != chan || out->buf || !out->len)
			continue;
		out->buf = hk__tcp_buf_get(chan->link->tcp, chan->pool);
		if (!out->buf)
			return false;
		memcpy(out->buf->data, out->data, out->len);
		out->data = out->buf->data;
	}
	return true;
}

static void sender_close(struct tcp_chan *chan)
{
	struct tcp_link *link = chan->link;

	if (chan->queued && !sender_own(chan))
		hk__tcp_link_break(link, HK_ENOMEM, "no memory to end a channel to it");
	list_remove(&link->waiting, chan);
	chan->closed = true;
	if (chan->queued)
		return; /* freed when the last message is written */
	sender_leave(chan);
	hk__tcp_link_write(link);
	hk__tcp_chan_free(chan);
}

/* ---- who receives ---- */

/* A free id; HK_NONE: the key is open already (*taken_out), or there is none. */
static uint32_t end_find(struct tcp_link *link, const struct hk_chan_spec *spec, bool *taken_out)
{
	const struct tcp_in_end *ends = link->in_ends.items;
	uint32_t id = HK_NONE;

	*taken_out = false;
	for (uint32_t i = 0; i < link->in_ends.count; i++) {
		if (ends[i].chan && spec_equal(&ends[i].chan->base.spec, spec)) {
			*taken_out = true;
			return HK_NONE;
		}
		if (!ends[i].chan && !ends[i].closing && id == HK_NONE)
			id = i;
	}
	if (id == HK_NONE && link->in_ends.count < TCP_CHANS_MAX && hk__array_push(&link->in_ends))
		id = (uint32_t)link->in_ends.count - 1;
	return id;
}

enum hk_status hk__tcp_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out)
{
	struct tcp *tcp = tcp_of(net);
	struct tcp_chan *chan;
	bool taken;

	if (spec->key.peer == net->rank && self_is_open(tcp, spec))
		return HK_EINVAL; /* open already */
	enum hk_status status = chan_create(tcp, spec, false, &chan);
	if (status != HK_OK)
		return status;
	if (!chan->link) {
		self_bind(tcp, chan);
		*chan_out = &chan->base;
		return HK_OK;
	}
	chan->id = end_find(chan->link, spec, &taken);
	if (chan->id == HK_NONE) {
		bool full = chan->link->in_ends.count == TCP_CHANS_MAX;

		hk__tcp_chan_free(chan);
		return taken ? HK_EINVAL : full ? HK_ELIMIT : HK_ENOMEM;
	}
	((struct tcp_in_end *)chan->link->in_ends.items)[chan->id].chan = chan;
	hk__tcp_link_announce(chan->link, chan);
	hk__tcp_link_write(chan->link);
	*chan_out = &chan->base;
	return HK_OK;
}

/* What is being read for it is dropped. */
static void receiver_drop(struct tcp_chan *chan)
{
	struct tcp_landing *in = &chan->link->in;

	if (in->chan != chan)
		return;
	if (in->buf)
		hk__tcp_buf_put(chan->pool, in->buf);
	in->buf = NULL;
	in->at = NULL;
	in->chan = NULL;
	in->direct = false;
	in->skip = true;
}

static void receiver_close(struct tcp_chan *chan)
{
	struct tcp_link *link = chan->link;
	struct tcp_in_end *end = hk__array_at(&link->in_ends, chan->id);
	struct wire_frame frame = { .type = WIRE_CLOSE, .id = chan->id };

	hk__tcp_link_forget(chan);
	receiver_drop(chan);
	end->chan = NULL;
	/* Where there is no connection nobody has heard of it. */
	end->closing = link->state == LINK_UP;
	hk__tcp_link_say(link, &frame, NULL);
	hk__tcp_link_write(link);
	hk__tcp_chan_free(chan);
}

void hk__tcp_chan_close(struct hk_chan *base)
{
	struct tcp_chan *chan = tcp_chan_of(base);

	if (!chan->link)
		self_close(tcp_of(base->net), chan);
	else if (chan->sends)
		sender_close(chan);
	else
		receiver_close(chan);
}

void hk__tcp_cancel(struct hk_chan *base)
{
	struct tcp_chan *chan = tcp_chan_of(base);
	struct tcp_link *link = chan->link;

	if (!link)
		return; /* what it lends to itself is copied */
	if (chan->sends) {
		if (chan->queued && !sender_own(chan))
			hk__tcp_link_break(link, HK_ENOMEM,
					   "no memory to take back what was lent to it");
		return;
	}
	chan->take_at = NULL;
	if (link->in.direct)
		receiver_drop(chan);
}

const struct hk_chan_ops hk__tcp_chan_ops = {
	.size = sizeof(struct hk_chan_ops),
	.close = hk__tcp_chan_close,
	.cancel = hk__tcp_cancel,
	.reserve = hk__tcp_reserve,
	.post = hk__tcp_post,
	.lendable = hk__tcp_lendable,
	.lend = hk__tcp_lend,
	.lent = hk__tcp_lent,
	.peek = hk__tcp_peek,
	.release = hk__tcp_release,
	.take = hk__tcp_take,
};
