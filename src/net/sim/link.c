/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - who reaches whom, and how ranks learn that somebody is gone.
 *
 * Between hosts there are connections, told apart by a number (epoch). One that
 * breaks is noticed by each side for itself; from then on what was opened before is
 * HK_EPEER there, and what is opened later is of the next. Inside a host nothing
 * breaks: who is gone is found by watch().
 */
#include "net/sim/simnet.h"

#include <string.h>

bool hk__sim_is_cut(const struct hk__simnet *simnet, uint32_t a, uint32_t b)
{
	const struct sim_fault *faults = simnet->faults.items;

	for (size_t i = 0; i < simnet->faults.count; i++) {
		uint64_t mask = faults[i].what.mask;

		if (faults[i].what.what == HK__SIMNET_CUT && faults[i].begun && !faults[i].over &&
		    (mask >> simnet->ranks[a].host & 1) != (mask >> simnet->ranks[b].host & 1))
			return true;
	}
	return false;
}

uint64_t hk__sim_arrival(struct hk__simnet *simnet, uint32_t a, uint32_t b)
{
	uint64_t delay = hk__sim_delay(simnet);

	return hk__sim_is_cut(simnet, a, b) ? NEVER : simnet->now + delay;
}

static uint32_t *epoch_of(struct hk__simnet *simnet, uint32_t a, uint32_t b)
{
	return &simnet->epochs[hk__min(a, b) * simnet->spec.n + hk__max(a, b)];
}

static bool is_gone(const struct hk__simnet *simnet, uint32_t rank)
{
	return simnet->ranks[rank].state == HK__SIMNET_KILLED || simnet->ranks[rank].left;
}

/* ---- mail ---- */

static void mail_send(struct hk__simnet *simnet, uint32_t to, const struct sim_mail *mail)
{
	struct sim_mail *place = hk__array_push(&simnet->ranks[to].mail);

	hk_assert(place);
	*place = *mail;
	hk__sim_stir(simnet, to, mail->at);
}

static void mail_lost(struct hk__simnet *simnet, uint32_t to, uint32_t about, uint64_t at,
		      bool by_cut)
{
	mail_send(simnet, to,
		  &(struct sim_mail){ .at = at,
				      .what = HK_NET_LOST,
				      .from = about,
				      .epoch = side_of(simnet, to, about)->epoch,
				      .by_cut = by_cut });
}

/* A connection to one that is no more, or was never there: refused. */
static void mail_gone(struct hk__simnet *simnet, uint32_t to, uint32_t about, uint64_t at)
{
	uint64_t verified = at + 1 + hk__sim_draw(simnet, simnet->spec.verify_ns);
	bool left = simnet->ranks[about].left;

	if (!left)
		mail_lost(simnet, to, about, at, false);
	mail_send(simnet, to,
		  &(struct sim_mail){ .at = left ? at : verified,
				      .what = left ? HK_NET_LEFT : HK_NET_DEAD,
				      .from = about,
				      .epoch = side_of(simnet, to, about)->epoch });
}

/* That the connection is no more. */
static bool side_break(struct hk__simnet *simnet, uint32_t rank, uint32_t peer, uint32_t epoch)
{
	struct sim_side *side = side_of(simnet, rank, peer);
	uint32_t *last = epoch_of(simnet, rank, peer);

	if (side->epoch > epoch)
		return false;
	if (*last == epoch)
		++*last;
	side->epoch = *last;
	side->broken = true;
	return true;
}

static void mail_deliver(struct hk__simnet *simnet, uint32_t rank, const struct sim_mail *mail)
{
	struct sim_side *side = side_of(simnet, rank, mail->from);
	struct sim_port *port = simnet->ranks[rank].port;
	struct hk_net_event event = { .what = mail->what, .rank = mail->from };

	hk__sim_trace(simnet, rank, 3 + mail->what, mail->from);
	if (mail->what == HK_NET_TOLD) {
		event.note = mail->note;
		event.len = mail->len;
	} else if (mail->what == HK_NET_LOST) {
		if (!side_break(simnet, rank, mail->from, mail->epoch))
			return;
		event.why = mail->by_cut ? "nothing was heard from its host"
					 : "the connection was closed";
	} else if (mail->what == HK_NET_DEAD) {
		if (side->dead)
			return;
		side->dead = true;
		event.why = "its process has ended: the host refuses connections";
	} else {
		if (side->left)
			return;
		(void)side_break(simnet, rank, mail->from, mail->epoch);
		side->left = true;
	}
	hk__net_report(&port->base, &event);
}

