/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - many connections, one thread: what each has still to read, to prove
 * and to be told.
 *
 * A visitor is a stranger (proof awaited), then a guest. What it is sent is its
 * own few bytes (greeting, then verdict), then the message it is told.
 */
#include "boot/gate.h"
#include "base/fork.h"
#include "net/stranger.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define STRANGERS_MAX 256u		/* at a time; more wait in the backlog */
#define STRANGER_NS (5 * HK__SECOND_NS) /* to prove itself in */
#define CROWD_NS HK__SECOND_NS		/* while there is no room for more */
#define EVENTS 64
#define FDS_MAX 250u /* that one message of a socket may carry (SCM_MAX_FD is 253) */

struct visitor {
	int fd; /* -1: nobody */
	bool proved;
	uint64_t since_ns; /* of a stranger */
	struct hk__origin origin;
	unsigned char nonce[HK__NONCE_BYTES];
	unsigned char in[HK__CLAIM_BYTES + HK__HELLO_MAX];
	size_t in_len;
	unsigned char own[HK__GREETING_BYTES]; /* greeting or verdict */
	size_t own_len, own_at;
	struct hk__gate_message message; /* bytes NULL: not told yet */
	size_t message_at, fds_at;
	bool wants_out;	    /* epoll looks for room to write */
	uint32_t next_free; /* of the list of the unused */
};

_Static_assert(HK__VERDICT_BYTES <= HK__GREETING_BYTES, "a verdict fits");

struct hk__gate {
	struct hk__gate_spec spec;
	int epoll_fd;
	struct visitor *visitors;
	uint32_t nvisitors;
	uint32_t free; /* first unused, or HK_NONE */
	uint32_t nstrangers;
	bool listens;
	uint64_t expiry_ns; /* no stranger's deadline is before */
	uint32_t strangers, denied;
	struct hk__strangers turned_away;
	struct epoll_event events[EVENTS];
	int nevents, event_at;
};

/* ---- coming and going ---- */

static bool gate_watch(struct hk__gate *gate, int op, int fd, uint32_t events, uint32_t number)
{
	struct epoll_event event = { .events = events, .data.u32 = number };

	return epoll_ctl(gate->epoll_fd, op, fd, &event) == 0;
}

/* Accepts no more while it has no room for strangers. */
static void gate_open(struct hk__gate *gate)
{
	bool open = gate->nstrangers < STRANGERS_MAX && gate->free != HK_NONE;

	if (open != gate->listens &&
	    gate_watch(gate, EPOLL_CTL_MOD, gate->spec.listen_fd, open ? EPOLLIN : 0, HK_NONE))
		gate->listens = open;
}

static uint64_t patience_ns(const struct hk__gate *gate)
{
	return gate->listens ? STRANGER_NS : CROWD_NS;
}

static void visitor_close(struct hk__gate *gate, struct visitor *visitor)
{
	if (!visitor->proved)
		gate->nstrangers--;
	hk__fd_close(visitor->fd);
	memset(visitor, 0, sizeof(*visitor));
	visitor->fd = -1;
	visitor->next_free = gate->free;
	gate->free = (uint32_t)(visitor - gate->visitors);
	gate_open(gate);
}

/* Without a proof. */
static void stranger_end(struct hk__gate *gate, struct visitor *visitor, const char *what)
{
	gate->strangers++;
	hk__stranger_note(&gate->turned_away, &visitor->origin, gate->spec.who, what);
	visitor_close(gate, visitor);
}

enum hk_status hk__gate_create(const struct hk__gate_spec *spec, struct hk__gate **gate_out)
{
	struct hk__gate *gate = hk__mem_zalloc(spec->alloc, 1, sizeof(*gate));
	enum hk_status status = HK_ENOMEM;

	if (!gate)
		return HK_ENOMEM;
	hk_assert(spec->hello_len <= HK__HELLO_MAX);
	gate->spec = *spec;
	gate->nvisitors = spec->guests + STRANGERS_MAX;
	gate->visitors = hk__mem_zalloc(spec->alloc, gate->nvisitors, sizeof(struct visitor));
	if (!gate->visitors)
		goto err_gate;
	gate->free = HK_NONE;
	for (uint32_t i = gate->nvisitors; i-- > 0;) {
		gate->visitors[i] = (struct visitor){ .fd = -1, .next_free = gate->free };
		gate->free = i;
	}
	status = HK_EIO;
	gate->expiry_ns = UINT64_MAX;
	gate->epoll_fd = hk__fd_open(epoll_create1(EPOLL_CLOEXEC));
	if (gate->epoll_fd < 0)
		goto err_visitors;
	if (!gate_watch(gate, EPOLL_CTL_ADD, spec->listen_fd, EPOLLIN, HK_NONE))
		goto err_epoll;
	gate->listens = true;
	*gate_out = gate;
	return HK_OK;

err_epoll:
	hk__fd_close(gate->epoll_fd);
err_visitors:
	hk__mem_free(spec->alloc, gate->visitors, gate->nvisitors, sizeof(struct visitor));
err_gate:
	hk__mem_free(spec->alloc, gate, 1, sizeof(*gate));
	return status;
}

