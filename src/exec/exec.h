/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h - performs plans: one executor for all of them.
 *
 * A program is one rank's part of a plan, bound to channels of a group. It is
 * made once and run again and again, with other buffers, sizes, types and
 * operations. It performs exactly what was proved: lanes in step order, a
 * step after its dependency, a message held until its step is over (I3), and
 * every slice of a chunk in its own bytes, scratch included (I10).
 *
 * A message is the chunks of its step, slice by slice. Where a step moves
 * several, their lengths go ahead of them: blocks of a v form that a rank only
 * passes on have lengths it does not know. Where a rank does know a length, a
 * message of another one is HK_EIO.
 *
 * 8 and 16 bit floats that are added more than once stay fp32 in between: in
 * scratch, in messages (their kind says so), and in a shadow of `out` if the
 * plan reads sums back from there. They are rounded once, in the end.
 */
#ifndef HK_EXEC_EXEC_H
#define HK_EXEC_EXEC_H

#include "exec/chans.h"
#include "plan/plan.h"

#include <hocket/type.h>

struct hk__program;

struct hk__program_spec {
	const struct hk_plan *plan;	/* borrowed */
	struct hk__chans *chans;	/* borrowed */
	uint32_t rank;
	const struct hk_alloc *alloc;
};

enum hk_status hk__program_create(const struct hk__program_spec *spec,
				  struct hk__program **program_out);
void hk__program_destroy(struct hk__program *program);	/* accepts NULL; not while it runs */

/*
 * How a large message inside a machine gets to its receiver. Which is fastest
 * depends on how far apart the cores are, and on who wrote what last.
 */
enum hk__copy_method {
	HK__COPY_CACHED,		/* copied into a slot and out of it */
	HK__COPY_LENT,			/* the receiver reads the sender's buffer */
	HK__COPY_STREAMED,		/* the same, with stores past the caches */
	HK__COPY_COUNT
};

/* One operation. Sizes, type, operation and slice are the same on all ranks. */
struct hk__call {
	const void *in;			/* slots side by side, in order */
	void *out;			/* in place: `in` lies where the collective says */
	struct hk_sizes sizes;		/* borrowed until the operation is over */
	enum hk_type type;
	enum hk_redop op;		/* of collectives that reduce */
	const void *factor;		/* of premulsum */
	/*
	 * alltoall with counts: what this rank sends and gets instead of
	 * sizes.counts, and the longest block anywhere, in sizes.count.
	 */
	const uint64_t *in_counts;
	const uint64_t *out_counts;
	bool whole;			/* chunks are cut only as slots are too small (cut.h) */
	enum hk__copy_method method;	/* of large messages */
};

/* Starts an operation; the one before is over. HK_ENOMEM, HK_EINVAL, HK_ELIMIT. */
enum hk_status hk__program_start(struct hk__program *program, const struct hk__call *call);

/*
 * Whether the operation before was like this one, but for buffers; then it need
 * not be looked at again. Not premulsum, and no counts.
 */
bool hk__program_like(const struct hk__program *program, const struct hk__call *call);
void hk__program_restart(struct hk__program *program, const void *in, void *out);

/* Moves what can be moved. HK_OK: over. HK_INPROGRESS: call again. */
enum hk_status hk__program_poll(struct hk__program *program, bool *moved_out);

/* Where it is, in a few words, for messages: "lane 0 step 3 waits for rank 2". */
void hk__program_describe(const struct hk__program *program, struct hk__text *text);

/* The algorithm of its plan. */
const char *hk__program_algo(const struct hk__program *program);
/* The same, filled up with zeros, and cut if it is too long: quick to copy. */
#define HK__ALGO_BYTES 20u
const char *hk__program_algo_bytes(const struct hk__program *program);

/* The ranks that its lanes wait for now, up to max of them; how many. */
uint32_t hk__program_waits(const struct hk__program *program, uint32_t *ranks_out, uint32_t max);

/* What a lane cannot go on without. */
enum hk__lane_wait {
	HK__LANE_READY,			/* nothing */
	HK__LANE_MESSAGE,		/* a message of `rank` */
	HK__LANE_SLOT,			/* a slot that `rank` has to free */
	HK__LANE_LANE,			/* another lane of this rank */
	HK__LANE_READER			/* `rank` has still to read what it was lent */
};

struct hk__lane_position {
	uint32_t lane, step, steps, slice, slices;
	enum hk_op op;			/* of the step */
	enum hk__lane_wait waits;
	uint32_t rank;			/* HK_NONE: no rank is waited for */
};

/*
 * The position of each lane that is not through: up to max of them; how many there
 * are. Channels are looked at as poll would. Once all are through, those that lent
 * something that was not read yet.
 */
uint32_t hk__program_positions(const struct hk__program *program,
			       struct hk__lane_position *positions_out, uint32_t max);

/* ---- a transfer between two ranks ---- */

struct hk__transfer {
	struct hk_chan *chan;
	uint32_t tag;
	bool sends;
	char *at;
	uint64_t left;			/* bytes */
	enum hk__copy_method method;
	bool begun;			/* even nothing is a message */
	struct hk__trace *trace;	/* mostly NULL */
	uint64_t since;			/* when it found nothing to do, for the trace */
};

enum hk_status hk__transfer_poll(struct hk__transfer *transfer, bool *moved_out);

#endif
