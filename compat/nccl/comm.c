/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - communicators: their state, their end, and what can be asked of them. */
#include "comm.h"

#include <stdio.h>
#include <string.h>

ncclResult_t hk__nccl_config_check(const ncclConfig_t *config)
{
	if (!config)
		return ncclSuccess;
	if (config->magic != NCCL_API_MAGIC || config->size < offsetof(ncclConfig_t, minCTAs))
		return hk__nccl_fail(
			ncclInvalidArgument,
			"the configuration was not initialized with NCCL_CONFIG_INITIALIZER");
	if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 &&
	    config->blocking != 1)
		return hk__nccl_fail(ncclInvalidArgument, "config.blocking is %d, not 0 or 1",
				     config->blocking);
	return ncclSuccess;
}

/* It has failed before: what is said is why it did. */
static ncclResult_t comm_refuse(struct ncclComm *comm, ncclResult_t state, const char *what)
{
	char why[HK_WHY_MAX];

	pthread_mutex_lock(&comm->why_lock);
	memcpy(why, comm->why, sizeof(why));
	pthread_mutex_unlock(&comm->why_lock);
	return hk__nccl_fail(state, "%s: the communicator has failed: %s", what,
			     why[0] ? why : hk__nccl_result_text(state));
}

ncclResult_t hk__nccl_comm_usable(struct ncclComm *comm, const char *what)
{
	int state = atomic_load(&comm->state);
	if (state == ncclInProgress)
		return hk__nccl_fail(ncclInvalidUsage,
				     "%s: the previous call is still in progress: poll "
				     "ncclCommGetAsyncError until it ends",
				     what);
	if (state != ncclSuccess)
		return comm_refuse(comm, (ncclResult_t)state, what);
	if (atomic_load(&comm->finalized))
		return hk__nccl_fail(ncclInvalidUsage, "%s: the communicator was finalized", what);
	return ncclSuccess;
}

ncclResult_t hk__nccl_comm_take(struct ncclComm *comm, const char *what)
{
	if (!hk__nccl_comm_try(comm))
		return hk__nccl_fail(ncclInvalidArgument, "%s: not a communicator of this process",
				     what);
	ncclResult_t result = hk__nccl_comm_usable(comm, what);
	if (result != ncclSuccess)
		hk__nccl_comm_drop(comm);
	return result;
}

ncclResult_t hk__nccl_comm_flush(struct ncclComm *comm)
{
	if (!comm->event)
		return ncclSuccess;
	return hk__nccl_cuda(hk__nccl_driver()->event_wait(comm->event),
			     "waiting for what was enqueued");
}

ncclResult_t hk__nccl_comm_failed(struct ncclComm *comm, enum hk_status status, const char *what)
{
	ncclResult_t result = hk__nccl_result(status);

	if (status == HK_OK)
		return ncclSuccess;
	/* Nothing was begun: the communicator is as it was. */
	if (status != HK_EINVAL && status != HK_ENOMEM && status != HK_ELIMIT) {
		pthread_mutex_lock(&comm->why_lock);
		snprintf(comm->why, sizeof(comm->why), "%s", hk_group_why(comm->group));
		pthread_mutex_unlock(&comm->why_lock);
		atomic_store(&comm->state, result);
	}
	return hk__nccl_fail(result, "%s: %s: %s", what, hk_status_name(status),
			     hk_group_why(comm->group));
}

/* ---- the end ---- */

/* Once: to give it up twice would drop another one's hold. */
static ncclResult_t comm_end(struct ncclComm *comm, bool aborts, const char *what)
{
	if (!comm || hk__nccl_comm_inherited(comm))
		return ncclSuccess;
	if (!hk__nccl_comm_try(comm))
		return hk__nccl_fail(ncclInvalidArgument, "%s: not a communicator", what);
	if (aborts)
		hk__nccl_comm_revoke(comm);
	bool closed = hk__nccl_comm_close(comm);
	hk__nccl_comm_drop(comm);
	return closed ? ncclSuccess
		      : hk__nccl_fail(ncclInvalidArgument,
				      "%s: another thread destroys the communicator", what);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	return comm_end(comm, false, "ncclCommDestroy");
}
HK__NCCL_TWIN(CommDestroy);

/* What is in flight ends, here and on the other ranks. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	return comm_end(comm, true, "ncclCommAbort");
}
HK__NCCL_TWIN(CommAbort);

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
	if (flags != NCCL_REVOKE_DEFAULT)
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommRevoke: unknown flags %d",
				     flags);
	if (!hk__nccl_comm_try(comm))
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommRevoke: not a communicator");
	hk__nccl_comm_revoke(comm);
	hk__nccl_comm_drop(comm);
	return ncclSuccess;
}
HK__NCCL_TWIN(CommRevoke);

/* ---- questions ---- */

/* Whether its group has failed while nobody called. */
static void comm_look(struct ncclComm *comm)
{
	if (pthread_mutex_trylock(&comm->lock) != 0)
		return; /* in a call, which will say it itself */
	if (!atomic_load(&comm->aborts)) {
		enum hk_status status = hk_group_state(comm->group);

		if (status != HK_OK)
			(void)hk__nccl_comm_failed(comm, status, "ncclCommGetAsyncError");
	}
	pthread_mutex_unlock(&comm->lock);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result)
{
	if (!result)
		return hk__nccl_fail(ncclInvalidArgument,
				     "ncclCommGetAsyncError: `result` is NULL");
	if (!hk__nccl_comm_try(comm))
		return hk__nccl_fail(ncclInvalidArgument,
				     "ncclCommGetAsyncError: not a communicator");
	if (atomic_load(&comm->state) == ncclSuccess)
		comm_look(comm);
	*result = (ncclResult_t)atomic_load(&comm->state);
	hk__nccl_comm_drop(comm);
	return ncclSuccess;
}
HK__NCCL_TWIN(CommGetAsyncError);

enum question {
	ASK_COUNT,
	ASK_DEVICE,
	ASK_RANK
};

static ncclResult_t comm_ask(ncclComm_t comm, enum question question, int *answer, const char *what)
{
	ncclResult_t result = ncclSuccess;

	if (!answer)
		return hk__nccl_fail(ncclInvalidArgument, "%s: the output pointer is NULL", what);
	if (!hk__nccl_comm_try(comm))
		return hk__nccl_fail(ncclInvalidArgument, "%s: not a communicator", what);
	if (!atomic_load(&comm->made))
		result = hk__nccl_fail(ncclInvalidUsage,
				       "%s: the communicator is still being created", what);
	else
		*answer = question == ASK_COUNT	   ? comm->nranks
			  : question == ASK_DEVICE ? comm->device
						   : comm->rank;
	hk__nccl_comm_drop(comm);
	return result;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
	return comm_ask(comm, ASK_COUNT, count, "ncclCommCount");
}
HK__NCCL_TWIN(CommCount);

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
	return comm_ask(comm, ASK_DEVICE, device, "ncclCommCuDevice");
}
HK__NCCL_TWIN(CommCuDevice);

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	return comm_ask(comm, ASK_RANK, rank, "ncclCommUserRank");
}
HK__NCCL_TWIN(CommUserRank);
