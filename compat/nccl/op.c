/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.c - operations, performed: on device memory enqueued on their streams; on host
 * memory begun, all of a group, and then waited for.
 *
 * Of each communicator sends and receives come first, as one batch, so that
 * none waits for the order of another; then collectives, in order.
 */
#include "comm.h"

#include <string.h>

#define WAIT_SLICE_NS UINT64_C(20000000) /* until others may call */
#define EVENT_NO_TIMING 2

const char *hk__nccl_op_name(enum hk__nccl_op_kind kind)
{
	static const char *const names[] = {
		[HK__NCCL_ALLREDUCE] = "ncclAllReduce",
		[HK__NCCL_REDUCE] = "ncclReduce",
		[HK__NCCL_BROADCAST] = "ncclBroadcast",
		[HK__NCCL_ALLGATHER] = "ncclAllGather",
		[HK__NCCL_REDUCESCATTER] = "ncclReduceScatter",
		[HK__NCCL_ALLTOALL] = "ncclAlltoAll",
		[HK__NCCL_GATHER] = "ncclGather",
		[HK__NCCL_SCATTER] = "ncclScatter",
		[HK__NCCL_SEND] = "ncclSend",
		[HK__NCCL_RECV] = "ncclRecv",
	};

	return names[kind];
}

bool hk__nccl_op_coll(enum hk__nccl_op_kind kind, enum hk_coll *coll_out)
{
	static const enum hk_coll colls[] = {
		[HK__NCCL_ALLREDUCE] = HK_COLL_ALLREDUCE,
		[HK__NCCL_REDUCE] = HK_COLL_REDUCE,
		[HK__NCCL_BROADCAST] = HK_COLL_BROADCAST,
		[HK__NCCL_ALLGATHER] = HK_COLL_ALLGATHER,
		[HK__NCCL_REDUCESCATTER] = HK_COLL_REDUCESCATTER,
		[HK__NCCL_ALLTOALL] = HK_COLL_ALLTOALL,
		[HK__NCCL_GATHER] = HK_COLL_GATHER,
		[HK__NCCL_SCATTER] = HK_COLL_SCATTER,
	};

	if (kind == HK__NCCL_SEND || kind == HK__NCCL_RECV)
		return false;
	*coll_out = colls[kind];
	return true;
}

static bool op_is_pair(const struct hk__nccl_op *op)
{
	return op->kind == HK__NCCL_SEND || op->kind == HK__NCCL_RECV;
}

/* ---- before a call ---- */

/*
 * The factor as Hocket wants it. One on the device is read when the stream gets
 * there: the caller waits for that, and a graph cannot have it.
 */
static ncclResult_t op_factor(struct hk__nccl_op *op)
{
	struct hk__nccl_redop *made = &op->made;
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	size_t size = hk_type_size(op->type);

	if (op->redop != HK_REDOP_PREMULSUM)
		return ncclSuccess;
	if (made->on_device && hk__nccl_on_device(made->scalar)) {
		if (hk__nccl_capturing(op->stream))
			return hk__nccl_fail(ncclInvalidUsage,
					     "%s: a factor in device memory cannot be part of a "
					     "graph; make the operator with "
					     "ncclScalarHostImmediate",
					     hk__nccl_op_name(op->kind));
		int error = driver->to_host(made->factor.bytes,
					    (unsigned long long)(uintptr_t)made->scalar, size,
					    op->stream);
		if (error == 0)
			error = driver->stream_wait(op->stream);
		if (error != 0)
			return hk__nccl_cuda(error, "reading the factor of an operator");
	} else if (made->on_device) {
		memcpy(made->factor.bytes, made->scalar, size);
	}
	if (op->type == HK_TYPE_FP16 || op->type == HK_TYPE_BF16 || op->type == HK_TYPE_FP8E4M3 ||
	    op->type == HK_TYPE_FP8E5M2)
		made->factor.f32 = hk__nccl_small_float(made->type, made->factor.bytes);
	return ncclSuccess;
}

/* Host memory is used when the stream has got there. */
static ncclResult_t op_host_ready(const struct hk__nccl_op *op)
{
	if (!op->comm->context)
		return ncclSuccess;
	if (hk__nccl_capturing(op->stream))
		return hk__nccl_fail(ncclInvalidUsage,
				     "%s: host memory cannot be used while a graph is captured",
				     hk__nccl_op_name(op->kind));
	return hk__nccl_cuda(hk__nccl_driver()->stream_wait(op->stream), "waiting for the stream");
}

static ncclResult_t op_ready(struct hk__nccl_op *op)
{
	op->device =
		op->comm->context && (hk__nccl_on_device(op->in) || hk__nccl_on_device(op->out));
	ncclResult_t result = op->device ? ncclSuccess : op_host_ready(op);
	return result == ncclSuccess ? op_factor(op) : result;
}

