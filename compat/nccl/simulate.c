/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - ncclGroupSimulateEnd: how long a group would take, by Hocket's model. */
#include "comm.h"

/* HOCKET_FABRIC, else this machine; with more ranks than it has GPUs, its cores. */
static ncclResult_t fabric_of(int nranks, struct hk_fabric **fabric_out)
{
	struct hk_env_info env = { .size = sizeof(env) };
	uint32_t n = (uint32_t)nranks;
	struct hk_fabric *fabric = NULL, *hosts = NULL;
	struct hk_fabric_info info = { .size = sizeof(info) };
	struct hk_why why = { "" };
	enum hk_status status = hk_env_find("HOCKET_FABRIC", &env);

	if (status == HK_OK)
		status = hk_env_check(env.name, env.text, &why);
	if (status == HK_OK)
		status = env.text ? hk_fabric_create(env.text, NULL, &why, &fabric)
				  : hk_fabric_discover(NULL, &why, &fabric);
	if (status == HK_OK) {
		hk_fabric_describe(fabric, &info);
		if (info.ranks < n && !env.text) {
			status = hk_fabric_hosts(fabric, &n, 1, NULL, &why, &hosts);
			hk_fabric_free(fabric);
			fabric = hosts;
		}
	}
	if (status != HK_OK)
		return hk__nccl_fail(hk__nccl_result(status), "ncclGroupSimulateEnd: %s", why.text);
	*fabric_out = fabric;
	return ncclSuccess;
}

static ncclResult_t op_time(const struct hk_fabric *fabric, const struct hk__nccl_op *op,
			    double *ns_out)
{
	struct hk_sim_candidate candidates[HK_SIM_CANDIDATES_MAX];
	struct hk_sim_choice choice = { .ranks = (uint32_t)op->comm->nranks, .root = op->root };
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_why why = { "nothing fits" };
	uint32_t count = 0;

	if (!hk__nccl_op_coll(op->kind, &choice.coll))
		return hk__nccl_fail(ncclInvalidUsage,
				     "ncclGroupSimulateEnd: %s cannot be predicted",
				     hk__nccl_op_name(op->kind));
	choice.bytes = (double)op->count * (double)hk_type_size(op->type);
	if (choice.coll != HK_COLL_ALLREDUCE && choice.coll != HK_COLL_REDUCE &&
	    choice.coll != HK_COLL_BROADCAST)
		choice.bytes *= op->comm->nranks;
	candidates[0].size = sizeof(candidates[0]);
	enum hk_status status = hk_sim_candidates(fabric, &choice, &opts, &why, candidates, &count);
	if (status != HK_OK || count == 0)
		return hk__nccl_fail(hk__nccl_result(status == HK_OK ? HK_EINVAL : status),
				     "ncclGroupSimulateEnd: %s", why.text);
	*ns_out =
		candidates[0].simulated ? candidates[0].result.time_ns : candidates[0].estimate_ns;
	return ncclSuccess;
}

/* One after the other on a communicator; communicators side by side. */
ncclResult_t hk__nccl_simulate(const struct hk__nccl_op *ops, size_t count, float *time_out)
{
	double longest = 0;

	for (size_t i = 0; i < count; i++) {
		struct hk_fabric *fabric = NULL;
		double sum = 0;

		if (i > 0 && ops[i].comm == ops[i - 1].comm)
			continue; /* counted with it */
		ncclResult_t result = fabric_of(ops[i].comm->nranks, &fabric);
		for (size_t k = i; result == ncclSuccess && k < count; k++) {
			double ns = 0;

			if (ops[k].comm != ops[i].comm || ops[k].count == 0 ||
			    ops[k].comm->nranks == 1)
				continue;
			result = op_time(fabric, &ops[k], &ns);
			sum += ns;
		}
		hk_fabric_free(fabric);
		if (result != ncclSuccess)
			return result;
		longest = sum > longest ? sum : longest;
	}
	*time_out = (float)(longest / 1000);
	return ncclSuccess;
}
