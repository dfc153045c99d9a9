/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.c - hosts of CPU ranks: shared memory inside, TCP across. What a group
 * runs on, and what a probe measures.
 */
#include "fabric/topology.h"

#include <string.h>

/* Hosts in a row that have as many ranks are of one kind. */
static enum hk_status hosts_add(struct hk_fabric *fabric, uint32_t device, const uint32_t *sizes,
				uint32_t nhosts, struct hk_why *why)
{
	enum hk_status status = HK_OK;

	for (uint32_t i = 0, next; i < nhosts && status == HK_OK; i = next) {
		struct hk__node_kind kind = { .ranks = sizes[i], .nics = 1, .device = device };

		for (next = i; next < nhosts && sizes[next] == sizes[i]; next++)
			kind.count++;
		snprintf(kind.name, sizeof(kind.name), i ? "host%u" : "host", i);
		status = hk__fabric_add_nodes(fabric, &kind, why);
	}
	return status;
}

static enum hk_status hosts_build(struct hk_fabric *fabric, const uint32_t *sizes, uint32_t nhosts,
				  struct hk_why *why)
{
	struct hk__clos_shape shape = { .routing = HK__ROUTE_IDEAL };
	uint32_t device;
	enum hk_status status = hk__fabric_add_device(fabric, "cpu", why, &device);

	if (status == HK_OK)
		status = hk__fabric_add_wire(fabric, "shm", why, &fabric->wire_node);
	if (status == HK_OK)
		status = hk__fabric_add_wire(fabric, "tcp", why, &fabric->wire_net);
	if (status == HK_OK)
		status = hosts_add(fabric, device, sizes, nhosts, why);
	for (uint32_t i = 0; i < fabric->nnode_kinds && i < HK__NODE_KINDS_MAX; i++)
		shape.node[i] = (struct hk__clos_node){ .inside = fabric->node_kinds[i].ranks > 1
									  ? HK__INSIDE_MEMORY
									  : HK__INSIDE_NONE,
							.link = "memory",
							.nic = "nic" };
	if (status == HK_OK)
		status = hk__clos_build(fabric, &shape, why);
	return status == HK_OK ? hk__constants_list(fabric, why) : status;
}

/* ---- constants ---- */

/* "host3.nic.bw" is "nic.bw" too: hosts of several kinds have links of their own. */
static const char *plain_name(const struct hk__constant *constant)
{
	const char *dot = strchr(constant->name, '.');

	return dot && strchr(dot + 1, '.') ? dot + 1 : constant->name;
}

static void hosts_apply(struct hk_fabric *fabric, const struct hk__setting *settings, size_t n)
{
	for (size_t i = 0; i < fabric->constants.count; i++) {
		struct hk__constant *constant = hk__array_at(&fabric->constants, i);

		for (size_t k = 0; k < n; k++) {
			if (strcmp(plain_name(constant), settings[k].name) != 0)
				continue;
			enum hk_status status =
				hk__constant_set(fabric, constant, settings[k].value,
						 settings[k].source, NULL);
			hk_assert(status == HK_OK);
		}
	}
}

static const char measured[] = "measured by hocket probe on 2 cores of an AMD EPYC";
static const char performed[] = "what Hocket performs";
static const char assumed[] = "assumed, near what some plans took; hocket probe finds it";

static void links_set(struct hk_fabric *fabric)
{
	static const char follows[] = "no limit of its own: the wire's bytes say what copies cost";
	const struct hk__setting rows[] = {
		{ "memory.bw", 1e4, follows },
		{ "memory.delay", 0, follows },
		{ "nic.bw", 3.125, "assumed: 25 Gb/s Ethernet" },
		{ "nic.delay", 0, "within the flight of tcp" },
	};

	hosts_apply(fabric, rows, sizeof(rows) / sizeof(rows[0]));
}

struct hosts_curve {
	const char *name;
	struct hk__point points[7];
};

/*
 * As hocket probe writes it, where an exchange of two lines of cache took 50 ns; but
 * 512 KiB over TCP, on the line between its neighbours: a point for a probe to move.
 */
