/* SPDX-License-Identifier: Apache-2.0 */
/* sim_input.c - what can go wrong in a simulation, and what else goes on, as it is written. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* ---- parts of a fault, separated by colons ---- */

#define FAULT_PARTS 4

static bool part_factor(const char *text, double min, double *factor_out)
{
	char copy[32];
	size_t len = strlen(text);

	if (len == 0 || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len + 1);
	if (copy[len - 1] == 'x')
		copy[len - 1] = '\0';
	return cli_parse_real(copy, min, 1e9, factor_out);
}

/* "500ns", "20us", "1.5ms", "1s". */
static bool part_time(const char *text, double *ns_out)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	double value = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].unit) == 0) {
			*ns_out = value * units[i].ns;
			return value <= 1e9;
		}
	return false;
}

/* "nic.out" and "5" as "nic.out:5". */
static bool part_link(struct sim_fault *fault, const char *kind, const char *which)
{
	uint32_t number;

	if (!*kind || !cli_parse_number(which, 0, UINT32_MAX, &number))
		return false;
	int len = snprintf(fault->link, sizeof(fault->link), "%s:%u", kind, number);
	return len > 0 && (size_t)len < sizeof(fault->link);
}

/* clang-format off */
static const struct fault_form {
	const char *name;
	enum hk_sim_fault_kind kind;
	uint32_t parts;
	const char *form;
} fault_forms[] = {
	{ "slow-rank", HK_SIM_SLOW_RANK, 2, "slow-rank=RANK:FACTORx" },
	{ "late-rank", HK_SIM_LATE_RANK, 2, "late-rank=RANK:TIME, such as 5:1ms" },
	{ "slow-link", HK_SIM_SLOW_LINK, 3, "slow-link=KIND:NUMBER:FACTORx, such as nic.out:5:4x" },
	{ "lossy-link", HK_SIM_LOSSY_LINK, 4,
	  "lossy-link=KIND:NUMBER:PROBABILITY:TIME, such as nic.out:5:0.001:1ms" },
	{ "dead-link", HK_SIM_DEAD_LINK, 2, "dead-link=KIND:NUMBER, such as leaf.up:3" },
};
/* clang-format on */

static bool fault_take(struct sim_fault *fault, const struct fault_form *form,
		       char *parts[FAULT_PARTS])
{
	struct hk_sim_fault *plain = &fault->fault;

	*plain = (struct hk_sim_fault){ .kind = form->kind, .rank = HK_NONE };
	switch (form->kind) {
	case HK_SIM_SLOW_RANK:
		return cli_parse_number(parts[0], 0, HK_RANKS_MAX - 1, &plain->rank) &&
		       part_factor(parts[1], 1, &plain->factor);
	case HK_SIM_LATE_RANK:
		return cli_parse_number(parts[0], 0, HK_RANKS_MAX - 1, &plain->rank) &&
		       part_time(parts[1], &plain->ns);
	case HK_SIM_SLOW_LINK:
		return part_link(fault, parts[0], parts[1]) &&
		       part_factor(parts[2], 1, &plain->factor);
	case HK_SIM_LOSSY_LINK:
		return part_link(fault, parts[0], parts[1]) &&
		       cli_parse_real(parts[2], 0, 1, &plain->factor) && plain->factor < 1 &&
		       part_time(parts[3], &plain->ns);
	default:
		return part_link(fault, parts[0], parts[1]);
	}
}

static bool fault_read(struct sim_run *run, const char *text)
{
	char none[] = "", copy[128], *parts[FAULT_PARTS] = { none, none, none, none };
	const char *values = strchr(text, '=');
	size_t nforms = sizeof(fault_forms) / sizeof(fault_forms[0]);
	uint32_t nparts = 0;

	for (size_t i = 0; values && i < nforms; i++) {
		const struct fault_form *form = &fault_forms[i];
		size_t len = (size_t)(values - text);

		if (strlen(form->name) != len || strncmp(form->name, text, len) != 0)
			continue;
		snprintf(copy, sizeof(copy), "%s", values + 1);
		for (char *at = copy; at && nparts < FAULT_PARTS; nparts++) {
			parts[nparts] = at;
			at = strchr(at, ':');
			if (at)
				*at++ = '\0';
			else
				values = NULL; /* all of it was taken */
		}
		struct sim_fault *fault = &run->faults[run->nfaults];
		if (values || nparts != form->parts || !fault_take(fault, form, parts)) {
			cli_wrong("sim", "--fault takes %s; not '%s'", form->form, text);
			return false;
		}
		run->nfaults++;
		return true;
	}
	cli_wrong("sim",
		  "'%s' is not a fault; choose one of slow-rank=, late-rank=, slow-link=, "
		  "lossy-link=, dead-link=",
		  text);
	return false;
}

bool sim_read_faults(struct sim_run *run)
{
	const struct cli_sim_args *sim = &run->args->sim;

	if (sim->nfaults > SIM_FAULTS_MAX) {
		cli_wrong("sim", "%zu faults; up to %u can be simulated", sim->nfaults,
			  SIM_FAULTS_MAX);
		return false;
	}
	for (size_t i = 0; i < sim->nfaults; i++) {
		if (!fault_read(run, sim->faults[i]))
			return false;
		run->plain[i] = run->faults[i].fault;
		run->plain[i].link = run->faults[i].link[0] ? run->faults[i].link : NULL;
		if (run->plain[i].rank != HK_NONE && run->plain[i].rank >= run->n) {
			cli_wrong("sim", "--fault %s: there are %u ranks (0 to %u)", sim->faults[i],
				  run->n, run->n - 1);
			return false;
		}
	}
	return true;
}

bool sim_read_also(const char *text, struct sim_job *job)
{
	const char *colon = strchr(text, ':');
	char name[32];
	uint64_t bytes;

	if (!colon || (size_t)(colon - text) >= sizeof(name) ||
	    !cli_parse_bytes(colon + 1, &bytes)) {
		cli_wrong("sim", "--also takes COLLECTIVE:SIZE, such as alltoall:64M; not '%s'",
			  text);
		return false;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
	job->bytes = (double)bytes;
	return cli_parse_coll("sim", name, &job->coll);
}
