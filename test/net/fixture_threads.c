/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_threads.c - ranks that are threads, for transports in real time. */
#include "net/fixture.h"

#include "harness.h"

#include <pthread.h>
#include <unistd.h>

void fixture_run(uint32_t n, void *(*run)(void *ctx), void **ctxs)
{
	pthread_t threads[FIXTURE_RANKS_MAX];

	for (uint32_t r = 0; r < n; r++)
		CHECK_EQ(pthread_create(&threads[r], NULL, run, ctxs[r]), 0);
	for (uint32_t r = 0; r < n; r++)
		CHECK_EQ(pthread_join(threads[r], NULL), 0);
}

void fixture_pause(void)
{
	usleep(200);
}
