/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm_test.c - what is shared memory's own: room, and that nothing a peer
 * writes there is trusted. The contract is conformance_test.c's.
 */
#include "harness.h"
#include "net/shm/segment.h"
#include "net/shm/shm.h"
#include "net/keep.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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
		hk__fd_close(fd);
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

/* ---- counters that come round ---- */

/* Both ends have so many messages behind them, and every slot holds the last one it had. */
static void pair_set_count(struct hk_chan *pair[2], uint64_t count)
{
	struct shm_chan *from = chan_of(pair[0]), *to = chan_of(pair[1]);
	uint32_t slots = from->base.spec.slots;

	for (uint32_t i = 1; i <= slots; i++) {
		uint32_t slot = (uint32_t)((count - i) % slots);

		atomic_store(head_mark(to->heads + (size_t)slot * SHM_HEAD), (count - i + 1) << 32);
	}
	from->next = to->next = (uint32_t)(count % slots);
	from->count = from->taken_seen = to->count = count;
	atomic_store(&to->line->taken, count);
}

static void take_byte(struct hk_chan *chan, unsigned char fill)
{
	unsigned char got[SLOT_BYTES] = { 0 };
	struct hk_message message;
	bool done;

	CHECK_EQ(hk__chan_take(chan, got, sizeof(got), &message, &done), HK_OK);
	CHECK(done);
	CHECK_EQ(got[0], fill);
	CHECK_EQ(hk__chan_peek(chan, &message), HK_OK);
}

/* As many on their way as there are slots, and none is seen before it was sent. */
TEST(messages_come_round)
{
	for (uint32_t slots = HK_SLOTS_MIN; slots <= 5; slots++) {
		for (uint32_t before = 1; before <= 2 * slots; before++) {
			struct hk_net *nets[2];
			struct hk_chan *pair[2];
			struct hk_message message;

			open_both(nets);
			open_pair(nets, slots, pair);
			CHECK(send_bytes(pair[0], 4, 1)); /* so that it has found it */
			take_byte(pair[1], 1);
			pair_set_count(pair, (UINT64_C(1) << 32) - before);
			for (uint32_t turn = 0; turn < 4; turn++) {
				CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
				CHECK(!message.data);
				for (uint32_t i = 0; i < slots; i++)
					CHECK(send_bytes(pair[0], 4,
							 (unsigned char)(turn * 8 + i)));
				CHECK(!send_bytes(pair[0], 4, 99));
				for (uint32_t i = 0; i < slots; i++)
					take_byte(pair[1], (unsigned char)(turn * 8 + i));
			}
			close_pair(pair);
			close_both(nets);
		}
	}
}

/* An entry that was used that often is still one that was used: searches go on beyond it. */
TEST(uses_of_an_entry_come_round)
{
	struct hk_chan_spec spec = spec_to(0, 2);
	struct shm_entry *first, *second, *room;
	struct shm_place place;
	struct hk_net *nets[2];

	open_both(nets);
	struct shm_header *header = segments[1];
	CHECK(!hk__shm_entry_find(header, 0, &spec.key, &place, &first));
	CHECK(first);
	atomic_store(&first->use, UINT32_MAX - 1);
	hk__shm_entry_write(first, &spec, 64);
	CHECK(hk__shm_entry_find(header, 0, &spec.key, &place, NULL) == first);
	/* The next entry, as if of a key that hashes alike. */
	second = first + 1 < header->entries + SHM_ENTRIES ? first + 1 : header->entries;
	hk__shm_entry_write(second, &spec, 128);
	hk__shm_entry_clear(first);
	CHECK(hk__shm_entry_find(header, 0, &spec.key, &place, &room) == second);
	CHECK_EQ(place.at, 128);
	CHECK(room == first);
	atomic_store(&second->use, 0);
	atomic_store(&first->use, 0);
	close_both(nets);
}

/* ---- the board ---- */

static int memory_fd;
static void *board;

static void prepare_board(void)
{
	CHECK_EQ(hk__shm_segment_create(2 * BYTES + hk__shm_board_bytes(2), &memory_fd), HK_OK);
	memory_fd = fd_keep(memory_fd);
	CHECK_EQ(hk__shm_segment_map(memory_fd, 2 * BYTES, hk__shm_board_bytes(2), &board), HK_OK);
	for (uint32_t r = 0; r < 2; r++)
		CHECK_EQ(hk__shm_segment_map(memory_fd, r * BYTES, BYTES, &segments[r]), HK_OK);
}

static void clear_board(void)
{
	for (uint32_t r = 0; r < 2; r++)
		hk__shm_segment_unmap(segments[r], BYTES);
	hk__shm_segment_unmap(board, hk__shm_board_bytes(2));
	close(memory_fd);
}

struct heard {
	uint32_t told, left, dead;
	uint32_t first, last; /* of notes */
};

static void hear(void *ctx, const struct hk_net_event *event)
{
	struct heard *heard = ctx;

	if (event->what == HK_NET_TOLD) {
		CHECK_EQ(event->len, sizeof(uint32_t));
		memcpy(&heard->last, event->note, sizeof(uint32_t));
		if (!heard->told++)
			heard->first = heard->last;
	}
	heard->left += event->what == HK_NET_LEFT;
	heard->dead += event->what == HK_NET_DEAD;
}

static struct hk_net *open_seated(uint32_t rank, struct heard *heard)
{
	struct hk_shm_spec spec = { .rank = rank,
				    .n = 2,
				    .bytes = BYTES,
				    .segment = segment_of,
				    .board = board,
				    .seats = 2,
				    .lock_fd = memory_fd };
	struct hk_net *net;

	CHECK_EQ(hk__shm_open(&spec, &net), HK_OK);
	*heard = (struct heard){ 0 };
	net->event = hear;
	net->event_ctx = heard;
	return net;
}

