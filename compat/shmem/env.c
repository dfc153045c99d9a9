/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - the variables of OpenSHMEM: SHMEM_SYMMETRIC_SIZE, SHMEM_VERSION, SHMEM_INFO,
 * SHMEM_DEBUG, and their old spellings SMA_*. Those of Hocket are read by Hocket.
 */
#include "sma.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAP_BYTES ((size_t)512 << 20)

/* NOLINTNEXTLINE(concurrency-mt-unsafe): read once */
static const char *text_of(const char *name)
{
	return getenv(name); /* NOLINT(concurrency-mt-unsafe) */
}

const char *hk__sma_env(const char *name)
{
	char full[64];
	const char *text;

	snprintf(full, sizeof(full), "SHMEM_%s", name);
	text = text_of(full);
	if (text)
		return text;
	snprintf(full, sizeof(full), "SMA_%s", name);
	return text_of(full);
}

/* 2 to this power; -1: no suffix. */
static int power_of(char suffix)
{
	switch (toupper((unsigned char)suffix)) {
	case 'K':
		return 10;
	case 'M':
		return 20;
	case 'G':
		return 30;
	case 'T':
		return 40;
	default:
		return -1;
	}
}

bool hk__sma_env_heap(size_t *bytes_out, struct hk_why *why)
{
	const char *text = hk__sma_env("SYMMETRIC_SIZE");
	double number;
	char *end;

	*bytes_out = HEAP_BYTES;
	if (!text)
		return true;
	errno = 0;
	number = strtod(text, &end);
	/* What follows a suffix is ignored: "1GB", "64MiB". */
	if (*end != '\0' && end != text) {
		int power = power_of(*end);

		number = power < 0 ? NAN : ldexp(number, power);
	}
	if (end == text || errno != 0 || !(number > 0) || !isfinite(number) ||
	    text[strspn(text, " \t+")] == '-' || strpbrk(text, "xXpP")) {
		snprintf(why->text, sizeof(why->text),
			 "SHMEM_SYMMETRIC_SIZE=%s is no size: a number above 0, and k, m, g or t "
			 "after it, as in 1.5g",
			 text);
		return false;
	}
	if (number > (double)HK_MEM_MAX) {
		snprintf(why->text, sizeof(why->text),
			 "SHMEM_SYMMETRIC_SIZE=%s is more than the %zu MiB that a PE may have",
			 text, HK_MEM_MAX >> 20);
		return false;
	}
	*bytes_out = (size_t)ceil(number);
	return true;
}

void hk__sma_env_print(void)
{
	if (hk__sma.me != 0)
		return;
	if (hk__sma_env("VERSION"))
		printf("OpenSHMEM %d.%d, %s %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION,
		       SHMEM_VENDOR_STRING, hk_version());
	if (hk__sma_env("INFO"))
		printf("SHMEM_VERSION         print the version (%s)\n"
		       "SHMEM_INFO            print this (%s)\n"
		       "SHMEM_SYMMETRIC_SIZE  bytes of the symmetric heap (%zu)\n"
		       "SHMEM_DEBUG           print what the library does (%s)\n"
		       "HOCKET_CHECK          check calls and addresses (%s)\n",
		       hk__sma_env("VERSION") ? "set" : "not set", "set", hk__sma.heap.bytes,
		       hk__sma.debug ? "set" : "not set", hk__sma.check ? "set" : "not set");
	fflush(stdout);
}
