/* SPDX-License-Identifier: Apache-2.0 */
/* file_net.c - a fabric from its file: nodes, and the network between them. */
#include "fabric/file/file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
	NET_CLOS,
	NET_TORUS,
	NET_DRAGONFLY,
	NET_GRAPH
};
static const char *const net_kinds[] = { "clos", "torus", "dragonfly", "graph", NULL };

/* ---- nodes ---- */

static enum hk_status node_topology(struct hk__file *file, yaml_node_t *node, uint32_t i,
				    struct hk__node_kind *kind, struct hk__clos_node *shape)
{
	struct hk__yaml *yaml = &file->yaml;
	yaml_node_t *name = hk__yaml_get(yaml, node, "nccl-topology");
	struct hk__nccl_node found;
	char path[768];

	if (!name)
		return HK_OK;
	if (!file->found)
		return hk__yaml_wrong(yaml, name, "expected nccl-topology in a clos network only");
	const char *text = hk__yaml_text(name);
	if (!text || !*text || strlen(text) > 200)
		return hk__yaml_wrong(yaml, name, "expected the name of a file for nccl-topology");
	if (!file->folder)
		return hk__yaml_wrong(yaml, name,
				      "expected no nccl-topology in a text that is not a file");
	snprintf(path, sizeof(path), "%s%s", *text == '/' ? "" : file->folder, text);
	enum hk_status status =
		hk__yaml_blame(yaml, name,
			       hk__nccl_topology(path, file->fabric->alloc, yaml->why, &found));
	if (status)
		return status;
	kind->ranks = found.gpus;
	kind->nics = found.nics;
	shape->inside = found.inside;
	/* Without NVLink, PCIe is what joins devices. */
	shape->pcie = found.pcie > 0 && found.nvlink > 0;
	snprintf(shape->link, sizeof(shape->link), found.nvlink > 0 ? "nvlink" : "pcie");
	file->found[i] = found;
	return HK_OK;
}

static void found_set(struct hk__file *file, uint32_t i, const char *name, double value)
{
	const struct hk_fabric *fabric = file->fabric;
	char full[64];
	const struct hk__setting row = {
		full, value, "NCCL's topology file, with the speeds of NCCL 2.30.7 topo.h"
	};

	if (fabric->nnode_kinds > 1)
		snprintf(full, sizeof(full), "%.30s.%s", fabric->node_kinds[i].name, name);
	else
		snprintf(full, sizeof(full), "%s", name);
	if (value > 0)
		hk__constants_apply(file->fabric, &row, 1);
}

/* What topology files said is there before the numbers of this file are. */
static void found_apply(struct hk__file *file)
{
	struct hk__gpu_system *gpu = &file->fabric->gpu;

	for (uint32_t i = 0; i < file->fabric->nnode_kinds && i < HK__NODE_KINDS_MAX; i++) {
		const struct hk__nccl_node *found = &file->found[i];

		if (!found->gpus)
			continue;
		found_set(file, i, "nvlink.bw", found->nvlink);
		found_set(file, i, "pcie.bw", found->pcie);
		found_set(file, i, "nic.bw", found->nic);
		*gpu = (struct hk__gpu_system){
			.nvlink_gbps = found->nvlink *
				       (found->inside == HK__INSIDE_PAIRS ? found->gpus - 1 : 1),
			.nvswitch = found->inside == HK__INSIDE_SWITCH && found->nvlink > 0,
			.nics = found->nics,
			.nic_gbps = found->nic,
		};
		snprintf(gpu->arch, sizeof(gpu->arch), "%s",
			 found->sm >= 100  ? "blackwell"
			 : found->sm >= 90 ? "hopper"
			 : found->sm >= 80 ? "ampere"
			 : found->sm >= 70 ? "volta"
					   : "");
		gpu->nvls = gpu->nvswitch && found->sm >= 90;
		snprintf(gpu->cpu, sizeof(gpu->cpu), "%s", found->cpu);
	}
}

