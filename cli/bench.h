/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - what `hocket bench` is made of.
 *
 *   cmd_bench    the options, and what they say together
 *   bench_start  ranks as processes, as threads, or this process as one of a job
 *   bench_rank   one rank: every size, warmed up, timed and checked
 *   bench_times  how long single calls took: their median and 99th percentile
 *   bench_coll   a collective: its buffers, its call, its bandwidth
 *   bench_data   what is sent, and what has to come out
 *   bench_print  tables and JSON, as users of nccl-tests know them
 */
#ifndef HK_CLI_BENCH_H
#define HK_CLI_BENCH_H

#include "ranks.h"

#define BENCH_RANKS_MAX 1024u
#define BENCH_WARMUP 60u /* calls: ways to copy are tried in the first fifty */

/* What was asked for; all ranks have the same, and none changes it. */
struct bench_spec {
	bool all;
	enum hk_coll coll;
	uint32_t n;
	uint64_t min_bytes, max_bytes;
	uint32_t factor;
	enum hk_type type;
	enum hk_redop op;
	uint32_t root;
	const char *algo;	/* NULL: the group chooses */
	const char *plan_path;
	struct hk_plan *plan;
	const char *net;	/* NULL: the environment's */
	uint32_t iters;		/* 0: as many as it takes */
	uint32_t warmup;
	bool set_warmup;
	double brief_s;		/* warm-up and calls end after so long each, but two; 0: they do not */
	bool check, registered, json, threads, pin;
	bool joined;		/* a launcher started the ranks */
};

/* ---- bench_data ---- */

/* Elements repeat after so many: a prime, so that a block out of place shows. */
#define BENCH_PERIOD 4093u
#define BENCH_ELEMENT_MAX 8u

struct bench_data {
	enum hk_type type;
	enum hk_redop op;
	bool reduces;
	uint32_t n;
};

/* One period of what a rank puts in, and of what all of it makes together. */
void bench_data_input(const struct bench_data *data, uint32_t rank, unsigned char *table_out);
void bench_data_reduced(const struct bench_data *data, unsigned char *table_out);
/* premulsum's factor of a rank, as hk_opts.factor wants it. */
void bench_data_factor(const struct bench_data *data, uint32_t rank, unsigned char *factor_out);

/* count elements of `size` bytes that begin with the first-th of a table. */
struct bench_run {
	const unsigned char *table;
	size_t size;
	uint64_t first;
	uint64_t count;
};
void bench_run_fill(const struct bench_run *run, unsigned char *mem);
uint64_t bench_run_wrong(const struct bench_run *run, const unsigned char *mem);

/* ---- bench_coll ---- */

bool bench_coll_reduces(enum hk_coll coll);
bool bench_coll_inplace(enum hk_coll coll);
/* busbw / algbw. */
double bench_coll_bus(enum hk_coll coll, uint32_t n);

/* One call: its count, and the bytes nccl-tests calls its size. */
struct bench_case {
	enum hk_coll coll;
	uint64_t count;
	uint64_t bytes;
	bool inplace;
};
/* The call of about so many bytes: whole elements, at least one for each block. */
void bench_case_init(struct bench_case *c, const struct bench_spec *spec, enum hk_coll coll,
		     uint64_t bytes);
/* The most bytes a buffer of any call has. */
uint64_t bench_buffer_bytes(const struct bench_spec *spec);

/*
 * Nanoseconds of single calls, of every rank alike: each `every`-th call of a rank, so
 * that those of all ranks fit rank 0's memory.
 */
struct bench_times {
	uint64_t *own;
	uint32_t room;	/* of own */
	uint32_t every;
	uint32_t count;
};

struct bench_rank {
	const struct bench_spec *spec;
	struct hk_group *group;
	uint32_t rank;
	int core;			/* it is bound to; -1: none */
	struct bench_report *report;	/* rank 0's; NULL elsewhere */
	unsigned char *mem[2];		/* out of place: in and out; in place: the second */
	unsigned char *table;		/* a period of elements */
	unsigned char factor[BENCH_ELEMENT_MAX];
	bool each;			/* single calls are timed too */
	struct bench_times times;
	struct hk_opts opts;
	char why[HK_WHY_MAX];		/* it failed */
};

/* Inputs as they should be, outputs as they should not. */
void bench_case_fill(struct bench_rank *rank, const struct bench_case *c);
enum hk_status bench_case_call(struct bench_rank *rank, const struct bench_case *c);
/* Elements of this rank's output that are not what they have to be. */
uint64_t bench_case_wrong(struct bench_rank *rank, const struct bench_case *c);

/* ---- bench_print ---- */

struct bench_half {
	bool measured;		/* else there is no such form */
	double time_us, algbw, busbw;
	double median_us, p99_us; /* of single calls; rank 0's report alone has them */
	uint64_t wrong;
	uint32_t iters;
};

struct bench_row {
	struct bench_case at;
	const char *algo;
	struct bench_half half[2];	/* out of place, in place */
};

/* Where a rank runs. */
struct bench_seat {
	uint32_t pid;
	int32_t core;		/* -1: not bound */
	char host[64];
};

struct bench_report {
	const struct bench_spec *spec;
	bool progress;		/* somebody looks */
	uint64_t rows, wrong;	/* of all tables */
	double busbw, busbw_all; /* sums, of this table and of all */
	uint64_t halves, halves_all, wrong_table;
	char started[32];
};

void bench_report_begin(struct bench_report *report, const struct bench_spec *spec,
			const char *net, const struct bench_seat *seats);
void bench_report_table(struct bench_report *report, enum hk_coll coll);
void bench_report_progress(struct bench_report *report, const struct bench_case *c);
void bench_report_row(struct bench_report *report, const struct bench_row *row);
void bench_report_table_end(struct bench_report *report);
/* why: what went wrong on the way; NULL: nothing. */
void bench_report_end(struct bench_report *report, const char *why);

/* ---- bench_rank ---- */

/* Measures all that was asked for; CLI_DONE, or CLI_FAILED with rank->why. */
int bench_rank_run(struct bench_rank *rank);

/* The same in parts: buffers; one call, by rank->opts; no buffers. */
bool bench_rank_open(struct bench_rank *rank);
enum hk_status bench_rank_measure(struct bench_rank *rank, const struct bench_case *c,
				  struct bench_half *half_out);
void bench_rank_failed(struct bench_rank *rank, enum hk_status status);
void bench_rank_close(struct bench_rank *rank);

/* ---- bench_times ---- */

/* Makes room for a measurement of so many calls; false: no memory. */
bool bench_times_begin(struct bench_times *times, uint32_t nranks, uint32_t iters);
/* Call `index` of a measurement took so long. */
static inline void bench_times_add(struct bench_times *times, uint32_t index, uint64_t ns)
{
	if (index % times->every == 0)
		times->own[times->count++] = ns;
}
/* Over the calls of all ranks; at rank 0. */
enum hk_status bench_times_end(struct bench_rank *rank, struct bench_half *half_out);
void bench_times_fini(struct bench_times *times);

/* ---- bench_start ---- */

int bench_start_processes(const struct bench_spec *spec);
int bench_start_threads(const struct bench_spec *spec);
/* Joins the launcher's group; its size is only known then, and spec is completed. */
int bench_start_joined(struct bench_spec *spec);

/* ---- cmd_bench ---- */

/* What depends on the number of ranks; a line in why, and the exit status. */
int bench_spec_check(const struct bench_spec *spec, struct hk_why *why);

#endif
