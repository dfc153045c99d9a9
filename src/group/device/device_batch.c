/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_batch.c - sends, receives and alltoallv on device memory, and batches.
 *
 * A batch is one launch for all its sends and receives, after its collectives, which
 * come first and in their order: so it is on all ranks, whatever else their batches
 * hold. alltoallv is a batch: each of its ranks knows only what is its own.
 */
#include "group/device/device.h"

#include "exec/device/device.h"
#include "gpu/cuda.h"
#include "group/device/staged.h"

/* ---- what has failed meanwhile ---- */

static void message_describe(struct hk__text *text, uint64_t bytes, uint64_t what)
{
	hk__text_add(text, "%llu bytes", (unsigned long long)bytes);
	if (what >> 32 == HK__PAIR_ALLTOALLV)
		hk__text_add(text, " of an alltoallv");
	else if ((uint32_t)what)
		hk__text_add(text, " with tag %u", (uint32_t)what);
}

enum hk_status hk__group_device_describe(const struct hk_group *group,
					 const struct hk__flat_report *report,
					 struct hk__text *text)
{
	bool sends = report->pair == HK__FLAT_SEND;

	hk__text_add(text, "rank %u: %s rank %u on the device: ", group->rank,
		     sends ? "send to" : "recv from", report->peer);
	message_describe(text, report->bytes[0], report->whats[0]);
	if (!report->differs) {
		hk__text_add(text, ", %s",
			     report->aborted ? "was aborted" : "not finished in time");
		return HK_ETIMEDOUT;
	}
	hk__text_add(text, ", but rank %u %s ", report->peer, sends ? "expects" : "sends");
	message_describe(text, report->bytes[1], report->whats[1]);
	return HK_EMISMATCH;
}

/* ---- from requests to orders ---- */

/* Sends and receives of calls that go together, and their streams. */
struct pairs {
	struct hk__array orders;  /* struct hk__pair_order */
	struct hk__array streams; /* void * */
	uint64_t timeout_ns;
};

static void pairs_init(struct pairs *pairs, struct hk_group *group)
{
	hk__array_init(&pairs->orders, group->alloc, sizeof(struct hk__pair_order));
	hk__array_init(&pairs->streams, group->alloc, sizeof(void *));
	pairs->timeout_ns = 0;
}

static void pairs_fini(struct pairs *pairs)
{
	hk__array_fini(&pairs->orders);
	hk__array_fini(&pairs->streams);
}

static bool pairs_add(struct pairs *pairs, const struct hk__pair_order *order)
{
	struct hk__pair_order *place = hk__array_push(&pairs->orders);

	if (place)
		*place = *order;
	return place;
}

static bool pairs_add_stream(struct pairs *pairs, void *stream)
{
	for (size_t i = 0; i < pairs->streams.count; i++) {
		if (((void **)pairs->streams.items)[i] == stream)
			return true;
	}
	void **place = hk__array_push(&pairs->streams);
	if (place)
		*place = stream;
	return place;
}

/* A block of its own to each rank, and one from each; also those that are empty. */
static bool pairs_add_alltoallv(struct pairs *pairs, const struct hk_group *group,
				const struct hk_request *request)
{
	size_t size = hk_type_size(request->call.type);
	bool added = true;

	for (uint32_t way = 0; way < 2; way++) {
		const uint64_t *counts = way ? request->call.out_counts : request->call.in_counts;
		uint64_t at = way ? (uint64_t)(uintptr_t)request->call.out
				  : (uint64_t)(uintptr_t)request->call.in;

		for (uint32_t r = 0; r < group->n && added; r++) {
			struct hk__pair_order order = { .sends = !way,
							.kind = HK__PAIR_ALLTOALLV,
							.peer = r,
							.at = at,
							.bytes = counts[r] * size };

			added = pairs_add(pairs, &order);
			at += order.bytes;
		}
	}
	return added;
}

static enum hk_status pairs_add_request(struct pairs *pairs, struct hk_group *group,
					const struct hk_request *request)
{
	struct hk__pair_order order = { .sends = request->transfer.sends,
					.kind = HK__PAIR_PLAIN,
					.peer = request->peer,
					.tag = request->sig.tag,
					.at = (uint64_t)(uintptr_t)request->transfer.at,
					.bytes = request->transfer.left };
	bool added = request->transfers ? pairs_add(pairs, &order)
					: pairs_add_alltoallv(pairs, group, request);

	if (!added || !pairs_add_stream(pairs, request->stream))
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a batch");
	pairs->timeout_ns =
		pairs->timeout_ns > request->timeout_ns ? pairs->timeout_ns : request->timeout_ns;
	return HK_OK;
}