/* ---- a call ---- */

/* What NULL means, by its name: a call without a stream would be one on host memory. */
static void *stream_legacy(void)
{
	return (void *)(uintptr_t)1; /* NOLINT(performance-no-int-to-ptr) */
}

static struct hk_opts op_opts(struct hk__nccl_op *op)
{
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_coll coll;

	if (hk__nccl_op_coll(op->kind, &coll))
		opts.algo = hk__nccl_env()->algo[coll];
	if (op->redop == HK_REDOP_PREMULSUM)
		opts.factor = &op->made.factor;
	if (op->device)
		opts.stream = op->stream ? op->stream : stream_legacy();
	else
		opts.request = &op->request;
	return opts;
}

static enum hk_status op_call(struct hk__nccl_op *op)
{
	struct hk_group *group = op->comm->group;
	struct hk_opts opts = op_opts(op);

	switch (op->kind) {
	case HK__NCCL_ALLREDUCE:
		return hk_allreduce(group, op->in, op->out, op->count, op->type, op->redop, &opts);
	case HK__NCCL_REDUCE:
		return hk_reduce(group, op->in, op->out, op->count, op->type, op->redop, op->root,
				 &opts);
	case HK__NCCL_BROADCAST:
		return hk_broadcast(group, op->in, op->out, op->count, op->type, op->root, &opts);
	case HK__NCCL_ALLGATHER:
		return hk_allgather(group, op->in, op->out, op->count, op->type, &opts);
	case HK__NCCL_REDUCESCATTER:
		return hk_reducescatter(group, op->in, op->out, op->count, op->type, op->redop,
					&opts);
	case HK__NCCL_ALLTOALL:
		return hk_alltoall(group, op->in, op->out, op->count, op->type, &opts);
	case HK__NCCL_GATHER:
		return hk_gather(group, op->in, op->out, op->count, op->type, op->root, &opts);
	case HK__NCCL_SCATTER:
		return hk_scatter(group, op->in, op->out, op->count, op->type, op->root, &opts);
	case HK__NCCL_SEND:
		return hk_send(group, op->in, op->count, op->type, op->root, &opts);
	case HK__NCCL_RECV:
		return hk_recv(group, op->out, op->count, op->type, op->root, &opts);
	}
	return HK_EINVAL;
}

/* Behind the last call on the device: ncclCommFinalize waits for it. */
static ncclResult_t op_mark(const struct hk__nccl_op *op)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	struct ncclComm *comm = op->comm;
	int error = 0;

	if (!op->device || hk__nccl_capturing(op->stream))
		return ncclSuccess;
	if (!comm->event)
		error = driver->event(&comm->event, EVENT_NO_TIMING);
	if (error == 0)
		error = driver->event_record(comm->event, op->stream);
	return hk__nccl_cuda(error, "an event behind a call");
}

/* ---- sends and receives ---- */

/* Of what a rank sends to itself: so much goes with the batch, more by a copy of its own. */
#define SELF_BATCHED (16u << 10)

/* What a rank sends to itself. */
static ncclResult_t pair_self(struct hk__nccl_op *send, struct hk__nccl_op *recv)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	uint64_t bytes = send->count * hk_type_size(send->type);
	void *event = NULL;
	int error = 0;

	if (send->count != recv->count || send->type != recv->type || send->device != recv->device)
		return hk__nccl_fail(ncclInvalidArgument,
				     "ncclSend and ncclRecv of rank %d with itself: not the same "
				     "count, type and kind of memory",
				     send->comm->rank);
	if (send->device && bytes <= SELF_BATCHED)
		return ncclSuccess; /* one launch for all is sooner than two */
	send->done = recv->done = true;
	if (!send->device) {
		memmove(recv->out, send->in, bytes);
		return ncclSuccess;
	}
	/* The copy is in the sender's stream; the receiver's waits for it, and the other way. */
	if (send->stream != recv->stream) {
		error = driver->event(&event, EVENT_NO_TIMING);
		if (error == 0)
			error = driver->event_record(event, recv->stream);
		if (error == 0)
			error = driver->stream_follow(send->stream, event, 0);
	}
	if (error == 0)
		error = driver->copy((unsigned long long)(uintptr_t)recv->out,
				     (unsigned long long)(uintptr_t)send->in, bytes, send->stream);
	if (error == 0 && event)
		error = driver->event_record(event, send->stream);
	if (error == 0 && event)
		error = driver->stream_follow(recv->stream, event, 0);
	if (event)
		(void)driver->event_free(event);
	return hk__nccl_cuda(error, "a copy of a rank to itself");
}

