/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.c - channels in shared memory.
 *
 * A segment:
 *
 *	+--------+-----------+---------------------------------------------+
 *	| header | directory | channel | channel | ...                     |
 *	+--------+-----------+---------------------------------------------+
 *
 * The owner places channels one behind the other and enters them in the
 * directory, where senders look them up by key. A channel:
 *
 *	| taken: messages released so far | slot 0 | slot 1 | ...
 *
 * and a slot, in lines of 64 bytes:
 *
 *	| mark (8 bytes) | up to 56 bytes, or nothing | ... larger messages ...
 *
 * The mark holds the number of the message and its length; it is written last,
 * so a small message is complete in the very line that announces it. The
 * sender keeps its own count and looks at `taken` only when its slots run out.
 *
 * Sleeping: the owner of a segment raises `asleep`, looks once more, and waits
 * on `bell`. Whoever posts to it, or releases a message of it, looks at
 * `asleep` afterwards; the fences on both sides make one of them see the other.
 *
 * What a peer can write is trusted for nothing but content: counts, lengths,
 * and places of channels are checked before use.
 */
#include "net/shm/shm.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHM_MAGIC 0x686b7368u /* "hksh" */
#define SHM_LINE 64u
#define SHM_INLINE 56u /* bytes that fit beside the mark */
#define SHM_ENTRIES 4096u

struct shm_entry {
	_Atomic uint32_t ready;
	uint32_t from, from_lane, to_lane, context;
	uint32_t slots, slot_bytes;
	uint32_t unused;
	uint64_t at;
};

struct shm_header {
	uint32_t magic;
	uint32_t entry_count;
	_Alignas(64) _Atomic uint32_t asleep;
	_Atomic uint32_t bell;
	_Alignas(64) struct shm_entry entries[SHM_ENTRIES];
};

struct shm {
	struct hk_net base;
	struct hk_shm_spec spec;
	const struct hk_alloc *alloc;
	struct shm_header **segments; /* mapped so far; NULL: not yet */
	uint64_t cursor;	      /* first free byte of the own segment */
	bool armed;		      /* asleep was raised, and nothing slept yet */
	uint32_t bell_seen;
};

struct shm_chan {
	struct hk_chan base;
	bool sends;
	struct shm_header *peer; /* whose bell to ring */
	_Atomic uint64_t *taken; /* NULL: a sender that has not found it yet */
	char *slots;
	size_t stride;
	uint64_t count;	     /* messages posted, or released */
	uint64_t taken_seen; /* sender: of its last look */
};

static struct shm *shm_of(struct hk_net *net)
{
	return (struct shm *)net;
}

static struct shm_chan *chan_of(struct hk_chan *chan)
{
	return (struct shm_chan *)chan;
}

/* ---- segments ---- */

enum hk_status hk__shm_segment_create(size_t bytes, int *fd_out)
{
	int fd = memfd_create("hocket", MFD_CLOEXEC);

	if (fd < 0)
		return HK_EIO;
	if (bytes < sizeof(struct shm_header) || ftruncate(fd, (off_t)bytes) != 0) {
		close(fd);
		return bytes < sizeof(struct shm_header) ? HK_EINVAL : HK_EIO;
	}
	*fd_out = fd;
	return HK_OK;
}

enum hk_status hk__shm_segment_map(int fd, size_t bytes, void **at_out)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return HK_EIO;
	*at_out = at;
	return HK_OK;
}

void hk__shm_segment_unmap(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}

static enum hk_status shm_map(struct shm *shm, uint32_t rank, struct shm_header **header_out)
{
	if (!shm->segments[rank])
		shm->segments[rank] = shm->spec.segment(shm->spec.ctx, rank);
	if (!shm->segments[rank])
		return HK_EIO;
	*header_out = shm->segments[rank];
	return HK_OK;
}

static void shm_close(struct hk_net *net)
{
	struct shm *shm = shm_of(net);

	hk__mem_free(shm->alloc, shm->segments, net->n, sizeof(struct shm_header *));
	hk__mem_free(shm->alloc, shm, 1, sizeof(*shm));
}

/* ---- waking ---- */

