/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.c - how long communicators live.
 *
 * Every call holds the communicator it uses, as jobs, noted operations and children
 * do: ncclCommAbort may come from another thread at any time, and only ends what they
 * wait for. Who drops the last hold has the group freed.
 *
 * Memory of a communicator is never given back, but used for later ones: a handle that
 * was given up a moment ago can still be looked at, and is refused.
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
#define EXIT_WAIT_MS 10000

/* ---- who is still being freed ---- */

/* No lock: exit and fork may come while any thread is anywhere. */
static _Atomic unsigned exit_count;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void exit_wait(void)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	for (int i = 0; i < EXIT_WAIT_MS && atomic_load(&exit_count) > 0; i++)
		nanosleep(&nap, NULL);
}

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

/* The threads that free are the parent's, and so is one that had the lock. */
static void exit_forget(void)
{
	atomic_store(&exit_count, 0);
	pthread_mutex_init(&spare_lock, NULL);
}

static void exit_register(void)
{
	(void)atexit(exit_wait);
	(void)pthread_atfork(NULL, NULL, exit_forget);
}

/* ---- memory ---- */

static struct ncclComm *spare;

static struct ncclComm *comm_alloc(void)
{
	pthread_mutex_lock(&spare_lock);
	struct ncclComm *comm = spare;
	if (comm)
		spare = comm->next_spare;
	pthread_mutex_unlock(&spare_lock);
	if (comm)
		return comm;
	comm = calloc(1, sizeof(*comm));
	if (!comm) {
		(void)hk__nccl_fail(ncclSystemError, "no memory for a communicator");
		return NULL;
	}
	pthread_mutex_init(&comm->lock, NULL);
	pthread_mutex_init(&comm->why_lock, NULL);
	comm->magic = COMM_MAGIC;
	return comm;
}

/* All but what says that it is one, and whether it is held. */
static void comm_spare(struct ncclComm *comm)
{
	const size_t from = offsetof(struct ncclComm, closed);

	memset((char *)comm + from, 0, sizeof(*comm) - from);
	pthread_mutex_lock(&spare_lock);
	comm->next_spare = spare;
	spare = comm;
	pthread_mutex_unlock(&spare_lock);
}

/* ---- from the first hold to the last ---- */

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
	struct ncclComm *comm = comm_alloc();

	if (!comm)
		return NULL;
	pthread_once(&exit_once, exit_register);
	hk__nccl_fork_watch();
	comm->depth = hk__nccl_fork_depth;
	comm->rank = rank;
	comm->nranks = nranks;
	comm->state = ncclInProgress;
	comm->context = hk__nccl_context(&comm->device);
	comm_configure(comm, config);
	atomic_store(&comm->holds, 1); /* from here on it can be held */
	return comm;
}

void hk__nccl_comm_hold(struct ncclComm *comm)
{
	atomic_fetch_add(&comm->holds, 1);
}

bool hk__nccl_comm_try(struct ncclComm *comm)
{
	if (!comm || comm->magic != COMM_MAGIC || comm->depth != hk__nccl_fork_depth)
		return false;
	unsigned holds = atomic_load(&comm->holds);
	do {
		if (holds == 0)
			return false;
	} while (!atomic_compare_exchange_weak(&comm->holds, &holds, holds + 1));
	if (!atomic_load(&comm->closed))
		return true;
	hk__nccl_comm_drop(comm);
	return false;
}

bool hk__nccl_comm_inherited(const struct ncclComm *comm)
{
	return comm->magic == COMM_MAGIC && comm->depth != hk__nccl_fork_depth;
}

static void comm_free(struct ncclComm *comm)
{
	struct ncclComm *parent = comm->parent;

	hk__nccl_enter(comm->context);
	if (atomic_load(&comm->aborts))
		hk__nccl_comm_revoke(comm); /* else it waits for the other ranks */
	else
		(void)hk__nccl_comm_flush(comm);
	hk_group_free(comm->group);
	if (comm->event)
		(void)hk__nccl_driver()->event_free(comm->event);
	hk__nccl_leave(comm->context);
	comm_spare(comm);
	if (parent)
		hk__nccl_comm_drop(parent);
}

static void *comm_free_run(void *ctx)
{
	comm_free(ctx);
	atomic_fetch_sub(&exit_count, 1);
	return NULL;
}

void hk__nccl_comm_drop(struct ncclComm *comm)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (atomic_fetch_sub(&comm->holds, 1) != 1)
		return;
	atomic_fetch_add(&exit_count, 1);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, comm_free_run, comm) != 0)
		(void)comm_free_run(comm);
	pthread_attr_destroy(&attr);
}

bool hk__nccl_comm_close(struct ncclComm *comm)
{
	if (atomic_exchange(&comm->closed, true))
		return false;
	hk__nccl_comm_drop(comm);
	return true;
}

/* ---- the group of a communicator ---- */

void hk__nccl_comm_join(struct ncclComm *comm, struct hk_group *group)
{
	comm->group = group;
	atomic_store(&comm->joined, true);
	if (atomic_load(&comm->aborts))
		hk__nccl_comm_revoke(comm);
}

/* Without the lock: who holds it may wait for what this ends. */
void hk__nccl_comm_revoke(struct ncclComm *comm)
{
	atomic_store(&comm->aborts, true);
	if (atomic_load(&comm->joined)) /* else hk__nccl_comm_join sees it */
		(void)!hk_group_revoke(comm->group);
}
