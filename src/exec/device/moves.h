/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.h - the inside of flattening.
 *
 *   flatten.c  runs the plan once, all ranks together, and writes down the moves
 *              in the order in which they happened: the order that all else
 *              refers to, as "time"
 *   fuse.c     joins moves, and puts what is left of messages into memory: a move
 *              may go to another time where nobody touched, between then and now,
 *              what it reads or writes
 *   emit.c     who has to wait for whom, and the programs
 *
 * Rooms that were only between two moves which are one now are never used.
 */
#ifndef HK_EXEC_DEVICE_MOVES_H
#define HK_EXEC_DEVICE_MOVES_H

#include "exec/device/flatten.h"

/* A place that holds a chunk. */
enum place_kind {
	PLACE_IN,
	PLACE_OUT,
	PLACE_BUF,
	PLACE_LINE,
	PLACE_NOTHING		/* a message without data: only an order */
};

struct place {
	enum place_kind kind;
	uint32_t rank;
	uint32_t slot;		/* of in, out; of buffers and lines: numbered in the end */
	uint32_t from;		/* of lines: the rank that writes it */
	bool wide;
	uint32_t same;		/* the place whose bytes these may be, in place; else itself */
	struct hk__array moves;	/* uint32_t: that touch it, or once did */
};

/* What a place or a message holds. */
struct value {
	uint32_t place;		/* HK_NONE: nothing yet */
	uint32_t symbol;
	uint32_t parts;		/* ranks whose input is in the sum */
	bool wide;
};

/* A message of one chunk. */
struct message {
	uint32_t sender;	/* moves */
	uint32_t receiver;	/* HK_NONE: on its way */
	struct value value;
	bool empty;
};

/* A place, or a message that is none yet. */
struct operand {
	uint32_t at;
	bool is_message;
};

struct move {
	uint32_t rank;
	uint32_t time;
	uint32_t symbol;
	bool over;		/* became part of another */
	bool finishes;
	uint32_t lane, step;
	struct hk__array src, dst; /* struct operand */
	uint32_t number;	/* in its rank, in the end; from 1 */
};

struct moves {
	const struct hk_plan *plan;
	const struct hk_alloc *alloc;
	bool wide, lines, apart;
	uint32_t n;
	struct hk__array places, messages, moves; /* moves in the order of time */
	struct value **in, **out, **scratch;	/* by rank and slot: what they hold */
	uint32_t *in_at, *out_at;		/* by rank: the first place of each */
};

static inline struct place *place_at(const struct moves *moves, uint32_t i)
{
	return (struct place *)moves->places.items + i;
}

static inline struct message *message_at(const struct moves *moves, uint32_t i)
{
	return (struct message *)moves->messages.items + i;
}

static inline struct move *move_at(const struct moves *moves, uint32_t i)
{
	return (struct move *)moves->moves.items + i;
}

static inline struct operand *operand_at(const struct hk__array *operands, size_t i)
{
	return (struct operand *)operands->items + i;
}

/* Whether the operand is in memory that the place may share. */
static inline bool operand_is(const struct moves *moves, const struct operand *operand,
			      uint32_t place)
{
	return !operand->is_message &&
	       place_at(moves, operand->at)->same == place_at(moves, place)->same;
}

/* A new place; HK_NONE: no memory. */
uint32_t hk__place_new(struct moves *moves, enum place_kind kind, uint32_t rank, uint32_t slot,
		       bool wide);
/* One more operand, noted at its place. */
enum hk_status hk__move_add(struct moves *moves, uint32_t move, bool writes, struct operand operand);

enum hk_status hk__moves_fuse(struct moves *moves);
enum hk_status hk__moves_emit(struct moves *moves, struct hk__flat *flat);

#endif
