/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank.c - a rank that goes on: `rank SEED TIMEOUT_MS [check] [progress] [mem] [fork]`.
 *
 * It does operations at random (work.h) until its standard input ends, on all
 * ranks. Where one fails it agrees with those who are left, makes a group of them,
 * and goes on with that. It says what happens, a line each, with the time in
 * nanoseconds since the machine started:
 *
 *	forked TIME PID PID | children, which live until standard input ends
 *	up TIME
 *	failed TIME STATUS MEMBERS | what hk_group_why says
 *	healed TIME MEMBERS
 *	out TIME STATUS | why there is no group with this rank any more
 *	wrong TIME what
 *	end TIME rounds R late NS fds F bytes B maps M tasks T
 *
 * MEMBERS are the group's, by the rank each began with: 0,1,3 (4294967295: not
 * known yet). `late` is the
 * longest that any call took beyond its deadline; what follows is what was not
 * given back: descriptors, memory, mappings and threads.
 */
#include "work.h"

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 64
#define GROUPS_MAX 16

struct life {
	uint32_t first; /* the rank it began with */
	uint64_t timeout_ns;
	bool agrees; /* before it shrinks */
	struct hk_group *groups[GROUPS_MAX];
	uint32_t ngroups;
	uint32_t members[RANKS_MAX]; /* of the last group */
	struct work work;
	uint64_t number; /* of the next operation */
	uint64_t rounds;
	uint64_t late_ns;
	uint64_t began; /* of the call that runs */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

__attribute__((format(printf, 2, 3))) static void say(const char *what, const char *fmt, ...)
{
	char line[2048];
	int len = snprintf(line, sizeof(line), "%s %" PRIu64 " ", what, now_ns());
	va_list args;

	va_start(args, fmt);
	len += vsnprintf(line + len, sizeof(line) - (size_t)len - 1, fmt, args);
	va_end(args);
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len++] = '\n';
	/* In one piece; nobody reads what ends early. */
	(void)!write(STDOUT_FILENO, line, (size_t)len);
}

static const char *members_text(const struct life *life)
{
	static char text[RANKS_MAX * 4];
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t r = 0; r < life->work.n; r++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", r ? "," : "",
					life->members[r]);
	return text;
}

/* ---- what is held ---- */

static size_t bytes_held;

static void *count_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	(void)ctx;
	__atomic_fetch_add(&bytes_held, size_new - size_old, __ATOMIC_RELAXED);
	if (size_new)
		return realloc(ptr, size_new);
	free(ptr);
	return NULL;
}

static const struct hk_alloc count_alloc = { count_resize, NULL };

