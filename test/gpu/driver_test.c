/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_test.c - what the library and its tests rely on a CUDA driver for: of the
 * stand-in (gpu/driver), and by `make test-gpu` of a GPU's, so that the one is as the
 * other.
 */
#include "fabric/discover.h"
#include "gpu/bed.h"
#include "gpu/driver/driver.h"
#include "harness.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)4096)

/*	member          symbol                           arguments */
#define DRIVER_MAP(X) \
	X(init, "cuInit", (unsigned flags)) \
	X(count, "cuDeviceGetCount", (int *count)) \
	X(uuid, "cuDeviceGetUuid_v2", (unsigned char *uuid, int device)) \
	X(retain, "cuDevicePrimaryCtxRetain", (void **context, int device)) \
	X(current, "cuCtxSetCurrent", (void *context)) \
	X(which, "cuCtxGetCurrent", (void **context)) \
	X(can_peer, "cuDeviceCanAccessPeer", (int *can, int device, int peer)) \
	X(peer, "cuCtxEnablePeerAccess", (void *context, unsigned flags)) \
	X(alloc, "cuMemAlloc_v2", (cu_ptr * at, size_t bytes)) \
	X(free, "cuMemFree_v2", (cu_ptr at)) \
	X(alloc_host, "cuMemHostAlloc", (void **at, size_t bytes, unsigned flags)) \
	X(free_host, "cuMemFreeHost", (void *at)) \
	X(enlist, "cuMemHostRegister_v2", (void *at, size_t bytes, unsigned flags)) \
	X(delist, "cuMemHostUnregister", (void *at)) \
	X(on_device, "cuMemHostGetDevicePointer_v2", (cu_ptr * at, void *host, unsigned flags)) \
	X(range, "cuMemGetAddressRange_v2", (cu_ptr * base, size_t * size, cu_ptr at)) \
	X(pointer, "cuPointerGetAttribute", (void *value, int attribute, cu_ptr at)) \
	X(set, "cuMemsetD8Async", (cu_ptr at, unsigned char byte, size_t bytes, void *stream)) \
	X(in_async, "cuMemcpyHtoDAsync_v2", \
	  (cu_ptr to, const void *from, size_t bytes, void *stream)) \
	X(within, "cuMemcpyDtoDAsync_v2", (cu_ptr to, cu_ptr from, size_t bytes, void *stream)) \
	X(in, "cuMemcpyHtoD_v2", (cu_ptr to, const void *from, size_t bytes)) \
	X(out, "cuMemcpyDtoH_v2", (void *to, cu_ptr from, size_t bytes)) \
	X(stream, "cuStreamCreate", (void **stream, unsigned flags)) \
	X(stream_free, "cuStreamDestroy_v2", (void *stream)) \
	X(wait, "cuStreamSynchronize", (void *stream)) \
	X(query, "cuStreamQuery", (void *stream)) \
	X(event, "cuEventCreate", (void **event, unsigned flags)) \
	X(event_free, "cuEventDestroy_v2", (void *event)) \
	X(record, "cuEventRecord", (void *event, void *stream)) \
	X(follow, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags)) \
	X(event_query, "cuEventQuery", (void *event)) \
	X(elapsed, "cuEventElapsedTime", (float *ms, void *from, void *to)) \
	X(host_func, "cuLaunchHostFunc", (void *stream, void (*run)(void *arg), void *arg)) \
	X(wait_word, "cuStreamWaitValue32_v2", \
	  (void *stream, cu_ptr at, uint32_t value, unsigned flags)) \
	X(write_word, "cuStreamWriteValue32_v2", \
	  (void *stream, cu_ptr at, uint32_t value, unsigned flags)) \
	X(begin, "cuStreamBeginCapture_v2", (void *stream, int mode)) \
	X(end, "cuStreamEndCapture", (void *stream, void **graph)) \
	X(capturing, "cuStreamIsCapturing", (void *stream, int *status)) \
	X(mode, "cuThreadExchangeStreamCaptureMode", (int *mode)) \
	X(instantiate, "cuGraphInstantiateWithFlags", \
	  (void **exec, void *graph, unsigned long long flags)) \
	X(replay, "cuGraphLaunch", (void *exec, void *stream)) \
	X(exec_free, "cuGraphExecDestroy", (void *exec)) \
	X(graph_free, "cuGraphDestroy", (void *graph)) \
	X(module, "cuModuleLoadData", (void **module, const void *image)) \
	X(module_free, "cuModuleUnload", (void *module)) \
	X(function, "cuModuleGetFunction", (void **function, void *module, const char *name)) \
	X(launch, "cuLaunchKernel", \
	  (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
	   unsigned bz, unsigned shared, void *stream, void **params, void **extra)) \
	X(ipc_get, "cuIpcGetMemHandle", (struct handle * handle, cu_ptr at)) \
	X(ipc_open, "cuIpcOpenMemHandle_v2", (cu_ptr * at, struct handle handle, unsigned flags)) \
	X(ipc_close, "cuIpcCloseMemHandle", (cu_ptr at))

