/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: where each PE's part begins. */
#include "example.h"

static size_t mine, begin, end;

int main(void)
{
	int me;

	shmem_init();
	me = shmem_my_pe();
	mine = (size_t)me + 1;
	CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, &begin, &mine, 1) == 0);
	CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, &end, &mine, 1) == 0);
	CHECK(begin == (size_t)me * (size_t)(me + 1) / 2 && end == begin + mine);
	shmem_finalize();
	return 0;
}
