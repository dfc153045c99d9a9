/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_agent.c - the parent of the ranks of one host.
 *
 * It is told a directory, an environment and a program, starts the ranks,
 * passes signals and input on to them, and reports what they write and how
 * they end. When the wire ends, whatever the reason, so do they.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANK_FILES_SPARE 512u /* descriptors that programs have besides */

struct agent_rank {
	pid_t pid;  /* 0: not running */
	int fds[2]; /* what it writes to 1 and 2; -1: not relayed, or ended */
	int error;  /* errno of a start that failed */
};

struct agent {
	struct run_wire wire;
	struct run_signals signals;
	bool here; /* the launcher's machine: its input is rank 0's */
	struct run_env env;
	char **argv;
	size_t argc;
	struct agent_rank *ranks;
	uint32_t first, count, running;
	bool relay, started, lost; /* lost: the wire has ended */
	int error_fds[2];	   /* struct run_error of ranks */
	int input_fd;		   /* to rank 0; -1: none */
	struct run_bytes input;
	bool input_ended;
	struct rlimit files; /* as it was */
	struct pollfd *polled;
};

enum {
	AT_SIGNALS,
	AT_IN,
	AT_OUT,
	AT_INPUT,
	AT_RANKS
};

static void agent_say(struct agent *agent, enum run_kind kind, uint32_t rank, uint32_t value,
		      const char *text)
{
	struct run_frame frame = { .kind = kind,
				   .rank = rank,
				   .value = value,
				   .len = (uint32_t)strlen(text),
				   .data = text };

	run_wire_put(&agent->wire, &frame);
}

/* ---- ranks ---- */

/* To all that a rank has started, too. */
static void rank_signal(const struct agent_rank *rank, int signal)
{
	/* A child that has not got as far as its own session has no group yet. */
	if (rank->pid > 0 && kill(-rank->pid, signal) != 0 && errno == ESRCH)
		kill(rank->pid, signal);
}

static void agent_signal(struct agent *agent, int signal)
{
	for (uint32_t i = 0; i < agent->count; i++)
		rank_signal(&agent->ranks[i], signal);
}

/* Passes on what a rank has written; false where that was all for now. */
static bool rank_relay(struct agent *agent, uint32_t local, int stream)
{
	char chunk[RUN_CHUNK];
	int *fd = &agent->ranks[local].fds[stream - 1];

	if (*fd < 0)
		return false;
	ssize_t got = read(*fd, chunk, sizeof(chunk));
	if (got > 0) {
		struct run_frame frame = { .kind = RUN_OUTPUT,
					   .rank = agent->first + local,
					   .value = (uint32_t)stream,
					   .len = (uint32_t)got,
					   .data = chunk };
		run_wire_put(&agent->wire, &frame);
		return true;
	}
	if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		close(*fd);
		*fd = -1;
	}
	return false;
}

/* Nobody waits for the end of a pipe that something else may hold open. */
static void rank_end_output(struct agent *agent, uint32_t local)
{
	for (int stream = 1; stream <= 2; stream++) {
		int *fd = &agent->ranks[local].fds[stream - 1];

		/* As much as a pipe can hold: who is left may write for ever. */
		for (int i = 0; i < 32 && rank_relay(agent, local, stream); i++)
			;
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
	}
}

static void agent_read_errors(struct agent *agent)
{
	struct run_error error;

	while (read(agent->error_fds[0], &error, sizeof(error)) == (ssize_t)sizeof(error))
		agent->ranks[error.local_rank].error = error.error;
}

static void rank_say_end(struct agent *agent, uint32_t local, int status)
{
	uint32_t rank = agent->first + local;
	int error = agent->ranks[local].error;

	if (error)
		agent_say(agent, RUN_UNSTARTED, rank, error == ENOENT ? 127 : 126, strerror(error));
	else if (WIFSIGNALED(status))
		agent_say(agent, RUN_KILLED, rank, (uint32_t)WTERMSIG(status), "");
	else
		agent_say(agent, RUN_EXITED, rank, (uint32_t)WEXITSTATUS(status), "");
}

