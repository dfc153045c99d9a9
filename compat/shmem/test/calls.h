/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - every function of the tables is called once, with a checked result, from C, from
 * C++, and by the generic names of C11 where there is one (GENERIC). Each PE works on the
 * next one; so what it finds in its own memory is the work of the one before.
 */
#ifndef CALLS_H
#define CALLS_H

#include <shmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef GENERIC
#define CALL(NAME, OP) shmem_##OP
#define CTX_CALL(NAME, OP) shmem_##OP
#else
#define CALL(NAME, OP) shmem_##NAME##_##OP
#define CTX_CALL(NAME, OP) shmem_ctx_##NAME##_##OP
#endif

enum { BYTES = 1024, COUNT = 4 };

/* Of every PE: in static data or, in the second round, in the heap. */
extern unsigned char *dest;
extern unsigned char *source;
extern uint64_t *word;
extern shmem_ctx_t ctx;
extern int me, n, to, from;

/* Of PE and place; fits in every type, also signed ones of 8 bits. */
static inline int value_of(int pe, int i)
{
	return pe * 8 + i + 1;
}

/* The next part of them, which is clear everywhere. */
void start(void);
/* All that was put has landed, everywhere. */
void land(void);
void fail(const char *what, int line);

#define EXPECT(WHAT, COND) \
	do { \
		if (!(COND)) \
			fail(WHAT, __LINE__); \
	} while (0)

void test_data(void);
void test_sizes(void);
void test_signals(void);
void test_amo(void);
void test_old_amo(void);
void test_waits(void);
void test_coll(void);
void test_reduce(void);
void test_active(void);
void test_rest(void);

#endif
