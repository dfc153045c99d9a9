/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - jobs: what one is, who performs them, and what becomes of the communicator.
 *
 * A job may wait for other ranks, and these may be jobs of the same thread: those
 * of a group are performed by a thread each. Those of communicators that do not
 * block go on behind the caller's back.
 */
#include "comm.h"

#include <stdlib.h>
#include <string.h>

/* ---- the end of a job ---- */

static void job_free(struct hk__nccl_job *job)
{
	if (job->comm)
		hk__nccl_comm_drop(job->comm);
	if (job->parent)
		hk__nccl_comm_drop(job->parent);
	free(job->exclude);
	free(job);
}

/* What has failed meanwhile stays. */
static void parent_state(struct ncclComm *parent, int from, int to)
{
	(void)atomic_compare_exchange_strong(&parent->state, &from, to);
}

/* From here on the caller may use, or destroy, what was made. */
static ncclResult_t job_finish(struct hk__nccl_job *job)
{
	ncclResult_t result = job->result;
	struct ncclComm *comm = job->comm;

	if (job->parent)
		parent_state(job->parent, ncclInProgress, ncclSuccess);
	if (comm && result != ncclSuccess && job->blocking && job->kind != HK__NCCL_FINALIZE) {
		*job->comm_out = NULL;
		atomic_store(&comm->state, (int)result);
		/* The caller never had it; or another thread has aborted it. */
		(void)hk__nccl_comm_close(comm);
	} else if (comm) {
		atomic_store(&comm->state, (int)result);
	}
	job_free(job);
	return result;
}

void hk__nccl_jobs_drop(struct hk__nccl_job *jobs)
{
	while (jobs) {
		struct hk__nccl_job *next = jobs->next;

		jobs->result = ncclInvalidUsage;
		jobs->blocking = true;
		if (jobs->kind == HK__NCCL_FINALIZE)
			job_free(jobs); /* the communicator is as it was */
		else
			(void)job_finish(jobs);
		jobs = next;
	}
}

/* ---- all of a group ---- */

/* The other ranks of the same communicator: as many as there are here. */
static uint32_t jobs_alike(struct hk__nccl_job *first, struct hk__nccl_job **alike, uint32_t room)
{
	uint32_t n = 0;

	for (struct hk__nccl_job *job = first; job && n < room; job = job->next) {
		if (!job->done && job->kind == HK__NCCL_INIT &&
		    memcmp(&job->id, &first->id, sizeof(job->id)) == 0 &&
		    job->comm->nranks == first->comm->nranks &&
		    job->comm->context == first->comm->context)
			alike[n++] = job;
	}
	return n;
}

/* Ranks that are all here, each once, and on the same device. */
static void jobs_threads(struct hk__nccl_job *jobs)
{
	for (struct hk__nccl_job *job = jobs; job; job = job->next) {
		if (job->done || job->kind != HK__NCCL_INIT)
			continue;
		uint32_t n = (uint32_t)job->comm->nranks, found = 0;
		struct hk__nccl_job **alike = calloc(2 * (size_t)n, sizeof(struct hk__nccl_job *));
		if (!alike)
			return; /* by meeting, then */
		struct hk__nccl_job **ranks = alike + n;

		if (jobs_alike(job, alike, n) == n) {
			for (uint32_t i = 0; i < n; i++) {
				found += !ranks[alike[i]->comm->rank];
				ranks[alike[i]->comm->rank] = alike[i];
			}
		}
		if (found == n) {
			ncclResult_t result = hk__nccl_init_threads(ranks, n);

			for (uint32_t i = 0; i < n; i++) {
				ranks[i]->result = result;
				ranks[i]->done = true;
			}
		}
		free(alike);
	}
}

static void *job_run(void *ctx)
{
	struct hk__nccl_job *job = ctx;

	job->result = hk__nccl_job_perform(job);
	job->done = true;
	return NULL;
}

static ncclResult_t jobs_conduct(struct hk__nccl_job *jobs)
{
	ncclResult_t result = ncclSuccess;

	jobs_threads(jobs);
	for (struct hk__nccl_job *job = jobs; job; job = job->next) {
		if (job->done)
			continue;
		if (!job->next && job == jobs)
			(void)job_run(job);
		else
			job->started = pthread_create(&job->thread, NULL, job_run, job) == 0;
	}
	for (struct hk__nccl_job *job = jobs; job; job = job->next) {
		if (job->started)
			pthread_join(job->thread, NULL);
		else if (!job->done)
			job->result = hk__nccl_fail(ncclSystemError,
						    "cannot start a thread for a communicator");
	}
	while (jobs) {
		struct hk__nccl_job *next = jobs->next;
		ncclResult_t one = job_finish(jobs);

		result = result == ncclSuccess ? one : result;
		jobs = next;
	}
	return result;
}

static void *jobs_run(void *ctx)
{
	(void)jobs_conduct(ctx);
	return NULL;
}

ncclResult_t hk__nccl_jobs_perform(struct hk__nccl_job *jobs)
{
	bool blocking = true;
	pthread_attr_t attr;
	pthread_t thread;

	for (struct hk__nccl_job *job = jobs; job; job = job->next)
		blocking &= job->blocking;
	if (blocking)
		return jobs_conduct(jobs);
	for (struct hk__nccl_job *job = jobs; job; job = job->next) {
		job->blocking = false;
		if (job->comm)
			atomic_store(&job->comm->state, ncclInProgress);
		if (job->parent)
			parent_state(job->parent, ncclSuccess, ncclInProgress);
	}
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	int error = pthread_create(&thread, &attr, jobs_run, jobs);
	pthread_attr_destroy(&attr);
	if (error == 0)
		return ncclInProgress;
	hk__nccl_jobs_drop(jobs);
	return hk__nccl_fail(ncclSystemError, "cannot start a thread for a communicator: error %d",
			     error);
}

ncclResult_t hk__nccl_job_submit(struct hk__nccl_job *job)
{
	if (hk__nccl_group_note_job(job))
		return job->blocking ? ncclSuccess : ncclInProgress;
	return hk__nccl_jobs_perform(job);
}
