/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c - what happens next: events by time, those of one time in the order they were made. */
#include "sim/heap.h"

static bool event_before(const struct event *a, const struct event *b)
{
	return a->ns < b->ns || (a->ns == b->ns && a->order < b->order);
}

bool hk__events_push(struct events *events, double ns, uint32_t kind, uint32_t id)
{
	struct event new = { hk__tick(ns), events->order++, kind, id };

	if (!hk__array_push(&events->heap))
		return false;
	struct event *heap = events->heap.items;
	size_t at = events->heap.count - 1;
	while (at > 0 && event_before(&new, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = new;
	return true;
}

void hk__events_pop(struct events *events, struct event *event_out)
{
	struct event *heap = events->heap.items;

	hk_assert(events->heap.count > 0);
	*event_out = heap[0];
	size_t count = --events->heap.count, at = 0;
	struct event last = heap[count];
	for (;;) {
		size_t kid = 2 * at + 1;

		if (kid >= count)
			break;
		if (kid + 1 < count && event_before(&heap[kid + 1], &heap[kid]))
			kid++;
		if (!event_before(&heap[kid], &last))
			break;
		heap[at] = heap[kid];
		at = kid;
	}
	heap[at] = last;
}
