/* SPDX-License-Identifier: Apache-2.0 */
/* region.c - see region.h. */
#include "gpu/region.h"

#include "base/fork.h"

#include <string.h>
#include <unistd.h>

/* ---- cards ---- */

enum hk_status hk__card_open(int ordinal, struct hk_why *why, struct hk__card *card_out)
{
	struct hk__card card = { .cu = hk__cuda_get(), .ordinal = ordinal };
	int maps = 0, fds = 0;

	if (!card.cu)
		return hk__why(why, HK_EINVAL,
			       "no CUDA driver is loaded: call CUDA before the group is created");
	enum hk_status status =
		hk__cuda_check(card.cu->device(&card.device, ordinal), "cuDeviceGet", why);
	if (status == HK_OK)
		status = hk__cuda_check(card.cu->uuid(card.uuid, card.device), "cuDeviceGetUuid",
					why);
	if (status == HK_OK)
		status = hk__cuda_check(card.cu->context(&card.context, card.device),
					"cuDevicePrimaryCtxRetain", why);
	if (status != HK_OK)
		return status;
	/* A driver that does not know them cannot. */
	card.maps = card.cu->attribute(&maps, HK__CU_DEVICE_MAPS, card.device) == HK__CU_SUCCESS &&
		    maps;
	card.fds =
		card.cu->attribute(&fds, HK__CU_DEVICE_FDS, card.device) == HK__CU_SUCCESS && fds;
	*card_out = card;
	return HK_OK;
}

void hk__card_close(struct hk__card *card)
{
	if (card->context)
		(void)card->cu->context_free(card->device);
	card->context = NULL;
}

enum hk_status hk__card_enter(const struct hk__card *card, int *mode_out, struct hk_why *why)
{
	hk__cu_context context;
	enum hk_status status =
		hk__cuda_check(card->cu->push(card->context), "cuCtxPushCurrent", why);

	if (status != HK_OK)
		return status;
	*mode_out = HK__CU_CAPTURE_RELAXED;
	status = hk__cuda_check(card->cu->capture_mode(mode_out),
				"cuThreadExchangeStreamCaptureMode", why);
	if (status != HK_OK)
		(void)card->cu->pop(&context);
	return status;
}

void hk__card_leave(const struct hk__card *card, int mode)
{
	hk__cu_context context;

	(void)card->cu->capture_mode(&mode);
	(void)card->cu->pop(&context);
}

static struct hk__cu_memory_spec card_memory(const struct hk__card *card, bool fds)
{
	return (struct hk__cu_memory_spec){ .type = HK__CU_MEMORY_PINNED,
					    .handles = fds ? HK__CU_HANDLE_FD : 0,
					    .where = { HK__CU_LOCATION_DEVICE, card->device } };
}

enum hk_status hk__card_grain(const struct hk__card *card, bool fds, size_t *bytes_out,
			      struct hk_why *why)
{
	struct hk__cu_memory_spec spec = card_memory(card, fds);

	return hk__cuda_check(card->cu->grain(bytes_out, &spec, HK__CU_GRAIN_BEST),
			      "cuMemGetAllocationGranularity", why);
}

/* ---- segments ---- */

static enum hk_status segment_export(const struct hk__card *card, struct hk__segment *segment,
				     struct hk_why *why)
{
	int fd = -1;
	enum hk_status status =
		hk__cuda_check(card->cu->memory_share(&fd, segment->memory, HK__CU_HANDLE_FD, 0),
			       "cuMemExportToShareableHandle", why);

	if (status != HK_OK)
		return status;
	segment->fd = hk__fd_open(fd);
	return segment->fd < 0 ? hk__why(why, HK_ENOMEM, "no memory to note a descriptor") : HK_OK;
}

