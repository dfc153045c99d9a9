/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - what is device memory, and what is pinned.
 *
 * All device memory of a process lies in one file that has no name: each piece at
 * a place of its own, which is never used again. Other processes map it from
 * there (ipc.c).
 */
#include "gpu/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define PAGE ((size_t)4096)
#define GUARD ((size_t)1 << 16)
#define FRESH 0xdb /* what new memory holds: nothing to rely on */
#define FRESH_MAX ((size_t)1 << 20)

/* ---- ranges, by address ---- */

static struct range **ranges;
static size_t nranges, room;
static uint64_t next_id, used[DEVICES_MAX];

/* How many begin at or below it. */
static size_t range_place(const void *at)
{
	size_t low = 0, high = nranges;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (ranges[middle]->base <= (const char *)at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct range *range_find(const void *at, size_t bytes)
{
	size_t i = range_place(at);
	struct range *range = i ? ranges[i - 1] : NULL;

	if (!range || (size_t)((const char *)at - range->base) >= range->size ||
	    bytes > range->size - (size_t)((const char *)at - range->base))
		return NULL;
	return range;
}

struct range *range_add(const struct range *range)
{
	size_t i = range_place(range->base);

	if (nranges == room) {
		size_t more = room ? 2 * room : 64;
		struct range **grown = driver_alloc(more * sizeof(*grown));

		if (nranges)
			memcpy(grown, ranges, nranges * sizeof(*grown));
		free(ranges);
		ranges = grown;
		room = more;
	}
	memmove(ranges + i + 1, ranges + i, (nranges - i) * sizeof(*ranges));
	ranges[i] = driver_alloc(sizeof(*range));
	*ranges[i] = *range;
	ranges[i]->id = ++next_id;
	nranges++;
	return ranges[i];
}

void range_remove(struct range *range)
{
	size_t i = range_place(range->base) - 1;

	memmove(ranges + i, ranges + i + 1, (nranges - i - 1) * sizeof(*ranges));
	nranges--;
	free(range);
}

struct range *range_each(bool (*visit)(const struct range *range, const void *ctx), const void *ctx)
{
	for (size_t i = 0; i < nranges; i++) {
		if (visit(ranges[i], ctx))
			return ranges[i];
	}
	return NULL;
}

/* ---- device memory ---- */

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

char *range_map(int file, uint64_t offset, size_t size)
{
	size_t pages = whole_pages(size);
	char *space = mmap(NULL, pages + 2 * GUARD, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (space == MAP_FAILED)
		return NULL;
	if (mmap(space + GUARD, pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
		 (off_t)offset) == MAP_FAILED) {
		munmap(space, pages + 2 * GUARD);
		return NULL;
	}
	ASAN_POISON_MEMORY_REGION(space + GUARD + size, pages - size);
	return space + GUARD;
}

void range_unmap(char *base, size_t size)
{
	size_t pages = whole_pages(size);

	ASAN_UNPOISON_MEMORY_REGION(base, pages);
	munmap(base - GUARD, pages + 2 * GUARD);
}

int memory_file(void)
{
	static int file = -1;

	if (file < 0)
		file = memfd_create("stand-in device memory", MFD_CLOEXEC);
	return file;
}

bool memory_take(int device, size_t bytes)
{
	uint64_t most = (uint64_t)driver_option("HK_STANDIN_MEMORY", 4096, 1 << 20) << 20;

	if (bytes > most || used[device] > most - bytes)
		return false;
	used[device] += bytes;
	return true;
}

void memory_give(int device, size_t bytes)
{
	used[device] -= bytes;
}

static int device_alloc(const struct context *context, size_t bytes, struct range **range_out)
{
	static uint64_t end; /* of the file */
	size_t pages = whole_pages(bytes);
	int file = memory_file();
	struct range range = {
		.size = bytes, .kind = RANGE_DEVICE, .device = context->device, .offset = end
	};

	if (file < 0 || !memory_take(context->device, pages))
		return CUDA_ERROR_OUT_OF_MEMORY;
	range.base =
		ftruncate(file, (off_t)(end + pages)) == 0 ? range_map(file, end, bytes) : NULL;
	if (!range.base) {
		memory_give(context->device, pages);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	end += pages;
	memset(range.base, FRESH, bytes < FRESH_MAX ? bytes : FRESH_MAX);
	*range_out = range_add(&range);
	return CUDA_SUCCESS;
}

CU(cuMemAlloc_v2, (cu_ptr * at, size_t bytes))
{
	struct context *context;
	struct range *range;
	int error = context_current(&context);

	if (error || !bytes)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	error = capture_allows();
	if (!error)
		error = device_alloc(context, bytes, &range);
	if (!error)
		*at = (cu_ptr)(uintptr_t)range->base;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* The range that begins there, of some kind. */
static struct range *range_begins(const void *at, enum range_kind kind)
{
	struct range *range = range_find(at, 1);

	return range && range->base == at && range->kind == kind ? range : NULL;
}

CU(cuMemFree_v2, (cu_ptr at))
{
	struct context *context;
	int error = context_current(&context);

	if (error || !at)
		return error;
	pthread_mutex_lock(&driver_lock);
	struct range *range = range_begins((void *)(uintptr_t)at, RANGE_DEVICE);
	error = range ? capture_allows() : CUDA_ERROR_INVALID_VALUE;
	if (!error) {
		context_wait(context_of(range->device));
		range_unmap(range->base, range->size);
		memory_give(range->device, whole_pages(range->size));
		/* What others have mapped of it is gone too; nothing to do where it cannot be. */
		(void)fallocate(memory_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)range->offset, (off_t)whole_pages(range->size));
		range_remove(range);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemGetInfo_v2, (size_t * left, size_t *total))
{
	struct context *context;
	int error = context_current(&context);

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	*total = (size_t)driver_option("HK_STANDIN_MEMORY", 4096, 1 << 20) << 20;
	*left = *total - used[context->device];
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

CU(cuMemGetAddressRange_v2, (cu_ptr * base, size_t *size, cu_ptr at))
{
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	const struct range *range = range_find((void *)(uintptr_t)at, 1);
	/* 500: not found, as for memory that no device knows. */
	error = range ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
	if (range && base)
		*base = (cu_ptr)(uintptr_t)range->base;
	if (range && size)
		*size = range->size;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* ---- pinned memory ---- */

CU(cuMemHostAlloc, (void **at, size_t bytes, unsigned flags))
{
	struct range range = { .size = bytes, .kind = RANGE_HOST, .flags = flags };
	struct context *context;
	int error = context_current(&context);

	if (error || !bytes || flags > 7)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	range.device = context->device;
	error = capture_allows();
	if (!error && posix_memalign((void **)&range.base, PAGE, bytes) != 0)
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (!error) {
		memset(range.base, FRESH, bytes < FRESH_MAX ? bytes : FRESH_MAX);
		range_add(&range);
		*at = range.base;
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemAllocHost_v2, (void **at, size_t bytes))
{
	return cuMemHostAlloc(at, bytes, 0);
}

/* Waits for all devices: any of them may use it. */
static void wait_all(void)
{
	for (int i = 0; context_of(i); i++)
		context_wait(context_of(i));
}

CU(cuMemFreeHost, (void *at))
{
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	struct range *range = range_begins(at, RANGE_HOST);
	error = range ? capture_allows() : CUDA_ERROR_INVALID_VALUE;
	if (!error) {
		wait_all();
		range_remove(range);
		free(at);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

struct bytes {
	const char *at;
	size_t count;
};

static bool range_overlaps(const struct range *range, const void *ctx)
{
	const struct bytes *bytes = ctx;

	return range->base < bytes->at + bytes->count && bytes->at < range->base + range->size;
}

CU(cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags))
{
	struct range range = {
		.base = at, .size = bytes, .kind = RANGE_REGISTERED, .flags = flags
	};
	struct bytes all = { at, bytes };
	struct context *context;
	int error = context_current(&context);

	if (error || !at || !bytes)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	range.device = context->device;
	error = capture_allows();
	if (!error && range_each(range_overlaps, &all))
		error = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!error)
		range_add(&range);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemHostUnregister, (void *at))
{
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	struct range *range = range_begins(at, RANGE_REGISTERED);
	error = range ? capture_allows() : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	if (!error) {
		wait_all();
		range_remove(range);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemHostGetDevicePointer_v2, (cu_ptr * at, void *host, unsigned flags))
{
	int error = driver_enter();

	if (error || flags)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	const struct range *range = range_find(host, 1);
	if (!range || range_on_device(range))
		error = CUDA_ERROR_INVALID_VALUE;
	else
		*at = (cu_ptr)(uintptr_t)host;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemHostGetFlags, (unsigned *flags, void *host))
{
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	const struct range *range = range_find(host, 1);
	if (!range || range_on_device(range))
		error = CUDA_ERROR_INVALID_VALUE;
	else
		*flags = range->flags;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* ---- what a pointer is ---- */

static int range_attribute(const struct range *range, int attribute, cu_ptr at, void *value)
{
	switch (attribute) {
	case 1:
		*(struct context **)value = context_of(range->device);
		break;
	case 2: /* the type: 1 of the host, 2 of a device */
		*(unsigned *)value = range_on_device(range) ? 2 : 1;
		break;
	case 3:
		*(cu_ptr *)value = at;
		break;
	case 4:
		if (range_on_device(range))
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)value = (void *)(uintptr_t)at;
		break;
	case 7:
		*(uint64_t *)value = range->id;
		break;
	case 8: /* managed */
		*(unsigned *)value = 0;
		break;
	case 9:
		*(int *)value = range->device;
		break;
	case 10: /* can be shared with other processes */
		*(unsigned *)value = range->kind == RANGE_DEVICE;
		break;
	case 11:
		*(cu_ptr *)value = (cu_ptr)(uintptr_t)range->base;
		break;
	case 12:
		*(size_t *)value = range->size;
		break;
	case 13: /* mapped */
		*(unsigned *)value = 1;
		break;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

CU(cuPointerGetAttribute, (void *value, int attribute, cu_ptr at))
{
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	const struct range *range = range_find((void *)(uintptr_t)at, 1);
	error = range ? range_attribute(range, attribute, at, value) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* Of memory that no device knows all answers are 0. */
CU(cuPointerGetAttributes, (unsigned count, const int *attributes, void **values, cu_ptr at))
{
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	const struct range *range = range_find((void *)(uintptr_t)at, 1);
	for (unsigned i = 0; i < count && !error; i++) {
		bool wide = attributes[i] == 1 || attributes[i] == 3 || attributes[i] == 4 ||
			    attributes[i] == 7 || attributes[i] == 11 || attributes[i] == 12;

		memset(values[i], 0, wide ? 8 : 4);
		if (attributes[i] == 9)
			*(int *)values[i] = -2; /* no device */
		if (range && range_attribute(range, attributes[i], at, values[i]) ==
				     CUDA_ERROR_NOT_SUPPORTED)
			error = CUDA_ERROR_NOT_SUPPORTED;
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuPointerSetAttribute, (const void *value, int attribute, cu_ptr at))
{
	int error = driver_enter();

	(void)value;
	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	/* 6: what is synchronous is so for other devices too; it is here. */
	error = attribute == 6 && range_on_device(range_find((void *)(uintptr_t)at, 1))
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&driver_lock);
	return error;
}
