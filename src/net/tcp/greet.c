/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greet.c - connections that have not proved themselves yet.
 *
 * Pieces of fixed size go to and fro (wire.h); a greeting knows what it still
 * has to write and how much it still has to read, and nothing else is read. One
 * that is late or says something wrong is closed, and the job goes on: who
 * connected tries again for a while.
 */
#include "net/tcp/inside.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/*
 * How long a stranger may take. Who connects waits longer: the other rank may be
 * busy elsewhere, and it is the caller who knows how long an operation may take.
 */
#define GREET_LATE_NS UINT64_C(10000000000)
#define ANSWER_LATE_NS UINT64_C(60000000000)
#define GREET_SPARE 64u	  /* strangers that may be greeted at a time */
#define GREET_ACCEPTS 64u /* in a round */
#define BACKOFF_FIRST_NS UINT64_C(5000000)
#define BACKOFF_LAST_NS UINT64_C(500000000)
#define FULL_NS UINT64_C(100000000)
#define TRY_TIMES 8u
#define TRY_FOR_NS UINT64_C(30000000000)

enum greet_stage {
	GREET_CONNECT, /* who connects */
	GREET_HELLO,
	GREET_ANSWER,
	GREET_CLAIM, /* who accepts */
	GREET_UP
};

struct tcp_greet {
	struct tcp_source source;
	struct tcp_greet *next;
	int fd; /* -1: over */
	enum greet_stage stage;
	struct tcp_link *link; /* who connects; who accepts: once it is claimed */
	uint64_t late;	       /* when it is; 0: never */
	struct hk__auth auth;
	unsigned char about[WIRE_ABOUT_BYTES];
	unsigned char in[WIRE_CLAIM_BYTES];
	uint32_t in_len, in_need;
	unsigned char out[WIRE_CLAIM_BYTES];
	uint32_t out_sent, out_len;
	char where[TCP_WHERE_MAX];
};

/* ---- beginning and end ---- */

static enum hk_status greet_start(struct tcp *tcp, int fd, enum greet_stage stage,
				  struct tcp_greet **greet_out)
{
	struct tcp_greet *greet = hk__mem_zalloc(tcp->alloc, 1, sizeof(*greet));
	uint32_t events = stage == GREET_CONNECT ? EPOLLOUT : EPOLLIN;

	if (!greet)
		return HK_ENOMEM;
	greet->source.is = TCP_GREETS;
	if (hk__tcp_watch(tcp, fd, events, &greet->source, true) != HK_OK) {
		hk__mem_free(tcp->alloc, greet, 1, sizeof(*greet));
		return HK_EIO;
	}
	greet->fd = fd;
	greet->stage = stage;
	memcpy(greet->auth.key, tcp->spec.key, HK__KEY_BYTES);
	greet->auth.about = greet->about;
	greet->auth.about_len = sizeof(greet->about);
	greet->next = tcp->greets;
	tcp->greets = greet;
	tcp->ngreets++;
	*greet_out = greet;
	return HK_OK;
}

/* The socket is closed, or somebody else's by now (keep). */
static void greet_end(struct tcp *tcp, struct tcp_greet *greet, bool keep)
{
	struct tcp_greet **at = &tcp->greets;

	if (!keep)
		close(greet->fd);
	greet->fd = -1;
	while (*at != greet)
		at = &(*at)->next;
	*at = greet->next;
	tcp->ngreets--;
	/* An event about it may be waiting in this round. */
	greet->next = tcp->greets_over;
	tcp->greets_over = greet;
}

void hk__tcp_greet_sweep(struct tcp *tcp)
{
	while (tcp->greets_over) {
		struct tcp_greet *greet = tcp->greets_over;

		tcp->greets_over = greet->next;
		hk__mem_free(tcp->alloc, greet, 1, sizeof(*greet));
	}
}

void hk__tcp_greet_end_all(struct tcp *tcp)
{
	while (tcp->greets)
		greet_end(tcp, tcp->greets, false);
	hk__tcp_greet_sweep(tcp);
}

/* ---- who connects ---- */

