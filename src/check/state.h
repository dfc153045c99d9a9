/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - everything a proof holds while it runs.
 *
 * value    an expression over inputs: nothing, one input slot, or a sum of two
 *          values. Equal expressions are one value (sums commute), so values
 *          compare as numbers.
 * cell     a slot of some rank's out or scratch, with the value it holds. Input
 *          slots are constants; in place, some of them are out cells.
 * payload  the values of a message, from a pool of blocks of 2^k words. For a
 *          barrier the payload also carries whom the sender knows to have come.
 */
#ifndef HK_CHECK_STATE_H
#define HK_CHECK_STATE_H

#include "plan/plan.h"

#include <hocket/check.h>

#define VALUE_NOTHING 0u

struct values {
	const struct hk_plan *plan;
	uint32_t *leaf_base;		/* per rank, n + 1: its first input slot */
	struct hk__array sums;		/* struct value_sum */
	struct hk__hash known;		/* (a, b) to sum */
};

struct value_sum {
	uint32_t a, b;
	uint32_t input;			/* one of those it contains */
};

struct cell {
	uint32_t value;
	uint32_t step;			/* of the last write; valid where written */
	uint16_t lane;
	bool written;
};

struct pool {
	struct hk__array words;		/* uint32_t */
	uint32_t free[32];		/* by size class; HK_NONE: empty */
};

struct payload {
	uint32_t at;			/* into the pool; HK_NONE: no payload */
	uint32_t count;			/* chunks */
};

struct message {
	struct payload payload;
	uint32_t depth;			/* messages on the longest chain, this one too */
	uint32_t step;			/* of the sender */
	uint32_t snapshot;		/* of its clock, in a plan with one-sided steps */
	uint32_t next;			/* in its channel, or the free list */
};

struct channel {
	struct hk_port from, to;
	uint32_t head, tail;		/* messages; HK_NONE: empty */
	uint32_t count;			/* slots in use: queued, or held by a step */
	uint32_t sender, receiver;	/* lanes that wait on it; HK_NONE: none */
};

enum lane_wait {
	LANE_RUNS,
	LANE_WAITS_MESSAGE,
	LANE_WAITS_SLOT,
	LANE_WAITS_STEP,
	LANE_WAITS_SIGNAL
};

struct lane {
	uint32_t rank;
	uint32_t index;			/* in its rank */
	uint32_t at;			/* the current step */
	uint32_t nsteps;
	uint32_t depth;
	enum lane_wait wait;
	bool queued;
	bool entered;			/* the step was looked at */
	bool taken;			/* its message was received, or its values read */
	bool posted;			/* rendezvous: sent, not yet received */
	bool held;			/* its wait says nothing, and is to be the last to */
	bool passes;			/* go on; it is, now (onesided.c) */
	uint32_t holds;			/* the channel whose slot its step holds */
	struct payload payload;
	struct hk_step step;
	uint32_t *knows;		/* barrier: a bit per rank */
};

/* Order inside one rank of several lanes (race.c). */
struct order {
	uint32_t nlanes;
	uint32_t *clock;		/* [lane][other]: steps of other that are over */
	uint32_t *reads;		/* [cell][lane]: last read, step + 1 */
	struct hk__array *past;		/* [lane]: records of changes, see race.c */
};

struct tally {
	uint64_t sent, received, reduced, copied;
	uint32_t scratch;
};

struct proof {
	const struct hk_plan *plan;
	const struct hk_alloc *alloc;
	bool inplace;
	uint32_t slots;
	const struct hk_check_opts *opts;
	struct hk_check_report *report;

	struct values values;
	struct pool pool;

	uint64_t *cell_base;		/* per rank, n + 1 */
	uint32_t *nout;			/* per rank: slots of out; scratch follows */
	struct cell *cells;
	uint64_t ncells;

	uint32_t *lane_base;		/* per rank, n + 1 */
	struct lane *lanes;
	uint32_t nlanes;
	uint32_t *queue;		/* a ring of lanes to run */
	uint32_t queue_head, queue_count;

