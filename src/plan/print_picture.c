/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_picture.c - who sends what to whom, round by round, drawn with ranks
 * as columns and messages as arrows between them.
 *
 *	          0         1         2
 *	 round 1  ●──c2+───▶●──c0+───▶│
 *	          │◀───────c1+────────●
 *
 * The plan is run once, without time: a message belongs to the round after the
 * last message its sender had to receive before. The run obeys lanes, channels
 * and dependencies, and knows which chunk every slot holds, so what an arrow
 * carries is what would really travel. A plan that gets stuck is drawn up to
 * there. Pictures are for small plans; everything here is bounded.
 */
#include "plan/print.h"

#include <stdlib.h>
#include <string.h>

#define PICTURE_RANKS_MAX 16u
#define PICTURE_ROUNDS_MAX 128u
#define PICTURE_STEPS_MAX (1u << 13)
#define PICTURE_SLOTS_MAX (1u << 16)
#define PICTURE_LABELS_MAX (1u << 20) /* chunks in all messages together */
#define PICTURE_WIDTH_MAX 102
#define PICTURE_MARGIN 12
#define PICTURE_PITCH_MIN 10u
#define PICTURE_PITCH_MAX 24u
#define PICTURE_LABEL_MAX 48
#define PICTURE_STUCK_MAX 8 /* waiting lanes that are listed */

struct picture_lane {
	struct hk_port port;
	uint32_t nsteps;
	uint32_t at;	     /* the step it is in */
	uint32_t first_step; /* of all steps, in picture->rounds */
	uint32_t round;	     /* of the last message that had to come first */
	uint32_t carried;    /* labels between the halves of a fused step */
	uint32_t sent;	     /* its message, or HK_NONE */
	uint32_t holds;	     /* the message whose slot it uses, or HK_NONE */
};

/* A FIFO of messages on their way, linked. */
struct picture_channel {
	uint32_t first;
	uint32_t last;
	uint32_t queued;
	uint32_t used; /* slots: queued, or held by the step that received */
};

struct picture_msg {
	uint32_t round;
	uint32_t from;
	uint32_t from_lane;
	uint32_t to;
	uint32_t first_label; /* in picture->labels */
	uint32_t count;
	uint32_t next;	 /* in its channel */
	uint32_t number; /* in the order of sending */
	uint32_t channel;
	bool received;
	bool reduced; /* by the step that received it */
	bool over;    /* that step is over */
	bool drawn;
};

struct picture {
	const struct hk_plan *plan;
	struct hk_why *why;
	uint32_t nsteps;
	uint32_t nslots;
	uint32_t nlost;	 /* messages that nobody received */
	uint32_t pitch;	 /* characters from rank to rank */
	bool show_lanes; /* lanes other than 0 send */
	bool some_reduced;
	bool some_short;  /* labels that had to be shortened */
	uint32_t *rounds; /* when each step was over */
	uint32_t *held;	  /* the symbol in each slot; HK_NONE: none */
	uint32_t lane_first[PICTURE_RANKS_MAX];
	uint32_t slot_first[PICTURE_RANKS_MAX][HK_BUF_SCRATCH + 1];
	struct hk__array lanes;	    /* struct picture_lane */
	struct hk__array channels;  /* struct picture_channel */
	struct hk__array msgs;	    /* struct picture_msg */
	struct hk__array labels;    /* uint32_t: symbols that messages carry */
	struct hk__hash channel_of; /* ports to channel */
};

static struct picture_msg *picture_msg(const struct picture *picture, uint32_t i)
{
	return hk__array_at(&picture->msgs, i);
}

/* ---- setting up ---- */

static enum hk_status picture_count_rank(struct picture *picture, uint32_t rank)
{
	const struct hk_plan *plan = picture->plan;
	struct hk_step step;

	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
		uint32_t nsteps = hk_plan_steps(plan, rank, l);

