/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - `hocket run` inside.
 *
 *     launcher --wire-- agent ---- rank, rank, ...      (this machine)
 *            \-- ssh --- agent ---- rank, rank, ...      (every other host)
 *
 * The launcher (run_launch.c) decides; an agent (run_agent.c) is the parent of
 * the ranks of one host, and does what it is told. Without ssh it is the same
 * code in a process of its own. Whoever dies takes the ranks along: when the
 * wire to the launcher ends, the agent kills every rank's session; when the
 * agent ends, the kernel kills its ranks.
 *
 * A rank leads a session of its own. So a signal from the terminal reaches the
 * launcher alone, which forwards it once; a signal to a rank reaches all that
 * the rank has started, and nobody else, even where the launcher shares its
 * group with a script; and rank 0 can read a terminal that is not its own
 * without being stopped for it.
 */
#ifndef HK_CLI_RUN_H
#define HK_CLI_RUN_H

#include "cli.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#define RUN_RANKS_MAX 65536u

/* ---- bytes and time: run_wire.c ---- */

/* A queue of bytes: data[head], len of them. */
struct run_bytes {
	char *data;
	size_t head, len, cap;
};

void run_bytes_add(struct run_bytes *bytes, const void *data, size_t len);
void run_bytes_drop(struct run_bytes *bytes, size_t len);
void run_bytes_fini(struct run_bytes *bytes);

/*
 * Memory, or the end: a process that ends ends its ranks too, which is all
 * that could be done about it.
 */
void *run_grow(void *old, size_t count, size_t size);
char *run_text(const char *fmt, ...) HK_PRINTF(1, 2);	/* owned */

/* ---- the wire: run_wire.c ---- */

/* What is said, and in which fields; `data` is bytes or a text. */
enum run_kind {
	/* to the agent */
	RUN_DIR = 1,	/* data: where to work */
	RUN_ENV,	/* data: NAME=VALUE */
	RUN_WORD,	/* data: the next word of the program's command line */
	RUN_GO,		/* rank: the first, value: how many, data: 'r' if relayed */
	RUN_SIGNAL,	/* value: a signal for every rank */
	RUN_INPUT,	/* data: for rank 0's standard input; none: it ends */
	RUN_RECORD,	/* writes down what the ranks' flight recorders hold; rank, data: who
			   died, and how; no data: nobody */
	/* to the launcher */
	RUN_STARTED,	/* rank, value: pid */
	RUN_OUTPUT,	/* rank, value: 1 or 2, data */
	RUN_EXITED,	/* rank, value: status */
	RUN_KILLED,	/* rank, value: signal */
	RUN_UNSTARTED,	/* rank, value: 126 or 127, data: why */
	RUN_TAKEN,	/* value: bytes of input that were passed on */
	RUN_NOTE	/* data: a line for the user */
};

/* An agent's first line, before any frame: this, its version and a free port. */
#define RUN_HELLO "hocket-agent "
#define RUN_HELLO_VERSION 2u

#define RUN_FRAME_MAX (1u << 20)
#define RUN_CHUNK 65536u	/* read or relayed at once */

struct run_frame {
	uint32_t kind, rank, value, len;
	const char *data;	/* borrowed until the next call on the wire; ends in no NUL */
};

struct run_wire {
	int in, out;		/* non-blocking; may be one; -1: closed */
	struct run_bytes inbox, outbox;
	uint32_t taken;		/* bytes of inbox that the last frame was */
};

void run_wire_init(struct run_wire *wire, int in, int out);
void run_wire_fini(struct run_wire *wire);
void run_wire_put(struct run_wire *wire, const struct run_frame *frame);
/* Moves what can be moved now; false once the other side is gone. */
bool run_wire_flush(struct run_wire *wire);
bool run_wire_fill(struct run_wire *wire);
/* The next whole frame: 1, none yet: 0, not a frame: -1. */
int run_wire_next(struct run_wire *wire, struct run_frame *frame_out);

/* ---- where ranks go: run_hosts.c ---- */

struct run_host {
	char *name;		/* [user@]host, as ssh takes it */
	uint32_t slots;		/* 0: not given */
	uint32_t first, count;	/* its ranks */
};

struct run_hosts {
	struct run_host *at;
	size_t count;
};

/* "a,b:4,[::1]:2"; false where it is wrong, which has been said. */
bool run_hosts_parse(const char *list, struct run_hosts *hosts_out);
/*
 * Gives every host its ranks; *n 0: as many as there are slots. No hosts: this
 * one. False where they do not fit, which has been said.
 */
bool run_hosts_place(struct run_hosts *hosts, uint32_t *n);
void run_hosts_fini(struct run_hosts *hosts);
/* Whether a host is this one, and needs no ssh. */
bool run_host_is_here(const struct run_host *host);
/* "host:port" of rank 0, for the ranks; addr, which may have a port, NULL: found out. Owned. */
char *run_hosts_address(const struct run_hosts *hosts, const char *addr, uint32_t port);

/* ---- environments: run_env.c ---- */

/* "NAME=VALUE" texts, owned; at[count] is NULL. */
struct run_env {
	char **at;
	size_t count;
};

