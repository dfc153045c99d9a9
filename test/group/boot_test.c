/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_test.c - ranks that meet: as threads and as processes, on one host and
 * on hosts that only call themselves different; and those who do not belong.
 */
#include "group/boot.h"
#include "group/line.h"
#include "harness.h"
#include "net/shm/shm.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT_BYTES ((size_t)1 << 20)
#define SECOND UINT64_C(1000000000)
#define RANKS_MAX 64u

struct member {
	struct hk__boot_spec spec;
	struct hk__boot boot;
	struct hk_why why;
	enum hk_status status;
	unsigned delay_ms;
	pthread_t thread;
};

static struct member members[RANKS_MAX];

/* Every call is another job, so that tests may run side by side. */
static void job_name(char *name, size_t size)
{
	static unsigned count;

	(void)snprintf(name, size, "boot-test-%ld-%u", (long)getpid(), count++);
}

static void members_init(uint32_t n)
{
	char job[64];

	job_name(job, sizeof(job));
	for (uint32_t r = 0; r < n; r++) {
		struct hk__boot_spec *spec = &members[r].spec;

		members[r] = (struct member){ .status = HK_INPROGRESS };
		spec->rank = r;
		spec->n = n;
		spec->launcher = "test";
		spec->share = true;
		spec->segment_bytes = SEGMENT_BYTES;
		spec->timeout_ns = 60 * SECOND;
		(void)snprintf(spec->host, sizeof(spec->host), "127.0.0.1");
		(void)snprintf(spec->job, sizeof(spec->job), "%s", job);
		(void)snprintf(spec->host_id, sizeof(spec->host_id), "a");
		hk__auth_key(job, spec->key);
	}
}

static void *member_run(void *arg)
{
	struct member *member = arg;

	usleep(member->delay_ms * 1000);
	member->status = hk__boot_join(&member->spec, &member->why, &member->boot);
	return NULL;
}

static void members_start(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		CHECK_EQ(pthread_create(&members[i].thread, NULL, member_run, &members[i]), 0);
}

static void members_wait(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		CHECK_EQ(pthread_join(members[i].thread, NULL), 0);
}

static void members_run(uint32_t n)
{
	members_start(0, n);
	members_wait(0, n);
}

static void members_leave(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		if (members[r].status == HK_OK)
			hk__boot_leave(&members[r].boot);
}

static void members_check_ok(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		if (members[r].status != HK_OK)
			test_fail(__FILE__, __LINE__, "rank %u: %s: %s", r,
				  hk_status_name(members[r].status), members[r].why.text);
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

/* ---- what a group is ---- */

/* What rank r writes in its segment, rank s reads there. */
static void check_segments(uint32_t n)
{
	static char *at[RANKS_MAX];

	for (uint32_t r = 0; r < n; r++) {
		const struct hk__boot *boot = &members[r].boot;
		void *map;

		CHECK_EQ(hk__shm_segment_map(boot->segment_fd, 0, boot->nlocal * SEGMENT_BYTES,
					     &map),
			 HK_OK);
		at[r] = map;
		at[r][boot->peers[r].local * SEGMENT_BYTES + 17] = (char)(r + 1);
	}
	for (uint32_t r = 0; r < n; r++) {
		const struct hk__boot *boot = &members[r].boot;

		for (uint32_t l = 0; l < boot->nlocal; l++)
			CHECK_EQ(at[r][l * SEGMENT_BYTES + 17], (char)(boot->locals[l] + 1));
	}
	for (uint32_t r = 0; r < n; r++)
		hk__shm_segment_unmap(at[r], members[r].boot.nlocal * SEGMENT_BYTES);
}

/* A bell that rank r rings is heard by its owner alone. */
static void check_bells(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++) {
		const struct hk__boot *boot = &members[r].boot;

		CHECK_EQ(boot->bells != NULL, boot->nnodes > 1 && boot->nlocal > 1);
		for (uint32_t l = 0; boot->bells && l < boot->nlocal; l++) {
			const struct hk__boot *other = &members[boot->locals[l]].boot;
			uint64_t one = 1, heard = 0;

			CHECK_EQ(write(boot->bells[l], &one, sizeof(one)), sizeof(one));
			CHECK_EQ(read(other->bells[l], &heard, sizeof(heard)), sizeof(heard));
			CHECK_EQ(heard, 1);
			CHECK_EQ(read(other->bells[l], &heard, sizeof(heard)), -1);
			CHECK_EQ(errno, EAGAIN);
		}
	}
}

