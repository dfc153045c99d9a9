/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_probe.c - `hocket probe`: how fast this machine is, as a fabric.
 *
 * Collectives of a few algorithms and sizes are performed and timed, in shared
 * memory and over TCP, and the constants of a fabric are moved until the
 * simulator gives these times (hk_sim_fit). Started by a launcher it measures the
 * ranks and hosts that the launcher gave it.
 */
#include "measure.h"
#include "seats.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
static const char probe_help[] =
	"Usage: hocket probe [-o FILE] [--quick]\n"
	"Measures this machine, or the ranks a launcher started it as, and writes a\n"
	"fabric for `hocket sim`, `hocket explain` and HOCKET_FABRIC.\n\n"
	"  -o, --output FILE  write there; default: to standard output\n"
	"      --quick        takes a few seconds, less accurate\n\n"
	"Example: hocket probe -o here.yaml && hocket explain allreduce --size 1M --fabric here.yaml\n"
	"         hocket run --hosts a,b -- hocket probe -o cluster.yaml\n";

static const struct option probe_long[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "quick", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* What is performed: enough kinds of steps to tell their costs apart. */
static const struct {
	enum hk_coll coll;
	const char *algo;
} probes[] = {
	{ HK_COLL_ALLREDUCE, "one-shot" },
	{ HK_COLL_ALLREDUCE, "two-shot" },
	{ HK_COLL_ALLREDUCE, "ring" },
	{ HK_COLL_ALLREDUCE, "double-tree" },
	{ HK_COLL_ALLGATHER, "ring" },
	{ HK_COLL_ALLGATHER, "direct" },
	{ HK_COLL_ALLGATHER, "bruck" },
	{ HK_COLL_ALLTOALL,  "pairwise" },
	{ HK_COLL_ALLTOALL,  "bruck" },
	{ HK_COLL_BROADCAST, "binomial" },
	{ HK_COLL_BROADCAST, "scatter-allgather" },
};
#define PROBES (sizeof(probes) / sizeof(probes[0]))

static const uint64_t sizes_all[] = { 8, 512, 4096, 32768, 131072, 262144, 524288, 2097152, 16777216,
				      67108864 };
static const uint64_t sizes_quick[] = { 8, 4096, 65536, 2097152 };
/* clang-format on */

#define CELLS_MAX (PROBES * sizeof(sizes_all) / sizeof(sizes_all[0]))
#define ROUNDS 3u
#define PATIENCE_S 25.0	      /* with a wire: all has to be done in a minute */
#define NIC_UNLIMITED 10000.0 /* GB/s */
#define SWITCH_FIRST "2000"   /* ns: where a fit begins */

struct probe {
	const char *output;
	bool quick, help;
	uint32_t cores;
	struct hk_fabric *fabric;
	struct measure_cell cells[CELLS_MAX];
	size_t ncells;
	double nic;	 /* nic.bw as it was */
	double apart_ns; /* of two cores, while all of this was measured; 0: not known */
	bool moved;	 /* they were elsewhere for some of it */
};

/* ---- measuring ---- */

static void cells_fill(struct probe *probe)
{
	const uint64_t *sizes = probe->quick ? sizes_quick : sizes_all;
	size_t nsizes = probe->quick ? sizeof(sizes_quick) / sizeof(*sizes)
				     : sizeof(sizes_all) / sizeof(*sizes);

	probe->ncells = 0;
	for (size_t s = 0; s < nsizes; s++) {
		for (size_t p = 0; p < PROBES; p++) {
			struct measure_cell *cell = &probe->cells[probe->ncells++];

			*cell = (struct measure_cell){ .coll = probes[p].coll, .bytes = sizes[s] };
			snprintf(cell->algo, sizeof(cell->algo), "%s", probes[p].algo);
		}
	}
}

static struct measure_job job_init(struct probe *probe, uint32_t n, const char *net,
				   const char *what)
{
	return (struct measure_job){ .command = "probe",
				     .n = n,
				     .net = net,
				     .cells = probe->cells,
				     .ncells = probe->ncells,
				     .rounds = probe->quick ? 1 : ROUNDS,
				     .patience_s = probe->quick ? 0 : PATIENCE_S,
				     .apart_ns = probe->apart_ns,
				     .progress = isatty(2),
				     .what = what };
}

/* Where cores were, which is part of what was measured. */
static void probe_apart(struct probe *probe, const struct measure_job *job)
{
	probe->apart_ns = job->apart_ns;
	probe->moved = probe->moved || job->moved;
	if (job->moved)
		fprintf(stderr,
			"hocket probe: two cores were %.0f ns apart, but not all the time: "
			"predictions will be less accurate\n",
			job->apart_ns);
}

/* ---- fitting ---- */

static void fit_progress(void *ctx, double done)
{
	if (isatty(2))
		fprintf(stderr, "\rhocket probe: fitting %s, %.0f %%  ", (const char *)ctx,
			100 * done);
}

/* Constants of a wire, from the cells as measured among n ranks on `devices`. */
static int probe_fit(struct probe *probe, uint32_t n, const uint32_t *devices, const char *wire,
		     bool device)
{
	struct hk_sim_sample samples[CELLS_MAX] = { 0 };
	struct hk_sim_fit_what what = { .device = device, .wire = wire };
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_sim_fit_result found = { .size = sizeof(found) };
	struct hk_why why = { "" };
	enum hk_status status = HK_OK;
	size_t count = 0;

	opts.calls = CLI_CALLS;
	opts.progress = fit_progress;
	opts.ctx = (void *)wire;
	for (; count < probe->ncells && status == HK_OK; count++) {
		const struct measure_cell *cell = &probe->cells[count];
		struct hk_plan_opts plan = HK_PLAN_OPTS_INIT;

		plan.algo = cell->algo;
		status = hk_plan_create(cell->coll, n, &plan, &why,
					(struct hk_plan **)&samples[count].plan);
		samples[count].bytes = (double)cell->bytes;
		samples[count].time_ns = cell->time_ns;
		samples[count].devices = devices;
	}
	if (status == HK_OK)
		status = hk_sim_fit(probe->fabric, &what, samples, (uint32_t)count, &opts, &why,
				    &found);
	for (size_t i = 0; i < count; i++)
		hk_plan_free((struct hk_plan *)samples[i].plan);
	if (isatty(2))
		fprintf(stderr, "\r%78s\r", "");
	if (status != HK_OK) {
		cli_wrong("probe", "%s", why.text);
		return CLI_FAILED;
	}
	fprintf(stderr,
		"hocket probe: %s: %zu times, %u constants, error %.1f %% (median), %.1f %% "
		"(p90)\n",
		wire, count, found.constants, 100 * found.median_error, 100 * found.p90_error);
	return CLI_DONE;
}

/* ---- writing ---- */

static int probe_write(const struct probe *probe, const uint32_t *hosts, uint32_t nhosts)
{
	struct hk_fabric *fabric;
	struct hk_why why = { "" };
	FILE *file = probe->output ? fopen(probe->output, "w") : stdout;
	enum hk_status status = HK_EIO;

	if (!file)
		return cli_wrong("probe", "cannot write %s", probe->output);
	status = hk_fabric_hosts(probe->fabric, hosts, nhosts, NULL, &why, &fabric);
	if (status == HK_OK) {
		status = hk_fabric_print_file(fabric, file, &why);
		if (probe->apart_ns > 0)
			fprintf(file, "# measured while two cores were %.0f ns apart%s\n",
				probe->apart_ns, probe->moved ? ", and elsewhere" : "");
		hk_fabric_free(fabric);
	}
	if (probe->output && fclose(file) != 0 && status == HK_OK)
		status = HK_EIO;
	if (status != HK_OK)
		return cli_wrong("probe", "%s: %s", probe->output ? probe->output : "output",
				 why.text[0] ? why.text : hk_status_text(status));
	if (probe->output)
		fprintf(stderr, "hocket probe: wrote %s\n", probe->output);
	return CLI_DONE;
}

static bool probe_change(struct probe *probe, const char *change)
{
	struct hk_why why = { "" };

	if (hk_fabric_change(probe->fabric, change, &why) == HK_OK)
		return true;
	cli_wrong("probe", "%s", why.text);
	return false;
}

/*
 * Bytes between two hosts of one rank each cost what the wire's bytes cost: a NIC
 * that both directions share is not seen. It is what it was for the fabric that is
 * written, where ranks of a host share it.
 */
static bool probe_unlimited(struct probe *probe, bool unlimited)
{
	struct hk_fabric_constant constant = { .size = sizeof(constant) };
	char change[64];

	for (uint32_t i = 0; unlimited && hk_fabric_constant(probe->fabric, i, &constant); i++)
		if (strcmp(constant.name, "nic.bw") == 0)
			probe->nic = constant.value;
	snprintf(change, sizeof(change), "nic.bw=%.17g", unlimited ? NIC_UNLIMITED : probe->nic);
	return probe_change(probe, change);
}

/* What the constants that are fitted mean over TCP; those that are built in are older. */
static bool probe_kernel(struct probe *probe)
{
	return probe_change(probe, "tcp.kernel=1");
}

/* ---- this machine ---- */

static int probe_here(struct probe *probe)
{
	/* Two hosts like this one: ranks 0 and 1 share memory, 0 and `cores` do not. */
	uint32_t cores = probe->cores > 1 ? probe->cores : 2, hosts[2] = { cores, cores };
	uint32_t near[2] = { 0, 1 }, far[2] = { 0, cores };
	struct hk_why why = { "" };

	if (hk_fabric_hosts(NULL, hosts, 2, NULL, &why, &probe->fabric) != HK_OK)
		return cli_wrong("probe", "%s", why.text);
	if (!probe_unlimited(probe, true) || !probe_kernel(probe))
		return CLI_FAILED;
	cells_fill(probe);
	struct measure_job job = job_init(probe, 2, "shm", "shared memory");
	int status = measure_here(&job);
	probe_apart(probe, &job);
	if (status == CLI_DONE)
		status = probe_fit(probe, 2, near, "shm", true);
	if (status == CLI_DONE) {
		cells_fill(probe);
		job = job_init(probe, 2, "tcp", "TCP");
		status = measure_here(&job);
		probe_apart(probe, &job);
	}
	if (status == CLI_DONE)
		status = probe_fit(probe, 2, far, "tcp", false);
	if (status == CLI_DONE && !probe_unlimited(probe, false))
		status = CLI_FAILED;
	return status == CLI_DONE ? probe_write(probe, hosts, 1) : status;
}

/* ---- a launcher's ranks ---- */

/* Ranks that share cores: a constant of the fabric, and one to fit. */
static bool probe_shares(struct probe *probe, uint32_t cores)
{
	char change[64];

	snprintf(change, sizeof(change), "device.cores=%u", cores);
	return probe_change(probe, change) && probe_change(probe, "device.switch=" SWITCH_FIRST);
}

static int ranks_fit(struct probe *probe, uint32_t n, const struct cli_seats *seats)
{
	struct hk_why why = { "" };

	if (hk_fabric_hosts(NULL, seats->hosts, seats->nhosts, NULL, &why, &probe->fabric) != HK_OK)
		return cli_wrong("probe", "%s", why.text);
	if (!seats->in_turn)
		fprintf(stderr,
			"hocket probe: %u ranks share %u cores, but not in turn, which a fabric "
			"cannot describe: predictions will be less accurate\n",
			n, seats->cores);
	if ((seats->nhosts == n && !probe_unlimited(probe, true)) || !probe_kernel(probe) ||
	    (seats->cores && seats->in_turn && !probe_shares(probe, seats->cores)))
		return CLI_FAILED;
	int status = probe_fit(probe, n, NULL, seats->nhosts > 1 ? "tcp" : "shm", true);
	return status == CLI_DONE ? probe_write(probe, seats->hosts, seats->nhosts) : status;
}

static int probe_ranks(struct probe *probe, struct cli_rank *rank)
{
	uint32_t n = hk_group_size(rank->group);
	struct cli_seats seats;

	if (n < 2)
		return cli_wrong("probe", "at least two ranks are needed");
	if (cli_seats_find(rank, &seats) != HK_OK)
		return cli_wrong("probe", "%s", hk_group_why(rank->group));
	cells_fill(probe);
	struct measure_job job = job_init(probe, n, NULL, "this job");
	int status = measure_group(&job, rank);
	if (status != CLI_DONE)
		status = cli_wrong("probe", "rank %u: %s", rank->rank, rank->why);
	else if (rank->rank == 0) {
		probe_apart(probe, &job);
		status = ranks_fit(probe, n, &seats);
	}
	cli_seats_free(&seats);
	return status;
}

static int probe_joined(struct probe *probe)
{
	struct cli_rank rank = { .core = -1 };
	struct hk_why why = { "" };

	if (hk_group_create(NULL, &why, &rank.group) != HK_OK) {
		cli_wrong("probe", "%s", why.text);
		return CLI_FAILED;
	}
	rank.rank = hk_group_rank(rank.group);
	int status = probe_ranks(probe, &rank);
	if (status == CLI_DONE)
		hk_group_free(rank.group);
	return status;
}

/* ---- the command ---- */

static bool probe_parse(struct probe *probe, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":o:h", probe_long, NULL)) != -1) {
		switch (option) {
		case 'o':
			probe->output = optarg;
			break;
		case 'q':
			probe->quick = true;
			break;
		case 'h':
			probe->help = true;
			break;
		default:
			cli_wrong_option("probe", option, argv[optind - 1]);
			return false;
		}
	}
	if (optind != argc) {
		cli_wrong("probe", "unexpected '%s'; see 'hocket probe --help'", argv[optind]);
		return false;
	}
	return true;
}

/* Known before a minute of measuring; what is in the file stays until there is more. */
static bool probe_may_write(const struct probe *probe)
{
	FILE *file = probe->output ? fopen(probe->output, "a") : NULL;

	return !probe->output || (file && fclose(file) == 0);
}

static int probe_main(int argc, char **argv)
{
	struct probe *probe = calloc(1, sizeof(*probe));
	int status = CLI_WRONG;

	if (!probe)
		return cli_wrong("probe", "no memory");
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	probe->cores = cores > 0 ? (uint32_t)cores : 1;
	if (probe_parse(probe, argc, argv)) {
		if (probe->help) {
			fputs(probe_help, stdout);
			status = CLI_DONE;
		} else if (!probe_may_write(probe)) {
			status = cli_wrong("probe", "cannot write %s", probe->output);
		} else {
			status = cli_ranks_launched() ? probe_joined(probe) : probe_here(probe);
		}
	}
	hk_fabric_free(probe->fabric);
	free(probe);
	return status;
}

const struct cli_command cli_probe = {
	.name = "probe",
	.about = "measure this machine and write its fabric",
	.help = probe_help,
	.main = probe_main,
};
