/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - `hocket explain`: what each algorithm would take, and why one is chosen. */
#include "measure.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const char explain_help[] =
	"Usage: hocket explain COLLECTIVE --size BYTES [OPTION...]\n"
	"Predicts every algorithm on a fabric, and explains why one is the fastest.\n\n"
	"  -s, --size BYTES  as nccl-tests count: 8, 64K, 32M\n"
	"  -n, --ranks N     ranks; default: all of the fabric\n"
	"      --fabric F    a name or a file; default: HOCKET_FABRIC, else this machine\n"
	"      --root R      of a collective that has one; default 0\n"
	"      --all         also simulate those that cannot win\n"
	"      --measure     also perform each on N ranks of this machine, or on those a\n"
	"                    launcher started it as\n"
	"      --rounds N    for --measure: number of rounds; times are medians; default 5\n"
	"      --net NET     for --measure: auto, shm or tcp\n"
	"      --json        print JSON\n\n"
	"Example: hocket explain allreduce --size 1M --fabric dgx-h100:4\n"
	"         hocket run --hosts a,b -- hocket explain allreduce --size 1M --measure \\\n"
	"                 --fabric cluster.yaml\n";

static const struct option explain_long[] = {
	{ "size", required_argument, NULL, 's' },
	{ "ranks", required_argument, NULL, 'n' },
	{ "fabric", required_argument, NULL, 'F' },
	{ "root", required_argument, NULL, 'r' },
	{ "all", no_argument, NULL, 'a' },
	{ "measure", no_argument, NULL, 'm' },
	{ "rounds", required_argument, NULL, 'R' },
	{ "net", required_argument, NULL, 'N' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};
/* clang-format on */

#define EXPLAIN_PATIENCE_S 15.0
#define EXPLAIN_STEPS_MAX 1000000u /* of an algorithm; more takes many seconds */

struct explain {
	struct hk_sim_choice what;
	bool has_size, has_ranks, measure, json, help;
	bool quiet; /* another rank says it */
	uint32_t rounds;
	const char *fabric_spec;
	const char *net;
	struct hk_fabric *fabric;
	struct hk_fabric_info info;
	struct hk_sim_candidate candidates[HK_SIM_CANDIDATES_MAX];
	uint32_t count;
	struct measure_cell cells[HK_SIM_CANDIDATES_MAX];
	double apart_ns; /* of two cores, when measured; 0: not known */
	bool moved;	 /* they were elsewhere for some of it */
};

/* ---- options ---- */

static bool explain_take(struct explain *explain, int option, const char *word)
{
	uint64_t bytes;

	switch (option) {
	case 's':
		explain->has_size = cli_parse_bytes(optarg, &bytes) && bytes > 0;
		explain->what.bytes = (double)bytes;
		if (!explain->has_size)
			cli_wrong("explain", "--size takes bytes, such as 8, 64K or 32M, not '%s'",
				  optarg);
		return explain->has_size;
	case 'n':
		explain->has_ranks =
			cli_parse_number(optarg, 1, HK_RANKS_MAX, &explain->what.ranks);
		if (!explain->has_ranks)
			cli_wrong("explain", "--ranks takes a number of ranks, not '%s'", optarg);
		return explain->has_ranks;
	case 'r':
		if (cli_parse_number(optarg, 0, HK_RANKS_MAX - 1, &explain->what.root))
			return true;
		cli_wrong("explain", "--root takes a rank, not '%s'", optarg);
		return false;
	case 'F':
		explain->fabric_spec = optarg;
		return true;
	case 'N':
		explain->net = optarg;
		return true;
	case 'R':
		if (cli_parse_number(optarg, 1, MEASURE_ROUNDS_MAX, &explain->rounds))
			return true;
		cli_wrong("explain", "--rounds takes a number up to %u, not '%s'",
			  MEASURE_ROUNDS_MAX, optarg);
		return false;
	case 'a':
		return explain->what.all = true;
	case 'm':
		return explain->measure = true;
	case 'j':
		return explain->json = true;
	case 'h':
		return explain->help = true;
	default:
		cli_wrong_option("explain", option, word);
		return false;
	}
}

static bool explain_parse(struct explain *explain, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":s:n:h", explain_long, NULL)) != -1) {
		if (!explain_take(explain, option, argv[optind - 1]))
			return false;
	}
	if (explain->help)
		return true;
	if (optind + 1 != argc) {
		cli_wrong("explain", "give one collective; see 'hocket explain --help'");
		return false;
	}
	if (!cli_parse_coll("explain", argv[optind], &explain->what.coll))
		return false;
	if (!explain->has_size && explain->what.coll != HK_COLL_BARRIER) {
		cli_wrong("explain", "no size given; add --size BYTES");
		return false;
	}
	if ((explain->net || explain->rounds) && !explain->measure) {
		cli_wrong("explain", "--%s needs --measure", explain->net ? "net" : "rounds");
		return false;
	}
	return true;
}

