/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jump.c - periods that are all alike are simulated once.
 *
 * A shot is everything that decides what happens next, with times relative to
 * now: what each lane is at, what each channel holds, what is on its way and how
 * much of it is left. If two shots are the same, and the steps that lie ahead are
 * those that lie between them, then all that happened in between happens again,
 * as often as there are such steps. These are asked for, not guessed.
 *
 * One lane is watched. At its 2^k-th step a shot is taken, and those after it are
 * held against it: a period of up to 2^k steps is found when it is there.
 */
#include "sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JUMP_NEAR 1e-9 /* relative to the period */
#define JUMP_STEPS 64u /* a lane that has fewer is not worth it */

struct mark {
	uint64_t key;
	double value;
};

struct shot {
	double now;
	size_t sweep;  /* channels keep their numbers until this changes */
	uint64_t seen; /* steps of the watched lane */
	size_t nevents, nflows, nchans;
	struct sim_counts counts;
	struct hk__array marks; /* struct mark */
	struct hk__array at;	/* uint64_t: positions of lanes */
	struct hk__array busy;	/* double: of lanes, then of links */
};

struct sim_jump {
	uint32_t lane;
	uint64_t at; /* its position when last looked at */
	uint64_t seen;
	bool shot_taken;
	struct shot first, later;
	bool failed;	/* memory ran out */
	bool comparing; /* marks are held against the first shot's */
	bool differs;	/* and one was another */
	double near;
	struct hk__array base; /* struct lane_step: those of one period */
};

static uint64_t lane_at(const struct sim_lane *lane)
{
	return (uint64_t)lane->slice * lane->nsteps + lane->at;
}

/* ---- shots ---- */

static void shot_init(struct shot *shot, const struct hk_alloc *alloc)
{
	hk__array_init(&shot->marks, alloc, sizeof(struct mark));
	hk__array_init(&shot->at, alloc, sizeof(uint64_t));
	hk__array_init(&shot->busy, alloc, sizeof(double));
}

static void shot_fini(struct shot *shot)
{
	hk__array_fini(&shot->marks);
	hk__array_fini(&shot->at);
	hk__array_fini(&shot->busy);
}

/* Whether mark i of the first shot is this one. */
static bool mark_agrees(const struct sim_jump *jump, size_t i, const struct mark *mark)
{
	const struct mark *was = (const struct mark *)jump->first.marks.items + i;

	return i < jump->first.marks.count && was->key == mark->key &&
	       fabs(was->value - mark->value) <= JUMP_NEAR * fmax(jump->near, fabs(was->value));
}

static void shot_mark(struct sim_jump *jump, struct shot *shot, uint64_t key, double value)
{
	if (jump->comparing &&
	    !mark_agrees(jump, shot->marks.count, &(struct mark){ key, value })) {
		jump->differs = true;
		return;
	}
	struct mark *mark = hk__array_push(&shot->marks);

	if (mark)
		*mark = (struct mark){ key, value };
	else
		jump->failed = true;
}

static void shot_number(struct sim_jump *jump, struct hk__array *array, uint64_t number)
{
	uint64_t *place = hk__array_push(array);

	if (place)
		*place = number;
	else
		jump->failed = true;
}

static void shot_busy(struct sim_jump *jump, struct shot *shot, double busy)
{
	double *place = hk__array_push(&shot->busy);

	if (place)
		*place = busy;
	else
		jump->failed = true;
}

static void shot_lanes(const struct sim *sim, struct sim_jump *jump, struct shot *shot)
{
	for (uint32_t l = 0; l < sim->nlanes && !jump->differs; l++) {
		const struct sim_lane *lane = &sim->lanes[l];
		bool queued = lane->state == LANE_WAITS_TURN;

		shot_mark(jump, shot, (uint64_t)lane->state << 32 | (queued ? lane->next_turn : 0),
			  lane->state == LANE_RUNS ? lane->end_ns - sim->now : 0);
		shot_number(jump, &shot->at, lane_at(lane));
		shot_busy(jump, shot, lane->busy_ns);
	}
	for (uint32_t i = 0; i < sim->ncores; i++)
		shot_mark(jump, shot, sim->cores[i].first_turn,
			  fmax(sim->cores[i].next_ns - sim->now, 0));
}

