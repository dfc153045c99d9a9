/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c - a run is laid out and taken down; and what is told to who watches it. */
#include "sim/engine.h"

#include <stdarg.h>

enum hk_status hk__sim_fail(struct sim *sim, enum hk_status status, const char *fmt, ...)
{
	char text[HK_WHY_MAX];
	va_list args;

	if (sim->status != HK_OK)
		return sim->status;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	sim->status = status;
	return hk__why(sim->why, status, "%s", text);
}

void hk__sim_note(struct sim *sim, bool done)
{
	if (!done)
		hk__sim_fail(sim, HK_ENOMEM, "no memory for messages in flight");
}

/* ---- who watches ---- */

void hk__sim_tell_step(const struct sim *sim, uint32_t l)
{
	const struct sim_lane *lane = &sim->lanes[l];
	const struct sim_actor *actor = &sim->actors[lane->actor];

	if (!sim->opts->event)
		return;
	struct hk_sim_event event = {
		.job = actor->job,
		.rank = actor->rank,
		.lane = lane->lane,
		.step = lane->at,
		.slice = lane->slice,
		.op = lane->step.op,
		.from = lane->step.from.rank,
		.to = lane->step.to.rank,
		.bytes = lane->step.count * sim->jobs[actor->job].chunk,
		.start_ns = lane->begin_ns,
		.end_ns = lane->end_ns,
	};
	sim->opts->event(sim->opts->ctx, &event);
}

void hk__sim_tell_message(const struct sim *sim, const struct flow *flow)
{
	const struct sim_lane *lane = &sim->lanes[flow->lane];
	const struct sim_actor *actor = &sim->actors[lane->actor];
	const struct hk_plan *plan = sim->jobs[actor->job].plan;

	if (!sim->opts->event)
		return;
	struct hk_step step;
	hk_plan_step(plan, actor->rank, lane->lane, flow->step, &step);
	struct hk_sim_event event = {
		.job = actor->job,
		.rank = actor->rank,
		.lane = lane->lane,
		.step = flow->step,
		.slice = flow->slice,
		.op = step.op,
		.from = HK_NONE,
		.to = step.to.rank,
		.bytes = step.count * sim->jobs[actor->job].chunk,
		.start_ns = flow->left_ns,
		.end_ns = sim->now,
		.message = true,
	};
	sim->opts->event(sim->opts->ctx, &event);
}

/* ---- laying out ---- */

/* All that a rank's buffers hold. */
static double actor_footprint(const struct sim_job *job, uint32_t rank)
{
	double slots = 0;

	for (unsigned buf = HK_BUF_IN; buf <= HK_BUF_SCRATCH; buf++)
		slots += hk_plan_slots(job->plan, rank, (enum hk_buf)buf);
	return slots * job->chunk * job->call_slices;
}

/* A device's core, shared by what other jobs do on it, and by other ranks if there are few. */
static enum hk_status actor_core(struct sim *sim, struct hk__hash *cores, struct sim_actor *actor,
				 uint32_t device)
{
	uint32_t own = actor->device->serial && actor->device->cores ? device % actor->device->cores
								     : device;
	struct hk__hash_entry *entry =
		hk__hash_get(cores, own, (uint64_t)(actor->device - sim->fabric->devices));

	if (!entry)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory for %u ranks", sim->nactors);
	if (entry->value == HK_NONE) {
		entry->value = sim->ncores++;
		sim->cores[entry->value].first_turn = sim->cores[entry->value].last_turn = HK_NONE;
		sim->cores[entry->value].device = HK_NONE;
	}
	actor->core = entry->value;
	actor->number = device;
	return HK_OK;
}

#define LANE_LOOK 8u /* steps of a lane that are looked at */

static bool lane_receives(const struct sim *sim, const struct sim_lane *lane)
{
	struct lane_step step;

	for (uint32_t at = 0; at < lane->nsteps && at < LANE_LOOK; at++) {
		hk__sim_step(sim, lane, at, &step);
		if (hk__op_receives(step.op))
			return true;
	}
	return false;
}

/* Lanes that nothing holds back, if that costs anything on some wire. */
static void actor_ahead(struct sim *sim, const struct sim_actor *actor)
{
	struct sim_lane *lanes = &sim->lanes[actor->first_lane];
	bool costs = false;
	uint32_t receive = 0;

	for (uint32_t i = 0; i < sim->fabric->nwires; i++)
		costs |= hk__curve_at(&sim->fabric->wires[i].ahead_byte_ns, 0) > 0;
	if (!costs || actor->nlanes == 1)
		return;
	for (uint32_t l = 0; l < actor->nlanes; l++) {
		lanes[l].ahead = !lane_receives(sim, &lanes[l]);
		receive += !lanes[l].ahead;
	}
	for (uint32_t l = 0; l < actor->nlanes; l++)
		lanes[l].ahead = lanes[l].ahead && receive;
}

static void actor_lanes(struct sim *sim, uint32_t a)
{
	struct sim_actor *actor = &sim->actors[a];
	const struct sim_job *job = &sim->jobs[actor->job];

	for (uint32_t l = 0; l < actor->nlanes; l++) {
		struct sim_lane *lane = &sim->lanes[actor->first_lane + l];

		*lane = (struct sim_lane){ .actor = a,
					   .lane = l,
					   .nsteps = hk_plan_steps(job->plan, actor->rank, l),
					   .from = HK_NONE,
					   .to = HK_NONE,
					   .next_turn = HK_NONE };
		lane->cost.op = HK_OP_COUNT;
		sim->nsteps += (uint64_t)lane->nsteps * job->nslices;
	}
	actor_ahead(sim, actor);
}

