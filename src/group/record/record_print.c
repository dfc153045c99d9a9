/* SPDX-License-Identifier: Apache-2.0 */
/* record_print.c - a record as JSON: hocket-record(5) says what it holds. */
#include "group/record/recorder.h"

#include <inttypes.h>
#include <time.h>

/* Whatever bytes a name is made of, it is a string to every reader. */
static void print_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(file, "\\%c", *c);
		else
			fputc(*c < 0x20 || *c >= 0x7f ? '?' : *c, file);
	}
	fputc('"', file);
}

/* "key": number, of what is a rank or nothing. */
static void print_rank(FILE *file, const char *key, uint32_t rank)
{
	if (rank == HK_NONE)
		fprintf(file, "\"%s\": null", key);
	else
		fprintf(file, "\"%s\": %u", key, rank);
}

static void print_head(FILE *file, const struct hk_record *record)
{
	uint64_t unix_ns = record->made_unix_ns + (record->read_ns - record->made_ns);
	time_t seconds = (time_t)(unix_ns / 1000000000);
	char when[40] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
	fprintf(file,
		"{\n\"format\": \"hocket-record\",\n\"version\": %u,\n\"run\": ", record->version);
	print_text(file, record->run);
	fprintf(file, ",\n\"rank\": %u,\n\"size\": %u,\n\"host\": ", record->rank, record->size);
	print_text(file, record->host);
	fprintf(file, ",\n\"pid\": %u,\n\"program\": ", record->pid);
	print_text(file, record->program);
	fprintf(file, ",\n\"threads\": %s,\n\"net\": ", record->threads ? "true" : "false");
	print_text(file, record->net);
	fprintf(file, ",\n\"hosts\": ");
	print_text(file, record->hosts);
	fprintf(file,
		",\n\"time\": \"%s\",\n\"made_unix_ns\": %" PRIu64 ",\n\"made_ns\": %" PRIu64
		",\n\"read_ns\": %" PRIu64 ",\n\"watch_ns\": %" PRIu64
		",\n\"unrecorded_groups\": %u,\n",
		when, record->made_unix_ns, record->made_ns, record->read_ns, record->watch_ns,
		record->unrecorded);
	fprintf(file, "\"ngone\": %u,\n\"gone\": [", record->ngone);
	for (uint32_t i = 0; i < record->ngone && i < HK_RECORD_GONE; i++) {
		const struct hk_record_gone *gone = &record->gone[i];

		fprintf(file, "%s\n{\"rank\": %u, \"how\": \"%s\", \"since_ns\": %" PRIu64 ", ",
			i ? "," : "", gone->rank, hk__record_end_name(gone->how), gone->since_ns);
		print_rank(file, "by", gone->by);
		fprintf(file, ", \"why\": ");
		print_text(file, gone->why);
		fputc('}', file);
	}
	fprintf(file, "],\n");
}

static void print_now(FILE *file, const struct hk_record_now *now)
{
	fprintf(file,
		" \"now\": {\"number\": %" PRIu64 ", \"stage\": \"%s\", \"called_ns\": %" PRIu64
		", \"progress_ns\": %" PRIu64 ", \"written_ns\": %" PRIu64 ", \"nlanes\": %u,\n"
		"  \"lanes\": [",
		now->number, now->stage ? "agree" : "run", now->called_ns, now->progress_ns,
		now->written_ns, now->nlanes);
	for (uint32_t i = 0; i < now->nlanes && i < HK_RECORD_LANES; i++) {
		const struct hk_record_lane *lane = &now->lanes[i];

		fprintf(file,
			"%s\n   {\"lane\": %u, \"step\": %u, \"steps\": %u, \"slice\": %u, "
			"\"slices\": %u, \"op\": \"%s\", \"waits\": \"%s\", ",
			i ? "," : "", lane->lane, lane->step, lane->steps, lane->slice,
			lane->slices, hk_op_name((enum hk_op)lane->op),
			hk__record_wait_name(lane->waits));
		print_rank(file, "peer", lane->peer);
		fprintf(file, ", ");
		print_rank(file, "peer_world", lane->peer_world);
		fputc('}', file);
	}
	fprintf(file, "], \"nmoves\": %u,\n  \"moves\": [", now->nmoves);
	for (uint32_t i = 0; i < now->nmoves && i < HK_RECORD_MOVES; i++) {
		const struct hk_record_move *move = &now->moves[i];

		fprintf(file,
			"%s\n   {\"kind\": \"%s\", \"peer\": %u, \"peer_world\": %u, \"tag\": %u, "
			"\"left\": %" PRIu64 "}",
			i ? "," : "", hk__record_kind_name(move->kind), move->peer,
			move->peer_world, move->tag, move->left);
	}
	fprintf(file, "]},\n");
}

