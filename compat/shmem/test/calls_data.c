/* SPDX-License-Identifier: Apache-2.0 */
/* calls_data.c - puts and gets of every type and size, plain and with a context. */
#include "calls.h"

/* Elements lie `step` apart in blocks of `block`. */
#define FILL(TYPE, at, pe, block, step) \
	for (int i = 0; i < COUNT; i++) \
	((TYPE *)(at))[i / (block) * (step) + i % (block)] = (TYPE)value_of(pe, i)
#define CHECK(TYPE, what, at, pe, block, step) \
	for (int i = 0; i < COUNT; i++) \
	EXPECT(what, ((TYPE *)(at))[i / (block) * (step) + i % (block)] == (TYPE)value_of(pe, i))

#define PUT(TYPE, what, block, dst, sst, CALLED) \
	do { \
		start(); \
		TYPE *d = (TYPE *)dest, *s = (TYPE *)source; \
		FILL(TYPE, s, me, block, sst); \
		CALLED; \
		land(); \
		CHECK(TYPE, what, d, from, block, dst); \
	} while (0)
#define GET(TYPE, what, block, dst, sst, CALLED) \
	do { \
		start(); \
		TYPE *d = (TYPE *)dest, *s = (TYPE *)source; \
		FILL(TYPE, s, me, block, sst); \
		shmem_barrier_all(); \
		CALLED; \
		land(); \
		CHECK(TYPE, what, d, to, block, dst); \
	} while (0)

