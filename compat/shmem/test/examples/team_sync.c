/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: teams meet apart, then all. */
#include "example.h"

static long count;

int main(void)
{
	shmem_team_t team;
	int me, n;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 3, (n + 2) / 3, NULL, 0, &team) == 0);
	if (team != SHMEM_TEAM_INVALID) {
		for (int i = 0; i < 50; i++) {
			shmem_long_atomic_inc(&count, 0);
			shmem_quiet();
			shmem_sync(team);
			CHECK(shmem_g(&count, 0) >= (long)(i + 1) * shmem_team_n_pes(team));
			shmem_sync(team);
		}
	}
	shmem_barrier_all();
	if (me == 0)
		CHECK(count == 50 * ((n + 2) / 3));
	shmem_team_destroy(team);
	shmem_finalize();
	return 0;
}
