/* SPDX-License-Identifier: Apache-2.0 */
/* naive.c - the interpreter: memory, channels, steps, and who moves next. */
#include "naive/naive.h"

#include "harness.h"

/* ---- arrays that grow and are used again ---- */

struct pool {
	void *items;
	size_t count;
	size_t room;
	size_t item_size;
};

/* Room for `more` items at the end; returns the first's index. Not zeroed. */
static size_t pool_add(struct pool *pool, size_t more)
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

/* ---- what runs ---- */

/* A value: chunks of elements in naive.elems. Never changed once made. */
struct chunk {
	size_t at;
	uint64_t len;
};

struct value {
	size_t first; /* in naive.chunks */
	uint32_t count;
	uint64_t known; /* barrier: the ranks its sender knew to have come */
	uint32_t chain; /* messages of the longest chain that ends with it */
};

struct message {
	struct value value;
	size_t next; /* in naive.messages */
};

struct channel {
	uint32_t from; /* lanes, by their number over all ranks */
	uint32_t to;
	uint32_t sibling; /* the next channel of the same sender */
	uint32_t count;	  /* messages in it */
	uint32_t held;	  /* slots of messages taken but not done with */
	size_t head, tail;
};

struct prog_step {
	struct hk_step step;
	uint32_t from, to; /* channels; HK_NONE: the peer is not there */
	uint32_t chain;	   /* of one run: the longest that ends before its end */
};

struct lane {
	uint32_t rank, lane;
	uint32_t first, nsteps; /* in naive.steps */
	uint32_t channels;	/* the first channel it sends on */
	/* Of one run: */
	uint32_t next; /* the step it is at: all before are over */
	bool started, to_write, to_send, offered;
	uint32_t chain; /* messages of the longest chain that ended here */
	struct value value;
};

/* A slot: where it lies in naive.elems and how long it is. */
struct cell {
	size_t at;
	uint64_t len;
	bool grows; /* scratch: as long as what was last written */
	bool defined;
};

struct rank {
	uint32_t first_lane, nlanes;
	uint32_t slots[HK_BUF_SCRATCH + 1];
	size_t cells[HK_BUF_SCRATCH + 1]; /* in naive.cells */
	size_t out_at;			  /* in naive.elems */
	uint64_t known;
};

struct naive {
	const struct hk_plan *plan;
	struct hk_plan_info info;
	struct pool ranks, lanes, steps, channels;	   /* of the plan */
	struct pool cells, elems, chunks, messages, order; /* of a run */
	const struct defn *data;
	struct naive_opts opts;
	struct naive_report report;
	uint64_t random;   /* the generator's state */
	uint64_t coin;	   /* its last number: for the small choices of a move */
	uint32_t patience; /* NAIVE_PRIORITY: moves before the first falls behind */
	uint32_t longest;  /* chain of messages */
	uint32_t last;	   /* who moved last, as a place in the order */
};

static struct rank *rank_at(const struct naive *m, size_t i)
{
	return (struct rank *)m->ranks.items + i;
}

static struct lane *lane_at(const struct naive *m, size_t i)
{
	return (struct lane *)m->lanes.items + i;
}

static struct channel *channel_at(const struct naive *m, size_t i)
{
	return (struct channel *)m->channels.items + i;
}

static struct cell *cell_at(const struct naive *m, size_t i)
{
	return (struct cell *)m->cells.items + i;
}

static union elem *elem_at(const struct naive *m, size_t i)
{
	return (union elem *)m->elems.items + i;
}

static struct chunk *chunk_at(const struct naive *m, size_t i)
{
	return (struct chunk *)m->chunks.items + i;
}

static struct prog_step *step_at(const struct naive *m, size_t i)
{
	return (struct prog_step *)m->steps.items + i;
}

const char *naive_fault_text(enum naive_fault fault)
{
	switch (fault) {
#define NAIVE_FAULT_TEXT(id, text) \
	case NAIVE_##id: \
		return text;
		NAIVE_FAULT_MAP(NAIVE_FAULT_TEXT)
#undef NAIVE_FAULT_TEXT
	}
	return "?";
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
	free(m);
}

static bool op_receives(enum hk_op op)
{
	return op == HK_OP_RECV || op == HK_OP_RECV_REDUCE || op == HK_OP_RECV_SEND ||
	       op == HK_OP_RECV_REDUCE_SEND;
}

static bool op_sends(enum hk_op op)
{
	return op == HK_OP_SEND || op == HK_OP_RECV_SEND || op == HK_OP_RECV_REDUCE_SEND;
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

/* The state before the first step. False where the plan's sizes are not the definition's. */
static bool reset(struct naive *m)
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
	}
	for (size_t c = 0; c < m->channels.count; c++)
		channel_at(m, c)->count = channel_at(m, c)->held = 0;
	for (size_t l = 0; l < m->lanes.count; l++) {
		struct lane *lane = lane_at(m, l);

		lane->next = lane->chain = 0;
		lane->started = lane->to_write = lane->to_send = lane->offered = false;
	}
	return sizes_agree;
}

