/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_mux.c - ranks of several machines: each two share memory, and reach
 * the others by 127.0.0.1.
 */
#include "net/fixture.h"

#include "harness.h"
#include "net/mux/mux.h"
#include "net/shm/shm.h"
#include "net/tcp/tcp.h"
#include "net/keep.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BYTES ((size_t)64 << 20)
#define HEAP_AT ((size_t)32 << 20)
#define HOST_RANKS 2u
#define HOSTS (FIXTURE_RANKS_MAX / HOST_RANKS)

static uint32_t nranks;
static int memory_fds[HOSTS];
static void *boards[HOSTS];
static uint32_t seated[FIXTURE_RANKS_MAX];
static void *segments[FIXTURE_RANKS_MAX];
static int bells[FIXTURE_RANKS_MAX];
static int listen_fds[FIXTURE_RANKS_MAX];
static struct sockaddr_storage addresses[FIXTURE_RANKS_MAX];
static size_t used[FIXTURE_RANKS_MAX];
static bool is_near[FIXTURE_RANKS_MAX][FIXTURE_RANKS_MAX]; /* a row for each rank */
static struct hk_net *near[FIXTURE_RANKS_MAX], *far[FIXTURE_RANKS_MAX];

static void *segment_of(void *ctx, uint32_t rank)
{
	return ((const bool *)ctx)[rank] ? segments[rank] : NULL;
}

static int bell_of(void *ctx, uint32_t rank)
{
	(void)ctx;
	return bells[rank];
}

static enum hk_status address_of(void *ctx, uint32_t rank, struct sockaddr_storage *addr_out,
				 socklen_t *len_out)
{
	(void)ctx;
	*addr_out = addresses[rank];
	*len_out = sizeof(struct sockaddr_in);
	return HK_OK;
}

static uint32_t host_size(uint32_t host)
{
	return hk__min(nranks - host * HOST_RANKS, HOST_RANKS);
}

static void host_prepare(uint32_t host)
{
	size_t segments_bytes = host_size(host) * BYTES;
	size_t board_bytes = hk__shm_board_bytes(host_size(host));

	CHECK_EQ(hk__shm_segment_create(segments_bytes + board_bytes, &memory_fds[host]), HK_OK);
	memory_fds[host] = fd_keep(memory_fds[host]);
	CHECK_EQ(hk__shm_segment_map(memory_fds[host], segments_bytes, board_bytes, &boards[host]),
		 HK_OK);
}

static void rank_prepare(uint32_t r)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addresses[r]);

	CHECK_EQ(hk__shm_segment_map(memory_fds[r / HOST_RANKS], r % HOST_RANKS * BYTES, BYTES,
				     &segments[r]),
		 HK_OK);
	bells[r] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(bells[r] >= 0);
	CHECK_EQ(hk__tcp_listen((struct sockaddr *)&any, sizeof(any), &listen_fds[r]), HK_OK);
	listen_fds[r] = fd_keep(listen_fds[r]);
	CHECK_EQ(getsockname(listen_fds[r], (struct sockaddr *)&addresses[r], &len), 0);
	used[r] = HEAP_AT;
	seated[r] = r;
	for (uint32_t s = 0; s < nranks; s++)
		is_near[r][s] = r / HOST_RANKS == s / HOST_RANKS;
}

void fixture_prepare(uint32_t n)
{
	nranks = n;
	for (uint32_t host = 0; host * HOST_RANKS < n; host++)
		host_prepare(host);
	for (uint32_t r = 0; r < n; r++)
		rank_prepare(r);
}

struct hk_net *fixture_join(uint32_t rank)
{
	uint32_t host = rank / HOST_RANKS;
	struct hk_shm_spec shm = { .rank = rank,
				   .n = nranks,
				   .bytes = BYTES,
				   .heap_at = HEAP_AT,
				   .segment = segment_of,
				   .bell = bell_of,
				   .board = boards[host],
				   .seats = host_size(host),
				   .seated = seated + host * HOST_RANKS,
				   .lock_fd = memory_fds[host],
				   .ctx = is_near[rank] };
	struct hk_tcp_spec tcp = { .rank = rank,
				   .n = nranks,
				   .listen_fd = listen_fds[rank],
				   .address = address_of,
				   .key = "conformance" };
	struct hk_mux_spec mux = { .is_near = is_near[rank] };
	struct hk_net *net;

	CHECK_EQ(hk__shm_open(&shm, &near[rank]), HK_OK);
	CHECK_EQ(hk__tcp_open(&tcp, &far[rank]), HK_OK);
	mux.near = near[rank];
	mux.far = far[rank];
	CHECK_EQ(hk__mux_open(&mux, &net), HK_OK);
	return net;
}

void fixture_leave(uint32_t rank, struct hk_net *net)
{
	hk__net_close(net);
	hk__net_close(far[rank]);
	hk__net_close(near[rank]);
	far[rank] = near[rank] = NULL;
}

void fixture_clear(void)
{
	for (uint32_t r = 0; r < nranks; r++) {
		hk__shm_segment_unmap(segments[r], BYTES);
		close(bells[r]);
	}
	for (uint32_t host = 0; host * HOST_RANKS < nranks; host++) {
		hk__shm_segment_unmap(boards[host], hk__shm_board_bytes(host_size(host)));
		close(memory_fds[host]);
	}
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
