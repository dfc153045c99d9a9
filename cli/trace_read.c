/* SPDX-License-Identifier: Apache-2.0 */
/* trace_read.c - the files that ranks have left, with nothing in them believed. */
#include "trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct hk_trace_message *trace_in(const struct hk_trace_record *record)
{
	bool has = record->kind == HK_TRACE_STEP || record->kind == HK_TRACE_MESSAGE;

	return has && record->is.step.in.number ? &record->is.step.in : NULL;
}

const struct hk_trace_message *trace_out(const struct hk_trace_record *record)
{
	bool has = record->kind == HK_TRACE_STEP || record->kind == HK_TRACE_MESSAGE;

	return has && record->is.step.out.number ? &record->is.step.out : NULL;
}

/* ---- one file ---- */

static const char *head_wrong(const struct hk_trace_head *head, size_t bytes)
{
	if (bytes < sizeof(*head) || memcmp(head->magic, HK_TRACE_MAGIC, sizeof(head->magic)) != 0)
		return "is no trace of a rank";
	if (head->version != HK_TRACE_VERSION || head->head_bytes != sizeof(*head) ||
	    head->record_bytes != sizeof(struct hk_trace_record))
		return "is of another version of Hocket";
	if (head->capacity < 2 ||
	    (bytes - sizeof(*head)) / sizeof(struct hk_trace_record) < head->capacity)
		return "is cut off";
	return NULL;
}

static bool record_fits(const struct hk_trace_record *record)
{
	return record->kind >= HK_TRACE_STEP && record->kind <= HK_TRACE_TRANSFER &&
	       (record->end_ns >= record->start_ns || record->kind == HK_TRACE_BEGIN);
}

/* The last records, in order. The one after the last may be half of a new one. */
static int rank_take(struct trace_rank *rank, const struct hk_trace_record *from)
{
	const struct hk_trace_head *head = &rank->head;
	uint64_t kept = head->count < head->capacity ? head->count : head->capacity - 1;

	rank->records = calloc(kept + 1, sizeof(*rank->records));
	if (!rank->records)
		return cli_wrong("trace", "out of memory");
	for (uint64_t i = head->count - kept; i < head->count; i++) {
		const struct hk_trace_record *record = &from[i % head->capacity];

		if (record_fits(record))
			rank->records[rank->nrecords++] = *record;
	}
	rank->dropped = head->count - rank->nrecords;
	return CLI_DONE;
}

static int rank_read(struct trace_rank *rank, int fd, const char *name)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || status.st_size <= 0)
		return cli_wrong("trace", "%s: cannot be read: it is empty", name);
	size_t bytes = (size_t)status.st_size;
	const struct hk_trace_head *head = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (head == MAP_FAILED)
		return cli_wrong("trace", "%s: cannot be read: %s", name, strerror(errno));
	const char *wrong = head_wrong(head, bytes);
	int result = wrong ? cli_wrong("trace", "%s %s", name, wrong) : CLI_DONE;
	if (!wrong) {
		rank->head = *head;
		rank->head.host[sizeof(head->host) - 1] = '\0';
		rank->head.clock[sizeof(head->clock) - 1] = '\0';
		cli_one_line(rank->head.host);
		result = rank_take(rank, (const struct hk_trace_record *)(head + 1));
	}
	munmap((void *)head, bytes);
	return result;
}

/* ---- all of them ---- */

static int rank_compare(const void *a, const void *b)
{
	const struct hk_trace_head *x = &((const struct trace_rank *)a)->head;
	const struct hk_trace_head *y = &((const struct trace_rank *)b)->head;

	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->opened_ns < y->opened_ns ? -1 : x->opened_ns > y->opened_ns;
}

static void trace_number(struct trace *trace)
{
	qsort(trace->ranks, trace->nranks, sizeof(*trace->ranks), rank_compare);
	for (uint32_t i = 0; i < trace->nranks; i++) {
		struct trace_rank *rank = &trace->ranks[i];
		uint32_t like = 0;

		trace->nruns += i == 0 || rank->head.run != rank[-1].head.run;
		rank->run = trace->nruns - 1;
		while (strcmp(trace->ranks[like].head.clock, rank->head.clock) != 0)
			like++;
		rank->clock = like < i ? trace->ranks[like].clock : trace->nclocks++;
	}
}

/* Each rank has its share of what a viewer can bear. */
static void trace_trim(struct trace *trace)
{
	uint64_t share = TRACE_RECORDS_MAX / trace->nranks + 1;

	for (uint32_t i = 0; i < trace->nranks; i++) {
		struct trace_rank *rank = &trace->ranks[i];
		uint64_t over = rank->nrecords > share ? rank->nrecords - share : 0;

		if (!over)
			continue;
		memmove(rank->records, rank->records + over, share * sizeof(*rank->records));
		rank->nrecords = share;
		rank->dropped += over;
	}
}

static int trace_read_file(struct trace *trace, int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return cli_wrong("trace", "%s: cannot be opened: %s", name, strerror(errno));
	struct trace_rank *ranks =
		realloc(trace->ranks, (trace->nranks + (size_t)1) * sizeof(*ranks));
	int result = ranks ? CLI_DONE : cli_wrong("trace", "out of memory");
	if (ranks) {
		trace->ranks = ranks;
		ranks[trace->nranks] = (struct trace_rank){ 0 };
		result = rank_read(&ranks[trace->nranks], fd, name);
		if (result == CLI_DONE)
			trace->nranks++;
		else
			free(ranks[trace->nranks].records);
	}
	close(fd);
	return result;
}

int trace_read(struct trace *trace, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int result = CLI_DONE;

	*trace = (struct trace){ 0 };
	if (!dir)
		return cli_wrong("trace", "%s: cannot be opened: %s", path, strerror(errno));
	while (result == CLI_DONE && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		if (dot && strcmp(dot, ".trace") == 0)
			result = trace_read_file(trace, dirfd(dir), entry->d_name);
	}
	closedir(dir);
	if (result != CLI_DONE)
		return result;
	if (!trace->nranks)
		return cli_wrong("trace", "no rank has written anything: does the command make a "
					  "group with this version of Hocket?");
	trace_number(trace);
	trace_trim(trace);
	return CLI_DONE;
}

void trace_fini(struct trace *trace)
{
	for (uint32_t i = 0; i < trace->nranks; i++) {
		free(trace->ranks[i].records);
		free(trace->ranks[i].in);
		free(trace->ranks[i].out);
	}
	free(trace->ranks);
	*trace = (struct trace){ 0 };
}
