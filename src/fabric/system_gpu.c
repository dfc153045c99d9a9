/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system_gpu.c - systems of GPUs that are sold or were built, by name.
 *
 * Speeds are those of data sheets, with what of them data gets as an efficiency
 * of its own; start-up times are those that NCCL chooses by. What nobody states
 * is assumed, and its source says so.
 */
#include "fabric/system.h"

#include <string.h>

/* One kind of node. */
struct gpu_node {
	const char *gpu, *arch, *cpu;
	const char *title; /* for people */
	uint32_t devices, nics;
	enum hk__inside inside;
	bool nvls;
	double nvlink; /* GB/s a GPU (or pair) and direction */
	const char *nvlink_source;
	double nvlink_efficiency;
	const char *nvlink_efficiency_source;
	double pcie;
	const char *pcie_source;
	double nic;
	const char *nic_source;
	double hbm; /* GB/s */
	const char *hbm_source;
	uint32_t ports;				    /* of a switch of the network */
	uint32_t leaf_nodes, pod_nodes, flat_nodes; /* no core up to flat_nodes */
};

enum net {
	NET_INFINIBAND,
	NET_ETHERNET,
	NET_SLINGSHOT
};
static const char *const net_names[] = { "infiniband", "ethernet", "slingshot" };
static const char *const wire_names[] = { "infiniband", "roce", "slingshot" };
static const char *const net_choices[] = { "infiniband", "ethernet", NULL };
static const char *const routing_choices[] = { "adaptive", "hash", NULL };

#define NCCL_LINK(of, nominal) "NCCL 2.30.7 topo.h: " of " of " nominal " GB/s a link"
#define NCCL_PCIE "NCCL 2.30.7 topo.h: 48 of 64 GB/s (generation 5), 24 of 32 (4)"
#define KIB 1024.0

/* ---- start-up times ---- */

static const struct hk__point nvlink_flight[] = {
	{ 0, 600 },	     { 16 * KIB, 600 },	   { 64 * KIB, 1900 },
	{ 512 * KIB, 3400 }, { 1024 * KIB, 3400 }, { -1, 0 },
};
static const struct hk__point net_flight[] = {
	{ 0, 2700 },	      { 16 * KIB, 2700 },    { 64 * KIB, 4000 },
	{ 512 * KIB, 14000 }, { 1024 * KIB, 14000 }, { -1, 0 },
};
#define FLIGHT_SOURCE \
	"NCCL 2.30.7 tuning.cc, Ring: LL, LL128 and Simple; the sizes between them are assumed"

static void wires_set(struct hk_fabric *fabric, const char *net_wire)
{
	char name[48];
	static const char slots[] = "NCCL: 8 steps of a buffer of 4 MiB";
	static const char slices[] = "assumed: pieces no shorter than 64 KiB";

	for (uint32_t i = 0; i < fabric->nwires; i++) {
		const char *wire = fabric->wires[i].name;
		const struct {
			const char *field;
			double value;
			const char *source;
		} fields[] = {
			{ "slots", 8, slots },
			{ "slot-bytes", 512 * KIB, slots },
			{ "slice-bytes", 64 * KIB, slices },
			{ "slices", 8, slices },
		};

		for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++) {
			struct hk__setting row = { name, fields[k].value, fields[k].source };

			snprintf(name, sizeof(name), "%s.%s", wire, fields[k].field);
			hk__constants_apply(fabric, &row, 1);
		}
		snprintf(name, sizeof(name), "%s.flight", wire);
		hk__curve_apply(fabric, name,
				strcmp(wire, net_wire) == 0 ? net_flight : nvlink_flight,
				FLIGHT_SOURCE);
	}
}

/* ---- numbers ---- */

