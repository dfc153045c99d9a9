/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - connections that are wanted, up or broken, and what is to be written
 * to them.
 *
 * Messages and frames wait in one queue and are handed to the system as many at
 * a time as it takes. Slots that were released are given back with whatever is
 * written next, or when there are enough of them, or before this rank sleeps.
 */
#include "net/tcp/link.h"
#include "base/fork.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#define WRITE_PARTS 16

static void link_fill(struct tcp_link *link);

/* ---- links ---- */

enum hk_status hk__tcp_link_create(struct tcp *tcp, struct tcp_peer *peer, uint32_t index,
				   struct tcp_link **link_out)
{
	struct tcp_link *link = hk__mem_zalloc(tcp->alloc, 1, sizeof(*link));

	if (!link)
		return HK_ENOMEM;
	link->source.is = TCP_LINKS;
	link->tcp = tcp;
	link->peer = peer;
	link->rank = peer->rank;
	link->index = index;
	link->fd = -1;
	link->ask = TCP_IN_BYTES;
	snprintf(link->where, sizeof(link->where), "not connected");
	hk__array_init(&link->in_ends, tcp->alloc, sizeof(struct tcp_in_end));
	hk__array_init(&link->out_ends, tcp->alloc, sizeof(struct tcp_out_end));
	*link_out = link;
	return HK_OK;
}

struct tcp_link *hk__tcp_link_at(struct tcp *tcp, uint32_t rank, uint32_t index)
{
	struct tcp_peer *peer = hk__tcp_peer_at(tcp, rank);

	if (!peer || (!peer->links[index] &&
		      hk__tcp_link_create(tcp, peer, index, &peer->links[index]) != HK_OK))
		return NULL;
	return peer->links[index];
}

struct tcp_link *hk__tcp_link_anew(struct tcp_link *link)
{
	struct tcp *tcp = link->tcp;
	struct tcp_link *another;

	hk_assert(link->state == LINK_BROKEN);
	if (hk__tcp_link_create(tcp, link->peer, link->index, &another) != HK_OK)
		return NULL;
	link->peer->links[link->index] = another;
	link->retired_next = tcp->retired;
	tcp->retired = link;
	return another;
}

/* Of two ranks the lower one connects: there is never one connection too many. */
static enum hk_status link_want(struct tcp *tcp, struct tcp_link *link)
{
	if (link->state != LINK_UNUSED)
		return HK_OK;
	if (hk__tcp_peer_is(link->peer, HK_NET_DEAD) || hk__tcp_peer_is(link->peer, HK_NET_LEFT)) {
		hk__tcp_link_break(link, HK_EPEER, "%s",
				   hk__tcp_peer_is(link->peer, HK_NET_LEFT)
					   ? "it has left the job"
					   : "its process has ended");
		return HK_OK;
	}
	if (tcp->base.rank > link->rank) {
		struct tcp_link **slot = hk__array_push(&tcp->awaited);

		if (!slot)
			return HK_ENOMEM;
		*slot = link;
		link->wanted_since = hk__now_ns();
		link->state = LINK_WANTED;
		return HK_OK;
	}
	enum hk_status status =
		tcp->spec.address(tcp->spec.ctx, link->rank, &link->addr, &link->addr_len);
	if (status != HK_OK)
		return status;
	hk__tcp_where(&link->addr, link->where);
	link->state = LINK_WANTED;
	status = hk__tcp_greet_connect(link);
	if (status != HK_OK)
		link->state = LINK_UNUSED;
	return status;
}

enum hk_status hk__tcp_link_get(struct tcp *tcp, const struct hk_chan_key *key,
				struct tcp_link **link_out)
{
	uint32_t x = key->from_lane * 0x9e3779b1u ^ key->to_lane * 0x85ebca77u ^
		     hk_chan_context_hash(key);
	struct tcp_link *link = hk__tcp_link_at(tcp, key->peer, (x ^ x >> 15) % tcp->spec.conns);

	/* What is over is over: it is another connection that may come. */
	if (link && link->state == LINK_BROKEN && link->status != HK_OK &&
	    !hk__tcp_peer_is(link->peer, HK_NET_DEAD) && !hk__tcp_peer_is(link->peer, HK_NET_LEFT))
		link = hk__tcp_link_anew(link);
	if (!link)
		return HK_ENOMEM;
	enum hk_status status = link_want(tcp, link);
	if (status == HK_OK)
		*link_out = link;
	return status;
}

