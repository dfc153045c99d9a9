/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.h - messages as fluid: those that cross a link at the same time share it.
 *
 *   link   a link of the fabric, or a class of links that are alike
 *   route  the links that some messages cross; all messages of a route have the
 *          same rate, so that one level rises for all of them, and a message is
 *          through when the level has risen by its bytes
 *   leg    one link of a route: a message takes `weight` of the link's speed for
 *          its own (1; for classes, what falls to one link of the class)
 *
 * Rates are max-min fair. They are solved again when the set of messages has
 * changed, for the routes that are joined to the change by links they share. A
 * link that all its routes together cannot fill is loose: it joins nothing.
 */
#ifndef HK_SIM_FLOW_H
#define HK_SIM_FLOW_H

#include "sim/heap.h"

struct flow_route;

struct flow_leg {
	struct flow_route *route;
	struct flow_leg *prev, *next;	/* of active routes on the same link */
	uint32_t link;
	double weight;
};

struct flow_route {
	struct flow_route *older, *newer; /* all there are, for the end */
	uint32_t wire;			/* of the fabric */
	uint32_t refs;			/* channels */
	uint32_t number;
	uint32_t flows;			/* messages now */
	uint32_t first, last;		/* of those, by when they are through */
	uint32_t heap_at;		/* HK_NONE: not in the heap */
	double most;			/* bytes/ns of all of them, if they were alone */
	double rate;			/* bytes/ns of each */
	double carried;			/* of all, as links have it in `used` */
	double level;			/* bytes each has had since the route became active */
	double since;			/* when level was right */
	double end_ns;			/* when the first is through */
	uint64_t epoch;
	bool dirty;
	uint32_t nlegs;
	struct flow_leg legs[];
};

struct flow_link {
	uint64_t link;			/* number in the fabric, of one of the class */
	double speed;			/* bytes/ns, of one of the class */
	uint32_t wires;			/* a flow keeps one of so many; 1: no such thing */
	double bundles;			/* in the class, where wires > 1 */
	struct flow_leg *legs;		/* of active routes */
	double demand;			/* bytes/ns if each route had all it could have */
	bool was_tight;			/* when rates were last solved */
	double used;			/* bytes/ns now */
	double since;
	double busy_ns;			/* time that it was busy, weighted by how busy */
	/* the solver's */
	uint64_t epoch;
	double room, left, load;
	uint32_t open;			/* legs without a rate */
	bool dirty;
};

/* A message on its way. Numbers, not pointers, as the array grows. */
struct flow {
	double bytes;			/* with overhead */
	double target;			/* level at which it is through */
	uint32_t prev, next;		/* on the route */
	uint32_t behind;		/* of its channel, waiting to cross after it */
	struct flow_route *route;
	uint32_t chan, seq;		/* where it arrives */
	uint32_t lane, step, slice;	/* who sent it */
	uint32_t count, signal;		/* of a put or signal: chunks, number (or HK_NONE) */
	double left_ns;			/* when it left */
};

struct flows {
	const struct hk_alloc *alloc;
	uint64_t seed;
	struct hk__array links;		/* struct flow_link */
	struct hk__array items;		/* struct flow */
	uint32_t free;			/* list of those not in use */
	uint32_t active;		/* in use */
	struct flow_route *routes;
	uint32_t nroutes;
	struct hk__array heap;		/* struct flow_route *, by end_ns */
	struct hk__array dirty_routes, dirty_links;
	struct hk__array part_routes, part_links; /* the part that is being solved */
	uint64_t epoch;
	uint64_t solves;
	double excess;			/* the most that a link had above its speed, relative */
	uint32_t excess_link;
};

void hk__flows_init(struct flows *flows, const struct hk_alloc *alloc, uint64_t seed);
void hk__flows_fini(struct flows *flows);

static inline struct flow_link *flow_link_at(const struct flows *flows, uint32_t i)
{
	return (struct flow_link *)flows->links.items + i;
}

static inline struct flow *flow_at(const struct flows *flows, uint32_t i)
{
	return (struct flow *)flows->items.items + i;
}

/* Numbers of a new link and message; HK_NONE where memory ran out. */
uint32_t hk__flows_add_link(struct flows *flows, uint64_t link, double speed);
uint32_t hk__flows_add(struct flows *flows);
void hk__flows_drop(struct flows *flows, uint32_t flow);

/* A route over links (numbers as above, each once); NULL where memory ran out. */
struct flow_route *hk__flows_add_route(struct flows *flows, uint32_t wire, uint32_t nlegs,
				       const uint32_t *links, const double *weights);
/* One that carries nothing. */
void hk__flows_drop_route(struct flows *flows, struct flow_route *route);

/* A message begins to cross its route. False where memory ran out. */
bool hk__flows_start(struct flows *flows, uint32_t flow, double now);
/* The route whose first message is through first, or NULL; its time is end_ns. */
struct flow_route *hk__flows_next(const struct flows *flows);
/* Takes that message off its route. False where memory ran out. */
bool hk__flows_end(struct flows *flows, struct flow_route *route, double now, uint32_t *flow_out);
/* Rates for what has changed. False where memory ran out. */
bool hk__flows_solve(struct flows *flows, double now);
/* Brings every link's busy_ns up to now. */
void hk__flows_account(struct flows *flows, double now);

#endif
