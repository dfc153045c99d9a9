/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - the transport contract: what an executor asks of shared memory, TCP
 * or any other way to move bytes between two ranks.
 *
 * A net is one rank's end of a transport; one thread at a time uses it. It
 * opens channels, each one way, between this rank and a peer. A channel is a
 * FIFO of messages with a fixed number of slots; a slot takes one message of
 * up to slot_bytes. Nothing here blocks but wait(), and cancel() for the length
 * of a copy.
 *
 * The sender
 *   reserve  the slot for a message of len bytes, NULL while all are taken.
 *            Reserving again before post gives the same slot.
 *   post     hands the reserved slot over. All that was written before is
 *            seen by the peer after its peek (I11). `kind` (0...3) is the
 *            user's and arrives with the message.
 *   lend     instead of reserve and post: hands over a message that stays in
 *            the sender's own memory, unchanged, until lent() says that nothing
 *            is out any more (nor has anything posted to be pushed on from
 *            here). lendable() says whether the transport can do that with that
 *            memory, and gains from it. *done_out false: all slots are taken.
 *   lent     whether this rank is still needed for what it posted or lent on
 *            the channel: memory that may still be read, bytes that poll has
 *            yet to hand to the system. No operation is over before.
 *
 * The receiver
 *   peek     the oldest message, NULL where there is none. Peeking again
 *            before release gives the same message. Memory that a thread of this
 *            process has lent is pinned then: its cancel waits. So whoever peeked
 *            only reads what it was given, waits for nothing, and then releases
 *            or unpeeks. HK_EREVOKED: its sender withdrew the message.
 *   unpeek   leaves the message for later: what peek gave is not used any more.
 *   release  frees its slot (I3: not before the step that took it is over).
 *            HK_EREVOKED: its sender withdrew what it had lent, so what was read
 *            may be wrong.
 *   take     instead of peek and release: moves the oldest message of up to
 *            cap bytes into dst, at its own pace. Once called, it is called
 *            again with the same arguments until *done_out; dst belongs to the
 *            transport until then. A longer message is HK_EIO.
 *
 * Both
 *   cancel   gives the channel up: from now on no memory of the caller is read
 *            or written for it, lent or being taken into, and no peer that
 *            reads lent memory takes it for good: the caller may unmap it. Waits
 *            for a thread that is reading, which ends as it waits for nothing.
 *            The channel can only be closed then.
 *   poll     moves what the transport itself has to move (TCP reads and
 *            writes its sockets here). Called before looking at channels.
 *   wait     sleeps until a peer may have posted or released something since
 *            the last call that found nothing, or until the timeout. The first
 *            call only arms: it returns at once, the caller looks once more,
 *            and calls again.
 *   arm      as the first call of wait, for who sleeps on several nets: gives
 *            a descriptor that poll(2) finds readable when wait would return,
 *            -1 where there is none. disarm ends it.
 *   kick     wakes who sleeps in wait: the one call that another thread may
 *            make.
 *
 * Beside messages
 *   tell     hands a note to every rank that this net has to do with by now:
 *            those of the machine, those there is a connection to. Each gets
 *            it at most once; one who does not is lost, or will be. Notes do
 *            not pass messages, nor messages notes: what was posted before a
 *            note may be seen after it.
 *   untold   whether a note still waits to be written, behind part of a message:
 *            for who is about to poll no more.
 *   watch    looks for peers that are gone. Called now and then, while this
 *            rank waits: a rank that does not wait need not know.
 * What the net finds, in poll, wait or watch, it reports to hk_net.event: notes
 * of peers, and peers that are gone, each once. Nothing of the net is called
 * from there but tell.
 *
 * Both ends of a channel are opened with the same key and geometry, in any
 * order; the receiving end makes it, the sending end may have to wait: until
 * then reserve() gives NULL. No length, index or offset is taken from a peer
 * unchecked: an invalid message is HK_EIO from peek(), never an assert.
 * A peer that is gone is HK_EPEER from any call about it, and hk__net_why says
 * more.
 */
#ifndef HK_NET_NET_H
#define HK_NET_NET_H

#include "base/base.h"

struct hk_net;
struct hk_chan;

/* Which channel: unique between two ranks. */
struct hk_chan_key {
	uint32_t peer;		/* the rank at the other end */
	uint32_t from_lane;	/* of the sender */
	uint32_t to_lane;	/* of the receiver */
	uint64_t context;	/* tells users of a net apart: a group, a plan */
};

