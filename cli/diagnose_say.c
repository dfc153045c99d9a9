/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose_say.c - what may be wrong with a group, each in a sentence. */
#include "records.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SILENT_S 1.0

/* "rank 3 (host b, pid 812)", as far as that is known. */
static void text_add_who(struct text *text, const struct crew *crew, uint32_t seat)
{
	const struct seat *at = &crew->seats[seat];

	if (at->rank == HK_NONE)
		text_add(text, "rank %u of its group", seat);
	else
		text_add(text, "rank %u", at->rank);
	if (at->seen)
		text_add(text, " (host %s, pid %d)", at->seen->record->host, (int)at->seen->pid);
}

/* Which group, where it is not that of all. */
static void text_add_group(struct text *text, const struct crew *crew)
{
	uint32_t all = crew->nranks ? crew->ranks[0].record->size : 0;

	if (crew->context != 0 || crew->size != all)
		text_add(text, " of group %s, of %u ranks", crew_name(crew).text, crew->size);
}

static void text_add_clock(struct text *text, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	char clock[32] = "?";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		(void)strftime(clock, sizeof(clock), "%H:%M:%S", &utc);
	text_add(text, "%s UTC", clock);
}

/* ---- different calls ---- */

static bool is_same_call(const struct hk_record_op *a, const struct hk_record_op *b)
{
	if (a->coll != b->coll || a->type != b->type || a->op != b->op || a->root != b->root ||
	    a->tag != b->tag || a->count != b->count || a->counts != b->counts ||
	    a->asked != b->asked)
		return false;
	/* One that has not begun has not chosen yet. */
	return !a->algo[0] || !b->algo[0] || strcmp(a->algo, b->algo) == 0;
}

/* The first operation that two ranks, of those that both remember, called differently; 0: none. */
static uint64_t first_difference(const struct seat *a, const struct seat *b)
{
	const struct hk_record *record = a->seen->record;
	uint32_t entries = hk_record_entries(record, a->row);

	for (uint32_t i = 0; i < entries; i++) {
		const struct hk_record_op *entry = hk_record_entry(record, a->row, i);

		if (entry->kind != HK_RECORD_COLL)
			continue;
		for (uint64_t number = entry->first; number <= entry->last;) {
			const struct hk_record_op *other =
				row_entry(b->seen->record, b->row, number);

			if (other && !is_same_call(entry, other))
				return number;
			/* To where the next of either begins. */
			if (!other || other->last >= entry->last)
				break;
			number = other->last + 1;
		}
	}
	return 0;
}

static const struct hk_record_op *seat_call(const struct seat *seat, uint64_t number)
{
	return seat->row ? row_entry(seat->seen->record, seat->row, number) : NULL;
}

/* Ranks that called what that seat did; how many. */
static size_t ranks_alike(const struct crew *crew, uint32_t like, uint64_t number, uint32_t *ranks)
{
	const struct hk_record_op *call = seat_call(&crew->seats[like], number);
	size_t count = 0;

	for (uint32_t s = 0; s < crew->size; s++) {
		const struct hk_record_op *other = seat_call(&crew->seats[s], number);

		if (other && is_same_call(call, other))
			ranks[count++] = crew->seats[s].rank;
	}
	return count;
}

/* The seat whose call is the most common, and one of those that called something else. */
static void find_sides(const struct crew *crew, uint64_t number, uint32_t *ranks,
		       uint32_t *most_out, uint32_t *odd_out)
{
	size_t best = 0;

	*most_out = *odd_out = HK_NONE;
	for (uint32_t s = 0; s < crew->size; s++) {
		if (!seat_call(&crew->seats[s], number))
			continue;
		size_t alike = ranks_alike(crew, s, number, ranks);
		if (alike > best) {
			best = alike;
			*most_out = s;
		}
		if (best > crew->size / 2)
			break;
	}
	for (uint32_t s = 0; s < crew->size && *odd_out == HK_NONE; s++) {
		const struct hk_record_op *call = seat_call(&crew->seats[s], number);

		if (call && !is_same_call(call, seat_call(&crew->seats[*most_out], number)))
			*odd_out = s;
	}
}

