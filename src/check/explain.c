/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - refusals in words: where, what was expected, what was found, and
 * for a plan that gets stuck, who waits for whom.
 */
#include "check/state.h"

#include <stdlib.h>
#include <string.h>

enum hk_status hk__refuse(struct proof *proof, enum hk_refusal kind, const struct lane *lane,
			  const char *expected, const char *found, const char *fmt, ...)
{
	struct hk_check_report *report = proof->report;
	char what[HK_WHY_MAX / 2], where[96];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	report->refusal = kind;
	report->rank = lane->rank;
	report->lane = lane->index;
	report->step = lane->index == HK_NONE ? HK_NONE : lane->at;
	if (lane->index == HK_NONE)
		snprintf(where, sizeof(where), "rank %u", lane->rank);
	else
		snprintf(where, sizeof(where), "rank %u lane %u step %u", lane->rank, lane->index,
			 lane->at);
	snprintf(report->expected, sizeof(report->expected), "%s", expected);
	snprintf(report->found, sizeof(report->found), "%s", found);
	return hk__why(&report->why, HK_EREFUSED, "%s: %s: %s", hk_refusal_name(kind), where, what);
}

static int explain_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void hk__explain_ranks(uint32_t *ranks, uint32_t count, struct hk__text *text)
{
	qsort(ranks, count, sizeof(*ranks), explain_compare);
	for (uint32_t i = 0; i < count;) {
		uint32_t first = ranks[i], last = first;

		while (i < count && ranks[i] <= last + 1)
			last = ranks[i++];
		hk__text_add(text, text->len && text->at[text->len - 1] != ' ' ? ",%u" : "%u",
			     first);
		if (last > first)
			hk__text_add(text, "-%u", last);
	}
}

#define EXPLAIN_INPUTS_MAX 64

/* A sum: which ranks' which slot, and who is in it twice. */
static void explain_sum(const struct proof *proof, const uint32_t *inputs, uint32_t count,
			struct hk__text *text)
{
	uint32_t ranks[EXPLAIN_INPUTS_MAX] = { 0 }, slot = 0, twice = HK_NONE;
	bool mixed = false;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at;

		hk__value_origin(&proof->values, inputs[i], &ranks[i], &at);
		mixed |= i > 0 && at != slot;
		slot = at;
	}
	if (mixed) {
		hk__text_add(text, "a sum that mixes");
		for (uint32_t i = 0; i < count; i++) {
			hk__value_origin(&proof->values, inputs[i], &ranks[i], &slot);
			hk__text_add(text, "%s rank %u's in[%u]", i ? "," : "", ranks[i], slot);
		}
		return;
	}
	hk__text_add(text, "the sum of in[%u] over %s ", slot, count > 1 ? "ranks" : "rank");
	hk__explain_ranks(ranks, count, text);
	for (uint32_t i = 1; i < count; i++)
		if (ranks[i] == ranks[i - 1])
			twice = ranks[i];
	if (twice != HK_NONE)
		hk__text_add(text, " (rank %u more than once)", twice);
}

void hk__explain_value(const struct proof *proof, uint32_t value, char *text_out, size_t size)
{
	uint32_t inputs[EXPLAIN_INPUTS_MAX], rank, slot;
	struct hk__array stack;
	struct hk__text text;

	hk__text_init(&text, text_out, size);
	if (value == VALUE_NOTHING) {
		hk__text_add(&text, "nothing");
		return;
	}
	if (hk__value_is_input(&proof->values, value)) {
		hk__value_origin(&proof->values, value, &rank, &slot);
		hk__text_add(&text, "rank %u's in[%u]", rank, slot);
		return;
	}
	hk__array_init(&stack, proof->alloc, sizeof(uint32_t));
	uint32_t count =
		hk__value_inputs(&proof->values, value, inputs, EXPLAIN_INPUTS_MAX, &stack);
	hk__array_fini(&stack);
	if (count == HK_NONE) {
		hk__text_add(&text, "a sum");
		return;
	}
	explain_sum(proof, inputs, count, &text);
	if (count == EXPLAIN_INPUTS_MAX)
		hk__text_add(&text, " and maybe more");
}

