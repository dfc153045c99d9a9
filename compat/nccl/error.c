/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - results, the last error, and the lines of NCCL_DEBUG. */
#include "comm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[HK_WHY_MAX];
static _Thread_local char last_copy[HK_WHY_MAX];
/* -2: not looked yet, -1: silent, else enum hk__nccl_level. */
static _Atomic int wanted = -2;
static FILE *sink;

/* ---- NCCL_DEBUG ---- */

/* NCCL_DEBUG_FILE: %h is the host, %p the process. */
static FILE *sink_open(const char *pattern)
{
	char path[512], host[65] = "";
	size_t used = 0;

	(void)gethostname(host, sizeof(host) - 1);
	for (const char *at = pattern; *at && used + 80 < sizeof(path); at++) {
		if (at[0] == '%' && (at[1] == 'h' || at[1] == 'p')) {
			int wrote = at[1] == 'h'
					    ? snprintf(path + used, sizeof(path) - used, "%s", host)
					    : snprintf(path + used, sizeof(path) - used, "%ld",
						       (long)getpid());
			used += wrote > 0 ? (size_t)wrote : 0;
			at++;
		} else {
			path[used++] = *at;
		}
	}
	path[used] = '\0';
	return fopen(path, "ae");
}

static int level_read(void)
{
	static const char *const names[] = { "VERSION", "WARN", "INFO", "TRACE" };
	const char *text = getenv("NCCL_DEBUG"); /* NOLINT(concurrency-mt-unsafe) */

	if (!text || !*text)
		return -1;
	for (int i = 0; i < 4; i++) {
		if (strcasecmp(text, names[i]) == 0)
			return i;
	}
	return strcasecmp(text, "ABORT") == 0 ? HK__NCCL_INFO : -1;
}

static int level_wanted(void)
{
	int level = atomic_load(&wanted);

	if (level != -2)
		return level;
	pthread_mutex_lock(&lock);
	level = level_read();
	if (level >= 0 && !sink) {
		const char *file = getenv("NCCL_DEBUG_FILE"); /* NOLINT(concurrency-mt-unsafe) */

		sink = file && *file ? sink_open(file) : NULL;
		if (!sink)
			sink = stderr;
	}
	atomic_store(&wanted, level);
	pthread_mutex_unlock(&lock);
	return level;
}

static void line_write(enum hk__nccl_level level, const char *text)
{
	static const char *const names[] = { "VERSION", "WARN", "INFO", "TRACE" };
	char host[65] = "";

	if (level_wanted() < (int)level)
		return;
	(void)gethostname(host, sizeof(host) - 1);
	pthread_mutex_lock(&lock);
	fprintf(sink, "%s:%ld Hocket NCCL %s %s\n", host, (long)getpid(), names[level], text);
	fflush(sink);
	pthread_mutex_unlock(&lock);
}

void hk__nccl_log(enum hk__nccl_level level, const char *fmt, ...)
{
	char text[HK_WHY_MAX];
	va_list args;

	if (level_wanted() < (int)level)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	line_write(level, text);
}

ncclResult_t hk__nccl_fail(ncclResult_t result, const char *fmt, ...)
{
	char text[HK_WHY_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	pthread_mutex_lock(&lock);
	memcpy(last, text, sizeof(last));
	pthread_mutex_unlock(&lock);
	line_write(HK__NCCL_WARN, text);
	return result;
}

ncclResult_t hk__nccl_result(enum hk_status status)
{
	switch (status) {
	case HK_OK:
		return ncclSuccess;
	case HK_INPROGRESS:
		return ncclInProgress;
	case HK_EINVAL:
	case HK_ELIMIT:
	case HK_ESYNTAX:
		return ncclInvalidArgument;
	case HK_EMISMATCH:
	case HK_EDENIED:
		return ncclInvalidUsage;
	case HK_EPEER:
	case HK_EREVOKED:
	case HK_ETIMEDOUT:
		return ncclRemoteError;
	case HK_ENOMEM:
	case HK_EIO:
		return ncclSystemError;
	case HK_EREFUSED:
		return ncclInternalError;
	}
	return ncclInternalError;
}

/* ---- what programs ask ---- */

const char *hk__nccl_result_text(ncclResult_t result)
{
	static const char *const texts[] = {
		[ncclSuccess] = "no error",
		[ncclUnhandledCudaError] = "a call of the CUDA driver failed",
		[ncclSystemError] = "a system call failed, or memory ran out",
		[ncclInternalError] = "internal error",
		[ncclInvalidArgument] = "invalid argument",
		[ncclInvalidUsage] = "invalid usage",
		[ncclRemoteError] = "a rank is gone, gave up, or did not come in time",
		[ncclInProgress] = "in progress",
	};

	if ((int)result < 0 || result >= ncclNumResults)
		return "unknown result code";
	return texts[result];
}

const char *ncclGetErrorString(ncclResult_t result)
{
	return hk__nccl_result_text(result);
}
HK__NCCL_TWIN(GetErrorString);

const char *ncclGetLastError(ncclComm_t comm)
{
	(void)comm; /* as with NCCL: the last of the process */
	pthread_mutex_lock(&lock);
	memcpy(last_copy, last, sizeof(last));
	pthread_mutex_unlock(&lock);
	return last_copy;
}
HK__NCCL_TWIN(GetLastError);

void ncclResetDebugInit(void)
{
	atomic_store(&wanted, -2);
}
HK__NCCL_TWIN(ResetDebugInit);

void ncclResetDebugInitInternal(void)
{
	atomic_store(&wanted, -2);
}
HK__NCCL_TWIN(ResetDebugInitInternal);

ncclResult_t ncclGetVersion(int *version)
{
	if (!version)
		return hk__nccl_fail(ncclInvalidArgument, "ncclGetVersion: `version` is NULL");
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}
HK__NCCL_TWIN(GetVersion);
