/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_test.c - every collective, type and operation, in and out of place: ranks as
 * threads that meet, as processes, and as communicators of one thread.
 */
#include "bed.h"

#include <math.h>

#define COUNT 67 /* odd, and more than a line of memory */

enum what {
	ALLREDUCE,
	REDUCE,
	BROADCAST,
	BCAST,
	ALLGATHER,
	REDUCESCATTER,
	ALLTOALL,
	GATHER,
	SCATTER,
	WHATS
};

/* A call of one rank: what it gives, what it gets, and what it should get. */
struct call {
	enum what what;
	ncclDataType_t type;
	ncclRedOp_t op;
	double factor; /* premulsum; 0: a built-in operation */
	bool inplace;
	int rank, n, root;
	struct seat *seat;
};

#define BYTES (BED_RANKS_MAX * COUNT * 8)

/* A rank: its communicator and its memory. */
struct seat {
	ncclComm_t comm;
	struct bed_memory memory;
	unsigned char *in, *out; /* of BYTES each */
};

static void seat_open(struct seat *seat, bool device)
{
	bed_memory_open(&seat->memory, device);
	seat->in = bed_alloc(&seat->memory, BYTES);
	seat->out = bed_alloc(&seat->memory, BYTES);
}

static void seat_close(struct seat *seat)
{
	bed_free(&seat->memory, seat->in);
	bed_free(&seat->memory, seat->out);
	bed_memory_close(&seat->memory);
}

/* 0 or 1: sums and products are exact in every type; averages of 1, 2, 4 ranks too. */
static double value(int rank, size_t i)
{
	return (double)((rank + i * 3 + i / 5) % 2);
}

static double reduced(const struct call *call, size_t i)
{
	double result = call->op == ncclProd ? 1 : call->op == ncclMin ? 9 : 0;

	for (int r = 0; r < call->n; r++) {
		double x = value(r, i);

		if (call->factor != 0)
			result += x * call->factor;
		else if (call->op == ncclProd)
			result *= x;
		else if (call->op == ncclMin)
			result = fmin(result, x);
		else if (call->op == ncclMax)
			result = fmax(result, x);
		else
			result += x;
	}
	if (call->factor == 0 && call->op == ncclAvg) {
		result /= call->n;
		if (bed_integer(call->type))
			result = floor(result);
	}
	return result;
}

/* Elements a rank gives and gets; 0: it has no such buffer. */
static size_t in_len(const struct call *call)
{
	size_t all = (size_t)call->n * COUNT;

	switch (call->what) {
	case REDUCESCATTER:
	case ALLTOALL:
		return all;
	case SCATTER:
		return call->rank == call->root ? all : 0;
	case BROADCAST:
	case BCAST:
		return call->rank == call->root ? COUNT : 0;
	default:
		return COUNT;
	}
}

static size_t out_len(const struct call *call)
{
	size_t all = (size_t)call->n * COUNT;

	switch (call->what) {
	case ALLGATHER:
	case ALLTOALL:
		return all;
	case GATHER:
		return call->rank == call->root ? all : 0;
	case REDUCE:
		return call->rank == call->root ? COUNT : 0;
	default:
		return COUNT;
	}
}

static double expected(const struct call *call, size_t i)
{
	int block = (int)(i / COUNT);
	size_t rank = (size_t)call->rank;

	switch (call->what) {
	case ALLREDUCE:
	case REDUCE:
		return reduced(call, i);
	case REDUCESCATTER:
		return reduced(call, rank * COUNT + i);
	case ALLGATHER:
	case GATHER:
		return value(block, i % COUNT);
	case ALLTOALL:
		return value(block, rank * COUNT + i % COUNT);
	case SCATTER:
		return value(call->root, rank * COUNT + i);
	default:
		return value(call->root, i);
	}
}