struct handle {
	char bytes[64];
};

static struct {
#define DRIVER_MEMBER(member, symbol, arguments) int(*member) arguments;
	DRIVER_MAP(DRIVER_MEMBER)
#undef DRIVER_MEMBER
} cu;

#define GIVES(call, error) \
	do { \
		int gives_result = (call); \
		if (gives_result != (error)) \
			test_fail(__FILE__, __LINE__, "%s: error %d, not %d", #call, gives_result, \
				  error); \
	} while (0)
#define WORKS(call) GIVES(call, CUDA_SUCCESS)

static void driver_open(void)
{
	void *library = bed_driver(), *context;

#define DRIVER_FIND(member, symbol, arguments) CHECK(hk__library_find(library, symbol, &cu.member));
	DRIVER_MAP(DRIVER_FIND)
#undef DRIVER_FIND
	WORKS(cu.retain(&context, 0));
	WORKS(cu.current(context));
}

/* A stream that does nothing until it is let go. */
struct held {
	void *stream;
	uint32_t *word; /* pinned */
	cu_ptr at;
};

static void held_open(struct held *held, unsigned flags)
{
	void *word;

	WORKS(cu.alloc_host(&word, BYTES, 0));
	held->word = word;
	*held->word = 0;
	WORKS(cu.on_device(&held->at, word, 0));
	WORKS(cu.stream(&held->stream, flags));
	WORKS(cu.wait_word(held->stream, held->at, 1, 1));
}

static void held_go(struct held *held)
{
	__atomic_store_n(held->word, 1, __ATOMIC_RELEASE);
}

static void held_close(struct held *held)
{
	WORKS(cu.wait(held->stream));
	WORKS(cu.stream_free(held->stream));
	WORKS(cu.free_host(held->word));
}

static void bytes_check(cu_ptr at, unsigned char byte)
{
	unsigned char bytes[BYTES];

	WORKS(cu.out(bytes, at, BYTES));
	for (size_t i = 0; i < BYTES; i++)
		CHECK_EQ(bytes[i], byte);
}

/* ---- streams ---- */

TEST(streams_do_not_wait_for_each_other)
{
	struct held held;
	void *other;
	cu_ptr at;

	driver_open();
	WORKS(cu.alloc(&at, BYTES));
	held_open(&held, 1);
	WORKS(cu.stream(&other, 1));
	WORKS(cu.set(at, 7, BYTES, held.stream));
	WORKS(cu.set(at, 5, BYTES, other));
	WORKS(cu.wait(other));
	GIVES(cu.query(held.stream), CUDA_ERROR_NOT_READY);
	WORKS(cu.query(other));
	held_go(&held);
	WORKS(cu.wait(held.stream));
	WORKS(cu.query(held.stream));
	bytes_check(at, 7);
	held_close(&held);
	WORKS(cu.stream_free(other));
	WORKS(cu.free(at));
}

