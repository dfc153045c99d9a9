/* SPDX-License-Identifier: Apache-2.0 */
/* staged.c - calls on device memory staged through host memory: see staged.h. */
#include "group/device/staged.h"

#include "group/device/device.h"

#include <string.h>
#include <time.h>

/* Calls that share a page of words; each has 64 bytes of it. */
#define SLAB_CALLS 64u
#define MARK_BYTES 64u

struct hk__staged_slab {
	struct hk__pinned marks;
	struct hk__staged *calls;
	uint64_t *counts;
};

/* Copies of what a collective reads and writes. */
struct hk__staged_buf {
	struct hk__pinned pinned;
	bool heap; /* of the world's: other ranks of the host read it in place */
};

#define BUF_MIN ((size_t)1 << 20)
#define PAGE ((size_t)4096)

/* ---- one for each group ---- */

static enum hk_status staging_make(struct hk_group *group, int ordinal,
				   struct hk__staging **staging_out)
{
	struct hk__staging *staging = hk__mem_zalloc(group->alloc, 1, sizeof(*staging));

	if (!staging)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for staging");
	staging->group = group;
	staging->net = group->world->net;
	hk__array_init(&staging->slabs, group->alloc, sizeof(struct hk__staged_slab));
	hk__array_init(&staging->waits, group->alloc, sizeof(struct hk__staged_wait));
	hk__array_init(&staging->bufs, group->alloc, sizeof(struct hk__staged_buf));
	enum hk_status status =
		hk__streams_create(ordinal, group->alloc, &group->why, &staging->streams);
	if (status == HK_OK && hk__world_start_thread(group->world) != HK_OK)
		status = hk__group_refuse(group, HK_EIO, "cannot start a progress thread");
	if (status != HK_OK) {
		hk__streams_destroy(staging->streams);
		hk__mem_free(group->alloc, staging, 1, sizeof(*staging));
		return status;
	}
	*staging_out = staging;
	return HK_OK;
}

/* Where the call's GPU is current; and there is a staging. */
static enum hk_status staging_enter(struct hk_group *group, const struct hk_request *request,
				    const struct hk_opts *opts, struct hk__streams_visit *visit)
{
	struct hk__staging *staging = group->staging;
	int ordinal;

	if (!staging) {
		if (!hk__cuda_memory(request->call.in, &ordinal) &&
		    !hk__cuda_memory(request->call.out, &ordinal))
			ordinal = hk__group_ordinal(opts->stream);
		enum hk_status status = staging_make(group, ordinal, &staging);
		if (status != HK_OK)
			return status;
		hk__world_lock(group->world);
		group->staging = staging;
		hk__world_unlock(group->world);
	}
	hk_assert(staging);
	return hk__streams_enter(staging->streams, visit, &group->why);
}

/* ---- calls ---- */

static enum hk_status slab_add(struct hk__staging *staging)
{
	struct hk_group *group = staging->group;
	struct hk__staged_slab slab = { 0 };
	size_t counts = (size_t)SLAB_CALLS * 2 * group->n;

	slab.calls = hk__mem_zalloc(group->alloc, SLAB_CALLS, sizeof(*slab.calls));
	slab.counts = hk__mem_zalloc(group->alloc, counts, sizeof(*slab.counts));
	enum hk_status status =
		slab.calls && slab.counts
			? hk__pinned_get(staging->streams, NULL, (size_t)SLAB_CALLS * MARK_BYTES,
					 &group->why, &slab.marks)
			: hk__group_refuse(group, HK_ENOMEM, "no memory for calls");
	struct hk__staged_slab *place = status == HK_OK ? hk__array_push(&staging->slabs) : NULL;
	if (!place) {
		hk__pinned_put(staging->streams, &slab.marks);
		hk__mem_free(group->alloc, slab.counts, counts, sizeof(*slab.counts));
		hk__mem_free(group->alloc, slab.calls, SLAB_CALLS, sizeof(*slab.calls));
		return status == HK_OK ? hk__group_refuse(group, HK_ENOMEM, "no memory for calls")
				       : status;
	}
	*place = slab;
	hk_assert(slab.marks.at);
	memset(slab.marks.at, 0, (size_t)SLAB_CALLS * MARK_BYTES);
	for (uint32_t i = 0; i < SLAB_CALLS; i++) {
		struct hk__staged *call = &slab.calls[i];

		call->staging = staging;
		call->mark = (uint32_t *)(void *)(slab.marks.at + (size_t)i * MARK_BYTES);
		call->mark_at = slab.marks.device_at + (size_t)i * MARK_BYTES;
		call->counts = slab.counts + (size_t)i * 2 * group->n;
		call->next = staging->free;
		staging->free = call;
	}
	return HK_OK;
}

