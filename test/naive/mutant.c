/* SPDX-License-Identifier: Apache-2.0 */
/* mutant.c - the families of changes. */
#include "naive/mutant.h"

#include "harness.h"

struct edit {
	struct hk_plan *plan;
	const struct mutant *mutant;
	struct hk_step *step;
	struct hk__array *steps; /* of its lane */
};

const char *mutant_family_text(enum mutant_family family)
{
	switch (family) {
#define MUTANT_TEXT(id, function, text) \
	case MUTANT_##id: \
		return text;
		MUTANT_MAP(MUTANT_TEXT)
#undef MUTANT_TEXT
	case MUTANT_COUNT:
		break;
	}
	return "?";
}

static bool has_src(const struct hk_step *step)
{
	switch (step->op) {
	case HK_OP_SEND:
	case HK_OP_COPY:
	case HK_OP_REDUCE:
	case HK_OP_RECV_REDUCE:
	case HK_OP_RECV_REDUCE_SEND:
	case HK_OP_PUT:
		return true;
	default:
		return false;
	}
}

static bool has_dst(const struct hk_step *step)
{
	return step->op != HK_OP_NOP && step->op != HK_OP_SEND && step->op != HK_OP_SIGNAL &&
	       step->op != HK_OP_WAIT;
}

static bool has_from(const struct hk_step *step)
{
	return step->op == HK_OP_RECV || step->op == HK_OP_RECV_REDUCE ||
	       step->op == HK_OP_RECV_SEND || step->op == HK_OP_RECV_REDUCE_SEND ||
	       step->op == HK_OP_WAIT;
}

static bool has_to(const struct hk_step *step)
{
	return step->op == HK_OP_SEND || step->op == HK_OP_RECV_SEND ||
	       step->op == HK_OP_RECV_REDUCE_SEND || step->op == HK_OP_PUT ||
	       step->op == HK_OP_SIGNAL;
}

/* Whose slots it writes. */
static uint32_t dst_rank(const struct edit *e)
{
	return e->step->op == HK_OP_PUT ? e->step->to.rank : e->mutant->rank;
}

/* ---- steps that go, come or move ---- */

static struct hk__array *lane_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct hk__store_lane *stored = hk__array_at(&plan->store->ranks[rank].lanes, lane);

	return &stored->steps;
}

static void steps_remove(struct hk__array *steps, size_t index)
{
	struct hk_step *items = steps->items;

	memmove(items + index, items + index + 1, (steps->count - index - 1) * sizeof(*items));
	steps->count--;
}

static enum mutant_made edit_drop(struct edit *e)
{
	if (e->mutant->variant > 0)
		return MUTANT_END;
	steps_remove(e->steps, e->mutant->step);
	return MUTANT_MADE;
}

static enum mutant_made edit_twice(struct edit *e)
{
	size_t at = e->mutant->step;

	if (e->mutant->variant > 0)
		return MUTANT_END;
	CHECK(hk__array_push(e->steps));
	struct hk_step *items = e->steps->items;
	memmove(items + at + 1, items + at, (e->steps->count - at - 1) * sizeof(*items));
	return MUTANT_MADE;
}

static enum mutant_made edit_swap(struct edit *e)
{
	struct hk_step *next = e->step + 1, swap = *e->step;

	if (e->mutant->variant > 0 || e->mutant->step + 1 == e->steps->count)
		return MUTANT_END;
	if (memcmp(e->step, next, sizeof(swap)) == 0)
		return MUTANT_SAME;
	*e->step = *next;
	*next = swap;
	return MUTANT_MADE;
}

static enum mutant_made edit_move(struct edit *e)
{
	struct hk_step moved = *e->step;

	if (e->mutant->variant >= hk_plan_lanes(e->plan, e->mutant->rank))
		return MUTANT_END;
	if (e->mutant->variant == e->mutant->lane)
		return MUTANT_SAME;
	steps_remove(e->steps, e->mutant->step);
	struct hk_step *added = hk__store_add_step(e->plan, e->mutant->rank, e->mutant->variant);
	CHECK(added);
	*added = moved;
	return MUTANT_MADE;
}

/* ---- peers ---- */

static enum mutant_made edit_rank(struct edit *e, struct hk_port *port, bool has)
{
	uint32_t next = (port->rank + 1) % e->plan->n, self = e->mutant->rank;

	if (!has || e->mutant->variant > 1)
		return MUTANT_END;
	if (e->mutant->variant == 1 && self == next)
		return MUTANT_SAME; /* it was variant 0 */
	port->rank = e->mutant->variant == 0 ? next : self;
	return MUTANT_MADE;
}

