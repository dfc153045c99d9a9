/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the calls that make communicators: each becomes a job (job.c). */
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ncclResult_t said(ncclResult_t result)
{
	return hk__nccl_group_said(result);
}

static struct hk__nccl_job *job_new(enum hk__nccl_job_kind kind, struct ncclComm *comm,
				    struct ncclComm **comm_out)
{
	struct hk__nccl_job *job = calloc(1, sizeof(*job));

	if (!job) {
		(void)hk__nccl_fail(ncclSystemError, "no memory for a communicator");
		return NULL;
	}
	job->kind = kind;
	job->comm = comm;
	job->comm_out = comm_out;
	job->blocking = !comm || comm->blocking;
	if (comm)
		hk__nccl_comm_hold(comm);
	return job;
}

static void comm_undo(struct ncclComm *comm)
{
	atomic_store(&comm->state, ncclInternalError);
	(void)hk__nccl_comm_close(comm);
}

/* ---- a rank of all ---- */

static ncclResult_t init_rank(ncclComm_t *comm_out, int nranks, const ncclUniqueId *id, int rank,
			      const ncclConfig_t *config)
{
	static _Atomic bool greeted;
	ncclResult_t result = hk__nccl_config_check(config);

	(void)hk__nccl_env();
	if (result != ncclSuccess)
		return result;
	if (!comm_out || !id || nranks < 1 || rank < 0 || rank >= nranks)
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommInitRank: rank %d of %d ranks",
				     rank, nranks);
	if (rank == 0 && !atomic_exchange(&greeted, true))
		hk__nccl_log(HK__NCCL_VERSION, "NCCL version %d.%d.%d by Hocket %s", NCCL_MAJOR,
			     NCCL_MINOR, NCCL_PATCH, hk_version());
	struct ncclComm *comm = hk__nccl_comm_new(rank, nranks, config);
	if (!comm)
		return ncclSystemError;
	struct hk__nccl_job *job = job_new(HK__NCCL_INIT, comm, comm_out);
	if (!job) {
		comm_undo(comm);
		return ncclSystemError;
	}
	job->id = *id;
	*comm_out = comm;
	return hk__nccl_job_submit(job);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	return said(init_rank(comm, nranks, &id, rank, config));
}
HK__NCCL_TWIN(CommInitRankConfig);

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	return said(init_rank(comm, nranks, &id, rank, NULL));
}
HK__NCCL_TWIN(CommInitRank);

/* One id is enough: the others are meant to spread a load that is not there. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int nids,
				      ncclUniqueId *ids, ncclConfig_t *config)
{
	if (nids < 1 || !ids)
		return said(hk__nccl_fail(ncclInvalidArgument, "ncclCommInitRankScalable: %d ids",
					  nids));
	return said(init_rank(comm, nranks, &ids[0], rank, config));
}
HK__NCCL_TWIN(CommInitRankScalable);

/* ---- all ranks, by one thread ---- */

static ncclResult_t init_all_jobs(ncclComm_t *comms, int n, const int *devices,
				  struct hk__nccl_job **jobs)
{
	for (int i = n - 1; i >= 0; i--) {
		int device = devices ? devices[i] : i;
		struct ncclComm *comm = hk__nccl_comm_new(i, n, NULL);
		struct hk__nccl_job *job = comm ? job_new(HK__NCCL_INIT, comm, &comms[i]) : NULL;

		if (!job) {
			if (comm)
				comm_undo(comm);
			return ncclSystemError;
		}
		job->next = *jobs;
		*jobs = job;
		comms[i] = comm;
		comm->device = device;
		if (comm->context) {
			ncclResult_t result = hk__nccl_context_of(device, &comm->context);

			if (result != ncclSuccess)
				return result;
		}
	}
	return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
	struct hk__nccl_job *jobs = NULL;
	ncclUniqueId id;

	(void)hk__nccl_env();
	if (!comms || n < 1)
		return said(hk__nccl_fail(ncclInvalidArgument, "ncclCommInitAll: %d ranks", n));
	for (int i = 0; i < n; i++)
		comms[i] = NULL;
	ncclResult_t result = hk__nccl_meet_open(&id);
	if (result == ncclSuccess)
		result = init_all_jobs(comms, n, devices, &jobs);
	for (struct hk__nccl_job *job = jobs; job; job = job->next)
		job->id = id;
	if (result == ncclSuccess)
		return said(hk__nccl_jobs_perform(jobs));
	hk__nccl_jobs_drop(jobs);
	return said(result);
}
HK__NCCL_TWIN(CommInitAll);

/* ---- some of the ranks of another one ---- */

/* Without a configuration it is its parent's. */
static struct ncclComm *child_new(struct ncclComm *parent, const ncclConfig_t *config)
{
	struct ncclComm *comm = hk__nccl_comm_new(0, 0, config);

	if (!comm)
		return NULL;
	if (!config || config->blocking == NCCL_CONFIG_UNDEF_INT)
		comm->blocking = parent->blocking;
	comm->device = parent->device;
	comm->context = parent->context;
	return comm;
}

