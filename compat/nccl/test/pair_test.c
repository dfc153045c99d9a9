/* SPDX-License-Identifier: Apache-2.0 */
/* pair_test.c - ncclSend and ncclRecv: rings, to itself, many at once. */
#include "bed.h"

#define BIG (1 << 18) /* more than any buffer on the way */

static void ring_run(struct bed_rank *rank, bool device)
{
	int next = (rank->rank + 1) % rank->n, last = (rank->rank + rank->n - 1) % rank->n;
	int32_t *host = malloc(BIG * sizeof(*host));
	struct bed_memory memory;
	ncclComm_t comm;

	CHECK(host);
	bed_memory_open(&memory, device);
	void *out = bed_alloc(&memory, BIG * sizeof(*host));
	void *in = bed_alloc(&memory, BIG * sizeof(*host));
	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	for (int i = 0; i < BIG; i++)
		host[i] = rank->rank * BIG + i;
	bed_write(&memory, out, host, BIG * sizeof(*host));
	NCCL(ncclGroupStart());
	NCCL(ncclSend(out, BIG, ncclInt32, next, comm, memory.stream));
	NCCL(ncclRecv(in, BIG, ncclInt32, last, comm, memory.stream));
	NCCL(ncclGroupEnd());
	bed_read(&memory, host, in, BIG * sizeof(*host));
	for (int i = 0; i < BIG; i++)
		CHECK_EQ(host[i], last * BIG + i);
	NCCL(ncclCommDestroy(comm));
	bed_free(&memory, in);
	bed_free(&memory, out);
	bed_memory_close(&memory);
	free(host);
}

static void ring_rank(struct bed_rank *rank)
{
	ring_run(rank, false);
}

static void ring_rank_device(struct bed_rank *rank)
{
	ring_run(rank, true);
}

TEST(a_ring_of_threads)
{
	bed_threads(3, ring_rank, NULL);
}

TEST(a_ring_of_processes)
{
	bed_processes(4, ring_rank, NULL);
}

TEST(device_ring_of_threads)
{
	bed_threads(3, ring_rank_device, NULL);
}

TEST(device_ring_of_processes)
{
	bed_processes(4, ring_rank_device, NULL);
}

TEST(device_ring_by_host_memory)
{
	CHECK_EQ(setenv("NCCL_P2P_DISABLE", "1", 1), 0);
	bed_processes(3, ring_rank_device, NULL);
}

/* All to all by pairs, blocks of differing lengths, itself too, twice each. */

#define BLOCK 16

static int64_t sent(int from, int to, int k, int i)
{
	return i < from + to + 1 + k ? from * 1000 + to * 100 + k * 50 + i : 0;
}

static size_t place_of(int peer, int k)
{
	return (size_t)(peer * 2 + k) * BLOCK;
}

/* Sends on one stream, receives on another: they are one group all the same. */
static void all_pairs(const struct bed_rank *rank, int64_t *out, int64_t *in, ncclComm_t comm,
		      cudaStream_t sends, cudaStream_t receives)
{
	NCCL(ncclGroupStart());
	for (int peer = 0; peer < rank->n; peer++) {
		for (int k = 0; k < 2; k++)
			NCCL(ncclSend(out + place_of(peer, k), (size_t)(rank->rank + peer + 1 + k),
				      ncclInt64, peer, comm, sends));
	}
	for (int peer = rank->n - 1; peer >= 0; peer--) {
		for (int k = 0; k < 2; k++)
			NCCL(ncclRecv(in + place_of(peer, k), (size_t)(rank->rank + peer + 1 + k),
				      ncclInt64, peer, comm, receives));
	}
	NCCL(ncclGroupEnd());
}

static void all_run(struct bed_rank *rank, bool device)
{
	int64_t host[BED_RANKS_MAX * 2 * BLOCK] = { 0 };
	struct bed_memory memory, other;
	ncclComm_t comm;

	bed_memory_open(&memory, device);
	bed_memory_open(&other, device);
	int64_t *out = bed_alloc(&memory, sizeof(host)), *in = bed_alloc(&memory, sizeof(host));
	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	bed_write(&memory, in, host, sizeof(host));
	for (int at = 0; at < rank->n * 2 * BLOCK; at++)
		host[at] = sent(rank->rank, at / BLOCK / 2, at / BLOCK % 2, at % BLOCK);
	bed_write(&memory, out, host, sizeof(host));
	all_pairs(rank, out, in, comm, other.stream, memory.stream);
	bed_read(&memory, host, in, sizeof(host));
	for (int at = 0; at < rank->n * 2 * BLOCK; at++)
		CHECK_EQ(host[at], sent(at / BLOCK / 2, rank->rank, at / BLOCK % 2, at % BLOCK));
	NCCL(ncclCommFinalize(comm));
	NCCL(ncclCommDestroy(comm));
	bed_free(&memory, in);
	bed_free(&memory, out);
	bed_memory_close(&other);
	bed_memory_close(&memory);
}

static void all_rank(struct bed_rank *rank)
{
	all_run(rank, false);
}

static void all_rank_device(struct bed_rank *rank)
{
	all_run(rank, true);
}

TEST(all_to_all_by_threads)
{
	bed_threads(4, all_rank, NULL);
}

TEST(all_to_all_by_processes)
{
	bed_processes(3, all_rank, NULL);
}

TEST(device_all_to_all_by_threads)
{
	bed_threads(4, all_rank_device, NULL);
}

TEST(device_all_to_all_by_processes)
{
	bed_processes(3, all_rank_device, NULL);
}

static void alone_rank(struct bed_rank *rank)
{
	ncclComm_t comm;
	double x = 5, y = 0;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 0)
		NCCL(ncclSend(&x, 1, ncclDouble, 1, comm, NULL));
	else
		NCCL(ncclRecv(&y, 1, ncclDouble, 0, comm, NULL));
	CHECK(rank->rank == 0 || y == 5);
	NCCL(ncclCommDestroy(comm));
}

TEST(without_a_group)
{
	bed_processes(2, alone_rank, NULL);
}

TEST(to_itself_needs_both)
{
	ncclComm_t comm;
	char x = 1;

	NCCL(ncclCommInitAll(&comm, 1, NULL));
	CHECK_EQ(ncclSend(&x, 1, ncclChar, 0, comm, NULL), ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(comm), "in the same group");
	NCCL(ncclCommDestroy(comm));
}
