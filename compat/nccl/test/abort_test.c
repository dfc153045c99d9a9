/* SPDX-License-Identifier: Apache-2.0 */
/* abort_test.c - communicators that are given up: at any time, by any thread. */
#include "bed.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct aborter {
	pthread_t thread;
	const struct bed_pipes *pipes; /* NULL: at once */
	ncclComm_t comm;
};

static void *abort_run(void *ctx)
{
	struct aborter *aborter = ctx;

	if (aborter->pipes)
		bed_hear(aborter->pipes->come);
	NCCL(ncclCommAbort(aborter->comm));
	return NULL;
}

static void abort_start(struct aborter *aborter)
{
	CHECK_EQ(pthread_create(&aborter->thread, NULL, abort_run, aborter), 0);
}

static void await_failure(ncclComm_t comm)
{
	ncclResult_t state = ncclSuccess;

	for (int i = 0; state == ncclSuccess && i < 30000; i++) {
		usleep(1000);
		NCCL(ncclCommGetAsyncError(comm, &state));
	}
	CHECK_EQ(state, ncclRemoteError);
	NCCL(ncclCommAbort(comm));
}

/* Rank 0 waits for what rank 1 never sends, until a thread gives it up. */
static void abort_rank(struct bed_rank *rank)
{
	struct aborter aborter = { .pipes = rank->ctx };
	ncclComm_t comm;
	int x = 1, y = 0;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 0) {
		aborter.comm = comm;
		abort_start(&aborter);
		NCCL(ncclGroupStart());
		NCCL(ncclSend(&x, 1, ncclInt, 1, comm, NULL));
		NCCL(ncclRecv(&y, 1, ncclInt, 1, comm, NULL));
		CHECK_EQ(ncclGroupEnd(), ncclRemoteError);
		pthread_join(aborter.thread, NULL);
		return;
	}
	/* What came says that rank 0 is inside the call. */
	NCCL(ncclRecv(&y, 1, ncclInt, 0, comm, NULL));
	bed_tell(aborter.pipes->come);
	await_failure(comm);
}

TEST(abort_processes)
{
	struct bed_pipes pipes = bed_pipes_open();

	bed_processes(2, abort_rank, &pipes);
}

/* The abort comes at any time: also before the call has begun, which then is refused. */
static void abort_race_rank(struct bed_rank *rank)
{
	struct aborter aborter = { 0 };
	int x = 1;

	NCCL(ncclCommInitRank(&aborter.comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 1) {
		await_failure(aborter.comm);
		return;
	}
	abort_start(&aborter);
	ncclResult_t result = ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, aborter.comm, NULL);
	CHECK(result == ncclRemoteError || result == ncclInvalidArgument);
	pthread_join(aborter.thread, NULL);
}

TEST(abort_at_any_time)
{
	for (int i = 0; i < 50; i++)
		bed_threads(2, abort_race_rank, NULL);
}

/* Rank 1 does not split, so rank 0 waits in it. */
static void abort_split_rank(struct bed_rank *rank)
{
	struct aborter aborter = { 0 };
	ncclComm_t part;

	NCCL(ncclCommInitRank(&aborter.comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 1) {
		await_failure(aborter.comm);
		return;
	}
	abort_start(&aborter);
	ncclResult_t result = ncclCommSplit(aborter.comm, 0, 0, &part, NULL);
	CHECK(result == ncclRemoteError || result == ncclInvalidArgument);
	pthread_join(aborter.thread, NULL);
}

TEST(abort_of_a_split)
{
	for (int i = 0; i < 20; i++)
		bed_threads(2, abort_split_rank, NULL);
}

/* One that was given up is none, however often it is named. */
TEST(given_up_and_used)
{
	ncclComm_t comm, parent;
	ncclResult_t state;
	int x = 1;

	NCCL(ncclCommInitAll(&parent, 1, NULL));
	NCCL(ncclCommSplit(parent, 0, 0, &comm, NULL));
	NCCL(ncclCommDestroy(parent));
	for (int i = 0; i < 3; i++) { /* its child still holds it */
		CHECK_EQ(ncclCommDestroy(parent), ncclInvalidArgument);
		CHECK_EQ(ncclCommAbort(parent), ncclInvalidArgument);
		CHECK_EQ(ncclCommCount(parent, &x), ncclInvalidArgument);
	}
	NCCL(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comm, NULL));
	NCCL(ncclCommAbort(comm));
	CHECK_EQ(ncclCommAbort(comm), ncclInvalidArgument);
	CHECK_EQ(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comm, NULL), ncclInvalidArgument);
	CHECK_EQ(ncclCommFinalize(comm), ncclInvalidArgument);
	CHECK_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument);
	CHECK_HAS(ncclGetLastError(NULL), "not a communicator");
}

/* What a group has noted ends with the group, whatever becomes of its communicator. */
TEST(given_up_inside_a_group)
{
	ncclComm_t comm;
	int x = 5, y = 0;

	NCCL(ncclCommInitAll(&comm, 1, NULL));
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(&x, &y, 1, ncclInt, ncclSum, comm, NULL));
	NCCL(ncclCommDestroy(comm));
	NCCL(ncclGroupEnd());
	CHECK_EQ(y, 5);
}

