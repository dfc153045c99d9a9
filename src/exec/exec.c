/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - steps lanes without blocking. A step takes its message and its slot
 * to send from together, works straight from the one to the other, and gives
 * both on; if either is not there yet, the lane waits and nothing has changed.
 *
 * Two shortcuts, for steps of one chunk. What only has to be received lands in
 * its place (take). What is sent and stays unchanged for the rest of the
 * operation is not copied where the transport can do without (lend).
 */
#include "exec/program.h"
#include "exec/stream.h"

#include <string.h>

/* One slice of one slot. */
struct piece {
	char *at;
	uint64_t len;	/* elements; of scratch: what it holds */
	bool wide;	/* what it holds is fp32 */
	bool scratch;	/* of scratch: takes what fits; of out: its own length */
	uint32_t *held; /* where length and width are kept; NULL: plain memory */
};

static uint64_t slice_at(uint64_t len, uint32_t slice, uint32_t nslices)
{
	uint64_t at = hk__slice_len(len, nslices) * slice;

	return at < len ? at : len;
}

static struct piece piece_in_scratch(const struct hk__program *program,
				     const struct bound_scratch *scratch, uint32_t slot,
				     uint32_t slice)
{
	size_t at = (size_t)slot * program->nslices + slice;

	return (struct piece){ .at = scratch->at + at * program->piece * program->scratch_size,
			       .len = scratch->held[at] & ~HELD_WIDE,
			       .wide = scratch->held[at] & HELD_WIDE,
			       .scratch = true,
			       .held = &scratch->held[at] };
}

static struct piece piece_of(const struct hk__program *program, uint32_t slice,
			     const struct hk_span *span, uint32_t j)
{
	const struct bound_buf *buf = &program->bufs[span->buf];
	uint32_t slot = hk_span_at(span, j, buf->nslots);
	struct piece piece = { 0 };

	if (span->buf == HK_BUF_SCRATCH)
		return piece_in_scratch(program, &program->scratch, slot, slice);
	uint64_t len = buf->first[slot + 1] - buf->first[slot];
	uint64_t from = 0, to = len;
	if (program->nslices > 1) {
		from = slice_at(len, slice, program->nslices);
		to = slice_at(len, slice + 1, program->nslices);
	}
	if (program->shadowed && span->buf == HK_BUF_OUT)
		piece = piece_in_scratch(program, &program->shadow, slot, slice);
	else
		piece.at = buf->at + (buf->first[slot] + from) * program->size;
	piece.scratch = false;
	piece.len = to - from;
	return piece;
}

/* A place for len elements: scratch takes what fits, out only its own length. */
static bool piece_take(const struct hk__program *program, struct piece *piece, uint64_t len,
		       bool wide)
{
	if (piece->scratch ? len > program->piece : len != piece->len)
		return false;
	if (piece->held)
		*piece->held = (uint32_t)len | (wide ? HELD_WIDE : 0);
	piece->len = len;
	piece->wide = wide;
	return true;
}

/* ---- arithmetic on what may be wide ---- */

struct value {
	const char *at;
	bool wide;
};

#define NARROW_STEP 256u

/* T = W op W: rare, and done in small steps. */
static void fold_and_narrow(const struct hk__program *program, char *dst, const float *a,
			    const float *b, uint64_t len)
{
	float sum[NARROW_STEP];

	for (uint64_t i = 0; i < len; i += NARROW_STEP) {
		size_t count = len - i < NARROW_STEP ? len - i : NARROW_STEP;

		program->wide->fold(sum, a + i, b + i, count);
		program->reduce->narrow(dst + i * program->size, sum, count);
	}
}

static void fold_to_wide(const struct hk__program *program, char *dst, struct value a,
			 struct value b, uint64_t len)
{
	if (!a.wide && !b.wide)
		program->reduce->widen_fold(dst, a.at, b.at, len);
	else if (a.wide && b.wide)
		program->wide->fold(dst, a.at, b.at, len);
	else
		program->reduce->wide_fold(dst, a.wide ? a.at : b.at, a.wide ? b.at : a.at, len);
}

