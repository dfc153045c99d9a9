/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - hk_sim_run: arguments, samples, and what is said of them. */
#include "sim/sim.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLES 16u
#define SIM_CALLS_MAX 1024u

/* ---- arguments ---- */

static enum hk_status job_check(struct sim *sim, const struct hk_sim_job *job, uint32_t j)
{
	if (!job->plan)
		return hk__sim_fail(sim, HK_EINVAL, "job %u has no plan", j);
	if (!(job->bytes >= 0 && job->bytes < 1e18))
		return hk__sim_fail(sim, HK_EINVAL, "job %u: %g bytes is not a valid size", j,
				    job->bytes);
	if (!(job->start_ns >= 0 && job->start_ns < 1e18))
		return hk__sim_fail(sim, HK_EINVAL, "job %u cannot begin at %g ns", j,
				    job->start_ns);
	if (!job->devices && job->plan->n > sim->fabric->ranks)
		return hk__sim_fail(sim, HK_EINVAL,
				    "a plan of %u ranks, but %s has %u devices; take fewer ranks",
				    job->plan->n, sim->fabric->name, sim->fabric->ranks);
	for (uint32_t r = 0; job->devices && r < job->plan->n; r++)
		if (job->devices[r] >= sim->fabric->ranks)
			return hk__sim_fail(sim, HK_EINVAL,
					    "rank %u is placed on device %u, but %s has %u", r,
					    job->devices[r], sim->fabric->name, sim->fabric->ranks);
	return HK_OK;
}

static enum hk_status jobs_make(struct sim *sim, const struct hk_sim_job *jobs, uint32_t njobs)
{
	if (njobs == 0)
		return hk__sim_fail(sim, HK_EINVAL, "there is nothing to simulate: no job");
	sim->jobs = hk__mem_zalloc(sim->alloc, njobs, sizeof(*sim->jobs));
	if (!sim->jobs)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory for %u jobs", njobs);
	sim->njobs = njobs;
	for (uint32_t j = 0; j < njobs; j++) {
		if (job_check(sim, &jobs[j], j) != HK_OK)
			return sim->status;
		double chunk = jobs[j].bytes / hk__plan_chunks(jobs[j].plan);
		uint32_t nslices = hk__sim_slices(sim, jobs[j].plan, chunk, jobs[j].devices);

		sim->jobs[j] = (struct sim_job){ .plan = jobs[j].plan,
						 .devices = jobs[j].devices,
						 .bytes = jobs[j].bytes,
						 .chunk = chunk / nslices,
						 .nslices = nslices * sim->opts->calls,
						 .call_slices = nslices,
						 .start_ns = jobs[j].start_ns };
	}
	return HK_OK;
}

/* ---- what comes out ---- */

static double bus_factor(const struct hk_plan *plan)
{
	double others = (plan->n - 1.0) / plan->n;

	switch (plan->coll) {
	case HK_COLL_ALLREDUCE:
		return 2 * others;
	case HK_COLL_ALLGATHER:
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_ALLTOALL:
	case HK_COLL_GATHER:
	case HK_COLL_SCATTER:
		return others;
	case HK_COLL_BROADCAST:
	case HK_COLL_REDUCE:
	case HK_COLL_BARRIER:
	case HK_COLL_SENDRECV:
	case HK_COLL_COUNT:
		break;
	}
	return 1;
}

/* The busiest link; else what lanes did; else what was waited for. */
static void say_bottleneck(const struct sim *sim, struct hk_sim_result *result)
{
	const struct flow_link *busiest = NULL;
	double steps = 0, time = sim->end_ns > 0 ? sim->end_ns : 1;
	bool shared = hk__fabric_cores_shared(sim->fabric);

	for (uint32_t i = 0; i < sim->flows.links.count; i++) {
		const struct flow_link *link = flow_link_at(&sim->flows, i);

		if (!busiest || link->busy_ns > busiest->busy_ns)
			busiest = link;
	}
	for (uint32_t l = 0; l < sim->nlanes; l++)
		steps = fmax(steps, sim->lanes[l].busy_ns / time);
	for (uint32_t i = 0; shared && i < sim->ncores; i++)
		steps = fmax(steps, sim->cores[i].busy_ns / time);
	result->busy = busiest ? fmin(busiest->busy_ns / time, 1) : 0;
	double waits = fmax(1 - result->busy - steps, 0);
	if (busiest && result->busy >= fmax(steps, waits))
		snprintf(result->bottleneck, sizeof(result->bottleneck), "%s, %.0f %% busy",
			 hk__fabric_kind(sim->fabric, busiest->link)->name, 100 * result->busy);
	else
		snprintf(result->bottleneck, sizeof(result->bottleneck), "%s",
			 steps < waits ? "delays"
			 : shared      ? "cores that ranks share"
				       : "steps of ranks");
}

static void say_counts(const struct sim *sim, struct hk_sim_result *result)
{
	result->simulated = sim->counts.sent;
	result->messages = (uint64_t)llround((double)sim->counts.sent * sim->fold.copies);
	result->classes = sim->fold.copies > 1 ? sim->fold.classes : sim->jobs[0].plan->n;
	result->folded = sim->fold.copies > 1;
	result->smeared = sim->fold.smeared;
}

