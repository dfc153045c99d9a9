/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - plans, programs and calls; see device.h and unit.h. */
#include "exec/device/unit.h"

#include <string.h>

/* A plan, flattened, and where its programs lie on the devices. */
struct device_program {
	const struct hk_plan *plan;
	bool wide, lines;
	struct hk__flat *flat;
	hk__cu_ptr at[UNITS_MAX]; /* 0: nobody there has asked */
	uint32_t offset[HK__FLAT_RANKS];
	uint32_t bytes;	   /* of all of them */
	uint32_t together; /* moves that go at once, at most */
};

struct device_plan {
	struct hk__gpu_plan what;
	struct hk_plan *plan;
};

/* ---- plans and programs ---- */

static void program_free(struct hk__gpu *gpu, struct device_program *program)
{
	struct gpu_visit visit;

	for (uint32_t u = 0; u < gpu->nunits; u++) {
		if (!program->at[u] || hk__unit_enter(gpu, gpu->units[u], &visit, NULL) != HK_OK)
			continue;
		(void)gpu->cu->free(program->at[u]);
		hk__unit_leave(gpu, &visit);
	}
	hk__flat_destroy(program->flat);
	hk__mem_free(gpu->alloc, program, 1, sizeof(*program));
}

void hk__gpu_forget(struct hk__gpu *gpu)
{
	for (size_t i = 0; i < gpu->programs.count; i++)
		program_free(gpu, ((struct device_program **)gpu->programs.items)[i]);
	for (size_t i = 0; i < gpu->plans.count; i++) {
		struct device_plan *plan = ((struct device_plan **)gpu->plans.items)[i];

		hk_plan_free(plan->plan);
		hk__mem_free(gpu->alloc, plan, 1, sizeof(*plan));
	}
	hk__gpu_choices_free(gpu);
	hk__array_fini(&gpu->programs);
	hk__array_fini(&gpu->plans);
}

static enum hk_status plan_add(struct hk__gpu *gpu, const struct hk__gpu_plan *what,
			       struct hk_why *why, struct device_plan **plan_out)
{
	struct device_plan *plan = hk__mem_zalloc(gpu->alloc, 1, sizeof(*plan));
	struct hk_plan_opts opts = what->opts;

	if (!plan)
		return hk__why(why, HK_ENOMEM, "no memory for a plan");
	plan->what = *what;
	opts.alloc = gpu->alloc;
	enum hk_status status = hk_plan_create(what->coll, gpu->spec.n, &opts, why, &plan->plan);
	struct device_plan **place = status == HK_OK ? hk__array_push(&gpu->plans) : NULL;
	if (!place) {
		hk_plan_free(plan->plan);
		hk__mem_free(gpu->alloc, plan, 1, sizeof(*plan));
		return status == HK_OK ? hk__why(why, HK_ENOMEM, "no memory for a plan") : status;
	}
	*place = *plan_out = plan;
	return HK_OK;
}

enum hk_status hk__gpu_plan(struct hk__gpu *gpu, const struct hk__gpu_plan *what,
			    struct hk_why *why, const struct hk_plan **plan_out)
{
	struct device_plan *found = NULL;
	enum hk_status status = HK_OK;

	*plan_out = what->given;
	if (what->given)
		return HK_OK;
	pthread_mutex_lock(&gpu->lock);
	for (size_t i = 0; i < gpu->plans.count && !found; i++) {
		struct device_plan *plan = ((struct device_plan **)gpu->plans.items)[i];

		if (plan->what.coll == what->coll && plan->what.opts.algo == what->opts.algo &&
		    plan->what.opts.root == what->opts.root)
			found = plan;
	}
	if (!found)
		status = plan_add(gpu, what, why, &found);
	pthread_mutex_unlock(&gpu->lock);
	if (status != HK_OK)
		return status;
	hk_assert(found);
	*plan_out = found->plan;
	return HK_OK;
}

static void program_lay_out(const struct hk__gpu *gpu, struct device_program *program)
{
	for (uint32_t r = 0; r < gpu->spec.n; r++) {
		const struct hk__flat_program *flat = program->flat->programs[r];

		program->together = hk__max(program->together, flat->together);
		program->offset[r] = program->bytes;
		if (gpu->ranks[r].here)
			program->bytes += (flat->bytes + 127) / 128 * 128;
	}
}

