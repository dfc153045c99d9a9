/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c - constants of a device and a wire, found from how long plans took.
 *
 * The model is the simulator itself: constants are moved until the times it gives
 * come as near to the measured ones as they can (Levenberg and Marquardt, on the
 * logarithms of constants and times, so that all sizes count alike). Where
 * measurements say nothing about a constant it stays near where it was.
 */
#include "fabric/topology.h"
#include "sim/sim.h"

#include <hocket/sim.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS_MAX 96u
#define ROUNDS_MAX 40u
#define STEP 0.02   /* of a constant, for a derivative */
#define PULL 0.05   /* back to where a constant was, against one measurement */
#define SMOOTH 0.15 /* between neighbours on a curve */
#define OUTLIER 0.3 /* residuals beyond count less */
#define LEAST 1e-6  /* no constant is less: it has a logarithm */

/* A constant that may move: one number, or two that are the same. */
struct param {
	double *value, *same;
	double log_first; /* where it was */
	bool follows;	  /* the one before it is its neighbour on a curve */
};

struct fit {
	struct hk_fabric *fabric;
	const struct hk_sim_sample *samples;
	uint32_t nsamples;
	const struct hk_sim_opts *opts;
	struct hk_why *why;
	struct param params[PARAMS_MAX];
	uint32_t nparams;
	double *residuals, *moved, *jacobian; /* of samples; jacobian by rows */
	double *normal, *right;		      /* nparams squared; nparams */
};

/* ---- which constants ---- */

static void param_add(struct fit *fit, double *value, double *same, bool follows)
{
	if (fit->nparams == PARAMS_MAX)
		return;
	*value = fmax(*value, LEAST);
	if (same)
		*same = *value;
	fit->params[fit->nparams++] = (struct param){ value, same, log(*value), follows };
}

static void curve_add(struct fit *fit, struct hk__curve *curve, struct hk__curve *same)
{
	for (uint32_t i = 0; i < curve->npoints; i++)
		param_add(fit, &curve->points[i].value, same ? &same->points[i].value : NULL,
			  i > 0);
}

static void params_collect(struct fit *fit, const struct hk_sim_fit_what *what)
{
	if (what->device) {
		struct hk__device *device = &fit->fabric->devices[0];

		param_add(fit, &device->call_ns, NULL, false);
		param_add(fit, &device->step_ns, NULL, false);
		if (hk__fabric_cores_shared(fit->fabric))
			param_add(fit, &device->switch_ns, NULL, false);
		curve_add(fit, &device->copy_ns, NULL);
		curve_add(fit, &device->reduce_ns, NULL);
	}
	for (uint32_t i = 0; what->wire && i < fit->fabric->nwires; i++) {
		struct hk__wire *wire = &fit->fabric->wires[i];

		if (strcmp(wire->name, what->wire) != 0)
			continue;
		/* Sender and receiver cannot be told apart by what both of them do. */
		wire->recv_ns = wire->send_ns;
		curve_add(fit, &wire->send_ns, &wire->recv_ns);
		curve_add(fit, &wire->flight_ns, NULL);
		curve_add(fit, &wire->send_byte_ns, NULL);
		curve_add(fit, &wire->recv_byte_ns, NULL);
		curve_add(fit, &wire->fresh_byte_ns, NULL);
		if (hk__curve_at(&wire->cold_byte_ns, 0) > 0)
			curve_add(fit, &wire->cold_byte_ns, NULL);
		if (hk__curve_at(&wire->ahead_byte_ns, 0) > 0)
			curve_add(fit, &wire->ahead_byte_ns, NULL);
	}
}

static void param_set(const struct param *param, double log_value)
{
	*param->value = exp(log_value);
	if (param->same)
		*param->same = *param->value;
}

/* ---- how far off ---- */

static enum hk_status residuals_find(struct fit *fit, double *residuals)
{
	for (uint32_t i = 0; i < fit->nsamples; i++) {
		const struct hk_sim_sample *sample = &fit->samples[i];
		struct hk_sim_job job = { .plan = sample->plan,
					  .bytes = sample->bytes,
					  .devices = sample->devices };
		struct hk_sim_result result = { .size = sizeof(result) };
		enum hk_status status =
			hk_sim_run(fit->fabric, &job, 1, fit->opts, fit->why, &result);

		if (status != HK_OK)
			return status;
		residuals[i] = log(result.time_ns / sample->time_ns);
	}
	return HK_OK;
}

static double residual_weight(double residual)
{
	return fabs(residual) <= OUTLIER ? 1 : OUTLIER / fabs(residual);
}