static void node_set(struct hk_fabric *fabric, const struct gpu_node *node)
{
	char copy[HK__SOURCE_MAX], reduce[HK__SOURCE_MAX];

	snprintf(copy, sizeof(copy), "two streams of memory at %g GB/s: %s", node->hbm,
		 node->hbm_source);
	snprintf(reduce, sizeof(reduce), "three streams of memory at %g GB/s: %s", node->hbm,
		 node->hbm_source);
	const struct hk__setting rows[] = {
		{ "nvlink.bw", node->nvlink, node->nvlink_source },
		{ "nvlink.efficiency", node->nvlink_efficiency, node->nvlink_efficiency_source },
		{ "nvlink.delay", 150, "assumed: half of a way through a switch" },
		{ "pcie.bw", node->pcie, node->pcie_source },
		{ "pcie.efficiency", 0.75, NCCL_PCIE },
		{ "pcie.delay", 300, "assumed" },
		{ "nic.bw", node->nic, node->nic_source },
		{ "leaf.bw", node->nic, node->nic_source },
		{ "pod.bw", node->nic, node->nic_source },
		{ "device.call", 6600, "NCCL 2.30.7 tuning.cc: base latency, Ring LL" },
		{ "device.step", 0, "assumed: within the wires' flight" },
		{ "device.copy", 2 / node->hbm, copy },
		{ "device.reduce", 3 / node->hbm, reduce },
		{ "device.serial", 0, "lanes are thread blocks" },
	};

	hk__constants_apply(fabric, rows, sizeof(rows) / sizeof(rows[0]));
}

#define DELAY(what) "assumed: half of a switch of " what " and its two cables"
static const struct hk__setting infiniband[] = {
	{ "nic.efficiency", 0.94, "NVIDIA/nccl-tests#290: 46 to 48 of 50 GB/s a NIC" },
	{ "nic.delay", 90, DELAY("130 ns (QM8700 data sheet)") },
	{ "leaf.efficiency", 0.94, "assumed: as a NIC" },
	{ "leaf.delay", 230, "assumed: a switch of 130 ns and 20 m" },
	{ "pod.efficiency", 0.94, "assumed: as a NIC" },
	{ "pod.delay", 380, "assumed: a switch of 130 ns and 50 m" },
};
static const struct hk__setting ethernet[] = {
	{ "nic.efficiency", 0.94, "assumed: as InfiniBand" },
	{ "nic.delay", 275, DELAY("500 ns") },
	{ "leaf.efficiency", 0.94, "assumed: as a NIC" },
	{ "leaf.delay", 600, "assumed: a switch of 500 ns and 20 m" },
	{ "pod.efficiency", 0.94, "assumed: as a NIC" },
	{ "pod.delay", 750, "assumed: a switch of 500 ns and 50 m" },
};
static const struct hk__setting slingshot[] = {
	{ "nic.efficiency", 0.94, "assumed: as InfiniBand" },
	{ "nic.delay", 200, DELAY("350 ns (De Sensi et al., SC20)") },
	{ "leaf.efficiency", 0.94, "assumed: as a NIC" },
	{ "leaf.delay", 450, "assumed: a switch of 350 ns and 20 m" },
	{ "pod.efficiency", 0.94, "assumed: as a NIC" },
	{ "pod.delay", 600, "assumed: a switch of 350 ns and 50 m" },
};

static void net_set(struct hk_fabric *fabric, enum net net)
{
	const struct hk__setting *rows[] = { infiniband, ethernet, slingshot };

	hk__constants_apply(fabric, rows[net], sizeof(infiniband) / sizeof(infiniband[0]));
}

/* ---- building ---- */

struct gpu_args {
	uint32_t net, routing, leaf_nodes;
	double oversubscription;
};

static enum hk_status gpu_args_read(const struct hk__system_args *args, struct gpu_args *gpu,
				    struct hk_why *why)
{
	enum hk_status status;
	double leaf = gpu->leaf_nodes;

	status = hk__system_choice(args, "net", net_choices, &gpu->net, why);
	if (!status)
		status = hk__system_choice(args, "routing", routing_choices, &gpu->routing, why);
	if (!status)
		status = hk__system_number(args, "leaf", 1, HK_FABRIC_RANKS_MAX, &leaf, why);
	if (!status)
		status = hk__system_number(args, "oversubscription", 1, 1000,
					   &gpu->oversubscription, why);
	gpu->leaf_nodes = (uint32_t)leaf;
	return status;
}

