/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: everyone to everyone, close and strided. */
#include "example.h"

static int in[64], out[64], wide[128];

int main(void)
{
	int me, n;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int i = 0; i < 2 * n; i++)
		in[i] = me * 100 + i;
	CHECK(shmem_alltoall(SHMEM_TEAM_WORLD, out, in, 2) == 0);
	for (int pe = 0; pe < n; pe++)
		CHECK(out[pe * 2] == pe * 100 + me * 2 && out[pe * 2 + 1] == out[pe * 2] + 1);
	CHECK(shmem_alltoalls(SHMEM_TEAM_WORLD, wide, in, 3, 1, 2) == 0);
	for (int pe = 0; pe < n; pe++)
		CHECK(wide[pe * 6] == pe * 100 + me * 2 && wide[pe * 6 + 3] == wide[pe * 6] + 1);
	shmem_finalize();
	return 0;
}
