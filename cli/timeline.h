/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - writes what Perfetto and Chrome open: JSON of events, each with a
 * phase, a name, a process (a rank), a thread of it (a lane) and arguments.
 */
#ifndef HK_CLI_TIMELINE_H
#define HK_CLI_TIMELINE_H

#include "cli.h"

struct timeline {
	FILE *file;
	const char *command;	/* for messages */
	const char *path;
	int digits;		/* of microseconds, behind the point */
	uint64_t nevents;
	uint32_t nargs;		/* of the event that is being written */
};

struct timeline_event {
	char phase;		/* X: a slice; b, e: ends of one beside others; s, f: of an arrow */
	const char *category;
	const char *name;
	uint32_t pid, tid;
	double at_us, for_us;	/* how long: of slices alone */
	uint64_t id;		/* of b, e, s and f: the other end has the same */
};

/* CLI_DONE, or what to exit with; it has been said. */
int timeline_open(struct timeline *timeline, const char *command, const char *path);
/* What the file says beside its events: name, a value in JSON, name, ..., NULL. */
int timeline_close(struct timeline *timeline, const char *const *other);

void timeline_process(struct timeline *timeline, uint32_t pid, const char *name);
void timeline_thread(struct timeline *timeline, uint32_t pid, uint32_t tid, const char *name);

/* Begins an event; its arguments follow, each once, and then its end. */
void timeline_begin(struct timeline *timeline, const struct timeline_event *event);
void timeline_number(struct timeline *timeline, const char *name, double value);
void timeline_text(struct timeline *timeline, const char *name, const char *value);
void timeline_end(struct timeline *timeline);

#endif
