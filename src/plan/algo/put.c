/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put.c - ranks that reach into each other's memory: puts, each followed by a signal,
 * and a wait for all signals of a kind. No step of the rank that is written takes part,
 * which is what loads and stores do best.
 *
 * Who writes into `out` needs word that its rank has begun (a signal: one step more);
 * scratch may be written at once ("eager"), and its contents are copied. Each rank hears
 * from all those it reaches before it ends, as a proof asks.
 *
 * Signals are weak: each says that the put before it has landed. Rings count chunks by
 * one signal, so theirs are strong: chunk s is the s-th to land.
 *
 * Sums start from scratch, where a rank's own share has its place too: they go in rank
 * order, and all ranks do the same. Costs (steps / sent / reduced):
 *
 *   allreduce put-one-shot     1 / n-1         / n-1
 *   allreduce put-two-shot     2 / 2(n-1)/n    / (n-1)/n
 *   allreduce put-ring         2(n-1) / 2(n-1)/n / (n-1)/n
 *   reducescatter put          1 / (n-1)/n     / (n-1)/n
 *   reducescatter put-ring     n-1 / (n-1)/n   / (n-1)/n
 *   allgather, alltoall put    2 / (n-1)/n     / 0         1 if eager
 *   broadcast put              2 / n-1         / 0
 *   barrier signal             1 / 0           / 0
 *   barrier signal-dissemination  ceil(log2 n) / 0 / 0
 */
#include "plan/algo/algo.h"

/* Signals of a rank, by number. */
enum {
	ARRIVED,       /* data for scratch, or in the only phase there is */
	BEGUN,	       /* the peer may be written */
	RESULT = BEGUN /* data for out after a phase of scratch; none has both */
};

/*
 * Lanes: in pipelined slices the first runs ahead of the second, and that of the third.
 * Rings and barriers have one.
 */
enum {
	PUTS,
	TAKES,
	GATHERS,
	BEGINS = GATHERS /* no plan has both */
};

static void step_put(struct hk_step *step, uint32_t rank, struct hk_span src, struct hk_span dst)
{
	step->op = HK_OP_PUT;
	step->to = (struct hk_port){ rank, 0 };
	step->src = src;
	step->dst = dst;
	step->count = 1;
}

static void step_signal(struct hk_step *step, uint32_t rank, uint32_t number)
{
	step->op = HK_OP_SIGNAL;
	step->to = (struct hk_port){ rank, number };
}

static void step_wait(struct hk_step *step, uint32_t rank, uint32_t number, uint32_t count)
{
	step->op = HK_OP_WAIT;
	step->from = (struct hk_port){ rank, number };
	step->count = count;
}

/* ---- phases; each takes its steps off i, and is true if i was one of them ---- */

static bool phase(uint32_t *i, uint32_t steps)
{
	if (*i < steps)
		return true;
	*i -= steps;
	return false;
}

/* The own share into its place. */
static bool phase_copy(uint32_t *i, struct hk_span src, struct hk_span dst, struct hk_step *step)
{
	if (!phase(i, 1))
		return false;
	step_copy(step, src, dst, 1);
	return true;
}

/* A signal to all others, from the next rank on. */
static bool phase_signal_all(const struct hk_plan *plan, uint32_t rank, uint32_t number,
			     uint32_t *i, struct hk_step *step)
{
	if (!phase(i, plan->n - 1))
		return false;
	step_signal(step, hk__mod_add(rank, *i + 1, plan->n), number);
	return true;
}

static bool phase_wait(uint32_t rank, uint32_t number, uint32_t count, uint32_t *i,
		       struct hk_step *step)
{
	if (!phase(i, 1))
		return false;
	step_wait(step, rank, number, count);
	return true;
}

/* What all others get: for the one at a distance the slots of both buffers. */
struct puts {
	enum hk_buf src, dst;
	enum {
		SLOT_ZERO,
		SLOT_ME,
		SLOT_PEER,
		SLOT_DISTANCE
	} from, at;
	uint32_t number; /* of the signal after each */
};

static uint32_t puts_slot(unsigned which, uint32_t me, uint32_t peer, uint32_t distance)
{
	switch (which) {
	case SLOT_ME:
		return me;
	case SLOT_PEER:
		return peer;
	case SLOT_DISTANCE:
		return distance - 1;
	default:
		return 0;
	}
}

