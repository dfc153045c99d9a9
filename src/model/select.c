/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - the price of an algorithm, and the cheapest one. */
#include "model/select.h"

#include "model/formula.h"

#include <string.h>

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
/* With more ranks than cores a message waits for its receiver to run. */
#define SWITCH_NS 1500.0

void hk__fabric_view_init(struct hk__fabric_view *view, uint32_t n, uint32_t nodes, bool even,
			  bool near_shared, double crowd)
{
	*view = (struct hk__fabric_view){ .n = n, .nodes = nodes, .even = even };
	view->near = (struct hk__link){ SHM_MESSAGE_NS, SHM_BYTE_NS };
	view->far = (struct hk__link){ TCP_MESSAGE_NS, TCP_BYTE_NS };
	view->reduce_ns = REDUCE_BYTE_NS;
	if (!near_shared)
		view->near = view->far;
	if (crowd > 1) {
		view->near.message_ns += SWITCH_NS * (crowd - 1);
		view->near.byte_ns *= crowd;
		view->reduce_ns *= crowd;
	}
}

static double link_ns(const struct hk__link *link, double messages, double bytes)
{
	return link->message_ns * messages + link->byte_ns * bytes;
}

double hk__select_price(const struct hk__fabric_view *view, const struct hk_algo_info *algo,
			double bytes)
{
	uint32_t nodes = algo->nodes ? view->nodes : 1;
	double steps = hk__formula(algo->steps, view->n, nodes);
	double sent = hk__formula(algo->sent, view->n, nodes);
	double reduced = hk__formula(algo->reduced, view->n, nodes);
	double price = reduced * bytes * view->reduce_ns;

	if (view->nodes <= 1)
		return price + link_ns(&view->near, steps, sent * bytes);
	uint32_t per_node = view->n / view->nodes;
	if (!algo->nodes)
		/* Flat: every message may cross, and a machine's ranks share its way out. */
		return price + link_ns(&view->far, steps, sent * bytes * per_node);
	/* The part inside a machine is what one machine alone would do. */
	double steps_near = hk__formula(algo->steps, per_node, 1);
	double sent_near = hk__formula(algo->sent, per_node, 1);
	return price + link_ns(&view->near, steps_near, sent_near * bytes) +
	       link_ns(&view->far, steps - steps_near, (sent - sent_near) * bytes * per_node);
}

void hk__select(const struct hk__fabric_view *view, enum hk_coll coll, double bytes,
		struct hk_algo_info *algo_out)
{
	struct hk_algo_info algo;
	double best = 0;
	bool found = false;

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		if (algo.coll != coll || (algo.nodes && (view->nodes <= 1 || !view->even)))
			continue;
		double price = hk__select_price(view, &algo, bytes);
		if (!found || price < best) {
			best = price;
			*algo_out = algo;
			found = true;
		}
	}
	hk_assert(found);
}
