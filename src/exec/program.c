/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - binds a rank's part of a plan to channels, and an operation's
 * buffers and sizes to the program. All allocation is here; exec.c has none.
 */
#include "exec/program.h"

#include <string.h>

/* ---- channels ---- */

static enum hk_status program_note_to(struct hk__program *program, struct hk_chan *chan)
{
	for (size_t i = 0; i < program->to.count; i++) {
		if (*(struct hk_chan **)hk__array_at(&program->to, i) == chan)
			return HK_OK;
	}
	struct hk_chan **place = hk__array_push(&program->to);
	if (!place)
		return HK_ENOMEM;
	*place = chan;
	return HK_OK;
}

static enum hk_status program_bind_step(struct hk__program *program, uint32_t l,
					struct bound_step *bound)
{
	const struct hk_step *step = &bound->step;
	struct hk__chans *chans = program->spec.chans;
	enum hk_status status = HK_OK;

	if (hk__op_receives(step->op))
		status = hk__chans_get(chans, false, step->from.rank, step->from.lane, l,
				       &bound->from);
	if (status == HK_OK && hk__op_sends(step->op)) {
		status = hk__chans_get(chans, true, step->to.rank, l, step->to.lane, &bound->to);
		if (status == HK_OK)
			status = program_note_to(program, bound->to);
	}
	return status;
}

static enum hk_status program_bind_lane(struct hk__program *program, uint32_t l)
{
	struct bound_lane *lane = &program->lanes[l];
	const struct hk_plan *plan = program->spec.plan;
	enum hk_status status = HK_OK;

	lane->nsteps = hk_plan_steps(plan, program->spec.rank, l);
	lane->steps = hk__mem_zalloc(program->alloc, lane->nsteps, sizeof(*lane->steps));
	if (!lane->steps)
		return HK_ENOMEM;
	for (uint32_t i = 0; i < lane->nsteps && status == HK_OK; i++) {
		hk_plan_step(plan, program->spec.rank, l, i, &lane->steps[i].step);
		status = program_bind_step(program, l, &lane->steps[i]);
	}
	return status;
}

/* ---- what may be lent ---- */

/* The last step that writes a slot, if all that do are of one lane. */
struct writer {
	uint32_t lane; /* HK_NONE: nobody writes it */
	uint32_t step;
	bool several;
};

struct writers {
	struct writer *of[HK_BUF_SCRATCH + 1];
	uint32_t n[HK_BUF_SCRATCH + 1];
};

static bool step_writes(const struct hk_step *step)
{
	return (hk__op_fields(step->op) & HK__FIELD_DST) && step->dst.buf != HK_BUF_NONE;
}

static void writers_note(struct writers *writers, const struct hk_step *step, uint32_t l,
			 uint32_t i)
{
	for (uint32_t j = 0; j < step->count; j++) {
		struct writer *writer =
			&writers->of[step->dst.buf]
				    [hk_span_at(&step->dst, j, writers->n[step->dst.buf])];

		writer->several |= writer->lane != HK_NONE && writer->lane != l;
		writer->lane = l;
		writer->step = i;
	}
}

/* Whether nobody writes the slot after step i of lane l. */
static bool writers_over(const struct writers *writers, enum hk_buf buf, uint32_t slot, uint32_t l,
			 uint32_t i)
{
	const struct writer *writer = &writers->of[buf][slot];

	return writer->lane == HK_NONE ||
	       (!writer->several && writer->lane == l && writer->step <= i);
}

static void step_judge(const struct hk__program *program, const struct writers *writers,
		       struct bound_step *bound, uint32_t l, uint32_t i)
{
	const struct hk_step *step = &bound->step;
	const struct hk_span *span = step->op == HK_OP_SEND ? &step->src : &step->dst;

	if (!bound->to || step->count != 1 || span->buf == HK_BUF_NONE)
		return;
	uint32_t slot = hk_span_at(span, 0, writers->n[span->buf]);
	if (span->buf != HK_BUF_IN) {
		bound->stays = writers_over(writers, span->buf, slot, l, i);
		bound->stays_inplace = bound->stays && span->buf == HK_BUF_SCRATCH;
	} else {
		uint32_t same = hk_plan_inplace_slot(program->spec.plan, program->spec.rank, slot);

		bound->stays = true;
		bound->stays_inplace =
			same == HK_NONE || writers_over(writers, HK_BUF_OUT, same, l, i);
	}
	/* In place, what lies in out is in as well; nothing writes in but out's writers. */
	if (span->buf == HK_BUF_OUT)
		bound->stays_inplace = bound->stays;
}

static enum hk_status program_judge(struct hk__program *program)
{
	struct writers writers = { 0 };
	enum hk_status status = HK_OK;

