/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - contexts: order and completion; and waits for words that others write. */
#include "group/window/window.h"

#include <sched.h>
#include <time.h>

/* ---- contexts ---- */

struct ctx_job {
	struct hk_group *group;
	struct hk_ctx *ctx;
};

static void ctx_join_job(void *ctx)
{
	struct ctx_job *job = ctx;

	job->ctx->next = job->group->windows->contexts;
	job->group->windows->contexts = job->ctx;
}

static void ctx_leave_job(void *ctx)
{
	struct ctx_job *job = ctx;
	struct hk_ctx **link = &job->group->windows->contexts;

	while (*link && *link != job->ctx)
		link = &(*link)->next;
	if (*link)
		*link = job->ctx->next;
}

static struct hk_ctx *ctx_make(struct hk_group *group)
{
	struct hk_ctx *ctx = hk__mem_zalloc(group->alloc, 1, sizeof(*ctx));
	struct ctx_job job = { group, ctx };

	if (!ctx)
		return NULL;
	ctx->group = group;
	if (!hk__windows_get(group) ||
	    hk__queue_create(group->alloc, group->n, &ctx->queue) != HK_OK) {
		hk__mem_free(group->alloc, ctx, 1, sizeof(*ctx));
		return NULL;
	}
	hk__world_run(group->world, ctx_join_job, &job);
	return ctx;
}

struct hk_ctx *hk__ctx_of(struct hk_group *group, struct hk_ctx *given)
{
	if (given)
		return given;
	struct hk__windows *windows = hk__windows_get(group);
	if (windows && !windows->plain)
		windows->plain = ctx_make(group);
	return windows ? windows->plain : NULL;
}

struct hk_ctx *hk_group_ctx(struct hk_group *group)
{
	return group && !hk__world_inherited(group->world) ? hk__ctx_of(group, NULL) : NULL;
}

enum hk_status hk_ctx_create(struct hk_group *group, struct hk_ctx **ctx_out)
{
	if (!group || !ctx_out || hk__world_inherited(group->world))
		return HK_EINVAL;
	struct hk_ctx *ctx = ctx_make(group);
	if (!ctx)
		return hk__group_refuse(group, HK_ENOMEM, "hk_ctx_create: no memory");
	*ctx_out = ctx;
	return HK_OK;
}

void hk_ctx_free(struct hk_ctx *ctx)
{
	if (!ctx || hk__world_inherited(ctx->group->world))
		return;
	struct ctx_job job = { ctx->group, ctx };
	(void)!hk_quiet(ctx);
	hk__world_run(ctx->group->world, ctx_leave_job, &job);
	hk__queue_destroy(ctx->queue);
	hk__mem_free(ctx->group->alloc, ctx, 1, sizeof(*ctx));
}

/* ---- completion ---- */

struct quiet {
	struct hk_ctx *ctx;
	uint32_t rank; /* HK_NONE: all */
	uint32_t late; /* who is waited for */
	const char *what;
};

static bool quiet_over(const void *ctx)
{
	struct quiet *quiet = (struct quiet *)ctx;
	const struct hk_group *group = quiet->ctx->group;

	return group->failed != HK_OK ||
	       hk__queue_landed(group->windows->rma, quiet->ctx->queue, quiet->rank, &quiet->late);
}

static void quiet_late_job(void *ctx)
{
	const struct quiet *quiet = ctx;
	struct hk_group *group = quiet->ctx->group;
	char line[HK_WHY_MAX];
	struct hk__text text;

	if (group->failed != HK_OK)
		return;
	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text,
		     "rank %u: %s not finished in %.3g s: rank %u has not applied all; it is not "
		     "known to be dead: it is stopped, or slow",
		     group->rank, quiet->what, (double)group->timeout_ns / 1e9, quiet->late);
	hk__health_revoke(group, HK_ETIMEDOUT, hk__chans_rank(&group->chans, quiet->late), line);
}

enum hk_status hk__ctx_quiet(struct hk_ctx *ctx, uint32_t rank, const char *what)
{
	struct hk_group *group = ctx->group;
	struct hk__world *world = group->world;
	struct quiet quiet = { ctx, rank, 0, what };
	enum hk_status status = hk__win_usable(group);

