/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - messages: through slots, and lent. */
#include "net/shm/segment.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

static inline char *chan_head(const struct shm_chan *chan)
{
	return chan->heads + (size_t)chan->next * SHM_HEAD;
}

/* The next message is in the next slot. */
static inline void chan_advance(struct shm_chan *chan)
{
	chan->count++;
	if (++chan->next == chan->base.spec.slots)
		chan->next = 0;
}

/* Where the next message lies, if it has len bytes. */
static inline char *chan_data(const struct shm_chan *chan, uint32_t len)
{
	return len <= SHM_INLINE ? chan_head(chan) + (SHM_HEAD - SHM_INLINE)
				 : chan->bulk + chan->next * chan->stride;
}

/* Whether a message could be sent now. */
static enum hk_status chan_free(struct shm_chan *chan, bool *free_out)
{
	uint32_t slots = chan->base.spec.slots;

	*free_out = false;
	if (!chan->line) {
		enum hk_status status = hk__shm_chan_look_up(chan);

		if (status != HK_OK || !chan->line)
			return status;
	}
	if (chan->count - chan->taken_seen == slots) {
		/* Pairs with the release in hk__shm_release: the slot is really free. */
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

enum hk_status hk__shm_reserve(struct hk_chan *base, uint32_t len, void **slot_out)
{
	struct shm_chan *chan = chan_of(base);
	bool is_free;
	enum hk_status status = chan_free(chan, &is_free);

	*slot_out = is_free ? chan_data(chan, len) : NULL;
	return status;
}

static void chan_post(struct shm_chan *chan, uint32_t word)
{
	_Atomic uint64_t *mark = head_mark(chan_head(chan));

	shm_awake(shm_of(chan->base.net));
	chan_advance(chan);
	/* Pairs with the acquire in chan_look. */
	atomic_store_explicit(mark, (uint64_t)(uint32_t)chan->count << 32 | word,
			      memory_order_release);
	chan_ring(chan);
}

void hk__shm_post(struct hk_chan *base, uint32_t len, uint32_t kind)
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

enum hk_lend hk__shm_lendable(const struct hk_chan *base, const void *data, uint32_t len)
{
	if (len <= SHM_INLINE)
		return HK_LEND_NO;
	/*
	 * Even what is read in place need not come faster: a line that is dirty in
	 * its writer's cache takes longer than one that was pushed out.
	 */
	return heap_has((const struct shm *)base->net, data, len) ||
			       ((const struct shm_chan *)base)->reads >= READS_SENDER
		       ? HK_LEND_MAYBE
		       : HK_LEND_NO;
}

enum hk_status hk__shm_lend(struct hk_chan *base, const void *data, uint32_t len, uint32_t kind,
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
	memcpy(chan_data(chan, sizeof(lent)), &lent, sizeof(lent));
	chan_post(chan, MARK_LENT | kind << MARK_KIND_AT | len);
	chan->lent_last = chan->count;
	return HK_OK;
}

bool hk__shm_lent(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);

	if (chan->lent_last <= chan->taken_seen)
		return false;
	/* Pairs with the release in hk__shm_release: what was read is read. */
	uint64_t taken = atomic_load_explicit(&chan->line->taken, memory_order_acquire);
	if (taken <= chan->count) /* else chan_free will say so */
		chan->taken_seen = taken;
	return chan->lent_last > chan->taken_seen;
}

/* Whether its number is the same process here; unknown: the word decides alone. */
static bool space_is_ours(const struct shm *shm, const struct shm_line *line)
{
	uint32_t space = atomic_load_explicit(&line->space, memory_order_relaxed);

	return !space || !shm->space || space == shm->space;
}

/* Whether this process can read the sender's memory; found out once. */
static void chan_try_read(struct shm_chan *chan)
{
	struct shm *shm = shm_of(chan->base.net);
	/* Pairs with the release in hk__shm_chan_look_up. */
	uint64_t pid = atomic_load_explicit(&chan->line->pid, memory_order_acquire), word = 0;
	uint64_t at = atomic_load_explicit(&chan->line->word_at, memory_order_relaxed);
	struct iovec here = { &word, sizeof(word) }, there = { hk__mem_at(at), sizeof(word) };

	if (!pid)
		return;
	chan->sender_pid = pid;
	chan->reads = READS_NOTHING;
	if (shm->spec.threads)
		chan->reads = READS_THREAD;
	else if (space_is_ours(shm, chan->line) &&
		 process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0) == sizeof(word) &&
		 word == atomic_load_explicit(&chan->line->word, memory_order_relaxed))
		chan->reads = READS_SENDER;
	atomic_store_explicit(&chan->line->reads, chan->reads, memory_order_relaxed);
}

/* Whether what was lent is still the sender's to lend, and if not, why. */
static enum hk_status chan_still_lent(const struct shm_chan *chan)
{
	/* Pairs with the one in hk__shm_cancel. */
	atomic_thread_fence(memory_order_acquire);
	if (!atomic_load_explicit(&chan->line->cancelled, memory_order_relaxed))
		return HK_OK;
	/* It may have said why. */
	hk__shm_hear(shm_of(chan->base.net));
	return hk__chan_taken_back(&chan->base);
}

/* The system did not read it, with this error. */
static enum hk_status chan_unreadable(struct shm_chan *chan, int error)
{
	struct hk_why *why = &chan->base.net->why;
	uint32_t rank = chan->base.spec.key.peer;
	enum hk_status status = chan_still_lent(chan);

