/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.c - teams: groups of Hocket, with a table of their PEs in the world. Splits number
 * their PEs as the parent does, and all of the parent take part. A team whose PEs share
 * memory has words of the inner space for a barrier that is faster than its group's.
 */
#include "sma.h"

#include <stdlib.h>

static uint64_t slots_used[HK__SMA_SYNC_SLOTS / 64];

/* Whether loads and stores reach all of them. */
static bool near(const struct shmemx_team *team)
{
	for (uint32_t i = 0; i < team->n; i++) {
		if (!hk__sma.inner.peer[team->pes[i]])
			return false;
	}
	return true;
}

/* Collective over the team: the lowest slot that none of them uses. */
static enum hk_status slot_take(struct shmemx_team *team)
{
	enum {
		WORDS = HK__SMA_SYNC_SLOTS / 64
	};
	uint64_t open[WORDS + 1];
	enum hk_status status;

	pthread_mutex_lock(&hk__sma.lock);
	for (int i = 0; i < WORDS; i++)
		open[i] = ~slots_used[i];
	pthread_mutex_unlock(&hk__sma.lock);
	open[WORDS] = near(team);
	status = hk_allreduce(team->group, open, open, WORDS + 1, HK_TYPE_UINT64, HK_REDOP_BAND,
			      NULL);
	if (status != HK_OK || !open[WORDS])
		return status;
	for (uint32_t i = 0; i < WORDS; i++) {
		if (open[i] == 0)
			continue;
		team->slot = i * 64 + (uint32_t)__builtin_ctzll(open[i]);
		team->sync = hk__sma_inner()->sync[team->slot];
		pthread_mutex_lock(&hk__sma.lock);
		slots_used[i] |= UINT64_C(1) << (team->slot % 64);
		pthread_mutex_unlock(&hk__sma.lock);
		break;
	}
	return HK_OK;
}

static void slot_give(struct shmemx_team *team)
{
	if (!team->sync)
		return;
	pthread_mutex_lock(&hk__sma.lock);
	slots_used[team->slot / 64] &= ~(UINT64_C(1) << (team->slot % 64));
	pthread_mutex_unlock(&hk__sma.lock);
	team->sync = NULL;
}

static void pes_fill(struct shmemx_team *team)
{
	for (uint32_t i = 0; i < team->n; i++)
		team->pes[i] = i;
	if (team->group != hk__sma.group &&
	    hk_group_translate(team->group, team->pes, team->n, hk__sma.group, team->pes) != HK_OK)
		hk__sma_die("shmem_init", "a team's PEs: %s", hk_group_why(team->group));
}

/* Collective over the group, which the team then has. */
static enum hk_status team_fill(struct shmemx_team *team, struct hk_group *group)
{
	team->group = group;
	team->n = hk_group_size(group);
	team->me = hk_group_rank(group);
	team->pes = calloc(team->n, sizeof(*team->pes));
	if (!team->pes)
		return HK_ENOMEM;
	pes_fill(team);
	return slot_take(team);
}

/* The lowest PE that this one reaches by loads and stores; all it reaches name the same. */
static uint32_t color_near(void)
{
	for (uint32_t pe = 0; pe < hk__sma.n; pe++) {
		if (hk__sma.heap.peer[pe])
			return pe;
	}
	return hk__sma.me;
}

bool hk__sma_teams_begin(struct hk_why *why)
{
	struct hk_group *group;
	enum hk_status status = team_fill(&hk__sma.world, hk__sma.group);

	if (status == HK_OK) {
		hk__sma.plain.team = &hk__sma.world;
		hk__sma.plain.ctx = hk_group_ctx(hk__sma.group);
		status = hk_group_split(hk__sma.group, color_near(), hk__sma.me, &group);
	}
	if (status == HK_OK)
		status = team_fill(&hk__sma.shared, group);
	if (status != HK_OK)
		strncpy(why->text, hk_group_why(hk__sma.group), sizeof(why->text) - 1);
	return status == HK_OK;
}

