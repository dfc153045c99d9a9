/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.c - every call goes on to the net below, unless the link it is about has
 * something wrong with it. An end that is closed, and opened again, is of the next
 * link.
 */
#include "net/hook/hook.h"

#include <string.h>

struct link {
	uint64_t messages;
	uint32_t epoch;	      /* drops so far */
	uint64_t still_until; /* a time, or UINT64_MAX */
	uint32_t still_epoch; /* stalls so far: later channels move */
	bool spoils;	      /* the next message that is sent: */
	enum hk__hook_what how;
};

struct hook {
	struct hk_net base;
	struct hk_net *net;
	const struct hk_alloc *alloc;
	struct link *links;
	struct hk__hook_fault *faults;
	uint32_t nfaults;
};

struct hook_chan {
	struct hk_chan base;
	struct hk_chan *chan;
	uint32_t epoch, still_epoch;
	void *slot;  /* reserved */
	void *again; /* a message that is to be sent twice; NULL: none */
	uint32_t again_len, again_kind;
};

static struct hook *hook_of(const struct hk_net *net)
{
	return (struct hook *)net;
}

static struct hook_chan *hook_chan_of(const struct hk_chan *chan)
{
	return (struct hook_chan *)chan;
}

static struct link *link_of(const struct hk_chan *chan)
{
	return &hook_of(chan->net)->links[chan->spec.key.peer];
}

/* What the net below has to say is said here. */
static enum hk_status passed(struct hook *hook, enum hk_status status)
{
	if (status != HK_OK)
		hook->base.why = hook->net->why;
	hook->base.moved = hook->net->moved;
	return status;
}

/* ---- what goes wrong ---- */

static void link_drop(struct hook *hook, uint32_t peer)
{
	struct hk_net_event event = { .what = HK_NET_LOST,
				      .rank = peer,
				      .why = "the connection was dropped" };

	hook->links[peer].epoch++;
	hk__net_report(&hook->base, &event);
}

static void fault_begin(struct hook *hook, const struct hk__hook_fault *fault)
{
	struct link *link = &hook->links[fault->peer];

	if (fault->what == HK__HOOK_DROP) {
		link_drop(hook, fault->peer);
	} else if (fault->what == HK__HOOK_DELAY) {
		link->still_until = hk__now_ns() + fault->delay_ns;
	} else if (fault->what == HK__HOOK_STALL) {
		link->still_epoch++;
	} else {
		link->spoils = true;
		link->how = fault->what;
	}
}

/* One more message between this rank and the peer. */
static void link_count(const struct hk_chan *chan)
{
	struct hook *hook = hook_of(chan->net);
	uint32_t peer = chan->spec.key.peer;
	uint64_t messages = ++hook->links[peer].messages;

	for (uint32_t i = 0; i < hook->nfaults; i++)
		if (hook->faults[i].peer == peer && hook->faults[i].at + 1 == messages)
			fault_begin(hook, &hook->faults[i]);
}

/* HK_INPROGRESS: nothing moves now. */
static enum hk_status chan_fate(const struct hk_chan *base)
{
	const struct hook_chan *chan = hook_chan_of(base);
	struct link *link = link_of(base);

	if (chan->epoch != link->epoch)
		return hk__why(&base->net->why, HK_EPEER, "the connection to rank %u was dropped",
			       base->spec.key.peer);
	if (chan->still_epoch != link->still_epoch)
		return HK_INPROGRESS;
	if (link->still_until && hk__now_ns() < link->still_until)
		return HK_INPROGRESS;
	link->still_until = 0;
	return HK_OK;
}

static bool chan_moves(const struct hk_chan *base, enum hk_status *status_out)
{
	enum hk_status fate = chan_fate(base);

	*status_out = fate == HK_INPROGRESS ? HK_OK : fate;
	return fate == HK_OK;
}

/* ---- channels ---- */

static const struct hk_chan_ops hook_chan_ops;

static enum hk_status chan_open(struct hk_net *net, const struct hk_chan_spec *spec, bool sends,
				struct hk_chan **chan_out)
{
	struct hook *hook = hook_of(net);
	const struct link *link = &hook->links[spec->key.peer];
	struct hook_chan *chan = hk__mem_zalloc(hook->alloc, 1, sizeof(*chan));

	if (!chan)
		return HK_ENOMEM;
	*chan = (struct hook_chan){ .base = { .ops = &hook_chan_ops, .net = net, .spec = *spec },
				    .epoch = link->epoch,
				    .still_epoch = link->still_epoch };
	enum hk_status status =
		passed(hook, sends ? hk__chan_open_send(hook->net, spec, &chan->chan)
				   : hk__chan_open_recv(hook->net, spec, &chan->chan));
	if (status != HK_OK) {
		hk__mem_free(hook->alloc, chan, 1, sizeof(*chan));
		return status;
	}
	*chan_out = &chan->base;
	return HK_OK;
}

static enum hk_status hook_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				     struct hk_chan **chan_out)
{
	return chan_open(net, spec, true, chan_out);
}

