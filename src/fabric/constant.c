/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constant.c - the numbers of a fabric by name.
 *
 * A constant is a place in struct hk_fabric (two, for the two directions of a
 * link) with a name, a unit, bounds and a source. Names are made from what the
 * fabric consists of: "nic.bw", "infiniband.flight", "device.reduce".
 */
#include "fabric/topology.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What a link, a wire and a device have. */
struct field {
	const char *name;
	const char *unit;
	enum hk__number number;
	size_t at;
	double min, max;
	const char *source; /* of the value it has by itself */
};

#define NONE "assumed: none"
#define SHM "as Hocket's shared memory has it"
#define KIND(member) offsetof(struct hk__link_kind, member)
#define WIRE(member) offsetof(struct hk__wire, member)
#define DEVICE(member) offsetof(struct hk__device, member)
#define LITTLE 1e-9

static const struct field kind_fields[] = {
	{ "bw", "GB/s", HK__NUMBER_REAL, KIND(wire_speed), LITTLE, 1e6, "not given" },
	{ "efficiency", "", HK__NUMBER_REAL, KIND(efficiency), LITTLE, 1, "assumed: all of it" },
	{ "delay", "ns", HK__NUMBER_REAL, KIND(delay_ns), 0, 1e12, NONE },
};
static const struct field bundle_fields[] = {
	{ "wires", "", HK__NUMBER_REAL, KIND(wires), 1, 1e9, "assumed: as many up as down" },
	{ "oversubscription", "", HK__NUMBER_REAL, KIND(oversubscription), 0.01, 1e6, NONE },
};
static const struct field wire_fields[] = {
	{ "send", "ns", HK__NUMBER_CURVE, WIRE(send_ns), 0, 1e12, "assumed: within the flight" },
	{ "recv", "ns", HK__NUMBER_CURVE, WIRE(recv_ns), 0, 1e12, "assumed: within the flight" },
	{ "flight", "ns", HK__NUMBER_CURVE, WIRE(flight_ns), 0, 1e12, NONE },
	{ "send-byte", "ns/B", HK__NUMBER_CURVE, WIRE(send_byte_ns), 0, 1e6, NONE },
	{ "recv-byte", "ns/B", HK__NUMBER_CURVE, WIRE(recv_byte_ns), 0, 1e6, NONE },
	{ "fresh-byte", "ns/B", HK__NUMBER_CURVE, WIRE(fresh_byte_ns), 0, 1e6, NONE },
	{ "cold-byte", "ns/B", HK__NUMBER_CURVE, WIRE(cold_byte_ns), 0, 1e6, NONE },
	{ "ahead-byte", "ns/B", HK__NUMBER_CURVE, WIRE(ahead_byte_ns), 0, 1e6, NONE },
	{ "kernel", "", HK__NUMBER_BOOL, WIRE(kernel), 0, 1, "assumed: no kernel copies" },
	{ "gap", "ns", HK__NUMBER_REAL, WIRE(gap_ns), 0, 1e12, NONE },
	{ "overhead", "", HK__NUMBER_REAL, WIRE(overhead), 1, 100, NONE },
	{ "slots", "", HK__NUMBER_COUNT, WIRE(cut.slots), 1, 1e6, SHM },
	{ "slot-bytes", "B", HK__NUMBER_REAL, WIRE(cut.slot_bytes), 1, 1e15, SHM },
	{ "slice-bytes", "B", HK__NUMBER_REAL, WIRE(cut.slice_bytes), 0, 1e15, SHM },
	{ "slices", "", HK__NUMBER_COUNT, WIRE(cut.slices), 1, 1e6, SHM },
};
static const struct field device_fields[] = {
	{ "call", "ns", HK__NUMBER_REAL, DEVICE(call_ns), 0, 1e12, NONE },
	{ "step", "ns", HK__NUMBER_REAL, DEVICE(step_ns), 0, 1e12, NONE },
	{ "copy", "ns/B", HK__NUMBER_CURVE, DEVICE(copy_ns), 0, 1e6, NONE },
	{ "reduce", "ns/B", HK__NUMBER_CURVE, DEVICE(reduce_ns), 0, 1e6, NONE },
	{ "serial", "", HK__NUMBER_BOOL, DEVICE(serial), 0, 1, "assumed: lanes run at once" },
	{ "cores", "", HK__NUMBER_COUNT, DEVICE(cores), 0, 1e6, "assumed: each rank has its own" },
	{ "switch", "ns", HK__NUMBER_REAL, DEVICE(switch_ns), 0, 1e12, NONE },
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- listing ---- */

static enum hk_status fields_list(struct hk_fabric *fabric, const char *prefix, size_t at,
				  const struct field *fields, size_t n, struct hk_why *why)
{
	for (size_t i = 0; i < n; i++) {
		struct hk__constant *constant = hk__array_push(&fabric->constants);

		if (!constant)
			return hk__why(why, HK_ENOMEM, "out of memory for constants");
		snprintf(constant->name, sizeof(constant->name), "%s.%s", prefix, fields[i].name);
		snprintf(constant->source, sizeof(constant->source), "%s", fields[i].source);
		constant->unit = fields[i].unit;
		constant->number = fields[i].number;
		constant->at[0] = at + fields[i].at;
		constant->min = fields[i].min;
		constant->max = fields[i].max;
	}
	return HK_OK;
}

/* "nic" of "nic.out": what the two directions share. */
static void kind_base(const struct hk__link_kind *kind, char base[40])
{
	snprintf(base, 40, "%s", kind->name);
	char *dot = strrchr(base, '.');
	if (dot)
		*dot = '\0';
}

/* Two kinds of links may share a name only as the two directions of one. */
static enum hk_status kinds_check(const struct hk_fabric *fabric, struct hk_why *why)
{
	char base[40], other[40];

	for (uint32_t i = 0; i < fabric->nkinds; i++) {
		kind_base(&fabric->kinds[i], base);
		for (uint32_t k = i + 1; k < fabric->nkinds; k++) {
			kind_base(&fabric->kinds[k], other);
			if (strcmp(base, other) == 0 &&
			    (k > i + 1 ||
			     strcmp(fabric->kinds[i].name, fabric->kinds[k].name) == 0))
				return hk__why(why, HK_EINVAL,
					       "two kinds of links are called %s: expected a name "
					       "for each",
					       base);
		}
	}
	return HK_OK;
}

static enum hk_status kinds_list(struct hk_fabric *fabric, struct hk_why *why)
{
	enum hk_status status = HK_OK;
	char base[40], other[40];

	for (uint32_t i = 0; i < fabric->nkinds && !status; i++) {
		size_t at = offsetof(struct hk_fabric, kinds) + i * sizeof(fabric->kinds[0]);
		size_t first = fabric->constants.count;

		kind_base(&fabric->kinds[i], base);
		if (i > 0)
			kind_base(&fabric->kinds[i - 1], other);
		if (i > 0 && strcmp(base, other) == 0)
			continue;
		status = fields_list(fabric, base, at, kind_fields, COUNT(kind_fields), why);
		if (!status && fabric->kinds[i].bundle)
			status = fields_list(fabric, base, at, bundle_fields, COUNT(bundle_fields),
					     why);
		if (i + 1 < fabric->nkinds) {
			kind_base(&fabric->kinds[i + 1], other);
			for (size_t k = first; k < fabric->constants.count; k++) {
				struct hk__constant *both = hk__array_at(&fabric->constants, k);

				if (strcmp(base, other) == 0)
					both->at[1] = both->at[0] + sizeof(fabric->kinds[0]);
			}
		}
	}
	return status;
}

enum hk_status hk__constants_list(struct hk_fabric *fabric, struct hk_why *why)
{
	enum hk_status status = kinds_check(fabric, why);

	if (!status)
		status = kinds_list(fabric, why);
	for (uint32_t i = 0; i < fabric->nwires && !status; i++)
		status = fields_list(fabric, fabric->wires[i].name,
				     offsetof(struct hk_fabric, wires) +
					     i * sizeof(fabric->wires[0]),
				     wire_fields, COUNT(wire_fields), why);
	for (uint32_t i = 0; i < fabric->ndevices && !status; i++)
		status = fields_list(fabric,
				     fabric->ndevices == 1 ? "device" : fabric->devices[i].type,
				     offsetof(struct hk_fabric, devices) +
					     i * sizeof(fabric->devices[0]),
				     device_fields, COUNT(device_fields), why);
	hk__fabric_settle(fabric);
	return status;
}

/* ---- reading and setting ---- */

struct hk__constant *hk__constant_find(const struct hk_fabric *fabric, const char *name)
{
	for (size_t i = 0; i < fabric->constants.count; i++) {
		struct hk__constant *constant = hk__array_at(&fabric->constants, i);

		if (hk__name_equal(constant->name, name))
			return constant;
	}
	return NULL;
}

static const void *place_at(const struct hk_fabric *fabric, size_t at)
{
	return (const char *)fabric + at;
}

static void *place_to_set(struct hk_fabric *fabric, size_t at)
{
	return (char *)fabric + at;
}

const struct hk__curve *hk__constant_curve(const struct hk_fabric *fabric,
					   const struct hk__constant *constant)
{
	return constant->number == HK__NUMBER_CURVE ? place_at(fabric, constant->at[0]) : NULL;
}

double hk__constant_value(const struct hk_fabric *fabric, const struct hk__constant *constant)
{
	const void *place = place_at(fabric, constant->at[0]);
	const struct hk__curve *curve = place;

	switch (constant->number) {
	case HK__NUMBER_REAL:
		return *(const double *)place;
	case HK__NUMBER_COUNT:
		return *(const uint32_t *)place;
	case HK__NUMBER_BOOL:
		return *(const bool *)place ? 1 : 0;
	case HK__NUMBER_CURVE:
		break;
	}
	return curve->npoints ? curve->points[0].value : 0;
}

static void number_store(enum hk__number number, void *place, double value)
{
	struct hk__curve *curve = place;

	switch (number) {
	case HK__NUMBER_REAL:
		*(double *)place = value;
		break;
	case HK__NUMBER_COUNT:
		*(uint32_t *)place = (uint32_t)value;
		break;
	case HK__NUMBER_BOOL:
		*(bool *)place = value != 0;
		break;
	case HK__NUMBER_CURVE:
		*curve = (struct hk__curve){ .npoints = value != 0 };
		curve->points[0].value = value;
		break;
	}
}

static void constant_cite(struct hk__constant *constant, const char *source)
{
	if (source)
		snprintf(constant->source, sizeof(constant->source), "%s", source);
}

static enum hk_status value_check(const struct hk__constant *constant, double value,
				  struct hk_why *why)
{
	bool whole = constant->number == HK__NUMBER_COUNT || constant->number == HK__NUMBER_BOOL;

	if (!(value >= constant->min && value <= constant->max) || (whole && value != floor(value)))
		return hk__why(why, HK_EINVAL, "%s cannot be %g: expected %s from %g to %g%s%s",
			       constant->name, value, whole ? "a whole number" : "a number",
			       constant->min, constant->max, *constant->unit ? " " : "",
			       constant->unit);
	return HK_OK;
}

enum hk_status hk__constant_set(struct hk_fabric *fabric, struct hk__constant *constant,
				double value, const char *source, struct hk_why *why)
{
	enum hk_status status = value_check(constant, value, why);

	if (status)
		return status;
	for (int i = 0; i < 2; i++)
		if (constant->at[i])
			number_store(constant->number, place_to_set(fabric, constant->at[i]),
				     value);
	constant_cite(constant, source);
	hk__fabric_settle(fabric);
	return HK_OK;
}

enum hk_status hk__constant_set_curve(struct hk_fabric *fabric, struct hk__constant *constant,
				      const struct hk__curve *curve, const char *source,
				      struct hk_why *why)
{
	struct hk__curve *place = place_to_set(fabric, constant->at[0]);

	if (constant->number != HK__NUMBER_CURVE)
		return hk__why(why, HK_EINVAL, "%s is one number: expected no list of points",
			       constant->name);
	for (uint32_t i = 0; i < curve->npoints; i++) {
		enum hk_status status = value_check(constant, curve->points[i].value, why);

		if (status)
			return status;
		if (!(curve->points[i].bytes >= 0) ||
		    (i > 0 && !(curve->points[i].bytes > curve->points[i - 1].bytes)))
			return hk__why(why, HK_EINVAL,
				       "%s: expected points in order of their bytes, found %g",
				       constant->name, curve->points[i].bytes);
	}
	*place = *curve;
	constant_cite(constant, source);
	return HK_OK;
}

void hk__constants_apply(struct hk_fabric *fabric, const struct hk__setting *settings, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hk__constant *constant = hk__constant_find(fabric, settings[i].name);

		/* A system of one node has no NIC, a small one no leaf. */
		if (!constant)
			continue;
		enum hk_status status = hk__constant_set(fabric, constant, settings[i].value,
							 settings[i].source, NULL);
		hk_assert(status == HK_OK);
	}
}

