/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - what a rank did, as it wrote it down: the layout of the files that
 * HOCKET_TRACE asks for, and that `hocket trace` makes a timeline of.
 *
 * A file is a head, and room for records, of which the last are kept: record i
 * lies at i modulo room. A rank writes a record and then counts it, into memory
 * that is the file, so all of them are there however the process ends; the
 * place of the record that comes next may hold half of one. Ranks are those of
 * the group of all; numbers are of the machine that wrote them.
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
	uint32_t room;			/* records */
	uint64_t count;			/* records so far; those that do not fit are gone */
	uint64_t run;			/* the same on all ranks that met, and nowhere else */
	uint32_t rank;
	uint32_t nranks;
	uint64_t pid;
	uint64_t opened_ns;		/* by the clock that records are timed by */
	uint64_t wall_ns;		/* then, since 1970 */
	char host[64];			/* its name */
	char clock[64];			/* files that say the same share a clock */
};

enum hk_trace_kind {
	HK_TRACE_STEP = 1,		/* a step is over */
	HK_TRACE_WAIT,			/* a step that was waited for when its group failed */
	HK_TRACE_BEGIN,			/* of a collective, or of a stage before it */
	HK_TRACE_END,
	HK_TRACE_MESSAGE,		/* one of hk_send or hk_recv */
	HK_TRACE_TRANSFER		/* all of hk_send or hk_recv */
};

/* What ranks do before a collective, if they have to, and the collective. */
enum hk_trace_stage {
	HK_TRACE_AGREE,			/* do all call the same? */
	HK_TRACE_REPORT,		/* they do not: who calls what? */
	HK_TRACE_TRIAL,			/* which way to copy was the fastest? */
	HK_TRACE_RUN
};

/* A message at one of its ends. */
struct hk_trace_message {
	uint64_t number;		/* in its channel, from 1; 0: there is none */
	uint32_t peer;			/* the rank at the other end; WAIT: or HK_NONE, */
	uint32_t lane;			/* and its lane; HK_NONE: hk_recv */
	uint32_t bytes;
	uint32_t reserved;
};

struct hk_trace_step {
	uint64_t since_ns;		/* it was waited for; 0: it was not */
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
	uint64_t context;		/* which of the rank's groups; 0: the one of all */
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
