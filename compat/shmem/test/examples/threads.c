/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: several of a PE put and add at once. */
#include "example.h"

#include <pthread.h>

enum {
	THREADS = 4,
	ROUNDS = 100
};
static long sum;
static long places[THREADS];

static void *work(void *arg)
{
	int place = (int)(size_t)arg;
	int next = (shmem_my_pe() + 1) % shmem_n_pes();

	for (int i = 0; i < ROUNDS; i++) {
		shmem_long_atomic_inc(&sum, next);
		shmem_long_p(&places[place], i, next);
	}
	shmem_quiet();
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int provided;

	if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
		return 1;
	CHECK(provided == SHMEM_THREAD_MULTIPLE);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	shmem_barrier_all();
	CHECK(sum == THREADS * ROUNDS);
	for (int i = 0; i < THREADS; i++)
		CHECK(places[i] == ROUNDS - 1);
	shmem_finalize();
	return 0;
}