static const struct hosts_curve curves[] = {
	{ "shm.send",
	  { { 8, 59.31 }, { 632, 29.31 }, { 4096, 25.32 }, { 65536, 88.77 }, { -1, 0 } } },
	{ "shm.recv",
	  { { 8, 59.31 }, { 632, 29.31 }, { 4096, 25.32 }, { 65536, 88.77 }, { -1, 0 } } },
	{ "shm.flight",
	  { { 8, 10.76 }, { 632, 17.7 }, { 4096, 37.32 }, { 65536, 210.7 }, { -1, 0 } } },
	{ "shm.send-byte",
	  { { 32 << 10, 0.05858 },
	    { 256 << 10, 0.0446 },
	    { 2 << 20, 0.02595 },
	    { 16 << 20, 0.06901 },
	    { 128 << 20, 0.06016 },
	    { -1, 0 } } },
	{ "shm.recv-byte",
	  { { 32 << 10, 0.07905 },
	    { 256 << 10, 0.04511 },
	    { 2 << 20, 0.0169 },
	    { 16 << 20, 0.05329 },
	    { 128 << 20, 0.09903 },
	    { -1, 0 } } },
	{ "shm.fresh-byte",
	  { { 32 << 10, 0.005539 },
	    { 256 << 10, 0.009577 },
	    { 2 << 20, 0.005823 },
	    { 16 << 20, 0.006088 },
	    { 128 << 20, 0.003277 },
	    { -1, 0 } } },
	{ "tcp.send",
	  { { 8, 3534 }, { 4096, 3561 }, { 65536, 3975 }, { 1048576, 19510 }, { -1, 0 } } },
	{ "tcp.recv",
	  { { 8, 3534 }, { 4096, 3561 }, { 65536, 3975 }, { 1048576, 19510 }, { -1, 0 } } },
	{ "tcp.flight",
	  { { 8, 105.9 }, { 4096, 186 }, { 65536, 464.1 }, { 1048576, 1970 }, { -1, 0 } } },
	{ "tcp.send-byte",
	  { { 32 << 10, 0.2037 },
	    { 256 << 10, 0.1673 },
	    { 512 << 10, 0.1661 },
	    { 2 << 20, 0.1587 },
	    { 16 << 20, 0.1717 },
	    { 128 << 20, 0.1504 },
	    { -1, 0 } } },
	{ "tcp.recv-byte",
	  { { 32 << 10, 0.03966 },
	    { 256 << 10, 0.1227 },
	    { 512 << 10, 0.1185 },
	    { 2 << 20, 0.09324 },
	    { 16 << 20, 0.1391 },
	    { 128 << 20, 0.1761 },
	    { -1, 0 } } },
	{ "device.copy",
	  { { 32 << 10, 0.02365 },
	    { 256 << 10, 0.02312 },
	    { 2 << 20, 0.01938 },
	    { 16 << 20, 0.06258 },
	    { 128 << 20, 0.08946 },
	    { -1, 0 } } },
	{ "device.reduce",
	  { { 32 << 10, 0.09302 },
	    { 256 << 10, 0.04959 },
	    { 2 << 20, 0.02325 },
	    { 16 << 20, 0.06759 },
	    { 128 << 20, 0.06736 },
	    { -1, 0 } } },
};

/* Nobody has measured these by themselves. */
static const struct hosts_curve guesses[] = {
	{ "tcp.cold-byte",
	  { { 32 << 10, 0.01 },
	    { 256 << 10, 0.02 },
	    { 512 << 10, 0.02143 },
	    { 2 << 20, 0.03 },
	    { 16 << 20, 0.03 },
	    { 128 << 20, 0.03 },
	    { -1, 0 } } },
	{ "tcp.ahead-byte",
	  { { 32 << 10, 0.02 },
	    { 256 << 10, 0.02 },
	    { 512 << 10, 0.03143 },
	    { 2 << 20, 0.1 },
	    { 16 << 20, 0.2 },
	    { 128 << 20, 0.25 },
	    { -1, 0 } } },
};

void hk__hosts_costs(struct hk_fabric *fabric)
{
	const struct hk__cut_rule *shm = &hk__cut_shm, *tcp = &hk__cut_tcp;
	const struct hk__setting rows[] = {
		{ "shm.slots", shm->slots, performed },
		{ "shm.slot-bytes", shm->slot_bytes, performed },
		{ "shm.slice-bytes", shm->slice_bytes, performed },
		{ "shm.slices", shm->slices, performed },
		{ "tcp.slots", tcp->slots, performed },
		{ "tcp.slot-bytes", tcp->slot_bytes, performed },
		{ "tcp.slice-bytes", tcp->slice_bytes, performed },
		{ "tcp.slices", tcp->slices, performed },
		{ "device.call", 96.11, measured },
		{ "device.step", 3.406, measured },
		{ "device.serial", 1, "a rank is a thread" },
	};

	hosts_apply(fabric, rows, sizeof(rows) / sizeof(rows[0]));
	for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++)
		hk__curve_apply(fabric, curves[i].name, curves[i].points, measured);
	for (size_t i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++)
		hk__curve_apply(fabric, guesses[i].name, guesses[i].points, assumed);
}

