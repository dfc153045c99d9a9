/* SPDX-License-Identifier: Apache-2.0 */
/* sim_vary.c - the same simulation on a fabric that differs in a constant or more. */
#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VARY 0.1	/* each constant by a tenth, up and down */
#define VARY_SHOWN 1e-4 /* of the time: what has less effect is left out */

/* ---- what if ---- */

int sim_what_if_open(const struct sim_run *run, struct hk_fabric **fabric_out)
{
	const char *spec = run->args->fabric;
	struct hk_fabric *fabric;
	struct hk_why why = { "" };
	char *copy = strdup(run->args->sim.what_if), *save = NULL;
	int status = CLI_DONE;

	if (!copy)
		return cli_wrong("sim", "out of memory");
	if (hk_fabric_open(spec, NULL, &why, &fabric) != HK_OK) {
		free(copy);
		return cli_wrong("sim", "%s", why.text);
	}
	for (char *change = strtok_r(copy, ",", &save); change && status == CLI_DONE;
	     change = strtok_r(NULL, ",", &save))
		if (hk_fabric_change(fabric, change, &why) != HK_OK)
			status = cli_wrong("sim", "--what-if %s: %s", change, why.text);
	free(copy);
	if (status == CLI_DONE)
		*fabric_out = fabric;
	else
		hk_fabric_free(fabric);
	return status;
}

/* ---- sensitivity ---- */

struct effect {
	char name[64];
	double value;
	const char *unit;
	double more, less; /* the time with it, relative */
	double elasticity; /* of time to the constant: -1: inverse to it */
};

static int effect_compare(const void *a, const void *b)
{
	double x = fabs(((const struct effect *)a)->elasticity);
	double y = fabs(((const struct effect *)b)->elasticity);

	return x > y ? -1 : x < y;
}

/* By factors: a constant may stand for a curve. */
static int effect_set(struct hk_fabric *fabric, const char *name, double factor)
{
	struct hk_why why = { "" };
	char change[128];

	snprintf(change, sizeof(change), "%s=%.17gx", name, factor);
	if (hk_fabric_change(fabric, change, &why) != HK_OK)
		return cli_wrong("sim", "%s: %s", change, why.text);
	return CLI_DONE;
}

/* The row's way on the fabric with one constant another. */
static int effect_time(struct sim_run *run, struct hk_fabric *fabric, const struct sim_row *row,
		       const struct effect *effect, double factor, double *ns_out)
{
	struct sim_row other = { .bytes = row->bytes };
	struct hk_why why = { "" };
	int status = effect_set(fabric, effect->name, factor);

	run->now = effect->name;
	if (status == CLI_DONE && row->as_nccl)
		status = sim_as_nccl(run, fabric, row->bytes, &other);
	else if (status == CLI_DONE && sim_run_plan(run, fabric, row->plan, row->bytes, NULL, &why,
						    &other.result) != HK_OK)
		status = cli_wrong("sim", "%s: %s", effect->name, why.text);
	*ns_out = other.result.time_ns;
	return status == CLI_DONE ? effect_set(fabric, effect->name, 1 / factor) : status;
}

static int effect_find(struct sim_run *run, struct hk_fabric *fabric, const struct sim_row *row,
		       struct effect *effect)
{
	double base = row->result.time_ns, more = base, less = base;
	int status = effect_time(run, fabric, row, effect, 1 + VARY, &more);

	if (status == CLI_DONE)
		status = effect_time(run, fabric, row, effect, 1 - VARY, &less);
	if (status != CLI_DONE || !(base > 0) || !(more > 0) || !(less > 0))
		return status;
	effect->more = more / base - 1;
	effect->less = less / base - 1;
	effect->elasticity = log(more / less) / log((1 + VARY) / (1 - VARY));
	return CLI_DONE;
}

static void effects_print(const struct effect *effects, uint32_t count)
{
	printf("\n%-28s %14s %-6s %10s %10s %11s\n", "constant", "value", "", "+10 %", "-10 %",
	       "elasticity");
	for (uint32_t i = 0; i < count; i++)
		printf("%-28s %14.6g %-6s %+9.2f%% %+9.2f%% %+11.3f\n", effects[i].name,
		       effects[i].value, effects[i].unit, 100 * effects[i].more,
		       100 * effects[i].less, effects[i].elasticity);
	if (count == 0) {
		puts("It depends on no constant of the fabric alone.\n");
		return;
	}
	printf("It depends most on %s: a tenth more makes it %.1f %% %s.\n\n", effects[0].name,
	       100 * fabs(effects[0].more), effects[0].more < 0 ? "faster" : "slower");
}

static void effects_print_json(const struct effect *effects, uint32_t count)
{
	fputs(",\n   \"sensitivity\": [", stdout);
	for (uint32_t i = 0; i < count; i++) {
		fputs(i ? ",\n    {\"constant\": " : "\n    {\"constant\": ", stdout);
		cli_json_string(stdout, effects[i].name);
		printf(", \"value\": %.9g, \"unit\": ", effects[i].value);
		cli_json_string(stdout, effects[i].unit);
		printf(", \"more\": %.6g, \"less\": %.6g, \"elasticity\": %.6g}", effects[i].more,
		       effects[i].less, effects[i].elasticity);
	}
	putchar(']');
}

/* Every speed and every time, but those that are nothing. */
static uint32_t effects_list(const struct hk_fabric *fabric, struct effect *effects, uint32_t room)
{
	struct hk_fabric_constant constant;
	uint32_t count = 0;

	for (uint32_t i = 0; count < room && hk_fabric_constant(fabric, i, &constant); i++) {
		bool physical = strcmp(constant.unit, "GB/s") == 0 ||
				strcmp(constant.unit, "ns") == 0 ||
				strcmp(constant.unit, "ns/B") == 0;

		if (!physical || !(constant.value > 0))
			continue;
		struct effect *effect = &effects[count++];
		*effect = (struct effect){ .value = constant.value, .unit = constant.unit };
		snprintf(effect->name, sizeof(effect->name), "%s", constant.name);
	}
	return count;
}

int sim_sensitivity(struct sim_run *run, const struct sim_row *row)
{
	enum {
		ROOM = 1024
	};
	struct effect *effects = calloc(ROOM, sizeof(*effects));
	struct hk_fabric *fabric = NULL;
	struct hk_why why = { "" };
	uint32_t count = 0, shown = 0;
	int status = CLI_DONE;

	if (!effects)
		return cli_wrong("sim", "out of memory");
	if (hk_fabric_open(run->args->fabric, NULL, &why, &fabric) != HK_OK)
		status = cli_wrong("sim", "%s", why.text);
	else
		count = effects_list(fabric, effects, ROOM);
	for (uint32_t i = 0; status == CLI_DONE && i < count; i++)
		status = effect_find(run, fabric, row, &effects[i]);
	sim_progress_end(run);
	if (status == CLI_DONE) {
		qsort(effects, count, sizeof(*effects), effect_compare);
		while (shown < count && fabs(effects[shown].elasticity) * VARY > VARY_SHOWN)
			shown++;
		if (run->args->json)
			effects_print_json(effects, shown);
		else
			effects_print(effects, shown);
	}
	hk_fabric_free(fabric);
	free(effects);
	return status;
}
