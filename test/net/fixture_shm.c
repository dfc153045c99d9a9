/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_shm.c - ranks that share memory, with heaps and bells. */
#include "net/fixture.h"

#include "harness.h"
#include "net/shm/shm.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define BYTES ((size_t)64 << 20)
#define HEAP_AT ((size_t)32 << 20)

static void *segments[FIXTURE_RANKS_MAX];
static int bells[FIXTURE_RANKS_MAX];
static size_t used[FIXTURE_RANKS_MAX];

static void *segment_of(void *ctx, uint32_t rank)
{
	(void)ctx;
	return segments[rank];
}

static int bell_of(void *ctx, uint32_t rank)
{
	(void)ctx;
	return bells[rank];
}

void fixture_open(uint32_t n, struct hk_net **nets_out)
{
	struct hk_shm_spec spec = {
		.n = n, .bytes = BYTES, .heap_at = HEAP_AT, .segment = segment_of, .bell = bell_of
	};

	for (uint32_t r = 0; r < n; r++) {
		int fd;

		CHECK_EQ(hk__shm_segment_create(BYTES, &fd), HK_OK);
		CHECK_EQ(hk__shm_segment_map(fd, 0, BYTES, &segments[r]), HK_OK);
		close(fd);
		bells[r] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		CHECK(bells[r] >= 0);
		used[r] = HEAP_AT;
	}
	for (spec.rank = 0; spec.rank < n; spec.rank++)
		CHECK_EQ(hk__shm_open(&spec, &nets_out[spec.rank]), HK_OK);
}

void fixture_close(uint32_t n, struct hk_net **nets)
{
	for (uint32_t r = 0; r < n; r++)
		hk__net_close(nets[r]);
	for (uint32_t r = 0; r < n; r++) {
		hk__shm_segment_unmap(segments[r], BYTES);
		close(bells[r]);
	}
}

void *fixture_memory(uint32_t rank, size_t bytes)
{
	void *at = (char *)segments[rank] + used[rank];

	used[rank] += (bytes + 63) / 64 * 64;
	CHECK(used[rank] <= BYTES);
	return at;
}
