/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.c - the object: what it is made of, and questions about its parts. */
#include "fabric/topology.h"

#include "fabric/discover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- making one ---- */

enum hk_status hk__fabric_create(const struct hk_alloc *alloc, struct hk_why *why,
				 struct hk_fabric **fabric_out)
{
	struct hk_fabric *fabric;

	if (!alloc)
		alloc = &hk__alloc_default;
	fabric = hk__mem_zalloc(alloc, 1, sizeof(*fabric));
	if (!fabric)
		return hk__why(why, HK_ENOMEM, "out of memory for a fabric");
	fabric->alloc = alloc;
	hk__array_init(&fabric->constants, alloc, sizeof(struct hk__constant));
	*fabric_out = fabric;
	return HK_OK;
}

void hk_fabric_free(struct hk_fabric *fabric)
{
	if (!fabric)
		return;
	if (fabric->ops)
		fabric->ops->close(fabric);
	hk__array_fini(&fabric->constants);
	hk__mem_free(fabric->alloc, fabric->node_kinds, fabric->node_kinds_room,
		     sizeof(*fabric->node_kinds));
	hk__mem_free(fabric->alloc, fabric, 1, sizeof(*fabric));
}

enum hk_status hk__fabric_add_device(struct hk_fabric *fabric, const char *type, struct hk_why *why,
				     uint32_t *index_out)
{
	if (fabric->ndevices == HK__WIRES_MAX)
		return hk__why(why, HK_ELIMIT, "more than %u kinds of devices", HK__WIRES_MAX);
	struct hk__device *device = &fabric->devices[fabric->ndevices];

	snprintf(device->type, sizeof(device->type), "%s", type);
	*index_out = fabric->ndevices++;
	return HK_OK;
}

enum hk_status hk__fabric_add_wire(struct hk_fabric *fabric, const char *name, struct hk_why *why,
				   uint32_t *index_out)
{
	if (fabric->nwires == HK__WIRES_MAX)
		return hk__why(why, HK_ELIMIT, "more than %u kinds of wires", HK__WIRES_MAX);
	struct hk__wire *wire = &fabric->wires[fabric->nwires];

	snprintf(wire->name, sizeof(wire->name), "%s", name);
	wire->overhead = 1;
	wire->cut = hk__cut_shm;
	*index_out = fabric->nwires++;
	return HK_OK;
}

static enum hk_status node_kinds_grow(struct hk_fabric *fabric, struct hk_why *why)
{
	uint32_t room = fabric->node_kinds_room ? 2 * fabric->node_kinds_room : 4;
	struct hk__node_kind *kinds = hk__mem_zalloc(fabric->alloc, room, sizeof(*kinds));

	if (!kinds)
		return hk__why(why, HK_ENOMEM, "out of memory for %u kinds of nodes", room);
	if (fabric->nnode_kinds)
		memcpy(kinds, fabric->node_kinds, fabric->nnode_kinds * sizeof(*kinds));
	hk__mem_free(fabric->alloc, fabric->node_kinds, fabric->node_kinds_room, sizeof(*kinds));
	fabric->node_kinds = kinds;
	fabric->node_kinds_room = room;
	return HK_OK;
}

enum hk_status hk__fabric_add_nodes(struct hk_fabric *fabric, const struct hk__node_kind *kind,
				    struct hk_why *why)
{
	enum hk_status status;

	if (!kind->count || !kind->ranks ||
	    (uint64_t)kind->count * kind->ranks + fabric->ranks > HK_FABRIC_RANKS_MAX)
		return hk__why(why, HK_ELIMIT,
			       "%u nodes of %u devices: a fabric has 1 to %u devices in all",
			       kind->count, kind->ranks, HK_FABRIC_RANKS_MAX);
	if (fabric->nnode_kinds == fabric->node_kinds_room) {
		status = node_kinds_grow(fabric, why);
		if (status)
			return status;
	}
	struct hk__node_kind *own = &fabric->node_kinds[fabric->nnode_kinds++];
	*own = *kind;
	own->first_rank = fabric->ranks;
	own->first_node = fabric->nodes;
	fabric->ranks += kind->count * kind->ranks;
	fabric->nodes += kind->count;
	return HK_OK;
}

