/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant.h - small changes to a stored plan, most of which break it.
 *
 * Where a step goes, comes or moves, the dependencies of other lanes keep
 * their step numbers: what they then mean is part of the mutant.
 */
#ifndef HK_TEST_NAIVE_MUTANT_H
#define HK_TEST_NAIVE_MUTANT_H

#include "plan/store.h"

/*	enum        function    what is done to a step */
#define MUTANT_MAP(X) \
	X(DROP,       drop,       "dropped") \
	X(TWICE,      twice,      "done twice") \
	X(SWAP,       swap,       "swapped with the next") \
	X(MOVE,       move,       "moved to the end of another lane") \
	X(FROM_RANK,  from_rank,  "receives from another rank") \
	X(TO_RANK,    to_rank,    "sends to another rank") \
	X(FROM_LANE,  from_lane,  "receives from another lane") \
	X(TO_LANE,    to_lane,    "sends to another lane") \
	X(SRC_FIRST,  src_first,  "reads the next slot") \
	X(DST_FIRST,  dst_first,  "writes the next slot") \
	X(SRC_SHAPE,  src_shape,  "reads another pattern of slots") \
	X(DST_SHAPE,  dst_shape,  "writes another pattern of slots") \
	X(SRC_BUF,    src_buf,    "reads another buffer") \
	X(DST_BUF,    dst_buf,    "writes another buffer") \
	X(CHUNKS,     chunks,     "moves one chunk more or less") \
	X(COUNT_WAIT, count_wait, "waits for one signal more or less") \
	X(OP,         op,         "adds instead of storing, or back") \
	X(AFTER_NONE, after_none, "waits for no other step") \
	X(AFTER_LESS, after_less, "waits for the step before") \
	X(SLOTS,      slots,      "channels hold one message less") \
	X(SIGNALS,    signals,    "signals are weak")

enum mutant_family {
#define MUTANT_ENUM(id, function, text) MUTANT_##id,
	MUTANT_MAP(MUTANT_ENUM)
#undef MUTANT_ENUM
	MUTANT_COUNT
};

struct mutant {
	enum mutant_family family;
	uint32_t rank, lane, step;
	uint32_t variant;	/* of those the family has */
};

enum mutant_made {
	MUTANT_MADE,
	MUTANT_SAME,		/* this one changes nothing: no mutant */
	MUTANT_END		/* no such variant, nor a later one */
};

/* Changes the plan, which must be stored. */
enum mutant_made mutant_apply(struct hk_plan *plan, const struct mutant *mutant);

/* Makes the plan equal to base again, from which it differs by that mutant. */
void mutant_undo(struct hk_plan *plan, const struct hk_plan *base, const struct mutant *mutant);

const char *mutant_family_text(enum mutant_family family);

/* "rank 1 lane 0 step 2 dropped: send ..." for people. */
void mutant_print(const struct mutant *mutant, const struct hk_plan *base,
		  const struct hk_plan *plan, FILE *file);

#endif
