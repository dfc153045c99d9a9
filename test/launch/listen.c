/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.c - stands where torch's store does: listens on a port of loopback,
 * prints it, and answers nobody until its input ends.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&at, &len)) {
		perror("listen");
		return 1;
	}
	printf("%u\n", (unsigned)ntohs(at.sin_port));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0) {
	}
	return 0;
}
