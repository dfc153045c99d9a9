/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c - error codes that carry a line. MPI asks for the text of an error by its code
 * alone, so every failure gets a code of its own, and the latest lines are kept.
 */
#include "mpi.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Codes of lines begin behind the classes and stay below MPI_ERR_LASTCODE. */
#define CODE_FIRST 1000

HK__MPI_API int MPIABI_Error_string(int code, char *text, int *len);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[HK__MPI_LINES][HK_WHY_MAX];
static int codes; /* given so far */

HK_PRINTF(1, 0)
static int line_keep(const char *fmt, va_list args)
{
	pthread_mutex_lock(&lock);
	vsnprintf(lines[codes % HK__MPI_LINES], HK_WHY_MAX, fmt, args);
	int code = CODE_FIRST + codes;
	/* No program makes that many errors; one that does gets the old codes again. */
	codes = (codes + 1) % (HK__MPI_ERR_LASTCODE - CODE_FIRST);
	pthread_mutex_unlock(&lock);
	return code;
}

int hk__mpi_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int code = line_keep(fmt, args);
	va_end(args);
	return code;
}

int hk__mpi_fail_loud(const char *fmt, ...)
{
	char text[HK__MPI_ERROR_STRING_MAX];
	va_list args;
	int len;

	va_start(args, fmt);
	int code = line_keep(fmt, args);
	va_end(args);
	(void)MPIABI_Error_string(code, text, &len);
	fprintf(stderr, "%s\n", text);
	return code;
}

HK__MPI_API int MPIABI_Error_string(int code, char *text, int *len)
{
	int at = code - CODE_FIRST;

	pthread_mutex_lock(&lock);
	if (code == HK__MPI_SUCCESS)
		*len = snprintf(text, HK__MPI_ERROR_STRING_MAX, "success");
	else if (at >= 0 && at < codes && codes - at <= HK__MPI_LINES)
		*len = snprintf(text, HK__MPI_ERROR_STRING_MAX, "%s", lines[at % HK__MPI_LINES]);
	else if (at >= 0 && at < codes)
		*len = snprintf(text, HK__MPI_ERROR_STRING_MAX,
				"error %d: its line is gone, as the latest %d are kept", code,
				HK__MPI_LINES);
	else
		*len = snprintf(text, HK__MPI_ERROR_STRING_MAX,
				"error %d: no call of this process returned it", code);
	pthread_mutex_unlock(&lock);
	return HK__MPI_SUCCESS;
}
