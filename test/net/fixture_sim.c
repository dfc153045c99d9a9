/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_sim.c - ranks in virtual time: two of one host, and two of others. */
#include "net/fixture.h"

#include "harness.h"
#include "net/sim/sim.h"

#define MEMORY_MAX 64

static struct hk__simnet *simnet;
static void *memory[MEMORY_MAX];
static uint32_t nmemory;

void fixture_open(uint32_t n, struct hk_net **nets_out)
{
	static const uint32_t hosts[FIXTURE_RANKS_MAX] = FIXTURE_SIM_HOSTS;
	struct hk__simnet_spec spec = { .n = n, .seed = 7, .hosts = hosts };

	CHECK_EQ(hk__simnet_create(&spec, &simnet), HK_OK);
	for (uint32_t r = 0; r < n; r++)
		CHECK_EQ(hk__simnet_open(simnet, r, NULL, &nets_out[r]), HK_OK);
}

void fixture_close(uint32_t n, struct hk_net **nets)
{
	for (uint32_t r = 0; r < n; r++)
		hk__net_close(nets[r]);
	hk__simnet_destroy(simnet);
	simnet = NULL;
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

struct all {
	void *(*run)(void *ctx);
	void **ctxs;
};

static void one_run(void *ctx, uint32_t rank)
{
	const struct all *all = ctx;

	(void)all->run(all->ctxs[rank]);
}

void fixture_run(uint32_t n, void *(*run)(void *ctx), void **ctxs)
{
	struct all all = { run, ctxs };

	(void)n;
	CHECK_EQ(hk__simnet_run(simnet, one_run, &all, UINT64_C(3600000000000)), HK_OK);
}

void fixture_pause(void)
{
	hk__simnet_sleep(simnet, 200000);
}