static enum hk_status hook_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				     struct hk_chan **chan_out)
{
	return chan_open(net, spec, false, chan_out);
}

static void hook_chan_close(struct hk_chan *base)
{
	struct hook_chan *chan = hook_chan_of(base);
	const struct hk_alloc *alloc = hook_of(base->net)->alloc;

	hk__chan_close(chan->chan);
	if (chan->again)
		hk__mem_free(alloc, chan->again, chan->again_len, 1);
	hk__mem_free(alloc, chan, 1, sizeof(*chan));
}

static void hook_cancel(struct hk_chan *base)
{
	hk__chan_cancel(hook_chan_of(base)->chan);
}

/* ---- who sends ---- */

/* A message that was to be sent twice goes first. */
static enum hk_status again_send(struct hook_chan *chan)
{
	struct hook *hook = hook_of(chan->base.net);
	void *slot;

	if (!chan->again)
		return HK_OK;
	enum hk_status status = passed(hook, hk__chan_reserve(chan->chan, chan->again_len, &slot));
	if (status != HK_OK || !slot)
		return status == HK_OK ? HK_INPROGRESS : status;
	memcpy(slot, chan->again, chan->again_len);
	hk__chan_post(chan->chan, chan->again_len, chan->again_kind);
	hk__mem_free(hook->alloc, chan->again, chan->again_len, 1);
	chan->again = NULL;
	return HK_OK;
}

static enum hk_status hook_reserve(struct hk_chan *base, uint32_t len, void **slot_out)
{
	struct hook_chan *chan = hook_chan_of(base);
	enum hk_status status;

	*slot_out = NULL;
	if (!chan_moves(base, &status))
		return status;
	status = again_send(chan);
	if (status != HK_OK)
		return status == HK_INPROGRESS ? HK_OK : status;
	status = passed(hook_of(base->net), hk__chan_reserve(chan->chan, len, slot_out));
	chan->slot = *slot_out;
	return status;
}

static void hook_post(struct hk_chan *base, uint32_t len, uint32_t kind)
{
	struct hook_chan *chan = hook_chan_of(base);
	struct hook *hook = hook_of(base->net);
	struct link *link = link_of(base);
	bool spoils = link->spoils && len;

	link->spoils = link->spoils && !spoils;
	if (spoils && link->how == HK__HOOK_CORRUPT) {
		((unsigned char *)chan->slot)[len / 2] ^= 0x55;
	} else if (spoils && link->how == HK__HOOK_TRUNCATE) {
		len /= 2;
	} else if (spoils) {
		chan->again = hk__mem_zalloc(hook->alloc, len, 1);
		if (chan->again)
			memcpy(chan->again, chan->slot, len);
		chan->again_len = len;
		chan->again_kind = kind;
	}
	hk__chan_post(chan->chan, len, kind);
	link_count(base);
}

/* What is to be spoilt is copied first: the sender's memory is its own. */
static enum hk_lend hook_lendable(const struct hk_chan *base, const void *data, uint32_t len)
{
	return hk__chan_lendable(hook_chan_of(base)->chan, data, len);
}

static enum hk_status lend_spoilt(struct hk_chan *base, const void *data, uint32_t len,
				  uint32_t kind, bool *done_out)
{
	void *slot;
	enum hk_status status = hook_reserve(base, len, &slot);

	*done_out = status == HK_OK && slot;
	if (!*done_out)
		return status;
	memcpy(slot, data, len);
	hook_post(base, len, kind);
	return HK_OK;
}

static enum hk_status hook_lend(struct hk_chan *base, const void *data, uint32_t len, uint32_t kind,
				bool *done_out)
{
	struct hook_chan *chan = hook_chan_of(base);
	enum hk_status status;

	*done_out = false;
	if (link_of(base)->spoils)
		return lend_spoilt(base, data, len, kind, done_out);
	if (!chan_moves(base, &status))
		return status;
	status = again_send(chan);
	if (status != HK_OK)
		return status == HK_INPROGRESS ? HK_OK : status;
	status = passed(hook_of(base->net), hk__chan_lend(chan->chan, data, len, kind, done_out));
	if (*done_out)
		link_count(base);
	return status;
}

static bool hook_lent(struct hk_chan *base)
{
	return hk__chan_lent(hook_chan_of(base)->chan);
}

/* ---- who receives ---- */

static enum hk_status hook_peek(struct hk_chan *base, struct hk_message *message_out)
{
	enum hk_status status;

	*message_out = (struct hk_message){ 0 };
	if (!chan_moves(base, &status))
		return status;
	return passed(hook_of(base->net), hk__chan_peek(hook_chan_of(base)->chan, message_out));
}

static void hook_unpeek(struct hk_chan *base)
{
	hk__chan_unpeek(hook_chan_of(base)->chan);
}

static enum hk_status hook_release(struct hk_chan *base)
{
	enum hk_status status =
		passed(hook_of(base->net), hk__chan_release(hook_chan_of(base)->chan));

