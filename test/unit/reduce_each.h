/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_each.h - the operations on a type and the instruction sets there are:
 *
 *	for (enum hk__isa isa = 0; each_isa(&isa); isa++)
 *		for (enum hk_redop op = 0; each_op(type, &op); op++)
 */
#ifndef HK_TEST_REDUCE_EACH_H
#define HK_TEST_REDUCE_EACH_H

#include "exec/reduce/reduce.h"

static inline bool each_op(enum hk_type type, enum hk_redop *op)
{
	while (*op < HK_REDOP_COUNT && !hk_redop_valid(type, *op))
		(*op)++;
	return *op < HK_REDOP_COUNT;
}

static inline bool each_isa(enum hk__isa *isa)
{
	while (*isa < HK__ISA_COUNT && !hk__reduce_find_isa(HK_TYPE_INT8, HK_REDOP_SUM, *isa))
		(*isa)++;
	return *isa < HK__ISA_COUNT;
}

#endif
