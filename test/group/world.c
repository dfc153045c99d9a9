/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - ranks as threads and as processes, of one host and of several. */
#include "group/world.h"

#include "harness.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const char *world_name(enum world_kind kind)
{
	static const char *const names[] = {
#define WORLD_KIND_NAME(id, name) name,
		WORLD_KIND_MAP(WORLD_KIND_NAME)
#undef WORLD_KIND_NAME
	};

	return names[kind];
}

void *world_shared(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

void world_meet(struct world_seat *seat)
{
	int met = pthread_barrier_wait(seat->meeting);

	CHECK(met == 0 || met == PTHREAD_BARRIER_SERIAL_THREAD);
}

/* ---- options ---- */

/* What all ranks of a run share. */
struct run {
	const struct world_spec *spec;
	world_fn *fn;
	void *ctx;
	pthread_barrier_t *meeting;
	char address[64];
	char key[32];
};

static const char *run_host(const struct run *run, uint32_t rank)
{
	static const char *const names[] = { "alpha", "beta", "gamma", "delta" };
	const struct world_spec *spec = run->spec;
	uint32_t host = 0, before = 0;

	if (!spec->hosts)
		return names[rank >= (spec->n + 1) / 2];
	CHECK(spec->nhosts <= sizeof(names) / sizeof(names[0]));
	while (host < spec->nhosts && rank >= before + spec->hosts[host])
		before += spec->hosts[host++];
	CHECK(host < spec->nhosts);
	return names[host];
}

static struct hk_group_opts run_opts(const struct run *run, uint32_t rank)
{
	const struct world_spec *spec = run->spec;
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	bool tcp = spec->kind == WORLD_THREADS_TCP || spec->kind == WORLD_PROCESSES_TCP;
	bool mixed = spec->kind == WORLD_MIXED_THREADS || spec->kind == WORLD_MIXED_PROCESSES;

	opts.address = run->address;
	opts.rank = rank;
	opts.nranks = spec->n;
	opts.key = run->key;
	opts.net = mixed ? "auto" : tcp ? "tcp" : "shm";
	opts.host = mixed ? run_host(run, rank) : NULL;
	opts.check = spec->check;
	opts.progress = spec->progress;
	opts.alloc = spec->alloc;
	opts.timeout_ns = spec->timeout_ns ? spec->timeout_ns : UINT64_C(60000000000);
	return opts;
}

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
	snprintf(run->key, sizeof(run->key), "key of %ld", (long)getpid());
}

/* ---- ranks ---- */

struct member {
	struct run *run;
	uint32_t rank;
	struct hk_group *group; /* NULL: it makes its own */
};

static void *member_run(void *ctx)
{
	struct member *member = ctx;
	struct run *run = member->run;
	struct hk_why why = { "" };

	if (!member->group) {
		struct hk_group_opts opts = run_opts(run, member->rank);
		enum hk_status status = hk_group_create(&opts, &why, &member->group);

		if (status != HK_OK)
			test_fail(__FILE__, __LINE__, "%s: rank %u cannot join: %s: %s",
				  world_name(run->spec->kind), member->rank, hk_status_name(status),
				  why.text);
	}
	CHECK_EQ(hk_group_rank(member->group), member->rank);
	CHECK_EQ(hk_group_size(member->group), run->spec->n);
	struct world_seat seat = { .group = member->group,
				   .rank = member->rank,
				   .n = run->spec->n,
				   .kind = run->spec->kind,
				   .ctx = run->ctx,
				   .meeting = run->meeting };
	run->fn(&seat);
	hk_group_free(member->group);
	return NULL;
}

static void run_threads(struct run *run, bool joins)
{
	uint32_t n = run->spec->n;
	struct hk_group_opts opts = run_opts(run, 0);
	struct hk_group *groups[WORLD_RANKS_MAX] = { 0 };
	struct member members[WORLD_RANKS_MAX];
	pthread_t threads[WORLD_RANKS_MAX];
	struct hk_why why = { "" };

	if (!joins && hk_group_threads(n, &opts, &why, groups) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", world_name(run->spec->kind), why.text);
	for (uint32_t r = 0; r < n; r++) {
		members[r] = (struct member){ run, r, groups[r] };
		CHECK_EQ(pthread_create(&threads[r], NULL, member_run, &members[r]), 0);
	}
	for (uint32_t r = 0; r < n; r++)
		CHECK_EQ(pthread_join(threads[r], NULL), 0);
}

static void run_processes(struct run *run)
{
	uint32_t n = run->spec->n;
	pid_t pids[WORLD_RANKS_MAX];
	bool failed = false;

	fflush(stdout);
	for (uint32_t r = 0; r < n; r++) {
		pids[r] = fork();
		CHECK(pids[r] >= 0);
		if (pids[r] == 0) {
			struct member member = { run, r, NULL };

			member_run(&member);
			exit(0);
		}
	}
	for (uint32_t left = n; left > 0; left--) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);

		CHECK(pid > 0);
		bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
		/* The others would wait for it until their time is up. */
		for (uint32_t r = 0; r < n; r++) {
			if (pids[r] == pid)
				pids[r] = 0;
			else if (!well && !failed && pids[r])
				kill(pids[r], SIGKILL);
		}
		failed |= !well;
	}
	if (failed)
		test_fail(__FILE__, __LINE__, "%s: a rank failed", world_name(run->spec->kind));
}

void world_run(const struct world_spec *spec, world_fn *fn, void *ctx)
{
	struct run run = { .spec = spec, .fn = fn, .ctx = ctx };
	pthread_barrierattr_t attr;

	CHECK(spec->n > 0 && spec->n <= WORLD_RANKS_MAX);
	run.meeting = world_shared(sizeof(*run.meeting));
	CHECK_EQ(pthread_barrierattr_init(&attr), 0);
	CHECK_EQ(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_barrier_init(run.meeting, &attr, spec->n), 0);
	run_choose_address(&run);
	if (spec->kind == WORLD_PROCESSES_SHM || spec->kind == WORLD_PROCESSES_TCP ||
	    spec->kind == WORLD_MIXED_PROCESSES)
		run_processes(&run);
	else
		run_threads(&run, spec->kind == WORLD_MIXED_THREADS);
	pthread_barrier_destroy(run.meeting);
	pthread_barrierattr_destroy(&attr);
	munmap(run.meeting, sizeof(*run.meeting));
}
