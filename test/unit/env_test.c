/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_test.c - environment variables: every type with what is right, what is wrong and what
 * is at its limits; the table; names that are not known.
 */
#include "base/env.h"
#include "harness.h"

#include <hocket/env.h>
#include <hocket/group.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum hk_status env_read(const char *var, enum hk__env_id id, struct hk_why *why,
			       struct hk__env_value *value)
{
	char *vars[2] = { (char *)(uintptr_t)var, NULL };
	struct hk__env env = { vars, why };

	why->text[0] = '\0';
	return hk__env_read(&env, id, value);
}

/* ---- types ---- */

struct right_row {
	enum hk__env_id id;
	const char *var; /* NULL: not set */
	uint64_t number;
};

#define NS UINT64_C(1000000000)

static const struct right_row right_rows[] = {
	/* bool */
	{ HK__ENV_CHECK, NULL, 0 },
	{ HK__ENV_CHECK, "HOCKET_CHECK=", 0 },
	{ HK__ENV_CHECK, "HOCKET_CHECK=0", 0 },
	{ HK__ENV_CHECK, "HOCKET_CHECK=1", 1 },
	/* count */
	{ HK__ENV_TRACE_EVENTS, NULL, 65536 },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=2", 2 },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=16777216", 16777216 },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=007", 7 },
	{ HK__ENV_RANK, NULL, 0 },
	{ HK__ENV_RANK, "HOCKET_RANK=16777215", 16777215 },
	{ HK__ENV_RANK, "HOCKET_RANK=new", HK_NONE },
	/* size */
	{ HK__ENV_RECORD_KIB, NULL, 256 * 1024 },
	{ HK__ENV_RECORD_KIB, "HOCKET_RECORD_KIB=32", 32 * 1024 },
	{ HK__ENV_RECORD_KIB, "HOCKET_RECORD_KIB=65536", 65536 * 1024 },
	/* duration */
	{ HK__ENV_TIMEOUT, NULL, 300 * NS },
	{ HK__ENV_TIMEOUT, "HOCKET_TIMEOUT=1", NS },
	{ HK__ENV_TIMEOUT, "HOCKET_TIMEOUT=1000000", 1000000 * NS },
	{ HK__ENV_WATCH_MS, "HOCKET_WATCH_MS=10", 10000000 },
	{ HK__ENV_WATCH_MS, "HOCKET_WATCH_MS=3600000", 3600 * NS },
	/* choice */
	{ HK__ENV_NET, NULL, 0 },
	{ HK__ENV_NET, "HOCKET_NET=auto", 0 },
	{ HK__ENV_NET, "HOCKET_NET=shm", 1 },
	{ HK__ENV_NET, "HOCKET_NET=tcp", 2 },
	/* path, text, address, list */
	{ HK__ENV_TRACE, "HOCKET_TRACE=/tmp", 0 },
	{ HK__ENV_TCP_CONGESTION, "HOCKET_TCP_CONGESTION=0123456789abcde", 0 },
	{ HK__ENV_ADDR, "HOCKET_ADDR=h:1", 0 },
	{ HK__ENV_ADDR, "HOCKET_ADDR=[::1]:65535", 0 },
	{ HK__ENV_HOSTS, "HOCKET_HOSTS=a", 0 },
	{ HK__ENV_HOSTS, "HOCKET_HOSTS=a,b,c", 0 },
};

TEST(right_values)
{
	for (size_t i = 0; i < sizeof(right_rows) / sizeof(right_rows[0]); i++) {
		const struct right_row *row = &right_rows[i];
		const char *equal = row->var ? strchr(row->var, '=') : NULL;
		bool set = equal && equal[1];
		struct hk__env_value value;
		struct hk_why why;

		printf("row %zu\n", i);
		CHECK_EQ(env_read(row->var, row->id, &why, &value), HK_OK);
		CHECK_EQ(value.set, set);
		CHECK_EQ(value.number, row->number);
		if (set)
			CHECK_STR(value.text, equal + 1);
		else
			CHECK(value.text == hk__env_rows[row->id].usual);
	}
}

struct wrong_row {
	enum hk__env_id id;
	const char *var;
	const char *says;
};

