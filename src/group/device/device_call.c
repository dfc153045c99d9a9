/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_call.c - calls on device memory: from a request to a launch. A launch waits for
 * nobody. Programs are made when they are first needed, alike on all ranks (I12): by
 * size and collective alone.
 */
#include "group/device/device.h"

#include "exec/device/device.h"
#include "gpu/cuda.h"
#include "group/device/staged.h"

#include <string.h>

bool hk__group_on_device(const void *in, const void *out)
{
	int device;

	return hk__cuda_memory(in, &device) || hk__cuda_memory(out, &device);
}

/* ---- what has failed meanwhile ---- */

struct failure {
	struct hk_group *group;
	struct hk__flat_report report;
};

static void group_fail_late(void *ctx)
{
	const struct failure *failure = ctx;
	const struct hk__flat_report *report = &failure->report;
	struct hk_group *group = failure->group;
	enum hk_status status = HK_ETIMEDOUT;
	char line[HK_WHY_MAX];
	struct hk__text text;

	if (group->failed != HK_OK)
		return;
	hk__text_init(&text, line, sizeof(line));
	if (report->pair != HK__FLAT_COLLECTIVE) {
		status = hk__group_device_describe(group, report, &text);
	} else {
		hk__text_add(&text, "rank %u: call number %u on the device %s: lane %u at step %u",
			     group->rank, report->epoch,
			     report->aborted ? "was aborted" : "not finished in time", report->lane,
			     report->step);
		if (report->peer != group->rank)
			hk__text_add(&text, " waited for rank %u", report->peer);
	}
	hk__health_revoke(group, status, HK_NONE, line);
}

enum hk_status hk__group_device_look(struct hk_group *group)
{
	struct failure failure = { .group = group };

	if (!group->device || !hk__gpu_failed(hk__group_gpu(group), group->rank, &failure.report))
		return HK_OK;
	hk__world_run(group->world, group_fail_late, &failure);
	return hk__group_failed(group);
}

/* ---- a call ---- */

/* *ordinal_out: the GPU that the memory is of; as it was where there is none. */
static enum hk_status request_fits(struct hk_group *group, const struct hk_request *request,
				   const struct hk_opts *opts, int *ordinal_out)
{
	const char *name = hk__request_name(request);
	bool in = !request->call.in || hk__cuda_memory(request->call.in, ordinal_out);
	bool out = !request->call.out || hk__cuda_memory(request->call.out, ordinal_out);

	if (in != out)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: `%s` is device memory, but `%s` is not", name,
					in ? "in" : "out", in ? "out" : "in");
	if (!in)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: a stream is given, but `in` and `out` are not device "
					"memory",
					name);
	if (opts->request)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: calls on device memory complete on their stream: "
					"no request",
					name);
	return HK_OK;
}

/* The algorithm is the caller's, or the model's; how messages go is the model's. */
static enum hk_status request_choose(struct hk_group *group, const struct hk_request *request,
				     struct hk__gpu_answer *answer_out)
{
	struct hk__gpu_ask ask = { .coll = request->coll,
				   .given = request->plan,
				   .type = request->call.type,
				   .op = request->call.op,
				   .count = request->call.sizes.count };
	struct hk_algo_info algo = { .size = sizeof(algo) };

	if (request->algo && !request->plan) {
		if (hk_algo_find(request->coll, request->algo, &algo) != HK_OK)
			return hk__group_refuse(group, HK_EINVAL, "%s has no algorithm \"%s\"",
						hk_coll_name(request->coll), request->algo);
		ask.algo = algo.name;
	}
	return hk__gpu_choose(hk__group_gpu(group), &ask, &group->why, answer_out);
}

static enum hk_status request_plan(struct hk_group *group, const struct hk_request *request,
				   struct hk__gpu_call *call)
{
	struct hk__gpu_plan what = { .coll = request->coll, .given = request->plan };
	struct hk__gpu_answer answer = { .algo = NULL };
	struct hk_algo_info algo = { .size = sizeof(algo) };
	enum hk_status status = request_choose(group, request, &answer);

