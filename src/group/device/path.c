/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - by which path calls on device memory reach the other ranks.
 *
 * All ranks of a group have to take the same, also those that have no GPU. So when
 * ranks meet, each says which process it is in and whether it may have one, and what
 * follows for any group of them follows for all alike.
 */
#include "group/device/device.h"

#include "base/fork.h"
#include "exec/device/flat.h"
#include "gpu/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number for this process; a child has another, and pids are no use across namespaces. */
static uint64_t process_number(void)
{
	static uint64_t number;
	static pid_t made_by;
	unsigned char nonce[HK__NONCE_BYTES];

	bool ready = hk__auth_ready() == HK_OK;
	hk__fork_hold();
	if (made_by != getpid() && ready) {
		hk__auth_nonce(nonce);
		memcpy(&number, nonce, sizeof(number));
		made_by = getpid();
	}
	uint64_t found = number;
	hk__fork_release();
	return found;
}

/*
 * A driver that is not initialised may have a device, and is left alone: children of
 * this process could not use it any more.
 */
static bool process_has_gpu(void)
{
	const struct hk__cuda *cu = hk__cuda_get();
	const char *visible = getenv("CUDA_VISIBLE_DEVICES"); /* NOLINT(concurrency-mt-unsafe) */
	int count = 0;

	if (!cu || !hk__cuda_image() || (visible && (!*visible || *visible == '-')))
		return false;
	int result = cu->count(&count);
	return result == HK__CU_ERROR_NOT_INITIALIZED || (result == HK__CU_SUCCESS && count > 0);
}

/* Whether all GPUs that this process sees reach each other: ranks may be on any of them. */
static bool process_reaches(void)
{
	const struct hk__cuda *cu = hk__cuda_get();
	int count = 0, can = 1, from, to;

	if (!cu || cu->count(&count) != HK__CU_SUCCESS)
		return true;
	for (int i = 0; i < count * count && can; i++) {
		if (i / count != i % count && (cu->device(&from, i / count) != HK__CU_SUCCESS ||
					       cu->device(&to, i % count) != HK__CU_SUCCESS ||
					       cu->can_peer(&can, from, to) != HK__CU_SUCCESS))
			can = 0;
	}
	return can;
}

void hk__rank_info_make(enum hk__gpu_use use, struct hk__rank_info *info_out)
{
	*info_out = (struct hk__rank_info){ .process = process_number() };
	if (use != HK__GPU_USE_OFF && process_has_gpu())
		info_out->flags |= HK__RANK_GPU;
	if (use == HK__GPU_USE_STAGED)
		info_out->flags |= HK__RANK_STAGED;
}

/* Of ranks that are not all threads of this process. */
static enum hk__gpu_path cards_path(const struct hk_group *group)
{
	const struct hk__world *world = group->world;
	enum hk__gpu_path path = HK__GPU_DIRECT;

	const struct hk__boot_peer *first = &world->boot.peers[hk__chans_rank(&group->chans, 0)];
	for (uint32_t r = 0; r < group->n; r++) {
		const struct hk__boot_peer *peer =
			&world->boot.peers[hk__chans_rank(&group->chans, r)];

		if (peer->info.flags != HK__RANK_GPU || peer->node != first->node)
			return HK__GPU_STAGED;
		if (peer->info.process != first->info.process)
			path = HK__GPU_APART;
	}
	return path;
}

enum hk__gpu_path hk__gpu_path_of(const struct hk_group *group)
{
	const struct hk__world *world = group->world;
	enum hk__gpu_path path = HK__GPU_STAGED;

	if (group->n > HK__FLAT_RANKS)
		return HK__GPU_STAGED;
	if (world->commons && world->origin.env.gpu == HK__GPU_USE_AUTO && hk__cuda_image())
		path = HK__GPU_DIRECT;
	else if (world->boot.peers)
		path = cards_path(group);
	/* The first rank's call waits for nobody: it cannot ask where the others are. */
	if (path == HK__GPU_DIRECT && group->n > 1 && !process_reaches())
		path = HK__GPU_STAGED;
	return path;
}
