/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sim.c - `hocket sim`: how long a collective takes on a fabric, and why. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char sim_help[] =
	"Usage: hocket sim COLLECTIVE --fabric FABRIC [OPTION...]\n"
	"Predicts the time of a collective on a fabric, and names the bottleneck.\n\n"
	"      --fabric F   a name ('hocket fabric list') such as dgx-h100:128, here, or a file\n"
	"  -n, --ranks N    only the first N ranks of the fabric; default: all\n"
	"  -b, --minbytes S first size, as in nccl-tests: 8, 64K, 32M; default 1K\n"
	"  -e, --maxbytes S largest size; default 1G\n"
	"  -f, --stepfactor F  factor between sizes; default 4\n"
	"  -a, --algo A     algorithm ('hocket list'); default: the fastest\n"
	"      --plan FILE  simulate this plan (hocket-plan(5)), if it can be proved\n"
	"      --nodes N    two-level algorithms: nodes, or the ranks of each, such as 3+1+4;\n"
	"                   default: those of the fabric\n"
	"      --root R     broadcast, reduce, gather, scatter: the root; default 0\n"
	"      --pairs LIST sendrecv: messages as sender:receiver,...\n"
	"      --as WHO     hocket (the default) or nccl: NCCL's choice and its time\n"
	"      --what-if C  also with changed constants, such as nic.bw=2x,nic.delay=500\n"
	"      --sensitivity  how much the time depends on each constant of the fabric\n"
	"      --also C:S   another collective at the same time, such as alltoall:64M\n"
	"      --fault F    slow-rank=5:2x, late-rank=5:1ms, slow-link=nic.out:5:4x,\n"
	"                   lossy-link=nic.out:5:0.001:1ms or dead-link=leaf.up:3\n"
	"      --jitter J   steps take longer at random, typically by J times their time\n"
	"      --seed S     seed of all random numbers; default 1\n"
	"      --samples N  runs to average if anything is random; default 16\n"
	"      --slice S    minimum bytes of a slice; default: the fabric's\n"
	"      --full       simulate every rank, even if ranks are equivalent\n"
	"      --trace FILE write a timeline for Perfetto or Chrome; needs a single size,\n"
	"                   as do the next two:\n"
	"      --goal FILE  write the plan as GOAL, for LogGOPSim\n"
	"      --chakra P   write the plan as Chakra traces P.0.et, P.1.et, ..., for ASTRA-sim\n"
	"      --json       print JSON\n\n"
	"Example: hocket sim allreduce --fabric dgx-h100:128 -b 1M -e 1G\n"
	"         hocket sim alltoall --fabric dgx-h100:16 -b 64M -e 64M --what-if nic.bw=2x\n";

#define BYTES_FIRST (UINT64_C(1) << 10)
#define BYTES_LAST (UINT64_C(1) << 30)
#define FACTOR 4

/* ---- what the options say together ---- */

static int args_check(const struct cli_args *args)
{
	const struct cli_sim_args *sim = &args->sim;
	bool nccl = sim->as && strcmp(sim->as, "nccl") == 0;

	if (!args->what && !args->plan)
		return cli_wrong("sim", "no collective given; see 'hocket sim --help'");
	if (!args->fabric)
		return cli_wrong("sim", "no fabric given; add --fabric, such as dgx-h100:16");
	if (args->has_ranks && args->ranks.from != args->ranks.to)
		return cli_wrong("sim", "-n takes one number of ranks here, not a range");
	if (args->plan && (args->algo || args->has_nodes || args->has_root || args->npairs))
		return cli_wrong("sim", "a plan from a file takes no --algo, --nodes, --root or "
					"--pairs");
	if (sim->what_if && sim->sensitivity)
		return cli_wrong("sim", "choose one of --what-if and --sensitivity");
	if (nccl && (args->algo || args->plan || sim->nfaults || sim->nalso || sim->full ||
		     sim->jitter > 0 || sim->slice || sim->trace || sim->goal || sim->chakra))
		return cli_wrong("sim", "--as nccl is a model of NCCL: no --algo, --plan, --fault, "
					"--also, --jitter, --slice, --full or files with it");
	if (sim->nalso >= SIM_JOBS_MAX)
		return cli_wrong("sim", "%zu collectives with --also; at most %u can be simulated",
				 sim->nalso, SIM_JOBS_MAX - 1);
	return CLI_DONE;
}

