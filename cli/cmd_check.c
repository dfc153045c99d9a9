/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_check.c - `hocket check`: proves plans, and says so in a table.
 *
 * A row of the table is an algorithm; behind it stand all its cases: numbers
 * of ranks, roots, nodes, out of place and in place.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char check_help[] =
	"Usage: hocket check COLLECTIVE|FILE|--all [OPTION...]\n"
	"Proves that plans compute the correct result, without deadlocks and races, for\n"
	"every size, uneven and zero counts, and any number of slices. FILE is a plan file\n"
	"(hocket-plan(5)). Exit status 0 if all plans are proved, 1 if one is refused.\n\n"
	"  -n, --ranks N    number of ranks, or a range FROM..TO; default 8\n"
	"  -a, --algo A     only this algorithm ('hocket list'); default: all\n"
	"      --all        every collective; with a collective, all its algorithms\n"
	"      --nodes N    only two-level algorithms: nodes, or the ranks of each, such as\n"
	"                   3+1+4; default: all divisors, and some uneven divisions\n"
	"      --root R     only this root; default: every rank up to 16 ranks, else four\n"
	"      --pairs LIST sendrecv: messages as sender:receiver,...;\n"
	"                   default: each rank to the next\n"
	"      --json       print JSON\n\n"
	"Example: hocket check --all -n 2..64\n"
	"         hocket check allreduce --algo ring -n 1024\n"
	"         hocket check plan.json\n";

#define RANKS_ALL_ROOTS 16u
#define UNEVEN_NODES 64u

struct check_case {
	struct hk_algo_info algo;
	uint32_t n, root, nodes; /* nodes 0: a flat algorithm */
	const uint32_t *sizes;	 /* of the nodes; NULL: equal */
	bool typical;		 /* stands for the others in the cost columns */
};

struct check_row {
	struct hk_algo_info algo;
	const char *what; /* first column */
	uint64_t plans, refused;
	struct hk_check_cost cost;
	uint32_t slots; /* a channel must have */
	bool allreduce; /* the collective whose ranks all get the sum */
	bool consistent, inplace;
	char why[1024]; /* the first refusal */
};

struct check_run {
	const struct cli_args *args;
	enum hk_coll only; /* HK_COLL_COUNT: all */
	struct check_row row;
	uint64_t done, total, proved, refused, rows;
	bool counting; /* the first pass only counts */
	bool progress;
	double started, shown;
	struct hk_plan_info now; /* the plan that is being proved */
};

/* ---- output ---- */

/* One line, written over itself: how many plans, and how far this one is. */
static void check_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct check_run *run = ctx;
	double now = cli_now_s();

	if (!run->progress || now - run->shown < 0.1)
		return;
	run->shown = now;
	fprintf(stderr, "\r\033[K%llu of %llu plans: %s %s, %u ranks, step %llu of %llu (%.0f %%)",
		(unsigned long long)run->done, (unsigned long long)run->total,
		hk_coll_name(run->now.coll), run->now.algo, run->now.nranks,
		(unsigned long long)done, (unsigned long long)total,
		100.0 * (double)done / (double)(total ? total : 1));
	fflush(stderr);
}

static void check_progress_end(struct check_run *run)
{
	if (run->progress && run->shown > 0)
		fputs("\r\033[K", stderr);
}

static void check_json_cost(const struct hk_check_report *report)
{
	const struct hk_check_cost *cost = &report->cost;

	printf(", \"critical\": %u, \"chunks\": %u, \"busiest_sent\": %llu, "
	       "\"busiest_received\": %llu, \"busiest_reduced\": %llu, \"busiest_copied\": %llu, "
	       "\"scratch\": %u, \"messages\": %llu, \"lane_steps\": %llu",
	       cost->critical, cost->chunks, (unsigned long long)cost->busiest_sent,
	       (unsigned long long)cost->busiest_received,
	       (unsigned long long)cost->busiest_reduced, (unsigned long long)cost->busiest_copied,
	       cost->scratch_max, (unsigned long long)cost->messages,
	       (unsigned long long)cost->steps_total);
}

