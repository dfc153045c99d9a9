/* SPDX-License-Identifier: Apache-2.0 */
/* move.c - puts, gets, atomics and signals: by memory at once, else by the engine. */
#include "group/window/window.h"

#include <string.h>
#include <time.h>

/* ---- by messages ---- */

static void far_job(void *ctx)
{
	struct hk__far *far = ctx;
	struct hk_group *group = far->ctx->group;

	far->status = group->failed;
	if (far->status == HK_OK)
		far->status = hk__remote_start(far->remote, far->ctx->queue, &far->op);
}

static void far_fail_job(void *ctx)
{
	const struct hk__far *far = ctx;

	hk__windows_fail(far->ctx->group, far->status, far->remote->peer, "");
}

/* The group fails of it, if it has not already: others wait for what this rank was to do. */
static enum hk_status far_failed(struct hk__far *far)
{
	struct hk_group *group = far->ctx->group;

	if (far->status == HK_ENOMEM)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a one-sided operation");
	hk__world_run(group->world, far_fail_job, far);
	return hk__group_failed(group);
}

struct far_late {
	struct hk_group *group;
	uint32_t rank;
	uint64_t timeout_ns;
	const char *what;
};

static void far_late_job(void *ctx)
{
	const struct far_late *late = ctx;
	char line[HK_WHY_MAX];
	struct hk__text text;

	if (late->group->failed != HK_OK)
		return;
	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text,
		     "rank %u: %s not finished in %.3g s: rank %u has not answered; it is not "
		     "known to be dead: it is stopped, or slow",
		     late->group->rank, late->what, (double)late->timeout_ns / 1e9, late->rank);
	hk__health_revoke(late->group, HK_ETIMEDOUT,
			  hk__chans_rank(&late->group->chans, late->rank), line);
}

/* A call that has begun and misses its deadline fails its group, as any other. */
static enum hk_status far_late(struct hk_group *group, uint32_t rank, const char *what)
{
	struct far_late late = { group, rank, group->timeout_ns, what };

	hk__world_run(group->world, far_late_job, &late);
	return hk__group_failed(group);
}

/* Tries again, where nets may be touched. */
static bool far_begun(const void *ctx)
{
	struct hk__far *far = (struct hk__far *)ctx;

	far_job(far);
	return far->status != HK_INPROGRESS;
}

#define FAR_NAP_NS 20000

/* A progress thread moves things on: now and then it is asked to try again. */
static enum hk_status far_begin_threaded(struct hk__far *far)
{
	struct hk_group *group = far->ctx->group;
	struct timespec nap = { 0, FAR_NAP_NS };
	uint64_t deadline = hk__deadline_ns(hk__now_ns(), group->timeout_ns);

	for (;;) {
		hk__world_run(group->world, far_job, far);
		if (far->status != HK_INPROGRESS)
			return HK_OK;
		if (hk__now_ns() >= deadline)
			return HK_ETIMEDOUT;
		(void)nanosleep(&nap, NULL);
	}
}

/* Until there are slots for all of it. */
static enum hk_status far_begin(struct hk__far *far, const char *what)
{
	struct hk_group *group = far->ctx->group;
	struct hk__world *world = group->world;
	enum hk_status waited = HK_OK;

	if (world->threaded) {
		waited = far_begin_threaded(far);
	} else {
		hk__world_lock(world);
		if (!far_begun(far))
			waited = hk__world_await_until(world, far_begun, far, group->timeout_ns);
		hk__world_unlock(world);
	}
	if (waited == HK_ETIMEDOUT)
		return far_late(group, far->remote->peer, what);
	if (waited != HK_OK)
		far->status = waited;
	return far->status == HK_OK ? HK_OK : far_failed(far);
}

static bool far_over(const void *ctx)
{
	const struct hk__far *far = ctx;

	return far->done || far->ctx->group->failed != HK_OK;
}

static enum hk_status far_await(struct hk__far *far, const char *what)
{
	struct hk_group *group = far->ctx->group;
	struct hk__world *world = group->world;

	hk__world_lock(world);
	enum hk_status status = hk__world_await_until(world, far_over, far, group->timeout_ns);
	bool done = far->done;
	hk__world_unlock(world);
	if (done)
		return HK_OK;
	if (status == HK_ETIMEDOUT)
		return far_late(group, far->remote->peer, what);
	if (status == HK_OK)
		return hk__group_failed(group);
	far->status = status;
	return far_failed(far);
}

/* begins only: nobody waits for what it fetches. */
static enum hk_status far_do(struct hk_win *win, uint32_t rank, const struct hk_rma_op *op,
			     struct hk_ctx *ctx, const char *what)
{
	struct hk__far far = { .ctx = hk__ctx_of(win->group, ctx),
			       .remote = &win->remotes[rank],
			       .op = *op };
	bool waits = op->done != NULL;

