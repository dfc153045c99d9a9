/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mux.h - two nets as one: shared memory for the ranks of this machine, a
 * network for the others. A channel is of the net that leads to its peer.
 */
#ifndef HK_NET_MUX_MUX_H
#define HK_NET_MUX_MUX_H

#include "net/net.h"

struct hk_mux_spec {
	struct hk_net *near;		/* both borrowed, and open as long as this */
	struct hk_net *far;
	const bool *is_near;		/* by rank; borrowed */
	const struct hk_alloc *alloc;
};

enum hk_status hk__mux_open(const struct hk_mux_spec *spec, struct hk_net **net_out);

#endif
