/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_print.c - what was measured, as tables or as one JSON document. Columns,
 * header, footer and keys are those of nccl-tests, so that what reads its
 * output reads this; behind them come the algorithm, and medians and 99th
 * percentiles of single calls.
 */
#include "bench.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ALGO_WIDTH 20 /* of the column */

static void now_text(char *text, size_t room)
{
	time_t now = time(NULL);
	struct tm local;

	if (!localtime_r(&now, &local) || strftime(text, room, "%Y-%m-%d %H:%M:%S", &local) == 0)
		text[0] = '\0';
}

static const char *true_false(bool yes)
{
	return yes ? "true" : "false";
}

static const char *row_redop(const struct bench_report *report, enum hk_coll coll)
{
	return bench_coll_reduces(coll) ? hk_redop_name(report->spec->op) : "none";
}

static const char *row_type(const struct bench_report *report, enum hk_coll coll)
{
	return coll == HK_COLL_BARRIER ? "none" : hk_type_name(report->spec->type);
}

static int row_root(const struct bench_report *report, enum hk_coll coll)
{
	return cli_is_rooted(coll) ? (int)report->spec->root : -1;
}

/* ---- progress ---- */

static void progress_clear(const struct bench_report *report)
{
	if (report->progress)
		fputs("\r\033[K", stderr);
}

void bench_report_progress(struct bench_report *report, const struct bench_case *c)
{
	if (!report->progress)
		return;
	fprintf(stderr, "\r\033[K%s, %" PRIu64 " bytes, %s: row %" PRIu64, hk_coll_name(c->coll),
		c->bytes, c->inplace ? "in place" : "out of place", report->rows + 1);
	fflush(stderr);
}

/* ---- the head ---- */

static void text_begin(const struct bench_report *report, const char *net,
		       const struct bench_seat *seats)
{
	const struct bench_spec *spec = report->spec;

	printf("# hocket version %s\n", hk_version());
	printf("# nranks %u (%s) minBytes %" PRIu64 " maxBytes %" PRIu64
	       " step: %u(factor) warmup iters: %u iters: ",
	       spec->n, spec->threads ? "threads" : "processes", spec->min_bytes, spec->max_bytes,
	       spec->factor, spec->warmup);
	if (spec->iters)
		printf("%u", spec->iters);
	else
		fputs("auto", stdout);
	printf(" validation: %d registered: %d net: %s\n", spec->check, spec->registered, net);
	printf("#\n# Using ranks\n");
	for (uint32_t r = 0; r < spec->n; r++) {
		printf("#  Rank %2u Pid %6u on %s ", r, seats[r].pid, seats[r].host);
		if (seats[r].core >= 0)
			printf("pinned to core %2d\n", (int)seats[r].core);
		else
			puts("not pinned");
	}
}

static void json_begin(const struct bench_report *report, const char *net,
		       const struct bench_seat *seats)
{
	const struct bench_spec *spec = report->spec;

	printf("{\"version\": 1, \"start_time\": \"%s\", \"hocket_version\": \"%s\",\n"
	       " \"config\": {\"nranks\": %u, \"threads\": %s, \"net\": \"%s\", "
	       "\"minimum_bytes\": %" PRIu64 ", \"maximum_bytes\": %" PRIu64
	       ", \"step_factor\": %u, \"warmup_iters\": %u, \"iterations\": %u, "
	       "\"validation\": %d, \"registered\": %s},\n \"devices\": [",
	       report->started, hk_version(), spec->n, true_false(spec->threads), net,
	       spec->min_bytes, spec->max_bytes, spec->factor, spec->warmup, spec->iters,
	       spec->check, true_false(spec->registered));
	for (uint32_t r = 0; r < spec->n; r++) {
		printf("%s\n  {\"rank\": %u, \"pid\": %u, \"hostname\": ", r ? "," : "", r,
		       seats[r].pid);
		cli_json_string(stdout, seats[r].host);
		if (seats[r].core >= 0)
			printf(", \"device\": %d}", (int)seats[r].core);
		else
			fputs(", \"device\": null}", stdout);
	}
	fputs("],\n \"results\": [", stdout);
}

void bench_report_begin(struct bench_report *report, const struct bench_spec *spec, const char *net,
			const struct bench_seat *seats)
{
	*report = (struct bench_report){ .spec = spec, .progress = isatty(STDERR_FILENO) };
	now_text(report->started, sizeof(report->started));
	if (spec->json)
		json_begin(report, net, seats);
	else
		text_begin(report, net, seats);
}

void bench_report_table(struct bench_report *report, enum hk_coll coll)
{
	report->busbw = 0;
	report->halves = report->wrong_table = 0;
	if (report->spec->json)
		return;
	progress_clear(report);
	printf("#\n# Collective test starting: %s\n#\n", hk_coll_name(coll));
	printf("# %59s %31s %35s %45s %20s\n", "", "out-of-place", "in-place", "out-of-place",
	       "in-place");
	printf("#%11s  %12s  %8s  %9s  %6s", "size", "count", "type", "redop", "root");
	for (int half = 0; half < 2; half++)
		printf("  %9s  %7s  %7s  %6s", "time", "algbw", "busbw", "#wrong");
	printf("  %-*s", ALGO_WIDTH, "algorithm");
	for (int half = 0; half < 2; half++)
		printf("  %9s  %9s", "median", "p99");
	printf("\n#%11s  %12s  %8s  %9s  %6s", "(B)", "(elements)", "", "", "");
	for (int half = 0; half < 2; half++)
		printf("  %9s  %7s  %7s  %6s", "(us)", "(GB/s)", "(GB/s)", "");
	printf("  %*s", ALGO_WIDTH, "");
	for (int half = 0; half < 2; half++)
		printf("  %9s  %9s", "(us)", "(us)");
	putchar('\n');
	fflush(stdout);
}

