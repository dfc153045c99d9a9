/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - what is slow, late, lossy or dead. */
#include "sim/sim.h"

#define FAULT_NEAR 16u /* devices to both sides that may pass messages on */

static const char *fault_wrong(const struct hk_sim_fault *fault)
{
	switch (fault->kind) {
	case HK_SIM_SLOW_RANK:
	case HK_SIM_SLOW_LINK:
		return fault->factor >= 1 && fault->factor < 1e12
			       ? NULL
			       : "the factor must be from 1 to 1e12";
	case HK_SIM_LATE_RANK:
		return fault->ns >= 0 && fault->ns < 1e18 ? NULL : "the delay must be 0 ns or more";
	case HK_SIM_LOSSY_LINK:
		if (!(fault->factor >= 0 && fault->factor < 1))
			return "the probability must be from 0 to below 1";
		return fault->ns >= 0 && fault->ns < 1e18
			       ? NULL
			       : "the time until a message is sent again must be 0 ns or more";
	case HK_SIM_DEAD_LINK:
		return NULL;
	}
	return "unknown kind of fault";
}

/* A bundle has one wire less; of one wire nothing is left. */
static double fault_speed(const struct sim *sim, const struct hk_sim_fault *fault, uint64_t link)
{
	const struct hk__link_kind *kind = hk__fabric_kind(sim->fabric, link);

	if (fault->kind == HK_SIM_SLOW_LINK)
		return 1 / fault->factor;
	if (fault->kind == HK_SIM_DEAD_LINK)
		return kind->width > 1 ? (kind->width - 1.0) / kind->width : 0;
	return 1;
}

static enum hk_status fault_add_link(struct sim *sim, const struct hk_sim_fault *fault)
{
	struct hk_why why = { "" };
	uint64_t link;

	if (!fault->link)
		return hk__sim_fail(sim, HK_EINVAL, "a fault of a link does not name the link");
	if (hk__fabric_link_find(sim->fabric, fault->link, &why, &link) != HK_OK)
		return hk__sim_fail(sim, HK_EINVAL, "%s", why.text);
	struct sim_link_fault *added = hk__array_push(&sim->link_faults);
	if (!added)
		return hk__sim_fail(sim, HK_ENOMEM, "no memory for faults");
	*added = (struct sim_link_fault){ .link = link, .factor = fault_speed(sim, fault, link) };
	if (fault->kind == HK_SIM_LOSSY_LINK) {
		added->loss = fault->factor;
		added->again_ns = fault->ns;
		sim->random = true;
	}
	return HK_OK;
}

static uint32_t most_ranks(const struct sim *sim)
{
	uint32_t most = 0;

	for (uint32_t j = 0; j < sim->njobs; j++)
		most = hk__max(most, sim->jobs[j].plan->n);
	return most;
}

enum hk_status hk__sim_faults(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->nfaults; i++) {
		const struct hk_sim_fault *fault = &sim->faults[i];
		const char *wrong = fault_wrong(fault);
		enum hk_status status = HK_OK;

		if (wrong)
			return hk__sim_fail(sim, HK_EINVAL, "fault %u: %s", i, wrong);
		if (fault->kind == HK_SIM_SLOW_RANK || fault->kind == HK_SIM_LATE_RANK) {
			if (fault->rank >= most_ranks(sim))
				return hk__sim_fail(sim, HK_EINVAL,
						    "fault %u: there is no rank %u; there are %u",
						    i, fault->rank, most_ranks(sim));
		} else {
			status = fault_add_link(sim, fault);
		}
		if (status != HK_OK)
			return status;
	}
	return HK_OK;
}

/* Faults of a link, if any: few, and asked for when a link is first met. */
const struct sim_link_fault *hk__sim_link_fault(const struct sim *sim, uint64_t link)
{
	for (size_t i = 0; i < sim->link_faults.count; i++) {
		const struct sim_link_fault *fault = hk__array_at(&sim->link_faults, i);

		if (fault->link == link)
			return fault;
	}
	return NULL;
}

double hk__sim_late_ns(const struct sim *sim, uint32_t job, uint32_t rank)
{
	double late = sim->jobs[job].start_ns;

	for (uint32_t i = 0; i < sim->nfaults; i++)
		if (sim->faults[i].kind == HK_SIM_LATE_RANK && sim->faults[i].rank == rank)
			late += sim->faults[i].ns;
	return late;
}

double hk__sim_slowness(const struct sim *sim, uint32_t rank)
{
	double slow = 1;

	for (uint32_t i = 0; i < sim->nfaults; i++)
		if (sim->faults[i].kind == HK_SIM_SLOW_RANK && sim->faults[i].rank == rank)
			slow *= sim->faults[i].factor;
	return slow;
}

/* ---- ways round what is dead ---- */

static bool path_is_dead(const struct sim *sim, const struct hk__path *path)
{
	for (uint32_t i = 0; i < path->nlinks; i++) {
		const struct sim_link_fault *fault = hk__sim_link_fault(sim, path->links[i]);

		if (fault && !(fault->factor > 0))
			return true;
	}
	return false;
}

/* By way of another device; false where that is dead as well. */
static bool path_via(const struct sim *sim, uint32_t from, uint32_t via, uint32_t to,
		     struct hk__path *path_out)
{
	struct hk__path first, second;

	hk__fabric_path(sim->fabric, from, via, &first);
	hk__fabric_path(sim->fabric, via, to, &second);
	if (first.nlinks + second.nlinks > HK__PATH_MAX || path_is_dead(sim, &first) ||
	    path_is_dead(sim, &second))
		return false;
	*path_out = first.delay_ns > second.delay_ns ? first : second; /* the wire of the longer */
	path_out->nlinks = 0;
	path_out->delay_ns = first.delay_ns + second.delay_ns;
	for (uint32_t i = 0; i < first.nlinks; i++)
		path_out->links[path_out->nlinks++] = first.links[i];
	for (uint32_t i = 0; i < second.nlinks; i++)
		path_out->links[path_out->nlinks++] = second.links[i];
	return true;
}

/* The way with the least delay by a device near one of the two ends. */
static bool path_detour(const struct sim *sim, uint32_t from, uint32_t to,
			struct hk__path *path_out)
{
	uint32_t ends[2] = { from, to };
	bool found = false;

	for (int e = 0; e < 2; e++) {
		uint32_t low = ends[e] > FAULT_NEAR ? ends[e] - FAULT_NEAR : 0;

		for (uint32_t via = low; via < sim->fabric->ranks && via <= ends[e] + FAULT_NEAR;
		     via++) {
			struct hk__path path;

			if (via == from || via == to || !path_via(sim, from, via, to, &path) ||
			    (found && path.delay_ns >= path_out->delay_ns))
				continue;
			*path_out = path;
			found = true;
		}
	}
	return found;
}

enum hk_status hk__sim_path(struct sim *sim, uint32_t from, uint32_t to, struct hk__path *path_out)
{
	hk__fabric_path(sim->fabric, from, to, path_out);
	if (sim->link_faults.count == 0 || !path_is_dead(sim, path_out) ||
	    path_detour(sim, from, to, path_out))
		return HK_OK;
	return hk__sim_fail(sim, HK_EREFUSED, "no path from device %u to %u avoids the dead links",
			    from, to);
}
