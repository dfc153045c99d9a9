/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: parts of different and of equal length. */
#include "example.h"

static int in[8], out[64];

int main(void)
{
	int me, n, at = 0;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int i = 0; i < 8; i++)
		in[i] = me * 10 + i;
	CHECK(shmem_collect(SHMEM_TEAM_WORLD, out, in, (size_t)(me % 3)) == 0);
	for (int pe = 0; pe < n; pe++)
		for (int i = 0; i < pe % 3; i++)
			CHECK(out[at++] == pe * 10 + i);
	shmem_sync_all();
	CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, out, in, 8) == 0);
	for (int i = 0; i < 8 * n; i++)
		CHECK(out[i] == i / 8 * 10 + i % 8);
	shmem_finalize();
	return 0;
}
