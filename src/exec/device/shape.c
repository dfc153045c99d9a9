/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c - a call of some size: slices, blocks, and where buffers and lines lie. */
#include "exec/device/flatten.h"

#define GRAIN 16u /* elements: slices begin at multiples of so many */
#define ROUND_UP(x, to) (((x) + (to)-1) / (to) * (to))

uint64_t hk__flat_lot_bytes(const struct hk__flat_limits *limits)
{
	return ROUND_UP(sizeof(struct hk__flat_lot) + 2 * limits->lines_bytes + limits->bufs_bytes,
			128);
}

uint64_t hk__flat_segment_bytes(const struct hk__flat_limits *limits)
{
	return limits->blocks * hk__flat_lot_bytes(limits);
}

void hk__flat_lot_after(uint64_t epoch, struct hk__flat_lot *lot_out)
{
	*lot_out = (struct hk__flat_lot){ .epoch = epoch };
	for (uint32_t r = 0; r < HK__FLAT_RANKS; r++) {
		lot_out->mail[r].flag = epoch << 32 | UINT32_MAX;
		lot_out->done[r] = epoch ? epoch - 1 : 0;
	}
}

static uint64_t longest_of(const struct hk_plan *plan, const struct hk_sizes *sizes)
{
	uint64_t longest = 0, symbols = 1;

	if (plan->coll == HK_COLL_BARRIER)
		return 0;
	if (sizes->counts && !hk__coll_vector(plan->coll))
		symbols = hk_plan_counts(plan);
	for (uint64_t k = 0; k < symbols; k++) {
		uint64_t len = hk_plan_length(plan, sizes, k);

		longest = len > longest ? len : longest;
	}
	return longest;
}

static uint64_t line_bytes(uint64_t piece, uint64_t size)
{
	return ROUND_UP(piece * size, 4) * 2;
}

/* Where the slots of in and out begin. */
static void shape_slots(const struct hk_plan *plan, const struct hk_sizes *sizes,
			struct hk__flat_call *call)
{
	bool vector = hk__coll_vector(plan->coll);
	uint64_t count = vector && sizes->counts ? sizes->counts[0] : sizes->count;
	uint64_t parts = vector && plan->parts ? plan->parts : 1;

	call->each = count / parts;
	call->more = count % parts;
	call->counted = !vector && sizes->counts;
	for (uint32_t k = 0; call->counted && k < plan->n; k++)
		call->first[k + 1] = call->first[k] + sizes->counts[k];
}

enum hk_status hk__flat_shape(const struct hk__flat *flat, const struct hk_plan *plan,
			      const struct hk_sizes *sizes, const struct hk__flat_limits *limits,
			      struct hk__flat_call *call)
{
	uint64_t size = hk_type_size((enum hk_type)call->type);
	uint64_t widest = (call->mode & HK__FLAT_WIDE) && size < 4 ? 4 : size;
	uint64_t longest = longest_of(plan, sizes), wanted, most = UINT64_MAX;

	wanted = longest * size / (limits->slice_min ? limits->slice_min : 1);
	wanted = wanted < 1 ? 1 : wanted < limits->blocks ? wanted : limits->blocks;
	call->piece = ROUND_UP((longest + wanted - 1) / wanted, GRAIN);
	if (limits->slice_max && call->piece * size > limits->slice_max)
		call->piece = ROUND_UP(limits->slice_max / size, GRAIN);
	if (flat->bufs) {
		most = limits->bufs_bytes / flat->bufs / 128 * 128;
		most = most < 32 ? 0 : (most - 32) / widest / GRAIN * GRAIN;
		call->piece = call->piece < most ? call->piece : most;
	}
	if (!most)
		return HK_ELIMIT;
	call->piece = call->piece ? call->piece : GRAIN;
	uint64_t nslices = longest ? (longest + call->piece - 1) / call->piece : 1;
	call->buf_bytes = ROUND_UP(call->piece * widest + 32, 128);
	call->line_bytes = line_bytes(call->piece, widest);
	call->lines_bytes = limits->lines_bytes;
	call->lot_bytes = hk__flat_lot_bytes(limits);
	if (nslices > UINT32_MAX / 2 / flat->programs[0]->stride)
		return HK_ELIMIT;
	call->nslices = (uint32_t)nslices;
	call->nblocks = hk__min(call->nslices, limits->blocks);
	if ((call->mode & HK__FLAT_LINES) && (call->nslices > limits->blocks ||
					      flat->lines * call->line_bytes > limits->lines_bytes))
		return HK_ELIMIT;
	shape_slots(plan, sizes, call);
	return HK_OK;
}