	if (status != HK_OK)
		return status;
	call->lines = answer.lines;
	if (!what.given) {
		status = hk_algo_find(request->coll, answer.algo, &algo);
		hk_assert(status == HK_OK);
		hk__select_plan_opts(&group->view, &algo, &what.opts);
		what.opts.algo = algo.name;
		what.opts.root = request->root;
	}
	status = hk__gpu_plan(hk__group_gpu(group), &what, &group->why, &call->plan);
	if (status == HK_OK)
		status = hk__group_prove(group, call->plan);
	if (status == HK_OK && request->inplace && !call->plan->inplace)
		status = hk__group_refuse(group, HK_EINVAL, "%s by %s does not work in place",
					  hk_coll_name(request->coll), what.opts.algo);
	return status;
}

int hk__group_ordinal(void *stream)
{
	const struct hk__cuda *cu = hk__cuda_get();
	hk__cu_context context;
	int ordinal = 0;

	if (stream && cu->stream_context(stream, &context) == HK__CU_SUCCESS &&
	    cu->push(context) == HK__CU_SUCCESS) {
		(void)cu->current(&ordinal);
		(void)cu->pop(&context);
	} else if (cu->current(&ordinal) != HK__CU_SUCCESS) {
		ordinal = 0;
	}
	return ordinal;
}

/* Once, where it matters: what is staged for want of kernels could be faster. */
static void image_miss(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!hk__cuda_image() && !atomic_flag_test_and_set(&said))
		hk__log(HK_LOG_INFO, "this build has no GPU code: calls on device memory are "
				     "staged through host memory; build it with nvcc");
}

enum hk_status hk__group_device_ready(struct hk_group *group, const struct hk_request *request,
				      const struct hk_opts *opts, int ordinal)
{
	const char *name = hk__request_name(request);
	enum hk_status status = HK_OK;

	if (group->world->origin.env.gpu == HK__GPU_USE_OFF)
		return hk__group_refuse(group, HK_EINVAL, "%s: device memory, but HOCKET_GPU=off",
					name);
	if (!group->device && hk__group_gpu_path(group) != HK__GPU_STAGED)
		status = hk__group_device_open(group,
					       ordinal < 0 ? hk__group_ordinal(opts->stream)
							   : ordinal,
					       request->timeout_ns);
	if (hk__group_gpu_path(group) == HK__GPU_STAGED)
		image_miss();
	if (status != HK_OK || hk__group_gpu_path(group) == HK__GPU_STAGED || ordinal < 0)
		return status;
	int own = hk__gpu_ordinal(hk__group_gpu(group), group->rank);
	if (own != ordinal)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: memory of GPU %d, but rank %u uses GPU %d", name,
					ordinal, group->rank, own);
	return HK_OK;
}

enum hk_status hk__group_device_call(struct hk_group *group, const struct hk_request *request,
				     const struct hk_opts *opts)
{
	struct hk__gpu_call call = { .rank = group->rank,
				     .in = request->call.in,
				     .out = request->call.out,
				     .sizes = request->call.sizes,
				     .type = request->call.type,
				     .op = request->call.op,
				     .factor = request->call.factor,
				     .timeout_ns = request->timeout_ns,
				     .stream = opts->stream };
	enum hk_status status = hk__group_device_look(group);
	int ordinal = -1;

	if (status == HK_OK)
		status = request_fits(group, request, opts, &ordinal);
	if (status == HK_OK && group->batching)
		return hk__group_device_note(group, request, opts, ordinal);
	if (status == HK_OK && request->call.in_counts)
		return hk__group_device_alltoallv(group, request, opts, ordinal);
	if (status == HK_OK)
		status = hk__group_device_ready(group, request, opts, ordinal);
	if (status == HK_OK && hk__group_gpu_path(group) == HK__GPU_STAGED)
		return hk__staged_call(group, request, opts);
	if (status == HK_OK)
		status = request_plan(group, request, &call);
	if (status == HK_OK)
		status = hk__gpu_run(hk__group_gpu(group), &call, &group->why);
	return status;
}
