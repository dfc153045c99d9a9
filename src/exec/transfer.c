/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c - a run of bytes from one rank to another, slot by slot. */
#include "exec/exec.h"
#include "exec/stream.h"
#include "exec/trace.h"

#include <string.h>

static enum hk_status transfer_send(struct hk__transfer *transfer, uint32_t len, bool *done_out)
{
	void *slot;
	enum hk_status status;

	enum hk_lend lend = hk__chan_lendable(transfer->chan, transfer->at, len);
	if (lend == HK_LEND_GAINS || (lend == HK_LEND_MAYBE && transfer->method == HK__COPY_LENT))
		return hk__chan_lend(transfer->chan, transfer->at, len, 0, done_out);
	status = hk__chan_reserve(transfer->chan, len, &slot);
	*done_out = status == HK_OK && slot;
	if (*done_out) {
		if (transfer->method == HK__COPY_STREAMED)
			hk__stream(slot, transfer->at, len);
		else if (len)
			memcpy(slot, transfer->at, len);
		hk__chan_post(transfer->chan, len, 0);
	}
	return status;
}

static enum hk_status transfer_receive(struct hk__transfer *transfer, uint32_t len, bool *done_out)
{
	struct hk_message message;
	enum hk_status status =
		hk__chan_take(transfer->chan, transfer->at, len, &message, done_out);

	if (status != HK_OK || !*done_out || message.len == len)
		return status;
	return hk__why(&transfer->chan->net->why, HK_EIO,
		       "rank %u sent %u bytes where %u were expected: do both ends give the same "
		       "count and type?",
		       transfer->chan->spec.key.peer, message.len, len);
}

enum hk_status hk__transfer_poll(struct hk__transfer *transfer, bool *moved_out)
{
	uint32_t slot = transfer->chan->spec.slot_bytes;
	bool done = true;

	*moved_out = false;
	while (transfer->left || !transfer->begun) {
		uint32_t len = transfer->left < slot ? (uint32_t)transfer->left : slot;
		uint64_t start = transfer->trace ? hk__now_ns() : 0;
		enum hk_status status = transfer->sends ? transfer_send(transfer, len, &done)
							: transfer_receive(transfer, len, &done);

		if (transfer->trace)
			hk__trace_message(transfer, start, len, status == HK_OK && done);
		if (status != HK_OK || !done)
			return status == HK_OK ? HK_INPROGRESS : status;
		*moved_out = transfer->begun = true;
		transfer->at += len;
		transfer->left -= len;
	}
	return transfer->sends && hk__chan_lent(transfer->chan) ? HK_INPROGRESS : HK_OK;
}