static const struct wrong_row wrong_rows[] = {
	{ HK__ENV_CHECK, "HOCKET_CHECK=2", "HOCKET_CHECK is \"2\": 0 or 1 is needed" },
	{ HK__ENV_CHECK, "HOCKET_CHECK=yes", "HOCKET_CHECK is \"yes\": 0 or 1 is needed" },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=1",
	  "HOCKET_TRACE_EVENTS is \"1\": a number from 2 to 16777216 is needed" },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=16777217", "is \"16777217\"" },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=99999999999999999999", "is \"9999" },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=+3", "is \"+3\"" },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS= 3", "is \" 3\"" },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=0x3", "is \"0x3\"" },
	{ HK__ENV_TRACE_EVENTS, "HOCKET_TRACE_EVENTS=new", "is \"new\"" },
	{ HK__ENV_RANK, "HOCKET_RANK=newer",
	  "HOCKET_RANK is \"newer\": new or a number from 0 to 16777215 is needed" },
	{ HK__ENV_RANK, "HOCKET_RANK=16777216", "is \"16777216\"" },
	{ HK__ENV_RECORD_KIB, "HOCKET_RECORD_KIB=31",
	  "HOCKET_RECORD_KIB is \"31\": a number of KiB from 32 to 65536 is needed" },
	{ HK__ENV_RECORD_KIB, "HOCKET_RECORD_KIB=64K", "is \"64K\"" },
	{ HK__ENV_TIMEOUT, "HOCKET_TIMEOUT=0",
	  "HOCKET_TIMEOUT is \"0\": a number of seconds from 1 to 1000000 is needed" },
	{ HK__ENV_TIMEOUT, "HOCKET_TIMEOUT=-1", "is \"-1\"" },
	{ HK__ENV_TIMEOUT, "HOCKET_TIMEOUT=1.5", "is \"1.5\"" },
	{ HK__ENV_SILENCE_MS, "HOCKET_SILENCE_MS=9",
	  "HOCKET_SILENCE_MS is \"9\": a number of milliseconds from 10 to 3600000 is needed" },
	{ HK__ENV_NET, "HOCKET_NET=udp", "HOCKET_NET is \"udp\": auto, shm or tcp is needed" },
	{ HK__ENV_NET, "HOCKET_NET=sh", "is \"sh\"" },
	{ HK__ENV_NET, "HOCKET_NET=auto|shm", "is \"auto|shm\"" },
	{ HK__ENV_LOG, "HOCKET_LOG=loud", "HOCKET_LOG is \"loud\": on or off is needed" },
	{ HK__ENV_TCP_CONGESTION, "HOCKET_TCP_CONGESTION=0123456789abcdef",
	  "is \"0123456789abcdef\": a text of 1 to 15 characters is needed" },
	{ HK__ENV_ADDR, "HOCKET_ADDR=h", "is \"h\": host:port or [address]:port is needed" },
	{ HK__ENV_ADDR, "HOCKET_ADDR=h:0", "is \"h:0\"" },
	{ HK__ENV_ADDR, "HOCKET_ADDR=::1:4000", "is \"::1:4000\"" },
	{ HK__ENV_HOSTS, "HOCKET_HOSTS=a,,b",
	  "is \"a,,b\": a comma-separated list of names is needed" },
	{ HK__ENV_HOSTS, "HOCKET_HOSTS=a,", "is \"a,\"" },
	{ HK__ENV_HOSTS, "HOCKET_HOSTS=,", "is \",\"" },
	{ HK__ENV_GPU_SMS, "HOCKET_GPU_SMS=\n\x7f", "HOCKET_GPU_SMS is \"?\?\"" },
};

TEST(wrong_values)
{
	for (size_t i = 0; i < sizeof(wrong_rows) / sizeof(wrong_rows[0]); i++) {
		const struct wrong_row *row = &wrong_rows[i];
		struct hk__env_value value = { .number = 77 };
		struct hk_why why;

		printf("row %zu\n", i);
		CHECK_EQ(env_read(row->var, row->id, &why, &value), HK_EINVAL);
		CHECK_HAS(why.text, row->says);
		CHECK_EQ(strncmp(why.text, row->var, strcspn(row->var, "=")), 0);
		CHECK_EQ(value.number, 77);
	}
}