void hk__tcp_greet_again(struct tcp_link *link, const char *what)
{
	struct tcp *tcp = link->tcp;
	uint64_t now = hk__now_ns();
	uint64_t limit = tcp->spec.connect_timeout_ns ? tcp->spec.connect_timeout_ns : TRY_FOR_NS;

	if (!link->failed_since)
		link->failed_since = now;
	struct tcp_link **slot =
		now - link->failed_since < limit ? hk__array_push(&tcp->trying) : NULL;
	if (!slot) {
		hk__tcp_link_break(link, HK_EPEER, "rank %u (%s) cannot be reached: %s", link->rank,
				   link->where, what);
		return;
	}
	*slot = link;
	link->backoff = link->backoff ? link->backoff * 2 : BACKOFF_FIRST_NS;
	if (link->backoff > BACKOFF_LAST_NS)
		link->backoff = BACKOFF_LAST_NS;
	link->retry_at = now + link->backoff;
}

enum hk_status hk__tcp_greet_connect(struct tcp_link *link)
{
	struct tcp *tcp = link->tcp;
	struct tcp_greet *greet;
	bool done;
	int fd = hk__tcp_connect(tcp, link, &done);

	link->retry_at = 0;
	if (fd < 0) {
		hk__tcp_greet_again(link, strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
		return HK_OK;
	}
	enum hk_status status = greet_start(tcp, fd, GREET_CONNECT, &greet);
	if (status != HK_OK) {
		close(fd);
		return status;
	}
	greet->link = link;
	memcpy(greet->where, link->where, TCP_WHERE_MAX);
	/* How long a host that answers nothing is waited for. */
	greet->late = hk__now_ns() +
		      (tcp->spec.connect_timeout_ns ? tcp->spec.connect_timeout_ns : TRY_FOR_NS);
	return HK_OK;
}

/* ---- who accepts ---- */

/* Room for one more: who has been here longest without a proof has to go. */
static void greet_make_room(struct tcp *tcp)
{
	uint32_t conns = tcp->base.n * tcp->spec.conns, accepted = 0;
	struct tcp_greet *oldest = NULL;

	for (struct tcp_greet *greet = tcp->greets; greet; greet = greet->next) {
		if (greet->stage >= GREET_CLAIM) {
			oldest = greet;
			accepted++;
		}
	}
	if (accepted >= GREET_SPARE + hk__min(conns, 4096)) {
		tcp->refused++;
		greet_end(tcp, oldest, false);
	}
}

static enum hk_status greet_accepted(struct tcp *tcp, int fd, const struct sockaddr_storage *addr)
{
	struct tcp_greet *greet;
	enum hk_status status = greet_start(tcp, fd, GREET_CLAIM, &greet);

