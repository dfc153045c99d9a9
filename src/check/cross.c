/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross.c - which steps of all ranks are ordered, and whether two that are not touch
 * the same bytes, where ranks reach into each other's memory (I5).
 *
 * The same idea as race.c, with one clock for the lanes of all ranks. A step is an
 * event; a put is an interval, from its issue to its landing, and has to be over, as
 * far as the other knows, before anything that conflicts with it. Knowing its issue
 * is not enough: its landing is known where a wait is known that needs a signal which
 * lands after it.
 *
 * Steps are looked at in an order in which they can happen. So of two that conflict
 * the one looked at later has to know of the earlier one.
 */
#include "check/cross.h"

#include <string.h>

/* Words of all clocks and snapshots: 512 MiB. */
#define CROSS_WORDS_MAX (UINT64_C(1) << 27)

/* ---- state ---- */

static enum hk_status cross_init_reads(struct proof *proof)
{
	struct cross *cross = proof->cross;
	uint32_t n = proof->plan->n;

	cross->reads = hk__mem_zalloc(proof->alloc, n, sizeof(*cross->reads));
	if (!cross->reads)
		return HK_ENOMEM;
	for (uint32_t r = 0; r < n; r++) {
		size_t cells = (size_t)(proof->cell_base[r + 1] - proof->cell_base[r]);
		size_t lanes = proof->lane_base[r + 1] - proof->lane_base[r];

		cross->reads[r] = hk__mem_zalloc(proof->alloc, cells * lanes, sizeof(uint32_t));
		if (!cross->reads[r])
			return HK_ENOMEM;
	}
	return HK_OK;
}

/* What changes a clock makes a snapshot, where there is somebody to see it. */
static uint64_t cross_words(const struct proof *proof)
{
	uint64_t changes = proof->nlanes;

	for (uint32_t i = 0; i < proof->nlanes; i++) {
		const struct lane *lane = &proof->lanes[i];
		struct hk_step step;

		for (uint32_t s = 0; s < lane->nsteps; s++) {
			hk_plan_step(proof->plan, lane->rank, lane->index, s, &step);
			changes += step.op == HK_OP_WAIT || hk__op_receives(step.op) ||
				   step.after.lane != HK_NONE;
		}
	}
	return changes > CROSS_WORDS_MAX ? changes
					 : (changes + proof->nlanes) * (uint64_t)proof->nlanes;
}

enum hk_status hk__cross_init(struct proof *proof)
{
	uint32_t nlanes = proof->nlanes;
	size_t ncells = (size_t)proof->ncells;
	struct cross *cross = hk__mem_zalloc(proof->alloc, 1, sizeof(*cross));

	if (!cross)
		return HK_ENOMEM;
	proof->cross = cross;
	hk__array_init(&cross->snapshots, proof->alloc, (nlanes ? nlanes : 1) * sizeof(uint32_t));
	hk__array_init(&cross->puts, proof->alloc, sizeof(struct put));
	hk__array_init(&cross->signals, proof->alloc, sizeof(struct signal));
	hk__array_init(&cross->words, proof->alloc, sizeof(struct word));
	hk__array_init(&cross->links, proof->alloc, sizeof(struct link));
	hk__array_init(&cross->held, proof->alloc, sizeof(uint32_t));
	hk__hash_init(&cross->word_of, proof->alloc);
	hk__hash_init(&cross->last_put, proof->alloc);
	if (ncells >= HK_NONE || cross_words(proof) > CROSS_WORDS_MAX) {
		cross->full = true;
		return HK_ELIMIT;
	}
	cross->clock = hk__mem_zalloc(proof->alloc, (size_t)nlanes * nlanes, sizeof(uint32_t));
	cross->snapshot = hk__mem_zalloc(proof->alloc, nlanes, sizeof(uint32_t));
	cross->past = hk__mem_zalloc(proof->alloc, nlanes, sizeof(struct hk__array));
	cross->writer = hk__mem_zalloc(proof->alloc, ncells, sizeof(uint32_t));
	cross->sources = hk__mem_zalloc(proof->alloc, ncells, sizeof(uint32_t));
	if (!cross->clock || !cross->snapshot || !cross->past || !cross->writer || !cross->sources)
		return HK_ENOMEM;
	for (uint32_t i = 0; i < nlanes; i++) {
		cross->snapshot[i] = HK_NONE;
		hk__array_init(&cross->past[i], proof->alloc, sizeof(struct past));
	}
	memset(cross->writer, 0xff, ncells * sizeof(uint32_t));
	memset(cross->sources, 0xff, ncells * sizeof(uint32_t));
	return cross_init_reads(proof);
}

