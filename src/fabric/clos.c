/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clos.c - nodes below leaf switches, pods and a core.
 *
 *	            core                    pod.up, pod.down     one bundle a pod
 *	   /         |         \
 *	 spines    spines    spines         leaf.up, leaf.down   one bundle a leaf
 *	 / | \      / | \     / | \
 *	leaf ...  leaf ...  leaf ...        nic.out, nic.in
 *	 |  \
 *	node node ...                       nvlink.out, nvlink.in, or what is inside
 *
 * With rails there is a leaf switch for every NIC of a node: the NICs of the same
 * number, of `leaf_nodes` nodes. Two of other numbers, even of one node's
 * neighbour, meet above it. A path is arithmetic on ranks.
 */
#include "fabric/topology.h"

#include <string.h>

struct clos_kinds {	  /* indices of kinds of links, of a node kind */
	uint32_t out, in; /* inside; one and the same where memory is shared */
	uint32_t pcie_out, pcie_in;
	uint32_t nic_out, nic_in;
	uint32_t rails; /* NICs that devices tell apart */
	uint32_t share; /* devices of a NIC */
};

struct clos {
	struct hk__clos_shape shape;
	struct clos_kinds kinds[HK__NODE_KINDS_MAX];
	uint32_t leaf_up, leaf_down, pod_up, pod_down;
};

/* ---- paths ---- */

struct place {
	const struct clos_kinds *kinds;
	const struct hk__clos_node *shape;
	uint32_t at, at_node; /* among the devices, and nodes, of its node kind */
	uint32_t node, local;
	uint32_t rail;
};

static struct place place_of(const struct hk_fabric *fabric, const struct clos *clos, uint32_t rank)
{
	const struct hk__node_kind *kind = hk__fabric_node_kind(fabric, rank);
	size_t i = (size_t)(kind - fabric->node_kinds);
	uint32_t at = rank - kind->first_rank;
	struct place place = {
		.kinds = &clos->kinds[i],
		.shape = &clos->shape.node[i],
		.at = at,
		.at_node = at / kind->ranks,
		.node = kind->first_node + at / kind->ranks,
		.local = at % kind->ranks,
	};

	place.rail = clos->shape.rails ? place.local / place.kinds->share : 0;
	return place;
}

static void path_inside(const struct hk_fabric *fabric, const struct place *a,
			const struct place *b, struct hk__path *path)
{
	switch (a->shape->inside) {
	case HK__INSIDE_SWITCH:
		hk__path_add(fabric, path, a->kinds->out, a->at, 0);
		hk__path_add(fabric, path, b->kinds->in, b->at, 0);
		break;
	case HK__INSIDE_PAIRS:
		hk__path_add(fabric, path, a->kinds->out, a->at, b->local);
		break;
	case HK__INSIDE_MEMORY:
		hk__path_add(fabric, path, a->kinds->out, a->at_node, 0);
		break;
	case HK__INSIDE_NONE:
		break;
	}
}

static void path_above(const struct hk_fabric *fabric, const struct clos *clos,
		       const struct place *a, const struct place *b, struct hk__path *path)
{
	uint32_t leaf = clos->shape.leaf_nodes, pod = clos->shape.pod_nodes;

	if (!leaf || (a->node / leaf == b->node / leaf && a->rail == b->rail))
		return;
	hk__path_add(fabric, path, clos->leaf_up, a->node / leaf, a->rail);
	if (pod && a->node / pod != b->node / pod) {
		hk__path_add(fabric, path, clos->pod_up, a->node / pod, 0);
		hk__path_add(fabric, path, clos->pod_down, b->node / pod, 0);
	}
	hk__path_add(fabric, path, clos->leaf_down, b->node / leaf, b->rail);
}

static void clos_path(const struct hk_fabric *fabric, uint32_t from, uint32_t to,
		      struct hk__path *path_out)
{
	const struct clos *clos = fabric->net;
	struct place a = place_of(fabric, clos, from), b = place_of(fabric, clos, to);

