/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simnet.h - the inside of the simulated transport.
 *
 *   simnet   all of it: the clock, who runs, what is under way
 *   port     one rank's end, a net
 *   side     what a rank of one host knows of its connection to a rank of another
 *   pipe     a channel, made by its receiver, and the messages in it
 *   mail     a note, or that somebody is gone, under way to a rank
 *
 * A time of NEVER is of what is held up while hosts are cut off from each other.
 */
#ifndef HK_NET_SIM_SIMNET_H
#define HK_NET_SIM_SIMNET_H

#include "net/sim/fiber.h"
#include "net/sim/sim.h"

#define NEVER UINT64_MAX

/* ---- what is under way ---- */

struct sim_message {
	void *data;
	uint32_t len, kind;
	size_t cap;		/* of data; 0: it is none, or lent, the sender's own */
	bool lent;
	uint64_t returned;	/* what was lent, to the sender */
	uint64_t ready;		/* the receiver may see it */
	uint64_t pushed;	/* the sender is not needed for it any more */
	uint64_t freed;		/* its slot, as the sender sees it; NEVER: not released */
	bool released;
	bool revoked;		/* what was lent was taken back */
	bool lost;		/* with its connection */
};

struct sim_pipe {
	struct sim_pipe *next;
	struct hk_chan_spec spec; /* as of the sender: key.peer is the receiver */
	uint32_t from;
	uint32_t epoch;
	uint64_t appears;	/* to the sender */
	bool open;		/* at the receiver */
	bool attached;		/* by a sender, once */
	bool left;		/* by it */
	uint64_t sent, taken;
	struct sim_message *messages; /* slots of them, in turn */
	void *reserved;		/* by the sender; here, as it may be killed */
	size_t reserved_cap;
};

struct sim_mail {
	uint64_t at;
	enum hk_net_what what;
	uint32_t from;
	uint32_t epoch;		/* LOST: the connection it is about */
	bool by_cut;
	uint32_t len;
	unsigned char note[HK_NOTE_MAX];
};

/* ---- who there is ---- */

struct sim_port {
	struct hk_net base;
	struct hk__simnet *simnet;
	const struct hk_alloc *alloc;
};

struct sim_chan {
	struct hk_chan base;
	bool sends;
	bool cancelled;
	uint32_t epoch;
	struct sim_pipe *pipe;	/* of a sender: NULL until it is found */
	bool halved;		/* a message is taken in two pieces */
	uint64_t rest_at;
};

struct sim_side {
	bool linked;		/* there is a connection, or was */
	bool broken;		/* there is none now */
	uint32_t epoch;		/* connections so far */
	bool dead, left;	/* reported */
	uint64_t found;		/* when watching finds it */
};

struct sim_rank {
	struct hk__simnet *simnet;
	uint32_t rank, host;
	struct hk__fiber *fiber;
	enum hk__simnet_state state;
	struct sim_port *port;
	bool left;
	uint64_t wake;
	uint64_t stopped_until;
	uint64_t slow_until, slow_ns;
	uint64_t acts, kill_at;
	bool armed, stirred, asleep;
	struct hk__array stirs;	/* uint64_t: when something happens to it */
	struct hk__array mail;	/* struct sim_mail */
};

struct sim_fault {
	struct hk__simnet_fault what;
	bool begun, over;
};

struct hk__simnet {
	struct hk__simnet_spec spec;
	const struct hk_alloc *alloc;
	uint64_t now, limit;
	uint64_t random, hash;
	bool pending_fails;	/* a channel to one out of reach: HK_EPEER, or no slot */
	struct sim_rank ranks[HK__SIMNET_RANKS_MAX];
	struct sim_side *sides;	/* n x n */
	uint32_t *epochs;	/* n x n, of the lower rank's row */
	struct sim_pipe *pipes;
	struct hk__array faults; /* struct sim_fault */
	struct hk__fiber *home;
	uint32_t current;	/* HK_NONE: no rank runs */
	void (*main)(void *ctx, uint32_t rank);
	void *main_ctx;
};

static inline struct sim_port *port_of(struct hk_net *net)
{
	return (struct sim_port *)net;
}

static inline struct sim_chan *sim_chan_of(struct hk_chan *chan)
{
	return (struct sim_chan *)chan;
}

