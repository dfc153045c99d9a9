/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algo.h - what the algorithm families share: teams of ranks, spans, and
 * the makers of steps. Pure arithmetic; nothing here has state or does I/O.
 *
 * Conventions of every family:
 *   n, r (or v)   ranks of a team, and the caller's place in it
 *   i             step number inside a phase; a lane is phases in a row
 *   V, chunk      as in plan.h
 * The header comment of each family gives its cost as
 *   steps (messages on the critical path) / V sent by the busiest rank /
 *   V reduced by the busiest rank
 * and the same formulas stand in the family's rows, where tests read them.
 */
#ifndef HK_PLAN_ALGO_ALGO_H
#define HK_PLAN_ALGO_ALGO_H

#include "plan/plan.h"

/* Cards of the families, each ended by a row without a name. */
extern const struct hk_algo hk__algo_direct[];
extern const struct hk_algo hk__algo_direct_rooted[];
extern const struct hk_algo hk__algo_ring[];
extern const struct hk_algo hk__algo_butterfly[];
extern const struct hk_algo hk__algo_bruck[];
extern const struct hk_algo hk__algo_pat[];
extern const struct hk_algo hk__algo_pairwise[];
extern const struct hk_algo hk__algo_tree[];
extern const struct hk_algo hk__algo_dbtree[];
extern const struct hk_algo hk__algo_compose[];
extern const struct hk_algo hk__algo_twolevel[];
extern const struct hk_algo hk__algo_twolevel_halving[];
extern const struct hk_algo hk__algo_barrier[];
extern const struct hk_algo hk__algo_sendrecv[];
extern const struct hk_algo hk__algo_put[];
extern const struct hk_algo hk__algo_leader[];
extern const struct hk_algo hk__algo_leader_blocks[];
extern const struct hk_algo hk__algo_leader_alltoall[];

/* ---- teams ---- */

/*
 * Some ranks of the plan, numbered 0..n-1: member k is at place
 * (k + turn) mod n, which is rank base + place * stride, or table[place] where
 * there is a table, and talks on `lane`. With a head, member 0 is that rank.
 */
struct team {
	uint32_t n;
	uint32_t me;
	uint32_t base;
	uint32_t stride;
	uint32_t turn;
	uint32_t lane;
	const uint32_t *table;
	bool headed;
	uint32_t head;
};

/* All ranks, member 0 being `first`. */
static inline struct team team_all(const struct hk_plan *plan, uint32_t rank, uint32_t first)
{
	return (struct team){ .n = plan->n, .me = hk__mod_sub(rank, first, plan->n), .stride = 1,
			      .turn = first };
}

/* The ranks of one node, member 0 being device `first`. */
static inline struct team team_node(const struct hk_plan *plan, uint32_t rank, uint32_t first)
{
	uint32_t g = plan->n / plan->nodes;

	return (struct team){ .n = g, .me = hk__mod_sub(rank % g, first, g),
			      .base = rank / g * g, .stride = 1, .turn = first };
}

/* The ranks at the same place in every node, member 0 being on node `first`. */
static inline struct team team_rail(const struct hk_plan *plan, uint32_t rank, uint32_t first)
{
	uint32_t g = plan->n / plan->nodes;

	return (struct team){ .n = plan->nodes, .me = hk__mod_sub(rank / g, first, plan->nodes),
			      .base = rank % g, .stride = g, .turn = first };
}

static inline struct hk_port team_port(const struct team *team, uint32_t member)
{
	uint32_t place = hk__mod_add(member, team->turn, team->n);

	if (team->headed && member == 0)
		return (struct hk_port){ team->head, team->lane };
	if (team->table)
		return (struct hk_port){ team->table[place], team->lane };
	return (struct hk_port){ team->base + place * team->stride, team->lane };
}

static inline uint32_t team_next(const struct team *team, uint32_t distance)
{
	return hk__mod_add(team->me, distance, team->n);
}

static inline uint32_t team_prev(const struct team *team, uint32_t distance)
{
	return hk__mod_sub(team->me, distance, team->n);
}

/* ---- spans ---- */

static inline struct hk_span span(enum hk_buf buf, uint32_t first)
{
	return (struct hk_span){ buf, first, 0, 0 };
}

static inline struct hk_span span_strided(enum hk_buf buf, uint32_t first, uint32_t stride)
{
	return (struct hk_span){ buf, first, 1, stride };
}

static const struct hk_span span_none = { HK_BUF_NONE, 0, 0, 0 };

/* ---- steps ---- */

