/* SPDX-License-Identifier: Apache-2.0 */
/*
 * smooth_test.c - times without resonances: a little more to move does not take
 * less time, and a constant that slows an operation down when it grows does not
 * slow it down when it shrinks.
 */
#include "bed.h"

#include <string.h>

#define MIB 1048576.0
#define NEAR 1e-3 /* of a time: the last slices of sizes are cut differently */

static const struct {
	enum hk_coll coll;
	const char *algo;
} cases[] = {
	{ HK_COLL_ALLREDUCE, "two-level-halving" },
	{ HK_COLL_REDUCESCATTER, "two-level-halving" },
	{ HK_COLL_ALLGATHER, "two-level-doubling" },
};
#define NCASES (sizeof(cases) / sizeof(cases[0]))

/* Ends the test where a size takes less time than a smaller one. */
static void check_grows(const struct hk_fabric *fabric, const struct hk_plan *plan)
{
	double most = 0, most_mib = 0;

	for (double mib = 200; mib <= 300; mib += 2) {
		double ns = bed_run(fabric, plan, mib * MIB, NULL, NULL).time_ns;

		if (ns < most * (1 - NEAR))
			test_fail(__FILE__, __LINE__,
				  "%s: %.0f MiB take %.1f us, and %.0f MiB %.1f us",
				  plan->algo->info.name, most_mib, most / 1e3, mib, ns / 1e3);
		if (ns > most) {
			most = ns;
			most_mib = mib;
		}
	}
}

TEST(more_bytes_take_no_less_time)
{
	static const char *const specs[] = { "dgx-h100:16", "dgx-a100:8", "slingshot-a100:8" };

	for (size_t s = 0; s < sizeof(specs) / sizeof(specs[0]); s++) {
		struct hk_fabric *fabric = bed_fabric(specs[s]);

		for (size_t i = 0; i < NCASES; i++) {
			struct hk_plan *plan =
				bed_plan(fabric, cases[i].coll, cases[i].algo, fabric->ranks);

			check_grows(fabric, plan);
			hk_plan_free(plan);
		}
		hk_fabric_free(fabric);
	}
}

static double time_with(struct hk_fabric *fabric, const struct hk_plan *plan, const char *constant,
			double factor)
{
	struct hk_why why = { "" };
	char change[128];

	snprintf(change, sizeof(change), "%s=%.17gx", constant, factor);
	CHECK_EQ(hk_fabric_change(fabric, change, &why), HK_OK);
	double ns = bed_run(fabric, plan, 256 * MIB, NULL, NULL).time_ns;
	snprintf(change, sizeof(change), "%s=%.17gx", constant, 1 / factor);
	CHECK_EQ(hk_fabric_change(fabric, change, &why), HK_OK);
	return ns;
}

/* Ends the test where a tenth more and a tenth less of a constant both matter, in one direction. */
static void check_directions(struct hk_fabric *fabric, const struct hk_plan *plan)
{
	double base = bed_run(fabric, plan, 256 * MIB, NULL, NULL).time_ns;
	struct hk_fabric_constant constant = { .size = sizeof(constant) };

	for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++) {
		if (!(constant.value > 0) ||
		    (strcmp(constant.unit, "GB/s") != 0 && strcmp(constant.unit, "ns") != 0 &&
		     strcmp(constant.unit, "ns/B") != 0))
			continue;
		double more = time_with(fabric, plan, constant.name, 1.1) / base - 1;
		double less = time_with(fabric, plan, constant.name, 0.9) / base - 1;

		if ((more > NEAR && less > NEAR) || (more < -NEAR && less < -NEAR))
			test_fail(__FILE__, __LINE__,
				  "%s, %s: a tenth more %+.2f %%, a tenth less %+.2f %%",
				  plan->algo->info.name, constant.name, 100 * more, 100 * less);
	}
}

TEST(a_constant_has_one_direction)
{
	struct hk_fabric *fabric = bed_fabric("dgx-h100:16");

	for (size_t i = 0; i < NCASES; i++) {
		struct hk_plan *plan =
			bed_plan(fabric, cases[i].coll, cases[i].algo, fabric->ranks);

		check_directions(fabric, plan);
		hk_plan_free(plan);
	}
	hk_fabric_free(fabric);
}
