/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - a function, run by all ranks of a group that was made in one of
 * the ways in which groups are made.
 */
#ifndef HK_TEST_GROUP_WORLD_H
#define HK_TEST_GROUP_WORLD_H

#include <hocket/group.h>

#define WORLD_RANKS_MAX 16u

/*	enum             name */
#define WORLD_KIND_MAP(X) \
	X(THREADS_SHM,     "threads, shm") \
	X(THREADS_TCP,     "threads, tcp") \
	X(PROCESSES_SHM,   "processes, shm") \
	X(PROCESSES_TCP,   "processes, tcp") \
	X(MIXED_THREADS,   "threads of several hosts") \
	X(MIXED_PROCESSES, "processes of several hosts")

enum world_kind {
#define WORLD_KIND_ENUM(id, name) WORLD_##id,
	WORLD_KIND_MAP(WORLD_KIND_ENUM)
#undef WORLD_KIND_ENUM
	WORLD_KINDS
};

struct world_spec {
	enum world_kind kind;
	uint32_t n;
	/* Of several hosts: the ranks of each, consecutive; NULL: two halves. */
	const uint32_t *hosts;
	uint32_t nhosts;
	bool check;
	bool progress;
	uint64_t timeout_ns;	/* 0: 60 s */
	const struct hk_alloc *alloc; /* NULL: the library's */
};

/* One rank, as the function sees it. */
struct world_seat {
	struct hk_group *group;	/* freed after the function */
	uint32_t rank;
	uint32_t n;
	enum world_kind kind;
	void *ctx;
	void *meeting;		/* world_meet's */
};

typedef void world_fn(struct world_seat *seat);

/* Returns when all ranks have; ends the test if one of them failed. */
void world_run(const struct world_spec *spec, world_fn *fn, void *ctx);

/* Waits for all ranks, not by way of the group. */
void world_meet(struct world_seat *seat);

/* Zeroed memory that ranks share even as processes; stays until the test ends. */
void *world_shared(size_t bytes);

const char *world_name(enum world_kind kind);

#endif
