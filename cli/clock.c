/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the command's one clock: it never goes back. */
#include "cli.h"

#include <time.h>

uint64_t cli_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLI_NS + (uint64_t)now.tv_nsec;
}

double cli_now_s(void)
{
	return (double)cli_now_ns() / (double)CLI_NS;
}
