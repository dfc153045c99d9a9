/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - the collectives' entry points: what was asked becomes a request, and
 * what cannot be meant is refused before anything is begun.
 */
#include "group/record/recorder.h"

#include "group/device/device.h"

#include "gpu/cuda.h"
#include "model/cost.h"

#include <stdio.h>
#include <string.h>

/* What the entry points have in common. */
struct asked {
	enum hk_coll coll;
	const void *in;
	void *out;
	uint64_t count;
	const uint64_t *counts;
	enum hk_type type;
	enum hk_redop op;
	uint32_t root;
	const uint64_t *in_counts; /* alltoallv */
	const uint64_t *out_counts;
};

/* ---- refusals ---- */

static uint64_t sum_of(const uint64_t *counts, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; r < n; r++) {
		if (__builtin_add_overflow(sum, counts[r], &sum))
			return UINT64_MAX;
	}
	return sum;
}

/* Elements of in and out of this rank. */
static void asked_lengths(const struct hk_group *group, const struct asked *asked, uint64_t *in_out,
			  uint64_t *out_out)
{
	bool root = !hk__coll_rooted(asked->coll) || asked->root == group->rank;
	uint64_t one = asked->counts ? asked->counts[group->rank] : asked->count;
	uint64_t all = asked->counts ? sum_of(asked->counts, group->n) : 0;

	if (!asked->counts && __builtin_mul_overflow(asked->count, group->n, &all))
		all = UINT64_MAX;

	*in_out = *out_out = one;
	if (asked->coll == HK_COLL_BARRIER)
		*in_out = *out_out = 0;
	else if (asked->coll == HK_COLL_ALLGATHER)
		*out_out = all;
	else if (asked->coll == HK_COLL_REDUCESCATTER)
		*in_out = all;
	else if (asked->coll == HK_COLL_ALLTOALL) {
		*in_out = asked->in_counts ? sum_of(asked->in_counts, group->n) : all;
		*out_out = asked->out_counts ? sum_of(asked->out_counts, group->n) : all;
	} else if (asked->coll == HK_COLL_GATHER)
		*out_out = root ? all : 0;
	else if (asked->coll == HK_COLL_SCATTER)
		*in_out = root ? all : 0;
	else if (asked->coll == HK_COLL_BROADCAST)
		*in_out = root ? one : 0;
	else if (asked->coll == HK_COLL_REDUCE)
		*out_out = root ? one : 0;
}

/* Where one buffer lies in the other if they share memory, in elements. */
static uint64_t asked_offset(const struct hk_group *group, const struct asked *asked)
{
	uint64_t before = 0;

	if (hk__coll_vector(asked->coll))
		return 0;
	for (uint32_t r = 0; r < group->rank; r++)
		before += asked->counts ? asked->counts[r] : asked->count;
	return before;
}

static enum hk_status asked_check_buffers(struct hk_group *group, const struct asked *asked,
					  bool *inplace_out)
{
	uint64_t in_len, out_len;
	size_t size = hk_type_size(asked->type);
	uintptr_t in = (uintptr_t)asked->in, out = (uintptr_t)asked->out;
	const char *name = hk_coll_name(asked->coll);

	asked_lengths(group, asked, &in_len, &out_len);
	*inplace_out = false;
	if (in_len > UINT64_MAX / 16 || out_len > UINT64_MAX / 16)
		return hk__group_refuse(group, HK_ELIMIT, "%s: more elements than memory has",
					name);
	if ((in_len && !in) || (out_len && !out))
		return hk__group_refuse(group, HK_EINVAL, "%s: `%s` is NULL", name,
					in_len && !in ? "in" : "out");
	if (!in_len || !out_len || in >= out + out_len * size || out >= in + in_len * size)
		return HK_OK;
	uintptr_t offset = asked_offset(group, asked) * size;
	bool inside = asked->coll == HK_COLL_REDUCESCATTER || asked->coll == HK_COLL_SCATTER
			      ? out == in + offset
			      : in == out + offset;
	if (!hk__coll_inplace(asked->coll))
		return hk__group_refuse(group, HK_EINVAL,
					"%s: has no form in place, but the "
					"buffers overlap",
					name);
	if (!inside)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: `in` and `out` overlap, and not as "
					"in place",
					name);
	*inplace_out = true;
	return HK_OK;
}

static enum hk_status asked_check(struct hk_group *group, const struct asked *asked)
{
	const char *name = hk_coll_name(asked->coll);

