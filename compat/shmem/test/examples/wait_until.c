/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: a word of each width and sign. */
#include "example.h"

static int i32;
static long i64;
static unsigned int u32;
static short i16;

int main(void)
{
	int me, n, next;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	next = (me + 1) % n;
	shmem_p(&i32, -5, next);
	shmem_wait_until(&i32, SHMEM_CMP_LT, 0);
	shmem_p(&u32, 0x80000000u, next);
	shmem_wait_until(&u32, SHMEM_CMP_GT, 5u);
	shmem_p(&i64, -(1l << 40), next);
	shmem_wait_until(&i64, SHMEM_CMP_LE, -1l);
	shmem_p(&i16, (short)-1, next);
	shmem_wait_until(&i16, SHMEM_CMP_NE, 0);
	CHECK(shmem_test(&i32, SHMEM_CMP_EQ, -5) && !shmem_test(&u32, SHMEM_CMP_LT, 6u));
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
