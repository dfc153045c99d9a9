/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - expressions over inputs, each kept once.
 *
 * Value 0 is nothing; then one value per input slot of every rank; then sums.
 * Nothing plus anything is nothing.
 * The two sides of a sum are put in order first: addition commutes (bit by bit,
 * for floats too), it does not associate, so equal values mean equal bits.
 */
#include "check/state.h"

enum hk_status hk__values_init(struct values *values, const struct hk_plan *plan,
			       const struct hk_alloc *alloc)
{
	uint64_t leaves = 0;

	*values = (struct values){ .plan = plan };
	hk__array_init(&values->sums, alloc, sizeof(struct value_sum));
	hk__hash_init(&values->known, alloc);
	values->leaf_base = hk__mem_zalloc(alloc, (size_t)plan->n + 1, sizeof(uint32_t));
	if (!values->leaf_base)
		return HK_ENOMEM;
	for (uint32_t r = 0; r <= plan->n; r++) {
		if (leaves > UINT32_MAX / 4)
			return HK_ELIMIT;
		values->leaf_base[r] = (uint32_t)leaves;
		if (r < plan->n)
			leaves += hk_plan_slots(plan, r, HK_BUF_IN);
	}
	return HK_OK;
}

void hk__values_fini(struct values *values, const struct hk_alloc *alloc)
{
	hk__mem_free(alloc, values->leaf_base, (size_t)values->plan->n + 1, sizeof(uint32_t));
	hk__array_fini(&values->sums);
	hk__hash_fini(&values->known);
}

static uint32_t value_inputs_end(const struct values *values)
{
	return 1 + values->leaf_base[values->plan->n];
}

uint32_t hk__value_input(const struct values *values, uint32_t rank, uint32_t slot)
{
	return 1 + values->leaf_base[rank] + slot;
}

bool hk__value_is_input(const struct values *values, uint32_t value)
{
	return value != VALUE_NOTHING && value < value_inputs_end(values);
}

void hk__value_origin(const struct values *values, uint32_t value, uint32_t *rank_out,
		      uint32_t *slot_out)
{
	uint32_t leaf = value - 1, low = 0, high = values->plan->n;

	hk_assert(hk__value_is_input(values, value));
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (values->leaf_base[middle] <= leaf)
			low = middle;
		else
			high = middle;
	}
	*rank_out = low;
	*slot_out = leaf - values->leaf_base[low];
}

static const struct value_sum *value_sum_of(const struct values *values, uint32_t value)
{
	return hk__array_at(&values->sums, value - value_inputs_end(values));
}

/* Any input of a value: all of them have its length. */
static uint32_t value_some_input(const struct values *values, uint32_t value)
{
	return value < value_inputs_end(values) ? value : value_sum_of(values, value)->input;
}

uint32_t hk__value_add(struct values *values, uint32_t a, uint32_t b)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a;

	if (low == VALUE_NOTHING)
		return VALUE_NOTHING;
	struct hk__hash_entry *entry = hk__hash_get(&values->known, low, high);

	if (!entry)
		return HK_NONE;
	if (entry->value != HK_NONE)
		return entry->value;
	struct value_sum *sum = hk__array_push(&values->sums);
	if (!sum || values->sums.count > UINT32_MAX / 2)
		return HK_NONE;
	*sum = (struct value_sum){ low, high, value_some_input(values, high) };
	entry->value = value_inputs_end(values) + (uint32_t)(values->sums.count - 1);
	return entry->value;
}

uint64_t hk__value_symbol(const struct values *values, uint32_t value)
{
	uint32_t rank, slot;

	hk__value_origin(values, value_some_input(values, value), &rank, &slot);
	return hk_plan_symbol(values->plan, rank, HK_BUF_IN, slot);
}

uint32_t hk__value_inputs(const struct values *values, uint32_t value, uint32_t *inputs,
			  uint32_t max, struct hk__array *stack)
{
	uint32_t count = 0;

	stack->count = 0;
	for (;;) {
		if (value >= value_inputs_end(values)) {
			const struct value_sum *sum = value_sum_of(values, value);
			uint32_t *later = hk__array_push(stack);

			if (!later)
				return HK_NONE;
			*later = sum->a;
			value = sum->b;
			continue;
		}
		if (count == max)
			return count;
		inputs[count++] = value;
		if (stack->count == 0)
			return count;
		value = *(uint32_t *)hk__array_at(stack, stack->count - 1);
		stack->count--;
	}
}
