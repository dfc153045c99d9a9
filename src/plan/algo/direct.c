/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct.c - everybody talks to everybody: fewest steps, most messages.
 *
 * Sends come before receives; every pair has its own channel, so one slot is
 * enough. Reductions go in rank order, so all ranks that add the same chunks
 * get the same bits. Costs (steps / sent / reduced):
 *
 *   allreduce one-shot     1 / n-1       / n-1       all send all, all add all
 *   allreduce two-shot     2 / 2(n-1)/n  / (n-1)/n   scatter-reduce, then gather
 *   reducescatter direct   1 / (n-1)/n   / (n-1)/n
 *   allgather direct       1 / (n-1)/n   / 0
 *   alltoall direct        1 / (n-1)/n   / 0
 *   gather, scatter        1 / 1/n, (n-1)/n / 0
 *   broadcast two-shot     2 / 2(n-1)/n  / 0         scatter, then direct allgather
 *   reduce two-shot        2 / 1         / (n-1)/n   scatter-reduce, then gather
 */
#include "plan/algo/algo.h"

/* ---- accumulation in member order ---- */

/*
 * Members 0 and 1 start with x0 + x1 and go on in out. A later member m sums
 * x0..x(m-1) in scratch first, as its own input may lie in out and its turn
 * is not yet; then it adds its own and the rest, the last sum going to out.
 * The last member has no message left to do that with, and ends locally.
 */
uint32_t hk__accumulate_steps(uint32_t n, uint32_t me)
{
	if (n == 1)
		return 1;
	if (me < 2)
		return n - 1;
	return me == n - 1 ? n + 1 : n;
}

static void accumulate_late_step(const struct accumulate *acc, uint32_t i, struct hk_step *step)
{
	uint32_t n = acc->team.n, me = acc->team.me;

	if (i == 0)
		step_recv(step, team_port(&acc->team, 0), acc->scratch, acc->count);
	else if (i < me)
		step_recv_reduce(step, team_port(&acc->team, i), acc->scratch, acc->scratch,
				 acc->count);
	else if (me == n - 1 && i == me)
		step_copy(step, acc->in, acc->out, acc->count);
	else if (me == n - 1)
		step_reduce(step, acc->scratch, acc->out, acc->count);
	else if (i == me)
		step_reduce(step, acc->in, acc->scratch, acc->count);
	else
		step_recv_reduce(step, team_port(&acc->team, i), acc->scratch,
				 i == n - 1 ? acc->out : acc->scratch, acc->count);
}

void hk__accumulate_step(const struct accumulate *acc, uint32_t i, struct hk_step *step)
{
	if (acc->team.n == 1)
		step_copy(step, acc->in, acc->out, acc->count);
	else if (acc->team.me >= 2)
		accumulate_late_step(acc, i, step);
	else if (i == 0)
		step_recv_reduce(step, team_port(&acc->team, 1 - acc->team.me), acc->in, acc->out,
				 acc->count);
	else
		step_recv_reduce(step, team_port(&acc->team, i + 1), acc->out, acc->out,
				 acc->count);
}

static uint32_t direct_acc_scratch(const struct hk_plan *plan, uint32_t rank)
{
	return plan->n > 2 && rank >= 2;
}

static uint32_t direct_n_parts(const struct hk_plan *plan)
{
	return plan->n;
}

/* ---- allreduce ---- */

static uint32_t oneshot_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)lane;
	return plan->n - 1 + hk__accumulate_steps(plan->n, rank);
}

static void oneshot_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);

	(void)lane;
	if (i < plan->n - 1) {
		/* Each rank begins with another peer. */
		step_send(step, team_port(&team, team_next(&team, i + 1)), span(HK_BUF_IN, 0), 1);
		return;
	}
	struct accumulate acc = { .team = team,
				  .in = span(HK_BUF_IN, 0),
				  .out = span(HK_BUF_OUT, 0),
				  .scratch = span(HK_BUF_SCRATCH, 0),
				  .count = 1 };
	hk__accumulate_step(&acc, i - (plan->n - 1), step);
}

