/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - lanes step by step in virtual time.
 *
 * A step begins when the step before it is over, the step it comes after is over,
 * its message is there, the channel it sends on has a free slot and, where lanes
 * take turns, it is its turn. It takes hk__cost_step(). What it sends leaves
 * when it is over, and what it received keeps its slot until then. A put and a signal
 * leave as messages do, and arrive without a step of the rank they go to (put.c).
 */
#include "sim/chance.h"
#include "sim/engine.h"

#include <math.h>

static void lane_try(struct sim *sim, uint32_t l);

/* What a signal takes of a link. */
#define SIGNAL_BYTES 8.0

/* ---- steps ---- */

/* Where a step's messages go to and come from, folded ranks normalised. */
static void lane_bind(struct sim *sim, struct sim_lane *lane, const struct lane_step *last)
{
	const struct sim_actor *actor = &sim->actors[lane->actor];
	const struct sim_job *job = &sim->jobs[actor->job];
	const struct lane_step *step = &lane->step;

	if (step->from.rank == HK_NONE)
		lane->from = HK_NONE;
	else if (lane->from == HK_NONE || step->from.rank != last->from.rank ||
		 step->from.lane != last->from.lane)
		lane->from = hk__sim_chan(sim, lane->actor, lane->lane, step->from.rank,
					  step->from.lane);
	if (step->to.rank == HK_NONE) {
		lane->to = HK_NONE;
	} else if (lane->to == HK_NONE || step->to.rank != last->to.rank ||
		   step->to.lane != last->to.lane) {
		uint32_t class_of, from;

		hk__fold_normalise(&sim->fold, actor->rank, step->to.rank, &class_of, &from);
		lane->to = hk__sim_chan(sim, job->first_actor + class_of, step->to.lane, from,
					lane->lane);
	}
}

static void lane_load(struct sim *sim, struct sim_lane *lane)
{
	const struct sim_actor *actor = &sim->actors[lane->actor];
	const struct hk_plan *plan = sim->jobs[actor->job].plan;
	struct lane_step last = lane->step;

	if (plan->store) {
		struct hk_step step;
		const char *fault;

		hk_plan_step(plan, actor->rank, lane->lane, lane->at, &step);
		fault = hk__step_fault(plan, actor->rank, &step);
		if (fault) {
			hk__sim_fail(sim, HK_EREFUSED, "rank %u lane %u step %u %s", actor->rank,
				     lane->lane, lane->at, fault);
			return;
		}
	}
	hk__sim_step(sim, lane, lane->at, &lane->step);
	lane_bind(sim, lane, &last);
}

static uint32_t chan_wire(const struct sim *sim, uint32_t chan)
{
	return chan == HK_NONE ? HK_NONE : sim_chan_at(sim, chan)->route->wire;
}

/* Whether the message that is next was written during the operation. */
static bool chan_is_fresh(const struct sim_chan *chan)
{
	return chan->fresh >> chan->head % 64 & 1;
}

/* The message that a step is about to send. */
static void chan_begin(struct sim_chan *chan, bool fresh)
{
	uint64_t bit = UINT64_C(1) << chan->tail % 64;

	chan->fresh = fresh ? chan->fresh | bit : chan->fresh & ~bit;
	chan->tail++;
}

static double step_bytes(const struct sim *sim, const struct sim_lane *lane)
{
	if (lane->step.op == HK_OP_SIGNAL)
		return SIGNAL_BYTES;
	return lane->step.count * sim->jobs[sim->actors[lane->actor].job].chunk;
}

