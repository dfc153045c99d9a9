/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race.c - which steps of a rank are ordered, and whether two that are not
 * touch the same bytes (I5).
 *
 * Inside a rank, step s of lane a is before step t of lane b only where a = b
 * and s < t, or where dependencies lead from one to the other. Each lane
 * carries a clock: how many steps of each other lane are surely over. The
 * order does not depend on the interleaving, so watching one run finds the
 * races of all. Messages are not counted as order: a plan says so itself.
 *
 * A dependency joins the clock the other lane had at that very step, which
 * may be long past; so each lane keeps a record whenever its clock, depth or
 * (barriers) knowledge changes:
 *
 *	step | depth | clock[nlanes] | knows[know_words]
 */
#include "check/cross.h"

#include <string.h>

static size_t order_cells(const struct proof *proof, uint32_t rank)
{
	return (size_t)(proof->cell_base[rank + 1] - proof->cell_base[rank]);
}

static size_t order_record_words(const struct proof *proof, const struct order *order)
{
	return 2 + (size_t)order->nlanes + proof->know_words;
}

enum hk_status hk__order_init(struct proof *proof, uint32_t rank)
{
	struct order *order = &proof->orders[rank];
	uint32_t nlanes = proof->lane_base[rank + 1] - proof->lane_base[rank];

	if (nlanes < 2 || proof->cross)
		return HK_OK;
	order->nlanes = nlanes;
	order->clock = hk__mem_zalloc(proof->alloc, (size_t)nlanes * nlanes, sizeof(uint32_t));
	order->reads =
		hk__mem_zalloc(proof->alloc, order_cells(proof, rank) * nlanes, sizeof(uint32_t));
	order->past = hk__mem_zalloc(proof->alloc, nlanes, sizeof(struct hk__array));
	if (!order->clock || !order->reads || !order->past)
		return HK_ENOMEM;
	for (uint32_t l = 0; l < nlanes; l++)
		hk__array_init(&order->past[l], proof->alloc,
			       order_record_words(proof, order) * sizeof(uint32_t));
	return HK_OK;
}

void hk__order_fini(struct proof *proof, uint32_t rank)
{
	struct order *order = &proof->orders[rank];

	if (order->nlanes == 0)
		return;
	for (uint32_t l = 0; order->past && l < order->nlanes; l++)
		if (order->past[l].alloc)
			hk__array_fini(&order->past[l]);
	hk__mem_free(proof->alloc, order->past, order->nlanes, sizeof(struct hk__array));
	hk__mem_free(proof->alloc, order->clock, (size_t)order->nlanes * order->nlanes,
		     sizeof(uint32_t));
	hk__mem_free(proof->alloc, order->reads, order_cells(proof, rank) * order->nlanes,
		     sizeof(uint32_t));
}

enum hk_status hk__order_note(struct proof *proof, struct lane *lane)
{
	struct order *order = &proof->orders[lane->rank];

	if (proof->cross)
		return hk__cross_note(proof, lane);
	if (order->nlanes == 0)
		return HK_OK;
	uint32_t *record = hk__array_push(&order->past[lane->index]);
	if (!record)
		return HK_ENOMEM;
	record[0] = lane->at;
	record[1] = lane->depth;
	memcpy(record + 2, order->clock + (size_t)lane->index * order->nlanes,
	       order->nlanes * sizeof(uint32_t));
	if (proof->know_words)
		memcpy(record + 2 + order->nlanes, lane->knows,
		       proof->know_words * sizeof(uint32_t));
	return HK_OK;
}

/* The last record of a lane that is not after a step; NULL: none. */
static const uint32_t *order_record(const struct order *order, uint32_t lane, uint32_t step)
{
	const struct hk__array *past = &order->past[lane];
	size_t low = 0, high = past->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const uint32_t *record = hk__array_at(past, middle);

		if (record[0] <= step)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? hk__array_at(past, low - 1) : NULL;
}

