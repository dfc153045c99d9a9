/* SPDX-License-Identifier: Apache-2.0 */
/* fork_test.c - descriptors that are noted, and children that do not keep them. */
#include "base/fork.h"
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define FORKS 200

static uint32_t fds_count(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t count = 0;

	CHECK(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void child_run(void (*run)(const void *ctx), const void *ctx)
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		run(ctx);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- one ---- */

struct pair {
	int noted, plain;
	uint32_t depth;
};

static void child_looks(const void *ctx)
{
	const struct pair *pair = ctx;

	CHECK_EQ(fcntl(pair->noted, F_GETFD), -1);
	CHECK(fcntl(pair->plain, F_GETFD) >= 0);
	CHECK_EQ(hk__fork_depth, pair->depth + 1);
}

TEST(a_child_keeps_what_is_not_noted)
{
	struct pair pair = { .plain = eventfd(0, EFD_CLOEXEC), .depth = hk__fork_depth };

	pair.noted = hk__fd_open(eventfd(0, EFD_CLOEXEC));
	CHECK(pair.noted >= 0 && pair.plain >= 0);
	child_run(child_looks, &pair);
	CHECK(fcntl(pair.noted, F_GETFD) >= 0); /* its parent has it still */
	CHECK_EQ(hk__fork_depth, pair.depth);
	hk__fd_close(pair.noted);
	CHECK_EQ(fcntl(pair.noted, F_GETFD), -1);
	close(pair.plain);
}

static void child_has_it(const void *ctx)
{
	CHECK(fcntl(*(const int *)ctx, F_GETFD) >= 0);
}

TEST(a_number_that_is_used_again_is_another_descriptor)
{
	int noted = hk__fd_open(eventfd(0, EFD_CLOEXEC));

	hk__fd_close(noted);
	int plain = eventfd(0, EFD_CLOEXEC);
	CHECK_EQ(plain, noted);
	child_run(child_has_it, &plain);
	close(plain);
}

TEST(what_cannot_be_opened_says_why)
{
	CHECK_EQ(hk__fd_open(open("/no/such/file", O_RDONLY | O_CLOEXEC)), -1);
	CHECK_EQ(errno, ENOENT);
	hk__fd_close(-1);
}

TEST(high_numbers_are_noted_too)
{
	struct rlimit limit;
	struct pair pair = { .plain = eventfd(0, EFD_CLOEXEC), .depth = hk__fork_depth };

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 200000 ? limit.rlim_max : 200000;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	int last = (int)limit.rlim_cur - 1;
	pair.noted = hk__fd_open(fcntl(pair.plain, F_DUPFD_CLOEXEC, last));
	CHECK_EQ(pair.noted, last);
	child_run(child_looks, &pair);
	hk__fd_close(pair.noted);
	close(pair.plain);
}

/* ---- while others open and close ---- */

static _Atomic bool over;

static void *opens_and_closes(void *ctx)
{
	while (!atomic_load(&over)) {
		int fds[4];

		for (int i = 0; i < 4; i++)
			CHECK((fds[i] = hk__fd_open(eventfd(0, EFD_CLOEXEC))) >= 0);
		for (int i = 0; i < 4; i++)
			hk__fd_close(fds[i]);
	}
	return ctx;
}

static void child_counts(const void *ctx)
{
	CHECK_EQ(fds_count(), *(const uint32_t *)ctx);
}

TEST(children_of_a_busy_process_keep_nothing)
{
	uint32_t before = fds_count();
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, opens_and_closes, NULL), 0);
	for (int i = 0; i < FORKS; i++)
		child_run(child_counts, &before);
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(fds_count(), before);
}
