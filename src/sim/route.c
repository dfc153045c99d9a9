/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - from the path of a message to the links, or classes of links, that it
 * shares with others.
 *
 * Folded, a message stands for `copies` messages that cross links of the same
 * classes; to one link of a class falls copies / size of them, times how often
 * the path crosses the class. Where the fabric is not quite symmetric, the paths
 * of some of the copies are averaged, delays too: along a chain of messages that
 * goes round, the borders it crosses are as many as on average.
 */
#include "sim/chance.h"
#include "sim/sim.h"

#include <math.h>
#include <string.h>

#define ROUTE_SAMPLES 512u	/* copies whose paths are averaged */
#define ROUTE_SAMPLES_LATER 64u /* where there are many channels */
#define ROUTE_MANY 4096u

struct draft {
	uint32_t nlegs;
	uint32_t wire;
	uint32_t links[HK__PATH_MAX];
	double weights[HK__PATH_MAX];
	double delay_ns;
	double pass; /* probability that no link loses it */
	double again_ns;
};

static bool kind_hashes(const struct hk__link_kind *kind)
{
	return kind->width > 1 && kind->routing == HK__ROUTE_HASH;
}

/* The number that flows give to a link or class; wire: of a bundle, or 0. */
static enum hk_status link_number(struct sim *sim, uint64_t link, uint64_t class_of, double size,
				  uint32_t wire, uint32_t *number_out)
{
	const struct hk__link_kind *kind = hk__fabric_kind(sim->fabric, link);
	const struct sim_link_fault *fault = hk__sim_link_fault(sim, link);
	struct hk__hash_entry *entry = hk__hash_get(&sim->link_index, class_of, wire);
	double speed = hk__fabric_link_speed(sim->fabric, link);

	if (entry && entry->value == HK_NONE) {
		if (fault)
			speed *= fault->factor;
		if (wire)
			speed /= kind->width;
		hk_assert(speed > 0);
		entry->value = hk__flows_add_link(&sim->flows, link, speed);
		if (entry->value != HK_NONE && !wire && kind_hashes(kind)) {
			flow_link_at(&sim->flows, entry->value)->wires = kind->width;
			flow_link_at(&sim->flows, entry->value)->bundles = size;
		}
	}
	if (!entry || entry->value == HK_NONE)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory for links");
	*number_out = entry->value;
	return HK_OK;
}

static enum hk_status draft_add(struct sim *sim, struct draft *draft, uint32_t number,
				double weight)
{
	for (uint32_t i = 0; i < draft->nlegs; i++) {
		if (draft->links[i] == number) {
			draft->weights[i] += weight;
			return HK_OK;
		}
	}
	if (draft->nlegs == HK__PATH_MAX)
		return hk__sim_fail(sim, HK_ELIMIT, "a path of more than %u links", HK__PATH_MAX);
	draft->links[draft->nlegs] = number;
	draft->weights[draft->nlegs++] = weight;
	return HK_OK;
}

/* One path, counted as `share` of the message. */
static enum hk_status draft_path(struct sim *sim, uint32_t from, uint32_t to, double share,
				 struct draft *draft)
{
	bool folded = sim->fold.copies > 1;
	struct hk__path path;

	enum hk_status status = hk__sim_path(sim, from, to, &path);
	if (status != HK_OK)
		return status;
	draft->wire = path.wire;
	draft->delay_ns += path.delay_ns * share;
	for (uint32_t i = 0; i < path.nlinks; i++) {
		uint64_t class_of = path.links[i], size = 1;
		const struct hk__link_kind *kind = hk__fabric_kind(sim->fabric, path.links[i]);
		const struct sim_link_fault *fault = hk__sim_link_fault(sim, path.links[i]);
		uint32_t number = 0, wire = 0;

		if (folded)
			hk__fabric_link_class(sim->fabric, &sim->fold.symmetry, path.links[i],
					      &class_of, &size);
		else if (kind_hashes(kind))
			wire = 1 + (uint32_t)(hk__chance(sim->seed, path.links[i],
							 (uint64_t)from << 32 | to) %
					      kind->width);
		status = link_number(sim, path.links[i], class_of, (double)size, wire, &number);
		if (status == HK_OK)
			status = draft_add(sim, draft, number,
					   share * sim->fold.copies / (double)size);
		if (status != HK_OK)
			return status;
		if (fault && fault->loss > 0) {
			draft->pass *= 1 - fault->loss;
			draft->again_ns = fmax(draft->again_ns, fault->again_ns);
		}
	}
	return HK_OK;
}

