/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_test.c - the contract of net.h, on every transport: order, slots,
 * kinds, lent and taken messages, ends that come and go. All ranks are moved by
 * one thread here; conformance_soak_test.c has one for each.
 */
#include "harness.h"
#include "net/fixture.h"

#define SLOT_BYTES 200u
#define LARGE (3u << 20)
#define ROUNDS 2000000 /* until what must happen has not */
#define QUIET 200      /* after which what must not happen has not */

static struct hk_net *nets[FIXTURE_RANKS_MAX];
static uint32_t nnets;

static void open_nets(uint32_t n)
{
	nnets = n;
	fixture_open(n, nets);
}

static void close_nets(void)
{
	fixture_close(nnets, nets);
}

static void poll_all(void)
{
	for (uint32_t r = 0; r < nnets; r++)
		if (nets[r])
			CHECK_EQ(hk__net_poll(nets[r]), HK_OK);
}

static struct hk_chan_spec spec_to(uint32_t peer, uint32_t slots)
{
	return (struct hk_chan_spec){ { .peer = peer, .from_lane = 3, .to_lane = 4, .context = 5 },
				      slots,
				      SLOT_BYTES };
}

/* From rank 0 to rank 1. */
static void open_pair(uint32_t slots, uint32_t slot_bytes, struct hk_chan *pair[2])
{
	struct hk_chan_spec there = spec_to(1, slots), here = spec_to(0, slots);

	there.slot_bytes = here.slot_bytes = slot_bytes;
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &pair[0]), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &pair[1]), HK_OK);
}

static void close_pair(struct hk_chan *pair[2])
{
	hk__chan_close(pair[0]);
	hk__chan_close(pair[1]);
}

/* ---- one message ---- */

static void fill(void *at, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		((unsigned char *)at)[i] = (unsigned char)(seed + i * 7 + i / 256);
}

static void check_fill(const void *at, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		CHECK_EQ(((const unsigned char *)at)[i], (unsigned char)(seed + i * 7 + i / 256));
}

static bool try_send(struct hk_chan *chan, uint32_t len, uint32_t seed, int rounds)
{
	void *slot = NULL;

	for (int i = 0; i < rounds && !slot; i++) {
		poll_all();
		CHECK_EQ(hk__chan_reserve(chan, len, &slot), HK_OK);
	}
	if (!slot)
		return false;
	fill(slot, len, seed);
	hk__chan_post(chan, len, len % HK_KINDS);
	return true;
}

static void send_one(struct hk_chan *chan, uint32_t len, uint32_t seed)
{
	CHECK(try_send(chan, len, seed, ROUNDS));
}

static struct hk_message look(struct hk_chan *chan, int rounds)
{
	struct hk_message message = { 0 };

	for (int i = 0; i < rounds && !message.data; i++) {
		poll_all();
		CHECK_EQ(hk__chan_peek(chan, &message), HK_OK);
	}
	return message;
}

static void receive_one(struct hk_chan *chan, uint32_t len, uint32_t seed)
{
	struct hk_message message = look(chan, ROUNDS);

	CHECK(message.data);
	CHECK_EQ(message.len, len);
	CHECK_EQ(message.kind, len % HK_KINDS);
	check_fill(message.data, len, seed);
	CHECK_EQ(hk__chan_release(chan), HK_OK);
}

static void lend_one(struct hk_chan *chan, void *data, uint32_t len, uint32_t seed)
{
	bool done = false;

	fill(data, len, seed);
	CHECK(hk__chan_lendable(chan, data, len));
	for (int i = 0; i < ROUNDS && !done; i++) {
		poll_all();
		CHECK_EQ(hk__chan_lend(chan, data, len, len % HK_KINDS, &done), HK_OK);
	}
	CHECK(done);
}

