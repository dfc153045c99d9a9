/* SPDX-License-Identifier: Apache-2.0 */
/* top_print.c - what `hocket top` shows: to people, to programs, to Prometheus. */
#include "run.h"
#include "top.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- people ---- */

/* A line that a terminal does not wrap. */
static void print_line(const struct top *top, const struct text *text)
{
	int width = top->width > 0 && (size_t)top->width < text->len ? top->width : (int)text->len;

	printf("%.*s\n", width, text->at);
}

static void print_summary(const struct top *top, const struct rank_seen *at, size_t count)
{
	const struct hk_record *record = at[0].record;
	struct text line = { 0 };
	double operations = 0, bytes = 0;

	for (size_t i = 0; i < count; i++) {
		struct rank_rates rates;

		rank_rates(&at[i], &rates);
		operations = rates.operations_s > operations ? rates.operations_s : operations;
		bytes += rates.bytes_s;
	}
	text_add(&line, "run %s: %s, %zu of %u ranks, %s, %.0f operations/s, %.2f GB/s",
		 record->run, record->program, count, record->size, record->net, operations,
		 bytes / 1e9);
	print_line(top, &line);
	text_fini(&line);
}

/* Nobody stands still, but somebody may be who the others wait for, again and again. */
static void print_slowest(const struct crew *crew)
{
	uint32_t *votes = run_grow(NULL, (size_t)crew->size + 1, sizeof(*votes)), best = HK_NONE;
	size_t waiting = 0;

	memset(votes, 0, crew->size * sizeof(*votes));
	for (uint32_t s = 0; s < crew->size; s++) {
		uint32_t next = seat_waits_for(crew, s);

		if (next == HK_NONE)
			continue;
		waiting++;
		votes[next]++;
		if (best == HK_NONE || votes[next] > votes[best])
			best = next;
	}
	if (waiting > 1 && votes[best] * 2 > waiting)
		printf("slowest: rank %u; %u of %zu waiting ranks wait for it\n",
		       crew->seats[best].rank, votes[best], waiting);
	free(votes);
}

static void print_run(const struct top *top, const struct rank_seen *at, size_t count)
{
	const struct table_opts opts = { .width = top->width, .live = true };
	struct diagnosis diagnosis;

	diagnose(at, count, &diagnosis);
	print_summary(top, at, count);
	if (diagnosis.finding.kind != FINDING_NONE)
		print_line(top, &diagnosis.finding.text);
	for (size_t i = 0; i < diagnosis.ncrews; i++) {
		const struct crew *crew = &diagnosis.crews[i];

		if (diagnosis.ncrews > 1)
			printf("group %s of %u ranks\n", crew_name(crew).text, crew->size);
		crew_print(stdout, crew, &opts);
		if (diagnosis.finding.kind == FINDING_NONE)
			print_slowest(crew);
	}
	diagnosis_fini(&diagnosis);
}

void top_print(const struct top *top, const struct records *records)
{
	char clock[32] = "";
	time_t now = time(NULL);
	struct tm local;

	if (top->terminal && localtime_r(&now, &local)) {
		strftime(clock, sizeof(clock), "%H:%M:%S", &local);
		printf("hocket top, %s, every %.3g s\n\n", clock, top->interval_s);
	}
	if (records->count == 0)
		printf("no ranks of this user run here\n");
	for (size_t i = 0; i < records->count;) {
		size_t count = records_run(records->at + i, records->count - i);

		if (i > 0)
			printf("\n");
		print_run(top, records->at + i, count);
		i += count;
	}
}

/* ---- programs ---- */

void top_print_json(const struct records *records)
{
	printf("{\"format\": \"hocket-top\", \"version\": 1, \"runs\": [");
	for (size_t i = 0; i < records->count;) {
		const struct rank_seen *at = records->at + i;
		size_t count = records_run(at, records->count - i);
		struct diagnosis diagnosis;

		diagnose(at, count, &diagnosis);
		printf("%s\n {\"run\": ", i ? "," : "");
		cli_json_string(stdout, at[0].record->run);
		printf(", \"program\": ");
		cli_json_string(stdout, at[0].record->program);
		printf(", \"net\": ");
		cli_json_string(stdout, at[0].record->net);
		printf(", \"size\": %u, ", at[0].record->size);
		finding_print_json(stdout, &diagnosis);
		printf(",\n ");
		ranks_print_json(stdout, at, count, &diagnosis);
		printf("}");
		diagnosis_fini(&diagnosis);
		i += count;
	}
	printf("]}\n");
}

