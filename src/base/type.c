/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type.c - element types and reductions as data: names, sizes, and which go
 * together, from the tables in type.h. The arithmetic is in exec/reduce.
 */
#include "base/base.h"

#include <hocket/type.h>

const char *hk_type_name(enum hk_type type)
{
	switch (type) {
#define TYPE_NAME(id, name, size) \
	case HK_TYPE_##id: \
		return name;
		HK_TYPE_MAP(TYPE_NAME)
#undef TYPE_NAME
	case HK_TYPE_COUNT:
		break;
	}
	return "?";
}

const char *hk_redop_name(enum hk_redop op)
{
	switch (op) {
#define REDOP_NAME(id, name, of) \
	case HK_REDOP_##id: \
		return name;
		HK_REDOP_MAP(REDOP_NAME)
#undef REDOP_NAME
	case HK_REDOP_COUNT:
		break;
	}
	return "?";
}

const char *hk_amo_name(enum hk_amo op)
{
	switch (op) {
#define AMO_NAME(id, name, does) \
	case HK_AMO_##id: \
		return name;
		HK_AMO_MAP(AMO_NAME)
#undef AMO_NAME
	case HK_AMO_COUNT:
		break;
	}
	return "?";
}

size_t hk_type_size(enum hk_type type)
{
	switch (type) {
#define TYPE_SIZE(id, name, size) \
	case HK_TYPE_##id: \
		return size;
		HK_TYPE_MAP(TYPE_SIZE)
#undef TYPE_SIZE
	case HK_TYPE_COUNT:
		break;
	}
	return 0;
}

enum hk_status hk_type_parse(const char *name, enum hk_type *type_out)
{
	for (unsigned i = 0; i < HK_TYPE_COUNT; i++) {
		if (hk__name_equal(name, hk_type_name((enum hk_type)i))) {
			*type_out = (enum hk_type)i;
			return HK_OK;
		}
	}
	return HK_EINVAL;
}

enum hk_status hk_redop_parse(const char *name, enum hk_redop *op_out)
{
	for (unsigned i = 0; i < HK_REDOP_COUNT; i++) {
		if (hk__name_equal(name, hk_redop_name((enum hk_redop)i))) {
			*op_out = (enum hk_redop)i;
			return HK_OK;
		}
	}
	return HK_EINVAL;
}

/* The table has the integers first. */
static bool type_is_integer(enum hk_type type)
{
	return type <= HK_TYPE_UINT64;
}

bool hk_redop_valid(enum hk_type type, enum hk_redop op)
{
	enum redop_of {
		OF_ANY,
		OF_INTEGER
	};
#define REDOP_OF(id, name, of) [HK_REDOP_##id] = OF_##of,
	static const enum redop_of redop_of[HK_REDOP_COUNT] = { HK_REDOP_MAP(REDOP_OF) };
#undef REDOP_OF

	if ((unsigned)type >= HK_TYPE_COUNT || (unsigned)op >= HK_REDOP_COUNT)
		return false;
	return redop_of[op] == OF_ANY || type_is_integer(type);
}
