/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - what a thread has called between ncclGroupStart and ncclGroupEnd. */
#include "comm.h"

#include <stdlib.h>
#include <string.h>

struct group {
	unsigned depth;
	ncclResult_t result; /* of the first call that was refused */
	struct hk__nccl_job *jobs, **jobs_end;
	struct hk__nccl_op *ops;
	size_t count, room;
};

static _Thread_local struct group group;

bool hk__nccl_group_note_job(struct hk__nccl_job *job)
{
	if (group.depth == 0)
		return false;
	if (!group.jobs)
		group.jobs_end = &group.jobs;
	job->next = NULL;
	*group.jobs_end = job;
	group.jobs_end = &job->next;
	return true;
}

ncclResult_t hk__nccl_group_note_op(const struct hk__nccl_op *op, bool *noted_out)
{
	*noted_out = group.depth > 0;
	if (group.depth == 0)
		return ncclSuccess;
	if (group.count == group.room) {
		size_t room = group.room ? 2 * group.room : 16;
		struct hk__nccl_op *ops = realloc(group.ops, room * sizeof(*ops));

		if (!ops)
			return hk__nccl_fail(ncclSystemError, "no memory for a group of %zu calls",
					     room);
		group.ops = ops;
		group.room = room;
	}
	group.ops[group.count++] = *op;
	return ncclSuccess;
}

ncclResult_t hk__nccl_group_said(ncclResult_t result)
{
	if (group.depth > 0 && group.result == ncclSuccess && result != ncclInProgress)
		group.result = result;
	return result;
}

ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}
HK__NCCL_TWIN(GroupStart);

/* Takes what was noted; the thread has no group any more. */
static struct group group_take(void)
{
	struct group taken = group;

	memset(&group, 0, sizeof(group));
	return taken;
}

static ncclResult_t group_perform(struct group *taken)
{
	if (taken->result != ncclSuccess) {
		hk__nccl_jobs_drop(taken->jobs);
		return taken->result;
	}
	if (taken->jobs && taken->count > 0) {
		hk__nccl_jobs_drop(taken->jobs);
		return hk__nccl_fail(
			ncclInvalidUsage,
			"a group that creates communicators cannot also use communicators");
	}
	if (taken->jobs)
		return hk__nccl_jobs_perform(taken->jobs);
	return hk__nccl_ops_perform(taken->ops, taken->count);
}

ncclResult_t ncclGroupEnd(void)
{
	if (group.depth == 0)
		return hk__nccl_fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
	if (group.depth > 1) {
		group.depth--;
		return ncclSuccess;
	}
	struct group taken = group_take();
	ncclResult_t result = group_perform(&taken);
	hk__nccl_ops_drop(taken.ops, taken.count);
	free(taken.ops);
	return result;
}
HK__NCCL_TWIN(GroupEnd);

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
	ncclResult_t result = ncclSuccess;
	float time = 0;

	if (group.depth != 1)
		return hk__nccl_fail(ncclInvalidUsage,
				     "ncclGroupSimulateEnd: in %u nested groups, not in one",
				     group.depth);
	struct group taken = group_take();
	if (!info || info->magic != NCCL_SIM_INFO_MAGIC || info->size < sizeof(*info))
		result = hk__nccl_fail(
			ncclInvalidArgument,
			"ncclGroupSimulateEnd: initialize with NCCL_SIM_INFO_INITIALIZER");
	else if (taken.result != ncclSuccess)
		result = taken.result;
	else if (taken.jobs)
		result = hk__nccl_fail(
			ncclInvalidUsage,
			"ncclGroupSimulateEnd: the creation of communicators cannot be predicted");
	hk__nccl_jobs_drop(taken.jobs);
	if (result == ncclSuccess)
		result = hk__nccl_simulate(taken.ops, taken.count, &time);
	if (result == ncclSuccess && info)
		info->estimatedTime = time;
	hk__nccl_ops_drop(taken.ops, taken.count);
	free(taken.ops);
	return result;
}
HK__NCCL_TWIN(GroupSimulateEnd);
