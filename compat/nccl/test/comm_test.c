/* SPDX-License-Identifier: Apache-2.0 */
/* comm_test.c - communicators: made, split, shrunk; and what is refused. */
#include "bed.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int sum_of(ncclComm_t comm, int x)
{
	int sum = -1;

	NCCL(ncclAllReduce(&x, &sum, 1, ncclInt, ncclSum, comm, NULL));
	return sum;
}

static void wait_ready(ncclComm_t comm)
{
	ncclResult_t state = ncclInProgress;

	for (int i = 0; state == ncclInProgress && i < 30000; i++) {
		NCCL(ncclCommGetAsyncError(comm, &state));
		usleep(1000);
	}
	NCCL(state);
}

/* ---- how they are made ---- */

TEST(version_and_texts)
{
	int version = 0;

	NCCL(ncclGetVersion(&version));
	CHECK_EQ(version, 22809);
	CHECK_EQ(version, NCCL_VERSION(2, 28, 9));
	CHECK_EQ(pncclGetVersion(NULL), ncclInvalidArgument);
	CHECK_HAS(ncclGetLastError(NULL), "ncclGetVersion");
	for (int i = 0; i < ncclNumResults; i++)
		CHECK(*ncclGetErrorString((ncclResult_t)i));
	CHECK_STR(ncclGetErrorString((ncclResult_t)99), "unknown result code");
	CHECK_EQ(sizeof(ncclConfig_t), 80);
	CHECK_EQ(sizeof(ncclSimInfo_t), 24);
	CHECK_EQ(sizeof(ncclUniqueId), 128);
	CHECK_EQ(sizeof(ncclRedOp_t), 4);
	CHECK_EQ(ncclMaxRedOp, 0x7fffffff);
}

/* Any process may make the id; here it is none of the ranks. */
static void ask_rank(struct bed_rank *rank)
{
	ncclComm_t comm;
	int count = 0, me = -1, device = -1;
	ncclResult_t state;

	NCCL(ncclCommInitRankScalable(&comm, rank->n, rank->rank, 1, &rank->id, NULL));
	NCCL(ncclCommCount(comm, &count));
	NCCL(ncclCommUserRank(comm, &me));
	NCCL(ncclCommCuDevice(comm, &device));
	NCCL(ncclCommGetAsyncError(comm, &state));
	CHECK(count == rank->n && me == rank->rank && device == 0 && state == ncclSuccess);
	CHECK_EQ(sum_of(comm, me), rank->n * (rank->n - 1) / 2);
	NCCL(ncclCommDestroy(comm));
}

TEST(an_id_of_another_process)
{
	bed_processes(3, ask_rank, NULL);
}

TEST(an_id_by_environment)
{
	CHECK_EQ(setenv("NCCL_COMM_ID", "127.0.0.1:47113", 1), 0);
	bed_processes(2, ask_rank, NULL);
}

TEST(an_interface_by_name)
{
	CHECK_EQ(setenv("NCCL_SOCKET_IFNAME", "=lo", 1), 0);
	CHECK_EQ(setenv("NCCL_SHM_DISABLE", "1", 1), 0);
	bed_processes(3, ask_rank, NULL);
}

TEST(an_interface_that_is_not_there)
{
	ncclUniqueId id;

	CHECK_EQ(setenv("NCCL_SOCKET_IFNAME", "nowhere", 1), 0);
	CHECK_EQ(ncclGetUniqueId(&id), ncclSystemError);
	CHECK_HAS(ncclGetLastError(NULL), "NCCL_SOCKET_IFNAME says: nowhere");
}

TEST(several_ranks_of_one_thread)
{
	ncclComm_t comms[3];
	ncclUniqueId id;
	int in[3] = { 1, 2, 4 }, out[3];

	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclGroupStart());
	for (int r = 0; r < 3; r++)
		NCCL(ncclCommInitRank(&comms[r], 3, id, r));
	NCCL(ncclGroupEnd());
	NCCL(ncclGroupStart());
	for (int r = 0; r < 3; r++)
		NCCL(ncclAllReduce(&in[r], &out[r], 1, ncclInt, ncclSum, comms[r], NULL));
	NCCL(ncclGroupEnd());
	for (int r = 0; r < 3; r++) {
		CHECK_EQ(out[r], 7);
		NCCL(ncclCommDestroy(comms[r]));
	}
}

