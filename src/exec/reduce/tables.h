/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - the tables there may be: kernels.inc defines one in each source
 * that includes it, reduce.c chooses among those that were compiled.
 */
#ifndef HK_EXEC_REDUCE_TABLES_H
#define HK_EXEC_REDUCE_TABLES_H

#include "exec/reduce/reduce.h"

typedef const struct hk__reduce hk__reduce_table[HK_TYPE_COUNT][HK_REDOP_COUNT];

extern hk__reduce_table hk__reduce_scalar;
extern hk__reduce_table hk__reduce_neon;
extern hk__reduce_table hk__reduce_sse2;
extern hk__reduce_table hk__reduce_avx2;
extern hk__reduce_table hk__reduce_avx512;

#endif
