/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - requests as callers hold them: waited for, alone or several, and freed. */
#include "group/record/recorder.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

/* ---- waiting for one ---- */

/* What is left of the time a request was given. */
static uint64_t request_left(struct hk_request *request)
{
	if (!request->deadline)
		return request->timeout_ns;
	uint64_t now = hk__now_ns();
	return now < request->deadline ? request->deadline - now : 0;
}

/* Where nets may be touched. */
static void time_out_job(void *ctx)
{
	struct hk_request *request = ctx;

	if (request->status == HK_INPROGRESS)
		hk__request_time_out(request);
}

/* As it ended; one that was refused after it was queued says why, to its caller. */
static enum hk_status request_status(struct hk_request *request)
{
	struct hk_group *group = request->group;

	hk__world_lock(group->world);
	enum hk_status status = request->status;
	bool refused = status == HK_ELIMIT && group->failed == HK_OK;
	hk__world_unlock(group->world);
	if (!refused || !request->transfers)
		return status;
	return hk__group_refuse(
		group, status,
		"%s rank %u with tag %u: this rank has no channel left: free groups "
		"that are not used, or start fewer ranks on a host",
		request->transfer.sends ? "send to" : "recv from", request->peer, request->sig.tag);
}

/* ---- ending a wait early ---- */

void hk_request_wake(struct hk_group *group)
{
	if (!group || hk__world_inherited(group->world))
		return;
	struct hk__world *world = group->world;
	/* Pairs with group_woken: who sleeps, or is about to, sees it once it was kicked. */
	atomic_store(&group->woken, true);
	if (!world->threaded) {
		hk__net_kick(world->net);
		return;
	}
	pthread_mutex_lock(&world->lock);
	pthread_cond_broadcast(&world->over);
	pthread_mutex_unlock(&world->lock);
}

static bool group_woken(const struct hk_group *group)
{
	return atomic_load_explicit(&group->woken, memory_order_acquire);
}

/* One wake-up is for one wait. */
static void group_heed(struct hk_group *group)
{
	if (group_woken(group))
		atomic_store(&group->woken, false);
}

/* Of a request, alone. */
static bool request_over_or_woken(const void *ctx)
{
	const struct hk_request *request = ctx;

	return request->status != HK_INPROGRESS || group_woken(request->group);
}

/* timeout_ns 0: until the deadline of the call, and then it has failed. */
enum hk_status hk__request_await(struct hk_request *request, uint64_t timeout_ns)
{
	struct hk__world *world = request->group->world;
	uint64_t left = request_left(request);
	bool ends = timeout_ns == 0 || timeout_ns >= left;
	enum hk_status waited = HK_OK;

	hk__world_lock(world);
	if (request->status == HK_INPROGRESS) {
		waited = timeout_ns ? hk__world_await_until(world, request_over_or_woken, request,
							    ends ? left : timeout_ns)
				    : hk__world_await(world, &request->status, left);
		if (waited != HK_OK && waited != HK_ETIMEDOUT)
			hk__request_fail(request, waited);
	}
	if (timeout_ns)
		group_heed(request->group);
	hk__world_unlock(world);
	if (waited == HK_ETIMEDOUT && ends)
		hk__world_run(world, time_out_job, request);
	return request_status(request);
}

/* ---- what users hold ---- */

/* Whether its batch has not ended. */
static bool request_is_noted(struct hk_request *request)
{
	struct hk__world *world = request->group->world;

	hk__world_lock(world);
	bool noted = !request->queued && request->status == HK_INPROGRESS;
	hk__world_unlock(world);
	return noted;
}

enum hk_status hk_request_wait(struct hk_request *request, uint64_t timeout_ns)
{
	if (!request || hk__world_inherited(request->group->world))
		return HK_EINVAL;
	if (request_is_noted(request))
		return hk__group_refuse(request->group, HK_EINVAL,
					"the batch of this request is still open");
	return hk__request_await(request, timeout_ns);
}

