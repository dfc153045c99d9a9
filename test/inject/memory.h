/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - an allocator that counts, and whose N-th allocation fails: of one
 * thread, from the moment it is armed.
 */
#ifndef HK_TEST_INJECT_MEMORY_H
#define HK_TEST_INJECT_MEMORY_H

#include <hocket/plan.h>

#include <pthread.h>
#include <stdatomic.h>

struct memory {
	struct hk_alloc alloc;
	_Atomic long blocks;		/* that nobody has freed */
	_Atomic bool armed;
	pthread_t who;			/* whose allocations are counted */
	uint64_t calls;
	uint64_t fail_at;		/* 0: none does */
	bool hit;			/* it has failed */
};

void memory_init(struct memory *memory);
/* The caller's allocations count from here on, and the fail_at-th fails. */
void memory_arm(struct memory *memory, uint64_t fail_at);
void memory_disarm(struct memory *memory);

#endif
