/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - the trace of a rank: the file it is, and the operations in it. Steps
 * and messages are exec's to write (exec/trace.h).
 */
#ifndef HK_GROUP_RECORD_TRACE_H
#define HK_GROUP_RECORD_TRACE_H

#include "exec/exec.h"
#include "exec/trace.h"

struct hk_group;
struct hk_request;
struct hk__world;

/* NULL where it cannot be, which is logged: the program goes on without. */
struct hk__trace *hk__trace_open(const struct hk__world *world, const char *dir, uint32_t capacity);
void hk__trace_close(struct hk__trace *trace, const struct hk_alloc *alloc); /* accepts NULL */

/* A collective of a group that has a trace, or a stage before it. */
struct hk__trace_begin {
	enum hk_coll coll;
	enum hk_trace_stage stage;
	uint64_t number;
	const struct hk__program *program;
	const struct hk__call *call;
};
void hk__trace_begin(struct hk_group *group, const struct hk__trace_begin *begin);
/* What has begun, if anything has, is over. */
void hk__trace_end(struct hk_group *group, enum hk_status status);
/* It has failed; what it waits for at the moment is written down. */
void hk__trace_fail(struct hk_group *group, enum hk_status status);
void hk__trace_transfer(const struct hk_request *request, enum hk_status status);

#endif
