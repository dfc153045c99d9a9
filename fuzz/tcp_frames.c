/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_frames.c - a peer that holds the key, and then says whatever the bytes
 * are, piece by piece, while this rank uses its channels. It may be cut off;
 * nothing else may happen.
 *
 * A piece is a byte that says what to do after it, one that says how long it
 * is, and as many bytes for the connection; SEALED: for a record of it.
 */
#include "net/tcp/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#ifndef SEALED
#define SEALED false
#endif
#define SLOT_BYTES 20000u
#define CHANS 3u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

struct talk {
	struct hk_net *net;
	int peer;
	struct hk__seal *seal; /* of the peer; NULL: nothing is encrypted */
	struct hk_chan *in[CHANS], *out[CHANS];
	bool taking[CHANS];
	unsigned char to[CHANS][SLOT_BYTES];
	unsigned char from[SLOT_BYTES];
};

static struct hk_chan_spec spec_of(uint32_t c)
{
	return (struct hk_chan_spec){ { .from_lane = c }, HK_SLOTS_MIN + c, SLOT_BYTES };
}

static void talk_begin(struct talk *talk)
{
	struct hk_tcp_spec spec = { .rank = 1, .n = 2 };
	int fds[2];

	must(hk__auth_ready() == HK_OK);
	spec.listen_fd = eventfd(0, EFD_CLOEXEC); /* nobody will ever connect */
	must(spec.listen_fd >= 0 && hk__tcp_open(&spec, &talk->net) == HK_OK);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	for (uint32_t c = 0; c < CHANS; c++) {
		struct hk_chan_spec chan = spec_of(c);

		must(hk__chan_open_recv(talk->net, &chan, &talk->in[c]) == HK_OK);
		must(hk__chan_open_send(talk->net, &chan, &talk->out[c]) == HK_OK);
	}
	struct tcp *tcp = tcp_of(talk->net);
	struct tcp_link *link = hk__tcp_link_at(tcp, 0, 0);
	must(link && hk__tcp_watch(tcp, fds[0], EPOLLIN, &link->source, true) == HK_OK);
	struct hk__seal *own = NULL;
	struct hk__auth auth = { .about = "", .about_len = 0 };
	if (SEALED) {
		own = hk__seal_create(tcp->alloc, &auth, HK__AUTH_ACCEPTS, hk__seal_has_aes());
		talk->seal =
			hk__seal_create(tcp->alloc, &auth, HK__AUTH_CONNECTS, hk__seal_has_aes());
		must(own && talk->seal);
	}
	hk__tcp_link_up(link, fds[0], own, true);
	talk->peer = fds[1];
}

static void talk_say(struct talk *talk, const uint8_t *data, size_t len)
{
	if (talk->seal && len) {
		memcpy(hk__seal_room(talk->seal), data, len);
		hk__seal_close(talk->seal, (uint32_t)len);
		len = hk__seal_pending(talk->seal, &data);
		hk__seal_wrote(talk->seal, len);
	}
	(void)!send(talk->peer, data, len, MSG_NOSIGNAL); /* it may be cut off */
}

static void talk_end(struct talk *talk)
{
	close(talk->peer);
	hk__seal_destroy(talk->seal);
	for (uint32_t c = 0; c < CHANS; c++) {
		hk__chan_close(talk->in[c]);
		hk__chan_close(talk->out[c]);
	}
	hk__net_close(talk->net);
}

static void talk_receive(struct talk *talk, uint32_t c, bool take)
{
	struct hk_message message = { 0 };
	unsigned sum = 0;
	bool done;

	if (take || talk->taking[c]) {
		talk->taking[c] = hk__chan_take(talk->in[c], talk->to[c], SLOT_BYTES / 2, &message,
						&done) == HK_OK &&
				  !done;
		return;
	}
	if (hk__chan_peek(talk->in[c], &message) != HK_OK || !message.data)
		return;
	for (uint32_t i = 0; i < message.len; i++)
		sum += ((const unsigned char *)message.data)[i];
	must(message.len <= SLOT_BYTES && message.kind < HK_KINDS && sum <= 255u * message.len);
	(void)hk__chan_release(talk->in[c]);
}

static void talk_send(struct talk *talk, uint32_t c, bool lend)
{
	void *slot = NULL;
	bool done;

	if (lend) {
		(void)hk__chan_lend(talk->out[c], talk->from, SLOT_BYTES, 1, &done);
	} else if (hk__chan_reserve(talk->out[c], 100, &slot) == HK_OK && slot) {
		memset(slot, 1, 100);
		hk__chan_post(talk->out[c], 100, 2);
	}
}

static void talk_reopen(struct talk *talk, uint32_t c, bool sends)
{
	struct hk_chan_spec chan = spec_of(c);

	if (sends) {
		hk__chan_close(talk->out[c]);
		must(hk__chan_open_send(talk->net, &chan, &talk->out[c]) == HK_OK);
		return;
	}
	hk__chan_close(talk->in[c]);
	talk->taking[c] = false;
	must(hk__chan_open_recv(talk->net, &chan, &talk->in[c]) == HK_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct talk talk;
	unsigned char drain[4096];

	memset(&talk, 0, sizeof(talk));
	talk_begin(&talk);
	while (size >= 2) {
		uint32_t what = data[0] >> 2, c = data[0] % 4 % CHANS;
		size_t len = data[1] < size - 2 ? data[1] : size - 2;

		talk_say(&talk, data + 2, len);
		data += 2 + len;
		size -= 2 + len;
		must(hk__net_poll(talk.net) == HK_OK);
		if (what & 1)
			talk_receive(&talk, c, what & 2);
		if (what & 4)
			talk_send(&talk, c, what & 8);
		if (what == 16 || what == 32)
			talk_reopen(&talk, c, what == 32);
		if (what == 48)
			hk__net_tell(talk.net, "note", 4);
		if (what == 50)
			hk__net_watch(talk.net);
		if (what & 16)
			(void)!read(talk.peer, drain, sizeof(drain));
	}
	must(hk__net_poll(talk.net) == HK_OK);
	talk_end(&talk);
	return 0;
}
