/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: a batch of small atomics, hinted. */
#include "example.h"

static uint64_t table[64];

int main(void)
{
	shmem_ctx_session_config_t config = { .total_ops = 200 };
	uint64_t sum = 0;
	static uint64_t all, mine;

	shmem_init();
	shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, &config,
				SHMEM_CTX_SESSION_TOTAL_OPS);
	for (int i = 0; i < 200; i++)
		shmem_uint64_atomic_add(&table[i * 7 % 64], 1, i % shmem_n_pes());
	shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
	shmem_barrier_all();
	for (int i = 0; i < 64; i++)
		sum += table[i];
	mine = sum;
	shmem_sum_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
	CHECK(all == 200u * (unsigned)shmem_n_pes());
	shmem_finalize();
	return 0;
}
