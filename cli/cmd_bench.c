/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bench.c - `hocket bench`: how long collectives take, and whether they are right. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char bench_help[] =
	"Usage: hocket bench [COLLECTIVE|all] -n RANKS [OPTION...]\n"
	"Measures a collective (default: allreduce) over a range of sizes and checks its\n"
	"results; prints what nccl-tests prints. Starts its ranks itself, unless a launcher\n"
	"('hocket run', torchrun, srun, mpirun) made this process one; leave out -n then.\n\n"
	"  -n, --ranks N      ranks on this machine\n"
	"  -b, --minbytes B   first size; default 8; K, M, G are powers of 1024\n"
	"  -e, --maxbytes B   last size; default 32M\n"
	"  -f, --stepfactor F from one size to the next; default 2\n"
	"      --net NET      shm, tcp or auto; default: $HOCKET_NET, else auto\n"
	"  -a, --algo A       algorithm ('hocket list'); default: the group's choice\n"
	"      --plan FILE    perform this plan (hocket-plan(5)), if it can be proved\n"
	"      --type T       element type; default fp32\n"
	"      --op OP        how to reduce; default sum\n"
	"      --root R       broadcast, reduce, gather, scatter: the root; default 0\n"
	"      --iters N      timed calls; default: 20, more if short, fewer if long\n"
	"      --warmup N     calls before these; default 60, fewer if long\n"
	"      --check        check the results of every size: the default\n"
	"      --no-check     do not\n"
	"      --registered   buffers are memory that ranks share (hk_mem_alloc)\n"
	"      --threads      ranks are threads, not processes\n"
	"      --no-pin       do not bind ranks to cores\n"
	"      --json         print JSON\n\n"
	"Example: hocket bench allreduce -n 4 -b 1K -e 64M\n"
	"         hocket bench all -n 2 -b 1M -e 1M --threads\n"
	"         hocket run -n 4 hocket bench alltoall\n";

#define BYTES_FIRST 8u
#define BYTES_LAST (UINT64_C(32) << 20)
#define FACTOR 2u

/* ---- names ---- */

static bool type_parse(const char *name, enum hk_type *type_out)
{
	/* As nccl-tests calls them. */
	static const struct {
		const char *name;
		enum hk_type type;
	} others[] = {
		{ "half", HK_TYPE_FP16 },      { "float", HK_TYPE_FP32 },
		{ "double", HK_TYPE_FP64 },    { "bfloat16", HK_TYPE_BF16 },
		{ "f8e4m3", HK_TYPE_FP8E4M3 }, { "f8e5m2", HK_TYPE_FP8E5M2 },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strcasecmp(name, others[i].name) == 0) {
			*type_out = others[i].type;
			return true;
		}
	}
	return hk_type_parse(name, type_out) == HK_OK;
}

static void names_add(char *text, size_t room, const char *name)
{
	size_t at = strlen(text);

	snprintf(text + at, room - at, "%s%s", at ? ", " : "", name);
}

static int spec_take_types(struct bench_spec *spec, const struct cli_args *args)
{
	char names[HK_WHY_MAX / 2] = "";

	if (args->type && !type_parse(args->type, &spec->type)) {
		for (int t = 0; t < HK_TYPE_COUNT; t++)
			names_add(names, sizeof(names), hk_type_name((enum hk_type)t));
		return cli_wrong("bench", "'%s' is not a type; choose one of %s", args->type,
				 names);
	}
	if (args->op && hk_redop_parse(args->op, &spec->op) != HK_OK) {
		for (int op = 0; op < HK_REDOP_COUNT; op++)
			names_add(names, sizeof(names), hk_redop_name((enum hk_redop)op));
		return cli_wrong("bench", "'%s' is not an operation; choose one of %s", args->op,
				 names);
	}
	if (!hk_redop_valid(spec->type, spec->op))
		return cli_wrong("bench", "%s has no operation %s", hk_type_name(spec->type),
				 hk_redop_name(spec->op));
	return CLI_DONE;
}

