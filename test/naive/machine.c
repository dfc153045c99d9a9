/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - what the interpreter works on: the steps of the plan it loaded,
 * the memory of every rank, values, and channels.
 *
 * Owns every array, and what can go wrong with one read, sum or write. It
 * moves nothing by itself: when a step reads, writes or sends is for naive.c.
 */
#include "naive/machine.h"

#include "harness.h"

/* A chunk of a value: elements that are never changed once made. */
struct chunk {
	size_t at; /* in naive.elems */
	uint64_t len;
};

struct message {
	struct value value;
	size_t next; /* in naive.messages */
};

/* A slot: where it lies in naive.elems and how long it is. */
struct cell {
	size_t at;
	uint64_t len;
	bool grows; /* scratch: as long as what was last written */
	bool defined;
};

static struct cell *cell_at(const struct naive *m, size_t i)
{
	return (struct cell *)m->cells.items + i;
}

/* No element at all has no address to count from. */
static union elem *elem_at(const struct naive *m, size_t i)
{
	return m->elems.items ? (union elem *)m->elems.items + i : NULL;
}

static struct chunk *chunk_at(const struct naive *m, size_t i)
{
	return (struct chunk *)m->chunks.items + i;
}

size_t pool_add(struct pool *pool, size_t more)
{
	size_t first = pool->count;

	if (pool->count + more > pool->room) {
		pool->room = 2 * (pool->count + more) + 16;
		pool->items = realloc(pool->items, pool->room * pool->item_size);
		CHECK(pool->items);
	}
	pool->count += more;
	return first;
}

/* ---- loading a plan ---- */

struct naive *naive_create(void)
{
	struct naive *m = calloc(1, sizeof(*m));

	CHECK(m);
	m->ranks.item_size = sizeof(struct rank);
	m->lanes.item_size = sizeof(struct lane);
	m->steps.item_size = sizeof(struct prog_step);
	m->channels.item_size = sizeof(struct channel);
	m->cells.item_size = sizeof(struct cell);
	m->elems.item_size = sizeof(union elem);
	m->chunks.item_size = sizeof(struct chunk);
	m->messages.item_size = sizeof(struct message);
	m->order.item_size = sizeof(uint32_t);
	m->flights.item_size = sizeof(struct flight);
	m->words.item_size = sizeof(struct word);
	m->reached.item_size = sizeof(bool);
	return m;
}

void naive_destroy(struct naive *m)
{
	if (!m)
		return;
	free(m->ranks.items);
	free(m->lanes.items);
	free(m->steps.items);
	free(m->channels.items);
	free(m->cells.items);
	free(m->elems.items);
	free(m->chunks.items);
	free(m->messages.items);
	free(m->order.items);
	flight_free(m);
	free(m);
}

/* The number of a lane over all ranks, or HK_NONE. */
static uint32_t load_port(const struct naive *m, const struct hk_port *port)
{
	if (port->rank >= m->info.nranks || port->lane >= rank_at(m, port->rank)->nlanes)
		return HK_NONE;
	return rank_at(m, port->rank)->first_lane + port->lane;
}

static uint32_t load_channel(struct naive *m, uint32_t from, uint32_t to)
{
	if (from == HK_NONE || to == HK_NONE)
		return HK_NONE;
	for (uint32_t c = lane_at(m, from)->channels; c != HK_NONE; c = channel_at(m, c)->sibling)
		if (channel_at(m, c)->to == to)
			return c;
	size_t added = pool_add(&m->channels, 1);
	*channel_at(m, added) =
		(struct channel){ .from = from, .to = to, .sibling = lane_at(m, from)->channels };
	lane_at(m, from)->channels = (uint32_t)added;
	return (uint32_t)added;
}

static void load_lane(struct naive *m, uint32_t number)
{
	struct lane *lane = lane_at(m, number);

	lane->nsteps = hk_plan_steps(m->plan, lane->rank, lane->lane);
	lane->first = (uint32_t)pool_add(&m->steps, lane->nsteps);
	for (uint32_t i = 0; i < lane->nsteps; i++) {
		struct prog_step *to = step_at(m, lane->first + i);

		hk_plan_step(m->plan, lane->rank, lane->lane, i, &to->step);
		to->from = to->to = HK_NONE;
		if (op_receives(to->step.op))
			to->from = load_channel(m, load_port(m, &to->step.from), number);
		if (op_sends(to->step.op))
			to->to = load_channel(m, number, load_port(m, &to->step.to));
	}
}

void naive_load(struct naive *m, const struct hk_plan *plan)
{
	m->plan = plan;
	m->info.size = sizeof(m->info);
	hk_plan_describe(plan, &m->info);
	m->ranks.count = m->lanes.count = m->steps.count = m->channels.count = 0;
	pool_add(&m->ranks, m->info.nranks);
	for (uint32_t r = 0; r < m->info.nranks; r++) {
		struct rank *rank = rank_at(m, r);

		*rank = (struct rank){ .nlanes = hk_plan_lanes(plan, r) };
		rank->first_lane = (uint32_t)pool_add(&m->lanes, rank->nlanes);
		for (uint32_t l = 0; l < rank->nlanes; l++)
			*lane_at(m, rank->first_lane + l) =
				(struct lane){ .rank = r, .lane = l, .channels = HK_NONE };
		for (int buf = HK_BUF_IN; buf <= HK_BUF_SCRATCH; buf++)
			rank->slots[buf] = hk_plan_slots(plan, r, (enum hk_buf)buf);
	}
	for (size_t l = 0; l < m->lanes.count; l++)
		load_lane(m, (uint32_t)l);
}

