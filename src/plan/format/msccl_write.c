/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msccl_write.c - a plan as MSCCL XML, which MSCCL's and RCCL's executors run.
 *
 * A thread block there has one peer to send to and one to receive from
 * (msccl_place.c finds them). A lane that became several goes from one to the
 * other by dependencies: what it did in order is still done in that order. A
 * step there moves chunks that lie side by side; what does not is put together
 * in scratch, sent as one message all the same, and taken apart.
 */
#include "plan/format/msccl_place.h"
#include "plan/print/print.h"

struct writer {
	const struct hk_plan *plan;
	const struct hk__msccl_placing *placing;
	FILE *file; /* NULL: only counts */
	/* Of the rank that is being written. */
	uint32_t rank, nlanes;
	uint32_t stage[HK_LANES_MAX + 1]; /* where each lane's staging begins in scratch */
	uint32_t *waited;		  /* steps of a lane that a thread block has waited for */
	/* Of the step that is being written. */
	struct hk__msccl_block *block;
	struct hk__msccl_piece *piece;
	struct hk_after deps[2]; /* what it still has to wait for */
	uint32_t ndeps;
};

/* Chunks side by side, of one buffer. */
struct row {
	enum hk_buf buf;
	uint32_t first;
};

/* ---- spans ---- */

/* How many slots from the j-th on lie side by side. */
static uint32_t span_run(const struct writer *writer, const struct hk_span *span, uint32_t j,
			 uint32_t count)
{
	uint32_t nslots = hk_plan_slots(writer->plan, writer->rank, span->buf), len = 1;

	while (j + len < count &&
	       hk_span_at(span, j + len, nslots) == hk_span_at(span, j, nslots) + len)
		len++;
	return len;
}

static struct row span_row(const struct writer *writer, const struct hk_span *span, uint32_t j)
{
	uint32_t nslots = hk_plan_slots(writer->plan, writer->rank, span->buf);

	return (struct row){ span->buf, hk_span_at(span, j, nslots) };
}

static bool span_is_row(const struct writer *writer, const struct hk_span *span, uint32_t count)
{
	return span->buf != HK_BUF_NONE && count && span_run(writer, span, 0, count) == count;
}

/* Whether a step that talks needs staging for what it reads, and for what it writes. */
static void step_staged(const struct writer *writer, const struct hk_step *step, bool *src_out,
			bool *dst_out)
{
	unsigned fields = hk__op_fields(step->op);
	bool talks = fields & (HK__FIELD_FROM | HK__FIELD_TO);

	*src_out =
		talks && (fields & HK__FIELD_SRC) && !span_is_row(writer, &step->src, step->count);
	*dst_out = talks && (fields & HK__FIELD_DST) && step->dst.buf != HK_BUF_NONE &&
		   !span_is_row(writer, &step->dst, step->count);
	/* MSCCL's receive-copy-send always copies. */
	if (step->op == HK_OP_RECV_SEND && step->dst.buf == HK_BUF_NONE)
		*dst_out = true;
}

/* Room for the widest of a lane's staged steps, behind the plan's own scratch. */
static void rank_set_stages(struct writer *writer)
{
	struct hk_step step;
	bool src, dst;

	writer->stage[0] = hk_plan_slots(writer->plan, writer->rank, HK_BUF_SCRATCH);
	for (uint32_t l = 0; l < writer->nlanes; l++) {
		uint32_t width = 0;

		for (uint32_t i = 0; i < hk_plan_steps(writer->plan, writer->rank, l); i++) {
			hk_plan_step(writer->plan, writer->rank, l, i, &step);
			step_staged(writer, &step, &src, &dst);
			if (src || dst)
				width = hk__max(width, step.count);
		}
		writer->stage[l + 1] = writer->stage[l] + width;
	}
}

/* ---- dependencies ---- */

static uint32_t *waited_at(const struct writer *writer, uint32_t lane)
{
	return &writer->waited[(size_t)writer->block->id * writer->nlanes + lane];
}

/*
 * Waits for a step unless its own thread block did it before, or waited for it or
 * for a later one of that lane: a lane is done in order.
 */
static void dep_add(struct writer *writer, uint32_t lane, uint32_t i)
{
	struct hk__msccl_piece *other = hk__msccl_piece(writer->placing, writer->rank, lane, i);
	uint32_t *waited = waited_at(writer, lane);

	if (*waited > i || other->block == writer->piece->block)
		return;
	*waited = i + 1;
	other->awaited = true;
	writer->deps[writer->ndeps++] = (struct hk_after){ lane, i };
}

/* ---- steps ---- */

