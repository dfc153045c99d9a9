/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - the life of a request: submitted, moved on, over. Whoever waits
 * for one moves all of the world's on.
 */
#include "group/record/recorder.h"

#include "group/device/device.h"
#include "group/device/staged.h"
#include "group/window/window.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- failure ---- */

static void request_over(struct hk_request *request, enum hk_status status)
{
	static const uint64_t one = 1;

	hk__mem_free(request->group->alloc, request->sigs, request->group->n,
		     sizeof(struct hk__call_sig));
	request->sigs = NULL;
	if (request->transfers && request->transfer.trace)
		hk__trace_transfer(request, status);
	if (status == HK_OK)
		hk__record_over(request);
	request->status = status;
	request->queued = false;
	if (request->fd >= 0)
		(void)!write(request->fd, &one, sizeof(one)); /* a full one is readable too */
	if (request->staged)
		hk__staged_over(request); /* may be somebody else's request from here on */
}

static void queue_fail(struct hk_request **head, struct hk_request **tail, enum hk_status status)
{
	for (struct hk_request *request = *head; request;) {
		struct hk_request *next = request->next;

		request_over(request, status);
		request = next;
	}
	*head = *tail = NULL;
}

enum hk_status hk__group_failed(struct hk_group *group)
{
	if (hk__world_inherited(group->world))
		return HK_EINVAL;
	hk__world_lock(group->world);
	enum hk_status failed = group->failed;
	hk__world_unlock(group->world);
	return failed;
}

/* Nothing of this group goes on, and callers have their memory back. */
void hk__group_fail(struct hk_group *group, enum hk_status status, const char *text)
{
	if (group->failed == HK_OK) {
		group->failed = status;
		atomic_store_explicit(&group->is_over, true, memory_order_release);
		snprintf(group->failure.text, sizeof(group->failure.text), "%s", text);
		hk__record_fail(group);
		hk__windows_cancel(group);
		hk__chans_cancel(&group->chans);
		if (group->chans.trace)
			hk__trace_fail(group, status);
		hk__group_device_abort(group);
		hk__group_heaps_stop(group);
	}
	queue_fail(&group->head, &group->tail, status);
	queue_fail(&group->transfers, &group->transfers_tail, status);
}

static void request_describe(const struct hk_request *request, struct hk__text *text)
{
	if (request->transfers) {
		hk__text_add(text, "%s rank %u", request->transfer.sends ? "send to" : "recv from",
			     request->peer);
		if (request->sig.tag)
			hk__text_add(text, " with tag %u", request->sig.tag);
		return;
	}
	hk__text_add(text, "%s number %llu", hk_coll_name(request->coll),
		     (unsigned long long)request->sig.number);
	if (request->coll != HK_COLL_BARRIER)
		hk__text_add(text, " (%llu x %s)", (unsigned long long)request->sig.count,
			     hk_type_name((enum hk_type)request->sig.type));
	const char *algo = request->program ? hk__program_algo(request->program) : NULL;
	if (algo && request->stage == HK__STAGE_RUN)
		hk__text_add(text, " by %s", algo);
}

void hk__group_describe(const struct hk_group *group, struct hk__text *text)
{
	const struct hk_request *request = group->head ? group->head : group->transfers;

	hk__text_add(text, "rank %u: ", group->rank);
	if (!request)
		return;
	request_describe(request, text);
	hk__text_add(text, ": ");
}

void hk__group_describe_step(const struct hk_group *group, struct hk__text *text)
{
	if (!group->head || !group->head->program)
		return;
	hk__text_add(text, "; here ");
	hk__program_describe(group->head->program, text);
}

void hk__request_fail(struct hk_request *request, enum hk_status status)
{
	struct hk_group *group = request->group;
	char line[HK_WHY_MAX];
	struct hk__text text;
	struct hk_why why;

	/* Who is known to be gone says more than what came of it here. */
	hk__health_apply(group->world);
	if (group->failed != HK_OK)
		return;
	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text, "rank %u: ", group->rank);
	request_describe(request, &text);
	hk__world_why(group->world, &why);
	if (why.text[0])
		hk__text_add(&text, ": %s", why.text);
	else
		hk__text_add(&text, ": %s", hk_status_text(status));
	hk__group_describe_step(group, &text);
	hk__health_revoke(group, status, HK_NONE, line);
}

