/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_health_test.c - the contract of net.h beside messages: notes, ranks
 * that leave, stop and die, and what was lent and is taken back. Ranks 0 and 1
 * are those of one machine, where a transport tells machines apart.
 */
#include "harness.h"
#include "net/fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE 100000u
#define SLOTS 2u
#define PATIENCE_S 50 /* for what must happen; tests have a minute */

/* ---- what a rank has heard ---- */

#define HEARD_MAX 512u

struct heard {
	uint32_t told, left, lost, dead;
	uint32_t rank;			 /* the last one heard of, or from */
	uint32_t lens[HEARD_MAX];	 /* of notes */
	unsigned char firsts[HEARD_MAX]; /* bytes of them */
	char why[128];
};

static void hear(void *ctx, const struct hk_net_event *event)
{
	struct heard *heard = ctx;

	heard->rank = event->rank;
	if (event->what == HK_NET_TOLD) {
		const unsigned char *note = event->note;

		CHECK(heard->told < HEARD_MAX && event->len <= HK_NOTE_MAX);
		heard->lens[heard->told] = event->len;
		heard->firsts[heard->told++] = event->len ? note[0] : 0;
		for (uint32_t i = 1; i < event->len; i++)
			CHECK_EQ(note[i], (unsigned char)(note[0] + i));
	}
	heard->left += event->what == HK_NET_LEFT;
	heard->lost += event->what == HK_NET_LOST;
	heard->dead += event->what == HK_NET_DEAD;
	if (event->what == HK_NET_DEAD)
		(void)snprintf(heard->why, sizeof(heard->why), "%s", event->why);
}

static struct hk_net *join(uint32_t rank, struct heard *heard)
{
	struct hk_net *net = fixture_join(rank);

	*heard = (struct heard){ 0 };
	net->event = hear;
	net->event_ctx = heard;
	return net;
}

static void tell(struct hk_net *net, uint32_t len, unsigned char first)
{
	unsigned char note[HK_NOTE_MAX];

	for (uint32_t i = 0; i < len; i++)
		note[i] = (unsigned char)(first + i);
	hk__net_tell(net, note, len);
}

static uint64_t time_limit(void)
{
	return hk__now_ns() + PATIENCE_S * UINT64_C(1000000000);
}

/* As somebody does who waits: polls and, now and then, watches. */
static void until(struct hk_net *net, const uint32_t *count, uint32_t wanted)
{
	uint64_t limit = time_limit();

	while (*count < wanted && hk__now_ns() < limit) {
		CHECK_EQ(hk__net_poll(net), HK_OK);
		hk__net_watch(net);
		CHECK_EQ(hk__net_wait(net, UINT64_C(1000000)), HK_OK);
	}
	CHECK_EQ(*count, wanted);
}

/* What must not happen has not, after all of this. */
static void linger(struct hk_net *net)
{
	for (int i = 0; i < 60; i++) {
		CHECK_EQ(hk__net_poll(net), HK_OK);
		hk__net_watch(net);
		CHECK_EQ(hk__net_wait(net, UINT64_C(5000000)), HK_OK);
	}
}

static struct hk_chan_spec spec_with(uint32_t peer)
{
	return (struct hk_chan_spec){ { .peer = peer, .from_lane = 3, .to_lane = 4, .context = 5 },
				      SLOTS,
				      LARGE };
}

/* From rank 0 to rank 1; transports that connect have done so. */
static void open_pair(struct hk_net *nets[2], struct hk_chan *pair[2])
{
	struct hk_chan_spec there = spec_with(1), here = spec_with(0);
	uint64_t limit = time_limit();
	void *slot = NULL;

	CHECK_EQ(hk__chan_open_send(nets[0], &there, &pair[0]), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &pair[1]), HK_OK);
	while (!slot && hk__now_ns() < limit) {
		CHECK_EQ(hk__net_poll(nets[0]), HK_OK);
		CHECK_EQ(hk__net_poll(nets[1]), HK_OK);
		CHECK_EQ(hk__chan_reserve(pair[0], 4, &slot), HK_OK);
	}
	CHECK(slot);
}

static void close_pair(struct hk_chan *pair[2])
{
	hk__chan_close(pair[0]);
	hk__chan_close(pair[1]);
}

/* ---- notes ---- */