enum hk_status hk__segment_make(const struct hk__card *card, enum hk__region_kind kind, bool shared,
				size_t bytes, struct hk_why *why, struct hk__segment *segment_out)
{
	struct hk__cu_memory_spec spec = card_memory(card, shared);
	struct hk__segment segment = HK__SEGMENT_NONE;
	enum hk_status status;

	segment.kind = kind;
	if (kind == HK__REGION_RANGE) {
		status = hk__cuda_check(card->cu->memory(&segment.memory, bytes, &spec, 0),
					"cuMemCreate", why);
		if (status == HK_OK && shared)
			status = segment_export(card, &segment, why);
	} else {
		status = hk__cuda_check(card->cu->alloc(&segment.at, bytes), "cuMemAlloc", why);
		if (status == HK_OK && shared)
			status = hk__cuda_check(card->cu->ipc(&segment.handle, segment.at),
						"cuIpcGetMemHandle", why);
	}
	if (status != HK_OK) {
		hk__segment_free(card, &segment);
		return status;
	}
	*segment_out = segment;
	return HK_OK;
}

void hk__segment_free(const struct hk__card *card, struct hk__segment *segment)
{
	if (segment->fd >= 0)
		hk__fd_close(segment->fd);
	if (segment->memory)
		(void)card->cu->memory_free(segment->memory);
	if (segment->at)
		(void)card->cu->free(segment->at);
	*segment = HK__SEGMENT_NONE;
}

/* ---- regions ---- */

static enum hk_status part_map(struct hk__region *region, uint32_t rank,
			       const struct hk__region_part *part, struct hk_why *why)
{
	const struct hk__cuda *cu = region->card.cu;
	hk__cu_ptr at = region->base + rank * region->stride;
	hk__cu_memory memory = part->memory;
	enum hk_status status = HK_OK;

	if (!part->here)
		status = hk__cuda_check(cu->memory_open(&memory, hk__mem_at((uint64_t)part->fd),
							HK__CU_HANDLE_FD),
					"cuMemImportFromShareableHandle", why);
	if (status != HK_OK)
		return status;
	status = hk__cuda_check(cu->map(at, region->stride, 0, memory, 0), "cuMemMap", why);
	if (status == HK_OK)
		region->at[rank] = at;
	/* What is mapped stays as long as it is. */
	if (!part->here)
		(void)cu->memory_free(memory);
	return status;
}

static enum hk_status part_open(struct hk__region *region, uint32_t rank,
				const struct hk__region_part *part, struct hk_why *why)
{
	const struct hk__cuda *cu = region->card.cu;

	if (part->here) {
		region->at[rank] = part->at;
		return HK_OK;
	}
	enum hk_status status =
		hk__cuda_check(cu->ipc_open(&region->at[rank], part->handle, HK__CU_IPC_PEER),
			       "cuIpcOpenMemHandle", why);
	region->opened[rank] = status == HK_OK;
	return status;
}

static enum hk_status region_reserve(struct hk__region *region, struct hk_why *why)
{
	return hk__cuda_check(region->card.cu->range(&region->base, region->n * region->stride, 0,
						     0, 0),
			      "cuMemAddressReserve", why);
}

/* Of all devices whose ranks use it. */
static enum hk_status region_allow(struct hk__region *region, const struct hk__region_spec *spec,
				   struct hk_why *why)
{
	struct hk__cu_access accesses[HK__REGION_RANKS];

	for (uint32_t i = 0; i < spec->ndevices; i++)
		accesses[i] = (struct hk__cu_access){ { HK__CU_LOCATION_DEVICE, spec->devices[i] },
						      HK__CU_ACCESS_READ_WRITE };
	return hk__cuda_check(region->card.cu->access(region->base, region->n * region->stride,
						      accesses, spec->ndevices),
			      "cuMemSetAccess", why);
}

/* Where there is no range: what is where, for kernels. */
static enum hk_status region_tabulate(struct hk__region *region, hk__cu_stream stream,
				      struct hk_why *why)
{
	const struct hk__cuda *cu = region->card.cu;
	size_t bytes = region->n * sizeof(region->at[0]);
	enum hk_status status = hk__cuda_check(cu->alloc(&region->table, bytes), "cuMemAlloc", why);

