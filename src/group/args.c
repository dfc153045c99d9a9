/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c - from call to request: invalid arguments are refused before anything
 * is begun, and the rest becomes a request.
 */
#include "group/call.h"

#include "model/cost.h"

#include <stdio.h>
#include <string.h>

/* ---- refusals ---- */

/* Elements of in and out of this rank. */
void hk__args_lengths(const struct hk_group *group, const struct hk__call_args *args,
		      uint64_t *in_out, uint64_t *out_out)
{
	struct hk__coll_lengths call = { .coll = args->coll,
					 .rank = group->rank,
					 .n = group->n,
					 .root = args->root,
					 .sizes = { args->count, args->counts },
					 .in_counts = args->in_counts,
					 .out_counts = args->out_counts };

	hk__coll_lengths(&call, in_out, out_out);
}

/* Where one buffer lies in the other if they share memory, in elements. */
static uint64_t args_offset(const struct hk_group *group, const struct hk__call_args *args)
{
	uint64_t before = 0;

	if (hk__coll_vector(args->coll))
		return 0;
	for (uint32_t r = 0; r < group->rank; r++)
		before += args->counts ? args->counts[r] : args->count;
	return before;
}

static enum hk_status args_check_buffers(struct hk_group *group, const struct hk__call_args *args,
					 bool *inplace_out)
{
	uint64_t in_len, out_len;
	size_t size = hk_type_size(args->type);
	uintptr_t in = (uintptr_t)args->in, out = (uintptr_t)args->out;
	const char *name = hk_coll_name(args->coll);

	hk__args_lengths(group, args, &in_len, &out_len);
	*inplace_out = false;
	if (in_len > UINT64_MAX / 16 || out_len > UINT64_MAX / 16)
		return hk__group_refuse(group, HK_ELIMIT, "%s: more elements than memory can hold",
					name);
	if ((in_len && !in) || (out_len && !out))
		return hk__group_refuse(group, HK_EINVAL, "%s: `%s` is NULL", name,
					in_len && !in ? "in" : "out");
	if (!in_len || !out_len || in >= out + out_len * size || out >= in + in_len * size)
		return HK_OK;
	uintptr_t offset = args_offset(group, args) * size;
	bool inside = args->coll == HK_COLL_REDUCESCATTER || args->coll == HK_COLL_SCATTER
			      ? out == in + offset
			      : in == out + offset;
	if (!hk__coll_inplace(args->coll))
		return hk__group_refuse(group, HK_EINVAL,
					"%s: has no in-place form, but the "
					"buffers overlap",
					name);
	if (!inside)
		return hk__group_refuse(
			group, HK_EINVAL,
			"%s: `in` and `out` overlap, but not as the in-place form requires", name);
	*inplace_out = true;
	return HK_OK;
}

static enum hk_status args_check(struct hk_group *group, const struct hk__call_args *args)
{
	const char *name = hk_coll_name(args->coll);

	if (!hk_type_size(args->type))
		return hk__group_refuse(group, HK_EINVAL, "%s: unknown type %d", name,
					(int)args->type);
	if (!hk_redop_valid(args->type, args->op))
		return hk__group_refuse(group, HK_EINVAL, "%s: %s has no operation %s", name,
					hk_type_name(args->type), hk_redop_name(args->op));
	if (args->root >= group->n)
		return hk__group_refuse(group, HK_EINVAL, "%s: root %u is not one of the %u ranks",
					name, args->root, group->n);
	return HK_OK;
}

/* The options, whatever version of them the caller knows. */
enum hk_status hk__opts_read(struct hk_group *group, const struct hk_opts *opts,
			     struct hk_opts *opts_out)
{
	*opts_out = (struct hk_opts)HK_OPTS_INIT;
	if (!opts)
		return HK_OK;
	if (hk__opts_copy(opts_out, sizeof(*opts_out), opts) != HK_OK)
		return hk__group_refuse(group, HK_EINVAL,
					"options of an unknown size or version: "
					"initialize them with HK_OPTS_INIT");
	return HK_OK;
}

/* Whether there is a stream: a rank that has no buffer of a call says so by it. */
bool hk__opts_stream(const struct hk_opts *opts)
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
		hk_plan_free(plan);
	return status;
}