/*
 * W = T op any, and the first operand lies where the sum will: what is wider
 * would overwrite what is still to be read, so from the end, and by way of a copy.
 */
static void fold_in_place(const struct hk__program *program, char *dst, struct value b,
			  uint64_t len)
{
	_Alignas(16) char copy[NARROW_STEP * 2];
	size_t size = program->size, b_size = b.wide ? program->scratch_size : size;

	hk_assert(size <= 2);
	for (uint64_t left = len; left;) {
		size_t count = left % NARROW_STEP ? left % NARROW_STEP : NARROW_STEP;

		left -= count;
		memcpy(copy, dst + left * size, count * size);
		fold_to_wide(program, dst + left * program->scratch_size,
			     (struct value){ copy, false },
			     (struct value){ b.at + left * b_size, b.wide }, count);
	}
}

static void value_fold(const struct hk__program *program, char *dst, bool dst_wide, struct value a,
		       struct value b, uint64_t len)
{
	const struct hk__reduce *reduce = program->reduce;

	if (dst_wide && !a.wide && a.at == dst)
		fold_in_place(program, dst, b, len);
	else if (dst_wide && !b.wide && b.at == dst)
		fold_in_place(program, dst, a, len);
	else if (dst_wide)
		fold_to_wide(program, dst, a, b, len);
	else if (!a.wide && !b.wide)
		reduce->fold(dst, a.at, b.at, len);
	else if (a.wide != b.wide)
		reduce->narrow_fold(dst, a.wide ? a.at : b.at, a.wide ? b.at : a.at, len);
	else
		fold_and_narrow(program, dst, (const float *)(const void *)a.at,
				(const float *)(const void *)b.at, len);
}

static size_t value_bytes(const struct hk__program *program, bool wide, uint64_t len)
{
	return len * (wide ? program->scratch_size : program->size);
}

/* Stays as wide as it is, unless its new place is plain memory, or in a wide message. */
static void value_move(const struct hk__program *program, char *dst, bool dst_wide, struct value a,
		       uint64_t len)
{
	if (a.wide && !dst_wide)
		program->reduce->narrow(dst, a.at, len);
	else if (!a.wide && dst_wide) /* the larger of it and itself, as fp32 */
		hk__reduce_find(program->call.type, HK_REDOP_MAX)->widen_fold(dst, a.at, a.at, len);
	else if (len && dst != a.at)
		memmove(dst, a.at, value_bytes(program, a.wide, len));
}

struct target {
	char *at; /* NULL: none */
	bool wide;
};

#define STORE_BYTES 8192u /* a fraction of a core's first cache */

/*
 * The value, plus the other if there is one, to one or two places: block by
 * block, so that what goes to the second is still in the nearest cache.
 */
static void value_store(const struct hk__program *program, struct target first,
			struct target second, struct value value, struct value other, uint64_t len)
{
	/* What grows wider where an operand lies is stored after all of that was read. */
	bool grows = second.wide && ((other.at == second.at && !other.wide) ||
				     (value.at == second.at && !value.wide));
	uint64_t block = second.at && !grows ? STORE_BYTES / program->scratch_size : len;

	hk_assert(!len || (first.at && value.at));
	for (uint64_t i = 0; i < len; i += block) {
		uint64_t count = len - i < block ? len - i : block;
		char *at = first.at + value_bytes(program, first.wide, i);
		struct value a = { value.at + value_bytes(program, value.wide, i), value.wide };

		if (other.at)
			value_fold(program, at, first.wide, a,
				   (struct value){ other.at + value_bytes(program, other.wide, i),
						   other.wide },
				   count);
		else
			value_move(program, at, first.wide, a, count);
		if (second.at)
			value_move(program, second.at + value_bytes(program, second.wide, i),
				   second.wide, (struct value){ at, first.wide }, count);
	}
}

/* ---- past the caches ---- */

#define STREAM_MIN 4096u

static bool slot_streams(const struct hk__program *program, const struct hk_chan *to,
			 uint64_t bytes)
{
	return program->call.method == HK__COPY_STREAMED && bytes >= STREAM_MIN &&
	       hk__chan_shared(to);
}

