/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - who touches nets: the caller, or, where a progress thread was
 * asked for, that thread alone. Callers then hand requests and jobs over under
 * the lock, kick the thread, and wait on `over`.
 */
#include "group/record/recorder.h"

#include <sched.h>
#include <signal.h>

void hk__world_lock(struct hk__world *world)
{
	if (world->threaded)
		pthread_mutex_lock(&world->lock);
}

void hk__world_unlock(struct hk__world *world)
{
	if (world->threaded)
		pthread_mutex_unlock(&world->lock);
}

static bool world_run_jobs(struct hk__world *world)
{
	bool any = world->jobs != NULL;

	while (world->jobs) {
		struct hk__job *job = world->jobs;

		world->jobs = job->next;
		job->run(job->ctx);
		job->over = true;
	}
	return any;
}

/* An idle thread looks up now and then all the same: requests have deadlines. */
#define THREAD_NAP_NS UINT64_C(100000000)
/* Nets do not tell of what is awaited of another rank's device: looks, ever rarer. */
#define THREAD_COPIES_NAP_NS UINT64_C(25000)
#define THREAD_COPIES_NAP_MAX_NS UINT64_C(200000)

static void *world_thread(void *ctx)
{
	struct hk__world *world = ctx;
	struct hk__wait wait = { .net = world->net,
				 .spins = world->spins / 8,
				 .yields = world->yields / 4,
				 .timeout_ns = THREAD_NAP_NS,
				 .watch_ns = world->watch_ns,
				 .sleeps = hk__record_sleep,
				 .sleeps_ctx = world };

	uint64_t next_expiry = 0, nap = THREAD_COPIES_NAP_NS;

	for (;;) {
		bool moved = false;

		pthread_mutex_lock(&world->lock);
		if (world_run_jobs(world))
			moved = true;
		bool progressed;
		world->copies = HK__COPIES_NONE;
		hk__world_progress(world, &progressed);
		moved |= progressed;
		if (!moved && hk__now_ns() >= next_expiry) {
			moved = hk__world_expire(world);
			next_expiry = hk__now_ns() + THREAD_NAP_NS / 2;
		}
		if (moved)
			pthread_cond_broadcast(&world->over);
		bool stopping = world->stopping && !world->active && !world->jobs;
		enum hk__copies copies = world->copies;
		pthread_mutex_unlock(&world->lock);
		if (stopping)
			return NULL;
		if (copies == HK__COPIES_RUN) {
			sched_yield(); /* soon over */
			continue;
		}
		if (moved || !copies)
			nap = THREAD_COPIES_NAP_NS;
		else if (wait.idle > wait.spins + wait.yields && nap < THREAD_COPIES_NAP_MAX_NS)
			nap *= 2;
		wait.timeout_ns = copies ? nap : THREAD_NAP_NS;
		if (moved || copies)
			wait.deadline = 0;
		if (hk__wait_step(&wait, moved) == HK_ETIMEDOUT)
			wait.deadline = 0;
	}
}

enum hk_status hk__world_start_thread(struct hk__world *world)
{
	if (world->threaded)
		return HK_OK;
	world->threaded = true;
	world->stopping = false;
	/* Signals are for the threads of the program. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&world->thread, NULL, world_thread, world);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		return HK_OK;
	world->threaded = false;
	return HK_EIO;
}

void hk__world_stop_thread(struct hk__world *world)
{
	if (!world->threaded)
		return;
	pthread_mutex_lock(&world->lock);
	world->stopping = true;
	pthread_mutex_unlock(&world->lock);
	hk__net_kick(world->net);
	pthread_join(world->thread, NULL);
	world->threaded = false;
}

void hk__world_run(struct hk__world *world, void (*run)(void *ctx), void *ctx)
{
	struct hk__job job = { .run = run, .ctx = ctx };

	if (!world->threaded) {
		run(ctx);
		return;
	}
	pthread_mutex_lock(&world->lock);
	job.next = world->jobs;
	/* Its end is waited for below. */
	/* cppcheck-suppress autoVariables */
	world->jobs = &job;
	hk__net_kick(world->net);
	while (!job.over)
		pthread_cond_wait(&world->over, &world->lock);
	pthread_mutex_unlock(&world->lock);
}
