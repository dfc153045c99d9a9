/* SPDX-License-Identifier: Apache-2.0 */
/*
 * domain.c - the GPUs that ranks of this process are on, and the segments by which
 * they, and ranks of other processes, reach each other.
 *
 * Where all ranks are here, nobody can ask the others where they are: all segments
 * lie on the GPU of the first to join, and who joins later must reach that one.
 * Apart, each rank has its own, on its own GPU, which other processes open.
 */
#include "exec/device/unit.h"

#include <string.h>

#define BLOCKS_PER_SM 1u
/* A block is worth so many bytes of a chunk. */
#define SLICE_MIN (4u << 10)
/* And not more: who waits for it goes on meanwhile. */
#define SLICE_MAX (2u << 20)
#define LINES_BYTES (256u << 10)
#define BUFS_BYTES (1u << 20)
#define BUFS_BYTES_APART (2u << 20) /* where all messages go through them */
/* Other processes map a segment by whole pages of the driver's. */
#define SEGMENT_GRAIN (UINT64_C(2) << 20)

/* ---- the context ---- */

enum hk_status hk__unit_enter(const struct hk__gpu *gpu, const struct gpu_unit *unit,
			      struct gpu_visit *visit, struct hk_why *why)
{
	enum hk_status status =
		hk__cuda_check(gpu->cu->push(unit->context), "cuCtxPushCurrent", why);

	visit->mode = HK__CU_CAPTURE_RELAXED;
	if (status == HK_OK)
		status = hk__cuda_check(gpu->cu->capture_mode(&visit->mode),
					"cuThreadExchangeStreamCaptureMode", why);
	return status;
}

void hk__unit_leave(const struct hk__gpu *gpu, struct gpu_visit *visit)
{
	hk__cu_context context;

	(void)gpu->cu->capture_mode(&visit->mode);
	(void)gpu->cu->pop(&context);
}

/* ---- units ---- */

static enum hk_status unit_load(struct hk__gpu *gpu, struct gpu_unit *unit, struct hk_why *why)
{
	const struct hk__cuda *cu = gpu->cu;
	enum hk_status status = hk__cuda_check(cu->module(&unit->module, hk__cuda_image()),
					       "cuModuleLoadData", why);

	for (unsigned i = 0; i < 2 * HK_TYPE_COUNT && status == HK_OK; i++) {
		unsigned lines = i % 2, t = i / 2;
		char name[32];

		snprintf(name, sizeof(name), "hk_%s_%s", lines ? "lines" : "flat",
			 hk_type_name((enum hk_type)t));
		status =
			hk__cuda_check(cu->function(&unit->functions[lines][t], unit->module, name),
				       name, why);
	}
	for (unsigned i = 0; i < PAIRS_COUNT && status == HK_OK; i++) {
		static const char *const names[] = { "hk_pair_small", "hk_pair_few",
						     "hk_pair_many" };

		status = hk__cuda_check(cu->function(&unit->pairs[i], unit->module, names[i]),
					names[i], why);
	}
	if (status == HK_OK)
		status = hk__cuda_check(cu->stream(&unit->stream, HK__CU_STREAM_NON_BLOCKING),
					"cuStreamCreate", why);
	return status;
}

/* How many blocks run at the same time. */
static enum hk_status unit_measure(struct hk__gpu *gpu, struct gpu_unit *unit, struct hk_why *why)
{
	int sms = 0, least = 1 << 30;
	enum hk_status status =
		hk__cuda_check(gpu->cu->attribute(&sms, HK__CU_DEVICE_SMS, unit->device),
			       "cuDeviceGetAttribute", why);

	for (unsigned i = 0; i < 2 * HK_TYPE_COUNT && status == HK_OK; i++) {
		int blocks = 0;

		status = hk__cuda_check(gpu->cu->occupancy(&blocks, unit->functions[i % 2][i / 2],
							   (int)THREADS, SHARED_MAX),
					"cuOccupancyMaxActiveBlocksPerMultiprocessor", why);
		least = blocks < least ? blocks : least;
	}
	if (status != HK_OK)
		return status;
	unit->sms = gpu->spec.sms && gpu->spec.sms < (uint32_t)sms ? gpu->spec.sms : (uint32_t)sms;
	unit->resident = unit->sms * (uint32_t)least;
	return HK_OK;
}

