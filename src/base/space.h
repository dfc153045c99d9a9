/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - hands out pieces of a space of numbers, of memory that is somewhere else. The
 * same calls in the same order give the same places: ranks of a group do this in lockstep.
 */
#ifndef HK_BASE_SPACE_H
#define HK_BASE_SPACE_H

#include "base/base.h"

struct hk__space_block {
	size_t at;
	size_t bytes;			/* as taken */
};

struct hk__space {
	size_t first, end;
	struct hk__array blocks;	/* struct hk__space_block, by place */
};

void hk__space_init(struct hk__space *space, const struct hk_alloc *alloc, size_t first,
		    size_t end);
void hk__space_fini(struct hk__space *space);
/* align: a power of two. HK_EINVAL (0 bytes), HK_ELIMIT (no such piece is left), HK_ENOMEM. */
enum hk_status hk__space_get(struct hk__space *space, size_t bytes, size_t align, size_t *at_out);
bool hk__space_put(struct hk__space *space, size_t at);	/* false: no block begins there */
size_t hk__space_block(const struct hk__space *space, size_t at); /* its bytes; 0: none there */

#endif
