/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msccl_place.h - which thread block of MSCCL takes which step of a plan.
 *
 * A thread block has at most one peer to send to and one to receive from, and a
 * channel: a number that both ends of each of its connections agree on. No two
 * thread blocks of a rank may send to one peer on one channel.
 */
#ifndef HK_PLAN_FORMAT_MSCCL_PLACE_H
#define HK_PLAN_FORMAT_MSCCL_PLACE_H

#include "plan/format/msccl.h"

struct hk__msccl_block {
	uint32_t rank, lane;
	uint32_t id;			/* among its rank's */
	struct hk_port from, to;	/* rank HK_NONE: no such peer */
	uint32_t chan;
	uint32_t nsteps;		/* of those in the file, so far; the writer's own */
	/* Blocks that talk share a channel: one of them stands for all. */
	uint32_t twin;
	uint32_t first, next;		/* of a list of them, HK_NONE: the end */
};

/* What becomes of a step. */
struct hk__msccl_piece {
	uint32_t block;
	uint32_t last;			/* its last step there; the writer's own, as what follows */
	bool awaited;			/* by another thread block */
};

struct hk__msccl_placing {
	const struct hk_plan *plan;
	const struct hk_alloc *alloc;
	struct hk_why *why;
	struct hk__array blocks;	/* rank after rank */
	uint32_t *first_block;		/* of each rank, and the end */
	uint32_t *first_lane;		/* of each rank, and the end: into first_piece */
	struct hk__array first_piece;	/* uint32_t: of each lane */
	struct hk__msccl_piece *pieces;
	size_t npieces;
	uint32_t nchannels;
};

/*
 * HK_EINVAL, with the reason in why, for a plan that cannot be said; HK_ELIMIT,
 * HK_ENOMEM. Ended by hk__msccl_placing_fini() in any case.
 */
enum hk_status hk__msccl_place(struct hk__msccl_placing *placing, const struct hk_plan *plan,
			       struct hk_why *why);
void hk__msccl_placing_fini(struct hk__msccl_placing *placing);

static inline struct hk__msccl_block *hk__msccl_block(const struct hk__msccl_placing *placing,
						      uint32_t b)
{
	return hk__array_at(&placing->blocks, b);
}

static inline struct hk__msccl_piece *hk__msccl_piece(const struct hk__msccl_placing *placing,
						      uint32_t rank, uint32_t lane, uint32_t i)
{
	const uint32_t *first =
		hk__array_at(&placing->first_piece, placing->first_lane[rank] + lane);

	return &placing->pieces[*first + i];
}

#endif
