/* SPDX-License-Identifier: Apache-2.0 */
/*
 * win.c - windows, made and freed.
 *
 * Ranks tell each other where their memory is by one allgather; no rank returns before
 * all have theirs ready. Who cannot reach another by memory, or be reached so, meets it
 * in the engine: both of a pair know it from what they told.
 */
#include "group/window/window.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Lanes that no plan has, and p2p.c leaves. */
#define LANE_REQUESTS (HK_NONE - 3)
#define LANE_REPLIES (HK_NONE - 4)

/* What a rank tells of its part. */
struct win_card {
	uint64_t bytes;
	uint64_t at; /* OWNED, REMAPPED: in its segment; else its address */
	struct hk_region_key key;
	uint32_t id;
	uint32_t kind;	 /* enum win_kind */
	uint32_t status; /* that it came to nothing there */
	uint32_t unused;
};

/* ---- what a group has ---- */

enum hk_status hk__win_usable(struct hk_group *group)
{
	if (!group || hk__world_inherited(group->world))
		return HK_EINVAL;
	if (__builtin_expect(atomic_load_explicit(&group->is_over, memory_order_acquire), 0))
		return hk__group_failed(group);
	return HK_OK;
}

struct hk__windows *hk__windows_get(struct hk_group *group)
{
	struct hk__world *world = group->world;

	hk__world_lock(world);
	if (!group->windows) {
		group->windows = hk__mem_zalloc(group->alloc, 1, sizeof(*group->windows));
		if (group->windows)
			group->windows->group = group;
	}
	struct hk__windows *windows = group->windows;
	hk__world_unlock(world);
	return windows;
}

static enum hk_status engine_open(void *ctx, uint32_t peer, bool sends, bool replies,
				  struct hk_chan **chan_out)
{
	struct hk_group *group = ctx;
	struct hk__chans_want want = { .sends = sends,
				       .peer = peer,
				       .to_lane = replies ? LANE_REPLIES : LANE_REQUESTS,
				       .slots = HK_RMA_SLOTS,
				       .slot_bytes = HK_RMA_SLOT_BYTES };

	return hk__chans_open(&group->chans, &want, chan_out);
}

/* Where nets may be touched, as nobody polls it else. */
static enum hk_status windows_engine(struct hk__windows *windows)
{
	struct hk_group *group = windows->group;
	struct hk__rma_spec spec = {
		.n = group->n, .open = engine_open, .ctx = group, .alloc = group->alloc
	};

	if (windows->rma)
		return HK_OK;
	enum hk_status status = hk__rma_create(&spec, &windows->rma);
	if (status != HK_OK)
		return status;
	group->next_asked = group->world->asked;
	group->world->asked = group;
	return HK_OK;
}

void hk__windows_leave(struct hk_group *group)
{
	struct hk_group **link = &group->world->asked;

	while (*link && *link != group)
		link = &(*link)->next_asked;
	if (*link)
		*link = group->next_asked;
}

static void win_drop(struct hk_win *win);

void hk__windows_free(struct hk_group *group)
{
	struct hk__windows *windows = group->windows;

	if (!windows)
		return;
	while (windows->windows) {
		struct hk_win *win = windows->windows;

		windows->windows = win->next;
		win_drop(win);
	}
	while (windows->contexts) {
		struct hk_ctx *ctx = windows->contexts;

		windows->contexts = ctx->next;
		hk__queue_destroy(ctx->queue);
		hk__mem_free(group->alloc, ctx, 1, sizeof(*ctx));
	}
	hk__rma_destroy(windows->rma);
	hk__mem_free(group->alloc, windows->doors, group->n, sizeof(struct hk_shm_door));
	hk__mem_free(group->alloc, windows, 1, sizeof(*windows));
	group->windows = NULL;
}

void hk__windows_cancel(struct hk_group *group)
{
	if (group->windows && group->windows->rma)
		hk__rma_cancel(group->windows->rma);
}

