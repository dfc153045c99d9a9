/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.c - which ranks are alike, so that one of each is enough.
 *
 * What plans and fabric have in common is exact. Where that leaves too many
 * ranks (a ring does not end at the borders of pods), smaller units are taken as
 * alike although the fabric's upper tiers tell them apart; route.c averages over
 * what differs, and the result says so.
 */
#include "sim/sim.h"

#include <math.h>

#define FOLD_BUDGET 2e7 /* work above which less is simulated exactly */

uint32_t hk__fold_rank(const struct sim_fold *fold, uint32_t class_of)
{
	return fold->symmetry.inner ? class_of * fold->symmetry.node : class_of;
}

uint32_t hk__fold_class(const struct sim_fold *fold, uint32_t rank)
{
	uint32_t at = rank % fold->symmetry.unit;

	return fold->symmetry.inner ? at / fold->symmetry.node : at;
}

void hk__fold_normalise(const struct sim_fold *fold, uint32_t from, uint32_t to,
			uint32_t *class_out, uint32_t *from_out)
{
	*class_out = hk__fold_class(fold, to);
	if (fold->copies == 1) {
		*from_out = from;
		return;
	}
	struct hk__element back =
		hk__symmetry_inverse(&fold->symmetry, hk__symmetry_of(&fold->symmetry, to));
	*from_out = hk__symmetry_apply(&fold->symmetry, back, from);
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static uint64_t lcm(uint32_t a, uint32_t b)
{
	hk_assert(a > 0 && b > 0);
	return (uint64_t)a / gcd(a, b) * b;
}

/* What two groups have in common. */
static void symmetry_join(struct hk__symmetry *a, const struct hk__symmetry *b)
{
	uint64_t unit = lcm(a->unit, b->unit);

	if (a->outer != b->outer || a->outer == HK__OUTER_NONE || unit > a->n || a->n % unit)
		unit = a->n;
	a->inner = a->inner && b->inner && a->node == b->node;
	a->node = a->inner ? a->node : 1;
	a->unit = (uint32_t)unit;
	if (a->unit == a->n)
		a->outer = HK__OUTER_NONE;
}

static void fold_set(struct sim_fold *fold, const struct hk__symmetry *symmetry, bool smeared)
{
	fold->symmetry = *symmetry;
	fold->classes = symmetry->unit / symmetry->node;
	fold->copies = (double)symmetry->n / fold->classes;
	fold->smeared = smeared;
}

/* Whether all jobs are on the same ranks, each on its own device, and nothing is amiss. */
static bool fold_may(const struct sim *sim)
{
	for (uint32_t j = 0; j < sim->njobs; j++)
		if (sim->jobs[j].devices || sim->jobs[j].plan->n != sim->jobs[0].plan->n)
			return false;
	return !sim->opts->full && sim->nfaults == 0 && sim->opts->jitter == 0 &&
	       !hk__fabric_cores_shared(sim->fabric);
}

/* The symmetry of all plans. */
static void plans_symmetry(const struct sim *sim, enum hk__outer outer,
			   struct hk__symmetry *symmetry_out)
{
	hk__plan_symmetry(sim->jobs[0].plan, outer, symmetry_out);
	for (uint32_t j = 1; j < sim->njobs; j++) {
		struct hk__symmetry other;

		hk__plan_symmetry(sim->jobs[j].plan, outer, &other);
		symmetry_join(symmetry_out, &other);
	}
}

/* The smallest units that plans allow and that the fabric allows as well. */
static void fold_exact(const struct sim *sim, const struct hk__symmetry *plans,
		       struct hk__symmetry *symmetry_out)
{
	struct hk__symmetry fabric, both = *plans, turning;

	hk__fabric_symmetry(sim->fabric, plans->n, plans->outer, &fabric);
	/* A fabric that turns its nodes only may still do so. */
	turning = *plans;
	if (fabric.outer == HK__OUTER_NONE)
		fabric.unit = fabric.n;
	symmetry_join(&both, &fabric);
	turning.unit = both.unit;
	turning.outer = both.outer;
	if (turning.inner && hk__fabric_allows(sim->fabric, &turning))
		both = turning;
	if (both.outer != HK__OUTER_NONE && !hk__fabric_allows(sim->fabric, &both))
		both = (struct hk__symmetry){ .n = plans->n, .unit = plans->n, .node = 1 };
	*symmetry_out = both;
}

/*
 * Work, in messages: of lanes that mostly send to many without waiting, all are on
 * their way at once and each change of rates looks at all of them.
 */
static double fold_work(const struct sim *sim, double classes)
{
	double work = 0;

	for (uint32_t j = 0; j < sim->njobs; j++) {
		const struct hk_plan *plan = sim->jobs[j].plan;

		for (uint32_t l = 0; l < hk_plan_lanes(plan, 0); l++) {
			uint32_t nsteps = hk_plan_steps(plan, 0, l), run = 0;
			struct hk_step step;

			while (run < nsteps && run < 64) {
				hk_plan_step(plan, 0, l, run, &step);
				if (step.op != HK_OP_SEND)
					break;
				run++;
			}
			double each = run < 64 ? 1 : 1 + classes / 4;
			work += each * classes * nsteps * sim->jobs[j].nslices;
		}
	}
	return work;
}

/* Units of the fabric between what plans allow and what is exact, the largest first. */
static bool fold_coarser(const struct sim *sim, const struct hk__symmetry *plans,
			 struct hk__symmetry *symmetry)
{
	uint32_t best = 0;

	for (uint32_t i = 0; i < sim->fabric->nkinds + 1; i++) {
		uint32_t ranks = i < sim->fabric->nkinds ? sim->fabric->kinds[i].owner_ranks
							 : sim->fabric->node_kinds[0].ranks;
		uint64_t unit = ranks ? lcm(plans->unit, ranks) : 0;

		/* Never through a node: inside, other wires are used. */
		if (unit == 0 || unit >= symmetry->unit || unit <= best || plans->n % unit ||
		    unit % sim->fabric->node_kinds[0].ranks)
			continue;
		best = (uint32_t)unit;
	}
	if (best == 0)
		return false;
	*symmetry = (struct hk__symmetry){ .n = plans->n,
					   .outer = plans->outer,
					   .unit = best,
					   .node = plans->node,
					   .inner = plans->inner };
	struct hk__symmetry turns = {
		.n = plans->n, .unit = plans->n, .node = plans->node, .inner = plans->inner
	};
	if (plans->inner && !hk__fabric_allows(sim->fabric, &turns)) {
		symmetry->inner = false;
		symmetry->node = 1;
	}
	return true;
}

void hk__sim_fold(struct sim *sim)
{
	struct hk__symmetry plans, exact, found;
	double budget = sim->tuning.budget > 0 ? sim->tuning.budget : FOLD_BUDGET;
	uint32_t n = sim->jobs[0].plan->n;

	found = (struct hk__symmetry){ .n = n, .unit = n, .node = 1 };
	fold_set(&sim->fold, &found, false);
	if (!fold_may(sim))
		return;
	plans_symmetry(sim, HK__OUTER_SHIFT, &plans);
	if (plans.outer == HK__OUTER_NONE)
		plans_symmetry(sim, HK__OUTER_XOR, &plans);
	if (plans.outer == HK__OUTER_NONE)
		return;
	fold_exact(sim, &plans, &exact);
	found = exact;
	while (fold_work(sim, (double)found.unit / found.node) > budget ||
	       (sim->tuning.unit && found.unit > sim->tuning.unit))
		if (sim->fabric->nnode_kinds != 1 || !fold_coarser(sim, &plans, &found))
			break;
	fold_set(&sim->fold, &found, found.unit != exact.unit);
}
