/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greet.c - connections that have not proved themselves yet.
 *
 * Pieces of fixed size go to and fro (wire.h); a greeting knows what it still
 * has to write and how much it still has to read, and nothing else is read. One
 * that is late or says something wrong is closed, and the job goes on: who
 * connected tries again for a while.
 */
#include "net/tcp/link.h"
#include "base/fork.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/*
 * How long a stranger may take. Who connects waits longer: the other rank may be
 * busy elsewhere, and it is the caller who knows how long an operation may take.
 */
#define GREET_LATE_NS UINT64_C(5000000000)
#define ANSWER_LATE_NS UINT64_C(60000000000)
#define GREET_SPARE 64u	  /* strangers that may be greeted at a time */
#define GREET_ACCEPTS 64u /* in a round */
#define BACKOFF_FIRST_NS UINT64_C(5000000)
#define BACKOFF_LAST_NS UINT64_C(500000000)
#define FULL_NS UINT64_C(100000000)
#define TRY_FOR_NS UINT64_C(30000000000)
/*
 * Every rank listens before others learn where: whoever is refused for so long
 * talks to a host where the process is gone.
 */
#define REFUSED_NS UINT64_C(250000000)
#define REFUSED_TIMES 3u

enum greet_stage {
	GREET_CONNECT, /* who connects */
	GREET_HELLO,
	GREET_ANSWER,
	GREET_CLAIM, /* who accepts */
	GREET_UP,
	GREET_PROBED
};

struct tcp_greet {
	struct tcp_source source;
	struct tcp_greet *next;
	int fd; /* -1: over */
	enum greet_stage stage;
	struct tcp_link *link; /* who connects */
	uint32_t rank, index;  /* who accepts: as claimed */
	uint64_t late;	       /* when it is; 0: never */
	struct hk__auth auth;
	struct hk__seal *seal; /* once there is one, until it is the link's */
	uint32_t flags;	       /* as claimed */
	bool hopeless;	       /* to try again would not help */
	unsigned char about[WIRE_ABOUT_BYTES];
	unsigned char in[WIRE_CLAIM_BYTES];
	uint32_t in_len, in_need;
	unsigned char out[WIRE_CLAIM_BYTES];
	uint32_t out_sent, out_len;
	char where[TCP_WHERE_MAX];
	struct hk__origin origin; /* who accepts: of the other end */
};

_Static_assert(WIRE_CLAIM_BYTES >= HK__SEAL_HEAD + WIRE_FRAME_BYTES + HK__SEAL_TAG &&
		       WIRE_CLAIM_BYTES >= WIRE_HELLO_BYTES,
	       "all that is read fits");

/* What this rank wants, and can. */
static uint32_t greet_flags(const struct tcp *tcp)
{
	if (!tcp->spec.encrypt)
		return 0;
	return WIRE_ENCRYPT | (hk__seal_has_aes() ? WIRE_AES : 0);
}

#define WHO_MAX 32

static const char *greet_who(const struct tcp *tcp, char who_out[WHO_MAX])
{
	(void)snprintf(who_out, WHO_MAX, "rank %u", tcp->base.rank);
	return who_out;
}

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

	if (!keep) {
		hk__fd_close(greet->fd);
		hk__seal_destroy(greet->seal);
	}
	explicit_bzero(greet->auth.key, sizeof(greet->auth.key));
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

/* Who left without a word is named now, unless it is a host of the job's. */
static void strangers_end(struct tcp *tcp)
{
	const struct hk_tcp_spec *spec = &tcp->spec;
	struct sockaddr_storage addr;
	char who[WHO_MAX];
	socklen_t len;

	for (uint32_t r = 0; tcp->strangers.nsilent && spec->address && r < tcp->base.n; r++) {
		if (spec->address(spec->ctx, r, &addr, &len) != HK_OK)
			continue;
		struct hk__origin origin = hk__origin_of(&addr);
		hk__stranger_proved(&tcp->strangers, &origin);
	}
	hk__strangers_end(&tcp->strangers, greet_who(tcp, who));
}

void hk__tcp_greet_end_all(struct tcp *tcp)
{
	while (tcp->greets)
		greet_end(tcp, tcp->greets, false);
	hk__tcp_greet_sweep(tcp);
	strangers_end(tcp);
}

/* ---- who connects ---- */

void hk__tcp_greet_stop(struct tcp_link *link)
{
	struct tcp *tcp = link->tcp;
	struct tcp_link **trying = tcp->trying.items;
	struct tcp_greet *greet = tcp->greets;

	for (size_t i = tcp->trying.count; i-- > 0;)
		if (trying[i] == link)
			trying[i] = trying[--tcp->trying.count];
	while (greet) {
		struct tcp_greet *after = greet->next;

		if (greet->link == link)
			greet_end(tcp, greet, false);
		greet = after;
	}
}

