/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - see exchange.h. */
#include "gpu/exchange.h"

#include "harness.h"

#define GUARD 64u

size_t exchange_memory(uint32_t n, uint64_t bytes)
{
	return 2 * (n * (bytes + 200 + 2 * GUARD) + 4096);
}

static uint64_t exchange_bytes(const struct exchange *exchange, uint32_t a, uint32_t b)
{
	if (!exchange->uneven)
		return exchange->bytes;
	return (a + 2 * b) % 5 ? exchange->bytes + (uint64_t)(3 * a + b) * 4 : 0;
}

/* Where what rank r has of a peer lies in its memory: behind that of those before it. */
static size_t exchange_at(const struct bed *bed, const struct exchange *exchange, uint32_t r,
			  uint32_t peer, bool in)
{
	size_t at = GUARD + exchange->skew;

	if (!in)
		at += exchange_at(bed, exchange, r, bed->n, true) / GUARD * GUARD + GUARD;
	for (uint32_t p = 0; p < peer; p++) {
		size_t bytes = in ? exchange_bytes(exchange, r, p) : exchange_bytes(exchange, p, r);

		at += exchange->packed ? bytes : (bytes + 2 * GUARD) / GUARD * GUARD;
	}
	return at;
}

/* All that a rank uses, with guards. */
static size_t exchange_used(const struct bed *bed, const struct exchange *exchange, uint32_t r)
{
	size_t used = exchange_at(bed, exchange, r, bed->n, false) + GUARD;

	CHECK(used <= bed->bytes);
	return used;
}

/* What rank a has for rank b. */
static void exchange_input(const struct exchange *exchange, uint32_t a, uint32_t b, char *at)
{
	uint64_t random = exchange->seed * 1000 + a * 10 + b + 1;

	for (uint64_t i = 0; i < exchange_bytes(exchange, a, b); i++)
		at[i] = (char)test_random(&random);
}

static char *exchange_image(const struct bed *bed, const struct exchange *exchange, uint32_t r,
			    bool done)
{
	size_t used = exchange_used(bed, exchange, r);
	char *image = malloc(used);

	CHECK(image);
	memset(image, 0xa5, used);
	for (uint32_t p = 0; p < bed->n; p++) {
		exchange_input(exchange, r, p, image + exchange_at(bed, exchange, r, p, true));
		if (done)
			exchange_input(exchange, p, r,
				       image + exchange_at(bed, exchange, r, p, false));
	}
	return image;
}

void exchange_fill(const struct bed *bed, const struct exchange *exchange)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		if (!bed->groups[r])
			continue;
		char *image = exchange_image(bed, exchange, r, false);

		bed_to_device(bed->memory[r], image, exchange_used(bed, exchange, r));
		free(image);
	}
}

void exchange_check(const struct bed *bed, const struct exchange *exchange)
{
	bed_wait(bed);
	for (uint32_t r = 0; r < bed->n; r++) {
		if (!bed->groups[r])
			continue;
		size_t used = exchange_used(bed, exchange, r), i = 0;
		char *image = exchange_image(bed, exchange, r, true), *seen = malloc(used);

		CHECK(seen);
		bed_to_host(seen, bed->memory[r], used);
		while (i < used && seen[i] == image[i])
			i++;
		if (i < used)
			test_fail(__FILE__, __LINE__, "%zu bytes each, rank %u: byte %zu is wrong",
				  (size_t)exchange->bytes, r, i);
		free(image);
		free(seen);
	}
}

char *bed_at(const struct bed *bed, uint32_t rank, size_t offset)
{
	return (char *)(uintptr_t)(bed->memory[rank] + offset);
}

void bed_must(const struct bed *bed, uint32_t rank, enum hk_status status)
{
	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "rank %u: %s: %s", rank, hk_status_name(status),
			  hk_group_why(bed->groups[rank]));
}

/* The sends and receives of one rank, peers in an order of its own. */
void exchange_rank(struct bed *bed, const struct exchange *exchange, uint32_t r,
		   const struct hk_opts *opts)
{
	for (uint32_t k = 0; k < bed->n; k++) {
		uint32_t p = (r * 3 + k) % bed->n;

		bed_must(bed, r,
			 hk_send(bed->groups[r],
				 bed_at(bed, r, exchange_at(bed, exchange, r, p, true)),
				 exchange_bytes(exchange, r, p), HK_TYPE_UINT8, p, opts));
		bed_must(bed, r,
			 hk_recv(bed->groups[r],
				 bed_at(bed, r, exchange_at(bed, exchange, r, p, false)),
				 exchange_bytes(exchange, p, r), HK_TYPE_UINT8, p, opts));
	}
}

void exchange_batches(struct bed *bed, const struct exchange *exchange)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		struct hk_opts opts = HK_OPTS_INIT;

		if (!bed->groups[r])
			continue;
		opts.stream = bed->streams[r];
		bed_must(bed, r, hk_batch_begin(bed->groups[r]));
		exchange_rank(bed, exchange, r, &opts);
		bed_must(bed, r, hk_batch_end(bed->groups[r]));
	}
}

/* ---- alltoallv ---- */

static void alltoallv_rank(struct bed *bed, const struct exchange *exchange, uint32_t r)
{
	uint64_t in[BED_RANKS_MAX], out[BED_RANKS_MAX];
	struct hk_opts opts = HK_OPTS_INIT;

	for (uint32_t p = 0; p < bed->n; p++) {
		in[p] = exchange_bytes(exchange, r, p) / 4;
		out[p] = exchange_bytes(exchange, p, r) / 4;
	}
	opts.stream = bed->streams[r];
	bed_must(bed, r,
		 hk_alltoallv(bed->groups[r],
			      bed_at(bed, r, exchange_at(bed, exchange, r, 0, true)), in,
			      bed_at(bed, r, exchange_at(bed, exchange, r, 0, false)), out,
			      HK_TYPE_FP32, &opts));
}

void exchange_alltoallv(struct bed *bed, const struct exchange *exchange)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		if (bed->groups[r])
			alltoallv_rank(bed, exchange, r);
	}
}
