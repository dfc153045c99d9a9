/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - a test is a function in a small program.
 *
 *	TEST(ring_of_one) { CHECK_EQ(hk_plan_lanes(plan, 0), 1); }
 *
 * CTest runs every test in a process of its own (`PROGRAM NAME`), with a time
 * limit; a program run by hand without a name runs all its tests, one after
 * the other, in children. Status 0: passed, 1: failed, 77: skipped.
 */
#ifndef HK_TEST_HARNESS_H
#define HK_TEST_HARNESS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
};

void test_register(struct test_case *test);
void test_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));

#define TEST(id) \
	static void test_run_##id(void); \
	static struct test_case test_case_##id = { #id, test_run_##id, NULL }; \
	__attribute__((constructor)) static void test_add_##id(void) \
	{ \
		test_register(&test_case_##id); \
	} \
	static void test_run_##id(void)

/* Each prints what it saw and ends the test. */
#define CHECK(cond) \
	((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "not true: %s", #cond))

#define CHECK_EQ(a, b) \
	do { \
		long long check_a = (long long)(a), check_b = (long long)(b); \
		if (check_a != check_b) \
			test_fail(__FILE__, __LINE__, "%s is %lld, %s is %lld", #a, check_a, #b, \
				  check_b); \
	} while (0)

#define CHECK_STR(a, b) \
	do { \
		const char *check_a = (a), *check_b = (b); \
		if (strcmp(check_a, check_b) != 0) \
			test_fail(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #a, check_a, \
				  check_b); \
	} while (0)

/* haystack holds needle. */
#define CHECK_HAS(haystack, needle) \
	do { \
		const char *check_a = (haystack), *check_b = (needle); \
		if (!strstr(check_a, check_b)) \
			test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", check_a, \
				  check_b); \
	} while (0)

#define SKIP(reason) \
	do { \
		printf("skipped: %s\n", reason); \
		exit(77); \
	} while (0)

/* The seed of a random test: HK_TEST_SEED, or the one given; always printed. */
uint64_t test_seed(uint64_t otherwise);
/* The next number of a generator whose state is *seed (splitmix64). */
uint64_t test_random(uint64_t *seed);

#endif