static void say_mismatch(const struct crew *crew, uint64_t number, struct finding *finding)
{
	uint32_t *ranks = run_grow(NULL, crew->size, sizeof(*ranks)), most, odd;
	struct text *text = &finding->text;

	find_sides(crew, number, ranks, &most, &odd);
	const struct hk_record_op *most_call = seat_call(&crew->seats[most], number);
	const struct hk_record_op *odd_call = seat_call(&crew->seats[odd], number);
	size_t count = ranks_alike(crew, odd, number, ranks);
	for (size_t i = 0; i < count; i++)
		finding_add_culprit(finding, ranks[i]);
	text_add_ranks(text, ranks, count);
	text_add(text, " called ");
	text_add_call(text, odd_call);
	bool chosen = odd_call->coll == most_call->coll && odd_call->count == most_call->count &&
		      strcmp(odd_call->algo, most_call->algo) != 0 && !odd_call->asked;
	if (chosen)
		text_add(text, " and chose %s", odd_call->algo);
	text_add(text, " where ");
	size_t others = ranks_alike(crew, most, number, ranks);
	if (others > 1 && count + others == crew->size)
		text_add(text, "the others");
	else
		text_add_ranks(text, ranks, others);
	text_add(text, " called ");
	text_add_call(text, most_call);
	if (chosen)
		text_add(text, " and chose %s", most_call->algo);
	text_add(text, ": operation %llu", (unsigned long long)number);
	text_add_group(text, crew);
	finding->kind = FINDING_MISMATCH;
	finding->number = number;
	free(ranks);
}

bool diagnose_mismatch(const struct crew *crew, struct finding *finding)
{
	const struct seat *with = NULL;
	uint64_t first = 0;

	for (uint32_t s = 0; s < crew->size; s++) {
		const struct seat *seat = &crew->seats[s];

		if (!seat->row)
			continue;
		if (!with) {
			with = seat;
			continue;
		}
		uint64_t number = first_difference(with, seat);
		if (number && (!first || number < first))
			first = number;
	}
	if (first)
		say_mismatch(crew, first, finding);
	return first != 0;
}

/* ---- a rank that failed by itself ---- */

/* What comes of another rank, or of waiting for one, is nobody's own failure. */
static bool is_own_failure(int32_t status)
{
	return status != HK_OK && status != HK_ETIMEDOUT && status != HK_EPEER &&
	       status != HK_EREVOKED && status != HK_EMISMATCH;
}

bool diagnose_failed(const struct crew *crew, struct finding *finding)
{
	const struct seat *first = NULL;
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t s = 0; s < crew->size; s++) {
		const struct seat *seat = &crew->seats[s];

		if (!seat->row || !is_own_failure(seat->row->status))
			continue;
		uint64_t ns = record_unix_ns(seat->seen->record, seat->row->failed_ns);
		if (ns < first_ns) {
			first_ns = ns;
			first = seat;
		}
	}
	if (!first)
		return false;
	text_add(&finding->text, "rank %u (host %s, pid %d) failed first: %s", first->rank,
		 first->seen->record->host, (int)first->seen->pid, first->row->why);
	finding->kind = FINDING_FAILED;
	finding->number = first->row->called;
	finding_add_culprit(finding, first->rank);
	return true;
}

/* ---- a rank that is behind ---- */

/* Where most ways of those who stand still end. */
struct blame {
	uint32_t seat;
	enum chain_end end;
	uint64_t number;	    /* that they wait in */
	const struct seat *witness; /* who waits for the longest */
	double since;
	size_t waiting;
};

/* Who waits, and for how long: the longest counts. */
static void blame_hear(struct blame *blame, const struct seat *seat)
{
	const struct hk_record_now *now = seat_now(seat);
	double since = now ? record_since(seat->seen->record, now->called_ns) : -1;

	blame->waiting++;
	if (now && now->number && since > blame->since) {
		blame->since = since;
		blame->witness = seat;
		blame->number = now->number;
	}
}

