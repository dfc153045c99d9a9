/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: every second PE of the world, of that team backwards, a sum in each. */
#include "example.h"

static int mine, sum;

int main(void)
{
	shmem_team_t even, reversed = SHMEM_TEAM_INVALID;
	shmem_team_config_t config = { .num_contexts = 1 };
	int me, n, half;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	half = (n + 1) / 2;
	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, half, &config,
				       SHMEM_TEAM_NUM_CONTEXTS, &even) == 0);
	CHECK((me % 2 == 0) == (even != SHMEM_TEAM_INVALID));
	if (even != SHMEM_TEAM_INVALID) {
		/* Numbers are the parent's. */
		CHECK(shmem_team_split_strided(even, half - 1, half > 1 ? -1 : 1, half, NULL, 0,
					       &reversed) == 0);
		CHECK(shmem_team_my_pe(reversed) == half - 1 - me / 2);
		CHECK(shmem_team_translate_pe(reversed, 0, SHMEM_TEAM_WORLD) == (half - 1) * 2);
		mine = me;
		CHECK(shmem_int_sum_reduce(reversed, &sum, &mine, 1) == 0);
		CHECK(sum == half * (half - 1));
		CHECK(shmem_team_split_strided(even, 0, 0, 2, NULL, 0, &reversed) != 0);
	}
	shmem_barrier_all();
	shmem_team_destroy(even);
	shmem_finalize();
	return 0;
}
