/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - calls on device memory (device.c); the rest of a group is seen by it. */
#ifndef HK_GROUP_DEVICE_DEVICE_H
#define HK_GROUP_DEVICE_DEVICE_H

#include "exec/device/device.h"
#include "group/group.h"

/* path.c: what this rank says of itself when it meets the others. */
void hk__rank_info_make(enum hk__gpu_use use, struct hk__rank_info *info_out);
/* What the rank infos of a group allow; group->gpu_path is that, and later less. */
enum hk__gpu_path hk__gpu_path_of(const struct hk_group *group);
/*
 * DIRECT and STAGED are for ever; APART may become STAGED, on all ranks, in the first
 * call of a group on device memory.
 */
static inline enum hk__gpu_path hk__group_gpu_path(const struct hk_group *group)
{
	return group->gpu_path;
}

/* Whether one of them is device memory; only where a driver was seen. */
bool hk__group_on_device(const void *in, const void *out);

/* The call, enqueued; HK_OK before it has begun. Fails with what failed before. */
enum hk_status hk__group_device_call(struct hk_group *group, const struct hk_request *request,
				     const struct hk_opts *opts);
/* The GPU of a call without memory: that of its stream, or the current one. */
int hk__group_ordinal(void *stream);

/* ---- share.c: what ranks of this process share of a group on devices ---- */

struct hk__gpu;

/* NULL before hk__group_device_open, and where that found the group to be staged. */
struct hk__gpu *hk__group_gpu(const struct hk_group *group);
/*
 * This rank is on that GPU. Where ranks are apart, all of them have to come here; what
 * comes of it may be that the group is staged: look again.
 */
enum hk_status hk__group_device_open(struct hk_group *group, int ordinal, uint64_t timeout_ns);
/* The rank's calls are over: before others are told that it leaves. */
void hk__group_device_finish(struct hk_group *group);
/* Whether something has failed there meanwhile. */
enum hk_status hk__group_device_look(struct hk_group *group);
/*
 * Ranks reach each other, as far as they do, by this call if need be: it may launch,
 * or the group is staged: look again. ordinal -1: the call has no memory.
 */
enum hk_status hk__group_device_ready(struct hk_group *group, const struct hk_request *request,
				      const struct hk_opts *opts, int ordinal);

static inline const char *hk__request_name(const struct hk_request *request)
{
	if (request->transfers)
		return request->transfer.sends ? "send" : "recv";
	return request->call.in_counts ? "alltoallv" : hk_coll_name(request->coll);
}

/* ---- sends and receives (device_batch.c) ---- */

enum hk_status hk__group_device_transfer(struct hk_group *group, struct hk_request *request,
					 const struct hk_opts *opts);
/* alltoallv, by itself; ordinal: of the GPU whose memory it has; -1: it has none. */
enum hk_status hk__group_device_alltoallv(struct hk_group *group, const struct hk_request *request,
					  const struct hk_opts *opts, int ordinal);
/* A call, until its batch ends. */
enum hk_status hk__group_device_note(struct hk_group *group, const struct hk_request *request,
				     const struct hk_opts *opts, int ordinal);
/* What the batch has noted of device memory: enqueued, and noted no more. */
enum hk_status hk__group_device_batch(struct hk_group *group);
/* "send to rank 3 ...", of a report; HK_EMISMATCH or HK_ETIMEDOUT. */
enum hk_status hk__group_device_describe(const struct hk_group *group,
					 const struct hk__flat_report *report,
					 struct hk__text *text);

/* All have come so far: the rank has no use for theirs; true: wait for all once more. */
bool hk__group_device_unlink(struct hk_group *group);
/* heap.c: the group has failed, and nobody waits in its heaps. Where nets may be touched. */
void hk__group_heaps_stop(struct hk_group *group);
/* The group has failed, or ends. */
void hk__group_device_abort(struct hk_group *group);
void hk__group_device_free(struct hk_group *group);

#endif
