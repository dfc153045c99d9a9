/* SPDX-License-Identifier: Apache-2.0 */
/* heal.c - see heal.h. */
#include "swarm/heal.h"

#include "group/op.h"

/* ---- one operation ---- */

static void *buffer(struct bed_seat *seat, uint64_t bytes)
{
	return hk__mem_zalloc(&seat->alloc, bytes, 1);
}

static void counts_fill(struct op_run *run, const struct want *want, uint32_t rank)
{
	for (uint32_t r = 0; want->v && r < want->n; r++) {
		run->counts[r] = want_count(want, r);
		run->in_counts[r] = want_count_between(want, rank, r);
		run->out_counts[r] = want_count_between(want, r, rank);
	}
}

enum hk_status heal_do(struct bed_seat *seat, struct hk_group *group, const struct heal_op *op,
		       const struct hk_opts *given)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct op_run run = { .op = { .want = op->want } };
	const struct want *want = &run.op.want;
	uint32_t rank = hk_group_rank(group);
	uint64_t timeout = seat->bed->spec.timeout_ns;

	run.op.want.n = hk_group_size(group);
	run.op.want.root %= run.op.want.n;
	size_t size = hk_type_size(want->type);
	uint64_t in = want_in_len(want, rank) * size, out = want_out_len(want, rank) * size;
	void *right = buffer(seat, out);
	run.in = buffer(seat, in);
	run.out = buffer(seat, out);
	counts_fill(&run, want, rank);
	want_input(want, rank, run.in);
	want_output(want, rank, right);
	opts.algo = op->algo;
	if (given && given->timeout_ns) {
		opts.timeout_ns = given->timeout_ns;
		timeout = given->timeout_ns;
	}
	bed_call(seat);
	enum hk_status status = op_call(group, &run, &opts);
	bed_say(seat->bed, seat->rank, "%s of %u: %s: %s", hk_coll_name(want->coll), want->n,
		hk_status_name(status), status == HK_OK ? "" : hk_group_why(group));
	bed_called(seat, hk_coll_name(want->coll), timeout);
	if (status == HK_OK && out && !op->unsure)
		BED_CHECK(seat, memcmp(run.out, right, out) == 0,
			  "%s among %u succeeded, and is wrong", hk_coll_name(want->coll), want->n);
	hk__mem_free(&seat->alloc, run.in, in, 1);
	hk__mem_free(&seat->alloc, run.out, out, 1);
	hk__mem_free(&seat->alloc, right, out, 1);
	return status;
}

/* ---- a rank ---- */

static uint32_t members_of(const struct hk_group *group)
{
	uint32_t members = 0;

	for (uint32_t r = 0; r < group->n; r++)
		members |= 1u << hk__chans_rank(&group->chans, r);
	return members;
}

/* Shrinks, tries, and asks whether it went well with all: true when it did. */
static bool heal_round(struct bed_seat *seat, struct heal *heal, struct hk_group *group,
		       struct hk_group **next_out)
{
	struct heal_seen *seen = &heal->seen[seat->rank];
	struct hk_opts opts = HK_OPTS_INIT;
	struct heal_op op = { .want = { .coll = HK_COLL_ALLREDUCE,
					.type = HK_TYPE_INT32,
					.op = HK_REDOP_SUM,
					.count = 9,
					.seed = seen->rounds + 77 },
			      .algo = "recursive-doubling",
			      .unsure = heal->op.unsure };
	uint64_t timeout =
		heal->shrink_timeout_ns ? heal->shrink_timeout_ns : seat->bed->spec.timeout_ns;

	opts.timeout_ns = timeout;
	bed_call(seat);
	enum hk_status status = hk_group_shrink(group, &opts, next_out);
	bed_called(seat, "shrink", timeout);
	seen->shrunk[seen->rounds] = status;
	if (status == HK_OK)
		seen->members[seen->rounds] = members_of(*next_out);
	else
		snprintf(seen->why, sizeof(seen->why), "%s", hk_group_why(group));
	bed_say(seat->bed, seat->rank, "shrink %u: %s: members 0x%x %s", seen->rounds,
		hk_status_name(status), seen->members[seen->rounds],
		status == HK_OK ? "" : seen->why);
	seen->rounds++;
	if (status != HK_OK)
		return false;
	uint64_t well = heal_do(seat, *next_out, &op, NULL) == HK_OK;
	bed_call(seat);
	status = hk_group_agree(*next_out, &well, &opts);
	bed_say(seat->bed, seat->rank, "agree: %s: %d %s", hk_status_name(status), (int)well,
		status == HK_OK ? "" : hk_group_why(*next_out));
	bed_called(seat, "agree", timeout);
	if (status != HK_OK)
		snprintf(seen->why, sizeof(seen->why), "agree: %s", hk_group_why(*next_out));
	return status == HK_OK && well;
}

