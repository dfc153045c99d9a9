/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c - who waits for whom, and the programs.
 *
 * All moves are gone through in the order of time, twice: two slices of a block,
 * one behind the other. A move waits for whoever touched its places last, as far
 * as its rank does not know already that this is over: it knows what it waited
 * for, and what those whom it waited for knew. Bytes of `in` and `out` are
 * another slice's the second time; buffers are the same ones.
 */
#include "exec/device/moves.h"

#include <stdlib.h>
#include <string.h>

/* Somebody touched a place: a rank, and its moves until then (slices counted in). */
struct touch {
	uint32_t rank;
	int64_t moves;
};

/* Since a place was last written: by whom, and who has read it. */
struct trace {
	struct touch written;
	bool was_written;
	struct hk__array read; /* struct touch */
};

struct wiring {
	struct moves *moves;
	uint32_t n;
	uint32_t *order; /* moves that are left, by time */
	uint32_t count;
	uint32_t *of_rank; /* how many of each */
	int64_t stride;
	struct trace *traces;	 /* by place */
	int64_t *known;		 /* [rank][rank]: moves that the first knows to be over; -1: none */
	int64_t **then;		 /* by move of `order` and slice: what its rank knew after it */
	uint32_t **by_number;	 /* by rank and number: index into order */
	bool *mailed;		 /* [to][from] */
	struct hk__array *waits; /* struct hk__flat_wait, by index in order, of slice 0, then 1 */
	bool *told;		 /* [index in order][rank] */
	int64_t *last;		 /* [rank][rank]: moves to wait for in the end; -1: none */
};

static int64_t *known_by(const struct wiring *wiring, uint32_t rank)
{
	return wiring->known + (size_t)rank * wiring->n;
}

/* ---- needs of one move ---- */

/* The most that a move needs of each rank; -1: nothing. */
static void need(int64_t *needs, uint32_t rank, int64_t moves)
{
	if (needs[rank] < moves)
		needs[rank] = moves;
}

static void place_needs(const struct wiring *wiring, uint32_t place, bool writes, int64_t *needs)
{
	const struct trace *trace = &wiring->traces[place_at(wiring->moves, place)->same];
	const struct touch *read = trace->read.items;

	if (trace->was_written)
		need(needs, trace->written.rank, trace->written.moves);
	for (size_t i = 0; writes && i < trace->read.count; i++)
		need(needs, read[i].rank, read[i].moves);
}

static enum hk_status place_touch(struct wiring *wiring, uint32_t place, bool writes,
				  struct touch touch)
{
	struct trace *trace = &wiring->traces[place_at(wiring->moves, place)->same];

	if (writes) {
		trace->written = touch;
		trace->was_written = true;
		trace->read.count = 0;
		return HK_OK;
	}
	struct touch *read = hk__array_push(&trace->read);
	if (!read)
		return HK_ENOMEM;
	*read = touch;
	return HK_OK;
}

/* Lines carry their own flags. */
static bool is_line(const struct wiring *wiring, const struct operand *operand)
{
	return place_at(wiring->moves, operand->at)->kind == PLACE_LINE;
}

/* ---- waits ---- */

/* The rank learns all that the other knew when it had done so many moves. */
static void learn(struct wiring *wiring, uint32_t rank, uint32_t from, int64_t moves)
{
	int64_t *known = known_by(wiring, rank);

	known[from] = known[from] > moves ? known[from] : moves;
	if (moves == 0)
		return;
	int64_t slice = (moves - 1) / wiring->stride, number = moves - slice * wiring->stride;
	uint32_t index = wiring->by_number[from][number];
	const int64_t *then = wiring->then[index * 2 + (size_t)slice];
	wiring->told[(size_t)index * wiring->n + rank] = true;
	for (uint32_t r = 0; r < wiring->n; r++)
		known[r] = known[r] > then[r] ? known[r] : then[r];
}

/* When a rank had done so many moves, in the order of time. */
static int64_t needed_at(const struct wiring *wiring, uint32_t rank, int64_t moves)
{
	if (moves <= 0)
		return moves - 1; /* -2: not at all */
	int64_t slice = (moves - 1) / wiring->stride, number = moves - slice * wiring->stride;
	return slice * wiring->count + wiring->by_number[rank][number];
}

