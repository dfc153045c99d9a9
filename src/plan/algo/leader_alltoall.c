/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leader_alltoall.c - alltoall through one rank of each node: one message from
 * node to node, instead of one from each rank to each.
 *
 * In a leader's scratch is all that the g ranks of its node send, slot
 * k * n + d being what the k-th has for rank d, and then all that they get,
 * slot s * g + k being what rank s has for the k-th. A leader alone has these
 * in `in` and `out`.
 *
 * Costs (steps / sent / reduced) with N > 1 nodes of g > 1:
 *   3 / g-1 + g(N-1)/N / 0
 */
#include "plan/algo/algo.h"

static struct hk_span alltoall_sent(const struct leader_view *at)
{
	return span(at->mates.n > 1 ? HK_BUF_SCRATCH : HK_BUF_IN, 0);
}

static struct hk_span alltoall_got(const struct hk_plan *plan, const struct leader_view *at)
{
	return at->mates.n > 1 ? span(HK_BUF_SCRATCH, at->mates.n * plan->n) : span(HK_BUF_OUT, 0);
}

static bool alltoall_fits(const struct hk_plan *plan)
{
	return 2 * (uint64_t)hk__node_max(plan, HK_NONE) * plan->n <= UINT32_MAX;
}

static uint32_t alltoall_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct leader_view at;

	hk__leader_view(plan, rank, 0, &at);
	return at.mates.me == 0 && at.mates.n > 1 ? 2 * at.mates.n * plan->n : 0;
}

/* All that a rank sends, or all from a node to another: the two largest. */
static uint32_t alltoall_widest(const struct hk_plan *plan)
{
	uint32_t most = 0, second = 0;

	if (!plan->node_sizes) {
		uint32_t g = plan->n / plan->nodes;

		return hk__max(plan->nodes > 1 ? g * g : 1, g > 1 ? plan->n : 1);
	}
	for (uint32_t k = 0; k < plan->nodes; k++) {
		uint32_t size = plan->node_sizes[k];

		second = hk__max(second, hk__min(most, size));
		most = hk__max(most, size);
	}
	return hk__max(plan->n, most * second);
}

static uint32_t alltoall_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, 0, &at);
	if (at.mates.me)
		return 2;
	return (at.mates.n > 1 ? 2 * at.mates.n : 0) + 2 * plan->nodes - 1;
}

/* Sends, a copy, receives. */
static void alltoall_across_step(const struct hk_plan *plan, const struct leader_view *at,
				 uint32_t i, struct hk_step *step)
{
	uint32_t n = plan->nodes, g = at->mates.n;
	uint32_t peer =
		i < n ? team_next(&at->leaders, i + 1) : team_prev(&at->leaders, i - (n - 1));
	uint32_t first = hk__node_first(plan, peer), size = hk__node_size(plan, peer);
	struct hk_span sent = alltoall_sent(at), got = alltoall_got(plan, at);

	sent.first += first;
	sent.run = size;
	sent.period = plan->n;
	got.first += first * g;
	if (i < n - 1)
		step_send(step, team_port(&at->leaders, peer), sent, g * size);
	else if (i == n - 1)
		step_copy(step, sent, got, g * size);
	else
		step_recv(step, team_port(&at->leaders, peer), got, g * size);
}

static void alltoall_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			  struct hk_step *step)
{
	struct hk_span in = span(HK_BUF_IN, 0), out = span(HK_BUF_OUT, 0);
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, 0, &at);
	uint32_t n = plan->n, g = at.mates.n, up = g > 1 ? g : 0, across = 2 * plan->nodes - 1;
	struct hk_span sent = alltoall_sent(&at), got = alltoall_got(plan, &at);
	if (at.mates.me && i == 0) {
		step_send(step, team_port(&at.mates, 0), in, n);
	} else if (at.mates.me) {
		step_recv(step, team_port(&at.mates, 0), out, n);
	} else if (up && i == 0) {
		step_copy(step, in, sent, n);
	} else if (i < up) {
		sent.first = i * n;
		step_recv(step, team_port(&at.mates, i), sent, n);
	} else if (i < up + across) {
		alltoall_across_step(plan, &at, i - up, step);
	} else {
		uint32_t mate = hk__mod_add(i - up - across, 1, g);
		struct hk_span theirs = span_strided(HK_BUF_SCRATCH, got.first + mate, g);

		if (mate)
			step_send(step, team_port(&at.mates, mate), theirs, n);
		else
			step_copy(step, theirs, out, n);
	}
}

const struct hk_algo hk__algo_leader_alltoall[] = {
	{ .coll = HK_COLL_ALLTOALL,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN | HK_ALGO_NOT_INPLACE,
	  .info = { "leader", NULL, "through one rank of each node, a message from node to node",
		    "2*(g > 1) + (N > 1)", "g-1 + g*(N-1)/N", "0", "g > 1 ? 2*g : 0",
		    LEADER_LIMITS "; small blocks; v: leaders know all counts" },
	  .fits = alltoall_fits,
	  .scratch = alltoall_scratch,
	  .widest = alltoall_widest,
	  .steps = alltoall_steps,
	  .step = alltoall_step },
	{ .info = { .name = NULL } },
};
