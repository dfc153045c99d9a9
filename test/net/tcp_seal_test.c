/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_seal_test.c - who is between two ranks: it reads nothing if they encrypt,
 * and changes nothing without being noticed.
 */
#include "harness.h"
#include "net/puppet.h"
#include "net/seal.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#define SEEN_MAX (8u << 20)

enum edit {
	EDIT_NOTHING,
	EDIT_FLIP,   /* a bit of a record */
	EDIT_REPEAT, /* it */
	EDIT_DROP,
	EDIT_SWAP /* it and the one behind */
};

/* From rank 0 to rank 1 and back, with what passes rank 1's way. */
static struct relay {
	int listener;
	struct sockaddr_storage to;
	pthread_t thread;
	enum edit edit;
	uint32_t record; /* that is edited, counted from the greeting */
	unsigned char *seen;
	size_t seen_len;
} relay;

static void relay_send(int fd, const unsigned char *bytes, size_t len)
{
	while (len) {
		ssize_t put = send(fd, bytes, len, MSG_NOSIGNAL);

		if (put < 0)
			return; /* it was cut off: as it should */
		bytes += put;
		len -= (size_t)put;
	}
}

/* Records of rank 0 that are complete. What is left of the last waits. */
static size_t relay_edit(int to, unsigned char *bytes, size_t len, uint32_t *number)
{
	static unsigned char held[HK__SEAL_MAX];
	static size_t held_len;
	size_t at = 0;

	while (len - at >= HK__SEAL_HEAD) {
		size_t all = HK__SEAL_HEAD + wire_get(bytes + at) + HK__SEAL_TAG;
		bool is = (*number)++ == relay.record;

		CHECK(all <= HK__SEAL_MAX);
		if (len - at < all) {
			--*number;
			break;
		}
		if (is && relay.edit == EDIT_FLIP)
			bytes[at + all / 2] ^= 4;
		if (is && relay.edit == EDIT_SWAP) {
			memcpy(held, bytes + at, all);
			held_len = all;
		} else if (!is || relay.edit != EDIT_DROP) {
			relay_send(to, bytes + at, all);
		}
		if (is && relay.edit == EDIT_REPEAT)
			relay_send(to, bytes + at, all);
		if (!is && held_len) {
			relay_send(to, held, held_len);
			held_len = 0;
		}
		at += all;
	}
	memmove(bytes, bytes + at, len - at);
	return len - at;
}

static void *relay_run(void *ctx)
{
	static unsigned char bytes[4 * HK__SEAL_MAX];
	struct pollfd fds[2] = { { .fd = relay.listener, .events = POLLIN } };
	uint32_t number = 0;
	size_t greeting = WIRE_CLAIM_BYTES, kept = 0;
	int open = 2;

	(void)ctx;
	CHECK_EQ(poll(fds, 1, 20000), 1);
	fds[0].fd = accept(relay.listener, NULL, NULL);
	fds[1].fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(fds[1].fd, (struct sockaddr *)&relay.to, addresses_len), 0);
	fds[0].events = fds[1].events = POLLIN;
	while (open) {
		CHECK(poll(fds, 2, 20000) > 0);
		for (int i = 0; i < 2; i++) {
			size_t before = i == 0 ? kept : 0, room = sizeof(bytes) - kept;
			unsigned char back[4096], *at = i == 0 ? bytes + before : back;

			if (!fds[i].revents)
				continue;
			if (i == 0 && greeting)
				room = greeting;
			ssize_t got = recv(fds[i].fd, at, i == 0 ? room : sizeof(back), 0);
			if (got <= 0) {
				shutdown(fds[1 - i].fd, SHUT_WR);
				fds[i].events = 0;
				fds[i].fd = -1 - fds[i].fd; /* poll passes over it */
				open--;
				continue;
			}
			if (i == 0 && relay.seen_len + (size_t)got <= SEEN_MAX) {
				memcpy(relay.seen + relay.seen_len, at, (size_t)got);
				relay.seen_len += (size_t)got;
			}
			if (i == 1 || greeting || relay.edit == EDIT_NOTHING)
				relay_send(fds[1 - i].fd, at, (size_t)got);
			else
				kept = relay_edit(fds[1].fd, bytes, before + (size_t)got, &number);
			if (i == 0 && greeting)
				greeting -= (size_t)got;
		}
	}
	close(-1 - fds[0].fd);
	close(-1 - fds[1].fd);
	return NULL;
}

