/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - options of all sub-commands, parsed in one place. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_one_line(char *text)
{
	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
}

int cli_wrong(const char *command, const char *fmt, ...)
{
	char text[HK_WHY_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cli_one_line(text);
	fflush(stdout);
	fprintf(stderr, "hocket%s%s: %s\n", command ? " " : "", command ? command : "", text);
	return CLI_WRONG;
}

bool cli_parse_coll(const char *command, const char *name, enum hk_coll *coll_out)
{
	if (hk_coll_parse(name, coll_out) == HK_OK)
		return true;
	cli_wrong(command,
		  "'%s' is not a collective; choose one of allreduce, allgather, reducescatter, "
		  "alltoall, broadcast, reduce, gather, scatter, barrier, sendrecv",
		  name);
	return false;
}

static void env_find(const char *name, struct hk_env_info *info)
{
	info->size = sizeof(*info);
	if (hk_env_find(name, info) != HK_OK)
		exit(cli_wrong(NULL, "libhocket does not know %s: it is of another version", name));
}

bool cli_env(const char *command, const char *name, const char **text_out)
{
	struct hk_env_info info;
	struct hk_why why = { "" };

	env_find(name, &info);
	if (hk_env_check(name, info.text, &why) != HK_OK) {
		cli_wrong(command, "%s", why.text);
		return false;
	}
	*text_out = info.text ? info.text : info.usual;
	return true;
}

bool cli_env_has(const char *name)
{
	struct hk_env_info info;

	env_find(name, &info);
	return info.text != NULL;
}

bool cli_is_rooted(enum hk_coll coll)
{
	struct hk_algo_info info = { .size = sizeof(info) };

	return hk_algo_find(coll, NULL, &info) == HK_OK && info.rooted;
}

struct cli_name cli_group_name(uint64_t context)
{
	uint64_t clock = context & ((UINT64_C(1) << HK_CONTEXT_CLOCK_BITS) - 1);
	uint64_t by = context >> HK_CONTEXT_CLOCK_BITS;
	struct cli_name name;

	snprintf(name.text, sizeof(name.text), by ? "%llu.%llu" : "%llu", (unsigned long long)clock,
		 (unsigned long long)by);
	return name;
}

void cli_json_string(FILE *file, const char *text)
{
	fputc('"', file);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(file, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(file, "\\u%04x", *c);
		else
			fputc(*c, file);
	}
	fputc('"', file);
}

/* A whole number from min to max at *text; moves on behind it. */
static bool args_whole(const char **text, uint64_t min, uint64_t max, uint64_t *value_out)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	unsigned long long value = strtoull(*text, &end, 10);
	if (errno || value < min || value > max)
		return false;
	*text = end;
	*value_out = value;
	return true;
}

static bool args_number(const char **text, uint32_t min, uint32_t max, uint32_t *value_out)
{
	uint64_t value;

	if (!args_whole(text, min, max, &value))
		return false;
	*value_out = (uint32_t)value;
	return true;
}

bool cli_parse_number(const char *text, uint32_t min, uint32_t max, uint32_t *value_out)
{
	return args_number(&text, min, max, value_out) && *text == '\0';
}

static bool args_range(const char *text, struct cli_range *range)
{
	if (!args_number(&text, 1, HK_RANKS_MAX, &range->from))
		return false;
	range->to = range->from;
	if (strncmp(text, "..", 2) == 0) {
		text += 2;
		if (!args_number(&text, range->from, HK_RANKS_MAX, &range->to))
			return false;
	}
	return *text == '\0';
}

bool cli_parse_bytes(const char *text, uint64_t *bytes_out)
{
	static const char units[] = "KMGT";
	uint64_t number;
	unsigned shift = 0;

	if (!args_whole(&text, 1, CLI_BYTES_MAX, &number))
		return false;
	const char *unit = *text ? strchr(units, toupper((unsigned char)*text)) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		text++;
	}
	*bytes_out = number << shift;
	return *text == '\0' && number <= CLI_BYTES_MAX >> shift;
}

bool cli_parse_real(const char *text, double min, double max, double *value_out)
{
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	errno = 0;
	*value_out = strtod(text, &end);
	return errno == 0 && *end == '\0' && *value_out >= min && *value_out <= max;
}

