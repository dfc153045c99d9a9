/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_soak_test.c - the contract of net.h with a thread for each rank:
 * sleeping and being woken, and everything at once, at random.
 */
#include "harness.h"
#include "net/fixture.h"

#include <poll.h>

#define CHANS 4u
#define SLOT_BYTES 150000u
#define TIMEOUT_NS UINT64_C(20000000000)

static struct hk_net *nets[FIXTURE_RANKS_MAX];
static uint64_t seed;

/* ---- what message i of a channel is: both ends compute it ---- */

static uint64_t message_hash(uint32_t from, uint32_t chan, uint32_t i)
{
	uint64_t state = seed + from * 1000003u + chan * 10007u + i;

	return test_random(&state);
}

static uint32_t message_len(uint64_t hash)
{
	uint32_t limits[] = { 1, 64, 4096, SLOT_BYTES };
	uint32_t limit = limits[hash % 64 == 0 ? 3 : hash % 8 == 0 ? 2 : hash % 2];

	return (uint32_t)(hash >> 16) % (limit + 1);
}

static void message_fill(void *at, uint32_t len, uint64_t hash)
{
	for (uint32_t i = 0; i < len; i++)
		((unsigned char *)at)[i] = (unsigned char)(hash + i + i / 256);
}

static void message_check(const void *at, uint32_t len, uint64_t hash)
{
	CHECK_EQ(len, message_len(hash));
	for (uint32_t i = 0; i < len; i++)
		if (((const unsigned char *)at)[i] != (unsigned char)(hash + i + i / 256))
			test_fail(__FILE__, __LINE__, "byte %u of %u is wrong", i, len);
}

/* ---- one rank ---- */

struct end {
	struct hk_chan *chan;
	uint32_t at;  /* messages so far */
	void *memory; /* to lend from, or to take to */
	bool taking;
};

struct rank {
	struct hk_net *net;
	uint32_t rank, peer, messages;
	uint64_t random;
	struct end out[CHANS], in[CHANS];
};

static bool end_send(struct rank *rank, uint32_t c)
{
	struct end *end = &rank->out[c];
	uint64_t hash = message_hash(rank->rank, c, end->at);
	uint32_t len = message_len(hash);
	void *slot;
	bool done;

	if (end->at == rank->messages)
		return false;
	if (hash % 3 && !hk__chan_lent(end->chan) &&
	    hk__chan_lendable(end->chan, end->memory, len)) {
		message_fill(end->memory, len, hash);
		CHECK_EQ(hk__chan_lend(end->chan, end->memory, len, end->at % HK_KINDS, &done),
			 HK_OK);
		end->at += done;
		return done;
	}
	CHECK_EQ(hk__chan_reserve(end->chan, len, &slot), HK_OK);
	if (!slot)
		return false;
	message_fill(slot, len, hash);
	hk__chan_post(end->chan, len, end->at % HK_KINDS);
	end->at++;
	return true;
}

static bool end_receive(struct rank *rank, uint32_t c)
{
	struct end *end = &rank->in[c];
	uint64_t hash = message_hash(rank->peer, c, end->at);
	struct hk_message message;
	bool done = false;

	if (end->at == rank->messages)
		return false;
	end->taking = end->taking || hash >> 60 < 8;
	if (end->taking) {
		CHECK_EQ(hk__chan_take(end->chan, end->memory, SLOT_BYTES, &message, &done), HK_OK);
		if (!done)
			return false;
		end->taking = false;
		message_check(end->memory, message.len, hash);
	} else {
		CHECK_EQ(hk__chan_peek(end->chan, &message), HK_OK);
		if (!message.data)
			return false;
		message_check(message.data, message.len, hash);
	}
	CHECK_EQ(message.kind, end->at % HK_KINDS);
	if (!done)
		CHECK_EQ(hk__chan_release(end->chan), HK_OK);
	end->at++;
	return true;
}

static bool rank_over(struct rank *rank)
{
	for (uint32_t c = 0; c < CHANS; c++)
		if (rank->out[c].at < rank->messages || rank->in[c].at < rank->messages ||
		    hk__chan_lent(rank->out[c].chan))
			return false;
	return true;
}

/* Sleeps as executors do, or with other descriptors. */
static void rank_sleep(struct rank *rank, bool by_descriptor, bool *armed)
{
	/* Two nets as one have two descriptors, and nobody to give them to. */
	if (!by_descriptor || strcmp(hk__net_name(rank->net), "shm+tcp") == 0) {
		CHECK_EQ(hk__net_wait(rank->net, TIMEOUT_NS), HK_OK);
		return;
	}
	struct pollfd fd = { .fd = hk__net_arm(rank->net), .events = POLLIN };
	if (fd.fd < 0) {
		CHECK_EQ(hk__net_wait(rank->net, TIMEOUT_NS), HK_OK);
		return;
	}
	if (*armed)
		CHECK_EQ(poll(&fd, 1, (int)(TIMEOUT_NS / 1000000)), 1);
	*armed = !*armed;
	if (!*armed)
		hk__net_disarm(rank->net);
}