/* As value_store, to a slot and perhaps a place; nothing is wide. */
static void value_stream(const struct hk__program *program, char *slot, char *dst,
			 const char *value, const char *other, uint64_t len)
{
	_Alignas(64) char sums[STORE_BYTES];
	size_t bytes = len * program->size, block = STORE_BYTES / program->size * program->size;

	for (size_t at = 0; at < bytes; at += block) {
		size_t count = bytes - at < block ? bytes - at : block;
		const char *from = value + at;

		if (other) {
			char *to = dst ? dst + at : sums;

			program->reduce->fold(to, value + at, other + at, count / program->size);
			from = to;
		} else if (dst) {
			memmove(dst + at, value + at, count);
		}
		hk__stream(slot + at, from, count);
	}
}

/* ---- messages ---- */

/* What a message is made of while it is read or written. */
struct cargo {
	const char *in;		/* received; NULL: none */
	const char *in_lengths; /* NULL: one chunk, all of it */
	uint64_t in_left;	/* elements not yet read */
	bool in_wide;
	char *out; /* to be sent; NULL: none */
	uint32_t *out_lengths;
	bool out_wide;
	bool streams; /* goes there past the caches */
};

enum hk_status hk__program_lost(const struct hk__program *program, const struct bound_step *bound)
{
	struct hk_net *net = program->spec.chans->net;

	return hk__why(&net->why, HK_EIO,
		       "rank %u sent a message of another length than the plan says: do all ranks "
		       "call with the same counts and type?",
		       bound->step.from.rank);
}

static enum hk_status cargo_receive(const struct hk__program *program,
				    const struct bound_step *bound, struct cargo *cargo)
{
	uint32_t head = hk__message_head(program->piece, bound->step.count);
	struct hk_message message;
	enum hk_status status = hk__chan_peek(bound->from, &message);

	if (status != HK_OK)
		return status;
	if (!message.data)
		return HK_INPROGRESS;
	bound->from->bytes = message.len;
	cargo->in_wide = message.kind == KIND_WIDE;
	size_t size = cargo->in_wide ? program->scratch_size : program->size;
	if (message.len < head || (message.len - head) % size || (cargo->in_wide && !program->wide))
		return hk__program_lost(program, bound);
	cargo->in = (const char *)message.data + head;
	cargo->in_lengths = head ? message.data : NULL;
	cargo->in_left = (message.len - head) / size;
	return HK_OK;
}

/* The next chunk of the received message, checked against what is left of it. */
static bool cargo_next(const struct hk__program *program, struct cargo *cargo, uint32_t j,
		       struct value *value_out, uint64_t *len_out)
{
	uint64_t len = cargo->in_left;

	if (cargo->in_lengths) {
		uint32_t copy; /* the sender may still write where it lies */

		memcpy(&copy, cargo->in_lengths + (size_t)j * 4, sizeof(copy));
		len = copy;
	}
	if (len > cargo->in_left)
		return false;
	*value_out = (struct value){ cargo->in, cargo->in_wide };
	*len_out = len;
	cargo->in += value_bytes(program, cargo->in_wide, len);
	cargo->in_left -= len;
	return true;
}

/* ---- chunks ---- */