static void contexts_free(struct shmemx_team *team)
{
	while (team->contexts) {
		struct shmemx_ctx *ctx = team->contexts;

		team->contexts = ctx->next;
		/* A private one is its creator's, who may yet destroy it. */
		if (ctx->options & SHMEM_CTX_PRIVATE && team != &hk__sma.world &&
		    team != &hk__sma.shared) {
			ctx->team = &hk__sma.world;
			ctx->next = hk__sma.world.contexts;
			hk__sma.world.contexts = ctx;
			continue;
		}
		hk_ctx_free(ctx->ctx);
		free(ctx);
	}
}

void hk__sma_teams_end(void)
{
	contexts_free(&hk__sma.shared);
	contexts_free(&hk__sma.world);
	hk_group_free(hk__sma.shared.group);
	free(hk__sma.shared.pes);
	free(hk__sma.world.pes);
	hk__sma.shared = hk__sma.world = (struct shmemx_team){ 0 };
	memset(slots_used, 0, sizeof(slots_used));
}

/* ---- barriers ---- */

void hk__sma_sync(struct shmemx_team *team, const char *call)
{
	struct hk__sma_set set = hk__sma_set_of_team(team);

	hk__sma_set_barrier(&set, call);
}

void hk__sma_barrier(const char *call)
{
	hk__sma_quiet(SHMEM_CTX_DEFAULT, call);
	hk__sma_sync(&hk__sma.world, call);
}

FN(void, shmem_barrier_all, (void))
{
	hk__sma_barrier("shmem_barrier_all");
}

FN(void, shmem_sync_all, (void))
{
	hk__sma_must_run("shmem_sync_all");
	hk__sma_sync(&hk__sma.world, "shmem_sync_all");
}

FN(int, shmem_team_sync, (shmem_team_t handle))
{
	struct shmemx_team *team = hk__sma_team(handle);

	hk__sma_must_run("shmem_team_sync");
	if (!team)
		return 1;
	hk__sma_sync(team, "shmem_team_sync");
	return 0;
}

/* ---- queries ---- */

FN(int, shmem_team_my_pe, (shmem_team_t handle))
{
	struct shmemx_team *team = hk__sma_team(handle);

	hk__sma_must_run("shmem_team_my_pe");
	return team ? (int)team->me : -1;
}

FN(int, shmem_team_n_pes, (shmem_team_t handle))
{
	struct shmemx_team *team = hk__sma_team(handle);

	hk__sma_must_run("shmem_team_n_pes");
	return team ? (int)team->n : -1;
}

FN(int, shmem_team_get_config, (shmem_team_t handle, long config_mask, shmem_team_config_t *config))
{
	struct shmemx_team *team = hk__sma_team(handle);

	hk__sma_must_run("shmem_team_get_config");
	if (!team || (config_mask & ~SHMEM_TEAM_NUM_CONTEXTS) || (config_mask && !config))
		return 1;
	if (config_mask & SHMEM_TEAM_NUM_CONTEXTS)
		config->num_contexts = team->num_contexts;
	return 0;
}

