/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_table.c - every environment variable of Hocket: what it takes, what it is without, who
 * reads it. `hocket config` prints this, hocket-environment(7) is compared with it.
 */
#include "base/env.h"

#include <string.h>

#define PREFIX "HOCKET_"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define KIB UINT64_C(1024)

#define BOOL .type = HK__ENV_TYPE_BOOL, .usual = "0", .max = 1
#define COUNT(from, to) .type = HK__ENV_TYPE_COUNT, .min = (from), .max = (to)
#define SIZE_KIB(from, to) \
	.type = HK__ENV_TYPE_SIZE, .unit = "KiB", .scale = KIB, .min = (from), .max = (to)
#define SECONDS(from, to) \
	.type = HK__ENV_TYPE_DURATION, .unit = "seconds", .scale = SECOND_NS, .min = (from), \
	.max = (to)
#define MILLISECONDS(from, to) \
	.type = HK__ENV_TYPE_DURATION, .unit = "milliseconds", .scale = MS_NS, .min = (from), \
	.max = (to)
#define CHOICE(list) .type = HK__ENV_TYPE_CHOICE, .words = (list)
#define PATH(chars) .type = HK__ENV_TYPE_PATH, .min = 1, .max = (chars)
#define TEXT(chars) .type = HK__ENV_TYPE_TEXT, .min = 1, .max = (chars)

/* clang-format off */
const struct hk__env_row hk__env_rows[HK__ENV_COUNT] = {
	[HK__ENV_RANK] = { "HOCKET_RANK", COUNT(0, HK_RANKS_MAX - 1), .words = "new",
		.readers = "library, command",
		.about = "the number of this rank; new: joins a group that grows" },
	[HK__ENV_SIZE] = { "HOCKET_SIZE", COUNT(1, HK_RANKS_MAX), .readers = "library",
		.about = "the number of ranks" },
	[HK__ENV_ADDR] = { "HOCKET_ADDR", .type = HK__ENV_TYPE_ADDRESS, .readers = "library",
		.about = "where rank 0 listens" },
	[HK__ENV_KEY] = { "HOCKET_KEY", TEXT(0), .secret = true, .readers = "library, command",
		.about = "the job key, the same on all ranks; without it, the job's name" },
	[HK__ENV_HOST] = { "HOCKET_HOST", TEXT(127), .readers = "library, command",
		.about = "ranks with the same name share memory; without it, those of a host" },
	[HK__ENV_IFACE] = { "HOCKET_IFACE", TEXT(63), .readers = "library",
		.about = "the network interface for data; without it, the route to rank 0" },
	[HK__ENV_LOCAL_RANK] = { "HOCKET_LOCAL_RANK", COUNT(0, HK_RANKS_MAX - 1),
		.readers = "program", .about = "hocket run sets it: the rank among those of its host" },
	[HK__ENV_LOCAL_SIZE] = { "HOCKET_LOCAL_SIZE", COUNT(1, HK_RANKS_MAX),
		.readers = "program", .about = "hocket run sets it: the number of ranks of the host" },
	[HK__ENV_NET] = { "HOCKET_NET", CHOICE("auto|shm|tcp"), .usual = "auto",
		.readers = "library", .about = "the transports that a group uses" },
	[HK__ENV_TIMEOUT] = { "HOCKET_TIMEOUT", SECONDS(1, 1000000), .usual = "300",
		.readers = "library, libnccl",
		.about = "the deadline of a call and of joining; with libnccl 3600 by default" },
	[HK__ENV_WATCH_MS] = { "HOCKET_WATCH_MS", MILLISECONDS(10, 3600000), .usual = "100",
		.readers = "library", .about = "how often processes of this host are checked" },
	[HK__ENV_SILENCE_MS] = { "HOCKET_SILENCE_MS", MILLISECONDS(10, 3600000), .usual = "4000",
		.readers = "library", .about = "after which silence another host is lost" },
	[HK__ENV_GPU] = { "HOCKET_GPU", CHOICE("auto|staged|off"), .usual = "auto",
		.readers = "library, libnccl",
		.about = "how calls on device memory reach the other ranks" },
	[HK__ENV_GPU_PROTOCOL] = { "HOCKET_GPU_PROTOCOL", CHOICE("auto|lines|flags"),
		.usual = "auto", .readers = "library",
		.about = "how GPUs signal that a message has arrived" },
	[HK__ENV_GPU_SMS] = { "HOCKET_GPU_SMS", COUNT(0, 65536), .usual = "0",
		.readers = "library", .about = "multiprocessors of a GPU that calls use; 0: all" },
	[HK__ENV_ENCRYPT] = { "HOCKET_ENCRYPT", BOOL, .readers = "library",
		.about = "1: network traffic is encrypted" },
	[HK__ENV_TCP_CONGESTION] = { "HOCKET_TCP_CONGESTION", TEXT(15), .readers = "library",
		.about = "the congestion control of TCP; without it, the system's, never BBR" },
	[HK__ENV_LOG] = { "HOCKET_LOG", CHOICE("on|off"), .usual = "on", .readers = "library",
		.about = "off: no lines on standard error" },
	[HK__ENV_TRACE] = { "HOCKET_TRACE", PATH(511), .readers = "library, command",
		.about = "the directory that ranks write their traces to; without it, none" },
	[HK__ENV_TRACE_EVENTS] = { "HOCKET_TRACE_EVENTS", COUNT(2, 1u << 24), .usual = "65536",
		.readers = "library", .about = "how many events of a trace a rank keeps" },
	[HK__ENV_RECORD] = { "HOCKET_RECORD", CHOICE("on|live|off"), .usual = "on",
		.readers = "library, command",
		.about = "the flight recorder; live: no file is written" },
	[HK__ENV_RECORD_DIR] = { "HOCKET_RECORD_DIR", PATH(255), .readers = "library, command",
		.about = "the directory of its files; without it, hocket-UID among temporary files" },
	[HK__ENV_RECORD_KIB] = { "HOCKET_RECORD_KIB", SIZE_KIB(32, 65536), .usual = "256",
		.readers = "library", .about = "the size of the recorder" },
	[HK__ENV_HOSTS] = { "HOCKET_HOSTS", .type = HK__ENV_TYPE_LIST, .readers = "library, command",
		.about = "the names of the job's hosts, for hocket top; hocket run sets it" },
	[HK__ENV_FABRIC] = { "HOCKET_FABRIC", TEXT(255), .readers = "library, command, libnccl",
		.about = "a fabric, by name or file, whose constants choose algorithms" },
	[HK__ENV_CHECK] = { "HOCKET_CHECK", BOOL, .readers = "library, command",
		.about = "1: ranks compare their calls before they perform them" },
	[HK__ENV_PROGRESS] = { "HOCKET_PROGRESS", BOOL, .readers = "library",
		.about = "1: a thread makes progress" },
	[HK__ENV_LIBRARY] = { "HOCKET_LIBRARY", PATH(4095), .readers = "python",
		.about = "the libhocket.so that the Python package loads, if it has none inside" },
	[HK__ENV_CACHE] = { "HOCKET_CACHE", PATH(4095), .readers = "python",
		.about = "the directory of what hocket.torch builds; without it, ~/.cache/hocket" },
	[HK__ENV_SSH] = { "HOCKET_SSH", TEXT(1023), .usual = "ssh -o BatchMode=yes",
		.readers = "command", .about = "the command, with options, that reaches other hosts" },
};
/* clang-format on */

