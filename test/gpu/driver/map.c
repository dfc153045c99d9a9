/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - device memory in steps: made without an address, mapped into a range of addresses
 * that was reserved, and then made accessible.
 *
 * Each piece is a file without a name, whose descriptor is the handle for others; its
 * name has the number of the machine's device. What is mapped stays when its handle
 * is released.
 */
#include "gpu/driver/driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRAIN ((size_t)2 << 20)
#define NAME "stand-in memory of device "

struct memory {
	uint32_t handles, maps;
	int file;
	size_t size;
	int device;    /* -1: this process does not see it */
	bool shared;   /* may be a descriptor */
	bool imported; /* counted elsewhere */
	struct memory *next;
};

struct mapping {
	char *at;
	size_t size;
	struct memory *memory;
	struct mapping *next;
};

struct space {
	char *at;
	size_t size;
	struct space *next;
};

static struct memory *memories;
static struct mapping *mappings;
static struct space *spaces;

/* As the driver's headers have them. */
struct location {
	int type, id;
};
struct prop {
	int type, handles;
	struct location where;
	void *unused;
	unsigned char flags[8];
};
struct access {
	struct location who;
	int may;
};

static bool prop_fits(const struct prop *prop)
{
	return prop->type == 1 && (prop->handles & ~1) == 0 && prop->where.type == 1 &&
	       context_of(prop->where.id) && !prop->unused;
}

/* Calls on memory that is mapped need no context, and a device that can. */
static int map_enter(void)
{
	int error = driver_enter();

	if (!error && !driver_option("HK_STANDIN_MAP", 1, 1))
		return CUDA_ERROR_NOT_SUPPORTED;
	return error;
}

CU(cuMemGetAllocationGranularity, (size_t * bytes, const struct prop *prop, int which))
{
	int error = map_enter();

	if (error || !prop_fits(prop) || which < 0 || which > 1)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	*bytes = GRAIN;
	return CUDA_SUCCESS;
}

/* ---- memory ---- */

static struct memory *memory_add(int file, size_t size, int device)
{
	struct memory *memory = driver_alloc(sizeof(*memory));

	*memory = (struct memory){
		.handles = 1, .file = file, .size = size, .device = device, .next = memories
	};
	memories = memory;
	return memory;
}

static struct memory *memory_find(unsigned long long handle)
{
	struct memory *memory = memories;

	while (memory && (uintptr_t)memory != handle)
		memory = memory->next;
	return memory && memory->handles ? memory : NULL;
}

static void memory_unuse(struct memory *memory)
{
	struct memory **link = &memories;

	if (memory->handles || memory->maps)
		return;
	while (*link != memory)
		link = &(*link)->next;
	*link = memory->next;
	if (!memory->imported)
		memory_give(memory->device, memory->size);
	close(memory->file);
	free(memory);
}

