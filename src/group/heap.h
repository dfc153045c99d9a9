/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - pages of a rank's own segment, handed out and taken back. */
#ifndef HK_GROUP_HEAP_H
#define HK_GROUP_HEAP_H

#include "base/base.h"

struct hk__heap {
	char *at;
	size_t bytes;
	struct hk__array blocks;	/* struct hk__heap_block, by place */
};

struct hk__heap_block {
	size_t at;
	size_t bytes;
};

void hk__heap_init(struct hk__heap *heap, const struct hk_alloc *alloc, void *at, size_t bytes);
void hk__heap_fini(struct hk__heap *heap);
/* Zeroed pages. HK_EINVAL (0 bytes), HK_ELIMIT, HK_ENOMEM. */
enum hk_status hk__heap_get(struct hk__heap *heap, size_t bytes, void **at_out);
/* The same from the system, where no rank shares memory; ends with free(). */
enum hk_status hk__heap_plain(size_t bytes, void **at_out);
bool hk__heap_put(struct hk__heap *heap, void *at);	/* false: not from here */

#endif