	/* What went by memory is there; what is read next is not from before. */
	atomic_thread_fence(memory_order_seq_cst);
	if (status != HK_OK || !hk__queue_used(ctx->queue))
		return status;
	hk__world_lock(world);
	status = quiet_over(&quiet)
			 ? HK_OK
			 : hk__world_await_until(world, quiet_over, &quiet, group->timeout_ns);
	hk__world_unlock(world);
	if (status == HK_ETIMEDOUT)
		hk__world_run(world, quiet_late_job, &quiet);
	enum hk_status failed = hk__group_failed(group);
	return failed != HK_OK ? failed : status;
}

enum hk_status hk_quiet(struct hk_ctx *ctx)
{
	return ctx ? hk__ctx_quiet(ctx, HK_NONE, "hk_quiet") : HK_EINVAL;
}

enum hk_status hk_quiet_ranks(struct hk_ctx *ctx, const uint32_t *ranks, uint32_t n)
{
	enum hk_status status = HK_OK;

	if (!ctx || (n && !ranks))
		return HK_EINVAL;
	for (uint32_t i = 0; i < n; i++)
		if (ranks[i] >= ctx->group->n)
			return hk__group_refuse(ctx->group, HK_EINVAL,
						"hk_quiet_ranks: no such rank: %u of %u", ranks[i],
						ctx->group->n);
	for (uint32_t i = 0; i < n && status == HK_OK; i++)
		status = hk__ctx_quiet(ctx, ranks[i], "hk_quiet_ranks");
	return status;
}

/*
 * Messages land in their order, and what goes by memory has landed. Only a rank that is
 * reached both ways, by different windows, could see the second overtake the first.
 */
enum hk_status hk_fence(struct hk_ctx *ctx)
{
	if (!ctx)
		return HK_EINVAL;
	struct hk_group *group = ctx->group;
	atomic_thread_fence(memory_order_release);
	if (hk__queue_used(ctx->queue) && group->world->asks_near)
		return hk__ctx_quiet(ctx, HK_NONE, "hk_fence");
	return hk__win_usable(group);
}

/* ---- words ---- */

struct until {
	struct hk_group *group;
	struct hk_word word;
	uint64_t seen;
	bool met;
};

static bool until_over(const void *ctx)
{
	struct until *until = (struct until *)ctx;

	until->met = hk__word_compares(&until->word, &until->seen);
	return until->met || until->group->failed != HK_OK;
}

/* With a progress thread the caller looks by itself: no net tells of stores. */
#define UNTIL_SPINS 4000u
#define UNTIL_NAP_NS 50000

static enum hk_status until_watch(struct until *until, uint64_t timeout_ns)
{
	uint64_t deadline = hk__deadline_ns(hk__now_ns(), timeout_ns);
	uint32_t looks = 0;

	while (!hk__word_compares(&until->word, &until->seen)) {
		struct timespec nap = { 0, UNTIL_NAP_NS };

		if (atomic_load_explicit(&until->group->is_over, memory_order_acquire))
			return HK_OK;
		if (++looks < UNTIL_SPINS) {
			sched_yield();
			continue;
		}
		if (hk__now_ns() >= deadline)
			return HK_ETIMEDOUT;
		(void)nanosleep(&nap, NULL);
	}
	until->met = true;
	return HK_OK;
}

/* Who stores by memory wakes this rank from now on. */
static enum hk_status until_await(struct until *until, uint64_t timeout_ns)
{
	struct hk__world *world = until->group->world;

	if (world->shm)
		hk__shm_await_words(world->shm, true);
	enum hk_status status = hk__world_await_until(world, until_over, until, timeout_ns);
	if (world->shm)
		hk__shm_await_words(world->shm, false);
	return status;
}

static enum hk_status until_read(struct hk_group *group, const struct hk_until *given,
				 struct until *until)
{
	struct hk_until full;

	if (!group || hk__world_inherited(group->world) || !given)
		return HK_EINVAL;
	if (hk__opts_copy(&full, sizeof(full), given) != HK_OK || !full.at ||
	    full.cmp > HK_CMP_LE ||
	    (full.width != 1 && full.width != 2 && full.width != 4 && full.width != 8) ||
	    (uintptr_t)full.at % full.width)
		return hk__group_refuse(group, HK_EINVAL,
					"hk_wait_until: words have 1, 2, 4 or 8 bytes and are "
					"aligned; comparisons are HK_CMP_EQ ... HK_CMP_LE");
	*until = (struct until){ .group = group,
				 .word = { .at = full.at,
					   .width = full.width,
					   .is_signed = full.is_signed,
					   .cmp = full.cmp,
					   .value = full.value } };
	return HK_OK;
}

