/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_test.c - what a group performs is cut as the simulator predicts it: as many
 * slices, of as many bytes, for every algorithm, size and transport.
 */
#include "exec/program.h"
#include "group/group.h"
#include "group/world.h"
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hocket/hocket.h>

/* Elements of a block or of a vector: around the edges of slots and slices. */
static const uint64_t counts[] = { 1,	  1000,	  16383,  16385,  65535,
				   65537, 131073, 262145, 400001, 1100000 };
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))
#define BLOCKS_MAX 5u

/* ---- predicted ---- */

struct predicted {
	const struct hk_plan *plan;
	uint32_t nslices;
	double chunk_bytes; /* of a slice of a chunk */
};

static void note_message(void *ctx, const struct hk_sim_event *event)
{
	struct predicted *predicted = ctx;
	struct hk_step step;

	if (!event->message)
		return;
	hk_plan_step(predicted->plan, event->rank, event->lane, event->step, &step);
	if (event->slice + 1 > predicted->nslices)
		predicted->nslices = event->slice + 1;
	predicted->chunk_bytes = event->bytes / step.count;
}

static struct predicted predict(const struct hk_group *group, const struct hk_plan *plan,
				double bytes)
{
	struct predicted predicted = { .plan = plan };
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_sim_job job = { .plan = plan, .bytes = bytes };
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_why why = { "" };

	opts.full = true;
	opts.event = note_message;
	opts.ctx = &predicted;
	CHECK_EQ(hk_sim_run(group->fabric, &job, 1, &opts, &why, &result), HK_OK);
	return predicted;
}

/* ---- performed ---- */

static bool is_blocks(enum hk_coll coll)
{
	return !hk__coll_vector(coll);
}

static void perform(struct hk_group *group, const struct hk_algo_info *algo, char *in, char *out,
		    uint64_t count)
{
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status status = HK_EINVAL;

	opts.algo = algo->name;
	/* The first method that is tried copies: a lent chunk is not cut. */
	memset(group->tuners, 0, sizeof(group->tuners));
	switch (algo->coll) {
	case HK_COLL_ALLREDUCE:
		status = hk_allreduce(group, in, out, count, HK_TYPE_FP32, HK_REDOP_SUM, &opts);
		break;
	case HK_COLL_REDUCE:
		status = hk_reduce(group, in, out, count, HK_TYPE_FP32, HK_REDOP_SUM, 0, &opts);
		break;
	case HK_COLL_BROADCAST:
		status = hk_broadcast(group, in, out, count, HK_TYPE_FP32, 0, &opts);
		break;
	case HK_COLL_ALLGATHER:
		status = hk_allgather(group, in, out, count, HK_TYPE_FP32, &opts);
		break;
	case HK_COLL_REDUCESCATTER:
		status = hk_reducescatter(group, in, out, count, HK_TYPE_FP32, HK_REDOP_SUM, &opts);
		break;
	case HK_COLL_ALLTOALL:
		status = hk_alltoall(group, in, out, count, HK_TYPE_FP32, &opts);
		break;
	case HK_COLL_GATHER:
		status = hk_gather(group, in, out, count, HK_TYPE_FP32, 0, &opts);
		break;
	case HK_COLL_SCATTER:
		status = hk_scatter(group, in, out, count, HK_TYPE_FP32, 0, &opts);
		break;
	case HK_COLL_BARRIER:
	case HK_COLL_SENDRECV:
	case HK_COLL_COUNT:
		break;
	}
	CHECK_EQ(status, HK_OK);
}

static const struct hk__bound *bound_find(const struct hk_group *group,
					  const struct hk_algo_info *algo)
{
	for (size_t i = 0; i < group->bound.count; i++) {
		const struct hk__bound *bound = hk__array_at(&group->bound, i);

		if (bound->coll == algo->coll && bound->algo && !strcmp(bound->algo, algo->name))
			return bound;
	}
	return NULL;
}

/* ---- both ---- */

