/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - the inside of windows: memory of every rank of a group that all reach.
 *
 * A window is a region of each rank (net/rma/rma.h) and, for every other rank, a remote:
 * by memory where the target's bytes lie in a segment that this process has mapped, or in
 * this process; by messages else. What goes by memory takes no lock and enters no queue.
 * What goes by messages is begun where nets may be touched, and a group that has such
 * ranks has an engine, with channels of its own among the group's.
 *
 *	win.c	windows, made and freed
 *	move.c	puts, gets, atomics, signals
 *	wait.c	contexts; fence, quiet; waits for words
 *	lockstep.c  the symmetric heap
 */
#ifndef HK_GROUP_WINDOW_WINDOW_H
#define HK_GROUP_WINDOW_WINDOW_H

#include "group/group.h"
#include "net/rma/rma.h"
#include "net/shm/shm.h"

#include <hocket/win.h>

/* Of a group, from its first window or context on. */
struct hk__windows {
	struct hk_group *group;
	struct hk__rma *rma;		/* NULL: all is reached by memory */
	struct hk_shm_door *doors;	/* by rank; NULL: no memory is shared */
	struct hk_ctx *contexts;	/* all of them; the last one made first */
	struct hk_ctx *plain;		/* that of hk_group_ctx */
	struct hk_win *windows;
	uint32_t tests;			/* of words, in vain */
};

struct hk_ctx {
	struct hk_group *group;
	struct hk_queue *queue;
	struct hk_ctx *next;
};

enum win_kind {
	WIN_NOTHING,			/* 0 bytes */
	WIN_OWNED,			/* of hk_mem_alloc */
	WIN_GIVEN,			/* the caller's */
	WIN_REMAPPED			/* the caller's, over pages of the segment */
};

struct hk_win {
	struct hk_group *group;
	enum win_kind kind;
	char *base;
	size_t bytes;
	void *pages;			/* REMAPPED: the same pages in the segment */
	uint32_t id;			/* of the region; HK_NONE: none */
	uint64_t timeout_ns;
	struct hk_remote *remotes;	/* by rank */
	struct hk_win *next;
};

/* What is begun by messages, and waited for, where nets may be touched. */
struct hk__far {
	struct hk_ctx *ctx;
	struct hk_remote *remote;
	struct hk_rma_op op;
	bool done;			/* what is fetched is here */
	enum hk_status status;
};

/* HK_OK: may be used. HK_EINVAL where it is refused, and why; else as the group failed. */
enum hk_status hk__win_usable(struct hk_group *group);
struct hk__windows *hk__windows_get(struct hk_group *group); /* NULL: no memory */
/* The context to use; NULL: no memory. */
struct hk_ctx *hk__ctx_of(struct hk_group *group, struct hk_ctx *given);
/* Waits until it has landed at that rank, HK_NONE: everywhere. */
enum hk_status hk__ctx_quiet(struct hk_ctx *ctx, uint32_t rank, const char *what);

/* ---- for progress.c and group.c ---- */

/* Serves peers, and moves on what was asked of them; fails the group where that fails. */
void hk__windows_poll(struct hk_group *group, bool *moved);
/* What came of operations with that rank fails the group; said: why, or "": the net knows. */
void hk__windows_fail(struct hk_group *group, enum hk_status status, uint32_t peer,
		      const char *said);
/* The group has failed: nothing lands, and no memory of callers is written. */
void hk__windows_cancel(struct hk_group *group);
void hk__windows_leave(struct hk_group *group);	/* polled no more */
void hk__windows_free(struct hk_group *group);

#endif
