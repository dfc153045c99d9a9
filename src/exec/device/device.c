/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - see device.h. */
#include "exec/device/device.h"

#include "gpu/cuda.h"

#include <pthread.h>
#include <string.h>

#define THREADS 512u /* of a block */
#define THREADS_MIN 64u
#define BLOCKS_PER_SM 1u
#define SHARED_MAX (32u << 10) /* bytes of a program that is kept on chip */
/* A block is worth so many bytes of a chunk, by lines and otherwise. */
#define SLICE_MIN (4u << 10)
/* And not more: who waits for it goes on meanwhile. */
#define SLICE_MAX (2u << 20)
#define LINES_SLICE (2u << 10) /* shared by moves that go at once */
/* Larger chunks than this go faster by themselves, their flags after them. */
#define LINES_MAX (32u << 10)

struct device_rank {
	hk__cu_stream own;  /* in place of the legacy default stream */
	hk__cu_stream last; /* that a call went to */
	hk__cu_event event;
};

/* A plan, flattened, and where its programs lie on the device. */
struct device_program {
	const struct hk_plan *plan;
	bool wide, lines;
	struct hk__flat *flat;
	hk__cu_ptr at;
	uint32_t offset[HK__FLAT_RANKS];
	uint32_t together; /* moves that go at once, at most */
};

struct device_plan {
	struct hk__gpu_plan what;
	struct hk_plan *plan;
};

struct hk__gpu {
	struct hk__gpu_spec spec;
	const struct hk_alloc *alloc;
	const struct hk__cuda *cu;
	hk__cu_context context;
	int device;
	hk__cu_module module;
	hk__cu_function functions[2][HK_TYPE_COUNT]; /* by memory, by lines */
	hk__cu_stream stream;			     /* for copies of programs */
	hk__cu_ptr segments;
	uint64_t segment_bytes;
	struct hk__flat_limits limits;
	struct hk__flat_report *reports; /* by rank, in memory of the host */
	hk__cu_ptr reports_at;
	struct device_rank ranks[HK__FLAT_RANKS];
	pthread_mutex_t lock;	   /* of what follows */
	struct hk__array plans;	   /* struct device_plan * */
	struct hk__array programs; /* struct device_program * */
};

/* ---- the context ---- */

/* Current until left; what is set up meanwhile is no part of anybody's graph. */
struct device_visit {
	int mode;
};

static enum hk_status device_enter(const struct hk__gpu *device, struct device_visit *visit,
				   struct hk_why *why)
{
	enum hk_status status =
		hk__cuda_check(device->cu->push(device->context), "cuCtxPushCurrent", why);

	visit->mode = HK__CU_CAPTURE_RELAXED;
	if (status == HK_OK)
		status = hk__cuda_check(device->cu->capture_mode(&visit->mode),
					"cuThreadExchangeStreamCaptureMode", why);
	return status;
}

static void device_leave(const struct hk__gpu *device, struct device_visit *visit)
{
	hk__cu_context context;

	(void)device->cu->capture_mode(&visit->mode);
	(void)device->cu->pop(&context);
}

/* ---- making one ---- */

static enum hk_status device_load(struct hk__gpu *device, struct hk_why *why)
{
	const struct hk__cuda *cu = device->cu;
	enum hk_status status = hk__cuda_check(cu->module(&device->module, hk__cuda_image()),
					       "cuModuleLoadData", why);

	for (unsigned i = 0; i < 2 * HK_TYPE_COUNT && status == HK_OK; i++) {
		unsigned lines = i % 2, t = i / 2;
		char name[32];

		snprintf(name, sizeof(name), "hk_%s_%s", lines ? "lines" : "flat",
			 hk_type_name((enum hk_type)t));
		status = hk__cuda_check(cu->function(&device->functions[lines][t], device->module,
						     name),
					name, why);
	}
	return status;
}

