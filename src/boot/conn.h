/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h - a connection of the bootstrap, from the side that makes it: places,
 * and reading and writing until a deadline.
 *
 * A connection begins with proofs (auth.h). Who accepted sends a greeting; who
 * connected a claim: its nonce, its proof and a hello of a fixed length, to
 * which the proof is bound; who accepted a verdict and, if that is 'y', its own
 * proof. Only then is anything believed. The other side is in gate.h.
 */
#ifndef HK_BOOT_CONN_H
#define HK_BOOT_CONN_H

#include "boot/boot.h"

/* ---- time ---- */

#define HK__SECOND_NS UINT64_C(1000000000)
#define HK__MS_NS UINT64_C(1000000)

/* Deadlines are moments of this clock, which only goes forward. */
/* For poll and epoll_wait: rounded up, 0 if it is over. */
int hk__conn_left_ms(uint64_t deadline_ns);

/* ---- places ---- */

struct hk__place {
	struct sockaddr_storage addr;
	socklen_t len;
};

#define HK__PLACES_MAX 16u
#define HK__PORTS_MAX 8u
#define HK__PLACE_TEXT 64u

/* Where rank 0 may be: every address with every port. */
struct hk__places {
	struct hk__place at[HK__PLACES_MAX];
	uint32_t count;
	uint16_t ports[HK__PORTS_MAX];
	uint32_t nports;
	/* A host's own name may lead to loopback there, and to it from elsewhere. */
	bool by_own_name;
};

/* HK_EIO: the name is unknown, for now at least. */
enum hk_status hk__places_find(const struct hk__boot_spec *spec, struct hk_why *why,
			       struct hk__places *places_out);
/* "host:port", as it was given; of derived ports, all. */
void hk__places_text(const struct hk__boot_spec *spec, const struct hk__places *places,
		     struct hk__text *text);

uint16_t hk__place_port(const struct hk__place *place);
void hk__place_port_set(struct hk__place *place, uint16_t port);
bool hk__place_is_loopback(const struct hk__place *place);
void hk__place_text(const struct hk__place *place, char text_out[HK__PLACE_TEXT]);
/* Of this end of a connection. An IPv4 address is never dressed up as IPv6. */
enum hk_status hk__place_of(int fd, struct hk__place *place_out);
/* Of an interface, by its name or an address of it; of that family if there is one. */
enum hk_status hk__place_iface(const char *iface, sa_family_t family, struct hk_why *why,
			       struct hk__place *place_out);
/* Any address of this host. */
struct hk__place hk__place_any(sa_family_t family);
/* Non-blocking, closed on exec; errno where it fails. Fills the place's port. */
enum hk_status hk__place_listen(struct hk__place *place, int *fd_out);
/*
 * A quiet port: bound, so nobody else's, and never listened at, so the system
 * refuses connections. As above; the place's port is any.
 */
enum hk_status hk__place_quiet(struct hk__place *place, int *fd_out);

/* ---- connections ---- */

#define HK__GREETING_BYTES (8u + HK__NONCE_BYTES)
#define HK__CLAIM_BYTES (HK__NONCE_BYTES + HK__PROOF_BYTES)	/* without the hello */
#define HK__VERDICT_BYTES (1u + HK__PROOF_BYTES)
#define HK__HELLO_MAX 80u
#define HK__PURPOSE_BYTES 16u

extern const unsigned char hk__conn_magic[8];

/* What a proof is bound to: why the connection was made, and what was said. */
struct hk__about {
	char purpose[HK__PURPOSE_BYTES];
	unsigned char hello[HK__HELLO_MAX];
};

struct hk__claim {
	const unsigned char *key;
	const char *purpose;	/* up to 15 characters */
	const void *hello;
	size_t hello_len;
};

/* The two ends have to agree on it. auth->about points to about. */
void hk__conn_about(const struct hk__claim *claim, struct hk__about *about, struct hk__auth *auth);

/*
 * HK_EIO with errno, HK_ETIMEDOUT. A connection to oneself, which TCP makes of
 * a port that nobody listens at, is HK_EIO.
 */
enum hk_status hk__conn_connect(const struct hk__place *place, uint64_t deadline_ns, int *fd_out);
/* Until there is something to read, or the other end has closed. */
enum hk_status hk__conn_wait(int fd, uint64_t deadline_ns);
/* All of it, or HK_ETIMEDOUT, HK_EPEER (the other end has closed), HK_EIO. */
enum hk_status hk__conn_read(int fd, void *to, size_t len, uint64_t deadline_ns);
enum hk_status hk__conn_write(int fd, const void *from, size_t len, uint64_t deadline_ns);
/*
 * Both ends have proved that they hold the key. HK_ESYNTAX: it is no gate that
 * answers; HK_EDENIED: it is, and holds another key; and as hk__conn_read. A gate
 * that has greeted by greet_ns gets until deadline_ns for the rest: it may have
 * let this end in already, and would miss it.
 */
enum hk_status hk__conn_prove(int fd, const struct hk__claim *claim, uint64_t greet_ns,
			      uint64_t deadline_ns);
/* Waits a little longer each time, not quite regularly. */
void hk__conn_pause(uint64_t *pause_ns, uint64_t deadline_ns);

#endif
