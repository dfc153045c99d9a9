/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the one symbolic run that stands for all.
 *
 * Every lane runs until it waits: for a message, for a free slot of a full
 * channel, or for its dependency. What it does next is decided by its program
 * and its channels alone, never by the order in which lanes are run (the
 * network is Kahn's; a bounded channel is two unbounded ones, the second
 * carrying the free slots back), so any order gives the same end (I3).
 *
 * Two rendezvous partners (no slots) are the same with a channel that the sender
 * leaves only when it is empty again.
 *
 * A step goes through three doors, and may wait before each:
 *   enter   its dependency is over; its form was checked
 *   take    its message was received, or its source read; values are added
 *   leave   its message was put on the channel; values were stored
 */
#include "check/cross.h"

#include <string.h>

/* Steps and chunks between two calls of progress: some ten a second. */
#define RUN_WORK_PER_CALL (1u << 17)

/* ---- the pool of payloads ---- */

static uint32_t *pool_words(const struct proof *proof, uint32_t at)
{
	return hk__array_at(&proof->pool.words, at);
}

/* Blocks of 2^class words; a count is bounded by the slots of a buffer (I1). */
static uint32_t payload_class(const struct proof *proof, uint32_t count)
{
	hk_assert(count < 1u << 30 && proof->know_words < 1u << 30);
	return hk__clog2(count + proof->know_words + 1);
}

static enum hk_status payload_alloc(struct proof *proof, uint32_t count, struct payload *payload)
{
	uint32_t class = payload_class(proof, count);
	struct pool *pool = &proof->pool;

	*payload = (struct payload){ pool->free[class], count };
	if (payload->at != HK_NONE) {
		pool->free[class] = *pool_words(proof, payload->at);
		return HK_OK;
	}
	if (pool->words.count + (1u << class) > UINT32_MAX / 2)
		return HK_ELIMIT;
	payload->at = (uint32_t)pool->words.count;
	for (uint32_t i = 0; i < 1u << class; i++)
		if (!hk__array_push(&pool->words))
			return HK_ENOMEM;
	return HK_OK;
}

static void payload_free(struct proof *proof, struct payload *payload)
{
	uint32_t class = payload_class(proof, payload->count);

	if (payload->at == HK_NONE)
		return;
	*pool_words(proof, payload->at) = proof->pool.free[class];
	proof->pool.free[class] = payload->at;
	payload->at = HK_NONE;
}

/* ---- slots ---- */

/* Where a slot's value lives: a cell, or (returns false) the input constant. */
static bool slot_cell(const struct proof *proof, uint32_t rank, enum hk_buf buf, uint32_t slot,
		      uint64_t *cell_out)
{
	if (buf == HK_BUF_IN) {
		slot = proof->inplace ? hk_plan_inplace_slot(proof->plan, rank, slot) : HK_NONE;
		if (slot == HK_NONE)
			return false;
	} else if (buf == HK_BUF_SCRATCH) {
		slot += proof->nout[rank];
	}
	*cell_out = proof->cell_base[rank] + slot;
	return true;
}

static enum hk_status slot_read(struct proof *proof, struct lane *lane, const struct hk_span *span,
				uint32_t j, uint32_t *value_out)
{
	uint32_t slot = hk_span_at(span, j, hk_plan_slots(proof->plan, lane->rank, span->buf));
	uint64_t cell;

	if (!slot_cell(proof, lane->rank, span->buf, slot, &cell)) {
		*value_out = hk__value_input(&proof->values, lane->rank, slot);
		return HK_OK;
	}
	*value_out = proof->cells[cell].value;
	if (*value_out == VALUE_NOTHING && proof->nothing.rank == HK_NONE) {
		proof->nothing.rank = lane->rank;
		proof->nothing.lane = lane->index;
		proof->nothing.step = lane->at;
		proof->nothing.buf = span->buf;
		proof->nothing.slot = slot;
	}
	return hk__order_read(proof, lane, cell);
}