FN(int, shmem_team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
{
	struct shmemx_team *from = hk__sma_team(src_team);
	struct shmemx_team *to = hk__sma_team(dest_team);

	hk__sma_must_run("shmem_team_translate_pe");
	if (!from || !to || src_pe < 0 || (uint32_t)src_pe >= from->n)
		return -1;
	for (uint32_t i = 0; i < to->n; i++) {
		if (to->pes[i] == from->pes[src_pe])
			return (int)i;
	}
	return -1;
}

/* ---- splits ---- */

/* Which of the PEs start, start + stride, ... this one is; HK_NONE: none of them. */
static uint32_t place_of(uint32_t me, int start, int stride, int size)
{
	for (int i = 0; i < size; i++) {
		if ((int64_t)start + (int64_t)i * stride == (int64_t)me)
			return (uint32_t)i;
	}
	return HK_NONE;
}

static bool triplet_valid(const struct shmemx_team *parent, int start, int stride, int size)
{
	int64_t last = (int64_t)start + ((int64_t)size - 1) * stride;

	return size > 0 && (stride != 0 || size == 1) && start >= 0 &&
	       (uint32_t)start < parent->n && last >= 0 && last < (int64_t)parent->n;
}

/* Collective over the parent, also for PEs with the color HK_NONE, which get no team. */
static void split(struct shmemx_team *parent, uint32_t color, uint32_t order,
		  const shmem_team_config_t *config, long mask, shmem_team_t *team_out,
		  const char *call)
{
	struct shmemx_team *team = NULL;
	struct hk_group *group;
	enum hk_status status = hk_group_split(parent->group, color, order, &group);

	if (status != HK_OK)
		hk__sma_fail(call, parent->group, status);
	if (group) {
		team = calloc(1, sizeof(*team));
		if (!team)
			hk__sma_die(call, "no memory for a team");
		status = team_fill(team, group);
		if (status != HK_OK)
			hk__sma_fail(call, group, status);
		if (mask & SHMEM_TEAM_NUM_CONTEXTS)
			team->num_contexts = config->num_contexts;
	}
	*team_out = team;
}

static bool config_valid(const shmem_team_config_t *config, long mask)
{
	return !(mask & ~SHMEM_TEAM_NUM_CONTEXTS) &&
	       (!mask || (config && config->num_contexts >= 0));
}

FN(int, shmem_team_split_strided,
   (shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config,
    long config_mask, shmem_team_t *new_team))
{
	static const char call[] = "shmem_team_split_strided";
	struct shmemx_team *parent = hk__sma_team(parent_team);
	uint32_t place;

	hk__sma_must_run(call);
	*new_team = SHMEM_TEAM_INVALID;
	if (!parent)
		return 1;
	if (hk__sma.check) {
		const uint64_t words[] = { (uint64_t)start, (uint64_t)stride, (uint64_t)size };

		hk__sma_check_equal(parent, call, words, 3);
	}
	if (!triplet_valid(parent, start, stride, size) || !config_valid(config, config_mask))
		return 1;
	place = place_of(parent->me, start, stride, size);
	split(parent, place == HK_NONE ? HK_NONE : 0, place, config, config_mask, new_team, call);
	return 0;
}

FN(int, shmem_team_split_2d,
   (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,
    shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,
    shmem_team_t *yaxis_team))
{
	static const char call[] = "shmem_team_split_2d";
	struct shmemx_team *parent = hk__sma_team(parent_team);
	uint32_t x;

	hk__sma_must_run(call);
	*xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
	if (!parent || xrange < 1 || !config_valid(xaxis_config, xaxis_mask) ||
	    !config_valid(yaxis_config, yaxis_mask))
		return 1;
	x = (uint32_t)xrange < parent->n ? (uint32_t)xrange : parent->n;
	split(parent, parent->me / x, parent->me, xaxis_config, xaxis_mask, xaxis_team, call);
	split(parent, parent->me % x, parent->me, yaxis_config, yaxis_mask, yaxis_team, call);
	return 0;
}

FN(void, shmem_team_destroy, (shmem_team_t handle))
{
	struct shmemx_team *team = hk__sma_team(handle);

	hk__sma_must_run("shmem_team_destroy");
	if (!team)
		return;
	if (team == &hk__sma.world || team == &hk__sma.shared)
		hk__sma_die("shmem_team_destroy", "a predefined team cannot be destroyed");
	pthread_mutex_lock(&hk__sma.lock);
	contexts_free(team);
	pthread_mutex_unlock(&hk__sma.lock);
	hk_group_free(team->group);
	slot_give(team);
	free(team->pes);
	free(team);
}