/* Where the buffers are: apart, or one in the other as NCCL has it. */
static void call_place(struct call *call, const void **in, void **out)
{
	size_t block = (size_t)call->rank * COUNT * bed_size(call->type);

	*in = call->seat->in;
	*out = call->seat->out;
	if (!call->inplace)
		return;
	if (call->what == ALLGATHER || (call->what == GATHER && call->rank == call->root))
		*in = call->seat->out + block;
	else if (call->what == REDUCESCATTER || (call->what == SCATTER && call->rank == call->root))
		*out = call->seat->in + block;
	else if (call->what != GATHER && call->what != SCATTER)
		*out = call->seat->in;
}

static void call_go(struct call *call)
{
	const void *in;
	void *out;

	ncclComm_t comm = call->seat->comm;
	cudaStream_t stream = call->seat->memory.stream;
	double host[BYTES / 8];

	call_place(call, &in, &out);
	for (size_t i = 0; i < in_len(call); i++)
		bed_put(call->type, host, i, value(call->rank, i));
	bed_write(&call->seat->memory, (void *)in, host, in_len(call) * bed_size(call->type));
	switch (call->what) {
	case ALLREDUCE:
		NCCL(ncclAllReduce(in, out, COUNT, call->type, call->op, comm, stream));
		break;
	case REDUCE:
		NCCL(ncclReduce(in, out, COUNT, call->type, call->op, call->root, comm, stream));
		break;
	case BROADCAST:
		NCCL(ncclBroadcast(in, out, COUNT, call->type, call->root, comm, stream));
		break;
	case BCAST:
		NCCL(ncclBcast((void *)in, COUNT, call->type, call->root, comm, stream));
		break;
	case ALLGATHER:
		NCCL(ncclAllGather(in, out, COUNT, call->type, comm, stream));
		break;
	case REDUCESCATTER:
		NCCL(ncclReduceScatter(in, out, COUNT, call->type, call->op, comm, stream));
		break;
	case ALLTOALL:
		NCCL(ncclAlltoAll(in, out, COUNT, call->type, comm, stream));
		break;
	case GATHER:
		NCCL(ncclGather(in, out, COUNT, call->type, call->root, comm, stream));
		break;
	default:
		NCCL(ncclScatter(in, out, COUNT, call->type, call->root, comm, stream));
		break;
	}
}

static void call_look(struct call *call)
{
	const void *in;
	void *out;

	double host[BYTES / 8];

	call_place(call, &in, &out);
	if (call->what == BCAST)
		out = (void *)in;
	bed_read(&call->seat->memory, host, out, out_len(call) * bed_size(call->type));
	for (size_t i = 0; i < out_len(call); i++) {
		double got = bed_get(call->type, host, i), want = expected(call, i);

		if (got != want)
			test_fail(__FILE__, __LINE__,
				  "call %d, type %d, op %d%s, rank %d of %d: element %zu is %g, "
				  "not %g",
				  call->what, call->type, (int)call->op,
				  call->inplace ? " in place" : "", call->rank, call->n, i, got,
				  want);
	}
}

static bool reduces(enum what what)
{
	return what == ALLREDUCE || what == REDUCE || what == REDUCESCATTER;
}

/* Every call there is; `each` does it for one rank, or for all. */
static void calls_each(int n, void (*each)(void *ctx, struct call *call), void *ctx)
{
	static _Thread_local struct call call;

	for (int what = 0; what < WHATS; what++) {
		for (int type = 0; type < ncclNumTypes; type++) {
			for (int op = 0; op < (reduces((enum what)what) ? ncclNumOps + 1 : 1);
			     op++) {
				call = (struct call){ .what = (enum what)what,
						      .type = (ncclDataType_t)type,
						      .op = (ncclRedOp_t)op,
						      .factor = op == ncclNumOps ? 2 : 0,
						      .inplace = (what + type + op) % 2 &&
								 what != ALLTOALL,
						      .n = n,
						      .root = (type + op) % n };
				each(ctx, &call);
			}
		}
	}
}

