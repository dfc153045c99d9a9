/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.c - the net over TCP: how it begins and ends, polls and sleeps.
 *
 * With few connections poll simply reads them: that is the one system call that
 * has to be made anyway. With many, or when one takes no more, epoll(7) says
 * which to look at; newcomers are looked for now and then. Interest is level-
 * triggered: what is left unread keeps nobody asleep.
 */
#include "net/tcp/link.h"
#include "base/fork.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define TCP_FEW 4u	  /* connections that are read without asking first */
#define TCP_NEWCOMERS 32u /* rounds between looks for who is new */
#define TCP_EVENTS 32
#define TCP_SILENCE_NS UINT64_C(4000000000)
#define TCP_LINGER_NS UINT64_C(2000000000)
#define TCP_LINGER_LOOK_NS UINT64_C(200000)

/* ---- events ---- */

static void tcp_event(struct tcp *tcp, const struct epoll_event *event)
{
	const struct tcp_source *source = event->data.ptr;
	struct tcp_link *link = event->data.ptr;
	uint64_t times;

	switch (source->is) {
	case TCP_LISTENS:
		hk__tcp_greet_accept(tcp);
		break;
	case TCP_TIMER:
		(void)!read(tcp->timer_fd, &times, sizeof(times)); /* quiet again */
		break;
	case TCP_KICK:
		(void)!read(tcp->kick_fd, &times, sizeof(times));
		break;
	case TCP_GREETS:
		hk__tcp_greet_move(tcp, event->data.ptr);
		break;
	case TCP_LINKS:
		if (event->events & EPOLLOUT)
			hk__tcp_link_write(link);
		/* An error shows in what is read, behind what arrived before it. */
		if (event->events & ~(uint32_t)EPOLLOUT)
			hk__tcp_read(link);
		break;
	}
}

