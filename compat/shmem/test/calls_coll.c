/* SPDX-License-Identifier: Apache-2.0 */
/* calls_coll.c - collectives of teams, reductions, scans, and those of active sets. */
#include "calls.h"

#ifdef GENERIC
#define TEAM_CALL(NAME, OP) shmem_##OP
#else
#define TEAM_CALL(NAME, OP) shmem_##NAME##_##OP
#endif

/* What PE `pe` has for place i of its part, and for place i of what it has for `whom`. */
static int part_of(int pe, int i)
{
	return pe * 2 + i + 1;
}

/* Elements of `size` bytes, all alike, `step` apart. */
static void fill(size_t size, int count, int step)
{
	start();
	for (int i = 0; i < count; i++)
		memset(source + (size_t)(i * step) * size, part_of(me, i), size);
}

static void check(const char *what, size_t size, int i, int value)
{
	for (size_t k = 0; k < size; k++)
		EXPECT(what, dest[(size_t)i * size + k] == value);
}

/* Of all PEs: `each` of PE p begin at place first of its part. */
static void check_gathered(const char *what, size_t size, int each)
{
	for (int pe = 0; pe < n; pe++) {
		for (int i = 0; i < each; i++)
			check(what, size, pe * each + i, part_of(pe, i));
	}
}

/* Two from each PE, of what it has for this one. */
static void check_exchanged(const char *what, size_t size, int step)
{
	for (int pe = 0; pe < n; pe++) {
		for (int i = 0; i < 2; i++)
			check(what, size, (pe * 2 + i) * step, part_of(pe, me * 2 + i));
	}
}

/* PE p gives p + 1. */
static void check_collected(const char *what, size_t size)
{
	for (int pe = 0, at = 0; pe < n; pe++) {
		for (int i = 0; i <= pe; i++)
			check(what, size, at++, part_of(pe, i));
	}
}

#define COLL(what, SIZE, BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, d, s) \
	do { \
		fill(SIZE, 2, 1); \
		EXPECT(what, BROADCAST(SHMEM_TEAM_WORLD, d, s, 2, n - 1) == 0); \
		check(what " broadcast", SIZE, 1, part_of(n - 1, 1)); \
		fill(SIZE, me + 1, 1); \
		EXPECT(what, COLLECT(SHMEM_TEAM_WORLD, d, s, (size_t)(me + 1)) == 0); \
		check_collected(what " collect", SIZE); \
		fill(SIZE, 2, 1); \
		EXPECT(what, FCOLLECT(SHMEM_TEAM_WORLD, d, s, 2) == 0); \
		check_gathered(what " fcollect", SIZE, 2); \
		fill(SIZE, 2 * n, 1); \
		EXPECT(what, ALLTOALL(SHMEM_TEAM_WORLD, d, s, 2) == 0); \
		check_exchanged(what " alltoall", SIZE, 1); \
		fill(SIZE, 2 * n, 3); \
		EXPECT(what, ALLTOALLS(SHMEM_TEAM_WORLD, d, s, 2, 3, 2) == 0); \
		check_exchanged(what " alltoalls", SIZE, 2); \
	} while (0)
#define COLL_T(F, NAME, TYPE) \
	static void coll_##NAME(void) \
	{ \
		COLL(#NAME, sizeof(TYPE), TEAM_CALL(NAME, broadcast), TEAM_CALL(NAME, collect), \
		     TEAM_CALL(NAME, fcollect), TEAM_CALL(NAME, alltoall), \
		     TEAM_CALL(NAME, alltoalls), (TYPE *)dest, (TYPE *)source); \
	}
SHMEMX_RMA_TYPES(COLL_T, )

void test_coll(void)
{
#define RUN(F, NAME, TYPE) coll_##NAME();
	SHMEMX_RMA_TYPES(RUN, )
#undef RUN
	COLL("mem", 1, shmem_broadcastmem, shmem_collectmem, shmem_fcollectmem, shmem_alltoallmem,
	     shmem_alltoallsmem, dest, source);
}

/* ---- reductions ---- */

/* Small, so that products of 8 of them fit into 8 bits. */
static int operand(int pe, int i)
{
	return 1 + ((pe + i) & 1);
}

