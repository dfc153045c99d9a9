/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - contexts of groups, from stamps: see group.h. */
#include "group/group.h"

#define RANK_BITS 24u
#define RANK_MASK ((UINT64_C(1) << RANK_BITS) - 1)
#define CLOCK_MAX ((UINT64_C(1) << HK_CONTEXT_CLOCK_BITS) - 1)

_Static_assert(HK_RANKS_MAX - 1 <= RANK_MASK, "every rank fits a stamp");
_Static_assert(HK_CONTEXT_CLOCK_BITS + RANK_BITS <= 63, "a context fits the integers of JSON");

enum hk_status hk__stamp_make(struct hk_group *group, uint64_t *stamp_out)
{
	struct hk__world *world = group->world;

	hk__world_lock(world);
	bool any = world->clock < CLOCK_MAX;
	if (any)
		world->clock++;
	uint64_t clock = world->clock;
	hk__world_unlock(world);
	if (!any)
		return hk__group_refuse(group, HK_ELIMIT,
					"too many groups were created in this job: restart it");
	*stamp_out = clock << RANK_BITS | (RANK_MASK - world->rank);
	return HK_OK;
}

uint64_t hk__stamp_context(struct hk__world *world, uint64_t stamp)
{
	uint64_t clock = stamp >> RANK_BITS & CLOCK_MAX;

	hk__world_lock(world);
	if (world->clock < clock)
		world->clock = clock;
	hk__world_unlock(world);
	return (RANK_MASK - (stamp & RANK_MASK)) << HK_CONTEXT_CLOCK_BITS | clock;
}
