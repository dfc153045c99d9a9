/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_test.c - ranks that meet: as threads and as processes, on one host and
 * on hosts that only call themselves different; also without memory.
 */
#include "group/boot_ranks.h"
#include "net/shm/shm.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void meet_on(const char *hosts)
{
	uint32_t n = (uint32_t)strlen(hosts);
	unsigned before;

	members_init(n);
	for (uint32_t r = 0; r < n; r++)
		(void)snprintf(members[r].spec.host_id, 2, "%c", hosts[r]);
	before = fds_open();
	members_run(n);
	members_check_ok(n);
	check_group(n, hosts);
	members_leave(n);
	CHECK_EQ(fds_open(), before);
}

TEST(alone)
{
	members_init(1);
	members[0].spec.host[0] = '\0';
	unsigned before = fds_open();
	members_run(1);
	members_check_ok(1);
	CHECK_EQ(fds_open(), before + 1); /* the segment */
	CHECK_EQ(members[0].boot.listen_fd, -1);
	check_group(1, "a");
	members_leave(1);
	CHECK_EQ(fds_open(), before);
	hk__boot_leave(&members[0].boot);
	hk__boot_leave(&(struct hk__boot){ .n = 0 });
}

TEST(two)
{
	meet_on("aa");
	meet_on("ab");
}

TEST(five_on_hosts)
{
	meet_on("aaaaa");
	meet_on("abcde");
	meet_on("aabbb");
	meet_on("babac");
}

