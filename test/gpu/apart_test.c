/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart_test.c - collectives on device memory among processes: forked here, or started
 * by hocket run; by several GPUs; with several ranks each; and what becomes of those
 * who are left when one is killed. On a GPU by `make test-gpu`, else on the stand-in,
 * with fewer sizes.
 */
#include "gpu/bed.h"
#include "gpu/exchange.h"
#include "group/device/device.h"
#include "harness.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- processes ---- */

static char address[32];

/* A port that was free a moment ago. */
static void address_find(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	close(fd);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
}

struct task {
	uint32_t n;
	void (*run)(const struct task *task, uint32_t process);
	uint32_t killed; /* the process that does not end by itself; HK_NONE: none */
	const char *env; /* of all: NAME=value; NULL: nothing */
	const char *env_of_0;
	uint64_t seed;
};

/* A process each; the driver is theirs alone, as a child cannot use its parent's. */
static void task_run(const struct task *task, uint32_t processes)
{
	pid_t pids[BED_RANKS_MAX];
	bool skipped = false, failed = false;

	address_find();
	fflush(stdout);
	for (uint32_t p = 0; p < processes; p++) {
		pids[p] = fork();
		CHECK(pids[p] >= 0);
		if (pids[p] != 0)
			continue;
		if (task->env)
			putenv((char *)(uintptr_t)task->env);
		if (task->env_of_0 && p == 0)
			putenv((char *)(uintptr_t)task->env_of_0);
		task->run(task, p);
		exit(0);
	}
	for (uint32_t p = 0; p < processes; p++) {
		int status;

		CHECK_EQ(waitpid(pids[p], &status, 0), pids[p]);
		if (p == task->killed)
			failed |= !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;
		else if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skipped = true;
		else
			failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	CHECK(!failed);
	if (skipped)
		SKIP("as the processes say");
}

/* ---- everything ---- */

/*
 * In and out of place, aligned and not, some sizes: all of them where that takes no time,
 * and one with each combination of the rest where kernels of many processes take turns.
 */
static void op_sizes(struct bed *bed, struct bed_op op)
{
	static const uint64_t counts[] = { 2, 1, 1000, 4099, 33001, 262147 };
	size_t ncounts = bed_is_standin() ? 4 : sizeof(counts) / sizeof(counts[0]);
	bool one = bed_is_standin() || bed->n > 2;

	for (size_t i = 0; i < ncounts; i++) {
		if (one && (op.want.type + op.want.op + op.want.coll) % ncounts != i)
			continue;
		op.want.count = counts[i];
		op.want.seed++;
		op.inplace = (op.want.seed + i) % 2 && op.want.coll != HK_COLL_ALLTOALL;
		op.skew = i % 3;
		op.want.v = i == 2 && want_has_v(op.want.coll) && op.want.coll != HK_COLL_ALLTOALL;
		bed_try(bed, &op);
	}
}

/* Sends and receives, and alltoallv: by one buffer, and by more than there are. */
static void messages_try(struct bed *bed)
{
	static const uint64_t sizes[] = { 24, 40000, 700000, 9000000 };

	for (size_t i = 0; i < (bed_is_standin() ? 3 : 4); i++) {
		struct exchange exchange = { .bytes = sizes[i], .seed = i, .uneven = true };

		if (exchange_memory(bed->n, sizes[i]) > bed->bytes)
			continue;
		exchange_fill(bed, &exchange);
		exchange_batches(bed, &exchange);
		exchange_check(bed, &exchange);
		exchange.packed = true;
		exchange_fill(bed, &exchange);
		exchange_alltoallv(bed, &exchange);
		exchange_check(bed, &exchange);
	}
}

static void colls_try(struct bed *bed)
{
	messages_try(bed);
	for (unsigned c = 0; c < HK_COLL_COUNT; c++) {
		enum hk_coll coll = (enum hk_coll)c;

		if (coll == HK_COLL_BARRIER || coll == HK_COLL_SENDRECV)
			continue;
		for (unsigned i = 0; i < HK_TYPE_COUNT * HK_REDOP_COUNT; i++) {
			struct bed_op op = { .want = { .coll = coll,
						       .type = (enum hk_type)(i / HK_REDOP_COUNT),
						       .op = (enum hk_redop)(i % HK_REDOP_COUNT),
						       .n = bed->n,
						       .root = want_rooted(coll) ? bed->n / 2 : 0,
						       .seed = i } };

			if (hk_redop_valid(op.want.type, op.want.op) &&
			    (want_reduces(coll) || op.want.op == HK_REDOP_SUM))
				op_sizes(bed, op);
		}
	}
}

static void all_of_it(const struct task *task, uint32_t process)
{
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)32 << 20);
	bed_join(&bed, process, address, 0);
	CHECK_EQ(hk__group_gpu_path(bed.groups[process]), HK__GPU_APART);
	colls_try(&bed);
	bed_close(&bed);
}

