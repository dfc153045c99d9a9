/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_test.c - the N-th allocation of a rank fails, N = 1, 2, ... until none
 * does any more: while groups are made, and in everything they can be asked for.
 * Each time the rank gets a status and a reason; the others end, long before
 * their deadline, because it gives the group up; and nothing leaks.
 *
 * HK_TEST_INJECT=full (make test-inject) takes every rank in turn, on every net;
 * else one rank fails, and long deeds are sampled.
 */
#include "group/world.h"
#include "harness.h"
#include "inject/deed.h"
#include "inject/memory.h"

#include <dirent.h>
#include <stdarg.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define RANKS 3u
#define TIMEOUT (60 * SECOND) /* which nobody needs, however busy the machine is */
/* An eighth of it is waited for who fails, and is how late others may be. */
#define HEAL_TIMEOUT (8 * SECOND)

static bool inject_fully(void)
{
	const char *which = getenv("HK_TEST_INJECT");

	return which && strcmp(which, "full") == 0;
}

static unsigned fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* ---- a deed ---- */

struct trial {
	const struct deed *deed;
	const char *net;
	uint32_t who;
	uint64_t fail_at;
	struct memory memory;
	bool reached;
};

struct member {
	struct trial *trial;
	struct hk_group *group;
	uint32_t rank;
	enum hk_status status;
	struct hk_why why;
};

static void *member_run(void *ctx)
{
	struct member *member = ctx;
	struct trial *trial = member->trial;

	/* First all meet, so that who gives up can tell; it may be through before others are. */
	member->status = hk_barrier(member->group, NULL);
	if (member->rank == trial->who) {
		CHECK_EQ(member->status, HK_OK);
		memory_arm(&trial->memory, trial->fail_at);
	}
	if (member->status == HK_OK)
		member->status = trial->deed->run(member->group, trial->deed, &member->why);
	if (member->rank == trial->who)
		memory_disarm(&trial->memory);
	if (!member->why.text[0])
		snprintf(member->why.text, HK_WHY_MAX, "%s", hk_group_why(member->group));
	if (member->status != HK_OK)
		CHECK_EQ(hk_group_revoke(member->group), HK_OK);
	hk_group_free(member->group);
	return NULL;
}

__attribute__((format(printf, 2, 3), noreturn)) static void trial_fail(const struct trial *trial,
								       const char *fmt, ...)
{
	char text[1200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	test_fail(__FILE__, __LINE__, "%s%s%s over %s, allocation %" PRIu64 " of rank %u: %s",
		  trial->deed->name, trial->deed->algo ? " by " : "",
		  trial->deed->algo ? trial->deed->algo : "", trial->net, trial->fail_at,
		  trial->who, text);
}

static void member_check(const struct trial *trial, const struct member *member)
{
	enum hk_status status = member->status;
	bool own = member->rank == trial->who;

	if (status != HK_OK && !member->why.text[0])
		trial_fail(trial, "rank %u: %s without a reason", member->rank,
			   hk_status_name(status));
	/* Who cannot talk any more for lack of memory cannot reach the others. */
	if (own && status != HK_OK && status != HK_ENOMEM && status != HK_EPEER)
		trial_fail(trial, "it got %s: %s", hk_status_name(status), member->why.text);
	if (!own && status != HK_OK && status != HK_EREVOKED && status != HK_EPEER)
		trial_fail(trial, "rank %u got %s: %s", member->rank, hk_status_name(status),
			   member->why.text);
	if (!trial->memory.hit && status != HK_OK)
		trial_fail(trial, "nothing failed, but rank %u got %s: %s", member->rank,
			   hk_status_name(status), member->why.text);
}

/* Whether the group can do this at all. */
static bool trial_run(struct trial *trial)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *groups[RANKS];
	struct member members[RANKS];
	pthread_t threads[RANKS];
	unsigned before = fds_open();
	struct hk_why why;

	memory_init(&trial->memory);
	opts.alloc = &trial->memory.alloc;
	opts.net = trial->net;
	opts.timeout_ns = trial->deed->heals ? HEAL_TIMEOUT : TIMEOUT;
	CHECK_EQ(hk_group_threads(RANKS, &opts, &why, groups), HK_OK);
	for (uint32_t r = 0; r < RANKS; r++) {
		members[r] = (struct member){ .trial = trial, .group = groups[r], .rank = r };
		CHECK_EQ(pthread_create(&threads[r], NULL, member_run, &members[r]), 0);
	}
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_EQ(pthread_join(threads[r], NULL), 0);
	if (!trial->fail_at && members[0].status == HK_EINVAL)
		return false;
	trial->reached = trial->memory.hit;
	for (uint32_t r = 0; r < RANKS; r++)
		member_check(trial, &members[r]);
	if (atomic_load(&trial->memory.blocks) != 0)
		trial_fail(trial, "%ld blocks are left", atomic_load(&trial->memory.blocks));
	if (fds_open() != before)
		trial_fail(trial, "%u descriptors are open, %u were", fds_open(), before);
	return true;
}

