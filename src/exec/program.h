/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - the inside of a program: program.c makes it, exec.c runs it. */
#ifndef HK_EXEC_PROGRAM_H
#define HK_EXEC_PROGRAM_H

#include "exec/exec.h"
#include "exec/reduce/reduce.h"
#include "exec/trace.h"

/* A message's kind: what its elements are. */
enum { KIND_PLAIN, KIND_WIDE };

/* Where a step's chunk lies, worked out for the sizes of an operation (quick.c). */
struct quick_place {
	enum hk_buf buf;		/* HK_BUF_NONE: nowhere */
	uint32_t len;			/* elements */
	uint32_t *held;			/* of scratch: where its length is kept */
	uint64_t offset;		/* bytes */
};

struct bound_step {
	struct hk_step step;
	struct hk_chan *from;		/* NULL: receives nothing */
	struct hk_chan *to;
	/*
	 * What it sends stays unchanged for the rest of the operation, if in and
	 * out are apart, or even if they share memory: it can be lent.
	 */
	bool stays;
	bool stays_inplace;
	struct quick_place src, dst;
};

struct bound_lane {
	struct bound_step *steps;
	uint32_t nsteps;
	/* Where it is. */
	uint32_t slice;
	uint32_t at;
	bool taken;			/* the message of its step is in its place already */
	uint64_t since;			/* when it began to wait, for a trace; 0: it does not */
};

/* A buffer of the rank: where its slots begin, in elements. */
struct bound_buf {
	char *at;
	uint32_t nslots;
	uint64_t *first;		/* nslots + 1; unused for scratch */
};

/* Memory of pieces that remember what they hold: [slot][slice]. */
struct bound_scratch {
	char *at;
	uint32_t *held;			/* elements, and HELD_WIDE */
	size_t bytes, nheld;
};
#define HELD_WIDE (1u << 31)

struct hk__program {
	struct hk__program_spec spec;
	const struct hk_alloc *alloc;
	struct hk__trace *trace;	/* mostly NULL */
	struct bound_lane *lanes;
	uint32_t nlanes;
	uint32_t lanes_used;		/* that have steps */
	struct hk__array to;		/* struct hk_chan *: all it sends on, once each */
	uint32_t widest;		/* chunks of the largest message of any rank */
	bool rereads;			/* adds to, or sends on, sums that lie in out */
	char algo[HK__ALGO_BYTES];	/* of its plan; cut if it is too long */

	/* The operation that runs. */
	bool running;
	bool again;			/* sizes are laid out for a call like this one */
	struct hk__call call;
	const struct hk__reduce *reduce;
	const struct hk__reduce *wide;	/* fp32's; NULL: elements stay what they are */
	size_t size;			/* of an element */
	size_t scratch_size;		/* of an element of scratch */
	bool inplace;
	bool quick;			/* small: quick.c */
	bool finishes;			/* something is left to do after the last step */
	bool shadowed;			/* sums lie in a shadow of out */
	uint32_t nslices;
	uint32_t lanes_left;
	struct bound_buf bufs[HK_BUF_SCRATCH + 1];
	uint64_t piece;			/* elements of the longest slice of a slot */
	struct bound_scratch scratch;
	struct bound_scratch shadow;
	char *scaled;			/* premulsum: in, times the factor */
	size_t scaled_bytes;
};

/* quick.c */
void hk__quick_shape(struct hk__program *program);
enum hk_status hk__quick_poll(struct hk__program *program, bool *moved_out);

/* exec.c: a message that does not fit the plan */
enum hk_status hk__program_lost(const struct hk__program *program, const struct bound_step *bound);

/* Whether what a step receives lands in its place, past any slot. */
static inline bool step_can_take(const struct hk__program *program, const struct hk_step *step)
{
	return (step->op == HK_OP_RECV || step->op == HK_OP_RECV_SEND) && step->count == 1 &&
	       step->dst.buf != HK_BUF_NONE && (!program->wide || step->dst.buf == HK_BUF_SCRATCH);
}

/* Whether the step that one of this lane has to wait for is over, in its slice. */
static inline bool lane_ready(const struct hk__program *program, const struct bound_lane *lane,
				 const struct hk_after *after)
{
	if (after->lane == HK_NONE)
		return true;
	const struct bound_lane *other = &program->lanes[after->lane];
	return other->slice > lane->slice ||
	       (other->slice == lane->slice && other->at > after->step);
}

/* Elements of an operation's in or out, all slots together. */
static inline uint64_t buf_elements(const struct bound_buf *buf)
{
	return buf->first[buf->nslots];
}

#endif