TEST(two_processes)
{
	task_run(&(struct task){ .n = 2, .run = all_of_it, .killed = HK_NONE }, 2);
}

TEST(three_processes)
{
	task_run(&(struct task){ .n = 3, .run = all_of_it, .killed = HK_NONE }, 3);
}

TEST(four_processes)
{
	task_run(&(struct task){ .n = 4, .run = all_of_it, .killed = HK_NONE }, 4);
}

TEST(eight_processes)
{
	task_run(&(struct task){ .n = 8, .run = all_of_it, .killed = HK_NONE }, 8);
}

/* Counters that come round: just below it, in all processes. */
static void rounds_try(const struct task *task, uint32_t process)
{
	static const uint64_t counts[] = { 2, 60000, 300, 5000, 5000, 60000, 2 };
	struct bed_op op = {
		.want = { .coll = HK_COLL_ALLREDUCE, .type = HK_TYPE_INT32, .n = task->n }
	};
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)16 << 20);
	bed_join(&bed, process, address, 0);
	for (uint32_t before = 0; before < 4; before++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			op.want.count = counts[i];
			op.want.seed++;
			bed_try(&bed, &op);
		}
		for (uint32_t i = 0; i < 24; i++) {
			struct exchange exchange = { .bytes = i % 4 ? 24 : 40000, .seed = i };

			exchange_fill(&bed, &exchange);
			exchange_batches(&bed, &exchange);
			exchange_check(&bed, &exchange);
		}
		/* Nobody is still at it, or again. */
		bed_wait(&bed);
		CHECK_EQ(hk_barrier(bed.groups[process], NULL), HK_OK);
		bed_set_epoch(&bed, (UINT64_C(1) << 32) - 1 - before);
		bed_set_messages(&bed, (UINT64_C(1) << 31) - HK__PAIR_PLACES - before);
		CHECK_EQ(hk_barrier(bed.groups[process], NULL), HK_OK);
	}
	bed_close(&bed);
}

TEST(epochs_come_round)
{
	task_run(&(struct task){ .n = 3, .run = rounds_try, .killed = HK_NONE }, 3);
}

/* Every algorithm, by buffers and by lines. */
static void every_algorithm(const struct task *task, uint32_t process)
{
	static const uint64_t counts[] = { 100, 5000, 300007 };
	struct hk_algo_info algo = { .size = sizeof(algo) };
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)32 << 20);
	bed_join(&bed, process, address, 0);
	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		struct bed_op op = { .want = { .coll = algo.coll,
					       .type = i % 2 ? HK_TYPE_FP32 : HK_TYPE_BF16,
					       .n = bed.n,
					       .seed = i },
				     .algo = algo.name };

		if (algo.coll == HK_COLL_BARRIER || algo.coll == HK_COLL_SENDRECV || algo.onesided)
			continue;
		for (size_t k = 0; k < (bed_is_standin() ? 2 : 3); k++) {
			op.want.count = counts[k];
			op.inplace = algo.inplace && k % 2;
			bed_try(&bed, &op);
		}
	}
	bed_close(&bed);
}

TEST(algorithms)
{
	task_run(&(struct task){ .n = 4, .run = every_algorithm, .killed = HK_NONE }, 4);
}

/* ---- large, on a GPU; on the stand-in more slices than there are buffers ---- */

static void large(const struct task *task, uint32_t process)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_REDUCESCATTER, HK_COLL_ALLTOALL };
	struct bed bed;

	bed_open_empty(&bed, task->n, 1 << 20);
	size_t bytes = bed_is_standin() ? (size_t)12 << 20 : (size_t)256 << 20;
	bed.bytes = 2 * bytes + (1 << 20);
	bed_join(&bed, process, address, 0);
	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
		uint64_t all = bytes / 4 - 5;
		struct bed_op op = {
			.want = { .coll = colls[c],
				  .type = HK_TYPE_UINT32,
				  .n = bed.n,
				  .seed = c,
				  .count = colls[c] == HK_COLL_ALLREDUCE ? all : all / bed.n }
		};

		bed_try(&bed, &op);
	}
	bed_close(&bed);
}

