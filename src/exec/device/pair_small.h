/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair_small.h - small messages (pair.h): all of a launch at once, every part of every
 * message by a warp of its own, with flags in the data and without a barrier.
 *
 * The messages of a pair that are small are numbered too; number j goes through place
 * j % PLACES of the receiver's segment: a head that says what it is, then its bytes, 4
 * in each word of 8, behind a flag. Who sends looks whether the receiver has freed the
 * place, and writes; who receives looks until all words of a part have come, copies
 * them out, and the last part frees the place. What is not ready is looked at again
 * after the others of the same warp, so no message keeps another from going on.
 *
 * A flag is the number's low 31 bits, and one that is always set. In the last messages
 * before these come round the receiver zeroes the place before it frees it: what was
 * written long ago never matches.
 */
#ifndef HK_EXEC_DEVICE_PAIR_SMALL_H
#define HK_EXEC_DEVICE_PAIR_SMALL_H

#include "exec/device/pair_common.h"

#define SMALL_UNITS (HK__PAIR_PART / 8u / WARP) /* of 8 bytes, of a part, of a thread */
#define SMALL_DONE 512u		/* words: a bit for each part of a block */
#define SMALL_WORDS 4u		/* of a head: bytes, tag, kind, number of the message */
#define SMALL_LOOKS 64u		/* in vain, until a warp looks around */

/* Of a block. */
struct small_block {
	uint64_t messages[2][HK__FLAT_RANKS], small[2][HK__FLAT_RANKS]; /* before the launch */
	uint32_t done[SMALL_DONE];
};

/* One thread's view. */
struct small_self {
	const struct hk__pair_call *call;
	const struct hk__pair_op *ops;
	const struct hk__pair_index *index;
	struct small_block *block;
	struct hk__pair_head *head;
	uint32_t *done;			/* of its warp */
	uint32_t warp, nwarps;		/* of all blocks */
	uint32_t lane;
	uint32_t vain;
	uint64_t deadline;
};

enum small_look {
	SMALL_WAITS,
	SMALL_DONE_NOW,
	SMALL_FAILED
};

/* ---- the machine ---- */

struct small_two {
	uint64_t word[2];
};

#ifdef __CUDACC__
DEV struct small_two small_load(const uint64_t *at)
{
	struct small_two two;

	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
		     : "=l"(two.word[0]), "=l"(two.word[1])
		     : "l"(at)
		     : "memory");
	return two;
}

DEV void small_store(uint64_t *at, uint64_t first, uint64_t second)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(first),
		     "l"(second)
		     : "memory");
}

DEV bool small_all(bool each)
{
	return __all_sync(0xffffffffu, each);
}

DEV bool small_any(bool each)
{
	return __any_sync(0xffffffffu, each);
}
#else
DEV struct small_two small_load(const uint64_t *at)
{
	struct small_two two = { { flat_peek(at), flat_peek(at + 1) } };

	return two;
}

DEV void small_store(uint64_t *at, uint64_t first, uint64_t second)
{
	flat_poke(at, first);
	flat_poke(at + 1, second);
}

DEV bool small_all(bool each)
{
	return each;
}

DEV bool small_any(bool each)
{
	return each;
}
#endif

/* ---- places ---- */

/* Of messages from one rank to another, as the other has them. */
DEV uint64_t *small_place(const struct hk__pair_call *call, uint32_t from, uint32_t to,
			  uint64_t number)
{
	uint64_t bytes = HK__PAIR_HEAD * 8 + 2 * (uint64_t)call->small_bytes;
	uint64_t place = from * HK__PAIR_PLACES + number % HK__PAIR_PLACES;

	return (uint64_t *)(void *)(call->segments[to] + call->places + place * bytes);
}

/* Numbers of an operation: among all messages, and among small ones. */
DEV uint64_t small_message(const struct small_self *self, uint32_t op)
{
	return self->block->messages[!self->index[op].sends][self->ops[op].peer] +
	       self->index[op].before;
}

DEV uint64_t small_number(const struct small_self *self, uint32_t op)
{
	return self->block->small[!self->index[op].sends][self->ops[op].peer] +
	       self->index[op].small;
}

DEV uint32_t small_parts(const struct hk__pair_op *op)
{
	return op->bytes <= HK__PAIR_PART ? 1
					  : ((uint32_t)op->bytes + HK__PAIR_PART - 1) / HK__PAIR_PART;
}

/* Word w of its head. */
DEV uint32_t small_head(const struct hk__pair_op *op, uint64_t message, uint32_t w)
{
	return w == 0	? (uint32_t)op->bytes
	       : w == 1 ? op->tag
	       : w == 2 ? op->kind
			: (uint32_t)message;
}

/* ---- bytes ---- */

