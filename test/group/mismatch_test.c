/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mismatch_test.c - one rank calls something else: every rank of a checking
 * group hears of it, in the same words, with the rank and its call in them.
 */
#include "group/world.h"
#include "harness.h"

/* A call, as the ranks that agree make it, and as the odd one does. */
struct call {
	enum hk_coll coll;
	uint64_t count;
	enum hk_type type;
	enum hk_redop op;
	uint32_t root;
	uint32_t tag;
	const char *algo;
	bool v;
	uint64_t first; /* v: of the first block */
};

struct mismatch {
	const char *name;
	struct call most, odd;
	const char *says_most, *says_odd;
};

static const struct mismatch mismatches[] = {
	{ "count",
	  { .coll = HK_COLL_ALLREDUCE, .count = 8, .type = HK_TYPE_FP32 },
	  { .coll = HK_COLL_ALLREDUCE, .count = 9, .type = HK_TYPE_FP32 },
	  "allreduce(8 x fp32, sum)",
	  "allreduce(9 x fp32, sum)" },
	{ "type",
	  { .coll = HK_COLL_ALLGATHER, .count = 8, .type = HK_TYPE_INT32 },
	  { .coll = HK_COLL_ALLGATHER, .count = 8, .type = HK_TYPE_FP32 },
	  "allgather(8 x int32)",
	  "allgather(8 x fp32)" },
	{ "operation",
	  { .coll = HK_COLL_REDUCESCATTER, .count = 3, .type = HK_TYPE_INT8 },
	  { .coll = HK_COLL_REDUCESCATTER, .count = 3, .type = HK_TYPE_INT8, .op = HK_REDOP_MAX },
	  "reducescatter(3 x int8, sum)",
	  "reducescatter(3 x int8, max)" },
	{ "collective",
	  { .coll = HK_COLL_ALLREDUCE, .count = 5, .type = HK_TYPE_FP64 },
	  { .coll = HK_COLL_BROADCAST, .count = 5, .type = HK_TYPE_FP64 },
	  "allreduce(5 x fp64, sum)",
	  "broadcast(5 x fp64, root 0)" },
	{ "barrier",
	  { .coll = HK_COLL_ALLTOALL, .count = 5, .type = HK_TYPE_UINT16 },
	  { .coll = HK_COLL_BARRIER },
	  "alltoall(5 x uint16)",
	  "barrier" },
	{ "root",
	  { .coll = HK_COLL_REDUCE, .count = 4, .type = HK_TYPE_BF16, .root = 0 },
	  { .coll = HK_COLL_REDUCE, .count = 4, .type = HK_TYPE_BF16, .root = 1 },
	  "reduce(4 x bf16, sum, root 0)",
	  "reduce(4 x bf16, sum, root 1)" },
	{ "tag",
	  { .coll = HK_COLL_GATHER, .count = 4, .type = HK_TYPE_INT64 },
	  { .coll = HK_COLL_GATHER, .count = 4, .type = HK_TYPE_INT64, .tag = 17 },
	  "gather(4 x int64, root 0)",
	  "gather(4 x int64, root 0) tag 17" },
	{ "algorithm",
	  { .coll = HK_COLL_ALLREDUCE, .count = 4, .type = HK_TYPE_INT64, .algo = "ring" },
	  { .coll = HK_COLL_ALLREDUCE, .count = 4, .type = HK_TYPE_INT64, .algo = "one-shot" },
	  "allreduce(4 x int64, sum) by ring",
	  "allreduce(4 x int64, sum) by one-shot" },
	{ "choice",
	  { .coll = HK_COLL_ALLREDUCE, .count = 4, .type = HK_TYPE_INT64 },
	  { .coll = HK_COLL_ALLREDUCE, .count = 4, .type = HK_TYPE_INT64, .algo = "two-shot" },
	  "allreduce(4 x int64, sum)",
	  "allreduce(4 x int64, sum) by two-shot" },
	{ "counts",
	  { .coll = HK_COLL_ALLGATHER, .type = HK_TYPE_INT64, .v = true, .first = 2 },
	  { .coll = HK_COLL_ALLGATHER, .type = HK_TYPE_INT64, .v = true, .first = 3 },
	  "allgatherv(counts #",
	  "allgatherv(counts #" },
	{ "form",
	  { .coll = HK_COLL_SCATTER, .type = HK_TYPE_INT64, .count = 2 },
	  { .coll = HK_COLL_SCATTER, .type = HK_TYPE_INT64, .v = true, .first = 2 },
	  "scatter(2 x int64, root 0)",
	  "scatterv(counts #" },
	{ "alltoallv",
	  { .coll = HK_COLL_ALLTOALL, .type = HK_TYPE_INT64, .count = 0 },
	  { .coll = HK_COLL_ALLTOALL, .type = HK_TYPE_INT64, .v = true, .first = 0 },
	  "alltoall(0 x int64)",
	  "alltoallv(" },
};

