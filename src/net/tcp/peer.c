/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.c - other ranks: which have left, are lost or dead, and notes to them.
 *
 * A connection that ends without BYE says that its rank is gone, not why. So the
 * rank's port is asked: where nobody listens any more the process has ended; who
 * proves that it holds the key lives, and was only cut off; and where nothing is
 * heard in a moment it is lost for now. The same probe is sent where a rank has
 * to be waited for and says nothing: one that is to connect to this one, or one
 * whose host acknowledges nothing of what was sent. The system of a host answers
 * for a process that is slow or stopped, so these are not taken for dead; and
 * where it does not, as too many wait to be let in, it refuses connections at
 * the rank's quiet port: bound by the rank, and never listened at.
 *
 * What is found waits in a list until the net may report it.
 */
#include "net/tcp/link.h"

#include <string.h>

#define JUDGE_NS UINT64_C(100000000) /* a port that nobody listens on says so sooner */
#define SEEN_NS UINT64_C(1000000000) /* attempts, and pings with them, are not rarer */
#define WATCH_MAX 64u		     /* connections that are looked at, at a time */

struct tcp_peer *hk__tcp_peer_at(struct tcp *tcp, uint32_t rank)
{
	struct tcp_peer **at = &tcp->peers[rank];

	if (!*at)
		*at = hk__mem_zalloc(tcp->alloc, 1, sizeof(**at));
	if (*at)
		(*at)->rank = rank;
	return *at;
}

bool hk__tcp_peer_is(const struct tcp_peer *peer, enum hk_net_what what)
{
	return peer->said & 1u << what;
}

/* ---- what is found ---- */

static void peer_say(struct tcp *tcp, struct tcp_peer *peer, enum hk_net_what what)
{
	struct tcp_peer **at = &tcp->news;

	peer->said |= 1u << what;
	peer->news |= 1u << what;
	if (peer->in_news)
		return;
	peer->in_news = true;
	peer->news_next = NULL;
	while (*at)
		at = &(*at)->news_next;
	*at = peer;
}

void hk__tcp_peer_left(struct tcp *tcp, struct tcp_peer *peer)
{
	if (!peer->said)
		peer_say(tcp, peer, HK_NET_LEFT);
}

void hk__tcp_peer_lost(struct tcp *tcp, struct tcp_peer *peer, const char *why)
{
	if (peer->said)
		return;
	memcpy(peer->why, why, sizeof(peer->why));
	peer_say(tcp, peer, HK_NET_LOST);
}

void hk__tcp_peer_report(struct tcp *tcp)
{
	while (tcp->news) {
		struct tcp_peer *peer = tcp->news;
		uint32_t news = peer->news;
		struct hk_net_event event = { .rank = peer->rank };

		tcp->news = peer->news_next;
		peer->in_news = false;
		peer->news = 0;
		if (news & 1u << HK_NET_DEAD) {
			event.what = HK_NET_DEAD;
			event.why = "its process has ended";
		} else if (news & 1u << HK_NET_LOST) {
			event.what = HK_NET_LOST;
			event.why = peer->why;
		} else {
			event.what = HK_NET_LEFT;
		}
		hk__net_report(&tcp->base, &event);
	}
}

/* ---- judgement ---- */

static void judged_remove(struct tcp *tcp, struct tcp_peer *peer)
{
	struct tcp_peer **at = &tcp->judged;

	if (!peer->judge_at)
		return;
	while (*at != peer)
		at = &(*at)->judged_next;
	*at = peer->judged_next;
	peer->judge_at = 0;
}

/* A probe or a ping is over, if there is one. */
static void asking_end(struct tcp *tcp, struct tcp_link **at)
{
	struct tcp_link *asking = *at;

	if (!asking)
		return;
	*at = NULL;
	hk__tcp_greet_stop(asking);
	asking->state = LINK_BROKEN;
	/* An event about it may be waiting in this round. */
	asking->retired_next = tcp->retired;
	tcp->retired = asking;
}

/* HK_OK: it is under way; *at is it, until it is over. */
static enum hk_status asking_begin(struct tcp *tcp, struct tcp_peer *peer, uint32_t index,
				   struct tcp_link **at)
{
	struct tcp_link *asking;

	if (*at || !tcp->spec.address)
		return *at ? HK_OK : HK_EINVAL;
	enum hk_status status = hk__tcp_link_create(tcp, peer, index, &asking);
	if (status != HK_OK)
		return status;
	*at = asking;
	asking->state = LINK_WANTED;
	return tcp->spec.address(tcp->spec.ctx, peer->rank, &asking->addr, &asking->addr_len);
}