/* Whether neither the stream nor progress will look at it again. */
static bool call_is_past(struct hk__staged *call)
{
	struct hk__world *world = call->staging->group->world;

	hk__world_lock(world);
	bool past = call->over && atomic_load_explicit(&call->told, memory_order_acquire);
	hk__world_unlock(world);
	return past;
}

static void staging_sweep(struct hk__staging *staging)
{
	while (staging->flying && call_is_past(staging->flying)) {
		struct hk__staged *call = staging->flying;

		staging->flying = call->next;
		call->next = staging->free;
		staging->free = call;
	}
	if (!staging->flying)
		staging->flying_tail = NULL;
}

/* A new one, like the request; it does not fly yet. */
static enum hk_status call_get(struct hk__staging *staging, const struct hk_request *like,
			       struct hk__staged **call_out)
{
	staging_sweep(staging);
	if (!staging->free) {
		enum hk_status status = slab_add(staging);

		if (status != HK_OK)
			return status;
	}
	struct hk__staged *call = staging->free, clean = { .staging = staging,
							   .next = call->next,
							   .mark = call->mark,
							   .mark_at = call->mark_at,
							   .turn = call->turn + 1,
							   .counts = call->counts,
							   .request = *like };
	*call = clean;
	call->request.staged = call;
	call->request.held = true;
	*call_out = call;
	return HK_OK;
}

/* A function of the driver's thread: nothing of it may be called here. */
static void call_begin(void *ctx)
{
	struct hk__staged *call = ctx;

	/* Pairs with hk__staged_begun; what the stream copied before is there. */
	atomic_store_explicit(&call->begun, true, memory_order_release);
	hk__net_kick(call->staging->net);
	/* Pairs with call_is_past. */
	atomic_store_explicit(&call->told, true, memory_order_release);
}

bool hk__staged_begun(struct hk_request *request)
{
	if (!atomic_load_explicit(&request->staged->begun, memory_order_acquire))
		return false;
	request->held = false;
	request->deadline = hk__deadline_ns(hk__now_ns(), request->timeout_ns);
	return true;
}

void hk__staged_over(struct hk_request *request)
{
	struct hk__staged *call = request->staged;

	call->over = true;
	__atomic_store_n(call->mark, call->turn, __ATOMIC_RELEASE); /* the stream waits for it */
}

/* ---- enqueueing ---- */

/* The driver did not take what a request needs that others wait for by now. */
static void group_lose(void *ctx)
{
	struct hk_group *group = ctx;
	char line[HK_WHY_MAX];
	struct hk__text text;

	if (group->failed != HK_OK)
		return;
	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text, "rank %u: %s", group->rank, group->why.text);
	hk__health_revoke(group, HK_EIO, HK_NONE, line);
}

/* Submits it, and has the stream tell when it may begin. */
static enum hk_status call_go(struct hk__staging *staging, struct hk__staged *call,
			      hk__cu_stream stream)
{
	struct hk_group *group = staging->group;
	enum hk_status status = hk__group_submit(group, &call->request);

	if (status != HK_OK)
		return status;
	staging->free = call->next;
	call->next = NULL;
	if (staging->flying_tail)
		staging->flying_tail->next = call;
	else
		staging->flying = call;
	staging->flying_tail = call;
	status = hk__streams_call_host(staging->streams, stream, call_begin, call, &group->why);
	if (status == HK_OK)
		return HK_OK;
	hk__world_run(group->world, group_lose, group);
	/* No stream will look at it. */
	atomic_store_explicit(&call->told, true, memory_order_release);
	return status;
}

