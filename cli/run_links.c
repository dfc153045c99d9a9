/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_links.c - the launcher's hosts: their hello, their start, what they
 * report of their ranks, and how they are lost.
 */
#include "run_launch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_LOST 255
#define NOISE_MAX RUN_CHUNK /* that a host's shell may say before its agent does */

void run_link_close(struct run_link *link)
{
	run_wire_fini(&link->wire);
	link->over = true;
}

/* ---- what agents report ---- */

static void rank_fail(struct launch *launch, const struct run_link *link,
		      const struct run_frame *frame)
{
	const char *on = run_host_is_here(link->host) ? "" : " on ";
	const char *host = *on ? link->host->name : "";
	const char *then = run_launch_consequence(launch);
	int pid = launch->ranks[frame->rank].pid, value = (int)frame->value;

	if (frame->kind == RUN_UNSTARTED && (!launch->failed || launch->status != value))
		run_launch_say(launch, "cannot start %s%s%s: %.*s", launch->opts->argv[0], on, host,
			       (int)frame->len, frame->data);
	else if (frame->kind == RUN_EXITED)
		run_launch_say(launch, "rank %u (pid %d%s%s) exited with status %d%s", frame->rank,
			       pid, on, host, value, then);
	else if (frame->kind == RUN_KILLED)
		run_launch_say(launch, "rank %u (pid %d%s%s) was killed by signal %d (%s)%s",
			       frame->rank, pid, on, host, value, strsignal(value), then);
}

/* For the records of the others. */
static void rank_note_death(struct launch *launch, const struct run_frame *frame)
{
	struct run_dead *dead = &launch->dead;
	int value = (int)frame->value;

	if (dead->why[0])
		return;
	dead->rank = frame->rank;
	if (frame->kind == RUN_KILLED)
		snprintf(dead->why, sizeof(dead->why), "killed by signal %d (%s)", value,
			 strsignal(value));
	else if (frame->kind == RUN_EXITED)
		snprintf(dead->why, sizeof(dead->why), "exited with status %d", value);
}

static void rank_end(struct launch *launch, const struct run_link *link,
		     const struct run_frame *frame)
{
	int value = (int)frame->value;
	bool killed = frame->kind == RUN_KILLED;

	if (launch->ranks[frame->rank].ended)
		return;
	launch->ranks[frame->rank].ended = true;
	launch->running--;
	run_output_end_lines(&launch->output, frame->rank);
	if (frame->kind == RUN_EXITED && value == 0)
		return;
	if (killed && launch->asked && (value == launch->asked || value == SIGKILL)) {
		run_launch_fail(launch, 128 + launch->asked, launch->asked);
		return;
	}
	if (!launch->ending) {
		rank_fail(launch, link, frame);
		rank_note_death(launch, frame);
	}
	run_launch_fail(launch, killed ? 128 + value : value, SIGTERM);
}

/* False where it makes no sense. */
static bool link_hear(struct launch *launch, struct run_link *link, const struct run_frame *frame)
{
	const struct run_host *host = link->host;
	bool own = frame->rank >= host->first && frame->rank - host->first < host->count;

	switch (frame->kind) {
	case RUN_STARTED:
		if (own)
			launch->ranks[frame->rank].pid = (pid_t)frame->value;
		return own;
	case RUN_OUTPUT:
		own = own && (frame->value == 1 || frame->value == 2);
		if (own)
			run_output_take(&launch->output, frame);
		return own;
	case RUN_EXITED:
	case RUN_KILLED:
	case RUN_UNSTARTED:
		if (own)
			rank_end(launch, link, frame);
		return own;
	case RUN_TAKEN:
		own = frame->value <= launch->input_out;
		launch->input_out -= own ? frame->value : 0;
		return own;
	case RUN_NOTE:
		run_launch_say(launch, "host %s: %.*s", host->name, (int)frame->len, frame->data);
		return true;
	default:
		return false;
	}
}

/* ---- the start ---- */

static void link_tell(struct run_link *link, enum run_kind kind, const char *text)
{
	struct run_frame frame = { .kind = kind, .len = (uint32_t)strlen(text), .data = text };

	run_wire_put(&link->wire, &frame);
}

static void link_go(const struct launch *launch, struct run_link *link, const struct run_env *env)
{
	const struct run_host *host = link->host;
	struct run_frame go = { .kind = RUN_GO,
				.rank = host->first,
				.value = host->count,
				.len = launch->relay,
				.data = "r" };
	char dir[PATH_MAX];

	if (!run_host_is_here(host) && getcwd(dir, sizeof(dir)))
		link_tell(link, RUN_DIR, dir);
	for (size_t i = 0; i < env->count; i++)
		link_tell(link, RUN_ENV, env->at[i]);
	for (char **word = launch->opts->argv; *word; word++)
		link_tell(link, RUN_WORD, *word);
	run_wire_put(&link->wire, &go);
}

