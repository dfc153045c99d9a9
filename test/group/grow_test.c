/* SPDX-License-Identifier: Apache-2.0 */
/* grow_test.c - new ranks in a running group: who comes, who does not, who must not. */
#include "group/boot_ranks.h"
#include "group/cast.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* What parts tell each other. */
struct notes {
	_Atomic uint32_t done;	/* steps of the test */
	_Atomic uint32_t ready; /* parts that are about to wait */
	char address[64];
};

static enum hk_status grow_for(struct hk_group *group, uint32_t nranks, uint64_t timeout_ns,
			       struct hk_group **grown)
{
	struct hk_grow_opts opts = HK_GROW_OPTS_INIT;

	opts.timeout_ns = timeout_ns;
	return hk_group_grow(group, nranks, &opts, grown);
}

/* ---- as it should be ---- */

/* Has become a rank behind those that were there. */
static void newcomer(uint32_t least, void *shared)
{
	struct hk_group *group = cast_join(HK_NONE, 0);

	(void)shared;
	CHECK(hk_group_rank(group) >= least);
	cast_sum(group);
	hk_group_free(group);
}

/* Both groups are of use, until the old one is freed. */
static void member_grows(uint32_t rank, void *shared)
{
	struct hk_group *group = cast_join(rank, 3), *grown = cast_grow(group, 5);

	(void)shared;
	cast_sum(group);
	cast_sum(grown);
	cast_sum(group);
	hk_group_free(group);
	hk_group_free(grown);
}

TEST(three_become_five)
{
	for (uint32_t s = 0; s < cast_scenes_count; s++) {
		cast_begin(&cast_scenes[s], sizeof(struct notes));
		for (uint32_t r = 0; r < 3; r++)
			cast_play(member_grows, r);
		for (uint32_t i = 0; i < 2; i++)
			cast_play(newcomer, 3);
		cast_end();
	}
}

/* One becomes two, and both take two more in. */
static void member_grows_twice(uint32_t rank, void *shared)
{
	struct notes *notes = shared;
	struct hk_group *group, *grown;

	if (rank == 0) {
		struct hk_group *alone = cast_join(0, 1);

		group = cast_grow(alone, 2);
		hk_group_free(alone);
	} else {
		group = cast_join(HK_NONE, 0);
	}
	CHECK_EQ(hk_group_rank(group), rank);
	cast_sum(group);
	atomic_fetch_add(&notes->done, 1);
	grown = cast_grow(group, 4);
	cast_sum(grown);
	hk_group_free(group);
	hk_group_free(grown);
}

TEST(one_becomes_two_becomes_four)
{
	for (uint32_t s = 0; s < cast_scenes_count; s++) {
		struct notes *notes = cast_begin(&cast_scenes[s], sizeof(struct notes));

		cast_play(member_grows_twice, 0);
		cast_play(member_grows_twice, 1);
		cast_await(&notes->done, 2);
		cast_play(newcomer, 2);
		cast_play(newcomer, 2);
		cast_end();
	}
}

/* ---- after a loss ---- */

#define RANKS 4u

static void member_survives(uint32_t rank, void *shared)
{
	struct hk_group *group = cast_join(rank, RANKS), *rest, *grown;
	struct notes *notes = shared;
	struct hk_opts opts = HK_OPTS_INIT;

	cast_sum(group);
	atomic_fetch_add(&notes->done, 1);
	if (rank == 1) {
		cast_await(&notes->done, RANKS); /* all have the sum */
		raise(SIGKILL);
	}
	/* An eighth of it is how late one may be on a busy machine, and still be counted. */
	opts.timeout_ns = 64 * SECOND_NS;
	CHECK_EQ(hk_group_shrink(group, &opts, &rest), HK_OK);
	hk_group_free(group);
	CHECK_EQ(hk_group_size(rest), RANKS - 1);
	cast_sum(rest);
	grown = cast_grow(rest, RANKS + 1);
	hk_group_free(rest);
	cast_sum(grown);
	hk_group_free(grown);
}

