/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c - see streams.h. */
#include "gpu/streams.h"

#include <pthread.h>

/* ---- the context ---- */

enum hk_status hk__streams_enter(const struct hk__streams *streams, struct hk__streams_visit *visit,
				 struct hk_why *why)
{
	hk__cu_context context;
	enum hk_status status =
		hk__cuda_check(streams->cu->push(streams->context), "cuCtxPushCurrent", why);

	if (status != HK_OK)
		return status;
	visit->mode = HK__CU_CAPTURE_RELAXED;
	status = hk__cuda_check(streams->cu->capture_mode(&visit->mode),
				"cuThreadExchangeStreamCaptureMode", why);
	if (status != HK_OK)
		(void)streams->cu->pop(&context);
	return status;
}

void hk__streams_leave(const struct hk__streams *streams, struct hk__streams_visit *visit)
{
	hk__cu_context context;

	(void)streams->cu->capture_mode(&visit->mode);
	(void)streams->cu->pop(&context);
}

static enum hk_status streams_create(struct hk__streams *streams, struct hk_why *why)
{
	const struct hk__cuda *cu = streams->cu;
	int least, greatest;
	enum hk_status status = hk__cuda_check(cu->priorities(&least, &greatest),
					       "cuCtxGetStreamPriorityRange", why);

	if (status == HK_OK)
		status = hk__cuda_check(cu->stream(&streams->own, 0), "cuStreamCreate", why);
	for (uint32_t i = 0; i < 2 * HK__STREAMS_LANES && status == HK_OK; i++) {
		hk__cu_stream *stream =
			i % 2 ? &streams->to_host[i / 2] : &streams->to_device[i / 2];

		status = hk__cuda_check(cu->stream_ranked(stream, HK__CU_STREAM_NON_BLOCKING,
							  greatest),
					"cuStreamCreateWithPriority", why);
	}
	if (status == HK_OK)
		status = hk__cuda_check(cu->event(&streams->event, HK__CU_EVENT_NO_TIMING),
					"cuEventCreate", why);
	return status;
}

enum hk_status hk__streams_create(int ordinal, const struct hk_alloc *alloc, struct hk_why *why,
				  struct hk__streams **streams_out)
{
	const struct hk__cuda *cu = hk__cuda_get();
	struct hk__streams *streams = hk__mem_zalloc(alloc, 1, sizeof(*streams));
	struct hk__streams_visit visit;

	if (!streams)
		return hk__why(why, HK_ENOMEM, "no memory for a device");
	hk_assert(cu); /* there is device memory */
	streams->cu = cu;
	streams->alloc = alloc;
	enum hk_status status =
		hk__cuda_check(cu->device(&streams->device, ordinal), "cuDeviceGet", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->context(&streams->context, streams->device),
					"cuDevicePrimaryCtxRetain", why);
	if (status == HK_OK)
		status = hk__streams_enter(streams, &visit, why);
	if (status == HK_OK) {
		status = streams_create(streams, why);
		hk__streams_leave(streams, &visit);
	}
	if (status != HK_OK) {
		hk__streams_destroy(streams);
		return status;
	}
	*streams_out = streams;
	return HK_OK;
}