/* All blocks of all ranks run at the same time, or wait for each other for ever. */
static enum hk_status device_blocks(struct hk__gpu *device, struct hk_why *why)
{
	int sms = 0, least = 1 << 30;
	enum hk_status status =
		hk__cuda_check(device->cu->attribute(&sms, HK__CU_DEVICE_SMS, device->device),
			       "cuDeviceGetAttribute", why);

	for (unsigned i = 0; i < 2 * HK_TYPE_COUNT && status == HK_OK; i++) {
		int blocks = 0;

		status = hk__cuda_check(device->cu->occupancy(&blocks,
							      device->functions[i % 2][i / 2],
							      (int)THREADS, SHARED_MAX),
					"cuOccupancyMaxActiveBlocksPerMultiprocessor", why);
		least = blocks < least ? blocks : least;
	}
	if (status != HK_OK)
		return status;
	uint32_t used = device->spec.sms && device->spec.sms < (uint32_t)sms ? device->spec.sms
									     : (uint32_t)sms;
	uint32_t room = used * (uint32_t)least;
	uint32_t blocks = hk__min(used * BLOCKS_PER_SM, room) / device->spec.n;
	if (device->spec.n > room)
		return hk__why(why, HK_ELIMIT,
			       "%u ranks on one GPU, but only %u blocks of theirs run at the same "
			       "time on %u of its multiprocessors: HOCKET_GPU_SMS",
			       device->spec.n, room, used);
	blocks = hk__max(blocks, 1);
	device->limits = (struct hk__flat_limits){ .blocks = hk__min(blocks, HK__FLAT_BLOCKS),
						   .slice_min = SLICE_MIN,
						   .slice_max = SLICE_MAX,
						   .lines_bytes = 256 << 10,
						   .rooms_bytes = 1 << 20 };
	return HK_OK;
}

static enum hk_status device_memory(struct hk__gpu *device, struct hk_why *why)
{
	const struct hk__cuda *cu = device->cu;
	uint32_t n = device->spec.n;
	void *reports = NULL;

	device->segment_bytes = hk__flat_segment_bytes(&device->limits);
	enum hk_status status =
		hk__cuda_check(cu->stream(&device->stream, HK__CU_STREAM_NON_BLOCKING),
			       "cuStreamCreate", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->alloc(&device->segments, n * device->segment_bytes),
					"cuMemAlloc", why);
	if (status == HK_OK)
		status =
			hk__cuda_check(cu->alloc_host(&reports, n * sizeof(struct hk__flat_report),
						      HK__CU_HOST_PORTABLE | HK__CU_HOST_DEVICEMAP),
				       "cuMemHostAlloc", why);
	device->reports = reports;
	if (status == HK_OK) {
		memset(reports, 0, n * sizeof(struct hk__flat_report));
		status = hk__cuda_check(cu->host_pointer(&device->reports_at, reports, 0),
					"cuMemHostGetDevicePointer", why);
	}
	if (status == HK_OK)
		status = hk__cuda_check(cu->set(device->segments, 0, n * device->segment_bytes,
						device->stream),
					"cuMemsetD8Async", why);
	for (uint32_t r = 0; r < n && status == HK_OK; r++) {
		status =
			hk__cuda_check(cu->stream(&device->ranks[r].own, 0), "cuStreamCreate", why);
		if (status == HK_OK)
			status = hk__cuda_check(cu->event(&device->ranks[r].event,
							  HK__CU_EVENT_NO_TIMING),
						"cuEventCreate", why);
	}
	if (status == HK_OK)
		status =
			hk__cuda_check(cu->stream_wait(device->stream), "cuStreamSynchronize", why);
	return status;
}

