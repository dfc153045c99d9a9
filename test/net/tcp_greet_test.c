/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_greet_test.c - who may connect: who holds the key, and says who it is as
 * it should. All others are turned away, and the job goes on.
 */
#include "harness.h"
#include "net/puppet.h"

#include <unistd.h>

static const unsigned char another_key[HK__KEY_BYTES] = "the key of another job";

TEST(another_key_is_turned_away)
{
	struct hk_chan *chan;
	struct hk_chan_spec there = spec_to(2, 0);
	enum hk_status status = HK_OK;
	void *slot;

	how.connect_timeout_ns = SOON_NS;
	open_ranks(2);
	open_one(2, another_key, listen_as(2));
	check_job_goes_on();
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &chan), HK_OK);
	for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
		poll_all();
		usleep(10);
		status = hk__chan_reserve(chan, 4, &slot);
	}
	CHECK_EQ(status, HK_EPEER);
	CHECK_HAS(nets[0]->why.text, "rank 2 (127.0.0.1:");
	CHECK_HAS(nets[0]->why.text, "another key?");
	CHECK(hk__tcp_refused(nets[2]) > 0);
	CHECK_HAS(nets[2]->why.text, "rank 2 turned 127.0.0.1:");
	CHECK_HAS(nets[2]->why.text, "does not hold the job key");
	check_job_goes_on();
	hk__chan_close(chan);
	close_ranks();
}

/* Who accepts has to prove itself as well. */
TEST(a_false_rank_is_not_believed)
{
	struct hk_chan_spec there = spec_to(1, 0);
	unsigned char hello[WIRE_HELLO_BYTES] = { 0 }, claim[WIRE_CLAIM_BYTES];
	unsigned char answer[WIRE_ANSWER_BYTES] = { 1, 2, 3 };
	enum hk_status status = HK_OK;
	struct hk_chan *chan;
	void *slot;

	how.connect_timeout_ns = SOON_NS;
	int listener = listen_as(1);
	open_one(0, key, listen_as(0));
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &chan), HK_OK);
	wire_put_magic(hello);
	for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0) {
			puppet_write(fd, hello, sizeof(hello));
			CHECK(puppet_read(fd, claim, sizeof(claim)));
			puppet_write(fd, answer, sizeof(answer));
			CHECK(puppet_is_cut_off(fd));
			close(fd);
		}
		poll_all();
		status = hk__chan_reserve(chan, 4, &slot);
		CHECK(!slot);
	}
	CHECK_EQ(status, HK_EPEER);
	CHECK_HAS(nets[0]->why.text, "does not hold the job key");
	hk__chan_close(chan);
	close(listener);
	close_ranks();
}

TEST(claims_that_do_not_hold)
{
	static const struct wire_claim claims[] = {
		{ 0, 2, 0, 1, 0 },	    { 1, 1, 0, 1, 0 },		{ 2, 1, 0, 1, 0 },
		{ 0, 1, 1, 1, 0 },	    { 0, 1, 0, 2, 0 },		{ 0, 1, 0, 1, 1u << 31 },
		{ 99, 1, 0, 1, 0 },	    { UINT32_MAX, 1, 0, 1, 0 }, { 1, 1, HK_NONE, 1, 0 },
		{ RANKS, 1, HK_NONE, 1, 0 }
	};

	open_ranks(2);
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		int fd = puppet_connect(1);

		CHECK(!puppet_greet(fd, key, claims[i]));
		CHECK_EQ(hk__tcp_refused(nets[1]), i + 1);
		close(fd);
	}
	check_job_goes_on();
	close_ranks();
}

TEST(a_claim_is_of_no_use_later)
{
	unsigned char hello[WIRE_HELLO_BYTES], claim[WIRE_CLAIM_BYTES];

	open_ranks(2);
	for (int i = 0; i < 2; i++) {
		int fd = puppet_connect(1);

		CHECK(puppet_read(fd, hello, sizeof(hello)));
		if (i == 0)
			puppet_claim(key, hello, &(struct wire_claim){ 0, 1, 0, 1, 0 }, claim);
		else
			puppet_write(fd, claim, sizeof(claim));
		CHECK(i == 0 || puppet_is_cut_off(fd));
		close(fd);
	}
	CHECK_HAS(nets[1]->why.text, "does not hold the job key");
	check_job_goes_on();
	close_ranks();
}

TEST(noise_on_the_port)
{
	uint64_t seed = test_seed(5);
	unsigned char noise[400];

	open_ranks(2);
	for (int i = 0; i < 50; i++) {
		int fd = puppet_connect(1);

		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = (unsigned char)test_random(&seed);
		puppet_write(fd, noise, 1 + test_random(&seed) % sizeof(noise));
		if (i % 2)
			shutdown(fd, SHUT_WR);
		poll_all();
		close(fd);
		if (i % 10 == 0)
			check_job_goes_on();
	}
	check_job_goes_on();
	CHECK(hk__tcp_refused(nets[1]) > 0);
	close_ranks();
}

TEST(greetings_that_end_early)
{
	unsigned char hello[WIRE_HELLO_BYTES], claim[WIRE_CLAIM_BYTES];

	open_ranks(2);
	for (size_t len = 0; len < WIRE_CLAIM_BYTES; len++) {
		int fd = puppet_connect(1);

		CHECK(puppet_read(fd, hello, sizeof(hello)));
		puppet_claim(key, hello, &(struct wire_claim){ 0, 1, 0, 1, 0 }, claim);
		puppet_write(fd, claim, len);
		poll_all();
		close(fd);
	}
	check_job_goes_on();
	CHECK_EQ(hk__tcp_refused(nets[1]), WIRE_CLAIM_BYTES);
	close_ranks();
}