static bool blame_find(const struct crew *crew, struct blame *blame)
{
	uint32_t *votes = run_grow(NULL, crew->size, sizeof(*votes));
	uint32_t *chain = run_grow(NULL, (size_t)crew->size + 1, sizeof(*chain));
	uint32_t best = 0;
	enum chain_end end;

	*blame = (struct blame){ .seat = HK_NONE, .since = -1 };
	memset(votes, 0, crew->size * sizeof(*votes));
	for (uint32_t s = 0; s < crew->size; s++) {
		if (!seat_is_stuck(&crew->seats[s]))
			continue;
		uint32_t count = chain_follow(crew, s, chain, crew->size + 1, &end);
		uint32_t last = chain[count - 1];
		/* What is said of it by one that waits says more than what it says itself. */
		if (++votes[last] > best) {
			best = votes[last];
			if (blame->seat != last || count > 1)
				blame->end = end;
			blame->seat = last;
		}
	}
	for (uint32_t s = 0; s < crew->size && blame->seat != HK_NONE; s++)
		if (s != blame->seat && seat_is_stuck(&crew->seats[s]) &&
		    seat_waits_for(crew, s) != HK_NONE)
			blame_hear(blame, &crew->seats[s]);
	if (blame->seat != HK_NONE && !blame->witness && crew->seats[blame->seat].row) {
		blame->number = seat_number(&crew->seats[blame->seat]);
		blame->witness = &crew->seats[blame->seat];
	}
	free(votes);
	free(chain);
	return blame->seat != HK_NONE;
}

/* "operation 17, allreduce(4096 x fp32, sum) by ring"; by: who has called it. */
static void text_add_operation(struct text *text, const struct crew *crew, const struct seat *by,
			       uint64_t number)
{
	const struct hk_record_op *call = by && number ? seat_call(by, number) : NULL;

	if (!number)
		text_add(text, "sends and receives");
	else
		text_add(text, "operation %llu", (unsigned long long)number);
	if (call) {
		text_add(text, ", ");
		text_add_call(text, call);
		if (!call->asked && call->algo[0])
			text_add(text, " by %s", call->algo);
	}
	text_add_group(text, crew);
}

/* Where the first lane of a rank stands that is in an operation. */
static void text_add_step(struct text *text, const struct seat *seat)
{
	const struct hk_record_now *now = seat_now(seat);

	if (!now || !now->number || !now->nlanes)
		return;
	text_add(text, ", lane %u at step %u of %u, slice %u of %u", now->lanes[0].lane,
		 now->lanes[0].step, now->lanes[0].steps, now->lanes[0].slice,
		 now->lanes[0].slices);
}

/* One that is in an operation and does not look after it, if that is so. */
static bool text_add_idle(struct text *text, const struct seat *seat, double others_wait)
{
	/* Who waits in vain writes down soon where it stands. */
	bool silent = !seat_now(seat) && others_wait > SILENT_S;
	bool idle = seat_is_busy(seat) && (silent || seat_is_idle(seat));

	if (idle && seat->seen->state != 'T')
		text_add(text, ", and does not run: it is stopped, or busy elsewhere");
	return idle;
}

/* What it has come to, of one that has not called what the others wait in. */
static void say_absent(struct text *text, const struct crew *crew, const struct blame *blame)
{
	const struct seat *seat = &crew->seats[blame->seat];
	uint64_t own = seat_number(seat), last = seat->row ? seat->row->called : 0;

	text_add(text, ": it has not called ");
	text_add_operation(text, crew, blame->witness, blame->number);
	text_add(text, own ? "; it is in %llu" : "; its last one was %llu",
		 (unsigned long long)(own ? own : last));
	text_add_idle(text, seat, blame->since);
}

static void say_end(struct text *text, const struct crew *crew, const struct blame *blame)
{
	const struct seat *seat = &crew->seats[blame->seat];
	bool later = seat->row && blame->number > seat->row->called;

	text_add_who(text, crew, blame->seat);
	if (seat->seen && seat->seen->state == 'T')
		text_add(text, " is stopped (SIGSTOP, or a debugger)");
	else if (blame->end == CHAIN_MISSING)
		text_add(text, " is behind, and there is no record of it");
	else
		text_add(text, " is behind");
	if (blame->end == CHAIN_ABSENT || (blame->end == CHAIN_STILL && later)) {
		say_absent(text, crew, blame);
	} else if (blame->end == CHAIN_STILL || blame->end == CHAIN_SENT) {
		text_add(text, ": it is in ");
		text_add_operation(text, crew, seat, seat_number(seat));
		text_add_step(text, seat);
		if (blame->end == CHAIN_SENT)
			text_add(text,
				 ", and waits for rank %u, which is ahead of it: for what that "
				 "rank sent, or has yet to read",
				 crew->seats[seat_waits_for(crew, blame->seat)].rank);
		else if (!text_add_idle(text, seat, blame->since))
			text_add(text, ", and waits for no rank");
	} else {
		text_add(text, ": the others are in ");
		text_add_operation(text, crew, blame->witness, blame->number);
	}
}

