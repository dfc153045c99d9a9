/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - see load.h. Programs are performed without data: a move is as deep as what
 * it waits for, and one hop more where that is another rank's; and it ends when as many
 * operands have been read and written as on the longest way to it, and its own.
 */
#include "exec/device/load.h"

#include <math.h>

#define UNKNOWN UINT32_MAX

/* The longest way to some point. */
struct depth {
	uint32_t hops; /* UNKNOWN: nobody has been there */
	uint32_t operands;
};

struct depths {
	const struct hk__flat *flat;
	bool lines;
	uint32_t stride;     /* of `after` */
	struct depth *after; /* [rank][moves]: when so many are over */
	uint32_t *done;	     /* by rank: moves that are known */
	struct depth *line;  /* [rank][line]: when it is written */
};

static const void *part(const struct hk__flat_program *program, uint32_t offset)
{
	return (const char *)program + offset;
}

static struct depth *depth_after(const struct depths *depths, uint32_t rank, uint32_t moves)
{
	return &depths->after[rank * depths->stride + moves];
}

static void depth_reach(struct depth *depth, const struct depth *other, uint32_t hops)
{
	depth->hops = hk__max(depth->hops, other->hops + hops);
	depth->operands = hk__max(depth->operands, other->operands);
}

/* Whether what the move waits for is known, and how deep that is. */
static bool waits_known(const struct depths *depths, const struct hk__flat_program *program,
			const struct hk__flat_move *move, struct depth *depth)
{
	const struct hk__flat_wait *waits = part(program, program->waits);

	for (uint32_t i = 0; i < move->nwait; i++) {
		const struct hk__flat_wait *wait = &waits[move->waits + i];

		if (wait->moves < 0)
			continue;
		if ((uint32_t)wait->moves > depths->done[wait->rank])
			return false;
		depth_reach(depth, depth_after(depths, wait->rank, (uint32_t)wait->moves), 1);
	}
	return true;
}

static struct depth *line_at(const struct depths *depths, const struct hk__flat_ref *ref)
{
	return &depths->line[ref->rank * depths->flat->lines + ref->slot];
}

static bool lines_known(const struct depths *depths, const struct hk__flat_program *program,
			const struct hk__flat_move *move, struct depth *depth)
{
	const struct hk__flat_ref *refs = part(program, program->refs);

	for (uint32_t i = 0; i < move->nsrc; i++) {
		const struct hk__flat_ref *ref = &refs[move->refs + i];

		if (ref->kind != HK__FLAT_LINE)
			continue;
		const struct depth *written = line_at(depths, ref);
		if (written->hops == UNKNOWN)
			return false;
		depth_reach(depth, written, 1);
	}
	return true;
}

/* A line has a flag for each word. */
static uint32_t move_operands(const struct hk__flat_ref *refs, const struct hk__flat_move *move)
{
	uint32_t operands = 0;

	for (uint32_t i = 0; i < (uint32_t)move->nsrc + move->ndst; i++)
		operands += refs[move->refs + i].kind == HK__FLAT_LINE ? 2 : 1;
	return operands;
}

/* A move is over. */
static void move_end(const struct depths *depths, uint32_t rank, uint32_t number,
		     const struct hk__flat_ref *dst, uint32_t ndst, const struct depth *depth)
{
	struct depth *after = depth_after(depths, rank, number + 1);

	for (uint32_t i = 0; i < ndst; i++) {
		if (dst[i].kind == HK__FLAT_LINE)
			*line_at(depths, &dst[i]) = *depth;
	}
	*after = *depth_after(depths, rank, number);
	depth_reach(after, depth, 0);
	depths->done[rank] = number + 1;
}

/* Goes on with a rank as far as possible; whether it could. */
static bool rank_go_on(const struct depths *depths, uint32_t rank)
{
	const struct hk__flat_program *program = depths->flat->programs[rank];
	const struct hk__flat_move *moves = part(program, program->moves);
	const struct hk__flat_ref *refs = part(program, program->refs);
	uint32_t first = depths->done[rank];

	for (uint32_t m = first; m < program->nmoves; m++) {
		/* Those that go at once begin when the first of them does. */
		uint32_t group = m;
		while (!moves[group].together)
			group--;
		struct depth depth = *depth_after(depths, rank, group);

		if (depths->lines ? !lines_known(depths, program, &moves[m], &depth)
				  : !waits_known(depths, program, &moves[m], &depth))
			break;
		depth.operands += move_operands(refs, &moves[m]);
		move_end(depths, rank, m, &refs[moves[m].refs + moves[m].nsrc], moves[m].ndst,
			 &depth);
	}
	return depths->done[rank] > first;
}

static struct depth depths_end(const struct depths *depths)
{
	struct depth end = { 0, 0 };

	for (uint32_t r = 0; r < depths->flat->n; r++) {
		const struct hk__flat_program *program = depths->flat->programs[r];
		const struct hk__flat_wait *last = part(program, program->last);

		depth_reach(&end, depth_after(depths, r, program->nmoves), 0);
		for (uint32_t i = 0; i < program->nlast && !depths->lines; i++) {
			if (last[i].moves >= 0)
				depth_reach(&end,
					    depth_after(depths, last[i].rank,
							(uint32_t)last[i].moves),
					    1);
		}
	}
	return end;
}

static enum hk_status flat_depth(const struct hk__flat *flat, bool lines, struct depth *depth_out)
{
	struct depths depths = { .flat = flat, .lines = lines, .stride = 1 };
	size_t nlines = (size_t)flat->n * hk__max(flat->lines, 1);
	bool moved = true;

