/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - everybody talks to the next: least traffic, neighbour links only.
 *
 * Block b starts at member b + 1, gathers a contribution at every stop and is
 * whole at member b; then it goes round once more. Everything between the
 * first send and the last receive is a fused step, so a partial sum never
 * touches memory. Costs (steps / sent / reduced):
 *
 *   allreduce      2(n-1) / 2(n-1)/n / (n-1)/n
 *   reducescatter  n-1    / (n-1)/n  / (n-1)/n
 *   allgather      n-1    / (n-1)/n  / 0
 */
#include "plan/algo/algo.h"

static struct hk_port ring_next(const struct ring *ring)
{
	return team_port(&ring->team, team_next(&ring->team, 1));
}

static struct hk_port ring_prev(const struct ring *ring)
{
	return team_port(&ring->team, team_prev(&ring->team, 1));
}

static struct hk_span ring_span(const struct ring *ring, enum hk_buf buf, uint32_t block)
{
	return ring->table ? span(buf, ring->table[block]) : blocks_span(&ring->blocks, buf, block);
}

static uint32_t ring_count(const struct ring *ring, uint32_t block)
{
	return ring->table ? ring->table[block + 1] - ring->table[block] : ring->blocks.per;
}

/*
 * The first n - 1 steps of a reduce-scatter: step i sends block me - 1 - i,
 * all but the first of them received and added to just now.
 */
static void ring_reduce_step(const struct ring *ring, uint32_t i, struct hk_step *step)
{
	uint32_t block = team_prev(&ring->team, i + 1);

	step_send(step, ring_next(ring), ring_span(ring, ring->src, block),
		  ring_count(ring, block));
	if (i > 0) {
		step->op = HK_OP_RECV_REDUCE_SEND;
		step->from = ring_prev(ring);
	}
}

uint32_t hk__ring_reducescatter_steps(uint32_t n)
{
	return n == 1 ? 1 : n;
}

void hk__ring_reducescatter_step(const struct ring *ring, struct hk_span result, uint32_t i,
				 struct hk_step *step)
{
	struct hk_span own = ring_span(ring, ring->src, ring->team.me);
	uint32_t count = ring_count(ring, ring->team.me);

	if (ring->team.n == 1)
		step_copy(step, own, result, count);
	else if (i < ring->team.n - 1)
		ring_reduce_step(ring, i, step);
	else
		step_recv_reduce(step, ring_prev(ring), own, result, count);
}

/* The last n - 1 steps of an allgather: step i takes block me - 1 - i. */
static void ring_gather_step(const struct ring *ring, uint32_t i, struct hk_step *step)
{
	uint32_t block = team_prev(&ring->team, i + 1), count = ring_count(ring, block);
	struct hk_span dst = ring_span(ring, ring->dst, block);

	if (i < ring->team.n - 2)
		step_recv_send(step, ring_prev(ring), ring_next(ring), dst, count);
	else
		step_recv(step, ring_prev(ring), dst, count);
}

uint32_t hk__ring_allgather_steps(uint32_t n)
{
	return n == 1 ? 1 : n + 1;
}

void hk__ring_allgather_step(const struct ring *ring, struct hk_span own, uint32_t i,
			     struct hk_step *step)
{
	uint32_t me = ring->team.me, count = ring_count(ring, me);

	if (i == 0 && ring->team.n > 1)
		step_send(step, ring_next(ring), own, count);
	else if (i <= 1)
		step_copy(step, own, ring_span(ring, ring->dst, me), count);
	else
		ring_gather_step(ring, i - 2, step);
}

uint32_t hk__ring_allreduce_steps(uint32_t n)
{
	return n == 1 ? 1 : 2 * n - 1;
}

void hk__ring_allreduce_step(const struct ring *ring, uint32_t i, struct hk_step *step)
{
	uint32_t n = ring->team.n, me = ring->team.me, count = ring_count(ring, me);
	struct hk_span own = ring_span(ring, ring->src, me);
	struct hk_span sum = ring_span(ring, ring->dst, me);

	if (n == 1) {
		step_copy(step, own, sum, count);
	} else if (i < n - 1) {
		ring_reduce_step(ring, i, step);
	} else if (i == n - 1) {
		step_recv_reduce(step, ring_prev(ring), own, sum, count);
		step->op = HK_OP_RECV_REDUCE_SEND;
		step->to = ring_next(ring);
	} else {
		ring_gather_step(ring, i - n, step);
	}
}

/* ---- the three collectives, over all ranks ---- */

static struct ring ring_all(const struct hk_plan *plan, uint32_t rank)
{
	return (struct ring){ .team = team_all(plan, rank, 0),
			      .blocks = { 0, 1, 1 },
			      .src = HK_BUF_IN,
			      .dst = HK_BUF_OUT };
}

static uint32_t ring_parts(const struct hk_plan *plan)
{
	return plan->n;
}

static uint32_t allreduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return hk__ring_allreduce_steps(plan->n);
}

static void allreduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct ring ring = ring_all(plan, rank);

	(void)lane;
	hk__ring_allreduce_step(&ring, i, step);
}

static uint32_t reducescatter_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return hk__ring_reducescatter_steps(plan->n);
}

static void reducescatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			       struct hk_step *step)
{
	struct ring ring = ring_all(plan, rank);

	(void)lane;
	hk__ring_reducescatter_step(&ring, span(HK_BUF_OUT, 0), i, step);
}

static uint32_t allgather_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return hk__ring_allgather_steps(plan->n);
}

static void allgather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct ring ring = ring_all(plan, rank);

	(void)lane;
	hk__ring_allgather_step(&ring, span(HK_BUF_IN, 0), i, step);
}

const struct hk_algo hk__algo_ring[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_SHIFT,
	  .slots = RING_SLOTS,
	  .info = { "ring", NULL, "reduce-scatter round the ring, then allgather round it",
		    "2*(n-1)", "2*(n-1)/n", "(n-1)/n", "0", "any n; large vectors" },
	  .parts = ring_parts,
	  .steps = allreduce_steps,
	  .step = allreduce_step },
	{ .coll = HK_COLL_REDUCESCATTER,
	  .moves = HK_MOVES_SHIFT,
	  .slots = RING_SLOTS,
	  .info = { "ring", NULL, "partial sums travel to their owner round the ring", "n-1",
		    "(n-1)/n", "(n-1)/n", "0", "any n; large blocks" },
	  .steps = reducescatter_steps,
	  .step = reducescatter_step },
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_SHIFT,
	  .slots = RING_SLOTS,
	  .info = { "ring", NULL, "blocks travel round the ring", "n-1", "(n-1)/n", "0", "0",
		    "any n; large blocks" },
	  .steps = allgather_steps,
	  .step = allgather_step },
	{ .info = { .name = NULL } },
};
