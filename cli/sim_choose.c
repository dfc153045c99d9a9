/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_choose.c - simulates an algorithm that is named, or the one that the
 * library finds fastest (hk_sim_candidates), with all that goes on besides.
 */
#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 1000000u /* of an algorithm that is not named; more takes many seconds */
#define PROGRESS_AFTER 2.0 /* seconds */

/* ---- progress ---- */

static void progress(struct sim_run *run, double done)
{
	double now = cli_now_s();

	if (!run->tty || now - run->started < PROGRESS_AFTER || now - run->shown < 0.1)
		return;
	run->shown = now;
	fprintf(stderr, "\r\033[K%s, %llu bytes, %.0f %%, %.0f s", run->now,
		(unsigned long long)run->now_bytes, 100 * done, now - run->started);
	fflush(stderr);
}

void sim_progress_end(struct sim_run *run)
{
	if (run->shown > 0)
		fputs("\r\033[K", stderr);
	run->shown = 0;
}

/* ---- candidates ---- */

static bool candidate_add(struct sim_job *job, struct hk_plan *plan, const char *algo)
{
	if (job->ncandidates == SIM_ALGOS_MAX) {
		hk_plan_free(plan);
		return false;
	}
	job->candidates[job->ncandidates++] = (struct sim_candidate){ .algo = algo, .plan = plan };
	return true;
}

/* The nodes of the fabric, for an algorithm that has nodes; false: they are of no use to it. */
static bool candidate_nodes(const struct sim_run *run, const struct hk_algo_info *algo, bool first,
			    struct hk_plan_opts *opts)
{
	if (!algo->nodes)
		return true;
	if (first && run->args->has_nodes) {
		opts->nodes = run->args->nodes;
		opts->node_sizes = run->args->node_sizes;
		return true;
	}
	opts->nodes = run->nodes;
	opts->node_sizes = run->node_sizes;
	if (run->node_sizes && !algo->uneven)
		return false;
	/* By name it is taken at its word: hk_plan_create() has nodes of its own. */
	if (run->nodes < 2 || run->nodes >= run->n) {
		opts->nodes = 0;
		opts->node_sizes = NULL;
		return first && run->args->algo;
	}
	return true;
}

static bool candidates_none(const struct sim_run *run, const struct sim_job *job,
			    const struct hk_why *why)
{
	if (why->text[0])
		cli_wrong("sim", "%s", why->text);
	else if (run->args->algo)
		cli_wrong("sim", "%s %s does not fit %u ranks on these nodes; see --nodes",
			  hk_coll_name(job->coll), run->args->algo, run->n);
	else
		cli_wrong("sim", "no algorithm of %s fits %u ranks", hk_coll_name(job->coll),
			  run->n);
	return false;
}

bool sim_candidates_make(struct sim_run *run, struct sim_job *job, bool first)
{
	const struct cli_args *args = run->args;
	struct hk_algo_info algo = { .size = sizeof(algo) }, named = { .size = sizeof(named) };
	struct hk_why why = { "" };
	bool by_name = first && args->algo;

	if (by_name && hk_algo_find(job->coll, args->algo, &named) != HK_OK) {
		cli_wrong("sim", "%s has no algorithm '%s'; see 'hocket list %s'",
			  hk_coll_name(job->coll), args->algo, hk_coll_name(job->coll));
		return false;
	}
	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
		struct hk_plan *plan;

		/* What groups do not perform is simulated if it is asked for. */
		if (algo.coll != job->coll ||
		    (by_name ? strcmp(algo.name, named.name) != 0 : algo.onesided))
			continue;
		if (!candidate_nodes(run, &algo, first, &opts))
			continue;
		opts.algo = algo.name;
		if (first && algo.rooted)
			opts.root = args->root;
		if (first && algo.coll == HK_COLL_SENDRECV && args->npairs) {
			opts.msgs = args->pairs;
			opts.nmsgs = args->npairs;
		}
		if (hk_plan_create(job->coll, run->n, &opts, &why, &plan) == HK_OK &&
		    !candidate_add(job, plan, algo.name))
			break;
	}
	return job->ncandidates ? true : candidates_none(run, job, &why);
}

void sim_candidates_free(struct sim_job *job)
{
	for (uint32_t i = 0; i < job->ncandidates; i++)
		hk_plan_free(job->candidates[i].plan);
	job->ncandidates = 0;
}

/* ---- simulating ---- */

struct progress_ctx {
	struct sim_run *run;
	void *ctx;
	void (*event)(void *ctx, const struct hk_sim_event *event);
};

static void on_progress(void *ctx, double done)
{
	progress(((struct progress_ctx *)ctx)->run, done);
}

static void on_event(void *ctx, const struct hk_sim_event *event)
{
	struct progress_ctx *on = ctx;

	on->event(on->ctx, event);
}

static struct hk_sim_opts opts_make(struct progress_ctx *on)
{
	const struct sim_run *run = on->run;
	const struct cli_sim_args *sim = &run->args->sim;
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;

	opts.full = sim->full;
	if (sim->has_seed)
		opts.seed = sim->seed;
	opts.samples = sim->samples;
	opts.jitter = sim->jitter;
	opts.faults = run->nfaults ? run->plain : NULL;
	opts.nfaults = run->nfaults;
	opts.slice_bytes = (double)sim->slice;
	opts.progress = on_progress;
	opts.event = on->event ? on_event : NULL;
	opts.ctx = on;
	return opts;
}