TEST(a_shrunk_group_grows)
{
	for (uint32_t s = 0; s < cast_scenes_count; s++) {
		cast_begin(&cast_scenes[s], sizeof(struct notes));
		for (uint32_t r = 0; r < RANKS; r++)
			cast_play(member_survives, r);
		cast_play(newcomer, RANKS - 1);
		cast_play(newcomer, RANKS - 1);
		cast_wait(1, true);
		cast_end();
	}
}

/* ---- too few, too many ---- */

static void member_lacks(uint32_t rank, void *shared)
{
	struct hk_group *group = cast_join(rank, 2), *grown = group;

	(void)shared;
	CHECK_EQ(grow_for(group, 4, 4 * SECOND_NS, &grown), HK_ETIMEDOUT);
	CHECK(!grown);
	CHECK_HAS(hk_group_why(group), "of 2 newcomers");
	/* The old one is as it was; who was there is still in line. */
	cast_sum(group);
	grown = cast_grow(group, 3);
	cast_sum(grown);
	hk_group_free(grown);
	cast_sum(group);
	hk_group_free(group);
}

TEST(too_few_leave_the_group_as_it_was)
{
	for (uint32_t s = 0; s < cast_scenes_count; s++) {
		cast_begin(&cast_scenes[s], sizeof(struct notes));
		cast_play(member_lacks, 0);
		cast_play(member_lacks, 1);
		cast_play(newcomer, 2);
		cast_end();
	}
}

static void member_has_plenty(uint32_t rank, void *shared)
{
	struct notes *notes = shared;
	struct hk_group *group = cast_join(rank, 2), *grown;

	cast_await(&notes->ready, 3);
	for (uint32_t i = 0; i < 3; i++) {
		grown = cast_grow(group, 3);
		cast_sum(grown);
		hk_group_free(grown);
	}
	hk_group_free(group);
}

static void newcomer_in_line(uint32_t least, void *shared)
{
	atomic_fetch_add(&((struct notes *)shared)->ready, 1);
	newcomer(least, shared);
}

TEST(too_many_wait_in_line)
{
	cast_begin(&cast_scenes[0], sizeof(struct notes));
	cast_play(member_has_plenty, 0);
	cast_play(member_has_plenty, 1);
	for (uint32_t i = 0; i < 3; i++)
		cast_play(newcomer_in_line, 2);
	cast_end();
}

static void newcomer_gives_up(uint32_t as, void *shared)
{
	struct hk_group_opts opts = cast_opts(HK_NONE, 0);
	struct hk_group *group;
	struct hk_why why;

	(void)as;
	(void)shared;
	opts.timeout_ns = SECOND_NS;
	CHECK_EQ(hk_group_create(&opts, &why, &group), HK_ETIMEDOUT);
	CHECK(!group);
	CHECK_HAS(why.text, "not admitted to a group in 1 s");
}

TEST(a_newcomer_gives_up_in_time)
{
	cast_begin(&cast_scenes[0], sizeof(struct notes));
	cast_play(newcomer_gives_up, 0);
	cast_end();
}

/* A newcomer that dies while others are awaited leaves its seat to the next. */
TEST(a_newcomer_that_dies_is_replaced)
{
	struct notes *notes = cast_begin(&cast_scenes[0], sizeof(struct notes));

	for (uint32_t r = 0; r < 3; r++)
		cast_play(member_grows, r);
	uint32_t who = cast_play(newcomer_in_line, 3);
	cast_await(&notes->ready, 1);
	usleep(500000); /* enough to be seated, mostly; right in any case */
	cast_kill(who);
	cast_wait(who, true);
	cast_play(newcomer, 3);
	cast_play(newcomer, 3);
	cast_end();
}

/* ---- who must not come in ---- */

static void member_is_visited(uint32_t rank, void *shared)
{
	struct notes *notes = shared;
	struct hk_group *group = cast_join(rank, 2), *grown;

	atomic_fetch_add(&notes->done, 1);
	grown = cast_grow(group, 3);
	cast_sum(grown);
	hk_group_free(group);
	hk_group_free(grown);
}

