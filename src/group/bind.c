/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - from a call to a program: the algorithm is chosen (once for each
 * collective and size), its plan made, proved and bound (once), and found again.
 */
#include "group/group.h"

#include <hocket/check.h>

#include <string.h>

/* Larger built-in plans take seconds to prove; their families are proved in tests. */
#define PROVE_RANKS_MAX 64u

/* ---- choosing ---- */

/*
 * The class of a call: the logarithm of the bytes of V (struct hk_algo_info). All
 * calls of a class get one algorithm, so ranks decide alike, whatever came first.
 */
uint32_t hk__request_class(const struct hk_request *request)
{
	const struct hk__call *call = &request->call;
	uint64_t count = call->sizes.count;
	uint32_t n = request->group->n, class = 0;

	if (call->sizes.counts) {
		count = 0;
		for (uint32_t r = 0; r < n; r++)
			count += call->sizes.counts[r];
	} else if (!hk__coll_vector(request->coll)) {
		count *= n;
	}
	uint64_t bytes = count * hk_type_size(call->type);
	if (bytes > 1)
		class = 64 - (uint32_t)__builtin_clzll(bytes - 1);
	return class < HK__CLASSES ? class : HK__CLASSES - 1;
}

static double class_bytes(uint32_t class)
{
	return (double)(UINT64_C(1) << class);
}

/* ---- proving and binding ---- */

static enum hk_status plan_prove(struct hk_group *group, const struct hk_plan *plan, bool inplace,
				 struct hk_why *why)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };

	opts.inplace = inplace;
	opts.alloc = group->alloc;
	enum hk_status status = hk_check(plan, &opts, &report);
	if (status == HK_EREFUSED)
		return hk__why(why, status, "%s", report.why.text);
	if (status != HK_OK)
		return hk__why(why, status, "the plan could not be checked: %s",
			       hk_status_text(status));
	return HK_OK;
}

static enum hk_status plan_prove_both(struct hk_group *group, const struct hk_plan *plan,
				      struct hk_why *why)
{
	enum hk_status status = plan_prove(group, plan, false, why);

	if (status == HK_OK && plan->inplace)
		status = plan_prove(group, plan, true, why);
	return status;
}

enum hk_status hk__group_prove(struct hk_group *group, const struct hk_plan *plan)
{
	const struct hk_plan **known = group->proved.items;

	for (size_t i = 0; i < group->proved.count; i++) {
		if (known[i] == plan)
			return HK_OK;
	}
	enum hk_status status = plan_prove_both(group, plan, &group->why);
	if (status != HK_OK)
		return status;
	const struct hk_plan **place = hk__array_push(&group->proved);
	if (!place)
		return hk__group_refuse(group, HK_ENOMEM, "no memory to remember a plan");
	*place = plan;
	return HK_OK;
}

static void bound_fini(struct hk__bound *bound)
{
	hk__program_destroy(bound->program);
	hk_plan_free(bound->plan);
}

void hk__group_unbind(struct hk_group *group)
{
	for (size_t i = 0; i < group->bound.count; i++)
		bound_fini(hk__array_at(&group->bound, i));
	hk__array_fini(&group->bound);
	hk__array_fini(&group->proved);
}

/* Where whoever performs a request leaves what there is to say about it. */
static struct hk_why *group_net_why(struct hk_group *group)
{
	return &group->world->net->why;
}

static enum hk_status bound_make_plan(struct hk_group *group, struct hk__bound *bound)
{
	struct hk_plan_opts opts;
	struct hk_algo_info algo = { .size = sizeof(algo) };
	struct hk_why why;

	if (bound->given)
		return HK_OK;
	if (hk_algo_find(bound->coll, bound->algo, &algo) != HK_OK)
		return HK_EINVAL;
	hk__select_plan_opts(&group->view, &algo, &opts);
	opts.root = bound->root;
	opts.alloc = group->alloc;
	enum hk_status status = hk_plan_create(bound->coll, group->n, &opts, &why, &bound->plan);
	return status == HK_OK ? HK_OK : hk__why(group_net_why(group), status, "%s", why.text);
}

/* What a net said of it is the reason; else there is but the status. */
static void bind_explain(struct hk_group *group, enum hk_coll coll, enum hk_status status)
{
	struct hk_why why;

	hk__world_why(group->world, &why);
	hk__why(group_net_why(group), status, "cannot bind %s: %s", hk_coll_name(coll),
		why.text[0] ? why.text : hk_status_text(status));
}