/* How long it is tried; a host that does not even answer, no longer than that. */
static uint64_t try_for(const struct tcp_link *link, bool silent)
{
	const struct hk_tcp_spec *spec = &link->tcp->spec;
	uint64_t limit = spec->connect_timeout_ns ? spec->connect_timeout_ns : TRY_FOR_NS;

	if ((silent || link->index >= TCP_PING) && spec->silence_ns < limit)
		return spec->silence_ns;
	return limit;
}

/* Whether no attempt is left. A host with too many at its door is asked at its quiet port. */
static bool try_no_more(struct tcp_link *link, int error, uint64_t now)
{
	uint64_t *since = error ? &link->silent_from : &link->failed_since;
	bool seen = error == ETIMEDOUT && hk__tcp_peer_seen(link->tcp, link->peer, now);

	if (!*since)
		*since = now;
	if (error == ETIMEDOUT)
		hk__tcp_peer_ping(link->tcp, link->peer);
	return now - *since >= try_for(link, error && !seen);
}

/* Whether nobody listens there any more, which a process does until its end. */
static bool refused_for_good(struct tcp_link *link, int error, uint64_t now)
{
	if (error != ECONNREFUSED) {
		link->refusals = 0;
		return false;
	}
	if (link->refusals++ == 0)
		link->refused_since = now;
	/* One that was connected, or is about to be asked for, was there before. */
	return link->index == TCP_PROBE ||
	       (link->refusals >= REFUSED_TIMES && now - link->refused_since >= REFUSED_NS);
}

void hk__tcp_greet_again(struct tcp_link *link, int error, const char *what)
{
	struct tcp *tcp = link->tcp;
	uint64_t now = hk__now_ns();

	if (link->state == LINK_BROKEN)
		return;
	if (link->index == TCP_PING) {
		hk__tcp_peer_pinged(link, error == ECONNREFUSED);
		return;
	}
	if (refused_for_good(link, error, now)) {
		hk__tcp_peer_dead(tcp, link->peer);
		return;
	}
	struct tcp_link **slot =
		try_no_more(link, error, now) ? NULL : hk__array_push(&tcp->trying);
	if (!slot && link->index == TCP_PROBE) {
		hk__tcp_peer_probed(link, what, hk__tcp_peer_seen(tcp, link->peer, now));
		return;
	}
	if (!slot) {
		hk__tcp_link_break(link, HK_EPEER, "it cannot be reached: %s", what);
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
	link->answered = false;
	if (fd < 0) {
		int error = errno;

		hk__tcp_greet_again(link, error, strerror(error)); /* NOLINT(concurrency-*) */
		return HK_OK;
	}
	enum hk_status status = greet_start(tcp, fd, GREET_CONNECT, &greet);
	if (status != HK_OK) {
		hk__fd_close(fd);
		return status;
	}
	greet->link = link;
	memcpy(greet->where, link->where, TCP_WHERE_MAX);
	uint64_t now = hk__now_ns();
	if (!link->silent_from)
		link->silent_from = now;
	/* How long a host that answers nothing is waited for: tried twice, and a ping between. */
	greet->late = now + try_for(link, true) / 2 + 1;
	return HK_OK;
}

/* ---- who accepts ---- */

/* Somebody has to go who had no proof. */
static void stranger_note(struct tcp *tcp, const struct tcp_greet *greet, const char *what)
{
	char who[WHO_MAX];

	tcp->refused++;
	hk__stranger_note(&tcp->strangers, &greet->origin, greet_who(tcp, who), what);
	hk__why(&tcp->base.why, HK_EDENIED, "%s turned %s away: %s", who, greet->where, what);
}

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
		stranger_note(tcp, oldest, "there are too many of them");
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
	greet->origin = hk__origin_of(addr);
	greet->late = hk__now_ns() + GREET_LATE_NS;
	hk__auth_nonce(greet->auth.accepts);
	wire_put_hello(greet->out, greet_flags(tcp), greet->auth.accepts);
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

		int fd = hk__fd_open(accept4(tcp->listen_fd, (struct sockaddr *)&addr, &len,
					     SOCK_NONBLOCK | SOCK_CLOEXEC));
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			/* Looked at again in a while: to be told now would not help. */
			(void)hk__tcp_watch(tcp, tcp->listen_fd, 0, &tcp->listens, false);
			tcp->full_until = hk__now_ns() + FULL_NS;
			hk__why(&tcp->base.why, HK_EIO, "rank %u cannot accept connections: %s",
				tcp->base.rank, strerror(errno)); /* NOLINT(concurrency-*) */
			return;
		}
		if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
			return; /* no more of them, or nothing about this rank */
		if (fd < 0)
			continue;
		hk__tcp_tune(tcp, fd);
		greet_make_room(tcp);
		if (greet_accepted(tcp, fd, &addr) != HK_OK)
			hk__fd_close(fd);
	}
}