static void shot_chans(const struct sim *sim, struct sim_jump *jump, struct shot *shot)
{
	for (uint32_t i = 0; i < sim->chans.count && !jump->differs; i++) {
		const struct sim_chan *chan = sim_chan_at(sim, i);
		uint32_t turn = chan->head % 64;
		uint64_t arrived = chan->arrived >> turn;

		if (turn)
			arrived |= chan->arrived << (64 - turn);
		shot_mark(jump, shot, arrived, chan->tail - chan->head);
		for (uint32_t f = chan->crossing; f != HK_NONE; f = flow_at(&sim->flows, f)->behind)
			shot_mark(jump, shot, flow_at(&sim->flows, f)->seq - chan->head,
				  flow_at(&sim->flows, f)->bytes);
	}
}

static void shot_flows(const struct sim *sim, struct sim_jump *jump, struct shot *shot)
{
	for (const struct flow_route *route = sim->flows.routes; route && !jump->differs;
	     route = route->older) {
		if (route->flows == 0)
			continue;
		double level = route->level + route->rate * (sim->now - route->since);

		shot_mark(jump, shot, route->number, route->flows);
		for (uint32_t f = route->first; f != HK_NONE;) {
			const struct flow *flow = flow_at(&sim->flows, f);
			uint32_t nth = flow->seq - sim_chan_at(sim, flow->chan)->head;

			shot_mark(jump, shot, (uint64_t)flow->chan << 8 | nth,
				  flow->target - level);
			f = flow->next;
		}
	}
}

