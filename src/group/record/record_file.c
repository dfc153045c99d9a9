/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_file.c - a record becomes a file: whole or not at all, for its user
 * alone, in a directory that nobody else writes to unless the user chose it, by
 * no link, and never over a file of somebody else's.
 */
#include "base/env.h"
#include "group/record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 512

/* Our own directory among those of others: nobody may have put another in its place. */
static enum hk_status dir_open_own(struct hk_why *why, char path_out[PATH_BYTES], int *fd_out)
{
	const char *tmp = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
	struct stat info;

	(void)snprintf(path_out, PATH_BYTES, "%.400s/hocket-%u", tmp && *tmp == '/' ? tmp : "/tmp",
		       (unsigned)geteuid());
	if (mkdir(path_out, 0700) != 0 && errno != EEXIST)
		return hk__why(why, HK_EIO, "cannot make %s: %s", path_out, strerrordesc_np(errno));
	*fd_out = open(path_out, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd_out < 0)
		return hk__why(why, HK_EIO, "cannot open %s: %s", path_out, strerrordesc_np(errno));
	if (fstat(*fd_out, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 022))
		return HK_OK;
	close(*fd_out);
	return hk__why(why, HK_EINVAL, "other users can access %s: set HOCKET_RECORD_DIR",
		       path_out);
}

static enum hk_status dir_open(const char *dir, struct hk_why *why, char path_out[PATH_BYTES],
			       int *fd_out)
{
	const struct hk__env env = { NULL, why };
	struct hk__env_value chosen = { .text = dir };

	if (!dir && hk__env_read(&env, HK__ENV_RECORD_DIR, &chosen) != HK_OK)
		return HK_EINVAL;
	dir = chosen.text;
	if (!dir || !*dir)
		return dir_open_own(why, path_out, fd_out);
	if (strlen(dir) >= PATH_BYTES - 64)
		return hk__why(why, HK_EINVAL, "the name of the directory is too long");
	(void)snprintf(path_out, PATH_BYTES, "%s", dir);
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return hk__why(why, HK_EIO, "cannot make %s: %s", dir, strerrordesc_np(errno));
	*fd_out = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd_out < 0)
		return hk__why(why, HK_EIO, "cannot open %s: %s", dir, strerrordesc_np(errno));
	return HK_OK;
}

static enum hk_status file_write(const struct hk_record *record, int dir, const char *name,
				 struct hk_why *why)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!file) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return hk__why(why, HK_EIO, "cannot make %s: %s", name, strerrordesc_np(error));
	}
	enum hk_status status = hk_record_print_json(record, file);
	if (fclose(file) != 0 || status != HK_OK)
		return hk__why(why, HK_EIO, "cannot write %s: %s", name, strerrordesc_np(errno));
	return HK_OK;
}

/* Whether what has this name, if anything does, is a file of ours. */
static bool file_is_own(int dir, const char *name)
{
	struct stat info;

	if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	return S_ISREG(info.st_mode) && info.st_uid == geteuid();
}

/* Under its own name, at once. */
static enum hk_status file_place(int dir, const char *from, const char *name, bool again,
				 struct hk_why *why)
{
	if (!again && linkat(dir, from, dir, name, 0) != 0 && errno != EEXIST)
		return hk__why(why, HK_EIO, "cannot make %s: %s", name, strerrordesc_np(errno));
	if (!again)
		return HK_OK;
	if (!file_is_own(dir, name))
		return hk__why(why, HK_EINVAL, "%s belongs to another user", name);
	if (renameat(dir, from, dir, name) != 0)
		return hk__why(why, HK_EIO, "cannot make %s: %s", name, strerrordesc_np(errno));
	return HK_OK;
}

/* The name of a run, as part of a file's. */
static bool run_is_plain(const char *run)
{
	return *run && run[strspn(run, "0123456789abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

enum hk_status hk_record_save(const struct hk_record *record, const char *dir, bool again,
			      struct hk_why *why, char *path_out, size_t path_size)
{
	char path[PATH_BYTES], name[64], part[96];
	int fd = -1;

	if (!record || !run_is_plain(record->run))
		return hk__why(why, HK_EINVAL, "the record names no run");
	enum hk_status status = dir_open(dir, why, path, &fd);
	if (status != HK_OK)
		return status;
	(void)snprintf(name, sizeof(name), "%.24s-rank-%u.json", record->run, record->rank);
	(void)snprintf(part, sizeof(part), ".%s.%d.%u", name, (int)getpid(), record->rank);
	(void)unlinkat(fd, part, 0); /* of a process that had the same number, and died */
	status = file_write(record, fd, part, why);
	if (status == HK_OK)
		status = file_place(fd, part, name, again, why);
	(void)unlinkat(fd, part, 0); /* gone already, where it was renamed */
	close(fd);
	if (status == HK_OK && path_out && path_size)
		(void)snprintf(path_out, path_size, "%.400s/%s", path, name);
	return status;
}