/* ---- reducescatter: one lane sends, one adds ---- */

enum {
	SENDS,
	ADDS,
	GATHERS,
	TWOSHOT_LANES
};

static uint32_t reducescatter_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	return lane == SENDS ? plan->n - 1 : hk__accumulate_steps(plan->n, rank);
}

/* A member's own block goes to `out`; scratch: a slot for sums before. */
static void direct_reduce_step(struct team team, uint32_t lane, struct hk_span out,
			       uint32_t scratch, uint32_t i, struct hk_step *step)
{
	if (lane == SENDS) {
		uint32_t peer = team_next(&team, i + 1);

		team.lane = ADDS;
		step_send(step, team_port(&team, peer), span(HK_BUF_IN, peer), 1);
		return;
	}
	team.lane = SENDS;
	struct accumulate acc = { .team = team,
				  .in = span(HK_BUF_IN, team.me),
				  .out = out,
				  .scratch = span(HK_BUF_SCRATCH, scratch),
				  .count = 1 };
	hk__accumulate_step(&acc, i, step);
}

static void reducescatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			       struct hk_step *step)
{
	direct_reduce_step(team_all(plan, rank, 0), lane, span(HK_BUF_OUT, 0), 0, i, step);
}

/*
 * ---- allreduce two-shot: one lane sends, one adds and hands the sum on, one
 * gathers. In pipelined slices the first runs ahead of the second, and that of
 * the third. Two ranks add and hand on in one step ----
 */

static uint32_t twoshot_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	if (lane != ADDS)
		return plan->n - 1;
	return plan->n == 2 ? 1 : hk__accumulate_steps(plan->n, rank) + plan->n - 1;
}

static void twoshot_add_step(const struct hk_plan *plan, uint32_t rank, uint32_t i,
			     struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);
	uint32_t added = hk__accumulate_steps(plan->n, rank);

	if (plan->n == 2) {
		*step = (struct hk_step){ .op = HK_OP_RECV_REDUCE_SEND,
					  .count = 1,
					  .from = { 1 - rank, SENDS },
					  .to = { 1 - rank, GATHERS },
					  .src = span(HK_BUF_IN, rank),
					  .dst = span(HK_BUF_OUT, rank),
					  .after = step->after };
		return;
	}
	if (i < added) {
		direct_reduce_step(team, ADDS, span(HK_BUF_OUT, rank), 0, i, step);
		return;
	}
	team.lane = GATHERS;
	step_send(step, team_port(&team, team_next(&team, i - added + 1)), span(HK_BUF_OUT, rank),
		  1);
}

static void twoshot_gather_step(struct team team, uint32_t i, struct hk_step *step)
{
	uint32_t peer = team_prev(&team, i + 1);

	team.lane = ADDS;
	step_recv(step, team_port(&team, peer), span(HK_BUF_OUT, peer), 1);
	/* In place, what lies there has to be sent first: to that very peer. */
	step->after = (struct hk_after){ SENDS, team.n - 2 - i };
}

static void twoshot_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);

	if (lane == SENDS)
		direct_reduce_step(team, lane, span(HK_BUF_OUT, rank), 0, i, step);
	else if (lane == ADDS)
		twoshot_add_step(plan, rank, i, step);
	else
		twoshot_gather_step(team, i, step);
}

/* ---- reduce two-shot: the same, but sums go to the root alone, who is member 0 ---- */

static uint32_t reduce_scratch(const struct hk_plan *plan, uint32_t rank)
{
	uint32_t me = team_all(plan, rank, plan->root).me;

	return me < 2 ? me : 2;
}

static uint32_t reduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t me = team_all(plan, rank, plan->root).me;

	if (lane == ADDS)
		return hk__accumulate_steps(plan->n, me) + (me ? 1 : 0);
	return lane == SENDS || !me ? plan->n - 1 : 0;
}

