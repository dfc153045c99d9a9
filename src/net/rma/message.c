/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - the engine of one-sided messages, and who asks: requests go out,
 * replies come in.
 */
#include "net/rma/engine.h"

#include "net/auth.h"

/* ---- queues ---- */

enum hk_status hk__queue_create(const struct hk_alloc *alloc, uint32_t n,
				struct hk_queue **queue_out)
{
	struct hk_queue *queue = hk__mem_zalloc(alloc, 1, sizeof(*queue));

	if (!queue)
		return HK_ENOMEM;
	*queue = (struct hk_queue){ .alloc = alloc, .n = n };
	*queue_out = queue;
	return HK_OK;
}

void hk__queue_destroy(struct hk_queue *queue)
{
	if (!queue)
		return;
	hk__mem_free(queue->alloc, queue->last, queue->n, sizeof(uint64_t));
	hk__mem_free(queue->alloc, queue->fetches, queue->n, sizeof(uint64_t));
	hk__mem_free(queue->alloc, queue, 1, sizeof(*queue));
}

/* Ranks that are only reached by memory cost a queue nothing. */
static bool queue_begin(struct hk_queue *queue)
{
	if (!queue->last)
		queue->last = hk__mem_zalloc(queue->alloc, queue->n, sizeof(uint64_t));
	if (!queue->fetches)
		queue->fetches = hk__mem_zalloc(queue->alloc, queue->n, sizeof(uint64_t));
	return queue->last && queue->fetches;
}

bool hk__queue_used(const struct hk_queue *queue)
{
	return queue->last != NULL;
}

static bool queue_landed_at(const struct hk__rma *rma, const struct hk_queue *queue, uint32_t peer)
{
	return rma->peers[peer].landed >= queue->last[peer] && !queue->fetches[peer];
}

bool hk__queue_landed(const struct hk__rma *rma, const struct hk_queue *queue, uint32_t peer,
		      uint32_t *late_out)
{
	if (!rma || !queue->last || !queue->fetches)
		return true;
	*late_out = peer;
	if (peer != HK_NONE)
		return queue_landed_at(rma, queue, peer);
	for (uint32_t p = 0; p < queue->n; p++) {
		*late_out = p;
		if (!queue_landed_at(rma, queue, p))
			return false;
	}
	return true;
}

/* ---- the engine ---- */

enum hk_status hk__rma_create(const struct hk__rma_spec *spec, struct hk__rma **rma_out)
{
	struct hk__rma *rma = hk__mem_zalloc(spec->alloc, 1, sizeof(*rma));

	if (!rma)
		return HK_ENOMEM;
	*rma = (struct hk__rma){ .spec = *spec, .alloc = spec->alloc };
	hk__array_init(&rma->regions, rma->alloc, sizeof(struct rma_region));
	hk__array_init(&rma->fetches, rma->alloc, sizeof(struct rma_fetch));
	hk__array_init(&rma->unused, rma->alloc, sizeof(uint32_t));
	rma->peers = hk__mem_zalloc(rma->alloc, spec->n, sizeof(struct rma_peer));
	if (!rma->peers) {
		hk__rma_destroy(rma);
		return HK_ENOMEM;
	}
	*rma_out = rma;
	return HK_OK;
}

void hk__rma_destroy(struct hk__rma *rma)
{
	if (!rma)
		return;
	for (uint32_t p = 0; rma->peers && p < rma->spec.n; p++) {
		hk__mem_free(rma->alloc, rma->peers[p].requests.stage, RMA_STAGE_BYTES, 1);
		hk__mem_free(rma->alloc, rma->peers[p].replies.stage, RMA_STAGE_BYTES, 1);
	}
	hk__mem_free(rma->alloc, rma->peers, rma->spec.n, sizeof(struct rma_peer));
	hk__array_fini(&rma->regions);
	hk__array_fini(&rma->fetches);
	hk__array_fini(&rma->unused);
	hk__mem_free(rma->alloc, rma, 1, sizeof(*rma));
}

enum hk_status hk__rma_meet(struct hk__rma *rma, uint32_t at)
{
	struct rma_peer *peer = &rma->peers[at];
	void *ctx = rma->spec.ctx;
	enum hk_status status = HK_OK;

	if (peer->met)
		return HK_OK;
	status = rma->spec.open(ctx, at, false, false, &peer->asks);
	if (status == HK_OK)
		status = rma->spec.open(ctx, at, false, true, &peer->answers);
	if (status == HK_OK)
		status = rma->spec.open(ctx, at, true, false, &peer->requests.chan);
	if (status == HK_OK)
		status = rma->spec.open(ctx, at, true, true, &peer->replies.chan);
	peer->met = status == HK_OK;
	return status;
}

