/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - proof that both ends of a connection hold the job's key.
 *
 * Who accepts sends a nonce; who connected answers with one of its own and a
 * proof; who accepted proves itself in turn. A proof is bound to both nonces,
 * the role, and what the two sides have said about themselves (rank, purpose),
 * so nothing recorded is of use elsewhere or later.
 */
#ifndef HK_NET_AUTH_H
#define HK_NET_AUTH_H

#include "base/base.h"

#define HK__KEY_BYTES 32
#define HK__NONCE_BYTES 32
#define HK__PROOF_BYTES 32

enum hk__auth_role { HK__AUTH_CONNECTS, HK__AUTH_ACCEPTS };

/* Both nonces, and what is to be bound to them. */
struct hk__auth {
	unsigned char key[HK__KEY_BYTES];
	unsigned char connects[HK__NONCE_BYTES];
	unsigned char accepts[HK__NONCE_BYTES];
	const void *about;
	size_t about_len;
};

/* The library that does the work is ready; HK_EIO: it has no randomness. */
enum hk_status hk__auth_ready(void);
void hk__auth_nonce(unsigned char nonce_out[HK__NONCE_BYTES]);
/* A key of any text: given ones, and names of jobs. */
void hk__auth_key(const char *text, unsigned char key_out[HK__KEY_BYTES]);
void hk__auth_prove(const struct hk__auth *auth, enum hk__auth_role role,
		    unsigned char proof_out[HK__PROOF_BYTES]);
/* What one side sends after both have proved themselves is encrypted with. */
void hk__auth_derive(const struct hk__auth *auth, enum hk__auth_role sends,
		     unsigned char key_out[HK__KEY_BYTES]);
bool hk__auth_holds(const struct hk__auth *auth, enum hk__auth_role role,
		    const unsigned char proof[HK__PROOF_BYTES]);

#endif