/* Who connects to what the table says of rank s reaches the listener of rank s. */
static void check_reach(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++) {
		for (uint32_t s = 0; s < n; s++) {
			const struct hk__boot_peer *peer = &members[r].boot.peers[s];
			struct hk__place place = { peer->addr, peer->addr_len };
			int fd;

			CHECK_EQ(hk__line_connect(&place, hk__line_now() + 10 * SECOND, &fd),
				 HK_OK);
			struct pollfd ready = { members[s].boot.listen_fd, POLLIN, 0 };
			CHECK_EQ(poll(&ready, 1, 10000), 1);
			int other = accept(members[s].boot.listen_fd, NULL, NULL);
			CHECK(other >= 0);
			close(other);
			close(fd);
		}
	}
}

/* host_of[r]: the host of rank r, as a letter. */
static void check_group(uint32_t n, const char *host_of)
{
	for (uint32_t r = 0; r < n; r++) {
		const struct hk__boot *boot = &members[r].boot;
		uint32_t nnodes = 0, nlocal = 0;

		CHECK_EQ(boot->rank, r);
		CHECK_EQ(boot->n, n);
		CHECK_EQ(memcmp(boot->key, members[0].boot.key, HK__KEY_BYTES), 0);
		for (uint32_t s = 0; s < n; s++) {
			uint32_t first = (uint32_t)(strchr(host_of, host_of[s]) - host_of);
			uint32_t local = 0;

			for (uint32_t t = 0; t < s; t++)
				local += host_of[t] == host_of[s];
			CHECK_EQ(boot->peers[s].local, local);
			if (first == s)
				CHECK_EQ(boot->peers[s].node, nnodes++);
			else
				CHECK_EQ(boot->peers[s].node, boot->peers[first].node);
			if (host_of[s] == host_of[r])
				CHECK_EQ(boot->locals[nlocal++], s);
		}
		CHECK_EQ(boot->nnodes, nnodes);
		CHECK_EQ(boot->nlocal, nlocal);
	}
	check_segments(n);
	check_bells(n);
	if (n > 1)
		check_reach(n);
}

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

TEST(rank_0_comes_last)
{
	members_init(4);
	members[0].delay_ms = 300;
	members_run(4);
	members_check_ok(4);
	members_leave(4);
}

/* ---- addresses ---- */

/* A port that was free a moment ago, on that address. */
static uint16_t port_free(const char *host)
{
	struct hk__boot_spec spec = { .port = 1 };
	struct hk__places places;
	int fd;

	(void)snprintf(spec.host, sizeof(spec.host), "%s", host);
	CHECK_EQ(hk__places_find(&spec, NULL, &places), HK_OK);
	hk__place_port_set(&places.at[0], 0);
	if (hk__place_listen(&places.at[0], &fd) != HK_OK)
		return 0;
	close(fd);
	return hk__place_port(&places.at[0]);
}

static void members_address(uint32_t n, const char *host, uint16_t port)
{
	for (uint32_t r = 0; r < n; r++) {
		members[r].spec.port = port;
		(void)snprintf(members[r].spec.host, sizeof(members[r].spec.host), "%s", host);
	}
}

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

/* ---- those who do not fit ---- */

