/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - what the files of the TCP transport share.
 *
 * A link is one connection between two ranks, from the moment it is wanted:
 * channels hold on to it. One that broke stays so; the next channel to that
 * rank gets a new one, and the old one goes when its channels have. A greeting
 * is a connection that has not proved itself yet; when it has, its socket
 * becomes the link's. A peer is another rank, with all that is known about it.
 *
 *	tcp.c    the net: opening, polling, sleeping, closing
 *	greet.c  connecting, accepting, proofs
 *	peer.c   other ranks: left, lost or dead; notes
 *	link.c   links: up, broken, what is to be written
 *	read.c   what arrives: frames, and where messages land
 *	chan.c   channels: opening, closing, which is which
 *	message.c messages: sending, receiving
 *	addr.c   addresses and sockets
 */
#ifndef HK_NET_TCP_LINK_H
#define HK_NET_TCP_LINK_H

#include "net/seal.h"
#include "net/stranger.h"
#include "net/tcp/tcp.h"
#include "net/tcp/wire.h"

#define TCP_IN_BYTES 65536u	/* read at once, where messages are small */
#define TCP_LEND_MIN 4096u	/* below that a copy costs less than to wait */
#define TCP_CHANS_MAX 65536u	/* of a link, each way */
#define TCP_WHERE_MAX 64u

#define TCP_WHY_MAX 120u
/* In the place of an index: connections that carry nothing, but ask. */
#define TCP_PING (HK_NONE - 1)	/* whether a host is there */
#define TCP_PROBE HK_NONE	/* whether a rank is */

struct tcp;
struct tcp_chan;
struct tcp_link;

/* What an event is about; first member of each. */
struct tcp_source {
	enum { TCP_LISTENS, TCP_TIMER, TCP_KICK, TCP_GREETS, TCP_LINKS } is;
};

/* ---- memory of messages ---- */

struct tcp_buf {
	struct tcp_buf *next;
	unsigned char *data;	/* behind it, at the next line */
};

#define TCP_BUF_BYTES(bytes) (sizeof(struct tcp_buf) + 63 + (size_t)(bytes))

/* Places for messages of one size that nobody uses now. */
struct tcp_pool {
	struct tcp_pool *next;
	uint32_t bytes;
	struct tcp_buf *free;
};

/* ---- to be written ---- */

struct tcp_out {
	struct tcp_out *next;
	struct tcp_chan *chan;	/* whose message; NULL: not one */
	struct tcp_buf *buf;	/* that data lies in; NULL: the caller's memory */
	const unsigned char *data;
	uint32_t len;
	size_t sent;		/* of head and data together */
	unsigned char head[WIRE_FRAME_BYTES];
};

/* ---- links ---- */

enum tcp_link_state { LINK_UNUSED, LINK_WANTED, LINK_UP, LINK_BROKEN };

/* A receiving channel, by the id that it announced. */
struct tcp_in_end {
	struct tcp_chan *chan;
	bool closing;		/* closed here; the sender has not said so yet */
};

/* A channel of the peer that this rank may send to, by its id. */
struct tcp_out_end {
	enum { END_NONE, END_OFFERED, END_BOUND, END_LEFT } state;
	bool closing;		/* the receiver has closed; CLOSED is owed */
	struct wire_open open;
	struct tcp_chan *chan;	/* of END_BOUND */
};

/* The message that is being read. */
struct tcp_landing {
	bool active;
	bool skip;		/* nobody wants it */
	bool direct;		/* into memory of the caller of take */
	struct tcp_chan *chan;
	struct tcp_buf *buf;
	unsigned char *at;	/* NULL: no place yet */
	uint32_t len;
	uint32_t got;
	uint32_t kind;
};