/* All N of a deed, or those below `dense` and every stride-th. */
static uint64_t deed_try(const struct deed *deed, const char *net, uint32_t who, uint64_t dense,
			 uint64_t stride)
{
	struct trial trial = { .deed = deed, .net = net, .who = who };
	uint64_t count = 0;

	if (!trial_run(&trial))
		return 0;
	for (uint64_t at = 1;; at += at < dense ? 1 : stride) {
		trial.fail_at = at;
		if (!trial_run(&trial))
			trial_fail(&trial, "it can be done no more");
		if (!trial.reached)
			return count;
		count++;
	}
}

static void deeds_try(const char *net, uint64_t dense, uint64_t stride)
{
	bool full = inject_fully();
	uint64_t count = 0;
	struct deed deed;

	for (uint32_t i = 0; deed_get(i, &deed); i++) {
		for (uint32_t who = 0; who < (full ? RANKS : 1); who++)
			count += deed_try(&deed, net, full ? who : i % RANKS, dense,
					  full ? 1 : stride);
	}
	printf("%s: %" PRIu64 " allocations failed\n", net, count);
	CHECK(count > 0);
}

TEST(deeds_over_shm)
{
	deeds_try("shm", 40, 17);
}

TEST(deeds_over_tcp)
{
	deeds_try("tcp", 6, 67);
}

/* ---- a group of threads ---- */

static void threads_try(const char *net)
{
	unsigned before = fds_open();
	uint64_t at = 0;
	struct memory memory;

	do {
		struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
		struct hk_group *groups[RANKS];
		struct hk_why why = { "" };

		memory_init(&memory);
		opts.alloc = &memory.alloc;
		opts.net = net;
		memory_arm(&memory, ++at);
		enum hk_status status = hk_group_threads(RANKS, &opts, &why, groups);
		memory_disarm(&memory);
		if (status != HK_OK) {
			CHECK_EQ(status, HK_ENOMEM);
			CHECK(memory.hit && why.text[0]);
		}
		for (uint32_t r = 0; r < RANKS && status == HK_OK; r++) {
			CHECK_EQ(hk_group_revoke(groups[r]), HK_OK);
			hk_group_free(groups[r]);
		}
		CHECK_EQ(atomic_load(&memory.blocks), 0);
		CHECK_EQ(fds_open(), before);
	} while (memory.hit);
	printf("%s: %" PRIu64 " allocations failed\n", net, at - 1);
	CHECK(at > 10);
}

TEST(threads_over_shm)
{
	threads_try("shm");
}

TEST(threads_over_tcp)
{
	threads_try("tcp");
}

/* ---- a group that is joined ---- */

struct joiner {
	struct hk_group_opts opts;
	struct memory memory;
	uint64_t fail_at;
	enum hk_status status;
	struct hk_why why;
};