/* Two processes of two ranks each: a thread has several, but not all. */
static void pair_of_ranks(struct bed_rank *rank)
{
	ncclComm_t comms[2];
	int out[2], me = 2 * rank->rank;

	NCCL(ncclGroupStart());
	for (int k = 0; k < 2; k++)
		NCCL(ncclCommInitRank(&comms[k], 4, rank->id, me + k));
	NCCL(ncclGroupEnd());
	int in[2] = { 1 << me, 2 << me };
	NCCL(ncclGroupStart());
	for (int k = 0; k < 2; k++)
		NCCL(ncclAllReduce(&in[k], &out[k], 1, ncclInt, ncclSum, comms[k], NULL));
	NCCL(ncclGroupEnd());
	for (int k = 0; k < 2; k++) {
		CHECK_EQ(out[k], 15);
		NCCL(ncclCommDestroy(comms[k]));
	}
}

TEST(some_ranks_of_one_thread)
{
	bed_processes(2, pair_of_ranks, NULL);
}

/* ---- without blocking ---- */

static void lazy_rank(struct bed_rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm, half;
	int count;

	config.blocking = 0;
	config.commName = "lazy";
	CHECK_EQ(ncclCommInitRankConfig(&comm, rank->n, rank->id, rank->rank, &config),
		 ncclInProgress);
	CHECK(comm);
	wait_ready(comm);
	CHECK_EQ(sum_of(comm, 1), rank->n);
	CHECK_EQ(ncclCommSplit(comm, rank->rank % 2, 0, &half, NULL), ncclInProgress);
	wait_ready(comm);
	wait_ready(half);
	NCCL(ncclCommCount(half, &count));
	CHECK_EQ(sum_of(half, 1), count);
	ncclResult_t result = ncclCommFinalize(comm);
	CHECK(result == ncclSuccess || result == ncclInProgress);
	wait_ready(comm);
	CHECK_EQ(ncclAllReduce(&count, &count, 1, ncclInt, ncclSum, comm, NULL), ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(comm), "finalized");
	NCCL(ncclCommDestroy(comm));
	CHECK_EQ(sum_of(half, 1), count);
	NCCL(ncclCommDestroy(half));
}

TEST(without_blocking_threads)
{
	bed_threads(3, lazy_rank, NULL);
}

TEST(without_blocking_processes)
{
	bed_processes(4, lazy_rank, NULL);
}

/* On a device, as PyTorch does it; jobs of two communicators side by side. */
static void lazy_device_rank(struct bed_rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct bed_memory memory;
	ncclComm_t comm, parts[2];
	int x = 1, sum = 0;

	bed_memory_open(&memory, true);
	int *at = bed_alloc(&memory, sizeof(x));
	config.blocking = 0;
	CHECK_EQ(ncclCommInitRankConfig(&comm, rank->n, rank->id, rank->rank, &config),
		 ncclInProgress);
	wait_ready(comm);
	for (int k = 0; k < 2; k++) {
		CHECK_EQ(ncclCommSplit(comm, 0, rank->rank, &parts[k], &config), ncclInProgress);
		wait_ready(comm);
		wait_ready(parts[k]);
	}
	for (int k = 0; k < 3; k++) {
		ncclComm_t one = k < 2 ? parts[k] : comm;

		bed_write(&memory, at, &x, sizeof(x));
		NCCL(ncclAllReduce(at, at, 1, ncclInt, ncclSum, one, memory.stream));
		bed_read(&memory, &sum, at, sizeof(sum));
		CHECK_EQ(sum, rank->n);
		ncclResult_t result = ncclCommFinalize(one);
		CHECK(result == ncclSuccess || result == ncclInProgress);
		wait_ready(one);
		NCCL(ncclCommDestroy(one));
	}
	bed_free(&memory, at);
	bed_memory_close(&memory);
}

TEST(device_without_blocking)
{
	bed_processes(2, lazy_device_rank, NULL);
}