/* ---- the collective, and how it is performed ---- */

static int spec_take_plan(struct bench_spec *spec, const struct cli_args *args)
{
	struct hk_why why = { "" };
	struct hk_plan_info info = { .size = sizeof(info) };

	if (args->algo)
		return cli_wrong("bench", "choose one of --algo and --plan");
	if (hk_plan_read(args->plan, NULL, &why, &spec->plan) != HK_OK)
		return cli_wrong("bench", "%s", why.text);
	hk_plan_describe(spec->plan, &info);
	spec->plan_path = args->plan;
	if (!args->what)
		spec->coll = info.coll;
	if (!args->has_root)
		spec->root = info.root;
	if (spec->all || info.coll != spec->coll)
		return cli_wrong("bench", "%s is a plan of %s, not of %s", args->plan,
				 hk_coll_name(info.coll), args->what);
	return CLI_DONE;
}

static int spec_take_coll(struct bench_spec *spec, const struct cli_args *args)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };

	spec->all = args->what && strcasecmp(args->what, "all") == 0;
	if (args->what && !spec->all && !cli_parse_coll("bench", args->what, &spec->coll))
		return CLI_WRONG;
	int status = args->plan ? spec_take_plan(spec, args) : CLI_DONE;
	if (status != CLI_DONE)
		return status;
	const char *name = hk_coll_name(spec->coll);
	if ((args->algo || args->plan) && spec->coll == HK_COLL_SENDRECV)
		return cli_wrong("bench", "sendrecv is measured as sends and receives; leave out "
					  "--algo and --plan");
	if (args->algo && spec->all)
		return cli_wrong("bench", "--algo needs one collective, not all");
	if (args->algo && hk_algo_find(spec->coll, args->algo, &algo) != HK_OK)
		return cli_wrong("bench", "%s has no algorithm '%s'; see 'hocket list %s'", name,
				 args->algo, name);
	if (args->has_root && !spec->all && !cli_is_rooted(spec->coll))
		return cli_wrong("bench", "%s has no root; leave out --root", name);
	if (args->op && !spec->all && !bench_coll_reduces(spec->coll))
		return cli_wrong("bench", "%s reduces nothing; leave out --op", name);
	return CLI_DONE;
}

/* ---- together ---- */

static int spec_take_rest(struct bench_spec *spec, const struct cli_args *args)
{
	if (args->has_ranks && args->ranks.from != args->ranks.to)
		return cli_wrong("bench", "-n takes one number of ranks here, not a range");
	if (spec->min_bytes > spec->max_bytes)
		return cli_wrong("bench", "the first size (-b) is larger than the last (-e)");
	if (args->check && args->no_check)
		return cli_wrong("bench", "choose one of --check and --no-check");
	if (args->net && strcmp(args->net, "auto") != 0 && strcmp(args->net, "shm") != 0 &&
	    strcmp(args->net, "tcp") != 0)
		return cli_wrong("bench", "'%s' is not a net; choose one of auto, shm, tcp",
				 args->net);
	return CLI_DONE;
}

static int spec_init(struct bench_spec *spec, const struct cli_args *args)
{
	*spec = (struct bench_spec){
		.n = args->has_ranks ? args->ranks.from : 0,
		.min_bytes = args->min_bytes ? args->min_bytes : BYTES_FIRST,
		.max_bytes = args->max_bytes ? args->max_bytes : BYTES_LAST,
		.factor = args->factor ? args->factor : FACTOR,
		.type = HK_TYPE_FP32,
		.op = HK_REDOP_SUM,
		.root = args->root,
		.algo = args->algo,
		.net = args->net,
		.iters = args->iters,
		.warmup = args->has_warmup ? args->warmup : BENCH_WARMUP,
		.set_warmup = args->has_warmup,
		.check = !args->no_check,
		.registered = args->registered,
		.json = args->json,
		.threads = args->threads,
		.pin = !args->no_pin,
	};
	/* A small -e alone is a range of one size. */
	if (!args->min_bytes && spec->max_bytes < spec->min_bytes)
		spec->min_bytes = spec->max_bytes;
	int status = spec_take_rest(spec, args);
	if (status == CLI_DONE)
		status = spec_take_types(spec, args);
	return status == CLI_DONE ? spec_take_coll(spec, args) : status;
}

