/* SPDX-License-Identifier: Apache-2.0 */
/* ferry.c - see ferry.h. */
#include "gpu/ferry.h"

#include <pthread.h>

/* ---- the context ---- */

enum hk_status hk__ferry_enter(const struct hk__ferry *ferry, struct hk__ferry_visit *visit,
			       struct hk_why *why)
{
	hk__cu_context context;
	enum hk_status status =
		hk__cuda_check(ferry->cu->push(ferry->context), "cuCtxPushCurrent", why);

	if (status != HK_OK)
		return status;
	visit->mode = HK__CU_CAPTURE_RELAXED;
	status = hk__cuda_check(ferry->cu->capture_mode(&visit->mode),
				"cuThreadExchangeStreamCaptureMode", why);
	if (status != HK_OK)
		(void)ferry->cu->pop(&context);
	return status;
}

void hk__ferry_leave(const struct hk__ferry *ferry, struct hk__ferry_visit *visit)
{
	hk__cu_context context;

	(void)ferry->cu->capture_mode(&visit->mode);
	(void)ferry->cu->pop(&context);
}

static enum hk_status ferry_streams(struct hk__ferry *ferry, struct hk_why *why)
{
	const struct hk__cuda *cu = ferry->cu;
	int least, greatest;
	enum hk_status status = hk__cuda_check(cu->priorities(&least, &greatest),
					       "cuCtxGetStreamPriorityRange", why);

	if (status == HK_OK)
		status = hk__cuda_check(cu->stream(&ferry->own, 0), "cuStreamCreate", why);
	for (uint32_t i = 0; i < 2 * HK__FERRY_LANES && status == HK_OK; i++) {
		hk__cu_stream *stream = i % 2 ? &ferry->down[i / 2] : &ferry->up[i / 2];

		status = hk__cuda_check(cu->stream_ranked(stream, HK__CU_STREAM_NON_BLOCKING,
							  greatest),
					"cuStreamCreateWithPriority", why);
	}
	if (status == HK_OK)
		status = hk__cuda_check(cu->event(&ferry->event, HK__CU_EVENT_NO_TIMING),
					"cuEventCreate", why);
	return status;
}

enum hk_status hk__ferry_create(int ordinal, const struct hk_alloc *alloc, struct hk_why *why,
				struct hk__ferry **stage_out)
{
	const struct hk__cuda *cu = hk__cuda_get();
	struct hk__ferry *ferry = hk__mem_zalloc(alloc, 1, sizeof(*ferry));
	struct hk__ferry_visit visit;

	if (!ferry)
		return hk__why(why, HK_ENOMEM, "no memory for a device");
	hk_assert(cu); /* there is device memory */
	ferry->cu = cu;
	ferry->alloc = alloc;
	enum hk_status status =
		hk__cuda_check(cu->device(&ferry->device, ordinal), "cuDeviceGet", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->context(&ferry->context, ferry->device),
					"cuDevicePrimaryCtxRetain", why);
	if (status == HK_OK)
		status = hk__ferry_enter(ferry, &visit, why);
	if (status == HK_OK) {
		status = ferry_streams(ferry, why);
		hk__ferry_leave(ferry, &visit);
	}
	if (status != HK_OK) {
		hk__ferry_destroy(ferry);
		return status;
	}
	*stage_out = ferry;
	return HK_OK;
}

/* What the driver says here changes nothing: all of it is being left. */
void hk__ferry_destroy(struct hk__ferry *ferry)
{
	struct hk__ferry_visit visit;
	struct hk_why why;

	if (!ferry)
		return;
	if (ferry->context && hk__ferry_enter(ferry, &visit, &why) == HK_OK) {
		for (uint32_t i = 0; i < HK__FERRY_LANES; i++) {
			if (ferry->down[i])
				(void)ferry->cu->stream_free(ferry->down[i]);
			if (ferry->up[i])
				(void)ferry->cu->stream_free(ferry->up[i]);
		}
		if (ferry->own)
			(void)ferry->cu->stream_free(ferry->own);
		if (ferry->event)
			(void)ferry->cu->event_free(ferry->event);
		hk__ferry_leave(ferry, &visit);
	}
	if (ferry->context)
		(void)ferry->cu->context_free(ferry->device);
	hk__mem_free(ferry->alloc, ferry, 1, sizeof(*ferry));
}

/* ---- memory ---- */

/* The driver takes memory once; ranks of one process see the same. */
struct registered {
	struct registered *next;
	void *at;
	size_t bytes;
	uint32_t refs;
};
static struct registered *registered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct registered **registered_find(const void *at)
{
	struct registered **link = &registered;

	while (*link && (*link)->at != at)
		link = &(*link)->next;
	return link;
}

static enum hk_status registered_add(const struct hk__ferry *ferry, void *at, size_t bytes,
				     struct hk_why *why)
{
	unsigned flags = HK__CU_HOST_PORTABLE | HK__CU_HOST_DEVICEMAP;
	struct registered *entry = hk__mem_zalloc(&hk__alloc_default, 1, sizeof(*entry));

	if (!entry)
		return hk__why(why, HK_ENOMEM, "no memory to register memory");
	enum hk_status status = hk__cuda_check(ferry->cu->host_register(at, bytes, flags),
					       "cuMemHostRegister", why);
	if (status != HK_OK) {
		hk__mem_free(&hk__alloc_default, entry, 1, sizeof(*entry));
		return status;
	}
	*entry = (struct registered){ registered, at, bytes, 1 };
	registered = entry;
	return HK_OK;
}