/* Waits for what is needed and not known, latest first: those tell most. */
static enum hk_status needs_meet(struct wiring *wiring, uint32_t rank, int64_t *needs,
				 struct hk__array *waits, int64_t back)
{
	for (;;) {
		uint32_t latest = HK_NONE;

		for (uint32_t r = 0; r < wiring->n; r++) {
			if (needs[r] < 0 || r == rank || known_by(wiring, rank)[r] >= needs[r])
				continue;
			if (latest == HK_NONE || needed_at(wiring, r, needs[r]) >
							 needed_at(wiring, latest, needs[latest]))
				latest = r;
		}
		if (latest == HK_NONE)
			return HK_OK;
		struct hk__flat_wait *wait = hk__array_push(waits);
		if (!wait)
			return HK_ENOMEM;
		*wait = (struct hk__flat_wait){ latest, (int32_t)(needs[latest] - back) };
		learn(wiring, rank, latest, needs[latest]);
		needs[latest] = -1;
	}
}

/*
 * The first move of a rank waits until all have begun whose memory the rank will
 * touch, and learns where their buffers are: everybody begins without waiting.
 */
static enum hk_status rank_meet(struct wiring *wiring, uint32_t rank, struct hk__array *waits)
{
	for (uint32_t r = 0; r < wiring->n; r++) {
		if (!wiring->mailed[(size_t)rank * wiring->n + r])
			continue;
		struct hk__flat_wait *wait = hk__array_push(waits);
		if (!wait)
			return HK_ENOMEM;
		*wait = (struct hk__flat_wait){ r, 0 };
		learn(wiring, rank, r, 0);
	}
	return HK_OK;
}

static void ranks_meet(struct wiring *wiring)
{
	for (uint32_t i = 0; i < wiring->count; i++) {
		const struct move *move = move_at(wiring->moves, wiring->order[i]);
		const struct hk__array *lists[] = { &move->src, &move->dst };

		for (size_t k = 0; k < move->src.count + move->dst.count; k++) {
			bool writes = k >= move->src.count;
			const struct operand *operand =
				operand_at(lists[writes], writes ? k - move->src.count : k);
			uint32_t owner = place_at(wiring->moves, operand->at)->rank;

			/* Apart, what is read was written in this call: that is waited for. */
			if (!is_line(wiring, operand) && owner != move->rank &&
			    (writes || !wiring->moves->apart))
				wiring->mailed[(size_t)move->rank * wiring->n + owner] = true;
		}
	}
}

static enum hk_status move_wire(struct wiring *wiring, uint32_t index, int slice, int64_t *needs)
{
	const struct move *move = move_at(wiring->moves, wiring->order[index]);
	const struct hk__array *lists[] = { &move->src, &move->dst };
	enum hk_status status = HK_OK;

	for (uint32_t r = 0; r < wiring->n; r++)
		needs[r] = -1;
	for (int writes = 0; writes < 2; writes++) {
		for (size_t i = 0; i < lists[writes]->count; i++) {
			const struct operand *operand = operand_at(lists[writes], i);

			if (!is_line(wiring, operand))
				place_needs(wiring, operand->at, writes, needs);
		}
	}
	if (slice == 0 && move->number == 1)
		status = rank_meet(wiring, move->rank, &wiring->waits[(size_t)index * 2]);
	if (status == HK_OK)
		status = needs_meet(wiring, move->rank, needs,
				    &wiring->waits[index * 2 + (size_t)slice],
				    slice * wiring->stride);
	struct touch touch = { move->rank, slice * wiring->stride + move->number };
	known_by(wiring, move->rank)[move->rank] = touch.moves;
	for (int writes = 0; writes < 2 && status == HK_OK; writes++) {
		for (size_t i = 0; i < lists[writes]->count && status == HK_OK; i++)
			status = place_touch(wiring, operand_at(lists[writes], i)->at, writes,
					     touch);
	}
	memcpy(wiring->then[index * 2 + (size_t)slice], known_by(wiring, move->rank),
	       wiring->n * sizeof(int64_t));
	return status;
}

