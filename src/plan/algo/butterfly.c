/* SPDX-License-Identifier: Apache-2.0 */
/*
 * butterfly.c - exchanges with log2 partners: recursive doubling, recursive
 * halving, both together (Rabenseifner's allreduce), and Swing, which is the
 * same with nearer partners on a ring or torus.
 *
 * The m = pow2(n) members exchange; with f = n - m ranks left over, the first
 * 2f ranks are paired, the even one of a pair being passive: it hands its
 * data to the odd one before and takes the result after.
 *
 * A halving level splits the range of blocks that two partners share: each
 * keeps the half its own position lies in and sends the other. position() is
 * chosen so that a range is always contiguous:
 *   near     partner v ^ 2^s first; position = the bits of v reversed
 *   far      partner v ^ m/2 first; position = v. Used where block k has to
 *            end at rank k (reducescatter, allgather)
 *   swing    partner v +- rho(s), rho(s) = sum of (-2)^i, i <= s. All rho(t)
 *            with t >= s agree modulo 2^(s+1), so the members that v reaches
 *            from level s on are a pair of residue classes; position lists
 *            the bits that tell those classes apart, then the parity.
 *
 * Costs (steps / sent / reduced) for n = 2^k; left-over ranks add up to 2 steps,
 * V sent and V reduced (the cards say exactly):
 *   recursive doubling (allreduce)    log2 n   / log2 n    / log2 n
 *   halving-doubling, swing           2 log2 n / 2(n-1)/n  / (n-1)/n
 *   recursive halving (reducescatter) log2 n   / (n-1)/n   / (n-1)/n
 *   recursive doubling (allgather)    log2 n   / (n-1)/n   / 0
 */
#include "plan/algo/algo.h"

enum butterfly_kind {
	BUTTERFLY_NEAR,
	BUTTERFLY_FAR,
	BUTTERFLY_SWING
};

struct butterfly {
	enum butterfly_kind kind;
	uint32_t levels; /* log2 m */
	uint32_t left;	 /* f */
	bool passive;
	bool paired;	  /* has a passive partner */
	uint32_t partner; /* the other rank of the pair */
	uint32_t v;	  /* member number, unless passive */
};

static struct butterfly butterfly_at(enum butterfly_kind kind, uint32_t n, uint32_t rank)
{
	struct butterfly b = { .kind = kind, .levels = hk__flog2(n) };

	b.left = n - (1u << b.levels);
	b.paired = rank < 2 * b.left;
	b.passive = b.paired && rank % 2 == 0;
	b.partner = rank ^ 1;
	b.v = b.paired ? rank / 2 : rank - b.left;
	return b;
}

/* The rank of a member. */
static struct hk_port butterfly_port(const struct butterfly *b, uint32_t v)
{
	return (struct hk_port){ v < b->left ? 2 * v + 1 : v + b->left, 0 };
}

static struct hk_port butterfly_partner(const struct butterfly *b)
{
	return (struct hk_port){ b->partner, 0 };
}

/* sum of (-2)^i for i = 0..s: (1 - (-2)^(s+1)) / 3, modulo 2^32. */
static uint32_t swing_rho(uint32_t s)
{
	uint32_t power = 2u << s;

	return s % 2 ? 0u - (power - 1) / 3 : (power + 1) / 3;
}

static uint32_t butterfly_peer(const struct butterfly *b, uint32_t level)
{
	uint32_t mask = (1u << b->levels) - 1;

	switch (b->kind) {
	case BUTTERFLY_NEAR:
		return b->v ^ (1u << level);
	case BUTTERFLY_FAR:
		return b->v ^ (1u << (b->levels - 1 - level));
	case BUTTERFLY_SWING:
		break;
	}
	return (b->v % 2 ? b->v - swing_rho(level) : b->v + swing_rho(level)) & mask;
}

static uint32_t bits_reversed(uint32_t x, uint32_t nbits)
{
	x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
	x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
	x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
	x = __builtin_bswap32(x);
	return nbits ? x >> (32 - nbits) : 0;
}

static uint32_t butterfly_position(const struct butterfly *b, uint32_t v)
{
	uint32_t mask = (1u << b->levels) - 1;

	if (b->kind == BUTTERFLY_FAR || b->levels == 0)
		return v;
	if (b->kind == BUTTERFLY_NEAR)
		return bits_reversed(v, b->levels);
	uint32_t even = v % 2 ? (v - swing_rho(b->levels - 1)) & mask : v;
	return bits_reversed(even >> 1, b->levels - 1) << 1 | v % 2;
}

