/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top.c - `hocket top`: what ranks do just now, and what they wait for. */
#include "top.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
static const char top_help[] =
	"Usage: hocket top [OPTION...]\n"
	"Shows the ranks of this user on this host: operations and bytes a second, the\n"
	"operation and step each is at, what it waits for and since when, and which rank\n"
	"the others wait for in the end.\n"
	"Exit status 0, or with --once and --json 1 if a job is stuck.\n\n"
	"      --once         sample once and exit; the default if output is no terminal\n"
	"      --json         print JSON; once\n"
	"      --prometheus   Prometheus text format; once\n"
	"      --interval S   seconds between samples; default 1\n"
	"      --all          also the other hosts of the jobs\n"
	"      --hosts LIST   also these hosts: a,b\n"
	"      --ssh CMD      instead of 'ssh -o BatchMode=yes' (HOCKET_SSH)\n"
	"      --remote PATH  path of hocket on other hosts; default: as here\n\n"
	"Example: hocket top --once\n";

static const struct option top_long[] = {
	{ "once", no_argument, NULL, 'o' },
	{ "json", no_argument, NULL, 'j' },
	{ "prometheus", no_argument, NULL, 'p' },
	{ "interval", required_argument, NULL, 'i' },
	{ "all", no_argument, NULL, 'a' },
	{ "hosts", required_argument, NULL, 'H' },
	{ "ssh", required_argument, NULL, 's' },
	{ "remote", required_argument, NULL, 'r' },
	{ "agent", no_argument, NULL, 'A' },	/* what ssh starts; not for people */
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};
/* clang-format on */

#define INTERVAL_MIN 0.05
#define INTERVAL_MAX 3600.0

static bool top_take(struct top *top, int option, const char *word)
{
	switch (option) {
	case 'o':
		return top->once = true;
	case 'j':
		return top->json = true;
	case 'p':
		return top->prometheus = true;
	case 'a':
		return top->all = true;
	case 'A':
		return top->agent = true;
	case 'h':
		return top->help = true;
	case 'H':
		top->hosts = optarg;
		return true;
	case 's':
		top->ssh = optarg;
		return true;
	case 'r':
		top->remote = optarg;
		return true;
	case 'i':
		if (cli_parse_real(optarg, INTERVAL_MIN, INTERVAL_MAX, &top->interval_s))
			return true;
		cli_wrong("top", "--interval takes seconds from 0.05 to 3600, not '%s'", optarg);
		return false;
	default:
		cli_wrong_option("top", option, word);
		return false;
	}
}

static bool top_parse(struct top *top, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", top_long, NULL)) != -1)
		if (!top_take(top, option, argv[optind - 1]))
			return false;
	if (optind < argc) {
		cli_wrong("top", "'%s' is not expected; see 'hocket top --help'", argv[optind]);
		return false;
	}
	if (top->json && top->prometheus) {
		cli_wrong("top", "--json and --prometheus exclude each other");
		return false;
	}
	return true;
}

/* ---- the terminal ---- */

static volatile sig_atomic_t ended;

static void on_signal(int signal)
{
	ended = signal;
}

static void terminal_begin(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	fputs("\033[?1049h\033[?25l", stdout); /* another screen, without a cursor */
}

static void terminal_end(void)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
}

static int terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 80;
}

static void top_sleep(double seconds)
{
	struct timespec time = { .tv_sec = (time_t)seconds };

	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	nanosleep(&time, NULL); /* a signal ends it, as it should */
}

/* ---- looking ---- */

static bool is_in_trouble(const struct records *records)
{
	bool trouble = false;

	for (size_t i = 0; i < records->count && !trouble;) {
		size_t count = records_run(records->at + i, records->count - i);
		struct diagnosis diagnosis;

		diagnose(records->at + i, count, &diagnosis);
		trouble = diagnosis.finding.kind != FINDING_NONE;
		diagnosis_fini(&diagnosis);
		i += count;
	}
	return trouble;
}

static int top_once(const struct top *top)
{
	struct records records = { 0 };

	records_find(&records);
	top_sleep(top->interval_s);
	records_look_again(&records);
	if (!top->agent && (top->all || top->hosts))
		top_ask_hosts(top, &records);
	records_sort(&records);
	if (top->agent)
		top_tell(&records);
	else if (top->prometheus)
		top_print_prometheus(&records);
	else if (top->json)
		top_print_json(&records);
	else
		top_print(top, &records);
	bool trouble = !top->agent && !top->prometheus && is_in_trouble(&records);
	records_fini(&records);
	return trouble ? CLI_FAILED : CLI_DONE;
}

static int top_redraw(struct top *top)
{
	struct records records = { 0 };

	terminal_begin();
	records_find(&records);
	while (!ended && !ferror(stdout)) {
		top_sleep(top->interval_s);
		if (ended)
			break;
		/* Keeps those of this host alone; the others are asked anew. */
		records_look_again(&records);
		if (top->all || top->hosts)
			top_ask_hosts(top, &records);
		records_sort(&records);
		top->width = terminal_width();
		fputs("\033[H\033[J", stdout);
		top_print(top, &records);
		fflush(stdout);
	}
	terminal_end();
	records_fini(&records);
	return CLI_DONE;
}

static int top_main(int argc, char **argv)
{
	struct top top = { .interval_s = -1 };

	if (!cli_env("top", "HOCKET_SSH", &top.ssh) || !top_parse(&top, argc, argv))
		return CLI_WRONG;
	if (top.help) {
		fputs(top_help, stdout);
		return CLI_DONE;
	}
	bool once = top.once || top.json || top.prometheus || top.agent;
	top.terminal = !once && isatty(STDOUT_FILENO);
	if (top.interval_s < 0)
		top.interval_s = top.terminal ? 1 : 0.5;
	if (top.terminal)
		return top_redraw(&top);
	top.width = isatty(STDOUT_FILENO) ? terminal_width() : 0;
	return top_once(&top);
}

const struct cli_command cli_top = {
	.name = "top",
	.about = "show live what ranks do and what they wait for",
	.help = top_help,
	.main = top_main,
};
