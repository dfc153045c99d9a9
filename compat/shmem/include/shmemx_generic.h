/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shmemx_generic.h - the names of C11 without a type: macros that choose the function by
 * the type of the first pointer. With a context the first argument is that, and the pointer
 * the second. A list has each C type once: int32_t is int, size_t unsigned long.
 */
#ifndef SHMEMX_GENERIC_H
#define SHMEMX_GENERIC_H

#define SHMEMX_ARG0_(a, ...) a
#define SHMEMX_ARG0(...) SHMEMX_ARG0_(__VA_ARGS__, 0)
#define SHMEMX_ARG1_(a, b, ...) b
#define SHMEMX_ARG1(...) SHMEMX_ARG1_(__VA_ARGS__, 0, 0)
/* What a type that a family lacks gets: no call of it compiles. */
#define SHMEMX_NO_TYPE ((void (*)(void))0)

/* ---- types ---- */

/* For A(PREFIX, NAME, TYPE, OP). */
#define SHMEMX_G_INTS(A, PRE, OP) \
	A(PRE, int, int, OP), A(PRE, long, long, OP), A(PRE, longlong, long long, OP), \
	A(PRE, uint, unsigned int, OP), A(PRE, ulong, unsigned long, OP), \
	A(PRE, ulonglong, unsigned long long, OP)
#define SHMEMX_G_FLOATS(A, PRE, OP) A(PRE, float, float, OP), A(PRE, double, double, OP)
#define SHMEMX_G_RMA(A, PRE, OP) \
	SHMEMX_G_INTS(A, PRE, OP), SHMEMX_G_FLOATS(A, PRE, OP), \
	A(PRE, longdouble, long double, OP), A(PRE, char, char, OP), \
	A(PRE, schar, signed char, OP), A(PRE, uchar, unsigned char, OP), \
	A(PRE, short, short, OP), A(PRE, ushort, unsigned short, OP)
#define SHMEMX_G_SUM(A, PRE, OP) \
	SHMEMX_G_RMA(A, PRE, OP), A(PRE, complexd, double _Complex, OP), \
	A(PRE, complexf, float _Complex, OP)
#define SHMEMX_G_EXT(A, PRE, OP) SHMEMX_G_INTS(A, PRE, OP), SHMEMX_G_FLOATS(A, PRE, OP)
#define SHMEMX_G_BIT(A, PRE, OP) \
	A(PRE, int32, int, OP), A(PRE, int64, long, OP), A(PRE, uint, unsigned int, OP), \
	A(PRE, ulong, unsigned long, OP), A(PRE, ulonglong, unsigned long long, OP)
#define SHMEMX_G_REDUCE_BIT(A, PRE, OP) \
	SHMEMX_G_BIT(A, PRE, OP), A(PRE, int8, signed char, OP), A(PRE, int16, short, OP), \
	A(PRE, uchar, unsigned char, OP), A(PRE, ushort, unsigned short, OP)
#define SHMEMX_G_WAIT(A, PRE, OP) \
	SHMEMX_G_INTS(A, PRE, OP), A(PRE, short, short, OP), A(PRE, ushort, unsigned short, OP)

#define SHMEMX_TO(PRE, NAME, TYPE, OP) TYPE * : PRE##NAME##_##OP
/* Of a pointer that is only read from. */
#define SHMEMX_TO_CONST(PRE, NAME, TYPE, OP) \
	TYPE * : PRE##NAME##_##OP, const TYPE * : PRE##NAME##_##OP

#define SHMEMX_BY_CTX(LIST, A, OP, ...) \
	_Generic((SHMEMX_ARG0(__VA_ARGS__)), \
		shmem_ctx_t : _Generic((SHMEMX_ARG1(__VA_ARGS__)), \
			LIST(A, shmem_ctx_, OP), \
			default : SHMEMX_NO_TYPE), \
		LIST(A, shmem_, OP))(__VA_ARGS__)
#define SHMEMX_BY_0(LIST, OP, ...) \
	_Generic((SHMEMX_ARG0(__VA_ARGS__)), LIST(SHMEMX_TO, shmem_, OP))(__VA_ARGS__)
#define SHMEMX_BY_1(LIST, OP, ...) \
	_Generic((SHMEMX_ARG1(__VA_ARGS__)), LIST(SHMEMX_TO, shmem_, OP))(__VA_ARGS__)


/* ---- data ---- */

#define shmem_put(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, put, __VA_ARGS__)
#define shmem_get(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, get, __VA_ARGS__)
#define shmem_p(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, p, __VA_ARGS__)
#define shmem_iput(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, iput, __VA_ARGS__)
#define shmem_iget(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, iget, __VA_ARGS__)
#define shmem_put_nbi(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, get_nbi, __VA_ARGS__)
#define shmem_put_signal(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, put_signal_nbi, __VA_ARGS__)
#define shmem_ibput(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, ibput, __VA_ARGS__)
#define shmem_ibget(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO, ibget, __VA_ARGS__)
#define shmem_g(...) SHMEMX_BY_CTX(SHMEMX_G_RMA, SHMEMX_TO_CONST, g, __VA_ARGS__)

/* ---- atomics ---- */

