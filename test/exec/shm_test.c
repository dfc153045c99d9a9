/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm_test.c - every built-in plan performed on shared memory, by threads and
 * by processes, and compared with the definition of its collective. Slots are
 * small, so that there are many slices.
 */
#include "exec/program.h"
#include "exec/wait.h"
#include "base/fork.h"
#include "harness.h"
#include "naive/defn.h"
#include "naive/each.h"
#include "net/shm/shm.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS_MAX 16
#define SEGMENT_BYTES ((size_t)64 << 20)
#define TIMEOUT_NS UINT64_C(20000000000)

/* Mapped once, before ranks part: threads share it, and so do processes. */
struct world {
	uint32_t n;
	void *segments[RANKS_MAX];
};

static void *world_segment(void *ctx, uint32_t rank)
{
	return ((struct world *)ctx)->segments[rank];
}

static void world_open(struct world *world, uint32_t n)
{
	world->n = n;
	for (uint32_t r = 0; r < n; r++) {
		int fd;

		CHECK_EQ(hk__shm_segment_create(SEGMENT_BYTES, &fd), HK_OK);
		CHECK_EQ(hk__shm_segment_map(fd, 0, SEGMENT_BYTES, &world->segments[r]), HK_OK);
		hk__fd_close(fd);
	}
}

static void world_close(struct world *world)
{
	for (uint32_t r = 0; r < world->n; r++)
		hk__shm_segment_unmap(world->segments[r], SEGMENT_BYTES);
}

/* A rank's net, and its channels, of small slots. */
struct seat {
	struct hk_net *net;
	struct hk__chans chans;
};

static void seat_open(struct seat *seat, struct world *world, uint32_t rank, uint32_t slot_bytes)
{
	struct hk_shm_spec shm = { .rank = rank,
				   .n = world->n,
				   .bytes = SEGMENT_BYTES,
				   .heap_at = SEGMENT_BYTES / 2,
				   .segment = world_segment,
				   .ctx = world };

	CHECK_EQ(hk__shm_open(&shm, &seat->net), HK_OK);
	hk__chans_init(&seat->chans, &hk__alloc_default);
	seat->chans.net = seat->net;
	seat->chans.context = 7;
	seat->chans.cut.slots = HK_SLOTS_MIN;
	seat->chans.cut.slot_bytes = slot_bytes;
}

static void seat_close(struct seat *seat)
{
	hk__chans_fini(&seat->chans);
	hk__net_close(seat->net);
}

static enum hk_status program_wait(struct hk__program *program, struct hk_net *net,
				   uint64_t timeout_ns)
{
	struct hk__wait wait = { .net = net, .spins = 200, .yields = 20, .timeout_ns = timeout_ns };

	for (;;) {
		bool moved;
		enum hk_status status = hk__program_poll(program, &moved);

		if (status == HK_INPROGRESS)
			status = hk__wait_step(&wait, moved);
		else
			return status;
		if (status != HK_OK)
			return status;
	}
}

/* ---- one rank ---- */

struct job {
	const struct hk_plan *plan;
	struct world *world;
	struct defn **data; /* operations, one after the other */
	uint32_t ndata;
	uint32_t slot_bytes;
	bool inplace;
	bool lends;
};

struct member {
	struct job *job;
	uint32_t rank;
};

/* The element where a slot of a buffer begins. */
static uint64_t slot_first(const struct job *job, const struct hk_sizes *sizes, uint32_t rank,
			   enum hk_buf buf, uint32_t slot)
{
	uint64_t first = 0;

	for (uint32_t k = 0; k < slot; k++)
		first += hk_plan_length(job->plan, sizes, hk_plan_symbol(job->plan, rank, buf, k));
	return first;
}

/* Where `in` begins in `out`, or (negative) `out` in `in`, in elements. */
static bool inplace_offset(const struct job *job, const struct hk_sizes *sizes, uint32_t rank,
			   int64_t *offset_out)
{
	for (uint32_t k = 0; job->inplace && k < hk_plan_slots(job->plan, rank, HK_BUF_IN); k++) {
		uint32_t out = hk_plan_inplace_slot(job->plan, rank, k);

		if (out == HK_NONE)
			continue;
		*offset_out = (int64_t)slot_first(job, sizes, rank, HK_BUF_OUT, out) -
			      (int64_t)slot_first(job, sizes, rank, HK_BUF_IN, k);
		return true;
	}
	return false;
}

