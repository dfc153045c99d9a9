/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.c - puts and signals on their way, in whatever order they may land.
 *
 * A put may land at any time after its issue. A strong signal lands after all that its
 * lane issued to the same rank before; a weak one after the step before it, if that is a
 * put to the same rank. A put reads its source at its issue, or when it lands: both can
 * happen. What nobody may rely on is a fault: to reach a rank's output before it has
 * begun, or anything of it after it has ended.
 */
#include "harness.h"
#include "naive/machine.h"

static struct flight *flight_at(const struct naive *m, size_t i)
{
	return (struct flight *)m->flights.items + i;
}

static struct word *word_at(const struct naive *m, size_t i)
{
	return (struct word *)m->words.items + i;
}

static const struct hk_step *flight_step(const struct naive *m, const struct flight *flight)
{
	return &step_at(m, lane_at(m, flight->lane)->first + flight->step)->step;
}

static bool *reached_at(const struct naive *m, uint32_t from, uint32_t to)
{
	return (bool *)m->reached.items + (size_t)from * m->info.nranks + to;
}

static void words_clear(struct naive *m)
{
	for (size_t i = 0; i < m->words.count; i++)
		free(word_at(m, i)->chains.items);
	m->words.count = 0;
}

void flight_reset(struct naive *m)
{
	m->flights.count = 0;
	m->issued = 0;
	words_clear(m);
	m->reached.count = 0;
	if (!m->info.signals)
		return;
	pool_add(&m->reached, (size_t)m->info.nranks * m->info.nranks);
	memset(m->reached.items, 0, m->reached.count * sizeof(bool));
}

void flight_free(struct naive *m)
{
	words_clear(m);
	free(m->words.items);
	free(m->flights.items);
	free(m->reached.items);
}

static struct word *word_get(struct naive *m, uint32_t rank, uint32_t number)
{
	for (size_t i = 0; i < m->words.count; i++)
		if (word_at(m, i)->rank == rank && word_at(m, i)->number == number)
			return word_at(m, i);
	struct word *word = word_at(m, pool_add(&m->words, 1));

	*word = (struct word){ .rank = rank,
			       .number = number,
			       .chains.item_size = sizeof(uint32_t) };
	return word;
}

/* ---- steps ---- */

bool flight_waited(struct naive *m, const struct lane *lane, const struct hk_step *step)
{
	/* What is not there is a fault: let it start and be found. */
	if (step->from.rank != lane->rank)
		return true;
	return word_get(m, lane->rank, step->from.lane)->count >= step->count;
}

uint32_t flight_chain(struct naive *m, const struct lane *lane, const struct hk_step *step)
{
	const struct word *word = word_get(m, lane->rank, step->from.lane);

	if (step->count == 0 || step->count > word->chains.count)
		return 0;
	return ((uint32_t *)word->chains.items)[step->count - 1];
}

static bool start_wait(struct naive *m, const struct lane *lane, const struct hk_step *step)
{
	if (step->from.rank != lane->rank || step->from.lane >= HK_SIGNALS_MAX || step->count == 0)
		return machine_fault(m, lane, NAIVE_RANGE);
	struct word *word = word_get(m, lane->rank, step->from.lane);
	if (word->waited < step->count)
		word->waited = step->count;
	return true;
}

bool flight_start(struct naive *m, struct lane *lane, const struct hk_step *step)
{
	bool puts = step->op == HK_OP_PUT;

	if (step->op == HK_OP_WAIT)
		return start_wait(m, lane, step);
	if (step->to.rank >= m->info.nranks || step->to.rank == lane->rank ||
	    step->to.lane >= (puts ? 1 : HK_SIGNALS_MAX))
		return machine_fault(m, lane, NAIVE_RANGE);
	*reached_at(m, lane->rank, step->to.rank) = true;
	struct flight flight = {
		.lane = rank_at(m, lane->rank)->first_lane + lane->lane,
		.step = lane->next,
		.seq = m->issued++,
		.read = puts && m->coin >> 60 & 1,
		.chain = lane->chain + 1,
	};
	if (!puts) {
		word_get(m, step->to.rank, step->to.lane)->sent++;
		if (m->longest < flight.chain)
			m->longest = flight.chain;
	}
	if (flight.read && !value_read(m, lane, &step->src, step->count, &flight.value))
		return false;
	size_t added = pool_add(&m->flights, 1);
	*flight_at(m, added) = flight;
	return true;
}