/* ---- what is said ---- */

/* It is not one of us, or not as it should be; error: of the system, or 0. */
static void greet_fail(struct tcp *tcp, struct tcp_greet *greet, int error, const char *what)
{
	struct tcp_link *link = greet->link;

	greet_end(tcp, greet, false);
	if (link && greet->hopeless && link->index < TCP_PING) {
		hk__tcp_link_break(link, HK_EPEER, "%s", what);
		return;
	}
	if (link) {
		hk__tcp_greet_again(link, error, what);
		return;
	}
	if (greet->stage != GREET_PROBED) /* it knows what it wanted to */
		stranger_note(tcp, greet, what);
}

static void greet_refuse(struct tcp *tcp, struct tcp_greet *greet, const char *what)
{
	greet_fail(tcp, greet, 0, what);
}

/* Who connected has proved itself. */
static void greet_taken(struct tcp *tcp, struct tcp_greet *greet)
{
	struct tcp_link *link = hk__tcp_link_at(tcp, greet->rank, greet->index);
	int fd = greet->fd;

	if (!link) {
		greet_refuse(tcp, greet, "there is no memory for it");
		return;
	}
	if (hk__tcp_peer_is(link->peer, HK_NET_DEAD) || hk__tcp_peer_is(link->peer, HK_NET_LEFT)) {
		greet_refuse(tcp, greet, "it is known to have ended");
		return;
	}
	/* It knows better than this rank whether the old one still works. */
	hk__tcp_peer_conclude(tcp, link->peer);
	if (link->state == LINK_UP)
		hk__tcp_link_break(link, HK_EPEER, "it has connected anew");
	if (link->state == LINK_BROKEN)
		link = hk__tcp_link_anew(link);
	if (!link) {
		greet_refuse(tcp, greet, "there is no memory for it");
		return;
	}
	memcpy(link->where, greet->where, TCP_WHERE_MAX);
	struct hk__seal *seal = greet->seal;
	greet_end(tcp, greet, true);
	hk__tcp_link_up(link, fd, seal, true);
}

/* Who accepted has. */
static void greet_believed(struct tcp *tcp, struct tcp_greet *greet)
{
	struct tcp_link *link = greet->link;
	struct hk__seal *seal = NULL;
	int fd = greet->fd;

	if (greet->flags & WIRE_ENCRYPT && link->index != TCP_PROBE) {
		seal = hk__seal_create(tcp->alloc, &greet->auth, HK__AUTH_CONNECTS,
				       greet->flags & WIRE_AES);
		if (!seal) {
			greet_refuse(tcp, greet, "there is no memory for it");
			return;
		}
	}
	greet->link = NULL;
	if (link->index == TCP_PROBE) {
		greet_end(tcp, greet, false);
		hk__tcp_peer_probed(link, "", true);
		return;
	}
	greet_end(tcp, greet, true);
	hk__tcp_link_up(link, fd, seal, false);
}

static const char *disagree(uint32_t own)
{
	return own & WIRE_ENCRYPT
		       ? "it does not encrypt, and this rank does: set HOCKET_ENCRYPT for "
			 "all ranks alike"
		       : "it encrypts, and this rank does not: set HOCKET_ENCRYPT for "
			 "all ranks alike";
}

/* Who connects has read hello: claims to be who it is. */
static const char *greet_hello(struct tcp *tcp, struct tcp_greet *greet)
{
	struct wire_claim claim = { .rank = tcp->base.rank,
				    .wants = greet->link->rank,
				    .index = greet->link->index,
				    .conns = tcp->spec.conns };
	uint32_t own = greet_flags(tcp), its = wire_get(greet->in + 8);
	unsigned char *at = greet->out;

	if (!wire_is_ours(greet->in))
		return "it speaks another language or version";
	greet->hopeless = (own ^ its) & WIRE_ENCRYPT;
	if (greet->hopeless)
		return disagree(own);
	claim.flags = greet->flags = own & its;
	memcpy(greet->auth.accepts, greet->in + 12, HK__NONCE_BYTES);
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
		return "it does not hold the job key";
	bool probes = claim.index == TCP_PROBE;
	if (claim.wants != tcp->base.rank || claim.rank == tcp->base.rank ||
	    claim.rank >= (probes ? tcp->base.n : tcp->base.rank))
		return "it wants another rank";
	if (claim.conns != tcp->spec.conns || (!probes && claim.index >= tcp->spec.conns))
		return "it has another number of connections";
	uint32_t own = greet_flags(tcp);
	if ((claim.flags ^ own) & WIRE_ENCRYPT)
		return disagree(own);
	if (claim.flags & ~own)
		return "it wants what this rank does not know";
	greet->flags = claim.flags;
	greet->rank = claim.rank;
	greet->index = claim.index;
	hk__auth_prove(&greet->auth, HK__AUTH_ACCEPTS, greet->out);
	greet->out_sent = 0;
	greet->out_len = WIRE_ANSWER_BYTES;
	greet->in_need = probes ? 1 : WIRE_FRAME_BYTES;
	if (own && !probes)
		greet->in_need += HK__SEAL_HEAD + HK__SEAL_TAG;
	greet->stage = probes ? GREET_PROBED : GREET_UP;
	return NULL;
}