static void rank_move(struct rank *rank, bool by_descriptor)
{
	bool armed = false;

	while (!rank_over(rank)) {
		uint32_t first = (uint32_t)test_random(&rank->random);
		bool moved = false;

		CHECK_EQ(hk__net_poll(rank->net), HK_OK);
		for (uint32_t i = 0; i < CHANS; i++) {
			moved |= end_receive(rank, (first + i) % CHANS);
			moved |= end_send(rank, (first / 8 + i) % CHANS);
		}
		if (moved && armed) {
			hk__net_disarm(rank->net);
			armed = false;
		}
		if (!moved)
			rank_sleep(rank, by_descriptor, &armed);
		else if (first % 499 == 0)
			fixture_pause(); /* the peer finds time to fall asleep */
	}
}

static struct hk_chan_spec spec_of(uint32_t peer, uint32_t c)
{
	return (struct hk_chan_spec){ { peer, c, c / 2, 9 }, HK_SLOTS_MIN + c % 3, SLOT_BYTES };
}

static void *rank_main(void *ctx)
{
	struct rank *rank = ctx;

	for (uint32_t c = 0; c < CHANS; c++) {
		struct hk_chan_spec spec = spec_of(rank->peer, c);

		CHECK_EQ(hk__chan_open_send(rank->net, &spec, &rank->out[c].chan), HK_OK);
		CHECK_EQ(hk__chan_open_recv(rank->net, &spec, &rank->in[c].chan), HK_OK);
	}
	rank_move(rank, rank->random % 2);
	return NULL;
}

static void soak(uint32_t messages, uint64_t how)
{
	struct rank ranks[2] = { 0 };

	fixture_open(2, nets);
	for (uint32_t r = 0; r < 2; r++) {
		ranks[r] = (struct rank){ .net = nets[r],
					  .rank = r,
					  .peer = 1 - r,
					  .messages = messages,
					  .random = how >> r };
		for (uint32_t c = 0; c < CHANS; c++) {
			ranks[r].out[c].memory = fixture_memory(r, SLOT_BYTES);
			ranks[r].in[c].memory = fixture_memory(r, SLOT_BYTES);
		}
	}
	fixture_run(2, rank_main, (void *[]){ &ranks[0], &ranks[1] });
	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t c = 0; c < CHANS; c++) {
			hk__chan_close(ranks[r].out[c].chan);
			hk__chan_close(ranks[r].in[c].chan);
		}
	}
	fixture_close(2, nets);
}

#ifdef HK_SANITIZED
#define SOAK_MESSAGES 1500u
#else
#define SOAK_MESSAGES 6000u
#endif

TEST(soak_that_waits)
{
	seed = test_seed(11);
	soak(SOAK_MESSAGES, 0);
}

TEST(soak_that_polls_descriptors)
{
	seed = test_seed(12);
	soak(SOAK_MESSAGES, 3);
}

TEST(soak_of_both)
{
	seed = test_seed(13);
	soak(SOAK_MESSAGES, 1);
}

/* ---- a rank that ends at once ---- */

#define LAST_MESSAGES 8u

static void send_and_end(void)
{
	struct hk_chan_spec spec = { { 1, 0, 0, 1 }, LAST_MESSAGES, SLOT_BYTES };
	struct hk_chan *chan;
	void *slot;

	CHECK_EQ(hk__chan_open_send(nets[0], &spec, &chan), HK_OK);
	for (uint32_t i = 0; i < LAST_MESSAGES;) {
		CHECK_EQ(hk__net_poll(nets[0]), HK_OK);
		CHECK_EQ(hk__chan_reserve(chan, SLOT_BYTES, &slot), HK_OK);
		if (!slot) {
			CHECK_EQ(hk__net_wait(nets[0], TIMEOUT_NS), HK_OK);
			continue;
		}
		message_fill(slot, SLOT_BYTES, i);
		hk__chan_post(chan, SLOT_BYTES, 0);
		i++;
	}
	hk__chan_close(chan);
	hk__net_close(nets[0]);
	nets[0] = NULL;
}

static void receive_to_the_end(struct hk_chan *chan)
{
	struct hk_message message;

	for (uint32_t i = 0; i < LAST_MESSAGES;) {
		CHECK_EQ(hk__net_poll(nets[1]), HK_OK);
		CHECK_EQ(hk__chan_peek(chan, &message), HK_OK);
		if (!message.data) {
			CHECK_EQ(hk__net_wait(nets[1], TIMEOUT_NS), HK_OK);
			continue;
		}
		for (int pause = 0; i == 0 && pause < 100; pause++)
			fixture_pause(); /* it has posted all, and is ending */
		CHECK_EQ(message.len, SLOT_BYTES);
		for (uint32_t k = 0; k < SLOT_BYTES; k++)
			if (((const unsigned char *)message.data)[k] !=
			    (unsigned char)(i + k + k / 256))
				test_fail(__FILE__, __LINE__, "byte %u is wrong", k);
		CHECK_EQ(hk__chan_release(chan), HK_OK);
		i++;
	}
}

static void *end_main(void *ctx)
{
	if (ctx)
		receive_to_the_end(ctx);
	else
		send_and_end();
	return NULL;
}

TEST(what_was_posted_arrives_after_the_end)
{
	struct hk_chan_spec spec = { { 0, 0, 0, 1 }, LAST_MESSAGES, SLOT_BYTES };
	struct hk_chan *chan;

	fixture_open(2, nets);
	CHECK_EQ(hk__chan_open_recv(nets[1], &spec, &chan), HK_OK);
	fixture_run(2, end_main, (void *[]){ NULL, chan });
	hk__chan_close(chan);
	fixture_close(2, nets);
}
