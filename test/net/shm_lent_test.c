/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm_lent_test.c - memory that was lent in place: how long it has to stay, and
 * what its reader is told when it did not.
 */
#include "harness.h"
#include "net/shm/shm.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)8 << 20)
#define LENT (1u << 20)

static void *segments[2];

static void *segment_of(void *ctx, uint32_t rank)
{
	(void)ctx;
	return segments[rank];
}

static void make_segments(void)
{
	for (uint32_t r = 0; r < 2; r++) {
		int fd;

		CHECK_EQ(hk__shm_segment_create(BYTES, &fd), HK_OK);
		CHECK_EQ(hk__shm_segment_map(fd, 0, BYTES, &segments[r]), HK_OK);
		close(fd);
	}
}

static struct hk_net *open_net(uint32_t rank, bool threads)
{
	struct hk_shm_spec spec = {
		.rank = rank, .n = 2, .bytes = BYTES, .threads = threads, .segment = segment_of
	};
	struct hk_net *net;

	CHECK_EQ(hk__shm_open(&spec, &net), HK_OK);
	return net;
}

static struct hk_chan_spec spec_to(uint32_t peer)
{
	return (struct hk_chan_spec){ { .peer = peer, .context = 5 }, 2, LENT };
}

static void *map_lent(void)
{
	void *at = mmap(NULL, LENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	memset(at, 1, LENT);
	return at;
}

static void send_small(struct hk_chan *chan)
{
	void *slot = NULL;

	while (!slot) {
		CHECK_EQ(hk__chan_reserve(chan, 1, &slot), HK_OK);
		usleep(slot ? 0 : 100);
	}
	memset(slot, 0, 1);
	hk__chan_post(chan, 1, 0);
}

static enum hk_status look(struct hk_chan *chan, struct hk_message *message_out)
{
	enum hk_status status = HK_OK;

	message_out->data = NULL;
	for (int i = 0; i < 100000 && status == HK_OK && !message_out->data; i++) {
		status = hk__chan_peek(chan, message_out);
		if (status == HK_OK && !message_out->data)
			usleep(100);
	}
	return status;
}

static void receive_small(struct hk_chan *chan)
{
	struct hk_message message;

	CHECK_EQ(look(chan, &message), HK_OK);
	CHECK(message.data && message.len == 1);
	CHECK_EQ(hk__chan_release(chan), HK_OK);
}

static void lend(struct hk_chan *chan, const void *data)
{
	bool done = false;

	while (!done) { /* the receiver may not have released the last of the small ones */
		CHECK_EQ(hk__chan_lend(chan, data, LENT, 0, &done), HK_OK);
		usleep(done ? 0 : 100);
	}
}

/* ---- threads ---- */

static struct hk_net *nets[2];
static struct hk_chan *pair[2];

static void open_threads(void)
{
	struct hk_chan_spec there = spec_to(1), here = spec_to(0);

	make_segments();
	for (uint32_t r = 0; r < 2; r++)
		nets[r] = open_net(r, true);
	CHECK_EQ(hk__chan_open_send(nets[0], &there, &pair[0]), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[1], &here, &pair[1]), HK_OK);
	for (int i = 0; i < 4; i++) {
		send_small(pair[0]);
		receive_small(pair[1]);
	}
}

static void close_threads(void)
{
	for (uint32_t r = 0; r < 2; r++)
		hk__chan_close(pair[r]);
	for (uint32_t r = 0; r < 2; r++) {
		hk__net_close(nets[r]);
		hk__shm_segment_unmap(segments[r], BYTES);
	}
}

TEST(unmapped_memory_is_not_handed_out)
{
	for (int takes = 0; takes < 2; takes++) {
		struct hk_message message;
		enum hk_status status;
		char *to = malloc(LENT);
		bool done;

		CHECK(to);
		open_threads();
		void *from = map_lent();
		lend(pair[0], from);
		hk__chan_cancel(pair[0]);
		CHECK_EQ(munmap(from, LENT), 0);
		status = takes ? hk__chan_take(pair[1], to, LENT, &message, &done)
			       : hk__chan_peek(pair[1], &message);
		CHECK_EQ(status, HK_EREVOKED);
		CHECK_HAS(nets[1]->why.text, "rank 0 withdrew a message");
		close_threads();
		free(to);
	}
}

/* One that looked, and went on to something else, is not waited for. */
TEST(who_has_looked_away_keeps_nobody)
{
	struct hk_message message;

	open_threads();
	void *from = map_lent();
	lend(pair[0], from);
	CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
	CHECK_EQ(message.data, from);
	hk__chan_unpeek(pair[1]);
	CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
	CHECK_EQ(message.data, from);
	hk__chan_unpeek(pair[1]);
	hk__chan_cancel(pair[0]);
	CHECK_EQ(munmap(from, LENT), 0);
	CHECK_EQ(hk__chan_peek(pair[1], &message), HK_EREVOKED);
	close_threads();
}

static atomic_bool looked;

static void *read_slowly(void *ctx)
{
	struct hk_message message;
	uint64_t sum = 0;

	(void)ctx;
	CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
	CHECK(message.data);
	atomic_store(&looked, true);
	usleep(50000); /* the other thread unmaps it now, if nothing keeps it */
	for (uint32_t i = 0; i < LENT; i++)
		sum += ((const unsigned char *)message.data)[i];
	CHECK_EQ(sum, LENT);
	(void)hk__chan_release(pair[1]);
	return NULL;
}

