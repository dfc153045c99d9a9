/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rma_records.c - a peer that may speak, and sends whatever the bytes are as one-sided
 * requests and replies. It may be refused, or be said to have sent nonsense; memory
 * outside of the region and of what was asked for stays as it is.
 *
 * The first byte: requests or replies. A request that begins with the byte 0xff has the
 * right key put in, which no bytes would guess.
 */
#include "net/rma/engine.h"

#include <stdlib.h>

#define REGION 4096u
#define GUARD 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

/* A channel that takes everything, and keeps nothing. */
static char slot[HK_RMA_SLOT_BYTES];

static enum hk_status sink_reserve(struct hk_chan *chan, uint32_t len, void **slot_out)
{
	(void)chan;
	must(len <= sizeof(slot));
	*slot_out = slot;
	return HK_OK;
}

static void sink_post(struct hk_chan *chan, uint32_t len, uint32_t kind)
{
	(void)chan;
	(void)len;
	(void)kind;
}

static const struct hk_chan_ops sink_ops = { .size = sizeof(sink_ops),
					     .reserve = sink_reserve,
					     .post = sink_post };

static enum hk_status sink_open(void *ctx, uint32_t peer, bool sends, bool replies,
				struct hk_chan **chan_out)
{
	static struct hk_chan chan = { .ops = &sink_ops, .spec = { .slot_bytes = sizeof(slot) } };

	(void)ctx;
	(void)peer;
	(void)sends;
	(void)replies;
	*chan_out = &chan;
	return HK_OK;
}

static void check_guard(const unsigned char *at)
{
	for (unsigned i = 0; i < GUARD; i++)
		must(at[i] == 0xa5);
}

/* Requests, with the key where the first byte of one asks for it. */
static void say_requests(struct hk__rma *rma, const struct hk_region_key *key, char *bytes,
			 uint32_t len)
{
	struct hk_why why;
	uint32_t used = 0;

	for (uint32_t at = 0; at + sizeof(struct rma_request) <= len; at += 64) {
		struct rma_request request;

		memcpy(&request, bytes + at, sizeof(request));
		if (request.what != 0xff)
			continue;
		request.what = request.amo % 3;
		request.id %= 2;
		request.key = *key;
		memcpy(bytes + at, &request, sizeof(request));
	}
	enum hk_status status = hk__rma_apply(rma, 0, bytes, len, &used, &why);
	must(status == HK_OK || status == HK_EIO);
	must(used <= len);
}

static void say_replies(struct hk__rma *rma, const char *bytes, uint32_t len)
{
	unsigned char to[256 + GUARD];
	uint64_t old = 0;
	bool done = false;
	struct hk_queue *queue;
	struct hk_why why;
	struct hk_remote remote = { .ops = &hk__remote_messages, .bytes = REGION, .rma = rma };
	struct hk_rma_op get = { .what = HK_RMA_GET, .dst = to, .len = 256, .done = &done };
	struct hk_rma_op add = {
		.what = HK_RMA_AMO, .amo = HK_AMO_ADD, .width = 8, .old_out = &old
	};

	memset(to, 0xa5, sizeof(to));
	must(hk__queue_create(&hk__alloc_default, 1, &queue) == HK_OK);
	must(hk__remote_start(&remote, queue, &get) == HK_OK);
	must(hk__remote_start(&remote, queue, &add) == HK_OK);
	enum hk_status status = hk__rma_take(rma, 0, bytes, len, &why);
	must(status == HK_OK || status == HK_EIO || status == HK_EINVAL);
	check_guard(to + 256);
	hk__rma_cancel(rma);
	hk__queue_destroy(queue);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char memory[GUARD + REGION + GUARD];
	struct hk__rma_spec spec = { .n = 1, .open = sink_open, .alloc = &hk__alloc_default };
	struct hk_region_key key;
	struct hk__rma *rma;
	uint32_t id;

	if (size < 1 || size > 65536)
		return 0;
	char *bytes = malloc(size);
	must(bytes);
	memcpy(bytes, data + 1, size - 1);
	memset(memory, 0xa5, sizeof(memory));
	must(hk__rma_create(&spec, &rma) == HK_OK && hk__rma_meet(rma, 0) == HK_OK);
	must(hk__rma_region_add(rma, memory + GUARD, REGION, &id, &key) == HK_OK);
	if (data[0] % 2)
		say_requests(rma, &key, bytes, (uint32_t)(size - 1));
	else
		say_replies(rma, bytes, (uint32_t)(size - 1));
	check_guard(memory);
	check_guard(memory + GUARD + REGION);
	hk__rma_destroy(rma);
	free(bytes);
	return 0;
}
