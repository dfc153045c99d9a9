/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - steps lanes without blocking. A step takes its message and its slot
 * to send from together, works straight from the one to the other, and gives
 * both on; if either is not there yet, the lane waits and nothing has changed.
 */
#include "exec/program.h"

#include <sched.h>
#include <string.h>
#include <time.h>

/* One slice of one slot. */
struct piece {
	char *at;
	uint64_t len;	/* elements; of scratch: what it holds */
	uint32_t *held; /* scratch: where its length is kept */
};

static uint64_t slice_at(uint64_t len, uint32_t slice, uint32_t nslices)
{
	/* Whole pieces first: all ranks cut a length alike. */
	uint64_t piece = (len + nslices - 1) / nslices, at = piece * slice;

	return at < len ? at : len;
}

static struct piece piece_of(struct hk__program *program, uint32_t slice,
			     const struct hk_span *span, uint32_t j)
{
	struct bound_buf *buf = &program->bufs[span->buf];
	uint32_t slot = hk_span_at(span, j, buf->nslots);

	if (span->buf == HK_BUF_SCRATCH) {
		size_t at = (size_t)slot * program->nslices + slice;

		return (struct piece){ buf->at + at * program->piece * program->size,
				       program->lengths[at], &program->lengths[at] };
	}
	uint64_t len = buf->first[slot + 1] - buf->first[slot];
	uint64_t from = slice_at(len, slice, program->nslices);
	uint64_t to = slice_at(len, slice + 1, program->nslices);
	return (struct piece){ buf->at + (buf->first[slot] + from) * program->size, to - from,
			       NULL };
}

/* A place for len elements: scratch takes what fits, out only its own length. */
static bool piece_take(const struct hk__program *program, struct piece *piece, uint64_t len)
{
	if (!piece->held)
		return piece->len == len;
	if (len > program->piece)
		return false;
	*piece->held = (uint32_t)len;
	piece->len = len;
	return true;
}

/* ---- messages ---- */

/* What a message is made of while it is read or written. */
struct cargo {
	const char *in;		    /* received; NULL: none */
	const uint32_t *in_lengths; /* NULL: one chunk, all of it */
	uint64_t in_left;	    /* elements not yet read */
	char *out;		    /* to be sent; NULL: none */
	uint32_t *out_lengths;
};

static enum hk_status cargo_receive(struct hk__program *program, const struct bound_step *bound,
				    struct cargo *cargo)
{
	uint32_t head = message_head(bound->step.count);
	struct hk_message message;
	enum hk_status status = hk__chan_peek(bound->from, &message);

	if (status != HK_OK)
		return status;
	if (!message.data)
		return HK_INPROGRESS;
	if (message.len < head || (message.len - head) % program->size)
		return HK_EIO;
	cargo->in = (const char *)message.data + head;
	cargo->in_lengths = head ? message.data : NULL;
	cargo->in_left = (message.len - head) / program->size;
	return HK_OK;
}

/* The next chunk of the received message, checked against what is left of it. */
static enum hk_status cargo_next(const struct hk__program *program, struct cargo *cargo, uint32_t j,
				 const char **at_out, uint64_t *len_out)
{
	uint64_t len = cargo->in_lengths ? cargo->in_lengths[j] : cargo->in_left;

	if (len > cargo->in_left)
		return HK_EIO;
	*at_out = cargo->in;
	*len_out = len;
	cargo->in += len * program->size;
	cargo->in_left -= len;
	return HK_OK;
}

/* ---- chunks ---- */

/* One chunk of a step: from message or source, added if it adds, to where it goes. */
static enum hk_status chunk_move(struct hk__program *program, const struct bound_lane *lane,
				 const struct hk_step *step, uint32_t j, struct cargo *cargo)
{
	unsigned fields = hk__op_fields(step->op);
	struct piece src = { 0 }, dst = { 0 };
	const char *value = NULL, *other = NULL;
	uint64_t len = 0;

	if (fields & HK__FIELD_SRC)
		src = piece_of(program, lane->slice, &step->src, j);
	if ((fields & HK__FIELD_DST) && step->dst.buf != HK_BUF_NONE)
		dst = piece_of(program, lane->slice, &step->dst, j);
	if (cargo->in) {
		enum hk_status status = cargo_next(program, cargo, j, &value, &len);

		if (status != HK_OK)
			return status;
		other = (fields & HK__FIELD_REDUCES) ? src.at : NULL;
	} else {
		value = src.at;
		len = src.len;
		other = step->op == HK_OP_REDUCE ? dst.at : NULL;
	}
	if (((fields & HK__FIELD_SRC) && src.len != len) ||
	    (step->op == HK_OP_REDUCE && dst.len != len) ||
	    (dst.at && !piece_take(program, &dst, len)))
		return HK_EIO;
	char *first = cargo->out ? cargo->out : dst.at;
	if (len) {
		hk_assert(first && value);
		if (other)
			program->reduce->fold(first, value, other, len);
		else if (first != value)
			memmove(first, value, len * program->size);
		if (cargo->out && dst.at)
			memcpy(dst.at, cargo->out, len * program->size);
	}
	if (cargo->out) {
		cargo->out += len * program->size;
		if (cargo->out_lengths)
			cargo->out_lengths[j] = (uint32_t)len;
	}
	return HK_OK;
}