static bool phase_put_all(const struct hk_plan *plan, uint32_t rank, const struct puts *puts,
			  uint32_t *i, struct hk_step *step)
{
	if (!phase(i, 2 * (plan->n - 1)))
		return false;
	uint32_t distance = *i / 2 + 1, peer = hk__mod_add(rank, distance, plan->n);
	if (*i % 2)
		step_signal(step, peer, puts->number);
	else
		step_put(step, peer, span(puts->src, puts_slot(puts->from, rank, peer, distance)),
			 span(puts->dst, puts_slot(puts->at, rank, peer, distance)));
	return true;
}

/* The sum of all slots of scratch, in order. */
static bool phase_sum(const struct hk_plan *plan, struct hk_span out, uint32_t *i,
		      struct hk_step *step)
{
	if (!phase(i, plan->n))
		return false;
	if (*i == 0)
		step_copy(step, span(HK_BUF_SCRATCH, 0), out, 1);
	else
		step_reduce(step, span(HK_BUF_SCRATCH, *i), out, 1);
	return true;
}

/* ---- sums ---- */

static uint32_t sum_scratch(const struct hk_plan *plan, uint32_t rank)
{
	(void)rank;
	return plan->n > 1 ? plan->n : 0;
}

static uint32_t put_n_parts(const struct hk_plan *plan)
{
	return plan->n;
}

/* Of one rank: a copy, in the first lane. */
static uint32_t alone_steps(uint32_t lane)
{
	return lane == PUTS;
}

/* The own share has its place in scratch first: as out may be the same memory as in. */
static uint32_t oneshot_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t n = plan->n;

	(void)rank;
	if (n == 1)
		return alone_steps(lane);
	return lane == PUTS ? 1 + 2 * (n - 1) : 1 + n;
}

static void oneshot_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	const struct puts puts = { HK_BUF_SCRATCH, HK_BUF_SCRATCH, SLOT_ME, SLOT_ME, ARRIVED };

	if (plan->n == 1) {
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), 1);
	} else if (lane == PUTS) {
		if (!phase_copy(&i, span(HK_BUF_IN, 0), span(HK_BUF_SCRATCH, rank), step))
			(void)phase_put_all(plan, rank, &puts, &i, step);
	} else {
		if (i == 1)
			step->after = (struct hk_after){ PUTS, 0 };
		if (!phase_wait(rank, ARRIVED, plan->n - 1, &i, step))
			(void)phase_sum(plan, span(HK_BUF_OUT, 0), &i, step);
	}
}

static uint32_t reducescatter_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t n = plan->n;

	(void)rank;
	if (n == 1)
		return alone_steps(lane);
	return lane == PUTS ? 2 * (n - 1) : 2 + n;
}

/* Each gets its block from all, and adds them up in slot `out`; true if i was of that. */
static bool phase_reduce(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t out,
			 uint32_t *i, struct hk_step *step)
{
	const struct puts puts = { HK_BUF_IN, HK_BUF_SCRATCH, SLOT_PEER, SLOT_ME, ARRIVED };
	struct hk_span own = span(HK_BUF_IN, rank);

	if (plan->n == 1)
		return phase_copy(i, own, span(HK_BUF_OUT, 0), step);
	if (lane == PUTS)
		return phase_put_all(plan, rank, &puts, i, step);
	return phase_copy(i, own, span(HK_BUF_SCRATCH, rank), step) ||
	       phase_wait(rank, ARRIVED, plan->n - 1, i, step) ||
	       phase_sum(plan, span(HK_BUF_OUT, out), i, step);
}

static void reducescatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			       struct hk_step *step)
{
	(void)phase_reduce(plan, rank, lane, 0, &i, step);
}

static uint32_t twoshot_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t n = plan->n;

	if (lane == GATHERS)
		return n > 1;
	return reducescatter_steps(plan, rank, lane) + (lane == TAKES && n > 1 ? 2 * (n - 1) : 0);
}

/* Who has a rank's share knows that it has begun, and in place that it may be written. */
static void twoshot_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	const struct puts puts = { HK_BUF_OUT, HK_BUF_OUT, SLOT_ME, SLOT_ME, RESULT };

	if (lane == GATHERS)
		(void)phase_wait(rank, RESULT, plan->n - 1, &i, step);
	else if (!phase_reduce(plan, rank, lane, rank, &i, step))
		(void)phase_put_all(plan, rank, &puts, &i, step);
}