/* Those that have ended, each with all that it has left in its session's group. */
static void agent_reap(struct agent *agent)
{
	siginfo_t info = { 0 };

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
		pid_t pid = info.si_pid;
		uint32_t local = 0;
		int status = 0;

		while (local < agent->count && agent->ranks[local].pid != pid)
			local++;
		/* Before its number is free for others to have. */
		if (local < agent->count)
			kill(-pid, SIGKILL);
		waitpid(pid, &status, 0);
		info.si_pid = 0;
		if (local == agent->count)
			continue;
		agent->ranks[local].pid = 0;
		agent->running--;
		agent_read_errors(agent);
		rank_end_output(agent, local);
		rank_say_end(agent, local, status);
	}
}

/* ---- starting ---- */

/* Two pipes a rank are ours; what ranks get is said below. */
static void agent_raise_files(struct agent *agent)
{
	struct rlimit all;

	getrlimit(RLIMIT_NOFILE, &agent->files);
	all = agent->files;
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
}

/* The pipes of a rank: its ends in fds[1], fds[2], ours in the rank's own. */
static bool rank_open_output(struct agent_rank *rank, int fds[3])
{
	for (int i = 0; i < 2; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) != 0)
			return false;
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
		rank->fds[i] = ends[0];
		fds[i + 1] = ends[1];
	}
	return true;
}

/* Rank 0's input: the launcher's own where that is here, else a pipe. */
static int agent_open_input(struct agent *agent)
{
	int ends[2];

	if (agent->here)
		return STDIN_FILENO;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	agent->input_fd = ends[1];
	return ends[0];
}

/*
 * Rank 0 meets all ranks, and over TCP each may be connected with all: the limit as
 * it was, or what that takes, if the system lets it.
 */
static struct rlimit rank_files(const struct agent *agent)
{
	const char *size = run_env_get(&agent->env, "HOCKET_SIZE");
	rlim_t want = (size ? 2 * strtoul(size, NULL, 10) : 0) + RANK_FILES_SPARE;
	struct rlimit files = agent->files;

	if (size && files.rlim_cur < want)
		files.rlim_cur = files.rlim_max < want ? files.rlim_max : want;
	return files;
}

static void rank_start(struct agent *agent, uint32_t local, int null_fd)
{
	struct agent_rank *rank = &agent->ranks[local];
	struct run_start start = { .argv = agent->argv,
				   .env = &agent->env,
				   .signals = &agent->signals,
				   .files = rank_files(agent),
				   .rank = agent->first + local,
				   .local_rank = local,
				   .fds = { null_fd, STDOUT_FILENO, STDERR_FILENO },
				   .error_fd = agent->error_fds[1] };

	if (start.rank == 0)
		start.fds[0] = agent_open_input(agent);
	bool open = start.fds[0] >= 0 && (!agent->relay || rank_open_output(rank, start.fds));
	rank->pid = open ? run_start(&start) : -1;
	if (rank->pid < 0) {
		rank->error = errno;
		rank->pid = 0;
		rank_end_output(agent, local);
		rank_say_end(agent, local, 0);
	} else {
		agent->running++;
		agent_say(agent, RUN_STARTED, start.rank, (uint32_t)rank->pid, "");
	}
	for (int i = 0; i < 3; i++)
		if (start.fds[i] > STDERR_FILENO && start.fds[i] != null_fd)
			close(start.fds[i]);
}

static void agent_start(struct agent *agent, const struct run_frame *go)
{
	char size[48];

	agent->started = true;
	agent->first = go->rank;
	agent->count = go->value;
	/* Over ssh, standard output is the wire. */
	agent->relay = go->len > 0 || !agent->here;
	agent->ranks = run_grow(NULL, agent->count, sizeof(*agent->ranks));
	agent->polled = run_grow(agent->polled, AT_RANKS + 2 * (size_t)agent->count,
				 sizeof(*agent->polled));
	for (uint32_t i = 0; i < agent->count; i++)
		agent->ranks[i] = (struct agent_rank){ .fds = { -1, -1 } };
	snprintf(size, sizeof(size), "HOCKET_LOCAL_SIZE=%u", agent->count);
	run_env_set(&agent->env, size);
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (uint32_t i = 0; i < agent->count; i++)
		rank_start(agent, i, null_fd);
	close(null_fd);
}

/* ---- the launcher's words ---- */

