/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_rows.h - operands for tests of reductions: what is likely to go wrong. */
#ifndef HK_TEST_REDUCE_ROWS_H
#define HK_TEST_REDUCE_ROWS_H

#include <hocket/type.h>

#include <stddef.h>
#include <stdint.h>

/* Two rows of elements and one of accumulators, of the same length. */
struct rows {
	enum hk_type type;
	size_t size;
	size_t acc_size;
	size_t count;
	void *a;
	void *b;
	void *acc;
};

void rows_init(struct rows *rows, enum hk_type type, size_t count);
void rows_fini(struct rows *rows);

/* Element i of both; of the accumulators, one that is near to a and hard to round. */
void rows_set(struct rows *rows, size_t i, uint64_t a, uint64_t b, uint64_t *seed);

/*
 * All pairs, where an element has 8 bits; with 16 bits all elements with many;
 * above, all pairs of special ones, then random ones.
 */
void rows_make(struct rows *rows, enum hk_type type, uint64_t *seed);

#endif