/* dst holds something else, and is the transport's if taking has begun. */
static void take_one(struct hk_chan *chan, void *dst, uint32_t len, uint32_t seed)
{
	struct hk_message message;
	bool done = false;

	for (int i = 0; i < ROUNDS && !done; i++) {
		poll_all();
		CHECK_EQ(hk__chan_take(chan, dst, len, &message, &done), HK_OK);
	}
	CHECK(done);
	CHECK_EQ(message.len, len);
	CHECK_EQ(message.kind, len % HK_KINDS);
	check_fill(dst, len, seed);
}

static void until_not_lent(struct hk_chan *chan)
{
	for (int i = 0; i < ROUNDS && hk__chan_lent(chan); i++)
		poll_all();
	CHECK(!hk__chan_lent(chan));
}

/* ---- order and slots ---- */

TEST(every_length_in_order)
{
	struct hk_chan *pair[2];

	open_nets(2);
	open_pair(3, SLOT_BYTES, pair);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t len = 0; len <= SLOT_BYTES; len++) {
			send_one(pair[0], len, len + round);
			send_one(pair[0], SLOT_BYTES - len, 0xee);
			receive_one(pair[1], len, len + round);
			receive_one(pair[1], SLOT_BYTES - len, 0xee);
			CHECK(!look(pair[1], 1).data);
		}
	}
	close_pair(pair);
	close_nets();
}

TEST(slots_are_counted)
{
	struct hk_chan *pair[2];
	struct hk_message message, again;
	void *slot = NULL, *same;

	open_nets(2);
	open_pair(2, SLOT_BYTES, pair);
	for (int i = 0; i < ROUNDS && !slot; i++) {
		poll_all();
		CHECK_EQ(hk__chan_reserve(pair[0], 8, &slot), HK_OK);
	}
	CHECK_EQ(hk__chan_reserve(pair[0], 8, &same), HK_OK);
	CHECK(slot && slot == same);
	send_one(pair[0], 8, 1);
	send_one(pair[0], 8, 2);
	CHECK(!try_send(pair[0], 8, 3, QUIET));
	/* A message that is looked at keeps its slot. */
	message = look(pair[1], ROUNDS);
	CHECK_EQ(hk__chan_peek(pair[1], &again), HK_OK);
	CHECK(message.data && message.data == again.data);
	CHECK(!try_send(pair[0], 8, 3, QUIET));
	receive_one(pair[1], 8, 1);
	send_one(pair[0], 8, 3);
	CHECK(!try_send(pair[0], 8, 4, QUIET));
	receive_one(pair[1], 8, 2);
	receive_one(pair[1], 8, 3);
	close_pair(pair);
	close_nets();
}

/* Whatever a transport saves on saying so: two slots can always be used. */
TEST(two_slots_can_always_be_used)
{
	struct hk_chan *pair[2];

	open_nets(2);
	for (uint32_t slots = HK_SLOTS_MIN; slots <= HK_SLOTS_MAX; slots += 1 + slots / 3) {
		open_pair(slots, SLOT_BYTES, pair);
		for (uint32_t i = 0; i < slots; i++)
			send_one(pair[0], 9, i);
		CHECK(!try_send(pair[0], 9, 0, QUIET));
		for (uint32_t i = 0; i < slots; i++) {
			receive_one(pair[1], 9, i);
			if (i == 1)
				poll_all();
		}
		for (uint32_t i = 0; i < 50; i++) {
			send_one(pair[0], 10, i);
			send_one(pair[0], 11, i);
			receive_one(pair[1], 10, i);
			receive_one(pair[1], 11, i);
		}
		close_pair(pair);
	}
	close_nets();
}

TEST(messages_of_slot_bytes)
{
	struct hk_chan *pair[2];

	open_nets(2);
	open_pair(2, LARGE, pair);
	for (uint32_t i = 0; i < 4; i++) {
		send_one(pair[0], LARGE, i);
		send_one(pair[0], LARGE - 1, i);
		receive_one(pair[1], LARGE, i);
		send_one(pair[0], 1, i);
		receive_one(pair[1], LARGE - 1, i);
		receive_one(pair[1], 1, i);
	}
	close_pair(pair);
	close_nets();
}

