/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics: results that come with quiet. */
#include "example.h"

static long ticket;

int main(void)
{
	long mine[20];
	int n;

	shmem_init();
	n = shmem_n_pes();
	for (int i = 0; i < 20; i++)
		shmem_atomic_fetch_inc_nbi(&mine[i], &ticket, 0);
	shmem_quiet();
	for (int i = 0; i < 20; i++) {
		CHECK(mine[i] >= 0 && mine[i] < 20 * n);
		for (int k = 0; k < i; k++)
			CHECK(mine[i] != mine[k]);
	}
	shmem_barrier_all();
	CHECK(shmem_g(&ticket, 0) == 20 * n);
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