static void emit(struct writer *writer, const char *type, struct row src, struct row dst,
		 uint32_t count, bool last)
{
	static const char buffers[] = {
		[HK_BUF_NONE] = 'i', [HK_BUF_IN] = 'i', [HK_BUF_OUT] = 'o', [HK_BUF_SCRATCH] = 's'
	};
	int depid = -1, deps = -1;

	/* All but one of its dependencies are steps of their own. */
	if (writer->ndeps > 1) {
		struct hk_after own = writer->deps[--writer->ndeps];

		emit(writer, "nop", src, src, 0, false);
		writer->deps[writer->ndeps++] = own;
	}
	if (writer->ndeps) {
		struct hk_after dep = writer->deps[--writer->ndeps];
		const struct hk__msccl_piece *other =
			hk__msccl_piece(writer->placing, writer->rank, dep.lane, dep.step);

		depid = (int)hk__msccl_block(writer->placing, other->block)->id;
		deps = (int)other->last;
	}
	if (writer->file)
		fprintf(writer->file,
			"      <step s=\"%u\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%u\" "
			"dstbuf=\"%c\" "
			"dstoff=\"%u\" cnt=\"%u\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
			writer->block->nsteps, type, buffers[src.buf], src.first, buffers[dst.buf],
			dst.first, count, depid, deps, last && writer->piece->awaited);
	else if (last)
		writer->piece->last = writer->block->nsteps;
	writer->block->nsteps++;
}

/* A local step, cut into what lies side by side on both sides. */
static void emit_local(struct writer *writer, const char *type, const struct hk_span *src,
		       const struct hk_span *dst, uint32_t count, bool last)
{
	for (uint32_t j = 0, len; j < count; j += len) {
		len = hk__min(span_run(writer, src, j, count), span_run(writer, dst, j, count));
		emit(writer, type, span_row(writer, src, j), span_row(writer, dst, j), len,
		     last && j + len == count);
	}
}