TEST(thirty_three_on_hosts)
{
	meet_on("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	meet_on("abababababababababababababababaca");
}

TEST(not_shared)
{
	members_init(3);
	for (uint32_t r = 0; r < 3; r++)
		members[r].spec.share = false;
	members_run(3);
	members_check_ok(3);
	for (uint32_t r = 0; r < 3; r++) {
		CHECK_EQ(members[r].boot.segment_fd, -1);
		CHECK(!members[r].boot.bells);
		CHECK_EQ(members[r].boot.nlocal, 3);
	}
	members_leave(3);
}

/* What each says of itself, all know. */
TEST(rank_infos)
{
	members_init(3);
	for (uint32_t r = 0; r < 3; r++)
		members[r].spec.info = (struct hk__rank_info){ ~UINT64_C(0) - r, r };
	members_run(3);
	members_check_ok(3);
	for (uint32_t r = 0; r < 3; r++) {
		for (uint32_t s = 0; s < 3; s++) {
			CHECK_EQ(members[r].boot.peers[s].info.process, ~UINT64_C(0) - s);
			CHECK_EQ(members[r].boot.peers[s].info.flags, s);
		}
	}
	members_leave(3);
}

static int error_of(int rc)
{
	return rc == 0 ? 0 : errno;
}

/* Each holds a port where its host refuses connections, and all know which. */
TEST(quiet_ports)
{
	members_init(3);
	members_run(3);
	members_check_ok(3);
	for (uint32_t r = 0; r < 3; r++) {
		const struct hk__boot_peer *peer = &members[0].boot.peers[r];
		struct hk__place place = { peer->addr, peer->addr_len };
		int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		CHECK(fd >= 0);
		for (uint32_t s = 0; s < 3; s++)
			CHECK_EQ(members[s].boot.peers[r].quiet_port, peer->quiet_port);
		CHECK(peer->quiet_port != hk__place_port(&place));
		hk__place_port_set(&place, peer->quiet_port);
		CHECK_EQ(error_of(connect(fd, (struct sockaddr *)&place.addr, place.len)),
			 ECONNREFUSED);
		close(fd);
		/* Nobody else gets it. */
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
		CHECK_EQ(error_of(bind(fd, (struct sockaddr *)&place.addr, place.len)), EADDRINUSE);
		close(fd);
	}
	members_leave(3);
}

/* A run's key is its own. */
TEST(keys_differ_from_run_to_run)
{
	unsigned char key[HK__KEY_BYTES];

	members_init(2);
	members_run(2);
	members_check_ok(2);
	memcpy(key, members[0].boot.key, sizeof(key));
	CHECK(memcmp(key, members[0].spec.key, sizeof(key)) != 0);
	members_leave(2);
	members_run(2);
	members_check_ok(2);
	CHECK(memcmp(key, members[0].boot.key, sizeof(key)) != 0);
	members_leave(2);
}

TEST(forever_is_a_time)
{
	members_init(2);
	members[0].spec.timeout_ns = members[1].spec.timeout_ns = UINT64_MAX;
	members_run(2);
	members_check_ok(2);
	members_leave(2);
}

TEST(rank_0_comes_last)
{
	members_init(4);
	members[0].delay_ms = 300;
	members_run(4);
	members_check_ok(4);
	members_leave(4);
}

/* ---- addresses ---- */

TEST(given_port)
{
	members_init(3);
	members_address(3, "127.0.0.1", port_free("127.0.0.1"));
	members_run(3);
	members_check_ok(3);
	check_group(3, "aaa");
	CHECK_EQ(members[1].boot.peers[0].addr.ss_family, AF_INET);
	members_leave(3);
}

TEST(ipv6)
{
	uint16_t port = port_free("::1");

	if (!port)
		SKIP("no IPv6 here");
	members_init(3);
	members_address(3, "::1", port);
	members[2].spec.host_id[0] = 'b';
	members_run(3);
	members_check_ok(3);
	check_group(3, "aab");
	CHECK_EQ(members[1].boot.peers[0].addr.ss_family, AF_INET6);
	members_leave(3);
}

TEST(by_name)
{
	members_init(3);
	members_address(3, "localhost", port_free("127.0.0.1"));
	members_run(3);
	members_check_ok(3);
	check_group(3, "aaa");
	members_leave(3);
}

/* Not an address of this host by name; rank 0 listens everywhere, others find it. */
TEST(address_of_nobody_here)
{
	members_init(3);
	uint16_t port = port_free("127.0.0.1");
	members_address(3, "127.0.0.1", port);
	members_address(1, "203.0.113.7", port);
	members_run(3);
	members_check_ok(3);
	check_group(3, "aaa");
	members_leave(3);
}

TEST(rank_0_is_elsewhere)
{
	members_init(2);
	members_address(1, "203.0.113.7", 0);
	members[0].spec.host_found = true;
	members[0].spec.launcher = "slurm";
	members_start(0, 1);
	members_wait(0, 1);
	CHECK_EQ(members[0].status, HK_EINVAL);
	CHECK_HAS(members[0].why.text, "rank 0 is not on 203.0.113.7, where slurm");
	CHECK_HAS(members[0].why.text, "HOCKET_ADDR");
}

TEST(interface)
{
	members_init(2);
	for (uint32_t r = 0; r < 2; r++)
		(void)snprintf(members[r].spec.iface, 16, "%s", r ? "127.0.0.1" : "lo");
	members_run(2);
	members_check_ok(2);
	check_group(2, "aa");
	members_leave(2);

	members_init(2);
	(void)snprintf(members[1].spec.iface, 16, "nothere0");
	members[0].spec.timeout_ns = SECOND;
	members_run(2);
	CHECK_EQ(members[1].status, HK_EINVAL);
	CHECK_HAS(members[1].why.text, "interface nothere0");
	CHECK_EQ(members[0].status, HK_ETIMEDOUT);
}

/* ---- memory that runs out ---- */

struct failing {
	struct hk_alloc alloc;
	size_t calls, fail_at, blocks;
};

static void *failing_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct failing *failing = ctx;

	(void)size_old;
	if (size_new && ++failing->calls == failing->fail_at)
		return NULL;
	failing->blocks += !ptr;
	if (size_new)
		return realloc(ptr, size_new);
	failing->blocks--;
	free(ptr);
	return NULL;
}

/* Of one of two ranks, each allocation fails once: both return, nothing leaks. */
static void fail_each(uint32_t who)
{
	unsigned before = fds_open();

	for (size_t at = 1;; at++) {
		struct failing failing = { { failing_resize, NULL }, 0, at, 0 };

		failing.alloc.ctx = &failing;
		members_init(2);
		for (uint32_t r = 0; r < 2; r++) {
			members[r].spec.timeout_ns = 2 * SECOND;
			members[r].spec.host_id[0] = at % 2 ? 'a' : (char)('a' + r);
		}
		members[who].spec.alloc = &failing.alloc;
		members_run(2);
		bool reached = failing.calls >= at;
		CHECK_EQ(members[who].status, reached ? HK_ENOMEM : HK_OK);
		members_leave(2);
		CHECK_EQ(failing.blocks, 0);
		CHECK_EQ(fds_open(), before);
		if (!reached)
			break;
	}
}