static ncclResult_t pairs_self(struct ncclComm *comm, struct hk__nccl_op *ops, size_t count)
{
	ncclResult_t result = ncclSuccess;
	size_t k = 0;

	for (size_t i = 0; result == ncclSuccess && i < count; i++) {
		if (ops[i].comm != comm || ops[i].done || ops[i].kind != HK__NCCL_SEND ||
		    (int)ops[i].root != comm->rank)
			continue;
		/* The n-th send goes to the n-th receive. */
		while (k < count && (ops[k].comm != comm || ops[k].kind != HK__NCCL_RECV ||
				     ops[k].done || (int)ops[k].root != comm->rank))
			k++;
		if (k == count)
			return hk__nccl_fail(ncclInvalidUsage,
					     "ncclSend of rank %d to itself needs an ncclRecv in "
					     "the same group",
					     comm->rank);
		result = pair_self(&ops[i], &ops[k++]);
	}
	return result;
}

/* Those of one kind of memory: whatever their streams, all of them go together. */
static ncclResult_t pairs_batch(const struct hk__nccl_op *like, struct hk__nccl_op *ops,
				size_t count)
{
	struct ncclComm *comm = like->comm;
	bool device = like->device;
	const char *name = hk__nccl_op_name(like->kind);
	enum hk_status status = hk_batch_begin(comm->group);
	bool begun = status == HK_OK;

	for (size_t i = 0; status == HK_OK && i < count; i++) {
		struct hk__nccl_op *op = &ops[i];

		if (op->comm != comm || op->done || !op_is_pair(op) || op->device != device)
			continue;
		op->done = true;
		status = op_call(op);
	}
	enum hk_status ended = begun ? hk_batch_end(comm->group) : status;
	ncclResult_t result = hk__nccl_comm_failed(comm, status == HK_OK ? ended : status, name);
	return result == ncclSuccess ? op_mark(like) : result;
}

static ncclResult_t pairs_perform(struct ncclComm *comm, struct hk__nccl_op *ops, size_t count)
{
	ncclResult_t result = pairs_self(comm, ops, count);

	for (size_t i = 0; result == ncclSuccess && i < count; i++) {
		if (ops[i].comm == comm && op_is_pair(&ops[i]) && !ops[i].done)
			result = pairs_batch(&ops[i], ops + i, count - i);
	}
	return result;
}

/* ---- all of a group ---- */

static ncclResult_t comm_begin(struct ncclComm *comm, struct hk__nccl_op *ops, size_t count)
{
	ncclResult_t result = ncclSuccess;

	pthread_mutex_lock(&comm->lock);
	hk__nccl_enter(comm->context);
	for (size_t i = 0; result == ncclSuccess && i < count; i++) {
		if (ops[i].comm != comm)
			continue;
		ops[i].done = ops[i].count == 0;
		if (!ops[i].done)
			result = op_ready(&ops[i]);
	}
	if (result == ncclSuccess)
		result = pairs_perform(comm, ops, count);
	for (size_t i = 0; result == ncclSuccess && i < count; i++) {
		if (ops[i].comm != comm || ops[i].done)
			continue;
		ops[i].done = true;
		result =
			hk__nccl_comm_failed(comm, op_call(&ops[i]), hk__nccl_op_name(ops[i].kind));
		if (result == ncclSuccess)
			result = op_mark(&ops[i]);
	}
	hk__nccl_leave(comm->context);
	pthread_mutex_unlock(&comm->lock);
	return result;
}

/* In slices: other threads call as well. An abort of one of them ends it. */
static ncclResult_t op_wait(struct hk__nccl_op *op)
{
	struct ncclComm *comm = op->comm;
	enum hk_status status = HK_INPROGRESS;
	ncclResult_t result = ncclSuccess;

	while (status == HK_INPROGRESS) {
		pthread_mutex_lock(&comm->lock);
		status = hk_request_wait(op->request, WAIT_SLICE_NS);
		if (status != HK_INPROGRESS) {
			result = hk__nccl_comm_failed(comm, status, hk__nccl_op_name(op->kind));
			hk_request_free(op->request);
			op->request = NULL;
		}
		pthread_mutex_unlock(&comm->lock);
	}
	return result;
}

static bool comm_is_new(const struct hk__nccl_op *ops, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (ops[k].comm == ops[i].comm)
			return false;
	}
	return true;
}

ncclResult_t hk__nccl_ops_perform(struct hk__nccl_op *ops, size_t count)
{
	ncclResult_t result = ncclSuccess;

	for (size_t i = 0; result == ncclSuccess && i < count; i++) {
		if (comm_is_new(ops, i))
			result = comm_begin(ops[i].comm, ops, count);
	}
	for (size_t i = 0; i < count; i++) {
		if (!ops[i].request)
			continue;
		/* What was begun ends, also where something else was refused. */
		ncclResult_t one = op_wait(&ops[i]);

		result = result == ncclSuccess ? one : result;
	}
	return result;
}

void hk__nccl_ops_drop(const struct hk__nccl_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hk__nccl_comm_drop(ops[i].comm);
}
