/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_system.c - what NCCL would see of a fabric; speeds as they are after any change. */
#include "model/nccl.h"

#include <stdlib.h>
#include <string.h>

static bool name_find(const char *const *names, unsigned count, const char *name, unsigned *out)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0) {
			*out = i;
			return true;
		}
	return false;
}

/* A constant by name, or what the fabric says where it has none of that name. */
static double constant_of(const struct hk_fabric *fabric, const char *name, double other)
{
	struct hk_fabric_constant constant = { .size = sizeof(constant) };

	for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++)
		if (strcmp(constant.name, name) == 0)
			return constant.value;
	return other;
}

/* "2.21.5" as NCCL numbers itself; 0 where it is not said. */
static uint32_t version_of(const char *text)
{
	uint32_t parts[3] = { 0, 0, 0 };

	for (uint32_t i = 0; i < 3; i++) {
		char *end;
		unsigned long part = strtoul(text, &end, 10);
		if (end == text || part > 999)
			break;
		parts[i] = (uint32_t)part;
		if (*end != '.')
			break;
		text = end + 1;
	}
	return parts[0] * 10000 + parts[1] * 100 + parts[2];
}

/* Ranks fill nodes one after the other. */
static enum hk_status nodes_of(const struct hk_fabric *fabric, uint32_t n, struct hk_why *why,
			       struct hk__nccl_system *system)
{
	struct hk_fabric_info info = { .size = sizeof(info) };

	hk_fabric_describe(fabric, &info);
	if (n < 2 || n > info.ranks)
		return hk__why(why, HK_EINVAL,
			       "NCCL's model needs 2 to %u ranks on this fabric, not %u",
			       info.ranks, n);
	if (info.node_ranks == 0)
		return hk__why(why, HK_EINVAL, "NCCL's model needs nodes that are alike");
	if (n > info.node_ranks && n % info.node_ranks != 0)
		return hk__why(why, HK_EINVAL,
			       "NCCL's model needs whole nodes: a multiple of %u ranks, not %u",
			       info.node_ranks, n);
	system->ranks = n;
	system->nodes = n > info.node_ranks ? n / info.node_ranks : 1;
	system->node_ranks = n / system->nodes;
	return HK_OK;
}

enum hk_status hk__nccl_system_of(const struct hk_fabric *fabric, uint32_t n, struct hk_why *why,
				  struct hk__nccl_system *system_out)
{
	static const char *const archs[] = {
#define NAME(id, name) name,
		HK__NCCL_ARCH_MAP(NAME)
	};
	static const char *const nets[] = { HK__NCCL_NET_MAP(NAME) };
#undef NAME
	const struct hk__gpu_system *gpu = &fabric->gpu;
	struct hk__nccl_system system = { 0 };
	unsigned arch = 0, net = HK__NCCL_INFINIBAND;

	if (!name_find(archs, HK__NCCL_ARCHS, gpu->arch, &arch) || gpu->nvlink_gbps <= 0)
		return hk__why(why, HK_EINVAL,
			       "NCCL's model knows GPUs with NVLink (ampere, hopper, blackwell), "
			       "which this fabric has not; see hocket fabric list");
	enum hk_status status = nodes_of(fabric, n, why, &system);
	if (status)
		return status;
	if (!name_find(nets, HK__NCCL_NETS, gpu->net, &net) && system.nodes > 1)
		return hk__why(why, HK_EINVAL, "NCCL's model does not know the network '%s'",
			       gpu->net);
	system.arch = (enum hk__nccl_arch)arch;
	system.net = (enum hk__nccl_net)net;
	/* Without a switch a GPU has a link to each of the others. */
	struct hk_fabric_info info = { .size = sizeof(info) };
	hk_fabric_describe(fabric, &info);
	double links = gpu->nvswitch ? 1 : info.node_ranks - 1;
	system.nvlink = links * constant_of(fabric, "nvlink.bw", gpu->nvlink_gbps / links);
	system.nic = constant_of(fabric, "nic.bw", gpu->nic_gbps);
	system.nics = gpu->nics;
	system.nvswitch = gpu->nvswitch;
	system.nvls = gpu->nvls;
	system.sharp = gpu->sharp;
	system.amd = strcmp(gpu->cpu, "amd") == 0;
	system.version = version_of(gpu->nccl);
	if (system.nodes > 1 && (system.nics <= 0 || system.nic <= 0))
		return hk__why(why, HK_EINVAL, "NCCL's model needs the NICs of a node");
	*system_out = system;
	return HK_OK;
}
