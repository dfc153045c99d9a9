/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - the CUDA driver, found at run time.
 *
 * It is never linked: the same build runs where there is none. Device memory can
 * only have come from a driver that the process has loaded already, so the library
 * is looked for, and not loaded. The declarations below are of its stable binary
 * interface; nothing of CUDA is needed to compile this.
 */
#ifndef HK_GPU_CUDA_H
#define HK_GPU_CUDA_H

#include "base/base.h"

#include <stdatomic.h>

typedef void *hk__cu_context;
typedef void *hk__cu_module;
typedef void *hk__cu_function;
typedef void *hk__cu_stream;
typedef void *hk__cu_event;
typedef unsigned long long hk__cu_ptr;

/* A piece of device memory, for another process. */
struct hk__cu_ipc {
	unsigned char bytes[64];
};

/* Memory that is made, and mapped to addresses, in steps of their own. */
typedef unsigned long long hk__cu_memory;
struct hk__cu_location {
	int type;			/* HK__CU_LOCATION_DEVICE */
	int id;
};
struct hk__cu_memory_spec {
	int type;			/* HK__CU_MEMORY_PINNED */
	int handles;			/* HK__CU_HANDLE_FD, or 0 */
	struct hk__cu_location where;
	void *unused;
	unsigned char flags[8];
};
struct hk__cu_access {
	struct hk__cu_location who;
	int may;			/* HK__CU_ACCESS_READ_WRITE */
};

enum {
	HK__CU_SUCCESS = 0,
	HK__CU_ERROR_OUT_OF_MEMORY = 2,
	HK__CU_ERROR_NOT_INITIALIZED = 3,
	HK__CU_ERROR_NO_BINARY = 209,
	HK__CU_ERROR_PEER_ALREADY = 704,
	HK__CU_POINTER_MEMORY_TYPE = 2,
	HK__CU_POINTER_DEVICE = 9,
	HK__CU_MEMORY_DEVICE = 2,
	HK__CU_DEVICE_SMS = 16,
	HK__CU_DEVICE_MAPS = 102,	/* whether it has memory that is mapped */
	HK__CU_DEVICE_FDS = 103,	/* and handles of it that are descriptors */
	HK__CU_LOCATION_DEVICE = 1,
	HK__CU_MEMORY_PINNED = 1,
	HK__CU_HANDLE_FD = 1,
	HK__CU_ACCESS_READ_WRITE = 3,
	HK__CU_GRAIN_BEST = 1,
	HK__CU_HOST_PORTABLE = 1,
	HK__CU_HOST_DEVICEMAP = 2,
	HK__CU_STREAM_NON_BLOCKING = 1,
	HK__CU_WORD_GEQ = 0,
	HK__CU_EVENT_NO_TIMING = 2,
	HK__CU_CAPTURE_RELAXED = 2,
	HK__CU_FUNC_DYNAMIC_SHARED = 8,
	HK__CU_IPC_PEER = 1
};