enum hk_status hk__fabric_add_kind(struct hk_fabric *fabric, const struct hk__kind_shape *shape,
				   struct hk_why *why, uint32_t *index_out)
{
	if (fabric->nkinds == HK__KINDS_MAX)
		return hk__why(why, HK_ELIMIT, "more than %u kinds of links", HK__KINDS_MAX);
	struct hk__link_kind *kind = &fabric->kinds[fabric->nkinds];

	snprintf(kind->name, sizeof(kind->name), "%s%s", shape->prefix ? shape->prefix : "",
		 shape->name);
	kind->first = fabric->links;
	kind->owners = shape->owners;
	kind->per_owner = shape->per_owner;
	kind->owner_ranks = shape->owner_ranks;
	kind->first_rank = shape->first_rank;
	kind->member = shape->member;
	kind->routing = shape->routing;
	kind->bundle = shape->wires > 0;
	kind->wires = kind->bundle ? shape->wires : 1;
	kind->efficiency = 1;
	kind->oversubscription = 1;
	fabric->links += shape->owners * shape->per_owner;
	*index_out = fabric->nkinds++;
	return HK_OK;
}

void hk__fabric_settle(struct hk_fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->nkinds; i++) {
		struct hk__link_kind *kind = &fabric->kinds[i];
		double wires = kind->wires / kind->oversubscription;

		kind->bytes_per_ns = kind->wire_speed * kind->efficiency * wires;
		kind->width = wires < 1.5 ? 1 : (uint32_t)lround(wires);
	}
}

/* ---- paths ---- */

uint64_t hk__kind_link(const struct hk__link_kind *kind, uint64_t owner, uint32_t member)
{
	hk_assert(owner < kind->owners && member < kind->per_owner);
	return kind->first + owner * kind->per_owner + member;
}

void hk__path_add(const struct hk_fabric *fabric, struct hk__path *path, uint32_t kind,
		  uint64_t owner, uint32_t member)
{
	hk_assert(path->nlinks < HK__PATH_MAX);
	path->links[path->nlinks++] = hk__kind_link(&fabric->kinds[kind], owner, member);
	path->delay_ns += fabric->kinds[kind].delay_ns;
}

void hk__fabric_path(const struct hk_fabric *fabric, uint32_t from, uint32_t to,
		     struct hk__path *path_out)
{
	hk_assert(from < fabric->ranks && to < fabric->ranks);
	path_out->nlinks = 0;
	path_out->delay_ns = 0;
	path_out->wire = fabric->wire_node;
	if (from != to)
		fabric->ops->path(fabric, from, to, path_out);
}

/* ---- how operations are cut ---- */

/* Two ranks of one node, and two of different ones; HK_NONE: none. */
struct pairs {
	uint32_t near[2], far[2];
};

static void pairs_look(const struct hk_fabric *fabric, uint32_t a, uint32_t b, struct pairs *pairs)
{
	uint32_t node_a, node_b, local;

	hk__fabric_place(fabric, a, &node_a, &local);
	hk__fabric_place(fabric, b, &node_b, &local);
	uint32_t *pair = node_a == node_b ? pairs->near : pairs->far;
	pair[0] = a;
	pair[1] = b;
}

static void pairs_of_placed(const struct hk_fabric *fabric, uint32_t n, const uint32_t *devices,
			    struct pairs *pairs)
{
	for (uint32_t r = 1; r < n; r++) {
		if (pairs->near[0] != HK_NONE && pairs->far[0] != HK_NONE)
			return;
		pairs_look(fabric, devices[0], devices[r], pairs);
		pairs_look(fabric, devices[r - 1], devices[r], pairs);
	}
}

/* Nodes lie side by side, kind by kind: the first two of a node, and of two nodes. */
static void pairs_of_first(const struct hk_fabric *fabric, uint32_t n, struct pairs *pairs)
{
	for (uint32_t i = 0; i < fabric->nnode_kinds; i++) {
		const struct hk__node_kind *kind = &fabric->node_kinds[i];

		if (kind->ranks > 1 && kind->first_rank + 1 < n)
			pairs_look(fabric, kind->first_rank, kind->first_rank + 1, pairs);
	}
	if (fabric->node_kinds[0].ranks < n)
		pairs_look(fabric, 0, fabric->node_kinds[0].ranks, pairs);
}

