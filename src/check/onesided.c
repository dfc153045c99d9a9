/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onesided.c - puts, signals and waits, for all orders of landing at once.
 *
 * A signal never comes back, so a wait that can go on can go on in every run where
 * the same was sent: letting every lane run until all stop decides progress (I3). What
 * a wait says is another matter. It says what is true in every order in which the
 * signals can land: of all the signals of its word, where it waits for all of them; of
 * the first few, where one lane sends them and they are strong, so that they land in
 * order; else of none. A wait that says nothing goes on only when nothing else can, so
 * that what it might have said is known when somebody relies on it.
 */
#include "check/cross.h"

/* ---- words ---- */

static struct word *word_find(const struct proof *proof, uint32_t rank, uint32_t number)
{
	const struct hk__hash_entry *entry = hk__hash_find(&proof->cross->word_of, rank, number);

	return entry && entry->value != HK_NONE ? hk__array_at(&proof->cross->words, entry->value)
						: NULL;
}

static struct word *word_get(struct proof *proof, uint32_t rank, uint32_t number)
{
	struct cross *cross = proof->cross;
	struct hk__hash_entry *entry = hk__hash_get(&cross->word_of, rank, number);

	if (!entry)
		return NULL;
	if (entry->value != HK_NONE)
		return hk__array_at(&cross->words, entry->value);
	struct word *word = hk__array_push(&cross->words);
	if (!word)
		return NULL;
	entry->value = (uint32_t)cross->words.count - 1;
	*word = (struct word){ .rank = rank,
			       .number = number,
			       .lane = HK_NONE,
			       .head = HK_NONE,
			       .tail = HK_NONE,
			       .at = HK_NONE,
			       .all = HK_NONE,
			       .loose = { HK_NONE, 0 } };

	return word;
}

/* A lane at another step, for a refusal. */
static struct lane step_of(const struct proof *proof, uint32_t lane, uint32_t step)
{
	return (struct lane){ .rank = proof->lanes[lane].rank,
			      .index = proof->lanes[lane].index,
			      .at = step };
}

enum hk_status hk__onesided_scan(struct proof *proof)
{
	for (uint32_t l = 0; l < proof->nlanes; l++) {
		const struct lane *lane = &proof->lanes[l];
		struct hk_step step;

		for (uint32_t i = 0; i < lane->nsteps; i++) {
			hk_plan_step(proof->plan, lane->rank, lane->index, i, &step);
			const char *fault = NULL;
			if (hk__op_onesided(step.op))
				fault = hk__step_fault(proof->plan, lane->rank, &step);
			if (fault) {
				struct lane at = step_of(proof, l, i);

				return hk__refuse(proof, 1, &at, "", "", "%s %s",
						  hk_op_name(step.op), fault);
			}
			if (step.op != HK_OP_SIGNAL)
				continue;
			struct word *word = word_get(proof, step.to.rank, step.to.lane);
			if (!word)
				return HK_ENOMEM;
			if (word->total++ == 0)
				word->lane = l;
			else if (word->lane != l)
				word->lane = HK_NONE;
		}
	}
	return HK_OK;
}

/* ---- what a signal says ---- */

static uint32_t lane_number(const struct proof *proof, const struct lane *lane)
{
	return proof->lane_base[lane->rank] + lane->index;
}

/* The last put of its lane to that rank; of a weak signal only if it is the step before. */
static uint32_t signal_put(const struct proof *proof, const struct lane *lane)
{
	const struct hk__hash_entry *entry =
		hk__hash_find(&proof->cross->last_put, lane_number(proof, lane),
			      lane->step.to.rank);

	if (!entry || entry->value == HK_NONE)
		return HK_NONE;
	if (proof->plan->signals == HK_SIGNALS_WEAK &&
	    cross_put_at(proof->cross, entry->value)->step + 1 != lane->at)
		return HK_NONE;
	return entry->value;
}