		if (nsteps > PICTURE_STEPS_MAX - picture->nsteps)
			return hk__why(picture->why, HK_ELIMIT,
				       "more than %u steps: too many for a picture",
				       PICTURE_STEPS_MAX);
		picture->nsteps += nsteps;
		for (uint32_t i = 0; i < nsteps; i++) {
			hk_plan_step(plan, rank, l, i, &step);
			const char *fault = hk__step_fault(plan, rank, &step);
			if (fault)
				return hk__why(picture->why, HK_EINVAL,
					       "rank %u lane %u step %u: %s %s", rank, l, i,
					       hk_op_name(step.op), fault);
		}
	}
	for (enum hk_buf buf = HK_BUF_IN; buf <= HK_BUF_SCRATCH; buf++) {
		uint32_t nslots = hk_plan_slots(plan, rank, buf);

		if (nslots > PICTURE_SLOTS_MAX - picture->nslots)
			return hk__why(picture->why, HK_ELIMIT,
				       "more than %u slots: too many for a picture",
				       PICTURE_SLOTS_MAX);
		picture->slot_first[rank][buf] = picture->nslots;
		picture->nslots += nslots;
	}
	return HK_OK;
}

static enum hk_status picture_count(struct picture *picture)
{
	enum hk_status status = HK_OK;

	if (picture->plan->n > PICTURE_RANKS_MAX)
		return hk__why(picture->why, HK_ELIMIT,
			       "%u ranks: a picture shows at most %u; the table and the graph "
			       "show any plan",
			       picture->plan->n, PICTURE_RANKS_MAX);
	for (uint32_t r = 0; status == HK_OK && r < picture->plan->n; r++)
		status = picture_count_rank(picture, r);
	return status;
}

static bool picture_add_lanes(struct picture *picture)
{
	const struct hk_plan *plan = picture->plan;
	uint32_t first_step = 0;

	for (uint32_t r = 0; r < plan->n; r++) {
		picture->lane_first[r] = (uint32_t)picture->lanes.count;
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			struct picture_lane *lane = hk__array_push(&picture->lanes);

			if (!lane)
				return false;
			*lane = (struct picture_lane){ .port = { r, l },
						       .nsteps = hk_plan_steps(plan, r, l),
						       .first_step = first_step,
						       .sent = HK_NONE,
						       .holds = HK_NONE };
			first_step += lane->nsteps;
		}
	}
	return true;
}

static enum hk_status picture_init(struct picture *picture, const struct hk_plan *plan,
				   struct hk_why *why)
{
	*picture = (struct picture){ .plan = plan, .why = why };
	hk__array_init(&picture->lanes, plan->alloc, sizeof(struct picture_lane));
	hk__array_init(&picture->channels, plan->alloc, sizeof(struct picture_channel));
	hk__array_init(&picture->msgs, plan->alloc, sizeof(struct picture_msg));
	hk__array_init(&picture->labels, plan->alloc, sizeof(uint32_t));
	hk__hash_init(&picture->channel_of, plan->alloc);
	enum hk_status status = picture_count(picture);
	if (status != HK_OK)
		return status;
	picture->rounds = hk__mem_zalloc(plan->alloc, picture->nsteps, sizeof(uint32_t));
	picture->held = hk__mem_zalloc(plan->alloc, picture->nslots, sizeof(uint32_t));
	if (!picture->rounds || !picture->held || !picture_add_lanes(picture))
		return hk__why(why, HK_ENOMEM, "no memory for a picture");
	for (uint32_t i = 0; i < picture->nslots; i++)
		picture->held[i] = HK_NONE;
	for (uint32_t r = 0; r < plan->n; r++)
		for (uint32_t s = 0; s < hk_plan_slots(plan, r, HK_BUF_IN); s++)
			picture->held[picture->slot_first[r][HK_BUF_IN] + s] =
				(uint32_t)hk_plan_symbol(plan, r, HK_BUF_IN, s);
	return HK_OK;
}

