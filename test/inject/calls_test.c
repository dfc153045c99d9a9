/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls_test.c - the N-th system call of a rank fails, N = 1, 2, ... until none
 * does any more, while processes make a group and do with it all there is to do.
 * Each time every rank ends, by itself, with a status and a reason that names the
 * rank; what is interrupted goes on; descriptors, memory, mappings and threads
 * are what they were.
 *
 * HK_TEST_INJECT=full (make test-inject) takes every N, every rank and every
 * error that a call can meet; else a sample.
 */
#include "group/world.h"
#include "harness.h"
#include "inject/calls.h"
#include "inject/deed.h"
#include "inject/memory.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define RANKS_MAX 3u
#define TIMEOUT (4 * SECOND)
#define PATIENCE_S 60 /* after which a rank hangs */

static bool inject_fully(void)
{
	const char *which = getenv("HK_TEST_INJECT");

	return which && strcmp(which, "full") == 0;
}

/* ---- what a process holds ---- */

struct held {
	unsigned fds, tasks, mappings;
};

static unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static struct held held_now(void)
{
	struct held held = { entries("/proc/self/fd"), entries("/proc/self/task"), 0 };
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		held.mappings += strstr(line, "memfd:") != NULL;
	fclose(maps);
	return held;
}

/* A thread that was joined is listed until the system has done with it: so for a moment. */
static struct held held_after(const struct held *before)
{
	struct held held = held_now();

	for (int tries = 0; held.tasks > before->tasks && tries < 1000; tries++) {
		usleep(1000);
		held = held_now();
	}
	return held;
}

/* ---- one run ---- */

struct result {
	bool ended;
	enum hk_status status;
	struct hk_why why;
	long blocks;
	struct held before, after;
	struct calls calls;
};

struct run {
	const char *name;
	uint32_t n;
	const char *net;
	bool hosts; /* each rank on its own */
	bool progress;
	bool encrypt;
	uint32_t who;
	uint64_t fail_at;
	uint32_t variant;
	char address[32];
	struct result *results;
};

/* A port that nobody had a moment ago. */
static void run_choose_address(struct run *run)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	close(fd);
	snprintf(run->address, sizeof(run->address), "127.0.0.1:%u", ntohs(addr.sin_port));
}

static void rank_work(const struct run *run, uint32_t rank, const struct hk_alloc *alloc)
{
	static const char *const hosts[] = { "alpha", "beta", "gamma" };
	struct result *result = &run->results[rank];
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_group *group = NULL;

	opts.address = run->address;
	opts.rank = rank;
	opts.nranks = run->n;
	opts.key = "calls";
	opts.net = run->net;
	opts.host = run->hosts ? hosts[rank] : NULL;
	opts.progress = run->progress;
	opts.encrypt = run->encrypt;
	opts.timeout_ns = TIMEOUT;
	opts.alloc = alloc;
	result->status = hk_group_create(&opts, &result->why, &group);
	if (result->status == HK_OK) {
		result->why.text[0] = '\0';
		result->status = deed_all(group, &result->why);
		if (result->status != HK_OK && !result->why.text[0])
			snprintf(result->why.text, HK_WHY_MAX, "%s", hk_group_why(group));
		if (result->status != HK_OK)
			CHECK_EQ(hk_group_revoke(group), HK_OK);
	}
	hk_group_free(group);
}

static void *nothing(void *ctx)
{
	return ctx;
}

