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
 * V sent and V reduced (the formulas say exactly):
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
	struct team team; /* the ranks; a "rank" here is a place in it */
	struct blocks blocks;
};

static struct butterfly butterfly_of(enum butterfly_kind kind, uint32_t n, uint32_t rank)
{
	struct butterfly b = { .kind = kind, .levels = hk__flog2(n) };

	b.left = n - (1u << b.levels);
	b.paired = rank < 2 * b.left;
	b.passive = b.paired && rank % 2 == 0;
	b.partner = rank ^ 1;
	b.v = b.paired ? rank / 2 : rank - b.left;
	return b;
}

static struct butterfly butterfly_at(enum butterfly_kind kind, const struct exchange *exchange)
{
	struct butterfly b = butterfly_of(kind, exchange->team.n, exchange->team.me);

	b.team = exchange->team;
	b.blocks = exchange->blocks;
	return b;
}

/* All ranks of a plan, whose blocks lie side by side. */
static struct exchange exchange_all(const struct hk_plan *plan, uint32_t rank)
{
	return (struct exchange){ .coll = plan->coll,
				  .team = team_all(plan, rank, 0),
				  .blocks = { 0, 1, 1 },
				  .src = HK_BUF_IN };
}

/* The rank of a member. */
static struct hk_port butterfly_port(const struct butterfly *b, uint32_t v)
{
	return team_port(&b->team, v < b->left ? 2 * v + 1 : v + b->left);
}

static struct hk_port butterfly_partner(const struct butterfly *b)
{
	return team_port(&b->team, b->partner);
}

/* Blocks from `block` on, in a buffer that holds them as the exchange says. */
static struct hk_span butterfly_span(const struct butterfly *b, enum hk_buf buf, uint32_t block)
{
	uint32_t first = b->blocks.first + block * b->blocks.step;

	return b->blocks.step == 1 ? span(buf, first) : span_strided(buf, first, b->blocks.step);
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
	struct hk_span blocks = butterfly_span(b, HK_BUF_OUT, range.first);

	if (i % 2 == 0)
		step_send(step, butterfly_port(b, peer), blocks, range.count);
	else
		step_recv(step, butterfly_port(b, peer), blocks, range.count);
}

/* ---- allreduce ---- */

static uint32_t butterfly_parts(const struct hk_plan *plan)
{
	return 1u << hk__flog2(plan->n);
}

/* What is around an exchange of `inner` steps, on `parts` parts at src. */
struct outer {
	uint32_t inner;
	uint32_t parts;
	struct hk_span src;
	struct hk_span dst;
};

/* A passive rank hands everything over and takes everything back. */
static void allreduce_passive_step(const struct butterfly *b, const struct outer *outer, uint32_t i,
				   struct hk_step *step)
{
	if (i == 0)
		step_send(step, butterfly_partner(b), outer->src, outer->parts);
	else
		step_recv(step, butterfly_partner(b), outer->dst, outer->parts);
}

/*
 * The steps around an exchange. True where step i is one of the exchange; then
 * *i is its number there and *src where the data lies.
 */
static bool allreduce_outer_step(const struct butterfly *b, const struct outer *outer, uint32_t *i,
				 struct hk_span *src, struct hk_step *step)
{
	*src = b->paired ? outer->dst : outer->src;
	if (b->passive) {
		allreduce_passive_step(b, outer, *i, step);
		return false;
	}
	if (b->paired && *i == 0) {
		step_recv_reduce(step, butterfly_partner(b), outer->src, outer->dst, outer->parts);
		return false;
	}
	*i -= b->paired;
	if (*i < outer->inner)
		return true;
	if (b->paired)
		step_send(step, butterfly_partner(b), outer->dst, outer->parts);
	else
		step_copy(step, outer->src, outer->dst, outer->parts); /* n = 1 */
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
	struct butterfly b = butterfly_of(BUTTERFLY_NEAR, plan->n, rank);

	(void)lane;
	return allreduce_outer_steps(&b, 2 * b.levels);
}

