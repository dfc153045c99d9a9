/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - the slow part of waiting: the clock, the scheduler, sleep. */
#include "exec/wait.h"

#include <sched.h>
#include <time.h>

uint64_t hk__now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum hk_status hk__wait_longer(struct hk__wait *wait)
{
	if (wait->idle <= wait->spins + wait->yields) {
		sched_yield();
		return HK_OK;
	}
	uint64_t now = hk__now_ns();
	if (!wait->deadline)
		wait->deadline = now + wait->timeout_ns;
	if (now >= wait->deadline)
		return HK_ETIMEDOUT;
	return hk__net_wait(wait->net, wait->deadline - now);
}