static double lane_cost(struct sim *sim, uint32_t l)
{
	struct sim_lane *lane = &sim->lanes[l];
	const struct sim_actor *actor = &sim->actors[lane->actor];
	const struct lane_step *step = &lane->step;
	const struct hk__wire *wires = sim->fabric->wires;
	uint32_t in = chan_wire(sim, lane->from), out = chan_wire(sim, lane->to);
	bool fresh = lane->from != HK_NONE && chan_is_fresh(sim_chan_at(sim, lane->from));

	if (lane->cost.op != step->op || lane->cost.keeps != step->keeps ||
	    lane->cost.fresh != fresh || lane->cost.cold == step->fresh ||
	    lane->cost.count != step->count || lane->cost.in != in || lane->cost.out != out) {
		struct hk__step_shape shape = { .op = step->op,
						.keeps = step->keeps,
						.fresh = fresh,
						.cold = !step->fresh,
						.ahead = lane->ahead,
						.bytes = step_bytes(sim, lane),
						.footprint = actor->footprint };

		lane->cost.op = step->op;
		lane->cost.keeps = step->keeps;
		lane->cost.fresh = fresh;
		lane->cost.cold = !step->fresh;
		lane->cost.count = step->count;
		lane->cost.in = in;
		lane->cost.out = out;
		lane->cost.ns = actor->slow *
				hk__cost_step(actor->device, in == HK_NONE ? NULL : &wires[in],
					      out == HK_NONE ? NULL : &wires[out], &shape);
	}
	if (sim->opts->jitter == 0)
		return lane->cost.ns;
	uint64_t place = (uint64_t)lane->slice << 32 | lane->at;
	return lane->cost.ns *
	       (1 + sim->opts->jitter * hk__chance_half_normal(sim->seed, l, place));
}

static bool lane_is_after(const struct sim *sim, const struct sim_lane *lane)
{
	const struct hk_after *after = &lane->step.after;

	if (after->lane == HK_NONE)
		return true;
	const struct sim_lane *other =
		&sim->lanes[sim->actors[lane->actor].first_lane + after->lane];
	return other->slice > lane->slice ||
	       (other->slice == lane->slice && other->at > after->step);
}

static bool chan_has_message(const struct sim_chan *chan)
{
	return chan->head != chan->tail && (chan->arrived >> chan->head % 64 & 1);
}

static void lane_begin(struct sim *sim, uint32_t l)
{
	struct sim_lane *lane = &sim->lanes[l];
	const struct sim_actor *actor = &sim->actors[lane->actor];
	struct sim_core *core = &sim->cores[actor->core];
	double ns = lane_cost(sim, l);

	/* Who comes first finds the core its own. */
	if (core->device != actor->number && core->device != HK_NONE)
		ns += actor->device->switch_ns;
	core->device = actor->number;
	if (lane->to != HK_NONE)
		chan_begin(sim_chan_at(sim, lane->to), lane->step.fresh);
	lane->state = LANE_RUNS;
	lane->begin_ns = sim->now;
	lane->end_ns = hk__tick(sim->now + ns);
	lane->busy_ns += ns;
	core->busy_ns += ns;
	if (!hk__events_push(&sim->events, lane->end_ns, SIM_STEP_OVER, l))
		hk__sim_fail(sim, HK_ENOMEM, "no memory for events");
}

static void lane_queue(struct sim *sim, struct sim_core *core, uint32_t l)
{
	sim->lanes[l].state = LANE_WAITS_TURN;
	sim->lanes[l].next_turn = HK_NONE;
	if (core->last_turn == HK_NONE)
		core->first_turn = l;
	else
		sim->lanes[core->last_turn].next_turn = l;
	core->last_turn = l;
}

static void lane_try(struct sim *sim, uint32_t l)
{
	struct sim_lane *lane = &sim->lanes[l];
	const struct sim_actor *actor = &sim->actors[lane->actor];
	struct sim_core *core = &sim->cores[actor->core];

	if (!lane_is_after(sim, lane)) {
		lane->state = LANE_WAITS_AFTER;
		return;
	}
	if (lane->from != HK_NONE && !chan_has_message(sim_chan_at(sim, lane->from))) {
		lane->state = LANE_WAITS_MESSAGE;
		return;
	}
	if (lane->step.signals && !hk__sim_signalled(sim, lane)) {
		lane->state = LANE_WAITS_SIGNAL;
		return;
	}
	if (lane->to != HK_NONE) {
		const struct sim_chan *to = sim_chan_at(sim, lane->to);

		if (to->tail - to->head >= to->slots) {
			lane->state = LANE_WAITS_SLOT;
			return;
		}
	}
	if (!actor->device->serial) {
		lane_begin(sim, l);
	} else if (core->busy || core->first_turn != HK_NONE) {
		lane_queue(sim, core, l);
	} else {
		core->busy = true;
		lane_begin(sim, l);
	}
}

/* ---- messages ---- */

static void message_event(struct sim *sim, double ns, enum sim_event_kind kind, uint32_t flow)
{
	hk__sim_note(sim, hk__events_push(&sim->events, ns, kind, flow));
}