	if (a.node == b.node) {
		path_inside(fabric, &a, &b, path_out);
		return;
	}
	path_out->wire = fabric->wire_net;
	if (a.shape->pcie)
		hk__path_add(fabric, path_out, a.kinds->pcie_out, a.at, 0);
	hk__path_add(fabric, path_out, a.kinds->nic_out, a.at / a.kinds->share, 0);
	path_above(fabric, clos, &a, &b, path_out);
	hk__path_add(fabric, path_out, b.kinds->nic_in, b.at / b.kinds->share, 0);
	if (b.shape->pcie)
		hk__path_add(fabric, path_out, b.kinds->pcie_in, b.at, 0);
}

/* ---- what is alike ---- */

/* Sizes, in ranks, within which ranks are closer to each other than to others. */
static uint32_t clos_blocks(const struct hk_fabric *fabric, uint32_t n, uint32_t *blocks_out)
{
	const struct clos *clos = fabric->net;
	const struct hk__node_kind *node = &fabric->node_kinds[0];
	uint32_t count = 0;

	if (n <= node->ranks)
		return 0;
	blocks_out[count++] = node->ranks;
	if (clos->shape.leaf_nodes && n > clos->shape.leaf_nodes * node->ranks)
		blocks_out[count++] = clos->shape.leaf_nodes * node->ranks;
	if (clos->shape.pod_nodes && n > clos->shape.pod_nodes * node->ranks)
		blocks_out[count++] = clos->shape.pod_nodes * node->ranks;
	return count;
}

static uint32_t clos_levels(const struct hk_fabric *fabric, uint32_t n,
			    uint32_t levels_out[HK__LEVELS_MAX])
{
	levels_out[0] = 1;
	return 1 + clos_blocks(fabric, n, levels_out + 1);
}

static bool clos_turns(const struct hk_fabric *fabric, uint32_t n, uint32_t node)
{
	const struct clos *clos = fabric->net;
	uint32_t devices = fabric->node_kinds[0].ranks, share = clos->kinds[0].share;

	if (n <= devices)
		return n % node == 0;
	return n % devices == 0 && devices % node == 0 && (share == 1 || share % node == 0);
}

static bool is_pow2(uint32_t x)
{
	return (x & (x - 1)) == 0;
}

static bool clos_allows(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry)
{
	const struct clos *clos = fabric->net;
	const struct hk__node_kind *node = &fabric->node_kinds[0];
	uint32_t blocks[HK__LEVELS_MAX], unit = symmetry->unit, n = symmetry->n;

	if (n > node->count * node->ranks || (fabric->nnode_kinds > 1 && clos->shape.leaf_nodes))
		return false;
	if (symmetry->inner && !clos_turns(fabric, n, symmetry->node))
		return false;
	if (symmetry->outer == HK__OUTER_NONE || n <= node->ranks)
		return true;
	uint32_t count = clos_blocks(fabric, n, blocks);
	if (symmetry->outer == HK__OUTER_XOR)
		blocks[count++] = clos->kinds[0].share;
	/* Whole blocks move, or, by exclusive or, go into each other's places. */
	for (uint32_t i = 0; i < count; i++)
		if (unit % blocks[i] &&
		    (symmetry->outer != HK__OUTER_XOR || !is_pow2(blocks[i]) || n % blocks[i]))
			return false;
	return true;
}

/* ---- making one ---- */

static enum hk_status pair_add(struct hk_fabric *fabric, const struct hk__kind_shape *shape,
			       const char *base, const char *const ends[2], struct hk_why *why,
			       uint32_t *first_out)
{
	struct hk__kind_shape end = *shape;
	char name[32];
	enum hk_status status = HK_OK;
	uint32_t index;

	end.name = name;
	for (int i = 0; i < 2 && !status; i++) {
		snprintf(name, sizeof(name), "%s.%s", base, ends[i]);
		status = hk__fabric_add_kind(fabric, &end, why, &index);
		if (!status && i == 0)
			*first_out = index;
	}
	return status;
}

