/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_nvshmem.cu - what gpu_one_sided.cu measures, by NVSHMEM, of processes on one GPU that
 * `hocket run` starts: they exchange its unique id by Hocket. bench/gpu-one-sided builds
 * it where the headers and the libraries are found.
 */
#include <hocket/group.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>
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

static const size_t LARGE = (size_t)64 << 20;
static const int REPEATS = 5, LAUNCHES = 20, ROUNDS = 2000, WARM = 100;

static struct hk_group *group;
static cudaStream_t stream;

static void must(enum hk_status status)
{
	if (status == HK_OK)
		return;
	fprintf(stderr, "%s: %s\n", hk_status_name(status), hk_group_why(group));
	exit(1);
}

static double median(std::vector<double> all)
{
	std::sort(all.begin(), all.end());
	return all[all.size() / 2];
}

__device__ static uint64_t now()
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

__global__ void pingpong_run(char *in, char *out, uint64_t *word, uint64_t *taken, size_t bytes,
			     int peer, bool first, uint64_t round, int scope)
{
	uint64_t start = 0;

	for (int i = 1; i <= WARM + ROUNDS; i++) {
		if (i == WARM + 1)
			start = now();
		for (int turn = 0; turn < 2; turn++) {
			if ((turn == 0) == first) {
				if (scope == 2)
					nvshmemx_putmem_signal_nbi_block(in, out, bytes, word, round + i,
									 NVSHMEM_SIGNAL_SET, peer);
				else if (scope == 1)
					nvshmemx_putmem_signal_nbi_warp(in, out, bytes, word, round + i,
									NVSHMEM_SIGNAL_SET, peer);
				else
					nvshmem_putmem_signal_nbi(in, out, bytes, word, round + i,
								  NVSHMEM_SIGNAL_SET, peer);
			} else {
				if (threadIdx.x == 0)
					nvshmem_signal_wait_until(word, NVSHMEM_CMP_GE, round + i);
				__syncthreads();
			}
		}
	}
	if (threadIdx.x == 0)
		*taken = now() - start;
}

__global__ void __launch_bounds__(1024) put_run(char *in, char *out, size_t bytes, int peer)
{
	size_t part = bytes / gridDim.x, at = blockIdx.x * part;

	nvshmemx_putmem_block(in + at, out + at, part, peer);
}

/* Microseconds one way, of the slowest pair. */
static double pingpong(char *in, char *out, uint64_t *word, uint64_t *taken, size_t bytes, int me,
		       uint64_t *round, int scope)
{
	std::vector<double> all;

	for (int i = 0; i < REPEATS; i++) {
		uint64_t ns = 0;
		float us, slowest;

		must(hk_barrier(group, NULL));
		pingpong_run<<<1, scope == 0 ? 1 : scope == 1 ? 32 : bytes > 1024 ? 1024 : 128, 0,
			       stream>>>(in, out, word, taken, bytes, me ^ 1, !(me & 1), *round,
					 scope);
		CUDA(cudaGetLastError());
		*round += WARM + ROUNDS;
		CUDA(cudaMemcpyAsync(&ns, taken, 8, cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		us = (float)(ns / 2e3 / ROUNDS);
		must(hk_allreduce(group, &us, &slowest, 1, HK_TYPE_FP32, HK_REDOP_MAX, NULL));
		all.push_back(slowest);
	}
	return median(all);
}

static double puts(char *in, char *out, uint32_t blocks, uint32_t threads)
{
	std::vector<double> all;
	cudaEvent_t start, stop;
	float ms;

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&stop));
	for (int i = 0; i < REPEATS + 2; i++) {
		CUDA(cudaEventRecord(start, stream));
		for (int k = 0; k < LAUNCHES; k++)
			put_run<<<blocks, threads, 0, stream>>>(in, out, LARGE, 1);
		CUDA(cudaEventRecord(stop, stream));
		CUDA(cudaEventSynchronize(stop));
		CUDA(cudaEventElapsedTime(&ms, start, stop));
		if (i >= 2)
			all.push_back(ms / 1e3 / LAUNCHES);
	}
	return median(all);
}

int main(int argc, char **argv)
{
	static const char *const scopes[] = { "thread", "warp", "block" };
	nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
	nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_why why;
	uint64_t round = 0;

	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	CUDA(cudaSetDevice(0));
	CUDA(cudaFree(0));
	opts.timeout_ns = 60000000000ull;
	if (hk_group_create(&opts, &why, &group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	int me = (int)hk_group_rank(group), n = (int)hk_group_size(group);
	if (me == 0 && nvshmemx_get_uniqueid(&id) != 0)
		return 1;
	must(hk_broadcast(group, &id, &id, sizeof(id), HK_TYPE_UINT8, 0, NULL));
	if (nvshmemx_set_attr_uniqueid_args(me, n, &id, &attr) != 0 ||
	    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) != 0)
		return 1;
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	char *in = (char *)nvshmem_malloc(LARGE), *out = (char *)nvshmem_malloc(LARGE);
	uint64_t *word = (uint64_t *)nvshmem_calloc(1, 8), *taken = (uint64_t *)nvshmem_malloc(8);
	if (!in || !out || !word || !taken)
		return 1;
	if (me == 0)
		printf("\nNVSHMEM %d.%d.%d, %s: put with a signal, us one way\n",
		       NVSHMEM_VENDOR_MAJOR_VERSION, NVSHMEM_VENDOR_MINOR_VERSION,
		       NVSHMEM_VENDOR_PATCH_VERSION, argc > 1 ? argv[1] : "");
	for (size_t bytes : { (size_t)8, (size_t)1 << 10, (size_t)64 << 10 }) {
		for (int scope = 0; scope < 3; scope++) {
			if (scope == 0 && bytes > 1024)
				continue;
			double us = pingpong(in, out, word, taken, bytes, me, &round, scope);

			if (me == 0)
				printf("  %6zu B, %-6s %9.2f\n", bytes, scopes[scope], us);
		}
	}
	must(hk_barrier(group, NULL));
	if (me == 0) {
		for (uint32_t blocks : { 16u, 32u, 64u, 128u })
			printf("    %3u blocks of 1024: %6.0f GB/s of 64 MiB\n", blocks,
			       LARGE / puts(in, out, blocks, 1024) / 1e9);
		fflush(stdout);
	}
	must(hk_barrier(group, NULL));
	nvshmem_finalize();
	hk_group_free(group);
	return 0;
}
