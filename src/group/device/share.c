/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.c - what ranks of this process share of a group on devices.
 *
 * Ranks of a group in one process share one struct hk__gpu. Where all ranks are in
 * it, whoever comes first makes it for all, and waits for nobody: one thread may call
 * for all ranks, one after the other. Where they are apart, the first call of the group
 * is also a meeting of all ranks, by collectives of the host: who is on which GPU,
 * where the segments are, and whether all could open them. If one could not, all
 * of them know, and the group is staged.
 *
 * Ranks that are apart also have a progress thread from then on: a process that dies
 * is missed while the others wait on their devices, where no host looks.
 */
#include "group/device/device.h"
#include "base/env.h"

#include "exec/device/device.h"

#include <stdlib.h>
#include <string.h>

struct hk__gpu_share {
	struct hk__gpu_share *next;
	const struct hk_alloc *alloc;
	struct hk__gpu *gpu;
	uint32_t refs; /* groups */
	/* Which group: no two that share a rank have all of these. */
	unsigned char run[HK__KEY_BYTES];
	uint64_t context;
	uint32_t first;
};

/* Of this process; the lock is taken when a group first uses a device, and when it ends. */
static struct hk__gpu_share *shares;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct hk__gpu *hk__group_gpu(const struct hk_group *group)
{
	return group->device ? group->device->gpu : NULL;
}

/* ---- shares ---- */

/* HOCKET_GPU_SMS: how many of a GPU's multiprocessors are used; 0: all. HOCKET_GPU_PROTOCOL:
   how messages are known to have come, if not by the model. */
static enum hk_status share_environment(struct hk_group *group, struct hk__gpu_spec *spec)
{
	struct hk_why why = { "" };
	struct hk__env env = { NULL, &why };
	struct hk__env_value sms, protocol;
	enum hk_status status = hk__env_read(&env, HK__ENV_GPU_SMS, &sms);

	if (status == HK_OK)
		status = hk__env_read(&env, HK__ENV_GPU_PROTOCOL, &protocol);
	if (status != HK_OK)
		return hk__group_refuse(group, status, "%s", why.text);
	spec->sms = (uint32_t)sms.number;
	spec->protocol = (enum hk__gpu_protocol)protocol.number;
	return HK_OK;
}

/* Which ranks are of this process. */
static void share_here(const struct hk_group *group, bool *here)
{
	const struct hk__boot_peer *peers = group->world->boot.peers;

	for (uint32_t r = 0; r < group->n; r++)
		here[r] = !peers || peers[hk__chans_rank(&group->chans, r)].info.process ==
					    peers[group->world->rank].info.process;
}

static enum hk_status share_make(struct hk_group *group, struct hk__gpu_share **share_out)
{
	bool here[HK__FLAT_RANKS] = { false };
	struct hk__gpu_spec spec = { .n = group->n,
				     .apart = hk__group_gpu_path(group) == HK__GPU_APART,
				     .here = here,
				     .alloc = group->alloc };
	enum hk_status status = share_environment(group, &spec);

	if (status != HK_OK)
		return status;
	hk_assert(group->n <= HK__FLAT_RANKS); /* what more are staged */
	share_here(group, here);
	spec.more_bytes = hk__gpu_pairs_bytes(group->n, spec.apart);
	struct hk__gpu_share *share = hk__mem_zalloc(group->alloc, 1, sizeof(*share));
	if (!share)
		return hk__group_refuse(group, HK_ENOMEM, "no memory for a device");
	status = hk__gpu_create(&spec, &group->why, &share->gpu);
	if (status != HK_OK) {
		hk__mem_free(group->alloc, share, 1, sizeof(*share));
		return status;
	}
	share->alloc = group->alloc;
	memcpy(share->run, group->world->boot.key, sizeof(share->run));
	share->context = group->chans.context;
	share->first = hk__chans_rank(&group->chans, 0);
	share->next = shares;
	shares = share;
	*share_out = share;
	return HK_OK;
}

