/* SPDX-License-Identifier: Apache-2.0 */
/* records_read.c - the files that ranks have left. */
#include "records.h"
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (64u << 20)

/* All of a file; NULL and errno where it cannot be read. Owned. */
static char *file_read(const char *path, size_t *len_out)
{
	struct stat info;
	char *text = NULL;
	size_t len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > FILE_BYTES_MAX) {
		close(fd);
		errno = EFBIG;
		return NULL;
	}
	for (;;) {
		text = run_grow(text, len + RUN_CHUNK, 1);
		ssize_t got = read(fd, text + len, RUN_CHUNK);
		if (got <= 0) {
			close(fd);
			break;
		}
		len += (size_t)got;
	}
	*len_out = len;
	return text;
}

static bool file_take(struct records *records, const char *command, const char *path)
{
	struct rank_seen seen = { 0 };
	struct hk_why why;
	size_t len;
	char *text = file_read(path, &len);

	if (!text) {
		cli_wrong(command, "%s: %s; skipped", path,
			  errno == EFBIG ? "no file, or too large" : strerror(errno));
		return false;
	}
	enum hk_status status = hk_record_parse(text, len, NULL, &why, &seen.record);
	free(text);
	if (status != HK_OK) {
		cli_wrong(command, "%s: %s; skipped", path, why.text);
		return false;
	}
	seen.pid = (pid_t)seen.record->pid;
	seen.path = run_text("%s", path);
	records_add(records, &seen);
	return true;
}

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files that have the name of a record, in the order of their names. */
static size_t dir_take(struct records *records, const char *command, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char **names = NULL;
	size_t count = 0, taken = 0;

	if (!dir) {
		cli_wrong(command, "%s: %s; skipped", path, strerror(errno));
		return 0;
	}
	while ((entry = readdir(dir)) != NULL) {
		size_t len = strlen(entry->d_name);

		if (entry->d_name[0] == '.' || len < 5 ||
		    strcmp(entry->d_name + len - 5, ".json") != 0)
			continue;
		names = run_grow(names, count + 1, sizeof(*names));
		names[count++] = run_text("%s/%s", path, entry->d_name);
	}
	closedir(dir);
	if (count)
		qsort(names, count, sizeof(*names), name_compare);
	for (size_t i = 0; i < count; i++) {
		taken += file_take(records, command, names[i]);
		free(names[i]);
	}
	free(names);
	if (count == 0)
		cli_wrong(command, "%s: no files of records in this directory", path);
	return taken;
}

size_t records_read(struct records *records, const char *command, char *const *paths)
{
	struct stat info;
	size_t taken = 0;

	for (; *paths; paths++) {
		if (stat(*paths, &info) == 0 && S_ISDIR(info.st_mode))
			taken += dir_take(records, command, *paths);
		else
			taken += file_take(records, command, *paths);
	}
	return taken;
}
