/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - messages: through slots, and lent. */
#include "net/sim/simnet.h"

#include <string.h>

#define PIECE_MIN 4096u /* more is taken in two pieces */
#define LEND_MIN 1024u

/* ---- who sends ---- */

/* Whether a message could be sent now. */
static enum hk_status chan_free(struct sim_chan *chan, bool *free_out)
{
	const struct hk__simnet *simnet = port_of(chan->base.net)->simnet;
	bool up;
	enum hk_status status = hk__sim_chan_status(chan, &up);

	*free_out = false;
	if (status == HK_OK && up && !chan->pipe)
		status = hk__sim_chan_attach(chan);
	if (status != HK_OK || !up || !chan->pipe)
		return status;
	const struct sim_pipe *pipe = chan->pipe;
	*free_out =
		pipe->sent < pipe->spec.slots || message_at(pipe, pipe->sent)->freed <= simnet->now;
	return HK_OK;
}

enum hk_status hk__sim_reserve(struct hk_chan *base, uint32_t len, void **slot_out)
{
	struct sim_chan *chan = sim_chan_of(base);
	const struct hk_alloc *alloc = port_of(base->net)->simnet->alloc;
	bool is_free;
	enum hk_status status = chan_free(chan, &is_free);

	*slot_out = NULL;
	if (!is_free)
		return status;
	struct sim_pipe *pipe = chan->pipe;
	if (pipe->reserved && pipe->reserved_cap < len) {
		hk__mem_free(alloc, pipe->reserved, pipe->reserved_cap, 1);
		pipe->reserved = NULL;
	}
	if (!pipe->reserved) {
		pipe->reserved_cap = len ? len : 1;
		pipe->reserved = hk__mem_zalloc(alloc, pipe->reserved_cap, 1);
	}
	*slot_out = pipe->reserved;
	return pipe->reserved ? HK_OK : HK_ENOMEM;
}

static void message_send(struct sim_chan *chan, const struct sim_message *like)
{
	struct hk__simnet *simnet = port_of(chan->base.net)->simnet;
	struct sim_pipe *pipe = chan->pipe;
	uint32_t from = pipe->from, to = pipe->spec.key.peer;
	struct sim_message *message = message_at(pipe, pipe->sent);
	bool near = is_near(simnet, from, to);

	*message = *like;
	message->freed = message->returned = NEVER;
	message->ready = hk__sim_arrival(simnet, from, to);
	message->pushed =
		near || hk__sim_draw(simnet, 4) ? simnet->now : simnet->now + hk__sim_delay(simnet);
	if (pipe->sent > pipe->taken) {
		uint64_t before = message_at(pipe, pipe->sent - 1)->ready;

		if (before > message->ready)
			message->ready = before;
	}
	if (message->ready < message->pushed)
		message->ready = message->pushed;
	message->lost =
		!near && (chan->epoch != side_of(simnet, to, from)->epoch ||
			  (pipe->sent > pipe->taken && message_at(pipe, pipe->sent - 1)->lost));
	pipe->sent++;
	hk__sim_stir(simnet, to, message->ready);
	if (message->pushed > simnet->now)
		hk__sim_stir(simnet, from, message->pushed);
}

void hk__sim_post(struct hk_chan *base, uint32_t len, uint32_t kind)
{
	struct sim_chan *chan = sim_chan_of(base);
	struct sim_pipe *pipe = chan->pipe;

	hk_assert(pipe && pipe->reserved && len <= pipe->reserved_cap);
	hk__sim_act(base->net, 8, len);
	struct sim_message message = {
		.data = pipe->reserved, .cap = pipe->reserved_cap, .len = len, .kind = kind
	};
	pipe->reserved = NULL;
	message_send(chan, &message);
}

enum hk_lend hk__sim_lendable(const struct hk_chan *base, const void *data, uint32_t len)
{
	(void)base, (void)data;
	return len >= LEND_MIN ? HK_LEND_GAINS : HK_LEND_NO;
}

enum hk_status hk__sim_lend(struct hk_chan *base, const void *data, uint32_t len, uint32_t kind,
			    bool *done_out)
{
	struct sim_chan *chan = sim_chan_of(base);
	enum hk_status status = chan_free(chan, done_out);

	if (status != HK_OK || !*done_out)
		return status;
	hk__sim_act(base->net, 9, len);
	message_send(chan, &(struct sim_message){
				   .data = (void *)data, .len = len, .kind = kind, .lent = true });
	return HK_OK;
}