static enum hk_status peer_enable(struct hk__gpu *gpu, const struct gpu_unit *from,
				  const struct gpu_unit *to, struct hk_why *why)
{
	struct gpu_visit visit;
	int can = 0;
	enum hk_status status = hk__cuda_check(gpu->cu->can_peer(&can, from->device, to->device),
					       "cuDeviceCanAccessPeer", why);

	if (status == HK_OK && !can)
		status = hk__why(why, HK_EINVAL,
				 "GPU %d cannot access the memory of GPU %d: set HOCKET_GPU=staged",
				 from->ordinal, to->ordinal);
	if (status != HK_OK)
		return status;
	status = hk__unit_enter(gpu, from, &visit, why);
	if (status != HK_OK)
		return status;
	int result = gpu->cu->peer(to->context, 0);
	if (result != HK__CU_ERROR_PEER_ALREADY)
		status = hk__cuda_check(result, "cuCtxEnablePeerAccess", why);
	hk__unit_leave(gpu, &visit);
	return status;
}

/* In its context: other processes' segments. What the driver says changes nothing. */
static void unit_unlink(struct hk__gpu *gpu, struct gpu_unit *unit)
{
	for (uint32_t r = 0; r < gpu->spec.n; r++) {
		if (unit->opened[r])
			(void)gpu->cu->ipc_close(unit->segments[r]);
		unit->opened[r] = false;
	}
}

static void unit_close(struct hk__gpu *gpu, struct gpu_unit *unit)
{
	const struct hk__cuda *cu = gpu->cu;
	struct gpu_visit visit;

	/* As above: all of it is being left. */
	if (unit->context && hk__unit_enter(gpu, unit, &visit, NULL) == HK_OK) {
		unit_unlink(gpu, unit);
		if (unit->stream)
			(void)cu->stream_free(unit->stream);
		if (unit->module)
			(void)cu->module_free(unit->module);
		hk__unit_leave(gpu, &visit);
	}
	if (unit->context)
		(void)cu->context_free(unit->device);
	hk__mem_free(gpu->alloc, unit, 1, sizeof(*unit));
}

static enum hk_status unit_open(struct hk__gpu *gpu, int ordinal, struct hk_why *why,
				struct gpu_unit **unit_out)
{
	const struct hk__cuda *cu = gpu->cu;
	struct gpu_unit *unit = hk__mem_zalloc(gpu->alloc, 1, sizeof(*unit));
	struct gpu_visit visit;

	if (!unit)
		return hk__why(why, HK_ENOMEM, "no memory for a device");
	unit->index = gpu->nunits;
	unit->ordinal = ordinal;
	enum hk_status status =
		hk__cuda_check(cu->device(&unit->device, ordinal), "cuDeviceGet", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->uuid(unit->uuid, unit->device), "cuDeviceGetUuid", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->context(&unit->context, unit->device),
					"cuDevicePrimaryCtxRetain", why);
	if (status == HK_OK)
		status = hk__unit_enter(gpu, unit, &visit, why);
	if (status == HK_OK) {
		status = unit_load(gpu, unit, why);
		if (status == HK_OK)
			status = unit_measure(gpu, unit, why);
		hk__unit_leave(gpu, &visit);
	}
	for (uint32_t u = 0; u < gpu->nunits && status == HK_OK; u++) {
		status = peer_enable(gpu, unit, gpu->units[u], why);
		if (status == HK_OK)
			status = peer_enable(gpu, gpu->units[u], unit, why);
	}
	if (status == HK_OK)
		*unit_out = unit;
	else
		unit_close(gpu, unit);
	return status;
}

static enum hk_status unit_find(struct hk__gpu *gpu, int ordinal, struct hk_why *why,
				struct gpu_unit **unit_out)
{
	for (uint32_t u = 0; u < gpu->nunits; u++) {
		if (gpu->units[u]->ordinal == ordinal) {
			*unit_out = gpu->units[u];
			return HK_OK;
		}
	}
	if (gpu->nunits == UNITS_MAX)
		return hk__why(why, HK_ELIMIT, "ranks of one process on more than %u GPUs",
			       UNITS_MAX);
	enum hk_status status = unit_open(gpu, ordinal, why, unit_out);
	if (status == HK_OK)
		gpu->units[gpu->nunits++] = *unit_out;
	return status;
}

/* ---- segments ---- */

