/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow_test.c - rates against a solver that is too simple to be wrong, and the
 * way levels, ends and busy times follow from them.
 */
#include "harness.h"
#include "sim/chance.h"
#include "sim/flow.h"

#include <math.h>

#define LINKS 12
#define ROUTES 40

struct bed {
	struct flows flows;
	struct flow_route *routes[ROUTES];
	double now;
};

static void bed_open(struct bed *bed, uint64_t *seed)
{
	hk__flows_init(&bed->flows, &hk__alloc_default, 1);
	bed->now = 0;
	for (uint32_t i = 0; i < LINKS; i++) {
		double speed = 1 + (double)(test_random(seed) % 8);

		CHECK_EQ(hk__flows_add_link(&bed->flows, i, speed), i);
	}
	for (uint32_t i = 0; i < ROUTES; i++) {
		uint32_t links[LINKS], nlegs = 0;
		double weights[LINKS];

		for (uint32_t k = 0; k < LINKS; k++) {
			if (test_random(seed) % 4 || (nlegs == 0 && k == LINKS - 1))
				continue;
			links[nlegs] = k;
			weights[nlegs++] = test_random(seed) % 3 ? 1 : 0.25;
		}
		if (nlegs == 0) {
			links[0] = i % LINKS;
			weights[nlegs++] = 1;
		}
		bed->routes[i] = hk__flows_add_route(&bed->flows, 0, nlegs, links, weights);
		CHECK(bed->routes[i]);
	}
}

/* All rates grow by a little until a link is full: what max-min fair means. */
static void naive_rates(const struct bed *bed, double *rates)
{
	double used[LINKS];
	bool fixed[ROUTES];

	for (int i = 0; i < ROUTES; i++) {
		rates[i] = 0;
		fixed[i] = bed->routes[i]->flows == 0;
	}
	for (;;) {
		double grow = INFINITY, load[LINKS] = { 0 };

		memset(used, 0, sizeof(used));
		for (int i = 0; i < ROUTES; i++) {
			const struct flow_route *route = bed->routes[i];

			for (uint32_t k = 0; k < route->nlegs && route->flows; k++) {
				double weight = route->legs[k].weight * route->flows;

				used[route->legs[k].link] += weight * rates[i];
				load[route->legs[k].link] += fixed[i] ? 0 : weight;
			}
		}
		for (int l = 0; l < LINKS; l++)
			if (load[l] > 0)
				grow = fmin(grow, (flow_link_at(&bed->flows, (uint32_t)l)->speed -
						   used[l]) /
							  load[l]);
		if (!(grow < INFINITY))
			return;
		for (int i = 0; i < ROUTES; i++)
			rates[i] += fixed[i] ? 0 : grow;
		for (int i = 0; i < ROUTES; i++) {
			const struct flow_route *route = bed->routes[i];

			for (uint32_t k = 0; k < route->nlegs; k++) {
				uint32_t l = route->legs[k].link;

				/* The link that stopped this growth, or one that it filled too. */
				if (load[l] > 0 &&
				    used[l] + grow * load[l] >
					    flow_link_at(&bed->flows, l)->speed * (1 - 1e-9))
					fixed[i] = true;
			}
		}
	}
}

static void check_rates(struct bed *bed)
{
	double rates[ROUTES], used[LINKS] = { 0 };

	naive_rates(bed, rates);
	for (uint32_t i = 0; i < ROUTES; i++) {
		const struct flow_route *route = bed->routes[i];

		if (route->flows && fabs(route->rate - rates[i]) > 1e-9 * rates[i])
			test_fail(__FILE__, __LINE__, "route %u has %.17g, not %.17g", i,
				  route->rate, rates[i]);
		for (uint32_t k = 0; k < route->nlegs && route->flows; k++)
			used[route->legs[k].link] +=
				route->legs[k].weight * route->flows * route->rate;
	}
	for (uint32_t l = 0; l < LINKS; l++) {
		const struct flow_link *link = flow_link_at(&bed->flows, l);

		CHECK(fabs(link->used - used[l]) <= 1e-9 * link->speed);
		CHECK(link->used <= link->speed * (1 + 1e-9));
	}
	CHECK(bed->flows.excess <= 1e-9);
}

static void bed_start(struct bed *bed, uint32_t route, double bytes)
{
	uint32_t flow = hk__flows_add(&bed->flows);

	CHECK(flow != HK_NONE);
	flow_at(&bed->flows, flow)->bytes = bytes;
	flow_at(&bed->flows, flow)->route = bed->routes[route];
	CHECK(hk__flows_start(&bed->flows, flow, bed->now));
}

static double bed_end(struct bed *bed)
{
	struct flow_route *route = hk__flows_next(&bed->flows);
	uint32_t flow;

	CHECK(route);
	CHECK(route->end_ns >= bed->now);
	bed->now = route->end_ns;
	CHECK(hk__flows_end(&bed->flows, route, bed->now, &flow));
	double bytes = flow_at(&bed->flows, flow)->bytes;
	hk__flows_drop(&bed->flows, flow);
	return bytes;
}

