/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - the few functions of the CUDA driver that this library calls itself.
 * Found where the process has loaded one; never loaded, never linked.
 */
#include "comm.h"

#include <dlfcn.h>
#include <string.h>

enum {
	ATTRIBUTE_MEMORY_TYPE = 2,
	MEMORY_DEVICE = 2,
	CAPTURE_NONE = 0
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hk__nccl_driver table;
static _Atomic bool found;

/*	member         symbol */
#define DRIVER_MAP(X) \
	X(error_name, "cuGetErrorName") \
	X(ctx_get, "cuCtxGetCurrent") \
	X(ctx_device, "cuCtxGetDevice") \
	X(ctx_push, "cuCtxPushCurrent_v2") \
	X(ctx_pop, "cuCtxPopCurrent_v2") \
	X(device, "cuDeviceGet") \
	X(primary, "cuDevicePrimaryCtxRetain") \
	X(pointer, "cuPointerGetAttribute") \
	X(alloc, "cuMemAlloc_v2") \
	X(free, "cuMemFree_v2") \
	X(to_host, "cuMemcpyDtoHAsync_v2") \
	X(copy, "cuMemcpyDtoDAsync_v2") \
	X(stream, "cuStreamCreate") \
	X(stream_free, "cuStreamDestroy_v2") \
	X(stream_wait, "cuStreamSynchronize") \
	X(stream_follow, "cuStreamWaitEvent") \
	X(capturing, "cuStreamIsCapturing") \
	X(event, "cuEventCreate") \
	X(event_free, "cuEventDestroy_v2") \
	X(event_record, "cuEventRecord") \
	X(event_wait, "cuEventSynchronize")

static bool table_fill(void *library)
{
#define DRIVER_FIND(member, symbol) \
	void *at_##member = dlsym(library, symbol); \
	if (!at_##member) \
		return false; \
	memcpy(&table.member, &at_##member, sizeof(at_##member));
	DRIVER_MAP(DRIVER_FIND)
#undef DRIVER_FIND
	return true;
}

const struct hk__nccl_driver *hk__nccl_driver(void)
{
	if (atomic_load(&found))
		return &table;
	pthread_mutex_lock(&lock);
	if (!atomic_load(&found)) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

		/* The handle is kept: what was found stays. */
		if (library && table_fill(library))
			atomic_store(&found, true);
	}
	pthread_mutex_unlock(&lock);
	return atomic_load(&found) ? &table : NULL;
}

ncclResult_t hk__nccl_cuda(int error, const char *what)
{
	const char *name = NULL;

	if (error == 0)
		return ncclSuccess;
	if (table.error_name(error, &name) != 0 || !name)
		name = "an unknown error";
	return hk__nccl_fail(ncclUnhandledCudaError, "%s: %s", what, name);
}

bool hk__nccl_on_device(const void *at)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	unsigned type = 0;

	return driver && at &&
	       driver->pointer(&type, ATTRIBUTE_MEMORY_TYPE, (unsigned long long)(uintptr_t)at) ==
		       0 &&
	       type == MEMORY_DEVICE;
}

bool hk__nccl_capturing(void *stream)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	int status = CAPTURE_NONE;

	return driver && driver->capturing(stream, &status) == 0 && status != CAPTURE_NONE;
}

ncclResult_t hk__nccl_context_of(int ordinal, void **context_out)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	int device = 0;

	*context_out = NULL;
	if (!driver)
		return ncclSuccess;
	int error = driver->device(&device, ordinal);
	if (error == 0)
		error = driver->primary(context_out, device);
	return hk__nccl_cuda(error, "the context of a device");
}

void *hk__nccl_context(int *device_out)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	void *context = NULL;

	*device_out = 0;
	if (!driver)
		return NULL;
	if (driver->ctx_get(&context) != 0)
		return NULL;
	if (context)
		return driver->ctx_device(device_out) == 0 ? context : NULL;
	/* As the CUDA runtime has it: a thread that chose no device is on the first. */
	int device = 0;
	if (driver->device(&device, 0) != 0 || driver->primary(&context, device) != 0)
		return NULL;
	return context;
}

void hk__nccl_enter(void *context)
{
	if (context)
		(void)table.ctx_push(context);
}

void hk__nccl_leave(void *context)
{
	void *was;

	if (context)
		(void)table.ctx_pop(&was);
}