static const char *const out_in[2] = { "out", "in" }, *const up_down[2] = { "up", "down" };

static enum hk_status inside_build(struct hk_fabric *fabric, const struct hk__clos_node *node,
				   struct hk__kind_shape shape, uint32_t devices,
				   struct clos_kinds *kinds, struct hk_why *why)
{
	char name[32];
	enum hk_status status = HK_OK;

	snprintf(name, sizeof(name), "%s.link", node->link);
	shape.name = name;
	switch (node->inside) {
	case HK__INSIDE_SWITCH:
		status = pair_add(fabric, &shape, node->link, out_in, why, &kinds->out);
		kinds->in = kinds->out + 1;
		break;
	case HK__INSIDE_PAIRS:
		shape.per_owner = devices;
		shape.member = HK__MEMBER_PEER;
		status = hk__fabric_add_kind(fabric, &shape, why, &kinds->out);
		break;
	case HK__INSIDE_MEMORY:
		shape.owners /= devices;
		shape.owner_ranks = devices;
		status = hk__fabric_add_kind(fabric, &shape, why, &kinds->out);
		break;
	case HK__INSIDE_NONE:
		break;
	}
	return status;
}

static enum hk_status node_build(struct hk_fabric *fabric, struct clos *clos, uint32_t i,
				 struct hk_why *why)
{
	const struct hk__node_kind *node = &fabric->node_kinds[i];
	const struct hk__clos_node *inside = &clos->shape.node[i];
	struct clos_kinds *kinds = &clos->kinds[i];
	char prefix[40] = "";
	struct hk__kind_shape shape = {
		.prefix = prefix,
		.owners = (uint64_t)node->count * node->ranks,
		.per_owner = 1,
		.owner_ranks = 1,
		.first_rank = node->first_rank,
	};

	if (fabric->nnode_kinds > 1)
		snprintf(prefix, sizeof(prefix), "%s.", node->name);
	if (node->ranks > 1 && inside->inside == HK__INSIDE_NONE)
		return hk__why(why, HK_EINVAL, "nodes of %u devices need links inside",
			       node->ranks);
	enum hk_status status = inside_build(fabric, inside, shape, node->ranks, kinds, why);
	kinds->rails = kinds->share = 1;
	if (status || (!node->nics && fabric->nodes == 1))
		return status;
	if (!node->nics || (node->ranks % node->nics && node->nics % node->ranks))
		return hk__why(why, HK_EINVAL,
			       "%u NICs for %u devices of a node: one number must divide the other",
			       node->nics, node->ranks);
	if (inside->pcie)
		status = pair_add(fabric, &shape, "pcie", out_in, why, &kinds->pcie_out);
	kinds->pcie_in = kinds->pcie_out + 1;
	kinds->rails = hk__min(node->nics, node->ranks);
	kinds->share = node->ranks / kinds->rails;
	shape.owners = (uint64_t)node->count * kinds->rails;
	shape.owner_ranks = kinds->share;
	shape.wires = node->nics > node->ranks ? node->nics / node->ranks : 0;
	if (!status)
		status = pair_add(fabric, &shape, inside->nic, out_in, why, &kinds->nic_out);
	kinds->nic_in = kinds->nic_out + 1;
	return status;
}

/* Wires that go up from below a switch, if none are saved. */
static uint32_t clos_nics(const struct hk_fabric *fabric)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < fabric->nnode_kinds; i++)
		most = hk__max(most, fabric->node_kinds[i].nics);
	return most;
}

static enum hk_status tiers_build(struct hk_fabric *fabric, struct clos *clos, struct hk_why *why)
{
	uint32_t leaf = clos->shape.leaf_nodes, pod = clos->shape.pod_nodes, rails = 1;
	uint32_t ranks = fabric->nnode_kinds == 1 ? fabric->node_kinds[0].ranks : 0;
	enum hk_status status;