static enum hk_status node_read(struct hk__file *file, yaml_node_t *node, uint32_t i,
				struct hk__node_kind *kind, struct hk__clos_node *shape)
{
	static const char *const keys[] = { "name",   "count",	       "devices", "device",
					    "inside", "link",	       "nics",	  "nic",
					    "pcie",   "nccl-topology", NULL };
	static const char *const insides[] = { "none", "switch", "pairs", "memory", NULL };
	struct hk__yaml *yaml = &file->yaml;
	enum hk_status status = hk__yaml_mapping(yaml, node, "nodes", keys);
	uint32_t inside = HK__INSIDE_NONE;

	*kind = (struct hk__node_kind){ .name = "node", .count = 1, .ranks = 1, .nics = 1 };
	*shape = (struct hk__clos_node){ .link = "link", .nic = "nic" };
	if (!status)
		status = node_topology(file, node, i, kind, shape);
	if (!status)
		status = hk__yaml_name(yaml, node, "name", kind->name, sizeof(kind->name));
	if (!status)
		status = hk__yaml_count(yaml, node, "count", 1, HK_FABRIC_RANKS_MAX, &kind->count);
	if (!status)
		status = hk__yaml_count(yaml, node, "devices", 1, 65536, &kind->ranks);
	if (!status)
		status = hk__file_device(file, node, "device", &kind->device);
	if (!status)
		status = hk__yaml_count(yaml, node, "nics", 0, 65536, &kind->nics);
	if (!status)
		status = hk__yaml_name(yaml, node, "link", shape->link, sizeof(shape->link));
	if (!status)
		status = hk__yaml_name(yaml, node, "nic", shape->nic, sizeof(shape->nic));
	if (!status)
		status = hk__yaml_bool(yaml, node, "pcie", &shape->pcie);
	if (!status)
		status = hk__yaml_choice(yaml, node, "inside", insides, &inside);
	if (hk__yaml_get(yaml, node, "inside"))
		shape->inside = (enum hk__inside)inside;
	return status;
}

/* One mapping, or a list of them. */
static enum hk_status nodes_read(struct hk__file *file, struct hk__clos_node *shapes, uint32_t max)
{
	struct hk__yaml *yaml = &file->yaml;
	yaml_node_t *nodes = hk__yaml_get(yaml, file->root, "nodes");
	bool list = nodes && nodes->type == YAML_SEQUENCE_NODE;
	uint32_t n = list ? hk__yaml_length(nodes) : 1;
	enum hk_status status = HK_OK;

	if (!nodes)
		return hk__yaml_wrong(yaml, file->root, "expected nodes, or a base");
	if (n == 0 || n > max)
		return hk__yaml_wrong(yaml, nodes, "expected 1 to %u kinds of nodes, found %u", max,
				      n);
	for (uint32_t i = 0; i < n && !status; i++) {
		yaml_node_t *node = list ? hk__yaml_item(yaml, nodes, i) : nodes;
		struct hk__clos_node unused = { .pcie = false };
		struct hk__clos_node *shape = shapes ? &shapes[i] : &unused;
		struct hk__node_kind kind;

		status = node_read(file, node, i, &kind, shape);
		if (!status)
			status = hk__yaml_blame(yaml, node,
						hk__fabric_add_nodes(file->fabric, &kind,
								     yaml->why));
	}
	return status;
}

/* ---- networks ---- */

static enum hk_status clos_read(struct hk__file *file, yaml_node_t *net)
{
	static const char *const keys[] = { "kind",    "leaf-nodes", "pod-nodes",   "rails",
					    "routing", "wire",	     "wire-inside", NULL };
	static const char *const routings[] = { "adaptive", "hash", NULL };
	struct hk__yaml *yaml = &file->yaml;
	struct hk__clos_shape shape = { .rails = true };
	struct hk__nccl_node found[HK__NODE_KINDS_MAX] = { { .gpus = 0 } };
	uint32_t routing = 0;
	enum hk_status status = hk__yaml_mapping(yaml, net, "a clos network", keys);

