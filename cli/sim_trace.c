/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_trace.c - files about one simulation: a timeline for Perfetto or Chrome
 * (a process for each rank, a thread for each lane, messages as slices of their
 * own), and its plan for simulators of others.
 */
#include "sim.h"
#include "timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_EVENTS_MAX 4000000u /* what viewers can bear */

/* ---- the timeline ---- */

struct trace {
	const struct sim_run *run;
	struct timeline timeline;
	unsigned char *named; /* a bit for each rank whose lanes have names */
	uint64_t nmessages;
};

/* A job's lanes lie behind those of the one before. */
static uint32_t trace_thread(const struct hk_sim_event *event)
{
	return event->job * HK_LANES_MAX + event->lane;
}

static void trace_name(struct trace *trace, uint32_t rank)
{
	const struct sim_run *run = trace->run;
	char name[64];

	if (trace->named[rank / 8] & 1u << rank % 8)
		return;
	trace->named[rank / 8] |= (unsigned char)(1u << rank % 8);
	snprintf(name, sizeof(name), "rank %u", rank);
	timeline_process(&trace->timeline, rank, name);
	for (uint32_t j = 0; j < run->njobs; j++) {
		const struct sim_job *job = &run->jobs[j];
		const struct hk_plan *plan = job->candidates[job->chosen].plan;

		for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
			snprintf(name, sizeof(name), "%s, lane %u", hk_coll_name(job->coll), l);
			timeline_thread(&trace->timeline, rank, j * HK_LANES_MAX + l, name);
		}
	}
}

static void trace_step(struct trace *trace, const struct hk_sim_event *event)
{
	struct timeline *timeline = &trace->timeline;

	timeline_begin(timeline, &(struct timeline_event){
					 .phase = 'X',
					 .category = "step",
					 .name = hk_op_name(event->op),
					 .pid = event->rank,
					 .tid = trace_thread(event),
					 .at_us = event->start_ns / 1e3,
					 .for_us = (event->end_ns - event->start_ns) / 1e3 });
	timeline_number(timeline, "step", event->step);
	timeline_number(timeline, "slice", event->slice);
	timeline_number(timeline, "bytes", event->bytes);
	if (event->from != HK_NONE)
		timeline_number(timeline, "from", event->from);
	if (event->to != HK_NONE)
		timeline_number(timeline, "to", event->to);
	timeline_end(timeline);
}

/* Many may be on their way at a time: each is a slice of its own. */
static void trace_message(struct trace *trace, const struct hk_sim_event *event)
{
	uint64_t id = trace->nmessages++;
	char name[32];

	snprintf(name, sizeof(name), "%u to %u", event->rank, event->to);
	for (int end = 0; end < 2; end++) {
		double at_ns = end ? event->end_ns : event->start_ns;

		timeline_begin(&trace->timeline,
			       &(struct timeline_event){ .phase = end ? 'e' : 'b',
							 .category = "message",
							 .name = name,
							 .id = id,
							 .pid = event->rank,
							 .tid = trace_thread(event),
							 .at_us = at_ns / 1e3 });
		timeline_number(&trace->timeline, "bytes", event->bytes);
		timeline_number(&trace->timeline, "slice", event->slice);
		timeline_end(&trace->timeline);
	}
}

static void on_event(void *ctx, const struct hk_sim_event *event)
{
	struct trace *trace = ctx;

	if (trace->timeline.nevents >= TRACE_EVENTS_MAX || event->rank >= trace->run->n)
		return;
	trace_name(trace, event->rank);
	if (event->message)
		trace_message(trace, event);
	else
		trace_step(trace, event);
}

static int trace_write(struct sim_run *run, const struct sim_row *row, const char *path)
{
	struct trace trace = { .run = run, .named = calloc(run->n / 8 + 1, 1) };
	struct sim_events events = { on_event, &trace };
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_why why = { "" };

	if (!trace.named)
		return cli_wrong("sim", "out of memory");
	int opened = timeline_open(&trace.timeline, "sim", path);
	if (opened != CLI_DONE) {
		free(trace.named);
		return opened;
	}
	run->now = row->algo;
	enum hk_status status =
		sim_run_plan(run, run->fabric, row->plan, row->bytes, &events, &why, &result);
	sim_progress_end(run);
	free(trace.named);
	uint64_t nevents = trace.timeline.nevents;
	int closed = timeline_close(&trace.timeline, NULL);
	if (status != HK_OK)
		return cli_wrong("sim", "%s", why.text);
	if (nevents >= TRACE_EVENTS_MAX)
		fprintf(stderr, "hocket sim: %s ends after %u events; take fewer ranks or bytes\n",
			path, TRACE_EVENTS_MAX);
	return closed;
}

static int file_close(FILE *file, const char *path)
{
	bool failed = ferror(file);

	if (fclose(file) != 0 || failed)
		return cli_wrong("sim", "%s: cannot be written: %s", path, strerror(errno));
	return CLI_DONE;
}

/* ---- plans ---- */

/* The fabric's first time for a byte whose name says so, or 0. */
static double byte_ns(const struct hk_fabric *fabric, const char *word)
{
	struct hk_fabric_constant constant = { .size = sizeof(constant) };

	for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++)
		if (strcmp(constant.unit, "ns/B") == 0 && strstr(constant.name, word))
			return constant.value;
	return 0;
}

/* As many slices as --slice makes of the longest chunk. */
static uint32_t row_slices(const struct sim_run *run, const struct sim_row *row)
{
	uint64_t slice = run->args->sim.slice;
	struct hk_plan_info info = { .size = sizeof(info) };

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
