/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - communicators: how long they live, and what can be asked of them.
 *
 * hk_group_free waits for all ranks, and one thread may destroy those of several:
 * so groups are freed by threads of their own, and what is left of that when the
 * process ends is waited for, for a while.
 */
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COMM_MAGIC UINT64_C(0x484f434b4e43434c)
#define EXIT_WAIT_S 10

/* ---- who is still being freed ---- */

static pthread_mutex_t exit_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t exit_change = PTHREAD_COND_INITIALIZER;
static unsigned exit_count;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void exit_wait(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += EXIT_WAIT_S;
	pthread_mutex_lock(&exit_lock);
	while (exit_count > 0 && pthread_cond_timedwait(&exit_change, &exit_lock, &until) == 0)
		;
	pthread_mutex_unlock(&exit_lock);
}

static void exit_register(void)
{
	(void)atexit(exit_wait);
}

static void exit_add(void)
{
	pthread_mutex_lock(&exit_lock);
	exit_count++;
	pthread_mutex_unlock(&exit_lock);
}

static void exit_done(void)
{
	pthread_mutex_lock(&exit_lock);
	exit_count--;
	pthread_cond_broadcast(&exit_change);
	pthread_mutex_unlock(&exit_lock);
}

/* ---- from the first hold to the last ---- */

ncclResult_t hk__nccl_config_check(const ncclConfig_t *config)
{
	if (!config)
		return ncclSuccess;
	if (config->magic != NCCL_CONFIG_MAGIC || config->size < offsetof(ncclConfig_t, minCTAs))
		return hk__nccl_fail(ncclInvalidArgument, "a configuration that was not begun with "
							  "NCCL_CONFIG_INITIALIZER");
	if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 &&
	    config->blocking != 1)
		return hk__nccl_fail(ncclInvalidArgument, "config.blocking is %d, not 0 or 1",
				     config->blocking);
	return ncclSuccess;
}

static void comm_configure(struct ncclComm *comm, const ncclConfig_t *config)
{
	comm->blocking = true;
	if (!config)
		return;
	if (config->blocking != NCCL_CONFIG_UNDEF_INT)
		comm->blocking = config->blocking != 0;
	if (config->size >= offsetof(ncclConfig_t, commName) + sizeof(config->commName) &&
	    config->commName)
		snprintf(comm->name, sizeof(comm->name), "%s", config->commName);
}

struct ncclComm *hk__nccl_comm_new(int rank, int nranks, const ncclConfig_t *config)
{
	struct ncclComm *comm = calloc(1, sizeof(*comm));

	if (!comm) {
		(void)hk__nccl_fail(ncclSystemError, "no memory for a communicator");
		return NULL;
	}
	pthread_once(&exit_once, exit_register);
	pthread_mutex_init(&comm->lock, NULL);
	pthread_mutex_init(&comm->why_lock, NULL);
	comm->magic = COMM_MAGIC;
	comm->holds = 1;
	comm->rank = rank;
	comm->nranks = nranks;
	comm->state = ncclInProgress;
	comm->context = hk__nccl_context(&comm->device);
	comm_configure(comm, config);
	return comm;
}

void hk__nccl_comm_hold(struct ncclComm *comm)
{
	atomic_fetch_add(&comm->holds, 1);
}

static void comm_free(struct ncclComm *comm)
{
	struct ncclComm *parent = comm->parent;

	hk__nccl_enter(comm->context);
	if (!atomic_load(&comm->aborts))
		(void)hk__nccl_comm_flush(comm);
	hk_group_free(comm->group);
	if (comm->event)
		(void)hk__nccl_driver()->event_free(comm->event);
	hk__nccl_leave(comm->context);
	pthread_mutex_destroy(&comm->lock);
	pthread_mutex_destroy(&comm->why_lock);
	free(comm);
	if (parent)
		hk__nccl_comm_drop(parent);
}

static void *comm_free_run(void *ctx)
{
	comm_free(ctx);
	exit_done();
	return NULL;
}

void hk__nccl_comm_drop(struct ncclComm *comm)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (atomic_fetch_sub(&comm->holds, 1) != 1)
		return;
	comm->magic = 0;
	exit_add();
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, comm_free_run, comm) != 0)
		(void)comm_free_run(comm);
	pthread_attr_destroy(&attr);
}