static void recdbl_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			struct hk_step *step)
{
	struct exchange all = exchange_all(plan, rank);
	struct butterfly b = butterfly_at(BUTTERFLY_NEAR, &all);
	struct outer outer = { 2 * b.levels, 1, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0) };
	struct hk_span sum;

	(void)lane;
	if (!allreduce_outer_step(&b, &outer, &i, &sum, step))
		return;
	struct hk_port peer = butterfly_port(&b, butterfly_peer(&b, i / 2));
	if (i >= 2)
		sum = outer.dst;
	if (i % 2 == 0)
		step_send(step, peer, sum, 1);
	else
		step_recv_reduce(step, peer, sum, outer.dst, 1);
}

static void halving_allreduce_step(const struct butterfly *b, enum hk_buf from, uint32_t i,
				   struct hk_step *step)
{
	struct outer outer = { 4 * b->levels, 1u << b->levels, butterfly_span(b, from, 0),
			       butterfly_span(b, HK_BUF_OUT, 0) };
	struct hk_span src;

	if (!allreduce_outer_step(b, &outer, &i, &src, step))
		return;
	if (i >= 2 * b->levels) {
		butterfly_double(b, false, i - 2 * b->levels, step);
		return;
	}
	struct range mine = butterfly_range(b, b->v, i / 2 + 1, false);
	butterfly_halve(b, false, i, i < 2 ? src : outer.dst,
			butterfly_span(b, HK_BUF_OUT, mine.first), step);
}

static void halving_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step)
{
	struct exchange all = exchange_all(plan, rank);
	struct butterfly b = butterfly_at((enum butterfly_kind)plan->algo->variant, &all);

	(void)lane;
	halving_allreduce_step(&b, HK_BUF_IN, i, step);
}

/*
 * ---- reducescatter: scratch slot k holds block k of what a member holds when
 * its sums begin: after its pair's hand-over all blocks, else its first half.
 * Where blocks lie in scratch from the start, each stays where it is ----
 */

static struct range reducescatter_held(const struct butterfly *b, enum hk_buf src)
{
	return butterfly_range(b, b->v, b->paired || src == HK_BUF_SCRATCH ? 0 : 1, true);
}

static uint32_t reducescatter_scratch(const struct hk_plan *plan, uint32_t rank)
{
	struct butterfly b = butterfly_of(BUTTERFLY_FAR, plan->n, rank);

	if (b.passive || (!b.paired && b.levels < 2))
		return 0;
	return reducescatter_held(&b, HK_BUF_IN).count;
}

/* The last level of an unpaired member leaves one block, its own: into out. */
static struct hk_span reducescatter_dst(const struct butterfly *b, enum hk_buf src, uint32_t i)
{
	if (!b->paired && i / 2 + 1 == b->levels)
		return span(HK_BUF_OUT, 0);
	return span(HK_BUF_SCRATCH, butterfly_range(b, b->v, i / 2 + 1, true).first -
					    reducescatter_held(b, src).first);
}

/* What surrounds the halving of a pair: i counts its steps before and after. */
static void reducescatter_pair_step(const struct butterfly *b, enum hk_buf src, uint32_t i,
				    struct hk_step *step)
{
	struct hk_port partner = butterfly_partner(b);
	uint32_t n = b->team.n;

	if (b->passive && i == 0)
		step_send(step, partner, span(src, 0), n);
	else if (b->passive)
		step_recv(step, partner, span(HK_BUF_OUT, 0), 1);
	else if (i == 0)
		step_recv_reduce(step, partner, span(src, 0), span(HK_BUF_SCRATCH, 0), n);
	else if (i == 1)
		step_send(step, partner, span(HK_BUF_SCRATCH, b->partner), 1);
	else
		step_copy(step, span(HK_BUF_SCRATCH, b->team.me), span(HK_BUF_OUT, 0), 1);
}

static void halving_reducescatter_step(const struct butterfly *b, enum hk_buf src, uint32_t i,
				       struct hk_step *step)
{
	if (b->levels == 0) {
		step_copy(step, span(src, 0), span(HK_BUF_OUT, 0), 1);
	} else if (b->passive || (b->paired && i == 0)) {
		reducescatter_pair_step(b, src, i, step);
	} else if (i - b->paired < 2 * b->levels) {
		i -= b->paired;
		struct hk_span at = span(src, 0);
		if (i >= 2 || b->paired)
			at = span(HK_BUF_SCRATCH, 0u - reducescatter_held(b, src).first);
		butterfly_halve(b, true, i, at, reducescatter_dst(b, src, i), step);
	} else {
		reducescatter_pair_step(b, src, i - 2 * b->levels, step);
	}
}