/* ---- memory ---- */

/* What an element is before it is written: never part of a right answer. */
static union elem poison(enum elem_type type, uint64_t slot)
{
	union elem elem = { .bits = 0 };

	switch (type) {
	case ELEM_INT64:
		/* 64 random bits: with them, no sum is a right one of 46 bits. */
		elem.bits = test_random(&slot);
		break;
	case ELEM_DOUBLE:
		elem.bits = UINT64_C(0x7ff8000000000000) | (slot & 0xffffff);
		break;
	case ELEM_FLOAT:
		elem.bits = UINT64_C(0x7fc00000) | (slot & 0x3fffff);
		break;
	}
	return elem;
}

static uint64_t slot_length(const struct naive *m, uint32_t rank, enum hk_buf buf, uint32_t slot)
{
	return hk_plan_length(m->plan, &m->data->spec.sizes,
			      hk_plan_symbol(m->plan, rank, buf, slot));
}

static bool reset_out(struct naive *m, uint32_t r)
{
	struct rank *rank = rank_at(m, r);
	uint64_t len = 0;

	rank->cells[HK_BUF_OUT] = pool_add(&m->cells, rank->slots[HK_BUF_OUT]);
	rank->out_at = m->elems.count;
	for (uint32_t s = 0; s < rank->slots[HK_BUF_OUT]; s++) {
		struct cell *cell = cell_at(m, rank->cells[HK_BUF_OUT] + s);

		*cell = (struct cell){ .len = slot_length(m, r, HK_BUF_OUT, s), .defined = true };
		cell->at = pool_add(&m->elems, cell->len);
		union elem undefined = poison(m->data->spec.type, cell->at);
		for (uint64_t i = 0; i < cell->len; i++)
			*elem_at(m, cell->at + i) = undefined;
		len += cell->len;
	}
	return len == m->data->out[r].len;
}

/* In place, a slot of `in` may be the memory of a slot of `out`. */
static bool reset_in(struct naive *m, uint32_t r)
{
	struct rank *rank = rank_at(m, r);
	const struct defn_row *row = &m->data->in[r];
	uint64_t len = 0;

	rank->cells[HK_BUF_IN] = pool_add(&m->cells, rank->slots[HK_BUF_IN]);
	for (uint32_t s = 0; s < rank->slots[HK_BUF_IN]; s++) {
		struct cell *cell = cell_at(m, rank->cells[HK_BUF_IN] + s);
		uint64_t slot_len = slot_length(m, r, HK_BUF_IN, s);
		uint32_t same = m->opts.inplace ? hk_plan_inplace_slot(m->plan, r, s) : HK_NONE;

		*cell = (struct cell){ .len = slot_len, .defined = true };
		if (same == HK_NONE) {
			cell->at = pool_add(&m->elems, slot_len);
		} else {
			CHECK(same < rank->slots[HK_BUF_OUT]);
			*cell = *cell_at(m, rank->cells[HK_BUF_OUT] + same);
		}
		if (cell->len != slot_len || len + slot_len > row->len)
			return false;
		if (slot_len)
			memcpy(elem_at(m, cell->at), row->at + len, slot_len * sizeof(union elem));
		len += slot_len;
	}
	return len == row->len;
}

bool machine_reset(struct naive *m)
{
	bool sizes_agree = true;

	m->cells.count = m->elems.count = m->chunks.count = m->messages.count = 0;
	for (uint32_t r = 0; r < m->info.nranks; r++) {
		struct rank *rank = rank_at(m, r);
		uint32_t nscratch = rank->slots[HK_BUF_SCRATCH];

		sizes_agree &= reset_out(m, r) && reset_in(m, r);
		rank->cells[HK_BUF_SCRATCH] = pool_add(&m->cells, nscratch);
		for (uint32_t s = 0; s < nscratch; s++)
			*cell_at(m, rank->cells[HK_BUF_SCRATCH] + s) =
				(struct cell){ .grows = true };
		rank->known = UINT64_C(1) << r % 64;
		rank->begun = false;
		rank->lanes_left = 0;
	}
	flight_reset(m);
	for (size_t c = 0; c < m->channels.count; c++)
		channel_at(m, c)->count = channel_at(m, c)->held = 0;
	for (size_t l = 0; l < m->lanes.count; l++) {
		struct lane *lane = lane_at(m, l);

		lane->next = lane->chain = 0;
		lane->started = lane->to_write = lane->to_send = lane->offered = false;
		rank_at(m, lane->rank)->lanes_left += lane->nsteps > 0;
	}
	return sizes_agree;
}

