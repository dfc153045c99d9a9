/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.h - the transport between machines: TCP connections, made when a channel
 * first needs them.
 *
 * Of two ranks the lower one connects and the higher one accepts; both prove
 * that they hold the job's key before a byte of theirs is acted on. Channels of
 * a pair share its connections.
 */
#ifndef HK_NET_TCP_TCP_H
#define HK_NET_TCP_TCP_H

#include "net/auth.h"
#include "net/net.h"

#include <sys/socket.h>

#define HK_TCP_CONNS_MAX 16u

struct hk_tcp_spec {
	uint32_t rank;
	uint32_t n;
	int listen_fd;		/* of hk__tcp_listen; the net's own once it is open */
	/* Where a rank takes connections; asked for when that is first needed. */
	enum hk_status (*address)(void *ctx, uint32_t rank, struct sockaddr_storage *addr_out,
				  socklen_t *len_out);
	/*
	 * A port of the same address that the rank has bound and does not listen at: where
	 * its host refuses connections. 0, or NULL: there is none, and a host that lets
	 * nobody in is taken for silent.
	 */
	uint16_t (*quiet_port)(void *ctx, uint32_t rank);
	void *ctx;
	unsigned char key[HK__KEY_BYTES];
	uint32_t conns;		/* between two ranks, the same on all; 0: 1 */
	/* A rank that has taken no connection for so long is gone; 0: 30 s. */
	uint64_t connect_timeout_ns;
	/* A host that has not answered for so long is out of reach; 0: 4 s. */
	uint64_t silence_ns;
	bool encrypt;		/* what is said after the greeting; the same on all */
	const char *iface;	/* connects from its address; NULL: the system chooses */
	const char *congestion;	/* how much may be on its way: TCP_CONGESTION, tcp(7); NULL: as
				   the system has it, but not by BBR */
	const struct hk_alloc *alloc;
};

/* HK_EINVAL (no such iface or congestion, too), HK_ENOMEM, HK_EIO; listen_fd is the caller's where it fails. */
enum hk_status hk__tcp_open(const struct hk_tcp_spec *spec, struct hk_net **net_out);

/* A socket that takes connections there, non-blocking; port 0: any. */
enum hk_status hk__tcp_listen(const struct sockaddr *addr, socklen_t len, int *fd_out);

/* A descriptor that poll(2) finds readable when something came; any thread may sleep on it. */
int hk__tcp_fd(const struct hk_net *net);

/* Connections that were turned away: who does not hold the key, or talks nonsense. */
uint64_t hk__tcp_refused(const struct hk_net *net);

#endif
