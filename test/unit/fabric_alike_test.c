/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric_alike_test.c - symmetries that a fabric claims, element by element: every
 * path is mapped onto a path of the same kinds, sharing the same links; classes of
 * links are orbits, and their sizes are right.
 */
#include "fabric/topology.h"
#include "harness.h"

static struct hk_fabric *opened(const char *spec)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;

	if (hk_fabric_create(spec, NULL, &why, &fabric) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", spec, why.text);
	return fabric;
}

/* Where an element takes a rank: `by` units, and a turn of every node. */
static uint32_t moved(const struct hk__symmetry *s, uint32_t by, uint32_t turn, uint32_t rank)
{
	uint32_t unit = rank / s->unit, in = rank % s->unit;

	if (s->inner)
		in = in - in % s->node + (in % s->node + turn) % s->node;
	if (s->outer == HK__OUTER_SHIFT)
		unit = (unit + by) % (s->n / s->unit);
	else if (s->outer == HK__OUTER_XOR)
		unit ^= by;
	return unit * s->unit + in;
}

/* What one element makes of links, as far as paths say so. */
struct image {
	uint64_t *to; /* of a link; UINT64_MAX: not seen */
	uint64_t *from;
};

static void image_add(const struct hk_fabric *fabric, struct image *image, uint64_t link,
		      uint64_t to)
{
	CHECK(hk__fabric_kind(fabric, link) == hk__fabric_kind(fabric, to));
	CHECK(image->to[link] == UINT64_MAX || image->to[link] == to);
	CHECK(image->from[to] == UINT64_MAX || image->from[to] == link);
	image->to[link] = to;
	image->from[to] = link;
}

struct orbits {
	const struct hk_fabric *fabric;
	const struct hk__symmetry *s;
	uint64_t *root; /* of the union of links; UINT64_MAX: not used */
};

static uint64_t orbit_root(struct orbits *orbits, uint64_t link)
{
	while (orbits->root[link] != link)
		link = orbits->root[link];
	return link;
}

static void element_check(struct orbits *orbits, uint32_t by, uint32_t turn)
{
	const struct hk_fabric *fabric = orbits->fabric;
	const struct hk__symmetry *s = orbits->s;
	struct image image = { malloc(fabric->links * 8), malloc(fabric->links * 8) };
	struct hk__path path, to;

	memset(image.to, 0xff, fabric->links * 8);
	memset(image.from, 0xff, fabric->links * 8);
	for (uint32_t a = 0; a < s->n; a++)
		for (uint32_t b = 0; b < s->n; b++) {
			hk__fabric_path(fabric, a, b, &path);
			hk__fabric_path(fabric, moved(s, by, turn, a), moved(s, by, turn, b), &to);
			CHECK_EQ(path.nlinks, to.nlinks);
			CHECK_EQ(path.wire, to.wire);
			CHECK(path.delay_ns == to.delay_ns);
			for (uint32_t i = 0; i < path.nlinks; i++) {
				image_add(fabric, &image, path.links[i], to.links[i]);
				uint64_t x = path.links[i], y = to.links[i];

				if (orbits->root[x] == UINT64_MAX)
					orbits->root[x] = x;
				if (orbits->root[y] == UINT64_MAX)
					orbits->root[y] = y;
				orbits->root[orbit_root(orbits, x)] = orbit_root(orbits, y);
			}
		}
	free(image.to);
	free(image.from);
}

/* Orbits by union against classes by arithmetic. */
static void classes_check(struct orbits *orbits)
{
	const struct hk_fabric *fabric = orbits->fabric;
	uint64_t classes = hk__fabric_link_classes(fabric, orbits->s);
	uint64_t *root_of = malloc(classes * 8), *sizes = calloc(fabric->links, 8);

	memset(root_of, 0xff, classes * 8);
	for (uint64_t i = 0; i < fabric->links; i++)
		if (orbits->root[i] != UINT64_MAX)
			sizes[orbit_root(orbits, i)]++;
	for (uint64_t i = 0; i < fabric->links; i++) {
		uint64_t class, size;

		if (orbits->root[i] == UINT64_MAX)
			continue;
		hk__fabric_link_class(fabric, orbits->s, i, &class, &size);
		CHECK(class < classes);
		if (root_of[class] == UINT64_MAX)
			root_of[class] = orbit_root(orbits, i);
		CHECK_EQ(root_of[class], orbit_root(orbits, i));
		CHECK_EQ(size, sizes[orbit_root(orbits, i)]);
	}
	/* Two classes are two orbits. */
	for (uint64_t a = 0; a < classes; a++)
		for (uint64_t b = 0; b < a; b++)
			CHECK(root_of[a] == UINT64_MAX || root_of[a] != root_of[b]);
	free(root_of);
	free(sizes);
}

static void symmetry_check(const struct hk_fabric *fabric, const struct hk__symmetry *s)
{
	struct orbits orbits = { fabric, s, malloc(fabric->links * 8) };

	CHECK(s->n % s->unit == 0 && s->unit % s->node == 0);
	CHECK(s->outer != HK__OUTER_NONE || s->unit == s->n);
	CHECK(s->inner || s->node == 1);
	CHECK(hk__fabric_allows(fabric, s));
	memset(orbits.root, 0xff, fabric->links * 8);
	for (uint32_t by = 0; by < s->n / s->unit; by++)
		for (uint32_t turn = 0; turn < s->node; turn++)
			element_check(&orbits, by, turn);
	classes_check(&orbits);
	free(orbits.root);
}

