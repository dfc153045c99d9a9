/* SPDX-License-Identifier: Apache-2.0 */
/* log_test.c - lines that no call can return: where they go, and who may change that. */
#include "base/base.h"
#include "harness.h"

#include <hocket/hocket.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct heard {
	uint32_t lines;
	enum hk_log_level level;
	char line[2048];
};

static void hear(void *ctx, enum hk_log_level level, const char *line)
{
	struct heard *heard = ctx;

	heard->lines++;
	heard->level = level;
	snprintf(heard->line, sizeof(heard->line), "%s", line);
}

static int stderr_was, stderr_file;

static void stderr_begin(void)
{
	stderr_was = dup(STDERR_FILENO);
	stderr_file = memfd_create("stderr", MFD_CLOEXEC);
	CHECK(stderr_was >= 0 && stderr_file >= 0);
	CHECK(dup2(stderr_file, STDERR_FILENO) >= 0);
}

static const char *stderr_end(void)
{
	static char text[4096];

	CHECK(dup2(stderr_was, STDERR_FILENO) >= 0);
	ssize_t len = pread(stderr_file, text, sizeof(text) - 1, 0);
	CHECK(len >= 0);
	text[len] = '\0';
	close(stderr_was);
	close(stderr_file);
	return text;
}

TEST(lines_go_to_the_callback_alone)
{
	struct heard heard = { 0 };

	stderr_begin();
	hk_log_set(hear, &heard);
	hk__log(HK_LOG_WARN, "%u things", 3u);
	CHECK_EQ(heard.lines, 1);
	CHECK_EQ(heard.level, HK_LOG_WARN);
	CHECK_STR(heard.line, "3 things");
	hk__log(HK_LOG_DEBUG, "more");
	CHECK_EQ(heard.lines, 2);
	CHECK_EQ(heard.level, HK_LOG_DEBUG);
	CHECK_EQ(setenv("HOCKET_LOG", "off", 1), 0);
	hk__log(HK_LOG_ERROR, "that is of standard error");
	CHECK_EQ(heard.lines, 3);
	CHECK_STR(stderr_end(), "");
}

TEST(standard_error_again)
{
	struct heard heard = { 0 };

	CHECK_EQ(unsetenv("HOCKET_LOG"), 0);
	stderr_begin();
	hk_log_set(hear, &heard);
	hk_log_set(NULL, NULL);
	hk__log(HK_LOG_ERROR, "one");
	hk__log(HK_LOG_INFO, "two");
	hk__log(HK_LOG_DEBUG, "three");
	CHECK_EQ(setenv("HOCKET_LOG", "off", 1), 0);
	hk__log(HK_LOG_ERROR, "four");
	CHECK_STR(stderr_end(), "hocket: one\nhocket: two\n");
	CHECK_EQ(heard.lines, 0);
}

TEST(long_lines_are_cut)
{
	struct heard heard = { 0 };
	char text[3000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	hk_log_set(hear, &heard);
	hk__log(HK_LOG_WARN, "%s", text);
	CHECK_EQ(strlen(heard.line), 1023);
	hk_log_set(NULL, NULL);
	CHECK_EQ(unsetenv("HOCKET_LOG"), 0);
	stderr_begin();
	hk__log(HK_LOG_WARN, "%s", text);
	const char *line = stderr_end();
	CHECK_EQ(strlen(line), sizeof("hocket: \n") - 1 + 1023);
	CHECK_EQ(line[strlen(line) - 1], '\n');
}

TEST(groups_have_something_to_say)
{
	struct heard heard = { 0 };
	struct hk_group *group;

	CHECK_EQ(setenv("HOCKET_TRACE", "/dev/null/nowhere", 1), 0);
	hk_log_set(hear, &heard);
	CHECK_EQ(hk_group_create(NULL, NULL, &group), HK_OK);
	CHECK_EQ(heard.lines, 2);
	CHECK_EQ(heard.level, HK_LOG_DEBUG);
	CHECK_HAS(heard.line, "rank 0 of 1: ");
	hk_group_free(group);
}

/* ---- threads ---- */

struct listener {
	_Atomic bool gone; /* nobody may call it any more */
	_Atomic uint64_t lines, late;
};

static void listen_to(void *ctx, enum hk_log_level level, const char *line)
{
	struct listener *listener = ctx;

	(void)level;
	(void)line;
	atomic_fetch_add(atomic_load(&listener->gone) ? &listener->late : &listener->lines, 1);
}

static _Atomic bool stop;

static void *talk(void *arg)
{
	while (!atomic_load(&stop))
		hk__log(HK_LOG_DEBUG, "%p talks", arg);
	return NULL;
}

/* One that was replaced is not called again, whoever logs meanwhile. */
TEST(a_callback_that_was_replaced_is_over)
{
	static struct listener listeners[500];
	pthread_t threads[3];

	for (uint32_t t = 0; t < 3; t++)
		CHECK_EQ(pthread_create(&threads[t], NULL, talk, NULL), 0);
	for (uint32_t i = 0; i < 500; i++) {
		hk_log_set(listen_to, &listeners[i]);
		if (i > 0)
			atomic_store(&listeners[i - 1].gone, true);
	}
	while (!atomic_load(&listeners[499].lines))
		usleep(1000);
	atomic_store(&stop, true);
	for (uint32_t t = 0; t < 3; t++)
		CHECK_EQ(pthread_join(threads[t], NULL), 0);
	for (uint32_t i = 0; i < 500; i++)
		CHECK_EQ(atomic_load(&listeners[i].late), 0);
}

/* A child may set another, although a thread that it lacks was in a callback. */
static int gate[2];

static void block(void *ctx, enum hk_log_level level, const char *line)
{
	char byte;

	(void)level;
	(void)line;
	atomic_store((_Atomic bool *)ctx, true);
	(void)!read(gate[0], &byte, 1);
}

static void *say_once(void *arg)
{
	hk__log(HK_LOG_INFO, "once");
	return arg;
}

TEST(fork_while_a_callback_runs)
{
	_Atomic bool inside = false;
	pthread_t thread;
	int status;

	CHECK_EQ(pipe2(gate, O_CLOEXEC), 0);
	hk_log_set(block, (void *)&inside);
	CHECK_EQ(pthread_create(&thread, NULL, say_once, NULL), 0);
	while (!atomic_load(&inside))
		usleep(1000);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct heard heard = { 0 };

		alarm(30);
		hk_log_set(hear, &heard);
		hk__log(HK_LOG_INFO, "in a child");
		_exit(heard.lines == 1 ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(write(gate[1], "x", 1), 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}