	for (unsigned b = HK_BUF_IN; b <= HK_BUF_SCRATCH; b++) {
		writers.n[b] = program->bufs[b].nslots;
		writers.of[b] = hk__mem_zalloc(program->alloc, (size_t)writers.n[b] + 1,
					       sizeof(struct writer));
		if (!writers.of[b])
			status = HK_ENOMEM;
		for (uint32_t k = 0; writers.of[b] && k < writers.n[b]; k++)
			writers.of[b][k].lane = HK_NONE;
	}
	for (int pass = 0; pass < 2 && status == HK_OK; pass++) {
		for (uint32_t l = 0; l < program->nlanes; l++) {
			for (uint32_t i = 0; i < program->lanes[l].nsteps; i++) {
				struct bound_step *bound = &program->lanes[l].steps[i];

				if (pass == 0 && step_writes(&bound->step))
					writers_note(&writers, &bound->step, l, i);
				else if (pass == 1)
					step_judge(program, &writers, bound, l, i);
			}
		}
	}
	for (unsigned b = HK_BUF_IN; b <= HK_BUF_SCRATCH; b++)
		hk__mem_free(program->alloc, writers.of[b], (size_t)writers.n[b] + 1,
			     sizeof(struct writer));
	return status;
}

/* Whether sums that were stored in out are read again. */
static bool program_rereads(const struct hk__program *program)
{
	bool stores = false, reads = false;

	for (uint32_t l = 0; l < program->nlanes; l++) {
		for (uint32_t i = 0; i < program->lanes[l].nsteps; i++) {
			const struct hk_step *step = &program->lanes[l].steps[i].step;
			unsigned fields = hk__op_fields(step->op);
			bool adds = step->op == HK_OP_REDUCE || (fields & HK__FIELD_REDUCES);

			stores |= adds && step->dst.buf == HK_BUF_OUT;
			reads |= ((fields & HK__FIELD_SRC) && step->src.buf == HK_BUF_OUT) ||
				 (step->op == HK_OP_REDUCE && step->dst.buf == HK_BUF_OUT);
		}
	}
	return stores && reads;
}

/* ---- making one ---- */

static enum hk_status program_fill(struct hk__program *program)
{
	const struct hk_plan *plan = program->spec.plan;
	enum hk_status status = HK_OK;

	program->lanes = hk__mem_zalloc(program->alloc, program->nlanes, sizeof(*program->lanes));
	if (!program->lanes)
		return HK_ENOMEM;
	for (uint32_t l = 0; l < program->nlanes && status == HK_OK; l++)
		status = program_bind_lane(program, l);
	for (unsigned b = HK_BUF_IN; b <= HK_BUF_SCRATCH && status == HK_OK; b++) {
		struct bound_buf *buf = &program->bufs[b];

		buf->nslots = hk_plan_slots(plan, program->spec.rank, (enum hk_buf)b);
		buf->first = hk__mem_zalloc(program->alloc, (size_t)buf->nslots + 1,
					    sizeof(*buf->first));
		status = buf->first ? HK_OK : HK_ENOMEM;
	}
	if (status == HK_OK)
		status = program_judge(program);
	if (status != HK_OK)
		return status; /* some of its steps may not be there */
	for (uint32_t l = 0; l < program->nlanes; l++)
		program->lanes_used += program->lanes[l].nsteps > 0;
	program->rereads = program_rereads(program);
	program->widest = hk__plan_widest(plan);
	return HK_OK;
}

enum hk_status hk__program_create(const struct hk__program_spec *spec,
				  struct hk__program **program_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;

	if (spec->chans->cut.slots < spec->plan->slots || spec->rank >= spec->plan->n)
		return HK_EINVAL;
	struct hk__program *program = hk__mem_zalloc(alloc, 1, sizeof(*program));
	if (!program)
		return HK_ENOMEM;
	program->spec = *spec;
	program->alloc = alloc;
	program->trace = spec->chans->trace;
	const char *algo = hk__program_algo(program);
	memcpy(program->algo, algo, strnlen(algo, sizeof(program->algo) - 1));
	hk__array_init(&program->to, alloc, sizeof(struct hk_chan *));
	program->nlanes = hk_plan_lanes(spec->plan, spec->rank);
	enum hk_status status = program_fill(program);
	if (status != HK_OK) {
		hk__program_destroy(program);
		return status;
	}
	*program_out = program;
	return HK_OK;
}

static void scratch_free(struct hk__program *program, struct bound_scratch *scratch)
{
	hk__mem_free(program->alloc, scratch->at, scratch->bytes, 1);
	hk__mem_free(program->alloc, scratch->held, scratch->nheld, sizeof(uint32_t));
	*scratch = (struct bound_scratch){ 0 };
}