static void gpu_describe(struct hk_fabric *fabric, const struct gpu_node *node, enum net net)
{
	static const char *const titles[] = { "InfiniBand", "Ethernet (RoCE)", "Slingshot-11" };

	fabric->can = node->nvls ? HK__CAN_REDUCE_NODE | HK__CAN_MULTICAST_NODE : 0;
	if (net == NET_INFINIBAND)
		fabric->can |= HK__CAN_REDUCE_NET | HK__CAN_MULTICAST_NET;
	struct hk__gpu_system *gpu = &fabric->gpu;
	*gpu = (struct hk__gpu_system){
		.nvlink_gbps =
			node->nvlink * (node->inside == HK__INSIDE_PAIRS ? node->devices - 1 : 1),
		.nvswitch = node->inside == HK__INSIDE_SWITCH,
		.nvls = node->nvls,
		.nics = node->nics,
		.nic_gbps = node->nic,
	};
	/* The release whose sweeps are known: elsewhere the newest that is modelled. */
	snprintf(gpu->nccl, sizeof(gpu->nccl), "%s", net == NET_SLINGSHOT ? "2.21.5" : "2.30.7");
	snprintf(gpu->arch, sizeof(gpu->arch), "%s", node->arch);
	snprintf(gpu->net, sizeof(gpu->net), "%s", net_names[net]);
	snprintf(gpu->cpu, sizeof(gpu->cpu), "%s", node->cpu);
	snprintf(fabric->about, sizeof(fabric->about),
		 "%u %s%s of %s; %u NIC%s of %g Gb/s %s each%s", fabric->nodes,
		 node->devices > 8 ? "rack" : "node", fabric->nodes == 1 ? "" : "s", node->title,
		 node->nics, node->nics == 1 ? "" : "s", node->nic * 8, titles[net],
		 node->nics > 1 ? ", by rails" : "");
}

static void gpu_shape(const struct gpu_node *node, const struct gpu_args *args, uint32_t nodes,
		      struct hk__clos_shape *shape)
{
	*shape = (struct hk__clos_shape){
		.node = { { .inside = node->inside,
			    .link = "nvlink",
			    .nic = "nic",
			    .pcie = true } },
		.rails = true,
		.routing = args->routing ? HK__ROUTE_HASH : HK__ROUTE_IDEAL,
	};
	/* One switch takes the NICs of a few nodes, two tiers those of some more. */
	if ((uint64_t)nodes * node->nics <= node->ports && args->leaf_nodes == node->leaf_nodes)
		return;
	shape->leaf_nodes = args->leaf_nodes;
	if (nodes > node->flat_nodes && node->pod_nodes % args->leaf_nodes == 0)
		shape->pod_nodes = node->pod_nodes;
}

static enum hk_status gpu_build(const struct gpu_node *node, enum net net,
				const struct hk__system_args *args, struct hk_fabric *fabric,
				struct hk_why *why)
{
	struct gpu_args gpu = { .net = net, .leaf_nodes = node->leaf_nodes, .oversubscription = 1 };
	struct hk__node_kind kind = {
		.name = "node", .count = args->dims[0], .ranks = node->devices, .nics = node->nics
	};
	struct hk__clos_shape shape;
	enum hk_status status = gpu_args_read(args, &gpu, why);

	if (!status)
		status = hk__fabric_add_device(fabric, node->gpu, why, &kind.device);
	if (!status)
		status = hk__fabric_add_wire(fabric, "nvlink", why, &fabric->wire_node);
	if (!status)
		status = hk__fabric_add_wire(fabric, wire_names[gpu.net], why, &fabric->wire_net);
	if (!status)
		status = hk__fabric_add_nodes(fabric, &kind, why);
	if (status)
		return status;
	gpu_shape(node, &gpu, kind.count, &shape);
	status = hk__clos_build(fabric, &shape, why);
	if (!status)
		status = hk__constants_list(fabric, why);
	if (status)
		return status;
	node_set(fabric, node);
	net_set(fabric, gpu.net);
	wires_set(fabric, wire_names[gpu.net]);
	const struct hk__setting given = { "leaf.oversubscription", gpu.oversubscription,
					   hk__system_option(args, "oversubscription")
						   ? "asked for"
						   : "assumed" };
	hk__constants_apply(fabric, &given, 1);
	gpu_describe(fabric, node, gpu.net);
	return HK_OK;
}

/* ---- the systems ---- */