#define shmem_atomic_compare_swap(...) \
	SHMEMX_BY_CTX(SHMEMX_G_INTS, SHMEMX_TO, atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) \
	SHMEMX_BY_CTX(SHMEMX_G_INTS, SHMEMX_TO, atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_inc(...) SHMEMX_BY_CTX(SHMEMX_G_INTS, SHMEMX_TO, atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) \
	SHMEMX_BY_CTX(SHMEMX_G_INTS, SHMEMX_TO, atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_add(...) SHMEMX_BY_CTX(SHMEMX_G_INTS, SHMEMX_TO, atomic_add, __VA_ARGS__)
#define shmem_atomic_fetch(...) \
	SHMEMX_BY_CTX(SHMEMX_G_EXT, SHMEMX_TO_CONST, atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) SHMEMX_BY_CTX(SHMEMX_G_EXT, SHMEMX_TO, atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) SHMEMX_BY_CTX(SHMEMX_G_EXT, SHMEMX_TO, atomic_swap, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) \
	SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_and(...) SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) \
	SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_or(...) SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) \
	SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_xor(...) SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_xor, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_INTS, SHMEMX_TO, atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_INTS, SHMEMX_TO, atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_INTS, SHMEMX_TO, atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_EXT, SHMEMX_TO, atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_EXT, SHMEMX_TO, atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) \
	SHMEMX_BY_CTX(SHMEMX_G_BIT, SHMEMX_TO, atomic_fetch_xor_nbi, __VA_ARGS__)

/* ---- waits; signals ---- */

#define shmem_wait_until(...) SHMEMX_BY_0(SHMEMX_G_WAIT, wait_until, __VA_ARGS__)
#define shmem_wait_until_all(...) SHMEMX_BY_0(SHMEMX_G_INTS, wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...) SHMEMX_BY_0(SHMEMX_G_INTS, wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...) SHMEMX_BY_0(SHMEMX_G_INTS, wait_until_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) \
	SHMEMX_BY_0(SHMEMX_G_INTS, wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) \
	SHMEMX_BY_0(SHMEMX_G_INTS, wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) \
	SHMEMX_BY_0(SHMEMX_G_INTS, wait_until_some_vector, __VA_ARGS__)
#define shmem_test(...) SHMEMX_BY_0(SHMEMX_G_WAIT, test, __VA_ARGS__)
#define shmem_test_all(...) SHMEMX_BY_0(SHMEMX_G_INTS, test_all, __VA_ARGS__)
#define shmem_test_any(...) SHMEMX_BY_0(SHMEMX_G_INTS, test_any, __VA_ARGS__)
#define shmem_test_some(...) SHMEMX_BY_0(SHMEMX_G_INTS, test_some, __VA_ARGS__)
#define shmem_test_all_vector(...) SHMEMX_BY_0(SHMEMX_G_INTS, test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...) SHMEMX_BY_0(SHMEMX_G_INTS, test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...) SHMEMX_BY_0(SHMEMX_G_INTS, test_some_vector, __VA_ARGS__)
#define shmem_signal_set(...) \
	_Generic((SHMEMX_ARG0(__VA_ARGS__)), \
		shmem_ctx_t : shmem_ctx_signal_set, \
		default : shmem_signal_set)(__VA_ARGS__)
#define shmem_signal_add(...) \
	_Generic((SHMEMX_ARG0(__VA_ARGS__)), \
		shmem_ctx_t : shmem_ctx_signal_add, \
		default : shmem_signal_add)(__VA_ARGS__)

/* ---- collectives ---- */

#define shmem_broadcast(...) SHMEMX_BY_1(SHMEMX_G_RMA, broadcast, __VA_ARGS__)
#define shmem_collect(...) SHMEMX_BY_1(SHMEMX_G_RMA, collect, __VA_ARGS__)
#define shmem_fcollect(...) SHMEMX_BY_1(SHMEMX_G_RMA, fcollect, __VA_ARGS__)
#define shmem_alltoall(...) SHMEMX_BY_1(SHMEMX_G_RMA, alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) SHMEMX_BY_1(SHMEMX_G_RMA, alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...) SHMEMX_BY_1(SHMEMX_G_REDUCE_BIT, and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) SHMEMX_BY_1(SHMEMX_G_REDUCE_BIT, or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) SHMEMX_BY_1(SHMEMX_G_REDUCE_BIT, xor_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) SHMEMX_BY_1(SHMEMX_G_RMA, max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) SHMEMX_BY_1(SHMEMX_G_RMA, min_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) SHMEMX_BY_1(SHMEMX_G_SUM, sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) SHMEMX_BY_1(SHMEMX_G_SUM, prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...) SHMEMX_BY_1(SHMEMX_G_SUM, sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...) SHMEMX_BY_1(SHMEMX_G_SUM, sum_exscan, __VA_ARGS__)
/* Of a team, or deprecated, of an active set. */
#define shmem_sync(...) \
	_Generic((SHMEMX_ARG0(__VA_ARGS__)), \
		shmem_team_t : shmem_team_sync, \
		default : shmem_sync)(__VA_ARGS__)

/* ---- deprecated ---- */

#define shmem_cswap(...) SHMEMX_BY_0(SHMEMX_G_INTS, atomic_compare_swap, __VA_ARGS__)
#define shmem_fadd(...) SHMEMX_BY_0(SHMEMX_G_INTS, atomic_fetch_add, __VA_ARGS__)
#define shmem_finc(...) SHMEMX_BY_0(SHMEMX_G_INTS, atomic_fetch_inc, __VA_ARGS__)
#define shmem_add(...) SHMEMX_BY_0(SHMEMX_G_INTS, atomic_add, __VA_ARGS__)
#define shmem_inc(...) SHMEMX_BY_0(SHMEMX_G_INTS, atomic_inc, __VA_ARGS__)
#define shmem_fetch(...) \
	_Generic((SHMEMX_ARG0(__VA_ARGS__)), \
		SHMEMX_G_EXT(SHMEMX_TO_CONST, shmem_, atomic_fetch))(__VA_ARGS__)
#define shmem_set(...) SHMEMX_BY_0(SHMEMX_G_EXT, atomic_set, __VA_ARGS__)
#define shmem_swap(...) SHMEMX_BY_0(SHMEMX_G_EXT, atomic_swap, __VA_ARGS__)

#endif