static void say_circle(struct text *text, const struct crew *crew, const struct blame *blame)
{
	uint32_t chain[CULPRITS];
	enum chain_end end;
	uint32_t count = chain_follow(crew, blame->seat, chain, CULPRITS, &end);

	text_add(text, "ranks wait for each other in a circle,");
	for (uint32_t i = 0; i < count; i++)
		text_add(text, "%s %u", i ? " ->" : "", crew->seats[chain[i]].rank);
	text_add(text, ", in ");
	text_add_operation(text, crew, blame->witness, blame->number);
}

bool diagnose_behind(const struct crew *crew, struct finding *finding)
{
	struct text *text = &finding->text;
	struct blame blame;

	if (!blame_find(crew, &blame))
		return false;
	if (blame.end == CHAIN_CIRCLE)
		say_circle(text, crew, &blame);
	else
		say_end(text, crew, &blame);
	if (blame.since >= 0 && blame.waiting) {
		text_add(text, "; %zu %s for it since ", blame.waiting,
			 blame.waiting == 1 ? "rank waits" : "ranks wait");
		text_add_clock(text, record_unix_ns(blame.witness->seen->record,
						    blame.witness->row->now.called_ns));
		text_add(text, ", for ");
		text_add_time(text, blame.since);
	}
	finding->kind = FINDING_BEHIND;
	finding->number = blame.number;
	finding_add_culprit(finding, crew->seats[blame.seat].rank);
	return true;
}

/* ---- ranks that are gone ---- */

bool diagnose_gone(const struct crew *crew, struct finding *finding)
{
	struct text *text = &finding->text;

	for (uint32_t s = 0; s < crew->size; s++) {
		uint32_t rank = crew->seats[s].rank;
		const struct hk_record_gone *gone = rank == HK_NONE ? NULL : crew_gone(crew, rank);

		if (!gone)
			continue;
		if (finding->nculprits)
			text_add(text, "; ");
		finding_add_culprit(finding, rank);
		text_add_who(text, crew, s);
		text_add(text, " is %s: %s, seen by ",
			 gone->how == HK_RECORD_DEAD ? "dead" : "unreachable", gone->why);
		if (gone->by == HK_NONE)
			text_add(text, "hocket run");
		else
			text_add(text, "rank %u", gone->by);
		const struct rank_seen *by = records_find_rank(crew->ranks, crew->nranks, gone->by);
		if (by) {
			text_add(text, " at ");
			text_add_clock(text, record_unix_ns(by->record, gone->since_ns));
		}
	}
	if (!finding->nculprits)
		return false;
	struct blame blame;
	if (blame_find(crew, &blame) && blame.witness) {
		text_add(text, "; the others are in ");
		text_add_operation(text, crew, blame.witness, blame.number);
		finding->number = blame.number;
	}
	finding->kind = FINDING_GONE;
	return true;
}

/* ---- a rank that is stopped ---- */

bool diagnose_stopped(const struct rank_seen *at, size_t count, struct finding *finding)
{
	uint32_t *ranks = run_grow(NULL, count + 1, sizeof(*ranks));
	size_t stopped = 0;

	for (size_t i = 0; i < count; i++) {
		if (at[i].state != 'T')
			continue;
		ranks[stopped++] = at[i].record->rank;
		finding_add_culprit(finding, at[i].record->rank);
	}
	if (stopped) {
		text_add_ranks(&finding->text, ranks, stopped);
		text_add(&finding->text, " %s stopped; no other has waited for long",
			 stopped == 1 ? "is" : "are");
		finding->kind = FINDING_BEHIND;
	}
	free(ranks);
	return stopped > 0;
}
