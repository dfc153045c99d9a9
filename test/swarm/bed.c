/* SPDX-License-Identifier: Apache-2.0 */
/* bed.c - see bed.h. */
#include "swarm/bed.h"

#include <stdarg.h>

struct bed_figures bed_figures;

/* ---- memory of a rank ---- */

struct bed_block {
	struct bed_block *next, **link;
	size_t size;
	_Alignas(16) char data[];
};

static void block_unlink(struct bed_seat *seat, struct bed_block *block)
{
	*block->link = block->next;
	if (block->next)
		block->next->link = block->link;
	seat->live--;
}

static void *seat_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct bed_seat *seat = ctx;
	struct bed_block *old =
		ptr ? (struct bed_block *)(void *)((char *)ptr - offsetof(struct bed_block, data))
		    : NULL;
	struct bed_block *block = NULL;

	if (old && old->size != size_old)
		bed_fail(seat->bed, seat->rank, "%zu bytes are freed as %zu", old->size, size_old);
	if (size_new) {
		block = malloc(sizeof(*block) + size_new);
		CHECK(block);
		*block = (struct bed_block){ seat->blocks, &seat->blocks, size_new };
		if (block->next)
			block->next->link = &block->next;
		seat->blocks = block;
		seat->live++;
		if (old)
			memcpy(block->data, old->data, size_old < size_new ? size_old : size_new);
	}
	if (old) {
		block_unlink(seat, old);
		free(old);
	}
	return block ? block->data : NULL;
}

static void seat_drop(struct bed_seat *seat)
{
	while (seat->blocks) {
		struct bed_block *block = seat->blocks;

		block_unlink(seat, block);
		free(block);
	}
}

/* ---- one run ---- */

void bed_open(struct bed *bed, const struct bed_spec *spec, const char *fmt, ...)
{
	va_list args;

	*bed = (struct bed){ .spec = *spec };
	bed->spec.timeout_ns = spec->timeout_ns ? spec->timeout_ns : 10 * BED_S;
	bed->spec.silence_ns = spec->silence_ns ? spec->silence_ns : BED_S;
	bed->spec.slots = spec->slots ? spec->slots : 2;
	bed->spec.slot_bytes = spec->slot_bytes ? spec->slot_bytes : 512;
	va_start(args, fmt);
	vsnprintf(bed->what, sizeof(bed->what), fmt, args);
	va_end(args);
	struct hk__simnet_spec sim = { .n = spec->n,
				       .seed = spec->seed,
				       .hosts = spec->hosts,
				       .met = true,
				       .delay_ns = spec->delay_ns,
				       .silence_ns = bed->spec.silence_ns };
	CHECK_EQ(hk__simnet_create(&sim, &bed->simnet), HK_OK);
}

void bed_fault(struct bed *bed, const struct hk__simnet_fault *fault)
{
	CHECK_EQ(hk__simnet_fault(bed->simnet, fault), HK_OK);
	bed_figures.faults++;
	bed_say(bed, fault->rank, "fault %d at %.9f until %.9f, peer %u, mask 0x%llx",
		(int)fault->what, (double)fault->at / 1e9, (double)fault->until / 1e9, fault->peer,
		(unsigned long long)fault->mask);
	if (fault->what == HK__SIMNET_STOP)
		bed->seats[fault->rank].slack_ns += fault->until - fault->at;
	if (fault->what == HK__SIMNET_SLOW)
		bed->seats[fault->rank].slack_ns += 20 * fault->look_ns;
}

static void seat_main(void *ctx, uint32_t rank)
{
	struct bed *bed = ctx;
	struct bed_seat *seat = &bed->seats[rank];
	struct hk__world_spec spec = { .timeout_ns = bed->spec.timeout_ns,
				       .watch_ns = 100 * BED_MS,
				       .silence_ns = bed->spec.silence_ns,
				       .alloc = &seat->alloc };
	struct hk__world_over over = { .nodes = bed->spec.hosts,
				       .slots = bed->spec.slots,
				       .slot_bytes = bed->spec.slot_bytes };

	CHECK_EQ(hk__simnet_open(bed->simnet, rank, &seat->alloc, &over.net), HK_OK);
	if (bed->spec.hooked) {
		struct hk__hook_spec hook = { .net = over.net,
					      .faults = &bed->spec.hook,
					      .nfaults = bed->spec.hook_rank == rank,
					      .alloc = &seat->alloc };

		CHECK_EQ(hk__hook_open(&hook, &over.net), HK_OK);
	}
	seat->net = over.net;
	CHECK_EQ(hk__group_over(&spec, &over, &seat->group), HK_OK);
	bed->fn(seat, bed->ctx);
}