TEST(large_ones)
{
	task_run(&(struct task){ .n = 4, .run = large, .killed = HK_NONE }, 4);
}

/* ---- graphs ---- */

static void graphs(const struct task *task, uint32_t process)
{
	static const uint64_t counts[] = { 2, 3000, 200001 };
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_REDUCESCATTER, HK_COLL_ALLTOALL,
					      HK_COLL_BROADCAST };
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)32 << 20);
	bed_join(&bed, process, address, 0);
	for (size_t i = 0; i < 3 * sizeof(colls) / sizeof(colls[0]); i++) {
		struct bed_op op = { .want = { .coll = colls[i / 3],
					       .type = HK_TYPE_FP32,
					       .n = bed.n,
					       .count = counts[i % 3] } };

		bed_capture_begin(&bed);
		bed_call(&bed, &op);
		void *graph = bed_capture_end(&bed);
		for (uint32_t turn = 0; turn < 3; turn++) {
			op.want.seed++;
			bed_fill(&bed, &op);
			bed_replay(&bed, graph);
			bed_check(&bed, &op);
		}
		bed_try(&bed, &op);
		bed_graph_free(graph);
	}
	bed_close(&bed);
}

TEST(graphs_are_replayed)
{
	task_run(&(struct task){ .n = 3, .run = graphs, .killed = HK_NONE }, 3);
}

/* ---- several ranks of a process, several GPUs ---- */

struct joining {
	struct bed *bed;
	uint32_t rank;
	int device;
	pthread_t thread;
};

static void *join_one(void *arg)
{
	const struct joining *joining = arg;

	bed_join(joining->bed, joining->rank, address, joining->device);
	return NULL;
}

/* Ranks from one on, of this process. */
static void join_all(struct bed *bed, uint32_t first, uint32_t count, int devices)
{
	struct joining joining[BED_RANKS_MAX];

	for (uint32_t i = 0; i < count; i++) {
		joining[i] = (struct joining){ bed, first + i, (int)(first + i) % devices, 0 };
		CHECK_EQ(pthread_create(&joining[i].thread, NULL, join_one, &joining[i]), 0);
	}
	for (uint32_t i = 0; i < count; i++)
		pthread_join(joining[i].thread, NULL);
}

static void two_ranks_each(const struct task *task, uint32_t process)
{
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)32 << 20);
	join_all(&bed, 2 * process, 2, 1);
	CHECK_EQ(hk__group_gpu_path(bed.groups[2 * process]), HK__GPU_APART);
	colls_try(&bed);
	bed_close(&bed);
}

TEST(two_processes_of_two_ranks)
{
	task_run(&(struct task){ .n = 4, .run = two_ranks_each, .killed = HK_NONE }, 2);
}

/* They meet as processes do, and find that they are one. */
static void one_process(const struct task *task, uint32_t process)
{
	struct bed bed;

	(void)process;
	bed_open_empty(&bed, task->n, (size_t)32 << 20);
	join_all(&bed, 0, task->n, 1);
	CHECK_EQ(hk__group_gpu_path(bed.groups[0]), HK__GPU_DIRECT);
	colls_try(&bed);
	bed_close(&bed);
}

TEST(ranks_of_one_process)
{
	task_run(&(struct task){ .n = 3, .run = one_process, .killed = HK_NONE }, 1);
}

static void gpu_each(const struct task *task, uint32_t process)
{
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)32 << 20);
	if (bed_devices() < 2)
		SKIP("one GPU");
	bed_join(&bed, process, address, (int)process % 2);
	CHECK_EQ(hk__group_gpu_path(bed.groups[process]), HK__GPU_APART);
	colls_try(&bed);
	bed_close(&bed);
}

TEST(a_gpu_for_each_process)
{
	task_run(&(struct task){ .n = 3,
				 .run = gpu_each,
				 .killed = HK_NONE,
				 .env = "HK_STANDIN_DEVICES=2" },
		 3);
}

/* Two processes of two ranks, each on another GPU. */
static void gpus_each(const struct task *task, uint32_t process)
{
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)32 << 20);
	if (bed_devices() < 2)
		SKIP("one GPU");
	join_all(&bed, 2 * process, 2, 2);
	colls_try(&bed);
	bed_close(&bed);
}