/* Nobody who is waited for is known to be gone, else it had not come to this. */
static void text_add_blamed(const struct hk_request *request, struct hk__text *text)
{
	uint32_t blamed = hk__group_rank_of(request->group, hk__blame_of(request));

	if (blamed != HK_NONE)
		hk__text_add(text,
			     "; rank %u is not known to be dead: it is stopped, slow, or has not "
			     "called this",
			     blamed);
}

void hk__request_time_out(struct hk_request *request)
{
	struct hk_group *group = request->group;
	char line[HK_WHY_MAX];
	struct hk__text text;

	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text, "rank %u: ", group->rank);
	request_describe(request, &text);
	hk__text_add(&text, " not finished in %.3g s", (double)request->timeout_ns / 1e9);
	if (request->program) {
		hk__text_add(&text, ": ");
		hk__program_describe(request->program, &text);
	} else if (!request->transfers) {
		hk__text_add(&text, ": waits for earlier operations");
	}
	text_add_blamed(request, &text);
	hk__health_revoke(group, HK_ETIMEDOUT, hk__blame_of(request), line);
}

/* ---- one collective ---- */

static void stage_trace(const struct hk_request *request, const struct hk__call *call)
{
	struct hk__trace_begin begin = { .coll = request->coll,
					 .stage = (enum hk_trace_stage)request->stage,
					 .number = request->sig.number,
					 .program = request->program,
					 .call = call };

	_Static_assert((int)HK_TRACE_AGREE == HK__STAGE_AGREE &&
			       (int)HK_TRACE_REPORT == HK__STAGE_REPORT &&
			       (int)HK_TRACE_TUNE == HK__STAGE_TUNE &&
			       (int)HK_TRACE_RUN == HK__STAGE_RUN,
		       "traces name stages as they are");
	hk__trace_begin(request->group, &begin);
}

static enum hk_status stage_begin(struct hk_request *request)
{
	struct hk_group *group = request->group;
	struct hk__program *program;
	struct hk__call call;
	enum hk_status status;

	if (request->stage == HK__STAGE_RUN && hk__tuner_due(request->tuner))
		request->stage = HK__STAGE_TUNE;
	if (request->stage == HK__STAGE_RUN) {
		status = hk__group_bind(group, request, &program);
		hk__tuner_begin(request->tuner, &request->call, &request->began);
		call = request->call;
	} else if (request->stage == HK__STAGE_AGREE || request->stage == HK__STAGE_TUNE) {
		if (request->stage == HK__STAGE_AGREE)
			hk__agree_prepare(request);
		else
			hk__tuner_words(request->tuner, request->words);
		status = hk__group_bind_agree(group, request->stage, &program);
		call = (struct hk__call){ .in = request->words,
					  .out = request->least,
					  .sizes = { HK__AGREE_WORDS, NULL },
					  .type = HK_TYPE_UINT64,
					  .op = HK_REDOP_MIN };
	} else {
		request->sigs = hk__mem_zalloc(group->alloc, group->n, sizeof(struct hk__call_sig));
		status = request->sigs ? hk__group_bind_agree(group, request->stage, &program)
				       : HK_ENOMEM;
		call = (struct hk__call){ .in = &request->sig,
					  .out = request->sigs,
					  .sizes = { sizeof(struct hk__call_sig), NULL },
					  .type = HK_TYPE_UINT8,
					  .op = HK_REDOP_SUM };
	}
	if (status == HK_OK)
		status = hk__program_start(program, &call);
	request->program = status == HK_OK ? program : NULL;
	if (status == HK_OK && group->chans.trace)
		stage_trace(request, &call);
	if (status == HK_OK && request->stage == HK__STAGE_RUN)
		hk__record_algo(request);
	return status;
}

/* A stage is over: the next one, or the end. */
static enum hk_status stage_end(struct hk_request *request)
{
	struct hk_group *group = request->group;
	struct hk_why why;

	request->program = NULL;
	if (group->chans.trace)
		hk__trace_end(group, HK_OK);
	if (request->stage == HK__STAGE_RUN) {
		hk__tuner_end(request->tuner, request->began);
		return HK_OK;
	}
	if (request->stage == HK__STAGE_TUNE) {
		for (unsigned m = 0; m < HK__COPY_COUNT; m++)
			request->least[m] = ~request->least[m];
		hk__tuner_decide(group, request->tuner, request->least);
		request->stage = HK__STAGE_RUN;
		return HK_INPROGRESS;
	}
	if (request->stage == HK__STAGE_AGREE) {
		if (request->call.in_counts)
			request->call.sizes.count = ~request->least[2];
		bool same = request->least[0] == ~request->least[1];
		request->stage = same ? HK__STAGE_RUN : HK__STAGE_REPORT;
		return HK_INPROGRESS;
	}
	hk__agree_explain(request, &why);
	hk__group_fail(group, HK_EMISMATCH, why.text); /* as on all ranks: they know */
	return HK_EMISMATCH;
}