	if (!far.ctx)
		return hk__group_refuse(win->group, HK_ENOMEM, "%s: no memory", what);
	far.op.done = waits ? &far.done : NULL;
	enum hk_status status = far_begin(&far, what);
	/* Where it failed nothing writes into this frame any more. */
	return status == HK_OK && waits ? far_await(&far, what) : status;
}

/* ---- what all calls look at ---- */

static enum hk_status range_refuse(const struct hk_win *win, uint32_t rank, size_t offset,
				   size_t len, const char *what)
{
	struct hk_group *group = win->group;

	if (rank >= group->n)
		return hk__group_refuse(group, HK_EINVAL, "%s: no such rank: %u of %u", what, rank,
					group->n);
	return hk__group_refuse(group, HK_EINVAL,
				"%s: %zu bytes at offset %zu are not in the window of rank %u, "
				"which has %llu bytes",
				what, len, offset, rank,
				(unsigned long long)win->remotes[rank].bytes);
}

static inline enum hk_status range_check(const struct hk_win *win, uint32_t rank, size_t offset,
					 size_t len, const char *what)
{
	if (__builtin_expect(!win, 0))
		return HK_EINVAL;
	enum hk_status status = hk__win_usable(win->group);
	if (__builtin_expect(status != HK_OK, 0))
		return status;
	if (__builtin_expect(rank >= win->group->n, 0) ||
	    __builtin_expect(offset > win->remotes[rank].bytes, 0) ||
	    __builtin_expect(len > win->remotes[rank].bytes - offset, 0))
		return range_refuse(win, rank, offset, len, what);
	return HK_OK;
}

static inline void win_knock(const struct hk_win *win, uint32_t rank)
{
	const struct hk_shm_door *doors = win->group->windows->doors;

	if (doors)
		hk__shm_knock(&doors[rank]);
}

/* ---- data ---- */

static enum hk_status put(struct hk_win *win, uint32_t rank, size_t offset, const void *src,
			  size_t len, struct hk_ctx *ctx, bool later, const char *what)
{
	enum hk_status status = range_check(win, rank, offset, len, what);

	if (__builtin_expect(status != HK_OK, 0))
		return status;
	if (win->remotes[rank].at) {
		hk__bytes_store(win->remotes[rank].at + offset, src, len);
		win_knock(win, rank);
		return HK_OK;
	}
	struct hk_rma_op op = {
		.what = HK_RMA_PUT, .offset = offset, .src = src, .len = len, .later = later
	};
	return len ? far_do(win, rank, &op, ctx, what) : HK_OK;
}

enum hk_status hk_put(struct hk_win *win, uint32_t rank, size_t offset, const void *src, size_t len,
		      struct hk_ctx *ctx)
{
	return put(win, rank, offset, src, len, ctx, false, "hk_put");
}

enum hk_status hk_put_nbi(struct hk_win *win, uint32_t rank, size_t offset, const void *src,
			  size_t len, struct hk_ctx *ctx)
{
	return put(win, rank, offset, src, len, ctx, true, "hk_put_nbi");
}

static enum hk_status get(struct hk_win *win, uint32_t rank, size_t offset, void *dst, size_t len,
			  struct hk_ctx *ctx, bool waits, const char *what)
{
	static bool unused;
	enum hk_status status = range_check(win, rank, offset, len, what);

	if (__builtin_expect(status != HK_OK, 0))
		return status;
	if (win->remotes[rank].at) {
		hk__bytes_load(dst, win->remotes[rank].at + offset, len);
		return HK_OK;
	}
	struct hk_rma_op op = { .what = HK_RMA_GET,
				.offset = offset,
				.dst = dst,
				.len = len,
				.later = !waits,
				.done = waits ? &unused : NULL };
	return len ? far_do(win, rank, &op, ctx, what) : HK_OK;
}

enum hk_status hk_get(struct hk_win *win, uint32_t rank, size_t offset, void *dst, size_t len,
		      struct hk_ctx *ctx)
{
	return get(win, rank, offset, dst, len, ctx, true, "hk_get");
}

enum hk_status hk_get_nbi(struct hk_win *win, uint32_t rank, size_t offset, void *dst, size_t len,
			  struct hk_ctx *ctx)
{
	return get(win, rank, offset, dst, len, ctx, false, "hk_get_nbi");
}

/* ---- atomics ---- */