static void limits_set(struct hk__gpu *gpu, uint32_t blocks)
{
	gpu->limits =
		(struct hk__flat_limits){ .blocks = hk__min(hk__max(blocks, 1), HK__FLAT_BLOCKS),
					  .slice_min = SLICE_MIN,
					  .slice_max = SLICE_MAX,
					  .lines_bytes = LINES_BYTES,
					  .bufs_bytes =
						  gpu->spec.apart ? BUFS_BYTES_APART : BUFS_BYTES };
	gpu->segment_bytes = hk__flat_segment_bytes(&gpu->limits) + gpu->spec.more_bytes;
	gpu->segment_bytes = (gpu->segment_bytes + 127) / 128 * 128;
}

/* All blocks of all ranks of a device run at the same time, or wait for ever. */
static enum hk_status too_many(uint32_t ranks, const struct gpu_unit *unit, struct hk_why *why)
{
	return hk__why(why, HK_ELIMIT,
		       "%u ranks on one GPU, but only %u blocks run at the same time on the %u "
		       "multiprocessors in use: raise HOCKET_GPU_SMS",
		       ranks, unit->resident, unit->sms);
}

static uint32_t unit_blocks(const struct gpu_unit *unit)
{
	return hk__min(unit->sms * BLOCKS_PER_SM, unit->resident);
}

/* In the unit's context: zeroed memory of so many bytes. */
static enum hk_status segment_make(struct hk__gpu *gpu, struct gpu_unit *unit, uint64_t bytes,
				   struct hk_why *why, hk__cu_ptr *at_out)
{
	const struct hk__cuda *cu = gpu->cu;
	enum hk_status status = hk__cuda_check(cu->alloc(at_out, bytes), "cuMemAlloc", why);

	if (status != HK_OK)
		return status;
	status = hk__cuda_check(cu->set(*at_out, 0, bytes, unit->stream), "cuMemsetD8Async", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->stream_wait(unit->stream), "cuStreamSynchronize", why);
	if (status != HK_OK) {
		(void)cu->free(*at_out);
		*at_out = 0;
	}
	return status;
}

static enum hk_status reports_make(struct hk__gpu *gpu, struct hk_why *why)
{
	const struct hk__cuda *cu = gpu->cu;
	size_t bytes = gpu->spec.n * sizeof(struct hk__flat_report);
	void *reports = NULL;
	enum hk_status status =
		hk__cuda_check(cu->alloc_host(&reports, bytes,
					      HK__CU_HOST_PORTABLE | HK__CU_HOST_DEVICEMAP),
			       "cuMemHostAlloc", why);

	if (status != HK_OK)
		return status;
	gpu->reports = reports;
	memset(reports, 0, bytes);
	return hk__cuda_check(cu->host_pointer(&gpu->reports_at, reports, 0),
			      "cuMemHostGetDevicePointer", why);
}

/* The first unit has what all of this process need. */
static enum hk_status unit_begin(struct hk__gpu *gpu, struct gpu_unit *unit, struct hk_why *why)
{
	enum hk_status status = gpu->reports ? HK_OK : reports_make(gpu, why);

	if (status != HK_OK || gpu->spec.apart || gpu->segments)
		return status;
	if (gpu->spec.n > unit->resident)
		return too_many(gpu->spec.n, unit, why);
	limits_set(gpu, unit_blocks(unit) / gpu->spec.n);
	return segment_make(gpu, unit, gpu->spec.n * gpu->segment_bytes, why, &gpu->segments);
}

/* ---- joining ---- */

static enum hk_status rank_streams(struct hk__gpu *gpu, struct gpu_rank *self, struct hk_why *why)
{
	const struct hk__cuda *cu = gpu->cu;
	enum hk_status status = hk__cuda_check(cu->stream(&self->own, 0), "cuStreamCreate", why);

	if (status != HK_OK)
		return status;
	status = hk__cuda_check(cu->event(&self->event, HK__CU_EVENT_NO_TIMING), "cuEventCreate",
				why);
	if (status != HK_OK)
		goto err_free_stream;
	status = hk__cuda_check(cu->event(&self->done, HK__CU_EVENT_NO_TIMING), "cuEventCreate",
				why);
	if (status != HK_OK)
		goto err_free_event;
	return HK_OK;

err_free_event:
	(void)cu->event_free(self->event);
err_free_stream:
	(void)cu->stream_free(self->own);
	return status;
}

static enum hk_status rank_begin(struct hk__gpu *gpu, struct gpu_unit *unit, uint32_t rank,
				 struct hk_why *why)
{
	struct gpu_visit visit;
	enum hk_status status = hk__unit_enter(gpu, unit, &visit, why);

