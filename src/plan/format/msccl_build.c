/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msccl_build.c - a stored plan of what an MSCCL file says: a thread block
 * becomes a lane, and what two of them send each other on one channel a channel.
 *
 * Such a file may cut the block of a rank into chunks; here a block is whole, so
 * chunks that travel together are taken together, and others are refused. It may
 * also be meant for one buffer that is input and output (inplace alone). Here the
 * input is never written, so one more lane copies it to where it may be, before
 * anything else, and what is not the output back from there.
 */
#include "plan/format/msccl.h"

#define BUILD_SLOTS 2u /* of a channel: what every transport offers */

/* How the chunks of a rank's buffers are called here. */
struct places {
	bool shared;		      /* input and output are one */
	enum hk_buf buf;	      /* where that is, if so, */
	uint32_t in, out;	      /* and where in it they begin */
	uint32_t nin, nout;	      /* chunks of each, here */
	uint32_t ncopy_in, ncopy_out; /* that are copied, before and after */
	uint32_t extra;		      /* scratch for it */
};

struct builder {
	const struct hk__msccl_file *file;
	struct hk_plan *plan;
	uint32_t scale;	  /* chunks of the file in one of the plan */
	uint32_t *gpu_of; /* by rank, into the file's gpus */
	/* Of the rank that is being built. */
	const struct hk__msccl_gpu *gpu;
	struct places places;
	uint32_t shift; /* steps before a lane's own */
};

static const struct hk__msccl_tb *tb_at(const struct hk__msccl_file *file, uint32_t t)
{
	return hk__array_at(&file->tbs, t);
}

static enum hk_status fail_memory(const struct hk__msccl_file *file)
{
	return hk__why(file->why, HK_ENOMEM, "%s: no memory to read it", file->name);
}

/* ---- buffers ---- */

static enum hk_status places_find(struct builder *builder)
{
	const struct hk__msccl_file *file = builder->file;
	struct places *places = &builder->places;
	uint32_t rank = builder->gpu->id, chunks = hk__plan_chunks(builder->plan);
	bool keeps = file->coll != HK_COLL_REDUCE || rank == file->root;

	*places =
		(struct places){ .shared = file->inplace && !file->outofplace, .buf = HK_BUF_OUT };
	places->nin = hk_plan_slots(builder->plan, rank, HK_BUF_IN);
	places->nout = hk_plan_slots(builder->plan, rank, HK_BUF_OUT);
	if (!places->shared)
		return HK_OK;
	places->ncopy_in = places->nin;
	switch (file->coll) {
	case HK_COLL_ALLGATHER:
		places->in = rank;
		return HK_OK;
	case HK_COLL_REDUCESCATTER:
		places->out = rank;
		break;
	case HK_COLL_ALLTOALL:
		break;
	case HK_COLL_GATHER:
	case HK_COLL_SCATTER:
		return hk__msccl_fail(file, HK_ELIMIT, file->line,
				      "a %s for one buffer that is input and output; only one "
				      "that also works with two (outofplace=\"1\") can be read",
				      hk_coll_name(file->coll));
	default:
		places->nin = places->nout = chunks;
		if (keeps)
			return HK_OK;
		break;
	}
	/* Where the output is not all of it, scratch is. */
	places->buf = HK_BUF_SCRATCH;
	places->extra = chunks;
	places->ncopy_out = hk_plan_slots(builder->plan, rank, HK_BUF_OUT);
	return HK_OK;
}

/* Where the shared buffer begins. */
static uint32_t shared_base(const struct builder *builder)
{
	uint32_t scratch = builder->gpu->scratch / builder->scale;

	if (builder->places.buf != HK_BUF_SCRATCH)
		return 0;
	return scratch + (builder->gpu->scratch % builder->scale != 0);
}

/* Chunks [first, first + count) of a buffer of the file, as a span. */
static enum hk_status span_build(const struct builder *builder, const struct hk__msccl_step *step,
				 enum hk_buf buf, int64_t first, struct hk_span *span)
{
	const struct places *places = &builder->places;
	uint32_t scale = builder->scale;
	uint64_t limit =
		buf == HK_BUF_SCRATCH
			? builder->gpu->scratch
			: (uint64_t)scale * (buf == HK_BUF_IN ? places->nin : places->nout);

