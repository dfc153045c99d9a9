/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - `hocket sim` from inside: cmd_sim.c says what to do, sim_choose.c
 * simulates and takes the fastest, sim_input.c reads faults and the like,
 * sim_print.c prints, sim_vary.c changes the fabric, sim_sensitivity.c says which
 * change matters, sim_trace.c writes files.
 */
#ifndef HK_CLI_SIM_H
#define HK_CLI_SIM_H

#include "cli.h"

#include <hocket/sim.h>

#define SIM_ALGOS_MAX 32u	/* of a collective */
#define SIM_JOBS_MAX 8u
#define SIM_FAULTS_MAX 64u
#define SIM_LINK_MAX 64u

/* Plans that may do what is asked. */
struct sim_candidate {
	const char *algo;
	struct hk_plan *plan;
	bool left_out;		/* of some row: too many steps to be simulated unasked */
};

struct sim_job {
	enum hk_coll coll;
	double bytes;		/* of --also; of the first job as the row says */
	struct sim_candidate candidates[SIM_ALGOS_MAX];
	uint32_t ncandidates;
	uint32_t chosen;
};

struct sim_fault {
	struct hk_sim_fault fault;
	char link[SIM_LINK_MAX];
};

struct sim_run {
	const struct cli_args *args;
	struct hk_fabric *fabric;
	struct hk_fabric_info info;
	uint32_t n;
	uint32_t nodes;		/* that n ranks lie on; 0: not known */
	uint32_t *node_sizes;	/* of nodes that differ; NULL: equal */
	uint64_t min_bytes, max_bytes;
	uint32_t factor;
	struct sim_job jobs[SIM_JOBS_MAX]; /* the first, and those at the same time */
	uint32_t njobs;
	struct sim_fault faults[SIM_FAULTS_MAX];
	struct hk_sim_fault plain[SIM_FAULTS_MAX]; /* as the library takes them */
	uint32_t nfaults;
	/* Progress. */
	bool tty;
	double started, shown;
	const char *now;	/* what is being simulated */
	uint64_t now_bytes;
};

/* A row of the table. */
struct sim_row {
	uint64_t bytes;
	char algo[64];
	const struct hk_plan *plan; /* NULL where it is NCCL's */
	struct hk_sim_result result;
	bool as_nccl;
	double nccl_us;		/* as NCCL's own model has it, or NaN */
};

/* Who hears what happens. */
struct sim_events {
	void (*event)(void *ctx, const struct hk_sim_event *event);
	void *ctx;
};

/* ---- sim_input.c ---- */

/* False where something is wrong; it has been said. */
bool sim_read_faults(struct sim_run *run);
/* COLLECTIVE:SIZE */
bool sim_read_also(const char *text, struct sim_job *job);

/* ---- sim_choose.c ---- */

/* All plans of a job that fit; false and said if there are none. */
bool sim_candidates_make(struct sim_run *run, struct sim_job *job, bool first);
void sim_candidates_free(struct sim_job *job);

/*
 * The fastest way for the first job at that size, with all that goes on besides,
 * on a fabric. Returns CLI_DONE, or what to exit with; it has been said.
 */
int sim_choose(struct sim_run *run, const struct hk_fabric *fabric, uint64_t bytes,
	       struct sim_row *row_out);
/* The fastest way for a job that goes on besides, by itself. */
int sim_choose_also(struct sim_run *run, struct sim_job *job);
/* What NCCL would do, and how long that takes. */
int sim_as_nccl(struct sim_run *run, const struct hk_fabric *fabric, uint64_t bytes,
		struct sim_row *row_out);
/* One plan on a fabric, with all that goes on besides; events may be NULL. */
enum hk_status sim_run_plan(struct sim_run *run, const struct hk_fabric *fabric,
			    const struct hk_plan *plan, uint64_t bytes,
			    const struct sim_events *events, struct hk_why *why,
			    struct hk_sim_result *result_out);
/* Ends a line of progress. */
void sim_progress_end(struct sim_run *run);

/* ---- sim_print.c ---- */

void sim_print_begin(const struct sim_run *run);
void sim_print_row(const struct sim_run *run, const struct sim_row *row, uint32_t index);
/* A row with the fabric as it is, and with it changed. */
void sim_print_pair(const struct sim_run *run, const struct sim_row *base,
		    const struct sim_row *changed, uint32_t index);
/* After a row, and what belongs to it. */
void sim_print_row_end(const struct sim_run *run);
void sim_print_end(const struct sim_run *run);

/* ---- sim_vary.c ---- */

/* A fabric like the run's, changed as --what-if says. */
int sim_what_if_open(const struct sim_run *run, struct hk_fabric **fabric_out);

/* ---- sim_sensitivity.c ---- */

/* Which constant a row depends on most. */
int sim_sensitivity(struct sim_run *run, const struct sim_row *row);

/* ---- sim_trace.c ---- */

/* --trace, --goal and --chakra, of the row. */
int sim_write_files(struct sim_run *run, const struct sim_row *row);

#endif
