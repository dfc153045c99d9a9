/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_one_sided.cu - one-sided memory of ranks on one GPU (hocket/device.h), as threads of one
 * process or as processes that `hocket run` starts. bench/gpu-one-sided builds and runs it.
 *
 * Ping-pong: rank r and r + 1 put to each other with a signal, and wait for the other's; half
 * of a round is one way. Rounds are timed inside the kernel, by the GPU's clock. Large puts
 * go from rank 0 to 1, beside cudaMemcpyAsync of as many bytes in the same process.
 */
#include <hocket/device_ops.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <string>
#include <thread>
#include <vector>

#define CUDA(call) \
	do { \
		cudaError_t error = (call); \
		if (error != cudaSuccess) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
				cudaGetErrorString(error)); \
			exit(1); \
		} \
	} while (0)

static const size_t LARGE = (size_t)64 << 20, HEAP = 2 * LARGE + ((size_t)4 << 20);
static const int REPEATS = 5, LAUNCHES = 20;

enum scope { THREAD, WARP, BLOCK };
static const char *const scopes[] = { "thread", "warp", "block" };

struct rank {
	uint32_t number, n;
	struct hk_group *group;
	struct hk_device_heap *heap;
	struct hk_device_view view;
	cudaStream_t stream;
	size_t out, in, words, taken;
	uint64_t round;
	bool turns;	/* processes take turns: few rounds */
};

static void must(const struct rank *rank, enum hk_status status)
{
	if (status == HK_OK)
		return;
	fprintf(stderr, "rank %u: %s: %s\n", rank->number, hk_status_name(status),
		hk_group_why(rank->group));
	exit(1);
}

static void meet(const struct rank *rank)
{
	must(rank, hk_barrier(rank->group, NULL));
}

static double median(std::vector<double> all)
{
	std::sort(all.begin(), all.end());
	return all[all.size() / 2];
}

/* ---- kernels ---- */

__device__ static uint64_t now()
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

struct pingpong {
	struct hk_device_view view;
	size_t out, in, words, taken, bytes;
	uint32_t peer, first, warm, rounds;
	uint64_t round;		/* before */
	enum scope scope;
};

__device__ static bool pong(const struct pingpong *p, uint64_t round)
{
	if (p->scope == BLOCK)
		return hk_dev_wait_until_block(&p->view, p->words, HK_CMP_GE, round);
	if (p->scope == WARP)
		return hk_dev_wait_until_warp(&p->view, p->words, HK_CMP_GE, round);
	return hk_dev_wait_until(&p->view, p->words, HK_CMP_GE, round);
}

__device__ static void ping(const struct pingpong *p, uint64_t round)
{
	struct hk_dev_signal signal = { p->words, round, HK_AMO_SET };
	const char *from = p->view.own + p->out;

	if (p->scope == BLOCK)
		hk_dev_put_signal_block(&p->view, p->peer, p->in, from, p->bytes, signal);
	else if (p->scope == WARP)
		hk_dev_put_signal_warp(&p->view, p->peer, p->in, from, p->bytes, signal);
	else
		hk_dev_put_signal(&p->view, p->peer, p->in, from, p->bytes, signal);
}

__global__ void __launch_bounds__(1024) pingpong_run(const __grid_constant__ struct pingpong p)
{
	uint64_t start = 0;

	for (uint32_t i = 1; i <= p.warm + p.rounds; i++) {
		if (i == p.warm + 1)
			start = now();
		if (p.first)
			ping(&p, p.round + i);
		if (!pong(&p, p.round + i))
			return;
		if (!p.first)
			ping(&p, p.round + i);
	}
	if (threadIdx.x == 0)
		*(uint64_t *)(p.view.own + p.taken) = now() - start;
}

/* Each block puts its part of the bytes. */
__global__ void __launch_bounds__(1024)
	put_run(const __grid_constant__ struct hk_device_view view, uint32_t peer, size_t in,
		size_t out, size_t bytes, size_t word)
{
	size_t part = bytes / gridDim.x, at = blockIdx.x * part;
	struct hk_dev_signal signal = { word, 1, HK_AMO_ADD };

	hk_dev_put_signal_block(&view, peer, in + at, view.own + out + at, part, signal);
}