	if (status != HK_OK)
		return status;
	hk__tcp_where(addr, greet->where);
	greet->late = hk__now_ns() + GREET_LATE_NS;
	hk__auth_nonce(greet->auth.accepts);
	wire_put_magic(greet->out);
	memcpy(greet->out + 8, greet->auth.accepts, HK__NONCE_BYTES);
	greet->out_len = WIRE_HELLO_BYTES;
	greet->in_need = WIRE_CLAIM_BYTES;
	hk__tcp_greet_move(tcp, greet);
	return HK_OK;
}

void hk__tcp_greet_accept(struct tcp *tcp)
{
	for (uint32_t i = 0; i < GREET_ACCEPTS; i++) {
		struct sockaddr_storage addr = { 0 };
		socklen_t len = sizeof(addr);

		int fd = accept4(tcp->listen_fd, (struct sockaddr *)&addr, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			/* Looked at again in a while: to be told now would not help. */
			(void)hk__tcp_watch(tcp, tcp->listen_fd, 0, &tcp->listens, false);
			tcp->full_until = hk__now_ns() + FULL_NS;
			hk__why(&tcp->base.why, HK_EIO, "rank %u can take no connection: %s",
				tcp->base.rank, strerror(errno)); /* NOLINT(concurrency-*) */
			return;
		}
		if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
			return; /* no more of them, or nothing about this rank */
		if (fd < 0)
			continue;
		hk__tcp_tune(fd);
		greet_make_room(tcp);
		if (greet_accepted(tcp, fd, &addr) != HK_OK)
			close(fd);
	}
}

/* ---- what is said ---- */

/* It is not one of us, or not as it should be. */
static void greet_refuse(struct tcp *tcp, struct tcp_greet *greet, const char *what)
{
	struct tcp_link *link = greet->stage <= GREET_ANSWER ? greet->link : NULL;

	greet_end(tcp, greet, false);
	if (link) {
		hk__tcp_greet_again(link, what);
		return;
	}
	tcp->refused++;
	hk__why(&tcp->base.why, HK_EDENIED, "rank %u turned %s away: %s", tcp->base.rank,
		greet->where, what);
}

static void greet_up(struct tcp *tcp, struct tcp_greet *greet)
{
	struct tcp_link *link = greet->link;
	bool connects = greet->stage == GREET_ANSWER;
	int fd = greet->fd;

	if (link->state == LINK_UP || link->state == LINK_BROKEN) {
		greet_refuse(tcp, greet, "there is such a connection already");
		return;
	}
	if (!connects)
		memcpy(link->where, greet->where, TCP_WHERE_MAX);
	greet_end(tcp, greet, true);
	hk__tcp_link_up(link, fd, !connects);
}

/* Who connects has read hello: claims to be who it is. */
static const char *greet_hello(struct tcp *tcp, struct tcp_greet *greet)
{
	struct wire_claim claim = { tcp->base.rank, greet->link->rank, greet->link->index,
				    tcp->spec.conns };
	unsigned char *at = greet->out;

	if (!wire_is_ours(greet->in))
		return "it speaks another language or version";
	memcpy(greet->auth.accepts, greet->in + 8, HK__NONCE_BYTES);
	hk__auth_nonce(greet->auth.connects);
	wire_put_about(greet->about, &claim);
	memcpy(at, greet->about, WIRE_ABOUT_BYTES);
	memcpy(at + WIRE_ABOUT_BYTES, greet->auth.connects, HK__NONCE_BYTES);
	hk__auth_prove(&greet->auth, HK__AUTH_CONNECTS, at + WIRE_ABOUT_BYTES + HK__NONCE_BYTES);
	greet->out_sent = 0;
	greet->out_len = WIRE_CLAIM_BYTES;
	greet->in_need = WIRE_ANSWER_BYTES;
	greet->late = hk__now_ns() + ANSWER_LATE_NS;
	greet->stage = GREET_ANSWER;
	return NULL;
}

/* Who accepts has read a claim: looks whether it holds, and proves itself. */
static const char *greet_claim(struct tcp *tcp, struct tcp_greet *greet)
{
	struct wire_claim claim = wire_get_about(greet->in);

	if (!wire_is_ours(greet->in))
		return "it speaks another language or version";
	memcpy(greet->about, greet->in, WIRE_ABOUT_BYTES);
	memcpy(greet->auth.connects, greet->in + WIRE_ABOUT_BYTES, HK__NONCE_BYTES);
	if (!hk__auth_holds(&greet->auth, HK__AUTH_CONNECTS,
			    greet->in + WIRE_ABOUT_BYTES + HK__NONCE_BYTES))
		return "it does not hold the job's key";
	if (claim.wants != tcp->base.rank || claim.rank >= tcp->base.rank)
		return "it wants another rank";
	if (claim.conns != tcp->spec.conns || claim.index >= tcp->spec.conns)
		return "it has another number of connections";
	greet->link = hk__tcp_link_at(tcp, claim.rank, claim.index);
	if (!greet->link)
		return "there is no memory for it";
	hk__auth_prove(&greet->auth, HK__AUTH_ACCEPTS, greet->out);
	greet->out_sent = 0;
	greet->out_len = WIRE_ANSWER_BYTES;
	greet->in_need = WIRE_FRAME_BYTES;
	greet->stage = GREET_UP;
	return NULL;
}

/* A piece is complete. */
static void greet_next(struct tcp *tcp, struct tcp_greet *greet)
{
	const char *fault = NULL;
	bool up = false;

	greet->in_len = 0;
	switch (greet->stage) {
	case GREET_HELLO:
		fault = greet_hello(tcp, greet);
		break;
	case GREET_ANSWER:
		up = hk__auth_holds(&greet->auth, HK__AUTH_ACCEPTS, greet->in);
		fault = up ? NULL : "it does not hold the job's key";
		break;
	case GREET_CLAIM:
		fault = greet_claim(tcp, greet);
		break;
	case GREET_UP:
		up = wire_get_frame(greet->in).type == WIRE_UP;
		fault = up ? NULL : "it does not begin as it should";
		break;
	case GREET_CONNECT:
		break;
	}
	if (fault)
		greet_refuse(tcp, greet, fault);
	else if (up)
		greet_up(tcp, greet);
}

/* ---- moving ---- */

/* Writes what there is to write; false: it came to an end. */
static bool greet_write(struct tcp *tcp, struct tcp_greet *greet)
{
	uint32_t left = greet->out_len - greet->out_sent;

	if (!left)
		return true;
	ssize_t wrote =
		send(greet->fd, greet->out + greet->out_sent, left, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (wrote < 0 && errno != EAGAIN && errno != EINTR) {
		greet_refuse(tcp, greet, "it hung up");
		return false;
	}
	greet->out_sent += wrote < 0 ? 0 : (uint32_t)wrote;
	uint32_t events = EPOLLIN | (greet->out_sent < greet->out_len ? EPOLLOUT : 0);
	if (hk__tcp_watch(tcp, greet->fd, events, &greet->source, false) != HK_OK) {
		greet_refuse(tcp, greet, "it cannot be watched");
		return false;
	}
	return true;
}

/* Whether the connection is made; an answer of its own to a failure. */
static bool greet_connected(struct tcp *tcp, struct tcp_greet *greet)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(greet->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error || hk__tcp_watch(tcp, greet->fd, EPOLLIN, &greet->source, false) != HK_OK) {
		greet_refuse(tcp, greet, strerror(error)); /* NOLINT(concurrency-mt-unsafe) */
		return false;
	}
	greet->stage = GREET_HELLO;
	greet->in_need = WIRE_HELLO_BYTES;
	/* A rank that is busy elsewhere may let us wait: its system has taken us. */
	greet->late = 0;
	return true;
}

void hk__tcp_greet_move(struct tcp *tcp, struct tcp_greet *greet)
{
	if (greet->fd < 0 || (greet->stage == GREET_CONNECT && !greet_connected(tcp, greet)))
		return;
	while (greet->fd >= 0) {
		if (!greet_write(tcp, greet))
			return;
		ssize_t got = recv(greet->fd, greet->in + greet->in_len,
				   greet->in_need - greet->in_len, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			greet_refuse(tcp, greet,
				     greet->stage == GREET_ANSWER
					     ? "it hung up when it was given a proof: another key?"
					     : "it hung up");
			return;
		}
		greet->in_len += (uint32_t)got;
		if (greet->in_len == greet->in_need)
			greet_next(tcp, greet);
	}
}

/* ---- time ---- */

static void retry_due(struct tcp *tcp, uint64_t now)
{
	for (size_t i = tcp->trying.count; i-- > 0;) {
		struct tcp_link **trying = tcp->trying.items;
		struct tcp_link *link = trying[i];

		if (link->retry_at > now)
			continue;
		trying[i] = trying[--tcp->trying.count];
		if (hk__tcp_greet_connect(link) != HK_OK)
			hk__tcp_link_break(link, HK_ENOMEM, "no memory to reach rank %u (%s)",
					   link->rank, link->where);
	}
}

uint64_t hk__tcp_greet_timers(struct tcp *tcp, uint64_t now)
{
	struct tcp_greet *greet = tcp->greets;
	uint64_t next = 0;

	if (tcp->full_until && tcp->full_until <= now) {
		tcp->full_until = 0;
		(void)hk__tcp_watch(tcp, tcp->listen_fd, EPOLLIN, &tcp->listens, false);
	}
	next = tcp->full_until;
	while (greet) {
		struct tcp_greet *after = greet->next;

		/* Not late, if it is this rank that has not looked. */
		if (greet->late && greet->late <= now && greet->stage != GREET_CONNECT)
			hk__tcp_greet_move(tcp, greet);
		if (greet->fd >= 0 && greet->late && greet->late <= now)
			greet_refuse(tcp, greet, "it took too long");
		greet = after;
	}
	retry_due(tcp, now);
	for (greet = tcp->greets; greet; greet = greet->next)
		if (greet->late && (!next || greet->late < next))
			next = greet->late;
	for (size_t i = 0; i < tcp->trying.count; i++) {
		const struct tcp_link *link = ((struct tcp_link **)tcp->trying.items)[i];

		if (!next || link->retry_at < next)
			next = link->retry_at;
	}
	return next;
}