/* An output slot takes only chunks of its own length, scratch takes any. */
static enum hk_status slot_check_length(struct proof *proof, struct lane *lane, uint32_t rank,
					uint32_t slot, uint32_t value)
{
	char expected[HK_CHECK_TEXT_MAX], found[HK_CHECK_TEXT_MAX];

	if (lane->step.dst.buf != HK_BUF_OUT || value == VALUE_NOTHING ||
	    hk_plan_symbol(proof->plan, rank, HK_BUF_OUT, slot) ==
		    hk__value_symbol(&proof->values, value))
		return HK_OK;
	hk__promise_text(proof->plan, rank, slot, expected, sizeof(expected));
	hk__explain_value(proof, value, found, sizeof(found));
	return hk__refuse(proof, 6, lane, expected, found,
			  "stores %s in out[%u], which is for %s and may have another length",
			  found, slot, expected);
}

/* The rank whose slots a step writes, and whether it writes any. */
static uint32_t step_writes_at(const struct lane *lane)
{
	return lane->step.op == HK_OP_PUT ? lane->step.to.rank : lane->rank;
}

static bool step_writes(const struct hk_step *step)
{
	return (hk__op_fields(step->op) & (HK__FIELD_DST | HK__FIELD_PUT)) &&
	       step->dst.buf != HK_BUF_NONE;
}

static enum hk_status slot_write(struct proof *proof, struct lane *lane, uint32_t j, uint32_t value)
{
	const struct hk_span *span = &lane->step.dst;
	uint32_t rank = step_writes_at(lane);
	uint32_t slot = hk_span_at(span, j, hk_plan_slots(proof->plan, rank, span->buf));
	uint64_t cell = 0;
	bool has_cell = slot_cell(proof, rank, span->buf, slot, &cell);

	hk_assert(has_cell); /* hk__step_fault refuses writes to the input */
	enum hk_status status = slot_check_length(proof, lane, rank, slot, value);
	if (status == HK_OK)
		status = lane->step.op == HK_OP_PUT ? hk__cross_put(proof, lane, cell)
						    : hk__order_write(proof, lane, cell);
	if (status != HK_OK)
		return status;
	struct cell *at = &proof->cells[cell];
	if (span->buf == HK_BUF_SCRATCH && !at->written)
		proof->tallies[rank].scratch++;
	*at = (struct cell){
		.value = value, .step = lane->at, .lane = (uint16_t)lane->index, .written = true
	};
	return HK_OK;
}

/* ---- channels ---- */

static struct channel *channel_get(struct proof *proof, struct hk_port from, struct hk_port to)
{
	struct hk__hash_entry *entry =
		hk__hash_get(&proof->channel_of, (uint64_t)from.rank << 32 | to.rank,
			     (uint64_t)from.lane << 32 | to.lane);

	if (!entry)
		return NULL;
	if (entry->value != HK_NONE)
		return hk__array_at(&proof->channels, entry->value);
	struct channel *channel = hk__array_push(&proof->channels);
	if (!channel)
		return NULL;
	entry->value = (uint32_t)(proof->channels.count - 1);
	*channel = (struct channel){ from, to, HK_NONE, HK_NONE, 0, HK_NONE, HK_NONE };
	return channel;
}

static struct message *message_at(const struct proof *proof, uint32_t message)
{
	return hk__array_at(&proof->messages, message);
}

/* Takes over the lane's payload. */
static enum hk_status channel_push(struct proof *proof, struct channel *channel, struct lane *lane)
{
	uint32_t id = proof->messages_free;

	if (id != HK_NONE) {
		proof->messages_free = message_at(proof, id)->next;
	} else {
		if (!hk__array_push(&proof->messages))
			return HK_ENOMEM;
		id = (uint32_t)(proof->messages.count - 1);
	}
	uint32_t snapshot = proof->cross ? hk__cross_snapshot(proof, lane) : 0;
	if (snapshot == HK_NONE)
		return HK_ENOMEM;
	*message_at(proof, id) =
		(struct message){ lane->payload, lane->depth + 1, lane->at, snapshot, HK_NONE };
	lane->payload.at = HK_NONE;
	if (channel->tail == HK_NONE)
		channel->head = id;
	else
		message_at(proof, channel->tail)->next = id;
	channel->tail = id;
	channel->count++;
	proof->messages_sent++;
	return HK_OK;
}

