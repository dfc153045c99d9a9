/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - `hocket plan`: a plan as a table, picture, graph or file. */
#include "cli.h"

static const char plan_help[] =
	"Usage: hocket plan COLLECTIVE -n RANKS [OPTION...]\n"
	"Shows a plan: what every rank does, step by step.\n\n"
	"  -n, --ranks N    ranks of the plan\n"
	"  -a, --algo A     algorithm ('hocket list'); default: the first listed\n"
	"      --nodes N    two-level algorithms: nodes that divide the ranks, or the ranks\n"
	"                   of each, such as 3+1+4\n"
	"      --root R     broadcast, reduce, gather, scatter: the root; default 0\n"
	"      --pairs LIST sendrecv: messages as sender:receiver,...;\n"
	"                   default: each rank to the next\n"
	"      --rank R     only this rank's steps\n"
	"      --json       as a plan file (hocket-plan(5)) that 'hocket check' reads\n"
	"      --msccl      as MSCCL XML, which 'hocket check' reads too\n"
	"      --dot        as a graph for Graphviz\n"
	"      --picture    who sends what to whom, round by round (few ranks)\n\n"
	"Example: hocket plan allreduce --algo ring -n 4 --picture\n"
	"         hocket plan allgather --algo bruck -n 6 --rank 2\n";

/* What each rank moves, below the table of its steps. */
static void plan_print_costs(const struct cli_args *args, const struct hk_plan *plan)
{
	uint32_t first = args->has_rank ? args->rank : 0;
	uint32_t end = args->has_rank ? args->rank + 1 : args->ranks.from;

	printf("\nchunks     sent  received   reduced    copied   scratch\n");
	for (uint32_t r = first; r < end && !ferror(stdout); r++) {
		struct hk_rank_cost cost = { .size = sizeof(cost) };

		hk_check_rank_cost(plan, r, &cost);
		printf("rank %-4u %5llu %9llu %9llu %9llu %9u\n", r, (unsigned long long)cost.sent,
		       (unsigned long long)cost.received, (unsigned long long)cost.reduced,
		       (unsigned long long)cost.copied, cost.scratch);
	}
}

static enum hk_status plan_print(const struct cli_args *args, const struct hk_plan *plan,
				 struct hk_why *why)
{
	struct hk_print_opts opts = HK_PRINT_OPTS_INIT;

	opts.one_rank = args->has_rank;
	opts.rank = args->rank;
	if (args->json)
		return hk_plan_print_json(plan, &opts, stdout, why);
	if (args->msccl)
		return hk_plan_print_msccl(plan, stdout, why);
	if (args->dot)
		return hk_plan_print_dot(plan, &opts, stdout, why);
	if (args->picture)
		return hk_plan_print_picture(plan, &opts, stdout, why);
	enum hk_status status = hk_plan_print_table(plan, &opts, stdout, why);
	if (status == HK_OK)
		plan_print_costs(args, plan);
	return status;
}

static int plan_show(const struct cli_args *args)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_why why = { "" };
	struct hk_plan *plan;
	enum hk_coll coll;

	if (!cli_parse_coll("plan", args->what, &coll))
		return CLI_WRONG;
	if (args->has_root && !cli_is_rooted(coll))
		return cli_wrong("plan", "%s has no root; leave out --root", hk_coll_name(coll));
	opts.algo = args->algo;
	opts.root = args->root;
	opts.nodes = args->nodes;
	opts.node_sizes = args->node_sizes;
	opts.msgs = args->pairs;
	opts.nmsgs = args->npairs;
	if (hk_plan_create(coll, args->ranks.from, &opts, &why, &plan) != HK_OK)
		return cli_wrong("plan", "%s", why.text);
	enum hk_status status = plan_print(args, plan, &why);
	hk_plan_free(plan);
	/* A stream that failed is reported by main, with the system's reason. */
	if (status != HK_OK && status != HK_EIO)
		return cli_wrong("plan", "%s", why.text[0] ? why.text : hk_status_text(status));
	return CLI_DONE;
}

/* What the options say together. */
static int plan_check_args(const struct cli_args *args)
{
	if (!args->what)
		return cli_wrong("plan", "no collective given; see 'hocket plan --help'");
	if (!args->has_ranks)
		return cli_wrong("plan", "no number of ranks given; add -n RANKS");
	if (args->ranks.from != args->ranks.to)
		return cli_wrong("plan", "-n takes one number of ranks here, not a range");
	if (args->json + args->msccl + args->dot + args->picture > 1)
		return cli_wrong("plan", "choose one of --json, --msccl, --dot and --picture");
	if (args->has_rank && args->rank >= args->ranks.from)
		return cli_wrong("plan", "rank %u is not one of the %u ranks (0 to %u)", args->rank,
				 args->ranks.from, args->ranks.from - 1);
	if (args->has_rank && (args->picture || args->msccl))
		return cli_wrong("plan", "%s all ranks; leave out --rank",
				 args->msccl ? "MSCCL XML has" : "a picture shows");
	return CLI_DONE;
}

static int plan_main(struct cli_args *args)
{
	int status = plan_check_args(args);

	return status == CLI_DONE ? plan_show(args) : status;
}

const struct cli_command cli_plan = {
	.name = "plan",
	.about = "show how a collective is performed, step by step",
	.help = plan_help,
	.takes = CLI_OPT_RANKS | CLI_OPT_ALGO | CLI_OPT_NODES | CLI_OPT_ROOT | CLI_OPT_RANK |
		 CLI_OPT_PAIRS | CLI_OPT_JSON | CLI_OPT_DOT | CLI_OPT_PICTURE | CLI_OPT_MSCCL,
	.run = plan_main,
};