static void picture_fini(struct picture *picture)
{
	const struct hk_alloc *alloc = picture->plan->alloc;

	hk__hash_fini(&picture->channel_of);
	hk__array_fini(&picture->labels);
	hk__array_fini(&picture->msgs);
	hk__array_fini(&picture->channels);
	hk__array_fini(&picture->lanes);
	hk__mem_free(alloc, picture->held, picture->nslots, sizeof(uint32_t));
	hk__mem_free(alloc, picture->rounds, picture->nsteps, sizeof(uint32_t));
}

/* ---- the run ---- */

/* What became of one try to go on. */
enum run_result {
	RUN_WAITS,
	RUN_WENT_ON,
	RUN_NO_MEMORY,
	RUN_TOO_LARGE
};

static uint32_t *run_slot(const struct picture *picture, uint32_t rank, const struct hk_span *span,
			  uint32_t j)
{
	uint32_t nslots = hk_plan_slots(picture->plan, rank, span->buf);

	return &picture->held[picture->slot_first[rank][span->buf] + hk_span_at(span, j, nslots)];
}

static struct picture_channel *run_channel(struct picture *picture, struct hk_port from,
					   struct hk_port to)
{
	struct hk__hash_entry *entry =
		hk__hash_get(&picture->channel_of, (uint64_t)from.rank << 32 | from.lane,
			     (uint64_t)to.rank << 32 | to.lane);

	if (!entry)
		return NULL;
	if (entry->value == HK_NONE) {
		struct picture_channel *channel = hk__array_push(&picture->channels);

		if (!channel)
			return NULL;
		entry->value = (uint32_t)picture->channels.count - 1;
	}
	return hk__array_at(&picture->channels, entry->value);
}

static uint32_t run_label(const struct picture *picture, uint32_t i)
{
	return *(uint32_t *)hk__array_at(&picture->labels, i);
}

static enum run_result run_add_label(struct picture *picture, uint32_t symbol)
{
	if (picture->labels.count == PICTURE_LABELS_MAX)
		return RUN_TOO_LARGE;
	uint32_t *label = hk__array_push(&picture->labels);
	if (!label)
		return RUN_NO_MEMORY;
	*label = symbol;
	return RUN_WENT_ON;
}

/* Takes chunk j of a message in, and keeps it where a fused step passes it on. */
static enum run_result run_take_chunk(struct picture *picture, const struct picture_lane *lane,
				      const struct hk_step *step, uint32_t j, uint32_t symbol)
{
	if (hk__op_reduces(step->op) &&
	    *run_slot(picture, lane->port.rank, &step->src, j) != symbol)
		symbol = HK_NONE; /* a sum of different chunks has no name */
	if (step->dst.buf != HK_BUF_NONE)
		*run_slot(picture, lane->port.rank, &step->dst, j) = symbol;
	return hk__op_sends(step->op) ? run_add_label(picture, symbol) : RUN_WENT_ON;
}

static enum run_result run_receive(struct picture *picture, struct picture_lane *lane,
				   const struct hk_step *step)
{
	struct picture_channel *channel = run_channel(picture, step->from, lane->port);
	enum run_result result = RUN_WENT_ON;

	if (!channel)
		return RUN_NO_MEMORY;
	if (channel->queued == 0)
		return RUN_WAITS;
	struct picture_msg *msg = picture_msg(picture, channel->first);
	lane->holds = channel->first;
	channel->first = msg->next;
	channel->queued--;
	msg->received = true;
	msg->reduced = hk__op_reduces(step->op);
	picture->nlost--;
	picture->some_reduced |= msg->reduced;
	if (lane->round < msg->round)
		lane->round = msg->round;
	lane->carried = (uint32_t)picture->labels.count;
	for (uint32_t j = 0; result == RUN_WENT_ON && j < step->count; j++)
		result = run_take_chunk(picture, lane, step, j,
					j < msg->count ? run_label(picture, msg->first_label + j)
						       : HK_NONE);
	return result;
}

