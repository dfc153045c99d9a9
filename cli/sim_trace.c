/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_trace.c - files about one simulation: a timeline for Perfetto or Chrome
 * (a process for each rank, a thread for each lane, messages as slices of their
 * own), and its plan for simulators of others.
 */
#include "sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_EVENTS_MAX 4000000u /* what viewers can bear */

/* ---- the timeline ---- */

struct trace {
	const struct sim_run *run;
	FILE *file;
	unsigned char *named; /* a bit for each rank whose lanes have names */
	uint64_t nevents;
	uint64_t nmessages;
};

static const char *trace_comma(struct trace *trace)
{
	return trace->nevents++ ? ",\n" : "";
}

/* A job's lanes lie behind those of the one before. */
static uint32_t trace_thread(const struct hk_sim_event *event)
{
	return event->job * HK_LANES_MAX + event->lane;
}

static void trace_name(struct trace *trace, uint32_t rank)
{
	const struct sim_run *run = trace->run;

	if (trace->named[rank / 8] & 1u << rank % 8)
		return;
	trace->named[rank / 8] |= (unsigned char)(1u << rank % 8);
	fprintf(trace->file,
		"%s{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %u, "
		"\"args\": {\"name\": \"rank %u\"}}",
		trace_comma(trace), rank, rank);
	for (uint32_t j = 0; j < run->njobs; j++) {
		const struct sim_job *job = &run->jobs[j];
		const struct hk_plan *plan = job->candidates[job->chosen].plan;

		for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++)
			fprintf(trace->file,
				"%s{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %u, "
				"\"tid\": %u, \"args\": {\"name\": \"%s, lane %u\"}}",
				trace_comma(trace), rank, j * HK_LANES_MAX + l,
				hk_coll_name(job->coll), l);
	}
}

static void trace_step(struct trace *trace, const struct hk_sim_event *event)
{
	fprintf(trace->file,
		"%s{\"ph\": \"X\", \"cat\": \"step\", \"name\": \"%s\", \"pid\": %u, \"tid\": %u, "
		"\"ts\": %.6f, \"dur\": %.6f, \"args\": {\"step\": %u, \"slice\": %u, "
		"\"bytes\": %.0f",
		trace_comma(trace), hk_op_name(event->op), event->rank, trace_thread(event),
		event->start_ns / 1e3, (event->end_ns - event->start_ns) / 1e3, event->step,
		event->slice, event->bytes);
	if (event->from != HK_NONE)
		fprintf(trace->file, ", \"from\": %u", event->from);
	if (event->to != HK_NONE)
		fprintf(trace->file, ", \"to\": %u", event->to);
	fputs("}}", trace->file);
}

/* Many may be on their way at a time: each is a slice of its own. */
static void trace_message(struct trace *trace, const struct hk_sim_event *event)
{
	uint64_t id = trace->nmessages++;

	for (int end = 0; end < 2; end++)
		fprintf(trace->file,
			"%s{\"ph\": \"%c\", \"cat\": \"message\", \"name\": \"%u to %u\", "
			"\"id\": %llu, \"pid\": %u, \"tid\": %u, \"ts\": %.6f, "
			"\"args\": {\"bytes\": %.0f, \"slice\": %u}}",
			trace_comma(trace), end ? 'e' : 'b', event->rank, event->to,
			(unsigned long long)id, event->rank, trace_thread(event),
			(end ? event->end_ns : event->start_ns) / 1e3, event->bytes, event->slice);
}

static void on_event(void *ctx, const struct hk_sim_event *event)
{
	struct trace *trace = ctx;

	if (trace->nevents >= TRACE_EVENTS_MAX || event->rank >= trace->run->n)
		return;
	trace_name(trace, event->rank);
	if (event->message)
		trace_message(trace, event);
	else
		trace_step(trace, event);
}

static int file_close(FILE *file, const char *path)
{
	bool failed = ferror(file);

	if (fclose(file) != 0 || failed)
		return cli_wrong("sim", "%s: cannot be written: %s", path, strerror(errno));
	return CLI_DONE;
}

static int trace_write(struct sim_run *run, const struct sim_row *row, const char *path)
{
	struct trace trace = { .run = run, .named = calloc(run->n / 8 + 1, 1) };
	struct sim_events events = { on_event, &trace };
	struct hk_sim_result result;
	struct hk_why why = { "" };

	if (!trace.named)
		return cli_wrong("sim", "out of memory");
	trace.file = fopen(path, "we");
	if (!trace.file) {
		free(trace.named);
		return cli_wrong("sim", "%s: cannot be opened: %s", path, strerror(errno));
	}
	fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n", trace.file);
	run->now = row->algo;
	enum hk_status status =
		sim_run_plan(run, run->fabric, row->plan, row->bytes, &events, &why, &result);
	sim_progress_end(run);
	fputs("\n]}\n", trace.file);
	free(trace.named);
	int closed = file_close(trace.file, path);
	if (status != HK_OK)
		return cli_wrong("sim", "%s", why.text);
	if (trace.nevents >= TRACE_EVENTS_MAX)
		fprintf(stderr, "hocket sim: %s ends after %u events; take fewer ranks or bytes\n",
			path, TRACE_EVENTS_MAX);
	return closed;
}

/* ---- plans ---- */

/* The fabric's first time for a byte whose name says so, or 0. */
static double byte_ns(const struct hk_fabric *fabric, const char *word)
{
	struct hk_fabric_constant constant;

	for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++)
		if (strcmp(constant.unit, "ns/B") == 0 && strstr(constant.name, word))
			return constant.value;
	return 0;
}

/* As many slices as --slice makes of the longest chunk. */
static uint32_t row_slices(const struct sim_run *run, const struct sim_row *row)
{
	uint64_t slice = run->args->sim.slice;
	struct hk_plan_info info;

	hk_plan_describe(row->plan, &info);
	uint64_t parts = info.parts > 1 ? info.parts : hk_plan_counts(row->plan) ? info.nranks : 1;
	double chunk = (double)row->bytes / (double)parts;
	double slices = slice ? ceil(chunk / (double)slice) : 1;
	return slices < 1 ? 1 : slices > 1e6 ? 1000000 : (uint32_t)slices;
}

int sim_write_files(struct sim_run *run, const struct sim_row *row)
{
	const struct cli_sim_args *sim = &run->args->sim;
	struct hk_export_opts opts = HK_EXPORT_OPTS_INIT;
	struct hk_why why = { "" };
	int status = CLI_DONE;

	opts.slices = row_slices(run, row);
	opts.copy_ns = byte_ns(run->fabric, "copy");
	opts.reduce_ns = byte_ns(run->fabric, "reduce");
	if (sim->trace)
		status = trace_write(run, row, sim->trace);
	if (status == CLI_DONE && sim->goal) {
		FILE *file = fopen(sim->goal, "we");

		if (!file)
			return cli_wrong("sim", "%s: cannot be opened: %s", sim->goal,
					 strerror(errno));
		if (hk_plan_print_goal(row->plan, row->bytes, &opts, file, &why) != HK_OK)
			status = cli_wrong("sim", "%s: %s", sim->goal, why.text);
		int closed = file_close(file, sim->goal);
		status = status == CLI_DONE ? closed : status;
	}
	if (status == CLI_DONE && sim->chakra &&
	    hk_plan_write_chakra(row->plan, row->bytes, &opts, sim->chakra, &why) != HK_OK)
		status = cli_wrong("sim", "%s", why.text);
	return status;
}
