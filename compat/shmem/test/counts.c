/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.c - whether every family of the tables has as many functions as OpenSHMEM 1.6 has.
 * Prints the names of all of them.
 */
#include <shmem.h>

#include <stdio.h>

#define ONE(result, name, params) +1
#define NAME(result, name, params) puts(#name);
#define CHECK(FAMILY, COUNT) \
	if (0 FAMILY(ONE) != (COUNT)) { \
		fprintf(stderr, #FAMILY " has %d functions, not %d\n", 0 FAMILY(ONE), COUNT); \
		wrong = 1; \
	}
#define SUM(FAMILY, COUNT) +(COUNT)

int main(void)
{
	int wrong = 0;

	SHMEMX_FAMILIES(CHECK)
	SHMEMX_OLD_FAMILIES(CHECK)
	if ((0 SHMEMX_FAMILIES(SUM)) != 1685 || (0 SHMEMX_OLD_FAMILIES(SUM)) != 103) {
		fprintf(stderr, "%d functions and %d deprecated ones, not 1685 and 103\n",
			0 SHMEMX_FAMILIES(SUM), 0 SHMEMX_OLD_FAMILIES(SUM));
		wrong = 1;
	}
	SHMEMX_FUNCTIONS(NAME)
	return wrong;
}
