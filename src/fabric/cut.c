/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.c - how an operation is cut into slices.
 *
 * Slots of shared memory: writing a ring of slots about as large as a core's own
 * cache (L2, a MiB or so) pushes what is written out to the cache that cores share,
 * where the reader gets it at twice the speed of a cache line still dirty in the
 * writer's own cache (docs/ARCHITECTURE.md). Hence 8 of 256 KiB. Sockets move
 * larger blocks faster.
 */
#include "fabric/cut.h"

#include <math.h>

const struct hk__cut_rule hk__cut_shm = {
	.slots = 8, .slot_bytes = 256 << 10, .slice_bytes = 64 << 10, .slices = 4, .cores = true
};
const struct hk__cut_rule hk__cut_tcp = { .slots = 8,
					  .slot_bytes = 1 << 20,
					  .slice_bytes = 512 << 10,
					  .slices = 4,
					  .cores = true,
					  .streams = true };

/* Sums: the operands and the result are in a core's own cache together. */
#define SUM_SLICES 2u /* for each that copies want */
#define SUM_SLICE_MAX (128u << 10)

void hk__cut_join(struct hk__cut_rule *rule, const struct hk__cut_rule *other)
{
	rule->slots = hk__min(rule->slots, other->slots);
	rule->slot_bytes = fmin(rule->slot_bytes, other->slot_bytes);
	rule->slice_bytes = fmax(rule->slice_bytes, other->slice_bytes);
	rule->slices = hk__max(rule->slices, other->slices);
	rule->cores = rule->cores && other->cores;
	rule->streams = rule->streams && other->streams;
}

/* Elements of each chunk that so many bytes of a message have room for. */
static uint64_t room_of(double bytes, const struct hk__cut_job *job)
{
	return (uint64_t)bytes / job->widest / job->size;
}

/* The same of a slot, so that hk__slice_len() adds none to them. */
static uint64_t slot_room(const struct hk__cut_rule *rule, const struct hk__cut_job *job,
			  uint64_t piece)
{
	uint32_t head = hk__message_head(piece, job->widest);
	uint64_t room = rule->slot_bytes > head ? room_of(rule->slot_bytes - head, job) : 0;

	return piece < HK__SLICE_LONG ? room : room / HK__SLICE_ALIGN * HK__SLICE_ALIGN;
}

/* What a slice is to have at the most, where slots have room for more. */
static uint64_t share_of(const struct hk__cut_rule *rule, const struct hk__cut_job *job)
{
	bool sums = job->kind == HK__CUT_SUMS;
	uint64_t share = job->longest / ((uint64_t)rule->slices * (sums ? SUM_SLICES : 1)) + 1;

	uint64_t most = room_of(SUM_SLICE_MAX, job) + 1,
		 least = room_of(rule->slice_bytes, job) + 1;

	if (sums && share > most)
		share = most;
	return hk__slice_round(share > least ? share : least);
}

enum hk_status hk__cut(const struct hk__cut_rule *rule, const struct hk__cut_job *job,
		       struct hk__cut *cut_out)
{
	uint64_t room = slot_room(rule, job, 1);

	if (room >= HK__SLICE_LONG)
		room = slot_room(rule, job, room);
	if (room == 0)
		return HK_ELIMIT;
	if (job->kind != HK__CUT_LEAST && rule->slices > 1) {
		uint64_t share = share_of(rule, job);

		room = share < room ? share : room;
	}
	uint64_t nslices = job->longest ? (job->longest + room - 1) / room : 1;
	if (nslices > UINT32_MAX / 2)
		return HK_ELIMIT;
	*cut_out = (struct hk__cut){ .nslices = (uint32_t)nslices,
				     .piece = hk__slice_len(job->longest, (uint32_t)nslices) };
	return HK_OK;
}