const union elem *naive_out(const struct naive *m, uint32_t rank)
{
	return elem_at(m, rank_at(m, rank)->out_at);
}

/* ---- faults ---- */

static bool fault(struct naive *m, const struct lane *lane, enum naive_fault kind)
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

static bool value_read(struct naive *m, const struct lane *lane, const struct hk_span *span,
		       uint32_t count, struct value *value_out)
{
	if (!span_there(m, lane, span, count))
		return fault(m, lane, NAIVE_RANGE);
	*value_out = (struct value){ .first = pool_add(&m->chunks, count), .count = count };
	for (uint32_t j = 0; j < count; j++) {
		struct cell *cell = slot_of(m, lane, span, j);
		struct chunk *chunk = chunk_at(m, value_out->first + j);

		if (!cell->defined)
			return fault(m, lane, NAIVE_UNDEFINED);
		*chunk = (struct chunk){ pool_add(&m->elems, cell->len), cell->len };
		if (chunk->len)
			memcpy(elem_at(m, chunk->at), elem_at(m, cell->at),
			       chunk->len * sizeof(union elem));
	}
	return true;
}

/* a and b are lists of chunks of equal number and lengths; the sum is new. */
static bool value_add(struct naive *m, const struct lane *lane, const struct value *a,
		      const struct value *b, struct value *sum_out)
{
	if (a->count != b->count)
		return fault(m, lane, NAIVE_LENGTH);
	*sum_out = (struct value){ .first = pool_add(&m->chunks, a->count),
				   .count = a->count,
				   .chain = a->chain };
	for (uint32_t j = 0; j < a->count; j++) {
		struct chunk left = *chunk_at(m, a->first + j), right = *chunk_at(m, b->first + j);

		if (left.len != right.len)
			return fault(m, lane, NAIVE_LENGTH);
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
		return fault(m, lane, NAIVE_LENGTH);
	}
	if (chunk->len)
		memcpy(elem_at(m, cell->at), elem_at(m, chunk->at),
		       chunk->len * sizeof(union elem));
	return true;
}

/* ---- channels ---- */

static uint32_t channel_room(const struct naive *m)
{
	return m->opts.slots ? m->opts.slots : 1;
}

static void channel_put(struct naive *m, struct channel *channel, const struct value *value)
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

/* Takes the first message; in a rendezvous that ends its sender's send. */
static struct value channel_take(struct naive *m, struct channel *channel)
{
	struct message *message = (struct message *)m->messages.items + channel->head;

	channel->head = message->next;
	channel->count--;
	channel->held += m->opts.hold;
	if (!m->opts.hold)
		lane_at(m, channel->from)->offered = false;
	return message->value;
}

/* ---- steps ---- */

enum act {
	ACT_NONE,
	ACT_START,
	ACT_WRITE,
	ACT_SEND,
	ACT_END /* its send was taken: the step is over */
};

static bool step_ready(const struct naive *m, const struct lane *lane, const struct prog_step *at)
{
	const struct rank *rank = rank_at(m, lane->rank);
	const struct hk_after *after = &at->step.after;

	if (after->lane != HK_NONE) {
		/* What is not there is a fault: let it start and be found. */
		if (after->lane >= rank->nlanes)
			return true;
		const struct lane *other = lane_at(m, rank->first_lane + after->lane);
		if (after->step < other->nsteps && other->next <= after->step)
			return false;
	}
	return !op_receives(at->step.op) || at->from == HK_NONE ||
	       channel_at(m, at->from)->count > 0;
}

static enum act lane_act(const struct naive *m, const struct lane *lane)
{
	if (lane->next == lane->nsteps)
		return ACT_NONE;
	const struct prog_step *at = step_at(m, lane->first + lane->next);

	if (!lane->started)
		return step_ready(m, lane, at) ? ACT_START : ACT_NONE;
	if (!lane->to_write && !lane->to_send)
		return lane->offered ? ACT_NONE : ACT_END;
	const struct channel *to = lane->to_send ? channel_at(m, at->to) : NULL;
	bool send = to && to->count + to->held < channel_room(m);
	bool write_first = m->opts.order != NAIVE_LATE_WRITES && m->coin >> 63;

	if (lane->to_write && (write_first || !send))
		return ACT_WRITE;
	return send ? ACT_SEND : ACT_NONE;
}