/* Who connects and says nothing takes no room from who does. */
TEST(a_flood_of_silence)
{
	static int fds[300];

	open_ranks(2);
	for (int i = 0; i < 300; i++) {
		fds[i] = puppet_connect(1);
		poll_all();
	}
	check_job_goes_on();
	CHECK(hk__tcp_refused(nets[1]) >= 300 - 100);
	for (int i = 0; i < 300; i++)
		close(fds[i]);
	check_job_goes_on();
	close_ranks();
}

/* A byte now and then, of a claim or of nothing: it has no more time for it. */
TEST(slow_senders)
{
	unsigned char hello[WIRE_HELLO_BYTES], claim[WIRE_CLAIM_BYTES];
	int fds[10];
	uint32_t cut_off = 0;

	open_ranks(2);
	for (int i = 0; i < 10; i++)
		fds[i] = puppet_connect(1);
	CHECK(puppet_read(fds[0], hello, sizeof(hello)));
	puppet_claim(key, hello, &(struct wire_claim){ 0, 1, 0, 1, 0 }, claim);
	for (uint32_t tick = 0; tick < 60 && cut_off < 10; tick++) {
		cut_off = 0;
		for (int i = 0; i < 10; i++)
			cut_off += send(fds[i], &claim[tick], 1, MSG_NOSIGNAL) < 0;
		check_job_goes_on();
		usleep(200000);
		poll_all();
	}
	CHECK_EQ(cut_off, 10);
	CHECK_EQ(hk__tcp_refused(nets[1]), 10);
	CHECK_HAS(nets[1]->why.text, "it took too long");
	check_job_goes_on();
	for (int i = 0; i < 10; i++)
		close(fds[i]);
	close_ranks();
}

/* What it takes to be taken for rank 1 by rank 0. */
static int puppet_accept(int listener, bool up)
{
	unsigned char hello[WIRE_HELLO_BYTES], claim[WIRE_CLAIM_BYTES];
	unsigned char answer[WIRE_ANSWER_BYTES], frame[WIRE_FRAME_BYTES];
	struct hk__auth auth = { .about = claim, .about_len = WIRE_ABOUT_BYTES };
	int fd = -1;

	for (int i = 0; i < ROUNDS && fd < 0; i++) {
		poll_all();
		fd = accept(listener, NULL, NULL);
	}
	CHECK(fd >= 0);
	memcpy(auth.key, key, sizeof(key));
	memset(auth.accepts, 7, sizeof(auth.accepts));
	wire_put_hello(hello, 0, auth.accepts);
	puppet_write(fd, hello, sizeof(hello));
	CHECK(puppet_read(fd, claim, sizeof(claim)));
	memcpy(auth.connects, claim + WIRE_ABOUT_BYTES, HK__NONCE_BYTES);
	CHECK(hk__auth_holds(&auth, HK__AUTH_CONNECTS, claim + WIRE_ABOUT_BYTES + HK__NONCE_BYTES));
	hk__auth_prove(&auth, HK__AUTH_ACCEPTS, answer);
	puppet_write(fd, answer, sizeof(answer));
	CHECK(puppet_read(fd, frame, sizeof(frame)));
	CHECK_EQ(wire_get_frame(frame).type, WIRE_UP);
	if (up)
		puppet_write(fd, frame, sizeof(frame));
	return fd;
}

/* A rank that lets a greeting go was busy, and one that ends later is gone. */
TEST(what_carried_nothing_is_made_again)
{
	int listener = listen_as(1);
	struct hk_chan_spec there = spec_to(1, 0);
	struct hk_chan *chan, *in;
	uint32_t messages;
	void *slot;

	open_one(0, key, listen_as(0));
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &chan), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[0], &there, &in), HK_OK);
	for (int i = 0; i < 5; i++) {
		int fd = puppet_accept(listener, false);

		/* Opened and closed in between: nobody is told later. */
		hk__chan_close(in);
		CHECK_EQ(hk__chan_open_recv(nets[0], &there, &in), HK_OK);
		close(fd);
		for (int k = 0; k < QUIET; k++) {
			poll_all();
			CHECK_EQ(hk__chan_reserve(chan, 4, &slot), HK_OK);
			CHECK(!slot);
		}
	}
	int fd = puppet_accept(listener, true);
	for (int k = 0; k < QUIET; k++)
		poll_all();
	close(fd);
	CHECK_EQ(end_of(in, &messages), HK_EPEER);
	CHECK_EQ(hk__chan_reserve(chan, 4, &slot), HK_EPEER);
	hk__chan_close(chan);
	hk__chan_close(in);
	close(listener);
	close_ranks();
}

TEST(nobody_is_there)
{
	struct hk_chan_spec there = spec_to(1, 0);
	enum hk_status status = HK_OK;
	struct hk_chan *chan;
	void *slot;

	how.connect_timeout_ns = SOON_NS;
	close(listen_as(1));
	open_one(0, key, listen_as(0));
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &chan), HK_OK);
	/* Asleep, it tries again all the same. */
	for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
		CHECK_EQ(hk__net_wait(nets[0], UINT64_C(20000000000)), HK_OK);
		poll_all();
		status = hk__chan_reserve(chan, 4, &slot);
	}
	CHECK_EQ(status, HK_EPEER);
	CHECK_HAS(nets[0]->why.text, "rank 1 (127.0.0.1:");
	CHECK_HAS(nets[0]->why.text, "refused");
	hk__chan_close(chan);
	close_ranks();
}