enum hk_status hk__rma_region_add(struct hk__rma *rma, void *at, uint64_t bytes, uint32_t *id_out,
				  struct hk_region_key *key_out)
{
	struct rma_region *regions = rma->regions.items, *region;
	unsigned char nonce[HK__NONCE_BYTES];
	uint32_t id = 0;

	_Static_assert(sizeof(*key_out) <= HK__NONCE_BYTES, "a nonce makes a key");
	if (hk__auth_ready() != HK_OK)
		return HK_EIO;
	while (id < rma->regions.count && regions[id].at)
		id++;
	region = id < rma->regions.count ? &regions[id] : hk__array_push(&rma->regions);
	if (!region)
		return HK_ENOMEM;
	hk__auth_nonce(nonce);
	*region = (struct rma_region){ .at = at, .bytes = bytes };
	memcpy(&region->key, nonce, sizeof(region->key));
	*id_out = id;
	*key_out = region->key;
	return HK_OK;
}

void hk__rma_region_remove(struct hk__rma *rma, uint32_t id)
{
	struct rma_region *region = hk__array_at(&rma->regions, id);

	*region = (struct rma_region){ .at = NULL };
}

/* ---- messages ---- */

enum hk_status hk__rma_post(struct rma_box *box, bool *sent_out)
{
	enum hk_status status = HK_OK;
	void *slot = NULL;

	*sent_out = box->len == 0;
	if (*sent_out)
		return HK_OK;
	status = hk__chan_reserve(box->chan, box->len, &slot);
	if (status != HK_OK || !slot)
		return status;
	memcpy(slot, box->stage, box->len);
	hk__chan_post(box->chan, box->len, 0);
	box->len = 0;
	*sent_out = true;
	return HK_OK;
}

enum hk_status hk__rma_stage(struct hk__rma *rma, struct rma_box *box, uint32_t len,
			     void **record_out)
{
	bool sent = true;

	*record_out = NULL;
	if (!box->stage)
		box->stage = hk__mem_zalloc(rma->alloc, RMA_STAGE_BYTES, 1);
	if (!box->stage)
		return HK_ENOMEM;
	hk_assert(len <= RMA_STAGE_BYTES);
	if (len > RMA_STAGE_BYTES - box->len) {
		enum hk_status status = hk__rma_post(box, &sent);

		if (status != HK_OK || !sent)
			return status;
	}
	*record_out = box->stage + box->len;
	box->len += len;
	return HK_OK;
}

enum hk_status hk__rma_reserve(struct rma_box *box, uint32_t len, void **record_out)
{
	bool sent;
	enum hk_status status = hk__rma_post(box, &sent);

	*record_out = NULL;
	if (status != HK_OK || !sent)
		return status;
	return hk__chan_reserve(box->chan, len, record_out);
}

/* ---- what waits for replies ---- */

static uint64_t fetch_tag(uint32_t index, uint32_t turn)
{
	return (uint64_t)turn << 32 | index;
}

/* HK_NONE: no memory. */
static uint32_t fetch_begin(struct hk__rma *rma, const struct rma_fetch *like)
{
	uint32_t *unused = rma->unused.items;
	uint32_t index = (uint32_t)rma->fetches.count, turn = 0;

	if (rma->unused.count) {
		index = unused[--rma->unused.count];
		turn = ((struct rma_fetch *)hk__array_at(&rma->fetches, index))->turn + 1;
	} else {
		/* So that a place can always be given back. */
		bool room = hk__array_push(&rma->unused) != NULL;

		rma->unused.count -= room;
		if (!room || !hk__array_push(&rma->fetches))
			return HK_NONE;
	}
	struct rma_fetch *fetch = hk__array_at(&rma->fetches, index);
	*fetch = *like;
	fetch->turn = turn;
	fetch->queue->fetches[fetch->peer]++;
	return index;
}

static void fetch_end(struct hk__rma *rma, uint32_t index)
{
	struct rma_fetch *fetch = hk__array_at(&rma->fetches, index);
	uint32_t *unused = hk__array_push(&rma->unused);

	hk_assert(unused); /* it was made room for */
	*unused = index;
	fetch->queue->fetches[fetch->peer]--;
	if (fetch->done)
		*fetch->done = true;
	fetch->queue = NULL;
}

void hk__rma_cancel(struct hk__rma *rma)
{
	struct rma_fetch *fetches = rma->fetches.items;
	struct rma_region *regions = rma->regions.items;

	for (uint32_t i = 0; i < rma->fetches.count; i++) {
		if (!fetches[i].queue)
			continue;
		fetches[i].done = NULL; /* it never came */
		fetch_end(rma, i);
	}
	for (size_t i = 0; i < rma->regions.count; i++)
		regions[i].at = NULL;
	for (uint32_t p = 0; p < rma->spec.n; p++)
		rma->peers[p].met = false;
}

/* ---- requests ---- */