enum hk_status hk_request_test(struct hk_request *request)
{
	struct hk__world *world;
	bool moved;

	if (!request || hk__world_inherited(request->group->world))
		return HK_EINVAL;
	world = request->group->world;
	hk__world_lock(world);
	if (!world->threaded && request->status == HK_INPROGRESS && request->queued)
		hk__world_progress(world, &moved);
	if (!world->threaded && request->status == HK_INPROGRESS)
		hk__record_look(world);
	bool late =
		request->status == HK_INPROGRESS && request->queued && request_left(request) == 0;
	hk__world_unlock(world);
	if (late)
		hk__world_run(world, time_out_job, request);
	return request_status(request);
}

enum hk_status hk_request_fd(struct hk_request *request, int *fd_out)
{
	struct hk__world *world;
	enum hk_status status;

	if (!request || !fd_out || hk__world_inherited(request->group->world))
		return HK_EINVAL;
	world = request->group->world;
	status = hk__world_start_thread(world);
	if (status != HK_OK)
		return hk__group_refuse(request->group, status, "cannot start a progress thread");
	hk__world_lock(world);
	if (request->fd < 0) {
		request->fd = hk__fd_open(
			eventfd(request->status != HK_INPROGRESS, EFD_CLOEXEC | EFD_NONBLOCK));
		if (request->fd < 0)
			status = hk__group_refuse(request->group, HK_EIO,
						  "cannot make an eventfd: %s",
						  strerrordesc_np(errno));
	}
	*fd_out = request->fd;
	hk__world_unlock(world);
	return status;
}

void hk_request_free(struct hk_request *request)
{
	if (!request || hk__world_inherited(request->group->world))
		return;
	if (request_is_noted(request))
		hk__batch_forget(request->group, request);
	else
		(void)hk__request_await(request, 0);
	if (request->fd >= 0)
		hk__fd_close(request->fd);
	hk__mem_free(request->group->alloc, request, 1, sizeof(*request));
}

/* ---- several at once ---- */

struct many {
	struct hk_request *const *requests; /* NULL entries are skipped */
	uint32_t n;
	bool wakes; /* the wait ends early where one of their groups is woken */
	hk__over_fn *over;
};

static bool in_progress(const struct hk_request *request)
{
	return request && request->status == HK_INPROGRESS;
}

/* The first that is over; HK_NONE. */
static uint32_t many_first_over(const struct many *many)
{
	for (uint32_t i = 0; i < many->n; i++) {
		if (many->requests[i] && many->requests[i]->status != HK_INPROGRESS)
			return i;
	}
	return HK_NONE;
}

static bool many_any_over(const void *ctx)
{
	return many_first_over(ctx) != HK_NONE;
}

static bool many_all_over(const void *ctx)
{
	const struct many *many = ctx;

	for (uint32_t i = 0; i < many->n; i++) {
		if (in_progress(many->requests[i]))
			return false;
	}
	return true;
}

/* Whether the wait ends: as it should, or early. */
static bool many_over_or_woken(const void *ctx)
{
	const struct many *many = ctx;

	if (many->over(many))
		return true;
	for (uint32_t i = 0; i < many->n && many->wakes; i++) {
		if (many->requests[i] && group_woken(many->requests[i]->group))
			return true;
	}
	return false;
}

static void many_heed(const struct many *many)
{
	for (uint32_t i = 0; i < many->n && many->wakes; i++) {
		if (many->requests[i])
			group_heed(many->requests[i]->group);
	}
}

