/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - lines for whoever watches a job: there is no caller to give them to. A program
 * takes them by hk_log_set(); else they go to standard error.
 */
#include "base/base.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

/*
 * Held for reading while a callback runs, so that none runs any more once hk_log_set()
 * returns. A child of fork(2) starts with a lock of its own: nobody holds it there.
 */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static hk_log_fn *log_fn;
static void *log_ctx;

static void log_fork_child(void)
{
	lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
}

static void log_fork_register(void)
{
	/* Without memory for it hk_log_set() may block in a child that was forked meanwhile. */
	(void)pthread_atfork(NULL, NULL, log_fork_child);
}

void hk_log_set(hk_log_fn *fn, void *ctx)
{
	(void)pthread_once(&once, log_fork_register);
	pthread_rwlock_wrlock(&lock);
	log_fn = fn;
	log_ctx = ctx;
	pthread_rwlock_unlock(&lock);
}

/* In one piece, so that lines of ranks do not mix; there is nobody to tell of failure. */
static void line_write(const char *line)
{
	const char *setting = getenv("HOCKET_LOG"); /* NOLINT(concurrency-mt-unsafe) */
	char text[LINE_MAX_BYTES + sizeof("hocket: \n")];

	if (setting && strcmp(setting, "off") == 0)
		return;
	int len = snprintf(text, sizeof(text), "hocket: %s\n", line);
	if (len > 0)
		(void)!write(STDERR_FILENO, text, (size_t)len);
}

void hk__log(enum hk_log_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	pthread_rwlock_rdlock(&lock);
	if (log_fn)
		log_fn(log_ctx, level, line);
	else if (level != HK_LOG_DEBUG)
		line_write(line);
	pthread_rwlock_unlock(&lock);
}
