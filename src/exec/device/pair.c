/* SPDX-License-Identifier: Apache-2.0 */
/* pair.c - see pair.h: the host's side of it, without any driver. */
#include "exec/device/pair.h"

#include "base/base.h"

#include <string.h>

/* Rooms of all peers of a rank: in place they are for what is small alone. */
#define ROOMS_DIRECT (UINT64_C(4) << 20)
#define ROOMS_APART (UINT64_C(32) << 20)
#define ROOM_MIN 2048u
#define ROOM_MAX_DIRECT (16u << 10)
#define ROOM_MAX_APART (128u << 10)
/* Of a message in place: less is not worth a block of its own. */
#define PART_BYTES (32u << 10)

_Static_assert(sizeof(struct hk__pair_few) <= 4096, "arguments of a kernel");
_Static_assert(sizeof(struct hk__pair_many) <= 32764, "and since CUDA 12.1");

uint64_t hk__pair_room_bytes(uint32_t n, bool direct)
{
	uint64_t most = direct ? ROOM_MAX_DIRECT : ROOM_MAX_APART;
	uint64_t all = direct ? ROOMS_DIRECT : ROOMS_APART;
	uint64_t each = all / n / HK__PAIR_CHANNELS / HK__PAIR_SLOTS / 128 * 128;

	each = each < ROOM_MIN ? ROOM_MIN : each;
	return each > most ? most : each;
}

uint64_t hk__pair_segment_bytes(uint32_t n, bool direct)
{
	uint64_t rooms = (uint64_t)n * HK__PAIR_CHANNELS * HK__PAIR_SLOTS *
			 (hk__pair_room_bytes(n, direct) + HK__PAIR_SLACK);

	return (sizeof(struct hk__pair_head) + n * sizeof(struct hk__pair_peer) + rooms + 127) /
	       128 * 128;
}

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Blocks' worth of a message: to send it, and to receive it. */
static uint64_t order_worth(const struct hk__pair_order *order, const struct hk__pair_call *call)
{
	bool placed = (call->mode & HK__PAIR_DIRECT) && order->bytes > call->room_bytes;

	return placed && !order->sends ? 0 : order->bytes / PART_BYTES + 1;
}

/* Pieces are copied by who sends and by who receives; in place, only by who sends. */
static void shape_blocks(const uint64_t worth[2], uint32_t blocks, struct hk__pair_call *call)
{
	bool direct = call->mode & HK__PAIR_DIRECT, sends = false, receives = false;

	for (uint32_t p = 0; p < call->n; p++) {
		sends |= call->first[0][p] != HK__PAIR_END;
		receives |= call->first[1][p] != HK__PAIR_END;
	}
	call->nsend = least(worth[0], least(blocks, direct ? HK__PAIR_BLOCKS : HK__PAIR_CHANNELS));
	call->nrecv = least(worth[1], least(blocks, HK__PAIR_CHANNELS));
	call->nsend = sends && !call->nsend ? 1 : call->nsend;
	call->nrecv = receives && !call->nrecv ? 1 : call->nrecv;
}

void hk__pair_shape(const struct hk__pair_order *orders, uint32_t count, uint32_t blocks,
		    struct hk__pair_call *call, struct hk__pair_op *ops_out)
{
	uint16_t last[2][HK__FLAT_RANKS];
	uint64_t worth[2] = { 0, 0 };

	hk_assert(count <= HK__PAIR_MANY && blocks);
	memset(call->first, 0xff, sizeof(call->first));
	memset(last, 0xff, sizeof(last));
	call->nops = count;
	call->part_bytes = PART_BYTES;
	call->room_bytes = hk__pair_room_bytes(call->n, call->mode & HK__PAIR_DIRECT);
	for (uint32_t i = 0; i < count; i++) {
		const struct hk__pair_order *order = &orders[i];
		uint32_t way = !order->sends, peer = order->peer;
		uint16_t *link = last[way][peer] == HK__PAIR_END ? &call->first[way][peer]
								 : &ops_out[last[way][peer]].next;

		*link = last[way][peer] = (uint16_t)i;
		ops_out[i] = (struct hk__pair_op){ .at = order->at,
						   .bytes = order->bytes,
						   .tag = order->tag,
						   .peer = (uint8_t)peer,
						   .kind = (uint8_t)order->kind,
						   .next = HK__PAIR_END };
		worth[way] += order_worth(order, call);
	}
	shape_blocks(worth, blocks, call);
}