void run_env_copy(struct run_env *env, char *const *from);	/* NULL: nothing */
void run_env_set(struct run_env *env, const char *assignment);
void run_env_fini(struct run_env *env);
/* --env NAME[=VALUE]; false where it is wrong, which has been said. */
bool run_env_option(struct run_env *env, const char *text);
/* What of the launcher's own environment every rank gets, wherever it is. */
void run_env_pass_on(struct run_env *env, char *const *from);
/* Whether it says exactly that. */
bool run_env_has(const struct run_env *env, const char *assignment);
/* What a variable is set to; NULL: it is not. */
const char *run_env_get(const struct run_env *env, const char *name);
/* HOCKET_HOSTS, unless it is set: the names of hosts, where there are several. */
void run_env_hosts(struct run_env *env, const struct run_hosts *hosts);
/* HOCKET_KEY, unless it is set; false where there is no randomness, and said. */
bool run_env_key(struct run_env *env);

/* ---- what the options say: cmd_run.c ---- */

struct run_opts {
	uint32_t n;		/* 0: not given */
	struct run_hosts hosts;
	struct run_env env;	/* set for every rank */
	bool prefix, keep_going;
	uint64_t timeout_ns;	/* 0: none */
	uint64_t grace_ns;
	const char *addr;	/* of the first host; NULL: its name */
	const char *join;	/* where a group runs that takes these in; NULL: they are one */
	const char *ssh;
	const char *remote;	/* the hocket of other hosts; NULL: this one's path */
	char **argv;		/* the program */
};

/* ---- signals as they were, for those who are started: run_start.c ---- */

struct run_signals {
	sigset_t mask;		/* before */
	bool pipe_ignored;	/* SIGPIPE was */
	int fd;			/* a signalfd for what is blocked now */
};

/* Blocks the signals of a list that ends in 0, save those that are ignored. */
void run_signals_take(struct run_signals *signals, const int *list);
/* The next one that has come; 0: none. */
int run_signals_next(const struct run_signals *signals);
/* In a child, before it becomes something else. */
void run_signals_restore(const struct run_signals *signals);
/* In a child: dies with `parent`, by `signal`. */
void run_die_with(pid_t parent, int signal);

struct run_start {
	char *const *argv;
	struct run_env *env;	/* of all ranks of the host */
	const struct run_signals *signals;
	struct rlimit files;	/* descriptors that it may open */
	uint32_t rank, local_rank;	/* env may say HOCKET_RANK=new: that stays */
	int fds[3];		/* its standard input, output and error */
	int error_fd;		/* where struct run_error goes if it cannot be started */
};

struct run_error {
	uint32_t local_rank;
	int error;
};

/* A child that becomes the program; -1 and errno: there is none. */
pid_t run_start(const struct run_start *start);

/* ---- the agent: run_agent.c ---- */

/*
 * Serves a launcher on in and out until all is over; the exit status. `before`
 * is what ranks get where the launcher has changed it, NULL: what is now.
 */
int run_agent(int in, int out, const struct run_signals *before);

/*
 * Writes down what the flight recorders of ranks hold: of all processes of these
 * sessions, where the ranks themselves would have. What was written before stays.
 * Who has died is noted in it. A line about it, NULL: there was nothing. Owned.
 */
struct run_dead {
	uint32_t rank;
	char why[96];		/* "killed by signal 9 (Killed)"; "": nobody is */
};
char *run_record(const pid_t *leaders, size_t count, const struct run_env *env,
		 const struct run_dead *dead);

/* ---- output of ranks: run_output.c ---- */

/*
 * Whole lines of all ranks, in the order in which they ended, to standard
 * output and error. Writes only what can be written without waiting.
 */
struct run_output {
	struct run_bytes queue;	/* of pieces: struct piece, bytes */
	struct run_bytes *parts; /* of rank r: lines that have not ended, [2r], [2r+1] */
	uint32_t n;
	bool prefix;
	bool waiting;		/* some part is not empty */
	size_t done;		/* of the first piece */
	size_t last;		/* bytes of queue before the last piece's header */
	int error;		/* errno of standard output; 0: fine */
};

#define RUN_OUTPUT_MAX (1u << 20)	/* queued; beyond that, nothing is read */

void run_output_init(struct run_output *output, uint32_t n, bool prefix);
void run_output_fini(struct run_output *output);
void run_output_take(struct run_output *output, const struct run_frame *frame);
/* A rank has ended: its last line has too. Without prefixes also called when all is quiet. */
void run_output_end_lines(struct run_output *output, uint32_t rank);
void run_output_say(struct run_output *output, const char *line, size_t len);
/* Which descriptor the first piece is for; -1: nothing is queued. */
int run_output_fd(const struct run_output *output);
void run_output_write(struct run_output *output);

/* ---- the launcher: run_connect.c, run_launch.c, run_links.c ---- */

/* The launcher's end of one host. */
struct run_link {
	const struct run_host *host;
	pid_t pid;		/* of the agent, or of ssh; 0: has been waited for */
	int pid_status;		/* once it has */
	struct run_wire wire;
	bool hello, over;	/* has said hello; wire has ended */
	bool last;		/* without a process since before it was last looked at */
	uint32_t port;
};

/*
 * The words of the ssh command, the host, and what shall run there: the hocket of
 * that path (NULL: this one's), with options. For a child that becomes it.
 */
char **run_ssh_words(const char *ssh, const char *host, const char *remote, const char *options);
/* Starts the agent of a host; false where it cannot be, which has been said. */
bool run_link_open(struct run_link *link, const struct run_opts *opts,
		   const struct run_signals *signals);

/* Starts everything, and returns the exit status when nothing is left. */
int run_launch(const struct run_opts *opts);

#endif