void hk__curve_apply(struct hk_fabric *fabric, const char *name, const struct hk__point *points,
		     const char *source)
{
	struct hk__constant *constant = hk__constant_find(fabric, name);
	struct hk__curve curve = { .npoints = 0 };

	if (!constant)
		return;
	for (; points->bytes >= 0; points++)
		curve.points[curve.npoints++] = *points;
	enum hk_status status = hk__constant_set_curve(fabric, constant, &curve, source, NULL);
	hk_assert(status == HK_OK);
}

bool hk_fabric_constant(const struct hk_fabric *fabric, uint32_t i,
			struct hk_fabric_constant *constant_out)
{
	if (i >= fabric->constants.count)
		return false;
	const struct hk__constant *constant = hk__array_at(&fabric->constants, i);
	struct hk_fabric_constant full = {
		.name = constant->name,
		.value = hk__constant_value(fabric, constant),
		.unit = constant->unit,
		.source = constant->source,
	};
	hk__result_set(constant_out, &full, sizeof(full));
	return true;
}

/* ---- what if ---- */

static enum hk_status constant_scale(struct hk_fabric *fabric, struct hk__constant *constant,
				     double factor, struct hk_why *why)
{
	const struct hk__curve *curve = hk__constant_curve(fabric, constant);
	struct hk__curve scaled;

	if (!curve)
		return hk__constant_set(fabric, constant,
					hk__constant_value(fabric, constant) * factor, NULL, why);
	scaled = *curve;
	for (uint32_t i = 0; i < scaled.npoints; i++)
		scaled.points[i].value *= factor;
	return hk__constant_set_curve(fabric, constant, &scaled, NULL, why);
}

