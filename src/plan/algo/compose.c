/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compose.c - broadcast as scatter + allgather and reduce as reduce-scatter +
 * gather (van de Geijn): binomial trees for the rooted half, rings for the
 * other, on n parts. Part k belongs to member k, counted from the root.
 *
 * The root of the broadcast has everything, so its predecessor sends it
 * nothing and it feeds the ring by itself.
 *
 * Costs (steps / sent / reduced):
 *   broadcast scatter-allgather  n-1                 / 2(n-1)/n  / 0
 *   reduce reducescatter-gather  floor(log2 n) + n-1 / about 3/2 / (n-1)/n
 */
#include "plan/algo/algo.h"

static uint32_t compose_parts(const struct hk_plan *plan)
{
	return plan->n;
}

static uint32_t compose_widest(const struct hk_plan *plan)
{
	return hk__binomial_widest(plan->n);
}

/* ---- broadcast ---- */

static uint32_t scatter_steps(uint32_t n, uint32_t v)
{
	return (v != 0) + hk__binomial_nkids(n, v);
}

static void scatter_step(const struct team *team, uint32_t i, struct hk_step *step)
{
	uint32_t n = team->n, v = team->me;

	if (v && i == 0) {
		step_recv(step, team_port(team, hk__binomial_parent(v)), span(HK_BUF_OUT, v),
			  hk__binomial_size(n, v));
		return;
	}
	uint32_t kid = hk__binomial_kid(n, v, i - (v != 0));
	step_send(step, team_port(team, kid), span(v ? HK_BUF_OUT : HK_BUF_IN, kid),
		  hk__binomial_size(n, kid));
}

static uint32_t broadcast_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct team team = team_all(plan, rank, plan->root);
	uint32_t n = plan->n, v = team.me;

	(void)lane;
	if (v == 0)
		return scatter_steps(n, v) + n; /* n - 1 sends, a copy */
	return scatter_steps(n, v) + (v == n - 1 ? n - 1 : n);
}

static void broadcast_root_step(const struct team *team, uint32_t i, struct hk_step *step)
{
	if (i == team->n - 1)
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), team->n);
	else
		step_send(step, team_port(team, 1), span(HK_BUF_IN, team_prev(team, i)), 1);
}

static void broadcast_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct team team = team_all(plan, rank, plan->root);
	uint32_t n = plan->n, v = team.me, scatter = scatter_steps(n, v);

	(void)lane;
	if (i < scatter) {
		scatter_step(&team, i, step);
		return;
	}
	i -= scatter;
	if (v == 0) {
		broadcast_root_step(&team, i, step);
		return;
	}
	if (v != n - 1 && i == 0) {
		step_send(step, team_port(&team, v + 1), span(HK_BUF_OUT, v), 1);
		return;
	}
	i += v == n - 1;
	struct hk_port prev = team_port(&team, v - 1);
	struct hk_span part = span(HK_BUF_OUT, team_prev(&team, i));
	/* The last part that comes is the one the next rank began with. */
	if (v == n - 1 || i == n - 1)
		step_recv(step, prev, part, 1);
	else
		step_recv_send(step, prev, team_port(&team, v + 1), part, 1);
}

/* ---- reduce: scratch slot k of member v is part v + k ---- */

static uint32_t reduce_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct team team = team_all(plan, rank, plan->root);

	return team.me ? hk__binomial_size(plan->n, team.me) : 0;
}

static uint32_t reduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct team team = team_all(plan, rank, plan->root);

	(void)lane;
	return hk__ring_reducescatter_steps(plan->n) + hk__binomial_nkids(plan->n, team.me) +
	       (team.me != 0);
}

static void reduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct ring ring = { .team = team_all(plan, rank, plan->root),
			     .blocks = { 0, 1, 1 },
			     .src = HK_BUF_IN };
	uint32_t n = plan->n, v = ring.team.me, nkids = hk__binomial_nkids(n, v);
	enum hk_buf sums = v ? HK_BUF_SCRATCH : HK_BUF_OUT;

	(void)lane;
	if (i < hk__ring_reducescatter_steps(n)) {
		hk__ring_reducescatter_step(&ring, span(sums, 0), i, step);
		return;
	}
	i -= hk__ring_reducescatter_steps(n);
	if (i < nkids) {
		uint32_t kid = hk__binomial_kid(n, v, nkids - 1 - i);

		step_recv(step, team_port(&ring.team, kid), span(sums, kid - v),
			  hk__binomial_size(n, kid));
	} else {
		step_send(step, team_port(&ring.team, hk__binomial_parent(v)), span(sums, 0),
			  hk__binomial_size(n, v));
	}
}

const struct hk_algo hk__algo_compose[] = {
	{ .coll = HK_COLL_BROADCAST,
	  .info = { "scatter-allgather", "van-de-geijn", "binomial scatter, then ring allgather",
		    "n-1", "2*(n-1)/n", "0", "0", "any n; large vectors" },
	  .parts = compose_parts,
	  .widest = compose_widest,
	  .steps = broadcast_steps,
	  .step = broadcast_step },
	{ .coll = HK_COLL_REDUCE,
	  .slots = RING_SLOTS,
	  .info = { "reducescatter-gather", "rabenseifner",
		    "ring reduce-scatter, then binomial gather", "flog2(n) + n-1",
		    "(n-1 + max(n - pow2(n-1), pow2(n-1)/2))/n", "(n-1)/n",
		    "max(n - pow2(n-1), pow2(n-1)/2)/n", "any n; large vectors" },
	  .parts = compose_parts,
	  .widest = compose_widest,
	  .scratch = reduce_scratch,
	  .steps = reduce_steps,
	  .step = reduce_step },
	{ .info = { .name = NULL } },
};