__global__ void barrier_run(const __grid_constant__ struct hk_device_view view, uint32_t rounds,
			    size_t taken)
{
	uint64_t start = 0;

	for (uint32_t i = 0; i < 10 + rounds; i++) {
		if (i == 10)
			start = now();
		if (!hk_dev_barrier_block(&view, 0))
			return;
	}
	if (threadIdx.x == 0)
		*(uint64_t *)(view.own + taken) = now() - start;
}

/* ---- measuring ---- */

/* Kernels are loaded before one waits for another: loading would wait for that. */
static void load_all()
{
	cudaFuncAttributes attributes;

	CUDA(cudaFuncGetAttributes(&attributes, pingpong_run));
	CUDA(cudaFuncGetAttributes(&attributes, put_run));
	CUDA(cudaFuncGetAttributes(&attributes, barrier_run));
}

static double taken(const struct rank *rank)
{
	uint64_t ns = 0;

	CUDA(cudaMemcpyAsync(&ns, rank->view.own + rank->taken, 8, cudaMemcpyDeviceToHost,
			     rank->stream));
	CUDA(cudaStreamSynchronize(rank->stream));
	return (double)ns;
}

/* Microseconds one way: the slowest pair, the median of some repeats. */
static double pingpong(struct rank *rank, size_t bytes, enum scope scope, bool near)
{
	uint32_t rounds = rank->turns ? 20 : 2000, warm = rank->turns ? 2 : 100;
	std::vector<double> all;

	for (int i = 0; i < (rank->turns ? 1 : REPEATS); i++) {
		struct pingpong p = { rank->view, rank->out, rank->in, rank->words, rank->taken,
				      bytes, rank->number ^ 1, !(rank->number & 1), warm, rounds,
				      rank->round, scope };
		float us, slowest;

		p.view.near = near;
		rank->round += warm + rounds;
		meet(rank);
		pingpong_run<<<1, scope == THREAD ? 1 : scope == WARP ? 32 : bytes > 1024 ? 1024 : 128,
			       0, rank->stream>>>(p);
		CUDA(cudaGetLastError());
		us = (float)(taken(rank) / 2e3 / rounds);
		must(rank, hk_allreduce(rank->group, &us, &slowest, 1, HK_TYPE_FP32, HK_REDOP_MAX,
					NULL));
		all.push_back(slowest);
	}
	return median(all);
}

static double barriers(struct rank *rank, bool near)
{
	uint32_t rounds = rank->turns ? 20 : 1000;
	struct hk_device_view view = rank->view;
	float us, slowest;

	view.near = near;
	meet(rank);
	barrier_run<<<1, 32, 0, rank->stream>>>(view, rounds, rank->taken);
	CUDA(cudaGetLastError());
	us = (float)(taken(rank) / 1e3 / rounds);
	must(rank, hk_allreduce(rank->group, &us, &slowest, 1, HK_TYPE_FP32, HK_REDOP_MAX, NULL));
	return slowest;
}

/* Seconds of one of some enqueued one behind the other. */
template <typename F> static double timed(const struct rank *rank, F fn)
{
	std::vector<double> all;
	cudaEvent_t start, stop;
	float ms;

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&stop));
	for (int i = 0; i < REPEATS + 2; i++) {
		CUDA(cudaEventRecord(start, rank->stream));
		for (int k = 0; k < LAUNCHES; k++)
			fn();
		CUDA(cudaEventRecord(stop, rank->stream));
		CUDA(cudaEventSynchronize(stop));
		CUDA(cudaEventElapsedTime(&ms, start, stop));
		if (i >= 2)
			all.push_back(ms / 1e3 / LAUNCHES);
	}
	CUDA(cudaEventDestroy(start));
	CUDA(cudaEventDestroy(stop));
	return median(all);
}