/* Blocks before member position p, where block k belongs to rank k. */
static uint32_t butterfly_blocks_before(const struct butterfly *b, uint32_t p)
{
	return p < b->left ? 2 * p : p + b->left;
}

struct range {
	uint32_t first;
	uint32_t count;
};

/* What member v holds after `level` halvings. per_rank: in blocks of ranks. */
static struct range butterfly_range(const struct butterfly *b, uint32_t v, uint32_t level,
				    bool per_rank)
{
	hk_assert(level <= b->levels);
	uint32_t shift = b->levels - level;
	uint32_t first = butterfly_position(b, v) >> shift << shift;
	uint32_t end = first + (1u << shift);

	if (per_rank) {
		first = butterfly_blocks_before(b, first);
		end = butterfly_blocks_before(b, end);
	}
	return (struct range){ first, end - first };
}

/*
 * Halving: steps 2s (send the peer its half) and 2s + 1 (add the own half
 * that comes back). Block 0 lies (or would lie: slots may be counted backwards,
 * modulo 2^32) at src before; sums go to dst.
 */
static void butterfly_halve(const struct butterfly *b, bool per_rank, uint32_t i,
			    struct hk_span src, struct hk_span dst, struct hk_step *step)
{
	uint32_t level = i / 2, peer = butterfly_peer(b, level);

	if (i % 2 == 0) {
		struct range theirs = butterfly_range(b, peer, level + 1, per_rank);

		step_send(step, butterfly_port(b, peer), span(src.buf, src.first + theirs.first),
			  theirs.count);
	} else {
		struct range mine = butterfly_range(b, b->v, level + 1, per_rank);

		step_recv_reduce(step, butterfly_port(b, peer),
				 span(src.buf, src.first + mine.first), dst, mine.count);
	}
}

/* Doubling, the way back: the same levels from the last to the first. */
static void butterfly_double(const struct butterfly *b, bool per_rank, uint32_t i,
			     struct hk_step *step)
{
	uint32_t level = b->levels - 1 - i / 2, peer = butterfly_peer(b, level);
	struct range range = butterfly_range(b, i % 2 == 0 ? b->v : peer, level + 1, per_rank);

	if (i % 2 == 0)
		step_send(step, butterfly_port(b, peer), span(HK_BUF_OUT, range.first),
			  range.count);
	else
		step_recv(step, butterfly_port(b, peer), span(HK_BUF_OUT, range.first),
			  range.count);
}

/* ---- allreduce ---- */

static uint32_t butterfly_parts(const struct hk_plan *plan)
{
	return 1u << hk__flog2(plan->n);
}

/* Half of all, or all where ranks are left over. */
static uint32_t butterfly_widest(const struct hk_plan *plan)
{
	uint32_t all = plan->coll == HK_COLL_REDUCESCATTER ? plan->n : plan->parts;

	return plan->n > 1u << hk__flog2(plan->n) ? all : hk__max(all / 2, 1);
}

/* A passive rank hands everything over and takes everything back. */
static void allreduce_passive_step(const struct hk_plan *plan, const struct butterfly *b,
				   uint32_t i, struct hk_step *step)
{
	if (i == 0)
		step_send(step, butterfly_partner(b), span(HK_BUF_IN, 0), plan->parts);
	else
		step_recv(step, butterfly_partner(b), span(HK_BUF_OUT, 0), plan->parts);
}

/*
 * The steps around an exchange of `inner` steps. True where step i is one of
 * the exchange; then *i is its number there and *src where the data lies.
 */
static bool allreduce_outer_step(const struct hk_plan *plan, const struct butterfly *b,
				 uint32_t inner, uint32_t *i, enum hk_buf *src,
				 struct hk_step *step)
{
	struct hk_span all_in = span(HK_BUF_IN, 0), all_out = span(HK_BUF_OUT, 0);

	*src = b->paired ? HK_BUF_OUT : HK_BUF_IN;
	if (b->passive) {
		allreduce_passive_step(plan, b, *i, step);
		return false;
	}
	if (b->paired && *i == 0) {
		step_recv_reduce(step, butterfly_partner(b), all_in, all_out, plan->parts);
		return false;
	}
	*i -= b->paired;
	if (*i < inner)
		return true;
	if (b->paired)
		step_send(step, butterfly_partner(b), all_out, plan->parts);
	else
		step_copy(step, all_in, all_out, plan->parts); /* n = 1 */
	return false;
}

static uint32_t allreduce_outer_steps(const struct butterfly *b, uint32_t inner)
{
	if (b->passive)
		return 2;
	return inner + (b->paired ? 2 : 0) + (b->levels == 0);
}