enum hk_status hk__gpu_create(const struct hk__gpu_spec *spec, struct hk_why *why,
			      struct hk__gpu **device_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
	const struct hk__cuda *cu = hk__cuda_get();
	struct device_visit visit;

	if (!cu || !hk__cuda_image())
		return hk__why(why, HK_EINVAL,
			       "device memory, but this build has no GPU code: build it where nvcc "
			       "is");
	if (spec->n > HK__FLAT_RANKS)
		return hk__why(why, HK_ELIMIT, "device memory: %u ranks, more than %u", spec->n,
			       HK__FLAT_RANKS);
	struct hk__gpu *device = hk__mem_zalloc(alloc, 1, sizeof(*device));
	if (!device)
		return hk__why(why, HK_ENOMEM, "no memory for a device");
	device->spec = *spec;
	device->alloc = alloc;
	device->cu = cu;
	pthread_mutex_init(&device->lock, NULL);
	hk__array_init(&device->plans, alloc, sizeof(struct device_plan *));
	hk__array_init(&device->programs, alloc, sizeof(struct device_program *));
	enum hk_status status =
		hk__cuda_check(cu->device(&device->device, spec->ordinal), "cuDeviceGet", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->context(&device->context, device->device),
					"cuDevicePrimaryCtxRetain", why);
	if (status == HK_OK)
		status = device_enter(device, &visit, why);
	if (status == HK_OK) {
		status = device_load(device, why);
		if (status == HK_OK)
			status = device_blocks(device, why);
		if (status == HK_OK)
			status = device_memory(device, why);
		device_leave(device, &visit);
	}
	if (status != HK_OK) {
		hk__gpu_destroy(device);
		return status;
	}
	*device_out = device;
	return HK_OK;
}

static void program_free(struct hk__gpu *device, struct device_program *program)
{
	if (program->at)
		(void)device->cu->free(program->at);
	hk__flat_destroy(program->flat);
	hk__mem_free(device->alloc, program, 1, sizeof(*program));
}

/* What the driver says here changes nothing: all of it is being left. */
static void device_release(struct hk__gpu *device)
{
	const struct hk__cuda *cu = device->cu;

	for (uint32_t r = 0; r < device->spec.n; r++) {
		if (device->ranks[r].own)
			(void)cu->stream_free(device->ranks[r].own);
		if (device->ranks[r].event)
			(void)cu->event_free(device->ranks[r].event);
	}
	if (device->segments)
		(void)cu->free(device->segments);
	if (device->reports)
		(void)cu->free_host(device->reports);
	if (device->stream)
		(void)cu->stream_free(device->stream);
	if (device->module)
		(void)cu->module_free(device->module);
}

void hk__gpu_destroy(struct hk__gpu *device)
{
	hk__cu_context context;

	if (!device)
		return;
	bool entered = device->context && device->cu->push(device->context) == HK__CU_SUCCESS;
	for (size_t i = 0; i < device->programs.count; i++)
		program_free(device, ((struct device_program **)device->programs.items)[i]);
	for (size_t i = 0; i < device->plans.count; i++) {
		struct device_plan *plan = ((struct device_plan **)device->plans.items)[i];

		hk_plan_destroy(plan->plan);
		hk__mem_free(device->alloc, plan, 1, sizeof(*plan));
	}
	hk__array_fini(&device->programs);
	hk__array_fini(&device->plans);
	if (entered) {
		device_release(device);
		(void)device->cu->pop(&context);
	}
	if (device->context)
		(void)device->cu->context_free(device->device);
	pthread_mutex_destroy(&device->lock);
	hk__mem_free(device->alloc, device, 1, sizeof(*device));
}

/* ---- plans and programs ---- */

static enum hk_status plan_add(struct hk__gpu *device, const struct hk__gpu_plan *what,
			       struct hk_why *why, struct device_plan **plan_out)
{
	struct device_plan *plan = hk__mem_zalloc(device->alloc, 1, sizeof(*plan));
	struct hk_plan_opts opts = what->opts;

	if (!plan)
		return hk__why(why, HK_ENOMEM, "no memory for a plan");
	plan->what = *what;
	opts.alloc = device->alloc;
	enum hk_status status = hk_plan_create(what->coll, device->spec.n, &opts, why, &plan->plan);
	struct device_plan **place = status == HK_OK ? hk__array_push(&device->plans) : NULL;
	if (!place) {
		hk_plan_destroy(plan->plan);
		hk__mem_free(device->alloc, plan, 1, sizeof(*plan));
		return status == HK_OK ? hk__why(why, HK_ENOMEM, "no memory for a plan") : status;
	}
	*place = *plan_out = plan;
	return HK_OK;
}

