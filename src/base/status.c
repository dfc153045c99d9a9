/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - names and texts of statuses, from the table in status.h. */
#include "base/base.h"

#include <hocket/base.h>

const char *hk_status_name(enum hk_status status)
{
	switch (status) {
#define STATUS_NAME(name, value, text) \
	case HK_##name: \
		return "HK_" #name;
		HK_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
	}
	return "HK_?";
}

const char *hk_status_text(enum hk_status status)
{
	switch (status) {
#define STATUS_TEXT(name, value, text) \
	case HK_##name: \
		return text;
		HK_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
	}
	return "not a status";
}

#define VERSION_TEXT(a, b, c) VERSION_QUOTE(a) "." VERSION_QUOTE(b) "." VERSION_QUOTE(c)
#define VERSION_QUOTE(x) #x

const char *hk_version(void)
{
	return VERSION_TEXT(HK_VERSION_MAJOR, HK_VERSION_MINOR, HK_VERSION_PATCH);
}