	if (!hk_type_size(asked->type))
		return hk__group_refuse(group, HK_EINVAL, "%s: %d is no type", name,
					(int)asked->type);
	if (!hk_redop_valid(asked->type, asked->op))
		return hk__group_refuse(group, HK_EINVAL, "%s: %s elements have no operation %s",
					name, hk_type_name(asked->type), hk_redop_name(asked->op));
	if (asked->root >= group->n)
		return hk__group_refuse(group, HK_EINVAL, "%s: root %u of %u ranks", name,
					asked->root, group->n);
	return HK_OK;
}

/* The options, whatever version of them the caller knows. */
static enum hk_status opts_read(struct hk_group *group, const struct hk_opts *opts,
				struct hk_opts *opts_out)
{
	*opts_out = (struct hk_opts)HK_OPTS_INIT;
	if (!opts)
		return HK_OK;
	if (hk__opts_copy(opts_out, sizeof(*opts_out), opts) != HK_OK)
		return hk__group_refuse(group, HK_EINVAL,
					"options of an unknown size or version: "
					"begin with HK_OPTS_INIT");
	return HK_OK;
}

/* Whether there is a stream: a rank that has no buffer of a call says so by it. */
static bool opts_stream(const struct hk_opts *opts)
{
	return opts && opts->size >= offsetof(struct hk_opts, stream) + sizeof(opts->stream) &&
	       opts->stream;
}

/* ---- from call to request ---- */

/* Not every algorithm takes machines of any sizes: it says so itself. */
static enum hk_status algo_try(struct hk_group *group, const struct hk_request *request,
			       const struct hk_algo_info *algo)
{
	struct hk_plan_opts opts;
	struct hk_plan *plan;

	hk__select_plan_opts(&group->view, algo, &opts);
	opts.root = request->root;
	opts.alloc = group->alloc;
	enum hk_status status = hk_plan_create(request->coll, group->n, &opts, &group->why, &plan);
	if (status == HK_OK)
		hk_plan_destroy(plan);
	return status;
}

static enum hk_status request_take_plan(struct hk_group *group, struct hk_request *request,
					const struct hk_plan *plan)
{
	struct hk_plan_info info;

	request->plan = plan;
	hk_plan_describe(plan, &info);
	if (info.coll != request->coll || info.nranks != group->n || info.root != request->root)
		return hk__group_refuse(group, HK_EINVAL,
					"the plan is of %s among %u ranks (root %u), the "
					"call of %s among %u (root %u)",
					hk_coll_name(info.coll), info.nranks, info.root,
					hk_coll_name(request->coll), group->n, request->root);
	if (request->inplace && !info.inplace)
		return hk__group_refuse(group, HK_EINVAL,
					"the plan \"%s\" of %s does not work in place", info.algo,
					hk_coll_name(info.coll));
	snprintf(request->card.algo, sizeof(request->card.algo), "plan %s", info.algo);
	return hk__group_prove(group, plan);
}

/* The algorithm of that name; what was asked for last is not looked for again. */
static enum hk_status algo_named(struct hk_group *group, const struct hk_request *request,
				 const char *name, const char **algo_out)
{
	struct hk__named *named = &group->named[request->coll];
	struct hk_algo_info algo;

	*algo_out = named->algo;
	if (named->algo && strcmp(named->given, name) == 0)
		return HK_OK;
	if (hk_algo_find(request->coll, name, &algo) != HK_OK)
		return hk__group_refuse(group, HK_EINVAL,
					"%s has no algorithm \"%s\": `hocket list` "
					"shows those it has",
					hk_coll_name(request->coll), name);
	if (algo.nodes && group->nodes > 1) {
		enum hk_status status = algo_try(group, request, &algo);

		if (status != HK_OK)
			return status;
	}
	*algo_out = algo.name;
	named->algo = NULL;
	if (strlen(name) < sizeof(named->given)) {
		memcpy(named->given, name, strlen(name) + 1);
		named->algo = algo.name;
	}
	return HK_OK;
}

static enum hk_status request_take_algo(struct hk_group *group, struct hk_request *request,
					const struct hk_opts *opts)
{
	if (opts->plan)
		return request_take_plan(group, request, opts->plan);
	enum hk_status status = algo_named(group, request, opts->algo, &request->algo);
	if (status == HK_OK)
		snprintf(request->card.algo, sizeof(request->card.algo), "%s", request->algo);
	return status;
}

