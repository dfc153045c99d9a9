/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h - ranks seen from outside, through their flight recorders
 * (hocket/record.h): those of processes that run here, of processes of other
 * hosts, and of files that ranks have left. What is found out about them,
 * `hocket doctor` and `hocket top` say alike.
 *
 * Ranks are the job's here, unless they are seats: the numbers of a group.
 */
#ifndef HK_CLI_RECORDS_H
#define HK_CLI_RECORDS_H

#include "cli.h"

#include <sys/types.h>

/* ---- ranks: records.c ---- */

struct rank_seen {
	struct hk_record *record;	/* owned */
	struct hk_record *before;	/* as it was a while ago; NULL: not looked at; owned */
	double between_s;		/* how long ago */
	char state;			/* of its process, as in /proc/PID/stat; 0: of a file */
	pid_t pid;			/* as this host counts, or the one it was found on */
	char *path;			/* of a file; owned */
};

struct records {
	struct rank_seen *at;
	size_t count;
};

/* Takes what it is given, even the record of a rank that is there already: the newer stays. */
void records_add(struct records *records, const struct rank_seen *seen);
void records_fini(struct records *records);
/* By run, the newest first, then by rank. */
void records_sort(struct records *records);
/* How many of them, from the first on, are of the same run. */
size_t records_run(const struct rank_seen *at, size_t count);
const struct rank_seen *records_find_rank(const struct rank_seen *at, size_t count, uint32_t rank);

/* When something was, in nanoseconds since 1970. */
uint64_t record_unix_ns(const struct hk_record *record, uint64_t ns);
/* How long that had been so when the record was read, in seconds; below 0: not known. */
double record_since(const struct hk_record *record, uint64_t ns);
/* Whether an operation of the group is not over. */
bool row_is_busy(const struct hk_record_group *row);
/* Bytes of all operations so far. */
uint64_t row_bytes(const struct hk_record *record, const struct hk_record_group *row);
/* The row of the same group in another record; NULL: none. */
const struct hk_record_group *row_find(const struct hk_record *record,
				       const struct hk_record_group *like);
/* The entry of a collective; NULL: it is not there any more. */
const struct hk_record_op *row_entry(const struct hk_record *record,
				     const struct hk_record_group *row, uint64_t number);
/* Operations and bytes of a rank so far, and per second since `before`. */
struct rank_rates {
	uint64_t operations, bytes;
	double operations_s, bytes_s;
};
void rank_rates(const struct rank_seen *seen, struct rank_rates *rates_out);
/* "running", "stopped", "ended", ... */
const char *rank_state_name(char state);

/* ---- texts: records_text.c ---- */

struct text {
	char *at;		/* owned */
	size_t len;
};

void text_add(struct text *text, const char *fmt, ...) HK_PRINTF(2, 3);
void text_fini(struct text *text);
/* "allreduce(4096 x fp32, sum)". */
void text_add_call(struct text *text, const struct hk_record_op *entry);
/* "rank 3", "ranks 0 to 5, 7 and 9". In order; they are sorted. */
void text_add_ranks(struct text *text, uint32_t *ranks, size_t count);
/* "0.25 s", "12 s", "3 min", "2 h". */
void text_add_time(struct text *text, double seconds);

/* ---- where they are found: records_find.c, records_read.c ---- */

/* Those of the processes of this user. */
void records_find(struct records *records);
/* Looks again at those that were found: what was read becomes `before`. */
void records_look_again(struct records *records);

/* Files, and those of directories. What cannot be used is said; how many were. */
size_t records_read(struct records *records, const char *command, char *const *paths);

/* ---- what they say: diagnose.c, diagnose_say.c ---- */

/* A group, its ranks by seat. */
struct crew {
	const struct rank_seen *ranks;	/* of the run */
	size_t nranks;
	uint64_t context;
	uint32_t first, size;
	struct seat {
		const struct rank_seen *seen;	/* NULL: nothing is known of it */
		const struct hk_record_group *row;
		uint32_t rank;			/* HK_NONE: not known */
	} *seats;
};

