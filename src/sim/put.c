/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put.c - puts and signals in virtual time: where they land, and who waits for them.
 *
 * A put is a message that nobody receives: it costs its sender, its wire and its links
 * what a message of its size costs, and its target nothing. A signal is a put of a word;
 * it lands after all that its lane put to that rank before, also where it is weak. A
 * wait costs a step, once it has what it waits for. Each slice has signals of its own.
 */
#include "sim/sim.h"

#include <math.h>

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