	if (first < 0 || (uint64_t)first + step->count > limit)
		return hk__msccl_fail(builder->file, HK_ESYNTAX, step->line,
				      "<step>: chunks %lld to %lld of a buffer that has %llu",
				      (long long)first, (long long)first + step->count - 1,
				      (unsigned long long)limit);
	if (first % scale || step->count % scale)
		return hk__msccl_fail(
			builder->file, HK_ELIMIT, step->line,
			"<step>: moves %u chunks from chunk %lld on, of blocks that are "
			"cut into %u; only whole blocks can be read",
			step->count, (long long)first, scale);
	span->buf = buf;
	span->first = (uint32_t)first / scale;
	if (!places->shared || buf == HK_BUF_SCRATCH)
		return HK_OK;
	span->first += shared_base(builder) + (buf == HK_BUF_IN ? places->in : places->out);
	span->buf = places->buf;
	return HK_OK;
}

/* ---- peers ---- */

/* The one thread block of a rank that has a peer on a channel. */
static const struct hk__msccl_tb *tb_find(const struct builder *builder, uint32_t rank,
					  int64_t peer, uint32_t chan, bool receives,
					  uint32_t *found_out)
{
	const struct hk__msccl_file *file = builder->file;
	const struct hk__msccl_gpu *gpu = hk__array_at(&file->gpus, builder->gpu_of[rank]);
	const struct hk__msccl_tb *found = NULL;

	*found_out = 0;
	for (uint32_t t = gpu->first; t < gpu->first + gpu->ntbs; t++) {
		const struct hk__msccl_tb *tb = tb_at(file, t);

		if ((receives ? tb->recv : tb->send) != peer || tb->chan != chan)
			continue;
		found = tb;
		(*found_out)++;
	}
	return found;
}

static enum hk_status port_build(const struct builder *builder, const struct hk__msccl_tb *tb,
				 bool sends, struct hk_port *port)
{
	const struct hk__msccl_file *file = builder->file;
	int64_t peer = sends ? tb->send : tb->recv;
	uint32_t rank = builder->gpu->id, here, there = 0;

	if (peer == rank)
		return hk__msccl_fail(file, HK_ESYNTAX, tb->line,
				      "<tb>: gpu %u has itself for a peer", rank);
	(void)tb_find(builder, rank, peer, tb->chan, !sends, &here);
	const struct hk__msccl_tb *other =
		tb_find(builder, (uint32_t)peer, rank, tb->chan, sends, &there);
	if (here != 1 || there != 1)
		return hk__msccl_fail(file, HK_ESYNTAX, tb->line,
				      "<tb>: gpu %u %s gpu %lld on channel %u by %u thread blocks, "
				      "which has %u for that; expected 1 and 1",
				      rank, sends ? "sends to" : "receives from", (long long)peer,
				      tb->chan, here, there);
	*port = (struct hk_port){ (uint32_t)peer, other->id };
	return HK_OK;
}

/* ---- steps ---- */

static enum hk_status step_build_after(const struct builder *builder,
				       const struct hk__msccl_step *from, struct hk_step *step)
{
	const struct hk__msccl_gpu *gpu = builder->gpu;

	if (from->dep_tb < 0)
		return HK_OK;
	for (uint32_t t = gpu->first; t < gpu->first + gpu->ntbs; t++) {
		const struct hk__msccl_tb *tb = tb_at(builder->file, t);

		if (tb->id != from->dep_tb || from->dep_step < 0 || from->dep_step >= tb->nsteps)
			continue;
		step->after.lane = tb->id;
		step->after.step = (uint32_t)from->dep_step + builder->shift;
		return HK_OK;
	}
	return hk__msccl_fail(builder->file, HK_ESYNTAX, from->line,
			      "<step>: depends on step %lld of thread block %lld, which gpu %u has "
			      "not",
			      (long long)from->dep_step, (long long)from->dep_tb, gpu->id);
}

static enum hk_status step_build(const struct builder *builder, const struct hk__msccl_tb *tb,
				 const struct hk__msccl_step *from, struct hk_step *step)
{
	enum hk_op op = from->count ? from->op : HK_OP_NOP; /* what moves nothing only waits */
	unsigned fields = hk__op_fields(op);
	enum hk_status status = step_build_after(builder, from, step);

	step->op = op;
	step->count = from->count / builder->scale;
	if (((fields & HK__FIELD_FROM) && tb->recv < 0) ||
	    ((fields & HK__FIELD_TO) && tb->send < 0))
		return hk__msccl_fail(builder->file, HK_ESYNTAX, from->line,
				      "<step>: its thread block has no peer for that");
	if (op == HK_OP_RECV_REDUCE_SEND && !from->keeps)
		fields &= ~(unsigned)HK__FIELD_DST;
	if (status == HK_OK && (fields & HK__FIELD_FROM))
		status = port_build(builder, tb, false, &step->from);
	if (status == HK_OK && (fields & HK__FIELD_TO))
		status = port_build(builder, tb, true, &step->to);
	if (status == HK_OK && (fields & HK__FIELD_SRC))
		status = span_build(builder, from, from->src_buf, from->src, &step->src);
	if (status == HK_OK && (fields & HK__FIELD_DST))
		status = span_build(builder, from, from->dst_buf, from->dst, &step->dst);
	return status;
}

