/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply.c - one-sided operations by messages, and who is asked: requests of peers are
 * applied to regions of this rank. Nothing in a request is trusted.
 */
#include "net/rma/engine.h"

static enum hk_status request_lies(struct hk_why *why, const char *what)
{
	return hk__why(why, HK_EIO, "it sent an invalid one-sided request: %s", what);
}

/* Whether it may be applied; 0, or why not. */
static enum rma_refusal request_refusal(const struct hk__rma *rma,
					const struct rma_request *request,
					const struct rma_region **region_out)
{
	const struct rma_region *region;
	uint64_t len = request->what == HK_RMA_AMO ? request->width : request->len;

	if (request->id >= rma->regions.count)
		return RMA_NO_REGION;
	region = hk__array_at(&rma->regions, request->id);
	if (!region->at || ((region->key.words[0] ^ request->key.words[0]) |
			    (region->key.words[1] ^ request->key.words[1])))
		return RMA_NO_REGION;
	if (request->offset > region->bytes || len > region->bytes - request->offset)
		return RMA_BEYOND;
	if (request->what == HK_RMA_AMO &&
	    ((uintptr_t)region->at + request->offset) % request->width)
		return RMA_BEYOND;
	*region_out = region;
	return 0;
}

/* Whether a request is of a known form; how many bytes of data follow it. */
static const char *request_fault(const struct rma_request *request, uint64_t room,
				 uint64_t *data_out)
{
	*data_out = 0;
	if (request->what == HK_RMA_PUT) {
		if (request->len > room || rma_round(request->len) > room)
			return "its data end too early";
		*data_out = rma_round(request->len);
	} else if (request->what == HK_RMA_AMO) {
		if (request->amo >= HK_AMO_COUNT || (request->width != 4 && request->width != 8) ||
		    request->fetches > 1)
			return "no such atomic";
	} else if (request->what != HK_RMA_GET || !request->len) {
		return "no such operation";
	}
	return NULL;
}

/* A reply of one record; *room false: for now there is none. */
static enum hk_status reply_small(struct hk__rma *rma, uint32_t peer, const struct rma_reply *reply,
				  bool *room)
{
	void *record;
	enum hk_status status =
		hk__rma_stage(rma, &rma->peers[peer].replies, sizeof(*reply), &record);

	*room = status == HK_OK && record;
	if (*room)
		memcpy(record, reply, sizeof(*reply));
	return status;
}

/* Parts of a GET, as far as there are slots. */
static enum hk_status serve_get(struct hk__rma *rma, uint32_t at, const struct rma_request *request,
				const struct rma_region *region, bool *done)
{
	struct rma_peer *peer = &rma->peers[at];

	*done = false;
	while (peer->answered < request->len) {
		uint64_t left = request->len - peer->answered;
		uint64_t room = HK_RMA_SLOT_BYTES - sizeof(struct rma_reply);
		struct rma_reply reply = { .says = RMA_DATA,
					   .len = (uint32_t)(left < room ? left : room),
					   .tag = request->tag,
					   .value = peer->answered };
		uint32_t bytes = (uint32_t)(sizeof(reply) + rma_round(reply.len));
		char *record;
		enum hk_status status = hk__rma_reserve(&peer->replies, bytes, (void **)&record);

		if (status != HK_OK || !record)
			return status;
		memcpy(record, &reply, sizeof(reply));
		hk__bytes_load(record + sizeof(reply),
			       region->at + request->offset + peer->answered, reply.len);
		memset(record + sizeof(reply) + reply.len, 0, rma_round(reply.len) - reply.len);
		hk__chan_post(peer->replies.chan, bytes, 0);
		peer->answered += reply.len;
	}
	peer->answered = 0;
	*done = true;
	return HK_OK;
}

