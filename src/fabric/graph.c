/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - devices, switches, and the links that are named one by one.
 *
 * Vertices are devices, by rank, then switches. A path is the one of the shortest
 * delay, then of the fewest links, then of the lowest link; found once, for every
 * destination, and kept as the next link from each vertex. Devices pass nothing
 * on, unless the graph says they do.
 */
#include "fabric/topology.h"

#include <math.h>
#include <string.h>

struct graph {
	struct hk__graph_shape shape; /* with a copy of its links */
	uint32_t vertices;
	uint32_t *at;	  /* of a vertex: where its edges begin, below */
	uint32_t *edges;  /* 2 * link + (1 against its direction), by its end */
	uint64_t *number; /* of a link: as the fabric numbers it */
	uint32_t *next;	  /* edge from a vertex towards a device; NO_EDGE */
};

#define NO_EDGE UINT32_MAX

static uint32_t edge_from(const struct graph *graph, uint32_t edge)
{
	const struct hk__graph_link *link = &graph->shape.links[edge / 2];

	return edge % 2 ? link->to : link->from;
}

static uint32_t edge_to(const struct graph *graph, uint32_t edge)
{
	return edge_from(graph, edge ^ 1);
}

static void graph_path(const struct hk_fabric *fabric, uint32_t from, uint32_t to,
		       struct hk__path *path_out)
{
	const struct graph *graph = fabric->net;
	uint32_t a, b, local, vertex = from;

	hk__fabric_place(fabric, from, &a, &local);
	hk__fabric_place(fabric, to, &b, &local);
	path_out->wire = a == b ? fabric->wire_node : fabric->wire_net;
	while (vertex != to) {
		uint32_t edge = graph->next[(size_t)to * graph->vertices + vertex];
		uint64_t link = graph->number[edge / 2] + edge % 2;

		hk_assert(path_out->nlinks < HK__PATH_MAX);
		path_out->links[path_out->nlinks++] = link;
		path_out->delay_ns += hk__fabric_kind(fabric, link)->delay_ns;
		vertex = edge_to(graph, edge);
	}
}

/* ---- finding paths ---- */

struct search {
	double *delay;
	uint32_t *hops;
	uint32_t *heap;	 /* of vertices, the nearest first */
	uint32_t *place; /* of a vertex in the heap */
	uint32_t count;
};

static bool search_before(const struct search *search, uint32_t a, uint32_t b)
{
	if (search->delay[a] != search->delay[b])
		return search->delay[a] < search->delay[b];
	return search->hops[a] != search->hops[b] ? search->hops[a] < search->hops[b] : a < b;
}

static void heap_put(struct search *search, uint32_t at, uint32_t vertex)
{
	search->heap[at] = vertex;
	search->place[vertex] = at;
}

static void heap_up(struct search *search, uint32_t vertex)
{
	uint32_t at = search->place[vertex];

	while (at > 0 && search_before(search, vertex, search->heap[(at - 1) / 2])) {
		heap_put(search, at, search->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(search, at, vertex);
}

static uint32_t heap_pop(struct search *search)
{
	uint32_t top = search->heap[0], vertex = search->heap[--search->count], at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= search->count)
			break;
		if (child + 1 < search->count &&
		    search_before(search, search->heap[child + 1], search->heap[child]))
			child++;
		if (!search_before(search, search->heap[child], vertex))
			break;
		heap_put(search, at, search->heap[child]);
		at = child;
	}
	if (search->count)
		heap_put(search, at, vertex);
	return top;
}

/* Whether the edge, which leads to `via`, is the better way from its other end. */
static bool search_improves(const struct search *search, const uint32_t *next, uint32_t edge,
			    uint32_t from, uint32_t via, double delay)
{
	double total = search->delay[via] + delay;

	if (total != search->delay[from])
		return total < search->delay[from];
	if (search->hops[via] + 1 != search->hops[from])
		return search->hops[via] + 1 < search->hops[from];
	return edge < next[from];
}

/* All ways to one device, from the end. */
static void graph_search(const struct hk_fabric *fabric, struct graph *graph, uint32_t device,
			 struct search *search)
{
	uint32_t *next = graph->next + (size_t)device * graph->vertices;

	for (uint32_t v = 0; v < graph->vertices; v++) {
		search->delay[v] = v == device ? 0 : INFINITY;
		search->hops[v] = v == device ? 0 : UINT32_MAX / 2;
		next[v] = NO_EDGE;
		heap_put(search, v, v);
	}
	search->count = graph->vertices;
	heap_up(search, device);
	while (search->count) {
		uint32_t via = heap_pop(search);

		if (isinf(search->delay[via]))
			break;
		if (via != device && via < fabric->ranks && !graph->shape.transit)
			continue;
		for (uint32_t i = graph->at[via]; i < graph->at[via + 1]; i++) {
			uint32_t edge = graph->edges[i], from = edge_from(graph, edge);
			double delay = fabric->kinds[graph->shape.links[edge / 2].kind].delay_ns;

			if (!search_improves(search, next, edge, from, via, delay))
				continue;
			search->delay[from] = search->delay[via] + delay;
			search->hops[from] = search->hops[via] + 1;
			next[from] = edge;
			heap_up(search, from);
		}
	}
}

