/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_test.c - what is TCP's own: what a peer must not say, connections that
 * end at any byte, ways to be connected, memory that runs out.
 */
#include "harness.h"
#include "net/puppet.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

/* ---- what a peer must not say ---- */

TEST(frames_that_cannot_be)
{
	static const struct wire_frame frames[] = { { WIRE_DATA, 0, 0, SLOT_BYTES + 1 },
						    { WIRE_DATA, 0, 0, UINT32_MAX },
						    { WIRE_DATA, 0, 1, 4 },
						    { WIRE_DATA, 0, UINT32_MAX, 4 },
						    { WIRE_DATA, HK_KINDS, 0, 4 },
						    { WIRE_CREDIT, 0, 0, 1 },
						    { WIRE_CREDIT, 0, UINT32_MAX, 1 },
						    { WIRE_CLOSE, 0, 0, 0 },
						    { WIRE_CLOSE, 0, 7, 0 },
						    { WIRE_CLOSED, 0, 0, 0 },
						    { WIRE_CLOSED, 0, 9, 0 },
						    { WIRE_UP, 0, 0, 0 },
						    { WIRE_NOTE, 0, 0, HK_NOTE_MAX + 1 },
						    { WIRE_NOTE, 0, 0, UINT32_MAX },
						    { 0, 0, 0, 0 },
						    { 255, 0, 0, 0 } };
	static const struct hk_why none;
	uint32_t messages;

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct hk_chan *in;

		open_ranks(2);
		int fd = puppet_rank(&in);
		puppet_frame(fd, frames[i]);
		CHECK_EQ(end_of(in, &messages), HK_EIO);
		CHECK_EQ(messages, 0);
		CHECK_HAS(nets[1]->why.text, "rank 0 (127.0.0.1:");
		CHECK(puppet_is_cut_off(fd));
		/* Every call about that rank says so. */
		nets[1]->why = none;
		CHECK_EQ(end_of(in, &messages), HK_EIO);
		CHECK_HAS(nets[1]->why.text, "rank 0 (127.0.0.1:");
		hk__chan_close(in);
		close(fd);
		close_ranks();
	}
}

TEST(more_messages_than_slots)
{
	struct hk_chan *in;
	struct hk_message message;
	enum hk_status status = HK_OK;

	open_ranks(2);
	int fd = puppet_rank(&in);
	for (uint32_t i = 0; i <= SLOTS; i++)
		puppet_frame(fd, (struct wire_frame){ WIRE_DATA, 0, 0, 0 });
	CHECK(puppet_is_cut_off(fd));
	for (uint32_t i = 0; i < SLOTS; i++) {
		CHECK_EQ(hk__chan_peek(in, &message), HK_OK);
		CHECK(message.data);
		CHECK_EQ(hk__chan_release(in), HK_OK);
	}
	status = hk__chan_peek(in, &message);
	CHECK_EQ(status, HK_EIO);
	CHECK_HAS(nets[1]->why.text, "more messages than there are slots");
	hk__chan_close(in);
	close(fd);
	close_ranks();
}

/* Ids are given out from below; another one would cost memory. */
TEST(channels_with_wild_ids)
{
	static const uint32_t ids[] = { 1, 65536, UINT32_MAX };
	uint32_t messages;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct hk_chan *in;

		open_ranks(2);
		int fd = puppet_rank(&in);
		puppet_frame(fd, (struct wire_frame){ WIRE_OPEN, 0, ids[i], 0 });
		CHECK_EQ(end_of(in, &messages), HK_EIO);
		hk__chan_close(in);
		close(fd);
		close_ranks();
	}
}

/* A channel from rank 1 to the puppet, and a slot of it. */
static struct hk_chan *puppet_opens(int fd, uint32_t slot_bytes, void **slot_out)
{
	struct hk_chan_spec there = spec_to(0, 0);
	struct wire_open open = { 0, 0, 1, SLOTS, slot_bytes };
	struct wire_frame frame = { .type = WIRE_OPEN };
	unsigned char bytes[WIRE_FRAME_BYTES] = { 0 };
	struct hk_chan *out;

	there.slot_bytes = slot_bytes;
	CHECK_EQ(hk__chan_open_send(nets[1], &there, &out), HK_OK);
	wire_put_frame(bytes, &frame);
	wire_put_open(bytes, &open);
	puppet_write(fd, bytes, sizeof(bytes));
	*slot_out = NULL;
	for (int i = 0; i < ROUNDS && !*slot_out; i++) {
		poll_all();
		CHECK_EQ(hk__chan_reserve(out, 4, slot_out), HK_OK);
	}
	CHECK(*slot_out);
	return out;
}