/* A step that waits for another one. */
static enum hk_status nop_add(const struct builder *builder, uint32_t lane, uint32_t after,
			      uint32_t step)
{
	struct hk_step *nop = hk__store_add_step(builder->plan, builder->gpu->id, lane);

	if (!nop)
		return fail_memory(builder->file);
	nop->after = (struct hk_after){ after, step };
	return HK_OK;
}

static enum hk_status tb_build(const struct builder *builder, const struct hk__msccl_tb *tb)
{
	enum hk_status status = HK_OK;

	/* What it reads has been put there first. */
	if (builder->shift)
		status = nop_add(builder, tb->id, builder->gpu->ntbs, 0);
	for (uint32_t s = 0; status == HK_OK && s < tb->nsteps; s++) {
		const struct hk__msccl_step *from =
			hk__array_at(&builder->file->steps, tb->first + s);
		struct hk_step *step = hk__store_add_step(builder->plan, builder->gpu->id, tb->id);

		if (!step)
			return fail_memory(builder->file);
		status = step_build(builder, tb, from, step);
	}
	return status;
}

/* ---- one buffer for input and output ---- */

static enum hk_status copy_add(const struct builder *builder, struct hk_span src,
			       struct hk_span dst, uint32_t count)
{
	struct hk_step *step =
		hk__store_add_step(builder->plan, builder->gpu->id, builder->gpu->ntbs);

	if (!step)
		return fail_memory(builder->file);
	if (count == 0)
		return HK_OK; /* a nop */
	step->op = HK_OP_COPY;
	step->src = src;
	step->dst = dst;
	step->count = count;
	return HK_OK;
}

/* The lane behind the others: copies, waits for all of them, copies back. */
static enum hk_status shared_build(const struct builder *builder)
{
	const struct places *places = &builder->places;
	const struct hk__msccl_gpu *gpu = builder->gpu;
	uint32_t base = shared_base(builder);
	struct hk_span in = { HK_BUF_IN, 0, 0, 0 }, out = { HK_BUF_OUT, 0, 0, 0 };
	struct hk_span shared_in = { places->buf, base + places->in, 0, 0 };
	struct hk_span shared_out = { places->buf, base + places->out, 0, 0 };

	if (!hk__store_add_lane(builder->plan, gpu->id))
		return fail_memory(builder->file);
	enum hk_status status = copy_add(builder, in, shared_in, places->ncopy_in);
	if (places->ncopy_out == 0)
		return status;
	for (uint32_t t = gpu->first; status == HK_OK && t < gpu->first + gpu->ntbs; t++) {
		const struct hk__msccl_tb *tb = tb_at(builder->file, t);

		status = nop_add(builder, gpu->ntbs, tb->id, tb->nsteps + builder->shift - 1);
	}
	if (status == HK_OK)
		status = copy_add(builder, shared_out, out, places->ncopy_out);
	return status;
}

/* ---- ranks ---- */

/* Thread blocks are numbered from 0, without a gap. */
static enum hk_status gpu_check_tbs(const struct builder *builder)
{
	const struct hk__msccl_gpu *gpu = builder->gpu;
	bool seen[HK_LANES_MAX] = { false };

	if (gpu->ntbs + builder->shift > HK_LANES_MAX)
		return hk__msccl_fail(builder->file, HK_ELIMIT, gpu->line,
				      "<gpu>: %u thread blocks; at most %u can be read", gpu->ntbs,
				      HK_LANES_MAX - builder->shift);
	for (uint32_t t = gpu->first; t < gpu->first + gpu->ntbs; t++) {
		const struct hk__msccl_tb *tb = tb_at(builder->file, t);

		if (tb->id >= gpu->ntbs || seen[tb->id])
			return hk__msccl_fail(builder->file, HK_ESYNTAX, tb->line,
					      "<tb> id: %u is %s; gpu %u has %u thread blocks",
					      tb->id,
					      tb->id < gpu->ntbs ? "there already" : "too large",
					      gpu->id, gpu->ntbs);
		seen[tb->id] = true;
	}
	return HK_OK;
}

static enum hk_status gpu_build(struct builder *builder)
{
	const struct hk__msccl_gpu *gpu = builder->gpu;

	hk_assert(builder->plan);
	struct hk__store_rank *stored = &builder->plan->store->ranks[gpu->id];
	enum hk_status status = places_find(builder);