TEST(nothing_is_lent_by_a_post_in_the_end)
{
	struct hk_chan *pair[2];

	open_nets(2);
	open_pair(2, LARGE, pair);
	CHECK(!hk__chan_lent(pair[0]));
	send_one(pair[0], LARGE, 1);
	until_not_lent(pair[0]);
	receive_one(pair[1], LARGE, 1);
	close_pair(pair);
	close_nets();
}

/* ---- lent and taken ---- */

TEST(lent_and_taken)
{
	static const uint32_t lens[] = { 5000, 65536, 65535, 200000, LARGE, LARGE - 7 };
	struct hk_chan *pair[2];

	open_nets(2);
	open_pair(2, LARGE, pair);
	void *from = fixture_memory(0, LARGE), *to = fixture_memory(1, LARGE);
	for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint32_t len = lens[i];

		lend_one(pair[0], from, len, i);
		memset(to, 0, len);
		if (i % 2)
			take_one(pair[1], to, len, i);
		else
			receive_one(pair[1], len, i);
		until_not_lent(pair[0]);
		/* Posted and lent ones keep their order, and so do those that take. */
		send_one(pair[0], 8, i);
		lend_one(pair[0], from, len, i + 1);
		memset(to, 0, len);
		take_one(pair[1], to, 8, i);
		take_one(pair[1], to, len, i + 1);
		until_not_lent(pair[0]);
	}
	close_pair(pair);
	close_nets();
}

TEST(taking_begins_before_there_is_a_message)
{
	struct hk_chan *pair[2];
	struct hk_message message;
	bool done;

	open_nets(2);
	open_pair(2, LARGE, pair);
	unsigned char *to = fixture_memory(1, LARGE);
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t len = i % 2 ? LARGE - i : i;

		memset(to, 0, len);
		CHECK_EQ(hk__chan_take(pair[1], to, len, &message, &done), HK_OK);
		CHECK(!done);
		send_one(pair[0], len, i);
		send_one(pair[0], 6, i);
		take_one(pair[1], to, len, i);
		receive_one(pair[1], 6, i);
	}
	close_pair(pair);
	close_nets();
}

TEST(what_does_not_fit_is_not_taken)
{
	struct hk_chan *pair[2];
	struct hk_message message;
	enum hk_status status = HK_OK;
	unsigned char to[200] = { 0 };
	bool done = false;

	open_nets(2);
	open_pair(2, LARGE, pair);
	send_one(pair[0], 101, 1);
	for (int i = 0; i < ROUNDS && status == HK_OK && !done; i++) {
		poll_all();
		status = hk__chan_take(pair[1], to, 100, &message, &done);
	}
	CHECK_EQ(status, HK_EIO);
	CHECK(!done);
	CHECK_HAS(pair[1]->net->why.text, "rank 0 sent 101 bytes where 100 fit");
	for (int i = 0; i < 200; i++)
		CHECK_EQ(to[i], 0);
	close_pair(pair);
	close_nets();
}

/* ---- ends that come and go ---- */

TEST(a_sender_waits_for_the_channel_to_appear)
{
	struct hk_chan_spec there = spec_to(1, 2), here = spec_to(0, 2);
	struct hk_chan *pair[2];

	open_nets(2);
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &pair[0]), HK_OK);
	CHECK(!try_send(pair[0], 4, 9, QUIET));
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &pair[1]), HK_OK);
	send_one(pair[0], 4, 9);
	receive_one(pair[1], 4, 9);
	close_pair(pair);
	close_nets();
}