static long shm_futex(_Atomic uint32_t *word, int op, uint32_t value,
		      const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static void shm_ring(struct shm_header *peer)
{
	/* Pairs with the fence in shm_wait: it sees the message, or we see it asleep. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&peer->asleep, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&peer->bell, 1, memory_order_release);
	shm_futex(&peer->bell, FUTEX_WAKE, 1, NULL);
}

/* ---- the directory ---- */

static uint32_t entry_hash(uint32_t from, const struct hk_chan_key *key)
{
	uint32_t x = from * 0x9e3779b1u ^ key->from_lane * 0x85ebca77u ^
		     key->to_lane * 0xc2b2ae3du ^ key->context * 0x27d4eb2fu;

	return (x ^ x >> 15) % SHM_ENTRIES;
}

static bool entry_is(const struct shm_entry *entry, uint32_t from, const struct hk_chan_key *key)
{
	return entry->from == from && entry->from_lane == key->from_lane &&
	       entry->to_lane == key->to_lane && entry->context == key->context;
}

/* The entry of a key, or the free one where it would be; NULL: full. */
static struct shm_entry *entry_find(struct shm_header *header, uint32_t from,
				    const struct hk_chan_key *key, bool *found_out)
{
	uint32_t at = entry_hash(from, key);

	for (uint32_t i = 0; i < SHM_ENTRIES; i++) {
		struct shm_entry *entry = &header->entries[(at + i) % SHM_ENTRIES];

		/* Pairs with the release in shm_chan_recv. */
		*found_out = atomic_load_explicit(&entry->ready, memory_order_acquire);
		if (!*found_out || entry_is(entry, from, key))
			return entry;
	}
	return NULL;
}

/* ---- channels ---- */

/* Channels and slots begin at lines: their first word is aligned. */
static _Atomic uint64_t *word_at(char *line)
{
	return (_Atomic uint64_t *)(void *)line;
}

static size_t chan_stride(uint32_t slot_bytes)
{
	return SHM_LINE + ((size_t)slot_bytes + SHM_LINE - 1) / SHM_LINE * SHM_LINE;
}

static size_t chan_bytes(const struct hk_chan_spec *spec)
{
	return SHM_LINE + chan_stride(spec->slot_bytes) * spec->slots;
}

static void chan_place(struct shm_chan *chan, struct shm_header *header, uint64_t at)
{
	chan->taken = word_at((char *)header + at);
	chan->slots = (char *)header + at + SHM_LINE;
	chan->stride = chan_stride(chan->base.spec.slot_bytes);
}

static struct shm_chan *chan_create(struct shm *shm, const struct hk_chan_spec *spec, bool sends)
{
	struct shm_chan *chan = hk__mem_zalloc(shm->alloc, 1, sizeof(*chan));

	if (chan)
		*chan = (struct shm_chan){ .base = { &shm->base, *spec }, .sends = sends };
	return chan;
}

static enum hk_status shm_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				    struct hk_chan **chan_out)
{
	struct shm *shm = shm_of(net);
	struct shm_header *own = shm->segments[net->rank];
	bool found;
	struct shm_entry *entry = entry_find(own, spec->key.peer, &spec->key, &found);

	if (!entry || chan_bytes(spec) > shm->spec.bytes - shm->cursor)
		return HK_ELIMIT;
	if (found)
		return HK_EINVAL; /* open already */
	struct shm_chan *chan = chan_create(shm, spec, false);
	if (!chan)
		return HK_ENOMEM;
	enum hk_status status = shm_map(shm, spec->key.peer, &chan->peer);
	if (status != HK_OK) {
		hk__chan_close(&chan->base);
		return status;
	}
	chan_place(chan, own, shm->cursor);
	entry->from = spec->key.peer;
	entry->from_lane = spec->key.from_lane;
	entry->to_lane = spec->key.to_lane;
	entry->context = spec->key.context;
	entry->slots = spec->slots;
	entry->slot_bytes = spec->slot_bytes;
	entry->at = shm->cursor;
	shm->cursor += chan_bytes(spec);
	/* Pairs with the acquire in entry_find. */
	atomic_store_explicit(&entry->ready, 1, memory_order_release);
	shm_ring(chan->peer); /* it may wait for this channel to appear */
	*chan_out = &chan->base;
	return HK_OK;
}

static enum hk_status shm_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				    struct hk_chan **chan_out)
{
	struct shm *shm = shm_of(net);
	struct shm_chan *chan = chan_create(shm, spec, true);

	if (!chan)
		return HK_ENOMEM;
	enum hk_status status = shm_map(shm, spec->key.peer, &chan->peer);
	if (status != HK_OK) {
		hk__chan_close(&chan->base);
		return status;
	}
	*chan_out = &chan->base;
	return HK_OK;
}

static void shm_chan_close(struct hk_chan *chan)
{
	hk__mem_free(shm_of(chan->net)->alloc, chan, 1, sizeof(struct shm_chan));
}

/* A sender looks for the channel that the receiver has made, or will. */
static enum hk_status chan_look_up(struct shm_chan *chan)
{
	struct shm *shm = shm_of(chan->base.net);
	const struct hk_chan_spec *spec = &chan->base.spec;
	bool found;
	const struct shm_entry *entry = entry_find(chan->peer, shm->base.rank, &spec->key, &found);

	if (!entry || !found)
		return HK_OK;
	uint64_t at = entry->at;
	if (entry->slots != spec->slots || entry->slot_bytes != spec->slot_bytes || at % SHM_LINE ||
	    at > shm->spec.bytes || chan_bytes(spec) > shm->spec.bytes - at)
		return HK_EIO;
	chan_place(chan, chan->peer, at);
	return HK_OK;
}

/* ---- sleeping ---- */

/* Something moved: who is awake need not be woken with a system call. */
static void shm_disarm(struct shm *shm)
{
	if (!shm->armed)
		return;
	atomic_store_explicit(&shm->segments[shm->base.rank]->asleep, 0, memory_order_relaxed);
	shm->armed = false;
}