static void request_init(struct hk_request *request, struct hk_group *group,
			 const struct hk_opts *opts)
{
	request->group = group;
	request->status = HK_INPROGRESS;
	request->fd = -1;
	request->timeout_ns = opts->timeout_ns ? opts->timeout_ns : group->timeout_ns;
	request->card.tag = opts->tag;
}

/* Into how small slices an operation is worth cutting. */
static uint32_t slice_min_of(const struct hk__world *world, enum hk_coll coll)
{
	return !world->shm && hk__cut_streams(coll) ? 0 : world->slice_min;
}

static enum hk_status request_fill(struct hk_request *request, struct hk_group *group,
				   const struct asked *asked, const struct hk_opts *opts)
{
	enum hk_status status = asked_check(group, asked);

	request_init(request, group, opts);
	request->coll = asked->coll;
	request->root = asked->root;
	request->call = (struct hk__call){ .in = asked->in,
					   .out = asked->out,
					   .sizes = { asked->count, asked->counts },
					   .type = asked->type,
					   .op = asked->op,
					   .factor = opts->factor,
					   .slice_min = slice_min_of(group->world, asked->coll),
					   .in_counts = asked->in_counts,
					   .out_counts = asked->out_counts };
	if (asked->in_counts && group->n == 1)
		request->call.sizes.count = asked->in_counts[0]; /* nobody to learn it from */
	request->card.coll = asked->coll;
	request->card.count = asked->in_counts ? 0 : asked->count;
	request->card.type = asked->type;
	request->card.op = asked->op;
	request->card.root = asked->root;
	if (status == HK_OK)
		status = asked_check_buffers(group, asked, &request->inplace);
	if (status == HK_OK && asked->op == HK_REDOP_PREMULSUM && !opts->factor)
		status = hk__group_refuse(group, HK_EINVAL,
					  "%s: premulsum needs options with a "
					  "factor",
					  hk_coll_name(asked->coll));
	if (status == HK_OK && (opts->algo || opts->plan))
		status = request_take_algo(group, request, opts);
	request->trial = hk__trial_of(group, asked->coll, hk__request_class(request));
	request->stage = hk__stage_wanted(request) ? HK__STAGE_AGREE : HK__STAGE_RUN;
	return status;
}

void hk__batch_note(struct hk_group *group, struct hk_request *request)
{
	request->next = NULL;
	if (group->batch_tail)
		group->batch_tail->next = request;
	else
		group->batch = request;
	group->batch_tail = request;
}

/* A request that outlives its call: the caller's, or a batch's. */
static enum hk_status request_keep(struct hk_group *group, const struct hk_request *like,
				   const struct hk_opts *opts)
{
	struct hk_request *request = hk__mem_zalloc(group->alloc, 1, sizeof(*request));

	if (!request)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a request");
	*request = *like;
	request->kept = opts->request != NULL;
	enum hk_status status = HK_OK;
	if (group->batching) {
		hk__batch_note(group, request);
	} else {
		request->deadline = hk__deadline_ns(hk__now_ns(), request->timeout_ns);
		status = hk__group_submit(group, request);
	}
	if (status != HK_OK) {
		hk__mem_free(group->alloc, request, 1, sizeof(*request));
		return status;
	}
	if (opts->request)
		*opts->request = request;
	return HK_OK;
}

static enum hk_status request_go(struct hk_group *group, struct hk_request *request,
				 const struct hk_opts *opts)
{
	if (opts->request || group->batching)
		return request_keep(group, request, opts);
	enum hk_status status = hk__group_submit(group, request);
	return status == HK_OK ? hk__request_await(request, 0) : status;
}

/* ---- the short way ---- */

static struct hk__recent *asked_recent(struct hk_group *group, const struct asked *asked)
{
	return &group->recent[asked->coll][asked->root % HK__RECENT];
}

/* Whether its buffers are there, and apart, or in place, as those of the recent call. */
static bool asked_placed_like(const struct asked *asked, const struct hk__recent *recent)
{
	uintptr_t in = (uintptr_t)asked->in, out = (uintptr_t)asked->out;

	if ((!in && recent->in_bytes) || (!out && recent->out_bytes))
		return false;
	if (recent->inplace)
		return out - in == recent->apart;
	return in >= out + recent->out_bytes || out >= in + recent->in_bytes || !recent->in_bytes ||
	       !recent->out_bytes;
}

