/* SPDX-License-Identifier: Apache-2.0 */
/* stranger_test.c - a line for each place that strangers come from, and few in all. */
#include "harness.h"
#include "net/stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <unistd.h>

static int log_fd, stderr_was;
static char text[1 << 16];

static void log_begin(void)
{
	log_fd = memfd_create("log", MFD_CLOEXEC);
	stderr_was = dup(STDERR_FILENO);
	CHECK(log_fd >= 0 && stderr_was >= 0);
	CHECK(dup2(log_fd, STDERR_FILENO) >= 0);
}

/* How many lines there were; they are in text. */
static uint32_t log_end(void)
{
	uint32_t lines = 0;

	CHECK(dup2(stderr_was, STDERR_FILENO) >= 0);
	close(stderr_was);
	ssize_t len = pread(log_fd, text, sizeof(text) - 1, 0);
	CHECK(len >= 0);
	text[len] = '\0';
	close(log_fd);
	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	return lines;
}

static struct hk__origin from(uint32_t address, uint16_t port)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = port,
				    .sin_addr.s_addr = htonl(address) };
	struct sockaddr_storage addr = { 0 };

	memcpy(&addr, &four, sizeof(four));
	return hk__origin_of(&addr);
}

static void note(struct hk__strangers *strangers, struct hk__origin origin)
{
	hk__stranger_note(strangers, &origin, "rank 3", "it has no key");
}

TEST(one_line_for_each_host)
{
	struct hk__strangers strangers = { 0 };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_storage addr = { 0 };

	memcpy(&addr, &six, sizeof(six));
	log_begin();
	for (uint16_t i = 0; i < 100; i++) {
		note(&strangers, from(0x0a000001, i));
		note(&strangers, from(0x0a000002, i));
		note(&strangers, hk__origin_of(&addr));
		note(&strangers, hk__origin_user(1234));
	}
	CHECK_EQ(log_end(), 4);
	CHECK_HAS(text, "hocket: rank 3 turned 10.0.0.1 away: it has no key\n");
	CHECK_HAS(text, "hocket: rank 3 turned 10.0.0.2 away: it has no key\n");
	CHECK_HAS(text, "hocket: rank 3 turned ::1 away: it has no key\n");
	CHECK_HAS(text, "hocket: rank 3 turned a process of user 1234 away: it has no key\n");
}

TEST(no_more_lines_than_places)
{
	struct hk__strangers strangers = { 0 };

	log_begin();
	for (uint32_t i = 0; i < 10000; i++)
		note(&strangers, from(0x0a000000 + i, 1));
	CHECK_EQ(log_end(), HK__STRANGERS_MAX + 1);
	CHECK_HAS(text, "from more than 64 addresses: further ones are not logged\n");
}

TEST(who_leaves_without_a_word_may_be_known_later)
{
	struct hk__strangers strangers = { 0 };

	log_begin();
	for (uint32_t i = 0; i < 3; i++) {
		struct hk__origin rank = from(0x0a000001, 1), other = from(0x0a000002, 2);

		hk__stranger_left(&strangers, &rank);
		hk__stranger_left(&strangers, &other);
		hk__stranger_proved(&strangers, &rank);
	}
	hk__strangers_end(&strangers, "rank 3");
	for (uint32_t i = 0; i < 1000; i++) {
		struct hk__origin more = from(0x0b000000 + i, 1);

		hk__stranger_left(&strangers, &more);
	}
	hk__strangers_end(&strangers, "rank 3");
	CHECK_EQ(log_end(), 1 + HK__SILENT_MAX);
	CHECK_HAS(
		text,
		"hocket: rank 3 turned 10.0.0.2 away: it disconnected without sending anything\n");
	CHECK(!strstr(text, "10.0.0.1 "));
}

TEST(nobody_wants_to_know)
{
	struct hk__strangers strangers = { 0 };

	CHECK_EQ(setenv("HOCKET_LOG", "off", 1), 0);
	log_begin();
	note(&strangers, from(0x0a000001, 1));
	CHECK_EQ(log_end(), 0);
}
