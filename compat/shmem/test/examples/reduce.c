/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: largest, sum, product; complex numbers; in place. */
#include "example.h"

static long in[4], out[4];
static double _Complex z[2];
static long double ld;

int main(void)
{
	int me, n;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int i = 0; i < 4; i++)
		in[i] = me + i;
	CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, out, in, 4) == 0 && out[3] == n + 2);
	CHECK(shmem_min_reduce(SHMEM_TEAM_WORLD, out, in, 4) == 0 && out[3] == 3);
	CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, out, in, 4) == 0 &&
	      out[0] == (long)n * (n - 1) / 2);
	CHECK(shmem_xor_reduce(SHMEM_TEAM_WORLD, in, in, 4) == 0);
	z[0] = me + 1;
	z[1] = 2;
	CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, z, z, 2) == 0);
	CHECK(z[0] == n * (n + 1) / 2 && z[1] == 2 * n);
	ld = me + 1;
	CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, &ld, &ld, 1) == 0);
	for (int i = 1; i <= n; i++)
		ld /= i;
	CHECK(ld == 1);
	shmem_finalize();
	return 0;
}
