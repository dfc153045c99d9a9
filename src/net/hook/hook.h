/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.h - a net on top of any other, in which things go wrong when they are told
 * to: at the k-th message between this rank and a peer, sent or received.
 */
#ifndef HK_NET_HOOK_HOOK_H
#define HK_NET_HOOK_HOOK_H

#include "net/net.h"

enum hk__hook_what {
	HK__HOOK_DROP,			/* its channels are HK_EPEER, the peer is lost; later ones work */
	HK__HOOK_DELAY,			/* nothing moves for delay_ns */
	HK__HOOK_STALL,			/* nothing moves any more on channels that are open */
	HK__HOOK_CORRUPT,		/* a byte of the next message sent is another */
	HK__HOOK_TRUNCATE,		/* its second half is missing */
	HK__HOOK_DUPLICATE		/* it is sent twice */
};

struct hk__hook_fault {
	enum hk__hook_what what;
	uint32_t peer;
	uint64_t at;			/* messages before it */
	uint64_t delay_ns;
};

struct hk__hook_spec {
	struct hk_net *net;		/* becomes the hook's own, unless this fails */
	const struct hk__hook_fault *faults; /* copied */
	uint32_t nfaults;
	const struct hk_alloc *alloc;	/* NULL: the default */
};

enum hk_status hk__hook_open(const struct hk__hook_spec *spec, struct hk_net **net_out);
/* Messages between this rank and a peer so far. */
uint64_t hk__hook_messages(const struct hk_net *net, uint32_t peer);

#endif