/* What lies in in and out is other memory in the next slice. */
static void traces_forget(struct wiring *wiring)
{
	for (size_t i = 0; i < wiring->moves->places.count; i++) {
		const struct place *place = place_at(wiring->moves, (uint32_t)i);

		if (place->kind == PLACE_IN || place->kind == PLACE_OUT) {
			wiring->traces[i].was_written = false;
			wiring->traces[i].read.count = 0;
		}
	}
}

/*
 * Everybody waits for who touches its memory, until that rank's last move: one flag
 * for all. What was known of two slices may not be of one.
 */
static void last_note(struct wiring *wiring, int slice)
{
	for (size_t i = 0; i < wiring->moves->places.count; i++) {
		const struct place *place = place_at(wiring->moves, (uint32_t)i);
		const struct trace *trace = &wiring->traces[place->same];
		int64_t *last = wiring->last + (size_t)place->rank * wiring->n;
		const int64_t *known = known_by(wiring, place->rank);
		int64_t before = slice * wiring->stride;

		if (place->kind == PLACE_LINE)
			continue;
		for (size_t k = 0; k <= trace->read.count; k++) {
			struct touch touch = k < trace->read.count
						     ? ((struct touch *)trace->read.items)[k]
						     : trace->written;

			if (k == trace->read.count && !trace->was_written)
				continue;
			if (touch.rank != place->rank && touch.moves > known[touch.rank] &&
			    touch.moves - before > 0)
				need(last, touch.rank, wiring->of_rank[touch.rank]);
		}
	}
}

static void last_tell(struct wiring *wiring)
{
	for (uint32_t r = 0; r < wiring->n; r++) {
		for (uint32_t q = 0; q < wiring->n; q++) {
			int64_t moves = wiring->last[(size_t)r * wiring->n + q];

			if (moves > 0)
				wiring->told[(size_t)wiring->by_number[q][moves] * wiring->n + r] =
					true;
		}
	}
}

static enum hk_status wire_all(struct wiring *wiring)
{
	const struct hk_alloc *alloc = wiring->moves->alloc;
	int64_t *needs = hk__mem_zalloc(alloc, wiring->n, sizeof(*needs));
	enum hk_status status = needs ? HK_OK : HK_ENOMEM;

	ranks_meet(wiring);
	for (int slice = 0; slice < 2 && status == HK_OK; slice++) {
		if (slice)
			traces_forget(wiring);
		for (uint32_t i = 0; i < wiring->count && status == HK_OK; i++)
			status = move_wire(wiring, i, slice, needs);
		last_note(wiring, slice);
	}
	if (status == HK_OK)
		last_tell(wiring);
	hk__mem_free(alloc, needs, wiring->n, sizeof(*needs));
	return status;
}

/* ---- setting up ---- */

static int by_time(const void *a, const void *b)
{
	const struct move *const *x = a, *const *y = b;

	return (*x)->time < (*y)->time ? -1 : (*x)->time > (*y)->time;
}

/* Moves that are left, in the order of time, numbered by rank from 1. */
static enum hk_status wiring_order(struct wiring *wiring)
{
	struct moves *moves = wiring->moves;
	size_t all = moves->moves.count;
	struct move **left = hk__mem_zalloc(moves->alloc, all + 1, sizeof(struct move *));

	if (!left)
		return HK_ENOMEM;
	for (uint32_t i = 0; i < all; i++) {
		if (!move_at(moves, i)->over)
			left[wiring->count++] = move_at(moves, i);
	}
	qsort(left, wiring->count, sizeof(struct move *), by_time);
	for (uint32_t i = 0; i < wiring->count; i++) {
		wiring->order[i] = (uint32_t)(left[i] - (struct move *)moves->moves.items);
		left[i]->number = ++wiring->of_rank[left[i]->rank];
		wiring->by_number[left[i]->rank][left[i]->number] = i;
	}
	hk__mem_free(moves->alloc, left, all + 1, sizeof(struct move *));
	for (uint32_t r = 0; r < wiring->n; r++)
		wiring->stride = wiring->stride > (int64_t)wiring->of_rank[r] + 1
					 ? wiring->stride
					 : (int64_t)wiring->of_rank[r] + 1;
	return HK_OK;
}