/* Ranks 0 and 1 with somebody between them. */
static void open_relayed(enum edit edit, uint32_t record)
{
	open_ranks(2);
	relay = (struct relay){ .to = addresses[1], .edit = edit, .record = record };
	relay.seen = malloc(SEEN_MAX);
	CHECK(relay.seen);
	relay.listener = listen_as(2);
	addresses[1] = addresses[2];
	CHECK_EQ(pthread_create(&relay.thread, NULL, relay_run, NULL), 0);
}

static void close_relayed(void)
{
	close_ranks();
	CHECK_EQ(pthread_join(relay.thread, NULL), 0);
	close(relay.listener);
	free(relay.seen);
}

/* How often the pattern was seen on the wire. */
static uint32_t pass_pattern(bool encrypt)
{
	static const char pattern[] =
		"these are the weights of a model, and nobody else's business";
	struct hk_chan *pair[2];
	struct hk_message message = { 0 };
	unsigned char *slot = NULL;
	uint32_t seen = 0;

	how.encrypt = encrypt;
	open_relayed(EDIT_NOTHING, 0);
	open_pair(0, 1, 0, pair);
	exchange(pair, 10);
	for (uint32_t round = 0; round < 20; round++) {
		uint32_t len = round % 2 ? SLOT_BYTES : 100, at = len - (uint32_t)sizeof(pattern);

		slot = NULL;
		for (int i = 0; i < ROUNDS && !slot; i++) {
			poll_all();
			CHECK_EQ(hk__chan_reserve(pair[0], len, (void **)&slot), HK_OK);
		}
		CHECK(slot);
		memset(slot, 0, len);
		memcpy(slot + at, pattern, sizeof(pattern));
		hk__chan_post(pair[0], len, 0);
		message.data = NULL;
		for (int i = 0; i < ROUNDS && !message.data; i++) {
			poll_all();
			CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
		}
		CHECK(message.data);
		CHECK_EQ(message.len, len);
		CHECK(!memcmp((const char *)message.data + at, pattern, sizeof(pattern)));
		CHECK_EQ(hk__chan_release(pair[1]), HK_OK);
	}
	close_pair(pair);
	unsigned char *all = relay.seen;
	close_ranks();
	CHECK_EQ(pthread_join(relay.thread, NULL), 0);
	for (size_t i = 0; i + sizeof(pattern) <= relay.seen_len; i++)
		seen += all[i] == pattern[0] && !memcmp(all + i, pattern, sizeof(pattern));
	CHECK(relay.seen_len > 10 * SLOT_BYTES);
	close(relay.listener);
	free(relay.seen);
	for (uint32_t r = 0; r < RANKS; r++)
		nets[r] = NULL;
	return seen;
}

TEST(nobody_in_between_reads_along)
{
	CHECK_EQ(pass_pattern(false), 20); /* so it would be seen */
	CHECK_EQ(pass_pattern(true), 0);
}

/* Messages until it ends; all of them are as they were sent. */
static enum hk_status pass_until_the_end(struct hk_chan *pair[2], uint32_t *messages_out)
{
	enum hk_status status = HK_OK;
	uint32_t sent = 0;