/* What is to become small, constants included. */
static double fit_cost(const struct fit *fit, const double *residuals)
{
	double cost = 0, last = 0;

	for (uint32_t i = 0; i < fit->nsamples; i++) {
		double far = fabs(residuals[i]);

		cost += far <= OUTLIER ? far * far : 2 * OUTLIER * far - OUTLIER * OUTLIER;
	}
	for (uint32_t p = 0; p < fit->nparams; p++) {
		double away = log(*fit->params[p].value) - fit->params[p].log_first;

		cost += PULL * PULL * away * away;
		if (fit->params[p].follows)
			cost += SMOOTH * SMOOTH * (away - last) * (away - last);
		last = away;
	}
	return cost;
}

static enum hk_status jacobian_find(struct fit *fit)
{
	for (uint32_t p = 0; p < fit->nparams; p++) {
		double was = log(*fit->params[p].value);

		param_set(&fit->params[p], was + STEP);
		enum hk_status status = residuals_find(fit, fit->moved);
		param_set(&fit->params[p], was);
		if (status != HK_OK)
			return status;
		for (uint32_t i = 0; i < fit->nsamples; i++)
			fit->jacobian[(size_t)i * fit->nparams + p] =
				(fit->moved[i] - fit->residuals[i]) / STEP;
	}
	return HK_OK;
}

/* ---- one step ---- */

/* Normal equations: what measurements want, and what holds constants back. */
static void normal_fill(struct fit *fit, double damping)
{
	uint32_t n = fit->nparams;

	memset(fit->normal, 0, (size_t)n * n * sizeof(double));
	memset(fit->right, 0, n * sizeof(double));
	for (uint32_t i = 0; i < fit->nsamples; i++) {
		const double *row = &fit->jacobian[(size_t)i * n];
		double weight = residual_weight(fit->residuals[i]);

		for (uint32_t p = 0; p < n; p++) {
			fit->right[p] -= weight * row[p] * fit->residuals[i];
			for (uint32_t q = 0; q < n; q++)
				fit->normal[p * n + q] += weight * row[p] * row[q];
		}
	}
	for (uint32_t p = 0; p < n; p++) {
		const struct param *param = &fit->params[p];
		double away = log(*param->value) - param->log_first;

		fit->normal[p * n + p] += PULL * PULL + damping;
		fit->right[p] -= PULL * PULL * away;
		if (!param->follows)
			continue;
		double last = log(*param[-1].value) - param[-1].log_first;
		double pull = SMOOTH * SMOOTH;
		fit->normal[p * n + p] += pull;
		fit->normal[(p - 1) * n + p - 1] += pull;
		fit->normal[p * n + p - 1] -= pull;
		fit->normal[(p - 1) * n + p] -= pull;
		fit->right[p] -= pull * (away - last);
		fit->right[p - 1] += pull * (away - last);
	}
}

/* Cholesky; the matrix is positive definite, as every constant is held. */
static void normal_solve(struct fit *fit)
{
	uint32_t n = fit->nparams;
	double *a = fit->normal, *x = fit->right;

	for (uint32_t j = 0; j < n; j++) {
		for (uint32_t k = 0; k < j; k++)
			a[j * n + j] -= a[j * n + k] * a[j * n + k];
		a[j * n + j] = sqrt(fmax(a[j * n + j], 1e-12));
		for (uint32_t i = j + 1; i < n; i++) {
			for (uint32_t k = 0; k < j; k++)
				a[i * n + j] -= a[i * n + k] * a[j * n + k];
			a[i * n + j] /= a[j * n + j];
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < i; k++)
			x[i] -= a[i * n + k] * x[k];
		x[i] /= a[i * n + i];
	}
	for (uint32_t i = n; i-- > 0;) {
		for (uint32_t k = i + 1; k < n; k++)
			x[i] -= a[k * n + i] * x[k];
		x[i] /= a[i * n + i];
	}
}

/* Tries a step; takes it back unless it made things better. */
static enum hk_status fit_step(struct fit *fit, double damping, double *cost, bool *better_out)
{
	double was[PARAMS_MAX] = { 0 };

	normal_fill(fit, damping);
	normal_solve(fit);
	for (uint32_t p = 0; p < fit->nparams; p++) {
		was[p] = log(*fit->params[p].value);
		param_set(&fit->params[p], was[p] + fmax(-1.5, fmin(1.5, fit->right[p])));
	}
	enum hk_status status = residuals_find(fit, fit->moved);
	double now = status == HK_OK ? fit_cost(fit, fit->moved) : INFINITY;
	*better_out = now < *cost;
	if (*better_out) {
		*cost = now;
		memcpy(fit->residuals, fit->moved, fit->nsamples * sizeof(double));
	} else {
		for (uint32_t p = 0; p < fit->nparams; p++)
			param_set(&fit->params[p], was[p]);
	}
	return status;
}

