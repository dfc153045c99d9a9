/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_test.c - ranks that fork, as data loaders do. Children keep nothing of the
 * group's open, so a death shows although they live; they can use no group of their
 * parent, cannot disturb it, and may make groups of their own.
 */
#include "group/cast.h"
#include "group/device/device.h"
#include "harness.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3u

/* What parts share. */
struct stage {
	_Atomic uint32_t ready;
	_Atomic int child; /* that outlives its rank */
};

static void each_scene(void (*run)(const struct cast_scene *scene))
{
	for (uint32_t s = 0; s < cast_scenes_count; s++)
		run(&cast_scenes[s]);
}

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

/* Mappings of the library's memory; all but the heap stay behind. */
static uint32_t maps_count(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint32_t count = 0;
	char line[512];

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:hocket") != NULL;
	fclose(maps);
	return count;
}

static void child_wait(pid_t child)
{
	int status;

	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- a death, and children that live ---- */

static void forks_and_dies(struct stage *stage)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		alarm(100); /* whatever becomes of the test, which does not wait for its output */
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		atomic_fetch_add(&stage->ready, 1);
		for (;;)
			pause();
	}
	atomic_store(&stage->child, child);
	for (;;)
		pause();
}

static void survives(uint32_t rank, void *shared)
{
	struct hk_group *group = cast_join(rank, RANKS);
	struct stage *stage = shared;

	cast_sum(group);
	if (rank == 1)
		forks_and_dies(stage);
	atomic_fetch_add(&stage->ready, 1);
	/* By its deadline it would be HK_ETIMEDOUT. */
	CHECK_EQ(hk_barrier(group, NULL), HK_EPEER);
	CHECK_HAS(hk_group_why(group), "rank 1");
	hk_group_free(group);
}

static void dies_with_children(const struct cast_scene *scene)
{
	struct stage *stage = cast_begin(scene, sizeof(*stage));

	for (uint32_t r = 0; r < RANKS; r++)
		cast_play(survives, r);
	cast_await(&stage->ready, RANKS); /* two ranks, and the child of the third */
	while (!atomic_load(&stage->child))
		usleep(1000);
	cast_kill(1);
	cast_wait(1, true);
	cast_wait(0, false);
	cast_wait(2, false);
	CHECK_EQ(kill(atomic_load(&stage->child), 0), 0); /* it lived through all of that */
	CHECK_EQ(kill(atomic_load(&stage->child), SIGKILL), 0);
}

TEST(a_death_shows_although_children_live)
{
	each_scene(dies_with_children);
}

/* ---- what children may call ---- */

struct held {
	struct hk_group *group;
	struct hk_request *request;
	uint32_t *mem;
};

static void calls_on_groups(const struct held *held)
{
	struct hk_group *other = NULL;
	struct hk_choice choice = { .size = sizeof(choice) };
	uint64_t value = 1;
	void *mem;

	CHECK_EQ(hk_group_split(held->group, 0, 0, &other), HK_EINVAL);
	CHECK_EQ(hk_group_agree(held->group, &value, NULL), HK_EINVAL);
	CHECK_EQ(hk_group_shrink(held->group, NULL, &other), HK_EINVAL);
	CHECK_EQ(hk_group_grow(held->group, RANKS + 1, NULL, &other), HK_EINVAL);
	CHECK_EQ(hk_group_revoke(held->group), HK_EINVAL);
	CHECK_EQ(hk_group_lost(held->group, NULL, 0), 0);
	CHECK_EQ(hk_group_choice(held->group, HK_COLL_ALLREDUCE, 8, HK_TYPE_FP32, &choice),
		 HK_EINVAL);
	CHECK_EQ(hk_mem_alloc(held->group, 4096, &mem), HK_EINVAL);
	CHECK_EQ(hk_group_size(held->group), RANKS);
}

static void calls_in_a_child(const struct held *held)
{
	uint32_t in[RANKS] = { 0 }, out[RANKS] = { 0 };
	struct hk_group *group = held->group;
	int fd;

	CHECK_EQ(hk_allreduce(group, in, out, 1, HK_TYPE_UINT32, HK_REDOP_SUM, NULL), HK_EINVAL);
	CHECK_HAS(hk_group_why(group), "belongs to the process that forked this one");
	CHECK_EQ(hk_barrier(group, NULL), HK_EINVAL);
	CHECK_EQ(hk_send(group, in, 1, HK_TYPE_UINT32, 0, NULL), HK_EINVAL);
	CHECK_EQ(hk_recv(group, out, 1, HK_TYPE_UINT32, 0, NULL), HK_EINVAL);
	CHECK_EQ(hk_batch_begin(group), HK_EINVAL);
	CHECK_EQ(hk_batch_end(group), HK_EINVAL);
	CHECK_EQ(hk_request_wait(held->request, 0), HK_EINVAL);
	CHECK_EQ(hk_request_test(held->request), HK_EINVAL);
	CHECK_EQ(hk_request_fd(held->request, &fd), HK_EINVAL);
	calls_on_groups(held);
	CHECK_EQ(held->mem[0], 77); /* what was there before is shared */
	hk_request_free(held->request);
	hk_mem_free(group, held->mem);
	hk_group_free(group);
}