static void compare(struct hk_group *group, const struct hk_algo_info *algo, char *in, char *out,
		    uint64_t count)
{
	perform(group, algo, in, out, count);
	const struct hk__bound *bound = bound_find(group, algo);
	CHECK(bound != NULL);
	const struct hk__program *program = bound->program;
	double bytes = 4.0 * (double)count * (is_blocks(algo->coll) ? group->n : 1);
	struct predicted predicted = predict(group, bound->plan, bytes);

	CHECK(!program->call.whole);
	CHECK_EQ(predicted.nslices, program->nslices);
	/* Slices begin at cache lines, and the last one is shorter; the model's are equal. */
	double performed = 4.0 * (double)program->piece;
	double chunk = bytes / hk__plan_chunks(bound->plan);
	CHECK(predicted.chunk_bytes * predicted.nslices >= chunk * 0.999999);
	CHECK(fabs(predicted.chunk_bytes - performed) <= 4.0 * HK__SLICE_ALIGN);
}

static bool algo_fits(const struct hk_group *group, const struct hk_algo_info *algo)
{
	struct hk_plan_opts opts;
	struct hk_plan *plan;

	if (algo->coll == HK_COLL_BARRIER || algo->coll == HK_COLL_SENDRECV || algo->nodes ||
	    algo->onesided)
		return false;
	hk__select_plan_opts(&group->view, algo, &opts);
	if (hk_plan_create(algo->coll, group->n, &opts, NULL, &plan) != HK_OK)
		return false;
	hk_plan_free(plan);
	return true;
}

static void compare_all(struct hk_group *group)
{
	size_t bytes = counts[NCOUNTS - 1] * 4 * BLOCKS_MAX;
	char *in = calloc(bytes, 1), *out = calloc(bytes, 1);
	struct hk_algo_info algo = { .size = sizeof(algo) };
	unsigned compared = 0;

	CHECK(in && out && group->n <= BLOCKS_MAX);
	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		if (!algo_fits(group, &algo))
			continue;
		for (size_t k = 0; k < NCOUNTS; k++, compared++)
			compare(group, &algo, in, out, counts[k]);
	}
	CHECK(compared >= 8 * NCOUNTS);
	free(in);
	free(out);
}

/* A group of a world's ranks is cut for the wires between them, not for the world's. */
static void compare_parts(struct world_seat *seat)
{
	struct hk_group *part;

	compare_all(seat->group);
	if (seat->kind != WORLD_MIXED_THREADS)
		return;
	CHECK_EQ(hk_group_split(seat->group, seat->rank % 2, 0, &part), HK_OK);
	if (part->n > 1)
		compare_all(part);
	hk_group_free(part);
}

static void run(enum world_kind kind, const uint32_t *hosts, uint32_t nhosts, uint32_t n)
{
	struct world_spec spec = { .kind = kind, .n = n, .hosts = hosts, .nhosts = nhosts };

	world_run(&spec, compare_parts, NULL);
}

TEST(shared_memory)
{
	run(WORLD_THREADS_SHM, NULL, 0, 2);
	run(WORLD_THREADS_SHM, NULL, 0, 5);
}

TEST(sockets)
{
	run(WORLD_THREADS_TCP, NULL, 0, 3);
}

TEST(several_hosts)
{
	static const uint32_t halves[] = { 2, 2 }, first_alone[] = { 1, 3 };

	run(WORLD_MIXED_THREADS, halves, 2, 4);
	run(WORLD_MIXED_THREADS, first_alone, 2, 4);
}

/* A fabric that was given changes what is chosen, never how ranks cut. */
TEST(a_given_fabric_does_not_cut)
{
	uint32_t size = 4;
	struct hk_fabric *like, *fabric;
	struct hk__cut_rule rule;

	CHECK_EQ(hk_fabric_hosts(NULL, &size, 1, NULL, NULL, &like), HK_OK);
	CHECK_EQ(hk_fabric_change(like, "shm.slot-bytes=4096", NULL), HK_OK);
	CHECK_EQ(hk_fabric_change(like, "shm.slices=99", NULL), HK_OK);
	CHECK_EQ(hk_fabric_hosts(like, &size, 1, NULL, NULL, &fabric), HK_OK);
	hk__fabric_cut(fabric, size, NULL, &rule);
	CHECK_EQ(rule.slot_bytes, hk__cut_shm.slot_bytes);
	CHECK_EQ(rule.slices, hk__cut_shm.slices);
	hk_fabric_free(fabric);
	hk_fabric_free(like);
}