static enum hk_status graph_check(const struct hk_fabric *fabric, const struct search *search,
				  uint32_t device, struct hk_why *why)
{
	for (uint32_t v = 0; v < fabric->ranks; v++) {
		if (isinf(search->delay[v]))
			return hk__why(why, HK_EINVAL,
				       "%s: no path leads from device %u to device %u",
				       fabric->name, v, device);
		if (search->hops[v] > HK__PATH_MAX)
			return hk__why(why, HK_ELIMIT,
				       "%s: device %u is more than %u links from device %u",
				       fabric->name, v, HK__PATH_MAX, device);
	}
	return HK_OK;
}

static enum hk_status graph_ready(struct hk_fabric *fabric, struct hk_why *why)
{
	struct graph *graph = fabric->net;
	uint32_t n = graph->vertices;
	struct search search = {
		.delay = hk__mem_zalloc(fabric->alloc, n, sizeof(double)),
		.hops = hk__mem_zalloc(fabric->alloc, n, sizeof(uint32_t)),
		.heap = hk__mem_zalloc(fabric->alloc, n, sizeof(uint32_t)),
		.place = hk__mem_zalloc(fabric->alloc, n, sizeof(uint32_t)),
	};
	enum hk_status status = HK_OK;

	if (search.delay && search.hops && search.heap && search.place) {
		for (uint32_t d = 0; d < fabric->ranks && !status; d++) {
			graph_search(fabric, graph, d, &search);
			status = graph_check(fabric, &search, d, why);
		}
	} else {
		status = hk__why(why, HK_ENOMEM, "out of memory for the paths of a graph");
	}
	hk__mem_free(fabric->alloc, search.delay, n, sizeof(double));
	hk__mem_free(fabric->alloc, search.hops, n, sizeof(uint32_t));
	hk__mem_free(fabric->alloc, search.heap, n, sizeof(uint32_t));
	hk__mem_free(fabric->alloc, search.place, n, sizeof(uint32_t));
	return status;
}

/* ---- what is alike: nothing, as far as anybody looked ---- */

static uint32_t graph_levels(const struct hk_fabric *fabric, uint32_t n,
			     uint32_t levels_out[HK__LEVELS_MAX])
{
	(void)fabric;
	(void)n;
	(void)levels_out;
	return 0;
}

static bool graph_allows(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry)
{
	(void)fabric;
	(void)symmetry;
	return false;
}

/* ---- as text ---- */

static void vertex_name(const struct hk_fabric *fabric, uint32_t vertex, char name[48])
{
	if (vertex >= fabric->ranks)
		snprintf(name, 48, "switch%u", vertex - fabric->ranks);
	else
		snprintf(name, 48, "device%u", vertex);
}

static void graph_draw(const struct hk_fabric *fabric, FILE *file)
{
	const struct graph *graph = fabric->net;
	char note[48];

	fprintf(file, "graph of %u devices, %u switches and %u links\n", fabric->ranks,
		graph->shape.nswitches, graph->shape.nlinks);
	for (uint32_t i = 0; i < fabric->nkinds; i++) {
		snprintf(note, sizeof(note), "%llu, both ways",
			 (unsigned long long)fabric->kinds[i].owners);
		hk__draw_kind(fabric, file, 1, i, note);
	}
	for (uint32_t i = 0; i < fabric->nnode_kinds; i++) {
		const struct hk__node_kind *node = &fabric->node_kinds[i];

		hk__draw_line(file, 1, "%u x %s", node->count, node->name);
		hk__draw_line(file, 2, "%u x %s", node->ranks, fabric->devices[node->device].type);
	}
}

static void graph_write(const struct hk_fabric *fabric, FILE *file)
{
	const struct graph *graph = fabric->net;
	char from[48], to[48];

	fprintf(file, "  kind: graph\n  transit: %s\n  switches: %u\n  links:\n",
		graph->shape.transit ? "true" : "false", graph->shape.nswitches);
	for (uint32_t i = 0; i < graph->shape.nlinks; i++) {
		const struct hk__graph_link *link = &graph->shape.links[i];
		const char *name = fabric->kinds[link->kind].name;

		vertex_name(fabric, link->from, from);
		vertex_name(fabric, link->to, to);
		fprintf(file, "  - [%s, %s, %.*s]\n", from, to, (int)strcspn(name, "."), name);
	}
	fputs("nodes:\n", file);
	for (uint32_t i = 0; i < fabric->nnode_kinds; i++) {
		const struct hk__node_kind *node = &fabric->node_kinds[i];

		fprintf(file, "- {name: %s, count: %u, devices: %u, device: %s}\n", node->name,
			node->count, node->ranks, fabric->devices[node->device].type);
	}
}