#define ROOM 64u

static enum hk_status call_v(struct hk_group *group, const struct call *call, char *in, char *out,
			     const struct hk_opts *opts)
{
	uint64_t counts[WORLD_RANKS_MAX];

	for (uint32_t r = 0; r < WORLD_RANKS_MAX; r++)
		counts[r] = call->first ? 2 : 0;
	counts[0] = call->first;
	switch (call->coll) {
	case HK_COLL_ALLGATHER:
		return hk_allgatherv(group, in, out, counts, call->type, opts);
	case HK_COLL_SCATTER:
		return hk_scatterv(group, in, out, counts, call->type, call->root, opts);
	default:
		return hk_alltoallv(group, in, counts, out, counts, call->type, opts);
	}
}

static enum hk_status call_make(struct hk_group *group, const struct call *call)
{
	char in[ROOM * 8] = { 0 }, out[ROOM * 8] = { 0 };
	struct hk_opts opts = HK_OPTS_INIT;

	opts.tag = call->tag;
	opts.algo = call->algo;
	if (call->v)
		return call_v(group, call, in, out, &opts);
	switch (call->coll) {
	case HK_COLL_ALLREDUCE:
		return hk_allreduce(group, in, out, call->count, call->type, call->op, &opts);
	case HK_COLL_REDUCE:
		return hk_reduce(group, in, out, call->count, call->type, call->op, call->root,
				 &opts);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatter(group, in, out, call->count, call->type, call->op, &opts);
	case HK_COLL_ALLGATHER:
		return hk_allgather(group, in, out, call->count, call->type, &opts);
	case HK_COLL_GATHER:
		return hk_gather(group, in, out, call->count, call->type, call->root, &opts);
	case HK_COLL_SCATTER:
		return hk_scatter(group, in, out, call->count, call->type, call->root, &opts);
	case HK_COLL_BROADCAST:
		return hk_broadcast(group, in, out, call->count, call->type, call->root, &opts);
	case HK_COLL_ALLTOALL:
		return hk_alltoall(group, in, out, call->count, call->type, &opts);
	default:
		return hk_barrier(group, &opts);
	}
}

struct run {
	const struct mismatch *mismatch;
	uint32_t odd; /* the rank that calls something else */
	char why[WORLD_RANKS_MAX][HK_WHY_MAX];
};

static void mismatch_rank(struct world_seat *seat)
{
	struct run *run = seat->ctx;
	const struct mismatch *mismatch = run->mismatch;
	bool odd = seat->rank == run->odd;

	/* The first operation is as it should be. */
	CHECK_EQ(hk_barrier(seat->group, NULL), HK_OK);
	enum hk_status status = call_make(seat->group, odd ? &mismatch->odd : &mismatch->most);
	if (status != HK_EMISMATCH)
		test_fail(__FILE__, __LINE__, "%s: rank %u of %u gets %s, not HK_EMISMATCH",
			  mismatch->name, seat->rank, seat->n, hk_status_name(status));
	snprintf(run->why[seat->rank], HK_WHY_MAX, "%s", hk_group_why(seat->group));
	/* And nothing is begun any more. */
	CHECK_EQ(hk_barrier(seat->group, NULL), HK_EMISMATCH);
	CHECK_STR(hk_group_why(seat->group), run->why[seat->rank]);
	world_meet(seat);
}

static void mismatch_check(const struct run *run, uint32_t n)
{
	char odd[128], most[32];

	for (uint32_t r = 1; r < n; r++)
		CHECK_STR(run->why[r], run->why[0]);
	snprintf(odd, sizeof(odd), "rank %u called %s", run->odd, run->mismatch->says_odd);
	CHECK_HAS(run->why[0], odd);
	CHECK_HAS(run->why[0], run->mismatch->says_most);
	snprintf(most, sizeof(most), n == 2 ? "rank %u called" : "ranks %u", run->odd ? 0 : 1);
	CHECK_HAS(run->why[0], most);
	CHECK_HAS(run->why[0], "operation 2 of the group");
}

