/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_stranger_test.c - those who do not fit: another key, a rank twice, ranks
 * that do not come, and connections from who knows whom.
 */
#include "group/boot_ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

/* ---- those who do not fit ---- */

TEST(wrong_key)
{
	unsigned before = fds_open();

	members_init(3);
	members_address(3, "127.0.0.1", port_free("127.0.0.1"));
	hk__auth_key("another", members[2].spec.key);
	for (uint32_t r = 0; r < 3; r++)
		members[r].spec.timeout_ns = 3 * SECOND;
	members_run(3);
	CHECK_EQ(members[2].status, HK_EDENIED);
	CHECK_HAS(members[2].why.text, "HOCKET_KEY");
	CHECK_EQ(members[0].status, HK_ETIMEDOUT);
	CHECK_HAS(members[0].why.text, "rank 2 of 3 has not joined");
	CHECK_HAS(members[0].why.text, "1 had another key");
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
		CHECK_HAS(members[i].why.text, "rank 2 joined twice, from 127.0.0.1:");
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

TEST(some_encrypt)
{
	members_init(3);
	members[2].spec.encrypt = true;
	members_run(3);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_EQ(members[i].status, HK_EINVAL);
		CHECK_HAS(members[i].why.text, "encrypts, rank 0 does not");
		CHECK_HAS(members[i].why.text, "HOCKET_ENCRYPT");
	}
}

TEST(missing_are_named)
{
	unsigned before = fds_open();

	members_init(20);
	for (uint32_t r = 0; r < 20; r++)
		members[r].spec.timeout_ns = SECOND * 5 / 2;
	members_start(0, 3);
	members_wait(0, 3);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_EQ(members[i].status, HK_ETIMEDOUT);
		CHECK_HAS(members[i].why.text,
			  "ranks 3, 4, 5, 6, 7, 8, 9, 10 and 9 others of 20 have not joined at "
			  "127.0.0.1:");
		CHECK_HAS(members[i].why.text, "in 2.5 s");
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

/* While nobody listens at a port, the system may connect a socket to itself: it keeps rank 0 out. */
static bool is_own(int fd, uint16_t port)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);

	CHECK_EQ(getsockname(fd, (struct sockaddr *)&from, &len), 0);
	return ntohs(from.sin_port) == port;
}

static int stranger_at(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int tries = 0; tries < 2000; tries++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(fd >= 0);
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && !is_own(fd, port))
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