	if (status != HK_OK)
		return status;
	status = unit_begin(gpu, unit, why);
	if (status == HK_OK && !gpu->spec.apart &&
	    (unit->ranks + 1) * gpu->limits.blocks > unit->resident)
		status = too_many(unit->ranks + 1, unit, why);
	if (status == HK_OK)
		status = rank_streams(gpu, &gpu->ranks[rank], why);
	hk__unit_leave(gpu, &visit);
	/* Once: who has joined reads them without the lock. */
	for (uint32_t r = 0; r < gpu->spec.n && !gpu->spec.apart && !unit->ranks; r++)
		unit->segments[r] = gpu->segments + r * gpu->segment_bytes;
	return status;
}

enum hk_status hk__gpu_join(struct hk__gpu *gpu, uint32_t rank, int ordinal, struct hk_why *why)
{
	struct gpu_unit *unit = NULL;

	pthread_mutex_lock(&gpu->lock);
	enum hk_status status = unit_find(gpu, ordinal, why, &unit);
	hk_assert(unit || status != HK_OK);
	if (status == HK_OK)
		status = rank_begin(gpu, unit, rank, why);
	if (status == HK_OK) {
		unit->ranks++;
		gpu->ranks[rank].unit = unit;
	}
	pthread_mutex_unlock(&gpu->lock);
	return status;
}

int hk__gpu_ordinal(const struct hk__gpu *gpu, uint32_t rank)
{
	return gpu->ranks[rank].unit ? gpu->ranks[rank].unit->ordinal : -1;
}

/* ---- ranks of several processes ---- */

void hk__gpu_offer(const struct hk__gpu *gpu, uint32_t rank, struct hk__gpu_offer *offer_out)
{
	const struct gpu_unit *unit = gpu->ranks[rank].unit;

	*offer_out = (struct hk__gpu_offer){ .blocks = unit_blocks(unit) };
	memcpy(offer_out->uuid, unit->uuid, sizeof(offer_out->uuid));
}

/* Of the GPU that is most crowded; 0: too many. The same on all ranks. */
static uint32_t offers_blocks(const struct hk__gpu_offer *offers, uint32_t n)
{
	uint32_t blocks = UINT32_MAX;

	for (uint32_t r = 0; r < n; r++) {
		uint32_t ranks = 1;

		for (uint32_t q = 0; q < n; q++)
			ranks += q != r &&
				 memcmp(offers[q].uuid, offers[r].uuid, sizeof(offers->uuid)) == 0;
		blocks = hk__min(blocks, offers[r].blocks / ranks);
	}
	return blocks;
}

enum hk_status hk__gpu_settle(struct hk__gpu *gpu, uint32_t rank,
			      const struct hk__gpu_offer *offers, struct hk_why *why,
			      struct hk__gpu_ticket *ticket_out)
{
	struct gpu_rank *self = &gpu->ranks[rank];
	uint32_t blocks = offers_blocks(offers, gpu->spec.n);
	struct hk__cu_ipc handle;
	struct gpu_visit visit;

	if (!blocks)
		return too_many(gpu->spec.n, self->unit, why);
	pthread_mutex_lock(&gpu->lock);
	limits_set(gpu, blocks);
	uint64_t bytes = (gpu->segment_bytes + SEGMENT_GRAIN - 1) / SEGMENT_GRAIN * SEGMENT_GRAIN;
	enum hk_status status = hk__unit_enter(gpu, self->unit, &visit, why);
	if (status == HK_OK) {
		status = segment_make(gpu, self->unit, bytes, why, &self->segment);
		if (status == HK_OK)
			status = hk__cuda_check(gpu->cu->ipc(&handle, self->segment),
						"cuIpcGetMemHandle", why);
		hk__unit_leave(gpu, &visit);
	}
	pthread_mutex_unlock(&gpu->lock);
	if (status != HK_OK)
		return status;
	memcpy(ticket_out->handle, handle.bytes, sizeof(ticket_out->handle));
	ticket_out->at = self->segment;
	return HK_OK;
}

static enum hk_status unit_link(struct hk__gpu *gpu, struct gpu_unit *unit,
				const struct hk__gpu_ticket *tickets, struct hk_why *why)
{
	enum hk_status status = HK_OK;

	for (uint32_t r = 0; r < gpu->spec.n && status == HK_OK; r++) {
		struct hk__cu_ipc handle;

		if (unit->segments[r])
			continue; /* by another rank of this process */
		if (gpu->ranks[r].here) {
			unit->segments[r] = tickets[r].at;
			continue;
		}
		memcpy(handle.bytes, tickets[r].handle, sizeof(handle.bytes));
		status = hk__cuda_check(gpu->cu->ipc_open(&unit->segments[r], handle,
							  HK__CU_IPC_PEER),
					"cuIpcOpenMemHandle", why);
		unit->opened[r] = status == HK_OK;
	}
	return status;
}

