/* SPDX-License-Identifier: Apache-2.0 */
/* example.h - what the examples share. Each stands for some of the specification's. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <shmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(COND) \
	do { \
		if (!(COND)) { \
			fprintf(stderr, "PE %d: %s:%d: not so: %s\n", shmem_my_pe(), __FILE__, \
				__LINE__, #COND); \
			shmem_global_exit(1); \
		} \
	} while (0)

#endif
