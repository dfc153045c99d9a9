/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: from each PE in turn. */
#include "example.h"

static long in[10], out[10];

int main(void)
{
	int n;

	shmem_init();
	n = shmem_n_pes();
	for (int root = 0; root < n; root++) {
		for (int i = 0; i < 10; i++)
			in[i] = shmem_my_pe() * 10 + i;
		CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, out, in, 10, root) == 0);
		for (int i = 0; i < 10; i++)
			CHECK(out[i] == root * 10 + i);
		shmem_sync_all();
	}
	shmem_finalize();
	return 0;
}