static enum hk_status wiring_rows(struct wiring *wiring)
{
	const struct hk_alloc *alloc = wiring->moves->alloc;
	size_t all = wiring->moves->moves.count + 1;

	for (size_t i = 0; i < wiring->moves->places.count; i++)
		hk__array_init(&wiring->traces[i].read, alloc, sizeof(struct touch));
	for (size_t i = 0; i < 2 * all; i++) {
		hk__array_init(&wiring->waits[i], alloc, sizeof(struct hk__flat_wait));
		wiring->then[i] = hk__mem_zalloc(alloc, wiring->n, sizeof(int64_t));
		if (!wiring->then[i])
			return HK_ENOMEM;
	}
	for (uint32_t r = 0; r < wiring->n; r++) {
		wiring->by_number[r] = hk__mem_zalloc(alloc, all, sizeof(uint32_t));
		if (!wiring->by_number[r])
			return HK_ENOMEM;
	}
	for (size_t i = 0; i < (size_t)wiring->n * wiring->n; i++)
		wiring->known[i] = wiring->last[i] = -1;
	return HK_OK;
}

static enum hk_status wiring_init(struct wiring *wiring, struct moves *moves)
{
	const struct hk_alloc *alloc = moves->alloc;
	size_t all = moves->moves.count + 1, pairs = (size_t)moves->n * moves->n;

	*wiring = (struct wiring){ .moves = moves, .n = moves->n };
	wiring->order = hk__mem_zalloc(alloc, all, sizeof(*wiring->order));
	wiring->of_rank = hk__mem_zalloc(alloc, moves->n, sizeof(*wiring->of_rank));
	wiring->traces = hk__mem_zalloc(alloc, moves->places.count + 1, sizeof(*wiring->traces));
	wiring->known = hk__mem_zalloc(alloc, pairs, sizeof(*wiring->known));
	wiring->then = hk__mem_zalloc(alloc, 2 * all, sizeof(*wiring->then));
	wiring->by_number = hk__mem_zalloc(alloc, moves->n, sizeof(*wiring->by_number));
	wiring->mailed = hk__mem_zalloc(alloc, pairs, sizeof(*wiring->mailed));
	wiring->waits = hk__mem_zalloc(alloc, 2 * all, sizeof(*wiring->waits));
	wiring->told = hk__mem_zalloc(alloc, all * moves->n, sizeof(*wiring->told));
	wiring->last = hk__mem_zalloc(alloc, pairs, sizeof(*wiring->last));
	if (!wiring->order || !wiring->of_rank || !wiring->traces || !wiring->known ||
	    !wiring->then || !wiring->by_number || !wiring->mailed || !wiring->waits ||
	    !wiring->told || !wiring->last)
		return HK_ENOMEM;
	return wiring_rows(wiring);
}

static void wiring_fini(struct wiring *wiring)
{
	const struct hk_alloc *alloc = wiring->moves->alloc;
	size_t all = wiring->moves->moves.count + 1, n = wiring->n,
	       places = wiring->moves->places.count;

	for (size_t i = 0; wiring->traces && i < places; i++)
		hk__array_fini(&wiring->traces[i].read);
	for (size_t i = 0; i < 2 * all; i++) {
		if (wiring->waits)
			hk__array_fini(&wiring->waits[i]);
		if (wiring->then)
			hk__mem_free(alloc, wiring->then[i], n, sizeof(int64_t));
	}
	for (size_t r = 0; wiring->by_number && r < n; r++)
		hk__mem_free(alloc, wiring->by_number[r], all, sizeof(uint32_t));
	hk__mem_free(alloc, wiring->order, all, sizeof(*wiring->order));
	hk__mem_free(alloc, wiring->of_rank, n, sizeof(*wiring->of_rank));
	hk__mem_free(alloc, wiring->traces, places + 1, sizeof(*wiring->traces));
	hk__mem_free(alloc, wiring->known, n * n, sizeof(*wiring->known));
	hk__mem_free(alloc, wiring->then, 2 * all, sizeof(*wiring->then));
	hk__mem_free(alloc, wiring->by_number, n, sizeof(*wiring->by_number));
	hk__mem_free(alloc, wiring->mailed, n * n, sizeof(*wiring->mailed));
	hk__mem_free(alloc, wiring->waits, 2 * all, sizeof(*wiring->waits));
	hk__mem_free(alloc, wiring->told, all * n, sizeof(*wiring->told));
	hk__mem_free(alloc, wiring->last, n * n, sizeof(*wiring->last));
}