void heal_shrink(struct bed_seat *seat, struct heal *heal)
{
	struct heal_seen *seen = &heal->seen[seat->rank];
	struct hk_group *groups[HEAL_ROUNDS_MAX + 1] = { seat->group };
	uint32_t made = 1;

	seen->shrank = true;
	while (!seen->well && made <= HEAL_ROUNDS_MAX) {
		seen->well = heal_round(seat, heal, groups[made - 1], &groups[made]);
		if (!groups[made])
			break;
		made++;
	}
	if (seen->well && heal->linger_ns)
		hk__simnet_sleep(seat->bed->simnet, heal->linger_ns);
	while (made > 0) {
		bed_call(seat);
		hk_group_free(groups[--made]);
		bed_called(seat, "free", seat->bed->spec.timeout_ns);
	}
	seen->over = true;
}

void heal_main(struct bed_seat *seat, void *ctx)
{
	struct heal *heal = ctx;
	struct heal_seen *seen = &heal->seen[seat->rank];

	seen->called = true;
	seen->status = heal_do(seat, seat->group, &heal->op, NULL);
	if (seen->status != HK_OK)
		snprintf(seen->why, sizeof(seen->why), "%s", hk_group_why(seat->group));
	heal_shrink(seat, heal);
}

/* ---- all of them ---- */

static uint32_t killed_of(const struct bed *bed)
{
	uint32_t killed = 0;

	for (uint32_t r = 0; r < bed->spec.n; r++)
		killed |= (uint32_t)bed_killed(bed, r) << r;
	return killed;
}

/* One that failed says who is to blame. */
static void status_check(const struct bed *bed, const struct heal *heal, uint32_t rank,
			 uint32_t killed)
{
	const struct heal_seen *seen = &heal->seen[rank];
	bool named = false;
	char name[32];

	if (seen->status == HK_OK)
		return;
	for (uint32_t r = 0; r < bed->spec.n; r++) {
		snprintf(name, sizeof(name), "rank %u (", r);
		named |= (killed >> r & 1) && strstr(seen->why, name);
	}
	if (seen->status != HK_EPEER || !named)
		bed_fail(bed, rank, "%s, killed 0x%x: %s", hk_status_name(seen->status), killed,
			 seen->why);
}

void heal_check(const struct bed *bed, const struct heal *heal)
{
	uint32_t killed = killed_of(bed), first = HK_NONE;

	for (uint32_t r = 0; r < bed->spec.n; r++) {
		const struct heal_seen *seen = &heal->seen[r];

		if (killed >> r & 1)
			continue;
		first = first == HK_NONE ? r : first;
		if (!seen->over || !seen->well)
			bed_fail(bed, r, "did not get through: %s", seen->why);
		status_check(bed, heal, r, killed);
		if (seen->rounds != heal->seen[first].rounds)
			bed_fail(bed, r, "shrank %u times, rank %u %u times", seen->rounds, first,
				 heal->seen[first].rounds);
		for (uint32_t i = 0; i < seen->rounds; i++) {
			uint32_t members = seen->members[i];

			if (members != heal->seen[first].members[i])
				bed_fail(bed, r, "round %u: members 0x%x, of rank %u 0x%x", i,
					 members, first, heal->seen[first].members[i]);
			if (~members & ~killed & ((1u << bed->spec.n) - 1))
				bed_fail(bed, r, "round %u: a living rank is not in 0x%x", i,
					 members);
			for (uint32_t k = 0; k < bed->spec.n; k++)
				if ((killed & members) >> k & 1 && !heal->seen[k].shrank)
					bed_fail(bed, r, "round %u: rank %u was dead and is in", i,
						 k);
		}
	}
}

void heal_check_safe(const struct bed *bed, const struct heal *heal)
{
	for (uint32_t i = 0; i < HEAL_ROUNDS_MAX; i++) {
		uint32_t first = HK_NONE;

		for (uint32_t r = 0; r < bed->spec.n; r++) {
			const struct heal_seen *seen = &heal->seen[r];

			if (bed_killed(bed, r) || i >= seen->rounds || seen->shrunk[i] != HK_OK)
				continue;
			first = first == HK_NONE ? r : first;
			if (seen->members[i] != heal->seen[first].members[i])
				bed_fail(bed, r, "round %u: members 0x%x, of rank %u 0x%x", i,
					 seen->members[i], first, heal->seen[first].members[i]);
			if (!(seen->members[i] >> r & 1))
				bed_fail(bed, r, "round %u: is not among its members 0x%x", i,
					 seen->members[i]);
		}
	}
	for (uint32_t r = 0; r < bed->spec.n; r++)
		if (!bed_killed(bed, r) && !heal->seen[r].over)
			bed_fail(bed, r, "did not end");
}
