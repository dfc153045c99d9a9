/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.c - fewer moves, and no messages.
 *
 * Sums that go on become one move of many sources (their order is kept, I9), and
 * what is sent to several ranks one of many destinations. Then every message
 * becomes memory: it is put to where its receiver would have stored it, or read
 * from where its sender has it, or, if that place is used for something else in
 * between, goes through a buffer of the receiver's.
 *
 * Ranks that are apart do not reach each other's `in` and `out`: what lies there goes
 * through a buffer of the sender's, one for all who want it, and is read there. So
 * nobody has to wait to send.
 */
#include "exec/device/moves.h"

/* ---- who touches a place, and when ---- */

static bool touches(const struct moves *moves, const struct hk__array *operands, uint32_t place)
{
	for (size_t i = 0; i < operands->count; i++) {
		if (operand_is(moves, operand_at(operands, i), place))
			return true;
	}
	return false;
}

/* Whether a rank may read and write another's place by itself. */
static bool reaches(const struct moves *moves, uint32_t rank, uint32_t place)
{
	const struct place *at = place_at(moves, place);

	return !moves->apart || at->rank == rank || at->kind == PLACE_BUF;
}

/* Whether some move strictly between the two times does; reading counts if asked for. */
static bool touched_between(const struct moves *moves, uint32_t place, uint32_t after,
			    uint32_t before, bool reading)
{
	const struct hk__array *noted = &place_at(moves, place_at(moves, place)->same)->moves;

	for (size_t i = 0; i < noted->count; i++) {
		const struct move *move = move_at(moves, ((const uint32_t *)noted->items)[i]);

		if (move->over || move->time <= after || move->time >= before)
			continue;
		if (touches(moves, &move->dst, place) ||
		    (reading && touches(moves, &move->src, place)))
			return true;
	}
	return false;
}

/* The last move before a time that writes the place; HK_NONE: none. */
static uint32_t last_writer(const struct moves *moves, uint32_t place, uint32_t before)
{
	const struct hk__array *noted = &place_at(moves, place_at(moves, place)->same)->moves;
	uint32_t found = HK_NONE;

	for (size_t i = 0; i < noted->count; i++) {
		uint32_t at = ((const uint32_t *)noted->items)[i];
		const struct move *move = move_at(moves, at);

		if (!move->over && move->time < before && touches(moves, &move->dst, place) &&
		    (found == HK_NONE || move->time > move_at(moves, found)->time))
			found = at;
	}
	return found;
}

static size_t operand_find(const struct hk__array *operands, struct operand operand)
{
	size_t found = operands->count;

	for (size_t i = 0; i < operands->count; i++) {
		const struct operand *at = operand_at(operands, i);

		if (at->at == operand.at && at->is_message == operand.is_message)
			found = i;
	}
	return found;
}

static void operand_remove(struct hk__array *operands, size_t at)
{
	for (size_t i = at; i + 1 < operands->count; i++)
		*operand_at(operands, i) = *operand_at(operands, i + 1);
	operands->count--;
}

/* One source, which is memory, and nothing done with it. */
static bool is_copy(const struct move *move)
{
	return move->src.count == 1 && !move->finishes && !operand_at(&move->src, 0)->is_message;
}

/* A message that only has to be stored. */
static bool only_stores(const struct move *move)
{
	return move->src.count == 1 && !move->finishes && move->dst.count == 1 &&
	       !operand_at(&move->dst, 0)->is_message;
}

/* ---- sums that go on ---- */

/* Whether nobody but the move needs what lies between it and the one before. */
static bool between_two(const struct moves *moves, const struct move *first,
			const struct move *second, uint32_t place)
{
	if (place_at(moves, place)->kind == PLACE_BUF)
		return !touched_between(moves, place, first->time, second->time, true) &&
		       !touched_between(moves, place, second->time, HK_NONE, true);
	return touches(moves, &second->dst, place) &&
	       !touched_between(moves, place, first->time, second->time, true);
}

