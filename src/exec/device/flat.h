/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flat.h - a plan as a GPU performs it: one row of moves for each rank.
 *
 * Where all ranks reach each other's memory by loads and stores, a message need
 * not be carried: it is read where it lies, or written where it belongs. So a
 * plan is flattened (flatten.c): its lanes are merged into one row of moves,
 *
 *	destinations = source op source op ...
 *
 * whose operands lie anywhere; most sends and receives are gone, and what is
 * left of them are waits: "rank 3 has done 5 of its moves". They all point back
 * in one order of all moves of all ranks, so nobody waits for ever.
 *
 * A block performs whole slices (plan.h), with the blocks of that number of the
 * other ranks and with nobody else: it has flags, buffers and lines of its own.
 *
 *	buffer	piece of a rank's segment for what has no place in `in` or `out`
 *	line	the same, for small messages: every word carries its own flag (as
 *		in NCCL's LL protocol), so nothing is waited for but the data
 *	epoch	calls of a block so far; counted on the device, so that a graph
 *		can be replayed; its low half goes with flags and words, and is
 *		never 0 (interp.h says what happens when it comes round)
 *
 * Everything here is read by the host and by the device, and has no pointers
 * inside: programs are copied as bytes.
 */
#ifndef HK_EXEC_DEVICE_FLAT_H
#define HK_EXEC_DEVICE_FLAT_H

#include <stdint.h>

#define HK__FLAT_RANKS 64u	/* of a group */
#define HK__FLAT_BLOCKS 64u	/* of a rank */
#define HK__FLAT_THREADS 512u	/* of a block */
#define HK__FLAT_FOLD 64u	/* sources of a move, and destinations */
#define HK__FLAT_OPERAND_BYTES 32u /* of one, while a block runs */

/* Where an operand lies. */
enum hk__flat_kind {
	HK__FLAT_IN,
	HK__FLAT_OUT,
	HK__FLAT_BUF,
	HK__FLAT_LINE
};

struct hk__flat_ref {
	uint16_t rank;
	uint8_t kind;
	uint8_t wide;			/* elements are fp32 there (exec.h) */
	uint32_t slot;			/* of in or out; else the number of buffer or line */
	uint32_t from;			/* of a line: the rank that writes it */
};

/* Of a rank: so many moves are over, in the slice; below 0: in the one before. */
struct hk__flat_wait {
	uint32_t rank;
	int32_t moves;
};

struct hk__flat_move {
	uint32_t symbol;		/* of the chunk: its length */
	uint32_t refs;			/* the first of its sources, then destinations */
	uint32_t waits;			/* of the first slice, then of later ones */
	uint32_t signals;		/* ranks that are told that it is over */
	uint16_t nsrc, ndst;
	uint16_t nwait, nwait_later;
	uint16_t nsignal;
	uint8_t finishes;		/* the sum is complete: an average is divided */
	uint8_t plain;			/* one source, as wide as all destinations */
	uint32_t together;		/* moves from here on that go at once; 0: not the first */
	uint32_t lane, step;		/* of the plan, for messages */
};

/* A rank's program: this, and what it counts, at these offsets in bytes. */
struct hk__flat_program {
	uint32_t bytes;
	uint32_t stride;		/* moves of the rank that has most, and one more */
	uint32_t nmoves, moves;
	uint32_t nrefs, refs;
	uint32_t nwaits, waits;
	uint32_t nsignals, signals;	/* uint32_t each */
	uint32_t nmail, mail;		/* ranks that need to know its buffers */
	uint32_t nlast, last;		/* waits after the last slice */
	uint32_t npeers, peers;		/* lines: ranks it writes to */
	uint32_t together;		/* the most of a move */
};

/* ---- segments: memory of a rank that all ranks reach ---- */

/* What one rank tells another at the start of a call, and as it moves on. */
struct hk__flat_mail {
	uint64_t in, out;
	uint64_t factor;		/* premulsum: an element, or fp32 */
	uint64_t flag;			/* epoch << 32 | moves; compared by difference */
};

/* A segment is a row of lots, one for each block. */
struct hk__flat_lot {
	uint64_t epoch;
	uint32_t broken;		/* a call has failed: nothing is begun any more */
	uint32_t reported;		/* of the first lot: some block has said so */
	uint32_t pad[28];
	struct hk__flat_mail mail[HK__FLAT_RANKS];	/* from each rank */
	uint64_t done[HK__FLAT_RANKS];			/* epochs that each rank has ended */
	/* Then lines, twice (by turns), and buffers. */
};

/* ---- a call ---- */

enum hk__flat_mode {
	HK__FLAT_WIDE = 1 << 0,		/* sums that are not complete are fp32 */
	HK__FLAT_AVG = 1 << 1,
	HK__FLAT_PREMUL = 1 << 2,
	HK__FLAT_LINES = 1 << 3,
	HK__FLAT_FAR = 1 << 4		/* ranks on several devices */
};

enum hk__flat_task {
	HK__FLAT_COLLECTIVE,
	HK__FLAT_SEND,
	HK__FLAT_RECV
};

/* What went wrong: written by the device, read by the host. */
struct hk__flat_report {
	uint32_t abort;			/* set by the host: give up */
	uint32_t failed;		/* set last, by the device */
	uint32_t aborted;		/* it was told to */
	uint32_t block;
	uint32_t lane, step;		/* where it waited */
	uint32_t peer;			/* for whom */
	uint32_t epoch;
	uint32_t pair;			/* enum hk__flat_task */
	uint32_t differs;		/* a message is not what the peer makes of it */
	uint64_t bytes[2], whats[2];	/* of the message, here and there (pair.h) */
};

/* Kernels take it by value; what comes first is looked at first. */
struct hk__flat_call {
	const char *program;
	uint32_t shared;		/* bytes of the program that are kept on chip */
	uint32_t rank, n;
	uint32_t mode;			/* enum hk__flat_mode */
	uint64_t lot_bytes;		/* of a block */
	char *segments[HK__FLAT_RANKS];
	uint64_t in, out;
	/* Slot k begins at k * each + min(k, more), or (counted) at first[k]. */
	uint64_t each, more;
	uint64_t piece;			/* elements of a slice, a multiple of 16 */
	uint64_t lines_bytes;		/* of a lot, for one turn */
	uint64_t line_bytes, buf_bytes; /* of one */
	uint32_t nslices, nblocks;
	uint32_t type;			/* enum hk_type */
	uint32_t op;			/* enum hk_redop; sum for avg and premulsum */
	uint64_t factor;
	uint64_t timeout_ns;
	struct hk__flat_report *report;
	uint32_t counted;
	uint64_t first[HK__FLAT_RANKS + 1];
};

#endif
