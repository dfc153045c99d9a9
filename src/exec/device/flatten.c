/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flatten.c - runs a plan once, without sizes, and writes down its moves. Nobody
 * waits for a free slot here: a message that is not read or written in place gets
 * a buffer of its own.
 */
#include "exec/device/moves.h"

#include <string.h>

/* ---- places and moves ---- */

uint32_t hk__place_new(struct moves *moves, enum place_kind kind, uint32_t rank, uint32_t slot,
		       bool wide)
{
	struct place *place = hk__array_push(&moves->places);
	uint32_t i = (uint32_t)moves->places.count - 1;

	if (!place)
		return HK_NONE;
	*place =
		(struct place){ .kind = kind, .rank = rank, .slot = slot, .wide = wide, .same = i };
	hk__array_init(&place->moves, moves->alloc, sizeof(uint32_t));
	return i;
}

enum hk_status hk__move_add(struct moves *moves, uint32_t move, bool writes, struct operand operand)
{
	struct move *to = move_at(moves, move);
	struct operand *place = hk__array_push(writes ? &to->dst : &to->src);

	if (!place)
		return HK_ENOMEM;
	*place = operand;
	if (operand.is_message)
		return HK_OK;
	uint32_t same = place_at(moves, operand.at)->same;
	uint32_t *noted = hk__array_push(&place_at(moves, same)->moves);
	if (!noted)
		return HK_ENOMEM;
	*noted = move;
	return HK_OK;
}

static enum hk_status move_new(struct moves *moves, uint32_t rank, uint32_t lane, uint32_t step,
			       uint32_t *move_out)
{
	struct move *move = hk__array_push(&moves->moves);

	if (!move)
		return HK_ENOMEM;
	*move_out = (uint32_t)moves->moves.count - 1;
	*move = (struct move){ .rank = rank, .time = *move_out, .lane = lane, .step = step };
	hk__array_init(&move->src, moves->alloc, sizeof(struct operand));
	hk__array_init(&move->dst, moves->alloc, sizeof(struct operand));
	return HK_OK;
}

/* ---- values ---- */

/* Lengths of an alltoall are all one (it has no counts here), of others by symbol. */
static uint32_t symbol_of(const struct hk_plan *plan, uint32_t rank, enum hk_buf buf, uint32_t slot)
{
	if (plan->coll == HK_COLL_ALLTOALL)
		return 0;
	return (uint32_t)hk_plan_symbol(plan, rank, buf, slot);
}

static struct value *value_of(const struct moves *moves, uint32_t rank, const struct hk_span *span,
			      uint32_t j)
{
	uint32_t slot = hk_span_at(span, j, hk_plan_slots(moves->plan, rank, span->buf));

	return span->buf == HK_BUF_IN	 ? &moves->in[rank][slot]
	       : span->buf == HK_BUF_OUT ? &moves->out[rank][slot]
					 : &moves->scratch[rank][slot];
}

/* Sums that are not complete stay wide, where that makes a difference. */
static bool value_is_wide(const struct moves *moves, const struct value *value, bool sums)
{
	return moves->wide && value->parts < moves->n && (sums || value->wide);
}

/*
 * Where a value goes that is stored in a slot. What is narrow goes to `out` itself;
 * wide ones, and all of scratch, to a buffer that is new each time: buffers that are
 * not needed cost nothing, and a value's buffer is never widened under it.
 */
static enum hk_status value_store(struct moves *moves, uint32_t rank, const struct hk_span *span,
				  uint32_t j, struct value value, uint32_t *place_out)
{
	struct value *held = value_of(moves, rank, span, j);
	uint32_t slot = hk_span_at(span, j, hk_plan_slots(moves->plan, rank, span->buf));

	if (span->buf == HK_BUF_OUT && !value.wide)
		value.place = moves->out_at[rank] + slot;
	else
		value.place = hk__place_new(moves, PLACE_BUF, rank, 0, value.wide);
	*held = value;
	*place_out = value.place;
	return value.place == HK_NONE ? HK_ENOMEM : HK_OK;
}