/* ---- rows ---- */

static void text_half(const struct bench_report *report, const struct bench_half *half)
{
	if (!half->measured) {
		printf("  %9s  %7s  %7s  %6s", "N/A", "N/A", "N/A", "N/A");
		return;
	}
	printf("  %9.*f  %7.*f  %7.*f", half->time_us < 1e6 ? 2 : 0, half->time_us,
	       half->algbw < 100 ? 3 : 1, half->algbw, half->busbw < 100 ? 3 : 1, half->busbw);
	if (report->spec->check)
		printf("  %6" PRIu64, half->wrong);
	else
		printf("  %6s", "N/A");
}

static void text_times(const struct bench_half *half)
{
	if (half->measured)
		printf("  %9.*f  %9.*f", half->median_us < 1e6 ? 2 : 0, half->median_us,
		       half->p99_us < 1e6 ? 2 : 0, half->p99_us);
	else
		printf("  %9s  %9s", "N/A", "N/A");
}

static void json_half(const struct bench_report *report, const char *key,
		      const struct bench_half *half)
{
	printf(", \"%s\": ", key);
	if (!half->measured) {
		fputs("null", stdout);
		return;
	}
	printf("{\"time\": %.3f, \"alg_bw\": %.6f, \"bus_bw\": %.6f, \"nwrong\": ", half->time_us,
	       half->algbw, half->busbw);
	if (report->spec->check)
		printf("%" PRIu64, half->wrong);
	else
		fputs("null", stdout);
	printf(", \"median\": %.3f, \"p99\": %.3f}", half->median_us, half->p99_us);
}

static void text_row(const struct bench_report *report, const struct bench_row *row)
{
	enum hk_coll coll = row->at.coll;

	printf("%12" PRIu64 "  %12" PRIu64 "  %8s  %9s  %6d", row->at.bytes, row->at.count,
	       row_type(report, coll), row_redop(report, coll), row_root(report, coll));
	text_half(report, &row->half[0]);
	text_half(report, &row->half[1]);
	printf("  %-*s", ALGO_WIDTH, row->algo);
	text_times(&row->half[0]);
	text_times(&row->half[1]);
	putchar('\n');
}

static void json_row(const struct bench_report *report, const struct bench_row *row)
{
	enum hk_coll coll = row->at.coll;

	printf("%s\n  {\"size\": %" PRIu64 ", \"count\": %" PRIu64
	       ", \"type\": \"%s\", \"redop\": \"%s\", \"root\": %d",
	       report->rows ? "," : "", row->at.bytes, row->at.count, row_type(report, coll),
	       row_redop(report, coll), row_root(report, coll));
	json_half(report, "out_of_place", &row->half[0]);
	json_half(report, "in_place", &row->half[1]);
	printf(", \"actual_iterations\": %u, \"experiment_name\": \"%s\", \"algorithm\": ",
	       row->half[0].iters, hk_coll_name(coll));
	cli_json_string(stdout, row->algo);
	fputc('}', stdout);
}

void bench_report_row(struct bench_report *report, const struct bench_row *row)
{
	progress_clear(report);
	if (report->spec->json)
		json_row(report, row);
	else
		text_row(report, row);
	fflush(stdout);
	report->rows++;
	for (int i = 0; i < 2; i++) {
		const struct bench_half *half = &row->half[i];

		if (!half->measured)
			continue;
		report->busbw += half->busbw;
		report->busbw_all += half->busbw;
		report->halves++;
		report->halves_all++;
		report->wrong += half->wrong;
		report->wrong_table += half->wrong;
	}
}

/* ---- the foot ---- */

static double mean(double sum, uint64_t count)
{
	return count ? sum / (double)count : 0;
}

void bench_report_table_end(struct bench_report *report)
{
	if (report->spec->json)
		return;
	if (report->spec->check)
		printf("# Out of bounds values : %" PRIu64 " %s\n", report->wrong_table,
		       report->wrong_table ? "FAILED" : "OK");
	else
		puts("# Out of bounds values : N/A");
	printf("# Avg bus bandwidth    : %g\n#\n", mean(report->busbw, report->halves));
}

void bench_report_end(struct bench_report *report, const char *why)
{
	char now[32];

	progress_clear(report);
	if (!report->spec->json)
		return;
	now_text(now, sizeof(now));
	printf("],\n \"out_of_bounds\": {\"count\": %" PRIu64 ", \"okay\": %s},\n"
	       " \"average_bus_bandwidth\": {\"bandwidth\": %.6f, \"okay\": \"unchecked\"},\n"
	       " \"end_time\": \"%s\"",
	       report->wrong, true_false(report->wrong == 0),
	       mean(report->busbw_all, report->halves_all), now);
	if (why) {
		fputs(",\n \"error\": ", stdout);
		cli_json_string(stdout, why);
	}
	puts("}");
}
