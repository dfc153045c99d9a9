/* SPDX-License-Identifier: Apache-2.0 */
/* Setup: plain loads and stores to another PE, of static data and the heap. */
#include "example.h"

static int in_statics[4];

int main(void)
{
	int *in_heap, *peer;
	int me, n, next;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	next = (me + 1) % n;
	in_heap = shmem_calloc(4, sizeof(int));
	peer = shmem_ptr(in_statics, next);
	if (peer) {
		for (int i = 0; i < 4; i++)
			peer[i] = me * 4 + i;
		peer = shmem_team_ptr(SHMEM_TEAM_SHARED, in_heap,
				      shmem_team_translate_pe(SHMEM_TEAM_WORLD, next,
							      SHMEM_TEAM_SHARED));
		CHECK(peer);
		memcpy(peer, shmem_ptr(in_statics, next), 4 * sizeof(int));
	}
	shmem_barrier_all();
	/* Where all share memory. */
	if (shmem_team_n_pes(SHMEM_TEAM_SHARED) == n) {
		CHECK(peer);
		CHECK(in_heap[3] == (me + n - 1) % n * 4 + 3 && in_statics[3] == in_heap[3]);
	}
	shmem_barrier_all();
	shmem_free(in_heap);
	shmem_finalize();
	return 0;
}