	file->found = found;
	if (!status)
		status = nodes_read(file, shape.node, HK__NODE_KINDS_MAX);
	if (!status)
		status = hk__yaml_count(yaml, net, "leaf-nodes", 0, 1u << 20, &shape.leaf_nodes);
	if (!status)
		status = hk__yaml_count(yaml, net, "pod-nodes", 0, 1u << 20, &shape.pod_nodes);
	if (!status)
		status = hk__yaml_bool(yaml, net, "rails", &shape.rails);
	if (!status)
		status = hk__yaml_choice(yaml, net, "routing", routings, &routing);
	shape.routing = routing ? HK__ROUTE_HASH : HK__ROUTE_IDEAL;
	if (!status)
		status = hk__yaml_blame(yaml, net, hk__clos_build(file->fabric, &shape, yaml->why));
	if (!status)
		status = hk__yaml_blame(yaml, net, hk__constants_list(file->fabric, yaml->why));
	if (!status)
		found_apply(file);
	file->found = NULL;
	return status;
}

static enum hk_status torus_read(struct hk__file *file, yaml_node_t *net)
{
	static const char *const keys[] = { "kind", "dimensions", "wire", "wire-inside", NULL };
	struct hk__yaml *yaml = &file->yaml;
	uint32_t dims[HK__DIMS_MAX];
	enum hk_status status = hk__yaml_mapping(yaml, net, "a torus", keys);

	if (status)
		return status;
	yaml_node_t *list = hk__yaml_get(yaml, net, "dimensions");
	uint32_t n = list ? hk__yaml_length(list) : 0;
	bool good = list && list->type == YAML_SEQUENCE_NODE && n > 0 && n <= HK__DIMS_MAX;
	for (uint32_t i = 0; i < n && good; i++) {
		const char *text = hk__yaml_text(hk__yaml_item(yaml, list, i));
		char *end = NULL;
		unsigned long value =
			text && isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

		good = end && !*end && value > 0 && value <= HK_FABRIC_RANKS_MAX;
		dims[i] = (uint32_t)value;
	}
	if (!good)
		return hk__yaml_wrong(yaml, list ? list : net,
				      "expected dimensions: a list of 1 to %u numbers",
				      HK__DIMS_MAX);
	return hk__yaml_blame(yaml, net, hk__torus_build(file->fabric, dims, n, yaml->why));
}

static enum hk_status dragonfly_read(struct hk__file *file, yaml_node_t *net)
{
	static const char *const keys[] = { "kind", "groups",	   "routers", "devices",
					    "wire", "wire-inside", NULL };
	struct hk__yaml *yaml = &file->yaml;
	uint32_t sizes[3] = { 0 };
	enum hk_status status = hk__yaml_mapping(yaml, net, "a dragonfly", keys);

	for (uint32_t i = 0; i < 3 && !status; i++) {
		status = hk__yaml_count(yaml, net, keys[1 + i], 1, 1u << 20, &sizes[i]);
		if (!status && !sizes[i])
			status = hk__yaml_wrong(yaml, net, "expected groups, routers and devices");
	}
	return status ? status
		      : hk__yaml_blame(yaml, net,
				       hk__dragonfly_build(file->fabric, sizes, yaml->why));
}

/* ---- graphs ---- */

struct graph_file {
	struct hk__file *file;
	struct hk__graph_shape shape;
	yaml_node_t *switches; /* a list of names, or NULL */
	const char *kinds[HK__KINDS_MAX];
};

/* "PREFIX" and a number below n. */
static bool vertex_numbered(const char *text, const char *prefix, uint32_t n, uint32_t *vertex_out)
{
	size_t len = strlen(prefix);
	char *end;

	if (strncmp(text, prefix, len) != 0 || !isdigit((unsigned char)text[len]))
		return false;
	unsigned long at = strtoul(text + len, &end, 10);
	*vertex_out = (uint32_t)at;
	return !*end && at < n;
}