/* ---- programs ---- */

/* Numbers buffers and lines that are used, by rank. */
static enum hk_status number_bufs(struct wiring *wiring, struct hk__flat *flat)
{
	const struct hk_alloc *alloc = wiring->moves->alloc;
	uint32_t *bufs = hk__mem_zalloc(alloc, wiring->n, sizeof(*bufs));
	uint32_t *lines = hk__mem_zalloc(alloc, wiring->n, sizeof(*lines));

	for (uint32_t i = 0; bufs && lines && i < wiring->count; i++) {
		const struct hk__array *dst = &move_at(wiring->moves, wiring->order[i])->dst;

		for (size_t k = 0; k < dst->count; k++) {
			struct place *place = place_at(wiring->moves, operand_at(dst, k)->at);
			uint32_t *next = place->kind == PLACE_BUF    ? &bufs[place->rank]
					 : place->kind == PLACE_LINE ? &lines[place->rank]
								     : NULL;

			if (next)
				place->slot = (*next)++;
		}
	}
	for (uint32_t r = 0; bufs && lines && r < wiring->n; r++) {
		flat->bufs = hk__max(flat->bufs, bufs[r]);
		flat->lines = hk__max(flat->lines, lines[r]);
	}
	enum hk_status status = bufs && lines ? HK_OK : HK_ENOMEM;
	hk__mem_free(alloc, bufs, wiring->n, sizeof(*bufs));
	hk__mem_free(alloc, lines, wiring->n, sizeof(*lines));
	return status;
}

/* The parts of a program while it grows. */
struct draft {
	struct hk__array moves, refs, waits, signals, mail, last, peers;
};

static bool draft_number(struct hk__array *numbers, uint32_t number)
{
	uint32_t *place = hk__array_push(numbers);

	if (place)
		*place = number;
	return place != NULL;
}

/* What a move of the rank may touch. */
static bool place_fits(const struct wiring *wiring, const struct place *place, uint32_t rank)
{
	bool own = place->kind == PLACE_BUF || place->kind == PLACE_LINE || place->rank == rank;

	return own || !(wiring->moves->apart || wiring->moves->lines);
}

static bool draft_refs(struct draft *draft, const struct wiring *wiring, uint32_t rank,
		       const struct hk__array *operands, uint16_t *count)
{
	static const uint8_t kinds[] = { [PLACE_IN] = HK__FLAT_IN,
					 [PLACE_OUT] = HK__FLAT_OUT,
					 [PLACE_BUF] = HK__FLAT_BUF,
					 [PLACE_LINE] = HK__FLAT_LINE };

	for (size_t i = 0; i < operands->count; i++) {
		const struct place *place = place_at(wiring->moves, operand_at(operands, i)->at);

		if (place->kind == PLACE_NOTHING)
			continue;
		hk_assert(place_fits(wiring, place, rank));
		struct hk__flat_ref *ref = hk__array_push(&draft->refs);
		if (!ref)
			return false;
		*ref = (struct hk__flat_ref){ (uint16_t)place->rank, kinds[place->kind],
					      place->wide, place->slot, place->from };
		++*count;
	}
	return true;
}

static bool draft_waits(struct hk__array *to, const struct hk__array *from, uint16_t *count)
{
	for (size_t i = 0; i < from->count; i++) {
		struct hk__flat_wait *wait = hk__array_push(to);

		if (!wait)
			return false;
		*wait = ((const struct hk__flat_wait *)from->items)[i];
	}
	*count = (uint16_t)from->count;
	return true;
}

