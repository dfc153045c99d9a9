/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_ops.h - one-sided memory in kernels: puts, gets, signals, waits, atomics and
 * barriers over a heap of device.h. Header only, for CUDA C++; all by loads and stores.
 *
 *	__global__ void step(struct hk_device_view heap, size_t data, size_t ready)
 *	{
 *		struct hk_dev_signal signal = { ready, 1, HK_AMO_ADD };
 *
 *		hk_dev_put_signal_block(&heap, peer, data, heap.own + data, bytes, signal);
 *		if (!hk_dev_wait_until_block(&heap, ready, HK_CMP_GE, round))
 *			return;
 *	}
 *
 * Scopes. A plain name is one thread's operation. Of NAME_warp all 32 threads of a warp call,
 * of NAME_block all of a block, with the same arguments, and all of them return when it is
 * done, as far as it waits; what they wrote before is written before a signal.
 *
 * Order. Puts are plain stores. A signal is strong: whoever sees it sees all that its
 * thread (warp, block) wrote before, to any rank. A weak one, hk_dev_signal_weak, orders
 * nothing. What a wait or barrier has seen orders what follows it. Atomics order nothing.
 * Waits return false once the group has failed, and whenever called after that.
 *
 * Without CUDA it compiles for the host, where a warp or a block is one thread: for tests.
 */
#ifndef HOCKET_DEVICE_OPS_H
#define HOCKET_DEVICE_OPS_H

#include <hocket/device.h>

/* Which word of a rank, and what becomes of it: HK_AMO_SET or HK_AMO_ADD. */
struct hk_dev_signal {
	size_t offset;		/* a multiple of 8 */
	uint64_t value;
	enum hk_amo op;
};

/* ---- the machine ---- */

#define HK__DEV_LOOKS 1024u	/* at a word, before looking whether to stop */
/* Between looks at a word; tests on a host with few cores give way here. */
#ifndef hk__dev_pause
#define hk__dev_pause() ((void)0)
#endif

#ifdef __CUDACC__
#define HK_DEV static __device__ __forceinline__

