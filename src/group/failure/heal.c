/* SPDX-License-Identifier: Apache-2.0 */
/* heal.c - going on after ranks have failed: revoke, agree, shrink. */
#include "group/group.h"

/* ---- giving a group up ---- */

static void revoke_job(void *ctx)
{
	struct hk_group *group = ctx;
	char line[HK_WHY_MAX];
	struct hk__text text;

	if (group->failed != HK_OK)
		return;
	hk__text_init(&text, line, sizeof(line));
	hk__group_describe(group, &text);
	hk__text_add(&text, "this rank called hk_group_revoke");
	hk__health_revoke(group, HK_EREVOKED, HK_NONE, line);
}

enum hk_status hk_group_revoke(struct hk_group *group)
{
	if (!group || hk__world_inherited(group->world))
		return HK_EINVAL;
	/* With a progress thread another one may be at the batch: it fails when it ends. */
	if (!group->world->threaded)
		hk__batch_drop(group);
	hk__world_run(group->world, revoke_job, group);
	return HK_OK;
}

/* ---- agreeing ---- */

struct agreement {
	struct hk__consent_spec spec;
	struct hk__consent *consent;
	enum hk_status status;
	uint64_t context; /* of the group to be made; 0: none */
};

static void agree_begin(void *ctx)
{
	struct agreement *agreement = ctx;

	agreement->status = hk__consent_start(&agreement->spec, &agreement->consent);
}

static enum hk_status agree_late(struct hk_group *group, struct agreement *agreement)
{
	char line[HK_WHY_MAX];
	struct hk__text text;

	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text, "rank %u: agreement number %u not reached in %.3g s: ", group->rank,
		     agreement->spec.number, (double)agreement->spec.timeout_ns / 1e9);
	hk__consent_describe(agreement->consent, &text);
	hk__consent_give_up(agreement->consent, HK_ETIMEDOUT);
	return hk__group_refuse(group, HK_ETIMEDOUT, "%s", line);
}

/* Nobody here looks at it any more. */
static void agreement_end(struct agreement *agreement)
{
	struct hk__world *world = agreement->spec.world;

	hk__world_lock(world);
	hk__consent_release(agreement->consent);
	hk__world_unlock(world);
}

/* agreement->spec has value, timeout_ns and late_ns. HK_OK: the caller ends it. */
static enum hk_status agree_await(struct hk_group *group, struct agreement *agreement)
{
	struct hk__world *world = group->world;
	struct hk__consent_spec *spec = &agreement->spec;

	group->refused = true; /* if it fails: not of what the group failed of */
	spec->world = world;
	spec->id = hk__group_id(group);
	spec->rank = group->rank;
	spec->n = group->n;
	spec->ranks = group->ranks;
	spec->number = group->agreements++;
	spec->silence_ns = world->silence_ns;
	hk__world_run(world, agree_begin, agreement);
	if (agreement->status != HK_OK)
		return hk__group_refuse(group, agreement->status, "no memory to agree");
	hk__world_lock(world);
	enum hk_status status = hk__world_await(world, hk__consent_status(agreement->consent),
						agreement->spec.timeout_ns);
	if (status == HK_ETIMEDOUT)
		status = agree_late(group, agreement);
	else if (status == HK_OK)
		status = *hk__consent_status(agreement->consent);
	hk__world_unlock(world);
	if (status == HK_EPEER)
		hk__group_refuse(group, status, "%s", hk__consent_why(agreement->consent));
	if (status != HK_OK)
		agreement_end(agreement);
	group->refused = status != HK_OK;
	return status;
}

static enum hk_status agree(struct hk_group *group, uint64_t value, const struct hk_opts *given,
			    struct agreement *agreement)
{
	struct hk_opts opts = HK_OPTS_INIT;

	*agreement = (struct agreement){ .spec = { .value = value } };
	group->refused = true; /* if it fails: not of what the group failed of */
	if (group->batching && hk__group_failed(group) != HK_OK)
		hk__batch_drop(group); /* nothing of it will ever begin */
	if (given && hk__opts_copy(&opts, sizeof(opts), given) != HK_OK)
		return hk__group_refuse(
			group, HK_EINVAL,
			"options of an unknown size or version: initialize them with HK_OPTS_INIT");
	if (group->batching)
		return hk__group_refuse(group, HK_EINVAL, "an agreement inside a batch");
	agreement->spec.timeout_ns = opts.timeout_ns ? opts.timeout_ns : group->timeout_ns;
	return agree_await(group, agreement);
}