/* ---- progress ---- */

void hk__windows_fail(struct hk_group *group, enum hk_status status, uint32_t peer,
		      const char *said)
{
	char line[HK_WHY_MAX];
	struct hk__text text;
	struct hk_why why;

	/* Who is known to be gone says more than what came of it here. */
	hk__health_apply(group->world);
	if (group->failed != HK_OK)
		return;
	hk__world_why(group->world, &why);
	hk__text_init(&text, line, sizeof(line));
	hk__text_add(&text, "rank %u: one-sided operations with rank %u: %s", group->rank, peer,
		     said[0]	   ? said
		     : why.text[0] ? why.text
				   : hk_status_text(status));
	hk__health_revoke(group, status == HK_EINVAL ? HK_EIO : status, HK_NONE, line);
}

void hk__windows_poll(struct hk_group *group, bool *moved)
{
	struct hk__windows *windows = group->windows;
	struct hk_why why;
	uint32_t peer = 0;

	if (group->failed != HK_OK)
		return;
	enum hk_status status = hk__rma_poll(windows->rma, moved, &why, &peer);
	if (status != HK_OK)
		hk__windows_fail(group, status, peer, why.text);
}

/* ---- memory of a window ---- */

/* Where pages of the own segment are, counted from its begin. */
static uint64_t segment_offset(const struct hk__world *world, const void *at)
{
	return (uint64_t)((const char *)at - world->heap.at) + hk__world_heap_at(world);
}

/*
 * Whole pages of a program's data. AddressSanitizer keeps poisoned bytes between variables,
 * and its memcpy would find them; volatile keeps the compiler from calling that.
 */
#if defined(__GNUC__)
__attribute__((no_sanitize("address")))
#endif
static void
pages_copy(void *to, const void *from, size_t bytes)
{
	volatile uint64_t *words_to = (volatile uint64_t *)to;
	const volatile uint64_t *words_from = (const volatile uint64_t *)from;

	for (size_t i = 0; i < bytes / sizeof(*words_to); i++)
		words_to[i] = words_from[i];
}

/* The caller's pages become pages of the segment, with their contents, at their address. */
static enum hk_status win_remap(struct hk_win *win)
{
	struct hk__world *world = win->group->world;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *pages;

	if ((uintptr_t)win->base % page || win->bytes % page)
		return hk__group_refuse(win->group, HK_EINVAL,
					"hk_win_create: remap takes whole pages, not %p and %zu "
					"bytes",
					(void *)win->base, win->bytes);
	enum hk_status status = hk_mem_alloc(win->group, win->bytes, &pages);
	if (status != HK_OK)
		return status;
	pages_copy(pages, win->base, win->bytes);
	uint64_t at = (uint64_t)world->boot.peers[world->rank].local * world->segment_bytes +
		      segment_offset(world, pages);
	if (mmap(win->base, win->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 world->boot.segment_fd, (off_t)at) == MAP_FAILED) {
		hk_mem_free(win->group, pages);
		return hk__group_refuse(win->group, HK_EIO,
					"hk_win_create: cannot map shared memory over the window: "
					"mmap(2) failed");
	}
	win->pages = pages;
	win->kind = WIN_REMAPPED;
	return HK_OK;
}