static enum hk_status shm_wait(struct hk_net *net, uint64_t timeout_ns)
{
	struct shm *shm = shm_of(net);
	struct shm_header *own = shm->segments[net->rank];

	if (!shm->armed) {
		shm->bell_seen = atomic_load_explicit(&own->bell, memory_order_acquire);
		atomic_store_explicit(&own->asleep, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		shm->armed = true;
		return HK_OK; /* the caller looks once more before it sleeps */
	}
	struct timespec timeout = { (time_t)(timeout_ns / 1000000000),
				    (long)(timeout_ns % 1000000000) };
	shm_futex(&own->bell, FUTEX_WAIT, shm->bell_seen, &timeout);
	shm_disarm(shm);
	return HK_OK;
}

/* ---- messages ---- */

static char *chan_slot(const struct shm_chan *chan)
{
	return chan->slots + chan->count % chan->base.spec.slots * chan->stride;
}

static char *slot_data(char *slot, uint32_t len)
{
	return slot + (len <= SHM_INLINE ? SHM_LINE - SHM_INLINE : SHM_LINE);
}

static enum hk_status shm_reserve(struct hk_chan *base, uint32_t len, void **slot_out)
{
	struct shm_chan *chan = chan_of(base);

	*slot_out = NULL;
	if (!chan->taken) {
		enum hk_status status = chan_look_up(chan);

		if (status != HK_OK || !chan->taken)
			return status;
	}
	if (chan->count - chan->taken_seen == base->spec.slots) {
		/* Pairs with the release in shm_release: the slot is really free. */
		uint64_t taken = atomic_load_explicit(chan->taken, memory_order_acquire);

		if (taken > chan->count || chan->count - taken > base->spec.slots)
			return HK_EIO;
		chan->taken_seen = taken;
		if (chan->count - taken == base->spec.slots)
			return HK_OK;
	}
	*slot_out = slot_data(chan_slot(chan), len);
	return HK_OK;
}

static void shm_post(struct hk_chan *base, uint32_t len)
{
	struct shm_chan *chan = chan_of(base);
	_Atomic uint64_t *mark = word_at(chan_slot(chan));

	shm_disarm(shm_of(base->net));
	chan->count++;
	/* Pairs with the acquire in shm_peek. */
	atomic_store_explicit(mark, (uint64_t)(uint32_t)chan->count << 32 | len,
			      memory_order_release);
	shm_ring(chan->peer);
}

static enum hk_status shm_peek(struct hk_chan *base, const void **data_out, uint32_t *len_out)
{
	struct shm_chan *chan = chan_of(base);
	char *slot = chan_slot(chan);
	/* Pairs with the release in shm_post. */
	uint64_t mark = atomic_load_explicit(word_at(slot), memory_order_acquire);

	*data_out = NULL;
	if ((uint32_t)(mark >> 32) != (uint32_t)(chan->count + 1))
		return HK_OK;
	if ((uint32_t)mark > base->spec.slot_bytes)
		return HK_EIO;
	*len_out = (uint32_t)mark;
	*data_out = slot_data(slot, *len_out);
	return HK_OK;
}

static void shm_release(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);

	shm_disarm(shm_of(base->net));
	chan->count++;
	/* Pairs with the acquire in shm_reserve. */
	atomic_store_explicit(chan->taken, chan->count, memory_order_release);
	shm_ring(chan->peer);
}

/* ---- the table, and how one begins ---- */

static const struct hk_net_ops shm_ops = {
	.size = sizeof(struct hk_net_ops),
	.name = "shm",
	.close = shm_close,
	.chan_send = shm_chan_send,
	.chan_recv = shm_chan_recv,
	.chan_close = shm_chan_close,
	.reserve = shm_reserve,
	.post = shm_post,
	.peek = shm_peek,
	.release = shm_release,
	.wait = shm_wait,
};

enum hk_status hk__shm_open(const struct hk_shm_spec *spec, struct hk_net **net_out)
{
	const struct hk_alloc *alloc = spec->alloc ? spec->alloc : &hk__alloc_default;
	struct shm_header *own;

	if (spec->rank >= spec->n || spec->bytes < sizeof(struct shm_header))
		return HK_EINVAL;
	struct shm *shm = hk__mem_zalloc(alloc, 1, sizeof(*shm));
	if (!shm)
		return HK_ENOMEM;
	*shm = (struct shm){ .base = { &shm_ops, spec->rank, spec->n },
			     .spec = *spec,
			     .alloc = alloc,
			     .cursor = (sizeof(struct shm_header) + 4095) / 4096 * 4096 };
	shm->segments = hk__mem_zalloc(alloc, spec->n, sizeof(struct shm_header *));
	if (!shm->segments) {
		hk__mem_free(alloc, shm, 1, sizeof(*shm));
		return HK_ENOMEM;
	}
	enum hk_status status = shm_map(shm, spec->rank, &own);
	if (status != HK_OK) {
		hk__net_close(&shm->base);
		return status;
	}
	own->magic = SHM_MAGIC;
	own->entry_count = SHM_ENTRIES;
	*net_out = &shm->base;
	return HK_OK;
}
