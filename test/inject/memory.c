/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - see memory.h. */
#include "inject/memory.h"

#include "harness.h"

static void *memory_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct memory *memory = ctx;

	(void)size_old;
	if (size_new && atomic_load(&memory->armed) && pthread_equal(pthread_self(), memory->who) &&
	    ++memory->calls == memory->fail_at) {
		memory->hit = true;
		return NULL;
	}
	if (!size_new) {
		atomic_fetch_sub(&memory->blocks, ptr != NULL);
		free(ptr);
		return NULL;
	}
	void *block = realloc(ptr, size_new);
	CHECK(block);
	atomic_fetch_add(&memory->blocks, ptr == NULL);
	return block;
}

void memory_init(struct memory *memory)
{
	*memory = (struct memory){ .alloc = { memory_resize, memory } };
}

void memory_arm(struct memory *memory, uint64_t fail_at)
{
	memory->who = pthread_self();
	memory->calls = 0;
	memory->fail_at = fail_at;
	memory->hit = false;
	atomic_store(&memory->armed, fail_at != 0);
}

void memory_disarm(struct memory *memory)
{
	atomic_store(&memory->armed, false);
}
