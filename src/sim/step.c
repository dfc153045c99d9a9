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
		.fresh = (step.op != HK_OP_SEND && step.op != HK_OP_PUT) ||
			 step.src.buf != HK_BUF_IN,
		.count = step.op == HK_OP_WAIT ? 0 : step.count,
		.signal = HK_NONE,
		.from = { HK_NONE, HK_NONE },
		.to = { HK_NONE, HK_NONE },
		.after = step.after,
	};
	if (fields & HK__FIELD_FROM)
		step_out->from = step.from;
	if (fields & HK__FIELD_TO)
		step_out->to = step.to;
	if (fields & (HK__FIELD_PUT | HK__FIELD_SIGNAL))
		step_out->to = (struct hk_port){ step.to.rank, SIM_PUT_LANE };
	if (fields & HK__FIELD_SIGNAL)
		step_out->signal = step.to.lane;
	if (fields & HK__FIELD_WAIT) {
		step_out->signal = step.from.lane;
		step_out->signals = step.count;
	}
}

/* Sizes are bytes here: elements of the commonest type. */
#define ELEMENT_BYTES 4u

uint32_t hk__sim_slices(const struct sim *sim, const struct hk_plan *plan, double chunk,
			const uint32_t *devices)
{
	uint32_t widest = hk__plan_widest(plan);
	struct hk__cut_rule rule;
	struct hk__cut cut;

	if (sim->opts->slice_bytes > 0)
		return (uint32_t)fmin(fmax(ceil(chunk * widest / sim->opts->slice_bytes), 1),
				      UINT32_MAX / 2);
	hk__fabric_cut(sim->fabric, plan->n, devices, &rule);
	struct hk__cut_job job = { .kind = hk__coll_cut(plan->coll, &rule),
				   .longest = (uint64_t)ceil(chunk / ELEMENT_BYTES),
				   .widest = widest,
				   .size = ELEMENT_BYTES };
	if (hk__cut(&rule, &job, &cut) == HK_OK)
		return cut.nslices;
	/* No group could perform it with such slots; as fine as it can be cut. */
	return (uint32_t)fmin(fmax((double)job.longest, 1), UINT32_MAX / 2);
}
