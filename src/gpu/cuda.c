/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - finds the CUDA driver, and says what it says. */
#include "gpu/cuda.h"

#include "base/fork.h"
#include "fabric/discover.h"

#include <dlfcn.h>

_Atomic bool hk__cuda_seen;
static struct hk__cuda cuda;
static const void *cuda_kernels;
static _Atomic bool cuda_refused;

static bool cuda_find(void *library, struct hk__cuda *found)
{
#define CUDA_FIND(member, symbol, arguments) \
	if (!hk__library_find(library, symbol, &found->member)) { \
		if (!atomic_exchange(&cuda_refused, true)) \
			hk__log(HK_LOG_WARN, \
				"the CUDA driver has no %s: device memory cannot be recognized", \
				symbol); \
		return false; \
	}
	HK__CUDA_MAP(CUDA_FIND)
#undef CUDA_FIND
	return true;
}

/* Whether the library is to stay: what was made with it may outlive every group. */
static bool cuda_take(const struct hk__cuda *found, const void *kernels)
{
	hk__fork_hold();
	bool first = !atomic_load_explicit(&hk__cuda_seen, memory_order_relaxed);
	if (first) {
		cuda = *found;
		cuda_kernels = kernels;
		atomic_store_explicit(&hk__cuda_seen, true, memory_order_release);
	}
	hk__fork_release();
	return first;
}

void hk__cuda_look(void)
{
	struct hk__cuda found;

	if (atomic_load_explicit(&hk__cuda_seen, memory_order_relaxed) ||
	    atomic_load_explicit(&cuda_refused, memory_order_relaxed))
		return;
	/* Nothing is held: the loader has a lock of its own, and libraries that fork under it. */
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (library &&
	    (!cuda_find(library, &found) || !cuda_take(&found, dlsym(library, "hocket_image"))))
		dlclose(library);
}

const struct hk__cuda *hk__cuda_get(void)
{
	return atomic_load_explicit(&hk__cuda_seen, memory_order_acquire) ? &cuda : NULL;
}

const void *hk__cuda_driver_image(void)
{
	return hk__cuda_get() ? cuda_kernels : NULL;
}

bool hk__cuda_memory(const void *at, int *device_out)
{
	const struct hk__cuda *cu = hk__cuda_get();
	unsigned type = 0;

	if (!cu || !at ||
	    cu->pointer(&type, HK__CU_POINTER_MEMORY_TYPE, (hk__cu_ptr)(uintptr_t)at) !=
		    HK__CU_SUCCESS ||
	    type != HK__CU_MEMORY_DEVICE)
		return false;
	return cu->pointer(device_out, HK__CU_POINTER_DEVICE, (hk__cu_ptr)(uintptr_t)at) ==
	       HK__CU_SUCCESS;
}

enum hk_status hk__cuda_check(int result, const char *what, struct hk_why *why)
{
	const char *name = NULL;

	if (result == HK__CU_SUCCESS)
		return HK_OK;
	if (cuda.error_name(result, &name) != HK__CU_SUCCESS || !name)
		name = "an error without a name";
	return hk__why(why, result == HK__CU_ERROR_OUT_OF_MEMORY ? HK_ENOMEM : HK_EIO, "%s: %s",
		       what, name);
}
