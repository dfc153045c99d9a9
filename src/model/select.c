/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - the price of an algorithm, and the cheapest one. */
#include "model/select.h"

#include "model/formula.h"

#include <hocket/check.h>

#include <math.h>

/* A message and a touched memory of a middling size, for wires whose costs depend on it. */
#define MESSAGE_BYTES 1024.0
#define TOUCHED_BYTES 1048576.0

/* Ranks for each core, where cores are shared; 1: each has its own. */
static double crowd_of(const struct hk_fabric *fabric, const struct hk__device *device)
{
	if (!hk__fabric_cores_shared(fabric) || !device->cores)
		return 1;
	return fmax((double)fabric->ranks / device->cores, 1);
}

/* As if all ranks were at work all the time: what is done takes its turn, and waits for it. */
static void view_crowd(struct hk__fabric_view *view, const struct hk__device *device, double crowd)
{
	struct hk__link *links[] = { &view->near, &view->far };

	for (size_t i = 0; i < 2; i++) {
		links[i]->message_ns = links[i]->message_ns * crowd + device->switch_ns;
		links[i]->byte_ns *= crowd;
	}
	view->reduce_ns *= crowd;
	view->step_ns *= crowd;
}

static struct hk__link link_between(const struct hk_fabric *fabric, uint32_t from, uint32_t to)
{
	struct hk__path path;
	double speed = INFINITY;

	hk__fabric_path(fabric, from, to, &path);
	for (uint32_t i = 0; i < path.nlinks; i++)
		speed = fmin(speed, hk__fabric_link_speed(fabric, path.links[i]));
	const struct hk__wire *wire = &fabric->wires[path.wire];
	return (struct hk__link){
		.message_ns = hk__curve_at(&wire->send_ns, MESSAGE_BYTES) +
			      hk__curve_at(&wire->recv_ns, MESSAGE_BYTES) +
			      hk__curve_at(&wire->flight_ns, MESSAGE_BYTES) + path.delay_ns,
		.byte_ns = fmax(wire->overhead / speed,
				fmax(hk__curve_at(&wire->send_byte_ns, TOUCHED_BYTES),
				     hk__curve_at(&wire->recv_byte_ns, TOUCHED_BYTES))),
	};
}

/* How many ranks there are for each of the first links out of a machine. */
static double sharing_between(const struct hk_fabric *fabric, uint32_t from, uint32_t to)
{
	struct hk__path path;
	double most = 1;

	hk__fabric_path(fabric, from, to, &path);
	for (uint32_t i = 0; i < path.nlinks; i++) {
		const struct hk__link_kind *kind = hk__fabric_kind(fabric, path.links[i]);

		if (kind->width <= 1 && kind->per_owner)
			most = fmax(most, (double)kind->owner_ranks / kind->per_owner);
	}
	return most;
}

/* What a message keeps its sender busy for, however short it is. */
static double steps_own_ns(const struct hk_fabric *fabric, uint32_t from, uint32_t to)
{
	struct hk__path path;

	hk__fabric_path(fabric, from, to, &path);
	const struct hk__wire *wire = &fabric->wires[path.wire];
	return fmax(hk__curve_at(&wire->send_ns, 1), wire->gap_ns);
}

void hk__fabric_view_init(struct hk__fabric_view *view, const struct hk_fabric *fabric, uint32_t n,
			  uint32_t nodes, const uint32_t *node_sizes)
{
	const struct hk__device *device = hk__fabric_device(fabric, 0);
	uint32_t node, first;

	*view = (struct hk__fabric_view){ .n = n,
					  .nodes = nodes,
					  .node_sizes = node_sizes,
					  .reduce_ns =
						  hk__curve_at(&device->reduce_ns, TOUCHED_BYTES),
					  .step_ns = device->step_ns };
	if (n == 1)
		return;
	view->far = link_between(fabric, 0, n - 1);
	view->sharing = sharing_between(fabric, 0, n - 1);
	hk__fabric_place(fabric, 1, &node, &first);
	view->near = node == 0 ? link_between(fabric, 0, 1) : view->far;
	view->step_ns += steps_own_ns(fabric, 0, n - 1);
	double crowd = crowd_of(fabric, device);
	if (crowd > 1)
		view_crowd(view, device, crowd);
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
	struct hk_rank_cost cost = { .size = sizeof(cost) };
	struct hk_plan *plan;

	hk__select_plan_opts(view, algo, &opts);
	if (hk_plan_create(algo->coll, view->n, &opts, NULL, &plan) != HK_OK)
		return -1;
	hk_check_rank_cost(plan, 0, &cost);
	hk_plan_free(plan);
	return (double)cost.steps;
}

double hk__select_price(const struct hk__fabric_view *view, const struct hk_algo_info *algo,
			double bytes)
{
	uint32_t nodes = algo->nodes ? view->nodes : 1;
	/* Groups do not perform one-sided plans yet. */
	double own = algo->onesided ? -1 : plan_steps(view, algo);

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

		return price + link_ns(&view->far, steps, crossing * bytes * view->sharing) +
		       link_ns(&view->near, 0, (sent - crossing) * bytes);
	}
	/*
	 * The part inside a machine is what one machine alone would do. Across, the
	 * ranks of a machine share its way out, unless one of them speaks for all.
	 */
	uint32_t inside = view->n / view->nodes;
	double steps_near = hk__formula(algo->steps, inside, 1);
	double sent_near = hk__formula(algo->sent, inside, 1);
	double speakers = algo->uneven ? 1 : view->sharing;
	return price + link_ns(&view->near, steps_near, sent_near * bytes) +
	       link_ns(&view->far, steps - steps_near, (sent - sent_near) * bytes * speakers);
}

void hk__select(const struct hk__fabric_view *view, enum hk_coll coll, double bytes,
		struct hk_algo_info *algo_out)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };
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