TEST(a_channel_waits_for_its_sender)
{
	struct hk_chan_spec up = spec_to(0, 2), down = spec_to(1, 2);
	struct hk_chan *pair[2], *back[2];

	open_nets(2);
	CHECK_EQ(hk__chan_open_recv(nets[1], &up, &pair[1]), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[0], &down, &back[1]), HK_OK);
	CHECK(!look(pair[1], QUIET).data);
	CHECK_EQ(hk__chan_open_send(nets[0], &down, &pair[0]), HK_OK);
	CHECK_EQ(hk__chan_open_send(nets[1], &up, &back[0]), HK_OK);
	send_one(pair[0], 4, 9);
	send_one(back[0], 5, 8);
	receive_one(pair[1], 4, 9);
	receive_one(back[1], 5, 8);
	close_pair(pair);
	close_pair(back);
	close_nets();
}

TEST(the_same_key_again_and_again)
{
	struct hk_chan *pair[2];

	open_nets(2);
	for (uint32_t i = 0; i < 200; i++) {
		open_pair(2 + i % 3, SLOT_BYTES, pair);
		send_one(pair[0], i % 150, i);
		receive_one(pair[1], i % 150, i);
		/* Either end may be first to go. */
		hk__chan_close(pair[i % 2]);
		if (i % 3 == 0)
			poll_all();
		hk__chan_close(pair[1 - i % 2]);
	}
	close_nets();
}

TEST(a_sender_may_leave_before_its_messages_are_read)
{
	struct hk_chan *pair[2];

	open_nets(2);
	open_pair(2, LARGE, pair);
	void *from = fixture_memory(0, LARGE);
	send_one(pair[0], LARGE, 1);
	send_one(pair[0], 3, 2);
	hk__chan_close(pair[0]);
	memset(from, 0, LARGE);
	receive_one(pair[1], LARGE, 1);
	receive_one(pair[1], 3, 2);
	hk__chan_close(pair[1]);
	close_nets();
}

TEST(a_channel_closed_unread_harms_no_other)
{
	struct hk_chan_spec there = spec_to(1, 2), here = spec_to(0, 2);
	struct hk_chan *pair[2], *other[2];

	open_nets(2);
	there.key.context = here.key.context = 77;
	there.slot_bytes = here.slot_bytes = LARGE;
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &other[0]), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &other[1]), HK_OK);
	open_pair(2, SLOT_BYTES, pair);
	send_one(other[0], 100000, 1);
	send_one(other[0], LARGE, 1);
	send_one(pair[0], 50, 5);
	CHECK(look(other[1], ROUNDS).data);
	hk__chan_close(other[1]);
	receive_one(pair[1], 50, 5);
	hk__chan_close(other[0]);
	for (uint32_t i = 0; i < 10; i++) {
		send_one(pair[0], 51, i);
		receive_one(pair[1], 51, i);
	}
	close_pair(pair);
	close_nets();
}

TEST(many_channels_do_not_meet)
{
	struct hk_chan *out[200], *in[200];

	open_nets(2);
	for (uint32_t i = 0; i < 200; i++) {
		struct hk_chan_spec there = spec_to(1, 2), here = spec_to(0, 2);

		there.key.from_lane = here.key.from_lane = i % 8;
		there.key.to_lane = here.key.to_lane = i / 8;
		if (i % 3)
			CHECK_EQ(hk__chan_open_recv(nets[1], &here, &in[i]), HK_OK);
		CHECK_EQ(hk__chan_open_send(nets[0], &there, &out[i]), HK_OK);
		if (i % 3 == 0)
			CHECK_EQ(hk__chan_open_recv(nets[1], &here, &in[i]), HK_OK);
	}
	for (uint32_t i = 0; i < 200; i++)
		send_one(out[i], 5, i);
	for (uint32_t i = 200; i-- > 0;) {
		receive_one(in[i], 5, i);
		hk__chan_close(in[i]);
		hk__chan_close(out[i]);
	}
	close_nets();
}

