/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - launches of sends and receives (pair.h), by the driver. */
#include "exec/device/unit.h"

uint64_t hk__gpu_pairs_bytes(uint32_t n, bool apart)
{
	return hk__pair_segment_bytes(n, !apart) + 128; /* where they begin is rounded up */
}

/* ---- streams ---- */

static hk__cu_stream stream_of(const struct gpu_rank *rank, const struct hk__gpu_pairs *call,
			       uint32_t i)
{
	return call->streams[i] ? call->streams[i] : rank->own;
}

static enum hk_status stream_after(const struct hk__cuda *cu, struct gpu_rank *rank,
				   hk__cu_stream stream, hk__cu_stream before, struct hk_why *why)
{
	enum hk_status status =
		hk__cuda_check(cu->event_record(rank->event, before), "cuEventRecord", why);

	if (status == HK_OK)
		status = hk__cuda_check(cu->event_follow(stream, rank->event, 0),
					"cuStreamWaitEvent", why);
	return status;
}

/* The first stream begins after all of them have come here, and they go on after it. */
static enum hk_status streams_join(struct hk__gpu *gpu, const struct hk__gpu_pairs *call, bool over,
				   struct hk_why *why)
{
	struct gpu_rank *rank = &gpu->ranks[call->rank];
	hk__cu_stream first = stream_of(rank, call, 0);
	enum hk_status status = HK_OK;

	for (uint32_t i = 1; i < call->nstreams && status == HK_OK; i++) {
		hk__cu_stream other = stream_of(rank, call, i);

		status = over ? stream_after(gpu->cu, rank, other, first, why)
			      : stream_after(gpu->cu, rank, first, other, why);
	}
	return status;
}

/* ---- a launch ---- */

/* Of a segment: behind what plans have. */
static uint64_t pairs_at(const struct hk__gpu *gpu)
{
	return (hk__flat_segment_bytes(&gpu->limits) + 127) / 128 * 128;
}

static void pairs_fill(const struct hk__gpu *gpu, const struct hk__gpu_pairs *call,
		       struct hk__pair_lists lists)
{
	struct hk__pair_call *pair = lists.call;
	const struct gpu_unit *unit = gpu->ranks[call->rank].unit;

	*pair = (struct hk__pair_call){
		.rank = call->rank,
		.n = gpu->spec.n,
		.mode = (gpu->far ? HK__PAIR_FAR : 0) | (gpu->spec.apart ? 0 : HK__PAIR_DIRECT),
		.timeout_ns = call->timeout_ns,
		.report = gpu_pointer(gpu->reports_at + call->rank * sizeof(*pair->report))
	};
	for (uint32_t r = 0; r < gpu->spec.n; r++)
		pair->segments[r] = gpu_pointer(unit->segments[r] + pairs_at(gpu));
	/* No more than of a collective: ranks are not always in the same call. */
	hk__pair_shape(call->orders, call->count, gpu->limits.blocks, lists);
}

static enum hk_status pairs_launch(struct hk__gpu *gpu, const struct hk__gpu_pairs *call,
				   struct hk__pair_call *pair, hk__cu_function function,
				   struct hk_why *why)
{
	struct gpu_rank *rank = &gpu->ranks[call->rank];
	hk__cu_stream stream = stream_of(rank, call, 0);
	void *params[] = { pair };
	hk__cu_context context;
	enum hk_status status =
		hk__cuda_check(gpu->cu->push(rank->unit->context), "cuCtxPushCurrent", why);

	if (status != HK_OK)
		return status;
	status = hk__rank_follow(gpu, rank, stream, why);
	if (status == HK_OK)
		status = streams_join(gpu, call, false, why);
	if (status == HK_OK)
		status = hk__cuda_check(gpu->cu->launch(function, pair->nblocks, 1, 1,
							hk__pair_threads(pair), 1, 1, 0, stream,
							params, NULL),
					"cuLaunchKernel", why);
	if (status == HK_OK)
		status = hk__rank_note(gpu, rank, stream, why);
	if (status == HK_OK)
		status = streams_join(gpu, call, true, why);
	(void)gpu->cu->pop(&context);
	return status;
}

enum hk_status hk__gpu_pairs(struct hk__gpu *gpu, const struct hk__gpu_pairs *call,
			     struct hk_why *why)
{
	const struct gpu_unit *unit = gpu->ranks[call->rank].unit;

	if (call->count <= HK__PAIR_FEW) {
		struct hk__pair_few few;

		pairs_fill(gpu, call, (struct hk__pair_lists){ &few.call, few.ops, few.index });
		return pairs_launch(
			gpu, call, &few.call,
			unit->pairs[hk__pair_all_small(&few.call) ? PAIRS_SMALL : PAIRS_FEW], why);
	}
	if (call->count > HK__PAIR_MANY)
		return hk__why(why, HK_ELIMIT,
			       "a batch of %u sends and receives on device memory; %u at most",
			       call->count, HK__PAIR_MANY);
	struct hk__pair_many *many = hk__mem_zalloc(gpu->alloc, 1, sizeof(*many));
	if (!many)
		return hk__why(why, HK_ENOMEM, "no memory for a batch");
	pairs_fill(gpu, call, (struct hk__pair_lists){ &many->call, many->ops, many->index });
	enum hk_status status = pairs_launch(gpu, call, &many->call, unit->pairs[PAIRS_MANY], why);
	hk__mem_free(gpu->alloc, many, 1, sizeof(*many));
	return status;
}

enum hk_status hk__gpu_set_messages(struct hk__gpu *gpu, uint32_t rank, uint64_t messages,
				    struct hk_why *why)
{
	const struct gpu_unit *unit = gpu->ranks[rank].unit;
	hk__cu_ptr peers = unit->segments[rank] + pairs_at(gpu) + sizeof(struct hk__pair_head);
	struct hk__pair_peer peer;
	struct gpu_visit visit;
	enum hk_status status = hk__unit_enter(gpu, unit, &visit, why);

	if (status != HK_OK)
		return status;
	hk__pair_peer_after(messages, &peer);
	for (uint32_t r = 0; r < gpu->spec.n && status == HK_OK; r++)
		status = hk__cuda_check(gpu->cu->to_device(peers + r * sizeof(peer), &peer,
							   sizeof(peer), unit->stream),
					"cuMemcpyHtoDAsync", why);
	if (status == HK_OK)
		status = hk__cuda_check(gpu->cu->stream_wait(unit->stream), "cuStreamSynchronize",
					why);
	hk__unit_leave(gpu, &visit);
	return status;
}
