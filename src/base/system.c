/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - which system this runs on. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool hk__system(char to_out[HK__SYSTEM_MAX])
{
	int fd;

	do {
		fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return false;
	ssize_t len;
	do {
		len = read(fd, to_out, HK__SYSTEM_MAX - 1);
	} while (len < 0 && errno == EINTR);
	int error = errno;
	close(fd);
	errno = error;
	if (len <= 0)
		return false;
	to_out[len] = '\0';
	to_out[strcspn(to_out, "\n")] = '\0';
	return true;
}
