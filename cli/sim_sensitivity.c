/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_sensitivity.c - --sensitivity: which constants of the fabric a time depends
 * on, and how far to trust that.
 *
 * One time is no measure: slices are whole, and how lanes of a plan fall together
 * may differ between one size and the next. So each constant is moved by two
 * amounts, in both directions, at the size that is asked for and at its neighbours.
 * What is printed is the mean of these, and their standard deviation, the spread.
 */
#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VARY_SHOWN 1e-4 /* of the time, for a tenth of a constant: less is left out */

enum {
	SIZES = 3,
	AMOUNTS = 2,
	POINTS = SIZES * AMOUNTS,
	CONSTANTS_MAX = 1024
};
static const double size_factors[SIZES] = { 1, 0.97, 1.03 };
static const double amounts[AMOUNTS] = { 0.1, 0.05 }; /* the first is what is printed */

/* A row on a fabric whose constants are moved; sizes around its own, and their times as it is. */
struct around {
	struct sim_run *run;
	struct hk_fabric *fabric;
	const struct sim_row *row;
	uint64_t bytes[SIZES];
	double ns[SIZES];
};

struct figure {
	double mean;
	double spread;
};

struct effect {
	char name[64];
	double value;
	const char *unit;
	struct figure more, less; /* of the time, relative, with a tenth more and less of it */
	struct figure elasticity; /* of time to the constant: -1: inverse to it */
	bool significant;
};

static struct figure figure_of(const double *values, uint32_t count)
{
	struct figure figure = { 0, 0 };

	for (uint32_t i = 0; i < count; i++)
		figure.mean += values[i] / count;
	for (uint32_t i = 0; i < count; i++)
		figure.spread += pow(values[i] - figure.mean, 2) / count;
	figure.spread = sqrt(figure.spread);
	return figure;
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

static int around_time(const struct around *around, uint32_t size, double *ns_out)
{
	struct sim_run *run = around->run;
	uint64_t bytes = around->bytes[size];
	struct sim_row other = { .bytes = bytes };
	struct hk_why why = { "" };
	int status = CLI_DONE;

	if (around->row->as_nccl)
		status = sim_as_nccl(run, around->fabric, bytes, &other);
	else if (sim_run_plan(run, around->fabric, around->row->plan, bytes, NULL, &why,
			      &other.result) != HK_OK)
		status = cli_wrong("sim", "%s: %s", run->now, why.text);
	*ns_out = other.result.time_ns;
	return status;
}

static int around_find(struct around *around)
{
	int status = CLI_DONE;

	around->run->now = around->row->algo;
	for (uint32_t s = 0; s < SIZES && status == CLI_DONE; s++) {
		around->bytes[s] = (uint64_t)llround((double)around->row->bytes * size_factors[s]);
		status = around_time(around, s, &around->ns[s]);
	}
	return status;
}

/* One constant by one factor, at all sizes: the logarithms of the times, relative. */
static int around_change(const struct around *around, const char *name, double factor, double *logs)
{
	int status = effect_set(around->fabric, name, factor);

	around->run->now = name;
	for (uint32_t s = 0; s < SIZES && status == CLI_DONE; s++) {
		double ns = 0;

		status = around_time(around, s, &ns);
		logs[s] = ns > 0 && around->ns[s] > 0 ? log(ns / around->ns[s]) : 0;
	}
	return status == CLI_DONE ? effect_set(around->fabric, name, 1 / factor) : status;
}

/* In one direction: what the first amount does to the time, and the elasticity at all points. */
static int effect_direction(const struct around *around, const char *name, double sign,
			    struct figure *change_out, struct figure *elasticity_out)
{
	double logs[POINTS], elasticities[POINTS], changes[SIZES];