TEST(the_default_stream_follows_those_that_block)
{
	struct held held;
	void *apart;
	cu_ptr at;

	driver_open();
	WORKS(cu.alloc(&at, BYTES));
	held_open(&held, 0);
	WORKS(cu.stream(&apart, 1));
	WORKS(cu.set(at, 1, BYTES, NULL));
	GIVES(cu.query(NULL), CUDA_ERROR_NOT_READY);
	WORKS(cu.set(at, 2, BYTES, apart)); /* which does not */
	WORKS(cu.wait(apart));
	held_go(&held);
	WORKS(cu.wait(NULL));
	bytes_check(at, 1);
	held_close(&held);
	WORKS(cu.stream_free(apart));
	WORKS(cu.free(at));
}

TEST(events_order_streams)
{
	void *event, *late, *other;
	struct held held;
	cu_ptr at;
	float ms;

	driver_open();
	WORKS(cu.alloc(&at, BYTES));
	WORKS(cu.event(&event, 0));
	WORKS(cu.event(&late, 0));
	WORKS(cu.event_query(event)); /* never recorded: nothing to wait for */
	held_open(&held, 1);
	WORKS(cu.stream(&other, 1));
	WORKS(cu.set(at, 1, BYTES, held.stream));
	WORKS(cu.record(event, held.stream));
	WORKS(cu.follow(other, event, 0));
	WORKS(cu.set(at, 2, BYTES, other));
	WORKS(cu.record(late, other));
	GIVES(cu.event_query(late), CUDA_ERROR_NOT_READY);
	GIVES(cu.elapsed(&ms, event, late), CUDA_ERROR_NOT_READY);
	held_go(&held);
	WORKS(cu.wait(other));
	WORKS(cu.elapsed(&ms, event, late));
	CHECK(ms >= 0);
	bytes_check(at, 2);
	WORKS(cu.event_free(event));
	WORKS(cu.event_free(late));
	WORKS(cu.stream_free(other));
	held_close(&held);
	WORKS(cu.free(at));
}

/* What a stream was given is done, whatever becomes of its handle. */
TEST(a_destroyed_stream_ends_its_work)
{
	struct held held;
	cu_ptr at;

	driver_open();
	WORKS(cu.alloc(&at, BYTES));
	held_open(&held, 1);
	WORKS(cu.set(at, 9, BYTES, held.stream));
	WORKS(cu.stream_free(held.stream));
	held_go(&held);
	WORKS(cu.free_host(held.word)); /* waits for it */
	bytes_check(at, 9);
	WORKS(cu.free(at));
}

static void call_back(void *arg)
{
	cu_ptr at;

	*(int *)arg = cu.alloc(&at, BYTES);
}

TEST(host_functions_may_not_call_the_driver)
{
	int result = 0;
	void *stream;

	driver_open();
	WORKS(cu.stream(&stream, 1));
	WORKS(cu.host_func(stream, call_back, &result));
	WORKS(cu.wait(stream));
	CHECK_EQ(result, CUDA_ERROR_NOT_PERMITTED);
	WORKS(cu.stream_free(stream));
}

TEST(words_wrap_around)
{
	struct held held;
	void *stream;

	driver_open();
	held_open(&held, 1);
	WORKS(cu.stream(&stream, 1));
	/* Behind it by less than half of all values: not there yet, then there. */
	WORKS(cu.write_word(stream, held.at + 64, UINT32_MAX, 0));
	WORKS(cu.wait(stream));
	WORKS(cu.wait_word(stream, held.at + 64, 1, 0));
	GIVES(cu.query(stream), CUDA_ERROR_NOT_READY);
	WORKS(cu.write_word(held.stream, held.at + 64, 2, 0));
	held_go(&held);
	WORKS(cu.wait(stream));
	WORKS(cu.stream_free(stream));
	held_close(&held);
}

/* ---- memory ---- */

