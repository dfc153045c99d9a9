/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.c - the collectives as data: names, slots of each buffer, symbols and
 * lengths of slots, and which slots coincide in place. The table in coll.h,
 * in code. Promises are proved in check/promise.c.
 */
#include "plan/plan.h"
#include "plan/store.h"

#include <string.h>

const char *hk_coll_name(enum hk_coll coll)
{
	switch (coll) {
#define COLL_NAME(id, name) \
	case HK_COLL_##id: \
		return name;
		HK_COLL_MAP(COLL_NAME)
#undef COLL_NAME
	case HK_COLL_COUNT:
		break;
	}
	return "?";
}

enum hk_status hk_coll_parse(const char *name, enum hk_coll *coll_out)
{
	/* Which of them have a v form of their own name. */
	static const char *const v_forms[HK_COLL_COUNT] = {
		[HK_COLL_ALLGATHER] = "allgatherv", [HK_COLL_REDUCESCATTER] = "reducescatterv",
		[HK_COLL_ALLTOALL] = "alltoallv",   [HK_COLL_GATHER] = "gatherv",
		[HK_COLL_SCATTER] = "scatterv",
	};

	for (unsigned i = 0; i < HK_COLL_COUNT; i++) {
		if (hk__name_equal(name, hk_coll_name((enum hk_coll)i)) ||
		    (v_forms[i] && hk__name_equal(name, v_forms[i]))) {
			*coll_out = (enum hk_coll)i;
			return HK_OK;
		}
	}
	return HK_EINVAL;
}

bool hk__coll_rooted(enum hk_coll coll)
{
	return coll == HK_COLL_BROADCAST || coll == HK_COLL_REDUCE || coll == HK_COLL_GATHER ||
	       coll == HK_COLL_SCATTER;
}

bool hk__coll_vector(enum hk_coll coll)
{
	return coll == HK_COLL_ALLREDUCE || coll == HK_COLL_BROADCAST || coll == HK_COLL_REDUCE;
}

/*
 * A slot of `in` may share memory with a slot of `out` only where both have
 * the same symbol: blocks of an alltoall go both ways, and their lengths differ.
 */
bool hk__coll_reduces(enum hk_coll coll)
{
	return coll == HK_COLL_ALLREDUCE || coll == HK_COLL_REDUCE || coll == HK_COLL_REDUCESCATTER;
}

bool hk__coll_inplace(enum hk_coll coll)
{
	return coll != HK_COLL_ALLTOALL && coll != HK_COLL_BARRIER && coll != HK_COLL_SENDRECV;
}

static uint64_t sum_of(const uint64_t *counts, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; r < n; r++)
		if (__builtin_add_overflow(sum, counts[r], &sum))
			return UINT64_MAX;
	return sum;
}

void hk__coll_lengths(const struct hk__coll_lengths *call, uint64_t *in_out, uint64_t *out_out)
{
	bool root = !hk__coll_rooted(call->coll) || call->root == call->rank;
	const uint64_t *counts = call->sizes.counts;
	uint64_t one = counts ? counts[call->rank] : call->sizes.count;
	uint64_t all = counts ? sum_of(counts, call->n) : 0;

	if (!counts && __builtin_mul_overflow(call->sizes.count, call->n, &all))
		all = UINT64_MAX;
	*in_out = *out_out = one;
	if (call->coll == HK_COLL_BARRIER)
		*in_out = *out_out = 0;
	else if (call->coll == HK_COLL_ALLGATHER)
		*out_out = all;
	else if (call->coll == HK_COLL_REDUCESCATTER)
		*in_out = all;
	else if (call->coll == HK_COLL_ALLTOALL) {
		*in_out = call->in_counts ? sum_of(call->in_counts, call->n) : all;
		*out_out = call->out_counts ? sum_of(call->out_counts, call->n) : all;
	} else if (call->coll == HK_COLL_GATHER)
		*out_out = root ? all : 0;
	else if (call->coll == HK_COLL_SCATTER)
		*in_out = root ? all : 0;
	else if (call->coll == HK_COLL_BROADCAST)
		*in_out = root ? one : 0;
	else if (call->coll == HK_COLL_REDUCE)
		*out_out = root ? one : 0;
}

/*
 * Bytes of an alltoall stay where they arrive: nothing waits for the first of them,
 * and a stream between hosts carries some while others are copied to and from it.
 */
enum hk__cut_kind hk__coll_cut(enum hk_coll coll, const struct hk__cut_rule *rule)
{
	if (!rule->cores)
		return HK__CUT_COPIES;
	if (hk__coll_reduces(coll))
		return HK__CUT_SUMS;
	return coll == HK_COLL_ALLTOALL && rule->streams ? HK__CUT_LEAST : HK__CUT_COPIES;
}

uint32_t hk__plan_chunks(const struct hk_plan *plan)
{
	if (hk__coll_vector(plan->coll))
		return plan->parts;
	return plan->coll == HK_COLL_BARRIER || plan->coll == HK_COLL_SENDRECV ? 1 : plan->n;
}