TEST(two_gpus_for_each_process)
{
	task_run(&(struct task){ .n = 4,
				 .run = gpus_each,
				 .killed = HK_NONE,
				 .env = "HK_STANDIN_DEVICES=2" },
		 2);
}

static void gpus_of_threads(const struct task *task, uint32_t process)
{
	struct bed bed;

	(void)process;
	bed_open_on(&bed, task->n, (size_t)32 << 20, 2);
	colls_try(&bed);
	/* A rank stays where it began. */
	struct hk_opts opts = HK_OPTS_INIT;
	char *at = (char *)(uintptr_t)bed.memory[1];
	opts.stream = bed.streams[0];
	CHECK_EQ(hk_allreduce(bed.groups[0], at, at, 1, HK_TYPE_FP32, HK_REDOP_SUM, &opts),
		 HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]), "memory of GPU 1, but rank 0 uses GPU 0");
	bed_close(&bed);
}

TEST(two_gpus_of_threads)
{
	task_run(&(struct task){ .n = 4,
				 .run = gpus_of_threads,
				 .killed = HK_NONE,
				 .env = "HK_STANDIN_DEVICES=2" },
		 1);
}

/* ---- groups of some ----  */

static void splits(const struct task *task, uint32_t process)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *group;
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)4 << 20);
	bed_join(&bed, process, address, 0);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(hk_group_split(bed.groups[process], process % 2, process, &group), HK_OK);
		CHECK_EQ(hk__group_gpu_path(group),
			 hk_group_size(group) > 1 ? HK__GPU_APART : HK__GPU_DIRECT);
		uint32_t own = process + 1, sum = 0;
		bed_to_device(bed.memory[process], &own, 4);
		char *at = (char *)(uintptr_t)bed.memory[process];
		opts.stream = bed.streams[process];
		CHECK_EQ(hk_allreduce(group, at, at, 1, HK_TYPE_UINT32, HK_REDOP_SUM, &opts),
			 HK_OK);
		bed_wait(&bed);
		bed_to_host(&sum, bed.memory[process], 4);
		CHECK_EQ(sum, process % 2 ? 2 : 4); /* of ranks 0 and 2: 1 + 3 */
		hk_group_free(group);
	}
	bed_close(&bed);
}

TEST(groups_of_some)
{
	task_run(&(struct task){ .n = 3, .run = splits, .killed = HK_NONE }, 3);
}

/* ---- when they do not reach each other ---- */

/* A rank that has not called on device memory yet. */
static void staged_open(struct bed *bed, const struct task *task, uint32_t process)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_why why;

	bed_open_empty(bed, task->n, (size_t)1 << 20);
	opts.address = address;
	opts.rank = process;
	opts.nranks = task->n;
	opts.timeout_ns = UINT64_C(30000000000);
	CHECK_EQ(hk_group_create(&opts, &why, &bed->groups[process]), HK_OK);
}

static void staged_try(struct bed *bed)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_ALLTOALL };

	for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++)
		bed_try(bed, &(struct bed_op){ .want = { .coll = colls[i],
							 .type = HK_TYPE_BF16,
							 .n = bed->n,
							 .count = 1003 } });
}

/* What comes of it is the same on all ranks, by the rank infos or by the first call. */
static void staged(const struct task *task, uint32_t process)
{
	bool off = task->env_of_0 && strstr(task->env_of_0, "off");
	struct hk_opts call = HK_OPTS_INIT;
	struct bed bed;

	staged_open(&bed, task, process);
	struct hk_group *group = bed.groups[process];
	call.stream = bed_stream(&bed, process, 0);
	enum hk_status status = hk_barrier(group, &call);
	CHECK_EQ(hk__group_gpu_path(group), HK__GPU_STAGED);
	CHECK_EQ(status, off && process == 0 ? HK_EINVAL : HK_OK);
	if (off && process == 0) {
		CHECK_HAS(hk_group_why(group), "HOCKET_GPU=off");
		CHECK_EQ(hk_barrier(group, NULL), HK_OK); /* as the others do by streams */
	}
	if (!off)
		staged_try(&bed);
	bed_close(&bed);
}

TEST(one_cannot_open_the_others)
{
	struct task task = {
		.n = 3, .run = staged, .killed = HK_NONE, .env_of_0 = "HK_STANDIN_IPC=0"
	};

	setenv("HK_TEST_CUDA", "stand-in", 1); /* a GPU's can */
	task_run(&task, 3);
}

