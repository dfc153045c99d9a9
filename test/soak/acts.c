/* SPDX-License-Identifier: Apache-2.0 */
/* acts.c - operations on one group. Every result is compared with what is due. */
#include "soak/soak.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define SLICES 8u /* of a buffer, for operations at the same time */
#define SLICE_COUNT (WORK_COUNT_MAX / SLICES)
#define TAGS 1000000u

uint64_t soak_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* ---- what goes wrong ---- */

bool soak_wrong(struct soak *soak, const char *fmt, ...)
{
	va_list args;

	if (soak->wrong[0])
		return false;
	va_start(args, fmt);
	(void)vsnprintf(soak->wrong, sizeof(soak->wrong), fmt, args);
	va_end(args);
	return false;
}

bool soak_good(struct soak *soak, struct hk_group *group, enum hk_status status, const char *what)
{
	if (status == HK_OK)
		return true;
	return soak_wrong(soak, "%s: %s: %s", what, hk_status_name(status),
			  group ? hk_group_why(group) : "");
}

/* ---- numbers that are known ---- */

static uint32_t value(uint32_t rank, uint64_t salt, uint64_t i)
{
	return (uint32_t)(rank * 1000003U + salt * 7919U + i * 31U);
}

static void fill(uint32_t *to, uint64_t count, uint32_t rank, uint64_t salt)
{
	for (uint64_t i = 0; i < count; i++)
		to[i] = value(rank, salt, i);
}

static bool came(struct soak *soak, const uint32_t *at, uint64_t count, uint32_t from,
		 uint64_t salt, const char *what)
{
	for (uint64_t i = 0; i < count; i++)
		if (at[i] != value(from, salt, i))
			return soak_wrong(soak, "%s: element %llu of %llu from rank %u is wrong",
					  what, (unsigned long long)i, (unsigned long long)count,
					  from);
	return true;
}

static bool summed(struct soak *soak, const uint32_t *at, uint64_t count, uint32_t n, uint64_t salt,
		   const char *what)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t due = n * (n - 1) / 2 * 1000003U + n * value(0, salt, i);

		if (at[i] != due)
			return soak_wrong(soak, "%s: element %llu of %llu of a sum is wrong", what,
					  (unsigned long long)i, (unsigned long long)count);
	}
	return true;
}

/* ---- operations ---- */

bool soak_work(struct soak *soak, struct hk_group *group, uint32_t count, const char *where)
{
	struct work work = { .group = group,
			     .rank = hk_group_rank(group),
			     .n = hk_group_size(group),
			     .seed = soak->seed,
			     .in = soak->in,
			     .out = soak->out };

	for (uint32_t i = 0; i < count; i++) {
		const char *fault = NULL;
		enum hk_status status = work_do(&work, soak->operations++, &fault);

		if (!soak_good(soak, group, status, where))
			return false;
		if (fault)
			return soak_wrong(soak, "%s: wrong result of %s", where, fault);
	}
	return true;
}

bool soak_collectives(struct soak *soak, uint64_t random)
{
	return soak_work(soak, soak->root, 1 + soak_random(&random) % 20, "collectives");
}

/* Ends as a caller may: waits, looks again and again, or has poll(2) tell. */
static enum hk_status request_end(struct hk_request *request, uint64_t how, bool threaded)
{
	struct pollfd fd = { .events = POLLIN };
	enum hk_status status;

	if (how % 3 == 1) {
		while ((status = hk_request_test(request)) == HK_INPROGRESS)
			usleep(50);
	} else if (how % 3 == 2 && threaded) {
		status = hk_request_fd(request, &fd.fd);
		if (status == HK_OK)
			(void)poll(&fd, 1, 60000);
		status = hk_request_wait(request, 0);
	} else {
		do
			status = hk_request_wait(request, how % 2 ? 1000000 : 0);
		while (status == HK_INPROGRESS);
	}
	hk_request_free(request);
	return status;
}

static bool requests_end(struct soak *soak, struct hk_request **requests, uint32_t count,
			 uint64_t random, const char *what)
{
	bool all = true;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = (i + (uint32_t)(random >> 32)) % count;

		all &= soak_good(soak, soak->root,
				 request_end(requests[at], random >> at, soak->opts.progress),
				 what);
	}
	soak->operations += count;
	return all;
}