/* All of it has crossed; the rest is delay. */
static void message_through(struct sim *sim, uint32_t number)
{
	struct flow *flow = flow_at(&sim->flows, number);
	struct sim_chan *chan = sim_chan_at(sim, flow->chan);
	const struct hk__wire *wire = &sim->fabric->wires[chan->route->wire];
	double bytes = flow->bytes / fmax(wire->overhead, 1);

	if (chan->loss > 0 && hk__chance_unit(sim->seed, sim->events.order, number) < chan->loss) {
		message_event(sim, sim->now + chan->again_ns, SIM_LEAVES, number);
		return;
	}
	double ns = sim->now + hk__curve_at(&wire->flight_ns, bytes) + chan->delay_ns;
	if (chan->reaches != HK_NONE)
		ns = hk__sim_put_lands(chan, ns);
	message_event(sim, ns, SIM_ARRIVES, number);
}

/*
 * Messages of a channel cross one after the other, as those of a connection do:
 * if they shared the way, all would be through at the end, and nothing would be
 * sent while the last slot is given back.
 */
static void message_leave(struct sim *sim, uint32_t number)
{
	struct flow *flow = flow_at(&sim->flows, number);
	struct sim_chan *chan = sim_chan_at(sim, flow->chan);

	flow->behind = HK_NONE;
	if (!(flow->bytes > 0) || flow->route->nlegs == 0) {
		message_through(sim, number);
	} else if (chan->crossing != HK_NONE) {
		flow_at(&sim->flows, chan->last)->behind = number;
		chan->last = number;
	} else {
		chan->crossing = chan->last = number;
		hk__sim_note(sim, hk__flows_start(&sim->flows, number, sim->now));
	}
}

/* The first of a route is through, and the next of its channel begins. */
static void message_end(struct sim *sim, struct flow_route *route)
{
	uint32_t number;

	if (!hk__flows_end(&sim->flows, route, sim->now, &number)) {
		hk__sim_note(sim, false);
		return;
	}
	const struct flow *flow = flow_at(&sim->flows, number);
	struct sim_chan *chan = sim_chan_at(sim, flow->chan);
	chan->crossing = flow->behind;
	if (chan->crossing == HK_NONE)
		chan->last = HK_NONE;
	else
		hk__sim_note(sim, hk__flows_start(&sim->flows, chan->crossing, sim->now));
	message_through(sim, number);
}

static void message_send(struct sim *sim, uint32_t l)
{
	const struct sim_lane *lane = &sim->lanes[l];
	const struct sim_actor *actor = &sim->actors[lane->actor];
	const struct sim_chan *chan = sim_chan_at(sim, lane->to);
	const struct hk__wire *wire = &sim->fabric->wires[chan->route->wire];
	struct sim_core *core = &sim->cores[actor->core];
	uint32_t number = hk__flows_add(&sim->flows);

	sim->counts.sent++;
	sim->counts.sent_chunks += lane->step.count;
	if (number == HK_NONE) {
		hk__sim_note(sim, false);
		return;
	}
	struct flow *flow = flow_at(&sim->flows, number);
	flow->bytes = step_bytes(sim, lane) * fmax(wire->overhead, 1);
	flow->count = lane->step.count;
	flow->signal = lane->step.signal;
	flow->route = chan->route;
	flow->chan = lane->to;
	flow->seq = chan->tail - 1;
	flow->lane = l;
	flow->step = lane->at;
	flow->slice = lane->slice;
	flow->left_ns = fmax(sim->now, core->next_ns);
	core->next_ns = hk__tick(flow->left_ns + wire->gap_ns);
	if (flow->left_ns > sim->now)
		message_event(sim, flow->left_ns, SIM_LEAVES, number);
	else
		message_leave(sim, number);
}

/* No lane takes it; those that wait for a signal look again. */
static void put_arrive(struct sim *sim, const struct flow *flow, uint32_t a)
{
	const struct sim_actor *actor = &sim->actors[a];

	if (!hk__sim_put_landed(sim, flow))
		return;
	for (uint32_t i = 0; i < actor->nlanes; i++)
		if (sim->lanes[actor->first_lane + i].state == LANE_WAITS_SIGNAL)
			lane_try(sim, actor->first_lane + i);
}

