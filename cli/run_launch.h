/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_launch.h - the launcher's own: what it knows, how it ends, and what its
 * two halves, clocks (run_launch.c) and hosts (run_links.c), ask of each other.
 */
#ifndef HK_CLI_RUN_LAUNCH_H
#define HK_CLI_RUN_LAUNCH_H

#include "run.h"

struct pollfd;

struct launch_rank {
	pid_t pid;
	bool ended;
};

struct launch {
	const struct run_opts *opts;
	struct run_signals signals;
	struct run_output output;
	struct run_link *links; /* of hosts that have ranks; rank 0 is on the first */
	size_t nlinks;
	struct launch_rank *ranks;
	uint32_t running;
	bool relay; /* what ranks write comes through here */
	bool going; /* the ranks have been told to start */
	bool failed, ending, abandoned; /* ending: failures are no news any more */
	bool hasty; /* asked to end: not even output is waited for */
	int status;
	struct run_dead dead; /* the first rank that failed */
	int asked; /* the signal that asked to end; 0: none did */
	uint32_t interrupts;
	uint64_t timeout_at, kill_at, abandon_at; /* 0: not set */
	uint32_t input_out; /* bytes that rank 0's agent has not passed on yet */
	bool input_over;
	struct pollfd *polled;
};

/* ---- how it ends: run_launch.c ---- */

/* A line on standard error, behind what ranks have written. */
void run_launch_say(struct launch *launch, const char *fmt, ...) HK_PRINTF(2, 3);
/* Something went wrong; the first time decides the exit status. */
void run_launch_fail(struct launch *launch, int status, int signal);
/* "; terminated the others", or what else a failure leads to. */
const char *run_launch_consequence(const struct launch *launch);

/* ---- hosts: run_links.c ---- */

void run_link_close(struct run_link *link);
/* Reads what a host has said, and acts on it. */
void run_link_listen(struct launch *launch, struct run_link *link);
/* Its process has ended and nothing is left to read, but something holds the wire open. */
void run_link_drop(struct launch *launch, struct run_link *link);
/* Waits for processes that have ended. */
void run_links_reap(struct launch *launch);
/* All hosts have answered: the ranks start. */
void run_links_go(struct launch *launch);

#endif
