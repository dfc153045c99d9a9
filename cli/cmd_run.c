/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `hocket run`: its options; run_launch.c does the work. */
#include "run.h"

#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char run_help[] =
	"Usage: hocket run -n N [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"Starts N ranks of a program, here or on other hosts, and exits when all have.\n"
	"Exit status 0 if every rank's is; else that of the first to fail.\n\n"
	"  -n, --ranks N    ranks; default: the slots of --hosts\n"
	"      --hosts LIST hosts, and how many ranks each takes: a,b:4; default: here\n"
	"      --prefix     prefix every line with its rank: [3]\n"
	"      --keep-going continue when a rank fails; default: terminate the others\n"
	"      --timeout S  terminate all after S seconds, with exit status 124\n"
	"      --grace S    seconds between SIGTERM and SIGKILL; default 5\n"
	"      --env NAME[=VALUE]\n"
	"                   set for every rank; without a value: as here\n"
	"      --net NET    transport: auto, shm or tcp (HOCKET_NET)\n"
	"      --check      compare the calls of the ranks (HOCKET_CHECK=1)\n"
	"      --addr HOST[:PORT]\n"
	"                   where other hosts reach the first one; default: its name, and a\n"
	"                   port that is free\n"
	"      --join HOST:PORT\n"
	"                   N newcomers for the group that runs there (hk_group_grow)\n"
	"      --ssh CMD    instead of 'ssh -o BatchMode=yes' (HOCKET_SSH)\n"
	"      --remote PATH\n"
	"                   path of hocket on other hosts; default: as here\n\n"
	"Example: hocket run -n 4 --prefix -- python train.py --steps 10\n"
	"         hocket run --hosts a:8,b:8 ./train\n";

#define SECONDS_MAX 1e9
#define GRACE_DEFAULT_NS (5 * CLI_NS)

/* clang-format off */
static const struct option run_long[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "hosts", required_argument, NULL, 'H' },
	{ "prefix", no_argument, NULL, 'p' },
	{ "keep-going", no_argument, NULL, 'k' },
	{ "timeout", required_argument, NULL, 't' },
	{ "grace", required_argument, NULL, 'g' },
	{ "env", required_argument, NULL, 'e' },
	{ "net", required_argument, NULL, 'N' },
	{ "check", no_argument, NULL, 'c' },
	{ "addr", required_argument, NULL, 'a' },
	{ "join", required_argument, NULL, 'j' },
	{ "ssh", required_argument, NULL, 's' },
	{ "remote", required_argument, NULL, 'r' },
	{ "agent", no_argument, NULL, 'A' },	/* what ssh starts; not for people */
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};
/* clang-format on */

/* "1", "0.5": a plain number of seconds. */
static bool run_parse_seconds(const char *text, uint64_t *ns_out)
{
	double seconds = strtod(text, NULL);

	if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.")] != '\0' ||
	    strchr(text, '.') != strrchr(text, '.') || seconds > SECONDS_MAX)
		return false;
	*ns_out = (uint64_t)(seconds * (double)CLI_NS);
	return true;
}

static bool run_take_seconds(const char *name, const char *text, uint64_t *ns_out)
{
	if (run_parse_seconds(text, ns_out))
		return true;
	cli_wrong("run", "--%s takes a number of seconds, not '%s'", name, text);
	return false;
}

static bool run_take_ranks(const char *text, uint32_t *n_out)
{
	if (cli_parse_number(text, 1, RUN_RANKS_MAX, n_out))
		return true;
	cli_wrong("run", "--ranks takes a number of ranks from 1 to %u, not '%s'", RUN_RANKS_MAX,
		  text);
	return false;
}

static bool run_take_net(const char *text, struct run_env *env)
{
	char assignment[32];

	if (strcmp(text, "auto") != 0 && strcmp(text, "shm") != 0 && strcmp(text, "tcp") != 0) {
		cli_wrong("run", "--net takes auto, shm or tcp, not '%s'", text);
		return false;
	}
	snprintf(assignment, sizeof(assignment), "HOCKET_NET=%s", text);
	run_env_set(env, assignment);
	return true;
}

/* One word each, and something: an option, or a host, is never empty. */
static bool run_take_word(const char *name, const char *text, const char **word_out)
{
	if (text[strspn(text, " \t")] == '\0') {
		cli_wrong("run", "--%s takes a word, not '%s'", name, text);
		return false;
	}
	*word_out = text;
	return true;
}

static bool run_take_join(const char *text, const char **join_out)
{
	const char *colon = strrchr(text, ':');
	uint32_t port;

	if (colon && colon > text && cli_parse_number(colon + 1, 1, UINT16_MAX, &port)) {
		*join_out = text;
		return true;
	}
	cli_wrong("run", "--join takes host:port or [address]:port, not '%s'", text);
	return false;
}

/* False where the value is wrong, which has been said. */
static bool run_take(struct run_opts *opts, int option, const char *value)
{
	switch (option) {
	case 'n':
		return run_take_ranks(value, &opts->n);
	case 'H':
		return run_hosts_parse(value, &opts->hosts);
	case 'p':
		return opts->prefix = true;
	case 'k':
		return opts->keep_going = true;
	case 't':
		return run_take_seconds("timeout", value, &opts->timeout_ns);
	case 'g':
		return run_take_seconds("grace", value, &opts->grace_ns);
	case 'e':
		return run_env_option(&opts->env, value);
	case 'N':
		return run_take_net(value, &opts->env);
	case 'c':
		run_env_set(&opts->env, "HOCKET_CHECK=1");
		return true;
	case 'a':
		return run_take_word("addr", value, &opts->addr);
	case 'j':
		return run_take_join(value, &opts->join);
	case 's':
		return run_take_word("ssh", value, &opts->ssh);
	default:
		return run_take_word("remote", value, &opts->remote);
	}
}

/* Descriptors 0, 1 and 2 exist: nothing else shall be opened in their place. */
static void run_fill_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
			_exit(CLI_WRONG);
}

static int run_program(struct run_opts *opts, char **argv)
{
	if (!argv[0])
		return cli_wrong("run", "no program given; see 'hocket run --help'");
	if (!run_hosts_place(&opts->hosts, &opts->n))
		return CLI_WRONG;
	opts->argv = argv;
	return run_launch(opts);
}

static int run_parse(struct run_opts *opts, int argc, char **argv)
{
	int option;

	opterr = 0;
	optind = 1;
	/* "+": what stands behind the program is the program's. */
	while ((option = getopt_long(argc, argv, "+:n:h", run_long, NULL)) != -1) {
		if (option == ':' || option == '?') {
			cli_wrong_option("run", option, argv[optind - 1]);
			return CLI_WRONG;
		}
		if (option == 'h') {
			fputs(run_help, stdout);
			return CLI_DONE;
		}
		if (option == 'A')
			return run_agent(STDIN_FILENO, STDOUT_FILENO, NULL);
		if (!run_take(opts, option, optarg))
			return CLI_WRONG;
	}
	return run_program(opts, argv + optind);
}

static int run_main(int argc, char **argv)
{
	struct run_opts opts = { .grace_ns = GRACE_DEFAULT_NS };

	if (!cli_env("run", "HOCKET_SSH", &opts.ssh))
		return CLI_WRONG;
	run_fill_descriptors();
	int status = run_parse(&opts, argc, argv);
	run_hosts_fini(&opts.hosts);
	run_env_fini(&opts.env);
	return status;
}

const struct cli_command cli_run = {
	.name = "run",
	.about = "start the ranks of a program, here or on other hosts",
	.help = run_help,
	.main = run_main,
};