static enum hk_status serve_amo(struct hk__rma *rma, uint32_t peer,
				const struct rma_request *request, const struct rma_region *region,
				bool *done)
{
	uint64_t old = 0;
	struct hk_rma_op op = { .amo = (enum hk_amo)request->amo,
				.width = request->width,
				.value = request->value,
				.compare = request->compare,
				.old_out = request->fetches ? &old : NULL };
	struct rma_reply *record;

	*done = true;
	if (!request->fetches) {
		(void)hk__word_update(region->at + request->offset, &op);
		return HK_OK;
	}
	/* Room first: an atomic is applied once. */
	enum hk_status status =
		hk__rma_stage(rma, &rma->peers[peer].replies, sizeof(*record), (void **)&record);
	*done = status == HK_OK && record;
	if (!*done)
		return status;
	old = hk__word_update(region->at + request->offset, &op);
	*record = (struct rma_reply){ .says = RMA_VALUE, .tag = request->tag, .value = old };
	return HK_OK;
}

static enum hk_status request_apply(struct hk__rma *rma, uint32_t at,
				    const struct rma_request *request, const char *data, bool *done)
{
	const struct rma_region *region = NULL;
	enum rma_refusal refusal = request_refusal(rma, request, &region);

	*done = true;
	if (refusal)
		return reply_small(rma, at,
				   &(struct rma_reply){ .says = RMA_REFUSED,
							.tag = request->tag,
							.value = (uint64_t)refusal },
				   done);
	if (request->what == HK_RMA_GET)
		return serve_get(rma, at, request, region, done);
	if (request->what == HK_RMA_AMO)
		return serve_amo(rma, at, request, region, done);
	hk__bytes_store(region->at + request->offset, data, request->len);
	return HK_OK;
}

enum hk_status hk__rma_apply(struct hk__rma *rma, uint32_t at, const void *data, uint32_t len,
			     uint32_t *used_out, struct hk_why *why)
{
	const char *next = data, *end = next + len;

	*used_out = 0;
	while (next < end) {
		struct rma_request request;
		uint64_t more;
		bool done;

		if ((size_t)(end - next) < sizeof(request))
			return request_lies(why, "it is too short");
		memcpy(&request, next, sizeof(request));
		const char *fault =
			request_fault(&request, (uint64_t)(end - next) - sizeof(request), &more);
		if (fault)
			return request_lies(why, fault);
		enum hk_status status =
			request_apply(rma, at, &request, next + sizeof(request), &done);
		if (status != HK_OK || !done)
			return status;
		rma->peers[at].applied++;
		next += sizeof(request) + more;
		*used_out += (uint32_t)(sizeof(request) + more);
	}
	return HK_OK;
}

/* Says how far it came, and sends what was staged. */
static enum hk_status serve_tell(struct hk__rma *rma, uint32_t at, bool *moved)
{
	struct rma_peer *peer = &rma->peers[at];
	enum hk_status status = HK_OK;
	bool done = true;

	if (peer->applied != peer->told) {
		status = reply_small(rma, at,
				     &(struct rma_reply){ .says = RMA_APPLIED,
							  .value = peer->applied },
				     &done);
		if (status == HK_OK && done)
			peer->told = peer->applied;
	}
	if (status == HK_OK && peer->replies.len) {
		status = hk__rma_post(&peer->replies, &done);
		*moved |= status == HK_OK && done;
	}
	return status;
}

enum hk_status hk__rma_serve(struct hk__rma *rma, uint32_t at, bool *moved, struct hk_why *why)
{
	struct rma_peer *peer = &rma->peers[at];

	for (;;) {
		struct hk_message message;
		uint32_t used;
		enum hk_status status = hk__chan_peek(peer->asks, &message);

		if (status == HK_OK && !message.data)
			return serve_tell(rma, at, moved);
		if (status == HK_OK && message.len < peer->served)
			status = request_lies(why, "it has become shorter");
		if (status == HK_OK)
			status = hk__rma_apply(rma, at, (const char *)message.data + peer->served,
					       message.len - peer->served, &used, why);
		if (status != HK_OK)
			return status;
		peer->served += used;
		*moved |= used > 0;
		if (peer->served < message.len) {
			hk__chan_unpeek(peer->asks);
			return serve_tell(rma, at, moved);
		}
		peer->served = 0;
		status = hk__chan_release(peer->asks);
		if (status != HK_OK)
			return status;
	}
}
