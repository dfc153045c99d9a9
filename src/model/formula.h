/* SPDX-License-Identifier: Apache-2.0 */
/* formula.h - the algorithms' formulas (struct hk_algo_info), evaluated. */
#ifndef HK_MODEL_FORMULA_H
#define HK_MODEL_FORMULA_H

#include <stdint.h>

/* NaN where the text is no formula. */
double hk__formula(const char *text, uint32_t n, uint32_t nodes);

#endif