TEST(three_ranks)
{
	struct hk_chan *out[3][3] = { 0 }, *in[3][3] = { 0 };

	open_nets(3);
	for (uint32_t a = 0; a < 3; a++) {
		for (uint32_t b = 0; b < 3; b++) {
			struct hk_chan_spec there = spec_to(b, 2), here = spec_to(a, 2);

			if (a == b)
				continue;
			CHECK_EQ(hk__chan_open_send(nets[a], &there, &out[a][b]), HK_OK);
			CHECK_EQ(hk__chan_open_recv(nets[b], &here, &in[a][b]), HK_OK);
		}
	}
	for (uint32_t i = 0; i < 900; i++) {
		uint32_t a = i / 3 % 3, b = i % 3;

		if (a == b)
			continue;
		send_one(out[a][b], 20 + i % 9, i);
		receive_one(in[a][b], 20 + i % 9, i);
	}
	for (uint32_t i = 0; i < 9; i++) {
		hk__chan_close(out[i / 3][i % 3]);
		hk__chan_close(in[i / 3][i % 3]);
	}
	close_nets();
}

TEST(a_rank_talks_to_itself)
{
	struct hk_chan_spec self = spec_to(1, 2);
	struct hk_chan *out, *in;
	unsigned char to[SLOT_BYTES];

	open_nets(2);
	CHECK_EQ(hk__chan_open_send(nets[1], &self, &out), HK_OK);
	CHECK(!try_send(out, 4, 9, QUIET));
	CHECK_EQ(hk__chan_open_recv(nets[1], &self, &in), HK_OK);
	for (uint32_t i = 0; i < 300; i++) {
		send_one(out, i % SLOT_BYTES, i);
		send_one(out, SLOT_BYTES, i);
		CHECK(!try_send(out, 4, 9, 3));
		receive_one(in, i % SLOT_BYTES, i);
		take_one(in, to, SLOT_BYTES, i);
		CHECK(!hk__chan_lent(out));
	}
	send_one(out, 7, 7);
	hk__chan_close(out);
	receive_one(in, 7, 7);
	hk__chan_close(in);
	close_nets();
}

/* ---- what cannot be ---- */

TEST(wrong_calls)
{
	struct hk_chan_spec here = spec_to(0, 2), wrong = spec_to(2, 2);
	struct hk_chan *chan, *again;

	open_nets(2);
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_EINVAL);
	wrong = spec_to(0, HK_SLOTS_MIN - 1);
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_EINVAL);
	wrong = spec_to(0, HK_SLOTS_MAX + 1);
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_EINVAL);
	wrong = spec_to(0, 2);
	wrong.slot_bytes = 0;
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_EINVAL);
	wrong.slot_bytes = HK_SLOT_BYTES_MAX + 1;
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_EINVAL);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &chan), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &again), HK_EINVAL);
	hk__chan_close(chan);
	hk__chan_close(NULL);
	hk__net_close(NULL);
	close_nets();
}

TEST(two_ends_of_different_shapes)
{
	struct hk_chan_spec there = spec_to(1, 3), here = spec_to(0, 2);
	enum hk_status status = HK_OK;
	struct hk_chan *pair[2];
	void *slot;

	open_nets(2);
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &pair[0]), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &pair[1]), HK_OK);
	for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
		poll_all();
		status = hk__chan_reserve(pair[0], 4, &slot);
		CHECK(!slot);
	}
	CHECK_EQ(status, HK_EIO);
	CHECK_HAS(pair[0]->net->why.text, "rank 1");
	close_pair(pair);
	close_nets();
}

/* The first call only arms; no call sleeps for longer than it may. */
TEST(waiting_ends)
{
	struct hk_chan *pair[2];

	open_nets(2);
	open_pair(2, SLOT_BYTES, pair);
	send_one(pair[0], 4, 1);
	receive_one(pair[1], 4, 1);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(hk__net_wait(nets[0], UINT64_C(1000000)), HK_OK);
		CHECK_EQ(hk__net_wait(nets[1], 1), HK_OK);
	}
	close_pair(pair);
	close_nets();
}
