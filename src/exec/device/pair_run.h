/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair_run.h - performs sends and receives (pair.h), on the device and on the
 * host, as interp.h does plans: long ones, and small ones (pair_small.h) beside them.
 *
 * A block looks at what it has to do with every peer, one thread each; then all
 * threads together move what was ready; and so on until nothing is left, by turns of
 * what it receives and what it sends. Nothing is waited for by itself, so no operation
 * keeps another from going on.
 */
#ifndef HK_EXEC_DEVICE_PAIR_RUN_H
#define HK_EXEC_DEVICE_PAIR_RUN_H

#include "exec/device/pair_common.h"
#include "exec/device/pair_small.h"

#define PAIR_LOOKS 32u		/* in vain, until a block takes its time */
#define PAIR_SHIFTED 2		/* vectors in flight of a thread */

enum pair_look {
	PAIR_OVER,		/* nothing is left */
	PAIR_WAITS,
	PAIR_READY,		/* for all threads */
	PAIR_FAILED
};

/* How far a block is with one peer, on one channel or with its parts. */
struct pair_walk {
	uint64_t message;
	uint64_t slots;		/* of the channel so far */
	uint32_t piece;		/* of the operation */
	uint16_t op, mail_op;
	uint16_t mails;		/* out, of messages that have not come */
	uint8_t moved;		/* since all were looked at */
	uint8_t said;		/* sending: the receiver knows what the message is */
};

/* Parts of a block, and of each channel that is its own. */
#define PAIR_WALKS ((1 + HK__PAIR_CHANNELS) * HK__FLAT_RANKS)

/* What a block sends, and what it receives. */
struct pair_block {
	struct pair_walk walks[2][PAIR_WALKS];
	uint8_t looks[2][PAIR_WALKS];
};

/* One thread's view of one of the two. */
struct pair_self {
	const struct hk__pair_call *call;
	const struct hk__pair_op *ops;
	const struct hk__pair_index *index;
	const struct small_block *before; /* the launch: how many messages */
	struct pair_walk *walks;
	uint8_t *looks;
	struct hk__pair_head *head;
	uint32_t id, nthreads;
	uint32_t sends;		/* else it receives */
	uint32_t number, nblocks; /* among those that do the same */
	uint32_t rows;		/* of walks: parts, then own channels */
	uint64_t deadline;
	uint32_t vain;		/* looks */
};

/* ---- places ---- */

DEV struct hk__pair_peer *pair_peer(const struct pair_self *self, uint32_t rank, uint32_t peer)
{
	return pair_of(self->call, rank, peer);
}

/* The buffer of a receiver's slot. */
DEV char *pair_buf(const struct pair_self *self, uint32_t rank, uint32_t peer, uint32_t channel,
		    uint64_t slot)
{
	char *bufs = (char *)pair_peer(self, rank, self->call->n);
	uint64_t number = ((uint64_t)peer * HK__PAIR_CHANNELS + channel) * HK__PAIR_SLOTS +
			  slot % HK__PAIR_SLOTS;

	return bufs + number * (self->call->buf_bytes + HK__PAIR_SLACK);
}

DEV bool pair_far(const struct pair_self *self)
{
	return self->call->mode & HK__PAIR_FAR;
}

DEV bool pair_in_place(const struct pair_self *self, const struct hk__pair_op *op)
{
	return (self->call->mode & HK__PAIR_DIRECT) && !pair_is_small(self->call, op);
}

/* Slots that it takes; small ones take none. */
DEV uint64_t pair_pieces(const struct pair_self *self, const struct hk__pair_op *op)
{
	uint64_t each = self->call->buf_bytes;

	if (pair_is_small(self->call, op))
		return 0;
	return pair_in_place(self, op) ? 1 : (op->bytes + each - 1) / each;
}

DEV uint32_t pair_parts(const struct pair_self *self, const struct hk__pair_op *op)
{
	uint64_t parts = (op->bytes + self->call->part_bytes - 1) / self->call->part_bytes;

	return parts < self->nblocks ? (uint32_t)parts : self->nblocks;
}

/* Which part is this block's; the first is of the block of the message's channel. */
DEV uint32_t pair_part(const struct pair_self *self, uint64_t message)
{
	return (self->number + self->nblocks - pair_home(message) % self->nblocks) % self->nblocks;
}

