/* SPDX-License-Identifier: Apache-2.0 */
/*
 * barrier.c - dissemination: in round k every rank tells r + 2^k what it
 * knows, so after ceil(log2 n) rounds all know of all. Messages are empty.
 *
 * Through leaders (leader.c): each rank tells the leader of its node, leaders
 * disseminate by fours, and each leader tells its node. By fours means that in
 * round k a leader tells those 4^k, 2*4^k and 3*4^k further on: half the rounds
 * of telling one at a time, for at most three messages instead of two.
 *
 * Costs (steps / sent / reduced):
 *   dissemination  ceil(log2 n)      / 0 / 0
 *   leader         2 + ceil(log4 N)  / 0 / 0
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

/* ---- through leaders ---- */

enum {
	BARRIER_PEERS = 3
};

static uint32_t leader_peers(uint32_t nodes, uint32_t round)
{
	return hk__min((nodes - 1) >> 2 * round, BARRIER_PEERS);
}

static uint32_t leader_across_steps(uint32_t nodes)
{
	uint32_t rounds = (hk__clog2(nodes) + 1) / 2;

	if (rounds == 0)
		return 0;
	return 2 * (BARRIER_PEERS * (rounds - 1) + leader_peers(nodes, rounds - 1));
}

static void leader_across_step(const struct team *team, uint32_t i, struct hk_step *step)
{
	uint32_t round = i / (2 * BARRIER_PEERS), k = i % (2 * BARRIER_PEERS);
	uint32_t peers = leader_peers(team->n, round);

	if (k < peers)
		step_send(step, team_port(team, team_next(team, (k + 1) << 2 * round)), span_none,
			  0);
	else
		step_recv(step, team_port(team, team_prev(team, (k - peers + 1) << 2 * round)),
			  span_none, 0);
}

static uint32_t leader_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, 0, &at);
	return at.mates.me ? 2 : 2 * (at.mates.n - 1) + leader_across_steps(plan->nodes);
}

static void leader_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct leader_view at;

	(void)lane;
	hk__leader_view(plan, rank, 0, &at);
	uint32_t mates = at.mates.n - 1, across = leader_across_steps(plan->nodes);
	if (at.mates.me && i == 0)
		step_send(step, team_port(&at.mates, 0), span_none, 0);
	else if (at.mates.me)
		step_recv(step, team_port(&at.mates, 0), span_none, 0);
	else if (i < mates)
		step_recv(step, team_port(&at.mates, i + 1), span_none, 0);
	else if (i < mates + across)
		leader_across_step(&at.leaders, i - mates, step);
	else
		step_send(step, team_port(&at.mates, i - mates - across + 1), span_none, 0);
}

const struct hk_algo hk__algo_barrier[] = {
	{ .coll = HK_COLL_BARRIER,
	  .moves = HK_MOVES_SHIFT,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .info = { "dissemination", NULL, "everybody tells a rank twice as far each time",
		    "clog2(n)", "0", "0", "0", "any n" },
	  .steps = barrier_steps,
	  .step = barrier_step },
	{ .coll = HK_COLL_BARRIER,
	  .flags = HK_ALGO_NODES | HK_ALGO_UNEVEN | HK_ALGO_NOT_INPLACE,
	  .info = { "leader", NULL, "through one rank of each node; these tell three at a time",
		    "2*(g > 1) + ceil(clog2(N)/2)", "0", "0", "0", LEADER_LIMITS },
	  .steps = leader_steps,
	  .step = leader_step },
	{ .info = { .name = NULL } },
};
