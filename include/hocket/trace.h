/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - the layout of trace files, which HOCKET_TRACE enables and `hocket trace`
 * turns into a timeline.
 *
 * A file is a head and a ring of `capacity` records, which keeps the newest: record i is
 * at i modulo capacity. The file is mapped. A rank writes a record and then increments
 * the count, so all counted records survive however the process ends; the next record
 * may be half written. Ranks are those of the group of all ranks; numbers are in the
 * byte order of the machine that wrote them.
 */
#ifndef HOCKET_TRACE_H
#define HOCKET_TRACE_H

#include <hocket/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_TRACE_MAGIC "HKTRACE"
#define HK_TRACE_VERSION 2u

struct hk_trace_head {
	char magic[8];			/* HK_TRACE_MAGIC */
	uint32_t version;
	uint32_t head_bytes;		/* where records begin */
	uint32_t record_bytes;
	uint32_t capacity;		/* records */
	uint64_t count;			/* records so far; the oldest are overwritten */
	uint64_t run;			/* identifies the run: equal on all its ranks only */
	uint32_t rank;
	uint32_t nranks;
	uint64_t pid;
	uint64_t opened_ns;		/* when it was opened, on the clock of the records */
	uint64_t wall_ns;		/* the same moment, since 1970 */
	char host[64];			/* host name */
	char clock[64];			/* files with equal values share a clock */
};

enum hk_trace_kind {
	HK_TRACE_STEP = 1,		/* a step has completed */
	HK_TRACE_WAIT,			/* a step was still waiting when its group failed */
	HK_TRACE_BEGIN,			/* of a collective, or of a stage before it */
	HK_TRACE_END,
	HK_TRACE_MESSAGE,		/* one of hk_send or hk_recv */
	HK_TRACE_TRANSFER		/* all of hk_send or hk_recv */
};

/* The stages of a collective: those before it, if needed, and the collective itself. */
enum hk_trace_stage {
	HK_TRACE_AGREE,			/* the ranks compare their calls */
	HK_TRACE_REPORT,		/* the calls differ: the ranks exchange them */
	HK_TRACE_TUNE,			/* the ranks choose the fastest copy method */
	HK_TRACE_RUN
};

/* A message at one of its ends. */
struct hk_trace_message {
	uint64_t number;		/* in its channel, from 1; 0: no message */
	uint32_t peer;			/* the rank at the other end; WAIT: or HK_NONE, */
	uint32_t lane;			/* and its lane; HK_NONE: hk_recv */
	uint32_t bytes;
	uint32_t reserved;
};

struct hk_trace_step {
	uint64_t since_ns;		/* when it began to wait; 0: it did not */
	uint32_t lane;			/* of a message of hk_send or hk_recv: its tag */
	uint32_t step;
	uint32_t slice;
	uint32_t op;			/* enum hk_op */
	struct hk_trace_message in, out;
};

struct hk_trace_op {
	uint64_t count;			/* elements; of a transfer: bytes */
	uint32_t coll;			/* enum hk_coll; of a transfer: 1 if it sends */
	uint32_t type;			/* enum hk_type */
	uint32_t peer;			/* of a transfer */
	int32_t status;			/* END, TRANSFER */
	uint32_t stage;			/* enum hk_trace_stage */
	uint32_t reserved;
	char algo[24];
};

struct hk_trace_record {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t number;		/* of the operation in its group */
	uint64_t context;		/* identifies the group; 0: the group of all ranks */
	uint32_t kind;			/* enum hk_trace_kind */
	uint32_t reserved;
	union {
		struct hk_trace_step step;
		struct hk_trace_op op;
	} is;
};

#ifdef __cplusplus
}
#endif
#endif