static void check_json_place(const char *name, uint32_t value)
{
	if (value == HK_NONE)
		printf(", \"%s\": null", name);
	else
		printf(", \"%s\": %u", name, value);
}

/* As in a plan file: a number, or a list of sizes that differ. */
static void check_json_nodes(const struct hk_plan_info *info)
{
	if (!info->node_sizes) {
		printf("%u", info->nodes);
		return;
	}
	for (uint32_t k = 0; k < info->nodes; k++)
		printf("%s%u", k ? ", " : "[", info->node_sizes[k]);
	fputc(']', stdout);
}

static void check_json(struct check_run *run, bool inplace, const struct hk_check_report *report)
{
	const struct hk_plan_info *info = &run->now;

	printf("%s\n  {\"collective\": \"%s\", \"algorithm\": ", run->rows++ ? "," : "",
	       hk_coll_name(info->coll));
	cli_json_string(stdout, info->algo);
	printf(", \"ranks\": %u, \"root\": %u, \"nodes\": ", info->nranks, info->root);
	check_json_nodes(info);
	printf(", \"inplace\": %s, \"proved\": %s", inplace ? "true" : "false",
	       report->proved ? "true" : "false");
	if (report->proved) {
		check_json_cost(report);
		if (info->coll == HK_COLL_ALLREDUCE)
			printf(", \"consistent\": %s", report->consistent ? "true" : "false");
	} else {
		printf(", \"refusal\": \"%s\", \"invariant\": %u", hk_refusal_name(report->refusal),
		       report->invariant);
		check_json_place("rank", report->rank);
		check_json_place("lane", report->lane);
		check_json_place("step", report->step);
		fputs(", \"expected\": ", stdout);
		cli_json_string(stdout, report->expected);
		fputs(", \"found\": ", stdout);
		cli_json_string(stdout, report->found);
		fputs(", \"why\": ", stdout);
		cli_json_string(stdout, report->why.text);
	}
	fputc('}', stdout);
}

static void check_print_head(void)
{
	printf("%-13s %-20s %6s %6s %6s %7s %8s %7s %7s  %-8s %-9s %s\n", "collective", "algorithm",
	       "plans", "slots", "steps", "sent", "received", "reduced", "scratch", "in place",
	       "same bits", "result");
}

static const char *check_yes(bool yes)
{
	return yes ? "yes" : "no";
}

static void check_print_row(struct check_run *run)
{
	const struct check_row *row = &run->row;
	const struct hk_check_cost *cost = &row->cost;
	double v = cost->chunks ? cost->chunks : 1;

	if (row->plans == 0 || run->args->json || run->counting)
		return;
	check_progress_end(run);
	printf("%-13s %-20s %6llu %6u ", row->what, row->algo.name, (unsigned long long)row->plans,
	       row->slots);
	if (row->refused) {
		printf("%60s REFUSED", "");
		if (row->plans > 1)
			printf(" %llu of %llu", (unsigned long long)row->refused,
			       (unsigned long long)row->plans);
		printf("\n  %s\n", row->why);
		return;
	}
	printf("%6u %7.3f %8.3f %7.3f %7.3f  %-8s %-9s proved\n", cost->critical,
	       (double)cost->busiest_sent / v, (double)cost->busiest_received / v,
	       (double)cost->busiest_reduced / v, (double)cost->scratch_max / v,
	       check_yes(row->inplace), row->allreduce ? check_yes(row->consistent) : "-");
	fflush(stdout);
}

/* ---- proving ---- */

static void check_note(struct check_run *run, const struct check_case *at, bool inplace,
		       const struct hk_check_report *report)
{
	const struct hk_plan_info *info = &run->now;
	struct check_row *row = &run->row;

	run->done++;
	row->plans++;
	if (report->proved) {
		run->proved++;
		row->consistent &= report->consistent;
		if (at->typical && !inplace)
			row->cost = report->cost;
		return;
	}
	run->refused++;
	if (row->refused++ == 0)
		snprintf(row->why, sizeof(row->why), "%s %s, %u rank%s%s: %s",
			 hk_coll_name(info->coll), info->algo, info->nranks,
			 info->nranks == 1 ? "" : "s", inplace ? ", in place" : "",
			 report->why.text);
}

