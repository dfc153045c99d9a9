/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.c - max-min fair rates: all grow alike until a link is full; what crosses
 * it stays as it is, and the others grow on. Only what is joined to a change by
 * shared links is solved again.
 */
#include "sim/chance.h"
#include "sim/rates.h"

#include <math.h>

#define RATES_NEAR 1e-12  /* shares that differ less are the same */
#define RATES_LOOSE 1e-10 /* above its speed, for rounding */

/* Whether its routes could fill a link. Of wires, nobody knows beforehand. */
static bool link_tight(const struct flow_link *link)
{
	return link->wires > 1 || link->demand > link->speed * (1 + RATES_LOOSE);
}

static bool part_add_link(struct flows *flows, uint32_t number)
{
	struct flow_link *link = flow_link_at(flows, number);

	if (link->epoch == flows->epoch)
		return true;
	uint32_t *place = hk__array_push(&flows->part_links);
	if (!place)
		return false;
	*place = number;
	link->epoch = flows->epoch;
	return true;
}

static bool part_add_route(struct flows *flows, struct flow_route *route)
{
	if (route->epoch == flows->epoch)
		return true;
	struct flow_route **place = hk__array_push(&flows->part_routes);
	if (!place)
		return false;
	*place = route;
	route->epoch = flows->epoch;
	for (uint32_t i = 0; i < route->nlegs; i++) {
		const struct flow_link *link = flow_link_at(flows, route->legs[i].link);
		bool alone = !route->legs[i].prev && !route->legs[i].next;

		/* The narrowest link of a route is tight, or its own. */
		if ((alone || link->was_tight || link_tight(link)) &&
		    !part_add_link(flows, route->legs[i].link))
			return false;
	}
	return true;
}

/* Everything that shares a link with what shares a link with ... the links there are. */
static bool part_close(struct flows *flows)
{
	for (size_t i = 0; i < flows->part_links.count; i++) {
		uint32_t number = ((uint32_t *)flows->part_links.items)[i];

		for (struct flow_leg *leg = flow_link_at(flows, number)->legs; leg; leg = leg->next)
			if (!part_add_route(flows, leg->route))
				return false;
	}
	return true;
}

/*
 * What a link can carry. Where flows keep one of several wires, all go at the
 * pace of those on the fullest wire of the class: others of the same collective
 * wait for these.
 */
static double link_room(const struct flows *flows, uint32_t number, double load)
{
	const struct flow_link *link = flow_link_at(flows, number);

	if (link->wires < 2)
		return link->speed;
	double u = hk__chance_unit(flows->seed, number, 0);
	double fullest = hk__chance_fullest(load, link->wires, link->bundles, u);
	return fullest > 0 ? fmin(link->speed, link->speed * load / (link->wires * fullest))
			   : link->speed;
}

static void part_begin(struct flows *flows, double now)
{
	struct flow_route **routes = flows->part_routes.items;
	uint32_t *links = flows->part_links.items;

	for (size_t i = 0; i < flows->part_routes.count; i++) {
		hk__flows_raise(routes[i], now);
		routes[i]->rate = -1;
	}
	for (size_t i = 0; i < flows->part_links.count; i++) {
		struct flow_link *link = flow_link_at(flows, links[i]);

		link->load = 0;
		link->open = 0;
		for (struct flow_leg *leg = link->legs; leg; leg = leg->next) {
			link->load += leg->weight * leg->route->flows;
			link->open++;
		}
		link->room = link->left = link_room(flows, links[i], link->load);
	}
}

static void route_fix(struct flows *flows, struct flow_route *route, double rate)
{
	route->rate = rate;
	for (uint32_t i = 0; i < route->nlegs; i++) {
		struct flow_link *link = flow_link_at(flows, route->legs[i].link);
		double load = route->legs[i].weight * route->flows;

		link->left -= rate * load;
		link->load -= load;
		link->open--;
	}
}

static double link_share(const struct flow_link *link)
{
	return fmax(link->left, 0) / link->load;
}

/* Fixes the routes of the links that are full first; links with none left go. */
static size_t part_fill(struct flows *flows, size_t count)
{
	uint32_t *links = flows->part_links.items;
	double least = INFINITY;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct flow_link *link = flow_link_at(flows, links[i]);

		if (link->open == 0)
			continue;
		least = fmin(least, link_share(link));
		uint32_t number = links[i];
		links[i] = links[kept];
		links[kept++] = number;
	}
	for (size_t i = 0; i < kept; i++) {
		struct flow_link *link = flow_link_at(flows, links[i]);

		if (link->open == 0 || link_share(link) > least * (1 + RATES_NEAR))
			continue;
		for (struct flow_leg *leg = link->legs; leg; leg = leg->next)
			if (leg->route->rate < 0)
				route_fix(flows, leg->route, least);
	}
	return kept;
}

/* No link above its speed: what this whole file is to see to, looked at once more. */
static void route_check(struct flows *flows, const struct flow_route *route)
{
	for (uint32_t i = 0; i < route->nlegs; i++) {
		const struct flow_link *link = flow_link_at(flows, route->legs[i].link);
		double excess = link->used / link->speed - 1;

		if (excess > flows->excess) {
			flows->excess = excess;
			flows->excess_link = route->legs[i].link;
		}
	}
}

static bool part_end(struct flows *flows, double now)
{
	struct flow_route **routes = flows->part_routes.items;

	for (size_t i = 0; i < flows->part_routes.count; i++)
		hk__flows_carry(flows, routes[i],
				fmin(routes[i]->carried, routes[i]->rate * routes[i]->flows), now);
	for (size_t i = 0; i < flows->part_routes.count; i++) {
		struct flow_route *route = routes[i];
		double left = flow_at(flows, route->first)->target - route->level;

		hk_assert(route->rate >= 0);
		hk__flows_carry(flows, route, route->rate * route->flows, now);
		route->end_ns =
			route->rate > 0 ? hk__tick(now + fmax(left, 0) / route->rate) : INFINITY;
		if (!hk__flows_place(flows, route))
			return false;
		route_check(flows, route);
	}
	return true;
}

static void part_note(struct flows *flows)
{
	uint32_t *links = flows->part_links.items;

	for (size_t i = 0; i < flows->part_links.count; i++) {
		struct flow_link *link = flow_link_at(flows, links[i]);

		link->was_tight = link->legs && link_tight(link);
	}
}

static bool part_solve(struct flows *flows, double now)
{
	if (!part_close(flows))
		return false;
	part_begin(flows, now);
	size_t count = flows->part_links.count;
	do
		count = part_fill(flows, count);
	while (count > 0);
	part_note(flows);
	flows->solves++;
	return part_end(flows, now);
}

bool hk__flows_solve(struct flows *flows, double now)
{
	struct flow_route **routes = flows->dirty_routes.items;
	uint32_t *links = flows->dirty_links.items;
	bool done = true;

	if (flows->dirty_routes.count == 0 && flows->dirty_links.count == 0)
		return true;
	flows->epoch++;
	flows->part_links.count = flows->part_routes.count = 0;
	for (size_t i = 0; i < flows->dirty_routes.count; i++) {
		routes[i]->dirty = false;
		if (routes[i]->flows > 0)
			done = done && part_add_route(flows, routes[i]);
	}
	for (size_t i = 0; i < flows->dirty_links.count; i++) {
		flow_link_at(flows, links[i])->dirty = false;
		done = done && part_add_link(flows, links[i]);
	}
	flows->dirty_routes.count = flows->dirty_links.count = 0;
	return done && part_solve(flows, now);
}
