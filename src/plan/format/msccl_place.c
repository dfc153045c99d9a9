/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msccl_place.c - which thread block of MSCCL takes which step of a plan.
 *
 * A lane becomes one thread block for each pair of peers of its steps that both
 * receive and send, and what is left joins one of them, or meets its own peer in
 * a block that sends there and receives from there. Channels are coloured: what
 * talks has one number, and of two connections between the same two ranks each
 * has its own.
 */
#include "plan/format/msccl_place.h"

#define PLACE_STEPS_MAX (1u << 20) /* of all ranks: all of them are held */

static enum hk_status fail_memory(const struct hk__msccl_placing *placing)
{
	return hk__why(placing->why, HK_ENOMEM, "no memory to write the plan as MSCCL XML");
}

static bool port_equal(const struct hk_port *a, const struct hk_port *b)
{
	return a->rank == b->rank && a->lane == b->lane;
}

/* ---- which thread block takes a step ---- */

struct want {
	uint32_t rank, lane;
	uint32_t first; /* block of the lane, if it has one */
	bool in, out;
	struct hk_step step;
};

/* Whether a block has the peers of a step, or room for them: 2, 1, or 0. */
static int block_fits(const struct hk__msccl_block *block, const struct want *want)
{
	bool from = port_equal(&block->from, &want->step.from);
	bool to = port_equal(&block->to, &want->step.to);
	bool no_from = block->from.rank == HK_NONE, no_to = block->to.rank == HK_NONE;

	if (want->in && want->out)
		return from && to ? 2 : 0;
	if (want->in && from)
		return 2;
	if (want->out && to)
		return 2;
	if (no_from && no_to)
		return 1;
	/* Two ranks that exchange need one block each. */
	if (want->in)
		return no_from && port_equal(&block->to, &want->step.from);
	return want->out && no_to && port_equal(&block->from, &want->step.to);
}

/* A fused step whose peer another fused step has, with other company. */
static bool block_clashes(const struct hk__msccl_block *block, const struct want *want)
{
	return (want->in && port_equal(&block->from, &want->step.from)) ||
	       (want->out && port_equal(&block->to, &want->step.to));
}

static enum hk_status block_find(const struct hk__msccl_placing *placing, const struct want *want,
				 uint32_t *block_out)
{
	*block_out = HK_NONE;
	for (uint32_t b = want->first; b < placing->blocks.count; b++) {
		const struct hk__msccl_block *block = hk__msccl_block(placing, b);
		int fits = block_fits(block, want);

		if (fits)
			*block_out = b;
		if (fits == 2)
			return HK_OK;
		if (want->in && want->out && block_clashes(block, want))
			return hk__why(placing->why, HK_EINVAL,
				       "rank %u, lane %u: steps that receive and send at once have "
				       "more pairs of peers than thread blocks of MSCCL can have; "
				       "use recv and send",
				       want->rank, want->lane);
	}
	return HK_OK;
}

static enum hk_status block_take(struct hk__msccl_placing *placing, const struct want *want,
				 uint32_t *block_out)
{
	uint32_t b;
	enum hk_status status = block_find(placing, want, &b);

	if (status != HK_OK)
		return status;
	if (b == HK_NONE) {
		struct hk__msccl_block *block = hk__array_push(&placing->blocks);

		if (!block)
			return fail_memory(placing);
		b = (uint32_t)placing->blocks.count - 1;
		*block = (struct hk__msccl_block){ .rank = want->rank,
						   .lane = want->lane,
						   .from = hk__step_none.from,
						   .to = hk__step_none.to,
						   .twin = b,
						   .first = HK_NONE,
						   .next = HK_NONE };
	}
	struct hk__msccl_block *block = hk__msccl_block(placing, b);
	if (want->in)
		block->from = want->step.from;
	if (want->out)
		block->to = want->step.to;
	*block_out = b;
	return HK_OK;
}

/* Why a step cannot be written at all, or NULL. */
static const char *step_unfit(uint32_t rank, const struct hk_step *step)
{
	unsigned fields = hk__op_fields(step->op);

	if (hk__op_reserved(step->op) || hk__op_onesided(step->op))
		return "is an operation that MSCCL has not";
	if ((fields & (HK__FIELD_FROM | HK__FIELD_TO)) && step->count == 0)
		return "sends or receives nothing, which MSCCL cannot";
	if (((fields & HK__FIELD_FROM) && step->from.rank == rank) ||
	    ((fields & HK__FIELD_TO) && step->to.rank == rank))
		return "talks to its own rank, which MSCCL cannot";
	return NULL;
}

