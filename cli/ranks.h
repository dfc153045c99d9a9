/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - a command's own ranks: processes of this machine that share a group. */
#ifndef HK_CLI_RANKS_H
#define HK_CLI_RANKS_H

#include "cli.h"

struct cli_rank {
	struct hk_group *group;
	uint32_t rank;
	int core;		/* it is bound to; -1: none */
	char why[HK_WHY_MAX];	/* set if it failed */
};

struct cli_ranks {
	const char *command;	/* for messages */
	uint32_t n;
	const char *net;	/* NULL: the environment's */
	bool pin;		/* each to a core, where there are enough */
	int (*run)(void *ctx, struct cli_rank *rank); /* an exit status */
	void *ctx;		/* each process has its own copy */
};

/* Starts them, waits for all, says what went wrong; the exit status. */
int cli_ranks_processes(const struct cli_ranks *ranks);

/* Binds the caller to the rank-th core it may use, if each rank can have one; else -1. */
int cli_ranks_pin(const struct cli_ranks *ranks, uint32_t rank);

/* Whether a launcher made this process a rank. */
bool cli_ranks_launched(void);

#endif
