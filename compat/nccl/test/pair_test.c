/* SPDX-License-Identifier: Apache-2.0 */
/* pair_test.c - ncclSend and ncclRecv: rings, to itself, many at once. */
#include "bed.h"

#define BIG (1 << 18) /* more than any buffer on the way */

static void ring_rank(struct bed_rank *rank)
{
	int next = (rank->rank + 1) % rank->n, last = (rank->rank + rank->n - 1) % rank->n;
	int32_t *out = malloc(BIG * sizeof(*out)), *in = malloc(BIG * sizeof(*in));
	ncclComm_t comm;

	CHECK(in && out);
	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	for (int i = 0; i < BIG; i++)
		out[i] = rank->rank * BIG + i;
	NCCL(ncclGroupStart());
	NCCL(ncclSend(out, BIG, ncclInt32, next, comm, NULL));
	NCCL(ncclRecv(in, BIG, ncclInt32, last, comm, NULL));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < BIG; i++)
		CHECK_EQ(in[i], last * BIG + i);
	NCCL(ncclCommDestroy(comm));
	free(in);
	free(out);
}

TEST(a_ring_of_threads)
{
	bed_threads(3, ring_rank, NULL);
}

TEST(a_ring_of_processes)
{
	bed_processes(4, ring_rank, NULL);
}

/* All to all by pairs, blocks of differing lengths, itself too, twice each. */
static void all_rank(struct bed_rank *rank)
{
	int n = rank->n, me = rank->rank;
	int64_t out[BED_RANKS_MAX][2][16], in[BED_RANKS_MAX][2][16];
	ncclComm_t comm;

	NCCL(ncclCommInitRank(&comm, n, rank->id, me));
	memset(in, 0, sizeof(in));
	NCCL(ncclGroupStart());
	for (int peer = 0; peer < n; peer++) {
		for (int k = 0; k < 2; k++) {
			for (int i = 0; i < 16; i++)
				out[peer][k][i] = me * 1000 + peer * 100 + k * 50 + i;
			NCCL(ncclSend(out[peer][k], (size_t)(me + peer + 1 + k), ncclInt64, peer,
				      comm, NULL));
		}
	}
	for (int peer = n - 1; peer >= 0; peer--) {
		for (int k = 0; k < 2; k++)
			NCCL(ncclRecv(in[peer][k], (size_t)(me + peer + 1 + k), ncclInt64, peer,
				      comm, NULL));
	}
	NCCL(ncclGroupEnd());
	for (int peer = 0; peer < n; peer++) {
		for (int k = 0; k < 2; k++) {
			for (int i = 0; i < 16; i++)
				CHECK_EQ(in[peer][k][i],
					 i < me + peer + 1 + k ? peer * 1000 + me * 100 + k * 50 + i
							       : 0);
		}
	}
	NCCL(ncclCommDestroy(comm));
}

TEST(all_to_all_by_threads)
{
	bed_threads(4, all_rank, NULL);
}

TEST(all_to_all_by_processes)
{
	bed_processes(3, all_rank, NULL);
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
