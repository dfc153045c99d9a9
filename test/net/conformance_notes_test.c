/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_notes_test.c - the part of net.h's contract beside messages, on
 * every transport: notes, ranks that leave, channels that are given up.
 */
#include "harness.h"
#include "net/fixture.h"

#define LARGE (3u << 20)
#define ROUNDS 2000000 /* until what must happen has not */
#define QUIET 200      /* after which what must not happen has not */

static struct hk_net *nets[FIXTURE_RANKS_MAX];
static uint32_t nnets;

/* What a rank has heard of another. */
struct heard {
	uint32_t times[HK_NET_DEAD + 1];
	uint32_t sum; /* of the bytes of its notes */
	uint32_t len; /* of the last one */
	bool answer;  /* each note, with another */
};

static struct heard heard[FIXTURE_RANKS_MAX][FIXTURE_RANKS_MAX];
static uint32_t ranks[FIXTURE_RANKS_MAX] = { 0, 1, 2, 3 };

static void hear(void *ctx, const struct hk_net_event *event)
{
	uint32_t self = *(uint32_t *)ctx;
	struct heard *of = &heard[self][event->rank];

	CHECK(event->rank < nnets && event->rank != self);
	of->times[event->what]++;
	if (event->what != HK_NET_TOLD)
		return;
	CHECK(event->len <= HK_NOTE_MAX);
	of->len = event->len;
	for (uint32_t i = 0; i < event->len; i++)
		of->sum += ((const unsigned char *)event->note)[i];
	if (of->answer) {
		of->answer = false;
		hk__net_tell(nets[self], "!", 1);
	}
}

static void open_nets(uint32_t n)
{
	nnets = n;
	fixture_open(n, nets);
	for (uint32_t r = 0; r < n; r++) {
		nets[r]->event = hear;
		nets[r]->event_ctx = &ranks[r];
	}
}

static void close_nets(void)
{
	for (uint32_t r = 0; r < nnets; r++)
		if (nets[r])
			nets[r]->event = NULL;
	fixture_close(nnets, nets);
}

static void move_all(void)
{
	for (uint32_t r = 0; r < nnets; r++) {
		if (!nets[r])
			continue;
		CHECK_EQ(hk__net_poll(nets[r]), HK_OK);
		hk__net_watch(nets[r]);
	}
}

static void open_pair(uint32_t from, uint32_t to, uint32_t slot_bytes, struct hk_chan *pair[2])
{
	struct hk_chan_spec spec = { { .context = 7 }, 2, slot_bytes };

	spec.key.peer = to;
	CHECK_EQ(hk__chan_open_send(nets[from], &spec, &pair[0]), HK_OK);
	spec.key.peer = from;
	CHECK_EQ(hk__chan_open_recv(nets[to], &spec, &pair[1]), HK_OK);
}

static void close_pair(struct hk_chan *pair[2])
{
	hk__chan_close(pair[0]);
	hk__chan_close(pair[1]);
}

static void send_one(struct hk_chan *chan, uint32_t len)
{
	void *slot = NULL;

	for (int i = 0; i < ROUNDS && !slot; i++) {
		move_all();
		CHECK_EQ(hk__chan_reserve(chan, len, &slot), HK_OK);
	}
	CHECK(slot);
	memset(slot, (int)len & 0xff, len);
	hk__chan_post(chan, len, 1);
}

static void receive_one(struct hk_chan *chan, uint32_t len)
{
	struct hk_message message = { 0 };

	for (int i = 0; i < ROUNDS && !message.data; i++) {
		move_all();
		CHECK_EQ(hk__chan_peek(chan, &message), HK_OK);
	}
	CHECK(message.data);
	CHECK_EQ(message.len, len);
	for (uint32_t i = 0; i < len; i++)
		CHECK_EQ(((const unsigned char *)message.data)[i], len & 0xff);
	CHECK_EQ(hk__chan_release(chan), HK_OK);
}

/* ---- notes ---- */

static void wait_told(uint32_t by, uint32_t of, uint32_t times)
{
	for (int i = 0; i < ROUNDS && heard[by][of].times[HK_NET_TOLD] < times; i++)
		move_all();
	CHECK_EQ(heard[by][of].times[HK_NET_TOLD], times);
}

TEST(notes_reach_everybody_once)
{
	struct hk_chan *pairs[2][2];
	unsigned char note[HK_NOTE_MAX];

	open_nets(3);
	memset(note, 3, sizeof(note));
	open_pair(0, 1, 100, pairs[0]);
	open_pair(2, 0, 100, pairs[1]);
	for (uint32_t i = 0; i < 2; i++) {
		send_one(pairs[i][0], 10);
		receive_one(pairs[i][1], 10);
	}
	for (uint32_t len = 0; len <= HK_NOTE_MAX; len++) {
		hk__net_tell(nets[0], note, len);
		wait_told(1, 0, len + 1);
		wait_told(2, 0, len + 1);
		CHECK_EQ(heard[1][0].len, len);
		CHECK_EQ(heard[2][0].sum, 3 * len * (len + 1) / 2);
	}
	for (int i = 0; i < QUIET; i++)
		move_all();
	wait_told(1, 0, HK_NOTE_MAX + 1);
	CHECK_EQ(heard[0][1].times[HK_NET_TOLD], 0);
	CHECK_EQ(heard[2][0].sum, heard[1][0].sum);
	close_pair(pairs[0]);
	close_pair(pairs[1]);
	close_nets();
}