TEST(credit_for_what_was_never_sent)
{
	unsigned char head[WIRE_FRAME_BYTES + 4];
	struct hk_chan *in, *out;
	uint32_t messages;
	void *slot;

	open_ranks(2);
	int fd = puppet_rank(&in);
	out = puppet_opens(fd, SLOT_BYTES, &slot);
	memcpy(slot, "four", 4);
	hk__chan_post(out, 4, 2);
	CHECK(puppet_read(fd, head, sizeof(head)));
	CHECK_EQ(wire_get_frame(head).type, WIRE_DATA);
	CHECK_EQ(wire_get_frame(head).kind, 2);
	CHECK(!memcmp(head + WIRE_FRAME_BYTES, "four", 4));
	puppet_frame(fd, (struct wire_frame){ WIRE_CREDIT, 0, 0, 2 });
	CHECK_EQ(end_of(in, &messages), HK_EIO);
	CHECK_EQ(hk__chan_reserve(out, 4, &slot), HK_EIO);
	CHECK(!slot);
	CHECK_HAS(nets[1]->why.text, "released messages that were never sent");
	hk__chan_close(in);
	hk__chan_close(out);
	close(fd);
	close_ranks();
}

/* Who reads nothing cannot have released anything. */
TEST(credit_for_what_is_being_sent)
{
	const uint32_t large = 64u << 20;
	struct hk_chan *in, *out;
	uint32_t messages;
	void *slot;

	open_ranks(2);
	int fd = puppet_rank(&in);
	out = puppet_opens(fd, large, &slot);
	memset(slot, 1, large);
	hk__chan_post(out, large, 0);
	for (int i = 0; i < QUIET; i++)
		poll_all();
	CHECK(hk__chan_lent(out));
	puppet_frame(fd, (struct wire_frame){ WIRE_CREDIT, 0, 0, 1 });
	CHECK_EQ(end_of(in, &messages), HK_EIO);
	CHECK(!hk__chan_lent(out));
	hk__chan_close(in);
	hk__chan_close(out);
	close(fd);
	close_ranks();
}

/* ---- connections that end ---- */

/* After that many bytes of two messages; `hard`: by a reset. */
static void end_after(size_t bytes, bool hard)
{
	static const struct linger at_once = { 1, 0 };
	unsigned char stream[2 * (WIRE_FRAME_BYTES + 10)] = { 0 };
	struct wire_frame frame = { WIRE_DATA, 1, 0, 10 };
	struct hk_chan *in;
	uint32_t messages;

	open_ranks(2);
	int fd = puppet_rank(&in);
	wire_put_frame(stream, &frame);
	wire_put_frame(stream + WIRE_FRAME_BYTES + 10, &frame);
	puppet_write(fd, stream, bytes);
	poll_all();
	if (hard)
		CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close(fd);
	CHECK_EQ(end_of(in, &messages), HK_EPEER);
	CHECK_EQ(messages, bytes / (WIRE_FRAME_BYTES + 10));
	CHECK_HAS(nets[1]->why.text, "rank 0 (127.0.0.1:");
	hk__chan_close(in);
	close_ranks();
}

TEST(an_end_at_every_byte)
{
	for (size_t bytes = 0; bytes <= 2 * (WIRE_FRAME_BYTES + 10); bytes++) {
		end_after(bytes, false);
		end_after(bytes, true);
	}
}

TEST(an_end_inside_of_what_is_taken)
{
	static unsigned char to[SLOT_BYTES], half[SLOT_BYTES / 2];
	enum hk_status status = HK_OK;
	struct hk_message message;
	struct hk_chan *in;
	bool done;

	for (int first = 0; first < 2; first++) {
		open_ranks(2);
		int fd = puppet_rank(&in);
		if (first)
			CHECK_EQ(hk__chan_take(in, to, SLOT_BYTES, &message, &done), HK_OK);
		puppet_frame(fd, (struct wire_frame){ WIRE_DATA, 0, 0, SLOT_BYTES });
		puppet_write(fd, half, sizeof(half));
		for (int i = 0; i < QUIET; i++) {
			poll_all();
			CHECK_EQ(hk__chan_take(in, to, SLOT_BYTES, &message, &done), HK_OK);
			CHECK(!done);
		}
		close(fd);
		status = HK_OK;
		for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
			poll_all();
			status = hk__chan_take(in, to, SLOT_BYTES, &message, &done);
			CHECK(!done);
		}
		CHECK_EQ(status, HK_EPEER);
		hk__chan_close(in);
		close_ranks();
	}
}

