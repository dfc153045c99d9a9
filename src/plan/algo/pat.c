/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pat.c - parallel aggregated trees: Bruck's exchange with the farthest
 * partner first, so that what is sent far is small and what is sent near is
 * large; and its mirror image for reduce-scatter, near first.
 *
 * Block distance is counted backwards: rank r holds block r - d. At level k,
 * rank r sends to r + 2^k its blocks at distances d = 0, 2*2^k, 4*2^k, ...
 * with d + 2^k < n; they arrive at distance d + 2^k. Each rank is thus the
 * root of one binomial tree per block, and the trees run side by side. Run
 * over slices, the buffer a message needs is bounded by the slice.
 *
 * Costs (steps / sent / reduced):
 *   allgather      ceil(log2 n) / (n-1)/n / 0
 *   reducescatter  ceil(log2 n) / (n-1)/n / (n-1)/n
 */
#include "plan/algo/algo.h"

/* Blocks that one message of level k carries. */
static uint32_t pat_count(uint32_t n, uint32_t k)
{
	uint32_t pair = 2u << k;

	return (n - (1u << k) + pair - 1) / pair;
}

/* The nearest partner gets most. */
static uint32_t pat_widest(const struct hk_plan *plan)
{
	return plan->n > 1 ? pat_count(plan->n, 0) : 1;
}

/* The slots of blocks first, first - 2*2^k, first - 4*2^k, ... of n. */
static struct hk_span pat_span(enum hk_buf buf, uint32_t first, uint32_t n, uint32_t k)
{
	return span_strided(buf, first, hk__mod_sub(0, (2u << k) % n, n));
}

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
	uint32_t n = plan->n;

	(void)lane;
	if (i == 0) {
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, rank), 1);
		return;
	}
	uint32_t k = hk__clog2(n) - 1 - (i - 1) / 2;
	uint32_t next = team_next(&team, 1u << k), prev = team_prev(&team, 1u << k);
	if (i % 2)
		step_send(step, team_port(&team, next), pat_span(HK_BUF_OUT, rank, n, k),
			  pat_count(n, k));
	else
		step_recv(step, team_port(&team, prev), pat_span(HK_BUF_OUT, prev, n, k),
			  pat_count(n, k));
}

/*
 * reducescatter: levels from near to far, messages from r to r - 2^k. Level 0
 * sends inputs, from odd distances, and starts the sums at even distances d in
 * scratch slot d / 2; the last level leaves the own block alone, which ends in
 * out. With n odd, the block at distance n - 1 takes nothing at level 0 and
 * would be the only one to be sent from `in` later: a copy puts it beside the
 * others.
 */
static uint32_t reducescatter_copies(uint32_t n)
{
	return n > 1 && n % 2;
}

static uint32_t reducescatter_scratch(const struct hk_plan *plan, uint32_t rank)
{
	(void)rank;
	return plan->n > 2 ? (plan->n + 1) / 2 : 0;
}

static uint32_t reducescatter_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return plan->n == 1 ? 1 : 2 * hk__clog2(plan->n) + reducescatter_copies(plan->n);
}

static void reducescatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			       struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);
	uint32_t n = plan->n, copies = reducescatter_copies(n);

	(void)lane;
	if (n == 1) {
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), 1);
		return;
	}
	if (i == 1 && copies) {
		step_copy(step, span(HK_BUF_IN, team_next(&team, 1)),
			  span(HK_BUF_SCRATCH, (n - 1) / 2), 1);
		return;
	}
	i -= copies && i > 1;
	uint32_t k = i / 2, half = (1u << k) / 2;
	uint32_t next = team_next(&team, 1u << k), prev = team_prev(&team, 1u << k);
	if (i % 2 == 0) {
		/* What is at distance d + 2^k here is at d there. */
		step_send(step, team_port(&team, prev),
			  k == 0 ? pat_span(HK_BUF_IN, prev, n, 0)
				 : span_strided(HK_BUF_SCRATCH, half, 2 * half),
			  pat_count(n, k));
		return;
	}
	struct hk_span sums = span_strided(HK_BUF_SCRATCH, 0, 1u << k);
	step_recv_reduce(step, team_port(&team, next),
			 k == 0 ? pat_span(HK_BUF_IN, rank, n, 0) : sums,
			 k + 1 == hk__clog2(n) ? span(HK_BUF_OUT, 0) : sums, pat_count(n, k));
}

const struct hk_algo hk__algo_pat[] = {
	{ .coll = HK_COLL_REDUCESCATTER,
	  .moves = HK_MOVES_SHIFT,
	  .info = { "pat", NULL, "parallel aggregated trees, the nearest partner first", "clog2(n)",
		    "(n-1)/n", "(n-1)/n", "n > 2 ? ceil(n/2)/n : 0",
		    "any n; small blocks at scale" },
	  .scratch = reducescatter_scratch,
	  .widest = pat_widest,
	  .steps = reducescatter_steps,
	  .step = reducescatter_step },
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_SHIFT,
	  .info = { "pat", NULL, "parallel aggregated trees, the farthest partner first",
		    "clog2(n)", "(n-1)/n", "0", "0", "any n; small blocks at scale" },
	  .widest = pat_widest,
	  .steps = allgather_steps,
	  .step = allgather_step },
	{ .info = { .name = NULL } },
};
