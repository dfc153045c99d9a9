/* SPDX-License-Identifier: Apache-2.0 */
/* run_start.c - how a process becomes a rank, and what signals it starts with. */
#include "run.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

void run_signals_take(struct run_signals *signals, const int *list)
{
	struct sigaction old;
	sigset_t set;

	sigemptyset(&set);
	for (; *list; list++) {
		/* What nohup and the like have turned off stays off. */
		if (sigaction(*list, NULL, &old) == 0 && old.sa_handler == SIG_IGN &&
		    *list != SIGCHLD)
			continue;
		sigaddset(&set, *list);
	}
	/* Were it ignored, children would vanish without a status. */
	signal(SIGCHLD, SIG_DFL);
	signals->pipe_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
	sigprocmask(SIG_BLOCK, &set, &signals->mask);
	signals->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int run_signals_next(const struct run_signals *signals)
{
	struct signalfd_siginfo info;

	if (read(signals->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}

void run_signals_restore(const struct run_signals *signals)
{
	if (!signals->pipe_ignored)
		signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}

void run_die_with(pid_t parent, int signal)
{
	prctl(PR_SET_PDEATHSIG, signal);
	/* It may have died before that, and nobody would tell. */
	if (getppid() != parent)
		_exit(CLI_WRONG);
}

/* The variables that differ between ranks, in the child's own copy. */
static void start_set_rank(const struct run_start *start)
{
	char text[48];

	snprintf(text, sizeof(text), "HOCKET_RANK=%u", start->rank);
	if (!run_env_has(start->env, "HOCKET_RANK=new"))
		run_env_set(start->env, text);
	snprintf(text, sizeof(text), "HOCKET_LOCAL_RANK=%u", start->local_rank);
	run_env_set(start->env, text);
	environ = start->env->at;
}

/* The child's side. */
static void start_become(const struct run_start *start, pid_t parent)
{
	struct run_error error = { .local_rank = start->local_rank };

	run_die_with(parent, SIGKILL);
	setsid();
	start_set_rank(start);
	for (int fd = 0; fd < 3; fd++)
		if (start->fds[fd] != fd)
			dup2(start->fds[fd], fd);
	setrlimit(RLIMIT_NOFILE, &start->files);
	run_signals_restore(start->signals);
	execvp(start->argv[0], start->argv);
	error.error = errno;
	/* Smaller than a pipe's atomic write: records of ranks do not mix. */
	if (write(start->error_fd, &error, sizeof(error)) < 0)
		_exit(CLI_WRONG);
	_exit(error.error == ENOENT ? 127 : 126);
}

pid_t run_start(const struct run_start *start)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid == 0)
		start_become(start, parent);
	return pid;
}