enum hk_status hk__gpu_plan(struct hk__gpu *device, const struct hk__gpu_plan *what,
			    struct hk_why *why, const struct hk_plan **plan_out)
{
	struct device_plan *found = NULL;
	enum hk_status status = HK_OK;

	*plan_out = what->given;
	if (what->given)
		return HK_OK;
	pthread_mutex_lock(&device->lock);
	for (size_t i = 0; i < device->plans.count && !found; i++) {
		struct device_plan *plan = ((struct device_plan **)device->plans.items)[i];

		if (plan->what.coll == what->coll && plan->what.opts.algo == what->opts.algo &&
		    plan->what.opts.root == what->opts.root)
			found = plan;
	}
	if (!found)
		status = plan_add(device, what, why, &found);
	pthread_mutex_unlock(&device->lock);
	if (status != HK_OK)
		return status;
	hk_assert(found);
	*plan_out = found->plan;
	return HK_OK;
}

/* All ranks' programs, one behind the other, to the device. */
static enum hk_status program_copy(struct hk__gpu *device, struct device_program *program,
				   struct hk_why *why)
{
	const struct hk__cuda *cu = device->cu;
	struct device_visit visit;
	uint32_t bytes = 0;

	for (uint32_t r = 0; r < device->spec.n; r++) {
		program->offset[r] = bytes;
		bytes += (program->flat->programs[r]->bytes + 127) / 128 * 128;
		program->together =
			hk__max(program->together, program->flat->programs[r]->together);
	}
	enum hk_status status = device_enter(device, &visit, why);
	if (status != HK_OK)
		return status;
	status = hk__cuda_check(cu->alloc(&program->at, bytes), "cuMemAlloc", why);
	for (uint32_t r = 0; r < device->spec.n && status == HK_OK; r++)
		status = hk__cuda_check(cu->to_device(program->at + program->offset[r],
						      program->flat->programs[r],
						      program->flat->programs[r]->bytes,
						      device->stream),
					"cuMemcpyHtoDAsync", why);
	if (status == HK_OK)
		status =
			hk__cuda_check(cu->stream_wait(device->stream), "cuStreamSynchronize", why);
	device_leave(device, &visit);
	return status;
}

static enum hk_status program_add(struct hk__gpu *device, const struct device_program *like,
				  struct hk_why *why, struct device_program **program_out)
{
	struct hk__flat_spec spec = {
		.plan = like->plan, .wide = like->wide, .lines = like->lines, .alloc = device->alloc
	};
	struct device_program *program = hk__mem_zalloc(device->alloc, 1, sizeof(*program));

	if (!program)
		return hk__why(why, HK_ENOMEM, "no memory for a program");
	*program = *like;
	enum hk_status status = hk__flat_create(&spec, why, &program->flat);
	if (status == HK_OK)
		status = program_copy(device, program, why);
	struct device_program **place = status == HK_OK ? hk__array_push(&device->programs) : NULL;
	if (!place) {
		program_free(device, program);
		return status == HK_OK ? hk__why(why, HK_ENOMEM, "no memory for a program")
				       : status;
	}
	*place = *program_out = program;
	return HK_OK;
}

static enum hk_status program_get(struct hk__gpu *device, const struct device_program *like,
				  struct hk_why *why, struct device_program **program_out)
{
	enum hk_status status = HK_OK;

	*program_out = NULL;
	pthread_mutex_lock(&device->lock);
	for (size_t i = 0; i < device->programs.count && !*program_out; i++) {
		struct device_program *program =
			((struct device_program **)device->programs.items)[i];

		if (program->plan == like->plan && program->wide == like->wide &&
		    program->lines == like->lines)
			*program_out = program;
	}
	if (!*program_out)
		status = program_add(device, like, why, program_out);
	pthread_mutex_unlock(&device->lock);
	hk_assert(*program_out || status != HK_OK);
	return status;
}

