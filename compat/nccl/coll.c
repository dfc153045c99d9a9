/* SPDX-License-Identifier: Apache-2.0 */
/* coll.c - the calls that move data, and the operators that are made for them. */
#include "comm.h"

#include <math.h>
#include <string.h>

/* ---- types ---- */

bool hk__nccl_type(ncclDataType_t type, enum hk_type *type_out)
{
	static const enum hk_type types[ncclNumTypes] = {
		[ncclInt8] = HK_TYPE_INT8,	    [ncclUint8] = HK_TYPE_UINT8,
		[ncclInt32] = HK_TYPE_INT32,	    [ncclUint32] = HK_TYPE_UINT32,
		[ncclInt64] = HK_TYPE_INT64,	    [ncclUint64] = HK_TYPE_UINT64,
		[ncclFloat16] = HK_TYPE_FP16,	    [ncclFloat32] = HK_TYPE_FP32,
		[ncclFloat64] = HK_TYPE_FP64,	    [ncclBfloat16] = HK_TYPE_BF16,
		[ncclFloat8e4m3] = HK_TYPE_FP8E4M3, [ncclFloat8e5m2] = HK_TYPE_FP8E5M2,
	};

	if ((int)type < 0 || type >= ncclNumTypes)
		return false;
	*type_out = types[type];
	return true;
}

/* An element of 8 or 16 bits as a float. */
float hk__nccl_small_float(ncclDataType_t type, const void *at)
{
	unsigned exponent_bits = 0, bits = 0, total = 8;
	uint16_t wide;
	uint8_t narrow;

	switch (type) {
	case ncclFloat16:
		exponent_bits = 5, total = 16;
		break;
	case ncclBfloat16:
		exponent_bits = 8, total = 16;
		break;
	case ncclFloat8e4m3:
		exponent_bits = 4;
		break;
	default:
		exponent_bits = 5;
		break;
	}
	if (total == 16) {
		memcpy(&wide, at, sizeof(wide));
		bits = wide;
	} else {
		memcpy(&narrow, at, sizeof(narrow));
		bits = narrow;
	}
	unsigned fraction_bits = total - 1 - exponent_bits;
	unsigned fraction = bits & ((1u << fraction_bits) - 1);
	int top = (1 << exponent_bits) - 1;
	int exponent = (int)(bits >> fraction_bits) & top;
	int bias = top >> 1;
	float sign = bits >> (total - 1) ? -1.0f : 1.0f;

	if (type == ncclFloat8e4m3 ? exponent == top && fraction == 7
				   : exponent == top && fraction != 0)
		return NAN;
	if (exponent == top && type != ncclFloat8e4m3)
		return sign * INFINITY;
	if (exponent == 0)
		return sign * ldexpf((float)fraction, 1 - bias - (int)fraction_bits);
	return sign * ldexpf((float)(fraction | 1u << fraction_bits),
			     exponent - bias - (int)fraction_bits);
}

/* ---- operators ---- */