/* A child in the middle of an operation; progress: of a thread that it does not have. */
static void forks_amid(uint32_t rank, bool progress)
{
	struct hk_group_opts opts = cast_opts(rank, RANKS);
	struct hk_opts later = HK_OPTS_INIT;
	uint32_t in = rank + 1, sum = 0, fds = fds_count();
	struct held held;
	struct hk_why why;
	void *mem;

	opts.progress = progress;
	CHECK_EQ(hk_group_create(&opts, &why, &held.group), HK_OK);
	CHECK_EQ(hk_mem_alloc(held.group, 4096, &mem), HK_OK);
	held.mem = mem;
	held.mem[0] = 77;
	cast_sum(held.group);
	later.request = &held.request;
	CHECK_EQ(hk_allreduce(held.group, &in, &sum, 1, HK_TYPE_UINT32, HK_REDOP_SUM, &later),
		 HK_OK);
	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK_EQ(fds_count(), fds);
		CHECK(maps_count() <= 1);
		calls_in_a_child(&held);
		exit(0);
	}
	child_wait(child);
	CHECK_EQ(hk_request_wait(held.request, 0), HK_OK);
	CHECK_EQ(sum, RANKS * (RANKS + 1) / 2);
	hk_request_free(held.request);
	for (int i = 0; i < 10; i++)
		cast_sum(held.group);
	CHECK_EQ(held.mem[0], 77);
	hk_mem_free(held.group, held.mem);
	hk_group_free(held.group);
	CHECK_EQ(fds_count(), fds);
}

static void forks_by_hand(uint32_t rank, void *shared)
{
	(void)shared;
	forks_amid(rank, false);
}

static void forks_with_thread(uint32_t rank, void *shared)
{
	(void)shared;
	forks_amid(rank, true);
}

static void all_play(const struct cast_scene *scene, cast_part *part)
{
	(void)cast_begin(scene, sizeof(struct stage));
	for (uint32_t r = 0; r < RANKS; r++)
		cast_play(part, r);
	cast_end();
}

static void refused_by_hand(const struct cast_scene *scene)
{
	all_play(scene, forks_by_hand);
}

TEST(a_child_can_use_no_group_of_its_parent)
{
	each_scene(refused_by_hand);
}

static void refused_with_thread(const struct cast_scene *scene)
{
	all_play(scene, forks_with_thread);
}

TEST(nor_one_that_has_a_progress_thread)
{
	each_scene(refused_with_thread);
}

/* ---- groups of children ---- */

static void child_meets(uint32_t rank)
{
	struct hk_group *group;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	group = cast_join(rank, RANKS); /* where their parents met: nobody listens there now */
	for (int i = 0; i < 10; i++)
		cast_sum(group);
	hk_group_free(group);
	exit(0);
}

static void children_meet(uint32_t rank, void *shared)
{
	struct hk_group *group = cast_join(rank, RANKS);

	(void)shared;
	cast_sum(group);
	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		child_meets(rank);
	for (int i = 0; i < 10; i++)
		cast_sum(group);
	child_wait(child);
	hk_group_free(group);
}

static void both_go_on(const struct cast_scene *scene)
{
	all_play(scene, children_meet);
}

TEST(children_may_make_groups_of_their_own)
{
	each_scene(both_go_on);
}

/* ---- forks amid calls of other threads ---- */

#define THREADS 3
#define FORKS 300

static _Atomic bool over;

static void *says_who_it_is(void *ctx)
{
	struct hk__rank_info info;

	while (!atomic_load(&over))
		hk__rank_info_make(HK__GPU_USE_AUTO, &info);
	return ctx;
}

/* What another thread had locked when its parent forked does not stop it. */
static void child_says_who_it_is(uint64_t parent)
{
	struct hk__rank_info info, again;
	struct hk_group *group;

	alarm(10);
	hk__rank_info_make(HK__GPU_USE_AUTO, &info);
	hk__rank_info_make(HK__GPU_USE_AUTO, &again);
	CHECK(info.process != parent);
	CHECK(info.process == again.process);
	CHECK_EQ(hk_group_create(NULL, NULL, &group), HK_OK);
	hk_group_free(group);
	_exit(0);
}

TEST(a_child_of_a_busy_process_makes_a_group)
{
	struct hk__rank_info info;
	pthread_t threads[THREADS];

	hk__rank_info_make(HK__GPU_USE_AUTO, &info);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, says_who_it_is, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		fflush(stdout);
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0)
			child_says_who_it_is(info.process);
		child_wait(child);
	}
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
}
