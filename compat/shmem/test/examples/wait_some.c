/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: what has come is taken at once, with a value for each. */
#include "example.h"

static int pieces[8];

int main(void)
{
	int status[8] = { 0 }, wanted[8];
	size_t indices[8];
	int me, n, done = 0;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int pe = 0; pe < n; pe++) {
		wanted[pe] = pe * pe + 1;
		shmem_p(&pieces[me], me * me + 1, pe);
	}
	while (done < n) {
		size_t found = shmem_wait_until_some_vector(pieces, (size_t)n, indices, status,
							    SHMEM_CMP_EQ, wanted);

		CHECK(found > 0);
		for (size_t i = 0; i < found; i++) {
			CHECK(!status[indices[i]]);
			status[indices[i]] = 1;
		}
		done += (int)found;
	}
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
