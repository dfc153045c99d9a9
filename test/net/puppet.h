/* SPDX-License-Identifier: Apache-2.0 */
/*
 * puppet.h - nets of a few ranks over TCP, and puppets: sockets of a test that
 * speak to a net as another rank would, up to a point.
 */
#ifndef HK_TEST_NET_PUPPET_H
#define HK_TEST_NET_PUPPET_H

#include "net/tcp/tcp.h"
#include "net/tcp/wire.h"

#define RANKS 3
#define SLOTS 2u
#define SLOT_BYTES 300000u
#define ROUNDS 2000000		/* until what must happen has not */
#define QUIET 200		/* after which what must not happen has not */
#define SOON_NS UINT64_C(200000000)

extern const unsigned char key[HK__KEY_BYTES];

extern struct hk_net *nets[RANKS];
extern struct sockaddr_storage addresses[RANKS];
extern socklen_t addresses_len;
extern struct hk_tcp_spec how;	/* of the nets that are opened next */

/* ---- nets ---- */

enum hk_status address_of(void *ctx, uint32_t rank, struct sockaddr_storage *addr_out,
			  socklen_t *len_out);
int listen_as(uint32_t rank);
void open_one(uint32_t rank, const unsigned char *its_key, int fd);
void open_ranks(uint32_t n);
void close_ranks(void);
void poll_all(void);

struct hk_chan_spec spec_to(uint32_t peer, uint32_t lane);
void open_pair(uint32_t from, uint32_t to, uint32_t lane, struct hk_chan *pair[2]);
void close_pair(struct hk_chan *pair[2]);
void exchange(struct hk_chan *pair[2], uint32_t len);
/* A pair that works, whatever else does not. */
void check_job_goes_on(void);
/* What peek says in the end; messages on the way are counted. */
enum hk_status end_of(struct hk_chan *chan, uint32_t *messages_out);

/* ---- puppets ---- */

int puppet_connect(uint32_t to);
void puppet_write(int fd, const void *data, size_t len);
bool puppet_read(int fd, void *data, size_t len);	/* false: it was hung up on */
bool puppet_is_cut_off(int fd);
/* The claim that answers a hello. */
void puppet_claim(const unsigned char *its_key, const unsigned char *hello,
		  const struct wire_claim *claim, unsigned char out[WIRE_CLAIM_BYTES]);
bool puppet_greet(int fd, const unsigned char *its_key, struct wire_claim claim);
/* A puppet in the place of rank 0, that rank 1 has taken; its OPEN is read. */
int puppet_rank(struct hk_chan **in_out);
void puppet_frame(int fd, struct wire_frame frame);

#endif