const union elem *naive_out(const struct naive *m, uint32_t rank)
{
	return elem_at(m, rank_at(m, rank)->out_at);
}

/* ---- faults ---- */

bool machine_fault(struct naive *m, const struct lane *lane, enum naive_fault kind)
{
	m->report = (struct naive_report){
		.fault = kind, .rank = lane->rank, .lane = lane->lane, .step = lane->next
	};
	return false;
}

/* ---- values ---- */

static struct cell *slot_of(struct naive *m, const struct lane *lane, const struct hk_span *span,
			    uint32_t j)
{
	struct rank *rank = rank_at(m, lane->rank);
	uint32_t slot = hk_span_at(span, j, rank->slots[span->buf]);

	CHECK(slot < rank->slots[span->buf]);
	return cell_at(m, rank->cells[span->buf] + slot);
}

static bool span_there(struct naive *m, const struct lane *lane, const struct hk_span *span,
		       uint32_t count)
{
	if (count == 0)
		return true;
	if (span->buf <= HK_BUF_NONE || span->buf > HK_BUF_SCRATCH)
		return false;
	return count <= rank_at(m, lane->rank)->slots[span->buf];
}

bool value_read(struct naive *m, const struct lane *lane, const struct hk_span *span,
		uint32_t count, struct value *value_out)
{
	if (!span_there(m, lane, span, count))
		return machine_fault(m, lane, NAIVE_RANGE);
	*value_out = (struct value){ .first = pool_add(&m->chunks, count), .count = count };
	for (uint32_t j = 0; j < count; j++) {
		struct cell *cell = slot_of(m, lane, span, j);
		struct chunk *chunk = chunk_at(m, value_out->first + j);

		if (!cell->defined)
			return machine_fault(m, lane, NAIVE_UNDEFINED);
		*chunk = (struct chunk){ pool_add(&m->elems, cell->len), cell->len };
		if (chunk->len)
			memcpy(elem_at(m, chunk->at), elem_at(m, cell->at),
			       chunk->len * sizeof(union elem));
	}
	return true;
}

bool value_add(struct naive *m, const struct lane *lane, const struct value *a,
	       const struct value *b, struct value *sum_out)
{
	if (a->count != b->count)
		return machine_fault(m, lane, NAIVE_LENGTH);
	*sum_out = (struct value){ .first = pool_add(&m->chunks, a->count),
				   .count = a->count,
				   .chain = a->chain };
	for (uint32_t j = 0; j < a->count; j++) {
		struct chunk left = *chunk_at(m, a->first + j), right = *chunk_at(m, b->first + j);

		if (left.len != right.len)
			return machine_fault(m, lane, NAIVE_LENGTH);
		size_t at = pool_add(&m->elems, left.len);
		*chunk_at(m, sum_out->first + j) = (struct chunk){ at, left.len };
		for (uint64_t i = 0; i < left.len; i++)
			*elem_at(m, at + i) = elem_add(m->data->spec.type, *elem_at(m, left.at + i),
						       *elem_at(m, right.at + i));
	}
	return true;
}

static bool chunk_write(struct naive *m, const struct lane *lane, struct cell *cell,
			const struct chunk *chunk)
{
	if (cell->grows) {
		if (cell->len < chunk->len)
			cell->at = pool_add(&m->elems, chunk->len);
		cell->len = chunk->len;
		cell->defined = true;
	} else if (cell->len != chunk->len) {
		return machine_fault(m, lane, NAIVE_LENGTH);
	}
	if (chunk->len)
		memcpy(elem_at(m, cell->at), elem_at(m, chunk->at),
		       chunk->len * sizeof(union elem));
	return true;
}

bool value_write(struct naive *m, const struct lane *lane, const struct hk_span *span,
		 const struct value *value, bool backwards)
{
	uint32_t count = value->count;

	if (!span_there(m, lane, span, count))
		return machine_fault(m, lane, NAIVE_RANGE);
	if (span->buf == HK_BUF_IN)
		return machine_fault(m, lane, NAIVE_INPUT);
	for (uint32_t j = 0; j < count; j++) {
		uint32_t k = backwards ? count - 1 - j : j;

		if (!chunk_write(m, lane, slot_of(m, lane, span, k), chunk_at(m, value->first + k)))
			return false;
	}
	return true;
}

/* ---- channels ---- */

bool channel_has_room(const struct naive *m, const struct channel *channel)
{
	return channel->count + channel->held < (m->opts.slots ? m->opts.slots : 1);
}

void channel_put(struct naive *m, struct channel *channel, const struct value *value)
{
	size_t added = pool_add(&m->messages, 1);
	struct message *messages = m->messages.items;

	messages[added].value = *value;
	if (channel->count++ == 0)
		channel->head = added;
	else
		messages[channel->tail].next = added;
	channel->tail = added;
}

struct value channel_take(struct naive *m, struct channel *channel)
{
	struct message *message = (struct message *)m->messages.items + channel->head;

	channel->head = message->next;
	channel->count--;
	channel->held += m->opts.hold;
	if (!m->opts.hold)
		lane_at(m, channel->from)->offered = false;
	return message->value;
}
