/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - what a step costs the rank that takes it. */
#include "model/cost.h"

#include <math.h>

double hk__cost_step(const struct hk__device *device, const struct hk__wire *in,
		     const struct hk__wire *out, const struct hk__step_shape *shape)
{
	bool reduces = shape->op == HK_OP_RECV_REDUCE || shape->op == HK_OP_RECV_REDUCE_SEND ||
		       shape->op == HK_OP_REDUCE;
	double touched = shape->footprint, taken = 0, given = 0, own = 0, ns = device->step_ns;

	if (shape->op == HK_OP_NOP || shape->op == HK_OP_WAIT)
		return ns;
	if (in) {
		ns += hk__curve_at(&in->recv_ns, shape->bytes);
		taken = hk__curve_at(&in->recv_byte_ns, touched);
		if (shape->fresh)
			taken += hk__curve_at(&in->fresh_byte_ns, touched);
	}
	if (out) {
		ns += hk__curve_at(&out->send_ns, shape->bytes);
		given = hk__curve_at(&out->send_byte_ns, touched);
		if (shape->cold)
			given += hk__curve_at(&out->cold_byte_ns, touched);
		if (shape->ahead)
			given += hk__curve_at(&out->ahead_byte_ns, touched);
	}
	if (reduces)
		own = hk__curve_at(&device->reduce_ns, touched);
	if ((!in && !out && !reduces) || (in && out && shape->keeps))
		own += hk__curve_at(&device->copy_ns, touched);
	if ((in && in->kernel) || (out && out->kernel))
		return ns + shape->bytes * (own + taken + given);
	/* One pass over the bytes does all of it, at the pace of its slowest part. */
	return ns + shape->bytes * fmax(own, fmax(taken, given));
}