void hk__gate_destroy(struct hk__gate *gate)
{
	if (!gate)
		return;
	hk__strangers_end(&gate->turned_away, gate->spec.who);
	for (uint32_t i = 0; i < gate->nvisitors; i++)
		if (gate->visitors[i].fd >= 0)
			hk__fd_close(gate->visitors[i].fd);
	hk__fd_close(gate->epoll_fd);
	const struct hk_alloc *alloc = gate->spec.alloc;
	hk__mem_free(alloc, gate->visitors, gate->nvisitors, sizeof(struct visitor));
	hk__mem_free(alloc, gate, 1, sizeof(*gate));
}

/* ---- writing ---- */

enum moved {
	MOVED,
	MOVED_LATER,
	MOVED_NEVER
};

static enum moved moved_by_errno(void)
{
	if (errno == ETOOMANYREFS) {
		/* Too many descriptors of this user are on their way. */
		struct timespec short_while = { 0, 1000000 };

		(void)nanosleep(&short_while, NULL);
		return MOVED_LATER;
	}
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? MOVED_LATER
									 : MOVED_NEVER;
}

static ssize_t fds_send(int fd, const unsigned char *bytes, const int *fds, size_t count)
{
	struct iovec iov = { (void *)bytes, count };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	memset(&control, 0, sizeof(control));
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* The next piece of the message: descriptors and as many bytes, or bytes. */
static ssize_t message_send(struct visitor *visitor)
{
	const struct hk__gate_message *message = &visitor->message;
	size_t fds_left = message->nfds - visitor->fds_at;
	size_t until = fds_left ? visitor->fds_at : message->len;

	/* Bytes whose descriptors went with earlier ones. */
	if (visitor->message_at < until)
		return send(visitor->fd, message->bytes + visitor->message_at,
			    until - visitor->message_at, MSG_NOSIGNAL);
	size_t count = fds_left < FDS_MAX ? fds_left : FDS_MAX;
	ssize_t put = fds_send(visitor->fd, message->bytes + visitor->message_at,
			       message->fds + visitor->fds_at, count);
	if (put > 0)
		visitor->fds_at += count;
	return put;
}

static enum moved visitor_write(struct visitor *visitor)
{
	while (visitor->own_at < visitor->own_len) {
		ssize_t put = send(visitor->fd, visitor->own + visitor->own_at,
				   visitor->own_len - visitor->own_at, MSG_NOSIGNAL);

		if (put < 0)
			return moved_by_errno();
		visitor->own_at += (size_t)put;
	}
	while (visitor->message.bytes && visitor->message_at < visitor->message.len) {
		ssize_t put = message_send(visitor);

		if (put < 0)
			return moved_by_errno();
		visitor->message_at += (size_t)put;
	}
	return MOVED;
}

/* Writes what can be; false: the visitor cannot be reached any more. */
static bool visitor_flush(struct hk__gate *gate, struct visitor *visitor)
{
	enum moved moved = visitor_write(visitor);
	bool wants_out = moved == MOVED_LATER;

	if (moved == MOVED_NEVER)
		return false;
	if (wants_out != visitor->wants_out &&
	    !gate_watch(gate, EPOLL_CTL_MOD, visitor->fd, EPOLLIN | (wants_out ? EPOLLOUT : 0),
			(uint32_t)(visitor - gate->visitors)))
		return false;
	visitor->wants_out = wants_out;
	return true;
}

/* ---- accepting ---- */

static bool user_is_same(int fd, struct hk__origin *origin_out)
{
	struct ucred peer = { .uid = UINT32_MAX };
	socklen_t len = sizeof(peer);
	bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0;

	*origin_out = hk__origin_user(peer.uid);
	return known && peer.uid == geteuid();
}

static void stranger_begin(struct hk__gate *gate, int fd, const struct hk__origin *origin)
{
	struct visitor *visitor = &gate->visitors[gate->free];
	uint32_t number = gate->free;

	hk_assert(visitor->fd < 0);
	gate->free = visitor->next_free;
	*visitor = (struct visitor){
		.fd = fd, .since_ns = hk__now_ns(), .origin = *origin, .own_len = HK__GREETING_BYTES
	};
	gate->nstrangers++;
	if (visitor->since_ns + STRANGER_NS < gate->expiry_ns)
		gate->expiry_ns = visitor->since_ns + STRANGER_NS;
	hk__auth_nonce(visitor->nonce);
	memcpy(visitor->own, hk__conn_magic, sizeof(hk__conn_magic));
	memcpy(visitor->own + sizeof(hk__conn_magic), visitor->nonce, HK__NONCE_BYTES);
	if (!gate_watch(gate, EPOLL_CTL_ADD, fd, EPOLLIN, number) || !visitor_flush(gate, visitor))
		stranger_end(gate, visitor, "it hung up");
}

static enum hk_status gate_accept(struct hk__gate *gate)
{
	while (gate->nstrangers < STRANGERS_MAX && gate->free != HK_NONE) {
		struct sockaddr_storage addr = { 0 };
		socklen_t len = sizeof(addr);
		int fd = hk__fd_open(accept4(gate->spec.listen_fd, (struct sockaddr *)&addr, &len,
					     SOCK_CLOEXEC | SOCK_NONBLOCK));

		if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			       errno == ENOBUFS || errno == EBADF || errno == EINVAL))
			return HK_EIO;
		if (fd < 0)
			continue; /* whoever it was has left already */
		struct hk__origin origin = hk__origin_of(&addr);
		if (gate->spec.same_user && !user_is_same(fd, &origin)) {
			gate->strangers++;
			hk__stranger_note(&gate->turned_away, &origin, gate->spec.who,
					  "it is of another user");
			hk__fd_close(fd);
			continue;
		}
		stranger_begin(gate, fd, &origin);
	}
	gate_open(gate);
	if (!gate->listens) /* those who take their time are in the way now */
		gate->expiry_ns = 0;
	return HK_OK;
}

