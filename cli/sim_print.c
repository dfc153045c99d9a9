/* SPDX-License-Identifier: Apache-2.0 */
/* sim_print.c - what was simulated, as a table or as one JSON document. */
#include "sim.h"

#include <inttypes.h>
#include <math.h>

static const char *true_false(bool yes)
{
	return yes ? "true" : "false";
}

/* Three digits are enough, and more is not known. */
static void print_us(double ns, int width)
{
	double us = ns / 1e3;

	printf("%*.*f", width, us < 10 ? 2 : us < 1000 ? 1 : 0, us);
}

static bool row_is_random(const struct sim_row *row)
{
	return fabs(row->result.p95_ns - row->result.time_ns) > 1e-9 * row->result.time_ns;
}

static double row_of_bound(const struct sim_row *row)
{
	return row->result.time_ns > 0 ? row->result.bound_ns / row->result.time_ns : 1;
}

/* ---- the head ---- */

static void table_begin(const struct sim_run *run)
{
	const struct cli_sim_args *sim = &run->args->sim;

	printf("# %s: %s\n", run->info.name, run->info.about);
	printf("# %s, %u ranks", hk_coll_name(run->jobs[0].coll), run->n);
	if (run->nodes)
		printf(" on %u node%s", run->nodes, run->nodes == 1 ? "" : "s");
	printf(", as %s\n", sim->as ? sim->as : "hocket");
	for (uint32_t j = 1; j < run->njobs; j++)
		printf("# at the same time: %s of %.0f bytes, %s\n",
		       hk_coll_name(run->jobs[j].coll), run->jobs[j].bytes,
		       run->jobs[j].candidates[run->jobs[j].chosen].algo);
	for (size_t i = 0; i < sim->nfaults; i++)
		printf("# fault: %s\n", sim->faults[i]);
	if (sim->what_if) {
		printf("# what if: %s\n", sim->what_if);
		printf("%12s  %-22s %10s  %-22s %10s %8s  %s\n", "size", "algorithm", "time",
		       "algorithm, changed", "time", "faster", "bottleneck, changed");
		printf("%12s  %-22s %10s  %-22s %10s %8s\n", "(B)", "", "(us)", "", "(us)", "");
		return;
	}
	printf("%12s  %-22s %10s %10s %9s %9s %10s %9s  %s\n", "size", "algorithm", "time", "p95",
	       "algbw", "busbw", "bound", "of bound", "bottleneck");
	printf("%12s  %-22s %10s %10s %9s %9s %10s %9s\n", "(B)", "", "(us)", "(us)", "(GB/s)",
	       "(GB/s)", "(us)", "(%)");
}

static void json_begin(const struct sim_run *run)
{
	const struct cli_sim_args *sim = &run->args->sim;

	fputs("{\"fabric\": ", stdout);
	cli_json_string(stdout, run->info.name);
	printf(", \"ranks\": %u, \"nodes\": %u, \"collective\": \"%s\", \"as\": \"%s\", \"seed\": "
	       "%u",
	       run->n, run->nodes, hk_coll_name(run->jobs[0].coll), sim->as ? sim->as : "hocket",
	       sim->has_seed ? sim->seed : 1);
	if (sim->what_if) {
		fputs(", \"what_if\": ", stdout);
		cli_json_string(stdout, sim->what_if);
	}
	fputs(",\n \"faults\": [", stdout);
	for (size_t i = 0; i < sim->nfaults; i++) {
		fputs(i ? ", " : "", stdout);
		cli_json_string(stdout, sim->faults[i]);
	}
	fputs("], \"also\": [", stdout);
	for (uint32_t j = 1; j < run->njobs; j++)
		printf("%s{\"collective\": \"%s\", \"size\": %.0f, \"algo\": \"%s\"}",
		       j > 1 ? ", " : "", hk_coll_name(run->jobs[j].coll), run->jobs[j].bytes,
		       run->jobs[j].candidates[run->jobs[j].chosen].algo);
	fputs("],\n \"results\": [", stdout);
}

void sim_print_begin(const struct sim_run *run)
{
	if (run->args->json)
		json_begin(run);
	else
		table_begin(run);
	fflush(stdout);
}

/* ---- rows ---- */

