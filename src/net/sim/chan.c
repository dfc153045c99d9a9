/* SPDX-License-Identifier: Apache-2.0 */
/* chan.c - channels: made by who receives, found by who sends. */
#include "net/sim/simnet.h"

#include <string.h>

void hk__sim_message_drop(struct hk__simnet *simnet, struct sim_message *message)
{
	if (message->cap)
		hk__mem_free(simnet->alloc, message->data, message->cap, 1);
	message->data = NULL;
	message->cap = 0;
}

void hk__sim_pipe_destroy(struct hk__simnet *simnet, struct sim_pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->spec.slots; i++)
		hk__sim_message_drop(simnet, &pipe->messages[i]);
	hk__mem_free(simnet->alloc, pipe->reserved, pipe->reserved_cap, 1);
	hk__mem_free(simnet->alloc, pipe->messages, pipe->spec.slots, sizeof(*pipe->messages));
	hk__mem_free(simnet->alloc, pipe, 1, sizeof(*pipe));
}

static bool key_equal(const struct hk_chan_key *a, const struct hk_chan_key *b)
{
	return a->from_lane == b->from_lane && a->to_lane == b->to_lane && a->context == b->context;
}

static enum hk_status chan_create(struct hk_net *net, const struct hk_chan_spec *spec, bool sends,
				  struct sim_chan **chan_out)
{
	struct sim_port *port = port_of(net);
	struct sim_chan *chan = hk__mem_zalloc(port->alloc, 1, sizeof(*chan));

	if (!chan)
		return HK_ENOMEM;
	hk__sim_link(port->simnet, net->rank, spec->key.peer);
	*chan = (struct sim_chan){
		.base = { .ops = &hk__sim_chan_ops, .net = net, .spec = *spec },
		.sends = sends,
		.epoch = side_of(port->simnet, net->rank, spec->key.peer)->epoch
	};
	*chan_out = chan;
	return HK_OK;
}

/* ---- who receives ---- */

static bool is_open(const struct hk_net *net, const struct hk_chan_spec *spec)
{
	const struct sim_pipe *pipe = ((const struct sim_port *)net)->simnet->pipes;

	for (; pipe; pipe = pipe->next)
		if (pipe->open && pipe->spec.key.peer == net->rank &&
		    pipe->from == spec->key.peer && key_equal(&pipe->spec.key, &spec->key))
			return true;
	return false;
}

static struct sim_pipe *pipe_create(struct hk_net *net, const struct sim_chan *chan)
{
	struct hk__simnet *simnet = port_of(net)->simnet;
	const struct hk_chan_spec *spec = &chan->base.spec;
	struct sim_pipe *pipe = hk__mem_zalloc(simnet->alloc, 1, sizeof(*pipe));

	if (!pipe)
		return NULL;
	*pipe = (struct sim_pipe){ .next = simnet->pipes,
				   .spec = *spec,
				   .from = spec->key.peer,
				   .epoch = chan->epoch,
				   .appears = hk__sim_arrival(simnet, net->rank, spec->key.peer),
				   .open = true };
	pipe->spec.key.peer = net->rank;
	pipe->messages = hk__mem_zalloc(simnet->alloc, spec->slots, sizeof(*pipe->messages));
	if (!pipe->messages) {
		hk__mem_free(simnet->alloc, pipe, 1, sizeof(*pipe));
		return NULL;
	}
	simnet->pipes = pipe;
	hk__sim_stir(simnet, pipe->from, pipe->appears);
	return pipe;
}

enum hk_status hk__sim_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out)
{
	struct sim_chan *chan;

	hk__sim_act(net, 4, spec->key.peer);
	if (is_open(net, spec))
		return HK_EINVAL;
	enum hk_status status = chan_create(net, spec, false, &chan);
	if (status != HK_OK)
		return status;
	chan->pipe = pipe_create(net, chan);
	if (!chan->pipe) {
		hk__mem_free(port_of(net)->alloc, chan, 1, sizeof(*chan));
		return HK_ENOMEM;
	}
	*chan_out = &chan->base;
	return HK_OK;
}

/* ---- who sends ---- */

enum hk_status hk__sim_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out)
{
	struct sim_chan *chan;

	hk__sim_act(net, 5, spec->key.peer);
	enum hk_status status = chan_create(net, spec, true, &chan);
	if (status == HK_OK)
		*chan_out = &chan->base;
	return status;
}