void hk__program_destroy(struct hk__program *program)
{
	if (!program)
		return;
	for (uint32_t l = 0; program->lanes && l < program->nlanes; l++)
		hk__mem_free(program->alloc, program->lanes[l].steps, program->lanes[l].nsteps,
			     sizeof(struct bound_step));
	hk__mem_free(program->alloc, program->lanes, program->nlanes, sizeof(*program->lanes));
	hk__array_fini(&program->to);
	scratch_free(program, &program->scratch);
	scratch_free(program, &program->shadow);
	hk__mem_free(program->alloc, program->scaled, program->scaled_bytes, 1);
	for (unsigned b = HK_BUF_IN; b <= HK_BUF_SCRATCH; b++)
		hk__mem_free(program->alloc, program->bufs[b].first,
			     (size_t)program->bufs[b].nslots + 1, sizeof(uint64_t));
	hk__mem_free(program->alloc, program, 1, sizeof(*program));
}

/* ---- an operation ---- */

/* Where the slots of a user's buffer lie, side by side. */
static void program_lay_out(struct hk__program *program, enum hk_buf which)
{
	const struct hk_plan *plan = program->spec.plan;
	const struct hk__call *call = &program->call;
	const uint64_t *counts = which == HK_BUF_IN ? call->in_counts : call->out_counts;
	struct bound_buf *buf = &program->bufs[which];

	for (uint32_t k = 0; k < buf->nslots; k++) {
		uint64_t len =
			counts ? counts[k]
			       : hk_plan_length(plan, &call->sizes,
						hk_plan_symbol(plan, program->spec.rank, which, k));

		buf->first[k + 1] = buf->first[k] + len;
	}
}

static uint64_t program_longest(const struct hk_plan *plan, const struct hk__call *call)
{
	const struct hk_sizes *sizes = &call->sizes;
	uint64_t longest = 0,
		 symbols = hk__coll_vector(plan->coll) || !sizes->counts ? 1 : hk_plan_counts(plan);

	if (plan->coll == HK_COLL_BARRIER)
		return 0;
	if (call->in_counts)
		return sizes->count;
	for (uint64_t k = 0; k < symbols; k++) {
		uint64_t len = hk_plan_length(plan, sizes, k);

		longest = len > longest ? len : longest;
	}
	return longest;
}

static enum hk_status program_slice(struct hk__program *program)
{
	const struct hk__cut_rule *rule = &program->spec.chans->cut;
	const struct hk__call *call = &program->call;
	const struct hk_plan *plan = program->spec.plan;
	struct hk__cut_job job = { .kind = call->whole ? HK__CUT_LEAST
						       : hk__coll_cut(plan->coll, rule),
				   .longest = program_longest(plan, call),
				   .widest = program->widest,
				   .size = (uint32_t)program->scratch_size };
	struct hk__cut cut;
	enum hk_status status = hk__cut(rule, &job, &cut);

	if (status != HK_OK)
		return status;
	if (job.longest / cut.nslices >= HELD_WIDE)
		return HK_ELIMIT;
	program->nslices = cut.nslices;
	program->piece = cut.piece;
	return HK_OK;
}

static enum hk_status scratch_get(struct hk__program *program, struct bound_scratch *scratch,
				  uint32_t nslots)
{
	size_t nheld = (size_t)nslots * program->nslices;
	size_t bytes = nheld * program->piece * program->scratch_size;

	if (bytes <= scratch->bytes && nheld <= scratch->nheld)
		return HK_OK;
	scratch_free(program, scratch);
	*scratch = (struct bound_scratch){ hk__mem_zalloc(program->alloc, bytes, 1),
					   hk__mem_zalloc(program->alloc, nheld, sizeof(uint32_t)),
					   bytes, nheld };
	if (scratch->at && scratch->held)
		return HK_OK;
	scratch_free(program, scratch); /* half of it must not pass for all next time */
	return HK_ENOMEM;
}

/* Elements that are rounded when they are stored, and added more than once. */
static const struct hk__reduce *program_wide(const struct hk__program *program)
{
	const struct hk_plan *plan = program->spec.plan;
	enum hk_redop op = program->call.op;
	bool rounds = op == HK_REDOP_SUM || op == HK_REDOP_PROD || op == HK_REDOP_AVG ||
		      op == HK_REDOP_PREMULSUM;

	if (!rounds || plan->n < 3 || !hk__coll_reduces(plan->coll) ||
	    program->reduce->acc_size == program->reduce->size)
		return NULL;
	return hk__reduce_find(HK_TYPE_FP32, op);
}

