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
 *	| taken: messages released so far, state | slot 0 | slot 1 | ...
 *
 * and a slot, in lines of 64 bytes:
 *
 *	| mark (8 bytes) | up to 56 bytes, or nothing | ... larger messages ...
 *
 * The mark holds the number of the message, its length and kind; it is written
 * last, so a small message is complete in the very line that announces it. The
 * sender keeps its own count and looks at `taken` only when its slots run out.
 *
 * A segment may end in a heap. A message that lies in the heap of its sender is
 * lent: the slot holds only where it is, and the receiver reads it there. Other
 * memory of the sender can be lent too if the receiver may read it: directly in
 * the same process, else by process_vm_readv(2), if the system allows that: the
 * sender leaves a word of its own in the channel's first line, and the receiver
 * tries to read it.
 *
 * Sleeping: the owner of a segment raises `asleep`, looks once more, and waits
 * on `bell` (or, if it waits for sockets too, on its eventfd). Whoever posts to
 * it, or releases a message of it, looks at `asleep` afterwards. A fence between
 * the two on each side would make one of them see the other; but a fence after
 * a post waits until the line has come over from the other core, which is half
 * the time of a small message. So who sleeps does it for both: membarrier(2)
 * runs a fence on every core that a rank runs on. Where the system lacks it,
 * both sides fence.
 *
 * A channel's room is used again once both its ends are closed; `state` says
 * how far that is.
 *
 * What a peer can write is trusted for nothing but content: counts, lengths,
 * and places of channels are checked before use.
 */
#include "net/shm/shm.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SHM_MAGIC 0x686b7368u /* "hksh" */
#define SHM_LINE 64u
#define SHM_INLINE 56u /* bytes that fit beside the mark */
#define SHM_ENTRIES 4096u

/* A mark: number of the message << 32 | lent | kind | length. */
#define MARK_LENT (1u << 31)
#define MARK_KIND_AT 29
#define MARK_LEN ((1u << MARK_KIND_AT) - 1)
_Static_assert(HK_SLOT_BYTES_MAX <= MARK_LEN, "every length fits a mark");
_Static_assert(HK_KINDS <= 4, "every kind fits a mark");

/*
 * `use` counts up with every change: odd while the entry is valid, 0 if it
 * never was. Who reads an entry looks at it before and after.
 */
struct shm_entry {
	_Atomic uint32_t use;
	_Atomic uint32_t from, from_lane, to_lane, context;
	_Atomic uint32_t slots, slot_bytes;
	uint32_t unused;
	_Atomic uint64_t at;
};

/* What an entry says. */
struct shm_place {
	uint32_t slots, slot_bytes;
	uint64_t at;
};

enum {
	AWAKE,
	ASLEEP_ON_BELL,
	ASLEEP_ON_DESCRIPTOR
};

/* Of a channel, for who may use its room again. */
enum {
	CHAN_NEW,
	CHAN_ATTACHED,
	CHAN_LEFT,
	CHAN_GONE
};

/* The first line of a channel: the sender's, but for taken and reads. */
struct shm_line {
	_Alignas(64) _Atomic uint64_t taken;
	_Atomic uint32_t state;
	_Atomic uint32_t reads; /* READS_...: what the receiver can do */
	_Atomic uint64_t pid;	/* 0: nobody sends yet */
	_Atomic uint64_t word_at, word;
};

enum {
	READS_UNKNOWN,
	READS_NOTHING,
	READS_SENDER
};

/* What the slot of a lent message holds. */
struct shm_lent {
	uint64_t at;  /* in the heap of the sender, or an address of its own */
	uint64_t pid; /* 0: in the heap */
};

/* Room of channels that are closed. */
struct shm_room {
	uint64_t at;
	uint64_t bytes;
};

struct shm_header {
	uint32_t magic;
	uint32_t entry_count;
	_Atomic uint32_t barriers; /* its owner fences for others before it sleeps */
	_Alignas(64) _Atomic uint32_t asleep;
	_Atomic uint32_t bell;
	_Alignas(64) struct shm_entry entries[SHM_ENTRIES];
};

struct shm {
	struct hk_net base;
	struct hk_shm_spec spec;
	const struct hk_alloc *alloc;
	struct shm_header **segments; /* mapped so far; NULL: not yet */
	uint64_t cursor;	      /* first byte of the own segment never used */
	struct hk__array rooms;	      /* struct shm_room, free or soon */
	bool barriers;		      /* others' barriers reach this process */
	uint64_t pid;
	uint64_t word; /* for peers to try to read */
	uint32_t bell_seen;
};

