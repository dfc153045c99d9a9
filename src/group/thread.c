/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - who touches nets: the caller, or, where a progress thread was
 * asked for, that thread alone. Callers then hand requests and jobs over under
 * the lock, kick the thread, and wait on `over`.
 *
 * Between the two is the helper: callers touch nets, under the lock, and the helper
 * does for a rank that computes while peers ask it for something. A caller that
 * polls is never disturbed: the helper looks every half a millisecond whether one
 * has, and sleeps on the sockets where none has.
 */
#include "group/record/recorder.h"
#include "net/tcp/tcp.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

/* Of a world with a helper. Who holds it may be asleep in a net. */
static void helped_lock(struct hk__world *world)
{
	if (pthread_mutex_trylock(&world->lock) == 0)
		return;
	/* Pairs with hk__world_give_way. */
	atomic_fetch_add(&world->wanted, 1);
	hk__net_kick(world->net);
	pthread_mutex_lock(&world->lock);
	atomic_fetch_sub(&world->wanted, 1);
}

void hk__world_give_way(struct hk__world *world)
{
	atomic_fetch_add_explicit(&world->turns, 1, memory_order_relaxed);
	while (atomic_load_explicit(&world->wanted, memory_order_relaxed)) {
		pthread_mutex_unlock(&world->lock);
		sched_yield();
		helped_lock(world);
	}
}

void hk__world_lock(struct hk__world *world)
{
	if (world->threaded)
		pthread_mutex_lock(&world->lock);
	else if (world->helped)
		helped_lock(world);
}

void hk__world_unlock(struct hk__world *world)
{
	if (!world->threaded && !world->helped)
		return;
	atomic_fetch_add_explicit(&world->turns, 1, memory_order_relaxed);
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

/* ---- the helper ---- */

#define HELPER_NAP_NS 400000  /* between looks whether callers poll */
#define HELPER_GRACE_NS 40000 /* a caller has, until the helper takes over */
/* Nets without a descriptor are looked at; one that has may lie about what a caller reads. */
#define HELPER_SLEEP_MS 100

static void helper_nap(long ns)
{
	struct timespec nap = { 0, ns };

	(void)nanosleep(&nap, NULL);
}

/* Sleeps until something may have come; false: a caller polls, or there is nothing. */
static bool helper_wait(struct hk__world *world)
{
	uint32_t turns = atomic_load_explicit(&world->turns, memory_order_relaxed);

	helper_nap(HELPER_NAP_NS);
	if (turns != atomic_load_explicit(&world->turns, memory_order_relaxed))
		return false;
	int fd = world->tcp && !world->asks_near ? hk__tcp_fd(world->tcp) : -1;
	if (fd < 0)
		return true;
	struct pollfd ready = { fd, POLLIN, 0 };
	if (poll(&ready, 1, HELPER_SLEEP_MS) <= 0)
		return true; /* timers, and what was staged */
	helper_nap(HELPER_GRACE_NS);
	return turns == atomic_load_explicit(&world->turns, memory_order_relaxed);
}

static void *helper_thread(void *ctx)
{
	struct hk__world *world = ctx;

	while (atomic_load(&world->helping)) {
		if (!helper_wait(world) || pthread_mutex_trylock(&world->lock) != 0)
			continue;
		bool moved = !world->threaded;
		/* As long as it moves something, and nobody else would. */
		while (moved && !atomic_load_explicit(&world->wanted, memory_order_relaxed))
			hk__world_progress(world, &moved);
		pthread_mutex_unlock(&world->lock);
	}
	return NULL;
}

enum hk_status hk__world_start_helper(struct hk__world *world)
{
	if (world->helped || world->given)
		return HK_OK;
	sigset_t all, before;
	sigfillset(&all);
	atomic_store(&world->helping, true);
	world->helped = true;
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&world->helper, NULL, helper_thread, world);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		return HK_OK;
	world->helped = false;
	return HK_EIO;
}

void hk__world_stop_helper(struct hk__world *world)
{
	if (!world->helped)
		return;
	atomic_store(&world->helping, false);
	if (world->tcp)
		hk__net_kick(world->tcp);
	pthread_join(world->helper, NULL);
	world->helped = false;
}

void hk__world_run(struct hk__world *world, void (*run)(void *ctx), void *ctx)
{
	struct hk__job job = { .run = run, .ctx = ctx };

	if (!world->threaded) {
		hk__world_lock(world);
		run(ctx);
		hk__world_unlock(world);
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