TEST(aborted_while_it_is_made)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId id;
	ncclComm_t comm;
	int count;

	config.blocking = 0;
	NCCL(ncclGetUniqueId(&id));
	/* Rank 0 never comes. */
	CHECK_EQ(ncclCommInitRankConfig(&comm, 2, id, 1, &config), ncclInProgress);
	CHECK_EQ(ncclCommCount(comm, &count), ncclInvalidUsage);
	CHECK_EQ(ncclAllReduce(&count, &count, 1, ncclInt, ncclSum, comm, NULL), ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(comm), "ncclCommGetAsyncError");
	NCCL(ncclCommAbort(comm));
}

/* ---- split ---- */

static void split_rank(struct bed_rank *rank)
{
	ncclComm_t comm, part, none;
	int me, count;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	/* Backwards: keys may be negative. */
	NCCL(ncclCommSplit(comm, rank->rank % 2, -rank->rank, &part, NULL));
	NCCL(ncclCommUserRank(part, &me));
	NCCL(ncclCommCount(part, &count));
	CHECK_EQ(me, count - 1 - rank->rank / 2);
	int want = 0;
	for (int r = rank->rank % 2; r < rank->n; r += 2)
		want += r;
	CHECK_EQ(sum_of(part, rank->rank), want);
	NCCL(ncclCommSplit(comm, rank->rank == 0 ? 7 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
	CHECK_EQ(none != NULL, rank->rank == 0);
	if (none)
		CHECK_EQ(sum_of(none, 3), 3);
	NCCL(ncclCommDestroy(none));
	/* In any order. */
	NCCL(ncclCommDestroy(comm));
	CHECK_EQ(sum_of(part, rank->rank), want);
	NCCL(ncclCommDestroy(part));
}

TEST(split_threads)
{
	bed_threads(4, split_rank, NULL);
}

TEST(split_processes)
{
	bed_processes(5, split_rank, NULL);
}

TEST(split_by_one_thread)
{
	ncclComm_t comms[4], parts[4];
	int in[4] = { 1, 2, 4, 8 }, out[4];

	NCCL(ncclCommInitAll(comms, 4, NULL));
	NCCL(ncclGroupStart());
	for (int r = 0; r < 4; r++)
		NCCL(ncclCommSplit(comms[r], r / 2, r, &parts[r], NULL));
	NCCL(ncclGroupEnd());
	NCCL(ncclGroupStart());
	for (int r = 0; r < 4; r++)
		NCCL(ncclAllReduce(&in[r], &out[r], 1, ncclInt, ncclSum, parts[r], NULL));
	NCCL(ncclGroupEnd());
	for (int r = 0; r < 4; r++) {
		CHECK_EQ(out[r], r < 2 ? 3 : 12);
		NCCL(ncclCommDestroy(comms[r]));
		NCCL(ncclCommDestroy(parts[r]));
	}
}

/* ---- fewer ranks ---- */

static void shrink_rank(struct bed_rank *rank)
{
	int exclude[] = { 1 };
	ncclComm_t comm, less;
	int me;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	CHECK_EQ(sum_of(comm, 1), rank->n);
	if (rank->rank != 1) { /* who is left out does not call */
		NCCL(ncclCommShrink(comm, exclude, 1, &less, NULL, NCCL_SHRINK_DEFAULT));
		NCCL(ncclCommUserRank(less, &me));
		CHECK_EQ(me, rank->rank ? rank->rank - 1 : 0);
		CHECK_EQ(sum_of(less, 1), rank->n - 1);
		NCCL(ncclCommDestroy(less));
	}
	NCCL(ncclCommDestroy(comm));
}

TEST(shrink_threads)
{
	bed_threads(3, shrink_rank, NULL);
}

TEST(shrink_processes)
{
	bed_processes(4, shrink_rank, NULL);
}

/* Rank 2 dies; the others notice, and go on without it. */
static void death_rank(struct bed_rank *rank)
{
	int exclude[] = { 2 }, x = 1, sum;
	ncclComm_t comm, less;
	ncclResult_t state;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	CHECK_EQ(sum_of(comm, 1), rank->n);
	if (rank->rank == 2)
		raise(SIGKILL);
	CHECK_EQ(ncclAllReduce(&x, &sum, 1, ncclInt, ncclSum, comm, NULL), ncclRemoteError);
	CHECK_HAS(ncclGetLastError(comm), "ncclAllReduce");
	NCCL(ncclCommGetAsyncError(comm, &state));
	CHECK_EQ(state, ncclRemoteError);
	CHECK_EQ(ncclBroadcast(&x, &x, 1, ncclInt, 0, comm, NULL), ncclRemoteError);
	CHECK_HAS(ncclGetLastError(comm), "rank 2"); /* still who it was */
	NCCL(ncclCommShrink(comm, exclude, 1, &less, NULL, NCCL_SHRINK_ABORT));
	CHECK_EQ(sum_of(less, 1), rank->n - 1);
	NCCL(ncclCommDestroy(less));
	NCCL(ncclCommDestroy(comm));
}

TEST(shrink_after_a_death)
{
	bed_processes_but(4, death_rank, NULL, 2);
}

/* ---- children ---- */

static void child_run(ncclComm_t comm)
{
	ncclResult_t state;
	int x = 1;

	CHECK_EQ(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comm, NULL), ncclInvalidArgument);
	CHECK_HAS(ncclGetLastError(comm), "not a communicator of this process");
	CHECK_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument);
	NCCL(ncclCommAbort(comm));
	NCCL(ncclCommDestroy(comm));
	exit(0);
}

