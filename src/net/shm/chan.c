/* SPDX-License-Identifier: Apache-2.0 */
/* chan.c - channels: their region in a segment, and who holds on to it. */
#include "net/shm/segment.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static void chan_place(struct shm_chan *chan, struct shm_header *header, uint64_t at)
{
	chan->at = at;
	chan->line = (struct shm_line *)(void *)((char *)header + at);
	chan->heads = (char *)header + at + SHM_LINE;
	chan->bulk = (char *)header + at + chan_heads_bytes(&chan->base.spec);
	chan->stride = chan_stride(chan->base.spec.slot_bytes);
}

static enum hk_status chan_create(struct shm *shm, const struct hk_chan_spec *spec, bool sends,
				  struct shm_chan **chan_out)
{
	struct shm_chan *chan = hk__mem_zalloc(shm->alloc, 1, sizeof(*chan));

	if (!chan)
		return HK_ENOMEM;
	*chan = (struct shm_chan){
		.base = { .ops = &hk__shm_chan_ops, .net = &shm->base, .spec = *spec },
		.sends = sends,
		.peer_bell = -1
	};
	if (shm->spec.bell)
		chan->peer_bell = shm->spec.bell(shm->spec.ctx, spec->key.peer);
	enum hk_status status = hk__shm_map(shm, spec->key.peer, &chan->peer);
	if (status != HK_OK) {
		hk__mem_free(shm->alloc, chan, 1, sizeof(*chan));
		hk__why(&shm->base.why, status, "cannot map the segment of rank %u: " HK__SHM_TAKES,
			spec->key.peer, shm->spec.bytes >> 30);
		return status;
	}
	/* Who opens its net later than this will only be fenced for too often. */
	chan->fences = !shm->barriers || !atomic_load(&chan->peer->barriers);
	*chan_out = chan;
	return HK_OK;
}

/* Whether nobody writes there any more. */
static bool region_is_free(const struct shm *shm, const struct shm_region *region)
{
	const char *own = (const char *)shm->segments[shm->base.rank];
	const struct shm_line *line = (const struct shm_line *)(const void *)(own + region->at);

	/* Pairs with the release in hk__shm_chan_close: the sender is done with it. */
	return atomic_load_explicit(&line->state, memory_order_acquire) != CHAN_ATTACHED ||
	       hk__shm_is_dead(shm, region->from);
}

/*
 * A region of that size which nobody uses any more, or new; 0: there is none. The lowest:
 * pages that were touched are touched again, and others never are.
 */
static uint64_t region_get(struct shm *shm, size_t bytes)
{
	struct shm_region *regions = shm->regions.items;
	size_t best = shm->regions.count;

	for (size_t i = 0; i < shm->regions.count; i++)
		if (regions[i].bytes == bytes &&
		    (best == shm->regions.count || regions[i].at < regions[best].at) &&
		    region_is_free(shm, &regions[i]))
			best = i;
	if (best < shm->regions.count) {
		uint64_t at = regions[best].at;

		regions[best] = regions[--shm->regions.count];
		return at;
	}
	uint64_t end = shm->spec.heap_at ? shm->spec.heap_at : shm->spec.bytes;
	if (bytes > end - shm->cursor)
		return 0;
	shm->cursor += bytes;
	return shm->cursor - bytes;
}

enum hk_status hk__shm_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out)
{
	struct shm *shm = shm_of(net);
	struct shm_header *own = shm->segments[net->rank];
	struct shm_entry *entry;
	struct shm_place place;
	struct shm_chan *chan;

	if (hk__shm_entry_find(own, spec->key.peer, &spec->key, &place, &entry))
		return HK_EINVAL; /* open already */
	if (!entry)
		return HK_ELIMIT;
	enum hk_status status = chan_create(shm, spec, false, &chan);
	if (status != HK_OK)
		return status;
	uint64_t at = region_get(shm, chan_bytes(spec));
	if (!at) {
		hk__mem_free(shm->alloc, chan, 1, sizeof(*chan));
		return HK_ELIMIT;
	}
	chan_place(chan, own, at);
	for (uint32_t i = 0; i < spec->slots; i++)
		atomic_store_explicit(head_mark(chan->heads + (size_t)i * SHM_HEAD), 0,
				      memory_order_relaxed);
	memset(chan->line, 0, sizeof(*chan->line)); /* nobody knows of it yet */
	hk__shm_entry_write(entry, spec, at);
	chan_ring(chan); /* it may wait for this channel to appear */
	*chan_out = &chan->base;
	return HK_OK;
}

enum hk_status hk__shm_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out)
{
	struct shm_chan *chan;
	enum hk_status status = chan_create(shm_of(net), spec, true, &chan);

	if (status == HK_OK)
		*chan_out = &chan->base;
	return status;
}

/*
 * Pages of large messages go back to the system: a program that makes groups and frees
 * them would hold, in the end, the largest message of each slot there ever was. A
 * sender that still writes there touches new ones. Where memory is no file's, it stays.
 */
static void chan_drop_bulk(const struct shm_chan *chan)
{
	uintptr_t from = ((uintptr_t)chan->bulk + SHM_PAGE - 1) / SHM_PAGE * SHM_PAGE;
	uintptr_t to = ((uintptr_t)chan->bulk + chan->base.spec.slots * chan->stride) / SHM_PAGE *
		       SHM_PAGE;

	if (from < to)
		(void)madvise((void *)from, to - from, MADV_REMOVE);
}