/* Takes a link out of up or awaited, where it may be. */
static void links_remove(struct hk__array *array, const struct tcp_link *link)
{
	struct tcp_link **links = array->items;

	for (size_t i = 0; i < array->count; i++) {
		if (links[i] == link) {
			links[i] = links[--array->count];
			return;
		}
	}
}

void hk__tcp_link_up(struct tcp_link *link, int fd, struct hk__seal *seal, bool heard)
{
	static const struct wire_frame up = { .type = WIRE_UP };
	struct tcp *tcp = link->tcp;
	struct tcp_link **slot = hk__array_push(&tcp->up);
	const struct tcp_in_end *ends = link->in_ends.items;

	links_remove(&tcp->awaited, link);
	link->fd = fd;
	link->seal = seal;
	if (slot)
		*slot = link;
	if (!slot || hk__tcp_watch(tcp, fd, EPOLLIN, &link->source, false) != HK_OK) {
		hk__tcp_link_break(link, HK_ENOMEM, "no memory for its connection");
		return;
	}
	link->state = LINK_UP;
	link->heard = heard;
	hk__tcp_link_say(link, &up, NULL);
	if (seal && link->first)
		link_fill(link); /* UP is a record of its own: who greets reads no more */
	for (size_t i = 0; i < link->in_ends.count; i++)
		if (ends[i].chan)
			hk__tcp_link_announce(link, ends[i].chan);
	hk__tcp_peer_greet(link);
	hk__tcp_link_write(link);
}

static void link_drop_out(struct tcp_link *link)
{
	struct tcp *tcp = link->tcp;

	while (link->first) {
		struct tcp_out *out = link->first;

		link->first = out->next;
		if (out->chan) {
			hk__tcp_chan_written(out->chan, out);
			continue;
		}
		out->next = tcp->outs;
		tcp->outs = out;
	}
	link->last = NULL;
}

static void link_unblock(struct tcp_link *link)
{
	if (link->blocked)
		link->tcp->nblocked--;
	link->blocked = false;
}

static void link_close(struct tcp_link *link)
{
	links_remove(&link->tcp->up, link);
	link_unblock(link);
	if (link->fd >= 0)
		hk__fd_close(link->fd);
	link->fd = -1;
	hk__seal_destroy(link->seal);
	link->seal = NULL;
}

void hk__tcp_link_reset(struct tcp_link *link)
{
	struct tcp_in_end *ends = link->in_ends.items;

	link_close(link);
	link->state = LINK_WANTED;
	link_drop_out(link);
	link->held_len = 0;
	link->deaf = false;
	link->peer->told = link->told_before;
	/* Nobody has heard of a channel that was opened and closed meanwhile. */
	for (size_t i = 0; i < link->in_ends.count; i++)
		ends[i].closing = false;
	hk__tcp_greet_again(link, 0, "it hung up as soon as it was connected");
}

/* Nobody reads what was to be written; what the peer wrote may still be here. */
static void link_deafen(struct tcp_link *link, int error)
{
	link->deaf = true;
	/* If only this end has failed, the other learns of it, and closes: then it is over. */
	(void)shutdown(link->fd, SHUT_WR);
	link->error = error;
	if (link->blocked)
		(void)hk__tcp_watch(link->tcp, link->fd, EPOLLIN, &link->source, false);
	link_unblock(link);
	link_drop_out(link);
}

/* ---- the end of one ---- */

static void link_shut(struct tcp_link *link)
{
	struct tcp_landing *in = &link->in;

	link->state = LINK_BROKEN;
	hk__tcp_greet_stop(link);
	links_remove(&link->tcp->awaited, link);
	link_close(link);
	if (in->buf)
		hk__tcp_buf_put(in->chan->pool, in->buf);
	*in = (struct tcp_landing){ 0 };
	link_drop_out(link);
}

