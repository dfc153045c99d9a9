/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sendrecv.c - a batch of messages. Slots keep the order in which messages were
 * given: slot k of `in` is the k-th message that the rank sends. Lane 0 sends
 * and lane 1 receives in another order, one that all ranks share: by distance
 * (dst - src modulo n), then by sender, then as given. Every rank can sort its
 * own messages so without knowing the others', and the first message of that
 * order that is not yet delivered can always move, so one slot is enough.
 *
 * Costs (steps / sent / reduced) with one message a rank: 1 / 1 / 0
 */
#include "plan/algo/algo.h"

#include <string.h>

void hk__batch_destroy(const struct hk_alloc *alloc, struct hk__batch *batch)
{
	if (!batch)
		return;
	hk__mem_free(alloc, batch->msgs, batch->nmsgs, sizeof(*batch->msgs));
	hk__mem_free(alloc, batch->first_send, (size_t)batch->n + 1, sizeof(*batch->first_send));
	hk__mem_free(alloc, batch->first_recv, (size_t)batch->n + 1, sizeof(*batch->first_recv));
	hk__mem_free(alloc, batch->sends, batch->nmsgs, sizeof(*batch->sends));
	hk__mem_free(alloc, batch->recvs, batch->nmsgs, sizeof(*batch->recvs));
	hk__mem_free(alloc, batch->send_order, batch->nmsgs, sizeof(*batch->send_order));
	hk__mem_free(alloc, batch->recv_order, batch->nmsgs, sizeof(*batch->recv_order));
	hk__mem_free(alloc, batch->send_slot, batch->nmsgs, sizeof(*batch->send_slot));
	hk__mem_free(alloc, batch->recv_slot, batch->nmsgs, sizeof(*batch->recv_slot));
	hk__mem_free(alloc, batch, 1, sizeof(*batch));
}

typedef uint32_t batch_key(const struct hk__batch *batch, uint32_t i);

/*
 * A stable counting sort by one key below n: order_out gets the numbers of
 * `order` (NULL: 0, 1, ...) by key; first_out[k] the first with key k or more.
 */
static void batch_sort(const struct hk__batch *batch, batch_key *key, const uint32_t *order,
		       uint32_t *order_out, uint32_t *first_out)
{
	memset(first_out, 0, ((size_t)batch->n + 1) * sizeof(*first_out));
	for (uint32_t i = 0; i < batch->nmsgs; i++)
		first_out[key(batch, i)]++;
	uint32_t total = 0;
	for (uint32_t k = 0; k <= batch->n; k++) {
		uint32_t count = first_out[k];

		first_out[k] = total;
		total += count;
	}
	for (uint32_t i = 0; i < batch->nmsgs; i++) {
		uint32_t msg = order ? order[i] : i;

		order_out[first_out[key(batch, msg)]++] = msg;
	}
	/* Each first has moved to its end, which is the next one's first. */
	memmove(first_out + 1, first_out, batch->n * sizeof(*first_out));
	first_out[0] = 0;
}

static uint32_t batch_key_src(const struct hk__batch *batch, uint32_t i)
{
	return batch->msgs[i].src;
}

static uint32_t batch_key_dst(const struct hk__batch *batch, uint32_t i)
{
	return batch->msgs[i].dst;
}

static uint32_t batch_key_distance(const struct hk__batch *batch, uint32_t i)
{
	return hk__mod_sub(batch->msgs[i].dst, batch->msgs[i].src, batch->n);
}

static void batch_sort_all(struct hk__batch *batch)
{
	/* By distance first; sorting stably by rank keeps that order inside. */
	uint32_t *by_distance = batch->send_slot;

	batch_sort(batch, batch_key_distance, NULL, by_distance, batch->first_send);
	batch_sort(batch, batch_key_src, by_distance, batch->send_order, batch->first_send);
	batch_sort(batch, batch_key_dst, by_distance, batch->recv_order, batch->first_recv);
	batch_sort(batch, batch_key_src, NULL, batch->sends, batch->first_send);
	batch_sort(batch, batch_key_dst, NULL, batch->recvs, batch->first_recv);
	for (uint32_t k = 0; k < batch->nmsgs; k++) {
		uint32_t sent = batch->sends[k], received = batch->recvs[k];

		batch->send_slot[sent] = k - batch->first_send[batch->msgs[sent].src];
		batch->recv_slot[received] = k - batch->first_recv[batch->msgs[received].dst];
	}
}

static uint32_t *batch_words(const struct hk_alloc *alloc, size_t count)
{
	return hk__mem_zalloc(alloc, count, sizeof(uint32_t));
}

enum hk_status hk__batch_create(const struct hk_alloc *alloc, uint32_t n, const struct hk_msg *msgs,
				size_t nmsgs, struct hk__batch **batch_out)
{
	if (nmsgs >= UINT32_MAX)
		return HK_ELIMIT;
	struct hk__batch *batch = hk__mem_zalloc(alloc, 1, sizeof(*batch));
	if (!batch)
		return HK_ENOMEM;
	batch->n = n;
	batch->nmsgs = nmsgs;
	batch->msgs = hk__mem_zalloc(alloc, nmsgs, sizeof(*batch->msgs));
	batch->first_send = batch_words(alloc, (size_t)n + 1);
	batch->first_recv = batch_words(alloc, (size_t)n + 1);
	batch->sends = batch_words(alloc, nmsgs);
	batch->recvs = batch_words(alloc, nmsgs);
	batch->send_order = batch_words(alloc, nmsgs);
	batch->recv_order = batch_words(alloc, nmsgs);
	batch->send_slot = batch_words(alloc, nmsgs);
	batch->recv_slot = batch_words(alloc, nmsgs);
	if (!batch->msgs || !batch->first_send || !batch->first_recv || !batch->sends ||
	    !batch->recvs || !batch->send_order || !batch->recv_order || !batch->send_slot ||
	    !batch->recv_slot) {
		hk__batch_destroy(alloc, batch);
		return HK_ENOMEM;
	}
	if (nmsgs)
		memcpy(batch->msgs, msgs, nmsgs * sizeof(*msgs));
	batch_sort_all(batch);
	*batch_out = batch;
	return HK_OK;
}

static uint32_t batch_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	return hk_plan_slots(plan, rank, lane == 0 ? HK_BUF_IN : HK_BUF_OUT);
}

static void batch_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
		       struct hk_step *step)
{
	const struct hk__batch *batch = plan->batch;

	if (lane == 0) {
		uint32_t msg = batch->send_order[batch->first_send[rank] + i];

		step_send(step, (struct hk_port){ batch->msgs[msg].dst, 1 },
			  span(HK_BUF_IN, batch->send_slot[msg]), 1);
	} else {
		uint32_t msg = batch->recv_order[batch->first_recv[rank] + i];

		step_recv(step, (struct hk_port){ batch->msgs[msg].src, 0 },
			  span(HK_BUF_OUT, batch->recv_slot[msg]), 1);
	}
}

const struct hk_algo hk__algo_sendrecv[] = {
	{ .coll = HK_COLL_SENDRECV,
	  .moves = HK_MOVES_BATCH,
	  .flags = HK_ALGO_NOT_INPLACE,
	  .nlanes = 2,
	  .info = { "direct", NULL, "each message straight to its receiver", "1", "1", "0", "0",
		    "any n; cost for one message a rank" },
	  .steps = batch_steps,
	  .step = batch_step },
	{ .info = { .name = NULL } },
};