static enum hk_status collective_poll(struct hk_request *request, bool *moved)
{
	enum hk_status status;

	do {
		bool stepped = false;

		status = request->program ? HK_OK : stage_begin(request);
		if (status == HK_OK)
			status = hk__program_poll(request->program, &stepped);
		*moved |= stepped;
		if (status != HK_OK)
			return status;
		status = stage_end(request);
	} while (status == HK_INPROGRESS);
	return status;
}

/* ---- all of a group ---- */

static void group_poll_collectives(struct hk_group *group, bool *moved)
{
	while (group->head) {
		struct hk_request *request = group->head;

		if (request->held && !hk__staged_begun(request))
			return;
		enum hk_status status = collective_poll(request, moved);

		if (status == HK_INPROGRESS)
			return;
		*moved = true;
		if (status != HK_OK) {
			hk__request_fail(request, status);
			return;
		}
		group->head = request->next;
		if (!group->head)
			group->tail = NULL;
		request_over(request, HK_OK);
	}
}

static enum hk_status transfer_poll(struct hk_request *request, bool *moved)
{
	struct hk_group *group = request->group;
	struct hk_chan *chan = request->transfer.chan;

	if (request->staged)
		return hk__staged_poll(request, moved);
	if (!chan) {
		enum hk_status status = hk__p2p_begin(request, moved);

		if (status != HK_OK)
			return status;
		chan = request->transfer.chan;
		request->transfer.trace = group->chans.trace;
		if (group->chans.trace)
			request->began = hk__now_ns();
	}
	/* One that came before on the same channel is not done. */
	if (chan->pass == group->pass)
		return HK_INPROGRESS;
	bool stepped;
	enum hk_status status = hk__transfer_poll(&request->transfer, &stepped);
	*moved |= stepped;
	if (status == HK_INPROGRESS)
		chan->pass = group->pass;
	else if (request->p2p.shared)
		hk__p2p_end(request);
	return status;
}

static void group_poll_transfers(struct hk_group *group, bool *moved)
{
	struct hk_request **link = &group->transfers, *last = NULL;

	group->pass++;
	enum hk_status said = group->p2p.unsaid ? hk__p2p_say(&group->p2p, moved) : HK_OK;
	while (*link) {
		struct hk_request *request = *link;
		enum hk_status status = said == HK_OK ? transfer_poll(request, moved) : said;

		if (status == HK_INPROGRESS) {
			last = request;
			link = &request->next;
			continue;
		}
		*moved = true;
		/* One that no channel is left for was not begun, and harms no other. */
		if (status != HK_OK && (status != HK_ELIMIT || request->transfer.chan)) {
			hk__request_fail(request, status);
			return;
		}
		*link = request->next;
		request_over(request, status);
	}
	group->transfers_tail = last;
}

static void group_poll(struct hk_group *group, enum hk_status net_status, bool *moved)
{
	bool stepped = false;

	if (net_status != HK_OK && group->head)
		hk__request_fail(group->head, net_status);
	else if (net_status != HK_OK && group->transfers)
		hk__request_fail(group->transfers, net_status);
	if (group->head)
		group_poll_collectives(group, &stepped);
	if (group->transfers)
		group_poll_transfers(group, &stepped);
	if (stepped) {
		group->left_looks = 0;
		group->stuck_since = 0;
	}
	*moved |= stepped;
}

/* Beside operations: who is gone, who waits in vain, who agrees on what. */
static void world_tend(struct hk__world *world, bool *moved)
{
	for (struct hk__consent *consent = world->consents; consent;
	     consent = hk__consent_next(consent))
		(void)hk__consent_poll(consent, moved);
	/* What can still end well, with what was sent before, does. */
	if (world->health.pending && !*moved) {
		hk__health_apply(world);
		*moved = true;
	}
	if (world->looked != world->net->watched) {
		world->looked = world->net->watched;
		hk__health_look(world);
		hk__consents_serve(world);
	}
}