enum chain_end {
	CHAIN_MISSING,		/* there is no record of that rank */
	CHAIN_GONE,		/* it is dead, or lost */
	CHAIN_ABSENT,		/* it has not called the operation */
	CHAIN_STILL,		/* it has, and waits for no rank */
	CHAIN_SENT,		/* it waits for what a rank has done that is further */
	CHAIN_CIRCLE		/* it was on the way already */
};

enum finding_kind {
	FINDING_NONE,
	FINDING_MISMATCH,
	FINDING_GONE,
	FINDING_FAILED,
	FINDING_BEHIND
};

#define CULPRITS 16u

struct finding {
	enum finding_kind kind;
	struct text text;		/* a sentence, without its full stop */
	const struct crew *crew;	/* NULL: it is about no group */
	uint64_t number;		/* of the operation; 0: none */
	uint32_t culprits[CULPRITS];	/* ranks */
	uint32_t nculprits;
};

/* The groups of a run; those in trouble first. */
struct diagnosis {
	struct crew *crews;
	size_t ncrews;
	struct finding finding;
	uint32_t *missing;		/* ranks without a record */
	size_t nmissing;
};

/* Of `count` ranks of one run. Live ones that move on are in no trouble. */
void diagnose(const struct rank_seen *at, size_t count, struct diagnosis *diagnosis_out);
void diagnosis_fini(struct diagnosis *diagnosis);

/* Whether something of it is in flight, in a group that has not failed, or of a file. */
bool seat_is_busy(const struct seat *seat);
/* Where it stands in what is; NULL: not known. */
const struct hk_record_now *seat_now(const struct seat *seat);
/* The collective that it is in; 0: none. */
uint64_t seat_number(const struct seat *seat);
/* Whether its oldest operation is not over, and does not go on. */
bool seat_is_stuck(const struct seat *seat);
/* Whether one that is in an operation does not even look: it is stopped, or busy elsewhere. */
bool seat_is_idle(const struct seat *seat);
/* The seat that one waits for; HK_NONE: none that is known. */
uint32_t seat_waits_for(const struct crew *crew, uint32_t seat);
/*
 * Who waits for whom, from a seat on: up to room of them, how many, and how it
 * ends. In a circle the last one is there twice.
 */
uint32_t chain_follow(const struct crew *crew, uint32_t from, uint32_t *seats_out, uint32_t room,
		      enum chain_end *end_out);
/* How a rank went, if somebody says so. */
const struct hk_record_gone *crew_gone(const struct crew *crew, uint32_t rank);
const char *finding_name(enum finding_kind kind);
void finding_add_culprit(struct finding *finding, uint32_t rank);
/* Each makes a sentence of what it finds in a group; false: nothing. */
bool diagnose_mismatch(const struct crew *crew, struct finding *finding);
bool diagnose_gone(const struct crew *crew, struct finding *finding);
bool diagnose_failed(const struct crew *crew, struct finding *finding);
bool diagnose_behind(const struct crew *crew, struct finding *finding);
/* One that is stopped, though nobody waits for it yet. */
bool diagnose_stopped(const struct rank_seen *at, size_t count, struct finding *finding);

/* ---- as tables and JSON: records_print.c, records_json.c ---- */

struct table_opts {
	int width;		/* of the terminal; 0: lines may be of any length */
	bool live;		/* with states and rates */
};

/* What tells a group from others of its run: its context, and its first rank. */
struct cli_name crew_name(const struct crew *crew);
/* A group's ranks, a line each, and the chains of those that wait. */
void crew_print(FILE *file, const struct crew *crew, const struct table_opts *opts);
/* A member "ranks" of a JSON object: all ranks of a run with their groups. */
void ranks_print_json(FILE *file, const struct rank_seen *at, size_t count,
		      const struct diagnosis *diagnosis);
/* Members of the finding, without braces. */
void finding_print_json(FILE *file, const struct diagnosis *diagnosis);

#endif
