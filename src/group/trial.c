/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - ways for large messages: tried, timed, agreed on, and then known. */
#include "group/inside.h"

#define TRIAL_CLASS_MIN 14u /* 16 KiB: below, nothing is lent */
/* Calls until channels are there and know what they can; long ones come after others. */
#define TRIAL_WARM 4u
#define TRIAL_WARM_LONG 1u
/* Short operations are tried more often: what disturbs them lasts longer than they do. */
#define TRIAL_LONG_CLASS 20u /* 1 MiB */
#define TRIAL_CALLS_SHORT (TRIAL_WARM + 16u * HK__WAY_COUNT)
#define TRIAL_CALLS_LONG (TRIAL_WARM_LONG + 2u * HK__WAY_COUNT)
#define TRIAL_CLASS_MAX 24u /* from 16 MiB on all are alike, and long */

struct hk__trial *hk__trial_of(struct hk_group *group, enum hk_coll coll, uint32_t class)
{
	if (class < TRIAL_CLASS_MIN || !group->world->shm || group->n == 1)
		return NULL;
	class = class < TRIAL_CLASS_MAX ? class : TRIAL_CLASS_MAX;
	struct hk__trial *trial = &group->trials[coll][class];
	if (!trial->wanted)
		trial->wanted = class < TRIAL_LONG_CLASS ? TRIAL_CALLS_SHORT : TRIAL_CALLS_LONG;
	return trial;
}

/* Ranks move between cores: what was found is tried again after so many calls. */
#define TRIAL_FRESH_SHORT 1024u
#define TRIAL_FRESH_LONG 256u
#define TRIAL_AGAIN_SHORT (TRIAL_WARM + 4u * HK__WAY_COUNT)
#define TRIAL_AGAIN_LONG (TRIAL_WARM_LONG + 2u * HK__WAY_COUNT)

static bool trial_is_short(const struct hk__trial *trial)
{
	return trial->wanted == TRIAL_CALLS_SHORT || trial->wanted == TRIAL_AGAIN_SHORT;
}

bool hk__trial_fresh(struct hk__trial *trial)
{
	bool is_short = trial_is_short(trial);

	if (!trial->decided)
		return false;
	if (++trial->age < (is_short ? TRIAL_FRESH_SHORT : TRIAL_FRESH_LONG))
		return true;
	*trial = (struct hk__trial){ .calls = is_short ? TRIAL_WARM : TRIAL_WARM_LONG,
				     .wanted = is_short ? TRIAL_AGAIN_SHORT : TRIAL_AGAIN_LONG,
				     .way = trial->way };
	return false;
}

bool hk__trial_due(const struct hk__trial *trial)
{
	return trial && !trial->decided && trial->calls >= trial->wanted;
}

void hk__trial_words(const struct hk__trial *trial, uint64_t words_out[HK__AGREE_WORDS])
{
	_Static_assert(HK__WAY_COUNT <= HK__AGREE_WORDS, "a word for each way");
	/* The least of the complements is that of the largest. */
	for (unsigned way = 0; way < HK__WAY_COUNT; way++)
		words_out[way] = ~trial->best_ns[way];
}

void hk__trial_decide(struct hk_group *group, struct hk__trial *trial, const uint64_t *worst)
{
	trial->decided = true;
	for (unsigned way = 1; way < HK__WAY_COUNT; way++) {
		if (worst[way] < worst[trial->way])
			trial->way = (enum hk__way)way;
	}
	group->way = trial->way;
}

void hk__trial_begin(struct hk__trial *trial, struct hk__call *call, uint64_t *start_out)
{
	*start_out = 0;
	if (!trial)
		return;
	(void)hk__trial_fresh(trial);
	call->way = trial->decided ? trial->way : (enum hk__way)(trial->calls % HK__WAY_COUNT);
	/* Slices let one copy begin while the other goes on; alone it needs none. */
	if (call->way == HK__WAY_LENT)
		call->slice_min = 0;
	if (!trial->decided)
		*start_out = hk__now_ns();
}

void hk__trial_end(struct hk__trial *trial, uint64_t start)
{
	if (!start)
		return;
	uint64_t took = hk__now_ns() - start;
	uint64_t *best = &trial->best_ns[trial->calls % HK__WAY_COUNT];
	bool is_warm = trial->calls >= (trial_is_short(trial) ? TRIAL_WARM : TRIAL_WARM_LONG);
	if (is_warm && (!*best || took < *best))
		*best = took;
	trial->calls++;
}
