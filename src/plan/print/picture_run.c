/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture_run.c - the run behind a picture: the plan, performed once without
 * time, gives every message its round.
 *
 * A message belongs to the round after the last message its sender had to
 * receive before. The run obeys lanes, channels and dependencies, and knows
 * which chunk every slot holds, so what an arrow carries is what would really
 * travel. It proves nothing: that is for hk_check(). A plan that gets stuck has
 * run up to there, and each lane says where it waits. Everything is bounded, as
 * pictures are for small plans. How any of it looks is for print_picture.c.
 */
#include "plan/print/picture.h"

#define PICTURE_STEPS_MAX (1u << 13)
#define PICTURE_SLOTS_MAX (1u << 16)
#define PICTURE_LABELS_MAX (1u << 20) /* chunks in all messages together */

/* A FIFO of messages on their way, linked. */
struct picture_channel {
	uint32_t first;
	uint32_t last;
	uint32_t queued;
	uint32_t used; /* slots: queued, or held by the step that received */
};

/* ---- setting up ---- */

static enum hk_status picture_count_rank(struct hk__picture *picture, uint32_t rank)
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
			if (!fault && hk__op_onesided(step.op))
				fault = "is one-sided; pictures show messages, the table any plan";
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

static enum hk_status picture_count(struct hk__picture *picture)
{
	enum hk_status status = HK_OK;

	if (picture->plan->n > HK__PICTURE_RANKS_MAX)
		return hk__why(picture->why, HK_ELIMIT,
			       "%u ranks: a picture shows at most %u; the table shows any "
			       "plan",
			       picture->plan->n, HK__PICTURE_RANKS_MAX);
	for (uint32_t r = 0; status == HK_OK && r < picture->plan->n; r++)
		status = picture_count_rank(picture, r);
	return status;
}

static bool picture_add_lanes(struct hk__picture *picture)
{
	const struct hk_plan *plan = picture->plan;
	uint32_t first_step = 0;

	for (uint32_t r = 0; r < plan->n; r++) {
		picture->lane_first[r] = (uint32_t)picture->lanes.count;
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			struct hk__picture_lane *lane = hk__array_push(&picture->lanes);

			if (!lane)
				return false;
			*lane = (struct hk__picture_lane){ .port = { r, l },
							   .nsteps = hk_plan_steps(plan, r, l),
							   .first_step = first_step,
							   .sent = HK_NONE,
							   .holds = HK_NONE };
			first_step += lane->nsteps;
		}
	}
	return true;
}

enum hk_status hk__picture_init(struct hk__picture *picture, const struct hk_plan *plan,
				struct hk_why *why)
{
	*picture = (struct hk__picture){ .plan = plan, .why = why };
	hk__array_init(&picture->lanes, plan->alloc, sizeof(struct hk__picture_lane));
	hk__array_init(&picture->channels, plan->alloc, sizeof(struct picture_channel));
	hk__array_init(&picture->msgs, plan->alloc, sizeof(struct hk__picture_msg));
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

void hk__picture_fini(struct hk__picture *picture)
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

static uint32_t *run_slot(const struct hk__picture *picture, uint32_t rank,
			  const struct hk_span *span, uint32_t j)
{
	uint32_t nslots = hk_plan_slots(picture->plan, rank, span->buf);

	return &picture->held[picture->slot_first[rank][span->buf] + hk_span_at(span, j, nslots)];
}

static struct picture_channel *run_channel(struct hk__picture *picture, struct hk_port from,
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

static enum run_result run_add_label(struct hk__picture *picture, uint32_t symbol)
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
static enum run_result run_take_chunk(struct hk__picture *picture,
				      const struct hk__picture_lane *lane,
				      const struct hk_step *step, uint32_t j, uint32_t symbol)
{
	if (hk__op_reduces(step->op) &&
	    *run_slot(picture, lane->port.rank, &step->src, j) != symbol)
		symbol = HK_NONE; /* a sum of different chunks has no name */
	if (step->dst.buf != HK_BUF_NONE)
		*run_slot(picture, lane->port.rank, &step->dst, j) = symbol;
	return hk__op_sends(step->op) ? run_add_label(picture, symbol) : RUN_WENT_ON;
}

static enum run_result run_receive(struct hk__picture *picture, struct hk__picture_lane *lane,
				   const struct hk_step *step)
{
	struct picture_channel *channel = run_channel(picture, step->from, lane->port);
	enum run_result result = RUN_WENT_ON;

	if (!channel)
		return RUN_NO_MEMORY;
	if (channel->queued == 0)
		return RUN_WAITS;
	struct hk__picture_msg *msg = hk__picture_msg(picture, channel->first);
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
					j < msg->count
						? hk__picture_label(picture, msg->first_label + j)
						: HK_NONE);
	return result;
}

static enum run_result run_send(struct hk__picture *picture, struct hk__picture_lane *lane,
				const struct hk_step *step)
{
	struct picture_channel *channel = run_channel(picture, lane->port, step->to);
	struct picture_channel *channels = picture->channels.items;
	enum run_result result = RUN_WENT_ON;

	if (!channel)
		return RUN_NO_MEMORY;
	/* As the proof has it: no more than every transport offers. */
	uint32_t slots = hk__min(picture->plan->slots, HK_SLOTS_MIN);

	if (channel->used >= (slots ? slots : 1))
		return RUN_WAITS;
	struct hk__picture_msg *msg = hk__array_push(&picture->msgs);
	if (!msg)
		return RUN_NO_MEMORY;
	*msg = (struct hk__picture_msg){ .round = lane->round + 1,
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
		hk__picture_msg(picture, channel->last)->next = lane->sent;
	channel->last = lane->sent;
	return result;
}

/* The step that received it is over, and with it the use of its slot. */
static void run_release(struct hk__picture *picture, struct hk__picture_msg *msg)
{
	struct picture_channel *channel = hk__array_at(&picture->channels, msg->channel);

	channel->used--;
	msg->over = true;
}

static void run_move(struct hk__picture *picture, const struct hk__picture_lane *lane,
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
static bool run_may_start(const struct hk__picture *picture, struct hk__picture_lane *lane,
			  const struct hk_after *after)
{
	if (after->lane == HK_NONE)
		return true;
	const struct hk__picture_lane *other =
		hk__array_at(&picture->lanes, picture->lane_first[lane->port.rank] + after->lane);
	if (other->at <= after->step)
		return false;
	uint32_t round = picture->rounds[other->first_step + after->step];
	if (lane->round < round)
		lane->round = round;
	return true;
}

static enum run_result run_step(struct hk__picture *picture, struct hk__picture_lane *lane)
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
	    !hk__picture_msg(picture, lane->sent)->over)
		return RUN_WAITS;
	if (step.op == HK_OP_COPY || step.op == HK_OP_REDUCE)
		run_move(picture, lane, &step);
	picture->rounds[lane->first_step + lane->at++] = lane->round;
	if (lane->holds != HK_NONE)
		run_release(picture, hk__picture_msg(picture, lane->holds));
	lane->sent = lane->holds = HK_NONE;
	return RUN_WENT_ON;
}

/* Every pass takes each lane as far as it gets; a pass without progress is the last. */
enum hk_status hk__picture_run(struct hk__picture *picture)
{
	enum run_result result = RUN_WAITS;
	uint32_t before, after = 0;

	do {
		before = after;
		after = 0;
		for (size_t i = 0; i < picture->lanes.count; i++) {
			struct hk__picture_lane *lane = hk__array_at(&picture->lanes, i);

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
