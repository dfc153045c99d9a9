/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.c - what no plan can beat.
 *
 * Bytes: ranks that lie side by side (one, a node, what is below a leaf switch)
 * have to let so many bytes out, or in, whatever the plan; they can do so only
 * over the links that lead out. Sums may be made of anything inside.
 * Delay: something of the farthest rank has to come here, by one message that
 * crosses the widest border at least.
 */
#include "sim/sim.h"

#include <math.h>

struct cut {
	uint32_t ranks;	 /* of a group */
	uint32_t groups; /* whole ones */
	double out, in;	 /* bytes/ns */
};

/* Bytes that the busiest group has to let out or in, of V = 1. */
static double coll_share(const struct hk_plan *plan, const struct cut *cut)
{
	double n = plan->n, s = cut->ranks, k = n / s;

	switch (plan->coll) {
	case HK_COLL_ALLREDUCE:
		/* Each element is sent k - 1 times to be added and k - 1 times as a sum. */
		return fmax(1, n == s * cut->groups ? 2 * (k - 1) / k : 1);
	case HK_COLL_ALLGATHER:
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_GATHER:
	case HK_COLL_SCATTER:
		return (n - s) / n;
	case HK_COLL_ALLTOALL:
		return s * (n - s) / n;
	case HK_COLL_BROADCAST:
	case HK_COLL_REDUCE:
		return 1;
	case HK_COLL_BARRIER:
	case HK_COLL_SENDRECV:
	case HK_COLL_COUNT:
		break;
	}
	return 0;
}

/* Kinds of links, as bits, that paths from or to the first group cross near it. */
struct near_kinds {
	uint64_t each[64]; /* sets of kinds, of paths that differ */
	uint32_t count;
};

static void near_note(struct near_kinds *near, uint64_t set)
{
	for (uint32_t i = 0; i < near->count; i++)
		if (near->each[i] == set)
			return;
	if (near->count < 64)
		near->each[near->count++] = set;
}

/* Whether the owner of a link lies inside the first `ranks` ranks. */
static bool link_is_near(const struct hk__link_kind *kind, uint64_t link, uint32_t ranks)
{
	uint64_t owner = (link - kind->first) / kind->per_owner;

	return kind->owner_ranks && kind->first_rank + (owner + 1) * kind->owner_ranks <= ranks;
}

/* All links of a kind that belong to the first `ranks` ranks, together. */
static double kind_speed(const struct hk__link_kind *kind, uint32_t ranks)
{
	uint32_t owners = ranks / kind->owner_ranks;

	return kind->bytes_per_ns * kind->per_owner * owners;
}

/*
 * A cut is a choice of one near kind for every path; the cheapest for each set of
 * kinds, counted once. INFINITY where a path has no link near the group.
 */
static double near_speed(const struct sim *sim, const struct near_kinds *near, uint32_t ranks)
{
	uint64_t chosen = 0;
	double sum = 0;

	for (uint32_t i = 0; i < near->count; i++) {
		uint32_t best = HK_NONE;

		for (uint32_t k = 0; k < sim->fabric->nkinds; k++)
			if ((near->each[i] >> k & 1) &&
			    (best == HK_NONE ||
			     kind_speed(&sim->fabric->kinds[k], ranks) <
				     kind_speed(&sim->fabric->kinds[best], ranks)))
				best = k;
		if (best == HK_NONE)
			return INFINITY;
		if (!(chosen >> best & 1))
			sum += kind_speed(&sim->fabric->kinds[best], ranks);
		chosen |= UINT64_C(1) << best;
	}
	return near->count && near->count < 64 ? sum : INFINITY;
}

static uint64_t path_near(const struct sim *sim, uint32_t from, uint32_t to, uint32_t ranks)
{
	struct hk__path path;
	uint64_t set = 0;

	hk__fabric_path(sim->fabric, from, to, &path);
	for (uint32_t i = 0; i < path.nlinks; i++) {
		const struct hk__link_kind *kind = hk__fabric_kind(sim->fabric, path.links[i]);

		if (link_is_near(kind, path.links[i], ranks))
			set |= UINT64_C(1) << (kind - sim->fabric->kinds);
	}
	return set;
}

/* Paths from the first rank of the group to others: all where few, else at growing distances. */
static void cut_speeds(const struct sim *sim, uint32_t n, struct cut *cut)
{
	struct near_kinds out = { .count = 0 }, in = { .count = 0 };
	uint32_t step = 1;

	for (uint32_t peer = cut->ranks; peer < n; peer += step) {
		near_note(&out, path_near(sim, 0, peer, cut->ranks));
		near_note(&in, path_near(sim, peer, 0, cut->ranks));
		if (peer >= 4096 + cut->ranks)
			step = hk__max(1, peer / 64);
	}
	near_note(&out, path_near(sim, 0, n - 1, cut->ranks));
	near_note(&in, path_near(sim, n - 1, 0, cut->ranks));
	cut->out = near_speed(sim, &out, cut->ranks);
	cut->in = near_speed(sim, &in, cut->ranks);
}

/* Bytes on a link for a byte of data, at least. */
static double least_overhead(const struct sim *sim)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < sim->fabric->nwires; i++)
		least = fmin(least, fmax(sim->fabric->wires[i].overhead, 1));
	return sim->fabric->nwires ? least : 1;
}

