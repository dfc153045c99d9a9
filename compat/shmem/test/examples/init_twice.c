/* SPDX-License-Identifier: Apache-2.0 */
/* Setup: init and finalize nest, and the library may start again. */
#include "example.h"

static int word;

int main(void)
{
	int is_up;

	for (int round = 0; round < 3; round++) {
		shmem_query_initialized(&is_up);
		if (is_up)
			return 1;
		shmem_init();
		shmem_init();
		shmem_finalize();
		word = -1;
		shmem_barrier_all();
		shmem_int_p(&word, shmem_my_pe() + round, (shmem_my_pe() + 1) % shmem_n_pes());
		shmem_barrier_all();
		CHECK(word == (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes() + round);
		shmem_finalize();
		/* Static data outlives the library. */
		if (word < 0)
			return 1;
	}
	return 0;
}