	if (error == ESRCH) {
		hk__shm_found_dead(shm_of(chan->base.net), rank);
		return hk__why(why, HK_EPEER, "rank %u is gone: its process has ended", rank);
	}
	if (status != HK_OK)
		return status;
	return hk__why(why, HK_EIO,
		       "memory that rank %u sends cannot be read (%s): it has to stay mapped until "
		       "the call is over",
		       rank, strerrordesc_np(error));
}

/* Bytes of another process, wherever that says they are. */
static enum hk_status chan_read(struct shm_chan *chan, const struct shm_lent *lent, void *dst,
				uint32_t len)
{
	for (uint32_t got = 0; got < len;) {
		struct iovec here = { (char *)dst + got, len - got };
		struct iovec there = { hk__mem_at(lent->at + got), len - got };
		ssize_t n = process_vm_readv((pid_t)chan->sender_pid, &here, 1, &there, 1, 0);

		if (n <= 0)
			return chan_unreadable(chan, n < 0 ? errno : EFAULT);
		got += (uint32_t)n;
	}
	return HK_OK;
}

/* Before memory of a thread is read: it stays until unpeek, or is gone already. */
static enum hk_status chan_pin(struct shm_chan *chan)
{
	if (chan->pins)
		return HK_OK;
	chan->pins = true;
	/* Pairs with hk__shm_cancel: one of us sees the other. */
	atomic_store(&chan->line->reading, 1);
	if (!atomic_load(&chan->line->cancelled))
		return HK_OK;
	hk__shm_unpeek(&chan->base);
	return chan_still_lent(chan);
}

void hk__shm_unpeek(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);

	if (!chan->pins)
		return;
	chan->pins = false;
	/* Pairs with the load in reader_await. */
	atomic_store_explicit(&chan->line->reading, 0, memory_order_release);
}

/* Where a lent message lies: in the sender's heap, or memory, or a copy of it. */
static enum hk_status chan_find_lent(struct shm_chan *chan, uint32_t len, void *dst,
				     const void **data_out)
{
	struct shm *shm = shm_of(chan->base.net);
	enum hk_status status = shm->spec.threads ? chan_pin(chan) : chan_still_lent(chan);
	struct shm_lent lent;

	*data_out = NULL;
	if (status != HK_OK)
		return status;
	memcpy(&lent, chan_data(chan, sizeof(lent)), sizeof(lent));
	if (!lent.pid) {
		if (shm->spec.heap_at && lent.at >= shm->spec.heap_at &&
		    lent.at <= shm->spec.bytes && len <= shm->spec.bytes - lent.at)
			*data_out = (const char *)chan->peer + lent.at;
		return HK_OK;
	}
	if (chan->reads == READS_THREAD)
		*data_out = hk__mem_at(lent.at);
	if (chan->reads != READS_SENDER)
		return HK_OK;
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
	/* Pairs with the release in chan_post. */
	uint64_t mark = atomic_load_explicit(head_mark(chan_head(chan)), memory_order_acquire);
	enum hk_status status = HK_OK;

	message_out->data = NULL;
	if ((uint32_t)(mark >> 32) != (uint32_t)(chan->count + 1))
		return HK_OK;
	message_out->len = (uint32_t)mark & MARK_LEN;
	message_out->kind = (uint32_t)mark >> MARK_KIND_AT & (HK_KINDS - 1);
	if (message_out->len > cap)
		return hk__why(&chan->base.net->why, HK_EIO, "rank %u sent %u bytes where %u fit",
			       chan->base.spec.key.peer, message_out->len, cap);
	if (__builtin_expect((uint32_t)mark & MARK_LENT, 0)) {
		chan->borrowed = chan->count + 1;
		status = chan_find_lent(chan, message_out->len, dst, &message_out->data);
	} else
		message_out->data = chan_data(chan, message_out->len);
	if (status == HK_OK && !message_out->data)
		status = hk__why(&chan->base.net->why, HK_EIO, "rank %u sent an invalid message",
				 chan->base.spec.key.peer);
	if (status != HK_OK)
		hk__shm_unpeek(&chan->base);
	return status;
}

enum hk_status hk__shm_peek(struct hk_chan *base, struct hk_message *message_out)
{
	return chan_look(chan_of(base), NULL, base->spec.slot_bytes, message_out);
}

enum hk_status hk__shm_release(struct hk_chan *base)
{
	struct shm_chan *chan = chan_of(base);

	if (__builtin_expect(chan->borrowed == chan->count + 1, 0)) {
		hk__shm_unpeek(base);
		/* Whether they were the sender's until now. */
		enum hk_status status = chan_still_lent(chan);
		if (status != HK_OK)
			return status;
	}
	shm_awake(shm_of(base->net));
	if (__builtin_expect(chan->reads == READS_UNKNOWN, 0))
		chan_try_read(chan);
	chan_advance(chan);
	/* Pairs with the acquire in chan_free and hk__shm_lent. */
	atomic_store_explicit(&chan->line->taken, chan->count, memory_order_release);
	chan_ring(chan);
	return HK_OK;
}

enum hk_status hk__shm_take(struct hk_chan *base, void *dst, uint32_t cap,
			    struct hk_message *message_out, bool *done_out)
{
	enum hk_status status = chan_look(chan_of(base), dst, cap, message_out);

	*done_out = false;
	if (status != HK_OK || !message_out->data)
		return status;
	if (message_out->len && message_out->data != dst)
		memcpy(dst, message_out->data, message_out->len);
	status = hk__shm_release(base);
	*done_out = status == HK_OK;
	return status;
}