	if (status == HK_OK)
		link_count(base);
	return status;
}

static enum hk_status hook_take(struct hk_chan *base, void *dst, uint32_t cap,
				struct hk_message *message_out, bool *done_out)
{
	enum hk_status status;

	*done_out = false;
	if (!chan_moves(base, &status))
		return status;
	status = passed(hook_of(base->net),
			hk__chan_take(hook_chan_of(base)->chan, dst, cap, message_out, done_out));
	if (status == HK_OK && *done_out)
		link_count(base);
	return status;
}

/* ---- the net ---- */

static enum hk_status hook_poll(struct hk_net *net)
{
	return passed(hook_of(net), hk__net_poll(hook_of(net)->net));
}

/* Nobody below wakes who waits for a delay to end. */
static enum hk_status hook_wait(struct hk_net *net, uint64_t timeout_ns)
{
	struct hook *hook = hook_of(net);
	uint64_t now = hk__now_ns();

	for (uint32_t r = 0; r < net->n; r++) {
		uint64_t until = hook->links[r].still_until;

		if (until > now && until - now < timeout_ns)
			timeout_ns = until - now;
	}
	enum hk_status status = passed(hook, hk__net_wait(hook->net, timeout_ns));
	net->armed = hook->net->armed;
	return status;
}

static int hook_arm(struct hk_net *net)
{
	int fd = hk__net_arm(hook_of(net)->net);

	net->armed = hook_of(net)->net->armed;
	return fd;
}

static void hook_disarm(struct hk_net *net)
{
	hk__net_disarm(hook_of(net)->net);
}

static void hook_kick(struct hk_net *net)
{
	hk__net_kick(hook_of(net)->net);
}

static void hook_tell(struct hk_net *net, const void *note, uint32_t len)
{
	hk__net_tell(hook_of(net)->net, note, len);
}

static bool hook_untold(const struct hk_net *net)
{
	return hk__net_untold(((const struct hook *)net)->net);
}

static void hook_watch(struct hk_net *net)
{
	hk__net_watch(hook_of(net)->net);
}

static void hook_event(void *ctx, const struct hk_net_event *event)
{
	hk__net_report(ctx, event);
}

static void hook_close(struct hk_net *net)
{
	struct hook *hook = hook_of(net);
	const struct hk_alloc *alloc = hook->alloc;

	hk__net_close(hook->net);
	hk__mem_free(alloc, hook->links, net->n, sizeof(*hook->links));
	hk__mem_free(alloc, hook->faults, hook->nfaults, sizeof(*hook->faults));
	hk__mem_free(alloc, hook, 1, sizeof(*hook));
}

static const struct hk_chan_ops hook_chan_ops = {
	.size = sizeof(struct hk_chan_ops),
	.close = hook_chan_close,
	.cancel = hook_cancel,
	.reserve = hook_reserve,
	.post = hook_post,
	.lendable = hook_lendable,
	.lend = hook_lend,
	.lent = hook_lent,
	.peek = hook_peek,
	.unpeek = hook_unpeek,
	.release = hook_release,
	.take = hook_take,
};

static const struct hk_net_ops hook_ops = {
	.size = sizeof(struct hk_net_ops),
	.name = "hook",
	.close = hook_close,
	.chan_send = hook_chan_send,
	.chan_recv = hook_chan_recv,
	.poll = hook_poll,
	.wait = hook_wait,
	.arm = hook_arm,
	.disarm = hook_disarm,
	.kick = hook_kick,
	.tell = hook_tell,
	.untold = hook_untold,
	.watch = hook_watch,
};

enum hk_status hk__hook_open(const struct hk__hook_spec *spec, struct hk_net **net_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
	struct hook *hook = hk__mem_zalloc(alloc, 1, sizeof(*hook));
	struct hk_net *net = spec->net;

	if (!hook)
		return HK_ENOMEM;
	*hook = (struct hook){ .base = { .ops = &hook_ops, .rank = net->rank, .n = net->n },
			       .net = net,
			       .alloc = alloc,
			       .nfaults = spec->nfaults };
	hook->links = hk__mem_zalloc(alloc, net->n, sizeof(*hook->links));
	hook->faults = hk__mem_zalloc(alloc, spec->nfaults, sizeof(*hook->faults));
	if (!hook->links || !hook->faults) {
		hk__mem_free(alloc, hook->links, net->n, sizeof(*hook->links));
		hk__mem_free(alloc, hook->faults, spec->nfaults, sizeof(*hook->faults));
		hk__mem_free(alloc, hook, 1, sizeof(*hook));
		return HK_ENOMEM;
	}
	if (spec->nfaults)
		memcpy(hook->faults, spec->faults, spec->nfaults * sizeof(*hook->faults));
	net->event = hook_event;
	net->event_ctx = &hook->base;
	*net_out = &hook->base;
	return HK_OK;
}

uint64_t hk__hook_messages(const struct hk_net *net, uint32_t peer)
{
	return hook_of(net)->links[peer].messages;
}
