/* SPDX-License-Identifier: Apache-2.0 */
/* bed.c - a fabric, a plan and a run of it, for tests of the simulator. */
#include "bed.h"

#include <math.h>

struct hk_fabric *bed_fabric(const char *spec)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;

	if (hk_fabric_create(spec, NULL, &why, &fabric) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", spec, why.text);
	return fabric;
}

struct hk_plan *bed_plan(const struct hk_fabric *fabric, enum hk_coll coll, const char *algo,
			 uint32_t n)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_algo_info info = { .size = sizeof(info) };
	struct hk_fabric_info about = { .size = sizeof(about) };
	struct hk_why why = { "" };
	struct hk_plan *plan;

	hk_fabric_describe(fabric, &about);
	CHECK_EQ(hk_algo_find(coll, algo, &info), HK_OK);
	opts.algo = algo;
	if (info.nodes && about.node_ranks && n % about.node_ranks == 0)
		opts.nodes = n / about.node_ranks;
	if (hk_plan_create(coll, n, &opts, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return plan;
}

struct hk_sim_result bed_run(const struct hk_fabric *fabric, const struct hk_plan *plan,
			     double bytes, const struct hk_sim_opts *opts,
			     const struct sim_tuning *tuning)
{
	struct hk_sim_opts plain = HK_SIM_OPTS_INIT;
	struct hk_sim_job job = { .plan = plan, .bytes = bytes };
	struct hk_why why = { "" };
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	if (hk__sim_run(fabric, &job, 1, opts ? opts : &plain, tuning, &why, &result) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s on %s, %g bytes: %s", info.algo, fabric->name,
			  bytes, why.text);
	if (result.time_ns < result.bound_ns * (1 - 1e-9))
		test_fail(__FILE__, __LINE__,
			  "%s %s on %s, n=%u, %g bytes: %.17g ns is below the bound, %.17g",
			  hk_coll_name(info.coll), info.algo, fabric->name, info.nranks, bytes,
			  result.time_ns, result.bound_ns);
	return result;
}

struct hk_sim_result bed_time(const char *spec, enum hk_coll coll, const char *algo, double bytes,
			      bool full)
{
	struct hk_fabric *fabric = bed_fabric(spec);
	struct hk_plan *plan = bed_plan(fabric, coll, algo, fabric->ranks);
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;

	opts.full = full;
	struct hk_sim_result result = bed_run(fabric, plan, bytes, &opts, NULL);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
	return result;
}

void bed_near(const char *what, double a, double b, double near)
{
	if (!(fabs(a - b) <= near * fabs(b)))
		test_fail(__FILE__, __LINE__, "%s: %.12g is not %.12g within %g", what, a, b, near);
}

static void *alloc_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct bed_alloc *alloc = ctx;

	if (size_new && ++alloc->asked == alloc->fail_at)
		return NULL;
	alloc->held += (int64_t)size_new - (int64_t)(ptr ? size_old : 0);
	if (size_new == 0) {
		free(ptr);
		return NULL;
	}
	return realloc(ptr, size_new);
}

void bed_alloc_init(struct bed_alloc *alloc, uint64_t fail_at)
{
	*alloc = (struct bed_alloc){ .alloc = { alloc_resize, alloc }, .fail_at = fail_at };
}
