/* SPDX-License-Identifier: Apache-2.0 */
/* system_plain.c - fabrics that no vendor sells: a switch, a torus, a dragonfly; and hosts. */
#include "fabric/system.h"

#include <string.h>

#define GIVEN(otherwise) "asked for, or " otherwise

/* A message is a message: nothing costs but links, and nothing is cut. */
static void plain_set(struct hk_fabric *fabric)
{
	static const char source[] = "by definition: a message is not cut";
	char name[48];
	const struct {
		const char *field;
		double value;
	} fields[] = {
		{ "slots", 8 }, { "slices", 1 }, { "slot-bytes", 1e15 }, { "slice-bytes", 0 }
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct hk__setting row = { name, fields[i].value, source };

		snprintf(name, sizeof(name), "%s.%s", fabric->wires[0].name, fields[i].field);
		hk__constants_apply(fabric, &row, 1);
	}
}

struct plain {
	double bw, delay;
};

static enum hk_status plain_begin(const struct hk__system_args *args, struct hk_fabric *fabric,
				  const char *wire, struct plain *plain, struct hk_why *why)
{
	enum hk_status status = hk__system_number(args, "bw", 1e-6, 1e6, &plain->bw, why);
	uint32_t device;

	if (!status)
		status = hk__system_number(args, "delay", 0, 1e9, &plain->delay, why);
	if (!status)
		status = hk__fabric_add_device(fabric, "device", why, &device);
	if (!status)
		status = hk__fabric_add_wire(fabric, wire, why, &fabric->wire_net);
	return status;
}

/* ---- switch:DEVICES ---- */

static enum hk_status switch_build(const struct hk__system_args *args, struct hk_fabric *fabric,
				   struct hk_why *why)
{
	struct hk__node_kind kind = {
		.name = "device", .count = args->dims[0], .ranks = 1, .nics = 1
	};
	struct hk__clos_shape shape = { .node = {
						{ .inside = HK__INSIDE_NONE, .nic = "device" } } };
	struct plain plain = { 50, 500 };
	enum hk_status status = plain_begin(args, fabric, "switch", &plain, why);

	if (!status)
		status = hk__fabric_add_nodes(fabric, &kind, why);
	if (!status)
		status = hk__clos_build(fabric, &shape, why);
	if (!status)
		status = hk__constants_list(fabric, why);
	if (status)
		return status;
	const struct hk__setting rows[] = {
		{ "device.bw", plain.bw, GIVEN("50 GB/s") },
		{ "device.delay", plain.delay / 2, GIVEN("500 ns") ", in two halves" },
	};
	hk__constants_apply(fabric, rows, sizeof(rows) / sizeof(rows[0]));
	plain_set(fabric);
	snprintf(fabric->about, sizeof(fabric->about),
		 "%u devices on one switch, %g GB/s in and out, %g ns", fabric->ranks, plain.bw,
		 plain.delay);
	return HK_OK;
}

const struct hk__system hk__system_switch = {
	.name = "switch",
	.size = "DEVICES",
	.options = "bw=GB/s delay=NS",
	.about = "devices on one non-blocking switch",
	.example = "switch:16,bw=25",
	.min_dims = 1,
	.max_dims = 1,
	.build = switch_build,
};

/* ---- torus:XxYxZ ---- */

static enum hk_status torus_build(const struct hk__system_args *args, struct hk_fabric *fabric,
				  struct hk_why *why)
{
	struct plain plain = { 50, 500 };
	enum hk_status status = plain_begin(args, fabric, "torus", &plain, why);

	if (!status)
		status = hk__torus_build(fabric, args->dims, args->ndims, why);
	if (!status)
		status = hk__constants_list(fabric, why);
	if (status)
		return status;
	const struct hk__setting rows[] = {
		{ "torus.bw", plain.bw, GIVEN("50 GB/s") },
		{ "torus.delay", plain.delay, GIVEN("500 ns") },
	};
	hk__constants_apply(fabric, rows, sizeof(rows) / sizeof(rows[0]));
	plain_set(fabric);
	snprintf(fabric->about, sizeof(fabric->about),
		 "torus of %u devices in %u dimension%s, links of %g GB/s each way, %g ns a hop",
		 fabric->ranks, args->ndims, args->ndims == 1 ? "" : "s", plain.bw, plain.delay);
	return HK_OK;
}

const struct hk__system hk__system_torus = {
	.name = "torus",
	.size = "XxYxZ",
	.options = "bw=GB/s delay=NS",
	.about = "devices on a torus of up to 6 dimensions",
	.example = "torus:8x8x8",
	.min_dims = 1,
	.max_dims = HK__DIMS_MAX,
	.build = torus_build,
};

/* ---- dragonfly:GROUPSxROUTERSxDEVICES ---- */

static enum hk_status dragonfly_build(const struct hk__system_args *args, struct hk_fabric *fabric,
				      struct hk_why *why)
{
	struct plain plain = { 25, 350 };
	double global = 25;
	enum hk_status status = plain_begin(args, fabric, "dragonfly", &plain, why);

