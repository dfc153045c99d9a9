/* SPDX-License-Identifier: Apache-2.0 */
/* make.c - the groups behind communicators: made by meeting, of threads, of others. */
#include "comm.h"

#include <stdlib.h>
#include <string.h>

#define SHRINK_TAG 0x48434b53u
/* An eighth of it is how long ranks that are left out, but there, are waited for. */
#define SHRINK_TIMEOUT_NS UINT64_C(40000000000)
#define STREAM_NON_BLOCKING 1

struct hk_group_opts hk__nccl_group_opts(void)
{
	const struct hk__nccl_env *env = hk__nccl_env();
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;

	opts.progress = true; /* calls of several communicators, by several threads */
	opts.host = env->host;
	opts.net = env->net;
	opts.gpu = env->gpu;
	opts.timeout_ns = env->timeout_ns;
	return opts;
}

/*
 * The first call on device memory may be an exchange among ranks; here each has a
 * thread. Ranks without a GPU take part in it, by a barrier of their own.
 */
ncclResult_t hk__nccl_comm_prepare(struct ncclComm *comm)
{
	const struct hk__nccl_driver *driver = hk__nccl_driver();
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status status = HK_EINVAL;
	void *stream = NULL;

	if (comm->nranks == 1)
		return ncclSuccess;
	if (comm->context) {
		int error = driver->stream(&stream, STREAM_NON_BLOCKING);

		if (error != 0)
			return hk__nccl_cuda(error, "a stream");
		opts.stream = stream;
		hk__nccl_log(HK__NCCL_INFO, "rank %d of %d makes its first call on device %d",
			     comm->rank, comm->nranks, comm->device);
		status = hk_barrier(comm->group, &opts);
		if (status == HK_OK)
			error = driver->stream_wait(stream);
		(void)driver->stream_free(stream);
		if (error != 0)
			return hk__nccl_cuda(error, "the first call on the device");
		if (status == HK_EINVAL)
			hk__nccl_log(HK__NCCL_INFO, "device memory cannot be used: %s",
				     hk_group_why(comm->group));
	}
	if (status == HK_EINVAL)
		status = hk_barrier(comm->group, NULL);
	return hk__nccl_comm_failed(comm, status, "the first barrier");
}

static ncclResult_t comm_ready(struct ncclComm *comm)
{
	comm->rank = (int)hk_group_rank(comm->group);
	comm->nranks = (int)hk_group_size(comm->group);
	hk__nccl_log(HK__NCCL_INFO, "communicator %s%srank %d of %d, device %s", comm->name,
		     comm->name[0] ? " " : "", comm->rank, comm->nranks,
		     comm->context ? "memory too" : "none");
	atomic_store(&comm->made, true);
	return atomic_load(&comm->aborts) ? hk__nccl_fail(ncclInvalidUsage, "it was aborted")
					  : ncclSuccess;
}

/* ---- ranks that are all here ---- */

ncclResult_t hk__nccl_init_threads(struct hk__nccl_job **jobs, uint32_t n)
{
	struct hk_group_opts opts = hk__nccl_group_opts();
	struct hk_group **groups = calloc(n, sizeof(struct hk_group *));
	struct hk_why why = { "no memory" };
	ncclResult_t result = ncclSuccess;

	if (!groups)
		return hk__nccl_fail(ncclSystemError, "no memory for %u ranks", n);
	opts.net = NULL; /* threads have one of their own */
	opts.host = NULL;
	hk__nccl_enter(jobs[0]->comm->context);
	enum hk_status status = hk_group_threads(n, &opts, &why, groups);
	hk__nccl_leave(jobs[0]->comm->context);
	for (uint32_t r = 0; status == HK_OK && r < n; r++) {
		hk__nccl_comm_join(jobs[r]->comm, groups[r]);
		result = comm_ready(jobs[r]->comm);
	}
	free(groups);
	if (status != HK_OK)
		return hk__nccl_fail(hk__nccl_result(status), "%u ranks of one process: %s", n,
				     why.text);
	return result;
}

/* ---- ranks that meet ---- */

static ncclResult_t group_at(struct ncclComm *comm, struct hk__nccl_place *place)
{
	struct hk_group_opts opts = hk__nccl_group_opts();
	struct hk_why why = { "" };
	struct hk_group *group;

	opts.address = place->address;
	opts.key = place->key;
	opts.rank = (uint32_t)comm->rank;
	opts.nranks = (uint32_t)comm->nranks;
	opts.iface = place->iface[0] ? place->iface : NULL;
	hk__nccl_log(HK__NCCL_INFO, "rank %d of %d meets the others at %s", comm->rank,
		     comm->nranks, place->address);
	enum hk_status status = hk_group_create(&opts, &why, &group);
	hk__nccl_place_close(place);
	if (status != HK_OK)
		return hk__nccl_fail(hk__nccl_result(status), "rank %d of %d: %s", comm->rank,
				     comm->nranks, why.text);
	hk__nccl_comm_join(comm, group);
	return ncclSuccess;
}

static ncclResult_t init_rank(struct hk__nccl_job *job)
{
	struct ncclComm *comm = job->comm;
	struct hk__nccl_place place;

	if (comm->nranks == 1)
		return hk__nccl_init_threads(&job, 1);
	ncclResult_t result =
		hk__nccl_meet_join(&job->id, comm->rank, comm->nranks, &comm->aborts, &place);
	if (result == ncclSuccess)
		result = group_at(comm, &place);
	if (result == ncclSuccess)
		result = hk__nccl_comm_prepare(comm);
	return result == ncclSuccess ? comm_ready(comm) : result;
}

/* ---- ranks of a communicator ---- */

