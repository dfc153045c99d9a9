/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - memory of ranks, on the host and on a device. */
#include "bed.h"

#include <dlfcn.h>
#include <pthread.h>

#define CAPTURE_RELAXED 2
#define STREAM_NON_BLOCKING 1

typedef unsigned long long cu_ptr;

static struct {
	int (*init)(unsigned flags);
	int (*count)(int *count);
	int (*device)(int *device, int ordinal);
	int (*primary)(void **context, int device);
	int (*current)(void *context);
	int (*stream)(cudaStream_t *stream, unsigned flags);
	int (*stream_free)(cudaStream_t stream);
	int (*stream_wait)(cudaStream_t stream);
	int (*alloc)(cu_ptr *at, size_t bytes);
	int (*free)(cu_ptr at);
	int (*in)(cu_ptr to, const void *from, size_t bytes);
	int (*out)(void *to, cu_ptr from, size_t bytes);
	int (*begin)(cudaStream_t stream, int mode);
	int (*end)(cudaStream_t stream, void **graph);
	int (*instantiate)(void **exec, void *graph, unsigned long long flags);
	int (*launch)(void *exec, cudaStream_t stream);
	int (*exec_free)(void *exec);
	int (*graph_free)(void *graph);
} cu;

#define CU(call) \
	do { \
		int cu_result = (call); \
		if (cu_result != 0) \
			test_fail(__FILE__, __LINE__, "%s: error %d", #call, cu_result); \
	} while (0)

static void find(void *library, const char *name, void *function_out)
{
	void *at = dlsym(library, name);

	if (!at)
		test_fail(__FILE__, __LINE__, "the driver has no %s", name);
	memcpy(function_out, &at, sizeof(at));
}

static void *driver_try(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!library)
		return NULL;
	find(library, "cuInit", &cu.init);
	if (cu.init(0) == 0)
		return library;
	dlclose(library);
	return NULL;
}

static void driver_load(void)
{
	const char *which = getenv("HK_TEST_CUDA");
	void *library = NULL;

	if (!which || strcmp(which, "stand-in") != 0)
		library = driver_try("libcuda.so.1");
	if (!library && (!which || strcmp(which, "real") != 0))
		library = driver_try(STANDIN);
	if (!library)
		SKIP("no CUDA driver, or no GPU");
	find(library, "cuDeviceGetCount", &cu.count);
	find(library, "cuDeviceGet", &cu.device);
	find(library, "cuDevicePrimaryCtxRetain", &cu.primary);
	find(library, "cuCtxSetCurrent", &cu.current);
	find(library, "cuStreamCreate", &cu.stream);
	find(library, "cuStreamDestroy_v2", &cu.stream_free);
	find(library, "cuStreamSynchronize", &cu.stream_wait);
	find(library, "cuMemAlloc_v2", &cu.alloc);
	find(library, "cuMemFree_v2", &cu.free);
	find(library, "cuMemcpyHtoD_v2", &cu.in);
	find(library, "cuMemcpyDtoH_v2", &cu.out);
	find(library, "cuStreamBeginCapture_v2", &cu.begin);
	find(library, "cuStreamEndCapture", &cu.end);
	find(library, "cuGraphInstantiateWithFlags", &cu.instantiate);
	find(library, "cuGraphLaunch", &cu.launch);
	find(library, "cuGraphExecDestroy", &cu.exec_free);
	find(library, "cuGraphDestroy", &cu.graph_free);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

int bed_devices(void)
{
	int count = 0;

	pthread_once(&once, driver_load);
	CU(cu.count(&count));
	return count;
}

void bed_memory_open_on(struct bed_memory *memory, int ordinal)
{
	void *context;
	int device;

	pthread_once(&once, driver_load);
	*memory = (struct bed_memory){ .device = true };
	CU(cu.device(&device, ordinal));
	CU(cu.primary(&context, device));
	CU(cu.current(context));
	CU(cu.stream(&memory->stream, STREAM_NON_BLOCKING));
}

void bed_memory_open(struct bed_memory *memory, bool device)
{
	*memory = (struct bed_memory){ .device = false };
	if (device)
		bed_memory_open_on(memory, 0);
}

void bed_memory_close(struct bed_memory *memory)
{
	if (memory->device)
		CU(cu.stream_free(memory->stream));
}

void *bed_alloc(const struct bed_memory *memory, size_t bytes)
{
	cu_ptr at = 0;

	if (memory->device)
		CU(cu.alloc(&at, bytes));
	void *host = memory->device ? NULL : calloc(1, bytes);
	CHECK(at || host);
	return memory->device ? (void *)(uintptr_t)at : host;
}

void bed_free(const struct bed_memory *memory, void *at)
{
	if (memory->device)
		CU(cu.free((cu_ptr)(uintptr_t)at));
	else
		free(at);
}

void bed_write(const struct bed_memory *memory, void *to, const void *from, size_t bytes)
{
	if (memory->device) {
		CU(cu.in((cu_ptr)(uintptr_t)to, from, bytes));
		/* From memory that is not pinned it may still be on its way. */
		CU(cu.stream_wait(NULL));
	} else {
		memcpy(to, from, bytes);
	}
}

void bed_read(const struct bed_memory *memory, void *to, const void *from, size_t bytes)
{
	if (memory->device) {
		CU(cu.stream_wait(memory->stream));
		CU(cu.out(to, (cu_ptr)(uintptr_t)from, bytes));
	} else {
		memcpy(to, from, bytes);
	}
}

void bed_capture_begin(const struct bed_memory *memory)
{
	CU(cu.begin(memory->stream, CAPTURE_RELAXED));
}

void bed_capture_end(const struct bed_memory *memory, int times)
{
	void *graph, *exec;

	CU(cu.end(memory->stream, &graph));
	CU(cu.instantiate(&exec, graph, 0));
	for (int i = 0; i < times; i++)
		CU(cu.launch(exec, memory->stream));
	CU(cu.stream_wait(memory->stream));
	CU(cu.exec_free(exec));
	CU(cu.graph_free(graph));
}
