/* SPDX-License-Identifier: Apache-2.0 */
/* calls_amo.c - atomics, waits and tests of every type. */
#include "calls.h"

/* The word of every PE is BEFORE; CALLED, on the next one, makes it AFTER. */
#define AMO(TYPE, what, BEFORE, AFTER, CALLED) \
	do { \
		start(); \
		TYPE *d = (TYPE *)word; \
		TYPE old = (TYPE)(BEFORE); \
		*d = (TYPE)(BEFORE); \
		shmem_barrier_all(); \
		CALLED; \
		land(); \
		EXPECT(what, old == (TYPE)(BEFORE)); \
		EXPECT(what, *d == (TYPE)(AFTER)); \
	} while (0)
/* Seven forms at most: the result, with a context, only the update, and those that begin. */
#define FETCHING(NAME, TYPE, OP, BEFORE, AFTER, ...) \
	AMO(TYPE, #NAME "_" #OP, BEFORE, AFTER, old = CALL(NAME, OP)(d, ##__VA_ARGS__, to)); \
	AMO(TYPE, #NAME "_" #OP " ctx", BEFORE, AFTER, \
	    old = CTX_CALL(NAME, OP)(ctx, d, ##__VA_ARGS__, to)); \
	AMO(TYPE, #NAME "_" #OP "_nbi", BEFORE, AFTER, \
	    CALL(NAME, OP##_nbi)(&old, d, ##__VA_ARGS__, to)); \
	AMO(TYPE, #NAME "_" #OP "_nbi ctx", BEFORE, AFTER, \
	    CTX_CALL(NAME, OP##_nbi)(ctx, &old, d, ##__VA_ARGS__, to))
#define UPDATING(NAME, TYPE, OP, BEFORE, AFTER, ...) \
	AMO(TYPE, #NAME "_" #OP, BEFORE, AFTER, CALL(NAME, OP)(d, ##__VA_ARGS__, to)); \
	AMO(TYPE, #NAME "_" #OP " ctx", BEFORE, AFTER, \
	    CTX_CALL(NAME, OP)(ctx, d, ##__VA_ARGS__, to))

#define PLAIN_T(F, NAME, TYPE) \
	static void plain_##NAME(void) \
	{ \
		FETCHING(NAME, TYPE, atomic_compare_swap, 5, 9, (TYPE)5, (TYPE)9); \
		FETCHING(NAME, TYPE, atomic_compare_swap, 5, 5, (TYPE)6, (TYPE)9); \
		FETCHING(NAME, TYPE, atomic_fetch_inc, 5, 6); \
		FETCHING(NAME, TYPE, atomic_fetch_add, 5, 3, (TYPE)-2); \
		UPDATING(NAME, TYPE, atomic_inc, (TYPE)-1, 0); \
		UPDATING(NAME, TYPE, atomic_add, 5, 12, (TYPE)7); \
	}
#define EXT_T(F, NAME, TYPE) \
	static void ext_##NAME(void) \
	{ \
		FETCHING(NAME, TYPE, atomic_fetch, 5, 5); \
		FETCHING(NAME, TYPE, atomic_swap, 5, 8, (TYPE)8); \
		UPDATING(NAME, TYPE, atomic_set, 5, (TYPE)-3, (TYPE)-3); \
	}
#define BIT_T(F, NAME, TYPE) \
	static void bit_##NAME(void) \
	{ \
		FETCHING(NAME, TYPE, atomic_fetch_and, 12, 8, (TYPE)10); \
		FETCHING(NAME, TYPE, atomic_fetch_or, 12, 14, (TYPE)10); \
		FETCHING(NAME, TYPE, atomic_fetch_xor, 12, 6, (TYPE)10); \
		UPDATING(NAME, TYPE, atomic_and, 12, 8, (TYPE)10); \
		UPDATING(NAME, TYPE, atomic_or, 12, 14, (TYPE)10); \
		UPDATING(NAME, TYPE, atomic_xor, 12, 6, (TYPE)10); \
	}
SHMEMX_AMO_TYPES(PLAIN_T, )
SHMEMX_AMO_EXT_TYPES(EXT_T, )
SHMEMX_AMO_BIT_TYPES(BIT_T, )

void test_amo(void)
{
#define RUN_PLAIN(F, NAME, TYPE) plain_##NAME();
#define RUN_EXT(F, NAME, TYPE) ext_##NAME();
#define RUN_BIT(F, NAME, TYPE) bit_##NAME();
	SHMEMX_AMO_TYPES(RUN_PLAIN, )
	SHMEMX_AMO_EXT_TYPES(RUN_EXT, )
	SHMEMX_AMO_BIT_TYPES(RUN_BIT, )
	/* Those of the default context, named. */
	AMO(long, "default", 1, 2, shmem_ctx_long_atomic_inc(SHMEM_CTX_DEFAULT, d, to));
}

#define OLD_T(F, NAME, TYPE) \
	AMO(TYPE, #NAME "_cswap", 5, 9, old = CALL(NAME, cswap)(d, (TYPE)5, (TYPE)9, to)); \
	AMO(TYPE, #NAME "_fadd", 5, 7, old = CALL(NAME, fadd)(d, (TYPE)2, to)); \
	AMO(TYPE, #NAME "_finc", 5, 6, old = CALL(NAME, finc)(d, to)); \
	AMO(TYPE, #NAME "_add", 5, 7, CALL(NAME, add)(d, (TYPE)2, to)); \
	AMO(TYPE, #NAME "_inc", 5, 6, CALL(NAME, inc)(d, to));
#define OLD_EXT_T(F, NAME, TYPE) \
	AMO(TYPE, #NAME "_fetch", 5, 5, old = CALL(NAME, fetch)(d, to)); \
	AMO(TYPE, #NAME "_set", 5, 8, CALL(NAME, set)(d, (TYPE)8, to)); \
	AMO(TYPE, #NAME "_swap", 5, 8, old = CALL(NAME, swap)(d, (TYPE)8, to));

void test_old_amo(void){ SHMEMX_OLD_AMO_TYPES(OLD_T, ) SHMEMX_OLD_AMO_EXT_TYPES(OLD_EXT_T, ) }

/* ---- waits ---- */

#define WAIT_T(F, NAME, TYPE) \
	static void wait_##NAME(void) \
	{ \
		start(); \
		TYPE *d = (TYPE *)dest, values[3] = { (TYPE)-1, 8, 9 }; \
		const int skip[3] = { 1, 0, 1 }, none[3] = { 1, 1, 1 }; \
		size_t at[3] = { 99, 99, 99 }; \
\
		EXPECT(#NAME "_test", !CALL(NAME, test)(d, SHMEM_CMP_NE, (TYPE)0)); \
		EXPECT(#NAME "_test_any", \
		       CALL(NAME, test_any)(d, 3, NULL, SHMEM_CMP_NE, (TYPE)0) == SIZE_MAX); \
		EXPECT(#NAME "_test_some", \
		       CALL(NAME, test_some)(d, 3, at, NULL, SHMEM_CMP_NE, (TYPE)0) == 0); \
		EXPECT(#NAME "_test_all", \
		       !CALL(NAME, test_all)(d, 3, NULL, SHMEM_CMP_NE, (TYPE)0)); \
		shmem_barrier_all(); \
		for (int k = 0; k < 3; k++) \
			shmem_##NAME##_atomic_set(d + k, values[k], to); \
		CALL(NAME, wait_until)(d, SHMEM_CMP_EQ, (TYPE)-1); \
		/* A sign that is not there would make it the largest. */ \
		CALL(NAME, wait_until) \
		(d, (TYPE)-1 < (TYPE)1 ? SHMEM_CMP_LT : SHMEM_CMP_GT, (TYPE)1); \
		EXPECT(#NAME "_wait_until_any", \
		       CALL(NAME, wait_until_any)(d, 3, skip, SHMEM_CMP_EQ, (TYPE)8) == 1); \
		EXPECT(#NAME "_wait_until_some", \
		       CALL(NAME, wait_until_some)(d, 3, at, skip, SHMEM_CMP_GE, (TYPE)8) == 1 && \
			       at[0] == 1); \
		CALL(NAME, wait_until_all)(d, 3, NULL, SHMEM_CMP_NE, (TYPE)0); \
		CALL(NAME, wait_until_all_vector)(d, 3, NULL, SHMEM_CMP_EQ, values); \
		EXPECT(#NAME "_wait_until_any_vector", \
		       CALL(NAME, wait_until_any_vector)(d, 3, NULL, SHMEM_CMP_EQ, values) < 3); \
		EXPECT(#NAME "_wait_until_some_vector", \
		       CALL(NAME, wait_until_some_vector)(d, 3, at, NULL, SHMEM_CMP_LE, values) == \
				       3 && \
			       at[2] == 2); \
		EXPECT(#NAME "_test", CALL(NAME, test)(d + 1, SHMEM_CMP_LT, (TYPE)9)); \
		EXPECT(#NAME "_test_all", \
		       CALL(NAME, test_all)(d + 1, 2, NULL, SHMEM_CMP_GT, (TYPE)7)); \
		EXPECT(#NAME "_test_any", \
		       CALL(NAME, test_any)(d, 3, NULL, SHMEM_CMP_EQ, (TYPE)9) == 2); \
		EXPECT(#NAME "_test_some", \
		       CALL(NAME, test_some)(d, 3, at, NULL, SHMEM_CMP_EQ, (TYPE)9) == 1); \
		EXPECT(#NAME "_test_all_vector", \
		       CALL(NAME, test_all_vector)(d, 3, NULL, SHMEM_CMP_EQ, values)); \
		EXPECT(#NAME "_test_any_vector", \
		       CALL(NAME, test_any_vector)(d, 3, skip, SHMEM_CMP_EQ, values) == 1); \
		EXPECT(#NAME "_test_some_vector", \
		       CALL(NAME, test_some_vector)(d, 3, at, NULL, SHMEM_CMP_EQ, values) == 3); \
		/* Empty sets. */ \
		EXPECT(#NAME " empty", \
		       CALL(NAME, test_all)(d, 3, none, SHMEM_CMP_EQ, (TYPE)0) == 1 && \
			       CALL(NAME, test_any)(d, 0, NULL, SHMEM_CMP_EQ, (TYPE)0) == \
				       SIZE_MAX && \
			       CALL(NAME, wait_until_any)(d, 3, none, SHMEM_CMP_EQ, (TYPE)0) == \
				       SIZE_MAX && \
			       CALL(NAME, wait_until_some)(d, 0, at, NULL, SHMEM_CMP_EQ, \
							   (TYPE)0) == 0); \
	}
SHMEMX_AMO_TYPES(WAIT_T, )

	static void test_short_waits(void)
{
	start();
	short *s = (short *)dest;
	unsigned short *u = (unsigned short *)dest + 1;

	shmem_short_p(s, -2, to);
	shmem_ushort_p(u, 65535, to);
#ifdef GENERIC
	shmem_wait_until(s, SHMEM_CMP_LT, 0);
	shmem_wait_until(u, SHMEM_CMP_GT, 32767);
	EXPECT("short_test", shmem_test(s, SHMEM_CMP_EQ, -2));
	EXPECT("ushort_test", shmem_test(u, SHMEM_CMP_GE, 65535));
#else
	shmem_short_wait_until(s, SHMEM_CMP_LT, 0);
	shmem_ushort_wait_until(u, SHMEM_CMP_GT, 32767);
	EXPECT("short_test", shmem_short_test(s, SHMEM_CMP_EQ, -2));
	EXPECT("ushort_test", shmem_ushort_test(u, SHMEM_CMP_GE, 65535));
#endif
	shmem_short_wait(s, 0);
}

static void test_old_waits(void)
{
	start();
	long *l = (long *)dest;
	int *i = (int *)(dest + 16);
	long long *ll = (long long *)(dest + 32);

	shmem_long_p(l, 7, to);
	shmem_int_p(i, -7, to);
	shmem_longlong_p(ll, 7, to);
	(shmem_wait_until)(l, SHMEM_CMP_EQ, 7);
	shmem_wait(l, 0);
	shmem_long_wait(l, 0);
	shmem_int_wait(i, 0);
	shmem_longlong_wait(ll, 0);
	EXPECT("wait", *l == 7 && *i == -7 && *ll == 7);
}

void test_waits(void)
{
#define RUN(F, NAME, TYPE) wait_##NAME();
	SHMEMX_AMO_TYPES(RUN, )
#undef RUN
	test_short_waits();
	test_old_waits();
}