/* Hands the payload over; the slot stays taken until channel_release. */
static struct message channel_pop(struct proof *proof, struct channel *channel)
{
	uint32_t id = channel->head;
	struct message message = *message_at(proof, id);

	channel->head = message.next;
	if (channel->head == HK_NONE)
		channel->tail = HK_NONE;
	message_at(proof, id)->next = proof->messages_free;
	proof->messages_free = id;
	return message;
}

/* ---- waking ---- */

static void lane_wake(struct proof *proof, uint32_t id)
{
	struct lane *lane = &proof->lanes[id];

	if (lane->queued)
		return;
	lane->queued = true;
	proof->queue[(proof->queue_head + proof->queue_count++) % proof->nlanes] = id;
}

static uint32_t lane_id(const struct proof *proof, const struct lane *lane)
{
	return (uint32_t)(lane - proof->lanes);
}

static void lane_wake_waiter(struct proof *proof, uint32_t *waiter)
{
	if (*waiter != HK_NONE)
		lane_wake(proof, *waiter);
	*waiter = HK_NONE;
}

/*
 * The step that took the message is over: its slot is free. Not before: an
 * executor may add straight from the slot it receives in to the one it sends
 * from, and then needs both at once.
 */
static void channel_release(struct proof *proof, struct lane *lane)
{
	if (lane->holds == HK_NONE)
		return;
	struct channel *channel = hk__array_at(&proof->channels, lane->holds);
	uint32_t sender = proof->lane_base[channel->from.rank] + channel->from.lane;

	lane->holds = HK_NONE;
	channel->count--;
	lane_wake_waiter(proof, &channel->sender);
	if (proof->slots == 0 && proof->lanes[sender].posted)
		lane_wake(proof, sender);
}

/* ---- door one: enter ---- */

static bool lane_dependency_over(const struct proof *proof, const struct lane *lane)
{
	const struct hk_after *after = &lane->step.after;

	return after->lane == HK_NONE ||
	       proof->lanes[proof->lane_base[lane->rank] + after->lane].at > after->step;
}

/*
 * A step writes no slot twice, and reads a slot it writes only for the very
 * chunk that goes there: else it would matter in which order chunks are moved.
 */
static enum hk_status step_check_overlap(struct proof *proof, struct lane *lane)
{
	const struct hk_step *step = &lane->step;
	uint32_t rank = step_writes_at(lane);
	uint32_t nslots = hk_plan_slots(proof->plan, rank, step->dst.buf);
	enum hk_status status = HK_OK;
	uint64_t base = proof->cell_base[rank], cell;

	if (step->count < 2 || !step_writes(step))
		return HK_OK;
	for (uint32_t j = 0; j < step->count && status == HK_OK; j++) {
		slot_cell(proof, rank, step->dst.buf, hk_span_at(&step->dst, j, nslots), &cell);
		if (proof->marks[cell - base])
			status = hk__refuse(proof, 1, lane, "", "", "writes %s[%u] twice",
					    hk_buf_name(step->dst.buf),
					    hk_span_at(&step->dst, j, nslots));
		proof->marks[cell - base] = j + 1;
	}
	/* A put reads elsewhere. */
	uint32_t nsrc = rank == lane->rank ? hk_plan_slots(proof->plan, rank, step->src.buf) : 0;
	for (uint32_t j = 0; nsrc && j < step->count && status == HK_OK; j++) {
		uint32_t slot = hk_span_at(&step->src, j, nsrc);

		if (slot_cell(proof, rank, step->src.buf, slot, &cell) &&
		    proof->marks[cell - base] && proof->marks[cell - base] != j + 1)
			status = hk__refuse(proof, 1, lane, "", "",
					    "reads %s[%u] for one chunk and overwrites it with "
					    "another",
					    hk_buf_name(step->src.buf), slot);
	}
	for (uint32_t j = 0; j < step->count; j++) {
		slot_cell(proof, rank, step->dst.buf, hk_span_at(&step->dst, j, nslots), &cell);
		proof->marks[cell - base] = 0;
	}
	return status;
}