static double puts(const struct rank *rank, uint32_t blocks, uint32_t threads)
{
	return timed(rank, [&] {
		put_run<<<blocks, threads, 0, rank->stream>>>(rank->view, 1, rank->in, rank->out,
							      LARGE, rank->words + 8);
	});
}

static void large(struct rank *rank)
{
	static const uint32_t grids[][2] = { { 16, 1024 }, { 32, 1024 }, { 64, 512 }, { 64, 1024 },
					     { 128, 1024 } };
	std::vector<unsigned char> seen(LARGE);

	CUDA(cudaMemsetAsync(rank->view.own + rank->out, 40 + rank->number, LARGE, rank->stream));
	CUDA(cudaStreamSynchronize(rank->stream));
	meet(rank);
	if (rank->number == 0) {
		char *from, *to;

		CUDA(cudaMalloc(&from, LARGE));
		CUDA(cudaMalloc(&to, LARGE));
		CUDA(cudaMemset(from, 1, LARGE));
		double copy = timed(rank, [&] {
			CUDA(cudaMemcpyAsync(to, from, LARGE, cudaMemcpyDeviceToDevice,
					     rank->stream));
		});
		double host = timed(rank, [&] {
			must(rank, hk_device_put(rank->heap, 1, rank->in, rank->view.own + rank->out,
						 LARGE, rank->stream));
		});
		printf("  64 MiB: cudaMemcpyAsync %.0f GB/s, hk_device_put %.0f GB/s; kernels:\n",
		       LARGE / copy / 1e9, LARGE / host / 1e9);
		for (auto &grid : grids) {
			double s = puts(rank, grid[0], grid[1]);

			printf("    %3u blocks of %4u: %6.0f GB/s, %5.1f %% of the copy\n", grid[0],
			       grid[1], LARGE / s / 1e9, 100 * copy / s);
		}
		CUDA(cudaFree(from));
		CUDA(cudaFree(to));
	}
	meet(rank);
	CUDA(cudaMemcpyAsync(seen.data(), rank->view.own + rank->in, LARGE, cudaMemcpyDeviceToHost,
			     rank->stream));
	CUDA(cudaStreamSynchronize(rank->stream));
	for (size_t i = 0; rank->number == 1 && i < LARGE; i++) {
		if (seen[i] != 40) {
			fprintf(stderr, "byte %zu of a put of 64 MiB is wrong\n", i);
			exit(1);
		}
	}
}

/* By streams alone: what the host enqueues, one way. */
static double streams(struct rank *rank, size_t bytes)
{
	const uint32_t rounds = rank->turns ? 20 : 200;
	uint32_t peer = rank->number ^ 1;
	float ms = 0, slowest;
	cudaEvent_t start, stop;

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&stop));
	meet(rank);
	CUDA(cudaEventRecord(start, rank->stream));
	for (uint32_t i = 1; i <= rounds; i++) {
		if (rank->number & 1)
			must(rank, hk_device_wait(rank->heap, rank->words, rank->round + i,
						  rank->stream));
		must(rank, hk_device_put(rank->heap, peer, rank->in, rank->view.own + rank->out,
					 bytes, rank->stream));
		must(rank, hk_device_signal(rank->heap, peer, rank->words, rank->round + i,
					    HK_AMO_SET, rank->stream));
		if (!(rank->number & 1))
			must(rank, hk_device_wait(rank->heap, rank->words, rank->round + i,
						  rank->stream));
	}
	CUDA(cudaEventRecord(stop, rank->stream));
	CUDA(cudaEventSynchronize(stop));
	CUDA(cudaEventElapsedTime(&ms, start, stop));
	rank->round += rounds;
	must(rank, hk_allreduce(rank->group, &ms, &slowest, 1, HK_TYPE_FP32, HK_REDOP_MAX, NULL));
	return slowest * 1e3 / 2 / rounds;
}

/* ---- ranks ---- */

