/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_peer_test.c - what becomes known of a rank whose connection ends: that it
 * left, is lost, or dead; that it is back; that one which is slow is neither.
 */
#include "harness.h"
#include "net/puppet.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#define SHORT_NS UINT64_C(400000000)

/* What rank 1 was told of rank 0. */
static struct {
	uint32_t times[HK_NET_DEAD + 1];
	char why[200];
	char note[HK_NOTE_MAX + 1];
} heard;

static void hear(void *ctx, const struct hk_net_event *event)
{
	(void)ctx;
	CHECK_EQ(event->rank, 0);
	heard.times[event->what]++;
	if (event->why)
		(void)snprintf(heard.why, sizeof(heard.why), "%s", event->why);
	if (event->what == HK_NET_TOLD)
		memcpy(heard.note, event->note, event->len);
}

static void listen_to_events(void)
{
	memset(&heard, 0, sizeof(heard));
	nets[1]->event = hear;
}

static void check_heard(uint32_t left, uint32_t lost, uint32_t dead)
{
	CHECK_EQ(heard.times[HK_NET_LEFT], left);
	CHECK_EQ(heard.times[HK_NET_LOST], lost);
	CHECK_EQ(heard.times[HK_NET_DEAD], dead);
}

/* Rank 1 waits as one does in an operation, until it hears so, or for a while. */
static void wait_for(enum hk_net_what what, uint64_t ns)
{
	uint64_t deadline = hk__now_ns() + ns;

	while (!heard.times[what] && hk__now_ns() < deadline) {
		poll_all();
		hk__net_watch(nets[1]);
		CHECK_EQ(hk__net_wait(nets[1], 1000000), HK_OK);
	}
}

#define FOREVER UINT64_C(60000000000)

/* A port that is there, and whose process never looks. */
static int deaf_listener(uint32_t rank)
{
	close(listen_as(rank));
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	static const int one = 1;

	CHECK(fd >= 0);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&addresses[rank], addresses_len), 0);
	CHECK_EQ(listen(fd, 0), 0);
	return fd;
}

/* ---- how it ends ---- */

TEST(who_listens_no_more_is_dead)
{
	struct hk_chan *in, *again;
	struct hk_chan_spec here = spec_to(0, 5);
	uint32_t messages;

	close(listen_as(0));
	open_one(1, key, listen_as(1));
	listen_to_events();
	int fd = puppet_rank(&in);
	puppet_frame(fd, (struct wire_frame){ WIRE_DATA, 0, 0, 0 });
	close(fd);
	CHECK_EQ(end_of(in, &messages), HK_EPEER);
	CHECK_EQ(messages, 1);
	CHECK_HAS(nets[1]->why.text, "rank 0 (127.0.0.1:");
	CHECK_HAS(nets[1]->why.text, "its process has ended");
	poll_all();
	check_heard(0, 0, 1);
	/* Nor will it come back. */
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &again), HK_OK);
	CHECK_EQ(end_of(again, &messages), HK_EPEER);
	hk__chan_close(again);
	hk__chan_close(in);
	check_heard(0, 0, 1);
	close_ranks();
}

TEST(who_lives_is_lost_and_comes_back)
{
	struct hk_chan *in, *pair[2];
	uint32_t messages;
	void *slot;

	open_ranks(2);
	listen_to_events();
	for (uint32_t i = 0; i < 3; i++) {
		struct hk_chan_spec there = spec_to(0, 9);
		struct hk_chan *out;

		CHECK_EQ(hk__chan_open_send(nets[1], &there, &out), HK_OK);
		int fd = puppet_rank(&in);
		close(fd);
		CHECK_EQ(end_of(in, &messages), HK_EPEER);
		CHECK_HAS(nets[1]->why.text, "it has closed its connection");
		CHECK_EQ(hk__chan_reserve(out, 4, &slot), HK_EPEER);
		poll_all();
		check_heard(0, 1, 0);
		/* Channels from now on have another connection; the old ones have none. */
		open_pair(0, 1, 3, pair);
		exchange(pair, 100);
		exchange(pair, 100000);
		CHECK_EQ(end_of(in, &messages), HK_EPEER);
		close_pair(pair);
		hk__chan_close(in);
		hk__chan_close(out);
		hk__net_close(nets[0]);
		open_one(0, key, listen_as(0));
		if (i == 0) {
			/* It left, in good order, and is not to come back: another job begins. */
			wait_for(HK_NET_LEFT, UINT64_C(50000000));
			check_heard(0, 1, 0);
		}
		hk__net_close(nets[1]);
		open_one(1, key, listen_as(1));
		listen_to_events();
	}
	close_ranks();
}