/* ---- allgather ---- */

static void doubling_allgather_step(const struct butterfly *b, uint32_t i, struct hk_step *step)
{
	struct hk_span own = span(HK_BUF_IN, 0);
	/* What a passive rank lacks in the end: all blocks but its own. */
	struct hk_span rest = butterfly_span(b, HK_BUF_OUT, 2 * b->v + 1);
	uint32_t n = b->team.n;

	if (b->passive && i == 0) {
		step_send(step, butterfly_partner(b), own, 1);
	} else if (i == b->passive) {
		step_copy(step, own, butterfly_span(b, HK_BUF_OUT, b->team.me), 1);
	} else if (b->passive) {
		step_recv(step, butterfly_partner(b), rest, n - 1);
	} else if (b->paired && i == 1) {
		step_recv(step, butterfly_partner(b), butterfly_span(b, HK_BUF_OUT, b->partner), 1);
	} else {
		i -= 1 + b->paired;
		if (i < 2 * b->levels)
			butterfly_double(b, true, i, step);
		else
			step_send(step, butterfly_partner(b), rest, n - 1);
	}
}

/* ---- all of them, over a team ---- */

/*
 * The steps of a member: some before the levels of two steps each, some after.
 * Pairs hand over before and return after (a member that reduces and scatters
 * also copies its own), and an allgather begins with a copy. n = 1: a copy.
 */
struct outline {
	uint32_t before;
	uint32_t levels;
	uint32_t after;
};

static struct outline exchange_outline(enum hk_coll coll, uint32_t n, uint32_t me)
{
	struct butterfly b = butterfly_of(BUTTERFLY_FAR, n, me);
	struct outline outline = { b.paired, b.levels, b.paired };

	if (coll == HK_COLL_ALLREDUCE)
		outline.levels *= 2;
	if (coll == HK_COLL_REDUCESCATTER && b.paired && !b.passive)
		outline.after++;
	if (coll == HK_COLL_ALLGATHER || b.levels == 0)
		outline.before++;
	if (b.passive)
		outline.levels = 0;
	return outline;
}

uint32_t hk__exchange_steps(enum hk_coll coll, uint32_t n, uint32_t me)
{
	struct outline outline = exchange_outline(coll, n, me);

	return outline.before + 2 * outline.levels + outline.after;
}

/* Half of all, or all where ranks are left over; an allgather's all but the own. */
uint32_t hk__exchange_widest(enum hk_coll coll, uint32_t n)
{
	uint32_t all = coll == HK_COLL_ALLREDUCE ? 1u << hk__flog2(n) : n;

	if (n == 1u << hk__flog2(n))
		return hk__max(all / 2, 1);
	return coll == HK_COLL_ALLGATHER ? all - 1 : all;
}

void hk__exchange_step(const struct exchange *exchange, uint32_t i, struct hk_step *step)
{
	bool whole = exchange->coll == HK_COLL_ALLREDUCE;
	struct butterfly b = butterfly_at(whole ? BUTTERFLY_NEAR : BUTTERFLY_FAR, exchange);

	hk_assert(b.blocks.step == 1 || exchange->coll == HK_COLL_ALLGATHER);
	if (whole)
		halving_allreduce_step(&b, exchange->src, i, step);
	else if (exchange->coll == HK_COLL_REDUCESCATTER)
		halving_reducescatter_step(&b, exchange->src, i, step);
	else
		doubling_allgather_step(&b, i, step);
}

/* Stages that some member has steps in: those around the levels may have none. */
static bool exchange_begins(enum hk_coll coll, uint32_t n)
{
	return n > 1u << hk__flog2(n) || n == 1 || coll == HK_COLL_ALLGATHER;
}

