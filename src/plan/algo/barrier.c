/* SPDX-License-Identifier: Apache-2.0 */
/*
 * barrier.c - dissemination: in round k every rank tells r + 2^k what it
 * knows, so after ceil(log2 n) rounds all know of all. Messages are empty.
 *
 * Costs (steps / sent / reduced): ceil(log2 n) / 0 / 0
 */
#include "plan/algo/algo.h"

static uint32_t barrier_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return 2 * hk__clog2(plan->n);
}

static void barrier_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);
	uint32_t distance = 1u << i / 2;

	(void)lane;
	if (i % 2 == 0)
		step_send(step, team_port(&team, team_next(&team, distance)), span_none, 0);
	else
		step_recv(step, team_port(&team, team_prev(&team, distance)), span_none, 0);
}

const struct hk_algo hk__algo_barrier[] = {
	{ .coll = HK_COLL_BARRIER,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .card = { "dissemination", NULL, "everybody tells a rank twice as far each time",
		    "clog2(n)", "0", "0", "0", "any n" },
	  .steps = barrier_steps,
	  .step = barrier_step },
	{ .card = { .name = NULL } },
};
