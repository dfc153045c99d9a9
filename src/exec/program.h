/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - the inside of a program: program.c makes it, exec.c runs it. */
#ifndef HK_EXEC_PROGRAM_H
#define HK_EXEC_PROGRAM_H

#include "exec/exec.h"
#include "exec/reduce/reduce.h"

struct bound_step {
	struct hk_step step;
	struct hk_chan *from;		/* NULL: receives nothing */
	struct hk_chan *to;
};

struct bound_lane {
	struct bound_step *steps;
	uint32_t nsteps;
	/* Where it is. */
	uint32_t slice;
	uint32_t at;
};

/* A buffer of the rank: where its slots begin, in elements. */
struct bound_buf {
	char *at;
	uint32_t nslots;
	uint64_t *first;		/* nslots + 1; unused for scratch */
};

struct hk__program {
	struct hk__program_spec spec;
	const struct hk_alloc *alloc;
	struct bound_lane *lanes;
	uint32_t nlanes;
	struct hk__array chans;		/* struct hk_chan * */
	uint32_t widest;		/* chunks of the largest message of any rank */

	/* The operation that runs. */
	struct hk__call call;
	const struct hk__reduce *reduce;
	size_t size;			/* of an element */
	uint32_t nslices;
	uint32_t lanes_left;
	struct bound_buf bufs[HK_BUF_SCRATCH + 1];
	uint64_t piece;			/* elements of the longest slice of a slot */
	uint32_t *lengths;		/* scratch: [slot][slice], elements held */
	size_t scratch_bytes, nlengths;
};

/* Bytes ahead of the chunks of a message: their lengths, where there are several. */
static inline uint32_t message_head(uint32_t count)
{
	return count > 1 ? (count * 4 + 15) / 16 * 16 : 0;
}

#endif
