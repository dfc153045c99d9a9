/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staged_move.c - messages between device memory, chunk by chunk.
 *
 * All messages of a rank to another go through one pipe, in the order of their calls.
 * The host only says when: devices copy, and write words by which hosts see that they
 * have. Between two GPUs of a host a chunk is in a slot of a ring, and what one
 * device writes is what the other's host looks at. Otherwise it is in memory of this
 * rank alone, and goes through a channel just as a message of the host does: the
 * other end cannot tell, and may be one.
 */
#include "group/device/staged.h"

#include <string.h>

/* Chunks of a channel: one that moves, and some that are copied meanwhile. */
#define CHANNEL_CHUNKS 4u

struct hk__pipe {
	struct hk__pipe *next;
	uint32_t peer;
	bool sends;
	uint32_t pass;			   /* of progress: a message before is not through */
	struct hk__ring *ring;		   /* NULL: by a channel */
	struct hk__pinned memory;	   /* of the ring; or words, and chunks */
	const struct hk__ring_word *words; /* by slot: this device writes them */
	hk__cu_ptr words_at;
	uint32_t slots;
	size_t chunk;
	uint32_t copies; /* chunks so far, copied or to be */
	uint32_t copied; /* of these, known to be */
	uint32_t moved;	 /* sends: chunks that the peer, or the channel, has */
	uint32_t messages;
};