enum hk_status hk__gpu_link(struct hk__gpu *gpu, uint32_t rank,
			    const struct hk__gpu_ticket *tickets, struct hk_why *why)
{
	struct gpu_unit *unit = gpu->ranks[rank].unit;
	struct gpu_visit visit;

	pthread_mutex_lock(&gpu->lock);
	gpu->ranks[rank].linked = true; /* as far as it comes */
	enum hk_status status = hk__unit_enter(gpu, unit, &visit, why);
	if (status == HK_OK) {
		status = unit_link(gpu, unit, tickets, why);
		hk__unit_leave(gpu, &visit);
	}
	pthread_mutex_unlock(&gpu->lock);
	return status;
}

void hk__gpu_unlink(struct hk__gpu *gpu, uint32_t rank)
{
	struct gpu_visit visit;
	bool others = false;

	pthread_mutex_lock(&gpu->lock);
	gpu->ranks[rank].linked = false;
	for (uint32_t r = 0; r < gpu->spec.n; r++)
		others |= gpu->ranks[r].linked;
	for (uint32_t u = 0; u < gpu->nunits && !others; u++) {
		if (hk__unit_enter(gpu, gpu->units[u], &visit, NULL) != HK_OK)
			continue;
		unit_unlink(gpu, gpu->units[u]);
		hk__unit_leave(gpu, &visit);
	}
	pthread_mutex_unlock(&gpu->lock);
}

/* The last two calls of a round zero lines, each those of the other turn (interp.h). */
static enum hk_status lines_zero(struct hk__gpu *gpu, const struct gpu_unit *unit, hk__cu_ptr lot,
				 uint64_t epoch, struct hk_why *why)
{
	enum hk_status status = HK_OK;

	for (uint32_t last = UINT32_MAX - 1; last && status == HK_OK; last++) {
		uint64_t bytes = gpu->limits.lines_bytes;
		hk__cu_ptr lines = lot + sizeof(struct hk__flat_lot) + (~last & 1) * bytes;

		if ((uint32_t)epoch >= last)
			status = hk__cuda_check(gpu->cu->set(lines, 0, bytes, unit->stream),
						"cuMemsetD8Async", why);
	}
	return status;
}

enum hk_status hk__gpu_set_epoch(struct hk__gpu *gpu, uint32_t rank, uint64_t epoch,
				 struct hk_why *why)
{
	const struct gpu_unit *unit = gpu->ranks[rank].unit;
	struct hk__flat_lot head;
	struct gpu_visit visit;
	enum hk_status status = hk__unit_enter(gpu, unit, &visit, why);

	if (status != HK_OK)
		return status;
	hk__flat_lot_after(epoch, &head);
	for (uint32_t b = 0; b < gpu->limits.blocks && status == HK_OK; b++) {
		hk__cu_ptr lot = unit->segments[rank] + b * hk__flat_lot_bytes(&gpu->limits);

		status = hk__cuda_check(gpu->cu->to_device(lot, &head, sizeof(head), unit->stream),
					"cuMemcpyHtoDAsync", why);
		if (status == HK_OK)
			status = lines_zero(gpu, unit, lot, epoch, why);
	}
	if (status == HK_OK)
		status = hk__cuda_check(gpu->cu->stream_wait(unit->stream), "cuStreamSynchronize",
					why);
	hk__unit_leave(gpu, &visit);
	return status;
}

/* ---- calls of a rank, one after the other ---- */

/* The stream of the call before may be gone: it is compared, and never used again. */
enum hk_status hk__rank_follow(struct hk__gpu *gpu, struct gpu_rank *rank, hk__cu_stream stream,
			       struct hk_why *why)
{
	bool other = rank->last && rank->last != stream;
	int captures = 0;

	rank->last = stream;
	/* Inside a graph the order is the caller's. */
	if (!other || gpu->cu->capturing(stream, &captures) != HK__CU_SUCCESS || captures)
		return HK_OK;
	return hk__cuda_check(gpu->cu->event_follow(stream, rank->done, 0), "cuStreamWaitEvent",
			      why);
}