#define OPERANDS(TYPE) \
	start(); \
	TYPE *d = (TYPE *)dest, *s = (TYPE *)source; \
	for (int i = 0; i < COUNT; i++) \
	s[i] = (TYPE)operand(me, i)
/* The fold of the operands of the PEs before `upto`. */
#define FOLDED(TYPE, what, upto, FIRST, EXPR) \
	for (int i = 0; i < COUNT; i++) { \
		TYPE a = (TYPE)(FIRST); \
\
		for (int pe = 0; pe < (upto); pe++) { \
			TYPE b = (TYPE)operand(pe, i); \
\
			a = (TYPE)(EXPR); \
		} \
		EXPECT(what, d[i] == a); \
	}
#define REDUCE(NAME, TYPE, OP, FIRST, EXPR) \
	static void NAME##_##OP(void) \
	{ \
		OPERANDS(TYPE); \
		EXPECT(#NAME "_" #OP, \
		       TEAM_CALL(NAME, OP##_reduce)(SHMEM_TEAM_WORLD, d, s, COUNT) == 0); \
		FOLDED(TYPE, #NAME "_" #OP, n, FIRST, EXPR) \
		/* In place. */ \
		EXPECT(#NAME "_" #OP, \
		       TEAM_CALL(NAME, OP##_reduce)(SHMEM_TEAM_WORLD, s, s, COUNT) == 0); \
		d = s; \
		FOLDED(TYPE, #NAME "_" #OP " in place", n, FIRST, EXPR) \
	}
#define REDUCE_BIT_T(F, NAME, TYPE) \
	REDUCE(NAME, TYPE, and, -1, a &b) \
	REDUCE(NAME, TYPE, or, 0, a | b) REDUCE(NAME, TYPE, xor, 0, a ^ b)
#define REDUCE_MAX_T(F, NAME, TYPE) \
	REDUCE(NAME, TYPE, max, 0, a > b ? a : b) REDUCE(NAME, TYPE, min, 100, a < b ? a : b)
#define REDUCE_SUM_T(F, NAME, TYPE) \
	REDUCE(NAME, TYPE, sum, 0, a + b) \
	REDUCE(NAME, TYPE, prod, 1, a *b) static void NAME##_scan(void) \
	{ \
		OPERANDS(TYPE); \
		EXPECT(#NAME "_sum_inscan", \
		       TEAM_CALL(NAME, sum_inscan)(SHMEM_TEAM_WORLD, d, s, COUNT) == 0); \
		FOLDED(TYPE, #NAME "_sum_inscan", me + 1, 0, a + b) \
		EXPECT(#NAME "_sum_exscan", \
		       TEAM_CALL(NAME, sum_exscan)(SHMEM_TEAM_WORLD, d, s, COUNT) == 0); \
		FOLDED(TYPE, #NAME "_sum_exscan", me, 0, a + b) \
	}
SHMEMX_REDUCE_BIT_TYPES(REDUCE_BIT_T, )
SHMEMX_RMA_TYPES(REDUCE_MAX_T, )
SHMEMX_REDUCE_SUM_TYPES(REDUCE_SUM_T, )

void test_reduce(void)
{
#define RUN_BIT(F, NAME, TYPE) NAME##_and(), NAME##_or(), NAME##_xor();
#define RUN_MAX(F, NAME, TYPE) NAME##_max(), NAME##_min();
#define RUN_SUM(F, NAME, TYPE) NAME##_sum(), NAME##_prod(), NAME##_scan();
	SHMEMX_REDUCE_BIT_TYPES(RUN_BIT, )
	SHMEMX_RMA_TYPES(RUN_MAX, )
	SHMEMX_REDUCE_SUM_TYPES(RUN_SUM, )
#undef RUN_BIT
#undef RUN_MAX
#undef RUN_SUM
}

/* ---- active sets: all PEs, and every second one ---- */

static long sync_words[2][SHMEM_SYNC_SIZE];
static long double work[BYTES / sizeof(long double)];

static long *next_sync(void)
{
	static int turn;

	return sync_words[turn++ & 1];
}

#define TO_ALL(NAME, TYPE, OP, FIRST, EXPR) \
	static void NAME##_##OP##_all(void) \
	{ \
		OPERANDS(TYPE); \
		shmem_##NAME##_##OP##_to_all(d, s, COUNT, 0, 0, n, (TYPE *)work, next_sync()); \
		FOLDED(TYPE, #NAME "_" #OP "_to_all", n, FIRST, EXPR) \
	}
#define TO_ALL_BIT_T(F, NAME, TYPE) \
	TO_ALL(NAME, TYPE, and, -1, a &b) \
	TO_ALL(NAME, TYPE, or, 0, a | b) TO_ALL(NAME, TYPE, xor, 0, a ^ b)
#define TO_ALL_MAX_T(F, NAME, TYPE) \
	TO_ALL(NAME, TYPE, max, 0, a > b ? a : b) TO_ALL(NAME, TYPE, min, 100, a < b ? a : b)
#define TO_ALL_SUM_T(F, NAME, TYPE) \
	TO_ALL(NAME, TYPE, sum, 0, a + b) TO_ALL(NAME, TYPE, prod, 1, a *b)
SHMEMX_TO_ALL_BIT_TYPES(TO_ALL_BIT_T, )
SHMEMX_TO_ALL_TYPES(TO_ALL_MAX_T, )
SHMEMX_TO_ALL_SUM_TYPES(TO_ALL_SUM_T, )

#define ACTIVE(BITS) \
	static void active_##BITS(void) \
	{ \
		const size_t size = BITS / 8; \
\
		fill(size, 2, 1); \
		shmem_broadcast##BITS(dest, source, 2, n - 1, 0, 0, n, next_sync()); \
		check("broadcast" #BITS, size, 1, me == n - 1 ? 0 : part_of(n - 1, 1)); \
		fill(size, me + 1, 1); \
		shmem_collect##BITS(dest, source, (size_t)(me + 1), 0, 0, n, next_sync()); \
		check_collected("collect" #BITS, size); \
		fill(size, 2, 1); \
		shmem_fcollect##BITS(dest, source, 2, 0, 0, n, next_sync()); \
		check_gathered("fcollect" #BITS, size, 2); \
		fill(size, 2 * n, 1); \
		shmem_alltoall##BITS(dest, source, 2, 0, 0, n, next_sync()); \
		check_exchanged("alltoall" #BITS, size, 1); \
		fill(size, 2 * n, 3); \
		shmem_alltoalls##BITS(dest, source, 2, 3, 2, 0, 0, n, next_sync()); \
		check_exchanged("alltoalls" #BITS, size, 2); \
	}
ACTIVE(32)
ACTIVE(64)

/* Only PEs 0, 2, 4, ... take part; the others do nothing meanwhile. */
static void test_half(void)
{
	int half = (n + 1) / 2;

	start();
	long *d = (long *)dest, *s = (long *)source;
	s[0] = me;
	shmem_barrier_all();
	if (me % 2 == 0) {
		shmem_long_sum_to_all(d, s, 1, 0, 1, half, (long *)work, next_sync());
		EXPECT("half", d[0] == (long)half * (half - 1));
		for (int i = 0; i < 20; i++) {
			shmem_barrier(0, 1, half, next_sync());
			shmem_sync(0, 1, half, next_sync());
		}
	} else {
		next_sync();
	}
	shmem_barrier_all();
	for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
		EXPECT("pSync", sync_words[0][i] == SHMEM_SYNC_VALUE &&
					sync_words[1][i] == SHMEM_SYNC_VALUE);
}

void test_active(void)
{
#define RUN_BIT(F, NAME, TYPE) NAME##_and_all(), NAME##_or_all(), NAME##_xor_all();
#define RUN_MAX(F, NAME, TYPE) NAME##_max_all(), NAME##_min_all();
#define RUN_SUM(F, NAME, TYPE) NAME##_sum_all(), NAME##_prod_all();
	SHMEMX_TO_ALL_BIT_TYPES(RUN_BIT, )
	SHMEMX_TO_ALL_TYPES(RUN_MAX, )
	SHMEMX_TO_ALL_SUM_TYPES(RUN_SUM, )
	active_32();
	active_64();
	test_half();
}
