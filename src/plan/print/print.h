/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - what the writers of plans share: which fields an operation has,
 * which ranks are wanted, and how a stream ends. All of them stream: no writer
 * but the picture and the graph holds more than one step at a time.
 */
#ifndef HK_PLAN_PRINT_PRINT_H
#define HK_PLAN_PRINT_PRINT_H

#include "plan/plan.h"

/* The ranks to print: first to end - 1. HK_EINVAL if there is no such rank. */
static inline enum hk_status hk__print_ranks(const struct hk_plan *plan,
					     const struct hk_print_opts *given, struct hk_why *why,
					     uint32_t *first_out, uint32_t *end_out)
{
	struct hk_print_opts opts;

	if (hk__opts_copy(&opts, sizeof(opts), given) != HK_OK)
		return hk__why(why, HK_EINVAL, "options of an unknown version");
	if (opts.one_rank && opts.rank >= plan->n)
		return hk__why(why, HK_EINVAL, "rank %u is not one of the %u ranks (0 to %u)",
			       opts.rank, plan->n, plan->n - 1);
	*first_out = opts.one_rank ? opts.rank : 0;
	*end_out = opts.one_rank ? opts.rank + 1 : plan->n;
	return HK_OK;
}

/* What was written may fail as late as here, when it leaves the buffer. */
static inline enum hk_status hk__print_end(FILE *file, struct hk_why *why)
{
	if (fflush(file) == 0 && !ferror(file))
		return HK_OK;
	return hk__why(why, HK_EIO, "cannot write the plan");
}

/* "allreduce ring: 4 ranks, 4 parts, ..." (print_table.c). */
void hk__print_title(struct hk__text *text, const struct hk_plan *plan);

/*
 * Slots as "in[3]", "out[6..7,0..1]", "in[1,3,5,...]"; nothing where the span
 * has no buffer. At most HK__SLOTS_TEXT_MAX characters (print_table.c).
 */
#define HK__SLOTS_TEXT_MAX 56
void hk__print_slots(struct hk__text *text, const struct hk_plan *plan, uint32_t rank,
		     const struct hk_span *span, uint32_t count);

#endif
