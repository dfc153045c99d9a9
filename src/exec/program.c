/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - binds a rank's part of a plan to channels, and an operation's
 * buffers and sizes to the program. All allocation is here; exec.c has none.
 */
#include "exec/program.h"

#include <string.h>

/* ---- channels ---- */

static enum hk_status program_chan(struct hk__program *program, struct hk__hash *open, bool sends,
				   uint32_t lane, struct hk_port port, struct hk_chan **chan_out)
{
	struct hk_chan_spec spec = { .key = { .peer = port.rank,
					      .from_lane = sends ? lane : port.lane,
					      .to_lane = sends ? port.lane : lane,
					      .context = program->spec.context },
				     .slots = program->spec.slots,
				     .slot_bytes = program->spec.slot_bytes };
	struct hk__hash_entry *entry =
		hk__hash_get(open, (uint64_t)port.rank << 1 | sends,
			     (uint64_t)spec.key.from_lane << 32 | spec.key.to_lane);

	if (!entry)
		return HK_ENOMEM;
	if (entry->value != HK_NONE) {
		*chan_out = *(struct hk_chan **)hk__array_at(&program->chans, entry->value);
		return HK_OK;
	}
	struct hk_chan **chan = hk__array_push(&program->chans);
	if (!chan)
		return HK_ENOMEM;
	entry->value = (uint32_t)(program->chans.count - 1);
	enum hk_status status = sends ? hk__chan_open_send(program->spec.net, &spec, chan)
				      : hk__chan_open_recv(program->spec.net, &spec, chan);
	*chan_out = *chan;
	return status;
}

static enum hk_status program_bind_lane(struct hk__program *program, struct hk__hash *open,
					uint32_t l)
{
	struct bound_lane *lane = &program->lanes[l];
	const struct hk_plan *plan = program->spec.plan;
	enum hk_status status = HK_OK;

	lane->nsteps = hk_plan_steps(plan, program->spec.rank, l);
	lane->steps = hk__mem_zalloc(program->alloc, lane->nsteps, sizeof(*lane->steps));
	if (!lane->steps)
		return HK_ENOMEM;
	for (uint32_t i = 0; i < lane->nsteps && status == HK_OK; i++) {
		struct bound_step *bound = &lane->steps[i];

		hk_plan_step(plan, program->spec.rank, l, i, &bound->step);
		if (hk__op_receives(bound->step.op))
			status = program_chan(program, open, false, l, bound->step.from,
					      &bound->from);
		if (status == HK_OK && hk__op_sends(bound->step.op))
			status = program_chan(program, open, true, l, bound->step.to, &bound->to);
	}
	return status;
}

/*
 * The largest message of any rank decides how many slices there are, and all
 * ranks must decide alike. Above a few hundred ranks nobody reads all steps:
 * no message has more chunks than there are.
 */
static uint32_t program_widest(const struct hk_plan *plan)
{
	uint32_t widest = 1, all = hk__plan_chunks(plan);

	if (plan->n > 256)
		return all;
	for (uint32_t r = 0; r < plan->n; r++) {
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++) {
				struct hk_step step;

				hk_plan_step(plan, r, l, i, &step);
				if (hk__op_sends(step.op) && step.count > widest)
					widest = step.count;
			}
		}
	}
	return widest;
}

enum hk_status hk__program_create(const struct hk__program_spec *spec,
				  struct hk__program **program_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;

	if (spec->slots < spec->plan->slots || spec->rank >= spec->plan->n)
		return HK_EINVAL;
	struct hk__program *program = hk__mem_zalloc(alloc, 1, sizeof(*program));
	if (!program)
		return HK_ENOMEM;
	program->spec = *spec;
	program->alloc = alloc;
	hk__array_init(&program->chans, alloc, sizeof(struct hk_chan *));
	program->nlanes = hk_plan_lanes(spec->plan, spec->rank);
	program->lanes = hk__mem_zalloc(alloc, program->nlanes, sizeof(*program->lanes));
	enum hk_status status = program->lanes ? HK_OK : HK_ENOMEM;
	struct hk__hash open;
	hk__hash_init(&open, alloc);
	for (uint32_t l = 0; l < program->nlanes && status == HK_OK; l++)
		status = program_bind_lane(program, &open, l);
	hk__hash_fini(&open);
	for (unsigned b = HK_BUF_IN; b <= HK_BUF_SCRATCH && status == HK_OK; b++) {
		struct bound_buf *buf = &program->bufs[b];

		buf->nslots = hk_plan_slots(spec->plan, spec->rank, (enum hk_buf)b);
		buf->first = hk__mem_zalloc(alloc, (size_t)buf->nslots + 1, sizeof(*buf->first));
		status = buf->first ? HK_OK : HK_ENOMEM;
	}
	if (status != HK_OK) {
		hk__program_destroy(program);
		return status;
	}
	program->widest = program_widest(spec->plan);
	*program_out = program;
	return HK_OK;
}