/* Waits for a group that it has no part in. */
static void visit(const struct hk_group_opts *opts, enum hk_status expected, const char *text,
		  struct notes *notes)
{
	struct hk_group *group;
	struct hk_why why;

	CHECK_EQ(hk_group_create(opts, &why, &group), expected);
	CHECK_HAS(why.text, text);
	atomic_fetch_add(&notes->ready, 1);
}

static void visitor(uint32_t as, void *shared)
{
	struct hk_group_opts newcomer = cast_opts(HK_NONE, 0), rank = cast_opts(1, 2);

	if (as == 0) {
		newcomer.key = "not the key";
		visit(&newcomer, HK_EDENIED, "HOCKET_KEY", shared);
	} else if (as == 1) {
		visit(&rank, HK_EINVAL, "HOCKET_RANK=new", shared);
	} else {
		newcomer.net = strcmp(newcomer.net, "tcp") == 0 ? "auto" : "tcp";
		visit(&newcomer, HK_EINVAL, "HOCKET_NET", shared);
	}
}

TEST(who_does_not_fit_changes_nothing)
{
	for (uint32_t s = 0; s < cast_scenes_count; s++) {
		struct notes *notes = cast_begin(&cast_scenes[s], sizeof(struct notes));

		cast_play(member_is_visited, 0);
		cast_play(member_is_visited, 1);
		cast_await(&notes->done, 2);
		for (uint32_t i = 0; i < 3; i++)
			cast_play(visitor, i);
		cast_await(&notes->ready, 3);
		cast_play(newcomer, 2);
		cast_end();
	}
}

/* A newcomer that comes when the job starts does not disturb it. */
TEST(a_newcomer_may_come_before_the_members)
{
	cast_begin(&cast_scenes[1], sizeof(struct notes));
	for (uint32_t i = 0; i < 2; i++)
		cast_play(newcomer, 3);
	usleep(100000);
	for (uint32_t r = 0; r < 3; r++)
		cast_play(member_grows, r);
	cast_end();
}

/* ---- members that do not fit each other ---- */

static void member_differs(uint32_t rank, void *shared)
{
	struct hk_group *group = cast_join(rank, 3), *grown;

	(void)shared;
	CHECK_EQ(grow_for(group, 4 + (rank == 2), 20 * SECOND_NS, &grown), HK_EINVAL);
	CHECK_HAS(hk_group_why(group), "rank 2");
	cast_sum(group);
	hk_group_free(group);
}

TEST(members_say_the_same_number)
{
	for (uint32_t s = 0; s < cast_scenes_count; s++) {
		cast_begin(&cast_scenes[s], sizeof(struct notes));
		for (uint32_t r = 0; r < 3; r++)
			cast_play(member_differs, r);
		cast_end();
	}
}

/* Rank 0 has no place to open: all hear of it, and why. */
static void member_has_no_place(uint32_t rank, void *shared)
{
	struct hk_group *group = cast_join(rank, 3), *grown;
	struct hk_grow_opts opts = HK_GROW_OPTS_INIT;

	(void)shared;
	if (rank == 0)
		opts.address = "127.0.0.1";
	CHECK_EQ(hk_group_grow(group, 4, &opts, &grown), HK_EINVAL);
	CHECK_HAS(hk_group_why(group), "host:port");
	cast_sum(group);
	hk_group_free(group);
}

TEST(all_hear_why_there_is_no_place)
{
	cast_begin(&cast_scenes[0], sizeof(struct notes));
	for (uint32_t r = 0; r < 3; r++)
		cast_play(member_has_no_place, r);
	cast_end();
}

/* ---- members that die meanwhile ---- */

/* Each survivor's status, for the test to compare. */
struct fates {
	_Atomic uint32_t begun;
	_Atomic int status[RANKS];
	_Atomic uint64_t took_ns[RANKS];
};

#define GROW_NS (6 * SECOND_NS)

