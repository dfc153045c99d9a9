/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - which algorithm, by what it would cost: the formulas on the cards,
 * priced with what a message and a byte cost inside a machine and across.
 */
#ifndef HK_MODEL_SELECT_H
#define HK_MODEL_SELECT_H

#include "base/base.h"

/* What ranks talk over. */
struct hk__link {
	double message_ns;		/* a message on the critical path */
	double byte_ns;			/* a byte sent */
};

struct hk__fabric_view {
	uint32_t n;
	uint32_t nodes;			/* machines */
	bool even;			/* with as many consecutive ranks each */
	struct hk__link near;
	struct hk__link far;		/* between machines, and all of it where nodes is n */
	double reduce_ns;		/* a byte added */
};

/* Measured values for this build: shared memory, TCP; `crowd`: ranks per core. */
void hk__fabric_view_init(struct hk__fabric_view *view, uint32_t n, uint32_t nodes, bool even,
			  bool near_shared, double crowd);

/* Predicted time of an algorithm for V of so many bytes. */
double hk__select_price(const struct hk__fabric_view *view, const struct hk_algo_info *algo,
			double bytes);

/* The cheapest; ties go to the collective's first. */
void hk__select(const struct hk__fabric_view *view, enum hk_coll coll, double bytes,
		struct hk_algo_info *algo_out);

#endif
