/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - the price of an algorithm, and the cheapest one. */
#include "model/select.h"

#include "model/formula.h"

#include <hocket/check.h>

#include <math.h>

/*
 * As measured between two processes on one machine (test/bench), and over
 * loopback sockets: a message through shared memory, a byte copied in and out
 * of a slot, a byte added.
 */
#define SHM_MESSAGE_NS 120.0
#define SHM_BYTE_NS 0.045
#define TCP_MESSAGE_NS 9000.0
#define TCP_BYTE_NS 0.35
#define REDUCE_BYTE_NS 0.03
#define SHM_STEP_NS 60.0
#define TCP_STEP_NS 2000.0
/* With more ranks than cores a message waits for its receiver to run. */
#define SWITCH_NS 1500.0

void hk__fabric_view_init(struct hk__fabric_view *view, uint32_t n, uint32_t nodes,
			  const uint32_t *node_sizes, bool near_shared, double crowd)
{
	*view = (struct hk__fabric_view){ .n = n, .nodes = nodes, .node_sizes = node_sizes };
	view->near = (struct hk__link){ SHM_MESSAGE_NS, SHM_BYTE_NS };
	view->far = (struct hk__link){ TCP_MESSAGE_NS, TCP_BYTE_NS };
	view->reduce_ns = REDUCE_BYTE_NS;
	view->step_ns = near_shared ? SHM_STEP_NS : TCP_STEP_NS;
	if (!near_shared)
		view->near = view->far;
	if (crowd > 1) {
		view->near.message_ns += SWITCH_NS * (crowd - 1);
		view->near.byte_ns *= crowd;
		view->reduce_ns *= crowd;
		view->step_ns *= crowd;
	}
}

bool hk__fabric_view_even(const struct hk__fabric_view *view)
{
	for (uint32_t i = 1; view->node_sizes && i < view->nodes; i++) {
		if (view->node_sizes[i] != view->node_sizes[0])
			return false;
	}
	return view->node_sizes != NULL;
}

void hk__select_plan_opts(const struct hk__fabric_view *view, const struct hk_algo_info *algo,
			  struct hk_plan_opts *opts_out)
{
	*opts_out = (struct hk_plan_opts)HK_PLAN_OPTS_INIT;
	opts_out->algo = algo->name;
	if (!algo->nodes)
		return;
	opts_out->nodes = view->nodes;
	if (!hk__fabric_view_even(view))
		opts_out->node_sizes = view->node_sizes;
}

static double link_ns(const struct hk__link *link, double messages, double bytes)
{
	return link->message_ns * messages + link->byte_ns * bytes;
}

/* Steps of rank 0, which has as many as any; negative: there is no such plan. */
static double plan_steps(const struct hk__fabric_view *view, const struct hk_algo_info *algo)
{
	struct hk_plan_opts opts;
	struct hk_rank_cost cost;
	struct hk_plan *plan;

	hk__select_plan_opts(view, algo, &opts);
	if (hk_plan_create(algo->coll, view->n, &opts, NULL, &plan) != HK_OK)
		return -1;
	hk_check_rank_cost(plan, 0, &cost);
	hk_plan_destroy(plan);
	return (double)cost.steps;
}

double hk__select_price(const struct hk__fabric_view *view, const struct hk_algo_info *algo,
			double bytes)
{
	uint32_t nodes = algo->nodes ? view->nodes : 1;
	double own = plan_steps(view, algo);

	if (own < 0 || (algo->nodes && (view->nodes <= 1 || !view->node_sizes)))
		return INFINITY;
	double steps = hk__formula(algo->steps, view->n, nodes);
	double sent = hk__formula(algo->sent, view->n, nodes);
	double reduced = hk__formula(algo->reduced, view->n, nodes);
	double price = reduced * bytes * view->reduce_ns + own * view->step_ns;

	if (view->nodes <= 1)
		return price + link_ns(&view->near, steps, sent * bytes);
	double per_node = (double)view->n / view->nodes;
	if (!algo->nodes) {
		/* Flat: peers are anywhere, and a machine's ranks share its way out. */
		double crossing = sent * (view->n - per_node) / (view->n - 1);

		return price + link_ns(&view->far, steps, crossing * bytes * per_node) +
		       link_ns(&view->near, 0, (sent - crossing) * bytes);
	}
	/*
	 * The part inside a machine is what one machine alone would do. Across, the
	 * ranks of a machine share its way out, unless one of them speaks for all.
	 */
	uint32_t inside = view->n / view->nodes;
	double steps_near = hk__formula(algo->steps, inside, 1);
	double sent_near = hk__formula(algo->sent, inside, 1);
	double speakers = algo->uneven ? 1 : per_node;
	return price + link_ns(&view->near, steps_near, sent_near * bytes) +
	       link_ns(&view->far, steps - steps_near, (sent - sent_near) * bytes * speakers);
}

void hk__select(const struct hk__fabric_view *view, enum hk_coll coll, double bytes,
		struct hk_algo_info *algo_out)
{
	struct hk_algo_info algo;
	double best = 0;
	bool found = false;

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		if (algo.coll != coll)
			continue;
		double price = hk__select_price(view, &algo, bytes);
		if (!isinf(price) && (!found || price < best)) {
			best = price;
			*algo_out = algo;
			found = true;
		}
	}
	hk_assert(found);
}
