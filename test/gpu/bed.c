/* SPDX-License-Identifier: Apache-2.0 */
/* bed.c - see bed.h. */
#include "gpu/bed.h"

#include "exec/device/device.h"
#include "fabric/discover.h"
#include "group/device/device.h"
#include "harness.h"

#include <dlfcn.h>
#include <pthread.h>

#define GUARD 256u
#define GUARD_BYTE 0xa5

/* What the library itself has no use for. */
static struct {
	int (*init)(unsigned flags);
	int (*current)(hk__cu_context context);
	int (*copy_in)(hk__cu_ptr to, const void *from, size_t bytes);
	int (*copy_out)(void *to, hk__cu_ptr from, size_t bytes);
	int (*begin)(hk__cu_stream stream, int mode);
	int (*end)(hk__cu_stream stream, void **graph);
	int (*instantiate)(void **exec, void *graph, unsigned long long flags);
	int (*launch)(void *exec, hk__cu_stream stream);
	int (*exec_free)(void *exec);
	int (*graph_free)(void *graph);
} more;

#define CU(call) \
	do { \
		int cu_result = (call); \
		if (cu_result != HK__CU_SUCCESS) \
			test_fail(__FILE__, __LINE__, "%s: error %d", #call, cu_result); \
	} while (0)

static const struct hk__cuda *cu;
static bool standin;

bool bed_is_standin(void)
{
	return standin;
}

/* NULL: not there, or without a GPU. */
static void *driver_load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!library)
		return NULL;
	CHECK(hk__library_find(library, "cuInit", &more.init));
	if (more.init(0) == HK__CU_SUCCESS)
		return library;
	dlclose(library);
	return NULL;
}

void *bed_driver(void)
{
	const char *which = getenv("HK_TEST_CUDA");
	void *library = NULL;

	if (!which || strcmp(which, "stand-in") != 0)
		library = driver_load("libcuda.so.1");
	if (!library && (!which || strcmp(which, "real") != 0)) {
		/* The library finds it by its name: it must be the only one. */
		if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD))
			SKIP("a CUDA driver without a GPU");
		library = driver_load(STANDIN);
		CHECK(library);
	}
	if (!library)
		SKIP("no CUDA driver, or no GPU");
	standin = dlsym(library, "hocket_image");
	return library;
}

static void driver_open(void)
{
	void *library = bed_driver();
	hk__cu_context context;
	int device;

	CHECK(hk__library_find(library, "cuCtxSetCurrent", &more.current));
	CHECK(hk__library_find(library, "cuMemcpyHtoD_v2", &more.copy_in));
	CHECK(hk__library_find(library, "cuMemcpyDtoH_v2", &more.copy_out));
	CHECK(hk__library_find(library, "cuStreamBeginCapture_v2", &more.begin));
	CHECK(hk__library_find(library, "cuStreamEndCapture", &more.end));
	CHECK(hk__library_find(library, "cuGraphInstantiateWithFlags", &more.instantiate));
	CHECK(hk__library_find(library, "cuGraphLaunch", &more.launch));
	CHECK(hk__library_find(library, "cuGraphExecDestroy", &more.exec_free));
	CHECK(hk__library_find(library, "cuGraphDestroy", &more.graph_free));
	hk__cuda_look();
	cu = hk__cuda_get();
	CHECK(cu);
	if (!hk__cuda_image())
		SKIP("built without GPU code");
	CU(cu->device(&device, 0));
	CU(cu->context(&context, device));
	CU(more.current(context));
}

const struct hk__cuda *bed_cuda(void)
{
	if (!cu)
		driver_open();
	return cu;
}

int bed_devices(void)
{
	int count = 0;

	CU(cu->count(&count));
	return count;
}

/* The calling thread's context, from now on. */
static void device_use(int ordinal)
{
	hk__cu_context context;
	int device;

	CU(cu->device(&device, ordinal));
	CU(cu->context(&context, device));
	CU(more.current(context));
}

hk__cu_stream bed_stream(struct bed *bed, uint32_t rank, int device)
{
	device_use(device);
	CU(cu->stream(&bed->streams[rank], HK__CU_STREAM_NON_BLOCKING));
	CU(cu->alloc(&bed->memory[rank], bed->bytes));
	return bed->streams[rank];
}

void bed_open_empty(struct bed *bed, uint32_t n, size_t bytes)
{
	(void)bed_cuda();
	*bed = (struct bed){ .n = n, .bytes = bytes };
}

void bed_open_on(struct bed *bed, uint32_t n, size_t bytes, int devices)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_why why;

	bed_open_empty(bed, n, bytes);
	if (bed_devices() < devices)
		SKIP("not so many GPUs");
	opts.timeout_ns = UINT64_C(10000000000);
	CHECK_EQ(hk_group_threads(n, &opts, &why, bed->groups), HK_OK);
	for (uint32_t r = 0; r < n; r++)
		(void)bed_stream(bed, r, (int)r % devices);
	device_use(0);
}

void bed_open(struct bed *bed, uint32_t n, size_t bytes)
{
	bed_open_on(bed, n, bytes, 1);
}