static uint32_t coll_scratch(const struct hk_plan *plan, uint32_t rank)
{
	if (plan->store)
		return plan->store->ranks[rank].scratch;
	return plan->algo->scratch ? plan->algo->scratch(plan, rank) : 0;
}

static uint32_t coll_slots_in(const struct hk_plan *plan, uint32_t rank)
{
	switch (plan->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_REDUCE:
		return plan->parts;
	case HK_COLL_BROADCAST:
		return rank == plan->root ? plan->parts : 0;
	case HK_COLL_ALLGATHER:
	case HK_COLL_GATHER:
		return 1;
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_ALLTOALL:
		return plan->n;
	case HK_COLL_SCATTER:
		return rank == plan->root ? plan->n : 0;
	case HK_COLL_SENDRECV:
		return plan->batch->first_send[rank + 1] - plan->batch->first_send[rank];
	case HK_COLL_BARRIER:
	case HK_COLL_COUNT:
		break;
	}
	return 0;
}

static uint32_t coll_slots_out(const struct hk_plan *plan, uint32_t rank)
{
	switch (plan->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_BROADCAST:
		return plan->parts;
	case HK_COLL_REDUCE:
		return rank == plan->root ? plan->parts : 0;
	case HK_COLL_ALLGATHER:
	case HK_COLL_ALLTOALL:
		return plan->n;
	case HK_COLL_GATHER:
		return rank == plan->root ? plan->n : 0;
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_SCATTER:
		return 1;
	case HK_COLL_SENDRECV:
		return plan->batch->first_recv[rank + 1] - plan->batch->first_recv[rank];
	case HK_COLL_BARRIER:
	case HK_COLL_COUNT:
		break;
	}
	return 0;
}

uint32_t hk_plan_slots(const struct hk_plan *plan, uint32_t rank, enum hk_buf buf)
{
	hk_assert(rank < plan->n);
	switch (buf) {
	case HK_BUF_IN:
		return coll_slots_in(plan, rank);
	case HK_BUF_OUT:
		return coll_slots_out(plan, rank);
	case HK_BUF_SCRATCH:
		return coll_scratch(plan, rank);
	case HK_BUF_NONE:
		break;
	}
	return 0;
}

uint64_t hk_plan_symbol(const struct hk_plan *plan, uint32_t rank, enum hk_buf buf, uint32_t slot)
{
	uint64_t n = plan->n;

	hk_assert(buf == HK_BUF_IN || buf == HK_BUF_OUT);
	hk_assert(slot < hk_plan_slots(plan, rank, buf));
	switch (plan->coll) {
	case HK_COLL_ALLGATHER:
	case HK_COLL_GATHER:
		return buf == HK_BUF_IN ? rank : slot;
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_SCATTER:
		return buf == HK_BUF_OUT ? rank : slot;
	case HK_COLL_ALLTOALL:
		return buf == HK_BUF_IN ? rank * n + slot : slot * n + rank;
	case HK_COLL_SENDRECV:
		return buf == HK_BUF_IN ? plan->batch->sends[plan->batch->first_send[rank] + slot]
					: plan->batch->recvs[plan->batch->first_recv[rank] + slot];
	case HK_COLL_ALLREDUCE:
	case HK_COLL_BROADCAST:
	case HK_COLL_REDUCE:
	case HK_COLL_BARRIER:
	case HK_COLL_COUNT:
		break;
	}
	return slot;
}

uint64_t hk_plan_counts(const struct hk_plan *plan)
{
	if (hk__coll_vector(plan->coll))
		return 1;
	switch (plan->coll) {
	case HK_COLL_ALLTOALL:
		return (uint64_t)plan->n * plan->n;
	case HK_COLL_SENDRECV:
		return plan->batch->nmsgs;
	case HK_COLL_BARRIER:
		return 0;
	default:
		return plan->n;
	}
}

uint64_t hk_plan_length(const struct hk_plan *plan, const struct hk_sizes *sizes, uint64_t symbol)
{
	if (!hk__coll_vector(plan->coll))
		return sizes->counts ? sizes->counts[symbol] : sizes->count;
	uint64_t count = sizes->counts ? sizes->counts[0] : sizes->count;
	return count / plan->parts + (symbol < count % plan->parts);
}

uint32_t hk_plan_inplace_slot(const struct hk_plan *plan, uint32_t rank, uint32_t slot)
{
	hk_assert(slot < hk_plan_slots(plan, rank, HK_BUF_IN));
	switch (plan->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_BROADCAST:
		return slot;
	case HK_COLL_REDUCE:
		return rank == plan->root ? slot : HK_NONE;
	case HK_COLL_ALLGATHER:
		return rank;
	case HK_COLL_GATHER:
		return rank == plan->root ? rank : HK_NONE;
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_SCATTER:
		return slot == rank ? 0 : HK_NONE;
	case HK_COLL_ALLTOALL:
	case HK_COLL_BARRIER:
	case HK_COLL_SENDRECV:
	case HK_COLL_COUNT:
		break;
	}
	return HK_NONE;
}