/* For tables of channels. */
static inline uint32_t hk_chan_context_hash(const struct hk_chan_key *key)
{
	return (uint32_t)((key->context * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

struct hk_chan_spec {
	struct hk_chan_key key;
	uint32_t slots;		/* at least HK_SLOTS_MIN */
	uint32_t slot_bytes;	/* at most HK_SLOT_BYTES_MAX */
};

#define HK_SLOT_BYTES_MAX (1u << 28)
#define HK_KINDS 4u		/* of messages */

enum hk_lend {
	HK_LEND_NO,		/* it cannot, or a copy is cheaper */
	HK_LEND_GAINS,		/* cheaper than a copy */
	HK_LEND_MAYBE		/* that depends on the machine: measure */
};

/* A message as its receiver sees it; data NULL: none yet. */
struct hk_message {
	const void *data;
	uint32_t len;
	uint32_t kind;
};

/* ---- what a net reports of its own accord ---- */

#define HK_NOTE_MAX 48u		/* bytes */

enum hk_net_what {
	HK_NET_TOLD,		/* a note came */
	HK_NET_LEFT,		/* it closed its end, as one does when all is done */
	HK_NET_LOST,		/* it cannot be reached any more; it may live */
	HK_NET_DEAD		/* its process has ended */
};

struct hk_net_event {
	enum hk_net_what what;
	uint32_t rank;		/* who told, left or is gone */
	const char *why;	/* LOST and DEAD: one line, without who it is about */
	const void *note;	/* TOLD: valid until the handler returns */
	uint32_t len;
};

struct hk_net_ops {
	size_t size;		/* sizeof the table the transport was built with */
	const char *name;	/* "shm", ... */
	void (*close)(struct hk_net *net);
	enum hk_status (*chan_send)(struct hk_net *net, const struct hk_chan_spec *spec,
				    struct hk_chan **chan_out);
	enum hk_status (*chan_recv)(struct hk_net *net, const struct hk_chan_spec *spec,
				    struct hk_chan **chan_out);
	enum hk_status (*poll)(struct hk_net *net);
	enum hk_status (*wait)(struct hk_net *net, uint64_t timeout_ns);
	int (*arm)(struct hk_net *net);
	void (*disarm)(struct hk_net *net);
	void (*kick)(struct hk_net *net);
	void (*tell)(struct hk_net *net, const void *note, uint32_t len);
	bool (*untold)(const struct hk_net *net);
	void (*watch)(struct hk_net *net);
};

/* Of channels; a net that hands out channels of other nets has none of these. */
struct hk_chan_ops {
	size_t size;		/* sizeof the table the transport was built with */
	bool shared;		/* the receiver reads the very slot that was written */
	void (*close)(struct hk_chan *chan);
	void (*cancel)(struct hk_chan *chan);
	enum hk_status (*reserve)(struct hk_chan *chan, uint32_t len, void **slot_out);
	void (*post)(struct hk_chan *chan, uint32_t len, uint32_t kind);
	enum hk_lend (*lendable)(const struct hk_chan *chan, const void *data, uint32_t len);
	enum hk_status (*lend)(struct hk_chan *chan, const void *data, uint32_t len, uint32_t kind,
			       bool *done_out);
	bool (*lent)(struct hk_chan *chan);
	enum hk_status (*peek)(struct hk_chan *chan, struct hk_message *message_out);
	void (*unpeek)(struct hk_chan *chan); /* NULL: what was peeked at pins nothing */
	enum hk_status (*release)(struct hk_chan *chan);
	enum hk_status (*take)(struct hk_chan *chan, void *dst, uint32_t cap,
			       struct hk_message *message_out, bool *done_out);
};

/* First member of every transport's own struct. */
struct hk_net {
	const struct hk_net_ops *ops;
	uint32_t rank;
	uint32_t n;
	/*
	 * shm: asleep was raised, and nothing was posted or released since. Who
	 * sleeps on a descriptor of arm() has to arm again where this is false.
	 */
	bool armed;
	struct hk_why why;	/* of the last HK_EPEER or HK_EIO */
	uint64_t moved;		/* counts up whenever part of a message came or went: for who
				   sees no whole one yet, and would fall asleep */
	uint64_t watched;	/* when its peers were last looked after */
	void (*event)(void *ctx, const struct hk_net_event *event); /* NULL: nobody asks */
	void *event_ctx;
};

struct hk_chan {
	const struct hk_chan_ops *ops;
	struct hk_net *net;
	struct hk_chan_spec spec;
	uint32_t pass;		/* its user's, to remember something about it, */
	uint32_t bytes;		/* of the last message, */
	uint64_t messages;	/* and how many, if they are counted */
};

/* ---- what users call; nobody else touches ->ops ---- */

void hk__net_close(struct hk_net *net);	/* accepts NULL; channels are closed */
enum hk_status hk__chan_open_send(struct hk_net *net, const struct hk_chan_spec *spec,
				  struct hk_chan **chan_out);
enum hk_status hk__chan_open_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				  struct hk_chan **chan_out);
void hk__chan_close(struct hk_chan *chan);
/* For transports: HK_EREVOKED, as its peer took back what it had lent, and net->why. */
enum hk_status hk__chan_taken_back(const struct hk_chan *chan);

static inline enum hk_status hk__chan_reserve(struct hk_chan *chan, uint32_t len, void **slot_out)
{
	hk_assert(len <= chan->spec.slot_bytes);
	return chan->ops->reserve(chan, len, slot_out);
}

static inline void hk__chan_post(struct hk_chan *chan, uint32_t len, uint32_t kind)
{
	chan->ops->post(chan, len, kind);
}

static inline enum hk_lend hk__chan_lendable(const struct hk_chan *chan, const void *data,
						 uint32_t len)
{
	return chan->ops->lendable(chan, data, len);
}

static inline enum hk_status hk__chan_lend(struct hk_chan *chan, const void *data, uint32_t len,
					   uint32_t kind, bool *done_out)
{
	hk_assert(len <= chan->spec.slot_bytes);
	return chan->ops->lend(chan, data, len, kind, done_out);
}

static inline bool hk__chan_lent(struct hk_chan *chan)
{
	return chan->ops->lent(chan);
}

static inline enum hk_status hk__chan_peek(struct hk_chan *chan, struct hk_message *message_out)
{
	return chan->ops->peek(chan, message_out);
}

static inline void hk__chan_unpeek(struct hk_chan *chan)
{
	if (chan->ops->unpeek)
		chan->ops->unpeek(chan);
}

static inline enum hk_status hk__chan_release(struct hk_chan *chan)
{
	return chan->ops->release(chan);
}

static inline void hk__chan_cancel(struct hk_chan *chan)
{
	chan->ops->cancel(chan);
}

static inline enum hk_status hk__chan_take(struct hk_chan *chan, void *dst, uint32_t cap,
					   struct hk_message *message_out, bool *done_out)
{
	return chan->ops->take(chan, dst, cap, message_out, done_out);
}

/* Whether the receiver reads the very slot that was written. */
static inline bool hk__chan_shared(const struct hk_chan *chan)
{
	return chan->ops->shared;
}

static inline const char *hk__net_name(const struct hk_net *net)
{
	return net->ops->name;
}

static inline int hk__net_arm(struct hk_net *net)
{
	return net->ops->arm(net);
}

static inline void hk__net_disarm(struct hk_net *net)
{
	net->ops->disarm(net);
}

static inline enum hk_status hk__net_poll(struct hk_net *net)
{
	return net->ops->poll(net);
}

static inline void hk__net_kick(struct hk_net *net)
{
	net->ops->kick(net);
}

static inline void hk__net_tell(struct hk_net *net, const void *note, uint32_t len)
{
	hk_assert(len <= HK_NOTE_MAX);
	net->ops->tell(net, note, len);
}

static inline bool hk__net_untold(const struct hk_net *net)
{
	return net->ops->untold(net);
}
bool hk__no_untold(const struct hk_net *net); /* of nets that tell at once: false */

static inline void hk__net_watch(struct hk_net *net)
{
	net->ops->watch(net);
}

/* For transports: says what was found, to who asks. */
static inline void hk__net_report(struct hk_net *net, const struct hk_net_event *event)
{
	if (net->event)
		net->event(net->event_ctx, event);
}

static inline enum hk_status hk__net_wait(struct hk_net *net, uint64_t timeout_ns)
{
	return net->ops->wait(net, timeout_ns);
}

#endif