static uint32_t recdbl_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct butterfly b = butterfly_at(BUTTERFLY_NEAR, plan->n, rank);

	(void)lane;
	return allreduce_outer_steps(&b, 2 * b.levels);
}

static void recdbl_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct butterfly b = butterfly_at(BUTTERFLY_NEAR, plan->n, rank);
	enum hk_buf src;

	(void)lane;
	if (!allreduce_outer_step(plan, &b, 2 * b.levels, &i, &src, step))
		return;
	struct hk_port peer = butterfly_port(&b, butterfly_peer(&b, i / 2));
	struct hk_span sum = span(i < 2 ? src : HK_BUF_OUT, 0);
	if (i % 2 == 0)
		step_send(step, peer, sum, 1);
	else
		step_recv_reduce(step, peer, sum, span(HK_BUF_OUT, 0), 1);
}

static uint32_t halving_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct butterfly b = butterfly_at(BUTTERFLY_NEAR, plan->n, rank);

	(void)lane;
	return allreduce_outer_steps(&b, 4 * b.levels);
}

static void halving_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	struct butterfly b = butterfly_at((enum butterfly_kind)plan->algo->variant, plan->n, rank);
	enum hk_buf src;

	(void)lane;
	if (!allreduce_outer_step(plan, &b, 4 * b.levels, &i, &src, step))
		return;
	if (i >= 2 * b.levels) {
		butterfly_double(&b, false, i - 2 * b.levels, step);
		return;
	}
	struct range mine = butterfly_range(&b, b.v, i / 2 + 1, false);
	butterfly_halve(&b, false, i, span(i < 2 ? src : HK_BUF_OUT, 0),
			span(HK_BUF_OUT, mine.first), step);
}

/*
 * ---- reducescatter: scratch slot k holds block k of what a member holds when
 * its sums begin: after its pair's hand-over all blocks, else its first half ----
 */

static struct range reducescatter_held(const struct butterfly *b)
{
	return butterfly_range(b, b->v, b->paired ? 0 : 1, true);
}

static uint32_t reducescatter_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct butterfly b = butterfly_at(BUTTERFLY_FAR, plan->n, rank);

	return b.passive || (!b.paired && b.levels < 2) ? 0 : reducescatter_held(&b).count;
}

static uint32_t reducescatter_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct butterfly b = butterfly_at(BUTTERFLY_FAR, plan->n, rank);

	(void)lane;
	if (b.passive)
		return 2;
	/* Paired: a receive before, a send and a copy after. n = 1: a copy. */
	return 2 * b.levels + (b.paired ? 3 : 0) + (b.levels == 0);
}

static void reducescatter_passive_step(const struct hk_plan *plan, const struct butterfly *b,
				       uint32_t i, struct hk_step *step)
{
	if (i == 0)
		step_send(step, butterfly_partner(b), span(HK_BUF_IN, 0), plan->n);
	else
		step_recv(step, butterfly_partner(b), span(HK_BUF_OUT, 0), 1);
}

/* The last level of an unpaired member leaves one block, its own: into out. */
static struct hk_span reducescatter_dst(const struct butterfly *b, uint32_t i)
{
	if (!b->paired && i / 2 + 1 == b->levels)
		return span(HK_BUF_OUT, 0);
	return span(HK_BUF_SCRATCH,
		    butterfly_range(b, b->v, i / 2 + 1, true).first - reducescatter_held(b).first);
}

static void reducescatter_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			       struct hk_step *step)
{
	struct butterfly b = butterfly_at(BUTTERFLY_FAR, plan->n, rank);

	(void)lane;
	if (b.passive) {
		reducescatter_passive_step(plan, &b, i, step);
		return;
	}
	if (b.levels == 0) {
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0), 1);
		return;
	}
	if (b.paired && i == 0) {
		step_recv_reduce(step, butterfly_partner(&b), span(HK_BUF_IN, 0),
				 span(HK_BUF_SCRATCH, 0), plan->n);
		return;
	}
	i -= b.paired;
	if (i < 2 * b.levels) {
		struct hk_span src = i < 2 && !b.paired ? span(HK_BUF_IN, 0)
							: span(HK_BUF_SCRATCH,
							       0u - reducescatter_held(&b).first);

		butterfly_halve(&b, true, i, src, reducescatter_dst(&b, i), step);
	} else if (i == 2 * b.levels) {
		step_send(step, butterfly_partner(&b), span(HK_BUF_SCRATCH, b.partner), 1);
	} else {
		step_copy(step, span(HK_BUF_SCRATCH, rank), span(HK_BUF_OUT, 0), 1);
	}
}