/* An option that may be given again and again. */
static bool args_push(const char ***list, size_t *count, const char *value)
{
	const char **more = realloc(*list, (*count + 1) * sizeof(**list));

	if (!more)
		return false;
	more[(*count)++] = value;
	*list = more;
	return true;
}

/* "0:1,1:2": what sends to what. */
static bool args_pairs(const char *text, struct cli_args *args)
{
	size_t room = 1;

	for (const char *c = text; *c; c++)
		room += *c == ',';
	free(args->pairs);
	args->npairs = 0;
	args->pairs = calloc(room, sizeof(*args->pairs));
	if (!args->pairs)
		return false;
	do {
		struct hk_msg *msg = &args->pairs[args->npairs];

		if (!args_number(&text, 0, HK_RANKS_MAX, &msg->src) || *text++ != ':' ||
		    !args_number(&text, 0, HK_RANKS_MAX, &msg->dst))
			return false;
		args->npairs++;
	} while (*text++ == ',');
	return text[-1] == '\0';
}

/* "3" nodes, or nodes of "3+1+4" ranks. */
static bool args_nodes(const char *text, struct cli_args *args)
{
	size_t room = 1;

	for (const char *c = text; *c; c++)
		room += *c == '+';
	free(args->node_sizes);
	args->node_sizes = NULL;
	args->node_ranks = args->nodes = 0;
	args->uneven = false;
	if (room == 1)
		return cli_parse_number(text, 1, HK_RANKS_MAX, &args->nodes);
	args->node_sizes = calloc(room, sizeof(*args->node_sizes));
	if (!args->node_sizes)
		return false;
	do {
		uint32_t *size = &args->node_sizes[args->nodes++];

		if (!args_number(&text, 1, HK_RANKS_MAX - args->node_ranks, size))
			return false;
		args->node_ranks += *size;
		args->uneven |= *size != args->node_sizes[0];
	} while (*text++ == '+');
	return text[-1] == '\0';
}

/* Options without a letter. */
enum {
	ARG_FABRIC = 256,
	ARG_AS,
	ARG_WHAT_IF,
	ARG_SENSITIVITY,
	ARG_FULL,
	ARG_SEED,
	ARG_SAMPLES,
	ARG_JITTER,
	ARG_FAULT,
	ARG_ALSO,
	ARG_SLICE,
	ARG_TRACE,
	ARG_GOAL,
	ARG_CHAKRA
};

/* clang-format off */
static const struct option args_long[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "algo", required_argument, NULL, 'a' },
	{ "nodes", required_argument, NULL, 'N' },
	{ "root", required_argument, NULL, 'r' },
	{ "rank", required_argument, NULL, 'R' },
	{ "pairs", required_argument, NULL, 'p' },
	{ "all", no_argument, NULL, 'A' },
	{ "json", no_argument, NULL, 'j' },
	{ "dot", no_argument, NULL, 'd' },
	{ "picture", no_argument, NULL, 'P' },
	{ "msccl", no_argument, NULL, 'M' },
	{ "minbytes", required_argument, NULL, 'b' },
	{ "maxbytes", required_argument, NULL, 'e' },
	{ "stepfactor", required_argument, NULL, 'f' },
	{ "net", required_argument, NULL, 'E' },
	{ "plan", required_argument, NULL, 'F' },
	{ "type", required_argument, NULL, 'T' },
	{ "op", required_argument, NULL, 'O' },
	{ "iters", required_argument, NULL, 'I' },
	{ "warmup", required_argument, NULL, 'W' },
	{ "check", no_argument, NULL, 'c' },
	{ "no-check", no_argument, NULL, 'C' },
	{ "registered", no_argument, NULL, 'g' },
	{ "threads", no_argument, NULL, 't' },
	{ "no-pin", no_argument, NULL, 'x' },
	{ "fabric", required_argument, NULL, ARG_FABRIC },
	{ "as", required_argument, NULL, ARG_AS },
	{ "what-if", required_argument, NULL, ARG_WHAT_IF },
	{ "sensitivity", no_argument, NULL, ARG_SENSITIVITY },
	{ "full", no_argument, NULL, ARG_FULL },
	{ "seed", required_argument, NULL, ARG_SEED },
	{ "samples", required_argument, NULL, ARG_SAMPLES },
	{ "jitter", required_argument, NULL, ARG_JITTER },
	{ "fault", required_argument, NULL, ARG_FAULT },
	{ "also", required_argument, NULL, ARG_ALSO },
	{ "slice", required_argument, NULL, ARG_SLICE },
	{ "trace", required_argument, NULL, ARG_TRACE },
	{ "goal", required_argument, NULL, ARG_GOAL },
	{ "chakra", required_argument, NULL, ARG_CHAKRA },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};