bool soak_tags(struct soak *soak, uint64_t random)
{
	uint32_t count = 1 + soak_random(&random) % SLICES, first = soak_random(&random) % TAGS;
	uint32_t next = (soak->rank + 1) % soak->n, before = (soak->rank + soak->n - 1) % soak->n;
	uint64_t lens[SLICES], order = soak_random(&random) + soak->rank, salt = random;
	struct hk_request *requests[2 * SLICES];
	struct hk_opts opts = HK_OPTS_INIT;

	for (uint32_t k = 0; k < count; k++) {
		lens[k] = soak_random(&random) % (k % 3 ? 500 : SLICE_COUNT);
		fill(soak->in + k * SLICE_COUNT, lens[k], soak->rank, salt + k);
	}
	for (uint32_t k = 0; k < count; k++) {
		uint32_t late = (k + (uint32_t)(order % count)) % count; /* of another order */

		opts.tag = first + k;
		opts.request = &requests[2 * k];
		if (!soak_good(soak, soak->root,
			       hk_send(soak->root, soak->in + k * SLICE_COUNT, lens[k],
				       HK_TYPE_UINT32, next, &opts),
			       "send"))
			return false;
		opts.tag = first + late;
		opts.request = &requests[2 * k + 1];
		if (!soak_good(soak, soak->root,
			       hk_recv(soak->root, soak->out + late * SLICE_COUNT, lens[late],
				       HK_TYPE_UINT32, before, &opts),
			       "recv"))
			return false;
	}
	bool all = requests_end(soak, requests, 2 * count, random, "tags");
	for (uint32_t k = 0; k < count && all; k++)
		all = came(soak, soak->out + k * SLICE_COUNT, lens[k], before, salt + k, "tags");
	return all;
}

bool soak_batch(struct soak *soak, uint64_t random)
{
	uint64_t count = 1 + soak_random(&random) % 20000, salt = random;
	uint32_t *sum = soak->out + (SLICES - 1) * SLICE_COUNT, peers = soak->n - 1;
	enum hk_status status = hk_batch_begin(soak->root);

	peers = peers < SLICES - 1 ? peers : SLICES - 1;
	fill(soak->in, count, soak->rank, salt);
	for (uint32_t d = 1; d <= peers && status == HK_OK; d++) {
		status = hk_send(soak->root, soak->in, count, HK_TYPE_UINT32,
				 (soak->rank + d) % soak->n, NULL);
		if (status == HK_OK)
			status =
				hk_recv(soak->root, soak->out + (d - 1) * SLICE_COUNT, count,
					HK_TYPE_UINT32, (soak->rank + soak->n - d) % soak->n, NULL);
	}
	if (status == HK_OK)
		status = hk_allreduce(soak->root, soak->in, sum, count, HK_TYPE_UINT32,
				      HK_REDOP_SUM, NULL);
	if (status == HK_OK)
		status = hk_batch_end(soak->root);
	soak->operations += 2 * peers + 1;
	if (!soak_good(soak, soak->root, status, "batch"))
		return false;
	for (uint32_t d = 1; d <= peers; d++)
		if (!came(soak, soak->out + (d - 1) * SLICE_COUNT, count,
			  (soak->rank + soak->n - d) % soak->n, salt, "batch"))
			return false;
	return summed(soak, sum, count, soak->n, salt, "batch");
}

bool soak_requests(struct soak *soak, uint64_t random)
{
	uint32_t count = 2 + soak_random(&random) % (SLICES - 1);
	struct hk_request *requests[SLICES];
	struct hk_opts opts = HK_OPTS_INIT;
	uint64_t lens[SLICES], salt = random;

	for (uint32_t k = 0; k < count; k++) {
		lens[k] = 1 + soak_random(&random) % (k % 2 ? 100 : SLICE_COUNT);
		fill(soak->in + k * SLICE_COUNT, lens[k], soak->rank, salt + k);
		opts.request = &requests[k];
		if (!soak_good(soak, soak->root,
			       hk_allreduce(soak->root, soak->in + k * SLICE_COUNT,
					    soak->out + k * SLICE_COUNT, lens[k], HK_TYPE_UINT32,
					    HK_REDOP_SUM, &opts),
			       "requests"))
			return false;
	}
	bool all = requests_end(soak, requests, count, random + soak->rank, "requests");
	for (uint32_t k = 0; k < count && all; k++)
		all = summed(soak, soak->out + k * SLICE_COUNT, lens[k], soak->n, salt + k,
			     "requests");
	return all;
}
