/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c - messages as fluid: who is on which link, and when the next is through.
 * Rates are in rates.c.
 */
#include "sim/rates.h"

#include <math.h>

void hk__flows_init(struct flows *flows, const struct hk_alloc *alloc, uint64_t seed)
{
	*flows = (struct flows){ .alloc = alloc, .seed = seed, .free = HK_NONE };
	hk__array_init(&flows->links, alloc, sizeof(struct flow_link));
	hk__array_init(&flows->items, alloc, sizeof(struct flow));
	hk__array_init(&flows->heap, alloc, sizeof(struct flow_route *));
	hk__array_init(&flows->dirty_routes, alloc, sizeof(struct flow_route *));
	hk__array_init(&flows->part_routes, alloc, sizeof(struct flow_route *));
	hk__array_init(&flows->dirty_links, alloc, sizeof(uint32_t));
	hk__array_init(&flows->part_links, alloc, sizeof(uint32_t));
}

static void route_free(struct flows *flows, struct flow_route *route)
{
	size_t size = sizeof(*route) + route->nlegs * sizeof(struct flow_leg);

	hk__mem_free(flows->alloc, route, 1, size);
}

void hk__flows_fini(struct flows *flows)
{
	while (flows->routes) {
		struct flow_route *route = flows->routes;

		flows->routes = route->older;
		route_free(flows, route);
	}
	hk__array_fini(&flows->links);
	hk__array_fini(&flows->items);
	hk__array_fini(&flows->heap);
	hk__array_fini(&flows->dirty_routes);
	hk__array_fini(&flows->dirty_links);
	hk__array_fini(&flows->part_routes);
	hk__array_fini(&flows->part_links);
}

uint32_t hk__flows_add_link(struct flows *flows, uint64_t link, double speed)
{
	struct flow_link *added = hk__array_push(&flows->links);

	if (!added)
		return HK_NONE;
	added->link = link;
	added->speed = speed;
	added->wires = 1;
	return (uint32_t)flows->links.count - 1;
}

uint32_t hk__flows_add(struct flows *flows)
{
	uint32_t at = flows->free;

	if (at != HK_NONE) {
		flows->free = flow_at(flows, at)->next;
		*flow_at(flows, at) = (struct flow){ 0 };
	} else {
		if (!hk__array_push(&flows->items))
			return HK_NONE;
		at = (uint32_t)flows->items.count - 1;
	}
	flows->active++;
	return at;
}

void hk__flows_drop(struct flows *flows, uint32_t flow)
{
	flow_at(flows, flow)->next = flows->free;
	flow_at(flows, flow)->route = NULL; /* what is not in use has none */
	flows->free = flow;
	flows->active--;
}

struct flow_route *hk__flows_add_route(struct flows *flows, uint32_t wire, uint32_t nlegs,
				       const uint32_t *links, const double *weights)
{
	struct flow_route *route =
		hk__mem_zalloc(flows->alloc, 1, sizeof(*route) + nlegs * sizeof(struct flow_leg));

	if (!route)
		return NULL;
	*route = (struct flow_route){ .older = flows->routes,
				      .wire = wire,
				      .number = flows->nroutes++,
				      .first = HK_NONE,
				      .last = HK_NONE,
				      .heap_at = HK_NONE,
				      .nlegs = nlegs };
	for (uint32_t i = 0; i < nlegs; i++) {
		route->legs[i].route = route;
		route->legs[i].link = links[i];
		route->legs[i].weight = weights[i];
	}
	route->most = INFINITY;
	for (uint32_t i = 0; i < nlegs; i++)
		route->most = fmin(route->most, flow_link_at(flows, links[i])->speed / weights[i]);
	if (flows->routes)
		flows->routes->newer = route;
	flows->routes = route;
	return route;
}

void hk__flows_drop_route(struct flows *flows, struct flow_route *route)
{
	hk_assert(route->flows == 0 && !route->dirty && route->heap_at == HK_NONE);
	if (route->newer)
		route->newer->older = route->older;
	else
		flows->routes = route->older;
	if (route->older)
		route->older->newer = route->newer;
	route_free(flows, route);
}

/* ---- routes by when their first message is through ---- */

static bool route_before(const struct flow_route *a, const struct flow_route *b)
{
	return a->end_ns < b->end_ns || (a->end_ns == b->end_ns && a->number < b->number);
}

static void heap_put(struct flow_route **heap, size_t at, struct flow_route *route)
{
	heap[at] = route;
	route->heap_at = (uint32_t)at;
}

