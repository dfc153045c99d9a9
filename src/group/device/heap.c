/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - symmetric heaps in device memory: made, handed out, freed, and left when their
 * group fails.
 *
 * No host looks while ranks wait for each other on their devices. When a group fails, its
 * heaps stop: kernels that wait find a word of host memory set, and streams that wait find
 * the word that they wait for written.
 */
#include "group/device/heap.h"

#include "exec/wait.h"
#include "group/device/device.h"

#include <string.h>

#define ALIGN_DEFAULT 256u
#define BYTES_MAX ((size_t)1 << 40)

/* Where what the caller uses begins: behind the signals of barriers. */
static size_t heap_first(uint32_t n)
{
	size_t bytes = (size_t)HK_DEVICE_LANES * n * sizeof(uint64_t);

	return (bytes + ALIGN_DEFAULT - 1) / ALIGN_DEFAULT * ALIGN_DEFAULT;
}

/* ---- the end of groups ---- */

static void heap_stop(struct hk_device_heap *heap)
{
	const struct hk__awaited *awaited = heap->awaited.items;
	const struct hk__cuda *cu = heap->card.cu;
	int mode;

	pthread_mutex_lock(&heap->lock);
	if (!heap->stopped) {
		heap->stopped = true;
		__atomic_store_n(heap->stop, 1, __ATOMIC_RELEASE);
		if (heap->awaited.count && hk__card_enter(&heap->card, &mode, NULL) == HK_OK) {
			for (size_t i = 0; i < heap->awaited.count; i++)
				(void)cu->long_write(heap->stream,
						     (hk__cu_ptr)(uintptr_t)heap->view.own +
							     awaited[i].offset,
						     awaited[i].value, 0);
			hk__card_leave(&heap->card, mode);
		}
	}
	pthread_mutex_unlock(&heap->lock);
}

void hk__group_heaps_stop(struct hk_group *group)
{
	for (struct hk_device_heap *heap = group->heaps; heap; heap = heap->next)
		heap_stop(heap);
}

/* Where groups fail: one that has meanwhile is told at once. */
static void heap_list(void *ctx)
{
	struct hk_device_heap *heap = ctx;

	heap->next = heap->group->heaps;
	heap->group->heaps = heap;
	if (heap->group->failed != HK_OK)
		heap_stop(heap);
}

static void heap_unlist(void *ctx)
{
	struct hk_device_heap *heap = ctx, **link = &heap->group->heaps;

	while (*link != heap)
		link = &(*link)->next;
	*link = heap->next;
}

/* ---- making one ---- */

/* Now, as nobody waits on the device: loading may have to wait until nobody does. */
static enum hk_status heap_load(struct hk_device_heap *heap, struct hk_why *why)
{
	const struct hk__cuda *cu = heap->card.cu;

	if (!hk__cuda_image())
		return HK_OK;
	enum hk_status status = hk__cuda_check(cu->module(&heap->module, hk__cuda_image()),
					       "cuModuleLoadData", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->function(&heap->add, heap->module, "hk_word_add"),
					"hk_word_add", why);
	return status;
}

/* What this rank has for itself. */
static enum hk_status heap_open(struct hk_device_heap *heap, struct hk_why *why)
{
	const struct hk__cuda *cu = heap->card.cu;
	int least, greatest, mode;
	void *stop = NULL;
	enum hk_status status = hk__card_enter(&heap->card, &mode, why);

	if (status != HK_OK)
		return status;
	status = heap_load(heap, why);
	if (status == HK_OK)
		status =
			hk__cuda_check(cu->alloc_host(&stop, sizeof(*heap->stop),
						      HK__CU_HOST_PORTABLE | HK__CU_HOST_DEVICEMAP),
				       "cuMemHostAlloc", why);
	if (status == HK_OK) {
		heap->stop = stop;
		*heap->stop = 0;
		status = hk__cuda_check(cu->host_pointer(&heap->stop_at, stop, 0),
					"cuMemHostGetDevicePointer", why);
	}
	/* Streams that differ in priority share no queue: this one is never behind theirs. */
	if (status == HK_OK)
		status = hk__cuda_check(cu->priorities(&least, &greatest),
					"cuCtxGetStreamPriorityRange", why);
	if (status == HK_OK)
		status = hk__cuda_check(cu->stream_ranked(&heap->stream, HK__CU_STREAM_NON_BLOCKING,
							  greatest),
					"cuStreamCreateWithPriority", why);
	hk__card_leave(&heap->card, mode);
	return status;
}

