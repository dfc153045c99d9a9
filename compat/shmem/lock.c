/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - locks, first come first served: the queue lock of Mellor-Crummey and Scott in the
 * `long` that the program gives, all zero when free. Its first half is the tail of the queue,
 * on one PE that the address chooses: who came last, + 1. Its second half, on each PE, is that
 * PE's place in the queue: who comes after it, + 1, and a bit that says that the lock is its.
 *
 * A lock is a PE's and not a thread's: threads of a PE that want the same lock take turns by
 * themselves.
 */
#include "sma.h"

#define GRANTED (UINT32_C(1) << 31)

static void *tail_of(long *lock)
{
	return lock;
}

static void *place_of(long *lock)
{
	return (char *)lock + 4;
}

/* Locks of a program are spread over the PEs. */
static int home_of(const long *lock, const char *call)
{
	const struct hk__sma_space *space;

	hk__sma_must_run(call);
	space = hk__sma_space_of(lock, sizeof(*lock));
	if (!space)
		hk__sma_die(call, "the lock at %p is not symmetric", (const void *)lock);
	return (int)(((uintptr_t)lock - space->start) / sizeof(long) % hk__sma.n);
}

static uint32_t amo(void *word, int pe, enum hk_amo op, uint32_t value, uint32_t compare,
		    const char *call)
{
	return (uint32_t)hk__sma_amo(SHMEM_CTX_DEFAULT, word, pe, op, 4, value, compare, true,
				     call);
}

FN(void, shmem_set_lock, (long *lock))
{
	static const char call[] = "shmem_set_lock";
	const int me = (int)hk__sma.me;
	int home = home_of(lock, call);
	uint32_t *place = place_of(lock);
	const struct hk__sma_word granted = { place, 4, true, SHMEM_CMP_LT, 0 };
	uint32_t before;

	before = amo(tail_of(lock), home, HK_AMO_SET, hk__sma.me + 1, 0, call);
	if (before == 0)
		return;
	if (before == hk__sma.me + 1)
		hk__sma_die(call, "this PE holds the lock at %p already", (void *)lock);
	(void)amo(place, (int)before - 1, HK_AMO_ADD, hk__sma.me + 1, 0, call);
	hk__sma_wait(&granted, call);
	(void)amo(place, me, HK_AMO_AND, ~GRANTED, 0, call);
}

FN(void, shmem_clear_lock, (long *lock))
{
	static const char call[] = "shmem_clear_lock";
	int home = home_of(lock, call);
	uint32_t *place = place_of(lock);
	const struct hk__sma_word followed = { place, 4, false, SHMEM_CMP_NE, 0 };
	uint32_t last, next;

	hk__sma_quiet(SHMEM_CTX_DEFAULT, call);
	last = amo(tail_of(lock), home, HK_AMO_CAS, 0, hk__sma.me + 1, call);
	if (last == hk__sma.me + 1)
		return;
	if (last == 0)
		hk__sma_die(call, "nobody holds the lock at %p", (void *)lock);
	/* Somebody came after, and is about to say who. */
	hk__sma_wait(&followed, call);
	next = amo(place, (int)hk__sma.me, HK_AMO_SET, 0, 0, call);
	(void)amo(place, (int)next - 1, HK_AMO_ADD, GRANTED, 0, call);
}

FN(int, shmem_test_lock, (long *lock))
{
	static const char call[] = "shmem_test_lock";

	return amo(tail_of(lock), home_of(lock, call), HK_AMO_CAS, hk__sma.me + 1, 0, call) != 0;
}