static enum hk_status request_take_plan(struct hk_group *group, struct hk_request *request,
					const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	request->plan = plan;
	hk_plan_describe(plan, &info);
	if (info.coll != request->coll || info.nranks != group->n || info.root != request->root)
		return hk__group_refuse(group, HK_EINVAL,
					"the plan is for %s among %u ranks (root %u), the "
					"call is %s among %u (root %u)",
					hk_coll_name(info.coll), info.nranks, info.root,
					hk_coll_name(request->coll), group->n, request->root);
	if (request->inplace && !info.inplace)
		return hk__group_refuse(group, HK_EINVAL,
					"the plan \"%s\" of %s does not work in place", info.algo,
					hk_coll_name(info.coll));
	if (info.signals != HK_SIGNALS_NONE)
		return hk__group_refuse(group, HK_EINVAL,
					"the plan \"%s\" of %s puts and signals, which groups do "
					"not perform yet",
					info.algo, hk_coll_name(info.coll));
	snprintf(request->sig.algo, sizeof(request->sig.algo), "plan %s", info.algo);
	return hk__group_prove(group, plan);
}

/* The algorithm of that name; the name that was given last is remembered. */
static enum hk_status algo_named(struct hk_group *group, const struct hk_request *request,
				 const char *name, const char **algo_out)
{
	struct hk__named *named = &group->named[request->coll];
	struct hk_algo_info algo = { .size = sizeof(algo) };

	*algo_out = named->algo;
	if (named->algo && strcmp(named->given, name) == 0)
		return HK_OK;
	if (hk_algo_find(request->coll, name, &algo) != HK_OK)
		return hk__group_refuse(group, HK_EINVAL,
					"%s has no algorithm \"%s\": `hocket list` "
					"shows those it has",
					hk_coll_name(request->coll), name);
	if (algo.onesided)
		return hk__group_refuse(group, HK_EINVAL,
					"algorithm \"%s\" of %s puts and signals, which groups "
					"do not perform yet",
					algo.name, hk_coll_name(request->coll));
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
		snprintf(request->sig.algo, sizeof(request->sig.algo), "%s", request->algo);
	return status;
}

void hk__request_init(struct hk_request *request, struct hk_group *group,
		      const struct hk_opts *opts)
{
	request->group = group;
	request->status = HK_INPROGRESS;
	request->fd = -1;
	request->timeout_ns = opts->timeout_ns ? opts->timeout_ns : group->timeout_ns;
	request->sig.tag = opts->tag;
}

enum hk_status hk__request_fill(struct hk_request *request, struct hk_group *group,
				const struct hk__call_args *args, const struct hk_opts *opts)
{
	enum hk_status status = args_check(group, args);

	hk__request_init(request, group, opts);
	request->coll = args->coll;
	request->root = args->root;
	request->call = (struct hk__call){ .in = args->in,
					   .out = args->out,
					   .sizes = { args->count, args->counts },
					   .type = args->type,
					   .op = args->op,
					   .factor = opts->factor,
					   .in_counts = args->in_counts,
					   .out_counts = args->out_counts };
	if (args->in_counts && group->n == 1)
		request->call.sizes.count = args->in_counts[0]; /* nobody to learn it from */
	request->sig.coll = args->coll;
	request->sig.count = args->in_counts ? 0 : args->count;
	request->sig.type = args->type;
	request->sig.op = args->op;
	request->sig.root = args->root;
	if (status == HK_OK)
		status = args_check_buffers(group, args, &request->inplace);
	if (status == HK_OK && args->op == HK_REDOP_PREMULSUM && !opts->factor)
		status = hk__group_refuse(group, HK_EINVAL,
					  "%s: premulsum needs options with a "
					  "factor",
					  hk_coll_name(args->coll));
	if (status == HK_OK && (opts->algo || opts->plan))
		status = request_take_algo(group, request, opts);
	request->stage = hk__stage_wanted(request) ? HK__STAGE_AGREE : HK__STAGE_RUN;
	return status;
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

enum hk_status hk__request_go(struct hk_group *group, struct hk_request *request,
			      const struct hk_opts *opts)
{
	if (opts->request || group->batching)
		return request_keep(group, request, opts);
	enum hk_status status = hk__group_submit(group, request);
	return status == HK_OK ? hk__request_await(request, 0) : status;
}