static bool asked_like(const struct asked *asked, const struct hk__recent *recent)
{
	const struct hk__call *call = &recent->call;

	return recent->program && asked->count == call->sizes.count && asked->type == call->type &&
	       asked->op == call->op && asked->root == recent->root && !asked->counts &&
	       !asked->in_counts && asked_placed_like(asked, recent) &&
	       hk__program_like(recent->program, call) &&
	       (!recent->trial || hk__trial_fresh(recent->trial));
}

static void collective_trace(struct hk_group *group, enum hk_coll coll,
			     const struct hk__recent *recent)
{
	hk__trace_begin(group, &(struct hk__trace_begin){ .coll = coll,
							  .stage = HK_TRACE_RUN,
							  .number = group->number,
							  .program = recent->program,
							  .call = &recent->call });
}

/*
 * A call without options, like the one before, while nothing else goes on in the
 * world: its program is known and starts at once. It ends here if it ends soon;
 * else it becomes a request, begun, and waits as all do.
 */
static enum hk_status collective_again(struct hk_group *group, const struct asked *asked)
{
	struct hk__recent *recent = asked_recent(group, asked);
	struct hk__world *world = group->world;
	struct hk__program *program = recent->program;
	enum hk_status status = HK_INPROGRESS;

	hk__program_restart(program, asked->in, asked->out);
	group->number++;
	if (__builtin_expect(group->chans.trace != NULL, 0))
		collective_trace(group, asked->coll, recent);
	hk__record_again(group, recent);
	for (uint32_t look = 0; look < world->looks; look++) {
		bool moved;

		if (world->polls && hk__net_poll(world->net) != HK_OK)
			break; /* the long way says why */
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
	enum hk_status filled = request_fill(&request, group, asked, &opts);
	hk_assert(filled == HK_OK); /* as the call before it */
	request.program = program;
	request.card.number = group->number;
	return hk__group_adopt(group, &request, status);
}

static void collective_remember(struct hk_group *group, const struct asked *asked,
				const struct hk_request *request)
{
	struct hk__recent *recent = asked_recent(group, asked);
	uint64_t in_len, out_len;

	if (asked->counts || asked->in_counts || asked->coll == HK_COLL_BARRIER)
		return;
	recent->program = NULL;
	if (request->algo || request->plan || group->check ||
	    (request->trial && !request->trial->decided))
		return;
	if (hk__group_bind(group, (struct hk_request *)request, &recent->program) != HK_OK)
		return;
	asked_lengths(group, asked, &in_len, &out_len);
	recent->call = request->call;
	recent->root = asked->root;
	recent->trial = request->trial;
	recent->in_bytes = in_len * hk_type_size(asked->type);
	recent->out_bytes = out_len * hk_type_size(asked->type);
	recent->inplace = request->inplace;
	recent->apart = (uintptr_t)asked->out - (uintptr_t)asked->in;
	hk__record_remember(request, recent);
}

static enum hk_status collective(struct hk_group *group, const struct asked *asked,
				 const struct hk_opts *given)
{
	struct hk_request request = { 0 };
	struct hk_opts opts;

	if (!group)
		return HK_EINVAL;
	enum hk_status status = hk__group_failed(group);
	if (status != HK_OK) {
		group->refused = false;
		return status;
	}
	bool on_device = atomic_load_explicit(&hk__cuda_seen, memory_order_relaxed) &&
			 (opts_stream(given) || hk__group_on_device(asked->in, asked->out));
	/* Whether others are active is the progress thread's, where there is one. */
	if (!on_device && !given && !group->world->threaded && !group->world->active &&
	    !group->batching && !group->world->health.pending &&
	    asked_like(asked, asked_recent(group, asked)))
		return collective_again(group, asked);
	status = opts_read(group, given, &opts);
	if (status == HK_OK)
		status = request_fill(&request, group, asked, &opts);
	if (status == HK_OK && on_device)
		return hk__group_device_call(group, &request, &opts);
	if (status == HK_OK)
		status = request_go(group, &request, &opts);
	if (status == HK_OK && !given && !group->world->threaded && !group->batching)
		collective_remember(group, asked, &request);
	return status;
}

/* ---- collectives ---- */

enum hk_status hk_allreduce(struct hk_group *group, const void *in, void *out, uint64_t count,
			    enum hk_type type, enum hk_redop op, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_ALLREDUCE,
					   .in = in,
					   .out = out,
					   .count = count,
					   .type = type,
					   .op = op },
			  opts);
}

