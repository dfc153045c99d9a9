/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_match.c - the two ends of messages, and one clock for all ranks.
 *
 * Messages of a channel arrive in order, and both ends number them. Ranks of one
 * host share a clock. Of clocks of two hosts, messages to and fro tell how far
 * they are apart: none arrives before it was sent, so the fastest one each way
 * bounds the difference from both sides, and the middle is taken. Where none
 * went both ways, the time of day has to do.
 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- ends of messages ---- */

struct end {
	uint64_t number, context;
	uint32_t run;
	uint32_t from, from_lane, to, to_lane;
	uint32_t receives; /* the last thing to sort by: the sender's end comes first */
	uint32_t rank;	   /* whose file */
	uint64_t record;
};

struct ends {
	struct end *at;
	uint64_t count;
};

static int end_compare_channel(const struct end *x, const struct end *y)
{
	/* All but the last members are what tells channels, and messages, apart. */
	return memcmp(x, y, offsetof(struct end, receives));
}

static int end_compare(const void *a, const void *b)
{
	const struct end *x = a, *y = b;
	int order = end_compare_channel(x, y);

	return order ? order : (int)x->receives - (int)y->receives;
}

static void ends_add(struct ends *ends, const struct trace *trace, uint32_t r, uint64_t i,
		     bool receives)
{
	const struct trace_rank *rank = &trace->ranks[r];
	const struct hk_trace_record *record = &rank->records[i];
	const struct hk_trace_message *message = receives ? trace_in(record) : trace_out(record);
	/* What hk_send and hk_recv send has a tag instead of the sender's lane. */
	bool tagged = record->kind == HK_TRACE_MESSAGE;
	uint32_t own_lane = tagged ? HK_NONE : record->is.step.lane;
	uint32_t far_lane = tagged ? HK_NONE : message->lane;

	ends->at[ends->count++] = (struct end){
		.number = message->number,
		.run = rank->run,
		.context = record->context,
		.from = receives ? message->peer : rank->head.rank,
		.from_lane = tagged	? record->is.step.lane
			     : receives ? far_lane
					: own_lane,
		.to = receives ? rank->head.rank : message->peer,
		.to_lane = receives ? own_lane : far_lane,
		.receives = receives,
		.rank = r,
		.record = i,
	};
}

static bool ends_collect(struct ends *ends, const struct trace *trace)
{
	uint64_t room = 0;

	for (uint32_t r = 0; r < trace->nranks; r++)
		room += 2 * trace->ranks[r].nrecords;
	*ends = (struct ends){ .at = calloc(room + 1, sizeof(struct end)) };
	if (!ends->at)
		return false;
	for (uint32_t r = 0; r < trace->nranks; r++) {
		for (uint64_t i = 0; i < trace->ranks[r].nrecords; i++) {
			if (trace_in(&trace->ranks[r].records[i]))
				ends_add(ends, trace, r, i, true);
			if (trace_out(&trace->ranks[r].records[i]))
				ends_add(ends, trace, r, i, false);
		}
	}
	qsort(ends->at, ends->count, sizeof(*ends->at), end_compare);
	return true;
}

/* Whether the end and the next are the two of one message. */
static bool ends_meet(const struct ends *ends, uint64_t i)
{
	return i + 1 < ends->count && !ends->at[i].receives && ends->at[i + 1].receives &&
	       end_compare_channel(&ends->at[i], &ends->at[i + 1]) == 0;
}

static void ends_join(struct trace *trace, const struct ends *ends)
{
	for (uint64_t i = 0; i < ends->count; i++) {
		if (!ends_meet(ends, i)) {
			trace->nlost++;
			continue;
		}
		const struct end *send = &ends->at[i], *recv = &ends->at[++i];
		trace->narrows++;
		trace->ranks[send->rank].out[send->record] = trace->narrows;
		trace->ranks[recv->rank].in[recv->record] = trace->narrows;
	}
}

/* ---- clocks ---- */

#define CLOCKS_MAX 512u
#define NEVER INT64_MAX

/* [a * n + b]: what the fastest message from a to b seems to have taken. */
struct gaps {
	int64_t *least;
	uint32_t n;
};

/* Sent when its step began, received when it was over: it was on its way in between. */
static void gaps_note(const struct gaps *gaps, const struct trace *trace, const struct ends *ends)
{
	for (uint64_t i = 0; i < ends->count; i++) {
		if (!ends_meet(ends, i))
			continue;
		const struct end *send = &ends->at[i], *recv = &ends->at[++i];
		const struct trace_rank *from = &trace->ranks[send->rank];
		const struct trace_rank *to = &trace->ranks[recv->rank];
		int64_t took = (int64_t)(to->records[recv->record].end_ns -
					 from->records[send->record].start_ns);
		int64_t *least = &gaps->least[from->clock * gaps->n + to->clock];

		if (from->clock != to->clock && took < *least)
			*least = took;
	}
}

