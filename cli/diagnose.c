/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnose.c - what is wrong with a run, from the records of its ranks.
 *
 * In this order: ranks that called different things; ranks that are gone; a rank
 * that failed by itself; and, where some wait and do not go on, the rank that
 * they wait for in the end. That is found by following who waits for whom, from
 * everybody who does: most ways lead to the one that is behind.
 */
#include "records.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>

#define IDLE_NS UINT64_C(1000000000)

/* ---- groups ---- */

static struct crew *crew_find(struct diagnosis *diagnosis, const struct hk_record_group *row)
{
	for (size_t i = 0; i < diagnosis->ncrews; i++) {
		struct crew *crew = &diagnosis->crews[i];

		if (crew->context == row->context && crew->first == row->first &&
		    crew->size == row->size)
			return crew;
	}
	diagnosis->crews =
		run_grow(diagnosis->crews, diagnosis->ncrews + 1, sizeof(*diagnosis->crews));
	struct crew *crew = &diagnosis->crews[diagnosis->ncrews++];
	*crew = (struct crew){ .context = row->context, .first = row->first, .size = row->size };
	crew->seats = run_grow(NULL, row->size, sizeof(*crew->seats));
	for (uint32_t s = 0; s < row->size; s++)
		crew->seats[s] = (struct seat){ .rank = row->context == 0 ? s : HK_NONE };
	return crew;
}

/* Whose seat is not taken is known to those who wait for it. */
static void crew_learn_ranks(struct crew *crew, const struct hk_record_now *now)
{
	for (uint32_t i = 0; i < now->nlanes && i < HK_RECORD_LANES; i++)
		if (now->lanes[i].peer < crew->size)
			crew->seats[now->lanes[i].peer].rank = now->lanes[i].peer_world;
	for (uint32_t i = 0; i < now->nmoves && i < HK_RECORD_MOVES; i++)
		if (now->moves[i].peer < crew->size)
			crew->seats[now->moves[i].peer].rank = now->moves[i].peer_world;
}

static void crews_fill(struct diagnosis *diagnosis, const struct rank_seen *at, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (uint32_t r = 0; r < at[i].record->rows; r++) {
			const struct hk_record_group *row = hk_record_row(at[i].record, r);

			if ((row->state != HK_RECORD_OPEN && row->state != HK_RECORD_FAILED) ||
			    row->rank >= row->size || row->size > HK_RANKS_MAX)
				continue;
			struct crew *crew = crew_find(diagnosis, row);
			crew_learn_ranks(crew, &row->now);
			crew->seats[row->rank] = (struct seat){ &at[i], row, at[i].record->rank };
			crew->ranks = at;
			crew->nranks = count;
		}
	}
}

/* One that gave up, and ended because of that, says itself why. */
static bool has_failed(const struct crew *crew, uint32_t rank)
{
	const struct rank_seen *seen = records_find_rank(crew->ranks, crew->nranks, rank);

	for (uint32_t i = 0; seen && i < seen->record->rows; i++)
		if (hk_record_row(seen->record, i)->status != HK_OK)
			return true;
	return false;
}

const struct hk_record_gone *crew_gone(const struct crew *crew, uint32_t rank)
{
	if (has_failed(crew, rank))
		return NULL;
	for (size_t i = 0; i < crew->nranks; i++) {
		const struct hk_record *record = crew->ranks[i].record;

		for (uint32_t g = 0; g < record->ngone && g < HK_RECORD_GONE; g++)
			if (record->gone[g].rank == rank && record->gone[g].how != HK_RECORD_LEFT)
				return &record->gone[g];
	}
	return NULL;
}

/* ---- who waits for whom ---- */

/* What has failed is in flight no more; of a file, that is what it is about. */
bool seat_is_busy(const struct seat *seat)
{
	return seat->seen && seat->row && row_is_busy(seat->row) &&
	       (seat->row->state == HK_RECORD_OPEN || !seat->seen->state);
}

/* Where it stands, if that was written of the operation it is in. */
const struct hk_record_now *seat_now(const struct seat *seat)
{
	const struct hk_record_group *row = seat->row;

	if (!seat_is_busy(seat) || !row->now.written_ns)
		return NULL;
	if (row->called > row->done)
		return row->now.number == row->done + 1 ? &row->now : NULL;
	return row->now.nmoves ? &row->now : NULL;
}

bool seat_is_stuck(const struct seat *seat)
{
	const struct hk_record_now *now = seat_now(seat);

	if (!seat->seen || !seat->seen->state) /* of a file: it was written because it was */
		return seat_is_busy(seat);
	/* It stood there when it was looked at before. */
	return now && seat->seen->before && now->progress_ns <= seat->seen->before->read_ns;
}

/* Who waits looks up now and then; who has not for long does not run. */
bool seat_is_idle(const struct seat *seat)
{
	const struct hk_record_now *now = seat_now(seat);
	uint64_t watch_ns = seat->seen->record->watch_ns;

	if (seat->seen->state && strchr("TtZX", seat->seen->state))
		return true;
	return now && seat->seen->record->read_ns > now->written_ns + 4 * watch_ns + IDLE_NS;
}

uint64_t seat_number(const struct seat *seat)
{
	return seat_is_busy(seat) && seat->row->called > seat->row->done ? seat->row->done + 1 : 0;
}