/* A child can do nothing to a communicator of its parent, which goes on. */
static void fork_rank(struct bed_rank *rank)
{
	ncclComm_t comm;
	int status = 0;

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	CHECK_EQ(sum_of(comm, 2), 2 * rank->n);
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child_run(comm);
	CHECK_EQ(sum_of(comm, 3), 3 * rank->n);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	NCCL(ncclCommDestroy(comm));
}

TEST(a_child_has_no_communicator)
{
	bed_processes(2, fork_rank, NULL);
}

/* Who made an id has ended, and with it the meeting, although a child of it lives. */
static void meeting_child(pid_t maker, ncclUniqueId id, int end)
{
	ncclComm_t comm;

	while (getppid() == maker)
		usleep(1000);
	alarm(60);
	bool well = ncclCommInitRank(&comm, 2, id, 1) == ncclRemoteError &&
		    strstr(ncclGetLastError(NULL), "cannot reach the rendezvous");
	_exit(well && write(end, "y", 1) == 1 ? 0 : 1);
}

TEST(a_child_keeps_no_meeting_open)
{
	int ends[2], status = 0;
	ncclUniqueId id;
	char byte = 'n';

	CHECK_EQ(pipe(ends), 0);
	fflush(stdout);
	pid_t maker = fork();
	CHECK(maker >= 0);
	if (maker == 0) {
		maker = getpid();
		NCCL(ncclGetUniqueId(&id));
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0)
			meeting_child(maker, id, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	CHECK_EQ(waitpid(maker, &status, 0), maker);
	CHECK_EQ(status, 0);
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	CHECK_EQ(byte, 'y');
	close(ends[0]);
}

/* ---- on a device ---- */

/* A split of ranks on a device, and memory by the library. */
static void split_device_rank(struct bed_rank *rank)
{
	struct bed_memory memory;
	ncclComm_t comm, part;
	int x = rank->rank, sum = -1, count;
	void *at;

	bed_memory_open(&memory, true);
	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	NCCL(ncclMemAlloc(&at, sizeof(x)));
	NCCL(ncclCommSplit(comm, rank->rank % 2, 0, &part, NULL));
	NCCL(ncclCommDestroy(comm));
	bed_write(&memory, at, &x, sizeof(x));
	NCCL(ncclAllReduce(at, at, 1, ncclInt, ncclSum, part, memory.stream));
	bed_read(&memory, &sum, at, sizeof(sum));
	NCCL(ncclCommCount(part, &count));
	CHECK_EQ(sum, count * (rank->rank % 2) + count * (count - 1));
	NCCL(ncclCommFinalize(part));
	NCCL(ncclCommDestroy(part));
	NCCL(ncclMemFree(at));
	bed_memory_close(&memory);
}

/* As the environment wants it, which stays as it was: threads may be reading it. */
static void staged_device_rank(struct bed_rank *rank)
{
	struct bed_memory memory;
	ncclComm_t comm;
	int x = 1, sum = 0;

	bed_memory_open(&memory, true);
	int *at = bed_alloc(&memory, sizeof(x));
	bed_write(&memory, at, &x, sizeof(x));
	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	CHECK(!getenv("HOCKET_GPU"));
	bed_capture_begin(&memory);
	CHECK_EQ(ncclAllReduce(at, at, 1, ncclInt, ncclSum, comm, memory.stream),
		 ncclInvalidArgument);
	CHECK_HAS(ncclGetLastError(comm), "HOCKET_GPU=staged");
	bed_capture_end(&memory, 0);
	NCCL(ncclAllReduce(at, at, 1, ncclInt, ncclSum, comm, memory.stream));
	bed_read(&memory, &sum, at, sizeof(sum));
	CHECK_EQ(sum, rank->n);
	NCCL(ncclCommDestroy(comm));
	bed_free(&memory, at);
	bed_memory_close(&memory);
}

TEST(device_staged_by_environment)
{
	CHECK_EQ(unsetenv("HOCKET_GPU"), 0);
	CHECK_EQ(setenv("NCCL_P2P_DISABLE", "1", 1), 0);
	bed_processes(2, staged_device_rank, NULL);
}

TEST(device_split_processes)
{
	bed_processes(4, split_device_rank, NULL);
}

TEST(device_split_threads)
{
	bed_threads(4, split_device_rank, NULL);
}

/* ---- refusals ---- */

TEST(bad_arguments)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId id;
	ncclComm_t comm;
	int x = 0;

	NCCL(ncclGetUniqueId(&id));
	CHECK_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
	CHECK_HAS(ncclGetLastError(NULL), "rank 2 of 2");
	config.magic = 1;
	CHECK_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
	CHECK_HAS(ncclGetLastError(NULL), "NCCL_CONFIG_INITIALIZER");
	memset(&id, 0, sizeof(id));
	CHECK_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidArgument);
	CHECK(!comm);
	CHECK_HAS(ncclGetLastError(NULL), "ncclGetUniqueId");
	NCCL(ncclCommInitAll(&comm, 1, NULL));
	CHECK_EQ(ncclAllReduce(&x, &x, 1, (ncclDataType_t)12, ncclSum, comm, NULL),
		 ncclInvalidArgument);
	CHECK_EQ(ncclAllReduce(&x, &x, 1, ncclInt, (ncclRedOp_t)77, comm, NULL),
		 ncclInvalidArgument);
	CHECK_EQ(ncclAllReduce(NULL, &x, 1, ncclInt, ncclSum, comm, NULL), ncclInvalidArgument);
	CHECK_EQ(ncclBroadcast(&x, &x, 1, ncclInt, -1, comm, NULL), ncclInvalidArgument);
	CHECK_EQ(ncclSend(&x, 1, ncclInt, 1, comm, NULL), ncclInvalidArgument);
	CHECK_EQ(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, NULL, NULL), ncclInvalidArgument);
	NCCL(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comm, NULL)); /* none the worse */
	NCCL(ncclCommDestroy(comm));
	NCCL(ncclCommDestroy(NULL));
}