/* Messages come and go as they like; after each change rates are what they should be. */
TEST(rates_are_max_min_fair)
{
	uint64_t seed = test_seed(20);

	for (int round = 0; round < 60; round++) {
		struct bed bed;
		uint32_t active = 0;

		bed_open(&bed, &seed);
		for (int i = 0; i < 300; i++) {
			bool start = active == 0 || test_random(&seed) % 5 < 3;

			for (uint64_t k = test_random(&seed) % 3 + 1; k > 0; k--) {
				if (start)
					bed_start(&bed, (uint32_t)(test_random(&seed) % ROUTES),
						  1 + (double)(test_random(&seed) % 100));
				else if (active > 0)
					bed_end(&bed);
				active = bed.flows.active;
				if (!start && !hk__flows_next(&bed.flows))
					break;
			}
			CHECK(hk__flows_solve(&bed.flows, bed.now));
			check_rates(&bed);
		}
		hk__flows_fini(&bed.flows);
	}
}

/* k equal messages on one link take k times as long; busy all the time. */
TEST(equal_messages_share_alike)
{
	for (uint32_t k = 1; k <= 64; k *= 4) {
		struct bed bed = { .now = 0 };
		uint32_t link;
		double weight = 1;

		hk__flows_init(&bed.flows, &hk__alloc_default, 1);
		link = hk__flows_add_link(&bed.flows, 0, 2);
		bed.routes[0] = hk__flows_add_route(&bed.flows, 0, 1, &link, &weight);
		for (uint32_t i = 0; i < k; i++)
			bed_start(&bed, 0, 1000);
		CHECK(hk__flows_solve(&bed.flows, 0));
		for (uint32_t i = 0; i < k; i++)
			bed_end(&bed);
		CHECK(fabs(bed.now - 500.0 * k) < 1e-3);
		CHECK(!hk__flows_next(&bed.flows));
		hk__flows_account(&bed.flows, bed.now);
		CHECK(fabs(flow_link_at(&bed.flows, 0)->busy_ns - bed.now) < 1e-3);
		hk__flows_fini(&bed.flows);
	}
}

/* One that comes later and is shorter overtakes on the same route. */
TEST(shorter_overtakes)
{
	struct bed bed = { .now = 0 };
	uint32_t link;
	double weight = 1;

	hk__flows_init(&bed.flows, &hk__alloc_default, 1);
	link = hk__flows_add_link(&bed.flows, 0, 1);
	bed.routes[0] = hk__flows_add_route(&bed.flows, 0, 1, &link, &weight);
	bed_start(&bed, 0, 100);
	CHECK(hk__flows_solve(&bed.flows, 0));
	bed.now = 50;
	bed_start(&bed, 0, 10);
	CHECK(hk__flows_solve(&bed.flows, 50));
	CHECK_EQ((int)bed_end(&bed), 10);
	CHECK(fabs(bed.now - 70) < 1e-3);
	CHECK(hk__flows_solve(&bed.flows, bed.now));
	CHECK_EQ((int)bed_end(&bed), 100);
	CHECK(fabs(bed.now - 110) < 1e-3);
	hk__flows_fini(&bed.flows);
}

/* The fullest of many wires, as it is drawn, is that of balls thrown into bins. */
TEST(fullest_wire)
{
	uint64_t seed = test_seed(21);
	double drawn = 0, thrown = 0;

	for (int round = 0; round < 2000; round++) {
		uint32_t bins[4 * 16] = { 0 }, most = 0;

		for (int bundle = 0; bundle < 4; bundle++)
			for (int ball = 0; ball < 24; ball++)
				bins[bundle * 16 + test_random(&seed) % 16]++;
		for (int i = 0; i < 4 * 16; i++)
			most = bins[i] > most ? bins[i] : most;
		thrown += most;
		drawn += hk__chance_fullest(24, 16, 4, hk__chance_unit(seed, 7, (uint64_t)round));
	}
	printf("drawn %g, thrown %g\n", drawn / 2000, thrown / 2000);
	CHECK(fabs(drawn - thrown) < 0.05 * thrown);
	CHECK(hk__chance_fullest(3, 1, 4, 0.5) == 3);
	CHECK(hk__chance_fullest(1, 8, 1, 0.5) == 1);
}

/* Numbers by chance look like it: mean and deviation. */
TEST(chance)
{
	double sum = 0, half = 0;

	for (uint64_t i = 0; i < 100000; i++) {
		double u = hk__chance_unit(3, i, 5);

		CHECK(u > 0 && u < 1);
		sum += u;
		half += hk__chance_half_normal(3, i, 5);
	}
	CHECK(fabs(sum / 100000 - 0.5) < 0.01);
	CHECK(fabs(half / 100000 - sqrt(2 / 3.141592653589793)) < 0.01);
}
