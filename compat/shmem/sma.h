/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sma.h - the inside of libsma: OpenSHMEM on windows, contexts and groups of Hocket.
 *
 * A symmetric address is one of this PE's own memory in one of three spaces: the heap, the
 * statics of the executable, and a small inner one of the library. Each is a window of the
 * world's group. Where loads and stores reach a PE ("near"), its memory is a pointer in a
 * table, and a put is a copy; the rest ("far") goes by hk_put() and its like.
 *
 * What fails ends the job with a line: OpenSHMEM's calls have no other way to say it.
 */
#ifndef HK_COMPAT_SHMEM_SMA_H
#define HK_COMPAT_SHMEM_SMA_H

#include <hocket/hocket.h>

#define SHMEMX_NO_GENERIC
#include "include/pshmem.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* Defines a function, begun by its twin: FN(int, shmem_my_pe, (void)) { ... } */
#define FN(result, name, params) \
	__attribute__((visibility("default"))) result p##name params; \
	extern __attribute__((weak, alias("p" #name), visibility("default"))) result name params; \
	result p##name params

/* ---- where symmetric memory is ---- */

struct hk__sma_space {
	uintptr_t start;		/* here */
	size_t bytes;
	char **peer;			/* by PE: where its space begins; NULL: far */
	struct hk_win *win;
	const char *what;		/* "the symmetric heap" */
};

#define HK__SMA_SYNC_WORDS 32u		/* rounds of a barrier: 2^24 PEs take 24 */
#define HK__SMA_SYNC_SLOTS 256u		/* teams at a time that have a barrier here */

/* What every PE has for the library itself. */
struct hk__sma_inner {
	uint32_t end;			/* of the job: end.c */
	uint32_t flushed;		/* the streams; it may go */
	uint32_t pad[30];
	long sync[HK__SMA_SYNC_SLOTS][HK__SMA_SYNC_WORDS];
};

/* ---- teams and contexts ---- */

struct shmemx_ctx {
	struct hk_ctx *ctx;
	struct shmemx_team *team;
	long options;
	struct shmemx_ctx *next;	/* of the team's */
};

struct shmemx_team {
	struct hk_group *group;
	uint32_t n;
	uint32_t me;
	uint32_t *pes;			/* its PEs in the world */
	long *sync;			/* HK__SMA_SYNC_WORDS words; NULL: the group's barrier */
	uint32_t slot;			/* where those are */
	int num_contexts;
	struct shmemx_ctx *contexts;	/* that go with it */
};

struct hk__sma {
	uint32_t fast;			/* PEs, for accesses that nobody has to look at; 0:
					   none are, as they are checked */
	uint32_t n;
	uint32_t me;
	struct hk__sma_space heap;
	struct hk__sma_space statics;
	struct hk__sma_space inner;
	bool near;			/* all PEs are */
	bool check;
	bool debug;
	int level;			/* of threads */
	int depth;			/* of calls of shmem_init */
	struct hk_group *group;
	struct hk_heap *blocks;
	struct shmemx_ctx plain;	/* SHMEM_CTX_DEFAULT */
	struct shmemx_team world;
	struct shmemx_team shared;
	pthread_mutex_t lock;		/* of the teams' lists, and slots */
};
extern struct hk__sma hk__sma __attribute__((visibility("hidden")));

static inline struct hk__sma_inner *hk__sma_inner(void)
{
	return (struct hk__sma_inner *)hk__sma.inner.start;
}

/* NULL: SHMEM_TEAM_INVALID. */
static inline struct shmemx_team *hk__sma_team(shmem_team_t team)
{
	return team == SHMEM_TEAM_WORLD ? &hk__sma.world
					: team == SHMEM_TEAM_SHARED ? &hk__sma.shared : team;
}

static inline struct shmemx_ctx *hk__sma_ctx(shmem_ctx_t ctx)
{
	return ctx == SHMEM_CTX_DEFAULT ? &hk__sma.plain : ctx;
}

/* ---- reach.c: from an address to memory of a PE ---- */

struct hk__sma_at {
	char *near;			/* NULL: far */
	const struct hk__sma_space *space;
	size_t offset;
	uint32_t pe;			/* in the world */
	struct hk_ctx *ctx;
};

/* Checks, translates, and ends the job where that is impossible. */
void hk__sma_find_slow(struct hk__sma_at *at, shmem_ctx_t handle, const void *addr, size_t len,
		       int pe, const char *call);
/* Which space has these bytes of this PE; NULL: none. */
const struct hk__sma_space *hk__sma_space_of(const void *addr, size_t len);

static inline __attribute__((always_inline)) void hk__sma_find(struct hk__sma_at *at,
							       shmem_ctx_t ctx, const void *addr,
							       size_t len, int pe,
							       const char *call)
{
	const struct hk__sma_space *space = &hk__sma.heap;
	size_t offset = (uintptr_t)addr - space->start;

	if (__builtin_expect(ctx == SHMEM_CTX_DEFAULT && (uint32_t)pe < hk__sma.fast, 1)) {
		if (offset >= space->bytes) {
			space = &hk__sma.statics;
			offset = (uintptr_t)addr - space->start;
		}
		if (offset < space->bytes && len <= space->bytes - offset &&
		    space->peer[pe]) {
			at->near = space->peer[pe] + offset;
			at->space = space;
			at->offset = offset;
			at->pe = (uint32_t)pe;
			at->ctx = hk__sma.plain.ctx;
			return;
		}
	}
	hk__sma_find_slow(at, ctx, addr, len, pe, call);
}

/* After a direct store: who sleeps until such a word changes looks again. */
static inline void hk__sma_ring(const struct hk__sma_at *at)
{
	hk_win_ring(at->space->win, at->pe);
}

/* ---- check.c: what HOCKET_CHECK adds ---- */

/* The bytes must be of one block that is allocated. */
void hk__sma_check_block(const void *addr, size_t len, const char *call);
void hk__sma_check_overlap(const void *a, const void *b, size_t len, const char *call);
/* Collective: all PEs of the team pass equal words. */
void hk__sma_check_equal(struct shmemx_team *team, const char *call, const uint64_t *words,
			 uint32_t n);
bool hk__sma_block_add(void *at, size_t len);	/* false: no memory */
void hk__sma_block_remove(void *at);
void hk__sma_blocks_drop(void);

/* ---- end.c: how a job ends ---- */

__attribute__((noreturn)) void hk__sma_die(const char *call, const char *format, ...)
	HK_PRINTF(2, 3);
__attribute__((noreturn)) void hk__sma_end_job(int status);
/* A call of Hocket's has failed: dies with its reason. */
__attribute__((noreturn)) void hk__sma_fail(const char *call, struct hk_group *group,
					    enum hk_status status);
static inline void hk__sma_must(const char *call, enum hk_status status)
{
	if (__builtin_expect(status != HK_OK, 0))
		hk__sma_fail(call, hk__sma.group, status);
}
/* Ends the job when another PE does; a thread that sleeps. */
bool hk__sma_watch_start(void);
void hk__sma_watch_stop(void);
void hk__sma_must_run(const char *call);	/* between init and finalize */

/* ---- rma.c, ctx.c, wait.c ---- */

void hk__sma_put(shmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe,
		 const char *call);
void hk__sma_get(shmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe,
		 const char *call);
void hk__sma_quiet(shmem_ctx_t handle, const char *call);
void hk__sma_fence(shmem_ctx_t handle, const char *call);

/* A word of this PE, compared: `value` and `width` as in struct hk_until. */
struct hk__sma_word {
	const void *at;
	uint32_t width;
	bool is_signed;
	int cmp;
	uint64_t value;
};
void hk__sma_wait(const struct hk__sma_word *word, const char *call);

/* ---- atomics ---- */

uint64_t hk__sma_amo_far(const struct hk__sma_at *at, enum hk_amo op, uint32_t width,
			 uint64_t value, uint64_t compare, bool want, const char *call);

#define HK__SMA_AMO_NEAR(BITS) \
	static inline __attribute__((always_inline)) uint##BITS##_t hk__sma_amo_near##BITS( \
		char *near, enum hk_amo op, uint##BITS##_t value, uint##BITS##_t compare) \
	{ \
		uint##BITS##_t *word = (uint##BITS##_t *)(void *)near; \
\
		switch (op) { \
		case HK_AMO_SET: \
			return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_ADD: \
			return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_AND: \
			return __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_OR: \
			return __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_XOR: \
			return __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_CAS: \
			__atomic_compare_exchange_n(word, &compare, value, false, \
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
			return compare; \
		default: \
			return __atomic_load_n(word, __ATOMIC_SEQ_CST); \
		} \
	}
HK__SMA_AMO_NEAR(32)
HK__SMA_AMO_NEAR(64)

/* op and width are constants of the caller, so that one instruction is left. */
static inline __attribute__((always_inline)) uint64_t
hk__sma_amo(shmem_ctx_t ctx, const void *dest, int pe, enum hk_amo op, uint32_t width,
	    uint64_t value, uint64_t compare, bool want, const char *call)
{
	struct hk__sma_at at;
	uint64_t old;

	hk__sma_find(&at, ctx, dest, width, pe, call);
	if (__builtin_expect(!at.near, 0))
		return hk__sma_amo_far(&at, op, width, value, compare, want, call);
	if (width == 4)
		old = hk__sma_amo_near32(at.near, op, (uint32_t)value, (uint32_t)compare);
	else
		old = hk__sma_amo_near64(at.near, op, value, compare);
	if (op != HK_AMO_FETCH)
		hk__sma_ring(&at);
	return old;
}

/* ---- set.c: PEs that work together, by puts, gets and waits alone ---- */

struct hk__sma_set {
	uint32_t n;
	uint32_t me;
	const uint32_t *pes;		/* NULL: start + i * stride */
	uint32_t start;
	uint32_t stride;
	long *sync;			/* symmetric, all 0 between uses; NULL: the team's group */
	struct hk_group *group;
};
static inline int hk__sma_set_pe(const struct hk__sma_set *set, uint32_t i)
{
	return (int)(set->pes ? set->pes[i] : set->start + i * set->stride);
}
struct hk__sma_set hk__sma_set_of_team(const struct shmemx_team *team);
struct hk__sma_set hk__sma_set_active(int start, int log_stride, int size, long *sync,
				      const char *call);
void hk__sma_set_barrier(const struct hk__sma_set *set, const char *call);
typedef void hk__sma_fold(void *acc, const void *in, size_t count);
/* The fold over PEs from..to-1 of the set, of all their sources, into dest of this one. */
void hk__sma_set_fold(const struct hk__sma_set *set, void *dest, const void *source, size_t count,
		      size_t size, uint32_t to, hk__sma_fold *fold, const char *call);

/* ---- team.c, memory.c, statics.c, env.c, begin.c ---- */

bool hk__sma_teams_begin(struct hk_why *why);
void hk__sma_teams_end(void);
void hk__sma_sync(struct shmemx_team *team, const char *call);
void hk__sma_barrier(const char *call);
bool hk__sma_space_begin(struct hk__sma_space *space, struct hk_win *win, const char *what);
void hk__sma_space_end(struct hk__sma_space *space);
/* The writable data of the executable, in whole pages; false: not found. */
bool hk__sma_statics_find(void **start_out, size_t *bytes_out);
/* SHMEM_NAME, else SMA_NAME; NULL: neither is set. */
const char *hk__sma_env(const char *name);
/* SHMEM_SYMMETRIC_SIZE; false: it is wrong, and why. */
bool hk__sma_env_heap(size_t *bytes_out, struct hk_why *why);
void hk__sma_env_print(void);
void hk__sma_begin(int level, const char *call);
int hk__sma_try_begin(int level, struct hk_why *why);

#endif