/* ---- rings: chunk s goes to slot s of the next rank's scratch ---- */

static uint32_t ring_scratch(const struct hk_plan *plan, uint32_t rank)
{
	(void)rank;
	return plan->n - 1;
}

/* Put, signal; then wait, add, put, signal; at last wait, copy, add. */
#define RING_REDUCE_STEPS(n) (4 * ((n)-1) + 1)

static uint32_t ring_reducescatter_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return RING_REDUCE_STEPS(plan->n);
}

/* Put, signal, wait, for each of the other blocks. */
static uint32_t ring_allreduce_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return RING_REDUCE_STEPS(plan->n) + 3 * (plan->n - 1);
}

/* In round s a rank passes on the block of the one s + 1 before it. */
static void ring_reduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t out, uint32_t i,
			     struct hk_step *step)
{
	uint32_t n = plan->n, next = hk__mod_add(rank, 1, n);
	/* So that round 0, which waits for nothing, has the last two of four steps. */
	uint32_t s = (i + 2) / 4, block = hk__mod_sub(rank, s + 1, n);
	struct hk_span sum = span(HK_BUF_SCRATCH, s ? s - 1 : 0);

	if (n == 1) {
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), 1);
		return;
	}
	switch (s < n - 1 ? (i + 2) % 4 : 4 + (i + 2) % 4) {
	case 0:
	case 4:
		step_wait(step, rank, ARRIVED, s);
		break;
	case 1:
		step_reduce(step, span(HK_BUF_IN, block), sum, 1);
		break;
	case 2:
		step_put(step, next, s ? sum : span(HK_BUF_IN, block), span(HK_BUF_SCRATCH, s));
		break;
	case 3:
		step_signal(step, next, ARRIVED);
		break;
	case 5:
		step_copy(step, span(HK_BUF_IN, rank), span(HK_BUF_OUT, out), 1);
		break;
	default:
		step_reduce(step, sum, span(HK_BUF_OUT, out), 1);
	}
}

static void ring_reducescatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane,
				    uint32_t i, struct hk_step *step)
{
	(void)lane;
	ring_reduce_step(plan, rank, 0, i, step);
}

/* The sum that came all the way round tells that the next rank has begun. */
static void ring_allreduce_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane,
				uint32_t i, struct hk_step *step)
{
	uint32_t n = plan->n, next = hk__mod_add(rank, 1, n);

	(void)lane;
	if (i < RING_REDUCE_STEPS(n)) {
		ring_reduce_step(plan, rank, rank, i, step);
		return;
	}
	i -= RING_REDUCE_STEPS(n);
	struct hk_span block = span(HK_BUF_OUT, hk__mod_sub(rank, i / 3, n));
	if (i % 3 == 0)
		step_put(step, next, block, block);
	else if (i % 3 == 1)
		step_signal(step, next, RESULT);
	else
		step_wait(step, rank, RESULT, i / 3 + 1);
}

/* ---- blocks for all: allgather and alltoall ---- */

static uint32_t blocks_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t others = plan->n - 1;

	(void)rank;
	if (others == 0)
		return alone_steps(lane);
	return lane == PUTS ? 1 + 1 + 2 * others : lane == TAKES ? 1 : others;
}

/* The last lane gives word that out may be written, of later slices ahead of time. */
static void blocks_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	bool all = plan->coll == HK_COLL_ALLTOALL;
	const struct puts puts = { HK_BUF_IN, HK_BUF_OUT, all ? SLOT_PEER : SLOT_ZERO, SLOT_ME,
				   ARRIVED };

	if (lane == BEGINS)
		(void)phase_signal_all(plan, rank, BEGUN, &i, step);
	else if (lane == TAKES)
		step_wait(step, rank, ARRIVED, plan->n - 1);
	else if (!phase_copy(&i, span(HK_BUF_IN, all ? rank : 0), span(HK_BUF_OUT, rank), step) &&
		 !phase_wait(rank, BEGUN, plan->n - 1, &i, step))
		(void)phase_put_all(plan, rank, &puts, &i, step);
}

static uint32_t eager_scratch(const struct hk_plan *plan, uint32_t rank)
{
	(void)rank;
	return plan->n - 1;
}

static uint32_t eager_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	uint32_t others = plan->n - 1;

	(void)rank;
	if (others == 0)
		return alone_steps(lane);
	return lane == PUTS ? 1 + 2 * others : 1 + others;
}

