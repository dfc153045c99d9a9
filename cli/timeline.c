/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - one event a line, written as they come. */
#include "timeline.h"

#include <errno.h>
#include <string.h>

int timeline_open(struct timeline *timeline, const char *command, const char *path)
{
	*timeline = (struct timeline){ .command = command, .path = path, .digits = 6 };
	timeline->file = fopen(path, "we");
	if (!timeline->file)
		return cli_wrong(command, "%s: cannot be opened: %s", path, strerror(errno));
	fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n", timeline->file);
	return CLI_DONE;
}

int timeline_close(struct timeline *timeline, const char *const *other)
{
	FILE *file = timeline->file;

	fputs("\n]", file);
	if (other) {
		fputs(", \"otherData\": {", file);
		for (const char *between = ""; *other; other += 2, between = ", ")
			fprintf(file, "%s\"%s\": %s", between, other[0], other[1]);
		fputc('}', file);
	}
	fputs("}\n", file);
	timeline->file = NULL;
	bool failed = ferror(file);
	if (fclose(file) != 0 || failed)
		return cli_wrong(timeline->command, "%s: cannot be written: %s", timeline->path,
				 strerror(errno));
	return CLI_DONE;
}

static const char *timeline_comma(struct timeline *timeline)
{
	return timeline->nevents++ ? ",\n" : "";
}

void timeline_process(struct timeline *timeline, uint32_t pid, const char *name)
{
	fprintf(timeline->file,
		"%s{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %u, \"args\": {\"name\": ",
		timeline_comma(timeline), pid);
	cli_json_string(timeline->file, name);
	fputs("}}", timeline->file);
}

void timeline_thread(struct timeline *timeline, uint32_t pid, uint32_t tid, const char *name)
{
	fprintf(timeline->file,
		"%s{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %u, \"tid\": %u, "
		"\"args\": {\"name\": ",
		timeline_comma(timeline), pid, tid);
	cli_json_string(timeline->file, name);
	fputs("}}", timeline->file);
}

void timeline_begin(struct timeline *timeline, const struct timeline_event *event)
{
	FILE *file = timeline->file;

	fprintf(file, "%s{\"ph\": \"%c\", \"cat\": \"%s\", \"name\": ", timeline_comma(timeline),
		event->phase, event->category);
	cli_json_string(file, event->name);
	if (strchr("besf", event->phase))
		fprintf(file, ", \"id\": %llu", (unsigned long long)event->id);
	fprintf(file, ", \"pid\": %u, \"tid\": %u, \"ts\": %.*f", event->pid, event->tid,
		timeline->digits, event->at_us);
	if (event->phase == 'X')
		fprintf(file, ", \"dur\": %.*f", timeline->digits, event->for_us);
	if (event->phase == 'f') /* the arrow ends in the slice around it */
		fputs(", \"bp\": \"e\"", file);
	timeline->nargs = 0;
}

static void timeline_arg(struct timeline *timeline, const char *name)
{
	fprintf(timeline->file, "%s\"%s\": ", timeline->nargs++ ? ", " : ", \"args\": {", name);
}

void timeline_number(struct timeline *timeline, const char *name, double value)
{
	timeline_arg(timeline, name);
	fprintf(timeline->file, "%.0f", value);
}

void timeline_text(struct timeline *timeline, const char *name, const char *value)
{
	timeline_arg(timeline, name);
	cli_json_string(timeline->file, value);
}

void timeline_end(struct timeline *timeline)
{
	fputs(timeline->nargs ? "}}" : "}", timeline->file);
}