static enum hk_status amo_check(const struct hk_win *win, uint32_t rank, size_t offset,
				const struct hk_amo_args *args, const char *what)
{
	if (!win || !args)
		return HK_EINVAL;
	if (args->op >= HK_AMO_COUNT || (args->width != 4 && args->width != 8) ||
	    offset % args->width)
		return hk__group_refuse(win->group, HK_EINVAL,
					"%s: operation %d of %u bytes at offset %zu: widths are 4 "
					"and 8 bytes, at a multiple of the width",
					what, (int)args->op, args->width, offset);
	return range_check(win, rank, offset, args->width, what);
}

static enum hk_status amo(struct hk_win *win, uint32_t rank, size_t offset,
			  const struct hk_amo_args *args, uint64_t *old_out, struct hk_ctx *ctx,
			  bool waits, const char *what)
{
	static bool unused;
	enum hk_status status = amo_check(win, rank, offset, args, what);

	if (__builtin_expect(status != HK_OK, 0))
		return status;
	struct hk_rma_op op = { .what = HK_RMA_AMO,
				.offset = offset,
				.amo = args->op,
				.width = args->width,
				.value = args->value,
				.compare = args->compare,
				.old_out = old_out };
	if (win->remotes[rank].at) {
		uint64_t old = hk__word_update(win->remotes[rank].at + offset, &op);

		if (old_out)
			*old_out = old;
		if (args->op != HK_AMO_FETCH)
			win_knock(win, rank);
		return HK_OK;
	}
	op.done = waits && old_out ? &unused : NULL;
	op.later = !waits;
	return far_do(win, rank, &op, ctx, what);
}

enum hk_status hk_amo(struct hk_win *win, uint32_t rank, size_t offset,
		      const struct hk_amo_args *args, uint64_t *old_out, struct hk_ctx *ctx)
{
	return amo(win, rank, offset, args, old_out, ctx, true, "hk_amo");
}

enum hk_status hk_amo_nbi(struct hk_win *win, uint32_t rank, size_t offset,
			  const struct hk_amo_args *args, uint64_t *old_out, struct hk_ctx *ctx)
{
	return amo(win, rank, offset, args, old_out, ctx, false, "hk_amo_nbi");
}

/* ---- signals ---- */

/* What went to that rank by messages has landed before a signal goes by memory. */
static enum hk_status signal_follow(struct hk_win *win, uint32_t rank, struct hk_ctx *given)
{
	struct hk_group *group = win->group;
	struct hk_ctx *ctx = given ? given : group->windows->plain;

	if (!group->windows->rma || !win->remotes[rank].at || !ctx || !hk__queue_used(ctx->queue))
		return HK_OK;
	return hk__ctx_quiet(ctx, rank, "hk_signal");
}

static enum hk_status signal_raise(uint32_t rank, const struct hk_signal *signal,
				   struct hk_ctx *ctx, const char *what)
{
	struct hk_amo_args args = { .op = signal->op, .width = 8, .value = signal->value };
	enum hk_status status = signal_follow(signal->win, rank, ctx);

	return status == HK_OK
		       ? amo(signal->win, rank, signal->offset, &args, NULL, ctx, true, what)
		       : status;
}

static enum hk_status signal_check(uint32_t rank, const struct hk_signal *signal, const char *what)
{
	if (!signal || !signal->win)
		return HK_EINVAL;
	struct hk_amo_args args = { .op = signal->op, .width = 8 };
	if (signal->op != HK_AMO_SET && signal->op != HK_AMO_ADD)
		return hk__group_refuse(signal->win->group, HK_EINVAL,
					"%s: a signal is set or added to", what);
	return amo_check(signal->win, rank, signal->offset, &args, what);
}

enum hk_status hk_put_signal(struct hk_win *win, uint32_t rank, size_t offset, const void *src,
			     size_t len, const struct hk_signal *signal, struct hk_ctx *ctx)
{
	enum hk_status status = signal_check(rank, signal, "hk_put_signal");

	/* In one message, where it is short: the signal sends both. */
	if (status == HK_OK)
		status = put(win, rank, offset, src, len, ctx, true, "hk_put_signal");
	return status == HK_OK ? signal_raise(rank, signal, ctx, "hk_put_signal") : status;
}

enum hk_status hk_put_signal_nbi(struct hk_win *win, uint32_t rank, size_t offset, const void *src,
				 size_t len, const struct hk_signal *signal, struct hk_ctx *ctx)
{
	return hk_put_signal(win, rank, offset, src, len, signal, ctx);
}

enum hk_status hk_signal(uint32_t rank, const struct hk_signal *signal, struct hk_ctx *ctx)
{
	enum hk_status status = signal_check(rank, signal, "hk_signal");

	return status == HK_OK ? signal_raise(rank, signal, ctx, "hk_signal") : status;
}

void hk_win_ring(const struct hk_win *win, uint32_t rank)
{
	if (win && rank < win->group->n)
		win_knock(win, rank);
}
