/* SPDX-License-Identifier: Apache-2.0 */
/*
 * promise.c - the end of the run against what the collective promises (I2):
 * the table of coll.h, slot by slot.
 *
 * A promise is either one input, or the sum of one input slot over all ranks.
 */
#include "check/cross.h"

#include <string.h>

struct promise {
	bool sum;
	uint32_t rank; /* whose input, where it is no sum */
	uint32_t slot; /* of `in` */
};

static struct promise promise_of(const struct hk_plan *plan, uint32_t rank, uint32_t slot)
{
	switch (plan->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_REDUCE:
		return (struct promise){ .sum = true, .slot = slot };
	case HK_COLL_REDUCESCATTER:
		return (struct promise){ .sum = true, .slot = rank };
	case HK_COLL_BROADCAST:
		return (struct promise){ .rank = plan->root, .slot = slot };
	case HK_COLL_SCATTER:
		return (struct promise){ .rank = plan->root, .slot = rank };
	case HK_COLL_ALLGATHER:
	case HK_COLL_GATHER:
		return (struct promise){ .rank = slot, .slot = 0 };
	case HK_COLL_ALLTOALL:
		return (struct promise){ .rank = slot, .slot = rank };
	case HK_COLL_SENDRECV:
		slot = plan->batch->recvs[plan->batch->first_recv[rank] + slot];
		return (struct promise){ .rank = plan->batch->msgs[slot].src,
					 .slot = plan->batch->send_slot[slot] };
	case HK_COLL_BARRIER:
	case HK_COLL_COUNT:
		break;
	}
	hk_assert(!"a collective without output has a slot");
	return (struct promise){ .sum = false };
}

void hk__promise_text(const struct hk_plan *plan, uint32_t rank, uint32_t slot, char *text,
		      size_t size)
{
	struct promise promise = promise_of(plan, rank, slot);

	if (promise.sum)
		snprintf(text, size, "the sum of in[%u] over all %u ranks", promise.slot, plan->n);
	else
		snprintf(text, size, "rank %u's in[%u]", promise.rank, promise.slot);
}

/* Work space to look inside sums. */
struct promise_work {
	uint32_t *inputs; /* n + 1 */
	uint32_t *seen;	  /* n */
	struct hk__array stack;
	struct hk__hash right; /* sums known to be whole, to the slot they sum */
};

/* Exactly one input of that slot from every rank. */
static enum hk_status promise_sum_is_whole(struct proof *proof, struct promise_work *work,
					   uint32_t value, uint32_t slot, bool *whole_out)
{
	uint32_t n = proof->plan->n;
	struct hk__hash_entry *entry = hk__hash_get(&work->right, value, 0);

	if (!entry)
		return HK_ENOMEM;
	if (entry->value != HK_NONE) {
		*whole_out = entry->value == slot;
		return HK_OK;
	}
	*whole_out = false;
	uint32_t count = hk__value_inputs(&proof->values, value, work->inputs, n + 1, &work->stack);
	if (count == HK_NONE)
		return HK_ENOMEM;
	if (count != n)
		return HK_OK;
	memset(work->seen, 0, n * sizeof(*work->seen));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from, at;

		hk__value_origin(&proof->values, work->inputs[i], &from, &at);
		if (at != slot || work->seen[from]++)
			return HK_OK;
	}
	*whole_out = true;
	entry->value = slot;
	return HK_OK;
}

static enum hk_status promise_refuse(struct proof *proof, uint32_t rank, uint32_t slot,
				     const struct promise *promise, const struct cell *cell)
{
	char expected[HK_CHECK_TEXT_MAX], found[HK_CHECK_TEXT_MAX], missing[64] = "";
	struct lane writer = { .rank = rank, .index = cell->lane, .at = cell->step };

	hk__promise_text(proof->plan, rank, slot, expected, sizeof(expected));
	hk__explain_value(proof, cell->value, found, sizeof(found));
	if (promise->sum)
		hk__explain_missing(proof, cell->value, missing, sizeof(missing));
	uint32_t put = proof->cross ? proof->cross->writer[cell - proof->cells] : HK_NONE;
	if (put != HK_NONE) {
		const struct put *by = cross_put_at(proof->cross, put);

		writer = (struct lane){ .rank = proof->lanes[by->lane].rank,
					.index = proof->lanes[by->lane].index,
					.at = by->step };
	}
	char whose[32] = "";
	if (writer.rank != rank)
		snprintf(whose, sizeof(whose), " of rank %u", rank);
	if (!cell->written)
		writer.index = HK_NONE;
	return hk__refuse(proof, 2, &writer, expected, found,
			  "out[%u]%s should hold %s, but holds %s%s", slot, whose, expected, found,
			  missing);
}