struct tcp_link {
	struct tcp_source source;
	struct tcp *tcp;
	struct tcp_peer *peer;
	uint32_t rank;		/* of the peer */
	uint32_t index;		/* or TCP_PING, TCP_PROBE */
	enum tcp_link_state state;
	int fd;
	struct hk__seal *seal;	/* NULL: nothing is encrypted */
	bool blocked;		/* the socket takes no more for now */
	bool heard;		/* the peer has said UP */
	bool deaf;		/* the peer takes no more for ever, but may have sent */
	bool bye;		/* the peer has said BYE */
	int error;		/* of deaf */
	enum hk_status status;	/* of LINK_BROKEN; HK_OK: the peer is being judged */
	char why[TCP_WHY_MAX];	/* without who it is about */
	char where[TCP_WHERE_MAX];
	uint64_t wanted_since;	/* who accepts */
	uint64_t silent_since;	/* what was sent last is not acknowledged; 0: all is */
	uint64_t told_before;	/* notes, when it came up */
	uint32_t chans;		/* that hold on to it */
	struct tcp_link *retired_next;
	/* who connects */
	struct sockaddr_storage addr;
	socklen_t addr_len;
	bool answered;		/* its host, to the attempt that is under way */
	uint64_t silent_from;	/* it has not; 0: it has */
	uint64_t failed_since;	/* attempts; 0: never */
	uint64_t refused_since;	/* by the system of the peer's host; 0: not the last time */
	uint32_t refusals;	/* in a row */
	uint64_t retry_at;	/* 0: an attempt is under way, or none is wanted */
	uint64_t backoff;
	/* in */
	unsigned char held[WIRE_FRAME_BYTES]; /* the beginning of a frame */
	uint32_t held_len;
	uint32_t ask;		/* how much to read beyond a message */
	uint64_t parked;	/* the round in which a large message was left unread */
	struct tcp_landing in;
	struct hk__array in_ends;	/* struct tcp_in_end */
	/* out */
	struct tcp_out *first, *last;
	struct hk__array out_ends;	/* struct tcp_out_end */
	struct tcp_chan *waiting;	/* senders that no OPEN was seen for */
	struct tcp_chan *owing;		/* receivers with slots to give back */
	bool due;		/* enough of them to say so */
	bool owes;		/* in tcp->owing */
	struct tcp_link *owing_next;
};

/* ---- peers ---- */

struct tcp_peer {
	uint32_t rank;
	uint32_t said;		/* 1 << HK_NET_LEFT, _LOST, _DEAD: found out */
	uint32_t news;		/* of them, not reported yet */
	bool in_news;
	struct tcp_peer *news_next;
	char why[TCP_WHY_MAX];	/* it is LOST */
	uint64_t judge_at;	/* when it is lost, if nothing else is known; 0: it is not judged */
	struct tcp_peer *judged_next;
	struct tcp_link *probe, *ping; /* NULL: none is under way */
	uint64_t seen;		/* when a ping found its host; 0: never */
	uint64_t probed;	/* when the last one began */
	uint64_t told;		/* notes up to here it was told */
	struct tcp_link *links[HK_TCP_CONNS_MAX]; /* NULL: not used yet */
};

/* Notes of this rank, for those who connect later. */
#define TCP_NOTES 256u

struct tcp_note {
	uint32_t len;
	unsigned char bytes[HK_NOTE_MAX];
};

/* ---- channels ---- */

struct tcp_ready {
	struct tcp_buf *buf;
	uint32_t len;
	uint32_t kind;
};

struct tcp_chan {
	struct hk_chan base;
	struct tcp_link *link;	/* NULL: to this rank itself */
	struct tcp_pool *pool;
	struct tcp_chan *next;	/* in waiting, or among those to itself */
	struct tcp_chan *twin;	/* to itself: the other end */
	uint32_t id;		/* HK_NONE: not known yet, or no longer */
	bool sends;
	bool closed;		/* by its user; its messages are still being written */
	enum hk_status status;	/* it can never work */
	/* who sends */
	struct tcp_buf *reserved;
	struct tcp_out *outs;	/* one per slot, in turn */
	uint64_t posted;
	uint32_t out;		/* messages that hold a slot */
	uint32_t queued;	/* of them, not handed to the system yet */
	/* who receives */
	struct tcp_ready *ready; /* one per slot, in turn */
	uint64_t released;
	uint32_t nready;
	uint32_t held;		/* messages whose slot was not given back */
	uint32_t owed;		/* of them, released */
	struct tcp_chan *owing_next;
	void *take_at;		/* NULL: nobody is taking */
	uint32_t take_cap;
	bool took;		/* all of it lies where it was asked for */
	uint32_t took_len, took_kind;
};

/* ---- the net ---- */

struct tcp_greet;

struct tcp {
	struct hk_net base;
	struct hk_tcp_spec spec;
	const struct hk_alloc *alloc;
	struct tcp_source listens, timer, kick;
	int epoll_fd, timer_fd, kick_fd, listen_fd;
	struct sockaddr_storage from[2];	/* of the interface: IPv4, IPv6 */
	char congestion[16];		/* of every connection; "": the system's */
	struct tcp_peer **peers;	/* NULL: nothing to do with it yet */
	struct hk__array up;		/* struct tcp_link *: those that are up */
	struct hk__array trying;	/* struct tcp_link *: those to connect again */
	struct hk__array awaited;	/* struct tcp_link *: those the peer is to make */
	struct tcp_link *retired;	/* broken, and another one is in their place */
	struct tcp_peer *judged;
	struct tcp_peer *news;
	struct tcp_note *notes;		/* the last TCP_NOTES; NULL: none yet */
	uint64_t nnotes;		/* ever */
	uint32_t look_at;		/* of up or awaited, which is watched next */
	struct tcp_link *owing;
	struct tcp_greet *greets;	/* newest first */
	struct tcp_greet *greets_over;	/* to be freed when nobody looks at them */
	uint32_t ngreets;
	uint32_t nblocked;		/* links */
	uint64_t refused;
	struct hk__strangers strangers;
	uint64_t round;
	bool armed;
	uint64_t full_until;		/* no descriptor was left to accept with */
	struct tcp_pool *pools;
	struct tcp_out *outs;		/* unused ones */
	struct tcp_chan *selves;
	unsigned char in[TCP_IN_BYTES];	/* what is read, before it has a place */
};