TEST(wrong_key)
{
	unsigned before = fds_open();

	members_init(3);
	members_address(3, "127.0.0.1", port_free("127.0.0.1"));
	hk__auth_key("another", members[2].spec.key);
	for (uint32_t r = 0; r < 3; r++)
		members[r].spec.timeout_ns = SECOND;
	members_run(3);
	CHECK_EQ(members[2].status, HK_EDENIED);
	CHECK_HAS(members[2].why.text, "HOCKET_KEY");
	CHECK_EQ(members[0].status, HK_ETIMEDOUT);
	CHECK_HAS(members[0].why.text, "rank 2 of 3 has not come");
	CHECK_HAS(members[0].why.text, "1 came with another key");
	CHECK_EQ(members[1].status, HK_ETIMEDOUT);
	CHECK_STR(members[1].why.text, members[0].why.text);
	CHECK_EQ(fds_open(), before);
}

TEST(rank_twice)
{
	unsigned before = fds_open();

	members_init(4);
	members[3].spec.rank = 2;
	members[3].delay_ms = 100;
	members_run(4);
	for (uint32_t i = 0; i < 4; i++) {
		CHECK_EQ(members[i].status, HK_EINVAL);
		CHECK_HAS(members[i].why.text, "rank 2 came twice, from 127.0.0.1:");
	}
	CHECK_EQ(fds_open(), before);
}

TEST(size_differs)
{
	members_init(4);
	members[1].spec.n = 5;
	members[1].delay_ms = 50;
	members[3].delay_ms = 200; /* comes when it is over, and still hears why */
	members_run(4);
	for (uint32_t i = 0; i < 4; i++) {
		CHECK_EQ(members[i].status, HK_EINVAL);
		CHECK_HAS(members[i].why.text, "says 5 ranks, rank 0 says 4");
	}
}

TEST(shares_differ)
{
	members_init(2);
	members[1].spec.segment_bytes *= 2;
	members_run(2);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(members[i].status, HK_EINVAL);
		CHECK_HAS(members[i].why.text, "shares 2097152 bytes of memory, rank 0 1048576");
	}
}

TEST(missing_are_named)
{
	unsigned before = fds_open();

	members_init(20);
	for (uint32_t r = 0; r < 20; r++)
		members[r].spec.timeout_ns = SECOND / 2;
	members_start(0, 3);
	members_wait(0, 3);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_EQ(members[i].status, HK_ETIMEDOUT);
		CHECK_HAS(members[i].why.text,
			  "ranks 3, 4, 5, 6, 7, 8, 9, 10 and 9 others of 20 have not come to "
			  "127.0.0.1:");
		CHECK_HAS(members[i].why.text, "in 0.5 s");
	}
	CHECK_EQ(fds_open(), before);
}

TEST(nobody_is_there)
{
	members_init(2);
	members[1].spec.timeout_ns = SECOND / 5;
	members_start(1, 2);
	members_wait(1, 2);
	CHECK_EQ(members[1].status, HK_ETIMEDOUT);
	CHECK_HAS(members[1].why.text, "rank 0 has not answered at 127.0.0.1:");
	CHECK_HAS(members[1].why.text, "in 0.2 s");
}

/* ---- strangers ---- */

static int listener_at(uint16_t port)
{
	struct hk__boot_spec spec = { .host = "127.0.0.1", .port = port };
	struct hk__places places;
	int fd;

	CHECK_EQ(hk__places_find(&spec, NULL, &places), HK_OK);
	hk__place_port_set(&places.at[0], port);
	CHECK_EQ(hk__place_listen(&places.at[0], &fd), HK_OK);
	return fd;
}

static int stranger_at(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int tries = 0; tries < 2000; tries++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(fd >= 0);
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
			return fd;
		close(fd);
		usleep(2000);
	}
	test_fail(__FILE__, __LINE__, "rank 0 does not listen");
}

