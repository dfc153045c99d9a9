/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - whether a run can be believed: everything done, nothing lost, no link overrun. */
#include "sim/sim.h"

#define CHECK_EXCESS 1e-9 /* of a link's speed, for rounding */

static const char *lane_waits_for(const struct sim_lane *lane)
{
	switch (lane->state) {
	case LANE_WAITS_AFTER:
		return "waits for a step of another lane that never ends";
	case LANE_WAITS_MESSAGE:
		return "waits for a message that never comes";
	case LANE_WAITS_SLOT:
		return "waits for a slot of a channel that nobody empties";
	case LANE_WAITS_SIGNAL:
		return "waits for signals that never come";
	case LANE_WAITS_START:
	case LANE_WAITS_TURN:
	case LANE_WAITS_CALL:
	case LANE_RUNS:
	case LANE_OVER:
		break;
	}
	return "was not finished";
}

/* A lane that waits for a message says more than one that waits for that lane. */
static const struct sim_lane *lane_stuck(const struct sim *sim)
{
	const struct sim_lane *stuck = NULL;

	for (uint32_t l = 0; l < sim->nlanes; l++) {
		const struct sim_lane *lane = &sim->lanes[l];

		if (lane->state == LANE_OVER)
			continue;
		if (!stuck)
			stuck = lane;
		if (lane->state == LANE_WAITS_MESSAGE || lane->state == LANE_WAITS_SIGNAL)
			return lane;
	}
	return stuck;
}

static enum hk_status check_lanes(struct sim *sim)
{
	const struct sim_lane *lane = lane_stuck(sim);
	char peer[48] = "";

	if (!lane)
		return HK_OK;
	if (lane->state == LANE_WAITS_MESSAGE)
		snprintf(peer, sizeof(peer), " from rank %u lane %u", lane->step.from.rank,
			 lane->step.from.lane);
	else if (lane->state == LANE_WAITS_SLOT)
		snprintf(peer, sizeof(peer), " to rank %u lane %u", lane->step.to.rank,
			 lane->step.to.lane);
	else if (lane->state == LANE_WAITS_SIGNAL)
		snprintf(peer, sizeof(peer), " for %u of signal %u", lane->step.signals,
			 lane->step.signal);
	return hk__sim_fail(
		sim, HK_EREFUSED,
		"the plan deadlocks: rank %u lane %u step %u (%s%s) %s; hocket check says more",
		sim->actors[lane->actor].rank, lane->lane, lane->at, hk_op_name(lane->step.op),
		peer, lane_waits_for(lane));
}

/* What the plan has of messages and chunks, asked once more. */
static void plan_count(const struct sim *sim, struct sim_counts *counts)
{
	for (uint32_t l = 0; l < sim->nlanes; l++) {
		const struct sim_lane *lane = &sim->lanes[l];
		uint64_t slices = sim->jobs[sim->actors[lane->actor].job].nslices;
		uint64_t sent = 0, chunks = 0;

		for (uint32_t i = 0; i < lane->nsteps; i++) {
			struct lane_step step;

			hk__sim_step(sim, lane, i, &step);
			sent += step.to.rank != HK_NONE;
			chunks += step.to.rank != HK_NONE ? step.count : 0;
		}
		counts->steps += slices * lane->nsteps;
		counts->sent += slices * sent;
		counts->sent_chunks += slices * chunks;
	}
}

static enum hk_status check_counts(struct sim *sim)
{
	struct sim_counts plan = { 0 };
	const struct sim_counts *done = &sim->counts;

	plan_count(sim, &plan);
	if (done->steps != plan.steps)
		return hk__sim_fail(sim, HK_EREFUSED,
				    "the simulation contradicts itself: %llu steps of %llu",
				    (unsigned long long)done->steps,
				    (unsigned long long)plan.steps);
	if (done->sent != plan.sent || done->sent != done->received || sim->flows.active)
		return hk__sim_fail(
			sim, HK_EREFUSED,
			"messages are lost: the plan has %llu, %llu were sent and %llu received",
			(unsigned long long)plan.sent, (unsigned long long)done->sent,
			(unsigned long long)done->received);
	if (done->sent_chunks != plan.sent_chunks || done->sent_chunks != done->received_chunks)
		return hk__sim_fail(sim, HK_EREFUSED,
				    "bytes are lost: the plan has %llu chunks, %llu were sent and "
				    "%llu received",
				    (unsigned long long)plan.sent_chunks,
				    (unsigned long long)done->sent_chunks,
				    (unsigned long long)done->received_chunks);
	return HK_OK;
}

enum hk_status hk__sim_check(struct sim *sim)
{
	enum hk_status status = check_lanes(sim);

	if (status == HK_OK)
		status = check_counts(sim);
	if (status == HK_OK && sim->flows.excess > CHECK_EXCESS) {
		char name[96];

		hk__fabric_link_name(sim->fabric,
				     flow_link_at(&sim->flows, sim->flows.excess_link)->link, name,
				     sizeof(name));
		status = hk__sim_fail(sim, HK_EREFUSED,
				      "the simulation contradicts itself: %s above its speed by %g",
				      name, sim->flows.excess);
	}
	return status;
}