static enum hk_status promise_check_slot(struct proof *proof, struct promise_work *work,
					 uint32_t rank, uint32_t slot)
{
	struct promise promise = promise_of(proof->plan, rank, slot);
	const struct cell *cell = &proof->cells[proof->cell_base[rank] + slot];
	bool right;

	if (!promise.sum) {
		right = cell->value == hk__value_input(&proof->values, promise.rank, promise.slot);
	} else if (cell->value == VALUE_NOTHING) {
		right = false;
	} else {
		enum hk_status status =
			promise_sum_is_whole(proof, work, cell->value, promise.slot, &right);
		if (status != HK_OK)
			return status;
	}
	return right ? HK_OK : promise_refuse(proof, rank, slot, &promise, cell);
}

/* The first rank that no lane of rank r knows to have come; n if there is none. */
static uint32_t promise_unknown(const struct proof *proof, uint32_t r)
{
	uint32_t n = proof->plan->n;

	for (uint32_t other = 0; proof->cross && other < n; other++)
		if (!hk__cross_ends_after(proof, r, other))
			return other;
	for (uint32_t w = 0; !proof->cross && w * 32 < n; w++) {
		uint32_t known = r / 32 == w ? 1u << r % 32 : 0;

		for (uint32_t l = proof->lane_base[r]; l < proof->lane_base[r + 1]; l++)
			known |= proof->lanes[l].knows[w];
		if (~known)
			return hk__min(n, w * 32 + (uint32_t)__builtin_ctz(~known));
	}
	return n;
}

/* Nobody may leave a barrier before everybody came. */
static enum hk_status promise_check_barrier(struct proof *proof)
{
	for (uint32_t r = 0; r < proof->plan->n; r++) {
		uint32_t unknown = promise_unknown(proof, r);
		struct lane end = { .rank = r, .index = HK_NONE };
		char expected[64];

		if (unknown == proof->plan->n)
			continue;
		snprintf(expected, sizeof(expected), "word of rank %u's arrival", unknown);
		return hk__refuse(proof, 2, &end, expected, "none",
				  "leaves the barrier without knowing that rank %u came", unknown);
	}
	return HK_OK;
}

/* Whether all ranks have the very same sums: the same bits for floats too. */
static bool promise_consistent(const struct proof *proof)
{
	const struct hk_plan *plan = proof->plan;

	if (plan->coll != HK_COLL_ALLREDUCE)
		return true;
	for (uint32_t r = 1; r < plan->n; r++)
		for (uint32_t k = 0; k < plan->parts; k++)
			if (proof->cells[proof->cell_base[r] + k].value !=
			    proof->cells[proof->cell_base[0] + k].value)
				return false;
	return true;
}

/* A read of nothing is refused even where its result is never used. */
static enum hk_status promise_check_nothing(struct proof *proof)
{
	char found[64];
	struct lane reader = { .rank = proof->nothing.rank,
			       .index = proof->nothing.lane,
			       .at = proof->nothing.step };

	if (proof->nothing.rank == HK_NONE)
		return HK_OK;
	snprintf(found, sizeof(found), "%s[%u], which holds nothing yet",
		 hk_buf_name(proof->nothing.buf), proof->nothing.slot);
	return hk__refuse(proof, 7, &reader, "data", found, "reads %s", found);
}

enum hk_status hk__promise_check(struct proof *proof)
{
	const struct hk_plan *plan = proof->plan;
	enum hk_status status = promise_check_nothing(proof);
	struct promise_work work = { .inputs = NULL };

	if (status == HK_OK && plan->coll == HK_COLL_BARRIER)
		status = promise_check_barrier(proof);
	proof->report->consistent = status == HK_OK;
	if (status != HK_OK || plan->coll == HK_COLL_BARRIER)
		return status;
	hk__array_init(&work.stack, proof->alloc, sizeof(uint32_t));
	hk__hash_init(&work.right, proof->alloc);
	work.inputs = hk__mem_zalloc(proof->alloc, (size_t)plan->n + 1, sizeof(uint32_t));
	work.seen = hk__mem_zalloc(proof->alloc, plan->n, sizeof(uint32_t));
	if (!work.inputs || !work.seen)
		status = HK_ENOMEM;
	for (uint32_t r = 0; r < plan->n && status == HK_OK; r++)
		for (uint32_t k = 0; k < proof->nout[r] && status == HK_OK; k++)
			status = promise_check_slot(proof, &work, r, k);
	hk__mem_free(proof->alloc, work.inputs, (size_t)plan->n + 1, sizeof(uint32_t));
	hk__mem_free(proof->alloc, work.seen, plan->n, sizeof(uint32_t));
	hk__array_fini(&work.stack);
	hk__hash_fini(&work.right);
	proof->report->consistent = status == HK_OK && promise_consistent(proof);
	return status;
}
