/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the one clock: it never goes back. */
#include "base/base.h"

#include <time.h>

uint64_t hk__now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