static ncclResult_t redop_make(ncclRedOp_t *op, const void *scalar, ncclDataType_t type,
			       ncclScalarResidence_t residence, ncclComm_t comm)
{
	enum hk_type ours;

	if (!op || !scalar || !hk__nccl_type(type, &ours) ||
	    (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
		return hk__nccl_fail(ncclInvalidArgument,
				     "ncclRedOpCreatePreMulSum: type %d, residence %d", (int)type,
				     (int)residence);
	pthread_mutex_lock(&comm->lock);
	unsigned i = 0;
	while (i < HK__NCCL_REDOPS && comm->redops[i].used)
		i++;
	if (i < HK__NCCL_REDOPS) {
		struct hk__nccl_redop *made = &comm->redops[i];

		*made = (struct hk__nccl_redop){ .used = true,
						 .type = type,
						 .on_device = residence == ncclScalarDevice,
						 .scalar = scalar };
		if (!made->on_device)
			memcpy(made->factor.bytes, scalar, hk_type_size(ours));
		*op = (ncclRedOp_t)((unsigned)ncclNumOps + i);
	}
	pthread_mutex_unlock(&comm->lock);
	if (i == HK__NCCL_REDOPS)
		return hk__nccl_fail(
			ncclInvalidUsage,
			"ncclRedOpCreatePreMulSum: a communicator has at most %u operators",
			HK__NCCL_REDOPS);
	return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
				      ncclScalarResidence_t residence, ncclComm_t comm)
{
	ncclResult_t result = hk__nccl_comm_take(comm, "ncclRedOpCreatePreMulSum");

	if (result != ncclSuccess)
		return result;
	result = redop_make(op, scalar, type, residence, comm);
	hk__nccl_comm_drop(comm);
	return result;
}
HK__NCCL_TWIN(RedOpCreatePreMulSum);

/* The operator of a communicator; NULL: it has no such one. */
static struct hk__nccl_redop *redop_find(struct ncclComm *comm, ncclRedOp_t op)
{
	unsigned i = (unsigned)op - (unsigned)ncclNumOps;

	if ((int)op < (int)ncclNumOps || i >= HK__NCCL_REDOPS || !comm->redops[i].used)
		return NULL;
	return &comm->redops[i];
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	if (!hk__nccl_comm_try(comm))
		return hk__nccl_fail(ncclInvalidArgument, "ncclRedOpDestroy: not a communicator");
	pthread_mutex_lock(&comm->lock);
	struct hk__nccl_redop *made = redop_find(comm, op);
	if (made)
		made->used = false;
	pthread_mutex_unlock(&comm->lock);
	hk__nccl_comm_drop(comm);
	return made ? ncclSuccess
		    : hk__nccl_fail(ncclInvalidArgument,
				    "ncclRedOpDestroy: there is no operator %d", (int)op);
}
HK__NCCL_TWIN(RedOpDestroy);

static ncclResult_t op_take_redop(struct hk__nccl_op *op, ncclDataType_t type, ncclRedOp_t redop)
{
	static const enum hk_redop redops[ncclNumOps] = {
		[ncclSum] = HK_REDOP_SUM, [ncclProd] = HK_REDOP_PROD, [ncclMax] = HK_REDOP_MAX,
		[ncclMin] = HK_REDOP_MIN, [ncclAvg] = HK_REDOP_AVG,
	};

	if ((int)redop >= 0 && redop < ncclNumOps) {
		op->redop = redops[redop];
		return ncclSuccess;
	}
	pthread_mutex_lock(&op->comm->lock);
	const struct hk__nccl_redop *made = redop_find(op->comm, redop);
	if (made)
		op->made = *made;
	pthread_mutex_unlock(&op->comm->lock);
	if (!made || op->made.type != type)
		return hk__nccl_fail(ncclInvalidArgument, "%s: operator %d %s",
				     hk__nccl_op_name(op->kind), (int)redop,
				     made ? "was made for another type" : "is none");
	op->redop = HK_REDOP_PREMULSUM;
	return ncclSuccess;
}

/* ---- calls ---- */

/* Buffers that a rank does not have in a call may be anything: they are not looked at. */
static void op_mask(struct hk__nccl_op *op)
{
	if ((int)op->root == op->comm->rank)
		return;
	if (op->kind == HK__NCCL_REDUCE || op->kind == HK__NCCL_GATHER)
		op->out = NULL;
	if (op->kind == HK__NCCL_BROADCAST || op->kind == HK__NCCL_SCATTER)
		op->in = NULL;
}

/* Of a communicator that is held. A group that notes it takes the hold over. */
static ncclResult_t op_go(struct hk__nccl_op *op, ncclDataType_t type, ncclRedOp_t redop,
			  bool *noted)
{
	const char *name = hk__nccl_op_name(op->kind);

	if (!hk__nccl_type(type, &op->type))
		return hk__nccl_fail(ncclInvalidArgument, "%s: unknown type %d", name, (int)type);
	if (op->root >= (uint32_t)op->comm->nranks)
		return hk__nccl_fail(ncclInvalidArgument, "%s: rank %d of %d", name, (int)op->root,
				     op->comm->nranks);
	op_mask(op);
	ncclResult_t result = op_take_redop(op, type, redop);
	if (result == ncclSuccess)
		result = hk__nccl_group_note_op(op, noted);
	if (result != ncclSuccess || *noted)
		return result;
	return hk__nccl_ops_perform(op, 1);
}

ncclResult_t hk__nccl_op_submit(struct hk__nccl_op *op, ncclDataType_t type, ncclRedOp_t redop)
{
	bool noted = false;
	ncclResult_t result = hk__nccl_comm_take(op->comm, hk__nccl_op_name(op->kind));

	if (result == ncclSuccess) {
		result = op_go(op, type, redop, &noted);
		if (!noted || result != ncclSuccess)
			hk__nccl_comm_drop(op->comm);
	}
	return hk__nccl_group_said(result);
}

static struct hk__nccl_op op_of(enum hk__nccl_op_kind kind, const void *in, void *out, size_t count,
				ncclComm_t comm, cudaStream_t stream)
{
	return (struct hk__nccl_op){
		.kind = kind, .in = in, .out = out, .count = count, .comm = comm, .stream = stream
	};
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
			   ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_ALLREDUCE, in, out, count, comm, stream);

	return hk__nccl_op_submit(&op, type, redop);
}
HK__NCCL_TWIN(AllReduce);

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
			ncclRedOp_t redop, int root, ncclComm_t comm, cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_REDUCE, in, out, count, comm, stream);

	op.root = (uint32_t)root;
	return hk__nccl_op_submit(&op, type, redop);
}
HK__NCCL_TWIN(Reduce);

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
			   ncclComm_t comm, cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_BROADCAST, in, out, count, comm, stream);

	op.root = (uint32_t)root;
	return hk__nccl_op_submit(&op, type, ncclSum);
}
HK__NCCL_TWIN(Broadcast);

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
		       cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_BROADCAST, buffer, buffer, count, comm, stream);

	op.root = (uint32_t)root;
	return hk__nccl_op_submit(&op, type, ncclSum);
}
HK__NCCL_TWIN(Bcast);

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
			       ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_REDUCESCATTER, in, out, count, comm, stream);

	return hk__nccl_op_submit(&op, type, redop);
}
HK__NCCL_TWIN(ReduceScatter);

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
			   ncclComm_t comm, cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_ALLGATHER, in, out, count, comm, stream);

	return hk__nccl_op_submit(&op, type, ncclSum);
}
HK__NCCL_TWIN(AllGather);