	builder->shift = builder->places.shared;
	if (status == HK_OK)
		status = gpu_check_tbs(builder);
	stored->scratch =
		(gpu->scratch + builder->scale - 1) / builder->scale + builder->places.extra;
	for (uint32_t t = 0; status == HK_OK && t < gpu->ntbs; t++)
		if (!hk__store_add_lane(builder->plan, gpu->id))
			status = fail_memory(builder->file);
	for (uint32_t t = 0; status == HK_OK && t < gpu->ntbs; t++)
		status = tb_build(builder, tb_at(builder->file, gpu->first + t));
	if (status == HK_OK && builder->places.shared)
		status = shared_build(builder);
	return status;
}

/* A program for every rank, and none twice: so none is missing. */
static enum hk_status gpus_find(struct builder *builder)
{
	const struct hk__msccl_file *file = builder->file;

	builder->gpu_of = hk__mem_zalloc(file->alloc, file->ngpus, sizeof(uint32_t));
	if (!builder->gpu_of)
		return fail_memory(file);
	for (uint32_t g = 0; g < file->ngpus; g++) {
		const struct hk__msccl_gpu *gpu = hk__array_at(&file->gpus, g);
		struct hk__store_rank *stored = &builder->plan->store->ranks[gpu->id];

		if (stored->present)
			return hk__msccl_fail(file, HK_ESYNTAX, gpu->line,
					      "<gpu> id: %u is there already", gpu->id);
		stored->present = true;
		builder->gpu_of[gpu->id] = g;
	}
	return HK_OK;
}

/* ---- the plan ---- */

static enum hk_status plan_create(struct builder *builder)
{
	const struct hk__msccl_file *file = builder->file;
	bool vector = hk__coll_vector(file->coll);
	struct hk__store_spec spec = { .coll = file->coll,
				       .algo = file->algo,
				       .n = file->ngpus,
				       .root = hk__coll_rooted(file->coll) ? file->root : 0,
				       .nodes = 1,
				       .parts = vector ? file->chunks : 1,
				       .slots = BUILD_SLOTS,
				       .inplace = file->inplace && hk__coll_inplace(file->coll) };

	if (!vector && file->chunks % file->ngpus)
		return hk__msccl_fail(
			file, HK_ESYNTAX, file->line,
			"<algo> nchunksperloop: %u chunks are not the blocks of %u gpus",
			file->chunks, file->ngpus);
	/* Nothing is allocated for a number in the text alone. */
	if (file->gpus.count != file->ngpus)
		return hk__msccl_fail(file, HK_ESYNTAX, file->line,
				      "<algo>: expected a <gpu> for each of %u, found %zu",
				      file->ngpus, file->gpus.count);
	builder->scale = vector ? 1 : file->chunks / file->ngpus;
	if (hk__store_create(file->alloc, &spec, &builder->plan) != HK_OK)
		return fail_memory(file);
	return gpus_find(builder);
}

/* What only the whole plan can tell: the form of every step. */
static enum hk_status plan_check(struct builder *builder)
{
	const struct hk__msccl_file *file = builder->file;
	struct hk_why why = { "" };
	struct hk_step step;

	enum hk_status status = hk__store_check_size(builder->plan, &why);
	if (status != HK_OK)
		return hk__msccl_fail(file, status, file->line, "%s", why.text);
	for (uint32_t t = 0; t < file->tbs.count; t++) {
		const struct hk__msccl_tb *tb = tb_at(file, t);
		const struct hk__msccl_gpu *gpu = hk__array_at(&file->gpus, tb->gpu);

		for (uint32_t s = 0; s < tb->nsteps; s++) {
			const struct hk__msccl_step *from =
				hk__array_at(&file->steps, tb->first + s);

			hk_plan_step(builder->plan, gpu->id, tb->id, s + builder->shift, &step);
			const char *fault = hk__step_fault(builder->plan, gpu->id, &step);
			if (fault)
				return hk__msccl_fail(file, HK_ESYNTAX, from->line, "<step>: %s",
						      fault);
		}
	}
	builder->plan->widest = hk__plan_widest(builder->plan);
	return HK_OK;
}

enum hk_status hk__msccl_build(const struct hk__msccl_file *file, struct hk_plan **plan_out)
{
	struct builder builder = { .file = file };
	enum hk_status status = plan_create(&builder);

	for (uint32_t g = 0; status == HK_OK && g < file->ngpus; g++) {
		builder.gpu = hk__array_at(&file->gpus, g);
		status = gpu_build(&builder);
	}
	if (status == HK_OK)
		status = plan_check(&builder);
	hk__mem_free(file->alloc, builder.gpu_of, builder.gpu_of ? file->ngpus : 0,
		     sizeof(uint32_t));
	if (status == HK_OK)
		*plan_out = builder.plan;
	else
		hk_plan_free(builder.plan);
	return status;
}