void hk__tcp_peer_conclude(struct tcp *tcp, struct tcp_peer *peer)
{
	if (!peer->judge_at)
		return;
	judged_remove(tcp, peer);
	for (uint32_t i = 0; i < tcp->spec.conns; i++) {
		struct tcp_link *link = peer->links[i];

		if (link && link->state == LINK_BROKEN)
			hk__tcp_link_break(link, HK_EPEER, "%s", link->why);
	}
}

void hk__tcp_peer_dead(struct tcp *tcp, struct tcp_peer *peer)
{
	if (hk__tcp_peer_is(peer, HK_NET_DEAD) || hk__tcp_peer_is(peer, HK_NET_LEFT))
		return;
	peer_say(tcp, peer, HK_NET_DEAD);
	judged_remove(tcp, peer);
	asking_end(tcp, &peer->probe);
	for (uint32_t i = 0; i < tcp->spec.conns; i++)
		if (peer->links[i])
			hk__tcp_link_break(peer->links[i], HK_EPEER,
					   "its process has ended (connections are refused)");
}

void hk__tcp_peer_probe(struct tcp *tcp, struct tcp_peer *peer)
{
	peer->probed = hk__now_ns();
	if (peer->probe || hk__tcp_peer_is(peer, HK_NET_DEAD) || hk__tcp_peer_is(peer, HK_NET_LEFT))
		return;
	enum hk_status status = asking_begin(tcp, peer, TCP_PROBE, &peer->probe);
	if (status == HK_OK)
		status = hk__tcp_greet_connect(peer->probe);
	if (status != HK_OK && peer->probe)
		hk__tcp_peer_probed(peer->probe, "there is no way to ask", true);
}

void hk__tcp_peer_ping(struct tcp *tcp, struct tcp_peer *peer)
{
	const struct hk_tcp_spec *spec = &tcp->spec;
	uint16_t port = spec->quiet_port ? spec->quiet_port(spec->ctx, peer->rank) : 0;

	if (peer->ping || !port)
		return;
	enum hk_status status = asking_begin(tcp, peer, TCP_PING, &peer->ping);
	if (status == HK_OK) {
		hk__tcp_port_set(&peer->ping->addr, port);
		status = hk__tcp_greet_connect(peer->ping);
	}
	if (status != HK_OK && peer->ping)
		hk__tcp_peer_pinged(peer->ping, false);
}

bool hk__tcp_peer_seen(const struct tcp *tcp, const struct tcp_peer *peer, uint64_t now)
{
	return peer->seen && now - peer->seen < tcp->spec.silence_ns + SEEN_NS;
}

void hk__tcp_peer_pinged(struct tcp_link *ping, bool lives)
{
	if (lives)
		ping->peer->seen = hk__now_ns();
	asking_end(ping->tcp, &ping->peer->ping);
}

void hk__tcp_peer_probed(struct tcp_link *probe, const char *what, bool lives)
{
	struct tcp *tcp = probe->tcp;
	struct tcp_peer *peer = probe->peer;

	asking_end(tcp, &peer->probe);
	hk__tcp_peer_conclude(tcp, peer);
	for (uint32_t i = 0; i < tcp->spec.conns && !lives; i++)
		if (peer->links[i] && peer->links[i]->state == LINK_WANTED)
			hk__tcp_link_break(peer->links[i], HK_EPEER, "it cannot be reached: %s",
					   what);
}

void hk__tcp_peer_judge(struct tcp *tcp, struct tcp_peer *peer)
{
	if (!peer->judge_at) {
		peer->judge_at = hk__now_ns() + JUDGE_NS;
		peer->judged_next = tcp->judged;
		tcp->judged = peer;
	}
	hk__tcp_peer_probe(tcp, peer);
	if (!peer->probe) /* it is known already, or cannot be */
		hk__tcp_peer_conclude(tcp, peer);
}

uint64_t hk__tcp_peer_timers(struct tcp *tcp, uint64_t now)
{
	struct tcp_peer *peer = tcp->judged, *after;
	uint64_t next = 0;

	for (; peer; peer = after) {
		after = peer->judged_next;
		if (peer->judge_at <= now)
			hk__tcp_peer_conclude(tcp, peer);
		else if (!next || peer->judge_at < next)
			next = peer->judge_at;
	}
	return next;
}

/* ---- looking after them ---- */