/* One chunk of a step: from message or source, added if it adds, to where it goes. */
static bool chunk_move(const struct hk__program *program, const struct bound_lane *lane,
		       const struct hk_step *step, uint32_t j, struct cargo *cargo)
{
	unsigned fields = hk__op_fields(step->op);
	struct piece src = { 0 }, dst = { 0 };
	struct value value, other = { 0 };
	uint64_t len = 0;

	if (fields & HK__FIELD_SRC)
		src = piece_of(program, lane->slice, &step->src, j);
	if ((fields & HK__FIELD_DST) && step->dst.buf != HK_BUF_NONE)
		dst = piece_of(program, lane->slice, &step->dst, j);
	if (cargo->in) {
		if (!cargo_next(program, cargo, j, &value, &len))
			return false;
		if (fields & HK__FIELD_REDUCES)
			other = (struct value){ src.at, src.wide };
	} else {
		value = (struct value){ src.at, src.wide };
		len = src.len;
		if (step->op == HK_OP_REDUCE)
			other = (struct value){ dst.at, dst.wide };
	}
	bool wide = program->wide && (other.at || value.wide);
	bool dst_wide = wide && dst.held;
	if (((fields & HK__FIELD_SRC) && src.len != len) ||
	    (step->op == HK_OP_REDUCE && dst.len != len) ||
	    (dst.at && !piece_take(program, &dst, len, dst_wide)))
		return false;
	if (cargo->out && cargo->streams)
		value_stream(program, cargo->out, dst.at, value.at, other.at, len);
	else if (cargo->out)
		value_store(program, (struct target){ cargo->out, cargo->out_wide },
			    (struct target){ dst.at, dst_wide }, value, other, len);
	else
		value_store(program, (struct target){ dst.at, dst_wide }, (struct target){ 0 },
			    value, other, len);
	if (cargo->out) {
		cargo->out += value_bytes(program, cargo->out_wide, len);
		if (cargo->out_lengths)
			cargo->out_lengths[j] = (uint32_t)len;
	}
	return true;
}

/* ---- steps ---- */

/* What a step sends: as much as it received, or what its source holds; and how wide. */
static uint32_t step_send_bytes(const struct hk__program *program, const struct bound_lane *lane,
				struct cargo *cargo)
{
	const struct hk_step *step = &lane->steps[lane->at].step;
	uint64_t len = cargo->in_left;
	bool wide = cargo->in && (cargo->in_wide || hk__op_reduces(step->op));

	for (uint32_t j = 0; !cargo->in && j < step->count; j++) {
		struct piece piece = piece_of(program, lane->slice, &step->src, j);

		len += piece.len;
		wide |= piece.wide;
	}
	cargo->out_wide = wide && program->wide;
	return hk__message_head(program->piece, step->count) +
	       (uint32_t)value_bytes(program, cargo->out_wide, len);
}

/* A message that was looked at, and is not released: its memory is not pinned any more. */
static enum hk_status step_leave(const struct bound_step *bound, enum hk_status status)
{
	if (bound->from && status != HK_OK)
		hk__chan_unpeek(bound->from);
	return status;
}

/* Any step: through slots. */
static enum hk_status step_run(const struct hk__program *program, struct bound_lane *lane)
{
	const struct bound_step *bound = &lane->steps[lane->at];
	uint32_t count = bound->step.count;
	struct cargo cargo = { 0 };
	enum hk_status status = HK_OK;
	void *slot = NULL;

	if (bound->from)
		status = cargo_receive(program, bound, &cargo);
	if (status == HK_OK && bound->to) {
		status = hk__chan_reserve(bound->to, step_send_bytes(program, lane, &cargo), &slot);
		if (status == HK_OK && !slot)
			status = HK_INPROGRESS;
	}
	if (status != HK_OK)
		return step_leave(bound, status);
	if (slot) {
		uint32_t head = hk__message_head(program->piece, count);

		cargo.streams = !program->wide &&
				slot_streams(program, bound->to, program->piece * program->size);
		cargo.out_lengths = head ? slot : NULL;
		cargo.out = (char *)slot + head;
	}
	for (uint32_t j = 0; j < count; j++) {
		if (!chunk_move(program, lane, &bound->step, j, &cargo))
			return step_leave(bound, hk__program_lost(program, bound));
	}
	if (cargo.in_left)
		return step_leave(bound, hk__program_lost(program, bound));
	/* Nothing goes on that was made of what its sender took back. */
	if (bound->from)
		status = hk__chan_release(bound->from);
	if (status == HK_OK && slot) {
		bound->to->bytes = (uint32_t)(cargo.out - (char *)slot);
		hk__chan_post(bound->to, bound->to->bytes, cargo.out_wide ? KIND_WIDE : KIND_PLAIN);
	}
	return status;
}

/* ---- shortcuts ---- */

