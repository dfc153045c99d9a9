/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_launch.c - the launcher: starts an agent on every host, tells all of
 * them to go once all have answered, and then listens: to them, to signals
 * and to clocks.
 *
 * How it ends: a failure, a signal or the timeout asks the ranks to end
 * (SIGTERM, or the signal that came); what is left after the grace is killed;
 * and a host that does not answer even then is abandoned. So nothing waits
 * for ever.
 */
#include "run_launch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_TIMEOUT 124
#define ANSWER_NS (5 * CLI_NS) /* for an agent to report what it has killed */
#define QUIET_NS (CLI_NS / 10) /* until half a line is shown */

enum {
	AT_SIGNALS,
	AT_OUTPUT,
	AT_INPUT,
	AT_LINKS
};

void run_launch_say(struct launch *launch, const char *fmt, ...)
{
	char text[HK_WHY_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cli_one_line(text);
	char *line = run_text("hocket run: %s\n", text);
	run_output_say(&launch->output, line, strlen(line));
	free(line);
}

/* ---- how it ends ---- */

static void launch_signal(struct launch *launch, int signal)
{
	struct run_frame frame = { .kind = RUN_SIGNAL, .value = (uint32_t)signal };

	for (size_t i = 0; i < launch->nlinks; i++)
		if (!launch->links[i].over)
			run_wire_put(&launch->links[i].wire, &frame);
}

static void launch_kill(struct launch *launch)
{
	launch->ending = true;
	launch->kill_at = 0;
	launch->abandon_at = cli_now_ns() + ANSWER_NS;
	launch_signal(launch, SIGKILL);
}

/* Before a run ends that went wrong: what the ranks that are left do just now. */
static void launch_record(struct launch *launch)
{
	struct run_frame frame = { .kind = RUN_RECORD,
				   .rank = launch->dead.rank,
				   .len = (uint32_t)strlen(launch->dead.why),
				   .data = launch->dead.why };

	for (size_t i = 0; i < launch->nlinks; i++)
		if (!launch->links[i].over)
			run_wire_put(&launch->links[i].wire, &frame);
}

/* Asks all ranks to end, once. */
static void launch_end(struct launch *launch, int signal)
{
	if (launch->ending)
		return;
	launch->ending = true;
	if (launch->going && launch->failed && !launch->asked)
		launch_record(launch);
	launch->kill_at = cli_now_ns() + launch->opts->grace_ns;
	launch_signal(launch, signal);
	launch_signal(launch, SIGCONT); /* who is stopped hears nothing else */
	/* Where nothing runs yet, the end of the wire says enough. */
	for (size_t i = 0; i < launch->nlinks && !launch->going; i++) {
		run_link_close(&launch->links[i]);
		if (launch->links[i].pid > 0)
			kill(launch->links[i].pid, SIGTERM);
	}
	if (!launch->going)
		launch->running = 0;
}

void run_launch_fail(struct launch *launch, int status, int signal)
{
	if (!launch->failed)
		launch->status = status;
	launch->failed = true;
	if (!launch->opts->keep_going || !launch->going)
		launch_end(launch, signal);
}

const char *run_launch_consequence(const struct launch *launch)
{
	if (launch->running == 0 || launch->ending)
		return "";
	return launch->opts->keep_going ? "; the others continue" : "; terminated the others";
}

/* ---- signals, input and clocks ---- */

static void launch_stop_self(struct launch *launch)
{
	/* A session without a terminal does not stop for SIGTSTP. */
	launch_signal(launch, SIGSTOP);
	for (size_t i = 0; i < launch->nlinks; i++)
		if (!launch->links[i].over)
			run_wire_flush(&launch->links[i].wire);
	raise(SIGSTOP);
}

static bool launch_is_closed(const struct launch *launch)
{
	for (size_t i = 0; i < launch->nlinks; i++)
		if (!launch->links[i].over || launch->links[i].pid > 0)
			return false;
	return true;
}

static void launch_ask(struct launch *launch, int signal)
{
	bool again = signal == SIGINT && launch->interrupts++ > 0;

	launch->asked = signal;
	launch->hasty = true;
	if (launch_is_closed(launch)) {
		launch->abandoned = true; /* only output was left to write */
	} else if (again) {
		launch_kill(launch);
	} else if (!launch->going || signal == SIGTERM || signal == SIGHUP) {
		if (!launch->going && !launch->failed) {
			launch->failed = true;
			launch->status = 128 + signal;
		}
		launch_end(launch, signal);
	} else {
		if (signal == SIGQUIT) /* what of others leaves a core */
			launch_record(launch);
		launch_signal(launch, signal);
	}
}

static void launch_hear_signals(struct launch *launch)
{
	int signal;

	while ((signal = run_signals_next(&launch->signals)) != 0) {
		switch (signal) {
		case SIGCHLD:
			run_links_reap(launch);
			break;
		case SIGTSTP:
			launch_stop_self(launch);
			break;
		case SIGINT:
		case SIGQUIT:
		case SIGTERM:
		case SIGHUP:
			launch_ask(launch, signal);
			break;
		default:
			launch_signal(launch, signal);
		}
	}
}

/* Whether there is input for a rank 0 that is on another host. */
static bool launch_wants_input(const struct launch *launch)
{
	if (!launch->going || launch->input_over || launch->links[0].over ||
	    run_host_is_here(launch->links[0].host) || launch->input_out >= RUN_CHUNK)
		return false;
	return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void launch_take_input(struct launch *launch)
{
	char chunk[RUN_CHUNK];
	ssize_t got = read(STDIN_FILENO, chunk, RUN_CHUNK - launch->input_out);

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	struct run_frame frame = { .kind = RUN_INPUT,
				   .len = got > 0 ? (uint32_t)got : 0,
				   .data = chunk };
	launch->input_over = got <= 0;
	launch->input_out += frame.len;
	run_wire_put(&launch->links[0].wire, &frame);
}

static void launch_timeout(struct launch *launch)
{
	launch->timeout_at = 0;
	launch->hasty = true;
	if (launch_is_closed(launch))
		launch->abandoned = true; /* only output was left to write */
	if (launch->ending)
		return;
	if (launch->running > 0)
		run_launch_say(launch, "the timeout of %.6g s expired; terminated all ranks",
			       (double)launch->opts->timeout_ns / (double)CLI_NS);
	launch->failed = true;
	launch->status = STATUS_TIMEOUT;
	launch_end(launch, SIGTERM);
}

static void launch_abandon(struct launch *launch)
{
	launch->abandoned = true;
	for (size_t i = 0; i < launch->nlinks; i++) {
		struct run_link *link = &launch->links[i];

		if (!link->over && launch->output.queue.len == 0)
			cli_wrong("run", "host %s does not answer; its ranks may still be running",
				  link->host->name);
		if (link->pid > 0)
			kill(link->pid, SIGKILL);
	}
}

static void launch_look_at_clock(struct launch *launch)
{
	uint64_t now = cli_now_ns();

	if (launch->timeout_at && now >= launch->timeout_at)
		launch_timeout(launch);
	if (launch->kill_at && now >= launch->kill_at)
		launch_kill(launch);
	/* A host cannot be heard while the output has no room; one may wait for that. */
	if (launch->abandon_at && !launch->hasty && launch->output.queue.len >= RUN_OUTPUT_MAX)
		launch->abandon_at = now + ANSWER_NS;
	if (launch_is_closed(launch))
		launch->kill_at = launch->abandon_at = 0;
	if (launch->abandon_at && now >= launch->abandon_at)
		launch_abandon(launch);
}

/* ---- the loop ---- */

/* Milliseconds until a clock asks for something. */
static int launch_wait_ms(const struct launch *launch)
{
	uint64_t at[] = { launch->timeout_at, launch->kill_at, launch->abandon_at, 0 };
	uint64_t now = cli_now_ns(), next = UINT64_MAX;

	if (launch->output.waiting && !launch->output.prefix)
		at[3] = now + QUIET_NS;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if (at[i] && at[i] < next)
			next = at[i];
	if (next == UINT64_MAX)
		return -1;
	uint64_t ms = next > now ? (next - now + 999999) / 1000000 : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

static int launch_poll(struct launch *launch)
{
	struct pollfd *polled = launch->polled;
	bool room = launch->output.queue.len < RUN_OUTPUT_MAX;
	int input = launch_wants_input(launch) ? STDIN_FILENO : -1;
	bool last = false;

	polled[AT_SIGNALS] = (struct pollfd){ launch->signals.fd, POLLIN, 0 };
	polled[AT_OUTPUT] = (struct pollfd){ run_output_fd(&launch->output), POLLOUT, 0 };
	polled[AT_INPUT] = (struct pollfd){ input, POLLIN, 0 };
	for (size_t i = 0; i < launch->nlinks; i++) {
		struct run_link *link = &launch->links[i];
		short events = room ? POLLIN : 0;

		link->last = room && link->pid == 0 && !link->over;
		last |= link->last;
		if (!link->over && link->wire.outbox.len > 0)
			events |= POLLOUT;
		/* A wire that has ended is always ready: not asked while there is no room. */
		polled[AT_LINKS + i] =
			(struct pollfd){ link->over || !events ? -1 : link->wire.in, events, 0 };
	}
	return poll(polled, AT_LINKS + launch->nlinks, last ? 0 : launch_wait_ms(launch));
}

static void launch_show_parts(struct launch *launch)
{
	for (uint32_t i = 0; i < launch->opts->n; i++)
		run_output_end_lines(&launch->output, i);
	launch->output.waiting = false;
}

static void launch_lose_output(struct launch *launch)
{
	int error = launch->output.error;

	launch->output.error = 0;
	if (launch->ending)
		return;
	if (error != EPIPE)
		run_launch_say(launch, "cannot write the output: %s; terminated all ranks",
			       strerror(error));
	run_launch_fail(launch, error == EPIPE ? 128 + SIGPIPE : CLI_WRONG, SIGTERM);
	launch_end(launch, SIGTERM);
}

static void launch_serve_links(struct launch *launch)
{
	bool ready = !launch->going && !launch->ending;

	for (size_t i = 0; i < launch->nlinks; i++) {
		struct run_link *link = &launch->links[i];

		if (launch->polled[AT_LINKS + i].revents & ~POLLOUT && !link->over)
			run_link_listen(launch, link);
		else if (link->last)
			run_link_drop(launch, link);
		ready = ready && link->hello && !link->over;
	}
	if (ready && !launch->ending)
		run_links_go(launch);
	/* The other side may be gone; what it has said is read to its end. */
	for (size_t i = 0; i < launch->nlinks; i++) {
		struct run_link *link = &launch->links[i];

		if (!link->over && !run_wire_flush(&link->wire))
			run_bytes_drop(&link->wire.outbox, link->wire.outbox.len);
	}
}

static void launch_turn(struct launch *launch)
{
	int ready = launch_poll(launch);

	if (ready == 0 && launch->output.waiting && !launch->output.prefix)
		launch_show_parts(launch);
	if (ready >= 0) {
		if (launch->polled[AT_OUTPUT].revents)
			run_output_write(&launch->output);
		if (launch->polled[AT_INPUT].revents)
			launch_take_input(launch);
		if (launch->polled[AT_SIGNALS].revents)
			launch_hear_signals(launch);
		launch_serve_links(launch);
	}
	if (launch->output.error)
		launch_lose_output(launch);
	launch_look_at_clock(launch);
}

static bool launch_open(struct launch *launch)
{
	const struct run_hosts *hosts = &launch->opts->hosts;

	for (size_t i = 0; i < hosts->count; i++) {
		struct run_link *link = &launch->links[launch->nlinks];

		if (hosts->at[i].count == 0)
			continue;
		*link = (struct run_link){ .host = &hosts->at[i] };
		launch->relay |= !run_host_is_here(link->host);
		if (!run_link_open(link, launch->opts, &launch->signals))
			return false;
		launch->nlinks++;
	}
	return true;
}

int run_launch(const struct run_opts *opts)
{
	static const int signals[] = { SIGCHLD, SIGINT,	 SIGTERM, SIGHUP,  SIGQUIT,
				       SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, 0 };
	struct launch launch = { .opts = opts, .relay = opts->prefix, .running = opts->n };

	launch.links = run_grow(NULL, opts->hosts.count, sizeof(*launch.links));
	launch.polled = run_grow(NULL, AT_LINKS + opts->hosts.count, sizeof(*launch.polled));
	launch.ranks = run_grow(NULL, opts->n, sizeof(*launch.ranks));
	memset(launch.ranks, 0, opts->n * sizeof(*launch.ranks));
	run_output_init(&launch.output, opts->n, opts->prefix);
	run_signals_take(&launch.signals, signals);
	if (opts->timeout_ns)
		launch.timeout_at = cli_now_ns() + opts->timeout_ns;
	if (!launch_open(&launch))
		run_launch_fail(&launch, CLI_WRONG, SIGTERM);
	while (!launch.abandoned && !(launch_is_closed(&launch) && launch.output.queue.len == 0))
		launch_turn(&launch);

	for (size_t i = 0; i < launch.nlinks; i++)
		run_wire_fini(&launch.links[i].wire);
	close(launch.signals.fd);
	run_output_fini(&launch.output);
	free(launch.ranks);
	free(launch.polled);
	free(launch.links);
	return launch.failed ? launch.status : CLI_DONE;
}
