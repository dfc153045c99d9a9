/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end.c - how a job ends before its time: shmem_global_exit, and errors, which end it with a
 * line. A PE may be in a loop of its own then. So each has a thread that sleeps on a word of
 * the inner space; who ends the job writes that word everywhere, and the threads end their
 * processes with the same status.
 */
#include "sma.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define END_JOB 0x100u	   /* and the status, in the low byte */
#define END_WATCH 0x200u   /* only the thread: this PE finalizes */
#define END_GO 0x400u	   /* all have flushed: go */
#define LOOK_NS 200000000L /* far PEs write the word and wake nobody */
#define FLUSH_SECONDS 2

static pthread_t thread;
static bool watching;

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/* What the program has printed; where a stream is held for ever, SIGALRM ends the process. */
static void flush(void)
{
	sigset_t set;

	signal(SIGALRM, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	alarm(FLUSH_SECONDS);
	fflush(NULL);
}

/*
 * Launchers end the others as soon as one process has failed. So nobody goes before all of
 * this host have flushed, or a second is over: some may be dead.
 */
static void nap(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	(void)nanosleep(&ms, NULL);
}

static _Noreturn void follow(uint32_t *word)
{
	flush();
	__atomic_store_n(&hk__sma_inner()->flushed, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 1000 && !(__atomic_load_n(word, __ATOMIC_ACQUIRE) & END_GO); i++)
		nap();
	_exit((int)(__atomic_load_n(word, __ATOMIC_RELAXED) & 0xff));
}

static void *watch(void *arg)
{
	uint32_t *word = &hk__sma_inner()->end;
	const struct timespec look = { .tv_nsec = LOOK_NS };

	(void)arg;
	for (;;) {
		uint32_t end = __atomic_load_n(word, __ATOMIC_ACQUIRE);

		if (end & END_JOB)
			follow(word);
		if (end & END_WATCH)
			return NULL;
		(void)futex(word, FUTEX_WAIT, end, hk__sma.near ? NULL : &look);
	}
}

bool hk__sma_watch_start(void)
{
	sigset_t all, before;
	pthread_attr_t attr;

	if (pthread_attr_init(&attr) != 0)
		return false;
	(void)pthread_attr_setstacksize(&attr, 64 << 10);
	/* The program's signals go to the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	watching = pthread_create(&thread, &attr, watch, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return watching;
}

void hk__sma_watch_stop(void)
{
	uint32_t *word = &hk__sma_inner()->end;

	if (!watching)
		return;
	__atomic_fetch_or(word, END_WATCH, __ATOMIC_RELEASE);
	(void)futex(word, FUTEX_WAKE, INT_MAX, NULL);
	pthread_join(thread, NULL);
	watching = false;
}

static void tell(uint32_t pe, uint32_t end)
{
	size_t offset = offsetof(struct hk__sma_inner, end);
	char *near = hk__sma.inner.peer[pe];

	if (near) {
		uint32_t *word = (uint32_t *)(void *)(near + offset);
		uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED), new;

		/* Of several that end the job, the first says with which status. */
		do {
			new = old | (old & END_JOB ? end & END_GO : end);
		} while (!__atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_RELEASE,
						      __ATOMIC_RELAXED));
		(void)futex(word, FUTEX_WAKE, INT_MAX, NULL);
	} else {
		(void)!hk_put(hk__sma.inner.win, pe, offset, &end, sizeof(end), NULL);
	}
}

static bool all_flushed(void)
{
	for (uint32_t pe = 0; pe < hk__sma.n; pe++) {
		char *near = hk__sma.inner.peer[pe];
		struct hk__sma_inner *inner = (struct hk__sma_inner *)(void *)near;

		if (near && pe != hk__sma.me && !__atomic_load_n(&inner->flushed, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

static void tell_all(uint32_t end)
{
	for (uint32_t pe = 0; pe < hk__sma.n; pe++) {
		if (pe != hk__sma.me)
			tell(pe, end);
	}
}

void hk__sma_end_job(int status)
{
	flush();
	if (hk__sma.inner.peer) {
		__atomic_store_n(&hk__sma_inner()->flushed, 1, __ATOMIC_RELEASE);
		tell_all(END_JOB | (uint32_t)(status & 0xff));
		if (!hk__sma.near && hk_group_state(hk__sma.group) == HK_OK)
			(void)!hk_quiet(hk_group_ctx(hk__sma.group));
		for (int i = 0; i < 1000 && !all_flushed(); i++)
			nap();
		tell_all(END_JOB | END_GO | (uint32_t)(status & 0xff));
	}
	_exit(status & 0xff);
}

void hk__sma_die(const char *call, const char *format, ...)
{
	char line[HK_WHY_MAX + 256];
	va_list args;
	int len = hk__sma.n > 0 ? snprintf(line, sizeof(line), "PE %u: %s: ", hk__sma.me, call)
				: snprintf(line, sizeof(line), "%s: ", call);

	va_start(args, format);
	vsnprintf(line + len, sizeof(line) - (size_t)len, format, args);
	va_end(args);
	/* One write, so that lines of several PEs do not mix. */
	dprintf(STDERR_FILENO, "hocket-shmem: %s\n", line);
	hk__sma_end_job(1);
}

void hk__sma_fail(const char *call, struct hk_group *group, enum hk_status status)
{
	const char *why = group ? hk_group_why(group) : "";

	hk__sma_die(call, "%s", *why ? why : hk_status_text(status));
}

void hk__sma_must_run(const char *call)
{
	if (__builtin_expect(hk__sma.depth == 0, 0))
		hk__sma_die(call, "called before shmem_init or after the last shmem_finalize");
}

FN(SHMEMX_NORETURN void, shmem_global_exit, (int status))
{
	hk__sma_must_run("shmem_global_exit");
	hk__sma_end_job(status);
}
