/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symmetry_test.c - what a plan claims to be symmetric under, it is: every step
 * of every rank is that of its image, for every element of the group.
 */
#include "harness.h"
#include "naive/each.h"
#include "plan/plan.h"

struct tally {
	uint32_t plans;
	uint32_t symmetric[3]; /* by kind of outer elements */
};

static bool ports_agree(const struct hk__symmetry *symmetry, struct hk__element element,
			const struct hk_port *port, const struct hk_port *image)
{
	if (port->rank == HK_NONE)
		return image->rank == HK_NONE;
	return port->lane == image->lane &&
	       hk__symmetry_apply(symmetry, element, port->rank) == image->rank;
}

static bool steps_agree(const struct hk__symmetry *symmetry, struct hk__element element,
			const struct hk_step *a, const struct hk_step *b)
{
	return a->op == b->op && a->count == b->count && a->after.lane == b->after.lane &&
	       a->after.step == b->after.step && a->src.buf == b->src.buf &&
	       a->dst.buf == b->dst.buf && ports_agree(symmetry, element, &a->from, &b->from) &&
	       ports_agree(symmetry, element, &a->to, &b->to);
}

/* Whether an element maps the steps of a rank onto those of its image. */
static bool rank_maps(const struct hk_plan *plan, const struct hk__symmetry *symmetry,
		      struct hk__element element, uint32_t rank)
{
	uint32_t image = hk__symmetry_apply(symmetry, element, rank);
	struct hk_step a, b;

	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
		uint32_t nsteps = hk_plan_steps(plan, rank, l);

		if (hk_plan_steps(plan, image, l) != nsteps)
			return false;
		for (uint32_t i = 0; i < nsteps; i++) {
			hk_plan_step(plan, rank, l, i, &a);
			hk_plan_step(plan, image, l, i, &b);
			if (!steps_agree(symmetry, element, &a, &b))
				return false;
		}
	}
	return true;
}

static void check_group(const struct hk_plan *plan, const struct hk__symmetry *symmetry)
{
	uint32_t units = plan->n / symmetry->unit;

	CHECK_EQ(plan->n % symmetry->unit, 0);
	CHECK_EQ(symmetry->unit % symmetry->node, 0);
	for (uint32_t u = 0; u < units; u++) {
		for (uint32_t turn = 0; turn < symmetry->node; turn++) {
			struct hk__element element = { u, turn };
			struct hk__element back = hk__symmetry_inverse(symmetry, element);

			for (uint32_t r = 0; r < plan->n; r++) {
				uint32_t image = hk__symmetry_apply(symmetry, element, r);

				CHECK_EQ(hk__symmetry_apply(symmetry, back, image), r);
				if (!rank_maps(plan, symmetry, element, r))
					test_fail(__FILE__, __LINE__,
						  "%s: moved by %u and turned by %u, rank %u is "
						  "not %u",
						  each_name(plan), u, turn, r, image);
			}
		}
	}
}

static void check_plan(const struct hk_plan *plan, void *ctx)
{
	struct tally *tally = ctx;

	tally->plans++;
	for (unsigned outer = HK__OUTER_SHIFT; outer <= HK__OUTER_XOR; outer++) {
		struct hk__symmetry symmetry;

		hk__plan_symmetry(plan, (enum hk__outer)outer, &symmetry);
		CHECK_EQ(symmetry.n, plan->n);
		if (symmetry.outer == HK__OUTER_NONE) {
			CHECK_EQ(symmetry.unit, plan->n);
			continue;
		}
		tally->symmetric[outer]++;
		check_group(plan, &symmetry);
	}
}

static void check_all(uint32_t n_max, enum hk_coll coll)
{
	struct each_opts opts = {
		.n_min = 1, .n_max = n_max, .roots = EACH_ROOT_ENDS, .batches = 2, .seed = 1
	};
	struct tally tally = { 0 };

	each_plan(coll, &opts, check_plan, &tally);
	printf("%s: %u plans, %u shift, %u by exclusive or\n", hk_coll_name(coll), tally.plans,
	       tally.symmetric[HK__OUTER_SHIFT], tally.symmetric[HK__OUTER_XOR]);
	CHECK(hk__coll_rooted(coll) || tally.symmetric[HK__OUTER_SHIFT] > 0);
}

TEST(allreduce)
{
	check_all(32, HK_COLL_ALLREDUCE);
}
TEST(allgather)
{
	check_all(32, HK_COLL_ALLGATHER);
}
TEST(reducescatter)
{
	check_all(32, HK_COLL_REDUCESCATTER);
}
TEST(alltoall)
{
	check_all(32, HK_COLL_ALLTOALL);
}
TEST(barrier)
{
	check_all(32, HK_COLL_BARRIER);
}
TEST(sendrecv)
{
	check_all(32, HK_COLL_SENDRECV);
}

static struct hk__symmetry by_xor(uint32_t n, uint32_t nodes)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk__symmetry symmetry;
	struct hk_plan *plan;

	opts.algo = "two-level-halving";
	opts.nodes = nodes;
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, n, &opts, NULL, &plan), HK_OK);
	hk__plan_symmetry(plan, HK__OUTER_XOR, &symmetry);
	hk_plan_free(plan);
	return symmetry;
}

/* Of very many ranks all are alike; nodes that are left over are not. */
TEST(rails)
{
	struct hk__symmetry many = by_xor(131072, 16384), left = by_xor(96, 12);

	CHECK_EQ(many.outer, HK__OUTER_XOR);
	CHECK_EQ(many.unit, 8);
	CHECK(many.inner);
	CHECK_EQ(many.node, 8);
	CHECK_EQ(left.outer, HK__OUTER_NONE);
	CHECK_EQ(left.unit, 96);
}

/* The test can fail: a group that a plan has not is found out. */
TEST(false_claim)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk__symmetry shift = { 8, HK__OUTER_SHIFT, 1, 1, false };
	struct hk_plan *plan;

	opts.algo = "one-shot";
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 8, &opts, NULL, &plan), HK_OK);
	CHECK(!rank_maps(plan, &shift, (struct hk__element){ 1, 0 }, 0));
	hk_plan_free(plan);
}
