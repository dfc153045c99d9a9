/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_write.c - the timeline: a process for each rank; in it, for each group,
 * a thread for its operations, one for hk_send and hk_recv, and one for each
 * lane; arrows from where a message was sent to where it was received.
 */
#include "timeline.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* Threads of a group in a rank: operations, transfers, then lanes. */
#define THREADS (HK_LANES_MAX + 2u)
enum {
	THREAD_OPERATIONS,
	THREAD_TRANSFERS,
	THREAD_LANES
};
#define RANKS_MAX (1u << 24) /* of a run: viewers want 32 bits for all */

struct writer {
	struct trace *trace;
	struct timeline timeline;
	const struct trace_rank *rank; /* whose records are being written */
	uint32_t pid;
	uint64_t *contexts; /* of its groups */
	uint32_t ncontexts;
	unsigned char *named; /* bit by thread: it has a name */
	uint64_t nbeside;     /* slices that lie beside others */
};

static double writer_us(const struct writer *writer, uint64_t ns)
{
	return (double)(int64_t)(ns + (uint64_t)writer->rank->shift_ns - writer->trace->first_ns) /
	       1e3;
}

/* ---- threads ---- */

static int writer_grow(struct writer *writer, uint64_t context)
{
	size_t groups = writer->ncontexts + (size_t)1;
	uint64_t *contexts = realloc(writer->contexts, groups * sizeof(*contexts));

	if (contexts)
		writer->contexts = contexts;
	unsigned char *named = realloc(writer->named, groups * THREADS);
	if (named)
		writer->named = named;
	if (!contexts || !named)
		return cli_wrong("trace", "out of memory");
	contexts[writer->ncontexts] = context;
	memset(named + (size_t)writer->ncontexts++ * THREADS, 0, THREADS);
	return CLI_DONE;
}

/* The place of a record's group among those of its rank. */
static uint32_t writer_group(const struct writer *writer, uint64_t context)
{
	uint32_t g = 0;

	while (g < writer->ncontexts && writer->contexts[g] != context)
		g++;
	return g;
}

static uint32_t writer_thread(struct writer *writer, const struct hk_trace_record *record,
			      uint32_t thread)
{
	uint32_t tid = writer_group(writer, record->context) * THREADS + thread;
	char name[96], group[64] = "";

	if (writer->named[tid])
		return tid;
	writer->named[tid] = 1;
	if (record->context)
		snprintf(group, sizeof(group), "group %s, ", cli_group_name(record->context).text);
	if (thread == THREAD_OPERATIONS)
		snprintf(name, sizeof(name), "%soperations", group);
	else if (thread == THREAD_TRANSFERS)
		snprintf(name, sizeof(name), "%ssends and receives", group);
	else
		snprintf(name, sizeof(name), "%slane %u", group, thread - THREAD_LANES);
	timeline_thread(&writer->timeline, writer->pid, tid, name);
	return tid;
}

/* ---- slices ---- */

static void slice_begin(struct writer *writer, const char *category, const char *name, uint32_t tid,
			const uint64_t span[2])
{
	double at = writer_us(writer, span[0]), end = writer_us(writer, span[1]);

	timeline_begin(&writer->timeline, &(struct timeline_event){ .phase = 'X',
								    .category = category,
								    .name = name,
								    .pid = writer->pid,
								    .tid = tid,
								    .at_us = at,
								    .for_us = end - at });
}

static void slice_add_peers(struct writer *writer, const struct hk_trace_record *record)
{
	const struct hk_trace_step *step = &record->is.step;

	if (step->in.number) {
		timeline_number(&writer->timeline, "from", step->in.peer);
		timeline_number(&writer->timeline, "received bytes", step->in.bytes);
	}
	if (step->out.number) {
		timeline_number(&writer->timeline, "to", step->out.peer);
		timeline_number(&writer->timeline, "sent bytes", step->out.bytes);
	}
}

static void slice_wait(struct writer *writer, const struct hk_trace_record *record, uint32_t tid)
{
	const struct hk_trace_step *step = &record->is.step;
	bool given_up = record->kind == HK_TRACE_WAIT;
	const uint64_t span[2] = { given_up ? record->start_ns : step->since_ns,
				   given_up ? record->end_ns : record->start_ns };

	if (!given_up && (!step->since_ns || step->since_ns >= record->start_ns))
		return;
	slice_begin(writer, "wait", given_up ? "waits in vain" : "wait", tid, span);
	timeline_text(&writer->timeline, "for", hk_op_name((enum hk_op)step->op));
	timeline_number(&writer->timeline, "operation", (double)record->number);
	timeline_number(&writer->timeline, "step", step->step);
	if (given_up ? step->in.peer != HK_NONE : step->in.number != 0)
		timeline_number(&writer->timeline, "from", step->in.peer);
	if (given_up ? step->out.peer != HK_NONE : step->out.number != 0)
		timeline_number(&writer->timeline, "to", step->out.peer);
	timeline_end(&writer->timeline);
}