/*	member            symbol                            arguments */
#define HK__CUDA_MAP(X) \
	X(error_name,     "cuGetErrorName",                 (int error, const char **name)) \
	X(pointer,        "cuPointerGetAttribute",          (void *value, int attribute, hk__cu_ptr at)) \
	X(count,          "cuDeviceGetCount",               (int *count)) \
	X(device,         "cuDeviceGet",                    (int *device, int ordinal)) \
	X(uuid,           "cuDeviceGetUuid_v2",             (unsigned char *uuid, int device)) \
	X(attribute,      "cuDeviceGetAttribute",           (int *value, int attribute, int device)) \
	X(context,        "cuDevicePrimaryCtxRetain",       (hk__cu_context *context, int device)) \
	X(context_free,   "cuDevicePrimaryCtxRelease_v2",   (int device)) \
	X(push,           "cuCtxPushCurrent_v2",            (hk__cu_context context)) \
	X(pop,            "cuCtxPopCurrent_v2",             (hk__cu_context *context)) \
	X(current,        "cuCtxGetDevice",                 (int *device)) \
	X(finish,         "cuCtxSynchronize",               (void)) \
	X(can_peer,       "cuDeviceCanAccessPeer",          (int *can, int device, int peer)) \
	X(peer,           "cuCtxEnablePeerAccess",          (hk__cu_context peer, unsigned flags)) \
	X(module,         "cuModuleLoadData",               (hk__cu_module *module, const void *image)) \
	X(module_free,    "cuModuleUnload",                 (hk__cu_module module)) \
	X(function,       "cuModuleGetFunction",            (hk__cu_function *function, \
							     hk__cu_module module, const char *name)) \
	X(function_set,   "cuFuncSetAttribute",             (hk__cu_function function, int attribute, \
							     int value)) \
	X(occupancy,      "cuOccupancyMaxActiveBlocksPerMultiprocessor", \
							    (int *blocks, hk__cu_function function, \
							     int threads, size_t shared)) \
	X(alloc,          "cuMemAlloc_v2",                  (hk__cu_ptr *at, size_t bytes)) \
	X(free,           "cuMemFree_v2",                   (hk__cu_ptr at)) \
	X(ipc,            "cuIpcGetMemHandle",              (struct hk__cu_ipc *handle, hk__cu_ptr at)) \
	X(ipc_open,       "cuIpcOpenMemHandle_v2",          (hk__cu_ptr *at, struct hk__cu_ipc handle, \
							     unsigned flags)) \
	X(ipc_close,      "cuIpcCloseMemHandle",            (hk__cu_ptr at)) \
	X(grain,          "cuMemGetAllocationGranularity",  (size_t *bytes, \
							     const struct hk__cu_memory_spec *spec, \
							     int which)) \
	X(memory,         "cuMemCreate",                    (hk__cu_memory *memory, size_t bytes, \
							     const struct hk__cu_memory_spec *spec, \
							     unsigned long long flags)) \
	X(memory_free,    "cuMemRelease",                   (hk__cu_memory memory)) \
	X(memory_share,   "cuMemExportToShareableHandle",   (void *handle, hk__cu_memory memory, \
							     int type, unsigned long long flags)) \
	X(memory_open,    "cuMemImportFromShareableHandle", (hk__cu_memory *memory, void *handle, \
							     int type)) \
	X(range,          "cuMemAddressReserve",            (hk__cu_ptr *at, size_t bytes, \
							     size_t align, hk__cu_ptr wish, \
							     unsigned long long flags)) \
	X(range_free,     "cuMemAddressFree",               (hk__cu_ptr at, size_t bytes)) \
	X(map,            "cuMemMap",                       (hk__cu_ptr at, size_t bytes, \
							     size_t offset, hk__cu_memory memory, \
							     unsigned long long flags)) \
	X(unmap,          "cuMemUnmap",                     (hk__cu_ptr at, size_t bytes)) \
	X(access,         "cuMemSetAccess",                 (hk__cu_ptr at, size_t bytes, \
							     const struct hk__cu_access *accesses, \
							     size_t count)) \
	X(alloc_host,     "cuMemHostAlloc",                 (void **at, size_t bytes, unsigned flags)) \
	X(free_host,      "cuMemFreeHost",                  (void *at)) \
	X(host_register,  "cuMemHostRegister_v2",           (void *at, size_t bytes, unsigned flags)) \
	X(host_forget,    "cuMemHostUnregister",            (void *at)) \
	X(host_pointer,   "cuMemHostGetDevicePointer_v2",   (hk__cu_ptr *at, void *host, \
							     unsigned flags)) \
	X(set,            "cuMemsetD8Async",                (hk__cu_ptr at, unsigned char byte, \
							     size_t bytes, hk__cu_stream stream)) \
	X(to_device,      "cuMemcpyHtoDAsync_v2",           (hk__cu_ptr to, const void *from, \
							     size_t bytes, hk__cu_stream stream)) \
	X(to_host,        "cuMemcpyDtoHAsync_v2",           (void *to, hk__cu_ptr from, \
							     size_t bytes, hk__cu_stream stream)) \
	X(copy,           "cuMemcpyAsync",                  (hk__cu_ptr to, hk__cu_ptr from, \
							     size_t bytes, hk__cu_stream stream)) \
	X(stream,         "cuStreamCreate",                 (hk__cu_stream *stream, unsigned flags)) \
	X(stream_ranked,  "cuStreamCreateWithPriority",     (hk__cu_stream *stream, unsigned flags, \
							     int priority)) \
	X(priorities,     "cuCtxGetStreamPriorityRange",    (int *least, int *greatest)) \
	X(stream_free,    "cuStreamDestroy_v2",             (hk__cu_stream stream)) \
	X(stream_wait,    "cuStreamSynchronize",            (hk__cu_stream stream)) \
	X(stream_context, "cuStreamGetCtx",                 (hk__cu_stream stream, \
							     hk__cu_context *context)) \
	X(word_write,     "cuStreamWriteValue32_v2",        (hk__cu_stream stream, hk__cu_ptr at, \
							     uint32_t value, unsigned flags)) \
	X(word_await,     "cuStreamWaitValue32_v2",         (hk__cu_stream stream, hk__cu_ptr at, \
							     uint32_t value, unsigned flags)) \
	X(long_write,     "cuStreamWriteValue64_v2",        (hk__cu_stream stream, hk__cu_ptr at, \
							     uint64_t value, unsigned flags)) \
	X(long_await,     "cuStreamWaitValue64_v2",         (hk__cu_stream stream, hk__cu_ptr at, \
							     uint64_t value, unsigned flags)) \
	X(host_call,      "cuLaunchHostFunc",               (hk__cu_stream stream, \
							     void (*run)(void *ctx), void *ctx)) \
	X(capturing,      "cuStreamIsCapturing",            (hk__cu_stream stream, int *status)) \
	X(capture_mode,   "cuThreadExchangeStreamCaptureMode", (int *mode)) \
	X(event,          "cuEventCreate",                  (hk__cu_event *event, unsigned flags)) \
	X(event_free,     "cuEventDestroy_v2",              (hk__cu_event event)) \
	X(event_record,   "cuEventRecord",                  (hk__cu_event event, hk__cu_stream stream)) \
	X(event_wait,     "cuEventSynchronize",             (hk__cu_event event)) \
	X(event_follow,   "cuStreamWaitEvent",              (hk__cu_stream stream, hk__cu_event event, \
							     unsigned flags)) \
	X(launch,         "cuLaunchKernel",                 (hk__cu_function function, \
							     unsigned gx, unsigned gy, unsigned gz, \
							     unsigned bx, unsigned by, unsigned bz, \
							     unsigned shared, hk__cu_stream stream, \
							     void **params, void **extra))

struct hk__cuda {
#define HK__CUDA_MEMBER(member, symbol, arguments) int (*member) arguments;
	HK__CUDA_MAP(HK__CUDA_MEMBER)
#undef HK__CUDA_MEMBER
};

/* Whether the process has loaded a driver; one load, for hot paths. */
extern _Atomic bool hk__cuda_seen;
/* Looks whether it has, if that is not known yet. Thread-safe, as all of this. */
void hk__cuda_look(void);
/* The driver's functions; NULL where none was seen. */
const struct hk__cuda *hk__cuda_get(void);

/* Whether it is device memory, and of which device; false for NULL. */
bool hk__cuda_memory(const void *at, int *device_out);

/* HK_OK, HK_ENOMEM or HK_EIO; why: "WHAT: CUDA_ERROR_...". */
enum hk_status hk__cuda_check(int result, const char *what, struct hk_why *why);

/* The kernels, for every architecture there are some for; NULL: built without. */
const void *hk__cuda_image(void);
/* A driver that performs our kernels by itself (that of tests) brings them; else NULL. */
const void *hk__cuda_driver_image(void);

#endif