/* A put that a signal covers, and the one before it that it covers too. */
static uint32_t put_before(const struct proof *proof, const struct put *put)
{
	return proof->plan->signals == HK_SIGNALS_STRONG ? put->prev : HK_NONE;
}

static enum hk_status wait_needs(struct proof *proof, struct lane *lane,
				 const struct signal *signal)
{
	struct cross *cross = proof->cross;

	hk__cross_learn(proof, lane, signal->lane, signal->step, signal->snapshot);
	if (signal->depth > lane->depth)
		lane->depth = signal->depth;
	for (uint32_t p = signal->put; p != HK_NONE;) {
		struct put *put = cross_put_at(cross, p);

		/* What this lane knows to have landed, it knows of those before as well. */
		if (hk__cross_landed(proof, lane, put))
			return HK_OK;
		if (hk__cross_land(proof, lane, put) != HK_OK)
			return HK_ENOMEM;
		p = put_before(proof, put);
	}
	return HK_OK;
}

/* Whether signals of the word come in order. */
static bool word_ordered(const struct proof *proof, const struct word *word)
{
	return proof->plan->signals == HK_SIGNALS_STRONG && word->lane != HK_NONE;
}

/*
 * The first few of one lane: the last of them knows and says all that the others do.
 * Waits ask for one after the other, so it is found from the one before.
 */
static enum hk_status wait_needs_first(struct proof *proof, struct lane *lane, struct word *word,
				       uint32_t count)
{
	if (word->at == HK_NONE || word->place > count) {
		word->at = word->head;
		word->place = 1;
	}
	for (; word->place < count; word->place++) {
		const struct signal *at = hk__array_at(&proof->cross->signals, word->at);

		word->at = at->next;
	}
	return wait_needs(proof, lane, hk__array_at(&proof->cross->signals, word->at));
}

static enum hk_status wait_needs_all(struct proof *proof, struct lane *lane, struct word *word)
{
	struct link me = { HK_NONE, lane_number(proof, lane), lane->at, HK_NONE };
	enum hk_status status = HK_OK;

	for (uint32_t i = word->all; i != HK_NONE;) {
		const struct link *other = hk__array_at(&proof->cross->links, i);

		/* What it learned once it knows. */
		if (other->lane == me.lane)
			return HK_OK;
		i = other->next;
	}
	for (uint32_t s = word->head; s != HK_NONE && status == HK_OK;) {
		const struct signal *signal = hk__array_at(&proof->cross->signals, s);

		s = signal->next;
		status = wait_needs(proof, lane, signal);
	}
	return status == HK_OK ? hk__cross_link(proof, &word->all, me) : status;
}

/* ---- steps ---- */

/* `out` belongs to the caller until its rank has begun. */
static enum hk_status put_check_begun(struct proof *proof, struct lane *lane)
{
	const struct hk_step *step = &lane->step;
	char expected[HK_CHECK_TEXT_MAX];

	if (step->dst.buf != HK_BUF_OUT || hk__cross_begun(proof, lane, step->to.rank))
		return HK_OK;
	snprintf(expected, sizeof(expected), "a signal or message from rank %u before",
		 step->to.rank);
	return hk__refuse(proof, 5, lane, expected, "none",
			  "puts into out[%u] of rank %u, which is not known to have begun: the "
			  "memory may still be in use by its caller",
			  step->dst.first, step->to.rank);
}

enum hk_status hk__onesided_put(struct proof *proof, struct lane *lane)
{
	struct cross *cross = proof->cross;
	uint32_t me = lane_number(proof, lane);
	struct hk__hash_entry *last = hk__hash_get(&cross->last_put, me, lane->step.to.rank);
	struct put *put = last ? hk__array_push(&cross->puts) : NULL;

	if (!put)
		return HK_ENOMEM;
	*put = (struct put){ .lane = me,
			     .step = lane->at,
			     .rank = lane->step.to.rank,
			     .dst = lane->step.dst,
			     .prev = last->value,
			     .known = HK_NONE,
			     .word = HK_NONE };
	last->value = (uint32_t)cross->puts.count - 1;
	proof->messages_sent++;
	proof->tallies[lane->rank].sent += lane->step.count;
	return put_check_begun(proof, lane);
}