/* Through scratch, where the block from a distance has its place. */
static void eager_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
		       struct hk_step *step)
{
	bool all = plan->coll == HK_COLL_ALLTOALL;
	const struct puts puts = { HK_BUF_IN, HK_BUF_SCRATCH, all ? SLOT_PEER : SLOT_ZERO,
				   SLOT_DISTANCE, ARRIVED };

	if (lane == PUTS) {
		/* First, as in place it writes what is put. */
		if (!phase_copy(&i, span(HK_BUF_IN, all ? rank : 0), span(HK_BUF_OUT, rank), step))
			(void)phase_put_all(plan, rank, &puts, &i, step);
	} else if (!phase_wait(rank, ARRIVED, plan->n - 1, &i, step)) {
		step_copy(step, span(HK_BUF_SCRATCH, i),
			  span(HK_BUF_OUT, hk__mod_sub(rank, i + 1, plan->n)), 1);
	}
}

/* ---- broadcast: the others' first lane says that they have begun ---- */

static uint32_t broadcast_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	if (plan->n == 1)
		return alone_steps(lane);
	if (rank != plan->root)
		return 1;
	return lane == PUTS ? 2 + 2 * (plan->n - 1) : 0;
}

static void broadcast_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	const struct puts puts = { HK_BUF_IN, HK_BUF_OUT, SLOT_ZERO, SLOT_ZERO, ARRIVED };

	if (lane == TAKES)
		step_wait(step, rank, ARRIVED, 1);
	else if (rank != plan->root)
		step_signal(step, plan->root, BEGUN);
	else if (!phase_copy(&i, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), step) &&
		 !phase_wait(rank, BEGUN, plan->n - 1, &i, step))
		(void)phase_put_all(plan, rank, &puts, &i, step);
}

static uint32_t broadcast_eager_scratch(const struct hk_plan *plan, uint32_t rank)
{
	return rank == plan->root ? 0 : 1;
}

static uint32_t broadcast_eager_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	if (plan->n == 1)
		return alone_steps(lane);
	if (rank == plan->root)
		return lane == PUTS ? 1 + 2 * (plan->n - 1) : 1;
	return lane == PUTS ? 1 : 2;
}

/* The root's end waits for word that all have begun, not its puts. */
static void broadcast_eager_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane,
				 uint32_t i, struct hk_step *step)
{
	const struct puts puts = { HK_BUF_IN, HK_BUF_SCRATCH, SLOT_ZERO, SLOT_ZERO, ARRIVED };

	if (rank == plan->root && lane == TAKES)
		step_wait(step, rank, BEGUN, plan->n - 1);
	else if (rank == plan->root &&
		 !phase_copy(&i, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), step))
		(void)phase_put_all(plan, rank, &puts, &i, step);
	else if (rank != plan->root && lane == PUTS)
		step_signal(step, plan->root, BEGUN);
	else if (rank != plan->root && !phase_wait(rank, ARRIVED, 1, &i, step))
		step_copy(step, span(HK_BUF_SCRATCH, 0), span(HK_BUF_OUT, 0), 1);
}

/* ---- barrier ---- */

static uint32_t barrier_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return plan->n == 1 ? 0 : plan->n;
}

static void barrier_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	(void)lane;
	if (!phase_signal_all(plan, rank, ARRIVED, &i, step))
		step_wait(step, rank, ARRIVED, plan->n - 1);
}

static uint32_t dissemination_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)rank;
	(void)lane;
	return 2 * hk__clog2(plan->n);
}

/* A signal for each round: in another round it is another rank's word. */
static void dissemination_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			       struct hk_step *step)
{
	(void)lane;
	if (i % 2 == 0)
		step_signal(step, hk__mod_add(rank, 1u << i / 2, plan->n), i / 2);
	else
		step_wait(step, rank, i / 2, 1);
}

