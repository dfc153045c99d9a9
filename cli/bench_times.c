/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_times.c - how long single calls took. A mean of twenty calls says little on a
 * machine that others use too; a median says what is usual, a 99th percentile what
 * happens at worst.
 *
 * They are taken over the calls of all ranks, as the mean is.
 */
#include "bench.h"

#include <stdlib.h>

#define SAMPLES_MAX (UINT64_C(1) << 17) /* of all ranks */

bool bench_times_begin(struct bench_times *times, uint32_t nranks, uint32_t iters)
{
	uint64_t all = (uint64_t)iters * nranks;

	times->count = 0;
	times->every = (uint32_t)((all + SAMPLES_MAX - 1) / SAMPLES_MAX);
	uint32_t wanted = (iters + times->every - 1) / times->every;
	if (wanted <= times->room)
		return true;
	free(times->own);
	/* Zeroed, so that no page is new when a call is timed. */
	times->own = calloc(wanted, sizeof(*times->own));
	times->room = times->own ? wanted : 0;
	for (uint32_t i = 0; i < times->room; i++)
		((volatile uint64_t *)times->own)[i] = 0;
	return times->own != NULL;
}

void bench_times_fini(struct bench_times *times)
{
	free(times->own);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The least of sorted values that so many percent do not exceed. */
static double percentile_us(const uint64_t *sorted, size_t count, unsigned percent)
{
	size_t at = (count * percent + 99) / 100;

	return (double)sorted[at ? at - 1 : 0] / 1e3;
}

enum hk_status bench_times_end(struct bench_rank *rank, struct bench_half *half_out)
{
	const struct bench_times *times = &rank->times;
	size_t count = (size_t)times->count * rank->spec->n;
	uint64_t *all = rank->rank == 0 ? malloc(count * sizeof(*all)) : NULL;

	if (rank->rank == 0 && !all)
		return HK_ENOMEM;
	enum hk_status status =
		hk_gather(rank->group, times->own, all, times->count, HK_TYPE_UINT64, 0, NULL);
	if (status == HK_OK && all) {
		qsort(all, count, sizeof(*all), compare);
		half_out->median_us = percentile_us(all, count, 50);
		half_out->p99_us = percentile_us(all, count, 99);
	}
	free(all);
	return status;
}