static void say_bounds(const struct sim *sim, struct hk_sim_result *result)
{
	for (uint32_t j = 0; j < sim->njobs; j++) {
		struct sim_bound bound;
		double start = sim->jobs[j].start_ns;

		hk__sim_bound(sim, &sim->jobs[j], &bound);
		result->bound_bytes_ns = fmax(result->bound_bytes_ns, start + bound.bytes_ns);
		result->bound_delay_ns = fmax(result->bound_delay_ns, start + bound.delay_ns);
	}
	/* Where a root runs ahead, calls overlap, and delays are not waited for. */
	if (sim->opts->calls > 1 && hk__coll_rooted(sim->jobs[0].plan->coll))
		result->bound_delay_ns = 0;
	result->bound_ns = fmax(result->bound_bytes_ns, result->bound_delay_ns);
}

int hk__sim_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void say_times(const struct sim *sim, double *times, uint32_t samples,
		      struct hk_sim_result *result)
{
	double sum = 0;

	qsort(times, samples, sizeof(*times), hk__sim_by_value);
	for (uint32_t i = 0; i < samples; i++)
		sum += times[i];
	result->time_ns = samples == 1 ? times[0] : sum / samples;
	result->p95_ns = times[(uint32_t)(0.95 * (samples - 1) + 0.5)];
	if (result->time_ns > 0) {
		result->algbw = sim->jobs[0].bytes / result->time_ns;
		result->busbw = result->algbw * bus_factor(sim->jobs[0].plan);
	}
}

/* ---- running ---- */

/* Whether runs differ by chance. */
static bool sim_varies(const struct sim *sim)
{
	bool hashes = false;

	for (uint32_t i = 0; i < sim->fabric->nkinds; i++) {
		const struct hk__link_kind *kind = &sim->fabric->kinds[i];

		hashes = hashes || (kind->width > 1 && kind->routing == HK__ROUTE_HASH);
	}
	return hashes || sim->random || sim->opts->jitter > 0;
}

/* Of one call: alone, or among others when all is under way. */
static double time_of_call(const struct sim *sim)
{
	uint32_t calls = sim->opts->calls;

	return calls > 1 ? (sim->end_ns - sim->first_ns) / (calls - 1) : sim->end_ns;
}

static enum hk_status sim_samples(struct sim *sim, struct hk_sim_result *result)
{
	uint32_t samples = 1, wanted = sim->opts->samples ? sim->opts->samples : SAMPLES;

	if (sim_varies(sim))
		samples = wanted;
	double *times = hk__mem_zalloc(sim->alloc, samples, sizeof(*times));
	if (!times)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory for %u samples", samples);
	for (uint32_t i = 0; i < samples && sim->status == HK_OK; i++) {
		sim->seed = sim->opts->seed + i;
		if (hk__sim_open(sim) == HK_OK && hk__sim_perform(sim) == HK_OK) {
			times[i] = time_of_call(sim);
			say_bottleneck(sim, result);
			say_counts(sim, result);
		}
		hk__sim_close(sim);
	}
	if (sim->status == HK_OK) {
		say_times(sim, times, samples, result);
		say_bounds(sim, result);
	}
	hk__mem_free(sim->alloc, times, samples, sizeof(*times));
	return sim->status;
}

enum hk_status hk__sim_run(const struct hk_fabric *fabric, const struct hk_sim_job *jobs,
			   uint32_t njobs, const struct hk_sim_opts *given,
			   const struct sim_tuning *tuning, struct hk_why *why,
			   struct hk_sim_result *result_out)
{
	struct hk_sim_opts opts;
	struct hk_sim_result result = { .size = sizeof(result) };
	struct sim sim = { .fabric = fabric, .opts = &opts, .why = why };

	if (hk__opts_copy(&opts, sizeof(opts), given) != HK_OK)
		return hk__why(why, HK_EINVAL, "options of an unknown version");
	if (!(opts.jitter >= 0 && opts.jitter < 1e6) || !(opts.slice_bytes >= 0))
		return hk__why(why, HK_EINVAL, "jitter and slices cannot be below 0");
	if (opts.calls > SIM_CALLS_MAX)
		return hk__why(why, HK_EINVAL, "%u calls in a row: at most %u", opts.calls,
			       SIM_CALLS_MAX);
	opts.calls = opts.calls ? opts.calls : 1;
	sim.alloc = opts.alloc ? opts.alloc : &hk__alloc_default;
	sim.faults = opts.faults;
	sim.nfaults = opts.faults ? opts.nfaults : 0;
	if (tuning)
		sim.tuning = *tuning;
	hk__array_init(&sim.link_faults, sim.alloc, sizeof(struct sim_link_fault));
	if (jobs_make(&sim, jobs, njobs) == HK_OK && hk__sim_faults(&sim) == HK_OK) {
		hk__sim_fold(&sim);
		sim_samples(&sim, &result);
	}
	hk__array_fini(&sim.link_faults);
	hk__mem_free(sim.alloc, sim.jobs, sim.njobs, sizeof(*sim.jobs));
	if (sim.status == HK_OK && hk__result_copy(result_out, &result, sizeof(result)) != HK_OK)
		return hk__why(why, HK_EINVAL, "the size of a struct hk_sim_result was not set");
	return sim.status;
}

enum hk_status hk_sim_run(const struct hk_fabric *fabric, const struct hk_sim_job *jobs,
			  uint32_t njobs, const struct hk_sim_opts *opts, struct hk_why *why,
			  struct hk_sim_result *result_out)
{
	return hk__sim_run(fabric, jobs, njobs, opts, NULL, why, result_out);
}