/* Nothing is waited for unless all of it can be. *world_out: NULL where there is none. */
static enum hk_status many_check(const struct many *many, struct hk__world **world_out)
{
	*world_out = NULL;
	if (many->n > 0 && !many->requests)
		return HK_EINVAL;
	for (uint32_t i = 0; i < many->n; i++) {
		struct hk_request *request = many->requests[i];

		if (!request)
			continue;
		struct hk_group *group = request->group;
		if (hk__world_inherited(group->world))
			return HK_EINVAL;
		if (*world_out && group->world != *world_out)
			return hk__group_refuse(
				group, HK_EINVAL,
				"request %u of %u belongs to a group that was created apart from "
				"those of the requests before it: wait for it by itself",
				i, many->n);
		*world_out = group->world;
		if (request_is_noted(request))
			return hk__group_refuse(group, HK_EINVAL,
						"the batch of request %u of %u is still open", i,
						many->n);
	}
	return HK_OK;
}

/* The one in progress whose deadline is next; NULL. */
static struct hk_request *many_next_due(const struct many *many, uint64_t *left_out)
{
	struct hk_request *next = NULL;

	for (uint32_t i = 0; i < many->n; i++) {
		if (!in_progress(many->requests[i]))
			continue;
		uint64_t left = request_left(many->requests[i]);

		if (!next || left < *left_out) {
			next = many->requests[i];
			*left_out = left;
		}
	}
	return next;
}

static void many_fail(const struct many *many, enum hk_status status)
{
	for (uint32_t i = 0; i < many->n; i++) {
		if (in_progress(many->requests[i]))
			hk__request_fail(many->requests[i], status);
	}
}

/*
 * One wait over all of them, again after each deadline that is missed meanwhile: such a
 * request has failed then, and is over. Returns when it is over, or woken, or after timeout_ns.
 */
static void many_await(struct hk__world *world, const struct many *many, uint64_t timeout_ns)
{
	uint64_t until = timeout_ns ? hk__deadline_ns(hk__now_ns(), timeout_ns) : UINT64_MAX;

	for (;;) {
		uint64_t left = 0, now = hk__now_ns();
		enum hk_status waited = HK_OK;

		hk__world_lock(world);
		struct hk_request *due = many_next_due(many, &left);
		uint64_t due_at = hk__deadline_ns(now, left);
		uint64_t next = due_at <= until ? due_at : until;
		if (due && !many_over_or_woken(many))
			waited = hk__world_await_until(world, many_over_or_woken, many,
						       next > now ? next - now : 0);
		if (waited != HK_OK && waited != HK_ETIMEDOUT)
			many_fail(many, waited);
		bool done = many_over_or_woken(many);
		if (done || !due)
			many_heed(many);
		hk__world_unlock(world);
		if (done || !due || (waited == HK_ETIMEDOUT && next != due_at))
			return;
		if (waited == HK_ETIMEDOUT)
			hk__world_run(world, time_out_job, due);
	}
}

enum hk_status hk_request_wait_any(struct hk_request *const *requests, uint32_t n,
				   uint64_t timeout_ns, uint32_t *index_out)
{
	struct many many = {
		.requests = requests, .n = n, .wakes = timeout_ns != 0, .over = many_any_over
	};
	struct hk__world *world;

	if (!index_out)
		return HK_EINVAL;
	*index_out = HK_NONE;
	enum hk_status status = many_check(&many, &world);
	if (status != HK_OK || !world)
		return status;
	many_await(world, &many, timeout_ns);
	hk__world_lock(world);
	*index_out = many_first_over(&many);
	hk__world_unlock(world);
	return *index_out == HK_NONE ? HK_INPROGRESS : request_status(requests[*index_out]);
}

enum hk_status hk_request_wait_all(struct hk_request *const *requests, uint32_t n,
				   uint64_t timeout_ns)
{
	struct many many = {
		.requests = requests, .n = n, .wakes = timeout_ns != 0, .over = many_all_over
	};
	struct hk__world *world;
	enum hk_status status = many_check(&many, &world);

	if (status != HK_OK || !world)
		return status;
	many_await(world, &many, timeout_ns);
	for (uint32_t i = 0; i < n; i++) {
		enum hk_status one = requests[i] ? request_status(requests[i]) : HK_OK;

		if (one == HK_INPROGRESS)
			return one;
		if (status == HK_OK)
			status = one;
	}
	return status;
}