enum hk_status hk__sim_chan_attach(struct sim_chan *chan)
{
	struct hk_net *net = chan->base.net;
	struct hk__simnet *simnet = port_of(net)->simnet;
	const struct hk_chan_spec *spec = &chan->base.spec;

	for (struct sim_pipe *pipe = simnet->pipes; pipe; pipe = pipe->next) {
		if (!pipe->open || pipe->attached || pipe->appears > simnet->now ||
		    pipe->from != net->rank || pipe->spec.key.peer != spec->key.peer ||
		    pipe->epoch != chan->epoch || !key_equal(&pipe->spec.key, &spec->key))
			continue;
		if (pipe->spec.slots != spec->slots || pipe->spec.slot_bytes != spec->slot_bytes)
			return hk__why(&net->why, HK_EIO, "rank %u describes an invalid channel",
				       spec->key.peer);
		pipe->attached = true;
		chan->pipe = pipe;
		return HK_OK;
	}
	return HK_OK;
}

/* ---- the end of a channel ---- */

/* Both ends are closed, or the other never came: nobody sees it any more. */
static void pipe_release(struct hk__simnet *simnet, struct sim_pipe *pipe)
{
	struct sim_pipe **link = &simnet->pipes;

	if (pipe->open || (pipe->attached && !pipe->left))
		return;
	while (*link != pipe)
		link = &(*link)->next;
	*link = pipe->next;
	hk__sim_pipe_destroy(simnet, pipe);
}

/* A sender's memory is its own again: what was lent is copied, or taken back. */
static void sender_take_back(struct hk__simnet *simnet, struct sim_pipe *pipe, bool keeps)
{
	for (uint64_t i = pipe->taken; i < pipe->sent; i++) {
		struct sim_message *message = message_at(pipe, i);

		if (!message->lent)
			continue;
		void *copy = keeps ? hk__mem_zalloc(simnet->alloc, message->len, 1) : NULL;
		message->lent = false;
		if (copy) {
			memcpy(copy, message->data, message->len);
			message->cap = message->len;
		} else {
			message->revoked = true;
		}
		message->data = copy;
	}
}

/* Nothing is read any more: who lent has its memory back. */
static void receiver_let_go(struct hk__simnet *simnet, struct sim_pipe *pipe)
{
	uint64_t heard = hk__sim_arrival(simnet, pipe->spec.key.peer, pipe->from);

	for (uint64_t i = pipe->taken; i < pipe->sent; i++) {
		struct sim_message *message = message_at(pipe, i);

		hk__sim_message_drop(simnet, message);
		message->released = true;
		message->freed = NEVER; /* nor will there be room for another */
		message->returned = heard;
	}
	pipe->taken = pipe->sent;
	hk__sim_stir(simnet, pipe->from, heard);
}

void hk__sim_chan_cancel(struct hk_chan *base)
{
	struct sim_chan *chan = sim_chan_of(base);
	struct hk__simnet *simnet = port_of(base->net)->simnet;

	if (chan->cancelled)
		return;
	hk__sim_act(base->net, 6, base->spec.key.peer);
	chan->cancelled = true;
	if (!chan->pipe)
		return;
	if (chan->sends)
		sender_take_back(simnet, chan->pipe, false);
	else
		receiver_let_go(simnet, chan->pipe);
}

void hk__sim_chan_close(struct hk_chan *base)
{
	struct sim_chan *chan = sim_chan_of(base);
	struct hk__simnet *simnet = port_of(base->net)->simnet;
	struct sim_pipe *pipe = chan->pipe;

	hk__sim_act(base->net, 7, base->spec.key.peer);
	if (pipe && chan->sends) {
		sender_take_back(simnet, pipe, !chan->cancelled);
		pipe->left = true;
	} else if (pipe) {
		receiver_let_go(simnet, pipe);
		pipe->open = false;
	}
	if (pipe)
		pipe_release(simnet, pipe);
	hk__mem_free(port_of(base->net)->alloc, chan, 1, sizeof(*chan));
}

const struct hk_chan_ops hk__sim_chan_ops = {
	.size = sizeof(struct hk_chan_ops),
	.close = hk__sim_chan_close,
	.cancel = hk__sim_chan_cancel,
	.reserve = hk__sim_reserve,
	.post = hk__sim_post,
	.lendable = hk__sim_lendable,
	.lend = hk__sim_lend,
	.lent = hk__sim_lent,
	.peek = hk__sim_peek,
	.release = hk__sim_release,
	.take = hk__sim_take,
};