/* What was lent is the sender's again when the channel is closed. */
TEST(lent_memory_outlives_nothing)
{
	const uint32_t len = SLOT_BYTES;
	struct hk_chan *pair[2];
	struct hk_message message;
	bool done = true;

	open_ranks(2);
	open_pair(0, 1, 0, pair);
	exchange(pair, 1);
	for (uint32_t round = 0; round < 40; round++) {
		unsigned char *data = malloc(len);

		CHECK(data);
		memset(data, (int)round, len);
		CHECK_EQ(hk__chan_lend(pair[0], data, len, 0, &done), HK_OK);
		if (done && round % 2 == 0)
			CHECK_EQ(hk__chan_lend(pair[0], data, len, 0, &done), HK_OK);
		hk__chan_close(pair[0]);
		memset(data, 0xff, len);
		free(data);
		for (int i = 0; i < ROUNDS; i++) {
			poll_all();
			CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
			if (message.data)
				break;
		}
		CHECK_EQ(message.len, len);
		for (uint32_t i = 0; i < len; i++)
			CHECK_EQ(((const unsigned char *)message.data)[i], round);
		hk__chan_close(pair[1]);
		open_pair(0, 1, 0, pair);
		exchange(pair, 1);
	}
	close_pair(pair);
	close_ranks();
}

/* ---- other ways to be connected ---- */

struct proxy {
	int listener;
	uint32_t to;
	pthread_t thread;
};

/* One byte at a time, both ways, until both ends are gone. */
static void *proxy_run(void *ctx)
{
	struct proxy *proxy = ctx;
	struct pollfd fds[2] = { { .fd = proxy->listener, .events = POLLIN } };
	int open = 2;

	CHECK_EQ(poll(fds, 1, 20000), 1);
	fds[0].fd = accept(proxy->listener, NULL, NULL);
	fds[1].fd = puppet_connect(proxy->to);
	fds[0].events = fds[1].events = POLLIN;
	while (open) {
		CHECK(poll(fds, 2, 20000) > 0);
		for (int i = 0; i < 2; i++) {
			unsigned char byte;

			if (!fds[i].revents)
				continue;
			if (recv(fds[i].fd, &byte, 1, 0) == 1) {
				(void)!send(fds[1 - i].fd, &byte, 1, MSG_NOSIGNAL);
				continue;
			}
			shutdown(fds[1 - i].fd, SHUT_WR);
			fds[i].events = 0;
			fds[i].fd = -1 - fds[i].fd; /* poll passes over it */
			open--;
		}
	}
	close(-1 - fds[0].fd);
	close(-1 - fds[1].fd);
	return NULL;
}

TEST(one_byte_at_a_time)
{
	struct proxy proxy = { .to = 1 };
	struct hk_chan *pair[2], *back[2];
	struct sockaddr_storage real;

	open_ranks(2);
	real = addresses[1];
	proxy.listener = listen_as(2);
	/* The proxy goes to rank 1, and rank 0 to the proxy. */
	proxy.to = 2;
	addresses[1] = addresses[2];
	addresses[2] = real;
	CHECK_EQ(pthread_create(&proxy.thread, NULL, proxy_run, &proxy), 0);
	open_pair(0, 1, 0, pair);
	open_pair(1, 0, 0, back);
	for (uint32_t i = 0; i < 20; i++) {
		exchange(pair, i * 10);
		exchange(back, i);
	}
	exchange(pair, 20000);
	close_pair(pair);
	close_pair(back);
	close_ranks();
	CHECK_EQ(pthread_join(proxy.thread, NULL), 0);
	close(proxy.listener);
}

TEST(ipv6)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct hk_chan *pair[2];

	for (uint32_t r = 0; r < 2; r++) {
		socklen_t len = sizeof(addresses[r]);
		int fd;

		if (hk__tcp_listen((struct sockaddr *)&any, sizeof(any), &fd) != HK_OK)
			SKIP("no ::1 here");
		addresses_len = sizeof(any);
		CHECK_EQ(getsockname(fd, (struct sockaddr *)&addresses[r], &len), 0);
		open_one(r, key, fd);
	}
	open_pair(0, 1, 0, pair);
	exchange(pair, 1000);
	hk__chan_close(pair[0]);
	hk__net_close(nets[0]);
	nets[0] = NULL;
	struct hk_message message;
	enum hk_status status = HK_OK;
	for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
		poll_all();
		status = hk__chan_peek(pair[1], &message);
	}
	CHECK_EQ(status, HK_EPEER);
	CHECK_HAS(nets[1]->why.text, "rank 0 ([::1]:");
	hk__chan_close(pair[1]);
	close_ranks();
}