/* ---- channels ---- */

/* Messages under way from one lane to another. */
struct channel {
	struct hk__array messages; /* uint32_t */
	size_t taken;
};

struct run {
	struct moves *moves;
	struct hk__hash index;
	struct hk__array channels;
	uint32_t **at; /* by rank and lane: the next step */
	uint64_t left; /* steps */
};

static struct channel *run_channel(struct run *run, struct hk_port from, struct hk_port to)
{
	struct hk__hash_entry *entry =
		hk__hash_get(&run->index, (uint64_t)from.rank << 32 | from.lane,
			     (uint64_t)to.rank << 32 | to.lane);

	if (!entry)
		return NULL;
	if (entry->value == HK_NONE) {
		struct channel *channel = hk__array_push(&run->channels);

		if (!channel)
			return NULL;
		hk__array_init(&channel->messages, run->moves->alloc, sizeof(uint32_t));
		entry->value = (uint32_t)run->channels.count - 1;
	}
	return hk__array_at(&run->channels, entry->value);
}

static enum hk_status run_send(struct run *run, struct channel *channel, uint32_t move,
			       struct value value, bool empty)
{
	struct moves *moves = run->moves;
	struct message *message = hk__array_push(&moves->messages);
	uint32_t *place = message ? hk__array_push(&channel->messages) : NULL;

	if (!place)
		return HK_ENOMEM;
	*place = (uint32_t)moves->messages.count - 1;
	*message = (struct message){
		.sender = move, .receiver = HK_NONE, .value = value, .empty = empty
	};
	return hk__move_add(moves, move, true, (struct operand){ *place, true });
}

/* ---- steps ---- */

struct chunk {
	uint32_t rank, lane, at, j;
	const struct hk_step *step;
	struct channel *from, *to;
};

/* What a step reads: the message, then its source, or (REDUCE) its destination. */
static enum hk_status chunk_read(struct run *run, const struct chunk *chunk, uint32_t move,
				 struct value *value_out)
{
	struct moves *moves = run->moves;
	const struct hk_step *step = chunk->step;
	unsigned fields = hk__op_fields(step->op);
	enum hk_status status = HK_OK;
	struct value value = { .place = HK_NONE };
	uint32_t sources = 0;

	if (chunk->from) {
		uint32_t id = ((uint32_t *)chunk->from->messages.items)[chunk->from->taken++];

		value = message_at(moves, id)->value;
		message_at(moves, id)->receiver = move;
		status = hk__move_add(moves, move, false, (struct operand){ id, true });
		sources++;
	}
	for (int which = 0; which < 2 && status == HK_OK && step->count; which++) {
		bool reads = which == 0 ? (fields & HK__FIELD_SRC) != 0 : step->op == HK_OP_REDUCE;

		if (!reads)
			continue;
		const struct value *other =
			value_of(moves, chunk->rank, which == 0 ? &step->src : &step->dst,
				 chunk->j);
		if (other->place == HK_NONE)
			return HK_EINVAL; /* I7: a proved plan has none of these */
		value.parts += other->parts;
		value.wide |= other->wide;
		value.symbol = other->symbol;
		status = hk__move_add(moves, move, false, (struct operand){ other->place, false });
		sources++;
	}
	bool sums = sources > 1;
	move_at(moves, move)->finishes = hk__coll_reduces(moves->plan->coll) &&
					 value.parts == moves->n && (sums || moves->n == 1);
	value.wide = value_is_wide(moves, &value, sums);
	move_at(moves, move)->symbol = value.symbol;
	*value_out = value;
	return status;
}

static enum hk_status chunk_run(struct run *run, const struct chunk *chunk)
{
	const struct hk_step *step = chunk->step;
	bool stores = (hk__op_fields(step->op) & HK__FIELD_DST) && step->dst.buf != HK_BUF_NONE &&
		      step->count;
	struct value value = { .place = HK_NONE };
	uint32_t move, place = HK_NONE;
	enum hk_status status = move_new(run->moves, chunk->rank, chunk->lane, chunk->at, &move);

