/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - channels in shared memory, and what the files here share.
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
 *	| taken: messages released so far, state | head 0 | head 1 | ... | bulk 0 | ...
 *
 * A slot is a head, a few lines, and bulk, pages for a larger message:
 *
 *	| mark (8 bytes) | up to 632 bytes, or nothing |
 *
 * Heads lie together, so that small messages, however many, use little memory,
 * and not in lines next to each other, which processors fetch in pairs: who looks
 * for one message would take the line of the next from its writer.
 * The mark holds the number of the message, its length and kind; it is written
 * last, so a small message is complete with the line that announces it. The
 * sender keeps its own count and looks at `taken` only when its slots run out.
 *
 * A segment may end in a heap. A message that lies in the heap of its sender is
 * lent: the slot holds only where it is, and the receiver reads it there. Other
 * memory of the sender can be lent too if the receiver may read it: directly in
 * the same process, else by process_vm_readv(2), if the system allows that: the
 * sender leaves a random word in the channel's first line, and the receiver tries
 * to read it. A number may be another process to the receiver, even itself: so
 * both have to be in one PID namespace, and nobody else has that word.
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
 * A channel's region is used again once both its ends are closed; `state` says
 * how far that is. That of a sender that died is free at once.
 *
 * The board: beside the segments, one piece of memory that every rank of the
 * machine maps, with a seat for each (board.c):
 *
 *	| state, process | told | count | note 0 | note 1 | ...
 *
 * A rank that has something to say writes it into its own seat, counts `told` of
 * all the others up, and wakes them; who polls looks at its own `told` alone. A
 * rank that is there holds a record lock (fcntl(2)) on one byte of the memory's
 * file, which the system drops when the process ends, however it ends; who
 * waits asks for those locks now and then.
 *
 * What a peer can write is trusted for nothing but content: counts, lengths,
 * and places of channels are checked before use.
 */
#ifndef HK_NET_SHM_SEGMENT_H
#define HK_NET_SHM_SEGMENT_H

#include "net/shm/shm.h"

#include <stdatomic.h>

#define SHM_MAGIC 0x686b7368u /* "hksh" */
#define SHM_LINE 64u
#define SHM_PAGE 4096u
#define SHM_HEAD 640u
#define SHM_INLINE (SHM_HEAD - 8u) /* bytes that fit beside the mark */
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
	_Atomic uint32_t from, from_lane, to_lane;
	_Atomic uint64_t context;
	_Atomic uint32_t slots, slot_bytes;
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

/* Of a channel, for who may use its region again. */
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
	_Atomic uint64_t word_at, word; /* random; where the sender has it, and what it is */
	_Atomic uint32_t space;	    /* of processes, in which pid is the sender; 0: unknown */
	_Atomic uint32_t cancelled; /* what was lent may have changed */
	_Atomic uint32_t reading;   /* a thread reads what was lent: its memory stays */
};

enum {
	READS_UNKNOWN,
	READS_NOTHING,
	READS_SENDER, /* any memory of its process */
	READS_THREAD  /* it is in this process */
};

/* What the slot of a lent message holds. */
struct shm_lent {
	uint64_t at;  /* in the heap of the sender, or an address of its own */
	uint64_t pid; /* 0: in the heap */
};

/* Regions of channels that are closed. */
struct shm_region {
	uint64_t at;
	uint64_t bytes;
	uint32_t from; /* rank of the sender */
};

/* ---- the board ---- */

#define SHM_NOTES 256u /* of a rank, until its first is overwritten */
#define SHM_NOTE_WORDS (HK_NOTE_MAX / 8u)

/* Number 0 while it is written; else its place among all notes of the rank, from 1. */
struct shm_note {
	_Atomic uint64_t number;
	_Atomic uint64_t len;
	_Atomic uint64_t words[SHM_NOTE_WORDS];
};

enum {
	SEAT_EMPTY,
	SEAT_TAKEN,
	SEAT_LOCKED, /* its process holds the lock of the seat */
	SEAT_SHARED, /* one process has several: locks, which are the process's, say nothing */
	SEAT_LEFT
};