/* Proves a plan out of place and, where it claims that, in place. */
static bool check_prove(struct check_run *run, const struct check_case *at,
			const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	run->now = info;
	run->row.slots = info.slots;
	run->row.allreduce = info.coll == HK_COLL_ALLREDUCE;
	run->row.inplace &= info.inplace;
	for (int inplace = 0; inplace <= (int)info.inplace; inplace++) {
		struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
		struct hk_check_report report = { .size = sizeof(report) };

		opts.inplace = inplace;
		opts.progress = check_progress;
		opts.ctx = run;
		enum hk_status status = hk_check(plan, &opts, &report);
		if (status != HK_OK && status != HK_EREFUSED) {
			check_progress_end(run);
			if (run->args->json) {
				fputs("\n], \"error\": ", stdout);
				cli_json_string(stdout, report.why.text);
				fputs("}\n", stdout);
			}
			cli_wrong("check", "%s %s, %u ranks: %s", hk_coll_name(info.coll),
				  info.algo, info.nranks, report.why.text);
			return false;
		}
		check_note(run, at, inplace, &report);
		if (run->args->json)
			check_json(run, inplace, &report);
	}
	return true;
}

/* ---- the cases ---- */

static bool check_case(struct check_run *run, const struct check_case *at)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_why why = { "" };
	struct hk_plan *plan;
	bool done = true;

	opts.algo = at->algo.name;
	opts.root = at->root;
	opts.nodes = at->nodes;
	opts.node_sizes = at->sizes;
	if (at->algo.coll == HK_COLL_SENDRECV) {
		opts.msgs = run->args->pairs;
		opts.nmsgs = run->args->npairs;
	}
	if (hk_plan_create(at->algo.coll, at->n, &opts, &why, &plan) != HK_OK) {
		cli_wrong("check", "%s", why.text);
		return false;
	}
	/* The first pass finds what is wrong with the call before any output. */
	if (run->counting)
		run->total += 1 + at->algo.inplace;
	else
		done = check_prove(run, at, plan);
	hk_plan_free(plan);
	return done;
}

/* The nodes a two-level plan gets by itself: they stand for the others. */
static uint32_t check_typical_nodes(const struct hk_algo_info *algo, uint32_t n)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_plan *plan;

	opts.algo = algo->name;
	if (hk_plan_create(algo->coll, n, &opts, NULL, &plan) != HK_OK)
		return 1;
	hk_plan_describe(plan, &info);
	hk_plan_free(plan);
	return info.nodes;
}

static bool check_roots(struct check_run *run, struct check_case *at)
{
	uint32_t roots[RANKS_ALL_ROOTS] = { 0 }, count = 1;

	if (run->args->has_root) {
		roots[0] = run->args->root;
	} else if (at->algo.rooted && at->n <= RANKS_ALL_ROOTS) {
		for (count = 0; count < at->n; count++)
			roots[count] = count;
	} else if (at->algo.rooted) {
		const uint32_t some[] = { 0, 1, at->n / 2, at->n - 1 };

		memcpy(roots, some, sizeof(some));
		count = 4;
	}
	for (uint32_t i = 0; i < count; i++) {
		at->root = roots[i];
		if (!check_case(run, at))
			return false;
		at->typical = false;
	}
	return true;
}

/*
 * Nodes that differ, which stand for all that do: one rank and the rest, before
 * and after; half, one rank and the rest; 1, 2, 3, ... ranks and the rest.
 */
static bool check_uneven(struct check_run *run, const struct check_case *equal)
{
	struct check_case at = *equal;
	uint32_t n = at.n, sum = 0;
	const uint32_t some[][3] = { { 1, n - 1 }, { n - 1, 1 }, { n / 2, 1, n - n / 2 - 1 } };
	uint32_t growing[UNEVEN_NODES];

	at.typical = false;
	for (uint32_t i = 0; i < (n < 3 ? 0 : n == 3 ? 2 : 3); i++) {
		at.sizes = some[i];
		at.nodes = i < 2 ? 2 : 3;
		if (!check_roots(run, &at))
			return false;
	}
	at.sizes = growing;
	at.nodes = 0;
	while (at.nodes < UNEVEN_NODES - 1 && sum + at.nodes + 1 < n) {
		growing[at.nodes] = at.nodes + 1;
		sum += growing[at.nodes++];
	}
	growing[at.nodes++] = n - sum;
	return n < 4 || check_roots(run, &at);
}

