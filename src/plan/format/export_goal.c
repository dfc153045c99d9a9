/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_goal.c - a plan as GOAL text, which LogGOPSim runs.
 *
 * A rank's actions come first and their order after them, since a label has to
 * be there before it is used and lanes wait for each other in any direction.
 * Labels say slice, lane, step and action, so nothing is remembered. A lane is a
 * cpu; bounded channels cannot be said.
 */
#include "plan/format/export.h"

#define GOAL_LABEL_MAX 48

struct goal {
	struct hk__export export;
	FILE *file;
	uint32_t rank, lane, slice, step;
};

struct label {
	char text[GOAL_LABEL_MAX];
};

static struct label label_of(const struct goal *goal, uint32_t lane, uint32_t step,
			     enum hk__action action)
{
	static const char actions[] = { 'r', 'c', 's' };
	struct label label;

	snprintf(label.text, sizeof(label.text), "s%ul%ui%u%c", goal->slice, lane, step,
		 actions[action]);
	return label;
}

static void goal_write_action(const struct goal *goal, const struct hk_step *step,
			      enum hk__action action)
{
	struct label label = label_of(goal, goal->lane, goal->step, action);
	uint64_t bytes = hk__export_message(&goal->export, step->count, goal->slice);

	fprintf(goal->file, "%s: ", label.text);
	if (action == HK__ACTION_SEND)
		fprintf(goal->file, "send %llub to %u tag %u", (unsigned long long)bytes,
			step->to.rank, hk__export_tag(goal->lane, step->to.lane));
	else if (action == HK__ACTION_RECV)
		fprintf(goal->file, "recv %llub from %u tag %u", (unsigned long long)bytes,
			step->from.rank, hk__export_tag(step->from.lane, goal->lane));
	else
		fprintf(goal->file, "calc %lld",
			llround(hk__export_calc_ns(&goal->export, step, goal->slice)));
	fprintf(goal->file, " cpu %u\n", goal->lane);
}

/* Who comes after a send waits for its start, else for its end. */
static void goal_write_order(const struct goal *goal, struct label later, uint32_t lane,
			     uint32_t step, enum hk__action action)
{
	fprintf(goal->file, "%s %s %s\n", later.text,
		action == HK__ACTION_SEND ? "irequires" : "requires",
		label_of(goal, lane, step, action).text);
}

/* The last action of the lane before this step; false before its first. */
static bool goal_before(struct goal *goal, uint32_t *step_out, enum hk__action *action_out)
{
	uint32_t nsteps = hk_plan_steps(goal->export.plan, goal->rank, goal->lane);
	struct hk_step step;

	if (goal->step == 0 && goal->slice == 0)
		return false;
	*step_out = (goal->step ? goal->step : nsteps) - 1;
	hk_plan_step(goal->export.plan, goal->rank, goal->lane, *step_out, &step);
	*action_out = hk__export_last(step.op);
	return true;
}

static void goal_write_orders(struct goal *goal, const struct hk_step *step)
{
	enum hk__action first = hk__export_first(step->op), last = first, action;
	struct label label = label_of(goal, goal->lane, goal->step, first);
	struct hk_step other;
	uint32_t before;

	if (goal_before(goal, &before, &action)) {
		uint32_t slice = goal->slice;

		/* The first step of a slice follows the last of the one before. */
		goal->slice -= goal->step == 0;
		struct label earlier = label_of(goal, goal->lane, before, action);
		goal->slice = slice;
		fprintf(goal->file, "%s %s %s\n", label.text,
			action == HK__ACTION_SEND ? "irequires" : "requires", earlier.text);
	}
	if (step->after.lane != HK_NONE) {
		hk_plan_step(goal->export.plan, goal->rank, step->after.lane, step->after.step,
			     &other);
		goal_write_order(goal, label, step->after.lane, step->after.step,
				 hk__export_last(other.op));
	}
	for (int a = (int)first + 1; a < HK__ACTION_COUNT; a++) {
		if (!hk__export_has(step->op, (enum hk__action)a))
			continue;
		goal_write_order(goal, label_of(goal, goal->lane, goal->step, (enum hk__action)a),
				 goal->lane, goal->step, last);
		last = (enum hk__action)a;
	}
}

/* All actions of a rank, or the order of them all. */
static void goal_walk(struct goal *goal, bool orders)
{
	const struct hk_plan *plan = goal->export.plan;
	struct hk_step step;

	for (goal->lane = 0; goal->lane < hk_plan_lanes(plan, goal->rank); goal->lane++) {
		uint64_t nsteps = hk_plan_steps(plan, goal->rank, goal->lane);

		for (uint64_t i = 0; i < nsteps * goal->export.opts.slices; i++) {
			if (ferror(goal->file))
				return;
			goal->slice = (uint32_t)(i / nsteps);
			goal->step = (uint32_t)(i % nsteps);
			hk_plan_step(plan, goal->rank, goal->lane, goal->step, &step);
			if (orders) {
				goal_write_orders(goal, &step);
				continue;
			}
			for (int a = 0; a < HK__ACTION_COUNT; a++)
				if (hk__export_has(step.op, (enum hk__action)a))
					goal_write_action(goal, &step, (enum hk__action)a);
		}
	}
}

enum hk_status hk_plan_print_goal(const struct hk_plan *plan, uint64_t bytes,
				  const struct hk_export_opts *opts, FILE *file, struct hk_why *why)
{
	struct goal goal = { .file = file };
	enum hk_status status = hk__export_init(&goal.export, plan, bytes, opts, why);

	if (status != HK_OK)
		return status;
	fprintf(file, "num_ranks %u\n", plan->n);
	for (goal.rank = 0; goal.rank < plan->n && !ferror(file); goal.rank++) {
		fprintf(file, "\nrank %u {\n", goal.rank);
		goal_walk(&goal, false);
		goal_walk(&goal, true);
		fputs("}\n", file);
	}
	return hk__print_end(file, why);
}