static bool share_is(const struct hk__gpu_share *share, const struct hk_group *group)
{
	return memcmp(share->run, group->world->boot.key, sizeof(share->run)) == 0 &&
	       share->context == group->chans.context &&
	       share->first == hk__chans_rank(&group->chans, 0);
}

static enum hk_status share_get(struct hk_group *group, struct hk__gpu_share **share_out)
{
	enum hk_status status = HK_OK;

	pthread_mutex_lock(&lock);
	struct hk__gpu_share *share = shares;
	while (share && !share_is(share, group))
		share = share->next;
	if (!share)
		status = share_make(group, &share);
	if (status == HK_OK) {
		hk_assert(share);
		share->refs++;
		*share_out = share;
	}
	pthread_mutex_unlock(&lock);
	return status;
}

static void share_put(struct hk__gpu_share *share)
{
	pthread_mutex_lock(&lock);
	if (--share->refs == 0) {
		struct hk__gpu_share **link = &shares;

		while (*link != share)
			link = &(*link)->next;
		*link = share->next;
		hk__gpu_destroy(share->gpu);
		hk__mem_free(share->alloc, share, 1, sizeof(*share));
	}
	pthread_mutex_unlock(&lock);
}

/* ---- meeting ---- */

/* A rank's part in the meeting of those who are apart. */
struct meeting {
	struct hk_group *group;
	struct hk__gpu *gpu; /* NULL: this rank has none */
	uint64_t deadline_ns;
	/* Of all ranks; nobody can fail to come for want of memory. */
	struct hk__gpu_offer offers[HK__FLAT_RANKS];
	struct hk__gpu_ticket tickets[HK__FLAT_RANKS];
	struct hk_why why; /* why this rank could not */
};

/* By collectives of the host, also inside a batch. */
static enum hk_status meeting_gather(const struct meeting *meeting, const void *own, void *all,
				     size_t bytes)
{
	struct hk_opts opts = HK_OPTS_INIT;
	uint64_t now = hk__now_ns();

	opts.timeout_ns = now < meeting->deadline_ns ? meeting->deadline_ns - now : 1;
	return hk_allgather(meeting->group, own, all, bytes, HK_TYPE_UINT8, &opts);
}

/* Who is on which GPU. *all_out: every rank could. */
static enum hk_status meeting_offers(struct meeting *meeting, int ordinal, bool *all_out)
{
	struct hk_group *group = meeting->group;
	struct hk__gpu_offer own = { .blocks = 0 };

	if (meeting->gpu &&
	    hk__gpu_join(meeting->gpu, group->rank, ordinal, &meeting->why) == HK_OK)
		hk__gpu_offer(meeting->gpu, group->rank, &own);
	enum hk_status status = meeting_gather(meeting, &own, meeting->offers, sizeof(own));
	for (uint32_t r = 0; r < group->n && status == HK_OK; r++)
		*all_out &= meeting->offers[r].blocks > 0;
	return status;
}

/* Where the segments are. */
static enum hk_status meeting_tickets(struct meeting *meeting, bool *all_out)
{
	struct hk_group *group = meeting->group;
	struct hk__gpu_ticket own = { .at = 0 };

	hk_assert(meeting->gpu); /* else not all could */
	if (hk__gpu_settle(meeting->gpu, group->rank, meeting->offers, &meeting->why, &own) !=
	    HK_OK)
		own.at = 0;
	enum hk_status status = meeting_gather(meeting, &own, meeting->tickets, sizeof(own));
	for (uint32_t r = 0; r < group->n && status == HK_OK; r++)
		*all_out &= meeting->tickets[r].at != 0;
	return status;
}

/* Whether all could open them. */
static enum hk_status meeting_links(struct meeting *meeting, bool *all_out)
{
	struct hk_group *group = meeting->group;
	unsigned char own =
		hk__gpu_link(meeting->gpu, group->rank, meeting->tickets, &meeting->why) == HK_OK;
	unsigned char all[HK__FLAT_RANKS];
	enum hk_status status = meeting_gather(meeting, &own, all, 1);

