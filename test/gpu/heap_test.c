/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_test.c - symmetric heaps in device memory: ranks as threads, as processes, and as
 * both; on streams and in kernels; what is refused; and what becomes of those who are left
 * when one is killed. On a GPU by `make test-gpu`, else on the stand-in.
 */
#include "gpu/bed.h"
#include "gpu/heap_ops.h"
#include "fabric/discover.h"
#include "group/device/heap.h"
#include "harness.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define BLOCKS 4u
#define ROOM ((size_t)1 << 17)
#define HEAP_BYTES ((size_t)8 << 20)

static const struct hk__cuda *cu;

#define CU(call) CHECK_EQ((call), HK__CU_SUCCESS)

#define HELD(group, status) \
	do { \
		enum hk_status held_ = (status); \
		if (held_ != HK_OK) \
			test_fail(__FILE__, __LINE__, "%s: %s", hk_status_name(held_), \
				  hk_group_why(group)); \
	} while (0)

/* ---- ranks ---- */

struct setting {
	uint32_t n;
	int devices; /* 0: 1 */
	bool ipc;
};

struct rank {
	struct hk_group *group;
	struct hk_device_heap *heap;
	hk__cu_stream stream;
	uint32_t number, n;
	int device;
	bool ipc;
	void (*run)(struct rank *rank);
};

static int (*current)(hk__cu_context context);
static int (*memory_info)(size_t *left, size_t *total);
static int (*image_load)(hk__cu_module *module, const char *path);

/* Before there are threads. */
static void driver_open(const struct setting *setting)
{
	/* Streams that share a hardware queue wait for each other: more queues than streams. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
	cu = bed_cuda();
	void *library = bed_driver();
	CHECK(hk__library_find(library, "cuCtxSetCurrent", &current));
	CHECK(hk__library_find(library, "cuMemGetInfo_v2", &memory_info));
	if (!bed_is_standin())
		CHECK(hk__library_find(library, "cuModuleLoad", &image_load));
	if (bed_devices() < setting->devices)
		SKIP("not so many GPUs");
}

static void device_use(int ordinal)
{
	hk__cu_context context;
	int device;

	CU(cu->device(&device, ordinal));
	CU(cu->context(&context, device));
	CU(current(context));
}

static void meet(const struct rank *rank)
{
	HELD(rank->group, hk_barrier(rank->group, NULL));
}

/* A rank, on a thread of its own: with a heap, a stream, and what the test does. */
static void *rank_run(void *arg)
{
	struct rank *rank = arg;
	struct hk_device_heap_opts opts = HK_DEVICE_HEAP_OPTS_INIT;

	device_use(rank->device);
	CU(cu->stream(&rank->stream, HK__CU_STREAM_NON_BLOCKING));
	opts.ipc = rank->ipc;
	HELD(rank->group, hk_device_heap_create(rank->group, HEAP_BYTES, &opts, &rank->heap));
	rank->run(rank);
	CU(cu->stream_wait(rank->stream));
	hk_device_heap_free(rank->heap);
	CU(cu->stream_free(rank->stream));
	hk_group_free(rank->group);
	return NULL;
}

static void ranks_run(struct rank *ranks, uint32_t count)
{
	pthread_t threads[BED_RANKS_MAX];

	for (uint32_t r = 0; r < count; r++)
		CHECK_EQ(pthread_create(&threads[r], NULL, rank_run, &ranks[r]), 0);
	for (uint32_t r = 0; r < count; r++)
		CHECK_EQ(pthread_join(threads[r], NULL), 0);
}

static void threads_run(const struct setting *setting, void (*run)(struct rank *rank))
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *groups[BED_RANKS_MAX];
	struct rank ranks[BED_RANKS_MAX];
	struct hk_why why;
	int devices = setting->devices ? setting->devices : 1;

	driver_open(setting);
	opts.timeout_ns = 20000 * MS;
	CHECK_EQ(hk_group_threads(setting->n, &opts, &why, groups), HK_OK);
	for (uint32_t r = 0; r < setting->n; r++)
		ranks[r] = (struct rank){ .group = groups[r],
					  .number = r,
					  .n = setting->n,
					  .device = (int)r % devices,
					  .ipc = setting->ipc,
					  .run = run };
	ranks_run(ranks, setting->n);
}

