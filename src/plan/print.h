/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - what the writers of plans share: which fields an operation has,
 * which ranks are wanted, and how a stream ends. All of them stream: no writer
 * but the picture and the graph holds more than one step at a time.
 */
#ifndef HK_PLAN_PRINT_H
#define HK_PLAN_PRINT_H

#include "plan/plan.h"

/* The fields of a step that mean something for an operation. */
enum hk__field {
	HK__FIELD_FROM = 1 << 0,
	HK__FIELD_TO = 1 << 1,
	HK__FIELD_SRC = 1 << 2,
	HK__FIELD_DST = 1 << 3,
	HK__FIELD_COUNT = 1 << 4,
	HK__FIELD_DST_NEEDED = 1 << 5	/* dst may not be left out */
};

static inline unsigned hk__op_fields(enum hk_op op)
{
	unsigned fields = HK__FIELD_COUNT;

	if (op == HK_OP_NOP || hk__op_reserved(op))
		return 0;
	if (hk__op_receives(op))
		fields |= HK__FIELD_FROM;
	if (hk__op_sends(op))
		fields |= HK__FIELD_TO;
	if (op == HK_OP_SEND || op == HK_OP_COPY || hk__op_reduces(op))
		fields |= HK__FIELD_SRC;
	if (op != HK_OP_SEND)
		fields |= HK__FIELD_DST;
	if (!hk__op_sends(op))
		fields |= HK__FIELD_DST_NEEDED;
	return fields;
}

/* The ranks to print: first to end - 1. HK_EINVAL where there is no such rank. */
static inline enum hk_status hk__print_ranks(const struct hk_plan *plan,
					     const struct hk_print_opts *given,
					     uint32_t *first_out, uint32_t *end_out)
{
	struct hk_print_opts opts = HK_PRINT_OPTS_INIT;

	if (given && hk__opts_copy(&opts, sizeof(opts), given) != HK_OK)
		return HK_EINVAL;
	if (opts.rank != HK_NONE && opts.rank >= plan->n)
		return HK_EINVAL;
	*first_out = opts.rank == HK_NONE ? 0 : opts.rank;
	*end_out = opts.rank == HK_NONE ? plan->n : opts.rank + 1;
	return HK_OK;
}

/* What was written may fail as late as here, when it leaves the buffer. */
static inline enum hk_status hk__print_end(FILE *file)
{
	return fflush(file) != 0 || ferror(file) ? HK_EIO : HK_OK;
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
