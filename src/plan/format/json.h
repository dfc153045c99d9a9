/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - the reader of a plan in JSON: where in the text it is, and how it
 * takes a field or says what is wrong with it. json_read.c reads the plan,
 * json_step.c each of its steps.
 */
#ifndef HK_PLAN_FORMAT_JSON_H
#define HK_PLAN_FORMAT_JSON_H

#include "plan/store.h"

#include <jansson.h>
#include <string.h>

#define HK__JSON_NAME_MAX 256
#define HK__JSON_VALUE_MAX 160		/* of a value, or a list of names, in a message */

struct hk__json_reader {
	char name[HK__JSON_NAME_MAX];
	const struct hk_alloc *alloc;
	struct hk_why *why;
	struct hk__store_spec spec;
	struct hk_plan *plan;		/* once its head was read */
	/* Where the reader is: HK_NONE for what it is not in. */
	uint32_t program;
	uint32_t rank;			/* whose program it is */
	uint32_t lane;
	uint32_t step;
};

struct hk__json_range {
	uint32_t min;
	uint32_t max;
	enum hk_status above;		/* HK_ELIMIT where max is ours, not the plan's */
};

/* ---- what went wrong ---- */

/* Foreign bytes, made fit for one line of a terminal. */
void hk__json_quote(struct hk__text *text, const char *bytes);

/* "NAME: programs[2].lanes[0][5].to: ..."; returns status, for `return`. */
enum hk_status hk__json_fail(const struct hk__json_reader *reader, enum hk_status status,
			     const char *key, const char *fmt, ...) HK_PRINTF(4, 5);
/* The same where a value is missing (NULL) or not what fmt says. */
enum hk_status hk__json_expected(const struct hk__json_reader *reader, const char *key,
				 const json_t *value, const char *fmt, ...) HK_PRINTF(4, 5);
enum hk_status hk__json_fail_memory(const struct hk__json_reader *reader);

/* ---- fields ---- */

static inline bool hk__json_is(const json_t *value, const char *name)
{
	return json_is_string(value) && strcmp(json_string_value(value), name) == 0;
}

static inline bool hk__json_u32(const json_t *value, uint32_t max, uint32_t *number_out)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > max)
		return false;
	*number_out = (uint32_t)json_integer_value(value);
	return true;
}

/* A needed number of an object. */
enum hk_status hk__json_get_u32(const struct hk__json_reader *reader, const json_t *object,
				const char *key, struct hk__json_range range,
				uint32_t *number_out);
/* Refuses fields that are not in known, a list ended by NULL. */
enum hk_status hk__json_check_keys(const struct hk__json_reader *reader, json_t *object,
				   const char *const *known);

/* ---- steps ---- */

/* Fills what the object gives; the rest of the step is as it was. */
enum hk_status hk__json_read_step(const struct hk__json_reader *reader, json_t *object,
				  struct hk_step *step);

#endif
