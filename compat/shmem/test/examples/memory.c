/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: blocks are symmetric, keep their contents, and are used again. */
#include "example.h"

int main(void)
{
	shmem_init();
	for (int round = 0; round < 10; round++) {
		long *a = shmem_malloc(1000 * sizeof(*a));
		char *b = shmem_align(4096, 100);
		long *c = shmem_calloc(50, sizeof(*c));

		CHECK(a && b && c && (size_t)b % 4096 == 0);
		for (int i = 0; i < 50; i++)
			CHECK(c[i] == 0);
		for (int i = 0; i < 1000; i++)
			a[i] = i;
		a = shmem_realloc(a, 5000 * sizeof(*a));
		CHECK(a && a[999] == 999);
		a = shmem_realloc(a, 10 * sizeof(*a));
		CHECK(a && a[9] == 9);
		shmem_long_p(&c[49], 7, (shmem_my_pe() + 1) % shmem_n_pes());
		shmem_barrier_all();
		CHECK(c[49] == 7);
		shmem_free(c);
		shmem_free(b);
		shmem_free(a);
	}
	CHECK(!shmem_malloc((size_t)1 << 50));
	shmem_finalize();
	return 0;
}
