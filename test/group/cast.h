/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast.h - processes that play a part each: ranks that are started, killed and
 * waited for one by one, newcomers among them.
 */
#ifndef HK_TEST_GROUP_CAST_H
#define HK_TEST_GROUP_CAST_H

#include <hocket/group.h>

#include <sys/types.h>

#define CAST_MAX 16u
#define SECOND_NS UINT64_C(1000000000)

/* How the ranks talk, and where they are. */
struct cast_scene {
	const char *name;
	const char *net;
	bool hosts; /* every other rank is on another host */
};

extern const struct cast_scene cast_scenes[];
extern const uint32_t cast_scenes_count;

/* A new job: an address, a key, nobody yet. Zeroed memory that all parts share. */
void *cast_begin(const struct cast_scene *scene, size_t shared_bytes);
/* Starts a process that plays it; `as` is for it alone. Who it is, for below. */
typedef void cast_part(uint32_t as, void *shared);
uint32_t cast_play(cast_part *part, uint32_t as);
void cast_kill(uint32_t who);
/* Waits for one; it has to have ended well, or by SIGKILL. */
void cast_wait(uint32_t who, bool killed);
/* Waits for all who are left; they have to have ended well. */
void cast_end(void);

/* The options of a rank of the job, and of a newcomer: rank HK_NONE. */
struct hk_group_opts cast_opts(uint32_t rank, uint32_t nranks);
/* Joins, or the part has failed. */
struct hk_group *cast_join(uint32_t rank, uint32_t nranks);
struct hk_group *cast_grow(struct hk_group *group, uint32_t nranks);
/* A sum over the group is right. */
void cast_sum(struct hk_group *group);
/* Waits until *flag is at least that. */
void cast_await(const _Atomic uint32_t *flag, uint32_t least);

#endif
