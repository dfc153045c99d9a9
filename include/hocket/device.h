/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - one-sided memory on GPUs: a symmetric heap in device memory.
 *
 * Every rank of a group gives the same number of bytes of its GPU, and reaches the memory
 * of all others by loads and stores: in kernels by device_ops.h, or by the calls below,
 * which are enqueued on a stream. Ranks are threads or processes of one host, on GPUs that
 * reach each other, several on one GPU too.
 *
 * Offsets are bytes in the heap, equal on all ranks. The process has the heap as one range
 * of addresses, rank r's memory at base + r * stride. Only where a driver cannot map
 * memory (CUDA IPC instead) each rank's lies somewhere else.
 *
 * Order. A signal lands after what the same stream, or the same thread of a kernel, wrote
 * before it. Words that are waited for are written by signals and atomics only.
 *
 * Several processes on one GPU take turns of milliseconds, unless MPS runs: a kernel that
 * waits for another process keeps its turn. Prefer threads of one process, MPS, or waits
 * on a stream (hk_device_wait), which give way.
 */
#ifndef HOCKET_DEVICE_H
#define HOCKET_DEVICE_H

#include <hocket/group.h>
#include <hocket/type.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hk_device_heap;		/* opaque */

struct hk_device_heap_opts {
	size_t size;		/* sizeof(struct hk_device_heap_opts) */
	void *stream;		/* a CUstream of the GPU to use; NULL: the thread's current GPU */
	uint64_t timeout_ns;	/* of create and free; 0: the group's */
	bool ipc;		/* CUDA IPC, even where memory can be mapped; all ranks the same */
};
#define HK_DEVICE_HEAP_OPTS_INIT { sizeof(struct hk_device_heap_opts), NULL, 0, false }

/* ---- heaps ---- */

/*
 * Collective: bytes are the same on all ranks, and begin as zeroes. Each rank calls in a
 * thread of its own. opts may be NULL. Not inside a batch.
 * HK_EINVAL (no driver or device, several hosts, GPUs that do not reach each other),
 * HK_EMISMATCH (other bytes), HK_ELIMIT (more than 64 ranks), HK_ENOMEM, HK_EIO (the
 * driver): the same on all ranks, hk_group_why() names the rank, and the group goes on.
 * Else as a collective: HK_ETIMEDOUT, HK_EPEER, HK_EREVOKED.
 */
HK_API HK_NODISCARD enum hk_status hk_device_heap_create(struct hk_group *group, size_t bytes,
							 const struct hk_device_heap_opts *opts,
							 struct hk_device_heap **heap_out);
/*
 * Collective, before the group is freed, when what this rank enqueued with the heap is
 * over. Waits for all ranks; on a group that has failed for nobody. Accepts NULL.
 */
HK_API void hk_device_heap_free(struct hk_device_heap *heap);

/*
 * Memory of the heap. Every rank makes the same calls in the same order, and gets the same
 * offsets; nothing is sent, and nobody waited for. Never 0. What was released and is
 * handed out again keeps its bytes. align: a power of two; 0: 256.
 * HK_EINVAL, HK_ELIMIT (full), HK_ENOMEM.
 */
HK_API HK_NODISCARD enum hk_status hk_device_heap_alloc(struct hk_device_heap *heap, size_t bytes,
							size_t align, size_t *offset_out);
/* false: no block begins there. */
HK_API bool hk_device_heap_release(struct hk_device_heap *heap, size_t offset);

/* This rank's memory: where offset 0 is. */
HK_API void *hk_device_heap_base(const struct hk_device_heap *heap);
/* Where a rank's byte is in this process, for its GPUs; NULL: no such rank or byte. */
HK_API void *hk_device_heap_ptr(const struct hk_device_heap *heap, uint32_t rank, size_t offset);
/* Offsets are less than that: what was asked for, and the signals of barriers. */
HK_API size_t hk_device_heap_bytes(const struct hk_device_heap *heap);

/* ---- for kernels ---- */

#define HK_DEVICE_LANES 256u	/* barriers that may be under way at a time */

/* A heap as kernels see it (device_ops.h); passed by value, valid as long as the heap. */
struct hk_device_view {
	size_t size;		/* sizeof(struct hk_device_view), set by the caller */
	uint32_t rank;		/* this one */
	uint32_t n;
	char *base;		/* rank r's memory is at base + r * stride, */
	uint64_t stride;
	char *const *bases;	/* or there, if this is not NULL */
	char *own;		/* this rank's */
	uint64_t barriers;	/* offset of HK_DEVICE_LANES * n signals */
	const uint32_t *stop;	/* not 0: the group has failed, and waits end */
	uint32_t near;		/* all ranks are on one GPU: its scope is enough */
	uint32_t reserved;
};
/* HK_EINVAL: its size was not set. */
HK_API HK_NODISCARD enum hk_status hk_device_heap_view(const struct hk_device_heap *heap,
						       struct hk_device_view *view_out);

/* ---- on a stream ----
 *
 * Enqueued; they return at once, and take effect in the order of the stream, which is of
 * the rank's GPU; NULL is the legacy default stream. They may be captured in a graph. Other
 * memory is of any kind that CUDA copies. HK_EINVAL: not in the heap, or not aligned.
 */
HK_API HK_NODISCARD enum hk_status hk_device_put(struct hk_device_heap *heap, uint32_t rank,
						 size_t offset, const void *src, size_t bytes,
						 void *stream);
HK_API HK_NODISCARD enum hk_status hk_device_get(struct hk_device_heap *heap, uint32_t rank,
						 size_t offset, void *dst, size_t bytes,
						 void *stream);
/*
 * A 64-bit word of that rank, at a multiple of 8: HK_AMO_SET or HK_AMO_ADD. It lands after
 * what the stream wrote before.
 */
HK_API HK_NODISCARD enum hk_status hk_device_signal(struct hk_device_heap *heap, uint32_t rank,
						    size_t offset, uint64_t value, enum hk_amo op,
						    void *stream);
/*
 * What follows in the stream waits until this rank's word has come to value, or beyond it:
 * modulo 2^64, within half of that. If the group fails, it goes on without: the word is
 * then overwritten.
 */
HK_API HK_NODISCARD enum hk_status hk_device_wait(struct hk_device_heap *heap, size_t offset,
						  uint64_t value, void *stream);

#ifdef __cplusplus
}
#endif
#endif
