/* SPDX-License-Identifier: Apache-2.0 */
/* run_connect.c - starts the agent of a host: here, or by ssh. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGENT_FD 3

/* In a child that will not become anything else. */
static void connect_here(int fd, const struct run_signals *signals)
{
	/*
	 * Who was started in the background has no claim to what is typed, and
	 * in a session of its own rank 0 would not be stopped for reading it.
	 */
	bool background = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) != getpgrp();
	int null_fd = background ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

	if (null_fd >= 0)
		dup2(null_fd, STDIN_FILENO);
	if (fd != AGENT_FD)
		dup3(fd, AGENT_FD, O_CLOEXEC);
	/* Wires to others would not end while they are open here. */
	close_range(AGENT_FD + 1, ~0u, 0);
	/* Outlives a signal to the launcher's group, to clean up after it. */
	setsid();
	prctl(PR_SET_NAME, "hocket-agent");
	_exit(run_agent(AGENT_FD, AGENT_FD, signals));
}

/* One word to the far side's shell, whatever it is made of. */
static void connect_quote(struct run_bytes *text, const char *word)
{
	run_bytes_add(text, "'", 1);
	for (; *word; word++) {
		if (*word == '\'')
			run_bytes_add(text, "'\\''", 4);
		else
			run_bytes_add(text, word, 1);
	}
	run_bytes_add(text, "'", 1);
}

/* What a shell on another host shall run. */
static char *connect_command(const char *remote, const char *options)
{
	char own[PATH_MAX] = "";
	struct run_bytes text = { 0 };

	if (!remote && readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		snprintf(own, sizeof(own), "hocket");
	connect_quote(&text, remote ? remote : own);
	run_bytes_add(&text, " ", 1);
	run_bytes_add(&text, options, strlen(options) + 1);
	return text.data;
}

char **run_ssh_words(const char *ssh, const char *host, const char *remote, const char *options)
{
	char *rest = run_text("%s", ssh), *word;
	char **words = run_grow(NULL, strlen(rest) + 3, sizeof(*words));
	size_t n = 0;

	while ((word = strsep(&rest, " \t")) != NULL)
		if (*word)
			words[n++] = word;
	words[n++] = run_text("%s", host);
	words[n++] = connect_command(remote, options);
	words[n] = NULL;
	return words;
}

/* In a child, which becomes ssh. Its own group: the terminal's signals are not for it. */
static void connect_ssh(int fd, const struct run_link *link, const struct run_opts *opts,
			const struct run_signals *signals)
{
	char **words = run_ssh_words(opts->ssh, link->host->name, opts->remote, "run --agent");

	setsid();
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	run_signals_restore(signals);
	execvp(words[0], words);
	cli_wrong("run", "cannot start %s: %s", words[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

bool run_link_open(struct run_link *link, const struct run_opts *opts,
		   const struct run_signals *signals)
{
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		cli_wrong("run", "cannot create a socket: %s", strerror(errno));
		return false;
	}
	pid_t pid = fork();
	if (pid == 0 && run_host_is_here(link->host)) {
		connect_here(ends[1], signals);
	} else if (pid == 0) {
		run_die_with(parent, SIGTERM);
		connect_ssh(ends[1], link, opts, signals);
	}
	close(ends[1]);
	if (pid < 0) {
		cli_wrong("run", "cannot start a process: %s", strerror(errno));
		close(ends[0]);
		return false;
	}
	link->pid = pid;
	run_wire_init(&link->wire, ends[0], ends[0]);
	return true;
}