/* Fused steps first, as they need both peers in one block; then the others, in order. */
static enum hk_status lane_place(struct hk__msccl_placing *placing, struct want *want, bool fused)
{
	uint32_t nsteps = hk_plan_steps(placing->plan, want->rank, want->lane);
	struct hk_step *step = &want->step;
	enum hk_status status = HK_OK;

	for (uint32_t i = 0; status == HK_OK && i < nsteps; i++) {
		struct hk__msccl_piece *piece = hk__msccl_piece(placing, want->rank, want->lane, i);

		hk_plan_step(placing->plan, want->rank, want->lane, i, step);
		const char *unfit = step_unfit(want->rank, step);
		if (unfit)
			return hk__why(placing->why, HK_EINVAL, "rank %u, lane %u, step %u %s",
				       want->rank, want->lane, i, unfit);
		want->in = hk__op_receives(step->op);
		want->out = hk__op_sends(step->op);
		if ((want->in && want->out) != fused)
			continue;
		if (want->in || want->out)
			status = block_take(placing, want, &piece->block);
		else if (i)
			piece->block = piece[-1].block; /* what is local stays where the lane is */
		else if (want->first < placing->blocks.count)
			piece->block = want->first;
		else
			status = block_take(placing, want, &piece->block);
	}
	return status;
}

static enum hk_status rank_place(struct hk__msccl_placing *placing, uint32_t rank)
{
	enum hk_status status = HK_OK;

	placing->first_block[rank] = (uint32_t)placing->blocks.count;
	for (uint32_t l = 0; status == HK_OK && l < hk_plan_lanes(placing->plan, rank); l++) {
		struct want want = { .rank = rank, .lane = l };

		want.first = (uint32_t)placing->blocks.count;
		status = lane_place(placing, &want, true);
		if (status == HK_OK)
			status = lane_place(placing, &want, false);
	}
	for (uint32_t b = placing->first_block[rank]; b < placing->blocks.count; b++)
		hk__msccl_block(placing, b)->id = b - placing->first_block[rank];
	placing->first_block[rank + 1] = (uint32_t)placing->blocks.count;
	return status;
}

/* ---- channels ---- */

static uint32_t twin_of(const struct hk__msccl_placing *placing, uint32_t b)
{
	struct hk__msccl_block *block = hk__msccl_block(placing, b);

	while (block->twin != b) {
		block->twin = hk__msccl_block(placing, block->twin)->twin;
		b = block->twin;
		block = hk__msccl_block(placing, b);
	}
	return b;
}

/* The block of a lane that receives from a port; HK_NONE. */
static uint32_t block_receiving(const struct hk__msccl_placing *placing, const struct hk_port *at,
				const struct hk_port *from)
{
	for (uint32_t b = placing->first_block[at->rank]; b < placing->first_block[at->rank + 1];
	     b++) {
		const struct hk__msccl_block *block = hk__msccl_block(placing, b);

		if (block->lane == at->lane && port_equal(&block->from, from))
			return b;
	}
	return HK_NONE;
}

/* Joins both ends of every connection, and lists what is joined. */
static enum hk_status blocks_join(struct hk__msccl_placing *placing)
{
	for (uint32_t b = 0; b < placing->blocks.count; b++) {
		const struct hk__msccl_block *block = hk__msccl_block(placing, b);
		struct hk_port here = { block->rank, block->lane };

		if (block->to.rank == HK_NONE)
			continue;
		uint32_t peer = block_receiving(placing, &block->to, &here);
		if (peer == HK_NONE)
			return hk__why(placing->why, HK_EINVAL,
				       "rank %u sends to rank %u, which never receives that",
				       block->rank, block->to.rank);
		hk__msccl_block(placing, twin_of(placing, b))->twin = twin_of(placing, peer);
	}
	for (uint32_t b = 0; b < placing->blocks.count; b++) {
		struct hk__msccl_block *twin = hk__msccl_block(placing, twin_of(placing, b));

		hk__msccl_block(placing, b)->next = twin->first;
		twin->first = b;
	}
	return HK_OK;
}

/* Who has the channel from a block's rank to its peer: an entry of a hash. */
static struct hk__hash_entry *chan_entry(struct hk__hash *taken,
					 const struct hk__msccl_block *block, uint32_t chan)
{
	return hk__hash_get(taken, (uint64_t)block->rank << 32 | block->to.rank, chan);
}

/* Whether all blocks of a list may have a channel. */
static enum hk_status chan_is_free(const struct hk__msccl_placing *placing, struct hk__hash *taken,
				   uint32_t first, uint32_t chan, bool *free_out)
{
	*free_out = true;
	for (uint32_t b = first; b != HK_NONE; b = hk__msccl_block(placing, b)->next) {
		const struct hk__msccl_block *block = hk__msccl_block(placing, b);

		if (block->to.rank == HK_NONE)
			continue;
		struct hk__hash_entry *entry = chan_entry(taken, block, chan);
		if (!entry)
			return fail_memory(placing);
		if (entry->value != HK_NONE)
			*free_out = false;
	}
	return HK_OK;
}

