/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - copied twice or once: tried, timed, agreed on, and then known. */
#include "group/inside.h"

#define TRIAL_CLASS_MIN 14u /* 16 KiB: below, nothing is lent */
#define TRIAL_WARM 4u	    /* calls until channels are there and know what they can */
/* Short operations are tried more often: what disturbs them lasts longer than they do. */
#define TRIAL_LONG_CLASS 20u /* 1 MiB */
#define TRIAL_CALLS_SHORT (TRIAL_WARM + 48u)
#define TRIAL_CALLS_LONG (TRIAL_WARM + 12u)

struct hk__trial *hk__trial_of(struct hk_group *group, enum hk_coll coll, uint32_t class)
{
	if (class < TRIAL_CLASS_MIN || !group->world->shm || group->n == 1)
		return NULL;
	struct hk__trial *trial = &group->trials[coll][class];
	trial->wanted = class < TRIAL_LONG_CLASS ? TRIAL_CALLS_SHORT : TRIAL_CALLS_LONG;
	return trial;
}

bool hk__trial_due(const struct hk__trial *trial)
{
	return trial && !trial->decided && trial->calls >= trial->wanted;
}

void hk__trial_decide(struct hk_group *group, struct hk__trial *trial, const uint64_t worst[2])
{
	trial->decided = true;
	trial->once = group->once = worst[1] < worst[0];
}

void hk__trial_begin(const struct hk__trial *trial, struct hk__call *call, uint64_t *start_out)
{
	*start_out = 0;
	if (!trial)
		return;
	call->single_copy = trial->decided ? trial->once : trial->calls % 2;
	/* Slices let one copy begin while the other goes on; alone it needs none. */
	if (call->single_copy)
		call->slice_min = 0;
	if (!trial->decided)
		*start_out = hk__now_ns();
}

void hk__trial_end(struct hk__trial *trial, uint64_t start)
{
	if (!start)
		return;
	uint64_t took = hk__now_ns() - start;
	uint64_t *best = &trial->best_ns[trial->calls % 2];
	if (trial->calls >= TRIAL_WARM && (!*best || took < *best))
		*best = took;
	trial->calls++;
}
