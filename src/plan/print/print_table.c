/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_table.c - a plan as a table for people: one line for each step of a
 * rank, in columns that line up.
 *
 * A rank of a large plan has hundreds of thousands of steps, so nothing is
 * kept: columns are measured in a first walk over the rank's steps where there
 * are few, and take the widest text there can be where there are many.
 */
#include "plan/print/print.h"

#include <string.h>

#define TABLE_MEASURED_MAX (1u << 20) /* steps of a rank worth walking twice */
#define TABLE_SLOT_RANGES_MAX 6
#define TABLE_CELL_MAX 64
#define TITLE_NODES_MAX 16 /* sizes of nodes worth a title */

enum table_column {
	TABLE_LANE,
	TABLE_STEP,
	TABLE_DOES,
	TABLE_FROM,
	TABLE_TO,
	TABLE_SOURCE,
	TABLE_DESTINATION,
	TABLE_AFTER,
	TABLE_COLUMNS
};

static const char *const table_heads[TABLE_COLUMNS] = {
	"lane", "step", "does", "from", "to", "source", "destination", "after",
};

struct table_row {
	char cells[TABLE_COLUMNS][TABLE_CELL_MAX];
};

struct table_widths {
	size_t of[TABLE_COLUMNS];
};

/* ---- the title ---- */

static void title_add(struct hk__text *text, uint64_t count, const char *noun)
{
	hk__text_add(text, ", %llu %s%s", (unsigned long long)count, noun, count == 1 ? "" : "s");
}

/* " (3+1+4)"; of many nodes the first. */
static void title_add_sizes(struct hk__text *text, const uint32_t *sizes, uint32_t nodes)
{
	for (uint32_t k = 0; k < hk__min(nodes, TITLE_NODES_MAX); k++)
		hk__text_add(text, "%s%u", k ? "+" : " (", sizes[k]);
	hk__text_add(text, nodes > TITLE_NODES_MAX ? "+...)" : ")");
}

void hk__print_title(struct hk__text *text, const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	hk__text_add(text, "%s %s: %u rank%s", hk_coll_name(info.coll), info.algo, info.nranks,
		     info.nranks == 1 ? "" : "s");
	if (hk__coll_rooted(info.coll))
		hk__text_add(text, ", root %u", info.root);
	if (info.nodes > 1)
		title_add(text, info.nodes, "node");
	if (info.node_sizes)
		title_add_sizes(text, info.node_sizes, info.nodes);
	if (hk__coll_vector(info.coll))
		title_add(text, info.parts, "part");
	if (info.coll == HK_COLL_SENDRECV)
		title_add(text, info.nmsgs, "message");
	title_add(text, info.slots, "slot");
	hk__text_add(text, " a channel%s", info.inplace ? ", also in place" : "");
	if (info.signals != HK_SIGNALS_NONE)
		hk__text_add(text, ", %s signals", hk__signals_name(info.signals));
}

/* ---- slots ---- */

struct slots_text {
	struct hk__text *text;
	uint32_t nslots;
	uint32_t nranges;
	bool full;
};

static void slots_add_range(struct slots_text *slots, uint32_t first, uint32_t len)
{
	/* Two ranges always fit: a run that wraps is shown whole. */
	bool crowded = slots->text->len > HK__SLOTS_TEXT_MAX / 2;

	if (slots->full)
		return;
	if (slots->nranges == TABLE_SLOT_RANGES_MAX || (slots->nranges >= 2 && crowded)) {
		hk__text_add(slots->text, ",...");
		slots->full = true;
		return;
	}
	hk__text_add(slots->text, slots->nranges++ ? ",%u" : "%u", first);
	if (len > 1)
		hk__text_add(slots->text, "..%u", first + len - 1);
}

static void slots_add_run(struct slots_text *slots, uint64_t first, uint32_t len)
{
	uint32_t at = (uint32_t)(first % slots->nslots);
	uint32_t head = hk__min(len, slots->nslots - at);

	slots_add_range(slots, at, head);
	if (len > head)
		slots_add_range(slots, 0, len - head);
}