/* Programs of the ranks of this process, one behind the other, to a device. */
static enum hk_status program_copy(struct hk__gpu *gpu, struct device_program *program,
				   const struct gpu_unit *unit, struct hk_why *why)
{
	const struct hk__cuda *cu = gpu->cu;
	struct gpu_visit visit;
	hk__cu_ptr at = 0;
	enum hk_status status = hk__unit_enter(gpu, unit, &visit, why);

	if (status != HK_OK)
		return status;
	status = hk__cuda_check(cu->alloc(&at, program->bytes), "cuMemAlloc", why);
	for (uint32_t r = 0; r < gpu->spec.n && status == HK_OK; r++) {
		if (gpu->ranks[r].here)
			status = hk__cuda_check(cu->to_device(at + program->offset[r],
							      program->flat->programs[r],
							      program->flat->programs[r]->bytes,
							      unit->stream),
						"cuMemcpyHtoDAsync", why);
	}
	if (status == HK_OK)
		status = hk__cuda_check(cu->stream_wait(unit->stream), "cuStreamSynchronize", why);
	if (status == HK_OK)
		program->at[unit->index] = at;
	else if (at)
		(void)cu->free(at);
	hk__unit_leave(gpu, &visit);
	return status;
}

static enum hk_status program_add(struct hk__gpu *gpu, const struct device_program *like,
				  struct hk_why *why, struct device_program **program_out)
{
	struct hk__flat_spec spec = { .plan = like->plan,
				      .wide = like->wide,
				      .lines = like->lines,
				      .apart = gpu->spec.apart,
				      .alloc = gpu->alloc };
	struct device_program *program = hk__mem_zalloc(gpu->alloc, 1, sizeof(*program));

	if (!program)
		return hk__why(why, HK_ENOMEM, "no memory for a program");
	*program = *like;
	enum hk_status status = hk__flat_create(&spec, why, &program->flat);
	struct device_program **place = status == HK_OK ? hk__array_push(&gpu->programs) : NULL;
	if (!place) {
		program_free(gpu, program);
		return status == HK_OK ? hk__why(why, HK_ENOMEM, "no memory for a program")
				       : status;
	}
	program_lay_out(gpu, program);
	*place = *program_out = program;
	return HK_OK;
}

static enum hk_status program_get(struct hk__gpu *gpu, const struct device_program *like,
				  const struct gpu_unit *unit, struct hk_why *why,
				  struct device_program **program_out)
{
	enum hk_status status = HK_OK;

	*program_out = NULL;
	pthread_mutex_lock(&gpu->lock);
	for (size_t i = 0; i < gpu->programs.count && !*program_out; i++) {
		struct device_program *program = ((struct device_program **)gpu->programs.items)[i];

		if (program->plan == like->plan && program->wide == like->wide &&
		    program->lines == like->lines)
			*program_out = program;
	}
	if (!*program_out)
		status = program_add(gpu, like, why, program_out);
	hk_assert(*program_out || status != HK_OK);
	if (status == HK_OK && !(*program_out)->at[unit->index])
		status = program_copy(gpu, *program_out, unit, why);
	pthread_mutex_unlock(&gpu->lock);
	return status;
}

/* ---- calls ---- */

static void flat_fill(const struct hk__gpu *gpu, const struct hk__gpu_call *call,
		      struct hk__flat_call *flat)
{
	bool reduces = hk__coll_reduces(call->plan->coll);
	bool small = hk_type_size(call->type) < 4 && call->type >= HK_TYPE_FP16;

	*flat = (struct hk__flat_call){
		.in = (uint64_t)(uintptr_t)call->in,
		.out = (uint64_t)(uintptr_t)call->out,
		.timeout_ns = call->timeout_ns,
		.report = gpu_pointer(gpu->reports_at + call->rank * sizeof(*flat->report)),
		.rank = call->rank,
		.n = gpu->spec.n,
		.type = call->type,
		.op = call->op,
		.mode = hk__gpu_wide(call->plan->coll, gpu->spec.n, call->type, call->op)
				? HK__FLAT_WIDE
				: 0
	};
	if (call->op == HK_REDOP_AVG || call->op == HK_REDOP_PREMULSUM)
		flat->op = HK_REDOP_SUM;
	if (reduces && call->op == HK_REDOP_AVG)
		flat->mode |= HK__FLAT_AVG;
	if (reduces && call->op == HK_REDOP_PREMULSUM) {
		flat->mode |= HK__FLAT_PREMUL;
		memcpy(&flat->factor, call->factor, small ? 4 : hk_type_size(call->type));
	}
	if (gpu->far)
		flat->mode |= HK__FLAT_FAR;
	for (uint32_t r = 0; r < gpu->spec.n; r++)
		flat->segments[r] = gpu_pointer(gpu->ranks[call->rank].unit->segments[r]);
}

