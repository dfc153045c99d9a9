/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.h - the environment variables of Hocket: one table, and one way to read them.
 *
 * The table (env_table.c) says what each takes; a reader names a row and gets a value of
 * its type, the default, or HK_EINVAL with a line that names the variable, its value and
 * what it takes. A variable that is empty is not set. Nothing is kept: whoever needs a
 * value twice copies it. Nobody here calls setenv, which no thread survives that reads.
 */
#ifndef HK_BASE_ENV_H
#define HK_BASE_ENV_H

#include "base/base.h"

/* The rows, in the order in which they are shown. */
enum hk__env_id {
	HK__ENV_RANK,
	HK__ENV_SIZE,
	HK__ENV_ADDR,
	HK__ENV_KEY,
	HK__ENV_HOST,
	HK__ENV_IFACE,
	HK__ENV_LOCAL_RANK,
	HK__ENV_LOCAL_SIZE,
	HK__ENV_NET,
	HK__ENV_TIMEOUT,
	HK__ENV_WATCH_MS,
	HK__ENV_SILENCE_MS,
	HK__ENV_GPU,
	HK__ENV_GPU_PROTOCOL,
	HK__ENV_GPU_SMS,
	HK__ENV_ENCRYPT,
	HK__ENV_TCP_CONGESTION,
	HK__ENV_LOG,
	HK__ENV_TRACE,
	HK__ENV_TRACE_EVENTS,
	HK__ENV_RECORD,
	HK__ENV_RECORD_DIR,
	HK__ENV_RECORD_KIB,
	HK__ENV_HOSTS,
	HK__ENV_FABRIC,
	HK__ENV_CHECK,
	HK__ENV_PROGRESS,
	HK__ENV_LIBRARY,
	HK__ENV_CACHE,
	HK__ENV_SSH,
	HK__ENV_COUNT
};

enum hk__env_type {
	HK__ENV_TYPE_BOOL,	/* 0 or 1 */
	HK__ENV_TYPE_COUNT,	/* min to max; or a word, which is HK_NONE */
	HK__ENV_TYPE_SIZE,	/* so many units; its number is in bytes */
	HK__ENV_TYPE_DURATION,	/* so many units; its number is in nanoseconds */
	HK__ENV_TYPE_CHOICE,	/* a word; its number is the word's place */
	HK__ENV_TYPE_PATH,	/* up to max characters, as a text */
	HK__ENV_TYPE_TEXT,
	HK__ENV_TYPE_ADDRESS,	/* host:port */
	HK__ENV_TYPE_LIST,	/* names, separated by commas */
	HK__ENV_TYPES
};

struct hk__env_row {
	const char *name;
	enum hk__env_type type;
	bool secret;		/* never shown */
	const char *usual;	/* what it is where it is not set; NULL: nothing */
	const char *words;	/* of a choice "a|b|c"; of a count one more that it takes */
	const char *unit;	/* of a size or a duration, for people */
	uint64_t scale;		/* of the unit, in bytes or nanoseconds */
	uint64_t min, max;	/* of a number, in units; of a text, characters; max 0: any */
	const char *readers;	/* "library", "command", "libnccl", "program" */
	const char *about;
};

extern const struct hk__env_row hk__env_rows[HK__ENV_COUNT];

/* NULL: no such row. */
const struct hk__env_row *hk__env_row_find(const char *name, size_t name_len);
/* The known name nearest to one that is not; NULL: none is near. */
const char *hk__env_nearest(const char *name, size_t name_len);
/* "a number of seconds from 1 to 1000000": what a row takes, for a message. */
#define HK__ENV_TAKES_MAX 96u
void hk__env_takes(const struct hk__env_row *row, char takes_out[HK__ENV_TAKES_MAX]);
/* Whether a text is right for a row, and its number; 0 for what has none. */
bool hk__env_accepts(const struct hk__env_row *row, const char *text, uint64_t *number_out);

/* ---- reading ---- */

struct hk__env {
	char *const *vars;	/* "NAME=value", ending in NULL; NULL: of this process */
	struct hk_why *why;
};

struct hk__env_value {
	bool set;		/* not the default */
	const char *text;	/* NULL: not set, and no default. Borrowed from the environment */
	uint64_t number;
};

/* Of any variable, also one of others; NULL: not set. */
const char *hk__env_get(const struct hk__env *env, const char *name);
/* Whether it is set, to whatever. */
bool hk__env_has(const struct hk__env *env, enum hk__env_id id);
/* What it is set to, else its default. HK_EINVAL: not what it takes. */
HK_NODISCARD enum hk_status hk__env_read(const struct hk__env *env, enum hk__env_id id,
					 struct hk__env_value *value_out);
/* HK_EINVAL: "NAME is "value": advice", or "NAME is not set: advice". */
enum hk_status hk__env_wrong(const struct hk__env *env, const char *name, const char *advice);

/* A line of the log for each variable HOCKET_* of this process that is not known; once. */
void hk__env_warn_unknown(void);

/* ---- values ---- */

/* A decimal number from min to max, and nothing else. */
bool hk__env_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number_out);
/* "host:port" or "[address]:port", from that port on; host_out has room for size bytes. */
bool hk__env_parse_address(const char *text, uint16_t port_min, char *host_out, size_t size,
			   uint16_t *port_out);

#endif