void hk__cross_fini(struct proof *proof)
{
	struct cross *cross = proof->cross;
	const struct hk_alloc *alloc = proof->alloc;
	uint32_t nlanes = proof->nlanes, n = proof->plan->n;
	size_t ncells = (size_t)proof->ncells;

	if (!cross)
		return;
	for (uint32_t r = 0; cross->reads && r < n; r++) {
		size_t cells = (size_t)(proof->cell_base[r + 1] - proof->cell_base[r]);
		size_t lanes = proof->lane_base[r + 1] - proof->lane_base[r];

		hk__mem_free(alloc, cross->reads[r], cells * lanes, sizeof(uint32_t));
	}
	hk__mem_free(alloc, cross->reads, n, sizeof(*cross->reads));
	hk__mem_free(alloc, cross->sources, ncells, sizeof(uint32_t));
	hk__mem_free(alloc, cross->writer, ncells, sizeof(uint32_t));
	for (uint32_t i = 0; cross->past && i < nlanes; i++)
		if (cross->past[i].alloc)
			hk__array_fini(&cross->past[i]);
	hk__mem_free(alloc, cross->past, nlanes, sizeof(struct hk__array));
	hk__mem_free(alloc, cross->snapshot, nlanes, sizeof(uint32_t));
	hk__mem_free(alloc, cross->clock, (size_t)nlanes * nlanes, sizeof(uint32_t));
	hk__hash_fini(&cross->last_put);
	hk__hash_fini(&cross->word_of);
	hk__array_fini(&cross->held);
	hk__array_fini(&cross->links);
	hk__array_fini(&cross->words);
	hk__array_fini(&cross->signals);
	hk__array_fini(&cross->puts);
	hk__array_fini(&cross->snapshots);
	hk__mem_free(alloc, cross, 1, sizeof(*cross));
	proof->cross = NULL;
}

/* ---- clocks ---- */

static uint32_t lane_number(const struct proof *proof, const struct lane *lane)
{
	return proof->lane_base[lane->rank] + lane->index;
}

static uint32_t *lane_clock(const struct proof *proof, uint32_t lane)
{
	return proof->cross->clock + (size_t)lane * proof->nlanes;
}

uint32_t hk__cross_snapshot(struct proof *proof, const struct lane *lane)
{
	struct cross *cross = proof->cross;
	uint32_t me = lane_number(proof, lane);

	if (cross->snapshot[me] != HK_NONE)
		return cross->snapshot[me];
	uint32_t *words = hk__array_push(&cross->snapshots);
	if (!words)
		return HK_NONE;
	memcpy(words, lane_clock(proof, me), proof->nlanes * sizeof(uint32_t));
	cross->snapshot[me] = (uint32_t)cross->snapshots.count - 1;
	return cross->snapshot[me];
}

void hk__cross_learn(struct proof *proof, const struct lane *lane, uint32_t other, uint32_t step,
		     uint32_t snapshot)
{
	struct cross *cross = proof->cross;
	uint32_t me = lane_number(proof, lane), *clock = lane_clock(proof, me);
	const uint32_t *words = hk__array_at(&cross->snapshots, snapshot);

	/* Its own entry stays as it is: it knows its own steps. */
	for (uint32_t l = 0; l < proof->nlanes; l++)
		if (words[l] > clock[l] && l != me)
			clock[l] = words[l];
	if (step + 1 > clock[other] && other != me)
		clock[other] = step + 1;
	cross->snapshot[me] = HK_NONE;
}

/* Whether a lane knows that a step of any lane is over. */
static bool lane_knows(const struct proof *proof, const struct lane *lane, uint32_t other,
		       uint32_t step)
{
	uint32_t me = lane_number(proof, lane);

	return other == me ? step < lane->at : lane_clock(proof, me)[other] > step;
}

bool hk__cross_begun(const struct proof *proof, const struct lane *lane, uint32_t rank)
{
	if (lane->rank == rank)
		return true;
	for (uint32_t l = proof->lane_base[rank]; l < proof->lane_base[rank + 1]; l++)
		if (lane_knows(proof, lane, l, 0))
			return true;
	return false;
}

bool hk__cross_ends_after(const struct proof *proof, uint32_t rank, uint32_t begun)
{
	if (rank == begun)
		return true;
	for (uint32_t l = proof->lane_base[rank]; l < proof->lane_base[rank + 1]; l++)
		if (hk__cross_begun(proof, &proof->lanes[l], begun))
			return true;
	return false;
}

/* ---- dependencies ---- */