static enum run_result run_send(struct picture *picture, struct picture_lane *lane,
				const struct hk_step *step)
{
	struct picture_channel *channel = run_channel(picture, lane->port, step->to);
	struct picture_channel *channels = picture->channels.items;
	enum run_result result = RUN_WENT_ON;

	if (!channel)
		return RUN_NO_MEMORY;
	if (channel->used >= (picture->plan->slots ? picture->plan->slots : 1))
		return RUN_WAITS;
	struct picture_msg *msg = hk__array_push(&picture->msgs);
	if (!msg)
		return RUN_NO_MEMORY;
	*msg = (struct picture_msg){ .round = lane->round + 1,
				     .from = lane->port.rank,
				     .from_lane = lane->port.lane,
				     .to = step->to.rank,
				     .first_label = lane->carried,
				     .count = step->count,
				     .channel = (uint32_t)(channel - channels),
				     .number = (uint32_t)picture->msgs.count - 1 };
	lane->sent = msg->number;
	picture->nlost++;
	picture->show_lanes |= lane->port.lane != 0;
	if (step->op == HK_OP_SEND) {
		msg->first_label = (uint32_t)picture->labels.count;
		for (uint32_t j = 0; result == RUN_WENT_ON && j < step->count; j++)
			result = run_add_label(picture,
					       *run_slot(picture, lane->port.rank, &step->src, j));
	}
	channel->used++;
	if (channel->queued++ == 0)
		channel->first = lane->sent;
	else
		picture_msg(picture, channel->last)->next = lane->sent;
	channel->last = lane->sent;
	return result;
}

/* The step that received it is over, and with it the use of its slot. */
static void run_release(struct picture *picture, struct picture_msg *msg)
{
	struct picture_channel *channel = hk__array_at(&picture->channels, msg->channel);

	channel->used--;
	msg->over = true;
}

static void run_move(struct picture *picture, const struct picture_lane *lane,
		     const struct hk_step *step)
{
	for (uint32_t j = 0; j < step->count; j++) {
		uint32_t *dst = run_slot(picture, lane->port.rank, &step->dst, j);
		uint32_t symbol = *run_slot(picture, lane->port.rank, &step->src, j);

		if (step->op == HK_OP_REDUCE && *dst != symbol)
			symbol = HK_NONE;
		*dst = symbol;
	}
}

/* Whether what the step comes after is over. */
static bool run_may_start(const struct picture *picture, struct picture_lane *lane,
			  const struct hk_after *after)
{
	if (after->lane == HK_NONE)
		return true;
	const struct picture_lane *other =
		hk__array_at(&picture->lanes, picture->lane_first[lane->port.rank] + after->lane);
	if (other->at <= after->step)
		return false;
	uint32_t round = picture->rounds[other->first_step + after->step];
	if (lane->round < round)
		lane->round = round;
	return true;
}

static enum run_result run_step(struct picture *picture, struct picture_lane *lane)
{
	enum run_result result;
	struct hk_step step;

	hk_plan_step(picture->plan, lane->port.rank, lane->port.lane, lane->at, &step);
	if (!run_may_start(picture, lane, &step.after))
		return RUN_WAITS;
	if (hk__op_receives(step.op) && lane->holds == HK_NONE) {
		result = run_receive(picture, lane, &step);
		if (result != RUN_WENT_ON)
			return result;
	}
	if (hk__op_sends(step.op) && lane->sent == HK_NONE) {
		result = run_send(picture, lane, &step);
		if (result != RUN_WENT_ON)
			return result;
	}
	/* Without slots a message is handed over: its sender waits for its end. */
	if (hk__op_sends(step.op) && picture->plan->slots == 0 &&
	    !picture_msg(picture, lane->sent)->over)
		return RUN_WAITS;
	if (step.op == HK_OP_COPY || step.op == HK_OP_REDUCE)
		run_move(picture, lane, &step);
	picture->rounds[lane->first_step + lane->at++] = lane->round;
	if (lane->holds != HK_NONE)
		run_release(picture, picture_msg(picture, lane->holds));
	lane->sent = lane->holds = HK_NONE;
	return RUN_WENT_ON;
}