/* "device3", "switch0", a switch's name, or "NODE.2", device 2 of the node of that name. */
static bool vertex_find(struct graph_file *graph, const char *text, uint32_t *vertex_out)
{
	const struct hk_fabric *fabric = graph->file->fabric;
	struct hk__yaml *yaml = &graph->file->yaml;
	char prefix[48];

	if (vertex_numbered(text, "device", fabric->ranks, vertex_out))
		return true;
	if (!graph->switches &&
	    vertex_numbered(text, "switch", graph->shape.nswitches, vertex_out)) {
		*vertex_out += fabric->ranks;
		return true;
	}
	for (uint32_t i = 0; graph->switches && i < graph->shape.nswitches; i++)
		if (strcmp(hk__yaml_text(hk__yaml_item(yaml, graph->switches, i)), text) == 0) {
			*vertex_out = fabric->ranks + i;
			return true;
		}
	for (uint32_t i = 0; i < fabric->nnode_kinds; i++) {
		const struct hk__node_kind *node = &fabric->node_kinds[i];

		snprintf(prefix, sizeof(prefix), "%s.", node->name);
		if (vertex_numbered(text, prefix, node->count * node->ranks, vertex_out)) {
			*vertex_out += node->first_rank;
			return true;
		}
	}
	return false;
}

static enum hk_status graph_link_read(struct graph_file *graph, yaml_node_t *item,
				      struct hk__graph_link *link)
{
	struct hk__yaml *yaml = &graph->file->yaml;
	uint32_t *ends[2] = { &link->from, &link->to };

	for (uint32_t i = 0; i < 3; i++) {
		yaml_node_t *node = hk__yaml_item(yaml, item, i);
		const char *text = node ? hk__yaml_text(node) : NULL;

		if (!text || hk__yaml_length(item) != 3)
			return hk__yaml_wrong(yaml, item, "expected a link as [FROM, TO, KIND]");
		if (i < 2 && !vertex_find(graph, text, ends[i]))
			return hk__yaml_wrong(yaml, node,
					      "expected a device (deviceRANK, NODE.NUMBER) or a "
					      "switch, found '%.40s'",
					      text);
		for (link->kind = 0; i == 2 && link->kind < graph->shape.nkinds; link->kind++)
			if (strcmp(graph->kinds[link->kind], text) == 0)
				return link->from != link->to
					       ? HK_OK
					       : hk__yaml_wrong(yaml, item, "expected two ends");
		if (i == 2)
			return hk__yaml_wrong(
				yaml, node, "expected a kind that links: describes, found '%.40s'",
				text);
	}
	return HK_OK;
}

static enum hk_status switches_read(struct graph_file *graph, yaml_node_t *net)
{
	struct hk__yaml *yaml = &graph->file->yaml;
	yaml_node_t *node = hk__yaml_get(yaml, net, "switches");

	if (!node || node->type != YAML_SEQUENCE_NODE)
		return hk__yaml_count(yaml, net, "switches", 0, HK__GRAPH_LINKS_MAX,
				      &graph->shape.nswitches);
	graph->switches = node;
	graph->shape.nswitches = hk__yaml_length(node);
	if (graph->shape.nswitches > 4096)
		return hk__yaml_wrong(yaml, node, "expected up to 4096 names of switches");
	for (uint32_t i = 0; i < graph->shape.nswitches; i++) {
		yaml_node_t *item = hk__yaml_item(yaml, node, i);
		const char *text = hk__yaml_text(item);

		if (!text || !hk__name_is_plain(text))
			return hk__yaml_wrong(yaml, item, "expected the name of a switch");
	}
	return HK_OK;
}

/* The kinds are what `links` describes. */
static enum hk_status graph_kinds_read(struct graph_file *graph)
{
	struct hk__yaml *yaml = &graph->file->yaml;
	yaml_node_t *links = hk__yaml_get(yaml, graph->file->root, "links"), *key, *value;