struct shm_chan {
	struct hk_chan base;
	bool sends;
	struct shm_header *peer; /* whose bell to ring */
	bool fences;		 /* before looking whether it sleeps */
	int peer_bell;
	struct shm_line *line; /* NULL: a sender that has not found it yet */
	uint64_t at;	       /* of the line, in its segment */
	char *slots;
	size_t stride;
	uint64_t count;	     /* messages posted, or released */
	uint64_t taken_seen; /* sender: of its last look */
	uint64_t lent_last;  /* sender: number of the last message that was lent */
	uint32_t reads;	     /* sender: of its last look; receiver: as found */
	char *bounce;	     /* receiver: a copy of what another process lent */
	uint64_t bounced;    /* the number of that message */
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

enum hk_status hk__shm_segment_map(int fd, size_t from, size_t bytes, void **at_out)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			(off_t)from);

	if (at == MAP_FAILED)
		return HK_EIO;
	/* Where the system offers them; it is no loss if it does not. */
	(void)madvise(at, bytes, MADV_HUGEPAGE);
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

	hk__array_fini(&shm->rooms);
	hk__mem_free(shm->alloc, shm->segments, net->n, sizeof(struct shm_header *));
	hk__mem_free(shm->alloc, shm, 1, sizeof(*shm));
}

/* ---- waking ---- */

