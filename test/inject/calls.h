/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - system calls of the library, counted, of which the N-th fails. The
 * linker puts these in place of the system's (--wrap), in this program alone.
 */
#ifndef HK_TEST_INJECT_CALLS_H
#define HK_TEST_INJECT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

struct calls {
	_Atomic uint64_t count;
	uint64_t fail_at;
	uint32_t variant;	/* which of the errors that the call may meet */
	bool hit;
	char name[24];		/* what has failed, and how */
	int error;
	uint32_t variants;	/* that it has */
};

/* Those of this process, from here on, into memory that others may see. */
void calls_arm(struct calls *at, uint64_t fail_at, uint32_t variant);
void calls_disarm(void);

#endif