/* What is late or to be tried again; has the system say when the next is. */
static void tcp_timers(struct tcp *tcp, bool sleeps)
{
	struct itimerspec at = { 0 };

	if (!tcp->greets && !tcp->trying.count && !tcp->full_until && !tcp->judged)
		return;
	uint64_t now = hk__now_ns(), next = hk__tcp_greet_timers(tcp, now);
	uint64_t judged = hk__tcp_peer_timers(tcp, now);
	if (judged && (!next || judged < next))
		next = judged;
	hk__tcp_greet_sweep(tcp);
	if (!sleeps || !next)
		return;
	at.it_value.tv_sec = (time_t)(next / 1000000000);
	at.it_value.tv_nsec = (long)(next % 1000000000);
	(void)timerfd_settime(tcp->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static int tcp_epoll(const struct tcp *tcp, struct epoll_event *events, uint64_t timeout_ns)
{
	struct timespec timeout = { (time_t)(timeout_ns / 1000000000),
				    (long)(timeout_ns % 1000000000) };

	if (!timeout_ns)
		return epoll_wait(tcp->epoll_fd, events, TCP_EVENTS, 0);
	int n = epoll_pwait2(tcp->epoll_fd, events, TCP_EVENTS, &timeout, NULL);
	if (n < 0 && errno == ENOSYS) {
		uint64_t ms = timeout_ns / 1000000 + 1;

		n = epoll_wait(tcp->epoll_fd, events, TCP_EVENTS, ms > 60000 ? 60000 : (int)ms);
	}
	return n;
}

/* Looks at what has something to say; sleeps until there is, or the timeout. */
static enum hk_status tcp_look(struct tcp *tcp, uint64_t timeout_ns)
{
	struct epoll_event events[TCP_EVENTS];
	int n = tcp_epoll(tcp, events, timeout_ns);

	if (n < 0 && errno != EINTR)
		return hk__why(&tcp->base.why, HK_EIO, "rank %u cannot look at its connections: %s",
			       tcp->base.rank, strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
	for (int i = 0; i < n; i++)
		tcp_event(tcp, &events[i]);
	hk__tcp_greet_sweep(tcp);
	/* What came up after the caller had armed is to wake it too. */
	tcp_timers(tcp, tcp->armed);
	hk__tcp_peer_report(tcp);
	if (tcp->retired)
		hk__tcp_link_sweep(tcp);
	return HK_OK;
}

static enum hk_status tcp_poll(struct hk_net *net)
{
	struct tcp *tcp = tcp_of(net);

	tcp->round++;
	if (tcp->owing)
		hk__tcp_credits_write(tcp, false);
	if (tcp->up.count > TCP_FEW || tcp->nblocked)
		return tcp_look(tcp, 0);
	for (size_t i = tcp->up.count; i-- > 0;)
		if (i < tcp->up.count) /* one may end with another */
			hk__tcp_read(((struct tcp_link **)tcp->up.items)[i]);
	if (__builtin_expect(tcp->news != NULL, 0))
		hk__tcp_peer_report(tcp);
	if (tcp->round % TCP_NEWCOMERS == 0 || !tcp->up.count)
		return tcp_look(tcp, 0);
	return HK_OK;
}

/* ---- sleeping ---- */

static int tcp_arm(struct hk_net *net)
{
	struct tcp *tcp = tcp_of(net);

	hk__tcp_credits_write(tcp, true);
	tcp_timers(tcp, true);
	tcp->armed = true;
	return tcp->epoll_fd;
}

static void tcp_disarm(struct hk_net *net)
{
	tcp_of(net)->armed = false;
}

static enum hk_status tcp_wait(struct hk_net *net, uint64_t timeout_ns)
{
	struct tcp *tcp = tcp_of(net);

	if (!tcp->armed) {
		tcp_arm(net);
		return HK_OK; /* the caller looks once more before it sleeps */
	}
	tcp_timers(tcp, true);
	tcp->armed = false;
	tcp->round++;
	return tcp_look(tcp, timeout_ns);
}

static void tcp_kick(struct hk_net *net)
{
	static const uint64_t one = 1;

	(void)!write(tcp_of(net)->kick_fd, &one, sizeof(one)); /* a full one is readable too */
}

/* ---- the end ---- */

/* Whether anything is still on its way out. */
static bool tcp_unsent(const struct tcp *tcp)
{
	for (size_t i = 0; i < tcp->up.count; i++) {
		const struct tcp_link *link = ((struct tcp_link **)tcp->up.items)[i];
		int unacked = 0;

		if (link->deaf)
			continue;
		if (hk__tcp_link_unsent(link) ||
		    (ioctl(link->fd, SIOCOUTQ, &unacked) == 0 && unacked > 0))
			return true;
	}
	return false;
}

/*
 * What was posted arrives, if the peers still take it. A socket that is closed
 * while something lies in it unread throws away what it has not delivered: so
 * reading goes on until all is delivered.
 */
static void tcp_linger(struct tcp *tcp)
{
	static const struct wire_frame bye = { .type = WIRE_BYE };
	uint64_t deadline = hk__now_ns() + TCP_LINGER_NS;

	for (size_t i = tcp->up.count; i-- > 0;) {
		struct tcp_link *link = ((struct tcp_link **)tcp->up.items)[i];

		hk__tcp_link_say(link, &bye, NULL);
		hk__tcp_link_write(link);
	}
	while (tcp_unsent(tcp) && hk__now_ns() < deadline) {
		tcp->round++;
		if (tcp_look(tcp, TCP_LINGER_LOOK_NS) != HK_OK)
			return;
	}
}

static void tcp_free(struct tcp *tcp)
{
	const struct hk_alloc *alloc = tcp->alloc;

	while (tcp->outs) {
		struct tcp_out *out = tcp->outs;

		tcp->outs = out->next;
		hk__mem_free(alloc, out, 1, sizeof(*out));
	}
	while (tcp->pools) {
		struct tcp_pool *pool = tcp->pools;

		hk__tcp_pool_trim(tcp, pool);
		tcp->pools = pool->next;
		hk__mem_free(alloc, pool, 1, sizeof(*pool));
	}
	hk__array_fini(&tcp->up);
	hk__array_fini(&tcp->trying);
	hk__array_fini(&tcp->awaited);
	hk__mem_free(alloc, tcp->notes, TCP_NOTES, sizeof(*tcp->notes));
	hk__mem_free(alloc, tcp->peers, tcp->base.n, sizeof(struct tcp_peer *));
	if (tcp->epoll_fd >= 0)
		hk__fd_close(tcp->epoll_fd);
	if (tcp->timer_fd >= 0)
		hk__fd_close(tcp->timer_fd);
	if (tcp->kick_fd >= 0)
		hk__fd_close(tcp->kick_fd);
	explicit_bzero(&tcp->spec.key, sizeof(tcp->spec.key));
	hk__mem_free(alloc, tcp, 1, sizeof(*tcp));
}

static void tcp_close(struct hk_net *net)
{
	struct tcp *tcp = tcp_of(net);

	net->event = NULL; /* who was told may be gone already */
	tcp_linger(tcp);
	hk__tcp_greet_end_all(tcp);
	hk__tcp_peers_free(tcp);
	hk__fd_close(tcp->listen_fd);
	tcp_free(tcp);
}

/* ---- the table, and how one begins ---- */

static const struct hk_net_ops tcp_ops = {
	.size = sizeof(struct hk_net_ops),
	.name = "tcp",
	.close = tcp_close,
	.chan_send = hk__tcp_chan_send,
	.chan_recv = hk__tcp_chan_recv,
	.poll = tcp_poll,
	.wait = tcp_wait,
	.arm = tcp_arm,
	.disarm = tcp_disarm,
	.kick = tcp_kick,
	.tell = hk__tcp_tell,
	.untold = hk__tcp_untold,
	.watch = hk__tcp_look_after,
};

int hk__tcp_fd(const struct hk_net *net)
{
	return ((const struct tcp *)net)->epoll_fd;
}

uint64_t hk__tcp_refused(const struct hk_net *net)
{
	return ((const struct tcp *)net)->refused;
}

static enum hk_status tcp_set_up(struct tcp *tcp)
{
	tcp->peers = hk__mem_zalloc(tcp->alloc, tcp->base.n, sizeof(struct tcp_peer *));
	if (!tcp->peers)
		return HK_ENOMEM;
	tcp->epoll_fd = hk__fd_open(epoll_create1(EPOLL_CLOEXEC));
	tcp->timer_fd = hk__fd_open(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	tcp->kick_fd = hk__fd_open(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (tcp->epoll_fd < 0 || tcp->timer_fd < 0 || tcp->kick_fd < 0)
		return HK_EIO;
	enum hk_status status = tcp->spec.iface ? hk__tcp_iface(tcp->spec.iface, tcp->from) : HK_OK;
	if (status == HK_OK)
		status = hk__tcp_congestion(tcp);
	if (status == HK_OK)
		status = hk__auth_ready();
	if (status == HK_OK)
		status = hk__tcp_watch(tcp, tcp->listen_fd, EPOLLIN, &tcp->listens, true);
	if (status == HK_OK)
		status = hk__tcp_watch(tcp, tcp->timer_fd, EPOLLIN, &tcp->timer, true);
	if (status == HK_OK)
		status = hk__tcp_watch(tcp, tcp->kick_fd, EPOLLIN, &tcp->kick, true);
	return status;
}

enum hk_status hk__tcp_open(const struct hk_tcp_spec *spec, struct hk_net **net_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;

	if (spec->rank >= spec->n || spec->listen_fd < 0 || spec->conns > HK_TCP_CONNS_MAX)
		return HK_EINVAL;
	struct tcp *tcp = hk__mem_zalloc(alloc, 1, sizeof(*tcp));
	if (!tcp)
		return HK_ENOMEM;
	tcp->base = (struct hk_net){ .ops = &tcp_ops, .rank = spec->rank, .n = spec->n };
	tcp->spec = *spec;
	tcp->spec.conns = spec->conns ? spec->conns : 1;
	tcp->spec.silence_ns = spec->silence_ns ? spec->silence_ns : TCP_SILENCE_NS;
	tcp->alloc = alloc;
	tcp->listens.is = TCP_LISTENS;
	tcp->timer.is = TCP_TIMER;
	tcp->kick.is = TCP_KICK;
	tcp->epoll_fd = tcp->timer_fd = tcp->kick_fd = -1;
	tcp->listen_fd = spec->listen_fd;
	tcp->round = 1;
	hk__array_init(&tcp->up, alloc, sizeof(struct tcp_link *));
	hk__array_init(&tcp->trying, alloc, sizeof(struct tcp_link *));
	hk__array_init(&tcp->awaited, alloc, sizeof(struct tcp_link *));
	enum hk_status status = tcp_set_up(tcp);
	if (status != HK_OK) {
		tcp_free(tcp);
		return status;
	}
	*net_out = &tcp->base;
	return HK_OK;
}