static void rank_run(const struct run *run, uint32_t rank)
{
	struct result *result = &run->results[rank];
	struct memory memory;
	pthread_t first;

	memory_init(&memory);
	alarm(PATIENCE_S);
	/* ThreadSanitizer starts a thread of its own with the first: not one of ours. */
	CHECK_EQ(pthread_create(&first, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(first, NULL), 0);
	result->before = held_now();
	calls_arm(&result->calls, rank == run->who ? run->fail_at : UINT64_MAX, run->variant);
	rank_work(run, rank, &memory.alloc);
	calls_disarm();
	result->after = held_after(&result->before);
	result->blocks = atomic_load(&memory.blocks);
	result->ended = true;
}

__attribute__((format(printf, 2, 3), noreturn)) static void run_fail(const struct run *run,
								     const char *fmt, ...)
{
	const struct calls *failed = &run->results[run->who].calls;
	char text[1200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	test_fail(__FILE__, __LINE__, "%s, call %" PRIu64 " (%s: %s, variant %u) of rank %u: %s",
		  run->name, run->fail_at, failed->name, strerrorname_np(failed->error),
		  run->variant, run->who, text);
}

static void run_processes(struct run *run)
{
	pid_t pids[RANKS_MAX];

	memset(run->results, 0, RANKS_MAX * sizeof(*run->results));
	run_choose_address(run);
	fflush(stdout);
	for (uint32_t r = 0; r < run->n; r++) {
		pids[r] = fork();
		CHECK(pids[r] >= 0);
		if (pids[r] == 0) {
			rank_run(run, r);
			exit(0); /* so that LeakSanitizer looks, if it is there */
		}
	}
	for (uint32_t r = 0; r < run->n; r++) {
		int status;

		while (waitpid(pids[r], &status, 0) < 0)
			CHECK_EQ(errno, EINTR);
		if (WIFSIGNALED(status))
			run_fail(run, "rank %u %s", r,
				 WTERMSIG(status) == SIGALRM ? "hangs"
							     : strsignal(WTERMSIG(status)));
		if (WEXITSTATUS(status) != 0 || !run->results[r].ended)
			run_fail(run, "rank %u exited with %d", r, WEXITSTATUS(status));
	}
}

/* A call that was interrupted, or has to be made again, is no failure. */
static bool call_went_well(const struct calls *calls)
{
	return !calls->hit || calls->error == EINTR ||
	       (calls->error == EAGAIN && strcmp(calls->name, "pthread_create") != 0);
}

static void result_check(const struct run *run, uint32_t rank)
{
	const struct result *result = &run->results[rank];
	const struct calls *failed = &run->results[run->who].calls;

	if (result->blocks)
		run_fail(run, "rank %u has %ld blocks left", rank, result->blocks);
	if (memcmp(&result->before, &result->after, sizeof(struct held)) != 0)
		run_fail(run,
			 "rank %u has %u descriptors, %u threads, %u mappings; before: %u, %u, %u",
			 rank, result->after.fds, result->after.tasks, result->after.mappings,
			 result->before.fds, result->before.tasks, result->before.mappings);
	if (result->status == HK_OK)
		return;
	if (call_went_well(failed))
		run_fail(run, "rank %u: %s: %s", rank, hk_status_name(result->status),
			 result->why.text);
	if (!result->why.text[0])
		run_fail(run, "rank %u: %s without a reason", rank, hk_status_name(result->status));
}

/* Of the others that failed, one says who it was; the rest may have it from that one. */
static void results_check_names(const struct run *run)
{
	const struct result *other = NULL;
	char named[16];

	snprintf(named, sizeof(named), "rank %u", run->who);
	for (uint32_t r = 0; r < run->n; r++) {
		const struct result *result = &run->results[r];

		if (r == run->who || result->status == HK_OK)
			continue;
		if (strstr(result->why.text, named))
			return;
		other = result;
	}
	if (other)
		run_fail(run, "nobody names it: %s: %s", hk_status_name(other->status),
			 other->why.text);
}

static void result_print(const struct run *run, uint32_t rank)
{
	const struct result *result = &run->results[rank];

	printf("rank %u: %" PRIu64 " calls, %s, %s: %s\n", rank, result->calls.count,
	       result->calls.hit ? result->calls.name : "-", hk_status_name(result->status),
	       result->why.text);
}

/* Whether a call failed; all that came of it was right. */
static bool run_once(struct run *run)
{
	run_processes(run);
	for (uint32_t r = 0; r < run->n && getenv("HK_TEST_CALL"); r++)
		result_print(run, r);
	for (uint32_t r = 0; r < run->n; r++)
		result_check(run, r);
	results_check_names(run);
	return run->results[run->who].calls.hit;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct tally {
	uint64_t failed; /* calls */
	uint64_t groups; /* that failed for it */
};

static bool run_count(struct run *run, struct tally *tally)
{
	bool hit = run_once(run);

	tally->failed += hit;
	tally->groups += run->results[run->who].status != HK_OK;
	return hit;
}

/* Every call of a rank, with every error it can meet, until none fails any more. */
static void run_rank_fully(struct run *run, struct tally *tally)
{
	run->results = world_shared(RANKS_MAX * sizeof(*run->results));
	for (run->fail_at = 1; run_count(run, tally);) {
		if (++run->variant < run->results[run->who].calls.variants)
			continue;
		run->variant = 0;
		/* From some hundreds on they repeat themselves, and fewer are tried. */
		run->fail_at += 1 + (run->fail_at > 300 ? run->fail_at / 50 : 0);
	}
}

/* Most of the time is spent waiting for deadlines: all ranks have their turn at once. */
static void run_fully(struct run *run, struct tally *tally)
{
	struct tally *tallies = world_shared(RANKS_MAX * sizeof(*tallies));
	pid_t pids[RANKS_MAX];

	fflush(stdout);
	for (run->who = 0; run->who < run->n; run->who++) {
		pids[run->who] = fork();
		CHECK(pids[run->who] >= 0);
		if (pids[run->who] == 0) {
			run->variant = 0;
			run_rank_fully(run, &tallies[run->who]);
			exit(0);
		}
	}
	for (uint32_t r = 0; r < run->n; r++) {
		int status;

		CHECK_EQ(waitpid(pids[r], &status, 0), pids[r]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		tally->failed += tallies[r].failed;
		tally->groups += tallies[r].groups;
	}
}

/* A sample from a seed, for so many seconds at most. */
static void run_some(struct run *run, uint64_t most, double seconds, struct tally *tally)
{
	uint64_t seed = test_seed(run->n + strlen(run->name));
	double until = now_s() + seconds;

	for (int i = 0; i < 30 && now_s() < until; i++) {
		run->fail_at = 1 + test_random(&seed) % most;
		run->variant = (uint32_t)test_random(&seed) % 60; /* of any number */
		run->who = (uint32_t)test_random(&seed) % run->n;
		run_count(run, tally);
	}
}

/* Groups that fail write files, in a folder that goes in the end. */
static void folder_make(char *path)
{
	CHECK(mkdtemp(path));
	CHECK_EQ(setenv("HOCKET_RECORD", "on", 1), 0);
	CHECK_EQ(setenv("HOCKET_RECORD_DIR", path, 1), 0);
	CHECK_EQ(setenv("HOCKET_LOG", "off", 1), 0);
}

static void folder_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	CHECK(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			CHECK_EQ(unlinkat(dirfd(dir), entry->d_name, 0), 0);
	closedir(dir);
	CHECK_EQ(rmdir(path), 0);
}

static void run_all(struct run *run, double seconds)
{
	char folder[] = "/tmp/hocket-calls-XXXXXX";
	const char *one = getenv("HK_TEST_CALL"); /* N:VARIANT:RANK */
	struct tally tally = { 0 };

	folder_make(folder);
	run->results = world_shared(RANKS_MAX * sizeof(*run->results));
	if (one) {
		CHECK_EQ(sscanf(one, "%" SCNu64 ":%u:%u", &run->fail_at, &run->variant, &run->who),
			 3);
		CHECK(run->who < run->n);
		run_once(run);
		folder_remove(folder);
		return;
	}
	run->fail_at = UINT64_MAX;
	run_once(run);
	uint64_t most = run->results[0].calls.count;
	if (inject_fully())
		run_fully(run, &tally);
	else
		run_some(run, most, seconds, &tally);
	printf("%s: of about %" PRIu64 " calls of a rank %" PRIu64 " failed, and %" PRIu64
	       " groups for it\n",
	       run->name, most, tally.failed, tally.groups);
	folder_remove(folder);
	CHECK(tally.failed > 0);
}

TEST(shm)
{
	run_all(&(struct run){ .name = "shm", .n = 3, .net = "shm" }, 6);
}

TEST(tcp)
{
	run_all(&(struct run){ .name = "tcp", .n = 2, .net = "tcp" }, 6);
}

TEST(encrypted)
{
	run_all(&(struct run){ .name = "encrypted", .n = 2, .net = "tcp", .encrypt = true }, 5);
}

TEST(both)
{
	run_all(&(struct run){ .name = "both", .n = 3, .net = "auto", .hosts = true }, 6);
}

TEST(progress)
{
	run_all(&(struct run){ .name = "progress", .n = 2, .net = "shm", .progress = true }, 5);
}
