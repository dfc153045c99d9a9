/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - definitions that all headers share: the allocator, common limits and the
 * version. Programs need not include it; every other header does.
 */
#ifndef HOCKET_BASE_H
#define HOCKET_BASE_H

#include <hocket/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_VERSION_MAJOR 0
#define HK_VERSION_MINOR 1
#define HK_VERSION_PATCH 0

/* "0.1.0": the version of the loaded library, not of the header. Thread-safe. */
HK_API const char *hk_version(void);

#define HK_NONE UINT32_MAX	/* no rank, no lane */
#define HK_RANKS_MAX (1u << 24)	/* ranks of a plan, or of a fabric */
#define HK_SLOTS_MAX 64u	/* messages a channel may hold */

/* Every transport offers at least this many per channel; built-in plans need no more. */
#define HK_SLOTS_MIN 2u

/*
 * An allocator, for all memory of an object; NULL in an option struct means malloc.
 * It is one function, as in Lua: size_new 0 frees, ptr NULL allocates.
 */
struct hk_alloc {
	void *(*resize)(void *ctx, void *ptr, size_t size_old, size_t size_new);
	void *ctx;
};

#ifdef __cplusplus
}
#endif
#endif