bool hk__sim_lent(struct hk_chan *base)
{
	struct sim_chan *chan = sim_chan_of(base);
	const struct sim_pipe *pipe = chan->pipe;
	uint64_t now = port_of(base->net)->simnet->now;
	bool up;

	/* What a connection had is lost with it; nobody reads. */
	if (!pipe || hk__sim_chan_status(chan, &up) != HK_OK)
		return false;
	uint64_t first = pipe->sent > pipe->spec.slots ? pipe->sent - pipe->spec.slots : 0;
	for (uint64_t i = first; i < pipe->sent; i++) {
		const struct sim_message *message = message_at(pipe, i);

		if (message->pushed > now || (message->lent && message->returned > now))
			return true;
	}
	return false;
}

/* ---- who receives ---- */

/* The oldest message, if it has come, be its sender gone or not; NULL: none. */
static enum hk_status message_look(struct sim_chan *chan, struct sim_message **message_out)
{
	struct hk_net *net = chan->base.net;
	const struct sim_pipe *pipe = chan->pipe;
	struct sim_message *message = message_at(pipe, pipe->taken);
	bool up;

	*message_out = NULL;
	if (chan->cancelled || pipe->taken == pipe->sent || message->lost ||
	    message->ready > port_of(net)->simnet->now)
		return hk__sim_chan_status(chan, &up);
	if (message->revoked)
		return hk__chan_taken_back(&chan->base);
	*message_out = message;
	return HK_OK;
}

enum hk_status hk__sim_peek(struct hk_chan *base, struct hk_message *message_out)
{
	struct sim_message *message;
	enum hk_status status = message_look(sim_chan_of(base), &message);

	*message_out = (struct hk_message){ 0 };
	if (message)
		*message_out = (struct hk_message){ message->data, message->len, message->kind };
	return status;
}

static void message_free(struct sim_chan *chan, struct sim_message *message)
{
	struct hk__simnet *simnet = port_of(chan->base.net)->simnet;
	struct sim_pipe *pipe = chan->pipe;

	hk__sim_message_drop(simnet, message);
	message->released = true;
	message->freed = hk__sim_arrival(simnet, pipe->spec.key.peer, pipe->from);
	/* Slots are freed in order. */
	if (pipe->taken) {
		uint64_t before = message_at(pipe, pipe->taken - 1)->freed;

		if (pipe->sent - pipe->taken < pipe->spec.slots && before > message->freed)
			message->freed = before;
	}
	message->returned = message->freed;
	pipe->taken++;
	hk__sim_stir(simnet, pipe->from, message->freed);
}

enum hk_status hk__sim_release(struct hk_chan *base)
{
	struct sim_chan *chan = sim_chan_of(base);
	struct sim_message *message;
	enum hk_status status = message_look(chan, &message);

	if (status != HK_OK)
		return status;
	hk_assert(message);
	hk__sim_act(base->net, 10, message->len);
	message_free(chan, message);
	return HK_OK;
}

enum hk_status hk__sim_take(struct hk_chan *base, void *dst, uint32_t cap,
			    struct hk_message *message_out, bool *done_out)
{
	struct sim_chan *chan = sim_chan_of(base);
	struct hk__simnet *simnet = port_of(base->net)->simnet;
	struct sim_message *message;
	enum hk_status status = message_look(chan, &message);

	*done_out = false;
	if (status != HK_OK || !message)
		return status;
	if (message->len > cap)
		return hk__why(&base->net->why, HK_EIO, "rank %u sent %u bytes where %u fit",
			       base->spec.key.peer, message->len, cap);
	if (message->len >= PIECE_MIN && !chan->halved) {
		memcpy(dst, message->data, message->len / 2);
		chan->halved = true;
		chan->rest_at = simnet->now + hk__sim_delay(simnet);
		base->net->moved++;
		hk__sim_stir(simnet, base->net->rank, chan->rest_at);
		return HK_OK;
	}
	if (chan->halved && chan->rest_at > simnet->now)
		return HK_OK;
	hk__sim_act(base->net, 11, message->len);
	chan->halved = false;
	*message_out = (struct hk_message){ dst, message->len, message->kind };
	if (message->len)
		memcpy(dst, message->data, message->len);
	*done_out = true;
	message_free(chan, message);
	return HK_OK;
}