uint32_t seat_waits_for(const struct crew *crew, uint32_t seat)
{
	const struct seat *at = &crew->seats[seat];
	const struct hk_record_now *now = seat_now(at);

	if (!now || seat_is_idle(at))
		return HK_NONE;
	for (uint32_t i = 0; now->number && i < now->nlanes && i < HK_RECORD_LANES; i++)
		if (now->lanes[i].peer < crew->size && now->lanes[i].peer != seat)
			return now->lanes[i].peer;
	return now->nmoves && now->moves[0].peer < crew->size ? now->moves[0].peer : HK_NONE;
}

/* How it ends at a seat that waits for nobody; number: that it is waited for in. */
static enum chain_end seat_end(const struct crew *crew, uint32_t seat, uint64_t number)
{
	const struct seat *at = &crew->seats[seat];

	if (at->rank != HK_NONE && crew_gone(crew, at->rank))
		return CHAIN_GONE;
	if (!at->row)
		return CHAIN_MISSING;
	return number > at->row->called || !seat_is_busy(at) ? CHAIN_ABSENT : CHAIN_STILL;
}

uint32_t chain_follow(const struct crew *crew, uint32_t from, uint32_t *seats_out, uint32_t room,
		      enum chain_end *end_out)
{
	uint64_t number = 0; /* of who waits for the seat */
	uint32_t count = 0, seat = from;

	while (count < room) {
		for (uint32_t i = 0; i < count; i++) {
			if (seats_out[i] == seat) {
				seats_out[count++] = seat;
				*end_out = CHAIN_CIRCLE;
				return count;
			}
		}
		seats_out[count++] = seat;
		uint32_t next = seat_waits_for(crew, seat);
		if (next == HK_NONE)
			break;
		number = seat_number(&crew->seats[seat]);
		const struct hk_record_group *row = crew->seats[next].row;
		if (row && number && row->done >= number) {
			*end_out = CHAIN_SENT;
			return count;
		}
		seat = next;
	}
	*end_out = seat_end(crew, seat, number);
	return count;
}

/* ---- findings ---- */

static const char *const names[] = { [FINDING_NONE] = "none",
				     [FINDING_MISMATCH] = "mismatch",
				     [FINDING_GONE] = "gone",
				     [FINDING_FAILED] = "failed",
				     [FINDING_BEHIND] = "behind" };

const char *finding_name(enum finding_kind kind)
{
	return names[kind];
}

void finding_add_culprit(struct finding *finding, uint32_t rank)
{
	for (uint32_t i = 0; i < finding->nculprits; i++)
		if (finding->culprits[i] == rank)
			return;
	if (finding->nculprits < CULPRITS && rank != HK_NONE)
		finding->culprits[finding->nculprits++] = rank;
}

static void find_missing(struct diagnosis *diagnosis, const struct rank_seen *at, size_t count)
{
	uint32_t size = count ? at[0].record->size : 0;
	bool *there = run_grow(NULL, (size_t)size + 1, sizeof(*there));

	memset(there, 0, (size_t)size + 1);
	for (size_t i = 0; i < count; i++)
		if (at[i].record->rank < size)
			there[at[i].record->rank] = true;
	diagnosis->missing = run_grow(NULL, (size_t)size + 1, sizeof(*diagnosis->missing));
	for (uint32_t r = 0; r < size; r++)
		if (!there[r])
			diagnosis->missing[diagnosis->nmissing++] = r;
	free(there);
}

/* Groups that failed, or stand still, before those that do not; larger ones first. */
static int crew_weight(const struct crew *crew)
{
	int weight = 0;

	for (uint32_t s = 0; s < crew->size; s++) {
		const struct seat *seat = &crew->seats[s];

		if (seat->row && (seat->row->state == HK_RECORD_FAILED || seat_is_stuck(seat)))
			weight = 2;
		else if (seat->row && seat->row->state == HK_RECORD_OPEN && weight == 0)
			weight = 1;
	}
	return weight;
}

static int crew_compare(const void *a, const void *b)
{
	const struct crew *x = a, *y = b;
	int by_weight = crew_weight(y) - crew_weight(x);

	if (by_weight != 0)
		return by_weight;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->context != y->context ? (x->context < y->context ? -1 : 1)
					: (x->first < y->first ? -1 : x->first > y->first);
}

void diagnose(const struct rank_seen *at, size_t count, struct diagnosis *diagnosis_out)
{
	static bool (*const looks[])(const struct crew *,
				     struct finding *) = { diagnose_mismatch, diagnose_gone,
							   diagnose_failed, diagnose_behind };
	struct finding *finding = &diagnosis_out->finding;

	*diagnosis_out = (struct diagnosis){ 0 };
	find_missing(diagnosis_out, at, count);
	crews_fill(diagnosis_out, at, count);
	if (diagnosis_out->ncrews)
		qsort(diagnosis_out->crews, diagnosis_out->ncrews, sizeof(struct crew),
		      crew_compare);
	for (size_t l = 0; l < sizeof(looks) / sizeof(looks[0]) && !finding->kind; l++)
		for (size_t i = 0; i < diagnosis_out->ncrews && !finding->kind; i++)
			if (looks[l](&diagnosis_out->crews[i], finding))
				finding->crew = &diagnosis_out->crews[i];
	if (!finding->kind && !diagnose_stopped(at, count, finding))
		text_add(&finding->text, "no rank is stuck");
}

void diagnosis_fini(struct diagnosis *diagnosis)
{
	for (size_t i = 0; i < diagnosis->ncrews; i++)
		free(diagnosis->crews[i].seats);
	free(diagnosis->crews);
	free(diagnosis->missing);
	text_fini(&diagnosis->finding.text);
}
