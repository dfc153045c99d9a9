/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctx.c - contexts, fence and quiet. To PEs that are near everything has landed when its
 * call returns, so a fence is one of the processor; for the others contexts are Hocket's.
 * Contexts that are not private go with their team.
 */
#include "sma.h"

#include <stdlib.h>

void hk__sma_fence(shmem_ctx_t handle, const char *call)
{
	struct shmemx_ctx *ctx = hk__sma_ctx(handle);

	if (!ctx)
		return;
	hk__sma_must_run(call);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (!hk__sma.near)
		hk__sma_must(call, hk_fence(ctx->ctx));
}

void hk__sma_quiet(shmem_ctx_t handle, const char *call)
{
	struct shmemx_ctx *ctx = hk__sma_ctx(handle);

	if (!ctx)
		return;
	hk__sma_must_run(call);
	/* Of two PEs that put, quiet and get, at least one gets what the other put. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!hk__sma.near)
		hk__sma_must(call, hk_quiet(ctx->ctx));
}

FN(void, shmem_fence, (void))
{
	hk__sma_fence(SHMEM_CTX_DEFAULT, "shmem_fence");
}

FN(void, shmem_ctx_fence, (shmem_ctx_t ctx))
{
	hk__sma_fence(ctx, "shmem_ctx_fence");
}

FN(void, shmem_quiet, (void))
{
	hk__sma_quiet(SHMEM_CTX_DEFAULT, "shmem_quiet");
}

FN(void, shmem_ctx_quiet, (shmem_ctx_t ctx))
{
	hk__sma_quiet(ctx, "shmem_ctx_quiet");
}

static void pe_quiet(shmem_ctx_t handle, const int *pes, size_t n, const char *call)
{
	struct shmemx_ctx *ctx = hk__sma_ctx(handle);

	if (!ctx)
		return;
	hk__sma_must_run(call);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (size_t i = 0; i < n; i++) {
		if (pes[i] < 0 || (uint32_t)pes[i] >= ctx->team->n)
			hk__sma_die(call, "there is no PE %d", pes[i]);
		if (!hk__sma.heap.peer[ctx->team->pes[pes[i]]])
			hk__sma_must(call, hk_quiet_ranks(ctx->ctx, &ctx->team->pes[pes[i]], 1));
	}
}

FN(void, shmem_pe_quiet, (const int *target_pes, size_t npes))
{
	pe_quiet(SHMEM_CTX_DEFAULT, target_pes, npes, "shmem_pe_quiet");
}

FN(void, shmem_ctx_pe_quiet, (shmem_ctx_t ctx, const int *target_pes, size_t npes))
{
	pe_quiet(ctx, target_pes, npes, "shmem_ctx_pe_quiet");
}

/* ---- contexts ---- */

static int ctx_create(struct shmemx_team *team, long options, shmem_ctx_t *ctx_out,
		      const char *call)
{
	struct shmemx_ctx *ctx;

	*ctx_out = SHMEM_CTX_INVALID;
	hk__sma_must_run(call);
	if (!team || (options & ~(SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE)))
		return 1;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return 1;
	ctx->team = team;
	ctx->options = options;
	pthread_mutex_lock(&hk__sma.lock);
	if (hk_ctx_create(hk__sma.group, &ctx->ctx) != HK_OK) {
		pthread_mutex_unlock(&hk__sma.lock);
		free(ctx);
		return 1;
	}
	ctx->next = team->contexts;
	team->contexts = ctx;
	pthread_mutex_unlock(&hk__sma.lock);
	*ctx_out = ctx;
	return 0;
}

FN(int, shmem_ctx_create, (long options, shmem_ctx_t *ctx))
{
	return ctx_create(&hk__sma.world, options, ctx, "shmem_ctx_create");
}

FN(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx))
{
	return ctx_create(hk__sma_team(team), options, ctx, "shmem_team_create_ctx");
}

FN(void, shmem_ctx_destroy, (shmem_ctx_t ctx))
{
	if (ctx == SHMEM_CTX_INVALID)
		return;
	if (ctx == SHMEM_CTX_DEFAULT)
		hk__sma_die("shmem_ctx_destroy", "SHMEM_CTX_DEFAULT cannot be destroyed");
	hk__sma_quiet(ctx, "shmem_ctx_destroy");
	pthread_mutex_lock(&hk__sma.lock);
	for (struct shmemx_ctx **at = &ctx->team->contexts; *at; at = &(*at)->next) {
		if (*at == ctx) {
			*at = ctx->next;
			break;
		}
	}
	hk_ctx_free(ctx->ctx);
	pthread_mutex_unlock(&hk__sma.lock);
	free(ctx);
}

FN(int, shmem_ctx_get_team, (shmem_ctx_t handle, shmem_team_t *team))
{
	struct shmemx_ctx *ctx = hk__sma_ctx(handle);

	*team = SHMEM_TEAM_INVALID;
	if (!ctx)
		return 1;
	*team = ctx->team == &hk__sma.world    ? SHMEM_TEAM_WORLD
		: ctx->team == &hk__sma.shared ? SHMEM_TEAM_SHARED
					       : ctx->team;
	return 0;
}

/* Sessions are hints, and these are not taken. */
FN(void, shmem_ctx_session_start,
   (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask))
{
	(void)ctx, (void)options, (void)config, (void)config_mask;
}

FN(void, shmem_ctx_session_stop, (shmem_ctx_t ctx))
{
	(void)ctx;
}