static void strangers_expire(struct hk__gate *gate)
{
	uint64_t now = hk__now_ns();

	if (now < gate->expiry_ns)
		return;
	gate->expiry_ns = UINT64_MAX;
	for (uint32_t i = 0; i < gate->nvisitors; i++) {
		struct visitor *visitor = &gate->visitors[i];

		if (visitor->fd < 0 || visitor->proved)
			continue;
		uint64_t deadline_ns = visitor->since_ns + patience_ns(gate);
		if (deadline_ns <= now) {
			stranger_end(gate, visitor, "it proved nothing in time");
		} else if (deadline_ns < gate->expiry_ns) {
			gate->expiry_ns = deadline_ns;
		}
	}
}

/* ---- reading ---- */

/* The claim is complete: is it of one who holds the key? */
static bool stranger_judge(struct hk__gate *gate, struct visitor *visitor)
{
	struct hk__claim claim = { gate->spec.key, gate->spec.purpose,
				   visitor->in + HK__CLAIM_BYTES, gate->spec.hello_len };
	struct hk__about about;
	struct hk__auth auth;

	hk__conn_about(&claim, &about, &auth);
	memcpy(auth.accepts, visitor->nonce, HK__NONCE_BYTES);
	memcpy(auth.connects, visitor->in, HK__NONCE_BYTES);
	memset(visitor->own, 0, sizeof(visitor->own));
	visitor->own_at = 0;
	visitor->own_len = HK__VERDICT_BYTES;
	if (!hk__auth_holds(&auth, HK__AUTH_CONNECTS, visitor->in + HK__NONCE_BYTES)) {
		visitor->own[0] = 'n';
		return false;
	}
	visitor->own[0] = 'y';
	hk__auth_prove(&auth, HK__AUTH_ACCEPTS, visitor->own + 1);
	return true;
}