static void reduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct team team = team_all(plan, rank, plan->root);
	struct hk_span sum = span(team.me ? HK_BUF_SCRATCH : HK_BUF_OUT, 0);

	if (lane == GATHERS) {
		twoshot_gather_step(team, i, step);
	} else if (lane == SENDS || i < hk__accumulate_steps(plan->n, team.me)) {
		direct_reduce_step(team, lane, sum, 1, i, step);
	} else {
		team.lane = GATHERS;
		step_send(step, team_port(&team, 0), sum, 1);
	}
}

/*
 * ---- broadcast two-shot: members count from the root; a member hands its part on
 * in one lane, and gathers the others' in another ----
 */

static uint32_t broadcast_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t n = plan->n;

	if (rank == plan->root)
		return lane == SENDS ? 2 * (n - 1) + 1 : 0;
	return lane == SENDS ? 0 : n - 1;
}

/* To each its part; then the root's own to all; then what is left of its copy. */
static void broadcast_root_step(const struct team *team, uint32_t i, struct hk_step *step)
{
	uint32_t n = team->n;
	struct team to = *team;

	to.lane = i < n - 1 ? ADDS : GATHERS;
	if (i == 2 * (n - 1))
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), n);
	else if (i < n - 1)
		step_send(step, team_port(&to, i + 1), span(HK_BUF_IN, i + 1), 1);
	else
		step_send(step, team_port(&to, i - (n - 1) + 1), span(HK_BUF_IN, 0), 1);
}

static void broadcast_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct team team = team_all(plan, rank, plan->root);
	uint32_t n = plan->n, me = team.me;

	if (me == 0) {
		broadcast_root_step(&team, i, step);
		return;
	}
	/* The i-th of the other members, the root left out. */
	uint32_t peer = (me - 1 + i) % (n - 1) + 1;

	if (lane == ADDS && i > 0) {
		team.lane = GATHERS;
		step_send(step, team_port(&team, peer), span(HK_BUF_OUT, me), 1);
		return;
	}
	team.lane = i == 0 ? SENDS : ADDS;
	if (i > 0)
		peer = (me - 1 + n - 1 - i) % (n - 1) + 1;
	if (lane == ADDS || i == 0)
		step_recv(step, team_port(&team, 0), span(HK_BUF_OUT, lane == ADDS ? me : 0), 1);
	else
		step_recv(step, team_port(&team, peer), span(HK_BUF_OUT, peer), 1);
}

/* ---- allgather: one lane sends, one receives ---- */

static uint32_t allgather_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	return lane == 0 ? plan->n : plan->n - 1;
}

static void allgather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);

	team.lane = 1 - lane;
	if (lane == 1) {
		uint32_t peer = team_prev(&team, i + 1);

		step_recv(step, team_port(&team, peer), span(HK_BUF_OUT, peer), 1);
	} else if (i < plan->n - 1) {
		step_send(step, team_port(&team, team_next(&team, i + 1)), span(HK_BUF_IN, 0), 1);
	} else {
		/* Peers wait for the sends, nobody for the copy. */
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, rank), 1);
	}
}

/* ---- alltoall: one lane sends, one receives ---- */

static uint32_t alltoall_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	return lane == 0 ? plan->n : plan->n - 1;
}

static void alltoall_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			  struct hk_step *step)
{
	struct team team = team_all(plan, rank, 0);

	if (lane == 0 && i == plan->n - 1) {
		step_copy(step, span(HK_BUF_IN, rank), span(HK_BUF_OUT, rank), 1);
	} else if (lane == 0) {
		uint32_t peer = team_next(&team, i + 1);

		team.lane = 1;
		step_send(step, team_port(&team, peer), span(HK_BUF_IN, peer), 1);
	} else {
		uint32_t peer = team_prev(&team, i + 1);

		team.lane = 0;
		step_recv(step, team_port(&team, peer), span(HK_BUF_OUT, peer), 1);
	}
}

/* ---- gather, scatter ---- */

static uint32_t rooted_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)lane;
	return rank == plan->root ? plan->n : 1;
}

static void gather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct team team = team_all(plan, rank, plan->root);

	(void)lane;
	if (team.me != 0)
		step_send(step, team_port(&team, 0), span(HK_BUF_IN, 0), 1);
	else if (i == 0)
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, rank), 1);
	else
		step_recv(step, team_port(&team, i), span(HK_BUF_OUT, team_port(&team, i).rank), 1);
}