static inline struct tcp *tcp_of(struct hk_net *net)
{
	return (struct tcp *)net;
}

static inline struct tcp_chan *tcp_chan_of(struct hk_chan *chan)
{
	return (struct tcp_chan *)chan;
}

/* ---- addr.c ---- */

void hk__tcp_where(const struct sockaddr_storage *addr, char where_out[TCP_WHERE_MAX]);
/* The addresses of an interface, by name, or one, by itself: [0] IPv4, [1] IPv6; family 0: none. */
enum hk_status hk__tcp_iface(const char *iface, struct sockaddr_storage from_out[2]);
void hk__tcp_port_set(struct sockaddr_storage *addr, uint16_t port);
/* Non-blocking, without delay; -1: errno says why. *done_out: it is there already. */
int hk__tcp_connect(const struct tcp *tcp, const struct tcp_link *link, bool *done_out);
/* A socket as spec and tcp->congestion want it. */
void hk__tcp_tune(const struct tcp *tcp, int fd);
/* Settles tcp->congestion; HK_EINVAL: what was asked for is not there. */
enum hk_status hk__tcp_congestion(struct tcp *tcp);
/* How long its host has given no sign, where it should have; 0: all is well. */
uint32_t hk__tcp_silent_ms(int fd, uint64_t silence_ns);
/* What epoll(7) is to say about a descriptor; add: for the first time. */
enum hk_status hk__tcp_watch(const struct tcp *tcp, int fd, uint32_t events,
			     struct tcp_source *source, bool add);

/* ---- greet.c ---- */

enum hk_status hk__tcp_greet_connect(struct tcp_link *link);
/* An attempt failed, of an error of the system or 0: another one in a while, or never again. */
void hk__tcp_greet_again(struct tcp_link *link, int error, const char *what);
void hk__tcp_greet_stop(struct tcp_link *link);	/* no attempt is under way any more */
void hk__tcp_greet_accept(struct tcp *tcp);
void hk__tcp_greet_move(struct tcp *tcp, struct tcp_greet *greet);
/* What is late, and what is to be tried again; 0 or the time of the next such thing. */
uint64_t hk__tcp_greet_timers(struct tcp *tcp, uint64_t now);
void hk__tcp_greet_sweep(struct tcp *tcp);	/* frees those that are over */
void hk__tcp_greet_end_all(struct tcp *tcp);

/* ---- link.c ---- */

/* The link to a rank that a channel of that key uses; wanted from now on. */
enum hk_status hk__tcp_link_get(struct tcp *tcp, const struct hk_chan_key *key,
				struct tcp_link **link_out);
/* The one of that index, used or not; NULL: no memory. */
struct tcp_link *hk__tcp_link_at(struct tcp *tcp, uint32_t rank, uint32_t index);
/* A new one in the place of one that is broken; NULL: no memory. */
struct tcp_link *hk__tcp_link_anew(struct tcp_link *link);
enum hk_status hk__tcp_link_create(struct tcp *tcp, struct tcp_peer *peer, uint32_t index,
				   struct tcp_link **link_out);
/* The socket, watched already, and the seal are the link's; heard: the peer has said UP. */
void hk__tcp_link_up(struct tcp_link *link, int fd, struct hk__seal *seal, bool heard);
/* It ended before the peer had said UP: as if it had never been. */
void hk__tcp_link_reset(struct tcp_link *link);
/* fmt: what it did or is, "it ..."; the peer is lost. */
void hk__tcp_link_break(struct tcp_link *link, enum hk_status status, const char *fmt, ...)
	HK_PRINTF(3, 4);
/* The peer hung up, error 0, or the system did: it left, or is judged. */
void hk__tcp_link_end(struct tcp_link *link, int error);
enum hk_status hk__tcp_link_status(struct tcp_link *link);	/* and net->why */
void hk__tcp_link_destroy(struct tcp_link *link);
void hk__tcp_link_sweep(struct tcp *tcp);	/* frees those that nobody uses */
/* A frame of its own, to be written in its turn. */
void hk__tcp_link_say(struct tcp_link *link, const struct wire_frame *frame,
		      const struct wire_open *open);