/* Row 0 is of parts; then one for each channel that is this block's. */
DEV uint32_t pair_channel(const struct pair_self *self, uint32_t row)
{
	return self->number + (row - 1) * self->nblocks;
}

/* Peers in an order in which all ranks come by turns. */
DEV uint32_t pair_whom(const struct pair_self *self, uint32_t walk)
{
	uint32_t n = self->call->n, k = walk % n;

	return (self->call->rank + (self->sends ? k : n - k)) % n;
}

/* ---- giving up ---- */

/* Whom the block still waits for: the first of them. */
DEV_APART void pair_fail_late(const struct pair_self *self, bool aborted)
{
	for (uint32_t walk = 0; walk < self->rows * self->call->n; walk++) {
		const struct hk__pair_op *op = &self->ops[self->walks[walk].op];
		struct pair_other other = { pair_whom(self, walk), op, 0, 0 };

		if (self->looks[walk] != PAIR_WAITS)
			continue;
		pair_fail(self->call, self->sends, PAIR_LATE, aborted, other);
		return;
	}
}

/* After looks in vain, by one thread: whether it is no use any more. */
DEV bool pair_give_up(struct pair_self *self)
{
	const struct hk__pair_call *call = self->call;
	bool aborted;

	if (self->vain > PAIR_LOOKS || WARP == 1)
		pair_rest();
	if (self->vain % 64)
		return false;
	if (pair_count(&self->head->broken))
		return true;
	if (!self->deadline)
		self->deadline = flat_now() + call->timeout_ns;
	aborted = self->vain % 1024 == 0 && flat_aborted(call->report);
	if (!aborted && flat_now() < self->deadline)
		return false;
	pair_fail_late(self, aborted);
	return true;
}

/* ---- walking ---- */

/* To the first piece from here on that is of this channel. */
DEV void pair_seek(const struct pair_self *self, struct pair_walk *walk, uint32_t channel)
{
	while (walk->op != HK__PAIR_END) {
		const struct hk__pair_op *op = &self->ops[walk->op];
		uint64_t pieces = pair_pieces(self, op);
		uint32_t first = (channel + HK__PAIR_CHANNELS - pair_home(walk->message)) %
				 HK__PAIR_CHANNELS;

		if (walk->piece < first)
			walk->piece = first;
		if (walk->piece < pieces)
			return;
		walk->op = op->next;
		walk->message++;
		walk->piece = walk->said = 0;
	}
}

/* To the first operation from here on of which this block has a part. */
DEV void pair_seek_part(const struct pair_self *self, struct pair_walk *walk)
{
	while (walk->op != HK__PAIR_END) {
		const struct hk__pair_op *op = &self->ops[walk->op];

		if (walk->piece == 0 && pair_in_place(self, op) &&
		    pair_part(self, walk->message) < pair_parts(self, op))
			return;
		walk->op = op->next;
		walk->message++;
		walk->piece = 0;
	}
}

DEV void pair_open_walk(const struct pair_self *self, uint32_t index)
{
	uint32_t row = index / self->call->n, peer = pair_whom(self, index), way = !self->sends;
	const struct hk__pair_peer *at = pair_peer(self, self->call->rank, peer);
	struct pair_walk *walk = &self->walks[index];

	walk->message = self->before->messages[way][peer];
	walk->slots = row ? at->slots[way][pair_channel(self, row)] : 0;
	walk->op = walk->mail_op = self->call->first[way][peer];
	walk->piece = 0;
	walk->mails = walk->moved = walk->said = 0;
}

/* ---- sending ---- */

/* The receiver's mail for a message, if it has come. */
DEV const struct hk__pair_mail *pair_mail(const struct pair_self *self,
					  const struct pair_walk *walk, uint32_t peer)
{
	const struct hk__pair_mail *mail =
		&pair_peer(self, self->call->rank, peer)
			 ->mail[pair_home(walk->message)][pair_turn(walk->message)];

	return flat_acquire(&mail->flag, pair_far(self)) == walk->message + 1 ? mail : NULL;
}

DEV bool pair_same(const struct hk__pair_op *op, uint64_t bytes, uint64_t what)
{
	return op->bytes == bytes && pair_what(op) == what;
}