static enum hk_status stream_fits(struct hk_group *group, const struct hk_request *request,
				  hk__cu_stream stream)
{
	if (!hk__streams_captured(group->staging->streams, stream))
		return HK_OK;
	return hk__group_refuse(
		group, HK_EINVAL,
		"%s: it cannot be captured in a graph, as it is staged through host memory "
		"(HOCKET_GPU=staged, or ranks on several hosts, or without a GPU)",
		hk__request_name(request));
}

static hk__cu_stream stream_of(const struct hk__staging *staging, const struct hk_opts *opts)
{
	return opts->stream ? opts->stream : staging->streams->own;
}

/* ---- collectives ---- */

/* Bytes of in and out of this rank. */
static void request_bytes(const struct hk_request *request, uint64_t *in_out, uint64_t *out_out)
{
	const struct hk_group *group = request->group;
	const struct hk__call *call = &request->call;
	struct hk__coll_lengths lengths = { .coll = request->coll,
					    .rank = group->rank,
					    .n = group->n,
					    .root = request->root,
					    .sizes = call->sizes,
					    .in_counts = call->in_counts,
					    .out_counts = call->out_counts };
	uint64_t size = hk_type_size(call->type);

	hk__coll_lengths(&lengths, in_out, out_out);
	*in_out *= size;
	*out_out *= size;
}

/* Memory of the heap, if there is enough of it, else of the driver's. */
static enum hk_status buf_make(struct hk__staging *staging, size_t bytes,
			       struct hk__staged_buf *buf_out)
{
	struct hk_group *group = staging->group;
	struct hk__world *world = group->world;
	void *at = NULL;

	hk__world_lock(world);
	enum hk_status status = world->shm ? hk__heap_get(&world->heap, bytes, &at) : HK_ELIMIT;
	hk__world_unlock(world);
	buf_out->heap = status == HK_OK;
	status = hk__pinned_get(staging->streams, at, bytes, &group->why, &buf_out->pinned);
	if (status != HK_OK && buf_out->heap) {
		hk__world_lock(world);
		(void)hk__heap_put(&world->heap, at);
		hk__world_unlock(world);
	}
	return status;
}

static void buf_free(struct hk__staging *staging, struct hk__staged_buf *buf)
{
	struct hk__world *world = staging->group->world;
	void *at = buf->pinned.at;

	hk__pinned_put(staging->streams, &buf->pinned);
	if (!buf->heap)
		return;
	hk__world_lock(world);
	(void)hk__heap_put(&world->heap, at);
	hk__world_unlock(world);
}

/*
 * As calls of a group follow each other on their streams, one buffer serves them all.
 * Those that became too small may still be in use: there are few of them.
 */
static enum hk_status buf_get(struct hk__staging *staging, size_t bytes, char **at_out)
{
	size_t last = staging->bufs.count, size = BUF_MIN;
	struct hk__staged_buf *bufs = staging->bufs.items, buf;

	if (last && bufs[last - 1].pinned.bytes >= bytes) {
		*at_out = bufs[last - 1].pinned.at;
		return HK_OK;
	}
	while (size < bytes)
		size *= 2;
	enum hk_status status = buf_make(staging, size, &buf);
	if (status != HK_OK)
		return status;
	struct hk__staged_buf *place = hk__array_push(&staging->bufs);
	if (!place) {
		buf_free(staging, &buf);
		return hk__group_refuse(staging->group, HK_ENOMEM, "no memory for staging");
	}
	*place = buf;
	*at_out = buf.pinned.at;
	return HK_OK;
}

/* The request of the host: its own copies of everything. */
static void call_place(struct hk__staged *call, char *in, char *out)
{
	struct hk__call *host = &call->request.call;
	uint32_t n = call->staging->group->n;

	host->in = in;
	host->out = out;
	call->request.inplace = false;
	if (host->sizes.counts) {
		memcpy(call->counts, host->sizes.counts, n * sizeof(uint64_t));
		host->sizes.counts = call->counts;
	}
	if (host->in_counts) {
		memcpy(call->counts, host->in_counts, n * sizeof(uint64_t));
		memcpy(call->counts + n, host->out_counts, n * sizeof(uint64_t));
		host->in_counts = call->counts;
		host->out_counts = call->counts + n;
	}
	if (host->op == HK_REDOP_PREMULSUM && host->factor) {
		bool small = hk_type_size(host->type) < 4 && host->type >= HK_TYPE_FP16;

		memcpy(&call->factor, host->factor, small ? 4 : hk_type_size(host->type));
		host->factor = &call->factor;
	}
}