	if (!leaf)
		return HK_OK;
	for (uint32_t i = 0; i < fabric->nnode_kinds && clos->shape.rails; i++)
		rails = hk__max(rails, clos->kinds[i].rails);
	struct hk__kind_shape shape = {
		.owners = (fabric->nodes + leaf - 1) / leaf,
		.per_owner = rails,
		.owner_ranks = leaf * ranks,
		.member = HK__MEMBER_RAIL,
		.wires = (double)leaf * clos_nics(fabric) / rails,
		.routing = clos->shape.routing,
	};
	status = pair_add(fabric, &shape, "leaf", up_down, why, &clos->leaf_up);
	clos->leaf_down = clos->leaf_up + 1;
	if (status || !pod)
		return status;
	shape.owners = (fabric->nodes + pod - 1) / pod;
	shape.per_owner = 1;
	shape.owner_ranks = pod * ranks;
	shape.member = HK__MEMBER_FIXED;
	shape.wires = (double)pod * clos_nics(fabric);
	status = pair_add(fabric, &shape, "pod", up_down, why, &clos->pod_up);
	clos->pod_down = clos->pod_up + 1;
	return status;
}

/* ---- as text ---- */

static void nic_draw(const struct hk_fabric *fabric, const struct clos *clos, uint32_t i,
		     uint32_t depth, FILE *file)
{
	const struct clos_kinds *kinds = &clos->kinds[i];

	if (clos->shape.node[i].inside != HK__INSIDE_NONE)
		hk__draw_line(file, depth++, "%u x NIC%s", kinds->rails,
			      kinds->share > 1 ? ", shared" : "");
	hk__draw_kind(fabric, file, depth, kinds->nic_out, NULL);
}

/* `above`: nodes below one switch, where all that follow are alike; 0: in all. */
static void node_draw(const struct hk_fabric *fabric, const struct clos *clos, uint32_t i,
		      uint32_t above, uint32_t depth, FILE *file)
{
	const struct hk__node_kind *node = &fabric->node_kinds[i];
	const struct hk__clos_node *shape = &clos->shape.node[i];
	const struct clos_kinds *kinds = &clos->kinds[i];
	const char *device = fabric->devices[node->device].type;

	hk__draw_line(file, depth, "%u x %s%s", above ? above : node->count,
		      shape->inside == HK__INSIDE_NONE ? device : node->name,
		      above || fabric->nodes == node->count ? "" : " in all");
	if (shape->inside != HK__INSIDE_NONE) {
		hk__draw_line(file, depth + 1, "%u x %s", node->ranks, device);
		hk__draw_kind(fabric, file, depth + 2, kinds->out,
			      shape->inside == HK__INSIDE_SWITCH  ? "to a switch inside"
			      : shape->inside == HK__INSIDE_PAIRS ? "to every other"
								  : "shared by all");
	}
	if (shape->pcie && node->nics)
		hk__draw_kind(fabric, file, depth + 2, kinds->pcie_out, "to its NIC");
	if (node->nics)
		nic_draw(fabric, clos, i, depth + 1, file);
}

/* How many of `size` there are in `of` of the same; the last may have fewer. */
static uint32_t tier_draw(FILE *file, uint32_t depth, uint32_t of, uint32_t size, const char *name)
{
	uint32_t count = (of + size - 1) / size;

	hk__draw_line(file, depth, "%u x %s%s", count, name,
		      of % size && count > 1 ? ", the last with fewer nodes" : "");
	return hk__min(size, of);
}