/* A host that acknowledges nothing, nor takes another connection, is out of reach. */
static void link_look_after(struct tcp_link *link, uint64_t now)
{
	struct tcp *tcp = link->tcp;
	uint64_t silence = tcp->spec.silence_ns;
	uint64_t silent_ns = hk__tcp_silent_ms(link->fd, silence) * UINT64_C(1000000);

	if (!silent_ns) {
		link->silent_since = 0;
		return;
	}
	/* A connection that is idle says that its host is there only now and then. */
	if (!link->silent_since || now - silent_ns > link->silent_since + silence / 8)
		link->silent_since = now - (silent_ns < silence / 4 ? silent_ns : silence / 4);
	if (now - link->silent_since < silence / 2)
		return;
	hk__tcp_peer_probe(tcp, link->peer);
	if (link->state != LINK_UP)
		return;
	if ((link->peer->probe && link->peer->probe->answered) ||
	    hk__tcp_peer_seen(tcp, link->peer, now))
		link->silent_since = now;
	else if (now - link->silent_since >= silence)
		hk__tcp_link_break(link, HK_EPEER, "its host has not answered for %.3g s",
				   (double)silence / 1e9);
}

/* One that is to connect to this rank: whether it is there at all. */
static void link_await(struct tcp_link *link, uint64_t now)
{
	struct tcp_peer *peer = link->peer;
	uint64_t since = peer->probed > link->wanted_since ? peer->probed : link->wanted_since;

	if (now - since >= link->tcp->spec.silence_ns / 8)
		hk__tcp_peer_probe(link->tcp, peer);
}

void hk__tcp_look_after(struct hk_net *net)
{
	struct tcp *tcp = tcp_of(net);
	uint64_t now = hk__now_ns();

	for (uint32_t i = 0; i < WATCH_MAX && i < tcp->up.count; i++)
		link_look_after(((struct tcp_link **)tcp->up.items)[tcp->look_at++ % tcp->up.count],
				now);
	for (uint32_t i = 0; i < WATCH_MAX && i < tcp->awaited.count; i++)
		link_await(((struct tcp_link **)
				    tcp->awaited.items)[tcp->look_at++ % tcp->awaited.count],
			   now);
	hk__tcp_greet_sweep(tcp);
	hk__tcp_peer_report(tcp);
}

/* ---- notes ---- */

/* Kept for who connects later; without memory they have to hear it elsewhere. */
static void note_keep(struct tcp *tcp, const struct tcp_note *note)
{
	if (!tcp->notes)
		tcp->notes = hk__mem_zalloc(tcp->alloc, TCP_NOTES, sizeof(*tcp->notes));
	if (tcp->notes)
		tcp->notes[tcp->nnotes % TCP_NOTES] = *note;
	tcp->nnotes++;
}

void hk__tcp_tell(struct hk_net *net, const void *bytes, uint32_t len)
{
	struct tcp *tcp = tcp_of(net);
	struct tcp_note note = { .len = len };

	if (len)
		memcpy(note.bytes, bytes, len);
	note_keep(tcp, &note);
	for (size_t i = tcp->up.count; i-- > 0;) {
		struct tcp_link *link =
			i < tcp->up.count ? ((struct tcp_link **)tcp->up.items)[i] : NULL;

		/* Once for each peer, over the first of its connections that takes it. */
		if (!link || link->deaf || link->peer->told == tcp->nnotes)
			continue;
		link->peer->told = tcp->nnotes;
		hk__tcp_link_note(link, &note, true);
		hk__tcp_link_write(link);
	}
}

bool hk__tcp_untold(const struct hk_net *net)
{
	const struct tcp *tcp = (const struct tcp *)net;

	for (size_t i = 0; i < tcp->up.count; i++)
		if (hk__tcp_link_untold(((struct tcp_link **)tcp->up.items)[i]))
			return true;
	return false;
}

void hk__tcp_peer_greet(struct tcp_link *link)
{
	struct tcp *tcp = link->tcp;
	uint64_t at = link->peer->told;

	link->told_before = at;
	if (at + TCP_NOTES < tcp->nnotes)
		at = tcp->nnotes - TCP_NOTES;
	for (; tcp->notes && at < tcp->nnotes; at++)
		hk__tcp_link_note(link, &tcp->notes[at % TCP_NOTES], false);
	link->peer->told = tcp->nnotes;
}

/* ---- the end ---- */

void hk__tcp_peers_free(struct tcp *tcp)
{
	for (uint32_t r = 0; r < tcp->base.n; r++) {
		struct tcp_peer *peer = tcp->peers[r];

		if (!peer)
			continue;
		asking_end(tcp, &peer->probe);
		asking_end(tcp, &peer->ping);
		for (uint32_t i = 0; i < tcp->spec.conns; i++)
			if (peer->links[i])
				hk__tcp_link_destroy(peer->links[i]);
	}
	while (tcp->retired) {
		struct tcp_link *link = tcp->retired;

		tcp->retired = link->retired_next;
		hk__tcp_link_destroy(link);
	}
	for (uint32_t r = 0; r < tcp->base.n; r++)
		hk__mem_free(tcp->alloc, tcp->peers[r], 1, sizeof(struct tcp_peer));
}