static int run_take_sizes(struct sim_run *run, const struct cli_args *args)
{
	run->min_bytes = args->min_bytes ? args->min_bytes : BYTES_FIRST;
	run->max_bytes = args->max_bytes ? args->max_bytes : BYTES_LAST;
	run->factor = args->factor ? args->factor : FACTOR;
	/* One bound beyond the other's default is a range of one size. */
	if (!args->min_bytes && run->max_bytes < run->min_bytes)
		run->min_bytes = run->max_bytes;
	if (!args->max_bytes && run->max_bytes < run->min_bytes)
		run->max_bytes = run->min_bytes;
	if (run->min_bytes > run->max_bytes)
		return cli_wrong("sim", "the first size (-b) is larger than the last (-e)");
	if (run->jobs[0].coll == HK_COLL_BARRIER)
		run->min_bytes = run->max_bytes = 0;
	if ((args->sim.trace || args->sim.goal || args->sim.chakra) &&
	    run->min_bytes != run->max_bytes)
		return cli_wrong("sim", "--trace, --goal and --chakra need a single size; give -b "
					"and -e the same value");
	return CLI_DONE;
}

/* ---- ranks and nodes ---- */

static int run_take_nodes(struct sim_run *run)
{
	uint32_t g = run->info.node_ranks;

	run->nodes = run->args->has_nodes ? run->args->nodes : 0;
	if (run->args->has_nodes || g == 0) {
		if (!run->nodes && run->n == run->info.ranks)
			run->nodes = run->info.nodes;
		return CLI_DONE;
	}
	run->nodes = (run->n + g - 1) / g;
	if (run->n % g == 0 || run->nodes == 1)
		return CLI_DONE;
	run->node_sizes = calloc(run->nodes, sizeof(*run->node_sizes));
	if (!run->node_sizes)
		return cli_wrong("sim", "out of memory");
	for (uint32_t k = 0; k < run->nodes; k++)
		run->node_sizes[k] = k + 1 < run->nodes ? g : run->n % g;
	return CLI_DONE;
}

static int run_take_ranks(struct sim_run *run, const struct hk_plan *plan)
{
	const struct cli_args *args = run->args;

	run->n = args->has_ranks ? args->ranks.from : run->info.ranks;
	if (plan) {
		struct hk_plan_info info = { .size = sizeof(info) };

		hk_plan_describe(plan, &info);
		if (args->has_ranks && run->n != info.nranks)
			return cli_wrong("sim", "%s is a plan of %u ranks, not of %u", args->plan,
					 info.nranks, run->n);
		run->n = info.nranks;
	}
	if (run->n > run->info.ranks)
		return cli_wrong("sim", "%s has %u ranks, not %u", run->info.name, run->info.ranks,
				 run->n);
	if (args->has_root && args->root >= run->n)
		return cli_wrong("sim", "root %u is not one of the %u ranks (0 to %u)", args->root,
				 run->n, run->n - 1);
	return run_take_nodes(run);
}

/* ---- plans ---- */

static int plan_open(const struct cli_args *args, struct hk_plan **plan_out)
{
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_why why = { "" };
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_plan *plan;
	enum hk_coll coll;

	if (hk_plan_read(args->plan, NULL, &why, &plan) != HK_OK)
		return cli_wrong("sim", "%s", why.text);
	hk_plan_describe(plan, &info);
	if (args->what && (!cli_parse_coll("sim", args->what, &coll) || coll != info.coll)) {
		hk_plan_free(plan);
		return cli_wrong("sim", "%s is a plan of %s, not of %s", args->plan,
				 hk_coll_name(info.coll), args->what);
	}
	enum hk_status status = hk_check(plan, NULL, &report);
	if (status != HK_OK) {
		hk_plan_free(plan);
		cli_wrong("sim", "%s: %s", args->plan, report.why.text);
		return status == HK_EREFUSED ? CLI_REFUSED : CLI_WRONG;
	}
	*plan_out = plan;
	return CLI_DONE;
}

/* Takes the plan, if there is one. */
static int run_make_jobs(struct sim_run *run, struct hk_plan *plan)
{
	const struct cli_args *args = run->args;
	const struct cli_sim_args *sim = &args->sim;
	struct sim_job *first = &run->jobs[0];
	struct hk_plan_info info = { .size = sizeof(info) };

	run->njobs = 1;
	if (plan) {
		hk_plan_describe(plan, &info);
		first->candidates[0] = (struct sim_candidate){ .algo = info.algo, .plan = plan };
		first->ncandidates = 1;
	} else if (!(sim->as && strcmp(sim->as, "nccl") == 0) &&
		   !sim_candidates_make(run, first, true)) {
		return CLI_WRONG;
	}
	for (size_t i = 0; i < sim->nalso; i++) {
		struct sim_job *job = &run->jobs[run->njobs];

		if (!sim_read_also(sim->also[i], job) || !sim_candidates_make(run, job, false))
			return CLI_WRONG;
		run->njobs++;
	}
	if (!sim_read_faults(run))
		return CLI_WRONG;
	int status = CLI_DONE;
	for (uint32_t j = 1; status == CLI_DONE && j < run->njobs; j++)
		status = sim_choose_also(run, &run->jobs[j]);
	return status;
}

/* ---- sizes ---- */

