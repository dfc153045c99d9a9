/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ferry.h - between device memory and memory of the host: copies, streams that wait
 * for the host, and hosts that are told of streams.
 *
 * What is enqueued for others to wait for goes to streams of its own, some each way,
 * so that one copies while the other writes the word behind its copy. They have a
 * higher priority than those of callers: streams that differ in that share no queue
 * of the hardware, so one that waits for a word never keeps the copy from running
 * that the word is written after.
 */
#ifndef HK_GPU_FERRY_H
#define HK_GPU_FERRY_H

#include "gpu/cuda.h"

#define HK__FERRY_LANES 2u

struct hk__ferry {
	const struct hk__cuda *cu;
	const struct hk_alloc *alloc;
	int device;
	hk__cu_context context;
	hk__cu_stream own;		/* for callers that name none */
	hk__cu_stream down[HK__FERRY_LANES], up[HK__FERRY_LANES]; /* to the host; to the device */
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

enum hk_status hk__ferry_create(int ordinal, const struct hk_alloc *alloc, struct hk_why *why,
				struct hk__ferry **stage_out);
void hk__ferry_destroy(struct hk__ferry *ferry);	/* accepts NULL */

/* A thread of the caller's has the context between these, and no capture minds. */
struct hk__ferry_visit {
	int mode;
};
enum hk_status hk__ferry_enter(const struct hk__ferry *ferry, struct hk__ferry_visit *visit,
			       struct hk_why *why);
void hk__ferry_leave(const struct hk__ferry *ferry, struct hk__ferry_visit *visit);

/* All below: entered. */

/*
 * at NULL: new memory. Otherwise that, which stays the caller's; what several have
 * of the very same memory is shared.
 */
enum hk_status hk__pinned_get(const struct hk__ferry *ferry, void *at, size_t bytes,
			      struct hk_why *why, struct hk__pinned *pinned_out);
void hk__pinned_put(const struct hk__ferry *ferry, struct hk__pinned *pinned);

/*
 * Calls follow each other, also from one stream to another: each begins and ends with
 * one of these. A stream of a call before may be gone by then; its event is not.
 */
enum hk_status hk__ferry_follow(const struct hk__ferry *ferry, hk__cu_stream stream,
				struct hk_why *why);
enum hk_status hk__ferry_lead(struct hk__ferry *ferry, hk__cu_stream stream, struct hk_why *why);
/* All that was enqueued on its own streams is done. */
void hk__ferry_rest(const struct hk__ferry *ferry);
/* Whether what is enqueued there becomes part of a graph. */
bool hk__ferry_captured(const struct hk__ferry *ferry, hk__cu_stream stream);

/* Enqueued; copies of 0 bytes are none. */
enum hk_status hk__ferry_down(const struct hk__ferry *ferry, hk__cu_stream stream, void *to,
			      const void *from, size_t bytes, struct hk_why *why);
enum hk_status hk__ferry_up(const struct hk__ferry *ferry, hk__cu_stream stream, void *to,
			    const void *from, size_t bytes, struct hk_why *why);
enum hk_status hk__ferry_tell(const struct hk__ferry *ferry, hk__cu_stream stream,
			      void (*run)(void *ctx), void *ctx, struct hk_why *why);
/* Words of pinned memory; who waits goes on once the word is `value`, or beyond. */
enum hk_status hk__ferry_await(const struct hk__ferry *ferry, hk__cu_stream stream, hk__cu_ptr at,
			       uint32_t value, struct hk_why *why);
enum hk_status hk__ferry_mark(const struct hk__ferry *ferry, hk__cu_stream stream, hk__cu_ptr at,
			      uint32_t value, struct hk_why *why);

#endif
