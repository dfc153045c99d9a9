/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - the thin wrappers that are not on the path of a message. */
#include "net/net.h"

void hk__net_close(struct hk_net *net)
{
	if (net)
		net->ops->close(net);
}

bool hk__no_untold(const struct hk_net *net)
{
	(void)net;
	return false;
}

static enum hk_status chan_check(const struct hk_net *net, const struct hk_chan_spec *spec)
{
	if (spec->key.peer >= net->n || spec->slots < HK_SLOTS_MIN || spec->slots > HK_SLOTS_MAX ||
	    spec->slot_bytes == 0 || spec->slot_bytes > HK_SLOT_BYTES_MAX)
		return HK_EINVAL;
	return HK_OK;
}

enum hk_status hk__chan_open_send(struct hk_net *net, const struct hk_chan_spec *spec,
				  struct hk_chan **chan_out)
{
	enum hk_status status = chan_check(net, spec);

	return status == HK_OK ? net->ops->chan_send(net, spec, chan_out) : status;
}

enum hk_status hk__chan_open_recv(struct hk_net *net, const struct hk_chan_spec *spec,
				  struct hk_chan **chan_out)
{
	enum hk_status status = chan_check(net, spec);

	return status == HK_OK ? net->ops->chan_recv(net, spec, chan_out) : status;
}

void hk__chan_close(struct hk_chan *chan)
{
	if (chan)
		chan->ops->close(chan);
}

enum hk_status hk__chan_taken_back(const struct hk_chan *chan)
{
	return hk__why(&chan->net->why, HK_EREVOKED,
		       "rank %u withdrew a message: its call timed out or failed",
		       chan->spec.key.peer);
}
