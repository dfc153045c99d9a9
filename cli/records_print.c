/* SPDX-License-Identifier: Apache-2.0 */
/* records_print.c - ranks and their groups as a table, and as JSON. */
#include "records.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* ---- one rank ---- */

enum {
	COL_RANK,
	COL_HOST,
	COL_PID,
	COL_STATE,
	COL_OPS,
	COL_RATE,
	COL_OPERATION,
	COL_STEP,
	COL_WAITS,
	COL_SINCE,
	COLS
};

static const char *const titles[COLS] = { "rank", "host",      "pid",  "state",	    "ops/s",
					  "GB/s", "operation", "step", "waits for", "for" };

/* "lane 0 3/14 recv": the first lane that waits. */
static void text_add_stand(struct text *text, const struct seat *seat)
{
	const struct hk_record_now *now = seat_now(seat);

	if (now && now->number && now->nlanes) {
		const struct hk_record_lane *lane = &now->lanes[0];

		for (uint32_t i = 0; i < now->nlanes && i < HK_RECORD_LANES; i++) {
			lane = &now->lanes[i];
			if (lane->peer != HK_NONE)
				break;
		}
		text_add(text, "%s%u:%u/%u %s", now->stage ? "agree " : "", lane->lane, lane->step,
			 lane->steps, hk_op_name((enum hk_op)lane->op));
		if (lane->slices > 1)
			text_add(text, " slice %u/%u", lane->slice, lane->slices);
	}
	if (!text->len)
		text_add(text, "-");
}

static void text_add_doing(struct text *text, const struct seat *seat)
{
	const struct hk_record_group *row = seat->row;
	uint64_t number = row->called > row->done ? row->done + 1 : row->done;
	const struct hk_record_op *entry = row_entry(seat->seen->record, row, number);

	if (row->state == HK_RECORD_FAILED && seat->seen->state) {
		text_add(text, "failed (%s) in %llu", hk_status_name((enum hk_status)row->status),
			 (unsigned long long)row->called);
		return;
	}
	if (row->called == row->done && row->moves_called > row->moves_done) {
		text_add(text, "%llu sends and receives",
			 (unsigned long long)(row->moves_called - row->moves_done));
		return;
	}
	text_add(text, "%s%llu", row->called > row->done ? "" : "after ",
		 (unsigned long long)number);
	if (entry) {
		text_add(text, " ");
		text_add_call(text, entry);
	}
	if (row->called > row->done && entry && !entry->asked && entry->algo[0])
		text_add(text, " by %s", entry->algo);
}

static void cells_fill(const struct crew *crew, uint32_t s, struct text cells[COLS])
{
	const struct seat *seat = &crew->seats[s];
	const struct hk_record *record = seat->seen->record;
	uint32_t waits = seat_waits_for(crew, s);
	struct rank_rates rates;

	rank_rates(seat->seen, &rates);
	text_add(&cells[COL_RANK], "%u", seat->rank);
	text_add(&cells[COL_HOST], "%s", record->host);
	text_add(&cells[COL_PID], "%d", (int)seat->seen->pid);
	text_add(&cells[COL_STATE], "%s", rank_state_name(seat->seen->state));
	text_add(&cells[COL_OPS], "%.0f", rates.operations_s);
	text_add(&cells[COL_RATE], "%.2f", rates.bytes_s / 1e9);
	text_add_doing(&cells[COL_OPERATION], seat);
	text_add_stand(&cells[COL_STEP], seat);
	if (waits == HK_NONE)
		text_add(&cells[COL_WAITS], "-");
	else
		text_add(&cells[COL_WAITS], "%u", crew->seats[waits].rank);
	const struct hk_record_now *now = seat_now(seat);
	text_add_time(&cells[COL_SINCE], now ? record_since(record, now->progress_ns) : -1);
}

/* ---- tables ---- */

struct table {
	struct text (*rows)[COLS];
	size_t count;
	size_t width[COLS];
};

static void table_fill(struct table *table, const struct crew *crew)
{
	table->rows = run_grow(NULL, (size_t)crew->size + 1, sizeof(*table->rows));
	for (int c = 0; c < COLS; c++)
		table->width[c] = strlen(titles[c]);
	for (uint32_t s = 0; s < crew->size; s++) {
		if (!crew->seats[s].row)
			continue;
		struct text *cells = table->rows[table->count++];
		memset(cells, 0, sizeof(*table->rows));
		cells_fill(crew, s, cells);
		for (int c = 0; c < COLS; c++)
			if (cells[c].len > table->width[c])
				table->width[c] = cells[c].len;
	}
}

static bool column_is_shown(int column, bool live)
{
	return live || (column != COL_STATE && column != COL_OPS && column != COL_RATE);
}