/* A message that only has to be stored, straight to its place. */
static enum hk_status step_take(const struct hk__program *program, struct bound_lane *lane,
				const struct bound_step *bound)
{
	struct piece dst = piece_of(program, lane->slice, &bound->step.dst, 0);
	uint64_t cap = dst.scratch ? program->piece : dst.len;
	struct hk_message message;
	bool done;
	enum hk_status status =
		hk__chan_take(bound->from, dst.at, (uint32_t)value_bytes(program, dst.held, cap),
			      &message, &done);

	if (status != HK_OK || !done)
		return status == HK_OK ? HK_INPROGRESS : status;
	bound->from->bytes = message.len;
	bool wide = message.kind == KIND_WIDE;
	size_t size = wide ? program->scratch_size : program->size;
	if ((wide && !dst.held) || message.len % size ||
	    !piece_take(program, &dst, message.len / size, wide))
		return hk__program_lost(program, bound);
	return HK_OK;
}

/* Less is copied faster than its sender could wait for it to be read. */
#define LEND_MIN 8192u

static bool step_may_lend(const struct hk__program *program, const struct bound_step *bound,
			  const char *at, uint32_t bytes)
{
	if (!(program->inplace ? bound->stays_inplace : bound->stays) || bytes < LEND_MIN)
		return false;
	enum hk_lend lend = hk__chan_lendable(bound->to, at, bytes);
	return lend == HK_LEND_GAINS ||
	       (lend == HK_LEND_MAYBE && program->call.method == HK__COPY_LENT);
}

/* What a step sends, from where it lies; *lent_out false: not so. */
static enum hk_status step_lend(const struct hk__program *program, const struct bound_lane *lane,
				const struct bound_step *bound, bool *lent_out)
{
	const struct hk_step *step = &bound->step;
	struct piece piece =
		piece_of(program, lane->slice, step->op == HK_OP_SEND ? &step->src : &step->dst, 0);
	uint32_t bytes = (uint32_t)value_bytes(program, piece.wide, piece.len);
	bool done;

	*lent_out = false;
	if (!step_may_lend(program, bound, piece.at, bytes))
		return HK_OK;
	*lent_out = true;
	bound->to->bytes = bytes;
	enum hk_status status = hk__chan_lend(bound->to, piece.at, bytes,
					      piece.wide ? KIND_WIDE : KIND_PLAIN, &done);
	return status == HK_OK && !done ? HK_INPROGRESS : status;
}

/* The same through a slot: a copy. */
static enum hk_status step_send(const struct hk__program *program, const struct bound_lane *lane,
				const struct bound_step *bound)
{
	const struct hk_step *step = &bound->step;
	bool lent;
	enum hk_status status = step_lend(program, lane, bound, &lent);

	if (status != HK_OK || lent)
		return status;
	struct piece piece =
		piece_of(program, lane->slice, step->op == HK_OP_SEND ? &step->src : &step->dst, 0);
	uint32_t bytes = (uint32_t)value_bytes(program, piece.wide, piece.len);
	void *slot;
	status = hk__chan_reserve(bound->to, bytes, &slot);
	if (status != HK_OK || !slot)
		return status == HK_OK ? HK_INPROGRESS : status;
	if (slot_streams(program, bound->to, bytes))
		hk__stream(slot, piece.at, bytes);
	else if (bytes)
		memcpy(slot, piece.at, bytes);
	bound->to->bytes = bytes;
	hk__chan_post(bound->to, bytes, piece.wide ? KIND_WIDE : KIND_PLAIN);
	return HK_OK;
}