/* The region is free again once the sender has let go of it too. */
static void chan_leave_region(struct shm *shm, struct shm_chan *chan)
{
	struct hk_chan_key *key = &chan->base.spec.key;
	struct shm_place place;
	struct shm_entry *entry =
		hk__shm_entry_find(shm->segments[shm->base.rank], key->peer, key, &place, NULL);
	uint32_t expected = CHAN_NEW;

	if (entry) /* a peer may have overwritten it: then nothing is given back */
		hk__shm_entry_clear(entry);
	atomic_compare_exchange_strong(&chan->line->state, &expected, CHAN_GONE);
	chan_drop_bulk(chan);
	struct shm_region *region = entry ? hk__array_push(&shm->regions) : NULL;
	if (region)
		*region = (struct shm_region){ chan->at, chan_bytes(&chan->base.spec), key->peer };
}

void hk__shm_chan_close(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);
	struct shm *shm = shm_of(base->net);

	if (!chan->sends) {
		hk__shm_unpeek(base);
		chan_leave_region(shm, chan);
	} else if (chan->line)
		/* Pairs with the acquire in region_get. */
		atomic_store_explicit(&chan->line->state, CHAN_LEFT, memory_order_release);
	hk__mem_free(shm->alloc, chan->bounce, base->spec.slot_bytes, 1);
	hk__mem_free(shm->alloc, chan, 1, sizeof(struct shm_chan));
}

/* Yields before it sleeps: a reader of a lower priority has to run. */
#define READER_YIELDS 100
#define READER_SLEEP_NS 50000

/*
 * A thread that reads what was lent is done with it soon: it reads one message,
 * and waits for nothing before it says so.
 */
static void reader_await(const struct shm_line *line)
{
	const struct timespec pause = { .tv_nsec = READER_SLEEP_NS };

	/* Pairs with the release in hk__shm_unpeek: what was read is read. */
	for (int i = 0; atomic_load(&line->reading); i++) {
		if (i < READER_YIELDS)
			sched_yield();
		else
			(void)nanosleep(&pause, NULL);
	}
}

void hk__shm_cancel(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);

	if (!chan->sends)
		hk__shm_unpeek(base);
	if (!chan->sends || !chan->line)
		return; /* what is taken is taken in one go */
	/*
	 * Pairs with chan_pin: one of us sees the other. And with the fence in
	 * chan_still_lent: who reads what the caller writes after this sees the flag.
	 */
	atomic_store(&chan->line->cancelled, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (shm_of(base->net)->spec.threads)
		reader_await(chan->line);
}

enum hk_status hk__shm_chan_look_up(struct shm_chan *chan)
{
	struct shm *shm = shm_of(chan->base.net);
	const struct hk_chan_spec *spec = &chan->base.spec;
	uint32_t expected = CHAN_NEW;
	struct shm_place place;

	if (!hk__shm_entry_find(chan->peer, shm->base.rank, &spec->key, &place, NULL))
		return HK_OK;
	if (place.slots != spec->slots || place.slot_bytes != spec->slot_bytes ||
	    place.at % SHM_LINE || place.at < sizeof(struct shm_header) ||
	    place.at > shm->spec.bytes || chan_bytes(spec) > shm->spec.bytes - place.at)
		return hk__why(&shm->base.why, HK_EIO, "rank %u describes an invalid channel",
			       spec->key.peer);
	chan_place(chan, chan->peer, place.at);
	if (!atomic_compare_exchange_strong(&chan->line->state, &expected, CHAN_ATTACHED))
		chan->line = NULL; /* closed between two looks: another one may come */
	if (!chan->line)
		return HK_OK;
	/* Closed, and its region used again: then it is another's. */
	uint64_t at = place.at;
	if (!hk__shm_entry_find(chan->peer, shm->base.rank, &spec->key, &place, NULL) ||
	    place.at != at) {
		atomic_store(&chan->line->state, CHAN_NEW);
		chan->line = NULL;
		return HK_OK;
	}
	atomic_store_explicit(&chan->line->word_at, (uint64_t)(uintptr_t)&shm->word,
			      memory_order_relaxed);
	atomic_store_explicit(&chan->line->word, shm->word, memory_order_relaxed);
	atomic_store_explicit(&chan->line->space, shm->space, memory_order_relaxed);
	/* Pairs with the acquire in chan_try_read. */
	atomic_store_explicit(&chan->line->pid, shm->pid, memory_order_release);
	return HK_OK;
}

const struct hk_chan_ops hk__shm_chan_ops = {
	.size = sizeof(struct hk_chan_ops),
	.shared = true,
	.close = hk__shm_chan_close,
	.cancel = hk__shm_cancel,
	.reserve = hk__shm_reserve,
	.post = hk__shm_post,
	.lendable = hk__shm_lendable,
	.lend = hk__shm_lend,
	.lent = hk__shm_lent,
	.peek = hk__shm_peek,
	.unpeek = hk__shm_unpeek,
	.release = hk__shm_release,
	.take = hk__shm_take,
};