	if (status == HK_OK)
		status = chunk_read(run, chunk, move, &value);
	if (status == HK_OK && stores) {
		status = value_store(run->moves, chunk->rank, &step->dst, chunk->j, value, &place);
		if (status == HK_OK)
			status = hk__move_add(run->moves, move, true,
					      (struct operand){ place, false });
		value.place = place;
	}
	/*
	 * What was received and kept is sent on from where it is kept: so that it
	 * can be put there, and then is a move of its own.
	 */
	if (status == HK_OK && chunk->to && stores && step->op == HK_OP_RECV_SEND) {
		status = move_new(run->moves, chunk->rank, chunk->lane, chunk->at, &move);
		if (status == HK_OK)
			status = hk__move_add(run->moves, move, false,
					      (struct operand){ place, false });
		if (status == HK_OK)
			move_at(run->moves, move)->symbol = value.symbol;
	}
	if (status == HK_OK && chunk->to)
		status = run_send(run, chunk->to, move, value, step->count == 0);
	return status;
}

/* One step, if what it needs is there. */
static enum hk_status run_step(struct run *run, uint32_t rank, uint32_t lane, bool *moved)
{
	const struct hk_plan *plan = run->moves->plan;
	uint32_t at = run->at[rank][lane];
	struct hk_step step;
	struct chunk chunk = { rank, lane, at, 0, &step, NULL, NULL };
	enum hk_status status = HK_OK;

	hk_plan_step(plan, rank, lane, at, &step);
	if (step.after.lane != HK_NONE && run->at[rank][step.after.lane] <= step.after.step)
		return HK_OK;
	uint32_t chunks = step.count ? step.count : 1;
	if (hk__op_receives(step.op)) {
		chunk.from = run_channel(run, step.from, (struct hk_port){ rank, lane });
		if (!chunk.from)
			return HK_ENOMEM;
		if (chunk.from->messages.count - chunk.from->taken < chunks)
			return HK_OK;
	}
	if (hk__op_sends(step.op)) {
		struct hk_port self = { rank, lane };
		uint32_t from =
			chunk.from ? (uint32_t)(chunk.from - (struct channel *)run->channels.items)
				   : HK_NONE;

		chunk.to = run_channel(run, self, step.to);
		if (!chunk.to)
			return HK_ENOMEM;
		if (from != HK_NONE) /* the array may have moved */
			chunk.from = hk__array_at(&run->channels, from);
	}
	for (uint32_t j = 0; j < chunks && status == HK_OK && step.op != HK_OP_NOP; j++) {
		chunk.j = j;
		status = chunk_run(run, &chunk);
	}
	run->at[rank][lane]++;
	run->left--;
	*moved = true;
	return status;
}

/* Round by round, each lane one step: about as it will be. */
static enum hk_status run_all(struct run *run, struct hk_why *why)
{
	const struct hk_plan *plan = run->moves->plan;
	enum hk_status status = HK_OK;

	while (run->left && status == HK_OK) {
		bool moved = false;

		for (uint32_t r = 0; r < plan->n && status == HK_OK; r++) {
			uint32_t lanes = hk_plan_lanes(plan, r);

			for (uint32_t l = 0; l < lanes && status == HK_OK; l++) {
				if (run->at[r][l] < hk_plan_steps(plan, r, l))
					status = run_step(run, r, l, &moved);
			}
		}
		if (!moved && status == HK_OK)
			return hk__why(why, HK_EINVAL, "the plan deadlocks");
	}
	return status;
}

/* ---- setting up ---- */

static enum hk_status rank_slots(struct moves *moves, uint32_t rank, enum hk_buf buf,
				 struct value **values_out, uint32_t *first_out)
{
	const struct hk_plan *plan = moves->plan;
	uint32_t nslots = hk_plan_slots(plan, rank, buf);
	struct value *values = hk__mem_zalloc(moves->alloc, (size_t)nslots + 1, sizeof(*values));