static int mark_compare(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* What is to begin, to leave and to arrive, in an order that means nothing else. */
static void shot_events(const struct sim *sim, struct sim_jump *jump, struct shot *shot)
{
	const struct event *events = sim->events.heap.items;
	size_t first = shot->marks.count;
	bool comparing = jump->comparing;

	/* In order only once all are there. */
	jump->comparing = false;
	for (size_t i = 0; i < sim->events.heap.count; i++) {
		uint64_t key = (uint64_t)(events[i].kind + 1) << 60;

		if (events[i].kind == SIM_STEP_OVER)
			continue;
		if (events[i].kind == SIM_BEGINS) {
			key |= events[i].id;
		} else {
			const struct flow *flow = flow_at(&sim->flows, events[i].id);

			key |= (uint64_t)flow->chan << 8 |
			       (flow->seq - sim_chan_at(sim, flow->chan)->head);
		}
		shot_mark(jump, shot, key, events[i].ns - sim->now);
	}
	jump->comparing = comparing;
	if (shot->marks.count > first)
		qsort((struct mark *)shot->marks.items + first, shot->marks.count - first,
		      sizeof(struct mark), mark_compare);
	for (size_t i = first; i < shot->marks.count && comparing && !jump->differs; i++)
		jump->differs = !mark_agrees(jump, i, (struct mark *)shot->marks.items + i);
}

/* With `comparing`, stops at the first thing that is another. */
static bool shot_take(struct sim *sim, struct shot *shot, bool comparing)
{
	struct sim_jump *jump = sim->jump;

	jump->comparing = comparing;
	jump->differs = false;
	jump->near = sim->now - jump->first.now;
	shot->now = sim->now;
	shot->sweep = sim->chans_swept;
	shot->seen = jump->seen;
	shot->nevents = sim->events.heap.count;
	shot->nflows = sim->flows.active;
	shot->nchans = sim->chans.count;
	shot->counts = sim->counts;
	shot->marks.count = shot->at.count = shot->busy.count = 0;
	shot_lanes(sim, jump, shot);
	if (!jump->differs)
		shot_chans(sim, jump, shot);
	if (!jump->differs)
		shot_flows(sim, jump, shot);
	if (!jump->differs)
		shot_events(sim, jump, shot);
	if (jump->differs || jump->failed)
		return false;
	hk__flows_account(&sim->flows, sim->now);
	for (uint32_t i = 0; i < sim->flows.links.count; i++)
		shot_busy(jump, shot, flow_link_at(&sim->flows, i)->busy_ns);
	return !jump->failed && (!comparing || shot->marks.count == jump->first.marks.count);
}

/* Whether it is worth looking at everything. */
static bool shot_may_agree(const struct sim *sim, const struct shot *first)
{
	return first->sweep == sim->chans_swept && first->nchans == sim->chans.count &&
	       first->nevents == sim->events.heap.count && first->nflows == sim->flows.active;
}

/* ---- how often ---- */

static bool steps_same(const struct lane_step *a, const struct lane_step *b)
{
	return a->op == b->op && a->keeps == b->keeps && a->count == b->count &&
	       a->from.rank == b->from.rank && a->from.lane == b->from.lane &&
	       a->to.rank == b->to.rank && a->to.lane == b->to.lane && a->after.lane == HK_NONE &&
	       b->after.lane == HK_NONE;
}

/*
 * The steps around a lane's own that are all the same; asked for once, as the
 * next slice has them again.
 */
static struct lane_run lane_run(const struct sim *sim, struct sim_lane *lane, uint32_t first)
{
	struct lane_step step, next;
	struct lane_run run = { first, first + 1 };

	for (uint32_t i = 0; i < LANE_RUNS_KEPT; i++)
		if (lane->runs[i].first <= first && lane->at < lane->runs[i].end)
			return lane->runs[i];
	hk__sim_step(sim, lane, first, &step);
	if (step.after.lane != HK_NONE)
		return run;
	while (run.end < lane->nsteps) {
		hk__sim_step(sim, lane, run.end, &next);
		if (!steps_same(&step, &next))
			break;
		run.end++;
	}
	lane->runs[lane->nruns++ % LANE_RUNS_KEPT] = run;
	return run;
}

/* How many periods of `moved` steps ahead of a lane are like the last, at most `most`. */
static uint64_t lane_periods(const struct sim *sim, struct sim_jump *jump, struct sim_lane *lane,
			     uint64_t moved, uint64_t most)
{
	uint64_t same = 0, wanted;

	if (lane->at < moved)
		return 0;
	uint32_t first = lane->at - (uint32_t)moved;
	/* The last one may be begun, and is not skipped. */
	if (most > (lane->nsteps - 1 - lane->at) / moved)
		most = (lane->nsteps - 1 - lane->at) / moved;
	struct lane_run run = lane_run(sim, lane, first);
	if (run.end > lane->at + moved && most > (run.end - 1 - lane->at) / moved)
		return (run.end - 1 - lane->at) / moved;
	if (run.end > lane->at + moved)
		return most;
	wanted = most * moved;
	jump->base.count = 0;
	for (uint64_t i = 0; i < moved; i++) {
		struct lane_step *step = hk__array_push(&jump->base);

		if (!step) {
			jump->failed = true;
			return 0;
		}
		hk__sim_step(sim, lane, first + (uint32_t)i, step);
	}
	const struct lane_step *base = jump->base.items;
	while (same <= wanted) {
		struct lane_step step;

		hk__sim_step(sim, lane, lane->at + (uint32_t)same, &step);
		if (!steps_same(&base[same % moved], &step))
			break;
		same++;
	}
	return same ? (same - 1) / moved : 0;
}

/* A lane that waits for a step of another is not to be passed by it. */
static uint64_t waiters_limit(const struct sim *sim, const uint64_t *was, uint64_t most)
{
	for (uint32_t l = 0; l < sim->nlanes; l++) {
		const struct sim_lane *lane = &sim->lanes[l];

		if (lane->state != LANE_WAITS_AFTER)
			continue;
		uint32_t o = sim->actors[lane->actor].first_lane + lane->step.after.lane;
		const struct sim_lane *other = &sim->lanes[o];
		uint64_t moved = lane_at(other) - was[o];
		uint64_t aim = (uint64_t)lane->slice * other->nsteps + lane->step.after.step;

		if (moved && aim >= lane_at(other) && (aim - lane_at(other)) / moved < most)
			most = (aim - lane_at(other)) / moved;
	}
	return most;
}

/* Whole slices of all lanes: how many each period has; 0: it is not that. */
static uint64_t whole_slices(const struct sim *sim, const uint64_t *was)
{
	uint64_t slices = 0;

	for (uint32_t l = 0; l < sim->nlanes; l++) {
		const struct sim_lane *lane = &sim->lanes[l];

		if (lane->nsteps == 0)
			continue;
		uint64_t moved = lane_at(lane) - was[l];
		if (moved == 0 || moved % lane->nsteps ||
		    (slices && moved / lane->nsteps != slices))
			return 0;
		slices = moved / lane->nsteps;
	}
	return slices;
}

static uint64_t slices_periods(const struct sim *sim, uint64_t slices)
{
	uint64_t most = UINT32_MAX;

	for (uint32_t l = 0; l < sim->nlanes; l++) {
		const struct sim_lane *lane = &sim->lanes[l];
		uint32_t all = sim->jobs[sim->actors[lane->actor].job].nslices;

		if (lane->nsteps && (all - 1 - lane->slice) / slices < most)
			most = (all - 1 - lane->slice) / slices;
	}
	return most;
}

static uint64_t steps_periods(struct sim *sim, const uint64_t *was)
{
	uint64_t most = waiters_limit(sim, was, UINT32_MAX);

	for (uint32_t l = 0; l < sim->nlanes && most > 0; l++) {
		uint64_t moved = lane_at(&sim->lanes[l]) - was[l];

		if (moved)
			most = lane_periods(sim, sim->jump, &sim->lanes[l], moved, most);
	}
	return most;
}

/* ---- the jump ---- */

static void counts_repeat(struct sim_counts *counts, const struct sim_counts *was, uint64_t times)
{
	counts->steps += times * (counts->steps - was->steps);
	counts->sent += times * (counts->sent - was->sent);
	counts->received += times * (counts->received - was->received);
	counts->sent_chunks += times * (counts->sent_chunks - was->sent_chunks);
	counts->received_chunks += times * (counts->received_chunks - was->received_chunks);
}

static void jump_do(struct sim *sim, const struct shot *from, uint64_t slices, uint64_t times)
{
	const uint64_t *was = from->at.items;
	const double *busy = from->busy.items;

	for (uint32_t l = 0; l < sim->nlanes; l++) {
		struct sim_lane *lane = &sim->lanes[l];

		lane->busy_ns += (double)times * (lane->busy_ns - busy[l]);
		if (slices && lane->nsteps)
			lane->slice += (uint32_t)(times * slices);
		else if (!slices)
			lane->at += (uint32_t)(times * (lane_at(lane) - was[l]));
	}
	for (uint32_t i = 0; i < sim->flows.links.count; i++) {
		struct flow_link *link = flow_link_at(&sim->flows, i);

		link->busy_ns += (double)times * (link->busy_ns - busy[sim->nlanes + i]);
	}
	counts_repeat(&sim->counts, &from->counts, times);
	sim->skipped += (double)times * (sim->now - from->now);
}

static void jump_compare(struct sim *sim)
{
	struct sim_jump *jump = sim->jump;
	const struct shot *first = &jump->first;

	if (!shot_may_agree(sim, first) || !shot_take(sim, &jump->later, true))
		return;
	uint64_t slices = whole_slices(sim, first->at.items);
	uint64_t times = slices ? slices_periods(sim, slices) : steps_periods(sim, first->at.items);
	if (jump->failed)
		return;
	if (times)
		jump_do(sim, first, slices, times);
	/* What comes now is something else; or there was nothing to skip. */
	jump->shot_taken = false;
	jump->seen = times ? 0 : jump->seen;
	jump->at = lane_at(&sim->lanes[jump->lane]);
}

void hk__jump_look(struct sim *sim)
{
	struct sim_jump *jump = sim->jump;
	const struct sim_lane *lane = &sim->lanes[jump->lane];

	if (lane->state == LANE_OVER || lane_at(lane) == jump->at)
		return;
	jump->at = lane_at(lane);
	jump->seen++;
	if (!jump->shot_taken || jump->seen >= 2 * jump->first.seen)
		jump->shot_taken = jump->seen >= 4 && shot_take(sim, &jump->first, false);
	else
		jump_compare(sim);
	if (jump->failed)
		hk__sim_fail(sim, HK_ENOMEM, "no memory to look for periods");
}

enum hk_status hk__jump_open(struct sim *sim)
{
	uint32_t best = 0, l = 0;

	if (sim->random || sim->opts->full || sim->opts->jitter > 0 || sim->opts->event ||
	    sim->tuning.no_jump || sim->nlanes == 0 || sim->opts->calls > 1 ||
	    hk__fabric_cores_shared(sim->fabric))
		return HK_OK;
	/* Signals are no part of what periods are compared by. */
	for (uint32_t j = 0; j < sim->njobs; j++)
		if (sim->jobs[j].plan->signals != HK_SIGNALS_NONE)
			return HK_OK;
	for (; l < sim->nlanes; l++)
		if (sim->lanes[l].nsteps > sim->lanes[best].nsteps)
			best = l;
	uint32_t slices = sim->jobs[sim->actors[sim->lanes[best].actor].job].nslices;
	if ((uint64_t)sim->lanes[best].nsteps * slices < JUMP_STEPS)
		return HK_OK;
	struct sim_jump *jump = hk__mem_zalloc(sim->alloc, 1, sizeof(*jump));
	if (!jump)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory to look for periods");
	jump->lane = best;
	shot_init(&jump->first, sim->alloc);
	shot_init(&jump->later, sim->alloc);
	hk__array_init(&jump->base, sim->alloc, sizeof(struct lane_step));
	sim->jump = jump;
	return HK_OK;
}

void hk__jump_close(struct sim *sim)
{
	if (!sim->jump)
		return;
	shot_fini(&sim->jump->first);
	shot_fini(&sim->jump->later);
	hk__array_fini(&sim->jump->base);
	hk__mem_free(sim->alloc, sim->jump, 1, sizeof(*sim->jump));
	sim->jump = NULL;
}
