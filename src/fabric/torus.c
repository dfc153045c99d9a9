/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torus.c - devices on a grid whose lines are closed to rings.
 *
 * Rank = x + X * (y + Y * (z + ...)). Every device has two links in every
 * dimension, one up and one down. Messages go along the first dimension, then
 * the second and so on, each time the shorter way round, up where both are equal.
 */
#include "fabric/topology.h"

struct torus {
	uint32_t ndims;
	uint32_t dims[HK__DIMS_MAX];
};

static void torus_path(const struct hk_fabric *fabric, uint32_t from, uint32_t to,
		       struct hk__path *path_out)
{
	const struct torus *torus = fabric->net;
	uint32_t at = from, stride = 1;

	path_out->wire = fabric->wire_net;
	for (uint32_t d = 0; d < torus->ndims; d++) {
		uint32_t size = torus->dims[d], x = at / stride % size, y = to / stride % size;
		uint32_t up = hk__mod_sub(y, x, size);
		bool down = up > size - up;

		for (uint32_t hops = down ? size - up : up; hops > 0; hops--) {
			hk__path_add(fabric, path_out, 0, at, 2 * d + down);
			uint32_t next = down ? hk__mod_sub(x, 1, size) : hk__mod_add(x, 1, size);
			at = at - x * stride + next * stride;
			x = next;
		}
		stride *= size;
	}
}

static uint32_t torus_levels(const struct hk_fabric *fabric, uint32_t n,
			     uint32_t levels_out[HK__LEVELS_MAX])
{
	const struct torus *torus = fabric->net;

	levels_out[0] = 1;
	levels_out[1] = torus->dims[0];
	levels_out[2] = n / torus->dims[torus->ndims - 1];
	return 3;
}

/* Moving along the last dimension, and along the first: nothing carries over. */
static bool torus_allows(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry)
{
	const struct torus *torus = fabric->net;
	uint32_t n = symmetry->n, plane = n / torus->dims[torus->ndims - 1];
	bool cube = true;

	for (uint32_t d = 0; d < torus->ndims; d++)
		cube &= torus->dims[d] == 2;
	if (n != fabric->ranks || (symmetry->inner && symmetry->node != torus->dims[0]))
		return false;
	if (symmetry->outer == HK__OUTER_XOR)
		return cube;
	return symmetry->outer == HK__OUTER_NONE || symmetry->unit % plane == 0;
}

static void torus_close(struct hk_fabric *fabric)
{
	hk__mem_free(fabric->alloc, fabric->net, 1, sizeof(struct torus));
}

static void torus_dims(const struct torus *torus, const char *between, FILE *file)
{
	for (uint32_t d = 0; d < torus->ndims; d++)
		fprintf(file, "%s%u", d ? between : "", torus->dims[d]);
}

static void torus_draw(const struct hk_fabric *fabric, FILE *file)
{
	const struct torus *torus = fabric->net;

	fputs("torus of ", file);
	torus_dims(torus, " x ", file);
	fputc('\n', file);
	hk__draw_line(file, 1, "%u x %s", fabric->ranks,
		      fabric->devices[fabric->node_kinds[0].device].type);
	hk__draw_kind(fabric, file, 2, 0, 0);
}

static void torus_write(const struct hk_fabric *fabric, FILE *file)
{
	fputs("  kind: torus\n  dimensions: [", file);
	torus_dims(fabric->net, ", ", file);
	fputs("]\n", file);
}

static const struct hk__fabric_ops torus_ops = {
	.name = "torus",
	.path = torus_path,
	.allows = torus_allows,
	.levels = torus_levels,
	.draw = torus_draw,
	.write = torus_write,
	.close = torus_close,
};

enum hk_status hk__torus_build(struct hk_fabric *fabric, const uint32_t *dims, uint32_t ndims,
			       struct hk_why *why)
{
	struct torus *torus = hk__mem_zalloc(fabric->alloc, 1, sizeof(*torus));
	uint64_t ranks = 1, hops = 0;
	uint32_t index;

	if (!torus)
		return hk__why(why, HK_ENOMEM, "out of memory for a torus");
	fabric->net = torus;
	fabric->ops = &torus_ops;
	for (uint32_t d = 0; d < ndims; d++) {
		torus->dims[d] = dims[d];
		ranks *= dims[d];
		hops += dims[d] / 2;
		if (ranks > HK_FABRIC_RANKS_MAX || hops > HK__PATH_MAX)
			return hk__why(why, HK_ELIMIT,
				       "a torus has up to %u devices, and paths of up to %u links",
				       HK_FABRIC_RANKS_MAX, HK__PATH_MAX);
	}
	torus->ndims = ndims;
	struct hk__kind_shape shape = {
		.name = "torus.link",
		.owners = ranks,
		.per_owner = 2 * ndims,
		.owner_ranks = 1,
	};
	struct hk__node_kind kind = { .name = "node", .count = (uint32_t)ranks, .ranks = 1 };
	enum hk_status status = hk__fabric_add_nodes(fabric, &kind, why);
	return status ? status : hk__fabric_add_kind(fabric, &shape, why, &index);
}