static void *joiner_run(void *ctx)
{
	struct joiner *joiner = ctx;
	struct hk_group *group = NULL;

	joiner->opts.alloc = &joiner->memory.alloc;
	memory_arm(&joiner->memory, joiner->fail_at);
	joiner->status = hk_group_create(&joiner->opts, &joiner->why, &group);
	memory_disarm(&joiner->memory);
	CHECK((joiner->status == HK_OK) == (group != NULL));
	if (group && hk_group_revoke(group) == HK_OK)
		hk_group_free(group);
	return NULL;
}

/* Both ranks return; whether the allocation was reached. */
static bool joiners_run(uint32_t who, uint64_t fail_at, bool hosts)
{
	struct joiner joiners[2];
	pthread_t threads[2];
	char address[32];

	/* Nobody else in this test listens, and jobs are told apart by their key. */
	snprintf(address, sizeof(address), "127.0.0.1:%u",
		 (unsigned)(20000 + (uint64_t)getpid() * 7 % 12000 + fail_at % 100));
	for (uint32_t r = 0; r < 2; r++) {
		joiners[r] = (struct joiner){ .opts = HK_GROUP_OPTS_INIT,
					      .fail_at = r == who ? fail_at : 0 };
		memory_init(&joiners[r].memory);
		joiners[r].opts.address = address;
		joiners[r].opts.rank = r;
		joiners[r].opts.nranks = 2;
		joiners[r].opts.key = "memory";
		joiners[r].opts.host = hosts && r ? "beta" : "alpha";
		joiners[r].opts.timeout_ns = SECOND;
		CHECK_EQ(pthread_create(&threads[r], NULL, joiner_run, &joiners[r]), 0);
	}
	for (uint32_t r = 0; r < 2; r++)
		CHECK_EQ(pthread_join(threads[r], NULL), 0);
	for (uint32_t r = 0; r < 2; r++) {
		if (joiners[r].status != HK_OK && !joiners[r].why.text[0])
			test_fail(__FILE__, __LINE__,
				  "allocation %" PRIu64 " of rank %u: rank %u "
				  "got %s without a reason",
				  fail_at, who, r, hk_status_name(joiners[r].status));
		if (joiners[r].status != HK_OK && !joiners[who].memory.hit)
			test_fail(__FILE__, __LINE__, "rank %u cannot join: %s", r,
				  joiners[r].why.text);
		if (atomic_load(&joiners[r].memory.blocks))
			test_fail(__FILE__, __LINE__,
				  "allocation %" PRIu64 " of rank %u: rank %u "
				  "has %ld blocks left",
				  fail_at, who, r, atomic_load(&joiners[r].memory.blocks));
	}
	if (joiners[who].memory.hit && joiners[who].status != HK_OK &&
	    joiners[who].status != HK_ENOMEM && joiners[who].status != HK_EPEER)
		test_fail(__FILE__, __LINE__, "allocation %" PRIu64 " of rank %u: %s: %s", fail_at,
			  who, hk_status_name(joiners[who].status), joiners[who].why.text);
	return joiners[who].memory.hit;
}

static void joiners_try(bool hosts)
{
	unsigned before = fds_open();
	uint64_t count = 0;

	CHECK_EQ(setenv("HOCKET_LOG", "off", 1), 0);

	for (uint32_t who = 0; who < 2; who++) {
		for (uint64_t at = 1; joiners_run(who, at, hosts); at += inject_fully() ? 1 : 29)
			count++;
		CHECK_EQ(fds_open(), before);
	}
	printf("%s: %" PRIu64 " allocations failed\n", hosts ? "two hosts" : "one host", count);
	CHECK(count > 0);
}

TEST(joining_on_one_host)
{
	joiners_try(false);
}

TEST(joining_on_two_hosts)
{
	joiners_try(true);
}