CU(cuMemCreate,
   (unsigned long long *handle, size_t size, const struct prop *prop, unsigned long long flags))
{
	int error = map_enter();
	char name[64];

	if (error)
		return error;
	if (!prop_fits(prop) || flags || !size || size % GRAIN)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	snprintf(name, sizeof(name), NAME "%d", device_number(prop->where.id));
	int file = memfd_create(name, MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, (off_t)size) != 0 || !memory_take(prop->where.id, size)) {
		if (file >= 0)
			close(file);
		error = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		struct memory *memory = memory_add(file, size, prop->where.id);

		memory->shared = prop->handles & 1;
		*handle = (uintptr_t)memory;
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemRelease, (unsigned long long handle))
{
	int error = map_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	struct memory *memory = memory_find(handle);
	error = memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (memory) {
		memory->handles--;
		memory_unuse(memory);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemExportToShareableHandle,
   (int *fd, unsigned long long handle, int type, unsigned long long flags))
{
	int error = map_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	const struct memory *memory = memory_find(handle);
	if (!memory || type != 1 || flags || !memory->shared)
		error = CUDA_ERROR_INVALID_VALUE;
	else if ((*fd = fcntl(memory->file, F_DUPFD_CLOEXEC, 0)) < 0)
		error = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* Which of this process's devices it lies on; -1: it is no such descriptor; -2: none. */
static int file_device(int fd)
{
	char path[64], name[128];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(path, name, sizeof(name) - 1);
	name[len > 0 ? len : 0] = '\0';
	const char *at = strstr(name, NAME);
	if (!at)
		return -1;
	for (int i = 0; context_of(i); i++) {
		if (device_number(i) == (int)strtol(at + strlen(NAME), NULL, 10))
			return i;
	}
	return -2;
}

CU(cuMemImportFromShareableHandle, (unsigned long long *handle, void *os_handle, int type))
{
	int error = map_enter(), fd = (int)(intptr_t)os_handle;
	struct stat stat;

	if (error || type != 1)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	int device = file_device(fd), file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (device == -1 || file < 0 || fstat(file, &stat) != 0) {
		if (file >= 0)
			close(file);
		error = CUDA_ERROR_INVALID_VALUE;
	} else {
		struct memory *memory = memory_add(file, (size_t)stat.st_size, device);

		memory->imported = true;
		*handle = (uintptr_t)memory;
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* ---- addresses ---- */

static char *space_clear(char *at, size_t size, int more)
{
	return mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | more, -1, 0);
}

CU(cuMemAddressReserve,
   (cu_ptr * at, size_t size, size_t align, cu_ptr wish, unsigned long long flags))
{
	int error = map_enter();

	if (error)
		return error;
	if (!size || size % GRAIN || align & (align - 1) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	(void)wish;
	align = align > GRAIN ? align : GRAIN;
	char *base = space_clear(NULL, size + align, 0);
	if (base == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	char *begin = (char *)(((uintptr_t)base + align - 1) / align * align);
	if (begin > base)
		munmap(base, (size_t)(begin - base));
	if (begin + size < base + size + align)
		munmap(begin + size, (size_t)(base + align - begin));
	pthread_mutex_lock(&driver_lock);
	struct space *space = driver_alloc(sizeof(*space));
	*space = (struct space){ begin, size, spaces };
	spaces = space;
	pthread_mutex_unlock(&driver_lock);
	*at = (cu_ptr)(uintptr_t)begin;
	return CUDA_SUCCESS;
}

static bool space_has(const struct space *space, const char *at, size_t size)
{
	return at >= space->at && size <= space->size &&
	       (size_t)(at - space->at) <= space->size - size;
}

static bool is_mapped(const char *at, size_t size)
{
	for (const struct mapping *mapping = mappings; mapping; mapping = mapping->next) {
		if (at < mapping->at + mapping->size && mapping->at < at + size)
			return true;
	}
	return false;
}

CU(cuMemAddressFree, (cu_ptr at, size_t size))
{
	struct space **link = &spaces;
	int error = map_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	while (*link && ((uintptr_t)(*link)->at != at || (*link)->size != size))
		link = &(*link)->next;
	if (!*link || is_mapped((*link)->at, size)) {
		error = CUDA_ERROR_INVALID_VALUE;
	} else {
		struct space *space = *link;

		*link = space->next;
		munmap(space->at, size);
		free(space);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* Nobody may touch it yet. */
static int memory_map(char *at, size_t size, struct memory *memory)
{
	struct range range = { .base = at,
			       .size = size,
			       .kind = RANGE_MAPPED,
			       .device = memory->device < 0 ? 0 : memory->device };
	struct mapping *mapping;

	if (mmap(at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file, 0) == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	mapping = driver_alloc(sizeof(*mapping));
	*mapping = (struct mapping){ at, size, memory, mappings };
	mappings = mapping;
	memory->maps++;
	range_add(&range);
	return CUDA_SUCCESS;
}

CU(cuMemMap,
   (cu_ptr to, size_t size, size_t offset, unsigned long long handle, unsigned long long flags))
{
	char *at = (char *)(uintptr_t)to;
	const struct space *space;
	int error = map_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	for (space = spaces; space && !space_has(space, at, size);)
		space = space->next;
	struct memory *memory = memory_find(handle);
	if (!space || !memory || size != memory->size || offset || flags || to % GRAIN ||
	    is_mapped(at, size))
		error = CUDA_ERROR_INVALID_VALUE;
	else
		error = memory_map(at, size, memory);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

static bool location_reaches(int device, const struct access *access)
{
	return device == access->who.id || driver_option("HK_STANDIN_PEER", 1, 1);
}

CU(cuMemSetAccess, (cu_ptr to, size_t size, const struct access *accesses, size_t count))
{
	char *at = (char *)(uintptr_t)to;
	size_t covered = 0;
	int error = map_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	for (struct mapping *mapping = mappings; mapping && !error; mapping = mapping->next) {
		if (mapping->at < at || mapping->at >= at + size)
			continue;
		for (size_t i = 0; i < count && !error; i++) {
			if (accesses[i].who.type != 1 || !context_of(accesses[i].who.id) ||
			    accesses[i].may != 3)
				error = CUDA_ERROR_INVALID_VALUE;
			else if (!location_reaches(mapping->memory->device, &accesses[i]))
				error = CUDA_ERROR_INVALID_DEVICE;
		}
		covered += mapping->size;
		if (!error && mprotect(mapping->at, mapping->size, PROT_READ | PROT_WRITE) != 0)
			error = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!error && (covered != size || !count))
		error = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemUnmap, (cu_ptr at, size_t size))
{
	struct mapping **link = &mappings;
	int error = map_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	while (*link && ((uintptr_t)(*link)->at != at || (*link)->size != size))
		link = &(*link)->next;
	struct mapping *mapping = *link;
	if (!mapping || space_clear(mapping->at, size, MAP_FIXED) == MAP_FAILED) {
		error = CUDA_ERROR_INVALID_VALUE;
	} else {
		*link = mapping->next;
		range_remove(range_find(mapping->at, size));
		mapping->memory->maps--;
		memory_unuse(mapping->memory);
		free(mapping);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}
