/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - the inside of the interpreter. machine.c holds the program, the
 * memory and the channels; naive.c moves them. Seen by these two alone.
 *
 * What refers to what is a number: pools move when they grow.
 */
#ifndef HK_TEST_NAIVE_MACHINE_H
#define HK_TEST_NAIVE_MACHINE_H

#include "naive/naive.h"

/* An array that grows and is used again. */
struct pool {
	void *items;
	size_t count;
	size_t room;
	size_t item_size;
};

/* A list of chunks. Never changed once made. */
struct value {
	size_t first;		/* in naive.chunks */
	uint32_t count;
	uint64_t known;		/* barrier: the ranks its sender knew to have come */
	uint32_t chain;		/* messages of the longest chain that ends with it */
};

struct channel {
	uint32_t from;		/* lanes, by their number over all ranks */
	uint32_t to;
	uint32_t sibling;	/* the next channel of the same sender */
	uint32_t count;		/* messages in it */
	uint32_t held;		/* slots of messages taken but not done with */
	size_t head, tail;
};

/* A put or a signal that has not landed. */
struct flight {
	uint32_t lane;		/* over all ranks */
	uint32_t step;		/* of its lane */
	uint64_t seq;		/* in the order of issue */
	bool read;		/* the value was read when it was issued, not when it lands */
	struct value value;
	uint32_t chain;
};

/* A signal of a rank. */
struct word {
	uint32_t rank, number;
	uint32_t count;		/* landed */
	uint32_t sent, waited;	/* issued; the most that was waited for */
	struct pool chains;	/* uint32_t: the longest chain of the first so many */
};

/* Which of those that can land does so. */
enum naive_landing {
	LANDING_OLDEST,
	LANDING_NEWEST,
	LANDING_ANY,
	LANDING_COUNT
};

struct prog_step {
	struct hk_step step;
	uint32_t from, to;	/* channels; HK_NONE: the peer is not there */
	uint32_t chain;		/* of one run: the longest that ends before its end */
};

struct lane {
	uint32_t rank, lane;
	uint32_t first, nsteps;	/* in naive.steps */
	uint32_t channels;	/* the first channel it sends on */
	/* Of one run: */
	uint32_t next;		/* the step it is at: all before are over */
	bool started, to_write, to_send, offered;
	uint32_t chain;		/* messages of the longest chain that ended here */
	struct value value;
};

struct rank {
	uint32_t first_lane, nlanes;
	uint32_t slots[HK_BUF_SCRATCH + 1];
	size_t cells[HK_BUF_SCRATCH + 1];	/* in naive.cells */
	size_t out_at;				/* in naive.elems */
	uint64_t known;
	uint32_t lanes_left;			/* that have not ended */
	bool begun;
};

struct naive {
	const struct hk_plan *plan;
	struct hk_plan_info info;
	struct pool ranks, lanes, steps, channels;	/* of the plan */
	struct pool cells, elems, chunks, messages;	/* of a run: machine.c's */
	struct pool order;				/* of a run: naive.c's */
	struct pool flights, words;			/* of a run: flight.c's */
	struct pool reached;				/* [rank][rank]: puts or signals to it */
	enum naive_landing landing;
	uint64_t issued;
	const struct defn *data;
	struct naive_opts opts;
	struct naive_report report;
	uint64_t random;	/* the generator's state */
	uint64_t coin;		/* its last number: for the small choices of a move */
	uint32_t patience;	/* NAIVE_PRIORITY: moves before the first falls behind */
	uint32_t longest;	/* chain of messages */
	uint32_t last;		/* who moved last, as a place in the order */
};

static inline struct rank *rank_at(const struct naive *m, size_t i)
{
	return (struct rank *)m->ranks.items + i;
}

static inline struct lane *lane_at(const struct naive *m, size_t i)
{
	return (struct lane *)m->lanes.items + i;
}

static inline struct channel *channel_at(const struct naive *m, size_t i)
{
	return (struct channel *)m->channels.items + i;
}

static inline struct prog_step *step_at(const struct naive *m, size_t i)
{
	return (struct prog_step *)m->steps.items + i;
}

static inline bool op_receives(enum hk_op op)
{
	return op == HK_OP_RECV || op == HK_OP_RECV_REDUCE || op == HK_OP_RECV_SEND ||
	       op == HK_OP_RECV_REDUCE_SEND;
}

static inline bool op_sends(enum hk_op op)
{
	return op == HK_OP_SEND || op == HK_OP_RECV_SEND || op == HK_OP_RECV_REDUCE_SEND;
}

static inline bool op_onesided(enum hk_op op)
{
	return op == HK_OP_PUT || op == HK_OP_SIGNAL || op == HK_OP_WAIT;
}

/* Room for `more` items at the end; returns the first's index. Not zeroed. */
size_t pool_add(struct pool *pool, size_t more);

/* The state before the first step. False where the plan's sizes are not the definition's. */
bool machine_reset(struct naive *m);
/* Reports the step the lane is at; returns false, for `return`. */
bool machine_fault(struct naive *m, const struct lane *lane, enum naive_fault kind);

/* Each is false at a fault, which it has reported. */
bool value_read(struct naive *m, const struct lane *lane, const struct hk_span *span,
		uint32_t count, struct value *value_out);
/* a and b are lists of chunks of equal number and lengths; the sum is new. */
bool value_add(struct naive *m, const struct lane *lane, const struct value *a,
	       const struct value *b, struct value *sum_out);
/* Chunk after chunk, from the first or from the last on. */
bool value_write(struct naive *m, const struct lane *lane, const struct hk_span *span,
		 const struct value *value, bool backwards);

/* ---- puts and signals (flight.c) ---- */

void flight_reset(struct naive *m);
void flight_free(struct naive *m);
/* The step of a lane starts; false at a fault. */
bool flight_start(struct naive *m, struct lane *lane, const struct hk_step *step);
/* Whether so many signals have landed as a wait wants. */
bool flight_waited(struct naive *m, const struct lane *lane, const struct hk_step *step);
/* The longest chain that a wait comes after. */
uint32_t flight_chain(struct naive *m, const struct lane *lane, const struct hk_step *step);
enum flight_end {
	FLIGHT_NONE,		/* nothing can land */
	FLIGHT_LANDED,
	FLIGHT_FAULT
};
enum flight_end flight_land(struct naive *m);
/* A rank's last lane has ended; false at a fault. */
bool flight_rank_ends(struct naive *m, const struct lane *lane);
/* Whether as many signals were waited for as were sent. */
bool flight_balanced(const struct naive *m);

bool channel_has_room(const struct naive *m, const struct channel *channel);
void channel_put(struct naive *m, struct channel *channel, const struct value *value);
/* Takes the first message; in a rendezvous that ends its sender's send. */
struct value channel_take(struct naive *m, struct channel *channel);

#endif