TEST(a_note_is_heard_once_by_the_others)
{
	struct heard heard[2];
	struct hk_net *nets[2];
	struct hk_chan *pair[2];

	fixture_prepare(2);
	for (uint32_t r = 0; r < 2; r++)
		nets[r] = join(r, &heard[r]);
	open_pair(nets, pair);
	for (uint32_t len = 0; len <= HK_NOTE_MAX; len++) {
		tell(nets[len % 2], len, (unsigned char)(len * 5));
		until(nets[1 - len % 2], &heard[1 - len % 2].told, 1 + len / 2);
		CHECK_EQ(heard[1 - len % 2].rank, len % 2);
		CHECK_EQ(heard[1 - len % 2].lens[len / 2], len);
		CHECK_EQ(heard[1 - len % 2].firsts[len / 2], (unsigned char)(len * 5));
	}
	linger(nets[0]);
	linger(nets[1]);
	CHECK_EQ(heard[0].told, HK_NOTE_MAX / 2);
	CHECK_EQ(heard[1].told, HK_NOTE_MAX / 2 + 1);
	close_pair(pair);
	fixture_close(2, nets);
}

/* Who does not look for a while has not missed anything. */
TEST(two_hundred_notes_in_order)
{
	struct heard heard[2];
	struct hk_net *nets[2];
	struct hk_chan *pair[2];

	fixture_prepare(2);
	for (uint32_t r = 0; r < 2; r++)
		nets[r] = join(r, &heard[r]);
	open_pair(nets, pair);
	for (uint32_t round = 1; round <= 2; round++) {
		for (uint32_t i = 0; i < 200; i++)
			tell(nets[0], 1 + i % HK_NOTE_MAX, (unsigned char)i);
		until(nets[1], &heard[1].told, round * 200);
		for (uint32_t i = 0; i < 200; i++) {
			CHECK_EQ(heard[1].lens[(round - 1) * 200 + i], 1 + i % HK_NOTE_MAX);
			CHECK_EQ(heard[1].firsts[(round - 1) * 200 + i], i);
		}
	}
	CHECK_EQ(heard[0].told, 0);
	close_pair(pair);
	fixture_close(2, nets);
}

static void *sleep_until_told(void *ctx)
{
	struct hk_net *net = ctx;
	const struct heard *heard = net->event_ctx;

	/* Longer than the test may take: one that is not woken is too late. */
	while (!heard->told) {
		CHECK_EQ(hk__net_wait(net, UINT64_C(600000000000)), HK_OK);
		CHECK_EQ(hk__net_poll(net), HK_OK);
	}
	return NULL;
}

TEST(a_note_wakes_who_sleeps)
{
	struct heard heard[2];
	struct hk_net *nets[2];
	struct hk_chan *pair[2];
	pthread_t sleeper;

	fixture_prepare(2);
	for (uint32_t r = 0; r < 2; r++)
		nets[r] = join(r, &heard[r]);
	open_pair(nets, pair);
	for (uint32_t i = 0; i < 50; i++) {
		heard[1].told = 0;
		CHECK_EQ(pthread_create(&sleeper, NULL, sleep_until_told, nets[1]), 0);
		/* It may be asleep by now, or just about to be, or still awake. */
		usleep(i % 10 * 300);
		tell(nets[0], 8, 1);
		CHECK_EQ(hk__net_poll(nets[0]), HK_OK);
		CHECK_EQ(pthread_join(sleeper, NULL), 0);
	}
	close_pair(pair);
	fixture_close(2, nets);
}

/* ---- ranks that are gone ---- */

TEST(who_closes_its_end_has_left)
{
	struct heard heard[2];
	struct hk_net *nets[2];
	struct hk_chan *pair[2];

	fixture_prepare(2);
	for (uint32_t r = 0; r < 2; r++)
		nets[r] = join(r, &heard[r]);
	open_pair(nets, pair);
	close_pair(pair);
	linger(nets[0]);
	CHECK_EQ(heard[0].left + heard[0].lost + heard[0].dead, 0);
	fixture_leave(1, nets[1]);
	until(nets[0], &heard[0].left, 1);
	CHECK_EQ(heard[0].rank, 1);
	linger(nets[0]);
	CHECK_EQ(heard[0].left, 1);
	CHECK_EQ(heard[0].lost + heard[0].dead, 0);
	fixture_leave(0, nets[0]);
	fixture_clear();
}

/* Rank 1, as a process: talks to rank 0, leaves if asked to, and ends or stays. */
static pid_t start_rank(bool leaves, bool stays)
{
	struct hk_chan_spec here = spec_with(0);
	struct heard heard;
	struct hk_chan *chan;

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	struct hk_net *net = join(1, &heard);
	CHECK_EQ(hk__chan_open_recv(net, &here, &chan), HK_OK);
	until(net, &heard.told, 1);
	while (stays)
		linger(net);
	if (leaves) {
		hk__chan_close(chan);
		fixture_leave(1, net);
	}
	_exit(0);
}

/* Rank 0: there, connected, and has told the other. */
static struct hk_net *meet_rank(struct heard *heard, struct hk_chan **chan_out)
{
	struct hk_chan_spec there = spec_with(1);
	struct hk_net *net = join(0, heard);
	uint64_t limit = time_limit();
	void *slot = NULL;

