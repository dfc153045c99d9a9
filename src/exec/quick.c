/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quick.c - the executor's path for small operations: steps of one chunk in one
 * slice, whose places and lengths are worked out once and then used by call
 * after call. It performs what exec.c would, message by message.
 */
#include "exec/program.h"

#include <string.h>

/* Beyond this, time goes into bytes and not into steps. */
#define QUICK_BYTES_MAX 4096u
#define QUICK_LOOKS 8u

static void quick_place(struct hk__program *program, const struct hk_span *span,
			struct quick_place *place)
{
	const struct bound_buf *buf = &program->bufs[span->buf];
	uint32_t slot = hk_span_at(span, 0, buf->nslots);

	*place = (struct quick_place){ .buf = span->buf };
	if (span->buf == HK_BUF_SCRATCH) {
		place->held = &program->scratch.held[slot];
		place->offset = slot * program->piece * program->size;
	} else {
		place->len = (uint32_t)(buf->first[slot + 1] - buf->first[slot]);
		place->offset = buf->first[slot] * program->size;
	}
}

/* After a program was shaped: whether it can go this way, and how. */
void hk__quick_shape(struct hk__program *program)
{
	program->quick = program->nslices == 1 && !program->wide && !program->shadowed &&
			 program->piece * program->size <= QUICK_BYTES_MAX;
	for (uint32_t l = 0; l < program->nlanes && program->quick; l++) {
		for (uint32_t i = 0; i < program->lanes[l].nsteps && program->quick; i++) {
			struct bound_step *bound = &program->lanes[l].steps[i];
			unsigned fields = hk__op_fields(bound->step.op);

			if (bound->step.count > 1) {
				program->quick = false;
				break;
			}
			bound->src = bound->dst = (struct quick_place){ .buf = HK_BUF_NONE };
			if (bound->step.count && (fields & HK__FIELD_SRC))
				quick_place(program, &bound->step.src, &bound->src);
			if (bound->step.count && (fields & HK__FIELD_DST) &&
			    bound->step.dst.buf != HK_BUF_NONE)
				quick_place(program, &bound->step.dst, &bound->dst);
		}
	}
}

static inline char *place_at(const struct hk__program *program, const struct quick_place *place)
{
	return (place->buf == HK_BUF_SCRATCH ? program->scratch.at : program->bufs[place->buf].at) +
	       place->offset;
}

static inline uint32_t place_len(const struct quick_place *place)
{
	return place->held ? *place->held : place->len;
}

/* Whether the place takes len elements; scratch then holds them. */
static inline bool place_take(const struct hk__program *program, const struct quick_place *place,
			      uint32_t len)
{
	if (!place->held)
		return place->len == len;
	*place->held = len;
	return len <= program->piece;
}

/* Most are a word or two: no call, no loop. */
static inline void copy_few(char *dst, const char *src, size_t bytes)
{
	if (bytes == 8)
		memcpy(dst, src, 8);
	else if (bytes == 4)
		memcpy(dst, src, 4);
	else if (bytes && dst != src)
		memmove(dst, src, bytes);
}

/* A step that receives; message and slot (if it sends) are there. */
static enum hk_status quick_receive(const struct hk__program *program,
				    const struct bound_step *bound,
				    const struct hk_message *message, char *slot)
{
	uint32_t len = message->len / (uint32_t)program->size;
	bool adds = hk__op_reduces(bound->step.op);
	bool keeps = bound->dst.buf != HK_BUF_NONE;
	char *dst = keeps ? place_at(program, &bound->dst) : NULL;
	char *first = slot ? slot : dst;

	if (len * program->size != message->len || message->kind != KIND_PLAIN ||
	    (adds && place_len(&bound->src) != len) ||
	    (keeps && !place_take(program, &bound->dst, len)) || (len && !first))
		return hk__program_lost(program, bound);
	if (adds && len) {
		uint64_t entered = hk__reduce_enter();

		program->reduce->fold(first, message->data, place_at(program, &bound->src), len);
		hk__reduce_leave(entered);
	} else {
		copy_few(first, message->data, message->len);
	}
	if (slot && dst)
		copy_few(dst, slot, message->len);
	return HK_OK;
}

/* A step that receives nothing; the slot is there if it sends. */
static enum hk_status quick_local(const struct hk__program *program, const struct bound_step *bound,
				  char *slot)
{
	uint32_t len = bound->src.buf == HK_BUF_NONE ? 0 : place_len(&bound->src);
	const char *src = len ? place_at(program, &bound->src) : NULL;

	if (slot) {
		copy_few(slot, src, len * program->size);
		return HK_OK;
	}
	if (bound->dst.buf == HK_BUF_NONE)
		return HK_OK;
	char *dst = place_at(program, &bound->dst);
	if (bound->step.op == HK_OP_REDUCE) {
		if (place_len(&bound->dst) != len)
			return hk__program_lost(program, bound);
		uint64_t entered = hk__reduce_enter();
		program->reduce->fold(dst, dst, src, len);
		hk__reduce_leave(entered);
		return HK_OK;
	}
	if (!place_take(program, &bound->dst, len))
		return hk__program_lost(program, bound);
	copy_few(dst, src, len * program->size);
	return HK_OK;
}

static enum hk_status quick_step(const struct hk__program *program, const struct bound_step *bound)
{
	struct hk_message message = { .data = NULL, .len = 0 };
	enum hk_status status = HK_OK;
	void *slot = NULL;
	uint32_t bytes;

	if (bound->from) {
		/* It is often on its way: a few looks are cheaper than coming back. */
		for (unsigned look = 0; look < QUICK_LOOKS && status == HK_OK && !message.data;
		     look++)
			status = hk__chan_peek(bound->from, &message);
		if (status != HK_OK || !message.data)
			return status == HK_OK ? HK_INPROGRESS : status;
		bytes = message.len;
		bound->from->bytes = bytes;
	} else {
		bytes = bound->src.buf == HK_BUF_NONE
				? 0
				: place_len(&bound->src) * (uint32_t)program->size;
	}
	if (bound->to) {
		status = hk__chan_reserve(bound->to, bytes, &slot);
		if (status == HK_OK && !slot)
			status = HK_INPROGRESS;
	}
	if (status == HK_OK)
		status = bound->from ? quick_receive(program, bound, &message, slot)
				     : quick_local(program, bound, slot);
	if (status != HK_OK) {
		if (bound->from)
			hk__chan_unpeek(bound->from);
		return status;
	}
	if (bound->to) {
		bound->to->bytes = bytes;
		hk__chan_post(bound->to, bytes, KIND_PLAIN);
	}
	return bound->from ? hk__chan_release(bound->from) : HK_OK;
}

enum hk_status hk__quick_poll(struct hk__program *program, bool *moved_out)
{
	const struct hk__trace *trace = program->trace;

	for (uint32_t l = 0; l < program->nlanes; l++) {
		struct bound_lane *lane = &program->lanes[l];

		while (lane->at < lane->nsteps && !lane->slice) {
			const struct bound_step *bound = &lane->steps[lane->at];
			uint64_t start = trace ? hk__now_ns() : 0;
			enum hk_status status = lane_ready(program, lane, &bound->step.after)
							? quick_step(program, bound)
							: HK_INPROGRESS;

			if (__builtin_expect(trace != NULL, 0))
				hk__trace_step(program, lane, start, status);
			if (status == HK_INPROGRESS)
				break;
			if (status != HK_OK)
				return status;
			*moved_out = true;
			if (++lane->at == lane->nsteps) {
				lane->slice = 1;
				lane->at = 0;
				program->lanes_left--;
			}
		}
	}
	return HK_OK;
}