const struct hk__env_row *hk__env_row_find(const char *name, size_t name_len)
{
	for (size_t i = 0; i < HK__ENV_COUNT; i++)
		if (strlen(hk__env_rows[i].name) == name_len &&
		    strncmp(hk__env_rows[i].name, name, name_len) == 0)
			return &hk__env_rows[i];
	return NULL;
}

/* ---- names that are not known ---- */

#define NAME_MAX_CHARS 40u

/* How many letters were added, left out, replaced, or swapped with the next. */
static uint32_t name_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	uint32_t rows[3][NAME_MAX_CHARS + 1];
	uint32_t *before = rows[0], *last = rows[1], *now = rows[2];

	hk_assert(b_len <= NAME_MAX_CHARS);
	for (size_t k = 0; k <= b_len; k++)
		before[k] = last[k] = (uint32_t)k;
	for (size_t i = 1; i <= a_len; i++) {
		now[0] = (uint32_t)i;
		for (size_t k = 1; k <= b_len; k++) {
			uint32_t least = last[k - 1] + (a[i - 1] != b[k - 1]);

			least = hk__min(least, hk__min(last[k], now[k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				least = hk__min(least, before[k - 2] + 1);
			now[k] = least;
		}
		uint32_t *oldest = before;
		before = last;
		last = now;
		now = oldest;
	}
	return last[b_len];
}

/* The longest known name that this one begins with: HOCKET_ADDR of HOCKET_ADDRESS. */
static const char *name_begins(const char *name, size_t name_len)
{
	const char *longest = NULL;

	for (size_t i = 0; i < HK__ENV_COUNT; i++) {
		const char *known = hk__env_rows[i].name;
		size_t len = strlen(known);

		if (len < name_len && strncmp(name, known, len) == 0 &&
		    (!longest || len > strlen(longest)))
			longest = known;
	}
	return longest;
}

const char *hk__env_nearest(const char *name, size_t name_len)
{
	size_t skip = strlen(PREFIX);
	const char *nearest = NULL;
	uint32_t best = UINT32_MAX;

	if (name_len <= skip || name_len - skip > NAME_MAX_CHARS)
		return NULL;
	for (size_t i = 0; i < HK__ENV_COUNT; i++) {
		const char *known = hk__env_rows[i].name;
		uint32_t distance = name_distance(name + skip, name_len - skip, known + skip,
						  strlen(known) - skip);

		if (distance < best) {
			best = distance;
			nearest = known;
		}
	}
	/* Two slips, or one in three letters, are a slip; more is another word. */
	uint32_t letters = (uint32_t)(name_len - skip);
	if (best <= hk__max(2, letters / 3) && best < letters)
		return nearest;
	return name_begins(name, name_len);
}