	for (uint32_t r = 0; r < group->n && status == HK_OK; r++)
		*all_out &= all[r];
	if (status != HK_OK || *all_out)
		return status;
	hk__gpu_unlink(meeting->gpu, group->rank);
	return meeting_gather(meeting, &own, all, 1); /* nobody frees what others still have */
}

static enum hk_status meeting_run(struct meeting *meeting, int ordinal, bool *all_out)
{
	enum hk_status status = meeting_offers(meeting, ordinal, all_out);

	if (status == HK_OK && *all_out)
		status = meeting_tickets(meeting, all_out);
	if (status == HK_OK && *all_out)
		status = meeting_links(meeting, all_out);
	return status;
}

/* *all_out: they reach each other; if not, on no rank. */
static enum hk_status group_meet(struct hk_group *group, struct hk__gpu *gpu, int ordinal,
				 uint64_t timeout_ns, bool *all_out)
{
	struct meeting meeting = { .group = group,
				   .gpu = gpu,
				   .deadline_ns = hk__deadline_ns(hk__now_ns(), timeout_ns) };
	bool batching = group->batching;

	*all_out = true;
	if (!gpu)
		meeting.why = group->why;
	group->batching = false; /* this is not to be put off */
	enum hk_status status = meeting_run(&meeting, ordinal, all_out);
	group->batching = batching;
	if (status == HK_OK && !*all_out && meeting.why.text[0])
		hk__log(HK_LOG_INFO,
			"rank %u: %s: calls on device memory are staged through host memory",
			group->rank, meeting.why.text);
	return status;
}

/* ---- groups ---- */

struct opening {
	struct hk_group *group;
	struct hk__gpu_share *share;
};

/* Where groups fail: one that has meanwhile is told at once. */
static void group_opened(void *ctx)
{
	const struct opening *opening = ctx;
	struct hk_group *group = opening->group;

	group->device = opening->share;
	if (group->failed != HK_OK)
		hk__group_device_abort(group);
}

enum hk_status hk__group_device_open(struct hk_group *group, int ordinal, uint64_t timeout_ns)
{
	struct opening opening = { .group = group };
	bool apart = hk__group_gpu_path(group) == HK__GPU_APART, all = true;

	if (group->device)
		return HK_OK;
	/* Loading takes its time, which is not the call's. */
	if (timeout_ns < group->timeout_ns)
		timeout_ns = group->timeout_ns;
	enum hk_status status = share_get(group, &opening.share);
	if (status != HK_OK && !apart)
		return status;
	/* Who cannot tells the others. */
	struct hk__gpu *gpu = opening.share ? opening.share->gpu : NULL;
	if (apart)
		status = group_meet(group, gpu, ordinal, timeout_ns, &all);
	else
		status = hk__gpu_join(gpu, group->rank, ordinal, &group->why);
	if (status != HK_OK || !all) {
		if (opening.share)
			share_put(opening.share);
		if (!all)
			group->gpu_path = HK__GPU_STAGED;
		return status;
	}
	if (apart && hk__world_start_thread(group->world) != HK_OK)
		hk__log(HK_LOG_WARN,
			"rank %u: no progress thread: a dead process is noticed only when a "
			"deadline expires",
			group->rank);
	hk__world_run(group->world, group_opened, &opening);
	return HK_OK;
}

void hk__group_device_finish(struct hk_group *group)
{
	if (group->device && hk__group_gpu_path(group) == HK__GPU_APART)
		hk__gpu_finish(group->device->gpu, group->rank);
}

bool hk__group_device_unlink(struct hk_group *group)
{
	bool linked = group->device && hk__group_gpu_path(group) == HK__GPU_APART;

	if (linked)
		hk__gpu_unlink(group->device->gpu, group->rank);
	return linked;
}

void hk__group_device_abort(struct hk_group *group)
{
	if (group->device)
		hk__gpu_abort(group->device->gpu, group->rank);
}

void hk__group_device_free(struct hk_group *group)
{
	struct hk__gpu_share *share = group->device;

	if (!share)
		return;
	group->device = NULL;
	share_put(share);
}
