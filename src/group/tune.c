/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - which copy method is fastest for large messages: timed, then agreed on. */
#include "group/group.h"

#include <math.h>

#define TUNE_CLASS_MIN 14u /* 16 KiB: below, nothing is lent */
/* Calls until channels are there, know what they can, and all their pages were touched. */
#define TUNE_WARM 4u
/* Short operations are tried more often: what disturbs them lasts longer than they do. */
#define TUNE_LONG_CLASS 20u /* 1 MiB */
#define TUNE_CALLS_SHORT (TUNE_WARM + 16u * HK__COPY_COUNT)
#define TUNE_CALLS_LONG (TUNE_WARM + TUNE_RUN_LONG * HK__COPY_COUNT)
/*
 * A method leaves caches as the next call finds them, so each is done a few times in
 * a row, and the first of them is not counted: it comes after another method.
 */
#define TUNE_RUN_SHORT 4u
#define TUNE_RUN_LONG 3u
#define TUNE_CLASS_MAX 24u /* from 16 MiB on all are alike, and long */

struct hk__tuner *hk__tuner_of(struct hk_group *group, enum hk_coll coll, uint32_t class)
{
	if (class < TUNE_CLASS_MIN || !group->world->shm || group->n == 1)
		return NULL;
	class = class < TUNE_CLASS_MAX ? class : TUNE_CLASS_MAX;
	struct hk__tuner *tuner = &group->tuners[coll][class];
	if (!tuner->wanted)
		tuner->wanted = class < TUNE_LONG_CLASS ? TUNE_CALLS_SHORT : TUNE_CALLS_LONG;
	return tuner;
}

/*
 * Ranks move between cores, so what was found is tried again after so many calls,
 * and after so many more that trying takes no more than a hundredth of the time.
 */
#define TUNE_FRESH_SHORT 1024u
#define TUNE_FRESH_LONG 256u
#define TUNE_FRESH_FIRST 32u /* long ones that were near: each method was counted twice */
#define TUNE_NEAR 1.2	     /* disturbances are rarely shorter than a round of tuning */
#define TUNE_FRESH_MAX 65536u
#define TUNE_SHARE 100u
#define TUNE_AGAIN_SHORT (TUNE_WARM + TUNE_RUN_SHORT * HK__COPY_COUNT)
#define TUNE_AGAIN_LONG TUNE_CALLS_LONG

static bool tuner_is_short(const struct hk__tuner *tuner)
{
	return tuner->wanted == TUNE_CALLS_SHORT || tuner->wanted == TUNE_AGAIN_SHORT;
}

/* Calls in a row by one method. */
static uint32_t tuner_run(const struct hk__tuner *tuner)
{
	return tuner_is_short(tuner) ? TUNE_RUN_SHORT : TUNE_RUN_LONG;
}

/* As all ranks count it, from times all know: calls, by the method it has, until the next round. */
static uint32_t tuner_keeps(const struct hk__tuner *tuner, const uint64_t *worst)
{
	bool is_short = tuner_is_short(tuner);
	double best = (double)worst[tuner->method], more = 0;
	bool near = false;

	for (unsigned m = 0; m < HK__COPY_COUNT; m++) {
		more += (double)worst[m] - best;
		near |= m != tuner->method && (double)worst[m] < TUNE_NEAR * best;
	}
	if (!is_short && !tuner->again && near)
		return TUNE_FRESH_FIRST;
	double least = is_short ? TUNE_FRESH_SHORT : TUNE_FRESH_LONG;
	double calls = best > 0 ? TUNE_SHARE * tuner_run(tuner) * more / best : 0;
	return (uint32_t)fmin(fmax(calls, least), TUNE_FRESH_MAX);
}

bool hk__tuner_fresh(struct hk__tuner *tuner)
{
	bool is_short = tuner_is_short(tuner);

	if (!tuner->decided)
		return false;
	if (++tuner->age < tuner->keeps)
		return true;
	*tuner = (struct hk__tuner){ .calls = TUNE_WARM,
				     .wanted = is_short ? TUNE_AGAIN_SHORT : TUNE_AGAIN_LONG,
				     .again = true,
				     .method = tuner->method };
	return false;
}

/* The method of the next call, and whether it is the first of its run. */
static enum hk__copy_method tuner_next(const struct hk__tuner *tuner, bool *first_out,
				       bool *last_out)
{
	uint32_t run = tuner_run(tuner);
	uint32_t at = tuner->calls - TUNE_WARM;

	*first_out = tuner->calls < TUNE_WARM || at % run == 0;
	*last_out = tuner->calls >= TUNE_WARM && at % run == run - 1;
	return tuner->calls < TUNE_WARM ? HK__COPY_CACHED
					: (enum hk__copy_method)(at / run % HK__COPY_COUNT);
}

bool hk__tuner_due(const struct hk__tuner *tuner)
{
	return tuner && !tuner->decided && tuner->calls >= tuner->wanted;
}

void hk__tuner_words(const struct hk__tuner *tuner, uint64_t words_out[HK__AGREE_WORDS])
{
	_Static_assert(HK__COPY_COUNT <= HK__AGREE_WORDS, "a word for each method");
	/* The least of the complements is that of the largest. */
	for (unsigned m = 0; m < HK__COPY_COUNT; m++)
		words_out[m] = ~tuner->best_ns[m];
}

void hk__tuner_decide(struct hk_group *group, struct hk__tuner *tuner, const uint64_t *worst)
{
	tuner->decided = true;
	/* All of them: one tried again begins from the method it had, whichever that was. */
	for (unsigned m = 0; m < HK__COPY_COUNT; m++) {
		if (worst[m] < worst[tuner->method])
			tuner->method = (enum hk__copy_method)m;
	}
	tuner->keeps = tuner_keeps(tuner, worst);
	group->method = tuner->method;
}

void hk__tuner_begin(struct hk__tuner *tuner, struct hk__call *call, uint64_t *start_out)
{
	bool first, last;

	*start_out = 0;
	if (!tuner)
		return;
	(void)hk__tuner_fresh(tuner);
	call->method = tuner->decided ? tuner->method : tuner_next(tuner, &first, &last);
	/* Slices let one copy begin while the other goes on; alone it needs none. */
	call->whole = call->method == HK__COPY_LENT;
	if (!tuner->decided)
		*start_out = hk__now_ns();
}

void hk__tuner_end(struct hk__tuner *tuner, uint64_t start)
{
	if (!start)
		return;
	bool first, last;
	uint64_t *best = &tuner->best_ns[tuner_next(tuner, &first, &last)];
	uint64_t took = hk__now_ns() - start;
	/* Of few long calls the better one counts: a disturbance would outweigh the other. */
	if (first)
		tuner->run_ns = 0;
	else if (tuner_is_short(tuner))
		tuner->run_ns += took;
	else if (!tuner->run_ns || took < tuner->run_ns)
		tuner->run_ns = took;
	if (last && (!*best || tuner->run_ns < *best))
		*best = tuner->run_ns;
	tuner->calls++;
}
