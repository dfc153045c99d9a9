/* SPDX-License-Identifier: Apache-2.0 */
/* chans.c - opens channels once and finds them again. */
#include "exec/chans.h"

void hk__chans_init(struct hk__chans *chans, const struct hk_alloc *alloc)
{
	*chans = (struct hk__chans){ .alloc = alloc };
	hk__array_init(&chans->open, alloc, sizeof(struct hk_chan *));
	hk__hash_init(&chans->index, alloc);
}

void hk__chans_fini(struct hk__chans *chans)
{
	for (size_t i = 0; i < chans->open.count; i++)
		hk__chan_close(*(struct hk_chan **)hk__array_at(&chans->open, i));
	hk__array_fini(&chans->open);
	hk__hash_fini(&chans->index);
}

struct hk_chan *hk__chans_find(const struct hk__chans *chans, bool sends, uint32_t peer,
			       uint32_t from_lane, uint32_t to_lane)
{
	const struct hk__hash_entry *entry =
		hk__hash_find(&chans->index, (uint64_t)peer << 1 | sends,
			      (uint64_t)from_lane << 32 | to_lane);

	return entry ? *(struct hk_chan **)hk__array_at(&chans->open, entry->value) : NULL;
}

static enum hk_status chan_make(struct hk__chans *chans, const struct hk__chans_want *want,
				struct hk_chan **chan_out)
{
	struct hk_chan_spec spec = { .key = { .peer = hk__chans_rank(chans, want->peer),
					      .from_lane = want->from_lane,
					      .to_lane = want->to_lane,
					      .context = chans->context },
				     .slots = want->slots ? want->slots : chans->cut.slots,
				     .slot_bytes = want->slot_bytes
							   ? want->slot_bytes
							   : (uint32_t)chans->cut.slot_bytes };
	struct hk_chan *chan = NULL;
	enum hk_status status = want->sends ? hk__chan_open_send(chans->net, &spec, &chan)
					    : hk__chan_open_recv(chans->net, &spec, &chan);

	if (status != HK_OK)
		return status;
	struct hk_chan **place = hk__array_push(&chans->open);
	if (!place) {
		hk__chan_close(chan);
		return HK_ENOMEM;
	}
	*place = *chan_out = chan;
	return HK_OK;
}

enum hk_status hk__chans_open(struct hk__chans *chans, const struct hk__chans_want *want,
			      struct hk_chan **chan_out)
{
	struct hk__hash_entry *entry =
		hk__hash_get(&chans->index, (uint64_t)want->peer << 1 | want->sends,
			     (uint64_t)want->from_lane << 32 | want->to_lane);

	if (!entry)
		return HK_ENOMEM;
	if (entry->value != HK_NONE) {
		*chan_out = *(struct hk_chan **)hk__array_at(&chans->open, entry->value);
		return HK_OK;
	}
	enum hk_status status = chan_make(chans, want, chan_out);
	if (status == HK_OK)
		entry->value = (uint32_t)(chans->open.count - 1);
	else
		hk__hash_remove(&chans->index, entry);
	return status;
}

enum hk_status hk__chans_get(struct hk__chans *chans, bool sends, uint32_t peer, uint32_t from_lane,
			     uint32_t to_lane, struct hk_chan **chan_out)
{
	struct hk__chans_want want = {
		.sends = sends, .peer = peer, .from_lane = from_lane, .to_lane = to_lane
	};

	return hk__chans_open(chans, &want, chan_out);
}

void hk__chans_cancel(struct hk__chans *chans)
{
	struct hk_chan **open = chans->open.items;

	for (size_t i = 0; i < chans->open.count; i++)
		hk__chan_cancel(open[i]);
}