static void member_operate(const struct member *member, struct hk__program *program,
			   struct hk_net *net, const struct defn *data)
{
	const struct defn_row *in = &data->in[member->rank], *out = &data->out[member->rank];
	/* Half of the operations are on memory that can be lent. */
	bool lends = member->job->lends;
	union elem *space = lends ? (void *)((char *)member->job->world->segments[member->rank] +
					     SEGMENT_BYTES / 2)
				  : calloc(in->len + out->len + 1, sizeof(*space));
	union elem *in_at = space, *out_at = space + in->len;
	int64_t offset;
	uint64_t wrong;

	CHECK(space);
	if (inplace_offset(member->job, &data->spec.sizes, member->rank, &offset)) {
		in_at = space + (offset > 0 ? offset : 0);
		out_at = space + (offset < 0 ? -offset : 0);
	}
	memset(space, 0x5a, (in->len + out->len) * sizeof(*space));
	memcpy(in_at, in->at, in->len * sizeof(*space));
	struct hk__call call = { .in = in_at,
				 .out = out_at,
				 .sizes = data->spec.sizes,
				 .type = HK_TYPE_INT64,
				 .op = HK_REDOP_SUM };
	CHECK_EQ(hk__program_start(program, &call), HK_OK);
	enum hk_status status = program_wait(program, net, TIMEOUT_NS);
	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "%s rank %u: %s", each_name(member->job->plan),
			  member->rank, hk_status_text(status));
	if (!defn_equal(data, member->rank, out_at, &wrong))
		test_fail(__FILE__, __LINE__,
			  "%s rank %u: element %" PRIu64 " of %" PRIu64 " is wrong",
			  each_name(member->job->plan), member->rank, wrong, out->len);
	if (!lends)
		free(space);
}

static void *member_run(void *ctx)
{
	struct member *member = ctx;
	struct job *job = member->job;
	struct seat seat;
	struct hk__program_spec spec = { .plan = job->plan,
					 .rank = member->rank,
					 .chans = &seat.chans };
	struct hk__program *program;

	seat_open(&seat, job->world, member->rank, job->slot_bytes);
	CHECK_EQ(hk__program_create(&spec, &program), HK_OK);
	for (uint32_t i = 0; i < job->ndata; i++)
		member_operate(member, program, seat.net, job->data[i]);
	hk__program_destroy(program);
	seat_close(&seat);
	return NULL;
}

/* ---- all ranks ---- */

static void job_run_threads(struct job *job)
{
	struct member members[RANKS_MAX];
	pthread_t threads[RANKS_MAX];

	for (uint32_t r = 0; r < job->world->n; r++) {
		members[r] = (struct member){ job, r };
		CHECK_EQ(pthread_create(&threads[r], NULL, member_run, &members[r]), 0);
	}
	for (uint32_t r = 0; r < job->world->n; r++)
		CHECK_EQ(pthread_join(threads[r], NULL), 0);
}

