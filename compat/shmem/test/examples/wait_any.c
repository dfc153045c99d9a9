/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: work comes in any order, each piece once. */
#include "example.h"

static long pieces[8];

int main(void)
{
	int status[8] = { 0 };
	long sum = 0;
	int me, n;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int pe = 0; pe < n; pe++)
		shmem_p(&pieces[me], me + 1, pe);
	for (int done = 0; done < n; done++) {
		size_t at = shmem_wait_until_any(pieces, (size_t)n, status, SHMEM_CMP_NE, 0l);

		CHECK(at < (size_t)n && !status[at]);
		status[at] = 1;
		sum += pieces[at];
	}
	CHECK(sum == (long)n * (n + 1) / 2);
	CHECK(shmem_wait_until_any(pieces, (size_t)n, status, SHMEM_CMP_NE, 0l) == SIZE_MAX);
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