static enum hk_status step_enter(struct proof *proof, struct lane *lane)
{
	hk_plan_step(proof->plan, lane->rank, lane->index, lane->at, &lane->step);
	const char *fault = hk__step_fault(proof->plan, lane->rank, &lane->step);
	if (fault)
		return hk__refuse(proof, 1, lane, "", "", "%s %s", hk_op_name(lane->step.op),
				  fault);
	lane->entered = true;
	lane->taken = lane->posted = false;
	lane->payload.at = HK_NONE;
	return step_check_overlap(proof, lane);
}

/* ---- door two: take ---- */

static enum hk_status step_add(struct proof *proof, struct lane *lane, uint32_t *value,
			       uint32_t other)
{
	struct values *values = &proof->values;

	if (*value != VALUE_NOTHING && other != VALUE_NOTHING &&
	    hk__value_symbol(values, *value) != hk__value_symbol(values, other)) {
		char one[HK_CHECK_TEXT_MAX], two[HK_CHECK_TEXT_MAX];

		hk__explain_value(proof, other, one, sizeof(one));
		hk__explain_value(proof, *value, two, sizeof(two));
		return hk__refuse(proof, 6, lane, one, two,
				  "adds %s to %s, which is a chunk of another length", two, one);
	}
	*value = hk__value_add(values, *value, other);
	return *value == HK_NONE ? HK_ENOMEM : HK_OK;
}

static enum hk_status step_receive(struct proof *proof, struct lane *lane, struct channel *channel)
{
	struct message message = channel_pop(proof, channel);

	lane->payload = message.payload;
	lane->holds = (uint32_t)(channel - (struct channel *)proof->channels.items);
	if (message.payload.count != lane->step.count) {
		char expected[64], found[HK_CHECK_TEXT_MAX];

		snprintf(expected, sizeof(expected), "a message of %u chunk%s", lane->step.count,
			 lane->step.count == 1 ? "" : "s");
		snprintf(found, sizeof(found), "one of %u, sent by rank %u lane %u step %u",
			 message.payload.count, channel->from.rank, channel->from.lane,
			 message.step);
		return hk__refuse(proof, 1, lane, expected, found, "%s expects %s, but finds %s",
				  hk_op_name(lane->step.op), expected, found);
	}
	proof->tallies[lane->rank].received += message.payload.count;
	bool news = message.depth > lane->depth;
	if (news)
		lane->depth = message.depth;
	const uint32_t *known = pool_words(proof, lane->payload.at) + lane->step.count;
	for (uint32_t w = 0; w < proof->know_words; w++)
		lane->knows[w] |= known[w];
	if (proof->cross)
		hk__cross_learn(proof, lane,
				proof->lane_base[channel->from.rank] + channel->from.lane,
				message.step, message.snapshot);
	if (news || proof->know_words || proof->cross)
		return hk__order_note(proof, lane);
	return HK_OK;
}

/* The values a step works on: its message's, its source's, or their sum. */
static enum hk_status step_take_values(struct proof *proof, struct lane *lane)
{
	const struct hk_step *step = &lane->step;
	bool reduces = hk__op_reduces(step->op);
	bool has_msg = hk__op_receives(step->op);
	bool has_src = hk__op_fields(step->op) & HK__FIELD_SRC;
	enum hk_status status = HK_OK;

