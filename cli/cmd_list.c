/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_list.c - `hocket list`: every collective and algorithm, and its cost. */
#include "cli.h"

/* clang-format off */
static const char list_help[] =
	"Usage: hocket list [COLLECTIVE] [--json]\n"
	"Lists the algorithms of a collective, or of all, with their costs and limits.\n\n"
	"      --json       print JSON\n\n"
	"Example: hocket list allreduce\n"
	"         hocket list --json\n";
/* clang-format on */

static void list_text(const struct hk_algo_info *info, const char *coll)
{
	printf("%-13s %-20s %s\n", coll, info->name, info->about);
	if (info->alias)
		printf("%-13s   also       %s\n", "", info->alias);
	printf("%-13s   steps      %s\n", "", info->steps);
	printf("%-13s   sent       %s\n", "", info->sent);
	printf("%-13s   reduced    %s\n", "", info->reduced);
	printf("%-13s   scratch    %s\n", "", info->scratch);
	printf("%-13s   limits     %s%s%s\n", "", info->limits,
	       info->inplace ? "" : "; not in place",
	       info->onesided ? "; one-sided, groups do not perform it yet" : "");
}

static void list_field(const char *name, const char *value)
{
	printf(", \"%s\": ", name);
	if (value)
		cli_json_string(stdout, value);
	else
		fputs("null", stdout);
}

static void list_json(const struct hk_algo_info *info, bool first)
{
	printf("%s\n  {\"collective\": ", first ? "" : ",");
	cli_json_string(stdout, hk_coll_name(info->coll));
	list_field("algorithm", info->name);
	list_field("alias", info->alias);
	list_field("about", info->about);
	list_field("steps", info->steps);
	list_field("sent", info->sent);
	list_field("reduced", info->reduced);
	list_field("scratch", info->scratch);
	list_field("limits", info->limits);
	printf(", \"nodes\": %s, \"uneven\": %s, \"rooted\": %s, \"inplace\": %s, "
	       "\"onesided\": %s}",
	       info->nodes ? "true" : "false", info->uneven ? "true" : "false",
	       info->rooted ? "true" : "false", info->inplace ? "true" : "false",
	       info->onesided ? "true" : "false");
}

static int list_main(struct cli_args *args)
{
	struct hk_algo_info info = { .size = sizeof(info) };
	enum hk_coll only = HK_COLL_COUNT, last = HK_COLL_COUNT;
	bool first = true;

	if (args->what && !cli_parse_coll("list", args->what, &only))
		return CLI_WRONG;
	if (args->json)
		fputs("{\"algorithms\": [", stdout);
	else
		puts("n ranks; N nodes of g = n/N; V = a vector, or all blocks of a rank;\n"
		     "steps = messages on the critical path; sent, reduced, scratch = V of the\n"
		     "busiest rank. clog2, flog2 round up, down; pow2(x) = largest power of two\n"
		     "<= x; popsum(x) = set bits of all numbers below x; halvings(n) = sum of\n"
		     "min(pow2(n)/2^l, n-pow2(n)), l = 1..flog2(n).\n");
	for (uint32_t i = 0; hk_algo_get(i, &info); i++) {
		if (only != HK_COLL_COUNT && info.coll != only)
			continue;
		if (args->json)
			list_json(&info, first);
		else
			list_text(&info, info.coll == last ? "" : hk_coll_name(info.coll));
		last = info.coll;
		first = false;
	}
	if (args->json)
		puts("\n]}");
	return CLI_DONE;
}

const struct cli_command cli_list = {
	.name = "list",
	.about = "list collectives and algorithms with their costs",
	.help = list_help,
	.takes = CLI_OPT_JSON,
	.run = list_main,
};