void hk__tcp_link_break(struct tcp_link *link, enum hk_status status, const char *fmt, ...)
{
	char why[TCP_WHY_MAX];
	va_list args;

	if (link->status != HK_OK)
		return;
	va_start(args, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	memcpy(link->why, why, sizeof(why));
	link->status = status;
	if (link->state != LINK_BROKEN)
		link_shut(link);
	(void)hk__tcp_link_status(link);
	hk__tcp_peer_lost(link->tcp, link->peer, link->why);
}

void hk__tcp_link_end(struct tcp_link *link, int error)
{
	if (link->bye) {
		hk__tcp_link_break(link, HK_EPEER, "it has left the job");
		return;
	}
	if (error && error != ECONNRESET && error != EPIPE) {
		hk__tcp_link_break(link, HK_EPEER, "it is out of reach: %s",
				   strerror(error)); /* NOLINT(concurrency-mt-unsafe) */
		hk__tcp_peer_probe(link->tcp, link->peer);
		return;
	}
	(void)snprintf(link->why, sizeof(link->why), "it has %s its connection",
		       error ? "reset" : "closed");
	link_shut(link);
	hk__tcp_peer_judge(link->tcp, link->peer);
}

enum hk_status hk__tcp_link_status(struct tcp_link *link)
{
	if (__builtin_expect(link->status == HK_OK, 1))
		return HK_OK;
	return hk__why(&link->tcp->base.why, link->status, "rank %u (%s): %s", link->rank,
		       link->where, link->why);
}

void hk__tcp_link_destroy(struct tcp_link *link)
{
	const struct hk_alloc *alloc = link->tcp->alloc;

	link_close(link);
	link->state = LINK_BROKEN;
	link_drop_out(link);
	hk__array_fini(&link->in_ends);
	hk__array_fini(&link->out_ends);
	hk__mem_free(alloc, link, 1, sizeof(*link));
}

/* Takes it out of those that owe slots. */
static void link_disown(struct tcp_link *link)
{
	struct tcp_link **at = &link->tcp->owing;

	while (link->owes && *at != link)
		at = &(*at)->owing_next;
	if (link->owes)
		*at = link->owing_next;
	link->owes = false;
}

void hk__tcp_link_sweep(struct tcp *tcp)
{
	struct tcp_link **at = &tcp->retired;

	while (*at) {
		struct tcp_link *link = *at;

		if (link->chans) {
			at = &link->retired_next;
			continue;
		}
		*at = link->retired_next;
		link_disown(link);
		hk__tcp_link_destroy(link);
	}
}

/* ---- the queue ---- */

void hk__tcp_link_push(struct tcp_link *link, struct tcp_out *out)
{
	out->next = NULL;
	if (link->last)
		link->last->next = out;
	else
		link->first = out;
	link->last = out;
}

/* As early as can be: ahead of messages, but not inside of one. */
static void link_push_early(struct tcp_link *link, struct tcp_out *out)
{
	struct tcp_out **at = &link->first;

	if (*at && ((*at)->sent || wire_get_frame((*at)->head).type == WIRE_UP))
		at = &(*at)->next;
	out->next = *at;
	*at = out;
	if (!out->next)
		link->last = out;
}

static struct tcp_out *link_frame(struct tcp_link *link, const struct wire_frame *frame)
{
	struct tcp *tcp = link->tcp;
	struct tcp_out *out = tcp->outs;

	if (out)
		tcp->outs = out->next;
	else
		out = hk__mem_zalloc(tcp->alloc, 1, sizeof(*out));
	if (!out) {
		hk__tcp_link_break(link, HK_ENOMEM, "no memory to talk to it");
		return NULL;
	}
	*out = (struct tcp_out){ 0 };
	wire_put_frame(out->head, frame);
	return out;
}

void hk__tcp_link_say(struct tcp_link *link, const struct wire_frame *frame,
		      const struct wire_open *open)
{
	struct tcp_out *out;

	if (link->state != LINK_UP || link->deaf)
		return;
	out = link_frame(link, frame);
	if (!out)
		return;
	if (open)
		wire_put_open(out->head, open);
	hk__tcp_link_push(link, out);
}

void hk__tcp_link_note(struct tcp_link *link, const struct tcp_note *note, bool early)
{
	struct wire_frame frame = { .type = WIRE_NOTE, .len = note->len };
	struct tcp_out *out;

	if (link->state != LINK_UP || link->deaf)
		return;
	out = link_frame(link, &frame);
	if (!out)
		return;
	memcpy(out->head + WIRE_NOTE_AT, note->bytes, note->len);
	if (early)
		link_push_early(link, out);
	else
		hk__tcp_link_push(link, out);
}

void hk__tcp_link_announce(struct tcp_link *link, const struct tcp_chan *chan)
{
	const struct hk_chan_spec *spec = &chan->base.spec;
	struct wire_frame frame = { .type = WIRE_OPEN, .id = chan->id };
	struct wire_open open = { spec->key.from_lane, spec->key.to_lane, spec->key.context,
				  spec->slots, spec->slot_bytes };

	hk__tcp_link_say(link, &frame, &open);
}

/* ---- slots given back ---- */

static void link_push_credits(struct tcp_link *link)
{
	while (link->owing && link->state == LINK_UP) {
		struct tcp_chan *chan = link->owing;
		struct wire_frame frame = { .type = WIRE_CREDIT,
					    .id = chan->id,
					    .len = chan->owed };
		struct tcp_out *out = link_frame(link, &frame);

		if (!out)
			return;
		link_push_early(link, out);
		chan->held -= chan->owed;
		chan->owed = 0;
		link->owing = chan->owing_next;
	}
	link->due = false;
}

void hk__tcp_link_owe(struct tcp_chan *chan)
{
	struct tcp_link *link = chan->link;
	uint32_t slots = chan->base.spec.slots;

	if (link->state != LINK_UP || link->deaf)
		return;
	if (chan->owed++ == 0) {
		chan->owing_next = link->owing;
		link->owing = chan;
	}
	if (!link->owes) {
		link->owes = true;
		link->owing_next = link->tcp->owing;
		link->tcp->owing = link;
	}
	/*
	 * Said when half of the slots are free: HK_SLOTS_MIN can always be used, as
	 * a proof wants it (slots - (slots / 2 - 1) >= 2); the next poll does it, or
	 * the next message takes it along. A sender that has none left is told now.
	 */
	if (chan->owed >= slots / 2)
		link->due = true;
	if (chan->owed == slots)
		hk__tcp_link_write(link);
}

void hk__tcp_link_forget(struct tcp_chan *chan)
{
	struct tcp_chan **at = &chan->link->owing;

	if (!chan->owed)
		return;
	while (*at != chan)
		at = &(*at)->owing_next;
	*at = chan->owing_next;
	chan->owed = 0;
}

void hk__tcp_credits_write(struct tcp *tcp, bool all)
{
	struct tcp_link **at = &tcp->owing;

	while (*at) {
		struct tcp_link *link = *at;

		if ((all || link->due) && link->state == LINK_UP)
			hk__tcp_link_write(link);
		if (!link->owing || link->state != LINK_UP) {
			link->owes = false;
			*at = link->owing_next;
		} else {
			at = &link->owing_next;
		}
	}
}

/* ---- writing ---- */

bool hk__tcp_link_unsent(const struct tcp_link *link)
{
	const unsigned char *at;

	return link->state == LINK_UP && !link->deaf &&
	       (link->first || (link->seal && hk__seal_pending(link->seal, &at) > 0));
}

bool hk__tcp_link_untold(const struct tcp_link *link)
{
	const struct tcp_out *out = hk__tcp_link_unsent(link) ? link->first : NULL;
	const unsigned char *at;

	while (out && wire_get_frame(out->head).type != WIRE_NOTE)
		out = out->next;
	/* What is sealed already may be one. */
	return out || (link->seal && link->state == LINK_UP && !link->deaf &&
		       hk__seal_pending(link->seal, &at) > 0);
}

/* What to hand over at once; the bytes of it. */
static size_t link_gather(const struct tcp_link *link, struct iovec *parts, size_t *nparts_out)
{
	size_t n = 0, total = 0;

	for (struct tcp_out *out = link->first; out && n + 2 <= WRITE_PARTS; out = out->next) {
		size_t data_sent = out->sent > WIRE_FRAME_BYTES ? out->sent - WIRE_FRAME_BYTES : 0;

		if (out->sent < WIRE_FRAME_BYTES)
			parts[n++] = (struct iovec){ out->head + out->sent,
						     WIRE_FRAME_BYTES - out->sent };
		if (data_sent < out->len)
			parts[n++] = (struct iovec){ (unsigned char *)out->data + data_sent,
						     out->len - data_sent };
		total += WIRE_FRAME_BYTES + (size_t)out->len - out->sent;
	}
	*nparts_out = n;
	return total;
}

static void link_advance(struct tcp_link *link, size_t wrote)
{
	while (wrote) {
		struct tcp_out *out = link->first;

		hk_assert(out);
		size_t left = WIRE_FRAME_BYTES + (size_t)out->len - out->sent;
		if (wrote < left) {
			out->sent += wrote;
			return;
		}
		wrote -= left;
		link->first = out->next;
		if (!link->first)
			link->last = NULL;
		if (out->chan) {
			hk__tcp_chan_written(out->chan, out);
		} else {
			out->next = link->tcp->outs;
			link->tcp->outs = out;
		}
	}
}

static void link_block(struct tcp_link *link, bool blocked)
{
	if (link->blocked == blocked)
		return;
	if (hk__tcp_watch(link->tcp, link->fd, EPOLLIN | (blocked ? EPOLLOUT : 0), &link->source,
			  false) != HK_OK) {
		hk__tcp_link_break(link, HK_EIO, "its connection cannot be watched");
		return;
	}
	link->blocked = blocked;
	link->tcp->nblocked += blocked ? 1u : -1u;
}

/* After send(2); true: there may be more to do. */
static bool link_wrote(struct tcp_link *link, ssize_t wrote, size_t total)
{
	if (wrote < 0 && errno == EINTR)
		return true;
	if (wrote < 0 && errno == EFAULT) {
		hk__tcp_link_break(link, HK_EIO, "what was lent to it is not there");
		return false;
	}
	if (wrote < 0 && errno != EAGAIN && errno != ENOBUFS) {
		link_deafen(link, errno);
		return false;
	}
	if (wrote > 0)
		link->tcp->base.moved++;
	if (wrote < 0 || (size_t)wrote < total) {
		link_block(link, true);
		return false;
	}
	return true;
}

/* The next record, of as much as there is and fits. */
static void link_fill(struct tcp_link *link)
{
	unsigned char *room = hk__seal_room(link->seal);
	size_t len = 0;

	for (const struct tcp_out *out = link->first; out && len < HK__SEAL_BYTES;
	     out = out->next) {
		size_t all = WIRE_FRAME_BYTES + (size_t)out->len;

		for (size_t at = out->sent; at < all && len < HK__SEAL_BYTES;) {
			bool head = at < WIRE_FRAME_BYTES;
			const unsigned char *from =
				head ? out->head + at : out->data + (at - WIRE_FRAME_BYTES);
			size_t here = (head ? WIRE_FRAME_BYTES : all) - at;

			here = here < HK__SEAL_BYTES - len ? here : HK__SEAL_BYTES - len;
			memcpy(room + len, from, here);
			len += here;
			at += here;
		}
	}
	hk__seal_close(link->seal, (uint32_t)len);
	link_advance(link, len);
}

static void link_write_sealed(struct tcp_link *link)
{
	const unsigned char *at;

	while (link->state == LINK_UP) {
		size_t len = hk__seal_pending(link->seal, &at);

		if (!len && !link->first) {
			link_block(link, false);
			return;
		}
		if (!len) {
			link_fill(link);
			continue;
		}
		ssize_t wrote = send(link->fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (wrote > 0)
			hk__seal_wrote(link->seal, (size_t)wrote);
		if (!link_wrote(link, wrote, len))
			return;
	}
}

void hk__tcp_link_write(struct tcp_link *link)
{
	if (link->state != LINK_UP || link->deaf)
		return;
	if (link->owing)
		link_push_credits(link);
	if (link->seal) {
		link_write_sealed(link);
		return;
	}
	while (link->first) {
		struct iovec parts[WRITE_PARTS];
		struct msghdr message = { .msg_iov = parts };
		size_t total = link_gather(link, parts, &message.msg_iovlen);
		ssize_t wrote = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (wrote > 0)
			link_advance(link, (size_t)wrote);
		if (!link_wrote(link, wrote, total))
			return;
	}
	link_block(link, false);
}