/* How Hocket cuts is no property of machines: what a fabric says of it is not performed. */
static bool constant_cuts(const struct hk__constant *constant)
{
	const char *field = strrchr(constant->name, '.');

	return field && (strcmp(field, ".slots") == 0 || strcmp(field, ".slot-bytes") == 0 ||
			 strcmp(field, ".slices") == 0 || strcmp(field, ".slice-bytes") == 0);
}

/* Every constant that the other has too. */
static enum hk_status constants_take(struct hk_fabric *fabric, const struct hk_fabric *like,
				     struct hk_why *why)
{
	enum hk_status status = HK_OK;

	for (size_t i = 0; i < fabric->constants.count && status == HK_OK; i++) {
		struct hk__constant *own = hk__array_at(&fabric->constants, i);
		const struct hk__constant *its = hk__constant_find(like, own->name);

		if (constant_cuts(own))
			continue;
		if (!its)
			its = hk__constant_find(like, plain_name(own));
		const struct hk__curve *curve = its ? hk__constant_curve(like, its) : NULL;

		if (curve)
			status = hk__constant_set_curve(fabric, own, curve, its->source, why);
		else if (its)
			status = hk__constant_set(fabric, own, hk__constant_value(like, its),
						  its->source, why);
	}
	return status;
}

/* ---- more ranks than cores ---- */

/*
 * Until a rank has its turn, for each other one that shares its core: those that wait
 * look for messages in turn, and give the core away. With 8 ranks on 2 cores all but few
 * collectives up to 256 KiB then choose what measured fastest, or nearly.
 */
#define SWITCH_NS 1000.0

void hk__fabric_crowd(struct hk_fabric *fabric, uint32_t crowd)
{
	if (crowd <= 1)
		return;
	for (uint32_t i = 0; i < fabric->ndevices; i++)
		if (fabric->devices[i].cores)
			return; /* it knows, and was measured so */
	for (uint32_t i = 0; i < fabric->ndevices; i++) {
		fabric->devices[i].cores = (fabric->ranks + crowd - 1) / crowd;
		fabric->devices[i].switch_ns = SWITCH_NS * (crowd - 1);
	}
}

/* ---- the same numbers? ---- */

static uint32_t digest_add(uint32_t digest, double value)
{
	unsigned char bytes[sizeof(value)];

	memcpy(bytes, &value, sizeof(value));
	for (size_t i = 0; i < sizeof(bytes); i++)
		digest = (digest ^ bytes[i]) * 16777619u;
	return digest;
}

uint32_t hk__fabric_digest(const struct hk_fabric *fabric)
{
	uint32_t digest = 2166136261u;

	for (size_t i = 0; i < fabric->constants.count; i++) {
		const struct hk__constant *constant = hk__array_at(&fabric->constants, i);
		const struct hk__curve *curve = hk__constant_curve(fabric, constant);

		digest = digest_add(digest, hk__constant_value(fabric, constant));
		for (uint32_t k = 0; curve && k < curve->npoints; k++) {
			digest = digest_add(digest, curve->points[k].bytes);
			digest = digest_add(digest, curve->points[k].value);
		}
	}
	return digest;
}

/* ---- making one ---- */

enum hk_status hk_fabric_hosts(const struct hk_fabric *like, const uint32_t *sizes, uint32_t nhosts,
			       const struct hk_alloc *alloc, struct hk_why *why,
			       struct hk_fabric **fabric_out)
{
	struct hk_fabric *fabric;

	if (!sizes || !nhosts)
		return hk__why(why, HK_EINVAL, "a fabric has at least one host");
	enum hk_status status = hk__fabric_create(alloc, why, &fabric);
	if (status != HK_OK)
		return status;
	status = hosts_build(fabric, sizes, nhosts, why);
	if (status == HK_OK) {
		links_set(fabric);
		hk__hosts_costs(fabric);
		snprintf(fabric->name, sizeof(fabric->name), "hosts");
		snprintf(fabric->about, sizeof(fabric->about), "%u host%s, %u rank%s", nhosts,
			 nhosts == 1 ? "" : "s", fabric->ranks, fabric->ranks == 1 ? "" : "s");
	}
	if (status == HK_OK && like)
		status = constants_take(fabric, like, why);
	if (status != HK_OK) {
		hk_fabric_free(fabric);
		return status;
	}
	hk__fabric_settle(fabric);
	*fabric_out = fabric;
	return HK_OK;
}