/* Rank 0's group is still being freed, by a thread that a child does not have. */
static void fork_rank(struct bed_rank *rank)
{
	struct bed_pipes *pipes = rank->ctx;
	ncclComm_t comm;
	int status = -1;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 1) {
		bed_hear(pipes->come);
		NCCL(ncclCommDestroy(comm));
		return;
	}
	NCCL(ncclCommDestroy(comm));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(5); /* it would wait for twice as long */
		exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	bed_tell(pipes->come);
}

TEST(exit_of_a_forked_child)
{
	struct bed_pipes pipes = bed_pipes_open();

	bed_processes(2, fork_rank, &pipes);
}

/* What waits on the device ends as well. */
static void abort_device_rank(struct bed_rank *rank)
{
	struct bed_memory memory;
	ncclComm_t comm;
	float x = 1, sum = 0;

	bed_memory_open(&memory, true);
	void *at = bed_alloc(&memory, sizeof(x));
	bed_write(&memory, at, &x, sizeof(x));
	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	NCCL(ncclAllReduce(at, at, 1, ncclFloat, ncclSum, comm, memory.stream));
	bed_read(&memory, &sum, at, sizeof(sum));
	CHECK(sum == (float)rank->n);
	if (rank->rank == 0) {
		NCCL(ncclAllReduce(at, at, 1, ncclFloat, ncclSum, comm, memory.stream));
		usleep(100000);
		NCCL(ncclCommAbort(comm));
		bed_read(&memory, &sum, at, sizeof(sum)); /* the stream has passed it */
	} else {
		ncclResult_t state = ncclSuccess;

		for (int i = 0; state == ncclSuccess && i < 30000; i++) {
			usleep(1000);
			NCCL(ncclCommGetAsyncError(comm, &state));
		}
		CHECK_EQ(state, ncclRemoteError);
		NCCL(ncclCommAbort(comm));
	}
	bed_free(&memory, at);
	bed_memory_close(&memory);
}

TEST(device_abort_processes)
{
	bed_processes(2, abort_device_rank, NULL);
}

TEST(device_abort_threads)
{
	bed_threads(2, abort_device_rank, NULL);
}

/* Finalizing waits for what is on the device, and that for rank 1, which never calls. */
static void abort_finalize_rank(struct bed_rank *rank)
{
	struct aborter aborter = { 0 };
	struct bed_memory memory;
	float x = 1;

	bed_memory_open(&memory, true);
	void *at = bed_alloc(&memory, sizeof(x));
	bed_write(&memory, at, &x, sizeof(x));
	NCCL(ncclCommInitRank(&aborter.comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 0) {
		NCCL(ncclAllReduce(at, at, 1, ncclFloat, ncclSum, aborter.comm, memory.stream));
		abort_start(&aborter);
		(void)ncclCommFinalize(aborter.comm);
		pthread_join(aborter.thread, NULL);
		bed_read(&memory, &x, at, sizeof(x));
	} else {
		await_failure(aborter.comm);
	}
	bed_free(&memory, at);
	bed_memory_close(&memory);
}

TEST(device_abort_of_finalize)
{
	for (int i = 0; i < 5; i++)
		bed_processes(2, abort_finalize_rank, NULL);
}

/* What is not finished in time on the device, a thread that watches is told. */
static void late_device_rank(struct bed_rank *rank)
{
	struct bed_memory memory;
	ncclResult_t state = ncclSuccess;
	ncclComm_t comm;
	int x = 1;

	bed_memory_open(&memory, true);
	int *at = bed_alloc(&memory, sizeof(x));
	bed_write(&memory, at, &x, sizeof(x));
	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 0)
		NCCL(ncclAllReduce(at, at, 1, ncclInt, ncclSum, comm, memory.stream));
	for (int i = 0; state == ncclSuccess && i < 60000; i++) {
		usleep(1000);
		NCCL(ncclCommGetAsyncError(comm, &state));
	}
	CHECK_EQ(state, ncclRemoteError);
	if (rank->rank == 0)
		CHECK_HAS(ncclGetLastError(comm), "on the device not finished in time");
	NCCL(ncclCommAbort(comm));
	bed_read(&memory, &x, at, sizeof(x));
	bed_free(&memory, at);
	bed_memory_close(&memory);
}

TEST(device_deadline)
{
	CHECK_EQ(setenv("HOCKET_TIMEOUT", "3", 1), 0);
	bed_processes(2, late_device_rank, NULL);
}

static void revoke_rank(struct bed_rank *rank)
{
	ncclComm_t comm;
	int x = 1;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 0)
		NCCL(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
	CHECK_EQ(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comm, NULL), ncclRemoteError);
	NCCL(ncclCommDestroy(comm));
}

TEST(revoke_threads)
{
	bed_threads(2, revoke_rank, NULL);
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Nothing of a shrink that fails is left. */
static void revoked_shrink_rank(struct bed_rank *rank)
{
	struct bed_pipes *pipes = rank->ctx;
	int exclude[] = { 2 };
	ncclComm_t comm, less;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	if (rank->rank == 0) {
		NCCL(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
		int before = descriptors();
		CHECK_EQ(ncclCommShrink(comm, exclude, 1, &less, NULL, NCCL_SHRINK_DEFAULT),
			 ncclRemoteError);
		CHECK_EQ(descriptors(), before);
		for (int r = 1; r < rank->n; r++)
			bed_tell(pipes->come);
	} else {
		bed_hear(pipes->come);
	}
	NCCL(ncclCommDestroy(comm));
}

TEST(shrink_of_one_that_was_revoked)
{
	struct bed_pipes pipes = bed_pipes_open();

	bed_processes(3, revoked_shrink_rank, &pipes);
}