/* An arrow begins where its step does, and ends just before its step does. */
static void slice_arrow(struct writer *writer, const struct hk_trace_record *record, uint32_t tid,
			uint64_t id, bool ends)
{
	uint64_t end = record->end_ns > record->start_ns ? record->end_ns - 1 : record->end_ns;

	if (!id)
		return;
	timeline_begin(&writer->timeline,
		       &(struct timeline_event){
			       .phase = ends ? 'f' : 's',
			       .category = "message",
			       .name = "message",
			       .pid = writer->pid,
			       .tid = tid,
			       .at_us = writer_us(writer, ends ? end : record->start_ns),
			       .id = id });
	timeline_end(&writer->timeline);
}

static void slice_step(struct writer *writer, uint64_t i, uint32_t thread)
{
	const struct hk_trace_record *record = &writer->rank->records[i];
	const struct hk_trace_step *step = &record->is.step;
	const uint64_t span[2] = { record->start_ns, record->end_ns };
	uint32_t tid = writer_thread(writer, record, thread);

	if (thread >= THREAD_LANES)
		slice_wait(writer, record, tid);
	slice_begin(writer, thread >= THREAD_LANES ? "step" : "message",
		    hk_op_name((enum hk_op)step->op), tid, span);
	if (thread >= THREAD_LANES) {
		timeline_number(&writer->timeline, "operation", (double)record->number);
		timeline_number(&writer->timeline, "step", step->step);
		timeline_number(&writer->timeline, "slice", step->slice);
	} else {
		timeline_number(&writer->timeline, "tag", step->lane);
	}
	slice_add_peers(writer, record);
	timeline_end(&writer->timeline);
	slice_arrow(writer, record, tid, writer->rank->out[i], false);
	slice_arrow(writer, record, tid, writer->rank->in[i], true);
}

/* ---- operations ---- */

static const char *op_name(const struct hk_trace_op *op)
{
	static const char *const stages[] = { "agree", "report", "tune" };

	if (op->stage < HK_TRACE_RUN)
		return stages[op->stage];
	return op->coll < HK_COLL_COUNT ? hk_coll_name((enum hk_coll)op->coll) : "operation";
}

static void slice_op(struct writer *writer, const struct hk_trace_record *record, uint64_t end_ns,
		     const char *state)
{
	const struct hk_trace_op *op = &record->is.op;
	uint32_t tid = writer_thread(writer, record, THREAD_OPERATIONS);
	const uint64_t span[2] = { record->start_ns, end_ns };
	char algo[sizeof(op->algo)];
	const char *type = hk_type_name((enum hk_type)op->type);

	memcpy(algo, op->algo, sizeof(algo));
	algo[sizeof(algo) - 1] = '\0';
	slice_begin(writer, "operation", op_name(op), tid, span);
	timeline_number(&writer->timeline, "operation", (double)record->number);
	if (op->coll != HK_COLL_BARRIER || op->stage < HK_TRACE_RUN) {
		timeline_number(&writer->timeline, "count", (double)op->count);
		timeline_text(&writer->timeline, "type", type ? type : "?");
	}
	timeline_text(&writer->timeline, "algorithm", algo);
	timeline_text(&writer->timeline, "status", state);
	timeline_end(&writer->timeline);
}

/* What has begun is over when its end comes; or never, and then it lasts. */
static void write_begin(struct writer *writer, uint64_t i)
{
	const struct hk_trace_record *record = &writer->rank->records[i];

	for (uint64_t k = i + 1; k < writer->rank->nrecords; k++) {
		const struct hk_trace_record *later = &writer->rank->records[k];

		if (later->context == record->context &&
		    (later->kind == HK_TRACE_END || later->kind == HK_TRACE_BEGIN))
			return;
	}
	const struct hk_trace_record *last = &writer->rank->records[writer->rank->nrecords - 1];
	uint64_t end = last->end_ns > record->start_ns ? last->end_ns : record->start_ns;
	slice_op(writer, record, end, "not over");
}