static int folder_count(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static int maps_count(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:") != NULL;
	if (maps)
		fclose(maps);
	return count;
}

/* ---- calls and their deadlines ---- */

static void call_begin(struct life *life)
{
	life->began = now_ns();
}

static void call_end(struct life *life)
{
	uint64_t took = now_ns() - life->began;

	if (took > life->timeout_ns && took - life->timeout_ns > life->late_ns)
		life->late_ns = took - life->timeout_ns;
}

/* ---- going on ---- */

static void life_use(struct life *life, struct hk_group *group)
{
	life->groups[life->ngroups++] = group;
	life->work.group = group;
	life->work.rank = hk_group_rank(group);
	life->work.n = hk_group_size(group);
}

/* Who is here, by first ranks, and what comes next: ranks may be operations apart. */
static enum hk_status life_meet(struct life *life)
{
	uint64_t own[2] = { life->first, life->number }, all[RANKS_MAX][2];
	enum hk_status status;

	call_begin(life);
	status = hk_allgather(life->work.group, own, all, 2, HK_TYPE_UINT64, NULL);
	call_end(life);
	if (status != HK_OK)
		return status;
	for (uint32_t r = 0; r < life->work.n; r++) {
		life->members[r] = (uint32_t)all[r][0];
		if (all[r][1] > life->number)
			life->number = all[r][1];
	}
	return HK_OK;
}

/*
 * The members of a new group: those of the old one that are not lost. Where one was
 * lost since they agreed it shows in their number; then nobody knows yet.
 */
static void life_count(struct life *life, struct hk_group *old)
{
	uint32_t lost[RANKS_MAX], nlost = hk_group_lost(old, lost, RANKS_MAX), n = 0;

	for (uint32_t r = 0, next = 0; r < hk_group_size(old); r++) {
		if (next < nlost && lost[next] == r)
			next++;
		else
			life->members[n++] = life->members[r];
	}
	for (uint32_t r = 0; n != life->work.n && r < life->work.n; r++)
		life->members[r] = HK_NONE;
}

static enum hk_status life_shrink(struct life *life)
{
	struct hk_group *old = life->work.group, *group = NULL;
	enum hk_status status = HK_OK;
	uint64_t value = life->first;

	if (life->agrees) {
		call_begin(life);
		status = hk_group_agree(old, &value, NULL);
		call_end(life);
	}
	if (status == HK_OK) {
		call_begin(life);
		status = hk_group_shrink(old, NULL, &group);
		call_end(life);
	}
	if (status != HK_OK) {
		say("out", "%d | %s", status, hk_group_why(old));
		return status;
	}
	life_use(life, group);
	life_count(life, old);
	return HK_OK;
}

/* What failed is said; then those who are left make groups until one holds. */
static bool life_heal(struct life *life, enum hk_status status)
{
	while (status != HK_OK) {
		say("failed", "%d %s | %s", status, members_text(life),
		    hk_group_why(life->work.group));
		if (life->ngroups == GROUPS_MAX || life_shrink(life) != HK_OK)
			return false;
		status = life_meet(life);
	}
	say("healed", "%s", members_text(life));
	return true;
}

static bool input_ended(void)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/* False: it is time to end, for all of them; or something was wrong. */
static bool life_round(struct life *life, bool *wrong)
{
	uint32_t ends = input_ended(), all = 0;
	const char *text = NULL;
	enum hk_status status;

	call_begin(life);
	status = work_do(&life->work, life->number++, &text);
	call_end(life);
	if (text) {
		say("wrong", "%s", text);
		*wrong = true;
		return false;
	}
	if (status == HK_OK) {
		call_begin(life);
		status = hk_allreduce(life->work.group, &ends, &all, 1, HK_TYPE_UINT32,
				      HK_REDOP_MIN, NULL);
		call_end(life);
	}
	life->rounds += status == HK_OK;
	if (status != HK_OK)
		return life_heal(life, status);
	return !all;
}

/* ---- children ---- */

/* As a data loader's: it has nothing to do with the group, and outlives its parent. */
static pid_t child_start(void)
{
	struct pollfd input = { .fd = STDIN_FILENO };
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	close(STDOUT_FILENO);
	alarm(600); /* whatever becomes of the driver */
	while (poll(&input, 1, -1) < 0 || !(input.revents & POLLHUP)) {
	}
	_exit(0);
}

static void children_start(void)
{
	pid_t first = child_start(), second = child_start();

	say("forked", "%d %d", (int)first, (int)second);
}

/* ---- a life ---- */

static void life_end(struct life *life)
{
	while (life->ngroups) {
		call_begin(life);
		hk_group_free(life->groups[--life->ngroups]);
		call_end(life);
	}
}

static bool life_lead(struct life *life, bool mem, bool forks)
{
	struct hk_group *root = life->work.group;
	bool wrong = false;
	void *in = NULL, *out = NULL;

	if (mem && (hk_mem_alloc(root, WORK_BYTES, &in) != HK_OK ||
		    hk_mem_alloc(root, WORK_BYTES, &out) != HK_OK))
		return false;
	if (!mem) {
		in = malloc(WORK_BYTES);
		out = malloc(WORK_BYTES);
	}
	life->work.in = in;
	life->work.out = out;
	enum hk_status status = in && out ? life_meet(life) : HK_ENOMEM;
	if (status == HK_OK && forks)
		children_start();
	if (status == HK_OK)
		say("up", "%s", members_text(life));
	if (status == HK_OK || life_heal(life, status))
		while (life_round(life, &wrong)) {
		}
	if (mem) {
		hk_mem_free(root, in);
		hk_mem_free(root, out);
	} else {
		free(in);
		free(out);
	}
	return !wrong;
}

static bool has(int argc, char **argv, const char *word)
{
	for (int i = 3; i < argc; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

static void *nothing(void *ctx)
{
	return ctx;
}

/* ThreadSanitizer begins one of its own with the first: it counts as there before. */
static void thread_once(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL) == 0)
		pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	static struct life life;
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *group;
	struct hk_why why;

	if (argc < 3)
		return 2;
	life.work.seed = strtoull(argv[1], NULL, 10);
	life.agrees = life.work.seed % 2;
	opts.timeout_ns = life.timeout_ns = strtoull(argv[2], NULL, 10) * 1000000;
	opts.check = has(argc, argv, "check");
	opts.progress = has(argc, argv, "progress");
	opts.alloc = &count_alloc;
	(void)signal(SIGCHLD, SIG_IGN); /* children need not be waited for */
	thread_once();
	int fds = folder_count("/proc/self/fd"), tasks = folder_count("/proc/self/task");
	call_begin(&life);
	enum hk_status status = hk_group_create(&opts, &why, &group);
	call_end(&life);
	if (status != HK_OK) {
		say("out", "%d | %s", status, why.text);
	} else {
		life_use(&life, group);
		life.first = life.work.rank;
		for (uint32_t r = 0; r < life.work.n; r++)
			life.members[r] = r;
		if (!life_lead(&life, has(argc, argv, "mem"), has(argc, argv, "fork")))
			return 1;
		life_end(&life);
	}
	say("end", "rounds %" PRIu64 " late %" PRIu64 " fds %d bytes %zu maps %d tasks %d",
	    life.rounds, life.late_ns, folder_count("/proc/self/fd") - fds, bytes_held,
	    maps_count(), folder_count("/proc/self/task") - tasks);
	return 0;
}
