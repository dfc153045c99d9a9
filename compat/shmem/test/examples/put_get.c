/* SPDX-License-Identifier: Apache-2.0 */
/* RMA: blocks to the right, and back from there. */
#include "example.h"

static double box[100];

int main(void)
{
	double mine[100], back[100];
	int me, n, next;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	next = (me + 1) % n;
	for (int i = 0; i < 100; i++)
		mine[i] = me + i / 100.0;
	shmem_put(box, mine, 100, next);
	shmem_quiet();
	shmem_get(back, box, 100, next);
	CHECK(memcmp(mine, back, sizeof(mine)) == 0);
	memset(back, 0, sizeof(back));
	shmem_get_nbi(back, box, 50, next);
	shmem_getmem_nbi(back + 50, box + 50, 50 * sizeof(double), next);
	shmem_quiet();
	CHECK(memcmp(mine, back, sizeof(mine)) == 0);
	shmem_barrier_all();
	CHECK(box[99] == (me + n - 1) % n + 0.99);
	shmem_finalize();
	return 0;
}
