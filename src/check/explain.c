/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - refusals in words: where, what was expected, what was found, and
 * for a plan that gets stuck, who waits for whom.
 */
#include "check/cross.h"

#include <stdlib.h>
#include <string.h>

enum hk_status hk__refuse(struct proof *proof, uint32_t invariant, const struct lane *lane,
			  const char *expected, const char *found, const char *fmt, ...)
{
	/* What kind of refusal each invariant stands for. */
	static const enum hk_refusal kinds[] = {
		[1] = HK_REFUSAL_FORM,	   [2] = HK_REFUSAL_RESULT, [3] = HK_REFUSAL_PROGRESS,
		[4] = HK_REFUSAL_PROGRESS, [5] = HK_REFUSAL_RACE,   [6] = HK_REFUSAL_RESULT,
		[7] = HK_REFUSAL_RESULT,
	};
	struct hk_check_report *report = proof->report;
	char what[HK_WHY_MAX / 2], where[96];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	report->refusal = kinds[invariant];
	report->invariant = invariant;
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
	return hk__why(&report->why, HK_EREFUSED, "%s (I%u): %s: %s",
		       hk_refusal_name(report->refusal), invariant, where, what);
}

static int explain_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Ranks as "0-3,5"; sorts them. */
static void explain_ranks(uint32_t *ranks, uint32_t count, struct hk__text *text)
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

/* The inputs of a sum, at most one more than there are ranks. NULL: no memory. */
static uint32_t *explain_inputs(const struct proof *proof, uint32_t value, uint32_t *count_out)
{
	uint32_t max = proof->plan->n + 1;
	uint32_t *inputs = hk__mem_zalloc(proof->alloc, max, sizeof(*inputs));
	struct hk__array stack;

	if (!inputs)
		return NULL;
	hk__array_init(&stack, proof->alloc, sizeof(uint32_t));
	*count_out = hk__value_inputs(&proof->values, value, inputs, max, &stack);
	hk__array_fini(&stack);
	if (*count_out != HK_NONE)
		return inputs;
	hk__mem_free(proof->alloc, inputs, max, sizeof(*inputs));
	return NULL;
}

/* Turns inputs into their ranks; true if all are of one slot, *slot_out. */
static bool explain_ranks_of(const struct proof *proof, uint32_t *inputs, uint32_t count,
			     uint32_t *slot_out)
{
	bool same = true;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t rank, slot;

		hk__value_origin(&proof->values, inputs[i], &rank, &slot);
		same &= i == 0 || slot == *slot_out;
		*slot_out = slot;
		inputs[i] = rank;
	}
	return same;
}

/* A sum: which ranks' which slot, and who is in it twice. */
static void explain_sum(const struct proof *proof, uint32_t *inputs, uint32_t count,
			struct hk__text *text)
{
	uint32_t slot = 0;

	if (!explain_ranks_of(proof, inputs, count, &slot)) {
		hk__text_add(text, "a sum that mixes different slots of `in`");
		return;
	}
	hk__text_add(text, "the sum of in[%u] over ranks ", slot);
	explain_ranks(inputs, count, text);
	for (uint32_t i = 1; i < count; i++) {
		if (inputs[i] == inputs[i - 1]) {
			hk__text_add(text, " (rank %u more than once)", inputs[i]);
			return;
		}
	}
}

void hk__explain_value(const struct proof *proof, uint32_t value, char *text_out, size_t size)
{
	uint32_t rank, slot, count;
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
	uint32_t *inputs = explain_inputs(proof, value, &count);
	if (!inputs) {
		hk__text_add(&text, "a sum");
		return;
	}
	explain_sum(proof, inputs, count, &text);
	hk__mem_free(proof->alloc, inputs, (size_t)proof->plan->n + 1, sizeof(*inputs));
}

void hk__explain_missing(const struct proof *proof, uint32_t value, char *text_out, size_t size)
{
	uint32_t n = proof->plan->n, count, slot, nmissing = 0, at = 0;
	struct hk__text text;

	hk__text_init(&text, text_out, size);
	if (value == VALUE_NOTHING)
		return;
	uint32_t *inputs = explain_inputs(proof, value, &count);
	uint32_t *missing = hk__mem_zalloc(proof->alloc, n, sizeof(*missing));
	if (inputs && missing && explain_ranks_of(proof, inputs, count, &slot)) {
		qsort(inputs, count, sizeof(*inputs), explain_compare);
		for (uint32_t r = 0; r < n; r++) {
			while (at < count && inputs[at] < r)
				at++;
			if (at == count || inputs[at] != r)
				missing[nmissing++] = r;
		}
	}
	if (nmissing) {
		hk__text_add(&text, "; without %s ", nmissing > 1 ? "ranks" : "rank");
		explain_ranks(missing, nmissing, &text);
	}
	hk__mem_free(proof->alloc, missing, n, sizeof(*missing));
	hk__mem_free(proof->alloc, inputs, (size_t)n + 1, sizeof(*inputs));
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
	uint32_t sent;

	if (lane->wait == LANE_WAITS_SIGNAL)
		return hk__onesided_sender(proof, lane, &sent);
	if (lane->wait == LANE_WAITS_MESSAGE)
		port = lane->step.from;
	else if (lane->wait == LANE_WAITS_SLOT)
		port = lane->step.to;
	return &proof->lanes[proof->lane_base[port.rank] + port.lane];
}

static void stuck_reason(const struct proof *proof, const struct lane *lane, struct hk__text *text)
{
	const struct hk_step *step = &lane->step;
	const struct lane *sender;
	uint32_t sent;

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
	case LANE_WAITS_SIGNAL:
		sender = hk__onesided_sender(proof, lane, &sent);
		hk__text_add(text,
			     "waits for %u of its signal %u, %u came, the next is from rank "
			     "%u lane %u",
			     step->count, step->from.lane, sent, sender->rank, sender->index);
		break;
	case LANE_RUNS:
		hk__text_add(text, "can go on");
		break;
	}
}

#define STUCK_SHOWN 4 /* lanes of a circle that are spelled out */

/*
 * From any waiting lane, n hops lead into the circle (or to a lane that has
 * ended); the lane named is in it, so mending it is mending the cause.
 */
enum hk_status hk__refuse_stuck(struct proof *proof)
{
	const struct lane *lane = proof->lanes;
	char chain[HK_WHY_MAX / 2], found[HK_CHECK_TEXT_MAX];
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
	hk__text_init(&text, found, sizeof(found));
	stuck_reason(proof, lane, &text);
	hk__text_init(&text, chain, sizeof(chain));
	stuck_reason(proof, lane, &text);
	for (uint32_t hop = 1;; hop++) {
		lane = stuck_on(proof, lane);
		if (lane->at == lane->nsteps) {
			hk__text_add(&text, ", which has ended");
			break;
		}
		if (lane == first) {
			hk__text_add(&text, "%s: a circle of %u", hop > STUCK_SHOWN ? ", ..." : "",
				     hop);
			break;
		}
		if (hop >= STUCK_SHOWN)
			continue;
		hk__text_add(&text, ", which at step %u ", lane->at);
		stuck_reason(proof, lane, &text);
	}
	return hk__refuse(proof, 3, first, "every lane reaches its end", found, "%s", chain);
}