const struct hk_algo hk__algo_put[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_SHIFT,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put-one-shot", NULL, "all put all into each other's scratch, all add all",
		    "(n > 1)", "n-1", "n-1", "n > 1 ? n : 0", "any n; small vectors, few ranks" },
	  .scratch = sum_scratch,
	  .nlanes = 2,
	  .steps = oneshot_steps,
	  .step = oneshot_step },
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_SHIFT,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put-two-shot", NULL, "parts put to who adds them, sums put to all",
		    "2*(n > 1)", "2*(n-1)/n", "(n-1)/n", "n > 1 ? 1 : 0", "any n; full mesh" },
	  .parts = put_n_parts,
	  .scratch = sum_scratch,
	  .nlanes = 3,
	  .steps = twoshot_steps,
	  .step = twoshot_step },
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_SHIFT,
	  .signals = HK_SIGNALS_STRONG,
	  .info = { "put-ring", NULL, "a ring of puts, chunks counted by one signal", "2*(n-1)",
		    "2*(n-1)/n", "(n-1)/n", "(n-1)/n", "any n" },
	  .parts = put_n_parts,
	  .scratch = ring_scratch,
	  .steps = ring_allreduce_steps,
	  .step = ring_allreduce_step },
	{ .coll = HK_COLL_REDUCESCATTER,
	  .moves = HK_MOVES_SHIFT,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put", NULL, "every block put to its owner, who adds in rank order", "(n > 1)",
		    "(n-1)/n", "(n-1)/n", "n > 1 ? 1 : 0", "any n; full mesh" },
	  .scratch = sum_scratch,
	  .nlanes = 2,
	  .steps = reducescatter_steps,
	  .step = reducescatter_step },
	{ .coll = HK_COLL_REDUCESCATTER,
	  .moves = HK_MOVES_SHIFT,
	  .signals = HK_SIGNALS_STRONG,
	  .info = { "put-ring", NULL, "a ring of puts, chunks counted by one signal", "n-1",
		    "(n-1)/n", "(n-1)/n", "(n-1)/n", "any n" },
	  .scratch = ring_scratch,
	  .steps = ring_reducescatter_steps,
	  .step = ring_reducescatter_step },
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_SHIFT,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put", NULL, "every block put to everybody who has begun", "2*(n > 1)",
		    "(n-1)/n", "0", "0", "any n; full mesh" },
	  .nlanes = 3,
	  .steps = blocks_steps,
	  .step = blocks_step },
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_SHIFT,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put-eager", NULL, "every block put into everybody's scratch at once",
		    "(n > 1)", "(n-1)/n", "0", "(n-1)/n", "any n; small blocks" },
	  .scratch = eager_scratch,
	  .nlanes = 2,
	  .steps = eager_steps,
	  .step = eager_step },
	{ .coll = HK_COLL_ALLTOALL,
	  .moves = HK_MOVES_SHIFT,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put", NULL, "every block put to its owner, who has begun", "2*(n > 1)",
		    "(n-1)/n", "0", "0", "any n" },
	  .nlanes = 3,
	  .steps = blocks_steps,
	  .step = blocks_step },
	{ .coll = HK_COLL_ALLTOALL,
	  .moves = HK_MOVES_SHIFT,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put-eager", NULL, "every block put into its owner's scratch at once",
		    "(n > 1)", "(n-1)/n", "0", "(n-1)/n", "any n; small blocks" },
	  .scratch = eager_scratch,
	  .nlanes = 2,
	  .steps = eager_steps,
	  .step = eager_step },
	{ .coll = HK_COLL_BROADCAST,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put", NULL, "put to everybody who has begun", "2*(n > 1)", "n-1", "0", "0",
		    "any n; few ranks" },
	  .nlanes = 2,
	  .steps = broadcast_steps,
	  .step = broadcast_step },
	{ .coll = HK_COLL_BROADCAST,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "put-eager", NULL, "put into everybody's scratch at once", "(n > 1)", "n-1",
		    "0", "n > 1 ? 1 : 0", "any n; small vectors, few ranks" },
	  .scratch = broadcast_eager_scratch,
	  .nlanes = 2,
	  .steps = broadcast_eager_steps,
	  .step = broadcast_eager_step },
	{ .coll = HK_COLL_BARRIER,
	  .moves = HK_MOVES_SHIFT,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "signal", NULL, "everybody signals everybody", "(n > 1)", "0", "0", "0",
		    "any n; few ranks" },
	  .steps = barrier_steps,
	  .step = barrier_step },
	{ .coll = HK_COLL_BARRIER,
	  .moves = HK_MOVES_SHIFT,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .signals = HK_SIGNALS_WEAK,
	  .info = { "signal-dissemination", NULL, "everybody signals a rank twice as far each time",
		    "clog2(n)", "0", "0", "0", "any n" },
	  .steps = dissemination_steps,
	  .step = dissemination_step },
	{ .info = { .name = NULL } },
};