void run_links_go(struct launch *launch)
{
	const struct run_opts *opts = launch->opts;
	char *address = run_hosts_address(&opts->hosts, opts->addr, launch->links[0].port);
	char *size = run_text("HOCKET_SIZE=%u", opts->n);
	char *addr = run_text("HOCKET_ADDR=%s", opts->join ? opts->join : address);
	struct run_env env = { 0 };

	run_env_pass_on(&env, environ);
	run_env_copy(&env, opts->env.at);
	/* Newcomers are told by the group; a launcher may be a newcomer's child. */
	run_env_set(&env, opts->join ? "HOCKET_RANK=new" : "HOCKET_RANK=");
	run_env_set(&env, opts->join ? "HOCKET_SIZE=" : size);
	run_env_set(&env, addr);
	run_env_hosts(&env, &opts->hosts);
	launch->going = true;
	if (!opts->join && !run_env_key(&env)) {
		launch->going = false;
		run_launch_fail(launch, CLI_WRONG, SIGTERM);
	}
	for (size_t i = 0; launch->going && i < launch->nlinks; i++)
		link_go(launch, &launch->links[i], &env);
	run_env_fini(&env);
	free(address);
	free(size);
	free(addr);
}

/* The agent's first line; false where it is another version's. */
static bool link_take_hello(struct run_link *link, const char *at, size_t len)
{
	char *line = run_text("%.*s", (int)(len - strlen(RUN_HELLO) - 1), at + strlen(RUN_HELLO));
	char *port = line, *version = strsep(&port, " ");
	uint32_t number;

	link->hello = cli_parse_number(version, RUN_HELLO_VERSION, RUN_HELLO_VERSION, &number) &&
		      port && cli_parse_number(port, 0, UINT16_MAX, &link->port);
	free(line);
	return link->hello;
}

/* What a login shell has said before the agent is passed on. */
static bool link_hear_hello(struct launch *launch, struct run_link *link)
{
	struct run_bytes *inbox = &link->wire.inbox;
	char *end;

	while (inbox->len > 0 && (end = memchr(inbox->data + inbox->head, '\n', inbox->len))) {
		char *at = inbox->data + inbox->head;
		size_t len = (size_t)(end + 1 - at);

		if (strncmp(at, RUN_HELLO, strlen(RUN_HELLO)) == 0) {
			bool known = link_take_hello(link, at, len);
			run_bytes_drop(inbox, len);
			return known;
		}
		run_output_say(&launch->output, at, len);
		run_bytes_drop(inbox, len);
	}
	return inbox->len <= NOISE_MAX;
}

/* ---- links ---- */

static void link_lose(struct launch *launch, struct run_link *link, const char *what)
{
	launch->running -= launch->going ? 0 : launch->running;
	for (uint32_t i = 0; launch->going && i < link->host->count; i++) {
		struct launch_rank *rank = &launch->ranks[link->host->first + i];

		/* What its ranks had started has lost all that would have ended it. */
		if (!rank->ended && rank->pid > 0 && run_host_is_here(link->host))
			kill(-rank->pid, SIGKILL);
		launch->running -= !rank->ended;
		rank->ended = true;
	}
	int status = link->pid_status;
	int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (!launch->ending)
		run_launch_say(launch, "host %s: %s%s", link->host->name, what,
			       run_launch_consequence(launch));
	run_launch_fail(launch, code ? code : STATUS_LOST, SIGTERM);
}

/* Neither a wire nor a process is left: were all of its ranks? */
static void link_end(struct launch *launch, struct run_link *link)
{
	bool whole = link->hello && launch->going;
	char what[128];

	for (uint32_t i = 0; whole && i < link->host->count; i++)
		whole = launch->ranks[link->host->first + i].ended;
	if (whole || (launch->ending && !launch->going))
		return;
	int status = link->pid_status;
	const char *who = run_host_is_here(link->host) ? "its agent" : "ssh";
	const char *when = launch->going ? "before all ranks had" : "before any rank was started";
	if (WIFSIGNALED(status))
		snprintf(what, sizeof(what), "%s was killed by signal %d %s", who, WTERMSIG(status),
			 when);
	else
		snprintf(what, sizeof(what), "%s ended with status %d %s", who, WEXITSTATUS(status),
			 when);
	link_lose(launch, link, what);
}

void run_links_reap(struct launch *launch)
{
	for (size_t i = 0; i < launch->nlinks; i++) {
		struct run_link *link = &launch->links[i];

		if (link->pid > 0 && waitpid(link->pid, &link->pid_status, WNOHANG) == link->pid) {
			link->pid = 0;
			if (link->over)
				link_end(launch, link);
		}
	}
}

void run_link_listen(struct launch *launch, struct run_link *link)
{
	struct run_frame frame;
	bool there = run_wire_fill(&link->wire), sense = true;
	int next = 0;

	if (!link->hello)
		sense = link_hear_hello(launch, link);
	while (sense && link->hello && !link->over &&
	       (next = run_wire_next(&link->wire, &frame)) > 0)
		sense = launch->going && link_hear(launch, link, &frame);
	if (link->over || (there && sense && next >= 0))
		return;
	run_link_close(link);
	if (!sense || next < 0) {
		link_lose(launch, link, "what answers is not this version of hocket");
		if (link->pid > 0)
			kill(link->pid, SIGTERM);
	} else if (link->pid == 0) {
		link_end(launch, link);
	}
}

void run_link_drop(struct launch *launch, struct run_link *link)
{
	run_link_close(link);
	link_end(launch, link);
}