void hk__print_slots(struct hk__text *text, const struct hk_plan *plan, uint32_t rank,
		     const struct hk_span *span, uint32_t count)
{
	struct slots_text slots = { .text = text, .nslots = hk_plan_slots(plan, rank, span->buf) };

	if (span->buf == HK_BUF_NONE)
		return;
	hk__text_add(text, "%s[", hk_buf_name(span->buf));
	/* More slots than there are is a fault of the plan; show each once. */
	count = hk__min(count, slots.nslots);
	if (count == 0) {
		hk__text_add(text, "]");
		return;
	}
	bool solid = span->run == 0 || span->period % slots.nslots == span->run % slots.nslots;
	uint32_t run = solid ? count : span->run;
	for (uint64_t j = 0; j < count && !slots.full; j += run)
		slots_add_run(&slots, span->first + j / run * span->period,
			      hk__min(run, count - (uint32_t)j));
	hk__text_add(text, "]");
}

/* ---- rows ---- */

static void row_set(struct table_row *row, enum table_column column, uint32_t number)
{
	snprintf(row->cells[column], TABLE_CELL_MAX, "%u", number);
}

/* The lane is said where there could be a doubt. */
static void row_set_port(struct table_row *row, enum table_column column,
			 const struct hk_port *port, uint32_t nlanes)
{
	if (nlanes > 1 || port->lane != 0)
		snprintf(row->cells[column], TABLE_CELL_MAX, "%u.%u", port->rank, port->lane);
	else
		row_set(row, column, port->rank);
}

static void row_set_slots(struct table_row *row, enum table_column column,
			  const struct hk_plan *plan, uint32_t rank, const struct hk_span *span,
			  uint32_t count)
{
	struct hk__text text;

	hk__text_init(&text, row->cells[column], TABLE_CELL_MAX);
	hk__print_slots(&text, plan, rank, span, count);
}

/* Of a one-sided step: the peer, what it changes there, or what it waits for. */
static void row_set_signal(struct table_row *row, const struct hk_plan *plan,
			   const struct hk_step *step)
{
	unsigned fields = hk__op_fields(step->op);

	if (fields & (HK__FIELD_PUT | HK__FIELD_SIGNAL))
		row_set(row, TABLE_TO, step->to.rank);
	if ((fields & HK__FIELD_PUT) && step->to.rank < plan->n)
		row_set_slots(row, TABLE_DESTINATION, plan, step->to.rank, &step->dst, step->count);
	if (fields & HK__FIELD_SIGNAL)
		snprintf(row->cells[TABLE_DESTINATION], TABLE_CELL_MAX, "signal[%u]",
			 step->to.lane);
	if (fields & HK__FIELD_WAIT)
		snprintf(row->cells[TABLE_SOURCE], TABLE_CELL_MAX, "%u of signal[%u]", step->count,
			 step->from.lane);
}

static void row_fill(struct table_row *row, const struct hk_plan *plan, uint32_t rank,
		     uint32_t lane, uint32_t i)
{
	uint32_t nlanes = hk_plan_lanes(plan, rank);
	struct hk_step step;

	hk_plan_step(plan, rank, lane, i, &step);
	unsigned fields = hk__op_fields(step.op);
	memset(row, 0, sizeof(*row));
	row_set(row, TABLE_LANE, lane);
	row_set(row, TABLE_STEP, i);
	snprintf(row->cells[TABLE_DOES], TABLE_CELL_MAX, "%s", hk_op_name(step.op));
	if (fields & HK__FIELD_FROM)
		row_set_port(row, TABLE_FROM, &step.from, nlanes);
	if (fields & HK__FIELD_TO)
		row_set_port(row, TABLE_TO, &step.to, nlanes);
	if (fields & HK__FIELD_SRC)
		row_set_slots(row, TABLE_SOURCE, plan, rank, &step.src, step.count);
	if (fields & HK__FIELD_DST)
		row_set_slots(row, TABLE_DESTINATION, plan, rank, &step.dst, step.count);
	if (hk__op_onesided(step.op))
		row_set_signal(row, plan, &step);
	if (step.after.lane != HK_NONE)
		snprintf(row->cells[TABLE_AFTER], TABLE_CELL_MAX, "%u.%u", step.after.lane,
			 step.after.step);
}