/* True: it has become a guest. */
static bool stranger_read(struct hk__gate *gate, struct visitor *visitor)
{
	size_t want = HK__CLAIM_BYTES + gate->spec.hello_len;
	ssize_t got = recv(visitor->fd, visitor->in + visitor->in_len, want - visitor->in_len, 0);

	if (got < 0 && moved_by_errno() == MOVED_LATER)
		return false;
	if (got <= 0) {
		if (visitor->in_len) {
			stranger_end(gate, visitor, "it hung up");
			return false;
		}
		gate->strangers++;
		hk__stranger_left(&gate->turned_away, &visitor->origin);
		visitor_close(gate, visitor);
		return false;
	}
	visitor->in_len += (size_t)got;
	/* Nobody has a proof before it has the nonce. */
	if (visitor->in_len < want || visitor->own_at < visitor->own_len)
		return false;
	if (!stranger_judge(gate, visitor)) {
		gate->denied++;
		hk__stranger_note(&gate->turned_away, &visitor->origin, gate->spec.who,
				  "it does not hold the job key");
		(void)visitor_flush(gate, visitor);
		visitor_close(gate, visitor);
		return false;
	}
	visitor->proved = true;
	hk__stranger_proved(&gate->turned_away, &visitor->origin);
	gate->nstrangers--;
	gate_open(gate);
	/* That it cannot be written will be seen as an event of its connection. */
	(void)visitor_flush(gate, visitor);
	return true;
}

/* What a guest does once it is told: confirm, or leave. */
static bool guest_read(struct visitor *visitor, enum hk__gate_what *what_out)
{
	char byte = 0;
	ssize_t got = recv(visitor->fd, &byte, 1, 0);

	if (got < 0 && moved_by_errno() == MOVED_LATER)
		return false;
	bool told = visitor->message.bytes && visitor->message_at == visitor->message.len;
	*what_out = got == 1 && byte == 'k' && told ? HK__GATE_CONFIRMED : HK__GATE_GONE;
	return true;
}

/* True: there is something to report. */
static bool visitor_serve(struct hk__gate *gate, struct visitor *visitor, uint32_t events,
			  struct hk__gate_event *event)
{
	if (visitor->fd < 0)
		return false;
	event->guest = (uint32_t)(visitor - gate->visitors);
	bool reached = visitor_flush(gate, visitor);
	if (!visitor->proved) {
		if (!reached) {
			stranger_end(gate, visitor, "it hung up");
			return false;
		}
		event->what = HK__GATE_CAME;
		event->hello = visitor->in + HK__CLAIM_BYTES;
		return (events & ~(uint32_t)EPOLLOUT) && stranger_read(gate, visitor);
	}
	event->what = HK__GATE_GONE;
	if (reached && (!(events & ~(uint32_t)EPOLLOUT) || !guest_read(visitor, &event->what)))
		return false;
	visitor_close(gate, visitor);
	return true;
}

/* ---- what users call ---- */

enum hk_status hk__gate_next(struct hk__gate *gate, uint64_t deadline_ns,
			     struct hk__gate_event *event_out)
{
	for (;;) {
		while (gate->event_at < gate->nevents) {
			const struct epoll_event *event = &gate->events[gate->event_at++];
			enum hk_status status = HK_OK;

			if (event->data.u32 == HK_NONE)
				status = gate_accept(gate);
			else if (visitor_serve(gate, &gate->visitors[event->data.u32],
					       event->events, event_out))
				return HK_OK;
			if (status != HK_OK)
				return status;
		}
		strangers_expire(gate);
		if (hk__now_ns() >= deadline_ns) {
			event_out->what = HK__GATE_TIMEOUT;
			return HK_OK;
		}
		uint64_t until = deadline_ns < gate->expiry_ns ? deadline_ns : gate->expiry_ns;
		gate->event_at = 0;
		gate->nevents =
			epoll_wait(gate->epoll_fd, gate->events, EVENTS, hk__conn_left_ms(until));
		if (gate->nevents < 0 && errno != EINTR)
			return HK_EIO;
	}
}

void hk__gate_tell(struct hk__gate *gate, uint32_t guest, const struct hk__gate_message *message)
{
	struct visitor *visitor = &gate->visitors[guest];

	hk_assert(visitor->fd >= 0 && visitor->proved && !visitor->message.bytes);
	hk_assert(message->bytes && message->len >= message->nfds);
	visitor->message = *message;
	/* That it is gone will be seen, and reported, as an event of its connection. */
	(void)visitor_flush(gate, visitor);
}

void hk__gate_drop(struct hk__gate *gate, uint32_t guest)
{
	hk_assert(gate->visitors[guest].fd >= 0 && gate->visitors[guest].proved);
	visitor_close(gate, &gate->visitors[guest]);
}

int hk__gate_fd(const struct hk__gate *gate, uint32_t guest)
{
	return gate->visitors[guest].fd;
}

uint32_t hk__gate_strangers(const struct hk__gate *gate)
{
	return gate->strangers;
}

uint32_t hk__gate_denied(const struct hk__gate *gate)
{
	return gate->denied;
}

uint32_t hk__gate_room(const struct hk__gate *gate)
{
	return gate->nvisitors;
}