/* Adds into dst and lends it, where that saves a copy; *done_out false: not so. */
static enum hk_status step_reduce_lend(const struct hk__program *program, struct bound_lane *lane,
				       const struct bound_step *bound, bool *done_out)
{
	struct piece dst = piece_of(program, lane->slice, &bound->step.dst, 0);
	struct cargo cargo = { 0 };
	bool lent;
	void *slot = NULL;

	*done_out = false;
	if (program->wide ||
	    !step_may_lend(program, bound, dst.at, (uint32_t)value_bytes(program, false, dst.len)))
		return HK_OK;
	*done_out = true;
	enum hk_status status = cargo_receive(program, bound, &cargo);
	if (status == HK_OK) /* only to know that there is one */
		status = hk__chan_reserve(bound->to, 0, &slot);
	if (status != HK_OK || !slot)
		return step_leave(bound, status == HK_OK ? HK_INPROGRESS : status);
	if (!chunk_move(program, lane, &bound->step, 0, &cargo) || cargo.in_left)
		return step_leave(bound, hk__program_lost(program, bound));
	status = hk__chan_release(bound->from);
	return status == HK_OK ? step_lend(program, lane, bound, &lent) : status;
}

static enum hk_status step_perform(const struct hk__program *program, struct bound_lane *lane)
{
	const struct bound_step *bound = &lane->steps[lane->at];
	const struct hk_step *step = &bound->step;
	enum hk_status status = HK_OK;
	bool done = false;

	if (!lane_ready(program, lane, &step->after))
		return HK_INPROGRESS;
	if (step_can_take(program, step)) {
		if (!lane->taken)
			status = step_take(program, lane, bound);
		lane->taken = status == HK_OK;
		if (status == HK_OK && bound->to)
			status = step_send(program, lane, bound);
		return status;
	}
	if (step->count == 1 && step->op == HK_OP_SEND)
		return step_send(program, lane, bound);
	if (step->count == 1 && step->op == HK_OP_RECV_REDUCE_SEND && step->dst.buf == HK_BUF_OUT)
		status = step_reduce_lend(program, lane, bound, &done);
	return done || status != HK_OK ? status : step_run(program, lane);
}

/*
 * Steps a lane goes on before the others have their turn: enough for what it
 * sends to leave this core's cache, few enough for it to be still in the shared
 * one when it is read.
 */
#define LANE_TURN 4u

/* As far as its turn goes; *moved is set if that was any way at all. */
static enum hk_status lane_run(struct hk__program *program, struct bound_lane *lane, bool *moved)
{
	for (uint32_t turn = 0; turn < LANE_TURN && lane->slice < program->nslices && lane->nsteps;
	     turn++) {
		uint64_t start = program->trace ? hk__now_ns() : 0;
		enum hk_status status = step_perform(program, lane);

		if (__builtin_expect(program->trace != NULL, 0))
			hk__trace_step(program, lane, start, status);
		if (status != HK_OK)
			return status == HK_INPROGRESS ? HK_OK : status;
		*moved = true;
		lane->taken = false;
		if (++lane->at == lane->nsteps) {
			lane->at = 0;
			if (++lane->slice == program->nslices)
				program->lanes_left--;
		}
	}
	return HK_OK;
}

/* ---- the end of an operation ---- */

static bool program_lends(const struct hk__program *program)
{
	struct hk_chan *const *to = program->to.items;

	for (size_t i = 0; i < program->to.count; i++) {
		if (hk__chan_lent(to[i]))
			return true;
	}
	return false;
}

/* Sums leave their shadow: divided if it was an average, then rounded, once. */
static void program_unshadow(const struct hk__program *program)
{
	const struct bound_buf *out = &program->bufs[HK_BUF_OUT];
	bool avg = program->call.op == HK_REDOP_AVG;

	for (uint32_t k = 0; k < out->nslots; k++) {
		uint64_t len = out->first[k + 1] - out->first[k];

		for (uint32_t s = 0; s < program->nslices; s++) {
			struct piece piece = piece_in_scratch(program, &program->shadow, k, s);
			uint64_t from = slice_at(len, s, program->nslices);
			char *dst = out->at + (out->first[k] + from) * program->size;

			if (piece.wide && avg)
				program->reduce->wide_finish(piece.at, program->spec.plan->n,
							     piece.len);
			value_move(program, dst, false, (struct value){ piece.at, piece.wide },
				   piece.len);
			if (!piece.wide && avg)
				program->reduce->finish(dst, program->spec.plan->n, piece.len);
		}
	}
}