struct shm_seat {
	_Alignas(64) _Atomic uint32_t state;
	_Atomic uint32_t pid;
	_Atomic uint32_t space;	 /* in which pid is a process; 0: nobody knows */
	_Atomic uint64_t start;	 /* when that began, in ticks; 0: nobody knows */
	_Alignas(64) _Atomic uint32_t told; /* by others; counts up */
	_Alignas(64) _Atomic uint64_t count; /* of own notes */
	_Alignas(64) struct shm_note notes[SHM_NOTES];
};

/* What this rank knows of another's seat. */
struct shm_other {
	uint64_t heard; /* of its notes */
	bool gone;	/* left or dead, and reported */
	bool dead;
};

struct shm_header {
	uint32_t magic;
	uint32_t entry_count;
	_Atomic uint32_t barriers; /* its owner fences for others before it sleeps */
	_Alignas(64) _Atomic uint32_t asleep;
	_Atomic uint32_t bell;
	_Atomic uint32_t words; /* threads of the owner that wait for words that others store */
	_Alignas(64) struct shm_entry entries[SHM_ENTRIES];
};

struct shm {
	struct hk_net base;
	struct hk_shm_spec spec;
	const struct hk_alloc *alloc;
	struct shm_header **segments; /* mapped so far; NULL: not yet */
	uint64_t cursor;	      /* first byte of the own segment never used */
	struct hk__array regions;	      /* struct shm_region, free or soon */
	bool barriers;		      /* others' barriers reach this process */
	uint64_t pid;
	uint64_t word;	/* random, for peers to try to read */
	uint32_t space; /* in which pid is this process; 0: nobody knows */
	uint32_t bell_seen;
	struct shm_seat *seats;	  /* the board; NULL: there is none */
	struct shm_other *others; /* by seat */
	uint32_t seat;		  /* the own one */
	uint32_t watch_next;	  /* seat whose lock to ask for first */
	const _Atomic uint32_t *told; /* of the own seat, or nobody's */
	_Atomic uint32_t nobody;
	uint32_t told_seen;
};

struct shm_chan {
	struct hk_chan base;
	bool sends;
	struct shm_header *peer; /* whose bell to ring */
	bool fences;		 /* before looking whether it sleeps */
	int peer_bell;
	struct shm_line *line; /* NULL: a sender that has not found it yet */
	uint64_t at;	       /* of the line, in its segment */
	char *heads;
	char *bulk;
	size_t stride; /* of bulk */
	uint32_t next;	     /* slot of the next message */
	uint64_t count;	     /* messages posted, or released */
	uint64_t taken_seen; /* sender: of its last look */
	uint64_t lent_last;  /* sender: number of the last message that was lent */
	uint32_t reads;	     /* sender: of its last look; receiver: as found */
	uint64_t sender_pid; /* receiver: as found, and never asked for again */
	char *bounce;	     /* receiver: a copy of what another process lent */
	uint64_t bounced;    /* the number of that message */
	uint64_t borrowed;   /* receiver: the number of a lent message that was looked at */
	bool pins;	     /* receiver: it has raised `reading` */
};

static inline struct shm *shm_of(struct hk_net *net)
{
	return (struct shm *)net;
}

static inline struct shm_chan *chan_of(struct hk_chan *chan)
{
	return (struct shm_chan *)chan;
}

/* ---- shm.c: segments, waking ---- */

enum hk_status hk__shm_map(struct shm *shm, uint32_t rank, struct shm_header **header_out);
void hk__shm_bell_ring(struct shm_header *peer, int fd, uint32_t asleep);

static inline void chan_ring(const struct shm_chan *chan)
{
	/* Pairs with the one in shm_raise: it sees the message, or we see it asleep. */
	if (chan->fences)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	uint32_t asleep = atomic_load_explicit(&chan->peer->asleep, memory_order_relaxed);
	if (__builtin_expect(asleep != AWAKE, 0))
		hk__shm_bell_ring(chan->peer, chan->peer_bell, asleep);
}