DEV enum pair_look pair_look_part(const struct pair_self *self, struct pair_walk *walk,
				  uint32_t peer)
{
	pair_seek_part(self, walk);
	if (walk->op == HK__PAIR_END)
		return PAIR_OVER;
	const struct hk__pair_mail *mail = pair_mail(self, walk, peer);
	const struct hk__pair_op *op = &self->ops[walk->op];
	/* One that differs is said by the block of its channel. */
	return mail && pair_same(op, mail->bytes, mail->what) ? PAIR_READY : PAIR_WAITS;
}

/* To the receiver: a slot is filled. */
DEV void pair_fill(const struct pair_self *self, struct pair_walk *walk, uint32_t peer,
		   uint32_t channel)
{
	const struct hk__pair_op *op = &self->ops[walk->op];
	struct hk__pair_slot *slot = &pair_peer(self, peer, self->call->rank)
					      ->slot[channel][walk->slots % HK__PAIR_SLOTS];

	slot->bytes = op->bytes;
	slot->what = pair_what(op);
	slot->skew = op->at % HK__PAIR_SLACK;
	flat_release(&slot->flag, ++walk->slots, pair_far(self));
	walk->piece += HK__PAIR_CHANNELS;
	walk->moved = 1;
}

/* In place, and all parts are there: the receiver is told by this thread alone. */
DEV enum pair_look pair_look_placed(const struct pair_self *self, struct pair_walk *walk,
				    uint32_t peer, uint32_t channel)
{
	const struct hk__pair_op *op = &self->ops[walk->op];
	const struct hk__pair_mail *mail = pair_mail(self, walk, peer);
	uint32_t *parts = &pair_peer(self, self->call->rank, peer)
				   ->parts[channel][pair_turn(walk->message)];

	if (!mail)
		return PAIR_WAITS;
	if (!pair_same(op, mail->bytes, mail->what)) {
		struct pair_other other = { peer, op, mail->bytes, mail->what };

		pair_fail(self->call, 1, PAIR_DIFFERS, false, other);
		pair_fill(self, walk, peer, channel);
		return PAIR_FAILED;
	}
	if (pair_count(parts) < pair_parts(self, op))
		return PAIR_WAITS;
	pair_store(parts, 0);
	pair_fill(self, walk, peer, channel);
	return PAIR_WAITS;
}

/* To the receiver, which may expect a small one: what comes by a channel. */
DEV void pair_say(const struct pair_self *self, struct pair_walk *walk, uint32_t peer,
		  uint32_t channel)
{
	const struct hk__pair_op *op = &self->ops[walk->op];
	uint64_t *words = pair_peer(self, peer, self->call->rank)->heads[channel];
	uint64_t flag = (uint64_t)pair_flag(walk->message) << 32;

	flat_poke(&words[0], flag | (uint32_t)op->bytes);
	flat_poke(&words[1], flag | op->bytes >> 32);
	flat_poke(&words[2], flag | op->tag);
	flat_poke(&words[3], flag | op->kind);
	flat_poke(&words[4], flag | (uint32_t)walk->message);
	flat_poke(&words[5], flag | walk->message >> 32);
	walk->said = 1;
}

DEV enum pair_look pair_look_send(const struct pair_self *self, struct pair_walk *walk,
				  uint32_t peer, uint32_t channel)
{
	const uint64_t *taken = &pair_peer(self, self->call->rank, peer)->taken[channel];

	pair_seek(self, walk, channel);
	if (walk->op == HK__PAIR_END)
		return PAIR_OVER;
	if (walk->piece == 0 && !walk->said)
		pair_say(self, walk, peer, channel);
	if (walk->slots >= HK__PAIR_SLOTS &&
	    flat_acquire(taken, pair_far(self)) + HK__PAIR_SLOTS <= walk->slots)
		return PAIR_WAITS;
	if (pair_in_place(self, &self->ops[walk->op]))
		return pair_look_placed(self, walk, peer, channel);
	return PAIR_READY;
}

/* ---- receiving ---- */

/* To senders: where messages of this channel are wanted, as far as there is room for mail. */
DEV void pair_tell(const struct pair_self *self, struct pair_walk *walk, uint32_t peer,
		   uint32_t channel)
{
	while (walk->mail_op != HK__PAIR_END && walk->mails < HK__PAIR_SLOTS) {
		const struct hk__pair_op *op = &self->ops[walk->mail_op];
		uint64_t message =
			self->before->messages[1][peer] + self->index[walk->mail_op].before;

		if (pair_home(message) == channel && !pair_is_small(self->call, op)) {
			pair_write_mail(self->call, op, message);
			walk->mails++;
		}
		walk->mail_op = op->next;
	}
}

