/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c ROUNDS CALLS - what an allreduce of 8 bytes takes in C. A line for each round:
 * nanoseconds of a call, by the clock and of the processor.
 */
#include <hocket/hocket.h>

#include <stdlib.h>
#include <time.h>

static double now_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20, calls = argc > 2 ? atoi(argv[2]) : 1000;
	struct hk_group *group;
	struct hk_why why;
	double x = 0;

	if (hk_group_create(NULL, &why, &group) != HK_OK)
		return fprintf(stderr, "call: %s\n", why.text), 1;
	for (int r = 0; r < rounds; r++) {
		if (hk_barrier(group, NULL) != HK_OK)
			return fprintf(stderr, "call: %s\n", hk_group_why(group)), 1;
		double begin = now_ns(CLOCK_MONOTONIC);
		double begin_cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);

		for (int i = 0; i < calls; i++) {
			if (hk_allreduce(group, &x, &x, 1, HK_TYPE_FP64, HK_REDOP_SUM, NULL) !=
			    HK_OK)
				return fprintf(stderr, "call: %s\n", hk_group_why(group)), 1;
		}
		if (hk_group_rank(group) == 0)
			printf("%.1f %.1f\n", (now_ns(CLOCK_MONOTONIC) - begin) / calls,
			       (now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu) / calls);
	}
	hk_group_free(group);
	return 0;
}
