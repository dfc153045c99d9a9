/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - reads environment variables by their rows in env_table.c. All of Hocket's are read
 * here, and nowhere else; tests give an environment of their own.
 */
#include "base/env.h"

#include <hocket/env.h>

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- values ---- */

bool hk__env_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number_out)
{
	uint64_t number = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		number = number * 10 + (uint64_t)(*text - '0');
		if (number > max)
			return false;
	}
	if (number < min)
		return false;
	*number_out = number;
	return true;
}

bool hk__env_parse_address(const char *text, uint16_t port_min, char *host_out, size_t size,
			   uint16_t *port_out)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;

	if (!colon || !hk__env_parse(colon + 1, port_min, UINT16_MAX, &port))
		return false;
	size_t len = (size_t)(colon - text);
	if (text[0] == '[') {
		if (len < 3 || text[len - 1] != ']')
			return false;
		text++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		return false; /* an IPv6 address: its last part is no port */
	}
	if (len == 0 || len >= size || memchr(text, '[', len))
		return false;
	memcpy(host_out, text, len);
	host_out[len] = '\0';
	*port_out = (uint16_t)port;
	return true;
}

/* The place of a text among "a|b|c". */
static bool word_find(const char *words, const char *text, uint64_t *place_out)
{
	size_t len = strlen(text);

	for (uint64_t place = 0;; place++) {
		size_t word = strcspn(words, "|");

		if (word == len && strncmp(words, text, len) == 0) {
			*place_out = place;
			return true;
		}
		if (!words[word])
			return false;
		words += word + 1;
	}
}

/* Names, and a comma between two of them. */
static bool list_is_right(const char *text)
{
	for (;; text++) {
		size_t len = strcspn(text, ",");

		if (len == 0)
			return false;
		text += len;
		if (!*text)
			return true;
	}
}

bool hk__env_accepts(const struct hk__env_row *row, const char *text, uint64_t *number_out)
{
	uint64_t place, scale = row->scale ? row->scale : 1;
	char host[256];
	uint16_t port;

	*number_out = 0;
	switch (row->type) {
	case HK__ENV_TYPE_COUNT:
		if (row->words && word_find(row->words, text, &place)) {
			*number_out = HK_NONE;
			return true;
		}
		/* fall through */
	case HK__ENV_TYPE_BOOL:
	case HK__ENV_TYPE_SIZE:
	case HK__ENV_TYPE_DURATION:
		if (!hk__env_parse(text, row->min, row->max, number_out))
			return false;
		*number_out *= scale;
		return true;
	case HK__ENV_TYPE_CHOICE:
		return word_find(row->words, text, number_out);
	case HK__ENV_TYPE_ADDRESS:
		return hk__env_parse_address(text, 1, host, sizeof(host), &port);
	case HK__ENV_TYPE_LIST:
		return list_is_right(text);
	default:
		return *text && (row->max == 0 || strlen(text) <= row->max);
	}
}

/* "auto, shm or tcp" of "auto|shm|tcp". */
static void takes_words(struct hk__text *takes, const char *words)
{
	for (bool first = true;; first = false) {
		size_t len = strcspn(words, "|");

		hk__text_add(takes, "%s%.*s",
			     first	  ? ""
			     : words[len] ? ", "
					  : " or ",
			     (int)len, words);
		if (!words[len])
			return;
		words += len + 1;
	}
}

void hk__env_takes(const struct hk__env_row *row, char takes_out[HK__ENV_TAKES_MAX])
{
	unsigned long long min = row->min, max = row->max;
	struct hk__text takes;

	hk__text_init(&takes, takes_out, HK__ENV_TAKES_MAX);
	switch (row->type) {
	case HK__ENV_TYPE_BOOL:
		hk__text_add(&takes, "0 or 1");
		break;
	case HK__ENV_TYPE_COUNT:
		hk__text_add(&takes, "%s%sa number from %llu to %llu", row->words ? row->words : "",
			     row->words ? " or " : "", min, max);
		break;
	case HK__ENV_TYPE_SIZE:
	case HK__ENV_TYPE_DURATION:
		hk__text_add(&takes, "a number of %s from %llu to %llu", row->unit, min, max);
		break;
	case HK__ENV_TYPE_CHOICE:
		takes_words(&takes, row->words);
		break;
	case HK__ENV_TYPE_ADDRESS:
		hk__text_add(&takes, "host:port or [address]:port");
		break;
	case HK__ENV_TYPE_LIST:
		hk__text_add(&takes, "a comma-separated list of names");
		break;
	default:
		hk__text_add(&takes, row->type == HK__ENV_TYPE_PATH ? "a path" : "a text");
		if (max)
			hk__text_add(&takes, " of 1 to %llu characters", max);
	}
}

/* ---- reading ---- */