static enum hk_status memory_register(const struct hk__ferry *ferry, void *at, size_t bytes,
				      struct hk_why *why)
{
	enum hk_status status = HK_OK;

	pthread_mutex_lock(&lock);
	struct registered *entry = *registered_find(at);
	if (entry) {
		hk_assert(entry->bytes == bytes);
		entry->refs++;
	} else {
		status = registered_add(ferry, at, bytes, why);
	}
	pthread_mutex_unlock(&lock);
	return status;
}

static void memory_forget(const struct hk__ferry *ferry, void *at)
{
	pthread_mutex_lock(&lock);
	struct registered **link = registered_find(at), *entry = *link;
	hk_assert(entry);
	if (--entry->refs == 0) {
		*link = entry->next;
		(void)ferry->cu->host_forget(at);
		hk__mem_free(&hk__alloc_default, entry, 1, sizeof(*entry));
	}
	pthread_mutex_unlock(&lock);
}

enum hk_status hk__pinned_get(const struct hk__ferry *ferry, void *at, size_t bytes,
			      struct hk_why *why, struct hk__pinned *pinned_out)
{
	struct hk__pinned pinned = { .bytes = bytes, .borrowed = at != NULL };
	void *memory = at;
	enum hk_status status =
		at ? memory_register(ferry, at, bytes, why)
		   : hk__cuda_check(ferry->cu->alloc_host(&memory, bytes,
							  HK__CU_HOST_PORTABLE |
								  HK__CU_HOST_DEVICEMAP),
				    "cuMemHostAlloc", why);

	if (status != HK_OK)
		return status;
	pinned.at = memory;
	status = hk__cuda_check(ferry->cu->host_pointer(&pinned.device_at, memory, 0),
				"cuMemHostGetDevicePointer", why);
	if (status != HK_OK) {
		hk__pinned_put(ferry, &pinned);
		return status;
	}
	*pinned_out = pinned;
	return HK_OK;
}

void hk__pinned_put(const struct hk__ferry *ferry, struct hk__pinned *pinned)
{
	if (!pinned->at)
		return;
	if (pinned->borrowed)
		memory_forget(ferry, pinned->at);
	else
		(void)ferry->cu->free_host(pinned->at);
	*pinned = (struct hk__pinned){ 0 };
}

/* ---- streams ---- */

void hk__ferry_rest(const struct hk__ferry *ferry)
{
	for (uint32_t i = 0; i < HK__FERRY_LANES; i++) {
		(void)ferry->cu->stream_wait(ferry->down[i]);
		(void)ferry->cu->stream_wait(ferry->up[i]);
	}
	if (ferry->last)
		(void)ferry->cu->event_wait(ferry->event);
}

bool hk__ferry_captured(const struct hk__ferry *ferry, hk__cu_stream stream)
{
	int captures = 0;

	return ferry->cu->capturing(stream, &captures) == HK__CU_SUCCESS && captures;
}

enum hk_status hk__ferry_follow(const struct hk__ferry *ferry, hk__cu_stream stream,
				struct hk_why *why)
{
	if (!ferry->last || ferry->last == stream)
		return HK_OK;
	return hk__cuda_check(ferry->cu->event_follow(stream, ferry->event, 0), "cuStreamWaitEvent",
			      why);
}

enum hk_status hk__ferry_lead(struct hk__ferry *ferry, hk__cu_stream stream, struct hk_why *why)
{
	ferry->last = stream;
	return hk__cuda_check(ferry->cu->event_record(ferry->event, stream), "cuEventRecord", why);
}

enum hk_status hk__ferry_down(const struct hk__ferry *ferry, hk__cu_stream stream, void *to,
			      const void *from, size_t bytes, struct hk_why *why)
{
	if (!bytes)
		return HK_OK;
	return hk__cuda_check(ferry->cu->to_host(to, (hk__cu_ptr)(uintptr_t)from, bytes, stream),
			      "cuMemcpyDtoHAsync", why);
}

enum hk_status hk__ferry_up(const struct hk__ferry *ferry, hk__cu_stream stream, void *to,
			    const void *from, size_t bytes, struct hk_why *why)
{
	if (!bytes)
		return HK_OK;
	return hk__cuda_check(ferry->cu->to_device((hk__cu_ptr)(uintptr_t)to, from, bytes, stream),
			      "cuMemcpyHtoDAsync", why);
}

enum hk_status hk__ferry_tell(const struct hk__ferry *ferry, hk__cu_stream stream,
			      void (*run)(void *ctx), void *ctx, struct hk_why *why)
{
	return hk__cuda_check(ferry->cu->host_call(stream, run, ctx), "cuLaunchHostFunc", why);
}

enum hk_status hk__ferry_await(const struct hk__ferry *ferry, hk__cu_stream stream, hk__cu_ptr at,
			       uint32_t value, struct hk_why *why)
{
	return hk__cuda_check(ferry->cu->word_await(stream, at, value, HK__CU_WORD_GEQ),
			      "cuStreamWaitValue32", why);
}

enum hk_status hk__ferry_mark(const struct hk__ferry *ferry, hk__cu_stream stream, hk__cu_ptr at,
			      uint32_t value, struct hk_why *why)
{
	return hk__cuda_check(ferry->cu->word_write(stream, at, value, 0), "cuStreamWriteValue32",
			      why);
}