static void scatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	struct team team = team_all(plan, rank, plan->root);

	(void)lane;
	if (team.me != 0)
		step_recv(step, team_port(&team, 0), span(HK_BUF_OUT, 0), 1);
	else if (i == plan->n - 1)
		step_copy(step, span(HK_BUF_IN, rank), span(HK_BUF_OUT, 0), 1);
	else
		step_send(step, team_port(&team, i + 1),
			  span(HK_BUF_IN, team_port(&team, i + 1).rank), 1);
}

const struct hk_algo hk__algo_direct[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .info = { "one-shot", NULL, "all send all, all add all", "1", "n-1", "n-1",
		    "n > 2 ? 1 : 0", "any n; small vectors, few ranks" },
	  .scratch = direct_acc_scratch,
	  .steps = oneshot_steps,
	  .step = oneshot_step },
	{ .coll = HK_COLL_ALLREDUCE,
	  .info = { "two-shot", "direct", "direct reduce-scatter, then direct allgather", "2",
		    "2*(n-1)/n", "(n-1)/n", "n > 2 ? 1/n : 0", "any n; full mesh" },
	  .nlanes = TWOSHOT_LANES,
	  .parts = direct_n_parts,
	  .scratch = direct_acc_scratch,
	  .steps = twoshot_steps,
	  .step = twoshot_step },
	{ .coll = HK_COLL_REDUCESCATTER,
	  .info = { "direct", NULL, "every block straight to its owner, who adds in rank order",
		    "1", "(n-1)/n", "(n-1)/n", "n > 2 ? 1/n : 0", "any n; full mesh" },
	  .nlanes = 2,
	  .scratch = direct_acc_scratch,
	  .steps = reducescatter_steps,
	  .step = reducescatter_step },
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_SHIFT,
	  .info = { "direct", NULL, "every block straight to everybody", "1", "(n-1)/n", "0", "0",
		    "any n; full mesh" },
	  .nlanes = 2,
	  .steps = allgather_steps,
	  .step = allgather_step },
	{ .coll = HK_COLL_ALLTOALL,
	  .moves = HK_MOVES_SHIFT,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .nlanes = 2,
	  .info = { "direct", "linear", "all blocks at once, one lane each way", "1", "(n-1)/n",
		    "0", "0", "any n" },
	  .steps = alltoall_steps,
	  .step = alltoall_step },
	{ .coll = HK_COLL_GATHER,
	  .info = { "direct", "linear", "every block straight to the root", "1", "1/n", "0", "0",
		    "any n" },
	  .steps = rooted_steps,
	  .step = gather_step },
	{ .coll = HK_COLL_SCATTER,
	  .info = { "direct", "linear", "every block straight from the root", "1", "(n-1)/n", "0",
		    "0", "any n" },
	  .steps = rooted_steps,
	  .step = scatter_step },
	{ .info = { .name = NULL } },
};

const struct hk_algo hk__algo_direct_rooted[] = {
	{ .coll = HK_COLL_BROADCAST,
	  .info = { "two-shot", NULL, "direct scatter, then direct allgather", "(n > 1) + (n > 2)",
		    "2*(n-1)/n", "0", "0", "any n; full mesh" },
	  .nlanes = TWOSHOT_LANES,
	  .parts = direct_n_parts,
	  .steps = broadcast_steps,
	  .step = broadcast_step },
	{ .coll = HK_COLL_REDUCE,
	  .info = { "two-shot", NULL, "direct reduce-scatter, then direct gather", "2*(n > 1)",
		    "n > 1 ? 1 : 0", "(n-1)/n", "n > 2 ? 2/n : (n-1)/n", "any n; full mesh" },
	  .nlanes = TWOSHOT_LANES,
	  .parts = direct_n_parts,
	  .scratch = reduce_scratch,
	  .steps = reduce_steps,
	  .step = reduce_step },
	{ .info = { .name = NULL } },
};