static bool can_join(const struct moves *moves, const struct move *first, const struct move *second,
		     size_t at)
{
	const struct operand *between = operand_at(&second->src, at);

	if (first->rank != second->rank || first->finishes || first->dst.count != 1 ||
	    operand_at(&first->dst, 0)->is_message || operand_at(&first->dst, 0)->at != between->at)
		return false;
	/* A sum of sums goes on only as the first of them. */
	if (first->src.count > 1 && at > 0 && second->src.count > 2)
		return false;
	if (first->src.count + second->src.count - 1 > HK__FLAT_FOLD ||
	    !between_two(moves, first, second, between->at))
		return false;
	for (size_t i = 0; i < first->src.count; i++) {
		const struct operand *src = operand_at(&first->src, i);

		if (!src->is_message &&
		    touched_between(moves, src->at, first->time, second->time, false))
			return false;
	}
	return true;
}

/* All sources of the first, in their order, where its sum was; nothing is allocated twice. */
static enum hk_status join(struct moves *moves, uint32_t first, uint32_t second, size_t at)
{
	struct move *a = move_at(moves, first), *b = move_at(moves, second);
	struct hk__array before = b->src;
	enum hk_status status = HK_OK;

	hk__array_init(&b->src, moves->alloc, sizeof(struct operand));
	bool front = a->src.count > 1; /* of two, which is first does not matter */
	for (size_t i = 0; front && i < a->src.count && status == HK_OK; i++)
		status = hk__move_add(moves, second, false, *operand_at(&a->src, i));
	for (size_t i = 0; i < before.count && status == HK_OK; i++) {
		if (i != at)
			status = hk__move_add(moves, second, false, *operand_at(&before, i));
		else if (!front)
			status = hk__move_add(moves, second, false, *operand_at(&a->src, 0));
	}
	for (size_t i = 0; i < a->src.count; i++) {
		const struct operand *src = operand_at(&a->src, i);

		if (src->is_message)
			message_at(moves, src->at)->receiver = second;
	}
	a->over = true;
	hk__array_fini(&before);
	return status;
}

static enum hk_status join_all(struct moves *moves)
{
	enum hk_status status = HK_OK;

	for (uint32_t i = 0; i < moves->moves.count; i++) {
		struct move *move = move_at(moves, i);

		for (size_t k = 0; k < move->src.count && status == HK_OK;) {
			const struct operand *src = operand_at(&move->src, k);
			uint32_t first =
				src->is_message ? HK_NONE : last_writer(moves, src->at, move->time);

			if (first == HK_NONE || !can_join(moves, move_at(moves, first), move, k)) {
				k++;
				continue;
			}
			status = join(moves, first, i, k);
			k = 0; /* what came in may go on itself */
		}
	}
	return status;
}

/* ---- what goes to several places ---- */

/* The move that what this one copies can be stored by, too; HK_NONE: none. */
static uint32_t stored_by(const struct moves *moves, const struct move *copy)
{
	uint32_t place = operand_at(&copy->src, 0)->at;
	uint32_t writer = last_writer(moves, place, copy->time);
	const struct hk__array *noted = &place_at(moves, place_at(moves, place)->same)->moves;

	if (writer != HK_NONE) {
		const struct move *move = move_at(moves, writer);
		bool stores =
			move->rank == copy->rank &&
			operand_find(&move->dst, *operand_at(&copy->src, 0)) < move->dst.count;

		/* What may be put here by its sender is a move no more. */
		bool stays =
			moves->lines || (moves->apart && place_at(moves, place)->kind != PLACE_BUF);
		if (stores && (stays || move->src.count > 1 || is_copy(move)))
			return writer;
	}
	for (size_t i = 0; i < noted->count; i++) {
		uint32_t at = ((const uint32_t *)noted->items)[i];
		const struct move *move = move_at(moves, at);

		if (!move->over && move->rank == copy->rank && move->time < copy->time &&
		    is_copy(move) && operand_at(&move->src, 0)->at == place &&
		    (writer == HK_NONE || move->time > move_at(moves, writer)->time))
			return at;
	}
	return HK_NONE;
}

/* Whether it may be stored there as early as that. */
static bool can_store(const struct moves *moves, const struct move *copy, uint32_t time)
{
	const struct operand *dst = operand_at(&copy->dst, 0);

	if (!dst->is_message)
		return !touched_between(moves, dst->at, time, copy->time, true);
	const struct message *message = message_at(moves, dst->at);
	if (message->empty)
		return false;
	/* A buffer is read where it is; what is not goes to one, for all who want it. */
	if (moves->apart && !moves->lines)
		return place_at(moves, operand_at(&copy->src, 0)->at)->kind != PLACE_BUF;
	return moves->lines || only_stores(move_at(moves, message->receiver));
}

static enum hk_status spread(struct moves *moves)
{
	enum hk_status status = HK_OK;

