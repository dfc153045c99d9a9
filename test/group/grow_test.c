/* SPDX-License-Identifier: Apache-2.0 */
/* grow_test.c - new ranks in a running group: who comes, who does not, who must not. */
#include "group/boot_ranks.h"
#include "group/cast.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* What parts tell each other. */
struct notes {
	_Atomic uint32_t grown;	  /* members that have */
	_Atomic uint32_t refused; /* newcomers that were */
	_Atomic uint32_t waiting; /* parts that are about to wait */
};

/* ---- as it should be ---- */

static void newcomer(uint32_t as, void *shared)
{
	struct hk_group *group = cast_join(HK_NONE, 0);

	(void)shared;
	CHECK(hk_group_rank(group) >= as);
	cast_sum(group);
	hk_group_free(group);
}

/* Both groups are of use, until the old one is freed. */
static void member_grows(uint32_t as, void *shared)
{
	struct hk_group *group = cast_join(as, 3), *grown = cast_grow(group, 5), *half;

	(void)shared;
	cast_sum(group);
	cast_sum(grown);
	cast_sum(group);
	hk_group_free(group);
	/* Newcomers do not split: these ranks alone would. */
	CHECK_EQ(hk_group_split(grown, 0, 0, NULL), HK_EINVAL);
	(void)half;
	hk_group_free(grown);
}

TEST(three_become_five)
{
	for (uint32_t s = 0; s < cast_scenes_count; s++) {
		cast_begin(&cast_scenes[s], sizeof(struct notes));
		for (uint32_t r = 0; r < 3; r++)
			cast_play(member_grows, r);
		for (uint32_t i = 0; i < 2; i++)
			cast_play(newcomer, 3);
		cast_end();
	}
}