static void request_fill(struct rma_request *request, const struct hk_remote *remote,
			 const struct hk_rma_op *op)
{
	*request = (struct rma_request){ .what = (uint8_t)op->what,
					 .amo = (uint8_t)op->amo,
					 .width = (uint8_t)op->width,
					 .id = remote->id,
					 .key = remote->key,
					 .offset = op->offset,
					 .len = op->len,
					 .value = op->value,
					 .compare = op->compare };
}

static void request_sent(struct hk__rma *rma, struct hk_queue *queue, uint32_t at)
{
	queue->last[at] = ++rma->peers[at].sent;
}

/* The next part of a put. */
static enum hk_status put_part(struct hk_remote *remote, struct hk_queue *queue,
			       struct hk_rma_op *op, bool *full)
{
	struct hk__rma *rma = remote->rma;
	struct rma_box *box = &rma->peers[remote->peer].requests;
	uint64_t room = HK_RMA_SLOT_BYTES - sizeof(struct rma_request), left = op->len - op->at;
	uint32_t part = (uint32_t)(left < room ? left : room);
	uint32_t bytes = (uint32_t)(sizeof(struct rma_request) + rma_round(part));
	bool staged = op->later && part <= RMA_STAGE_DATA;
	char *record;
	enum hk_status status = staged ? hk__rma_stage(rma, box, bytes, (void **)&record)
				       : hk__rma_reserve(box, bytes, (void **)&record);

	*full = status == HK_OK && !record;
	if (status != HK_OK || !record)
		return status;
	struct rma_request request;
	request_fill(&request, remote, op);
	request.offset += op->at;
	request.len = part;
	memcpy(record, &request, sizeof(request));
	memcpy(record + sizeof(request), (const char *)op->src + op->at, part);
	/* What pads it is nobody's memory. */
	memset(record + sizeof(request) + part, 0, rma_round(part) - part);
	if (!staged)
		hk__chan_post(box->chan, bytes, 0);
	op->at += part;
	request_sent(rma, queue, remote->peer);
	return HK_OK;
}

static enum hk_status put_start(struct hk_remote *remote, struct hk_queue *queue,
				struct hk_rma_op *op)
{
	while (op->at < op->len) {
		bool full;
		enum hk_status status = put_part(remote, queue, op, &full);

		if (status != HK_OK || full)
			return status != HK_OK ? status : HK_INPROGRESS;
	}
	return HK_OK;
}

/* Of a GET or an atomic; one that fetches waits for its reply. */
static enum hk_status small_start(struct hk_remote *remote, struct hk_queue *queue,
				  const struct hk_rma_op *op)
{
	struct hk__rma *rma = remote->rma;
	struct rma_box *box = &rma->peers[remote->peer].requests;
	bool fetches = op->what == HK_RMA_GET || op->old_out;
	struct rma_request request;
	uint32_t index = HK_NONE;
	void *record;
	bool sent;
	enum hk_status status = hk__rma_stage(rma, box, sizeof(request), &record);

	if (status != HK_OK || !record)
		return status != HK_OK ? status : HK_INPROGRESS;
	if (fetches) {
		struct rma_fetch fetch = { .queue = queue,
					   .peer = remote->peer,
					   .dst = op->what == HK_RMA_GET ? op->dst : NULL,
					   .len = op->len,
					   .old_out = op->old_out,
					   .done = op->done };

		index = fetch_begin(rma, &fetch);
		if (index == HK_NONE) {
			box->len -= (uint32_t)sizeof(request);
			return HK_ENOMEM;
		}
	}
	request_fill(&request, remote, op);
	request.fetches = op->what == HK_RMA_AMO && fetches;
	if (fetches)
		request.tag =
			fetch_tag(index,
				  ((struct rma_fetch *)hk__array_at(&rma->fetches, index))->turn);
	memcpy(record, &request, sizeof(request));
	request_sent(rma, queue, remote->peer);
	/* Where there is no slot it goes with the next poll. */
	return op->later ? HK_OK : hk__rma_post(box, &sent);
}

static enum hk_status message_start(struct hk_remote *remote, struct hk_queue *queue,
				    struct hk_rma_op *op)
{
	if (!queue_begin(queue))
		return HK_ENOMEM;
	return op->what == HK_RMA_PUT ? put_start(remote, queue, op)
				      : small_start(remote, queue, op);
}

const struct hk_remote_ops hk__remote_messages = {
	.size = sizeof(struct hk_remote_ops),
	.name = "messages",
	.reach = HK_REACH_MESSAGES,
	.widths = 4 + 8,
	.start = message_start,
};

/* ---- replies ---- */

static enum hk_status reply_lies(struct hk_why *why, const char *what)
{
	return hk__why(why, HK_EIO, "it sent an invalid one-sided reply: %s", what);
}