/*
 * Switches: 40 ports of HDR and leaves of 20 nodes as in the DGX SuperPOD of A100,
 * 64 ports of NDR and leaves of 32 as in that of H100; sizes of pods follow from
 * ports, with as many links up as down. Others are assumed.
 */
static const struct gpu_node dgx_a100 = {
	.gpu = "a100",
	.arch = "ampere",
	.cpu = "amd",
	.title = "8 A100 behind NVSwitch",
	.devices = 8,
	.nics = 8,
	.inside = HK__INSIDE_SWITCH,
	.nvls = false,
	.nvlink = 300,
	.nvlink_source = "NVIDIA A100 data sheet: 600 GB/s, both directions",
	.nvlink_efficiency = 0.8,
	.nvlink_efficiency_source = NCCL_LINK("20", "25"),
	.pcie = 32,
	.pcie_source = "PCIe generation 4, 16 lanes",
	.nic = 25,
	.nic_source = "DGX A100 data sheet: ConnectX-6, 200 Gb/s",
	.hbm = 2039,
	.hbm_source = "NVIDIA A100 80GB SXM data sheet",
	.ports = 40,
	.leaf_nodes = 20,
	.pod_nodes = 40,
	.flat_nodes = 100,
};

static const struct gpu_node dgx_h100 = {
	.gpu = "h100",
	.arch = "hopper",
	.cpu = "intel",
	.title = "8 H100 behind NVSwitch",
	.devices = 8,
	.nics = 8,
	.inside = HK__INSIDE_SWITCH,
	.nvls = true,
	.nvlink = 450,
	.nvlink_source = "NVIDIA H100 data sheet: 900 GB/s, both directions",
	.nvlink_efficiency = 0.824,
	.nvlink_efficiency_source = NCCL_LINK("20.6", "25"),
	.pcie = 64,
	.pcie_source = "PCIe generation 5, 16 lanes",
	.nic = 50,
	.nic_source = "DGX H100 data sheet: ConnectX-7, 400 Gb/s",
	.hbm = 3350,
	.hbm_source = "NVIDIA H100 SXM data sheet",
	.ports = 64,
	.leaf_nodes = 32,
	.pod_nodes = 128,
	.flat_nodes = 256,
};

static const struct gpu_node dgx_h200 = {
	.gpu = "h200",
	.arch = "hopper",
	.cpu = "intel",
	.title = "8 H200 behind NVSwitch",
	.devices = 8,
	.nics = 8,
	.inside = HK__INSIDE_SWITCH,
	.nvls = true,
	.nvlink = 450,
	.nvlink_source = "NVIDIA H200 data sheet: 900 GB/s, both directions",
	.nvlink_efficiency = 0.824,
	.nvlink_efficiency_source = NCCL_LINK("20.6", "25"),
	.pcie = 64,
	.pcie_source = "PCIe generation 5, 16 lanes",
	.nic = 50,
	.nic_source = "DGX H200 data sheet: ConnectX-7, 400 Gb/s",
	.hbm = 4800,
	.hbm_source = "NVIDIA H200 SXM data sheet",
	.ports = 64,
	.leaf_nodes = 32,
	.pod_nodes = 128,
	.flat_nodes = 256,
};

static const struct gpu_node dgx_b200 = {
	.gpu = "b200",
	.arch = "blackwell",
	.cpu = "intel",
	.title = "8 B200 behind NVSwitch",
	.devices = 8,
	.nics = 8,
	.inside = HK__INSIDE_SWITCH,
	.nvls = true,
	.nvlink = 900,
	.nvlink_source = "DGX B200 data sheet: 14.4 TB/s of 8, both directions",
	.nvlink_efficiency = 0.802,
	.nvlink_efficiency_source = NCCL_LINK("40.1", "50"),
	.pcie = 64,
	.pcie_source = "PCIe generation 5, 16 lanes",
	.nic = 50,
	.nic_source = "DGX B200 data sheet: ConnectX-7, 400 Gb/s",
	.hbm = 8000,
	.hbm_source = "DGX B200 data sheet: 64 TB/s of 8",
	.ports = 64,
	.leaf_nodes = 32,
	.pod_nodes = 128,
	.flat_nodes = 256,
};

