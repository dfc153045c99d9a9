/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.h - how an operation is cut into slices, and how large slots and slices are.
 *
 * The one source of both: the executor performs what hk__cut() says
 * (exec/program.c), the simulator predicts it (sim/step.c), and channels have the
 * slots of the rule (exec/chans.c). A rule follows from a fabric and its ranks
 * (hk__fabric_cut), so the group that performs and the model that predicts ask for
 * it with the same words.
 */
#ifndef HK_FABRIC_CUT_H
#define HK_FABRIC_CUT_H

#include "base/base.h"

struct hk__cut_rule {
	uint32_t slots;		/* messages a channel holds */
	double slot_bytes;	/* the largest message */
	double slice_bytes;	/* no slice is shorter unless it is the only one */
	uint32_t slices;	/* wanted, where there is enough for them */
	bool cores;		/* ranks are cores, which add what they receive themselves */
	bool streams;		/* all messages go through sockets */
};

/* Of Hocket's own transports, as groups use them and fabrics describe them. */
extern const struct hk__cut_rule hk__cut_shm;
extern const struct hk__cut_rule hk__cut_tcp;

/* Ranks that use both: slots fit the smaller, and no slice is too short for either. */
void hk__cut_join(struct hk__cut_rule *rule, const struct hk__cut_rule *other);

enum hk__cut_kind {
	HK__CUT_COPIES,		/* one slice copied in, one out, while the next is on its way */
	HK__CUT_SUMS,		/* finer: sums wait for their operands */
	HK__CUT_LEAST		/* only as slots are too small */
};

struct hk__cut_job {
	enum hk__cut_kind kind;
	uint64_t longest;	/* elements of the longest chunk */
	uint32_t widest;	/* chunks of the widest message */
	uint32_t size;		/* bytes of an element in a message */
};

struct hk__cut {
	uint32_t nslices;
	uint64_t piece;		/* elements of the longest slice of a chunk */
};

/* HK_ELIMIT: a slot has no room for an element of each chunk, or there are 2^31 slices. */
enum hk_status hk__cut(const struct hk__cut_rule *rule, const struct hk__cut_job *job,
		       struct hk__cut *cut_out);

/*
 * Long slices, and chunks in a slot, begin at a cache line, if the buffer does: a
 * wide vector that lies across two cache lines takes twice as long to load.
 */
#define HK__SLICE_LONG 4096u	/* elements */
#define HK__SLICE_ALIGN 64u

static inline uint64_t hk__slice_round(uint64_t piece)
{
	return piece < HK__SLICE_LONG
		       ? piece
		       : (piece + HK__SLICE_ALIGN - 1) / HK__SLICE_ALIGN * HK__SLICE_ALIGN;
}

/* Elements of a slice but for the last ones: all ranks cut a length alike. */
static inline uint64_t hk__slice_len(uint64_t len, uint32_t nslices)
{
	return hk__slice_round((len + nslices - 1) / nslices);
}

/*
 * Bytes ahead of the chunks of a message, slices of so many elements: their
 * lengths, where there are several.
 */
static inline uint32_t hk__message_head(uint64_t piece, uint32_t count)
{
	uint32_t align = piece < HK__SLICE_LONG ? 16 : HK__SLICE_ALIGN;

	return count > 1 ? (count * 4 + align - 1) / align * align : 0;
}

#endif