/* ---- landing ---- */

static bool flight_can_land(const struct naive *m, const struct flight *flight)
{
	const struct hk_step *step = flight_step(m, flight);

	if (step->op == HK_OP_PUT)
		return true;
	for (size_t i = 0; i < m->flights.count; i++) {
		const struct flight *other = flight_at(m, i);
		const struct hk_step *before = flight_step(m, other);

		if (other->lane != flight->lane || other->seq >= flight->seq ||
		    before->to.rank != step->to.rank)
			continue;
		if (m->info.signals == HK_SIGNALS_STRONG ||
		    (before->op == HK_OP_PUT && other->step + 1 == flight->step))
			return false;
	}
	return true;
}

static bool land_put(struct naive *m, const struct flight *flight, const struct hk_step *step)
{
	struct lane from = *lane_at(m, flight->lane), there = from;
	struct value value = flight->value;

	from.next = flight->step;
	there.next = flight->step;
	there.rank = step->to.rank;
	if (step->dst.buf == HK_BUF_OUT && !rank_at(m, step->to.rank)->begun)
		return machine_fault(m, &from, NAIVE_LANDS);
	if (!flight->read && !value_read(m, &from, &step->src, step->count, &value))
		return false;
	return value_write(m, &there, &step->dst, &value, m->coin >> 62 & 1);
}

static void land_signal(struct naive *m, const struct flight *flight, const struct hk_step *step)
{
	struct word *word = word_get(m, step->to.rank, step->to.lane);
	uint32_t longest = word->count ? ((uint32_t *)word->chains.items)[word->count - 1] : 0;
	size_t added = pool_add(&word->chains, 1);

	((uint32_t *)word->chains.items)[added] = flight->chain > longest ? flight->chain : longest;
	word->count++;
}

static bool land(struct naive *m, size_t i)
{
	struct flight flight = *flight_at(m, i);
	const struct hk_step *step = flight_step(m, &flight);
	struct lane lane = *lane_at(m, flight.lane);

	memmove(flight_at(m, i), flight_at(m, i + 1),
		(m->flights.count - i - 1) * sizeof(struct flight));
	m->flights.count--;
	lane.next = flight.step;
	if (rank_at(m, step->to.rank)->lanes_left == 0)
		return machine_fault(m, &lane, NAIVE_LANDS);
	if (step->op == HK_OP_PUT)
		return land_put(m, &flight, step);
	land_signal(m, &flight, step);
	return true;
}

enum flight_end flight_land(struct naive *m)
{
	size_t count = m->flights.count, start = 0;

	if (m->landing == LANDING_NEWEST)
		start = count - 1;
	else if (m->landing == LANDING_ANY && count)
		start = m->coin % count;
	for (size_t k = 0; k < count; k++) {
		size_t i = m->landing == LANDING_NEWEST ? start - k : (start + k) % count;

		if (flight_can_land(m, flight_at(m, i)))
			return land(m, i) ? FLIGHT_LANDED : FLIGHT_FAULT;
	}
	return FLIGHT_NONE;
}

/* ---- the end ---- */

/* In a barrier nobody ends before all have begun; else before those it reaches have. */
bool flight_rank_ends(struct naive *m, const struct lane *lane)
{
	for (uint32_t r = 0; m->info.signals && r < m->info.nranks; r++) {
		if (rank_at(m, r)->begun)
			continue;
		if (m->info.coll == HK_COLL_BARRIER)
			return machine_fault(m, lane, NAIVE_EARLY);
		if (*reached_at(m, lane->rank, r))
			return machine_fault(m, lane, NAIVE_LANDS);
	}
	return true;
}

bool flight_balanced(const struct naive *m)
{
	for (size_t i = 0; i < m->words.count; i++)
		if (word_at(m, i)->sent != word_at(m, i)->waited)
			return false;
	return true;
}
