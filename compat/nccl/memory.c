/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memory, and what registering it means here: nothing, as every buffer
 * is used where it is. So it always succeeds, and changes no result.
 */
#include "comm.h"

#include <stdlib.h>

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	unsigned long long at = 0;
	int device;

	if (!ptr)
		return hk__nccl_fail(ncclInvalidArgument, "ncclMemAlloc: `ptr` is NULL");
	*ptr = NULL;
	if (size == 0)
		return ncclSuccess;
	void *context = hk__nccl_context(&device);
	if (!context)
		return hk__nccl_fail(ncclUnhandledCudaError,
				     "ncclMemAlloc: no CUDA driver is in use by this process");
	hk__nccl_enter(context);
	ncclResult_t result = hk__nccl_cuda(driver->alloc(&at, size), "ncclMemAlloc");
	hk__nccl_leave(context);
	if (result == ncclSuccess)
		*ptr = (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
	return result;
}
HK__NCCL_TWIN(MemAlloc);

ncclResult_t ncclMemFree(void *ptr)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();

	if (!ptr)
		return ncclSuccess;
	if (!driver)
		return hk__nccl_fail(ncclInvalidArgument, "ncclMemFree: not from ncclMemAlloc");
	return hk__nccl_cuda(driver->free((unsigned long long)(uintptr_t)ptr), "ncclMemFree");
}
HK__NCCL_TWIN(MemFree);

/* ---- registering ---- */

static char registered; /* what handles point to */

/* Nothing of it is used: that it is one is enough. */
static bool is_comm(ncclComm_t comm)
{
	if (!hk__nccl_comm_try(comm))
		return false;
	hk__nccl_comm_drop(comm);
	return true;
}

static ncclResult_t check(ncclComm_t comm, const void *at, size_t size, const void *handle,
			  const char *what)
{
	bool is = is_comm(comm);

	if (!is || !at || size == 0 || !handle)
		return hk__nccl_fail(ncclInvalidArgument, "%s: %s", what,
				     is ? "no memory, or no handle" : "not a communicator");
	return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void *at, size_t size, void **handle)
{
	ncclResult_t result = check(comm, at, size, handle, "ncclCommRegister");

	if (result == ncclSuccess)
		*handle = &registered;
	return result;
}
HK__NCCL_TWIN(CommRegister);

ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle)
{
	if (!is_comm(comm) || (handle && handle != &registered))
		return hk__nccl_fail(ncclInvalidArgument,
				     "ncclCommDeregister: not from ncclCommRegister");
	return ncclSuccess;
}
HK__NCCL_TWIN(CommDeregister);

/*
 * Windows help the collectives of others. Without symmetric memory there is none:
 * a NULL window says so, as NCCL's does where it has no use for one.
 */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *at, size_t size, ncclWindow_t *window,
				    int flags)
{
	ncclResult_t result = check(comm, at, size, window, "ncclCommWindowRegister");

	if (result == ncclSuccess && (flags & ~NCCL_WIN_COLL_SYMMETRIC))
		result = hk__nccl_fail(ncclInvalidArgument, "ncclCommWindowRegister: flags %d",
				       flags);
	if (result == ncclSuccess)
		*window = NULL;
	return result;
}
HK__NCCL_TWIN(CommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
	if (!is_comm(comm) || window)
		return hk__nccl_fail(ncclInvalidArgument,
				     "ncclCommWindowDeregister: not from ncclCommWindowRegister");
	return ncclSuccess;
}
HK__NCCL_TWIN(CommWindowDeregister);