static bool step_start_form(struct naive *m, const struct lane *lane, const struct prog_step *at)
{
	const struct rank *rank = rank_at(m, lane->rank);
	const struct hk_step *step = &at->step;

	if (step->op >= HK_OP_PUT)
		return fault(m, lane, NAIVE_RESERVED);
	if ((op_receives(step->op) && at->from == HK_NONE) ||
	    (op_sends(step->op) && at->to == HK_NONE))
		return fault(m, lane, NAIVE_RANGE);
	if (step->after.lane != HK_NONE &&
	    (step->after.lane >= rank->nlanes ||
	     step->after.step >= lane_at(m, rank->first_lane + step->after.lane)->nsteps))
		return fault(m, lane, NAIVE_RANGE);
	return true;
}

/* Reads all that the step reads and works out its value. */
static bool step_value(struct naive *m, const struct lane *lane, const struct prog_step *at,
		       struct value *value_out)
{
	const struct hk_step *step = &at->step;
	struct value message = { 0 }, src, dst;

	if (op_receives(step->op)) {
		message = channel_take(m, channel_at(m, at->from));
		rank_at(m, lane->rank)->known |= message.known;
		if (message.count != step->count)
			return fault(m, lane, NAIVE_LENGTH);
	}
	switch (step->op) {
	case HK_OP_SEND:
	case HK_OP_COPY:
		return value_read(m, lane, &step->src, step->count, value_out);
	case HK_OP_RECV_REDUCE:
	case HK_OP_RECV_REDUCE_SEND:
		return value_read(m, lane, &step->src, step->count, &src) &&
		       value_add(m, lane, &message, &src, value_out);
	case HK_OP_REDUCE:
		return value_read(m, lane, &step->dst, step->count, &dst) &&
		       value_read(m, lane, &step->src, step->count, &src) &&
		       value_add(m, lane, &dst, &src, value_out);
	default:
		*value_out = message;
		return true;
	}
}

/* A step comes after what its lane did, its dependency and its message. */
static void chain_join(struct naive *m, struct lane *lane, uint32_t chain)
{
	if (lane->chain < chain)
		lane->chain = chain;
	if (m->longest < chain)
		m->longest = chain;
}

static bool step_start(struct naive *m, struct lane *lane, const struct prog_step *at)
{
	const struct hk_step *step = &at->step;

	if (!step_start_form(m, lane, at) || !step_value(m, lane, at, &lane->value))
		return false;
	if (step->after.lane != HK_NONE) {
		uint32_t other = rank_at(m, lane->rank)->first_lane + step->after.lane;

		chain_join(m, lane, step_at(m, lane_at(m, other)->first + step->after.step)->chain);
	}
	if (op_receives(step->op))
		chain_join(m, lane, lane->value.chain);
	lane->value.chain = lane->chain + 1;
	lane->value.known = rank_at(m, lane->rank)->known;
	lane->started = true;
	lane->to_send = op_sends(step->op);
	lane->to_write = step->op != HK_OP_NOP && step->op != HK_OP_SEND && step->count > 0 &&
			 !(op_sends(step->op) && step->dst.buf == HK_BUF_NONE);
	return true;
}

static bool step_write(struct naive *m, struct lane *lane, const struct prog_step *at)
{
	const struct hk_step *step = &at->step;
	bool backwards = m->coin >> 62 & 1;

	if (!span_there(m, lane, &step->dst, step->count))
		return fault(m, lane, NAIVE_RANGE);
	if (step->dst.buf == HK_BUF_IN)
		return fault(m, lane, NAIVE_INPUT);
	for (uint32_t j = 0; j < step->count; j++) {
		uint32_t k = backwards ? step->count - 1 - j : j;

		if (!chunk_write(m, lane, slot_of(m, lane, &step->dst, k),
				 chunk_at(m, lane->value.first + k)))
			return false;
	}
	lane->to_write = false;
	return true;
}

static void step_end(struct naive *m, struct lane *lane, struct prog_step *at)
{
	if (m->opts.hold && op_receives(at->step.op)) {
		channel_at(m, at->from)->held--;
		lane_at(m, channel_at(m, at->from)->from)->offered = false;
	}
	at->chain = lane->chain;
	lane->started = false;
	lane->next++;
}

/* False where the run is over because of a fault. */
static bool lane_move(struct naive *m, struct lane *lane, enum act act)
{
	struct prog_step *at = step_at(m, lane->first + lane->next);

	if (act == ACT_START && !step_start(m, lane, at))
		return false;
	if (act == ACT_WRITE && !step_write(m, lane, at))
		return false;
	if (act == ACT_SEND) {
		channel_put(m, channel_at(m, at->to), &lane->value);
		lane->to_send = false;
		lane->offered = m->opts.slots == 0;
	}
	if (!lane->to_write && !lane->to_send && !lane->offered)
		step_end(m, lane, at);
	return true;
}