bool hk__nccl_comm_is(const struct ncclComm *comm)
{
	return comm && comm->magic == COMM_MAGIC;
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

ncclResult_t hk__nccl_comm_check(struct ncclComm *comm, const char *what)
{
	if (!hk__nccl_comm_is(comm))
		return hk__nccl_fail(ncclInvalidArgument, "%s: not a communicator", what);
	int state = atomic_load(&comm->state);
	if (state == ncclInProgress)
		return hk__nccl_fail(ncclInvalidUsage,
				     "%s: the call before has not ended: ask "
				     "ncclCommGetAsyncError until it has",
				     what);
	if (state != ncclSuccess)
		return comm_refuse(comm, (ncclResult_t)state, what);
	if (atomic_load(&comm->finalized))
		return hk__nccl_fail(ncclInvalidUsage, "%s: the communicator was finalized", what);
	return ncclSuccess;
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

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (!hk__nccl_comm_is(comm))
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommDestroy: not a communicator");
	hk__nccl_comm_drop(comm);
	return ncclSuccess;
}
HK__NCCL_TWIN(CommDestroy);

/* What is in flight ends, here and on the other ranks. */
static void comm_revoke(struct ncclComm *comm)
{
	atomic_store(&comm->aborts, true);
	if (!atomic_load(&comm->made))
		return; /* who makes it sees it */
	/* Who waits in an operation lets go soon; a job of its own may take its time. */
	if (atomic_load(&comm->state) != ncclInProgress)
		pthread_mutex_lock(&comm->lock);
	else if (pthread_mutex_trylock(&comm->lock) != 0)
		return;
	(void)!hk_group_revoke(comm->group);
	pthread_mutex_unlock(&comm->lock);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (!hk__nccl_comm_is(comm))
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommAbort: not a communicator");
	comm_revoke(comm);
	hk__nccl_comm_drop(comm);
	return ncclSuccess;
}
HK__NCCL_TWIN(CommAbort);

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
	if (!hk__nccl_comm_is(comm) || flags != NCCL_REVOKE_DEFAULT)
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommRevoke: %s",
				     flags ? "unknown flags" : "not a communicator");
	comm_revoke(comm);
	return ncclSuccess;
}
HK__NCCL_TWIN(CommRevoke);

/* ---- questions ---- */

/* Whether its group has failed while nobody called: an empty batch says so. */
static void comm_look(struct ncclComm *comm)
{
	if (pthread_mutex_trylock(&comm->lock) != 0)
		return; /* in a call, which will say it itself */
	if (!atomic_load(&comm->aborts)) {
		enum hk_status status = hk_batch_begin(comm->group);
		enum hk_status ended = hk_batch_end(comm->group);

		if (status == HK_OK)
			status = ended;
		if (status != HK_OK)
			(void)hk__nccl_comm_failed(comm, status, "ncclCommGetAsyncError");
	}
	pthread_mutex_unlock(&comm->lock);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result)
{
	if (!hk__nccl_comm_is(comm) || !result)
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommGetAsyncError: %s",
				     result ? "not a communicator" : "`result` is NULL");
	if (atomic_load(&comm->state) == ncclSuccess)
		comm_look(comm);
	*result = (ncclResult_t)atomic_load(&comm->state);
	return ncclSuccess;
}
HK__NCCL_TWIN(CommGetAsyncError);

static ncclResult_t comm_ask(ncclComm_t comm, const int *value, const char *what)
{
	if (!hk__nccl_comm_is(comm) || !value)
		return hk__nccl_fail(ncclInvalidArgument, "%s: %s", what,
				     value ? "not a communicator" : "no place for the answer");
	if (!atomic_load(&comm->made))
		return hk__nccl_fail(ncclInvalidUsage, "%s: it is still being made", what);
	return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
	ncclResult_t result = comm_ask(comm, count, "ncclCommCount");

	if (result == ncclSuccess)
		*count = comm->nranks;
	return result;
}
HK__NCCL_TWIN(CommCount);

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
	ncclResult_t result = comm_ask(comm, device, "ncclCommCuDevice");

	if (result == ncclSuccess)
		*device = comm->device;
	return result;
}
HK__NCCL_TWIN(CommCuDevice);

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	ncclResult_t result = comm_ask(comm, rank, "ncclCommUserRank");

	if (result == ncclSuccess)
		*rank = comm->rank;
	return result;
}
HK__NCCL_TWIN(CommUserRank);