static void mismatch_each(enum world_kind kind, const uint32_t *ranks, bool progress)
{
	struct run *run = world_shared(sizeof(*run));

	for (size_t i = 0; i < sizeof(mismatches) / sizeof(mismatches[0]); i++) {
		for (uint32_t k = 0; ranks[k]; k++) {
			struct world_spec spec = {
				.kind = kind, .n = ranks[k], .check = true, .progress = progress
			};

			run->mismatch = &mismatches[i];
			run->odd = (uint32_t)(i + k) % ranks[k];
			world_run(&spec, mismatch_rank, run);
			mismatch_check(run, ranks[k]);
		}
	}
}

#define RANKS(...) ((const uint32_t[]){ __VA_ARGS__, 0 })

TEST(every_mismatch_is_told_to_threads)
{
	mismatch_each(WORLD_THREADS_SHM, RANKS(2, 3, 5), false);
}

TEST(every_mismatch_is_told_with_a_progress_thread)
{
	mismatch_each(WORLD_THREADS_SHM, RANKS(3), true);
}

TEST(every_mismatch_is_told_over_tcp)
{
	mismatch_each(WORLD_THREADS_TCP, RANKS(2, 3), false);
}

TEST(every_mismatch_is_told_to_processes)
{
	mismatch_each(WORLD_PROCESSES_SHM, RANKS(3), false);
}

TEST(every_mismatch_is_told_across_hosts)
{
	mismatch_each(WORLD_MIXED_PROCESSES, RANKS(4), false);
}

/* Every rank calls something else. */
static void all_differ_rank(struct world_seat *seat)
{
	char in[ROOM] = { 0 }, out[ROOM] = { 0 };
	char rank[64];

	CHECK_EQ(hk_allreduce(seat->group, in, out, seat->rank + 1, HK_TYPE_INT8, HK_REDOP_SUM,
			      NULL),
		 HK_EMISMATCH);
	for (uint32_t r = 0; r < seat->n; r++) {
		snprintf(rank, sizeof(rank), "rank %u called allreduce(%u x int8, sum)", r, r + 1);
		CHECK_HAS(hk_group_why(seat->group), rank);
	}
	world_meet(seat);
}

TEST(all_differ)
{
	struct world_spec spec = { .kind = WORLD_THREADS_SHM, .n = 5, .check = true };

	world_run(&spec, all_differ_rank, NULL);
}

/* Requests that wait behind it fail with it, and a group that was split off does not. */
static void behind_rank(struct world_seat *seat)
{
	int32_t in[4] = { 1, 2, 3, 4 }, out[3][4];
	struct hk_request *requests[3];
	struct hk_group *other;
	struct hk_opts opts = HK_OPTS_INIT;

	CHECK_EQ(hk_group_split(seat->group, 0, 0, &other), HK_OK);
	for (int i = 0; i < 3; i++) {
		uint64_t count = i == 1 && seat->rank == 1 ? 3 : 4;

		opts.request = &requests[i];
		CHECK_EQ(hk_allreduce(other, in, out[i], count, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
			 HK_OK);
	}
	CHECK_EQ(hk_request_wait(requests[2], 0), HK_EMISMATCH);
	CHECK_EQ(hk_request_wait(requests[1], 0), HK_EMISMATCH);
	CHECK_EQ(hk_request_wait(requests[0], 0), HK_OK);
	CHECK_EQ(out[0][3], 4 * seat->n);
	for (int i = 0; i < 3; i++)
		hk_request_free(requests[i]);
	hk_group_free(other);
	CHECK_EQ(hk_allreduce(seat->group, in, out[0], 2, HK_TYPE_INT32, HK_REDOP_SUM, NULL),
		 HK_OK);
	CHECK_EQ(out[0][1], 2 * seat->n);
}

TEST(requests_behind_a_mismatch)
{
	for (int progress = 0; progress < 2; progress++) {
		struct world_spec spec = {
			.kind = WORLD_THREADS_SHM, .n = 3, .check = true, .progress = progress
		};

		world_run(&spec, behind_rank, NULL);
	}
}
