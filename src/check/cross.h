/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross.h - order across ranks, for plans with one-sided steps.
 *
 * clock      what a lane knows to be over: for each lane of all ranks, how many of its
 *            steps. Messages, dependencies, and waits carry clocks on
 * snapshot   a clock as it was, kept once for all that were made between two changes of
 *            it. A lane's own entry is not in it: that is the step it was taken at
 * put        from its issue (a step, which clocks count) to its landing, which only a
 *            wait can know of: `known` lists the waits that do
 * word       a signal of a rank, with all signals that were sent to it
 *
 * cross.c holds the clocks and finds races; onesided.c takes the steps.
 */
#ifndef HK_CHECK_CROSS_H
#define HK_CHECK_CROSS_H

#include "check/state.h"

struct put {
	uint32_t lane;			/* of all lanes */
	uint32_t step;
	uint32_t rank;			/* it goes to */
	struct hk_span dst;
	uint32_t prev;			/* put of its lane to that rank; HK_NONE: the first */
	uint32_t known;			/* links: waits that know it has landed; HK_NONE: none */
	uint32_t word;			/* of the first signal after it; HK_NONE: none yet */
};

struct signal {
	uint32_t lane, step;
	uint32_t depth;
	uint32_t snapshot;
	uint32_t put;			/* the last that it says has landed; HK_NONE: none */
	uint32_t next;			/* of its word */
};

struct word {
	uint32_t rank, number;
	uint32_t total;			/* signals that the plan sends to it */
	uint32_t sent;			/* so far */
	uint32_t lane;			/* the one that sends them; HK_NONE: several do */
	uint32_t waited;		/* most that a wait was for */
	uint32_t head, tail;		/* signals */
	uint32_t at, place;		/* the signal that was asked for last, and which it is */
	uint32_t all;			/* links: lanes that needed all of them */
	struct hk_after loose;		/* the last wait for it that says nothing */
};

/* In a list: a put that reads a cell, a wait, or a lane. */
struct link {
	uint32_t put, lane, step;
	uint32_t next;
};

/* A lane that others come after: its clock since a step. */
struct past {
	uint32_t step;
	uint32_t depth;
	uint32_t snapshot;
};

struct cross {
	uint32_t *clock;		/* [lane][lane] */
	uint32_t *snapshot;		/* [lane]: of its clock; HK_NONE: it has changed since */
	struct hk__array *past;		/* [lane]: struct past */
	struct hk__array snapshots;	/* uint32_t[lanes] */
	uint32_t **reads;		/* [rank][cell][lane]: last read, step + 1 */
	uint32_t *writer;		/* [cell]: the put that wrote it last; HK_NONE: a step */
	uint32_t *sources;		/* [cell]: links: puts that read it since */
	struct hk__array puts, signals, words, links;
	struct hk__hash word_of;	/* (rank, number) to word */
	struct hk__hash last_put;	/* (lane, rank) to put */
	struct hk__array held;		/* lanes at waits that say nothing: the last to go on */
	bool full;			/* the clocks would take too much memory */
};

/* ---- clocks (cross.c) ---- */
/* Makes proof->cross. HK_ELIMIT where the clocks take too much memory. */
enum hk_status hk__cross_init(struct proof *proof);
void hk__cross_fini(struct proof *proof);
/* The clock of a lane, to be handed on; HK_NONE: no memory. */
uint32_t hk__cross_snapshot(struct proof *proof, const struct lane *lane);
/* The lane learns what another knew at that step, which is over. */
void hk__cross_learn(struct proof *proof, const struct lane *lane, uint32_t other, uint32_t step,
		     uint32_t snapshot);
/* Whether a rank is known to have begun, to a lane; and to all of a rank's, at the end. */
bool hk__cross_begun(const struct proof *proof, const struct lane *lane, uint32_t rank);
bool hk__cross_ends_after(const struct proof *proof, uint32_t rank, uint32_t begun);
/* What hk__order_*() do in such a plan. */
enum hk_status hk__cross_note(struct proof *proof, struct lane *lane);
enum hk_status hk__cross_join(struct proof *proof, struct lane *lane);
enum hk_status hk__cross_read(struct proof *proof, struct lane *lane, uint64_t cell);
enum hk_status hk__cross_write(struct proof *proof, struct lane *lane, uint64_t cell);
/* The lane's put writes a cell of the rank that it goes to. */
enum hk_status hk__cross_put(struct proof *proof, struct lane *lane, uint64_t cell);
/* Whether a lane knows that the put has landed. */
bool hk__cross_landed(const struct proof *proof, const struct lane *lane, const struct put *put);
/* Adds to the list that begins with *head. HK_ENOMEM. */
enum hk_status hk__cross_link(struct proof *proof, uint32_t *head, struct link link);
/* A lane's wait knows of it from now on. HK_ENOMEM. */
enum hk_status hk__cross_land(struct proof *proof, const struct lane *lane, struct put *put);

static inline struct put *cross_put_at(const struct cross *cross, uint32_t put)
{
	return hk__array_at(&cross->puts, put);
}

/* ---- steps (onesided.c) ---- */
/* Which signals there will be, before the first is sent. */
enum hk_status hk__onesided_scan(struct proof *proof);
/* The put or signal of a lane is issued. */
enum hk_status hk__onesided_put(struct proof *proof, struct lane *lane);
enum hk_status hk__onesided_signal(struct proof *proof, struct lane *lane);
/* Whether the lane's wait can go on; it learns what that says. */
enum hk_status hk__onesided_wait(struct proof *proof, struct lane *lane, bool *waits_out);
/* A lane that was held back at its wait, and may go on; HK_NONE: none. */
uint32_t hk__onesided_held(struct proof *proof);
/* After the run: what must have landed, and been waited for, and begun. */
enum hk_status hk__onesided_end(struct proof *proof);
/* For hk__refuse_stuck: who is to send what the lane waits for, and how many came. */
const struct lane *hk__onesided_sender(const struct proof *proof, const struct lane *lane,
				       uint32_t *sent_out);

#endif
