/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_stream.c - puts, gets, signals and waits that are enqueued on a stream: copies and
 * words of the driver's, which no kernel and no host takes part in. Only adding to a word
 * takes a kernel, of one thread.
 */
#include "group/device/heap.h"

#include <string.h>

/* The call is entered: the group works, and the bytes are of the heap. */
static enum hk_status call_begin(struct hk_device_heap *heap, const char *name, uint32_t rank,
				 size_t offset, size_t bytes)
{
	if (!heap || hk__world_inherited(heap->group->world))
		return HK_EINVAL;
	struct hk_group *group = heap->group;
	enum hk_status status = hk__group_failed(group);
	if (status != HK_OK)
		return status;
	if (rank >= group->n)
		return hk__group_refuse(group, HK_EINVAL, "%s: rank %u of %u", name, rank,
					group->n);
	if (offset > heap->bytes || bytes > heap->bytes - offset)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: %zu bytes at offset %zu of a heap of %zu", name, bytes,
					offset, heap->bytes);
	return HK_OK;
}

static hk__cu_ptr heap_at(const struct hk_device_heap *heap, uint32_t rank, size_t offset)
{
	return heap->region->at[rank] + offset;
}

static enum hk_status heap_copy(struct hk_device_heap *heap, hk__cu_ptr to, hk__cu_ptr from,
				size_t bytes, void *stream)
{
	struct hk_why *why = &heap->group->why;
	int mode;

	if (!bytes)
		return HK_OK;
	enum hk_status status = hk__card_enter(&heap->card, &mode, why);
	if (status != HK_OK)
		return status;
	status = hk__cuda_check(heap->card.cu->copy(to, from, bytes, stream), "cuMemcpyAsync", why);
	hk__card_leave(&heap->card, mode);
	return status;
}

enum hk_status hk_device_put(struct hk_device_heap *heap, uint32_t rank, size_t offset,
			     const void *src, size_t bytes, void *stream)
{
	enum hk_status status = call_begin(heap, "hk_device_put", rank, offset, bytes);

	return status == HK_OK ? heap_copy(heap, heap_at(heap, rank, offset),
					   (hk__cu_ptr)(uintptr_t)src, bytes, stream)
			       : status;
}

enum hk_status hk_device_get(struct hk_device_heap *heap, uint32_t rank, size_t offset, void *dst,
			     size_t bytes, void *stream)
{
	enum hk_status status = call_begin(heap, "hk_device_get", rank, offset, bytes);

	return status == HK_OK ? heap_copy(heap, (hk__cu_ptr)(uintptr_t)dst,
					   heap_at(heap, rank, offset), bytes, stream)
			       : status;
}

/* ---- words ---- */

static enum hk_status word_check(struct hk_device_heap *heap, const char *name, size_t offset)
{
	if (offset % sizeof(uint64_t))
		return hk__group_refuse(heap->group, HK_EINVAL,
					"%s: offset %zu is no multiple of 8", name, offset);
	return HK_OK;
}

/* Entered. */
static enum hk_status word_add(struct hk_device_heap *heap, hk__cu_ptr at, uint64_t value,
			       void *stream)
{
	void *params[] = { &at, &value };

	if (!heap->add)
		return hk__group_refuse(
			heap->group, HK_EINVAL,
			"hk_device_signal: adding needs GPU code: build it with nvcc");
	return hk__cuda_check(heap->card.cu->launch(heap->add, 1, 1, 1, 1, 1, 1, 0, stream, params,
						    NULL),
			      "cuLaunchKernel", &heap->group->why);
}

enum hk_status hk_device_signal(struct hk_device_heap *heap, uint32_t rank, size_t offset,
				uint64_t value, enum hk_amo op, void *stream)
{
	static const char name[] = "hk_device_signal";
	enum hk_status status = call_begin(heap, name, rank, offset, sizeof(uint64_t));
	int mode;

	if (status == HK_OK)
		status = word_check(heap, name, offset);
	if (status == HK_OK && op != HK_AMO_SET && op != HK_AMO_ADD)
		status = hk__group_refuse(
			heap->group, HK_EINVAL,
			"%s: a signal is set (HK_AMO_SET) or added to (HK_AMO_ADD)", name);
	if (status != HK_OK)
		return status;
	struct hk_why *why = &heap->group->why;
	hk__cu_ptr at = heap_at(heap, rank, offset);
	status = hk__card_enter(&heap->card, &mode, why);
	if (status != HK_OK)
		return status;
	/* Both are behind what the stream wrote before, for all who look. */
	if (op == HK_AMO_SET)
		status = hk__cuda_check(heap->card.cu->long_write(stream, at, value, 0),
					"cuStreamWriteValue64", why);
	else
		status = word_add(heap, at, value, stream);
	hk__card_leave(&heap->card, mode);
	return status;
}

/* Under the heap's lock: so that whoever finds that the group has failed can end the wait. */
static enum hk_status awaited_note(struct hk_device_heap *heap, size_t offset, uint64_t value)
{
	struct hk__awaited *awaited = heap->awaited.items;
	size_t i = 0;

	while (i < heap->awaited.count && awaited[i].offset != offset)
		i++;
	if (i == heap->awaited.count) {
		awaited = hk__array_push(&heap->awaited);
		if (!awaited)
			return hk__group_refuse(heap->group, HK_ENOMEM,
						"hk_device_wait: no memory");
		*awaited = (struct hk__awaited){ offset, value };
	} else if ((int64_t)(value - awaited[i].value) > 0) {
		awaited[i].value = value;
	}
	return HK_OK;
}

enum hk_status hk_device_wait(struct hk_device_heap *heap, size_t offset, uint64_t value,
			      void *stream)
{
	static const char name[] = "hk_device_wait";
	enum hk_status status = call_begin(heap, name, 0, offset, sizeof(uint64_t));
	int mode;

	if (status == HK_OK)
		status = word_check(heap, name, offset);
	if (status != HK_OK)
		return status;
	struct hk_group *group = heap->group;
	status = hk__card_enter(&heap->card, &mode, &group->why);
	if (status != HK_OK)
		return status;
	pthread_mutex_lock(&heap->lock);
	bool stopped = heap->stopped;
	if (!stopped)
		status = awaited_note(heap, offset, value);
	if (!stopped && status == HK_OK)
		status =
			hk__cuda_check(heap->card.cu->long_await(stream,
								 heap_at(heap, group->rank, offset),
								 value, HK__CU_WORD_GEQ),
				       "cuStreamWaitValue64", &group->why);
	pthread_mutex_unlock(&heap->lock);
	hk__card_leave(&heap->card, mode);
	return stopped ? hk__group_failed(group) : status;
}
