/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: one for the odd PEs, ordered apart from the default one. */
#include "example.h"

static long data[2], count;

int main(void)
{
	shmem_ctx_t ctx, own;
	shmem_team_t team;
	int me, n;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &team) == 0);
	CHECK(shmem_team_create_ctx(team, SHMEM_CTX_SERIALIZED, &ctx) == 0);
	CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE, &own) == 0);
	shmem_ctx_long_p(ctx, &data[0], me + 1, shmem_team_my_pe(team));
	shmem_ctx_fence(ctx);
	shmem_ctx_long_p(ctx, &data[1], me + 1, shmem_team_my_pe(team));
	for (int pe = 0; pe < n; pe++)
		shmem_ctx_long_atomic_add(own, &count, me, pe);
	shmem_ctx_quiet(own);
	shmem_ctx_quiet(ctx);
	shmem_barrier_all();
	CHECK(data[0] == me + 1 && data[1] == me + 1 && count == (long)n * (n - 1) / 2);
	shmem_ctx_destroy(own);
	/* The other context goes with its team. */
	shmem_team_destroy(team);
	shmem_finalize();
	return 0;
}