/* To the sender: a slot is free again. */
DEV void pair_take(const struct pair_self *self, struct pair_walk *walk, uint32_t peer,
		   uint32_t channel)
{
	struct hk__pair_peer *to = pair_peer(self, peer, self->call->rank);

	walk->slots++;
	flat_release(&to->taken[channel], walk->slots, pair_far(self));
	if (walk->piece == 0 && walk->mails)
		walk->mails--;
	walk->piece += HK__PAIR_CHANNELS;
	walk->moved = 1;
}

DEV const struct hk__pair_slot *pair_slot(const struct pair_self *self,
					  const struct pair_walk *walk, uint32_t peer,
					  uint32_t channel)
{
	return &pair_peer(self, self->call->rank, peer)->slot[channel][walk->slots % HK__PAIR_SLOTS];
}

/* Whether the message that is waited for has come as a small one, from place on. */
DEV_APART bool pair_is_other(const struct hk__pair_call *call, const struct hk__pair_op *op,
			     const uint64_t *place, uint32_t flag, uint32_t message)
{
	uint64_t bytes = flat_peek(&place[0]), tag = flat_peek(&place[1]);
	uint64_t kind = flat_peek(&place[2]), number = flat_peek(&place[3]);
	bool come = bytes >> 32 == flag && tag >> 32 == flag && kind >> 32 == flag &&
		    number >> 32 == flag && (uint32_t)number == message;
	struct pair_other other = { op->peer, op, (uint32_t)bytes, kind << 32 | (uint32_t)tag };

	if (come)
		pair_fail(call, 0, PAIR_DIFFERS, false, other);
	return come;
}

/* Looked at now and then, while nothing comes. */
DEV bool pair_look_other(const struct pair_self *self, const struct pair_walk *walk, uint32_t peer)
{
	uint64_t number = self->before->small[1][peer] + self->index[walk->op].small;

	if (self->vain % PAIR_LOOKS != PAIR_LOOKS - 1 || walk->piece)
		return false;
	return pair_is_other(self->call, &self->ops[walk->op],
			     small_place(self->call, peer, self->call->rank, number),
			     pair_flag(number), (uint32_t)walk->message);
}

DEV enum pair_look pair_look_recv(const struct pair_self *self, struct pair_walk *walk,
				  uint32_t peer, uint32_t channel)
{
	const struct hk__pair_slot *slot = pair_slot(self, walk, peer, channel);

	if (self->call->mode & HK__PAIR_DIRECT)
		pair_tell(self, walk, peer, channel);
	pair_seek(self, walk, channel);
	if (walk->op == HK__PAIR_END)
		return PAIR_OVER;
	if (flat_acquire(&slot->flag, pair_far(self)) != walk->slots + 1)
		return pair_look_other(self, walk, peer) ? PAIR_FAILED : PAIR_WAITS;
	const struct hk__pair_op *op = &self->ops[walk->op];
	if (!pair_same(op, slot->bytes, slot->what)) {
		struct pair_other other = { peer, op, slot->bytes, slot->what };

		pair_fail(self->call, 0, PAIR_DIFFERS, false, other);
		return PAIR_FAILED;
	}
	if (!pair_in_place(self, op))
		return PAIR_READY;
	pair_take(self, walk, peer, channel);
	return PAIR_WAITS;
}

/* ---- moving, all threads ---- */

/*
 * To vectors, from anywhere: words that hold what is wanted are put together. None is
 * read that is not all within the message, and one before and one behind is.
 */
DEV_APART void pair_copy_shifted(struct flat_copying copying, uint64_t head, uint64_t count)
{
	const char *from = copying.operands[0].at + head;
	struct flat_vec *to = (struct flat_vec *)(void *)(copying.operands[1].at + head);
	uint32_t shift = (uint32_t)((uintptr_t)from % 4) * 8;
	const uint32_t *words = (const uint32_t *)(const void *)(from - shift / 8);
	uint64_t stride = copying.nthreads;
	uint32_t held[PAIR_SHIFTED][5];

	for (uint64_t i = copying.id; i < count; i += PAIR_SHIFTED * stride) {
		UNROLL
		for (uint32_t j = 0; j < PAIR_SHIFTED; j++) {
			UNROLL
			for (uint32_t k = 0; k < 5 && i + j * stride < count; k++)
				held[j][k] = words[(i + j * stride) * 4 + k];
		}
		UNROLL
		for (uint32_t j = 0; j < PAIR_SHIFTED && i + j * stride < count; j++) {
			struct flat_vec vec;

			UNROLL
			for (uint32_t k = 0; k < 4; k++)
				vec.word[k] = (uint32_t)(((uint64_t)held[j][k + 1] << 32 |
							  held[j][k]) >>
							 shift);
			to[i + j * stride] = vec;
		}
	}
}

