/* SPDX-License-Identifier: Apache-2.0 */
/* records_json.c - findings and ranks, for programs. */
#include "records.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>

static void print_ranks(FILE *file, const char *name, const uint32_t *ranks, size_t count)
{
	fprintf(file, "\"%s\": [", name);
	for (size_t i = 0; i < count; i++)
		fprintf(file, "%s%u", i ? ", " : "", ranks[i]);
	fprintf(file, "]");
}

void finding_print_json(FILE *file, const struct diagnosis *diagnosis)
{
	const struct finding *finding = &diagnosis->finding;

	fprintf(file, "\"finding\": \"%s\", \"sentence\": ", finding_name(finding->kind));
	cli_json_string(file, finding->text.at ? finding->text.at : "");
	if (finding->crew)
		fprintf(file, ", \"group\": \"%s\"", crew_name(finding->crew).text);
	if (finding->number)
		fprintf(file, ", \"operation\": %llu", (unsigned long long)finding->number);
	fprintf(file, ", ");
	print_ranks(file, "culprits", finding->culprits, finding->nculprits);
	fprintf(file, ", ");
	print_ranks(file, "missing", diagnosis->missing, diagnosis->nmissing);
}

static void print_operation(FILE *file, const struct hk_record *record,
			    const struct hk_record_group *row)
{
	uint64_t number = row->called > row->done ? row->done + 1 : row->done;
	const struct hk_record_op *entry = row_entry(record, row, number);
	struct text call = { 0 };

	fprintf(file, "\"operation\": %llu, \"in_flight\": %s", (unsigned long long)number,
		row->called > row->done ? "true" : "false");
	if (!entry)
		return;
	text_add_call(&call, entry);
	fprintf(file, ", \"call\": ");
	cli_json_string(file, call.at);
	fprintf(file, ", \"algo\": ");
	cli_json_string(file, entry->algo);
	text_fini(&call);
}

static void print_lanes(FILE *file, const struct hk_record *record,
			const struct hk_record_group *row)
{
	const struct hk_record_now *now = &row->now;

	if (row->called == row->done || now->number != row->done + 1)
		return;
	fprintf(file, ", \"in_flight_s\": %.6f, \"no_progress_s\": %.6f, \"lanes\": [",
		record_since(record, now->called_ns), record_since(record, now->progress_ns));
	for (uint32_t i = 0; i < now->nlanes && i < HK_RECORD_LANES; i++) {
		const struct hk_record_lane *lane = &now->lanes[i];

		fprintf(file,
			"%s{\"lane\": %u, \"step\": %u, \"steps\": %u, \"slice\": %u, "
			"\"slices\": %u, \"op\": \"%s\"",
			i ? ", " : "", lane->lane, lane->step, lane->steps, lane->slice,
			lane->slices, hk_op_name((enum hk_op)lane->op));
		if (lane->peer_world != HK_NONE)
			fprintf(file, ", \"waits_for\": %u", lane->peer_world);
		fprintf(file, "}");
	}
	fprintf(file, "]");
}

/* Who is waited for, from this seat to the end. */
static void print_chain(FILE *file, const struct crew *crew, uint32_t seat)
{
	static const char *const ends[] = {
		[CHAIN_MISSING] = "missing", [CHAIN_GONE] = "gone", [CHAIN_ABSENT] = "absent",
		[CHAIN_STILL] = "still",     [CHAIN_SENT] = "sent", [CHAIN_CIRCLE] = "circle"
	};
	uint32_t chain[64];
	enum chain_end end;

	if (!seat_is_stuck(&crew->seats[seat]) || seat_waits_for(crew, seat) == HK_NONE)
		return;
	uint32_t count = chain_follow(crew, seat, chain, 64, &end);
	fprintf(file, ", \"waits_for\": [");
	for (uint32_t i = 1; i < count; i++)
		fprintf(file, "%s%u", i > 1 ? ", " : "", crew->seats[chain[i]].rank);
	fprintf(file, "], \"waits_end\": \"%s\"", ends[end]);
}

static void print_groups(FILE *file, const struct rank_seen *seen,
			 const struct diagnosis *diagnosis)
{
	const char *between = "";

	for (size_t i = 0; i < diagnosis->ncrews; i++) {
		const struct crew *crew = &diagnosis->crews[i];

		for (uint32_t s = 0; s < crew->size; s++) {
			const struct hk_record_group *row = crew->seats[s].row;

			if (crew->seats[s].seen != seen)
				continue;
			fprintf(file,
				"%s\n   {\"group\": \"%s\", \"size\": %u, \"rank\": %u, "
				"\"called\": %llu, \"done\": %llu, \"bytes\": %llu, ",
				between, crew_name(crew).text, crew->size, row->rank,
				(unsigned long long)row->called, (unsigned long long)row->done,
				(unsigned long long)row_bytes(seen->record, row));
			between = ",";
			print_operation(file, seen->record, row);
			print_lanes(file, seen->record, row);
			print_chain(file, crew, s);
			if (row->status != HK_OK) {
				fprintf(file, ", \"status\": \"%s\", \"why\": ",
					hk_status_name((enum hk_status)row->status));
				cli_json_string(file, row->why);
			}
			fprintf(file, "}");
		}
	}
}

void ranks_print_json(FILE *file, const struct rank_seen *at, size_t count,
		      const struct diagnosis *diagnosis)
{
	fprintf(file, "\"ranks\": [");
	for (size_t i = 0; i < count; i++) {
		const struct hk_record *record = at[i].record;
		struct rank_rates rates;

		rank_rates(&at[i], &rates);
		fprintf(file, "%s\n  {\"rank\": %u, \"host\": ", i ? "," : "", record->rank);
		cli_json_string(file, record->host);
		fprintf(file, ", \"pid\": %d, \"operations\": %llu, \"bytes\": %llu",
			(int)at[i].pid, (unsigned long long)rates.operations,
			(unsigned long long)rates.bytes);
		if (at[i].state)
			fprintf(file, ", \"state\": \"%s\"", rank_state_name(at[i].state));
		if (at[i].before)
			fprintf(file, ", \"operations_s\": %.1f, \"bytes_s\": %.0f",
				rates.operations_s, rates.bytes_s);
		if (at[i].path) {
			fprintf(file, ", \"file\": ");
			cli_json_string(file, at[i].path);
		}
		fprintf(file, ", \"groups\": [");
		print_groups(file, &at[i], diagnosis);
		fprintf(file, "]}");
	}
	fprintf(file, "]");
}
