/* SPDX-License-Identifier: Apache-2.0 */
/* RMA: every second element, and blocks of three. */
#include "example.h"

static int column[60];
static int blocks[60];

int main(void)
{
	int mine[60];
	int me, n, next, before;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	next = (me + 1) % n;
	before = (me + n - 1) % n;
	for (int i = 0; i < 60; i++)
		mine[i] = me * 100 + i;
	shmem_iput(column, mine, 2, 3, 20, next);
	shmem_ibput(blocks, mine, 6, 5, 3, 10, next);
	shmem_barrier_all();
	for (int i = 0; i < 20; i++)
		CHECK(column[2 * i] == before * 100 + 3 * i && column[2 * i + 1] == 0);
	for (int i = 0; i < 60; i++)
		CHECK(blocks[i] == (i % 6 < 3 ? before * 100 + i / 6 * 5 + i % 6 : 0));
	shmem_iget(mine, column, 1, 2, 20, next);
	CHECK(mine[19] == me * 100 + 57);
	shmem_ibget(mine, blocks, 3, 6, 3, 10, next);
	CHECK(mine[29] == me * 100 + 47);
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