static void heap_up(struct flow_route **heap, size_t at, struct flow_route *route)
{
	while (at > 0 && route_before(route, heap[(at - 1) / 2])) {
		heap_put(heap, at, heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(heap, at, route);
}

static void heap_down(struct flow_route **heap, size_t count, size_t at, struct flow_route *route)
{
	for (;;) {
		size_t kid = 2 * at + 1;

		if (kid >= count)
			break;
		if (kid + 1 < count && route_before(heap[kid + 1], heap[kid]))
			kid++;
		if (!route_before(heap[kid], route))
			break;
		heap_put(heap, at, heap[kid]);
		at = kid;
	}
	heap_put(heap, at, route);
}

bool hk__flows_place(struct flows *flows, struct flow_route *route)
{
	if (route->heap_at == HK_NONE) {
		if (!hk__array_push(&flows->heap))
			return false;
		route->heap_at = (uint32_t)flows->heap.count - 1;
	}
	struct flow_route **heap = flows->heap.items;
	heap_up(heap, route->heap_at, route);
	heap_down(heap, flows->heap.count, route->heap_at, route);
	return true;
}

static void heap_remove(struct flows *flows, struct flow_route *route)
{
	struct flow_route **heap = flows->heap.items;
	size_t at = route->heap_at, count;

	if (at == HK_NONE)
		return;
	route->heap_at = HK_NONE;
	count = --flows->heap.count;
	if (at == count)
		return;
	struct flow_route *moved = heap[count];
	heap_up(heap, at, moved);
	heap_down(heap, count, moved->heap_at, moved);
}

struct flow_route *hk__flows_next(const struct flows *flows)
{
	return flows->heap.count ? *(struct flow_route **)flows->heap.items : NULL;
}

/* ---- messages on routes ---- */

void hk__flows_raise(struct flow_route *route, double now)
{
	if (now > route->since)
		route->level += route->rate * (now - route->since);
	route->since = now;
}

static bool route_mark(struct flows *flows, struct flow_route *route)
{
	if (route->dirty)
		return true;
	struct flow_route **place = hk__array_push(&flows->dirty_routes);
	if (!place)
		return false;
	*place = route;
	route->dirty = true;
	return true;
}

static bool link_mark(struct flows *flows, uint32_t number)
{
	struct flow_link *link = flow_link_at(flows, number);

	if (link->dirty)
		return true;
	uint32_t *place = hk__array_push(&flows->dirty_links);
	if (!place)
		return false;
	*place = number;
	link->dirty = true;
	return true;
}

static void route_attach(struct flows *flows, struct flow_route *route)
{
	for (uint32_t i = 0; i < route->nlegs; i++) {
		struct flow_leg *leg = &route->legs[i];
		struct flow_link *link = flow_link_at(flows, leg->link);

		leg->prev = NULL;
		leg->next = link->legs;
		if (link->legs)
			link->legs->prev = leg;
		link->legs = leg;
		link->demand += leg->weight * route->most;
	}
}

static bool route_detach(struct flows *flows, struct flow_route *route, double now)
{
	hk__flows_carry(flows, route, 0, now);
	for (uint32_t i = 0; i < route->nlegs; i++) {
		struct flow_leg *leg = &route->legs[i];
		struct flow_link *link = flow_link_at(flows, leg->link);

		if (leg->prev)
			leg->prev->next = leg->next;
		else
			link->legs = leg->next;
		if (leg->next)
			leg->next->prev = leg->prev;
		link->demand -= leg->weight * route->most;
		if (!link->legs)
			link->demand = link->used = 0; /* and no rounding is left behind */
		if (link->was_tight && !link_mark(flows, leg->link))
			return false;
	}
	heap_remove(flows, route);
	route->rate = 0;
	return true;
}

/* By target; mostly the newest is through last. */
static void route_insert(struct flows *flows, struct flow_route *route, uint32_t number)
{
	struct flow *flow = flow_at(flows, number);
	uint32_t before = route->last;

	while (before != HK_NONE && flow_at(flows, before)->target > flow->target)
		before = flow_at(flows, before)->prev;
	flow->prev = before;
	flow->next = before == HK_NONE ? route->first : flow_at(flows, before)->next;
	if (before == HK_NONE)
		route->first = number;
	else
		flow_at(flows, before)->next = number;
	if (flow->next == HK_NONE)
		route->last = number;
	else
		flow_at(flows, flow->next)->prev = number;
}

bool hk__flows_start(struct flows *flows, uint32_t number, double now)
{
	struct flow *flow = flow_at(flows, number);
	struct flow_route *route = flow->route;

	hk_assert(route->nlegs > 0 && flow->bytes > 0);
	if (route->flows == 0) {
		route->level = 0;
		route->rate = 0;
		route->since = now;
		route_attach(flows, route);
	}
	hk__flows_raise(route, now);
	flow->target = route->level + flow->bytes;
	route_insert(flows, route, number);
	route->flows++;
	return route_mark(flows, route);
}

bool hk__flows_end(struct flows *flows, struct flow_route *route, double now, uint32_t *flow_out)
{
	uint32_t number = route->first;
	struct flow *flow = flow_at(flows, number);

	hk__flows_raise(route, now);
	/* What rounding left over would keep the others late for ever. */
	if (route->level < flow->target)
		route->level = flow->target;
	route->first = flow->next;
	if (flow->next == HK_NONE)
		route->last = HK_NONE;
	else
		flow_at(flows, flow->next)->prev = HK_NONE;
	*flow_out = number;
	if (--route->flows == 0)
		return route_detach(flows, route, now);
	/* The next of the same size is through at once, before rates are solved. */
	double left = fmax(flow_at(flows, route->first)->target - route->level, 0);
	route->end_ns = route->rate > 0 ? hk__tick(now + left / route->rate) : now;
	return hk__flows_place(flows, route) && route_mark(flows, route);
}

static void link_account(struct flow_link *link, double now)
{
	link->busy_ns += link->used / link->speed * (now - link->since);
	link->since = now;
}

void hk__flows_carry(struct flows *flows, struct flow_route *route, double carried, double now)
{
	double more = carried - route->carried;

	if (more == 0)
		return;
	for (uint32_t i = 0; i < route->nlegs; i++) {
		struct flow_link *link = flow_link_at(flows, route->legs[i].link);

		link_account(link, now);
		link->used += route->legs[i].weight * more;
	}
	route->carried = carried;
}

void hk__flows_account(struct flows *flows, double now)
{
	for (size_t i = 0; i < flows->links.count; i++)
		link_account(flow_link_at(flows, (uint32_t)i), now);
}