/* ---- processes ---- */

static char address[32];

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

static void *rank_join(void *arg)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct rank *rank = arg;
	struct hk_why why;

	opts.timeout_ns = 20000 * MS;
	opts.address = address;
	opts.rank = rank->number;
	opts.nranks = rank->n;
	if (hk_group_create(&opts, &why, &rank->group) != HK_OK)
		test_fail(__FILE__, __LINE__, "rank %u: %s", rank->number, why.text);
	return rank_run(rank);
}

static void process_run(const struct setting *setting, uint32_t process, uint32_t each,
			void (*run)(struct rank *rank))
{
	struct rank ranks[BED_RANKS_MAX];
	pthread_t threads[BED_RANKS_MAX];
	int devices = setting->devices ? setting->devices : 1;

	driver_open(setting);
	for (uint32_t i = 0; i < each; i++) {
		uint32_t r = process * each + i;

		ranks[i] = (struct rank){ .number = r,
					  .n = setting->n,
					  .device = (int)r % devices,
					  .ipc = setting->ipc,
					  .run = run };
		CHECK_EQ(pthread_create(&threads[i], NULL, rank_join, &ranks[i]), 0);
	}
	for (uint32_t i = 0; i < each; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	exit(0);
}

/* killed: the process that does not end by itself; HK_NONE: none. */
static void processes_run(const struct setting *setting, uint32_t each, uint32_t killed,
			  void (*run)(struct rank *rank))
{
	uint32_t processes = setting->n / each;
	bool skipped = false, failed = false;
	pid_t pids[BED_RANKS_MAX];

	address_find();
	fflush(stdout);
	for (uint32_t p = 0; p < processes; p++) {
		pids[p] = fork();
		CHECK(pids[p] >= 0);
		if (pids[p] == 0)
			process_run(setting, p, each, run);
	}
	for (uint32_t p = 0; p < processes; p++) {
		int status;

		CHECK_EQ(waitpid(pids[p], &status, 0), pids[p]);
		if (p == killed)
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

/* ---- kernels ---- */

/* The tests' own, or the stand-in's, whatever image it is given. */
static hk__cu_function kernel_load(hk__cu_module *module)
{
	hk__cu_function function;

	if (bed_is_standin()) {
		CU(cu->module(module, hk__cuda_image()));
	} else {
#ifdef HEAP_IMAGE
		CU(image_load(module, HEAP_IMAGE));
#else
		SKIP("built without GPU code");
#endif
	}
	CU(cu->function(&function, *module, "hk_heap_run"));
	return function;
}

static void call_launch(const struct rank *rank, hk__cu_function function,
			const struct heap_call *call)
{
	struct heap_call copy = *call;
	void *params[] = { &copy };

	CU(cu->launch(function, BLOCKS, 1, 1, 128, 1, 1, 0, rank->stream, params, NULL));
}

static uint64_t word_read(const struct rank *rank, uint64_t offset)
{
	uint64_t word = 0;

	HELD(rank->group,
	     hk_device_get(rank->heap, rank->number, offset, &word, sizeof(word), rank->stream));
	CU(cu->stream_wait(rank->stream));
	return word;
}

/* Zeroed: nobody writes there yet, and nobody begins before all have done so. */
static void call_prepare(const struct rank *rank, struct heap_call *call)
{
	size_t bytes = BLOCKS * HEAP_WORDS * sizeof(uint64_t);

	CU(cu->set((hk__cu_ptr)(uintptr_t)rank->heap->view.own + call->words, 0, bytes,
		   rank->stream));
	CU(cu->stream_wait(rank->stream));
	meet(rank);
}

static void call_run(const struct rank *rank, hk__cu_function function, struct heap_call *call)
{
	call_prepare(rank, call);
	call_launch(rank, function, call);
	CU(cu->stream_wait(rank->stream));
	meet(rank);
	if (word_read(rank, call->errors) != 0)
		test_fail(__FILE__, __LINE__,
			  "rank %u: %llu errors: what %u, scope %u, %llu bytes off by %u",
			  rank->number, (unsigned long long)word_read(rank, call->errors),
			  call->what, call->scope, (unsigned long long)call->bytes, call->skew);
}

static void call_init(const struct rank *rank, struct heap_call *call)
{
	size_t data, words, errors;

	*call = (struct heap_call){ .view = { .size = sizeof(call->view) }, .room = ROOM };
	CHECK_EQ(hk_device_heap_view(rank->heap, &call->view), HK_OK);
	HELD(rank->group, hk_device_heap_alloc(rank->heap, BLOCKS * HEAP_PARTS * ROOM, 0, &data));
	HELD(rank->group, hk_device_heap_alloc(rank->heap, BLOCKS * HEAP_WORDS * 8, 0, &words));
	HELD(rank->group, hk_device_heap_alloc(rank->heap, 8, 8, &errors));
	call->data = data;
	call->words = words;
	call->errors = errors;
	/* What is handed out first is as it was made. */
	CHECK_EQ(word_read(rank, words), 0);
	CHECK_EQ(word_read(rank, errors), 0);
}

static void atomics_try(const struct rank *rank, hk__cu_function function, struct heap_call *call)
{
	uint64_t each = (uint64_t)rank->n * BLOCKS * call->rounds, or_ = 0;

	call->what = HEAP_ATOMICS;
	call_prepare(rank, call);
	if (rank->number == 0)
		CU(cu->set((hk__cu_ptr)(uintptr_t)rank->heap->view.own + call->words + 40, 0xff, 8,
			   rank->stream));
	CU(cu->stream_wait(rank->stream));
	meet(rank);
	call_launch(rank, function, call);
	CU(cu->stream_wait(rank->stream));
	meet(rank);
	CHECK_EQ(word_read(rank, call->errors), 0);
	if (rank->number == 0) {
		for (uint32_t r = 0; r < rank->n; r++)
			or_ |= UINT64_C(1) << (8 * (r % 8));
		CHECK_EQ(word_read(rank, call->words), 3 * each);
		CHECK_EQ(word_read(rank, call->words + 8), 5 * each);
		CHECK_EQ(word_read(rank, call->words + 16),
			 BLOCKS * call->rounds % 2 ? (UINT64_C(1) << rank->n) - 1 : 0);
		CHECK_EQ(word_read(rank, call->words + 24), each);
		CHECK_EQ(word_read(rank, call->words + 32), or_);
		CHECK_EQ(word_read(rank, call->words + 40), ~((UINT64_C(1) << rank->n) - 1));
	}
	meet(rank);
}

static void kernels_try(struct rank *rank)
{
	static const uint64_t sizes[] = { 8, 1, 0, 100, 4096, 65521, 100000 };
	hk__cu_module module;
	hk__cu_function function = kernel_load(&module);
	struct heap_call call;

	call_init(rank, &call);
	for (uint32_t scope = 0; scope < HEAP_SCOPES; scope++) {
		call.scope = scope;
		call.rounds = 5;
		call.what = HEAP_RING;
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			call.bytes = sizes[i];
			call.skew = (uint32_t)(5 * i % 16);
			call_run(rank, function, &call);
		}
		call.what = HEAP_BARRIER;
		call.rounds = 20;
		call_run(rank, function, &call);
		atomics_try(rank, function, &call);
		/* Without the shorter way for one GPU. */
		call.view.near = !call.view.near && rank->heap->near;
	}
	CU(cu->module_free(module));
}

/* ---- on streams ---- */

#define STREAM_ROUNDS 20u

/* Each sends to the right: data, then a signal; and waits for what comes from the left. */
static void streams_try(struct rank *rank)
{
	uint32_t right = (rank->number + 1) % rank->n,
		 left = (rank->number + rank->n - 1) % rank->n;
	unsigned char bytes[5000], seen[5000];
	struct hk_group *group = rank->group;
	size_t in, words;

	HELD(group, hk_device_heap_alloc(rank->heap, sizeof(bytes), 0, &in));
	HELD(group, hk_device_heap_alloc(rank->heap, 16, 8, &words));
	for (uint32_t round = 1; round <= STREAM_ROUNDS; round++) {
		enum hk_amo op = round % 2 ? HK_AMO_SET : HK_AMO_ADD;

		memset(bytes, (int)(rank->number + round), sizeof(bytes));
		HELD(group,
		     hk_device_put(rank->heap, right, in, bytes, sizeof(bytes), rank->stream));
		HELD(group, hk_device_signal(rank->heap, right, words, op == HK_AMO_SET ? round : 1,
					     op, rank->stream));
		HELD(group, hk_device_wait(rank->heap, words, round, rank->stream));
		/* A copy to memory that can be paged waits in the driver, and others with it. */
		CU(cu->stream_wait(rank->stream));
		HELD(group,
		     hk_device_get(rank->heap, rank->number, in, seen, sizeof(seen), rank->stream));
		CU(cu->stream_wait(rank->stream));
		for (size_t i = 0; i < sizeof(seen); i++)
			CHECK_EQ(seen[i], (unsigned char)(left + round));
		HELD(group, hk_device_signal(rank->heap, left, words + 8, round, HK_AMO_SET,
					     rank->stream));
		HELD(group, hk_device_wait(rank->heap, words + 8, round, rank->stream));
		CU(cu->stream_wait(rank->stream));
	}
	meet(rank);
}

/* ---- places ---- */

static void places_try(struct rank *rank)
{
	const struct hk_device_heap *heap = rank->heap;
	struct hk_device_view view = { .size = sizeof(view) };
	size_t a, b, c, again;

	CHECK_EQ(hk_device_heap_view(heap, &view), HK_OK);
	CHECK_EQ(view.rank, rank->number);
	CHECK_EQ(view.n, rank->n);
	for (uint32_t r = 0; r < rank->n; r++) {
		char *at = hk_device_heap_ptr(heap, r, 4096);
		int device;

		CHECK(at && hk__cuda_memory(at, &device));
		if (!rank->ipc)
			CHECK(at == view.base + r * view.stride + 4096 && !view.bases);
	}
	CHECK(hk_device_heap_ptr(heap, rank->number, 0) == hk_device_heap_base(heap));
	CHECK(!hk_device_heap_ptr(heap, rank->n, 0));
	CHECK(!hk_device_heap_ptr(heap, 0, hk_device_heap_bytes(heap)));
	HELD(rank->group, hk_device_heap_alloc(rank->heap, 1000, 0, &a));
	HELD(rank->group, hk_device_heap_alloc(rank->heap, 1, 1, &b));
	HELD(rank->group, hk_device_heap_alloc(rank->heap, 3000000, (size_t)1 << 20, &c));
	CHECK(a && a % 256 == 0 && b >= a + 1000 && c % ((size_t)1 << 20) == 0);
	CHECK(hk_device_heap_release(rank->heap, a));
	CHECK(!hk_device_heap_release(rank->heap, a));
	HELD(rank->group, hk_device_heap_alloc(rank->heap, 900, 0, &again));
	CHECK_EQ(again, a);
	CHECK_EQ(hk_device_heap_alloc(rank->heap, HEAP_BYTES, 0, &again), HK_ELIMIT);
	CHECK_EQ(hk_device_heap_alloc(rank->heap, 0, 0, &again), HK_EINVAL);
	CHECK_EQ(hk_device_heap_alloc(rank->heap, 8, 24, &again), HK_EINVAL);
	CHECK_EQ(hk_device_put(rank->heap, rank->n, 0, &view, 8, rank->stream), HK_EINVAL);
	CHECK_EQ(hk_device_put(rank->heap, 0, hk_device_heap_bytes(heap) - 7, &view, 8,
			       rank->stream),
		 HK_EINVAL);
	CHECK_EQ(hk_device_signal(rank->heap, 0, 4, 1, HK_AMO_SET, rank->stream), HK_EINVAL);
	CHECK_EQ(hk_device_signal(rank->heap, 0, 8, 1, HK_AMO_XOR, rank->stream), HK_EINVAL);
	CHECK_EQ(hk_group_state(rank->group), HK_OK);
}

static void all_of_it(struct rank *rank)
{
	places_try(rank);
	streams_try(rank);
	kernels_try(rank);
}

TEST(one_rank)
{
	threads_run(&(struct setting){ .n = 1 }, all_of_it);
}

TEST(two_threads)
{
	threads_run(&(struct setting){ .n = 2 }, all_of_it);
}

TEST(four_threads)
{
	threads_run(&(struct setting){ .n = 4 }, all_of_it);
}

TEST(threads_without_a_range)
{
	threads_run(&(struct setting){ .n = 3, .ipc = true }, all_of_it);
}

TEST(threads_on_two_gpus)
{
	setenv("HK_STANDIN_DEVICES", "2", 1);
	threads_run(&(struct setting){ .n = 4, .devices = 2 }, all_of_it);
}

TEST(two_processes)
{
	processes_run(&(struct setting){ .n = 2 }, 1, HK_NONE, all_of_it);
}

TEST(eight_processes)
{
	processes_run(&(struct setting){ .n = 8 }, 1, HK_NONE, all_of_it);
}

TEST(two_processes_of_two_threads)
{
	processes_run(&(struct setting){ .n = 4 }, 2, HK_NONE, all_of_it);
}

TEST(processes_by_ipc)
{
	processes_run(&(struct setting){ .n = 3, .ipc = true }, 1, HK_NONE, all_of_it);
}

TEST(two_processes_of_two_threads_by_ipc)
{
	processes_run(&(struct setting){ .n = 4, .ipc = true }, 2, HK_NONE, all_of_it);
}

TEST(processes_on_two_gpus)
{
	setenv("HK_STANDIN_DEVICES", "2", 1);
	processes_run(&(struct setting){ .n = 4, .devices = 2 }, 1, HK_NONE, all_of_it);
}

/* A driver that maps no memory. */
TEST(processes_without_mapping)
{
	if (getenv("HK_TEST_CUDA"))
		SKIP("for the stand-in");
	setenv("HK_STANDIN_MAP", "0", 1);
	processes_run(&(struct setting){ .n = 2, .ipc = true }, 1, HK_NONE, all_of_it);
}

/* ---- when ranks are lost ---- */

/* The last is killed while the others wait for it: in kernels, and on streams. */
static void killed_try(struct rank *rank)
{
	hk__cu_module module;
	hk__cu_function function = kernel_load(&module);
	hk__cu_stream stream;
	struct heap_call call;

	call_init(rank, &call);
	call.what = HEAP_STUCK;
	call.scope = HEAP_BLOCK;
	CU(cu->stream(&stream, HK__CU_STREAM_NON_BLOCKING));
	meet(rank);
	if (rank->number == rank->n - 1)
		raise(SIGKILL);
	HELD(rank->group, hk_device_wait(rank->heap, call.words + 7 * 8, 3, stream));
	HELD(rank->group, hk_device_wait(rank->heap, call.words + 7 * 8, 1, stream));
	call_launch(rank, function, &call);
	CU(cu->stream_wait(rank->stream));
	CU(cu->stream_wait(stream));
	CHECK_EQ(hk_group_state(rank->group), HK_EPEER);
	CHECK_EQ(hk_device_wait(rank->heap, call.words, 1, stream), HK_EPEER);
	CHECK_EQ(hk_device_put(rank->heap, 0, call.data, &call, 8, stream), HK_EPEER);
	CU(cu->stream_free(stream));
	CU(cu->module_free(module));
}

TEST(killed_while_others_wait)
{
	processes_run(&(struct setting){ .n = 3 }, 1, 2, killed_try);
}

TEST(killed_while_others_wait_by_ipc)
{
	processes_run(&(struct setting){ .n = 2, .ipc = true }, 1, 1, killed_try);
}

/* One never comes to the second heap: the others' create fails, and nothing hangs. */
static void second_try(struct rank *rank)
{
	struct hk_device_heap *second = NULL;

	meet(rank);
	if (rank->number == 1) {
		usleep(20000);
		raise(SIGKILL);
	}
	CHECK_EQ(hk_device_heap_create(rank->group, 1 << 20, NULL, &second), HK_EPEER);
	CHECK(!second);
}

TEST(killed_before_a_heap)
{
	processes_run(&(struct setting){ .n = 3 }, 1, 1, second_try);
}

/* ---- what is refused ---- */

static void refused_try(struct rank *rank)
{
	struct hk_device_heap_opts opts = HK_DEVICE_HEAP_OPTS_INIT;
	struct hk_device_heap *heap = NULL;

	CHECK_EQ(hk_device_heap_create(rank->group, 0, NULL, &heap), HK_EINVAL);
	CHECK_EQ(hk_device_heap_create(rank->group, rank->number ? 4096 : 8192, NULL, &heap),
		 HK_EMISMATCH);
	CHECK(strstr(hk_group_why(rank->group), "rank 1"));
	/* More than there is: on all ranks. */
	opts.ipc = rank->ipc;
	CHECK_EQ(hk_device_heap_create(rank->group, (size_t)1 << 39, &opts, &heap), HK_ENOMEM);
	CHECK(strstr(hk_group_why(rank->group), "rank 0"));
	CHECK_EQ(hk_group_state(rank->group), HK_OK);
	/* The group goes on, and has more than one. */
	HELD(rank->group, hk_device_heap_create(rank->group, 5000, NULL, &heap));
	hk_device_heap_free(heap);
}

TEST(refused_by_threads)
{
	threads_run(&(struct setting){ .n = 2 }, refused_try);
}

TEST(refused_by_processes)
{
	processes_run(&(struct setting){ .n = 2 }, 1, HK_NONE, refused_try);
}

TEST(refused_by_ipc)
{
	processes_run(&(struct setting){ .n = 2, .ipc = true }, 1, HK_NONE, refused_try);
}

/* One rank has no memory left when the other has. */
static void one_refuses(struct rank *rank)
{
	struct hk_device_heap *heap = NULL;

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hk_device_heap_create(rank->group, (size_t)48 << 20, NULL, &heap),
			 HK_ENOMEM);
		CHECK(strstr(hk_group_why(rank->group), ": cuMemCreate"));
	}
	HELD(rank->group, hk_device_heap_create(rank->group, (size_t)1 << 20, NULL, &heap));
	hk_device_heap_free(heap);
}

TEST(one_of_all_refuses)
{
	if (getenv("HK_TEST_CUDA"))
		SKIP("for the stand-in");
	/* Of one process: two heaps of 8 MiB and half of what is asked for. */
	setenv("HK_STANDIN_MEMORY", "90", 1);
	threads_run(&(struct setting){ .n = 2 }, one_refuses);
}

/* ---- nothing is left ---- */

static size_t memory_left(void)
{
	size_t left, total;

	CU(memory_info(&left, &total));
	return left;
}

static uint32_t fds_open(void)
{
	uint32_t count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void nothing(struct rank *rank)
{
	(void)rank;
}

TEST(nothing_is_left)
{
	driver_open(&(struct setting){ .n = 3 });
	if (!bed_is_standin())
		SKIP("for the stand-in");
	threads_run(&(struct setting){ .n = 3, .ipc = true }, nothing);
	size_t left = memory_left();
	uint32_t fds = fds_open();
	for (int i = 0; i < 4; i++) {
		threads_run(&(struct setting){ .n = 3, .ipc = i % 2 }, nothing);
		CHECK_EQ(memory_left(), left);
		CHECK_EQ(fds_open(), fds);
	}
}