/* What the driver says changes nothing: all of it is being left. */
static void heap_close(struct hk_device_heap *heap)
{
	const struct hk__cuda *cu = heap->card.cu;
	int mode;

	if (!heap->card.context)
		return;
	if (hk__card_enter(&heap->card, &mode, NULL) == HK_OK) {
		if (heap->module)
			(void)cu->module_free(heap->module);
		if (heap->stream)
			(void)cu->stream_free(heap->stream);
		if (heap->stop)
			(void)cu->free_host(heap->stop);
		hk__segment_free(&heap->card, &heap->segment);
		hk__card_leave(&heap->card, mode);
	}
	hk__card_close(&heap->card);
}

static void heap_view(struct hk_device_heap *heap)
{
	const struct hk__region *region = heap->region;

	heap->view = (struct hk_device_view){
		.size = sizeof(heap->view),
		.rank = heap->group->rank,
		.n = heap->group->n,
		.base = hk__mem_at(region->base),
		.stride = region->stride,
		.bases = hk__mem_at(region->table),
		.own = hk__mem_at(region->at[heap->group->rank]),
		.stop = hk__mem_at(heap->stop_at),
		.near = heap->near,
	};
}

static void heap_destroy(struct hk_device_heap *heap)
{
	heap_close(heap);
	hk__space_fini(&heap->space);
	hk__array_fini(&heap->awaited);
	pthread_mutex_destroy(&heap->lock);
	hk__mem_free(heap->alloc, heap, 1, sizeof(*heap));
}

