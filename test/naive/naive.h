/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive.h - an interpreter of plans on real arrays: the independent witness.
 *
 * It knows a plan only through the questions of <hocket/plan.h>, carries no
 * proof, and shares nothing with the checker. All lanes of all ranks run in
 * one thread under an interleaving made from a seed. A step is not one event
 * but up to three, and other lanes may run between them:
 *
 *   start   waits for the dependency and the message; reads every source
 *   write   writes the destination
 *   send    waits for room in the channel; hands the value over
 *
 * A put and a signal only start: they land later, in an order of their own (flight.c),
 * so that lanes which race are seen to. Memory that nobody has written holds
 * values no right answer can hold, and a scratch slot remembers its length.
 * A plan may be any nonsense: what it does wrong is reported, not performed.
 */
#ifndef HK_TEST_NAIVE_NAIVE_H
#define HK_TEST_NAIVE_NAIVE_H

#include "naive/defn.h"

/*	enum        text */
#define NAIVE_FAULT_MAP(X) \
	X(OK,        "right") \
	X(DEADLOCK,  "nobody can move") \
	X(LEFTOVER,  "a message was never received") \
	X(LENGTH,    "lengths do not match") \
	X(RANGE,     "names a rank, lane, slot or step that is not there") \
	X(INPUT,     "writes the input") \
	X(UNDEFINED, "reads scratch that nobody wrote") \
	X(RESERVED,  "is a reserved operation") \
	X(EARLY,     "leaves the barrier without knowing that all came") \
	X(LANDS,     "is reached before it has begun, or after it has ended") \
	X(WRONG,     "a result is not what was promised")

enum naive_fault {
#define NAIVE_FAULT_ENUM(id, text) NAIVE_##id,
	NAIVE_FAULT_MAP(NAIVE_FAULT_ENUM)
#undef NAIVE_FAULT_ENUM
};

/* Who moves next, where several can. */
enum naive_order {
	NAIVE_ROUND_ROBIN,
	NAIVE_RANDOM,
	NAIVE_PRIORITY,		/* the first of a random order; now and then it falls behind */
	NAIVE_LATE_WRITES,	/* writes only where nothing else can be done */
	NAIVE_ORDER_COUNT
};

struct naive_opts {
	enum naive_order order;
	uint64_t seed;		/* of the interleaving */
	uint32_t slots;		/* of every channel; 0: a send waits for its receive */
	bool hold;		/* a message keeps its slot until the step that took it is over */
	bool inplace;
};

struct naive_report {
	enum naive_fault fault;
	uint32_t rank;		/* HK_NONE where it is about no one step */
	uint32_t lane;
	uint32_t step;
	uint64_t index;		/* of the wrong element */
	uint32_t longest;	/* messages of the longest chain, each sent after the last came */
};

struct naive;			/* an interpreter; used again and again */

/* Running out of memory ends the test. */
struct naive *naive_create(void);
void naive_destroy(struct naive *naive);

/* Copies the steps of a plan, and borrows the plan until the next load. */
void naive_load(struct naive *naive, const struct hk_plan *plan);

/*
 * Runs the loaded plan on the inputs of data, which is of the plan's
 * collective, and compares the outputs with it.
 */
enum naive_fault naive_run(struct naive *naive, const struct defn *data,
			   const struct naive_opts *opts, struct naive_report *report_out);

/* A rank's output of the last run; valid until the next. */
const union elem *naive_out(const struct naive *naive, uint32_t rank);

const char *naive_fault_text(enum naive_fault fault);

#endif