	for (uint32_t a = 0; a < AMOUNTS; a++) {
		double factor = 1 + sign * amounts[a], *at = logs + (size_t)a * SIZES;
		int status = around_change(around, name, factor, at);

		if (status != CLI_DONE)
			return status;
		for (uint32_t s = 0; s < SIZES; s++)
			elasticities[a * SIZES + s] = at[s] / log(factor);
	}
	for (uint32_t s = 0; s < SIZES; s++)
		changes[s] = expm1(logs[s]);
	*change_out = figure_of(changes, SIZES);
	*elasticity_out = figure_of(elasticities, POINTS);
	return CLI_DONE;
}

/*
 * The spread is that of points in one direction: a bottleneck that changes is no
 * lack of trust. But where more and less of a constant both make it slower, or
 * both faster, neither is an effect of the constant.
 */
static int effect_find(const struct around *around, struct effect *effect)
{
	struct figure up = { 0, 0 }, down = { 0, 0 }, *both = &effect->elasticity;
	int status = effect_direction(around, effect->name, 1, &effect->more, &up);

	if (status == CLI_DONE)
		status = effect_direction(around, effect->name, -1, &effect->less, &down);
	if (status != CLI_DONE)
		return status;
	both->mean = (up.mean + down.mean) / 2;
	both->spread = sqrt((up.spread * up.spread + down.spread * down.spread) / 2);
	if (up.mean * down.mean < 0)
		both->spread = fmax(both->spread, fmax(fabs(up.mean), fabs(down.mean)));
	effect->significant = fabs(both->mean) > both->spread;
	return CLI_DONE;
}

/* ---- what is said ---- */

static int effect_compare(const void *a, const void *b)
{
	const struct effect *x = a, *y = b;
	double more = fabs(x->elasticity.mean), less = fabs(y->elasticity.mean);

	if (x->significant != y->significant)
		return x->significant ? -1 : 1;
	return more > less ? -1 : more < less;
}

static bool effect_is_shown(const struct effect *effect)
{
	double most = fmax(fabs(effect->elasticity.mean), effect->elasticity.spread);

	return most * amounts[0] > VARY_SHOWN;
}

static void effects_print(const struct effect *effects, uint32_t count)
{
	printf("\n%-28s %14s %-6s %17s %17s %17s\n", "constant", "value", "", "+10 %, spread",
	       "-10 %, spread", "elasticity, spread");
	for (uint32_t i = 0; i < count; i++) {
		const struct effect *effect = &effects[i];

		printf("%-28s %14.6g %-6s %+7.2f%% +- %5.2f %+7.2f%% +- %5.2f %+8.3f +- %.3f%s\n",
		       effect->name, effect->value, effect->unit, 100 * effect->more.mean,
		       100 * effect->more.spread, 100 * effect->less.mean,
		       100 * effect->less.spread, effect->elasticity.mean,
		       effect->elasticity.spread, effect->significant ? "" : "  not significant");
	}
	if (count == 0 || !effects[0].significant)
		puts("It depends on no constant of the fabric alone.\n");
	else
		printf("It depends most on %s: a tenth more makes it %.1f %% %s, a tenth less "
		       "%.1f %% %s.\n\n",
		       effects[0].name, 100 * fabs(effects[0].more.mean),
		       effects[0].more.mean < 0 ? "faster" : "slower",
		       100 * fabs(effects[0].less.mean),
		       effects[0].less.mean < 0 ? "faster" : "slower");
}

static void effects_print_json(const struct effect *effects, uint32_t count)
{
	fputs(",\n   \"sensitivity\": [", stdout);
	for (uint32_t i = 0; i < count; i++) {
		const struct effect *effect = &effects[i];

		fputs(i ? ",\n    {\"constant\": " : "\n    {\"constant\": ", stdout);
		cli_json_string(stdout, effect->name);
		printf(", \"value\": %.9g, \"unit\": ", effect->value);
		cli_json_string(stdout, effect->unit);
		printf(", \"more\": %.6g, \"more_spread\": %.6g, \"less\": %.6g, "
		       "\"less_spread\": %.6g, \"elasticity\": %.6g, \"spread\": %.6g, "
		       "\"significant\": %s}",
		       effect->more.mean, effect->more.spread, effect->less.mean,
		       effect->less.spread, effect->elasticity.mean, effect->elasticity.spread,
		       effect->significant ? "true" : "false");
	}
	putchar(']');
}

/* ---- all of them ---- */

/* Every speed and every time, but those that are nothing. */
static uint32_t effects_list(const struct hk_fabric *fabric, struct effect *effects, uint32_t room)
{
	struct hk_fabric_constant constant = { .size = sizeof(constant) };
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

static void effects_say(const struct sim_run *run, struct effect *effects, uint32_t count)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < count; i++)
		if (effect_is_shown(&effects[i]))
			effects[shown++] = effects[i];
	qsort(effects, shown, sizeof(*effects), effect_compare);
	if (run->args->json)
		effects_print_json(effects, shown);
	else
		effects_print(effects, shown);
}

int sim_sensitivity(struct sim_run *run, const struct sim_row *row)
{
	struct effect *effects = calloc(CONSTANTS_MAX, sizeof(*effects));
	struct around around = { .run = run, .row = row };
	struct hk_why why = { "" };
	uint32_t count = 0;
	int status = CLI_DONE;

	if (!effects)
		return cli_wrong("sim", "out of memory");
	if (hk_fabric_create(run->args->fabric, NULL, &why, &around.fabric) != HK_OK)
		status = cli_wrong("sim", "%s", why.text);
	if (status == CLI_DONE) {
		count = effects_list(around.fabric, effects, CONSTANTS_MAX);
		status = around_find(&around);
	}
	for (uint32_t i = 0; status == CLI_DONE && i < count; i++)
		status = effect_find(&around, &effects[i]);
	sim_progress_end(run);
	if (status == CLI_DONE)
		effects_say(run, effects, count);
	hk_fabric_free(around.fabric);
	free(effects);
	return status;
}
