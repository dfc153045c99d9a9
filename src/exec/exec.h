/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h - performs plans: one executor for all of them.
 *
 * A program is one rank's part of a plan, bound to channels of a net. It is
 * made once and run again and again, with other buffers, sizes, types and
 * operations. It performs exactly what was proved: lanes in step order, a
 * step after its dependency, a message held until its step is over (I3), and
 * every slice of a chunk in its own bytes, scratch included (I10).
 *
 * A message is the chunks of its step, slice by slice. Where a step moves
 * several, their lengths go ahead of them: blocks of a v form that a rank only
 * passes on have lengths it does not know. Where a rank does know a length, a
 * message of another one is HK_EIO.
 *
 * What comes before a plan and after it (a factor on the input, the division
 * of an average) is the caller's.
 */
#ifndef HK_EXEC_EXEC_H
#define HK_EXEC_EXEC_H

#include "net/net.h"
#include "plan/plan.h"

#include <hocket/type.h>

struct hk__program;

struct hk__program_spec {
	const struct hk_plan *plan;	/* borrowed */
	struct hk_net *net;		/* borrowed */
	uint32_t rank;
	uint32_t context;		/* the same on all ranks, for this program alone */
	uint32_t slots;			/* of a channel; at least what the plan declares */
	uint32_t slot_bytes;
	const struct hk_alloc *alloc;
};

enum hk_status hk__program_create(const struct hk__program_spec *spec,
				  struct hk__program **program_out);
void hk__program_destroy(struct hk__program *program);	/* accepts NULL; not while it runs */

/* One operation. Sizes, type and operation are the same on all ranks. */
struct hk__call {
	const void *in;			/* slots side by side, in order */
	void *out;			/* in place: `in` lies where the collective says */
	struct hk_sizes sizes;		/* borrowed until the operation is over */
	enum hk_type type;
	enum hk_redop op;		/* of collectives that reduce */
};

/* Starts an operation; the one before is over. HK_ENOMEM, HK_EINVAL, HK_ELIMIT. */
enum hk_status hk__program_start(struct hk__program *program, const struct hk__call *call);

/* Moves what can be moved. HK_OK: over. HK_INPROGRESS: call again. */
enum hk_status hk__program_poll(struct hk__program *program);

/* Polls until it is over, sleeping when there is nothing to do; HK_ETIMEDOUT. */
enum hk_status hk__program_wait(struct hk__program *program, uint64_t timeout_ns);

#endif