/* On two GPUs that do not reach each other: processes, and then threads of one. */
static void unreached(const struct task *task, uint32_t process)
{
	struct hk_opts call = HK_OPTS_INIT;
	struct bed bed, threads;

	staged_open(&bed, task, process);
	CHECK_EQ(hk__group_gpu_path(bed.groups[process]), HK__GPU_APART);
	call.stream = bed_stream(&bed, process, (int)process % 2);
	CHECK_EQ(hk_barrier(bed.groups[process], &call), HK_OK);
	CHECK_EQ(hk__group_gpu_path(bed.groups[process]), HK__GPU_STAGED);
	staged_try(&bed);
	bed_close(&bed);
	bed_open_on(&threads, 2, (size_t)1 << 20, 2);
	CHECK_EQ(hk__group_gpu_path(threads.groups[0]), HK__GPU_STAGED);
	staged_try(&threads);
	bed_close(&threads);
}

TEST(gpus_that_do_not_reach_each_other)
{
	setenv("HK_TEST_CUDA", "stand-in", 1);
	setenv("HK_STANDIN_PEER", "0", 1);
	task_run(&(struct task){ .n = 3,
				 .run = unreached,
				 .killed = HK_NONE,
				 .env = "HK_STANDIN_DEVICES=2" },
		 3);
}

TEST(one_wants_it_so)
{
	task_run(&(struct task){ .n = 3,
				 .run = staged,
				 .killed = HK_NONE,
				 .env_of_0 = "HOCKET_GPU=staged" },
		 3);
}

TEST(one_has_none)
{
	task_run(&(struct task){ .n = 3,
				 .run = staged,
				 .killed = HK_NONE,
				 .env_of_0 = "HOCKET_GPU=off" },
		 3);
}

/* ---- when one dies ---- */

/* Those who are left make a group of their own, and it works. */
static void go_on(struct bed *bed, uint32_t process, uint32_t left)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *rest;
	uint32_t one = 1, sum = 0;

	CHECK_EQ(hk_group_shrink(bed->groups[process], NULL, &rest), HK_OK);
	CHECK_EQ(hk_group_size(rest), left);
	hk_group_free(bed->groups[process]);
	bed->groups[process] = NULL;
	bed_to_device(bed->memory[process], &one, 4);
	char *at = (char *)(uintptr_t)bed->memory[process];
	opts.stream = bed->streams[process];
	CHECK_EQ(hk_allreduce(rest, at, at, 1, HK_TYPE_UINT32, HK_REDOP_SUM, &opts), HK_OK);
	CHECK_EQ(hk__cuda_get()->stream_wait(bed->streams[process]), HK__CU_SUCCESS);
	bed_to_host(&sum, bed->memory[process], 4);
	CHECK_EQ(sum, left);
	hk_group_free(rest);
}

/* What the others wait for on their devices ends, long before its time, and they go on. */
static void killed(const struct task *task, uint32_t process)
{
	struct bed_op op = { .want = { .coll = HK_COLL_ALLREDUCE,
				       .type = HK_TYPE_FP32,
				       .n = task->n,
				       .count = 100000 } };
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)4 << 20);
	bed_join(&bed, process, address, 0);
	bed_try(&bed, &op);
	if (process == task->killed)
		raise(SIGKILL);
	enum hk_status status = bed_call_rank(&bed, &op, process, UINT64_C(3600000000000));
	CHECK(status == HK_OK || status == HK_EPEER);
	bed_wait(&bed);
	CHECK_EQ(bed_call_rank(&bed, &op, process, 0), HK_EPEER);
	CHECK_HAS(hk_group_why(bed.groups[process]), "rank 1");
	go_on(&bed, process, task->n - 1);
}

TEST(one_is_killed)
{
	task_run(&(struct task){ .n = 3, .run = killed, .killed = 1 }, 3);
}

static void *kill_later(void *arg)
{
	const uint64_t *seed = arg;

	usleep((useconds_t)(*seed % 60000));
	raise(SIGKILL);
	return NULL;
}