	for (uint32_t i = 0; i < moves->moves.count && status == HK_OK; i++) {
		struct move *copy = move_at(moves, i);

		if (copy->over || !is_copy(copy) || copy->dst.count != 1)
			continue;
		uint32_t by = stored_by(moves, copy);
		struct operand dst = *operand_at(&copy->dst, 0);
		if (by == HK_NONE || move_at(moves, by)->dst.count >= HK__FLAT_FOLD ||
		    !can_store(moves, copy, move_at(moves, by)->time))
			continue;
		status = hk__move_add(moves, by, true, dst);
		if (dst.is_message)
			message_at(moves, dst.at)->sender = by;
		copy->over = true;
	}
	return status;
}

/* ---- messages become memory ---- */

static enum hk_status replace(struct moves *moves, uint32_t move, bool writes, uint32_t message,
			      uint32_t place)
{
	struct hk__array *operands =
		writes ? &move_at(moves, move)->dst : &move_at(moves, move)->src;
	size_t at = operand_find(operands, (struct operand){ message, true });

	hk_assert(at < operands->count);
	/* Noted at the end, then moved to where the message was: order matters. */
	enum hk_status status = hk__move_add(moves, move, writes, (struct operand){ place, false });
	if (status == HK_OK) {
		*operand_at(operands, at) = *operand_at(operands, operands->count - 1);
		operands->count--;
	}
	return status;
}

static enum hk_status message_through(struct moves *moves, uint32_t id, enum place_kind kind)
{
	struct message message = *message_at(moves, id);
	bool pulled = moves->apart && kind == PLACE_BUF;
	uint32_t owner = move_at(moves, pulled ? message.sender : message.receiver)->rank;
	uint32_t place = hk__place_new(moves, kind, owner, 0, message.value.wide);

	if (place == HK_NONE)
		return HK_ENOMEM;
	place_at(moves, place)->from = move_at(moves, message.sender)->rank;
	enum hk_status status = replace(moves, message.sender, true, id, place);
	return status == HK_OK ? replace(moves, message.receiver, false, id, place) : status;
}

/* A place of the sender's that holds the message until it is read; HK_NONE: none. */
static uint32_t message_lies(const struct moves *moves, const struct move *sender,
			     const struct move *receiver)
{
	uint32_t place = HK_NONE;

	if (is_copy(sender) && reaches(moves, receiver->rank, operand_at(&sender->src, 0)->at))
		place = operand_at(&sender->src, 0)->at;
	for (size_t i = 0; i < sender->dst.count && place == HK_NONE; i++) {
		const struct operand *dst = operand_at(&sender->dst, i);

		if (!dst->is_message && place_at(moves, dst->at)->rank == sender->rank &&
		    place_at(moves, dst->at)->kind != PLACE_NOTHING &&
		    reaches(moves, receiver->rank, dst->at))
			place = dst->at;
	}
	if (place == HK_NONE || touched_between(moves, place, sender->time, receiver->time, false))
		return HK_NONE;
	return place;
}

static enum hk_status message_place(struct moves *moves, uint32_t id)
{
	struct message message = *message_at(moves, id);
	struct move *sender = move_at(moves, message.sender);
	struct move *receiver = move_at(moves, message.receiver);

	if (message.empty)
		return message_through(moves, id, PLACE_NOTHING);
	if (moves->lines)
		return message_through(moves, id, PLACE_LINE);
	if (only_stores(receiver)) {
		uint32_t place = operand_at(&receiver->dst, 0)->at;

		if (reaches(moves, sender->rank, place) &&
		    !touched_between(moves, place, sender->time, receiver->time, true)) {
			receiver->over = true;
			return replace(moves, message.sender, true, id, place);
		}
	}
	uint32_t place = message_lies(moves, sender, receiver);
	if (place == HK_NONE)
		return message_through(moves, id, PLACE_BUF);
	operand_remove(&sender->dst, operand_find(&sender->dst, (struct operand){ id, true }));
	sender->over = sender->dst.count == 0;
	return replace(moves, message.receiver, false, id, place);
}

enum hk_status hk__moves_fuse(struct moves *moves)
{
	enum hk_status status = join_all(moves);

	if (status == HK_OK)
		status = spread(moves);
	for (uint32_t i = 0; i < moves->messages.count && status == HK_OK; i++)
		status = message_place(moves, i);
	return status;
}
