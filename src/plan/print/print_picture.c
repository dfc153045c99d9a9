/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_picture.c - who sends what to whom, round by round, drawn with ranks
 * as columns and messages as arrows between them.
 *
 *	          0         1         2
 *	 round 1  ●──c2+───▶●──c0+───▶│
 *	          │◀───────c1+────────●
 *
 * Owns what is seen: columns, rows, the names of messages, the legend, and who
 * is stuck where. Which messages there are, in which rounds and with which
 * chunks, comes from picture_run.c. A plan that gets stuck is drawn up to there.
 */
#include "plan/print/picture.h"
#include "plan/print/print.h"

#include <stdlib.h>
#include <string.h>

#define PICTURE_ROUNDS_MAX 128u
#define PICTURE_WIDTH_MAX 102
#define PICTURE_MARGIN 12
#define PICTURE_PITCH_MIN 10u
#define PICTURE_PITCH_MAX 24u
#define PICTURE_LABEL_MAX 48
#define PICTURE_STUCK_MAX 8 /* waiting lanes that are listed */

/* ---- what a message is called ---- */

/* Whether a symbol continues a run that ends in another. */
static bool label_follows(const struct hk__picture *picture, uint32_t symbol, uint32_t last)
{
	bool same_source = picture->plan->coll != HK_COLL_ALLTOALL ||
			   symbol / picture->plan->n == last / picture->plan->n;

	return symbol != HK_NONE && last != HK_NONE && symbol == last + 1 && same_source;
}

static void label_add(struct hk__text *text, const struct hk__picture *picture, uint32_t first,
		      uint32_t last)
{
	uint32_t n = picture->plan->n;

	if (first == HK_NONE)
		hk__text_add(text, "?");
	else if (picture->plan->coll == HK_COLL_ALLTOALL)
		hk__text_add(text, "%u:%u", first / n, first % n);
	else
		hk__text_add(text, "%u", first);
	if (last != first)
		hk__text_add(text, "-%u",
			     picture->plan->coll == HK_COLL_ALLTOALL ? last % n : last);
}

/* "c0-3,6+": which chunks, and whether the receiver adds them. */
static void label_write(const struct hk__picture *picture, const struct hk__picture_msg *msg,
			struct hk__text *text)
{
	if (msg->count == 0)
		return;
	if (picture->plan->coll != HK_COLL_ALLTOALL)
		hk__text_add(text, picture->plan->coll == HK_COLL_SENDRECV ? "m" : "c");
	for (uint32_t j = 0; j < msg->count;) {
		uint32_t first = hk__picture_label(picture, msg->first_label + j), last = first;

		hk__text_add(text, j ? "," : "");
		for (j++; j < msg->count; j++) {
			uint32_t symbol = hk__picture_label(picture, msg->first_label + j);

			if (!label_follows(picture, symbol, last))
				break;
			last = symbol;
		}
		label_add(text, picture, first, last);
	}
	if (msg->reduced)
		hk__text_add(text, "+");
	if (picture->show_lanes)
		hk__text_add(text, "@%u", msg->from_lane);
}

/* Characters of the label; more than any arrow has where it is too long to be kept. */
static uint32_t label_len(const struct hk__picture *picture, const struct hk__picture_msg *msg)
{
	char label[PICTURE_LABEL_MAX];
	struct hk__text text;

	hk__text_init(&text, label, sizeof(label));
	label_write(picture, msg, &text);
	return text.len + 1 < sizeof(label) ? (uint32_t)text.len : PICTURE_WIDTH_MAX;
}

/* Which chunks, or how many where that does not fit in room characters, or nothing. */
static void label_fit(const struct hk__picture *picture, const struct hk__picture_msg *msg,
		      uint32_t room, char label[PICTURE_LABEL_MAX])
{
	struct hk__text text;

	hk__text_init(&text, label, PICTURE_LABEL_MAX);
	if (label_len(picture, msg) <= room)
		label_write(picture, msg, &text);
	else
		hk__text_add(&text, "%uc%s", msg->count, msg->reduced ? "+" : "");
	if (text.len > room)
		label[0] = '\0';
}

/* ---- drawing ---- */

#define DRAW_CELLS_MAX (PICTURE_WIDTH_MAX + PICTURE_LABEL_MAX + 8)

/* One line of the picture; a cell is one character in UTF-8. */
struct draw_row {
	char cells[DRAW_CELLS_MAX][4];
};

static uint32_t msg_left(const struct hk__picture_msg *msg)
{
	return hk__min(msg->from, msg->to);
}

static uint32_t msg_right(const struct hk__picture_msg *msg)
{
	return msg->from > msg->to ? msg->from : msg->to;
}