	struct order *orders;		/* per rank */
	struct cross *cross;		/* instead, if the plan has one-sided steps (cross.h) */
	struct hk__array channels;	/* struct channel */
	struct hk__hash channel_of;	/* (ranks, lanes) to channel */
	struct hk__array messages;	/* struct message */
	uint32_t messages_free;

	struct tally *tallies;		/* per rank */
	uint64_t messages_sent;
	uint32_t critical;
	uint64_t steps_done, steps_total, work;	/* work: steps and chunks */

	uint32_t *marks;		/* [slot]: which chunk of this step writes it */
	uint32_t nmarks;
	uint32_t know_words;		/* of a barrier; else 0 */

	struct {			/* the first read of nothing, if any */
		uint32_t rank, lane, step;
		enum hk_buf buf;
		uint32_t slot;
	} nothing;
};

/* ---- values (value.c) ---- */
enum hk_status hk__values_init(struct values *values, const struct hk_plan *plan,
			       const struct hk_alloc *alloc);
void hk__values_fini(struct values *values, const struct hk_alloc *alloc);
uint32_t hk__value_input(const struct values *values, uint32_t rank, uint32_t slot);
/* The sum; HK_NONE where memory ran out. */
uint32_t hk__value_add(struct values *values, uint32_t a, uint32_t b);
bool hk__value_is_input(const struct values *values, uint32_t value);
void hk__value_origin(const struct values *values, uint32_t value, uint32_t *rank_out,
		      uint32_t *slot_out);
/* The symbol of the value's length. Not for nothing. */
uint64_t hk__value_symbol(const struct values *values, uint32_t value);
/*
 * The inputs a value contains, each as often as it is counted, at most max of
 * them. Returns how many were written; HK_NONE where memory ran out. The stack
 * (of uint32_t) is work space.
 */
uint32_t hk__value_inputs(const struct values *values, uint32_t value, uint32_t *inputs,
			  uint32_t max, struct hk__array *stack);

/* ---- order inside a rank (race.c); across ranks it is cross.c's ---- */
enum hk_status hk__order_init(struct proof *proof, uint32_t rank);
void hk__order_fini(struct proof *proof, uint32_t rank);
/* The step's dependency is over: what was over for it is over for us. */
enum hk_status hk__order_join(struct proof *proof, struct lane *lane);
/* Remembers depth and knowledge of a lane whose step changed them. */
enum hk_status hk__order_note(struct proof *proof, struct lane *lane);
/* HK_EREFUSED where an unordered step touched the cell before. */
enum hk_status hk__order_read(struct proof *proof, struct lane *lane, uint64_t cell);
enum hk_status hk__order_write(struct proof *proof, struct lane *lane, uint64_t cell);

/* ---- the run (run.c) ---- */
enum hk_status hk__run(struct proof *proof);

/* ---- what a collective promises (promise.c) ---- */
enum hk_status hk__promise_check(struct proof *proof);
/* What a slot of out is promised to hold, in words. */
void hk__promise_text(const struct hk_plan *plan, uint32_t rank, uint32_t slot, char *text,
		      size_t size);

/* ---- words for people (explain.c) ---- */
/*
 * Fills the report: an invariant (1 for I1) does not hold at a lane's step.
 * Returns HK_EREFUSED. expected and found may be "".
 */
enum hk_status hk__refuse(struct proof *proof, uint32_t invariant, const struct lane *lane,
			  const char *expected, const char *found, const char *fmt, ...)
	HK_PRINTF(6, 7);
void hk__explain_value(const struct proof *proof, uint32_t value, char *text_out, size_t size);
/* The ranks whose input a sum over all ranks lacks; "" where none. */
void hk__explain_missing(const struct proof *proof, uint32_t value, char *text_out, size_t size);
/* A cell by its name: "out[3]". */
void hk__explain_cell(const struct proof *proof, uint32_t rank, uint64_t cell, char *text,
		      size_t size);
/* Nothing moves any more: who waits for whom. */
enum hk_status hk__refuse_stuck(struct proof *proof);

#endif
