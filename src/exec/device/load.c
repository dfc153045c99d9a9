/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - see load.h. Hops are counted by performing the programs without data: a
 * move is as deep as what it waits for, and one more where that is another rank's.
 */
#include "exec/device/load.h"

#define UNKNOWN UINT32_MAX

struct depths {
	const struct hk__flat *flat;
	bool lines;
	uint32_t stride; /* of `after` */
	uint32_t *after; /* [rank][moves]: hops until so many are over */
	uint32_t *done;	 /* by rank: moves that are known */
	uint32_t *line;	 /* [rank][line]: hops until it is written */
};

static const void *part(const struct hk__flat_program *program, uint32_t offset)
{
	return (const char *)program + offset;
}

static uint32_t *depth_after(const struct depths *depths, uint32_t rank, uint32_t moves)
{
	return &depths->after[rank * depths->stride + moves];
}

/* Whether what the move waits for is known, and how deep that is. */
static bool waits_known(const struct depths *depths, const struct hk__flat_program *program,
			const struct hk__flat_move *move, uint32_t *depth)
{
	const struct hk__flat_wait *waits = part(program, program->waits);

	for (uint32_t i = 0; i < move->nwait; i++) {
		const struct hk__flat_wait *wait = &waits[move->waits + i];

		if (wait->moves < 0)
			continue;
		if ((uint32_t)wait->moves > depths->done[wait->rank])
			return false;
		*depth = hk__max(*depth,
				 *depth_after(depths, wait->rank, (uint32_t)wait->moves) + 1);
	}
	return true;
}

static bool lines_known(const struct depths *depths, const struct hk__flat_program *program,
			const struct hk__flat_move *move, uint32_t *depth)
{
	const struct hk__flat_ref *refs = part(program, program->refs);

	for (uint32_t i = 0; i < move->nsrc; i++) {
		const struct hk__flat_ref *ref = &refs[move->refs + i];

		if (ref->kind != HK__FLAT_LINE)
			continue;
		uint32_t written = depths->line[ref->rank * depths->flat->lines + ref->slot];
		if (written == UNKNOWN)
			return false;
		*depth = hk__max(*depth, written + 1);
	}
	return true;
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
		uint32_t depth = *depth_after(depths, rank, group);

		if (depths->lines ? !lines_known(depths, program, &moves[m], &depth)
				  : !waits_known(depths, program, &moves[m], &depth))
			break;
		for (uint32_t i = 0; i < moves[m].ndst; i++) {
			const struct hk__flat_ref *ref = &refs[moves[m].refs + moves[m].nsrc + i];

			if (ref->kind == HK__FLAT_LINE)
				depths->line[ref->rank * depths->flat->lines + ref->slot] = depth;
		}
		*depth_after(depths, rank, m + 1) = hk__max(depth, *depth_after(depths, rank, m));
		depths->done[rank] = m + 1;
	}
	return depths->done[rank] > first;
}

static uint32_t depths_end(const struct depths *depths)
{
	uint32_t end = 0;

	for (uint32_t r = 0; r < depths->flat->n; r++) {
		const struct hk__flat_program *program = depths->flat->programs[r];
		const struct hk__flat_wait *last = part(program, program->last);

		end = hk__max(end, *depth_after(depths, r, program->nmoves));
		for (uint32_t i = 0; i < program->nlast && !depths->lines; i++) {
			if (last[i].moves >= 0)
				end = hk__max(end, *depth_after(depths, last[i].rank,
								(uint32_t)last[i].moves) +
							   1);
		}
	}
	return end;
}

static enum hk_status flat_hops(const struct hk__flat *flat, bool lines, uint32_t *hops_out)
{
	struct depths depths = { .flat = flat, .lines = lines, .stride = 1 };
	size_t nlines = (size_t)flat->n * hk__max(flat->lines, 1);
	bool moved = true;

	for (uint32_t r = 0; r < flat->n; r++)
		depths.stride = hk__max(depths.stride, flat->programs[r]->nmoves + 1);
	size_t nafter = (size_t)flat->n * depths.stride;
	depths.after = hk__mem_zalloc(flat->alloc, nafter, sizeof(uint32_t));
	depths.done = hk__mem_zalloc(flat->alloc, flat->n, sizeof(uint32_t));
	depths.line = hk__mem_zalloc(flat->alloc, nlines, sizeof(uint32_t));
	bool there = depths.after && depths.done && depths.line;
	for (size_t i = 0; i < nlines && there; i++)
		depths.line[i] = UNKNOWN;
	while (there && moved) {
		moved = false;
		for (uint32_t r = 0; r < flat->n; r++)
			moved |= rank_go_on(&depths, r);
	}
	for (uint32_t r = 0; r < flat->n && there; r++)
		hk_assert(depths.done[r] == flat->programs[r]->nmoves);
	if (there)
		*hops_out = depths_end(&depths);
	hk__mem_free(flat->alloc, depths.line, nlines, sizeof(uint32_t));
	hk__mem_free(flat->alloc, depths.done, flat->n, sizeof(uint32_t));
	hk__mem_free(flat->alloc, depths.after, nafter, sizeof(uint32_t));
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

static void program_count(const struct hk__flat_program *program, struct hk__flat_profile *profile)
{
	const struct hk__flat_move *moves = part(program, program->moves);
	const struct hk__flat_ref *refs = part(program, program->refs);
	struct hk__flat_operands operands = { 0 };
	uint32_t groups = 0;

	for (uint32_t m = 0; m < program->nmoves; m++) {
		groups += moves[m].together > 0;
		for (uint32_t i = 0; i < (uint32_t)moves[m].nsrc + moves[m].ndst; i++) {
			operand_count(&refs[moves[m].refs + i], &operands);
			operand_count(&refs[moves[m].refs + i], &profile->all);
		}
	}
	profile->moves = hk__max(profile->moves, groups);
	if (operands_sum(&operands) > operands_sum(&profile->most))
		profile->most = operands;
}

enum hk_status hk__flat_profile(const struct hk__flat *flat, bool lines,
				struct hk__flat_profile *profile_out)
{
	struct hk__flat_profile profile = { 0 };
	enum hk_status status = flat_hops(flat, lines, &profile.hops);

	for (uint32_t r = 0; r < flat->n; r++)
		program_count(flat->programs[r], &profile);
	if (status == HK_OK)
		*profile_out = profile;
	return status;
}

static double operands_bytes(const struct hk__flat_operands *operands, double size)
{
	return operands->plain * size + operands->wide * 4 +
	       2 * (operands->line * size + operands->line_wide * 4);
}

void hk__flat_load(const struct hk__flat_profile *profile, const struct hk__flat_call *call,
		   uint64_t longest, struct hk__device_load *load_out)
{
	double size = (double)hk_type_size((enum hk_type)call->type), length = (double)longest;
	uint32_t turns = (call->nslices + call->nblocks - 1) / call->nblocks;
	double slice = (double)call->piece < length ? (double)call->piece : length;

	*load_out =
		(struct hk__device_load){ .lines = call->mode & HK__FLAT_LINES,
					  .blocks = call->nblocks,
					  .hops = profile->hops,
					  .moves = (double)profile->moves * turns,
					  .block_bytes = operands_bytes(&profile->most, size) *
							 slice * turns,
					  .bytes = operands_bytes(&profile->all, size) * length };
}