void hk__fabric_cut(const struct hk_fabric *fabric, uint32_t n, const uint32_t *devices,
		    struct hk__cut_rule *rule_out)
{
	struct pairs pairs = { { HK_NONE, HK_NONE }, { HK_NONE, HK_NONE } };
	struct hk__path path = { .wire = fabric->wire_node };

	if (devices)
		pairs_of_placed(fabric, n, devices, &pairs);
	else
		pairs_of_first(fabric, n, &pairs);
	bool near = pairs.near[0] != HK_NONE, far = pairs.far[0] != HK_NONE;
	if (near)
		hk__fabric_path(fabric, pairs.near[0], pairs.near[1], &path);
	*rule_out = fabric->wires[path.wire].cut;
	if (far) {
		hk__fabric_path(fabric, pairs.far[0], pairs.far[1], &path);
		if (near)
			hk__cut_join(rule_out, &fabric->wires[path.wire].cut);
		else
			*rule_out = fabric->wires[path.wire].cut;
	}
	rule_out->cores = hk__fabric_device(fabric, devices ? devices[0] : 0)->serial;
	rule_out->streams = far && !near && fabric->wire_net != fabric->wire_node;
}

/* ---- links ---- */

const struct hk__link_kind *hk__fabric_kind(const struct hk_fabric *fabric, uint64_t link)
{
	uint32_t i = fabric->nkinds - 1;

	hk_assert(link < fabric->links);
	while (fabric->kinds[i].first > link)
		i--;
	return &fabric->kinds[i];
}

double hk__fabric_link_speed(const struct hk_fabric *fabric, uint64_t link)
{
	return hk__fabric_kind(fabric, link)->bytes_per_ns;
}

static void name_owner(const struct hk_fabric *fabric, const struct hk__link_kind *kind,
		       uint64_t owner, struct hk__text *text)
{
	uint64_t ranks = kind->owner_ranks;

	if (ranks == 0) {
		hk__text_add(text, " %llu", (unsigned long long)owner);
	} else if (ranks == 1) {
		hk__text_add(text, " of rank %llu", (unsigned long long)(kind->first_rank + owner));
	} else if (fabric->nnode_kinds == 1 && ranks == fabric->node_kinds[0].ranks) {
		hk__text_add(text, " of node %llu", (unsigned long long)owner);
	} else {
		uint64_t first = kind->first_rank + owner * ranks, last = first + ranks - 1;

		if (last >= fabric->ranks)
			last = fabric->ranks - 1;
		hk__text_add(text, " of ranks %llu to %llu", (unsigned long long)first,
			     (unsigned long long)last);
	}
}

void hk__fabric_link_name(const struct hk_fabric *fabric, uint64_t link, char *text, size_t size)
{
	const struct hk__link_kind *kind = hk__fabric_kind(fabric, link);
	uint64_t owner = (link - kind->first) / kind->per_owner;
	unsigned member = (unsigned)((link - kind->first) % kind->per_owner);
	struct hk__text out;

	hk__text_init(&out, text, size);
	hk__text_add(&out, "%s", kind->name);
	name_owner(fabric, kind, owner, &out);
	if (kind->per_owner > 1 && kind->member == HK__MEMBER_RAIL)
		hk__text_add(&out, ", rail %u", member);
	else if (kind->per_owner > 1)
		hk__text_add(&out, kind->member == HK__MEMBER_PEER ? " to its number %u" : ", %u",
			     member);
}

enum hk_status hk__fabric_link_find(const struct hk_fabric *fabric, const char *name,
				    struct hk_why *why, uint64_t *link_out)
{
	const char *colon = strchr(name, ':');
	size_t len = colon ? (size_t)(colon - name) : strlen(name);
	char *end = NULL, text[512];
	struct hk__text kinds;

