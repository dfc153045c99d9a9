/* SPDX-License-Identifier: Apache-2.0 */
/* Profiling: a program's own shmem_long_put, which calls the library's. */
#include "example.h"

#include <pshmem.h>

static int calls;
static long data[4];

void shmem_long_put(long *dest, const long *source, size_t nelems, int pe)
{
	calls++;
	pshmem_long_put(dest, source, nelems, pe);
}

int main(void)
{
	long mine[4] = { 1, 2, 3, 4 };

	shmem_init();
	shmem_pcontrol(1);
	shmem_put(data, mine, 4, (shmem_my_pe() + 1) % shmem_n_pes());
	(shmem_long_put)(data, mine, 4, shmem_my_pe());
	shmem_barrier_all();
	CHECK(calls == 2 && data[3] == 4);
	shmem_finalize();
	return 0;
}
