/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_shm.c - ranks that share memory, with heaps and bells. */
#include "net/fixture.h"

#include "harness.h"
#include "net/shm/shm.h"
#include "net/keep.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define BYTES ((size_t)64 << 20)
#define HEAP_AT ((size_t)32 << 20)

static uint32_t nranks;
static int memory_fd;
static void *segments[FIXTURE_RANKS_MAX];
static void *board;
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

void fixture_prepare(uint32_t n)
{
	size_t board_bytes = hk__shm_board_bytes(n);

	nranks = n;
	CHECK_EQ(hk__shm_segment_create(n * BYTES + board_bytes, &memory_fd), HK_OK);
	memory_fd = fd_keep(memory_fd);
	CHECK_EQ(hk__shm_segment_map(memory_fd, n * BYTES, board_bytes, &board), HK_OK);
	for (uint32_t r = 0; r < n; r++) {
		CHECK_EQ(hk__shm_segment_map(memory_fd, r * BYTES, BYTES, &segments[r]), HK_OK);
		bells[r] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		CHECK(bells[r] >= 0);
		used[r] = HEAP_AT;
	}
}

struct hk_net *fixture_join(uint32_t rank)
{
	struct hk_shm_spec spec = { .rank = rank,
				    .n = nranks,
				    .bytes = BYTES,
				    .heap_at = HEAP_AT,
				    .segment = segment_of,
				    .bell = bell_of,
				    .board = board,
				    .seats = nranks,
				    .lock_fd = memory_fd };
	struct hk_net *net;

	CHECK_EQ(hk__shm_open(&spec, &net), HK_OK);
	return net;
}

void fixture_leave(uint32_t rank, struct hk_net *net)
{
	(void)rank;
	hk__net_close(net);
}

void fixture_clear(void)
{
	for (uint32_t r = 0; r < nranks; r++) {
		hk__shm_segment_unmap(segments[r], BYTES);
		close(bells[r]);
	}
	hk__shm_segment_unmap(board, hk__shm_board_bytes(nranks));
	close(memory_fd);
}

void fixture_open(uint32_t n, struct hk_net **nets_out)
{
	fixture_prepare(n);
	for (uint32_t r = 0; r < n; r++)
		nets_out[r] = fixture_join(r);
}

void fixture_close(uint32_t n, struct hk_net **nets)
{
	for (uint32_t r = 0; r < n; r++)
		fixture_leave(r, nets[r]);
	fixture_clear();
}

void *fixture_memory(uint32_t rank, size_t bytes)
{
	void *at = (char *)segments[rank] + used[rank];

	used[rank] += (bytes + 63) / 64 * 64;
	CHECK(used[rank] <= BYTES);
	return at;
}