enum hk_status hk__onesided_signal(struct proof *proof, struct lane *lane)
{
	struct cross *cross = proof->cross;
	struct word *word = word_find(proof, lane->step.to.rank, lane->step.to.lane);
	uint32_t snapshot = hk__cross_snapshot(proof, lane);
	struct signal *signal = hk__array_push(&cross->signals);
	uint32_t id = (uint32_t)cross->signals.count - 1;

	hk_assert(word); /* it was scanned */
	if (!signal || snapshot == HK_NONE)
		return HK_ENOMEM;
	*signal = (struct signal){ .lane = lane_number(proof, lane),
				   .step = lane->at,
				   .depth = lane->depth + 1,
				   .snapshot = snapshot,
				   .put = signal_put(proof, lane),
				   .next = HK_NONE };
	if (word->tail == HK_NONE)
		word->head = id;
	else
		((struct signal *)hk__array_at(&cross->signals, word->tail))->next = id;
	word->tail = id;
	word->sent++;
	for (uint32_t p = signal->put; p != HK_NONE;) {
		struct put *put = cross_put_at(cross, p);

		if (put->word != HK_NONE)
			break;
		put->word = (uint32_t)(word - (struct word *)cross->words.items);
		p = put_before(proof, put);
	}
	proof->messages_sent++;
	if (signal->depth > proof->critical)
		proof->critical = signal->depth;
	return HK_OK;
}

static enum hk_status wait_refuse(struct proof *proof, struct lane *lane, uint32_t total)
{
	char expected[64], found[64];

	snprintf(expected, sizeof(expected), "%u signals", lane->step.count);
	snprintf(found, sizeof(found), "%u", total);
	return hk__refuse(proof, 3, lane, expected, found,
			  "waits for %u of its signal %u, but the plan sends it %s%u: it waits "
			  "forever",
			  lane->step.count, lane->step.from.lane, total ? "only " : "", total);
}

enum hk_status hk__onesided_wait(struct proof *proof, struct lane *lane, bool *waits_out)
{
	struct cross *cross = proof->cross;
	struct word *word = word_find(proof, lane->rank, lane->step.from.lane);
	uint32_t count = lane->step.count;
	enum hk_status status = HK_OK;

	*waits_out = false;
	if (!word || count > word->total)
		return wait_refuse(proof, lane, word ? word->total : 0);
	bool needs = count == word->total || word_ordered(proof, word);
	*waits_out = word->sent < count || (!needs && !lane->passes);
	if (word->sent >= count && *waits_out && !lane->held) {
		uint32_t *held = hk__array_push(&cross->held);

		if (!held)
			return HK_ENOMEM;
		*held = lane_number(proof, lane);
		lane->held = true;
	}
	if (*waits_out) {
		lane->wait = LANE_WAITS_SIGNAL;
		return HK_OK;
	}
	lane->passes = false;
	if (count > word->waited)
		word->waited = count;
	if (!needs)
		word->loose = (struct hk_after){ lane->index, lane->at };
	else if (word_ordered(proof, word))
		status = wait_needs_first(proof, lane, word, count);
	else
		status = wait_needs_all(proof, lane, word);
	return status == HK_OK ? hk__cross_note(proof, lane) : status;
}

uint32_t hk__onesided_held(struct proof *proof)
{
	struct hk__array *held = &proof->cross->held;

	if (held->count == 0)
		return HK_NONE;
	uint32_t lane = *(uint32_t *)hk__array_at(held, held->count - 1);
	held->count--;
	proof->lanes[lane].held = false;
	proof->lanes[lane].passes = true;
	return lane;
}

/* ---- the end ---- */

