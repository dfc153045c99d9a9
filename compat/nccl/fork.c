/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.c - what a child of fork(2) does not keep of meetings, and how it is told that
 * it is one. Groups see to themselves (hk_group(3)); sockets of a meeting are few, and
 * a list of them is enough.
 */
#include "comm.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t hk__nccl_fork_depth;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int *fds;
static size_t count, room;

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void fork_child(void)
{
	hk__nccl_fork_depth++;
	while (count > 0)
		(void)close(fds[--count]);
	pthread_mutex_unlock(&lock);
}

static void fork_register(void)
{
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void hk__nccl_fork_watch(void)
{
	(void)pthread_once(&once, fork_register);
}

void hk__nccl_fork_hold(void)
{
	hk__nccl_fork_watch();
	pthread_mutex_lock(&lock);
}

static bool fds_grow(void)
{
	size_t more = room ? 2 * room : 16;
	int *grown = count < room ? fds : realloc(fds, more * sizeof(*fds));

	if (!grown)
		return false;
	room = count < room ? room : more;
	fds = grown;
	return true;
}

int hk__nccl_fd_opened(int fd)
{
	if (fd >= 0 && !fds_grow()) {
		(void)close(fd);
		fd = -1;
		errno = ENOMEM;
	}
	if (fd >= 0)
		fds[count++] = fd;
	pthread_mutex_unlock(&lock);
	return fd;
}

void hk__nccl_fd_close(int fd)
{
	hk__nccl_fork_hold();
	for (size_t i = count; i-- > 0;)
		if (fds[i] == fd)
			fds[i] = fds[--count];
	(void)close(fd);
	pthread_mutex_unlock(&lock);
}