/* A group that was split is freed before the one it came from. */
static void child_adopt(struct ncclComm *comm, struct ncclComm *parent, struct hk_group *group)
{
	comm->parent = parent;
	hk__nccl_comm_hold(parent);
	hk__nccl_comm_join(comm, group);
	comm->rank = (int)hk_group_rank(group);
	comm->nranks = (int)hk_group_size(group);
}

static ncclResult_t split(struct hk__nccl_job *job)
{
	struct ncclComm *parent = job->parent;
	struct hk_group *group = NULL;
	uint32_t color = job->color == NCCL_SPLIT_NOCOLOR ? HK_NONE : (uint32_t)job->color;

	pthread_mutex_lock(&parent->lock);
	/* Keys may be negative: their order stays. */
	enum hk_status status =
		hk_group_split(parent->group, color, (uint32_t)job->key + 0x80000000u, &group);
	ncclResult_t result = hk__nccl_comm_failed(parent, status, "ncclCommSplit");
	pthread_mutex_unlock(&parent->lock);
	if (result != ncclSuccess || !job->comm)
		return result;
	child_adopt(job->comm, parent, group);
	result = hk__nccl_comm_prepare(job->comm);
	return result == ncclSuccess ? comm_ready(job->comm) : result;
}

static bool excluded(const struct hk__nccl_job *job, int rank)
{
	for (int i = 0; i < job->nexclude; i++) {
		if (job->exclude[i] == rank)
			return true;
	}
	return false;
}

/* The lowest rank that stays tells the others where to meet; who leaves has no part. */
static ncclResult_t shrink_tell(struct hk__nccl_job *job, int first, struct hk__nccl_place *place)
{
	struct ncclComm *parent = job->parent;
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status status = HK_OK;

	opts.tag = SHRINK_TAG;
	if (parent->rank != first) {
		*place = (struct hk__nccl_place){ .held = -1 };
		status = hk_recv(parent->group, place, sizeof(*place), HK_TYPE_UINT8,
				 (uint32_t)first, &opts);
		place->held = -1;
		place->iface[0] = '\0';
		return hk__nccl_comm_failed(parent, status, "ncclCommShrink");
	}
	ncclResult_t result = hk__nccl_place_make(place);
	for (int r = first + 1; result == ncclSuccess && r < parent->nranks; r++) {
		if (excluded(job, r))
			continue;
		status = hk_send(parent->group, place, sizeof(*place), HK_TYPE_UINT8, (uint32_t)r,
				 &opts);
		result = hk__nccl_comm_failed(parent, status, "ncclCommShrink");
	}
	return result;
}

static ncclResult_t shrink_meet(struct hk__nccl_job *job)
{
	struct ncclComm *parent = job->parent, *comm = job->comm;
	struct hk__nccl_place place;
	int first = -1;

	comm->nranks = 0;
	for (int r = 0; r < parent->nranks; r++) {
		if (excluded(job, r))
			continue;
		first = first < 0 ? r : first;
		if (r == parent->rank)
			comm->rank = comm->nranks;
		comm->nranks++;
	}
	if (comm->nranks == 1)
		return hk__nccl_init_threads(&job, 1);
	pthread_mutex_lock(&parent->lock);
	ncclResult_t result = shrink_tell(job, first, &place);
	pthread_mutex_unlock(&parent->lock);
	if (result != ncclSuccess)
		hk__nccl_place_close(&place);
	else
		result = group_at(comm, &place);
	if (result == ncclSuccess)
		result = hk__nccl_comm_prepare(comm);
	return result == ncclSuccess ? comm_ready(comm) : result;
}

/* What is in flight ends; then those who are left agree on who they are. */
static ncclResult_t shrink_abort(struct hk__nccl_job *job)
{
	struct ncclComm *parent = job->parent;
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *group = NULL;
	int left = 0;

	for (int r = 0; r < parent->nranks; r++)
		left += !excluded(job, r);
	opts.timeout_ns = SHRINK_TIMEOUT_NS;
	hk__nccl_comm_revoke(parent);
	pthread_mutex_lock(&parent->lock);
	enum hk_status status = hk_group_shrink(parent->group, &opts, &group);
	ncclResult_t result = hk__nccl_comm_failed(parent, status, "ncclCommShrink");
	pthread_mutex_unlock(&parent->lock);
	if (result != ncclSuccess)
		return result;
	child_adopt(job->comm, parent, group);
	if (job->comm->nranks != left)
		return hk__nccl_fail(ncclRemoteError,
				     "ncclCommShrink: %d ranks are left, but %d were to remain",
				     job->comm->nranks, left);
	result = hk__nccl_comm_prepare(job->comm);
	return result == ncclSuccess ? comm_ready(job->comm) : result;
}

/* ---- jobs ---- */

static ncclResult_t finalize(struct ncclComm *comm)
{
	pthread_mutex_lock(&comm->lock);
	ncclResult_t result = hk__nccl_comm_flush(comm);
	pthread_mutex_unlock(&comm->lock);
	atomic_store(&comm->finalized, true);
	return result;
}

ncclResult_t hk__nccl_job_perform(struct hk__nccl_job *job)
{
	/* Of a split without a color there is no communicator. */
	void *context = job->kind == HK__NCCL_SPLIT ? job->parent->context : job->comm->context;
	ncclResult_t result = ncclInternalError;

	hk__nccl_enter(context);
	switch (job->kind) {
	case HK__NCCL_INIT:
		result = init_rank(job);
		break;
	case HK__NCCL_SPLIT:
		result = split(job);
		break;
	case HK__NCCL_SHRINK:
		result = job->aborts ? shrink_abort(job) : shrink_meet(job);
		break;
	case HK__NCCL_FINALIZE:
		result = finalize(job->comm);
		break;
	}
	hk__nccl_leave(context);
	return result;
}
