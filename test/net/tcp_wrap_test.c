/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_wrap_test.c - counters of TCP channels, from just below 2^32 on. */
#include "harness.h"
#include "net/fixture.h"
#include "net/tcp/link.h"

#define LEN 40u

/* Both ends have so many messages behind them; none is on its way. */
static void pair_set_count(struct hk_chan *pair[2], uint64_t count)
{
	((struct tcp_chan *)pair[0])->posted = count;
	((struct tcp_chan *)pair[1])->released = count;
}

static bool send_one(struct hk_chan *chan, unsigned char fill)
{
	void *slot;

	CHECK_EQ(hk__chan_reserve(chan, LEN, &slot), HK_OK);
	if (!slot)
		return false;
	memset(slot, fill, LEN);
	hk__chan_post(chan, LEN, 0);
	return true;
}

/* Until it has come: both ranks are of this thread. */
static void take_one(struct hk_net *nets[2], struct hk_chan *chan, unsigned char fill)
{
	uint64_t deadline = hk__now_ns() + UINT64_C(60000000000);
	unsigned char got[LEN] = { 0 };
	struct hk_message message;
	bool done = false;

	while (!done) {
		CHECK(hk__now_ns() < deadline);
		for (uint32_t r = 0; r < 2; r++)
			CHECK_EQ(hk__net_poll(nets[r]), HK_OK);
		CHECK_EQ(hk__chan_take(chan, got, sizeof(got), &message, &done), HK_OK);
	}
	CHECK_EQ(message.len, LEN);
	CHECK_EQ(got[0], fill);
	CHECK_EQ(got[LEN - 1], fill);
}

/* As many as there are slots, then all are taken, and so on. */
static void rounds(struct hk_net *nets[2], struct hk_chan *pair[2], uint32_t slots, uint32_t count)
{
	for (uint32_t turn = 0; turn < count; turn++) {
		for (uint32_t i = 0; i < slots; i++) {
			uint64_t deadline = hk__now_ns() + UINT64_C(60000000000);

			while (!send_one(pair[0], (unsigned char)(turn * 16 + i))) {
				CHECK(hk__now_ns() < deadline);
				for (uint32_t r = 0; r < 2; r++)
					CHECK_EQ(hk__net_poll(nets[r]), HK_OK);
			}
		}
		for (uint32_t i = 0; i < slots; i++)
			take_one(nets, pair[1], (unsigned char)(turn * 16 + i));
	}
}

TEST(messages_come_round)
{
	for (uint32_t slots = HK_SLOTS_MIN; slots <= 4; slots++) {
		for (uint32_t before = 1; before <= slots + 1; before++) {
			struct hk_chan_spec there = { { .peer = 1, .context = 5 }, slots, LEN };
			struct hk_chan_spec here = { { .peer = 0, .context = 5 }, slots, LEN };
			struct hk_net *nets[2];
			struct hk_chan *pair[2];

			fixture_open(2, nets);
			CHECK_EQ(hk__chan_open_send(nets[0], &there, &pair[0]), HK_OK);
			CHECK_EQ(hk__chan_open_recv(nets[1], &here, &pair[1]), HK_OK);
			rounds(nets, pair, slots, 2);
			pair_set_count(pair, (UINT64_C(1) << 32) - before);
			rounds(nets, pair, slots, 6);
			hk__chan_close(pair[0]);
			hk__chan_close(pair[1]);
			fixture_close(2, nets);
		}
	}
}