static uint32_t word_read(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* ---- pipes ---- */

static void pipe_place(struct hk__pipe *pipe)
{
	size_t offset = 0;

	if (pipe->ring)
		offset = pipe->sends ? offsetof(struct hk__ring, ready)
				     : offsetof(struct hk__ring, free);
	else
		memset(pipe->memory.at, 0, HK__RING_HEAD);
	pipe->words = (const struct hk__ring_word *)(const void *)(pipe->memory.at + offset);
	pipe->words_at = pipe->memory.device_at + offset;
	pipe->slots = pipe->ring ? HK__RING_SLOTS : CHANNEL_CHUNKS;
}

/*
 * Looks how far this device has come; whether it has done all that was enqueued. A
 * slot may have been used again since the last look.
 */
static bool pipe_rests(struct hk__pipe *pipe)
{
	while (pipe->copied != pipe->copies &&
	       (int32_t)(word_read(&pipe->words[pipe->copied % pipe->slots].chunk) - pipe->copied) >
		       0)
		pipe->copied++;
	return pipe->copied == pipe->copies;
}

static enum hk_status pipe_make(struct hk__staging *staging, const struct hk_request *request,
				struct hk_why *why, struct hk__pipe **pipe_out)
{
	struct hk_group *group = staging->group;
	struct hk__pipe *pipe = hk__mem_zalloc(group->alloc, 1, sizeof(*pipe));
	bool sends = request->transfer.sends;
	size_t slot = (size_t)group->chans.cut.slot_bytes;

	if (!pipe)
		return hk__why(why, HK_ENOMEM, "no memory for a message");
	*pipe = (struct hk__pipe){ .peer = request->peer,
				   .sends = sends,
				   .chunk = HK__STAGED_CHUNK,
				   .pass = group->pass - 1 };
	pipe->ring = hk__ring_find(group, sends ? group->rank : request->peer,
				   sends ? request->peer : group->rank);
	/* Channels cut at their slots: so do chunks, and nobody sees them. */
	if (!pipe->ring)
		pipe->chunk = slot < HK__STAGED_CHUNK ? HK__STAGED_CHUNK / slot * slot : slot;
	enum hk_status status =
		pipe->ring ? hk__pinned_get(staging->streams, pipe->ring, HK__RING_BYTES, why,
					    &pipe->memory)
			   : hk__pinned_get(staging->streams, NULL,
					    HK__RING_HEAD + CHANNEL_CHUNKS * pipe->chunk, why,
					    &pipe->memory);
	if (status != HK_OK) {
		hk__mem_free(group->alloc, pipe, 1, sizeof(*pipe));
		return status;
	}
	pipe_place(pipe);
	pipe->next = staging->pipes;
	staging->pipes = pipe;
	*pipe_out = pipe;
	return HK_OK;
}

static enum hk_status pipe_get(struct hk__staged *call, struct hk_why *why)
{
	struct hk__pipe *pipe = call->staging->pipes;
	const struct hk_request *request = &call->request;

	while (pipe && (pipe->peer != request->peer || pipe->sends != request->transfer.sends))
		pipe = pipe->next;
	enum hk_status status = pipe ? HK_OK : pipe_make(call->staging, request, why, &pipe);
	if (status != HK_OK)
		return status;
	hk_assert(pipe);
	call->pipe = pipe;
	call->chunks = (call->bytes + pipe->chunk - 1) / pipe->chunk;
	if (!pipe->ring && !call->chunks)
		call->chunks = 1; /* even nothing is a message of a channel */
	return HK_OK;
}

void hk__staged_close(struct hk__staging *staging)
{
	bool whole = staging->group->failed == HK_OK;

	while (staging->pipes) {
		struct hk__pipe *pipe = staging->pipes;

		staging->pipes = pipe->next;
		hk__pinned_put(staging->streams, &pipe->memory);
		/* All ranks have met since, unless the group has failed. */
		if (pipe->ring && !pipe->sends && whole)
			hk__ring_drop(pipe->ring);
		hk__mem_free(staging->group->alloc, pipe, 1, sizeof(*pipe));
	}
}

/* The last chunk that each slot had. */
static void words_set(struct hk__ring_word *words, uint32_t slots, uint32_t number)
{
	for (uint32_t i = 0; i < slots; i++)
		__atomic_store_n(&words[(number - 1 - i) % slots].chunk, number - i,
				 __ATOMIC_RELEASE);
}

void hk__pipes_set_numbers(struct hk__staging *staging, uint32_t number)
{
	for (struct hk__pipe *pipe = staging->pipes; pipe; pipe = pipe->next) {
		struct hk__ring *ring = pipe->ring;

		hk_assert(pipe_rests(pipe));
		pipe->copies = pipe->copied = pipe->moved = pipe->messages = number;
		if (!ring) {
			words_set((struct hk__ring_word *)(void *)pipe->memory.at, pipe->slots,
				  number);
			continue;
		}
		words_set(ring->ready, pipe->slots, number);
		words_set(ring->free, pipe->slots, number);
		__atomic_store_n(&ring->posted, number, __ATOMIC_RELEASE);
		__atomic_store_n(&ring->taken, number, __ATOMIC_RELEASE);
	}
}

/* ---- chunks ---- */

static char *chunk_at(const struct hk__pipe *pipe, uint32_t number)
{
	if (pipe->ring)
		return hk__ring_slot(pipe->ring, number);
	return pipe->memory.at + HK__RING_HEAD + number % CHANNEL_CHUNKS * pipe->chunk;
}

static size_t chunk_bytes(const struct hk__staged *call, uint64_t i)
{
	uint64_t from = i * call->pipe->chunk, left = call->bytes - from;

	return left < call->pipe->chunk ? (size_t)left : call->pipe->chunk;
}

/* The next chunk of the call, to or from its place; and the word behind it. */
static enum hk_status chunk_enqueue(const struct hk__staged *call, struct hk_why *why)
{
	const struct hk__streams *streams = call->staging->streams;
	const struct hk__pipe *pipe = call->pipe;
	char *device = call->at + call->copied * pipe->chunk, *host = chunk_at(pipe, pipe->copies);
	size_t bytes = chunk_bytes(call, call->copied);
	uint32_t slot = pipe->copies % pipe->slots, lane = pipe->copies % HK__STREAMS_LANES;
	hk__cu_stream stream = pipe->sends ? streams->to_host[lane] : streams->to_device[lane];
	enum hk_status status =
		pipe->sends ? hk__streams_to_host(streams, stream, host, device, bytes, why)
			    : hk__streams_to_device(streams, stream, device, host, bytes, why);

	if (status == HK_OK)
		status = hk__streams_write_value(streams, stream,
						 pipe->words_at +
							 slot * sizeof(struct hk__ring_word),
						 pipe->copies + 1, why);
	return status;
}

static enum hk_status chunk_copy(struct hk__staged *call, struct hk_why *why)
{
	struct hk__streams_visit visit;
	enum hk_status status = hk__streams_enter(call->staging->streams, &visit, why);

	if (status != HK_OK)
		return status;
	status = chunk_enqueue(call, why);
	hk__streams_leave(call->staging->streams, &visit);
	call->copied++;
	call->last = ++call->pipe->copies;
	return status;
}

/* Whether this device has copied all that was enqueued for the call. */
static bool call_copied(const struct hk__staged *call)
{
	(void)pipe_rests(call->pipe);
	return call->copied == call->chunks &&
	       (!call->chunks || (int32_t)(call->pipe->copied - call->last) >= 0);
}

/* ---- through a ring ---- */

/* What is sent is what is received, or nothing is. */
static enum hk_status note_read(struct hk__staged *call, struct hk_why *why)
{
	struct hk__pipe *pipe = call->pipe;
	const struct hk__ring_note *note = &pipe->ring->notes[pipe->messages % HK__RING_NOTES];
	uint64_t bytes = note->bytes;
	uint32_t tag = note->tag, expected = call->request.sig.tag;

	if (bytes != call->bytes || tag != expected)
		return hk__why(why, HK_EMISMATCH,
			       "%llu bytes with tag %u, but rank %u sends %llu bytes with tag %u",
			       (unsigned long long)call->bytes, expected, pipe->peer,
			       (unsigned long long)bytes, tag);
	call->noted = true;
	__atomic_store_n(&pipe->ring->taken, ++pipe->messages, __ATOMIC_RELEASE);
	return HK_OK;
}

static void note_write(struct hk__staged *call)
{
	struct hk__pipe *pipe = call->pipe;

	pipe->ring->notes[pipe->messages % HK__RING_NOTES] =
		(struct hk__ring_note){ call->bytes, call->request.sig.tag };
	call->noted = true;
	__atomic_store_n(&pipe->ring->posted, ++pipe->messages, __ATOMIC_RELEASE);
}

static enum hk_status ring_note(struct hk__staged *call, bool *moved, struct hk_why *why)
{
	struct hk__pipe *pipe = call->pipe;

	if (call->noted)
		return HK_OK;
	if (pipe->sends) {
		if (pipe->messages - word_read(&pipe->ring->taken) >= HK__RING_NOTES)
			return HK_OK;
		note_write(call);
	} else {
		if (word_read(&pipe->ring->posted) == pipe->messages)
			return HK_OK;
		enum hk_status status = note_read(call, why);
		if (status != HK_OK)
			return status;
	}
	*moved = true;
	return HK_OK;
}

/* Whether the next chunk may be copied: to a slot that is free, or from one that is full. */
static bool ring_open(struct hk__pipe *pipe)
{
	const struct hk__ring *ring = pipe->ring;

	if (!pipe->sends)
		return word_read(&ring->ready[pipe->copies % HK__RING_SLOTS].chunk) ==
		       pipe->copies + 1;
	while (pipe->moved != pipe->copies &&
	       word_read(&ring->free[pipe->moved % HK__RING_SLOTS].chunk) == pipe->moved + 1)
		pipe->moved++;
	return pipe->copies - pipe->moved < HK__RING_SLOTS;
}

static enum hk_status ring_poll(struct hk__staged *call, bool *moved, struct hk_why *why)
{
	enum hk_status status = ring_note(call, moved, why);

	while (status == HK_OK && call->noted && call->copied < call->chunks &&
	       ring_open(call->pipe)) {
		status = chunk_copy(call, why);
		*moved = true;
	}
	return status;
}

/* ---- through a channel ---- */

/* Moves a chunk through the channel; done_out: all of it. */
static enum hk_status channel_chunk(struct hk__staged *call, uint32_t number, bool *moved,
				    bool *done_out)
{
	struct hk__transfer *transfer = &call->request.transfer;
	bool stepped = false;

	if (!call->moving) {
		transfer->at = chunk_at(call->pipe, number);
		transfer->left = chunk_bytes(call, call->moved);
		transfer->begun = false;
		call->moving = true;
	}
	enum hk_status status = hk__transfer_poll(transfer, &stepped);
	*moved |= stepped;
	*done_out = status == HK_OK;
	if (*done_out) {
		call->moving = false;
		call->moved++;
		*moved = true;
	}
	return status == HK_INPROGRESS ? HK_OK : status;
}

static enum hk_status channel_send(struct hk__staged *call, bool *moved, struct hk_why *why)
{
	struct hk__pipe *pipe = call->pipe;
	enum hk_status status = HK_OK;
	bool done = true;

	while (status == HK_OK && call->copied < call->chunks &&
	       pipe->copies - pipe->moved < CHANNEL_CHUNKS)
		status = chunk_copy(call, why);
	while (status == HK_OK && done && call->moved < call->copied &&
	       (pipe_rests(pipe) || (int32_t)(pipe->copied - pipe->moved) > 0)) {
		status = channel_chunk(call, pipe->moved, moved, &done);
		pipe->moved += done;
	}
	return status;
}

static enum hk_status channel_receive(struct hk__staged *call, bool *moved, struct hk_why *why)
{
	struct hk__pipe *pipe = call->pipe;
	enum hk_status status = HK_OK;
	bool done = true;

	while (status == HK_OK && done && call->moved < call->chunks &&
	       (pipe_rests(pipe) || pipe->copies - pipe->copied < CHANNEL_CHUNKS)) {
		status = channel_chunk(call, pipe->copies, moved, &done);
		if (status == HK_OK && done)
			status = chunk_copy(call, why);
	}
	return status;
}

static enum hk_status channel_poll(struct hk__staged *call, bool *moved, struct hk_why *why)
{
	struct hk_request *request = &call->request;

	enum hk_status status = hk__p2p_begin(request, moved);

	if (status != HK_OK)
		return status;
	return call->pipe->sends ? channel_send(call, moved, why)
				 : channel_receive(call, moved, why);
}

/* ---- both ---- */

/* Whether the next message may begin: nothing of this one has to go before it. */
static bool call_is_through(const struct hk__staged *call)
{
	if (call->pipe->ring)
		return call->noted && call->copied == call->chunks;
	return call->moved == call->chunks;
}

static bool call_is_over(const struct hk__staged *call)
{
	return call_is_through(call) && call_copied(call);
}

static enum hk_status call_open(struct hk__staged *call, struct hk_why *why)
{
	struct hk__streams_visit visit;
	enum hk_status status = hk__streams_enter(call->staging->streams, &visit, why);

	if (status != HK_OK)
		return status;
	status = pipe_get(call, why);
	hk__streams_leave(call->staging->streams, &visit);
	return status;
}

static enum hk_status call_poll(struct hk__staged *call, bool *moved, struct hk_why *why)
{
	struct hk__world *world = call->staging->group->world;
	enum hk_status status =
		call->pipe->ring ? ring_poll(call, moved, why) : channel_poll(call, moved, why);

	if (!pipe_rests(call->pipe))
		world->copies = HK__COPIES_RUN;
	else if (world->copies == HK__COPIES_NONE)
		world->copies = HK__COPIES_AWAITED;
	return status;
}

enum hk_status hk__staged_poll(struct hk_request *request, bool *moved)
{
	struct hk__staged *call = request->staged;
	struct hk_group *group = request->group;
	struct hk_why *why = &group->world->net->why;
	enum hk_status status = call->pipe ? HK_OK : call_open(call, why);

	if (status != HK_OK)
		return status;
	if (call->pipe->pass == group->pass)
		return HK_INPROGRESS;
	if (request->held && !hk__staged_begun(request)) {
		call->pipe->pass = group->pass;
		return HK_INPROGRESS;
	}
	status = call_poll(call, moved, why);
	if (status == HK_INPROGRESS) /* it was not begun: none overtakes it */
		call->pipe->pass = group->pass;
	if (status != HK_OK)
		return status;
	if (!call_is_through(call))
		call->pipe->pass = group->pass;
	else
		hk__p2p_end(request);
	return call_is_over(call) ? HK_OK : HK_INPROGRESS;
}
