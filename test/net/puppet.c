/* SPDX-License-Identifier: Apache-2.0 */
/* puppet.c - nets of a few ranks over TCP, and puppets that speak to them. */
#include "net/puppet.h"

#include "harness.h"

#include <errno.h>
#include <netinet/in.h>

const unsigned char key[HK__KEY_BYTES] = "the key of this job";

struct hk_net *nets[RANKS];
struct sockaddr_storage addresses[RANKS];
socklen_t addresses_len;
struct hk_tcp_spec how;

/* ---- nets ---- */

enum hk_status address_of(void *ctx, uint32_t rank, struct sockaddr_storage *addr_out,
			  socklen_t *len_out)
{
	(void)ctx;
	*addr_out = addresses[rank];
	*len_out = addresses_len;
	return HK_OK;
}

int listen_as(uint32_t rank)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addresses[rank]);
	int fd;

	addresses_len = sizeof(any);
	CHECK_EQ(hk__tcp_listen((struct sockaddr *)&any, sizeof(any), &fd), HK_OK);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&addresses[rank], &len), 0);
	return fd;
}

void open_one(uint32_t rank, const unsigned char *its_key, int fd)
{
	struct hk_tcp_spec spec = how;

	spec.rank = rank;
	spec.n = RANKS;
	spec.address = address_of;
	spec.listen_fd = fd;
	memcpy(spec.key, its_key, HK__KEY_BYTES);
	CHECK_EQ(hk__tcp_open(&spec, &nets[rank]), HK_OK);
}

void open_ranks(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		open_one(r, key, listen_as(r));
}

void close_ranks(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		hk__net_close(nets[r]);
}

void poll_all(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		if (nets[r])
			CHECK_EQ(hk__net_poll(nets[r]), HK_OK);
}

struct hk_chan_spec spec_to(uint32_t peer, uint32_t lane)
{
	return (struct hk_chan_spec){ { peer, lane, 0, 1 }, SLOTS, SLOT_BYTES };
}

void open_pair(uint32_t from, uint32_t to, uint32_t lane, struct hk_chan *pair[2])
{
	struct hk_chan_spec there = spec_to(to, lane), here = spec_to(from, lane);

	CHECK_EQ(hk__chan_open_send(nets[from], &there, &pair[0]), HK_OK);
	CHECK_EQ(hk__chan_open_recv(nets[to], &here, &pair[1]), HK_OK);
}

void close_pair(struct hk_chan *pair[2])
{
	hk__chan_close(pair[0]);
	hk__chan_close(pair[1]);
}

void exchange(struct hk_chan *pair[2], uint32_t len)
{
	struct hk_message message = { 0 };
	void *slot = NULL;

	for (int i = 0; i < ROUNDS && !slot; i++) {
		poll_all();
		CHECK_EQ(hk__chan_reserve(pair[0], len, &slot), HK_OK);
	}
	CHECK(slot);
	memset(slot, (int)len & 0xff, len);
	hk__chan_post(pair[0], len, 3);
	for (int i = 0; i < ROUNDS && !message.data; i++) {
		poll_all();
		CHECK_EQ(hk__chan_peek(pair[1], &message), HK_OK);
	}
	CHECK(message.data);
	CHECK_EQ(message.len, len);
	CHECK_EQ(message.kind, 3);
	for (uint32_t i = 0; i < len; i++)
		CHECK_EQ(((const unsigned char *)message.data)[i], len & 0xff);
	(void)hk__chan_release(pair[1]);
}

void check_job_goes_on(void)
{
	struct hk_chan *pair[2];

	open_pair(0, 1, 77, pair);
	for (uint32_t i = 0; i < 5; i++)
		exchange(pair, 1000 * i);
	close_pair(pair);
}

enum hk_status end_of(struct hk_chan *chan, uint32_t *messages_out)
{
	struct hk_message message;
	enum hk_status status = HK_OK;

	*messages_out = 0;
	for (int i = 0; i < ROUNDS && status == HK_OK; i++) {
		poll_all();
		status = hk__chan_peek(chan, &message);
		if (status == HK_OK && message.data) {
			(void)hk__chan_release(chan);
			++*messages_out;
		}
	}
	return status;
}

/* ---- puppets ---- */

int puppet_connect(uint32_t to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&addresses[to], addresses_len), 0);
	return fd;
}

void puppet_write(int fd, const void *data, size_t len)
{
	CHECK_EQ(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

bool puppet_read(int fd, void *data, size_t len)
{
	size_t have = 0;

	for (int i = 0; i < ROUNDS && have < len; i++) {
		ssize_t got = recv(fd, (char *)data + have, len - have, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno != EAGAIN))
			return false;
		have += got > 0 ? (size_t)got : 0;
		poll_all();
	}
	CHECK_EQ(have, len);
	return true;
}

bool puppet_is_cut_off(int fd)
{
	unsigned char byte;

	return !puppet_read(fd, &byte, 1);
}

void puppet_claim(const unsigned char *its_key, const unsigned char *hello,
		  const struct wire_claim *claim, unsigned char out[WIRE_CLAIM_BYTES])
{
	struct hk__auth auth = { .about = out, .about_len = WIRE_ABOUT_BYTES };

	wire_put_about(out, claim);
	memcpy(auth.key, its_key, HK__KEY_BYTES);
	memcpy(auth.accepts, hello + 12, HK__NONCE_BYTES);
	memset(auth.connects, 42, HK__NONCE_BYTES);
	memcpy(out + WIRE_ABOUT_BYTES, auth.connects, HK__NONCE_BYTES);
	hk__auth_prove(&auth, HK__AUTH_CONNECTS, out + WIRE_ABOUT_BYTES + HK__NONCE_BYTES);
}

bool puppet_greet(int fd, const unsigned char *its_key, struct wire_claim claim)
{
	static const struct wire_frame up = { .type = WIRE_UP };
	unsigned char hello[WIRE_HELLO_BYTES], answer[WIRE_ANSWER_BYTES];
	unsigned char out[WIRE_CLAIM_BYTES], frame[WIRE_FRAME_BYTES] = { 0 };

	if (!puppet_read(fd, hello, sizeof(hello)))
		return false;
	puppet_claim(its_key, hello, &claim, out);
	puppet_write(fd, out, sizeof(out));
	if (!puppet_read(fd, answer, sizeof(answer)))
		return false;
	wire_put_frame(frame, &up);
	puppet_write(fd, frame, sizeof(frame));
	return true;
}

int puppet_rank(struct hk_chan **in_out)
{
	struct hk_chan_spec here = spec_to(0, 0);
	unsigned char open[WIRE_FRAME_BYTES];
	int fd = puppet_connect(1);

	CHECK_EQ(hk__chan_open_recv(nets[1], &here, in_out), HK_OK);
	CHECK(puppet_greet(fd, key, (struct wire_claim){ 0, 1, 0, 1, 0 }));
	CHECK(puppet_read(fd, open, sizeof(open)));
	CHECK_EQ(wire_get_frame(open).type, WIRE_UP);
	CHECK(puppet_read(fd, open, sizeof(open)));
	CHECK_EQ(wire_get_frame(open).type, WIRE_OPEN);
	CHECK_EQ(wire_get_frame(open).id, 0);
	CHECK_EQ(wire_get_open(open).slots, SLOTS);
	return fd;
}

void puppet_frame(int fd, struct wire_frame frame)
{
	unsigned char head[WIRE_FRAME_BYTES] = { 0 };

	wire_put_frame(head, &frame);
	puppet_write(fd, head, sizeof(head));
}