	if (!has_msg)
		status = payload_alloc(proof, step->count, &lane->payload);
	for (uint32_t j = 0; has_src && j < step->count && status == HK_OK; j++) {
		uint32_t value, *at = pool_words(proof, lane->payload.at) + j;

		status = slot_read(proof, lane, &step->src, j, &value);
		if (status == HK_OK && step->op == HK_OP_REDUCE)
			status = slot_read(proof, lane, &step->dst, j, at);
		if (status == HK_OK && reduces)
			status = step_add(proof, lane, at, value);
		else
			*at = value;
	}
	struct tally *tally = &proof->tallies[lane->rank];
	if (reduces)
		tally->reduced += step->count;
	if (step->op == HK_OP_COPY)
		tally->copied += step->count;
	return status;
}

/* ---- door three: leave ---- */

static enum hk_status step_send(struct proof *proof, struct lane *lane, struct channel *channel)
{
	uint32_t *known = pool_words(proof, lane->payload.at) + lane->step.count;

	for (uint32_t w = 0; w < proof->know_words; w++)
		known[w] = lane->knows[w];
	proof->tallies[lane->rank].sent += lane->step.count;
	enum hk_status status = channel_push(proof, channel, lane);
	if (lane->depth + 1 > proof->critical)
		proof->critical = lane->depth + 1;
	lane_wake_waiter(proof, &channel->receiver);
	return status;
}

static enum hk_status step_store(struct proof *proof, struct lane *lane)
{
	const struct hk_step *step = &lane->step;
	enum hk_status status = HK_OK;

	if (!step_writes(step))
		return HK_OK;
	for (uint32_t j = 0; j < step->count && status == HK_OK; j++)
		status = slot_write(proof, lane, j, pool_words(proof, lane->payload.at)[j]);
	return status;
}

static void run_tell_progress(const struct proof *proof)
{
	if (proof->opts->progress)
		proof->opts->progress(proof->opts->ctx, proof->steps_done, proof->steps_total);
}

static void lane_next(struct proof *proof, struct lane *lane)
{
	payload_free(proof, &lane->payload);
	channel_release(proof, lane);
	lane->at++;
	lane->entered = false;
	proof->steps_done++;
	proof->work += 1 + lane->step.count;
	if (proof->work >= RUN_WORK_PER_CALL) {
		proof->work = 0;
		run_tell_progress(proof);
	}
	for (uint32_t l = proof->lane_base[lane->rank]; l < proof->lane_base[lane->rank + 1]; l++)
		if (proof->lanes[l].wait == LANE_WAITS_STEP)
			lane_wake(proof, l);
}

/* ---- a step, a lane, all lanes ---- */

static enum hk_status step_onesided(struct proof *proof, struct lane *lane, bool *waits_out)
{
	enum hk_status status;

	if (lane->step.op == HK_OP_WAIT)
		return hk__onesided_wait(proof, lane, waits_out);
	if (lane->step.op == HK_OP_PUT)
		return hk__onesided_put(proof, lane);
	status = hk__onesided_signal(proof, lane);
	for (uint32_t l = proof->lane_base[lane->step.to.rank];
	     l < proof->lane_base[lane->step.to.rank + 1]; l++)
		if (proof->lanes[l].wait == LANE_WAITS_SIGNAL)
			lane_wake(proof, l);
	return status;
}

/* The first two doors; *waits_out says whether the lane has to wait. */
static enum hk_status lane_take(struct proof *proof, struct lane *lane, bool *waits_out)
{
	enum hk_status status = HK_OK;

	*waits_out = false;
	if (!lane->entered)
		status = step_enter(proof, lane);
	if (status != HK_OK || lane->taken)
		return status;
	if (!lane_dependency_over(proof, lane)) {
		lane->wait = LANE_WAITS_STEP;
		*waits_out = true;
		return HK_OK;
	}
	struct channel *channel = NULL;
	if (hk__op_receives(lane->step.op)) {
		struct hk_port me = { lane->rank, lane->index };

		channel = channel_get(proof, lane->step.from, me);
		if (!channel)
			return HK_ENOMEM;
		if (channel->head == HK_NONE) {
			channel->receiver = lane_id(proof, lane);
			lane->wait = LANE_WAITS_MESSAGE;
			*waits_out = true;
			return HK_OK;
		}
	}
	if (lane->step.after.lane != HK_NONE)
		status = hk__order_join(proof, lane);
	if (status == HK_OK && channel)
		status = step_receive(proof, lane, channel);
	if (status == HK_OK && hk__op_onesided(lane->step.op))
		status = step_onesided(proof, lane, waits_out);
	if (status != HK_OK || *waits_out)
		return status;
	/* Signals carry no values. */
	if (lane->step.op != HK_OP_SIGNAL && lane->step.op != HK_OP_WAIT)
		status = step_take_values(proof, lane);
	lane->taken = true;
	/* Stored before it is sent: sending gives the payload away. */
	return status == HK_OK ? step_store(proof, lane) : status;
}

