/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_find.c - the recorders of processes of this host: memfds among their
 * descriptors, which the system shows to their user alone.
 */
#include "records.h"
#include "run.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK "/memfd:" HK_RECORD_NAME

/* What /proc says of a process; 0 bytes where there is none. */
static size_t proc_read(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t got = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, size - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

/* False where it is gone. */
static bool proc_state(pid_t pid, char *state_out)
{
	char text[512];

	proc_read(pid, "stat", text, sizeof(text));
	/* A program may be called anything. */
	char *end = strrchr(text, ')');
	return end && sscanf(end + 1, " %c", state_out) == 1;
}

/* As the process itself counts, in its namespace. */
static uint32_t proc_own_pid(pid_t pid)
{
	char text[4096], *line;

	proc_read(pid, "status", text, sizeof(text));
	line = strstr(text, "\nNSpid:");
	if (!line)
		return (uint32_t)pid;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	char *last = strrchr(line, '\t');
	return last ? (uint32_t)strtoul(last + 1, NULL, 10) : (uint32_t)pid;
}

/* One descriptor of a process, if it is a recorder of its own. */
static struct hk_record *fd_record(pid_t pid, int dir, const char *name)
{
	struct hk_record *record = NULL;
	char link[64];
	ssize_t len = readlinkat(dir, name, link, sizeof(link) - 1);

	if (len < (ssize_t)strlen(LINK) || strncmp(link, LINK, strlen(LINK)) != 0)
		return NULL;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (hk_record_create(fd, NULL, NULL, &record) != HK_OK)
		record = NULL;
	close(fd);
	/* A child that was forked off has its parent's descriptors. */
	if (record && record->pid != proc_own_pid(pid)) {
		hk_record_free(record);
		record = NULL;
	}
	return record;
}

static void process_look(struct records *records, pid_t pid, char state)
{
	char path[32];
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path); /* another user's is not opened */
	while (dir && (entry = readdir(dir)) != NULL) {
		struct rank_seen seen = { .state = state, .pid = pid };

		if (isdigit((unsigned char)entry->d_name[0]))
			seen.record = fd_record(pid, dirfd(dir), entry->d_name);
		if (seen.record)
			records_add(records, &seen);
	}
	if (dir)
		closedir(dir);
}

void records_find(struct records *records)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		char state;

		if (pid > 0 && proc_state(pid, &state))
			process_look(records, pid, state);
	}
	if (proc)
		closedir(proc);
}

void records_look_again(struct records *records)
{
	struct records now = { 0 };

	records_find(&now);
	for (size_t i = 0; i < now.count; i++) {
		struct rank_seen *seen = &now.at[i];

		for (size_t j = 0; j < records->count; j++) {
			struct rank_seen *old = &records->at[j];

			if (old->record->rank != seen->record->rank ||
			    strcmp(old->record->run, seen->record->run) != 0)
				continue;
			seen->before = old->record;
			seen->between_s = record_since(seen->record, old->record->read_ns);
			hk_record_free(old->before);
			*old = records->at[--records->count];
			break;
		}
	}
	records_fini(records);
	*records = now;
}