/* Threads of a warp, or of a block: which this is, of how many. */
HK_DEV uint32_t hk__dev_lane(void)
{
	uint32_t lane;

	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

HK_DEV uint32_t hk__dev_thread(void)
{
	return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

HK_DEV uint32_t hk__dev_threads(void)
{
	return blockDim.x * blockDim.y * blockDim.z;
}

#define HK__DEV_WARP 32u
#define hk__dev_sync_warp() __syncwarp()
#define hk__dev_sync_block() __syncthreads()

/* Whether all of them say so; a meeting, too. */
HK_DEV bool hk__dev_all_warp(bool yes)
{
	return __all_sync(0xffffffffu, yes) != 0;
}

HK_DEV bool hk__dev_all_block(bool yes)
{
	return __syncthreads_and(yes) != 0;
}

HK_DEV uint64_t hk__dev_acquire(const uint64_t *at, bool near)
{
	uint64_t value;

	if (near)
		asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	else
		asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

HK_DEV void hk__dev_release(uint64_t *at, uint64_t value, bool near)
{
	if (near)
		asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
	else
		asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

HK_DEV void hk__dev_release_add(uint64_t *at, uint64_t value, bool near)
{
	if (near)
		asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(at), "l"(value)
			     : "memory");
	else
		asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value)
			     : "memory");
}

HK_DEV void hk__dev_poke(uint64_t *at, uint64_t value)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

HK_DEV void hk__dev_poke_add(uint64_t *at, uint64_t value)
{
	asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

HK_DEV bool hk__dev_stopped(const struct hk_device_view *view)
{
	return *(const volatile uint32_t *)view->stop != 0;
}

HK_DEV void hk__dev_fence(bool near)
{
	if (near)
		__threadfence();
	else
		__threadfence_system();
}

#define HK__DEV_AMO_PTX(name, op, type, bits, reg) \
	HK_DEV type hk__dev_amo_##name(type *at, type value) \
	{ \
		type old; \
\
		asm volatile("atom.relaxed.sys.global." op "." bits " %0, [%1], %2;" \
			     : "=" reg(old) \
			     : "l"(at), reg(value) \
			     : "memory"); \
		return old; \
	}
#define HK__DEV_AMO_CAS(name, type, bits, reg) \
	HK_DEV type hk__dev_amo_##name(type *at, type compare, type value) \
	{ \
		type old; \
\
		asm volatile("atom.relaxed.sys.global.cas." bits " %0, [%1], %2, %3;" \
			     : "=" reg(old) \
			     : "l"(at), reg(compare), reg(value) \
			     : "memory"); \
		return old; \
	}
HK__DEV_AMO_PTX(set, "exch", uint64_t, "b64", "l")
HK__DEV_AMO_PTX(add, "add", uint64_t, "u64", "l")
HK__DEV_AMO_PTX(and, "and", uint64_t, "b64", "l")
HK__DEV_AMO_PTX(or, "or", uint64_t, "b64", "l")
HK__DEV_AMO_PTX(xor, "xor", uint64_t, "b64", "l")
HK__DEV_AMO_CAS(cas, uint64_t, "b64", "l")
HK__DEV_AMO_PTX(set32, "exch", uint32_t, "b32", "r")
HK__DEV_AMO_PTX(add32, "add", uint32_t, "u32", "r")
HK__DEV_AMO_PTX(and32, "and", uint32_t, "b32", "r")
HK__DEV_AMO_PTX(or32, "or", uint32_t, "b32", "r")
HK__DEV_AMO_PTX(xor32, "xor", uint32_t, "b32", "r")
HK__DEV_AMO_CAS(cas32, uint32_t, "b32", "r")
#undef HK__DEV_AMO_PTX
#undef HK__DEV_AMO_CAS

HK_DEV uint32_t hk__dev_peek32(const uint32_t *at)
{
	uint32_t value;

	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

HK_DEV uint64_t hk__dev_peek(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

/* Many loads are under way at a time, so that few blocks fill the memory's width. */
#define HK__DEV_COPY(type) \
	do { \
		const type *from_ = (const type *)(const void *)(from + at); \
		type *to_ = (type *)(void *)(to + at); \
		size_t count_ = (bytes - at) / sizeof(type), i_ = id; \
\
		for (; i_ + 7 * (size_t)of < count_; i_ += 8 * (size_t)of) { \
			type held_[8]; \
\
			_Pragma("unroll") \
			for (uint32_t k_ = 0; k_ < 8; k_++) \
				held_[k_] = from_[i_ + k_ * (size_t)of]; \
			_Pragma("unroll") \
			for (uint32_t k_ = 0; k_ < 8; k_++) \
				to_[i_ + k_ * (size_t)of] = held_[k_]; \
		} \
		for (; i_ < count_; i_ += of) \
			to_[i_] = from_[i_]; \
		at += count_ * sizeof(type); \
	} while (0)

/* By `of` threads, of which this is `id`: the widest words that both sides are aligned for. */
HK_DEV void hk__dev_copy(char *to, const char *from, size_t bytes, uint32_t id, uint32_t of)
{
	size_t apart = (size_t)to ^ (size_t)from;
	size_t width = apart % 16 == 0 ? 16 : apart % 8 == 0 ? 8 : apart % 4 == 0 ? 4 : 1;
	size_t head = -(size_t)to & (width - 1), at;

	/* A word for each thread at most: the least latency. */
	if (((size_t)to | (size_t)from | bytes) % 8 == 0 && bytes <= 8 * (size_t)of) {
		if (id < bytes / 8)
			((uint2 *)(void *)to)[id] = ((const uint2 *)(const void *)from)[id];
		return;
	}
	head = head < bytes ? head : bytes;
	for (at = id; at < head; at += of)
		to[at] = from[at];
	at = head;
	if (width == 16)
		HK__DEV_COPY(uint4);
	else if (width == 8)
		HK__DEV_COPY(uint2);
	else if (width == 4)
		HK__DEV_COPY(uint32_t);
	HK__DEV_COPY(char);
}
#undef HK__DEV_COPY

#else /* the host */
#define HK_DEV static inline __attribute__((unused))
#define HK__DEV_WARP 1u
#define hk__dev_lane() 0u
#define hk__dev_thread() 0u
#define hk__dev_threads() 1u
#define hk__dev_sync_warp() ((void)0)
#define hk__dev_sync_block() ((void)0)
#define hk__dev_all_warp(yes) (yes)
#define hk__dev_all_block(yes) (yes)
#define hk__dev_acquire(at, near) ((void)(near), __atomic_load_n((at), __ATOMIC_ACQUIRE))
#define hk__dev_release(at, value, near) \
	((void)(near), __atomic_store_n((at), (value), __ATOMIC_RELEASE))
#define hk__dev_release_add(at, value, near) \
	((void)(near), (void)__atomic_fetch_add((at), (value), __ATOMIC_RELEASE))
#define hk__dev_poke(at, value) __atomic_store_n((at), (value), __ATOMIC_RELAXED)
#define hk__dev_poke_add(at, value) ((void)__atomic_fetch_add((at), (value), __ATOMIC_RELAXED))
#define hk__dev_stopped(view) (__atomic_load_n((view)->stop, __ATOMIC_RELAXED) != 0)
#define hk__dev_fence(near) ((void)(near), __atomic_thread_fence(__ATOMIC_SEQ_CST))
#define hk__dev_amo_set(at, value) __atomic_exchange_n((at), (value), __ATOMIC_RELAXED)
#define hk__dev_amo_add(at, value) __atomic_fetch_add((at), (value), __ATOMIC_RELAXED)
#define hk__dev_amo_and(at, value) __atomic_fetch_and((at), (value), __ATOMIC_RELAXED)
#define hk__dev_amo_or(at, value) __atomic_fetch_or((at), (value), __ATOMIC_RELAXED)
#define hk__dev_amo_xor(at, value) __atomic_fetch_xor((at), (value), __ATOMIC_RELAXED)
#define hk__dev_amo_set32 hk__dev_amo_set
#define hk__dev_amo_add32 hk__dev_amo_add
#define hk__dev_amo_and32 hk__dev_amo_and
#define hk__dev_amo_or32 hk__dev_amo_or
#define hk__dev_amo_xor32 hk__dev_amo_xor
#define hk__dev_peek(at) __atomic_load_n((at), __ATOMIC_RELAXED)
#define hk__dev_peek32(at) __atomic_load_n((at), __ATOMIC_RELAXED)

HK_DEV uint64_t hk__dev_amo_cas(uint64_t *at, uint64_t compare, uint64_t value)
{
	(void)__atomic_compare_exchange_n(at, &compare, value, false, __ATOMIC_RELAXED,
					  __ATOMIC_RELAXED);
	return compare;
}

HK_DEV uint32_t hk__dev_amo_cas32(uint32_t *at, uint32_t compare, uint32_t value)
{
	(void)__atomic_compare_exchange_n(at, &compare, value, false, __ATOMIC_RELAXED,
					  __ATOMIC_RELAXED);
	return compare;
}

HK_DEV void hk__dev_copy(char *to, const char *from, size_t bytes, uint32_t id, uint32_t of)
{
	for (size_t at = id; at < bytes; at += of)
		to[at] = from[at];
}
#endif

/* ---- places ---- */

/* Where a rank's byte is, for this rank's kernels. */
HK_DEV char *hk_dev_ptr(const struct hk_device_view *view, uint32_t rank, size_t offset)
{
	return (view->bases ? view->bases[rank] : view->base + rank * view->stride) + offset;
}

HK_DEV uint64_t *hk__dev_word(const struct hk_device_view *view, uint32_t rank, size_t offset)
{
	return (uint64_t *)(void *)hk_dev_ptr(view, rank, offset);
}

/* ---- data ---- */

HK_DEV void hk_dev_put(const struct hk_device_view *view, uint32_t rank, size_t offset,
		       const void *src, size_t bytes)
{
	hk__dev_copy(hk_dev_ptr(view, rank, offset), (const char *)src, bytes, 0, 1);
}

HK_DEV void hk_dev_put_warp(const struct hk_device_view *view, uint32_t rank, size_t offset,
			    const void *src, size_t bytes)
{
	hk__dev_copy(hk_dev_ptr(view, rank, offset), (const char *)src, bytes, hk__dev_lane(),
		     HK__DEV_WARP);
	hk__dev_sync_warp();
}

HK_DEV void hk_dev_put_block(const struct hk_device_view *view, uint32_t rank, size_t offset,
			     const void *src, size_t bytes)
{
	hk__dev_copy(hk_dev_ptr(view, rank, offset), (const char *)src, bytes, hk__dev_thread(),
		     hk__dev_threads());
	hk__dev_sync_block();
}

HK_DEV void hk_dev_get(const struct hk_device_view *view, uint32_t rank, size_t offset, void *dst,
		       size_t bytes)
{
	hk__dev_copy((char *)dst, hk_dev_ptr(view, rank, offset), bytes, 0, 1);
}

HK_DEV void hk_dev_get_warp(const struct hk_device_view *view, uint32_t rank, size_t offset,
			    void *dst, size_t bytes)
{
	hk__dev_copy((char *)dst, hk_dev_ptr(view, rank, offset), bytes, hk__dev_lane(),
		     HK__DEV_WARP);
	hk__dev_sync_warp();
}

HK_DEV void hk_dev_get_block(const struct hk_device_view *view, uint32_t rank, size_t offset,
			     void *dst, size_t bytes)
{
	hk__dev_copy((char *)dst, hk_dev_ptr(view, rank, offset), bytes, hk__dev_thread(),
		     hk__dev_threads());
	hk__dev_sync_block();
}

/* ---- order ---- */

/* What this thread wrote before is seen, by whoever sees what it writes later. */
HK_DEV void hk_dev_fence(const struct hk_device_view *view)
{
	hk__dev_fence(view->near);
}

/* The same: nothing is under way but stores. */
HK_DEV void hk_dev_quiet(const struct hk_device_view *view)
{
	hk__dev_fence(view->near);
}

/* ---- signals ---- */

HK_DEV void hk_dev_signal(const struct hk_device_view *view, uint32_t rank,
			  struct hk_dev_signal signal)
{
	uint64_t *at = hk__dev_word(view, rank, signal.offset);

	if (signal.op == HK_AMO_SET)
		hk__dev_release(at, signal.value, view->near);
	else
		hk__dev_release_add(at, signal.value, view->near);
}

HK_DEV void hk_dev_signal_weak(const struct hk_device_view *view, uint32_t rank,
			       struct hk_dev_signal signal)
{
	uint64_t *at = hk__dev_word(view, rank, signal.offset);

	if (signal.op == HK_AMO_SET)
		hk__dev_poke(at, signal.value);
	else
		hk__dev_poke_add(at, signal.value);
}

HK_DEV void hk_dev_put_signal(const struct hk_device_view *view, uint32_t rank, size_t offset,
			      const void *src, size_t bytes, struct hk_dev_signal signal)
{
	hk_dev_put(view, rank, offset, src, bytes);
	hk_dev_signal(view, rank, signal);
}

HK_DEV void hk_dev_put_signal_warp(const struct hk_device_view *view, uint32_t rank, size_t offset,
				   const void *src, size_t bytes, struct hk_dev_signal signal)
{
	hk_dev_put_warp(view, rank, offset, src, bytes);
	if (hk__dev_lane() == 0)
		hk_dev_signal(view, rank, signal);
}

HK_DEV void hk_dev_put_signal_block(const struct hk_device_view *view, uint32_t rank,
				    size_t offset, const void *src, size_t bytes,
				    struct hk_dev_signal signal)
{
	hk_dev_put_block(view, rank, offset, src, bytes);
	if (hk__dev_thread() == 0)
		hk_dev_signal(view, rank, signal);
}

/* A signal of this rank, as it is now. */
HK_DEV uint64_t hk_dev_signal_fetch(const struct hk_device_view *view, size_t offset)
{
	return hk__dev_acquire((const uint64_t *)(const void *)(view->own + offset), view->near);
}

/* Compares as unsigned numbers. */
HK_DEV bool hk__dev_holds(uint64_t word, enum hk_cmp cmp, uint64_t value)
{
	switch (cmp) {
	case HK_CMP_EQ:
		return word == value;
	case HK_CMP_NE:
		return word != value;
	case HK_CMP_GT:
		return word > value;
	case HK_CMP_GE:
		return word >= value;
	case HK_CMP_LT:
		return word < value;
	default:
		return word <= value;
	}
}

/* Whether a signal of this rank compares so now; then what it tells of is seen. */
HK_DEV bool hk_dev_test_until(const struct hk_device_view *view, size_t offset, enum hk_cmp cmp,
			      uint64_t value)
{
	return hk__dev_holds(hk_dev_signal_fetch(view, offset), cmp, value);
}

/* Until a signal of this rank compares so. false: the group has failed. */
HK_DEV bool hk_dev_wait_until(const struct hk_device_view *view, size_t offset, enum hk_cmp cmp,
			      uint64_t value)
{
	for (uint32_t looks = 1; !hk_dev_test_until(view, offset, cmp, value); looks++) {
		hk__dev_pause();
		if (looks % HK__DEV_LOOKS == 0 && hk__dev_stopped(view))
			return false;
	}
	return true;
}

HK_DEV bool hk_dev_wait_until_warp(const struct hk_device_view *view, size_t offset,
				   enum hk_cmp cmp, uint64_t value)
{
	return hk__dev_all_warp(hk__dev_lane() != 0 ||
				hk_dev_wait_until(view, offset, cmp, value));
}

HK_DEV bool hk_dev_wait_until_block(const struct hk_device_view *view, size_t offset,
				    enum hk_cmp cmp, uint64_t value)
{
	return hk__dev_all_block(hk__dev_thread() != 0 ||
				 hk_dev_wait_until(view, offset, cmp, value));
}

/* ---- atomics: words of 8 bytes, or 4; they return what was there ---- */

#define HK__DEV_AMO(name, op, type) \
	HK_DEV type hk_dev_##name(const struct hk_device_view *view, uint32_t rank, \
				  size_t offset, type value) \
	{ \
		return hk__dev_##op((type *)(void *)hk_dev_ptr(view, rank, offset), value); \
	}
HK__DEV_AMO(amo_set, amo_set, uint64_t)
HK__DEV_AMO(amo_add, amo_add, uint64_t)
HK__DEV_AMO(amo_and, amo_and, uint64_t)
HK__DEV_AMO(amo_or, amo_or, uint64_t)
HK__DEV_AMO(amo_xor, amo_xor, uint64_t)
HK__DEV_AMO(amo32_set, amo_set32, uint32_t)
HK__DEV_AMO(amo32_add, amo_add32, uint32_t)
HK__DEV_AMO(amo32_and, amo_and32, uint32_t)
HK__DEV_AMO(amo32_or, amo_or32, uint32_t)
HK__DEV_AMO(amo32_xor, amo_xor32, uint32_t)
#undef HK__DEV_AMO

HK_DEV uint64_t hk_dev_amo_cas(const struct hk_device_view *view, uint32_t rank, size_t offset,
			       uint64_t compare, uint64_t value)
{
	return hk__dev_amo_cas(hk__dev_word(view, rank, offset), compare, value);
}

HK_DEV uint32_t hk_dev_amo32_cas(const struct hk_device_view *view, uint32_t rank, size_t offset,
				 uint32_t compare, uint32_t value)
{
	return hk__dev_amo_cas32((uint32_t *)(void *)hk_dev_ptr(view, rank, offset), compare,
				 value);
}

HK_DEV uint64_t hk_dev_amo_fetch(const struct hk_device_view *view, uint32_t rank, size_t offset)
{
	return hk__dev_peek(hk__dev_word(view, rank, offset));
}

HK_DEV uint32_t hk_dev_amo32_fetch(const struct hk_device_view *view, uint32_t rank,
				   size_t offset)
{
	return hk__dev_peek32((const uint32_t *)(const void *)hk_dev_ptr(view, rank, offset));
}

/* ---- barriers ----
 *
 * Of all ranks, by lane: each rank calls it once, by one thread, warp or block, which may
 * differ between ranks. Lanes are below HK_DEVICE_LANES, and know nothing of each other. What
 * was written before on any rank is seen after on all. false: the group has failed.
 */

/* Of a lane on a rank: what a rank has told it, as a count; of itself, the rounds so far. */
HK_DEV uint64_t *hk__dev_slot(const struct hk_device_view *view, uint32_t rank, uint32_t lane,
			      uint32_t of)
{
	return hk__dev_word(view, rank,
			    view->barriers + ((uint64_t)lane * view->n + of) * sizeof(uint64_t));
}

/* The part of one of `of` threads. */
HK_DEV bool hk__dev_barrier(const struct hk_device_view *view, uint32_t lane, uint64_t round,
			    uint32_t id, uint32_t of)
{
	for (uint32_t i = 1 + id; i < view->n; i += of) {
		uint32_t to = view->rank + i < view->n ? view->rank + i : view->rank + i - view->n;

		hk__dev_release(hk__dev_slot(view, to, lane, view->rank), round, view->near);
	}
	for (uint32_t i = 1 + id; i < view->n; i += of) {
		uint32_t from = view->rank < i ? view->rank + view->n - i : view->rank - i;
		const uint64_t *slot = hk__dev_slot(view, view->rank, lane, from);

		for (uint32_t looks = 1; hk__dev_acquire(slot, view->near) < round; looks++) {
			hk__dev_pause();
			if (looks % HK__DEV_LOOKS == 0 && hk__dev_stopped(view))
				return false;
		}
	}
	return true;
}

HK_DEV bool hk_dev_barrier(const struct hk_device_view *view, uint32_t lane)
{
	uint64_t *own = hk__dev_slot(view, view->rank, lane, view->rank);
	uint64_t round = hk__dev_peek(own) + 1;

	hk__dev_poke(own, round);
	return hk__dev_barrier(view, lane, round, 0, 1);
}

HK_DEV bool hk_dev_barrier_warp(const struct hk_device_view *view, uint32_t lane)
{
	uint64_t *own = hk__dev_slot(view, view->rank, lane, view->rank);
	uint64_t round = hk__dev_peek(own) + 1;

	hk__dev_sync_warp();
	if (hk__dev_lane() == 0)
		hk__dev_poke(own, round);
	return hk__dev_all_warp(
		hk__dev_barrier(view, lane, round, hk__dev_lane(), HK__DEV_WARP));
}

HK_DEV bool hk_dev_barrier_block(const struct hk_device_view *view, uint32_t lane)
{
	uint64_t *own = hk__dev_slot(view, view->rank, lane, view->rank);
	uint64_t round = hk__dev_peek(own) + 1;

	hk__dev_sync_block();
	if (hk__dev_thread() == 0)
		hk__dev_poke(own, round);
	return hk__dev_all_block(
		hk__dev_barrier(view, lane, round, hk__dev_thread(), hk__dev_threads()));
}

#endif