	if (!links || links->type != YAML_MAPPING_NODE || hk__yaml_length(links) > HK__KINDS_MAX)
		return hk__yaml_wrong(yaml, links ? links : graph->file->root,
				      "expected links: a mapping of 1 to %u kinds", HK__KINDS_MAX);
	for (uint32_t i = 0; hk__yaml_pair(yaml, links, i, &key, &value); i++) {
		const char *name = hk__yaml_text(key);

		if (!name || !hk__name_is_plain(name) || strlen(name) > 30)
			return hk__yaml_wrong(yaml, key,
					      "expected the name of a kind of links, of up to 30 "
					      "letters, digits, '-' and '_'");
		graph->kinds[graph->shape.nkinds++] = name;
	}
	graph->shape.kinds = graph->kinds;
	return HK_OK;
}

static enum hk_status graph_links_read(struct graph_file *graph, yaml_node_t *list)
{
	const struct hk_alloc *alloc = graph->file->fabric->alloc;
	struct hk__yaml *yaml = &graph->file->yaml;
	uint32_t n = list ? hk__yaml_length(list) : 0;
	enum hk_status status = HK_OK;

	if (n > HK__GRAPH_LINKS_MAX || (list && list->type != YAML_SEQUENCE_NODE))
		return hk__yaml_wrong(yaml, list, "expected a list of up to %u links",
				      HK__GRAPH_LINKS_MAX);
	graph->shape.links = hk__mem_zalloc(alloc, n, sizeof(*graph->shape.links));
	if (!graph->shape.links)
		return hk__why(yaml->why, HK_ENOMEM, "out of memory for %u links", n);
	graph->shape.nlinks = n;
	for (uint32_t i = 0; i < n && !status; i++)
		status = graph_link_read(graph, hk__yaml_item(yaml, list, i),
					 &graph->shape.links[i]);
	if (!status)
		status = hk__yaml_blame(yaml, list,
					hk__graph_build(graph->file->fabric, &graph->shape,
							yaml->why));
	hk__mem_free(alloc, graph->shape.links, n, sizeof(*graph->shape.links));
	return status;
}

static enum hk_status graph_read(struct hk__file *file, yaml_node_t *net)
{
	static const char *const keys[] = { "kind", "switches",	   "links", "transit",
					    "wire", "wire-inside", NULL };
	struct hk__yaml *yaml = &file->yaml;
	struct graph_file graph = { .file = file };
	enum hk_status status = hk__yaml_mapping(yaml, net, "a graph", keys);

	if (!status)
		status = nodes_read(file, NULL, HK__GRAPH_LINKS_MAX);
	if (!status)
		status = hk__yaml_bool(yaml, net, "transit", &graph.shape.transit);
	if (!status)
		status = switches_read(&graph, net);
	if (!status)
		status = graph_kinds_read(&graph);
	return status ? status : graph_links_read(&graph, hk__yaml_get(yaml, net, "links"));
}

/* ---- all of it ---- */

enum hk_status hk__file_network(struct hk__file *file)
{
	static enum hk_status (*const readers[])(struct hk__file *, yaml_node_t *) = {
		[NET_CLOS] = clos_read,
		[NET_TORUS] = torus_read,
		[NET_DRAGONFLY] = dragonfly_read,
		[NET_GRAPH] = graph_read,
	};
	struct hk__yaml *yaml = &file->yaml;
	struct hk_fabric *fabric = file->fabric;
	yaml_node_t *net = hk__yaml_get(yaml, file->root, "network");
	uint32_t kind = NET_CLOS;

	if (!net || net->type != YAML_MAPPING_NODE)
		return hk__yaml_wrong(yaml, net ? net : file->root,
				      "expected a mapping for network, or a base");
	enum hk_status status = hk__yaml_choice(yaml, net, "kind", net_kinds, &kind);
	fabric->wire_net = fabric->nwires - 1;
	if (!status)
		status = hk__file_wire(file, net, "wire-inside", &fabric->wire_node);
	if (!status)
		status = hk__file_wire(file, net, "wire", &fabric->wire_net);
	if (!status)
		status = readers[kind](file, net);
	if (!status && !fabric->constants.count)
		status = hk__yaml_blame(yaml, net, hk__constants_list(fabric, yaml->why));
	return status;
}
