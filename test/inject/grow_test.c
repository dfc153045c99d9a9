/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow_test.c - the N-th allocation of a member, or of the newcomer, fails while
 * a group grows. The members get the same status, and a reason, save where there
 * was no memory to agree; the old group is as it was on both, or has failed on
 * both, if it was in there; and nothing leaks.
 *
 * HK_TEST_INJECT=full takes every allocation; else some are tried, as who is in
 * vain waited for takes seconds.
 */
#include "group/boot_ranks.h"
#include "inject/memory.h"

#include <hocket/group.h>

#define MEMBERS 2u
#define PARTS 3u /* and a newcomer */
#define SAMPLES 3u

struct part {
	uint32_t rank;
	struct hk_group_opts opts;
	struct memory memory;
	uint64_t fail_at;
	enum hk_status status, old;
	struct hk_why why;
	pthread_t thread;
};

static void newcomer_run(struct part *part)
{
	struct hk_group *group = NULL;

	memory_arm(&part->memory, part->fail_at);
	part->status = hk_group_create(&part->opts, &part->why, &group);
	memory_disarm(&part->memory);
	CHECK((part->status == HK_OK) == (group != NULL));
	hk_group_free(group);
}

static void part_grow(struct part *part, struct hk_group *group)
{
	struct hk_grow_opts opts = HK_GROW_OPTS_INIT;
	struct hk_group *grown = NULL;

	opts.timeout_ns = 4 * SECOND;
	memory_arm(&part->memory, part->fail_at);
	part->status = hk_group_grow(group, PARTS, &opts, &grown);
	memory_disarm(&part->memory);
	CHECK((part->status == HK_OK) == (grown != NULL));
	(void)snprintf(part->why.text, sizeof(part->why.text), "%s", hk_group_why(group));
	hk_group_free(grown);
}

static void *part_run(void *ctx)
{
	struct part *part = ctx;
	struct hk_group *group;

	part->opts.alloc = &part->memory.alloc;
	if (part->rank == HK_NONE) {
		newcomer_run(part);
		return NULL;
	}
	if (hk_group_create(&part->opts, &part->why, &group) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", part->why.text);
	part_grow(part, group);
	part->old = hk_barrier(group, NULL);
	hk_group_free(group);
	return NULL;
}

static void parts_check(const struct part *parts, uint32_t who)
{
	const struct part *failed = &parts[who];

	bool same = parts[0].status == parts[1].status &&
		    (parts[0].old == HK_OK) == (parts[1].old == HK_OK);
	if (!same && !strstr(failed->why.text, "no memory to agree"))
		test_fail(__FILE__, __LINE__,
			  "allocation %" PRIu64 " of part %u: %s: %s, but %s: %s", failed->fail_at,
			  who, hk_status_name(parts[0].status), parts[0].why.text,
			  hk_status_name(parts[1].status), parts[1].why.text);
	CHECK(parts[0].old == HK_OK || (who < MEMBERS && failed->memory.hit));
	for (uint32_t i = 0; i < PARTS; i++) {
		const struct part *part = &parts[i];

		if (part->status != HK_OK && !failed->memory.hit)
			test_fail(__FILE__, __LINE__, "part %u: %s", i, part->why.text);
		if (part->status != HK_OK && !part->why.text[0])
			test_fail(__FILE__, __LINE__, "part %u: no reason", i);
		CHECK_EQ(atomic_load(&part->memory.blocks), 0);
	}
}

/* Whether the allocation was reached. */
static bool parts_run(uint32_t who, uint64_t fail_at, const char *net, uint64_t *calls)
{
	struct part parts[PARTS];
	char address[64];

	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port_free("127.0.0.1"));
	for (uint32_t i = 0; i < PARTS; i++) {
		struct part *part = &parts[i];

		*part = (struct part){ .rank = i < MEMBERS ? i : HK_NONE,
				       .opts = HK_GROUP_OPTS_INIT,
				       .fail_at = i == who ? fail_at : 0 };
		memory_init(&part->memory);
		part->opts.address = address;
		part->opts.rank = part->rank;
		part->opts.nranks = i < MEMBERS ? MEMBERS : 0;
		part->opts.key = "memory";
		part->opts.net = net;
		/* A newcomer that nobody takes in any more gives up. */
		part->opts.timeout_ns = i < MEMBERS ? 20 * SECOND : 4 * SECOND;
		CHECK_EQ(pthread_create(&part->thread, NULL, part_run, part), 0);
	}
	for (uint32_t i = 0; i < PARTS; i++)
		CHECK_EQ(pthread_join(parts[i].thread, NULL), 0);
	parts_check(parts, who);
	*calls = parts[who].memory.calls;
	return parts[who].memory.hit;
}

static void parts_try(const char *net)
{
	const char *which = getenv("HK_TEST_INJECT");
	bool fully = which && strcmp(which, "full") == 0;
	unsigned before = fds_open();

	for (uint32_t who = 0; who < PARTS; who++) {
		uint64_t calls, ignored, count = 0;

		CHECK(!parts_run(who, UINT64_MAX, net, &calls)); /* counts */
		CHECK(calls > 0);
		for (uint64_t at = 1; at <= calls; at += fully ? 1 : calls / SAMPLES + 1)
			count += parts_run(who, at, net, &ignored);
		printf("%s: %" PRIu64 " of %" PRIu64 " allocations of part %u failed\n", net, count,
		       calls, who);
		CHECK(count > 0);
		CHECK_EQ(fds_open(), before);
	}
}

TEST(growing_over_shm)
{
	parts_try("shm");
}

TEST(growing_over_tcp)
{
	parts_try("tcp");
}
