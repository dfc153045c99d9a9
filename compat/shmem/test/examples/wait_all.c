/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: PE 0 waits for a flag of everyone. */
#include "example.h"

static int flags[8];

int main(void)
{
	int me, n;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int pe = 0; pe < n; pe++)
		shmem_atomic_set(&flags[me], me + 1, pe);
	shmem_wait_until_all(flags, (size_t)n, NULL, SHMEM_CMP_NE, 0);
	for (int pe = 0; pe < n; pe++)
		CHECK(flags[pe] == pe + 1);
	CHECK(shmem_test_all(flags, (size_t)n, NULL, SHMEM_CMP_GT, 0));
	CHECK(shmem_test_all(flags, 0, NULL, SHMEM_CMP_GT, 0));
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