static long shm_futex(_Atomic uint32_t *word, int op, uint32_t value,
		      const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static void bell_ring(struct shm_header *peer, int fd, uint32_t asleep)
{
	static const uint64_t one = 1;

	if (asleep == ASLEEP_ON_DESCRIPTOR) {
		/* A full eventfd is readable already. */
		(void)!write(fd, &one, sizeof(one));
		return;
	}
	atomic_fetch_add_explicit(&peer->bell, 1, memory_order_release);
	shm_futex(&peer->bell, FUTEX_WAKE, 1, NULL);
}

static inline void chan_ring(const struct shm_chan *chan)
{
	/* Pairs with the one in shm_raise: it sees the message, or we see it asleep. */
	if (chan->fences)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	uint32_t asleep = atomic_load_explicit(&chan->peer->asleep, memory_order_relaxed);
	if (__builtin_expect(asleep != AWAKE, 0))
		bell_ring(chan->peer, chan->peer_bell, asleep);
}

/* ---- the directory ---- */

static uint32_t entry_hash(uint32_t from, const struct hk_chan_key *key)
{
	uint32_t x = from * 0x9e3779b1u ^ key->from_lane * 0x85ebca77u ^
		     key->to_lane * 0xc2b2ae3du ^ key->context * 0x27d4eb2fu;

	return (x ^ x >> 15) % SHM_ENTRIES;
}

/* Whether an entry is of that key, and what it says; it may change meanwhile. */
static bool entry_read(const struct shm_entry *entry, uint32_t from, const struct hk_chan_key *key,
		       uint32_t use, struct shm_place *place_out)
{
	bool is = atomic_load_explicit(&entry->from, memory_order_relaxed) == from &&
		  atomic_load_explicit(&entry->from_lane, memory_order_relaxed) == key->from_lane &&
		  atomic_load_explicit(&entry->to_lane, memory_order_relaxed) == key->to_lane &&
		  atomic_load_explicit(&entry->context, memory_order_relaxed) == key->context;

	place_out->slots = atomic_load_explicit(&entry->slots, memory_order_relaxed);
	place_out->slot_bytes = atomic_load_explicit(&entry->slot_bytes, memory_order_relaxed);
	/* Pairs with the releases in entry_write: a new place shows a new use. */
	place_out->at = atomic_load_explicit(&entry->at, memory_order_acquire);
	return is && atomic_load_explicit(&entry->use, memory_order_relaxed) == use;
}

/*
 * The entry of a key, NULL where there is none, and in *free_out (may be NULL)
 * one where it could be put.
 */
static struct shm_entry *entry_find(struct shm_header *header, uint32_t from,
				    const struct hk_chan_key *key, struct shm_place *place_out,
				    struct shm_entry **free_out)
{
	struct shm_entry *unused = NULL, *found = NULL;
	uint32_t first = entry_hash(from, key);

	for (uint32_t i = 0; i < SHM_ENTRIES && !found; i++) {
		struct shm_entry *entry = &header->entries[(first + i) % SHM_ENTRIES];
		/* Pairs with the release in entry_write. */
		uint32_t use = atomic_load_explicit(&entry->use, memory_order_acquire);

		if (use % 2 && entry_read(entry, from, key, use, place_out))
			found = entry;
		else if (use % 2 == 0 && !unused)
			unused = entry;
		if (use == 0)
			break;
	}
	if (free_out)
		*free_out = unused;
	return found;
}

static void entry_write(struct shm_entry *entry, const struct hk_chan_spec *spec, uint64_t at)
{
	uint32_t use = atomic_load_explicit(&entry->use, memory_order_relaxed);

	atomic_store_explicit(&entry->from, spec->key.peer, memory_order_relaxed);
	atomic_store_explicit(&entry->from_lane, spec->key.from_lane, memory_order_relaxed);
	atomic_store_explicit(&entry->to_lane, spec->key.to_lane, memory_order_relaxed);
	atomic_store_explicit(&entry->context, spec->key.context, memory_order_relaxed);
	atomic_store_explicit(&entry->slots, spec->slots, memory_order_relaxed);
	atomic_store_explicit(&entry->slot_bytes, spec->slot_bytes, memory_order_relaxed);
	/* Pair with the acquires in entry_read and entry_find. */
	atomic_store_explicit(&entry->at, at, memory_order_release);
	atomic_store_explicit(&entry->use, use + 1, memory_order_release);
}

/* ---- channels ---- */

static size_t chan_stride(uint32_t slot_bytes)
{
	return SHM_LINE + ((size_t)slot_bytes + SHM_LINE - 1) / SHM_LINE * SHM_LINE;
}

static size_t chan_bytes(const struct hk_chan_spec *spec)
{
	return SHM_LINE + chan_stride(spec->slot_bytes) * spec->slots;
}

/* Slots begin at lines: their first word, the mark, is aligned. */
static _Atomic uint64_t *slot_mark(char *slot)
{
	return (_Atomic uint64_t *)(void *)slot;
}

static void chan_place(struct shm_chan *chan, struct shm_header *header, uint64_t at)
{
	chan->at = at;
	chan->line = (struct shm_line *)(void *)((char *)header + at);
	chan->slots = (char *)header + at + SHM_LINE;
	chan->stride = chan_stride(chan->base.spec.slot_bytes);
}

static enum hk_status chan_create(struct shm *shm, const struct hk_chan_spec *spec, bool sends,
				  struct shm_chan **chan_out)
{
	struct shm_chan *chan = hk__mem_zalloc(shm->alloc, 1, sizeof(*chan));

	if (!chan)
		return HK_ENOMEM;
	*chan = (struct shm_chan){ .base = { .net = &shm->base, .spec = *spec },
				   .sends = sends,
				   .peer_bell = -1 };
	if (shm->spec.bell)
		chan->peer_bell = shm->spec.bell(shm->spec.ctx, spec->key.peer);
	enum hk_status status = shm_map(shm, spec->key.peer, &chan->peer);
	if (status != HK_OK) {
		hk__mem_free(shm->alloc, chan, 1, sizeof(*chan));
		return status;
	}
	/* Who opens its net later than this will only be fenced for too often. */
	chan->fences = !shm->barriers || !atomic_load(&chan->peer->barriers);
	*chan_out = chan;
	return HK_OK;
}

/* Room of that size which nobody uses any more, or new; 0: there is none. */
static uint64_t room_get(struct shm *shm, size_t bytes)
{
	char *own = (char *)shm->segments[shm->base.rank];
	struct shm_room *rooms = shm->rooms.items;

	for (size_t i = 0; i < shm->rooms.count; i++) {
		const struct shm_line *line = (const struct shm_line *)(void *)(own + rooms[i].at);
		/* Pairs with the release in shm_chan_close: the sender is done with it. */
		uint32_t state = atomic_load_explicit(&line->state, memory_order_acquire);

		if (rooms[i].bytes == bytes && state != CHAN_ATTACHED) {
			uint64_t at = rooms[i].at;

			rooms[i] = rooms[--shm->rooms.count];
			return at;
		}
	}
	uint64_t end = shm->spec.heap_at ? shm->spec.heap_at : shm->spec.bytes;
	if (bytes > end - shm->cursor)
		return 0;
	shm->cursor += bytes;
	return shm->cursor - bytes;
}

static enum hk_status shm_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				    struct hk_chan **chan_out)
{
	struct shm *shm = shm_of(net);
	struct shm_header *own = shm->segments[net->rank];
	struct shm_entry *entry;
	struct shm_place place;
	struct shm_chan *chan;