static void redop_begin(struct call *call)
{
	double element;

	if (call->factor == 0)
		return;
	bed_put(call->type, &element, 0, call->factor);
	NCCL(ncclRedOpCreatePreMulSum(&call->op, &element, call->type, ncclScalarHostImmediate,
				      call->seat->comm));
	CHECK(call->op >= ncclNumOps);
}

static void redop_end(const struct call *call)
{
	if (call->factor != 0)
		NCCL(ncclRedOpDestroy(call->op, call->seat->comm));
}

/* ---- a rank each ---- */

static void rank_call(void *ctx, struct call *call)
{
	struct bed_rank *rank = ctx;

	call->rank = rank->rank;
	call->seat = rank->ctx;
	redop_begin(call);
	call_go(call);
	redop_end(call);
	call_look(call);
}

static void rank_run_in(struct bed_rank *rank, bool device)
{
	struct seat seat;

	seat_open(&seat, device);
	NCCL(ncclCommInitRank(&seat.comm, rank->n, rank->id, rank->rank));
	rank->ctx = &seat;
	calls_each(rank->n, rank_call, rank);
	NCCL(ncclCommFinalize(seat.comm));
	NCCL(ncclCommDestroy(seat.comm));
	seat_close(&seat);
}

static void rank_run(struct bed_rank *rank)
{
	rank_run_in(rank, false);
}

static void rank_run_device(struct bed_rank *rank)
{
	rank_run_in(rank, true);
}

/* Averages of three ranks are not exact: no reductions but sums. */
static void few_call(void *ctx, struct call *call)
{
	if (call->op == ncclSum)
		rank_call(ctx, call);
}

static void rank_run_few(struct bed_rank *rank)
{
	struct seat seat;

	seat_open(&seat, true);
	NCCL(ncclCommInitRank(&seat.comm, rank->n, rank->id, rank->rank));
	rank->ctx = &seat;
	calls_each(rank->n, few_call, rank);
	NCCL(ncclCommDestroy(seat.comm));
	seat_close(&seat);
}

TEST(threads_that_meet)
{
	bed_threads(2, rank_run, NULL);
}

TEST(processes)
{
	bed_processes(4, rank_run, NULL);
}

TEST(one_rank)
{
	bed_threads(1, rank_run, NULL);
}

TEST(device_threads_that_meet)
{
	bed_threads(2, rank_run_device, NULL);
}

TEST(device_processes)
{
	bed_processes(4, rank_run_device, NULL);
}

TEST(device_processes_by_host_memory)
{
	CHECK_EQ(setenv("HOCKET_GPU", "staged", 1), 0);
	bed_processes(3, rank_run_few, NULL);
}

TEST(device_one_rank)
{
	bed_threads(1, rank_run_device, NULL);
}

/* ---- all ranks by one thread ---- */

static void all_call(void *ctx, struct call *call)
{
	struct seat *seats = ctx;
	struct call calls[BED_RANKS_MAX];

	NCCL(ncclGroupStart());
	for (int r = 0; r < call->n; r++) {
		calls[r] = *call;
		calls[r].rank = r;
		calls[r].seat = &seats[r];
		redop_begin(&calls[r]);
		call_go(&calls[r]);
		redop_end(&calls[r]); /* what was called with it keeps it */
	}
	NCCL(ncclGroupEnd());
	for (int r = 0; r < call->n; r++)
		call_look(&calls[r]);
}

static void all_run(bool device)
{
	struct seat seats[4];
	ncclComm_t comms[4];
	int devices[4] = { 0, 0, 0, 0 };

	for (int r = 0; r < 4; r++)
		seat_open(&seats[r], device);
	NCCL(ncclCommInitAll(comms, 4, devices));
	for (int r = 0; r < 4; r++)
		seats[r].comm = comms[r];
	calls_each(4, all_call, seats);
	for (int r = 0; r < 4; r++)
		NCCL(ncclCommDestroy(comms[r]));
	for (int r = 0; r < 4; r++)
		seat_close(&seats[r]);
}

