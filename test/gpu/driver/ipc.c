/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc.c - device memory of other processes: a handle says whose it is and where in
 * its file, which is found by way of /proc for as long as that process lives.
 */
#include "gpu/driver/driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x48434b4950434d45)

/* The driver's handle: 64 bytes that programs only pass on. */
struct handle {
	uint64_t magic;
	int32_t pid, file, number; /* number: of the machine's device */
	int32_t pad;
	uint64_t inode, offset, size, id;
	char rest[8];
};
_Static_assert(sizeof(struct handle) == 64, "as large as the driver's");

static bool ipc_works(void)
{
	return driver_option("HK_STANDIN_IPC", 1, 1);
}

CU(cuIpcGetMemHandle, (struct handle * handle, cu_ptr at))
{
	struct context *context;
	struct stat stat;
	int error = context_current(&context);

	if (error)
		return error;
	if (!ipc_works())
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&driver_lock);
	const struct range *range = range_find((void *)(uintptr_t)at, 1);
	if (!range || range->kind != RANGE_DEVICE || fstat(memory_file(), &stat) != 0) {
		error = CUDA_ERROR_INVALID_VALUE;
	} else {
		*handle = (struct handle){ .magic = MAGIC,
					   .pid = getpid(),
					   .file = memory_file(),
					   .number = device_number(range->device),
					   .inode = stat.st_ino,
					   .offset = range->offset,
					   .size = range->size,
					   .id = range->id };
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* The other process's file; -1: it is gone, or that is another one. */
static int handle_open(const struct handle *handle)
{
	struct stat stat;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->file);
	int file = open(path, O_RDWR | O_CLOEXEC);
	if (file >= 0 && (fstat(file, &stat) != 0 || stat.st_ino != handle->inode ||
			  (uint64_t)stat.st_size < handle->offset + handle->size)) {
		close(file);
		return -1;
	}
	return file;
}

static bool range_is(const struct range *range, const void *ctx)
{
	const struct handle *handle = ctx;

	return range->kind == RANGE_IMPORTED && range->owner == handle->inode &&
	       range->offset == handle->offset;
}

/* By the device that it lies on, if this process sees that, or the current one. */
static int handle_device(const struct handle *handle, const struct context *context)
{
	for (int i = 0; context_of(i); i++) {
		if (device_number(i) == handle->number)
			return i;
	}
	return context->device;
}

static int handle_import(const struct handle *handle, const struct context *context, cu_ptr *at)
{
	struct range range = { .size = handle->size,
			       .kind = RANGE_IMPORTED,
			       .device = handle_device(handle, context),
			       .offset = handle->offset,
			       .owner = handle->inode,
			       .opened = 1 };
	struct range *known = range_each(range_is, handle);

	if (known) {
		known->opened++;
		*at = (cu_ptr)(uintptr_t)known->base;
		return CUDA_SUCCESS;
	}
	int file = handle_open(handle);
	if (file < 0)
		return CUDA_ERROR_INVALID_VALUE;
	range.base = range_map(file, handle->offset, handle->size);
	close(file);
	if (!range.base)
		return CUDA_ERROR_MAP_FAILED;
	range_add(&range);
	*at = (cu_ptr)(uintptr_t)range.base;
	return CUDA_SUCCESS;
}

/* The handle is passed by value, as 64 bytes. */
CU(cuIpcOpenMemHandle_v2, (cu_ptr * at, struct handle handle, unsigned flags))
{
	struct context *context;
	int error = context_current(&context);

	if (error)
		return error;
	/* 1: with access to peers, which there must be. */
	if (flags != 1 || handle.magic != MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (handle.number != device_number(context->device) &&
	    !driver_option("HK_STANDIN_PEER", 1, 1))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	pthread_mutex_lock(&driver_lock);
	error = capture_allows();
	if (!error)
		error = handle_import(&handle, context, at);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuIpcCloseMemHandle, (cu_ptr at))
{
	struct context *context;
	int error = context_current(&context);

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	struct range *range = range_find((void *)(uintptr_t)at, 1);
	if (!range || range->kind != RANGE_IMPORTED || (cu_ptr)(uintptr_t)range->base != at) {
		error = CUDA_ERROR_INVALID_VALUE;
	} else if (--range->opened == 0) {
		context_wait(context_of(range->device));
		range_unmap(range->base, range->size);
		range_remove(range);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}
