/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - messages, from one end to the other.
 *
 * A message is handed to the system by whoever sends it, at once, from where it
 * lies; only what the system does not take waits in the queue of its link. What
 * was received lies in a slot, or where its taker wants it (read.c).
 */
#include "net/tcp/link.h"

#include <string.h>

/* ---- who sends ---- */

/* One that ended may not have said why yet. */
static bool link_takes(const struct tcp_link *link)
{
	return link->state == LINK_UP && !link->deaf;
}

/* Whether a message could be sent now. */
static enum hk_status chan_free(struct tcp_chan *chan, bool *free_out)
{
	*free_out = false;
	if (chan->status != HK_OK)
		return hk__why(&chan->base.net->why, chan->status,
			       "rank %u describes an invalid channel", chan->base.spec.key.peer);
	if (chan->link) {
		enum hk_status status = hk__tcp_link_status(chan->link);

		if (status != HK_OK)
			return status;
	}
	*free_out = chan->id != HK_NONE && chan->out < chan->base.spec.slots &&
		    (chan->link ? link_takes(chan->link) : chan->twin != NULL);
	return HK_OK;
}

enum hk_status hk__tcp_reserve(struct hk_chan *base, uint32_t len, void **slot_out)
{
	struct tcp_chan *chan = tcp_chan_of(base);
	bool is_free;
	enum hk_status status = chan_free(chan, &is_free);

	(void)len; /* slots are all of one size */
	*slot_out = NULL;
	if (!is_free)
		return status;
	if (!chan->reserved)
		chan->reserved = hk__tcp_buf_get(tcp_of(base->net), chan->pool);
	if (!chan->reserved)
		return HK_ENOMEM;
	*slot_out = chan->reserved->data;
	return HK_OK;
}

static void chan_write(struct tcp_chan *chan, struct tcp_buf *buf, const void *data, uint32_t len,
		       uint32_t kind)
{
	struct tcp_link *link = chan->link;
	struct tcp_out *out = &chan->outs[chan->posted % chan->base.spec.slots];
	struct wire_frame frame = { WIRE_DATA, kind, chan->id, len };

	*out = (struct tcp_out){ .chan = chan, .buf = buf, .data = data, .len = len };
	wire_put_frame(out->head, &frame);
	chan->posted++;
	chan->out++;
	chan->queued++;
	link->tcp->armed = false;
	hk__tcp_link_push(link, out);
	/* A socket that takes no more will say when it does. */
	if (!link->blocked)
		hk__tcp_link_write(link);
}

static void self_post(struct tcp_chan *chan, struct tcp_buf *buf, uint32_t len, uint32_t kind)
{
	struct tcp_chan *to = chan->twin;
	uint64_t at = (to->released + to->nready++) % to->base.spec.slots;

	to->ready[at] = (struct tcp_ready){ buf, len, kind };
	chan->out++;
	tcp_of(chan->base.net)->armed = false;
}

void hk__tcp_post(struct hk_chan *base, uint32_t len, uint32_t kind)
{
	struct tcp_chan *chan = tcp_chan_of(base);
	struct tcp_buf *buf = chan->reserved;

	hk_assert(buf);
	chan->reserved = NULL;
	if (chan->link ? chan->id == HK_NONE || !link_takes(chan->link) : !chan->twin)
		hk__tcp_buf_put(chan->pool, buf); /* the other end went away meanwhile */
	else if (chan->link)
		chan_write(chan, buf, buf->data, len, kind);
	else
		self_post(chan, buf, len, kind);
}

enum hk_lend hk__tcp_lendable(const struct hk_chan *base, const void *data, uint32_t len)
{
	(void)data; /* the system reads any memory */
	return ((const struct tcp_chan *)base)->link && len >= TCP_LEND_MIN ? HK_LEND_GAINS
									    : HK_LEND_NO;
}

enum hk_status hk__tcp_lend(struct hk_chan *base, const void *data, uint32_t len, uint32_t kind,
			    bool *done_out)
{
	struct tcp_chan *chan = tcp_chan_of(base);
	enum hk_status status = chan_free(chan, done_out);
	void *slot;

	if (status != HK_OK || !*done_out)
		return status;
	if (chan->link) {
		chan_write(chan, NULL, data, len, kind);
		return HK_OK;
	}
	status = hk__tcp_reserve(base, len, &slot);
	*done_out = status == HK_OK;
	if (status != HK_OK)
		return status;
	if (len)
		memcpy(slot, data, len);
	hk__tcp_post(base, len, kind);
	return HK_OK;
}