static const struct gpu_node gb200_nvl72 = {
	.gpu = "gb200",
	.arch = "blackwell",
	.cpu = "arm",
	.title = "72 GB200 behind NVSwitch",
	.devices = 72,
	.nics = 72,
	.inside = HK__INSIDE_SWITCH,
	.nvls = true,
	.nvlink = 900,
	.nvlink_source = "GB200 NVL72 data sheet: 130 TB/s of 72, both directions",
	.nvlink_efficiency = 0.802,
	.nvlink_efficiency_source = NCCL_LINK("40.1", "50"),
	.pcie = 64,
	.pcie_source = "PCIe generation 5, 16 lanes",
	.nic = 50,
	.nic_source = "GB200 NVL72: ConnectX-7, 400 Gb/s a GPU",
	.hbm = 8000,
	.hbm_source = "GB200 NVL72 data sheet: 576 TB/s of 72",
	.ports = 64,
	.leaf_nodes = 8,
	.pod_nodes = 64,
	.flat_nodes = 64,
};

static const struct gpu_node slingshot_a100 = {
	.gpu = "a100",
	.arch = "ampere",
	.cpu = "amd",
	.title = "4 A100, every pair joined",
	.devices = 4,
	.nics = 2,
	.inside = HK__INSIDE_PAIRS,
	.nvls = false,
	.nvlink = 100,
	.nvlink_source = "NVLink 3: 4 links of 25 GB/s a pair (NERSC and ALCF descriptions)",
	.nvlink_efficiency = 0.8,
	.nvlink_efficiency_source = NCCL_LINK("20", "25"),
	.pcie = 32,
	.pcie_source = "PCIe generation 4, 16 lanes",
	.nic = 25,
	.nic_source = "HPE Slingshot-11: 200 Gb/s",
	.hbm = 1555,
	.hbm_source = "NVIDIA A100 40GB SXM data sheet",
	.ports = 64,
	.leaf_nodes = 32,
	.pod_nodes = 512,
	.flat_nodes = 2048,
};

#define GPU_OPTIONS \
	"net=infiniband|ethernet routing=adaptive|hash leaf=NODES oversubscription=FACTOR"
#define GPU_SYSTEM(id, label, what, text, sample, net, choices) \
	static enum hk_status id##_build(const struct hk__system_args *args, \
					 struct hk_fabric *fabric, struct hk_why *why) \
	{ \
		return gpu_build(&id, net, args, fabric, why); \
	} \
	const struct hk__system hk__system_##id = { .name = label, \
						    .size = what, \
						    .options = choices, \
						    .about = text, \
						    .example = sample, \
						    .min_dims = 1, \
						    .max_dims = 1, \
						    .build = id##_build }

/* clang-format off */
GPU_SYSTEM(dgx_a100, "dgx-a100", "NODES", "nodes of 8 A100, 8 NICs of 200 Gb/s",
	   "dgx-a100:16", NET_INFINIBAND, GPU_OPTIONS);
GPU_SYSTEM(dgx_h100, "dgx-h100", "NODES", "nodes of 8 H100, 8 NICs of 400 Gb/s",
	   "dgx-h100:128", NET_INFINIBAND, GPU_OPTIONS);
GPU_SYSTEM(dgx_h200, "dgx-h200", "NODES", "nodes of 8 H200, 8 NICs of 400 Gb/s",
	   "dgx-h200:128", NET_INFINIBAND, GPU_OPTIONS);
GPU_SYSTEM(dgx_b200, "dgx-b200", "NODES", "nodes of 8 B200, 8 NICs of 400 Gb/s",
	   "dgx-b200:64", NET_INFINIBAND, GPU_OPTIONS);
GPU_SYSTEM(gb200_nvl72, "gb200-nvl72", "RACKS", "racks of 72 GB200, a NIC of 400 Gb/s each",
	   "gb200-nvl72:8", NET_INFINIBAND, GPU_OPTIONS);
GPU_SYSTEM(slingshot_a100, "slingshot-a100", "NODES", "nodes of 4 A100, 2 Slingshot-11 NICs",
	   "slingshot-a100:64", NET_SLINGSHOT,
	   "routing=adaptive|hash leaf=NODES oversubscription=FACTOR");
/* clang-format on */