static enum hk_status collective_enqueue(struct hk__staging *staging,
					 const struct hk_request *request, hk__cu_stream stream)
{
	struct hk__streams *streams = staging->streams;
	struct hk_why *why = &staging->group->why;
	struct hk__staged *call;
	uint64_t in, out;
	char *buf = NULL;

	request_bytes(request, &in, &out);
	uint64_t out_from = (in + PAGE - 1) / PAGE * PAGE;
	enum hk_status status = in + out ? buf_get(staging, out_from + out, &buf) : HK_OK;
	if (status == HK_OK)
		status = call_get(staging, request, &call);
	if (status == HK_OK)
		status = hk__streams_follow(streams, stream, why);
	if (status == HK_OK)
		status = hk__streams_to_host(streams, stream, buf, request->call.in, in, why);
	if (status != HK_OK)
		return status;
	call_place(call, in ? buf : NULL, out ? buf + out_from : NULL);
	status = call_go(staging, call, stream);
	if (status != HK_OK)
		return status;
	status = hk__streams_wait_value(streams, stream, call->mark_at, call->turn, why);
	if (status == HK_OK && out)
		status = hk__streams_to_device(streams, stream, request->call.out, buf + out_from,
					       out, why);
	if (status == HK_OK)
		status = hk__streams_lead(streams, stream, why);
	if (status != HK_OK)
		hk__world_run(staging->group->world, group_lose, staging->group);
	return status;
}

enum hk_status hk__staged_call(struct hk_group *group, const struct hk_request *request,
			       const struct hk_opts *opts)
{
	struct hk__streams_visit visit;
	enum hk_status status = staging_enter(group, request, opts, &visit);

	if (status != HK_OK)
		return status;
	hk__cu_stream stream = stream_of(group->staging, opts);
	status = stream_fits(group, request, stream);
	if (status == HK_OK)
		status = collective_enqueue(group->staging, request, stream);
	hk__streams_leave(group->staging->streams, &visit);
	return status;
}

/* ---- messages ---- */

static enum hk_status transfer_enqueue(struct hk__staging *staging,
				       const struct hk_request *request, hk__cu_stream stream,
				       bool batched)
{
	struct hk_group *group = staging->group;
	struct hk__staged_wait *wait = NULL;
	struct hk__staged *call = NULL;
	enum hk_status status = call_get(staging, request, &call);

	if (status != HK_OK)
		return status;
	if (batched) {
		wait = hk__array_push(&staging->waits);
		if (!wait)
			return hk__group_refuse(group, HK_ENOMEM, "no memory for a batch");
		*wait = (struct hk__staged_wait){ stream, call->mark_at, call->turn };
	}
	call->at = request->transfer.at;
	call->bytes = request->transfer.left;
	status = call_go(staging, call, stream);
	if (status != HK_OK && wait)
		staging->waits.count--;
	if (status != HK_OK || wait)
		return status;
	status = hk__streams_wait_value(staging->streams, stream, call->mark_at, call->turn,
					&group->why);
	if (status != HK_OK)
		hk__world_run(group->world, group_lose, group);
	return status;
}

enum hk_status hk__staged_transfer(struct hk_group *group, const struct hk_request *request,
				   const struct hk_opts *opts, bool batched)
{
	struct hk__streams_visit visit;
	enum hk_status status = staging_enter(group, request, opts, &visit);

	if (status != HK_OK)
		return status;
	hk__cu_stream stream = stream_of(group->staging, opts);
	status = stream_fits(group, request, stream);
	if (status == HK_OK)
		status = transfer_enqueue(group->staging, request, stream, batched);
	hk__streams_leave(group->staging->streams, &visit);
	return status;
}