/* Some elements of the group, spread evenly; the same for all. */
static enum hk_status draft_average(struct sim *sim, uint32_t from, uint32_t to,
				    struct draft *draft)
{
	const struct hk__symmetry *symmetry = &sim->fold.symmetry;
	uint32_t units = symmetry->n / symmetry->unit;
	uint32_t samples =
		hk__min(units, sim->chans.count < ROUTE_MANY ? ROUTE_SAMPLES : ROUTE_SAMPLES_LATER);
	enum hk_status status = HK_OK;

	for (uint32_t j = 0; j < samples && status == HK_OK; j++) {
		double turn = samples == units ? (double)j / units : 0.6180339887498949 * j;
		struct hk__element element = {
			.units = hk__min((uint32_t)(units * (turn - floor(turn)) + 1e-9), units - 1)
		};

		status =
			draft_path(sim, hk__symmetry_apply(symmetry, element, from),
				   hk__symmetry_apply(symmetry, element, to), 1.0 / samples, draft);
	}
	return status;
}

static void draft_sort(struct draft *draft)
{
	for (uint32_t i = 1; i < draft->nlegs; i++) {
		for (uint32_t k = i; k > 0 && draft->links[k - 1] > draft->links[k]; k--) {
			uint32_t link = draft->links[k];
			double weight = draft->weights[k];

			draft->links[k] = draft->links[k - 1];
			draft->weights[k] = draft->weights[k - 1];
			draft->links[k - 1] = link;
			draft->weights[k - 1] = weight;
		}
	}
}

static bool draft_is(const struct draft *draft, const struct flow_route *route)
{
	if (route->nlegs != draft->nlegs || route->wire != draft->wire)
		return false;
	for (uint32_t i = 0; i < draft->nlegs; i++)
		if (route->legs[i].link != draft->links[i] ||
		    fabs(route->legs[i].weight - draft->weights[i]) > 1e-12 * draft->weights[i])
			return false;
	return true;
}

/* The route that others of the same links have, or a new one. */
static struct flow_route *route_shared(struct sim *sim, struct draft *draft)
{
	uint64_t key0 = draft->wire, key1 = draft->nlegs;

	draft_sort(draft);
	for (uint32_t i = 0; i < draft->nlegs; i++) {
		key0 = hk__chance(key0, draft->links[i], i);
		key1 = hk__chance(key1, (uint64_t)llround(draft->weights[i] * 1048576), i);
	}
	struct hk__hash_entry *entry = hk__hash_get(&sim->route_index, key0, key1);
	if (!entry)
		return NULL;
	if (entry->value != HK_NONE) {
		struct flow_route *known =
			*(struct flow_route **)hk__array_at(&sim->route_list, entry->value);

		if (draft_is(draft, known))
			return known;
	}
	struct flow_route *route = hk__flows_add_route(&sim->flows, draft->wire, draft->nlegs,
						       draft->links, draft->weights);
	struct flow_route **place = route ? hk__array_push(&sim->route_list) : NULL;
	if (!place)
		return NULL;
	*place = route;
	route->refs = 1; /* the list's own */
	entry->value = (uint32_t)sim->route_list.count - 1;
	return route;
}

enum hk_status hk__sim_route(struct sim *sim, uint32_t from, uint32_t to, struct sim_chan *chan)
{
	struct draft draft = { .pass = 1 };
	enum hk_status status;

	if (sim->fold.smeared)
		status = draft_average(sim, from, to, &draft);
	else
		status = draft_path(sim, from, to, 1, &draft);
	if (status != HK_OK)
		return status;
	if (sim->fold.copies > 1)
		chan->route = route_shared(sim, &draft);
	else
		chan->route = hk__flows_add_route(&sim->flows, draft.wire, draft.nlegs, draft.links,
						  draft.weights);
	if (!chan->route)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory for routes");
	chan->delay_ns = draft.delay_ns;
	chan->loss = 1 - draft.pass;
	chan->again_ns = draft.again_ns;
	return HK_OK;
}