/* All of them, by one launch. */
static enum hk_status pairs_run(struct pairs *pairs, struct hk_group *group)
{
	struct hk__gpu_pairs call = { .rank = group->rank,
				      .orders = pairs->orders.items,
				      .count = (uint32_t)pairs->orders.count,
				      .streams = pairs->streams.items,
				      .nstreams = (uint32_t)pairs->streams.count,
				      .timeout_ns = pairs->timeout_ns };

	return hk__gpu_pairs(hk__group_gpu(group), &call, &group->why);
}

/* ---- calls ---- */

/* One request by itself. */
static enum hk_status request_run(struct hk_group *group, const struct hk_request *request,
				  const struct hk_opts *opts)
{
	struct pairs pairs;
	enum hk_status status = hk__group_device_ready(group, request, opts, request->ordinal);

	if (status != HK_OK)
		return status;
	if (hk__group_gpu_path(group) == HK__GPU_STAGED)
		return request->transfers ? hk__staged_transfer(group, request, opts, false)
					  : hk__staged_call(group, request, opts);
	pairs_init(&pairs, group);
	status = pairs_add_request(&pairs, group, request);
	if (status == HK_OK)
		status = pairs_run(&pairs, group);
	pairs_fini(&pairs);
	return status;
}

enum hk_status hk__group_device_transfer(struct hk_group *group, struct hk_request *request,
					 const struct hk_opts *opts)
{
	const char *name = hk__request_name(request);
	enum hk_status status = hk__group_device_look(group);
	bool on_device;

	if (status != HK_OK)
		return status;
	request->ordinal = -1;
	on_device = hk__cuda_memory(request->transfer.at, &request->ordinal);
	if (request->transfer.left && !on_device)
		return hk__group_refuse(
			group, HK_EINVAL,
			"%s: a stream is given, but the buffer is not device memory", name);
	if (opts->request)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: calls on device memory complete on their stream: "
					"no request",
					name);
	request->call.in = request->transfer.at;
	request->stream = opts->stream;
	if (group->batching)
		return hk__group_device_note(group, request, opts, request->ordinal);
	return request_run(group, request, opts);
}

enum hk_status hk__group_device_alltoallv(struct hk_group *group, const struct hk_request *request,
					  const struct hk_opts *opts, int ordinal)
{
	struct hk_request copy = *request;

	copy.stream = opts->stream;
	copy.ordinal = ordinal;
	return request_run(group, &copy, opts);
}

/* ---- batches ---- */

enum hk_status hk__group_device_note(struct hk_group *group, const struct hk_request *request,
				     const struct hk_opts *opts, int ordinal)
{
	struct hk_request *noted = hk__mem_zalloc(group->alloc, 1, sizeof(*noted));

	if (!noted)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a request");
	*noted = *request;
	noted->on_device = true;
	noted->stream = opts->stream;
	noted->ordinal = ordinal;
	hk__batch_note(group, noted);
	return HK_OK;
}

static bool request_is_pairs(const struct hk_request *request)
{
	return request->transfers || request->call.in_counts;
}

/* Collectives at once, in order; the rest is gathered. */
static enum hk_status batch_begin(struct hk_group *group, const struct hk_request *request,
				  struct pairs *pairs)
{
	struct hk_opts opts = HK_OPTS_INIT;

	opts.stream = request->stream;
	if (!request_is_pairs(request))
		return hk__group_device_call(group, request, &opts);
	enum hk_status status = hk__group_device_ready(group, request, &opts, request->ordinal);
	if (status != HK_OK)
		return status;
	if (hk__group_gpu_path(group) == HK__GPU_STAGED)
		return request->transfers ? hk__staged_transfer(group, request, &opts, true)
					  : hk__staged_call(group, request, &opts);
	return pairs_add_request(pairs, group, request);
}

/* The batch's requests on device memory, in order; the others stay. */
static struct hk_request *batch_take(struct hk_group *group)
{
	struct hk_request *taken = NULL, **end = &taken, **link = &group->batch;

	group->batch_tail = NULL;
	while (*link) {
		struct hk_request *request = *link;

		if (!request->on_device) {
			group->batch_tail = request;
			link = &request->next;
			continue;
		}
		*link = request->next;
		request->next = NULL;
		*end = request;
		end = &request->next;
	}
	return taken;
}

enum hk_status hk__group_device_batch(struct hk_group *group)
{
	struct hk_request *requests = batch_take(group);
	enum hk_status status = HK_OK;
	struct pairs pairs;

	pairs_init(&pairs, group);
	while (requests) {
		struct hk_request *request = requests;

		requests = request->next;
		if (status == HK_OK)
			status = batch_begin(group, request, &pairs);
		hk__mem_free(group->alloc, request, 1, sizeof(*request));
	}
	if (status == HK_OK && pairs.orders.count)
		status = pairs_run(&pairs, group);
	pairs_fini(&pairs);
	/* Whatever has begun is waited for. */
	enum hk_status waited = hk__staged_batch_end(group);
	return status == HK_OK ? waited : status;
}
