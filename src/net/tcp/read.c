/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - what arrives.
 *
 * Heads of frames and small messages are read together into one place of the
 * net's. What is still missing of a message is read straight to where it is to
 * lie: the memory of who takes it, or a slot. A large message that nobody has
 * asked for is left in the socket for one round, so that who takes it next has
 * it without a copy; then it goes to a slot, as others may wait behind it.
 *
 * Nothing of it is believed: ids, lengths and counts are checked, and who sends
 * a wrong one is cut off.
 */
#include "net/tcp/link.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_ROUNDS 16
#define READ_LARGE 16384u /* messages from here on are left in the socket for a round */
#define READ_HEADS 512u	  /* read beyond a message, where messages are large */
#define READ_END 65536u	  /* what is left of one and likely to come at once */

static void link_fault(struct tcp_link *link, const char *what)
{
	hk__tcp_link_break(link, HK_EIO, "it %s", what);
}

/* ---- where a message lands ---- */

static bool landing_place(struct tcp_link *link)
{
	struct tcp_landing *in = &link->in;

	if (in->at || in->skip)
		return true;
	in->buf = hk__tcp_buf_get(link->tcp, in->chan->pool);
	if (!in->buf) {
		hk__tcp_link_break(link, HK_ENOMEM, "no memory for a message of it");
		return false;
	}
	in->at = in->buf->data;
	return true;
}

static void landing_finish(struct tcp_link *link)
{
	struct tcp_landing *in = &link->in;
	struct tcp_chan *chan = in->chan;

	if (in->direct) {
		chan->took = true;
		chan->took_len = in->len;
		chan->took_kind = in->kind;
	} else if (!in->skip) {
		uint64_t at = (chan->released + chan->nready++) % chan->base.spec.slots;

		chan->ready[at] = (struct tcp_ready){ in->buf, in->len, in->kind };
	}
	*in = (struct tcp_landing){ 0 };
}

/* A message begins; `here` bytes of it were read already. */
static void landing_start(struct tcp_link *link, const struct wire_frame *frame, uint32_t here)
{
	const struct tcp_in_end *ends = link->in_ends.items;
	struct tcp_chan *chan = frame->id < link->in_ends.count ? ends[frame->id].chan : NULL;
	struct tcp_landing in = { .active = true, .len = frame->len, .kind = frame->kind };

	if (!chan && (frame->id >= link->in_ends.count || !ends[frame->id].closing)) {
		link_fault(link, "sent a message on a channel that does not exist");
		return;
	}
	if (frame->kind >= HK_KINDS ||
	    frame->len > (chan ? chan->base.spec.slot_bytes : HK_SLOT_BYTES_MAX)) {
		link_fault(link, "sent an invalid message");
		return;
	}
	in.chan = chan;
	in.skip = !chan;
	if (chan && chan->held == chan->base.spec.slots) {
		link_fault(link, "sent more messages than there are slots");
		return;
	}
	if (chan) {
		chan->held++;
		if (chan->take_at && !chan->nready && !chan->took && frame->len <= chan->take_cap) {
			in.direct = true;
			in.at = chan->take_at;
			chan->take_at = NULL;
		}
	}
	link->in = in;
	link->ask = frame->len >= READ_LARGE ? READ_HEADS : TCP_IN_BYTES;
	if (chan && !in.direct && frame->len >= READ_LARGE && here < frame->len)
		link->parked = link->tcp->round;
}

/* Bytes of the message that were read into the common place; how many they are. */
static uint32_t landing_copy(struct tcp_link *link, const unsigned char *from, size_t len)
{
	struct tcp_landing *in = &link->in;
	uint32_t here = len < in->len - in->got ? (uint32_t)len : in->len - in->got;

	if (!in->skip && (here || in->got + here == in->len)) {
		if (!landing_place(link))
			return 0;
		if (here)
			memcpy(in->at + in->got, from, here);
	}
	in->got += here;
	if (in->got == in->len)
		landing_finish(link);
	return here;
}

/* ---- frames ---- */