/* The system of its host answers for it: it may be slow, or stopped. */
TEST(who_does_not_look_is_lost_and_dies_later)
{
	struct hk_chan *in;
	uint32_t messages;

	int listener = deaf_listener(0);
	open_one(1, key, listen_as(1));
	listen_to_events();
	int fd = puppet_rank(&in);
	close(fd);
	CHECK_EQ(end_of(in, &messages), HK_EPEER);
	poll_all();
	check_heard(0, 1, 0);
	CHECK_STR(heard.why, "it has closed its connection");
	wait_for(HK_NET_DEAD, 2 * SHORT_NS);
	check_heard(0, 1, 0);
	close(listener);
	wait_for(HK_NET_DEAD, FOREVER);
	check_heard(0, 1, 1);
	CHECK_STR(heard.why, "its process has ended");
	hk__chan_close(in);
	close_ranks();
}

TEST(a_good_end_is_told_from_a_bad_one)
{
	struct hk_chan *pair[2], *late;
	struct hk_chan_spec here = spec_to(0, 1);
	uint32_t messages;
	void *slot;

	open_ranks(2);
	listen_to_events();
	open_pair(0, 1, 0, pair);
	exchange(pair, 10);
	CHECK_EQ(hk__chan_reserve(pair[0], 1000, &slot), HK_OK);
	CHECK(slot);
	hk__chan_post(pair[0], 1000, 0);
	hk__chan_close(pair[0]);
	hk__net_close(nets[0]);
	nets[0] = NULL;
	CHECK_EQ(end_of(pair[1], &messages), HK_EPEER);
	CHECK_EQ(messages, 1);
	CHECK_HAS(nets[1]->why.text, "it has left the job");
	poll_all();
	check_heard(1, 0, 0);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &late), HK_OK);
	CHECK_EQ(end_of(late, &messages), HK_EPEER);
	CHECK_HAS(nets[1]->why.text, "it has left the job");
	hk__chan_close(late);
	hk__chan_close(pair[1]);
	check_heard(1, 0, 0);
	close_ranks();
}

/* Nonsense ends a connection at once; poll goes on. */
TEST(who_talks_nonsense_is_lost)
{
	struct hk_chan *in;
	uint32_t messages;

	open_ranks(2);
	listen_to_events();
	int fd = puppet_rank(&in);
	puppet_frame(fd, (struct wire_frame){ 77, 0, 0, 0 });
	CHECK_EQ(end_of(in, &messages), HK_EIO);
	poll_all();
	check_heard(0, 1, 0);
	CHECK_STR(heard.why, "it sent what is no frame");
	check_job_goes_on();
	hk__chan_close(in);
	close(fd);
	close_ranks();
}