const char *hk__env_get(const struct hk__env *env, const char *name)
{
	size_t len = strlen(name);

	if (!env->vars) {
		const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe) */

		return text && *text ? text : NULL;
	}
	for (char *const *var = env->vars; *var; var++)
		if (strncmp(*var, name, len) == 0 && (*var)[len] == '=')
			return (*var)[len + 1] ? *var + len + 1 : NULL;
	return NULL;
}

bool hk__env_has(const struct hk__env *env, enum hk__env_id id)
{
	return hk__env_get(env, hk__env_rows[id].name) != NULL;
}

/* HK_EINVAL: "NAME is "value": advice", the value as printable characters. */
static enum hk_status value_refuse(struct hk_why *why, const char *name, const char *value,
				   const char *advice)
{
	char shown[64];
	size_t i;

	for (i = 0; i + 1 < sizeof(shown) && value[i]; i++)
		shown[i] = (char)(isprint((unsigned char)value[i]) ? value[i] : '?');
	shown[i] = '\0';
	return hk__why(why, HK_EINVAL, "%s is \"%s\"%s: %s", name, shown, value[i] ? "..." : "",
		       advice);
}

enum hk_status hk__env_wrong(const struct hk__env *env, const char *name, const char *advice)
{
	const char *value = hk__env_get(env, name);

	if (!value)
		return hk__why(env->why, HK_EINVAL, "%s is not set: %s", name, advice);
	return value_refuse(env->why, name, value, advice);
}

static enum hk_status row_check(const struct hk__env_row *row, const char *text, struct hk_why *why,
				uint64_t *number_out)
{
	char takes[HK__ENV_TAKES_MAX], advice[HK__ENV_TAKES_MAX + sizeof(" is needed")];

	if (hk__env_accepts(row, text, number_out))
		return HK_OK;
	hk__env_takes(row, takes);
	(void)snprintf(advice, sizeof(advice), "%s is needed", takes);
	return value_refuse(why, row->name, row->secret ? "" : text, advice);
}

enum hk_status hk__env_read(const struct hk__env *env, enum hk__env_id id,
			    struct hk__env_value *value_out)
{
	const struct hk__env_row *row = &hk__env_rows[id];
	const char *text = hk__env_get(env, row->name);
	struct hk__env_value value = { .set = text != NULL, .text = text ? text : row->usual };

	if (value.text) {
		enum hk_status status = row_check(row, value.text, env->why, &value.number);

		if (status != HK_OK)
			return status;
	}
	*value_out = value;
	return HK_OK;
}

/* ---- names that are not known ---- */

static enum hk_status name_refuse(const char *name, size_t len, struct hk_why *why)
{
	const char *nearest = hk__env_nearest(name, len);

	return hk__why(why, HK_EINVAL, "%.*s is not known; %s%s%s", (int)(len < 64 ? len : 64),
		       name, nearest ? "did you mean " : "hocket config lists what is",
		       nearest ? nearest : "", nearest ? "?" : "");
}

static void env_warn(void)
{
	for (char *const *var = environ; var && *var; var++) {
		size_t len = strcspn(*var, "=");
		struct hk_why why;

		if (strncmp(*var, "HOCKET_", strlen("HOCKET_")) != 0 || hk__env_row_find(*var, len))
			continue;
		(void)name_refuse(*var, len, &why);
		hk__log(HK_LOG_WARN, "%s", why.text);
	}
}

void hk__env_warn_unknown(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, env_warn);
}

/* ---- for programs ---- */

static const char *const type_names[HK__ENV_TYPES] = {
	"bool", "count", "size", "duration", "choice", "path", "text", "address", "list",
};

static void info_fill(const struct hk__env_row *row, struct hk_env_info *info_out)
{
	struct hk__env env = { NULL, NULL };
	const char *text = hk__env_get(&env, row->name);
	struct hk_env_info info = { .name = row->name,
				    .type = type_names[row->type],
				    .usual = row->usual,
				    .about = row->about,
				    .readers = row->readers,
				    .secret = row->secret,
				    .text = text };

	if (!text)
		text = row->usual;
	if (text && !hk__env_accepts(row, text, &info.number))
		info.number = 0;
	hk__env_takes(row, info.takes);
	hk__result_set(info_out, &info, sizeof(info));
}

bool hk_env_get(uint32_t i, struct hk_env_info *info_out)
{
	if (i >= HK__ENV_COUNT)
		return false;
	info_fill(&hk__env_rows[i], info_out);
	return true;
}

enum hk_status hk_env_find(const char *name, struct hk_env_info *info_out)
{
	const struct hk__env_row *row = hk__env_row_find(name, strlen(name));

	if (!row)
		return HK_EINVAL;
	info_fill(row, info_out);
	return HK_OK;
}

enum hk_status hk_env_check(const char *name, const char *text, struct hk_why *why)
{
	const struct hk__env_row *row = hk__env_row_find(name, strlen(name));
	uint64_t number;

	if (!row)
		return name_refuse(name, strlen(name), why);
	return text && *text ? row_check(row, text, why, &number) : HK_OK;
}