#define CONTIGUOUS(NAME, TYPE) \
	PUT(TYPE, #NAME "_put", 1, 1, 1, CALL(NAME, put)(d, s, COUNT, to)); \
	PUT(TYPE, #NAME "_put ctx", 1, 1, 1, CTX_CALL(NAME, put)(ctx, d, s, COUNT, to)); \
	GET(TYPE, #NAME "_get", 1, 1, 1, CALL(NAME, get)(d, s, COUNT, to)); \
	GET(TYPE, #NAME "_get ctx", 1, 1, 1, CTX_CALL(NAME, get)(ctx, d, s, COUNT, to)); \
	PUT(TYPE, #NAME "_put_nbi", 1, 1, 1, CALL(NAME, put_nbi)(d, s, COUNT, to)); \
	PUT(TYPE, #NAME "_put_nbi ctx", 1, 1, 1, CTX_CALL(NAME, put_nbi)(ctx, d, s, COUNT, to)); \
	GET(TYPE, #NAME "_get_nbi", 1, 1, 1, CALL(NAME, get_nbi)(d, s, COUNT, to)); \
	GET(TYPE, #NAME "_get_nbi ctx", 1, 1, 1, CTX_CALL(NAME, get_nbi)(ctx, d, s, COUNT, to))
#define SINGLE(NAME, TYPE) \
	PUT(TYPE, #NAME "_p", 1, 1, 1, \
	    for (int k = 0; k < COUNT; k++) CALL(NAME, p)(d + k, s[k], to)); \
	PUT(TYPE, #NAME "_p ctx", 1, 1, 1, \
	    for (int k = 0; k < COUNT; k++) CTX_CALL(NAME, p)(ctx, d + k, s[k], to)); \
	GET(TYPE, #NAME "_g", 1, 1, 1, \
	    for (int k = 0; k < COUNT; k++) d[k] = CALL(NAME, g)(s + k, to)); \
	GET(TYPE, #NAME "_g ctx", 1, 1, 1, \
	    for (int k = 0; k < COUNT; k++) d[k] = CTX_CALL(NAME, g)(ctx, s + k, to))
#define STRIDED(NAME, TYPE) \
	PUT(TYPE, #NAME "_iput", 1, 2, 3, CALL(NAME, iput)(d, s, 2, 3, COUNT, to)); \
	PUT(TYPE, #NAME "_iput ctx", 1, 2, 3, CTX_CALL(NAME, iput)(ctx, d, s, 2, 3, COUNT, to)); \
	GET(TYPE, #NAME "_iget", 1, 2, 3, CALL(NAME, iget)(d, s, 2, 3, COUNT, to)); \
	GET(TYPE, #NAME "_iget ctx", 1, 2, 3, CTX_CALL(NAME, iget)(ctx, d, s, 2, 3, COUNT, to)); \
	PUT(TYPE, #NAME "_ibput", 2, 3, 4, CALL(NAME, ibput)(d, s, 3, 4, 2, COUNT / 2, to)); \
	PUT(TYPE, #NAME "_ibput ctx", 2, 3, 4, \
	    CTX_CALL(NAME, ibput)(ctx, d, s, 3, 4, 2, COUNT / 2, to)); \
	GET(TYPE, #NAME "_ibget", 2, 3, 4, CALL(NAME, ibget)(d, s, 3, 4, 2, COUNT / 2, to)); \
	GET(TYPE, #NAME "_ibget ctx", 2, 3, 4, \
	    CTX_CALL(NAME, ibget)(ctx, d, s, 3, 4, 2, COUNT / 2, to))

#define DATA_T(F, NAME, TYPE) \
	static void data_##NAME(void) \
	{ \
		CONTIGUOUS(NAME, TYPE); \
		SINGLE(NAME, TYPE); \
		STRIDED(NAME, TYPE); \
	}
SHMEMX_RMA_TYPES(DATA_T, )

void test_data(void)
{
#define RUN(F, NAME, TYPE) data_##NAME();
	SHMEMX_RMA_TYPES(RUN, )
#undef RUN
}

/* ---- sizes: elements are so many bytes, all alike ---- */

static void fill(size_t size, int step)
{
	for (int i = 0; i < COUNT; i++)
		memset(source + (size_t)(i * step) * size, value_of(me, i), size);
}

static void check(const char *what, size_t size, int step, int pe)
{
	for (size_t k = 0; k < COUNT * size; k++) {
		int i = (int)(k / size);

		EXPECT(what, dest[(size_t)(i * step) * size + k % size] == value_of(pe, i));
	}
}

#define PUT_S(SIZE, what, dst, sst, CALLED) \
	do { \
		start(); \
		fill(SIZE, sst); \
		CALLED; \
		land(); \
		check(what, SIZE, dst, from); \
	} while (0)
#define GET_S(SIZE, what, dst, sst, CALLED) \
	do { \
		start(); \
		fill(SIZE, sst); \
		shmem_barrier_all(); \
		CALLED; \
		land(); \
		check(what, SIZE, dst, to); \
	} while (0)
#define MOVE_S(F, BITS, SIZE) \
	PUT_S(SIZE, "put" #BITS, 1, 1, shmem_put##BITS(dest, source, COUNT, to)); \
	PUT_S(SIZE, "put" #BITS, 1, 1, shmem_ctx_put##BITS(ctx, dest, source, COUNT, to)); \
	GET_S(SIZE, "get" #BITS, 1, 1, shmem_get##BITS(dest, source, COUNT, to)); \
	GET_S(SIZE, "get" #BITS, 1, 1, shmem_ctx_get##BITS(ctx, dest, source, COUNT, to)); \
	PUT_S(SIZE, "put" #BITS "_nbi", 1, 1, shmem_put##BITS##_nbi(dest, source, COUNT, to)); \
	PUT_S(SIZE, "put" #BITS "_nbi", 1, 1, \
	      shmem_ctx_put##BITS##_nbi(ctx, dest, source, COUNT, to)); \
	GET_S(SIZE, "get" #BITS "_nbi", 1, 1, shmem_get##BITS##_nbi(dest, source, COUNT, to)); \
	GET_S(SIZE, "get" #BITS "_nbi", 1, 1, \
	      shmem_ctx_get##BITS##_nbi(ctx, dest, source, COUNT, to));
#define STRIDED_S(F, BITS, SIZE) \
	PUT_S(SIZE, "iput" #BITS, 2, 3, shmem_iput##BITS(dest, source, 2, 3, COUNT, to)); \
	PUT_S(SIZE, "iput" #BITS, 2, 3, shmem_ctx_iput##BITS(ctx, dest, source, 2, 3, COUNT, to)); \
	GET_S(SIZE, "iget" #BITS, 2, 3, shmem_iget##BITS(dest, source, 2, 3, COUNT, to)); \
	GET_S(SIZE, "iget" #BITS, 2, 3, shmem_ctx_iget##BITS(ctx, dest, source, 2, 3, COUNT, to)); \
	PUT_S(SIZE, "ibput" #BITS, 2, 3, shmem_ibput##BITS(dest, source, 2, 3, 1, COUNT, to)); \
	PUT_S(SIZE, "ibput" #BITS, 2, 3, \
	      shmem_ctx_ibput##BITS(ctx, dest, source, 2, 3, 1, COUNT, to)); \
	GET_S(SIZE, "ibget" #BITS, 2, 3, shmem_ibget##BITS(dest, source, 2, 3, 1, COUNT, to)); \
	GET_S(SIZE, "ibget" #BITS, 2, 3, \
	      shmem_ctx_ibget##BITS(ctx, dest, source, 2, 3, 1, COUNT, to));

void test_sizes(void)
{
	SHMEMX_SIZES_MEM(MOVE_S, )
	SHMEMX_SIZES(STRIDED_S, )
}

/* ---- puts with signals ---- */

/* The first waits for the signal alone: the data must be there then. */
#define SIGNALLED(what, SIZE, OP, CALLED) \
	do { \
		start(); \
		fill(SIZE, 1); \
		CALLED; \
		EXPECT(what, shmem_signal_wait_until(word, SHMEM_CMP_EQ, 3) == 3); \
		check(what, SIZE, 1, from); \
		land(); \
	} while (0)
#define SIGNAL_S(F, BITS, SIZE) \
	SIGNALLED("put" #BITS "_signal", SIZE, SET, \
		  shmem_put##BITS##_signal(dest, source, COUNT, word, 3, SHMEM_SIGNAL_SET, to)); \
	SIGNALLED("put" #BITS "_signal", SIZE, ADD, \
		  shmem_ctx_put##BITS##_signal(ctx, dest, source, COUNT, word, 3, \
					       SHMEM_SIGNAL_ADD, to)); \
	SIGNALLED("put" #BITS "_signal_nbi", SIZE, ADD, \
		  shmem_put##BITS##_signal_nbi(dest, source, COUNT, word, 3, SHMEM_SIGNAL_ADD, \
					       to)); \
	SIGNALLED("put" #BITS "_signal_nbi", SIZE, SET, \
		  shmem_ctx_put##BITS##_signal_nbi(ctx, dest, source, COUNT, word, 3, \
						   SHMEM_SIGNAL_SET, to));
#define SIGNAL_T(F, NAME, TYPE) \
	do { \
		SIGNALLED(#NAME "_put_signal", sizeof(TYPE), SET, \
			  CALL(NAME, put_signal)((TYPE *)dest, (TYPE *)source, COUNT, word, 3, \
						 SHMEM_SIGNAL_SET, to)); \
		SIGNALLED(#NAME "_put_signal", sizeof(TYPE), ADD, \
			  CTX_CALL(NAME, put_signal)(ctx, (TYPE *)dest, (TYPE *)source, COUNT, \
						     word, 3, SHMEM_SIGNAL_ADD, to)); \
		SIGNALLED(#NAME "_put_signal_nbi", sizeof(TYPE), ADD, \
			  CALL(NAME, put_signal_nbi)((TYPE *)dest, (TYPE *)source, COUNT, word, 3, \
						     SHMEM_SIGNAL_ADD, to)); \
		SIGNALLED(#NAME "_put_signal_nbi", sizeof(TYPE), SET, \
			  CTX_CALL(NAME, put_signal_nbi)(ctx, (TYPE *)dest, (TYPE *)source, COUNT, \
							 word, 3, SHMEM_SIGNAL_SET, to)); \
	} while (0);

void test_signals(void)
{
	SHMEMX_RMA_TYPES(SIGNAL_T, )
	SHMEMX_SIZES_MEM(SIGNAL_S, )
	start();
	shmem_signal_set(word, 5, to);
	EXPECT("signal_set", shmem_signal_wait_until(word, SHMEM_CMP_GE, 5) == 5);
	shmem_barrier_all();
#ifdef GENERIC
	shmem_signal_add(ctx, word, 2, to);
#else
	shmem_ctx_signal_add(ctx, word, 2, to);
#endif
	EXPECT("signal_add", shmem_signal_wait_until(word, SHMEM_CMP_GT, 5) == 7);
	shmem_barrier_all();
	shmem_signal_add(word, 1, to);
	land();
	EXPECT("signal_fetch", shmem_signal_fetch(word) == 8);
	shmem_barrier_all();
#ifdef GENERIC
	shmem_signal_set(ctx, word, 1, to);
#else
	shmem_ctx_signal_set(ctx, word, 1, to);
#endif
	land();
	EXPECT("signal_set", shmem_signal_fetch(word) == 1);
}