/* Of more notes than there is room for, the last ones are heard. */
TEST(a_board_that_overflows)
{
	struct heard heard[2];
	struct hk_net *nets[2];

	prepare_board();
	for (uint32_t r = 0; r < 2; r++)
		nets[r] = open_seated(r, &heard[r]);
	for (uint32_t i = 0; i < 1000; i++)
		hk__net_tell(nets[0], &i, sizeof(i));
	CHECK_EQ(hk__net_poll(nets[1]), HK_OK);
	CHECK_EQ(heard[1].last, 999);
	CHECK_EQ(heard[1].first, 1000 - heard[1].told);
	CHECK(heard[1].told >= 200);
	for (uint32_t r = 0; r < 2; r++)
		hk__net_close(nets[r]);
	clear_board();
}

/* Notes that were told before somebody came are heard all the same. */
TEST(a_board_is_read_by_who_comes_late)
{
	struct heard heard[2];
	struct hk_net *nets[2];
	uint32_t note = 77;

	prepare_board();
	nets[0] = open_seated(0, &heard[0]);
	hk__net_tell(nets[0], &note, sizeof(note));
	nets[1] = open_seated(1, &heard[1]);
	CHECK_EQ(hk__net_poll(nets[1]), HK_OK);
	CHECK_EQ(heard[1].told, 1);
	CHECK_EQ(heard[1].last, 77);
	for (uint32_t r = 0; r < 2; r++)
		hk__net_close(nets[r]);
	clear_board();
}

/* Whatever stands there: no more is read than there is, and nothing breaks. */
TEST(a_board_that_lies)
{
	struct heard heard[2];
	struct hk_net *nets[2];
	uint64_t seed = test_seed(5);

	prepare_board();
	for (uint32_t r = 0; r < 2; r++)
		nets[r] = open_seated(r, &heard[r]);
	nets[1]->event = NULL; /* notes of any length that is one */
	for (uint32_t round = 0; round < 200; round++) {
		for (size_t i = 0; i < hk__shm_board_bytes(2) / 8; i++) {
			uint64_t any = test_random(&seed);

			if (round % 2 || i < 24)
				((uint64_t *)board)[i] = any >> test_random(&seed) % 64;
		}
		hk__net_tell(nets[0], &round, sizeof(round));
		CHECK_EQ(hk__net_poll(nets[1]), HK_OK);
		hk__net_watch(nets[1]);
	}
	for (uint32_t r = 0; r < 2; r++)
		hk__net_close(nets[r]);
	clear_board();
}

static void watch_for(struct hk_net *net, const uint32_t *count)
{
	for (int i = 0; i < 5000 && !*count; i++) {
		hk__net_watch(net);
		usleep(10000);
	}
	CHECK(*count);
}

/* Rank 1, as a process that closes what it has, and lives until `hold` is closed. */
static pid_t start_careless(const int hold[2])
{
	struct heard heard;
	char byte = 0;

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	struct hk_net *net = open_seated(1, &heard);
	uint32_t note = 1;
	close(memory_fd); /* and with it goes its lock */
	hk__net_tell(net, &note, sizeof(note));
	close(hold[1]);
	while (read(hold[0], &byte, 1) > 0)
		;
	_exit(0);
}

/* A daemon closes its descriptors: that is not death. */
TEST(a_lock_that_went_before_its_process)
{
	struct heard heard;
	int hold[2];

	prepare_board();
	CHECK_EQ(pipe(hold), 0);
	pid_t pid = start_careless(hold);
	struct hk_net *net = open_seated(0, &heard);
	for (int i = 0; i < 5000 && !heard.told; i++) {
		CHECK_EQ(hk__net_poll(net), HK_OK);
		usleep(10000);
	}
	CHECK_EQ(heard.told, 1);
	for (int i = 0; i < 100; i++)
		hk__net_watch(net);
	CHECK_EQ(heard.dead + heard.left, 0);
	close(hold[1]);
	close(hold[0]);
	watch_for(net, &heard.dead);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	hk__net_close(net);
	clear_board();
}

/* Rank 1 sends a message of its own, not lent, and ends as it stands. */
static pid_t start_sender(void)
{
	struct hk_chan_spec there = spec_to(0, 2);
	struct heard heard;
	struct hk_chan *chan;

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	struct hk_net *net = open_seated(1, &heard);
	there.slot_bytes = (uint32_t)BYTES / 4;
	CHECK_EQ(hk__chan_open_send(net, &there, &chan), HK_OK);
	while (!send_bytes(chan, 9, 9))
		usleep(1000);
	_exit(0);
}

/* The room of a sender that died is used again: here there is only one. */
TEST(a_room_is_free_when_its_sender_is_dead)
{
	struct hk_chan_spec here = spec_to(1, 2);
	struct hk_message message = { 0 };
	struct heard heard;
	struct hk_chan *chan;

	here.slot_bytes = (uint32_t)BYTES / 4;
	prepare_board();
	pid_t pid = start_sender();
	struct hk_net *net = open_seated(0, &heard);
	CHECK_EQ(hk__chan_open_recv(net, &here, &chan), HK_OK);
	while (!message.data)
		CHECK_EQ(hk__chan_peek(chan, &message), HK_OK);
	hk__chan_close(chan);
	CHECK_EQ(hk__chan_open_recv(net, &here, &chan), HK_ELIMIT);
	watch_for(net, &heard.dead);
	CHECK_EQ(hk__chan_open_recv(net, &here, &chan), HK_OK);
	CHECK_EQ(hk__chan_peek(chan, &message), HK_OK);
	CHECK(!message.data);
	hk__chan_close(chan);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	hk__net_close(net);
	clear_board();
}
