/* SPDX-License-Identifier: Apache-2.0 */
/* boot_ranks.h - ranks as threads of a test: one job, at 127.0.0.1, on host "a". */
#ifndef HK_TEST_BOOT_RANKS_H
#define HK_TEST_BOOT_RANKS_H

#include "boot/boot.h"
#include "boot/conn.h"
#include "harness.h"

#include <pthread.h>

#define SEGMENT_BYTES ((size_t)1 << 20)
#define SECOND UINT64_C(1000000000)
#define RANKS_MAX 64u

struct member {
	struct hk__boot_spec spec;
	struct hk__boot boot;
	struct hk_why why;
	enum hk_status status;
	unsigned delay_ms;
	pthread_t thread;
};

extern struct member members[RANKS_MAX];

/* Each time another job, with ports made from its name. */
void members_init(uint32_t n);
void members_address(uint32_t n, const char *host, uint16_t port);
/* Joins, in this thread. */
void *member_run(void *arg);
/* Threads for members from ... to - 1. */
void members_start(uint32_t from, uint32_t to);
void members_wait(uint32_t from, uint32_t to);
void members_run(uint32_t n);		/* both, for all */
void members_check_ok(uint32_t n);
void members_leave(uint32_t n);		/* those who had joined */

/* Descriptors of this process. */
unsigned fds_open(void);
/* A port that was free a moment ago, on that address; 0: no such address. */
uint16_t port_free(const char *host);
/*
 * Nodes, locals, memory, bells and listeners are as they have to be, where
 * host_of[r] is the host of rank r, a letter.
 */
void check_group(uint32_t n, const char *host_of);

#endif