static enum hk_status lane_leave(struct proof *proof, struct lane *lane, bool *waits_out)
{
	enum hk_status status = HK_OK;
	struct hk_port me = { lane->rank, lane->index };

	*waits_out = false;
	if (!hk__op_sends(lane->step.op))
		return HK_OK;
	struct channel *channel = channel_get(proof, me, lane->step.to);
	if (!channel)
		return HK_ENOMEM;
	if (!lane->posted && channel->count < (proof->slots ? proof->slots : 1)) {
		status = step_send(proof, lane, channel);
		lane->posted = true;
	}
	/* Without slots the sender stays until its message is done with. */
	if (!lane->posted || (proof->slots == 0 && channel->count > 0)) {
		if (!lane->posted)
			channel->sender = lane_id(proof, lane);
		lane->wait = LANE_WAITS_SLOT;
		*waits_out = true;
	}
	return status;
}

static enum hk_status lane_run(struct proof *proof, struct lane *lane)
{
	while (lane->at < lane->nsteps) {
		bool waits;
		enum hk_status status = lane_take(proof, lane, &waits);

		if (status == HK_OK && !waits)
			status = lane_leave(proof, lane, &waits);
		if (status != HK_OK || waits)
			return status;
		lane->wait = LANE_RUNS;
		lane_next(proof, lane);
	}
	return HK_OK;
}

/* Every message was received (I4): else the next operation would find it. */
static enum hk_status run_check_drained(struct proof *proof)
{
	for (size_t i = 0; i < proof->channels.count; i++) {
		const struct channel *channel = hk__array_at(&proof->channels, i);

		if (channel->count == 0)
			continue;
		struct lane sender = { .rank = channel->from.rank,
				       .index = channel->from.lane,
				       .at = message_at(proof, channel->head)->step };
		return hk__refuse(proof, 4, &sender, "a receive for every send", "none",
				  "sends to rank %u lane %u, which never receives it",
				  channel->to.rank, channel->to.lane);
	}
	return HK_OK;
}

/* Whether some lane may be able to move; the last are those whose waits say nothing. */
static bool run_has_work(struct proof *proof)
{
	while (proof->queue_count == 0 && proof->cross) {
		uint32_t held = hk__onesided_held(proof);

		if (held == HK_NONE)
			break;
		lane_wake(proof, held);
	}
	return proof->queue_count > 0;
}

enum hk_status hk__run(struct proof *proof)
{
	run_tell_progress(proof);
	for (uint32_t i = 0; i < proof->nlanes; i++)
		lane_wake(proof, i);
	hk_assert(proof->nlanes > 0 || proof->queue_count == 0);
	while (run_has_work(proof)) {
		struct lane *lane = &proof->lanes[proof->queue[proof->queue_head]];

		proof->queue_head = (proof->queue_head + 1) % proof->nlanes;
		proof->queue_count--;
		lane->queued = false;
		enum hk_status status = lane_run(proof, lane);
		if (status != HK_OK)
			return status;
	}
	for (uint32_t i = 0; i < proof->nlanes; i++)
		if (proof->lanes[i].at < proof->lanes[i].nsteps)
			return hk__refuse_stuck(proof);
	enum hk_status status = run_check_drained(proof);
	return status == HK_OK && proof->cross ? hk__onesided_end(proof) : status;
}
