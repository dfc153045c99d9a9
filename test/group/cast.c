/* SPDX-License-Identifier: Apache-2.0 */
/* cast.c - see cast.h. */
#include "group/cast.h"

#include "harness.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const struct cast_scene cast_scenes[] = {
	{ "shm", "shm", false },
	{ "tcp", "tcp", false },
	{ "several hosts", "auto", true },
};
const uint32_t cast_scenes_count = sizeof(cast_scenes) / sizeof(cast_scenes[0]);

static struct {
	const struct cast_scene *scene;
	char address[64];
	char key[32];
	void *shared;
	pid_t pids[CAST_MAX]; /* 0: waited for */
	uint32_t count;
} cast;

/* A port that nobody had a moment ago. */
static uint16_t port_choose(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	close(fd);
	return ntohs(addr.sin_port);
}

void *cast_begin(const struct cast_scene *scene, size_t shared_bytes)
{
	cast.scene = scene;
	cast.count = 0;
	(void)snprintf(cast.address, sizeof(cast.address), "127.0.0.1:%u", port_choose());
	(void)snprintf(cast.key, sizeof(cast.key), "key of %ld", (long)getpid());
	cast.shared =
		mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(cast.shared != MAP_FAILED);
	return cast.shared;
}

uint32_t cast_play(cast_part *part, uint32_t as)
{
	CHECK(cast.count < CAST_MAX);
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		/* Whatever becomes of the test, nobody is left. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		part(as, cast.shared);
		exit(0);
	}
	cast.pids[cast.count] = pid;
	return cast.count++;
}

void cast_kill(uint32_t who)
{
	CHECK_EQ(kill(cast.pids[who], SIGKILL), 0);
}

void cast_wait(uint32_t who, bool killed)
{
	int status;

	CHECK_EQ(waitpid(cast.pids[who], &status, 0), cast.pids[who]);
	cast.pids[who] = 0;
	if (killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		test_fail(__FILE__, __LINE__, "%s: part %u failed", cast.scene->name, who);
}

void cast_end(void)
{
	for (uint32_t i = 0; i < cast.count; i++)
		if (cast.pids[i])
			cast_wait(i, false);
}

struct hk_group_opts cast_opts(uint32_t rank, uint32_t nranks)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;

	opts.address = cast.address;
	opts.rank = rank;
	opts.nranks = nranks;
	opts.key = cast.key;
	opts.net = cast.scene->net;
	if (cast.scene->hosts)
		opts.host = rank % 2 ? "odd" : "even"; /* of newcomers: odd */
	opts.timeout_ns = 30 * SECOND_NS;
	return opts;
}

struct hk_group *cast_join(uint32_t rank, uint32_t nranks)
{
	struct hk_group_opts opts = cast_opts(rank, nranks);
	struct hk_group *group;
	struct hk_why why;
	enum hk_status status = hk_group_create(&opts, &why, &group);

	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: rank %d cannot join: %s: %s", cast.scene->name,
			  (int)rank, hk_status_name(status), why.text);
	return group;
}

struct hk_group *cast_grow(struct hk_group *group, uint32_t nranks)
{
	struct hk_group *grown;
	enum hk_status status = hk_group_grow(group, nranks, NULL, &grown);

	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: rank %u cannot grow: %s: %s", cast.scene->name,
			  hk_group_rank(group), hk_status_name(status), hk_group_why(group));
	CHECK_EQ(hk_group_rank(grown), hk_group_rank(group));
	CHECK_EQ(hk_group_size(grown), nranks);
	return grown;
}

void cast_sum(struct hk_group *group)
{
	uint32_t n = hk_group_size(group), sums[2] = { 0 };
	uint32_t own[2] = { hk_group_rank(group) + 1, 1 };
	enum hk_status status =
		hk_allreduce(group, own, sums, 2, HK_TYPE_UINT32, HK_REDOP_SUM, NULL);

	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: rank %u of %u: %s: %s", cast.scene->name,
			  own[0] - 1, n, hk_status_name(status), hk_group_why(group));
	CHECK_EQ(sums[0], n * (n + 1) / 2);
	CHECK_EQ(sums[1], n);
}

void cast_await(const _Atomic uint32_t *flag, uint32_t least)
{
	while (atomic_load(flag) < least)
		usleep(1000);
}