TEST(copies_take_what_is_there)
{
	unsigned char *pageable = malloc(BYTES);
	struct held held;
	void *pinned;
	cu_ptr at;

	driver_open();
	CHECK(pageable);
	WORKS(cu.alloc(&at, 2 * BYTES));
	WORKS(cu.alloc_host(&pinned, BYTES, 0));
	held_open(&held, 1);
	memset(pageable, 1, BYTES);
	memset(pinned, 1, BYTES);
	WORKS(cu.in_async(at, pageable, BYTES, held.stream));
	WORKS(cu.in_async(at + BYTES, pinned, BYTES, held.stream));
	memset(pageable, 2, BYTES);
	memset(pinned, 2, BYTES);
	held_go(&held);
	WORKS(cu.wait(held.stream));
	bytes_check(at, 1);	    /* as it was */
	bytes_check(at + BYTES, 2); /* as it is when it is copied */
	held_close(&held);
	WORKS(cu.free_host(pinned));
	WORKS(cu.free(at));
	free(pageable);
}

TEST(pointers_are_known)
{
	void *pinned, *plain = malloc(BYTES);
	unsigned type = 0;
	size_t size = 0;
	cu_ptr at, base = 0;
	int device = -1;

	driver_open();
	WORKS(cu.alloc(&at, 3 * BYTES));
	WORKS(cu.pointer(&type, 2, at + BYTES));
	CHECK_EQ(type, 2);
	WORKS(cu.pointer(&device, 9, at + BYTES));
	CHECK_EQ(device, 0);
	WORKS(cu.range(&base, &size, at + BYTES));
	CHECK_EQ(base, at);
	CHECK_EQ(size, 3 * BYTES);
	WORKS(cu.alloc_host(&pinned, BYTES, 0));
	WORKS(cu.pointer(&type, 2, (cu_ptr)(uintptr_t)pinned));
	CHECK_EQ(type, 1);
	GIVES(cu.pointer(&type, 2, (cu_ptr)(uintptr_t)plain), CUDA_ERROR_INVALID_VALUE);
	WORKS(cu.free_host(pinned));
	WORKS(cu.free(at));
	GIVES(cu.pointer(&type, 2, at), CUDA_ERROR_INVALID_VALUE);
	GIVES(cu.free(at), CUDA_ERROR_INVALID_VALUE);
	free(plain);
}