uint32_t hk__exchange_stages(enum hk_coll coll, uint32_t n)
{
	uint32_t levels = hk__flog2(n) * (coll == HK_COLL_ALLREDUCE ? 2 : 1);

	return exchange_begins(coll, n) + levels + (n > 1u << hk__flog2(n));
}

struct stage hk__exchange_stage(enum hk_coll coll, uint32_t n, uint32_t me, uint32_t stage)
{
	struct outline outline = exchange_outline(coll, n, me);
	uint32_t levels = hk__flog2(n) * (coll == HK_COLL_ALLREDUCE ? 2 : 1);
	bool begins = exchange_begins(coll, n);

	if (begins && stage == 0)
		return (struct stage){ 0, outline.before };
	stage -= begins;
	if (stage == levels)
		return (struct stage){ outline.before + 2 * outline.levels, outline.after };
	return (struct stage){ outline.before + 2 * stage, outline.levels ? 2 : 0 };
}

/* ---- and over all ranks of a plan ---- */

static uint32_t all_widest(const struct hk_plan *plan)
{
	return hk__exchange_widest(plan->coll, plan->n);
}

static uint32_t all_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	(void)lane;
	return hk__exchange_steps(plan->coll, plan->n, rank);
}

static void all_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
		     struct hk_step *step)
{
	struct exchange all = exchange_all(plan, rank);

	(void)lane;
	hk__exchange_step(&all, i, step);
}

#define LEFT HALVING_LEFT("n")
#define DETOUR HALVING_DETOUR("n")
#define DOUBLED HALVING_DOUBLED("n")

const struct hk_algo hk__algo_butterfly[] = {
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_XOR,
	  .info = { "recursive-doubling", NULL,
		    "whole vectors with a partner twice as far each time", "flog2(n) + " DETOUR,
		    "flog2(n) + " LEFT, "flog2(n) + " LEFT, "0", "any n; small vectors" },
	  .steps = recdbl_steps,
	  .step = recdbl_step },
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_XOR,
	  .variant = BUTTERFLY_NEAR,
	  .info = { "halving-doubling", "rabenseifner",
		    "recursive halving, then recursive doubling (Rabenseifner)",
		    "2*flog2(n) + 2*" LEFT, "2*(pow2(n)-1)/pow2(n) + " LEFT,
		    "(pow2(n)-1)/pow2(n) + " LEFT, "0", "any n; flat networks" },
	  .parts = butterfly_parts,
	  .widest = all_widest,
	  .steps = all_steps,
	  .step = halving_step },
	{ .coll = HK_COLL_ALLREDUCE,
	  .moves = HK_MOVES_SHIFT_EVEN,
	  .variant = BUTTERFLY_SWING,
	  .info = { "swing", NULL, "halving-doubling with near partners on a ring or torus",
		    "2*flog2(n) + 2*" LEFT, "2*(pow2(n)-1)/pow2(n) + " LEFT,
		    "(pow2(n)-1)/pow2(n) + " LEFT, "0", "any n; torus and ring links" },
	  .parts = butterfly_parts,
	  .widest = all_widest,
	  .steps = all_steps,
	  .step = halving_step },
	{ .coll = HK_COLL_REDUCESCATTER,
	  .moves = HK_MOVES_XOR,
	  .info = { "recursive-halving", "halving", "halves with a partner half as far each time",
		    "flog2(n) + " DETOUR, LEFT " ? 1 : (n-1)/n", "(" DOUBLED " + " LEFT "*n)/n",
		    LEFT " ? 1 : n > 2 ? 1/2 : 0", "any n" },
	  .scratch = reducescatter_scratch,
	  .widest = all_widest,
	  .steps = all_steps,
	  .step = all_step },
	{ .coll = HK_COLL_ALLGATHER,
	  .moves = HK_MOVES_XOR,
	  .info = { "recursive-doubling", NULL, "all it has, with a partner twice as far each time",
		    "flog2(n) + " DETOUR, "(" DOUBLED " + " LEFT "*(n-1))/n", "0", "0", "any n" },
	  .widest = all_widest,
	  .steps = all_steps,
	  .step = all_step },
	{ .info = { .name = NULL } },
};