static void program_free_scratch(struct hk__program *program)
{
	hk__mem_free(program->alloc, program->bufs[HK_BUF_SCRATCH].at, program->scratch_bytes, 1);
	hk__mem_free(program->alloc, program->lengths, program->nlengths, sizeof(uint32_t));
	program->bufs[HK_BUF_SCRATCH].at = NULL;
	program->lengths = NULL;
	program->scratch_bytes = program->nlengths = 0;
}

void hk__program_destroy(struct hk__program *program)
{
	if (!program)
		return;
	for (uint32_t l = 0; program->lanes && l < program->nlanes; l++)
		hk__mem_free(program->alloc, program->lanes[l].steps, program->lanes[l].nsteps,
			     sizeof(struct bound_step));
	hk__mem_free(program->alloc, program->lanes, program->nlanes, sizeof(*program->lanes));
	for (size_t i = 0; i < program->chans.count; i++)
		hk__chan_close(*(struct hk_chan **)hk__array_at(&program->chans, i));
	hk__array_fini(&program->chans);
	program_free_scratch(program);
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
	struct bound_buf *buf = &program->bufs[which];

	for (uint32_t k = 0; k < buf->nslots; k++)
		buf->first[k + 1] =
			buf->first[k] +
			hk_plan_length(plan, &program->call.sizes,
				       hk_plan_symbol(plan, program->spec.rank, which, k));
}

static uint64_t program_longest(const struct hk_plan *plan, const struct hk_sizes *sizes)
{
	uint64_t longest = 0,
		 symbols = hk__coll_vector(plan->coll) || !sizes->counts ? 1 : hk_plan_counts(plan);

	if (plan->coll == HK_COLL_BARRIER)
		return 0;
	for (uint64_t k = 0; k < symbols; k++) {
		uint64_t len = hk_plan_length(plan, sizes, k);

		longest = len > longest ? len : longest;
	}
	return longest;
}

static enum hk_status program_get_scratch(struct hk__program *program)
{
	size_t nslots = program->bufs[HK_BUF_SCRATCH].nslots;
	size_t nlengths = nslots * program->nslices;
	size_t bytes = nlengths * program->piece * program->size;

	if (bytes <= program->scratch_bytes && nlengths <= program->nlengths)
		return HK_OK;
	program_free_scratch(program);
	program->bufs[HK_BUF_SCRATCH].at = hk__mem_zalloc(program->alloc, bytes, 1);
	program->lengths = hk__mem_zalloc(program->alloc, nlengths, sizeof(uint32_t));
	program->scratch_bytes = bytes;
	program->nlengths = nlengths;
	if (program->bufs[HK_BUF_SCRATCH].at && program->lengths)
		return HK_OK;
	program_free_scratch(program); /* half of it must not pass for all next time */
	return HK_ENOMEM;
}

enum hk_status hk__program_start(struct hk__program *program, const struct hk__call *call)
{
	const struct hk_plan *plan = program->spec.plan;
	uint32_t head = message_head(program->widest);

	hk_assert(program->lanes_left == 0);
	program->call = *call;
	program->size = hk_type_size(call->type);
	program->reduce = hk__reduce_find(call->type, call->op);
	if (!program->size || !program->reduce)
		return HK_EINVAL;
	uint64_t room = program->spec.slot_bytes > head ? (program->spec.slot_bytes - head) /
								  program->widest / program->size
							: 0;
	if (room == 0)
		return HK_ELIMIT;
	uint64_t longest = program_longest(plan, &call->sizes);
	uint64_t nslices = longest ? (longest + room - 1) / room : 1;
	if (nslices > UINT32_MAX / 2)
		return HK_ELIMIT;
	program->nslices = (uint32_t)nslices;
	program->piece = (longest + nslices - 1) / nslices;
	program->bufs[HK_BUF_IN].at = (char *)call->in; /* never written (I1) */
	program->bufs[HK_BUF_OUT].at = call->out;
	program_lay_out(program, HK_BUF_IN);
	program_lay_out(program, HK_BUF_OUT);
	enum hk_status status = program_get_scratch(program);
	if (status != HK_OK)
		return status;
	for (uint32_t l = 0; l < program->nlanes; l++) {
		program->lanes[l].slice = program->lanes[l].at = 0;
		program->lanes_left += program->lanes[l].nsteps > 0;
	}
	return HK_OK;
}
