/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.h - what a child of fork(2) does not keep.
 *
 * A connection ends for its peer when the last descriptor of it is closed. A
 * child that outlives its parent would keep all of them open, and the peers
 * would not learn of the death. So every descriptor of the library is noted when
 * it is opened (but of files that a function opens and closes again), and a child
 * closes those that are noted. Noting and opening are one to a thread that forks
 * meanwhile: it waits in between.
 *
 * Children by vfork(2), posix_spawn(3), _Fork(3) or clone(2) run no handlers: they
 * keep descriptors until they execute a program (all are close-on-exec).
 */
#ifndef HK_BASE_FORK_H
#define HK_BASE_FORK_H

#include <stdint.h>

/* How many forks lie between this process and the first one that loaded the library. */
extern uint32_t hk__fork_depth;

/* From now on forks are noticed. Once is enough; every hk__fd_open does it as well. */
void hk__fork_watch(void);

/* Nothing forks between these two. Not nested; nothing in between may block or fork. */
void hk__fork_hold(void);
void hk__fork_release(void);

/* While forks are held: notes an open descriptor. -1, and it is closed: errno is ENOMEM. */
int hk__fd_note(int fd);
/* Releases; what hk__fd_note says. Negative ones pass, with errno as it is. */
int hk__fd_opened(int fd);
void hk__fd_close(int fd);

/* A descriptor from a system call that does not block, as `call` returns it. */
#define hk__fd_open(call) (hk__fork_hold(), hk__fd_opened(call))

#endif