TEST(strangers)
{
	char garbage[4096];
	int fds[300];
	uint16_t port = port_free("127.0.0.1");
	unsigned before = fds_open();

	memset(garbage, 'x', sizeof(garbage));
	members_init(4);
	members_address(4, "127.0.0.1", port);
	members_start(0, 1);
	/* One that is silent, one that speaks, one that leaves, and one that stops halfway. */
	int silent = stranger_at(port), loud = stranger_at(port), gone = stranger_at(port);
	int slow = stranger_at(port);
	(void)!send(loud, garbage, sizeof(garbage), MSG_NOSIGNAL);
	(void)!send(slow, garbage, 20, MSG_NOSIGNAL);
	close(gone);
	/* Fewer than the gate lets in at once. */
	for (int i = 0; i < 200; i++)
		fds[i] = stranger_at(port);
	members_start(1, 4);
	members_wait(0, 4);
	members_check_ok(4);
	check_group(4, "aaaa");
	members_leave(4);
	for (int i = 0; i < 200; i++)
		close(fds[i]);
	close(silent);
	close(loud);
	close(slow);
	CHECK_EQ(fds_open(), before);
}

/* More strangers than there is room for: the ranks wait until they are thrown out. */
TEST(strangers_in_the_way)
{
	int fds[300];
	uint16_t port = port_free("127.0.0.1");

	members_init(2);
	members_address(2, "127.0.0.1", port);
	members_start(0, 1);
	for (int i = 0; i < 300; i++)
		fds[i] = stranger_at(port);
	members_start(1, 2);
	members_wait(0, 2);
	members_check_ok(2);
	members_leave(2);
	for (int i = 0; i < 300; i++)
		close(fds[i]);
}

static uint16_t derived_port(uint32_t i)
{
	struct hk__places places;

	CHECK_EQ(hk__places_find(&members[0].spec, NULL, &places), HK_OK);
	CHECK_EQ(places.nports, 8);
	return places.ports[i];
}

/* Somebody else sits on the first port, and says nothing. */
TEST(derived_port_taken)
{
	members_init(3);
	int fd = listener_at(derived_port(0));

	members_run(3);
	members_check_ok(3);
	check_group(3, "aaa");
	members_leave(3);
	close(fd);
}

/* Another job sits there, which speaks the same language. */
TEST(derived_port_of_another_job)
{
	members_init(4);
	uint16_t port = derived_port(0);

	/* Members 2 and 3 are a job of their own, on the first port of 0 and 1. */
	for (uint32_t i = 2; i < 4; i++) {
		members[i].spec.rank = i - 2;
		members[i].spec.port = port;
		hk__auth_key("the other job", members[i].spec.key);
	}
	for (uint32_t i = 0; i < 4; i++)
		members[i].spec.n = 2;
	members[3].delay_ms = 1000; /* so that it stays there */
	members_start(2, 4);
	close(stranger_at(port));
	members_start(0, 2);
	members_wait(0, 4);
	members_check_ok(4);
	CHECK(memcmp(members[0].boot.key, members[2].boot.key, HK__KEY_BYTES) != 0);
	CHECK_EQ(memcmp(members[0].boot.key, members[1].boot.key, HK__KEY_BYTES), 0);
	members_leave(4);
}

/* Somebody sits on the given port, for good. */
TEST(given_port_taken)
{
	members_init(2);
	uint16_t port = port_free("127.0.0.1");
	int fd = listener_at(port);

	members_address(2, "127.0.0.1", port);
	for (uint32_t r = 0; r < 2; r++)
		members[r].spec.timeout_ns = SECOND / 2;
	members_run(2);
	CHECK_EQ(members[0].status, HK_EIO);
	CHECK_HAS(members[0].why.text, "Address already in use");
	CHECK_EQ(members[1].status, HK_ETIMEDOUT);
	CHECK_HAS(members[1].why.text, "no answer");
	close(fd);
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
			members[r].spec.timeout_ns = SECOND;
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
	uint64_t deadline = hk__line_now() + 60 * SECOND;
	while (atomic_load(count) < boot->nlocal) {
		CHECK(hk__line_now() < deadline);
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
	begin = hk__line_now();
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
	       (double)(hk__line_now() - begin) / (double)SECOND);
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
	CHECK_HAS(members[0].why.text, "rank 2 came, and left before all had met");
	CHECK_EQ(waitpid(child, NULL, 0), child);
}