enum hk_status hk__order_join(struct proof *proof, struct lane *lane)
{
	struct order *order = &proof->orders[lane->rank];
	const struct hk_after *after = &lane->step.after;

	if (proof->cross)
		return hk__cross_join(proof, lane);
	if (order->nlanes == 0 || after->lane == lane->index)
		return HK_OK;
	uint32_t *clock = order->clock + (size_t)lane->index * order->nlanes;
	const uint32_t *record = order_record(order, after->lane, after->step);
	if (record) {
		if (record[1] > lane->depth)
			lane->depth = record[1];
		for (uint32_t l = 0; l < order->nlanes; l++)
			if (record[2 + l] > clock[l])
				clock[l] = record[2 + l];
		for (uint32_t w = 0; w < proof->know_words; w++)
			lane->knows[w] |= record[2 + order->nlanes + w];
	}
	if (after->step + 1 > clock[after->lane])
		clock[after->lane] = after->step + 1;
	return hk__order_note(proof, lane);
}

static enum hk_status order_refuse(struct proof *proof, struct lane *lane, uint64_t cell,
				   uint32_t other_lane, uint32_t other_step, const char *did,
				   const char *does)
{
	char name[64], expected[HK_CHECK_TEXT_MAX], found[HK_CHECK_TEXT_MAX];

	hk__explain_cell(proof, lane->rank, cell, name, sizeof(name));
	snprintf(expected, sizeof(expected),
		 "a dependency that orders lane %u step %u and lane %u step %u", other_lane,
		 other_step, lane->index, lane->at);
	snprintf(found, sizeof(found), "none, and both touch %s", name);
	return hk__refuse(proof, 5, lane, expected, found,
			  "%s %s, which lane %u step %u %s, and no dependency orders the two%s",
			  does, name, other_lane, other_step, did,
			  proof->inplace ? " (in place, `in` and `out` share memory)" : "");
}

/* The last write of the cell, where the lane is not ordered after it. */
static bool order_unordered_write(const struct proof *proof, const struct lane *lane, uint64_t cell)
{
	const struct order *order = &proof->orders[lane->rank];
	const struct cell *at = &proof->cells[cell];

	return at->written && at->lane != lane->index &&
	       order->clock[(size_t)lane->index * order->nlanes + at->lane] <= at->step;
}

enum hk_status hk__order_read(struct proof *proof, struct lane *lane, uint64_t cell)
{
	struct order *order = &proof->orders[lane->rank];

	if (proof->cross)
		return hk__cross_read(proof, lane, cell);
	if (order->nlanes == 0)
		return HK_OK;
	if (order_unordered_write(proof, lane, cell))
		return order_refuse(proof, lane, cell, proof->cells[cell].lane,
				    proof->cells[cell].step, "writes", "reads");
	size_t local = (size_t)(cell - proof->cell_base[lane->rank]);
	order->reads[local * order->nlanes + lane->index] = lane->at + 1;
	return HK_OK;
}

enum hk_status hk__order_write(struct proof *proof, struct lane *lane, uint64_t cell)
{
	struct order *order = &proof->orders[lane->rank];

	if (proof->cross)
		return hk__cross_write(proof, lane, cell);
	if (order->nlanes == 0)
		return HK_OK;
	if (order_unordered_write(proof, lane, cell))
		return order_refuse(proof, lane, cell, proof->cells[cell].lane,
				    proof->cells[cell].step, "writes too", "writes");
	size_t local = (size_t)(cell - proof->cell_base[lane->rank]);
	const uint32_t *reads = order->reads + local * order->nlanes;
	const uint32_t *clock = order->clock + (size_t)lane->index * order->nlanes;
	for (uint32_t l = 0; l < order->nlanes; l++)
		if (l != lane->index && reads[l] > clock[l])
			return order_refuse(proof, lane, cell, l, reads[l] - 1, "reads", "writes");
	return HK_OK;
}