static inline struct sim_rank *rank_of(struct hk_net *net)
{
	return &port_of(net)->simnet->ranks[net->rank];
}

static inline struct sim_side *side_of(struct hk__simnet *simnet, uint32_t rank, uint32_t peer)
{
	return &simnet->sides[rank * simnet->spec.n + peer];
}

static inline bool is_near(const struct hk__simnet *simnet, uint32_t a, uint32_t b)
{
	return simnet->ranks[a].host == simnet->ranks[b].host;
}

/* ---- sim.c ---- */

/* 0 ... below - 1 */
uint64_t hk__sim_draw(struct hk__simnet *simnet, uint64_t below);
uint64_t hk__sim_delay(struct hk__simnet *simnet);
void hk__sim_trace(struct hk__simnet *simnet, uint32_t rank, uint64_t what, uint64_t detail);
/* Something that others can see: it may be the rank's last, and not come to it. */
void hk__sim_act(struct hk_net *net, uint64_t what, uint64_t detail);
/* Something happens to a rank at that time. */
void hk__sim_stir(struct hk__simnet *simnet, uint32_t rank, uint64_t at);
/* The running rank goes on at that time. */
void hk__sim_yield(struct hk__simnet *simnet, uint64_t until);

/* ---- link.c ---- */

bool hk__sim_is_cut(const struct hk__simnet *simnet, uint32_t a, uint32_t b);
/* When what a sends now is there. */
uint64_t hk__sim_arrival(struct hk__simnet *simnet, uint32_t a, uint32_t b);
/* Before a channel is opened, or used. */
void hk__sim_link(struct hk__simnet *simnet, uint32_t rank, uint32_t peer);
/* HK_EPEER: its connection is no more. *up_out: whether it is there now. */
enum hk_status hk__sim_chan_status(struct sim_chan *chan, bool *up_out);
void hk__sim_mail_read(struct hk__simnet *simnet, uint32_t rank);
void hk__sim_killed(struct hk__simnet *simnet, uint32_t rank);
void hk__sim_left(struct hk__simnet *simnet, uint32_t rank);
void hk__sim_cut(struct hk__simnet *simnet, const struct sim_fault *fault);
void hk__sim_healed(struct hk__simnet *simnet);
void hk__sim_drop(struct hk__simnet *simnet, uint32_t a, uint32_t b);
void hk__sim_tell(struct hk_net *net, const void *note, uint32_t len);
void hk__sim_watch(struct hk_net *net);

/* ---- chan.c ---- */

enum hk_status hk__sim_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out);
enum hk_status hk__sim_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out);
void hk__sim_chan_close(struct hk_chan *base);
void hk__sim_chan_cancel(struct hk_chan *base);
/* The pipe of a sender's end, if it has appeared. HK_EIO: of another shape. */
enum hk_status hk__sim_chan_attach(struct sim_chan *chan);
void hk__sim_pipe_destroy(struct hk__simnet *simnet, struct sim_pipe *pipe);
void hk__sim_message_drop(struct hk__simnet *simnet, struct sim_message *message);

static inline struct sim_message *message_at(const struct sim_pipe *pipe, uint64_t number)
{
	return &pipe->messages[number % pipe->spec.slots];
}

/* ---- message.c ---- */

enum hk_status hk__sim_reserve(struct hk_chan *base, uint32_t len, void **slot_out);
void hk__sim_post(struct hk_chan *base, uint32_t len, uint32_t kind);
enum hk_lend hk__sim_lendable(const struct hk_chan *base, const void *data, uint32_t len);
enum hk_status hk__sim_lend(struct hk_chan *base, const void *data, uint32_t len, uint32_t kind,
			    bool *done_out);
bool hk__sim_lent(struct hk_chan *base);
enum hk_status hk__sim_peek(struct hk_chan *base, struct hk_message *message_out);
enum hk_status hk__sim_release(struct hk_chan *base);
enum hk_status hk__sim_take(struct hk_chan *base, void *dst, uint32_t cap,
			    struct hk_message *message_out, bool *done_out);

/* chan.c: what users of a channel call */
extern const struct hk_chan_ops hk__sim_chan_ops;

#endif