	*messages_out = 0;
	for (int i = 0; i < ROUNDS && status == HK_OK && *messages_out < 1000; i++) {
		struct hk_message message;
		unsigned char *slot = NULL;
		uint32_t len = 100 + sent % 7;

		poll_all();
		if (hk__chan_reserve(pair[0], len, (void **)&slot) == HK_OK && slot) {
			memset(slot, (int)(sent++ & 0xff), len);
			hk__chan_post(pair[0], len, 0);
		}
		status = hk__chan_peek(pair[1], &message);
		if (status != HK_OK || !message.data)
			continue;
		CHECK_EQ(message.len, 100 + *messages_out % 7);
		for (uint32_t k = 0; k < message.len; k++)
			CHECK_EQ(((const unsigned char *)message.data)[k], *messages_out & 0xff);
		++*messages_out;
		CHECK_EQ(hk__chan_release(pair[1]), HK_OK);
	}
	return status;
}

TEST(nobody_in_between_changes_anything)
{
	how.encrypt = true;
	for (enum edit edit = EDIT_FLIP; edit <= EDIT_SWAP; edit++) {
		struct hk_chan *pair[2];
		uint32_t messages;

		open_relayed(edit, 20);
		open_pair(0, 1, 0, pair);
		CHECK_EQ(pass_until_the_end(pair, &messages), HK_EIO);
		CHECK_HAS(nets[1]->why.text, "not genuine");
		CHECK(messages > 0 && messages < 1000);
		close_pair(pair);
		close_relayed();
		nets[0] = nets[1] = NULL;
	}
}

TEST(a_relay_that_changes_nothing_is_not_noticed)
{
	struct hk_chan *pair[2];
	uint32_t messages;

	how.encrypt = true;
	open_relayed(EDIT_FLIP, UINT32_MAX);
	open_pair(0, 1, 0, pair);
	CHECK_EQ(pass_until_the_end(pair, &messages), HK_OK);
	CHECK_EQ(messages, 1000);
	close_pair(pair);
	close_relayed();
}

/* What one rank encrypts no rank takes for plain, nor the other way round. */
TEST(ranks_that_do_not_agree)
{
	for (int who = 0; who < 2; who++) {
		struct hk_chan_spec there = spec_to(1, 0);
		enum hk_status status = HK_OK;
		struct hk_chan *chan;
		void *slot;

		for (uint32_t r = 0; r < 2; r++) {
			how.encrypt = r == (uint32_t)who;
			open_one(r, key, listen_as(r));
		}
		CHECK_EQ(hk__chan_open_send(nets[0], &there, &chan), HK_OK);
		for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
			poll_all();
			status = hk__chan_reserve(chan, 4, &slot);
			CHECK(!slot);
		}
		CHECK_EQ(status, HK_EPEER);
		CHECK_HAS(nets[0]->why.text, who == 0 ? "it does not encrypt, and this rank does"
						      : "it encrypts, and this rank does not");
		/* One that says otherwise in its claim is turned away. */
		int fd = puppet_connect(1);
		CHECK(!puppet_greet(fd, key, (struct wire_claim){ 0, 1, 0, 1, who == 0 }));
		CHECK_HAS(nets[1]->why.text, who == 0 ? "it encrypts, and this rank does not"
						      : "it does not encrypt, and this rank does");
		close(fd);
		hk__chan_close(chan);
		close_ranks();
		nets[0] = nets[1] = NULL;
	}
}

/* A proof alone is not enough: what follows has to be made with the keys of it. */
TEST(who_does_not_encrypt_as_it_said)
{
	unsigned char noise[WIRE_FRAME_BYTES + HK__SEAL_HEAD + HK__SEAL_TAG] = { WIRE_FRAME_BYTES };

	how.encrypt = true;
	open_ranks(2);
	int fd = puppet_connect(1);
	CHECK(puppet_greet(fd, key, (struct wire_claim){ 0, 1, 0, 1, WIRE_ENCRYPT }));
	puppet_write(fd, noise, sizeof(noise) - WIRE_FRAME_BYTES);
	CHECK(puppet_is_cut_off(fd));
	CHECK_HAS(nets[1]->why.text, "turned 127.0.0.1:");
	CHECK_HAS(nets[1]->why.text, "not genuine");
	check_job_goes_on();
	close(fd);
	close_ranks();
}