/* A note; early: ahead of messages. */
void hk__tcp_link_note(struct tcp_link *link, const struct tcp_note *note, bool early);
void hk__tcp_link_announce(struct tcp_link *link, const struct tcp_chan *chan);
void hk__tcp_link_push(struct tcp_link *link, struct tcp_out *out);
void hk__tcp_link_write(struct tcp_link *link);
bool hk__tcp_link_unsent(const struct tcp_link *link);	/* something waits to be written */
bool hk__tcp_link_untold(const struct tcp_link *link);	/* a note does */
void hk__tcp_link_owe(struct tcp_chan *chan);
void hk__tcp_link_forget(struct tcp_chan *chan);	/* owes nothing any more */
void hk__tcp_credits_write(struct tcp *tcp, bool all);

/* ---- peer.c ---- */

struct tcp_peer *hk__tcp_peer_at(struct tcp *tcp, uint32_t rank);	/* NULL: no memory */
bool hk__tcp_peer_is(const struct tcp_peer *peer, enum hk_net_what what);
void hk__tcp_peer_left(struct tcp *tcp, struct tcp_peer *peer);
void hk__tcp_peer_lost(struct tcp *tcp, struct tcp_peer *peer, const char *why);
/* All links to it are broken then. */
void hk__tcp_peer_dead(struct tcp *tcp, struct tcp_peer *peer);
/* A connection to it ended: asks whether its process has. */
void hk__tcp_peer_judge(struct tcp *tcp, struct tcp_peer *peer);
void hk__tcp_peer_probe(struct tcp *tcp, struct tcp_peer *peer);
/* A host that answers nothing where its rank listens may refuse at its quiet port. */
void hk__tcp_peer_ping(struct tcp *tcp, struct tcp_peer *peer);
bool hk__tcp_peer_seen(const struct tcp *tcp, const struct tcp_peer *peer, uint64_t now);
void hk__tcp_peer_pinged(struct tcp_link *ping, bool lives);
void hk__tcp_peer_conclude(struct tcp *tcp, struct tcp_peer *peer); /* it lives: lost, if judged */
/* A probe came to an end: the peer lives, or nobody says anything. */
void hk__tcp_peer_probed(struct tcp_link *probe, const char *what, bool lives);
/* Judgements that are due; 0 or the time of the next one. */
uint64_t hk__tcp_peer_timers(struct tcp *tcp, uint64_t now);
/* Reports what was found; from where the net's user expects it. */
void hk__tcp_peer_report(struct tcp *tcp);
/* A link is up: what was said before. */
void hk__tcp_peer_greet(struct tcp_link *link);
void hk__tcp_tell(struct hk_net *net, const void *bytes, uint32_t len);
bool hk__tcp_untold(const struct hk_net *net);
void hk__tcp_look_after(struct hk_net *net);
void hk__tcp_peers_free(struct tcp *tcp);

/* ---- read.c ---- */

void hk__tcp_read(struct tcp_link *link);
/* The message that is being read, and no more of what has arrived. */
void hk__tcp_read_landing(struct tcp_link *link);

/* ---- chan.c ---- */

struct tcp_buf *hk__tcp_buf_get(struct tcp *tcp, struct tcp_pool *pool);
void hk__tcp_buf_put(struct tcp_pool *pool, struct tcp_buf *buf);
/* Frees what nobody uses now. */
void hk__tcp_pool_trim(struct tcp *tcp, struct tcp_pool *pool);
/* An OPEN was seen; *end is new. */
void hk__tcp_chan_offered(struct tcp_link *link, uint32_t id, struct tcp_out_end *end);
/* One message less is waiting to be written. */
void hk__tcp_chan_written(struct tcp_chan *chan, struct tcp_out *out);
void hk__tcp_chan_free(struct tcp_chan *chan);

enum hk_status hk__tcp_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out);
enum hk_status hk__tcp_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out);
void hk__tcp_chan_close(struct hk_chan *base);
void hk__tcp_cancel(struct hk_chan *base);

/* ---- message.c ---- */

enum hk_status hk__tcp_reserve(struct hk_chan *base, uint32_t len, void **slot_out);
void hk__tcp_post(struct hk_chan *base, uint32_t len, uint32_t kind);
enum hk_lend hk__tcp_lendable(const struct hk_chan *base, const void *data, uint32_t len);
enum hk_status hk__tcp_lend(struct hk_chan *base, const void *data, uint32_t len, uint32_t kind,
			    bool *done_out);
bool hk__tcp_lent(struct hk_chan *base);
enum hk_status hk__tcp_peek(struct hk_chan *base, struct hk_message *message_out);
enum hk_status hk__tcp_release(struct hk_chan *base);
enum hk_status hk__tcp_take(struct hk_chan *base, void *dst, uint32_t cap,
			    struct hk_message *message_out, bool *done_out);

/* chan.c: what users of a channel call */
extern const struct hk_chan_ops hk__tcp_chan_ops;

#endif
