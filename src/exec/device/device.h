/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - performs plans on a GPU, for ranks that are threads of one process.
 *
 * Owns the memory that ranks share there, the kernels, and the programs of plans,
 * which it makes when they are first asked for. A call is a launch: it returns
 * at once, and needs no host to go on. What goes wrong later is reported in
 * memory of the host.
 */
#ifndef HK_EXEC_DEVICE_DEVICE_H
#define HK_EXEC_DEVICE_DEVICE_H

#include "exec/device/flatten.h"

struct hk__gpu;

struct hk__gpu_spec {
	uint32_t n;			/* ranks */
	int ordinal;			/* of the GPU */
	uint32_t sms;			/* that all ranks use together; 0: all of it */
	const struct hk_alloc *alloc;
};

enum hk_status hk__gpu_create(const struct hk__gpu_spec *spec, struct hk_why *why,
				 struct hk__gpu **device_out);
/* Waits for what still runs. Accepts NULL. */
void hk__gpu_destroy(struct hk__gpu *device);

/* A plan that the device knows: the caller's own, or one that it makes. */
struct hk__gpu_plan {
	enum hk_coll coll;
	struct hk_plan_opts opts;	/* algo is the library's name of it */
	const struct hk_plan *given;	/* NULL: by opts; borrowed until the device is destroyed */
};
/* Thread-safe, and so is hk__gpu_run for different ranks. */
enum hk_status hk__gpu_plan(struct hk__gpu *device, const struct hk__gpu_plan *what,
			       struct hk_why *why, const struct hk_plan **plan_out);

struct hk__gpu_call {
	const struct hk_plan *plan;
	uint32_t rank;
	const void *in;
	void *out;
	struct hk_sizes sizes;		/* read before this returns */
	enum hk_type type;
	enum hk_redop op;
	const void *factor;		/* of premulsum; in memory of the host */
	uint64_t timeout_ns;		/* from when it begins on the device */
	void *stream;			/* NULL: as if on the legacy default stream */
};

enum hk_status hk__gpu_run(struct hk__gpu *device, const struct hk__gpu_call *call,
			      struct hk_why *why);

/* Whether a rank's call has failed on the device, and how. */
bool hk__gpu_failed(const struct hk__gpu *device, uint32_t rank,
		       struct hk__flat_report *report_out);
/* What waits on the device for this rank gives up soon. */
void hk__gpu_abort(struct hk__gpu *device, uint32_t rank);

#endif
