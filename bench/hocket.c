/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hocket.c - Hocket, measured by peer.c, through what is installed alone.
 *
 *	hocket run -n 2 build/bench/hocket allreduce:8,64
 *
 * With --registered its buffers are of hk_mem_alloc().
 */
#include "peer.h"

#include <hocket/group.h>
#include <hocket/hocket.h>

#include <stdio.h>

static struct hk_group *group;

static void must(enum hk_status status, const char *what)
{
	if (status != HK_OK)
		peer_die("%s: %s: %s", what, hk_status_text(status), hk_group_why(group));
}

static void init(int *argc, char ***argv)
{
	struct hk_why why;
	enum hk_status status = hk_group_create(NULL, &why, &group);

	(void)argc;
	(void)argv;
	if (status != HK_OK)
		peer_die("hk_group_create: %s: %s", hk_status_text(status), why.text);
}

static int rank(void)
{
	return (int)hk_group_rank(group);
}

static int size(void)
{
	return (int)hk_group_size(group);
}

static const char *version(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "Hocket %s", hk_version());
	return text;
}

static void *alloc(size_t bytes, bool registered)
{
	void *mem;

	if (!registered)
		return peer_alloc(bytes, false);
	must(hk_mem_alloc(group, bytes, &mem), "hk_mem_alloc");
	return mem;
}

static void run(const struct peer_job *job)
{
	const void *in = job->in;
	void *out = job->out;
	size_t count = job->count;
	enum hk_status status = HK_EINVAL;

	switch (job->coll) {
	case PEER_ALLREDUCE:
		status = hk_allreduce(group, in, out, count, HK_TYPE_FP32, HK_REDOP_SUM, NULL);
		break;
	case PEER_ALLGATHER:
		status = hk_allgather(group, in, out, count, HK_TYPE_FP32, NULL);
		break;
	case PEER_REDUCESCATTER:
		status = hk_reducescatter(group, in, out, count, HK_TYPE_FP32, HK_REDOP_SUM, NULL);
		break;
	case PEER_ALLTOALL:
		status = hk_alltoall(group, in, out, count, HK_TYPE_FP32, NULL);
		break;
	case PEER_BROADCAST:
		status = hk_broadcast(group, in, out, count, HK_TYPE_FP32, (uint32_t)job->root,
				      NULL);
		break;
	case PEER_COLLS:
		break;
	}
	must(status, "run");
}

static void barrier(void)
{
	must(hk_barrier(group, NULL), "hk_barrier");
}

static double max(double value)
{
	double most;

	must(hk_allreduce(group, &value, &most, 1, HK_TYPE_FP64, HK_REDOP_MAX, NULL), "max");
	return most;
}

static void finish(void)
{
	hk_group_free(group);
}

const struct peer peer = {
	.name = "hocket",
	.colls = PEER_ALL,
	.init = init,
	.rank = rank,
	.size = size,
	.version = version,
	.alloc = alloc,
	.run = run,
	.barrier = barrier,
	.max = max,
	.finish = finish,
};