enum hk_status hk_reduce(struct hk_group *group, const void *in, void *out, uint64_t count,
			 enum hk_type type, enum hk_redop op, uint32_t root,
			 const struct hk_opts *opts)
{
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_REDUCE,
					   .in = in,
					   .out = out,
					   .count = count,
					   .type = type,
					   .op = op,
					   .root = root },
			  opts);
}

enum hk_status hk_broadcast(struct hk_group *group, const void *in, void *out, uint64_t count,
			    enum hk_type type, uint32_t root, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_BROADCAST,
					   .in = in,
					   .out = out,
					   .count = count,
					   .type = type,
					   .root = root },
			  opts);
}

enum hk_status hk_allgather(struct hk_group *group, const void *in, void *out, uint64_t count,
			    enum hk_type type, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_ALLGATHER,
					   .in = in,
					   .out = out,
					   .count = count,
					   .type = type },
			  opts);
}

enum hk_status hk_gather(struct hk_group *group, const void *in, void *out, uint64_t count,
			 enum hk_type type, uint32_t root, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_GATHER,
					   .in = in,
					   .out = out,
					   .count = count,
					   .type = type,
					   .root = root },
			  opts);
}

enum hk_status hk_reducescatter(struct hk_group *group, const void *in, void *out, uint64_t count,
				enum hk_type type, enum hk_redop op, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_REDUCESCATTER,
					   .in = in,
					   .out = out,
					   .count = count,
					   .type = type,
					   .op = op },
			  opts);
}

enum hk_status hk_scatter(struct hk_group *group, const void *in, void *out, uint64_t count,
			  enum hk_type type, uint32_t root, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_SCATTER,
					   .in = in,
					   .out = out,
					   .count = count,
					   .type = type,
					   .root = root },
			  opts);
}

enum hk_status hk_alltoall(struct hk_group *group, const void *in, void *out, uint64_t count,
			   enum hk_type type, const struct hk_opts *opts)
{
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_ALLTOALL,
					   .in = in,
					   .out = out,
					   .count = count,
					   .type = type },
			  opts);
}

enum hk_status hk_barrier(struct hk_group *group, const struct hk_opts *opts)
{
	return collective(group, &(struct asked){ .coll = HK_COLL_BARRIER }, opts);
}

/* ---- with counts ---- */

static enum hk_status collective_v(struct hk_group *group, const struct asked *asked,
				   const struct hk_opts *opts)
{
	if (!group)
		return HK_EINVAL;
	if (!asked->counts)
		return hk__group_refuse(group, HK_EINVAL, "%sv: `counts` is NULL",
					hk_coll_name(asked->coll));
	return collective(group, asked, opts);
}

enum hk_status hk_allgatherv(struct hk_group *group, const void *in, void *out,
			     const uint64_t *counts, enum hk_type type, const struct hk_opts *opts)
{
	return collective_v(group,
			    &(struct asked){ .coll = HK_COLL_ALLGATHER,
					     .in = in,
					     .out = out,
					     .counts = counts,
					     .type = type },
			    opts);
}

enum hk_status hk_gatherv(struct hk_group *group, const void *in, void *out, const uint64_t *counts,
			  enum hk_type type, uint32_t root, const struct hk_opts *opts)
{
	return collective_v(group,
			    &(struct asked){ .coll = HK_COLL_GATHER,
					     .in = in,
					     .out = out,
					     .counts = counts,
					     .type = type,
					     .root = root },
			    opts);
}

enum hk_status hk_reducescatterv(struct hk_group *group, const void *in, void *out,
				 const uint64_t *counts, enum hk_type type, enum hk_redop op,
				 const struct hk_opts *opts)
{
	return collective_v(group,
			    &(struct asked){ .coll = HK_COLL_REDUCESCATTER,
					     .in = in,
					     .out = out,
					     .counts = counts,
					     .type = type,
					     .op = op },
			    opts);
}

enum hk_status hk_scatterv(struct hk_group *group, const void *in, void *out,
			   const uint64_t *counts, enum hk_type type, uint32_t root,
			   const struct hk_opts *opts)
{
	return collective_v(group,
			    &(struct asked){ .coll = HK_COLL_SCATTER,
					     .in = in,
					     .out = out,
					     .counts = counts,
					     .type = type,
					     .root = root },
			    opts);
}