enum hk_status hk__staged_batch_end(struct hk_group *group)
{
	struct hk__staging *staging = group->staging;
	struct hk__streams_visit visit;

	if (!staging || !staging->waits.count)
		return HK_OK;
	enum hk_status status = hk__streams_enter(staging->streams, &visit, &group->why);
	if (status != HK_OK)
		return status;
	for (size_t i = 0; i < staging->waits.count && status == HK_OK; i++) {
		const struct hk__staged_wait *wait = hk__array_at(&staging->waits, i);

		status = hk__streams_wait_value(staging->streams, wait->stream, wait->at,
						wait->turn, &group->why);
	}
	staging->waits.count = 0;
	hk__streams_leave(staging->streams, &visit);
	if (status != HK_OK)
		hk__world_run(group->world, group_lose, group);
	return status;
}

/* ---- the end ---- */

static void settle_fail(void *ctx)
{
	struct hk_group *group = ctx;
	char line[HK_WHY_MAX];
	struct hk__text text;

	if (group->failed != HK_OK)
		return;
	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text,
		     "rank %u: the group was freed while a call on it was still queued on a stream",
		     group->rank);
	hk__health_revoke(group, HK_ETIMEDOUT, HK_NONE, line);
}

/* Whether all calls are past by then. */
static bool staging_wait(struct hk__staging *staging, uint64_t timeout_ns)
{
	uint64_t until = hk__deadline_ns(hk__now_ns(), timeout_ns);

	for (;;) {
		staging_sweep(staging);
		if (!staging->flying)
			return true;
		if (hk__now_ns() >= until)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
}

void hk__staged_settle(struct hk_group *group)
{
	if (group->staging && !staging_wait(group->staging, group->timeout_ns))
		hk__world_run(group->world, settle_fail, group);
}

void hk__staged_set_numbers(struct hk_group *group, uint32_t number)
{
	struct hk__staging *staging = group->staging;

	staging_sweep(staging);
	hk_assert(!staging->flying);
	hk__world_lock(group->world);
	for (struct hk__staged *call = staging->free; call; call = call->next) {
		call->turn = number;
		__atomic_store_n(call->mark, number, __ATOMIC_RELEASE);
	}
	hk__pipes_set_numbers(staging, number);
	hk__world_unlock(group->world);
}

static void staging_free(struct hk__staging *staging)
{
	struct hk_group *group = staging->group;

	hk__staged_close(staging);
	for (size_t i = 0; i < staging->bufs.count; i++)
		buf_free(staging, hk__array_at(&staging->bufs, i));
	for (size_t i = 0; i < staging->slabs.count; i++) {
		struct hk__staged_slab *slab = hk__array_at(&staging->slabs, i);

		hk__pinned_put(staging->streams, &slab->marks);
		hk__mem_free(group->alloc, slab->counts, (size_t)SLAB_CALLS * 2 * group->n,
			     sizeof(*slab->counts));
		hk__mem_free(group->alloc, slab->calls, SLAB_CALLS, sizeof(*slab->calls));
	}
}

void hk__staged_free(struct hk_group *group)
{
	struct hk__staging *staging = group->staging;
	struct hk__streams_visit visit;
	struct hk_why why;

	if (!staging)
		return;
	group->staging = NULL;
	/* A stream that never comes to a call keeps what the call would use. */
	if (!staging_wait(staging, group->timeout_ns)) {
		hk__log(HK_LOG_WARN,
			"rank %u: a stream still holds calls of a freed group: their memory is not "
			"released",
			group->rank);
		group->world->refs++;
		return;
	}
	if (hk__streams_enter(staging->streams, &visit, &why) == HK_OK) {
		/* Copies of a group that failed may still run; memory is theirs until then. */
		hk__streams_sync(staging->streams);
		staging_free(staging);
		hk__streams_leave(staging->streams, &visit);
	}
	hk__array_fini(&staging->slabs);
	hk__array_fini(&staging->waits);
	hk__array_fini(&staging->bufs);
	hk__streams_destroy(staging->streams);
	hk__mem_free(group->alloc, staging, 1, sizeof(*staging));
}
