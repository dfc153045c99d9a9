/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.cu - collectives of ranks that share one GPU, beside what it can do:
 * large ones beside a copy of device memory, small ones beside an exchange of
 * flags among as many blocks. bench/gpu builds and runs it.
 */
#include <hocket/group.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

static const int N = 8;
static cudaStream_t streams[N];
static struct hk_group *groups[N];
static char *memory[N];

static void must(int rank, enum hk_status status)
{
	if (status == HK_OK)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", rank, hk_status_name(status), hk_group_why(groups[rank]));
	exit(1);
}

static double median(std::vector<double> times)
{
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

/* All streams begin after the first has, and end before it goes on. */
static void fork_streams()
{
	cudaEvent_t event;

	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaEventRecord(event, streams[0]));
	for (int r = 1; r < N; r++)
		CUDA(cudaStreamWaitEvent(streams[r], event, 0));
	CUDA(cudaEventDestroy(event));
}

static void join_streams()
{
	for (int r = 1; r < N; r++) {
		cudaEvent_t event;

		CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
		CUDA(cudaEventRecord(event, streams[r]));
		CUDA(cudaStreamWaitEvent(streams[0], event, 0));
		CUDA(cudaEventDestroy(event));
	}
}

/* Seconds of one of `times` runs of fn, median of seven. */
template <typename F> static double measure(int times, F fn)
{
	std::vector<double> all;
	cudaEvent_t start, stop;
	float ms;

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&stop));
	for (int i = 0; i < 9; i++) {
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaEventRecord(start, streams[0]));
		fork_streams();
		for (int k = 0; k < times; k++)
			fn();
		join_streams();
		CUDA(cudaEventRecord(stop, streams[0]));
		CUDA(cudaEventSynchronize(stop));
		CUDA(cudaEventElapsedTime(&ms, start, stop));
		if (i >= 2)
			all.push_back(ms / 1e3 / times);
	}
	return median(all);
}

/* ---- large ---- */

static const char *const names[] = { "allreduce", "allgather", "reducescatter", "alltoall",
				     "broadcast", "reduce", "batch", "alltoallv" };
static const int COLLS = 8;

/* Sends and receives in a batch that are an alltoall of blocks of so many elements. */
static void batch(int r, char *in, char *out, uint64_t count, enum hk_type type,
		  const struct hk_opts *opts)
{
	uint64_t bytes = count * hk_type_size(type);

	must(r, hk_batch_begin(groups[r]));
	for (int k = 0; k < N; k++) {
		int to = (r + k) % N, from = (r + N - k) % N;

		must(r, hk_send(groups[r], in + to * bytes, count, type, to, opts));
		must(r, hk_recv(groups[r], out + from * bytes, count, type, from, opts));
	}
	must(r, hk_batch_end(groups[r]));
}

static void call(int coll, int r, uint64_t bytes, enum hk_type type, const char *algo)
{
	struct hk_opts opts = HK_OPTS_INIT;
	uint64_t count = bytes / hk_type_size(type);
	char *in = memory[r], *out = memory[r] + ((size_t)256 << 20);

	opts.stream = streams[r];
	opts.algo = algo;
	switch (coll) {
	case 0:
		return must(r, hk_allreduce(groups[r], in, out, count, type, HK_REDOP_SUM, &opts));
	case 1:
		return must(r, hk_allgather(groups[r], in, out, count / N, type, &opts));
	case 2:
		return must(r, hk_reducescatter(groups[r], in, out, count / N, type, HK_REDOP_SUM,
						&opts));
	case 3:
		return must(r, hk_alltoall(groups[r], in, out, count / N, type, &opts));
	case 4:
		return must(r, hk_broadcast(groups[r], in, out, count, type, 0, &opts));
	case 5:
		return must(r, hk_reduce(groups[r], in, out, count, type, HK_REDOP_SUM, 0, &opts));
	case 6:
		return batch(r, in, out, count / N, type, &opts);
	default: {
		std::vector<uint64_t> counts(N, count / N);

		return must(r, hk_alltoallv(groups[r], in, counts.data(), out, counts.data(), type,
					    &opts));
	}
	}
}

/* Bytes that must be read and written, all ranks together. */
static double must_move(int coll, double bytes)
{
	switch (coll) {
	case 0:
	case 3:
	case 6:
	case 7:
		return 2 * N * bytes;
	case 1:
	case 2:
		return N * bytes + bytes;
	default:
		return N * bytes + bytes;
	}
}

static double copy_speed()
{
	size_t bytes = (size_t)1 << 30;
	char *from, *to;

	CUDA(cudaMalloc(&from, bytes));
	CUDA(cudaMalloc(&to, bytes));
	CUDA(cudaMemset(from, 1, bytes));
	double s = measure(4, [&] {
		CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, streams[0]));
	});
	CUDA(cudaFree(from));
	CUDA(cudaFree(to));
	return 2.0 * bytes / s;
}

static void large(double copy, enum hk_type type)
{
	printf("\n8 ranks as threads, 256 MiB per rank, %s; a copy of device memory moves %.2f TB/s\n",
	       hk_type_name(type), copy / 1e12);
	printf("%-14s %10s %10s %10s %8s\n", "collective", "us", "limit us", "TB/s", "of copy");
	for (int coll = 0; coll < COLLS; coll++) {
		double bytes = (double)((size_t)256 << 20);
		double s = measure(4, [&] {
			for (int r = 0; r < N; r++)
				call(coll, r, (uint64_t)bytes, type, NULL);
		});
		double moved = must_move(coll, bytes);

		printf("%-14s %10.1f %10.1f %10.2f %7.1f%%\n", names[coll], s * 1e6,
		       moved / copy * 1e6, moved / s / 1e12, 100 * moved / s / copy);
	}
}