TEST(a_new_connection_takes_the_place_of_an_old_one)
{
	struct hk_chan *in, *again;
	struct hk_chan_spec here = spec_to(0, 4);
	unsigned char frame[WIRE_FRAME_BYTES];
	uint32_t messages;

	open_ranks(2);
	listen_to_events();
	int fd = puppet_rank(&in);
	puppet_frame(fd, (struct wire_frame){ WIRE_DATA, 0, 0, 0 });
	int anew = puppet_connect(1);
	CHECK(puppet_greet(anew, key, (struct wire_claim){ 0, 1, 0, 1, 0 }));
	CHECK(puppet_is_cut_off(fd));
	CHECK_EQ(end_of(in, &messages), HK_EPEER);
	CHECK_EQ(messages, 1);
	CHECK_HAS(nets[1]->why.text, "it has connected anew");
	check_heard(0, 1, 0);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &again), HK_OK);
	CHECK(puppet_read(anew, frame, sizeof(frame)));
	CHECK_EQ(wire_get_frame(frame).type, WIRE_UP);
	CHECK(puppet_read(anew, frame, sizeof(frame)));
	CHECK_EQ(wire_get_frame(frame).type, WIRE_OPEN);
	CHECK_EQ(wire_get_open(frame).from_lane, 4);
	/* What has no key takes nobody's place. */
	int stranger = puppet_connect(1);
	CHECK(!puppet_greet(stranger, (const unsigned char *)"another key, not the job's own ..",
			    (struct wire_claim){ 0, 1, 0, 1, 0 }));
	puppet_frame(anew, (struct wire_frame){ WIRE_DATA, 0, 0, 0 });
	close(anew);
	CHECK_EQ(end_of(again, &messages), HK_EPEER);
	CHECK_EQ(messages, 1);
	hk__chan_close(again);
	hk__chan_close(in);
	close(fd);
	close(stranger);
	close_ranks();
}

/* ---- who says nothing ---- */

TEST(one_that_is_to_connect_and_is_dead)
{
	struct hk_chan_spec here = spec_to(0, 0);
	struct hk_chan *in;
	uint32_t messages;

	how.silence_ns = SHORT_NS;
	close(listen_as(0));
	open_one(1, key, listen_as(1));
	listen_to_events();
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &in), HK_OK);
	wait_for(HK_NET_DEAD, FOREVER);
	check_heard(0, 0, 1);
	CHECK_EQ(end_of(in, &messages), HK_EPEER);
	hk__chan_close(in);
	close_ranks();
}

/* In a network of this process's own, that leads nowhere. */
TEST(one_that_is_to_connect_and_is_out_of_reach)
{
	struct hk_chan_spec here = spec_to(0, 0);
	struct sockaddr_in nowhere = { .sin_family = AF_INET,
				       .sin_port = htons(4000),
				       .sin_addr.s_addr = htonl(0x0a4d0001) };
	struct hk_chan *in;
	uint32_t messages;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0)
		SKIP("no network of our own can be had");
	how.silence_ns = SHORT_NS;
	open_one(1, key, listen_as(1));
	memcpy(&addresses[0], &nowhere, sizeof(nowhere));
	listen_to_events();
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &in), HK_OK);
	wait_for(HK_NET_LOST, FOREVER);
	check_heard(0, 1, 0);
	CHECK_HAS(heard.why, "it cannot be reached: ");
	CHECK_EQ(end_of(in, &messages), HK_EPEER);
	hk__chan_close(in);
	close_ranks();
}

/* Whose queue is full lets no more in, and says nothing: but its host is there. */
static void crowd_at(const struct sockaddr *addr, int fds[3])
{
	for (int i = 0; i < 3; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		CHECK(fds[i] >= 0);
		(void)connect(fds[i], addr, addresses_len);
	}
}

static void crowd_leave(int fds[3])
{
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static struct sockaddr_in quiet; /* of every rank; its host refuses there while nobody listens */

static uint16_t quiet_port_of(void *ctx, uint32_t rank)
{
	(void)ctx;
	(void)rank;
	return ntohs(quiet.sin_port);
}

/* Silence is short, and there is a quiet port: the socket holds it. */
static int quiet_bind(void)
{
	socklen_t len = sizeof(quiet);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	quiet = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&quiet, sizeof(quiet)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&quiet, &len), 0);
	how.quiet_port = quiet_port_of;
	how.silence_ns = SHORT_NS;
	return fd;
}

TEST(one_that_is_to_connect_and_has_a_crowd_at_its_door)
{
	struct hk_chan_spec here = spec_to(0, 0);
	struct hk_message message;
	struct hk_chan *in;
	int fds[3], quiet_fd = quiet_bind();

	int listener = deaf_listener(0);
	crowd_at((struct sockaddr *)&addresses[0], fds);
	open_one(1, key, listen_as(1));
	listen_to_events();
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &in), HK_OK);
	wait_for(HK_NET_LOST, 8 * SHORT_NS);
	check_heard(0, 0, 0);
	CHECK_EQ(hk__chan_peek(in, &message), HK_OK);
	close(listener);
	wait_for(HK_NET_DEAD, FOREVER);
	check_heard(0, 0, 1);
	hk__chan_close(in);
	crowd_leave(fds);
	close(quiet_fd);
	close_ranks();
}