static inline void step_send(struct hk_step *step, struct hk_port to, struct hk_span src,
			     uint32_t count)
{
	step->op = HK_OP_SEND;
	step->to = to;
	step->src = src;
	step->count = count;
}

static inline void step_recv(struct hk_step *step, struct hk_port from, struct hk_span dst,
			     uint32_t count)
{
	step->op = HK_OP_RECV;
	step->from = from;
	step->dst = dst;
	step->count = count;
}

static inline void step_recv_reduce(struct hk_step *step, struct hk_port from, struct hk_span src,
				    struct hk_span dst, uint32_t count)
{
	step->op = HK_OP_RECV_REDUCE;
	step->from = from;
	step->src = src;
	step->dst = dst;
	step->count = count;
}

static inline void step_recv_send(struct hk_step *step, struct hk_port from, struct hk_port to,
				  struct hk_span dst, uint32_t count)
{
	step->op = HK_OP_RECV_SEND;
	step->from = from;
	step->to = to;
	step->dst = dst;
	step->count = count;
}

static inline void step_copy(struct hk_step *step, struct hk_span src, struct hk_span dst,
			     uint32_t count)
{
	step->op = HK_OP_COPY;
	step->src = src;
	step->dst = dst;
	step->count = count;
}

static inline void step_reduce(struct hk_step *step, struct hk_span src, struct hk_span dst,
			       uint32_t count)
{
	step->op = HK_OP_REDUCE;
	step->src = src;
	step->dst = dst;
	step->count = count;
}

/* ---- phases used by more than one family ---- */

/* Blocks of a team: member k's are the `per` slots from first + k * step on. */
struct blocks {
	uint32_t first;
	uint32_t per;
	uint32_t step;
};

static inline struct hk_span blocks_span(const struct blocks *blocks, enum hk_buf buf,
					 uint32_t member)
{
	return span(buf, blocks->first + member * blocks->step);
}

/*
 * Accumulation in member order (direct.c): the member receives one message of
 * `count` chunks from every other and adds them and its own to out, in the
 * order of members, so that every member that accumulates the same chunks
 * gets the same bits. In place is fine. scratch: count slots, members >= 2.
 */
struct accumulate {
	struct team team;
	struct hk_span in;
	struct hk_span out;
	struct hk_span scratch;
	uint32_t count;
};
uint32_t hk__accumulate_steps(uint32_t n, uint32_t me);
void hk__accumulate_step(const struct accumulate *acc, uint32_t i, struct hk_step *step);

/*
 * Rings (ring.c) need RING_SLOTS: all members may hold a message that they can
 * pass on only when the next one has let go of its own.
 */
#define RING_SLOTS 2
_Static_assert(RING_SLOTS <= HK_SLOTS_MIN, "every transport can run a ring");

/*
 * Rings (ring.c) over a team whose member k owns block k. `src` is where a
 * member's own contribution lies, `dst` where results go. Where blocks differ
 * in size, block k is the slots from table[k] to table[k + 1] - 1 instead.
 */
struct ring {
	struct team team;
	struct blocks blocks;
	const uint32_t *table;
	enum hk_buf src;
	enum hk_buf dst;
};
uint32_t hk__ring_allreduce_steps(uint32_t n);
void hk__ring_allreduce_step(const struct ring *ring, uint32_t i, struct hk_step *step);
/* Member k's block ends in `result`. */
uint32_t hk__ring_reducescatter_steps(uint32_t n);
void hk__ring_reducescatter_step(const struct ring *ring, struct hk_span result, uint32_t i,
				 struct hk_step *step);
/* Starts from the own block in `own`; the first step copies it into dst. */
uint32_t hk__ring_allgather_steps(uint32_t n);
void hk__ring_allgather_step(const struct ring *ring, struct hk_span own, uint32_t i,
			     struct hk_step *step);

/*
 * Butterflies (butterfly.c) over a team of any size. Block k is one of pow2(n)
 * parts in an allreduce, else member k's.
 *   allreduce      halving and doubling from src to out; blocks lie side by side
 *   reducescatter  halving; slot k of src is block k, the own one ends in slot 0
 *                  of out. From scratch the sums stay there, in place
 *   allgather      doubling, from slot 0 of in to out; blocks may lie apart
 */
struct exchange {
	enum hk_coll coll;
	struct team team;
	struct blocks blocks;
	enum hk_buf src;
};
uint32_t hk__exchange_steps(enum hk_coll coll, uint32_t n, uint32_t me);
void hk__exchange_step(const struct exchange *exchange, uint32_t i, struct hk_step *step);
/* Blocks of the widest message. */
uint32_t hk__exchange_widest(enum hk_coll coll, uint32_t n);