static enum mutant_made edit_lane(struct edit *e, struct hk_port *port, bool has)
{
	if (!has || e->mutant->variant > 0)
		return MUTANT_END;
	/* Another signal, perhaps one that is never waited for. */
	if (e->step->op == HK_OP_SIGNAL || e->step->op == HK_OP_WAIT) {
		port->lane = port->lane ? port->lane - 1 : 1;
		return MUTANT_MADE;
	}
	/* Where the peer has one lane: one that is not there. */
	uint32_t lanes = hk_plan_lanes(e->plan, port->rank);
	port->lane = (port->lane + 1) % (lanes > 1 ? lanes : 2);
	return MUTANT_MADE;
}

static enum mutant_made edit_from_rank(struct edit *e)
{
	return edit_rank(e, &e->step->from, has_from(e->step));
}

static enum mutant_made edit_to_rank(struct edit *e)
{
	return edit_rank(e, &e->step->to, has_to(e->step));
}

static enum mutant_made edit_from_lane(struct edit *e)
{
	return edit_lane(e, &e->step->from, has_from(e->step));
}

static enum mutant_made edit_to_lane(struct edit *e)
{
	return edit_lane(e, &e->step->to, has_to(e->step));
}

/* ---- spans ---- */

static enum mutant_made edit_first(struct edit *e, struct hk_span *span, uint32_t rank, bool has)
{
	uint32_t slots = hk_plan_slots(e->plan, rank, span->buf);

	if (!has || slots < 2 || e->mutant->variant > 0)
		return MUTANT_END;
	span->first = (span->first + 1) % slots;
	return MUTANT_MADE;
}

static enum mutant_made edit_shape(struct edit *e, struct hk_span *span, bool has)
{
	if (!has || span->buf == HK_BUF_NONE || e->step->count < 2 || e->mutant->variant > 1)
		return MUTANT_END;
	if (span->run == 0) {
		/* A plain row: every second slot of it, or a row of one slot. */
		span->run = 1;
		span->period = e->mutant->variant == 0 ? 2 : 0;
	} else if (e->mutant->variant == 0) {
		span->period++;
	} else {
		span->run++;
	}
	return MUTANT_MADE;
}

static enum mutant_made edit_buf(struct edit *e, struct hk_span *span, uint32_t rank, bool has)
{
	if (!has || e->mutant->variant > HK_BUF_SCRATCH)
		return MUTANT_END;
	uint32_t slots = hk_plan_slots(e->plan, rank, (enum hk_buf)e->mutant->variant);
	span->buf = (enum hk_buf)e->mutant->variant;
	/* Rather one that means something than one past the end. */
	if (slots)
		span->first %= slots;
	return MUTANT_MADE;
}

static enum mutant_made edit_src_first(struct edit *e)
{
	return edit_first(e, &e->step->src, e->mutant->rank, has_src(e->step));
}

static enum mutant_made edit_dst_first(struct edit *e)
{
	return edit_first(e, &e->step->dst, dst_rank(e), has_dst(e->step));
}

static enum mutant_made edit_src_shape(struct edit *e)
{
	return edit_shape(e, &e->step->src, has_src(e->step));
}

static enum mutant_made edit_dst_shape(struct edit *e)
{
	return edit_shape(e, &e->step->dst, has_dst(e->step));
}

static enum mutant_made edit_src_buf(struct edit *e)
{
	return edit_buf(e, &e->step->src, e->mutant->rank, has_src(e->step));
}

static enum mutant_made edit_dst_buf(struct edit *e)
{
	return edit_buf(e, &e->step->dst, dst_rank(e), has_dst(e->step));
}

static enum mutant_made edit_chunks(struct edit *e)
{
	if (e->mutant->variant > 1 || e->step->op == HK_OP_NOP || e->step->op == HK_OP_SIGNAL ||
	    e->step->op == HK_OP_WAIT)
		return MUTANT_END;
	if (e->mutant->variant == 0)
		e->step->count++;
	else if (e->step->count > 0)
		e->step->count--;
	return MUTANT_MADE;
}

static enum mutant_made edit_count_wait(struct edit *e)
{
	if (e->mutant->variant > 1 || e->step->op != HK_OP_WAIT)
		return MUTANT_END;
	e->step->count += e->mutant->variant == 0 ? UINT32_MAX : 1;
	return MUTANT_MADE;
}

/* ---- operations, dependencies, slots ---- */

static enum mutant_made edit_op(struct edit *e)
{
	static const enum hk_op other[HK_OP_COUNT] = {
		[HK_OP_RECV] = HK_OP_RECV_REDUCE,
		[HK_OP_RECV_REDUCE] = HK_OP_RECV,
		[HK_OP_RECV_SEND] = HK_OP_RECV_REDUCE_SEND,
		[HK_OP_RECV_REDUCE_SEND] = HK_OP_RECV_SEND,
		[HK_OP_COPY] = HK_OP_REDUCE,
		[HK_OP_REDUCE] = HK_OP_COPY,
	};

	if (e->mutant->variant > 0 || e->step->op >= HK_OP_COUNT || !other[e->step->op])
		return MUTANT_END;
	e->step->op = other[e->step->op];
	if (has_src(e->step) && e->step->src.buf == HK_BUF_NONE)
		e->step->src = e->step->dst.buf == HK_BUF_NONE
				       ? (struct hk_span){ .buf = HK_BUF_IN }
				       : e->step->dst;
	return MUTANT_MADE;
}