void hk__explain_missing(const struct proof *proof, uint32_t value, char *text_out, size_t size)
{
	uint32_t inputs[EXPLAIN_INPUTS_MAX], missing[EXPLAIN_INPUTS_MAX], nmissing = 0;
	uint32_t count = 0, n = proof->plan->n;
	struct hk__array stack;
	struct hk__text text;

	hk__text_init(&text, text_out, size);
	if (value == VALUE_NOTHING || n >= EXPLAIN_INPUTS_MAX)
		return;
	hk__array_init(&stack, proof->alloc, sizeof(uint32_t));
	count = hk__value_inputs(&proof->values, value, inputs, EXPLAIN_INPUTS_MAX, &stack);
	hk__array_fini(&stack);
	if (count >= EXPLAIN_INPUTS_MAX)
		return;
	for (uint32_t r = 0; r < n; r++) {
		bool has = false;

		for (uint32_t i = 0; i < count; i++) {
			uint32_t rank, slot;

			hk__value_origin(&proof->values, inputs[i], &rank, &slot);
			has |= rank == r;
		}
		if (!has)
			missing[nmissing++] = r;
	}
	if (nmissing == 0)
		return;
	hk__text_add(&text, "; without %s ", nmissing > 1 ? "ranks" : "rank");
	hk__explain_ranks(missing, nmissing, &text);
}

void hk__explain_cell(const struct proof *proof, uint32_t rank, uint64_t cell, char *text,
		      size_t size)
{
	uint32_t slot = (uint32_t)(cell - proof->cell_base[rank]);

	if (slot < proof->nout[rank])
		snprintf(text, size, "out[%u]", slot);
	else
		snprintf(text, size, "scratch[%u]", slot - proof->nout[rank]);
}

/* ---- stuck ---- */

/* The lane that would have to move for this one to move. */
static const struct lane *stuck_on(const struct proof *proof, const struct lane *lane)
{
	struct hk_port port = { lane->rank, lane->step.after.lane };

	if (lane->wait == LANE_WAITS_MESSAGE)
		port = lane->step.from;
	else if (lane->wait == LANE_WAITS_SLOT)
		port = lane->step.to;
	return &proof->lanes[proof->lane_base[port.rank] + port.lane];
}

static void stuck_reason(const struct proof *proof, const struct lane *lane, struct hk__text *text)
{
	const struct hk_step *step = &lane->step;

	switch (lane->wait) {
	case LANE_WAITS_MESSAGE:
		hk__text_add(text, "waits for a message from rank %u lane %u", step->from.rank,
			     step->from.lane);
		break;
	case LANE_WAITS_SLOT:
		if (proof->slots == 0)
			hk__text_add(text, "waits for rank %u lane %u to take its message",
				     step->to.rank, step->to.lane);
		else
			hk__text_add(text, "waits for a free slot (of %u) to rank %u lane %u",
				     proof->slots, step->to.rank, step->to.lane);
		break;
	case LANE_WAITS_STEP:
		hk__text_add(text, "waits for its own lane %u step %u", step->after.lane,
			     step->after.step);
		break;
	case LANE_RUNS:
		hk__text_add(text, "can go on");
		break;
	}
}

/*
 * From any waiting lane, n hops lead into the circle (or to a lane that has
 * ended); the lane named is in it, so mending it is mending the cause.
 */
enum hk_status hk__refuse_stuck(struct proof *proof)
{
	const struct lane *lane = proof->lanes;
	char chain[HK_WHY_MAX / 2], expected[HK_CHECK_TEXT_MAX];
	struct hk__text text;

	while (lane->at == lane->nsteps)
		lane++;
	for (uint32_t hop = 0; hop < proof->nlanes; hop++) {
		const struct lane *next = stuck_on(proof, lane);

		if (next->at == next->nsteps)
			break;
		lane = next;
	}
	const struct lane *first = lane;
	hk__text_init(&text, expected, sizeof(expected));
	stuck_reason(proof, lane, &text);
	hk__text_init(&text, chain, sizeof(chain));
	stuck_reason(proof, lane, &text);
	for (int shown = 0; shown < 4; shown++) {
		lane = stuck_on(proof, lane);
		if (lane->at == lane->nsteps) {
			hk__text_add(&text, ", which has ended");
			break;
		}
		hk__text_add(&text, ", which at step %u ", lane->at);
		stuck_reason(proof, lane, &text);
		if (stuck_on(proof, lane) == first) {
			hk__text_add(&text, ": a circle");
			break;
		}
	}
	return hk__refuse(proof, HK_REFUSAL_PROGRESS, first, "every lane reaches its end", expected,
			  "%s", chain);
}