	CHECK_EQ(hk__chan_open_send(net, &there, chan_out), HK_OK);
	while (!slot && hk__now_ns() < limit) {
		CHECK_EQ(hk__net_poll(net), HK_OK);
		CHECK_EQ(hk__chan_reserve(*chan_out, 4, &slot), HK_OK);
	}
	CHECK(slot);
	tell(net, 3, 1);
	return net;
}

/* It is not reaped before: a process that ended is dead, whoever forgets it. */
static void end_of_rank(struct hk_net *net, struct heard *heard, struct hk_chan *chan, pid_t pid)
{
	until(net, &heard->dead, 1);
	CHECK_EQ(heard->rank, 1);
	CHECK_HAS(heard->why, "ended");
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	linger(net);
	CHECK_EQ(heard->dead, 1);
	CHECK_EQ(heard->left, 0);
	hk__chan_close(chan);
	fixture_leave(0, net);
	fixture_clear();
}

TEST(a_rank_that_is_killed_is_dead)
{
	struct heard heard;
	struct hk_chan *chan;

	fixture_prepare(2);
	pid_t pid = start_rank(false, true);
	struct hk_net *net = meet_rank(&heard, &chan);
	linger(net);
	CHECK_EQ(heard.left + heard.lost + heard.dead, 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	end_of_rank(net, &heard, chan, pid);
}

TEST(a_rank_that_ends_without_a_word_is_dead)
{
	struct heard heard;
	struct hk_chan *chan;

	fixture_prepare(2);
	pid_t pid = start_rank(false, false);
	struct hk_net *net = meet_rank(&heard, &chan);
	end_of_rank(net, &heard, chan, pid);
}

TEST(a_rank_that_leaves_and_ends_has_left)
{
	struct heard heard;
	struct hk_chan *chan;

	fixture_prepare(2);
	pid_t pid = start_rank(true, false);
	struct hk_net *net = meet_rank(&heard, &chan);
	until(net, &heard.left, 1);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	linger(net);
	CHECK_EQ(heard.left, 1);
	CHECK_EQ(heard.lost + heard.dead, 0);
	hk__chan_close(chan);
	fixture_leave(0, net);
	fixture_clear();
}

TEST(a_rank_that_stops_is_neither)
{
	struct heard heard;
	struct hk_chan *chan;
	int status;

	fixture_prepare(2);
	pid_t pid = start_rank(false, true);
	struct hk_net *net = meet_rank(&heard, &chan);
	CHECK_EQ(kill(pid, SIGSTOP), 0);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	linger(net);
	CHECK_EQ(heard.left + heard.lost + heard.dead, 0);
	CHECK_EQ(kill(pid, SIGCONT), 0);
	linger(net);
	CHECK_EQ(heard.left + heard.lost + heard.dead, 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	end_of_rank(net, &heard, chan, pid);
}

/* ---- what was lent, and is taken back ---- */

static void lend(struct hk_net *nets[2], struct hk_chan *chan, void *data)
{
	uint64_t limit = time_limit();
	bool done = false;

	memset(data, 1, LARGE);
	while (!done && hk__now_ns() < limit) {
		CHECK_EQ(hk__net_poll(nets[0]), HK_OK);
		CHECK_EQ(hk__chan_lend(chan, data, LARGE, 0, &done), HK_OK);
	}
	CHECK(done);
}

/* Nobody believes bytes that changed under its eyes. */
TEST(what_is_cancelled_is_not_taken_for_good)
{
	for (int takes = 0; takes < 2; takes++) {
		struct hk_message message = { 0 };
		enum hk_status status = HK_OK;
		struct heard heard[2];
		struct hk_net *nets[2];
		struct hk_chan *pair[2];
		bool done = false;

		fixture_prepare(2);
		for (uint32_t r = 0; r < 2; r++)
			nets[r] = join(r, &heard[r]);
		open_pair(nets, pair);
		void *from = fixture_memory(0, LARGE), *to = fixture_memory(1, LARGE);
		lend(nets, pair[0], from);
		for (int i = 0; i < 1000 && !takes && !message.data; i++) {
			CHECK_EQ(hk__net_poll(nets[1]), HK_OK);
			CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
		}
		hk__chan_cancel(pair[0]);
		memset(from, 2, LARGE);
		if (takes)
			status = hk__chan_take(pair[1], to, LARGE, &message, &done);
		else if (message.data)
			status = hk__chan_release(pair[1]);
		/* Either it had come before, as it was; or not at all; or it is refused. */
		CHECK(status == HK_EREVOKED || (status == HK_OK && (!done || *(char *)to == 1)));
		close_pair(pair);
		fixture_close(2, nets);
	}
}
