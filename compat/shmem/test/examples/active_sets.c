/* SPDX-License-Identifier: Apache-2.0 */
/* Deprecated: a program of the days before teams. */
#include "example.h"

static long sync_words[SHMEM_REDUCE_SYNC_SIZE], more[SHMEM_BCAST_SYNC_SIZE];
static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE], in[4], out[4];

int main(void)
{
	int me, n;

	start_pes(0);
	me = _my_pe();
	n = _num_pes();
	for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
		sync_words[i] = more[i] = _SHMEM_SYNC_VALUE;
	shmem_barrier_all();
	for (int i = 0; i < 4; i++)
		in[i] = me + i;
	shmem_long_sum_to_all(out, in, 4, 0, 0, n, work, sync_words);
	CHECK(out[3] == (long)n * (n - 1) / 2 + 3l * n);
	/* Nobody writes its sum any more. */
	shmem_barrier_all();
	shmem_broadcast64(out, in, 4, 0, 0, 0, n, more);
	CHECK(me == 0 || out[3] == 3);
	shmem_barrier(0, 0, n, sync_words);
	shmem_long_inc(&out[0], 0);
	CHECK(shmem_long_fadd(&in[3], 0, me) == me + 3);
	/* No finalize: the end of the program is one. */
	return 0;
}
