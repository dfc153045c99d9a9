/* SPDX-License-Identifier: Apache-2.0 */
/* records.c - ranks that were seen, and what can be read off one of them. */
#include "records.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>

static void seen_fini(struct rank_seen *seen)
{
	hk_record_free(seen->record);
	hk_record_free(seen->before);
	free(seen->path);
}

static bool is_newer(const struct rank_seen *a, const struct rank_seen *b)
{
	return record_unix_ns(a->record, a->record->read_ns) >
	       record_unix_ns(b->record, b->record->read_ns);
}

void records_add(struct records *records, const struct rank_seen *seen)
{
	for (size_t i = 0; i < records->count; i++) {
		struct rank_seen *other = &records->at[i];
		struct rank_seen older = *seen;

		if (other->record->rank != seen->record->rank ||
		    strcmp(other->record->run, seen->record->run) != 0)
			continue;
		if (is_newer(seen, other)) {
			older = *other;
			*other = *seen;
		}
		seen_fini(&older);
		return;
	}
	records->at = run_grow(records->at, records->count + 1, sizeof(*records->at));
	records->at[records->count++] = *seen;
}

void records_fini(struct records *records)
{
	for (size_t i = 0; i < records->count; i++)
		seen_fini(&records->at[i]);
	free(records->at);
	*records = (struct records){ 0 };
}

/* ---- order ---- */

/* Of one run all ranks have about the same; names tell those apart that began at once. */
static int compare(const void *a, const void *b)
{
	const struct rank_seen *x = a, *y = b;
	int run = strcmp(x->record->run, y->record->run);

	if (run != 0)
		return run;
	return x->record->rank < y->record->rank ? -1 : x->record->rank > y->record->rank;
}

static uint64_t run_newest(const struct rank_seen *at, size_t count)
{
	uint64_t newest = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t made = at[i].record->made_unix_ns;

		newest = made > newest ? made : newest;
	}
	return newest;
}

size_t records_run(const struct rank_seen *at, size_t count)
{
	size_t n = 0;

	while (n < count && strcmp(at[n].record->run, at[0].record->run) == 0)
		n++;
	return n;
}

/* The runs, each with its ranks in order, are put in the order of their beginnings. */
void records_sort(struct records *records)
{
	size_t left = records->count;
	struct rank_seen *sorted = run_grow(NULL, records->count + 1, sizeof(*sorted)),
			 *to = sorted;

	if (records->count)
		qsort(records->at, records->count, sizeof(*records->at), compare);
	while (left > 0) {
		size_t best = 0, best_count = 0;

		for (size_t i = 0; i < left;) {
			size_t count = records_run(records->at + i, left - i);

			if (!best_count || run_newest(records->at + i, count) >
						   run_newest(records->at + best, best_count)) {
				best = i;
				best_count = count;
			}
			i += count;
		}
		memcpy(to, records->at + best, best_count * sizeof(*to));
		to += best_count;
		left -= best_count;
		memmove(records->at + best, records->at + best + best_count,
			(left - best) * sizeof(*to));
	}
	free(records->at);
	records->at = sorted;
}

const struct rank_seen *records_find_rank(const struct rank_seen *at, size_t count, uint32_t rank)
{
	for (size_t i = 0; i < count; i++)
		if (at[i].record->rank == rank)
			return &at[i];
	return NULL;
}

/* ---- one rank ---- */

uint64_t record_unix_ns(const struct hk_record *record, uint64_t ns)
{
	return record->made_unix_ns + (ns - record->made_ns);
}

double record_since(const struct hk_record *record, uint64_t ns)
{
	if (ns == 0 || ns > record->read_ns)
		return ns ? 0 : -1;
	return (double)(record->read_ns - ns) / 1e9;
}

bool row_is_busy(const struct hk_record_group *row)
{
	if (row->state != HK_RECORD_OPEN && row->state != HK_RECORD_FAILED)
		return false;
	return row->called > row->done || row->moves_called > row->moves_done;
}

uint64_t row_bytes(const struct hk_record *record, const struct hk_record_group *row)
{
	uint32_t entries = hk_record_entries(record, row);

	if (!entries)
		return row->bytes;
	const struct hk_record_op *newest = hk_record_entry(record, row, entries - 1);
	if (newest->kind == HK_RECORD_NONE)
		return row->bytes;
	uint64_t done = newest->kind == HK_RECORD_COLL ? row->done : row->moves_done;
	return row->bytes + (done >= newest->first ? done + 1 - newest->first : 0) * newest->bytes;
}

const struct hk_record_group *row_find(const struct hk_record *record,
				       const struct hk_record_group *like)
{
	for (uint32_t i = 0; record && i < record->rows; i++) {
		const struct hk_record_group *row = hk_record_row(record, i);

		if (row->state != HK_RECORD_UNUSED && row->context == like->context &&
		    row->first == like->first && row->size == like->size)
			return row;
	}
	return NULL;
}

const struct hk_record_op *row_entry(const struct hk_record *record,
				     const struct hk_record_group *row, uint64_t number)
{
	for (uint32_t i = hk_record_entries(record, row); i-- > 0;) {
		const struct hk_record_op *entry = hk_record_entry(record, row, i);

		if (entry->kind == HK_RECORD_COLL && entry->first <= number)
			return number <= entry->last ? entry : NULL;
	}
	return NULL;
}

static void rates_add(const struct hk_record *record, uint64_t *operations, uint64_t *bytes)
{
	*operations = *bytes = 0;
	for (uint32_t i = 0; record && i < record->rows; i++) {
		const struct hk_record_group *row = hk_record_row(record, i);

		*operations += row->done + row->moves_done;
		*bytes += row_bytes(record, row);
	}
}

void rank_rates(const struct rank_seen *seen, struct rank_rates *rates_out)
{
	uint64_t operations, bytes;

	*rates_out = (struct rank_rates){ 0 };
	rates_add(seen->record, &rates_out->operations, &rates_out->bytes);
	rates_add(seen->before, &operations, &bytes);
	if (!seen->before || seen->between_s <= 0)
		return;
	/* Rows are used again: a group that was freed takes its numbers along. */
	if (rates_out->operations > operations)
		rates_out->operations_s =
			(double)(rates_out->operations - operations) / seen->between_s;
	if (rates_out->bytes > bytes)
		rates_out->bytes_s = (double)(rates_out->bytes - bytes) / seen->between_s;
}

const char *rank_state_name(char state)
{
	switch (state) {
	case 'R':
		return "runs";
	case 'S':
		return "sleeps";
	case 'D':
		return "disk";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "-";
	}
}