DEV void pair_copy(const struct pair_self *self, char *to, const char *from, uint64_t bytes)
{
	struct flat_operand operands[2] = { { (char *)(uintptr_t)from, 0, 0, 0, 0, 0 },
					    { to, 0, 0, 0, 0, 0 } };
	struct flat_copying copying = { operands, 1, self->id, self->nthreads };
	bool alike = ((uintptr_t)from - (uintptr_t)to) % 16 == 0;
	uint64_t head = (16 - (uintptr_t)to % 16) % 16, whole = 0;

	if (!alike && head < 4)
		head += 16; /* a word before it is looked into */
	if (bytes >= head + 32)
		whole = (bytes - head - (alike ? 0 : 8)) / 16;
	else
		head = bytes;
	if (whole && alike)
		flat_copy_vectors(copying, head, whole);
	else if (whole)
		pair_copy_shifted(copying, head, whole);
	flat_copy_words(copying, 0, head);
	flat_copy_words(copying, head + whole * 16, bytes);
}

DEV char *pair_pointer(uint64_t at)
{
	return (char *)(uintptr_t)at;
}

/* This block's part of a message, to where it belongs. */
DEV void pair_move_part(const struct pair_self *self, const struct pair_walk *walk, uint32_t peer)
{
	const struct hk__pair_op *op = &self->ops[walk->op];
	uint32_t home = pair_home(walk->message), turn = pair_turn(walk->message);
	const struct hk__pair_mail *mail =
		&pair_peer(self, self->call->rank, peer)->mail[home][turn];
	uint64_t parts = pair_parts(self, op), part = pair_part(self, walk->message);
	/* Of whole lines, all but the last. */
	uint64_t each = (op->bytes / parts + 127) / 128 * 128, from = part * each;
	uint64_t to = part + 1 == parts ? op->bytes : from + each;

	to = to < op->bytes ? to : op->bytes;
	if (from < to)
		pair_copy(self, pair_pointer(mail->at + from), pair_pointer(op->at + from), to - from);
}

DEV void pair_move_piece(const struct pair_self *self, const struct pair_walk *walk, uint32_t peer,
			 uint32_t channel)
{
	const struct hk__pair_op *op = &self->ops[walk->op];
	uint64_t buf_bytes = self->call->buf_bytes, from = walk->piece * buf_bytes;
	uint64_t bytes = op->bytes - from < buf_bytes ? op->bytes - from : buf_bytes;
	char *at = pair_pointer(op->at + from), *buf;

	if (self->sends) {
		buf = pair_buf(self, peer, self->call->rank, channel, walk->slots);
		pair_copy(self, buf + op->at % HK__PAIR_SLACK, at, bytes);
	} else {
		buf = pair_buf(self, self->call->rank, peer, channel, walk->slots);
		pair_copy(self, at, buf + pair_slot(self, walk, peer, channel)->skew, bytes);
	}
}

/* What was ready, then who is told: by the thread that has looked. */
DEV void pair_move(const struct pair_self *self, uint32_t index)
{
	struct pair_walk *walk = &self->walks[index];
	uint32_t row = index / self->call->n, peer = pair_whom(self, index);
	uint32_t channel = row ? pair_channel(self, row) : 0;

	if (row)
		pair_move_piece(self, walk, peer, channel);
	else
		pair_move_part(self, walk, peer);
	(void)flat_sync_or(false);
	if (index % self->nthreads != self->id)
		return;
	if (row && self->sends)
		pair_fill(self, walk, peer, channel);
	else if (row)
		pair_take(self, walk, peer, channel);
	else {
		(void)pair_add(&pair_peer(self, self->call->rank, peer)
					->parts[pair_home(walk->message)][pair_turn(walk->message)],
			       pair_far(self));
		walk->piece = 1;
		walk->moved = 1;
	}
}

/* ---- a block ---- */

