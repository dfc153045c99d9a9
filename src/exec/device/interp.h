/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interp.h - performs flat programs: what does not depend on the type of elements;
 * the rest is interp.inc, included once for each. Compiled for the device by
 * kernel.cu, and for the host by host.c, where a block is one thread.
 *
 * All threads of a block go through the moves together. One thread each waits
 * for a rank and tells a rank; between those, all of them move data. Order: who
 * waits acquires, then the block synchronises, then all read; all write, the block
 * synchronises, then who tells releases.
 */
#ifndef HK_EXEC_DEVICE_INTERP_H
#define HK_EXEC_DEVICE_INTERP_H

#include "exec/device/element.h"
#include "exec/device/flat.h"

#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#define WARP 32u
#else
#include "base/base.h"
#include <sched.h>
#define UNROLL
#define WARP 1u
#endif

#define FLAT_BATCH 8		/* loads in flight of a thread */
#define FLAT_LOOKS 16		/* in vain, until who waits thinks about it */

/* Shared by the threads of a block. */
struct flat_operand {
	char *at;
	uint64_t factor;
	uint32_t wide, line, scaled;
	uint32_t from;			/* of a line: the rank that writes it */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct flat_operand) == HK__FLAT_OPERAND_BYTES, "as flat.h says");
#endif

struct flat_block {
	uint64_t in[HK__FLAT_RANKS], out[HK__FLAT_RANKS], factor[HK__FLAT_RANKS];
	struct flat_operand operands[2][2 * HK__FLAT_FOLD]; /* of a move, and of the next */
};

/* One thread's view of the call. */
struct flat_self {
	const struct hk__flat_call *call;
	const struct hk__flat_program *program;
	struct flat_block *block;
	struct hk__flat_lot *lot;
	struct flat_operand *operands;	/* of the move; by lines: of the program */
	uint64_t epoch;
	uint32_t broken;		/* an earlier call has failed */
	uint32_t id, nthreads;		/* of the block, or of a team of it */
	uint32_t nteams;
	uint64_t seen;			/* of `done` of the rank that is this thread's to look at */
	uint32_t number;		/* of the block in its rank */
	uint32_t turn;			/* slices that the block has done */
	uint32_t flip;			/* which operands are of this move */
	uint32_t lane, step;		/* of the move, for messages */
};

struct __attribute__((aligned(16))) flat_vec {
	uint32_t word[4];
};

/* ---- the machine ---- */

#ifdef __CUDACC__
DEV bool flat_sync_or(bool failed)
{
	return __syncthreads_or(failed);
}

