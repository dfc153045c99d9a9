/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dragonfly.c - groups of routers; all routers of a group are joined, and all groups.
 *
 * Rank = device + devices * (router + routers * group). The link from group g to
 * the k-th group after it leaves from router (k - 1) / ceil((groups - 1) / routers)
 * of g: seen from each group the others lie alike. Routing is minimal: at most one
 * local link, one global, one local.
 */
#include "fabric/topology.h"

struct dragonfly {
	uint32_t groups, routers, devices;
	uint32_t per_router; /* global links of one */
};

enum {
	KIND_OUT,
	KIND_IN,
	KIND_LOCAL,
	KIND_GLOBAL
};

/* The router of a group that has the link to another. */
static uint32_t gateway(const struct dragonfly *fly, uint32_t group, uint32_t to)
{
	return (hk__mod_sub(to, group, fly->groups) - 1) / fly->per_router;
}

static void local_add(const struct hk_fabric *fabric, struct hk__path *path, uint32_t group,
		      uint32_t from, uint32_t to)
{
	const struct dragonfly *fly = fabric->net;

	if (from != to)
		hk__path_add(fabric, path, KIND_LOCAL, (uint64_t)group * fly->routers + from, to);
}

static void dragonfly_path(const struct hk_fabric *fabric, uint32_t from, uint32_t to,
			   struct hk__path *path_out)
{
	const struct dragonfly *fly = fabric->net;
	uint32_t a = from / fly->devices % fly->routers, b = to / fly->devices % fly->routers;
	uint32_t g = from / fly->devices / fly->routers, h = to / fly->devices / fly->routers;

	path_out->wire = fabric->wire_net;
	hk__path_add(fabric, path_out, KIND_OUT, from, 0);
	if (g == h) {
		local_add(fabric, path_out, g, a, b);
	} else {
		local_add(fabric, path_out, g, a, gateway(fly, g, h));
		hk__path_add(fabric, path_out, KIND_GLOBAL, g, h);
		local_add(fabric, path_out, h, gateway(fly, h, g), b);
	}
	hk__path_add(fabric, path_out, KIND_IN, to, 0);
}

static uint32_t dragonfly_levels(const struct hk_fabric *fabric, uint32_t n,
				 uint32_t levels_out[HK__LEVELS_MAX])
{
	const struct dragonfly *fly = fabric->net;

	(void)n;
	levels_out[0] = 1;
	levels_out[1] = fly->devices;
	levels_out[2] = fly->devices * fly->routers;
	return 3;
}

static bool dragonfly_allows(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry)
{
	const struct dragonfly *fly = fabric->net;
	uint32_t n = symmetry->n, unit = symmetry->unit, p = fly->devices;

	if (n <= p)
		return true;
	if (symmetry->inner && (n % p || p % symmetry->node))
		return false;
	if (symmetry->outer == HK__OUTER_NONE)
		return true;
	if (n > p * fly->routers)
		return symmetry->outer == HK__OUTER_SHIFT && n == fabric->ranks &&
		       unit % (p * fly->routers) == 0;
	/* Within a group: whole routers move, or change places with all they have. */
	return n % p == 0 &&
	       (unit % p == 0 || (symmetry->outer == HK__OUTER_XOR && (p & (p - 1)) == 0));
}

static void dragonfly_close(struct hk_fabric *fabric)
{
	hk__mem_free(fabric->alloc, fabric->net, 1, sizeof(struct dragonfly));
}

static void dragonfly_draw(const struct hk_fabric *fabric, FILE *file)
{
	const struct dragonfly *fly = fabric->net;

	fprintf(file, "dragonfly, every group joined to every other\n");
	hk__draw_kind(fabric, file, 1, KIND_GLOBAL, 0);
	hk__draw_line(file, 1, "%u x group", fly->groups);
	hk__draw_kind(fabric, file, 2, KIND_LOCAL, 0);
	hk__draw_line(file, 2, "%u x router", fly->routers);
	hk__draw_kind(fabric, file, 3, KIND_OUT, 0);
	hk__draw_line(file, 3, "%u x %s", fly->devices,
		      fabric->devices[fabric->node_kinds[0].device].type);
}

static void dragonfly_write(const struct hk_fabric *fabric, FILE *file)
{
	const struct dragonfly *fly = fabric->net;

	fprintf(file, "  kind: dragonfly\n  groups: %u\n  routers: %u\n  devices: %u\n",
		fly->groups, fly->routers, fly->devices);
}

static const struct hk__fabric_ops dragonfly_ops = {
	.name = "dragonfly",
	.path = dragonfly_path,
	.allows = dragonfly_allows,
	.levels = dragonfly_levels,
	.draw = dragonfly_draw,
	.write = dragonfly_write,
	.close = dragonfly_close,
};

static enum hk_status dragonfly_kinds(struct hk_fabric *fabric, const struct dragonfly *fly,
				      struct hk_why *why)
{
	const struct hk__kind_shape shapes[] = {
		[KIND_OUT] = { .name = "device.out",
			       .owners = fabric->ranks,
			       .per_owner = 1,
			       .owner_ranks = 1 },
		[KIND_IN] = { .name = "device.in",
			      .owners = fabric->ranks,
			      .per_owner = 1,
			      .owner_ranks = 1 },
		[KIND_LOCAL] = { .name = "local.link",
				 .owners = (uint64_t)fly->groups * fly->routers,
				 .per_owner = fly->routers,
				 .owner_ranks = fly->devices,
				 .member = HK__MEMBER_PEER },
		[KIND_GLOBAL] = { .name = "global.link",
				  .owners = fly->groups,
				  .per_owner = fly->groups,
				  .owner_ranks = fly->devices * fly->routers,
				  .member = HK__MEMBER_PEER,
				  .wires = 1 },
	};
	enum hk_status status = HK_OK;
	uint32_t index;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) && !status; i++)
		status = hk__fabric_add_kind(fabric, &shapes[i], why, &index);
	return status;
}

enum hk_status hk__dragonfly_build(struct hk_fabric *fabric, const uint32_t sizes[3],
				   struct hk_why *why)
{
	struct dragonfly *fly = hk__mem_zalloc(fabric->alloc, 1, sizeof(*fly));
	uint64_t ranks = (uint64_t)sizes[0] * sizes[1];

	if (!fly)
		return hk__why(why, HK_ENOMEM, "out of memory for a dragonfly");
	fabric->net = fly;
	fabric->ops = &dragonfly_ops;
	if (ranks > HK_FABRIC_RANKS_MAX || ranks * sizes[2] > HK_FABRIC_RANKS_MAX)
		return hk__why(why, HK_ELIMIT, "a dragonfly has up to %u devices",
			       HK_FABRIC_RANKS_MAX);
	*fly = (struct dragonfly){ sizes[0], sizes[1], sizes[2], 1 };
	if (fly->groups > 1)
		fly->per_router = (fly->groups - 2) / fly->routers + 1;
	struct hk__node_kind kind = { .name = "node",
				      .count = (uint32_t)ranks * sizes[2],
				      .ranks = 1 };
	enum hk_status status = hk__fabric_add_nodes(fabric, &kind, why);
	return status ? status : dragonfly_kinds(fabric, fly, why);
}