	for (uint32_t r = 0; r < flat->n; r++)
		depths.stride = hk__max(depths.stride, flat->programs[r]->nmoves + 1);
	size_t nafter = (size_t)flat->n * depths.stride;
	depths.after = hk__mem_zalloc(flat->alloc, nafter, sizeof(*depths.after));
	depths.done = hk__mem_zalloc(flat->alloc, flat->n, sizeof(*depths.done));
	depths.line = hk__mem_zalloc(flat->alloc, nlines, sizeof(*depths.line));
	bool there = depths.after && depths.done && depths.line;
	for (size_t i = 0; i < nlines && there; i++)
		depths.line[i].hops = UNKNOWN;
	while (there && moved) {
		moved = false;
		for (uint32_t r = 0; r < flat->n; r++)
			moved |= rank_go_on(&depths, r);
	}
	for (uint32_t r = 0; r < flat->n && there; r++)
		hk_assert(depths.done[r] == flat->programs[r]->nmoves);
	if (there)
		*depth_out = depths_end(&depths);
	hk__mem_free(flat->alloc, depths.line, nlines, sizeof(*depths.line));
	hk__mem_free(flat->alloc, depths.done, flat->n, sizeof(*depths.done));
	hk__mem_free(flat->alloc, depths.after, nafter, sizeof(*depths.after));
	return there ? HK_OK : HK_ENOMEM;
}

/* ---- bytes ---- */

static void operand_count(const struct hk__flat_ref *ref, struct hk__flat_operands *operands)
{
	double *which = ref->kind != HK__FLAT_LINE ? ref->wide ? &operands->wide : &operands->plain
			: ref->wide		   ? &operands->line_wide
						   : &operands->line;

	*which += 1;
}

static double operands_sum(const struct hk__flat_operands *operands)
{
	return operands->plain + operands->wide + operands->line + operands->line_wide;
}

/* Whose memory it writes or reads, and whom it tells; by bits. */
static uint64_t program_peers(const struct hk__flat_program *program, uint32_t self)
{
	const struct hk__flat_ref *refs = part(program, program->refs);
	const uint32_t *signals = part(program, program->signals);
	uint64_t peers = 0;

	for (uint32_t i = 0; i < program->nrefs; i++)
		peers |= UINT64_C(1) << refs[i].rank;
	for (uint32_t i = 0; i < program->nsignals; i++)
		peers |= UINT64_C(1) << signals[i];
	return peers & ~(UINT64_C(1) << self);
}

static void program_count(const struct hk__flat_program *program, uint32_t self,
			  struct hk__flat_profile *profile)
{
	const struct hk__flat_move *moves = part(program, program->moves);
	const struct hk__flat_ref *refs = part(program, program->refs);
	uint32_t groups = 0, peers = (uint32_t)__builtin_popcountll(program_peers(program, self));
	struct hk__flat_operands operands = { 0 };

	for (uint32_t m = 0; m < program->nmoves; m++) {
		groups += moves[m].together > 0;
		for (uint32_t i = 0; i < (uint32_t)moves[m].nsrc + moves[m].ndst; i++) {
			operand_count(&refs[moves[m].refs + i], &operands);
			operand_count(&refs[moves[m].refs + i], &profile->all);
		}
	}
	profile->moves = hk__max(profile->moves, groups);
	profile->together = hk__max(profile->together, program->together);
	profile->peers = hk__max(profile->peers, peers);
	if (operands_sum(&operands) > operands_sum(&profile->most))
		profile->most = operands;
}

enum hk_status hk__flat_profile(const struct hk__flat *flat, bool lines,
				struct hk__flat_profile *profile_out)
{
	struct hk__flat_profile profile = { 0 };
	struct depth depth = { 0, 0 };
	enum hk_status status = flat_depth(flat, lines, &depth);

	profile.hops = depth.hops;
	profile.longest = depth.operands;
	for (uint32_t r = 0; r < flat->n; r++)
		program_count(flat->programs[r], r, &profile);
	if (status == HK_OK)
		*profile_out = profile;
	return status;
}

static double operands_bytes(const struct hk__flat_operands *operands, double size)
{
	return operands->plain * size + operands->wide * 4 +
	       2 * (operands->line * size + operands->line_wide * 4);
}

/* How often a block's threads go round for the words of moves that go at once. */
static double rounds(const struct hk__flat_profile *profile, double slice, double size)
{
	double words = slice * size / 4 * hk__max(profile->together, 1) / HK__FLAT_THREADS;

	return words > 1 ? ceil(words) : 1;
}

void hk__flat_load(const struct hk__flat_profile *profile, const struct hk__flat_call *call,
		   uint64_t longest, struct hk__device_load *load_out)
{
	double size = (double)hk_type_size((enum hk_type)call->type), length = (double)longest;
	uint32_t turns = (call->nslices + call->nblocks - 1) / call->nblocks;
	double slice = (double)call->piece < length ? (double)call->piece : length;
	bool lines = call->mode & HK__FLAT_LINES;
	/* The first slice goes all the way; others follow it closely. */
	double way = profile->longest * size, most = operands_bytes(&profile->most, size);

	*load_out = (struct hk__device_load){
		.lines = lines,
		.blocks = call->nblocks,
		.peers = profile->peers,
		.hops = profile->hops,
		.moves = (double)profile->moves * (lines ? rounds(profile, slice, size) : turns),
		.block_bytes = slice * ((way > most ? way : most) + most * (turns - 1)),
		.bytes = operands_bytes(&profile->all, size) * length
	};
}
