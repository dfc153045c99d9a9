/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rma.c - puts and gets: contiguous, of single elements, strided, in blocks, and those that
 * only begin. To a PE that is near they are copies, and complete at once.
 */
#include "sma.h"

/* Sizes of single elements are worth a branch: memcpy() would be called for each. */
static inline void copy(void *dest, const void *source, size_t bytes)
{
	switch (bytes) {
	case 4:
		memcpy(dest, source, 4);
		break;
	case 8:
		memcpy(dest, source, 8);
		break;
	case 16:
		memcpy(dest, source, 16);
		break;
	default:
		memcpy(dest, source, bytes);
	}
}

static inline void check_pair(const void *dest, const void *source, size_t bytes, int pe,
			      const char *call)
{
	if (hk__sma.check && pe == (int)hk__sma.me)
		hk__sma_check_overlap(dest, source, bytes, call);
}

void hk__sma_put(shmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe,
		 const char *call)
{
	struct hk__sma_at at;

	if (bytes == 0)
		return;
	check_pair(dest, source, bytes, pe, call);
	hk__sma_find(&at, ctx, dest, bytes, pe, call);
	if (at.near) {
		copy(at.near, source, bytes);
		hk__sma_ring(&at);
	} else {
		hk__sma_must(call, hk_put(at.space->win, at.pe, at.offset, source, bytes, at.ctx));
	}
}

void hk__sma_get(shmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe,
		 const char *call)
{
	struct hk__sma_at at;

	if (bytes == 0)
		return;
	check_pair(dest, source, bytes, pe, call);
	hk__sma_find(&at, ctx, source, bytes, pe, call);
	if (at.near)
		copy(dest, at.near, bytes);
	else
		hk__sma_must(call, hk_get(at.space->win, at.pe, at.offset, dest, bytes, at.ctx));
}

static void put_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe,
		    const char *call)
{
	struct hk__sma_at at;

	if (bytes == 0)
		return;
	check_pair(dest, source, bytes, pe, call);
	hk__sma_find(&at, ctx, dest, bytes, pe, call);
	if (at.near) {
		copy(at.near, source, bytes);
		hk__sma_ring(&at);
	} else {
		hk__sma_must(call,
			     hk_put_nbi(at.space->win, at.pe, at.offset, source, bytes, at.ctx));
	}
}

static void get_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe,
		    const char *call)
{
	struct hk__sma_at at;

	if (bytes == 0)
		return;
	check_pair(dest, source, bytes, pe, call);
	hk__sma_find(&at, ctx, source, bytes, pe, call);
	if (at.near)
		copy(dest, at.near, bytes);
	else
		hk__sma_must(call,
			     hk_get_nbi(at.space->win, at.pe, at.offset, dest, bytes, at.ctx));
}

/* ---- strided ---- */

struct stride {
	ptrdiff_t dest; /* in bytes, from block to block */
	ptrdiff_t source;
	size_t block; /* bytes */
	size_t n;     /* blocks */
};

/* Bytes from the first to the last. */
static size_t reach_of(ptrdiff_t stride, const struct stride *all, const char *call)
{
	if (stride < 1 && all->n > 1)
		hk__sma_die(call, "a stride of %td bytes: strides are at least 1 element", stride);
	return (all->n - 1) * (size_t)stride + all->block;
}

static void put_strided(shmem_ctx_t ctx, char *dest, const char *source, struct stride all, int pe,
			const char *call)
{
	struct hk__sma_at at;

	if (all.n == 0 || all.block == 0)
		return;
	(void)reach_of(all.source, &all, call);
	hk__sma_find(&at, ctx, dest, reach_of(all.dest, &all, call), pe, call);
	for (size_t i = 0; i < all.n; i++) {
		if (at.near)
			copy(at.near + (ptrdiff_t)i * all.dest, source, all.block);
		else
			hk__sma_must(call,
				     hk_put(at.space->win, at.pe, at.offset + i * (size_t)all.dest,
					    source, all.block, at.ctx));
		source += all.source;
	}
	if (at.near)
		hk__sma_ring(&at);
}

static void get_strided(shmem_ctx_t ctx, char *dest, const char *source, struct stride all, int pe,
			const char *call)
{
	struct hk__sma_at at;

	if (all.n == 0 || all.block == 0)
		return;
	(void)reach_of(all.dest, &all, call);
	hk__sma_find(&at, ctx, source, reach_of(all.source, &all, call), pe, call);
	for (size_t i = 0; i < all.n; i++) {
		if (at.near)
			copy(dest, at.near + (ptrdiff_t)i * all.source, all.block);
		else
			hk__sma_must(call, hk_get_nbi(at.space->win, at.pe,
						      at.offset + i * (size_t)all.source, dest,
						      all.block, at.ctx));
		dest += all.dest;
	}
	if (!at.near)
		hk__sma_must(call, hk_quiet_ranks(at.ctx, &at.pe, 1));
}

/* ---- the functions ---- */

/* One of them, plain and with a context; CALL uses ctx and call. */
#define BOTH(NAME, CTX_NAME, PARAMS, CTX_PARAMS, CALL) \
	FN(void, NAME, PARAMS) \
	{ \
		static const char call[] = #NAME; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		CALL; \
	} \
	FN(void, CTX_NAME, CTX_PARAMS) \
	{ \
		static const char call[] = #CTX_NAME; \
\
		CALL; \
	}

#define MOVE(NAME, CTX_NAME, TYPE, SIZE, MOVER) \
	BOTH(NAME, CTX_NAME, (TYPE * dest, const TYPE *source, size_t nelems, int pe), \
	     (shmem_ctx_t ctx, TYPE * dest, const TYPE *source, size_t nelems, int pe), \
	     MOVER(ctx, dest, source, nelems *(SIZE), pe, call))
