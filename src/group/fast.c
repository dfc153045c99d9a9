/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.c - the fast path: a call without options, like the one before it, while
 * nothing else goes on in the world.
 */
#include "group/call.h"

#include "group/record/recorder.h"

static struct hk__recent *fast_recent(struct hk_group *group, const struct hk__call_args *args)
{
	return &group->recent[args->coll][args->root % HK__RECENT];
}

/* Whether its buffers are there, and apart, or in place, as those of the recent call. */
static bool fast_placed_like(const struct hk__call_args *args, const struct hk__recent *recent)
{
	uintptr_t in = (uintptr_t)args->in, out = (uintptr_t)args->out;

	if ((!in && recent->in_bytes) || (!out && recent->out_bytes))
		return false;
	if (recent->inplace)
		return out - in == recent->apart;
	return in >= out + recent->out_bytes || out >= in + recent->in_bytes || !recent->in_bytes ||
	       !recent->out_bytes;
}

static bool fast_like(const struct hk__call_args *args, const struct hk__recent *recent)
{
	const struct hk__call *call = &recent->call;

	return recent->program && args->count == call->sizes.count && args->type == call->type &&
	       args->op == call->op && args->root == recent->root && !args->counts &&
	       !args->in_counts && fast_placed_like(args, recent) &&
	       hk__program_like(recent->program, call) &&
	       (!recent->tuner || hk__tuner_fresh(recent->tuner));
}

static void fast_trace(struct hk_group *group, enum hk_coll coll, const struct hk__recent *recent)
{
	hk__trace_begin(group, &(struct hk__trace_begin){ .coll = coll,
							  .stage = HK_TRACE_RUN,
							  .number = group->number,
							  .program = recent->program,
							  .call = &recent->call });
}

bool hk__fast_ready(struct hk_group *group, const struct hk__call_args *args)
{
	const struct hk__world *world = group->world;

	/* Whether others are active is another thread's, where there is one. */
	return !world->threaded && !world->helped && !world->active && !group->batching &&
	       !world->health.pending && fast_like(args, fast_recent(group, args));
}

/*
 * Its program is known and starts at once. It ends here if it ends soon; else it
 * becomes a request, begun, and waits as all do.
 */
enum hk_status hk__fast_start(struct hk_group *group, const struct hk__call_args *args)
{
	struct hk__recent *recent = fast_recent(group, args);
	struct hk__world *world = group->world;
	struct hk__program *program = recent->program;
	enum hk_status status = HK_INPROGRESS;

	hk__program_restart(program, args->in, args->out);
	group->number++;
	if (__builtin_expect(group->chans.trace != NULL, 0))
		fast_trace(group, args->coll, recent);
	hk__record_again(group, recent);
	for (uint32_t look = 0; look < world->looks; look++) {
		bool moved;

		if (world->polls && hk__net_poll(world->net) != HK_OK)
			break; /* the slow path says why */
		status = hk__program_poll(program, &moved);
		if (status != HK_INPROGRESS)
			break;
	}
	if (status == HK_OK) {
		if (__builtin_expect(group->chans.trace != NULL, 0))
			hk__trace_end(group, HK_OK);
		hk__record_done(group, recent);
		return HK_OK;
	}
	struct hk_request request = { 0 };
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status filled = hk__request_fill(&request, group, args, &opts);
	hk_assert(filled == HK_OK); /* as the call before it */
	request.program = program;
	request.sig.number = group->number;
	return hk__group_adopt(group, &request, status);
}

void hk__fast_remember(struct hk_group *group, const struct hk__call_args *args,
		       const struct hk_request *request)
{
	struct hk__recent *recent = fast_recent(group, args);
	uint64_t in_len, out_len;

	if (args->counts || args->in_counts || args->coll == HK_COLL_BARRIER)
		return;
	recent->program = NULL;
	if (request->algo || request->plan || group->check ||
	    (request->tuner && !request->tuner->decided))
		return;
	if (hk__group_bind(group, (struct hk_request *)request, &recent->program) != HK_OK)
		return;
	hk__args_lengths(group, args, &in_len, &out_len);
	recent->call = request->call;
	recent->root = args->root;
	recent->tuner = request->tuner;
	recent->in_bytes = in_len * hk_type_size(args->type);
	recent->out_bytes = out_len * hk_type_size(args->type);
	recent->inplace = request->inplace;
	recent->apart = (uintptr_t)args->out - (uintptr_t)args->in;
	hk__record_remember(request, recent);
}
