/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mux.c - channels belong to the nets below, which are called for messages
 * directly; here are only the calls about a whole net.
 */
#include "net/mux/mux.h"

#include <errno.h>
#include <poll.h>

struct mux {
	struct hk_net base;
	struct hk_mux_spec spec;
	const struct hk_alloc *alloc;
	uint32_t turn;
	bool armed;
	struct pollfd fds[2];
};

/* A look at sockets is a system call; memory is looked at far more often. */
#define MUX_FAR_EVERY 2u

/* Without a descriptor of the near net nobody sleeps long. */
#define MUX_BLIND_NS UINT64_C(200000)

static struct mux *mux_of(struct hk_net *net)
{
	return (struct mux *)net;
}

static void mux_close(struct hk_net *net)
{
	hk__mem_free(mux_of(net)->alloc, net, 1, sizeof(struct mux));
}

static struct hk_net *mux_way(struct hk_net *net, uint32_t peer)
{
	struct mux *mux = mux_of(net);

	return mux->spec.is_near[peer] ? mux->spec.near : mux->spec.far;
}

static enum hk_status mux_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				    struct hk_chan **chan_out)
{
	return hk__chan_open_send(mux_way(net, spec->key.peer), spec, chan_out);
}

static enum hk_status mux_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				    struct hk_chan **chan_out)
{
	return hk__chan_open_recv(mux_way(net, spec->key.peer), spec, chan_out);
}

static enum hk_status mux_poll(struct hk_net *net)
{
	struct mux *mux = mux_of(net);
	enum hk_status status = hk__net_poll(mux->spec.near);

	if (status != HK_OK || mux->turn++ % MUX_FAR_EVERY)
		return status;
	status = hk__net_poll(mux->spec.far);
	net->moved = mux->spec.far->moved;
	return status;
}

static void mux_disarm(struct hk_net *net)
{
	struct mux *mux = mux_of(net);

	hk__net_disarm(mux->spec.near);
	hk__net_disarm(mux->spec.far);
	mux->armed = false;
}

static enum hk_status mux_wait(struct hk_net *net, uint64_t timeout_ns)
{
	struct mux *mux = mux_of(net);

	mux->turn = 0; /* the look before and after sleep is at both */
	/* What this rank did in its last look may have told peers that it is awake. */
	if (!mux->armed || (mux->fds[0].fd >= 0 && !mux->spec.near->armed)) {
		mux->fds[0] = (struct pollfd){ hk__net_arm(mux->spec.near), POLLIN, 0 };
		mux->fds[1] = (struct pollfd){ hk__net_arm(mux->spec.far), POLLIN, 0 };
		mux->armed = true;
		return HK_OK;
	}
	if (mux->fds[0].fd < 0 && timeout_ns > MUX_BLIND_NS)
		timeout_ns = MUX_BLIND_NS;
	struct timespec timeout = { (time_t)(timeout_ns / 1000000000),
				    (long)(timeout_ns % 1000000000) };
	struct pollfd fds[2] = { mux->fds[0], mux->fds[1] };
	int ready = ppoll(fds, 2, &timeout, NULL);
	mux_disarm(net);
	if (ready < 0 && errno != EINTR)
		return hk__why(&net->why, HK_EIO, "poll(2) failed with error %d", errno);
	return HK_OK;
}

static int mux_arm(struct hk_net *net)
{
	(void)net; /* two descriptors are not one; nobody stacks on this */
	return -1;
}

static void mux_kick(struct hk_net *net)
{
	hk__net_kick(mux_of(net)->spec.far);
}

/* ---- beside messages: who is near is told nearby ---- */

static void mux_tell(struct hk_net *net, const void *note, uint32_t len)
{
	hk__net_tell(mux_of(net)->spec.near, note, len);
	hk__net_tell(mux_of(net)->spec.far, note, len);
}

static bool mux_untold(const struct hk_net *net)
{
	const struct mux *mux = (const struct mux *)net;

	return hk__net_untold(mux->spec.near) || hk__net_untold(mux->spec.far);
}

static void mux_watch(struct hk_net *net)
{
	hk__net_watch(mux_of(net)->spec.near);
	hk__net_watch(mux_of(net)->spec.far);
}

/* What either net finds is found here. */
static void mux_event(void *ctx, const struct hk_net_event *event)
{
	hk__net_report(ctx, event);
}

static const struct hk_net_ops mux_ops = {
	.size = sizeof(struct hk_net_ops),
	.name = "shm+tcp",
	.close = mux_close,
	.chan_send = mux_chan_send,
	.chan_recv = mux_chan_recv,
	.poll = mux_poll,
	.wait = mux_wait,
	.arm = mux_arm,
	.disarm = mux_disarm,
	.kick = mux_kick,
	.tell = mux_tell,
	.untold = mux_untold,
	.watch = mux_watch,
};

enum hk_status hk__mux_open(const struct hk_mux_spec *spec, struct hk_net **net_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
	struct mux *mux = hk__mem_zalloc(alloc, 1, sizeof(*mux));

	if (!mux)
		return HK_ENOMEM;
	*mux = (struct mux){
		.base = { .ops = &mux_ops, .rank = spec->near->rank, .n = spec->near->n },
		.spec = *spec,
		.alloc = alloc
	};
	spec->near->event = spec->far->event = mux_event;
	spec->near->event_ctx = spec->far->event_ctx = mux;
	*net_out = &mux->base;
	return HK_OK;
}