static void rank_run(struct rank *rank, const char *name)
{
	bool first = rank->number == 0;

	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking));
	load_all();
	must(rank, hk_device_heap_create(rank->group, HEAP, NULL, &rank->heap));
	must(rank, hk_device_heap_alloc(rank->heap, LARGE, 0, &rank->out));
	must(rank, hk_device_heap_alloc(rank->heap, LARGE, 0, &rank->in));
	must(rank, hk_device_heap_alloc(rank->heap, 64, 0, &rank->words));
	must(rank, hk_device_heap_alloc(rank->heap, 8, 0, &rank->taken));
	rank->view.size = sizeof(rank->view);
	must(rank, hk_device_heap_view(rank->heap, &rank->view));
	if (first)
		printf("\n%s: put with a signal, us one way, scope of the GPU (of the system)\n",
		       name);
	for (size_t bytes : { (size_t)8, (size_t)1 << 10, (size_t)64 << 10 }) {
		for (int scope = THREAD; scope <= BLOCK; scope++) {
			if (scope == THREAD && bytes > 1024)
				continue;
			double near = pingpong(rank, bytes, (enum scope)scope, true);
			double far = pingpong(rank, bytes, (enum scope)scope, false);

			if (first)
				printf("  %6zu B, %-6s %9.2f (%.2f)\n", bytes, scopes[scope], near,
				       far);
		}
	}
	double near = barriers(rank, true), far = barriers(rank, false);
	if (first)
		printf("  barrier of %u     %9.2f (%.2f)\n", rank->n, near, far);
	double host = streams(rank, 8);
	if (first)
		printf("  8 B on streams    %9.2f\n", host);
	fflush(stdout);
	large(rank);
	fflush(stdout);
	meet(rank);
	hk_device_heap_free(rank->heap);
	CUDA(cudaStreamDestroy(rank->stream));
	hk_group_free(rank->group);
}

static int threads_run(uint32_t n)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	std::vector<struct hk_group *> groups(n);
	std::vector<struct rank> ranks(n);
	std::vector<std::thread> threads;
	std::string name = std::to_string(n) + " threads";
	struct hk_why why;

	/*
	 * Streams that share a hardware queue wait for each other: more queues than streams. Not
	 * for processes: under MPS all clients take theirs from one pool, which 8 with 32 empty.
	 */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	CUDA(cudaSetDevice(0));
	CUDA(cudaFree(0));
	opts.timeout_ns = 60000000000ull;
	if (hk_group_threads(n, &opts, &why, groups.data()) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	for (uint32_t r = 0; r < n; r++) {
		ranks[r] = {};
		ranks[r].number = r;
		ranks[r].n = n;
		ranks[r].group = groups[r];
		threads.emplace_back([&ranks, &name, r] { rank_run(&ranks[r], name.c_str()); });
	}
	for (auto &thread : threads)
		thread.join();
	return 0;
}

static int process_run(const char *name, bool turns)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct rank rank = {};
	struct hk_why why;

	CUDA(cudaSetDevice(0));
	CUDA(cudaFree(0));
	opts.timeout_ns = 60000000000ull;
	if (hk_group_create(&opts, &why, &rank.group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	rank.number = hk_group_rank(rank.group);
	rank.n = hk_group_size(rank.group);
	rank.turns = turns;
	rank_run(&rank, name);
	return 0;
}

int main(int argc, char **argv)
{
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	if (argc == 3 && strcmp(argv[1], "threads") == 0)
		return threads_run((uint32_t)atoi(argv[2]));
	if (argc == 3 && strcmp(argv[1], "process") == 0)
		return process_run(argv[2], false);
	if (argc == 3 && strcmp(argv[1], "turns") == 0)
		return process_run(argv[2], true);
	if (argc == 2 && strcmp(argv[1], "look") == 0)
		return cudaSetDevice(0) != cudaSuccess || cudaFree(0) != cudaSuccess;
	fprintf(stderr, "usage: gpu-one-sided threads N | process TITLE | turns TITLE | look\n");
	return 2;
}
