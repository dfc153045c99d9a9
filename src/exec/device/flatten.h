/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flatten.h - from a plan to flat programs (flat.h), for all ranks at once.
 *
 * Needs no device: what it makes is performed by kernel.cu, and by tests.
 */
#ifndef HK_EXEC_DEVICE_FLATTEN_H
#define HK_EXEC_DEVICE_FLATTEN_H

#include "exec/device/flat.h"
#include "plan/plan.h"

#include <hocket/type.h>

struct hk__flat_spec {
	const struct hk_plan *plan;	/* proved */
	bool wide;			/* HK__FLAT_WIDE */
	bool lines;			/* all messages by lines */
	bool apart;			/* no rank touches another's in or out */
	const struct hk_alloc *alloc;
};

struct hk__flat {
	const struct hk_alloc *alloc;
	uint32_t n;
	struct hk__flat_program **programs; /* by rank */
	uint32_t bufs, lines;		/* of the rank that needs most */
};

/* HK_EINVAL: not a plan that can be flattened (sendrecv). HK_ELIMIT, HK_ENOMEM. */
enum hk_status hk__flat_create(const struct hk__flat_spec *spec, struct hk_why *why,
			       struct hk__flat **flat_out);
void hk__flat_destroy(struct hk__flat *flat);	/* accepts NULL */

/* ---- shape.c: a call of some size ---- */

/* What segments were made for. */
struct hk__flat_limits {
	uint32_t blocks;		/* of a rank, up to HK__FLAT_BLOCKS */
	uint64_t slice_min;		/* bytes of a chunk that are worth a block */
	uint64_t slice_max;		/* bytes of a slice of one; 0: any */
	uint64_t lines_bytes;		/* of a block, for one turn */
	uint64_t bufs_bytes;		/* of a block */
};

uint64_t hk__flat_segment_bytes(const struct hk__flat_limits *limits);
uint64_t hk__flat_lot_bytes(const struct hk__flat_limits *limits); /* of one block */
/* For tests: as so many calls, of all ranks, leave it. */
void hk__flat_lot_after(uint64_t epoch, struct hk__flat_lot *lot_out);

/*
 * Fills what follows from sizes, type and limits: the same on all ranks. type,
 * mode and n are set. HK_ELIMIT: lines, or buffers, do not fit.
 */
enum hk_status hk__flat_shape(const struct hk__flat *flat, const struct hk_plan *plan,
			      const struct hk_sizes *sizes, const struct hk__flat_limits *limits,
			      struct hk__flat_call *call);

#endif