static void frame_open(struct tcp_link *link, const struct wire_frame *frame,
		       const unsigned char *head)
{
	struct tcp_out_end *end = NULL;

	/* Ids are given out from below: the next one may be new, no other. */
	if (frame->id < link->out_ends.count)
		end = hk__array_at(&link->out_ends, frame->id);
	else if (frame->id == link->out_ends.count && frame->id < TCP_CHANS_MAX) {
		end = hk__array_push(&link->out_ends);
		if (!end) {
			hk__tcp_link_break(link, HK_ENOMEM, "no memory for a channel to it");
			return;
		}
	}
	if (!end || end->state != END_NONE) {
		link_fault(link, "opened an invalid channel");
		return;
	}
	*end = (struct tcp_out_end){ .state = END_OFFERED, .open = wire_get_open(head) };
	hk__tcp_chan_offered(link, frame->id, end);
}

static void frame_credit(struct tcp_link *link, const struct wire_frame *frame)
{
	struct tcp_out_end *end =
		frame->id < link->out_ends.count ? hk__array_at(&link->out_ends, frame->id) : NULL;

	if (end && end->state == END_LEFT)
		return; /* it does not know yet that nobody cares */
	if (!end || end->state != END_BOUND || frame->len > end->chan->out - end->chan->queued) {
		link_fault(link, "released messages that were never sent");
		return;
	}
	end->chan->out -= frame->len;
}

static void frame_close(struct tcp_link *link, const struct wire_frame *frame)
{
	struct wire_frame closed = { .type = WIRE_CLOSED, .id = frame->id };
	struct tcp_out_end *end =
		frame->id < link->out_ends.count ? hk__array_at(&link->out_ends, frame->id) : NULL;

	if (!end || end->state == END_NONE || end->closing) {
		link_fault(link, "closed a channel that is not open");
		return;
	}
	end->closing = true;
	if (end->state == END_BOUND && end->chan->queued)
		return; /* said when the last message is written */
	if (end->state == END_BOUND)
		end->chan->id = HK_NONE;
	*end = (struct tcp_out_end){ 0 };
	hk__tcp_link_say(link, &closed, NULL);
	hk__tcp_link_write(link);
}

static void frame_closed(struct tcp_link *link, const struct wire_frame *frame)
{
	struct tcp_in_end *end =
		frame->id < link->in_ends.count ? hk__array_at(&link->in_ends, frame->id) : NULL;

	if (!end || !end->closing) {
		link_fault(link, "is done with a channel that is open");
		return;
	}
	end->closing = false;
}

static void frame_note(struct tcp_link *link, const struct wire_frame *frame,
		       const unsigned char *head)
{
	struct hk_net_event event = { .what = HK_NET_TOLD,
				      .rank = link->rank,
				      .note = head + WIRE_NOTE_AT,
				      .len = frame->len };

	if (frame->len > HK_NOTE_MAX)
		link_fault(link, "sent an invalid note");
	else
		hk__net_report(&link->tcp->base, &event);
}

static void frame_act(struct tcp_link *link, const struct wire_frame *frame,
		      const unsigned char *head, size_t left)
{
	if (link->heard == (frame->type == WIRE_UP)) {
		link_fault(link, "sent UP twice, or something before UP");
		return;
	}
	switch (frame->type) {
	case WIRE_UP:
		link->heard = true;
		link->backoff = link->failed_since = 0;
		break;
	case WIRE_OPEN:
		frame_open(link, frame, head);
		break;
	case WIRE_DATA:
		landing_start(link, frame, left < frame->len ? (uint32_t)left : frame->len);
		break;
	case WIRE_CREDIT:
		frame_credit(link, frame);
		break;
	case WIRE_CLOSE:
		frame_close(link, frame);
		break;
	case WIRE_CLOSED:
		frame_closed(link, frame);
		break;
	case WIRE_NOTE:
		frame_note(link, frame, head);
		break;
	case WIRE_BYE:
		link->bye = true;
		hk__tcp_peer_left(link->tcp, link->peer);
		break;
	default:
		link_fault(link, "sent what is no frame");
	}
}

/* All frames that are complete; what is left of the last one is kept. */
static void link_parse(struct tcp_link *link, const unsigned char *at, size_t len)
{
	while (len >= WIRE_FRAME_BYTES) {
		struct wire_frame frame = wire_get_frame(at);

		frame_act(link, &frame, at, len - WIRE_FRAME_BYTES);
		at += WIRE_FRAME_BYTES;
		len -= WIRE_FRAME_BYTES;
		if (link->in.active) {
			uint32_t here = landing_copy(link, at, len);

			at += here;
			len -= here;
		}
		if (link->state != LINK_UP)
			return;
	}
	link->held_len = (uint32_t)len;
	memcpy(link->held, at, len);
}

