/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_tcp.c - ranks that reach each other by 127.0.0.1. */
#include "net/fixture.h"

#include "harness.h"
#include "net/tcp/tcp.h"

#include <netinet/in.h>

#define MEMORY_MAX 64

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

void fixture_open(uint32_t n, struct hk_net **nets_out)
{
	struct hk_tcp_spec spec = { .n = n, .address = address_of, .key = "conformance" };
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fds[FIXTURE_RANKS_MAX];

	for (uint32_t r = 0; r < n; r++) {
		socklen_t len = sizeof(addresses[r]);

		CHECK_EQ(hk__tcp_listen((struct sockaddr *)&any, sizeof(any), &fds[r]), HK_OK);
		CHECK_EQ(getsockname(fds[r], (struct sockaddr *)&addresses[r], &len), 0);
	}
	for (spec.rank = 0; spec.rank < n; spec.rank++) {
		spec.listen_fd = fds[spec.rank];
		CHECK_EQ(hk__tcp_open(&spec, &nets_out[spec.rank]), HK_OK);
	}
}

void fixture_close(uint32_t n, struct hk_net **nets)
{
	for (uint32_t r = 0; r < n; r++)
		hk__net_close(nets[r]);
	while (nmemory)
		free(memory[--nmemory]);
}

void *fixture_memory(uint32_t rank, size_t bytes)
{
	(void)rank;
	CHECK(nmemory < MEMORY_MAX);
	memory[nmemory] = malloc(bytes);
	CHECK(memory[nmemory]);
	return memory[nmemory++];
}