static enum mutant_made edit_after_none(struct edit *e)
{
	if (e->mutant->variant > 0 || e->step->after.lane == HK_NONE)
		return MUTANT_END;
	e->step->after = (struct hk_after){ HK_NONE, 0 };
	return MUTANT_MADE;
}

static enum mutant_made edit_after_less(struct edit *e)
{
	if (e->mutant->variant > 0 || e->step->after.lane == HK_NONE || e->step->after.step == 0)
		return MUTANT_END;
	e->step->after.step--;
	return MUTANT_MADE;
}

/* Once a plan, at its first step. */
static enum mutant_made edit_slots(struct edit *e)
{
	const struct mutant *m = e->mutant;

	if (m->variant > 0 || m->rank || m->lane || m->step || e->plan->slots == 0)
		return MUTANT_END;
	e->plan->slots--;
	return MUTANT_MADE;
}

/* Once a plan, too. */
static enum mutant_made edit_signals(struct edit *e)
{
	const struct mutant *m = e->mutant;

	if (m->variant > 0 || m->rank || m->lane || m->step ||
	    e->plan->signals != HK_SIGNALS_STRONG)
		return MUTANT_END;
	e->plan->signals = HK_SIGNALS_WEAK;
	return MUTANT_MADE;
}

/* ---- all of them ---- */

enum mutant_made mutant_apply(struct hk_plan *plan, const struct mutant *mutant)
{
	static enum mutant_made (*const edits[MUTANT_COUNT])(struct edit * e) = {
#define MUTANT_EDIT(id, function, text) [MUTANT_##id] = edit_##function,
		MUTANT_MAP(MUTANT_EDIT)
#undef MUTANT_EDIT
	};

	if (mutant->step >= hk_plan_steps(plan, mutant->rank, mutant->lane))
		return MUTANT_END;
	struct edit e = { .plan = plan,
			  .mutant = mutant,
			  .step = hk__store_step(plan, mutant->rank, mutant->lane, mutant->step),
			  .steps = lane_steps(plan, mutant->rank, mutant->lane) };
	struct hk_step before = *e.step;
	enum mutant_made made = edits[mutant->family](&e);
	bool in_place = mutant->family >= MUTANT_FROM_RANK && mutant->family <= MUTANT_AFTER_LESS;

	if (made == MUTANT_MADE && in_place && memcmp(&before, e.step, sizeof(before)) == 0)
		return MUTANT_SAME;
	return made;
}

void mutant_undo(struct hk_plan *plan, const struct hk_plan *base, const struct mutant *mutant)
{
	plan->slots = base->slots;
	plan->signals = base->signals;
	for (uint32_t l = 0; l < hk_plan_lanes(base, mutant->rank); l++) {
		struct hk__array *to = lane_steps(plan, mutant->rank, l);
		const struct hk__array *from = lane_steps(base, mutant->rank, l);

		CHECK(to->room >= from->count);
		to->count = from->count;
		if (from->count)
			memcpy(to->items, from->items, from->count * sizeof(struct hk_step));
	}
}

/* ---- for people ---- */

static void span_print(const char *what, const struct hk_span *span, FILE *file)
{
	if (span->buf == HK_BUF_NONE)
		return;
	fprintf(file, " %s %s[%u", what, hk_buf_name(span->buf), span->first);
	if (span->run)
		fprintf(file, ", run %u period %u", span->run, span->period);
	fprintf(file, "]");
}

static void step_print(const struct hk_step *step, FILE *file)
{
	fprintf(file, "%s x%u", hk_op_name(step->op), step->count);
	if (has_from(step))
		fprintf(file, " from %u.%u", step->from.rank, step->from.lane);
	if (has_to(step))
		fprintf(file, " to %u.%u", step->to.rank, step->to.lane);
	span_print("src", &step->src, file);
	span_print("dst", &step->dst, file);
	if (step->after.lane != HK_NONE)
		fprintf(file, " after %u.%u", step->after.lane, step->after.step);
}

void mutant_print(const struct mutant *m, const struct hk_plan *base, const struct hk_plan *plan,
		  FILE *file)
{
	fprintf(file, "rank %u lane %u step %u %s (variant %u)\n", m->rank, m->lane, m->step,
		mutant_family_text(m->family), m->variant);
	if (m->step < hk_plan_steps(base, m->rank, m->lane)) {
		fprintf(file, "  was ");
		step_print(hk__store_step(base, m->rank, m->lane, m->step), file);
	}
	if (m->step < hk_plan_steps(plan, m->rank, m->lane)) {
		fprintf(file, "\n  is  ");
		step_print(hk__store_step(plan, m->rank, m->lane, m->step), file);
	}
	fprintf(file, "\n");
}