enum hk_status hk__cross_note(struct proof *proof, struct lane *lane)
{
	uint32_t snapshot;

	if (proof->lane_base[lane->rank + 1] - proof->lane_base[lane->rank] < 2)
		return HK_OK; /* nobody comes after it */
	snapshot = hk__cross_snapshot(proof, lane);
	struct past *past = hk__array_push(&proof->cross->past[lane_number(proof, lane)]);
	if (!past || snapshot == HK_NONE)
		return HK_ENOMEM;
	*past = (struct past){ lane->at, lane->depth, snapshot };
	return HK_OK;
}

/* The last record of a lane that is not after a step; NULL: none. */
static const struct past *past_find(const struct hk__array *past, uint32_t step)
{
	size_t low = 0, high = past->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct past *at = hk__array_at(past, middle);

		if (at->step <= step)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? hk__array_at(past, low - 1) : NULL;
}

enum hk_status hk__cross_join(struct proof *proof, struct lane *lane)
{
	const struct hk_after *after = &lane->step.after;
	uint32_t other = proof->lane_base[lane->rank] + after->lane, me = lane_number(proof, lane);

	if (other == me)
		return HK_OK;
	const struct past *past = past_find(&proof->cross->past[other], after->step);
	if (past) {
		if (past->depth > lane->depth)
			lane->depth = past->depth;
		hk__cross_learn(proof, lane, other, after->step, past->snapshot);
	} else {
		uint32_t *clock = lane_clock(proof, me);

		if (after->step + 1 > clock[other])
			clock[other] = after->step + 1;
		proof->cross->snapshot[me] = HK_NONE;
	}
	return hk__cross_note(proof, lane);
}

/* ---- landings ---- */

bool hk__cross_landed(const struct proof *proof, const struct lane *lane, const struct put *put)
{
	for (uint32_t i = put->known; i != HK_NONE;) {
		const struct link *wait = hk__array_at(&proof->cross->links, i);

		if (lane_knows(proof, lane, wait->lane, wait->step) ||
		    (wait->lane == lane_number(proof, lane) && wait->step == lane->at))
			return true;
		i = wait->next;
	}
	return false;
}

enum hk_status hk__cross_link(struct proof *proof, uint32_t *head, struct link link)
{
	struct link *at = hk__array_push(&proof->cross->links);

	if (!at)
		return HK_ENOMEM;
	*at = link;
	at->next = *head;
	*head = (uint32_t)proof->cross->links.count - 1;
	return HK_OK;
}

enum hk_status hk__cross_land(struct proof *proof, const struct lane *lane, struct put *put)
{
	struct link wait = { HK_NONE, lane_number(proof, lane), lane->at, HK_NONE };

	return hk__cross_link(proof, &put->known, wait);
}

/* ---- races ---- */

/* Why a put is not known to have landed, as the end of a sentence. */
static void put_explain(const struct proof *proof, const struct put *put, struct hk__text *text)
{
	const struct lane *from = &proof->lanes[put->lane];

	hk__text_add(text, "the put of rank %u lane %u step %u", from->rank, from->index,
		     put->step);
	const struct word *word =
		put->word == HK_NONE ? NULL : hk__array_at(&proof->cross->words, put->word);

	if (put->known == HK_NONE && word && word->loose.lane != HK_NONE)
		hk__text_add(text,
			     ", and the wait of lane %u step %u needs fewer signals than there "
			     "are: a later chunk can satisfy it",
			     word->loose.lane, word->loose.step);
	else if (put->known == HK_NONE)
		hk__text_add(text, ", and no wait says that it has landed");
	else
		hk__text_add(text, ", and nothing orders the two");
}

/* A step that the lane does not know to be over, or (put not NULL) a put. */
struct clash {
	uint32_t rank; /* whose cell it is */
	uint64_t cell;
	const struct put *put;
	uint32_t lane, step; /* of all lanes */
	const char *did;
	const char *does;
};

static enum hk_status clash_refuse(struct proof *proof, const struct lane *lane,
				   const struct clash *clash)
{
	char name[64], whose[32] = "", what[HK_CHECK_TEXT_MAX], expected[HK_CHECK_TEXT_MAX];
	struct hk__text text;

	hk__explain_cell(proof, clash->rank, clash->cell, name, sizeof(name));
	if (clash->rank != lane->rank)
		snprintf(whose, sizeof(whose), " of rank %u", clash->rank);
	hk__text_init(&text, what, sizeof(what));
	if (clash->put) {
		hk__text_add(&text, ", %s ", clash->did);
		put_explain(proof, clash->put, &text);
	} else {
		const struct lane *other = &proof->lanes[clash->lane];

		hk__text_add(&text, ", which ");
		if (other->rank != lane->rank)
			hk__text_add(&text, "rank %u ", other->rank);
		hk__text_add(&text, "lane %u step %u %s, and nothing orders the two", other->index,
			     clash->step, clash->did);
	}
	snprintf(expected, sizeof(expected), "an order of the two that holds however puts land");
	return hk__refuse(proof, 5, lane, expected, "none", "%s %s%s%s%s", clash->does, name, whose,
			  what, proof->inplace ? " (in place, `in` and `out` share memory)" : "");
}

