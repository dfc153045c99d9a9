/* SPDX-License-Identifier: Apache-2.0 */
/* bed.h - a fabric, a plan and a run of it, for tests of the simulator. */
#ifndef HK_TEST_SIM_BED_H
#define HK_TEST_SIM_BED_H

#include "harness.h"
#include "sim/sim.h"

struct hk_fabric *bed_fabric(const char *spec);
/* nodes 0: as the fabric has them for n ranks, where the algorithm takes any. */
struct hk_plan *bed_plan(const struct hk_fabric *fabric, enum hk_coll coll, const char *algo,
			 uint32_t n);

/* Runs it; a failure ends the test. Times below the bound end it too. */
struct hk_sim_result bed_run(const struct hk_fabric *fabric, const struct hk_plan *plan,
			     double bytes, const struct hk_sim_opts *opts,
			     const struct sim_tuning *tuning);

/* By name; full or as it is. */
struct hk_sim_result bed_time(const char *spec, enum hk_coll coll, const char *algo, double bytes,
			      bool full);

/* |a - b| / b <= near, or the test ends and says what was compared. */
void bed_near(const char *what, double a, double b, double near);

/* An allocator that fails at the n-th request, and counts what is not given back. */
struct bed_alloc {
	struct hk_alloc alloc;
	uint64_t fail_at;	/* 0: never */
	uint64_t asked;
	int64_t held;
};
void bed_alloc_init(struct bed_alloc *alloc, uint64_t fail_at);

#endif