static ncclResult_t child_submit(struct hk__nccl_job *job, struct ncclComm *parent,
				 struct ncclComm *comm, ncclComm_t *comm_out)
{
	job->parent = parent;
	job->blocking = comm ? comm->blocking : parent->blocking;
	hk__nccl_comm_hold(parent);
	*comm_out = comm;
	return hk__nccl_job_submit(job);
}

static ncclResult_t comm_split(ncclComm_t parent, int color, int key, ncclComm_t *comm_out,
			       const ncclConfig_t *config)
{
	struct ncclComm *comm = NULL;
	ncclResult_t result = hk__nccl_config_check(config);

	if (result != ncclSuccess)
		return result;
	if (!comm_out || color < NCCL_SPLIT_NOCOLOR)
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommSplit: color %d", color);
	if (color != NCCL_SPLIT_NOCOLOR) {
		comm = child_new(parent, config);
		if (!comm)
			return ncclSystemError;
	}
	struct hk__nccl_job *job = job_new(HK__NCCL_SPLIT, comm, comm_out);
	if (!job) {
		if (comm)
			comm_undo(comm);
		return ncclSystemError;
	}
	job->color = color;
	job->key = key;
	return child_submit(job, parent, comm, comm_out);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
			   ncclConfig_t *config)
{
	ncclResult_t result = hk__nccl_comm_take(comm, "ncclCommSplit");

	if (result != ncclSuccess)
		return said(result);
	result = comm_split(comm, color, key, newcomm, config);
	hk__nccl_comm_drop(comm);
	return said(result);
}
HK__NCCL_TWIN(CommSplit);

static ncclResult_t shrink_check(const struct ncclComm *parent, const int *exclude, int nexclude,
				 ncclComm_t *comm_out, int flags)
{
	if (!comm_out || nexclude < 1 || nexclude >= parent->nranks || !exclude ||
	    (flags & ~NCCL_SHRINK_ABORT))
		return hk__nccl_fail(ncclInvalidArgument,
				     "ncclCommShrink: %d ranks of %d to leave out, flags %d",
				     nexclude, parent->nranks, flags);
	for (int i = 0; i < nexclude; i++) {
		if (exclude[i] < 0 || exclude[i] >= parent->nranks || exclude[i] == parent->rank)
			return hk__nccl_fail(ncclInvalidArgument,
					     "ncclCommShrink: rank %d of %d cannot be left out%s",
					     exclude[i], parent->nranks,
					     exclude[i] == parent->rank ? ": it is this one" : "");
	}
	return ncclSuccess;
}

static ncclResult_t comm_shrink(ncclComm_t parent, const int *exclude, int nexclude,
				ncclComm_t *comm_out, const ncclConfig_t *config, int flags)
{
	bool aborts = (flags & NCCL_SHRINK_ABORT) != 0;
	ncclResult_t result = ncclSuccess;

	/* One that has failed can still be shrunk. */
	if (!atomic_load(&parent->made))
		return hk__nccl_fail(ncclInvalidUsage,
				     "ncclCommShrink: the communicator was not created");
	if (!aborts)
		result = hk__nccl_comm_usable(parent, "ncclCommShrink");
	if (result == ncclSuccess)
		result = hk__nccl_config_check(config);
	if (result == ncclSuccess)
		result = shrink_check(parent, exclude, nexclude, comm_out, flags);
	if (result != ncclSuccess)
		return result;
	struct ncclComm *comm = child_new(parent, config);
	struct hk__nccl_job *job = comm ? job_new(HK__NCCL_SHRINK, comm, comm_out) : NULL;
	int *copy = job ? malloc((size_t)nexclude * sizeof(*copy)) : NULL;
	if (!copy) {
		if (job)
			hk__nccl_jobs_drop(job);
		else if (comm)
			comm_undo(comm);
		return hk__nccl_fail(ncclSystemError, "ncclCommShrink: no memory");
	}
	memcpy(copy, exclude, (size_t)nexclude * sizeof(*copy));
	job->exclude = copy;
	job->nexclude = nexclude;
	job->aborts = aborts;
	return child_submit(job, parent, comm, comm_out);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *exclude, int nexclude, ncclComm_t *newcomm,
			    ncclConfig_t *config, int flags)
{
	if (!hk__nccl_comm_try(comm))
		return said(
			hk__nccl_fail(ncclInvalidArgument, "ncclCommShrink: not a communicator"));
	ncclResult_t result = comm_shrink(comm, exclude, nexclude, newcomm, config, flags);
	hk__nccl_comm_drop(comm);
	return said(result);
}
HK__NCCL_TWIN(CommShrink);

/* ---- the last but one ---- */

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	ncclResult_t result = hk__nccl_comm_take(comm, "ncclCommFinalize");

	if (result != ncclSuccess)
		return said(result);
	struct hk__nccl_job *job = job_new(HK__NCCL_FINALIZE, comm, NULL);
	result = job ? hk__nccl_job_submit(job) : ncclSystemError;
	hk__nccl_comm_drop(comm);
	return said(result);
}
HK__NCCL_TWIN(CommFinalize);