static int explain_open(struct explain *explain)
{
	const char *spec = explain->fabric_spec;
	char here[24] = "here"; /* this machine, which holds any number of ranks */
	struct hk_why why = { "" };

	if (!spec && !cli_env("explain", "HOCKET_FABRIC", &spec))
		return CLI_WRONG;
	if (explain->has_ranks)
		snprintf(here, sizeof(here), "here:%u", explain->what.ranks);
	if (hk_fabric_create(spec ? spec : here, NULL, &why, &explain->fabric) != HK_OK)
		return cli_wrong("explain", "%s", why.text);
	explain->info.size = sizeof(explain->info);
	hk_fabric_describe(explain->fabric, &explain->info);
	if (!explain->has_ranks)
		explain->what.ranks = explain->info.ranks;
	return CLI_DONE;
}

/* ---- times ---- */

/* By the ranks of a launcher, this being one of them; the first says it. */
static int measure_joined(struct explain *explain, struct measure_job *job)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct cli_rank rank = { .core = -1 };
	struct hk_why why = { "" };

	opts.net = explain->net;
	if (hk_group_create(&opts, &why, &rank.group) != HK_OK) {
		cli_wrong("explain", "%s", why.text);
		return CLI_FAILED;
	}
	rank.rank = hk_group_rank(rank.group);
	explain->quiet = rank.rank != 0;
	job->progress = job->progress && !explain->quiet;
	int status = CLI_DONE;
	if (hk_group_size(rank.group) != job->n)
		status = cli_wrong("explain", "the launcher started %u ranks, but --ranks is %u",
				   hk_group_size(rank.group), job->n);
	else if (measure_group(job, &rank) != CLI_DONE)
		status = cli_wrong("explain", "rank %u: %s", rank.rank, rank.why);
	hk_group_free(rank.group);
	return status;
}

static int explain_measure(struct explain *explain)
{
	struct measure_job job = { .command = "explain",
				   .n = explain->what.ranks,
				   .net = explain->net,
				   .cells = explain->cells,
				   .ncells = explain->count,
				   .rounds = explain->rounds ? explain->rounds : 5,
				   .patience_s = EXPLAIN_PATIENCE_S,
				   .progress = isatty(2),
				   .what = "performing" };

	if (explain->what.ranks > CLI_MEASURE_RANKS_MAX)
		return cli_wrong("explain", "--measure starts at most %u ranks here, not %u",
				 CLI_MEASURE_RANKS_MAX, explain->what.ranks);
	for (uint32_t i = 0; i < explain->count; i++) {
		struct measure_cell *cell = &explain->cells[i];

		*cell = (struct measure_cell){ .coll = explain->what.coll,
					       .bytes = (uint64_t)explain->what.bytes };
		snprintf(cell->algo, sizeof(cell->algo), "%s", explain->candidates[i].algo);
	}
	int status = cli_ranks_launched() ? measure_joined(explain, &job) : measure_here(&job);
	explain->apart_ns = job.apart_ns;
	explain->moved = job.moved;
	return status;
}

static double candidate_ns(const struct hk_sim_candidate *candidate)
{
	return candidate->simulated ? candidate->result.time_ns : candidate->estimate_ns;
}

/* ---- for people ---- */