static enum hk_status fit_run(struct fit *fit)
{
	double damping = 0.1;
	enum hk_status status = residuals_find(fit, fit->residuals);
	double cost = status == HK_OK ? fit_cost(fit, fit->residuals) : 0;

	for (uint32_t round = 0; round < ROUNDS_MAX && status == HK_OK; round++) {
		double before = cost;
		bool better = false;

		status = jacobian_find(fit);
		for (uint32_t try = 0; try < 8 && status == HK_OK && !better; try++) {
			status = fit_step(fit, damping, &cost, &better);
			damping *= better ? 0.3 : 4;
		}
		if (!better || before - cost < 1e-4 * before)
			break;
		if (fit->opts && fit->opts->progress)
			fit->opts->progress(fit->opts->ctx, (double)(round + 1) / ROUNDS_MAX);
	}
	return status;
}

/* ---- the call ---- */

/* Four digits say all that a measurement knows. */
static double rounded(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.4g", value);
	return strtod(text, NULL);
}

static void params_round(const struct fit *fit)
{
	for (uint32_t p = 0; p < fit->nparams; p++) {
		double value = rounded(*fit->params[p].value);

		*fit->params[p].value = value;
		if (fit->params[p].same)
			*fit->params[p].same = value;
	}
}

/* Where the numbers come from, from now on. */
static void sources_set(struct hk_fabric *fabric, const char *prefix, uint32_t nsamples,
			double error)
{
	static const char *const names[] = { "send",	  "recv",	"flight",    "send-byte",
					     "recv-byte", "fresh-byte", "cold-byte", "ahead-byte",
					     "call",	  "step",	"copy",	     "reduce",
					     "switch" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char name[80];
		struct hk__constant *constant;

		snprintf(name, sizeof(name), "%s.%s", prefix, names[i]);
		constant = hk__constant_find(fabric, name);
		if (constant &&
		    (strcmp(names[i], "switch") != 0 || hk__fabric_cores_shared(fabric)))
			snprintf(constant->source, sizeof(constant->source),
				 "fitted to %u measured times, median error %.1f %%", nsamples,
				 100 * error);
	}
}

static void result_fill(struct fit *fit, struct hk_sim_fit_result *result_out)
{
	for (uint32_t i = 0; i < fit->nsamples; i++)
		fit->moved[i] = fabs(exp(fit->residuals[i]) - 1);
	qsort(fit->moved, fit->nsamples, sizeof(double), hk__sim_by_value);
	result_out->constants = fit->nparams;
	result_out->median_error = fit->moved[fit->nsamples / 2];
	result_out->p90_error = fit->moved[(size_t)(0.9 * (fit->nsamples - 1))];
}

enum hk_status hk_sim_fit(struct hk_fabric *fabric, const struct hk_sim_fit_what *what,
			  const struct hk_sim_sample *samples, uint32_t nsamples,
			  const struct hk_sim_opts *opts, struct hk_why *why,
			  struct hk_sim_fit_result *result_out)
{
	struct fit fit = {
		.fabric = fabric, .samples = samples, .nsamples = nsamples, .opts = opts, .why = why
	};
	const struct hk_alloc *alloc = fabric->alloc;
	size_t doubles;

	params_collect(&fit, what);
	if (!fit.nparams || !nsamples)
		return hk__why(why, HK_EINVAL,
			       "nothing to fit: the fabric has no such wire, or "
			       "there are no measurements");
	doubles = (size_t)nsamples * (2 + fit.nparams) + (size_t)fit.nparams * (fit.nparams + 1);
	double *mem = hk__mem_zalloc(alloc, doubles, sizeof(double));
	if (!mem)
		return hk__why(why, HK_ENOMEM, "no memory for %u measurements", nsamples);
	fit.residuals = mem;
	fit.moved = fit.residuals + nsamples;
	fit.jacobian = fit.moved + nsamples;
	fit.normal = fit.jacobian + (size_t)nsamples * fit.nparams;
	fit.right = fit.normal + (size_t)fit.nparams * fit.nparams;
	enum hk_status status = fit_run(&fit);
	if (status == HK_OK) {
		struct hk_sim_fit_result result = { .size = sizeof(result) };

		result_fill(&fit, &result);
		if (hk__result_copy(result_out, &result, sizeof(result)) != HK_OK)
			status = hk__why(why, HK_EINVAL,
					 "the size of a struct hk_sim_fit_result was not set");
		params_round(&fit);
		if (what->device)
			sources_set(fabric, "device", nsamples, result.median_error);
		if (what->wire)
			sources_set(fabric, what->wire, nsamples, result.median_error);
	}
	hk__mem_free(alloc, mem, doubles, sizeof(double));
	return status;
}
