/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shmemx_table.h - the functions of OpenSHMEM 1.6, and those that it deprecates, as
 * tables: types, and one macro per family that gives its functions for one type. From
 * them come the declarations (shmem.h, pshmem.h), the tests and the list of names.
 *
 * A family is given F(result, name, (parameters)), and NAME, TYPE or SIZE of a row. A list
 * SHMEMX_..._TYPES(X, F) does X(F, NAME, TYPE) for every row. Every function has a twin
 * whose name begins with "p".
 */
#ifndef SHMEMX_TABLE_H
#define SHMEMX_TABLE_H

/* ---- types ---- */

#define SHMEMX_RMA_TYPES(X, F) \
	X(F, float, float) X(F, double, double) X(F, longdouble, long double) \
	X(F, char, char) X(F, schar, signed char) X(F, short, short) X(F, int, int) \
	X(F, long, long) X(F, longlong, long long) X(F, uchar, unsigned char) \
	X(F, ushort, unsigned short) X(F, uint, unsigned int) X(F, ulong, unsigned long) \
	X(F, ulonglong, unsigned long long) X(F, int8, int8_t) X(F, int16, int16_t) \
	X(F, int32, int32_t) X(F, int64, int64_t) X(F, uint8, uint8_t) X(F, uint16, uint16_t) \
	X(F, uint32, uint32_t) X(F, uint64, uint64_t) X(F, size, size_t) X(F, ptrdiff, ptrdiff_t)

/* Bits of an element of no type; with mem, elements are bytes. */
#define SHMEMX_SIZES(X, F) \
	X(F, 8, 1) X(F, 16, 2) X(F, 32, 4) X(F, 64, 8) X(F, 128, 16)
#define SHMEMX_SIZES_MEM(X, F) SHMEMX_SIZES(X, F) X(F, mem, 1)

#define SHMEMX_AMO_TYPES(X, F) \
	X(F, int, int) X(F, long, long) X(F, longlong, long long) X(F, uint, unsigned int) \
	X(F, ulong, unsigned long) X(F, ulonglong, unsigned long long) X(F, int32, int32_t) \
	X(F, int64, int64_t) X(F, uint32, uint32_t) X(F, uint64, uint64_t) X(F, size, size_t) \
	X(F, ptrdiff, ptrdiff_t)
#define SHMEMX_AMO_FLOATS(X, F) \
	X(F, float, float) X(F, double, double)
#define SHMEMX_AMO_EXT_TYPES(X, F) SHMEMX_AMO_TYPES(X, F) SHMEMX_AMO_FLOATS(X, F)
#define SHMEMX_AMO_BIT_TYPES(X, F) \
	X(F, uint, unsigned int) X(F, ulong, unsigned long) X(F, ulonglong, unsigned long long) \
	X(F, int32, int32_t) X(F, int64, int64_t) X(F, uint32, uint32_t) X(F, uint64, uint64_t)

#define SHMEMX_REDUCE_BIT_TYPES(X, F) \
	X(F, uchar, unsigned char) X(F, ushort, unsigned short) X(F, uint, unsigned int) \
	X(F, ulong, unsigned long) X(F, ulonglong, unsigned long long) X(F, int8, int8_t) \
	X(F, int16, int16_t) X(F, int32, int32_t) X(F, int64, int64_t) X(F, uint8, uint8_t) \
	X(F, uint16, uint16_t) X(F, uint32, uint32_t) X(F, uint64, uint64_t) X(F, size, size_t)
#define SHMEMX_COMPLEX_TYPES(X, F) \
	X(F, complexd, shmemx_complexd) X(F, complexf, shmemx_complexf)
#define SHMEMX_REDUCE_SUM_TYPES(X, F) SHMEMX_RMA_TYPES(X, F) SHMEMX_COMPLEX_TYPES(X, F)

/* Of the deprecated reductions over active sets. */
#define SHMEMX_TO_ALL_BIT_TYPES(X, F) \
	X(F, short, short) X(F, int, int) X(F, long, long) X(F, longlong, long long)
#define SHMEMX_TO_ALL_TYPES(X, F) SHMEMX_TO_ALL_BIT_TYPES(X, F) \
	X(F, float, float) X(F, double, double) X(F, longdouble, long double)
#define SHMEMX_TO_ALL_SUM_TYPES(X, F) SHMEMX_TO_ALL_TYPES(X, F) SHMEMX_COMPLEX_TYPES(X, F)

/* Of the deprecated atomics without "_atomic". */
#define SHMEMX_OLD_AMO_TYPES(X, F) \
	X(F, int, int) X(F, long, long) X(F, longlong, long long)
