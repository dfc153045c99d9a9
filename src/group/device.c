/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - calls on device memory: from a request to a launch.
 *
 * Ranks of a group in one process share one struct hk__gpu, which the first that
 * needs it makes for all: a launch waits for nobody, so one thread may call for all ranks,
 * one after the other. Programs are made when they are first needed, alike on all
 * ranks (I12): by size and collective alone.
 */
#include "group/device.h"

#include "exec/device/device.h"
#include "gpu/cuda.h"

#include <stdlib.h>
#include <string.h>

struct hk__gpu_share {
	struct hk__gpu_share *next;
	const struct hk_alloc *alloc;
	struct hk__gpu *device;
	uint32_t refs; /* groups */
	/* Which group: no two that share a rank have all of these. */
	unsigned char run[HK__KEY_BYTES];
	uint32_t context, first;
};

/* Of this process; the lock is taken when a group first uses a device, and when it ends. */
static struct hk__gpu_share *shares;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool hk__group_on_device(const void *in, const void *out)
{
	int device;

	return hk__cuda_memory(in, &device) || hk__cuda_memory(out, &device);
}

/* ---- the device of a group ---- */

/* HOCKET_GPU_SMS: how many of a GPU's multiprocessors are used; 0: all. */
static enum hk_status device_sms(struct hk_group *group, uint32_t *sms_out)
{
	const char *text = getenv("HOCKET_GPU_SMS"); /* NOLINT(concurrency-mt-unsafe) */
	char *end;

	*sms_out = 0;
	if (!text || !*text)
		return HK_OK;
	unsigned long sms = strtoul(text, &end, 10);
	if (*end || *text == '-' || sms > 65536)
		return hk__group_refuse(group, HK_EINVAL,
					"HOCKET_GPU_SMS=%s: not a number of multiprocessors", text);
	*sms_out = (uint32_t)sms;
	return HK_OK;
}

static enum hk_status share_make(struct hk_group *group, int ordinal,
				 struct hk__gpu_share **share_out)
{
	const struct hk_alloc *alloc = group->alloc;
	struct hk__gpu_spec spec = { .n = group->n, .ordinal = ordinal, .alloc = alloc };
	enum hk_status status = device_sms(group, &spec.sms);

	if (status != HK_OK)
		return status;
	struct hk__gpu_share *share = hk__mem_zalloc(alloc, 1, sizeof(*share));
	if (!share)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a device");
	status = hk__gpu_create(&spec, &group->why, &share->device);
	if (status != HK_OK) {
		hk__mem_free(alloc, share, 1, sizeof(*share));
		return status;
	}
	share->alloc = alloc;
	memcpy(share->run, group->world->boot.key, sizeof(share->run));
	share->context = group->chans.context;
	share->first = hk__chans_rank(&group->chans, 0);
	share->next = shares;
	shares = share;
	*share_out = share;
	return HK_OK;
}

static bool share_is(const struct hk__gpu_share *share, const struct hk_group *group)
{
	return memcmp(share->run, group->world->boot.key, sizeof(share->run)) == 0 &&
	       share->context == group->chans.context &&
	       share->first == hk__chans_rank(&group->chans, 0);
}

static enum hk_status group_share(struct hk_group *group, const struct hk_request *request)
{
	enum hk_status status = HK_OK;
	int ordinal = 0;

	if (group->device)
		return HK_OK;
	if (!hk__cuda_memory(request->call.in, &ordinal))
		(void)hk__cuda_memory(request->call.out, &ordinal);
	pthread_mutex_lock(&lock);
	struct hk__gpu_share *share = shares;
	while (share && !share_is(share, group))
		share = share->next;
	if (!share)
		status = share_make(group, ordinal, &share);
	if (status == HK_OK) {
		hk_assert(share);
		share->refs++;
		group->device = share;
	}
	pthread_mutex_unlock(&lock);
	return status;
}

void hk__group_device_free(struct hk_group *group)
{
	struct hk__gpu_share *share = group->device;

	if (!share)
		return;
	group->device = NULL;
	pthread_mutex_lock(&lock);
	if (--share->refs == 0) {
		struct hk__gpu_share **link = &shares;

		while (*link != share)
			link = &(*link)->next;
		*link = share->next;
		hk__gpu_destroy(share->device);
		hk__mem_free(share->alloc, share, 1, sizeof(*share));
	}
	pthread_mutex_unlock(&lock);
}