/* Its quiet port is asked, and no other: where that is silent too, it is out of reach. */
TEST(one_with_a_crowd_at_its_door_that_is_silent_elsewhere)
{
	struct hk_chan_spec here = spec_to(0, 0);
	struct hk_chan *in;
	int fds[3], quiet_fds[3], quiet_fd = quiet_bind();

	int listener = deaf_listener(0);
	crowd_at((struct sockaddr *)&addresses[0], fds);
	CHECK_EQ(listen(quiet_fd, 0), 0);
	crowd_at((struct sockaddr *)&quiet, quiet_fds);
	open_one(1, key, listen_as(1));
	listen_to_events();
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &in), HK_OK);
	wait_for(HK_NET_LOST, FOREVER);
	check_heard(0, 1, 0);
	CHECK_HAS(heard.why, "it cannot be reached: ");
	hk__chan_close(in);
	crowd_leave(fds);
	crowd_leave(quiet_fds);
	close(listener);
	close(quiet_fd);
	close_ranks();
}

/* The same for who connects: it tries until it may. */
TEST(one_to_connect_to_that_has_a_crowd_at_its_door)
{
	struct hk_chan_spec there = spec_to(1, 0);
	struct hk_chan *out;
	void *slot = NULL;
	int fds[3], quiet_fd = quiet_bind();

	int listener = deaf_listener(1);
	crowd_at((struct sockaddr *)&addresses[1], fds);
	open_one(0, key, listen_as(0));
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &out), HK_OK);
	uint64_t until = hk__now_ns() + 8 * SHORT_NS;
	while (hk__now_ns() < until) {
		CHECK_EQ(hk__net_wait(nets[0], 1000000), HK_OK);
		CHECK_EQ(hk__chan_reserve(out, 4, &slot), HK_OK);
		CHECK(!slot);
	}
	crowd_leave(fds);
	CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	open_one(1, key, listener); /* it looks at last */
	hk__chan_close(out);
	check_job_goes_on();
	close(quiet_fd);
	close_ranks();
}

TEST(one_that_is_to_connect_and_is_busy)
{
	struct hk_chan_spec here = spec_to(0, 0);
	struct hk_chan *in;
	struct hk_message message;

	how.silence_ns = SHORT_NS;
	open_one(1, key, listen_as(1));
	int listener = listen_as(0);
	listen_to_events();
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &in), HK_OK);
	wait_for(HK_NET_DEAD, 4 * SHORT_NS);
	/* It looks at last, and all is well. */
	open_one(0, key, listener);
	wait_for(HK_NET_DEAD, SHORT_NS);
	check_heard(0, 0, 0);
	CHECK_EQ(hk__chan_peek(in, &message), HK_OK);
	hk__chan_close(in);
	check_job_goes_on();
	close_ranks();
}

/* Its system takes what fits and says that it is there: it is stopped, not gone. */
TEST(one_that_reads_nothing)
{
	const uint32_t large = 16u << 20;
	struct hk_chan_spec there = spec_to(0, 0);
	struct wire_open open = { 0, 0, 1, SLOTS, 16u << 20 };
	unsigned char bytes[WIRE_FRAME_BYTES] = { 0 };
	struct hk_chan *in, *out;
	void *slot = NULL;

	how.silence_ns = SHORT_NS;
	there.slot_bytes = large;
	open_ranks(2);
	listen_to_events();
	int fd = puppet_rank(&in);
	CHECK_EQ(hk__chan_open_send(nets[1], &there, &out), HK_OK);
	wire_put_frame(bytes, &(struct wire_frame){ .type = WIRE_OPEN });
	wire_put_open(bytes, &open);
	puppet_write(fd, bytes, sizeof(bytes));
	for (int i = 0; i < ROUNDS && !slot; i++) {
		poll_all();
		CHECK_EQ(hk__chan_reserve(out, large, &slot), HK_OK);
	}
	CHECK(slot);
	memset(slot, 1, large);
	hk__chan_post(out, large, 0);
	wait_for(HK_NET_LOST, 5 * SHORT_NS);
	check_heard(0, 0, 0);
	CHECK(hk__chan_lent(out));
	close(fd);
	wait_for(HK_NET_LOST, FOREVER);
	check_heard(0, 1, 0);
	hk__chan_close(out);
	hk__chan_close(in);
	close_ranks();
}