/*
 * An exchange as stages: what left-over members hand over, level by level, what
 * they get back. Each may have a lane of its own, which works on one slice while
 * the next lane works on the one before. Which steps of a member are a stage:
 */
struct stage {
	uint32_t first;
	uint32_t count;
};
uint32_t hk__exchange_stages(enum hk_coll coll, uint32_t n);
struct stage hk__exchange_stage(enum hk_coll coll, uint32_t n, uint32_t me, uint32_t stage);

/*
 * In the formulas of butterflies over x = "n" or "N" members: 1 where some are left
 * over; the messages that adds to the critical path of one sweep (the second
 * only where pairs meet all the way); and the blocks that doubling moves.
 */
#define HALVING_LEFT(x) "(" x " > pow2(" x "))"
#define HALVING_DETOUR(x) HALVING_LEFT(x) " + (2*" x " > 3*pow2(" x "))"
#define HALVING_DOUBLED(x) "pow2(" x ")-1 + halvings(" x ")"

/*
 * What each member of a node has for, or of, each other: `count` chunks, for
 * member k from slot k * step on, every `period` slots.
 */
struct columns {
	uint32_t step;
	uint32_t period;
	uint32_t count;
};

static inline struct hk_span columns_span(const struct columns *columns, enum hk_buf buf,
					  uint32_t member)
{
	uint32_t first = member * columns->step;

	return columns->period == 1 ? span(buf, first) : span_strided(buf, first, columns->period);
}

/* 2(n-1) steps (twolevel.c): the own column of out to all, theirs into out. */
void hk__columns_gather_step(const struct team *team, const struct columns *columns, uint32_t i,
			     struct hk_step *step);

/*
 * Trees (tree.c): one node's view. Fan-out passes `count` chunks from the
 * root's src down to everybody's dst; fan-in sums everybody's src up to the
 * root's dst, with `acc` as the place of partial sums elsewhere.
 */
struct tree_node {
	bool has_parent;
	struct hk_port parent;
	/*
	 * Children, the largest subtree first: those listed, then those in the
	 * binomial tree of a team (star: all members but the first of that
	 * team), then those in another's.
	 */
	uint32_t nkids;
	bool star;
	uint32_t nlisted;
	struct hk_port listed[2];
	struct team teams[2];
};
void hk__tree_binomial(const struct team *team, struct tree_node *node);
uint32_t hk__tree_fanout_steps(const struct tree_node *node);
void hk__tree_fanout_step(const struct tree_node *node, struct hk_span src, struct hk_span dst,
			  uint32_t count, uint32_t i, struct hk_step *step);
uint32_t hk__tree_fanin_steps(const struct tree_node *node);
void hk__tree_fanin_step(const struct tree_node *node, struct hk_span src, struct hk_span acc,
			 struct hk_span dst, uint32_t i, struct hk_step *step);

/*
 * Nodes of any sizes (leader.c): a rank's node, and the ranks that lead. The
 * first rank of a node leads it, but `head` its own; leader 0 is head.
 */
struct leader_view {
	uint32_t node;
	uint32_t first;		/* rank of the node */
	struct team mates;	/* the node; member 0 leads */
	struct team leaders;	/* of all nodes; `me` is this node's */
};
void hk__leader_view(const struct hk_plan *plan, uint32_t rank, uint32_t head,
		     struct leader_view *view);

/* The stages of a leader algorithm, a lane each. */
enum leader_lane {
	LEADER_UP,
	LEADER_ACROSS,
	LEADER_DOWN,
	LEADER_LANES
};
#define LEADER_LIMITS "any nodes, costs for equal ones"

/*
 * Along a chain of two members or more (leader.c): everybody's src summed up to
 * member 0's dst; member 0's `at` passed down into everybody's.
 */
void hk__chain_up_step(const struct team *team, struct hk_span src, struct hk_span dst,
		       uint32_t count, struct hk_step *step);
void hk__chain_down_step(const struct team *team, struct hk_span at, uint32_t count,
			 struct hk_step *step);

/* Binomial trees by arithmetic: children of member v of n, largest first. */
uint32_t hk__binomial_nkids(uint32_t n, uint32_t v);
uint32_t hk__binomial_kid(uint32_t n, uint32_t v, uint32_t k);
uint32_t hk__binomial_parent(uint32_t v);		/* v > 0 */
uint32_t hk__binomial_size(uint32_t n, uint32_t v);	/* members below and v */
uint32_t hk__binomial_widest(uint32_t n);		/* largest size but the root's */

#endif