/* ---- calls ---- */

/* Where the device finds it: a number to the driver, and a pointer to kernels. */
static void *device_pointer(hk__cu_ptr at)
{
	return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
}

/* As exec/program.c: elements that are rounded when stored, and added more than once. */
static bool call_is_wide(const struct hk__gpu_call *call)
{
	bool rounds = call->op == HK_REDOP_SUM || call->op == HK_REDOP_PROD ||
		      call->op == HK_REDOP_AVG || call->op == HK_REDOP_PREMULSUM;
	bool small = call->type == HK_TYPE_FP16 || call->type == HK_TYPE_BF16 ||
		     call->type == HK_TYPE_FP8E4M3 || call->type == HK_TYPE_FP8E5M2;

	return rounds && small && call->plan->n > 2 && hk__coll_reduces(call->plan->coll);
}

static void flat_fill(const struct hk__gpu *device, const struct hk__gpu_call *call,
		      struct hk__flat_call *flat)
{
	bool reduces = hk__coll_reduces(call->plan->coll);
	bool small = hk_type_size(call->type) < 4 && call->type >= HK_TYPE_FP16;

	*flat = (struct hk__flat_call){
		.in = (uint64_t)(uintptr_t)call->in,
		.out = (uint64_t)(uintptr_t)call->out,
		.timeout_ns = call->timeout_ns,
		.report = device_pointer(device->reports_at + call->rank * sizeof(*flat->report)),
		.rank = call->rank,
		.n = device->spec.n,
		.type = call->type,
		.op = call->op,
		.mode = call_is_wide(call) ? HK__FLAT_WIDE : 0
	};
	if (call->op == HK_REDOP_AVG || call->op == HK_REDOP_PREMULSUM)
		flat->op = HK_REDOP_SUM;
	if (reduces && call->op == HK_REDOP_AVG)
		flat->mode |= HK__FLAT_AVG;
	if (reduces && call->op == HK_REDOP_PREMULSUM) {
		flat->mode |= HK__FLAT_PREMUL;
		memcpy(&flat->factor, call->factor, small ? 4 : hk_type_size(call->type));
	}
	for (uint32_t r = 0; r < device->spec.n; r++)
		flat->segments[r] = device_pointer(device->segments + r * device->segment_bytes);
}

/* Operands of all ranks' programs by lines are kept on chip. */
static bool flat_lines_fit(const struct hk__flat *flat)
{
	for (uint32_t r = 0; r < flat->n; r++) {
		if (flat->programs[r]->nrefs * HK__FLAT_OPERAND_BYTES > SHARED_MAX / 4 * 3)
			return false;
	}
	return true;
}

/* By lines, if that is small enough; otherwise in place. */
static enum hk_status flat_choose(struct hk__gpu *device, const struct hk__gpu_call *call,
				  struct hk__flat_call *flat, struct hk_why *why,
				  struct device_program **program_out)
{
	struct hk__flat_limits limits = device->limits;
	struct device_program like = { .plan = call->plan,
				       .wide = flat->mode & HK__FLAT_WIDE,
				       .lines = true };
	uint64_t bytes = call->sizes.count * hk_type_size(call->type);