/* Every pass takes each lane as far as it gets; a pass without progress is the last. */
static enum hk_status picture_run(struct picture *picture)
{
	enum run_result result = RUN_WAITS;
	uint32_t before, after = 0;

	do {
		before = after;
		after = 0;
		for (size_t i = 0; i < picture->lanes.count; i++) {
			struct picture_lane *lane = hk__array_at(&picture->lanes, i);

			do
				result = lane->at < lane->nsteps ? run_step(picture, lane)
								 : RUN_WAITS;
			while (result == RUN_WENT_ON);
			if (result == RUN_NO_MEMORY)
				return hk__why(picture->why, HK_ENOMEM, "no memory for a picture");
			if (result == RUN_TOO_LARGE)
				return hk__why(picture->why, HK_ELIMIT,
					       "more than %u chunks move: too many for a picture",
					       PICTURE_LABELS_MAX);
			/* Grows with every half of a step. */
			after += 3 * lane->at + (lane->holds != HK_NONE) + (lane->sent != HK_NONE);
		}
	} while (after != before);
	return HK_OK;
}

/* ---- what a message is called ---- */

/* Whether a symbol continues a run that ends in another. */
static bool label_follows(const struct picture *picture, uint32_t symbol, uint32_t last)
{
	bool same_source = picture->plan->coll != HK_COLL_ALLTOALL ||
			   symbol / picture->plan->n == last / picture->plan->n;

	return symbol != HK_NONE && last != HK_NONE && symbol == last + 1 && same_source;
}