static void message_arrive(struct sim *sim, uint32_t number)
{
	struct flow flow = *flow_at(&sim->flows, number);
	struct sim_chan *chan = sim_chan_at(sim, flow.chan);
	uint32_t to = chan->to;

	hk__sim_tell_message(sim, &flow);
	hk__flows_drop(&sim->flows, number);
	if (chan->reaches != HK_NONE) {
		put_arrive(sim, &flow, chan->reaches);
		return;
	}
	chan->arrived |= UINT64_C(1) << flow.seq % 64;
	if (sim->lanes[to].state == LANE_WAITS_MESSAGE && sim->lanes[to].from == flow.chan)
		lane_try(sim, to);
}

/* ---- the end of a step ---- */

static void step_release(struct sim *sim, const struct sim_lane *lane)
{
	struct sim_chan *chan = sim_chan_at(sim, lane->from);
	uint32_t from = chan->from;

	sim->counts.received++;
	sim->counts.received_chunks += lane->step.count;
	chan->arrived &= ~(UINT64_C(1) << chan->head % 64);
	chan->head++;
	if (sim->lanes[from].state == LANE_WAITS_SLOT && sim->lanes[from].to == lane->from)
		lane_try(sim, from);
}

/* Who is next: one of the rank that had its turn, which goes on while it can, or the first. */
static uint32_t core_pick(const struct sim *sim, const struct sim_core *core, uint32_t *before_out)
{
	uint32_t before = HK_NONE;

	*before_out = HK_NONE;
	for (uint32_t l = core->first_turn; l != HK_NONE; l = sim->lanes[l].next_turn) {
		if (sim->actors[sim->lanes[l].actor].number == core->device) {
			*before_out = before;
			return l;
		}
		before = l;
	}
	return core->first_turn;
}

static void core_next(struct sim *sim, struct sim_core *core)
{
	uint32_t before, l = core_pick(sim, core, &before);

	core->busy = l != HK_NONE;
	if (l == HK_NONE)
		return;
	if (before == HK_NONE)
		core->first_turn = sim->lanes[l].next_turn;
	else
		sim->lanes[before].next_turn = sim->lanes[l].next_turn;
	if (core->last_turn == l)
		core->last_turn = before;
	lane_begin(sim, l);
}

static void lane_end(struct sim *sim, struct sim_lane *lane)
{
	struct sim_actor *actor = &sim->actors[lane->actor];

	lane->state = LANE_OVER;
	lane->from = lane->to = HK_NONE;
	if (--actor->lanes_left == 0) {
		actor->end_ns = sim->now + sim->skipped + actor->slow * actor->device->call_ns / 2;
		sim->end_ns = fmax(sim->end_ns, actor->end_ns);
	}
}

/* A call is over when all lanes are; the next one begins then. */
static void lane_pause(struct sim *sim, struct sim_lane *lane)
{
	struct sim_actor *actor = &sim->actors[lane->actor];
	double ns = actor->slow * actor->device->call_ns;

	lane->state = LANE_WAITS_CALL;
	lane->from = lane->to = HK_NONE;
	if (++actor->lanes_ready < actor->lanes_left)
		return;
	if (!actor->called)
		sim->first_ns = fmax(sim->first_ns, sim->now + ns / 2);
	actor->called = true;
	hk__sim_note(sim, hk__events_push(&sim->events, sim->now + ns, SIM_CALLS, lane->actor));
}

static void actor_call(struct sim *sim, uint32_t a)
{
	struct sim_actor *actor = &sim->actors[a];

	actor->lanes_ready = 0;
	for (uint32_t i = 0; i < actor->nlanes; i++)
		if (sim->lanes[actor->first_lane + i].state == LANE_WAITS_CALL)
			lane_load(sim, &sim->lanes[actor->first_lane + i]);
	for (uint32_t i = 0; i < actor->nlanes && sim->status == HK_OK; i++)
		if (sim->lanes[actor->first_lane + i].state == LANE_WAITS_CALL)
			lane_try(sim, actor->first_lane + i);
}

/* To the next step of the slice, the next slice, or the end. */
static void lane_advance(struct sim *sim, uint32_t l)
{
	struct sim_lane *lane = &sim->lanes[l];
	const struct sim_actor *actor = &sim->actors[lane->actor];

	if (++lane->at == lane->nsteps) {
		lane->at = 0;
		lane->slice++;
	}
	bool over = lane->slice == sim->jobs[actor->job].nslices;
	if (over)
		lane_end(sim, lane);
	else if (lane->at == 0 && lane->slice % sim->jobs[actor->job].call_slices == 0)
		lane_pause(sim, lane);
	else
		lane_load(sim, lane);
	for (uint32_t i = 0; i < actor->nlanes && actor->nlanes > 1; i++) {
		uint32_t other = actor->first_lane + i;

		if (sim->lanes[other].state == LANE_WAITS_AFTER && other != l)
			lane_try(sim, other);
	}
	if (!over && lane->state != LANE_WAITS_CALL && sim->status == HK_OK)
		lane_try(sim, l);
}