/* ---- steps ---- */

static bool step_dependency_over(const struct hk__program *program, const struct bound_lane *lane,
				 const struct hk_after *after)
{
	if (after->lane == HK_NONE)
		return true;
	const struct bound_lane *other = &program->lanes[after->lane];
	return other->slice > lane->slice ||
	       (other->slice == lane->slice && other->at > after->step);
}

/* What a step sends: as much as it received, or what its source holds. */
static uint32_t step_send_bytes(struct hk__program *program, const struct bound_lane *lane,
				const struct cargo *cargo)
{
	const struct hk_step *step = &lane->steps[lane->at].step;
	uint64_t len = cargo->in_left;

	for (uint32_t j = 0; !cargo->in && j < step->count; j++)
		len += piece_of(program, lane->slice, &step->src, j).len;
	return message_head(step->count) + (uint32_t)(len * program->size);
}

static enum hk_status step_run(struct hk__program *program, struct bound_lane *lane)
{
	const struct bound_step *bound = &lane->steps[lane->at];
	uint32_t count = bound->step.count;
	struct cargo cargo = { 0 };
	enum hk_status status = HK_OK;
	void *slot = NULL;

	if (!step_dependency_over(program, lane, &bound->step.after))
		return HK_INPROGRESS;
	if (bound->from)
		status = cargo_receive(program, bound, &cargo);
	if (status == HK_OK && bound->to) {
		status = hk__chan_reserve(bound->to, step_send_bytes(program, lane, &cargo), &slot);
		if (status == HK_OK && !slot)
			status = HK_INPROGRESS;
	}
	if (status != HK_OK)
		return status;
	if (slot) {
		cargo.out_lengths = message_head(count) ? slot : NULL;
		cargo.out = (char *)slot + message_head(count);
	}
	for (uint32_t j = 0; j < count && status == HK_OK; j++)
		status = chunk_move(program, lane, &bound->step, j, &cargo);
	if (status != HK_OK || cargo.in_left)
		return status == HK_OK ? HK_EIO : status;
	if (slot)
		hk__chan_post(bound->to, (uint32_t)(cargo.out - (char *)slot), 0);
	if (bound->from)
		hk__chan_release(bound->from);
	return HK_OK;
}

/* As far as it goes; *moved is set if that was any way at all. */
static enum hk_status lane_run(struct hk__program *program, struct bound_lane *lane, bool *moved)
{
	while (lane->slice < program->nslices && lane->nsteps) {
		enum hk_status status = step_run(program, lane);

		if (status != HK_OK)
			return status == HK_INPROGRESS ? HK_OK : status;
		*moved = true;
		if (++lane->at == lane->nsteps) {
			lane->at = 0;
			if (++lane->slice == program->nslices)
				program->lanes_left--;
		}
	}
	return HK_OK;
}

/* ---- all lanes ---- */

static enum hk_status program_move(struct hk__program *program, bool *moved)
{
	enum hk_status status = HK_OK;
	/* The thread is the caller's, and so is how it rounds. */
	uint64_t entered = hk__reduce_enter();

	for (uint32_t l = 0; l < program->nlanes && status == HK_OK; l++)
		status = lane_run(program, &program->lanes[l], moved);
	hk__reduce_leave(entered);
	if (status != HK_OK) {
		program->lanes_left = 0; /* it cannot go on, nor be waited for */
		return status;
	}
	return program->lanes_left ? HK_INPROGRESS : HK_OK;
}

enum hk_status hk__program_poll(struct hk__program *program)
{
	bool moved = false;

	return program_move(program, &moved);
}

static uint64_t exec_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Looks that many times, then gives the core away as often, then sleeps. */
#define EXEC_SPINS 200u
#define EXEC_YIELDS 20u

enum hk_status hk__program_wait(struct hk__program *program, uint64_t timeout_ns)
{
	uint64_t deadline = 0;
	uint32_t idle = 0;

	for (;;) {
		bool moved = false;
		enum hk_status status = program_move(program, &moved);

		if (status != HK_INPROGRESS)
			return status;
		idle = moved ? 0 : idle + 1;
		if (idle <= EXEC_SPINS) {
#if defined(__x86_64__)
			__builtin_ia32_pause();
#endif
			continue;
		}
		if (idle <= EXEC_SPINS + EXEC_YIELDS) {
			sched_yield();
			continue;
		}
		uint64_t now = exec_now();
		if (!deadline)
			deadline = now + timeout_ns;
		if (now >= deadline)
			return HK_ETIMEDOUT;
		status = hk__net_wait(program->spec.net, deadline - now);
		if (status != HK_OK)
			return status;
	}
}
