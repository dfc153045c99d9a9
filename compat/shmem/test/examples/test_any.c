/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: polling while something else is done. */
#include "example.h"

static long flags[8];

int main(void)
{
	int status[8] = { 0 };
	int me, n, left;

	shmem_init();
	me = shmem_my_pe();
	n = left = shmem_n_pes();
	for (int pe = 0; pe < n; pe++)
		shmem_long_atomic_set(&flags[me], 3, pe);
	while (left > 0) {
		size_t at = shmem_test_any(flags, (size_t)n, status, SHMEM_CMP_EQ, 3l);

		if (at != SIZE_MAX) {
			status[at] = 1;
			left--;
		}
	}
	CHECK(shmem_test_any(flags, (size_t)n, status, SHMEM_CMP_EQ, 3l) == SIZE_MAX);
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
