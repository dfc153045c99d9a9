/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: a counter that is not atomic. */
#include "example.h"

static long lock;
static int count;
static long other;

int main(void)
{
	int n;

	shmem_init();
	n = shmem_n_pes();
	for (int i = 0; i < 30; i++) {
		shmem_set_lock(&lock);
		shmem_p(&count, shmem_g(&count, 0) + 1, 0);
		shmem_clear_lock(&lock);
	}
	shmem_barrier_all();
	CHECK(shmem_g(&count, 0) == 30 * n);
	shmem_barrier_all();
	for (int got = 0; got < 10;) {
		if (shmem_test_lock(&other))
			continue;
		got++;
		shmem_p(&count, shmem_g(&count, 0) - 1, 0);
		shmem_clear_lock(&other);
	}
	shmem_barrier_all();
	CHECK(shmem_g(&count, 0) == 20 * n);
	shmem_barrier_all();
	CHECK(lock == 0 && other == 0);
	shmem_finalize();
	return 0;
}