/* By lines, if that was chosen and fits; otherwise in place. */
static enum hk_status flat_choose(struct hk__gpu *gpu, const struct hk__gpu_call *call,
				  struct hk__flat_call *flat, struct hk_why *why,
				  struct device_program **program_out)
{
	const struct gpu_unit *unit = gpu->ranks[call->rank].unit;
	struct device_program like = { .plan = call->plan,
				       .wide = flat->mode & HK__FLAT_WIDE,
				       .lines = call->lines };
	enum hk_status status = HK_ELIMIT;

	if (call->lines) {
		flat->mode |= HK__FLAT_LINES;
		status = program_get(gpu, &like, unit, why, program_out);
		if (status == HK_OK)
			status = hk__gpu_shape(&gpu->limits, (*program_out)->flat, call->plan,
					       &call->sizes, flat);
	}
	if (status != HK_ELIMIT)
		return status;
	like.lines = false;
	flat->mode &= ~(uint32_t)HK__FLAT_LINES;
	status = program_get(gpu, &like, unit, why, program_out);
	if (status == HK_OK)
		status = hk__gpu_shape(&gpu->limits, (*program_out)->flat, call->plan, &call->sizes,
				       flat);
	return status == HK_ELIMIT
		       ? hk__why(why, status, "the plan needs more buffers than a device offers")
		       : status;
}

/* A small call has few threads, which meet sooner. */
static unsigned flat_threads(const struct hk__flat_call *flat, uint32_t together)
{
	uint64_t bytes = flat->piece * hk_type_size((enum hk_type)flat->type), threads;

	if (!(flat->mode & HK__FLAT_LINES))
		return THREADS;
	threads = (bytes / 4 + 31) / 32 * 32 * together;
	return (unsigned)(threads < THREADS_MIN ? THREADS_MIN
			  : threads > THREADS	? THREADS
						: threads);
}

static enum hk_status flat_launch(struct hk__gpu *gpu, const struct hk__gpu_call *call,
				  struct hk__flat_call *flat,
				  const struct hk__flat_program *program, struct hk_why *why)
{
	struct gpu_rank *rank = &gpu->ranks[call->rank];
	bool lines = flat->mode & HK__FLAT_LINES;
	unsigned shared = flat->shared + (lines ? program->nrefs * HK__FLAT_OPERAND_BYTES : 0);
	unsigned threads = flat_threads(flat, program->together);
	hk__cu_stream stream = call->stream ? call->stream : rank->own;
	void *params[] = { flat };
	hk__cu_context context;
	enum hk_status status =
		hk__cuda_check(gpu->cu->push(rank->unit->context), "cuCtxPushCurrent", why);

	if (status != HK_OK)
		return status;
	status = hk__rank_follow(gpu, rank, stream, why);
	if (status == HK_OK)
		status = hk__cuda_check(gpu->cu->launch(rank->unit->functions[lines][flat->type],
							flat->nblocks, 1, 1, threads, 1, 1, shared,
							stream, params, NULL),
					"cuLaunchKernel", why);
	if (status == HK_OK)
		status = hk__rank_note(gpu, rank, stream, why);
	(void)gpu->cu->pop(&context);
	return status;
}

enum hk_status hk__gpu_run(struct hk__gpu *gpu, const struct hk__gpu_call *call, struct hk_why *why)
{
	struct device_program *program;
	struct hk__flat_call flat;
	size_t size = hk_type_size(call->type);

	if ((uintptr_t)call->in % size || (uintptr_t)call->out % size)
		return hk__why(why, HK_EINVAL, "device memory that is not aligned to an element");
	flat_fill(gpu, call, &flat);
	enum hk_status status = flat_choose(gpu, call, &flat, why, &program);
	if (status != HK_OK)
		return status;
	hk_assert(program);
	uint32_t bytes = program->flat->programs[call->rank]->bytes;
	flat.program = gpu_pointer(program->at[gpu->ranks[call->rank].unit->index] +
				   program->offset[call->rank]);
	flat.shared = bytes <= SHARED_MAX / 4 ? bytes : 0;
	return flat_launch(gpu, call, &flat, program->flat->programs[call->rank], why);
}

bool hk__gpu_failed(const struct hk__gpu *gpu, uint32_t rank, struct hk__flat_report *report_out)
{
	const struct hk__flat_report *report = &gpu->reports[rank];

	if (!__atomic_load_n(&report->failed, __ATOMIC_ACQUIRE))
		return false;
	*report_out = *report;
	return true;
}

void hk__gpu_abort(struct hk__gpu *gpu, uint32_t rank)
{
	__atomic_store_n(&gpu->reports[rank].abort, 1, __ATOMIC_RELEASE);
}