TEST(a_group_says_what_was_refused_in_it)
{
	ncclComm_t comm;
	int x = 5, y = 0;

	NCCL(ncclCommInitAll(&comm, 1, NULL));
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(&x, &y, 1, ncclInt, ncclSum, comm, NULL));
	CHECK_EQ(ncclAllReduce(&x, &y, 1, ncclInt, (ncclRedOp_t)77, comm, NULL),
		 ncclInvalidArgument);
	CHECK_EQ(ncclGroupEnd(), ncclInvalidArgument);
	CHECK_EQ(y, 0);
	CHECK_EQ(ncclGroupEnd(), ncclInvalidUsage);
	NCCL(ncclAllReduce(&x, &y, 1, ncclInt, ncclSum, comm, NULL));
	CHECK_EQ(y, 5);
	NCCL(ncclCommDestroy(comm));
}

/* Comes when the two that fit have met, and says that there are 3. */
static void odd_rank(struct bed_rank *rank)
{
	struct bed_pipes *pipes = rank->ctx;
	ncclComm_t comm;

	if (rank->rank < 2) {
		NCCL(ncclCommInitRank(&comm, 2, rank->id, rank->rank));
		bed_tell(pipes->come);
		bed_hear(pipes->gone);
		CHECK_EQ(sum_of(comm, 1), 2);
		NCCL(ncclCommDestroy(comm));
		return;
	}
	bed_hear(pipes->come);
	bed_hear(pipes->come);
	CHECK(ncclCommInitRank(&comm, 3, rank->id, 2) != ncclSuccess);
	bed_tell(pipes->gone);
	bed_tell(pipes->gone);
}

