/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_grouped.cu - small grouped sends beside small allreduces, of eight ranks on one
 * GPU: threads of one process, or processes that `hocket run` starts. bench/gpu-grouped
 * builds and runs it.
 *
 * As nccl-tests does it: calls are enqueued one behind the other, on a stream of each
 * rank, and the time is that until all of them are over. An alltoall of so many bytes
 * sends an eighth of them to each rank, in one batch.
 */
#include <hocket/group.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
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

static const int N = 8, WARM = 20, TIMES = 200, ROUNDS = 5;
static const uint64_t LEAST = 8, MOST = 1 << 20;

struct rank {
	int number;
	struct hk_group *group;
	cudaStream_t stream;
	char *in, *out;
};

static void must(const struct rank *rank, enum hk_status status)
{
	if (status == HK_OK)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", rank->number, hk_status_name(status),
		hk_group_why(rank->group));
	exit(1);
}

static void allreduce(const struct rank *rank, uint64_t bytes)
{
	struct hk_opts opts = HK_OPTS_INIT;

	opts.stream = rank->stream;
	must(rank, hk_allreduce(rank->group, rank->in, rank->out, bytes / 4, HK_TYPE_FP32,
				HK_REDOP_SUM, &opts));
}

static void grouped(const struct rank *rank, uint64_t bytes)
{
	uint64_t each = std::max<uint64_t>(bytes / N, 1);
	struct hk_opts opts = HK_OPTS_INIT;

	opts.stream = rank->stream;
	must(rank, hk_batch_begin(rank->group));
	for (int r = 0; r < N; r++) {
		must(rank, hk_send(rank->group, rank->in + r * each, each, HK_TYPE_UINT8, r, &opts));
		must(rank, hk_recv(rank->group, rank->out + r * each, each, HK_TYPE_UINT8, r, &opts));
	}
	must(rank, hk_batch_end(rank->group));
}

/* All ranks begin together: by memory of the host. */
static void meet(const struct rank *rank)
{
	must(rank, hk_barrier(rank->group, NULL));
}

/* Microseconds of one call: the slowest rank's, the median of some rounds. */
static double measure(const struct rank *rank, void (*call)(const struct rank *, uint64_t),
		      uint64_t bytes)
{
	std::vector<double> rounds;

	for (int round = 0; round < ROUNDS; round++) {
		float us, slowest;

		for (int i = 0; i < WARM; i++)
			call(rank, bytes);
		CUDA(cudaStreamSynchronize(rank->stream));
		meet(rank);
		auto start = std::chrono::steady_clock::now();
		for (int i = 0; i < TIMES; i++)
			call(rank, bytes);
		CUDA(cudaStreamSynchronize(rank->stream));
		us = std::chrono::duration<float, std::micro>(std::chrono::steady_clock::now() - start)
			     .count() / TIMES;
		must(rank, hk_allreduce(rank->group, &us, &slowest, 1, HK_TYPE_FP32, HK_REDOP_MAX,
					NULL));
		rounds.push_back(slowest);
	}
	std::sort(rounds.begin(), rounds.end());
	return rounds[rounds.size() / 2];
}

/* Of the last call: what rank r sent here is what it has for this rank. */
static void check(const struct rank *rank, uint64_t bytes)
{
	uint64_t each = std::max<uint64_t>(bytes / N, 1);
	std::vector<unsigned char> got(each * N);

	CUDA(cudaMemcpyAsync(got.data(), rank->out, got.size(), cudaMemcpyDeviceToHost,
			     rank->stream));
	CUDA(cudaStreamSynchronize(rank->stream));
	for (uint64_t i = 0; i < got.size(); i++) {
		if (got[i] != (unsigned char)(i / each + 1)) {
			fprintf(stderr, "rank %d: byte %llu of an alltoall of %llu is wrong\n",
				rank->number, (unsigned long long)i, (unsigned long long)bytes);
			exit(1);
		}
	}
}

/*
 * All ranks fill their input before one of them goes on. Nobody synchronises with the
 * device: in a process of several ranks that waits for kernels of the others, which may
 * be waiting for a kernel that this rank has not launched yet.
 */
static void fill(const struct rank *rank, int byte)
{
	CUDA(cudaMemsetAsync(rank->in, byte, MOST, rank->stream));
	CUDA(cudaStreamSynchronize(rank->stream));
	meet(rank);
}

static void rank_run(struct rank *rank, const char *name)
{
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&rank->in, MOST));
	CUDA(cudaMalloc(&rank->out, MOST));
	if (rank->number == 0)
		printf("%s\n%10s %14s %14s %8s\n", name, "bytes", "allreduce us", "alltoall us",
		       "ratio");
	for (uint64_t bytes = LEAST; bytes <= MOST; bytes *= 2) {
		fill(rank, 0);
		double reduce = measure(rank, allreduce, bytes);
		fill(rank, rank->number + 1);
		double all = measure(rank, grouped, bytes);
		check(rank, bytes);
		if (rank->number == 0) {
			printf("%10llu %14.2f %14.2f %8.2f%s\n", (unsigned long long)bytes, reduce,
			       all, all / reduce,
			       bytes <= 32 << 10 && all > 2 * reduce ? "  more than twice" : "");
			fflush(stdout);
		}
		meet(rank);
	}
}

static int threads_run()
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *groups[N];
	std::vector<std::thread> threads;
	struct rank ranks[N];
	struct hk_why why;

	/* Streams that share a hardware queue wait for each other: more queues than streams. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	CUDA(cudaSetDevice(0));
	CUDA(cudaFree(0));
	opts.timeout_ns = 30000000000ull;
	if (hk_group_threads(N, &opts, &why, groups) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	for (int r = 0; r < N; r++) {
		ranks[r] = { r, groups[r], NULL, NULL, NULL };
		threads.emplace_back([&ranks, r] {
			rank_run(&ranks[r], "8 threads");
			hk_group_free(ranks[r].group);
		});
	}
	for (auto &thread : threads)
		thread.join();
	return 0;
}

static int process_run(const char *name)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct rank rank = { 0, NULL, NULL, NULL, NULL };
	struct hk_why why;

	CUDA(cudaSetDevice(0));
	CUDA(cudaFree(0));
	opts.timeout_ns = 60000000000ull;
	if (hk_group_create(&opts, &why, &rank.group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	rank.number = (int)hk_group_rank(rank.group);
	rank_run(&rank, name);
	hk_group_free(rank.group);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "process") == 0)
		return process_run(argv[2]);
	if (argc == 2 && strcmp(argv[1], "threads") == 0)
		return threads_run();
	fprintf(stderr, "usage: gpu-grouped threads | process TITLE; see bench/gpu-grouped\n");
	return 2;
}