/* A path may be as long as its row says, and no longer; a long value is cut in the message. */
TEST(long_values)
{
	static const enum hk__env_id ids[] = { HK__ENV_TRACE, HK__ENV_RECORD_DIR, HK__ENV_HOST,
					       HK__ENV_IFACE, HK__ENV_FABRIC,	  HK__ENV_SSH };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const struct hk__env_row *row = &hk__env_rows[ids[i]];
		size_t name = strlen(row->name) + 1;
		struct hk__env_value value;
		struct hk_why why;
		char var[2048];

		memset(var, 'x', sizeof(var));
		(void)snprintf(var, sizeof(var), "%s=", row->name);
		var[name] = 'x';
		var[name + row->max] = '\0';
		CHECK_EQ(env_read(var, ids[i], &why, &value), HK_OK);
		CHECK_EQ(strlen(value.text), row->max);
		var[name + row->max] = 'x';
		var[name + row->max + 1] = '\0';
		CHECK_EQ(env_read(var, ids[i], &why, &value), HK_EINVAL);
		CHECK_HAS(why.text, "\"...: a ");
	}
	/* A key has no limit, and nothing in it is wrong. */
	char key[4096] = "HOCKET_KEY=";
	struct hk__env_value value;
	struct hk_why why;

	memset(key + strlen("HOCKET_KEY="), 'k', sizeof(key) - 1 - strlen("HOCKET_KEY="));
	key[sizeof(key) - 1] = '\0';
	CHECK_EQ(env_read(key, HK__ENV_KEY, &why, &value), HK_OK);
}

/* ---- the table ---- */