/* ---- the socket ---- */

static void link_ended(struct tcp_link *link, ssize_t got)
{
	if (!link->heard)
		hk__tcp_link_reset(link);
	else if (link->deaf)
		hk__tcp_link_end(link, link->error);
	else
		hk__tcp_link_end(link, got == 0 ? 0 : errno);
}

/* Reads once, straight to its place what has one; false: no more is to be had. */
static bool link_read_once(struct tcp_link *link)
{
	struct tcp_landing *in = &link->in;
	unsigned char *common = link->tcp->in;
	size_t first = in->active && !in->skip ? in->len - in->got : 0;
	/* What comes behind a message is read with the end of it. */
	size_t ask = first > READ_END ? 0 : link->ask - link->held_len;
	struct iovec parts[2] = { { in->at ? in->at + in->got : NULL, first },
				  { common + link->held_len, ask } };
	ssize_t got = first && ask ? readv(link->fd, parts, 2)
				   : recv(link->fd, parts[!first].iov_base, parts[!first].iov_len,
					  MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (got <= 0) {
		link_ended(link, got);
		return false;
	}
	link->tcp->base.moved++;
	size_t more = (size_t)got > first ? (size_t)got - first : 0;
	const unsigned char *at = common;
	memcpy(common, link->held, link->held_len);
	if (first) {
		in->got += (uint32_t)((size_t)got - more);
		if (in->got == in->len)
			landing_finish(link);
	} else if (in->active) {
		uint32_t here = landing_copy(link, at, more); /* dropped */

		at += here;
		more -= here;
	}
	if (!in->active)
		link_parse(link, at, link->held_len + more);
	return (size_t)got == first + ask;
}

/* Bytes of frames and messages, from a record. */
static void link_feed(struct tcp_link *link, const unsigned char *at, size_t len)
{
	unsigned char *common = link->tcp->in;

	if (link->in.active) {
		uint32_t here = landing_copy(link, at, len);

		at += here;
		len -= here;
	}
	if (link->state != LINK_UP || link->in.active)
		return;
	if (link->held_len) {
		memcpy(common, link->held, link->held_len);
		memcpy(common + link->held_len, at, len);
		at = common;
		len += link->held_len;
	}
	link_parse(link, at, len);
}

_Static_assert(WIRE_FRAME_BYTES + HK__SEAL_BYTES <= TCP_IN_BYTES, "a record fits");

/* Reads once; false: no more is to be had. */
static bool link_read_sealed(struct tcp_link *link)
{
	enum hk_status status;
	unsigned char *at;
	uint32_t len;
	size_t room;

	at = hk__seal_space(link->seal, &room);
	ssize_t got = recv(link->fd, at, room, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (got <= 0) {
		link_ended(link, got);
		return false;
	}
	link->tcp->base.moved++;
	hk__seal_got(link->seal, (size_t)got);
	while ((status = hk__seal_next(link->seal, &at, &len)) == HK_OK) {
		link_feed(link, at, len);
		if (link->state != LINK_UP)
			return false;
	}
	if (status != HK_INPROGRESS)
		link_fault(link, "sent a record that is not genuine");
	return status == HK_INPROGRESS && (size_t)got == room;
}

void hk__tcp_read(struct tcp_link *link)
{
	for (int i = 0; link->seal && i < READ_ROUNDS; i++)
		if (!link_read_sealed(link) || link->state != LINK_UP)
			return;
	if (link->seal)
		return;
	/* Who looks between this round and the next may still take it. */
	if (link->parked == link->tcp->round && link->in.active)
		return;
	for (int i = 0; i < READ_ROUNDS && link->state == LINK_UP; i++) {
		if (link->in.active && !landing_place(link))
			return;
		if (!link_read_once(link))
			return;
		if (link->in.active && link->parked == link->tcp->round)
			return;
	}
}

void hk__tcp_read_landing(struct tcp_link *link)
{
	struct tcp_landing *in = &link->in;

	if (link->seal)
		return; /* it lies in records, which poll opens */
	while (in->active && link->state == LINK_UP && landing_place(link)) {
		size_t ask = in->len - in->got;
		ssize_t got = recv(link->fd, in->at + in->got, ask, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			link_ended(link, got);
			return;
		}
		link->tcp->base.moved++;
		in->got += (uint32_t)got;
		if (in->got == in->len)
			landing_finish(link);
		else if ((size_t)got < ask)
			return;
	}
}
