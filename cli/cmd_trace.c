/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_trace.c - `hocket trace`: runs a command whose ranks write down what they
 * do, in a folder beside the output, and makes one timeline of it.
 */
#include "trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char trace_help[] =
	"Usage: hocket trace [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"Runs a command, and writes what its ranks did, step by step and message by\n"
	"message, as a timeline that https://ui.perfetto.dev and Chrome open.\n"
	"Exit status: the command's.\n\n"
	"  -o, --output FILE   the timeline; default: hocket-trace.json\n"
	"      --max-events N  events kept per rank, the newest; default: 65536\n\n"
	"Example: hocket trace -o train.json -- hocket run -n 4 ./train\n";

#define EVENTS_MAX (1u << 24)

struct trace_opts {
	const char *output;
	uint32_t events;
	char **argv;
};

/* ---- the folder ---- */

/* Beside the output: ranks of other hosts reach it where they reach that. */
static char *folder_make(const char *output)
{
	size_t size = strlen(output) + sizeof(".ranks-XXXXXX");
	char *path = malloc(size), *whole = NULL;

	if (!path)
		return NULL;
	snprintf(path, size, "%s.ranks-XXXXXX", output);
	if (mkdtemp(path))
		whole = realpath(path, NULL); /* a rank may work elsewhere */
	free(path);
	return whole;
}

static void folder_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		if (dot && strcmp(dot, ".trace") == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
	if (rmdir(path) != 0)
		fprintf(stderr, "hocket trace: cannot remove %s: %s\n", path, strerror(errno));
}

/* ---- the command ---- */

static void command_become(const struct trace_opts *opts, const char *folder, const sigset_t *mask,
			   int error_fd)
{
	char events[24];

	snprintf(events, sizeof(events), "%u", opts->events);
	setenv("HOCKET_TRACE", folder, 1);
	setenv("HOCKET_TRACE_EVENTS", events, 1);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(opts->argv[0], opts->argv);
	int error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(CLI_WRONG);
	_exit(error == ENOENT ? 127 : 126);
}

/* Waits for it; signals that were meant for this process are meant for it. */
static int command_wait(pid_t pid, const sigset_t *signals)
{
	for (;;) {
		siginfo_t info;
		int status;

		if (sigwaitinfo(signals, &info) < 0)
			continue;
		/* The terminal has told both already. */
		if (info.si_signo != SIGCHLD && info.si_code <= 0)
			kill(pid, info.si_signo);
		if (info.si_signo != SIGCHLD || waitpid(pid, &status, WNOHANG) != pid)
			continue;
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

/* Its exit status, or CLI_WRONG where it could not be started, which was said. */
static int command_run(const struct trace_opts *opts, const char *folder, bool *started_out)
{
	static const int passed_on[] = { SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP };
	int fds[2], error = 0;
	sigset_t signals, mask;

	*started_out = false;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return cli_wrong("trace", "cannot create a pipe: %s", strerror(errno));
	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&signals, passed_on[i]);
	sigprocmask(SIG_BLOCK, &signals, &mask);
	pid_t pid = fork();
	if (pid == 0)
		command_become(opts, folder, &mask, fds[1]);
	int failed = pid < 0 ? errno : 0;
	close(fds[1]);
	bool told = pid > 0 && read(fds[0], &error, sizeof(error)) == (ssize_t)sizeof(error);
	close(fds[0]);
	int status = pid > 0 ? command_wait(pid, &signals) : CLI_WRONG;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	*started_out = pid > 0 && !told;
	if (!*started_out)
		cli_wrong("trace", "cannot start %s: %s", opts->argv[0],
			  strerror(told ? error : failed));
	return status;
}

/* ---- what came of it ---- */

static void trace_say(const struct trace *trace, const struct trace_opts *opts)
{
	uint64_t dropped = 0, kept = 0;

	for (uint32_t r = 0; r < trace->nranks; r++) {
		dropped += trace->ranks[r].dropped;
		kept += trace->ranks[r].nrecords;
	}
	fprintf(stderr,
		"hocket trace: %s: %llu events of %u ranks, %llu messages; open it at "
		"https://ui.perfetto.dev\n",
		opts->output, (unsigned long long)kept, trace->nranks,
		(unsigned long long)trace->narrows);
	if (dropped)
		fprintf(stderr,
			"hocket trace: %llu earlier events were dropped; trace a shorter run, or "
			"raise --max-events\n",
			(unsigned long long)dropped);
	if (trace->clock == TRACE_CLOCK_WALL)
		fprintf(stderr, "hocket trace: the clocks of some hosts are aligned only by their "
				"time of day: no messages went in both directions\n");
}

static int trace_make(const struct trace_opts *opts, const char *folder)
{
	struct trace trace;
	int result = trace_read(&trace, folder);

	if (result == CLI_DONE)
		result = trace_match(&trace);
	if (result == CLI_DONE)
		result = trace_write(&trace, opts->output);
	if (result == CLI_DONE)
		trace_say(&trace, opts);
	trace_fini(&trace);
	return result;
}

static int trace_run(const struct trace_opts *opts)
{
	bool started;

	if (!opts->argv[0])
		return cli_wrong("trace", "no command given; see 'hocket trace --help'");
	char *folder = folder_make(opts->output);
	if (!folder)
		return cli_wrong("trace", "%s: cannot create a directory beside it: %s",
				 opts->output, strerror(errno));
	int status = command_run(opts, folder, &started);
	if (started) {
		int made = trace_make(opts, folder);

		status = status == CLI_DONE ? made : status;
	}
	folder_remove(folder);
	free(folder);
	return status;
}

/* ---- options ---- */

static const struct option trace_long[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "max-events", required_argument, NULL, 'm' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int trace_main(int argc, char **argv)
{
	struct trace_opts opts = { .output = "hocket-trace.json", .events = 65536 };
	int option;

	opterr = 0;
	optind = 1;
	/* "+": what stands behind the command is the command's. */
	while ((option = getopt_long(argc, argv, "+:o:h", trace_long, NULL)) != -1) {
		switch (option) {
		case 'o':
			opts.output = optarg;
			break;
		case 'm':
			if (!cli_parse_number(optarg, 2, EVENTS_MAX, &opts.events))
				return cli_wrong(
					"trace",
					"--max-events takes a number from 2 to %u, not '%s'",
					EVENTS_MAX, optarg);
			break;
		case 'h':
			fputs(trace_help, stdout);
			return CLI_DONE;
		default:
			cli_wrong_option("trace", option, argv[optind - 1]);
			return CLI_WRONG;
		}
	}
	opts.argv = argv + optind;
	return trace_run(&opts);
}

const struct cli_command cli_trace = {
	.name = "trace",
	.about = "run a command and write a timeline of its ranks",
	.help = trace_help,
	.main = trace_main,
};
