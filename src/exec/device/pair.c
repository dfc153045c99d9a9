/* SPDX-License-Identifier: Apache-2.0 */
/* pair.c - see pair.h: the host's side of it, without any driver. */
#include "exec/device/pair.h"

#include "base/base.h"

#include <string.h>

/* Rooms and places of all peers of a rank. */
#define BUFS_APART (UINT64_C(32) << 20)
#define PLACES (UINT64_C(4) << 20)
#define BUF_MIN 2048u
#define BUF_MAX_APART (128u << 10)
/* Of a message in place: less is not worth a block of its own. */
#define PART_BYTES (32u << 10)
#define WARPS (HK__FLAT_THREADS / 32u)

_Static_assert(sizeof(struct hk__pair_few) <= 4096, "arguments of a kernel");
_Static_assert(sizeof(struct hk__pair_many) <= 32764, "and since CUDA 12.1");
_Static_assert(sizeof(struct hk__pair_peer) % 16 == 0, "vectors behind it");

/* In place there are none. */
static uint64_t buf_bytes(uint32_t n, bool direct)
{
	uint64_t each = BUFS_APART / n / HK__PAIR_CHANNELS / HK__PAIR_SLOTS / 128 * 128;

	each = each < BUF_MIN ? BUF_MIN : each;
	return direct ? 0 : each > BUF_MAX_APART ? BUF_MAX_APART : each;
}

static uint32_t small_bytes(uint32_t n)
{
	uint64_t each = PLACES / n / HK__PAIR_PLACES / 2 / HK__PAIR_PART * HK__PAIR_PART;
	uint64_t most = HK__PAIR_PARTS * HK__PAIR_PART;

	return (uint32_t)(each > most ? most : each);
}

static uint64_t places_at(uint32_t n, bool direct)
{
	uint64_t each = direct ? 0 : buf_bytes(n, direct) + HK__PAIR_SLACK;
	uint64_t bufs = (uint64_t)n * HK__PAIR_CHANNELS * HK__PAIR_SLOTS * each;

	return (sizeof(struct hk__pair_head) + n * sizeof(struct hk__pair_peer) + bufs + 127) /
	       128 * 128;
}

uint64_t hk__pair_segment_bytes(uint32_t n, bool direct)
{
	uint64_t place = HK__PAIR_HEAD * 8 + 2 * (uint64_t)small_bytes(n);

	return (places_at(n, direct) + n * HK__PAIR_PLACES * place + 127) / 128 * 128;
}

void hk__pair_peer_after(uint64_t messages, struct hk__pair_peer *peer_out)
{
	*peer_out = (struct hk__pair_peer){ .messages = { messages, messages },
					    .small = { messages, messages } };
	for (uint64_t k = messages < HK__PAIR_PLACES ? 0 : messages - HK__PAIR_PLACES; k < messages;
	     k++)
		peer_out->freed[k % HK__PAIR_PLACES] = k + 1;
}

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Blocks' worth of a long message: to send it, and to receive it. */
static uint64_t order_worth(const struct hk__pair_order *order, const struct hk__pair_call *call)
{
	bool placed = call->mode & HK__PAIR_DIRECT;

	return placed && !order->sends ? 0 : order->bytes / PART_BYTES + 1;
}

/* Pieces are copied by who sends and by who receives; in place, only by who sends. */
static void shape_blocks(const uint64_t worth[2], const bool some[2], uint32_t blocks,
			 struct hk__pair_call *call)
{
	bool direct = call->mode & HK__PAIR_DIRECT;
	uint64_t small = ((uint64_t)call->nops * call->parts + WARPS - 1) / WARPS;

	call->nsend = least(worth[0], least(blocks, direct ? HK__PAIR_BLOCKS : HK__PAIR_CHANNELS));
	call->nrecv = least(worth[1], least(blocks, HK__PAIR_CHANNELS));
	call->nsend = some[0] && !call->nsend ? 1 : call->nsend;
	call->nrecv = some[1] && !call->nrecv ? 1 : call->nrecv;
	call->nblocks = hk__max(call->nsend, call->nrecv);
	call->nblocks = hk__max(call->nblocks, least(small, blocks));
}

/* The next operation of its peer and direction; of these, how many came before. */
static void lists_add(struct hk__pair_lists *lists, uint32_t i, const struct hk__pair_order *order,
		      uint16_t last[2][HK__FLAT_RANKS])
{
	struct hk__pair_call *call = lists->call;
	uint32_t way = !order->sends, peer = order->peer, before = last[way][peer];
	struct hk__pair_index *index = &lists->index[i];

	index->sends = order->sends & 1u;
	index->before = index->small = 0;
	if (before == HK__PAIR_END) {
		call->first[way][peer] = (uint16_t)i;
	} else {
		lists->ops[before].next = (uint16_t)i;
		index->before = (uint16_t)(lists->index[before].before + 1);
		bool small = lists->ops[before].bytes <= call->small_bytes;

		index->small = (lists->index[before].small + (small ? 1u : 0u)) & 0x7fffu;
	}
	last[way][peer] = (uint16_t)i;
	lists->ops[i] = (struct hk__pair_op){ .at = order->at,
					      .bytes = order->bytes,
					      .tag = order->tag,
					      .peer = (uint8_t)peer,
					      .kind = (uint8_t)order->kind,
					      .next = HK__PAIR_END };
}

void hk__pair_shape(const struct hk__pair_order *orders, uint32_t count, uint32_t blocks,
		    struct hk__pair_lists lists)
{
	struct hk__pair_call *call = lists.call;
	bool direct = call->mode & HK__PAIR_DIRECT;
	uint16_t last[2][HK__FLAT_RANKS];
	uint64_t worth[2] = { 0, 0 };
	bool some[2] = { false, false }; /* long ones */

	hk_assert(count <= HK__PAIR_MANY && blocks);
	memset(call->first, 0xff, sizeof(call->first));
	memset(last, 0xff, sizeof(last));
	call->nops = count;
	call->parts = 0;
	call->part_bytes = PART_BYTES;
	call->buf_bytes = buf_bytes(call->n, direct);
	call->small_bytes = small_bytes(call->n);
	call->places = places_at(call->n, direct);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes = orders[i].bytes;
		uint32_t way = !orders[i].sends;

		lists_add(&lists, i, &orders[i], last);
		if (bytes > call->small_bytes) {
			worth[way] += order_worth(&orders[i], call);
			some[way] = true;
		} else {
			uint32_t parts = ((uint32_t)bytes + HK__PAIR_PART - 1) / HK__PAIR_PART;

			call->parts = hk__max(call->parts, hk__max(parts, 1));
		}
	}
	shape_blocks(worth, some, blocks, call);
}

bool hk__pair_all_small(const struct hk__pair_call *call)
{
	return !call->nsend && !call->nrecv;
}

uint32_t hk__pair_threads(const struct hk__pair_call *call)
{
	uint64_t warps = ((uint64_t)call->nops * call->parts + call->nblocks - 1) / call->nblocks;

	return 32 * (hk__pair_all_small(call) ? least(warps, WARPS) : WARPS);
}
