/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart.h - how far two cores are from each other. Under a hypervisor that changes
 * from second to second, and with it what a message between them takes.
 */
#ifndef HK_CLI_APART_H
#define HK_CLI_APART_H

#include <stdbool.h>

/* What a cache line takes there and back; 0: these cores are not ours to use. */
double apart_ns(int core, int other);

/* Whether two such times are of one distance. */
bool apart_alike(double ns, double other_ns);

#endif
