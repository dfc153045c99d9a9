/* SPDX-License-Identifier: Apache-2.0 */
/* cell.h - one row of the comparison: a plan and how many bytes it is for. */
#ifndef HK_TEST_SIMGRID_CELL_H
#define HK_TEST_SIMGRID_CELL_H

#include <hocket/hocket.h>

#define CELL_ARGS 4		/* COLLECTIVE ALGORITHM RANKS BYTES */
#define CELL_SLOTS 8		/* messages that a channel holds */

struct cell {
	struct hk_plan *plan;
	uint32_t ranks;
	uint32_t lanes;		/* of the rank that has most */
	double bytes;		/* as in struct hk_sim_job */
	double chunk;		/* of those, one chunk */
};

/*
 * Makes the plan that the arguments name. "sendrecv random" is a batch of four
 * messages for each rank, to receivers that are drawn, the same in every call.
 * On failure says why and returns false.
 */
bool cell_open(char **args, struct cell *cell_out);
void cell_close(struct cell *cell);

#endif
