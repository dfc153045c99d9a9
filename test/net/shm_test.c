/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm_test.c - what is shared memory's own: room, and that nothing a peer
 * writes there is trusted. The contract is conformance_test.c's.
 */
#include "harness.h"
#include "net/shm/shm.h"

#include <unistd.h>

#define BYTES ((size_t)4 << 20)
#define SLOT_BYTES 200u

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

TEST(a_segment_is_full_in_the_end)
{
	struct hk_chan_spec here = spec_to(0, 2);
	struct hk_net *nets[2];
	struct hk_chan *chan;

	open_both(nets);
	here.slot_bytes = (uint32_t)BYTES;
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &chan), HK_ELIMIT);
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
