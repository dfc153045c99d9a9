/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairwise.c - alltoall in n - 1 rounds: in round k every rank sends to r + k
 * and receives from r - k, so each link carries one message at a time.
 *
 * Costs (steps / sent / reduced): n-1 / (n-1)/n / 0
 */
#include "plan/algo/algo.h"

static uint32_t alltoall_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return 1 + 2 * (plan->n - 1);
}

static void alltoall_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			  struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);

	(void)lane;
	if (i == 0) {
		step_copy(step, span(HK_BUF_IN, rank), span(HK_BUF_OUT, rank), 1);
		return;
	}
	uint32_t round = (i - 1) / 2 + 1;
	uint32_t next = team_next(&team, round), prev = team_prev(&team, round);
	if (i % 2)
		step_send(step, team_port(&team, next), span(HK_BUF_IN, next), 1);
	else
		step_recv(step, team_port(&team, prev), span(HK_BUF_OUT, prev), 1);
}

const struct hk_algo hk__algo_pairwise[] = {
	{ .coll = HK_COLL_ALLTOALL,
	  .moves = HK_MOVES_SHIFT,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .info = { "pairwise", NULL, "n-1 rounds, one partner each way at a time", "n-1",
		    "(n-1)/n", "0", "0", "any n; large blocks" },
	  .steps = alltoall_steps,
	  .step = alltoall_step },
	{ .info = { .name = NULL } },
};