/* clang-format on */

static unsigned args_bit(int option)
{
	static const struct {
		char option;
		unsigned bit;
	} bits[] = {
		{ 'n', CLI_OPT_RANKS },	  { 'a', CLI_OPT_ALGO },  { 'N', CLI_OPT_NODES },
		{ 'r', CLI_OPT_ROOT },	  { 'R', CLI_OPT_RANK },  { 'p', CLI_OPT_PAIRS },
		{ 'A', CLI_OPT_ALL },	  { 'j', CLI_OPT_JSON },  { 'd', CLI_OPT_DOT },
		{ 'P', CLI_OPT_PICTURE }, { 'b', CLI_OPT_BYTES }, { 'e', CLI_OPT_BYTES },
		{ 'f', CLI_OPT_BYTES },	  { 'E', CLI_OPT_NET },	  { 'F', CLI_OPT_PLAN },
		{ 'T', CLI_OPT_TYPE },	  { 'O', CLI_OPT_TYPE },  { 'I', CLI_OPT_BENCH },
		{ 'W', CLI_OPT_BENCH },	  { 'c', CLI_OPT_BENCH }, { 'C', CLI_OPT_BENCH },
		{ 'g', CLI_OPT_BENCH },	  { 't', CLI_OPT_BENCH }, { 'x', CLI_OPT_BENCH },
		{ 'M', CLI_OPT_MSCCL },
	};

	if (option >= ARG_FABRIC)
		return option == ARG_FABRIC ? CLI_OPT_FABRIC : CLI_OPT_SIM;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (bits[i].option == option)
			return bits[i].bit;
	return 0;
}

static const char *args_name(int option)
{
	for (const struct option *o = args_long; o->name; o++)
		if (o->val == option)
			return o->name;
	return "?";
}

/* Those of measuring. */
static bool args_take_bench(struct cli_args *args, int option, const char *value)
{
	switch (option) {
	case 'b':
		return cli_parse_bytes(value, &args->min_bytes);
	case 'e':
		return cli_parse_bytes(value, &args->max_bytes);
	case 'f':
		return cli_parse_number(value, 2, 1u << 20, &args->factor);
	case 'E':
		args->net = value;
		return true;
	case 'F':
		args->plan = value;
		return true;
	case 'T':
		args->type = value;
		return true;
	case 'O':
		args->op = value;
		return true;
	case 'I':
		return cli_parse_number(value, 1, CLI_ITERS_MAX, &args->iters);
	case 'W':
		args->has_warmup = true;
		return cli_parse_number(value, 0, CLI_ITERS_MAX, &args->warmup);
	case 'c':
		return args->check = true;
	case 'C':
		return args->no_check = true;
	case 'g':
		return args->registered = true;
	case 't':
		return args->threads = true;
	default:
		return args->no_pin = true;
	}
}

/* Those of simulating. */
static bool args_take_sim(struct cli_args *args, int option, const char *value)
{
	struct cli_sim_args *sim = &args->sim;

	switch (option) {
	case ARG_FABRIC:
		args->fabric = value;
		return true;
	case ARG_AS:
		sim->as = value;
		return strcmp(value, "hocket") == 0 || strcmp(value, "nccl") == 0;
	case ARG_WHAT_IF:
		sim->what_if = value;
		return true;
	case ARG_SENSITIVITY:
		return sim->sensitivity = true;
	case ARG_FULL:
		return sim->full = true;
	case ARG_SEED:
		sim->has_seed = true;
		return cli_parse_number(value, 0, UINT32_MAX, &sim->seed);
	case ARG_SAMPLES:
		return cli_parse_number(value, 1, 100000, &sim->samples);
	case ARG_JITTER:
		return cli_parse_real(value, 0, 10, &sim->jitter);
	case ARG_FAULT:
		return args_push(&sim->faults, &sim->nfaults, value);
	case ARG_ALSO:
		return args_push(&sim->also, &sim->nalso, value);
	case ARG_SLICE:
		return cli_parse_bytes(value, &sim->slice);
	case ARG_TRACE:
		sim->trace = value;
		return true;
	case ARG_GOAL:
		sim->goal = value;
		return true;
	default:
		sim->chakra = value;
		return true;
	}
}

