/* SPDX-License-Identifier: Apache-2.0 */
/* RMA: many puts that only begin, one quiet. */
#include "example.h"

enum {
	EACH = 50
};
static long inbox[8 * EACH];

int main(void)
{
	long mine[EACH];
	int me, n;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int i = 0; i < EACH; i++)
		mine[i] = me * 1000 + i;
	for (int pe = 0; pe < n; pe++)
		for (int i = 0; i < EACH; i++)
			shmem_put_nbi(&inbox[me * EACH + i], &mine[i], 1, pe);
	shmem_quiet();
	shmem_sync_all();
	for (int pe = 0; pe < n; pe++)
		CHECK(inbox[pe * EACH + EACH - 1] == pe * 1000 + EACH - 1);
	shmem_finalize();
	return 0;
}
