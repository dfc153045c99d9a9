/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - what a step costs the rank that takes it.
 *
 * A step begins when its message is there and what it waits for is over, keeps
 * its lane (and, where lanes take turns, its rank) busy for hk__cost_step(), and
 * what it sends leaves when that is over. On its way the message takes the
 * wire's flight_ns and the path's delays, and its bytes (times the wire's
 * overhead) share links with all others. This is how src/exec works: a step that
 * receives and sends works straight from one slot to the other.
 */
#ifndef HK_MODEL_COST_H
#define HK_MODEL_COST_H

#include "fabric/fabric.h"

#include <hocket/plan.h>

struct hk__step_shape {
	enum hk_op op;
	bool keeps;		/* a step that receives and sends also has a dst */
	bool fresh;		/* what it receives was written during the operation */
	bool cold;		/* what it sends was not */
	bool ahead;		/* its lane only sends, and others of the rank receive */
	double bytes;		/* moved, of one slice */
	double footprint;	/* bytes the operation touches at this rank */
};

/* in and out are the wires it receives from and sends to, or NULL. */
double hk__cost_step(const struct hk__device *device, const struct hk__wire *in,
		     const struct hk__wire *out, const struct hk__step_shape *shape);

#endif