	if (!status)
		status = hk__system_number(args, "global", 1e-6, 1e6, &global, why);
	if (!status)
		status = hk__dragonfly_build(fabric, args->dims, why);
	if (!status)
		status = hk__constants_list(fabric, why);
	if (status)
		return status;
	static const char delay[] = GIVEN("350 ns, a switch of Slingshot (De Sensi et al., SC20)");
	const struct hk__setting rows[] = {
		{ "device.bw", plain.bw, GIVEN("25 GB/s, Slingshot-11") },
		{ "device.delay", plain.delay / 2, delay },
		{ "local.bw", plain.bw, GIVEN("25 GB/s, Slingshot-11") },
		{ "local.delay", plain.delay, delay },
		{ "global.bw", global, GIVEN("25 GB/s, Slingshot-11") },
		{ "global.delay", plain.delay, delay },
	};
	hk__constants_apply(fabric, rows, sizeof(rows) / sizeof(rows[0]));
	plain_set(fabric);
	snprintf(fabric->about, sizeof(fabric->about),
		 "dragonfly of %u groups of %u routers of %u devices, minimal routing",
		 args->dims[0], args->dims[1], args->dims[2]);
	return HK_OK;
}

const struct hk__system hk__system_dragonfly = {
	.name = "dragonfly",
	.size = "GROUPSxROUTERSxDEVICES",
	.options = "bw=GB/s delay=NS global=GB/s",
	.about = "groups of routers, all connected to all",
	.example = "dragonfly:9x4x2",
	.min_dims = 3,
	.max_dims = 3,
	.build = dragonfly_build,
};

/* ---- tcp-cluster:HOSTS ---- */

static const char *const net_choices[] = { "10GbE", "25GbE", "100GbE", NULL };
static const double net_speeds[] = { 1.25, 3.125, 12.5 };

void hk__cpu_apply(struct hk_fabric *fabric, double nic, const char *nic_source)
{
	const struct hk__setting rows[] = {
		{ "memory.bw", 100, "assumed: eight channels of DDR4, half of their speed" },
		{ "memory.delay", 0, "assumed: within the wire's flight" },
		{ "nic.bw", nic, nic_source },
		{ "nic.efficiency", 0.94,
		  "Ethernet, IP and TCP headers at 1500 bytes: 1448 of 1538" },
		{ "nic.delay", 1000, "assumed: half of a store-and-forward switch" },
		{ "leaf.bw", nic, "assumed: as a NIC" },
		{ "leaf.efficiency", 0.94, "assumed: as a NIC" },
		{ "leaf.delay", 1000, "assumed" },
	};

	hk__hosts_costs(fabric);
	hk__constants_apply(fabric, rows, sizeof(rows) / sizeof(rows[0]));
}

static enum hk_status tcp_build(const struct hk__system_args *args, struct hk_fabric *fabric,
				struct hk_why *why)
{
	double ranks = 1, leaf = 0;
	uint32_t net = 0, device;
	enum hk_status status = hk__system_number(args, "ranks", 1, 4096, &ranks, why);

	if (!status)
		status = hk__system_number(args, "leaf", 1, HK_FABRIC_RANKS_MAX, &leaf, why);
	if (!status)
		status = hk__system_choice(args, "net", net_choices, &net, why);
	if (!status)
		status = hk__fabric_add_device(fabric, "cpu", why, &device);
	if (!status)
		status = hk__fabric_add_wire(fabric, "shm", why, &fabric->wire_node);
	if (!status)
		status = hk__fabric_add_wire(fabric, "tcp", why, &fabric->wire_net);
	struct hk__node_kind kind = {
		.name = "host", .count = args->dims[0], .ranks = (uint32_t)ranks, .nics = 1
	};
	struct hk__clos_shape shape = {
		.node = { { .inside = ranks > 1 ? HK__INSIDE_MEMORY : HK__INSIDE_NONE,
			    .link = "memory",
			    .nic = "nic" } },
		.leaf_nodes = leaf < args->dims[0] ? (uint32_t)leaf : 0,
		.routing = HK__ROUTE_HASH,
	};
	if (!status)
		status = hk__fabric_add_nodes(fabric, &kind, why);
	if (!status)
		status = hk__clos_build(fabric, &shape, why);
	if (!status)
		status = hk__constants_list(fabric, why);
	if (status)
		return status;
	hk__cpu_apply(fabric, net_speeds[net], "asked for, or 10 Gb/s");
	snprintf(fabric->gpu.net, sizeof(fabric->gpu.net), "tcp");
	snprintf(fabric->about, sizeof(fabric->about), "%u host%s of %u rank%s, %g Gb/s Ethernet",
		 fabric->nodes, fabric->nodes == 1 ? "" : "s", kind.ranks,
		 kind.ranks == 1 ? "" : "s", 8 * net_speeds[net]);
	return HK_OK;
}

const struct hk__system hk__system_tcp_cluster = {
	.name = "tcp-cluster",
	.size = "HOSTS",
	.options = "ranks=RANKS net=10GbE|25GbE|100GbE leaf=HOSTS",
	.about = "hosts on Ethernet, ranks on cores",
	.example = "tcp-cluster:8,ranks=4",
	.min_dims = 1,
	.max_dims = 1,
	.build = tcp_build,
};
