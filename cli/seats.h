/* SPDX-License-Identifier: Apache-2.0 */
/* seats.h - where the ranks of a group are: on which hosts, and which cores they share. */
#ifndef HK_CLI_SEATS_H
#define HK_CLI_SEATS_H

#include "ranks.h"

struct cli_seats {
	uint32_t *hosts;	/* ranks of each, in the order of ranks */
	uint32_t nhosts;
	uint32_t cores;		/* that all of them share, be their hosts what they may; 0: each
				   has its own, or they are on several machines */
	bool in_turn;		/* rank r is on core r % cores, or on any of them */
	int pair[2];		/* two cores that ranks of rank 0's machine use; -1: there are not
				   two */
};

/* All ranks together; the caller frees it. */
enum hk_status cli_seats_find(const struct cli_rank *rank, struct cli_seats *seats_out);
void cli_seats_free(struct cli_seats *seats);

#endif