enum hk_status hk_alltoallv(struct hk_group *group, const void *in, const uint64_t *in_counts,
			    void *out, const uint64_t *out_counts, enum hk_type type,
			    const struct hk_opts *opts)
{
	if (!group)
		return HK_EINVAL;
	if (!in_counts || !out_counts)
		return hk__group_refuse(group, HK_EINVAL, "alltoallv: counts are NULL");
	return collective(group,
			  &(struct asked){ .coll = HK_COLL_ALLTOALL,
					   .in = in,
					   .out = out,
					   .type = type,
					   .in_counts = in_counts,
					   .out_counts = out_counts },
			  opts);
}

/* ---- point to point ---- */

static enum hk_status transfer(struct hk_group *group, bool sends, void *at, uint64_t count,
			       enum hk_type type, uint32_t peer, const struct hk_opts *given)
{
	const char *name = sends ? "send" : "recv";
	struct hk_request request = { 0 };
	struct hk_opts opts;

	if (!group)
		return HK_EINVAL;
	enum hk_status status = hk__group_failed(group);
	group->refused = false;
	if (status == HK_OK)
		status = opts_read(group, given, &opts);
	if (status != HK_OK)
		return status;
	if (!hk_type_size(type) || peer >= group->n || (count && !at) || count > UINT64_MAX / 16)
		return hk__group_refuse(group, HK_EINVAL, "%s: %s", name,
					peer >= group->n      ? "no such rank"
					: !hk_type_size(type) ? "no such type"
					: !at		      ? "the buffer is NULL"
							      : "too many elements");
	if (opts.algo || opts.plan)
		return hk__group_refuse(group, HK_EINVAL, "%s: takes no algorithm and no plan",
					name);
	request_init(&request, group, &opts);
	request.transfers = true;
	request.peer = peer;
	request.card.count = count * hk_type_size(type);
	request.transfer = (struct hk__transfer){
		.sends = sends, .at = at, .left = count * hk_type_size(type), .way = group->way
	};
	if (atomic_load_explicit(&hk__cuda_seen, memory_order_relaxed) &&
	    (opts.stream || hk__group_on_device(at, NULL)))
		return hk__group_device_transfer(group, &request, &opts);
	return request_go(group, &request, &opts);
}

enum hk_status hk_send(struct hk_group *group, const void *in, uint64_t count, enum hk_type type,
		       uint32_t peer, const struct hk_opts *opts)
{
	return transfer(group, true, (void *)in, count, type, peer, opts);
}

enum hk_status hk_recv(struct hk_group *group, void *out, uint64_t count, enum hk_type type,
		       uint32_t peer, const struct hk_opts *opts)
{
	return transfer(group, false, out, count, type, peer, opts);
}

/* ---- batches ---- */

enum hk_status hk_batch_begin(struct hk_group *group)
{
	if (!group)
		return HK_EINVAL;
	if (group->batching)
		return hk__group_refuse(group, HK_EINVAL, "a batch has begun already");
	group->batching = true;
	enum hk_status status = hk__group_failed(group);
	return status == HK_OK ? hk__group_device_look(group) : status;
}

void hk__batch_drop(struct hk_group *group)
{
	while (group->batch) {
		struct hk_request *request = group->batch;

		group->batch = request->next;
		if (!request->kept)
			hk_request_free(request);
	}
	group->batch_tail = NULL;
	group->batching = false;
}

void hk__batch_forget(struct hk_group *group, const struct hk_request *request)
{
	struct hk_request **link = &group->batch;

	group->batch_tail = NULL;
	while (*link) {
		if (*link == request) {
			*link = request->next;
			continue;
		}
		group->batch_tail = *link;
		link = &(*link)->next;
	}
}

enum hk_status hk_batch_end(struct hk_group *group)
{
	enum hk_status status = HK_OK;
	struct hk_request *request, *waited = NULL;

	if (!group)
		return HK_EINVAL;
	if (!group->batching)
		return hk__group_refuse(group, HK_EINVAL, "no batch has begun");
	group->batching = false;
	status = hk__group_device_batch(group);
	request = group->batch;
	group->batch = group->batch_tail = NULL;
	uint64_t now = request ? hk__now_ns() : 0;
	while (request) {
		struct hk_request *next = request->next;
		enum hk_status one;

		request->deadline = hk__deadline_ns(now, request->timeout_ns);
		one = hk__group_submit(group, request);
		status = status == HK_OK ? one : status;
		if (!request->kept) {
			request->waited = waited;
			waited = request;
		}
		request = next;
	}
	while (waited) {
		struct hk_request *next = waited->waited;
		enum hk_status one = hk__request_await(waited, 0);

		status = status == HK_OK ? one : status;
		hk_request_free(waited);
		waited = next;
	}
	return status;
}