static void job_run_processes(struct job *job)
{
	pid_t pids[RANKS_MAX];

	fflush(stdout);
	for (uint32_t r = 0; r < job->world->n; r++) {
		pids[r] = fork();
		CHECK(pids[r] >= 0);
		if (pids[r] == 0) {
			struct member member = { job, r };

			member_run(&member);
			_exit(0);
		}
	}
	for (uint32_t r = 0; r < job->world->n; r++) {
		int status;

		CHECK_EQ(waitpid(pids[r], &status, 0), pids[r]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

#define SIZES 6

struct suite {
	bool processes;
	bool longs; /* slices that begin where lines of cache do */
	uint64_t seed;
	uint64_t operations;
};

/* The operations of a plan: even, odd, none, many, and, for blocks, uneven. */
static uint32_t suite_make_data(struct suite *suite, const struct hk_plan_info *info,
				uint64_t ncounts, uint64_t *counts, struct defn **data)
{
	const uint64_t shorts[] = { 1, 0, info->nranks + 1, 13, 300 };
	const uint64_t longs[] = { 5 * HK__SLICE_LONG + 3, 29 * HK__SLICE_LONG };
	const uint64_t *even = suite->longs ? longs : shorts;
	size_t neven = suite->longs ? sizeof(longs) / sizeof(longs[0])
				    : sizeof(shorts) / sizeof(shorts[0]);
	uint64_t uneven = suite->longs ? 3 * HK__SLICE_LONG : 90;
	struct defn_spec spec = { .coll = info->coll,
				  .type = ELEM_INT64,
				  .n = info->nranks,
				  .root = info->root,
				  .msgs = info->msgs,
				  .nmsgs = info->nmsgs };
	uint32_t ndata = 0;

	for (size_t i = 0; i < neven; i++) {
		spec.sizes = (struct hk_sizes){ even[i], NULL };
		data[ndata++] = defn_create(&spec, ELEM_EXACT, suite->seed++);
	}
	for (uint64_t k = 0; k < ncounts; k++)
		counts[k] = test_random(&suite->seed) % 4 ? test_random(&suite->seed) % uneven : 0;
	if (ncounts) {
		spec.sizes = (struct hk_sizes){ 0, counts };
		data[ndata++] = defn_create(&spec, ELEM_EXACT, suite->seed++);
	}
	return ndata;
}

static void suite_plan(const struct hk_plan *plan, void *ctx)
{
	struct suite *suite = ctx;
	struct hk_plan_info info = { .size = sizeof(info) };
	struct defn *data[SIZES];
	uint64_t *counts = calloc(hk_plan_counts(plan) + 1, sizeof(*counts));

	CHECK(counts);
	hk_plan_describe(plan, &info);
	uint32_t ndata = suite_make_data(suite, &info, hk_plan_counts(plan), counts, data);
	for (int how = 0; how < (info.inplace ? 4 : 2); how++) {
		bool inplace = how / 2;
		struct world world;
		struct job job = { .plan = plan,
				   .world = &world,
				   .data = data,
				   .ndata = ndata,
				   .slot_bytes = suite->longs ? 100001
						 : inplace    ? 1024
							      : 384,
				   .inplace = inplace,
				   .lends = how % 2 };

		world_open(&world, info.nranks);
		if (suite->processes)
			job_run_processes(&job);
		else
			job_run_threads(&job);
		world_close(&world);
		suite->operations += ndata;
	}
	for (uint32_t i = 0; i < ndata; i++)
		defn_destroy(data[i]);
	free(counts);
}

static void suite_run(bool processes, uint32_t n_max)
{
	struct suite suite = { .processes = processes, .seed = test_seed(1) };
	struct each_opts opts = { .n_min = 1,
				  .n_max = n_max,
				  .roots = EACH_ROOT_ENDS,
				  .batches = 1,
				  .seed = 1,
				  .messages = true };

	for (unsigned coll = 0; coll < HK_COLL_COUNT; coll++)
		each_plan((enum hk_coll)coll, &opts, suite_plan, &suite);
	printf("%" PRIu64 " operations\n", suite.operations);
	CHECK(suite.operations > 500);
}

TEST(every_plan_by_threads)
{
	suite_run(false, 7);
}

TEST(every_plan_by_processes)
{
	suite_run(true, 4);
}

TEST(every_plan_in_long_slices)
{
	struct suite suite = { .longs = true, .seed = test_seed(1) };
	struct each_opts opts = { .n_min = 3,
				  .n_max = 4,
				  .roots = EACH_ROOT_ENDS,
				  .batches = 1,
				  .seed = 1,
				  .messages = true };

	for (unsigned coll = 0; coll < HK_COLL_COUNT; coll++)
		each_plan((enum hk_coll)coll, &opts, suite_plan, &suite);
	printf("%" PRIu64 " operations\n", suite.operations);
	CHECK(suite.operations > 300);
}

/* ---- what cannot be ---- */

struct odd {
	struct world *world;
	const struct hk_plan *plan;
	uint32_t rank;
	uint64_t count;
	enum hk_status status;
};

static void *odd_run(void *ctx)
{
	struct odd *odd = ctx;
	struct seat seat;
	struct hk__program_spec spec = { .plan = odd->plan,
					 .rank = odd->rank,
					 .chans = &seat.chans };
	struct hk__program *program;
	int64_t in[64] = { 0 }, out[64] = { 0 };
	struct hk__call call = { .in = in,
				 .out = out,
				 .sizes = { odd->count, NULL },
				 .type = HK_TYPE_INT64,
				 .op = HK_REDOP_SUM };

	seat_open(&seat, odd->world, odd->rank, 4096);
	CHECK_EQ(hk__program_create(&spec, &program), HK_OK);
	CHECK_EQ(hk__program_start(program, &call), HK_OK);
	odd->status = program_wait(program, seat.net, 50000000);
	hk__program_destroy(program);
	seat_close(&seat);
	return NULL;
}

/* Ranks that disagree about the count are told; nobody writes past its end. */
TEST(counts_that_differ)
{
	struct world world;
	struct hk_plan *plan;
	struct odd odd[2];
	pthread_t threads[2];

	world_open(&world, 2);
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 2, NULL, NULL, &plan), HK_OK);
	for (uint32_t r = 0; r < 2; r++) {
		odd[r] = (struct odd){ &world, plan, r, r ? 7 : 60, HK_OK };
		CHECK_EQ(pthread_create(&threads[r], NULL, odd_run, &odd[r]), 0);
	}
	for (uint32_t r = 0; r < 2; r++) {
		CHECK_EQ(pthread_join(threads[r], NULL), 0);
		CHECK_EQ(odd[r].status, HK_EIO);
	}
	hk_plan_free(plan);
	world_close(&world);
}

TEST(a_peer_that_never_comes)
{
	struct world world;
	struct hk_plan *plan;

	world_open(&world, 2);
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 2, NULL, NULL, &plan), HK_OK);
	struct odd odd = { &world, plan, 0, 5, HK_OK };
	odd_run(&odd);
	CHECK_EQ(odd.status, HK_ETIMEDOUT);
	hk_plan_free(plan);
	world_close(&world);
}