/* In whatever it does then: kernels of many calls are on their way. */
static void killed_at_random(const struct task *task, uint32_t process)
{
	struct bed_op op = {
		.want = { .coll = HK_COLL_ALLREDUCE, .type = HK_TYPE_FP32, .n = task->n }
	};
	enum hk_status status = HK_OK;
	uint64_t seed = task->seed;
	pthread_t thread;
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)4 << 20);
	bed_join(&bed, process, address, 0);
	(void)test_random(&seed);
	if (process == task->killed)
		CHECK_EQ(pthread_create(&thread, NULL, kill_later, &seed), 0);
	for (uint32_t i = 0; status == HK_OK; i++) {
		op.want.count = i % 3 == 0 ? 60000 : i % 3 == 1 ? 50 : 3000;
		status = bed_call_rank(&bed, &op, process, UINT64_C(3600000000000));
		if (i % 8 == 7)
			bed_wait(&bed);
	}
	CHECK(status == HK_EPEER || status == HK_EREVOKED);
	bed_wait(&bed);
	go_on(&bed, process, task->n - 1);
}

TEST(killed_at_any_time)
{
	uint64_t seed = test_seed((uint64_t)getpid());

	for (uint32_t i = 0; i < 4; i++)
		task_run(&(struct task){ .n = 4,
					 .run = killed_at_random,
					 .killed = i,
					 .seed = seed + i },
			 4);
}

/* The same of messages: who wants one, and who has one that is too long to be left there. */
static void killed_in_messages(const struct task *task, uint32_t process)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct exchange exchange = { .bytes = 1000 };
	size_t bytes = (size_t)12 << 20;
	struct bed bed;

	bed_open_empty(&bed, task->n, bytes);
	bed_join(&bed, process, address, 0);
	exchange_fill(&bed, &exchange);
	exchange_batches(&bed, &exchange);
	exchange_check(&bed, &exchange);
	if (process == task->killed)
		raise(SIGKILL);
	opts.stream = bed.streams[process];
	opts.timeout_ns = UINT64_C(3600000000000);
	char *at = bed_at(&bed, process, 0);
	enum hk_status status =
		process ? hk_recv(bed.groups[process], at, 1, HK_TYPE_FP32, task->killed, &opts)
			: hk_send(bed.groups[process], at, bytes, HK_TYPE_INT8, task->killed,
				  &opts);
	CHECK(status == HK_OK || status == HK_EPEER);
	bed_wait(&bed);
	CHECK_EQ(hk_recv(bed.groups[process], at, 1, HK_TYPE_FP32, 0, &opts), HK_EPEER);
	CHECK_HAS(hk_group_why(bed.groups[process]), "rank 1");
	hk_group_free(bed.groups[process]);
}

TEST(one_is_killed_in_messages)
{
	task_run(&(struct task){ .n = 3, .run = killed_in_messages, .killed = 1 }, 3);
}

/* And who only does not come is named, at its time. */
static void late(const struct task *task, uint32_t process)
{
	struct bed_op op = { .want = { .coll = HK_COLL_ALLREDUCE,
				       .type = HK_TYPE_FP32,
				       .n = task->n,
				       .count = 100000 } };
	struct bed bed;

	bed_open_empty(&bed, task->n, (size_t)4 << 20);
	bed_join(&bed, process, address, 0);
	bed_try(&bed, &op);
	if (process == 0) {
		CHECK_EQ(bed_call_rank(&bed, &op, 0, 100 * 1000 * 1000), HK_OK);
		bed_wait(&bed);
		CHECK_EQ(bed_call_rank(&bed, &op, 0, 0), HK_ETIMEDOUT);
		CHECK_HAS(hk_group_why(bed.groups[0]), "waited for rank 1");
	} else {
		/* Until the other has given it up. */
		while (hk_barrier(bed.groups[1], NULL) == HK_OK)
			;
	}
	hk_group_free(bed.groups[process]);
}

TEST(one_does_not_come)
{
	task_run(&(struct task){ .n = 2, .run = late, .killed = HK_NONE }, 2);
}

/* ---- as users start them ---- */

TEST(hocket_run)
{
	const char *rank = getenv("HOCKET_RANK"), *size = getenv("HOCKET_SIZE");
	char self[4096] = "";
	struct bed bed;

	if (!rank) {
		CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
		execl(HOCKET, "hocket", "run", "-n", "3", self, "hocket_run", (char *)NULL);
		test_fail(__FILE__, __LINE__, "%s: %m", HOCKET);
	}
	CHECK(size);
	bed_open_empty(&bed, (uint32_t)atoi(size), (size_t)32 << 20);
	bed_join(&bed, (uint32_t)atoi(rank), NULL, 0);
	CHECK_EQ(hk__group_gpu_path(bed.groups[atoi(rank)]), HK__GPU_APART);
	colls_try(&bed);
	bed_close(&bed);
}