static enum hk_status job_actors(struct sim *sim, struct hk__hash *cores, uint32_t j, uint32_t *a,
				 uint32_t *first_lane)
{
	struct sim_job *job = &sim->jobs[j];
	uint32_t count = sim->fold.copies > 1 ? sim->fold.classes : job->plan->n;

	job->first_actor = *a;
	for (uint32_t c = 0; c < count; c++, (*a)++) {
		struct sim_actor *actor = &sim->actors[*a];
		uint32_t rank = hk__fold_rank(&sim->fold, c);
		uint32_t device = job->devices ? job->devices[rank] : rank;
		double late = hk__sim_late_ns(sim, j, rank);

		*actor = (struct sim_actor){ .job = j,
					     .rank = rank,
					     .first_lane = *first_lane,
					     .nlanes = hk_plan_lanes(job->plan, rank),
					     .device = hk__fabric_device(sim->fabric, device),
					     .footprint = actor_footprint(job, rank),
					     .slow = hk__sim_slowness(sim, rank) };
		actor->lanes_left = actor->nlanes;
		*first_lane += actor->nlanes;
		actor_lanes(sim, *a);
		enum hk_status status = actor_core(sim, cores, actor, device);
		if (status != HK_OK)
			return status;
		hk__sim_note(sim, hk__events_push(&sim->events,
						  late + actor->slow * actor->device->call_ns / 2,
						  SIM_BEGINS, *a));
	}
	return sim->status;
}

static enum hk_status actors_make(struct sim *sim)
{
	struct hk__hash cores;
	uint32_t a = 0, first_lane = 0;
	enum hk_status status = HK_OK;

	sim->actors = hk__mem_zalloc(sim->alloc, sim->nactors, sizeof(*sim->actors));
	sim->cores = hk__mem_zalloc(sim->alloc, sim->nactors, sizeof(*sim->cores));
	sim->lanes = hk__mem_zalloc(sim->alloc, sim->nlanes, sizeof(*sim->lanes));
	if (!sim->actors || !sim->cores || !sim->lanes)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory for %u ranks", sim->nactors);
	hk__hash_init(&cores, sim->alloc);
	for (uint32_t j = 0; j < sim->njobs && status == HK_OK; j++)
		status = job_actors(sim, &cores, j, &a, &first_lane);
	hk__hash_fini(&cores);
	return status;
}

static void actors_count(struct sim *sim)
{
	uint64_t actors = 0, lanes = 0;

	for (uint32_t j = 0; j < sim->njobs; j++) {
		const struct hk_plan *plan = sim->jobs[j].plan;
		uint32_t count = sim->fold.copies > 1 ? sim->fold.classes : plan->n;

		actors += count;
		for (uint32_t c = 0; c < count; c++)
			lanes += hk_plan_lanes(plan, hk__fold_rank(&sim->fold, c));
	}
	sim->nactors = (uint32_t)actors;
	sim->nlanes = (uint32_t)lanes;
	if (actors >= HK_NONE || lanes >= HK_NONE)
		hk__sim_fail(sim, HK_ELIMIT, "%llu lanes: too many to be simulated",
			     (unsigned long long)lanes);
}

enum hk_status hk__sim_open(struct sim *sim)
{
	hk__array_init(&sim->chans, sim->alloc, sizeof(struct sim_chan));
	hk__array_init(&sim->route_list, sim->alloc, sizeof(struct flow_route *));
	hk__array_init(&sim->events.heap, sim->alloc, sizeof(struct event));
	hk__hash_init(&sim->chan_index, sim->alloc);
	hk__hash_init(&sim->signals, sim->alloc);
	hk__hash_init(&sim->link_index, sim->alloc);
	hk__hash_init(&sim->route_index, sim->alloc);
	hk__flows_init(&sim->flows, sim->alloc, sim->seed);
	sim->chans_swept = 0;
	sim->now = sim->skipped = sim->end_ns = sim->first_ns = 0;
	sim->events.order = 0;
	sim->counts = (struct sim_counts){ 0 };
	sim->nsteps = 0;
	sim->ncores = 0;
	actors_count(sim);
	if (sim->status == HK_OK)
		actors_make(sim);
	if (sim->opts->messages_max && sim->nsteps > sim->opts->messages_max)
		hk__sim_fail(sim, HK_ELIMIT, "%llu steps are more than the limit of %llu",
			     (unsigned long long)sim->nsteps,
			     (unsigned long long)sim->opts->messages_max);
	if (sim->status == HK_OK)
		hk__jump_open(sim);
	return sim->status;
}

void hk__sim_close(struct sim *sim)
{
	hk__jump_close(sim);
	hk__flows_fini(&sim->flows);
	hk__array_fini(&sim->chans);
	hk__array_fini(&sim->route_list);
	hk__array_fini(&sim->events.heap);
	hk__hash_fini(&sim->chan_index);
	hk__hash_fini(&sim->signals);
	hk__hash_fini(&sim->link_index);
	hk__hash_fini(&sim->route_index);
	hk__mem_free(sim->alloc, sim->actors, sim->nactors, sizeof(*sim->actors));
	hk__mem_free(sim->alloc, sim->cores, sim->nactors, sizeof(*sim->cores));
	hk__mem_free(sim->alloc, sim->lanes, sim->nlanes, sizeof(*sim->lanes));
	sim->actors = NULL;
	sim->cores = NULL;
	sim->lanes = NULL;
}
