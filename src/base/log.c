/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - lines for whoever watches a job: there is no caller to give them to. A program
 * takes them by hk_log_set(); else they go to standard error.
 */
#include "base/env.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024
#define LOG_OFF 1 /* the place of "off" in HOCKET_LOG */

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
	const struct hk__env env = { NULL, NULL };
	struct hk__env_value setting;
	char text[LINE_MAX_BYTES + sizeof("hocket: \n")];

	/* One that is wrong hk_group_create refuses. */
	if (hk__env_read(&env, HK__ENV_LOG, &setting) == HK_OK && setting.number == LOG_OFF)
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
