/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - what the flight recorder costs: `bench_record [ROUNDS]`.
 *
 * Two ranks, threads on two cores. Short bursts of allreduces of 8 bytes go
 * through one group, with its row of the recorder and without, in turn and in
 * changing order, so that whatever else the machine does meets both alike. A
 * third sort of burst, without as well, says how much of a difference is chance.
 */
#include "group/group.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RANKS 2u
#define SORTS 3u
#define BURST 500u

static struct hk_group *groups[RANKS];
static uint32_t rounds = 3000;
static double *times[SORTS];
static bool alternating; /* two sizes in turn: no call takes the fast path */

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double burst(struct hk_group *group)
{
	double in[2] = { 1, 2 }, out[2], begin = now_ns();

	for (uint32_t i = 0; i < BURST; i++) {
		if (hk_allreduce(group, in, out, alternating ? 1 + i % 2 : 1, HK_TYPE_FP64,
				 HK_REDOP_SUM, NULL) != HK_OK) {
			fprintf(stderr, "%s\n", hk_group_why(group));
			exit(1);
		}
	}
	return (now_ns() - begin) / BURST;
}

static void *rank_main(void *ctx)
{
	static const uint32_t orders[6][SORTS] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 },
						   { 2, 0, 1 }, { 1, 2, 0 }, { 0, 2, 1 } };
	uint32_t rank = (uint32_t)(uintptr_t)ctx;
	struct hk_group *group = groups[rank];
	struct hk_record_group *row = group->row;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(rank, &cpus);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	for (uint32_t r = 0; r < rounds; r++) {
		for (uint32_t k = 0; k < SORTS; k++) {
			uint32_t sort = orders[r % 6][k];

			group->row = sort == 0 ? row : NULL;
			double took = burst(group);
			if (rank == 0)
				times[sort][r] = took;
		}
	}
	group->row = row;
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *name)
{
	static const char *const places[] = { "5th percentile", "quartile", "median" };
	pthread_t threads[RANKS];
	double at[SORTS][3];

	for (uint32_t r = 0; r < RANKS; r++)
		pthread_create(&threads[r], NULL, rank_main, (void *)(uintptr_t)r);
	for (uint32_t r = 0; r < RANKS; r++)
		pthread_join(threads[r], NULL);
	for (uint32_t sort = 0; sort < SORTS; sort++) {
		qsort(times[sort], rounds, sizeof(double), compare);
		at[sort][0] = times[sort][rounds / 20];
		at[sort][1] = times[sort][rounds / 4];
		at[sort][2] = times[sort][rounds / 2];
	}
	for (uint32_t i = 0; i < 3; i++)
		printf("%s, %-14s: without %.1f ns, with %+.2f %%, without again %+.2f %%\n", name,
		       places[i], at[1][i], (at[0][i] / at[1][i] - 1) * 100,
		       (at[2][i] / at[1][i] - 1) * 100);
}

int main(int argc, char **argv)
{
	struct hk_why why;

	if (argc > 1)
		rounds = (uint32_t)strtoul(argv[1], NULL, 10);
	for (uint32_t sort = 0; sort < SORTS; sort++) {
		times[sort] = calloc(rounds + 1, sizeof(double));
		if (!times[sort])
			return 1;
	}
	if (hk_group_threads(RANKS, NULL, &why, groups) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	measure("one size");
	alternating = true;
	measure("two sizes");
	return 0;
}