void bed_run(struct bed *bed, bed_fn *fn, void *ctx, uint64_t limit_ns)
{
	bed->fn = fn;
	bed->ctx = ctx;
	for (uint32_t r = 0; r < bed->spec.n; r++)
		bed->seats[r] = (struct bed_seat){ .bed = bed,
						   .rank = r,
						   .slack_ns = bed->seats[r].slack_ns,
						   .alloc = { .resize = seat_resize,
							      .ctx = &bed->seats[r] } };
	enum hk_status status = hk__simnet_run(bed->simnet, seat_main, bed, limit_ns);
	for (uint32_t r = 0; r < bed->spec.n && status != HK_OK; r++)
		if (hk__simnet_state(bed->simnet, r) == HK__SIMNET_RUNS)
			bed_fail(bed, r, "is still at it after %.3g s",
				 (double)hk__simnet_now(bed->simnet) / 1e9);
	CHECK_EQ(status, HK_OK);
	bed_figures.runs++;
}

void bed_close(struct bed *bed)
{
	for (uint32_t r = 0; r < bed->spec.n; r++) {
		struct bed_seat *seat = &bed->seats[r];

		if (bed_killed(bed, r)) {
			bed_figures.killed++;
		} else {
			bed_figures.survivors++;
			bed_figures.leaks += seat->live;
			if (seat->live)
				bed_fail(bed, r, "has not freed %zu blocks, one of %zu bytes",
					 seat->live, seat->blocks->size);
		}
	}
	/* What a killed one had lent may be looked at until all have ended. */
	hk__simnet_destroy(bed->simnet);
	for (uint32_t r = 0; r < bed->spec.n; r++)
		seat_drop(&bed->seats[r]);
}

bool bed_killed(const struct bed *bed, uint32_t rank)
{
	return hk__simnet_state(bed->simnet, rank) == HK__SIMNET_KILLED;
}

void bed_fail(const struct bed *bed, uint32_t rank, const char *fmt, ...)
{
	char text[1200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	test_fail(__FILE__, __LINE__, "%s: seed %llu, at %.9f s: rank %u: %s", bed->what,
		  (unsigned long long)bed->spec.seed, (double)hk__simnet_now(bed->simnet) / 1e9,
		  rank, text);
}

void bed_say(const struct bed *bed, uint32_t rank, const char *fmt, ...)
{
	char text[1200];
	va_list args;

	if (!getenv("HK_SWARM_VERBOSE"))
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printf("%14.9f rank %u: %s\n", (double)hk__simnet_now(bed->simnet) / 1e9, rank, text);
}

/* ---- calls ---- */

void bed_call(struct bed_seat *seat)
{
	seat->called = hk__simnet_now(seat->bed->simnet);
	bed_figures.calls++;
}

/* A look at channels takes its time, also the last one. */
#define SLACK_NS (BED_MS)

void bed_called(struct bed_seat *seat, const char *name, uint64_t timeout_ns)
{
	uint64_t took = hk__simnet_now(seat->bed->simnet) - seat->called;
	uint64_t most = timeout_ns + SLACK_NS + seat->slack_ns;
	uint64_t over = took > most ? took - timeout_ns : 0;

	if (over > bed_figures.overdue_ns)
		bed_figures.overdue_ns = over;
	if (over)
		bed_fail(seat->bed, seat->rank, "%s took %.6f s, of %.6f that it had", name,
			 (double)took / 1e9, (double)timeout_ns / 1e9);
}

void bed_figures_print(const char *what)
{
	printf("%s: %llu runs, %llu faults, %llu calls, %llu ranks killed, %llu survivors; "
	       "longest wait past a deadline %.3g s, %llu leaks\n",
	       what, (unsigned long long)bed_figures.runs, (unsigned long long)bed_figures.faults,
	       (unsigned long long)bed_figures.calls, (unsigned long long)bed_figures.killed,
	       (unsigned long long)bed_figures.survivors, (double)bed_figures.overdue_ns / 1e9,
	       (unsigned long long)bed_figures.leaks);
}
