/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chan.c - channels, made when a step first names them. Those that hold nothing
 * and that no lane stands at are thrown out when there are many: an alltoall
 * has one for every pair.
 */
#include "sim/sim.h"

#include <math.h>
#define CHANS_SWEEP 65536u /* no sweep before so many */

static uint32_t chan_slots(const struct sim *sim, const struct hk_plan *plan, uint32_t wire)
{
	uint32_t slots = hk__max(sim->fabric->wires[wire].cut.slots, plan->slots);

	return hk__min(hk__max(slots, 1), HK_SLOTS_MAX);
}

static enum hk_status chan_make(struct sim *sim, uint32_t actor, uint32_t lane, uint32_t from_rank,
				uint32_t from_lane, struct sim_chan *chan)
{
	const struct sim_actor *to = &sim->actors[actor];
	const struct sim_job *job = &sim->jobs[to->job];
	bool puts = lane == SIM_PUT_LANE;
	uint32_t sender = job->first_actor + hk__fold_class(&sim->fold, from_rank);

	if ((lane >= to->nlanes && !puts) || from_lane >= sim->actors[sender].nlanes)
		return hk__sim_fail(
			sim, HK_EREFUSED,
			"a message from rank %u lane %u to rank %u lane %u: there is no such lane",
			from_rank, from_lane, to->rank, lane);
	chan->from = sim->actors[sender].first_lane + from_lane;
	chan->to = puts ? HK_NONE : to->first_lane + lane;
	chan->reaches = puts ? actor : HK_NONE;
	chan->last_ns = 0;
	enum hk_status status =
		hk__sim_route(sim, job->devices ? job->devices[from_rank] : from_rank,
			      job->devices ? job->devices[to->rank] : to->rank, chan);
	if (status == HK_OK)
		/* Puts need none. */
		chan->slots = puts ? UINT32_MAX : chan_slots(sim, job->plan, chan->route->wire);
	return status;
}

static bool chan_idle(const struct sim_chan *chan)
{
	return chan->head == chan->tail;
}

static void route_drop(struct sim *sim, struct flow_route *route)
{
	/* Shared ones are few, and stay. */
	if (--route->refs == 0 && route->flows == 0 && !route->dirty)
		hk__flows_drop_route(&sim->flows, route);
}

static void chans_renumber(struct sim *sim, const uint32_t *moved)
{
	for (uint32_t l = 0; l < sim->nlanes; l++) {
		struct sim_lane *lane = &sim->lanes[l];

		lane->from = lane->from == HK_NONE ? HK_NONE : moved[lane->from];
		lane->to = lane->to == HK_NONE ? HK_NONE : moved[lane->to];
	}
	for (uint32_t i = 0; i < sim->flows.items.count; i++) {
		struct flow *flow = flow_at(&sim->flows, i);

		if (flow->route)
			flow->chan = moved[flow->chan];
	}
}

/* Keeps the channels that hold something or that a lane is at. */
static enum hk_status chans_sweep(struct sim *sim)
{
	size_t count = sim->chans.count, kept = 0;
	uint32_t *moved = hk__mem_zalloc(sim->alloc, count, sizeof(*moved));

	if (!moved)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory for %zu channels", count);
	for (uint32_t l = 0; l < sim->nlanes; l++) {
		if (sim->lanes[l].from != HK_NONE)
			moved[sim->lanes[l].from] = 1;
		if (sim->lanes[l].to != HK_NONE)
			moved[sim->lanes[l].to] = 1;
	}
	hk__hash_fini(&sim->chan_index);
	hk__hash_init(&sim->chan_index, sim->alloc);
	enum hk_status status = HK_OK;
	for (uint32_t i = 0; i < count; i++) {
		struct sim_chan chan = *sim_chan_at(sim, i);

		if (chan_idle(&chan) && !moved[i]) {
			route_drop(sim, chan.route);
			continue;
		}
		struct hk__hash_entry *entry =
			hk__hash_get(&sim->chan_index, chan.key[0], chan.key[1]);
		if (!entry)
			status = HK_ENOMEM;
		else
			entry->value = (uint32_t)kept;
		moved[i] = (uint32_t)kept;
		*sim_chan_at(sim, (uint32_t)kept++) = chan;
	}
	sim->chans.count = kept;
	chans_renumber(sim, moved);
	hk__mem_free(sim->alloc, moved, count, sizeof(*moved));
	sim->chans_swept = hk__max((uint32_t)(2 * kept), CHANS_SWEEP);
	if (status != HK_OK)
		return hk__sim_fail(sim, status, "no memory for %zu channels", kept);
	return HK_OK;
}

uint32_t hk__sim_chan(struct sim *sim, uint32_t actor, uint32_t lane, uint32_t from_rank,
		      uint32_t from_lane)
{
	uint64_t key0 = (uint64_t)actor << 32 | from_rank, key1 = (uint64_t)from_lane << 32 | lane;

	if (sim->chans.count >= hk__max((uint32_t)sim->chans_swept, CHANS_SWEEP) &&
	    chans_sweep(sim) != HK_OK)
		return HK_NONE;
	struct hk__hash_entry *entry = hk__hash_get(&sim->chan_index, key0, key1);
	if (entry && entry->value != HK_NONE)
		return entry->value;
	struct sim_chan *chan = entry ? hk__array_push(&sim->chans) : NULL;
	if (!chan) {
		hk__sim_fail(sim, HK_ENOMEM, "no memory for %zu channels", sim->chans.count);
		return HK_NONE;
	}
	chan->crossing = chan->last = HK_NONE;
	chan->key[0] = key0;
	chan->key[1] = key1;
	entry->value = (uint32_t)sim->chans.count - 1;
	uint32_t number = entry->value;
	if (chan_make(sim, actor, lane, from_rank, from_lane, chan) != HK_OK)
		return HK_NONE;
	chan->route->refs++;
	return number;
}

/* ---- puts and signals: where they land, and who waits for them ----
 *
 * A put is a message that nobody receives: it costs its sender, its wire and its links
 * what a message of its size costs, and its target nothing. A signal is a put of a word;
 * it lands after all that its lane put to that rank before, also where it is weak. A
 * wait costs a step, once it has what it waits for. Each slice has signals of its own.
 */

static uint64_t signal_key(uint32_t actor, uint32_t number)
{
	return (uint64_t)actor << 32 | number;
}

double hk__sim_put_lands(struct sim_chan *chan, double ns)
{
	chan->last_ns = fmax(chan->last_ns, ns);
	return chan->last_ns;
}

bool hk__sim_put_landed(struct sim *sim, const struct flow *flow)
{
	struct sim_chan *chan = sim_chan_at(sim, flow->chan);

	sim->counts.received++;
	sim->counts.received_chunks += flow->count;
	chan->head++;
	if (flow->signal == HK_NONE)
		return false;
	struct hk__hash_entry *entry =
		hk__hash_get(&sim->signals, signal_key(chan->reaches, flow->signal), flow->slice);
	if (!entry) {
		hk__sim_fail(sim, HK_ENOMEM, "no memory for signals");
		return false;
	}
	entry->value = entry->value == HK_NONE ? 1 : entry->value + 1;
	return true;
}

bool hk__sim_signalled(const struct sim *sim, const struct sim_lane *lane)
{
	const struct hk__hash_entry *entry =
		hk__hash_find(&sim->signals, signal_key(lane->actor, lane->step.signal),
			      lane->slice);

	return entry && entry->value != HK_NONE && entry->value >= lane->step.signals;
}