static struct hk__symmetry symmetry_of(const struct hk_fabric *fabric, uint32_t n,
				       enum hk__outer outer)
{
	struct hk__symmetry s;

	hk__fabric_symmetry(fabric, n, outer, &s);
	CHECK_EQ(s.n, n);
	CHECK(s.outer == outer || s.outer == HK__OUTER_NONE);
	return s;
}

static void fabric_check(const char *spec, uint32_t step)
{
	struct hk_fabric *fabric = opened(spec);

	for (uint32_t n = step; n <= fabric->ranks; n += step)
		for (int outer = HK__OUTER_NONE; outer <= HK__OUTER_XOR; outer++) {
			struct hk__symmetry s = symmetry_of(fabric, n, (enum hk__outer)outer);

			symmetry_check(fabric, &s);
		}
	hk_fabric_free(fabric);
}

/* Every group of these fabrics that is allowed, not just the one that is offered. */
static void allowed_check(const char *spec, uint32_t n)
{
	struct hk_fabric *fabric = opened(spec);
	uint32_t seen = 0;

	for (uint32_t unit = 1; unit <= n; unit++)
		for (uint32_t node = 1; node <= unit; node++)
			for (int outer = HK__OUTER_NONE; outer <= HK__OUTER_XOR; outer++) {
				struct hk__symmetry s = { n, (enum hk__outer)outer, unit, node,
							  node > 1 };

				if (!hk__fabric_allows(fabric, &s))
					continue;
				symmetry_check(fabric, &s);
				seen++;
			}
	CHECK(seen > 1);
	hk_fabric_free(fabric);
}

TEST(switches)
{
	fabric_check("switch:9", 1);
	allowed_check("switch:12", 12);
	allowed_check("switch:16", 16);
}

TEST(nodes_and_leaves)
{
	fabric_check("dgx-h100:1", 1);
	fabric_check("dgx-h100:3", 4);
	fabric_check("dgx-h100:8,leaf=2", 8);
	allowed_check("dgx-h100:8,leaf=2", 64);
	allowed_check("dgx-h100:8,leaf=4", 32);
	allowed_check("dgx-h100:2", 16);
}

TEST(pairs_and_shared_nics)
{
	fabric_check("slingshot-a100:1", 1);
	fabric_check("slingshot-a100:6,leaf=3", 4);
	allowed_check("slingshot-a100:4,leaf=2", 16);
	allowed_check("slingshot-a100:1", 4);
	allowed_check("slingshot-a100:1", 3);
	allowed_check("tcp-cluster:6,ranks=4,leaf=2", 24);
	allowed_check("tcp-cluster:4,ranks=4,leaf=2", 16);
	fabric_check("dgx-a100:3,leaf=1", 8);
}

TEST(tori)
{
	fabric_check("torus:7", 1);
	fabric_check("torus:4x3", 4);
	fabric_check("torus:3x4x2", 6);
	allowed_check("torus:2x2x2x2", 16);
	allowed_check("torus:3x1x4", 12);
	allowed_check("torus:6", 6);
}

TEST(dragonflies)
{
	fabric_check("dragonfly:5x2x2", 2);
	fabric_check("dragonfly:3x4x2", 1);
	allowed_check("dragonfly:6x2x2", 24);
	allowed_check("dragonfly:2x4x4", 16);
	allowed_check("dragonfly:2x4x4", 32);
	allowed_check("dragonfly:1x4x3", 12);
}

static void offers(const char *spec, uint32_t n, enum hk__outer outer, enum hk__outer got,
		   uint32_t unit, uint32_t node)
{
	struct hk_fabric *fabric = opened(spec);
	struct hk__symmetry s = symmetry_of(fabric, n, outer);

	CHECK_EQ(s.outer, got);
	CHECK_EQ(s.unit, unit);
	CHECK_EQ(s.node, node);
	CHECK_EQ(s.inner, node > 1);
	hk_fabric_free(fabric);
}

TEST(the_smallest_unit_is_offered)
{
	offers("switch:10", 10, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 1, 1);
	offers("switch:10", 8, HK__OUTER_XOR, HK__OUTER_XOR, 1, 1);
	offers("switch:10", 10, HK__OUTER_XOR, HK__OUTER_NONE, 10, 1);
	offers("dgx-h100:1", 5, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 1, 1);
	offers("dgx-h100:16", 128, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 8, 8);
	offers("dgx-h100:16", 124, HK__OUTER_SHIFT, HK__OUTER_NONE, 124, 1);
	offers("dgx-h100:128", 1024, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 256, 8);
	offers("dgx-h100:128", 256, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 8, 8);
	offers("dgx-h100:100", 800, HK__OUTER_SHIFT, HK__OUTER_NONE, 800, 8);
	offers("dgx-h100:16384", 131072, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 1024, 8);
	offers("dgx-h100:16384", 131072, HK__OUTER_XOR, HK__OUTER_XOR, 1, 1);
	offers("slingshot-a100:8", 32, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 4, 1);
	offers("tcp-cluster:8,ranks=3", 24, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 3, 3);
	offers("gb200-nvl72:8", 576, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 72, 72);
	offers("gb200-nvl72:1", 64, HK__OUTER_XOR, HK__OUTER_XOR, 1, 1);
	offers("torus:4x4x4", 64, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 16, 4);
	offers("torus:4x4x4", 64, HK__OUTER_XOR, HK__OUTER_NONE, 64, 4);
	offers("dragonfly:5x4x2", 40, HK__OUTER_SHIFT, HK__OUTER_SHIFT, 8, 2);
}
