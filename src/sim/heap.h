/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - what happens next.
 *
 * Time comes in ticks of 2^-20 ns, and nothing is early. Sums of ticks are exact
 * (up to hours), so what is alike happens at the same instant, whatever else is
 * simulated beside it: messages that share links react to the last bit of when
 * others begin, and many of them in a row would make a percent of it.
 */
#ifndef HK_SIM_HEAP_H
#define HK_SIM_HEAP_H

#include "base/base.h"

#include <math.h>

static inline double hk__tick(double ns)
{
	/* A thousandth of a tick is rounding. */
	return ceil(ns * 0x1p20 - 1e-3) * 0x1p-20;
}

struct event {
	double ns;
	uint64_t order;		/* ties are broken by age */
	uint32_t kind;
	uint32_t id;
};

struct events {
	struct hk__array heap;	/* struct event */
	uint64_t order;
};

/* False where memory ran out. */
bool hk__events_push(struct events *events, double ns, uint32_t kind, uint32_t id);
void hk__events_pop(struct events *events, struct event *event_out);

/* The next one, or NULL. */
static inline const struct event *hk__events_next(const struct events *events)
{
	return events->heap.count ? events->heap.items : NULL;
}

#endif
