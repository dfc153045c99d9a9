/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - batches: calls that are noted, and begun together. */
#include "group/device/device.h"

void hk__batch_note(struct hk_group *group, struct hk_request *request)
{
	request->next = NULL;
	if (group->batch_tail)
		group->batch_tail->next = request;
	else
		group->batch = request;
	group->batch_tail = request;
}

enum hk_status hk_batch_begin(struct hk_group *group)
{
	if (!group || hk__world_inherited(group->world))
		return HK_EINVAL;
	if (group->batching)
		return hk__group_refuse(group, HK_EINVAL, "a batch is already open");
	enum hk_status status = hk__group_failed(group);
	if (status == HK_OK)
		status = hk__group_device_look(group);
	group->batching = status == HK_OK;
	return status;
}

void hk__batch_drop(struct hk_group *group)
{
	struct hk_request *request = group->batch;

	/* First, as each of them would be looked for. */
	group->batch = group->batch_tail = NULL;
	group->batching = false;
	while (request) {
		struct hk_request *next = request->next;

		if (!request->kept)
			hk_request_free(request);
		request = next;
	}
}

void hk__batch_forget(struct hk_group *group, const struct hk_request *request)
{
	struct hk_request **link = &group->batch;

	group->batch_tail = NULL;
	while (*link) {
		if (*link == request) {
			*link = request->next;
			continue;
		}
		group->batch_tail = *link;
		link = &(*link)->next;
	}
}

enum hk_status hk_batch_end(struct hk_group *group)
{
	enum hk_status status = HK_OK;
	struct hk_request *request, *waited = NULL;

	if (!group || hk__world_inherited(group->world))
		return HK_EINVAL;
	if (!group->batching)
		return hk__group_refuse(group, HK_EINVAL, "no batch is open");
	group->batching = false;
	status = hk__group_device_batch(group);
	request = group->batch;
	group->batch = group->batch_tail = NULL;
	uint64_t now = request ? hk__now_ns() : 0;
	while (request) {
		struct hk_request *next = request->next;
		enum hk_status one;

		request->deadline = hk__deadline_ns(now, request->timeout_ns);
		one = hk__group_submit(group, request);
		status = status == HK_OK ? one : status;
		if (!request->kept) {
			request->waited = waited;
			waited = request;
		}
		request = next;
	}
	while (waited) {
		struct hk_request *next = waited->waited;
		enum hk_status one = hk__request_await(waited, 0);

		status = status == HK_OK ? one : status;
		hk_request_free(waited);
		waited = next;
	}
	return status;
}
