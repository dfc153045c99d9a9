/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_oracle.h - what type.h promises, one element at a time and as slowly
 * as it is defined: small floats by formula, rounding by search for the nearest.
 * Shares nothing with src/exec/reduce.
 *
 * An element travels as its bits, in the low end of a uint64_t.
 */
#ifndef HK_TEST_REDUCE_ORACLE_H
#define HK_TEST_REDUCE_ORACLE_H

#include <hocket/type.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* fp16, bf16 and both fp8: those with an accumulator of their own, fp32. */
bool oracle_is_small(enum hk_type type);
enum hk_type oracle_acc(enum hk_type type);

/* An element as one of the accumulator, exactly, and back, rounded. */
uint64_t oracle_widen(enum hk_type type, uint64_t bits);
uint64_t oracle_narrow(enum hk_type type, uint64_t acc);

/* Of two accumulators, or two elements of a type that is not small. */
uint64_t oracle_op(enum hk_type acc, enum hk_redop op, uint64_t a, uint64_t b);
uint64_t oracle_quot(enum hk_type acc, uint64_t a, uint32_t n);

/* Two elements to an accumulator. */
uint64_t oracle_fold(enum hk_type type, enum hk_redop op, uint64_t a, uint64_t b);

/* Element i of a row. */
uint64_t oracle_get(const void *row, size_t size, size_t i);
void oracle_put(void *row, size_t size, size_t i, uint64_t bits);

#endif
