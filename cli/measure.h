/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - times of calls on ranks of this machine, as `hocket bench` measures them. */
#ifndef HK_CLI_MEASURE_H
#define HK_CLI_MEASURE_H

#include "ranks.h"

/* One call: which, and how long it took. */
struct measure_cell {
	enum hk_coll coll;
	char algo[48];		/* "": the group chooses, and this becomes its choice */
	uint64_t bytes;		/* as nccl-tests count; becomes what was measured */
	double time_ns;		/* 0: not measured, as the algorithm takes no such group */
};

#define CLI_MEASURE_RANKS_MAX 256u
#define MEASURE_ROUNDS_MAX 16u
#define CLI_CALLS 8u	/* simulated one behind the other, where times are to compare */

struct measure_job {
	const char *command;	/* for messages */
	uint32_t n;
	const char *net;	/* NULL: the environment's */
	struct measure_cell *cells;
	size_t ncells;
	uint32_t rounds;	/* over all cells; a time is the median */
	double patience_s;	/* so long it waits for cores that moved; 0: it takes what comes */
	double apart_ns;	/* how far two cores have to be apart; becomes how far they are while
				   nothing is done, if 0, and stays so where nobody can look */
	bool moved;		/* becomes so where cores were elsewhere whenever a cell was measured */
	bool progress;		/* on stderr, where somebody looks */
	const char *what;	/* what progress is of: "shared memory" */
};

/* By ranks started here; an exit status, and it has been said what went wrong. */
int measure_here(struct measure_job *job);

/* By a group that is there already, all its ranks together; rank 0 has the times. */
int measure_group(struct measure_job *job, struct cli_rank *own);

#endif
