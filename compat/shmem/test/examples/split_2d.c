/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: a grid of PEs, with a ragged last row. */
#include "example.h"

static int in, out;

int main(void)
{
	shmem_team_t x, y;
	int me, n, width = 3, row;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &x, NULL, 0, &y) == 0);
	width = n < width ? n : width;
	row = n - me / width * width;
	row = row < width ? row : width;
	CHECK(shmem_team_my_pe(x) == me % width && shmem_team_n_pes(x) == row);
	CHECK(shmem_team_my_pe(y) == me / width);
	in = 1;
	CHECK(shmem_sum_reduce(y, &out, &in, 1) == 0 && out == shmem_team_n_pes(y));
	CHECK(shmem_sum_reduce(x, &out, &in, 1) == 0 && out == row);
	shmem_team_destroy(x);
	shmem_team_destroy(y);
	shmem_finalize();
	return 0;
}