/* Who connected says that all is well: UP, in a record of its own if it encrypts. */
static const char *greet_first(struct tcp *tcp, struct tcp_greet *greet)
{
	unsigned char *frame = greet->in;
	uint32_t len = WIRE_FRAME_BYTES;
	size_t room;

	if (greet->flags & WIRE_ENCRYPT) {
		greet->seal = hk__seal_create(tcp->alloc, &greet->auth, HK__AUTH_ACCEPTS,
					      greet->flags & WIRE_AES);
		if (!greet->seal)
			return "there is no memory for it";
		memcpy(hk__seal_space(greet->seal, &room), greet->in, greet->in_need);
		hk__seal_got(greet->seal, greet->in_need);
		if (hk__seal_next(greet->seal, &frame, &len) != HK_OK)
			return "what it sent first is not genuine";
	}
	if (len != WIRE_FRAME_BYTES || wire_get_frame(frame).type != WIRE_UP)
		return "it does not begin as it should";
	greet_taken(tcp, greet);
	return NULL;
}

/* A piece is complete. */
static void greet_next(struct tcp *tcp, struct tcp_greet *greet)
{
	const char *fault = NULL;

	greet->in_len = 0;
	switch (greet->stage) {
	case GREET_HELLO:
		fault = greet_hello(tcp, greet);
		break;
	case GREET_ANSWER:
		if (hk__auth_holds(&greet->auth, HK__AUTH_ACCEPTS, greet->in))
			greet_believed(tcp, greet);
		else
			fault = "it does not hold the job key";
		break;
	case GREET_CLAIM:
		fault = greet_claim(tcp, greet);
		break;
	case GREET_UP:
		fault = greet_first(tcp, greet);
		break;
	case GREET_PROBED:
		fault = "it has nothing more to say";
		break;
	case GREET_CONNECT:
		break;
	}
	if (fault)
		greet_refuse(tcp, greet, fault);
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
	int error = 0; /* of what was tried */

	if (getsockopt(greet->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error || hk__tcp_watch(tcp, greet->fd, EPOLLIN, &greet->source, false) != HK_OK) {
		error = error ? error : EIO;
		greet_fail(tcp, greet, error, strerror(error)); /* NOLINT(concurrency-*) */
		return false;
	}
	if (greet->link->index == TCP_PING) {
		hk__tcp_peer_pinged(greet->link, true);
		return false;
	}
	/* Its host answers, whatever its process does. */
	greet->link->answered = true;
	greet->link->silent_from = 0;
	greet->link->refusals = 0;
	greet->stage = GREET_HELLO;
	greet->in_need = WIRE_HELLO_BYTES;
	/* A rank that is busy elsewhere may let us wait: its system has taken us. */
	greet->late = 0;
	return true;
}

static void greet_hung_up(struct tcp *tcp, struct tcp_greet *greet)
{
	bool silent = !greet->link && !greet->in_len;

	/* A rank that has come to its end meanwhile, or could not wait, leaves so too. */
	if (silent && greet->stage != GREET_PROBED) {
		tcp->refused++;
		hk__stranger_left(&tcp->strangers, &greet->origin);
		greet_end(tcp, greet, false);
		return;
	}
	greet_refuse(tcp, greet,
		     greet->stage == GREET_ANSWER
			     ? "it hung up when it was given a proof: another key?"
			     : "it hung up");
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
			greet_hung_up(tcp, greet);
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
		struct tcp_link *link = i < tcp->trying.count ? trying[i] : NULL;

		if (!link || link->retry_at > now)
			continue;
		trying[i] = trying[--tcp->trying.count];
		if (hk__tcp_greet_connect(link) != HK_OK)
			hk__tcp_greet_again(link, 0, "there is no memory to connect with");
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
			greet_fail(tcp, greet, greet->stage == GREET_CONNECT ? ETIMEDOUT : 0,
				   "it took too long");
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