static void graph_close(struct hk_fabric *fabric)
{
	const struct hk_alloc *alloc = fabric->alloc;
	struct graph *graph = fabric->net;
	uint32_t n = graph->shape.nlinks;

	hk__mem_free(alloc, graph->shape.links, n, sizeof(*graph->shape.links));
	hk__mem_free(alloc, graph->at, graph->vertices + 1, sizeof(uint32_t));
	hk__mem_free(alloc, graph->edges, 2 * (size_t)n, sizeof(uint32_t));
	hk__mem_free(alloc, graph->number, n, sizeof(uint64_t));
	hk__mem_free(alloc, graph->next, (size_t)fabric->ranks * graph->vertices, sizeof(uint32_t));
	hk__mem_free(alloc, graph, 1, sizeof(*graph));
}

static const struct hk__fabric_ops graph_ops = {
	.name = "graph",
	.path = graph_path,
	.allows = graph_allows,
	.levels = graph_levels,
	.ready = graph_ready,
	.draw = graph_draw,
	.write = graph_write,
	.close = graph_close,
};

/* ---- making one ---- */

/* Numbers the links, kind by kind, and sorts edges by their ends. */
static void graph_index(const struct hk_fabric *fabric, struct graph *graph)
{
	uint32_t seen[HK__KINDS_MAX] = { 0 };

	for (uint32_t i = 0; i < graph->shape.nlinks; i++) {
		uint32_t kind = graph->shape.links[i].kind;

		graph->number[i] = hk__kind_link(&fabric->kinds[kind], seen[kind]++, 0);
		for (uint32_t e = 2 * i; e < 2 * i + 2; e++)
			graph->at[edge_to(graph, e)]++;
	}
	for (uint32_t v = 0, sum = 0; v <= graph->vertices; v++) {
		uint32_t count = graph->at[v];

		graph->at[v] = sum;
		sum += count;
	}
	for (uint32_t e = 0; e < 2 * graph->shape.nlinks; e++)
		graph->edges[graph->at[edge_to(graph, e)]++] = e;
	for (uint32_t v = graph->vertices; v > 0; v--)
		graph->at[v] = graph->at[v - 1];
	graph->at[0] = 0;
}

static enum hk_status graph_kinds(struct hk_fabric *fabric, const struct hk__graph_shape *shape,
				  struct hk_why *why)
{
	enum hk_status status = HK_OK;
	char name[40];

	for (uint32_t k = 0; k < shape->nkinds && !status; k++) {
		struct hk__kind_shape kind = { .name = name, .per_owner = 2 };
		uint32_t index;

		snprintf(name, sizeof(name), "%.30s.link", shape->kinds[k]);
		for (uint32_t i = 0; i < shape->nlinks; i++)
			kind.owners += shape->links[i].kind == k;
		status = hk__fabric_add_kind(fabric, &kind, why, &index);
	}
	return status;
}

enum hk_status hk__graph_build(struct hk_fabric *fabric, const struct hk__graph_shape *shape,
			       struct hk_why *why)
{
	const struct hk_alloc *alloc = fabric->alloc;
	uint64_t vertices = (uint64_t)fabric->ranks + shape->nswitches;

	if (vertices * fabric->ranks > HK__GRAPH_MAX || shape->nlinks > HK__GRAPH_LINKS_MAX)
		return hk__why(
			why, HK_ELIMIT,
			"a graph of %u devices, %u switches and %u links is too large: up to "
			"%u links, and devices * (devices + switches) up to %u",
			fabric->ranks, shape->nswitches, shape->nlinks, HK__GRAPH_LINKS_MAX,
			HK__GRAPH_MAX);
	enum hk_status status = graph_kinds(fabric, shape, why);
	if (status)
		return status;
	struct graph *graph = hk__mem_zalloc(alloc, 1, sizeof(*graph));
	if (!graph)
		return hk__why(why, HK_ENOMEM, "out of memory for a graph");
	fabric->net = graph;
	fabric->ops = &graph_ops;
	graph->shape = *shape;
	graph->vertices = (uint32_t)vertices;
	graph->shape.links = hk__mem_zalloc(alloc, shape->nlinks, sizeof(*shape->links));
	graph->at = hk__mem_zalloc(alloc, vertices + 1, sizeof(uint32_t));
	graph->edges = hk__mem_zalloc(alloc, 2 * (size_t)shape->nlinks, sizeof(uint32_t));
	graph->number = hk__mem_zalloc(alloc, shape->nlinks, sizeof(uint64_t));
	graph->next = hk__mem_zalloc(alloc, fabric->ranks * vertices, sizeof(uint32_t));
	if (!graph->shape.links || !graph->at || !graph->edges || !graph->number || !graph->next)
		return hk__why(why, HK_ENOMEM, "out of memory for a graph");
	if (shape->nlinks)
		memcpy(graph->shape.links, shape->links, shape->nlinks * sizeof(*shape->links));
	graph_index(fabric, graph);
	return HK_OK;
}
