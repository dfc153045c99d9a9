/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - numbers with units, as people write them. */
#include "fabric/topology.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *of; /* the unit it is converted to */
	const char *name;
	double factor;
	bool inverse; /* factor / value */
};

static const struct unit units[] = {
	{ "GB/s", "GB/s", 1, false },
	{ "GB/s", "MB/s", 1e-3, false },
	{ "GB/s", "TB/s", 1e3, false },
	{ "GB/s", "GiB/s", 1.073741824, false },
	{ "GB/s", "Gb/s", 0.125, false },
	{ "GB/s", "Mb/s", 0.125e-3, false },
	{ "GB/s", "Tb/s", 125, false },
	{ "GB/s", "Gbit/s", 0.125, false },
	{ "ns", "ns", 1, false },
	{ "ns", "us", 1e3, false },
	{ "ns", "ms", 1e6, false },
	{ "ns", "s", 1e9, false },
	{ "ns/B", "ns/B", 1, false },
	{ "ns/B", "ps/B", 1e-3, false },
	{ "ns/B", "GB/s", 1, true },
	{ "ns/B", "MB/s", 1e3, true },
	{ "B", "B", 1, false },
	{ "B", "KiB", 1024, false },
	{ "B", "MiB", 1024.0 * 1024, false },
	{ "B", "GiB", 1024.0 * 1024 * 1024, false },
	{ "B", "KB", 1e3, false },
	{ "B", "MB", 1e6, false },
	{ "B", "GB", 1e9, false },
	{ "", "%", 0.01, false },
};

bool hk__value_parse(const char *text, const char *unit, double *value_out)
{
	char *end;

	if (*unit == '\0' && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
		*value_out = text[0] == 't';
		return true;
	}
	/* No "nan", no "0x1p3": numbers as people write them. */
	if (!*text || strspn(text, "+-.0123456789") == 0 || strncmp(text, "0x", 2) == 0)
		return false;
	double value = strtod(text, &end);
	if (end == text || !isfinite(value))
		return false;
	end += strspn(end, " ");
	if (*end == '\0') {
		*value_out = value;
		return true;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(units[i].of, unit) != 0 || strcmp(units[i].name, end) != 0)
			continue;
		*value_out = units[i].inverse ? units[i].factor / value : units[i].factor * value;
		return isfinite(*value_out);
	}
	return false;
}

void hk__value_text(double value, char text[32])
{
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, 32, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			return;
	}
}