TEST(one_thread)
{
	all_run(false);
}

TEST(device_one_thread)
{
	all_run(true);
}

/* A device for each rank, all by one thread. */
TEST(devices_of_one_thread)
{
	struct bed_memory memory[2];
	ncclComm_t comms[2];
	float *at[2], sum = 0;
	int device;

	CHECK_EQ(setenv("HK_STANDIN_DEVICES", "2", 1), 0);
	if (bed_devices() < 2)
		SKIP("one GPU");
	for (int r = 0; r < 2; r++) {
		bed_memory_open_on(&memory[r], r);
		float x = (float)(r + 1);

		at[r] = bed_alloc(&memory[r], sizeof(x));
		bed_write(&memory[r], at[r], &x, sizeof(x));
	}
	NCCL(ncclCommInitAll(comms, 2, NULL));
	for (int k = 0; k < 3; k++) {
		NCCL(ncclGroupStart());
		for (int r = 0; r < 2; r++)
			NCCL(ncclAllReduce(at[r], at[r], 1, ncclFloat, ncclSum, comms[r],
					   memory[r].stream));
		NCCL(ncclGroupEnd());
	}
	for (int r = 0; r < 2; r++) {
		bed_read(&memory[r], &sum, at[r], sizeof(sum));
		CHECK(sum == 12);
		NCCL(ncclCommCuDevice(comms[r], &device));
		CHECK_EQ(device, r);
		NCCL(ncclCommDestroy(comms[r]));
		bed_free(&memory[r], at[r]);
		bed_memory_close(&memory[r]);
	}
}

/* ---- graphs ---- */

static void graph_rank(struct bed_rank *rank)
{
	float in = (float)(rank->rank + 1), out = 0;
	struct seat seat;

	seat_open(&seat, true);
	NCCL(ncclCommInitRank(&seat.comm, rank->n, rank->id, rank->rank));
	bed_write(&seat.memory, seat.in, &in, sizeof(in));
	for (int k = 0; k < 2; k++) {
		/* The first time outside of a graph, then in one. */
		if (k == 1)
			bed_capture_begin(&seat.memory);
		NCCL(ncclAllReduce(seat.in, seat.out, 1, ncclFloat, ncclSum, seat.comm,
				   seat.memory.stream));
		if (k == 1)
			bed_capture_end(&seat.memory, 5);
		bed_read(&seat.memory, &out, seat.out, sizeof(out));
		CHECK(out == 6);
	}
	/* Host memory and factors of the device are for the host to wait for. */
	ncclRedOp_t op;
	NCCL(ncclRedOpCreatePreMulSum(&op, seat.in, ncclFloat, ncclScalarDevice, seat.comm));
	bed_capture_begin(&seat.memory);
	CHECK_EQ(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, seat.comm, seat.memory.stream),
		 ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(seat.comm), "graph");
	CHECK_EQ(ncclAllReduce(seat.in, seat.out, 1, ncclFloat, op, seat.comm, seat.memory.stream),
		 ncclInvalidUsage);
	CHECK_HAS(ncclGetLastError(seat.comm), "ncclScalarHostImmediate");
	bed_capture_end(&seat.memory, 0);
	/* 1 * 1 + 2 * 2 + 3 * 3 */
	NCCL(ncclAllReduce(seat.in, seat.out, 1, ncclFloat, op, seat.comm, seat.memory.stream));
	bed_read(&seat.memory, &out, seat.out, sizeof(out));
	CHECK(out == 14);
	NCCL(ncclRedOpDestroy(op, seat.comm));
	NCCL(ncclCommDestroy(seat.comm));
	seat_close(&seat);
}

TEST(device_graphs)
{
	bed_processes(3, graph_rank, NULL);
}

/* ---- some at a time ---- */