static enum hk_status change_unknown(const struct hk_fabric *fabric, const char *name,
				     struct hk_why *why)
{
	char names[HK_WHY_MAX - 160];
	struct hk__text text;

	hk__text_init(&text, names, sizeof(names));
	for (size_t i = 0; i < fabric->constants.count; i++) {
		const struct hk__constant *constant = hk__array_at(&fabric->constants, i);

		hk__text_add(&text, "%s%s", i ? ", " : "", constant->name);
	}
	return hk__why(why, HK_EINVAL, "%s has no constant '%.60s'; it has %s", fabric->name, name,
		       names);
}

enum hk_status hk_fabric_change(struct hk_fabric *fabric, const char *change, struct hk_why *why)
{
	const char *equals = strchr(change, '=');
	char name[64], *end;

	if (!equals || equals == change || (size_t)(equals - change) >= sizeof(name))
		return hk__why(why, HK_EINVAL, "'%.60s': expected NAME=VALUE or NAME=FACTORx",
			       change);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - change), change);
	struct hk__constant *constant = hk__constant_find(fabric, name);
	if (!constant)
		return change_unknown(fabric, name, why);
	double value = strtod(equals + 1, &end);
	bool factor = end != equals + 1 && *end == 'x' && end[1] == '\0';
	if (!factor && !hk__value_parse(equals + 1, constant->unit, &value))
		return hk__why(why, HK_EINVAL, "'%.60s': expected a number%s%s, or a factor as 2x",
			       change, *constant->unit ? " of " : "", constant->unit);
	enum hk_status status = factor ? constant_scale(fabric, constant, value, why)
				       : hk__constant_set(fabric, constant, value, NULL, why);
	if (!status)
		snprintf(constant->source, sizeof(constant->source), "changed: %.100s", change);
	return status;
}