static bool check_nodes(struct check_run *run, struct check_case *at)
{
	const struct cli_args *args = run->args;

	at->sizes = NULL;
	if (!at->algo.nodes) {
		at->nodes = 0;
		at->typical = true;
		return check_roots(run, at);
	}
	if (args->node_sizes) {
		at->nodes = args->nodes;
		at->sizes = args->node_sizes;
		at->typical = true;
		return at->n != args->node_ranks || check_roots(run, at);
	}
	uint32_t typical = args->has_nodes ? args->nodes : check_typical_nodes(&at->algo, at->n);
	for (uint32_t nodes = 1; nodes <= at->n; nodes++) {
		if (at->n % nodes || (args->has_nodes && nodes != args->nodes))
			continue;
		at->nodes = nodes;
		at->typical = nodes == typical;
		if (!check_roots(run, at))
			return false;
	}
	return args->has_nodes || !at->algo.uneven || check_uneven(run, at);
}

static bool check_wanted(const struct check_run *run, const struct hk_algo_info *info)
{
	const struct cli_args *args = run->args;

	if (run->only != HK_COLL_COUNT && info->coll != run->only)
		return false;
	if (args->has_nodes && !(args->uneven ? info->uneven : info->nodes))
		return false;
	if (args->has_root && !info->rooted)
		return false;
	if (args->npairs && info->coll != HK_COLL_SENDRECV)
		return false;
	struct hk_algo_info named = { .size = sizeof(named) };
	return !args->algo || (hk_algo_find(info->coll, args->algo, &named) == HK_OK &&
			       strcmp(named.name, info->name) == 0);
}

static bool check_algorithms(struct check_run *run)
{
	struct check_case at = { .algo.size = sizeof(at.algo) };

	for (uint32_t i = 0; hk_algo_get(i, &at.algo); i++) {
		if (!check_wanted(run, &at.algo))
			continue;
		run->row = (struct check_row){ .algo = at.algo,
					       .consistent = true,
					       .inplace = true,
					       .what = hk_coll_name(at.algo.coll) };
		for (at.n = run->args->ranks.from; at.n <= run->args->ranks.to; at.n++)
			if (!check_nodes(run, &at))
				return false;
		check_print_row(run);
	}
	return true;
}

/* ---- a file ---- */

static bool check_file(struct check_run *run, const struct hk_plan *plan)
{
	struct check_case at = { .algo.size = sizeof(at.algo), .typical = true };
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	at.algo.name = info.algo;
	run->total = 1 + info.inplace;
	run->row = (struct check_row){ .algo = at.algo,
				       .what = hk_coll_name(info.coll),
				       .consistent = true,
				       .inplace = true };
	bool done = check_prove(run, &at, plan);
	if (done)
		check_print_row(run);
	return done;
}

/* ---- the command ---- */

static void check_print_end(struct check_run *run)
{
	double seconds = cli_now_s() - run->started;

	check_progress_end(run);
	if (run->args->json) {
		printf("\n], \"proved\": %llu, \"refused\": %llu, \"seconds\": %.3f}\n",
		       (unsigned long long)run->proved, (unsigned long long)run->refused, seconds);
		return;
	}
	if (run->args->ranks.to > run->args->ranks.from)
		puts("(costs are those of the plan with the most ranks; V = 1)");
	if (run->refused)
		printf("%llu of %llu plan%s REFUSED in %.2f s\n", (unsigned long long)run->refused,
		       (unsigned long long)(run->proved + run->refused),
		       run->proved + run->refused == 1 ? "" : "s", seconds);
	else
		printf("%llu plan%s proved in %.2f s, for every message size and every way to cut "
		       "it into slices\n",
		       (unsigned long long)run->proved, run->proved == 1 ? "" : "s", seconds);
}