TEST(groups_nest_and_mix)
{
	ncclComm_t comms[2];
	float in[2] = { 1, 2 }, sum[2], gathered[2][2], sent[2] = { 0, 0 };

	NCCL(ncclCommInitAll(comms, 2, NULL));
	NCCL(ncclGroupStart());
	for (int r = 0; r < 2; r++) {
		NCCL(ncclGroupStart());
		NCCL(ncclAllReduce(&in[r], &sum[r], 1, ncclFloat, ncclSum, comms[r], NULL));
		NCCL(ncclAllGather(&in[r], gathered[r], 1, ncclFloat, comms[r], NULL));
		NCCL(ncclSend(&in[r], 1, ncclFloat, 1 - r, comms[r], NULL));
		NCCL(ncclRecv(&sent[r], 1, ncclFloat, 1 - r, comms[r], NULL));
		NCCL(ncclGroupEnd());
		CHECK_EQ(sent[0], 0); /* nothing begins before the last end */
	}
	NCCL(ncclGroupEnd());
	for (int r = 0; r < 2; r++) {
		CHECK(sum[r] == 3 && gathered[r][0] == 1 && gathered[r][1] == 2);
		CHECK(sent[r] == in[1 - r]);
		NCCL(ncclCommDestroy(comms[r]));
	}
}

TEST(nothing_to_do)
{
	ncclComm_t comms[2];

	NCCL(ncclCommInitAll(comms, 2, NULL));
	NCCL(ncclGroupStart());
	NCCL(ncclGroupEnd());
	NCCL(ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, comms[0], NULL));
	NCCL(ncclSend(NULL, 0, ncclFloat, 1, comms[0], NULL));
	for (int r = 0; r < 2; r++)
		NCCL(ncclCommDestroy(comms[r]));
}

static void factor_rank(struct bed_rank *rank)
{
	ncclComm_t comm;
	ncclRedOp_t op;
	/* 0.5 as fp16; read when the operation is performed. */
	uint16_t factor = 0x3800, in = 0x4200, out = 0; /* 3 */

	NCCL(ncclCommInitRank(&comm, rank->n, rank->id, rank->rank));
	NCCL(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat16, ncclScalarDevice, comm));
	NCCL(ncclAllReduce(&in, &out, 1, ncclFloat16, op, comm, NULL));
	CHECK_EQ(out, 0x4200); /* 2 * 1.5 */
	factor = 0x3c00;
	NCCL(ncclAllReduce(&in, &out, 1, ncclFloat16, op, comm, NULL));
	CHECK_EQ(out, 0x4600); /* 6 */
	CHECK_EQ(ncclAllReduce(&in, &out, 1, ncclBfloat16, op, comm, NULL), ncclInvalidArgument);
	NCCL(ncclRedOpDestroy(op, comm));
	CHECK_EQ(ncclRedOpDestroy(op, comm), ncclInvalidArgument);
	CHECK_EQ(ncclAllReduce(&in, &out, 1, ncclFloat16, op, comm, NULL), ncclInvalidArgument);
	NCCL(ncclCommDestroy(comm));
}

TEST(factors_are_read_when_used)
{
	bed_threads(2, factor_rank, NULL);
}

TEST(a_group_that_is_only_simulated)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	ncclComm_t comms[2];
	float in[2] = { 1, 2 }, out[2] = { 7, 7 };

	NCCL(ncclCommInitAll(comms, 2, NULL));
	NCCL(ncclGroupStart());
	for (int r = 0; r < 2; r++)
		NCCL(ncclAllReduce(&in[r], &out[r], 1, ncclFloat, ncclSum, comms[r], NULL));
	NCCL(ncclGroupSimulateEnd(&info));
	CHECK(info.estimatedTime > 0 && info.estimatedTime < 1e6f);
	CHECK(out[0] == 7 && out[1] == 7);
	info.magic = 0;
	NCCL(ncclGroupStart());
	CHECK_EQ(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
	CHECK_EQ(ncclGroupEnd(), ncclInvalidUsage);
	for (int r = 0; r < 2; r++)
		NCCL(ncclCommDestroy(comms[r]));
}
