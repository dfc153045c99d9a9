/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - lines for who watches a job: there is no caller to give them to. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

void hk__log(const char *fmt, ...)
{
	static const char prefix[] = "hocket: ";
	const char *setting = getenv("HOCKET_LOG"); /* NOLINT(concurrency-mt-unsafe) */
	char line[LINE_MAX_BYTES];
	size_t at = sizeof(prefix) - 1;
	va_list args;

	if (setting && strcmp(setting, "off") == 0)
		return;
	memcpy(line, prefix, at);
	va_start(args, fmt);
	int len = vsnprintf(line + at, sizeof(line) - at - 1, fmt, args);
	va_end(args);
	if (len > 0)
		at += (size_t)len < sizeof(line) - at - 1 ? (size_t)len : sizeof(line) - at - 2;
	line[at++] = '\n';
	/* In one piece, so that lines of ranks do not mix; there is nobody to tell of failure. */
	(void)!write(STDERR_FILENO, line, at);
}