/* The pages are the caller's own again, with what they hold. */
static void win_unmap(struct hk_win *win)
{
	void *kept = win->pages;
	void *own = mmap(win->base, win->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	/* Where the system has no memory for it they stay shared. */
	if (own == MAP_FAILED)
		return;
	pages_copy(own, kept, win->bytes);
	hk_mem_free(win->group, kept);
}

static enum hk_status win_memory(struct hk_win *win, void *base, const struct hk_win_opts *opts)
{
	const struct hk__world *world = win->group->world;
	void *mem = NULL;

	win->base = base;
	win->kind = win->bytes ? WIN_GIVEN : WIN_NOTHING;
	if (!win->bytes)
		return HK_OK;
	if (base)
		/* Threads reach it anyway; and without shared memory there is none to map. */
		return opts->remap && world->shm && !world->commons ? win_remap(win) : HK_OK;
	enum hk_status status = hk_mem_alloc(win->group, win->bytes, &mem);
	if (status != HK_OK)
		return status;
	win->base = mem;
	win->kind = WIN_OWNED;
	return HK_OK;
}

static void win_drop(struct hk_win *win)
{
	struct hk_group *group = win->group;
	/* Who lives on in a group that failed may still store there: it is not used again. */
	bool quiet = !atomic_load(&group->is_over) || !group->world->shm;

	if (win->kind == WIN_OWNED && quiet)
		hk_mem_free(group, win->base);
	if (win->kind == WIN_REMAPPED && quiet)
		win_unmap(win);
	hk__mem_free(group->alloc, win->remotes, group->n, sizeof(struct hk_remote));
	hk__mem_free(group->alloc, win, 1, sizeof(*win));
}

/* ---- who reaches whom ---- */

static bool group_shares(const struct hk_group *group, uint32_t rank)
{
	const struct hk__world *world = group->world;

	return world->shm && world->is_near[hk__chans_rank(&group->chans, rank)];
}

/* Whether a rank's part is reached by memory, by ranks that share memory with it. */
static bool card_direct(const struct hk_group *group, const struct win_card *card)
{
	return group->world->commons || card->kind != WIN_GIVEN;
}

static bool pair_meets(const struct hk_group *group, const struct win_card *own,
		       const struct win_card *other, uint32_t rank)
{
	return rank != group->rank && (!group_shares(group, rank) || !card_direct(group, own) ||
				       !card_direct(group, other));
}

struct win_job {
	struct hk_win *win;
	struct hk__windows *windows;
	struct win_card *cards; /* of all; the own one before they met */
	enum hk_status status;
};

/* Before cards are exchanged: others need the key, if any has to ask. */
static void region_job(void *ctx)
{
	struct win_job *job = ctx;
	struct hk_group *group = job->win->group;
	struct win_card *card = job->cards;
	bool asked = !card_direct(group, card);

	for (uint32_t r = 0; r < group->n; r++)
		asked |= !group_shares(group, r) && r != group->rank;
	if (!asked || !job->win->bytes)
		return;
	job->status = windows_engine(job->windows);
	if (job->status == HK_OK)
		job->status = hk__rma_region_add(job->windows->rma, job->win->base, job->win->bytes,
						 &card->id, &card->key);
	if (job->status == HK_OK)
		job->win->id = card->id;
}

static enum hk_status win_reach(struct win_job *job, uint32_t rank)
{
	struct hk_group *group = job->win->group;
	struct hk__world *world = group->world;
	const struct win_card *card = &job->cards[rank];
	struct hk_remote *remote = &job->win->remotes[rank];
	uint32_t at = hk__chans_rank(&group->chans, rank);

	*remote = (struct hk_remote){ .ops = &hk__remote_messages,
				      .bytes = card->bytes,
				      .rma = job->windows->rma,
				      .peer = rank,
				      .id = card->id,
				      .key = card->key };
	if (rank == group->rank || !card->bytes) {
		remote->ops = &hk__remote_memory;
		remote->at = job->win->base;
	} else if (group_shares(group, rank) && card_direct(group, card)) {
		char *segment = hk__world_segment_of(world, at);

		if (!segment)
			return HK_EIO;
		remote->ops = &hk__remote_memory;
		remote->at = world->commons ? hk__mem_at(card->at) : segment + card->at;
		/* What a peer says of its segment is checked as all that peers say. */
		if (!world->commons && (card->at > world->segment_bytes ||
					card->bytes > world->segment_bytes - card->at))
			return HK_EIO;
	} else if (group_shares(group, rank)) {
		world->asks_near = true;
	}
	return HK_OK;
}

static void meet_job(void *ctx)
{
	struct win_job *job = ctx;
	struct hk_group *group = job->win->group;
	struct win_card *own = &job->cards[group->rank];

	for (uint32_t r = 0; r < group->n && job->status == HK_OK; r++) {
		if (!pair_meets(group, own, &job->cards[r], r))
			continue;
		job->status = windows_engine(job->windows);
		if (job->status == HK_OK) {
			job->status = hk__rma_meet(job->windows->rma, r);
			if (job->status != HK_OK && job->status != HK_ENOMEM)
				hk__windows_fail(group, job->status, r, "");
		}
		if (group_shares(group, r))
			group->world->asks_near = true;
	}
	for (uint32_t r = 0; r < group->n && job->status == HK_OK; r++)
		job->status = win_reach(job, r);
	if (group->world->shm && !job->windows->doors && job->status == HK_OK) {
		job->windows->doors =
			hk__mem_zalloc(group->alloc, group->n, sizeof(struct hk_shm_door));
		if (!job->windows->doors)
			job->status = HK_ENOMEM;
		for (uint32_t r = 0; r < group->n && job->status == HK_OK; r++)
			if (group_shares(group, r) && r != group->rank)
				job->status = hk__shm_door(group->world->shm,
							   hk__chans_rank(&group->chans, r),
							   &job->windows->doors[r]);
	}
}

/* ---- made and freed ---- */

static enum hk_status cards_compare(struct hk_group *group, const struct win_card *cards)
{
	for (uint32_t r = 0; r < group->n; r++) {
		enum hk_status status = (enum hk_status)(int32_t)cards[r].status;

		if (status != HK_OK && r != group->rank)
			return hk__group_refuse(group, status,
						"hk_win_create: rank %u has no window: %s", r,
						hk_status_text(status));
		if (status != HK_OK)
			return status;
	}
	return HK_OK;
}

static enum hk_status win_exchange(struct win_job *job, struct win_card *own,
				   const struct hk_opts *opts)
{
	struct hk_win *win = job->win;
	struct hk_group *group = win->group;

	own->bytes = win->bytes;
	own->kind = (uint32_t)win->kind;
	own->at = (uint64_t)(uintptr_t)win->base;
	if (!group->world->commons && (win->kind == WIN_OWNED || win->kind == WIN_REMAPPED) &&
	    group->world->shm)
		own->at = segment_offset(group->world, win->pages ? win->pages : win->base);
	/* Plain memory that was made without a segment is nobody's to map. */
	if (win->kind == WIN_OWNED && !group->world->shm)
		own->kind = WIN_GIVEN;
	own->id = HK_NONE;
	if (job->status == HK_OK) {
		job->cards = own;
		hk__world_run(group->world, region_job, job);
	}
	own->status = (uint32_t)job->status;
	job->cards = hk__mem_zalloc(group->alloc, group->n, sizeof(*job->cards));
	if (!job->cards)
		own->status = (uint32_t)HK_ENOMEM;
	struct win_card *cards = job->cards;
	/* Who has no memory for the answers fails the group: others wait for it. */
	if (!cards)
		return hk_group_revoke(group) == HK_OK ? HK_ENOMEM : HK_EIO;
	enum hk_status status =
		hk_allgather(group, own, cards, sizeof(*cards), HK_TYPE_UINT8, opts);
	if (status == HK_OK)
		status = cards_compare(group, cards);
	if (status == HK_OK) {
		hk__world_run(group->world, meet_job, job);
		status = hk__group_failed(group);
		if (status == HK_OK && job->status != HK_OK)
			status = hk__group_refuse(group, job->status, "hk_win_create: %s",
						  hk_status_text(job->status));
	}
	return status;
}

static void region_remove_job(void *ctx)
{
	struct hk_win *win = ctx;
	struct hk__windows *windows = win->group->windows;
	struct hk_win **link = &windows->windows;

	while (*link && *link != win)
		link = &(*link)->next;
	if (*link)
		*link = win->next;
	if (win->id != HK_NONE && !atomic_load(&win->group->is_over))
		hk__rma_region_remove(windows->rma, win->id);
}

static void win_join_job(void *ctx)
{
	struct hk_win *win = ctx;

	win->next = win->group->windows->windows;
	win->group->windows->windows = win;
}

/* Both sides of every pair know that there is an engine, and have met. */
static enum hk_status win_make(struct hk_win *win, void *base, const struct hk_win_opts *opts)
{
	struct hk_group *group = win->group;
	struct win_job job = { .win = win, .windows = hk__windows_get(group) };
	struct hk_opts call = HK_OPTS_INIT;
	struct win_card own = { 0 };

	call.timeout_ns = opts->timeout_ns;
	win->remotes = hk__mem_zalloc(group->alloc, group->n, sizeof(*win->remotes));
	job.status = job.windows && win->remotes && hk__ctx_of(group, NULL) ? HK_OK : HK_ENOMEM;
	if (job.status == HK_OK)
		job.status = win_memory(win, base, opts);
	if (!job.windows)
		return HK_ENOMEM;
	enum hk_status status = win_exchange(&job, &own, &call);
	hk__mem_free(group->alloc, job.cards, group->n, sizeof(*job.cards));
	if (status != HK_OK)
		return status;
	hk__world_run(group->world, win_join_job, win);
	if (job.windows->rma && !group->world->threaded)
		status = hk__world_start_helper(group->world);
	return status;
}

enum hk_status hk_win_create(struct hk_group *group, void *base, size_t bytes,
			     const struct hk_win_opts *given, struct hk_win **win_out)
{
	struct hk_win_opts opts = HK_WIN_OPTS_INIT;
	enum hk_status status = hk__win_usable(group);

	if (status != HK_OK || !win_out)
		return win_out ? status : HK_EINVAL;
	if (given && hk__opts_copy(&opts, sizeof(opts), given) != HK_OK)
		return hk__group_refuse(group, HK_EINVAL,
					"hk_win_create: options of an unknown size or version: "
					"initialize them with HK_WIN_OPTS_INIT");
	if (group->batching)
		return hk__group_refuse(group, HK_EINVAL, "hk_win_create: a batch is open");
	struct hk_win *win = hk__mem_zalloc(group->alloc, 1, sizeof(*win));
	if (!win)
		return hk__group_refuse(group, HK_ENOMEM, "hk_win_create: no memory");
	*win = (struct hk_win){ .group = group,
				.bytes = bytes,
				.id = HK_NONE,
				.timeout_ns =
					opts.timeout_ns ? opts.timeout_ns : group->timeout_ns };
	status = win_make(win, base, &opts);
	if (status != HK_OK) {
		if (group->windows)
			hk__world_run(group->world, region_remove_job, win);
		win_drop(win);
		return status;
	}
	*win_out = win;
	return HK_OK;
}

void hk_win_free(struct hk_win *win)
{
	if (!win || hk__world_inherited(win->group->world))
		return;
	struct hk_group *group = win->group;
	/* Nothing of anybody's is on its way here when all have come. */
	if (hk__ctx_quiet(group->windows->plain, HK_NONE, "hk_win_free") == HK_OK)
		(void)!hk_barrier(group, NULL);
	hk__world_run(group->world, region_remove_job, win);
	win_drop(win);
}

void *hk_win_base(const struct hk_win *win)
{
	return win ? win->base : NULL;
}

size_t hk_win_bytes(const struct hk_win *win, uint32_t rank)
{
	return win && rank < win->group->n ? win->remotes[rank].bytes : 0;
}

void *hk_win_ptr(const struct hk_win *win, uint32_t rank, size_t offset)
{
	if (!win || rank >= win->group->n || !win->remotes[rank].at ||
	    offset > win->remotes[rank].bytes)
		return NULL;
	return win->remotes[rank].at + offset;
}