void hk__sim_mail_read(struct hk__simnet *simnet, uint32_t rank)
{
	struct hk__array *array = &simnet->ranks[rank].mail;

	for (;;) {
		struct sim_mail *mail = array->items, first;
		size_t at = array->count;

		for (size_t i = 0; i < array->count; i++)
			if (mail[i].at <= simnet->now &&
			    (at == array->count || mail[i].at < mail[at].at))
				at = i;
		if (at == array->count)
			return;
		first = mail[at];
		memmove(&mail[at], &mail[at + 1], (array->count - at - 1) * sizeof(*mail));
		array->count--;
		mail_deliver(simnet, rank, &first);
	}
}

/* ---- connections ---- */

void hk__sim_link(struct hk__simnet *simnet, uint32_t rank, uint32_t peer)
{
	struct sim_side *side = side_of(simnet, rank, peer), *other = side_of(simnet, peer, rank);
	uint64_t silence = simnet->spec.silence_ns;

	if (is_near(simnet, rank, peer))
		return;
	bool cut = hk__sim_is_cut(simnet, rank, peer);
	if (!side->linked) {
		side->linked = other->linked = true;
		if (cut)
			mail_lost(simnet, rank, peer,
				  simnet->now + silence + hk__sim_draw(simnet, silence / 8 + 1),
				  true);
		else if (is_gone(simnet, peer))
			mail_gone(simnet, rank, peer, simnet->now + hk__sim_delay(simnet));
	} else if (side->broken && !cut && !is_gone(simnet, peer)) {
		side->broken = false;
		/* A greeting of the next one says to the other side that the last is no more. */
		if (other->epoch < side->epoch)
			mail_lost(simnet, peer, rank, simnet->now + hk__sim_delay(simnet), false);
	}
}

enum hk_status hk__sim_chan_status(struct sim_chan *chan, bool *up_out)
{
	struct hk__simnet *simnet = port_of(chan->base.net)->simnet;
	uint32_t rank = chan->base.net->rank, peer = chan->base.spec.key.peer;
	struct sim_side *side = side_of(simnet, rank, peer);

	*up_out = true;
	if (chan->cancelled)
		return hk__why(&chan->base.net->why, HK_EPEER, "the channel was aborted");
	if (is_near(simnet, rank, peer))
		return HK_OK;
	hk__sim_link(simnet, rank, peer);
	*up_out = !side->broken;
	if (chan->epoch == side->epoch && (*up_out || (!simnet->pending_fails && !side->left)))
		return HK_OK;
	return hk__why(&chan->base.net->why, HK_EPEER, "the connection to rank %u is no more",
		       peer);
}

/* ---- ranks that are gone ---- */

/* What becomes of what was under way. */
enum fate {
	LOSES_ALL,
	LOSES_UNPUSHED, /* what its system had taken comes */
	LOSES_NOTHING
};

/* When the last of it is there. */
static uint64_t last_words(struct hk__simnet *simnet, uint32_t from, uint32_t to, enum fate fate)
{
	uint64_t last = simnet->now;

	for (struct sim_pipe *pipe = simnet->pipes; pipe; pipe = pipe->next) {
		if (pipe->from != from || pipe->spec.key.peer != to)
			continue;
		for (uint64_t i = pipe->taken; i < pipe->sent; i++) {
			struct sim_message *message = message_at(pipe, i);

			if (fate == LOSES_ALL ||
			    (fate == LOSES_UNPUSHED && message->pushed > simnet->now))
				message->lost = true;
			else if (message->ready != NEVER && message->ready > last)
				last = message->ready;
		}
	}
	return last;
}

