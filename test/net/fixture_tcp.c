/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_tcp.c - ranks that reach each other by 127.0.0.1. */
#include "net/fixture.h"

#include "harness.h"
#include "net/tcp/tcp.h"
#include "net/keep.h"

#include <netinet/in.h>
#include <pthread.h>
#include <unistd.h>

#define MEMORY_MAX 64

#ifndef FIXTURE_ENCRYPT
#define FIXTURE_ENCRYPT false
#endif

static uint32_t nranks;
static int listen_fds[FIXTURE_RANKS_MAX];
static struct sockaddr_storage addresses[FIXTURE_RANKS_MAX];
static void *memory[MEMORY_MAX];
static uint32_t nmemory;

static enum hk_status address_of(void *ctx, uint32_t rank, struct sockaddr_storage *addr_out,
				 socklen_t *len_out)
{
	(void)ctx;
	*addr_out = addresses[rank];
	*len_out = sizeof(struct sockaddr_in);
	return HK_OK;
}

/* Who forks is rank 0, its child rank 1: a port is open in one process alone. */
static void forked_parent(void)
{
	close(listen_fds[1]);
}

static void forked_child(void)
{
	close(listen_fds[0]);
}

void fixture_prepare(uint32_t n)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static bool once;

	nranks = n;
	for (uint32_t r = 0; r < n; r++) {
		socklen_t len = sizeof(addresses[r]);

		CHECK_EQ(hk__tcp_listen((struct sockaddr *)&any, sizeof(any), &listen_fds[r]),
			 HK_OK);
		listen_fds[r] = fd_keep(listen_fds[r]);
		CHECK_EQ(getsockname(listen_fds[r], (struct sockaddr *)&addresses[r], &len), 0);
	}
	if (!once)
		CHECK_EQ(pthread_atfork(NULL, forked_parent, forked_child), 0);
	once = true;
}

struct hk_net *fixture_join(uint32_t rank)
{
	struct hk_tcp_spec spec = { .rank = rank,
				    .n = nranks,
				    .listen_fd = listen_fds[rank],
				    .address = address_of,
				    .encrypt = FIXTURE_ENCRYPT,
				    .key = "conformance" };
	struct hk_net *net;

	CHECK_EQ(hk__tcp_open(&spec, &net), HK_OK);
	return net;
}

void fixture_leave(uint32_t rank, struct hk_net *net)
{
	(void)rank;
	hk__net_close(net);
}

void fixture_clear(void)
{
	while (nmemory)
		free(memory[--nmemory]);
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
	(void)rank;
	CHECK(nmemory < MEMORY_MAX);
	memory[nmemory] = malloc(bytes);
	CHECK(memory[nmemory]);
	return memory[nmemory++];
}
