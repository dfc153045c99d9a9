/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm_test.c - the contract of net.h, on shared memory: order, slots, waking,
 * and that nothing a peer writes is trusted.
 */
#include "harness.h"
#include "net/shm/shm.h"

#include <pthread.h>
#include <unistd.h>

#define BYTES ((size_t)4 << 20)
#define SLOT_BYTES 200u
#define TIMEOUT_NS UINT64_C(20000000000)

static void *segments[2];

static void *segment_of(void *ctx, uint32_t rank)
{
	(void)ctx;
	return segments[rank];
}

static struct hk_net *open_net(uint32_t rank)
{
	struct hk_shm_spec spec = { .rank = rank, .n = 2, .bytes = BYTES, .segment = segment_of };
	struct hk_net *net;

	CHECK_EQ(hk__shm_open(&spec, &net), HK_OK);
	return net;
}

/* Two ranks in one thread: all but sleeping needs no more. */
static void open_both(struct hk_net *nets[2])
{
	for (uint32_t r = 0; r < 2; r++) {
		int fd;

		CHECK_EQ(hk__shm_segment_create(BYTES, &fd), HK_OK);
		CHECK_EQ(hk__shm_segment_map(fd, 0, BYTES, &segments[r]), HK_OK);
		close(fd);
	}
	for (uint32_t r = 0; r < 2; r++)
		nets[r] = open_net(r);
}

static void close_both(struct hk_net *nets[2])
{
	for (uint32_t r = 0; r < 2; r++) {
		hk__net_close(nets[r]);
		hk__shm_segment_unmap(segments[r], BYTES);
	}
}

static struct hk_chan_spec spec_to(uint32_t peer, uint32_t slots)
{
	return (struct hk_chan_spec){ { .peer = peer, .from_lane = 3, .to_lane = 4, .context = 5 },
				      slots,
				      SLOT_BYTES };
}

/* From rank 0 to rank 1. */
static void open_pair(struct hk_net *nets[2], uint32_t slots, struct hk_chan *pair[2])
{
	struct hk_chan_spec there = spec_to(1, slots), here = spec_to(0, slots);

	CHECK_EQ(hk__chan_open_send(nets[0], &there, &pair[0]), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &pair[1]), HK_OK);
}

static void close_pair(struct hk_chan *pair[2])
{
	hk__chan_close(pair[0]);
	hk__chan_close(pair[1]);
}

static bool send_bytes(struct hk_chan *chan, uint32_t len, unsigned char fill)
{
	void *slot;

	CHECK_EQ(hk__chan_reserve(chan, len, &slot), HK_OK);
	if (!slot)
		return false;
	memset(slot, fill, len);
	hk__chan_post(chan, len, len % HK_KINDS);
	return true;
}

static bool receive_bytes(struct hk_chan *chan, uint32_t len, unsigned char fill)
{
	struct hk_message message;

	CHECK_EQ(hk__chan_peek(chan, &message), HK_OK);
	if (!message.data)
		return false;
	CHECK_EQ(message.len, len);
	CHECK_EQ(message.kind, len % HK_KINDS);
	for (uint32_t i = 0; i < len; i++)
		CHECK_EQ(((const unsigned char *)message.data)[i], fill);
	hk__chan_release(chan);
	return true;
}

TEST(every_length_in_order)
{
	struct hk_net *nets[2];
	struct hk_chan *pair[2];

	open_both(nets);
	open_pair(nets, 3, pair);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t len = 0; len <= SLOT_BYTES; len++) {
			CHECK(send_bytes(pair[0], len, (unsigned char)(len + round)));
			CHECK(send_bytes(pair[0], SLOT_BYTES - len, 0xee));
			CHECK(receive_bytes(pair[1], len, (unsigned char)(len + round)));
			CHECK(receive_bytes(pair[1], SLOT_BYTES - len, 0xee));
			CHECK(!receive_bytes(pair[1], 0, 0));
		}
	}
	close_pair(pair);
	close_both(nets);
}

TEST(slots_are_counted)
{
	struct hk_net *nets[2];
	struct hk_chan *pair[2];
	struct hk_message message, again;
	void *slot, *same;

	open_both(nets);
	open_pair(nets, 2, pair);
	CHECK_EQ(hk__chan_reserve(pair[0], 8, &slot), HK_OK);
	CHECK_EQ(hk__chan_reserve(pair[0], 8, &same), HK_OK);
	CHECK(slot && slot == same);
	CHECK(send_bytes(pair[0], 8, 1));
	CHECK(send_bytes(pair[0], 8, 2));
	CHECK(!send_bytes(pair[0], 8, 3));
	/* A message that is looked at keeps its slot. */
	CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
	CHECK_EQ(hk__chan_peek(pair[1], &again), HK_OK);
	CHECK(message.data && message.data == again.data);
	CHECK(!send_bytes(pair[0], 8, 3));
	CHECK(receive_bytes(pair[1], 8, 1));
	CHECK(send_bytes(pair[0], 8, 3));
	CHECK(receive_bytes(pair[1], 8, 2));
	CHECK(receive_bytes(pair[1], 8, 3));
	close_pair(pair);
	close_both(nets);
}