static void print_time(double ns)
{
	if (ns < 1e3)
		printf("%8.3g ns", ns);
	else if (ns < 1e6)
		printf("%8.4g us", ns / 1e3);
	else if (ns < 1e9)
		printf("%8.4g ms", ns / 1e6);
	else
		printf("%8.4g s ", ns / 1e9);
}

static void print_row(const struct explain *explain, uint32_t i)
{
	const struct hk_sim_candidate *c = &explain->candidates[i];

	printf("%c %-20s ", i == 0 ? '*' : ' ', c->algo);
	print_time(candidate_ns(c));
	if (c->simulated)
		printf(" %7.0f %%", 100 * c->result.bound_ns / c->result.time_ns);
	else
		printf(" %9s", "-");
	printf(" %9.0f %9.3g %9.3g  ", c->steps, c->sent, c->reduced);
	if (explain->measure) {
		print_time(explain->cells[i].time_ns);
		printf(" %+6.0f %%  ", 100 * (candidate_ns(c) / explain->cells[i].time_ns - 1));
	}
	puts(c->simulated ? c->result.bottleneck : "(by its formula)");
}

static void print_table(const struct explain *explain)
{
	printf("  %-20s %11s %9s %9s %9s %9s  %s%s\n", "algorithm", "predicted", "of bound",
	       "in a row", "sent", "reduced", explain->measure ? "   measured    error  " : "",
	       "bound by");
	for (uint32_t i = 0; i < explain->count; i++)
		print_row(explain, i);
	puts("\n  in a row: messages that wait for each other; sent, reduced: of the busiest "
	     "rank,\n"
	     "  times the size; of bound: how near it comes to what no plan can beat here;\n"
	     "  by its formula: too far off, or too many steps, to be simulated");
}

/* What the winner has less of than the next. */
static void print_reason(const struct explain *explain)
{
	const struct hk_sim_candidate *a = &explain->candidates[0], *b = &explain->candidates[1];

	if (explain->count < 2) {
		printf("\n%s is the only algorithm that fits.\n", a->algo);
		return;
	}
	double ratio = candidate_ns(b) / candidate_ns(a);
	if (ratio < 0.9995) {
		printf("\n%s takes %.2g %% longer than %s, and is chosen: it is flat.\n", a->algo,
		       100 / ratio - 100, b->algo);
		return;
	}
	if (ratio < 1.0005) {
		printf("\n%s and %s are equal here; the first of the collective is chosen.\n",
		       a->algo, b->algo);
		return;
	}
	printf("\n%s wins: %s takes %.3g times as long. ", a->algo, b->algo, ratio);
	bool fewer = a->steps < b->steps, less = a->sent < 0.999 * b->sent;
	if (fewer && less)
		printf("It has %.0f messages in a row instead of %.0f, and sends %.3g of the size "
		       "instead of %.3g.\n",
		       a->steps, b->steps, a->sent, b->sent);
	else if (fewer)
		printf("It has %.0f messages in a row instead of %.0f%s.\n", a->steps, b->steps,
		       a->sent > 1.001 * b->sent ? ", which outweighs the additional bytes" : "");
	else if (less)
		printf("It sends %.3g of the size instead of %.3g%s.\n", a->sent, b->sent,
		       a->steps > b->steps ? ", which outweighs the additional messages" : "");
	else if (a->reduced < 0.999 * b->reduced)
		printf("It reduces %.3g of the size instead of %.3g.\n", a->reduced, b->reduced);
	else if (b->simulated)
		printf("As many messages and bytes, over faster paths: %s, not %s.\n",
		       a->result.bottleneck, b->result.bottleneck);
	else
		printf("As many messages and bytes, over faster paths.\n");
}

static void print_regret(const struct explain *explain)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < explain->count; i++)
		if (explain->cells[i].time_ns < explain->cells[best].time_ns)
			best = i;
	if (best == 0)
		printf("Measured, it is the fastest too.\n");
	else
		printf("Measured, %s is the fastest; the choice takes %.2f times as long.\n",
		       explain->candidates[best].algo,
		       explain->cells[0].time_ns / explain->cells[best].time_ns);
	if (explain->moved)
		printf("The cores moved during the measurement: two were %.0f ns apart, but not "
		       "all the time.\n",
		       explain->apart_ns);
}