/* Memory that the two buffers share. */
static bool program_overlaps(const struct hk__program *program)
{
	uintptr_t in = (uintptr_t)program->call.in, out = (uintptr_t)program->call.out;
	uint64_t in_bytes = buf_elements(&program->bufs[HK_BUF_IN]) * program->size;
	uint64_t out_bytes = buf_elements(&program->bufs[HK_BUF_OUT]) * program->size;

	return in_bytes && out_bytes && in < out + out_bytes && out < in + in_bytes;
}

/* premulsum: the plan adds what was multiplied before. */
static enum hk_status program_scale(struct hk__program *program)
{
	struct bound_buf *in = &program->bufs[HK_BUF_IN];
	uint64_t count = buf_elements(in);
	size_t bytes = count * program->size;

	if (!program->call.factor)
		return HK_EINVAL;
	if (bytes > program->scaled_bytes) {
		hk__mem_free(program->alloc, program->scaled, program->scaled_bytes, 1);
		program->scaled = hk__mem_zalloc(program->alloc, bytes, 1);
		program->scaled_bytes = program->scaled ? bytes : 0;
		if (!program->scaled)
			return HK_ENOMEM;
	}
	uint64_t entered = hk__reduce_enter();
	program->reduce->scale(program->scaled, in->at, program->call.factor, count);
	hk__reduce_leave(entered);
	in->at = program->scaled;
	return HK_OK;
}

/* Everything that depends on sizes, type and operation, and on nothing else. */
static enum hk_status program_shape(struct hk__program *program)
{
	program->size = hk_type_size(program->call.type);
	program->reduce = hk__reduce_find(program->call.type, program->call.op);
	if (!program->size || !program->reduce)
		return HK_EINVAL;
	program->wide = program_wide(program);
	program->scratch_size = program->wide ? program->reduce->acc_size : program->size;
	program->shadowed = program->wide && (program->rereads || program->call.op == HK_REDOP_AVG);
	program_lay_out(program, HK_BUF_IN);
	program_lay_out(program, HK_BUF_OUT);
	enum hk_status status = program_slice(program);
	if (status == HK_OK)
		status = scratch_get(program, &program->scratch,
				     program->bufs[HK_BUF_SCRATCH].nslots);
	if (status == HK_OK && program->shadowed)
		status = scratch_get(program, &program->shadow, program->bufs[HK_BUF_OUT].nslots);
	program->finishes = hk__coll_reduces(program->spec.plan->coll) &&
			    (program->shadowed || program->call.op == HK_REDOP_AVG);
	if (status == HK_OK)
		hk__quick_shape(program);
	return status;
}

static bool call_like(const struct hk__call *a, const struct hk__call *b)
{
	return a->sizes.count == b->sizes.count && !a->sizes.counts && !b->sizes.counts &&
	       !a->in_counts && !b->in_counts && a->type == b->type && a->op == b->op &&
	       a->whole == b->whole && a->method == b->method;
}

bool hk__program_like(const struct hk__program *program, const struct hk__call *call)
{
	return program->again && call->op != HK_REDOP_PREMULSUM && call_like(&program->call, call);
}

/* A call of the same shape as the one before, with other buffers. */
static void program_rebind(struct hk__program *program, const void *in, void *out)
{
	program->call.in = in;
	program->call.out = out;
	program->bufs[HK_BUF_IN].at = (char *)in; /* never written (I1) */
	program->bufs[HK_BUF_OUT].at = out;
	/* Of what is small nothing is lent, and nobody asks. */
	program->inplace = !program->quick && program_overlaps(program);
	program->lanes_left = program->lanes_used;
	for (uint32_t l = 0; l < program->nlanes; l++) {
		program->lanes[l].slice = program->lanes[l].at = 0;
		program->lanes[l].taken = false;
		program->lanes[l].since = 0;
	}
	program->running = true;
}

void hk__program_restart(struct hk__program *program, const void *in, void *out)
{
	hk_assert(program->again && !program->running);
	program_rebind(program, in, out);
}

enum hk_status hk__program_start(struct hk__program *program, const struct hk__call *call)
{
	enum hk_status status = HK_OK;
	bool again = program->again && call_like(&program->call, call);

	hk_assert(!program->running);
	program->call = *call;
	if (!again)
		status = program_shape(program);
	program->again = status == HK_OK;
	if (status != HK_OK)
		return status;
	program_rebind(program, call->in, call->out);
	if (call->op == HK_REDOP_PREMULSUM && hk__coll_reduces(program->spec.plan->coll)) {
		status = program_scale(program);
		program->running = status == HK_OK;
	}
	return status;
}