/* ---- Prometheus ---- */

static void print_label(const char *name, const char *value, const char *between)
{
	printf("%s=\"", name);
	for (const char *c = value; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else
			putchar((unsigned char)*c < 0x20 ? '?' : *c);
	}
	printf("\"%s", between);
}

static void print_labels(const char *metric, const struct rank_seen *seen)
{
	char rank[16];

	snprintf(rank, sizeof(rank), "%u", seen->record->rank);
	printf("%s{", metric);
	print_label("run", seen->record->run, ",");
	print_label("program", seen->record->program, ",");
	print_label("host", seen->record->host, ",");
	print_label("rank", rank, "");
}

/* Of one rank: the number of a metric. */
static double metric_operations(const struct rank_seen *seen)
{
	struct rank_rates rates;

	rank_rates(seen, &rates);
	return (double)rates.operations;
}

static double metric_bytes(const struct rank_seen *seen)
{
	struct rank_rates rates;

	rank_rates(seen, &rates);
	return (double)rates.bytes;
}

static double metric_failed(const struct rank_seen *seen)
{
	double failed = 0;

	for (uint32_t i = 0; i < seen->record->rows; i++)
		failed += hk_record_row(seen->record, i)->status != HK_OK;
	return failed;
}

static double metric_gone(const struct rank_seen *seen)
{
	return (double)seen->record->ngone;
}

static double metric_stopped(const struct rank_seen *seen)
{
	return seen->state == 'T' || seen->state == 't';
}

/* For how long the operation is in flight that has been for the longest. */
static double metric_in_flight(const struct rank_seen *seen)
{
	double longest = 0;

	for (uint32_t i = 0; i < seen->record->rows; i++) {
		const struct hk_record_group *row = hk_record_row(seen->record, i);
		double since = record_since(seen->record, row->now.called_ns);

		if (row_is_busy(row) && row->now.number == row->done + 1 && since > longest)
			longest = since;
	}
	return longest;
}

void top_print_prometheus(const struct records *records)
{
	static const struct {
		const char *name, *type, *help;
		double (*value)(const struct rank_seen *seen);
	} metrics[] = {
		{ "hocket_operations_total", "counter", "Operations that are over.",
		  metric_operations },
		{ "hocket_bytes_total", "counter", "Bytes of operations that are over.",
		  metric_bytes },
		{ "hocket_groups_failed", "gauge", "Groups that have failed.", metric_failed },
		{ "hocket_ranks_gone", "gauge", "Ranks that this rank knows to be dead or lost.",
		  metric_gone },
		{ "hocket_in_flight_seconds", "gauge",
		  "How long the oldest operation in flight has been waited for.",
		  metric_in_flight },
		{ "hocket_process_stopped", "gauge", "1 if the rank's process is stopped.",
		  metric_stopped },
	};

	for (size_t m = 0; m < sizeof(metrics) / sizeof(metrics[0]); m++) {
		printf("# HELP %s %s\n# TYPE %s %s\n", metrics[m].name, metrics[m].help,
		       metrics[m].name, metrics[m].type);
		for (size_t i = 0; i < records->count; i++) {
			print_labels(metrics[m].name, &records->at[i]);
			printf("} %.17g\n", metrics[m].value(&records->at[i]));
		}
	}
	printf("# HELP hocket_waits_for The rank that a rank waits for in a group.\n"
	       "# TYPE hocket_waits_for gauge\n");
	for (size_t i = 0; i < records->count;) {
		size_t count = records_run(records->at + i, records->count - i);
		struct diagnosis diagnosis;

		diagnose(records->at + i, count, &diagnosis);
		for (size_t c = 0; c < diagnosis.ncrews; c++) {
			const struct crew *crew = &diagnosis.crews[c];

			for (uint32_t s = 0; s < crew->size; s++) {
				uint32_t next = seat_waits_for(crew, s);

				if (next == HK_NONE || !seat_is_stuck(&crew->seats[s]))
					continue;
				print_labels("hocket_waits_for", crew->seats[s].seen);
				printf(",group=\"%s\"} %u\n", crew_name(crew).text,
				       crew->seats[next].rank);
			}
		}
		diagnosis_fini(&diagnosis);
		i += count;
	}
}