static const char *step_type(const struct hk_step *step)
{
	bool keeps = step->op == HK_OP_RECV_SEND || step->dst.buf != HK_BUF_NONE;

#define TYPE_NAME(text, op_, keeps_) \
	if (step->op == HK_OP_##op_ && (step->op != HK_OP_RECV_REDUCE_SEND || keeps == keeps_)) \
		return text;
	HK__MSCCL_TYPE_MAP(TYPE_NAME)
#undef TYPE_NAME
	return "nop";
}

/*
 * Staging is not part of the plan's scratch, so its slots cannot be asked for;
 * its spans are rows.
 */
static void emit_stage(struct writer *writer, const struct hk_span *span, uint32_t stage,
		       uint32_t count, bool out)
{
	for (uint32_t j = 0, len; j < count; j += len) {
		struct row staged = { HK_BUF_SCRATCH, stage + j };

		len = span_run(writer, span, j, count);
		emit(writer, "cpy", out ? staged : span_row(writer, span, j),
		     out ? span_row(writer, span, j) : staged, len, out && j + len == count);
	}
}

static void emit_talk(struct writer *writer, const struct hk_step *step, uint32_t stage)
{
	struct row staged = { HK_BUF_SCRATCH, stage }, src = staged, dst = staged;
	unsigned fields = hk__op_fields(step->op);
	bool stage_src, stage_dst;

	step_staged(writer, step, &stage_src, &stage_dst);
	if (stage_src)
		emit_stage(writer, &step->src, stage, step->count, false);
	else if (fields & HK__FIELD_SRC)
		src = span_row(writer, &step->src, 0);
	if (!stage_dst && (fields & HK__FIELD_DST) && step->dst.buf != HK_BUF_NONE)
		dst = span_row(writer, &step->dst, 0);
	/* What a type does not read or write is named like what it does. */
	if (!(fields & HK__FIELD_SRC))
		src = dst;
	if (!(fields & HK__FIELD_DST) || (!stage_dst && step->dst.buf == HK_BUF_NONE))
		dst = src;
	bool scatters = stage_dst && step->dst.buf != HK_BUF_NONE;
	emit(writer, step_type(step), src, dst, step->count, !scatters);
	if (scatters)
		emit_stage(writer, &step->dst, stage, step->count, true);
}

static void step_write(struct writer *writer, uint32_t lane, uint32_t i)
{
	struct hk_step step;

	hk_plan_step(writer->plan, writer->rank, lane, i, &step);
	writer->piece = hk__msccl_piece(writer->placing, writer->rank, lane, i);
	writer->block = hk__msccl_block(writer->placing, writer->piece->block);
	writer->ndeps = 0;
	/* The step before it in its lane, if another thread block does that. */
	if (i && writer->piece[-1].block != writer->piece->block)
		dep_add(writer, lane, i - 1);
	if (step.after.lane != HK_NONE && step.after.lane != lane)
		dep_add(writer, step.after.lane, step.after.step);
	if (hk__op_receives(step.op) || hk__op_sends(step.op))
		emit_talk(writer, &step, writer->stage[lane]);
	else if (step.count)
		emit_local(writer, step_type(&step), &step.src, &step.dst, step.count, true);
	else
		emit(writer, "nop", (struct row){ HK_BUF_IN, 0 }, (struct row){ HK_BUF_IN, 0 }, 0,
		     true);
}

/* ---- the file ---- */

static void block_write(struct writer *writer, uint32_t b)
{
	struct hk__msccl_block *block = hk__msccl_block(writer->placing, b);
	uint32_t lane = block->lane;

	block->nsteps = 0;
	if (writer->file)
		fprintf(writer->file, "    <tb id=\"%u\" send=\"%d\" recv=\"%d\" chan=\"%u\">\n",
			block->id, (int)block->to.rank, (int)block->from.rank, block->chan);
	for (uint32_t i = 0; i < hk_plan_steps(writer->plan, writer->rank, lane); i++)
		if (hk__msccl_piece(writer->placing, writer->rank, lane, i)->block == b)
			step_write(writer, lane, i);
	if (writer->file)
		fputs("    </tb>\n", writer->file);
}

/* Counts first: a step may wait for one that is written later. */
static enum hk_status rank_write(struct writer *writer, uint32_t rank, FILE *file)
{
	const struct hk__msccl_placing *placing = writer->placing;
	uint32_t first = placing->first_block[rank], end = placing->first_block[rank + 1];
	size_t nwaited;

	writer->rank = rank;
	writer->nlanes = hk_plan_lanes(writer->plan, rank);
	nwaited = (size_t)(end - first) * writer->nlanes;
	rank_set_stages(writer);
	fprintf(file, "  <gpu id=\"%u\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"%u\">\n", rank,
		hk_plan_slots(writer->plan, rank, HK_BUF_IN),
		hk_plan_slots(writer->plan, rank, HK_BUF_OUT), writer->stage[writer->nlanes]);
	for (int pass = 0; pass < 2; pass++) {
		writer->waited = hk__mem_zalloc(placing->alloc, nwaited + 1, sizeof(uint32_t));
		if (!writer->waited)
			return HK_ENOMEM;
		writer->file = pass ? file : NULL;
		for (uint32_t b = first; b < end; b++)
			block_write(writer, b);
		hk__mem_free(placing->alloc, writer->waited, nwaited + 1, sizeof(uint32_t));
	}
	fputs("  </gpu>\n", file);
	return HK_OK;
}

static void head_write(const struct hk_plan *plan, uint32_t nchannels, FILE *file)
{
	struct hk_plan_info info = { .size = sizeof(info) };
	uint32_t chunks = 0;

	hk_plan_describe(plan, &info);
	for (uint32_t r = 0; r < info.nranks; r++) {
		chunks = hk__max(chunks, hk_plan_slots(plan, r, HK_BUF_IN));
		chunks = hk__max(chunks, hk_plan_slots(plan, r, HK_BUF_OUT));
	}
	fprintf(file,
		"<algo name=\"%s\" proto=\"Simple\" nchannels=\"%u\" nchunksperloop=\"%u\" "
		"ngpus=\"%u\" coll=\"%s\" inplace=\"%d\" outofplace=\"1\" minBytes=\"0\" "
		"maxBytes=\"%lld\"",
		info.algo, nchannels, chunks, info.nranks, hk_coll_name(info.coll), info.inplace,
		(long long)INT64_MAX);
	/* MSCCL knows no root but this one; the reader does. */
	if (info.root)
		fprintf(file, " root=\"%u\"", info.root);
	fputs(">\n", file);
}

enum hk_status hk_plan_print_msccl(const struct hk_plan *plan, FILE *file, struct hk_why *why)
{
	struct hk__msccl_placing placing;
	enum hk_status status;

	if (!hk__msccl_has(plan->coll))
		return hk__why(why, HK_EINVAL, "MSCCL XML has no %s", hk_coll_name(plan->coll));
	status = hk__msccl_place(&placing, plan, why);
	if (status == HK_OK) {
		struct writer writer = { .plan = plan, .placing = &placing };

		head_write(plan, placing.nchannels, file);
		for (uint32_t r = 0; status == HK_OK && r < plan->n && !ferror(file); r++)
			status = rank_write(&writer, r, file);
		fputs("</algo>\n", file);
		if (status != HK_OK)
			hk__why(why, status, "no memory to write the plan as MSCCL XML");
	}
	hk__msccl_placing_fini(&placing);
	return status == HK_OK ? hk__print_end(file, why) : status;
}