/* ---- allgather ---- */

static uint32_t allgather_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	struct butterfly b = butterfly_at(BUTTERFLY_FAR, plan->n, rank);

	(void)lane;
	return b.passive ? 3 : 1 + 2 * b.levels + (b.paired ? 2 : 0);
}

static uint32_t allgather_widest(const struct hk_plan *plan)
{
	return plan->n > 1u << hk__flog2(plan->n) ? plan->n - 1 : hk__max(plan->n / 2, 1);
}

/* What a passive rank lacks in the end: all blocks but its own. */
static struct hk_span allgather_rest(const struct butterfly *b)
{
	return span(HK_BUF_OUT, 2 * b->v + 1);
}

static void allgather_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			   struct hk_step *step)
{
	struct butterfly b = butterfly_at(BUTTERFLY_FAR, plan->n, rank);

	(void)lane;
	if (b.passive && i == 0) {
		step_send(step, butterfly_partner(&b), span(HK_BUF_IN, 0), 1);
	} else if (i == b.passive) {
		step_copy(step, span(HK_BUF_IN, 0), span(HK_BUF_OUT, rank), 1);
	} else if (b.passive) {
		step_recv(step, butterfly_partner(&b), allgather_rest(&b), plan->n - 1);
	} else if (b.paired && i == 1) {
		step_recv(step, butterfly_partner(&b), span(HK_BUF_OUT, b.partner), 1);
	} else {
		i -= 1 + b.paired;
		if (i < 2 * b.levels)
			butterfly_double(&b, true, i, step);
		else
			step_send(step, butterfly_partner(&b), allgather_rest(&b), plan->n - 1);
	}
}

/*
 * In the cards: 1 where ranks are left over; the messages that adds to the
 * critical path of one sweep (the second only where pairs meet all the way);
 * and the blocks that doubling moves.
 */
#define LEFT "(n > pow2(n))"
#define DETOUR LEFT " + (2*n > 3*pow2(n))"
#define DOUBLED "pow2(n)-1 + halvings(n)"

const struct hk_algo hk__algo_butterfly[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .card = { "recursive-doubling", NULL,
		    "whole vectors with a partner twice as far each time", "flog2(n) + " DETOUR,
		    "flog2(n) + " LEFT, "flog2(n) + " LEFT, "0", "any n; small vectors" },
	  .steps = recdbl_steps,
	  .step = recdbl_step },
	{ .coll = HK_COLL_ALLREDUCE,
	  .variant = BUTTERFLY_NEAR,
	  .card = { "halving-doubling", "rabenseifner",
		    "recursive halving, then recursive doubling (Rabenseifner)",
		    "2*flog2(n) + 2*" LEFT, "2*(pow2(n)-1)/pow2(n) + " LEFT,
		    "(pow2(n)-1)/pow2(n) + " LEFT, "0", "any n; flat networks" },
	  .parts = butterfly_parts,
	  .widest = butterfly_widest,
	  .steps = halving_steps,
	  .step = halving_step },
	{ .coll = HK_COLL_ALLREDUCE,
	  .variant = BUTTERFLY_SWING,
	  .card = { "swing", NULL, "halving-doubling with near partners on a ring or torus",
		    "2*flog2(n) + 2*" LEFT, "2*(pow2(n)-1)/pow2(n) + " LEFT,
		    "(pow2(n)-1)/pow2(n) + " LEFT, "0", "any n; torus and ring links" },
	  .parts = butterfly_parts,
	  .widest = butterfly_widest,
	  .steps = halving_steps,
	  .step = halving_step },
	{ .coll = HK_COLL_REDUCESCATTER,
	  .card = { "recursive-halving", "halving", "halves with a partner half as far each time",
		    "flog2(n) + " DETOUR, LEFT " ? 1 : (n-1)/n", "(" DOUBLED " + " LEFT "*n)/n",
		    LEFT " ? 1 : n > 2 ? 1/2 : 0", "any n" },
	  .scratch = reducescatter_scratch,
	  .widest = butterfly_widest,
	  .steps = reducescatter_steps,
	  .step = reducescatter_step },
	{ .coll = HK_COLL_ALLGATHER,
	  .card = { "recursive-doubling", NULL, "all it has, with a partner twice as far each time",
		    "flog2(n) + " DETOUR, "(" DOUBLED " + " LEFT "*(n-1))/n", "0", "0", "any n" },
	  .widest = allgather_widest,
	  .steps = allgather_steps,
	  .step = allgather_step },
	{ .card = { .name = NULL } },
};
