/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: each in the collectives of a team of its own. */
#include "example.h"

#include <pthread.h>

enum {
	THREADS = 3,
	ROUNDS = 30
};
static shmem_team_t teams[THREADS];
static long in[THREADS], out[THREADS];

static void *work(void *arg)
{
	size_t i = (size_t)arg;

	for (int round = 0; round < ROUNDS; round++) {
		in[i] = round;
		CHECK(shmem_sum_reduce(teams[i], &out[i], &in[i], 1) == 0);
		CHECK(out[i] == (long)round * shmem_n_pes());
		shmem_team_sync(teams[i]);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int provided;

	if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
		return 1;
	for (size_t i = 0; i < THREADS; i++)
		CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0,
					       &teams[i]) == 0);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < THREADS; i++)
		shmem_team_destroy(teams[i]);
	shmem_finalize();
	return 0;
}