/* What is not the name of a collective is a file. */
static bool check_is_file(const struct cli_args *args, enum hk_coll *coll_out)
{
	return args->what && hk_coll_parse(args->what, coll_out) != HK_OK;
}

static int check_args(struct cli_args *args, bool file)
{
	if (!args->what && !args->all)
		return cli_wrong("check",
				 "nothing to check: name a collective or a file, or add --all");
	if (file && (args->has_ranks || args->algo || args->has_nodes || args->has_root ||
		     args->npairs || args->all))
		return cli_wrong(
			"check",
			"'%s' is not a collective, and a plan file takes no option but --json",
			args->what);
	if (file && !strchr(args->what, '/') && !strchr(args->what, '.') &&
	    strcmp(args->what, "-") != 0 && access(args->what, F_OK) != 0)
		return cli_parse_coll("check", args->what, &(enum hk_coll){ 0 }) ? CLI_DONE
										 : CLI_WRONG;
	if (!args->has_ranks)
		args->ranks = (struct cli_range){ 8, 8 };
	if (args->has_root && args->root >= args->ranks.from)
		return cli_wrong("check", "root %u is not one of %u ranks", args->root,
				 args->ranks.from);
	return CLI_DONE;
}

/* Why no plan fits, as exactly as can be said. */
static int check_say_none(const struct check_run *run)
{
	const struct cli_args *args = run->args;
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_algo_info info = { .size = sizeof(info) };
	struct hk_why why = { "" };
	struct hk_plan *plan;

	if (run->only == HK_COLL_COUNT)
		return cli_wrong("check", "no collective has a plan with these options");
	if (args->has_root && !cli_is_rooted(run->only))
		return cli_wrong("check", "%s has no root; leave out --root",
				 hk_coll_name(run->only));
	if (args->npairs && run->only != HK_COLL_SENDRECV)
		return cli_wrong("check", "%s takes no --pairs", hk_coll_name(run->only));
	/* The library says what is wrong with a name or a number of nodes. */
	opts.algo = args->algo ? args->algo : args->uneven ? "leader" : "two-level";
	if (!args->algo || hk_algo_find(run->only, args->algo, &info) == HK_OK) {
		opts.nodes = args->nodes;
		opts.node_sizes = args->node_sizes;
	}
	if (hk_plan_create(run->only, args->ranks.from, &opts, &why, &plan) == HK_OK) {
		hk_plan_free(plan);
		return cli_wrong("check", "no plan fits these options");
	}
	return cli_wrong("check", "%s", why.text);
}

/* Counts the cases, so that progress has an end; says so if there are none. */
static int check_count(struct check_run *run)
{
	run->counting = true;
	bool done = check_algorithms(run);
	run->counting = false;
	if (!done)
		return CLI_WRONG;
	return run->total ? CLI_DONE : check_say_none(run);
}

static int check_main(struct cli_args *args)
{
	struct check_run run = { .args = args,
				 .only = HK_COLL_COUNT,
				 .started = cli_now_s(),
				 .progress = isatty(STDERR_FILENO) };
	bool file = check_is_file(args, &run.only);
	struct hk_plan *plan = NULL;
	struct hk_why why = { "" };
	int status = check_args(args, file);

	if (status == CLI_DONE && !file)
		status = check_count(&run);
	if (status != CLI_DONE)
		return status;
	if (file && hk_plan_read(args->what, NULL, &why, &plan) != HK_OK)
		return cli_wrong("check", "%s", why.text);
	if (args->json)
		fputs("{\"results\": [", stdout);
	else
		check_print_head();
	bool done = file ? check_file(&run, plan) : check_algorithms(&run);
	hk_plan_free(plan);
	if (!done)
		return CLI_WRONG;
	check_print_end(&run);
	return run.refused ? CLI_REFUSED : CLI_DONE;
}

const struct cli_command cli_check = {
	.name = "check",
	.about = "prove plans, built in or from a file",
	.help = check_help,
	.takes = CLI_OPT_RANKS | CLI_OPT_ALGO | CLI_OPT_NODES | CLI_OPT_ROOT | CLI_OPT_PAIRS |
		 CLI_OPT_ALL | CLI_OPT_JSON,
	.run = check_main,
};
