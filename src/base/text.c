/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - one-line messages, names, option structs, and the last word. */
#include "base/base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void hk__panic(const char *file, int line, const char *cond)
{
	fprintf(stderr, "hocket: %s:%d: assertion failed: %s (a bug; please report it)\n", file,
		line, cond);
	abort();
}

enum hk_status hk__why(struct hk_why *why, enum hk_status status, const char *fmt, ...)
{
	if (why) {
		va_list args;

		va_start(args, fmt);
		vsnprintf(why->text, sizeof(why->text), fmt, args);
		va_end(args);
	}
	return status;
}

void hk__text_init(struct hk__text *text, char *at, size_t size)
{
	hk_assert(size >= 4);
	*text = (struct hk__text){ .at = at, .size = size };
	at[0] = '\0';
}

void hk__text_add(struct hk__text *text, const char *fmt, ...)
{
	va_list args;
	size_t room = text->size - text->len;

	va_start(args, fmt);
	int len = vsnprintf(text->at + text->len, room, fmt, args);
	va_end(args);
	if (len >= 0 && (size_t)len < room) {
		text->len += (size_t)len;
		return;
	}
	text->len = text->size - 1;
	memcpy(text->at + text->size - 4, "...", 4);
}

static char name_next(const char **name)
{
	while (**name == '-' || **name == '_')
		(*name)++;
	return **name ? (char)tolower((unsigned char)*(*name)++) : '\0';
}

bool hk__name_equal(const char *a, const char *b)
{
	char x, y;

	do {
		x = name_next(&a);
		y = name_next(&b);
	} while (x && x == y);
	return x == y;
}

/* A size that was never set is not a reason to touch all of the stack. */
static bool size_is_set(size_t given)
{
	return given >= sizeof(given) && given <= 4096;
}

enum hk_status hk__opts_copy(void *to, size_t size, const void *from)
{
	size_t given;

	memset(to, 0, size);
	memcpy(to, &size, sizeof(size));
	if (!from)
		return HK_OK;
	memcpy(&given, from, sizeof(given));
	if (!size_is_set(given))
		return HK_EINVAL;
	for (size_t i = size; i < given; i++)
		if (((const char *)from)[i])
			return HK_EINVAL;
	memcpy(to, from, given < size ? given : size);
	memcpy(to, &size, sizeof(size));
	return HK_OK;
}

enum hk_status hk__result_copy(void *to, const void *from, size_t size)
{
	size_t given;

	memcpy(&given, to, sizeof(given));
	if (!size_is_set(given))
		return HK_EINVAL;
	memcpy(to, from, given < size ? given : size);
	if (given > size)
		memset((char *)to + size, 0, given - size);
	memcpy(to, &given, sizeof(given));
	return HK_OK;
}

void hk__result_set(void *to, const void *from, size_t size)
{
	enum hk_status status = hk__result_copy(to, from, size);

	hk_assert(status == HK_OK);
}
