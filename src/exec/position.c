/* SPDX-License-Identifier: Apache-2.0 */
/* position.c - where a program is, for messages and records. */
#include "exec/program.h"

/* A message is there, or part of it was taken: then it is not what is missing. */
static bool message_is_there(const struct hk__program *program, const struct bound_lane *lane,
			     const struct bound_step *bound)
{
	struct hk_message message;

	if (lane->taken)
		return true;
	/* One that is being taken cannot be peeked at. */
	if (!program->quick && step_can_take(program, &bound->step))
		return false;
	bool there = hk__chan_peek(bound->from, &message) == HK_OK && message.data;
	if (there)
		hk__chan_unpeek(bound->from);
	return there;
}

static void lane_judge(const struct hk__program *program, const struct bound_lane *lane,
		       struct hk__lane_position *position)
{
	const struct bound_step *bound = &lane->steps[lane->at];

	position->rank = HK_NONE;
	if (!lane_ready(program, lane, &bound->step.after)) {
		position->waits = HK__LANE_LANE;
	} else if (bound->from && !message_is_there(program, lane, bound)) {
		position->waits = HK__LANE_MESSAGE;
		position->rank = bound->step.from.rank;
	} else if (bound->to) {
		position->waits = HK__LANE_SLOT;
		position->rank = bound->step.to.rank;
	} else {
		position->waits = HK__LANE_READY;
	}
}

/* The group's rank of one of the world's. */
static uint32_t rank_of(const struct hk__program *program, uint32_t world)
{
	for (uint32_t r = 0; r < program->spec.plan->n; r++)
		if (hk__chans_rank(program->spec.chans, r) == world)
			return r;
	return HK_NONE;
}

/* All steps are done, and somebody has still to read. */
static uint32_t readers_of(const struct hk__program *program,
			   struct hk__lane_position *positions_out, uint32_t max)
{
	struct hk_chan *const *to = program->to.items;
	uint32_t count = 0;

	for (size_t i = 0; i < program->to.count; i++) {
		if (!hk__chan_lent(to[i]))
			continue;
		if (count < max)
			positions_out[count] =
				(struct hk__lane_position){ .lane = to[i]->spec.key.from_lane,
							    .slice = program->nslices,
							    .slices = program->nslices,
							    .op = HK_OP_NOP,
							    .waits = HK__LANE_READER,
							    .rank = rank_of(program,
									    to[i]->spec.key.peer) };
		count++;
	}
	return count;
}

uint32_t hk__program_positions(const struct hk__program *program,
			       struct hk__lane_position *positions_out, uint32_t max)
{
	uint32_t count = 0;

	for (uint32_t l = 0; l < program->nlanes; l++) {
		const struct bound_lane *lane = &program->lanes[l];

		if (lane->slice >= program->nslices || !lane->nsteps)
			continue;
		if (count < max) {
			positions_out[count] =
				(struct hk__lane_position){ .lane = l,
							    .step = lane->at,
							    .steps = lane->nsteps,
							    .slice = lane->slice,
							    .slices = program->nslices,
							    .op = lane->steps[lane->at].step.op };
			lane_judge(program, lane, &positions_out[count]);
		}
		count++;
	}
	return count ? count : readers_of(program, positions_out, max);
}
