/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - `hocket doctor`: what went wrong, from the files that ranks have left. */
#include "records.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const char doctor_help[] =
	"Usage: hocket doctor [OPTION...] FILE|DIRECTORY...\n"
	"Reads the flight recorder files of a run's ranks, and first says in one sentence\n"
	"which rank is behind and where, which call mismatched, or which rank died.\n"
	"Exit status 0 if nothing was wrong, 1 if something was.\n\n"
	"      --run RUN    select this run; default: the newest\n"
	"      --json       print JSON\n\n"
	"Example: hocket doctor /tmp/hocket-1000\n";

static const struct option doctor_long[] = {
	{ "run", required_argument, NULL, 'r' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};
/* clang-format on */

struct doctor {
	const char *run;
	bool json, help;
};

static bool doctor_parse(struct doctor *doctor, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", doctor_long, NULL)) != -1) {
		switch (option) {
		case 'r':
			doctor->run = optarg;
			break;
		case 'j':
			doctor->json = true;
			break;
		case 'h':
			doctor->help = true;
			break;
		default:
			cli_wrong_option("doctor", option, argv[optind - 1]);
			return false;
		}
	}
	if (optind == argc && !doctor->help) {
		cli_wrong("doctor", "no files given; see 'hocket doctor --help'");
		return false;
	}
	return true;
}

static void print_run(const struct rank_seen *at, size_t count, const struct diagnosis *diagnosis)
{
	const struct hk_record *record = at[0].record;
	struct text missing = { 0 };

	printf("\nrun %s: %s, %u ranks, %s; %zu %s\n", record->run, record->program, record->size,
	       record->net, count, count == 1 ? "record" : "records");
	if (diagnosis->nmissing) {
		text_add_ranks(&missing, diagnosis->missing, diagnosis->nmissing);
		printf("no record of %s\n", missing.at);
		text_fini(&missing);
	}
}

static void print_text(const struct rank_seen *at, size_t count, const struct diagnosis *diagnosis)
{
	const struct table_opts opts = { .live = false };

	printf("%s\n", diagnosis->finding.text.at);
	print_run(at, count, diagnosis);
	for (size_t i = 0; i < diagnosis->ncrews; i++) {
		const struct crew *crew = &diagnosis->crews[i];

		printf("\ngroup %s of %u ranks\n", crew_name(crew).text, crew->size);
		crew_print(stdout, crew, &opts);
	}
}

static void print_json(const struct rank_seen *at, size_t count, const struct diagnosis *diagnosis)
{
	const struct hk_record *record = at[0].record;

	printf("{\"format\": \"hocket-doctor\", \"version\": 1, \"run\": ");
	cli_json_string(stdout, record->run);
	printf(", \"size\": %u, ", record->size);
	finding_print_json(stdout, diagnosis);
	printf(",\n ");
	ranks_print_json(stdout, at, count, diagnosis);
	printf("}\n");
}

/* The ranks of one run: the one that was asked for, else the newest. */
static size_t doctor_choose(const struct doctor *doctor, const struct records *records,
			    size_t *first_out)
{
	size_t runs = 0, count = 0;

	for (size_t i = 0; i < records->count;) {
		size_t n = records_run(records->at + i, records->count - i);
		bool wanted = !doctor->run || strcmp(records->at[i].record->run, doctor->run) == 0;

		if (wanted && !count) {
			*first_out = i;
			count = n;
		}
		i += n;
		runs++;
	}
	if (!count)
		cli_wrong("doctor", "no record of run '%s'", doctor->run);
	else if (runs > 1 && !doctor->run)
		cli_wrong("doctor",
			  "records of %zu runs; this is the newest, %s; --run selects another",
			  runs, records->at[*first_out].record->run);
	return count;
}

static int doctor_run(const struct doctor *doctor, char **paths)
{
	struct records records = { 0 };
	struct diagnosis diagnosis;
	size_t first = 0;
	int status = CLI_WRONG;

	if (records_read(&records, "doctor", paths) > 0) {
		records_sort(&records);
		size_t count = doctor_choose(doctor, &records, &first);

		if (count) {
			const struct rank_seen *at = records.at + first;

			diagnose(at, count, &diagnosis);
			if (doctor->json)
				print_json(at, count, &diagnosis);
			else
				print_text(at, count, &diagnosis);
			status = diagnosis.finding.kind == FINDING_NONE ? CLI_DONE : CLI_FAILED;
			diagnosis_fini(&diagnosis);
		}
	}
	records_fini(&records);
	return status;
}

static int doctor_main(int argc, char **argv)
{
	struct doctor doctor = { 0 };

	if (!doctor_parse(&doctor, argc, argv))
		return CLI_WRONG;
	if (doctor.help) {
		fputs(doctor_help, stdout);
		return CLI_DONE;
	}
	return doctor_run(&doctor, argv + optind);
}

const struct cli_command cli_doctor = {
	.name = "doctor",
	.about = "diagnose a failure from the flight recorders of ranks",
	.help = doctor_help,
	.main = doctor_main,
};