TEST(ranks_that_do_not_fit)
{
	struct bed_pipes pipes = bed_pipes_open();

	bed_processes(3, odd_rank, &pipes);
}

/* Whoever comes second is told. */
TEST(ranks_that_count_differently)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t states[2] = { ncclInProgress, ncclInProgress };
	ncclComm_t comms[2];
	ncclUniqueId id;

	config.blocking = 0;
	NCCL(ncclGetUniqueId(&id));
	for (int k = 0; k < 2; k++) /* rank 0 never comes */
		CHECK_EQ(ncclCommInitRankConfig(&comms[k], 2 + k, id, 1 + k, &config),
			 ncclInProgress);
	for (int i = 0; states[0] == ncclInProgress && states[1] == ncclInProgress && i < 30000;
	     i++) {
		usleep(1000);
		for (int k = 0; k < 2; k++)
			NCCL(ncclCommGetAsyncError(comms[k], &states[k]));
	}
	CHECK(states[0] == ncclInvalidUsage || states[1] == ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(NULL), "ranks, another one says");
	for (int k = 0; k < 2; k++)
		NCCL(ncclCommAbort(comms[k]));
}

TEST(what_is_not_there)
{
	ncclComm_t comm;
	void *at, *handle;
	ncclWindow_t window;
	char x[16];

	NCCL(ncclCommInitAll(&comm, 1, NULL));
	CHECK_EQ(ncclDevCommCreate(comm, NULL, NULL), ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(comm), "ncclDevCommCreate");
	NCCL(ncclCommRegister(comm, x, sizeof(x), &handle));
	NCCL(ncclCommDeregister(comm, handle));
	CHECK_EQ(ncclCommDeregister(comm, x), ncclInvalidArgument);
	NCCL(ncclCommWindowRegister(comm, x, sizeof(x), &window, NCCL_WIN_COLL_SYMMETRIC));
	NCCL(ncclCommWindowDeregister(comm, window));
	CHECK_EQ(ncclTeamWorld(comm).nRanks, 1);
	NCCL(ncclMemFree(NULL));
	if (ncclMemAlloc(&at, 64) == ncclSuccess)
		NCCL(ncclMemFree(at));
	else
		CHECK_HAS(ncclGetLastError(NULL), "ncclMemAlloc");
	NCCL(ncclCommDestroy(comm));
}

TEST(lines_of_nccl_debug)
{
	char path[] = "/tmp/hocket-nccl-XXXXXX", text[4096] = "";
	ncclComm_t comm;
	int x = 0;

	close(mkstemp(path));
	CHECK_EQ(setenv("NCCL_DEBUG", "info", 1), 0);
	CHECK_EQ(setenv("NCCL_DEBUG_FILE", path, 1), 0);
	CHECK_EQ(setenv("NCCL_ALGO", "allreduce:tree;broadcast:ring", 1), 0);
	CHECK_EQ(setenv("NCCL_PROTO", "LL", 1), 0);
	NCCL(ncclCommInitAll(&comm, 1, NULL));
	CHECK_EQ(ncclAllReduce(&x, &x, 1, ncclInt, (ncclRedOp_t)77, comm, NULL),
		 ncclInvalidArgument);
	NCCL(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comm, NULL));
	NCCL(ncclCommDestroy(comm));
	FILE *file = fopen(path, "r");
	CHECK(file);
	CHECK(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	unlink(path);
	CHECK_HAS(text, "INFO communicator rank 0 of 1");
	CHECK_HAS(text, "WARN ncclAllReduce: operator 77 is none");
	CHECK_HAS(text, "NCCL_PROTO is ignored");
}