void hk__world_progress(struct hk__world *world, bool *moved_out)
{
	struct hk_group **link = &world->active;
	enum hk_status status = hk__net_poll(world->net);

	*moved_out = false;
	while (*link) {
		struct hk_group *group = *link;

		group_poll(group, status, moved_out);
		if (group->head || group->transfers) {
			link = &group->next_active;
		} else {
			group->is_active = false;
			*link = group->next_active;
		}
	}
	for (struct hk_group *group = world->asked; group; group = group->next_asked)
		hk__windows_poll(group, moved_out);
	world_tend(world, moved_out);
}

/* ---- submitting ---- */

static void group_enqueue(struct hk_group *group, struct hk_request *request)
{
	struct hk_request **head = request->transfers ? &group->transfers : &group->head;
	struct hk_request **tail = request->transfers ? &group->transfers_tail : &group->tail;

	request->next = NULL;
	request->queued = true;
	if (*tail)
		(*tail)->next = request;
	else
		*head = request;
	*tail = request;
	if (!group->is_active) {
		group->is_active = true;
		group->next_active = group->world->active;
		group->world->active = group;
	}
}

/* Under the lock: what was found so far is of whoever moves requests on. */
static void request_look_up(struct hk_request *request)
{
	struct hk_group *group = request->group;

	if (request->transfers)
		request->transfer.method = group->method;
	else
		request->tuner = hk__tuner_of(group, request->coll, hk__request_class(request));
}

enum hk_status hk__group_submit(struct hk_group *group, struct hk_request *request)
{
	struct hk__world *world = group->world;
	enum hk_status status;

	hk__world_lock(world);
	status = group->failed;
	if (status == HK_OK) {
		request->status = HK_INPROGRESS;
		request_look_up(request);
		if (!request->transfers)
			request->sig.number = ++group->number;
		group_enqueue(group, request);
		hk__record_call(request);
	} else {
		request->status = status;
	}
	hk__world_unlock(world);
	if (world->threaded)
		hk__net_kick(world->net);
	return status;
}

/* ---- waiting ---- */

static enum hk_status await_thread(struct hk__world *world, hk__over_fn *over, const void *ctx,
				   uint64_t timeout_ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until); /* as `over` was made to expect */
	until.tv_sec += (time_t)(timeout_ns / 1000000000);
	until.tv_nsec += (long)(timeout_ns % 1000000000);
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	while (!over(ctx)) {
		if (pthread_cond_timedwait(&world->over, &world->lock, &until) == ETIMEDOUT)
			return HK_ETIMEDOUT;
	}
	return HK_OK;
}

static enum hk_status await_here(struct hk__world *world, hk__over_fn *over, const void *ctx,
				 uint64_t timeout_ns)
{
	struct hk__wait wait = { .net = world->net,
				 .spins = world->spins,
				 .yields = world->yields,
				 .timeout_ns = timeout_ns,
				 .watch_ns = world->watch_ns,
				 .sleeps = hk__record_sleep,
				 .sleeps_ctx = world };

	for (;;) {
		bool moved;

		hk__world_progress(world, &moved);
		if (over(ctx))
			return HK_OK;
		if (world->helped)
			hk__world_give_way(world);
		enum hk_status waited = hk__wait_step(&wait, moved);
		if (waited != HK_OK)
			return waited;
	}
}

enum hk_status hk__world_await_until(struct hk__world *world, hk__over_fn *over, const void *ctx,
				     uint64_t timeout_ns)
{
	return world->threaded ? await_thread(world, over, ctx, timeout_ns)
			       : await_here(world, over, ctx, timeout_ns);
}

static bool status_is_final(const void *ctx)
{
	const enum hk_status *status = ctx;

	return *status != HK_INPROGRESS;
}

enum hk_status hk__world_await(struct hk__world *world, const enum hk_status *status,
			       uint64_t timeout_ns)
{
	return hk__world_await_until(world, status_is_final, status, timeout_ns);
}

static bool queue_expired(struct hk_request *request, uint64_t now)
{
	for (; request; request = request->next) {
		if (request->deadline && now >= request->deadline) {
			hk__request_time_out(request);
			return true;
		}
	}
	return false;
}

bool hk__world_expire(struct hk__world *world)
{
	uint64_t now = hk__now_ns();
	bool any = false;

	for (struct hk_group *group = world->active; group; group = group->next_active) {
		any |= queue_expired(group->head, now) || queue_expired(group->transfers, now);
	}
	return any;
}

enum hk_status hk__group_adopt(struct hk_group *group, struct hk_request *request,
			       enum hk_status polled)
{
	group_enqueue(group, request);
	if (polled != HK_INPROGRESS)
		hk__request_fail(request, polled);
	return hk__request_await(request, 0);
}