/* Something moved: who is awake need not be woken with a system call. */
static inline void shm_awake(struct shm *shm)
{
	if (!shm->base.armed)
		return;
	atomic_store_explicit(&shm->segments[shm->base.rank]->asleep, AWAKE, memory_order_relaxed);
	shm->base.armed = false;
}

/* ---- board.c ---- */

/* Where numbers of processes mean the same: a PID namespace; 0: nobody knows. */
uint32_t hk__shm_process_space(void);
enum hk_status hk__shm_board_join(struct shm *shm);
void hk__shm_board_leave(struct shm *shm);
void hk__shm_tell(struct hk_net *net, const void *note, uint32_t len);
/* What others told; called when `told` has changed. */
void hk__shm_hear(struct shm *shm);
void hk__shm_watch(struct hk_net *net);
/* A rank that was found dead by other means than its lock. */
void hk__shm_found_dead(struct shm *shm, uint32_t rank);
bool hk__shm_is_dead(const struct shm *shm, uint32_t rank);

/* ---- directory.c ---- */

/*
 * The entry of a key, NULL where there is none, and in *free_out (may be NULL)
 * one where it could be put.
 */
struct shm_entry *hk__shm_entry_find(struct shm_header *header, uint32_t from,
				     const struct hk_chan_key *key, struct shm_place *place_out,
				     struct shm_entry **free_out);
void hk__shm_entry_write(struct shm_entry *entry, const struct hk_chan_spec *spec, uint64_t at);
void hk__shm_entry_clear(struct shm_entry *entry);

/* ---- chan.c ---- */

/* Messages that do not fit in a head begin at a page, if that is no waste. */
static inline size_t chan_align(uint32_t slot_bytes)
{
	return slot_bytes >= SHM_PAGE ? SHM_PAGE : SHM_LINE;
}

/* Some pages apart, so that slots do not all fall on the same lines of a cache. */
static inline size_t chan_stride(uint32_t slot_bytes)
{
	size_t align = chan_align(slot_bytes);

	return ((size_t)slot_bytes + align - 1) / align * align + 3 * align;
}

/* From the first line to the first bulk. */
static inline size_t chan_heads_bytes(const struct hk_chan_spec *spec)
{
	size_t align = chan_align(spec->slot_bytes);

	return (SHM_LINE + (size_t)SHM_HEAD * spec->slots + align - 1) / align * align;
}

static inline size_t chan_bytes(const struct hk_chan_spec *spec)
{
	return chan_heads_bytes(spec) + chan_stride(spec->slot_bytes) * spec->slots;
}

/* Heads are lines: their first word, the mark, is aligned. */
static inline _Atomic uint64_t *head_mark(char *head)
{
	return (_Atomic uint64_t *)(void *)head;
}

enum hk_status hk__shm_chan_send(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out);
enum hk_status hk__shm_chan_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				 struct hk_chan **chan_out);
void hk__shm_chan_close(struct hk_chan *base);
void hk__shm_cancel(struct hk_chan *base);
/* A sender looks for the channel that the receiver has made, or will. */
enum hk_status hk__shm_chan_look_up(struct shm_chan *chan);

/* ---- message.c ---- */

enum hk_status hk__shm_reserve(struct hk_chan *base, uint32_t len, void **slot_out);
void hk__shm_post(struct hk_chan *base, uint32_t len, uint32_t kind);
enum hk_lend hk__shm_lendable(const struct hk_chan *base, const void *data, uint32_t len);
enum hk_status hk__shm_lend(struct hk_chan *base, const void *data, uint32_t len, uint32_t kind,
			    bool *done_out);
bool hk__shm_lent(struct hk_chan *base);
enum hk_status hk__shm_peek(struct hk_chan *base, struct hk_message *message_out);
void hk__shm_unpeek(struct hk_chan *base);
enum hk_status hk__shm_release(struct hk_chan *base);
enum hk_status hk__shm_take(struct hk_chan *base, void *dst, uint32_t cap,
			    struct hk_message *message_out, bool *done_out);

/* chan.c: what users of a channel call */
extern const struct hk_chan_ops hk__shm_chan_ops;

#endif