static void row_print(const struct table_row *row, const struct table_widths *widths, FILE *file)
{
	int last = TABLE_AFTER;

	while (last > 0 && row->cells[last][0] == '\0')
		last--;
	for (int c = 0; c <= last; c++) {
		int width = (int)widths->of[c];

		/* Numbers to the right, words to the left; no blanks at the end. */
		if (c <= TABLE_STEP)
			fprintf(file, "  %*s", width, row->cells[c]);
		else
			fprintf(file, "  %-*s", c == last ? 0 : width, row->cells[c]);
	}
	fputc('\n', file);
}

/* ---- columns ---- */

static uint64_t table_steps(const struct hk_plan *plan, uint32_t rank)
{
	uint64_t nsteps = 0;

	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++)
		nsteps += hk_plan_steps(plan, rank, l);
	return nsteps;
}

static void widths_grow(struct table_widths *widths, enum table_column column, size_t width)
{
	if (widths->of[column] < width)
		widths->of[column] = width;
}

static void widths_measure(struct table_widths *widths, const struct hk_plan *plan, uint32_t rank)
{
	struct table_row row;

	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
		for (uint32_t i = 0; i < hk_plan_steps(plan, rank, l); i++) {
			row_fill(&row, plan, rank, l, i);
			for (enum table_column c = 0; c < TABLE_COLUMNS; c++)
				widths_grow(widths, c, strlen(row.cells[c]));
		}
	}
}

/* What no step of the rank can exceed. */
static void widths_bound(struct table_widths *widths)
{
	widths_grow(widths, TABLE_STEP, strlen("4294967295"));
	widths_grow(widths, TABLE_DOES, strlen("recv-reduce-send"));
	widths_grow(widths, TABLE_FROM, strlen("16777215.255"));
	widths_grow(widths, TABLE_TO, strlen("16777215.255"));
	widths_grow(widths, TABLE_SOURCE, HK__SLOTS_TEXT_MAX);
	widths_grow(widths, TABLE_DESTINATION, HK__SLOTS_TEXT_MAX);
	widths_grow(widths, TABLE_AFTER, 1);
}

static void table_print_rank(const struct hk_plan *plan, uint32_t rank, FILE *file)
{
	struct table_widths widths = { { 0 } };
	struct table_row row;

	if (table_steps(plan, rank) <= TABLE_MEASURED_MAX)
		widths_measure(&widths, plan, rank);
	else
		widths_bound(&widths);
	/* Few plans need dependencies: the last column is there where it is used. */
	for (enum table_column c = 0; c < TABLE_COLUMNS; c++) {
		bool shown = c != TABLE_AFTER || widths.of[c];

		snprintf(row.cells[c], TABLE_CELL_MAX, "%s", shown ? table_heads[c] : "");
		widths_grow(&widths, c, strlen(row.cells[c]));
	}
	fprintf(file, "\nrank %u", rank);
	if (hk_plan_slots(plan, rank, HK_BUF_SCRATCH))
		fprintf(file, ", scratch[%u]", hk_plan_slots(plan, rank, HK_BUF_SCRATCH));
	if (table_steps(plan, rank) == 0) {
		fputs(": nothing to do\n", file);
		return;
	}
	fputc('\n', file);
	row_print(&row, &widths, file);
	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
		for (uint32_t i = 0; i < hk_plan_steps(plan, rank, l) && !ferror(file); i++) {
			row_fill(&row, plan, rank, l, i);
			row_print(&row, &widths, file);
		}
	}
}

enum hk_status hk_plan_print_table(const struct hk_plan *plan, const struct hk_print_opts *opts,
				   FILE *file, struct hk_why *why)
{
	uint32_t first = 0, end = 0;
	enum hk_status status = hk__print_ranks(plan, opts, why, &first, &end);
	char title[HK_WHY_MAX];
	struct hk__text text;

	if (status != HK_OK)
		return status;
	hk__text_init(&text, title, sizeof(title));
	hk__print_title(&text, plan);
	fprintf(file, "%s\n", title);
	for (uint32_t r = first; r < end && !ferror(file); r++)
		table_print_rank(plan, r, file);
	return hk__print_end(file, why);
}
