/* SPDX-License-Identifier: Apache-2.0 */
/* Order: a flag behind its data, polled. */
#include "example.h"

enum {
	LEN = 500
};
static long data[LEN];
static int flag;

int main(void)
{
	long mine[LEN];
	int me, n, next;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	next = (me + 1) % n;
	for (int i = 0; i < LEN; i++)
		mine[i] = me + i;
	shmem_put(data, mine, LEN, next);
	shmem_fence();
	shmem_p(&flag, 1, next);
	shmem_wait_until(&flag, SHMEM_CMP_EQ, 1);
	for (int i = 0; i < LEN; i++)
		CHECK(data[i] == (me + n - 1) % n + i);
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