static int msg_compare(const void *a, const void *b)
{
	const struct hk__picture_msg *x = a, *y = b;
	uint32_t keys[][2] = {
		{ x->round, y->round },
		{ msg_left(x), msg_left(y) },
		{ x->from > x->to, y->from > y->to },
		{ msg_right(x), msg_right(y) },
		{ x->number, y->number },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	return 0;
}

/* The gaps between ranks that an arrow runs through; a rank's own: to its right. */
static uint32_t msg_gaps(const struct hk__picture_msg *msg)
{
	uint32_t left = msg_left(msg), right = msg_right(msg);

	if (left == right)
		right++;
	return (1u << right) - (1u << left);
}

static void row_put(struct draw_row *row, uint32_t at, const char *glyph)
{
	hk_assert(at < DRAW_CELLS_MAX);
	snprintf(row->cells[at], sizeof(row->cells[at]), "%s", glyph);
}

static void row_put_text(struct draw_row *row, uint32_t at, const char *text)
{
	for (; *text; text++, at++) {
		char glyph[2] = { *text, '\0' };

		row_put(row, at, glyph);
	}
}

static void row_clear(const struct hk__picture *picture, struct draw_row *row)
{
	uint32_t last = PICTURE_MARGIN + (picture->plan->n - 1) * picture->pitch;

	memset(row, 0, sizeof(*row));
	for (uint32_t i = 0; i <= last; i++)
		row_put(row, i, " ");
	for (uint32_t r = 0; r < picture->plan->n; r++)
		row_put(row, PICTURE_MARGIN + r * picture->pitch, "│");
}

static void row_print(const struct draw_row *row, FILE *file)
{
	for (uint32_t i = 0; i < DRAW_CELLS_MAX; i++)
		fputs(row->cells[i], file);
	fputc('\n', file);
}

static void row_draw(const struct hk__picture *picture, struct draw_row *row,
		     const struct hk__picture_msg *msg)
{
	uint32_t pitch = picture->pitch, left = msg_left(msg), right = msg_right(msg);
	uint32_t x0 = PICTURE_MARGIN + left * pitch, x1 = PICTURE_MARGIN + right * pitch;
	char label[PICTURE_LABEL_MAX];
	bool rightward = msg->from < msg->to;

	if (left == right) {
		label_fit(picture, msg, pitch - 2, label);
		row_put(row, x0, "●");
		row_put(row, x0 + 1, "↺");
		row_put_text(row, x0 + 2, label);
		return;
	}
	for (uint32_t x = x0 + 1; x < x1; x++)
		row_put(row, x, "─");
	row_put(row, rightward ? x0 : x1, "●");
	if (rightward)
		row_put(row, x1 - 1, msg->received ? "▶" : "▷");
	else
		row_put(row, x0 + 1, msg->received ? "◀" : "◁");
	/* The label stays near its sender: an arrow is read from its dot. */
	uint32_t room = x1 - x0 - 2;
	label_fit(picture, msg, room, label);
	uint32_t len = (uint32_t)strlen(label);
	uint32_t dashes = hk__min(2, (room - len) / 2);
	row_put_text(row, rightward ? x0 + 1 + dashes : x1 - dashes - len, label);
}

static void round_draw(const struct hk__picture *picture, uint32_t first, uint32_t end, FILE *file)
{
	char name[PICTURE_MARGIN + 16];
	struct draw_row row;
	uint32_t undrawn = end - first;

	snprintf(name, sizeof(name), "round %u", hk__picture_msg(picture, first)->round);
	for (bool first_row = true; undrawn; first_row = false) {
		uint32_t taken = 0;

		row_clear(picture, &row);
		for (uint32_t i = first; i < end; i++) {
			struct hk__picture_msg *msg = hk__picture_msg(picture, i);

			if (msg->drawn || (msg_gaps(msg) & taken))
				continue;
			msg->drawn = true;
			undrawn--;
			taken |= msg_gaps(msg);
			row_draw(picture, &row, msg);
		}
		row_put_text(&row, 1, first_row ? name : "");
		row_print(&row, file);
	}
}

static void draw_heads(const struct hk__picture *picture, FILE *file)
{
	for (uint32_t r = 0; r < picture->plan->n; r++)
		fprintf(file, "%*u", r ? (int)picture->pitch : PICTURE_MARGIN + 1, r);
	fputc('\n', file);
}

/* The narrowest columns in which every label fits, within limits. */
static void picture_set_pitch(struct hk__picture *picture)
{
	uint32_t n = picture->plan->n;
	uint32_t most = hk__min(PICTURE_PITCH_MAX,
				(PICTURE_WIDTH_MAX - PICTURE_MARGIN) / (n > 1 ? n - 1 : 1));

	picture->pitch = hk__min(PICTURE_PITCH_MIN, most);
	for (uint32_t i = 0; i < picture->msgs.count; i++) {
		const struct hk__picture_msg *msg = hk__picture_msg(picture, i);
		uint32_t gaps = (uint32_t)__builtin_popcount(msg_gaps(msg));
		uint32_t len = label_len(picture, msg);

		/* Besides its label an arrow has a head, a dot and, at best, two dashes. */
		if (most * gaps < len + 2)
			picture->some_short = true;
		else if (picture->pitch * gaps < len + 4)
			picture->pitch = hk__min(most, (len + 4 + gaps - 1) / gaps);
	}
}

static void picture_draw_stuck(const struct hk__picture *picture, FILE *file)
{
	uint32_t nstuck = 0;
	struct hk_step step;

	for (size_t i = 0; i < picture->lanes.count; i++) {
		const struct hk__picture_lane *lane = hk__array_at(&picture->lanes, i);

		if (lane->at == lane->nsteps || nstuck++ >= PICTURE_STUCK_MAX)
			continue;
		hk_plan_step(picture->plan, lane->port.rank, lane->port.lane, lane->at, &step);
		fprintf(file, "%sstuck: rank %u lane %u waits forever in step %u, %s",
			nstuck == 1 ? "\n" : "", lane->port.rank, lane->port.lane, lane->at,
			hk_op_name(step.op));
		if (hk__op_receives(step.op))
			fprintf(file, " from rank %u", step.from.rank);
		if (hk__op_sends(step.op))
			fprintf(file, " to rank %u", step.to.rank);
		fputc('\n', file);
	}
	if (nstuck > PICTURE_STUCK_MAX)
		fprintf(file, "stuck: and %u more\n", nstuck - PICTURE_STUCK_MAX);
}

static void picture_draw(struct hk__picture *picture, FILE *file)
{
	uint32_t nmsgs = (uint32_t)picture->msgs.count;
	char title[HK_WHY_MAX];
	struct hk__text text;
	struct draw_row row;

	hk__text_init(&text, title, sizeof(title));
	hk__print_title(&text, picture->plan);
	fprintf(file, "%s\n\n", title);
	draw_heads(picture, file);
	for (uint32_t first = 0, end = 0; first < nmsgs && !ferror(file); first = end) {
		uint32_t round = hk__picture_msg(picture, first)->round;

		row_clear(picture, &row);
		row_print(&row, file);
		while (end < nmsgs && hk__picture_msg(picture, end)->round == round)
			end++;
		round_draw(picture, first, end, file);
	}
	row_clear(picture, &row);
	row_print(&row, file);
	draw_heads(picture, file);
}

static const char *picture_symbol(enum hk_coll coll)
{
	if (hk__coll_vector(coll))
		return "c3  part 3 of the vector";
	switch (coll) {
	case HK_COLL_ALLGATHER:
	case HK_COLL_GATHER:
		return "c3  the block of rank 3";
	case HK_COLL_ALLTOALL:
		return "2:5  the block from rank 2 to rank 5";
	case HK_COLL_SENDRECV:
		return "m3  message 3";
	case HK_COLL_BARRIER:
		return "no data, only the message";
	default:
		return "c3  the block for rank 3";
	}
}

static void picture_draw_legend(const struct hk__picture *picture, FILE *file)
{
	if (picture->msgs.count == 0) {
		fputs("\nnothing is sent\n", file);
		return;
	}
	fprintf(file, "\n●──▶  a message    %s%s\n", picture_symbol(picture->plan->coll),
		picture->some_reduced ? "    +  the receiver adds it to its own" : "");
	if (picture->show_lanes)
		fputs("@1  sent by lane 1 of the rank\n", file);
	if (picture->some_short)
		fputs("4c  four chunks, too many to name here\n", file);
	if (picture->nlost)
		fputs("●──▷  a message that nobody receives\n", file);
}

/* The run is over: order its messages as they are drawn. */
static enum hk_status picture_arrange(struct hk__picture *picture)
{
	uint32_t nmsgs = (uint32_t)picture->msgs.count;

	if (nmsgs == 0)
		return HK_OK;
	qsort(picture->msgs.items, nmsgs, picture->msgs.item_size, msg_compare);
	uint32_t nrounds = hk__picture_msg(picture, nmsgs - 1)->round;
	if (nrounds > PICTURE_ROUNDS_MAX)
		return hk__why(picture->why, HK_ELIMIT,
			       "%u rounds: a picture shows at most %u; the table shows any plan",
			       nrounds, PICTURE_ROUNDS_MAX);
	return HK_OK;
}

enum hk_status hk_plan_print_picture(const struct hk_plan *plan, const struct hk_print_opts *opts,
				     FILE *file, struct hk_why *why)
{
	struct hk__picture picture;
	uint32_t first = 0, end = 0;
	enum hk_status status = hk__print_ranks(plan, opts, why, &first, &end);

	if (status == HK_OK && end - first != plan->n)
		status = hk__why(why, HK_EINVAL, "a picture shows all ranks, not one");
	if (status != HK_OK)
		return status;
	status = hk__picture_init(&picture, plan, why);
	if (status == HK_OK)
		status = hk__picture_run(&picture);
	if (status == HK_OK)
		status = picture_arrange(&picture);
	if (status == HK_OK) {
		picture_set_pitch(&picture);
		picture_draw(&picture, file);
		picture_draw_stuck(&picture, file);
		picture_draw_legend(&picture, file);
		status = hk__print_end(file, why);
	}
	hk__picture_fini(&picture);
	return status;
}