/* ---- small, in graphs ---- */

/* What no collective can do without: everybody tells everybody, and waits for all. */
__global__ void exchange(unsigned long long *flags, unsigned long long *epochs, int first)
{
	int me = first + blockIdx.x, n = N, t = threadIdx.x;
	unsigned long long epoch = epochs[me * 16] + 1, seen;

	if (t < n && t != me) {
		asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(&flags[(t * n + me) * 16]),
			     "l"(epoch)
			     : "memory");
		do
			asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
				     : "=l"(seen)
				     : "l"(&flags[(me * n + t) * 16])
				     : "memory");
		while (seen < epoch);
	}
	__syncthreads();
	if (t == 0)
		epochs[me * 16] = epoch;
}

__global__ void nothing()
{
}

template <typename F> static double in_graph(int times, F fn)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
	fork_streams();
	for (int k = 0; k < times; k++)
		fn();
	join_streams();
	CUDA(cudaStreamEndCapture(streams[0], &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	std::vector<double> all;
	cudaEvent_t start, stop;
	float ms;
	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&stop));
	for (int i = 0; i < 25; i++) {
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaEventRecord(start, streams[0]));
		CUDA(cudaGraphLaunch(exec, streams[0]));
		CUDA(cudaEventRecord(stop, streams[0]));
		CUDA(cudaEventSynchronize(stop));
		CUDA(cudaEventElapsedTime(&ms, start, stop));
		if (i >= 5)
			all.push_back(ms / 1e3 / times);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	return median(all);
}

static void small()
{
	const int times = 50;
	unsigned long long *flags, *epochs;

	CUDA(cudaMalloc(&flags, N * N * 16 * 8));
	CUDA(cudaMalloc(&epochs, N * 16 * 8));
	CUDA(cudaMemset(flags, 0, N * N * 16 * 8));
	CUDA(cudaMemset(epochs, 0, N * 16 * 8));
	double none = in_graph(times, [&] {
		for (int r = 0; r < N; r++)
			nothing<<<1, 64, 0, streams[r]>>>();
	});
	double one = in_graph(times, [&] { exchange<<<N, 64, 0, streams[0]>>>(flags, epochs, 0); });
	double eight = in_graph(times, [&] {
		for (int r = 0; r < N; r++)
			exchange<<<1, 64, 0, streams[r]>>>(flags, epochs, r);
	});
	printf("\nin a graph, %d in a row, us each\n", times);
	printf("%-44s %8.2f\n", "8 kernels that do nothing", none * 1e6);
	printf("%-44s %8.2f\n", "flags among 8 blocks of one kernel", one * 1e6);
	printf("%-44s %8.2f\n", "flags among 8 kernels of one block", eight * 1e6);
	for (uint64_t bytes = 8; bytes <= 1 << 20; bytes *= bytes < 1024 ? 128 : 4) {
		for (int coll : { 0, 1, 2, 3, 6 }) {
			if (coll && bytes < 64)
				continue;
			for (int r = 0; r < N; r++) /* once outside: programs are made */
				call(coll, r, bytes, HK_TYPE_FP32, NULL);
			CUDA(cudaDeviceSynchronize());
			double s = in_graph(times, [&] {
				for (int r = 0; r < N; r++)
					call(coll, r, bytes, HK_TYPE_FP32, NULL);
			});
			printf("%-20s %10llu B %25.2f %6.2f x flags\n", names[coll],
			       (unsigned long long)bytes, s * 1e6, s / eight);
		}
	}
	for (const char *algo : { "one-shot", "two-shot" }) {
		for (uint64_t bytes = 8 << 10; bytes <= 512 << 10; bytes *= 2) {
			for (int r = 0; r < N; r++)
				call(0, r, bytes, HK_TYPE_FP32, algo);
			CUDA(cudaDeviceSynchronize());
			double s = in_graph(times, [&] {
				for (int r = 0; r < N; r++)
					call(0, r, bytes, HK_TYPE_FP32, algo);
			});
			printf("allreduce %-10s %10llu B %25.2f\n", algo, (unsigned long long)bytes,
			       s * 1e6);
		}
	}
}

int main(int argc, char **argv)
{
	std::string what = argc > 1 ? argv[1] : "all";
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	cudaDeviceProp prop;
	struct hk_why why;

	CUDA(cudaSetDevice(0));
	CUDA(cudaGetDeviceProperties(&prop, 0));
	for (int r = 0; r < N; r++) {
		CUDA(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking));
		CUDA(cudaMalloc(&memory[r], (size_t)512 << 20));
		CUDA(cudaMemset(memory[r], r + 1, (size_t)512 << 20));
	}
	opts.timeout_ns = 10000000000ull;
	if (hk_group_threads(N, &opts, &why, groups) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	int driver = 0;
	CUDA(cudaDriverGetVersion(&driver));
	printf("%s, %d multiprocessors, CUDA driver %d.%d\n", prop.name, prop.multiProcessorCount,
	       driver / 1000, driver % 1000 / 10);
	if (what != "small") {
		double copy = copy_speed();
		large(copy, HK_TYPE_FP32);
		large(copy, HK_TYPE_BF16);
	}
	if (what != "large")
		small();
	CUDA(cudaDeviceSynchronize());
	std::vector<std::thread> threads;
	for (int r = 0; r < N; r++)
		threads.emplace_back([r] { hk_group_free(groups[r]); });
	for (auto &thread : threads)
		thread.join();
	return 0;
}
