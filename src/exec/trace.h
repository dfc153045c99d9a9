/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - writes down what a rank does: one record for each step, message and
 * operation (hocket/trace.h), into memory that is a file. Whoever performs
 * programs looks for a trace, once a step, and there mostly is none.
 *
 * One thread writes: the one that touches nets.
 */
#ifndef HK_EXEC_TRACE_H
#define HK_EXEC_TRACE_H

#include "net/net.h"

#include <hocket/trace.h>

struct hk__program;
struct hk__transfer;
struct bound_lane;

struct hk__trace {
	struct hk_trace_head *head;
	struct hk_trace_record *records; /* head->capacity of them */
	uint32_t capacity;
	uint32_t next;			/* where the next one goes */
	uint64_t count;
};

/* The next record, of zeroes but for these; it counts when it is posted. */
struct hk_trace_record *hk__trace_record(struct hk__trace *trace, enum hk_trace_kind kind,
					 uint64_t context, uint64_t number);
void hk__trace_post(struct hk__trace *trace);

/* After a lane has tried its step, which began at start: done, or not yet. */
void hk__trace_step(struct hk__program *program, struct bound_lane *lane, uint64_t start,
		    enum hk_status status);
/* The steps that a program waits for, when it is given up. */
void hk__trace_waits(const struct hk__program *program);
/* A message of a transfer, of that many bytes, that was tried at start. */
void hk__trace_message(struct hk__transfer *transfer, uint64_t start, uint32_t bytes, bool done);

#endif