static double cut_time(const struct sim *sim, const struct sim_job *job, const struct cut *cut)
{
	double bytes = job->bytes * coll_share(job->plan, cut) * least_overhead(sim);
	bool in_only = job->plan->coll == HK_COLL_ALLGATHER || job->plan->coll == HK_COLL_BROADCAST;
	bool out_only =
		job->plan->coll == HK_COLL_REDUCESCATTER || job->plan->coll == HK_COLL_REDUCE;

	/* Gather and scatter are bound where the root is: the groups are alike. */
	if (job->plan->coll == HK_COLL_GATHER || in_only)
		return bytes / cut->in;
	if (job->plan->coll == HK_COLL_SCATTER || out_only)
		return bytes / cut->out;
	return bytes / fmin(cut->out, cut->in);
}

static double curve_least(const struct hk__curve *curve)
{
	double least = curve->npoints ? INFINITY : 0;

	for (uint32_t i = 0; i < curve->npoints; i++)
		least = fmin(least, curve->points[i].value);
	return least;
}

/* Where a rank does one thing at a time, it touches all that it lets out or in. */
static double ends_time(const struct sim *sim, const struct sim_job *job)
{
	struct cut cut = { .ranks = 1, .groups = job->plan->n };
	double least = INFINITY;

	for (uint32_t i = 0; i < sim->fabric->nwires; i++)
		least = fmin(least, fmin(curve_least(&sim->fabric->wires[i].send_byte_ns),
					 curve_least(&sim->fabric->wires[i].recv_byte_ns)));
	if (!hk__fabric_device(sim->fabric, 0)->serial || job->plan->n == 1 || isinf(least))
		return 0;
	return job->bytes * coll_share(job->plan, &cut) * least;
}

/* What a message of nothing takes from one device to another, ends included. */
static double message_least(const struct sim *sim, const struct sim_job *job, uint32_t from,
			    uint32_t to)
{
	const struct hk__device *a = hk__fabric_device(sim->fabric, from);
	const struct hk__device *b = hk__fabric_device(sim->fabric, to);
	struct hk__path path;

	hk__fabric_path(sim->fabric, from, to, &path);
	const struct hk__wire *wire = &sim->fabric->wires[path.wire];
	/* A put is received by nobody. */
	double received =
		job->plan->signals == HK_SIGNALS_NONE ? hk__curve_at(&wire->recv_ns, 0) : 0;
	return a->step_ns + hk__curve_at(&wire->send_ns, 0) + path.delay_ns +
	       hk__curve_at(&wire->flight_ns, 0) + b->step_ns + received + a->call_ns / 2 +
	       b->call_ns / 2;
}

static uint32_t device_of(const struct sim_job *job, uint32_t rank)
{
	return job->devices ? job->devices[rank] : rank;
}

/* A batch: each of its messages goes straight. */
static void bound_batch(const struct sim *sim, const struct sim_job *job, struct sim_bound *bound)
{
	const struct hk__batch *batch = job->plan->batch;

	if (!batch)
		return;
	for (size_t i = 0; i < batch->nmsgs && i < 4096; i++) {
		uint32_t from = device_of(job, batch->msgs[i].src);
		uint32_t to = device_of(job, batch->msgs[i].dst);
		struct hk__path path;

		hk__fabric_path(sim->fabric, from, to, &path);
		bound->delay_ns = fmax(bound->delay_ns, message_least(sim, job, from, to));
		for (uint32_t k = 0; k < path.nlinks; k++)
			bound->bytes_ns = fmax(bound->bytes_ns,
					       job->bytes / hk__fabric_link_speed(sim->fabric,
										  path.links[k]));
	}
}

/* Groups of ranks that the kinds of links suggest. */
static void bound_cuts(const struct sim *sim, const struct sim_job *job, struct sim_bound *bound)
{
	uint32_t n = job->plan->n;

	for (uint32_t i = 0; i <= sim->fabric->nkinds; i++) {
		struct cut cut = { .ranks = i < sim->fabric->nkinds
						    ? sim->fabric->kinds[i].owner_ranks
						    : sim->fabric->node_kinds[0].ranks };

		if (cut.ranks == 0 || cut.ranks >= n || sim->fabric->nnode_kinds != 1)
			continue;
		cut.groups = n / cut.ranks;
		cut_speeds(sim, n, &cut);
		bound->bytes_ns = fmax(bound->bytes_ns, cut_time(sim, job, &cut));
		/* Ranks at the same place of groups are the nearest that two groups have. */
		double across = fmin(message_least(sim, job, 0, cut.ranks),
				     message_least(sim, job, cut.ranks - 1, cut.ranks));
		bound->delay_ns = fmax(bound->delay_ns, across);
	}
}

void hk__sim_bound(const struct sim *sim, const struct sim_job *job, struct sim_bound *bound_out)
{
	struct sim_bound bound = { 0, 0 };

	if (job->plan->coll == HK_COLL_SENDRECV)
		bound_batch(sim, job, &bound);
	else if (!job->devices && job->plan->n > 1)
		bound_cuts(sim, job, &bound);
	if (job->plan->coll != HK_COLL_SENDRECV)
		bound.bytes_ns = fmax(bound.bytes_ns, ends_time(sim, job));
	*bound_out = bound;
}