TEST(several_connections)
{
	struct hk_chan *pairs[40][2];

	how.conns = 3;
	open_ranks(3);
	for (uint32_t i = 0; i < 40; i++)
		open_pair(i % 3, (i + 1 + i / 3 % 2) % 3, i, pairs[i]);
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 40; i++)
			exchange(pairs[i], 1000 + i);
	for (uint32_t i = 0; i < 40; i++)
		close_pair(pairs[i]);
	close_ranks();
}

TEST(from_an_interface)
{
	struct hk_tcp_spec spec = { .n = 1, .address = address_of, .iface = "none such" };
	struct hk_net *net;

	spec.listen_fd = listen_as(0);
	CHECK_EQ(hk__tcp_open(&spec, &net), HK_EINVAL);
	close(spec.listen_fd);
	how.iface = "lo";
	open_ranks(2);
	check_job_goes_on();
	close_ranks();
	how.iface = "127.0.0.1";
	open_ranks(2);
	check_job_goes_on();
	close_ranks();
}

/* By what the connections of this process decide how much is on its way; "": some differ. */
static void congestion_of_all(char found[16])
{
	found[0] = '\0';
	for (int fd = 3; fd < 256; fd++) {
		struct tcp_info info = { 0 };
		char name[16] = "";
		socklen_t len = sizeof(info), name_len = sizeof(name) - 1;

		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
		    info.tcpi_state != TCP_ESTABLISHED)
			continue;
		CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_len), 0);
		if (found[0])
			CHECK_STR(name, found);
		snprintf(found, 16, "%s", name);
	}
}

TEST(how_much_is_on_its_way)
{
	struct hk_tcp_spec spec = { .n = 1, .address = address_of, .congestion = "none such" };
	struct hk_chan *pair[2];
	struct hk_net *net;
	char found[16];

	spec.listen_fd = listen_as(0);
	CHECK_EQ(hk__tcp_open(&spec, &net), HK_EINVAL);
	spec.congestion = "longer than any name of one";
	CHECK_EQ(hk__tcp_open(&spec, &net), HK_EINVAL);
	close(spec.listen_fd);
	for (int asked = 0; asked < 2; asked++) {
		how.congestion = asked ? "reno" : NULL;
		open_ranks(2);
		open_pair(0, 1, 0, pair);
		exchange(pair, 1000);
		congestion_of_all(found);
		if (asked)
			CHECK_STR(found, "reno");
		CHECK(found[0] && strncmp(found, "bbr", 3) != 0);
		close_pair(pair);
		close_ranks();
	}
	how.congestion = NULL;
}

/* ---- memory that runs out ---- */

static int allocs_left;

static void *alloc_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	(void)ctx;
	(void)size_old;
	if (size_new && allocs_left-- == 0)
		return NULL;
	if (size_new == 0) {
		free(ptr);
		return NULL;
	}
	return realloc(ptr, size_new);
}

/* Whether all went well; where it did not, a status said so. */
static bool run_short(const struct hk_alloc *alloc)
{
	struct hk_tcp_spec spec = { .n = RANKS, .address = address_of, .alloc = alloc };
	struct hk_chan_spec there = spec_to(1, 0), here = spec_to(0, 0);
	struct hk_chan *out = NULL, *in = NULL;
	struct hk_message message = { 0 };
	enum hk_status status = HK_OK;
	void *slot = NULL;

	memcpy(spec.key, key, sizeof(key));
	for (uint32_t r = 0; r < 2 && status == HK_OK; r++) {
		spec.rank = r;
		spec.listen_fd = listen_as(r);
		nets[r] = NULL;
		status = hk__tcp_open(&spec, &nets[r]);
		if (status != HK_OK)
			close(spec.listen_fd);
	}
	if (status == HK_OK)
		status = hk__chan_open_send(nets[0], &there, &out);
	if (status == HK_OK)
		status = hk__chan_open_recv(nets[1], &here, &in);
	for (int i = 0; i < QUIET && status == HK_OK && !message.data; i++) {
		poll_all();
		if (!slot) {
			status = hk__chan_reserve(out, 8, &slot);
			if (slot)
				hk__chan_post(out, 8, 0);
		}
		if (status == HK_OK)
			status = hk__chan_peek(in, &message);
	}
	hk__chan_close(out);
	hk__chan_close(in);
	for (uint32_t r = 0; r < 2; r++) {
		hk__net_close(nets[r]);
		nets[r] = NULL;
	}
	return message.data;
}

TEST(every_allocation_fails_once)
{
	struct hk_alloc alloc = { .resize = alloc_resize };
	bool went_well = false;

	for (int i = 0; i < 200 && !went_well; i++) {
		allocs_left = i;
		went_well = run_short(&alloc) && allocs_left >= 0;
	}
	CHECK(went_well);
}
