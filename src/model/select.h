/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - what an algorithm would cost by its formulas, priced with
 * what a message and a byte cost inside a machine and across. An estimate: the
 * simulator (sim/choose.c) looks closer at those that come near the best.
 */
#ifndef HK_MODEL_SELECT_H
#define HK_MODEL_SELECT_H

#include "fabric/fabric.h"

#include <hocket/plan.h>

/* What ranks talk over. */
struct hk__link {
	double message_ns;		/* a message on the critical path */
	double byte_ns;			/* a byte sent */
};

struct hk__fabric_view {
	uint32_t n;
	uint32_t nodes;			/* machines */
	const uint32_t *node_sizes;	/* ranks of each, if consecutive; else NULL; borrowed */
	struct hk__link near;
	struct hk__link far;		/* between machines, and all of it where nodes is n */
	double sharing;			/* ranks of a machine that share one way out of it */
	double reduce_ns;		/* a byte added */
	double step_ns;			/* a step of a rank, on the critical path or not */
};

/* n ranks on `nodes` machines, at the prices of a fabric, which has at least as many. */
void hk__fabric_view_init(struct hk__fabric_view *view, const struct hk_fabric *fabric, uint32_t n,
			  uint32_t nodes, const uint32_t *node_sizes);
/* Whether all machines have as many ranks. */
bool hk__fabric_view_even(const struct hk__fabric_view *view);

/* Predicted time of an algorithm for V of so many bytes; infinite: it cannot. */
double hk__select_price(const struct hk__fabric_view *view, const struct hk_algo_info *algo,
			double bytes);
/* How its plan is made for these machines. */
void hk__select_plan_opts(const struct hk__fabric_view *view, const struct hk_algo_info *algo,
			  struct hk_plan_opts *opts_out);

/* The cheapest; ties go to the collective's first. */
void hk__select(const struct hk__fabric_view *view, enum hk_coll coll, double bytes,
		struct hk_algo_info *algo_out);

#endif