DEV enum pair_look pair_look(const struct pair_self *self, uint32_t index)
{
	struct pair_walk *walk = &self->walks[index];
	uint32_t row = index / self->call->n, peer = pair_whom(self, index);

	walk->moved = 0;
	if (!row)
		return self->sends ? pair_look_part(self, walk, peer) : PAIR_OVER;
	if (self->sends)
		return pair_look_send(self, walk, peer, pair_channel(self, row));
	return pair_look_recv(self, walk, peer, pair_channel(self, row));
}

/* Looks at all, moves what is ready; false: nothing is left, or it has failed. */
DEV bool pair_go_on(struct pair_self *self, bool *failed_out)
{
	uint32_t count = self->rows * self->call->n;
	bool left = false, moved = false, failed = false;

	for (uint32_t i = self->id; i < count; i += self->nthreads) {
		enum pair_look look = pair_look(self, i);

		self->looks[i] = (uint8_t)look;
		left |= look != PAIR_OVER;
		moved |= look == PAIR_READY || self->walks[i].moved;
		failed |= look == PAIR_FAILED;
	}
	moved = flat_sync_or(moved);
	left = flat_sync_or(left);
	self->vain = moved ? 0 : self->vain + 1;
	if (moved)
		self->deadline = 0;
	else if (left && self->id == 0)
		failed |= pair_give_up(self);
	*failed_out = flat_sync_or(failed);
	if (!left || *failed_out)
		return false;
	for (uint32_t i = 0; i < count && moved; i++) {
		if (self->looks[i] == PAIR_READY)
			pair_move(self, i);
	}
	(void)flat_sync_or(false); /* looks are written again */
	return true;
}

/* How far all channels are. */
DEV void pair_end(const struct pair_self *self)
{
	uint32_t count = self->rows * self->call->n, way = !self->sends;

	for (uint32_t i = self->id; i < count; i += self->nthreads) {
		uint32_t row = i / self->call->n, peer = pair_whom(self, i);
		struct hk__pair_peer *at = pair_peer(self, self->call->rank, peer);

		if (row)
			at->slots[way][pair_channel(self, row)] = self->walks[i].slots;
	}
}

/* What the block does one way; false: nothing. */
DEV bool pair_open(struct pair_self *self, struct pair_lists lists, bool sends,
		   struct pair_thread thread)
{
	const struct hk__pair_call *call = lists.call;
	uint32_t number = thread.number;

	self->call = call;
	self->ops = lists.ops;
	self->index = lists.index;
	self->before = thread.small;
	self->walks = thread.block->walks[!sends];
	self->looks = thread.block->looks[!sends];
	self->id = thread.id;
	self->nthreads = thread.nthreads;
	self->sends = sends;
	self->number = number;
	self->nblocks = self->sends ? call->nsend : call->nrecv;
	self->head = (struct hk__pair_head *)(void *)call->segments[call->rank];
	self->rows = 1;
	if (number < HK__PAIR_CHANNELS && number < self->nblocks)
		self->rows += (HK__PAIR_CHANNELS - number + self->nblocks - 1) / self->nblocks;
	self->deadline = 0;
	self->vain = 0;
	if (number >= self->nblocks)
		return false;
	for (uint32_t i = self->id; i < self->rows * call->n; i += self->nthreads)
		pair_open_walk(self, i);
	return true;
}

/*
 * A block, from its beginning to its end: by turns it receives, which tells the others
 * what is wanted, and sends; small messages first.
 */
DEV void pair_run(struct pair_lists lists, struct pair_thread thread)
{
	struct pair_self sender, receiver;
	struct small_self small;
	bool failed = false, left = lists.call->parts;

	if (!small_open(&small, lists, thread))
		return;
	bool receives = pair_open(&receiver, lists, false, thread);
	bool sends = pair_open(&sender, lists, true, thread);

	while ((left || sends || receives) && !failed) {
		if (left) {
			left = small_pass(&small, &failed);
			left = flat_sync_or(left);
			failed = flat_sync_or(failed);
		}
		if (!failed && receives && !pair_go_on(&receiver, &failed)) {
			receives = false;
			if (!failed)
				pair_end(&receiver);
		}
		if (!failed && sends && !pair_go_on(&sender, &failed)) {
			sends = false;
			if (!failed)
				pair_end(&sender);
		}
	}
	if (!failed)
		small_close(&small, thread);
}

#endif
