/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alike.c - which ranks and links are alike.
 *
 * A network says which groups it allows; what a group does to a link follows from
 * the link's owner (consecutive ranks, moved as ranks are) and its member: fixed,
 * a rail (moved as the devices that use it), or a sibling of the owner.
 */
#include "fabric/topology.h"

static bool is_pow2(uint32_t x)
{
	return x && !(x & (x - 1));
}

static bool symmetry_is_trivial(const struct hk__symmetry *symmetry)
{
	return symmetry->outer == HK__OUTER_NONE && !symmetry->inner;
}

/* What has to hold of the numbers, whatever the fabric. */
static bool symmetry_is_sound(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry)
{
	uint32_t n = symmetry->n, unit = symmetry->unit, node = symmetry->node;

	if (n == 0 || n > fabric->ranks || unit == 0 || node == 0 || n % unit || unit % node)
		return false;
	if (symmetry->outer == HK__OUTER_NONE && unit != n)
		return false;
	if (symmetry->outer == HK__OUTER_XOR && (!is_pow2(unit) || !is_pow2(n / unit)))
		return false;
	return symmetry->inner || node == 1;
}

bool hk__fabric_allows(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry)
{
	return symmetry_is_sound(fabric, symmetry) &&
	       (symmetry_is_trivial(symmetry) || fabric->ops->allows(fabric, symmetry));
}

/* Turning nodes as well, where that can be. */
static void symmetry_add_inner(const struct hk_fabric *fabric, const uint32_t *levels,
			       uint32_t nlevels, struct hk__symmetry *symmetry)
{
	for (uint32_t i = nlevels; i-- > 0;) {
		struct hk__symmetry with = *symmetry;

		with.inner = true;
		with.node = levels[i];
		if (levels[i] > 1 && hk__fabric_allows(fabric, &with)) {
			*symmetry = with;
			return;
		}
	}
}

void hk__fabric_symmetry(const struct hk_fabric *fabric, uint32_t n, enum hk__outer outer,
			 struct hk__symmetry *symmetry_out)
{
	struct hk__symmetry best = { .n = n, .unit = n, .node = 1 };
	uint32_t levels[HK__LEVELS_MAX];

	hk_assert(n > 0 && n <= fabric->ranks);
	uint32_t nlevels = fabric->ops->levels(fabric, n, levels);
	for (uint32_t i = 0; i < nlevels && outer != HK__OUTER_NONE; i++) {
		struct hk__symmetry with = { .n = n, .outer = outer, .unit = levels[i], .node = 1 };

		if (levels[i] < n && hk__fabric_allows(fabric, &with)) {
			best = with;
			break;
		}
	}
	symmetry_add_inner(fabric, levels, nlevels, &best);
	*symmetry_out = best;
}

/* ---- links ---- */

/* How a group moves the owners of a kind. */
struct owners {
	uint32_t count; /* owners that the first n ranks have */
	uint32_t step;	/* how many move together */
	uint32_t turn;	/* how many an inner element turns; 1: none */
};

static struct owners owners_of(const struct hk__link_kind *kind,
			       const struct hk__symmetry *symmetry)
{
	uint32_t ranks = hk__max(kind->owner_ranks, 1);
	struct owners owners = {
		.count = (symmetry->n + ranks - 1) / ranks,
		.step = (symmetry->unit + ranks - 1) / ranks,
		.turn = symmetry->inner && ranks == 1 ? symmetry->node : 1,
	};

	return owners;
}

/* A rail: its class, and how many it is alike to. */
static uint32_t rail_class(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry,
			   uint32_t rails, uint32_t rail, uint64_t *size)
{
	uint32_t devices = fabric->node_kinds[0].ranks, share = devices / rails;

	if (symmetry->outer == HK__OUTER_XOR && symmetry->unit < devices) {
		uint32_t step = hk__min(hk__max(symmetry->unit / share, 1), rails);

		*size *= rails / step;
		rail %= step;
	}
	if (symmetry->inner && share == 1) {
		*size *= symmetry->node;
		rail -= rail % symmetry->node;
	}
	return rail;
}

/* Moves the pair of owner and peer so that the owner is the first of its orbit. */
static uint32_t peer_class(const struct hk__symmetry *symmetry, const struct owners *owners,
			   uint32_t siblings, uint32_t owner, uint32_t peer)
{
	uint32_t at = owner - owner % siblings + peer, turned = owner % owners->turn;

	at = at - at % owners->turn + hk__mod_sub(at % owners->turn, turned, owners->turn);
	owner -= turned;
	uint32_t moved = owner - owner % owners->step;
	if (symmetry->outer == HK__OUTER_XOR)
		at ^= moved;
	else
		at = hk__mod_sub(at % owners->count, moved, owners->count);
	return at % siblings;
}

uint64_t hk__fabric_link_classes(const struct hk_fabric *fabric,
				 const struct hk__symmetry *symmetry)
{
	uint64_t classes = 0;

	if (symmetry_is_trivial(symmetry))
		return fabric->links;
	for (uint32_t i = 0; i < fabric->nkinds; i++)
		classes += (uint64_t)owners_of(&fabric->kinds[i], symmetry).step *
			   fabric->kinds[i].per_owner;
	return classes;
}

void hk__fabric_link_class(const struct hk_fabric *fabric, const struct hk__symmetry *symmetry,
			   uint64_t link, uint64_t *class_out, uint64_t *size_out)
{
	const struct hk__link_kind *kind = fabric->kinds;
	uint64_t base = 0;

	*class_out = link;
	*size_out = 1;
	if (symmetry_is_trivial(symmetry))
		return;
	for (; kind->first + kind->owners * kind->per_owner <= link; kind++)
		base += (uint64_t)owners_of(kind, symmetry).step * kind->per_owner;
	struct owners owners = owners_of(kind, symmetry);
	uint32_t member = (uint32_t)((link - kind->first) % kind->per_owner);
	uint32_t owner = (uint32_t)((link - kind->first) / kind->per_owner) % owners.count;

	*size_out = (uint64_t)(owners.count / owners.step) * owners.turn;
	if (kind->member == HK__MEMBER_RAIL)
		member = rail_class(fabric, symmetry, kind->per_owner, member, size_out);
	else if (kind->member == HK__MEMBER_PEER)
		member = peer_class(symmetry, &owners, kind->per_owner, owner, member);
	owner %= owners.step;
	owner -= owner % owners.turn;
	*class_out = base + (uint64_t)owner * kind->per_owner + member;
}
