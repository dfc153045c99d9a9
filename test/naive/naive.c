/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive.c - the interpreter: the parts of a step, who moves next, and what is
 * said of a run when nobody can.
 *
 * Owns time: which lane does which part of its step next. What that part does
 * to memory and channels is in machine.c.
 */
#include "naive/naive.h"

#include "harness.h"
#include "naive/machine.h"

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

/* ---- steps ---- */

enum act {
	ACT_NONE,
	ACT_START,
	ACT_WRITE,
	ACT_SEND,
	ACT_END /* its send was taken: the step is over */
};

static bool step_ready(struct naive *m, const struct lane *lane, const struct prog_step *at)
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
	if (at->step.op == HK_OP_WAIT)
		return flight_waited(m, lane, &at->step);
	return !op_receives(at->step.op) || at->from == HK_NONE ||
	       channel_at(m, at->from)->count > 0;
}

static enum act lane_act(struct naive *m, const struct lane *lane)
{
	if (lane->next == lane->nsteps)
		return ACT_NONE;
	const struct prog_step *at = step_at(m, lane->first + lane->next);

	if (!lane->started)
		return step_ready(m, lane, at) ? ACT_START : ACT_NONE;
	if (!lane->to_write && !lane->to_send)
		return lane->offered ? ACT_NONE : ACT_END;
	const struct channel *to = lane->to_send ? channel_at(m, at->to) : NULL;
	bool send = to && channel_has_room(m, to);
	bool write_first = m->opts.order != NAIVE_LATE_WRITES && m->coin >> 63;

	if (lane->to_write && (write_first || !send))
		return ACT_WRITE;
	return send ? ACT_SEND : ACT_NONE;
}

static bool step_start_form(struct naive *m, const struct lane *lane, const struct prog_step *at)
{
	const struct rank *rank = rank_at(m, lane->rank);
	const struct hk_step *step = &at->step;

	if (step->op > HK_OP_WAIT || (op_onesided(step->op) && !m->info.signals))
		return machine_fault(m, lane, NAIVE_RESERVED);
	if ((op_receives(step->op) && at->from == HK_NONE) ||
	    (op_sends(step->op) && at->to == HK_NONE))
		return machine_fault(m, lane, NAIVE_RANGE);
	if (step->after.lane != HK_NONE &&
	    (step->after.lane >= rank->nlanes ||
	     step->after.step >= lane_at(m, rank->first_lane + step->after.lane)->nsteps))
		return machine_fault(m, lane, NAIVE_RANGE);
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
			return machine_fault(m, lane, NAIVE_LENGTH);
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

	if (!step_start_form(m, lane, at))
		return false;
	rank_at(m, lane->rank)->begun = true;
	if (!op_onesided(step->op) && !step_value(m, lane, at, &lane->value))
		return false;
	if (step->after.lane != HK_NONE) {
		uint32_t other = rank_at(m, lane->rank)->first_lane + step->after.lane;

		chain_join(m, lane, step_at(m, lane_at(m, other)->first + step->after.step)->chain);
	}
	if (op_receives(step->op))
		chain_join(m, lane, lane->value.chain);
	if (step->op == HK_OP_WAIT)
		chain_join(m, lane, flight_chain(m, lane, step));
	if (op_onesided(step->op) && !flight_start(m, lane, step))
		return false;
	lane->value.chain = lane->chain + 1;
	lane->value.known = rank_at(m, lane->rank)->known;
	lane->started = true;
	lane->to_send = op_sends(step->op);
	lane->to_write = step->op != HK_OP_NOP && step->op != HK_OP_SEND && step->count > 0 &&
			 !op_onesided(step->op) &&
			 !(op_sends(step->op) && step->dst.buf == HK_BUF_NONE);
	return true;
}

static bool step_end(struct naive *m, struct lane *lane, struct prog_step *at)
{
	if (m->opts.hold && op_receives(at->step.op)) {
		channel_at(m, at->from)->held--;
		lane_at(m, channel_at(m, at->from)->from)->offered = false;
	}
	at->chain = lane->chain;
	lane->started = false;
	lane->next++;
	if (lane->next < lane->nsteps || --rank_at(m, lane->rank)->lanes_left > 0)
		return true;
	return flight_rank_ends(m, lane);
}

/* False where the run is over because of a fault. */
static bool lane_move(struct naive *m, struct lane *lane, enum act act)
{
	struct prog_step *at = step_at(m, lane->first + lane->next);

	if (act == ACT_START && !step_start(m, lane, at))
		return false;
	if (act == ACT_WRITE) {
		if (!value_write(m, lane, &at->step.dst, &lane->value, m->coin >> 62 & 1))
			return false;
		lane->to_write = false;
	}
	if (act == ACT_SEND) {
		channel_put(m, channel_at(m, at->to), &lane->value);
		lane->to_send = false;
		lane->offered = m->opts.slots == 0;
	}
	if (!lane->to_write && !lane->to_send && !lane->offered)
		return step_end(m, lane, at);
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
static uint32_t order_find(struct naive *m, size_t start, bool writes, enum act *act_out)
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

/* Whether something lands, if it can, before a lane does anything. */
static bool lands_first(const struct naive *m)
{
	if (m->flights.count == 0)
		return false;
	switch (m->opts.order) {
	case NAIVE_ROUND_ROBIN:
		return true;
	case NAIVE_RANDOM:
		return m->coin >> 61 & 1;
	case NAIVE_PRIORITY:
		return (m->coin >> 58 & 7) == 0;
	default:
		return false; /* only where nobody can move */
	}
}

/* Lets one lane do one thing. False where nobody can, or at a fault. */
static bool move_one(struct naive *m)
{
	size_t start = 0;
	uint32_t found;
	enum act act;

	m->coin = test_random(&m->random);
	if (lands_first(m)) {
		enum flight_end end = flight_land(m);

		if (end != FLIGHT_NONE)
			return end == FLIGHT_LANDED;
	}
	if (m->opts.order == NAIVE_ROUND_ROBIN)
		start = (m->last + 1) % m->order.count;
	else if (m->opts.order != NAIVE_PRIORITY)
		start = m->coin % m->order.count;
	found = order_find(m, start, m->opts.order != NAIVE_LATE_WRITES, &act);
	if (found == HK_NONE && m->opts.order == NAIVE_LATE_WRITES)
		found = order_find(m, start, true, &act);
	if (found == HK_NONE)
		return flight_land(m) == FLIGHT_LANDED;
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
			(void)machine_fault(m, lane, NAIVE_DEADLOCK);
			return;
		}
	}
	m->report = (struct naive_report){ .rank = HK_NONE, .lane = HK_NONE, .step = HK_NONE };
	for (size_t c = 0; c < m->channels.count; c++)
		if (channel_at(m, c)->count)
			m->report.fault = NAIVE_LEFTOVER;
	if (!flight_balanced(m))
		m->report.fault = NAIVE_LEFTOVER;
	for (uint32_t r = 0; m->report.fault == NAIVE_OK && r < n; r++) {
		uint64_t all = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;

		if (m->info.coll == HK_COLL_BARRIER && !m->info.signals &&
		    rank_at(m, r)->known != all)
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
	m->landing = opts->order == NAIVE_ROUND_ROBIN
			     ? LANDING_OLDEST
			     : (enum naive_landing)(test_random(&m->random) % LANDING_COUNT);
	m->patience = 3u << test_random(&m->random) % 8;
	m->last = HK_NONE;
	m->longest = 0;
	m->report = (struct naive_report){ .rank = HK_NONE, .lane = HK_NONE, .step = HK_NONE };
	if (!machine_reset(m)) {
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