static void write_transfer(struct writer *writer, const struct hk_trace_record *record)
{
	const struct hk_trace_op *op = &record->is.op;
	uint32_t tid = writer_thread(writer, record, THREAD_TRANSFERS);
	uint64_t id = ++writer->nbeside;
	char name[48];

	snprintf(name, sizeof(name), "%s rank %u", op->coll ? "send to" : "recv from", op->peer);
	for (int end = 0; end < 2; end++) {
		uint64_t at = end ? record->end_ns : record->start_ns;

		timeline_begin(&writer->timeline,
			       &(struct timeline_event){ .phase = end ? 'e' : 'b',
							 .category = "transfer",
							 .name = name,
							 .pid = writer->pid,
							 .tid = tid,
							 .at_us = writer_us(writer, at),
							 .id = id });
		timeline_number(&writer->timeline, "bytes", (double)op->count);
		if (end)
			timeline_text(&writer->timeline, "status",
				      hk_status_name((enum hk_status)op->status));
		timeline_end(&writer->timeline);
	}
}

/* ---- ranks ---- */

static void write_record(struct writer *writer, uint64_t i)
{
	const struct hk_trace_record *record = &writer->rank->records[i];
	uint32_t lane = record->is.step.lane;

	switch (record->kind) {
	case HK_TRACE_STEP:
		if (lane < HK_LANES_MAX)
			slice_step(writer, i, THREAD_LANES + lane);
		return;
	case HK_TRACE_WAIT:
		if (lane < HK_LANES_MAX)
			slice_wait(writer, record,
				   writer_thread(writer, record, THREAD_LANES + lane));
		return;
	case HK_TRACE_MESSAGE:
		slice_step(writer, i, THREAD_TRANSFERS);
		return;
	case HK_TRACE_BEGIN:
		write_begin(writer, i);
		return;
	case HK_TRACE_END:
		slice_op(writer, record, record->end_ns,
			 hk_status_name((enum hk_status)record->is.op.status));
		return;
	default:
		write_transfer(writer, record);
	}
}

static int write_rank(struct writer *writer, const struct trace_rank *rank)
{
	char name[160], run[32] = "";
	int result = CLI_DONE;

	writer->rank = rank;
	writer->pid = rank->run * RANKS_MAX + rank->head.rank % RANKS_MAX;
	writer->ncontexts = 0;
	if (writer->trace->nruns > 1)
		snprintf(run, sizeof(run), ", group %u", rank->run);
	snprintf(name, sizeof(name), "rank %u%s (%s, pid %llu)", rank->head.rank, run,
		 rank->head.host, (unsigned long long)rank->head.pid);
	timeline_process(&writer->timeline, writer->pid, name);
	for (uint64_t i = 0; i < rank->nrecords && result == CLI_DONE; i++) {
		uint64_t context = rank->records[i].context;

		if (writer_group(writer, context) == writer->ncontexts)
			result = writer_grow(writer, context);
		if (result == CLI_DONE)
			write_record(writer, i);
	}
	return result;
}

static int write_close(struct writer *writer)
{
	static const char *const clocks[] = { "\"one\"", "\"aligned by messages\"",
					      "\"aligned by the time of day\"" };
	const struct trace *trace = writer->trace;
	char dropped[24], arrows[24], lost[24];
	uint64_t ndropped = 0;

	for (uint32_t r = 0; r < trace->nranks; r++)
		ndropped += trace->ranks[r].dropped;
	snprintf(dropped, sizeof(dropped), "%llu", (unsigned long long)ndropped);
	snprintf(arrows, sizeof(arrows), "%llu", (unsigned long long)trace->narrows);
	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)trace->nlost);
	const char *const other[] = { "clock", clocks[trace->clock], "dropped", dropped, "messages",
				      arrows,  "half seen",	     lost,	NULL };
	return timeline_close(&writer->timeline, other);
}

int trace_write(struct trace *trace, const char *path)
{
	struct writer writer = { .trace = trace };
	int result = timeline_open(&writer.timeline, "trace", path);

	if (result != CLI_DONE)
		return result;
	writer.timeline.digits = 3;
	for (uint32_t r = 0; r < trace->nranks && result == CLI_DONE; r++)
		result = write_rank(&writer, &trace->ranks[r]);
	int closed = write_close(&writer);
	free(writer.contexts);
	free(writer.named);
	return result == CLI_DONE ? closed : result;
}