#define SHMEMX_OLD_AMO_EXT_TYPES(X, F) SHMEMX_OLD_AMO_TYPES(X, F) SHMEMX_AMO_FLOATS(X, F)

/* ---- put, get ----
 *
 * A family of data has three macros: _T for a type, _S for a size, and one for both, which
 * takes the names of the plain function and of that with a context.
 */

#define SHMEMX_PUT(F, NAME, CTX_NAME, TYPE) \
	F(void, NAME, (TYPE *dest, const TYPE *source, size_t nelems, int pe)) \
	F(void, CTX_NAME, \
	  (shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, int pe))
#define SHMEMX_PUT_T(F, NAME, TYPE) SHMEMX_PUT(F, shmem_##NAME##_put, shmem_ctx_##NAME##_put, TYPE)
#define SHMEMX_PUT_S(F, SIZE, BYTES) SHMEMX_PUT(F, shmem_put##SIZE, shmem_ctx_put##SIZE, void)
#define SHMEMX_GET_T(F, NAME, TYPE) SHMEMX_PUT(F, shmem_##NAME##_get, shmem_ctx_##NAME##_get, TYPE)
#define SHMEMX_GET_S(F, SIZE, BYTES) SHMEMX_PUT(F, shmem_get##SIZE, shmem_ctx_get##SIZE, void)
#define SHMEMX_PUT_NBI_T(F, NAME, TYPE) \
	SHMEMX_PUT(F, shmem_##NAME##_put_nbi, shmem_ctx_##NAME##_put_nbi, TYPE)
#define SHMEMX_PUT_NBI_S(F, SIZE, BYTES) \
	SHMEMX_PUT(F, shmem_put##SIZE##_nbi, shmem_ctx_put##SIZE##_nbi, void)
#define SHMEMX_GET_NBI_T(F, NAME, TYPE) \
	SHMEMX_PUT(F, shmem_##NAME##_get_nbi, shmem_ctx_##NAME##_get_nbi, TYPE)
#define SHMEMX_GET_NBI_S(F, SIZE, BYTES) \
	SHMEMX_PUT(F, shmem_get##SIZE##_nbi, shmem_ctx_get##SIZE##_nbi, void)

#define SHMEMX_P_T(F, NAME, TYPE) \
	F(void, shmem_##NAME##_p, (TYPE *dest, TYPE value, int pe)) \
	F(void, shmem_ctx_##NAME##_p, (shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe))
#define SHMEMX_G_T(F, NAME, TYPE) \
	F(TYPE, shmem_##NAME##_g, (const TYPE *source, int pe)) \
	F(TYPE, shmem_ctx_##NAME##_g, (shmem_ctx_t ctx, const TYPE *source, int pe))

#define SHMEMX_IPUT(F, NAME, CTX_NAME, TYPE) \
	F(void, NAME, (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, \
		       size_t nelems, int pe)) \
	F(void, CTX_NAME, (shmem_ctx_t ctx, TYPE *dest, const TYPE *source, ptrdiff_t dst, \
			   ptrdiff_t sst, size_t nelems, int pe))
#define SHMEMX_IPUT_T(F, NAME, TYPE) \
	SHMEMX_IPUT(F, shmem_##NAME##_iput, shmem_ctx_##NAME##_iput, TYPE)
#define SHMEMX_IPUT_S(F, SIZE, BYTES) SHMEMX_IPUT(F, shmem_iput##SIZE, shmem_ctx_iput##SIZE, void)
#define SHMEMX_IGET_T(F, NAME, TYPE) \
	SHMEMX_IPUT(F, shmem_##NAME##_iget, shmem_ctx_##NAME##_iget, TYPE)
#define SHMEMX_IGET_S(F, SIZE, BYTES) SHMEMX_IPUT(F, shmem_iget##SIZE, shmem_ctx_iget##SIZE, void)

#define SHMEMX_IBPUT(F, NAME, CTX_NAME, TYPE) \
	F(void, NAME, (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, \
		       size_t nblocks, int pe)) \
	F(void, CTX_NAME, (shmem_ctx_t ctx, TYPE *dest, const TYPE *source, ptrdiff_t dst, \
			   ptrdiff_t sst, size_t bsize, size_t nblocks, int pe))
#define SHMEMX_IBPUT_T(F, NAME, TYPE) \
	SHMEMX_IBPUT(F, shmem_##NAME##_ibput, shmem_ctx_##NAME##_ibput, TYPE)
#define SHMEMX_IBPUT_S(F, SIZE, BYTES) \
	SHMEMX_IBPUT(F, shmem_ibput##SIZE, shmem_ctx_ibput##SIZE, void)
#define SHMEMX_IBGET_T(F, NAME, TYPE) \
	SHMEMX_IBPUT(F, shmem_##NAME##_ibget, shmem_ctx_##NAME##_ibget, TYPE)
#define SHMEMX_IBGET_S(F, SIZE, BYTES) \
	SHMEMX_IBPUT(F, shmem_ibget##SIZE, shmem_ctx_ibget##SIZE, void)

#define SHMEMX_PUT_SIGNAL(F, NAME, CTX_NAME, TYPE) \
	F(void, NAME, (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
		       uint64_t signal, int sig_op, int pe)) \
	F(void, CTX_NAME, (shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, \
			   uint64_t *sig_addr, uint64_t signal, int sig_op, int pe))
#define SHMEMX_PUT_SIGNAL_T(F, NAME, TYPE) \
	SHMEMX_PUT_SIGNAL(F, shmem_##NAME##_put_signal, shmem_ctx_##NAME##_put_signal, TYPE)
#define SHMEMX_PUT_SIGNAL_S(F, SIZE, BYTES) \
	SHMEMX_PUT_SIGNAL(F, shmem_put##SIZE##_signal, shmem_ctx_put##SIZE##_signal, void)
#define SHMEMX_PUT_SIGNAL_NBI_T(F, NAME, TYPE) \
	SHMEMX_PUT_SIGNAL(F, shmem_##NAME##_put_signal_nbi, shmem_ctx_##NAME##_put_signal_nbi, TYPE)
#define SHMEMX_PUT_SIGNAL_NBI_S(F, SIZE, BYTES) \
	SHMEMX_PUT_SIGNAL(F, shmem_put##SIZE##_signal_nbi, shmem_ctx_put##SIZE##_signal_nbi, void)

#define SHMEMX_PUT_GET(F) \
	SHMEMX_RMA_TYPES(SHMEMX_PUT_T, F) SHMEMX_SIZES_MEM(SHMEMX_PUT_S, F) \
	SHMEMX_RMA_TYPES(SHMEMX_GET_T, F) SHMEMX_SIZES_MEM(SHMEMX_GET_S, F)
#define SHMEMX_P_G(F) \
	SHMEMX_RMA_TYPES(SHMEMX_P_T, F) SHMEMX_RMA_TYPES(SHMEMX_G_T, F)
#define SHMEMX_IPUT_IGET(F) \
	SHMEMX_RMA_TYPES(SHMEMX_IPUT_T, F) SHMEMX_SIZES(SHMEMX_IPUT_S, F) \
	SHMEMX_RMA_TYPES(SHMEMX_IGET_T, F) SHMEMX_SIZES(SHMEMX_IGET_S, F)
#define SHMEMX_NBI(F) \
	SHMEMX_RMA_TYPES(SHMEMX_PUT_NBI_T, F) SHMEMX_SIZES_MEM(SHMEMX_PUT_NBI_S, F) \
	SHMEMX_RMA_TYPES(SHMEMX_GET_NBI_T, F) SHMEMX_SIZES_MEM(SHMEMX_GET_NBI_S, F)
#define SHMEMX_PUT_SIGNALS(F) \
	SHMEMX_RMA_TYPES(SHMEMX_PUT_SIGNAL_T, F) SHMEMX_SIZES_MEM(SHMEMX_PUT_SIGNAL_S, F) \
	SHMEMX_RMA_TYPES(SHMEMX_PUT_SIGNAL_NBI_T, F) SHMEMX_SIZES_MEM(SHMEMX_PUT_SIGNAL_NBI_S, F)
#define SHMEMX_BLOCKS(F) \
	SHMEMX_RMA_TYPES(SHMEMX_IBPUT_T, F) SHMEMX_SIZES(SHMEMX_IBPUT_S, F) \
	SHMEMX_RMA_TYPES(SHMEMX_IBGET_T, F) SHMEMX_SIZES(SHMEMX_IBGET_S, F)

/* ---- atomics ---- */

#define SHMEMX_AMO_COMPARE_SWAP(F, NAME, TYPE) \
	F(TYPE, shmem_##NAME##_atomic_compare_swap, (TYPE *dest, TYPE cond, TYPE value, int pe)) \
	F(TYPE, shmem_ctx_##NAME##_atomic_compare_swap, \
	  (shmem_ctx_t ctx, TYPE *dest, TYPE cond, TYPE value, int pe))
#define SHMEMX_AMO_FETCH_INC(F, NAME, TYPE) \
	F(TYPE, shmem_##NAME##_atomic_fetch_inc, (TYPE *dest, int pe)) \
	F(TYPE, shmem_ctx_##NAME##_atomic_fetch_inc, (shmem_ctx_t ctx, TYPE *dest, int pe))
#define SHMEMX_AMO_INC(F, NAME, TYPE) \
	F(void, shmem_##NAME##_atomic_inc, (TYPE *dest, int pe)) \
	F(void, shmem_ctx_##NAME##_atomic_inc, (shmem_ctx_t ctx, TYPE *dest, int pe))
#define SHMEMX_AMO_FETCH(F, NAME, TYPE) \
	F(TYPE, shmem_##NAME##_atomic_fetch, (const TYPE *source, int pe)) \
	F(TYPE, shmem_ctx_##NAME##_atomic_fetch, (shmem_ctx_t ctx, const TYPE *source, int pe))
/* With a value, and the old one as the result or no result. */
#define SHMEMX_AMO_OLD(F, NAME, TYPE, OP) \
	F(TYPE, shmem_##NAME##_atomic_##OP, (TYPE *dest, TYPE value, int pe)) \
	F(TYPE, shmem_ctx_##NAME##_atomic_##OP, (shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe))
#define SHMEMX_AMO_ONLY(F, NAME, TYPE, OP) \
	F(void, shmem_##NAME##_atomic_##OP, (TYPE *dest, TYPE value, int pe)) \
	F(void, shmem_ctx_##NAME##_atomic_##OP, (shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe))
#define SHMEMX_AMO_PLAIN_T(F, NAME, TYPE) \
	SHMEMX_AMO_COMPARE_SWAP(F, NAME, TYPE) SHMEMX_AMO_FETCH_INC(F, NAME, TYPE) \
	SHMEMX_AMO_INC(F, NAME, TYPE) SHMEMX_AMO_OLD(F, NAME, TYPE, fetch_add) \
	SHMEMX_AMO_ONLY(F, NAME, TYPE, add)
#define SHMEMX_AMO_EXT_T(F, NAME, TYPE) \
	SHMEMX_AMO_FETCH(F, NAME, TYPE) SHMEMX_AMO_ONLY(F, NAME, TYPE, set) \
	SHMEMX_AMO_OLD(F, NAME, TYPE, swap)
#define SHMEMX_AMO_BIT_T(F, NAME, TYPE) \
	SHMEMX_AMO_OLD(F, NAME, TYPE, fetch_and) SHMEMX_AMO_OLD(F, NAME, TYPE, fetch_or) \
	SHMEMX_AMO_OLD(F, NAME, TYPE, fetch_xor) SHMEMX_AMO_ONLY(F, NAME, TYPE, and) \
	SHMEMX_AMO_ONLY(F, NAME, TYPE, or) SHMEMX_AMO_ONLY(F, NAME, TYPE, xor)
#define SHMEMX_ATOMICS(F) \
	SHMEMX_AMO_TYPES(SHMEMX_AMO_PLAIN_T, F) SHMEMX_AMO_EXT_TYPES(SHMEMX_AMO_EXT_T, F) \
	SHMEMX_AMO_BIT_TYPES(SHMEMX_AMO_BIT_T, F)

#define SHMEMX_AMO_NBI(F, NAME, TYPE, OP) \
	F(void, shmem_##NAME##_atomic_##OP##_nbi, (TYPE *fetch, TYPE *dest, TYPE value, int pe)) \
	F(void, shmem_ctx_##NAME##_atomic_##OP##_nbi, \
	  (shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE value, int pe))
#define SHMEMX_AMO_NBI_PLAIN_T(F, NAME, TYPE) \
	F(void, shmem_##NAME##_atomic_compare_swap_nbi, \
	  (TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe)) \
	F(void, shmem_ctx_##NAME##_atomic_compare_swap_nbi, \
	  (shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe)) \
	F(void, shmem_##NAME##_atomic_fetch_inc_nbi, (TYPE *fetch, TYPE *dest, int pe)) \
	F(void, shmem_ctx_##NAME##_atomic_fetch_inc_nbi, \
	  (shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, int pe)) \
	SHMEMX_AMO_NBI(F, NAME, TYPE, fetch_add)
#define SHMEMX_AMO_NBI_EXT_T(F, NAME, TYPE) \
	F(void, shmem_##NAME##_atomic_fetch_nbi, (TYPE *fetch, const TYPE *source, int pe)) \
	F(void, shmem_ctx_##NAME##_atomic_fetch_nbi, \
	  (shmem_ctx_t ctx, TYPE *fetch, const TYPE *source, int pe)) \
	SHMEMX_AMO_NBI(F, NAME, TYPE, swap)
#define SHMEMX_AMO_NBI_BIT_T(F, NAME, TYPE) \
	SHMEMX_AMO_NBI(F, NAME, TYPE, fetch_and) SHMEMX_AMO_NBI(F, NAME, TYPE, fetch_or) \
	SHMEMX_AMO_NBI(F, NAME, TYPE, fetch_xor)
#define SHMEMX_ATOMICS_NBI(F) \
	SHMEMX_AMO_TYPES(SHMEMX_AMO_NBI_PLAIN_T, F) SHMEMX_AMO_EXT_TYPES(SHMEMX_AMO_NBI_EXT_T, F) \
	SHMEMX_AMO_BIT_TYPES(SHMEMX_AMO_NBI_BIT_T, F)

/* ---- waits and tests ---- */

#define SHMEMX_WAIT_T(F, NAME, TYPE) \
	F(void, shmem_##NAME##_wait_until, (TYPE *ivar, int cmp, TYPE cmp_value)) \
	F(void, shmem_##NAME##_wait_until_all, \
	  (TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value)) \
	F(size_t, shmem_##NAME##_wait_until_any, \
	  (TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value)) \
	F(size_t, shmem_##NAME##_wait_until_some, \
	  (TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
	   TYPE cmp_value)) \
	F(void, shmem_##NAME##_wait_until_all_vector, \
	  (TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values)) \
	F(size_t, shmem_##NAME##_wait_until_any_vector, \
	  (TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values)) \
	F(size_t, shmem_##NAME##_wait_until_some_vector, \
	  (TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
	   const TYPE *cmp_values))
#define SHMEMX_TEST_T(F, NAME, TYPE) \
	F(int, shmem_##NAME##_test, (TYPE *ivar, int cmp, TYPE cmp_value)) \
	F(int, shmem_##NAME##_test_all, \
	  (TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value)) \
	F(size_t, shmem_##NAME##_test_any, \
	  (TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value)) \
	F(size_t, shmem_##NAME##_test_some, \
	  (TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
	   TYPE cmp_value)) \
	F(int, shmem_##NAME##_test_all_vector, \
	  (TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values)) \
	F(size_t, shmem_##NAME##_test_any_vector, \
	  (TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values)) \
	F(size_t, shmem_##NAME##_test_some_vector, \
	  (TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
	   const TYPE *cmp_values))
#define SHMEMX_WAITS(F) \
	SHMEMX_AMO_TYPES(SHMEMX_WAIT_T, F) SHMEMX_AMO_TYPES(SHMEMX_TEST_T, F)

#define SHMEMX_SIGNALS(F) \
	F(uint64_t, shmem_signal_fetch, (const uint64_t *sig_addr)) \
	F(uint64_t, shmem_signal_wait_until, (uint64_t *sig_addr, int cmp, uint64_t cmp_value)) \
	F(void, shmem_signal_set, (uint64_t *sig_addr, uint64_t signal, int pe)) \
	F(void, shmem_ctx_signal_set, \
	  (shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)) \
	F(void, shmem_signal_add, (uint64_t *sig_addr, uint64_t signal, int pe)) \
	F(void, shmem_ctx_signal_add, \
	  (shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe))

/* ---- collectives ---- */

#define SHMEMX_COLL(F, BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, TYPE) \
	F(int, BROADCAST, \
	  (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, int PE_root)) \
	F(int, COLLECT, (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)) \
	F(int, FCOLLECT, (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)) \
	F(int, ALLTOALL, (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)) \
	F(int, ALLTOALLS, (shmem_team_t team, TYPE *dest, const TYPE *source, ptrdiff_t dst, \
			   ptrdiff_t sst, size_t nelems))
#define SHMEMX_COLL_T(F, NAME, TYPE) \
	SHMEMX_COLL(F, shmem_##NAME##_broadcast, shmem_##NAME##_collect, shmem_##NAME##_fcollect, \
		    shmem_##NAME##_alltoall, shmem_##NAME##_alltoalls, TYPE)
#define SHMEMX_COLLS(F) \
	SHMEMX_RMA_TYPES(SHMEMX_COLL_T, F) \
	SHMEMX_COLL(F, shmem_broadcastmem, shmem_collectmem, shmem_fcollectmem, shmem_alltoallmem, \
		    shmem_alltoallsmem, void)

#define SHMEMX_REDUCE(F, NAME, TYPE, OP) \
	F(int, shmem_##NAME##_##OP##_reduce, \
	  (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce))
#define SHMEMX_REDUCE_BIT_T(F, NAME, TYPE) \
	SHMEMX_REDUCE(F, NAME, TYPE, and) SHMEMX_REDUCE(F, NAME, TYPE, or) \
	SHMEMX_REDUCE(F, NAME, TYPE, xor)
#define SHMEMX_REDUCE_MAX_T(F, NAME, TYPE) \
	SHMEMX_REDUCE(F, NAME, TYPE, max) SHMEMX_REDUCE(F, NAME, TYPE, min)
#define SHMEMX_REDUCE_SUM_T(F, NAME, TYPE) \
	SHMEMX_REDUCE(F, NAME, TYPE, sum) SHMEMX_REDUCE(F, NAME, TYPE, prod)
#define SHMEMX_REDUCTIONS(F) \
	SHMEMX_REDUCE_BIT_TYPES(SHMEMX_REDUCE_BIT_T, F) SHMEMX_RMA_TYPES(SHMEMX_REDUCE_MAX_T, F) \
	SHMEMX_REDUCE_SUM_TYPES(SHMEMX_REDUCE_SUM_T, F)

#define SHMEMX_SCAN_T(F, NAME, TYPE) \
	F(int, shmem_##NAME##_sum_inscan, \
	  (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)) \
	F(int, shmem_##NAME##_sum_exscan, \
	  (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems))
#define SHMEMX_SCANS(F) SHMEMX_REDUCE_SUM_TYPES(SHMEMX_SCAN_T, F)

/* ---- what has no type ---- */

#define SHMEMX_SYNCS(F) \
	F(int, shmem_team_sync, (shmem_team_t team)) \
	F(void, shmem_sync_all, (void)) \
	F(void, shmem_barrier_all, (void))
#define SHMEMX_ORDER(F) \
	F(void, shmem_fence, (void)) \
	F(void, shmem_ctx_fence, (shmem_ctx_t ctx)) \
	F(void, shmem_quiet, (void)) \
	F(void, shmem_ctx_quiet, (shmem_ctx_t ctx)) \
	F(void, shmem_pe_quiet, (const int *target_pes, size_t npes)) \
	F(void, shmem_ctx_pe_quiet, (shmem_ctx_t ctx, const int *target_pes, size_t npes))
#define SHMEMX_SETUP(F) \
	F(void, shmem_init, (void)) \
	F(int, shmem_init_thread, (int requested, int *provided)) \
	F(void, shmem_query_thread, (int *provided)) \
	F(void, shmem_query_initialized, (int *initialized)) \
	F(int, shmem_my_pe, (void)) \
	F(int, shmem_n_pes, (void)) \
	F(void, shmem_finalize, (void)) \
	F(SHMEMX_NORETURN void, shmem_global_exit, (int status)) \
	F(int, shmem_pe_accessible, (int pe)) \
	F(int, shmem_addr_accessible, (const void *addr, int pe)) \
	F(void *, shmem_ptr, (const void *dest, int pe)) \
	F(void *, shmem_team_ptr, (shmem_team_t team, const void *dest, int pe)) \
	F(void, shmem_info_get_version, (int *major, int *minor)) \
	F(void, shmem_info_get_name, (char *name))
#define SHMEMX_MEMORY(F) \
	F(void *, shmem_malloc, (size_t size)) \
	F(void, shmem_free, (void *ptr)) \
	F(void *, shmem_realloc, (void *ptr, size_t size)) \
	F(void *, shmem_align, (size_t alignment, size_t size)) \
	F(void *, shmem_malloc_with_hints, (size_t size, long hints)) \
	F(void *, shmem_calloc, (size_t count, size_t size))
#define SHMEMX_TEAMS(F) \
	F(int, shmem_team_my_pe, (shmem_team_t team)) \
	F(int, shmem_team_n_pes, (shmem_team_t team)) \
	F(int, shmem_team_get_config, \
	  (shmem_team_t team, long config_mask, shmem_team_config_t *config)) \
	F(int, shmem_team_translate_pe, \
	  (shmem_team_t src_team, int src_pe, shmem_team_t dest_team)) \
	F(int, shmem_team_split_strided, \
	  (shmem_team_t parent_team, int start, int stride, int size, \
	   const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team)) \
	F(int, shmem_team_split_2d, \
	  (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, \
	   long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, \
	   long yaxis_mask, shmem_team_t *yaxis_team)) \
	F(void, shmem_team_destroy, (shmem_team_t team))
#define SHMEMX_CONTEXTS(F) \
	F(int, shmem_ctx_create, (long options, shmem_ctx_t *ctx)) \
	F(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx)) \
	F(void, shmem_ctx_destroy, (shmem_ctx_t ctx)) \
	F(int, shmem_ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team)) \
	F(void, shmem_ctx_session_start, \
	  (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, \
	   long config_mask)) \
	F(void, shmem_ctx_session_stop, (shmem_ctx_t ctx))
#define SHMEMX_LOCKS(F) \
	F(void, shmem_set_lock, (long *lock)) \
	F(void, shmem_clear_lock, (long *lock)) \
	F(int, shmem_test_lock, (long *lock)) \
	F(void, shmem_pcontrol, (int level, ...))

/* ---- deprecated ---- */

#define SHMEMX_OLD_SETUP(F) \
	F(void, start_pes, (int npes)) \
	F(int, _my_pe, (void)) \
	F(int, _num_pes, (void)) \
	F(void *, shmalloc, (size_t size)) \
	F(void, shfree, (void *ptr)) \
	F(void *, shrealloc, (void *ptr, size_t size)) \
	F(void *, shmemalign, (size_t alignment, size_t size))
#define SHMEMX_OLD_AMO_T(F, NAME, TYPE) \
	F(TYPE, shmem_##NAME##_cswap, (TYPE *dest, TYPE cond, TYPE value, int pe)) \
	F(TYPE, shmem_##NAME##_fadd, (TYPE *dest, TYPE value, int pe)) \
	F(TYPE, shmem_##NAME##_finc, (TYPE *dest, int pe)) \
	F(void, shmem_##NAME##_add, (TYPE *dest, TYPE value, int pe)) \
	F(void, shmem_##NAME##_inc, (TYPE *dest, int pe))
#define SHMEMX_OLD_AMO_EXT_T(F, NAME, TYPE) \
	F(TYPE, shmem_##NAME##_fetch, (const TYPE *source, int pe)) \
	F(void, shmem_##NAME##_set, (TYPE *dest, TYPE value, int pe)) \
	F(TYPE, shmem_##NAME##_swap, (TYPE *dest, TYPE value, int pe))
#define SHMEMX_OLD_ATOMICS(F) \
	SHMEMX_OLD_AMO_TYPES(SHMEMX_OLD_AMO_T, F) \
	SHMEMX_OLD_AMO_EXT_TYPES(SHMEMX_OLD_AMO_EXT_T, F)
#define SHMEMX_OLD_WAITS(F) \
	F(void, shmem_wait, (long *ivar, long cmp_value)) \
	F(void, shmem_wait_until, (long *ivar, int cmp, long cmp_value)) \
	F(void, shmem_short_wait, (short *ivar, short cmp_value)) \
	F(void, shmem_int_wait, (int *ivar, int cmp_value)) \
	F(void, shmem_long_wait, (long *ivar, long cmp_value)) \
	F(void, shmem_longlong_wait, (long long *ivar, long long cmp_value))
#define SHMEMX_OLD_SHORT_WAITS(F) \
	F(void, shmem_short_wait_until, (short *ivar, int cmp, short cmp_value)) \
	F(void, shmem_ushort_wait_until, \
	  (unsigned short *ivar, int cmp, unsigned short cmp_value)) \
	F(int, shmem_short_test, (short *ivar, int cmp, short cmp_value)) \
	F(int, shmem_ushort_test, (unsigned short *ivar, int cmp, unsigned short cmp_value))
#define SHMEMX_OLD_SYNCS(F) \
	F(void, shmem_barrier, (int PE_start, int logPE_stride, int PE_size, long *pSync)) \
	F(void, shmem_sync, (int PE_start, int logPE_stride, int PE_size, long *pSync))
#define SHMEMX_OLD_COLL_S(F, SIZE) \
	F(void, shmem_broadcast##SIZE, \
	  (void *dest, const void *source, size_t nelems, int PE_root, int PE_start, \
	   int logPE_stride, int PE_size, long *pSync)) \
	F(void, shmem_collect##SIZE, \
	  (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
	   int PE_size, long *pSync)) \
	F(void, shmem_fcollect##SIZE, \
	  (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
	   int PE_size, long *pSync)) \
	F(void, shmem_alltoall##SIZE, \
	  (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
	   int PE_size, long *pSync)) \
	F(void, shmem_alltoalls##SIZE, \
	  (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
	   int PE_start, int logPE_stride, int PE_size, long *pSync))
#define SHMEMX_OLD_COLLS(F) SHMEMX_OLD_COLL_S(F, 32) SHMEMX_OLD_COLL_S(F, 64)
#define SHMEMX_TO_ALL(F, NAME, TYPE, OP) \
	F(void, shmem_##NAME##_##OP##_to_all, \
	  (TYPE *dest, const TYPE *source, int nreduce, int PE_start, int logPE_stride, \
	   int PE_size, TYPE *pWrk, long *pSync))
#define SHMEMX_TO_ALL_BIT_T(F, NAME, TYPE) \
	SHMEMX_TO_ALL(F, NAME, TYPE, and) SHMEMX_TO_ALL(F, NAME, TYPE, or) \
	SHMEMX_TO_ALL(F, NAME, TYPE, xor)
#define SHMEMX_TO_ALL_MAX_T(F, NAME, TYPE) \
	SHMEMX_TO_ALL(F, NAME, TYPE, max) SHMEMX_TO_ALL(F, NAME, TYPE, min)
#define SHMEMX_TO_ALL_SUM_T(F, NAME, TYPE) \
	SHMEMX_TO_ALL(F, NAME, TYPE, sum) SHMEMX_TO_ALL(F, NAME, TYPE, prod)
#define SHMEMX_TO_ALLS(F) \
	SHMEMX_TO_ALL_BIT_TYPES(SHMEMX_TO_ALL_BIT_T, F) SHMEMX_TO_ALL_TYPES(SHMEMX_TO_ALL_MAX_T, F) \
	SHMEMX_TO_ALL_SUM_TYPES(SHMEMX_TO_ALL_SUM_T, F)

/* ---- all of them ---- */

/* X(family of functions, how many of OpenSHMEM 1.6 it has) */
#define SHMEMX_FAMILIES(X) \
	X(SHMEMX_PUT_GET, 120) X(SHMEMX_P_G, 96) X(SHMEMX_IPUT_IGET, 116) X(SHMEMX_NBI, 120) \
	X(SHMEMX_PUT_SIGNALS, 120) X(SHMEMX_BLOCKS, 116) X(SHMEMX_ATOMICS, 288) \
	X(SHMEMX_ATOMICS_NBI, 170) X(SHMEMX_WAITS, 168) X(SHMEMX_SIGNALS, 6) \
	X(SHMEMX_COLLS, 125) X(SHMEMX_REDUCTIONS, 142) X(SHMEMX_SCANS, 52) X(SHMEMX_SYNCS, 3) \
	X(SHMEMX_ORDER, 6) X(SHMEMX_SETUP, 14) X(SHMEMX_MEMORY, 6) X(SHMEMX_TEAMS, 7) \
	X(SHMEMX_CONTEXTS, 6) X(SHMEMX_LOCKS, 4)
#define SHMEMX_OLD_FAMILIES(X) \
	X(SHMEMX_OLD_SETUP, 7) X(SHMEMX_OLD_ATOMICS, 30) X(SHMEMX_OLD_WAITS, 6) \
	X(SHMEMX_OLD_SHORT_WAITS, 4) X(SHMEMX_OLD_SYNCS, 2) X(SHMEMX_OLD_COLLS, 10) \
	X(SHMEMX_TO_ALLS, 44)

#define SHMEMX_FUNCTIONS(F) \
	SHMEMX_PUT_GET(F) SHMEMX_P_G(F) SHMEMX_IPUT_IGET(F) SHMEMX_NBI(F) SHMEMX_PUT_SIGNALS(F) \
	SHMEMX_BLOCKS(F) SHMEMX_ATOMICS(F) SHMEMX_ATOMICS_NBI(F) SHMEMX_WAITS(F) \
	SHMEMX_SIGNALS(F) SHMEMX_COLLS(F) SHMEMX_REDUCTIONS(F) SHMEMX_SCANS(F) SHMEMX_SYNCS(F) \
	SHMEMX_ORDER(F) SHMEMX_SETUP(F) SHMEMX_MEMORY(F) SHMEMX_TEAMS(F) SHMEMX_CONTEXTS(F) \
	SHMEMX_LOCKS(F) SHMEMX_OLD_SETUP(F) SHMEMX_OLD_ATOMICS(F) SHMEMX_OLD_WAITS(F) \
	SHMEMX_OLD_SHORT_WAITS(F) SHMEMX_OLD_SYNCS(F) SHMEMX_OLD_COLLS(F) SHMEMX_TO_ALLS(F)

#endif