static enum hk_status end_check_put(struct proof *proof, const struct put *put)
{
	struct lane at = step_of(proof, put->lane, put->step);
	char loose[128] = "no wait says that it has landed";

	if (put->known != HK_NONE)
		return HK_OK;
	const struct word *word =
		put->word == HK_NONE ? NULL : hk__array_at(&proof->cross->words, put->word);
	if (word && word->loose.lane != HK_NONE)
		snprintf(loose, sizeof(loose),
			 "the wait of its lane %u step %u needs fewer signals than there are: a "
			 "later chunk can satisfy it",
			 word->loose.lane, word->loose.step);
	return hk__refuse(proof, 5, &at, "a wait there that says that it has landed", "none",
			  "puts into %s[%u] of rank %u, which can end before it lands: %s",
			  hk_buf_name(put->dst.buf), put->dst.first, put->rank, loose);
}

static enum hk_status end_check_word(struct proof *proof, const struct word *word)
{
	const struct signal *last = hk__array_at(&proof->cross->signals, word->tail);
	struct lane at = step_of(proof, last->lane, last->step);
	char expected[64], found[64];

	if (word->waited == word->total)
		return HK_OK;
	snprintf(expected, sizeof(expected), "a wait for all %u", word->total);
	snprintf(found, sizeof(found), "one for %u", word->waited);
	return hk__refuse(proof, 4, &at, expected, word->waited ? found : "none",
			  "signal %u of rank %u is sent %u times, but the rank waits for %u: the "
			  "rest is left for a later operation",
			  word->number, word->rank, word->total, word->waited);
}

/* Its place, or its signal, may be in use by the operation before the last. */
static enum hk_status end_check_begun(struct proof *proof, uint32_t lane, uint32_t step,
				      uint32_t rank)
{
	struct lane at = step_of(proof, lane, step);

	if (hk__cross_ends_after(proof, at.rank, rank))
		return HK_OK;
	return hk__refuse(proof, 5, &at, "a signal or message from there before the end", "none",
			  "reaches rank %u, but rank %u can end before rank %u begins: in the "
			  "operation after the next it could overtake it",
			  rank, at.rank, rank);
}

enum hk_status hk__onesided_end(struct proof *proof)
{
	const struct cross *cross = proof->cross;
	enum hk_status status = HK_OK;

	for (size_t i = 0; i < cross->puts.count && status == HK_OK; i++)
		status = end_check_put(proof, hk__array_at(&cross->puts, i));
	for (size_t i = 0; i < cross->words.count && status == HK_OK; i++)
		status = end_check_word(proof, hk__array_at(&cross->words, i));
	for (size_t i = 0; i < cross->puts.count && status == HK_OK; i++) {
		const struct put *put = hk__array_at(&cross->puts, i);

		status = end_check_begun(proof, put->lane, put->step, put->rank);
	}
	for (size_t i = 0; i < cross->words.count && status == HK_OK; i++) {
		const struct word *word = hk__array_at(&cross->words, i);

		for (uint32_t s = word->head; s != HK_NONE && status == HK_OK;) {
			const struct signal *signal = hk__array_at(&cross->signals, s);

			status = end_check_begun(proof, signal->lane, signal->step, word->rank);
			s = signal->next;
		}
	}
	return status;
}

/* ---- stuck ---- */

const struct lane *hk__onesided_sender(const struct proof *proof, const struct lane *lane,
				       uint32_t *sent_out)
{
	const struct word *word = word_find(proof, lane->rank, lane->step.from.lane);

	*sent_out = word ? word->sent : 0;
	for (uint32_t l = 0; l < proof->nlanes; l++) {
		const struct lane *other = &proof->lanes[l];
		struct hk_step step;

		for (uint32_t i = other->at; i < other->nsteps; i++) {
			hk_plan_step(proof->plan, other->rank, other->index, i, &step);
			if (step.op == HK_OP_SIGNAL && step.to.rank == lane->rank &&
			    step.to.lane == lane->step.from.lane)
				return other;
		}
	}
	return lane;
}