	if (entry_find(own, spec->key.peer, &spec->key, &place, &entry))
		return HK_EINVAL; /* open already */
	if (!entry)
		return HK_ELIMIT;
	enum hk_status status = chan_create(shm, spec, false, &chan);
	if (status != HK_OK)
		return status;
	uint64_t at = room_get(shm, chan_bytes(spec));
	if (!at) {
		hk__mem_free(shm->alloc, chan, 1, sizeof(*chan));
		return HK_ELIMIT;
	}
	chan_place(chan, own, at);
	for (uint32_t i = 0; i < spec->slots; i++)
		atomic_store_explicit(slot_mark(chan->slots + i * chan->stride), 0,
				      memory_order_relaxed);
	memset(chan->line, 0, sizeof(*chan->line)); /* nobody knows of it yet */
	entry_write(entry, spec, at);
	chan_ring(chan); /* it may wait for this channel to appear */
	*chan_out = &chan->base;
	return HK_OK;
}

static enum hk_status shm_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				    struct hk_chan **chan_out)
{
	struct shm_chan *chan;
	enum hk_status status = chan_create(shm_of(net), spec, true, &chan);

	if (status == HK_OK)
		*chan_out = &chan->base;
	return status;
}

/* The room is free again once the sender has let go of it too. */
static void chan_leave_room(struct shm *shm, struct shm_chan *chan)
{
	struct hk_chan_key *key = &chan->base.spec.key;
	struct shm_place place;
	struct shm_entry *entry =
		entry_find(shm->segments[shm->base.rank], key->peer, key, &place, NULL);
	uint32_t expected = CHAN_NEW;

	if (entry) /* a peer may have overwritten it: then nothing is given back */
		atomic_fetch_add_explicit(&entry->use, 1, memory_order_release);
	atomic_compare_exchange_strong(&chan->line->state, &expected, CHAN_GONE);
	struct shm_room *room = entry ? hk__array_push(&shm->rooms) : NULL;
	if (room)
		*room = (struct shm_room){ chan->at, chan_bytes(&chan->base.spec) };
}

static void shm_chan_close(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);
	struct shm *shm = shm_of(base->net);

	if (!chan->sends)
		chan_leave_room(shm, chan);
	else if (chan->line)
		/* Pairs with the acquire in room_get. */
		atomic_store_explicit(&chan->line->state, CHAN_LEFT, memory_order_release);
	hk__mem_free(shm->alloc, chan->bounce, base->spec.slot_bytes, 1);
	hk__mem_free(shm->alloc, chan, 1, sizeof(struct shm_chan));
}

/* A sender looks for the channel that the receiver has made, or will. */
static enum hk_status chan_look_up(struct shm_chan *chan)
{
	struct shm *shm = shm_of(chan->base.net);
	const struct hk_chan_spec *spec = &chan->base.spec;
	uint32_t expected = CHAN_NEW;
	struct shm_place place;

	if (!entry_find(chan->peer, shm->base.rank, &spec->key, &place, NULL))
		return HK_OK;
	if (place.slots != spec->slots || place.slot_bytes != spec->slot_bytes ||
	    place.at % SHM_LINE || place.at < sizeof(struct shm_header) ||
	    place.at > shm->spec.bytes || chan_bytes(spec) > shm->spec.bytes - place.at)
		return hk__why(&shm->base.why, HK_EIO, "rank %u describes a channel that cannot be",
			       spec->key.peer);
	chan_place(chan, chan->peer, place.at);
	if (!atomic_compare_exchange_strong(&chan->line->state, &expected, CHAN_ATTACHED))
		chan->line = NULL; /* closed between two looks: another one may come */
	if (!chan->line)
		return HK_OK;
	atomic_store_explicit(&chan->line->word_at, (uint64_t)(uintptr_t)&shm->word,
			      memory_order_relaxed);
	atomic_store_explicit(&chan->line->word, shm->word, memory_order_relaxed);
	/* Pairs with the acquire in chan_try_read. */
	atomic_store_explicit(&chan->line->pid, shm->pid, memory_order_release);
	return HK_OK;
}