static void agent_add_word(struct agent *agent, const struct run_frame *frame)
{
	agent->argv = run_grow(agent->argv, agent->argc + 2, sizeof(*agent->argv));
	agent->argv[agent->argc++] = run_text("%.*s", (int)frame->len, frame->data);
	agent->argv[agent->argc] = NULL;
}

static void agent_change_dir(struct agent *agent, const struct run_frame *frame)
{
	char *dir = run_text("%.*s", (int)frame->len, frame->data);

	if (chdir(dir) != 0) {
		char *note = run_text("cannot work in %s: %s; working in the home directory", dir,
				      strerror(errno));
		agent_say(agent, RUN_NOTE, 0, 0, note);
		free(note);
	}
	free(dir);
}

static void agent_set(struct agent *agent, const struct run_frame *frame)
{
	char *assignment = run_text("%.*s", (int)frame->len, frame->data);

	run_env_set(&agent->env, assignment);
	free(assignment);
}

static void agent_record(struct agent *agent, const struct run_frame *frame)
{
	struct run_dead dead = { .rank = frame->rank };
	pid_t *leaders = run_grow(NULL, (size_t)agent->count + 1, sizeof(*leaders));

	for (uint32_t i = 0; i < agent->count; i++)
		leaders[i] = agent->ranks[i].pid;
	snprintf(dead.why, sizeof(dead.why), "%.*s", (int)frame->len, frame->data);
	char *note = run_record(leaders, agent->count, &agent->env, &dead);
	if (note)
		agent_say(agent, RUN_NOTE, 0, 0, note);
	free(note);
	free(leaders);
}

/* False where this is no launcher of ours. */
static bool agent_obey(struct agent *agent, const struct run_frame *frame)
{
	switch (frame->kind) {
	case RUN_DIR:
		agent_change_dir(agent, frame);
		return true;
	case RUN_ENV:
		agent_set(agent, frame);
		return true;
	case RUN_WORD:
		agent_add_word(agent, frame);
		return true;
	case RUN_GO:
		if (agent->started || agent->argc == 0 || frame->value == 0 ||
		    frame->value > RUN_RANKS_MAX)
			return false;
		agent_start(agent, frame);
		return true;
	case RUN_SIGNAL:
		agent_signal(agent, (int)frame->value);
		return true;
	case RUN_RECORD:
		agent_record(agent, frame);
		return true;
	case RUN_INPUT:
		run_bytes_add(&agent->input, frame->data, frame->len);
		agent->input_ended |= frame->len == 0;
		return true;
	default:
		return false;
	}
}

/* The wire has ended, or makes no sense: nobody is there to look after ranks. */
static void agent_lose(struct agent *agent)
{
	agent->lost = true;
	agent_signal(agent, SIGKILL);
}

static void agent_listen(struct agent *agent)
{
	struct run_frame frame;
	bool there = run_wire_fill(&agent->wire);
	int next;

	while ((next = run_wire_next(&agent->wire, &frame)) > 0)
		if (!agent_obey(agent, &frame)) {
			next = -1;
			break;
		}
	if (!there || next < 0)
		agent_lose(agent);
}

static void agent_write_input(struct agent *agent)
{
	struct run_bytes *input = &agent->input;

	bool gone = false;

	if (input->len > 0) {
		ssize_t done = write(agent->input_fd, input->data + input->head, input->len);
		gone = done < 0 && errno != EAGAIN && errno != EINTR;
		if (done > 0) {
			run_bytes_drop(input, (size_t)done);
			agent_say(agent, RUN_TAKEN, 0, (uint32_t)done, "");
		}
	}
	if (gone || (input->len == 0 && agent->input_ended)) {
		close(agent->input_fd);
		agent->input_fd = -1;
	}
}

/* ---- the loop ---- */