/* How far clock b is ahead of a is known to lie in a range this wide. */
static int64_t gaps_width(const struct gaps *gaps, uint32_t a, uint32_t b)
{
	int64_t to = gaps->least[a * gaps->n + b], fro = gaps->least[b * gaps->n + a];

	return to == NEVER || fro == NEVER ? NEVER : to + fro;
}

static int64_t gaps_ahead(const struct gaps *gaps, uint32_t a, uint32_t b)
{
	return (gaps->least[a * gaps->n + b] - gaps->least[b * gaps->n + a]) / 2;
}

/* The clock that is known best from those that are known; false: none is. */
static bool gaps_next(const struct gaps *gaps, const bool *known, uint32_t *from_out,
		      uint32_t *next_out)
{
	int64_t best = NEVER;

	for (uint32_t a = 0; a < gaps->n; a++) {
		for (uint32_t b = 0; known[a] && b < gaps->n; b++) {
			int64_t width = known[b] ? NEVER : gaps_width(gaps, a, b);

			if (width < best) {
				best = width;
				*from_out = a;
				*next_out = b;
			}
		}
	}
	return best != NEVER;
}

/* By messages as far as they lead; *all_out false: some clocks are not reached. */
static void clocks_by_messages(const struct gaps *gaps, bool *known, int64_t *shift, bool *all_out)
{
	uint32_t from, next, count = 1;

	known[0] = true;
	while (gaps_next(gaps, known, &from, &next)) {
		shift[next] = shift[from] - gaps_ahead(gaps, from, next);
		known[next] = true;
		count++;
	}
	*all_out = count == gaps->n;
}

static int64_t wall_ahead(const struct trace_rank *rank)
{
	return (int64_t)(rank->head.wall_ns - rank->head.opened_ns);
}

static void clocks_set(struct trace *trace, const bool *known, const int64_t *shift)
{
	for (uint32_t r = 0; r < trace->nranks; r++) {
		struct trace_rank *rank = &trace->ranks[r];

		rank->shift_ns = known[rank->clock] ? shift[rank->clock]
						    : wall_ahead(rank) - wall_ahead(trace->ranks);
	}
}

static bool clocks_join(struct trace *trace, const struct ends *ends)
{
	/* Beyond that, the tables below are too large, and so is the timeline. */
	uint32_t n = trace->nclocks < CLOCKS_MAX ? trace->nclocks : 1;
	struct gaps gaps = { calloc((size_t)n * n, sizeof(int64_t)), n };
	bool *known = calloc(trace->nclocks, sizeof(bool)), all = true;
	int64_t *shift = calloc(trace->nclocks, sizeof(int64_t));

	if (gaps.least && known && shift) {
		for (size_t i = 0; i < (size_t)n * n; i++)
			gaps.least[i] = NEVER;
		if (n == trace->nclocks)
			gaps_note(&gaps, trace, ends);
		clocks_by_messages(&gaps, known, shift, &all);
		clocks_set(trace, known, shift);
		trace->clock = trace->nclocks == 1 ? TRACE_CLOCK_ONE
			       : all && n > 1	   ? TRACE_CLOCK_MESSAGES
						   : TRACE_CLOCK_WALL;
	}
	bool done = gaps.least && known && shift;
	free(gaps.least);
	free(known);
	free(shift);
	return done;
}

/* ---- all of it ---- */

static void trace_find_first(struct trace *trace)
{
	trace->first_ns = UINT64_MAX;
	for (uint32_t r = 0; r < trace->nranks; r++) {
		const struct trace_rank *rank = &trace->ranks[r];

		for (uint64_t i = 0; i < rank->nrecords; i++) {
			const struct hk_trace_record *record = &rank->records[i];
			uint64_t at = record->start_ns + (uint64_t)rank->shift_ns;
			uint64_t since =
				record->kind == HK_TRACE_STEP ? record->is.step.since_ns : 0;

			if (since && since < record->start_ns)
				at -= record->start_ns - since;
			trace->first_ns = at < trace->first_ns ? at : trace->first_ns;
		}
	}
}

int trace_match(struct trace *trace)
{
	struct ends ends;
	bool done = true;

	for (uint32_t r = 0; r < trace->nranks && done; r++) {
		struct trace_rank *rank = &trace->ranks[r];

		rank->in = calloc(rank->nrecords + 1, sizeof(*rank->in));
		rank->out = calloc(rank->nrecords + 1, sizeof(*rank->out));
		done = rank->in && rank->out;
	}
	if (!done || !ends_collect(&ends, trace))
		return cli_wrong("trace", "out of memory");
	ends_join(trace, &ends);
	done = clocks_join(trace, &ends);
	free(ends.at);
	if (!done)
		return cli_wrong("trace", "out of memory");
	trace_find_first(trace);
	return CLI_DONE;
}