/* Nobody is to blame for certain: the word says by whom it was to be written, if anybody. */
static enum hk_status until_late(const struct until *until, const struct hk_until *given,
				 uint64_t timeout_ns)
{
	char who[40];
	struct hk__text text;

	hk__text_init(&text, who, sizeof(who));
	hk__text_add(&text, "any rank");
	if (given->size > offsetof(struct hk_until, rank) && given->rank != HK_NONE) {
		hk__text_init(&text, who, sizeof(who));
		hk__text_add(&text, "rank %u", given->rank);
	}
	return hk__group_refuse(until->group, HK_ETIMEDOUT,
				"rank %u: a wait for a word that %s is to write has not ended in "
				"%.3g s: it is %llu, compared with %llu",
				until->group->rank, who, (double)timeout_ns / 1e9,
				(unsigned long long)until->seen,
				(unsigned long long)until->word.value);
}

enum hk_status hk_wait_until(struct hk_group *group, const struct hk_until *given,
			     uint64_t *seen_out)
{
	struct until until = { .group = group };
	enum hk_status status = until_read(group, given, &until);

	if (status != HK_OK)
		return status;
	struct hk__world *world = group->world;
	uint64_t timeout_ns = given->timeout_ns ? given->timeout_ns : group->timeout_ns;
	if (world->threaded) {
		status = until_watch(&until, timeout_ns);
	} else {
		hk__world_lock(world);
		if (!until_over(&until))
			status = until_await(&until, timeout_ns);
		hk__world_unlock(world);
	}
	if (until.met) {
		if (seen_out)
			*seen_out = until.seen;
		return HK_OK;
	}
	if (status == HK_ETIMEDOUT)
		return until_late(&until, given, timeout_ns);
	enum hk_status failed = hk__group_failed(group);
	return failed != HK_OK ? failed : status;
}

enum hk_status hk_signal_wait(struct hk_win *win, size_t offset, enum hk_cmp cmp, uint64_t value,
			      uint64_t timeout_ns, uint64_t *seen_out)
{
	if (!win)
		return HK_EINVAL;
	if (offset % 8 || offset > win->bytes || win->bytes - offset < 8)
		return hk__group_refuse(win->group, HK_EINVAL,
					"hk_signal_wait: offset %zu is no word of this rank's "
					"window, which has %zu bytes",
					offset, win->bytes);
	struct hk_until until = { .size = sizeof(until),
				  .at = win->base + offset,
				  .width = 8,
				  .cmp = cmp,
				  .value = value,
				  .timeout_ns = timeout_ns ? timeout_ns : win->timeout_ns,
				  .rank = HK_NONE };
	return hk_wait_until(win->group, &until, seen_out);
}

/* Who only tests waits, too: now and then it looks who is gone. */
#define TEST_LOOKS 64u

static bool test_met(struct until *until)
{
	until->met = hk__word_compares(&until->word, &until->seen);
	return until->met;
}

static void test_progress(struct hk_group *group)
{
	struct hk__world *world = group->world;
	bool moved;

	hk__world_lock(world);
	hk__world_progress(world, &moved);
	if (!moved && ++group->windows->tests % TEST_LOOKS == 0) {
		uint64_t now = hk__now_ns();

		if (now - world->net->watched >= world->watch_ns) {
			world->net->watched = now;
			hk__net_watch(world->net);
		}
	}
	hk__world_unlock(world);
}

bool hk_test_until(struct hk_group *group, const struct hk_until *given, uint64_t *seen_out)
{
	struct until until = { .group = group };

	if (until_read(group, given, &until) != HK_OK)
		return false;
	if (!test_met(&until) && !group->world->threaded && hk__windows_get(group)) {
		test_progress(group);
		(void)test_met(&until);
	}
	if (until.met && seen_out)
		*seen_out = until.seen;
	return until.met;
}