static void explain_print(const struct explain *explain)
{
	const struct hk_sim_result *won = &explain->candidates[0].result;

	printf("%s of %.0f bytes among %u ranks on %s\n", hk_coll_name(explain->what.coll),
	       explain->what.bytes, explain->what.ranks, explain->info.name);
	printf("no plan can be faster than ");
	print_time(won->bound_ns);
	printf(": bytes ");
	print_time(won->bound_bytes_ns);
	printf(", delays ");
	print_time(won->bound_delay_ns);
	puts("\n");
	print_table(explain);
	print_reason(explain);
	if (explain->measure)
		print_regret(explain);
}

/* ---- for programs ---- */

static void explain_json(const struct explain *explain)
{
	printf("{\"collective\": \"%s\", \"size\": %.0f, \"ranks\": %u, \"fabric\": ",
	       hk_coll_name(explain->what.coll), explain->what.bytes, explain->what.ranks);
	cli_json_string(stdout, explain->info.name);
	printf(",\n \"bound_us\": %.6g, \"choice\": \"%s\", ",
	       explain->candidates[0].result.bound_ns / 1e3, explain->candidates[0].algo);
	if (explain->measure)
		printf("\"cores_apart_ns\": %.6g, \"cores_moved\": %s, ", explain->apart_ns,
		       explain->moved ? "true" : "false");
	printf("\"candidates\": [");
	for (uint32_t i = 0; i < explain->count; i++) {
		const struct hk_sim_candidate *c = &explain->candidates[i];

		printf("%s\n  {\"algo\": \"%s\", \"time_us\": %.6g, \"simulated\": %s, "
		       "\"estimate_us\": %.6g, \"steps\": %.6g, \"sent\": %.6g, \"reduced\": %.6g",
		       i ? "," : "", c->algo, candidate_ns(c) / 1e3,
		       c->simulated ? "true" : "false", c->estimate_ns / 1e3, c->steps, c->sent,
		       c->reduced);
		if (c->simulated) {
			printf(", \"bottleneck\": ");
			cli_json_string(stdout, c->result.bottleneck);
		}
		if (explain->measure)
			printf(", \"measured_us\": %.6g", explain->cells[i].time_ns / 1e3);
		printf("}");
	}
	printf("]}\n");
}

/* ---- the command ---- */

static int explain_run(struct explain *explain)
{
	struct hk_why why = { "" };
	int status = explain_open(explain);

	if (status != CLI_DONE)
		return status;
	explain->what.all = explain->what.all || explain->measure;
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	opts.calls = explain->what.ranks <= CLI_MEASURE_RANKS_MAX ? CLI_CALLS : 1;
	opts.messages_max = explain->what.all ? 0 : EXPLAIN_STEPS_MAX;
	explain->candidates[0].size = sizeof(explain->candidates[0]);
	if (hk_sim_candidates(explain->fabric, &explain->what, &opts, &why, explain->candidates,
			      &explain->count) != HK_OK)
		status = cli_wrong("explain", "%s", why.text);
	if (status == CLI_DONE && explain->measure)
		status = explain_measure(explain);
	if (status == CLI_DONE && !explain->quiet) {
		if (explain->json)
			explain_json(explain);
		else
			explain_print(explain);
	}
	hk_fabric_free(explain->fabric);
	return status;
}

static int explain_main(int argc, char **argv)
{
	struct explain *explain = calloc(1, sizeof(*explain));
	int status = CLI_WRONG;

	if (!explain)
		return cli_wrong("explain", "no memory");
	if (explain_parse(explain, argc, argv)) {
		if (explain->help) {
			fputs(explain_help, stdout);
			status = CLI_DONE;
		} else {
			status = explain_run(explain);
		}
	}
	free(explain);
	return status;
}

const struct cli_command cli_explain = {
	.name = "explain",
	.about = "predict the time of each algorithm on a fabric, and explain the choice",
	.help = explain_help,
	.main = explain_main,
};