/* What the driver says here changes nothing: all of it is being left. */
void hk__streams_destroy(struct hk__streams *streams)
{
	struct hk__streams_visit visit;
	struct hk_why why;

	if (!streams)
		return;
	if (streams->context && hk__streams_enter(streams, &visit, &why) == HK_OK) {
		for (uint32_t i = 0; i < HK__STREAMS_LANES; i++) {
			if (streams->to_host[i])
				(void)streams->cu->stream_free(streams->to_host[i]);
			if (streams->to_device[i])
				(void)streams->cu->stream_free(streams->to_device[i]);
		}
		if (streams->own)
			(void)streams->cu->stream_free(streams->own);
		if (streams->event)
			(void)streams->cu->event_free(streams->event);
		hk__streams_leave(streams, &visit);
	}
	if (streams->context)
		(void)streams->cu->context_free(streams->device);
	hk__mem_free(streams->alloc, streams, 1, sizeof(*streams));
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

static enum hk_status registered_add(const struct hk__streams *streams, void *at, size_t bytes,
				     struct hk_why *why)
{
	unsigned flags = HK__CU_HOST_PORTABLE | HK__CU_HOST_DEVICEMAP;
	struct registered *entry = hk__mem_zalloc(&hk__alloc_default, 1, sizeof(*entry));

	if (!entry)
		return hk__why(why, HK_ENOMEM, "no memory to register memory");
	enum hk_status status = hk__cuda_check(streams->cu->host_register(at, bytes, flags),
					       "cuMemHostRegister", why);
	if (status != HK_OK) {
		hk__mem_free(&hk__alloc_default, entry, 1, sizeof(*entry));
		return status;
	}
	*entry = (struct registered){ registered, at, bytes, 1 };
	registered = entry;
	return HK_OK;
}

static enum hk_status memory_register(const struct hk__streams *streams, void *at, size_t bytes,
				      struct hk_why *why)
{
	enum hk_status status = HK_OK;

	pthread_mutex_lock(&lock);
	struct registered *entry = *registered_find(at);
	if (entry) {
		hk_assert(entry->bytes == bytes);
		entry->refs++;
	} else {
		status = registered_add(streams, at, bytes, why);
	}
	pthread_mutex_unlock(&lock);
	return status;
}

static void memory_forget(const struct hk__streams *streams, void *at)
{
	pthread_mutex_lock(&lock);
	struct registered **link = registered_find(at), *entry = *link;
	hk_assert(entry);
	if (--entry->refs == 0) {
		*link = entry->next;
		(void)streams->cu->host_forget(at);
		hk__mem_free(&hk__alloc_default, entry, 1, sizeof(*entry));
	}
	pthread_mutex_unlock(&lock);
}

enum hk_status hk__pinned_get(const struct hk__streams *streams, void *at, size_t bytes,
			      struct hk_why *why, struct hk__pinned *pinned_out)
{
	struct hk__pinned pinned = { .bytes = bytes, .borrowed = at != NULL };
	void *memory = at;
	enum hk_status status =
		at ? memory_register(streams, at, bytes, why)
		   : hk__cuda_check(streams->cu->alloc_host(&memory, bytes,
							    HK__CU_HOST_PORTABLE |
								    HK__CU_HOST_DEVICEMAP),
				    "cuMemHostAlloc", why);

	if (status != HK_OK)
		return status;
	pinned.at = memory;
	status = hk__cuda_check(streams->cu->host_pointer(&pinned.device_at, memory, 0),
				"cuMemHostGetDevicePointer", why);
	if (status != HK_OK) {
		hk__pinned_put(streams, &pinned);
		return status;
	}
	*pinned_out = pinned;
	return HK_OK;
}

void hk__pinned_put(const struct hk__streams *streams, struct hk__pinned *pinned)
{
	if (!pinned->at)
		return;
	if (pinned->borrowed)
		memory_forget(streams, pinned->at);
	else
		(void)streams->cu->free_host(pinned->at);
	*pinned = (struct hk__pinned){ 0 };
}

/* ---- streams ---- */

void hk__streams_sync(const struct hk__streams *streams)
{
	for (uint32_t i = 0; i < HK__STREAMS_LANES; i++) {
		(void)streams->cu->stream_wait(streams->to_host[i]);
		(void)streams->cu->stream_wait(streams->to_device[i]);
	}
	if (streams->last)
		(void)streams->cu->event_wait(streams->event);
}

bool hk__streams_captured(const struct hk__streams *streams, hk__cu_stream stream)
{
	int captures = 0;

	return streams->cu->capturing(stream, &captures) == HK__CU_SUCCESS && captures;
}

enum hk_status hk__streams_follow(const struct hk__streams *streams, hk__cu_stream stream,
				  struct hk_why *why)
{
	if (!streams->last || streams->last == stream)
		return HK_OK;
	return hk__cuda_check(streams->cu->event_follow(stream, streams->event, 0),
			      "cuStreamWaitEvent", why);
}

enum hk_status hk__streams_lead(struct hk__streams *streams, hk__cu_stream stream,
				struct hk_why *why)
{
	streams->last = stream;
	return hk__cuda_check(streams->cu->event_record(streams->event, stream), "cuEventRecord",
			      why);
}

enum hk_status hk__streams_to_host(const struct hk__streams *streams, hk__cu_stream stream,
				   void *to, const void *from, size_t bytes, struct hk_why *why)
{
	if (!bytes)
		return HK_OK;
	return hk__cuda_check(streams->cu->to_host(to, (hk__cu_ptr)(uintptr_t)from, bytes, stream),
			      "cuMemcpyDtoHAsync", why);
}

enum hk_status hk__streams_to_device(const struct hk__streams *streams, hk__cu_stream stream,
				     void *to, const void *from, size_t bytes, struct hk_why *why)
{
	if (!bytes)
		return HK_OK;
	return hk__cuda_check(streams->cu->to_device((hk__cu_ptr)(uintptr_t)to, from, bytes,
						     stream),
			      "cuMemcpyHtoDAsync", why);
}

enum hk_status hk__streams_call_host(const struct hk__streams *streams, hk__cu_stream stream,
				     void (*run)(void *ctx), void *ctx, struct hk_why *why)
{
	return hk__cuda_check(streams->cu->host_call(stream, run, ctx), "cuLaunchHostFunc", why);
}

enum hk_status hk__streams_wait_value(const struct hk__streams *streams, hk__cu_stream stream,
				      hk__cu_ptr at, uint32_t value, struct hk_why *why)
{
	return hk__cuda_check(streams->cu->word_await(stream, at, value, HK__CU_WORD_GEQ),
			      "cuStreamWaitValue32", why);
}

enum hk_status hk__streams_write_value(const struct hk__streams *streams, hk__cu_stream stream,
				       hk__cu_ptr at, uint32_t value, struct hk_why *why)
{
	return hk__cuda_check(streams->cu->word_write(stream, at, value, 0), "cuStreamWriteValue32",
			      why);
}
