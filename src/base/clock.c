/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the one clock: it never goes back. Tests may bring their own time. */
#include "base/base.h"

#include <time.h>

uint64_t (*hk__clock_virtual)(void);

uint64_t hk__now_ns(void)
{
	struct timespec now;

	if (__builtin_expect(hk__clock_virtual != NULL, 0))
		return hk__clock_virtual();
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
