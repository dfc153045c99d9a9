/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - `hocket trace` from inside: cmd_trace.c starts a command,
 * trace_read.c reads what its ranks wrote, trace_match.c finds the two ends of
 * every message and puts all ranks on one clock, trace_write.c writes the
 * timeline.
 */
#ifndef HK_CLI_TRACE_H
#define HK_CLI_TRACE_H

#include "cli.h"

#include <hocket/trace.h>

/* One file: what one rank did. */
struct trace_rank {
	struct hk_trace_head head;
	struct hk_trace_record *records; /* in the order they were written */
	uint64_t nrecords;
	uint64_t dropped;	/* older ones that are gone */
	uint64_t *in, *out;	/* by record: the arrow that ends, and begins; 0: none */
	uint32_t run;		/* which of the runs; they are numbered */
	uint32_t clock;		/* which of the clocks */
	int64_t shift_ns;	/* to be added to its times */
};

/* How clocks were brought together. */
enum trace_clock {
	TRACE_CLOCK_ONE,	/* there is but one */
	TRACE_CLOCK_MESSAGES,	/* by what went to and fro */
	TRACE_CLOCK_WALL	/* of some, by the time of day */
};

struct trace {
	struct trace_rank *ranks; /* by run and rank */
	uint32_t nranks;
	uint32_t nruns;
	uint32_t nclocks;
	enum trace_clock clock;
	uint64_t first_ns;	/* when all of it began, shifted */
	uint64_t narrows;
	uint64_t nlost;		/* ends of messages whose other end is not there */
};

/* Records in all that go into one timeline: what viewers can bear. */
#define TRACE_RECORDS_MAX 500000u

/* Reads all files of a folder. CLI_DONE, or what to exit with; it has been said. */
int trace_read(struct trace *trace, const char *path);
void trace_fini(struct trace *trace);
/* Fills in what is known of all together: arrows, clocks. */
int trace_match(struct trace *trace);
int trace_write(struct trace *trace, const char *path);

/* Ends of messages of a record; NULL where it has none. */
const struct hk_trace_message *trace_in(const struct hk_trace_record *record);
const struct hk_trace_message *trace_out(const struct hk_trace_record *record);

#endif