static void *refuse_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	if (size_new && *(bool *)ctx)
		return NULL;
	return hk__alloc_default.resize(NULL, ptr, size_old, size_new);
}

/* A start that found no memory for scratch leaves none that the next would trust. */
TEST(a_start_after_one_without_memory)
{
	bool refuse = false;
	struct hk_alloc alloc = { refuse_resize, &refuse };
	struct world world;
	struct hk_plan *plan;
	struct hk__program *program;
	struct seat seat;
	struct hk__program_spec spec = { .rank = 2, .chans = &seat.chans, .alloc = &alloc };
	int64_t in[5] = { 0 }, out[5] = { 0 };
	struct hk__call call = { .in = in,
				 .out = out,
				 .sizes = { 5, NULL },
				 .type = HK_TYPE_INT64,
				 .op = HK_REDOP_SUM };

	world_open(&world, 3);
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 3, NULL, NULL, &plan), HK_OK);
	CHECK(hk_plan_slots(plan, 2, HK_BUF_SCRATCH) > 0);
	seat_open(&seat, &world, 2, 4096);
	spec.plan = plan;
	CHECK_EQ(hk__program_create(&spec, &program), HK_OK);
	refuse = true;
	CHECK_EQ(hk__program_start(program, &call), HK_ENOMEM);
	refuse = false;
	CHECK_EQ(hk__program_start(program, &call), HK_OK);
	CHECK(program->scratch.at && program->scratch.held);
	hk__program_destroy(program);
	seat_close(&seat);
	hk_plan_free(plan);
	world_close(&world);
}

TEST(calls_that_cannot_start)
{
	struct world world;
	struct hk_plan *plan;
	struct hk__program *program;
	struct seat seat;
	struct hk__program_spec spec = { .chans = &seat.chans };
	struct hk__call call = { .type = HK_TYPE_INT64, .op = HK_REDOP_SUM };

	world_open(&world, 1);
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 1, NULL, NULL, &plan), HK_OK);
	seat_open(&seat, &world, 0, 4);
	spec.plan = plan;
	spec.rank = 1;
	CHECK_EQ(hk__program_create(&spec, &program), HK_EINVAL);
	spec.rank = 0;
	CHECK_EQ(hk__program_create(&spec, &program), HK_OK);
	/* A slot that holds no element, and an operation floats do not have. */
	CHECK_EQ(hk__program_start(program, &call), HK_ELIMIT);
	call.type = HK_TYPE_FP32;
	call.op = HK_REDOP_BXOR;
	CHECK_EQ(hk__program_start(program, &call), HK_EINVAL);
	hk__program_destroy(program);
	hk__program_destroy(NULL);
	seat_close(&seat);
	hk_plan_free(plan);
	world_close(&world);
}
