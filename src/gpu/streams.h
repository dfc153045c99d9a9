/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.h - a GPU's streams for staging: copies to and from the host, streams that
 * wait for the host, and hosts that are told of streams.
 *
 * What is enqueued for others to wait for goes to streams of its own, some in each
 * direction, so that one copies while the other writes the word behind its copy. They have
 * a higher priority than those of callers: streams that differ in that share no queue
 * of the hardware, so one that waits for a word never keeps the copy from running
 * that the word is written after.
 */
#ifndef HK_GPU_STREAMS_H
#define HK_GPU_STREAMS_H

#include "gpu/cuda.h"

#define HK__STREAMS_LANES 2u

struct hk__streams {
	const struct hk__cuda *cu;
	const struct hk_alloc *alloc;
	int device;
	hk__cu_context context;
	hk__cu_stream own;		/* for callers that name none */
	hk__cu_stream to_host[HK__STREAMS_LANES], to_device[HK__STREAMS_LANES];
	hk__cu_stream last;		/* that a call was enqueued on; only compared */
	hk__cu_event event;		/* behind that call */
};

/* Memory of the host that a device reaches. */
struct hk__pinned {
	char *at;
	hk__cu_ptr device_at;
	size_t bytes;
	bool borrowed;			/* registered alone */
};

enum hk_status hk__streams_create(int ordinal, const struct hk_alloc *alloc, struct hk_why *why,
				  struct hk__streams **streams_out);
void hk__streams_destroy(struct hk__streams *streams);	/* accepts NULL */

/* A thread of the caller's has the context between these, and no capture minds. */
struct hk__streams_visit {
	int mode;
};
enum hk_status hk__streams_enter(const struct hk__streams *streams, struct hk__streams_visit *visit,
				 struct hk_why *why);
void hk__streams_leave(const struct hk__streams *streams, struct hk__streams_visit *visit);

/* All below: entered. */

/*
 * at NULL: new memory. Otherwise that, which stays the caller's; what several have
 * of the very same memory is shared.
 */
enum hk_status hk__pinned_get(const struct hk__streams *streams, void *at, size_t bytes,
			      struct hk_why *why, struct hk__pinned *pinned_out);
void hk__pinned_put(const struct hk__streams *streams, struct hk__pinned *pinned);

/*
 * Calls follow each other, also from one stream to another: each begins and ends with
 * one of these. A stream of a call before may be gone by then; its event is not.
 */
enum hk_status hk__streams_follow(const struct hk__streams *streams, hk__cu_stream stream,
				  struct hk_why *why);
enum hk_status hk__streams_lead(struct hk__streams *streams, hk__cu_stream stream,
				struct hk_why *why);
/* Waits until all that was enqueued on its own streams is done. */
void hk__streams_sync(const struct hk__streams *streams);
/* Whether what is enqueued there becomes part of a graph. */
bool hk__streams_captured(const struct hk__streams *streams, hk__cu_stream stream);

/* Enqueued; copies of 0 bytes are none. */
enum hk_status hk__streams_to_host(const struct hk__streams *streams, hk__cu_stream stream,
				   void *to, const void *from, size_t bytes, struct hk_why *why);
enum hk_status hk__streams_to_device(const struct hk__streams *streams, hk__cu_stream stream,
				     void *to, const void *from, size_t bytes, struct hk_why *why);
enum hk_status hk__streams_call_host(const struct hk__streams *streams, hk__cu_stream stream,
				     void (*run)(void *ctx), void *ctx, struct hk_why *why);
/* Words of pinned memory; who waits goes on once the word is `value`, or beyond. */
enum hk_status hk__streams_wait_value(const struct hk__streams *streams, hk__cu_stream stream,
				      hk__cu_ptr at, uint32_t value, struct hk_why *why);
enum hk_status hk__streams_write_value(const struct hk__streams *streams, hk__cu_stream stream,
				       hk__cu_ptr at, uint32_t value, struct hk_why *why);

#endif