void bed_join(struct bed *bed, uint32_t rank, const char *address, int device)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_opts call = HK_OPTS_INIT;
	struct hk_why why;

	opts.timeout_ns = UINT64_C(30000000000);
	if (address) {
		opts.address = address;
		opts.rank = rank;
		opts.nranks = bed->n;
	}
	enum hk_status status = hk_group_create(&opts, &why, &bed->groups[rank]);
	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "rank %u: %s", rank, why.text);
	/* Where ranks are apart, all have to come for the first call. */
	call.stream = bed_stream(bed, rank, device);
	status = hk_barrier(bed->groups[rank], &call);
	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "rank %u: %s", rank, hk_group_why(bed->groups[rank]));
}

static void *bed_free_group(void *group)
{
	hk_group_free(group);
	return NULL;
}

void bed_close(struct bed *bed)
{
	pthread_t threads[BED_RANKS_MAX];

	bed_wait(bed);
	for (uint32_t r = 0; r < bed->n; r++) {
		if (bed->groups[r])
			CHECK_EQ(pthread_create(&threads[r], NULL, bed_free_group, bed->groups[r]),
				 0);
	}
	for (uint32_t r = 0; r < bed->n; r++) {
		if (!bed->groups[r])
			continue;
		pthread_join(threads[r], NULL);
		CU(cu->stream_free(bed->streams[r]));
		CU(cu->free(bed->memory[r]));
	}
}

void bed_set_epoch(struct bed *bed, uint64_t epoch)
{
	struct hk_why why;

	bed_wait(bed);
	for (uint32_t r = 0; r < bed->n; r++) {
		if (bed->groups[r])
			CHECK_EQ(hk__gpu_set_epoch(hk__group_gpu(bed->groups[r]), r, epoch, &why),
				 HK_OK);
	}
}

void bed_set_messages(struct bed *bed, uint64_t messages)
{
	struct hk_why why;

	bed_wait(bed);
	for (uint32_t r = 0; r < bed->n; r++) {
		if (bed->groups[r])
			CHECK_EQ(hk__gpu_set_messages(hk__group_gpu(bed->groups[r]), r, messages,
						      &why),
				 HK_OK);
	}
}

void bed_wait(const struct bed *bed)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		if (bed->groups[r])
			CU(cu->stream_wait(bed->streams[r]));
	}
}

void bed_to_device(hk__cu_ptr to, const void *from, size_t bytes)
{
	CU(more.copy_in(to, from, bytes));
	/* From memory that can be paged it returns when all is on its way. */
	CU(cu->stream_wait(NULL));
}

void bed_to_host(void *to, hk__cu_ptr from, size_t bytes)
{
	CU(more.copy_out(to, from, bytes));
}

/* ---- one operation ---- */

void bed_lay_out(const struct bed_op *op, uint32_t rank, struct bed_place *place)
{
	const struct want *want = &op->want;
	size_t size = hk_type_size(want->type), offset = want_offset(want, rank) * size;
	size_t in = want_in_len(want, rank) * size, out = want_out_len(want, rank) * size;
	size_t first = GUARD + op->skew * size;
	bool shared = op->inplace && in && out;

	place->in = in ? first : 0;
	place->out = out ? first + (in + GUARD + 255) / 256 * 256 : 0;
	place->bytes = place->out ? place->out + out + GUARD : first + in + GUARD;
	if (shared && (want->coll == HK_COLL_REDUCESCATTER || want->coll == HK_COLL_SCATTER))
		place->out = place->in + offset;
	else if (shared)
		place->in = place->out + offset;
}

static char *bed_image(const struct bed *bed, const struct bed_op *op, uint32_t rank, bool done,
		       struct bed_place *place)
{
	bed_lay_out(op, rank, place);
	CHECK(place->bytes <= bed->bytes);
	char *image = malloc(place->bytes);
	CHECK(image);
	memset(image, GUARD_BYTE, place->bytes);
	if (place->in)
		want_input(&op->want, rank, image + place->in);
	if (place->out && done)
		want_output(&op->want, rank, image + place->out);
	return image;
}

void bed_fill(struct bed *bed, const struct bed_op *op)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		struct bed_place place;

		if (!bed->groups[r])
			continue;
		char *image = bed_image(bed, op, r, false, &place);

		bed_to_device(bed->memory[r], image, place.bytes);
		free(image);
	}
}

static enum hk_status call_v(struct hk_group *group, const struct want *want, const void *in,
			     void *out, const struct hk_opts *opts)
{
	uint64_t counts[BED_RANKS_MAX];

	for (uint32_t r = 0; r < want->n; r++)
		counts[r] = want_count(want, r);
	switch (want->coll) {
	case HK_COLL_ALLGATHER:
		return hk_allgatherv(group, in, out, counts, want->type, opts);
	case HK_COLL_GATHER:
		return hk_gatherv(group, in, out, counts, want->type, want->root, opts);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatterv(group, in, out, counts, want->type, want->op, opts);
	default:
		return hk_scatterv(group, in, out, counts, want->type, want->root, opts);
	}
}