/* Up to 8 of memory, wherever they lie. */
DEV uint64_t small_get(const char *at, uint32_t some)
{
	if (some == 8 && (uintptr_t)at % 8 == 0)
		return *(const uint64_t *)(const void *)at;
	uint64_t low = flat_get(at, some < 4 ? some : 4);

	return some > 4 ? low | (uint64_t)flat_get(at + 4, some - 4) << 32 : low;
}

DEV void small_put(char *at, uint64_t value, uint32_t some)
{
	if (some == 8 && (uintptr_t)at % 8 == 0) {
		*(uint64_t *)(void *)at = value;
		return;
	}
	flat_put(at, (uint32_t)value, some < 4 ? some : 4);
	if (some > 4)
		flat_put(at + 4, (uint32_t)(value >> 32), some - 4);
}

/* A thread's share of a part: bytes from `from` on, up to `to`. */
struct small_share {
	char *at;
	uint64_t *words;	/* of the message, in its place */
	uint64_t flag;		/* as the upper half of a word */
	uint32_t from, to, lane;
};

DEV uint32_t share_offset(const struct small_share *share, uint32_t i)
{
	return share->from + (i * WARP + share->lane) * 8;
}

DEV uint32_t share_some(const struct small_share *share, uint32_t offset)
{
	uint32_t left = offset < share->to ? share->to - offset : 0;

	return left < 8 ? left : 8;
}

DEV void share_send(const struct small_share *share)
{
	uint64_t held[SMALL_UNITS];

	UNROLL
	for (uint32_t i = 0; i < SMALL_UNITS; i++) {
		uint32_t offset = share_offset(share, i), some = share_some(share, offset);

		held[i] = some ? small_get(share->at + offset, some) : 0;
	}
	UNROLL
	for (uint32_t i = 0; i < SMALL_UNITS; i++) {
		uint32_t offset = share_offset(share, i);

		if (share_some(share, offset))
			small_store(share->words + offset / 4,
				    share->flag | (uint32_t)held[i],
				    share->flag | held[i] >> 32);
	}
}

/* Whether all of it has come: asked for at once, and looked at then. */
DEV bool share_come(const struct small_share *share, uint64_t *held)
{
	struct small_two two[SMALL_UNITS];
	bool come = true;

	UNROLL
	for (uint32_t i = 0; i < SMALL_UNITS; i++) {
		uint32_t offset = share_offset(share, i);

		if (share_some(share, offset))
			two[i] = small_load(share->words + offset / 4);
		else
			two[i].word[0] = two[i].word[1] = share->flag;
	}
	UNROLL
	for (uint32_t i = 0; i < SMALL_UNITS; i++) {
		come &= two[i].word[0] >> 32 == share->flag >> 32 &&
			two[i].word[1] >> 32 == share->flag >> 32;
		held[i] = (uint32_t)two[i].word[0] | two[i].word[1] << 32;
	}
	return come;
}

DEV void share_take(const struct small_share *share, const uint64_t *held)
{
	UNROLL
	for (uint32_t i = 0; i < SMALL_UNITS; i++) {
		uint32_t offset = share_offset(share, i), some = share_some(share, offset);

		if (some)
			small_put(share->at + offset, held[i], some);
	}
}

DEV struct small_share small_share(const struct small_self *self, uint32_t op, uint32_t part,
				   uint64_t *place)
{
	uint32_t from = part * HK__PAIR_PART, to = (uint32_t)self->ops[op].bytes;
	struct small_share share = { (char *)(uintptr_t)self->ops[op].at,
				     place + HK__PAIR_HEAD,
				     (uint64_t)pair_flag(small_number(self, op)) << 32,
				     from,
				     to < from + HK__PAIR_PART ? to : from + HK__PAIR_PART,
				     self->lane };

	return share;
}

/* ---- sending ---- */

DEV enum small_look small_send(const struct small_self *self, uint32_t i, uint32_t part)
{
	const struct hk__pair_call *call = self->call;
	const struct hk__pair_op *op = &self->ops[i];
	uint64_t number = small_number(self, i), message = small_message(self, i);
	const uint64_t *freed = &pair_of(call, call->rank, op->peer)
					 ->freed[number % HK__PAIR_PLACES];
	uint64_t *place = small_place(call, call->rank, op->peer, number);

	if (number >= HK__PAIR_PLACES &&
	    !small_all(flat_peek(freed) + HK__PAIR_PLACES == number + 1))
		return SMALL_WAITS;
	struct small_share share = small_share(self, i, part, place);
	for (uint32_t w = self->lane; part == 0 && w < SMALL_WORDS; w += WARP)
		flat_poke(&place[w], share.flag | small_head(op, message, w));
	share_send(&share);
	return SMALL_DONE_NOW;
}

/* ---- receiving ---- */

