/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - descriptors of the library that a test hands to processes it forks. */
#ifndef HK_TEST_NET_KEEP_H
#define HK_TEST_NET_KEEP_H

#include "base/fork.h"

#include <fcntl.h>

/* The same thing under a number that children keep; -1: there is none. */
static inline int fd_keep(int fd)
{
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	hk__fd_close(fd);
	return kept;
}

#endif