static enum hk_status call(struct hk_group *group, const struct want *want, const void *in,
			   void *out, const struct hk_opts *opts)
{
	if (want->v)
		return call_v(group, want, in, out, opts);
	switch (want->coll) {
	case HK_COLL_ALLREDUCE:
		return hk_allreduce(group, in, out, want->count, want->type, want->op, opts);
	case HK_COLL_REDUCE:
		return hk_reduce(group, in, out, want->count, want->type, want->op, want->root,
				 opts);
	case HK_COLL_BROADCAST:
		return hk_broadcast(group, in, out, want->count, want->type, want->root, opts);
	case HK_COLL_ALLGATHER:
		return hk_allgather(group, in, out, want->count, want->type, opts);
	case HK_COLL_GATHER:
		return hk_gather(group, in, out, want->count, want->type, want->root, opts);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatter(group, in, out, want->count, want->type, want->op, opts);
	case HK_COLL_SCATTER:
		return hk_scatter(group, in, out, want->count, want->type, want->root, opts);
	default:
		return hk_alltoall(group, in, out, want->count, want->type, opts);
	}
}

enum hk_status bed_call_rank(struct bed *bed, const struct bed_op *op, uint32_t rank,
			     uint64_t timeout_ns)
{
	uint64_t factor = op->want.op == HK_REDOP_PREMULSUM ? want_factor(&op->want, rank) : 0;
	struct hk_opts opts = HK_OPTS_INIT;
	struct bed_place place;

	bed_lay_out(op, rank, &place);
	opts.algo = op->algo;
	opts.stream = bed->streams[rank];
	opts.factor = &factor;
	opts.timeout_ns = timeout_ns;
	char *base = (char *)(uintptr_t)bed->memory[rank];
	return call(bed->groups[rank], &op->want, place.in ? base + place.in : NULL,
		    place.out ? base + place.out : NULL, &opts);
}

void bed_call(struct bed *bed, const struct bed_op *op)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		char what[160];

		if (!bed->groups[r])
			continue;
		enum hk_status status = bed_call_rank(bed, op, r, 0);

		want_describe(&op->want, what, sizeof(what));
		if (status != HK_OK)
			test_fail(__FILE__, __LINE__, "%s: rank %u: %s: %s", what, r,
				  hk_status_name(status), hk_group_why(bed->groups[r]));
	}
}

void bed_check(struct bed *bed, const struct bed_op *op)
{
	bed_wait(bed);
	for (uint32_t r = 0; r < bed->n; r++) {
		struct bed_place place;

		if (!bed->groups[r])
			continue;
		char *image = bed_image(bed, op, r, true, &place), *seen = malloc(place.bytes);
		char what[160];
		size_t i = 0;

		CHECK(seen);
		bed_to_host(seen, bed->memory[r], place.bytes);
		while (i < place.bytes && seen[i] == image[i])
			i++;
		want_describe(&op->want, what, sizeof(what));
		if (i < place.bytes)
			test_fail(__FILE__, __LINE__,
				  "%s%s%s%s: rank %u: byte %zu of %zu is wrong (in %zu, out %zu)",
				  what, op->algo ? " by " : "", op->algo ? op->algo : "",
				  op->inplace ? " in place" : "", r, i, place.bytes, place.in,
				  place.out);
		free(seen);
		free(image);
	}
}

void bed_try(struct bed *bed, const struct bed_op *op)
{
	bed_fill(bed, op);
	bed_call(bed, op);
	bed_check(bed, op);
}

/* ---- graphs ---- */

static hk__cu_event fork_event(void)
{
	hk__cu_event event;

	CU(cu->event(&event, HK__CU_EVENT_NO_TIMING));
	return event;
}

/* The first rank that is here: its stream is the graph's. */
static uint32_t bed_first(const struct bed *bed)
{
	uint32_t first = 0;

	while (!bed->groups[first])
		first++;
	return first;
}

void bed_capture_begin(struct bed *bed)
{
	hk__cu_event event = fork_event();
	uint32_t first = bed_first(bed);

	CU(more.begin(bed->streams[first], 0));
	CU(cu->event_record(event, bed->streams[first]));
	for (uint32_t r = first + 1; r < bed->n; r++) {
		if (bed->groups[r])
			CU(cu->event_follow(bed->streams[r], event, 0));
	}
	CU(cu->event_free(event));
}

void *bed_capture_end(struct bed *bed)
{
	uint32_t first = bed_first(bed);
	void *graph, *exec;

	for (uint32_t r = first + 1; r < bed->n; r++) {
		if (!bed->groups[r])
			continue;
		hk__cu_event event = fork_event();

		CU(cu->event_record(event, bed->streams[r]));
		CU(cu->event_follow(bed->streams[first], event, 0));
		CU(cu->event_free(event));
	}
	CU(more.end(bed->streams[first], &graph));
	CU(more.instantiate(&exec, graph, 0));
	CU(more.graph_free(graph));
	return exec;
}

void bed_replay(struct bed *bed, void *graph)
{
	CU(more.launch(graph, bed->streams[bed_first(bed)]));
}

void bed_graph_free(void *graph)
{
	CU(more.exec_free(graph));
}
