/* SPDX-License-Identifier: Apache-2.0 */
/*
 * win.h - one-sided memory: ranks write, read and update each other's memory
 * without the other's help.
 *
 *   window    a range of memory of every rank of a group, which all of them reach
 *   context   operations that are ordered and completed together
 *   signal    a 64-bit word of a window that tells of data: it is raised after them
 *
 * Between ranks that share memory a put is a copy and an atomic an instruction; the
 * target does nothing. Between hosts they are messages, which the target's library
 * applies, in the program's calls or, if it makes none, in a thread of its own. Atomics
 * by either way are atomic to each other, and to the owner's own by the functions here.
 *
 * Order. Operations of one context to one rank land in any order, unless a fence is
 * between them. A signal of hk_put_signal() lands after its data, and after what its
 * context sent to that rank before. hk_quiet() returns when everything of a context has
 * landed. Plain loads that spin on a word do not order: use hk_signal_wait().
 *
 * Failure is the group's: when a rank is lost, calls that concern it, and waits, return
 * HK_EPEER, and hk_group_why() names it. What windows hold is undefined from then on.
 * Every wait has a deadline. hk_group_shrink() gives a new group, and new windows.
 *
 * Threads: calls that name a window or a context are thread-safe, except create and
 * free; so are waits for words.
 */
#ifndef HOCKET_WIN_H
#define HOCKET_WIN_H

#include <hocket/group.h>
#include <hocket/type.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hk_win;			/* opaque */
struct hk_ctx;			/* opaque */

/* ---- windows ---- */

struct hk_win_opts {
	size_t size;		/* sizeof(struct hk_win_opts) */
	bool remap;		/* with a base: its pages become shared memory at the same
				   address. Whole pages; contents stay. Ranks of the host
				   then reach it by loads and stores */
	uint64_t timeout_ns;	/* of create, and of waits in the window; 0: the group's */
};
#define HK_WIN_OPTS_INIT { sizeof(struct hk_win_opts), false, 0 }

/*
 * Collective. A window of `bytes` bytes on this rank, which may differ between ranks,
 * also be 0. base NULL: zeroed memory that ranks of the host reach by loads and stores;
 * else memory of the caller, which stays valid until hk_win_free(). opts may be NULL.
 * HK_EINVAL, HK_ELIMIT (shared memory is used up), HK_ENOMEM, or as a collective.
 */
HK_API HK_NODISCARD enum hk_status hk_win_create(struct hk_group *group, void *base, size_t bytes,
						 const struct hk_win_opts *opts,
						 struct hk_win **win_out);
/*
 * Collective: waits for all ranks, so nothing lands here afterwards. On a group that has
 * failed it waits for nobody, and nothing lands either. Accepts NULL.
 */
HK_API void hk_win_free(struct hk_win *win);

HK_API void *hk_win_base(const struct hk_win *win);
HK_API size_t hk_win_bytes(const struct hk_win *win, uint32_t rank);
/* Where a rank's byte is in this process; NULL: not reached by loads and stores. */
HK_API void *hk_win_ptr(const struct hk_win *win, uint32_t rank, size_t offset);

/*
 * For who writes by that pointer: wakes the rank where it sleeps in a wait for such a word.
 * A load, as long as nobody sleeps. hk_put() and all calls below do it by themselves.
 */
HK_API void hk_win_ring(const struct hk_win *win, uint32_t rank);

/* ---- contexts ---- */

/* The context of a group that calls use which are given none; freed with the group. */
HK_API struct hk_ctx *hk_group_ctx(struct hk_group *group);
/* Another one. Not collective. HK_ENOMEM, HK_EINVAL (of a child of fork(2)). */
HK_API HK_NODISCARD enum hk_status hk_ctx_create(struct hk_group *group, struct hk_ctx **ctx_out);
/* Waits as hk_quiet does. Accepts NULL. */
HK_API void hk_ctx_free(struct hk_ctx *ctx);

/* ---- data ----
 *
 * Offsets are bytes in the target's window. ctx NULL: the group's. A range that is not
 * in the target's window is HK_EINVAL, and nothing is sent. len 0 does nothing.
 */

/* Returns when src may be reused. */
HK_API HK_NODISCARD enum hk_status hk_put(struct hk_win *win, uint32_t rank, size_t offset,
					  const void *src, size_t len, struct hk_ctx *ctx);
/* Returns when the data are in dst. */
HK_API HK_NODISCARD enum hk_status hk_get(struct hk_win *win, uint32_t rank, size_t offset,
					  void *dst, size_t len, struct hk_ctx *ctx);
/* These only begin: src, dst are the caller's again after hk_quiet(). */
HK_API HK_NODISCARD enum hk_status hk_put_nbi(struct hk_win *win, uint32_t rank, size_t offset,
					      const void *src, size_t len, struct hk_ctx *ctx);
HK_API HK_NODISCARD enum hk_status hk_get_nbi(struct hk_win *win, uint32_t rank, size_t offset,
					      void *dst, size_t len, struct hk_ctx *ctx);

/* ---- atomics; type.h has the operations ---- */

