/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - the side that accepts: lets in who proves that it holds the key.
 *
 * Anybody may connect, say nothing, say anything, or leave. Until the proof a
 * connection costs a slot of a bounded number and a bounded time; after it, it
 * belongs to a guest, who is told one message and confirms it with a byte.
 * One thread uses a gate; hk__gate_next() is the only call that waits.
 */
#ifndef HK_BOOT_GATE_H
#define HK_BOOT_GATE_H

#include "boot/conn.h"

struct hk__gate_spec {
	int listen_fd;			/* borrowed; non-blocking */
	const unsigned char *key;	/* borrowed */
	const char *purpose;		/* as in struct hk__claim */
	const char *who;		/* turns strangers away: for messages */
	size_t hello_len;
	uint32_t guests;		/* that are expected */
	bool same_user;			/* a local socket: other users are strangers */
	const struct hk_alloc *alloc;
};

struct hk__gate;			/* opaque */

enum hk__gate_what {
	HK__GATE_CAME,			/* a guest, with its hello */
	HK__GATE_CONFIRMED,		/* it has what it was told, and left */
	HK__GATE_GONE,			/* it left before that */
	HK__GATE_TIMEOUT
};

struct hk__gate_event {
	enum hk__gate_what what;
	uint32_t guest;			/* its number at this gate; used again once it left */
	const unsigned char *hello;	/* valid until the next call */
};

/* fds go with the first bytes, one with each: len >= nfds. All is borrowed until it left. */
struct hk__gate_message {
	const unsigned char *bytes;
	size_t len;
	const int *fds;
	size_t nfds;
};

enum hk_status hk__gate_create(const struct hk__gate_spec *spec, struct hk__gate **gate_out);
void hk__gate_destroy(struct hk__gate *gate);	/* accepts NULL; closes all but listen_fd */

/* HK_EIO with errno: connections cannot be accepted. */
enum hk_status hk__gate_next(struct hk__gate *gate, uint64_t deadline_ns,
			     struct hk__gate_event *event_out);
/* Once for each guest. */
void hk__gate_tell(struct hk__gate *gate, uint32_t guest, const struct hk__gate_message *message);
/* Hangs up on a guest: nothing more is heard of it. */
void hk__gate_drop(struct hk__gate *gate, uint32_t guest);
/* The connection of a guest, to be looked at. */
int hk__gate_fd(const struct hk__gate *gate, uint32_t guest);
/* Those who came and had no proof, or the proof of another key. */
uint32_t hk__gate_strangers(const struct hk__gate *gate);
uint32_t hk__gate_denied(const struct hk__gate *gate);
/* Guests that can be numbered at once. */
uint32_t hk__gate_room(const struct hk__gate *gate);

#endif