static int row_make(struct sim_run *run, const struct hk_fabric *fabric, uint64_t bytes,
		    struct sim_row *row_out)
{
	const char *as = run->args->sim.as;

	return as && strcmp(as, "nccl") == 0 ? sim_as_nccl(run, fabric, bytes, row_out)
					     : sim_choose(run, fabric, bytes, row_out);
}

static int row_do(struct sim_run *run, const struct hk_fabric *changed, uint64_t bytes,
		  uint32_t index)
{
	const struct cli_sim_args *sim = &run->args->sim;
	struct sim_row row, other;
	int status = row_make(run, run->fabric, bytes, &row);

	if (status != CLI_DONE)
		return status;
	uint32_t chosen = run->jobs[0].chosen;
	if (changed) {
		status = row_make(run, changed, bytes, &other);
		if (status == CLI_DONE)
			sim_print_pair(run, &row, &other, index);
	} else {
		sim_print_row(run, &row, index);
	}
	run->jobs[0].chosen = chosen;
	if (status == CLI_DONE && sim->sensitivity)
		status = sim_sensitivity(run, &row);
	if (status == CLI_DONE && (sim->trace || sim->goal || sim->chakra))
		status = sim_write_files(run, &row);
	if (status == CLI_DONE)
		sim_print_row_end(run);
	return status;
}

static int run_rows(struct sim_run *run)
{
	struct hk_fabric *changed = NULL;
	uint32_t index = 0;
	int status = CLI_DONE;

	if (run->args->sim.what_if)
		status = sim_what_if_open(run, &changed);
	if (status != CLI_DONE)
		return status;
	sim_print_begin(run);
	for (uint64_t bytes = run->min_bytes; status == CLI_DONE && bytes <= run->max_bytes;
	     bytes *= run->factor) {
		status = row_do(run, changed, bytes, index++);
		if (bytes == 0)
			break;
	}
	if (status == CLI_DONE)
		sim_print_end(run);
	hk_fabric_free(changed);
	return status;
}

/* ---- the command ---- */

static int run_all(struct sim_run *run, struct hk_plan **plan)
{
	const struct cli_args *args = run->args;
	struct hk_plan_info info = { .size = sizeof(info) };
	struct hk_why why = { "" };
	int status = CLI_DONE;

	if (args->plan)
		status = plan_open(args, plan);
	else if (!cli_parse_coll("sim", args->what, &run->jobs[0].coll))
		status = CLI_WRONG;
	if (status != CLI_DONE)
		return status;
	if (*plan) {
		hk_plan_describe(*plan, &info);
		run->jobs[0].coll = info.coll;
	}
	if (args->has_root && !cli_is_rooted(run->jobs[0].coll))
		return cli_wrong("sim", "%s has no root; leave out --root",
				 hk_coll_name(run->jobs[0].coll));
	if (args->npairs && run->jobs[0].coll != HK_COLL_SENDRECV)
		return cli_wrong("sim", "%s takes no --pairs", hk_coll_name(run->jobs[0].coll));
	status = run_take_sizes(run, args);
	if (status == CLI_DONE && hk_fabric_create(args->fabric, NULL, &why, &run->fabric) != HK_OK)
		status = cli_wrong("sim", "%s", why.text);
	if (status != CLI_DONE)
		return status;
	run->info.size = sizeof(run->info);
	hk_fabric_describe(run->fabric, &run->info);
	status = run_take_ranks(run, *plan);
	if (status == CLI_DONE) {
		struct hk_plan *given = *plan;

		*plan = NULL;
		status = run_make_jobs(run, given);
	}
	return status == CLI_DONE ? run_rows(run) : status;
}

static int sim_main(struct cli_args *args)
{
	struct sim_run *run = calloc(1, sizeof(*run));
	struct hk_plan *plan = NULL;
	int status = args_check(args);

	if (!run)
		return cli_wrong("sim", "out of memory");
	run->args = args;
	run->tty = isatty(STDERR_FILENO);
	run->started = cli_now_s();
	if (status == CLI_DONE)
		status = run_all(run, &plan);
	hk_plan_free(plan);
	for (uint32_t j = 0; j < SIM_JOBS_MAX; j++)
		sim_candidates_free(&run->jobs[j]);
	hk_fabric_free(run->fabric);
	free(run->node_sizes);
	free(run);
	return status;
}

const struct cli_command cli_sim = {
	.name = "sim",
	.about = "predict how long a collective takes on a fabric",
	.help = sim_help,
	.takes = CLI_OPT_RANKS | CLI_OPT_ALGO | CLI_OPT_NODES | CLI_OPT_ROOT | CLI_OPT_PAIRS |
		 CLI_OPT_JSON | CLI_OPT_BYTES | CLI_OPT_PLAN | CLI_OPT_FABRIC | CLI_OPT_SIM,
	.run = sim_main,
};