/* ---- sleeping ---- */

static void shm_raise(struct shm *shm, uint32_t how)
{
	struct shm_header *own = shm->segments[shm->base.rank];

	shm->bell_seen = atomic_load_explicit(&own->bell, memory_order_acquire);
	atomic_store_explicit(&own->asleep, how, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (shm->barriers)
		hk_assert(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0);
	shm->base.armed = true;
}

/* Something moved: who is awake need not be woken with a system call. */
static inline void shm_awake(struct shm *shm)
{
	if (!shm->base.armed)
		return;
	atomic_store_explicit(&shm->segments[shm->base.rank]->asleep, AWAKE, memory_order_relaxed);
	shm->base.armed = false;
}

static enum hk_status shm_wait(struct hk_net *net, uint64_t timeout_ns)
{
	struct shm *shm = shm_of(net);

	if (!shm->base.armed) {
		shm_raise(shm, ASLEEP_ON_BELL);
		return HK_OK; /* the caller looks once more before it sleeps */
	}
	struct timespec timeout = { (time_t)(timeout_ns / 1000000000),
				    (long)(timeout_ns % 1000000000) };
	shm_futex(&shm->segments[net->rank]->bell, FUTEX_WAIT, shm->bell_seen, &timeout);
	shm_awake(shm);
	return HK_OK;
}

static int shm_arm(struct hk_net *net)
{
	struct shm *shm = shm_of(net);
	int fd = shm->spec.bell ? shm->spec.bell(shm->spec.ctx, net->rank) : -1;

	if (fd >= 0)
		shm_raise(shm, ASLEEP_ON_DESCRIPTOR);
	return fd;
}

static void shm_disarm(struct hk_net *net)
{
	struct shm *shm = shm_of(net);
	int fd = shm->spec.bell ? shm->spec.bell(shm->spec.ctx, net->rank) : -1;
	uint64_t rings;

	shm_awake(shm);
	if (fd >= 0)
		(void)!read(fd, &rings, sizeof(rings)); /* non-blocking; quiet again */
}

static void shm_kick(struct hk_net *net)
{
	struct shm *shm = shm_of(net);
	struct shm_header *own = shm->segments[net->rank];

	atomic_fetch_add_explicit(&own->bell, 1, memory_order_release);
	shm_futex(&own->bell, FUTEX_WAKE, 1, NULL);
}

static enum hk_status shm_poll(struct hk_net *net)
{
	(void)net; /* peers write where channels look */
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

/* Whether a message could be sent now. */
static enum hk_status chan_free(struct shm_chan *chan, bool *free_out)
{
	uint32_t slots = chan->base.spec.slots;

	*free_out = false;
	if (!chan->line) {
		enum hk_status status = chan_look_up(chan);

		if (status != HK_OK || !chan->line)
			return status;
	}
	if (chan->count - chan->taken_seen == slots) {
		/* Pairs with the release in shm_release: the slot is really free. */
		uint64_t taken = atomic_load_explicit(&chan->line->taken, memory_order_acquire);

		if (taken > chan->count || chan->count - taken > slots)
			return hk__why(&chan->base.net->why, HK_EIO,
				       "rank %u has taken messages that were never sent",
				       chan->base.spec.key.peer);
		chan->taken_seen = taken;
		chan->reads = atomic_load_explicit(&chan->line->reads, memory_order_relaxed);
		if (chan->count - taken == slots)
			return HK_OK;
	}
	*free_out = true;
	return HK_OK;
}

static enum hk_status shm_reserve(struct hk_chan *base, uint32_t len, void **slot_out)
{
	struct shm_chan *chan = chan_of(base);
	bool is_free;
	enum hk_status status = chan_free(chan, &is_free);

	*slot_out = is_free ? slot_data(chan_slot(chan), len) : NULL;
	return status;
}

static void chan_post(struct shm_chan *chan, uint32_t word)
{
	_Atomic uint64_t *mark = slot_mark(chan_slot(chan));

	shm_awake(shm_of(chan->base.net));
	chan->count++;
	/* Pairs with the acquire in shm_peek. */
	atomic_store_explicit(mark, (uint64_t)(uint32_t)chan->count << 32 | word,
			      memory_order_release);
	chan_ring(chan);
}

static void shm_post(struct hk_chan *base, uint32_t len, uint32_t kind)
{
	chan_post(chan_of(base), kind << MARK_KIND_AT | len);
}

static bool heap_has(const struct shm *shm, const void *data, uint32_t len)
{
	const char *own = (const char *)shm->segments[shm->base.rank];
	uintptr_t at = (uintptr_t)data - (uintptr_t)own;

	return shm->spec.heap_at && at >= shm->spec.heap_at && at < shm->spec.bytes &&
	       len <= shm->spec.bytes - at;
}

static enum hk_lend shm_lendable(const struct hk_chan *base, const void *data, uint32_t len)
{
	if (len <= SHM_INLINE)
		return HK_LEND_NO;
	/*
	 * Even what is read in place need not come faster: a line that is dirty in
	 * its writer's cache takes longer than one that was pushed out.
	 */
	return heap_has((const struct shm *)base->net, data, len) ||
			       ((const struct shm_chan *)base)->reads == READS_SENDER
		       ? HK_LEND_MAYBE
		       : HK_LEND_NO;
}

static enum hk_status shm_lend(struct hk_chan *base, const void *data, uint32_t len, uint32_t kind,
			       bool *done_out)
{
	struct shm_chan *chan = chan_of(base);
	struct shm *shm = shm_of(base->net);
	struct shm_lent lent = { (uint64_t)(uintptr_t)data, shm->pid };
	enum hk_status status = chan_free(chan, done_out);

	if (status != HK_OK || !*done_out)
		return status;
	if (heap_has(shm, data, len)) {
		lent.at -= (uint64_t)(uintptr_t)shm->segments[base->net->rank];
		lent.pid = 0;
	}
	memcpy(slot_data(chan_slot(chan), sizeof(lent)), &lent, sizeof(lent));
	chan_post(chan, MARK_LENT | kind << MARK_KIND_AT | len);
	chan->lent_last = chan->count;
	return HK_OK;
}

static bool shm_lent(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);

	if (chan->lent_last <= chan->taken_seen)
		return false;
	/* Pairs with the release in shm_release: what was read is read. */
	uint64_t taken = atomic_load_explicit(&chan->line->taken, memory_order_acquire);
	if (taken <= chan->count) /* else chan_free will say so */
		chan->taken_seen = taken;
	return chan->lent_last > chan->taken_seen;
}

/* Whether this process can read the sender's memory; found out once. */
static void chan_try_read(struct shm_chan *chan)
{
	struct shm *shm = shm_of(chan->base.net);
	/* Pairs with the release in chan_look_up. */
	uint64_t pid = atomic_load_explicit(&chan->line->pid, memory_order_acquire), word = 0;
	uint64_t at = atomic_load_explicit(&chan->line->word_at, memory_order_relaxed);
	struct iovec here = { &word, sizeof(word) },
		     there = { (void *)(uintptr_t)at, sizeof(word) };

	if (!pid)
		return;
	bool reads = pid == shm->pid ||
		     (process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0) == sizeof(word) &&
		      word == atomic_load_explicit(&chan->line->word, memory_order_relaxed));
	chan->reads = reads ? READS_SENDER : READS_NOTHING;
	atomic_store_explicit(&chan->line->reads, chan->reads, memory_order_relaxed);
}

