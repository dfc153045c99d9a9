/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - what flat programs have a device do, for the model (model/device.h). */
#ifndef HK_EXEC_DEVICE_LOAD_H
#define HK_EXEC_DEVICE_LOAD_H

#include "exec/device/flatten.h"
#include "model/device.h"

/* Operands of a slice: elements read or written, as they are and as fp32. */
struct hk__flat_operands {
	double plain, wide;
	double line, line_wide;		/* with their flags */
};

/* Of any size. */
struct hk__flat_profile {
	uint32_t hops;			/* of a call, one behind the other */
	uint32_t longest;		/* operands of a slice, one behind the other */
	uint32_t moves;			/* of a slice, of the rank that has most */
	uint32_t together;		/* the most that go at once */
	uint32_t peers;			/* of the rank that tells most */
	struct hk__flat_operands most, all; /* of the rank that has most, and of all */
};

/* HK_ENOMEM. */
enum hk_status hk__flat_profile(const struct hk__flat *flat, bool lines,
				struct hk__flat_profile *profile_out);
/* For a call that has its shape; longest: elements of the longest chunk. */
void hk__flat_load(const struct hk__flat_profile *profile, const struct hk__flat_call *call,
		   uint64_t longest, struct hk__device_load *load_out);

#endif