/* What was sent is not what is wanted: both ends hear of it. */
DEV_APART void small_differs(const struct small_self *self, uint32_t i, uint64_t bytes, uint64_t what)
{
	const struct hk__pair_op *op = &self->ops[i];
	struct pair_other other = { op->peer, op, bytes, what };
	uint64_t message = small_message(self, i);

	pair_fail(self->call, 0, PAIR_DIFFERS, false, other);
	pair_write_mail(self->call, op, message);
}

/* The same of a message that goes another way, being long: whether it is this one. */
DEV_APART bool small_is_long(const struct small_self *self, uint32_t i)
{
	uint64_t message = small_message(self, i), flag = (uint64_t)pair_flag(message) << 32;
	const uint64_t *words = pair_of(self->call, self->call->rank, self->ops[i].peer)
					->heads[message % HK__PAIR_CHANNELS];
	uint32_t held[6];

	for (uint32_t w = 0; w < 6; w++) {
		uint64_t word = flat_peek(&words[w]);

		if (word >> 32 != flag >> 32)
			return false;
		held[w] = (uint32_t)word;
	}
	if (((uint64_t)held[5] << 32 | held[4]) != message)
		return false;
	small_differs(self, i, (uint64_t)held[1] << 32 | held[0], (uint64_t)held[3] << 32 | held[2]);
	return true;
}

/* Before flags come round: nothing of this round is left in the place. */
DEV_APART void small_clear(const struct hk__pair_call *call, uint64_t *place, uint32_t lane)
{
	for (uint32_t i = lane; i < HK__PAIR_HEAD + call->small_bytes / 4; i += WARP)
		flat_poke(&place[i], 0);
	flat_fence();
}

/* A part is out of the place; the last one frees it. */
DEV void small_free(const struct small_self *self, uint32_t i, uint64_t number, uint64_t *place)
{
	const struct hk__pair_call *call = self->call;
	const struct hk__pair_op *op = &self->ops[i];
	uint32_t parts = small_parts(op), turn = (uint32_t)(number % HK__PAIR_PLACES);
	uint32_t *came = &pair_of(call, call->rank, op->peer)->came[turn];
	bool last = parts == 1;

	(void)small_all(true); /* all threads have read theirs */
	if (parts > 1 && self->lane == 0)
		last = pair_cycle(came, parts - 1) + 1 == parts;
	if (!small_any(last && self->lane == 0))
		return;
	if (pair_flag(number) > UINT32_MAX - HK__PAIR_PLACES) {
		small_clear(call, place, self->lane);
		(void)small_all(true);
	}
	if (self->lane == 0)
		flat_poke(&pair_of(call, op->peer, call->rank)->freed[turn], number + 1);
}

/* The head, by as many threads as it has words. */
DEV enum small_look small_look_head(const struct small_self *self, uint32_t i, const uint64_t *place,
				    uint64_t flag)
{
	const struct hk__pair_op *op = &self->ops[i];
	uint64_t message = small_message(self, i);
	bool come = true, same = true;

	for (uint32_t w = self->lane; w < SMALL_WORDS; w += WARP) {
		uint64_t word = flat_peek(&place[w]);

		come &= word >> 32 == flag >> 32;
		same &= (uint32_t)word == small_head(op, message, w);
	}
	if (!small_all(come))
		return SMALL_WAITS;
	if (small_all(same))
		return SMALL_DONE_NOW;
	if (self->lane == 0)
		small_differs(self, i, (uint32_t)flat_peek(&place[0]),
			      (uint64_t)(uint32_t)flat_peek(&place[2]) << 32 |
				      (uint32_t)flat_peek(&place[1]));
	return SMALL_FAILED;
}

DEV enum small_look small_recv(const struct small_self *self, uint32_t i, uint32_t part)
{
	const struct hk__pair_call *call = self->call;
	uint64_t number = small_number(self, i), held[SMALL_UNITS];
	uint64_t *place = small_place(call, self->ops[i].peer, call->rank, number);
	struct small_share share = small_share(self, i, part, place);
	bool come = share_come(&share, held);
	enum small_look head = part ? SMALL_DONE_NOW
				    : small_look_head(self, i, place, share.flag);

	if (head != SMALL_DONE_NOW)
		return head;
	if (!small_all(come))
		return SMALL_WAITS;
	share_take(&share, held);
	small_free(self, i, number, place);
	return SMALL_DONE_NOW;
}

/* ---- all of a warp's ---- */

/* Parts are numbered: the first of all operations, then the second, ... */
DEV bool small_has(const struct small_self *self, uint32_t x)
{
	const struct hk__pair_op *op = &self->ops[x % self->call->nops];

	return pair_is_small(self->call, op) && x / self->call->nops < small_parts(op);
}