static void member_in_danger(uint32_t rank, void *shared)
{
	struct fates *fates = shared;
	struct hk_group *group = cast_join(rank, RANKS), *grown = NULL;

	cast_sum(group);
	atomic_fetch_add(&fates->begun, 1);
	uint64_t began = hk__now_ns();
	enum hk_status status = grow_for(group, RANKS + 1, GROW_NS, &grown);
	atomic_store(&fates->took_ns[rank], hk__now_ns() - began);
	atomic_store(&fates->status[rank], (int)status);
	if (status != HK_OK)
		CHECK(hk_group_why(group)[0]);
	/* Nobody waits for the dead. */
	if (status == HK_OK)
		CHECK(hk_group_revoke(grown) == HK_OK);
	CHECK(hk_group_revoke(group) == HK_OK);
	hk_group_free(grown);
	hk_group_free(group);
}

static void newcomer_in_danger(uint32_t as, void *shared)
{
	struct hk_group_opts opts = cast_opts(HK_NONE, 0);
	struct hk_group *group = NULL;
	struct hk_why why;

	(void)as;
	(void)shared;
	opts.timeout_ns = 2 * GROW_NS;
	if (hk_group_create(&opts, &why, &group) == HK_OK)
		CHECK(hk_group_revoke(group) == HK_OK);
	hk_group_free(group);
}

/* One of them is killed, any time after all have begun; the rest agree on what came of it. */
static void danger_run(const struct cast_scene *scene, uint64_t *seed, bool comes)
{
	struct fates *fates = cast_begin(scene, sizeof(struct fates));
	uint32_t victim = (uint32_t)(test_random(seed) % RANKS), first = HK_NONE;
	uint32_t delay_us = (uint32_t)(test_random(seed) % (comes ? 20000 : 300000)), guest = 0;

	for (uint32_t r = 0; r < RANKS; r++)
		cast_play(member_in_danger, r);
	if (comes)
		guest = cast_play(newcomer_in_danger, 0);
	cast_await(&fates->begun, RANKS);
	usleep(delay_us);
	cast_kill(victim);
	for (uint32_t r = 0; r < RANKS; r++)
		cast_wait(r, r == victim);
	for (uint32_t r = 0; r < RANKS; r++) {
		if (r == victim)
			continue;
		first = first == HK_NONE ? r : first;
		CHECK_EQ(atomic_load(&fates->status[r]), atomic_load(&fates->status[first]));
		/* Far away: who is slow is not late. */
		CHECK(atomic_load(&fates->took_ns[r]) < GROW_NS + 20 * SECOND_NS);
	}
	printf("%s: rank %u killed after %u us: %s in %.3f s\n", scene->name, victim, delay_us,
	       hk_status_name((enum hk_status)atomic_load(&fates->status[first])),
	       (double)atomic_load(&fates->took_ns[first]) / 1e9);
	if (comes) {
		cast_kill(guest);
		cast_wait(guest, true);
	}
}

TEST(a_member_dies_while_all_wait)
{
	uint64_t seed = test_seed(1);

	for (uint32_t i = 0; i < 6; i++)
		danger_run(&cast_scenes[i % cast_scenes_count], &seed, false);
}

TEST(a_member_dies_while_all_meet)
{
	uint64_t seed = test_seed(2);

	for (uint32_t i = 0; i < 12; i++)
		danger_run(&cast_scenes[i % cast_scenes_count], &seed, true);
}

/* ---- threads, and a port of its own ---- */

