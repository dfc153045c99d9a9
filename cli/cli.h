/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what the sub-commands share: options, errors and small output.
 * The command sees the installed headers only, as any program does.
 *
 * Exit status: 0 done (and, for check, all proved), 1 a plan was refused, a
 * result was wrong or a rank failed, 2 the call or its input was wrong.
 */
#ifndef HK_CLI_CLI_H
#define HK_CLI_CLI_H

#include <hocket/hocket.h>

enum cli_exit { CLI_DONE = 0, CLI_REFUSED = 1, CLI_FAILED = 1, CLI_WRONG = 2 };

#define CLI_BYTES_MAX (UINT64_C(1) << 40)	/* of a size */
#define CLI_ITERS_MAX 1000000u

struct cli_range {
	uint32_t from;
	uint32_t to;
};

/* Those of `hocket sim` alone. */
struct cli_sim_args {
	const char *as, *what_if, *trace, *goal, *chakra;
	bool sensitivity, full;
	bool has_seed;
	uint32_t seed;
	uint32_t samples;
	double jitter;
	uint64_t slice;
	const char **faults;	/* as they were written */
	size_t nfaults;
	const char **also;
	size_t nalso;
};

/* Which options a command was given; those it does not take are errors. */
struct cli_args {
	const char *command;	/* "plan", for messages */
	const char *what;	/* the operand; NULL: none */
	bool has_ranks;
	struct cli_range ranks;
	const char *algo;
	bool has_nodes;
	uint32_t nodes;
	uint32_t *node_sizes;	/* of `nodes` nodes; NULL: a number was given */
	uint32_t node_ranks;	/* their sum */
	bool uneven;		/* they differ */
	bool has_root;
	uint32_t root;
	bool has_rank;
	uint32_t rank;
	struct hk_msg *pairs;
	size_t npairs;
	bool all, json, dot, picture, msccl;
	uint64_t min_bytes, max_bytes;	/* 0: not given, as all that follows */
	uint32_t factor;
	const char *net, *plan, *type, *op;
	uint32_t iters;
	bool has_warmup;
	uint32_t warmup;
	bool check, no_check, registered, threads, no_pin;
	const char *fabric;
	struct cli_sim_args sim;
	bool help;
};

/* One bit per option, or per few that go together, to say which a command takes. */
enum cli_opt {
	CLI_OPT_RANKS = 1 << 0,
	CLI_OPT_ALGO = 1 << 1,
	CLI_OPT_NODES = 1 << 2,
	CLI_OPT_ROOT = 1 << 3,
	CLI_OPT_RANK = 1 << 4,
	CLI_OPT_PAIRS = 1 << 5,
	CLI_OPT_ALL = 1 << 6,
	CLI_OPT_JSON = 1 << 7,
	CLI_OPT_DOT = 1 << 8,
	CLI_OPT_PICTURE = 1 << 9,
	CLI_OPT_BYTES = 1 << 10,	/* -b, -e, -f */
	CLI_OPT_NET = 1 << 11,
	CLI_OPT_PLAN = 1 << 12,
	CLI_OPT_TYPE = 1 << 13,		/* --type, --op */
	CLI_OPT_BENCH = 1 << 14,	/* how to measure */
	CLI_OPT_MSCCL = 1 << 15,
	CLI_OPT_FABRIC = 1 << 16,
	CLI_OPT_SIM = 1 << 17		/* what to simulate, and what to write */
};

/* False where something is wrong; it has been said. Free with cli_args_fini. */
bool cli_args_parse(struct cli_args *args, const char *command, unsigned takes, int argc,
		    char **argv);
void cli_args_fini(struct cli_args *args);

/* "hocket COMMAND: message" (NULL: no command) and CLI_WRONG, for `return`. */
/* Makes one line of a text, whatever bytes an argument or a file name is made of. */
void cli_one_line(char *text);
int cli_wrong(const char *command, const char *fmt, ...) HK_PRINTF(2, 3);

/* What getopt_long complains about, ':' or '?', at that word. */
void cli_wrong_option(const char *command, int complaint, const char *word);

/* A whole number from min to max, and nothing behind it. */
bool cli_parse_number(const char *text, uint32_t min, uint32_t max, uint32_t *value_out);

/* "8", "64K", "32M", "1G": bytes, in powers of 1024, up to CLI_BYTES_MAX. */
bool cli_parse_bytes(const char *text, uint64_t *bytes_out);
/* A number from min to max, with a point or not, and nothing behind it. */
bool cli_parse_real(const char *text, double min, double max, double *value_out);

/* The collective of that name, or an error that lists them. */
bool cli_parse_coll(const char *command, const char *name, enum hk_coll *coll_out);

/* One of our variables: what it is set to, else its default, which may be NULL. An error,
   and false, where it is set to what it does not take. */
bool cli_env(const char *command, const char *name, const char **text_out);
/* Whether one of our variables is set, to whatever. */
bool cli_env_has(const char *name);

/* Time since some moment in the past. */
#define CLI_NS UINT64_C(1000000000)	/* of a second */
uint64_t cli_now_ns(void);
double cli_now_s(void);

/* Whether a collective has a root. */
bool cli_is_rooted(enum hk_coll coll);

/* A string as JSON, quoted and escaped. */
void cli_json_string(FILE *file, const char *text);

/* A context of a group: "1", or, where rank 2 named it, "1.2". */
struct cli_name {
	char text[48];
};
struct cli_name cli_group_name(uint64_t context);

/*
 * A sub-command; main parses its options and prints its help, unless it has a
 * main of its own.
 */
struct cli_command {
	const char *name;
	const char *about;
	const char *help;
	unsigned takes;		/* enum cli_opt */
	int (*run)(struct cli_args *args);
	int (*main)(int argc, char **argv); /* NULL: run */
};

extern const struct cli_command cli_plan, cli_check, cli_list, cli_run, cli_bench, cli_fabric,
	cli_probe, cli_sim, cli_explain, cli_trace, cli_doctor, cli_top, cli_config;

#endif