TEST(every_row_is_whole)
{
	for (uint32_t i = 0; i < HK__ENV_COUNT; i++) {
		const struct hk__env_row *row = &hk__env_rows[i];
		struct hk_env_info info = { .size = sizeof(info) };
		char takes[HK__ENV_TAKES_MAX];
		uint64_t number;

		printf("row %u\n", i);
		CHECK(row->name && row->readers && row->about);
		CHECK_EQ(strncmp(row->name, "HOCKET_", 7), 0);
		CHECK(row->name[7 + strspn(row->name + 7, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")] == '\0');
		CHECK(hk__env_row_find(row->name, strlen(row->name)) == row);
		CHECK(strlen(row->about) <= 76);
		CHECK(!row->usual || hk__env_accepts(row, row->usual, &number));
		CHECK((row->type == HK__ENV_TYPE_CHOICE) <= (row->words && row->usual));
		CHECK((row->type == HK__ENV_TYPE_SIZE || row->type == HK__ENV_TYPE_DURATION) ==
		      (row->unit && row->scale));
		hk__env_takes(row, takes);
		CHECK(takes[0] && !strstr(takes, "..."));
		CHECK(hk_env_get(i, &info));
		CHECK_STR(info.name, row->name);
		CHECK_STR(info.takes, takes);
	}
	struct hk_env_info info = { .size = sizeof(info) };
	CHECK(!hk_env_get(HK__ENV_COUNT, &info));
}

TEST(programs_see_values)
{
	struct hk_env_info info = { .size = sizeof(info) };

	unsetenv("HOCKET_TIMEOUT");
	CHECK_EQ(hk_env_find("HOCKET_TIMEOUT", &info), HK_OK);
	CHECK(!info.text);
	CHECK_STR(info.usual, "300");
	CHECK_STR(info.type, "duration");
	CHECK_EQ(info.number, 300 * NS);
	setenv("HOCKET_TIMEOUT", "7", 1);
	CHECK_EQ(hk_env_find("HOCKET_TIMEOUT", &info), HK_OK);
	CHECK_STR(info.text, "7");
	CHECK_EQ(info.number, 7 * NS);
	setenv("HOCKET_TIMEOUT", "seven", 1);
	CHECK_EQ(hk_env_find("HOCKET_TIMEOUT", &info), HK_OK);
	CHECK_STR(info.text, "seven");
	CHECK_EQ(info.number, 0);
	setenv("HOCKET_TIMEOUT", "", 1);
	CHECK_EQ(hk_env_find("HOCKET_TIMEOUT", &info), HK_OK);
	CHECK(!info.text);
	CHECK_EQ(hk_env_find("HOCKET_TIMEOT", &info), HK_EINVAL);
	CHECK_EQ(hk_env_find("", &info), HK_EINVAL);
	CHECK_EQ(hk_env_find("HOCKET_KEY", &info), HK_OK);
	CHECK(info.secret);
}

TEST(checks)
{
	struct hk_why why;

	CHECK_EQ(hk_env_check("HOCKET_NET", "tcp", &why), HK_OK);
	CHECK_EQ(hk_env_check("HOCKET_NET", "", &why), HK_OK);
	CHECK_EQ(hk_env_check("HOCKET_NET", NULL, NULL), HK_OK);
	CHECK_EQ(hk_env_check("HOCKET_NET", "udp", NULL), HK_EINVAL);
	CHECK_EQ(hk_env_check("HOCKET_NET", "udp", &why), HK_EINVAL);
	CHECK_STR(why.text, "HOCKET_NET is \"udp\": auto, shm or tcp is needed");
	CHECK_EQ(hk_env_check("HOCKET_NTE", "tcp", &why), HK_EINVAL);
	CHECK_STR(why.text, "HOCKET_NTE is not known; did you mean HOCKET_NET?");
}

/* ---- names that are not known ---- */

TEST(nearest_names)
{
	static const char *const rows[][2] = {
		{ "HOCKET_TIMEOT", "HOCKET_TIMEOUT" },
		{ "HOCKET_TIMEOUTS", "HOCKET_TIMEOUT" },
		{ "HOCKET_TIMEOUT_S", "HOCKET_TIMEOUT" },
		{ "HOCKET_ADRR", "HOCKET_ADDR" },
		{ "HOCKET_ADDRESS", "HOCKET_ADDR" },
		{ "HOCKET_NTE", "HOCKET_NET" },
		{ "HOCKET_RECORD_KB", "HOCKET_RECORD_KIB" },
		{ "HOCKET_TRACE_EVENT", "HOCKET_TRACE_EVENTS" },
		{ "HOCKET_RECORD_DIRECTORY", "HOCKET_RECORD_DIR" },
		{ "HOCKET_XYZ", NULL },
		{ "HOCKET_A", NULL },
		{ "HOCKET_", NULL },
		{ "HOCKET_COMPRESSION_LEVEL", NULL },
		{ "HOCKET_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		  NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *nearest = hk__env_nearest(rows[i][0], strlen(rows[i][0]));

		printf("row %zu: %s\n", i, nearest ? nearest : "none");
		CHECK(!nearest == !rows[i][1]);
		if (nearest)
			CHECK_STR(nearest, rows[i][1]);
	}
}

struct heard {
	uint32_t warnings;
	char line[256];
};

static void hear(void *ctx, enum hk_log_level level, const char *line)
{
	struct heard *heard = ctx;

	if (level != HK_LOG_WARN)
		return;
	heard->warnings++;
	(void)snprintf(heard->line, sizeof(heard->line), "%s", line);
}

/* One line, however many groups there are. */
TEST(unknown_is_said_once)
{
	struct heard heard = { 0 };

	CHECK_EQ(setenv("HOCKET_TIMEOT", "20", 1), 0);
	hk_log_set(hear, &heard);
	for (int i = 0; i < 3; i++) {
		struct hk_group *group;

		CHECK_EQ(hk_group_create(NULL, NULL, &group), HK_OK);
		hk_group_free(group);
	}
	hk_log_set(NULL, NULL);
	CHECK_EQ(heard.warnings, 1);
	CHECK_STR(heard.line, "HOCKET_TIMEOT is not known; did you mean HOCKET_TIMEOUT?");
}

TEST(known_is_not_said)
{
	struct heard heard = { 0 };
	struct hk_group *group;

	for (uint32_t i = 0; i < HK__ENV_COUNT; i++)
		CHECK_EQ(setenv(hk__env_rows[i].name, "", 1), 0);
	CHECK_EQ(setenv("HOCKETS", "1", 1), 0);
	hk_log_set(hear, &heard);
	CHECK_EQ(hk_group_create(NULL, NULL, &group), HK_OK);
	hk_group_free(group);
	hk_log_set(NULL, NULL);
	CHECK_EQ(heard.warnings, 0);
}