/* Widths are 4 and 8 bytes; the word is aligned to its width. */
struct hk_amo_args {
	enum hk_amo op;
	uint32_t width;
	uint64_t value;
	uint64_t compare;	/* CAS */
};
/*
 * old_out NULL: only begins, as hk_put_nbi; else returns when *old_out has the old value.
 * nbi: *old_out is there after hk_quiet(); it is 8 bytes, whatever the width.
 */
HK_API HK_NODISCARD enum hk_status hk_amo(struct hk_win *win, uint32_t rank, size_t offset,
					  const struct hk_amo_args *args, uint64_t *old_out,
					  struct hk_ctx *ctx);
HK_API HK_NODISCARD enum hk_status hk_amo_nbi(struct hk_win *win, uint32_t rank, size_t offset,
					      const struct hk_amo_args *args, uint64_t *old_out,
					      struct hk_ctx *ctx);

/* ---- signals ---- */

/* Which word, and what becomes of it: HK_AMO_SET or HK_AMO_ADD. */
struct hk_signal {
	struct hk_win *win;	/* may be another window than that of the data */
	size_t offset;		/* a multiple of 8 */
	uint64_t value;
	enum hk_amo op;
};
/* Puts, and then raises the signal. Returns when src may be reused; len 0 raises it, too. */
HK_API HK_NODISCARD enum hk_status hk_put_signal(struct hk_win *win, uint32_t rank, size_t offset,
						 const void *src, size_t len,
						 const struct hk_signal *signal,
						 struct hk_ctx *ctx);
HK_API HK_NODISCARD enum hk_status hk_put_signal_nbi(struct hk_win *win, uint32_t rank,
						     size_t offset, const void *src, size_t len,
						     const struct hk_signal *signal,
						     struct hk_ctx *ctx);
/* Only the signal; it lands after what the context sent to that rank before. */
HK_API HK_NODISCARD enum hk_status hk_signal(uint32_t rank, const struct hk_signal *signal,
					     struct hk_ctx *ctx);

/* What to wait for: words of this rank's own memory, in a window or not. */
struct hk_until {
	size_t size;		/* sizeof(struct hk_until) */
	const void *at;
	uint32_t width;		/* 1, 2, 4 or 8; its words are aligned */
	bool is_signed;		/* compares as signed numbers */
	enum hk_cmp cmp;
	uint64_t value;
	uint64_t timeout_ns;	/* 0: the group's */
	uint32_t rank;		/* who is expected to write it, for messages; HK_NONE: anybody */
};
/*
 * Waits until the word compares so, and moves everything of the group on meanwhile. What
 * landed before the word did is seen after it. seen_out (may be NULL): the word's value.
 * HK_ETIMEDOUT: not by then; the group stays as it is. HK_EPEER, HK_EREVOKED, HK_EIO.
 */
HK_API HK_NODISCARD enum hk_status hk_wait_until(struct hk_group *group,
						 const struct hk_until *until, uint64_t *seen_out);
/* The same for a signal of the own window. */
HK_API HK_NODISCARD enum hk_status hk_signal_wait(struct hk_win *win, size_t offset,
						  enum hk_cmp cmp, uint64_t value,
						  uint64_t timeout_ns, uint64_t *seen_out);
/* One look, and one step of progress; whether the word compares so. */
HK_API bool hk_test_until(struct hk_group *group, const struct hk_until *until,
			  uint64_t *seen_out);

/* ---- order and completion ---- */

/* What the context sends later lands later, rank by rank. */
HK_API HK_NODISCARD enum hk_status hk_fence(struct hk_ctx *ctx);
/* Waits until all of the context has landed, and results of nbi calls are there. */
HK_API HK_NODISCARD enum hk_status hk_quiet(struct hk_ctx *ctx);
/* The same for what went to n ranks. */
HK_API HK_NODISCARD enum hk_status hk_quiet_ranks(struct hk_ctx *ctx, const uint32_t *ranks,
						  uint32_t n);

/* ---- a symmetric heap: a window, and an allocator in lockstep ----
 *
 * Every rank makes the same calls in the same order and gets the same offsets. Nothing is
 * sent: who returns from hk_heap_alloc() still has to wait (hk_barrier) before others
 * rely on what it writes there.
 */
struct hk_heap;			/* opaque */

HK_API HK_NODISCARD enum hk_status hk_heap_create(struct hk_group *group, size_t bytes,
						  const struct hk_win_opts *opts,
						  struct hk_heap **heap_out);
HK_API void hk_heap_free(struct hk_heap *heap);
HK_API struct hk_win *hk_heap_win(struct hk_heap *heap);
/* align: a power of two; 0: 64. HK_EINVAL (bytes 0), HK_ELIMIT (full), HK_ENOMEM. */
HK_API HK_NODISCARD enum hk_status hk_heap_alloc(struct hk_heap *heap, size_t bytes, size_t align,
						 void **at_out);
/* false: no block of the heap begins there. */
HK_API bool hk_heap_release(struct hk_heap *heap, void *at);
/* Bytes of the block that begins there; 0: none. */
HK_API size_t hk_heap_block(const struct hk_heap *heap, const void *at);
/* Offset in the window; false: not in the heap. */
HK_API bool hk_heap_offset(const struct hk_heap *heap, const void *at, size_t *offset_out);

#ifdef __cplusplus
}
#endif
#endif