/* What was agreed on is known from now on: who is out is lost, and who is in is not. */
static void agree_learn(void *ctx)
{
	struct agreement *agreement = ctx;
	struct hk__world *world = agreement->spec.world;
	uint64_t era = hk__context_clock(agreement->context);

	for (uint32_t r = 0; r < agreement->spec.n; r++) {
		uint32_t rank = agreement->spec.ranks ? agreement->spec.ranks[r] : r;

		if (!hk__consent_has(agreement->consent, r))
			hk__health_exclude(world, rank, era);
		else
			hk__health_readmit(world, rank, era);
	}
}

enum hk_status hk_group_agree(struct hk_group *group, uint64_t *value, const struct hk_opts *opts)
{
	struct agreement agreement;

	if (!group || hk__world_inherited(group->world))
		return HK_EINVAL;
	enum hk_status status = agree(group, value ? *value : 0, opts, &agreement);
	if (status != HK_OK)
		return status;
	if (value)
		*value = hk__consent_value(agreement.consent);
	hk__world_run(group->world, agree_learn, &agreement);
	agreement_end(&agreement);
	return HK_OK;
}

enum hk_status hk__group_consent(struct hk_group *group, uint64_t *value, uint64_t timeout_ns,
				 uint64_t late_ns)
{
	struct agreement agreement = {
		.spec = { .value = *value, .timeout_ns = timeout_ns, .late_ns = late_ns },
	};
	enum hk_status status = agree_await(group, &agreement);

	if (status != HK_OK)
		return status;
	*value = hk__consent_value(agreement.consent);
	hk__world_run(group->world, agree_learn, &agreement);
	agreement_end(&agreement);
	return HK_OK;
}

/* ---- a group of those who are left ---- */

static enum hk_status shrink_make(struct hk_group *group, const struct agreement *agreement,
				  struct hk_group **group_out)
{
	uint32_t n = 0, rank = 0;

	for (uint32_t r = 0; r < group->n; r++)
		n += hk__consent_has(agreement->consent, r);
	uint32_t *ranks = hk__mem_zalloc(group->alloc, n, sizeof(uint32_t));
	if (!ranks)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a group of %u", n);
	for (uint32_t r = 0, at = 0; r < group->n; r++) {
		if (!hk__consent_has(agreement->consent, r))
			continue;
		if (r == group->rank)
			rank = at;
		ranks[at++] = hk__chans_rank(&group->chans, r);
	}
	return hk__group_among(group, ranks, n, rank, agreement->context, group_out);
}

enum hk_status hk_group_shrink(struct hk_group *group, const struct hk_opts *opts,
			       struct hk_group **group_out)
{
	struct agreement agreement;
	uint64_t stamp;

	if (!group || !group_out || hk__world_inherited(group->world))
		return HK_EINVAL;
	*group_out = NULL;
	enum hk_status status = hk__stamp_make(group, &stamp);
	/* The least of complements: the latest stamp of all. */
	if (status == HK_OK)
		status = agree(group, ~stamp, opts, &agreement);
	if (status != HK_OK)
		return status;
	agreement.context = hk__stamp_context(group->world, ~hk__consent_value(agreement.consent));
	hk__world_run(group->world, agree_learn, &agreement);
	status = shrink_make(group, &agreement, group_out);
	agreement_end(&agreement);
	return status;
}

/* ---- who is gone ---- */

struct lost {
	const struct hk_group *group;
	uint32_t *ranks;
	uint32_t max;
	uint32_t count;
};

static void lost_job(void *ctx)
{
	struct lost *lost = ctx;

	for (uint32_t r = 0; r < lost->group->n; r++) {
		if (r == lost->group->rank || hk__health_of(lost->group, r) == HK__PEER_OK)
			continue;
		if (lost->count < lost->max)
			lost->ranks[lost->count] = r;
		lost->count++;
	}
}

uint32_t hk_group_lost(const struct hk_group *group, uint32_t *ranks_out, uint32_t max)
{
	struct lost lost = { group, ranks_out, ranks_out ? max : 0, 0 };

	if (!hk__world_inherited(group->world))
		hk__world_run(group->world, lost_job, &lost);
	return lost.count;
}