void hk__sim_killed(struct hk__simnet *simnet, uint32_t rank)
{
	for (uint32_t r = 0; r < simnet->spec.n; r++) {
		struct sim_side *side = side_of(simnet, r, rank);

		if (r == rank)
			continue;
		side->found = simnet->now + hk__sim_draw(simnet, simnet->spec.verify_ns);
		if (is_near(simnet, r, rank) || !side->linked)
			continue;
		/* Who did not read all that came resets the connection. */
		enum fate fate = hk__sim_draw(simnet, 2) ? LOSES_UNPUSHED : LOSES_ALL;
		uint64_t at = last_words(simnet, rank, r, fate) + hk__sim_delay(simnet);
		if (!hk__sim_is_cut(simnet, r, rank))
			mail_gone(simnet, r, rank, at);
	}
}

void hk__sim_left(struct hk__simnet *simnet, uint32_t rank)
{
	for (uint32_t r = 0; r < simnet->spec.n; r++) {
		struct sim_side *side = side_of(simnet, r, rank);

		if (r == rank)
			continue;
		side->found = simnet->now;
		if (is_near(simnet, r, rank) || !side->linked || hk__sim_is_cut(simnet, r, rank))
			continue;
		uint64_t at = last_words(simnet, rank, r, LOSES_NOTHING) + hk__sim_delay(simnet);
		mail_gone(simnet, r, rank, at);
	}
}

/* ---- hosts that are cut off ---- */

static void hold(const struct hk__simnet *simnet, uint64_t *time)
{
	if (*time > simnet->now)
		*time = NEVER;
}

static void let_go(struct hk__simnet *simnet, uint64_t *time, uint32_t to)
{
	if (*time != NEVER)
		return;
	*time = simnet->now + hk__sim_delay(simnet);
	hk__sim_stir(simnet, to, *time);
}

static void pipe_hold(struct hk__simnet *simnet, struct sim_pipe *pipe, bool holds)
{
	uint32_t to = pipe->spec.key.peer;
	uint64_t last = 0,
		 first = pipe->sent > pipe->spec.slots ? pipe->sent - pipe->spec.slots : 0;

	if (hk__sim_is_cut(simnet, pipe->from, to) != holds || is_near(simnet, pipe->from, to))
		return;
	if (holds)
		hold(simnet, &pipe->appears);
	else
		let_go(simnet, &pipe->appears, pipe->from);
	for (uint64_t i = first; i < pipe->sent; i++) {
		struct sim_message *message = message_at(pipe, i);

		if (holds) {
			hold(simnet, &message->ready);
			if (message->released) {
				hold(simnet, &message->freed);
				hold(simnet, &message->returned);
			}
			continue;
		}
		let_go(simnet, &message->ready, to);
		if (message->ready < last)
			message->ready = last; /* in order */
		last = message->ready;
		if (message->released) {
			let_go(simnet, &message->freed, pipe->from);
			let_go(simnet, &message->returned, pipe->from);
		}
	}
}

/* What was held up goes on, and who was to be taken for lost is not. */
static void mail_let_go(struct hk__simnet *simnet, uint32_t rank)
{
	struct hk__array *array = &simnet->ranks[rank].mail;
	struct sim_mail *mail = array->items;
	size_t kept = 0;

	for (size_t i = 0; i < array->count; i++) {
		bool cut = hk__sim_is_cut(simnet, rank, mail[i].from);

		if (!cut && mail[i].by_cut)
			continue;
		if (!cut)
			let_go(simnet, &mail[i].at, rank);
		mail[kept++] = mail[i];
	}
	array->count = kept;
}

static void pair_cut(struct hk__simnet *simnet, uint32_t rank, uint32_t peer)
{
	uint64_t silence = simnet->spec.silence_ns;
	struct sim_mail *mail = simnet->ranks[rank].mail.items;

	if (is_near(simnet, rank, peer) || !side_of(simnet, rank, peer)->linked ||
	    side_of(simnet, rank, peer)->broken)
		return;
	for (size_t i = 0; i < simnet->ranks[rank].mail.count; i++)
		if (mail[i].from == peer)
			hold(simnet, &mail[i].at);
	mail_lost(simnet, rank, peer, simnet->now + silence + hk__sim_draw(simnet, silence / 8 + 1),
		  true);
}