static void table_row(const struct sim_row *row)
{
	const struct hk_sim_result *result = &row->result;

	printf("%12" PRIu64 "  %-22s ", row->bytes, row->algo);
	print_us(result->time_ns, 10);
	putchar(' ');
	if (row_is_random(row))
		print_us(result->p95_ns, 10);
	else
		printf("%10s", "-");
	printf(" %9.2f %9.2f ", result->algbw, result->busbw);
	print_us(result->bound_ns, 10);
	printf(" %9.1f  %s%s\n", 100 * row_of_bound(row), result->bottleneck,
	       result->smeared ? " (paths averaged)" : "");
}

/* What one simulation says, without the braces. */
static void json_result(const struct sim_row *row)
{
	const struct hk_sim_result *result = &row->result;

	fputs("\"algo\": ", stdout);
	cli_json_string(stdout, row->algo);
	printf(", \"time_us\": %.9g, \"p95_us\": %.9g, \"algbw\": %.6g, \"busbw\": %.6g, "
	       "\"bound_us\": %.9g, \"of_bound\": %.4f, \"bottleneck\": ",
	       result->time_ns / 1e3, result->p95_ns / 1e3, result->algbw, result->busbw,
	       result->bound_ns / 1e3, row_of_bound(row));
	cli_json_string(stdout, result->bottleneck);
	if (row->as_nccl) {
		if (isnan(row->nccl_us))
			fputs(", \"nccl_expects_us\": null", stdout);
		else
			printf(", \"nccl_expects_us\": %.9g", row->nccl_us);
		return;
	}
	printf(", \"bound_bytes_us\": %.9g, \"bound_delay_us\": %.9g, \"busy\": %.4f, "
	       "\"messages\": %" PRIu64 ", \"simulated\": %" PRIu64 ", \"classes\": %u, "
	       "\"folded\": %s, \"averaged\": %s",
	       result->bound_bytes_ns / 1e3, result->bound_delay_ns / 1e3, result->busy,
	       result->messages, result->simulated, result->classes, true_false(result->folded),
	       true_false(result->smeared));
}

static void json_open(const struct sim_row *row, uint32_t index)
{
	printf("%s\n  {\"size\": %" PRIu64 ", ", index ? "," : "", row->bytes);
	json_result(row);
}

void sim_print_row(const struct sim_run *run, const struct sim_row *row, uint32_t index)
{
	if (run->args->json)
		json_open(row, index); /* closed by who has no more to say of it */
	else
		table_row(row);
	fflush(stdout);
}

void sim_print_pair(const struct sim_run *run, const struct sim_row *base,
		    const struct sim_row *changed, uint32_t index)
{
	double ratio =
		changed->result.time_ns > 0 ? base->result.time_ns / changed->result.time_ns : 1;

	if (run->args->json) {
		json_open(base, index);
		fputs(",\n   \"changed\": {", stdout);
		json_result(changed);
		printf("}, \"faster\": %.6g", ratio);
		return;
	}
	printf("%12" PRIu64 "  %-22s ", base->bytes, base->algo);
	print_us(base->result.time_ns, 10);
	printf("  %-22s ", changed->algo);
	print_us(changed->result.time_ns, 10);
	printf(" %7.3fx  %s\n", ratio, changed->result.bottleneck);
	fflush(stdout);
}

void sim_print_row_end(const struct sim_run *run)
{
	if (run->args->json)
		putchar('}');
}

/* Algorithms that were too large for some size. */
static void print_left_out(const struct sim_run *run)
{
	const struct sim_job *job = &run->jobs[0];
	const char *before = run->args->json ? "\n], \"left_out\": ["
					     : "# not simulated, as they have too many steps: ";

	for (uint32_t i = 0; i < job->ncandidates; i++) {
		if (!job->candidates[i].left_out)
			continue;
		printf(run->args->json ? "%s\"%s\"" : "%s%s", before, job->candidates[i].algo);
		before = ", ";
	}
	if (run->args->json)
		fputs(before[0] == ',' ? "]" : "\n], \"left_out\": []", stdout);
	else if (before[0] == ',')
		puts("; --algo simulates one");
}

void sim_print_end(const struct sim_run *run)
{
	print_left_out(run);
	if (run->args->json)
		printf(", \"seconds\": %.3f}\n", cli_now_s() - run->started);
}
