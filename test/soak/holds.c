/* SPDX-License-Identifier: Apache-2.0 */
/* holds.c - what a process holds, as /proc says. */
#include "soak/soak.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t heap_bytes;

static void *heap_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	(void)ctx;
	__atomic_fetch_add(&heap_bytes, size_new - size_old, __ATOMIC_RELAXED);
	if (size_new)
		return realloc(ptr, size_new);
	free(ptr);
	return NULL;
}

const struct hk_alloc holds_alloc = { heap_resize, NULL };

static uint64_t status_kib(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

static void holds_status(struct holds *holds)
{
	FILE *file = fopen("/proc/self/status", "re");
	char text[4096];
	size_t len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	text[len] = '\0';
	if (file)
		fclose(file);
	holds->rss_kib = status_kib(text, "\nVmRSS:");
	holds->mapped_kib = status_kib(text, "\nVmSize:");
	holds->threads = (int)status_kib(text, "\nThreads:");
}

static void holds_fds(struct holds *holds)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	while (folder && (entry = readdir(folder)) != NULL) {
		char link[64] = "";
		struct stat stat;

		if (entry->d_name[0] == '.')
			continue;
		holds->fds++;
		if (readlinkat(dirfd(folder), entry->d_name, link, sizeof(link) - 1) > 0 &&
		    strncmp(link, "/memfd:", 7) == 0 &&
		    fstatat(dirfd(folder), entry->d_name, &stat, 0) == 0)
			holds->shared_kib += (uint64_t)stat.st_blocks / 2;
	}
	holds->fds--; /* the folder itself */
	if (folder)
		closedir(folder);
}

static void holds_maps(struct holds *holds)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		holds->maps += strstr(line, "memfd:") != NULL;
	if (maps)
		fclose(maps);
}

struct holds holds_now(void)
{
	struct holds holds = { 0 };

	holds.heap_kib = (__atomic_load_n(&heap_bytes, __ATOMIC_RELAXED) + 1023) / 1024;

	holds_status(&holds);
	holds_fds(&holds);
	holds_maps(&holds);
	return holds;
}
