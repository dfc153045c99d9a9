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

enum hk_status hk__chans_get(struct hk__chans *chans, bool sends, uint32_t peer, uint32_t from_lane,
			     uint32_t to_lane, struct hk_chan **chan_out)
{
	struct hk_chan_spec spec = { .key = { .peer = hk__chans_rank(chans, peer),
					      .from_lane = from_lane,
					      .to_lane = to_lane,
					      .context = chans->context },
				     .slots = chans->cut.slots,
				     .slot_bytes = (uint32_t)chans->cut.slot_bytes };
	struct hk__hash_entry *entry = hk__hash_get(&chans->index, (uint64_t)peer << 1 | sends,
						    (uint64_t)from_lane << 32 | to_lane);

	if (!entry)
		return HK_ENOMEM;
	if (entry->value != HK_NONE) {
		*chan_out = *(struct hk_chan **)hk__array_at(&chans->open, entry->value);
		return HK_OK;
	}
	struct hk_chan *chan = NULL;
	enum hk_status status = sends ? hk__chan_open_send(chans->net, &spec, &chan)
				      : hk__chan_open_recv(chans->net, &spec, &chan);
	if (status != HK_OK)
		return status;
	struct hk_chan **place = hk__array_push(&chans->open);
	if (!place) {
		hk__chan_close(chan);
		return HK_ENOMEM;
	}
	entry->value = (uint32_t)(chans->open.count - 1);
	*place = *chan_out = chan;
	return HK_OK;
}

void hk__chans_cancel(struct hk__chans *chans)
{
	struct hk_chan **open = chans->open.items;

	for (size_t i = 0; i < chans->open.count; i++)
		hk__chan_cancel(open[i]);
}