static void newcomer_told(uint32_t as, void *shared)
{
	struct notes *notes = shared;
	struct hk_group_opts opts = cast_opts(HK_NONE, 0);
	struct hk_group *group;
	struct hk_why why;

	(void)as;
	cast_await(&notes->ready, 1);
	opts.address = notes->address;
	opts.host = NULL;
	if (hk_group_create(&opts, &why, &group) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	CHECK_EQ(hk_group_rank(group), 2);
	cast_sum(group);
	hk_group_free(group);
}

static void place_told(void *ctx, const char *address)
{
	struct notes *notes = ctx;

	(void)snprintf(notes->address, sizeof(notes->address), "%s", address);
	atomic_store(&notes->ready, 1);
}

struct thread_rank {
	struct hk_group *group;
	struct notes *notes;
	pthread_t thread;
};

static void *thread_grows(void *arg)
{
	struct thread_rank *rank = arg;
	struct hk_grow_opts opts = HK_GROW_OPTS_INIT;
	struct hk_group *grown;

	opts.opened = place_told;
	opts.ctx = rank->notes;
	if (hk_group_grow(rank->group, 3, &opts, &grown) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", hk_group_why(rank->group));
	cast_sum(grown);
	cast_sum(rank->group);
	hk_group_free(rank->group);
	hk_group_free(grown);
	return NULL;
}

static void threads_grow(const struct cast_scene *scene, bool progress)
{
	struct notes *notes = cast_begin(scene, sizeof(*notes));
	struct hk_group_opts opts = cast_opts(0, 0);
	struct hk_group *groups[2];
	struct thread_rank ranks[2];
	struct hk_why why;

	cast_play(newcomer_told, 0);
	opts.address = NULL;
	opts.host = NULL;
	opts.progress = progress;
	if (hk_group_threads(2, &opts, &why, groups) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	for (uint32_t r = 0; r < 2; r++) {
		ranks[r] = (struct thread_rank){ groups[r], notes, 0 };
		CHECK_EQ(pthread_create(&ranks[r].thread, NULL, thread_grows, &ranks[r]), 0);
	}
	for (uint32_t r = 0; r < 2; r++)
		CHECK_EQ(pthread_join(ranks[r].thread, NULL), 0);
	cast_end();
}

TEST(threads_take_a_process_in)
{
	unsigned fds = 0;

	for (uint32_t i = 0; i < 6; i++) {
		threads_grow(&cast_scenes[i % 2], i % 4 > 1);
		/* The first time something may stay open for good. */
		if (i == 1)
			fds = fds_open();
	}
	CHECK_EQ(fds_open(), fds);
}

/* ---- refusals ---- */

TEST(what_cannot_be_meant_is_refused)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_grow_opts grow = HK_GROW_OPTS_INIT;
	struct hk_group *group, *grown = NULL;
	struct hk_why why;

	unsetenv("HOCKET_KEY");
	CHECK_EQ(hk_group_create(NULL, &why, &group), HK_OK);
	CHECK_EQ(hk_group_grow(NULL, 2, NULL, &grown), HK_EINVAL);
	CHECK_EQ(hk_group_grow(group, 2, NULL, NULL), HK_EINVAL);
	CHECK_EQ(hk_group_grow(group, 1, NULL, &grown), HK_EINVAL);
	CHECK_HAS(hk_group_why(group), "grow to 1 ranks: the group has 1");
	CHECK_EQ(hk_group_grow(group, HK_RANKS_MAX + 1, NULL, &grown), HK_EINVAL);
	CHECK_EQ(hk_group_grow(group, 2, NULL, &grown), HK_EINVAL);
	CHECK_HAS(hk_group_why(group), "no address that newcomers could know");
	grow.address = "127.0.0.1:0";
	CHECK_EQ(hk_group_grow(group, 2, &grow, &grown), HK_EINVAL);
	CHECK_HAS(hk_group_why(group), "HOCKET_KEY");
	grow.size = 3;
	CHECK_EQ(hk_group_grow(group, 2, &grow, &grown), HK_EINVAL);
	CHECK_HAS(hk_group_why(group), "HK_GROW_OPTS_INIT");
	CHECK_EQ(hk_batch_begin(group), HK_OK);
	CHECK_EQ(hk_group_grow(group, 2, NULL, &grown), HK_EINVAL);
	CHECK_EQ(hk_batch_end(group), HK_OK);
	CHECK_EQ(hk_group_revoke(group), HK_OK);
	CHECK_EQ(hk_group_grow(group, 2, NULL, &grown), HK_EREVOKED);
	CHECK(!grown);
	hk_group_free(group);
	opts.address = "127.0.0.1:9";
	opts.rank = HK_NONE;
	opts.nranks = 3;
	CHECK_EQ(hk_group_create(&opts, &why, &group), HK_EINVAL);
	CHECK_HAS(why.text, "newcomer");
}