TEST(memory_is_pinned_once)
{
	unsigned type = 0;
	void *plain;
	cu_ptr at;

	driver_open();
	CHECK_EQ(posix_memalign(&plain, 4096, 2 * BYTES), 0);
	GIVES(cu.delist(plain), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	WORKS(cu.enlist(plain, BYTES, 0));
	GIVES(cu.enlist(plain, BYTES, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	WORKS(cu.pointer(&type, 2, (cu_ptr)(uintptr_t)plain));
	CHECK_EQ(type, 1);
	WORKS(cu.on_device(&at, plain, 0));
	WORKS(cu.delist(plain));
	GIVES(cu.pointer(&type, 2, (cu_ptr)(uintptr_t)plain), CUDA_ERROR_INVALID_VALUE);
	free(plain);
}

TEST(memory_runs_out)
{
	cu_ptr at;

	driver_open();
	GIVES(cu.alloc(&at, (size_t)1 << 46), CUDA_ERROR_OUT_OF_MEMORY);
	GIVES(cu.alloc(&at, 0), CUDA_ERROR_INVALID_VALUE);
}

/* ---- graphs ---- */

TEST(graphs_fork_and_join)
{
	void *pair[2], *event, *graph, *exec;
	int status = 0;
	cu_ptr at;

	driver_open();
	WORKS(cu.alloc(&at, 2 * BYTES));
	WORKS(cu.event(&event, 2));
	for (int i = 0; i < 2; i++)
		WORKS(cu.stream(&pair[i], 1));
	WORKS(cu.begin(pair[0], 0));
	WORKS(cu.set(at, 1, BYTES, pair[0]));
	WORKS(cu.record(event, pair[0]));
	WORKS(cu.follow(pair[1], event, 0));
	WORKS(cu.capturing(pair[1], &status));
	CHECK_EQ(status, 1);
	WORKS(cu.within(at + BYTES, at, BYTES, pair[1]));
	WORKS(cu.record(event, pair[1]));
	WORKS(cu.follow(pair[0], event, 0));
	WORKS(cu.set(at, 2, BYTES, pair[0]));
	WORKS(cu.end(pair[0], &graph));
	WORKS(cu.capturing(pair[1], &status));
	CHECK_EQ(status, 0);
	WORKS(cu.instantiate(&exec, graph, 0));
	WORKS(cu.graph_free(graph));
	for (int turn = 0; turn < 3; turn++) {
		WORKS(cu.set(at, 0, 2 * BYTES, pair[1]));
		WORKS(cu.wait(pair[1])); /* nothing of it was done when it was captured */
		WORKS(cu.replay(exec, pair[1]));
		WORKS(cu.wait(pair[1]));
		bytes_check(at, 2);
		bytes_check(at + BYTES, 1);
	}
	WORKS(cu.exec_free(exec));
	WORKS(cu.event_free(event));
	for (int i = 0; i < 2; i++)
		WORKS(cu.stream_free(pair[i]));
	WORKS(cu.free(at));
}

TEST(captures_refuse_what_is_no_part_of_them)
{
	void *stream, *other, *event, *graph;
	int mode = 2;
	cu_ptr at;

	driver_open();
	WORKS(cu.stream(&stream, 1));
	WORKS(cu.stream(&other, 1));
	WORKS(cu.event(&event, 2));
	WORKS(cu.begin(stream, 0));
	GIVES(cu.alloc(&at, BYTES), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	GIVES(cu.end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	WORKS(cu.begin(stream, 0));
	GIVES(cu.wait(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	GIVES(cu.end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	/* A thread that says so may do what it likes. */
	WORKS(cu.mode(&mode));
	WORKS(cu.begin(stream, 0));
	WORKS(cu.alloc(&at, BYTES));
	WORKS(cu.set(at, 1, BYTES, stream));
	WORKS(cu.end(stream, &graph));
	WORKS(cu.graph_free(graph));
	WORKS(cu.mode(&mode));
	/* Who was forked comes back. */
	WORKS(cu.begin(stream, 0));
	WORKS(cu.record(event, stream));
	WORKS(cu.follow(other, event, 0));
	WORKS(cu.set(at, 1, BYTES, other));
	GIVES(cu.end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	WORKS(cu.free(at));
	WORKS(cu.event_free(event));
	WORKS(cu.stream_free(other));
	WORKS(cu.stream_free(stream));
}

TEST(captures_do_not_wait_for_what_is_outside)
{
	void *stream, *other, *event, *graph;

	driver_open();
	WORKS(cu.stream(&stream, 1));
	WORKS(cu.stream(&other, 1));
	WORKS(cu.event(&event, 2));
	WORKS(cu.record(event, other));
	WORKS(cu.begin(stream, 0));
	GIVES(cu.follow(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	GIVES(cu.end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	WORKS(cu.begin(stream, 0));
	WORKS(cu.record(event, stream));
	GIVES(cu.event_query(event), CUDA_ERROR_CAPTURED_EVENT);
	if (cu.end(stream, &graph) == CUDA_SUCCESS) /* or that has broken it */
		WORKS(cu.graph_free(graph));
	WORKS(cu.event_free(event));
	WORKS(cu.stream_free(other));
	WORKS(cu.stream_free(stream));
}

/* ---- kernels ---- */

TEST(launches_are_looked_at)
{
	void *module, *function, *stream;

	driver_open();
	hk__cuda_look();
	if (!hk__cuda_image())
		SKIP("built without GPU code");
	WORKS(cu.stream(&stream, 1));
	WORKS(cu.module(&module, hk__cuda_image()));
	GIVES(cu.function(&function, module, "hk_nothing"), CUDA_ERROR_NOT_FOUND);
	WORKS(cu.function(&function, module, "hk_flat_fp32"));
	GIVES(cu.launch(function, 0, 1, 1, 32, 1, 1, 0, stream, NULL, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	GIVES(cu.launch(function, 1, 1, 1, 2048, 1, 1, 0, stream, NULL, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	WORKS(cu.module_free(module));
	WORKS(cu.stream_free(stream));
}

/* ---- processes and devices ---- */

/* Offers memory, waits for the other to have written, and looks at it. */
static void ipc_offer(int to, int from)
{
	struct handle handle;
	char went;
	cu_ptr at;

	driver_open();
	WORKS(cu.alloc(&at, 2 * BYTES));
	WORKS(cu.set(at, 3, 2 * BYTES, NULL));
	WORKS(cu.wait(NULL));
	WORKS(cu.ipc_get(&handle, at));
	CHECK(cu.ipc_open(&at, handle, 1) != CUDA_SUCCESS); /* not in the same process */
	CHECK_EQ(write(to, &handle, sizeof(handle)), sizeof(handle));
	CHECK_EQ(read(from, &went, 1), 1);
	bytes_check(at, 4);
	bytes_check(at + BYTES, 3);
	WORKS(cu.free(at));
}

TEST(memory_of_another_process)
{
	struct handle handle, wrong;
	int there[2], back[2], status;
	unsigned type = 0;
	cu_ptr at, again;

	CHECK_EQ(pipe(there), 0);
	CHECK_EQ(pipe(back), 0);
	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		ipc_offer(there[1], back[0]);
		exit(0);
	}
	close(there[1]); /* if the other ends early, nobody waits for it */
	driver_open();
	if (read(there[0], &handle, sizeof(handle)) != sizeof(handle))
		test_fail(__FILE__, __LINE__, "the other process offered nothing");
	memset(&wrong, 0, sizeof(wrong));
	CHECK(cu.ipc_open(&at, wrong, 1) != CUDA_SUCCESS);
	WORKS(cu.ipc_open(&at, handle, 1));
	WORKS(cu.ipc_open(&again, handle, 1));
	CHECK_EQ(at, again);
	WORKS(cu.pointer(&type, 2, at));
	CHECK_EQ(type, 2);
	bytes_check(at, 3);
	WORKS(cu.set(at, 4, BYTES, NULL));
	WORKS(cu.wait(NULL));
	WORKS(cu.ipc_close(at));
	bytes_check(at, 4); /* still open once */
	WORKS(cu.ipc_close(at));
	CHECK(cu.ipc_close(at) != CUDA_SUCCESS);
	CHECK_EQ(write(back[1], "", 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

TEST(a_child_has_no_driver)
{
	int status, count;

	driver_open();
	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(cu.count(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

TEST(several_devices)
{
	unsigned char uuids[2][16];
	void *contexts[2];
	int count = 0, can = 0, device = 0;
	cu_ptr at;

	setenv("HK_STANDIN_DEVICES", "3", 1);
	setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
	setenv("HK_TEST_CUDA", "stand-in", 1);
	driver_open();
	WORKS(cu.count(&count));
	CHECK_EQ(count, 2);
	for (int i = 0; i < 2; i++) {
		WORKS(cu.uuid(uuids[i], i));
		WORKS(cu.retain(&contexts[i], i));
	}
	CHECK_EQ(uuids[0][15], '2');
	CHECK_EQ(uuids[1][15], '0');
	WORKS(cu.can_peer(&can, 0, 1));
	CHECK_EQ(can, 1);
	WORKS(cu.current(contexts[1]));
	WORKS(cu.peer(contexts[0], 0));
	GIVES(cu.peer(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	WORKS(cu.alloc(&at, BYTES));
	WORKS(cu.pointer(&device, 9, at));
	CHECK_EQ(device, 1);
	WORKS(cu.free(at));
	GIVES(cu.retain(&contexts[0], 2), CUDA_ERROR_INVALID_DEVICE);
}

static void *thread_current(void *arg)
{
	cu_ptr at;

	(void)arg;
	GIVES(cu.alloc(&at, BYTES), CUDA_ERROR_INVALID_CONTEXT);
	return NULL;
}

TEST(threads_have_a_context_each)
{
	pthread_t thread;
	void *context = NULL;

	driver_open();
	WORKS(cu.which(&context));
	CHECK(context);
	CHECK_EQ(pthread_create(&thread, NULL, thread_current, NULL), 0);
	pthread_join(thread, NULL);
}