enum hk_status sim_run_plan(struct sim_run *run, const struct hk_fabric *fabric,
			    const struct hk_plan *plan, uint64_t bytes,
			    const struct sim_events *events, struct hk_why *why,
			    struct hk_sim_result *result_out)
{
	struct progress_ctx on = { run, NULL, NULL };
	struct hk_sim_job jobs[SIM_JOBS_MAX];

	if (events) {
		on.ctx = events->ctx;
		on.event = events->event;
	}
	jobs[0] = (struct hk_sim_job){ .plan = plan, .bytes = (double)bytes };
	for (uint32_t j = 1; j < run->njobs; j++) {
		const struct sim_job *job = &run->jobs[j];

		jobs[j] = (struct hk_sim_job){ .plan = job->candidates[job->chosen].plan,
					       .bytes = job->bytes };
	}
	struct hk_sim_opts opts = opts_make(&on);
	run->now_bytes = bytes;
	result_out->size = sizeof(*result_out);
	return hk_sim_run(fabric, jobs, run->njobs, &opts, why, result_out);
}

/* ---- choosing ---- */

static int choose_failed(struct sim_run *run, enum hk_status status, const char *algo,
			 const struct hk_why *why)
{
	sim_progress_end(run);
	cli_wrong("sim", "%s: %s", algo, why->text[0] ? why->text : hk_status_text(status));
	return status == HK_EREFUSED ? CLI_REFUSED : CLI_WRONG;
}

static void job_take(struct sim_job *job, const struct hk_sim_candidate *found, uint32_t count)
{
	uint32_t first = 0;

	while (first < count && !found[first].simulated)
		first++;
	double best = first < count ? found[first].result.time_ns : INFINITY;
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < job->ncandidates; k++) {
			struct sim_candidate *candidate = &job->candidates[k];

			if (strcmp(candidate->algo, found[i].algo) != 0)
				continue;
			/* The first has the best estimate, where no time is known. */
			if (i == (first < count ? first : 0))
				job->chosen = k;
			/* It might have won: somebody should know. */
			if (!found[i].simulated && found[i].estimate_ns < best)
				candidate->left_out = true;
		}
	}
}

/* The fastest candidate of a job by itself becomes the chosen one. */
static int job_choose(struct sim_run *run, struct sim_job *job, const struct hk_fabric *fabric,
		      double bytes)
{
	struct progress_ctx on = { run, NULL, NULL };
	struct hk_sim_candidate found[HK_SIM_CANDIDATES_MAX];
	struct hk_sim_choice what = {
		.coll = job->coll, .ranks = run->n, .root = run->args->root, .bytes = bytes
	};
	struct hk_sim_opts opts = opts_make(&on);
	struct hk_why why = { "" };
	uint32_t count;

	if (job->ncandidates == 1)
		return CLI_DONE;
	opts.messages_max = STEPS_MAX;
	run->now = "choosing";
	run->now_bytes = (uint64_t)bytes;
	found[0].size = sizeof(found[0]);
	enum hk_status status = hk_sim_candidates(fabric, &what, &opts, &why, found, &count);
	sim_progress_end(run);
	if (status != HK_OK)
		return choose_failed(run, status, hk_coll_name(job->coll), &why);
	job_take(job, found, count);
	return CLI_DONE;
}

int sim_choose(struct sim_run *run, const struct hk_fabric *fabric, uint64_t bytes,
	       struct sim_row *row_out)
{
	struct sim_job *job = &run->jobs[0];
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_why why = { "" };
	int chosen = job_choose(run, job, fabric, (double)bytes);

	if (chosen != CLI_DONE)
		return chosen;
	const struct sim_candidate *candidate = &job->candidates[job->chosen];
	run->now = candidate->algo;
	enum hk_status status =
		sim_run_plan(run, fabric, candidate->plan, bytes, NULL, &why, &result);
	sim_progress_end(run);
	if (status != HK_OK)
		return choose_failed(run, status, candidate->algo, &why);
	*row_out = (struct sim_row){ .bytes = bytes, .plan = candidate->plan, .result = result };
	snprintf(row_out->algo, sizeof(row_out->algo), "%s", candidate->algo);
	return CLI_DONE;
}

int sim_choose_also(struct sim_run *run, struct sim_job *job)
{
	return job_choose(run, job, run->fabric, job->bytes);
}

/* ---- as NCCL would ---- */

int sim_as_nccl(struct sim_run *run, const struct hk_fabric *fabric, uint64_t bytes,
		struct sim_row *row_out)
{
	struct hk_sim_nccl_call call = {
		.coll = run->jobs[0].coll, .n = run->n, .bytes = (double)bytes, .type = HK_TYPE_FP32
	};
	struct hk_sim_nccl_result nccl = { .size = sizeof(nccl) };
	struct hk_why why = { "" };

	if (hk_sim_nccl(fabric, &call, &why, &nccl) != HK_OK)
		return cli_wrong("sim", "%s", why.text);
	*row_out =
		(struct sim_row){ .bytes = bytes, .as_nccl = true, .nccl_us = nccl.nccl_ns / 1e3 };
	snprintf(row_out->algo, sizeof(row_out->algo), "%s/%s/%u", nccl.algo, nccl.proto,
		 nccl.channels);
	row_out->result.time_ns = row_out->result.p95_ns = nccl.time_ns;
	row_out->result.bound_ns = nccl.bound_ns;
	row_out->result.algbw = nccl.algbw;
	row_out->result.busbw = nccl.busbw;
	snprintf(row_out->result.bottleneck, sizeof(row_out->result.bottleneck), "%s",
		 nccl.bottleneck);
	return CLI_DONE;
}
