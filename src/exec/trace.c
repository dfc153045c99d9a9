/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - records of steps and messages, made after the fact. */
#include "exec/trace.h"

#include "exec/program.h"

struct hk_trace_record *hk__trace_record(struct hk__trace *trace, enum hk_trace_kind kind,
					 uint64_t context, uint64_t number)
{
	struct hk_trace_record *record = &trace->records[trace->next];

	*record = (struct hk_trace_record){ .context = context, .kind = kind, .number = number };
	return record;
}

void hk__trace_post(struct hk__trace *trace)
{
	if (++trace->next == trace->capacity)
		trace->next = 0;
	/* Who reads the file may do so at any time, and reads what was counted. */
	__atomic_store_n(&trace->head->count, ++trace->count, __ATOMIC_RELEASE);
}

/* The message that a channel's user has just sent or taken. */
static struct hk_trace_message message_of(struct hk_chan *chan, bool sent)
{
	const struct hk_chan_key *key = &chan->spec.key;

	return (struct hk_trace_message){ .number = ++chan->messages,
					  .peer = key->peer,
					  .lane = sent ? key->to_lane : key->from_lane,
					  .bytes = chan->bytes };
}

static struct hk_trace_record *record_of(const struct hk__program *program,
					 const struct bound_lane *lane, enum hk_trace_kind kind)
{
	struct hk__chans *chans = program->spec.chans;
	struct hk_trace_record *record =
		hk__trace_record(chans->trace, kind, chans->context, chans->number);

	record->is.step.since_ns = lane->since;
	record->is.step.lane = (uint32_t)(lane - program->lanes);
	record->is.step.step = lane->at;
	record->is.step.slice = lane->slice;
	record->is.step.op = lane->steps[lane->at].step.op;
	return record;
}

void hk__trace_step(struct hk__program *program, struct bound_lane *lane, uint64_t start,
		    enum hk_status status)
{
	const struct bound_step *bound = &lane->steps[lane->at];

	if (status != HK_OK) { /* not yet; or never, and then the group says so */
		lane->since = lane->since ? lane->since : start;
		return;
	}
	struct hk_trace_record *record = record_of(program, lane, HK_TRACE_STEP);
	record->start_ns = start;
	record->end_ns = hk__now_ns();
	if (bound->from)
		record->is.step.in = message_of(bound->from, false);
	if (bound->to)
		record->is.step.out = message_of(bound->to, true);
	lane->since = 0;
	hk__trace_post(program->trace);
}

void hk__trace_waits(const struct hk__program *program)
{
	uint64_t now = hk__now_ns();

	for (uint32_t l = 0; l < program->nlanes; l++) {
		const struct bound_lane *lane = &program->lanes[l];

		if (lane->slice >= program->nslices || !lane->nsteps)
			continue;
		const struct bound_step *bound = &lane->steps[lane->at];
		struct hk_trace_record *record = record_of(program, lane, HK_TRACE_WAIT);
		record->start_ns = lane->since ? lane->since : now;
		record->end_ns = now;
		/* Without a number: they have not come, or gone. */
		record->is.step.in.peer = bound->from ? bound->from->spec.key.peer : HK_NONE;
		record->is.step.out.peer = bound->to ? bound->to->spec.key.peer : HK_NONE;
		hk__trace_post(program->trace);
	}
}

void hk__trace_message(struct hk__transfer *transfer, uint64_t start, uint32_t bytes, bool done)
{
	struct hk_chan *chan = transfer->chan;

	if (!done) {
		transfer->since = transfer->since ? transfer->since : start;
		return;
	}
	struct hk_trace_record *record =
		hk__trace_record(transfer->trace, HK_TRACE_MESSAGE, chan->spec.key.context, 0);
	record->start_ns = start;
	record->end_ns = hk__now_ns();
	record->is.step.since_ns = transfer->since;
	record->is.step.lane = transfer->tag;
	record->is.step.op = transfer->sends ? HK_OP_SEND : HK_OP_RECV;
	chan->bytes = bytes;
	if (transfer->sends)
		record->is.step.out = message_of(chan, true);
	else
		record->is.step.in = message_of(chan, false);
	transfer->since = 0;
	hk__trace_post(transfer->trace);
}