TEST(a_probe_is_no_connection)
{
	struct hk_chan *pair[2];

	open_ranks(2);
	listen_to_events();
	open_pair(0, 1, 0, pair);
	exchange(pair, 10);
	for (uint32_t rank = 0; rank < RANKS; rank += 2) {
		struct wire_claim claim = { rank, 1, HK_NONE, 1, 0 };
		unsigned char hello[WIRE_HELLO_BYTES], out[WIRE_CLAIM_BYTES];
		unsigned char answer[WIRE_ANSWER_BYTES];
		struct hk__auth auth = { .about = out, .about_len = WIRE_ABOUT_BYTES };
		int fd = puppet_connect(1);

		CHECK(puppet_read(fd, hello, sizeof(hello)));
		puppet_claim(key, hello, &claim, out);
		puppet_write(fd, out, sizeof(out));
		CHECK(puppet_read(fd, answer, sizeof(answer)));
		memcpy(auth.key, key, sizeof(key));
		memcpy(auth.accepts, hello + 12, HK__NONCE_BYTES);
		memcpy(auth.connects, out + WIRE_ABOUT_BYTES, HK__NONCE_BYTES);
		CHECK(hk__auth_holds(&auth, HK__AUTH_ACCEPTS, answer));
		exchange(pair, 20);
		if (rank)
			puppet_frame(fd, (struct wire_frame){ WIRE_UP, 0, 0, 0 });
		else
			CHECK_EQ(shutdown(fd, SHUT_WR), 0);
		CHECK(puppet_is_cut_off(fd));
		close(fd);
	}
	CHECK_EQ(hk__tcp_refused(nets[1]), 0);
	exchange(pair, 30);
	check_heard(0, 0, 0);
	close_pair(pair);
	close_ranks();
}

/* ---- notes ---- */

static void tell(uint32_t rank, const char *note)
{
	hk__net_tell(nets[rank], note, (uint32_t)strlen(note));
}

TEST(notes_of_before_there_was_a_connection)
{
	struct hk_chan *pair[2];
	char note[HK_NOTE_MAX + 1] = "";

	open_ranks(2);
	listen_to_events();
	for (int i = 0; i < 300; i++) {
		(void)snprintf(note, sizeof(note), "note %d", i);
		tell(0, note);
	}
	open_pair(0, 1, 0, pair);
	exchange(pair, 10);
	/* As many as are kept; the last is the last. */
	CHECK_EQ(heard.times[HK_NET_TOLD], 256);
	CHECK_STR(heard.note, "note 299");
	tell(0, "and one more");
	exchange(pair, 10);
	CHECK_EQ(heard.times[HK_NET_TOLD], 257);
	CHECK_STR(heard.note, "and one more");
	close_pair(pair);
	close_ranks();
}

/* Over one of the connections of a pair, and ahead of what waits. */
TEST(notes_over_several_connections)
{
	struct hk_chan *pairs[12][2];

	how.conns = 4;
	open_ranks(2);
	listen_to_events();
	for (uint32_t i = 0; i < 12; i++) {
		open_pair(0, 1, i, pairs[i]);
		exchange(pairs[i], 10);
	}
	for (uint32_t i = 0; i < 100; i++)
		tell(0, "hear, hear");
	for (uint32_t i = 0; i < 12; i++)
		exchange(pairs[i], 100);
	CHECK_EQ(heard.times[HK_NET_TOLD], 100);
	for (uint32_t i = 0; i < 12; i++)
		close_pair(pairs[i]);
	hk__net_close(nets[0]);
	nets[0] = NULL;
	wait_for(HK_NET_LEFT, FOREVER);
	for (int i = 0; i < QUIET; i++)
		poll_all();
	check_heard(1, 0, 0);
	close_ranks();
}