static enum hk_status chan_take(struct hk__msccl_placing *placing, struct hk__hash *taken,
				uint32_t first)
{
	enum hk_status status;
	uint32_t chan = 0;
	bool free;

	for (;; chan++) {
		status = chan_is_free(placing, taken, first, chan, &free);
		if (status != HK_OK)
			return status;
		if (free)
			break;
	}
	placing->nchannels = hk__max(placing->nchannels, chan + 1);
	for (uint32_t b = first; b != HK_NONE; b = hk__msccl_block(placing, b)->next) {
		struct hk__msccl_block *block = hk__msccl_block(placing, b);

		block->chan = chan;
		if (block->to.rank == HK_NONE)
			continue;
		struct hk__hash_entry *entry = chan_entry(taken, block, chan);
		if (!entry)
			return fail_memory(placing);
		if (entry->value != HK_NONE)
			return hk__why(
				placing->why, HK_EINVAL,
				"rank %u sends to rank %u by two thread blocks of MSCCL that "
				"would need one channel; join the lanes, or use recv and send",
				block->rank, block->to.rank);
		entry->value = b;
	}
	return HK_OK;
}

static enum hk_status blocks_colour(struct hk__msccl_placing *placing)
{
	enum hk_status status = blocks_join(placing);
	struct hk__hash taken;

	hk__hash_init(&taken, placing->alloc);
	for (uint32_t b = 0; status == HK_OK && b < placing->blocks.count; b++)
		if (hk__msccl_block(placing, b)->twin == b)
			status = chan_take(placing, &taken, hk__msccl_block(placing, b)->first);
	hk__hash_fini(&taken);
	return status;
}

/* ---- all of it ---- */

/* Numbers lanes and steps of all ranks. */
static enum hk_status pieces_make(struct hk__msccl_placing *placing)
{
	const struct hk_plan *plan = placing->plan;

	placing->first_lane = hk__mem_zalloc(placing->alloc, plan->n + 1u, sizeof(uint32_t));
	placing->first_block = hk__mem_zalloc(placing->alloc, plan->n + 1u, sizeof(uint32_t));
	if (!placing->first_lane || !placing->first_block)
		return fail_memory(placing);
	for (uint32_t r = 0; r < plan->n; r++) {
		placing->first_lane[r] = (uint32_t)placing->first_piece.count;
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			uint32_t *first = hk__array_push(&placing->first_piece);

			if (!first)
				return fail_memory(placing);
			*first = (uint32_t)placing->npieces;
			placing->npieces += hk_plan_steps(plan, r, l);
			if (placing->npieces > PLACE_STEPS_MAX)
				return hk__why(placing->why, HK_ELIMIT,
					       "more than %u steps: too many for MSCCL XML",
					       PLACE_STEPS_MAX);
		}
	}
	placing->pieces =
		hk__mem_zalloc(placing->alloc, placing->npieces + 1, sizeof(*placing->pieces));
	return placing->pieces ? HK_OK : fail_memory(placing);
}

enum hk_status hk__msccl_place(struct hk__msccl_placing *placing, const struct hk_plan *plan,
			       struct hk_why *why)
{
	*placing = (struct hk__msccl_placing){ .plan = plan, .alloc = plan->alloc, .why = why };
	hk__array_init(&placing->blocks, plan->alloc, sizeof(struct hk__msccl_block));
	hk__array_init(&placing->first_piece, plan->alloc, sizeof(uint32_t));
	placing->nchannels = 1;
	enum hk_status status = pieces_make(placing);
	for (uint32_t r = 0; status == HK_OK && r < plan->n; r++)
		status = rank_place(placing, r);
	return status == HK_OK ? blocks_colour(placing) : status;
}

void hk__msccl_placing_fini(struct hk__msccl_placing *placing)
{
	const struct hk_alloc *alloc = placing->alloc;
	uint32_t n = placing->plan->n;

	if (placing->pieces)
		hk__mem_free(alloc, placing->pieces, placing->npieces + 1,
			     sizeof(*placing->pieces));
	hk__mem_free(alloc, placing->first_block, n + 1u, sizeof(uint32_t));
	hk__mem_free(alloc, placing->first_lane, n + 1u, sizeof(uint32_t));
	hk__array_fini(&placing->first_piece);
	hk__array_fini(&placing->blocks);
}
