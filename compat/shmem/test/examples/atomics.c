/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics: all add, one wins a swap, bits are collected. */
#include "example.h"

static int sum;
static long race = -1;
static unsigned long bits, mask;
static float f;

int main(void)
{
	int me, n, old;
	long won;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	mask = ~0ul;
	shmem_barrier_all();
	old = shmem_atomic_fetch_add(&sum, 10, 0);
	CHECK(old >= 0 && old <= (n - 1) * 11);
	shmem_atomic_inc(&sum, 0);
	won = shmem_atomic_compare_swap(&race, -1l, (long)me, 0);
	shmem_atomic_or(&bits, 1ul << me, 0);
	shmem_atomic_and(&mask, ~(1ul << me), 0);
	shmem_barrier_all();
	CHECK(shmem_atomic_fetch(&sum, 0) == n * 11);
	CHECK((won == -1) == (shmem_atomic_fetch(&race, 0) == me));
	CHECK(shmem_atomic_fetch(&bits, 0) == (1ul << n) - 1);
	CHECK(shmem_atomic_fetch(&mask, 0) == ~((1ul << n) - 1));
	shmem_barrier_all();
	shmem_atomic_xor(&bits, 1ul << me, 0);
	f = 1.5f;
	shmem_barrier_all();
	CHECK(shmem_atomic_fetch(&bits, 0) == 0);
	CHECK(shmem_atomic_swap(&f, (float)me, (me + 1) % n) == 1.5f);
	shmem_barrier_all();
	CHECK(f == (float)((me + n - 1) % n));
	shmem_finalize();
	return 0;
}