DEV uint64_t flat_acquire(const uint64_t *at, bool far)
{
	uint64_t value;

	if (far)
		asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	else
		asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

DEV void flat_release(uint64_t *at, uint64_t value, bool far)
{
	if (far)
		asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
	else
		asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

DEV uint64_t flat_peek(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

DEV void flat_poke(uint64_t *at, uint64_t value)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

DEV bool flat_aborted(const struct hk__flat_report *report)
{
	return *(const volatile uint32_t *)&report->abort;
}

DEV bool flat_failed(const struct hk__flat_report *report)
{
	return *(const volatile uint32_t *)&report->failed;
}

DEV uint64_t flat_now(void)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

DEV bool flat_first(uint32_t *word)
{
	return atomicCAS(word, 0u, 1u) == 0;
}

DEV void flat_publish(uint32_t *word)
{
	__threadfence_system();
	*(volatile uint32_t *)word = 1;
}

/* What was written before is seen by all before what is written next. */
DEV void flat_fence(void)
{
	__threadfence_system();
}

DEV void flat_pause(void)
{
}
#else
DEV bool flat_sync_or(bool failed)
{
	return failed;
}

DEV uint64_t flat_acquire(const uint64_t *at, bool far)
{
	(void)far;
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

DEV void flat_release(uint64_t *at, uint64_t value, bool far)
{
	(void)far;
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

DEV uint64_t flat_peek(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

DEV void flat_poke(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

DEV bool flat_aborted(const struct hk__flat_report *report)
{
	return __atomic_load_n(&report->abort, __ATOMIC_RELAXED);
}

DEV bool flat_failed(const struct hk__flat_report *report)
{
	return __atomic_load_n(&report->failed, __ATOMIC_ACQUIRE);
}

DEV uint64_t flat_now(void)
{
	return hk__now_ns();
}

DEV bool flat_first(uint32_t *word)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(word, &none, 1, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

DEV void flat_publish(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

DEV void flat_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* More blocks than cores, and none of them ever leaves its core by itself. */
DEV void flat_pause(void)
{
	sched_yield();
}
#endif

/* ---- places ---- */

DEV struct hk__flat_lot *flat_lot(const struct flat_self *self, uint32_t rank)
{
	return (struct hk__flat_lot *)(void *)(self->call->segments[rank] +
					       self->number * self->call->lot_bytes);
}

/* Where slot k of a buffer begins, in elements. */
DEV uint64_t flat_first_of(const struct hk__flat_call *call, uint32_t k)
{
	if (call->counted)
		return call->first[k];
	return k * call->each + (k < call->more ? k : call->more);
}

DEV uint64_t flat_length(const struct hk__flat_call *call, uint32_t symbol)
{
	return flat_first_of(call, symbol + 1) - flat_first_of(call, symbol);
}

DEV const char *flat_part(const struct flat_self *self, uint32_t offset)
{
	return (const char *)self->program + offset;
}

DEV void flat_operand_find(const struct flat_self *self, const struct hk__flat_move *move,
			   const struct hk__flat_ref *ref, uint64_t from, uint32_t size,
			   struct flat_operand *operand)
{
	const struct hk__flat_call *call = self->call;
	const struct flat_block *block = self->block;
	char *lines = (char *)(flat_lot(self, ref->rank) + 1);
	uint64_t base;

	operand->wide = ref->wide;
	operand->line = 0;
	operand->scaled = ref->kind == HK__FLAT_IN && (call->mode & HK__FLAT_PREMUL);
	if (ref->kind == HK__FLAT_BUF) {
		/* As far from a boundary of 16 bytes as chunks in well-aligned buffers. */
		uint64_t skew = ref->wide ? 0 : flat_first_of(call, move->symbol) * size % 16;

		operand->at = lines + 2 * call->lines_bytes + ref->slot * call->buf_bytes + skew;
	} else {
		base = ref->kind == HK__FLAT_IN ? block->in[ref->rank] : block->out[ref->rank];
		operand->at = (char *)(uintptr_t)(base + (flat_first_of(call, ref->slot) + from) *
								 size);
		operand->factor = block->factor[ref->rank];
	}
}

/* Where all operands are of moves that go at once. */
DEV void flat_operands_find(const struct flat_self *self, const struct hk__flat_move *moves,
			    uint32_t count, uint64_t from, uint32_t size)
{
	const struct hk__flat_ref *refs =
		(const struct hk__flat_ref *)(const void *)flat_part(self, self->program->refs);
	uint32_t base = moves->refs, m = 0;
	uint32_t end = moves[count - 1].refs + moves[count - 1].nsrc + moves[count - 1].ndst;

	for (uint32_t i = base + self->id; i < end; i += self->nthreads) {
		while (m + 1 < count && moves[m + 1].refs <= i)
			m++;
		flat_operand_find(self, &moves[m], &refs[i], from, size, &self->operands[i - base]);
	}
}

/* The threads of a block share so many moves: a member of a team, and its first move. */
DEV uint32_t flat_team(const struct flat_self *self, uint32_t count, struct flat_self *member)
{
	uint32_t warps = self->nthreads / WARP, per = warps > count ? warps / count : 1;
	uint32_t team = self->id / WARP / per;

	*member = *self;
	member->nteams = warps / per;
	member->id = self->id - team * per * WARP;
	member->nthreads = per * WARP;
	return team < member->nteams ? team : count; /* a few may be left over */
}

/* ---- waiting and telling ---- */

/* Who waits, and for whom: by value, so that a thread's own state stays in registers. */
struct flat_waiter {
	const struct hk__flat_call *call;
	struct hk__flat_lot *lot;
	uint32_t number, epoch, lane, step, peer;
	/* By lines: of so many, from there on, at these words of each. */
	const struct flat_operand *lines;
	uint32_t count;
	uint64_t narrow, wide;
};

DEV struct flat_waiter flat_waiter(const struct flat_self *self, uint32_t peer)
{
	struct flat_waiter waiter = { self->call,	   self->lot,  self->number,
				      (uint32_t)self->epoch, self->lane, self->step,
				      peer,		    NULL,	 0,
				      0,		    0 };

	return waiter;
}

/* For whom: the first whose word has not come. */
DEV_APART uint32_t flat_late(const struct flat_waiter *waiter)
{
	for (uint32_t k = 0; k < waiter->count; k++) {
		const struct flat_operand *line = &waiter->lines[k];
		const uint64_t *at = (const uint64_t *)(const void *)line->at +
				     (line->wide ? waiter->wide : waiter->narrow);

		if (line->line && (uint32_t)(flat_peek(at) >> 32) != waiter->epoch)
			return line->from;
	}
	return waiter->peer;
}

/* After so many looks in vain: not yet, or for good. *deadline is 0 at first. */
DEV_APART bool flat_give_up(struct flat_waiter waiter, uint32_t looks, uint64_t *deadline)
{
	const struct hk__flat_call *call = waiter.call;
	struct hk__flat_report *report = call->report;
	bool aborted;

	flat_pause();
	if (looks % 256)
		return false;
	if (!*deadline)
		*deadline = flat_now() + call->timeout_ns;
	aborted = looks % 4096 == 0 && flat_aborted(report);
	if (!aborted && flat_now() < *deadline)
		return false;
	waiter.lot->broken = 1;
	if (flat_first(&((struct hk__flat_lot *)(void *)call->segments[call->rank])->reported) &&
	    !flat_failed(report)) { /* by another kernel, before */
		report->aborted = aborted;
		report->block = waiter.number;
		report->lane = waiter.lane;
		report->step = waiter.step;
		report->peer = flat_late(&waiter);
		report->epoch = waiter.epoch;
		flat_publish(&report->failed);
	}
	return true;
}

/* Until a rank has done so many moves of this call; false: it is not to be. */
DEV bool flat_wait(const struct flat_self *self, uint32_t rank, uint64_t moves)
{
	const uint64_t *flag = &self->lot->mail[rank].flag;
	uint64_t target = self->epoch << 32 | moves, deadline = 0;
	bool far = self->call->mode & HK__FLAT_FAR;
	uint32_t looks = 0;

	while ((int64_t)(flat_acquire(flag, far) - target) < 0) {
		if (++looks % FLAT_LOOKS == 0 && flat_give_up(flat_waiter(self, rank), looks, &deadline))
			return false;
	}
	return true;
}

/* A wait of its program. Who begins also says where its buffers are. */
DEV bool flat_wait_one(const struct flat_self *self, const struct hk__flat_wait *wait)
{
	uint64_t before = (uint64_t)self->turn * self->program->stride;
	const struct hk__flat_mail *mail = &self->lot->mail[wait->rank];

	if (!flat_wait(self, wait->rank, before + (uint64_t)(int64_t)wait->moves))
		return false;
	if (self->turn == 0 && wait->moves == 0) {
		self->block->in[wait->rank] = mail->in;
		self->block->out[wait->rank] = mail->out;
		self->block->factor[wait->rank] = mail->factor;
	}
	return true;
}

/* Whether one of them was not to be. */
DEV bool flat_wait_all(const struct flat_self *self, uint32_t first, uint32_t count)
{
	const struct hk__flat_wait *waits =
		(const struct hk__flat_wait *)(const void *)flat_part(self, self->program->waits);
	bool failed = false;

	for (uint32_t i = self->id; i < count && !failed; i += self->nthreads)
		failed = !flat_wait_one(self, &waits[first + i]);
	return failed;
}

DEV bool flat_wait_move(const struct flat_self *self, const struct hk__flat_move *move)
{
	if (self->turn)
		return flat_wait_all(self, move->waits + move->nwait, move->nwait_later);
	return flat_wait_all(self, move->waits, move->nwait);
}

DEV void flat_tell(const struct flat_self *self, uint32_t rank, uint64_t moves)
{
	struct hk__flat_mail *mail = &flat_lot(self, rank)->mail[self->call->rank];

	flat_release(&mail->flag, self->epoch << 32 | moves,
		     self->call->mode & HK__FLAT_FAR);
}

DEV void flat_tell_all(const struct flat_self *self, const struct hk__flat_move *move, uint32_t done)
{
	const uint32_t *ranks =
		(const uint32_t *)(const void *)flat_part(self, self->program->signals);
	uint64_t moves = (uint64_t)self->turn * self->program->stride + done;

	for (uint32_t i = self->id; i < move->nsignal; i += self->nthreads)
		flat_tell(self, ranks[move->signals + i], moves);
}

/* ---- the ends of a call ---- */

/*
 * Flags and words hold the low half of an epoch, which comes round after 2^32 calls.
 * Three things keep what was written long ago from being taken for something new:
 *
 *	0	is no call's low half: it stands for words that were never written
 *	flags	are compared by difference; each rank renews those it has at others
 *		every FLAT_RENEW calls, so none is half a round behind
 *	words	of lines are compared for equality; the last two calls of a round
 *		zero them, each those of the other turn
 */
#define FLAT_RENEW (UINT32_C(1) << 30)

DEV uint64_t flat_next(uint64_t epoch)
{
	epoch++;
	return (uint32_t)epoch ? epoch : epoch + 1;
}

/*
 * Before others are told that this call has begun here: until then nobody writes lines
 * of the next turn, and what the call before wrote to them was read by this rank.
 */
DEV void flat_clear(const struct flat_self *self)
{
	uint64_t bytes = self->call->lines_bytes;
	uint64_t *words = (uint64_t *)(void *)((char *)(self->lot + 1) + (~self->epoch & 1) * bytes);

	for (uint64_t i = self->id; i < bytes / 8; i += self->nthreads)
		flat_poke(&words[i], 0);
	flat_fence();
}

/* The rank has ended the call before: as far as any flag of it can be. */
DEV void flat_renew(const struct flat_self *self)
{
	for (uint32_t r = self->id; r < self->call->n; r += self->nthreads) {
		if (r != self->call->rank)
			flat_poke(&flat_lot(self, r)->mail[self->call->rank].flag,
				  (self->epoch - 1) << 32 | UINT32_MAX);
	}
}

/* At the start of a call, before anything else is written; rarely anything. */
DEV void flat_keep(const struct flat_self *self)
{
	uint32_t low = (uint32_t)self->epoch;
	bool clears = low >= UINT32_MAX - 1, renews = low % FLAT_RENEW == 1;

	if (!clears && !renews)
		return;
	if (clears)
		flat_clear(self);
	if (renews)
		flat_renew(self);
	(void)flat_sync_or(false);
}

/*
 * Which call this is (epoch is set); to all, that the one before is over here: kernels
 * of a stream follow each other. Lines are used by turns, so who writes some waits
 * until the others have ended the call before the last.
 */
DEV void flat_announce(const struct flat_self *self)
{
	for (uint32_t r = self->id; r < self->call->n; r += self->nthreads) {
		if (r != self->call->rank)
			flat_poke(&flat_lot(self, r)->done[self->call->rank], self->epoch - 1);
	}
}

DEV bool flat_wait_lines(const struct flat_self *self)
{
	uint64_t deadline = 0, done = self->seen;
	uint32_t looks = 0;

	for (uint32_t r = self->id; r < self->call->n; r += self->nthreads) {
		while (r != self->call->rank && done + 2 < self->epoch) {
			done = flat_peek(&self->lot->done[r]);
			if (++looks % FLAT_LOOKS == 0 &&
			    flat_give_up(flat_waiter(self, r), looks, &deadline))
				return true;
		}
		done = 0;
	}
	return self->broken;
}

/* What is read at first, all at once: nothing here waits for anything else. */
DEV void flat_look(struct flat_self *self)
{
	self->epoch = flat_next(self->lot->epoch);
	self->broken = self->lot->broken;
	self->seen = self->id < self->call->n ? flat_peek(&self->lot->done[self->id]) : 0;
}

/* Where the own buffers are, and that this rank has begun. */
DEV bool flat_begin(const struct flat_self *self)
{
	const struct hk__flat_call *call = self->call;
	const uint32_t *ranks =
		(const uint32_t *)(const void *)flat_part(self, self->program->mail);

	flat_keep(self);
	flat_announce(self);
	if (self->id == 0) {
		self->block->in[call->rank] = call->in;
		self->block->out[call->rank] = call->out;
		self->block->factor[call->rank] = call->factor;
	}
	for (uint32_t i = self->id; i < self->program->nmail; i += self->nthreads) {
		struct hk__flat_mail *mail = &flat_lot(self, ranks[i])->mail[call->rank];

		mail->in = call->in;
		mail->out = call->out;
		mail->factor = call->factor;
		flat_release(&mail->flag, self->epoch << 32, call->mode & HK__FLAT_FAR);
	}
	return self->broken;
}

/* Nobody touches this rank's memory any more. */
DEV void flat_end(const struct flat_self *self)
{
	const struct hk__flat_wait *waits =
		(const struct hk__flat_wait *)(const void *)flat_part(self, self->program->last);
	bool failed = false;

	for (uint32_t i = self->id; i < self->program->nlast && !failed; i += self->nthreads)
		failed = !flat_wait(self, waits[i].rank,
				    (uint64_t)(self->turn - 1) * self->program->stride +
					    (uint64_t)(int64_t)waits[i].moves);
	if (!flat_sync_or(failed) && self->id == 0)
		self->lot->epoch = self->epoch;
}

/* ---- lines ---- */

/* A word of a line, and its flag. */
DEV void flat_line_put(const struct flat_self *self, char *at, uint64_t i, uint32_t word)
{
	flat_poke((uint64_t *)(void *)at + i, self->epoch << 32 | word);
}

/* Where all operands of a program by lines are: all but lines are the rank's own. */
DEV void flat_lines_find(const struct flat_self *self, uint32_t size)
{
	const struct hk__flat_ref *refs =
		(const struct hk__flat_ref *)(const void *)flat_part(self, self->program->refs);
	const struct hk__flat_call *call = self->call;
	uint64_t from = self->number * call->piece;

	for (uint32_t i = self->id; i < self->program->nrefs; i += self->nthreads) {
		struct flat_operand *operand = &self->operands[i];
		char *lines = (char *)(flat_lot(self, refs[i].rank) + 1);

		operand->wide = refs[i].wide;
		operand->line = refs[i].kind == HK__FLAT_LINE;
		operand->scaled = refs[i].kind == HK__FLAT_IN && (call->mode & HK__FLAT_PREMUL);
		operand->factor = call->factor;
		operand->from = refs[i].from;
		if (operand->line)
			operand->at = lines + (self->epoch & 1) * call->lines_bytes +
				      refs[i].slot * call->line_bytes;
		else if (refs[i].kind == HK__FLAT_BUF)
			operand->at = lines + 2 * call->lines_bytes + refs[i].slot * call->buf_bytes;
		else
			operand->at = (char *)(uintptr_t)((refs[i].kind == HK__FLAT_IN ? call->in
										      : call->out) +
							  (flat_first_of(call, refs[i].slot) + from) *
								  size);
	}
}

/* ---- bytes, whatever they are ---- */

/* Up to 4 bytes of memory; `some` of them if that is not all. */
DEV_APART uint32_t flat_get(const char *at, uint32_t some)
{
	uint32_t word = 0;

	if (some == 4 && (uintptr_t)at % 4 == 0)
		return *(const uint32_t *)(const void *)at;
	for (uint32_t i = 0; i < some; i++)
		word |= (uint32_t)(uint8_t)at[i] << 8 * i;
	return word;
}

DEV_APART void flat_put(char *at, uint32_t word, uint32_t some)
{
	if (some == 4 && (uintptr_t)at % 4 == 0) {
		*(uint32_t *)(void *)at = word;
		return;
	}
	for (uint32_t i = 0; i < some; i++)
		at[i] = (char)(word >> 8 * i);
}

/* What a move copies, of threads that are given by value. */
struct flat_copying {
	const struct flat_operand *operands;
	uint32_t ndst, id, nthreads;
};

/* From one place to several, by words of 4 bytes; bytes from `from` on. */
DEV_APART void flat_copy_words(struct flat_copying copying, uint64_t from, uint64_t to)
{
	const struct flat_operand *dst = copying.operands + 1;
	const char *src = copying.operands->at;

	for (uint64_t i = from / 4 + copying.id; i * 4 < to; i += copying.nthreads) {
		uint64_t begin = i * 4 > from ? i * 4 : from, end = i * 4 + 4 < to ? i * 4 + 4 : to;
		uint32_t some = (uint32_t)(end - begin), word = flat_get(src + begin, some);

		for (uint32_t d = 0; d < copying.ndst; d++) {
			if (dst[d].at != src)
				flat_put(dst[d].at + begin, word, some);
		}
	}
}

/* The same by vectors of 16 bytes, from a boundary on, bytes `head` behind the first. */
DEV_APART void flat_copy_vectors(struct flat_copying copying, uint64_t head, uint64_t count)
{
	const struct flat_operand *dst = copying.operands + 1;
	const char *src = copying.operands->at;
	const struct flat_vec *from = (const struct flat_vec *)(const void *)(src + head);
	uint64_t i = copying.id, stride = copying.nthreads;
	struct flat_vec held[FLAT_BATCH];

	for (; i < count; i += FLAT_BATCH * stride) {
		UNROLL
		for (uint32_t j = 0; j < FLAT_BATCH; j++) {
			if (i + j * stride < count)
				held[j] = from[i + j * stride];
		}
		for (uint32_t d = 0; d < copying.ndst; d++) {
			struct flat_vec *to = (struct flat_vec *)(void *)(dst[d].at + head);

			if (dst[d].at == src)
				continue;
			UNROLL
			for (uint32_t j = 0; j < FLAT_BATCH; j++) {
				if (i + j * stride < count)
					to[i + j * stride] = held[j];
			}
		}
	}
}

/* Whether all narrow operands lie alike; how many bytes to a boundary of 16. */
DEV bool flat_alike(const struct flat_self *self, const struct hk__flat_move *move, uint64_t *head)
{
	const struct flat_operand *operands = self->operands;
	uint32_t count = move->nsrc + move->ndst, found = 16;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = (uint32_t)((uintptr_t)operands[i].at % 16);

		if (!operands[i].wide && found != 16 && at != found)
			return false;
		if (!operands[i].wide)
			found = at;
	}
	*head = (16 - found % 16) % 16;
	return true;
}

/* A move that only copies. */
DEV void flat_copy(const struct flat_self *self, const struct hk__flat_move *move, uint64_t bytes)
{
	struct flat_copying copying = { self->operands, move->ndst, self->id, self->nthreads };
	uint64_t head, whole = 0;

	if (self->operands->wide || !flat_alike(self, move, &head) || bytes < head + 16)
		head = bytes;
	else
		whole = (bytes - head) / 16;
	if (whole)
		flat_copy_vectors(copying, head, whole);
	flat_copy_words(copying, 0, head);
	flat_copy_words(copying, head + whole * 16, bytes);
}

/* Bits stay as they are: one source, nothing to be done with it. */
DEV bool flat_copies(const struct flat_self *self, const struct hk__flat_move *move)
{
	return move->plain && !self->operands->scaled &&
	       !(move->finishes && (self->call->mode & HK__FLAT_AVG));
}

#endif