/* Several at once; and what is heard may be answered from where it is. */
TEST(notes_are_answered_while_messages_pass)
{
	struct hk_chan *pair[2];

	open_nets(2);
	open_pair(0, 1, 2000, pair);
	send_one(pair[0], 10);
	receive_one(pair[1], 10);
	for (uint32_t i = 1; i <= 50; i++) {
		heard[1][0].answer = true;
		send_one(pair[0], 1000 + i);
		hk__net_tell(nets[0], "?", 1);
		hk__net_tell(nets[0], "??", 2);
		send_one(pair[0], 1100 + i);
		wait_told(1, 0, 2 * i);
		wait_told(0, 1, i);
		receive_one(pair[1], 1000 + i);
		receive_one(pair[1], 1100 + i);
	}
	close_pair(pair);
	close_nets();
}

/* ---- ranks that leave ---- */

TEST(who_leaves_has_left)
{
	struct hk_chan *pair[2];

	open_nets(2);
	open_pair(0, 1, 2000, pair);
	send_one(pair[0], 10);
	receive_one(pair[1], 10);
	send_one(pair[0], 1000);
	hk__chan_close(pair[0]);
	hk__net_close(nets[0]);
	nets[0] = NULL;
	for (int i = 0; i < ROUNDS && !heard[1][0].times[HK_NET_LEFT]; i++)
		move_all();
	/* What it had posted is there all the same. */
	receive_one(pair[1], 1000);
	for (int i = 0; i < QUIET; i++)
		move_all();
	CHECK_EQ(heard[1][0].times[HK_NET_LEFT], 1);
	CHECK_EQ(heard[1][0].times[HK_NET_LOST], 0);
	CHECK_EQ(heard[1][0].times[HK_NET_DEAD], 0);
	hk__chan_close(pair[1]);
	close_nets();
}

/* ---- channels that are given up ---- */

/* Nothing of it is read for the channel after that, or what is read is not used. */
TEST(lent_memory_is_taken_back)
{
	unsigned char *to = malloc(LARGE);
	struct hk_chan *pair[2], *other[2];
	struct hk_message message;
	bool done;

	CHECK(to);
	for (uint32_t round = 0; round < 8; round++) {
		open_nets(2);
		unsigned char *data = fixture_memory(0, LARGE);
		open_pair(0, 1, LARGE, pair);
		send_one(pair[0], 10);
		receive_one(pair[1], 10);
		memset(data, 1, LARGE);
		CHECK_EQ(hk__chan_lend(pair[0], data, LARGE, 0, &done), HK_OK);
		CHECK(done);
		done = false;
		for (uint32_t i = 0; i < round && !done; i++) {
			CHECK_EQ(hk__chan_take(pair[1], to, LARGE, &message, &done), HK_OK);
			move_all();
		}
		hk__chan_cancel(pair[0]);
		memset(data, 2, LARGE);
		for (int i = 0; i < QUIET && !done; i++) {
			move_all();
			if (hk__chan_take(pair[1], to, LARGE, &message, &done) != HK_OK)
				break;
		}
		for (uint32_t i = 0; i < LARGE && done; i++)
			CHECK_EQ(to[i], 1);
		/* Others are none the worse for it. */
		hk__chan_close(pair[0]);
		hk__chan_close(pair[1]);
		open_pair(0, 1, 2000, other);
		send_one(other[0], 1000);
		receive_one(other[1], 1000);
		close_pair(other);
		close_nets();
	}
	free(to);
}

TEST(memory_that_is_being_taken_into_is_given_back)
{
	unsigned char *to = malloc(LARGE);
	struct hk_chan *pair[2], *other[2];
	struct hk_message message;
	void *slot = NULL;
	bool done = false;

	CHECK(to);
	for (uint32_t round = 0; round < 8; round++) {
		open_nets(2);
		open_pair(0, 1, LARGE, pair);
		send_one(pair[0], 10);
		receive_one(pair[1], 10);
		CHECK_EQ(hk__chan_take(pair[1], to, LARGE, &message, &done), HK_OK);
		CHECK(!done);
		CHECK_EQ(hk__chan_reserve(pair[0], LARGE, &slot), HK_OK);
		CHECK(slot);
		memset(slot, 1, LARGE);
		hk__chan_post(pair[0], LARGE, 0);
		for (uint32_t i = 0; i < round && !done; i++) {
			move_all();
			CHECK_EQ(hk__chan_take(pair[1], to, LARGE, &message, &done), HK_OK);
		}
		hk__chan_cancel(pair[1]);
		memset(to, 2, LARGE);
		for (int i = 0; i < QUIET; i++)
			move_all();
		for (uint32_t i = 0; i < LARGE; i++)
			CHECK_EQ(to[i], 2);
		close_pair(pair);
		open_pair(0, 1, 2000, other);
		send_one(other[0], 1000);
		receive_one(other[1], 1000);
		close_pair(other);
		close_nets();
	}
	free(to);
}
