/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bruck.c - Bruck's exchanges: ceil(log2 n) steps for any n.
 *
 * allgather: rank r takes blocks from r + 2^k, all it holds being r, r+1, ...
 * (cyclic). Blocks go straight to their place, so nothing is rotated.
 *
 * alltoall: scratch slot i - 1 holds what has to travel i ranks on. Step k sends
 * all those whose bit k of i is set 2^k ranks on and takes as many in. In the
 * end slot i - 1 holds the block of rank r - i.
 *
 * Costs (steps / sent / reduced):
 *   allgather  ceil(log2 n) / (n-1)/n / 0
 *   alltoall   ceil(log2 n) / (1/n) * set bits of all numbers below n / 0
 */
#include "plan/algo/algo.h"

static uint32_t allgather_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return 1 + 2 * hk__clog2(plan->n);
}

static void allgather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);

	(void)lane;
	if (i == 0) {
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, rank), 1);
		return;
	}
	uint32_t distance = 1u << (i - 1) / 2;
	uint32_t count = hk__min(distance, plan->n - distance);
	if (i % 2) {
		step_send(step, team_port(&team, team_prev(&team, distance)),
			  span(HK_BUF_OUT, rank), count);
	} else {
		uint32_t peer = team_next(&team, distance);

		step_recv(step, team_port(&team, peer), span(HK_BUF_OUT, peer), count);
	}
}

/* The last distance, where blocks may lack, or the one before it. */
static uint32_t allgather_widest(const struct hk_plan *plan)
{
	if (plan->n == 1)
		return 1;
	uint32_t last = 1u << hk__flog2(plan->n - 1);
	return hk__max(plan->n - last, last / 2);
}

/* Numbers below n with bit k set. */
static uint32_t bruck_count(uint32_t n, uint32_t k)
{
	uint32_t rest = n % (2u << k);

	return (n >> (k + 1) << k) + (rest > 1u << k ? rest - (1u << k) : 0);
}

static uint32_t alltoall_widest(const struct hk_plan *plan)
{
	uint32_t widest = 1;

	for (uint32_t k = 0; k < hk__clog2(plan->n); k++)
		widest = hk__max(widest, bruck_count(plan->n, k));
	return widest;
}

static uint32_t alltoall_scratch(const struct hk_plan *plan, uint32_t rank)
{
	(void)rank;
	return plan->n - 1;
}

static uint32_t alltoall_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return plan->n == 1 ? 1 : 3 + 2 * hk__clog2(plan->n);
}

static void alltoall_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			  struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);
	uint32_t n = plan->n, last = 2 + 2 * hk__clog2(n);

	(void)lane;
	if (i == 0) {
		step_copy(step, span(HK_BUF_IN, rank), span(HK_BUF_OUT, rank), 1);
		return;
	}
	if (i == 1) {
		step_copy(step, span(HK_BUF_IN, team_next(&team, 1)), span(HK_BUF_SCRATCH, 0),
			  n - 1);
		return;
	}
	if (i == last) {
		/* Slot j came from rank r - 1 - j: downwards, n - 1 being -1. */
		step_copy(step, span(HK_BUF_SCRATCH, 0),
			  span_strided(HK_BUF_OUT, team_prev(&team, 1), n - 1), n - 1);
		return;
	}
	uint32_t k = (i - 2) / 2, distance = 1u << k;
	struct hk_span slots = { HK_BUF_SCRATCH, distance - 1, distance, 2 * distance };
	if (i % 2 == 0)
		step_send(step, team_port(&team, team_next(&team, distance)), slots,
			  bruck_count(n, k));
	else
		step_recv(step, team_port(&team, team_prev(&team, distance)), slots,
			  bruck_count(n, k));
}

const struct hk_algo hk__algo_bruck[] = {
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_SHIFT,
	  .info = { "bruck", NULL, "all it has, to a rank twice as far each time", "clog2(n)",
		    "(n-1)/n", "0", "0", "any n; small blocks" },
	  .widest = allgather_widest,
	  .steps = allgather_steps,
	  .step = allgather_step },
	{ .coll = HK_COLL_ALLTOALL,
	  .moves = HK_MOVES_SHIFT,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .info = { "bruck", NULL, "blocks hop by the bits of their distance", "clog2(n)",
		    "popsum(n)/n", "0", "(n-1)/n",
		    "any n; small blocks; v: every rank knows all counts" },
	  .scratch = alltoall_scratch,
	  .widest = alltoall_widest,
	  .steps = alltoall_steps,
	  .step = alltoall_step },
	{ .info = { .name = NULL } },
};