static struct hk_device_heap *heap_new(struct hk_group *group,
				       const struct hk_device_heap_opts *opts)
{
	struct hk_device_heap *heap = hk__mem_zalloc(group->alloc, 1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->group = group;
	heap->alloc = group->alloc;
	heap->timeout_ns = opts->timeout_ns ? opts->timeout_ns : group->timeout_ns;
	heap->segment = HK__SEGMENT_NONE;
	heap->share = hk__heap_share_get(group);
	pthread_mutex_init(&heap->lock, NULL);
	hk__array_init(&heap->awaited, heap->alloc, sizeof(struct hk__awaited));
	hk__space_init(&heap->space, heap->alloc, 0, 0);
	if (!heap->share) {
		heap_destroy(heap);
		return NULL;
	}
	return heap;
}

/* What all ranks refuse alike. */
static enum hk_status heap_refuse(struct hk_group *group, size_t bytes)
{
	if (hk_group_hosts(group) > 1)
		return hk__group_refuse(group, HK_EINVAL,
					"device heap: the ranks are on %u hosts, and device memory "
					"is reached within one: make a heap for each host's ranks "
					"(hk_group_split)",
					hk_group_hosts(group));
	if (group->n > HK__REGION_RANKS)
		return hk__group_refuse(group, HK_ELIMIT, "device heap: %u ranks; at most %u",
					group->n, HK__REGION_RANKS);
	if (!bytes || bytes > BYTES_MAX)
		return hk__group_refuse(group, HK_EINVAL, "device heap: %zu bytes", bytes);
	if (group->batching)
		return hk__group_refuse(group, HK_EINVAL,
					"device heap: inside a batch: end the batch first");
	return hk__group_failed(group);
}

/* All ranks are there, and none of them can fail alone any more, but by what it needs itself. */
static enum hk_status heap_finish(struct hk_device_heap *heap, uint64_t deadline_ns)
{
	struct hk_group *group = heap->group;
	unsigned char all[HK__REGION_RANKS];
	unsigned char own = heap_open(heap, &group->why) == HK_OK;
	enum hk_status status = hk__heap_gather(group, deadline_ns, &own, all, 1);

	for (uint32_t r = 0; r < group->n && status == HK_OK; r++) {
		if (!all[r])
			status = own ? hk__group_refuse(group, HK_EIO,
							"device heap: rank %u could not go on", r)
				     : HK_EIO;
	}
	return status;
}

enum hk_status hk_device_heap_create(struct hk_group *group, size_t bytes,
				     const struct hk_device_heap_opts *opts,
				     struct hk_device_heap **heap_out)
{
	struct hk_device_heap_opts known;

	if (!group || !heap_out || hk__world_inherited(group->world))
		return HK_EINVAL;
	if (hk__opts_copy(&known, sizeof(known), opts) != HK_OK)
		return hk__group_refuse(group, HK_EINVAL, "device heap: unknown options");
	enum hk_status status = heap_refuse(group, bytes);
	if (status != HK_OK)
		return status;
	struct hk_device_heap *heap = heap_new(group, &known);
	if (!heap)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a device heap");
	struct hk__heap_spec spec = {
		.bytes = bytes,
		.first = heap_first(group->n),
		.ordinal = hk__cuda_get() ? hk__group_ordinal(known.stream) : 0,
		.ipc = known.ipc,
		.deadline_ns = hk__deadline_ns(hk__now_ns(), heap->timeout_ns),
	};
	status = hk__heap_meet(heap, &spec);
	if (status == HK_OK)
		status = heap_finish(heap, spec.deadline_ns);
	if (status != HK_OK)
		goto err_put;
	heap_view(heap);
	hk__space_fini(&heap->space);
	hk__space_init(&heap->space, heap->alloc, spec.first, heap->bytes);
	if (group->n > 1 && hk__world_start_thread(group->world) != HK_OK)
		hk__log(HK_LOG_WARN,
			"rank %u: no progress thread: a dead process is noticed only when a "
			"deadline expires",
			group->rank);
	hk__world_run(group->world, heap_list, heap);
	*heap_out = heap;
	return HK_OK;

err_put:
	hk__heap_share_put(heap->share);
	heap_destroy(heap);
	return status;
}

void hk_device_heap_free(struct hk_device_heap *heap)
{
	unsigned char own = 0, all[HK__REGION_RANKS];

	if (!heap || hk__world_inherited(heap->group->world))
		return;
	struct hk_group *group = heap->group;
	uint64_t deadline_ns = hk__deadline_ns(hk__now_ns(), heap->timeout_ns);
	bool opened = heap->region->kind == HK__REGION_IPC;
	bool whole = hk__group_failed(group) == HK_OK &&
		     hk__heap_gather(group, deadline_ns, &own, all, 1) == HK_OK;
	hk__world_run(group->world, heap_unlist, heap);
	hk__heap_share_put(heap->share);
	/* Nobody frees what others still have open. */
	if (whole && opened)
		(void)!hk__heap_gather(group, deadline_ns, &own, all, 1);
	heap_destroy(heap);
}

/* ---- what it hands out ---- */

enum hk_status hk_device_heap_alloc(struct hk_device_heap *heap, size_t bytes, size_t align,
				    size_t *offset_out)
{
	if (!heap || !offset_out)
		return HK_EINVAL;
	enum hk_status status =
		hk__space_get(&heap->space, bytes, align ? align : ALIGN_DEFAULT, offset_out);
	if (status == HK_EINVAL)
		return hk__group_refuse(heap->group, status,
					"device heap: %zu bytes, aligned to %zu: takes 1 or more, "
					"and a power of two",
					bytes, align);
	if (status == HK_ELIMIT)
		return hk__group_refuse(heap->group, status,
					"device heap: no %zu bytes are left in one piece of %zu",
					bytes, heap->bytes);
	return status == HK_OK ? HK_OK
			       : hk__group_refuse(heap->group, status, "device heap: no memory");
}

bool hk_device_heap_release(struct hk_device_heap *heap, size_t offset)
{
	return heap && hk__space_put(&heap->space, offset);
}

void *hk_device_heap_base(const struct hk_device_heap *heap)
{
	return heap->view.own;
}

void *hk_device_heap_ptr(const struct hk_device_heap *heap, uint32_t rank, size_t offset)
{
	if (rank >= heap->group->n || offset >= heap->bytes)
		return NULL;
	return (char *)hk__mem_at(heap->region->at[rank]) + offset;
}

size_t hk_device_heap_bytes(const struct hk_device_heap *heap)
{
	return heap->bytes;
}

enum hk_status hk_device_heap_view(const struct hk_device_heap *heap,
				   struct hk_device_view *view_out)
{
	if (!heap || !view_out)
		return HK_EINVAL;
	return hk__result_copy(view_out, &heap->view, sizeof(heap->view));
}