static bool column_is_number(int column)
{
	return column == COL_RANK || column == COL_PID || column == COL_OPS || column == COL_RATE;
}

/* A terminal's line is cut, not wrapped: the operation gives way first. */
static void table_fit(struct table *table, const struct table_opts *opts)
{
	size_t total = 0;

	if (opts->width <= 0)
		return;
	for (int c = 0; c < COLS; c++)
		total += column_is_shown(c, opts->live) ? table->width[c] + 2 : 0;
	size_t over = total > (size_t)opts->width + 1 ? total - (size_t)opts->width - 1 : 0;
	size_t *width = &table->width[COL_OPERATION];
	*width = *width > over + 12 ? *width - over : *width < 12 ? *width : 12;
}

static void row_print(FILE *file, const struct table *table, const struct text *cells,
		      const struct table_opts *opts)
{
	struct text line = { 0 };

	for (int c = 0; c < COLS; c++) {
		const char *cell = cells ? cells[c].at : titles[c];
		int width = (int)table->width[c];

		if (!column_is_shown(c, opts->live))
			continue;
		if (column_is_number(c))
			text_add(&line, "%*.*s  ", width, width, cell);
		else
			text_add(&line, "%-*.*s  ", width, width, cell);
	}
	while (line.len && line.at[line.len - 1] == ' ')
		line.at[--line.len] = '\0';
	if (opts->width > 0 && line.len > (size_t)opts->width)
		line.at[opts->width] = '\0';
	fprintf(file, "%s\n", line.at);
	text_fini(&line);
}

/* ---- chains ---- */

static const char *end_text(const struct crew *crew, uint32_t seat, enum chain_end end)
{
	const struct rank_seen *seen = crew->seats[seat].seen;

	if (seen && seen->state && strchr("Tt", seen->state))
		return "which is stopped";
	switch (end) {
	case CHAIN_MISSING:
		return "of which there is no record";
	case CHAIN_GONE:
		return "which is gone";
	case CHAIN_ABSENT:
		return "which has not called it";
	case CHAIN_CIRCLE:
		return "in a circle";
	case CHAIN_SENT:
		return "which waits for one that is ahead";
	default:
		return seat_is_idle(&crew->seats[seat]) ? "which does not run"
							: "which waits for no rank";
	}
}

#define CHAINS_MAX 8
#define CHAIN_SHOWN 12u

/* From those that nobody waits for; of a circle alone, from one of it. */
static void chains_print(FILE *file, const struct crew *crew)
{
	bool *waited = run_grow(NULL, (size_t)crew->size + 1, sizeof(*waited));
	uint32_t chain[CHAIN_SHOWN], shown = 0;
	bool any = false;

	memset(waited, 0, (size_t)crew->size + 1);
	for (uint32_t s = 0; s < crew->size; s++) {
		uint32_t next = seat_is_stuck(&crew->seats[s]) ? seat_waits_for(crew, s) : HK_NONE;

		if (next != HK_NONE)
			waited[next] = any = true;
	}
	for (int circles = 0; circles < 2 && any && !shown; circles++) {
		for (uint32_t s = 0; s < crew->size && shown < CHAINS_MAX; s++) {
			enum chain_end end;

			if (!seat_is_stuck(&crew->seats[s]) || (waited[s] && !circles) ||
			    seat_waits_for(crew, s) == HK_NONE || (circles && shown))
				continue;
			uint32_t count = chain_follow(crew, s, chain, CHAIN_SHOWN, &end);
			fprintf(file, "%s", shown++ ? "         " : "waiting: ");
			for (uint32_t i = 0; i < count; i++)
				fprintf(file, "%s%u", i ? " -> " : "", crew->seats[chain[i]].rank);
			if (count == CHAIN_SHOWN)
				fprintf(file, " -> ...\n");
			else
				fprintf(file, ", %s\n", end_text(crew, chain[count - 1], end));
		}
	}
	free(waited);
}

struct cli_name crew_name(const struct crew *crew)
{
	struct cli_name name = cli_group_name(crew->context);
	size_t len = strlen(name.text);

	snprintf(name.text + len, sizeof(name.text) - len, ":%u", crew->first);
	return name;
}

void crew_print(FILE *file, const struct crew *crew, const struct table_opts *opts)
{
	struct table table = { 0 };

	table_fill(&table, crew);
	table_fit(&table, opts);
	row_print(file, &table, NULL, opts);
	for (size_t i = 0; i < table.count; i++) {
		row_print(file, &table, table.rows[i], opts);
		for (int c = 0; c < COLS; c++)
			text_fini(&table.rows[i][c]);
	}
	free(table.rows);
	chains_print(file, crew);
}