/* Bytes of another process: a peer that lies about them only harms itself. */
static enum hk_status chan_read(struct shm_chan *chan, const struct shm_lent *lent, void *dst,
				uint32_t len)
{
	for (uint32_t got = 0; got < len;) {
		struct iovec here = { (char *)dst + got, len - got };
		struct iovec there = { (void *)(uintptr_t)(lent->at + got), len - got };
		ssize_t n = process_vm_readv((pid_t)lent->pid, &here, 1, &there, 1, 0);

		if (n <= 0)
			return hk__why(&chan->base.net->why, HK_EPEER,
				       "rank %u is gone: its memory cannot be read (error %d)",
				       chan->base.spec.key.peer, errno);
		got += (uint32_t)n;
	}
	return HK_OK;
}

/* Where a lent message lies: in the sender's heap, or memory, or a copy of it. */
static enum hk_status chan_find_lent(struct shm_chan *chan, char *slot, uint32_t len, void *dst,
				     const void **data_out)
{
	struct shm *shm = shm_of(chan->base.net);
	struct shm_lent lent;

	*data_out = NULL;
	memcpy(&lent, slot_data(slot, sizeof(lent)), sizeof(lent));
	if (!lent.pid) {
		if (shm->spec.heap_at && lent.at >= shm->spec.heap_at &&
		    lent.at <= shm->spec.bytes && len <= shm->spec.bytes - lent.at)
			*data_out = (const char *)chan->peer + lent.at;
		return HK_OK;
	}
	if (chan->reads != READS_SENDER)
		return HK_OK;
	if (lent.pid == shm->pid) {
		*data_out = (const void *)(uintptr_t)lent.at;
		return HK_OK;
	}
	if (!dst && !chan->bounce)
		chan->bounce = hk__mem_zalloc(shm->alloc, chan->base.spec.slot_bytes, 1);
	if (!dst && !chan->bounce)
		return HK_ENOMEM;
	*data_out = dst ? dst : chan->bounce;
	if (!dst && chan->bounced == chan->count + 1)
		return HK_OK;
	chan->bounced = dst ? 0 : chan->count + 1;
	return chan_read(chan, &lent, dst ? dst : chan->bounce, len);
}