	if (status == HK_OK)
		status = hk__cuda_check(cu->to_device(region->table, region->at, bytes, stream),
					"cuMemcpyHtoDAsync", why);
	return status;
}

/* By a stream of its own: the default one may have to wait for others. */
static enum hk_status region_write(struct hk__region *region, const struct hk__region_spec *spec,
				   struct hk_why *why)
{
	const struct hk__cuda *cu = region->card.cu;
	hk__cu_stream stream;
	enum hk_status status = hk__cuda_check(cu->stream(&stream, HK__CU_STREAM_NON_BLOCKING),
					       "cuStreamCreate", why);

	if (status != HK_OK)
		return status;
	if (region->kind != HK__REGION_RANGE)
		status = region_tabulate(region, stream, why);
	for (uint32_t r = 0; r < region->n && status == HK_OK; r++) {
		if (spec->parts[r].here)
			status = hk__cuda_check(cu->set(region->at[r], 0, region->stride, stream),
						"cuMemsetD8Async", why);
	}
	if (status == HK_OK)
		status = hk__cuda_check(cu->stream_wait(stream), "cuStreamSynchronize", why);
	(void)cu->stream_free(stream);
	return status;
}

static enum hk_status region_fill(struct hk__region *region, const struct hk__region_spec *spec,
				  struct hk_why *why)
{
	bool ranged = region->kind == HK__REGION_RANGE;
	enum hk_status status = ranged ? region_reserve(region, why) : HK_OK;

	for (uint32_t r = 0; r < region->n && status == HK_OK; r++)
		status = ranged ? part_map(region, r, &spec->parts[r], why)
				: part_open(region, r, &spec->parts[r], why);
	if (status == HK_OK && ranged)
		status = region_allow(region, spec, why);
	return status == HK_OK ? region_write(region, spec, why) : status;
}

/* What the driver says changes nothing: all of it is being left. */
static void region_clear(struct hk__region *region)
{
	const struct hk__cuda *cu = region->card.cu;

	for (uint32_t r = 0; r < region->n; r++) {
		if (region->opened[r])
			(void)cu->ipc_close(region->at[r]);
		else if (region->base && region->at[r])
			(void)cu->unmap(region->at[r], region->stride);
	}
	if (region->base)
		(void)cu->range_free(region->base, region->n * region->stride);
	if (region->table)
		(void)cu->free(region->table);
}

enum hk_status hk__region_make(const struct hk__card *card, const struct hk__region_spec *spec,
			       const struct hk_alloc *alloc, struct hk_why *why,
			       struct hk__region **region_out)
{
	struct hk__region *region = hk__mem_zalloc(alloc, 1, sizeof(*region));

	hk_assert(spec->n <= HK__REGION_RANKS && spec->ndevices <= HK__REGION_RANKS);
	if (!region)
		return hk__why(why, HK_ENOMEM, "no memory for a region");
	region->alloc = alloc;
	region->kind = spec->kind;
	region->n = spec->n;
	region->stride = spec->stride;
	enum hk_status status = hk__card_open(card->ordinal, why, &region->card);
	if (status != HK_OK)
		goto err_free;
	status = region_fill(region, spec, why);
	if (status != HK_OK)
		goto err_clear;
	*region_out = region;
	return HK_OK;

err_clear:
	region_clear(region);
	hk__card_close(&region->card);
err_free:
	hk__mem_free(alloc, region, 1, sizeof(*region));
	return status;
}

void hk__region_free(struct hk__region *region)
{
	int mode;

	if (!region)
		return;
	if (hk__card_enter(&region->card, &mode, NULL) == HK_OK) {
		region_clear(region);
		hk__card_leave(&region->card, mode);
	}
	hk__card_close(&region->card);
	hk__mem_free(region->alloc, region, 1, sizeof(*region));
}