#define MOVE_T(F, NAME, TYPE) \
	MOVE(shmem_##NAME##_put, shmem_ctx_##NAME##_put, TYPE, sizeof(TYPE), hk__sma_put) \
	MOVE(shmem_##NAME##_get, shmem_ctx_##NAME##_get, TYPE, sizeof(TYPE), hk__sma_get) \
	MOVE(shmem_##NAME##_put_nbi, shmem_ctx_##NAME##_put_nbi, TYPE, sizeof(TYPE), put_nbi) \
	MOVE(shmem_##NAME##_get_nbi, shmem_ctx_##NAME##_get_nbi, TYPE, sizeof(TYPE), get_nbi)
#define MOVE_S(F, BITS, BYTES) \
	MOVE(shmem_put##BITS, shmem_ctx_put##BITS, void, BYTES, hk__sma_put) \
	MOVE(shmem_get##BITS, shmem_ctx_get##BITS, void, BYTES, hk__sma_get) \
	MOVE(shmem_put##BITS##_nbi, shmem_ctx_put##BITS##_nbi, void, BYTES, put_nbi) \
	MOVE(shmem_get##BITS##_nbi, shmem_ctx_get##BITS##_nbi, void, BYTES, get_nbi)
SHMEMX_RMA_TYPES(MOVE_T, )
SHMEMX_SIZES_MEM(MOVE_S, )

/* volatile: one store, one load, whole. */
#define P_BODY(TYPE) \
	struct hk__sma_at at; \
\
	hk__sma_find(&at, ctx, dest, sizeof(TYPE), pe, call); \
	if (at.near) { \
		*(volatile TYPE *)(void *)at.near = value; \
		hk__sma_ring(&at); \
	} else { \
		hk__sma_must(call, hk_put(at.space->win, at.pe, at.offset, &value, sizeof(TYPE), \
					  at.ctx)); \
	}
#define P_T(F, NAME, TYPE) \
	BOTH(shmem_##NAME##_p, shmem_ctx_##NAME##_p, (TYPE * dest, TYPE value, int pe), \
	     (shmem_ctx_t ctx, TYPE * dest, TYPE value, int pe), P_BODY(TYPE))
#define G_BODY(TYPE) \
	struct hk__sma_at at; \
	TYPE value; \
\
	hk__sma_find(&at, ctx, source, sizeof(TYPE), pe, call); \
	if (at.near) \
		return *(volatile const TYPE *)(const void *)at.near; \
	hk__sma_must(call, hk_get(at.space->win, at.pe, at.offset, &value, sizeof(TYPE), at.ctx)); \
	return value;
#define G_T(F, NAME, TYPE) \
	FN(TYPE, shmem_##NAME##_g, (const TYPE *source, int pe)) \
	{ \
		static const char call[] = "shmem_" #NAME "_g"; \
		shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
\
		G_BODY(TYPE) \
	} \
	FN(TYPE, shmem_ctx_##NAME##_g, (shmem_ctx_t ctx, const TYPE *source, int pe)) \
	{ \
		static const char call[] = "shmem_ctx_" #NAME "_g"; \
\
		G_BODY(TYPE) \
	}
SHMEMX_RMA_TYPES(P_T, )
SHMEMX_RMA_TYPES(G_T, )

#define STRIDED(NAME, CTX_NAME, TYPE, SIZE, MOVER) \
	BOTH(NAME, CTX_NAME, \
	     (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
	      int pe), \
	     (shmem_ctx_t ctx, TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, \
	      size_t nelems, int pe), \
	     MOVER(ctx, (char *)dest, (const char *)source, \
		   (struct stride){ dst * (ptrdiff_t)(SIZE), sst * (ptrdiff_t)(SIZE), SIZE, \
				    nelems }, \
		   pe, call))
#define BLOCKS(NAME, CTX_NAME, TYPE, SIZE, MOVER) \
	BOTH(NAME, CTX_NAME, \
	     (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, \
	      size_t nblocks, int pe), \
	     (shmem_ctx_t ctx, TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, \
	      size_t bsize, size_t nblocks, int pe), \
	     MOVER(ctx, (char *)dest, (const char *)source, \
		   (struct stride){ dst * (ptrdiff_t)(SIZE), sst * (ptrdiff_t)(SIZE), \
				    bsize * (SIZE), nblocks }, \
		   pe, call))
#define STRIDED_T(F, NAME, TYPE) \
	STRIDED(shmem_##NAME##_iput, shmem_ctx_##NAME##_iput, TYPE, sizeof(TYPE), put_strided) \
	STRIDED(shmem_##NAME##_iget, shmem_ctx_##NAME##_iget, TYPE, sizeof(TYPE), get_strided) \
	BLOCKS(shmem_##NAME##_ibput, shmem_ctx_##NAME##_ibput, TYPE, sizeof(TYPE), put_strided) \
	BLOCKS(shmem_##NAME##_ibget, shmem_ctx_##NAME##_ibget, TYPE, sizeof(TYPE), get_strided)
#define STRIDED_S(F, BITS, BYTES) \
	STRIDED(shmem_iput##BITS, shmem_ctx_iput##BITS, void, BYTES, put_strided) \
	STRIDED(shmem_iget##BITS, shmem_ctx_iget##BITS, void, BYTES, get_strided) \
	BLOCKS(shmem_ibput##BITS, shmem_ctx_ibput##BITS, void, BYTES, put_strided) \
	BLOCKS(shmem_ibget##BITS, shmem_ctx_ibget##BITS, void, BYTES, get_strided)
SHMEMX_RMA_TYPES(STRIDED_T, )
SHMEMX_SIZES(STRIDED_S, )