static int spec_check_plan(const struct bench_spec *spec, struct hk_why *why)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(spec->plan, &info);
	if (info.nranks != spec->n || info.root != spec->root) {
		snprintf(why->text, sizeof(why->text),
			 "%s is a plan of %u ranks and root %u, not of %u and root %u",
			 spec->plan_path, info.nranks, info.root, spec->n, spec->root);
		return CLI_WRONG;
	}
	for (int inplace = 0; inplace <= (int)info.inplace; inplace++) {
		opts.inplace = inplace;
		if (hk_check(spec->plan, &opts, &report) != HK_OK) {
			snprintf(why->text, sizeof(why->text), "%.64s%s is refused: %.600s",
				 spec->plan_path, inplace ? ", in place," : "", report.why.text);
			return CLI_REFUSED;
		}
	}
	return CLI_DONE;
}

int bench_spec_check(const struct bench_spec *spec, struct hk_why *why)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan *plan;

	if (spec->root >= spec->n) {
		snprintf(why->text, sizeof(why->text),
			 "root %u is not one of the %u ranks (0 to %u)", spec->root, spec->n,
			 spec->n - 1);
		return CLI_WRONG;
	}
	double need = 2.0 * (double)bench_buffer_bytes(spec), have = (double)pages * (double)page;
	need *= spec->joined ? 1 : spec->n; /* of a launcher's, at least this one */
	if (pages > 0 && page > 0 && need > have) {
		snprintf(why->text, sizeof(why->text),
			 "the buffers need %.1f GiB and the machine has %.1f; lower -e or -n",
			 need / (1 << 30), have / (1 << 30));
		return CLI_WRONG;
	}
	if (spec->plan)
		return spec_check_plan(spec, why);
	if (!spec->algo)
		return CLI_DONE;
	/* Not every algorithm takes every number of ranks. */
	opts.algo = spec->algo;
	opts.root = spec->root;
	if (hk_plan_create(spec->coll, spec->n, &opts, why, &plan) != HK_OK)
		return CLI_WRONG;
	hk_plan_free(plan);
	return CLI_DONE;
}

static int bench_start(struct bench_spec *spec)
{
	struct hk_why why = { "" };

	if (!spec->threads && cli_ranks_launched() && (spec->n == 0 || cli_env_has("HOCKET_RANK")))
		return bench_start_joined(spec);
	if (spec->n == 0)
		return cli_wrong("bench", "no number of ranks given; add -n RANKS");
	if (spec->n > BENCH_RANKS_MAX)
		return cli_wrong("bench", "%u ranks on one machine; up to %u can be measured",
				 spec->n, BENCH_RANKS_MAX);
	int status = bench_spec_check(spec, &why);
	if (status != CLI_DONE) {
		cli_wrong("bench", "%s", why.text);
		return status;
	}
	return spec->threads ? bench_start_threads(spec) : bench_start_processes(spec);
}

static int bench_main(struct cli_args *args)
{
	struct bench_spec spec;
	int status = spec_init(&spec, args);

	if (status == CLI_DONE)
		status = bench_start(&spec);
	hk_plan_free(spec.plan);
	return status;
}

const struct cli_command cli_bench = {
	.name = "bench",
	.about = "measure collectives, as nccl-tests does",
	.help = bench_help,
	.takes = CLI_OPT_RANKS | CLI_OPT_ALGO | CLI_OPT_ROOT | CLI_OPT_JSON | CLI_OPT_BYTES |
		 CLI_OPT_NET | CLI_OPT_PLAN | CLI_OPT_TYPE | CLI_OPT_BENCH,
	.run = bench_main,
};
