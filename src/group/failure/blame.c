/* SPDX-License-Identifier: Apache-2.0 */
/* blame.c - see blame.h. */
#include "group/group.h"

/* What a rank tells is told again each share of its deadline, and good for three. */
#define SHARES 8u
#define GOOD_SHARES 3u

#define AWAITED_MAX 8u

void hk__blame_hear(struct hk__world *world, uint32_t by, uint32_t suspect)
{
	if (!world->waits)
		world->waits = hk__mem_zalloc(world->alloc, world->n, sizeof(struct hk__told_wait));
	if (world->waits) /* else those who are waited for are blamed, as if they said nothing */
		world->waits[by] = (struct hk__told_wait){ hk__now_ns(), suspect };
}

/* Whether it waits itself, as far as it has said so lately. */
static bool waits_too(const struct hk__world *world, uint32_t rank, uint64_t good_ns)
{
	const struct hk__told_wait *told = world->waits ? &world->waits[rank] : NULL;

	return told && told->heard && hk__now_ns() - told->heard <= good_ns;
}

/* The end of the chain that begins with it; where that leads back here, it itself. */
static uint32_t chain_end(const struct hk__world *world, uint32_t rank, uint64_t good_ns)
{
	uint32_t at = rank;

	for (uint32_t hops = 0; hops < world->n; hops++) {
		if (!waits_too(world, at, good_ns))
			return at;
		at = world->waits[at].suspect;
		if (at == world->rank)
			return rank;
	}
	return rank;
}

uint32_t hk__blame_of(const struct hk_request *request)
{
	const struct hk_group *group = request->group;
	const struct hk__world *world = group->world;
	uint64_t good_ns = request->timeout_ns / SHARES * GOOD_SHARES + 3 * world->watch_ns;
	uint32_t ranks[AWAITED_MAX], count = 0, blamed = HK_NONE;

	if (request->held)
		count = 0; /* a stream of this rank */
	else if (request->transfers)
		ranks[count++] = request->peer;
	else if (request->program)
		count = hk__program_waits(request->program, ranks, AWAITED_MAX);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t rank = hk__chans_rank(&group->chans, ranks[i]);

		if (rank == world->rank)
			continue;
		if (!waits_too(world, rank, good_ns))
			return rank;
		if (blamed == HK_NONE)
			blamed = chain_end(world, rank, good_ns);
	}
	return blamed;
}

void hk__blame_look(struct hk_group *group, const struct hk_request *request)
{
	uint64_t share = request->timeout_ns / SHARES, now = hk__now_ns();

	if (!group->stuck_since) {
		group->stuck_since = now;
		group->stuck_told = 0;
	}
	if (now - group->stuck_since < share)
		return;
	uint32_t suspect = hk__blame_of(request);
	uint64_t pause = suspect == group->stuck_suspect ? share : share / 4;
	if (suspect == HK_NONE || (group->stuck_told && now - group->stuck_told < pause))
		return;
	group->stuck_told = now;
	group->stuck_suspect = suspect;
	hk__health_tell_waits(group->world, suspect);
}