TEST(a_sender_waits_for_the_channel_to_appear)
{
	struct hk_chan_spec there = spec_to(1, 2), here = spec_to(0, 2);
	struct hk_net *nets[2];
	struct hk_chan *pair[2];

	open_both(nets);
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &pair[0]), HK_OK);
	CHECK(!send_bytes(pair[0], 4, 9));
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &pair[1]), HK_OK);
	CHECK(send_bytes(pair[0], 4, 9));
	CHECK(receive_bytes(pair[1], 4, 9));
	close_pair(pair);
	close_both(nets);
}

TEST(many_channels_do_not_meet)
{
	struct hk_net *nets[2];
	struct hk_chan *out[200], *in[200];

	open_both(nets);
	for (uint32_t i = 0; i < 200; i++) {
		struct hk_chan_spec there = spec_to(1, 2), here = spec_to(0, 2);

		there.key.from_lane = here.key.from_lane = i % 8;
		there.key.to_lane = here.key.to_lane = i / 8;
		CHECK_EQ(hk__chan_open_recv(nets[1], &here, &in[i]), HK_OK);
		CHECK_EQ(hk__chan_open_send(nets[0], &there, &out[i]), HK_OK);
	}
	for (uint32_t i = 0; i < 200; i++)
		CHECK(send_bytes(out[i], 5, (unsigned char)i));
	for (uint32_t i = 0; i < 200; i++) {
		CHECK(receive_bytes(in[i], 5, (unsigned char)i));
		hk__chan_close(in[i]);
		hk__chan_close(out[i]);
	}
	close_both(nets);
}

TEST(wrong_calls)
{
	struct hk_chan_spec here = spec_to(0, 2), wrong = spec_to(2, 2);
	struct hk_net *nets[2];
	struct hk_chan *chan, *again;

	open_both(nets);
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_EINVAL);
	wrong = spec_to(0, HK_SLOTS_MIN - 1);
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_EINVAL);
	wrong = spec_to(0, 2);
	wrong.slot_bytes = 0;
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_EINVAL);
	wrong.slot_bytes = (uint32_t)BYTES;
	CHECK_EQ(hk__chan_open_recv(nets[1], &wrong, &chan), HK_ELIMIT);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &chan), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &again), HK_EINVAL);
	hk__chan_close(chan);
	hk__net_close(NULL);
	close_both(nets);
}

/* A peer can write anywhere in a segment it maps: nothing there is believed. */
TEST(a_peer_that_lies)
{
	struct hk_net *nets[2];
	struct hk_chan *pair[2];
	struct hk_message message;
	void *slot;

	open_both(nets);
	open_pair(nets, 2, pair);
	CHECK(send_bytes(pair[0], 4, 1));
	CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
	/* The mark is the eight bytes before a small message. */
	((uint32_t *)(uintptr_t)message.data)[-2] = SLOT_BYTES + 1;
	CHECK_EQ(hk__chan_peek(pair[1], &message), HK_EIO);
	/* `taken` is a line before the first slot; it says more than was sent. */
	CHECK(send_bytes(pair[0], 4, 1));
	CHECK_EQ(hk__chan_reserve(pair[0], 4, &slot), HK_OK);
	CHECK(!slot);
	struct hk_chan_spec other = spec_to(1, 3);
	struct hk_chan *unlike;
	CHECK_EQ(hk__chan_open_send(nets[0], &other, &unlike), HK_OK);
	CHECK_EQ(hk__chan_reserve(unlike, 4, &slot), HK_EIO);
	hk__chan_close(unlike);
	close_pair(pair);
	close_both(nets);
}

/* ---- two threads ---- */

#define MESSAGES 20000u

static void *send_all(void *ctx)
{
	struct hk_net **nets = ctx;
	struct hk_chan_spec there = spec_to(1, 2);
	struct hk_chan *chan;
	uint64_t seed = 1;

	CHECK_EQ(hk__chan_open_send(nets[0], &there, &chan), HK_OK);
	for (uint32_t i = 0; i < MESSAGES;) {
		if (send_bytes(chan, i % (SLOT_BYTES + 1), (unsigned char)i)) {
			i++;
			/* Now and then the receiver finds time to fall asleep. */
			if (test_random(&seed) % 997 == 0)
				usleep(300);
		} else {
			CHECK_EQ(hk__net_wait(nets[0], TIMEOUT_NS), HK_OK);
		}
	}
	hk__chan_close(chan);
	return NULL;
}

TEST(both_sleep_and_are_woken)
{
	struct hk_chan_spec here = spec_to(0, 2);
	struct hk_net *nets[2];
	struct hk_chan *chan;
	pthread_t sender;

	open_both(nets);
	CHECK_EQ(pthread_create(&sender, NULL, send_all, nets), 0);
	usleep(2000);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &chan), HK_OK);
	for (uint32_t i = 0; i < MESSAGES;) {
		if (receive_bytes(chan, i % (SLOT_BYTES + 1), (unsigned char)i))
			i++;
		else
			CHECK_EQ(hk__net_wait(nets[1], TIMEOUT_NS), HK_OK);
	}
	CHECK_EQ(pthread_join(sender, NULL), 0);
	hk__chan_close(chan);
	close_both(nets);
}