void hk__sim_cut(struct hk__simnet *simnet, const struct sim_fault *fault)
{
	uint64_t mask = fault->what.mask;

	for (struct sim_pipe *pipe = simnet->pipes; pipe; pipe = pipe->next)
		pipe_hold(simnet, pipe, true);
	for (uint32_t a = 0; a < simnet->spec.n; a++) {
		for (uint32_t b = 0; b < simnet->spec.n; b++) {
			if ((mask >> simnet->ranks[a].host & 1) !=
			    (mask >> simnet->ranks[b].host & 1))
				pair_cut(simnet, a, b);
		}
	}
}

void hk__sim_healed(struct hk__simnet *simnet)
{
	for (struct sim_pipe *pipe = simnet->pipes; pipe; pipe = pipe->next)
		pipe_hold(simnet, pipe, false);
	for (uint32_t r = 0; r < simnet->spec.n; r++) {
		mail_let_go(simnet, r);
		/* Who went while nobody could hear it is found out now. */
		for (uint32_t peer = 0; peer < simnet->spec.n; peer++) {
			const struct sim_side *side = side_of(simnet, r, peer);

			if (peer != r && side->linked && !side->dead && !side->left &&
			    is_gone(simnet, peer) && !hk__sim_is_cut(simnet, r, peer))
				mail_gone(simnet, r, peer, simnet->now + hk__sim_delay(simnet));
		}
		hk__sim_stir(simnet, r, simnet->now + hk__sim_delay(simnet));
	}
}

void hk__sim_drop(struct hk__simnet *simnet, uint32_t a, uint32_t b)
{
	if (is_near(simnet, a, b) || !side_of(simnet, a, b)->linked || is_gone(simnet, a) ||
	    is_gone(simnet, b) || hk__sim_is_cut(simnet, a, b))
		return;
	(void)last_words(simnet, a, b, LOSES_ALL);
	(void)last_words(simnet, b, a, LOSES_ALL);
	mail_lost(simnet, a, b, simnet->now + hk__sim_delay(simnet), false);
	mail_lost(simnet, b, a, simnet->now + hk__sim_delay(simnet), false);
}

/* ---- what ranks ask for ---- */

void hk__sim_tell(struct hk_net *net, const void *note, uint32_t len)
{
	struct hk__simnet *simnet = port_of(net)->simnet;
	struct sim_mail mail = { .what = HK_NET_TOLD, .from = net->rank, .len = len };

	hk__sim_act(net, 3, len);
	memcpy(mail.note, note, len);
	for (uint32_t r = 0; r < simnet->spec.n; r++) {
		const struct sim_side *side = side_of(simnet, net->rank, r);

		if (r == net->rank || is_gone(simnet, r) ||
		    (!is_near(simnet, net->rank, r) && (!side->linked || side->broken)))
			continue;
		mail.at = hk__sim_arrival(simnet, net->rank, r);
		mail_send(simnet, r, &mail);
	}
}

void hk__sim_watch(struct hk_net *net)
{
	struct hk__simnet *simnet = port_of(net)->simnet;

	for (uint32_t r = 0; r < simnet->spec.n; r++) {
		struct sim_side *side = side_of(simnet, net->rank, r);
		bool left = simnet->ranks[r].left;

		if (r == net->rank || !is_near(simnet, net->rank, r) || !is_gone(simnet, r) ||
		    side->found > simnet->now || side->dead || side->left)
			continue;
		side->left = left;
		side->dead = !left;
		hk__sim_trace(simnet, net->rank, 8, r);
		hk__net_report(net,
			       &(struct hk_net_event){ .what = left ? HK_NET_LEFT : HK_NET_DEAD,
						       .rank = r,
						       .why = "its process has ended" });
	}
}