static void label_add(struct hk__text *text, const struct picture *picture, uint32_t first,
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
static void label_write(const struct picture *picture, const struct picture_msg *msg,
			struct hk__text *text)
{
	if (msg->count == 0)
		return;
	if (picture->plan->coll != HK_COLL_ALLTOALL)
		hk__text_add(text, picture->plan->coll == HK_COLL_SENDRECV ? "m" : "c");
	for (uint32_t j = 0; j < msg->count;) {
		uint32_t first = run_label(picture, msg->first_label + j), last = first;

		hk__text_add(text, j ? "," : "");
		for (j++; j < msg->count; j++) {
			uint32_t symbol = run_label(picture, msg->first_label + j);

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
static uint32_t label_len(const struct picture *picture, const struct picture_msg *msg)
{
	char label[PICTURE_LABEL_MAX];
	struct hk__text text;

	hk__text_init(&text, label, sizeof(label));
	label_write(picture, msg, &text);
	return text.len + 1 < sizeof(label) ? (uint32_t)text.len : PICTURE_WIDTH_MAX;
}

/* Which chunks, or how many where that does not fit in room characters, or nothing. */
static void label_fit(const struct picture *picture, const struct picture_msg *msg, uint32_t room,
		      char label[PICTURE_LABEL_MAX])
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

static uint32_t msg_left(const struct picture_msg *msg)
{
	return hk__min(msg->from, msg->to);
}

static uint32_t msg_right(const struct picture_msg *msg)
{
	return msg->from > msg->to ? msg->from : msg->to;
}

static int msg_compare(const void *a, const void *b)
{
	const struct picture_msg *x = a, *y = b;
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
static uint32_t msg_gaps(const struct picture_msg *msg)
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

static void row_clear(const struct picture *picture, struct draw_row *row)
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

static void row_draw(const struct picture *picture, struct draw_row *row,
		     const struct picture_msg *msg)
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

static void round_draw(const struct picture *picture, uint32_t first, uint32_t end, FILE *file)
{
	char name[PICTURE_MARGIN + 16];
	struct draw_row row;
	uint32_t undrawn = end - first;

	snprintf(name, sizeof(name), "round %u", picture_msg(picture, first)->round);
	for (bool first_row = true; undrawn; first_row = false) {
		uint32_t taken = 0;

		row_clear(picture, &row);
		for (uint32_t i = first; i < end; i++) {
			struct picture_msg *msg = picture_msg(picture, i);

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

static void draw_heads(const struct picture *picture, FILE *file)
{
	for (uint32_t r = 0; r < picture->plan->n; r++)
		fprintf(file, "%*u", r ? (int)picture->pitch : PICTURE_MARGIN + 1, r);
	fputc('\n', file);
}

/* The narrowest columns in which every label fits, within limits. */
static void picture_set_pitch(struct picture *picture)
{
	uint32_t n = picture->plan->n;
	uint32_t most = hk__min(PICTURE_PITCH_MAX,
				(PICTURE_WIDTH_MAX - PICTURE_MARGIN) / (n > 1 ? n - 1 : 1));

	picture->pitch = hk__min(PICTURE_PITCH_MIN, most);
	for (uint32_t i = 0; i < picture->msgs.count; i++) {
		const struct picture_msg *msg = picture_msg(picture, i);
		uint32_t gaps = (uint32_t)__builtin_popcount(msg_gaps(msg));
		uint32_t len = label_len(picture, msg);

		/* Besides its label an arrow has a head, a dot and, at best, two dashes. */
		if (most * gaps < len + 2)
			picture->some_short = true;
		else if (picture->pitch * gaps < len + 4)
			picture->pitch = hk__min(most, (len + 4 + gaps - 1) / gaps);
	}
}

static void picture_draw_stuck(const struct picture *picture, FILE *file)
{
	uint32_t nstuck = 0;
	struct hk_step step;

	for (size_t i = 0; i < picture->lanes.count; i++) {
		const struct picture_lane *lane = hk__array_at(&picture->lanes, i);

		if (lane->at == lane->nsteps || nstuck++ >= PICTURE_STUCK_MAX)
			continue;
		hk_plan_step(picture->plan, lane->port.rank, lane->port.lane, lane->at, &step);
		fprintf(file, "%sstuck: rank %u lane %u waits for ever in step %u, %s",
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

static void picture_draw(struct picture *picture, FILE *file)
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
		uint32_t round = picture_msg(picture, first)->round;

		row_clear(picture, &row);
		row_print(&row, file);
		while (end < nmsgs && picture_msg(picture, end)->round == round)
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

static void picture_draw_legend(const struct picture *picture, FILE *file)
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
static enum hk_status picture_arrange(struct picture *picture)
{
	uint32_t nmsgs = (uint32_t)picture->msgs.count;

	if (nmsgs == 0)
		return HK_OK;
	qsort(picture->msgs.items, nmsgs, picture->msgs.item_size, msg_compare);
	uint32_t nrounds = picture_msg(picture, nmsgs - 1)->round;
	if (nrounds > PICTURE_ROUNDS_MAX)
		return hk__why(picture->why, HK_ELIMIT,
			       "%u rounds: a picture shows at most %u; the table shows any plan",
			       nrounds, PICTURE_ROUNDS_MAX);
	return HK_OK;
}

enum hk_status hk_plan_print_picture(const struct hk_plan *plan, FILE *file, struct hk_why *why)
{
	struct picture picture;
	enum hk_status status = picture_init(&picture, plan, why);

	if (status == HK_OK)
		status = picture_run(&picture);
	if (status == HK_OK)
		status = picture_arrange(&picture);
	if (status == HK_OK) {
		picture_set_pitch(&picture);
		picture_draw(&picture, file);
		picture_draw_stuck(&picture, file);
		picture_draw_legend(&picture, file);
		status = hk__print_end(file);
		if (status != HK_OK)
			status = hk__why(why, status, "the picture could not be written");
	}
	picture_fini(&picture);
	return status;
}
