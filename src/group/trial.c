/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - copy methods for large messages: tried, timed, agreed on, and then known. */
#include "group/group.h"

#include <math.h>

#define TRIAL_CLASS_MIN 14u /* 16 KiB: below, nothing is lent */
/* Calls until channels are there, know what they can, and all their pages were touched. */
#define TRIAL_WARM 4u
/* Short operations are tried more often: what disturbs them lasts longer than they do. */
#define TRIAL_LONG_CLASS 20u /* 1 MiB */
#define TRIAL_CALLS_SHORT (TRIAL_WARM + 16u * HK__COPY_COUNT)
#define TRIAL_CALLS_LONG (TRIAL_WARM + TRIAL_RUN_LONG * HK__COPY_COUNT)
/*
 * A method leaves caches as the next call finds them, so each is done a few times in
 * a row, and the first of them is not counted: it comes after another method.
 */
#define TRIAL_RUN_SHORT 4u
#define TRIAL_RUN_LONG 3u
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

/*
 * Ranks move between cores, so what was found is tried again after so many calls,
 * and after so many more that trying takes no more than a hundredth of the time.
 */
#define TRIAL_FRESH_SHORT 1024u
#define TRIAL_FRESH_LONG 256u
#define TRIAL_FRESH_FIRST 32u /* long ones that were near: each method was counted twice */
#define TRIAL_NEAR 1.2	      /* disturbances are rarely shorter than a trial */
#define TRIAL_FRESH_MAX 65536u
#define TRIAL_SHARE 100u
#define TRIAL_AGAIN_SHORT (TRIAL_WARM + TRIAL_RUN_SHORT * HK__COPY_COUNT)
#define TRIAL_AGAIN_LONG TRIAL_CALLS_LONG

static bool trial_is_short(const struct hk__trial *trial)
{
	return trial->wanted == TRIAL_CALLS_SHORT || trial->wanted == TRIAL_AGAIN_SHORT;
}

/* Calls in a row by one method. */
static uint32_t trial_run(const struct hk__trial *trial)
{
	return trial_is_short(trial) ? TRIAL_RUN_SHORT : TRIAL_RUN_LONG;
}

/* As all ranks count it, from times all know: calls, by the method it has, until the next trial. */
static uint32_t trial_keeps(const struct hk__trial *trial, const uint64_t *worst)
{
	bool is_short = trial_is_short(trial);
	double best = (double)worst[trial->method], more = 0;
	bool near = false;

	for (unsigned m = 0; m < HK__COPY_COUNT; m++) {
		more += (double)worst[m] - best;
		near |= m != trial->method && (double)worst[m] < TRIAL_NEAR * best;
	}
	if (!is_short && !trial->again && near)
		return TRIAL_FRESH_FIRST;
	double least = is_short ? TRIAL_FRESH_SHORT : TRIAL_FRESH_LONG;
	double calls = best > 0 ? TRIAL_SHARE * trial_run(trial) * more / best : 0;
	return (uint32_t)fmin(fmax(calls, least), TRIAL_FRESH_MAX);
}

bool hk__trial_fresh(struct hk__trial *trial)
{
	bool is_short = trial_is_short(trial);

	if (!trial->decided)
		return false;
	if (++trial->age < trial->keeps)
		return true;
	*trial = (struct hk__trial){ .calls = TRIAL_WARM,
				     .wanted = is_short ? TRIAL_AGAIN_SHORT : TRIAL_AGAIN_LONG,
				     .again = true,
				     .method = trial->method };
	return false;
}

/* The method of the next call, and whether it is the first of its run. */
static enum hk__copy_method trial_next(const struct hk__trial *trial, bool *first_out,
				       bool *last_out)
{
	uint32_t run = trial_run(trial);
	uint32_t at = trial->calls - TRIAL_WARM;

	*first_out = trial->calls < TRIAL_WARM || at % run == 0;
	*last_out = trial->calls >= TRIAL_WARM && at % run == run - 1;
	return trial->calls < TRIAL_WARM ? HK__COPY_CACHED
					 : (enum hk__copy_method)(at / run % HK__COPY_COUNT);
}

bool hk__trial_due(const struct hk__trial *trial)
{
	return trial && !trial->decided && trial->calls >= trial->wanted;
}

void hk__trial_words(const struct hk__trial *trial, uint64_t words_out[HK__AGREE_WORDS])
{
	_Static_assert(HK__COPY_COUNT <= HK__AGREE_WORDS, "a word for each method");
	/* The least of the complements is that of the largest. */
	for (unsigned m = 0; m < HK__COPY_COUNT; m++)
		words_out[m] = ~trial->best_ns[m];
}

void hk__trial_decide(struct hk_group *group, struct hk__trial *trial, const uint64_t *worst)
{
	trial->decided = true;
	/* All of them: one tried again begins from the method it had, whichever that was. */
	for (unsigned m = 0; m < HK__COPY_COUNT; m++) {
		if (worst[m] < worst[trial->method])
			trial->method = (enum hk__copy_method)m;
	}
	trial->keeps = trial_keeps(trial, worst);
	group->method = trial->method;
}

void hk__trial_begin(struct hk__trial *trial, struct hk__call *call, uint64_t *start_out)
{
	bool first, last;

	*start_out = 0;
	if (!trial)
		return;
	(void)hk__trial_fresh(trial);
	call->method = trial->decided ? trial->method : trial_next(trial, &first, &last);
	/* Slices let one copy begin while the other goes on; alone it needs none. */
	call->whole = call->method == HK__COPY_LENT;
	if (!trial->decided)
		*start_out = hk__now_ns();
}

void hk__trial_end(struct hk__trial *trial, uint64_t start)
{
	if (!start)
		return;
	bool first, last;
	uint64_t *best = &trial->best_ns[trial_next(trial, &first, &last)];
	uint64_t took = hk__now_ns() - start;
	/* Of few long calls the better one counts: a disturbance would outweigh the other. */
	if (first)
		trial->run_ns = 0;
	else if (trial_is_short(trial))
		trial->run_ns += took;
	else if (!trial->run_ns || took < trial->run_ns)
		trial->run_ns = took;
	if (last && (!*best || trial->run_ns < *best))
		*best = trial->run_ns;
	trial->calls++;
}