void hk__group_device_abort(struct hk_group *group)
{
	if (group->device)
		hk__gpu_abort(group->device->device, group->rank);
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
	char line[HK_WHY_MAX];
	struct hk__text text;

	if (group->failed != HK_OK)
		return;
	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text,
		     "rank %u: call number %u on the device not finished in time: lane %u at "
		     "step %u",
		     group->rank, report->epoch, report->lane, report->step);
	if (report->peer != group->rank)
		hk__text_add(&text, " waited for rank %u", report->peer);
	hk__group_fail(group, HK_ETIMEDOUT, line);
	hk__health_revoke(group, HK_ETIMEDOUT);
}

static enum hk_status group_look(struct hk_group *group)
{
	struct failure failure = { .group = group };

	if (!group->device || !hk__gpu_failed(group->device->device, group->rank, &failure.report))
		return HK_OK;
	hk__world_run(group->world, group_fail_late, &failure);
	return hk__group_failed(group);
}

/* ---- a call ---- */

static enum hk_status request_fits(struct hk_group *group, const struct hk_request *request,
				   const struct hk_opts *opts)
{
	const char *name = hk_coll_name(request->coll);
	int device;
	bool in = !request->call.in || hk__cuda_memory(request->call.in, &device);
	bool out = !request->call.out || hk__cuda_memory(request->call.out, &device);

	if (!in || !out)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: `%s` is %s, and `%s` is not device memory", name,
					in ? "in" : "out",
					in || out ? "device memory" : "to be used on a stream",
					in ? "out" : "in");
	if (request->call.in_counts)
		return hk__group_refuse(group, HK_EINVAL,
					"alltoallv: does not work on device memory");
	if (opts->request || group->batching)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: calls on device memory are ordered by their stream: "
					"no request, and no batch",
					name);
	return HK_OK;
}

/* Fewest moves of data: on one device nothing is far. */
static const char *algo_for(enum hk_coll coll, uint64_t bytes)
{
	switch (coll) {
	case HK_COLL_ALLREDUCE:
		return bytes <= HK__DEVICE_ONE_SHOT ? "one-shot" : "two-shot";
	case HK_COLL_BROADCAST:
		return bytes <= HK__DEVICE_TREE ? "binomial" : "scatter-allgather";
	case HK_COLL_REDUCE:
		return bytes <= HK__DEVICE_TREE ? "binomial" : "reducescatter-gather";
	default:
		return NULL; /* the first: direct */
	}
}

static enum hk_status request_plan(struct hk_group *group, const struct hk_request *request,
				   const struct hk_plan **plan_out)
{
	uint64_t bytes = request->call.sizes.count * hk_type_size(request->call.type);
	struct hk__gpu_plan what = { .coll = request->coll, .given = request->plan };
	const char *name = request->algo ? request->algo : algo_for(request->coll, bytes);
	struct hk_algo_info algo;

	if (!what.given) {
		if (hk_algo_find(request->coll, name, &algo) != HK_OK)
			return hk__group_refuse(group, HK_EINVAL, "%s has no algorithm \"%s\"",
						hk_coll_name(request->coll), name ? name : "");
		hk__select_plan_opts(&group->view, &algo, &what.opts);
		what.opts.algo = algo.name;
		what.opts.root = request->root;
	}
	enum hk_status status = hk__gpu_plan(group->device->device, &what, &group->why, plan_out);
	if (status == HK_OK)
		status = hk__group_prove(group, *plan_out);
	if (status == HK_OK && request->inplace && !(*plan_out)->inplace)
		status = hk__group_refuse(group, HK_EINVAL, "%s by %s does not work in place",
					  hk_coll_name(request->coll), what.opts.algo);
	return status;
}

/* Whether the ranks of the group reach each other. */
static enum hk_status request_path(struct hk_group *group, const struct hk_request *request)
{
	const char *name = hk_coll_name(request->coll);

	if (group->world->origin.env.gpu == HK__GPU_USE_OFF)
		return hk__group_refuse(group, HK_EINVAL, "%s: device memory, but HOCKET_GPU=off",
					name);
	if (hk__group_gpu_path(group) != HK__GPU_DIRECT)
		return hk__group_refuse(group, HK_EINVAL,
					"%s: device memory works among ranks that are threads of "
					"one process, and these are processes",
					name);
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
	enum hk_status status = group_look(group);

	if (status == HK_OK)
		status = request_fits(group, request, opts);
	if (status == HK_OK)
		status = request_path(group, request);
	if (status == HK_OK)
		status = group_share(group, request);
	if (status == HK_OK)
		status = request_plan(group, request, &call.plan);
	if (status == HK_OK)
		status = hk__gpu_run(group->device->device, &call, &group->why);
	return status;
}