TEST(a_thread_that_reads_is_waited_for)
{
	pthread_t reader;

	open_threads();
	void *from = map_lent();
	lend(pair[0], from);
	CHECK_EQ(pthread_create(&reader, NULL, read_slowly, NULL), 0);
	while (!atomic_load(&looked))
		usleep(100);
	hk__chan_cancel(pair[0]);
	memset(from, 2, LENT);
	CHECK_EQ(munmap(from, LENT), 0);
	CHECK_EQ(pthread_join(reader, NULL), 0);
	close_threads();
}

/* ---- processes ---- */

/* Rank 0: lends, takes back or not, unmaps, says so, and lives until `hold` ends. */
static pid_t start_lender(bool cancels, const int says[2], const int hold[2])
{
	struct hk_chan_spec there = spec_to(1);
	struct hk_chan *chan;
	char byte = 1;

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	close(hold[1]);
	struct hk_net *net = open_net(0, false);
	CHECK_EQ(hk__chan_open_send(net, &there, &chan), HK_OK);
	void *from = map_lent();
	for (int i = 0; i < 8; i++)
		send_small(chan);
	if (hk__chan_lendable(chan, from, LENT) == HK_LEND_NO)
		byte = 0; /* the system does not let anybody read */
	else
		lend(chan, from);
	if (cancels)
		hk__chan_cancel(chan);
	CHECK_EQ(munmap(from, LENT), 0);
	CHECK_EQ(write(says[1], &byte, 1), 1);
	while (read(hold[0], &byte, 1) > 0)
		;
	_exit(0);
}

static void withdrawn_from(bool cancels, enum hk_status expected, const char *text)
{
	struct hk_chan_spec here = spec_to(0);
	struct hk_message message;
	struct hk_chan *chan;
	int says[2], hold[2];
	char byte;

	make_segments();
	CHECK_EQ(pipe(says) + pipe(hold), 0);
	pid_t pid = start_lender(cancels, says, hold);
	close(says[1]); /* a lender that fails is not waited for */
	struct hk_net *net = open_net(1, false);
	CHECK_EQ(hk__chan_open_recv(net, &here, &chan), HK_OK);
	for (int i = 0; i < 8; i++)
		receive_small(chan);
	CHECK_EQ(read(says[0], &byte, 1), 1);
	if (byte) {
		CHECK_EQ(look(chan, &message), expected);
		CHECK_HAS(net->why.text, text);
	}
	hk__chan_close(chan);
	hk__net_close(net);
	close(says[0]);
	for (int i = 0; i < 2; i++) {
		close(hold[i]);
		hk__shm_segment_unmap(segments[i], BYTES);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	if (!byte)
		SKIP("no process may read another's memory here");
}

TEST(a_living_process_that_withdrew_is_not_gone)
{
	withdrawn_from(true, HK_EREVOKED, "rank 0 withdrew a message");
}

/* Its program unmapped what it was sending. */
TEST(memory_that_its_owner_unmapped_too_soon)
{
	withdrawn_from(false, HK_EIO, "memory that rank 0 sends cannot be read");
}

/* ---- processes that have the same number ---- */

/* *alone_out: this is process 1 of a PID namespace of its own. Else its parent. */
static pid_t fork_alone(bool *alone_out)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	*alone_out = pid == 0;
	if (pid)
		return pid;
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
		_exit(77);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
		return 0;
	}
	int status;
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Both are forked from one: what they allocate lies at the same addresses. */
static void namesake_rank(uint32_t rank)
{
	struct hk_chan_spec spec = spec_to(1 - rank);
	struct hk_net *net = open_net(rank, false);
	struct hk_chan *chan;

	CHECK_EQ(getpid(), 1);
	if (rank == 1) {
		CHECK_EQ(hk__chan_open_recv(net, &spec, &chan), HK_OK);
		for (int i = 0; i < 9; i++)
			receive_small(chan);
		return;
	}
	CHECK_EQ(hk__chan_open_send(net, &spec, &chan), HK_OK);
	void *from = map_lent();
	for (int i = 0; i < 9; i++)
		send_small(chan);
	CHECK_EQ(hk__chan_lendable(chan, from, LENT), HK_LEND_NO);
}

/* Who reads process 1 there reads itself, and finds what it looks for. */
TEST(a_process_does_not_take_itself_for_another)
{
	pid_t pids[2];
	int status[2];

	make_segments();
	for (uint32_t r = 0; r < 2; r++) {
		bool alone;

		pids[r] = fork_alone(&alone);
		if (alone) {
			namesake_rank(r);
			_exit(0);
		}
	}
	for (uint32_t r = 0; r < 2; r++)
		CHECK_EQ(waitpid(pids[r], &status[r], 0), pids[r]);
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(WIFEXITED(status[r]));
		if (WEXITSTATUS(status[r]) == 77)
			SKIP("no PID namespace can be had");
		CHECK_EQ(WEXITSTATUS(status[r]), 0);
	}
	for (int i = 0; i < 2; i++)
		hk__shm_segment_unmap(segments[i], BYTES);
}