/* Whether bits stay as they are, but for what a call does to its inputs and averages. */
static bool move_is_plain(const struct wiring *wiring, const struct move *move)
{
	bool plain = move->src.count == 1;

	for (size_t i = 0; plain && i < move->dst.count; i++)
		plain = place_at(wiring->moves, operand_at(&move->dst, i)->at)->wide ==
			place_at(wiring->moves, operand_at(&move->src, 0)->at)->wide;
	return plain;
}

static bool draft_move(struct draft *draft, const struct wiring *wiring, uint32_t index)
{
	const struct move *move = move_at(wiring->moves, wiring->order[index]);
	struct hk__flat_move *flat = hk__array_push(&draft->moves);

	if (!flat)
		return false;
	flat->symbol = move->symbol;
	flat->lane = move->lane;
	flat->step = move->step;
	flat->finishes = move->finishes;
	flat->plain = move_is_plain(wiring, move);
	flat->refs = (uint32_t)draft->refs.count;
	flat->waits = (uint32_t)draft->waits.count;
	flat->signals = (uint32_t)draft->signals.count;
	if (!draft_refs(draft, wiring, move->rank, &move->src, &flat->nsrc) ||
	    !draft_refs(draft, wiring, move->rank, &move->dst, &flat->ndst) ||
	    !draft_waits(&draft->waits, &wiring->waits[(size_t)index * 2], &flat->nwait) ||
	    !draft_waits(&draft->waits, &wiring->waits[(size_t)index * 2 + 1], &flat->nwait_later))
		return false;
	for (uint32_t r = 0; r < wiring->n; r++) {
		if (!wiring->told[(size_t)index * wiring->n + r])
			continue;
		if (!draft_number(&draft->signals, r))
			return false;
		flat->nsignal++;
	}
	return true;
}

/* Whether two moves of a rank touch the same memory of it, one of them writing. */
static bool moves_clash(const struct wiring *wiring, const struct move *a, const struct move *b)
{
	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < a->dst.count; i++) {
			const struct operand *dst = operand_at(&a->dst, i);

			for (size_t k = 0; k < b->src.count + b->dst.count; k++) {
				const struct operand *other =
					k < b->src.count ? operand_at(&b->src, k)
							 : operand_at(&b->dst, k - b->src.count);

				if (!is_line(wiring, dst) &&
				    operand_is(wiring->moves, other, dst->at))
					return true;
			}
		}
		const struct move *swap = a;
		a = b;
		b = swap;
	}
	return false;
}

#define TOGETHER_MAX 16u /* warps of a block */

/*
 * How many moves from one on, by number, go at once. Those by memory wait before the
 * first and tell after the last, and their operands have their own space.
 */
static uint32_t moves_together(const struct wiring *wiring, uint32_t rank, uint32_t first,
			       const struct hk__flat_move *flat)
{
	const uint32_t *at = wiring->by_number[rank];
	uint32_t count = 1, most = 2 * HK__FLAT_FOLD;
	bool lines = wiring->moves->lines;

	for (; first + count <= wiring->of_rank[rank] && count < TOGETHER_MAX; count++) {
		const struct hk__flat_move *last = &flat[count];

		if (!lines && (flat[count - 1].nsignal || last->nwait || last->nwait_later ||
			       last->refs + last->nsrc + last->ndst - flat->refs > most))
			break;
		const struct move *next = move_at(wiring->moves, wiring->order[at[first + count]]);

		for (uint32_t i = 0; i < count; i++) {
			if (moves_clash(wiring,
					move_at(wiring->moves, wiring->order[at[first + i]]), next))
				return count;
		}
	}
	return count;
}

/* Ranks that this one tells of its buffers, waits for in the end, and writes lines to. */
static bool draft_ranks(struct draft *draft, const struct wiring *wiring, uint32_t rank)
{
	for (uint32_t r = 0; r < wiring->n; r++) {
		int64_t last = wiring->last[(size_t)rank * wiring->n + r];
		bool writes = false;

		if (wiring->mailed[(size_t)r * wiring->n + rank] && !draft_number(&draft->mail, r))
			return false;
		for (size_t i = 0; i < draft->refs.count; i++) {
			const struct hk__flat_ref *ref =
				(const struct hk__flat_ref *)draft->refs.items + i;

			writes |= ref->kind == HK__FLAT_LINE && ref->rank == r && r != rank;
		}
		if (writes && !draft_number(&draft->peers, r))
			return false;
		if (last <= 0)
			continue;
		struct hk__flat_wait *wait = hk__array_push(&draft->last);
		if (!wait)
			return false;
		*wait = (struct hk__flat_wait){ r, (int32_t)last };
	}
	return true;
}