	hk__text_init(&kinds, text, sizeof(text));
	for (uint32_t i = 0; i < fabric->nkinds; i++) {
		const struct hk__link_kind *kind = &fabric->kinds[i];
		unsigned long long links = kind->owners * kind->per_owner;

		hk__text_add(&kinds, "%s%s", i ? ", " : "", kind->name);
		if (strlen(kind->name) != len || memcmp(kind->name, name, len) != 0)
			continue;
		unsigned long long at = colon ? strtoull(colon + 1, &end, 10) : 0;
		if (!colon || end == colon + 1 || *end || colon[1] == '-' || at >= links)
			return hk__why(why, HK_EINVAL,
				       "'%s' is not a link of %s: expected %s:0 to %s:%llu", name,
				       fabric->name, kind->name, kind->name, links - 1);
		*link_out = kind->first + at;
		return HK_OK;
	}
	return hk__why(why, HK_EINVAL,
		       "'%s' is not a link of %s: expected KIND:NUMBER, of the kinds %s", name,
		       fabric->name, text);
}

/* ---- ranks ---- */

const struct hk__node_kind *hk__fabric_node_kind(const struct hk_fabric *fabric, uint32_t rank)
{
	uint32_t low = 0, high = fabric->nnode_kinds;

	hk_assert(rank < fabric->ranks);
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (fabric->node_kinds[mid].first_rank <= rank)
			low = mid;
		else
			high = mid;
	}
	return &fabric->node_kinds[low];
}

const struct hk__device *hk__fabric_device(const struct hk_fabric *fabric, uint32_t rank)
{
	return &fabric->devices[hk__fabric_node_kind(fabric, rank)->device];
}

bool hk__fabric_cores_shared(const struct hk_fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->ndevices; i++) {
		const struct hk__device *device = &fabric->devices[i];

		if (device->serial && device->cores && device->cores < fabric->ranks)
			return true;
	}
	return false;
}

void hk__fabric_place(const struct hk_fabric *fabric, uint32_t rank, uint32_t *node_out,
		      uint32_t *local_out)
{
	const struct hk__node_kind *kind = hk__fabric_node_kind(fabric, rank);
	uint32_t at = rank - kind->first_rank;

	*node_out = kind->first_node + at / kind->ranks;
	*local_out = at % kind->ranks;
}

void hk_fabric_describe(const struct hk_fabric *fabric, struct hk_fabric_info *info_out)
{
	struct hk_fabric_info full = {
		.name = fabric->name,
		.about = fabric->about,
		.ranks = fabric->ranks,
		.nodes = fabric->nodes,
		.node_ranks = fabric->node_kinds[0].ranks,
		.links = fabric->links,
	};
	for (uint32_t i = 1; i < fabric->nnode_kinds; i++)
		if (fabric->node_kinds[i].ranks != full.node_ranks)
			full.node_ranks = 0;
	hk__result_set(info_out, &full, sizeof(full));
}

/* ---- opening one ---- */

/* "here:8" */
static enum hk_status here_with(const char *spec, const struct hk_alloc *alloc, struct hk_why *why,
				struct hk_fabric **fabric_out)
{
	char *end;
	unsigned long ranks = strtoul(spec + 5, &end, 10);

	if (spec[5] < '0' || spec[5] > '9' || *end || ranks == 0 || ranks > HK_FABRIC_RANKS_MAX)
		return hk__why(why, HK_EINVAL, "'%.60s': here:RANKS takes 1 to %u ranks", spec,
			       HK_FABRIC_RANKS_MAX);
	return hk__fabric_here((uint32_t)ranks, alloc, why, fabric_out);
}

enum hk_status hk_fabric_create(const char *spec, const struct hk_alloc *alloc, struct hk_why *why,
				struct hk_fabric **fabric_out)
{
	size_t len = strlen(spec);

	if (strcmp(spec, "here") == 0)
		return hk_fabric_discover(alloc, why, fabric_out);
	if (strncmp(spec, "here:", 5) == 0)
		return here_with(spec, alloc, why, fabric_out);
	if (strchr(spec, '/') || (len > 5 && strcmp(spec + len - 5, ".yaml") == 0))
		return hk__fabric_open_file(spec, alloc, why, fabric_out);
	return hk__fabric_named(spec, alloc, why, fabric_out);
}