static enum hk_status reply_refused(uint64_t reason, struct hk_why *why)
{
	switch (reason) {
	case RMA_NO_REGION:
		return hk__why(why, HK_EINVAL,
			       "it has no such window any more: complete all operations "
			       "(hk_quiet) before hk_win_free");
	case RMA_BEYOND:
		return hk__why(why, HK_EINVAL, "the range is not in its window");
	default:
		return reply_lies(why, "an unknown refusal");
	}
}

/* The fetch a reply is for; NULL: there is none of that peer. */
static struct rma_fetch *fetch_find(const struct hk__rma *rma, uint32_t peer, uint64_t tag)
{
	uint32_t index = (uint32_t)tag;

	if (index >= rma->fetches.count)
		return NULL;
	struct rma_fetch *fetch = hk__array_at(&rma->fetches, index);
	return fetch->queue && fetch->peer == peer && fetch->turn == (uint32_t)(tag >> 32) ? fetch
											   : NULL;
}

static enum hk_status reply_data(struct hk__rma *rma, struct rma_fetch *fetch,
				 const struct rma_reply *reply, const char *data,
				 struct hk_why *why)
{
	if (!fetch->dst || reply->value != fetch->at || !reply->len ||
	    reply->len > fetch->len - fetch->at)
		return reply_lies(why, "data that were not asked for");
	memcpy(fetch->dst + fetch->at, data, reply->len);
	fetch->at += reply->len;
	if (fetch->at == fetch->len)
		fetch_end(rma, (uint32_t)reply->tag);
	return HK_OK;
}

static enum hk_status reply_take(struct hk__rma *rma, uint32_t at, const struct rma_reply *reply,
				 const char *data, struct hk_why *why)
{
	struct rma_peer *peer = &rma->peers[at];

	if (reply->says == RMA_REFUSED)
		return reply_refused(reply->value, why);
	if (reply->says == RMA_APPLIED) {
		if (reply->value < peer->landed || reply->value > peer->sent)
			return reply_lies(why, "it has applied what was never sent");
		peer->landed = reply->value;
		return HK_OK;
	}
	struct rma_fetch *fetch = fetch_find(rma, at, reply->tag);
	if (!fetch)
		return reply_lies(why, "nothing waits for it");
	if (reply->says == RMA_DATA)
		return reply_data(rma, fetch, reply, data, why);
	if (reply->says != RMA_VALUE || fetch->dst)
		return reply_lies(why, "of an unknown kind");
	*fetch->old_out = reply->value;
	fetch_end(rma, (uint32_t)reply->tag);
	return HK_OK;
}

enum hk_status hk__rma_take(struct hk__rma *rma, uint32_t peer, const void *data, uint32_t len,
			    struct hk_why *why)
{
	const char *at = data, *end = at + len;

	while (at < end) {
		struct rma_reply reply;

		if ((size_t)(end - at) < sizeof(reply))
			return reply_lies(why, "it is too short");
		memcpy(&reply, at, sizeof(reply));
		at += sizeof(reply);
		if (rma_round(reply.len) > (size_t)(end - at))
			return reply_lies(why, "it ends too early");
		enum hk_status status = reply_take(rma, peer, &reply, at, why);
		if (status != HK_OK)
			return status;
		at += rma_round(reply.len);
	}
	return HK_OK;
}

enum hk_status hk__rma_hear(struct hk__rma *rma, uint32_t at, bool *moved, struct hk_why *why)
{
	struct rma_peer *peer = &rma->peers[at];

	for (;;) {
		struct hk_message message;
		enum hk_status status = hk__chan_peek(peer->answers, &message);

		if (status != HK_OK || !message.data)
			return status;
		*moved = true;
		status = hk__rma_take(rma, at, message.data, message.len, why);
		if (status == HK_OK)
			status = hk__chan_release(peer->answers);
		if (status != HK_OK)
			return status;
	}
}

/* ---- moving on ---- */

static enum hk_status peer_poll(struct hk__rma *rma, uint32_t at, bool *moved, struct hk_why *why)
{
	struct rma_peer *peer = &rma->peers[at];
	enum hk_status status = hk__rma_hear(rma, at, moved, why);
	bool sent;

	if (status == HK_OK)
		status = hk__rma_serve(rma, at, moved, why);
	if (status == HK_OK && peer->requests.len) {
		status = hk__rma_post(&peer->requests, &sent);
		*moved |= status == HK_OK && sent;
	}
	return status;
}

enum hk_status hk__rma_poll(struct hk__rma *rma, bool *moved, struct hk_why *why,
			    uint32_t *peer_out)
{
	why->text[0] = '\0';
	for (uint32_t p = 0; p < rma->spec.n; p++) {
		if (!rma->peers[p].met)
			continue;
		*peer_out = p;
		enum hk_status status = peer_poll(rma, p, moved, why);
		if (status != HK_OK)
			return status;
	}
	return HK_OK;
}