/* As peek; bytes that have to be fetched are fetched into dst if it is given. */
static enum hk_status chan_look(struct shm_chan *chan, void *dst, uint32_t cap,
				struct hk_message *message_out)
{
	char *slot = chan_slot(chan);
	/* Pairs with the release in chan_post. */
	uint64_t mark = atomic_load_explicit(slot_mark(slot), memory_order_acquire);
	enum hk_status status = HK_OK;

	message_out->data = NULL;
	if ((uint32_t)(mark >> 32) != (uint32_t)(chan->count + 1))
		return HK_OK;
	message_out->len = (uint32_t)mark & MARK_LEN;
	message_out->kind = (uint32_t)mark >> MARK_KIND_AT & (HK_KINDS - 1);
	if (message_out->len > cap)
		return hk__why(&chan->base.net->why, HK_EIO, "rank %u sent %u bytes where %u fit",
			       chan->base.spec.key.peer, message_out->len, cap);
	if (__builtin_expect((uint32_t)mark & MARK_LENT, 0))
		status = chan_find_lent(chan, slot, message_out->len, dst, &message_out->data);
	else
		message_out->data = slot_data(slot, message_out->len);
	if (status == HK_OK && !message_out->data)
		status = hk__why(&chan->base.net->why, HK_EIO,
				 "rank %u sent a message that cannot be", chan->base.spec.key.peer);
	return status;
}

static enum hk_status shm_peek(struct hk_chan *base, struct hk_message *message_out)
{
	return chan_look(chan_of(base), NULL, base->spec.slot_bytes, message_out);
}

static void shm_release(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);

	shm_awake(shm_of(base->net));
	if (__builtin_expect(chan->reads == READS_UNKNOWN, 0))
		chan_try_read(chan);
	chan->count++;
	/* Pairs with the acquire in chan_free and shm_lent. */
	atomic_store_explicit(&chan->line->taken, chan->count, memory_order_release);
	chan_ring(chan);
}

static enum hk_status shm_take(struct hk_chan *base, void *dst, uint32_t cap,
			       struct hk_message *message_out, bool *done_out)
{
	enum hk_status status = chan_look(chan_of(base), dst, cap, message_out);

	*done_out = false;
	if (status != HK_OK || !message_out->data)
		return status;
	if (message_out->data != dst)
		memcpy(dst, message_out->data, message_out->len);
	shm_release(base);
	*done_out = true;
	return HK_OK;
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
	.lendable = shm_lendable,
	.lend = shm_lend,
	.lent = shm_lent,
	.peek = shm_peek,
	.release = shm_release,
	.take = shm_take,
	.poll = shm_poll,
	.wait = shm_wait,
	.arm = shm_arm,
	.disarm = shm_disarm,
	.kick = shm_kick,
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
	*shm = (struct shm){ .base = { .ops = &shm_ops, .rank = spec->rank, .n = spec->n },
			     .spec = *spec,
			     .alloc = alloc,
			     .cursor = (sizeof(struct shm_header) + 4095) / 4096 * 4096 };
	hk__array_init(&shm->rooms, alloc, sizeof(struct shm_room));
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
	shm->barriers =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	atomic_store(&own->barriers, shm->barriers);
	own->magic = SHM_MAGIC;
	own->entry_count = SHM_ENTRIES;
	shm->pid = (uint64_t)getpid();
	shm->word = (uint64_t)(uintptr_t)shm ^ shm->pid << 32;
	*net_out = &shm->base;
	return HK_OK;
}
