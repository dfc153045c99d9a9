/* SPDX-License-Identifier: Apache-2.0 */
/* type_test.c - src/base/type.c: element types and reductions as data. */
#include "harness.h"

#include <hocket/hocket.h>

TEST(types)
{
	enum hk_type parsed;

#define TYPE_CHECK(id, name, size) \
	CHECK_STR(hk_type_name(HK_TYPE_##id), name); \
	CHECK_EQ(hk_type_size(HK_TYPE_##id), size); \
	parsed = HK_TYPE_COUNT; \
	CHECK_EQ(hk_type_parse(name, &parsed), HK_OK); \
	CHECK_EQ(parsed, HK_TYPE_##id);
	HK_TYPE_MAP(TYPE_CHECK)
#undef TYPE_CHECK
	CHECK_EQ(HK_TYPE_COUNT, 14);
}

TEST(redops)
{
	enum hk_redop parsed;

#define REDOP_CHECK(id, name, of) \
	CHECK_STR(hk_redop_name(HK_REDOP_##id), name); \
	parsed = HK_REDOP_COUNT; \
	CHECK_EQ(hk_redop_parse(name, &parsed), HK_OK); \
	CHECK_EQ(parsed, HK_REDOP_##id);
	HK_REDOP_MAP(REDOP_CHECK)
#undef REDOP_CHECK
	CHECK_EQ(HK_REDOP_COUNT, 9);
}

/* As people write them; and what is refused leaves the output alone. */
TEST(names_as_written)
{
	enum hk_type type = HK_TYPE_INT16;
	enum hk_redop op = HK_REDOP_BOR;

	CHECK_EQ(hk_type_parse("FP8-E4M3", &type), HK_OK);
	CHECK_EQ(type, HK_TYPE_FP8E4M3);
	CHECK_EQ(hk_type_parse("BF_16", &type), HK_OK);
	CHECK_EQ(type, HK_TYPE_BF16);
	CHECK_EQ(hk_redop_parse("PreMul-Sum", &op), HK_OK);
	CHECK_EQ(op, HK_REDOP_PREMULSUM);
	CHECK_EQ(hk_type_parse("fp8", &type), HK_EINVAL);
	CHECK_EQ(hk_type_parse("", &type), HK_EINVAL);
	CHECK_EQ(hk_type_parse("?", &type), HK_EINVAL);
	CHECK_EQ(type, HK_TYPE_BF16);
	CHECK_EQ(hk_redop_parse("summ", &op), HK_EINVAL);
	CHECK_EQ(hk_redop_parse("", &op), HK_EINVAL);
	CHECK_EQ(op, HK_REDOP_PREMULSUM);
}

TEST(bits_are_of_integers)
{
	for (unsigned type = 0; type < HK_TYPE_COUNT; type++) {
		bool integer = strstr(hk_type_name((enum hk_type)type), "int") != NULL;

		for (unsigned op = 0; op < HK_REDOP_COUNT; op++) {
			bool bits =
				op == HK_REDOP_BAND || op == HK_REDOP_BOR || op == HK_REDOP_BXOR;

			CHECK_EQ(hk_redop_valid((enum hk_type)type, (enum hk_redop)op),
				 integer || !bits);
		}
	}
}

TEST(what_is_none)
{
	CHECK_STR(hk_type_name(HK_TYPE_COUNT), "?");
	CHECK_STR(hk_type_name((enum hk_type) - 1), "?");
	CHECK_STR(hk_redop_name(HK_REDOP_COUNT), "?");
	CHECK_STR(hk_redop_name((enum hk_redop) - 1), "?");
	CHECK_EQ(hk_type_size(HK_TYPE_COUNT), 0);
	CHECK_EQ(hk_type_size((enum hk_type) - 1), 0);
	CHECK(!hk_redop_valid(HK_TYPE_COUNT, HK_REDOP_SUM));
	CHECK(!hk_redop_valid((enum hk_type) - 1, HK_REDOP_SUM));
	CHECK(!hk_redop_valid(HK_TYPE_INT8, HK_REDOP_COUNT));
	CHECK(!hk_redop_valid(HK_TYPE_INT8, (enum hk_redop) - 1));
}
