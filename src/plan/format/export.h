/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.h - a plan for simulators of others, which know sends, receives and
 * computation: what a step becomes there, and how many bytes it moves.
 *
 * A step becomes up to three actions, in this order: a receive, a calculation
 * (adding, copying, or nothing at all) and a send. In a lane each action waits
 * for the one before; whoever comes after a send only for its start, as here a
 * send is over when the message is on its way.
 */
#ifndef HK_PLAN_FORMAT_EXPORT_H
#define HK_PLAN_FORMAT_EXPORT_H

#include "plan/print/print.h"

#include <math.h>

enum hk__action { HK__ACTION_RECV, HK__ACTION_CALC, HK__ACTION_SEND, HK__ACTION_COUNT };

struct hk__export {
	const struct hk_plan *plan;
	struct hk_export_opts opts;
	double chunk;			/* bytes */
};

static inline enum hk_status hk__export_init(struct hk__export *export, const struct hk_plan *plan,
					     uint64_t bytes, const struct hk_export_opts *given,
					     struct hk_why *why)
{
	*export = (struct hk__export){ .plan = plan };
	if (hk__opts_copy(&export->opts, sizeof(export->opts), given) != HK_OK)
		return hk__why(why, HK_EINVAL, "options of an unknown version");
	if (plan->signals != HK_SIGNALS_NONE)
		return hk__why(why, HK_EINVAL,
			       "a one-sided plan: the format knows sends and receives, no puts");
	if (!(export->opts.copy_ns >= 0) || !(export->opts.reduce_ns >= 0))
		return hk__why(why, HK_EINVAL, "negative time: %g and %g ns per byte",
			       export->opts.copy_ns, export->opts.reduce_ns);
	if (export->opts.slices == 0)
		export->opts.slices = 1;
	export->chunk = (double)bytes / hk__plan_chunks(plan);
	return HK_OK;
}

/* Whole bytes of a slice of `count` chunks; the slices add up. */
static inline uint64_t hk__export_bytes(const struct hk__export *export, uint32_t count,
					uint32_t slice)
{
	double all = export->chunk * count, part = all / export->opts.slices;

	return (uint64_t)llround(part * (slice + 1)) - (uint64_t)llround(part * slice);
}

/* What a message has: none is empty, as others cannot send that. */
static inline uint64_t hk__export_message(const struct hk__export *export, uint32_t count,
					  uint32_t slice)
{
	uint64_t bytes = hk__export_bytes(export, count, slice);

	return bytes ? bytes : 1;
}

/* Both ends of a channel say the same: lanes of the sender and of the receiver. */
static inline uint32_t hk__export_tag(uint32_t from_lane, uint32_t to_lane)
{
	return from_lane * HK_LANES_MAX + to_lane;
}

static inline bool hk__export_has(enum hk_op op, enum hk__action action)
{
	if (action == HK__ACTION_RECV)
		return hk__op_receives(op);
	if (action == HK__ACTION_SEND)
		return hk__op_sends(op);
	return hk__op_reduces(op) || (!hk__op_receives(op) && !hk__op_sends(op));
}

static inline enum hk__action hk__export_first(enum hk_op op)
{
	return hk__op_receives(op)		     ? HK__ACTION_RECV
	       : hk__export_has(op, HK__ACTION_CALC) ? HK__ACTION_CALC
						     : HK__ACTION_SEND;
}

static inline enum hk__action hk__export_last(enum hk_op op)
{
	return hk__op_sends(op)			     ? HK__ACTION_SEND
	       : hk__export_has(op, HK__ACTION_CALC) ? HK__ACTION_CALC
						     : HK__ACTION_RECV;
}

/* How long the calculation of a step takes. */
static inline double hk__export_calc_ns(const struct hk__export *export, const struct hk_step *step,
					uint32_t slice)
{
	double bytes = (double)hk__export_bytes(export, step->count, slice);

	if (step->op == HK_OP_NOP)
		return 0;
	return bytes * (hk__op_reduces(step->op) ? export->opts.reduce_ns : export->opts.copy_ns);
}

#endif
