/* SPDX-License-Identifier: Apache-2.0 */
/* Order: of two PEs that put, quiet and get, one gets the other's. */
#include "example.h"

static int mine_word, other_word;

int main(void)
{
	int me, n;
	static int both[2];

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int round = 0; round < 200 && n > 1; round++) {
		mine_word = other_word = 0;
		shmem_barrier_all();
		if (me < 2) {
			int got;

			shmem_p(me ? &mine_word : &other_word, 1, 0);
			shmem_quiet();
			got = shmem_g(me ? &other_word : &mine_word, 0);
			shmem_p(&both[me], got, 0);
		}
		shmem_barrier_all();
		if (me == 0)
			CHECK(both[0] || both[1]);
		shmem_barrier_all();
	}
	shmem_finalize();
	return 0;
}