enum hk_status hk__rank_note(struct hk__gpu *gpu, struct gpu_rank *rank, hk__cu_stream stream,
			     struct hk_why *why)
{
	int captures = 0;

	if (gpu->cu->capturing(stream, &captures) != HK__CU_SUCCESS || captures) {
		rank->captured = true;
		return HK_OK;
	}
	return hk__cuda_check(gpu->cu->event_record(rank->done, stream), "cuEventRecord", why);
}

/* What has failed on the device is reported elsewhere. */
static void unit_finish(struct hk__gpu *gpu, const struct gpu_unit *unit, hk__cu_event event)
{
	struct gpu_visit visit;

	if (hk__unit_enter(gpu, unit, &visit, NULL) != HK_OK)
		return;
	(void)(event ? gpu->cu->event_wait(event) : gpu->cu->finish());
	hk__unit_leave(gpu, &visit);
}

void hk__gpu_finish(struct hk__gpu *gpu, uint32_t rank)
{
	const struct gpu_rank *self = &gpu->ranks[rank];

	/* Of ranks of one process, whoever frees the memory waits for all of it. */
	if (self->unit && gpu->spec.apart)
		unit_finish(gpu, self->unit, self->captured ? NULL : self->done);
}

/* ---- all of it ---- */

enum hk_status hk__gpu_create(const struct hk__gpu_spec *spec, struct hk_why *why,
			      struct hk__gpu **gpu_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
	const struct hk__cuda *cu = hk__cuda_get();
	int count = 1;

	if (!cu || !hk__cuda_image())
		return hk__why(why, HK_EINVAL,
			       "device memory, but this build has no GPU code: build it with nvcc");
	if (spec->n > HK__FLAT_RANKS)
		return hk__why(why, HK_ELIMIT, "device memory: %u ranks; at most %u are supported",
			       spec->n, HK__FLAT_RANKS);
	enum hk_status status = hk__cuda_check(cu->count(&count), "cuDeviceGetCount", why);
	if (status != HK_OK)
		return status;
	struct hk__gpu *gpu = hk__mem_zalloc(alloc, 1, sizeof(*gpu));
	if (!gpu)
		return hk__why(why, HK_ENOMEM, "no memory for a device");
	gpu->spec = *spec;
	gpu->spec.here = NULL;
	gpu->alloc = alloc;
	gpu->cu = cu;
	/* Other ranks may join on another GPU, or be there. */
	gpu->far = spec->apart || count > 1;
	for (uint32_t r = 0; r < spec->n; r++)
		gpu->ranks[r].here = !spec->here || spec->here[r];
	pthread_mutex_init(&gpu->lock, NULL);
	hk__array_init(&gpu->plans, alloc, sizeof(void *));
	hk__array_init(&gpu->programs, alloc, sizeof(void *));
	hk__array_init(&gpu->choices, alloc, sizeof(void *));
	*gpu_out = gpu;
	return HK_OK;
}

/* What ranks have, and all of them together; as in unit_close, nobody is told. */
static void segments_free(struct hk__gpu *gpu)
{
	const struct hk__cuda *cu = gpu->cu;
	struct gpu_visit visit;

	for (uint32_t r = 0; r < gpu->spec.n; r++) {
		const struct gpu_rank *self = &gpu->ranks[r];

		if (!self->unit || hk__unit_enter(gpu, self->unit, &visit, NULL) != HK_OK)
			continue;
		(void)cu->stream_free(self->own);
		(void)cu->event_free(self->event);
		(void)cu->event_free(self->done);
		if (self->segment)
			(void)cu->free(self->segment);
		hk__unit_leave(gpu, &visit);
	}
	if (!gpu->nunits || hk__unit_enter(gpu, gpu->units[0], &visit, NULL) != HK_OK)
		return;
	if (gpu->segments)
		(void)cu->free(gpu->segments);
	if (gpu->reports)
		(void)cu->free_host(gpu->reports);
	hk__unit_leave(gpu, &visit);
}

void hk__gpu_destroy(struct hk__gpu *gpu)
{
	if (!gpu)
		return;
	for (uint32_t u = 0; u < gpu->nunits; u++)
		unit_finish(gpu, gpu->units[u], NULL);
	hk__gpu_forget(gpu);
	segments_free(gpu);
	for (uint32_t u = gpu->nunits; u-- > 0;)
		unit_close(gpu, gpu->units[u]);
	pthread_mutex_destroy(&gpu->lock);
	hk__mem_free(gpu->alloc, gpu, 1, sizeof(*gpu));
}