static void print_entry(FILE *file, const struct hk_record_op *entry)
{
	fprintf(file, "\n  {\"kind\": \"%s\", ", hk__record_kind_name(entry->kind));
	if (entry->kind == HK_RECORD_COLL) {
		fprintf(file,
			"\"collective\": \"%s\", \"type\": \"%s\", \"op\": \"%s\", \"root\": %u, "
			"\"counts\": %" PRIu64 ", \"algo\": ",
			hk_coll_name((enum hk_coll)entry->coll),
			hk_type_name((enum hk_type)entry->type),
			hk_redop_name((enum hk_redop)entry->op), entry->root, entry->counts);
		print_text(file, entry->algo);
		fprintf(file, ", \"asked\": %s, ", entry->asked ? "true" : "false");
	} else {
		fprintf(file, "\"peer\": %u, ", entry->root);
	}
	fprintf(file,
		"\"tag\": %u, \"count\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"first\": %" PRIu64
		", \"last\": %" PRIu64 ", \"called_ns\": %" PRIu64 ", \"ended_ns\": %" PRIu64
		", \"timed\": %" PRIu64 ", \"sum_ns\": %" PRIu64 ", \"longest_ns\": %" PRIu64 "}",
		entry->tag, entry->count, entry->bytes, entry->first, entry->last, entry->called_ns,
		entry->ended_ns, entry->timed, entry->sum_ns, entry->longest_ns);
}

static void print_entries(FILE *file, const struct hk_record *record,
			  const struct hk_record_group *row)
{
	uint32_t entries = hk_record_entries(record, row);
	const char *between = "";

	fprintf(file, " \"operations\": [");
	for (uint32_t i = 0; i < entries; i++) {
		const struct hk_record_op *entry = hk_record_entry(record, row, i);

		if (entry->kind == HK_RECORD_NONE)
			continue;
		fputs(between, file);
		print_entry(file, entry);
		between = ",";
	}
	fprintf(file, "]}");
}

static void print_row(FILE *file, const struct hk_record *record, const struct hk_record_group *row)
{
	fprintf(file,
		"{\"state\": \"%s\", \"context\": %" PRIu64
		", \"first\": %u, \"rank\": %u, \"size\": %u, "
		"\"made_ns\": %" PRIu64 ",\n \"called\": %" PRIu64 ", \"done\": %" PRIu64
		", \"moves_called\": %" PRIu64 ", \"moves_done\": %" PRIu64 ", \"bytes\": %" PRIu64
		", \"seen_ns\": %" PRIu64 ",\n",
		hk__record_state_name(row->state), row->context, row->first, row->rank, row->size,
		row->made_ns, row->called, row->done, row->moves_called, row->moves_done,
		row->bytes, row->seen_ns);
	if (row->status != HK_OK) {
		fprintf(file, " \"failure\": {\"status\": \"%s\", \"at_ns\": %" PRIu64 ", ",
			hk_status_name((enum hk_status)row->status), row->failed_ns);
		print_rank(file, "revoked_by", row->revoked_by);
		fprintf(file, ", \"why\": ");
		print_text(file, row->why);
		fprintf(file, "},\n");
	}
	print_now(file, &row->now);
	print_entries(file, record, row);
}

enum hk_status hk_record_print_json(const struct hk_record *record, FILE *file)
{
	const char *between = "\n";

	if (!record || !file)
		return HK_EINVAL;
	print_head(file, record);
	fprintf(file, "\"groups\": [");
	for (uint32_t i = 0; i < record->rows; i++) {
		const struct hk_record_group *row = hk_record_row(record, i);

		if (row->state == HK_RECORD_UNUSED)
			continue;
		fputs(between, file);
		print_row(file, record, row);
		between = ",\n";
	}
	fprintf(file, "]\n}\n");
	return ferror(file) ? HK_EIO : HK_OK;
}