static void program_finish(struct hk__program *program)
{
	struct bound_buf *out = &program->bufs[HK_BUF_OUT];

	program->running = false;
	if (!program->finishes)
		return;
	uint64_t entered = hk__reduce_enter();
	if (program->shadowed)
		program_unshadow(program);
	else if (out->nslots)
		program->reduce->finish(out->at, program->spec.plan->n, buf_elements(out));
	hk__reduce_leave(entered);
}

static enum hk_status program_run(struct hk__program *program, bool *moved_out)
{
	enum hk_status status = HK_OK;
	/* The thread is the caller's, and so is how it rounds. */
	uint64_t entered = hk__reduce_enter();

	for (uint32_t l = 0; l < program->nlanes && status == HK_OK; l++)
		status = lane_run(program, &program->lanes[l], moved_out);
	hk__reduce_leave(entered);
	return status;
}

enum hk_status hk__program_poll(struct hk__program *program, bool *moved_out)
{
	*moved_out = false;
	enum hk_status status = program->quick ? hk__quick_poll(program, moved_out)
					       : program_run(program, moved_out);
	if (__builtin_expect(status != HK_OK, 0)) {
		program->running = false; /* it cannot go on, nor be waited for */
		return status;
	}
	if (program->lanes_left || program_lends(program))
		return HK_INPROGRESS;
	program_finish(program);
	return HK_OK;
}

const char *hk__program_algo(const struct hk__program *program)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(program->spec.plan, &info);
	return info.algo;
}

const char *hk__program_algo_bytes(const struct hk__program *program)
{
	return program->algo;
}

/* Who has still to read what it was lent, once each. */
static uint32_t program_readers(const struct hk__program *program, uint32_t *ranks_out,
				uint32_t max)
{
	uint32_t count = 0;

	for (uint32_t l = 0; l < program->nlanes; l++) {
		const struct bound_lane *lane = &program->lanes[l];

		for (uint32_t i = 0; i < lane->nsteps && count < max; i++) {
			uint32_t rank = lane->steps[i].step.to.rank, known = 0;

			if (!lane->steps[i].to || !hk__chan_lent(lane->steps[i].to))
				continue;
			while (known < count && ranks_out[known] != rank)
				known++;
			if (known == count)
				ranks_out[count++] = rank;
		}
	}
	return count;
}

uint32_t hk__program_waits(const struct hk__program *program, uint32_t *ranks_out, uint32_t max)
{
	uint32_t count = 0;

	for (uint32_t l = 0; l < program->nlanes; l++) {
		const struct bound_lane *lane = &program->lanes[l];

		if (lane->slice >= program->nslices || !lane->nsteps)
			continue;
		const struct hk_step *step = &lane->steps[lane->at].step;
		if (hk__op_receives(step->op) && count < max)
			ranks_out[count++] = step->from.rank;
		if (hk__op_sends(step->op) && count < max)
			ranks_out[count++] = step->to.rank;
	}
	return program->lanes_left ? count : program_readers(program, ranks_out, max);
}

void hk__program_describe(const struct hk__program *program, struct hk__text *text)
{
	const char *between = "";
	uint32_t ranks[4];

	for (uint32_t l = 0; l < program->nlanes; l++) {
		const struct bound_lane *lane = &program->lanes[l];

		if (lane->slice >= program->nslices || !lane->nsteps)
			continue;
		const struct hk_step *step = &lane->steps[lane->at].step;
		hk__text_add(text, "%slane %u at step %u of %u (%s", between, l, lane->at,
			     lane->nsteps, hk_op_name(step->op));
		if (hk__op_receives(step->op))
			hk__text_add(text, " from rank %u", step->from.rank);
		if (hk__op_sends(step->op))
			hk__text_add(text, " to rank %u", step->to.rank);
		hk__text_add(text, "), slice %u of %u", lane->slice, program->nslices);
		between = "; ";
	}
	if (*between)
		return;
	uint32_t count = program_readers(program, ranks, 4);
	hk__text_add(text, "all steps done, waiting until receivers have read what was sent");
	for (uint32_t i = 0; i < count; i++)
		hk__text_add(text, "%s rank %u", i ? "," : " by", ranks[i]);
}