	*values_out = values;
	if (!values)
		return HK_ENOMEM;
	if (first_out)
		*first_out = (uint32_t)moves->places.count;
	for (uint32_t k = 0; k < nslots; k++) {
		values[k].place = HK_NONE;
		if (!first_out)
			continue;
		uint32_t place = hk__place_new(moves, buf == HK_BUF_IN ? PLACE_IN : PLACE_OUT, rank,
					       k, false);

		if (place == HK_NONE)
			return HK_ENOMEM;
		values[k].symbol = symbol_of(plan, rank, buf, k);
		if (buf == HK_BUF_IN) {
			values[k].place = place;
			values[k].parts = 1;
		}
	}
	return HK_OK;
}

/* One program serves both: what holds if in and out share memory holds if they do not. */
static void rank_alias(struct moves *moves, uint32_t rank)
{
	uint32_t nslots = hk_plan_slots(moves->plan, rank, HK_BUF_IN);

	for (uint32_t k = 0; k < nslots && moves->plan->inplace; k++) {
		uint32_t same = hk_plan_inplace_slot(moves->plan, rank, k);

		if (same != HK_NONE && same < hk_plan_slots(moves->plan, rank, HK_BUF_OUT))
			place_at(moves, moves->in_at[rank] + k)->same = moves->out_at[rank] + same;
	}
}

static enum hk_status moves_init(struct moves *moves, const struct hk__flat_spec *spec)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
	uint32_t n = spec->plan->n;
	enum hk_status status = HK_OK;

	*moves = (struct moves){ .plan = spec->plan,
				 .alloc = alloc,
				 .wide = spec->wide,
				 .lines = spec->lines,
				 .apart = spec->apart,
				 .n = n };
	hk__array_init(&moves->places, alloc, sizeof(struct place));
	hk__array_init(&moves->messages, alloc, sizeof(struct message));
	hk__array_init(&moves->moves, alloc, sizeof(struct move));
	moves->in = hk__mem_zalloc(alloc, n, sizeof(struct value *));
	moves->out = hk__mem_zalloc(alloc, n, sizeof(struct value *));
	moves->scratch = hk__mem_zalloc(alloc, n, sizeof(struct value *));
	moves->in_at = hk__mem_zalloc(alloc, n, sizeof(*moves->in_at));
	moves->out_at = hk__mem_zalloc(alloc, n, sizeof(*moves->out_at));
	if (!moves->in || !moves->out || !moves->scratch || !moves->in_at || !moves->out_at)
		return HK_ENOMEM;
	for (uint32_t r = 0; r < n && status == HK_OK; r++) {
		status = rank_slots(moves, r, HK_BUF_IN, &moves->in[r], &moves->in_at[r]);
		if (status == HK_OK)
			status =
				rank_slots(moves, r, HK_BUF_OUT, &moves->out[r], &moves->out_at[r]);
		if (status == HK_OK)
			status = rank_slots(moves, r, HK_BUF_SCRATCH, &moves->scratch[r], NULL);
		if (status == HK_OK)
			rank_alias(moves, r);
	}
	return status;
}

static void moves_fini(struct moves *moves)
{
	const struct hk_alloc *alloc = moves->alloc;
	struct value **const tables[] = { moves->in, moves->out, moves->scratch };

	for (size_t i = 0; i < moves->places.count; i++)
		hk__array_fini(&place_at(moves, (uint32_t)i)->moves);
	for (size_t i = 0; i < moves->moves.count; i++) {
		hk__array_fini(&move_at(moves, (uint32_t)i)->src);
		hk__array_fini(&move_at(moves, (uint32_t)i)->dst);
	}
	for (uint32_t b = 0; b < 3; b++) {
		for (uint32_t r = 0; tables[b] && r < moves->n; r++)
			hk__mem_free(alloc, tables[b][r],
				     (size_t)hk_plan_slots(moves->plan, r,
							   (enum hk_buf)(HK_BUF_IN + b)) +
					     1,
				     sizeof(struct value));
		hk__mem_free(alloc, tables[b], moves->n, sizeof(struct value *));
	}
	hk__mem_free(alloc, moves->in_at, moves->n, sizeof(uint32_t));
	hk__mem_free(alloc, moves->out_at, moves->n, sizeof(uint32_t));
	hk__array_fini(&moves->places);
	hk__array_fini(&moves->messages);
	hk__array_fini(&moves->moves);
}