	if (!call->sizes.counts && bytes && bytes <= LINES_MAX) {
		enum hk_status status = program_get(device, &like, why, program_out);
		uint32_t together = status == HK_OK ? hk__max((*program_out)->together, 1) : 1;

		flat->mode |= HK__FLAT_LINES;
		limits.slice_min = LINES_SLICE / together;
		if (status == HK_OK && bytes > LINES_MAX / together)
			status = HK_ELIMIT;
		if (status == HK_OK)
			status = hk__flat_shape((*program_out)->flat, call->plan, &call->sizes,
						&limits, flat);
		if (status == HK_OK && !flat_lines_fit((*program_out)->flat))
			status = HK_ELIMIT;
		if (status != HK_ELIMIT)
			return status;
		flat->mode &= ~(uint32_t)HK__FLAT_LINES;
	}
	like.lines = false;
	enum hk_status status = program_get(device, &like, why, program_out);
	if (status == HK_OK)
		status = hk__flat_shape((*program_out)->flat, call->plan, &call->sizes,
					&device->limits, flat);
	return status == HK_ELIMIT
		       ? hk__why(why, status, "the plan needs more rooms than a device offers")
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

/* Calls of a rank follow each other, also from one stream to another. */
static enum hk_status stream_follow(struct hk__gpu *device, struct device_rank *rank,
				    hk__cu_stream stream, struct hk_why *why)
{
	const struct hk__cuda *cu = device->cu;
	hk__cu_stream before = rank->last;
	int captures = 0, captured = 0;

	rank->last = stream;
	if (!before || before == stream)
		return HK_OK;
	/* Inside a graph the order is the caller's. */
	if (cu->capturing(stream, &captures) != HK__CU_SUCCESS ||
	    cu->capturing(before, &captured) != HK__CU_SUCCESS || captures || captured)
		return HK_OK;
	enum hk_status status =
		hk__cuda_check(cu->event_record(rank->event, before), "cuEventRecord", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->event_follow(stream, rank->event, 0),
					"cuStreamWaitEvent", why);
	return status;
}

static enum hk_status flat_launch(struct hk__gpu *device, const struct hk__gpu_call *call,
				  struct hk__flat_call *flat,
				  const struct hk__flat_program *program, struct hk_why *why)
{
	struct device_rank *rank = &device->ranks[call->rank];
	bool lines = flat->mode & HK__FLAT_LINES;
	unsigned shared = flat->shared + (lines ? program->nrefs * HK__FLAT_OPERAND_BYTES : 0);
	unsigned threads = flat_threads(flat, program->together);
	hk__cu_stream stream = call->stream ? call->stream : rank->own;
	void *params[] = { flat };
	hk__cu_context context;
	enum hk_status status =
		hk__cuda_check(device->cu->push(device->context), "cuCtxPushCurrent", why);

	if (status != HK_OK)
		return status;
	status = stream_follow(device, rank, stream, why);
	if (status == HK_OK)
		status = hk__cuda_check(device->cu->launch(device->functions[lines][flat->type],
							   flat->nblocks, 1, 1, threads, 1, 1,
							   shared, stream, params, NULL),
					"cuLaunchKernel", why);
	(void)device->cu->pop(&context);
	return status;
}

enum hk_status hk__gpu_run(struct hk__gpu *device, const struct hk__gpu_call *call,
			   struct hk_why *why)
{
	struct device_program *program;
	struct hk__flat_call flat;
	size_t size = hk_type_size(call->type);

	if ((uintptr_t)call->in % size || (uintptr_t)call->out % size)
		return hk__why(why, HK_EINVAL, "device memory that is not aligned to an element");
	flat_fill(device, call, &flat);
	enum hk_status status = flat_choose(device, call, &flat, why, &program);
	if (status != HK_OK)
		return status;
	hk_assert(program);
	uint32_t bytes = program->flat->programs[call->rank]->bytes;
	flat.program = device_pointer(program->at + program->offset[call->rank]);
	flat.shared = bytes <= SHARED_MAX / 4 ? bytes : 0;
	return flat_launch(device, call, &flat, program->flat->programs[call->rank], why);
}

bool hk__gpu_failed(const struct hk__gpu *device, uint32_t rank, struct hk__flat_report *report_out)
{
	const struct hk__flat_report *report = &device->reports[rank];

	if (!__atomic_load_n(&report->failed, __ATOMIC_ACQUIRE))
		return false;
	*report_out = *report;
	return true;
}

void hk__gpu_abort(struct hk__gpu *device, uint32_t rank)
{
	__atomic_store_n(&device->reports[rank].abort, 1, __ATOMIC_RELEASE);
}