bool hk__tcp_lent(struct hk_chan *base)
{
	const struct tcp_chan *chan = tcp_chan_of(base);

	/* A record may hold the last of it. */
	return chan->queued > 0 ||
	       (chan->link && chan->link->seal && hk__tcp_link_unsent(chan->link));
}

/* ---- who receives ---- */

/* Who has stopped listening may have sent before: only the end is the end. */
static enum hk_status chan_over(const struct tcp_chan *chan)
{
	return chan->link->state == LINK_BROKEN ? hk__tcp_link_status(chan->link) : HK_OK;
}

enum hk_status hk__tcp_peek(struct hk_chan *base, struct hk_message *message_out)
{
	struct tcp_chan *chan = tcp_chan_of(base);
	struct tcp_link *link = chan->link;

	message_out->data = NULL;
	if (!chan->nready && link) {
		/* It was left in the socket in case that somebody takes it. */
		if (link->in.chan == chan && link->parked == link->tcp->round)
			hk__tcp_read_landing(link);
		if (!chan->nready)
			return chan_over(chan);
	}
	if (!chan->nready)
		return HK_OK;
	const struct tcp_ready *ready = &chan->ready[chan->released % base->spec.slots];
	*message_out = (struct hk_message){ ready->buf->data, ready->len, ready->kind };
	return HK_OK;
}

/* A slot is free again. */
static void chan_give_back(struct tcp_chan *chan)
{
	tcp_of(chan->base.net)->armed = false;
	if (chan->link)
		hk__tcp_link_owe(chan);
	else if (chan->twin)
		chan->twin->out--;
}

enum hk_status hk__tcp_release(struct hk_chan *base)
{
	struct tcp_chan *chan = tcp_chan_of(base);

	hk_assert(chan->nready);
	hk__tcp_buf_put(chan->pool, chan->ready[chan->released % base->spec.slots].buf);
	chan->released++;
	chan->nready--;
	chan_give_back(chan);
	return HK_OK;
}

static enum hk_status take_too_long(const struct tcp_chan *chan, uint32_t len, uint32_t cap)
{
	return hk__why(&chan->base.net->why, HK_EIO, "rank %u sent %u bytes where %u fit",
		       chan->base.spec.key.peer, len, cap);
}

/* The message that is being read goes to its taker from here on. */
static void take_landing(struct tcp_chan *chan, void *dst)
{
	struct tcp_landing *in = &chan->link->in;

	if (in->got)
		memcpy(dst, in->at, in->got);
	if (in->buf)
		hk__tcp_buf_put(chan->pool, in->buf);
	in->buf = NULL;
	in->at = dst;
	in->direct = true;
	hk__tcp_read_landing(chan->link);
}

static enum hk_status take_ready(struct hk_chan *base, void *dst, uint32_t cap,
				 struct hk_message *message_out, bool *done_out)
{
	enum hk_status status = hk__tcp_peek(base, message_out);

	if (status != HK_OK || !message_out->data)
		return status;
	if (message_out->len > cap)
		return take_too_long(tcp_chan_of(base), message_out->len, cap);
	if (message_out->len)
		memcpy(dst, message_out->data, message_out->len);
	message_out->data = dst;
	*done_out = true;
	return hk__tcp_release(base);
}

enum hk_status hk__tcp_take(struct hk_chan *base, void *dst, uint32_t cap,
			    struct hk_message *message_out, bool *done_out)
{
	struct tcp_chan *chan = tcp_chan_of(base);
	struct tcp_link *link = chan->link;

	*done_out = false;
	message_out->data = NULL;
	if (!chan->took && (chan->nready || !link))
		return take_ready(base, dst, cap, message_out, done_out);
	if (!chan->took && link->in.chan == chan && !link->in.direct) {
		if (link->in.len > cap)
			return take_too_long(chan, link->in.len, cap);
		take_landing(chan, dst);
	}
	if (chan->took) {
		chan->took = false;
		*message_out = (struct hk_message){ dst, chan->took_len, chan->took_kind };
		*done_out = true;
		chan_give_back(chan);
		return HK_OK;
	}
	if (link->in.chan != chan) {
		chan->take_at = dst;
		chan->take_cap = cap;
	}
	return chan_over(chan);
}
