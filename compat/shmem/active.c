/* SPDX-License-Identifier: Apache-2.0 */
/*
 * active.c - deprecated collectives over active sets. Only their members know of such a set,
 * so no group is made for it: each PE puts what is its to the others, and a barrier in pSync
 * ends the call. pSync is as it was when the call returns.
 */
#include "sma.h"

#define OFFSET_WORD 40 /* of pSync, behind those of the barrier: where a PE's part begins, + 1 */

static void finish(const struct hk__sma_set *set, const char *call)
{
	hk__sma_quiet(SHMEM_CTX_DEFAULT, call);
	hk__sma_set_barrier(set, call);
}

FN(void, shmem_sync, (int PE_start, int logPE_stride, int PE_size, long *pSync))
{
	struct hk__sma_set set =
		hk__sma_set_active(PE_start, logPE_stride, PE_size, pSync, "shmem_sync");

	hk__sma_set_barrier(&set, "shmem_sync");
}

FN(void, shmem_barrier, (int PE_start, int logPE_stride, int PE_size, long *pSync))
{
	struct hk__sma_set set =
		hk__sma_set_active(PE_start, logPE_stride, PE_size, pSync, "shmem_barrier");

	finish(&set, "shmem_barrier");
}

/* To its place in the dest of every member; the own copy is made here. */
static void put_all(const struct hk__sma_set *set, char *dest, const void *source, size_t bytes,
		    const char *call)
{
	for (uint32_t k = 0; k < set->n; k++) {
		uint32_t to = (set->me + k) % set->n;

		if (to == set->me && bytes > 0)
			memmove(dest, source, bytes);
		else
			hk__sma_put(SHMEM_CTX_DEFAULT, dest, source, bytes, hk__sma_set_pe(set, to),
				    call);
	}
}

static void broadcast(const struct hk__sma_set *set, void *dest, const void *source, size_t bytes,
		      int root, const char *call)
{
	if (root < 0 || (uint32_t)root >= set->n)
		hk__sma_die(call, "PE_root is %d: the active set has %u PEs", root, set->n);
	/* Unlike that of teams it leaves the root's own dest alone. */
	for (uint32_t i = 0; i < set->n && set->me == (uint32_t)root; i++) {
		if (i != set->me)
			hk__sma_put(SHMEM_CTX_DEFAULT, dest, source, bytes, hk__sma_set_pe(set, i),
				    call);
	}
	finish(set, call);
}

static void collect(const struct hk__sma_set *set, char *dest, const void *source, size_t bytes,
		    const char *call)
{
	long *word = &set->sync[OFFSET_WORD];
	const struct hk__sma_word come = { word, sizeof(long), true, SHMEM_CMP_NE, 0 };
	uint64_t offset = 0;

	if (set->me > 0) {
		hk__sma_wait(&come, call);
		offset = (uint64_t)__atomic_exchange_n(word, 0, __ATOMIC_ACQUIRE) - 1;
	}
	if (set->me + 1 < set->n)
		(void)hk__sma_amo(SHMEM_CTX_DEFAULT, word, hk__sma_set_pe(set, set->me + 1),
				  HK_AMO_SET, 8, offset + bytes + 1, 0, false, call);
	put_all(set, dest + offset, source, bytes, call);
	finish(set, call);
}

static void fcollect(const struct hk__sma_set *set, char *dest, const void *source, size_t bytes,
		     const char *call)
{
	put_all(set, dest + set->me * bytes, source, bytes, call);
	finish(set, call);
}

static void alltoall(const struct hk__sma_set *set, char *dest, const char *source, size_t bytes,
		     const char *call)
{
	for (uint32_t k = 0; k < set->n; k++) {
		uint32_t to = (set->me + k) % set->n;

		hk__sma_put(SHMEM_CTX_DEFAULT, dest + set->me * bytes, source + to * bytes, bytes,
			    hk__sma_set_pe(set, to), call);
	}
	finish(set, call);
}

struct spread {
	ptrdiff_t dst; /* elements from one to the next */
	ptrdiff_t sst;
	size_t count;
	size_t size;
};

static void alltoalls(const struct hk__sma_set *set, char *dest, const char *source,
		      struct spread spread, const char *call)
{
	if (spread.dst < 1 || spread.sst < 1)
		hk__sma_die(call, "strides %td and %td: they are at least 1", spread.dst,
			    spread.sst);
	for (uint32_t k = 0; k < set->n; k++) {
		uint32_t to = (set->me + k) % set->n;
		const char *from = source + to * spread.count * (size_t)spread.sst * spread.size;
		char *at = dest + set->me * spread.count * (size_t)spread.dst * spread.size;

		if (spread.size == 4)
			pshmem_iput32(at, from, spread.dst, spread.sst, spread.count,
				      hk__sma_set_pe(set, to));
		else
			pshmem_iput64(at, from, spread.dst, spread.sst, spread.count,
				      hk__sma_set_pe(set, to));
	}
	finish(set, call);
}

#define BEGIN(NAME) \
	static const char call[] = NAME; \
	struct hk__sma_set set = hk__sma_set_active(PE_start, logPE_stride, PE_size, pSync, call)

#define ACTIVE(BITS) \
	FN(void, shmem_broadcast##BITS, \
	   (void *dest, const void *source, size_t nelems, int PE_root, int PE_start, \
	    int logPE_stride, int PE_size, long *pSync)) \
	{ \
		BEGIN("shmem_broadcast" #BITS); \
		broadcast(&set, dest, source, nelems *(BITS / 8), PE_root, call); \
	} \
	FN(void, shmem_collect##BITS, \
	   (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
	    int PE_size, long *pSync)) \
	{ \
		BEGIN("shmem_collect" #BITS); \
		collect(&set, dest, source, nelems *(BITS / 8), call); \
	} \
	FN(void, shmem_fcollect##BITS, \
	   (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
	    int PE_size, long *pSync)) \
	{ \
		BEGIN("shmem_fcollect" #BITS); \
		fcollect(&set, dest, source, nelems *(BITS / 8), call); \
	} \
	FN(void, shmem_alltoall##BITS, \
	   (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
	    int PE_size, long *pSync)) \
	{ \
		BEGIN("shmem_alltoall" #BITS); \
		alltoall(&set, dest, source, nelems *(BITS / 8), call); \
	} \
	FN(void, shmem_alltoalls##BITS, \
	   (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
	    int PE_start, int logPE_stride, int PE_size, long *pSync)) \
	{ \
		BEGIN("shmem_alltoalls" #BITS); \
		alltoalls(&set, dest, source, (struct spread){ dst, sst, nelems, BITS / 8 }, \
			  call); \
	}
ACTIVE(32)
ACTIVE(64)