/* A new row, or an error and none. */
static enum hk_status group_bind_new(struct hk_group *group, const struct hk__bound *like,
				     uint32_t *index_out)
{
	struct hk__bound bound = *like;
	enum hk_status status = bound_make_plan(group, &bound);

	if (status == HK_OK && bound.plan && group->n <= PROVE_RANKS_MAX)
		status = plan_prove_both(group, bound.plan, group_net_why(group));
	if (status == HK_OK) {
		struct hk__program_spec spec = { .plan = bound.given ? bound.given : bound.plan,
						 .chans = &group->chans,
						 .rank = group->rank,
						 .alloc = group->alloc };

		hk_assert(spec.plan); /* one of them is always there */
		bound.inplace = spec.plan->inplace;
		status = hk__program_create(&spec, &bound.program);
		if (status != HK_OK)
			bind_explain(group, bound.coll, status);
	}
	struct hk__bound *row = status == HK_OK ? hk__array_push(&group->bound) : NULL;
	if (!row) {
		bound_fini(&bound);
		return status == HK_OK ? HK_ENOMEM : status;
	}
	*row = bound;
	*index_out = (uint32_t)(group->bound.count - 1);
	return HK_OK;
}

static enum hk_status group_find(struct hk_group *group, const struct hk__bound *like,
				 uint32_t *index_out)
{
	const struct hk__bound *rows = group->bound.items;

	for (size_t i = 0; i < group->bound.count; i++) {
		if (rows[i].coll == like->coll && rows[i].root == like->root &&
		    rows[i].given == like->given && rows[i].algo == like->algo) {
			*index_out = (uint32_t)i;
			return HK_OK;
		}
	}
	return group_bind_new(group, like, index_out);
}

static struct hk__bound *group_row(struct hk_group *group, uint32_t index)
{
	return hk__array_at(&group->bound, index);
}

/* Chosen once for all calls of a class. */
static enum hk_status group_choose(struct hk_group *group, enum hk_coll coll, uint32_t class,
				   const char **algo_out)
{
	const char **chosen = &group->chosen[coll][class];

	if (!*chosen) {
		struct hk_algo_info algo = { .size = sizeof(algo) };
		enum hk_status status = hk__group_select(group, coll, class_bytes(class), &algo);

		if (status != HK_OK)
			return status;
		*chosen = algo.name;
	}
	*algo_out = *chosen;
	return HK_OK;
}

enum hk_status hk__group_bind(struct hk_group *group, struct hk_request *request,
			      struct hk__program **program_out)
{
	struct hk__bound like = { .coll = request->coll,
				  .algo = request->algo,
				  .root = request->root,
				  .given = request->plan };
	enum hk_status status = HK_OK;
	uint32_t index;

	if (!request->algo && !request->plan)
		status = group_choose(group, request->coll, hk__request_class(request), &like.algo);
	if (status == HK_OK)
		status = group_find(group, &like, &index);
	if (status != HK_OK)
		return status;
	if (request->inplace && !group_row(group, index)->inplace)
		return hk__why(group_net_why(group), HK_EINVAL, "%s by %s does not work in place",
			       hk_coll_name(request->coll), like.algo ? like.algo : "this plan");
	*program_out = group_row(group, index)->program;
	return HK_OK;
}

enum hk_status hk__group_bind_agree(struct hk_group *group, enum hk__stage stage,
				    struct hk__program **program_out)
{
	bool agree = stage != HK__STAGE_REPORT;
	struct hk__bound like = { .coll = agree ? HK_COLL_ALLREDUCE : HK_COLL_ALLGATHER };
	uint32_t *known = agree ? &group->agree_bound : &group->report_bound, index;

	if (!*known) {
		struct hk_algo_info algo = { .size = sizeof(algo) };

		enum hk_status status = hk__group_select(group, like.coll, 64, &algo);
		if (status == HK_OK) {
			like.algo = algo.name;
			status = group_find(group, &like, &index);
		}
		if (status != HK_OK)
			return status;
		*known = index + 1;
	}
	*program_out = group_row(group, *known - 1)->program;
	return HK_OK;
}

enum hk_status hk_group_choice(struct hk_group *group, enum hk_coll coll, uint64_t count,
			       enum hk_type type, struct hk_choice *choice_out)
{
	struct hk_request request = { .group = group, .coll = coll };

	if (!group || hk__world_inherited(group->world) || !choice_out || coll >= HK_COLL_COUNT ||
	    !hk_type_size(type))
		return HK_EINVAL;
	request.call.sizes.count = count;
	request.call.type = type;
	hk__world_lock(group->world); /* a progress thread chooses too */
	const char *algo;
	enum hk_status status = group_choose(group, coll, hk__request_class(&request), &algo);
	hk__world_unlock(group->world);
	if (status == HK_OK) {
		struct hk_choice full = { .algo = algo, .net = hk__net_name(group->world->net) };

		if (hk__result_copy(choice_out, &full, sizeof(full)) != HK_OK)
			return hk__group_refuse(group, HK_EINVAL,
						"the size of a struct hk_choice was not set");
	}
	return status == HK_OK
		       ? HK_OK
		       : hk__group_refuse(group, status, "no memory to choose an algorithm");
}