/* What was written last is over, as far as the lane knows. */
static enum hk_status cross_after_write(struct proof *proof, const struct lane *lane,
					struct clash clash)
{
	const struct cell *at = &proof->cells[clash.cell];
	uint32_t writer = proof->cross->writer[clash.cell];

	if (writer != HK_NONE) {
		clash.put = cross_put_at(proof->cross, writer);
		clash.did = "which is the place of";
		return hk__cross_landed(proof, lane, clash.put) ? HK_OK
								: clash_refuse(proof, lane, &clash);
	}
	clash.lane = proof->lane_base[clash.rank] + at->lane;
	clash.step = at->step;
	clash.did = "writes";
	if (!at->written || lane_knows(proof, lane, clash.lane, clash.step))
		return HK_OK;
	return clash_refuse(proof, lane, &clash);
}

/* And so are all reads since. */
static enum hk_status cross_after_reads(struct proof *proof, const struct lane *lane,
					struct clash clash)
{
	uint32_t base = proof->lane_base[clash.rank];
	uint32_t nlanes = proof->lane_base[clash.rank + 1] - base;
	const uint32_t *reads = proof->cross->reads[clash.rank] +
				(size_t)(clash.cell - proof->cell_base[clash.rank]) * nlanes;

	for (uint32_t l = 0; l < nlanes; l++) {
		clash.lane = base + l;
		clash.step = reads[l] - 1;
		clash.did = "reads";
		if (!reads[l] || lane_knows(proof, lane, clash.lane, clash.step) ||
		    (clash.lane == lane_number(proof, lane) && clash.step == lane->at))
			continue;
		return clash_refuse(proof, lane, &clash);
	}
	for (uint32_t i = proof->cross->sources[clash.cell]; i != HK_NONE;) {
		const struct link *source = hk__array_at(&proof->cross->links, i);

		clash.put = cross_put_at(proof->cross, source->put);
		clash.did = "which is the source of";
		if (!hk__cross_landed(proof, lane, clash.put))
			return clash_refuse(proof, lane, &clash);
		i = source->next;
	}
	return HK_OK;
}

enum hk_status hk__cross_read(struct proof *proof, struct lane *lane, uint64_t cell)
{
	struct cross *cross = proof->cross;
	bool puts = lane->step.op == HK_OP_PUT;
	struct clash clash = { .rank = lane->rank, .cell = cell, .does = puts ? "puts" : "reads" };
	enum hk_status status = cross_after_write(proof, lane, clash);

	if (status != HK_OK)
		return status;
	if (puts) {
		struct link source = { (uint32_t)cross->puts.count - 1, 0, 0, HK_NONE };

		return hk__cross_link(proof, &cross->sources[cell], source);
	}
	size_t nlanes = proof->lane_base[lane->rank + 1] - proof->lane_base[lane->rank];
	size_t local = (size_t)(cell - proof->cell_base[lane->rank]);
	cross->reads[lane->rank][local * nlanes + lane->index] = lane->at + 1;
	return HK_OK;
}

static enum hk_status cross_write(struct proof *proof, struct lane *lane, struct clash clash,
				  uint32_t writer)
{
	enum hk_status status = cross_after_write(proof, lane, clash);

	if (status == HK_OK)
		status = cross_after_reads(proof, lane, clash);
	proof->cross->writer[clash.cell] = writer;
	proof->cross->sources[clash.cell] = HK_NONE;
	return status;
}

enum hk_status hk__cross_write(struct proof *proof, struct lane *lane, uint64_t cell)
{
	struct clash clash = { .rank = lane->rank, .cell = cell, .does = "writes" };

	return cross_write(proof, lane, clash, HK_NONE);
}

enum hk_status hk__cross_put(struct proof *proof, struct lane *lane, uint64_t cell)
{
	struct clash clash = { .rank = lane->step.to.rank, .cell = cell, .does = "puts into" };

	return cross_write(proof, lane, clash, (uint32_t)proof->cross->puts.count - 1);
}