/* ---- who moves ---- */

static void order_init(struct naive *m)
{
	uint32_t *order;

	m->order.count = 0;
	pool_add(&m->order, m->lanes.count);
	order = m->order.items;
	for (uint32_t i = 0; i < m->lanes.count; i++)
		order[i] = i;
	for (size_t i = m->lanes.count; m->opts.order != NAIVE_ROUND_ROBIN && i > 1; i--) {
		size_t other = test_random(&m->random) % i;
		uint32_t swap = order[i - 1];

		order[i - 1] = order[other];
		order[other] = swap;
	}
}

static void order_demote(struct naive *m, size_t index)
{
	uint32_t *order = m->order.items, lane = order[index];

	memmove(order + index, order + index + 1, (m->order.count - index - 1) * sizeof(*order));
	order[m->order.count - 1] = lane;
}

/* The place in the order of a lane that can move, looking from `start` on; HK_NONE: nobody. */
static uint32_t order_find(const struct naive *m, size_t start, bool writes, enum act *act_out)
{
	const uint32_t *order = m->order.items;

	for (size_t i = 0; i < m->order.count; i++) {
		size_t at = start + i < m->order.count ? start + i : start + i - m->order.count;

		*act_out = lane_act(m, lane_at(m, order[at]));
		if (*act_out != ACT_NONE && (writes || *act_out != ACT_WRITE))
			return (uint32_t)at;
	}
	return HK_NONE;
}

/* Lets one lane do one thing. False where nobody can, or at a fault. */
static bool move_one(struct naive *m)
{
	size_t start = 0;
	uint32_t found;
	enum act act;

	m->coin = test_random(&m->random);
	if (m->opts.order == NAIVE_ROUND_ROBIN)
		start = (m->last + 1) % m->order.count;
	else if (m->opts.order != NAIVE_PRIORITY)
		start = m->coin % m->order.count;
	found = order_find(m, start, m->opts.order != NAIVE_LATE_WRITES, &act);
	if (found == HK_NONE && m->opts.order == NAIVE_LATE_WRITES)
		found = order_find(m, start, true, &act);
	if (found == HK_NONE)
		return false;
	m->last = found;
	uint32_t moved = ((uint32_t *)m->order.items)[found];
	if (m->opts.order == NAIVE_PRIORITY && m->coin % m->patience == 0)
		order_demote(m, found);
	return lane_move(m, lane_at(m, moved), act);
}

/* ---- the run ---- */

/* What the run left behind, after nobody could move any more. */
static void judge(struct naive *m)
{
	uint32_t n = m->info.nranks;

	for (size_t l = 0; l < m->lanes.count; l++) {
		const struct lane *lane = lane_at(m, l);

		if (lane->next < lane->nsteps) {
			(void)fault(m, lane, NAIVE_DEADLOCK);
			return;
		}
	}
	m->report = (struct naive_report){ .rank = HK_NONE, .lane = HK_NONE, .step = HK_NONE };
	for (size_t c = 0; c < m->channels.count; c++)
		if (channel_at(m, c)->count)
			m->report.fault = NAIVE_LEFTOVER;
	for (uint32_t r = 0; m->report.fault == NAIVE_OK && r < n; r++) {
		uint64_t all = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;

		if (m->info.coll == HK_COLL_BARRIER && rank_at(m, r)->known != all)
			m->report.fault = NAIVE_EARLY;
		else if (!defn_equal(m->data, r, naive_out(m, r), &m->report.index))
			m->report.fault = NAIVE_WRONG;
		if (m->report.fault != NAIVE_OK)
			m->report.rank = r;
	}
}

enum naive_fault naive_run(struct naive *m, const struct defn *data, const struct naive_opts *opts,
			   struct naive_report *report_out)
{
	CHECK(data->spec.coll == m->info.coll && data->spec.n == m->info.nranks);
	CHECK(m->info.coll != HK_COLL_BARRIER || m->info.nranks <= 64);
	m->data = data;
	m->opts = *opts;
	m->random = opts->seed;
	m->patience = 3u << test_random(&m->random) % 8;
	m->last = HK_NONE;
	m->longest = 0;
	m->report = (struct naive_report){ .rank = HK_NONE, .lane = HK_NONE, .step = HK_NONE };
	if (!reset(m)) {
		m->report.fault = NAIVE_LENGTH;
	} else {
		order_init(m);
		while (m->order.count && move_one(m))
			;
		if (m->report.fault == NAIVE_OK)
			judge(m);
	}
	m->report.longest = m->longest;
	if (report_out)
		*report_out = m->report;
	return m->report.fault;
}
