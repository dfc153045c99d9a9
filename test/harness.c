/* SPDX-License-Identifier: Apache-2.0 */
/* harness.c - finds and runs the tests of a program. */
#include "harness.h"

#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

static struct test_case *tests;

void test_register(struct test_case *test)
{
	struct test_case **at = &tests;

	while (*at && strcmp((*at)->name, test->name) < 0)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

uint64_t test_seed(uint64_t otherwise)
{
	const char *given = getenv("HK_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : otherwise;

	printf("seed %" PRIu64 " (repeat with HK_TEST_SEED=%" PRIu64 ")\n", seed, seed);
	return seed;
}

uint64_t test_random(uint64_t *seed)
{
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static int run_in_child(const struct test_case *test)
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		test_fail(__FILE__, __LINE__, "fork: %m");
	if (pid == 0) {
		test->run();
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		test_fail(__FILE__, __LINE__, "waitpid: %m");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_all(void)
{
	int passed = 0, failed = 0, skipped = 0;

	for (struct test_case *test = tests; test; test = test->next) {
		int status = run_in_child(test);

		printf("%-7s %s\n",
		       status == 0    ? "ok"
		       : status == 77 ? "skipped"
				      : "FAILED",
		       test->name);
		passed += status == 0;
		skipped += status == 77;
		failed += status != 0 && status != 77;
	}
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed || passed + skipped == 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
	/* Groups fail here all the time: that leaves no files, unless a test wants them. */
	setenv("HOCKET_RECORD", "live", 0);
	if (argc < 2)
		return run_all();
	if (argc > 2) {
		fprintf(stderr, "%s: one test at a time, or all of them\n", argv[0]);
		return 1;
	}
	for (struct test_case *test = tests; test; test = test->next) {
		if (strcmp(test->name, argv[1]) == 0) {
			test->run();
			return 0;
		}
	}
	fprintf(stderr, "%s: no test named %s\n", argv[0], argv[1]);
	return 1;
}
