/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - calls on device memory (device.c); the rest of a group is seen by it. */
#ifndef HK_GROUP_DEVICE_H
#define HK_GROUP_DEVICE_H

#include "group/inside.h"

/* Bytes of a vector up to which all send all, and up to which trees are used. */
#define HK__DEVICE_ONE_SHOT (32u << 10)
#define HK__DEVICE_TREE (64u << 10)

/* Whether one of them is device memory; only where a driver was seen. */
bool hk__group_on_device(const void *in, const void *out);

/* The call, enqueued; HK_OK before it has begun. Fails with what failed before. */
enum hk_status hk__group_device_call(struct hk_group *group, const struct hk_request *request,
				     const struct hk_opts *opts);
/* The group has failed, or ends. */
void hk__group_device_abort(struct hk_group *group);
void hk__group_device_free(struct hk_group *group);

#endif