static size_t agent_poll(struct agent *agent)
{
	struct pollfd *polled = agent->polled;
	bool speaks = !agent->lost && agent->wire.outbox.len > 0;
	bool reads = agent->wire.outbox.len < RUN_OUTPUT_MAX;
	bool input = agent->input.len > 0 || agent->input_ended;
	size_t n = AT_RANKS;

	polled[AT_SIGNALS] = (struct pollfd){ agent->signals.fd, POLLIN, 0 };
	polled[AT_IN] = (struct pollfd){ agent->lost ? -1 : agent->wire.in, POLLIN, 0 };
	polled[AT_OUT] = (struct pollfd){ speaks ? agent->wire.out : -1, POLLOUT, 0 };
	polled[AT_INPUT] = (struct pollfd){ input ? agent->input_fd : -1, POLLOUT, 0 };
	for (uint32_t i = 0; reads && agent->relay && i < agent->count; i++)
		for (int stream = 0; stream < 2; stream++)
			polled[n++] = (struct pollfd){ agent->ranks[i].fds[stream], POLLIN, 0 };
	while (poll(polled, n, -1) < 0 && errno == EINTR)
		;
	return n;
}

static void agent_turn(struct agent *agent)
{
	size_t n = agent_poll(agent);
	int signal;

	/* Before the ranks can change: the list is of those that were polled. */
	for (size_t i = AT_RANKS; i < n; i++)
		if (agent->polled[i].revents)
			rank_relay(agent, (uint32_t)(i - AT_RANKS) / 2,
				   (int)(i - AT_RANKS) % 2 + 1);
	if (agent->polled[AT_INPUT].revents)
		agent_write_input(agent);
	if (agent->polled[AT_SIGNALS].revents)
		while ((signal = run_signals_next(&agent->signals)) != 0)
			if (signal != SIGCHLD)
				agent_signal(agent, SIGKILL);
	agent_reap(agent);
	if (agent->polled[AT_IN].revents)
		agent_listen(agent);
	if (!agent->lost && !run_wire_flush(&agent->wire))
		agent_lose(agent);
}

/* Every rank has ended and been reported. */
static bool agent_is_over(const struct agent *agent)
{
	if (agent->lost)
		return agent->running == 0;
	return agent->started && agent->running == 0 && agent->wire.outbox.len == 0;
}

/* A port of this host that nobody has just now; 0: none is to be had. */
static uint32_t agent_find_port(void)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	socklen_t six_len = sizeof(six), four_len = sizeof(four);
	uint32_t port = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&six, six_len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&six, &six_len) == 0)
		port = ntohs(six.sin6_port);
	if (fd >= 0)
		close(fd);
	if (port)
		return port;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&four, four_len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&four, &four_len) == 0)
		port = ntohs(four.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

static bool agent_init(struct agent *agent, int in, int out, const struct run_signals *before)
{
	static const int signals[] = { SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, 0 };
	char hello[64];

	*agent = (struct agent){ .here = in == out, .input_fd = -1 };
	if (pipe2(agent->error_fds, O_CLOEXEC) != 0)
		return false;
	fcntl(agent->error_fds[0], F_SETFL, O_NONBLOCK);
	run_wire_init(&agent->wire, in, out);
	run_signals_take(&agent->signals, signals);
	if (before) {
		agent->signals.mask = before->mask;
		agent->signals.pipe_ignored = before->pipe_ignored;
	}
	agent_raise_files(agent);
	run_env_copy(&agent->env, environ);
	agent->polled = run_grow(NULL, AT_RANKS, sizeof(*agent->polled));
	int len = snprintf(hello, sizeof(hello), RUN_HELLO "%u %u\n", RUN_HELLO_VERSION,
			   agent_find_port());
	run_bytes_add(&agent->wire.outbox, hello, (size_t)len);
	return true;
}

static void agent_fini(struct agent *agent)
{
	for (size_t i = 0; i < agent->argc; i++)
		free(agent->argv[i]);
	free(agent->argv);
	free(agent->ranks);
	free(agent->polled);
	run_env_fini(&agent->env);
	run_bytes_fini(&agent->input);
	run_wire_fini(&agent->wire);
	close(agent->signals.fd);
	close(agent->error_fds[0]);
	close(agent->error_fds[1]);
	if (agent->input_fd >= 0)
		close(agent->input_fd);
}

int run_agent(int in, int out, const struct run_signals *before)
{
	struct agent agent;

	if (!agent_init(&agent, in, out, before))
		return cli_wrong("run", "cannot create a pipe: %s", strerror(errno));
	while (!agent_is_over(&agent))
		agent_turn(&agent);
	agent_fini(&agent);
	return CLI_DONE;
}