static void step_over(struct sim *sim, uint32_t l)
{
	struct sim_lane *lane = &sim->lanes[l];
	const struct sim_actor *actor = &sim->actors[lane->actor];

	sim->counts.steps++;
	hk__sim_tell_step(sim, l);
	lane->state = LANE_WAITS_START; /* nobody is to wake it in between */
	if (lane->from != HK_NONE)
		step_release(sim, lane);
	if (lane->to != HK_NONE)
		message_send(sim, l);
	/* Its own next step takes its turn, too, before that of another rank. */
	lane_advance(sim, l);
	if (actor->device->serial && sim->status == HK_OK)
		core_next(sim, &sim->cores[actor->core]);
}

static void actor_begin(struct sim *sim, uint32_t a)
{
	struct sim_actor *actor = &sim->actors[a];

	for (uint32_t i = 0; i < actor->nlanes; i++) {
		struct sim_lane *lane = &sim->lanes[actor->first_lane + i];

		if (lane->nsteps == 0) {
			/* For those who come after it, it has passed everything. */
			lane->slice = sim->jobs[actor->job].nslices;
			lane_end(sim, lane);
		} else {
			lane_load(sim, lane);
		}
	}
	if (actor->nlanes == 0)
		sim->end_ns = fmax(sim->end_ns, sim->now + sim->skipped);
	for (uint32_t i = 0; i < actor->nlanes && sim->status == HK_OK; i++)
		if (sim->lanes[actor->first_lane + i].state == LANE_WAITS_START)
			lane_try(sim, actor->first_lane + i);
}

/* ---- the loop ---- */

static void event_do(struct sim *sim, const struct event *event)
{
	switch ((enum sim_event_kind)event->kind) {
	case SIM_BEGINS:
		actor_begin(sim, event->id);
		break;
	case SIM_CALLS:
		actor_call(sim, event->id);
		break;
	case SIM_STEP_OVER:
		step_over(sim, event->id);
		break;
	case SIM_LEAVES:
		message_leave(sim, event->id);
		break;
	case SIM_ARRIVES:
		message_arrive(sim, event->id);
		break;
	}
}

/* The next thing up to a time; false if there is none. */
static bool next_do(struct sim *sim, double limit)
{
	const struct event *next = hk__events_next(&sim->events);
	struct flow_route *route = hk__flows_next(&sim->flows);

	if (route && route->end_ns <= limit && (!next || route->end_ns <= next->ns)) {
		sim->now = fmax(sim->now, route->end_ns);
		message_end(sim, route);
		return true;
	}
	if (!next || !(next->ns <= limit))
		return false;
	struct event event;
	hk__events_pop(&sim->events, &event);
	sim->now = fmax(sim->now, event.ns);
	event_do(sim, &event);
	return true;
}

static double next_ns(const struct sim *sim)
{
	const struct event *next = hk__events_next(&sim->events);
	const struct flow_route *route = hk__flows_next(&sim->flows);

	return fmin(next ? next->ns : INFINITY, route ? route->end_ns : INFINITY);
}

enum hk_status hk__sim_perform(struct sim *sim)
{
	uint64_t told = 0;

	for (;;) {
		double ns = next_ns(sim);

		if (sim->status != HK_OK || !(ns < INFINITY))
			break;
		uint64_t steps = sim->counts.steps;
		while (sim->status == HK_OK && next_do(sim, ns))
			;
		hk__sim_note(sim, hk__flows_solve(&sim->flows, sim->now));
		if (sim->jump && sim->counts.steps != steps && sim->status == HK_OK)
			hk__jump_look(sim);
		if (sim->opts->progress && sim->counts.steps - told > 1u << 18) {
			told = sim->counts.steps;
			sim->opts->progress(sim->opts->ctx,
					    (double)told / fmax((double)sim->nsteps, 1));
		}
	}
	hk__flows_account(&sim->flows, sim->now);
	return sim->status == HK_OK ? hk__sim_check(sim) : sim->status;
}
