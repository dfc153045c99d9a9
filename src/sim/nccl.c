/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - a collective as NCCL would do it, timed by the model of its kernels. */
#include "model/nccl.h"

#include <hocket/sim.h>

/* What nccl-tests multiply the speed of the vector by. */
static double bus_factor(enum hk_coll coll, double n)
{
	switch (coll) {
	case HK_COLL_ALLREDUCE:
		return 2 * (n - 1) / n;
	case HK_COLL_ALLGATHER:
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_ALLTOALL:
	case HK_COLL_GATHER:
	case HK_COLL_SCATTER:
		return (n - 1) / n;
	default:
		return 1;
	}
}

enum hk_status hk_sim_nccl(const struct hk_fabric *fabric, const struct hk_sim_nccl_call *call,
			   struct hk_why *why, struct hk_sim_nccl_result *result_out)
{
	struct hk__nccl_prediction prediction;
	struct hk__nccl_system system;
	enum hk_coll coll = call->coll;
	double bytes = call->bytes;

	if ((unsigned)coll >= HK_COLL_COUNT || (unsigned)call->type >= HK_TYPE_COUNT)
		return hk__why(why, HK_EINVAL, "no such collective, or no such type of elements");
	if (!(bytes >= 0) || bytes > 1e18)
		return hk__why(why, HK_EINVAL, "%g bytes: give 0 to 1e18", bytes);
	enum hk_status status = hk__nccl_system_of(fabric, call->n, why, &system);
	if (status)
		return status;
	if (coll == HK_COLL_BARRIER) { /* NCCL has none; programs add up one element */
		coll = HK_COLL_ALLREDUCE;
		bytes = (double)hk_type_size(call->type);
	}
	hk__nccl_predict(&system, NULL, coll, bytes, call->type, &prediction);
	double speed = call->coll == HK_COLL_BARRIER ? 0 : bytes / (1000 * prediction.us);
	struct hk_sim_nccl_result full = {
		.time_ns = 1000 * prediction.us,
		.bound_ns = 1000 * prediction.bound_us,
		.nccl_ns = 1000 * prediction.choice.us,
		.algbw = speed,
		.busbw = speed * bus_factor(call->coll, call->n),
		.algo = hk__nccl_algo_name(prediction.choice.algo),
		.proto = hk__nccl_proto_name(prediction.choice.proto),
		.channels = prediction.choice.channels,
		.bottleneck = prediction.limit,
	};
	if (hk__result_copy(result_out, &full, sizeof(full)) != HK_OK)
		return hk__why(why, HK_EINVAL,
			       "the size of a struct hk_sim_nccl_result was not set");
	return HK_OK;
}
