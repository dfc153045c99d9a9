/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - a plan's step as far as time goes, and how a job is cut into slices. */
#include "sim/sim.h"

#include <math.h>

void hk__sim_step(const struct sim *sim, const struct sim_lane *lane, uint32_t at,
		  struct lane_step *step_out)
{
	const struct sim_actor *actor = &sim->actors[lane->actor];
	struct hk_step step;
	unsigned fields;

	hk_plan_step(sim->jobs[actor->job].plan, actor->rank, lane->lane, at, &step);
	fields = hk__op_fields(step.op);
	*step_out = (struct lane_step){
		.op = step.op,
		.keeps = (fields & HK__FIELD_DST) && step.dst.buf != HK_BUF_NONE,
		.fresh = step.op != HK_OP_SEND || step.src.buf != HK_BUF_IN,
		.count = step.count,
		.from = { HK_NONE, HK_NONE },
		.to = { HK_NONE, HK_NONE },
		.after = step.after,
	};
	if (fields & HK__FIELD_FROM)
		step_out->from = step.from;
	if (fields & HK__FIELD_TO)
		step_out->to = step.to;
}

/* As CPU ranks do: see hk__call.slice_min. */
static enum hk__cut plan_cut(const struct sim *sim, const struct hk_plan *plan, uint32_t wire)
{
	const struct hk_fabric *fabric = sim->fabric;

	if (!hk__fabric_device(fabric, 0)->serial)
		return HK__CUT_COPIES;
	if (hk__coll_reduces(plan->coll))
		return HK__CUT_SUMS;
	return hk__cut_streams(plan->coll) && wire == fabric->wire_net && wire != fabric->wire_node
		       ? HK__CUT_LEAST
		       : HK__CUT_COPIES;
}

/* The wires that ranks of a job use: to a neighbour, across nodes, to the last. */
uint32_t hk__sim_slices(const struct sim *sim, const struct hk_plan *plan, double chunk,
			const uint32_t *devices)
{
	uint32_t n = plan->n, slices = 1, widest = hk__plan_widest(plan);
	uint32_t peers[3] = { 1, n / hk__max(plan->nodes, 1), n - 1 };

	if (sim->opts->slice_bytes > 0)
		return (uint32_t)fmin(fmax(ceil(chunk * widest / sim->opts->slice_bytes), 1),
				      UINT32_MAX / 2);
	for (uint32_t i = 0; i < 3; i++) {
		struct hk__path path;
		uint32_t peer = peers[i];

		if (peer == 0 || peer >= n)
			continue;
		hk__fabric_path(sim->fabric, devices ? devices[0] : 0,
				devices ? devices[peer] : peer, &path);
		slices = hk__max(slices,
				 hk__cost_slices(&sim->fabric->wires[path.wire], chunk * widest,
						 plan_cut(sim, plan, path.wire)));
	}
	return slices;
}
