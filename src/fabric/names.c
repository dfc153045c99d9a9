/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - fabrics by name, size and options: "dgx-h100:128,net=ethernet". */
#include "fabric/system.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct hk__system *const systems[] = {
	&hk__system_dgx_a100,	 &hk__system_dgx_h100,	  &hk__system_dgx_h200,
	&hk__system_dgx_b200,	 &hk__system_gb200_nvl72, &hk__system_slingshot_a100,
	&hk__system_tcp_cluster, &hk__system_switch,	  &hk__system_torus,
	&hk__system_dragonfly,
};
#define SYSTEMS (sizeof(systems) / sizeof(systems[0]))

bool hk_fabric_name_get(uint32_t i, struct hk_fabric_name *name_out)
{
	if (i >= SYSTEMS)
		return false;
	struct hk_fabric_name full = {
		.name = systems[i]->name,
		.scale = systems[i]->size,
		.options = systems[i]->options,
		.about = systems[i]->about,
	};
	hk__result_set(name_out, &full, sizeof(full));
	return true;
}

/* ---- what follows the name ---- */

/* "8x8x8", up to ndims numbers. */
static bool size_parse(const char *text, struct hk__system_args *args)
{
	while (args->ndims < HK__DIMS_MAX && isdigit((unsigned char)*text)) {
		char *end;
		unsigned long value = strtoul(text, &end, 10);

		if (value == 0 || value > HK_FABRIC_RANKS_MAX)
			return false;
		args->dims[args->ndims++] = (uint32_t)value;
		if (*end == '\0')
			return true;
		if (*end != 'x')
			return false;
		text = end + 1;
	}
	return false;
}

const char *hk__system_option(const struct hk__system_args *args, const char *name)
{
	for (uint32_t i = 0; i < args->noptions; i++)
		if (strcmp(args->options[i].name, name) == 0)
			return args->options[i].value;
	return NULL;
}

enum hk_status hk__system_number(const struct hk__system_args *args, const char *name, double min,
				 double max, double *value, struct hk_why *why)
{
	const char *text = hk__system_option(args, name);
	char *end;

	if (!text)
		return HK_OK;
	double given = strtod(text, &end);
	if (end == text || *end || !(given >= min && given <= max))
		return hk__why(why, HK_EINVAL,
			       "%s: expected %s=NUMBER from %g to %g, found '%.40s'", args->spec,
			       name, min, max, text);
	*value = given;
	return HK_OK;
}

enum hk_status hk__system_choice(const struct hk__system_args *args, const char *name,
				 const char *const *choices, uint32_t *choice, struct hk_why *why)
{
	const char *text = hk__system_option(args, name);
	char list[256];
	struct hk__text out;

	if (!text)
		return HK_OK;
	hk__text_init(&out, list, sizeof(list));
	for (uint32_t i = 0; choices[i]; i++) {
		hk__text_add(&out, "%s%s", i ? "|" : "", choices[i]);
		if (strcmp(text, choices[i]) == 0) {
			*choice = i;
			return HK_OK;
		}
	}
	return hk__why(why, HK_EINVAL, "%s: expected %s=%s, found '%.40s'", args->spec, name, list,
		       text);
}

/* Whether a system's list, "bw=GB/s delay=NS", has that name. */
static bool option_is_known(const struct hk__system *system, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = system->options; *at; at += strcspn(at, " ")) {
		at += strspn(at, " ");
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			return true;
	}
	return false;
}

static enum hk_status options_parse(char *text, const struct hk__system *system,
				    struct hk__system_args *args, struct hk_why *why)
{
	char *save = NULL;

	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *equals = strchr(word, '=');

		if (equals)
			*equals = '\0';
		if (!equals || !option_is_known(system, word) || args->noptions == HK__OPTIONS_MAX)
			return hk__why(why, HK_EINVAL, "%s: no option '%.40s'; %s takes %s",
				       args->spec, word, system->name,
				       *system->options ? system->options : "none");
		args->options[args->noptions].name = word;
		args->options[args->noptions++].value = equals + 1;
	}
	return HK_OK;
}

static enum hk_status system_unknown(const char *name, struct hk_why *why)
{
	char names[512];
	struct hk__text text;

	hk__text_init(&text, names, sizeof(names));
	for (size_t i = 0; i < SYSTEMS; i++)
		hk__text_add(&text, "%s:%s, ", systems[i]->name, systems[i]->size);
	return hk__why(why, HK_EINVAL,
		       "'%.60s' is not a fabric: expected one of %shere[:RANKS], or a FILE.yaml",
		       name, names);
}

enum hk_status hk__fabric_named(const char *spec, const struct hk_alloc *alloc, struct hk_why *why,
				struct hk_fabric **fabric_out)
{
	char text[128];
	struct hk__system_args args = { .spec = spec };
	const struct hk__system *system = NULL;
	struct hk_fabric *fabric;

	if (strlen(spec) >= sizeof(text))
		return hk__why(why, HK_EINVAL, "'%.40s...' is too long for the name of a fabric",
			       spec);
	snprintf(text, sizeof(text), "%s", spec);
	char *options = text + strcspn(text, ",");
	if (*options)
		*options++ = '\0';
	char *size = text + strcspn(text, ":");
	if (*size)
		*size++ = '\0';
	for (size_t i = 0; i < SYSTEMS && !system; i++)
		if (hk__name_equal(text, systems[i]->name))
			system = systems[i];
	if (!system)
		return system_unknown(text, why);
	if (!size_parse(size, &args) || args.ndims < system->min_dims ||
	    args.ndims > system->max_dims)
		return hk__why(why, HK_EINVAL, "'%s': expected %s:%s, as %s", spec, system->name,
			       system->size, system->example);
	enum hk_status status = options_parse(options, system, &args, why);
	if (status)
		return status;
	status = hk__fabric_create(alloc, why, &fabric);
	if (status)
		return status;
	snprintf(fabric->name, sizeof(fabric->name), "%.90s", spec);
	status = system->build(&args, fabric, why);
	if (!status && fabric->ops->ready)
		status = fabric->ops->ready(fabric, why);
	if (status) {
		hk_fabric_free(fabric);
		return status;
	}
	*fabric_out = fabric;
	return HK_OK;
}