/* Appends a part, at a multiple of 8. */
static void part_add(char *base, uint32_t *at, const struct hk__array *part, uint32_t *count_out,
		     uint32_t *offset_out)
{
	size_t bytes = part->count * part->item_size;

	*count_out = (uint32_t)part->count;
	*offset_out = *at;
	if (base && bytes)
		memcpy(base + *at, part->items, bytes);
	*at += (uint32_t)((bytes + 7) / 8 * 8);
}

/* base NULL: only measured. */
static uint32_t draft_write(const struct draft *draft, char *base, struct hk__flat_program *head)
{
	uint32_t at = (sizeof(*head) + 7) / 8 * 8;

	part_add(base, &at, &draft->moves, &head->nmoves, &head->moves);
	part_add(base, &at, &draft->refs, &head->nrefs, &head->refs);
	part_add(base, &at, &draft->waits, &head->nwaits, &head->waits);
	part_add(base, &at, &draft->signals, &head->nsignals, &head->signals);
	part_add(base, &at, &draft->mail, &head->nmail, &head->mail);
	part_add(base, &at, &draft->last, &head->nlast, &head->last);
	part_add(base, &at, &draft->peers, &head->npeers, &head->peers);
	return at;
}

static enum hk_status emit_rank(const struct wiring *wiring, struct hk__flat *flat, uint32_t rank)
{
	const struct hk_alloc *alloc = wiring->moves->alloc;
	struct draft draft;
	struct hk__array *const parts[] = { &draft.moves, &draft.refs, &draft.waits, &draft.signals,
					    &draft.mail,  &draft.last, &draft.peers };
	static const size_t sizes[] = { sizeof(struct hk__flat_move),
					sizeof(struct hk__flat_ref),
					sizeof(struct hk__flat_wait),
					sizeof(uint32_t),
					sizeof(uint32_t),
					sizeof(struct hk__flat_wait),
					sizeof(uint32_t) };
	bool good = true;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		hk__array_init(parts[i], alloc, sizes[i]);
	for (uint32_t i = 1; i <= wiring->of_rank[rank] && good; i++)
		good = draft_move(&draft, wiring, wiring->by_number[rank][i]);
	good = good && draft_ranks(&draft, wiring, rank);
	struct hk__flat_program head = { .stride = (uint32_t)wiring->stride };
	for (uint32_t i = 1; i <= wiring->of_rank[rank] && good;) {
		struct hk__flat_move *move = (struct hk__flat_move *)draft.moves.items + (i - 1);

		move->together = moves_together(wiring, rank, i, move);
		head.together = hk__max(head.together, move->together);
		i += move->together;
	}
	head.bytes = draft_write(&draft, NULL, &head);
	char *base = good ? hk__mem_zalloc(alloc, head.bytes, 1) : NULL;
	if (base) {
		draft_write(&draft, base, &head);
		memcpy(base, &head, sizeof(head));
		flat->programs[rank] = (struct hk__flat_program *)(void *)base;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		hk__array_fini(parts[i]);
	return base ? HK_OK : HK_ENOMEM;
}

enum hk_status hk__moves_emit(struct moves *moves, struct hk__flat *flat)
{
	struct wiring wiring;
	enum hk_status status = wiring_init(&wiring, moves);

	if (status == HK_OK)
		status = wiring_order(&wiring);
	if (status == HK_OK)
		status = wire_all(&wiring);
	if (status == HK_OK)
		status = number_bufs(&wiring, flat);
	flat->programs = hk__mem_zalloc(moves->alloc, moves->n, sizeof(struct hk__flat_program *));
	if (!flat->programs)
		status = HK_ENOMEM;
	for (uint32_t r = 0; r < moves->n && status == HK_OK; r++)
		status = emit_rank(&wiring, flat, r);
	wiring_fini(&wiring);
	return status;
}