static void clos_draw(const struct hk_fabric *fabric, FILE *file)
{
	const struct clos *clos = fabric->net;
	const struct hk__clos_shape *shape = &clos->shape;
	uint32_t depth = 1, nodes = fabric->nodes;
	char name[64];

	fputs(shape->pod_nodes	  ? "core\n"
	      : shape->leaf_nodes ? "spine\n"
	      : fabric->nodes > 1 ? "switch\n"
				  : "machine\n",
	      file);
	if (shape->pod_nodes) {
		nodes = tier_draw(file, depth++, nodes, shape->pod_nodes, "pod");
		hk__draw_kind(fabric, file, depth, clos->pod_up, NULL);
	}
	if (shape->leaf_nodes) {
		uint32_t rails = fabric->kinds[clos->leaf_up].per_owner;

		snprintf(name, sizeof(name), "leaf");
		if (rails > 1)
			snprintf(name, sizeof(name), "leaf of %u switches, one for each rail",
				 rails);
		nodes = tier_draw(file, depth++, nodes, shape->leaf_nodes, name);
		hk__draw_kind(fabric, file, depth, clos->leaf_up, NULL);
	}
	for (uint32_t i = 0; i < fabric->nnode_kinds; i++)
		node_draw(fabric, clos, i, fabric->nnode_kinds == 1 ? nodes : 0, depth, file);
}

static const char *const inside_names[] = { "none", "switch", "pairs", "memory" };

static void clos_write(const struct hk_fabric *fabric, FILE *file)
{
	const struct clos *clos = fabric->net;
	const struct hk__clos_shape *shape = &clos->shape;

	fprintf(file, "  kind: clos\n");
	if (shape->leaf_nodes)
		fprintf(file, "  leaf-nodes: %u\n", shape->leaf_nodes);
	if (shape->pod_nodes)
		fprintf(file, "  pod-nodes: %u\n", shape->pod_nodes);
	fprintf(file, "  rails: %s\n  routing: %s\n", shape->rails ? "true" : "false",
		shape->routing == HK__ROUTE_HASH ? "hash" : "adaptive");
	fputs("nodes:\n", file);
	for (uint32_t i = 0; i < fabric->nnode_kinds; i++) {
		const struct hk__node_kind *node = &fabric->node_kinds[i];
		const struct hk__clos_node *in = &shape->node[i];

		fprintf(file, "- name: %s\n  count: %u\n  devices: %u\n  device: %s\n", node->name,
			node->count, node->ranks, fabric->devices[node->device].type);
		fprintf(file, "  inside: %s\n", inside_names[in->inside]);
		if (in->inside != HK__INSIDE_NONE)
			fprintf(file, "  link: %s\n", in->link);
		fprintf(file, "  nics: %u\n", node->nics);
		if (node->nics)
			fprintf(file, "  nic: %s\n  pcie: %s\n", in->nic,
				in->pcie ? "true" : "false");
	}
}

static void clos_close(struct hk_fabric *fabric)
{
	hk__mem_free(fabric->alloc, fabric->net, 1, sizeof(struct clos));
}

static const struct hk__fabric_ops clos_ops = {
	.name = "clos",
	.path = clos_path,
	.allows = clos_allows,
	.levels = clos_levels,
	.draw = clos_draw,
	.write = clos_write,
	.close = clos_close,
};

enum hk_status hk__clos_build(struct hk_fabric *fabric, const struct hk__clos_shape *shape,
			      struct hk_why *why)
{
	enum hk_status status = HK_OK;

	if (fabric->nnode_kinds > HK__NODE_KINDS_MAX)
		return hk__why(why, HK_ELIMIT, "%u kinds of nodes: up to %u", fabric->nnode_kinds,
			       HK__NODE_KINDS_MAX);
	if (shape->pod_nodes && (!shape->leaf_nodes || shape->pod_nodes % shape->leaf_nodes))
		return hk__why(why, HK_EINVAL, "a pod of %u nodes is not made of leaves of %u",
			       shape->pod_nodes, shape->leaf_nodes);
	struct clos *clos = hk__mem_zalloc(fabric->alloc, 1, sizeof(*clos));
	if (!clos)
		return hk__why(why, HK_ENOMEM, "out of memory for a network");
	clos->shape = *shape;
	if (fabric->nodes <= shape->pod_nodes)
		clos->shape.pod_nodes = 0;
	fabric->net = clos;
	fabric->ops = &clos_ops;
	for (uint32_t i = 0; i < fabric->nnode_kinds && !status; i++)
		status = node_build(fabric, clos, i, why);
	return status ? status : tiers_build(fabric, clos, why);
}