/* One option with its value; false where the value is wrong. */
static bool args_take(struct cli_args *args, int option, const char *value)
{
	switch (option) {
	case 'n':
		args->has_ranks = true;
		return args_range(value, &args->ranks);
	case 'a':
		args->algo = value;
		return true;
	case 'N':
		args->has_nodes = true;
		return args_nodes(value, args);
	case 'r':
		args->has_root = true;
		return cli_parse_number(value, 0, HK_RANKS_MAX - 1, &args->root);
	case 'R':
		args->has_rank = true;
		return cli_parse_number(value, 0, HK_RANKS_MAX - 1, &args->rank);
	case 'p':
		return args_pairs(value, args);
	case 'A':
		return args->all = true;
	case 'j':
		return args->json = true;
	case 'd':
		return args->dot = true;
	case 'P':
		return args->picture = true;
	case 'M':
		return args->msccl = true;
	case 'h':
		return args->help = true;
	default:
		return option < ARG_FABRIC ? args_take_bench(args, option, value)
					   : args_take_sim(args, option, value);
	}
}

static const char *args_expected(int option)
{
	switch (option) {
	case 'n':
		return "a number of ranks from 1 to 16777216, or FROM..TO";
	case 'N':
		return "a number of nodes, or their ranks such as 3+1+4";
	case 'p':
		return "a list such as 0:1,1:2 (sender:receiver)";
	case 'b':
	case 'e':
	case ARG_SLICE:
		return "bytes from 1 to 1T, such as 8, 64K, 32M or 1G";
	case 'f':
		return "a factor from 2 to 1048576";
	case 'I':
		return "a number of calls from 1 to 1000000";
	case 'W':
		return "a number of calls up to 1000000";
	case ARG_AS:
		return "hocket or nccl";
	case ARG_SAMPLES:
		return "a number of runs from 1 to 100000";
	case ARG_JITTER:
		return "a number from 0 to 10, such as 0.05";
	default:
		return "a whole number";
	}
}

/* getopt's optopt is the short option, or 0 for a long one. */
void cli_wrong_option(const char *command, int complaint, const char *word)
{
	char option[3] = { '-', (char)optopt, '\0' };

	if (complaint == ':')
		cli_wrong(command, "option %s needs a value; see 'hocket %s --help'",
			  strncmp(word, "--", 2) == 0 ? word : option, command);
	else if (strncmp(word, "--", 2) == 0)
		cli_wrong(command,
			  "option %s is unknown, ambiguous or takes no value; see "
			  "'hocket %s --help'",
			  word, command);
	else
		cli_wrong(command, "unknown option %s; see 'hocket %s --help'", option, command);
}

bool cli_args_parse(struct cli_args *args, const char *command, unsigned takes, int argc,
		    char **argv)
{
	int option;

	*args = (struct cli_args){ .command = command };
	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, ":n:a:b:e:f:h", args_long, NULL)) != -1) {
		if (option == ':' || option == '?') {
			cli_wrong_option(command, option, argv[optind - 1]);
			return false;
		}
		if (option != 'h' && !(takes & args_bit(option))) {
			cli_wrong(command,
				  "this command has no option --%s; see 'hocket %s --help'",
				  args_name(option), command);
			return false;
		}
		if (!args_take(args, option, optarg)) {
			cli_wrong(command, "--%s takes %s, not '%s'", args_name(option),
				  args_expected(option), optarg ? optarg : "");
			return false;
		}
	}
	/* Nodes that say how many ranks they have say how many there are. */
	if (args->node_sizes && !args->has_ranks) {
		args->has_ranks = true;
		args->ranks = (struct cli_range){ args->node_ranks, args->node_ranks };
	}
	if (optind < argc)
		args->what = argv[optind++];
	if (optind < argc) {
		cli_wrong(command, "unexpected argument '%s'; see 'hocket %s --help'", argv[optind],
			  command);
		return false;
	}
	return true;
}

void cli_args_fini(struct cli_args *args)
{
	free(args->pairs);
	free(args->node_sizes);
	free(args->sim.faults);
	free(args->sim.also);
	args->sim = (struct cli_sim_args){ .as = NULL };
	args->pairs = NULL;
	args->node_sizes = NULL;
}
