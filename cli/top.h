/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.h - `hocket top` inside: cmd_top.c looks and shows, top_print.c writes for
 * people, programs and Prometheus, top_hosts.c asks other hosts.
 */
#ifndef HK_CLI_TOP_H
#define HK_CLI_TOP_H

#include "records.h"

struct top {
	bool once, json, prometheus, all, help;
	bool agent;		/* asked by another host's top */
	double interval_s;
	const char *hosts;	/* NULL: those of the jobs that run here */
	const char *ssh, *remote;
	bool terminal;		/* redraws */
	int width;
};

void top_print(const struct top *top, const struct records *records);
void top_print_json(const struct records *records);
void top_print_prometheus(const struct records *records);

/* What another host's top is told: every rank with both of its records. */
void top_tell(const struct records *records);
/* Adds the ranks of the other hosts; what is wrong with one is said. */
void top_ask_hosts(const struct top *top, struct records *records);

#endif