TEST(no_memory_at_rank_0)
{
	fail_each(0);
}

TEST(no_memory_at_rank_1)
{
	fail_each(1);
}

/* ---- processes ---- */

/* All write, wait for each other in the memory they share, and read. */
static void process_check(const struct hk__boot *boot)
{
	void *map;

	CHECK_EQ(hk__shm_segment_map(boot->segment_fd, 0, boot->nlocal * SEGMENT_BYTES, &map),
		 HK_OK);
	_Atomic uint32_t *count = map;
	uint32_t *own = (uint32_t *)(void *)((char *)map +
					     boot->peers[boot->rank].local * SEGMENT_BYTES + 64);
	*own = boot->rank + 1;
	atomic_fetch_add(count, 1);
	uint64_t deadline = hk__now_ns() + 60 * SECOND;
	while (atomic_load(count) < boot->nlocal) {
		CHECK(hk__now_ns() < deadline);
		usleep(500);
	}
	for (uint32_t l = 0; l < boot->nlocal; l++)
		CHECK_EQ(*(uint32_t *)(void *)((char *)map + l * SEGMENT_BYTES + 64),
			 boot->locals[l] + 1);
	hk__shm_segment_unmap(map, boot->nlocal * SEGMENT_BYTES);
}

static void process_run(struct hk__boot_spec *spec, uint32_t rank, uint32_t nnodes)
{
	struct hk__boot boot;
	struct hk_why why = { "" };

	spec->rank = rank;
	spec->host_id[0] = (char)('a' + rank % nnodes);
	unsigned before = fds_open();
	if (hk__boot_join(spec, &why, &boot) != HK_OK)
		test_fail(__FILE__, __LINE__, "rank %u: %s", rank, why.text);
	CHECK_EQ(boot.nnodes, nnodes);
	process_check(&boot);
	hk__boot_leave(&boot);
	CHECK_EQ(fds_open(), before);
}

static void processes_run(uint32_t n, uint32_t nnodes)
{
	uint64_t begin;

	members_init(1);
	struct hk__boot_spec spec = members[0].spec;
	spec.n = n;
	begin = hk__now_ns();
	for (uint32_t r = 0; r < n; r++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (child == 0) {
			process_run(&spec, r, nnodes);
			_exit(0);
		}
	}
	for (uint32_t r = 0; r < n; r++) {
		int status;

		CHECK(wait(&status) > 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	printf("%u processes on %u hosts: %.3f s\n", n, nnodes,
	       (double)(hk__now_ns() - begin) / (double)SECOND);
}

TEST(processes_64)
{
	processes_run(64, 1);
	processes_run(64, 4);
}

TEST(processes_256)
{
#ifdef HK_SANITIZED
	processes_run(48, 1);
	processes_run(48, 3);
#else
	processes_run(256, 1);
	processes_run(256, 2);
#endif
}

/* Limits are the process's: what they do not allow is refused at once, by number. */
TEST(too_few_descriptors)
{
	struct rlimit before, limit, after;

	members_init(RANKS_MAX);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 100;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	member_run(&members[0]);
	CHECK_EQ(members[0].status, HK_ELIMIT);
	CHECK_HAS(members[0].why.text, "descriptors to meet 64 ranks, and may open 100");
	members_init(2); /* for which they do */
	members_run(2);
	members_check_ok(2);
	members_leave(2);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
	CHECK_EQ(after.rlim_cur, 100);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* A rank that dies while others wait is not waited for. */
TEST(rank_dies)
{
	members_init(3);
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		(void)alarm(1);
		member_run(&members[2]);
		_exit(1);
	}
	members_start(0, 1);
	members_wait(0, 1);
	CHECK_EQ(members[0].status, HK_EPEER);
	CHECK_HAS(members[0].why.text, "rank 2 joined, and left before all ranks had joined");
	CHECK_EQ(waitpid(child, NULL, 0), child);
}