ncclResult_t ncclAlltoAll(const void *in, void *out, size_t count, ncclDataType_t type,
			  ncclComm_t comm, cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_ALLTOALL, in, out, count, comm, stream);

	return hk__nccl_op_submit(&op, type, ncclSum);
}
HK__NCCL_TWIN(AlltoAll);

ncclResult_t ncclGather(const void *in, void *out, size_t count, ncclDataType_t type, int root,
			ncclComm_t comm, cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_GATHER, in, out, count, comm, stream);

	op.root = (uint32_t)root;
	return hk__nccl_op_submit(&op, type, ncclSum);
}
HK__NCCL_TWIN(Gather);

ncclResult_t ncclScatter(const void *in, void *out, size_t count, ncclDataType_t type, int root,
			 ncclComm_t comm, cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_SCATTER, in, out, count, comm, stream);

	op.root = (uint32_t)root;
	return hk__nccl_op_submit(&op, type, ncclSum);
}
HK__NCCL_TWIN(Scatter);

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_SEND, in, NULL, count, comm, stream);

	op.root = (uint32_t)peer;
	return hk__nccl_op_submit(&op, type, ncclSum);
}
HK__NCCL_TWIN(Send);

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream)
{
	struct hk__nccl_op op = op_of(HK__NCCL_RECV, NULL, out, count, comm, stream);

	op.root = (uint32_t)peer;
	return hk__nccl_op_submit(&op, type, ncclSum);
}
HK__NCCL_TWIN(Recv);