/* By one thread: whether it is no use any more. */
DEV_APART bool small_give_up(struct small_self *self, uint32_t x)
{
	const struct hk__pair_call *call = self->call;
	uint32_t i = x % call->nops;
	struct pair_other other = { self->ops[i].peer, &self->ops[i], 0, 0 };
	bool aborted;

	if (pair_count(&self->head->broken))
		return true;
	if (!self->index[i].sends && small_is_long(self, i))
		return true;
	if (!self->deadline)
		self->deadline = flat_now() + call->timeout_ns;
	aborted = self->vain % (16 * SMALL_LOOKS) == 0 && flat_aborted(call->report);
	if (!aborted && flat_now() < self->deadline)
		return false;
	pair_fail(call, self->index[i].sends, PAIR_LATE, aborted, other);
	return true;
}

/* What is ready of a warp's parts; true: some are left. */
DEV bool small_pass(struct small_self *self, bool *failed_out)
{
	uint32_t count = self->call->nops * self->call->parts, bit = 0, waits = count;
	bool moved = false, failed = false;

	for (uint32_t x = self->warp; x < count && !failed; x += self->nwarps, bit++) {
		uint32_t *word = &self->done[bit / 32], i = x % self->call->nops;

		if (*word >> bit % 32 & 1)
			continue;
		enum small_look look = !small_has(self, x) ? SMALL_DONE_NOW
				       : self->index[i].sends
					       ? small_send(self, i, x / self->call->nops)
					       : small_recv(self, i, x / self->call->nops);
		failed = look == SMALL_FAILED;
		if (look == SMALL_WAITS) {
			waits = waits == count ? x : waits;
			continue;
		}
		moved = true;
		(void)small_all(true); /* all have looked at it */
		if (self->lane == 0)
			*word |= UINT32_C(1) << bit % 32;
		(void)small_all(true);
	}
	self->vain = moved ? 0 : self->vain + 1;
	if (moved)
		self->deadline = 0;
	else if (waits < count && !failed) {
		flat_pause();
		if (self->vain % SMALL_LOOKS == 0)
			failed = small_any(self->lane == 0 && small_give_up(self, waits));
	}
	*failed_out = failed;
	return waits < count && !failed;
}

/* ---- a block ---- */

/* False: a launch before has failed. What is read at first is asked for by several warps. */
DEV bool small_open(struct small_self *self, struct pair_lists lists, struct pair_thread thread)
{
	const struct hk__pair_call *call = lists.call;
	uint32_t warps = thread.nthreads / WARP, warp = thread.id / WARP;

	self->call = call;
	self->ops = lists.ops;
	self->index = lists.index;
	self->block = thread.small;
	self->head = (struct hk__pair_head *)(void *)call->segments[call->rank];
	self->lane = thread.id % WARP;
	self->warp = thread.number * warps + warp;
	self->nwarps = call->nblocks * warps;
	self->done = thread.small->done + warp * (SMALL_DONE / warps);
	self->vain = 0;
	self->deadline = 0;
	uint32_t broken = 0;

	if (thread.id + 1 == thread.nthreads)
		broken = pair_count(&self->head->broken);
	for (uint32_t i = thread.id; i < SMALL_DONE; i += thread.nthreads)
		thread.small->done[i] = 0;
	for (uint32_t r = thread.id; r < call->n; r += thread.nthreads) {
		const struct hk__pair_peer *peer = pair_of(call, call->rank, r);

		for (uint32_t way = 0; way < 2; way++) {
			thread.small->messages[way][r] = peer->messages[way];
			thread.small->small[way][r] = peer->small[way];
		}
	}
	return !flat_sync_or(broken != 0);
}

/* The last block of all says how many messages there were. */
DEV void small_close(const struct small_self *self, struct pair_thread thread)
{
	const struct hk__pair_call *call = self->call;
	bool last = call->nblocks == 1;

	(void)flat_sync_or(false);
	if (call->nblocks > 1 && thread.id == 0)
		last = pair_add(&self->head->out, false) + 1 == call->nblocks;
	if (!flat_sync_or(last))
		return;
	for (uint32_t i = thread.id; i < call->nops; i += thread.nthreads) {
		struct hk__pair_peer *peer = pair_of(call, call->rank, self->ops[i].peer);
		uint32_t way = !self->index[i].sends;

		if (self->ops[i].next != HK__PAIR_END)
			continue;
		peer->messages[way] = small_message(self, i) + 1;
		peer->small[way] = small_number(self, i) + pair_is_small(call, &self->ops[i]);
	}
	if (thread.id == 0)
		pair_store(&self->head->out, 0);
}

/* A block of a launch that has small messages alone. */
DEV void small_run(struct pair_lists lists, struct pair_thread thread)
{
	struct small_self self;
	bool failed = false;

	if (!small_open(&self, lists, thread))
		return;
	while (small_pass(&self, &failed))
		;
	if (!flat_sync_or(failed))
		small_close(&self, thread);
}

#endif