static enum hk_status moves_run(struct moves *moves, struct hk_why *why)
{
	const struct hk_plan *plan = moves->plan;
	struct run run = { .moves = moves };
	enum hk_status status = HK_OK;

	hk__hash_init(&run.index, moves->alloc);
	hk__array_init(&run.channels, moves->alloc, sizeof(struct channel));
	run.at = hk__mem_zalloc(moves->alloc, plan->n, sizeof(*run.at));
	for (uint32_t r = 0; run.at && r < plan->n; r++) {
		run.at[r] = hk__mem_zalloc(moves->alloc, HK_LANES_MAX, sizeof(uint32_t));
		status = run.at[r] ? status : HK_ENOMEM;
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++)
			run.left += hk_plan_steps(plan, r, l);
	}
	if (!run.at || status != HK_OK)
		status = HK_ENOMEM;
	else
		status = run_all(&run, why);
	for (uint32_t r = 0; run.at && r < plan->n; r++)
		hk__mem_free(moves->alloc, run.at[r], HK_LANES_MAX, sizeof(uint32_t));
	hk__mem_free(moves->alloc, run.at, plan->n, sizeof(*run.at));
	for (size_t i = 0; i < run.channels.count; i++)
		hk__array_fini(&((struct channel *)run.channels.items)[i].messages);
	hk__array_fini(&run.channels);
	hk__hash_fini(&run.index);
	return status;
}

enum hk_status hk__flat_create(const struct hk__flat_spec *spec, struct hk_why *why,
			       struct hk__flat **flat_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
	struct moves moves;

	if (spec->plan->n > HK__FLAT_RANKS)
		return hk__why(why, HK_ELIMIT, "device memory: %u ranks; at most %u are supported",
			       spec->plan->n, HK__FLAT_RANKS);
	if (spec->plan->coll == HK_COLL_SENDRECV)
		return hk__why(why, HK_EINVAL, "device memory: a sendrecv is not a collective");
	struct hk__flat *flat = hk__mem_zalloc(alloc, 1, sizeof(*flat));
	if (!flat)
		return hk__why(why, HK_ENOMEM, "no memory to flatten a plan");
	*flat = (struct hk__flat){ .alloc = alloc, .n = spec->plan->n };
	enum hk_status status = moves_init(&moves, spec);
	if (status == HK_OK)
		status = moves_run(&moves, why);
	if (status == HK_OK)
		status = hk__moves_fuse(&moves);
	if (status == HK_OK)
		status = hk__moves_emit(&moves, flat);
	moves_fini(&moves);
	if (status != HK_OK) {
		hk__flat_destroy(flat);
		return status == HK_ENOMEM ? hk__why(why, status, "no memory to flatten a plan")
					   : status;
	}
	*flat_out = flat;
	return HK_OK;
}

void hk__flat_destroy(struct hk__flat *flat)
{
	if (!flat)
		return;
	for (uint32_t r = 0; flat->programs && r < flat->n; r++) {
		if (flat->programs[r])
			hk__mem_free(flat->alloc, flat->programs[r], flat->programs[r]->bytes, 1);
	}
	hk__mem_free(flat->alloc, flat->programs, flat->n, sizeof(struct hk__flat_program *));
	hk__mem_free(flat->alloc, flat, 1, sizeof(*flat));
}
